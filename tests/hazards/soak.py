# SPDX-License-Identifier: MIT
"""soak: a service that does a little of everything, for a long time: what the profiler
takes is flat, and what it loses does not grow.

    tests/hazards/run --only soak          some seconds, on one Python
    make soak                              SOAK_SECONDS=1800, on SOAK_PYTHON

The same service runs beside it without the profiler: what the two need differs by
what is ours.
"""
import json
import os
import signal
import statistics
import sys
import time

import hazard
from hazard import Hazard, h

TASKS, THREADS = 1000, 16
SETTINGS = {"APROF_RATE": "1000"}
MIB = 1 << 20
WINDOWS_TO_JUDGE = 12  # fewer do not tell whether losses grow


def seconds_of(case):
    return int(os.environ.get("SOAK_SECONDS", "1800" if case.long else "12"))


def status_number(pid, key):
    with open("/proc/%d/status" % pid, encoding="ascii") as f:
        for line in f:
            if line.startswith(key + ":"):
                return int(line.split()[1])
    return 0


def descriptors(pid):
    """Of every descriptor table that a thread of the process has: ours is one of them."""
    return sum(len(os.listdir("/proc/%d/task/%s/fd" % (pid, tid))) for tid in sorted(os.listdir("/proc/%d/task" % pid))[:2] + last_tasks(pid))


def last_tasks(pid):
    """The sampler's: a thread whose descriptors are not the main thread's."""
    own = set(os.listdir("/proc/%d/fd" % pid))
    return [tid for tid in os.listdir("/proc/%d/task" % pid) if set(os.listdir("/proc/%d/task/%s/fd" % (pid, tid))) != own][:1]


def waited(pid):
    """Seconds that the profiler's thread was ready to run and had no CPU."""
    for tid in os.listdir("/proc/%d/task" % pid):
        try:
            with open("/proc/%d/task/%s/comm" % (pid, tid)) as comm, open("/proc/%d/task/%s/schedstat" % (pid, tid)) as stat:
                if comm.read().strip() == "aprof":
                    return int(stat.read().split()[1]) / 1e9
        except OSError:
            continue
    return 0


class Watched:
    """One of the two services, and what it needed at each look."""

    def __init__(self, case, python, preload, window):
        name = "soak" if preload else "soak-without"
        self.run = h.Run([os.path.join(hazard.HERE, "programs", "soak_service.py"), str(TASKS), str(THREADS)], name, python=python, preload=preload,
                         settings=dict(SETTINGS, APROF_WINDOW=str(window)) if preload else None, stdout=open(os.devnull, "wb"))
        self.rss, self.fds, self.heap, self.waited = [], [], [], []

    def look(self):
        pid = self.run.popen.pid
        self.rss.append(1024 * status_number(pid, "VmRSS"))
        self.fds.append(descriptors(pid))
        self.heap.append(heap_of(self.run.spool_folder, pid))
        self.waited.append((time.monotonic(), waited(pid)))


def heap_of(folder, pid):
    """What the profiler says of its own heap now, in the open window's metadata."""
    for name in os.listdir(folder) if os.path.isdir(folder) else []:
        if name.endswith(".json.live") and ".%d." % pid in name:
            try:
                return json.loads(h.read_bytes(os.path.join(folder, name)).decode())["heap_bytes"]
            except (ValueError, OSError):
                return None
    return None


