# SPDX-License-Identifier: MIT
"""Does libaprof follow this Python's coroutines rightly?

    python coros_live.py LIBRARY

LIBRARY is build/coros_live.so. Chains are compared with cr_await, gi_yieldfrom
and ag_await, and through wrapper objects with what these tell the garbage
collector; lines with f_lineno, states with inspect. Every situation also says
itself how deep it is and how it ends. The caller holds the GIL, so there is no
tolerance. Ends with "N passed, N failed".
"""
import asyncio
import collections.abc
import ctypes
import dis
import gc
import inspect
import os
import sys
import threading
import types

SIZE = 1 << 21
CREATED, SUSPENDED, AWAITING, EXECUTING, FINISHED = range(5)  # enum coro_state
COROUTINE, GENERATOR, ASYNC_GENERATOR = range(3)              # enum coro_kind
MORE, FUTURE, OTHER, END_CREATED, END_EXECUTING, END_FINISHED, TORN, FAULT, LIMIT = range(9)  # enum coros_end
KINDS = {types.CoroutineType: (COROUTINE, "cr"), types.GeneratorType: (GENERATOR, "gi"),
         types.AsyncGeneratorType: (ASYNC_GENERATOR, "ag")}
WRAPPERS = ("coroutine_wrapper", "async_generator_asend", "async_generator_athrow", "anext_awaitable")


class Live:
    def __init__(self, path):
        self.lib = ctypes.PyDLL(path)  # PyDLL: the GIL stays held
        address = ctypes.c_void_p
        for name, result, arguments in (
                ("live_open", ctypes.c_long, [ctypes.c_int]),
                ("live_chain", ctypes.c_long, [address, ctypes.c_uint32, ctypes.c_char_p, ctypes.c_long]),
                ("live_coro", ctypes.c_long, [address, ctypes.c_char_p, ctypes.c_long]),
                ("live_state", ctypes.c_long, [address]),
                ("live_of_frame", ctypes.c_size_t, [address]),
                ("live_frame_below", ctypes.c_size_t, [address])):
            function = getattr(self.lib, name)
            function.restype, function.argtypes = result, arguments
        self.buffer = ctypes.create_string_buffer(SIZE)
        self.passed = self.failed = 0

    def open(self):
        return self.lib.live_open(hasattr(sys, "gettotalrefcount"))

    def same(self, label, got, want):
        if got == want:
            self.passed += 1
            return
        self.failed += 1
        if self.failed <= 20:
            print(f"FAILED {label}: got {str(got)[:600]}\n    want {str(want)[:600]}")

    def chain(self, object_, limit=100000):
        """The rows (address, kind, state, code, line, awaited, previous), and (end, awaited)."""
        return self.chain_at(id(object_), limit)

    def chain_at(self, address, limit=100000):
        length = self.lib.live_chain(address, limit, self.buffer, SIZE)
        rows = [tuple(map(int, line.split())) for line in self.buffer[:length].decode().splitlines()]
        return rows[:-1], rows[-1]

    def coro(self, object_):
        length = self.lib.live_coro(id(object_), self.buffer, SIZE)
        return tuple(map(int, self.buffer[:length].split())) if length >= 0 else None


live = None
under = ""  # what the situations run under, for the labels


# What Python says.

def part(object_, name):
    return getattr(object_, f"{KINDS[type(object_)][1]}_{name}")


def awaited_by(object_):
    return object_.gi_yieldfrom if type(object_) is types.GeneratorType else part(object_, "await")


def inside(wrapper):
    """The object that a wrapper holds: the first it shows the garbage collector, which FutureIter's own type is not."""
    return next(x for x in gc.get_referents(wrapper) if not isinstance(x, type))


STATES = {"CREATED": CREATED, "SUSPENDED": SUSPENDED, "RUNNING": EXECUTING, "CLOSED": FINISHED}


