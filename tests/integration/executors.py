# SPDX-License-Identifier: MIT
"""executors: what workers run for an event loop stands on the task that awaits it."""
import collections

import harness as h
import packages
from harness import need
from truths import PERIOD, kernel_tick

DENSE = {"APROF_RATE": "1000", "APROF_OVERHEAD": "0"}
FUNCTIONS = ("of_thread", "of_pool", "of_gather", "of_nobody", "of_submit", "with_loop", "of_endpoint", "of_group")
BETWEEN = ("wait_for", "wait", "_wait", "WorkerContext.run")  # on the way, in some versions
STANDARD = ("_worker", "_WorkItem.run")
ANYIO = ("WorkerThread.run",)


def way_of(frames, worker):
    """From the worker's last frame to the function that was sent to it; None: another stack."""
    names = [f.name or f.text for f in frames]
    ends = [i for i, name in enumerate(names) if name.split(".")[-1] in FUNCTIONS]
    if not ends:
        return None
    need(tuple(n for n in names[:ends[0]] if n in worker) == worker, "no worker below %s: %s", names[ends[0]], names)
    return ";".join(f.name.split(".")[-1] for f in frames[names.index(worker[-1]) + 1:ends[0] + 1]
                    if f.name not in BETWEEN and "/anyio/" not in "/%s" % f.path)


def without(way):
    return ";".join(name for name in way.split(";") if name not in BETWEEN)


def by_way(process, metric, worker=STANDARD):
    found = collections.Counter()
    for frames, us in process.stacks(metric):
        way = way_of(frames, worker)
        if way:
            found[way] += us
    return found


def by_function(ways):
    found = collections.Counter()
    for way, amount in ways.items():
        found[way.split(";")[-1]] += amount
    return found


def judged(truth, process, worker):
    """Before the loop has come to await what it has sent it has sent it already: that stands on the worker alone."""
    alone = collections.Counter()
    ticks = int(sum(truth["cpu"].values()) * kernel_tick())
    for metric in ("cpu", "wall"):
        found, known = by_way(process, metric, worker), {without(way): seconds for way, seconds in truth[metric].items()}
        need(set(found) <= set(known) | set(FUNCTIONS) | {"main;gives_up;of_nobody"}, "ways that nobody went: %s", sorted(set(found) - set(known)))
        whole, functions = sum(known.values()), by_function(found)
        for function, seconds in by_function(known).items():
            off, allowed = abs(functions[function] / 1e6 - seconds), whole * h.share_tolerance(seconds / whole, ticks, points=1.5, among=len(known))
            need(off <= allowed, "%s of %s: %.3f s, truth %.3f (± %.3f)", metric, function, functions[function] / 1e6, seconds, allowed)
        for way, seconds in known.items():
            first = found[way.split(";")[-1]] / 1e6 if ";" in way else 0
            allowed = whole * h.share_tolerance(seconds / whole, ticks, points=1.5, among=len(known))
            need(-allowed - first <= found[way] / 1e6 - seconds <= allowed, "%s of %s: %.3f s, truth %.3f (± %.3f)", metric, way, found[way] / 1e6, seconds, allowed)
            alone[metric] += first if way.split(";")[-1] not in ("of_nobody", "of_submit") else 0
        need(alone[metric] <= 0.15 * whole, "%s: %.3f s of %.3f stand on the worker alone", metric, alone[metric], whole)
    torn = process.counter("dropped", "torn_awaiter")
    need(torn <= 0.02 * ticks + 3, "%d torn", torn)
    return "%d ways; on the worker alone: cpu %.3f s, wall %.3f; torn_awaiter %d" % (len(known), alone["cpu"], alone["wall"], torn)


def stacked(python, long):
    truth, spool, _ = h.run_oracle(python, "executor_work.py", settings=DENSE)
    return judged(truth, spool.one(), STANDARD)


def where_anyio_is(python):
    """What the environment needs for it: nothing where Python has its own, else a folder from the package index."""
    if python.ask("import anyio") is not None:
        return {}
    try:
        return {"PYTHONPATH": packages.for_python("anyio", python.version)}
    except packages.Absent as reason:
        raise h.Skip("no anyio: %s" % reason)


def anyio(python, long):
    truth, spool, _ = h.run_oracle(python, "anyio_work.py", settings=DENSE, env=where_anyio_is(python))
    return judged(truth, spool.one(), ANYIO)


def off(python, long):
    _, spool, _ = h.run_oracle(python, "executor_work.py", settings={"APROF_EXECUTOR": "0"})
    found = by_way(spool.one(), "wall")
    need(found and set(found) <= set(FUNCTIONS), "stacked though nobody asked for it: %s", list(found))


def of_processes(python, long):
    """Work of a pool of processes: a wait of the task that awaits it, and CPU of the worker that does it."""
    truth, spool, _ = h.run_oracle(python, "process_pool.py", settings={"APROF_MIN_RATE": "100"})
    parent, notes = spool.by_pid(truth["pid"])[0], []
    for name, seconds in truth["waited"].items():
        found = h.total_where(list(parent.stacks("task")), lambda frames: frames[-1].name == name) / 1e6
        allowed = h.sum_tolerance(1e6 * seconds, 0.05, period_us=10000, threads_at_end=2) / 1e6
        need(abs(found - seconds) <= allowed, "%s waited %.3f s, truth %.3f (± %.3f)", name, found, seconds, allowed)
        notes.append("%s %.3f of %.3f" % (name, found, seconds))
    found = 0
    for process in spool:
        runs_on = any(f.name == "of_process" for frames, _ in process.stacks("task") for f in frames)
        need(not runs_on or (process is not parent and python.version < (3, 14)), "a worker's function is in task of %d", process.pid)
        for frames, us in process.stacks("cpu"):
            names = [f.name for f in frames]
            if "of_process" not in names:
                continue
            need(process.pid != truth["pid"], "the worker's function is in the process that sent it: %s", names)
            need(names.index("_process_worker") == names.index("of_process") - 1, "something stands between worker and function: %s", names)
            need("computes" not in names and "sleeps" not in names, "a worker's function stands on a task of another process: %s", names)
            # a forked one stands where it was forked, a forkserver's on that
            need(("main.<locals>.<genexpr>" in names) == (python.version < (3, 14)), "the pool's processes began elsewhere: %s", names)
            found += us / 1e6
    allowed = h.sum_tolerance(1e6 * truth["cpu"], 0.03, period_us=PERIOD, threads_at_end=2) / 1e6
    need(abs(found - truth["cpu"]) <= allowed, "workers used %.3f s, truth %.3f (± %.3f)", found, truth["cpu"], allowed)
    return ", ".join(notes)


TESTS = [
    ("executors-processes", of_processes, True),
    ("executors-stacked", stacked, False),
    ("executors-anyio", anyio, False),
    ("executors-off", off, True),
]