def growth(values):
    """From the second quarter to the last: the first one is the service's own beginning."""
    known = [v for v in values if v is not None]
    quarter = max(len(known) // 4, 1)
    return statistics.median(known[-quarter:]) - statistics.median(known[quarter:2 * quarter])


def lost_share(windows):
    lost = sum(n for m in windows for k, n in m["dropped"].items() if k not in h.KEPT) + sum(m["ticks"]["missed"] + m["tasks_skipped"] for m in windows)
    due = sum(m["ticks"]["due"] for m in windows)
    return lost / max(due, 1)


def watch(both, seconds):
    began, number = time.monotonic(), 0
    while time.monotonic() - began < seconds:
        time.sleep(min(1, seconds / 20))
        number += 1
        for service in both:
            if service.run.popen.poll() is not None:
                return
            service.look()
            if number % 10 == 5:
                os.kill(service.run.popen.pid, signal.SIGHUP)


def judge_memory(case, ours, without):
    grown, alone = growth(ours.rss), growth(without.rss)
    allowed = MIB + 3 * statistics.pstdev(without.rss[len(without.rss) // 4:])
    case.check(grown - alone <= allowed, "memory grew by %.1f MiB, without us by %.1f (± %.1f)", grown / MIB, alone / MIB, allowed / MIB)
    heap = growth(ours.heap)
    case.check(heap <= MIB, "the profiler's own heap grew by %.2f MiB", heap / MIB)
    case.check(max(v for v in ours.heap if v is not None) < 16 * MIB, "the profiler's own heap took %.1f MiB", max(v for v in ours.heap if v) / MIB)
    for service, name in ((ours, ""), (without, " without us")):
        case.check(growth(service.fds) <= 1, "descriptors grew by %d%s", growth(service.fds), name)
    return "memory +%.2f MiB (without us +%.2f), own heap %.2f MiB (+%.3f)" % (grown / MIB, alone / MIB, statistics.median(v for v in ours.heap if v) / MIB, heap / MIB)


def waiting_shares(looks):
    """Of the first half and of the second: the share of time in which the profiler's thread wanted a CPU."""
    middle = looks[len(looks) // 2]
    return [(b[1] - a[1]) / max(b[0] - a[0], 1e-9) for a, b in ((looks[0], middle), (middle, looks[-1]))]


def judge_losses(case, windows, looks):
    """Window by window, so that one in which the machine was busy elsewhere does not decide; where it was so for long,
    ticks come as late as our thread waited for a CPU."""
    shares = [lost_share([m]) for m in windows]
    half, busy = len(shares) // 2, waiting_shares(looks)
    early, late = statistics.median(shares[:half]), statistics.median(shares[half:])
    if len(shares) >= WINDOWS_TO_JUDGE:
        spread = statistics.median(abs(s - early) for s in shares[:half])
        case.check(late <= early + max(3 * spread, 0.005) + max(busy[1] - busy[0], 0), "lost %.3f %% a window in the second half, %.3f %% (± %.3f) in the first",
                   100 * late, 100 * early, 300 * spread)
    return "%d windows, lost %.2f then %.2f %%, waited for a CPU %.2f then %.2f %% of the time" % (
        len(windows), 100 * early, 100 * late, 100 * busy[0], 100 * busy[1])


def judge_spool(case, result, truth, looks):
    spool = h.Spool(result.spool)
    parent = spool.by_pid(result.pid)
    if not case.check(len(parent) == 1, "the service is in the spool %d times", len(parent)):
        return ""
    windows = parent[0].metas()
    children = [p for p in spool if p.pid != result.pid and p.metas()[0]["ppid"] == result.pid]  # by parent: pids come again in so long a time
    counted = windows[-1]["children_without_sample"]
    for _ in range(abs(len(children) + counted - len(truth["forks"]))):
        case.add("lost", "%d children in the spool and %d counted, of %d", len(children), counted, len(truth["forks"]))
    for word in ("keep", "request", "leaf"):
        case.check(any(f.name == word for frames, _ in parent[0].stacks("task") for f in frames), "%s is in no stack of a task", word)
    return judge_losses(case, windows, looks)


def soak(case):
    wanted = os.environ.get("SOAK_PYTHON")
    python = next((p for p in case.pythons if p.label.startswith(wanted)), None) if wanted else case.pythons[-1]
    if not python:
        raise h.Skip("no Python %s" % wanted)
    seconds = seconds_of(case)
    both = ours, without = Watched(case, python, True, max(1, min(60, seconds // 6))), Watched(case, python, False, 0)
    case.tried()
    watch(both, seconds)
    for service in both:
        if service.run.popen.poll() is None:
            service.run.popen.send_signal(signal.SIGTERM)
    try:
        results = [service.run.finish(60) for service in both]
    except h.Failure as reason:
        case.add("hangs", str(reason))
        return
    case.judge(results[0].status, results[1].status, "soak_service.py", results[0].err)
    case.compare(results[0], results[1])
    truth = ours.run.truth()
    case.check(not truth["errors"], "errors: %s", truth["errors"][:3])
    case.check(truth["tasks"] > TASKS / 4 and truth["made"] > seconds, "too little was done: %s", {k: v for k, v in truth.items() if k != "forks"})
    case.tried(truth["tasks"] + truth["made"] + len(truth["forks"]) + truth["hups"] - 1)
    case.note = "%s: %d s, %d tasks, %d functions, %d forks, %d SIGHUPs; %s; %s" % (
        python.label, seconds, truth["tasks"], truth["made"], len(truth["forks"]), truth["hups"], judge_memory(case, ours, without), judge_spool(case, results[0], truth, ours.waited))


HAZARDS = [
    Hazard("soak", soak, each=False, beside=False),
]
