# SPDX-License-Identifier: MIT
"""packages: what comes from PyPI, in folders below build/peers that are kept.

One environment holds what runs beside the application and what reads its output
(py-spy, austin-python, zstandard); what runs inside it (ddtrace) is installed for
each Python of the application into a folder of its own, by version, so that a
Python without pip can have it. Everything raises Absent with the reason when it
cannot be had; what failed is not tried again in the same run.
"""
import functools
import glob
import os
import shutil
import subprocess
import zipfile

import harness as h

FOLDER = os.path.join(h.REPO, "build", "peers")
MUSL = "/lib/ld-musl-x86_64.so.1"


class Absent(Exception):
    """Why a peer is not here."""


def remembered(function):
    """Each answer once, refusals too."""
    @functools.lru_cache(maxsize=None)
    def ask(*args):
        try:
            return function(*args), None
        except Absent as reason:
            return None, reason

    def call(*args):
        found, reason = ask(*args)
        if reason:
            raise reason
        return found
    return call


def last_line(text):
    lines = [line for line in text.decode("utf-8", "replace").splitlines() if line.strip() and "notice" not in line]
    return lines[-1].strip()[:120] if lines else "no word"


def do(words, what):
    try:
        done = subprocess.run(words, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=300)
    except (OSError, subprocess.SubprocessError) as error:
        raise Absent("%s: %s" % (what, str(error)[:100]))
    if done.returncode:
        raise Absent("%s: %s" % (what, last_line(done.stdout)))


def whole(folder, make):
    """A folder is there as a whole or not at all."""
    if not os.path.isdir(folder):
        part = folder + ".part"
        shutil.rmtree(part, ignore_errors=True)
        os.makedirs(FOLDER, exist_ok=True)
        make(part)
        os.rename(part, folder)
    return folder


@remembered
def environment():
    """The folder of programs of an environment with pip; made by the first Python here that can."""
    folder = os.path.join(FOLDER, "venv")
    if os.path.exists(os.path.join(folder, "bin", "pip")):
        return os.path.join(folder, "bin")
    reason = Absent("no Python here makes environments")
    for python in h.pythons():
        if not python.prefix:
            shutil.rmtree(folder, ignore_errors=True)
            try:
                do(python.words + ["-m", "venv", folder], "venv")
                return os.path.join(folder, "bin")
            except Absent as why:
                reason = why
    shutil.rmtree(folder, ignore_errors=True)
    raise reason


@remembered
def program(package, name):
    """The path of a program that a package of the environment brings; name None: of a module alone."""
    folder = environment()
    mark = os.path.join(FOLDER, "venv", "has-" + package)
    if not os.path.exists(mark):
        do([os.path.join(folder, "pip"), "install", "-q", package], "pip install " + package)
        with open(mark, "w", encoding="utf-8"):
            pass
    return os.path.join(folder, name or "python")


@remembered
def for_python(package, version):
    """A folder for PYTHONPATH with a package for that version (3, 12) of the application's Python."""
    def make(folder):
        do([os.path.join(environment(), "pip"), "install", "-q", "--retries", "1", "--timeout", "10", "--target", folder, "--only-binary=:all:",
            "--implementation", "cp", "--python-version", "%d.%d" % version, package], "pip install " + package)
    return whole(os.path.join(FOLDER, "%s-%d.%d" % ((package,) + version)), make)


@remembered
def large_package():
    """A folder with sympy, some hundred modules of plain Python."""
    def make(folder):
        do([os.path.join(environment(), "pip"), "install", "-q", "--target", folder, "sympy"], "pip install sympy")
    return whole(os.path.join(FOLDER, "large"), make)


@remembered
def austin():
    """austin's program and the C library that runs it: Debian 12 is too old for the other build of it."""
    if not os.path.exists(MUSL):
        raise Absent("its build for musl needs %s (Debian's musl)" % MUSL)

    def make(folder):
        do([os.path.join(environment(), "pip"), "download", "-q", "--no-deps", "-d", folder, "--only-binary=:all:",
            "--platform", "musllinux_1_1_x86_64", "austin-dist>=4"], "pip download austin-dist")
        with zipfile.ZipFile(glob.glob(os.path.join(folder, "*.whl"))[0]) as wheel:
            wheel.extractall(folder)
        shutil.copy(MUSL, os.path.join(folder, "ld-musl"))  # also for a Python that lives in another root
    folder = whole(os.path.join(FOLDER, "austin"), make)
    return [os.path.join(folder, "ld-musl"), glob.glob(os.path.join(folder, "*.data", "scripts", "austin"))[0]]


def compiled(python, folder):
    """Its modules compiled for this Python, as an installed package's are."""
    mark = os.path.join(folder, "compiled-" + python.label)
    if not os.path.exists(mark):
        do(python.words + ["-m", "compileall", "-q", folder], "compileall")
        with open(mark, "w", encoding="utf-8"):
            pass
