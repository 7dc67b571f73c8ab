#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""crowds: spools of more processes than anybody looks at one by one. What a command
takes grows with their number, not with its square.

    tests/tool/crowds.py APROF
"""
import contextlib
import ctypes
import fcntl
import json
import os
import resource
import shutil
import struct
import sys
import tempfile

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

from harness import START_US, need, run, run_tests, same, spool_write, test  # noqa: E402

APROF = os.path.abspath(sys.argv[1])
WORK = tempfile.mkdtemp(prefix="aprof-crowds-")
TIMES = 4    # as many processes
GROWTH = 8   # of CPU at most, for so many times more: between 4, in step, and 16, squared


def user_cpu(command, path):
    """What a command takes to its end: the least of three tries."""
    seconds, to = [], os.path.join(WORK, "to")
    for _ in range(3):
        shutil.rmtree(to, ignore_errors=True)
        before = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime
        result = run(APROF, *command, *(["-o", to] if command[0] == "merge" else []), path)
        seconds.append(resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime - before)
        same((result.status, result.err), (0, ""), "aprof %s" % " ".join(command))
    return min(seconds)


def grows_in_step(command, few, many):
    least, most = user_cpu(command, few), user_cpu(command, many)
    need(most < GROWTH * least, "aprof %s: %.3f s of CPU, and %.3f s for %d times as many", command[0], least, most, TIMES)


# ---- loops ----------------------------------------------------------------------


def merged_write(name, processes):
    """As `aprof merge` leaves them: one window of all, each with four loops."""
    folder = os.path.join(WORK, name)
    os.makedirs(folder)
    stem = os.path.join(folder, "aprof.merged-1.0.%d.000000" % START_US)
    of = [{"pid": 100 + at, "loops": [{"thread": 1 + thread, "idle_us": 4 * at + thread, "busy_us": 1, "stood_us": 3 + thread, "stood_in": "step (a.py:%d)" % at,
                                        "step_least_us": 4 + at, "step_most_us": 5 + at, "step_in": "step (a.py:9)", "steps_unknown": 1,
                                        "counted_us": 2, "pending_us": 2 * at, "pending_peak": at, "ready_us": 1, "ready_peak": thread} for thread in range(4)]}
          for at in range(processes)]
    with open(stem + ".json", "w", encoding="utf-8") as file:
        json.dump({"schema": 1, "start_us": START_US, "end_us": START_US + 60000000, "merged": {"processes": of}}, file)
    with open(stem + ".cpu.collapsed", "w", encoding="utf-8") as file:
        file.write("main (app.py:1);work (app.py:2) 1000\n")
    return folder, [process["loops"] for process in of]


@test
def loops_of_many_processes():
    few, _ = merged_write("few", 5000)
    many, loops = merged_write("many", 5000 * TIMES)
    for command in (("report", "--quiet"), ("merge",)):
        grows_in_step(command, few, many)
    with open(os.path.join(WORK, "to", [name for name in os.listdir(os.path.join(WORK, "to")) if name.endswith(".json")][0]), encoding="utf-8") as file:
        same([process["loops"] for process in json.load(file)["merged"]["processes"]], loops, "each process's own loops, merged once more")


# ---- metadata -------------------------------------------------------------------


@test
def sealed_metadata_that_is_none_is_not_waited_for():
    folder = os.path.join(WORK, "none")
    for pid in range(1, 501):
        path = spool_write(folder, "cpu", [("main (app.py:1)", 1000)], pid=pid)
        with open(path.replace(".cpu.collapsed", ".json"), "w", encoding="utf-8") as file:
            file.write('{"schema": 1, ')
    before = resource.getrusage(resource.RUSAGE_CHILDREN).ru_nvcsw
    result = run(APROF, "report", folder)
    same(result.status, 0, "exit status")
    need("500 windows, 500 without metadata" in result.out, "%s", result.out)
    pauses = resource.getrusage(resource.RUSAGE_CHILDREN).ru_nvcsw - before
    need(pauses < 500, "it slept %d times", pauses)


# ---- processes that live --------------------------------------------------------


@contextlib.contextmanager
def living(name, processes, dead=0):
    """A spool directory to which so many write, and so many did that ended without notice."""
    folder = os.path.join(WORK, name)
    os.makedirs(folder)
    held = []
    for at in range(processes + dead):
        stem = os.path.join(folder, "aprof.h.%d.%d.000000" % (1 + at, START_US + at))
        with open(stem + ".cpu.collapsed.live", "w", encoding="utf-8") as file:
            file.write("main (app.py:1);work (app.py:2) 00001000\n")
        with open(stem + ".json.live", "w", encoding="utf-8") as file:
            json.dump({"schema": 1, "pid": 1 + at, "program": "app.py", "start_us": START_US, "end_us": START_US + 1000000}, file)
        if at >= processes:
            os.utime(stem + ".json.live", (1700000000, 1700000000))
            continue
        held.append(os.open(stem + ".json.live", os.O_RDONLY))
        fcntl.flock(held[-1], fcntl.LOCK_EX)
    yield folder
    for file in held:
        os.close(file)


@contextlib.contextmanager
def listings_of(folder, counted):
    """Adds to a list how often a directory is opened meanwhile."""
    libc = ctypes.CDLL(None, use_errno=True)
    watch = libc.inotify_init1(os.O_NONBLOCK)
    need(watch >= 0 and libc.inotify_add_watch(watch, folder.encode(), 0x20) >= 0, "inotify: %s", os.strerror(ctypes.get_errno()))  # IN_OPEN
    yield
    events = b""
    with contextlib.suppress(BlockingIOError):
        while True:
            events += os.read(watch, 65536)
    os.close(watch)
    at = opened = 0
    while at < len(events):
        _, mask, _, length = struct.unpack_from("iIII", events, at)
        need(not mask & 0x4000, "more happened than inotify has room for")
        opened += not length  # it itself, not a file in it
        at += 16 + length
    counted.append(opened)


@test
def processes_that_do_not_answer():
    """Each costs a word, not a listing of all."""
    listings = []
    with living("silent", 500) as folder, listings_of(folder, listings):
        result = run(APROF, "dump", "--timeout", "1", folder)
        left = [name for name in os.listdir(folder) if name.endswith(".ask")]
    same((result.status, result.out, left), (4, "", []), "exit status, output, what is left")
    same(result.err.splitlines(), ["aprof: process %d did not answer within 1 s: its sampler writes nothing either: no CPU for it, or a spool "
                                   "that does not answer" % (1 + at) for at in range(10)] + ["aprof: 490 more processes did not answer"], "stderr")
    need(listings[0] < 20, "it listed the directory %d times", listings[0])


@test
def more_processes_than_are_asked():
    with living("thousand", 1010, dead=300) as folder:
        result = run(APROF, "dump", "--timeout", "1", folder)
        same((result.status, result.out), (4, ""), "exit status")
        same(result.err.splitlines()[10:], ["aprof: 990 more processes did not answer", "aprof: %s: 10 more processes that live were not asked, "
             "only the 1000 oldest: name one by its PID (with --dir)" % folder], "what is said")
        result = run(APROF, "dump", "--timeout", "1", "--dir", folder, "1010")
        need("process 1010 did not answer" in result.err and result.status == 4, "the last one: %s", result.err)
        result = run(APROF, "dump", "--dir", folder, "1011")
        need("process 1011 has ended" in result.err and result.status == 3, "a dead one: %s", result.err)


resource.setrlimit(resource.RLIMIT_NOFILE, (min(16384, resource.getrlimit(resource.RLIMIT_NOFILE)[1]), resource.getrlimit(resource.RLIMIT_NOFILE)[1]))
try:
    run_tests()
finally:
    shutil.rmtree(WORK)
