#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""terminal: what the reading programs write to a terminal, and that a pipe gets none of it.

    tests/tool/terminal.py APROF HASTY_CLOCK

HASTY_CLOCK: tests/tool/hasty_clock.c, under which every look at the clock finds it later,
so that a short reading is a long one.
"""
import os
import pty
import re
import shutil
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

from harness import GOLDEN, HANGS, environment, need, run, run_tests, same, screen, spool_write, test  # noqa: E402

APROF, HASTY = (os.path.abspath(word) for word in sys.argv[1:3])
WORK = tempfile.mkdtemp(prefix="aprof-terminal-")
SERVICE = os.path.join(GOLDEN, "service", "spool")
BASE, NEW = (os.path.join(GOLDEN, "compared", "spool", side) for side in ("base", "new"))
COLOURED = {"TERM": "xterm"}
COMMANDS = {"report": ("report", "--top", "5", SERVICE), "stack": ("report", "--by", "stack", SERVICE),
            "only": ("report", "--only", "json.*", "--hide", "dumps", SERVICE), "diff": ("diff", "--fail-over", "1", BASE, NEW)}
READ_MIB = 1  # the reader's reads: a look at the clock each
LARGE_MIB = 24


def large():
    """A spool of many reads."""
    folder = os.path.join(WORK, "large")
    if not os.path.isdir(folder):
        line = ";".join("function_%d (module.py:%d)" % (n, n) for n in range(200))
        spool_write(folder, "cpu", [(line, 10 + n) for n in range((LARGE_MIB << 20) // len(line))])
    return folder


def hasty(step_us):
    return {"TERM": "xterm", "LD_PRELOAD": HASTY, "HASTY_STEP_US": str(step_us), "ASAN_OPTIONS": "verify_asan_link_order=0"}


# ---- colours and widths ---------------------------------------------------------


@test
def a_terminal_gets_the_same_text_in_colours():
    for name, words in COMMANDS.items():
        plain = run(APROF, *words).out
        shown = run(APROF, *words, "--width", "0", terminals=("out",), env=COLOURED).out
        need("\x1b[" in shown, "%s: no colours", name)
        same(re.sub(r"\x1b\[[0-9]*m", "", shown), plain, name)
        same(len(re.findall(r"\x1b\[[1-9][0-9]*m", shown)), shown.count("\x1b[0m"), "%s: colours that begin, and that end" % name)


@test
def no_escape_where_none_is_wanted():
    for name, words in COMMANDS.items():
        for what, kept in (("a pipe", {"env": COLOURED}), ("NO_COLOR", {"terminals": ("out",), "env": {"TERM": "xterm", "NO_COLOR": "1"}}),
                           ("TERM=dumb", {"terminals": ("out",), "env": {"TERM": "dumb"}}),
                           ("a terminal for stderr only", {"terminals": ("err",), "env": COLOURED})):
            result = run(APROF, *words, **kept)
            need("\x1b" not in result.out + result.err, "%s, %s: %r", name, what, result.out + result.err)


@test
def top_needs_a_terminal_that_it_can_draw_on():
    inner, outer = pty.openpty()
    for term in ("dumb", "no-such-terminal", ""):
        done = subprocess.run([APROF, "top", SERVICE], stdin=outer, stdout=outer, stderr=subprocess.PIPE, text=True,
                              env=environment({"TERM": term}), timeout=HANGS)
        if "built without ncurses" not in done.stderr:
            need("(TERM=%s) cannot be drawn on" % term in done.stderr, "TERM=%s: %r", term, done.stderr)
        same(done.returncode, 2, "TERM=%s: exit status" % term)
    os.close(inner)
    os.close(outer)


@test
def an_empty_NO_COLOR_is_none():
    need("\x1b[" in run(APROF, *COMMANDS["report"], terminals=("out",), env={"TERM": "xterm", "NO_COLOR": ""}).out, "no colours")


@test
def only_what_matters_is_coloured():
    shown = run(APROF, "report", SERVICE, terminals=("out",), env=COLOURED).out
    need("\x1b[33mdepth 3\x1b[0m" in shown, "a limit that bit is not yellow")
    need("\x1b[1m   82.5%\x1b[0m" in shown, "a big share is not bold: %s", shown)
    need(" 8.9%\x1b" not in shown, "a share below a tenth is bold")
    need("\x1b[31m" not in shown, "red without a reason")
    losses = [line for line in shown.split("\n") if line.startswith("lost")]
    need(losses and "\x1b" not in losses[0], "a loss of less than half a per cent is coloured: %s", losses)


@test
def losses_are_yellow_then_red():
    for lost, colour in ((40, None), (60, "33"), (600, "31")):
        folder = os.path.join(WORK, "lost-%d" % lost)
        shutil.copytree(os.path.join(GOLDEN, "tasks", "spool"), folder)
        for name in os.listdir(folder):
            path = os.path.join(folder, name)
            if name.endswith(".json"):
                text = re.sub(r'"dropped": \{[^}]*\}', '"dropped": {"torn": %d}' % lost, open(path).read())
                text = re.sub(r'"ticks": \{[^}]*\}', '"ticks": {"due": 10000, "taken": 10000, "missed": 0}', text)
                open(path, "w").write(re.sub(r'"tasks_skipped": [0-9]+', '"tasks_skipped": 0', text))
        shown = run(APROF, "report", folder, terminals=("out",), env=COLOURED).out
        line = next(line for line in shown.split("\n") if line.startswith("lost"))
        same(re.findall(r"\x1b\[([1-9][0-9]*)m", line), [colour] if colour else [], "%d of 10,000: %s" % (lost, line))


@test
def lines_fit_the_terminal():
    for name, words in COMMANDS.items():
        for columns in (92, 100, 131):
            for line in screen(run(APROF, *words, terminals=("out",), columns=columns, env=COLOURED).out):
                need(len(line) <= columns, "%s, %d columns: %d: %s", name, columns, len(line), line)
    rows = screen(run(APROF, *COMMANDS["report"], terminals=("out",), columns=66, env=COLOURED).out)
    need(max(map(len, rows)) == 66, "66 columns: %d", max(map(len, rows)))


@test
def columns_that_are_said_win():
    wide = screen(run(APROF, *COMMANDS["report"], terminals=("out",), columns=66, env={"TERM": "xterm", "COLUMNS": "131"}).out)
    same(wide, screen(run(APROF, *COMMANDS["report"], terminals=("out",), columns=131, env=COLOURED).out), "COLUMNS")
    piped = run(APROF, *COMMANDS["report"], env={"TERM": "xterm", "COLUMNS": "66"}).out
    same(piped, run(APROF, *COMMANDS["report"]).out, "COLUMNS and a pipe")


# ---- progress -------------------------------------------------------------------

LINE = re.compile(r"aprof: ([0-9.]+) (KiB|MiB) of ([0-9.]+) MiB read")


def mib(number, unit):
    return float(number) / (1024 if unit == "KiB" else 1)


@test
def long_readings_tell_how_far_they_are():
    folder = large()
    page = os.path.join(WORK, "flame.html")
    for words in (("report", folder), ("diff", "--flame", page, folder, folder), ("flame", "-o", page, folder)):
        result = run(APROF, *words, terminals=("err",), env=hasty(1000000))
        same(result.status, 0, "exit status of %s" % words[0])
        seen = LINE.findall(result.err)
        need(len(seen) > 3, "%s: %d lines", words[0], len(seen))
        done = [mib(number, unit) for number, unit, _ in seen]
        need(done == sorted(done) and done[0] < done[-1], "%s: does not go on: %s", words[0], done)
        whole = {float(all_) for _, _, all_ in seen}
        times = 4 if words[0] == "diff" else 1  # both sides, and again for the flame graph
        need(len(whole) == 1 and abs(max(whole) - times * LARGE_MIB) < times, "%s: of how much: %s", words[0], seen[-1])
        need(done[-1] <= max(whole), "%s: more than there is: %s", words[0], seen[-1])
        same(screen(result.err), [""], "what is left of it")


@test
def it_changes_four_times_a_second_at_most():
    step = 50000
    result = run(APROF, "report", large(), terminals=("err",), env=hasty(step))
    looks = LARGE_MIB / READ_MIB + 2
    seen = len(LINE.findall(result.err))
    need(1 <= seen <= looks * step / 250000, "%d lines in %d looks", seen, looks)
    first = mib(*LINE.findall(result.err)[0][:2])
    need(first >= (500000 / step - 2) * READ_MIB, "comes before half a second: at %g MiB", first)


@test
def nothing_of_it_where_it_is_not_wanted():
    folder = large()
    page = os.path.join(WORK, "flame.html")
    dumb = dict(hasty(1000000), TERM="dumb")
    for words in (("report", folder), ("diff", folder, folder), ("flame", "-o", page, folder)):
        same(run(APROF, *words, "--quiet", terminals=("err",), env=hasty(1000000)).err, "", "%s --quiet" % words[0])
        same(run(APROF, *words, env=hasty(1000000)).err, "", "%s, a pipe" % words[0])
        same(run(APROF, *words, terminals=("err",), env=dumb).err, "", "%s, TERM=dumb" % words[0])
        same(run(APROF, *words, terminals=("err",), columns=20, env=hasty(1000000)).err, "", "%s, too narrow a terminal" % words[0])
        need("read" not in run(APROF, *words, env=hasty(1000000)).out.split("\n")[0], "%s: on stdout", words[0])


@test
def a_short_reading_says_nothing():
    same(run(APROF, "report", SERVICE, terminals=("err",), env=hasty(1)).err, "", "stderr")


@test
def what_is_complained_of_stands_alone():
    folder = large()
    broken = spool_write(os.path.join(WORK, "broken"), "cpu", [("a", 1)], number=1)
    open(broken, "w").write("no count\n")
    shown = screen(run(APROF, "report", "--top", "1", folder, broken, terminals=("both",), env=hasty(1000000)).out)
    need("aprof: %s: has no line that is a stack and a count" % broken in shown, "%s", shown)
    need(not any("MiB" in line for line in shown), "%s", shown)
    at = next(at for at, line in enumerate(shown) if line.startswith("processes"))
    need(at >= 1, "the line comes before the report: %s", shown)


try:
    run_tests()
finally:
    shutil.rmtree(WORK)
