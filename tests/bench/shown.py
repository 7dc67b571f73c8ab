#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""shown: what a CPU tick takes more where tasks are shown with their names, with labels, or
where work of executors stands on who awaits it.

    tests/bench/shown.py [--runs N] [--seconds S] [--python LABEL]

A task two tasks deep computes, in a context of twenty variables; then a thread of an executor does,
for a task. Runs with a setting and without take turns; of each the median and the smallest
and largest, in nanoseconds of a handler's CPU a tick, at a thousand ticks a second.
"""
import argparse
import asyncio
import contextvars
import os
import statistics
import sys
import time

sys.dont_write_bytecode = True
HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(os.path.dirname(HERE), "integration"))

RATE = 1000
FORMS = (
    ("task", "plain", {}),
    ("task", "APROF_TASK_NAMES: three names", {"APROF_TASK_NAMES": "1"}),
    ("task", "APROF_LABEL: two of twenty variables", {"APROF_LABEL": "request_route,tenant"}),
    ("work", "plain", {}),
    ("work", "APROF_EXECUTOR=0", {"APROF_EXECUTOR": "0"}),
)

# --- the program that is measured ---

route, tenant = contextvars.ContextVar("request_route"), contextvars.ContextVar("tenant")
others = [contextvars.ContextVar("other_%d" % i) for i in range(18)]


def compute(end):
    while time.monotonic() < end:
        sum(range(500))


async def leaf(end):
    while time.monotonic() < end:
        compute(time.monotonic() + 0.05)
        await asyncio.sleep(0)


async def middle(end, kind):
    if kind == "work":
        await asyncio.to_thread(compute, end)
    else:
        await asyncio.create_task(leaf(end), name="leaf 17")


async def top(end, kind):
    route.set("/signup")
    tenant.set(7)
    await asyncio.create_task(middle(end, kind), name="middle 4")


def program(kind, seconds):
    for i, other in enumerate(others):
        other.set(i)
    asyncio.run(top(time.monotonic() + seconds, kind))


# --- measuring ---

def ns_a_tick(h, python, kind, settings, seconds):
    given = dict(settings, APROF_RATE=str(RATE), APROF_CLOCK="monotonic", APROF_OVERHEAD="0")
    result = h.run([os.path.abspath(__file__), "program", kind, "%g" % seconds], "shown", python=python, settings=given, timeout=seconds + 60)
    process = h.Spool(result.spool).one()
    return 1e3 * process.counter("handler_us") / (process.total("cpu") / 1e6 * RATE)


def main():
    import harness as h
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--runs", type=int, default=7)
    parser.add_argument("--seconds", type=float, default=2)
    parser.add_argument("--python", metavar="LABEL")
    options = parser.parse_args()
    for python in h.usable(h.pythons(options.python))[0]:
        found = [[] for _ in FORMS]
        for _ in range(options.runs):
            for values, (kind, _, settings) in zip(found, FORMS):
                values.append(ns_a_tick(h, python, kind, settings, options.seconds))
        for values, (kind, what, _) in zip(found, FORMS):
            print("tick   %-4s %-14s %-38s %5.0f ns (%.0f to %.0f), %d runs" % (
                kind, python.label, what, statistics.median(values), min(values), max(values), len(values)), flush=True)
    h.remove_work()
    return 0


if __name__ == "__main__":
    sys.exit(program(sys.argv[2], float(sys.argv[3])) if sys.argv[1:2] == ["program"] else main())
