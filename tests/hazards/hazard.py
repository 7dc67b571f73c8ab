# SPDX-License-Identifier: MIT
"""hazard: what could hurt the application, tried, and counted.

A module of this folder exports HAZARDS, rows of Hazard. Each row's function is
called with a Case, once for each Python found (each=True) or once in all. It
runs programs by Case.program, which judges how they ended, and adds what it
tries without them to Case.tries. Whatever goes wrong is counted, not raised, so
that one row tells how often; a promise that has no column of its own goes to
Case.broken. A row passes when all its counts are zero and something was tried.

What cannot be tried here raises harness.Skip with the reason: it is shown as
not run, never as passed.
"""
import collections
import os
import re
import select
import shutil
import sys
import threading
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "integration"))
import harness as h  # noqa: E402

HERE = os.path.dirname(os.path.abspath(__file__))
CRASHES = {128 + n: name for n, name in ((4, "SIGILL"), (6, "SIGABRT"), (7, "SIGBUS"), (8, "SIGFPE"), (11, "SIGSEGV"))}

# name: dotted, MODULE.what. each: on every Python; False: once; a tuple: in the short
# form only those whose label begins with one of these. beside: may run beside
# other rows, since no figure of it depends on who else runs. longer: only with --long.
Hazard = collections.namedtuple("Hazard", "name function each beside longer", defaults=(True, True, False))


def need_programs(*names):
    """Skips when a program is not installed."""
    missing = [name for name in names if not shutil.which(name)]
    if missing:
        raise h.Skip("not installed: " + ", ".join(missing))


def readable(pipe, seconds):
    """Whether something comes, or it ends, within so many seconds."""
    return bool(select.select([pipe], [], [], max(seconds, 0))[0])


def need_root():
    if os.geteuid() != 0:
        raise h.Skip("needs root")


def need_library(name):
    """The path of a shared library of tests/hazards/NAME.c, made by make."""
    path = os.path.join(h.BUILD, "hazards", name + ".so")
    if not os.path.exists(path):
        raise h.Failure("%s is not built: make hazard-libraries" % path)
    return path


def need_modules(python, *names):
    """Skips when this Python cannot import them."""
    missing = [name for name in names if python.ask("import " + name) is None]
    if missing:
        raise h.Skip("cannot import " + ", ".join(missing))


class Case:
    """One hazard on one Python (None for rows that run once; all of them in pythons)."""

    COUNTS = ("crashes", "hangs", "wrong_exits", "lost")

    def __init__(self, name, python, pythons, longer):
        self.name, self.python, self.pythons, self.long = name, python, pythons, longer
        self.tries = self.crashes = self.hangs = self.wrong_exits = self.lost = 0
        self.said = []  # what went wrong, in words
        self.others = 0  # promises without a column that were broken
        self.failed = False  # as judged
        self.note = ""  # figures, for a row that passes
        self.note = ""  # figures, for a row that passes
        self._lock = threading.Lock()

    def add(self, what, text, *args):
        """One more of a column ("crashes", "lost", ...), with its story."""
        with self._lock:
            setattr(self, what, getattr(self, what) + 1)
            self.said.append(text % args if args else text)

    def broken(self, text, *args):
        self.add("others", text, *args)

    def check(self, truth, text, *args):
        if not truth:
            self.broken(text, *args)
        return truth

    def tried(self, count=1):
        with self._lock:
            self.tries += count

    def judge(self, status, expect, what, err=b""):
        """An exit status of a program that should have ended with another."""
        if status == expect:
            return True
        if status in CRASHES:
            self.add("crashes", "%s: %s, not %s: %s", what, CRASHES[status], expect, h.tail(err))
        else:
            self.add("wrong_exits", "%s: status %d, not %s: %s", what, status, expect, h.tail(err))
        return False

    def program(self, words, expect=0, timeout=60, twin=False, spooled=True, tries=1, **options):
        """Runs a program under the profiler and judges its end; the Result, or None when it hung.

        expect   the exit status that is right; None: that of the same program without us
        twin     also its output is that of the same program without us, numbers aside
        spooled  it is a Python that lives long enough: it must be in the spool
        tries    how often the program itself tries the hazard
        options  of harness.Run; python=None for programs that are not Python's
        """
        options.setdefault("python", self.python)
        self.tried(tries)
        try:
            result = h.run(words, self.name, timeout=timeout, **options)
        except h.Failure as reason:
            self.add("hangs", str(reason))
            return None
        if expect is None or twin:
            other = self.without(words, timeout, options)
            if other is None:
                return result
            expect = other.status if expect is None else expect
            if twin:
                self.compare(result, other)
        self.judge(result.status, expect, os.path.basename(words[0]), result.err)
        if spooled:
            self.account(h.Spool(result.spool), [result.pid])
        return result

    def without(self, words, timeout, options):
        """The same program without us; None, and a broken promise of the test, when that hangs."""
        try:
            return h.run(words, self.name + "-without", timeout=timeout, preload=False,
                         **{k: v for k, v in options.items() if k not in ("settings", "wrapper", "folder")})
        except h.Failure as reason:
            self.broken("without us: %s", reason)
            return None

    def compare(self, result, other):
        """Output and errors are those of a run without us."""
        for name in ("out", "err"):
            ours, theirs = without_numbers(getattr(result, name)), without_numbers(getattr(other, name))
            self.check(ours == theirs, "std%s is another: %r, without us %r", name, ours[-300:], theirs[-300:])

    def account(self, spool, pids):
        """Every one of these processes is in the spool, once."""
        for pid in pids:
            found = len(spool.by_pid(pid))
            if found != 1:
                self.add("lost", "process %d is in the spool %d times", pid, found)

    def verdict(self):
        if not self.tries:
            return "FAIL", "nothing was tried"
        if self.others or any(getattr(self, count) for count in self.COUNTS):
            return "FAIL", " | ".join(self.said[:6]) + (" | and %d more" % (len(self.said) - 6) if len(self.said) > 6 else "")
        return "pass", self.note


