#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""tasks: what it costs to read waiting asyncio tasks of four coroutines each.

    tests/bench/tasks.py [--tasks N,N...] [--seconds S] [--python LABEL]

Nanoseconds of CPU a task and tick, from the metadata of all windows but the first
ones, beside reading the same by system call: as APROF_READER=syscall does, a call
a read, and batched, 64 reads a call (measured here as calls; the words of a task
counted), and beside CPython 3.15's own profiler with --async-aware. Then the share
of a core that the sampler takes with these tasks: at rest, and with a beat of 10 Hz.
And what a task costs that awaits another one, in chains of 50, 100 and 200.

A virtual machine takes memory away that nobody touches, and it is dear to touch it
again: so once with the tasks in use (collected as garbage twenty times a second, as
a busy service does), once at rest.
"""
import argparse
import ctypes
import os
import re
import statistics
import sys
import time

sys.dont_write_bytecode = True
HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(os.path.dirname(HERE), "integration"))

import harness as h  # noqa: E402

PROGRAM = os.path.join(HERE, "waiting.py")
WARM_WINDOWS = 3
WARM_SECONDS = 3
BATCH = 64
COLLECT = 10  # beats between two collections
CHAINS = (50, 100, 200)
CHAINED = 5000  # tasks in all
REST_SLICES, REST_SLICE = 6, 10  # a minute of a service at rest, as everybody has it: with the end of a window, which is read anew
WORDS = 5 + 4 * 7 + 4  # of a task, of each of its coroutines, of the iterator and the future at the end


class Iovec(ctypes.Structure):
    _fields_ = [("base", ctypes.c_void_p), ("length", ctypes.c_size_t)]


def batched_word_ns():
    """One word of a batch of process_vm_readv on ourselves; the best of some rounds."""
    libc = ctypes.CDLL(None, use_errno=True)
    source, target = ctypes.create_string_buffer(1 << 22), ctypes.create_string_buffer(8 * BATCH)
    local, remote = (Iovec * BATCH)(), (Iovec * BATCH)()
    for i in range(BATCH):
        local[i] = Iovec(ctypes.addressof(target) + 8 * i, 8)
        remote[i] = Iovec(ctypes.addressof(source) + (i * 61 % BATCH) * (1 << 16), 8)
    pid, best = os.getpid(), float("inf")
    for _ in range(7):
        began = time.process_time_ns()
        for _ in range(2000):
            if libc.process_vm_readv(pid, local, BATCH, remote, BATCH, 0) != 8 * BATCH:
                raise h.Failure("process_vm_readv is refused here")
        best = min(best, (time.process_time_ns() - began) / (2000 * BATCH))
    return best


def windows(spool):
    """Of the process, in order, without the first ones."""
    one = h.Spool(spool).one()
    found = [one.windows[seq].meta for seq in sorted(one.windows) if "task_ticks" in one.windows[seq].meta]
    return found[WARM_WINDOWS:-1] or found[-2:]


def run(python, tasks, seconds, settings, beat=5, collect=0, window=1, chain=1):
    result = h.run([PROGRAM, str(tasks), "%g" % seconds, "%g" % beat, str(collect), str(chain)], "tasks", python=python, timeout=30 * seconds + 120,
                   settings=dict({"APROF_WINDOW": str(window)}, **settings))
    h.need(result.status == 0, "status %d: %s", result.status, h.tail(result.err))
    return windows(result.spool)


def cost_a_task(found):
    """Nanoseconds a task: median and range of the windows."""
    costs = [1e3 * w["task_ticks"]["cpu_us"] / w["task_ticks"]["tasks"] for w in found if w["task_ticks"]["tasks"]]
    h.need(costs, "no window with a tick over tasks")
    return statistics.median(costs), min(costs), max(costs)


def sampler_clock(pid):
    """Seconds that the process's thread of ours has used, by the kernel's clock."""
    for task in os.scandir("/proc/%d/task" % pid):  # of one thread and ours: none goes
        if h.read_bytes(os.path.join(task.path, "comm")) == b"aprof\n":
            return int(h.read_bytes(os.path.join(task.path, "schedstat")).split()[0]) / 1e9
    raise h.Failure("no thread of ours in %d" % pid)


def rest_shares(python, tasks, beat, slices=REST_SLICES, slice_seconds=REST_SLICE):
    """% of a core that the sampler takes in each slice, at default settings; beat: ms, 0 for none."""
    run = h.Run([PROGRAM, str(tasks), "%g" % (slices * slice_seconds + 3 * WARM_SECONDS), "%g" % beat], "rest", python=python)
    time.sleep(WARM_SECONDS)
    marks = []
    for _ in range(slices + 1):
        marks.append((time.monotonic(), sampler_clock(run.popen.pid)))
        time.sleep(slice_seconds if len(marks) <= slices else 0)
    result = run.finish(2 * slice_seconds + 30)
    h.need(result.status == 0, "status %d: %s", result.status, h.tail(result.err))
    return [100 * (b[1] - a[1]) / (b[0] - a[0]) for a, b in zip(marks, marks[1:])]


def tasks_in(path):
    """How often a waiting task is in these collapsed stacks."""
    with open(path, encoding="utf-8", errors="replace") as lines:
        return sum(int(line.rsplit(" ", 1)[1]) for line in lines if "waiting.py:leaf:" in line)


def tachyon(python, tasks, seconds):
    """(ns a task that it saw, which share of them that was, share of a core, samples a second).

    A sample that fails midway counts as one and holds no tasks, or some."""
    out = os.path.join(h.fresh_folder("tachyon"), "stacks")
    words = ["-m", "profiling.sampling", "run", "-r", "100", "--async-aware", "--async-mode", "all", "--collapsed", "-o", out,
             PROGRAM, str(tasks), "%g" % seconds]
    began = time.monotonic()
    result = h.run(words, "tachyon", python=python, preload=False, timeout=30 * seconds + 120)
    wall = time.monotonic() - began
    h.need(result.status == 0, "status %d: %s", result.status, h.tail(result.err))
    said = (result.out + result.err).decode("utf-8", "replace")
    captured = re.search(r"Captured ([0-9,]+) samples", said)
    h.need(captured, "it does not say how many samples: %s", said[-200:])
    samples, seen = int(captured[1].replace(",", "")), tasks_in(out)
    h.need(seen, "none of its %d samples holds a task", samples)
    own = float(re.search(r"^[0-9.]+$", result.out.decode(), re.M)[0])
    cpu = result.rusage.ru_utime + result.rusage.ru_stime - own
    return 1e9 * cpu / seen, 100.0 * seen / (samples * tasks), 100 * cpu / wall, samples / wall


def row(*cells):
    print("%-14s %8s  %-24s %10s %s" % cells, flush=True)


def attempt(function, *args):
    try:
        return function(*args)
    except (h.Failure, h.Skip) as reason:
        return str(reason)[:100]


def show_reading(python, tasks, seconds, word_ns):
    rows = (("libaprof, memory in use", {}, COLLECT), ("the same, with exc", {"APROF_METRICS": "cpu,wall,task,exc"}, COLLECT),
            ("the same, at rest", {}, 0), ("libaprof, syscall", {"APROF_READER": "syscall"}, 0))
    for name, settings, collect in rows:
        found = attempt(lambda s=settings, c=collect: cost_a_task(run(python, tasks, seconds, s, 5, c)))
        if isinstance(found, str):
            row(python.label, tasks, name, "failed", found)
        else:
            row(python.label, tasks, name, "%.0f ns" % found[0], "(%.0f to %.0f) a task" % found[1:])
    row(python.label, tasks, "syscalls, %d reads each" % BATCH, "%.0f ns" % (word_ns * WORDS), "a task (%.0f ns a word, %d words)" % (word_ns, WORDS))


def show_chains(python, seconds):
    for length in CHAINS:
        found = attempt(lambda n=length: cost_a_task(run(python, CHAINED, seconds, {}, 5, COLLECT, chain=n)))
        row(python.label, CHAINED, "in chains of %d" % length, *(("failed", found) if isinstance(found, str) else
                                                                 ("%.0f ns" % found[0], "(%.0f to %.0f) a task" % found[1:])))


def show_rest(python, tasks, seconds):
    for name, beat in (("share of a core, at rest", 0), ("the same, 10 Hz beat", 100)):
        found = attempt(lambda: statistics.median(rest_shares(python, tasks, beat)))
        row(python.label, tasks, name, found if isinstance(found, str) else "%.2f %%" % found, "")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--tasks", default="100,1000,10000,50000")
    parser.add_argument("--seconds", type=float, default=12)
    parser.add_argument("--python", metavar="LABEL")
    options = parser.parse_args()
    pythons, _ = h.usable(h.pythons(options.python))
    word_ns = batched_word_ns()
    row("python", "tasks", "reader", "median", "")
    for python in pythons:
        for tasks in map(int, options.tasks.split(",")):
            show_reading(python, tasks, options.seconds, word_ns)
        show_chains(python, options.seconds)
        show_rest(python, 5000, options.seconds)
    peers = [p for p in pythons if p.version >= (3, 15) and p.ask("import profiling.sampling; print(1)") == "1"]
    for python in peers[:1]:
        for tasks in map(int, options.tasks.split(",")):
            found = attempt(tachyon, python, tasks, options.seconds)
            row(python.label, tasks, "Tachyon, async all", found if isinstance(found, str) else "%.0f ns" % found[0],
                "" if isinstance(found, str) else "a task that it saw, %.0f %% of them; %.0f %% of a core, %.1f samples a second" % found[1:])
    if not peers:
        row("3.15", "", "Tachyon", "absent", "")
    h.remove_work()
    return 0


if __name__ == "__main__":
    sys.exit(main())
