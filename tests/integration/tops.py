# SPDX-License-Identifier: MIT
"""tops: `aprof top` on a terminal of ours, and as text."""
import contextlib
import json
import os
import re
import signal
import subprocess
import time

import harness as h
from dumps import standing
from harness import need
from terminal import Terminal

ROW = re.compile(r"^ *(\S+)% +(\S+)% +(\S+) (\S+) +(\S+) (\S+) +(.*)$")
UNITS = {"us": 1, "ms": 1e3, "s": 1e6, "min": 60e6, "h": 3600e6}

BURNS = """
import os, sys, time
def one(seconds):
    end = time.thread_time() + seconds
    while time.thread_time() < end: sum(range(2000))
def two(seconds):
    end = time.thread_time() + seconds
    while time.thread_time() < end: sum(range(2000))
def child():
    one(0.5)
if %d and os.fork() == 0:
    child()
    os._exit(0)
for _ in range(3):
    one(0.4)
    two(0.3)
if %d: os.wait()
"""


@contextlib.contextmanager
def top(*words, **options):
    terminal = Terminal([h.TOOL, "top"] + [str(w) for w in words], **options)
    try:
        yield terminal
    finally:
        terminal.close()


def rows_of(lines):
    """{function: (self, total, self us, total us)}; shares in per cent."""
    found = {}
    for line in lines[4:]:
        match = ROW.match(line)
        if match:
            shares = [float(s.lstrip("<")) for s in match.groups()[:2]]
            us = [float(match[n]) * UNITS[match[n + 1]] for n in (3, 5)]
            found[match[7]] = (*shares, *us)
    return found


def is_ordered(lines, column):
    """By this column; for it is read while it is drawn, a screen is looked at until it is."""
    found = [row[column] for row in rows_of(lines).values()]
    return found and found == sorted(found, reverse=True)


def report_of(spool, metric):
    done = subprocess.run([h.TOOL, "report", "--json", "--top", "0", "--metric", metric, spool], stdout=subprocess.PIPE, check=True)
    found = json.loads(done.stdout)["metrics"][metric]
    return {"%s (%s)" % (row["name"], row["place"]): (row["self"], row["total"]) for row in found["by_total"]}


def law(pythons, long):
    """Begun before all others, it has in the end what the report has: across windows of a second, forks and processes that come and go."""
    folder = h.fresh_folder("top-law")
    spool = os.path.join(folder, "spool")
    os.mkdir(spool)
    with top("--metric", "cpu", spool, rows=60, columns=160) as terminal:
        terminal.until(lambda lines: "no process writes here now" in lines[2], "before all")
        for number in range(2):
            result = h.run(["-c", BURNS % (number, number)], "top-law", python=pythons[0], settings={"APROF_WINDOW": "1", "APROF_DIR": spool})
            need(result.status == 0, "status %d: %s", result.status, h.tail(result.err))
        wanted = {name: amounts for name, amounts in report_of(spool, "cpu").items() if name.startswith(("one (", "two (", "child ("))}
        need(len(wanted) == 3, "the report: %s", wanted)

        def same(lines):
            found = rows_of(lines)
            return "0 processes" in lines[0] and all(
                abs(found[name][2 + n] - amounts[n]) <= 0.006 * amounts[n] + 1 for name, amounts in wanted.items() if name in found for n in (0, 1)) \
                and set(wanted) <= set(found)
        terminal.press("a")
        terminal.until(same, "as the report has it (%s)" % wanted)
        terminal.press("q")
        need(terminal.wait() == 0, "status %d", terminal.status)
        return ", ".join("%s %.2f s" % (name.split(" ")[0], amounts[0] / 1e6) for name, amounts in sorted(wanted.items()))


