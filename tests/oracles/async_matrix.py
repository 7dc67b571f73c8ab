# SPDX-License-Identifier: MIT
"""async_matrix: every way in which a coroutine or task can wait for another, each
under functions of its own name, all at once in one loop.

    async_matrix.py waits|burns SECONDS

waits: the innermost ones sleep so long. burns: they use so much CPU, in turns.

A construct names the stacks that it must give, from the outermost of its own
coroutines: T is the construct's, a letter is the child or generator of that
name, the rest are asyncio's own, as they are on this version. A construct of
both forms runs twice: with tasks (gather_t) and with bare coroutines (gather_c).
"""
import asyncio
import contextlib
import socket
import sys
import types

from async_truth import await_lines, blocks, in_turns, leave, named

WAITS = sys.argv[1] == "waits"
SECONDS = float(sys.argv[2])
NEW_ITERATOR = sys.version_info >= (3, 13)
COMPLETED = "_AsCompletedIterator._wait_for_one" if NEW_ITERATOR else "as_completed.<locals>._wait_for_one"
NEXT_COMPLETED = "_AsCompletedIterator.__anext__ _AsCompletedIterator._wait_for_one"
COMPREHENSION = "comprehension.<locals>.<listcomp>" if sys.version_info < (3, 12) else ""
GROUP_EXIT = "TaskGroup.__aexit__" + (" TaskGroup._aexit" if hasattr(asyncio.TaskGroup, "_aexit") else "")

constructs, cannot = [], []


def construct(*stacks, forms="tc", why=None, waits_only=False, when=True):
    """stacks: text, or (text, part of SECONDS). forms: t with tasks, c with bare
    coroutines, - neither; why: what keeps CPython from the other."""
    def take(function):
        if why:
            cannot.append("%s: %s" % (function.__name__, why))
        if when and (WAITS or not waits_only):
            constructs.extend(Cell(function, form, stacks) for form in forms)
    return take


class Cell:
    """One construct in one form, with names of its own."""

    def __init__(self, function, form, stacks):
        self.function, self.form = function, form
        self.name = function.__name__ + (form != "-") * ("_" + form)
        self.stacks = [(s, 1) if isinstance(s, str) else s for s in stacks]
        self.lines_of = {self.name: function.__name__}

    def run(self):
        return named(self.name, self.function)(self)

    def own(self, letter, function):
        """A function of this cell's own name."""
        self.lines_of[self.name + "_" + letter] = function.__qualname__
        return named(self.name + "_" + letter, function)

    def coroutine(self, letter, part=1):
        return self.own(letter, sleeps if WAITS else burns)(SECONDS * part)

    def task(self, letter, part=1):
        return asyncio.create_task(self.coroutine(letter, part))

    def child(self, letter, part=1):
        return (self.task if self.form == "t" else self.coroutine)(letter, part)

    def later(self, function, *args, part=1):
        asyncio.get_running_loop().call_later(SECONDS * part, function, *args)

    def future(self, part=1):
        made = asyncio.get_running_loop().create_future()
        self.later(made.set_result, None, part=part)
        return made

    def expected(self):
        rows = []
        for text, part in self.stacks:
            names = [{"T": self.name}.get(w, self.name + "_" + w if len(w) == 1 else w) for w in text.split()]
            if len(text.split()[-1]) == 1 and text.split()[-1] != "T":
                names += ["sleep"] if WAITS else ["in_turns", "burn"]
            rows.append([["main"] + names, SECONDS * part])
        return rows


async def sleeps(seconds):
    await asyncio.sleep(seconds)


async def burns(seconds):
    await in_turns(seconds)


# ---------------------------------------------------------------- tasks and coroutines

@construct("T a")
async def plain(cell):
    await cell.child("a")


@construct("T a", "T b")
async def gather(cell):
    await asyncio.gather(cell.child("a"), cell.child("b"))


@construct("T a", "T b", "T d")
async def gather_nested(cell):
    await asyncio.gather(asyncio.gather(cell.child("a"), cell.child("b")), cell.child("d"))


@construct("T a", "T b")
async def gather_shield(cell):
    await asyncio.gather(asyncio.shield(cell.child("a")), cell.child("b"))


@construct("T a")
async def gather_twice(cell):
    child = cell.child("a")
    await asyncio.gather(child, child)


@construct(("T a", 0.5), ("T", 0.5), waits_only=True)
async def gather_future_later(cell):
    await asyncio.gather(cell.future(), cell.child("a", 0.5))


@construct("T a", ("T b", 0.5), waits_only=True)
async def gather_future_sooner(cell):
    await asyncio.gather(cell.future(0.2), cell.child("a"), cell.child("b", 0.5))


