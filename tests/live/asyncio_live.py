# SPDX-License-Identifier: MIT
"""Does libaprof read this Python's futures and tasks rightly?

    python asyncio_live.py LIBRARY

LIBRARY is build/asyncio_live.so. Every answer is compared with what the objects
say of themselves. The caller holds the GIL, so there is no tolerance. asyncio is
imported late, on purpose. Ends with "N passed, N failed".
"""
import ctypes
import importlib
import os
import sys
import threading
import types

SIZE = 1 << 16
MANY = 4096
NONE, PLAIN, TASK = 0, 1, 2               # enum future_kind
PENDING, CANCELLED, FINISHED = 0, 1, 2    # enum future_state
LISTS = sys.version_info >= (3, 14)       # tasks stand in lists, and know who awaits them
EAGER = sys.version_info >= (3, 12)
FIELDS = "kind python state type loop callback0 callbacks awaited_by awaited_by_is_set waiter coro".split()
PARTS = "interp module task_type future_type py_task_type py_future_type current0 current1 set0 set1 set2 set3".split()

asyncio = None
kept = []


class Live:
    def __init__(self, path):
        self.lib = ctypes.PyDLL(path)  # PyDLL: the GIL stays held
        address, text, words = ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p
        for name, arguments in (("open", [ctypes.c_int]), ("reset", []), ("find", []), ("complete", []), ("complaint", [text, ctypes.c_long]),
                                ("parts", [words]), ("read", [address, words]), ("state", [address]), ("waiter", [address, words]),
                                ("name", [address, text, ctypes.c_long]), ("loop", []), ("current", [words, ctypes.c_long]),
                                ("tasks", [words, ctypes.c_long, ctypes.c_int])):
            function = getattr(self.lib, "live_" + name)
            function.restype, function.argtypes = ctypes.c_long, arguments
            setattr(self, name, function)
        self.passed = self.failed = 0

    def same(self, label, got, want):
        if got == want:
            self.passed += 1
            return
        self.failed += 1
        if self.failed <= 20:
            print(f"FAILED {label}: got {str(got)[:400]}\n    want {str(want)[:400]}")


live = None


def words(call, *arguments, room=16):
    out = (ctypes.c_uint64 * room)()
    return call(*arguments[:1], out, *arguments[1:]) if arguments else call(out), list(out)


def read(future):
    ok, out = words(live.read, id(future))
    return types.SimpleNamespace(**dict(zip(FIELDS, out))) if ok else None


def parts():
    count, out = words(live.parts)
    live.same("number of parts", count, len(PARTS))
    return types.SimpleNamespace(**dict(zip(PARTS, out)))


def name_of(task):
    buffer = ctypes.create_string_buffer(2048)
    return buffer[:live.name(id(task), buffer, len(buffer))].decode()


def current():
    out = (ctypes.c_uint64 * 16)()
    return list(out[:live.current(out, 16)])


def enumerated(of_dead_threads=0):
    out = (ctypes.c_uint64 * MANY)()
    count = live.tasks(out, MANY, of_dead_threads)
    return list(out[:count]) if count >= 0 else "broken"


def pending():
    """Those of all tasks that are pending, sorted: what all_tasks() says."""
    return sorted(task for task in enumerated() if live.state(task) == PENDING)


def ids(tasks):
    return sorted(map(id, tasks))


# Finding it.

def late_import():
    global asyncio
    assert "_asyncio" not in sys.modules
    live.same("before asyncio is imported", live.find(), 0)
    for name in ("_asyncio2", "asyncio", "_asyncio.tasks"):
        sys.modules[name] = types.ModuleType(name)
        live.same(f"{name} is not it", live.find(), 0)
        del sys.modules[name]
    for stand_in in (None, 1, types.ModuleType("_asyncio")):
        sys.modules["_asyncio"] = stand_in
        live.same(f"{stand_in} is not it either", live.find(), 0)
        del sys.modules["_asyncio"]
        live.same("and gone again", live.find(), 0)
    asyncio = importlib.import_module("asyncio")
    live.same("asyncio is there", live.find(), 1)
    expect_parts("found")
    live.same("nothing new", live.complete(), 0)


