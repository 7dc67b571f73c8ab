# SPDX-License-Identifier: MIT
"""async_loops: loops of all kinds. The truth: the stacks that tasks must have, with their times.

    async_loops.py KIND SECONDS

Names in a stack are those above the loop's own frames.
"""
import sys
import threading
import time

from truth import burn, leave

KIND, SECONDS = sys.argv[1], float(sys.argv[2])
expected = []

if KIND == "late":
    burn(0.5)

import asyncio  # noqa: E402


cpu = [0.0]


def expect(part, *stack):
    expected.append([list(stack), part * SECONDS])


def computes():
    """For so long, however much of that time the processor was ours."""
    before = time.thread_time()
    burn(SECONDS, time.monotonic)
    cpu[0] += time.thread_time() - before


def blocks(seconds):
    time.sleep(seconds)


async def leaf():
    await asyncio.sleep(SECONDS)


async def main():
    await asyncio.create_task(leaf())


def plain_expectation():
    expect(1, "main", "leaf", "sleep")


# ---------------------------------------------------------------- how a loop is made and run

def run_runner():
    with asyncio.Runner(loop_factory=asyncio.new_event_loop) as runner:
        runner.run(main())
        runner.run(main())
    expect(2, "main", "leaf", "sleep")


def run_bare():
    """Never passed to set_event_loop, run twice, and not always by run_until_complete."""
    loop = asyncio.new_event_loop()
    loop.run_until_complete(main())
    task = loop.create_task(main())
    task.add_done_callback(lambda _: loop.stop())
    loop.run_forever()
    loop.close()
    expect(2, "main", "leaf", "sleep")


def run_uvloop():
    import uvloop
    if hasattr(uvloop, "run"):
        uvloop.run(main())
    else:
        loop = uvloop.new_event_loop()
        loop.run_until_complete(main())
    expect(1, "<module>", "run_uvloop", "...", "main", "leaf", "sleep")  # its loop has no frames of Python


def run_late():
    asyncio.run(main())
    plain_expectation()


def run_delay():
    """For whoever looks only from the middle on: the leaf's last moment."""
    asyncio.run(main())
    expected.append(["main", "leaf", "sleep", time.time()])


# ---------------------------------------------------------------- two threads

async def first_leaf():
    await asyncio.sleep(SECONDS)


async def first_main():
    await asyncio.gather(first_leaf(), first_burns())


async def first_burns():
    end = time.monotonic() + SECONDS
    while time.monotonic() < end:
        burn(0.002)
        await asyncio.sleep(0.002)


async def second_leaf():
    await asyncio.sleep(SECONDS)


async def second_main():
    await asyncio.gather(second_leaf(), second_burns())


async def second_burns():
    end = time.monotonic() + SECONDS
    while time.monotonic() < end:
        burn(0.002)
        await asyncio.sleep(0.002)


def run_first():
    asyncio.run(first_main())


def run_second():
    asyncio.run(second_main())


def run_threads():
    threads = [threading.Thread(target=f) for f in (run_first, run_second)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    expect(1, "first_main", "first_leaf", "sleep")
    expect(1, "second_main", "second_leaf", "sleep")


# ---------------------------------------------------------------- eager tasks

async def eager_inner():
    computes()
    await asyncio.sleep(SECONDS)


async def eager_child():
    await eager_inner()


async def eager_main():
    asyncio.get_running_loop().set_task_factory(asyncio.eager_task_factory)
    await asyncio.create_task(eager_child())


def run_eager():
    asyncio.run(eager_main())
    expect(1, "eager_main", "create_task", "...", "eager_child", "eager_inner", "computes", "burn")
    expect(1, "eager_main", "eager_child", "eager_inner", "sleep")


# ---------------------------------------------------------------- callbacks, blocking

def callback_burns(over):
    computes()
    over.set_result(None)


async def callback_main():
    loop = asyncio.get_running_loop()
    over = loop.create_future()
    loop.call_soon(callback_burns, over)
    await over


def run_callbacks():
    asyncio.run(callback_main())
    expect(1, "callback_main")


async def blocked():
    began = time.monotonic()
    blocks(SECONDS)
    expect((time.monotonic() - began) / SECONDS, "blocked_main", "blocked", "blocks")


async def blocked_main():
    await asyncio.create_task(blocked())


def run_blocked():
    asyncio.run(blocked_main())


# ---------------------------------------------------------------- tasks of other makes

class OwnTask(asyncio.Task):
    def __init__(self, *args, **kwargs):
        self.mine = True
        super().__init__(*args, **kwargs)


def with_factory(make):
    async def start():
        asyncio.get_running_loop().set_task_factory(make)
        await asyncio.create_task(main())
    asyncio.run(start())


def run_subclass():
    with_factory(lambda loop, coro, **more: OwnTask(coro, loop=loop, **more))
    expect(1, "with_factory.<locals>.start", "main", "leaf", "sleep")


def run_python():
    """Tasks written in Python: awaited through a generator. The innermost waits for a future in C."""
    with_factory(lambda loop, coro, **more: asyncio.tasks._PyTask(coro, loop=loop, **more))
    expect(1, "with_factory.<locals>.start", "Future.__await__", "main", "Future.__await__", "leaf", "sleep")


def run_anyio():
    import anyio

    async def anyio_leaf():
        await anyio.sleep(SECONDS)

    async def anyio_main():
        async with anyio.create_task_group() as group:
            group.start_soon(anyio_leaf)
    anyio.run(anyio_main)
    expect(1, "...", "run_anyio.<locals>.anyio_main", "...", "run_anyio.<locals>.anyio_leaf", "...")


def run_trio():
    import trio

    async def trio_leaf():
        await trio.sleep(SECONDS)

    async def trio_main():
        async with trio.open_nursery() as nursery:
            for _ in range(3):
                nursery.start_soon(trio_leaf)
            burn(SECONDS)
    trio.run(trio_main)


# ---------------------------------------------------------------- an interpreter beside this one

SUB = """
import asyncio

async def sub_leaf():
    await asyncio.sleep(%g)

async def sub_main():
    await asyncio.create_task(sub_leaf())

asyncio.run(sub_main())
""" % SECONDS


def run_sub():
    try:
        import _interpreters as interpreters
    except ImportError:
        import _xxsubinterpreters as interpreters
    made = interpreters.create()
    failed = interpreters.run_string(made, SUB)
    assert failed is None, failed
    interpreters.destroy(made)
    expect(1, "sub_main", "sub_leaf", "sleep")


globals()["run_" + KIND]()
leave({"expected": expected, "cpu": cpu[0]})
