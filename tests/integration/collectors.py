# SPDX-License-Identifier: MIT
"""collectors: the frame [gc], against a program that knows what its garbage collections took."""
import harness as h
from harness import need
from truths import PERIOD

SECONDS = 0.5  # a phase
TICK = 4000    # µs
ON = {"APROF_RATE": "250", "APROF_OVERHEAD": "0"}


def cpu_of(process, name, collecting):
    return h.total_where(list(process.stacks("cpu")), lambda frames: any(f.name == name for f in frames) and
                         (frames[-1].text == "[gc]") == collecting) / 1e6


def collections(python, long):
    truth, spool, _ = h.run_oracle(python, "collections_of_garbage.py", 10 * SECONDS if long else SECONDS, settings=ON)
    process, notes = spool.one(), []
    for metric in ("cpu", "wall", "task"):
        need(not any(f.text == "[gc]" for frames, _ in process.stacks(metric) for f in frames[:-1]), "[gc] within a stack of %s", metric)
    if python.version < (3, 13):
        need(not any(frames[-1].text == "[gc]" for frames, _ in process.stacks("wall")), "[gc] before 3.13")
        return "not shown"
    for name, seconds in truth["took"].items():
        found = cpu_of(process, name, True)
        whole = found + cpu_of(process, name, False)
        # a phase ends in two places; and within it as many ticks meet a collection as chance has it
        ends = h.sum_tolerance(1e6 * seconds, 0.03, period_us=PERIOD, threads_at_end=2) / 1e6
        by_chance = whole * h.share_tolerance(min(1, seconds / whole), 1e6 * whole / TICK)
        allowed = max(ends, by_chance)
        need(abs(found - seconds) <= allowed, "%s: collections took %.3f s, truth %.3f (± %.3f)", name, found, seconds, allowed)
        notes.append("%s %.3f of %.3f" % (name, found, seconds))
    need(cpu_of(process, "works", True) == 0, "[gc] while none ran")
    need(cpu_of(process, "works_meanwhile", True) == 0, "[gc] in a thread that collects nothing")
    for name in ("contended", "finalized"):
        found, seconds = cpu_of(process, name, True), truth[name]
        allowed = h.sum_tolerance(1e6 * seconds, 0.03, period_us=PERIOD, threads_at_end=2) / 1e6
        need(found <= seconds + allowed, "%s: collections took %.3f s, truth %.3f (± %.3f)", name, found, seconds, allowed)
        need(name == "finalized" or found >= 0.8 * seconds - allowed, "%s: collections took %.3f s, truth %.3f", name, found, seconds)
        notes.append("%s %.3f of %.3f" % (name, found, seconds))
    untold = sum(meta["limits"].get("collections", 0) for meta in process.metas())
    need((untold > 0) == (python.version < (3, 15)), "of %d samples it is not known whether the collection was theirs", untold)
    return "%s; not told: %d samples" % (", ".join(notes), untold)


TESTS = [
    ("collections", collections, False),
]
