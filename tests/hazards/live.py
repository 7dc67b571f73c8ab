# SPDX-License-Identifier: MIT
"""live: memory of the interpreter that changes as fast as it can while it is read, by
signals at a high rate, by the CPU's ticks, and from outside: nothing breaks, the
program's results are right, and what is shown of it has its root.
"""
import os

import hazard
from hazard import Hazard, h

PROGRAM = os.path.join(hazard.HERE, "programs", "busy_memory.py")
KINDS = ("stacks", "raised", "code", "generators", "frames", "threads", "objects", "tasks", "async_generators", "uvloop", "interpreters", "greenlets", "gevent", "imports")
NEEDED = {"uvloop": "uvloop", "greenlets": "greenlet", "gevent": "gevent"}
INNER = ("fall", "forever", "leaf", "middle", "numbers", "use", "made", "consume")
WAYS = (("at a high rate", {"APROF_CLOCK": "monotonic", "APROF_RATE": "5000"}),
        ("by CPU ticks", {"APROF_RATE": "1000"}),
        ("from outside", {"APROF_SIGNALS": "0", "APROF_RATE": "1000"}),
        ("by system calls", {"APROF_READER": "syscall", "APROF_RATE": "500"}))


def changing(kind):
    def hazardous(case):
        if kind in NEEDED:
            hazard.need_modules(case.python, NEEDED[kind])
        seconds = 15 if case.long else 0.3
        for way, settings in WAYS if case.long else WAYS[:1]:
            result = case.program([PROGRAM, kind, str(seconds)], timeout=60 + 20 * seconds, settings=settings)
            if result and result.status == 0:
                case.check((result.out, result.err) == (b"%s done\n" % kind.encode(), b""), "%s: it says %r, %r", way, result.out, result.err)
                check_roots(case, way, h.Spool(result.spool).by_pid(result.pid))
    return hazardous


def check_roots(case, way, processes):
    """What the program's own functions call, and nothing else does, is never the root."""
    for process in processes:
        for frames, us in process.stacks("cpu"):
            case.check(not (frames[0].name in INNER and h.base(frames[0]) == "busy_memory.py"), "%s: a stack has lost its root: %s", way,
                       ";".join(f.text for f in frames)[:300])


def names(case):
    """Functions that come once and never again, by the thousand: their names do not pile up in our heap."""
    for python in (case.pythons[0], case.pythons[-1]):
        seconds = 60 if case.long else 10  # windows of a second each
        result = case.program([PROGRAM, "names", str(seconds)], timeout=60 + 20 * seconds, python=python,
                              settings={"APROF_WINDOW": "1", "APROF_CLOCK": "monotonic", "APROF_RATE": "2000"})
        if not result:
            continue
        heap = [m["heap_bytes"] for p in h.Spool(result.spool).by_pid(result.pid) for m in p.metas() if m["ended"] == "window"]
        if case.check(len(heap) >= 8, "%s: %d windows", python.label, len(heap)):
            case.check(min(heap[len(heap) // 2:]) <= 1.25 * max(heap[:3]) + (256 << 10), "%s: our heap at the windows' ends, KiB: %s", python.label,
                       [b >> 10 for b in heap])


def full(case):
    """Our heap is full of names: threads that come then are still watched, and windows sealed."""
    for python in (case.pythons[0], case.pythons[-1]):
        seconds = 60 if case.long else 8
        result = case.program([PROGRAM, "full", str(seconds)], timeout=60 + 20 * seconds, python=python,
                              settings={"APROF_MEMORY": "4", "APROF_RATE": "1000"})
        if not result:
            continue
        process = h.Spool(result.spool).by_pid(result.pid)[0]
        used = process.counter("process_cpu_us") - process.counter("sampler_cpu_us")
        shown = sum(us for _, us in process.stacks("cpu"))
        case.check(any(m["limits"].get("memory") for m in process.metas()), "%s: the heap was not full", python.label)
        case.check(all(m["heap_bytes"] <= 4 << 20 for m in process.metas()), "%s: more than was allowed", python.label)
        case.check(abs(shown - used) <= 0.01 * used, "%s: %.3f s of CPU shown, %.3f s used", python.label, shown / 1e6, used / 1e6)


HAZARDS = [Hazard("live.full", full, each=False)] + [Hazard("live." + kind, changing(kind)) for kind in KINDS] + [Hazard("live.names", names, each=False)]
