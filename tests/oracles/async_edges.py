# SPDX-License-Identifier: MIT
"""async_edges: the moments between: not yet awaited, not yet started, over but not yet noticed.

    async_edges.py SECONDS

One after the other, SECONDS for each state. The truth: the stacks of each, with
the time that each had. A frame with a line must stand on it.
"""
import asyncio
import sys

from async_truth import blocks, leave

SECONDS = float(sys.argv[1])
GROUP_EXIT = ["TaskGroup.__aexit__"] + (["TaskGroup._aexit"] if hasattr(asyncio.TaskGroup, "_aexit") else [])
expected = []


def expect(part, *stack):
    """stack: names, or (name, line)."""
    expected.append([["main"] + list(stack), part * SECONDS])


def line():
    return sys._getframe(1).f_lineno


# ---------------------------------------------------------------- gather() that nobody awaits yet

async def early_child():
    await asyncio.sleep(2 * SECONDS)


async def early():
    gathered = asyncio.gather(early_child())
    at = line() + 1
    await asyncio.sleep(SECONDS)
    expect(1, ("early", at), "early_child", "sleep")
    expect(1, ("early", at), "sleep")
    at = line() + 1
    await gathered
    expect(1, ("early", at), "early_child", "sleep")


# ---------------------------------------------------------------- a TaskGroup whose body still runs

async def body_child():
    await asyncio.sleep(2 * SECONDS)


async def body_maker(tasks):
    tasks.create_task(body_child())
    await asyncio.sleep(SECONDS)


async def body():
    async with asyncio.TaskGroup() as tasks:
        await body_maker(tasks)
    expect(1, "body", "body_maker", "body_child", "sleep")
    expect(1, "body", "body_maker", "sleep")
    expect(1, "body", *GROUP_EXIT, "body_child", "sleep")


# ---------------------------------------------------------------- all done, and the loop has no time to say so

def block_twice():
    """Now, before anybody hears that the caller is done, and again when only a callback has."""
    loop = asyncio.get_running_loop()
    loop.call_soon(blocks, SECONDS)
    loop.call_soon(loop.call_soon, blocks, SECONDS)


async def done_child():
    await asyncio.sleep(0.01)
    block_twice()


async def done():
    await asyncio.gather(done_child())
    expect(2, "done", "[ready]")


async def done_task():
    await asyncio.create_task(done_task_child())
    expect(1, "done_task", "[ready]")


async def done_task_child():
    await asyncio.sleep(0.01)
    asyncio.get_running_loop().call_soon(blocks, SECONDS)


# ---------------------------------------------------------------- not started

async def unstarted_child():
    await asyncio.sleep(0)


async def unstarted():
    task = asyncio.create_task(unstarted_child())
    at = line() + 1
    blocks(SECONDS)
    expect(1, ("unstarted", at), ("unstarted_child", unstarted_child.__code__.co_firstlineno), "[ready]")
    expect(1, ("unstarted", at), "blocks")
    await task


# ---------------------------------------------------------------- a task that yields nothing waits for the loop

async def bare_child():
    await asyncio.sleep(0)
    await asyncio.sleep(0)


async def bare():
    task = asyncio.create_task(bare_child())
    await asyncio.sleep(0)
    blocks(SECONDS)
    expect(1, "bare", "bare_child", "sleep", "__sleep0", "[ready]")
    await task


# ---------------------------------------------------------------- cancelled, and not yet woken

async def cancelled_child():
    await asyncio.sleep(60)


async def cancelled():
    task = asyncio.create_task(cancelled_child())
    await asyncio.sleep(0.01)
    task.cancel()
    blocks(SECONDS)
    expect(1, "cancelled", "cancelled_child", "sleep", "[ready]")
    await asyncio.gather(task, return_exceptions=True)


async def main():
    for edge in (early, body, done, done_task, unstarted, bare, cancelled):
        await asyncio.create_task(edge())


asyncio.run(main())
leave({"expected": expected, "names": ["early", "body", "done", "unstarted", "bare", "cancelled"]})