def keys(pythons, long):
    """Orders, metrics, processes, help, sizes and the end, by keys; and by signals."""
    with standing(pythons[0], "busy") as (truth, spool):
        with top(spool, rows=30, columns=120) as terminal:
            def shown(what, **options):
                return terminal.until(what, what.__doc__ or "?", **options)
            lines = shown(lambda lines: any("burn (" in line for line in lines))
            need("SELF*" in lines[3] and lines[1].startswith("[cpu]"), "%s", lines[:4])
            shown(lambda lines: rows_of(lines) and max(rows_of(lines).items(), key=lambda row: row[1][0])[0].startswith("burn ("))
            terminal.press("t")
            shown(lambda lines: "TOTAL*" in lines[3] and is_ordered(lines, 1))
            terminal.press("a")
            shown(lambda lines: "TOTAL ALL*" in lines[3] and is_ordered(lines, 3))
            terminal.press("sa")
            shown(lambda lines: "SELF*" in lines[3])
            terminal.press("m")
            shown(lambda lines: "[wall]" in lines[1])
            terminal.press("M")
            shown(lambda lines: "[cpu]" in lines[1])
            terminal.press("p")
            shown(lambda lines: lines[2].startswith("process %d alone" % truth["pid"]))
            terminal.press("p")
            shown(lambda lines: lines[2].startswith("all of: %d " % truth["pid"]))
            terminal.press("?")
            shown(lambda lines: any("ends" in line for line in lines[4:]) and "FUNCTION" not in "".join(lines))
            terminal.press("?")
            shown(lambda lines: "FUNCTION" in lines[3])
            terminal.press(" ")
            shown(lambda lines: "paused" in lines[0])
            terminal.press(" ")
            shown(lambda lines: "paused" not in lines[0])
            for rows, columns in ((10, 60), (3, 20), (1, 10), (40, 150)):
                terminal.resize(rows, columns)
                shown(lambda lines, rows=rows: len(lines) == rows and lines[0].startswith("aprof") and (rows < 5 or "FUNCTION" in lines[3]))
            shown(lambda lines: any("burn (" in line for line in lines))
            terminal.press("q")
            need(terminal.wait() == 0, "status %d", terminal.status)
        for signo in (signal.SIGINT, signal.SIGTERM):
            with top(spool) as terminal:
                terminal.until(lambda lines: "FUNCTION" in lines[3], "for a signal")
                os.kill(terminal.pid, signo)
                need(terminal.wait() == 0, "status %d after signal %d", terminal.status, signo)


def as_text(pythons, long):
    """--once has what is open, in its order; what cannot be done costs one line."""
    with standing(pythons[0], "busy") as (truth, spool):
        end = time.monotonic() + 30
        done = None
        while done is None or (b"burn (" not in done.stdout and time.monotonic() < end):
            done = subprocess.run([h.TOOL, "top", "--once", "--sort", "total", spool], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                  stderr=subprocess.PIPE)
        lines = done.stdout.decode().splitlines()
        found = rows_of(lines)
        need(done.returncode == 0 and not done.stderr and found, "%d %s", done.returncode, done.stderr)
        totals = [row[3] for row in found.values()]
        need(totals == sorted(totals, reverse=True), "not in order: %s", totals)
        done = subprocess.run([h.TOOL, "top", "--once", "--top", "2", spool], stdout=subprocess.PIPE)
        need(len(done.stdout.splitlines()) == 6, "%s", done.stdout)
    empty = h.fresh_folder("top-empty")
    for words, status in (([spool], 2), (["--once", empty], 3), (["--once", os.path.join(empty, "none")], 4), (["--sort", "x"], 2),
                          (["--interval", "0"], 2), (["a", "b"], 2), (["--metric", ""], 2), (["--once", "--metric", "nothing", spool], 3)):
        done = subprocess.run([h.TOOL, "top"] + words, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        need(done.returncode == status and done.stderr.count(b"\n") == 1 and not done.stdout, "%s: %d %s", words, done.returncode, done.stderr)


TESTS = []
ONCE = [
    ("top-law", law, True),
    ("top-keys", keys, True),
    ("top-text", as_text, True),
]
