# SPDX-License-Identifier: MIT
"""async_deep: long chains, each link with a name of its own.

    async_deep.py coroutines|tasks COUNT SECONDS

The outermost is link_COUNT, the innermost link_0, which waits SECONDS and then
computes until half as long has passed.
"""
import asyncio
import sys
import time

from async_truth import burn, leave, named

used = []
count, seconds = int(sys.argv[2]), float(sys.argv[3])
wrap = asyncio.create_task if sys.argv[1] == "tasks" else (lambda coroutine: coroutine)
sys.setrecursionlimit(4 * count + 1000)


async def link(number):
    if number:
        await wrap(links[number - 1](number - 1))
    else:
        began = time.monotonic()
        await asyncio.sleep(seconds)
        before = time.thread_time()
        burn(seconds / 2, time.monotonic)
        used.append((time.thread_time() - before, time.monotonic() - began))


links = [named("link_%d" % number, link) for number in range(count + 1)]


async def main():
    await links[count](count)


asyncio.run(main())
leave({"count": count, "seconds": seconds, "cpu": used[0][0], "lived": used[0][1]})
