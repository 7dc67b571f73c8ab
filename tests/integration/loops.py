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
        # the one that wakes them is ready itself just before, and may be read then, and they after it
        need(TASKS <= loop["ready_peak"] <= TASKS + 1, "%d ready at most, truth %d", loop["ready_peak"], TASKS)
        need(TASKS <= loop["pending_peak"] <= TASKS + 1, "%d pending at most, truth %d, and that which made them", loop["pending_peak"], TASKS)
        need(truth["stood"] - 3 * edge <= loop["stood_us"] / 1e6 <= truth["stood"], "it stood for %.3f s, truth %.3f", loop["stood_us"] / 1e6, truth["stood"])
        need(loop["stood_in"].split(";")[-1].startswith("stands ("), "it stood in %s", loop["stood_in"])
        if kind == "asyncio":
            near("idle", loop["idle_us"] / 1e6, truth["waited"] + truth["alone"], 0.05 * truth["waited"] + 3 * edge)
        return "ready %.3f of %.3f, stood %.3f of %.3f" % (loop["ready_us"] / 1e6 / TASKS, truth["ready"], loop["stood_us"] / 1e6, truth["stood"])
    return test


SEEN_IN = {"computes": ("computes", "second", "third", "burn"), "stands": ("stands",)}
SEEN_IN["does_both"] = SEEN_IN["computes"] + SEEN_IN["stands"] + ("does_both",)


def check_step(loop, truth, near_by):
    """Bounds that hold whatever the machine does, and are not far apart."""
    least, most = loop.get("step_least_us", 0) / 1e6, loop.get("step_most_us", 0) / 1e6
    said = "%s of %.4f s: at least %.4f, at most %.4f" % (truth["name"], truth["inner"], least, most)
    need(least <= truth["outer"], "%s, it took %.4f at most", said, truth["outer"])
    if truth["name"] not in SEEN_IN:
        return
    need(most >= truth["inner"], "%s", said)
    need(least >= truth["inner"] - near_by, "%s: too little", said)
    need(most <= truth["outer"] + near_by, "%s: too much, it took %.4f at most", said, truth["outer"])
    last = loop["step_in"].split(";")[-1]
    need(last.split(" (")[0] in SEEN_IN[truth["name"]], "%s, seen in %s", said, loop["step_in"])


def steps(python, long):
    """Of steps that compute, stand and do both: between what the metadata says at least and at most; short ones back to back are not one."""
    truth, spool, _ = h.run_oracle(python, "steps.py", settings=DENSE)
    loops = {loop["thread"]: loop for loop in spool.one().metas()[-1]["loops"]}
    near_by = (4 + spool.one().counter("ticks", "missed")) * PERIOD / 1e6  # between looks nothing is known
    wide, unknown = 0, 0
    for known in truth["loops"]:
        need(known["thread"] in loops, "no loop in thread %d: %s", known["thread"], list(loops))
        loop = loops[known["thread"]]
        check_step(loop, known, near_by)
        unknown += loop.get("steps_unknown", 0) if known["name"] != "own_clock" else 0
        if known["name"] in SEEN_IN:
            wide = max(wide, (loop["step_most_us"] - loop["step_least_us"]) / 1e3)
    looks = sum(known["inner"] for known in truth["loops"]) / PERIOD * 1e6
    need(unknown <= 0.1 * looks, "%d looks could not tell, of %d in the longest steps", unknown, looks)
    return "%d loops, bounds at most %.1f ms apart, %d looks that could not tell" % (len(truth["loops"]), wide, unknown)


TESTS = [
    ("loop-steps", steps, True),
    ("loop-health", health("asyncio"), True),
    ("loop-health-uvloop", health("uvloop"), True),
]
