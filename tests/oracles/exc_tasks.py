# SPDX-License-Identifier: MIT
"""exc_tasks: tasks that know for how long they stood in an except block, and handling what.

    exc_tasks.py SECONDS     so long in each of most places, all tasks beside each other

What is handled is what sys.exc_info() says within the block: of a task that waits the same, as nobody else can end or begin it.
"""
import asyncio
import json
import random
import sys
import time

from truth import burn, leave

seconds = float(sys.argv[1]) if __name__ == "__main__" else 0
MANY = 60
notes = {}  # how the type is called: [seconds, summed over tasks; tasks; stands of one of them], "": none is handled


class Plain(Exception):
    pass


class Outer(Exception):
    class Inner(ValueError):
        pass


class Chained(Exception):
    pass


class Deep(Exception):
    pass


class Unwinds(Exception):
    pass


class Leaves(Exception):
    pass


class Waits(Exception):
    pass


class WaitsForOne(Exception):
    pass


class InGroup(Exception):
    pass


class Yields(Exception):
    pass


class Odd(Exception):
    pass


class Even(Exception):
    pass


class Burns(Exception):
    pass


class Ready(Exception):
    pass


class Late(Exception):
    pass


class Around(Exception):
    pass


def name_of_handled():
    kind = sys.exc_info()[0]
    if kind is None:
        return ""
    return kind.__qualname__ if kind.__module__ in ("builtins", "__main__") else "%s.%s" % (kind.__module__, kind.__qualname__)


def note(took, tasks=1, stands=1):
    entry = notes.setdefault(name_of_handled(), [0, 0, 0])
    entry[0] += took
    entry[1] = max(entry[1], tasks)
    entry[2] += stands / tasks


async def stand(expected, took=None, tasks=1):
    assert name_of_handled() == expected, (name_of_handled(), expected)
    began = time.monotonic()
    await asyncio.sleep(seconds if took is None else took)
    note(time.monotonic() - began, tasks)


async def before_in_and_after():
    await stand("", seconds / 2)
    try:
        await stand("", seconds / 4)
        raise Plain
    except Plain:
        await stand("Plain")
    await stand("", seconds / 2)


async def nested():
    """The inner one while it is handled, the outer one before and after it."""
    try:
        raise Outer
    except Outer:
        await stand("Outer", seconds / 2)
        try:
            raise Outer.Inner
        except ValueError:
            await stand("Outer.Inner")
        await stand("Outer", seconds / 2)


async def chained():
    try:
        try:
            raise LookupError
        except LookupError as error:
            raise Chained from error
    except Chained:
        await stand("Chained")


async def group():
    """In an except* it is the group, as far as that block is meant."""
    try:
        raise ExceptionGroup("of two", [KeyError(), OSError()])
    except* KeyError:
        await stand("ExceptionGroup", seconds / 2)
    except* OSError:
        await stand("ExceptionGroup", seconds / 2)
    await stand("", seconds / 4)


async def below():
    await stand("Deep")


async def deep():
    """One that handles it, and awaits others that do not know."""
    try:
        raise Deep
    except Deep:
        await below()


async def unwinds():
    """A finally handles what it was come to by."""
    try:
        try:
            await stand("", seconds / 4)
        finally:
            await stand("", seconds / 4)
        try:
            raise Unwinds
        finally:
            await stand("Unwinds")
    except Unwinds:
        pass


class Guard:
    async def __aenter__(self):
        return self

    async def __aexit__(self, kind, value, traceback):
        await stand("Leaves" if kind else "")
        return True


async def leaves():
    async with Guard():
        pass
    async with Guard():
        raise Leaves


async def waits_for_several():
    """It handles the exception, those that it waits for do not: what is handled is each task's own."""
    try:
        raise Waits
    except Waits:
        began = time.monotonic()
        await asyncio.gather(*(stand("") for _ in range(3)))
        note(time.monotonic() - began)


async def waits_for_one():
    try:
        raise WaitsForOne
    except WaitsForOne:
        began = time.monotonic()
        await asyncio.create_task(stand("", seconds))
        note(time.monotonic() - began)


async def in_group():
    try:
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(shielded())
            await asyncio.sleep(0)
            began = time.monotonic()
            raise InGroup
    except* InGroup:
        notes["InGroup"] = [time.monotonic() - began, 1, 1]


async def shielded():
    """Cancelled by its group, it goes on for a while in its except block."""
    try:
        await asyncio.sleep(3600)
    except asyncio.CancelledError:
        await stand("asyncio.exceptions.CancelledError")
        raise


async def agen():
    try:
        raise Yields
    except Yields:
        for _ in range(4):
            await stand("Yields", seconds / 4)
            yield


async def yields():
    """What an async generator handles is its task's while that waits within it, and else not."""
    async for _ in agen():
        await stand("", seconds / 8)


async def changes():
    """At one place, mostly with the same objects at the same addresses, one and the other in turn."""
    for i in range(int(seconds / 0.05)):
        try:
            raise (Odd if i % 2 else Even)
        except Exception:
            await stand("Odd" if i % 2 else "Even", 0.06 if i % 2 else 0.03)


async def burns(kind, took):
    """Both run and are ready in turn: each time it is another account that has it, the thread's or the task's."""
    chance, turns = random.Random(1), 0
    try:
        raise kind
    except Exception:
        began = time.monotonic()
        while time.monotonic() - began < took:
            burn(chance.uniform(0.001, 0.009))
            await asyncio.sleep(0)
            turns += 2
        note(time.monotonic() - began, stands=turns)


async def of_many(i):
    """Alike but for what they handle, for so long that they are laid to rest."""
    try:
        raise (TypeError if i % 3 == 0 else json.JSONDecodeError("x", "", 0) if i % 3 == 1 else Late)
    except Late:
        pass
    except Exception:
        await stand("TypeError" if i % 3 == 0 else "json.decoder.JSONDecodeError", tasks=MANY // 3)
        return
    await stand("", tasks=MANY // 3)


async def all_of_them():
    await asyncio.gather(before_in_and_after(), nested(), chained(), group(), deep(), unwinds(), leaves(), waits_for_several(), waits_for_one(),
                         in_group(), yields(), changes(), *(of_many(i) for i in range(MANY)))
    await asyncio.gather(burns(Burns, seconds / 2), burns(Ready, seconds / 2))


async def some_wait():
    await asyncio.gather(*(asyncio.sleep(seconds / 2) for _ in range(5)))


def main():
    asyncio.run(all_of_them())
    try:
        raise Around
    except Around:  # the thread's, once, whatever its tasks do
        began = time.monotonic()
        asyncio.run(some_wait())
        note(time.monotonic() - began)
    time.sleep(0.05)  # what the runtime takes to end is where the thread was seen last
    leave({"handled": {name: took for name, took in notes.items() if name}, "unhandled": notes[""][0]})


if __name__ == "__main__":
    main()
