# SPDX-License-Identifier: MIT
"""excs: the metric exc, against a program that knows what it handled for how long."""
import collections

import harness as h
from harness import need
from truths import PERIOD

SECONDS = 0.2  # a phase
POINTS = 1.5
# As many ticks as the kernel has, in waits as in work: phases are short.
ON = {"APROF_METRICS": "cpu,wall,exc", "APROF_RATE": "250", "APROF_MIN_RATE": "250", "APROF_OVERHEAD": "0"}


def by_type(process):
    """Seconds of each type; every stack ends in one, and there is none within a stack."""
    found = collections.Counter()
    for frames, us in process.stacks("exc"):
        last = frames[-1].text
        need(last.startswith("[exception ") and last.endswith("]"), "a stack of exc ends in %s", last)
        need(not any(f.text.startswith("[exception ") for f in frames[:-1]), "an exception within a stack")
        found[last[len("[exception "):-1]] += us / 1e6
    return found


def exc(python, long):
    truth, spool, _ = h.run_oracle(python, "exc.py", 10 * SECONDS if long else SECONDS, settings=ON)
    process = spool.one()
    found, handled, lived, worst = by_type(process), truth["handled"], truth["lived"], 0
    for name, seconds in handled.items():
        off = 100 * abs(found[name] - seconds) / lived
        need(off <= POINTS, "%s: %.3f s, truth %.3f: %.2f points off", name, found[name], seconds, off)
        worst = max(worst, off)
    strange = {name: seconds for name, seconds in found.items() if name not in handled}
    need(sum(strange.values()) <= 0.005 * lived + PERIOD / 1e6, "never handled for long: %s", strange)
    total, truth_total = sum(found.values()), sum(handled.values())
    need(abs(total - truth_total) <= POINTS / 100 * lived, "%.3f s in all, truth %.3f, of %.3f", total, truth_total, lived)
    for metric in ("cpu", "wall"):
        need(not any(f.text.startswith("[exception ") for frames, _ in process.stacks(metric) for f in frames), "an exception in %s", metric)
    need(not any("exceptions" in meta["limits"] for meta in process.metas()), "some could not be read")
    return "%d types, worst %.2f points, all %.3f of %.3f" % (len(handled), worst, total, truth_total)


TESTS = [
    ("exc", exc, False),
]
