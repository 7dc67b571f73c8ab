# SPDX-License-Identifier: MIT
"""What the tests of the reading programs share: programs on terminals, and a runner."""
import fcntl
import os
import pty
import re
import struct
import subprocess
import sys
import termios
import threading

REPO = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
GOLDEN = os.path.join(REPO, "tests", "golden")
HANGS = 120  # seconds; nothing here takes one
START_US = 1700000000000000

TESTS = []


def test(function):
    TESTS.append(function)
    return function


class Skip(Exception):
    pass


def need(good, message, *values):
    if not good:
        raise AssertionError(message % values if values else message)


def same(got, wanted, what):
    need(got == wanted, "%s: %r, wanted %r", what, got, wanted)


def run_tests():
    """Each test; the closing line."""
    passed = failed = skipped = 0
    for function in TESTS:
        name = function.__name__.replace("_", " ")
        try:
            function()
            passed += 1
        except Skip as why:
            skipped += 1
            print("not run: %s: %s" % (name, why))
        except (AssertionError, subprocess.TimeoutExpired, OSError) as problem:
            failed += 1
            print("FAILED %s: %s" % (name, problem))
    print("%d passed, %d failed%s" % (passed, failed, ", %d skipped" % skipped if skipped else ""))
    sys.exit(failed != 0)


class Result:
    def __init__(self, status, out, err):
        self.status, self.out, self.err = status, out, err


def environment(changes):
    whole = {name: value for name, value in os.environ.items()
             if name not in ("COLUMNS", "LINES", "NO_COLOR", "LD_PRELOAD") and not name.startswith("APROF_")}
    whole.update(changes or {})
    return whole


class Sink:
    """Where a stream goes: a terminal or a pipe, read to its end beside."""

    def __init__(self, is_terminal, columns):
        self.inner, self.outer = pty.openpty() if is_terminal else os.pipe()
        if is_terminal:
            fcntl.ioctl(self.outer, termios.TIOCSWINSZ, struct.pack("HHHH", 50, columns, 0, 0))
        self.bytes = b""
        self.thread = threading.Thread(target=self.read)

    def read(self):
        while True:
            try:
                got = os.read(self.inner, 65536)
            except OSError:  # EIO: the terminal's other end is closed
                got = b""
            if not got:
                return
            self.bytes += got

    def text(self):
        self.thread.join(HANGS)
        os.close(self.inner)
        return self.bytes.decode(errors="surrogateescape").replace("\r\n", "\n")


def run(*words, terminals=(), columns=100, env=None, cwd=None, out_to=None, **kept):
    """terminals: which of "out", "err" are one; "both": the same one, whose text is out.
    out_to: a file that stdout is, instead."""
    sinks = {name: Sink(name in terminals or "both" in terminals, columns) for name in ("out", "err")}
    started = subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=out_to or sinks["out"].outer,
                               stderr=sinks["out" if "both" in terminals else "err"].outer, env=environment(env), cwd=cwd, **kept)
    for sink in sinks.values():
        os.close(sink.outer)
        sink.thread.start()
    try:
        status = started.wait(HANGS)
    except subprocess.TimeoutExpired:
        started.kill()
        raise
    return Result(status, sinks["out"].text(), sinks["err"].text())


def screen(text):
    """What a terminal shows in the end: its lines, the last one without what follows a newline."""
    lines = [""]
    column = 0
    for piece in re.findall(r"\x1b\[[0-9;]*[A-Za-z]|[\s\S]", text):
        if piece == "\n":
            lines.append("")
            column = 0
        elif piece == "\r":
            column = 0
        elif piece == "\x1b[K":
            lines[-1] = lines[-1][:column]
        elif piece.startswith("\x1b[") and piece.endswith("m"):
            pass
        else:
            need(not piece.startswith("\x1b"), "an escape sequence that is not known here: %r", piece)
            lines[-1] = lines[-1][:column].ljust(column) + piece + lines[-1][column + 1:]
            column += 1
    return lines


def spool_write(folder, metric, lines, number=0, pid=100):
    """A sealed window without metadata."""
    os.makedirs(folder, exist_ok=True)
    path = os.path.join(folder, "aprof.h.%d.%d.%06d.%s.collapsed" % (pid, START_US, number, metric))
    with open(path, "wb") as file:
        file.write(b"".join(b"%s %d\n" % (stack.encode(errors="surrogateescape"), count) for stack, count in lines))
    return path
