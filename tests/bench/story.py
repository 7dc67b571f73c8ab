#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""story: what the two steps of the design take off a tick: reading memory without
system calls, and settling names once.

    tests/bench/story.py [--ticks N] [--seconds S] [--python LABEL] [--library build/story_live.so]

Of another profiler of this kind it was published that both together took 60 % off its
sampler's CPU. Ours: first the modules alone (story_live.c), a tick over threads that
stand still with known stacks, in a process of its own for each reader, ways taking
turns; medians and 95 % intervals. Then the whole library on the 60 threads of
load.py, where a thread that did not run is not read at all, a tick with
APROF_READER=syscall beside one with copy.
"""
import argparse
import ctypes
import os
import statistics
import sys
import threading

sys.dont_write_bytecode = True

THREADS, DEPTH = 20, 40
PUBLISHED = 60


# --- the child: prints ns a tick, names anew and interned ---

def wait_at_depth(depth, lock):
    """Each depth has functions of its own."""
    code = "\n".join("def f%d(lock): return f%d(lock)" % (n, n - 1) for n in range(1, depth)) + "\ndef f0(lock): lock.acquire(); lock.release()\n"
    names = {}
    exec(compile(code, "/usr/lib/python3/dist-packages/story/module_%s.py" % threading.get_native_id(), "exec"), names)
    names["f%d" % (depth - 1)](lock)


def child(library, by_syscall, ticks):
    lib = ctypes.CDLL(library)
    lib.live_open.restype = lib.story_start.restype = lib.story_tick.restype = ctypes.c_long
    lib.story_tick.argtypes = [ctypes.c_int, ctypes.POINTER(ctypes.c_ulong)]
    lock = threading.Lock()
    lock.acquire()
    threads = [threading.Thread(target=wait_at_depth, args=(DEPTH, lock)) for _ in range(THREADS)]
    for thread in threads:
        thread.start()
    if lib.story_start(by_syscall) or lib.live_open(hasattr(sys, "gettotalrefcount")):
        os._exit(3)
    out = (ctypes.c_ulong * 3)()
    found = {0: [], 1: []}
    for n in range(ticks + 5):
        for interned in ((0, 1), (1, 0))[n % 2]:
            ns = lib.story_tick(interned, out)
            if n >= 5:  # the first ones learn the names
                found[interned].append(ns)
    print(out[0], out[1], out[2])
    for interned in (0, 1):
        print(*found[interned], flush=True)
    os._exit(0)


# --- the parent ---

def modules(h, python, library, ticks):
    """{(by system call, interned): ns a tick}."""
    found = {}
    for by_syscall in (1, 0):
        # preloaded, since the heap in it has thread-local data of the kind that no library may bring later
        result = h.run([os.path.abspath(__file__), "--child", library, str(by_syscall), str(ticks)], "story", python=python, preload=False,
                       env={"LD_PRELOAD": library}, timeout=120)
        h.need(result.status == 0, "status %d: %s", result.status, h.tail(result.err))
        counts, anew, interned = [[int(n) for n in line.split()] for line in result.out.decode().splitlines()]
        h.need(counts[0] > THREADS and counts[1] >= THREADS * DEPTH and counts[2] == 0, "%d threads, %d frames, %d without a name", *counts)
        found[by_syscall, 0], found[by_syscall, 1] = anew, interned
    return found, counts


def show_modules(h, cost, python, library, ticks):
    found, counts = modules(h, python, library, ticks)
    whole = statistics.median(found[1, 0])
    print("story  %-14s a tick over %d threads, %d frames, the modules alone; published: %d %% off in all" % (python.label, *counts[:2], PUBLISHED))
    for way, name in (((1, 0), "system calls, names anew"), ((1, 1), "system calls, interned"), ((0, 0), "copy, names anew"), ((0, 1), "copy, interned")):
        middle, low, high = cost.median_error(found[way])
        print("story  %-14s   %-26s %9.1f us (%.1f to %.1f), %5.1f %% off" % (
            python.label, name, middle / 1e3, low / 1e3, high / 1e3, 100 * (1 - middle / whole)), flush=True)


def show_library(h, cost, python, seconds, runs):
    import peers
    import profilers
    import trial

    class Reader(profilers.Aprof):
        def __init__(self, reader):
            self.reader, self.ticks = reader, []

        def settings(self, where, folder):
            return dict(super().settings(where, folder), APROF_READER=self.reader)

        def output(self, folder, said, row):
            process = h.Spool(os.path.join(folder, "spool")).one()
            spans = sum(m["rate"]["got"] * (m["end_us"] - m["start_us"]) / 1e6 for m in process.metas())
            self.ticks.append(process.counter("sampler_cpu_us") / max(1, spans))
            return super().output(folder, said, row)

    row = next(r for r in peers.ROWS if r.name == "threads")
    readers = [Reader("syscall"), Reader("copy")]
    for n in range(runs):
        for reader in readers[::1 - 2 * (n % 2)]:
            trial.run(python, row, reader, seconds)
    slow, fast = (cost.median_error(reader.ticks) for reader in readers)
    print("story  %-14s   the whole library, %d threads: %.0f us (%.0f to %.0f) by system call, %.0f us (%.0f to %.0f) by copy a tick, %.0f %% off" % (
        python.label, row.count, *slow, *fast, 100 * (1 - fast[0] / slow[0])), flush=True)


def main():
    import cost
    import harness as h
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--ticks", type=int, default=500)
    parser.add_argument("--seconds", type=float, default=3)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--python", metavar="LABEL")
    parser.add_argument("--library", default=os.path.join(h.BUILD, "story_live.so"))
    options = parser.parse_args()
    failed = 0
    for python in h.usable(h.pythons(options.python))[0]:
        failed += cost.attempt(show_modules, h, cost, python, os.path.realpath(options.library), options.ticks)
        failed += cost.attempt(show_library, h, cost, python, options.seconds, options.runs)
    h.remove_work()
    return 1 if failed else 0


if __name__ == "__main__":
    if sys.argv[1:2] == ["--child"]:
        child(sys.argv[2], int(sys.argv[3]), int(sys.argv[4]))
    else:
        sys.exit(main())
