#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""threads: what a tick costs with so many threads that stand still.

    tests/bench/threads.py [--threads N,N...] [--runs N] [--seconds S] [--python LABEL] [--library FILE]

Microseconds of the sampler's CPU a tick, from the metadata of windows of one second
without the first ones: median over all runs, and their range. With APROF_MAX_THREADS
as it is by default, and with all threads read in every tick (0). --library: another
build of ours, run in turn with this one.
"""
import argparse
import os
import statistics
import sys

sys.dont_write_bytecode = True
HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(os.path.dirname(HERE), "integration"))

import harness as h  # noqa: E402

PROGRAM = os.path.join(HERE, "standing.py")
WARM_WINDOWS = 3


def costs(python, threads, seconds, library, settings):
    """µs a tick of each window; and how often a tick came, of how many threads it read how many."""
    folder = h.fresh_folder("standing")
    env = dict({"LD_PRELOAD": library, "APROF_DIR": os.path.join(folder, "spool"), "APROF_WINDOW": "1", "APROF_OVERHEAD": "0"}, **settings)
    started = h.Run([PROGRAM, str(threads), "%g" % seconds], "standing", python=python, preload=False, folder=folder, env=env)
    result = started.finish(30 * seconds + 120)
    h.need(result.status == 0, "status %d: %s", result.status, h.tail(result.err))
    one = h.Spool(result.spool).one()
    found = [one.windows[seq].meta for seq in sorted(one.windows)][WARM_WINDOWS:-1]
    h.need(found, "no window")
    ticks = [m["rate"]["got"] * (m["end_us"] - m["start_us"]) / 1e6 for m in found]
    return [m["sampler_cpu_us"] / t for m, t in zip(found, ticks)], sum(ticks) / len(ticks), max(m["threads_peak"] for m in found)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--threads", default="10,60,300,1000,5000")
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=8)
    parser.add_argument("--python", metavar="LABEL")
    parser.add_argument("--library", metavar="FILE")
    options = parser.parse_args()
    kinds = [("as it is", h.LIBRARY, {}), ("all read", h.LIBRARY, {"APROF_MAX_THREADS": "0"})]
    if options.library:
        kinds.append(("the other", os.path.abspath(options.library), {"APROF_LOG": "quiet"}))
    print("%-16s %8s  %-10s %14s  %s" % ("python", "threads", "", "µs a tick", "(range)"))
    for python in h.usable(h.pythons(options.python))[0]:
        for threads in map(int, options.threads.split(",")):
            found = {name: [] for name, _, _ in kinds}
            for _ in range(options.runs):
                for name, library, settings in kinds:
                    got, rate, peak = costs(python, threads, options.seconds + threads / 1000, library, settings)
                    found[name] += got
            for name, _, _ in kinds:
                print("%-16s %8d  %-10s %14.0f  (%.0f to %.0f)" % (python.label, threads, name, statistics.median(found[name]),
                                                                 min(found[name]), max(found[name])), flush=True)
    h.remove_work()
    return 0


if __name__ == "__main__":
    sys.exit(main())