def state(object_):
    if type(object_) is types.CoroutineType:
        name = inspect.getcoroutinestate(object_)
    elif type(object_) is types.GeneratorType:
        name = inspect.getgeneratorstate(object_)
    elif object_.ag_await is not None:  # ag_running stays set while it awaits
        return AWAITING
    elif hasattr(inspect, "getasyncgenstate"):
        name = inspect.getasyncgenstate(object_)
    else:  # 3.11: the instruction tells
        frame = object_.ag_frame
        at = frame and dis.opname[frame.f_code.co_code[frame.f_lasti]]
        name = {None: "CLOSED", "RETURN_GENERATOR": "CREATED", "YIELD_VALUE": "SUSPENDED"}.get(at, "RUNNING")
    found = STATES[name.rpartition("_")[2]]
    return AWAITING if found == SUSPENDED and awaited_by(object_) is not None else found


def row(object_, of):
    """What must be read of one, as coros_live.c writes it; `of`: what it wrote, for what Python does not tell."""
    kind = KINDS[type(object_)][0]
    said = state(object_)
    awaited = awaited_by(object_) if said == AWAITING else None
    frame = part(object_, "frame")
    previous = of[6] if said == EXECUTING else 0
    return (id(object_), kind, said, id(part(object_, "code")) if frame else of[3],
            (frame.f_lineno or 0) if frame else 0, 0 if awaited is None else id(awaited), previous)


def chain(object_):
    """What the walk must give: objects, and (end, awaited)."""
    out = []
    while True:
        name = type(object_).__name__
        if type(object_) in KINDS:
            said = state(object_)
            if said == FINISHED:
                return out, (END_FINISHED, 0)
            out.append(object_)
            if said in (CREATED, EXECUTING):
                return out, (END_CREATED if said == CREATED else END_EXECUTING, 0)
            object_ = awaited_by(object_)
            if object_ is None:
                return out, (OTHER, 0)
        elif type(object_).__module__ in ("builtins", "_asyncio") and name == "FutureIter":
            return out, (FUTURE, id(inside(object_)))
        elif type(object_).__module__ == "builtins" and name in WRAPPERS:
            object_ = inside(object_)
        else:
            return out, (OTHER, id(object_))


def check(label, object_, depth=None, end=None, awaited=0):
    """Reads a chain; awaited: the object (or 0) that it must end in."""
    label = under + label
    got, got_end = live.chain(object_)
    want, want_end = chain(object_)
    live.same(label, got, [row(one, of) for one, of in zip(want, got)] if len(got) == len(want) else want)
    live.same(label + ": end", got_end, want_end)
    if depth is not None:
        live.same(label + ": depth", len(got), depth)
    if end is not None:
        live.same(label + ": how it ends", got_end, (end, awaited if isinstance(awaited, int) else id(awaited)))
    for one in got:
        live.same(label + ": state alone", live.lib.live_state(one[0]), one[2])
    return got


def suspend(coro, times=1):
    for _ in range(times):
        coro.send(None)
    return coro


# What is awaited.

class Yielding:  # a generator
    def __await__(self):
        yield


class OfCoroutine:  # a coroutine_wrapper
    def __await__(self):
        return leaf().__await__()


class OfC:  # an iterator of C
    def __init__(self):
        self.iterator = iter([None, None])

    def __await__(self):
        return self.iterator


class OfPython:  # an iterator of Python
    def __await__(self):
        return self

    def __next__(self):
        return None


class Cythonic(collections.abc.Coroutine):
    def send(self, value):
        return None

    def throw(self, *what):
        raise what[0]

    def close(self):
        pass

    def __await__(self):
        return self

    def __iter__(self):
        return self

    def __next__(self):
        return None


@types.coroutine
def bare():
    yield


async def leaf():
    await bare()


async def nested(depth):
    if depth > 1:
        await nested(depth - 1)
    else:
        await Yielding()


async def awaiting(what):
    return await what


# Situations.

