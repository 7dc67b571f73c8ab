#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""What tests/hazards/signals.c does, with Python around it: signals_c.py LIBRARY WHAT [argument...].

Faults of the profiler's own are provoked by a thread whose frame pointer points
to no frame; no cyclic collection meanwhile, for it looks at frames as well.
"""
import ctypes
import faulthandler
import gc
import os
import sys
import threading
import time

lib = ctypes.CDLL(sys.argv[1])
lib.change_for.argtypes = [ctypes.c_double, ctypes.c_int]
lib.chain_raw.argtypes = [ctypes.c_double]
FRAME_POINTER = {(3, 11): (56, 8), (3, 12): (56, 0)}.get(sys.version_info[:2], (-1, 72))


class Junk:
    """The profiler's reads of one thread fault, every one of them."""

    def __enter__(self):
        gc.disable()
        lib.junk_begin(*FRAME_POINTER)

    def __exit__(self, *_):
        lib.junk_end()
        gc.enable()


def busy(seconds):
    end = time.process_time() + seconds
    while time.process_time() < end:
        sum(range(500))


def beside(function):
    """The function, with a Python thread that computes beside it."""
    stop = threading.Event()

    def work():
        while not stop.is_set():
            busy(0.002)
    thread = threading.Thread(target=work)
    thread.start()
    try:
        return function()
    finally:
        stop.set()
        thread.join()


def matrix():
    """Every action, by every way: what the application sees of it, into a file."""
    with Junk():
        beside(lambda: lib.signals_matrix(os.fsencode(sys.argv[3]), 0))


def matrix_raw():
    beside(lambda: lib.signals_matrix(os.fsencode(sys.argv[3]), 1))


def change():
    with Junk():
        print("wrong", beside(lambda: lib.change_for(float(sys.argv[3]), 0)))


def change_raw():
    print("wrong", beside(lambda: lib.change_for(float(sys.argv[3]), 1)))


def chain():
    with Junk():
        faults = beside(lambda: lib.chain_raw(float(sys.argv[3])))
    print("faults", faults > 0, "passed on", lib.chained_faults(), file=sys.stderr)


def take():
    """A handler that ends the process for whatever comes, set by libc's function or by the system call."""
    raw = sys.argv[3] == "raw"
    busy(0.1)
    if raw:  # the profiler asks the kernel once a tick
        lib.take_for_good(1)
        busy(0.3)
        with Junk():
            busy(0.3)
    else:
        with Junk():
            busy(0.1)
            lib.take_for_good(0)
            busy(0.3)
    print("done")


def naive():
    """Waiting calls that take EINTR for a failure, in threads that compute in between, and beside some that only compute."""
    kinds = lib.waits_begin(os.fsencode(os.path.join(os.environ.get("TMPDIR", "/tmp"), "aprof-naive-%d" % os.getpid())))
    end, calls, wrong = time.monotonic() + float(sys.argv[3]), [0], []

    def work(which):
        for i in range(1000000):
            if time.monotonic() > end:
                return
            kind = (which + i) % kinds
            if lib.waits_run(kind, 2):
                wrong.append(kind)
            calls[0] += 2
            busy(0.001)
    threads = [threading.Thread(target=work, args=(4 * n,)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    lib.waits_end()
    os.unlink("%s/aprof-naive-%d" % (os.environ.get("TMPDIR", "/tmp"), os.getpid()))
    print("kinds", kinds, "interrupted", sorted(set(wrong)))
    print(calls[0], file=sys.stderr)


def crash():
    if "faulthandler" in sys.argv[4:]:
        faulthandler.enable()
    busy(0.1)
    lib.crash(int(sys.argv[3]))


if __name__ == "__main__":
    globals()[sys.argv[2]]()
