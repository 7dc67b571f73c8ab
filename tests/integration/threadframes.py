# SPDX-License-Identifier: MIT
"""threadframes: APROF_THREAD_FRAMES, the first frame of every stack is what its thread is called."""
import collections
import re

import harness as h
from harness import need
from names import stands_for
from truths import PERIOD, check_laws

ON = {"APROF_THREAD_FRAMES": "1"}
MARKER = re.compile(r"^\[thread (.*)\]$", re.S)
NAMES_MOST = 1000  # of one window
RENAMED_S = 1.1    # until a name that has changed is seen


def by_name(process, metric):
    """µs of each name; None: of stacks that begin with none."""
    found = collections.Counter()
    for frames, us in process.stacks(metric):
        match = MARKER.match(frames[0].text)
        found[match and match[1]] += us
        need(not any(f.text.startswith("[thread ") for f in frames[1:]), "a thread's name within a stack: %s", [f.text for f in frames][:6])
    return found


def need_all_named(found, metric):
    need(not found[None], "%d µs of %s without a name", found[None], metric)


def check_name(found, name, truth, slack, late=0.0):
    """cpu and wall of one name; late: what it may have lost to, or of, the one before."""
    cpu, wall = truth
    for metric, used, figure in (("cpu", cpu, 0.01), ("wall", wall, 0.005)):
        us = sum(n for shown, n in found[metric].items() if shown and stands_for(shown, name, False))
        allowed = h.sum_tolerance(1e6 * used, figure, period_us=PERIOD, threads_at_end=1) + slack + 1e6 * late * (metric == "wall" or 0.6)
        need(abs(us - 1e6 * used) <= allowed, "%a: %s %.3f s, truth %.3f (± %.3f)", name[:40], metric, us / 1e6, used, allowed / 1e6)


def some(python, long):
    truth, spool, _ = h.run_oracle(python, "thread_names.py", "some", settings=ON)
    found = {metric: by_name(spool.one(), metric) for metric in ("cpu", "wall")}
    names = dict(truth["names"])
    for metric in found:
        need_all_named(found[metric], metric)
    pool = names.pop("pool")
    for name, used in names.items():
        check_name(found, name, used, 0.03e6, RENAMED_S if name.endswith(" name") else 0)
    cpu = sum(us for shown, us in found["cpu"].items() if shown.startswith("pool_"))
    need(abs(cpu - 1e6 * pool[0]) <= 0.01e6 * pool[0] + 3 * PERIOD + 0.03e6, "the pool: cpu %.3f s, truth %.3f", cpu / 1e6, pool[0])
    need(sum(shown.startswith("pool_") for shown in found["wall"]) == 3, "of the pool's three threads: %s", list(found["wall"]))
    for pair in (("first name", "second name"), ("old name", "new name")):  # nothing is lost in between
        both = collections.Counter({pair[0]: sum(found["wall"][name] for name in pair)})
        check_name({"cpu": both, "wall": both}, pair[0], (both[pair[0]] / 1e6, sum(names[name][1] for name in pair)), 0.03e6)
    return "%d names; a new one of %.2f s has %.2f" % (len(names) + 3, names["new name"][1], found["wall"]["new name"] / 1e6)


def laws(python, long):
    """Sums are what they are without, also of threads that nobody looked at while they lived."""
    seconds = 20 if long else 4
    truth, spool, result = h.run_oracle(python, "laws.py", 8, seconds, timeout=seconds + 60, settings=ON)
    note = check_laws(truth, spool.one(), result.rusage, result.wall - (truth["ended"] - truth["began"]))
    for metric in ("cpu", "wall"):
        need_all_named(by_name(spool.one(), metric), metric)
    return note


def many(python, long):
    truth, spool, _ = h.run_oracle(python, "thread_names.py", "many", NAMES_MOST + 500, settings=ON)
    found = by_name(spool.one(), "wall")
    need_all_named(found, "wall")
    need(len(found) <= NAMES_MOST + 1 and len(found) > NAMES_MOST / 2, "%d different names", len(found))
    need(found["~"] > 0, "no [thread ~]")
    refused = sum(m["limits"].get("thread_names", 0) for m in spool.one().metas())
    need(refused > 0, "limits{} does not count thread_names")
    cpu = spool.one().total("cpu")
    need(abs(cpu - 1e6 * truth["process_cpu"]) <= 0.15e6 + 0.1 * cpu, "cpu %.3f s of a process that used %.3f", cpu / 1e6, truth["process_cpu"])
    return "%d names, %d threads of others" % (len(found), refused)


def loops(python, long):
    """A task stands on the thread of its loop. (All begin in one tick and end in one: ticks of an idle process are 0.1 s apart.)"""
    truth, spool, _ = h.run_oracle(python, "thread_names.py", "loops", settings=ON)
    found = by_name(spool.one(), "task")
    need_all_named(found, "task")
    for name, seconds in truth["waited"].items():
        need(abs(found[name] - 1e6 * seconds) <= 0.05e6 * seconds, "%s: %.3f s of tasks, truth %d", name, found[name] / 1e6, seconds)
    return " ".join("%s %.4f" % (n, found[n] / 1e6 / s) for n, s in truth["waited"].items())


def off(python, long):
    _, spool, _ = h.run_oracle(python, "thread_names.py", "loops")
    found = by_name(spool.one(), "wall")
    need(set(found) == {None}, "names though nobody asked for them: %s", list(found))


TESTS = [
    ("threadframes-laws", laws, True),
    ("threadframes-some", some, h.HALF),
    ("threadframes-many", many, True),
    ("threadframes-loops", loops, h.WAITS),
    ("threadframes-off", off, h.WAITS),
]
