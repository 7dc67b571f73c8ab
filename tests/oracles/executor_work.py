# SPDX-License-Identifier: MIT
"""executor_work: threads of executors that know who sent them what.

    executor_work.py

Each function notes what it used and how long it ran under the way that leads to it.
"""
import asyncio
import concurrent.futures
import functools

from sent_work import leave_work, warm_up, work


def of_thread(way):
    work(way, 0.1, 0.2)


def of_pool(way):
    work(way, 0.15, 0.1)


def of_gather(way):
    work(way, 0.1, 0.1)


def of_nobody(way):
    work(way, 0.1, 0.1)


def of_submit(way):
    work(way, 0.1, 0.1)


def with_loop(way):
    """A function that had a loop of its own."""
    asyncio.run(asyncio.sleep(0.05))
    work(way, 0.1, 0.1)


async def sends_to_thread():
    await asyncio.to_thread(of_thread, "main;parent;sends_to_thread;to_thread;of_thread")


async def parent():
    await asyncio.create_task(sends_to_thread())


async def sends_to_pool(pool):
    await asyncio.get_running_loop().run_in_executor(pool, of_pool, "main;sends_to_pool;of_pool")


async def gathers():
    loop = asyncio.get_running_loop()
    await asyncio.gather(*(loop.run_in_executor(None, of_gather, "main;gathers;of_gather") for _ in range(2)))


async def shields():
    await asyncio.wait_for(asyncio.shield(asyncio.to_thread(of_gather, "main;shields;wait_for;to_thread;of_gather")), 10)


async def leaves_alone(pool):
    """Nobody awaits what it sent until that has ended."""
    future = asyncio.get_running_loop().run_in_executor(pool, of_nobody, "of_nobody")
    await asyncio.sleep(0.6)
    await future


async def gives_up(pool):
    """What is cancelled while it runs runs on, for nobody."""
    try:
        await asyncio.wait_for(asyncio.get_running_loop().run_in_executor(pool, of_nobody, "of_nobody"), 0.05)
    except asyncio.TimeoutError:
        pass


async def main():
    await asyncio.to_thread(warm_up)
    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        submitted = [pool.submit(of_submit, "of_submit"), pool.submit(of_submit, "of_submit")]
        await asyncio.gather(parent(), parent(), sends_to_pool(pool), sends_to_pool(pool), gathers(), shields())
        concurrent.futures.wait(submitted)
        await asyncio.gather(leaves_alone(pool), gives_up(pool), asyncio.to_thread(functools.partial(with_loop, "main;to_thread;with_loop")))


if __name__ == "__main__":
    asyncio.run(main())
    leave_work()