def wrong_types():
    """A stand-in for an _asyncio of another layout."""
    import _asyncio
    for task, want in ((type("Task", (), {}), "Task is another object"), (7, "Task is another object"),
                       (_asyncio.Future, "Task is another object")):
        stand_in = types.ModuleType("_asyncio")
        stand_in.Future, stand_in.Task = _asyncio.Future, task
        sys.modules["_asyncio"] = stand_in
        live.reset()
        live.same("another Task", live.find(), -1)
        buffer = ctypes.create_string_buffer(64)
        live.same("what was found", buffer[:live.complaint(buffer, 64)].decode(), want)
        sys.modules["_asyncio"] = _asyncio
        live.same("it stays off", live.find(), -1)
    live.reset()
    live.same("found again", live.find(), 1)


def expect_parts(label):
    import _asyncio
    import asyncio.tasks as tasks, asyncio.futures as futures
    got = parts()
    live.same(f"{label}: module", got.module, id(_asyncio))
    live.same(f"{label}: types", [got.task_type, got.future_type, got.py_task_type, got.py_future_type],
              ids([tasks._CTask]) + ids([futures._CFuture]) + ids([tasks._PyTask]) + ids([futures._PyFuture]))
    c, py = getattr(_asyncio, "_current_tasks", None), tasks._current_tasks
    live.same(f"{label}: current tasks", [got.current0, got.current1], [id(c) if c is not None else 0, id(py) if py is not c else 0])
    want = {id(getattr(module, name)) for module in (_asyncio, tasks) for name in ("_all_tasks", "_scheduled_tasks", "_eager_tasks")
            if hasattr(module, name)}
    live.same(f"{label}: sets", {got.set0, got.set1, got.set2, got.set3} - {0}, want)


def reloaded():
    import _asyncio
    import asyncio.tasks as tasks
    before = parts()
    importlib.reload(tasks)
    live.same("reload is noticed", live.complete(), 1)
    expect_parts("reloaded")
    live.same("reload: another _PyTask", parts().py_task_type != before.py_task_type, True)
    live.same("once", live.complete(), 0)
    # Another module of that name, then the old one.
    copy = types.ModuleType("asyncio.tasks")
    copy.__dict__.update(tasks.__dict__)
    copy._PyTask = type("Task", (asyncio.futures._PyFuture,), {})
    sys.modules["asyncio.tasks"] = copy
    live.same("replaced", [live.complete(), parts().py_task_type], [1, id(copy._PyTask)])
    del sys.modules["asyncio.tasks"]
    live.same("popped: as it was", [live.complete(), parts().py_task_type], [0, id(copy._PyTask)])
    sys.modules["asyncio.tasks"] = tasks
    live.same("put back", live.complete(), 1)
    expect_parts("put back")
    # Another _asyncio: the package's own types count.
    del sys.modules["_asyncio"]
    live.same("_asyncio popped", [live.complete(), parts().task_type], [0, id(tasks._CTask)])
    other = importlib.import_module("_asyncio")
    kept.append(other)  # 3.14+: the end of a module clears the running loop of whichever thread collects it
    live.same("_asyncio made anew", [live.complete(), parts().module, parts().task_type], [other is not _asyncio, id(other), id(tasks._CTask)])
    sys.modules["_asyncio"] = _asyncio
    live.complete()
    expect_parts("_asyncio put back")
    for i in range(3000):  # the dict's keys move
        sys.modules[f"module {i}"] = tasks
    live.same("many modules", live.complete(), 0)
    for i in range(3000):
        del sys.modules[f"module {i}"]
    live.same("few modules", live.complete(), 0)
    expect_parts("many modules")


# Futures and tasks.

class Slots:
    __slots__ = ("a",)


def no_futures():
    for wrong in (None, 1, "text", [], {}, object(), asyncio.Future, asyncio.Task, len, Slots(), sys, asyncio.Event(), no_futures):
        live.same(f"no future: {wrong!r}", [read(wrong), live.state(id(wrong)), words(live.waiter, id(wrong))[0], name_of(wrong)], [None, -1, 0, ""])
    for address in (0, 1, 8, 4095, 4096, 0xdddddddddddddddd, 0x0000800000000000, 2**63, 2**64 - 8):
        live.same("no future there", [live.read(address, None), live.state(address)], [0, -1])
    bare = asyncio.Future.__new__(asyncio.Future)
    live.same("never initialised", read(bare), None)


