# SPDX-License-Identifier: MIT
"""endings: burns, keeps a running account in a file that outlives it, then ends in one of many ways.

    endings.py WAY SECONDS

The account, $ORACLE_TRUTH.live, holds two doubles: CPU time of the main thread
since the first line, and the same at the first line. It is a mapping, so that it
is true up to the moment of a kill.
"""
import faulthandler
import mmap
import os
import signal
import struct
import sys
import time

FIRST = time.thread_time()


def account():
    fd = os.open(os.environ["ORACLE_TRUTH"] + ".live", os.O_RDWR | os.O_CREAT, 0o600)
    os.ftruncate(fd, 4096)
    view = mmap.mmap(fd, 4096)
    os.close(fd)
    return view


def burn_and_note(view, seconds, cpu=time.thread_time, pack=struct.pack_into):
    """Half of the time in each of two functions, so that there are stacks to know."""
    end = cpu() + seconds
    while cpu() < end:
        one()
        other()
        pack("dd", view, 0, cpu() - FIRST, FIRST)


def one():
    for _ in range(500):
        pass


def other():
    for _ in range(500):
        pass


def segfault():
    import ctypes
    ctypes.string_at(0)


def again(view, seconds):
    """Becomes itself, twice."""
    if os.environ.get("ORACLE_ROUND") == "2":
        return
    os.environ["ORACLE_ROUND"] = str(int(os.environ.get("ORACLE_ROUND", "0")) + 1)
    os.environ["ORACLE_TRUTH"] += "+"
    os.execv(sys.executable, [sys.executable, os.path.abspath(__file__), "exec", str(seconds)])


def toggle_faulthandler(seconds):
    for _ in range(20):
        faulthandler.enable()
        faulthandler.disable()
    view = account()
    faulthandler.enable()
    burn_and_note(view, seconds)
    faulthandler.disable()
    burn_and_note(view, seconds)
    faulthandler.enable()


def main():
    way, seconds = sys.argv[1], float(sys.argv[2])
    view = account()
    burn_and_note(view, seconds)
    if way == "status":
        sys.exit(7)
    elif way == "zero":
        exit(0)
    elif way == "uncaught":
        raise ValueError("on purpose")
    elif way == "_exit":
        os._exit(3)
    elif way == "segfault":
        segfault()
    elif way == "segfault-later":
        faulthandler.enable()
        segfault()
    elif way == "segfault-toggled":
        toggle_faulthandler(seconds)
        segfault()
    elif way == "toggled":
        toggle_faulthandler(seconds)
    elif way == "own-handler":
        signal.signal(signal.SIGSEGV, lambda number, frame: os.write(1, b"mine\n"))
        burn_and_note(view, seconds)
        os.kill(os.getpid(), signal.SIGSEGV)
        burn_and_note(view, seconds)
        signal.signal(signal.SIGSEGV, signal.SIG_DFL)
    elif way == "urgent":
        signal.signal(signal.SIGURG, lambda number, frame: os.write(1, b"urgent\n"))
        os.kill(os.getpid(), signal.SIGURG)
        burn_and_note(view, seconds)
    elif way == "term":
        os.kill(os.getpid(), signal.SIGTERM)
    elif way == "abort":
        os.abort()
    elif way == "exec":
        again(view, seconds)
    elif way == "for-ever":
        burn_and_note(view, 1e9)


main()