def without_numbers(text):
    """Output without what differs from run to run: pids, addresses, times."""
    return re.sub(rb"pid=\d+|0x[0-9a-f]+|\b\d+\.\d+s?\b|\b\d{3,}\b", b"#", text)


class Table:
    """Rows of hazard, tries, crashes, hangs, wrong exits, lost processes, other; one a hazard."""

    HEAD = "%-30s %9s %8s %6s %11s %5s %6s  %s"

    def __init__(self, everywhere=()):
        """everywhere: the labels of all Pythons, to say so in a word."""
        self.everywhere = sorted(everywhere)
        self.rows = collections.OrderedDict()  # name: [tries, crashes, hangs, wrong exits, lost, others, labels]
        self.not_run = collections.OrderedDict()  # (name, reason): labels
        self.verdicts = collections.Counter()
        self.second_tries = 0
        self.failures = []
        self.lock = threading.Lock()

    def add(self, name, label, numbers, verdict, note, seconds=None):
        """numbers: tries, crashes, hangs, wrong exits, lost, others."""
        with self.lock:
            self.verdicts[verdict] += 1
            if verdict == "skip":
                self.not_run.setdefault((name, note), []).append(label)
            else:
                row = self.rows.setdefault(name, [0] * 6 + [[]])
                row[:6] = [a + b for a, b in zip(row, numbers)]
                row[6].append(label)
            if verdict == "FAIL":
                self.failures.append("%s on %s: %s" % (name, label, note))
            print("%-5s %-30s %-14s %s  %s" % (verdict, name, label, "%6.1fs" % seconds if seconds is not None else "", note), flush=True)

    def take_back(self, name, label, case):
        """A row that is tried again: what it counted goes with it."""
        numbers = (case.tries, case.crashes, case.hangs, case.wrong_exits, case.lost, case.others)
        with self.lock:
            row = self.rows[name]
            row[:6] = [a - b for a, b in zip(row, numbers)]
            row[6].remove(label)
            self.verdicts["FAIL"] -= 1
            self.failures = [text for text in self.failures if not text.startswith("%s on %s: " % (name, label))]
            self.second_tries += 1

    def attempt(self, hazard, label, case):
        began = time.monotonic()
        try:
            hazard.function(case)
            verdict, note = case.verdict()
        except h.Skip as reason:
            verdict, note = "skip", str(reason)
        except h.Failure as reason:
            case.broken(str(reason))
            verdict, note = case.verdict()[0], " | ".join(case.said)
        except Exception as error:  # a checker that breaks is a failure, never a pass
            where = sys.exc_info()[2].tb_next
            verdict, note = "FAIL", "%s: %s at line %d; %s" % (type(error).__name__, error, where.tb_lineno if where else 0, " | ".join(case.said))
        case.failed = verdict == "FAIL"
        self.add(hazard.name, label, (case.tries, case.crashes, case.hangs, case.wrong_exits, case.lost, case.others), verdict, note,
                 time.monotonic() - began)

    def print(self):
        print()
        print(self.HEAD % ("hazard", "tries", "crashes", "hangs", "wrong exits", "lost", "other", "on"))
        for name, row in self.rows.items():
            print(self.HEAD % (name, "{:,}".format(row[0]), row[1], row[2], row[3], row[4], row[5], self.on(row[6])))
        for (name, reason), labels in self.not_run.items():
            print("not run: %s on %s: %s" % (name, self.on(labels), reason))
        for text in self.failures:
            print("failed: " + text)
        if self.second_tries:
            print("%d tried again" % self.second_tries)

    def on(self, labels):
        labels = sorted(set(labels))
        return "all %d Pythons" % len(labels) if labels == self.everywhere and len(labels) > 1 else ", ".join(labels)

    def closing_line(self):
        return "%d passed, %d failed, %d skipped" % (self.verdicts["pass"], self.verdicts["FAIL"], self.verdicts["skip"])