async def wait_for(future):
    return await future


def expect_task(label, task, waiter, state=PENDING, coro=True):
    got = read(task)
    if got is None:
        return live.same(label, "unreadable", "a task")
    live.same(f"{label}: kind", [got.kind, got.state, got.type, got.loop], [TASK, state, id(type(task)), id(task.get_loop())])
    live.same(f"{label}: waits for", got.waiter, id(waiter) if waiter is not None else 0)
    live.same(f"{label}: coro", got.coro, id(task.get_coro()) if coro else 0)
    live.same(f"{label}: alone", [live.state(id(task)), words(live.waiter, id(task))[1][:2]], [state, [got.waiter, got.coro]])
    return got


async def kinds(make_future, make_task, python):
    """Pending, waiting, finished, cancelled: of one pair of types."""
    label = f"{make_future.__qualname__} {make_task.__qualname__}"
    loop = asyncio.get_running_loop()
    future = make_future(loop=loop)
    got = read(future)
    live.same(f"{label}: future", [got.kind, got.python, got.state, got.loop, got.type, got.awaited_by, got.waiter, got.coro],
              [PLAIN, python, PENDING, id(loop), id(make_future), 0, 0, 0])
    tasks = [make_task(wait_for(future), loop=loop) for _ in range(3)]
    live.same(f"{label}: python", [read(task).python for task in tasks], [python] * 3)
    expect_task(f"{label} made", tasks[0], None)
    await asyncio.sleep(0)
    for task in tasks:
        expect_task(f"{label} waits", task, future)
    got = read(future)
    if python:
        live.same(f"{label}: callbacks", [got.callback0, got.callbacks], [0, id(future._callbacks)])
    else:
        live.same(f"{label}: callbacks", [got.callback0 != 0, got.callbacks != 0], [True, True])
    await expect_awaiters(label, make_future, make_task, python)
    future.set_result(1)
    live.same(f"{label}: finished", live.state(id(future)), FINISHED)
    await asyncio.wait(tasks)
    expect_task(f"{label} finished", tasks[0], None, FINISHED)
    future = make_future(loop=loop)
    task = make_task(wait_for(future), loop=loop)
    await asyncio.sleep(0)
    task.cancel()
    expect_task(f"{label} is being cancelled", task, future)
    await asyncio.wait([task])
    expect_task(f"{label} cancelled", task, None, CANCELLED)
    live.same(f"{label}: cancelled", read(future).state, CANCELLED)
    future = make_future(loop=loop)
    future.set_exception(ValueError())
    future.exception()
    live.same(f"{label}: failed", read(future).state, FINISHED)


async def expect_awaiters(label, make_future, make_task, python):
    loop = asyncio.get_running_loop()
    future = make_future(loop=loop)
    one = make_task(wait_for(future), loop=loop)
    await asyncio.sleep(0)
    got = read(future)
    if not LISTS:
        live.same(f"{label}: awaiter", [got.awaited_by, got.awaited_by_is_set], [0, 0])
    elif not python:
        live.same(f"{label}: awaiter", [got.awaited_by, got.awaited_by_is_set], [id(one), 0])
    other = make_task(wait_for(future), loop=loop)
    await asyncio.sleep(0)
    got = read(future)
    if LISTS:
        want = id(future._Future__asyncio_awaited_by) if python and future._asyncio_awaited_by else got.awaited_by
        live.same(f"{label}: awaiters", [got.awaited_by, got.awaited_by_is_set], [want, bool(want)])
    future.set_result(None)
    await one
    await other


async def all_kinds():
    from asyncio.futures import _PyFuture
    from asyncio.tasks import _PyTask

    class Future(asyncio.Future):
        pass

    class Wide(asyncio.Task):
        def __init__(self, *arguments, **named):
            self.first = 1
            super().__init__(*arguments, **named)

    class Far(Wide):
        __slots__ = ("a", "b")

    class PyFuture(_PyFuture):
        pass

    class PyTask(_PyTask):
        def __init__(self, *arguments, **named):
            self.first = 1
            super().__init__(*arguments, **named)
            self.__dict__  # made a dict of

    await kinds(asyncio.Future, asyncio.Task, 0)
    await kinds(Future, Wide, 0)
    await kinds(Future, Far, 0)
    await kinds(_PyFuture, _PyTask, 1)
    await kinds(PyFuture, PyTask, 1)
    gathering = asyncio.gather(asyncio.sleep(0), asyncio.sleep(0))
    live.same("gather", [read(gathering).kind, read(gathering).python], [PLAIN, 0])
    await gathering
    deep = asyncio.Future
    for i in range(20):
        deep = type(f"Deep{i}", (deep,), {})
    live.same("more bases than are looked at", read(deep()), None)


