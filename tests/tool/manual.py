#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""manual: the man pages say what --help and README.md say, are clean, and are installed.

    tests/tool/manual.py BUILD        BUILD: where aprof, aprof-settings and man/ are
"""
import os
import re
import shutil
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

from harness import REPO, Skip, need, run, run_tests, same, test  # noqa: E402

BUILD = os.path.abspath(sys.argv[1])
APROF = os.path.join(BUILD, "aprof")
PAGES = ("aprof.1", "aprof-run.1", "libaprof.7")


def path_of(page):
    return os.path.join(BUILD, "man", page)


def words_of_page(page):
    """What a reader gets to see of it, as words; of the macros only those that hold text."""
    words = []
    for line in open(path_of(page), encoding="utf-8"):
        line = line.rstrip("\n")
        if line.startswith("."):
            macro, _, line = line[1:].partition(" ")
            if macro not in ("B", "I", "SH", "SS"):
                continue
        line = re.sub(r"\\f[BIR]", "", line)
        for code, text in ((r"\&", ""), (r"\-", "-"), (r"\(aq", "'"), (r"\(ha", "^"), (r"\(ti", "~"), (r"\e", "\\")):
            line = line.replace(code, text)
        words += line.split()
    return " ".join(words)


def commands():
    """name: its --help, of those that have one."""
    general = run(APROF, "--help").out
    names = re.findall(r"^    ([a-z]+)  ", general[general.index("COMMANDS"):general.index("EXIT")], re.M)
    need(len(names) > 4, "commands: %s", names)
    texts = {name: run(APROF, "help", name).out for name in names}
    return {name: text for name, text in texts.items() if text != general}


def pieces(text):
    """Paragraphs, options with their texts, lines of examples: what must stand as it is."""
    text = re.sub(r"^(NAME\n    .*|[A-Z][A-Z ]*)$", "", text.replace("`", ""), flags=re.M)
    for block in re.split(r"\n\s*\n", text):
        part = []
        for line in block.split("\n"):
            if re.match(r" {1,8}(-|[0-9] |aprof |[a-z]+  )", line) and part:
                yield " ".join(part)
                part = []
            part += line.split()
        if part:
            yield " ".join(part)


def contains(page, text):
    found = words_of_page(page)
    count = 0
    for piece in pieces(text):
        need(piece in found, "%s has not: %s", page, piece)
        count += 1
    return count


@test
def aprof_has_the_help_of_every_command():
    found = commands()
    need({"report", "flame", "diff"} <= set(found), "commands: %s", sorted(found))
    for name, text in found.items():
        need(contains("aprof.1", text) > 10, "%s: few pieces", name)
        need("APROF " + name.upper() in words_of_page("aprof.1"), "no section of %s", name)
    need(contains("aprof.1", run(APROF, "--help").out) > 8, "few pieces")


@test
def a_piece_that_is_missing_is_missed():
    try:
        contains("aprof.1", "OPTIONS\n    -z, --zeal  more of everything\n")
    except AssertionError:
        return
    raise AssertionError("not seen")


@test
def aprof_run_has_its_help():
    text = run(os.path.join(REPO, "scripts", "aprof-run"), "--help").out
    text = re.sub(r"^(Usage|Exit status): ", "", text[:text.find("\nSettings (") if "\nSettings (" in text else None], flags=re.M)
    need(contains("aprof-run.1", text) > 20, "few pieces")


@test
def libaprof_has_every_setting_of_the_readme():
    table = open(os.path.join(REPO, "README.md"), encoding="utf-8").read()
    rows = re.findall(r"^\| `(APROF_[A-Z_]+)` \| (?:`([^`]*)`)? ?\| (.*) \|$", table, re.M)
    page = words_of_page("libaprof.7")
    need(len(rows) > 20, "%d rows in README.md", len(rows))
    for name, default, meaning in rows:
        text = " ".join(meaning.split())
        item = re.search(r"%s=\S+ %s(.*?)(?= APROF_[A-Z_]+=|$)" % (name, re.escape(text)), page)
        need(item, "libaprof.7 has not %s: %s", name, text)
        need(not default or "[%s]" % default in item[1], "%s: default: %s", name, item[1])
    same(re.findall(r"(APROF_[A-Z_]+)=", page), [name for name, _, _ in rows], "settings and their order")


@test
def they_are_clean():
    checkers = {"mandoc": ["mandoc", "-T", "lint", "-W", "warning"], "groff": ["groff", "-man", "-ww", "-z", "-Tutf8"],
                "man": ["man", "--warnings", "-E", "UTF-8", "-l", "-Tutf8", "-Z"]}
    there = [name for name in checkers if shutil.which(name)]
    if not there:
        raise Skip("none of mandoc, groff, man is here")
    for name in there:
        for page in PAGES:
            done = subprocess.run(checkers[name] + [path_of(page)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=60)
            said = done.stderr + (done.stdout if name == "mandoc" else "")
            need(done.returncode == 0 and not said.strip(), "%s of %s: %d: %s", name, page, done.returncode, said)


@test
def make_install_brings_them():
    folder = tempfile.mkdtemp(prefix="aprof-install-")
    try:
        for goal, wanted in (("install", True), ("uninstall", False)):
            done = subprocess.run(["make", "-s", "--no-print-directory", goal, "DESTDIR=" + folder, "PREFIX=/usr"], cwd=REPO,
                                  stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=600)
            need(done.returncode == 0, "make %s: %s", goal, done.stdout[-500:])
            for page in PAGES:
                there = os.path.exists(os.path.join(folder, "usr", "share", "man", "man" + page[-1], page))
                same(there, wanted, "%s after make %s" % (page, goal))
        left = [name for _, _, names in os.walk(folder) for name in names]
        same(left, [], "what make uninstall leaves")
    finally:
        shutil.rmtree(folder)


run_tests()