@construct("T", waits_only=True, forms="-")
async def gather_futures(cell):
    await asyncio.gather(cell.future(), cell.future(0.5))


@construct("T wait _wait a", "T wait _wait b", forms="t", why="wait() takes no bare coroutines since 3.11")
async def wait(cell):
    await asyncio.wait([cell.child("a"), cell.child("b")])


@construct(("T wait _wait a", 0.5), ("T wait _wait b", 0.5), ("T b", 0.5), ("T sleep", 0.5), forms="t", waits_only=True)
async def wait_first(cell):
    _, pending = await asyncio.wait([cell.child("a", 0.5), cell.child("b")], return_when=asyncio.FIRST_COMPLETED)
    await asyncio.sleep(SECONDS * 0.5)
    assert len(pending) == 1


@construct(("T wait _wait a", 0.5), ("T wait _wait", 0.5), forms="t", waits_only=True)
async def wait_future_later(cell):
    await asyncio.wait([cell.future(), cell.child("a", 0.5)])


@construct("T wait_for a")
async def wait_for(cell):
    await asyncio.wait_for(cell.child("a"), 60)


@construct("T %s Queue.get a" % COMPLETED, ("T %s Queue.get b" % COMPLETED, 0.5))
async def completed(cell):
    for each in asyncio.as_completed([cell.child("a"), cell.child("b", 0.5)]):
        await each


@construct("T %s Queue.get a" % NEXT_COMPLETED, ("T %s Queue.get b" % NEXT_COMPLETED, 0.5), when=NEW_ITERATOR,
           why=None if NEW_ITERATOR else "as_completed() is an asynchronous iterator from 3.13 on")
async def completed_async(cell):
    async for _ in asyncio.as_completed([cell.child("a"), cell.child("b", 0.5)]):
        pass


@construct("T a")
async def shield(cell):
    await asyncio.shield(cell.child("a"))


@construct("T a")
async def shield_shield(cell):
    await asyncio.shield(asyncio.shield(cell.child("a")))


@construct("T %s a" % GROUP_EXIT, "T %s b" % GROUP_EXIT, forms="t", why="a TaskGroup makes tasks of all coroutines")
async def group(cell):
    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(cell.coroutine("a"))
        tasks.create_task(cell.coroutine("b"))


@construct("T %s p a" % GROUP_EXIT, forms="tc")
async def group_of_parents(cell):
    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(cell.own("p", awaits_other)(cell.child("a")))


@construct("T a")
async def timeout(cell):
    async with asyncio.timeout(60):
        await cell.child("a")


async def awaits_other(other):
    await other


@construct(("T p a", 0.5), ("T q a", 0.5), forms="t", why="a coroutine can be awaited once")
async def two_awaiters(cell):
    child = cell.child("a")
    await asyncio.gather(cell.own("p", awaits_other)(child), cell.own("q", awaits_other)(child))


@construct("T p q a")
async def chain(cell):
    wrap = asyncio.create_task if cell.form == "t" else (lambda coroutine: coroutine)
    await wrap(cell.own("p", awaits_other)(wrap(cell.own("q", awaits_other)(cell.child("a")))))


# ---------------------------------------------------------------- generators and objects that are awaited

async def yields_after(other):
    await other
    yield 1


async def answers(other):
    try:
        yield 1
    except ValueError:
        await other
        yield 2


async def closes(other):
    try:
        yield 1
    finally:
        await other


@construct("T g a")
async def async_for(cell):
    async for _ in cell.own("g", yields_after)(cell.child("a")):
        pass


@construct("T %s g a" % COMPREHENSION)
async def comprehension(cell):
    return [_ async for _ in cell.own("g", yields_after)(cell.child("a"))]


@construct("T g h a")
async def async_for_nested(cell):
    async for _ in cell.own("g", passes_on)(cell.own("h", yields_after)(cell.child("a"))):
        pass


async def passes_on(other):
    async for each in other:
        yield each


@construct("T g a")
async def next_one(cell):
    await anext(cell.own("g", yields_after)(cell.child("a")))


@construct("T g a")
async def next_default(cell):
    await anext(cell.own("g", yields_after)(cell.child("a")), None)


@construct("T g a")
async def asend(cell):
    await cell.own("g", yields_after)(cell.child("a")).asend(None)


@construct("T g a")
async def athrow(cell):
    generator = cell.own("g", answers)(cell.child("a"))
    await generator.asend(None)
    await generator.athrow(ValueError())


@construct("T g a")
async def aclose(cell):
    generator = cell.own("g", closes)(cell.child("a"))
    await generator.asend(None)
    await generator.aclose()


