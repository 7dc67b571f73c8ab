# SPDX-License-Identifier: MIT
"""labels: APROF_LABEL, stacks begin with what context variables are set to."""
import ast
import collections
import re

import harness as h
from harness import need
from truths import kernel_tick

NAMES = ("request_route", "tenant")
ON = {"APROF_LABEL": "request_route,tenant,never_set", "APROF_RATE": "1000", "APROF_OVERHEAD": "0"}
MARKER = re.compile(r"^\[(request_route|tenant|never_set)=(.*)\]$", re.S)
NOTHING_SET = (None, "nobody\\x3b by default")  # one of them has a default
VALUES_MOST = 1000  # of one window
TICK_S = 0.015      # where a value begins and ends, between two ticks


def labels_of(frames):
    """What the stack says of each variable. They are the first frames, in the order in which they were asked for."""
    found = [m.groups() for m in (MARKER.match(f.text) for f in frames) if m]
    need([name for name, _ in found] == [name for name in NAMES if name in dict(found)], "labels in another order, or twice: %s", found)
    need(all(MARKER.match(f.text) for f in frames[:len(found)]), "labels within a stack: %s", [f.text for f in frames][:6])
    return tuple(dict(found).get(name) for name in NAMES)


def by_labels(process, metric):
    found = collections.Counter()
    for frames, us in process.stacks(metric):
        found[labels_of(frames)] += us
    return found


def shown(value):
    """As it stands in a stack; None: it does not."""
    if not isinstance(value, (str, int)):
        return None
    text = str(value).replace("\\", "\\x5c").replace(";", "\\x3b")
    return text if len(text.encode()) <= 103 else text[:103] + "~"


def is_same(found, expected):
    def one(a, b):
        return a == b or bool(a and b and b.endswith("~") and a.startswith(b) and re.fullmatch("[0-9a-f]{8}", a[len(b):]))
    return all(one(a, b) for a, b in zip(found, expected))


def truth_of(noted):
    """Seconds by labels; of values that are shown alike together."""
    sums = collections.Counter()
    for key, seconds in noted.items():
        sums[tuple(shown(value) for value in ast.literal_eval(key))] += seconds
    return sums


def us_of(found, expected):
    return sum(us for labels, us in found.items() if is_same(labels, expected))


def some(python, long):
    truth, spool, _ = h.run_oracle(python, "context_labels.py", "some", settings=ON)
    process, worst = spool.one(), 0
    cpu, used = by_labels(process, "cpu"), truth_of(truth["cpu"])
    whole = sum(cpu.values()) / 1e6
    for labels, seconds in used.items():
        us, allowed = us_of(cpu, labels), h.share_tolerance(seconds / whole, int(whole * kernel_tick()), points=2, among=len(used))
        off = abs(us / 1e6 - seconds) / whole
        if labels in (NOTHING_SET, (None, None)):
            off = max(0, seconds - us / 1e6) / whole  # what the program used besides has these, too
        need(off <= allowed, "cpu of %a: %.3f s, truth %.3f (of %.3f, \u00b1 %.3f)", labels, us / 1e6, seconds, whole, allowed * whole)
        worst = max(worst, off)
    for metric, table in (("task", truth["task"]), ("wall", {k: v for k, v in truth["wall"].items() if "/thread" in k})):
        found = by_labels(process, metric)
        for labels, seconds in truth_of(table).items():
            if labels in (NOTHING_SET, (None, None)):
                continue
            us = us_of(found, labels)
            allowed = 0.03 * seconds + 8 * TICK_S  # two tasks, some changes each
            need(abs(us / 1e6 - seconds) <= allowed, "%s of %a: %.3f s, truth %.3f (\u00b1 %.3f)", metric, labels, us / 1e6, seconds, allowed)
    expected = set(used) | set(truth_of(truth["task"]))
    for labels in cpu:
        need(any(is_same(labels, e) for e in expected) or labels in ((None, None), ("/", "1")), "labels that nobody set: %s", labels)
    need(us_of(cpu, NOTHING_SET) > 0, "no default")
    return "%d kinds of labels, cpu off by at most %.2f points" % (len(used), 100 * worst)


def many(python, long):
    """Values without end do not make a profile without end."""
    _, spool, _ = h.run_oracle(python, "context_labels.py", "many", 20000 if long else 2500, settings=ON)
    process = spool.one()
    for metric in ("cpu", "task"):
        found = by_labels(process, metric)
        need(len(found) <= VALUES_MOST + 3, "%s: %d different labels", metric, len(found))
    need(by_labels(process, "task")[("~",) + NOTHING_SET[1:]] > 0, "no [request_route=~]")
    refused = sum(m["limits"].get("labels", 0) for m in process.metas())
    need(refused > 0, "limits{} does not count labels")
    return "%d values, %d times another one" % (len(by_labels(process, "task")), refused)


def off(python, long):
    _, spool, _ = h.run_oracle(python, "context_labels.py", "many", 50)
    for metric in ("cpu", "wall", "task"):
        found = by_labels(spool.one(), metric)
        need(set(found) == {(None, None)}, "labels though nobody asked for them: %s", list(found))


TESTS = [
    ("labels-some", some, False),
    ("labels-many", many, h.HALF),
    ("labels-off", off, h.HALF),
]
