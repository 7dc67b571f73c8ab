#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""draw: how far off the share of a wait is, by the way threads are chosen.

    tests/bench/draw.py [--runs N] [--threads N] [--most N] [--seconds S]

A thread goes round through waits of known length; a tick, jittered as the sampler's,
looks at some of the threads; what passed between two looks at a thread goes half to
where it stood at the first, half to where it stood at the second (sampler/account.h).
Printed: by how many points the share of the first wait is off, on average (bias) and
as a standard deviation, over many runs. Nothing is measured here: it is a calculation
with dice, the same for the same seed.

    reservoir  a new choice at each tick, Algorithm R: any thread at any tick
    rounds     each thread once a round, in an order made anew (sampler/draw.h)
    fixed      each thread once a round, in the same order
"""
import argparse
import random
import statistics

TICK, JITTER = 0.010, 0.2


def programs(round_s):
    """(name, lengths of its waits, by how much each varies)."""
    return [("waits of 150 and 50 ms", (0.150, 0.050), 0.5), ("waits of 15 and 5 ms", (0.015, 0.005), 0.5),
            ("waits of 2 s and 0.5 s", (2.0, 0.5), 0.5), ("a cycle as long as a round, exact", (0.75 * round_s, 0.25 * round_s), 0.0),
            ("a cycle of two rounds, exact", (1.5 * round_s, 0.5 * round_s), 0.0)]


def looks(how, rounds, slices, most, threads):
    """The ticks at which one thread is looked at."""
    if how == "reservoir":
        return [t for t in range(rounds * slices) if random.random() * threads < most]
    if how == "rounds":
        return [r * slices + random.randrange(slices) for r in range(rounds)]
    return [r * slices for r in range(rounds)]


def where(lengths, varies, moments):
    """Whether it stands in its first wait at each of these moments, and its true share of that until the last."""
    found, end, first, inside = [], 0.0, True, 0.0
    end = random.uniform(0, lengths[0])
    begin = 0.0
    for moment in moments:
        while end <= moment:
            inside += (end - begin) * first
            begin, first = end, not first
            end += lengths[not first] * (1 + random.uniform(-varies, varies))
        found.append(first)
    inside += (moments[-1] - begin) * first
    return found, inside / moments[-1]


def share(found, moments):
    """What is booked on the first wait."""
    booked = found[0] * moments[0]
    for i in range(1, len(moments)):
        booked += (moments[i] - moments[i - 1]) * (found[i - 1] + found[i]) / 2
    return booked / moments[-1]


def run(how, program, options, slices):
    _, lengths, varies = program
    rounds = int(options.seconds / TICK / slices)
    at, moments = [], []
    now = 0.0
    for _ in range(rounds * slices):
        now += TICK * (1 + random.uniform(-JITTER, JITTER))
        at.append(now)
    moments = [at[t] for t in looks(how, rounds, slices, options.most, options.threads)]
    found, true = where(lengths, varies, moments)
    return share(found, moments) - true


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--runs", type=int, default=1000)
    parser.add_argument("--threads", type=int, default=300)
    parser.add_argument("--most", type=int, default=64)
    parser.add_argument("--seconds", type=float, default=20)
    options = parser.parse_args()
    slices = -(-options.threads // options.most)
    print("%d threads, %d a tick, %g s, %d runs; points off: bias (its standard error), deviation of a run" % (
        options.threads, options.most, options.seconds, options.runs))
    for program in programs(TICK * slices):
        for how in ("reservoir", "rounds", "fixed"):
            random.seed(20261130)
            off = [100 * run(how, program, options, slices) for _ in range(options.runs)]
            spread = statistics.pstdev(off)
            print("%-36s %-10s %+.2f (%.2f)  %.2f" % (program[0], how, statistics.fmean(off), spread / options.runs ** 0.5, spread), flush=True)


if __name__ == "__main__":
    main()
