#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""peers: libaprof beside other profilers, on the same programs in the same run.

    tests/bench/peers.py [--pairs N] [--seconds S] [--rows R,R...] [--only P,P...] [--python LABEL]...

In each round every contestant has its turn, in an order that moves; what it did is
compared with the run without a profiler of that round. A row shows medians and
their 95 % interval; with few rounds that is the range.

    throughput   of the application, over that without a profiler; by its own clock,
                 for the service by wrk's. The lower bound is what counts
    by CPU       rounds a CPU second of the application's own threads, a ratio: what the
                 profiler does in them, and to their caches
    p99          of its rounds, of wrk's requests, of the starts of Python; a ratio too
    all CPU      of application, children and profiler a round, over that without
    CPU          of the profiler, wherever it runs, % of a core
    useful/s     samples of threads and of waiting tasks that are right (judge.py)
    us a sample  of CPU, of those
    ticks/s      looks at each thread that it took; 100 were asked for
    wrong        impossible stacks per million
    MB           more in the application + in the profiler's own process

Then who is better than libaprof in what, beyond both intervals, and why that is.
What a profiler says of itself is that of its last run.
"""
import argparse
import collections
import shutil
import statistics
import sys
import time

sys.dont_write_bytecode = True

import cost  # noqa: E402 - finds the harness
import harness as h  # noqa: E402
import packages  # noqa: E402
import profilers  # noqa: E402
import trial  # noqa: E402

Row = collections.namedtuple("Row", "name what kind count tasks load children large columns")
STEADY = ("throughput", "by_cpu", "p99", "spent", "cpu", "useful", "sample", "ticks", "wrong", "memory")
IDLE = ("cpu", "ticks", "memory")
SHORT = ("throughput", "by_cpu", "spent", "cpu", "memory")
ROWS = [
    Row("busy", "busy synchronous program", "busy", 0, 0, False, False, False, STEADY),
    Row("threads", "60 threads that compute and pause", "threads", 60, 0, False, False, False, STEADY),
] + [
    Row("service-%d" % n, "asyncio service under load, %s waiting tasks" % format(n, ","), "service", n, n, True, False, False, STEADY)
    for n in (1000, 10000, 50000)
] + [
    Row("idle", "idle service", "service", 0, 0, False, False, False, IDLE),
    Row("idle-5000", "idle service, 5,000 waiting tasks", "service", 5000, 5000, False, False, False, IDLE),
    Row("import", "import of a large package", "import", 0, 0, False, False, True, SHORT),
    Row("storm", "start of programs, four of /bin/true and one Python", "storm", 0, 0, False, True, False, ("throughput", "p99", "spent", "memory")),
]
TITLES = {"throughput": "throughput", "by_cpu": "by CPU", "p99": "p99", "spent": "all CPU", "cpu": "CPU %", "useful": "useful/s", "sample": "us a sample",
          "ticks": "ticks/s", "wrong": "wrong/M", "memory": "MB"}
BETTER = {"throughput": 1, "by_cpu": 1, "p99": -1, "spent": -1, "cpu": -1, "useful": 1, "sample": -1, "wrong": -1, "memory": -1}
WHY = {
    ("memory", "py-spy"): "nothing of it lives in the application; its own process is counted",
    ("memory", "austin"): "nothing of it lives in the application, and its process keeps no stacks: it writes each sample out",
    ("cpu", "austin"): "it reads no tasks and settles no names; it sleeps between two looks and does not look at what ran",
    ("cpu", "ddtrace"): "it looks less often the dearer that is, and at 25 threads and 50 tasks at most",
    ("cpu", "Tachyon"): "it reads one stack by few system calls, in a process without signals",
    ("by_cpu", None): "it does nothing in the application's threads",
    ("by_cpu", "ddtrace"): "it does nothing in the application's threads",
    ("throughput", None): "what it does is done in a process of its own, on the other core",
    ("spent", None): "it takes fewer samples, or reads no tasks",
    ("p99", None): "what it does is done in a process of its own, on the other core",
    ("useful", None): "it keeps to no budget: look at its CPU",
}


class Column:
    """Values of one contestant: median and bounds."""

    def __init__(self, values):
        self.middle, self.low, self.high = cost.median_error(values)


class Results:
    """Of one row: figures of each contestant by round."""

    def __init__(self, row, names):
        self.row, self.rounds = row, {name: [] for name in names}
        self.failed = {}

    def add(self, name, figures):
        self.rounds[name].append(figures)

    def values(self, name, column):
        """Of the rounds in which the one without a profiler is there too."""
        pairs = [(mine, base) for mine, base in zip(self.rounds[name], self.rounds["nothing"]) if mine and base]
        if column == "throughput":
            return [mine["rate"] / base["rate"] for mine, base in pairs]
        if column in ("p99", "spent", "by_cpu"):
            return [mine[column] / base[column] for mine, base in pairs if base[column]]
        if column == "memory":
            without = statistics.median(base["app_rss"] for base in self.rounds["nothing"] if base)
            return [(mine["app_rss"] - without + mine["tool_rss"]) / 1e6 for mine, _ in pairs]
        take = {"cpu": lambda f: f["cpu"], "useful": lambda f: f["threads"] + f["tasks"], "ticks": lambda f: f["ticks"],
                "sample": lambda f: 1e4 * f["cpu"] / (f["threads"] + f["tasks"]) if f["threads"] + f["tasks"] > 1 else None,
                "wrong": lambda f: 1e6 * f["wrong"] if f["all"] else None}[column]
        return [v for v in (take(mine) for mine, _ in pairs) if v is not None]

    def column(self, name, column):
        values = self.values(name, column)
        return Column(values) if values else None

    def last(self, name):
        return next((f for f in reversed(self.rounds[name]) if f), None)


def take_turns(python, row, contestants, pairs, seconds):
    results = Results(row, [c.name for c in contestants])
    for n in range(pairs):
        turn = n % len(contestants)
        for contestant in contestants[turn:] + contestants[:turn]:
            figures = None
            if results.failed.get(contestant.name, (0,))[0] < 2:
                try:
                    figures = trial.run(python, row, contestant, seconds)
                except (h.Failure, packages.Absent, OSError) as reason:
                    times, _ = results.failed.get(contestant.name, (0, None))
                    results.failed[contestant.name] = (times + 1, str(reason))
            results.add(contestant.name, figures)
        h.remove_work()
    return results


def cell(column, found):
    if found is None:
        return "-"
    form = {"throughput": "%.3f", "by_cpu": "%.3f", "p99": "%.2f", "spent": "%.3f", "cpu": "%.2f", "useful": "%.0f", "sample": "%.2f", "ticks": "%.0f",
            "wrong": "%.0f", "memory": "%.1f"}[column]
    if column in ("useful", "ticks"):
        return form % found.middle
    if column == "wrong" and not found.high:
        return "0"
    return "%s (%s, %s)" % (form % found.middle, form % found.low, form % found.high)


def show(results, contestants, absent):
    columns = results.row.columns
    table = {"": [TITLES[c] for c in columns]}
    for name in [c.name for c in contestants if c.name != "nothing"]:
        nothing = ("cpu", "useful", "sample", "ticks", "wrong") if name == "nothing again" else ()
        table[name] = [cell(c, None if c in nothing else results.column(name, c)) for c in columns]
    widths = [max(len(cells[i]) for cells in table.values()) for i in range(len(columns))]
    for name, cells in table.items():
        print("%-18s" % name + "".join("  %*s" % (width, text) for width, text in zip(widths, cells)))
        if name:
            note(results, name)
    for reason in dict.fromkeys(reason for _, reason in absent):
        print("absent: %s: %s" % (", ".join(name for name, why_not_here in absent if why_not_here == reason), reason))
    print(flush=True)


def note(results, name):
    """What it says of itself, what was wrong, and runs that failed."""
    figures, reasons = results.last(name), {}
    for each in filter(None, results.rounds[name]):
        for reason, weight in each["reasons"].items():
            reasons[reason] = reasons.get(reason, 0) + weight
    if figures and figures["said"]:
        print("%-18s   it says: %s" % ("", figures["said"]))
    if reasons:
        print("%-18s   impossible, like: %s" % ("", max(reasons, key=reasons.get)[:160]))
    if name in results.failed:
        print("%-18s   %d runs failed: %s" % ("", results.failed[name][0], results.failed[name][1][:200]))


def is_better(column, one, other):
    """Beyond both intervals."""
    return one.low > other.high if BETTER[column] > 0 else one.high < other.low


def why(column, name):
    return WHY.get((column, name)) or WHY.get((column, name.split(",")[0])) or WHY.get((column, None), "")


def judge(results, contestants):
    row, better, led = results.row, [], []
    if not results.last("libaprof") or len(results.rounds["libaprof"]) < 3:
        return
    for column in row.columns:
        ours = results.column("libaprof", column)
        if column not in BETTER or ours is None:
            continue
        rivals = [(c.name, results.column(c.name, column)) for c in contestants if not c.name.startswith("nothing") and c.name != "libaprof"]
        rivals = [(name, theirs) for name, theirs in rivals if theirs]
        ahead = [(name, theirs) for name, theirs in rivals if is_better(column, theirs, ours)]
        better += ["%s in %s (%s, libaprof %s): %s" % (name, TITLES[column], cell(column, theirs), cell(column, ours), why(column, name))
                   for name, theirs in ahead]
        if rivals and all(is_better(column, ours, theirs) for _, theirs in rivals):
            led.append(TITLES[column])
    print("libaprof is ahead of all in: %s" % (", ".join(led) or "nothing beyond the noise"))
    for line in better:
        print("better: " + line)
    print(flush=True)


def present(python, row, only):
    """(contestants, [(name, why it is absent)])."""
    here, absent = [], []
    for contestant in profilers.ALL:
        if only and contestant.name.split(",")[0] not in only and contestant.name not in only and contestant.name != "nothing":
            continue
        try:
            contestant.check(python, row)
            here.append(contestant)
        except packages.Absent as reason:
            if str(reason) != "not for this row":
                absent.append((contestant.name, str(reason)))
    return here, absent


def why_not(python, row):
    if row.load and not shutil.which("wrk"):
        return "no wrk here"
    if row.kind == "service" and python.ask("import aiohttp") is None:
        return "this Python has no aiohttp"
    if row.large:
        try:
            packages.large_package()
        except packages.Absent as reason:
            return str(reason)
    return None


def compare(python, row, options):
    refused = why_not(python, row)
    if refused:
        print("%s, %s: not run: %s\n" % (row.what, python.label, refused), flush=True)
        return 0
    here, absent = present(python, row, options.only.split(",") if options.only else [])
    began = time.monotonic()
    results = take_turns(python, row, here, options.pairs, options.seconds)
    print("%s (%s), %s: %d rounds of %g s, took %.0f s" % (row.what, row.name, python.label, options.pairs, options.seconds, time.monotonic() - began))
    show(results, here, absent)
    judge(results, here)
    return int("libaprof" in results.failed or "nothing" in results.failed)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--pairs", type=int, default=30)
    parser.add_argument("--seconds", type=float, default=2)
    parser.add_argument("--rows", default=",".join(row.name for row in ROWS))
    parser.add_argument("--only", default="", help="contestants, by name")
    parser.add_argument("--python", metavar="LABEL", action="append")
    options = parser.parse_args()
    pythons = [p for label in options.python or [None] for p in h.usable(h.pythons(label))[0]]
    failed = 0
    for python in pythons:
        for row in [r for r in ROWS if r.name in options.rows.split(",")]:
            failed += compare(python, row, options)
    h.remove_work()
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
