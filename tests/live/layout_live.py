# SPDX-License-Identifier: MIT
"""Does libaprof read this Python's memory rightly?

    python layout_live.py LIBRARY

LIBRARY is layout_live.so. Every answer is compared with what the
interpreter says of itself: frames against sys._getframe(), lines against
co_positions(), thread states against threading.enumerate(). The caller holds
the GIL, so there is no tolerance. Ends with "N passed, N failed".
"""
import asyncio
import ctypes
import functools
import importlib.util
import os
import re
import sys
import threading
import types

SIZE = 1 << 20
COMPLETE, EMPTY = 1, 2  # enum frames_end
READY = 2               # enum runtime_phase


class Live:
    def __init__(self, path):
        self.lib = ctypes.PyDLL(path)  # PyDLL: the GIL stays held
        self.own = threading.local()
        for name in ("live_open", "live_walk", "live_walk_of", "live_states", "live_text", "live_bytes", "live_lines",
                     "live_is_code", "live_identity", "live_own", "live_phase", "live_pending_lock", "live_holds"):
            getattr(self.lib, name).restype = ctypes.c_long
        self.lib.live_text.argtypes = [ctypes.c_void_p, ctypes.c_int, ctypes.c_char_p, ctypes.c_long]
        self.lib.live_bytes.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_long]
        self.lib.live_walk_of.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_long]
        self.lib.live_lines.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_long, ctypes.c_int]
        self.lib.live_is_code.argtypes = self.lib.live_holds.argtypes = [ctypes.c_void_p]
        self.lib.live_identity.argtypes = [ctypes.c_void_p, ctypes.c_void_p]
        self.passed = self.failed = 0

    @property
    def buffer(self):
        if not hasattr(self.own, "buffer"):
            self.own.buffer = ctypes.create_string_buffer(SIZE)
        return self.own.buffer

    def open(self):
        return self.lib.live_open(hasattr(sys, "gettotalrefcount"))

    def same(self, label, got, want):
        if got == want:
            self.passed += 1
            return
        self.failed += 1
        if self.failed <= 20:
            at = next((i for i, (a, b) in enumerate(zip(got, want)) if a != b), None) if isinstance(got, list) else None
            where = "" if at is None else f" (at {at}: {got[at]!r}, want {want[at]!r})"
            print(f"FAILED {label}:{where} got {str(got)[:400]}\n    want {str(want)[:400]}")

    def lines_of(self, length):
        assert length >= 0
        return self.buffer[:length].decode("utf-8").splitlines()


live = None


def escaped(text, path=False):
    def one(match):
        data = match.group().encode("utf-8", "surrogatepass")
        return "".join(f"\\x{byte:02x}" for byte in data)
    pattern = r"[;\\\x00-\x1f\x7f-\x9f\ud800-\udfff]" + (r"| (?=\()" if path else "")
    return re.sub(pattern, one, text)


def chain(frame):
    """What the walk must give, leaf first."""
    out = []
    while frame is not None:
        code = frame.f_code
        out.append(f"{escaped(code.co_qualname)}\t{escaped(code.co_filename, True)}\t{frame.f_lineno or 0}")
        frame = frame.f_back
    return out


def check(label="?"):
    buffer = live.buffer
    length, want = live.lib.live_walk(buffer, SIZE), chain(sys._getframe())
    got = buffer[:length].decode("utf-8").split("\n")[:-1]
    end = got.pop().split("\t")
    live.same(label, got, want)
    live.same(label + ": end", int(end[1]), COMPLETE)
    return True


def count_groups():
    buffer = live.buffer
    length = live.lib.live_walk(buffer, SIZE)
    return int(buffer[:length].decode("utf-8").split("\t")[-1])


# Situations. Each calls check() somewhere in the middle of itself.

def plain():
    def inner(a, *, b=1):
        return check("plain calls")
    return inner(1, b=2)


def recursion(depth):
    return check(f"recursion {depth}") if depth == 0 else recursion(depth - 1)


def mutual(depth):
    return (lambda: mutual(depth - 1))() if depth else check("lambda recursion")


def generators():
    def leaf():
        yield check("generator")
        yield check("generator resumed")

    def middle():
        yield from leaf()
        for value in leaf():
            yield value
    for _ in range(5):
        list(middle())
    sum(middle())                        # driven from C
    all(x for x in leaf())               # generator expression over a generator
    next(middle()), middle().send(None)

    def thrower():
        try:
            yield
        except ValueError:
            check("generator throw")
            yield
    g = thrower()
    next(g)
    g.throw(ValueError())
    g.close()


