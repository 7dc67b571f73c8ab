# SPDX-License-Identifier: MIT
"""waiting: many tasks of four coroutines each, all waiting, and a heart that beats.

    waiting.py TASKS SECONDS [BEAT_MS [COLLECT [CHAIN]]]

The heart computes a little every BEAT_MS (5 by default), so that something runs
between any two ticks; 0: nothing runs at all. Every COLLECT beats it has all garbage
collected, which touches every task, as a busy service does; 0: never. The tasks stand
in chains of CHAIN (1 by default), each of which awaits the next. Prints the CPU
seconds that the process used while it beat, without what came before.
"""
import asyncio
import gc
import sys
import time


async def leaf(event, below):
    await (asyncio.create_task(task(event, below - 1)) if below else event.wait())


async def middle(event, below):
    await leaf(event, below)


async def top(event, below):
    await middle(event, below)


async def task(event, below):
    await top(event, below)


def make_tasks(count, event, chain=1):
    return [asyncio.create_task(task(event, chain - 1)) for _ in range(count // chain)]


async def main(tasks, seconds, beat, collect, chain):
    event = asyncio.Event()
    waiting = make_tasks(tasks, event, chain)
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
                     int(sys.argv[4]) if len(sys.argv) > 4 else 0, int(sys.argv[5]) if len(sys.argv) > 5 else 1))
