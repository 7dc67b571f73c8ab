# SPDX-License-Identifier: MIT
"""busy: does a fixed kind of work for SECONDS and prints rounds a wall second, rounds a CPU second.

    busy.py calls|errors|garbage|threads|asyncio|labelled|stands|waiting|beside|idle SECONDS

errors: half of the time goes by while an exception is handled.
garbage: half of the time or so it is collected.
labelled: as asyncio, of tasks that have names and a context variable of their own.
stands: as asyncio, and half of the time the loop's thread stands in a call.
threads: four of them want the GIL all the time.
waiting: as asyncio, beside 10,000 tasks of four coroutines that wait all the time.
beside: as calls, in steps of 5 ms, beside these.
"""
import asyncio
import concurrent.futures
import contextvars
import gc
import sys
import time

import waiting as crowd

WAITING = 10000
STEP = 0.005  # seconds

route = contextvars.ContextVar("route")


def fib(n):
    return n if n < 2 else fib(n - 1) + fib(n - 2)


def calls(end):
    rounds = 0
    while time.monotonic() < end:
        fib(14)
        rounds += 1
    return rounds


def errors(end):
    rounds = 0
    while time.monotonic() < end:
        fib(14)
        try:
            raise ValueError
        except ValueError:
            fib(14)
        rounds += 1
    return rounds


def garbage(end):
    gc.disable()
    rounds, heap = 0, [[] for _ in range(20000)]  # it is looked through each time
    while time.monotonic() < end:
        began = time.monotonic()
        gc.collect()
        took = time.monotonic() - began
        rounds += calls(time.monotonic() + took)
    del heap
    return rounds


def threads(end):
    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        return sum(pool.map(calls, [end] * 4))


async def step(n):
    await asyncio.sleep(0)
    return n


async def service(end):
    rounds = 0
    while time.monotonic() < end:
        await asyncio.gather(*[step(i) for i in range(10)])
        rounds += 1
    return rounds


async def labelled_step(n):
    route.set("/route/%d" % n)
    return await step(n)


async def labelled(end):
    rounds = 0
    while time.monotonic() < end:
        await asyncio.gather(*[asyncio.create_task(labelled_step(i), name="step %d" % i) for i in range(10)])
        rounds += 1
    return rounds


async def stands(end):
    rounds = 0
    while time.monotonic() < end:
        rounds += await service(time.monotonic() + STEP)
        time.sleep(STEP)
    return rounds


async def compute(end):
    rounds = 0
    while time.monotonic() < end:
        rounds += calls(time.monotonic() + STEP)
        await asyncio.sleep(0)
    return rounds


async def serve(work, seconds, waiting=0):
    event = asyncio.Event()
    tasks = crowd.make_tasks(waiting, event)
    await asyncio.sleep(0)  # until they wait
    wall, cpu = time.monotonic(), time.thread_time()
    rounds = await work(wall + seconds)
    figures = rounds / (time.monotonic() - wall), rounds / (time.thread_time() - cpu)
    event.set()
    await asyncio.gather(*tasks)
    return figures


SERVICES = {"asyncio": (service, 0), "labelled": (labelled, 0), "stands": (stands, 0), "waiting": (service, WAITING), "beside": (compute, WAITING)}


def work(kind, seconds):
    wall, cpu, rounds = time.monotonic(), time.thread_time(), 1
    if kind == "idle":
        time.sleep(seconds)
    else:
        rounds = {"calls": calls, "errors": errors, "garbage": garbage, "threads": threads}[kind](wall + seconds)
    return rounds / (time.monotonic() - wall), rounds / (time.thread_time() - cpu)


def main():
    kind, seconds = sys.argv[1], float(sys.argv[2])
    if kind in SERVICES:
        steps, waiting = SERVICES[kind]
        print(*asyncio.run(serve(steps, seconds, waiting)))
    else:
        print(*work(kind, seconds))


main()