class Awaitable:
    def __await__(self):
        check("__await__")
        yield


def coroutines():
    async def leaf():
        check("coroutine")
        await Awaitable()
        check("coroutine resumed")

    async def middle():
        await leaf()

    @types.coroutine
    def old():
        yield from leaf()

    async def over_old():
        await old()
    for make in (middle, over_old):
        coro = make()
        try:
            while True:
                coro.send(None)
        except StopIteration:
            pass


def async_generators():
    async def numbers():
        for i in range(2):
            check("async generator")
            yield i

    async def use():
        async for _ in numbers():
            check("async for")
        return [x async for x in numbers()] and {x: check("async comprehension") async for x in numbers()}

    async def group():
        async with asyncio.timeout(5):
            await asyncio.gather(use(), use())
            await asyncio.create_task(use())
    asyncio.run(group())


def comprehensions():
    [check("list comprehension") for _ in range(2)]
    {check("set comprehension") for _ in range(2)}
    {x: check("dict comprehension") for x in range(2)}
    [[check("nested comprehension") for _ in range(2)] for _ in range(2)]
    list(check("generator expression") for _ in range(2))


def classes():
    class Outer:
        check("class body")

        class Inner:
            check("nested class body")

        @property
        def prop(self):
            return check("property")

        @staticmethod
        def static():
            return check("staticmethod")

        @classmethod
        def cls(cls):
            return check("classmethod")

        def __getattr__(self, name):
            return check("__getattr__")

        def __getitem__(self, key):
            return check("__getitem__")

        def __lt__(self, other):
            return check("__lt__")

        def __call__(self):
            return check("__call__")

        def __enter__(self):
            return check("__enter__")

        def __exit__(self, *exc):
            check("__exit__")

        def __del__(self):
            check("__del__")

        def __init_subclass__(cls):
            check("__init_subclass__")
    o = Outer()
    for _ in range(60):  # specialised by then
        o.prop, o.static(), o.cls(), o.missing, o[1], o < o, o()
        with o:
            pass

    class Sub(Outer):
        def __init__(self):
            super().__init__()
    Sub()
    type("Made", (Outer,), {})


class Initialised:
    def __init__(self, say):
        if say:
            check("__init__")


class Slow(Initialised):
    def __init__(self, say):
        super().__init__(say)


def initialise():
    for _ in range(1000):
        Initialised(False), Slow(False)
    for _ in range(3):
        Initialised(True), Slow(True)


def code_from_text():
    exec("check('exec')\nif True:\n    check('exec, line 3')", globals())
    eval("[check('eval') for _ in (1,)]", globals())
    exec(compile("def f():\n\n\n    return check('compiled')\nf()", "a (b);c\\d\x01.py", "exec"), globals())
    exec(compile("def größe():\n    return check('latin')\ngröße()", "/tmp/é.py", "exec"), globals())
    exec(compile("def 関数():\n    return check('ucs2')\n関数()", "/tmp/関数.py", "exec"), globals())
    exec(compile("def 𝔘𝔫𝔦():\n    return check('ucs4')\nUni()", "/tmp/\U0001f40d.py", "exec"), globals())
    exec(compile("def f():\n    return check('surrogate')\nf()", "/tmp/\udc80.py", "exec"), globals())
    strange = types.FunctionType(plain.__code__.replace(co_qualname="a;b\n(c) 7\x85", co_name="x"), globals())
    strange()
    exec("def nine_thousand():\n" + "    x = 1\n" * 9000 + "    check('a long function')\nnine_thousand()", globals())


def decorated():
    def deco(f):
        @functools.wraps(f)
        def wrapper(*args):
            return f(*args)
        return wrapper

    @deco
    @deco
    def inner():
        return check("decorated")
    inner()


def callbacks():
    sorted([3, 1, 2], key=lambda x: check("sorted key") and x)
    list(map(lambda x: check("map"), [1, 2]))
    list(filter(lambda x: check("filter"), [1]))
    functools.reduce(lambda a, b: check("reduce"), [1, 2, 3])
    functools.partial(lambda x: check("partial"), 1)()
    functools.lru_cache(lambda x: check("lru_cache"))(1)
    re.sub("a", lambda m: check("re.sub") and "b", "aa")
    max([1, 2], key=lambda x: check("max key") and x)
    threading.Timer(0, lambda: None).run()


def exceptions():
    try:
        try:
            raise ValueError
        except ValueError:
            check("except")
            raise KeyError from None
        finally:
            check("finally")
    except KeyError:
        check("outer except")

    class Bad(Exception):
        def __init__(self):
            check("exception __init__")
    try:
        raise Bad
    except* Bad:
        check("except*")


