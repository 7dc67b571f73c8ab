# SPDX-License-Identifier: MIT
"""excs: the metric exc, against a program that knows what it handled for how long."""
import collections
import math

import harness as h
from harness import need
from truths import PERIOD

SECONDS = 0.2  # a phase
POINTS = 1.5
# As many ticks as the kernel has, in waits as in work: phases are short.
ON = {"APROF_METRICS": "cpu,wall,exc", "APROF_RATE": "250", "APROF_MIN_RATE": "250", "APROF_OVERHEAD": "0"}


def by_type(process, within=None):
    """Seconds of each type; every stack ends in one, and there is none within a stack. within: of stacks of this function."""
    found = collections.Counter()
    for frames, us in process.stacks("exc"):
        if within and not any(f.name == within for f in frames):
            continue
        last = frames[-1].text
        need(last.startswith("[exception ") and last.endswith("]"), "a stack of exc ends in %s", last)
        need(not any(f.text.startswith("[exception ") for f in frames[:-1]), "an exception within a stack")
        found[last[len("[exception "):-1]] += us / 1e6
    return found


def exc(python, long):
    truth, spool, _ = h.run_oracle(python, "exc.py", 10 * SECONDS if long else SECONDS, settings=ON)
    process = spool.one()
    found, handled, lived, worst = by_type(process), truth["handled"], truth["lived"], 0
    late = process.counter("ticks", "missed") / 250  # s: after a tick that was missed the next one books both periods
    for name, seconds in handled.items():
        off = 100 * abs(found[name] - seconds) / lived
        need(off <= POINTS + 100 * late / lived, "%s: %.3f s, truth %.3f: %.2f points off", name, found[name], seconds, off)
        worst = max(worst, off)
    strange = {name: seconds for name, seconds in found.items() if name not in handled}
    need(sum(strange.values()) <= 0.005 * lived + PERIOD / 1e6, "never handled for long: %s", strange)
    total, truth_total = sum(found.values()), sum(handled.values())
    need(abs(total - truth_total) <= POINTS / 100 * lived + late, "%.3f s in all, truth %.3f, of %.3f, %.3f of them late", total, truth_total, lived, late)
    for metric in ("cpu", "wall"):
        need(not any(f.text.startswith("[exception ") for frames, _ in process.stacks(metric) for f in frames), "an exception in %s", metric)
    need(not any("exceptions" in meta["limits"] for meta in process.metas()), "some could not be read")
    return "%d types, worst %.2f points, all %.3f of %.3f" % (len(handled), worst, total, truth_total)


def allowed_of(entry, tick):
    """When a stand began and ended between two ticks is not known: half a tick more or less, each time anew."""
    seconds, tasks, stands = entry
    return 0.01 * seconds + tick * tasks * (1 + h.STANDARD_ERRORS * math.sqrt(stands / 6))


def check_tasks(process, truth):
    found, handled, worst = by_type(process, "main"), truth["handled"], 0
    ticks = sum(meta["task_ticks"]["read"] + meta["task_ticks"]["repeated"] for meta in process.metas())
    tick = max(PERIOD / 1e6, sum(meta["end_us"] - meta["start_us"] for meta in process.metas()) / 1e6 / ticks)
    for name, entry in handled.items():
        off, allowed = abs(found[name] - entry[0]), allowed_of(entry, tick)
        need(off <= allowed, "%s: %.3f s, truth %.3f (\u00b1 %.3f)", name, found[name], entry[0], allowed)
        worst = max(worst, off / allowed)
    strange = {name: seconds for name, seconds in found.items() if name not in handled}
    need(sum(strange.values()) <= 2 * tick, "handled for no time, or in no wait: %s", strange)
    total, known = sum(found.values()), sum(entry[0] for entry in handled.values())
    need(abs(total - known) <= 0.01 * known + 3 * tick, "%.3f s in all, truth %.3f", total, known)
    for metric in ("cpu", "wall", "task"):
        need(not any(f.text.startswith("[exception ") for frames, _ in process.stacks(metric) for f in frames), "an exception in %s", metric)
    need(not any("exceptions" in meta["limits"] or "exception_types" in meta["limits"] for meta in process.metas()), "some could not be read")
    return "%d types, worst %.0f %% of what is allowed, all %.3f of %.3f" % (len(handled), 100 * worst, total, known)


def tasks(python, long):
    """Of tasks that wait in an except block, on the stacks that `task` has them on."""
    truth, spool, _ = h.run_oracle(python, "exc_tasks.py", 4 if long else 0.6, settings=dict(ON, APROF_METRICS="cpu,wall,task,exc"))
    process = spool.one()
    said = check_tasks(process, truth)
    leaves = collections.Counter()
    for frames, us in process.stacks("task"):
        leaves[tuple(f.text for f in frames)] += us
    for frames, us in process.stacks("exc"):
        stack = tuple(f.text for f in frames[:-1])
        if frames[-2].name == "sleep" and not any(f.name.endswith("._run_once") for f in frames):  # else its thread's, which ran
            need(leaves[stack] >= us - 1, "%d \u00b5s of %s in exc, %d in task", us, stack[-3:], leaves[stack])
    return said


def alone(python, long):
    """The same where no other metric is recorded."""
    truth, spool, _ = h.run_oracle(python, "exc_tasks.py", 4 if long else 0.6, settings=dict(ON, APROF_METRICS="exc"))
    process = spool.one()
    need(not any(process.total(metric) for metric in ("cpu", "wall", "task")), "more than was asked for")
    return check_tasks(process, truth)


TESTS = [
    ("exc", exc, h.HALF),
    ("exc-tasks", tasks, True),
    ("exc-tasks-alone", alone, True),
]
