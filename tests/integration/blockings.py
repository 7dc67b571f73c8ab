# SPDX-License-Identifier: MIT
"""blockings: calls that block an event loop, as `aprof report --blocking` has them, against a program that knows them."""
import json
import subprocess

import harness as h
from asyncs import runs_without
from harness import need
from truths import PERIOD

SECONDS = 0.4  # a call of each kind
CALLS_OF_A_KIND = 4
CALLS = ("sleeps", "receives", "keeps_the_gil")
KNOWN = {"APROF_METRICS": "cpu,wall,task,block", "APROF_MIN_RATE": "100", "APROF_OVERHEAD": "0"}
GUESSED = {"APROF_MIN_RATE": "100", "APROF_OVERHEAD": "0"}


def report(folder, *options):
    result = subprocess.run([h.TOOL, "report", "--blocking", "--json", *options, folder], capture_output=True, timeout=60, check=False)
    need(result.returncode == 0, "aprof report --blocking ended with %d: %s", result.returncode, result.stderr)
    return json.loads(result.stdout)["blocking"]


def by_function(found):
    sums = {}
    for row in found["rows"]:
        name = row["stack"][-1]["name"]
        sums[name] = sums.get(name, 0) + row["waiting"] / 1e6
        names = [frame["name"] for frame in row["stack"]]
        need("blocks" in names or name not in CALLS, "%s is not below the task that called it: %s", name, names)
    return sums


def check(sums, truth):
    """Each call shares a tick at its end with what comes then. It takes SECONDS; what its caller's clock has beyond that may be
    waiting for the GIL or a CPU, which is not the call's."""
    notes = []
    for name in CALLS:
        seconds = truth[name]
        allowed = h.sum_tolerance(1e6 * seconds, 0.05, period_us=PERIOD, threads_at_end=CALLS_OF_A_KIND) / 1e6
        found = sums.get(name, 0)
        need(SECONDS - allowed <= found <= seconds + allowed, "%s has %.3f s, truth %.3f to %.3f (± %.3f)", name, found, SECONDS, seconds, allowed)
        notes.append("%.3f" % (found / seconds))
    return notes


def blocking(kind, *more):
    """What the sampler saw for certain: those calls, and nothing else but chance."""
    def test(python, long):
        if kind == "uvloop":
            runs_without(python, "blocking.py", kind, 0.01, why="no uvloop here")
        truth, spool, result = h.run_oracle(python, "blocking.py", kind, SECONDS, *more, settings=KNOWN)
        found = report(result.spool)
        need(found["source"] == "block", "it guesses: %s", found["source"])
        sums = by_function(found)
        notes = check(sums, truth)
        others = {name: seconds for name, seconds in sums.items() if name not in CALLS}
        need(sum(others.values()) <= 3 * PERIOD / 1e6, "these do not wait: %s", others)
        need(abs(found["total"] - spool.one().total("block")) <= 1, "rows have %d, the metric %d", found["total"], spool.one().total("block"))
        idle = found["idle"] / 1e6
        need(kind != "main" or idle >= 0.9 * SECONDS - 3 * PERIOD / 1e6, "the loop rested for %.3f s, truth %.3f at least", idle, SECONDS)
        return " ".join(notes)
    return test


def guessed(python, long):
    """Without the metric: the calls are there, what awaits is not."""
    truth, _, result = h.run_oracle(python, "blocking.py", "main", SECONDS, settings=GUESSED)
    found = report(result.spool)
    need(found["source"] == "wall-cpu", "it knows: %s", found["source"])
    sums = by_function(found)
    for name in ("sleeps", "receives"):
        need(sums.get(name, 0) >= 0.5 * truth[name], "%s has %.3f s, truth %.3f", name, sums.get(name, 0), truth[name])
    need(not {"sleep", "rests", "EpollSelector.select", "BaseEventLoop._run_once"} & set(sums), "these do not block: %s", sums)


TESTS = [
    ("blocking", blocking("main"), h.HALF),
    ("blocking-contended", blocking("main", "contended"), False),
    ("blocking-thread", blocking("thread"), h.HALF),
    ("blocking-uvloop", blocking("uvloop"), True),
    ("blocking-guessed", guessed, h.HALF),
]
