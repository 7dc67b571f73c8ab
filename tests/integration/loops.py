# SPDX-License-Identifier: MIT
"""loops: what the metadata says of an event loop, against a program that knows it."""
import harness as h
from asyncs import runs_without
from harness import need
from truths import PERIOD

TASKS, SECONDS = 200, 0.4
DENSE = {"APROF_MIN_RATE": "100", "APROF_OVERHEAD": "0"}


def near(what, found, truth, allowed):
    need(abs(found - truth) <= allowed, "%s: %.3f, truth %.3f (± %.3f)", what, found, truth, allowed)


def health(kind):
    def test(python, long):
        if kind == "uvloop":
            runs_without(python, "loops.py", kind, 1, 0.01, why="no uvloop here")
        truth, spool, _ = h.run_oracle(python, "loops.py", kind, TASKS, SECONDS, settings=DENSE)
        loops = spool.one().metas()[-1]["loops"]
        need(len(loops) == 1, "%d loops: %s", len(loops), loops)
        loop, edge = loops[0], 2 * PERIOD / 1e6  # a change of state is seen a tick late, or has half of one that is long
        near("ready", loop["ready_us"] / 1e6 / TASKS, truth["ready"], 0.01 * truth["ready"] + 2 * edge)
        near("pending", loop["pending_us"] / 1e6 / TASKS, truth["waited"] + truth["ready"] + (truth["waited"] + truth["alone"]) / TASKS,
             0.01 * (truth["waited"] + truth["ready"]) + 2 * edge)
        need(loop["ready_peak"] == TASKS, "%d ready at most, truth %d", loop["ready_peak"], TASKS)
        need(TASKS <= loop["pending_peak"] <= TASKS + 1, "%d pending at most, truth %d, and that which made them", loop["pending_peak"], TASKS)
        need(truth["stood"] - 3 * edge <= loop["stood_us"] / 1e6 <= truth["stood"], "it stood for %.3f s, truth %.3f", loop["stood_us"] / 1e6, truth["stood"])
        need(loop["stood_in"].split(";")[-1].startswith("stands ("), "it stood in %s", loop["stood_in"])
        if kind == "asyncio":
            near("idle", loop["idle_us"] / 1e6, truth["waited"] + truth["alone"], 0.05 * truth["waited"] + 3 * edge)
        return "ready %.3f of %.3f, stood %.3f of %.3f" % (loop["ready_us"] / 1e6 / TASKS, truth["ready"], loop["stood_us"] / 1e6, truth["stood"])
    return test


TESTS = [
    ("loop-health", health("asyncio"), True),
    ("loop-health-uvloop", health("uvloop"), True),
]
