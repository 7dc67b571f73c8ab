# SPDX-License-Identifier: MIT
"""async_law: tasks that know how long they lived, each a leaf all its life.

    async_law.py long SECONDS          ten tasks, of SECONDS/10, 2 SECONDS/10 ...
    async_law.py waiting COUNT SECONDS so many at once
    async_law.py busy COUNT SECONDS    the same beside a coroutine that computes; notes what its profiler used
    async_law.py short SECONDS         tasks of 3, 30 and 300 ms with pauses between, some at a time
    async_law.py masses COUNT          so many, each with a name of its own; notes its memory on the way
    async_law.py cycle SECONDS         tasks that wait for each other, for ever

A life is from just before the task was made to its last line.
"""
import asyncio
import os
import random
import sys
import time

from async_truth import leave, named, now
from truth import burn, profiler_cpu

lives = {}


async def life(kind, born, seconds):
    await asyncio.sleep(seconds)
    lives[kind] = lives.get(kind, 0) + now() - born


functions = {}


def bear(kind, seconds, **options):
    if kind not in functions:
        functions[kind] = named("life_" + kind, life)
    return asyncio.create_task(functions[kind](kind, now(), seconds), **options)


async def long(seconds):
    await asyncio.gather(*(bear("%d" % n, seconds * n / 10) for n in range(1, 11)))


async def waiting(count, seconds):
    await asyncio.gather(*(bear("waiting", seconds) for _ in range(int(count))))


async def busy(count, seconds):
    waits = asyncio.gather(*(bear("waiting", seconds) for _ in range(int(count))))
    end = now() + seconds
    while now() < end:
        burn(0.001)
        await asyncio.sleep(0)
    spent = {"process": time.process_time(), "profiler": profiler_cpu()}
    await waits
    return spent


async def bearer(kind, seconds, end, dice):
    while now() < end:
        await bear(kind, seconds)
        await asyncio.sleep(dice.uniform(0.5, 1.5) * seconds)


async def short(seconds):
    dice, end = random.Random(3), now() + seconds
    plan = {"3ms": (0.003, 8), "30ms": (0.030, 16), "300ms": (0.300, 16)}
    await asyncio.gather(*(bearer(kind, length, end, dice) for kind, (length, abreast) in plan.items() for _ in range(abreast)))


def resident():
    with open("/proc/self/statm") as f:
        return int(f.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


async def bears_many(count, sizes, dice):
    """One after the other, so that one is alive at every moment."""
    for n in range(count):
        await bear("mass", dice.uniform(0, 0.006), name="request %d of %s" % (n, "x" * dice.randrange(50)))
        if sizes is not None and n % (count // 50) == 0:
            sizes.append(resident())


async def masses(count):
    sizes, dice = [], random.Random(5)
    await asyncio.gather(*(bears_many(int(count) // 100, None if n else sizes, dice) for n in range(100)))
    return sizes


# ---------------------------------------------------------------- cycles

tasks = {}


async def cycle_a():
    await tasks["b"]


async def cycle_b():
    await tasks["c"]


async def cycle_c():
    await tasks["a"]


async def leafy_a():
    await tasks["lb"]


async def leafy_b():
    await asyncio.gather(tasks["la"], tasks["lx"])


async def leafy_x(seconds):
    await asyncio.sleep(seconds + 0.1)


async def cycle(seconds):
    for name, function in (("a", cycle_a), ("b", cycle_b), ("c", cycle_c), ("la", leafy_a), ("lb", leafy_b)):
        tasks[name] = asyncio.create_task(function())
    tasks["lx"] = asyncio.create_task(leafy_x(seconds))
    await asyncio.sleep(seconds)
    leave({"seconds": seconds})
    os._exit(0)  # cancelling would go round for ever


KINDS = {"long": long, "waiting": waiting, "busy": busy, "short": short, "masses": masses, "cycle": cycle}
began = now()
noted = asyncio.run(KINDS[sys.argv[1]](*map(float, sys.argv[2:])))
leave({"lives": lives, "noted": noted, "seconds": now() - began})
