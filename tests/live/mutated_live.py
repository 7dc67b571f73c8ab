# SPDX-License-Identifier: MIT
"""Does whatever a Python's memory says leave libaprof's readers alive, and quick?

    python mutated_live.py LIBRARY [SECONDS]

LIBRARY is build/mutated_live.so. An image of this process's memory is read over
and over, as the sampler reads, while a second thread rewrites it: first the image
as it is, from which stacks must come, then SECONDS (0.5) of it changing, then as it
is again. Ends with "N passed, N failed".
"""
import asyncio
import collections
import contextvars
import ctypes
import sys
import threading
import time

MANY = 60
FACTOR = 50           # a broken image may cost so many times the reads of a whole one ...
LARGE = 2_000_000     # ... or so many, a few milliseconds of copying
HEALED = 130          # rounds after which nothing is left of what a broken image said


def deep(n, gate):
    if n:
        return deep(n - 1, gate)
    return next(steps(gate))


def steps(gate):
    def inner():
        gate.wait()
        yield 1
    yield from inner()


class Path:
    """Names of every kind: Latin-1, UCS-2, UCS-4, long ones."""

    def schön(self, gate):
        return self.шаг(gate)

    def шаг(self, gate):
        exec(compile("def %s(gate):\n gate.wait()\n%s(gate)" % (2 * ("n" * 700,)), "\U0001f40d.py", "exec"), {"gate": gate})


async def agen(event):
    await event.wait()
    yield 1


async def over(event):
    async for _ in agen(event):
        pass


async def chain(n, event):
    if n:
        return await chain(n - 1, event)
    await event.wait()


async def group(event):
    if hasattr(asyncio, "TaskGroup"):
        async with asyncio.TaskGroup() as tasks:
            for n in range(4):
                tasks.create_task(chain(n, event), name="of-group-%d" % n)
    await event.wait()


async def parent(event):
    await asyncio.gather(asyncio.shield(chain(2, event)), over(event), asyncio.wait_for(chain(1, event), 3600),
                         asyncio.wait([asyncio.ensure_future(chain(3, event)), asyncio.ensure_future(over(event))]))


async def service(loops, ready):
    event = asyncio.Event()
    loops.append((asyncio.get_running_loop(), event))
    asyncio.get_running_loop().set_exception_handler(lambda loop, context: None)
    tasks = [asyncio.ensure_future(coroutine(event)) for coroutine in (group, parent, over) for _ in range(MANY // 6)]
    queue = asyncio.Queue()
    tasks += [asyncio.ensure_future(queue.get()) for _ in range(MANY // 6)]
    both = asyncio.gather(tasks[0], tasks[1])
    tasks += [asyncio.ensure_future(waits_for(both)) for _ in range(3)]
    await asyncio.sleep(0.05)
    asyncio.get_running_loop().call_soon(ready.set)
    await event.wait()


async def waits_for(future):
    await asyncio.shield(future)


def run_loop(loops, ready):
    try:
        asyncio.run(service(loops, ready))
    except BaseException:  # what is cancelled at the end says so
        pass


def main():
    library = ctypes.PyDLL(sys.argv[1])
    seconds = float(sys.argv[2]) if len(sys.argv) > 2 else 0.5
    for name in ("open", "take", "round", "mutate", "rest", "texts"):
        getattr(library, "live_" + name).restype = ctypes.c_long
    for name in ("changes", "most_reads"):
        getattr(library, "live_" + name).restype = ctypes.c_ulong
    library.live_texts.argtypes = [ctypes.c_char_p, ctypes.c_long]
    library.live_round.argtypes = library.live_mutate.argtypes = [ctypes.c_ulong]
    gate, ready, loops = threading.Event(), threading.Event(), []
    kept = [contextvars.copy_context(), collections.deque(range(100)), {n: str(n) for n in range(100)}]
    threads = [threading.Thread(target=deep, args=(90 * n, gate), daemon=True) for n in range(5)]
    threads += [threading.Thread(target=Path().schön, args=(gate,), daemon=True), threading.Thread(target=run_loop, args=(loops, ready), daemon=True)]
    for thread in threads:
        thread.start()
    ready.wait(30)
    time.sleep(0.1)  # so that each stands where it waits; where not, it is read all the same
    debug = hasattr(sys, "gettotalrefcount")
    passed, failed = judge(library, library.live_open(int(debug)), seconds)
    gate.set()
    for loop, event in loops:
        loop.call_soon_threadsafe(event.set)
    del kept
    print("%d passed, %d failed" % (passed, failed))
    return failed > 0


def stacks_of(library, rounds=20):
    """What so many rounds over the image see, and the reads of the last one."""
    library.live_forget()
    reads = [library.live_round(n) for n in range(1, rounds + 1)][-1]
    text = ctypes.create_string_buffer(1 << 22)
    size = library.live_texts(text, len(text))
    return set(text.raw[:size].decode().splitlines()), reads


def judge(library, opened, seconds):
    results = []

    def check(truth, text):
        results.append(truth)
        if not truth:
            print("FAILED " + text)
    check(opened == 0, "no layout: %d" % opened)
    kilobytes = library.live_take()
    check(kilobytes > 1000, "an image of %d KiB" % kilobytes)
    library.live_round(1)
    before, whole = stacks_of(library)
    tasks = [text for text in before if text.startswith("task ")]
    check(len(before) - len(tasks) >= 7 and len(tasks) >= 6 and whole > 1000, "of the whole image %d reads and these stacks: %s" % (whole, before))
    library.live_most_reads()
    rounds = 0
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        library.live_mutate(rounds // 50 + 1)
        for _ in range(50):
            rounds += 1
            library.live_round(rounds)
        library.live_rest()
    most = library.live_most_reads()
    check(library.live_changes() > rounds // 50, "%d changes in %d rounds" % (library.live_changes(), rounds))
    check(most <= max(FACTOR * whole, LARGE), "%d reads in a round; %d of an image that is whole" % (most, whole))
    for n in range(1, HEALED):
        library.live_round(n)
    after, again = stacks_of(library)
    check(after == before, "the whole image shows after that: %s\nand no more: %s" % (sorted(after - before), sorted(before - after)))
    check(again <= 2 * whole, "%d reads of the whole image after that, %d before" % (again, whole))
    print("%d rounds, %d words rewritten; reads a round %d, at most %d" % (rounds, library.live_changes(), whole, most), end="; ")
    return results.count(True), results.count(False)


if __name__ == "__main__":
    sys.exit(main())
