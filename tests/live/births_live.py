# SPDX-License-Identifier: MIT
"""Does libaprof know which coroutines made which task?

    python births_live.py LIBRARY

LIBRARY is build/births_live.so. Each way of making a task is tried; what the
hooks noted is compared with id() of the task and of the coroutines that were
executing. The caller holds the GIL, so there is no tolerance. Ends with
"N passed, N failed".
"""
import asyncio
import collections.abc
import ctypes
import gc
import os
import random
import sys
import threading
import types

import _asyncio

RING_WORDS = 1 << 17


class Before(asyncio.Task):
    pass


class BeforeOwnInit(asyncio.Task):
    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)


class BeforeBelow(Before):
    pass


class Mixin:
    pass


class BeforeMixed(Mixin, BeforeBelow):
    pass


class Live:
    def __init__(self, path):
        self.lib = ctypes.PyDLL(path)  # PyDLL: the GIL stays held
        for name in ("live_hook", "live_is_hooked", "live_coroutine", "live_counts_futures", "live_future_deaths"):
            getattr(self.lib, name).argtypes = [ctypes.c_uint64]
        for name in ("live_open", "live_start", "live_hook", "live_is_hooked", "live_next", "live_makers", "live_counts_futures"):
            getattr(self.lib, name).restype = ctypes.c_long
        for name in ("live_coroutine", "live_lost", "live_halves", "live_future_deaths"):
            getattr(self.lib, name).restype = ctypes.c_ulong
        self.passed = self.failed = 0
        self.birth = (ctypes.c_uint64 * 64)()

    def same(self, label, got, want):
        if got == want:
            self.passed += 1
            return
        self.failed += 1
        if self.failed <= 20:
            print(f"FAILED {label}: got {str(got)[:400]}\n    want {str(want)[:400]}")

    def births(self):
        """[(task, [maker])] since the last call."""
        out = []
        while (count := self.lib.live_next(self.birth)) >= 0:
            out.append((self.birth[0], self.birth[1:1 + count]))
        return out

    def address(self, maker):
        return self.lib.live_coroutine(maker)

    def made(self, label, task, *coroutines):
        """Exactly one birth, this task's, of these coroutines, innermost first."""
        births = self.births()
        self.same(label, [(at, [self.address(m) for m in makers]) for at, makers in births],
                  [(id(task), [id(c) for c in coroutines])])
        return births[0][1] if births else []


live = None


def run(function):
    """asyncio.run, of a coroutine that knows itself."""
    self = []
    self.append(function(self))
    with asyncio.Runner() as runner:
        task = runner.get_loop().create_task(self[0])
        live.births()
        runner.get_loop().run_until_complete(task)


async def nothing():
    pass


def nested(function, *outer):
    """A coroutine that awaits function([inner], itself, *outer)."""
    async def middle():
        inner = []
        inner.append(function(inner, coroutine, *outer))
        return await inner[0]
    coroutine = middle()
    return coroutine


async def kinds(self):
    me, loop = self[0], asyncio.get_running_loop()

    class After(asyncio.Task):
        pass

    class AfterOwnInit(BeforeOwnInit):
        def __init__(self, *args, **kwargs):
            super().__init__(*args, **kwargs)

    class AfterMixed(Mixin, AfterOwnInit):
        pass

    ways = {
        "create_task": lambda: asyncio.create_task(nothing()),
        "loop.create_task": lambda: loop.create_task(nothing()),
        "ensure_future": lambda: asyncio.ensure_future(nothing()),
        "Task()": lambda: asyncio.Task(nothing(), loop=loop),
        "Task.__init__": lambda: initialised(asyncio.Task.__new__(asyncio.Task), loop),
    }
    for cls in (Before, BeforeOwnInit, BeforeBelow, BeforeMixed, After, AfterOwnInit, AfterMixed):
        ways[cls.__name__] = lambda cls=cls: cls(nothing(), loop=loop)
    if sys.version_info >= (3, 12):
        ways["eager_start"] = lambda: asyncio.Task(nothing(), loop=loop, eager_start=True)
        ways["eager subclass"] = lambda: BeforeBelow(nothing(), loop=loop, eager_start=True)
    for label, way in ways.items():
        for _ in range(20):  # also after the interpreter has specialised the call
            task = way()
            live.made(label, task, me)
            await task
            live.births()


