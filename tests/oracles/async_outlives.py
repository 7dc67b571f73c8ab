# SPDX-License-Identifier: MIT
"""async_outlives: tasks that live longer than the coroutine that made them.

    async_outlives.py outlives|creators|spawn SECONDS

outlives: of each second a task is for 0.4 s the child of create_task(), which made
it, and for 0.6 s that of main(), which then awaits it. creators: tasks that nobody
awaits, made in one way each; the truth names the stack of each. spawn: three calls
of spawn() in a row, each where the one before it was; its task lives on.
"""
import asyncio
import sys

from async_truth import leave, named, now

seconds = float(sys.argv[2])


async def outliving():
    await asyncio.sleep(1.0)


async def create_task():
    task = asyncio.create_task(outliving())
    await asyncio.sleep(0.4)
    return task


async def outlives():
    times = {"create_task": 0.0, "main": 0.0}
    for _ in range(round(seconds)):
        began = now()
        task = await create_task()
        made = now()
        await task
        times["create_task"] += made - began
        times["main"] += now() - made
    return times


# ---------------------------------------------------------------- tasks that nobody awaits

async def stays():
    await asyncio.sleep(seconds)


kept = []


def make(name):
    kept.append(asyncio.get_running_loop().create_task(named(name, stays)()))


async def alive():
    make("of_alive")
    await asyncio.sleep(seconds)


async def gone_maker():
    make("of_gone")


async def gone_middle():
    await gone_maker()


async def gone_outer():
    await gone_middle()
    await asyncio.sleep(seconds)


async def inner_maker():
    make("of_inner")
    await asyncio.sleep(0)


async def inner_middle():
    await inner_maker()
    await asyncio.sleep(seconds)


async def inner_outer():
    await inner_middle()


async def over():
    make("of_over")


async def calls_back():
    asyncio.get_running_loop().call_soon(make, "of_callback")
    await asyncio.sleep(seconds)


async def library_helper(name):
    make(name)
    await asyncio.sleep(0)


async def uses_library():
    await library_helper("of_library")
    await asyncio.sleep(seconds)


async def generates():
    make("of_generator")
    yield 1
    await asyncio.sleep(seconds)
    yield 2


async def consumes():
    async for _ in generates():
        pass


async def group_body():
    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(named("of_group", stays)())
        await asyncio.sleep(seconds)


async def creators():
    under = {"of_alive": ["alive"], "of_gone": ["gone_outer"], "of_inner": ["inner_outer", "inner_middle"], "of_over": None,
             "of_callback": None, "of_library": ["uses_library"], "of_generator": ["consumes", "generates"], "of_group": ["group_body"]}
    await asyncio.gather(alive(), gone_outer(), inner_outer(), over(), calls_back(), uses_library(), consumes(), group_body())
    await asyncio.wait(kept)
    return {task: None if makers is None else ["creators"] + makers for task, makers in under.items()}


# ---------------------------------------------------------------- the same address again

async def spawn(name):
    make(name)
    await asyncio.sleep(seconds / 10)


async def request():
    at = {}
    at["spawned_1"] = here() + 1
    await spawn("spawned_1")
    at["spawned_2"] = here() + 1
    await spawn("spawned_2")
    at["spawned_3"] = here() + 1
    await spawn("spawned_3")
    await asyncio.sleep(seconds / 2)
    return at


def here():
    return sys._getframe(1).f_lineno


async def spawns():
    return (await asyncio.gather(request(), asyncio.sleep(0)))[0]


KINDS = {"outlives": outlives, "creators": creators, "spawn": spawns}
leave({sys.argv[1]: asyncio.run(KINDS[sys.argv[1]]())})