class Managed:
    def __init__(self, enter, leave_with):
        self.enter, self.leave_with = enter, leave_with

    async def __aenter__(self):
        if self.enter:
            await self.enter

    async def __aexit__(self, *error):
        if self.leave_with:
            await self.leave_with


@construct("T Managed.__aenter__ a")
async def enter(cell):
    async with Managed(cell.child("a"), None):
        pass


@construct("T Managed.__aexit__ a")
async def leave_it(cell):
    async with Managed(None, cell.child("a")):
        pass


@construct("T _AsyncGeneratorContextManager.__aenter__ g a")
async def context_manager(cell):
    async with contextlib.asynccontextmanager(cell.own("g", yields_after))(cell.child("a")):
        pass


@types.coroutine
def from_generator(other):
    yield from other


@construct("T g a", forms="c", why="a generator cannot `yield from` a task itself; its __await__ is from_await")
async def generator(cell):
    await cell.own("g", from_generator)(cell.child("a"))


@construct("T g a")
async def generator_await(cell):
    await cell.own("g", from_generator)(cell.child("a").__await__())


class Awaitable:
    """Awaited through a generator of its own."""

    def __init__(self, other):
        self.other = other

    def __await__(self):
        return (yield from self.other.__await__())


class Wrapper(Awaitable):
    """Awaited through another's iterator: it has no frame."""

    def __await__(self):
        return self.other.__await__()


class Iterator(Awaitable):
    """Awaited through an iterator that nobody can look into."""

    def __await__(self):
        self.iterator = self.other.__await__()
        return self

    def __iter__(self):
        return self

    def __next__(self):
        return next(self.iterator)


@construct("T Awaitable.__await__ a")
async def own_await(cell):
    await Awaitable(cell.child("a"))


@construct("T a")
async def own_wrapper(cell):
    await Wrapper(cell.child("a"))


@construct("T a", forms="t", why="what an iterator of Python's own awaits is in none of the interpreter's tables")
async def own_iterator(cell):
    await Iterator(cell.child("a"))


# ---------------------------------------------------------------- what no task is behind

@construct("T", forms="-", waits_only=True)
async def future(cell):
    await cell.future()


@construct("T Queue.get", forms="-", waits_only=True)
async def queue_get(cell):
    queue = asyncio.Queue()
    cell.later(queue.put_nowait, 1)
    await queue.get()


@construct("T Queue.put", forms="-", waits_only=True)
async def queue_put(cell):
    queue = asyncio.Queue(1)
    queue.put_nowait(1)
    cell.later(queue.get_nowait)
    await queue.put(2)


@construct("T Queue.join Event.wait", forms="-", waits_only=True)
async def queue_join(cell):
    queue = asyncio.Queue()
    queue.put_nowait(1)
    cell.later(queue.task_done)
    await queue.join()


@construct("T _ContextManagerMixin.__aenter__ Lock.acquire", forms="-", waits_only=True)
async def lock(cell):
    held = asyncio.Lock()
    await held.acquire()
    cell.later(held.release)
    async with held:
        pass


@construct("T Event.wait", forms="-", waits_only=True)
async def event(cell):
    awaited = asyncio.Event()
    cell.later(awaited.set)
    await awaited.wait()


@construct("T Semaphore.acquire", forms="-", waits_only=True)
async def semaphore(cell):
    none = asyncio.Semaphore(0)
    cell.later(none.release)
    await none.acquire()


async def notifies(condition):
    async with condition:
        condition.notify()


@construct("T Condition.wait", forms="-", waits_only=True)
async def condition(cell):
    awaited = asyncio.Condition()
    cell.later(lambda: cell.notes.append(asyncio.ensure_future(cell.own("n", notifies)(awaited))))
    cell.notes = []
    async with awaited:
        await awaited.wait()


@construct("T to_thread", forms="-", waits_only=True)
async def in_thread(cell):
    await asyncio.to_thread(blocks, SECONDS)


@construct("T", forms="-", waits_only=True)
async def executor(cell):
    await asyncio.get_running_loop().run_in_executor(None, blocks, SECONDS)


@construct("T StreamReader.readline StreamReader.readuntil StreamReader._wait_for_data", forms="-", waits_only=True)
async def stream(cell):
    ours, theirs = socket.socketpair()
    cell.later(theirs.sendall, b"line\n")
    reader, writer = await asyncio.open_connection(sock=ours)
    await reader.readline()
    writer.close()
    theirs.close()


async def main():
    await asyncio.gather(*(cell.run() for cell in constructs))


asyncio.run(main())
lines = await_lines(__file__)
leave({"waits": WAITS, "cannot": cannot,
       "cells": {cell.name: cell.expected() for cell in constructs},
       "awaits": {renamed: lines[name] for cell in constructs for renamed, name in cell.lines_of.items()}})
