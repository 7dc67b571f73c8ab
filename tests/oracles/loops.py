# SPDX-License-Identifier: MIT
"""loops: an event loop of so many tasks that wait, then are ready while it does something else. The truth, by its own clock.

    loops.py LOOP TASKS SECONDS     LOOP: asyncio or uvloop; so long in each state
"""
import asyncio
import sys
import time

from truth import burn, leave

KIND, TASKS, SECONDS = sys.argv[1], int(sys.argv[2]), float(sys.argv[3])
truth = {"tasks": TASKS}


async def waits(event):
    await event.wait()


def stands():
    began = time.monotonic()
    time.sleep(SECONDS)
    truth["stood"] = time.monotonic() - began


def computes():
    began = time.monotonic()
    burn(SECONDS, time.monotonic)
    truth["computed"] = time.monotonic() - began


async def main():
    event = asyncio.Event()
    tasks = [asyncio.create_task(waits(event)) for _ in range(TASKS)]
    await asyncio.sleep(0)
    began = time.monotonic()
    await asyncio.sleep(SECONDS)
    truth["waited"] = time.monotonic() - began
    event.set()
    began = time.monotonic()
    stands()
    computes()
    truth["ready"] = time.monotonic() - began
    await asyncio.gather(*tasks)
    began = time.monotonic()
    await asyncio.sleep(SECONDS)
    truth["alone"] = time.monotonic() - began


if KIND == "uvloop":
    import uvloop
    uvloop.install()
asyncio.run(main())
leave(truth)
