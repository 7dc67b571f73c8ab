# SPDX-License-Identifier: MIT
"""waiting: many tasks of four coroutines each, all waiting, and a heart that beats.

    waiting.py TASKS SECONDS [BEAT_MS [COLLECT]]

The heart computes a little every BEAT_MS (5 by default), so that something runs
between any two ticks; 0: nothing runs at all. Every COLLECT beats it has all garbage
collected, which touches every task, as a busy service does; 0: never. Prints the CPU
seconds that the process used while it beat, without what came before.
"""
import asyncio
import gc
import sys
import time

tasks, seconds = int(sys.argv[1]), float(sys.argv[2])
beat = float(sys.argv[3]) / 1000 if len(sys.argv) > 3 else 0.005
collect = int(sys.argv[4]) if len(sys.argv) > 4 else 0


async def leaf(event):
    await event.wait()


async def middle(event):
    await leaf(event)


async def top(event):
    await middle(event)


async def task(event):
    await top(event)


async def main():
    event = asyncio.Event()
    waiting = [asyncio.create_task(task(event)) for _ in range(tasks)]
    await asyncio.sleep(0.5)
    began, end = time.process_time(), time.monotonic() + seconds
    beats = 0
    while time.monotonic() < end:
        await asyncio.sleep(beat if beat else seconds)
        beats += 1
        if collect and beats % collect == 0:
            gc.collect()
    print(time.process_time() - began, flush=True)
    event.set()
    await asyncio.gather(*waiting)


asyncio.run(main())