def initialised(task, loop):
    task.__init__(nothing(), loop=loop)
    return task


async def groups(self):
    me = self[0]
    if hasattr(asyncio, "TaskGroup"):
        async with asyncio.TaskGroup() as group:
            task = group.create_task(nothing())
            live.made("TaskGroup", task, me)
    gathering = asyncio.gather(nothing(), nothing(), nothing())
    births = live.births()
    live.same("gather", [[live.address(m) for m in makers] for _, makers in births], 3 * [[id(me)]])
    live.same("gather's tasks", {at for at, _ in births}, {id(child) for child in asyncio.all_tasks()} - {id(asyncio.current_task())})
    await gathering
    await asyncio.wait_for(nothing(), 10)
    births = live.births()
    live.same("wait_for", len(births), 1 if sys.version_info < (3, 12) else 0)
    for _, makers in births:
        live.same("wait_for's makers", (len(makers), live.address(makers[0]), live.address(makers[-1])), (2, 0, id(me)))


async def depths(self):
    me = self[0]

    async def makes(own, *outer):
        task = asyncio.create_task(nothing())
        live.made("nested", task, own[0], *outer)
        await task
        if len(outer) < 7:
            await nested(makes, own[0], *outer)
    await nested(makes, me)

    async def deep(levels):
        mine.append(id(coroutine := made.pop()))
        del coroutine
        if levels:
            made.append(deep(levels - 1))
            await made[-1]
        else:
            task = asyncio.create_task(nothing())
            births = live.births()
            live.same("a deep chain is cut", [(at, [live.address(m) for m in makers]) for at, makers in births], [(id(task), mine[::-1][:30])])
            await task
    mine, made = [], []
    made.append(deep(100))
    await made[-1]

    def recursive(levels):
        return recursive(levels - 1) if levels else asyncio.create_task(nothing())
    task = recursive(100)
    live.made("under functions", task, me)
    task = recursive(700)
    births = live.births()
    live.same("under too many functions", births, [(id(task), [])])


async def eager(self):
    me, loop = self[0], asyncio.get_running_loop()
    if sys.version_info < (3, 12):
        return

    async def child():
        inner.append(asyncio.Task(nothing(), loop=loop))
    inner, coroutine = [], child()
    task = asyncio.Task(coroutine, loop=loop, eager_start=True)
    births = [(at, [live.address(m) for m in makers]) for at, makers in live.births()]
    live.same("eager child", births, [(id(task), [id(me)]), (id(inner[0]), [id(coroutine), id(me)])])
    await inner[0]
    loop.set_task_factory(asyncio.eager_task_factory)
    task = asyncio.create_task(nothing())
    live.made("eager factory", task, me)
    live.same("finished at birth", task.done(), True)
    loop.set_task_factory(None)


async def generators(self):
    me = self[0]

    async def source():
        while True:
            task = asyncio.create_task(nothing())
            yield task

    async def consume(own, middle, agen):
        task = await agen.__anext__()
        return live.made("async generator", task, agen, own[0], middle, me)[:1]

    agen = source()
    firsts = []
    for _ in range(3):  # not a comprehension, which is a coroutine of its own on 3.11
        firsts.append(await nested(lambda own, middle: consume(own, middle, agen)))
    live.same("one maker for one async generator", len(set(map(tuple, firsts))), 1)
    await agen.aclose()
    live.births()
    [maker] = firsts[0]
    live.same("alive", live.address(maker), id(agen))
    del agen
    live.same("dead", live.address(maker), 0)

    @types.coroutine
    def generator():
        task = asyncio.create_task(nothing())
        live.made("a generator as coroutine is left out", task, me)
        yield from task.__await__()
    await generator()

    task = await (asyncio.create_task(nothing()) async for _ in once()).__anext__()
    live.same("async generator expression", [len(makers) for at, makers in live.births() if at == id(task)], [2])


