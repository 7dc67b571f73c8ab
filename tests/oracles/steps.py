# SPDX-License-Identifier: MIT
"""steps: event loops that know how long their longest step took, each in a thread of its own, one after the other.

Of each: "inner", what the step itself measured, and "outer", from before it began to after it ended. The truth lies between.
"""
import asyncio
import selectors
import threading
import time

from truth import burn, leave

LENGTHS = (0.05, 0.12, 0.3)
SHORT = 0.001
truth = []


class Selector(selectors.DefaultSelector):
    """Knows how long its loop was away."""
    left, longest = None, 0

    def select(self, timeout=None):
        if self.left is not None:
            self.longest = max(self.longest, time.monotonic() - self.left)
        try:
            return super().select(timeout)
        finally:
            self.left = time.monotonic()


def third(seconds):
    burn(seconds, time.monotonic)


def second(seconds):
    third(seconds / 2)
    burn(seconds / 2, time.monotonic)


def computes(seconds):
    second(seconds / 2)
    third(seconds / 2)


def stands(seconds):
    time.sleep(seconds)


def does_both(seconds):
    for _ in range(5):
        computes(seconds / 10)
        stands(seconds / 10)


async def plants(step, seconds, found):
    for length in (seconds / 3, seconds):
        await asyncio.sleep(0.02)
        began = time.monotonic()
        step(length)
        found["inner"] = max(found["inner"], time.monotonic() - began)
    await asyncio.sleep(0.02)


class Short:
    """Steps back to back, each of which ends before the next begins, and begins after the one before it ended."""

    def __init__(self):
        self.made, self.times = time.monotonic(), []

    def step(self):
        began = time.monotonic()
        burn(SHORT, time.monotonic)
        self.times.append((began, time.monotonic()))

    def note(self, found):
        found["inner"] = max(ended - began for began, ended in self.times)
        times = [(self.made, self.made)] + self.times + [(time.monotonic(),) * 2]
        found["outer"] = max(after[0] - before[1] for before, after in zip(times, times[2:]))


async def many_turns(short):
    """Each step in a turn of its own."""
    loop, done = asyncio.get_running_loop(), asyncio.Event()

    def again():
        short.step()
        loop.call_soon(again if len(short.times) < 200 else done.set)
    loop.call_soon(again)
    await done.wait()


class Frozen(asyncio.SelectorEventLoop):
    """Its clock stands, so what asyncio has in memory is the same for all turns."""

    def __init__(self, selector):
        self.now = time.monotonic()
        super().__init__(selector)

    def time(self):
        return self.now


def frozen(selector):
    """The same of the instance."""
    loop, now = asyncio.SelectorEventLoop(selector), time.monotonic()
    loop.time = lambda: now
    return loop


async def one_turn(short):
    """All in one."""
    for _ in range(200):
        asyncio.get_running_loop().call_soon(short.step)
    await asyncio.sleep(0.01)


def run(name, coroutine, found, selector, make):
    loop = make(selector)
    found.update(name=name, thread=threading.get_native_id())
    try:
        loop.run_until_complete(coroutine)
    finally:
        loop.close()


def one(name, make, loop=asyncio.SelectorEventLoop):
    """In a thread; make: a coroutine, and what it notes at the end."""
    found, selector = {"inner": 0}, Selector()
    coroutine, short = make(found)
    thread = threading.Thread(target=run, args=(name, coroutine, found, selector, loop))
    thread.start()
    thread.join()
    found["outer"] = selector.longest
    if short:
        short.note(found)
    truth.append(found)


def backs(kind):
    def make(found):
        short = Short()
        return kind(short), short
    return make


for step in (computes, stands, does_both):
    for seconds in LENGTHS:
        one(step.__name__, lambda found, step=step, seconds=seconds: (plants(step, seconds, found), None))
for kind in (many_turns, one_turn):
    one(kind.__name__, backs(kind))
for loop in (Frozen, frozen):
    one("own_clock", backs(many_turns), loop)
leave({"loops": truth})
