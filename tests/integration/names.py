# SPDX-License-Identifier: MIT
"""names: every frame's name, file and line as the interpreter itself says them."""
import json
import os
import re

import harness as h
from harness import need

DENSE = {"APROF_CLOCK": "monotonic", "APROF_RATE": "1000"}
LONGEST = 1000
CUT = re.compile(r"~[0-9a-f]{8}$")


def stands_for(shown, raw, path):
    """Does this name in the spool stand for that one in the code object?"""
    whole = h.escape(raw, path)[0]
    if len(whole.encode()) <= LONGEST:
        return shown == whole
    return CUT.search(shown) is not None and len(shown.encode()) <= LONGEST + 16 and whole.startswith(shown[:-9]) \
        and len(shown.encode()) > LONGEST - 20


def callers_of(lines, function):
    """µs by the frame that called this function, where it is the leaf."""
    found = {}
    for frames, us in lines:
        plain = h.without_markers(frames)
        if len(plain) > 1 and plain[-1].name == function:
            found[plain[-2]] = found.get(plain[-2], 0) + us
    return found


def check_names(truth, lines):
    found, expected = callers_of(lines, "burn_here"), {}
    for name, file, line, used in truth["rows"]:
        key = (name, file, line)
        expected[key] = expected.get(key, 0) + used
    taken = set()
    for (name, file, line), used in expected.items():
        frames = [f for f in found if f.line == line and stands_for(f.name, name, False) and stands_for(f.path, file, True)
                  and f not in taken]
        need(frames, "%a (%a:%d) is not in the spool", name[:60], file[-60:], line)
        taken.add(frames[0])
        us = found[frames[0]]
        need(us >= 0.3e6 * used, "%a line %d has %d of %d µs", name[:60], line, us, 1e6 * used)
    stray = [f.text for f in found if f not in taken and "/oracles/" in f.path]
    need(not stray, "frames that never called: %a", stray[:5])
    return "%d names, files and lines" % len(expected)


def odd_names(python, long):
    settings = dict(DENSE, APROF_PATHS="full")
    truth, spool, _ = h.run_oracle(python, "names.py", settings=settings)
    return check_names(truth, list(spool.one().stacks("cpu")))


# ---------------------------------------------------------------- code that is in no file

BURN = ("import sys, time\n\n"
        "end = time.thread_time() + 0.3\n"
        "while time.thread_time() < end:\n"
        "    x = 1\n"
        "    x = 2\n")


def in_no_file(words, stdin, file):
    def test(python, long):
        result = h.run(words, "no-file", python=python, stdin=stdin, settings=dict(DENSE))
        need(result.status == 0, "status %d: %s", result.status, h.tail(result.err))
        lines = [f for f, _ in h.Spool(result.spool).one().stacks("cpu")]
        burnt = {frames[0].line for frames in lines if frames[0].name == "<module>" and frames[0].path == file}
        need({4} <= burnt <= {1, 3, 4, 5, 6}, "lines of <module> (%s) seen: %s of %s", file, sorted(burnt), [f[0].text for f in lines][:5])
        return "lines %s" % sorted(burnt)
    return test


# ---------------------------------------------------------------- short paths

MODULE = """
from time import thread_time

def work():
    end = thread_time() + 0.2
    while thread_time() < end:
        pass
"""
MAIN = """
import sys, threading
sys.path.insert(0, "{root}/deps/site-packages")
sys.path.insert(0, "{root}/app")
import pkg.mod, lib.mod
pkg.mod.work()
lib.mod.work()
thread = threading.Thread(target=pkg.mod.work)
thread.start()
thread.join()
"""


def plant(folder):
    for path in ("app/pkg/mod.py", "deps/site-packages/lib/mod.py"):
        full = os.path.join(folder, path)
        os.makedirs(os.path.dirname(full))
        with open(full, "w", encoding="utf-8") as f:
            f.write(MODULE)
    with open(os.path.join(folder, "app/main.py"), "w", encoding="utf-8") as f:
        f.write(MAIN.format(root=folder))


def paths(kind):
    def test(python, long):
        folder = h.fresh_folder("paths")
        plant(folder)
        result = h.run(["app/main.py"], "paths", python=python, folder=folder, settings=dict(DENSE, APROF_PATHS=kind))
        need(result.status == 0, "status %d: %s", result.status, h.tail(result.err))
        frames = {(f.name, f.path) for stack, _ in h.Spool(result.spool).one().stacks("cpu") for f in stack if f.path}
        before = "" if kind == "short" else folder + "/"
        package = "lib" if kind == "short" else folder + "/deps/site-packages/lib"
        for wanted in (("<module>", before + "app/main.py"), ("work", before + "app/pkg/mod.py"), ("work", package + "/mod.py")):
            need(wanted in frames, "%s (%s) is not among %s", *wanted, json.dumps(sorted(frames))[:400])
        threads = {p for n, p in frames if n == "Thread.run"}
        need(threads == {"threading.py"} if kind == "short" else all(p.startswith("/") and p.endswith("/threading.py") for p in threads),
             "Thread.run is in %s", threads)
        need(threads, "no Thread.run")
    return test


# ---------------------------------------------------------------- scripts that others wrote

def shares_by_script(files):
    """As scripts for py-spy's raw output go: what stands behind the last space, of the last
    frame up to " (". In per cent."""
    own = {}
    for file in files:
        with open(file, encoding="utf-8") as lines:
            for line in lines:
                stack, count = line.rsplit(" ", 1)
                leaf = stack.split(";")[-1].split(" (")[0]
                own[leaf] = own.get(leaf, 0) + int(count)
    whole = sum(own.values())
    return {name: 100 * count / whole for name, count in own.items()}


def shares_by_report(folder, metric):
    shown = h.subprocess.run([h.TOOL, "report", "--json", "--top", "0", "--metric", metric, folder], stdout=h.subprocess.PIPE, check=True).stdout
    section, own = json.loads(shown)["metrics"][metric], {}
    for row in section["by_self"]:
        own[row["name"]] = own.get(row["name"], 0) + row["self"]
    return {name: 100 * count / section["total"] for name, count in own.items()}


def as_scripts_have_it(python, long):
    """The oracle's names are odd, but what they call is not: the waits and the burner."""
    counted = 0
    for words in (["mix.py", "1500"], ["names.py"]):
        result = h.run([h.oracle(words[0])] + words[1:], words[0], python=python, settings=dict(DENSE, APROF_WINDOW="1"))
        need(result.status == 0, "%s: status %d: %s", words[0], result.status, h.tail(result.err))
        for metric in ("cpu", "wall"):
            files = [os.path.join(result.spool, name) for name in os.listdir(result.spool) if name.split(".")[5:6] == [metric]]
            script, report = shares_by_script(files), shares_by_report(result.spool, metric)
            need(script.keys() == report.keys(), "%s: functions: %s", metric, script.keys() ^ report.keys())
            for name, share in script.items():
                need(abs(share - report[name]) < 1e-9, "%s: %a: %.9f %% by the script, %.9f %% by aprof report", metric, name, share, report[name])
            counted += len(script)
    return "%d shares" % counted


TESTS = [
    ("names", odd_names, True),
    ("names-script", as_scripts_have_it, True),
    ("names-c", in_no_file(["-c", BURN], h.subprocess.DEVNULL, "<string>"), True),
    ("names-stdin", in_no_file([], BURN.encode(), "<stdin>"), True),
    ("names-dash", in_no_file(["-"], BURN.encode(), "<stdin>"), True),
    ("paths-short", paths("short"), True),
    ("paths-full", paths("full"), True),
]
