# SPDX-License-Identifier: MIT
"""spools: spools whose truth is known, and what their text says: worked out here from
the lines alone, with nothing of ours but the format as output/spool_format.h has it."""

import collections
import json
import os
import re

START = 1700000000000000

ASYNC = "<module> (app.py:1);main (app.py:9);run (asyncio/runners.py:190);BaseEventLoop._run_once (asyncio/base_events.py:1922)"

# By (pid, window): by metric: [(stack, count)].
SPOOL = {
    (7, 0): {
        "cpu": [
            (f"{ASYNC};Handle._run (asyncio/events.py:84);handle (app.py:20);dumps (json/__init__.py:231)", 5000000),
            (f"{ASYNC};Handle._run (asyncio/events.py:84);handle (app.py:25);gauss (random.py:5)", 2500000),
            (f"{ASYNC};handle (app.py:31)", 300001),
            ("<module> (app.py:1);fact (app.py:7);fact (app.py:7);fact (app.py:6)", 299999),  # nested recursion
            ("<module> (app.py:1);prépare \U0001f40d (größe/données.py:3)", 1000000),  # unicode
            ("<module> (app.py:1);bad \udcff\udcfe (app.py:4)", 70000),  # not UTF-8
            ("<module> (app.py:1);operator (x) (lib\\x20(odd)/a:b.py:8)", 80000),  # " (" in a name, and in a path
            ("<module> (app.py:1);semi\\x3bcolon\\x5c (app.py:5)", 90000),
            ("[thread worker-3];[route=/signup];<module> (app.py:1);pay (app.py:50)", 400000),
            ("[unseen cpu]", 100000),
        ],
        "wall": [(f"{ASYNC};EpollSelector.select (selectors.py:468)", 40000000), ("<module> (app.py:1);sleep (app.py:3)", 20000000)],
        "task": [(f"{ASYNC};handle (app.py:20);[ready]", 1234567)],
        "heap": [("<module> (app.py:1);grow (app.py:70)", 999)],
        "gil": [],
    },
    (7, 1): {
        "cpu": [(f"{ASYNC};Handle._run (asyncio/events.py:84);handle (app.py:20);dumps (json/__init__.py:231)", 1000000)],
        "wall": [("<module> (app.py:1);sleep (app.py:3)", 1000000)],
        "heap": [("<module> (app.py:1);grow (app.py:70)", 4096), ("<module> (app.py:1);grow (app.py:71)", 1024)],
    },
    (8, 0): {
        "cpu": [("<module> (app.py:1);worker (app.py:60);fact (app.py:7)", 2000000), ("[unseen cpu]", 5)],
        "wall": [("<module> (app.py:1);worker (app.py:60)", 7000000)],
        "heap": [("<module> (app.py:1);grow (app.py:70)", 2048)],
    },
}
METRICS = ("cpu", "wall", "task", "gil", "heap")
LEVELS = ("heap",)


def name_of(pid, window, end):
    return f"aprof.host.{pid}.{START + pid}.{window:06d}.{end}"


def metadata_of(pid, window, **more):
    start = START + 60000000 * window
    return {"schema": 1, "run": "5f1c0a9e", "pid": pid, "ppid": 1, "host": "host", "program": "python3 app.py", "python": "3.11.2",
            "build": "release", "start_us": start, "end_us": start + 60000000, "window": window, "ended": "window" if not window and pid == 7 else "exit",
            "settings": {"APROF_RATE": "100"}, "tags": {"version": "1.4"}, "pid_namespace": 1, "boot": "b",
            "ticks": {"due": 6000, "taken": 5990, "missed": 10}, "rate": {"asked": 100, "got": 90.5}, "samples": 17000,
            "dropped": {"torn": 1, "torn_awaiter": 2, "fault": 3}, "cpu_unseen_us": 100005, "cpu_spread_us": 7, "threads_peak": 3 + window,
            "tasks_peak": 50, "tasks_skipped": 4, "children_without_sample": 1, "loops": [{"thread": 7, "idle_us": 40000000, "busy_us": 9000000}],
            "sampler_cpu_us": 90000, "handler_us": 30000, "process_cpu_us": 12000000,
            "budget": {"allowed_us": 120000, "rate": 80.0, "least": 40.0, "slowed": 1, "quickened": 0, "ceilings": 0},
            "heap_bytes": 1400000, "reader": "copy", "limits": {"depth": 4}, "metrics": {}, **more}


def write(folder, spool=None, metadata=True):
    os.makedirs(folder, exist_ok=True)
    for (pid, window), metrics in (SPOOL if spool is None else spool).items():
        for metric, rows in metrics.items():
            with open(os.path.join(folder, name_of(pid, window, metric + ".collapsed")), "wb") as file:
                for stack, count in rows:
                    file.write(f"{stack} {count}\n".encode("utf-8", "surrogateescape"))
        if metadata:
            with open(os.path.join(folder, name_of(pid, window, "json")), "w") as file:
                file.write(json.dumps(metadata_of(pid, window)) + "\n")
    return folder


# ---- what its text says --------------------------------------------------------------


def rows_of(metric, spool=None):
    """(pid, stack, count) of each line; of a level only each process's last window."""
    spool = SPOOL if spool is None else spool
    for (pid, window), metrics in spool.items():
        later = any(pid == other and window < at and metric in spool[other, at] for other, at in spool)
        for stack, count in metrics.get(metric, ()) if not (metric in LEVELS and later) else ():
            yield pid, stack, count


def valid(text):
    """Bytes that are not UTF-8 as the library writes them."""
    return "".join(f"\\x{ord(c) - 0xdc00:02x}" if 0xdc80 <= ord(c) <= 0xdcff else c for c in text)


def stacks_of(metric, spool=None):
    """By the line's stack what it has in all."""
    sums = collections.Counter()
    for _, stack, count in rows_of(metric, spool):
        sums[valid(stack)] += count
    return sums


def plain(text):
    """\\xNN as the characters that they stand for, where those are valid and printable."""
    raw = re.sub(rb"\\x([0-9a-f]{2})", lambda found: bytes([int(found[1], 16)]), text.encode("utf-8", "surrogateescape"))
    shown = raw.decode("utf-8", "surrogateescape")
    return "".join(f"\\x{ord(c):02x}" if ord(c) < 32 else c for c in valid(shown))


def frames_of(stack, by_line=True):
    """[(function, file, line)], root first, as other programs are to know them."""
    frames = []
    for text in stack.split(";"):
        found = re.fullmatch(r"(.*) \((.+):(\d+)\)", text, re.S)
        name, file, line = found.groups() if found else (text, "", 0)
        frames.append((plain(name), plain(file), int(line) if by_line else 0))
    return tuple(frames)


def frame_stacks_of(metric, spool=None, pid=None, by_line=True):
    sums = collections.Counter()
    for of, stack, count in rows_of(metric, spool):
        if pid in (None, of):
            sums[frames_of(stack, by_line)] += count
    return sums


def selves(stacks):
    sums = collections.Counter()
    for frames, count in stacks.items():
        sums[frames[-1]] += count
    return sums


def totals(stacks):
    """Recursion once."""
    sums = collections.Counter()
    for frames, count in stacks.items():
        for frame in set(frames):
            sums[frame] += count
    return sums
