# SPDX-License-Identifier: MIT
"""Memory of the interpreter that changes as fast as it can, in one way.

    busy_memory.py KIND SECONDS

Does so for that much CPU time, then prints what came out, which is the same
whoever looks on.
"""
import asyncio
import gc
import os
import random
import sys
import threading
import time
import types

KIND, SECONDS = sys.argv[1], float(sys.argv[2])
sys.setrecursionlimit(5000)
threading.stack_size(64 << 20)


def until():
    """True until the process has used its time."""
    return time.process_time() < SECONDS


def in_threads(function, count):
    """Runs it in so many threads at once; one that raises is a failure."""
    failed = []

    def guarded(number):
        try:
            function(number)
        except BaseException as error:
            failed.append(repr(error))
    threads = [threading.Thread(target=guarded, args=(n,)) for n in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failed, failed


def fall(depth):
    return 0 if depth == 0 else 1 + fall(depth - 1)


def stacks():
    """Chunks of the frame stack that grow and shrink: 5 to 900 deep and back, 8 threads."""
    def work(number):
        while until():
            assert fall(5) == 5 and fall(900 - number) == 900 - number
    in_threads(work, 8)


def raised():
    """Recursion to its limit, unwound by an exception each time."""
    def forever(n):
        return forever(n + 1) + 1

    def work(number):
        while until():
            try:
                forever(0)
            except RecursionError as error:
                traceback = error.__traceback__
                while traceback.tb_next:
                    traceback = traceback.tb_next
                assert traceback.tb_frame.f_locals["n"] > 100
    in_threads(work, 3)


def code():
    """Functions that are made, called and freed, with code swapped under them while they run."""
    def work(number):
        made = 0
        while until():
            space = {}
            exec(compile("def f(n):\n return n if n < 2 else f(n - 1) + 1\n", "<made %d>" % made, "exec"), space)
            assert space["f"](20) == 20
            space["f"].__code__ = (lambda n: n * 2).__code__
            assert space["f"](20) == 40
            space["f"].__code__ = space["f"].__code__.replace(co_name="r%d" % made, co_firstlineno=made % 100000)
            assert space["f"](3) == 6
            made += 1
    in_threads(work, 3)


def names():
    """Functions of long names, each long enough to be met once, that never come again."""
    made = 0
    while until():
        made += 1
        name, space = "f%d_" % made + "x" * 300, {}
        exec(compile("def %s():\n for i in range(8000): pass\n" % name, "<made>", "exec"), space)
        space[name]()


def full():
    """As many names as a small heap has room for, and then threads that work."""
    made = 0
    while time.process_time() < SECONDS / 2:
        space, called = {"last": lambda: sum(range(200000))}, "last"
        for _ in range(20):
            made += 1
            name = "f%d_" % made + "x" * 900
            exec(compile("def %s():\n %s()\n" % (name, called), "<made %s>" % name, "exec"), space)
            called = name
        space[called]()

    def work(number):
        end = time.thread_time() + 0.03
        while time.thread_time() < end:
            sum(range(1000))
    while until():
        in_threads(work, 20)


def generators():
    """Generators in every state: begun, closed, thrown into, freed in mid-run, resumed by another thread."""
    def nested(depth):
        if depth:
            yield from nested(depth - 1)
        for n in range(5):
            yield n

    def work(number):
        kept = []
        while until():
            kept.append(nested(random.randrange(30)))
            next(kept[-1])
            if len(kept) > 50:
                del kept[random.randrange(50)]
                try:
                    kept[0].throw(ValueError())
                except ValueError:
                    pass
                kept[1].close()
                assert sum(kept[2]) % 10 == 0
                del kept[:3]
    in_threads(work, 4)


def frames():
    """Frames that outlive their call, are cleared, and are walked by the program itself."""
    def leaf():
        return sys._getframe()

    def work(number):
        kept = []
        while until():
            frame = leaf()
            assert frame.f_code.co_name == "leaf" and frame.f_back.f_code.co_name == "work"
            kept.append(frame)
            if len(kept) > 200:
                for old in kept[:100]:
                    old.clear()
                del kept[:150]
                sys._current_frames()
    in_threads(work, 4)


def threads():
    """Threads that live for less than a tick, made by threads."""
    def work(number):
        while until():
            inner = [threading.Thread(target=fall, args=(50,)) for _ in range(8)]
            for thread in inner:
                thread.start()
            for thread in inner:
                thread.join()
    in_threads(work, 3)


def objects():
    """Collections in the middle of everything, and types that come and go."""
    gc.set_threshold(10)

    def work(number):
        while until():
            kind = type("T%d" % number, (object,), {"f": lambda self: fall(10), "__del__": lambda self: fall(3)})
            things = [kind() for _ in range(20)]
            for thing in things:
                thing.self = thing
                assert thing.f() == 10
            del things
            gc.collect(0)
    in_threads(work, 3)


def tasks():
    """Tasks by the thousand, with default names, born and gone, cancelled and awaited by many."""
    async def leaf():
        await asyncio.sleep(0)
        return 1

    async def middle():
        return sum(await asyncio.gather(*(leaf() for _ in range(20))))

    async def cancelled():
        task = asyncio.ensure_future(asyncio.sleep(3600))  # never waited for: cancelled at once
        await asyncio.sleep(0)
        task.cancel()
        try:
            await task
        except asyncio.CancelledError:
            return 1

    async def main():
        while until():
            waiting = asyncio.ensure_future(middle())
            found = await asyncio.gather(middle(), cancelled(), asyncio.shield(waiting), asyncio.wait_for(waiting, 60))
            assert found == [20, 1, 20, 20], found

    def work(number):
        asyncio.run(main())
    in_threads(work, 2)


def async_generators():
    """Async generators and context managers, left in the middle and closed by the loop."""
    async def numbers(n):
        try:
            for i in range(n):
                await asyncio.sleep(0)
                yield i
        finally:
            await asyncio.sleep(0)

    class Manager:
        async def __aenter__(self):
            await asyncio.sleep(0)
            return self

        async def __aexit__(self, *error):
            await asyncio.sleep(0)

    async def use():
        async with Manager():
            async for i in numbers(6):
                if i == 4:
                    break
        return [i async for i in numbers(3)]

    async def main():
        while until():
            assert await asyncio.gather(*(use() for _ in range(10))) == [[0, 1, 2]] * 10
    asyncio.run(main())


def uvloop():
    """Code made by exec in the tasks of an event loop that is not Python's."""
    import uvloop as other

    async def made(n):
        space = {"asyncio": asyncio}
        exec("async def f%d():\n await asyncio.sleep(0)\n return %d\n" % (n, n), space)
        return await space["f%d" % n]()

    async def main():
        n = 0
        while until():
            n += 1
            assert await asyncio.gather(made(n), made(-n) if n == 0 else made(n + 1)) == [n, n + 1]
    other.new_event_loop().run_until_complete(main())


def interpreters():
    """Interpreters made and ended while the main one computes."""
    try:
        import _interpreters as module  # 3.13+
    except ImportError:
        import _xxsubinterpreters as module

    def work(number):
        while until():
            if number:
                assert fall(200) == 200
            else:
                made = module.create("legacy") if sys.version_info >= (3, 13) else module.create(isolated=False)
                (module.exec if hasattr(module, "exec") else module.run_string)(made, "def f(n): return n and f(n - 1)\nf(50)")
                module.destroy(made)
    in_threads(work, 2)


def greenlets():
    """Stacks that are switched under the interpreter, as gevent does it."""
    import greenlet

    def ping(n):
        other = greenlet.getcurrent().parent
        while n:
            n = other.switch(fall(n % 40))
        return "over"

    def work(number):
        while until():
            inner = [greenlet.greenlet(ping) for _ in range(20)]
            for n in range(1, 30):
                assert [g.switch(n) for g in inner] == [n % 40] * 20
            assert [g.switch(0) for g in inner] == ["over"] * 20
    in_threads(work, 2)


def gevent():
    """Everything patched, a pool of greenlets, timers and queues."""
    from gevent import monkey
    monkey.patch_all()
    import gevent as g
    from gevent.pool import Pool
    from gevent.queue import Queue

    def item(n):
        time.sleep(0.0001)
        fall(n % 50)
        return n

    def consume(queue, out):
        for n in queue:
            out.append(n)
    while until():
        queue, out = Queue(), []
        consumer = g.spawn(consume, queue, out)
        for n in Pool(20).imap(item, range(100)):
            queue.put(n)
        queue.put(StopIteration)
        consumer.join()
        assert out == list(range(100))


def imports():
    """The modules' table while it grows and shrinks, and extension modules that come."""
    names = ["json", "csv", "decimal", "sqlite3", "xml.dom.minidom", "email.message", "http.client", "unittest", "fractions", "difflib"]

    def work(number):
        while until():
            for name in names:
                __import__(name)
            for name in [n for n in sys.modules if n.split(".")[0] in ("json", "csv", "unittest", "difflib", "fractions")]:
                sys.modules.pop(name, None)
            sys.modules["made%d" % number] = types.ModuleType("made%d" % number)
    work(0)


def main():
    globals()[KIND]()
    print(KIND, "done")
    sys.stdout.flush()
    if KIND == "interpreters" and sys.version_info[:2] == (3, 12):
        os._exit(0)  # 3.12's own end of such a process is not to be relied on


if __name__ == "__main__":
    main()
