# SPDX-License-Identifier: MIT
"""task_names: tasks that know what they are called, how much CPU each kind used and how long its tasks were leaves.

    task_names.py some          tasks of all kinds of names, stacked on each other
    task_names.py many COUNT    so many tasks, each of another name, some at a time
"""
import asyncio
import sys
import time

from truth import burn, leave

# What they are called and what of that is shown; a number of tasks of each.
NAMES = (("plain", "plain"), ("req-%d", "req-*"), ("a;b %d", "a\\x3bb *"), ("caf\u00e9 \u4e2d\u6587 \U0001f40d", "caf\u00e9 \u4e2d\u6587 \U0001f40d"),
         ("lone \ud800", "lone \\xed\\xa0\\x80"), (None, "Task-*"), ("[x] (y:%d)", "[x] (y:*)"), ("n" * 2000, "n" * 103 + "~"))
EACH = 4
used = {}   # shown: CPU seconds of the tasks with that name
lived = {}  # shown: seconds from the making of such a task to its end; it is a leaf all the time


def note(table, shown, seconds):
    table[shown] = table.get(shown, 0) + seconds


async def inner(shown, work, wait):
    cpu = time.thread_time()
    burn(work)
    note(used, shown, time.thread_time() - cpu)
    await asyncio.sleep(wait)


async def some_inner(shown, work, wait, made=None):
    """A coroutine more, so that the name stands below two frames."""
    for _ in range(10):
        await inner(shown, work / 10, wait / 10)
    if made:
        note(lived, shown, time.monotonic() - made)


async def outer():
    """Hardly a leaf: its time is that of the one that it awaits."""
    await asyncio.create_task(some_inner("inner", 0.02, 0.4, time.monotonic()), name="inner")


async def renamed(made):
    task = asyncio.current_task()
    for shown in ("first name", "second name"):
        task.set_name(shown)
        await some_inner(shown, 0.3, 1.7, made)
        made = time.monotonic()


async def renames(task):
    await asyncio.sleep(1.5)
    task.set_name("new name")


async def waits_long(made):
    await asyncio.sleep(4)
    note(lived, "old name", 1.5)
    note(lived, "new name", time.monotonic() - made - 1.5)


def make(coroutine, name, i):
    """With no name of its own it is Task-N."""
    return asyncio.create_task(coroutine) if name is None else asyncio.create_task(coroutine, name=name % i if "%" in name else name)


async def all_of_some():
    tasks = [make(some_inner(shown, 0.01 * (i + 1), 1 + 0.2 * i, time.monotonic()), name, 17 * i) for name, shown in NAMES for i in range(EACH)]
    tasks += [asyncio.create_task(outer(), name="outer %d" % i) for i in range(5)]
    tasks.append(asyncio.create_task(renamed(time.monotonic()), name="first name"))
    tasks.append(asyncio.create_task(waits_long(time.monotonic()), name="old name"))
    tasks.append(asyncio.create_task(renames(tasks[-1]), name="renames"))
    await asyncio.gather(*tasks)


def some():
    asyncio.run(all_of_some())
    leave({"cpu": used, "task": lived})


async def one_of_many():
    burn(0.0005)
    await asyncio.sleep(0.02)


def word(i):
    """Another one for each number, without a digit."""
    return "".join(chr(ord("a") + int(digit)) for digit in str(i))


async def all_of_many(count):
    tasks = set()
    for i in range(count):
        tasks.add(asyncio.create_task(one_of_many(), name="one of many " + word(i)))
        if len(tasks) >= 50:
            _, tasks = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    await asyncio.gather(*tasks)


def many(count):
    cpu = time.process_time()
    asyncio.run(all_of_many(count))
    leave({"cpu": time.process_time() - cpu})


if __name__ == "__main__":
    {"some": some, "many": lambda: many(int(sys.argv[2]))}[sys.argv[1]]()
