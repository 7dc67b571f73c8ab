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


async def leaf(event):
    await event.wait()


async def middle(event):
    await leaf(event)


async def top(event):
    await middle(event)


async def task(event):
    await top(event)


def make_tasks(count, event):
    return [asyncio.create_task(task(event)) for _ in range(count)]


async def main(tasks, seconds, beat, collect):
    event = asyncio.Event()
    waiting = make_tasks(tasks, event)
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


if __name__ == "__main__":
    asyncio.run(main(int(sys.argv[1]), float(sys.argv[2]), float(sys.argv[3]) / 1000 if len(sys.argv) > 3 else 0.005,
                     int(sys.argv[4]) if len(sys.argv) > 4 else 0))
