# SPDX-License-Identifier: MIT
"""tasknames: APROF_TASK_NAMES, a task's frames stand on what the task is called."""
import collections
import re

import harness as h
from harness import need
from truths import kernel_tick

ON = {"APROF_TASK_NAMES": "1", "APROF_RATE": "1000", "APROF_OVERHEAD": "0"}
MARKER = re.compile(r"^\[task (.*)\]$", re.S)
NAMES_MOST = 1000  # of one window
EACH = 5           # tasks of one name, at most
TICK_S = 0.05      # where a task begins and ends, between two ticks
RENAMED_S = 1.6    # until a name that has changed is seen: of a task that waits within a second, and a tick


def markers(frames):
    return [m[1] for m in (MARKER.match(f.text) for f in frames) if m]


def by_name(process, metric):
    """µs of each name, of the innermost task; None: of stacks without one."""
    found = collections.Counter()
    for frames, us in process.stacks(metric):
        names = markers(frames)
        found[names[-1] if names else None] += us
    return found


def is_name(shown, name):
    return shown == name or (name.endswith("~") and shown.startswith(name) and re.fullmatch("[0-9a-f]{8}", shown[len(name):]))


def us_of(found, name):
    return sum(us for shown, us in found.items() if shown and is_name(shown, name))


def check_places(process):
    """A name stands right below the first frame of its task: never last, nor below another one or asyncio's own loop."""
    for metric in ("cpu", "wall", "task"):
        for frames, _ in process.stacks(metric):
            for i, frame in enumerate(frames):
                if MARKER.match(frame.text):
                    need(i + 1 < len(frames), "a name at the end: %s", [f.text for f in frames][-6:])
                    above = frames[i + 1]
                    need(above.name in ("some_inner", "outer", "renamed", "renames", "waits_long", "all_of_some", "one_of_many", "all_of_many"),
                         "%s stands on %s", above.text, frame.text)


def check_stacked(process):
    """The inner tasks of five outer ones hang below these."""
    for metric in ("cpu", "task"):
        for frames, us in process.stacks(metric):
            names = markers(frames)
            if names and names[-1] == "inner":
                need(names[-2] == "outer *", "inner stands on %s", names)


def some(python, long):
    truth, spool, _ = h.run_oracle(python, "task_names.py", "some", settings=ON)
    process = spool.one()
    found = {metric: by_name(process, metric) for metric in ("cpu", "wall", "task")}
    check_places(process)
    check_stacked(process)
    renamed, worst = ("first name", "second name", "old name", "new name"), 0
    whole = sum(truth["cpu"].values())
    for name, used in truth["cpu"].items():
        us = us_of(found["cpu"], name)
        off, allowed = abs(us / 1e6 / whole - used / whole), h.share_tolerance(used / whole, int(whole * kernel_tick()), points=1.5, among=len(truth["cpu"]))
        need(off <= allowed, "cpu of %a: %.3f s, truth %.3f (of %.3f, \u00b1 %.3f)", name[:40], us / 1e6, used, whole, allowed * whole)
        worst = max(worst, off)
    for name, lived in truth["task"].items():
        us = us_of(found["task"], name)
        allowed = 0.02 * lived + EACH * TICK_S + (RENAMED_S if name in renamed else 0)
        need(abs(us / 1e6 - lived) <= allowed, "task of %a: %.3f s, truth %.3f (\u00b1 %.3f)", name[:40], us / 1e6, lived, allowed)
    for pair in (renamed[:2], renamed[2:]):  # nothing is lost in between
        us, lived = sum(us_of(found["task"], name) for name in pair), sum(truth["task"][name] for name in pair)
        need(abs(us / 1e6 - lived) <= 0.02 * lived + 2 * TICK_S, "%s: %.3f s, truth %.3f", pair, us / 1e6, lived)
    ready = us_of(found["task"], "outer *") / 1e6
    need(ready < 0.3 * truth["task"]["inner"], "outer, which awaits inner, has %.3f s", ready)
    new = us_of(found["task"], "new name") / 1e6
    need(new > truth["task"]["new name"] - RENAMED_S, "a new name of %.2f s has %.2f", truth["task"]["new name"], new)
    return "%d names, cpu off by at most %.2f points" % (len(truth["task"]), 100 * worst)


def many(python, long):
    """Unique names do not make a profile without end."""
    count = 20000 if long else 3000
    truth, spool, _ = h.run_oracle(python, "task_names.py", "many", count, settings=ON)
    process = spool.one()
    check_places(process)
    for metric in ("cpu", "task"):
        found = by_name(process, metric)
        need(len(found) <= NAMES_MOST + 3, "%s: %d different names", metric, len(found))
    need(by_name(process, "task")["~"] > 0, "no [task ~]")
    refused = sum(m["limits"].get("task_names", 0) for m in process.metas())
    need(refused > 0, "limits{} does not count task_names")
    return "%d names, %d times another one" % (len(by_name(process, "task")), refused)


def off(python, long):
    _, spool, _ = h.run_oracle(python, "task_names.py", "many", 200)
    for metric in ("cpu", "task"):
        found = by_name(spool.one(), metric)
        need(set(found) == {None}, "names though nobody asked for them: %s", list(found))


TESTS = [
    ("tasknames-some", some, h.HALF),
    ("tasknames-many", many, h.HALF),
    ("tasknames-off", off, h.HALF),
]
