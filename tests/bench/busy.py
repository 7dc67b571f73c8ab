# SPDX-License-Identifier: MIT
"""busy: does a fixed kind of work for SECONDS and prints rounds a wall second, rounds a CPU second.

    busy.py calls|asyncio|idle SECONDS
"""
import asyncio
import sys
import time


def fib(n):
    return n if n < 2 else fib(n - 1) + fib(n - 2)


def calls(end):
    rounds = 0
    while time.monotonic() < end:
        fib(14)
        rounds += 1
    return rounds


async def step(n):
    await asyncio.sleep(0)
    return n


async def service(end):
    rounds = 0
    while time.monotonic() < end:
        await asyncio.gather(*[step(i) for i in range(10)])
        rounds += 1
    return rounds


def main():
    kind, seconds = sys.argv[1], float(sys.argv[2])
    wall, cpu = time.monotonic(), time.thread_time()
    if kind == "idle":
        time.sleep(seconds)
        rounds = 1
    else:
        rounds = calls(wall + seconds) if kind == "calls" else asyncio.run(service(wall + seconds))
    print(rounds / (time.monotonic() - wall), rounds / (time.thread_time() - cpu))


main()
