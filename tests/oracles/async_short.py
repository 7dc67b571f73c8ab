# SPDX-License-Identifier: MIT
"""async_short: tasks that hardly live, of two callers; no stack may hold functions of both.

    async_short.py short SECONDS      each caller gathers 20 new tasks at a time, as fast as it goes
    async_short.py alternate SECONDS  a task that computes and one that waits, in turns of some ms

Every function's name begins with its caller's, left or right.
"""
import asyncio
import sys

from async_truth import burn, leave, now

made = {"left": 0, "right": 0}


async def left_inner():
    await asyncio.sleep(0)


async def left_task():
    await left_inner()
    await asyncio.sleep(0)


async def left(end):
    while now() < end:
        await asyncio.gather(*(left_task() for _ in range(20)))
        made["left"] += 20


async def right_inner(over):
    await over


async def right_task(over):
    await right_inner(over)


async def right(end):
    loop = asyncio.get_running_loop()
    while now() < end:
        over = loop.create_future()
        loop.call_later(0.0005, over.set_result, None)
        tasks = [asyncio.create_task(right_task(over)) for _ in range(20)]
        await asyncio.wait(tasks)
        made["right"] += 20


computing = [0.0]


def left_burns():
    began = now()
    burn(0.003)
    computing[0] += now() - began


async def left_computes():
    left_burns()
    await asyncio.sleep(0.003)


async def left_alternates(end):
    while now() < end:
        await asyncio.create_task(left_computes())
        made["left"] += 1


async def right_waits():
    await asyncio.sleep(0.004)


async def right_alternates(end):
    while now() < end:
        await asyncio.create_task(right_waits())
        made["right"] += 1


async def main():
    end = now() + float(sys.argv[2])
    began = now()
    both = (left, right) if sys.argv[1] == "short" else (left_alternates, right_alternates)
    await asyncio.gather(*(asyncio.create_task(f(end)) for f in both))
    return now() - began


seconds = asyncio.run(main())
leave({"made": made, "seconds": seconds, "computing": computing[0]})
