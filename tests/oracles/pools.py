# SPDX-License-Identifier: MIT
"""pools: multiprocessing pools. pools.py METHOD, METHOD one of fork, spawn, forkserver, terminate."""
import multiprocessing
import os
import sys
import time

from truth import burn, leave


def task(n):
    before = time.thread_time()
    burn(0.1)
    burnt = time.thread_time() - before
    time.sleep(0.01)
    return os.getpid(), time.process_time(), burnt


def main():
    how = sys.argv[1]
    context = multiprocessing.get_context("fork" if how == "terminate" else how)
    pool = context.Pool(2)
    done = pool.map(task, range(10), 1)
    if how == "terminate":
        pool.terminate()
    pool.close()
    pool.join()
    used = {}
    for pid, cpu, burnt in done:
        whole, tasks = used.get(pid, (0, 0))
        used[pid] = max(cpu, whole), tasks + burnt
    leave({"workers": used, "pid": os.getpid(), "cpu": time.process_time()})


if __name__ == "__main__":
    main()
