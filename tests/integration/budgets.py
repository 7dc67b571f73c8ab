# SPDX-License-Identifier: MIT
"""budgets: what sampling may cost is what it costs, and what it shows stays true meanwhile."""
import asyncs
import harness as h
import stacked as s
from harness import need

CREDIT = 0.03      # seconds of CPU that a process may use beyond its budget in all: at its start, and until a review sees that load is gone
LEAST = 0.001      # of a core, for the least rate
LEAST_TASK = 1e-6  # of a core, for each task of a round a second
SLACK = 1.15       # reviews come twice a second
CEILING = 0.05     # of a core


def own_cpu(process):
    return process.counter("sampler_cpu_us") / 1e6, process.counter("handler_us") / 1e6


def need_budget(truth, process, percent, seconds, tasks=0):
    """By the program's own account, and by the kernel's of our thread."""
    sampler, handlers = own_cpu(process)
    used = max(sampler, truth["profiler"]) + handlers
    allowed = min(percent / 100 * (truth["process"] - used), CEILING * seconds)
    need(used <= SLACK * max(allowed, (LEAST + LEAST_TASK * tasks) * seconds) + CREDIT, "%.0f ms of CPU used, %.0f allowed", 1e3 * used, 1e3 * allowed)
    need(abs(sampler - truth["profiler"]) <= 0.1 * sampler + 0.01, "our thread used %.0f ms, the metadata says %.0f",
         1e3 * truth["profiler"], 1e3 * sampler)
    return used, allowed


def need_shares(truth, process):
    lines = list(process.stacks("cpu"))
    ticks = 1e6 * sum(truth["used"].values()) / 10000
    worst = 0
    for name, seconds in truth["used"].items():
        share = seconds / sum(truth["used"].values())
        got = h.total_where(lines, lambda f, n=name: any(x.name == n for x in f)) / 1e6 / sum(truth["used"].values())
        allowed = h.share_tolerance(share, ticks, among=len(truth["used"]))
        need(abs(got - share) <= allowed, "%s has %.2f %% of the CPU, %.2f true (%.2f points allowed)", name, 100 * got, 100 * share, 100 * allowed)
        worst = max(worst, abs(got - share))
    return worst


def load(settings, percent):
    """Load that changes tenfold: the budget holds, and shares are right."""
    def test(python, long):
        seconds, turns = (5, 12) if long else (1.5, 4)
        truth, spool, _ = h.run_oracle(python, "load.py", seconds, turns, settings=settings, timeout=seconds * turns + 30)
        process = spool.one()
        used, allowed = need_budget(truth, process, percent, seconds * turns)
        worst = need_shares(truth, process)
        budget = process.metas()[-1]["budget"]
        return "%.0f ms used of %.0f; %.0f/s got, slowed %d times; shares within %.2f points" % (
            1e3 * used, 1e3 * allowed, process.metas()[-1]["rate"]["got"], budget["slowed"], 100 * worst)
    return test


def must_slow(test):
    """At a rate that the budget does not bear: it goes down, by what the metadata says."""
    def slowed(python, long):
        said = test(python, long)
        need(", slowed 0 times" not in said, "never slowed: %s", said)
        return said
    return slowed


def unbounded(python, long):
    """APROF_OVERHEAD=0: the rate asked for, whatever it costs."""
    _, spool, _ = h.run_oracle(python, "load.py", 1.5, 1, settings={"APROF_RATE": "1000", "APROF_OVERHEAD": "0"})
    budget = spool.one().metas()[-1]["budget"]
    need(budget["rate"] == 1000 and not budget["slowed"] and not budget["allowed_us"], "%s", budget)
    return "%.0f/s in force" % budget["rate"]


