# SPDX-License-Identifier: MIT
"""places: in whatever environment a process finds itself, it works as without us; what
cannot be profiled there costs one line.

Most rows run through build/hazards/place, which takes something away and becomes the
program; what it does once and for all Pythons alike is tried on the oldest and newest.
"""
import os
import re
import subprocess

import hazard
from hazard import Hazard, h

PLACE = os.path.join(h.BUILD, "hazards", "place")
BUSY = "import time\nend = time.process_time() + %g\nwhile time.process_time() < end: sum(range(1000))\n"
DONE = BUSY % 0.1 + "print('done')\n"
NOBODY = 54321  # a user without an entry anywhere
AS_NOBODY = ["setpriv", "--reuid=%d" % NOBODY, "--regid=%d" % NOBODY, "--clear-groups"]

OWN_MOUNTS = ["unshare", "-m", "--propagation", "unchanged"]  # the runner's are private already; "/" may be no mount


def place(*items):
    return [PLACE, *items, "--"]


def shell(text):
    """A shell that does this and then becomes the program."""
    return ["sh", "-c", text + '\nexec "$@"', "sh"]


def edges(case):
    """The oldest and the newest Python: for what does not depend on the version."""
    return [case.pythons[0], case.pythons[-1]] if len(case.pythons) > 1 else case.pythons


def ours(result):
    return [line.decode("utf-8", "replace") for line in result.err.splitlines() if line.startswith(b"aprof")]


def total(spool, metric="cpu"):
    return spool.total(metric) if spool.processes else 0


def lives(case, launcher, python, words=("-c", DONE), says=(), out=b"done\n", sampled=True, own_pid=True, **options):
    """The program works as without us. says: a word each of the lines of ours; sampled: its time is in the spool."""
    words = [os.fsdecode(w) for w in (*launcher, python.words[-1], *words)]
    result = case.program(python.prefix + words, python=None, spooled=sampled and own_pid, **options)
    if result is None:
        return None
    said, others = ours(result), [x for x in result.err.splitlines() if not x.startswith(b"aprof")]
    case.check(result.out == out, "%s: stdout %r", launcher, result.out[-200:])
    case.check(not others, "%s: stderr %s", launcher, others[:3])
    case.check(len(said) == len(says) and all(word in line for word, line in zip(says, said)),
               "%s: not one line each with %s: %s", launcher, says, said)
    if sampled:
        spool = h.Spool(result.spool)
        case.check(len(spool.processes) == 1 and total(spool) > 50000, "%s: %d processes, cpu %d us of 100,000", launcher,
                   len(spool.processes), total(spool))
    return result


def open_folder(name):
    """A folder in which everybody may make a spool."""
    folder = h.fresh_folder(name)
    os.chmod(folder, 0o1777)
    return folder


def reachable(folder):
    """Skips where another user cannot get at our files."""
    done = subprocess.run(AS_NOBODY + ["test", "-r", h.LIBRARY, "-a", "-w", folder], stderr=subprocess.DEVNULL)
    if done.returncode:
        raise h.Skip("user %d cannot read %s" % (NOBODY, h.LIBRARY))


# ---------------------------------------------------------------- the environment

def empty_environment(case):
    """env -i: no HOME, no PATH, no LANG; the spool in the working directory."""
    lives(case, [], case.python, whole_env={})


def interpreter_options(case):
    for words in (["-I", "-S", "-B"], ["-E", "-s", "-O"]):
        lives(case, [], case.python, words=words + ["-c", DONE])


def locales(case):
    """Locale C and POSIX; a folder and arguments that are not UTF-8, names of 255 bytes."""
    raw, long = b"\xff\xfe;\\ (x)", b"n" * 252
    for python in edges(case):
        for lang in ("C", "POSIX"):
            folder = os.fsencode(h.fresh_folder("locale"))
            inside = os.path.join(folder, raw)
            os.mkdir(inside)
            with open(os.path.join(inside, long + b".py"), "w", encoding="ascii") as f:
                f.write(DONE)
            result = lives(case, [], python, words=[os.path.join(inside, long + b".py"), b"\xff\xfe"], folder=os.fsdecode(folder),
                           cwd=inside, settings={"LC_ALL": lang, "LANG": lang, "APROF_DIR": os.fsdecode(os.path.join(inside, b"s\xff"))},
                           sampled=False)
            spool = h.Spool(os.fsdecode(os.path.join(inside, b"s\xff")))
            case.check(result and total(spool) > 50000, "%s: cpu %d us", lang, total(spool))


def large_environment(case):
    """1 MB of it, also through a Python that hands it down."""
    code = "import os, subprocess, sys\nif len(sys.argv) == 1: subprocess.run(['env'], stdout=subprocess.DEVNULL, check=True)\n" + DONE
    for python in edges(case):
        lives(case, [], python, words=["-c", code], env={"LARGE%d" % i: "x" * 100000 for i in range(10)})


