# SPDX-License-Identifier: MIT
"""steady: works without a pause for SECONDS, then waits once in a while: a short time and a long one by turns.

    steady.py SECONDS ROUNDS

Truth: seconds of each function on the wall; wall and CPU of the work without a pause.
"""
import sys
import time

from truth import burn, leave

SHORT, LONG, WORK = 0.03, 0.12, 0.3
took = {"work": 0, "short": 0, "long": 0}


def work(seconds):
    before = time.monotonic()
    burn(seconds)
    took["work"] += time.monotonic() - before


def short():
    before = time.monotonic()
    time.sleep(SHORT)
    took["short"] += time.monotonic() - before


def long():
    before = time.monotonic()
    time.sleep(LONG)
    took["long"] += time.monotonic() - before


def main():
    wall, cpu = time.monotonic(), time.thread_time()
    work(float(sys.argv[1]))
    steady = {"wall": time.monotonic() - wall, "cpu": time.thread_time() - cpu}
    for _ in range(int(sys.argv[2])):
        for wait in (short, long):
            work(WORK)
            wait()
    leave({"took": took, "steady": steady})


if __name__ == "__main__":
    main()
