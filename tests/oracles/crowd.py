# SPDX-License-Identifier: MIT
"""crowd: a thread for each request, most of them gone before anybody looks.

    crowd.py SECONDS

Requests of three kinds use 1, 2 and 6 ms of CPU in functions of their own. Truth: CPU of each.
"""
import random
import sys
import threading
import time

from truth import burn, leave

used = {}


def small():
    burn(0.001)


def medium():
    burn(0.002)


def large():
    burn(0.006)


def request(kind):
    before = time.thread_time()
    kind()
    used[kind.__name__] = used.get(kind.__name__, 0) + time.thread_time() - before


def main():
    dice, end, count = random.Random(7), time.monotonic() + float(sys.argv[1]), 0
    while time.monotonic() < end:
        thread = threading.Thread(target=request, args=(dice.choice((small, small, small, medium, medium, large)),))
        thread.start()
        thread.join()
        count += 1
    leave({"used": used, "threads": count})


main()