def depths():
    for depth in (1, 5, 60, 300):
        check(f"nested {depth}", suspend(nested(depth)), depth + 1, OTHER)
    coro = suspend(nested(5))
    for limit in range(6):
        got, end = live.chain(coro, limit)
        live.same(f"limit {limit}", (len(got), end), (limit, (LIMIT, 0)))
    live.same("exactly the limit", live.chain(coro, 6)[1], (OTHER, 0))


def very_deep():
    def run():
        for _ in range(3):
            suspend(nested(60))  # specialised by then, the calls take no C stack
        coro = suspend(nested(5000))
        got = live.chain(coro)
        live.same("5000: depth", (len(got[0]), got[1]), (5001, (OTHER, 0)))
        live.same("5000: all", [one[0] for one in got[0]], [id(one) for one in chain(coro)[0]])
        got = live.chain(coro, 4000)
        live.same("5000: limit", (len(got[0]), got[1]), (4000, (LIMIT, 0)))
    sys.setrecursionlimit(100000)
    threading.stack_size(512 << 20)
    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    threading.stack_size(0)


def simple():
    check("bare yield", suspend(bare()), 1, OTHER)
    check("coroutine over types.coroutine", suspend(leaf()), 2, OTHER)
    check("__await__ is a generator", suspend(awaiting(Yielding())), 2, OTHER)
    check("__await__ of a coroutine", suspend(awaiting(OfCoroutine())), 3, OTHER)
    check("coro.__await__()", suspend(awaiting(leaf())).__await__(), 3, OTHER)
    for what in (OfPython(), Cythonic()):
        check(type(what).__name__, suspend(awaiting(what)), 1, OTHER, what)
    of_c = OfC()
    check("__await__ is an iterator of C", suspend(awaiting(of_c)), 1, OTHER, of_c.iterator)
    check("asyncio.sleep(0)", suspend(awaiting(asyncio.sleep(0))), 3, OTHER)

    def over(what):
        yield from what
    numbers = iter([1, 2])
    check("yield from an iterator", suspend(over(numbers)), 1, OTHER, numbers)
    check("yield from generators", suspend(over(over(over(x for x in [1])))), 4, OTHER)

    @types.coroutine
    def old():
        yield from leaf()
    check("types.coroutine over a coroutine", suspend(awaiting(old())), 4, OTHER)
    nothing = object()
    for what in (nothing, nested, [], 1, types.CoroutineType):
        live.same("not a coroutine", live.chain(what), ([], (OTHER, id(what))))
        live.same("not a coroutine: read", live.coro(what), None)
        live.same("not a coroutine: state", live.lib.live_state(id(what)), -1)


def named_alike():
    """Classes of Python whose names are those of wrappers; the first word behind their head holds a coroutine."""
    inner = suspend(leaf())
    for name in WRAPPERS:
        made = type(name, (OfPython,), {"__slots__": ("a",), "__await__": OfPython.__await__, "__next__": OfPython.__next__})()
        made.a = inner
        check(f"a class named {name}", suspend(awaiting(made)), 1, OTHER, made)
    inner.close()


def futures():
    loop = asyncio.new_event_loop()
    future, other, third = (loop.create_future() for _ in range(3))
    check("future", suspend(awaiting(future)), 1, FUTURE, future)
    check("future, deeper", suspend(awaiting(awaiting(other))), 2, FUTURE, other)
    check("FutureIter itself", future.__await__(), 0, FUTURE, future)
    python = asyncio.futures._PyFuture(loop=loop)
    check("future of Python", suspend(awaiting(python)), 2, OTHER)

    def over():
        yield from third
    check("yield from a future", suspend(over()), 1, FUTURE, third)
    loop.close()


async def numbers(before=True):
    if before:
        await leaf()
    yield 1
    try:
        yield 2
    except KeyError:
        await leaf()
        yield 3


async def closing():
    try:
        yield 1
    finally:
        await leaf()