def tower(python, long):
    """A stack of hundreds of frames: CPU ticks keep to their half of the budget, and lose no CPU time by it."""
    seconds = 20 if long else 5
    truth, spool, _ = h.run_oracle(python, "deep.py", seconds, 480, settings={"APROF_RATE": "1000", "APROF_OVERHEAD": "1"})
    process = spool.one()
    _, handlers = own_cpu(process)
    need(handlers <= 0.005 * SLACK * truth["cpu"] + CREDIT / 2, "handlers used %.1f ms of %.0f", 1e3 * handlers, 1e3 * truth["cpu"])
    total = process.total("cpu") / 1e6
    need(0.98 * truth["cpu"] <= total, "%.3f s of CPU in the spool of %.3f", total, truth["cpu"])
    return "handlers %.2f %% of the CPU" % (100 * handlers / truth["cpu"])


def tasks(count, long_count):
    """So many waiting tasks beside one that computes: their rounds keep to the budget too, and their sum to its law."""
    def test(python, long):
        seconds = 30 if long else 6
        truth, spool, _ = h.run_oracle(python, "async_law.py", "busy", long_count if long else count, seconds, timeout=seconds * 4 + 60)
        process = spool.one()
        used, allowed = need_budget(truth["noted"], process, 1, truth["seconds"], long_count if long else count)
        note = asyncs.check_law(truth, s.chains(process, "task"), False, asyncs.longest_period(process, truth["seconds"]))
        rounds = process.counter("task_ticks", "read")
        return "%.0f ms used of %.0f; %d rounds in %.1f s; %d ticks missed of %d; %s" % (
            1e3 * used, 1e3 * allowed, rounds, truth["seconds"], process.counter("ticks", "missed"), process.counter("ticks", "due"), note)
    return test


def steady(python, long):
    """While a thread does nothing but run ticks come apart; short waits after that are met all the same."""
    seconds, rounds = (20, 20) if long else (5, 3)
    truth, spool, _ = h.run_oracle(python, "steady.py", seconds, rounds, timeout=seconds + rounds + 60)
    process, took = spool.one(), truth["took"]
    whole = sum(took.values())
    lines = list(process.stacks("wall"))
    for name, true in took.items():
        got = h.total_where(lines, lambda f, n=name: any(x.name == n for x in f)) / 1e6
        allowed = 0.015 * whole
        need(abs(got - true) <= allowed, "%s has %.3f s of %.3f (%.3f allowed)", name, got, true, allowed)
    cpu = process.total("cpu") / 1e6
    taken, due = process.counter("ticks", "taken"), 100 * whole
    alone = truth["steady"]["cpu"] / truth["steady"]["wall"]
    ticks = "%d ticks of %.0f" % (process.metas()[-1]["rate"]["got"] * whole, due)
    need(alone < 0.97 or process.metas()[-1]["rate"]["got"] < 70, "%s, though it did nothing but run (%.1f %% of a CPU)", ticks, 100 * alone)
    need(taken - process.metas()[-1]["rate"]["got"] * whole >= 0.8 * 100 * cpu * alone, "%d CPU ticks in %.2f s", taken, cpu)
    return "%s, a CPU for %.1f %% of its work" % (ticks, 100 * alone)


def on_edges(test):
    """What no version of Python changes much: on the oldest and the newest."""
    def both(pythons, long):
        ends = [pythons[0]] if len(pythons) == 1 else [pythons[0], pythons[-1]]
        return "; ".join("%s: %s" % (p.label, test(p, long)) for p in (pythons if long else ends))
    return both


TESTS = [
    ("budget-default", load({}, 1), False),
    ("budget-steady", steady, False),
]
ONCE = [
    ("budget-1kHz", on_edges(must_slow(load({"APROF_RATE": "1000", "APROF_OVERHEAD": "1"}, 1))), False),
    ("budget-3", on_edges(must_slow(load({"APROF_RATE": "2000", "APROF_OVERHEAD": "3"}, 3))), False),
    ("budget-tasks", on_edges(tasks(10000, 50000)), False),
    ("budget-tower", on_edges(tower), False),
    ("budget-off", on_edges(unbounded), True),
]
