#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""cost: what the profiler costs, in pairs of runs with and without it.

    tests/bench/cost.py [--pairs N] [--starts N] [--python LABEL]

Start of a program that is not Python and of Python (medians of the differences of
paired runs), throughput of busy programs (median of the pairs' ratios and its
lower 95 % bound; the row "nothing" pairs runs without the profiler and shows the
noise), and the CPU of the sampler and its handlers as the metadata has it.
"""
import argparse
import math
import os
import statistics
import sys
import time

sys.dont_write_bytecode = True
HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(os.path.dirname(HERE), "integration"))

import harness as h  # noqa: E402

BUSY = os.path.join(HERE, "busy.py")


def environment(preload, spool):
    env = dict(h.clean_environment())
    if preload:
        env.update(LD_PRELOAD=h.LIBRARY, APROF_DIR=spool)
    return env


def start_time(words, env):
    """Seconds from posix_spawn to the end of the program."""
    began = time.perf_counter()
    pid = os.posix_spawnp(words[0], words, env)
    os.waitpid(pid, 0)
    return time.perf_counter() - began


def median_error(values):
    """Median and the half of its 95 % interval, from the order statistics."""
    values = sorted(values)
    n = len(values)
    reach = 0.98 * math.sqrt(n)
    low, high = values[max(0, int(n / 2 - reach))], values[min(n - 1, int(math.ceil(n / 2 + reach)))]
    return statistics.median(values), low, high


def start_differences(words, count):
    """ms more with the profiler, of each pair, and ms without. The two kinds take turns, in an order that changes."""
    folder = h.fresh_folder("start")
    kinds = [environment(False, ""), environment(True, os.path.join(folder, "spool"))]
    differences, alone = [], []
    for i in range(count + 3):
        took = {}
        for which in ((0, 1), (1, 0))[i % 2]:
            took[which] = start_time(words, kinds[which])
        if i >= 3:  # the first ones warm the caches
            differences.append(1e3 * (took[1] - took[0]))
            alone.append(1e3 * took[0])
    return differences, alone


def start_cost(words, count, label, limit_ms):
    differences, alone = start_differences(words, count)
    middle, low, high = median_error(differences)
    print("start  %-28s %7.3f ms more (%.3f to %.3f), %.2f without; goal %.1f" % (label, middle, low, high, statistics.median(alone), limit_ms), flush=True)


def rounds(python, kind, seconds, preload, folder, n):
    result = h.run([BUSY, kind, "%g" % seconds], "busy", python=python, preload=preload, folder=None,
                   settings={"APROF_DIR": os.path.join(folder, "spool-%d" % n)} if preload else None)
    h.need(result.status == 0, "busy.py: status %d: %s", result.status, h.tail(result.err))
    return [float(x) for x in result.out.split()]


def ratios(python, kind, pairs, other=True, seconds=0.5):
    """Rounds with the profiler over those without, of each pair: by the wall clock, by CPU."""
    folder = h.fresh_folder("throughput")
    by_wall, by_cpu = [], []
    for n in range(pairs):
        pair = {}
        for which in ((0, 1), (1, 0))[n % 2]:
            pair[which] = rounds(python, kind, seconds, bool(which and other), folder, n)
        by_wall.append(pair[1][0] / pair[0][0])
        by_cpu.append(pair[1][1] / pair[0][1])
    return by_wall, by_cpu


def throughput(python, kind, pairs, other, label):
    wall, cpu = map(median_error, ratios(python, kind, pairs, other))
    print("rounds %-8s %-8s %-12s by wall %.3f (%.3f to %.3f), by CPU %.3f (%.3f to %.3f), %d pairs; goal 0.98 at the lower bound" % (
        kind, python.label, label, *wall, *cpu, pairs), flush=True)


def own_shares(python, kind, seconds, settings=None):
    """(% of the sampler, % of the handlers) of the process's CPU, or of a core; and the process."""
    result = h.run([BUSY, kind, "%g" % seconds], "share", python=python, timeout=seconds + 60, settings=settings)
    process = h.Spool(result.spool).one()
    sampler, handler = process.counter("sampler_cpu_us"), process.counter("handler_us")
    whole = sum(m["end_us"] - m["start_us"] for m in process.metas())
    base = whole if kind == "idle" else process.counter("process_cpu_us")
    return 100 * sampler / base, 100 * handler / base, process


def own_share(python, kind, seconds):
    sampler, handlers, _ = own_shares(python, kind, seconds)
    print("own    %-8s %-8s sampler %.3f %%, handlers %.3f %% of %s" % (
        kind, python.label, sampler, handlers, "a core" if kind == "idle" else "the process's CPU"), flush=True)


def attempt(function, *args):
    try:
        function(*args)
    except h.Failure as reason:
        print("failed: %s" % reason)
        return 1
    return 0


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--pairs", type=int, default=30)
    parser.add_argument("--starts", type=int, default=400)
    parser.add_argument("--python", metavar="LABEL")
    options = parser.parse_args()
    pythons, _ = h.usable(h.pythons(options.python))
    failed = attempt(start_cost, ["/bin/true"], options.starts, "true", 0.1)
    for python in [p for p in pythons if not p.prefix]:  # what leads into a folder would be measured too
        failed += attempt(start_cost, python.words + ["-c", "pass"], max(20, options.starts // 8), python.label + " -c pass", 2.0)
    for python in pythons:
        for kind, seconds in (("calls", 5), ("asyncio", 5), ("beside", 5), ("waiting", 5), ("idle", 5)):
            failed += attempt(own_share, python, kind, seconds)
    for python in pythons[-1:] if options.python is None else pythons:
        failed += attempt(throughput, python, "calls", options.pairs, False, "nothing")
        for kind in ("calls", "asyncio", "beside", "waiting"):
            failed += attempt(throughput, python, kind, options.pairs, True, "libaprof")
    h.remove_work()
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
