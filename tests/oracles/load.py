# SPDX-License-Identifier: MIT
"""load: works hard and hardly at all, by turns, in functions of known CPU; and knows what its profiler used.

    load.py SECONDS TURNS

Each turn lasts SECONDS: the even ones work all the time, the odd ones a tenth of it.
Truth: CPU of each function and of the process; CPU of the thread named aprof (0: none).
"""
import sys
import time

from truth import burn, leave, profiler_cpu

used = {}


def note(name, before):
    used[name] = used.get(name, 0) + time.thread_time() - before


def hard_short(seconds):
    before = time.thread_time()
    burn(seconds)
    note("hard_short", before)


def hard_long(seconds):
    before = time.thread_time()
    burn(seconds)
    note("hard_long", before)


def light_short(seconds):
    before = time.thread_time()
    burn(seconds)
    note("light_short", before)


def light_long(seconds):
    before = time.thread_time()
    burn(seconds)
    note("light_long", before)


def turn(seconds, hard):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if hard:
            hard_short(0.004)
            hard_long(0.012)
        else:
            light_short(0.002)
            light_long(0.006)
            time.sleep(0.072)


def main():
    for n in range(int(sys.argv[2])):
        turn(float(sys.argv[1]), n % 2 == 0)
    leave({"used": used, "process": time.process_time(), "profiler": profiler_cpu()})


main()
