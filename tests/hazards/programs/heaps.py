# SPDX-License-Identifier: MIT
"""heaps: an allocator at work: threads, large blocks that come and go, forks in the middle.

What it prints does not depend on who allocates: sums, and exit statuses of its children.
"""
import os
import threading
import time
import warnings

ROUNDS = 6
SECONDS = 0.2


def churn(seed, results):
    """Small and large blocks, some handed to another thread to be freed there."""
    total = 0
    for n in range(ROUNDS * 20):
        small = [bytes(i % 700) for i in range(400)]
        large = bytearray(1 << (16 + (n + seed) % 7))
        large[-1] = n & 255
        total += len(small[n % 400]) + large[-1]
        results[seed] = small[:50]
    results[seed] = total


def burn():
    end = time.thread_time() + SECONDS
    while time.thread_time() < end:
        [bytes(n) for n in range(0, 3000, 100)]


def child():
    blocks = [bytes(n * 100) for n in range(200)]
    del blocks[::2]
    os._exit(len(blocks) % 100)


def main():
    # Whether Python warns depends on whether the threads have ended by then.
    warnings.simplefilter("ignore", DeprecationWarning)
    results = {}
    threads = [threading.Thread(target=churn, args=(n, results)) for n in range(3)]
    for thread in threads:
        thread.start()
    statuses = []
    for _ in range(ROUNDS):
        pid = os.fork()
        if pid == 0:
            child()
        statuses.append(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
    for thread in threads:
        thread.join()
    burn()
    print(sorted(results.items()), statuses)


main()
