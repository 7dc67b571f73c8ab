#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""goals: what the profiler may cost, and what it does.

    tests/bench/goals.py [--pairs N] [--seconds S] [--python LABEL]... [--only WORD]

A row for each goal and Python: the goal, the median, its 95 % interval (with few values
their range), whether it is met, and the command that measures it alone. A goal that is
a bound for throughput is judged by the lower end of the interval, others by the median.
"nothing" pairs runs without the profiler: what the machine makes of equal programs.
Exits with 1 when one could not be measured; a goal that is missed is said, and no error.
"""
import argparse
import collections
import os
import statistics
import sys

sys.dont_write_bytecode = True

import births  # noqa: E402
import cost  # noqa: E402 - finds the harness
import tasks  # noqa: E402
import harness as h  # noqa: E402

PYTHONS = ("3.11.2", "3.13", "3.14", "3.15")
BIRTHS = os.path.join(births.ROOT, "build", "births_live.so")
WAITING = 5000
BOUND = 0.98
EXC = {"APROF_METRICS": "cpu,wall,task,exc"}
GIL = {"APROF_METRICS": "cpu,wall,task,gil"}
BLOCK = {"APROF_METRICS": "cpu,wall,task,block"}

# limit: for a Python. measure: (python, options) -> values. lower: the lower end counts, and is to be above. once: what no Python changes
Goal = collections.namedtuple("Goal", "what unit limit measure command lower once", defaults=(False, False))


def starts(words):
    return lambda python, options: cost.start_differences(words, 10 * options.pairs)[0]


def start_of_python(python, options):
    if python.prefix:
        raise h.Skip("what leads to it would be measured as well")
    return cost.start_differences(python.words + ["-c", "pass"], 2 * options.pairs)[0]


def own(kind, settings=None, times=1):
    """Of the sampler and the handlers, the start included."""
    def measure(python, options):
        return [sum(cost.own_shares(python, kind, times * options.seconds, settings)[:2]) for _ in range(3)]
    return measure


def rounds_a_second(kind):
    """Of ticks over tasks."""
    def measure(python, options):
        found = []
        for _ in range(3):
            process = cost.own_shares(python, kind, options.seconds)[2]
            took = sum(m["end_us"] - m["start_us"] for m in process.metas()) / 1e6
            found.append((process.counter("task_ticks", "read") + process.counter("task_ticks", "repeated")) / took)
        return found
    return measure


def missed(kind):
    """% of the ticks due."""
    def measure(python, options):
        process = cost.own_shares(python, kind, options.seconds)[2]
        return [100 * process.counter("ticks", "missed") / process.counter("ticks", "due")]
    return measure


def throughput(kind, other=True):
    return lambda python, options: cost.ratios(python, kind, options.pairs, other, 2)[1]


def of_a_task(settings):
    def measure(python, options):
        found = tasks.run(python, 10000, options.seconds, settings, 5, tasks.COLLECT)
        return [1e3 * w["task_ticks"]["cpu_us"] / w["task_ticks"]["tasks"] for w in found if w["task_ticks"]["tasks"]]
    return measure


def at_rest(beat):
    def measure(python, options):
        return tasks.rest_shares(python, WAITING, beat)
    return measure


def hook(kind, relative):
    def measure(python, options):
        more, without = births.ns_more(python.words, BIRTHS, kind, 7)
        return [100 * a / b for a, b in zip(more, without)] if relative else more
    return measure


def memory(python, options):
    """MiB of its own heap, of a small service."""
    return [max(m["heap_bytes"] for m in cost.own_shares(python, "asyncio", 2)[2].metas()) / 2**20]


def of_tasks(python):
    return 100 if python.version >= (3, 14) else 250


GOALS = [
    Goal("exec of a program that is not Python", "ms", 0.1, starts(["/bin/true"]), "cost.py --starts 300", once=True),
    Goal("start and end of Python", "ms", 2, start_of_python, "cost.py --starts 500 --python {0}"),
    Goal("memory of its own, small service", "MiB", 4, memory, "cost.py --python {0}"),
    Goal("CPU, busy program", "% of its CPU", 0.5, own("calls", times=4), "goals.py --only \"busy program\" --python {0}"),
    Goal("... its first seconds (busy program)", "% of its CPU", 0.5, own("calls"), "goals.py --only \"busy program\" --python {0}"),
    Goal("CPU, four threads that want the GIL", "% of its CPU", 1, own("threads"), "goals.py --only GIL --python {0}"),
    Goal("... with the metric gil (GIL)", "% of its CPU", 1, own("threads", GIL), "goals.py --only GIL --python {0}"),
    Goal("... with the threads' names (GIL)", "% of its CPU", 1, own("threads", {"APROF_THREAD_FRAMES": "1"}), "goals.py --only GIL --python {0}"),
    Goal("CPU, exceptions half of the time", "% of its CPU", 1, own("errors"), "goals.py --only exceptions --python {0}"),
    Goal("... with the metric exc (exceptions)", "% of its CPU", 1, own("errors", EXC), "goals.py --only exceptions --python {0}"),
    Goal("CPU, a loop that stands half of the time", "% of its CPU", 1, own("stands"), "goals.py --only stands --python {0}"),
    Goal("... with the metric block (stands)", "% of its CPU", 1, own("stands", BLOCK), "goals.py --only stands --python {0}"),
    Goal("CPU, tasks with names and a label", "% of its CPU", 1, own("labelled"), "goals.py --only label --python {0}"),
    Goal("... with the names (label)", "% of its CPU", 1, own("labelled", {"APROF_TASK_NAMES": "1"}), "goals.py --only label --python {0}"),
    Goal("... with the label", "% of its CPU", 1, own("labelled", {"APROF_LABEL": "route"}), "goals.py --only label --python {0}"),
    Goal("CPU, garbage collected half of the time", "% of its CPU", 1, own("garbage"), "goals.py --only garbage --python {0}"),
    Goal("CPU, busy beside 10,000 waiting tasks", "% of its CPU", 1, own("beside"), "goals.py --only beside --python {0}"),
    Goal("... task ticks a second (beside)", "", 10, rounds_a_second("beside"), "goals.py --only beside --python {0}", lower=True),
    Goal("... ticks missed (beside)", "%", 0.5, missed("beside"), "goals.py --only beside --python {0}"),
    Goal("CPU, 100,000 tasks a second and these", "% of its CPU", 1, own("waiting"), "goals.py --only these --python {0}"),
    Goal("... task ticks a second (these)", "", 10, rounds_a_second("waiting"), "goals.py --only these --python {0}", lower=True),
    Goal("... ticks missed (these)", "%", 0.5, missed("waiting"), "goals.py --only these --python {0}"),
    Goal("throughput by CPU, nothing", "", BOUND, throughput("waiting", False), "cost.py --python {0}", lower=True),
    Goal("throughput by CPU, busy program", "", BOUND, throughput("calls"), "cost.py --python {0}", lower=True),
    Goal("... beside 10,000 waiting tasks", "", BOUND, throughput("beside"), "goals.py --only beside --python {0}", lower=True),
    Goal("... 100,000 tasks a second and these", "", BOUND, throughput("waiting"), "goals.py --only these --python {0}", lower=True),
    Goal("a waiting task of 10,000, a tick", "ns", of_tasks, of_a_task({}), "tasks.py --tasks 10000 --python {0}"),
    Goal("... that is shown with its name", "ns", of_tasks, of_a_task({"APROF_TASK_NAMES": "1"}), "goals.py --only name --python {0}"),
    Goal("idle, 5,000 waiting tasks", "% of a core", 0.1, at_rest(0), "tasks.py --tasks 5000 --python {0}"),
    Goal("... with a 10 Hz heartbeat", "% of a core", 0.3, at_rest(100), "tasks.py --tasks 5000 --python {0}"),
    Goal("a task made", "ns", 100, hook("task", False), "births.py --python {0}"),
    Goal("a coroutine's death", "%", 1, hook("await", True), "births.py --python {0}"),
]


def row(*cells):
    print("%-38s %-14s %-18s %-28s %-7s %s" % cells, flush=True)


def show(goal, label, limit, values):
    middle, low, high = cost.median_error(values)
    met = low >= limit if goal.lower else middle <= limit
    row(goal.what, label, "%s %g %s" % (">=" if goal.lower else "<=", limit, goal.unit), "%.3g (%.3g to %.3g), %d values" % (middle, low, high, len(values)),
        "met" if met else "missed", "tests/bench/" + goal.command.format(label))


def attempt(goal, python, label, options):
    limit = goal.limit(python) if callable(goal.limit) else goal.limit
    try:
        show(goal, label, limit, goal.measure(python, options))
    except h.Skip as reason:
        row(goal.what, label, "%g %s" % (limit, goal.unit), "not run: %s" % reason, "", "")
    except (h.Failure, OSError, statistics.StatisticsError, ZeroDivisionError) as reason:
        row(goal.what, label, "%g %s" % (limit, goal.unit), "failed: %s" % str(reason)[:80], "", "")
        return 1
    return 0


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--pairs", type=int, default=30)
    parser.add_argument("--seconds", type=float, default=10)
    parser.add_argument("--python", metavar="LABEL", action="append")
    parser.add_argument("--only", default="", help="goals that hold this word")
    options = parser.parse_args()
    pythons = [p for label in options.python or PYTHONS for p in h.usable(h.pythons(label))[0]]
    failed = 0
    row("what", "python", "goal", "measured", "", "command")
    for goal in [g for g in GOALS if options.only in g.what]:
        for python in pythons[:1] if goal.once else pythons:
            failed += attempt(goal, python, "-" if goal.once else python.label, options)
        h.remove_work()
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
