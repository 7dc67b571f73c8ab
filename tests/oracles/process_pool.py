# SPDX-License-Identifier: MIT
"""process_pool: tasks that wait for work that a pool's processes do, and know for how long.

    process_pool.py

A worker's function computes and sleeps; two tasks each await one call of it.
"""
import asyncio
import collections
import concurrent.futures
import os
import time

from truth import burn, leave

waited = collections.Counter()


def warm_up():
    pass


def of_process(compute, wait):
    """What the worker used of its CPU."""
    cpu = time.thread_time()
    burn(compute)
    time.sleep(wait)
    return time.thread_time() - cpu


async def computes(pool):
    began = time.monotonic()
    did = await asyncio.get_running_loop().run_in_executor(pool, of_process, 0.5, 0)
    waited["computes"] += time.monotonic() - began
    return did


async def sleeps(pool):
    began = time.monotonic()
    did = await asyncio.get_running_loop().run_in_executor(pool, of_process, 0.1, 0.6)
    waited["sleeps"] += time.monotonic() - began
    return did


async def main():
    with concurrent.futures.ProcessPoolExecutor(2) as pool:
        await asyncio.gather(*(asyncio.get_running_loop().run_in_executor(pool, warm_up) for _ in range(2)))
        did = await asyncio.gather(computes(pool), sleeps(pool))
    leave({"pid": os.getpid(), "waited": waited, "cpu": sum(did)})


if __name__ == "__main__":
    asyncio.run(main())