async def once():
    yield 1


async def identities(self):
    me, loop = self[0], asyncio.get_running_loop()

    async def spawn():
        return asyncio.Task(nothing(), loop=loop)

    seen, places, alive = [], set(), 0
    for _ in range(200):
        coroutine = spawn()
        places.add(id(coroutine))
        task = await coroutine
        (maker, outer), = [makers for at, makers in live.births()]
        alive += live.address(maker) == id(coroutine)
        del coroutine
        alive -= live.address(maker) != 0
        seen.append(maker)
        live.same("the outer one lives", live.address(outer), id(me))
        await task
    live.same("alive while it was", alive, 200)
    live.same("each has an identity of its own", len(set(seen)), 200)
    live.same("addresses were used again", len(places) < 100, True)
    live.same("all of them dead", [live.address(m) for m in seen], 200 * [0])


class Suspend:
    def __await__(self):
        yield


async def endings(self):
    """Makes tasks while it is being destroyed."""
    loop = asyncio.get_running_loop()

    async def last_will():
        try:
            await Suspend()
        finally:
            tasks.append(asyncio.Task(nothing(), loop=loop))

    async def last_of_generator():
        try:
            yield 1
        finally:
            tasks.append(asyncio.Task(nothing(), loop=loop))

    await asyncio.create_task(nothing())  # so that this one is a maker
    live.births()
    before = live.lib.live_makers()
    for _ in range(100):
        tasks = []
        coroutine = last_will()
        coroutine.send(None)
        address = id(coroutine)
        del coroutine
        births = live.births()
        live.same("made in finally", [at for at, makers in births], [id(tasks[0])])
        live.same("its maker is gone", (live.address(births[0][1][0]), live.lib.live_makers()), (0, before))
        agen = last_of_generator()
        await agen.__anext__()
        del agen  # the loop makes a task of its aclose(): it lives again
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        await tasks.pop()
        live.same("an async generator that lives again", len(tasks), 1)
        await tasks.pop()
        live.births()
    gc.collect()
    live.same("none is left over", (live.lib.live_makers(), address != 0), (before, True))


async def errors(self):
    me, loop = self[0], asyncio.get_running_loop()
    for wrong in (None, 1, "x", nothing, object()):
        for cls in (asyncio.Task, Before, BeforeOwnInit):
            try:
                cls(wrong, loop=loop)
                live.same("an error", cls, None)
            except TypeError as error:
                live.same("its text", "coroutine was expected" in str(error), True)
    try:
        asyncio.Task()
    except TypeError as error:
        live.same("arguments are checked by the original", "coro" in str(error), True)
    live.births()
    task = asyncio.Task(nothing(), loop=loop)
    await task
    live.made("before it is initialised again", task, me)
    if sys.version_info < (3, 15):  # which refuses
        initialised(task, loop)
        live.made("initialised again", task, me)
        await task


async def many(self):
    """Each of 100,000 tasks made by a coroutine of its own, in batches."""
    me = self[0]

    async def parent():
        return asyncio.create_task(nothing())

    lost, births, wrong = live.lib.live_lost(), 0, 0
    for _ in range(200):
        tasks = [asyncio.create_task(parent()) for _ in range(250)]
        for task in tasks:
            await (await task)
        noted = live.births()
        births += len(noted)
        wrong += sum(len(makers) != 1 for _, makers in noted)
    live.same("all noted", (births, wrong), (100000, 0))
    live.same("none lost", live.lib.live_lost(), lost)
    del tasks, task
    live.same("makers left", live.lib.live_makers(), 1)
    live.same("which is", live.address(noted[0][1][0]), id(me))


def refused(task, loop):
    try:
        task.__init__(None, loop=loop)
    except (TypeError, RuntimeError):  # 3.15: it is initialised already
        pass


class OwnFuture(asyncio.Future):
    pass


