#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""births: what the hooks of sampler/births.c cost a task made and a coroutine's death.

    tests/bench/births.py [--runs N] [--python LABEL] [--library build/births_live.so]

Batches with the hooks in place and batches without take turns in one process; of
each process the median of the pairs' differences, of several processes the median
and the smallest and largest. The collector is on; the library is what `make
check-live` builds.

    task     one coroutine makes an empty task and awaits it
    nested   eight coroutines deep
    spread   each task is made by a coroutine of its own
    await    an empty coroutine is awaited: its death is all that is hooked
    crowded  the same, while 20,000 coroutines live that made a task
"""
import argparse
import os
import statistics
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
PAIRS = 101


# --- the child: prints nanoseconds a piece ---

async def nothing():
    pass


class Hooks:
    """The three words that births_hook changes, in place or as they were."""

    def __init__(self, library):
        import _asyncio
        import ctypes
        self.lib = ctypes.PyDLL(library)
        self.lib.live_hook.argtypes = [ctypes.c_uint64]
        self.birth = (ctypes.c_uint64 * 64)()
        task, coroutine = id(_asyncio.Task), nothing()
        self.words = [ctypes.c_uint64.from_address(at) for at in (
            task + 296, id(vars(_asyncio.Task)["__init__"]) + 48, id(type(coroutine)) + 48)]  # tp_init, d_wrapped, tp_dealloc
        coroutine.close()
        self.values = [[word.value for word in self.words]]
        if self.lib.live_open(hasattr(sys, "gettotalrefcount")) or self.lib.live_start() or not self.lib.live_hook(task):
            sys.exit("not hooked")
        self.values.append([word.value for word in self.words])

    def put(self, in_place):
        for word, value in zip(self.words, self.values[in_place]):
            word.value = value

    def drain(self):
        while self.lib.live_next(self.birth) >= 0:
            pass


async def batch(work, count):
    before = time.thread_time_ns()
    await work(count)
    return (time.thread_time_ns() - before) / count


async def timed(hooks, work, count):
    """Nanoseconds a piece: with the hooks more, and without."""
    differences, without = [], []
    for n in range(PAIRS + 2):
        took = {}
        for in_place in ((0, 1), (1, 0))[n % 2]:
            hooks.put(in_place)
            took[in_place] = await batch(work, count)
            hooks.drain()
        if n >= 2:  # the first ones warm the caches
            differences.append(took[1] - took[0])
            without.append(took[0])
    hooks.put(1)
    return statistics.median(differences), statistics.median(without)


async def make_tasks(count):
    loop = asyncio.get_running_loop()
    for _ in range(count):
        await loop.create_task(nothing())


async def make_nested(count, depth=7):
    await (make_nested(count, depth - 1) if depth else make_tasks(count))


async def make_one():
    await asyncio.get_running_loop().create_task(nothing())


async def make_spread(count):
    for _ in range(count):
        await make_one()


async def await_coroutines(count):
    for _ in range(count):
        await nothing()


class Suspend:
    def __await__(self):
        yield


async def stay(tasks):
    tasks.append(asyncio.get_running_loop().create_task(nothing()))
    await Suspend()


async def crowd(hooks):
    """Coroutines that live for the rest of the process."""
    living = []
    for _ in range(20):
        tasks = []
        for _ in range(1000):
            living.append(stay(tasks))
            living[-1].send(None)
        await asyncio.wait(tasks)
        hooks.drain()
    return living


WORK = {"task": (make_tasks, 1000), "nested": (make_nested, 1000), "spread": (make_spread, 1000),
        "await": (await_coroutines, 20000), "crowded": (await_coroutines, 20000)}


def child(library, kind):
    hooks = Hooks(library)

    async def main():
        living = await crowd(hooks) if kind == "crowded" else []
        print(*await timed(hooks, *WORK[kind]), flush=True)
        os._exit(len(living) and 0)  # not the end of the living ones
    asyncio.run(main())


# --- the parent ---

def ns_more(words, library, kind, runs):
    """ns a piece with the hooks beyond those without, of each run, and ns without."""
    more, without = [], []
    for _ in range(runs):
        said = subprocess.run(words + [os.path.abspath(__file__), "--child", library, kind], check=True, stdout=subprocess.PIPE)
        more.append(float(said.stdout.split()[0]))
        without.append(float(said.stdout.split()[1]))
    return more, without


def measure(label, words, library, kind, runs):
    more, without = ns_more(words, library, kind, runs)
    middle, base = statistics.median(more), statistics.median(without)
    print("%-14s %-8s %+7.1f ns (%+.1f to %+.1f), %.2f %% of %.1f ns" % (
        label, kind, middle, min(more), max(more), 100 * middle / base, base), flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--runs", type=int, default=7)
    parser.add_argument("--python", metavar="LABEL", default="")
    parser.add_argument("--library", default=os.path.join(ROOT, "build", "births_live.so"))
    options = parser.parse_args()
    said = subprocess.run([os.path.join(ROOT, "scripts", "pythons")] + options.python.split(), check=True, stdout=subprocess.PIPE, text=True)
    for line in said.stdout.splitlines():
        label, command = line.split("\t")
        for kind in WORK:
            measure(label, command.split(), os.path.realpath(options.library), kind, options.runs)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--child"]:
        import asyncio
        child(sys.argv[2], sys.argv[3])
    else:
        main()