async def names():
    loop = asyncio.get_running_loop()
    for make in (asyncio.Task, asyncio.tasks._PyTask):
        task = make(asyncio.sleep(0), loop=loop)
        before = name_of(task)
        live.same("a name that was never asked for", before, task.get_name())
        live.same("and asked for", name_of(task), before)
        for name, want in (("plain", "plain"), ("a;b\\c\n", "a\\x3bb\\x5cc\\x0a"), ("Ж\U0001f40d", "Ж\U0001f40d"), ("é", "é"), ("x" * 900, "x" * 900)):
            task.set_name(name)
            live.same("a name", name_of(task), want)
        task.set_name("x" * 100000)
        live.same("a long name", [name_of(task)[:1001], len(name_of(task))], ["x" * 1000 + "~", 1009])
        await task
    if EAGER:
        task = asyncio.Task(asyncio.sleep(0), loop=loop, name=None)
        buffer = ctypes.create_string_buffer(64)
        live.same("no room", live.name(id(task), buffer, 3), 0)
        await task


# Threads.

def expect_current(label):
    loop, task = asyncio.get_running_loop(), asyncio.current_task()
    live.same(f"{label}: loop", live.loop(), id(loop))
    mine = [address for address in current() if read_loop(address) == id(loop)]
    live.same(f"{label}: current", mine, [id(task)] if task is not None else [])


def read_loop(address):
    out = (ctypes.c_uint64 * 16)()
    return out[FIELDS.index("loop")] if live.read(address, out) else 0


async def current_tasks():
    loop = asyncio.get_running_loop()
    expect_current("main")
    done = loop.create_future()
    loop.call_soon(lambda: (expect_current("callback"), done.set_result(None)))
    await done

    async def child():
        expect_current("child")
        await asyncio.sleep(0)
        expect_current("child again")
    await asyncio.gather(child(), child())
    if EAGER:
        loop.set_task_factory(asyncio.eager_task_factory)
        await asyncio.gather(child(), child())
        expect_current("after eager ones")
        loop.set_task_factory(None)

    async def python():
        live.same("pure Python", id(asyncio.tasks._current_tasks.get(loop)) in current(), True)
        await asyncio.sleep(0)
    await asyncio.tasks._PyTask(python(), loop=loop)
    expect_current("main again")
    out = (ctypes.c_uint64 * 1)(7)
    live.same("no room", [live.current(out, 0), out[0]], [0, 7])


def second_thread():
    """Both run a loop; each is asked while the other stands in a task."""
    started, go = threading.Event(), threading.Event()

    async def other():
        expect_current("other thread")
        started.set()
        go.wait()
        expect_current("other thread later")

    async def first():
        thread = threading.Thread(target=lambda: asyncio.run(other()))
        thread.start()
        started.wait()
        expect_current("first thread")
        live.same("tasks of both", len(current()), 1 if LISTS else 2)
        go.set()
        thread.join()
        expect_current("first thread alone")
    asyncio.run(first())
    live.same("no loop", [live.loop(), current()], [0, []])


async def forked():
    child = os.fork()
    if child == 0:
        os._exit(10 + (live.loop() == 0) + 2 * (asyncio._get_running_loop() is None))
    live.same("no loop in a forked child", os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), 13)
    expect_current("after a fork")


# All tasks.

async def counts():
    for count in (0, 1, 2, 1000):
        event = asyncio.Event()
        tasks = [asyncio.create_task(event.wait()) for _ in range(count)]
        for moment in ("made", "waiting"):
            live.same(f"{count} tasks {moment}", pending(), ids(asyncio.all_tasks()))
            await asyncio.sleep(0)
        live.same("all of them", len(pending()), count + 1)
        for task in tasks[::2]:
            task.cancel()
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        live.same(f"{count} tasks cancelled", pending(), ids(asyncio.all_tasks()))
        event.set()
        await asyncio.gather(*tasks, return_exceptions=True)
        del tasks
        live.same(f"{count} tasks done", pending(), ids(asyncio.all_tasks()))