async def futures(self):
    """Each death is counted where it was, and nothing else is."""
    loop, deaths = asyncio.get_running_loop(), live.lib.live_future_deaths
    live.same("counted", live.lib.live_counts_futures(id(_asyncio.Future)), 1)
    live.same("another type's", live.lib.live_counts_futures(id(dict)), 0)
    ways = {
        "Future()": lambda: _asyncio.Future(loop=loop),
        "create_future": loop.create_future,
        "a subclass's": lambda: OwnFuture(loop=loop),
        "gather's": lambda: asyncio.gather(loop.create_future()),
    }
    for label, way in ways.items():
        for ending in ("let go", "done", "garbage"):
            future = way()
            at = id(future)
            before = deaths(at)
            if ending == "done" and label != "gather's":
                future.set_result(None)
            elif ending == "garbage":
                circle = [future]
                circle.append(circle)
                del circle
            live.same(f"{label} lives, {ending}", deaths(at), before)
            del future
            if ending == "garbage" or label == "gather's":
                await asyncio.sleep(0)
                gc.collect()
            live.same(f"{label} died, {ending}", deaths(at) != before, True)


class Steps(collections.abc.Coroutine):
    """A coroutine that knows how often it was sent on."""

    def __init__(self, coroutine):
        self.coroutine, self.steps = coroutine, 0

    def send(self, value):
        self.steps += 1
        return self.coroutine.send(value)

    def throw(self, *error):
        self.steps += 1
        return self.coroutine.throw(*error)

    def close(self):
        self.coroutine.close()

    def __await__(self):
        return self.coroutine.__await__()


async def wander(rng, queue, turns):
    """Waits in all kinds of ways, mostly where it waited before."""
    for _ in range(turns):
        await rng.choice((by_sleep, by_queue, by_wait_for, by_shield, by_gather, by_event, by_cancel, by_wait))(rng, queue)


async def by_sleep(rng, queue):
    await asyncio.sleep(rng.random() / 1000)


async def by_queue(rng, queue):
    if rng.random() < 0.6:
        queue.put_nowait(1)
    await queue.get()


async def by_wait_for(rng, queue):
    try:
        await asyncio.wait_for(asyncio.sleep(rng.random() / 500), rng.random() / 500)
    except asyncio.TimeoutError:
        pass


async def by_shield(rng, queue):
    await asyncio.shield(asyncio.sleep(rng.random() / 1000))


async def by_gather(rng, queue):
    await asyncio.gather(*(asyncio.sleep(rng.random() / 1000) for _ in range(3)))


async def by_event(rng, queue):
    event = asyncio.Event()
    asyncio.get_running_loop().call_later(rng.random() / 1000, event.set)
    await event.wait()


async def by_cancel(rng, queue):
    asyncio.get_running_loop().call_later(rng.random() / 1000, asyncio.current_task().cancel)
    try:
        await asyncio.get_running_loop().create_future()
    except asyncio.CancelledError:
        if sys.version_info >= (3, 11):
            asyncio.current_task().uncancel()
        await asyncio.sleep(0)


async def by_wait(rng, queue):
    await asyncio.wait({asyncio.ensure_future(asyncio.sleep(rng.random() / 1000))}, timeout=rng.random() / 1000)


async def waits_at_the_same(self):
    """A task that is sent on twice between two looks often waits where it did, for another future."""
    loop, futures, same = asyncio.get_running_loop(), [], 0

    async def goes_on():
        while True:
            futures.append(loop.create_future())
            await futures[0]

    task = loop.create_task(goes_on())
    await asyncio.sleep(0)
    seen = waits_for(task)
    for _ in range(400):
        for _ in range(2):
            futures.pop().set_result(None)
            await asyncio.sleep(0)
            await asyncio.sleep(0)
        now = waits_for(task)
        live.same("not for the same", now != seen, True)
        same += now[0] == seen[0]
        seen = now
    live.same("at the same address", same > 10 or same, True)
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    live.births()


def waits_for(task):
    """The address of the future that it waits for and the deaths there; None: it does not."""
    waiter = task._fut_waiter
    if waiter is None or waiter.done() or isinstance(waiter, asyncio.Task):
        return None
    return id(waiter), live.lib.live_future_deaths(id(waiter))