def traced():
    def tracer(frame, event, arg):
        check("trace function")
    for install in (sys.settrace, sys.setprofile):
        install(tracer)
        try:
            (lambda: None)()
        finally:
            install(None)
    check("after tracing")


def groups():
    here = count_groups()
    [below] = map(lambda x: count_groups(), [1])
    live.same("a C call starts a group", below, here + 1)


def all_situations():
    for function in (plain, generators, coroutines, comprehensions, classes, initialise, code_from_text, decorated,
                     callbacks, exceptions, groups):
        function()
    recursion(0), recursion(50), mutual(50)


def deep():
    sys.setrecursionlimit(5000)
    recursion(2000)


def in_threads():
    threads = [threading.Thread(target=all_situations, name=f"t{i}") for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


# Thread states.

def read_states():
    return [tuple(map(int, line.split("\t"))) for line in live.lines_of(live.lib.live_states(live.buffer, SIZE))]


def states():
    stop = threading.Event()
    running = [threading.Event() for _ in range(8)]

    def wait(i):
        running[i].set()
        stop.wait()
    threads = [threading.Thread(target=wait, args=(i,)) for i in range(8)]
    for thread in threads:
        thread.start()
    for event in running:
        event.wait()
    rows = [row for row in read_states() if row[1] == 0]
    want = sorted((t.native_id, t.ident) for t in threading.enumerate())
    live.same("thread states", sorted((row[2], row[3]) for row in rows), want)
    live.same("one is active", [row[2] for row in rows if row[4]], [threading.get_native_id()])
    live.same("none is dead", [row for row in rows if row[5]], [])
    own = live.lib.live_own()
    live.same("own state", [row[0] for row in rows if row[2] == threading.get_native_id()], [own])
    live.same("own state is ours and holds the GIL", live.lib.live_holds(own), 3)
    for row in rows:
        if row[0] != own:
            live.same("another's is neither", live.lib.live_holds(row[0]), 0)
    walk_waiting(rows, {t.native_id: t for t in threads})
    stop.set()
    for thread in threads:
        thread.join()
    live.same("ended threads are gone", sorted(row[2] for row in read_states() if row[1] == 0),
              sorted(t.native_id for t in threading.enumerate()))
    live.same("phase", live.lib.live_phase(), READY)
    live.same("pending lock", live.lib.live_pending_lock(), 31)


def walk_waiting(rows, threads):
    """The stacks of threads that wait, read from outside."""
    frames = sys._current_frames()
    for row in rows:
        if row[2] in threads:
            length = live.lib.live_walk_of(row[0], live.buffer, SIZE)
            got = live.buffer[:length].decode().split("\n")[:-2]
            live.same("a waiting thread", got, chain(frames[threads[row[2]].ident]))


def sub_interpreters(library):
    code = (f"import sys; sys.argv = ['x']; sys.path.insert(0, {os.path.dirname(os.path.abspath(__file__))!r})\n"
            f"import layout_live as m\nm.live = m.Live({library!r})\nassert m.live.open() == 0\n"
            "m.all_situations()\n"
            "ids = {row[1] for row in m.read_states()}\n"
            "assert 0 in ids and len(ids) > 1, ids\n"
            "assert m.live.failed == 0, m.live.failed\n")
    try:
        if sys.version_info >= (3, 13):
            import _interpreters as interpreters
            ident = interpreters.create("legacy")
            failure = interpreters.run_string(ident, code)
        else:
            import _xxsubinterpreters as interpreters
            ident = interpreters.create(isolated=False)
            failure = interpreters.run_string(ident, code)
    except ImportError as error:
        print("no sub-interpreters:", error)
        return
    except Exception as error:
        failure = error
    live.same("sub-interpreter", failure, None)
    interpreters.destroy(ident)
    live.same("sub-interpreter gone", {row[1] for row in read_states()}, {0})


# Code objects, strings.

MODULES = ("abc argparse ast asyncio.base_events asyncio.tasks collections contextlib dataclasses datetime decimal "
           "enum functools inspect json.decoder logging os pathlib pickle re._parser shutil socket subprocess "
           "tarfile tempfile textwrap threading traceback typing unittest.mock urllib.parse zipfile").split()


def code_objects(code):
    yield code
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield from code_objects(constant)


def positions():
    wrong = total = 0
    for name in MODULES:
        spec = importlib.util.find_spec(name)
        module = spec.loader.get_code(name) if spec and hasattr(spec.loader, "get_code") else None
        for code in code_objects(module) if module else ():
            want = [p[0] or 0 for p in code.co_positions()]
            lines = (ctypes.c_int32 * len(want))()
            total += 1
            for in_place in (0, 1) if len(want) < 200 else (0,):
                got = live.lib.live_lines(id(code), lines, len(want), in_place)
                if got != len(want) or list(lines) != want:
                    wrong += 1
    live.same(f"lines of {total} code objects", wrong, 0)
    assert total > 1000


def long_function():
    code = compile("def f():\n" + "    x = [1,\n\n 2]\n" * 9000, "long", "exec").co_consts[0]
    want = [p[0] or 0 for p in code.co_positions()]
    first = (ctypes.c_int32 * len(want))()
    got = live.lib.live_lines(id(code), (ctypes.c_int32 * 1)(), 1, 0)
    live.same("wrong length", got, -1)
    small = compile("\n" * 100000 + "x = 1\nx = (\n\n\n2, x)", "far", "exec")
    want = [p[0] or 0 for p in small.co_positions()]
    for in_place in (0, 1):
        live.lib.live_lines(id(small), first, len(want), in_place)
        live.same("far lines", list(first)[:len(want)], want)


def identities():
    def identity(code):
        out = ctypes.c_uint64()
        live.lib.live_identity(id(code), ctypes.byref(out))
        return out.value
    seen, dead = set(), 0
    for i in range(500):
        namespace = {}
        exec(f"def f{i}():\n    return {i}", namespace)
        code = namespace[f"f{i}"].__code__
        dead += identity(code) in seen
        assert identity(code) == identity(code) != 0
        seen.add(identity(code))
        del code, namespace
    live.same("identities of short-lived code", dead, 0)
    if sys.version_info >= (3, 12):  # 3.11 cannot tell: all that it keeps is the same
        seen = {identity(compile("pass", "same", "exec")) for _ in range(500)}
        live.same("identities of equal code, one after the other", len(seen), 500)


class Text(str):
    pass


def strings():
    made = "".join(["a", "b"])
    for text in ("", "a", "plain", "semi;back\\slash", "\x00\x1f\x7f", "é", "\x80\x85\x9f\xa0ÿ", "Ж", "\ud800", "\U0001f40d", "\udcff\U0001f40d",
                 "tab\tnewline\n", "a (b) (c", " (", made, "x" * 1000, "é" * 500, "\U0001f40d" * 250, sys.intern("in" + made),
                 Text("subclass"), Text("subklässe"), Text("\U0001f40d")):
        for path in (0, 1):
            length = live.lib.live_text(id(text), path, live.buffer, SIZE)
            live.same(f"text {ascii(text)[:30]}", live.buffer[:max(length, 0)].decode(), escaped(str(text), path))
    for text in ("x" * 1001, "é" * 501, ";" * 251):
        length = live.lib.live_text(id(text), 0, live.buffer, SIZE)
        got = live.buffer[:length].decode()
        live.same("cut", re.sub("[0-9a-f]{8}$", "", got), escaped(text[:1000 if text[0] == "x" else 500 if text[0] == "é" else 250]) + "~")
    for data in (b"", b"abc\0def", b"x" * 5000):
        length = live.lib.live_bytes(id(data), live.buffer, SIZE)
        live.same("bytes", live.buffer[:max(length, 0)], data)
    for wrong in (1, None, [], b"x", object(), 3.5, str):
        live.same(f"not a str: {wrong!r}", live.lib.live_text(id(wrong), 0, live.buffer, SIZE), -1)
        live.same(f"not code: {wrong!r}", live.lib.live_is_code(id(wrong)), 0)
    for address in (0, 1, 8, 4095, 4096, 0xdddddddddddddddd, 0x0000800000000000, 2**63, 2**64 - 8):
        live.same("no str there", live.lib.live_text(address, 0, live.buffer, SIZE), -1)
        live.same("no code there", live.lib.live_is_code(address), 0)
        live.same("no frames there", live.lib.live_walk_of(address, live.buffer, SIZE) > 0, True)


def main():
    global live
    live = Live(sys.argv[1])
    error = live.open()
    if error:
        print(f"live_open: {error}")
        return 1
    check("module level")
    all_situations()
    deep()
    async_generators()
    traced()
    in_threads()
    states()
    positions()
    long_function()
    identities()
    strings()
    sub_interpreters(sys.argv[1])
    print(f"{live.passed} passed, {live.failed} failed")
    return live.failed != 0


if __name__ == "__main__":
    sys.exit(main())