# ---------------------------------------------------------------- users, rights, roots

def other_users(case):
    """A user without an entry; one without any capability; an application that became non-dumpable."""
    hazard.need_root()
    hazard.need_programs("setpriv", "capsh")
    undumpable = "import ctypes\nassert ctypes.CDLL(None).prctl(4, 0, 0, 0, 0) == 0\n"
    for python in edges(case):
        folder = open_folder("users")
        reachable(folder)
        lives(case, AS_NOBODY, python, folder=folder)
        folder = open_folder("users")
        lives(case, AS_NOBODY + ["--bounding-set=-all", "--inh-caps=-all", "--no-new-privs"], python, folder=folder)
        folder = open_folder("users")
        lives(case, AS_NOBODY, python, words=["-c", undumpable + DONE], folder=folder)
        if not python.prefix:
            lives(case, ["capsh", "--drop=all", "--secbits=15", "--", "-c", 'exec "$0" "$@"'], python)
        folder = h.fresh_folder("users")
        os.chmod(folder, 0o755)
        lives(case, AS_NOBODY, python, folder=folder, says=["spool directory"], sampled=False)


def su_and_sudo(case):
    """Another user by su: a process of the run; by sudo, which clears the environment: none, and no word."""
    hazard.need_root()
    hazard.need_programs("su")
    python = case.pythons[0]
    folder = open_folder("su")
    reachable(folder)
    lives(case, ["su", "nobody", "-s", "/bin/sh", "-c", 'exec "$0" "$@"', "--"], python, folder=folder, own_pid=False)


def without_folders(case):
    """No /proc; /proc that hides processes; no /tmp; everything read-only."""
    hazard.need_root()
    for python in edges(case):
        lives(case, OWN_MOUNTS + shell("umount -l /proc"), python)
        lives(case, OWN_MOUNTS + shell("mount -t tmpfs -o mode=0 tmpfs /proc"), python)
        folder = open_folder("hidepid")
        reachable(folder)
        lives(case, OWN_MOUNTS + shell("mount -t proc -o hidepid=2 proc /proc") + AS_NOBODY, python, folder=folder)
    python = case.pythons[0]
    if not h.WORK.startswith("/tmp/"):
        lives(case, OWN_MOUNTS + shell("mount -t tmpfs -o mode=0,ro tmpfs /tmp"), python)
    read_only = 'mount -o remount,ro,bind / 2>/dev/null || { mount --bind / /mnt && mount -o remount,ro,bind /mnt && cd /mnt && exec chroot . "$@"; }'
    lives(case, OWN_MOUNTS + shell(read_only), python, says=["read-only file system"], sampled=False)


# ---------------------------------------------------------------- limits

RLIMIT = {"fsize": 1, "stack": 3, "nproc": 6, "nofile": 7, "memlock": 8, "as": 9, "sigpending": 11}
UNLIMITED = 2 ** 64 - 1


def limit(name, value):
    return place("limit:%d:%d" % (RLIMIT[name], value))


def limits(case):
    """Signals queued, locked memory, stack: none at all, or without end."""
    for python in edges(case):
        lives(case, limit("sigpending", 0), python)
        lives(case, limit("memlock", 0), python)
        lives(case, limit("stack", UNLIMITED), python)
        lives(case, limit("stack", 128 << 10), python)


def no_thread(case):
    """Where no thread can be started: one line, and as without us."""
    hazard.need_root()
    for python in edges(case):
        folder = open_folder("nproc")
        reachable(folder)
        lives(case, limit("nproc", 1) + ["setpriv", "--reuid=%d" % (NOBODY + 1), "--clear-groups"], python, folder=folder, says=["a thread of our own"], sampled=False)
        lives(case, place("deadline"), python, says=["a thread of our own"], sampled=False)


def small_address_space(case):
    """Where it is short we take nothing of it: an application that lives there does so with us."""
    for python in edges(case):
        for megabytes in (24, 28, 50):
            lives(case, limit("as", megabytes << 20), python, says=["address space"], sampled=False)
        lives(case, limit("as", 100 << 20), python)


HAZARDS = [
    Hazard("places.empty_environment", empty_environment),
    Hazard("places.interpreter_options", interpreter_options),
    Hazard("places.locales", locales, each=False),
    Hazard("places.large_environment", large_environment, each=False),
    Hazard("places.other_users", other_users, each=False),
    Hazard("places.su", su_and_sudo, each=False),
    Hazard("places.without_folders", without_folders, each=False),
    Hazard("places.limits", limits, each=False),
    Hazard("places.no_thread", no_thread, each=False),
    Hazard("places.small_address_space", small_address_space, each=False),
]