async def waits(self):
    """What a task that rests rests on: it has not been sent on while it waits for the same future."""
    rng, queue = random.Random(5), asyncio.Queue()
    roots = [Steps(wander(rng, queue, 10 ** 9)) for _ in range(40)]
    tasks = [asyncio.get_running_loop().create_task(root) for root in roots]
    seen, again, fooled = [(None, 0)] * len(tasks), 0, 0
    for turn in range(4000):
        await asyncio.sleep(0 if turn % 3 else 0.0005)
        for i, task in enumerate(tasks):
            now = waits_for(task), roots[i].steps
            if now[0] and seen[i][0] and now[0] == seen[i][0]:
                again += 1
                fooled += now[1] != seen[i][1]
            seen[i] = now
    live.same("sent on though it waits for the same", fooled, 0)
    live.same("waiting for the same was seen", again > 1000, True)
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    live.births()


async def overflow(self):
    loop = asyncio.get_running_loop()
    task = asyncio.Task(nothing(), loop=loop)
    await task
    live.births()
    lost, halves, room = live.lib.live_lost(), live.lib.live_halves(), RING_WORDS // 3
    for n in range(room + 1000):
        refused(task, loop)
        if n == RING_WORDS // 6 - 1:
            live.same("not called before the half", live.lib.live_halves(), halves)
    live.same("called at the half, once", live.lib.live_halves(), halves + 1)
    live.same("what found no room is counted", live.lib.live_lost(), lost + 1000)
    births = live.births()
    live.same("of those at one address the last is there", [(at, tuple(map(live.address, makers))) for at, makers in births], [(id(task), (id(self[0]),))])
    task = asyncio.Task(nothing(), loop=loop)
    live.made("as before", task, self[0])
    live.same("no more lost", live.lib.live_lost(), lost + 1000)
    await task