def finish(coro):
    try:
        while True:
            coro.send(None)
    except StopIteration:
        pass


def async_generators():
    async def loop_over(values):
        async for _ in values:
            pass

    async def anexts(values, *default):
        await anext(values, *default)

    async def throw(values):
        await anext(values)
        await anext(values)
        await values.athrow(KeyError)

    async def close(values):
        await anext(values)
        await values.aclose()
    values = numbers()
    check("async generator, created", values, 1, END_CREATED)
    got = check("async for", suspend(loop_over(values)), 4, OTHER)
    live.same("kinds", [one[1] for one in got], [COROUTINE, ASYNC_GENERATOR, COROUTINE, GENERATOR])
    check("anext", suspend(anexts(numbers())), 4, OTHER)
    check("anext with a default", suspend(anexts(numbers(), None)), 4, OTHER)
    check("athrow", suspend(throw(numbers(False))), 4, OTHER)
    coro = suspend(close(closing()))
    check("aclose", coro, 4, OTHER)
    finish(coro)
    values = numbers(False)
    try:
        suspend(anexts(values))
    except StopIteration:
        live.same("async generator at its yield", [(one[0], one[2]) for one in live.chain(values)[0]], [(id(values), SUSPENDED)])
        live.same("async generator at its yield: end", live.chain(values)[1], (OTHER, 0))
    asend = numbers().asend(None)
    asend.send(None)
    check("asend by hand", asend, 3, OTHER)

    class Numbers:
        def __aiter__(self):
            return self

        async def __anext__(self):
            await leaf()
    check("__anext__ is a coroutine", suspend(loop_over(Numbers())), 4, OTHER)
    check("anext over __anext__ with a default", suspend(anexts(Numbers(), None)), 4, OTHER)

    async def comprehension():
        return [x async for x in numbers()]

    async def generator_expression():
        async for x in (x async for x in numbers()):
            pass
    check("async comprehension", suspend(comprehension()))
    check("async generator expression", suspend(generator_expression()), 5, OTHER)


def contexts():
    class Context:
        async def __aenter__(self):
            await leaf()

        async def __aexit__(self, *what):
            await leaf()

    async def use():
        async with Context():
            await leaf()

    async def fail():
        try:
            async with Context():
                raise KeyError
        except KeyError:
            await leaf()
        finally:
            await leaf()
    coro = use()
    for step in ("__aenter__", "body", "__aexit__"):
        check(f"async with: {step}", suspend(coro), 3 + (step != "body"), OTHER)
    coro = fail()
    for step, depth in (("__aenter__", 4), ("__aexit__ of a failure", 4), ("except", 3), ("finally", 3)):
        check(f"async with: {step}", suspend(coro), depth, OTHER)


def expressions():
    other = suspend(leaf())  # a coroutine that lies about, in variables and on stacks

    async def tuple_():
        return (other, 1, [other, await leaf()])

    async def call():
        return max(other, 2, *[3, await leaf()], key=await leaf())

    async def text():
        return f"{1}{other} {await leaf()}"

    async def comprehension():
        return [other for _ in range(2) if await leaf()]

    async def inner_comprehension():
        return {await leaf(): [await leaf() for _ in (1, 2)] for _ in range(2)}

    async def handling():
        try:
            raise KeyError
        except KeyError:
            for _ in (1, 2):
                return [other, await leaf()]

    async def many_variables():
        a = b = c = d = other
        return [a, b, c, d, await leaf()]

    async def closure():
        held = other

        def use():
            return held
        return [held, await leaf(), use]

    async def lines():
        return (other,

                await
                leaf())
    for make in (tuple_, call, text, handling, many_variables, closure, lines):
        got = check(make.__name__, suspend(make()), 3, OTHER)
        live.same(make.__name__ + " does not show others", id(other) in [one[0] for one in got], False)
    for make in (comprehension, inner_comprehension):
        check(make.__name__, suspend(make()))
    other.close()


