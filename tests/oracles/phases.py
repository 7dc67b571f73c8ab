# SPDX-License-Identifier: MIT
"""phases: eight threads, each works 1 ms every 20 ms at its own phase against the kernel's tick.

Their turns are 2.5 ms apart, so that none meets another; on a kernel that ticks
every 4 ms their phases are 0, 0.5, ... 3.5 ms. The tick is found by watching the
coarse clock step. Each thread has a function of its own for its work, generated,
so that no frame is shared.
"""
import sys
import threading
import time

from truth import leave

COARSE = getattr(time, "CLOCK_MONOTONIC_COARSE", 6)
PHASES, CYCLE, WORK, GAP = 8, 0.020, 0.001, 0.0025

SOURCE = """
def work_{n}(life, cpu=time.thread_time):
    before = cpu()
    end = before + {work}
    while cpu() < end:
        for _ in range(50):
            pass
    life["work"] += cpu() - before


def rest_{n}(until, now=time.monotonic):
    time.sleep(max(0, until - now()))


def turn_{n}(first, count, life, cpu=time.thread_time):
    before = cpu()
    for i in range(count):
        rest_{n}(first + i * {cycle})
        work_{n}(life)
    life["cpu"] += cpu() - before
"""
for number in range(PHASES):
    exec(compile(SOURCE.format(n=number, work=WORK, cycle=CYCLE), "phases_%d.py" % number, "exec"), globals())


def next_tick():
    """The moment at which the coarse clock steps."""
    before = time.clock_gettime(COARSE)
    while time.clock_gettime(COARSE) == before:
        pass
    return time.monotonic()


def main():
    seconds = float(sys.argv[1])
    lives = [{"work": 0.0, "cpu": 0.0} for _ in range(PHASES)]
    first = next_tick() + 10 * CYCLE
    threads = [threading.Thread(target=globals()["turn_%d" % n], args=(first + n * GAP, int(seconds / CYCLE), lives[n]))
               for n in range(PHASES)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    leave({"threads": lives, "tick": time.clock_getres(COARSE)})


main()