async def crowd(self):
    """More makers than the table takes."""
    def step(coroutine):
        coroutine.send(None)
        return coroutine

    async def stays():
        tasks.append(asyncio.Task(nothing(), loop=loop))
        await Suspend()

    loop, tasks = asyncio.get_running_loop(), []
    for count in (20000, 160000):
        before, lost = live.lib.live_makers(), live.lib.live_lost()
        coroutines, noted, ok = [], 0, 0
        for start in range(0, count, 10000):
            batch = [step(stays()) for _ in range(10000)]
            births = live.births()
            noted += len(births)
            by_task = {id(t): id(c) for t, c in zip(tasks, batch)}
            ok += sum(live.address(makers[0]) == by_task[at] for at, makers in births)
            coroutines += batch
            for task in tasks:
                task.cancel()
            await asyncio.wait(tasks)
            tasks.clear()
            live.births()
        refused = live.lib.live_lost() - lost
        live.same("each is noted or counted, and rightly", (noted + refused, ok), (count, noted))
        # A bucket may be full by chance: with 20,000 in 16,384 buckets of 8 one is in every tenth run.
        live.same("lost", refused > count // 1000, count > 100000)
        live.same("makers", live.lib.live_makers() - before - noted in (0, 1), True)
        for coroutine in coroutines:
            coroutine.close()
        del batch, coroutines, coroutine
        live.same("all ways free again", live.lib.live_makers() - before in (0, 1), True)


def outside():
    loop = asyncio.new_event_loop()
    live.births()
    task = loop.create_task(nothing())
    live.made("made outside of any coroutine", task)
    loop.run_until_complete(task)
    loop.close()


def in_threads():
    def work(results):
        async def main():
            async def inner():
                pair.append(id(asyncio.create_task(nothing())))
                barrier.wait(30)
                return pair
            pair = [id(coroutine := inner()), id(own[0])]
            return await coroutine
        own = []
        own.append(main())
        results.append(asyncio.run(own[0]))
    barrier, results = threading.Barrier(4), []
    live.births()
    threads = [threading.Thread(target=work, args=(results,)) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    births = live.births()
    live.same("threads: two tasks each", len(births) - sum(not makers for _, makers in births), 4)
    live.same("threads: their tasks", {at for at, makers in births if makers} , {task for _, _, task in results})
    live.same("threads: chains", {len(makers) for _, makers in births}, {0, 2})


ISOLATED = """
import asyncio, os, _asyncio
os.write({to}, b"%d" % id(_asyncio.Task))
os.read({start}, 1)
async def nothing(): pass
kept = [] # each at an address of its own: no birth supersedes another
async def parent():
    kept.append(asyncio.create_task(nothing()))
    await kept[-1]
async def main():
    for _ in range({count}):
        await parent()
asyncio.run(main())
"""


def sub_interpreters():
    """Interpreters with a GIL of their own make tasks at once."""
    if sys.version_info < (3, 12):
        return
    try:
        import _interpreters as interpreters
    except ImportError:
        import _xxsubinterpreters as interpreters
    count, lost = 3000, live.lib.live_lost()
    live.births()
    (types_in, types_out), (start_in, start_out) = os.pipe(), os.pipe()
    failures, threads, idents = [], [], []
    for _ in range(3):
        ident = interpreters.create() if sys.version_info < (3, 13) else interpreters.create("isolated")
        code = ISOLATED.format(to=types_out, start=start_in, count=count)
        thread = threading.Thread(target=lambda ident=ident: failures.append(interpreters.run_string(ident, code)))
        thread.start()
        address = int(os.read(types_in, 32))
        live.same("another type", (address != id(_asyncio.Task), live.lib.live_is_hooked(address)), (True, 0))
        live.same("hooked too", (live.lib.live_hook(address), live.lib.live_is_hooked(address)), (1, 1))
        threads.append(thread)
        idents.append(ident)
    os.write(start_out, b"xxx")
    for thread in threads:
        thread.join()
    births = live.births()
    live.same("interpreters", failures, 3 * [None])
    live.same("births in them", len([m for _, m in births if len(m) == 2]), 3 * count)
    live.same("and outside of coroutines", 3 <= len([m for _, m in births if not m]) <= 9, True)  # asyncio.run makes three, one after the other
    live.same("no two coroutines share an identity", len({m[0] for _, m in births if m}), 3 * count)
    live.same("none lost there", live.lib.live_lost(), lost)
    live.same("no maker is left over there", live.lib.live_makers(), 0)
    if sys.version_info < (3, 13):
        live.interpreters = idents  # 3.12.1 hangs when they end, also without us
        return
    for ident in idents:
        interpreters.destroy(ident)


def refusals():
    class Foreign:
        def __init__(self):
            pass
    for label, type_ in (("pure Python", asyncio.tasks._PyTask), ("int", int), ("foreign", Foreign), ("module", asyncio)):
        live.same("refused: " + label, live.lib.live_hook(id(type_)), 0)
    for address in (0, 1, 8, 4096, 0xdddddddddddddddd, 0x0000800000000000, 2**64 - 8):
        live.same("refused: no type there", live.lib.live_hook(address), 0)


def main():
    global live
    live = Live(sys.argv[1])
    error = live.lib.live_open(hasattr(sys, "gettotalrefcount")) or live.lib.live_start()
    if error:
        print(f"live_open, live_start: {error}")
        return 1
    task = id(_asyncio.Task)
    live.same("not hooked", live.lib.live_is_hooked(task), 0)
    refusals()
    live.same("hook", (live.lib.live_hook(task), live.lib.live_is_hooked(task)), (1, 1))
    live.same("again", (live.lib.live_hook(task), live.lib.live_is_hooked(task)), (1, 1))
    refusals()
    outside()
    for test in (kinds, groups, depths, eager, generators, identities, endings, errors, futures, waits, waits_at_the_same, many, overflow, crowd):
        run(test)
        live.births()
        gc.collect()
        live.same(f"{test.__name__}: no maker is left over", live.lib.live_makers(), 0)
    in_threads()
    sub_interpreters()
    live.same("still hooked", live.lib.live_is_hooked(task), 1)
    print(f"{live.passed} passed, {live.failed} failed")
    return live.failed != 0


if __name__ == "__main__":
    status = main()
    sys.stdout.flush()
    os._exit(status)  # the interpreters that are left over