def begun_and_ended():
    made = leaf()
    check("created", made, 1, END_CREATED)
    made.close()
    check("closed", made, 0, END_FINISHED)
    live.same("closed: read", live.coro(made)[2:4], (FINISHED, 0))
    ended = awaiting(asyncio.sleep(0))
    suspend(ended)
    try:
        suspend(ended)
    except StopIteration:
        check("returned", ended, 0, END_FINISHED)

    async def fail():
        raise KeyError
    failed = fail()
    try:
        failed.send(None)
    except KeyError:
        check("failed", failed, 0, END_FINISHED)

    def over(what):
        yield from what
    inner = (x for x in [1, 2])
    outer = suspend(over(inner))
    inner.close()
    check("the inner one was closed", outer, 1, END_FINISHED)

    @some_decorator
    async def decorated(
            a=1,
            b=2):
        await leaf()
    made = decorated()
    check("created, decorated", made, 1, END_CREATED)
    check("suspended, decorated", suspend(made), 3, OTHER)


def some_decorator(function):
    return function


def executing():
    said = {}

    async def outer(make):
        inner = look(lambda: (said["outer"], inner))
        await make(inner)

    async def look(pair):
        owner, inner = pair()
        for one in (owner, inner):
            check("executing", one, 1, END_EXECUTING)
        read = live.coro(inner)
        live.same("executing: its awaiter", live.lib.live_of_frame(read[6]), id(owner))
        live.same("executing: who sent the outermost is no coroutine", live.lib.live_of_frame(live.coro(owner)[6]), 0)
        await bare()
        check("executing again", inner, 1, END_EXECUTING)
        live.same("executing again: its awaiter", live.lib.live_of_frame(live.coro(inner)[6]), id(owner))

    class Of:
        def __init__(self, coro):
            self.coro = coro

        def __await__(self):
            return self.coro.__await__()

        def __anext__(self):
            return self.coro
    for make in (lambda coro: coro, Of, lambda coro: anext(Of(coro), None)):  # driven by the interpreter, and twice by C
        said["outer"] = coro = outer(make)
        suspend(coro)
        finish(coro)

    async def thrown_at():
        try:
            await bare()
        except KeyError:
            check("thrown at", thrown, 1, END_EXECUTING)
            live.same("thrown at: its awaiter", live.lib.live_of_frame(live.coro(thrown)[6]), id(around))
            await bare()
    thrown = thrown_at()
    around = suspend(awaiting(thrown))
    around.throw(KeyError())
    check("suspended in a handler", around, 3, OTHER)

    def plain():
        yield live.coro(running)
    running = plain()
    read = next(running)
    live.same("executing generator", read[2], EXECUTING)
    live.same("executing generator: sent from no coroutine", live.lib.live_of_frame(read[6]), 0)


def of_frames():
    """coros_of_frame: only for a frame that lies in a coroutine, whatever variables lie around a frame."""
    def below(depth, a=types.CoroutineType, b=types.GeneratorType, c=types.AsyncGeneratorType):
        d = e = f = g = a
        if depth:
            return below(depth - 1) + [(d, e, f, g)]
        found, frame = [], live.coro(running)[6]
        while frame:
            found.append(live.lib.live_of_frame(frame))
            frame = live.lib.live_frame_below(frame)
        live.same("no frame of a function is one of a coroutine", [one for one in found if one], [])
        return found

    def generator():
        a = types.CoroutineType, types.GeneratorType
        yield below(3), a

    def sender(depth, a=types.CoroutineType, b=types.GeneratorType):
        c = d = e = a
        return sender(depth - 1) if depth else (next(running), c, d, e)
    running = generator()
    sender(5)
    for address in (0, 1, 8, 4095, 4096, 0xdddddddddddddddd, 0x0000800000000000, 2**63, 2**64 - 8):
        live.same("no frame there", live.lib.live_of_frame(address), 0)
        live.same("no coroutine there", live.lib.live_state(address), -1)
        live.same("no chain there", live.chain_at(address)[0], [])


