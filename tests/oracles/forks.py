# SPDX-License-Identifier: MIT
"""forks: forks again and again while threads burn through ever new stacks.

    forks.py COUNT [THREADS]

Every third child ends at once, the others burn 20 and 60 ms. Each child notes
the CPU time of its one thread; the parent how each one ended. One thread that hangs hangs all:
the checker's time limit sees it.
"""
import os
import sys
import threading
import time

from truth import append, burn, leave

over = threading.Event()


def left(bits, depth):
    if depth:
        (left if bits & 1 else right)(bits >> 1, depth - 1)


def right(bits, depth):
    if depth:
        (left if bits & 1 else right)(bits >> 1, depth - 1)


def wander(life):
    """2^24 different stacks: whoever records them allocates without pause."""
    n = 1
    while not over.is_set():
        n = n * 1103515245 + 12345 & 0x7fffffff
        left(n >> 7, 24)
        if not n & 255:
            time.sleep(0)
    life.append(time.thread_time())


def child(kind):
    status = 1
    try:
        burn((0, 0.02, 0.06)[kind])
        append({"pid": os.getpid(), "cpu": time.thread_time(), "kind": kind})
        status = 0
    finally:
        os._exit(status)


def main():
    count, lives, ended, pending = int(sys.argv[1]), [], [], []
    burners = int(sys.argv[2]) if len(sys.argv) > 2 else 2
    if burners > 2:
        sys.setswitchinterval(0.0005)  # or this thread would wait for all the others after each fork
    threads = [threading.Thread(target=wander, args=(lives,)) for _ in range(burners)]
    for thread in threads:
        thread.start()
    for n in range(count):
        pid = os.fork()
        if pid == 0:
            child(n % 3)
        pending.append(pid)
        if len(pending) == 4:
            ended += [os.waitpid(p, 0)[1] for p in pending]
            pending = []
    ended += [os.waitpid(p, 0)[1] for p in pending]
    over.set()
    for thread in threads:
        thread.join()
    leave({"count": count, "bad": [s for s in ended if s], "pid": os.getpid(), "cpu": time.process_time(),
           "times": list(os.times())[:4]})


main()