async def eager():
    event, seen = asyncio.Event(), []

    async def child():
        seen.append((enumerated(), asyncio.current_task()))
        await event.wait()
    asyncio.get_running_loop().set_task_factory(asyncio.eager_task_factory)
    task = asyncio.create_task(child())
    live.same("in its eager step", seen[0][0].count(id(task)), 1)
    live.same("that is it", seen[0][1], task)
    live.same("after its eager step", pending(), ids(asyncio.all_tasks()))
    at_once = asyncio.create_task(asyncio.sleep(0, 5))
    event.set()
    await task
    await at_once
    asyncio.get_running_loop().set_task_factory(None)

    async def nothing():
        return 3
    done = asyncio.Task(nothing(), loop=asyncio.get_running_loop(), eager_start=True)
    live.same("done at once", [read(done).state, read(done).waiter, read(done).coro], [FINISHED, 0, 0])


async def python_tasks():
    tasks = [asyncio.tasks._PyTask(asyncio.sleep(0), loop=asyncio.get_running_loop()) for _ in range(5)]
    live.same("pure-Python tasks", set(ids(tasks)) <= set(pending()), True)
    await asyncio.gather(*tasks)


def left_behind():
    """Tasks of a thread that is gone."""
    tasks = []

    def run():
        loop = asyncio.new_event_loop()
        future = loop.create_future()
        tasks.extend(loop.create_task(wait_for(future)) for _ in range(3))
        loop.run_until_complete(asyncio.sleep(0))
        tasks.append(loop)
    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    loop = tasks.pop()
    live.same("of a thread that is gone", pending(), ids(tasks))
    live.same("in the interpreter's list", sorted(enumerated(1)), ids(tasks) if LISTS else [])
    for task in tasks:
        task.cancel()
    loop.run_until_complete(asyncio.gather(*tasks, return_exceptions=True))
    loop.close()
    live.same("none is left", [pending(), enumerated(1)], [[], []])


def all_situations():
    no_futures_loop = asyncio.new_event_loop()
    asyncio.set_event_loop(no_futures_loop)
    no_futures()
    asyncio.set_event_loop(None)
    no_futures_loop.close()
    asyncio.run(all_kinds())
    asyncio.run(names())
    asyncio.run(current_tasks())
    second_thread()
    asyncio.run(counts())
    if EAGER:
        asyncio.run(eager())
    asyncio.run(python_tasks())
    left_behind()


def sub_interpreter(library):
    code = (f"import sys; sys.argv = ['x']; sys.path.insert(0, {os.path.dirname(os.path.abspath(__file__))!r})\n"
            f"import asyncio_live as m\nm.live = m.Live({library!r})\nassert m.live.open(hasattr(sys, 'gettotalrefcount')) == 0\n"
            "import asyncio\nm.asyncio = asyncio\nm.live.reset()\nassert m.live.find() == 1\n"
            "m.expect_parts('sub-interpreter')\nm.all_situations()\n"
            "assert m.live.failed == 0, m.live.failed\n")
    try:
        if sys.version_info >= (3, 13):
            import _interpreters as interpreters
            ident = interpreters.create("legacy")
        else:
            import _xxsubinterpreters as interpreters
            ident = interpreters.create(isolated=False)
    except ImportError as error:
        print("no sub-interpreters:", error)
        return
    try:
        failure = interpreters.run_string(ident, code)
    except Exception as error:
        failure = error
    live.same("sub-interpreter", failure, None)
    interpreters.destroy(ident)
    live.reset()
    live.same("the first interpreter again", live.find(), 1)
    expect_parts("the first interpreter again")


def main():
    global live
    live = Live(sys.argv[1])
    error = live.open(hasattr(sys, "gettotalrefcount"))
    if error:
        print(f"live_open: {error}")
        return 1
    late_import()
    all_situations()
    asyncio.run(forked())
    wrong_types()
    reloaded()
    all_situations()
    sub_interpreter(sys.argv[1])
    print(f"{live.passed} passed, {live.failed} failed")
    return live.failed != 0


if __name__ == "__main__":
    sys.exit(main())