def all_tasks():
    """Every task of a loop, read by one of them."""
    async def worker(queue, lock):
        async with lock:
            await queue.get()

    async def ticker():
        async for _ in numbers():
            await asyncio.sleep(0)

    async def main():
        queue, lock, event, release = asyncio.Queue(), asyncio.Lock(), asyncio.Event(), asyncio.Event()
        tasks = [asyncio.create_task(one) for one in (
            worker(queue, lock), worker(queue, lock), ticker(), event.wait(), asyncio.sleep(1000), asyncio.wait_for(event.wait(), 1000))]
        gathered = asyncio.gather(*[release.wait() for _ in range(3)])
        tasks.append(asyncio.create_task(awaiting(asyncio.shield(gathered))))
        check("task, not begun", tasks[0].get_coro(), 1, END_CREATED)
        for turn in range(3):
            await asyncio.sleep(0)
            for task in asyncio.all_tasks():
                if task is not asyncio.current_task():
                    check(f"task, turn {turn}", task.get_coro())
        check("the task that runs", asyncio.current_task().get_coro(), 1, END_EXECUTING)
        ends = [live.chain(task.get_coro())[1] for task in tasks]
        live.same("most tasks wait for a future", [end for end, awaited in ends].count(FUTURE) >= 5, True)
        for task in tasks:
            task.cancel()
        release.set()
        await asyncio.gather(*tasks, gathered, return_exceptions=True)
    asyncio.run(main())


def all_situations(label=""):
    global under
    under = label
    for function in (depths, simple, named_alike, futures, async_generators, contexts, expressions, begun_and_ended, executing,
                     of_frames, all_tasks):
        function()
    under = ""


def instrumented():
    def tracer(frame, event, arg):
        return tracer

    def opcode_tracer(frame, event, arg):
        frame.f_trace_opcodes = True
        return opcode_tracer
    for label, install, function in (("settrace: ", sys.settrace, tracer), ("trace of opcodes: ", sys.settrace, opcode_tracer),
                                     ("setprofile: ", sys.setprofile, tracer)):
        install(function)
        try:
            all_situations(label)
        finally:
            install(None)
    all_situations("after tracing: ")


def monitored():
    if not hasattr(sys, "monitoring"):
        return
    monitoring, tool = sys.monitoring, 3
    names = ("PY_START", "PY_RESUME", "PY_YIELD", "PY_RETURN", "LINE", "INSTRUCTION", "CALL")
    monitoring.use_tool_id(tool, "coros_live")
    for name in names:
        event = getattr(monitoring.events, name)
        monitoring.register_callback(tool, event, lambda *arguments: None)
        monitoring.set_events(tool, event)
        all_situations(f"sys.monitoring {name}: ")
        monitoring.register_callback(tool, event, None)
    monitoring.set_events(tool, 0)
    monitoring.free_tool_id(tool)


def sub_interpreters(library):
    """Twice: the second one's types may lie where the first one's lay."""
    code = (f"import sys; sys.argv = ['x']; sys.path.insert(0, {os.path.dirname(os.path.abspath(__file__))!r})\n"
            f"import coros_live as m\nm.live = m.Live({library!r})\nassert m.live.open() == 0\n"
            "m.all_situations('sub-interpreter: ')\n"
            "assert m.live.failed == 0, m.live.failed\n")
    for _ in range(2):
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


def main():
    global live
    live = Live(sys.argv[1])
    error = live.open()
    if error:
        print(f"live_open: {error}")
        return 1
    all_situations()
    very_deep()
    instrumented()
    monitored()
    sub_interpreters(sys.argv[1])
    print(f"{live.passed} passed, {live.failed} failed")
    return live.failed != 0


if __name__ == "__main__":
    import warnings
    warnings.simplefilter("ignore", RuntimeWarning)  # "never awaited": some are not meant to be
    sys.exit(main())
