# SPDX-License-Identifier: MIT
"""Does libaprof read this Python's containers rightly, and is the layout true?

    python containers_live.py LIBRARY

Like layout_live.py: LIBRARY is containers_live.so, the GIL is held, every answer
must be exact. Ends with "N passed, N failed".
"""
import asyncio
import collections
import ctypes
import functools
import inspect
import opcode
import random
import sys
import threading
import types
import weakref

import _asyncio  # after asyncio: before 3.14 the package wants to be the one that loads it

MOST = 1 << 17
NONE = -1  # LAYOUT_NONE


class Live:
    def __init__(self, path):
        self.lib = ctypes.PyDLL(path)  # PyDLL: the GIL stays held
        for name in ("items", "dict", "set", "deque"):
            self.declare(name, [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_long])
        for name in ("get", "attribute", "closure", "local", "is_text", "type_is_named"):
            self.declare(name, [ctypes.c_void_p, ctypes.c_char_p])
        self.declare("offset", [ctypes.c_char_p])
        self.out = (ctypes.c_uint64 * (2 * MOST))()
        self.passed = self.failed = 0

    def declare(self, name, arguments):
        function = getattr(self.lib, "live_" + name)
        function.restype, function.argtypes = ctypes.c_long, arguments

    def same(self, label, got, want):
        if got == want:
            self.passed += 1
            return
        self.failed += 1
        if self.failed <= 20:
            print(f"FAILED {label}: got {str(got)[:300]}\n    want {str(want)[:300]}")

    def walk(self, kind, address, words=1):
        """The addresses that a walk gives, or None."""
        count = getattr(self.lib, "live_" + kind)(address, self.out, MOST)
        return None if count < 0 else self.out[:words * count]

    def named(self, function, thing, name):
        return getattr(self.lib, "live_" + function)(id(thing), name.encode())

    def offset(self, member):
        return self.lib.live_offset(member.encode())


live = None


def word_at(address, member):
    """The word where the layout has this member."""
    offset = live.offset(member)
    assert offset != NONE, member
    return ctypes.c_uint64.from_address(address + offset).value


def word(thing, member):
    return word_at(id(thing), member)


def number(thing, member):
    return ctypes.c_int32.from_address(id(thing) + live.offset(member)).value


def ids(things):
    return [id(thing) for thing in things]


# Items.

def check_items():
    class Tuple(tuple):
        pass

    class List(list):
        pass

    grown = [object() for _ in range(1000)]
    del grown[3:700]
    Named = collections.namedtuple("Named", "a b")
    for things in ((), (1,), tuple(range(1000)), [], [None], grown, Tuple("abc"), List("abcdef"), Named(1, 2), sys.version_info):
        live.same(f"items of {type(things).__name__} {len(things)}", live.walk("items", id(things)), ids(things))
    for wrong in ({}, set(), "abc", b"abc", 1, None, object(), list, collections.deque("ab")):
        live.same(f"no items: {wrong!r}", live.walk("items", id(wrong)), None)


# Dicts.

def pairs(things):
    return [address for key, value in things.items() for address in (id(key), id(value))]


class Plain:
    def __init__(self, **values):
        for name, value in values.items():
            setattr(self, name, value)


def kinds_of_dicts():
    yield "empty", {}
    yield "unicode", {"a": object(), "b": object()}
    yield "general", {1: object(), "a": object(), None: object()}
    yield "was unicode", dict([("a", 1), ("b", 2), (3, 3)])
    yield "large", {str(i): i for i in range(70000)}
    holes = {i: str(i) for i in range(300)}
    for i in range(0, 300, 3):
        del holes[i]
    yield "with holes", holes
    holes = {str(i): i for i in range(20)}
    del holes["0"], holes["19"], holes["7"]
    yield "unicode with holes", holes
    yield "emptied", holes.fromkeys([]) or (lambda d: d.clear() or d)({1: 2})
    yield "ordered", collections.OrderedDict(a=1, b=2)
    yield "default", collections.defaultdict(list, a=1)
    yield "of a class of its own", type("Dict", (dict,), {})(x=1)
    yield "globals", globals()
    yield "sys.modules", sys.modules
    one, two = Plain(a=object(), b=object()), Plain(a=object(), b=object())
    yield "of an instance", vars(one)
    del two.a
    two.c = object()
    yield "of an instance, changed", vars(two)
    yield "of a module", vars(collections)


def split_dicts():
    """Many instances, so that their dicts share their keys."""
    class Shared:
        def __init__(self, i):
            self.first = i
            self.second = str(i)
            if i % 2:
                self.third = None

    made = [Shared(i) for i in range(50)]
    for i, instance in enumerate(made):
        instance_dict = vars(instance) if i % 3 else None
        if i % 5 == 0:
            del instance.second
        if instance_dict is not None:
            live.same("a split dict", sorted(live.walk("dict", id(instance_dict), 2)), sorted(pairs(instance_dict)))
        for name in ("first", "second", "third", "fourth"):
            want = id(getattr(instance, name)) if hasattr(instance, name) else 0
            live.same(f"of shared keys: {name}", live.named("attribute", instance, name), want)


def check_dicts():
    for label, things in kinds_of_dicts():
        got = live.walk("dict", id(things), 2)
        if label.startswith("of an instance"):  # a split table has the order of its class
            got, want = sorted(got), sorted(pairs(things))
        else:
            want = pairs(things)
        live.same(f"dict {label}", got, want)
        for key in list(things)[:50]:
            if isinstance(key, str) and key.isascii():
                live.same(f"dict {label}: {key!r}", live.named("get", things, key), id(things[key]))
        live.same(f"dict {label}: no such key", live.named("get", things, "no such key"), 0)
    for wrong in ([], set(), "abc", object(), dict, types.MappingProxyType({})):
        live.same(f"no dict: {wrong!r}", live.walk("dict", id(wrong), 2), None)
        live.same(f"no dict: {wrong!r}", live.named("get", wrong, "a"), 0)


# Sets.

class Same:
    """All in one bucket."""

    def __hash__(self):
        return 7


class Last:
    def __hash__(self):
        return -2  # the nearest to what a removed entry has


def check_sets():
    removed = set(range(100))
    for i in range(0, 100, 2):
        removed.remove(i)
    removed.add("after")
    colliding = {Same() for _ in range(40)}
    for _ in range(10):
        colliding.pop()
    with_dummy = {"a", "b", "c"}
    with_dummy.remove("b")
    cleared = {1, 2, 3}
    cleared.clear()
    for things in (set(), {1}, {None, "a", 2.5}, set(range(20000)), removed, colliding, with_dummy, cleared, {Last(), Last()}, frozenset("abc"),
                   frozenset(), type("Set", (set,), {})("xyz"), type("Lower", (type("Set", (set,), {}),), {})("xyz")):
        live.same(f"set of {len(things)}", sorted(live.walk("set", id(things)) or []), sorted(ids(things)))
        live.same("a set", live.walk("set", id(things)) is None, False)
    for wrong in ({}, [], "abc", object(), set, type("set_of", (), {})()):
        live.same(f"no set: {wrong!r}", live.walk("set", id(wrong)), None)


# Deques.

def check_deques():
    choose = random.Random(1)
    things = collections.deque()
    for step in range(3000):
        one = choose.randrange(8)
        if one < 2:
            things.append(object())
        elif one < 4:
            things.appendleft(object())
        elif one == 4 and things:
            things.pop()
        elif one == 5 and things:
            things.popleft()
        elif one == 6:
            things.rotate(choose.randrange(-100, 100))
        elif one == 7:
            things.extend(range(choose.randrange(3)))
        if step % 10 == 0:
            live.same(f"deque after {step}", live.walk("deque", id(things)), ids(things))
    for size in (0, 1, 31, 32, 33, 63, 64, 65, 127, 128, 129, 1000):
        right, left = collections.deque(range(size)), collections.deque()
        left.extendleft(range(size))
        bounded = collections.deque(range(2 * size), maxlen=size)
        for things in (right, left, bounded, type("Deque", (collections.deque,), {})(range(size))):
            live.same(f"deque of {size}", live.walk("deque", id(things)), ids(things))
        while right:
            right.popleft()
        live.same("an emptied deque", live.walk("deque", id(right)), [])
    for wrong in ([], {}, object(), collections.deque, collections.Counter()):
        live.same(f"no deque: {wrong!r}", live.walk("deque", id(wrong)), None)


# Attributes.

class Slots:
    __slots__ = ("slot",)


class BelowSlots(Slots):
    pass


class Weak:
    __slots__ = ("__weakref__",)


class WithDict(Slots):
    __slots__ = ("__dict__",)


class LikeDict(dict):
    pass


class LikeError(Exception):
    pass


class LikeFuture(asyncio.Future):
    pass


def check_attributes(loop):
    for make in (Plain, BelowSlots, WithDict, LikeDict, LikeError, type("Made", (Plain,), {}), type("Below", (Weak,), {}),
                 functools.partial(LikeFuture, loop=loop), lambda: types.SimpleNamespace(), lambda: types.ModuleType("m"), lambda: (lambda: 0),
                 lambda: functools.partial(print), threading.Thread):
        instances = [make() for _ in range(4)]
        for i, instance in enumerate(instances):
            label = f"{type(instance).__name__} {i}"
            if i == 1:
                materialise(instance)
            instance.first, instance.second = object(), object()
            attribute_of(label, instance, "first", "second", "third")
            del instance.first
            attribute_of(label + ", deleted", instance, "first", "second")
            instance.third = instance.first = object()
            attribute_of(label + ", added", instance, "first", "second", "third")
            materialise(instance)
            attribute_of(label + ", with a dict", instance, "first", "second", "third")
            if i == 2 and type(instance).__module__ == __name__ and hasattr(instance, "__dict__"):
                instance.__dict__ = {"first": label, 7: 8}
                attribute_of(label + ", another dict", instance, "first", "second")
            for j in range(40):  # more than classes share
                setattr(instance, f"more_{j}", object())
            attribute_of(label + ", many", instance, "first", "more_0", "more_29", "more_30", "more_39")
    slots = BelowSlots()
    slots.slot = 1
    live.same("a slot", live.named("attribute", slots, "slot"), 0)
    Plain.of_class = object()
    live.same("a class's attribute, of an instance", live.named("attribute", Plain(), "of_class"), 0)
    live.same("a class's attribute", live.named("attribute", Plain, "of_class"), id(Plain.of_class))
    for wrong in (1, None, "abc", object(), Slots(), Weak(), (), [], type("Tuple", (tuple,), {})()):
        live.same(f"no attributes: {wrong!r}", live.named("attribute", wrong, "first"), 0)


def materialise(instance):
    """Futures have a dict, but do not show it."""
    return getattr(instance, "__dict__", None)


def attribute_of(label, instance, *names):
    for name in names:
        found = vars_of(instance).get(name)
        live.same(f"{label}.{name}", live.named("attribute", instance, name), 0 if found is None else id(found))


def vars_of(instance):
    """Like vars, but without making a dict of what has none yet."""
    return {name: getattr(instance, name) for name in ("first", "second", "third", "more_0", "more_29", "more_30", "more_39")
            if hasattr(instance, name)}


# What asyncio keeps.

async def attributes_of_asyncio():
    loop = asyncio.get_running_loop()
    queue = asyncio.Queue()
    waiting = [asyncio.create_task(queue.get()) for _ in range(70)]
    gathered = asyncio.gather(*waiting)
    async with asyncio.TaskGroup() as group:
        sleeping = [group.create_task(asyncio.sleep(60)) for _ in range(3)]
        await asyncio.sleep(0)
        live.same("TaskGroup._parent_task", live.named("attribute", group, "_parent_task"), id(asyncio.current_task()))
        live.same("TaskGroup._tasks", sorted(live.walk("set", live.named("attribute", group, "_tasks"))), sorted(ids(sleeping)))
        getters = live.named("attribute", queue, "_getters")
        live.same("Queue._getters", live.walk("deque", getters), ids(queue._getters))
        live.same("Queue._getters", len(queue._getters), 70)
        children = live.named("attribute", gathered, "_children")
        live.same("_GatheringFuture._children", live.walk("items", children), ids(waiting))
        futures_and_tasks(loop, waiting[0], gathered)
        where_asyncio_is(loop)
        for task in sleeping + waiting:
            task.cancel()
    await asyncio.gather(gathered, return_exceptions=True)


STATES = ["PENDING", "CANCELLED", "FINISHED"]


def state_of(future):
    return ctypes.c_int32.from_address(id(future) + live.offset("future_state")).value


def futures_and_tasks(loop, task, gathered):
    """Task is one of Queue.get, which waits for a future."""
    live.same("sizeof a task", live.offset("task_size"), _asyncio.Task.__basicsize__)
    live.same("sizeof a future", live.offset("future_size"), _asyncio.Future.__basicsize__)
    live.same("a future's loop", word(gathered, "future_loop"), id(loop))
    live.same("a task's coroutine", word(task, "task_coro"), id(task.get_coro()))
    live.same("what a task waits for", word(task, "task_waiter"), id(task._fut_waiter))
    current = asyncio.current_task()
    live.same("it waits for nothing", word(current, "task_waiter"), 0)
    task.set_name("the name of a task")
    live.same("a task's name", live.lib.live_is_text(word(task, "task_name"), b"the name of a task"), 1)

    first, *others = task._fut_waiter._callbacks
    future = task._fut_waiter
    live.same("the first callback", word(future, "future_callback0"), id(first[0]))
    live.same("task_wakeup is of the task", word(first[0], "cfunction_self"), id(task))
    name = ctypes.c_char_p(ctypes.c_uint64.from_address(word(first[0], "cfunction_def")).value).value
    live.same("task_wakeup", name, b"task_wakeup")
    live.same("further callbacks: none", word(future, "future_callbacks"), 0)
    future.add_done_callback(id)
    live.same("further callbacks", len(live.walk("items", word(future, "future_callbacks"))), len(others) + 1)

    done = loop.create_future()
    done.set_result(1)
    cancelled = loop.create_future()
    cancelled.cancel()
    for one in (task, done, cancelled):
        live.same(f"state {one._state}", STATES[state_of(one)], one._state)

    if live.offset("future_awaited_by") == NONE:
        return
    live.same("awaited by nobody", word(done, "future_awaited_by"), 0)
    live.same("awaited by one", word(future, "future_awaited_by"), id(task))
    asyncio.future_add_to_awaited_by(future, current)
    live.same("awaited by two", sorted(live.walk("set", word(future, "future_awaited_by"))), sorted(ids([task, current])))
    live.same("it is a set", ctypes.c_uint8.from_address(id(future) + live.offset("future_awaited_by_is_set")).value, 1)
    asyncio.future_discard_from_awaited_by(future, current)


def thread_state():
    function = ctypes.pythonapi.PyThreadState_Get
    function.restype = ctypes.c_void_p
    return function()


def listed(head):
    """Tasks of a list of 3.14+; its links are held against each other."""
    tasks, node, before = [], ctypes.c_uint64.from_address(head).value, head
    while node != head and len(tasks) < 1000:
        live.same("links", ctypes.c_uint64.from_address(node + 8).value, before)
        tasks.append(node - live.offset("task_node"))
        node, before = ctypes.c_uint64.from_address(node).value, node
    return tasks


def where_asyncio_is(loop):
    state = thread_state()
    function = ctypes.pythonapi.PyThreadState_GetDict
    function.restype = ctypes.c_void_p
    live.same("the thread's dict", word_at(state, "thread_dict"), function())
    if live.offset("thread_running_loop") != NONE:
        live.same("the running loop", word_at(state, "thread_running_loop"), id(loop))
    else:
        held = live.lib.live_get(word_at(state, "thread_dict"), b"__asyncio_running_event_loop__")
        if held != id(loop):  # a holder of it
            held = ctypes.c_uint64.from_address(held + live.offset("wrapper_inner")).value
        live.same("the running loop", held, id(loop))
    if live.offset("thread_tasks") == NONE:
        return
    live.same("the running task", word_at(state, "thread_running_task"), id(asyncio.current_task()))
    live.same("the thread's tasks", sorted(listed(state + live.offset("thread_tasks"))), sorted(ids(asyncio.all_tasks())))
    interp = word_at(state, "thread_interp")
    live.same("tasks of threads that are gone: none", listed(interp + live.offset("interp_tasks")), [])
    orphans = []

    def leave_one_behind():
        other = asyncio.new_event_loop()
        orphans.append(other.create_task(asyncio.sleep(60), name="orphan"))
        other.close()
    thread = threading.Thread(target=leave_one_behind)
    thread.start()
    thread.join()
    live.same("a task of a thread that is gone", listed(interp + live.offset("interp_tasks")), ids(orphans))
    orphans[0].get_coro().close()
    orphans[0]._log_destroy_pending = False


def check_weak_sets():
    things = [Plain() for _ in range(30)]
    weak = weakref.WeakSet(things)
    del things[:10]
    data = live.named("attribute", weak, "data")
    live.same("WeakSet.data", data, id(weak.data))
    references = live.walk("set", data)
    live.same("its references", sorted(references), sorted(ids(weak.data)))
    found = [ctypes.c_uint64.from_address(address + live.offset("weakref_object")).value for address in references]
    live.same("what they refer to", sorted(found), sorted(ids(things)))


# Variables.

def make_closures():
    first, second, later = object(), [1], None

    def none():
        return 0

    def one():
        return first

    def three(argument, *rest):
        own = argument
        return lambda: (second, first, own, later)

    def empty():
        return never

    def inner_of(cell):
        return cell, first
    result = none, one, three, three(5), empty, inner_of
    if len(result) == 0:
        never = 1  # noqa: F841
    return result, {"first": first, "second": second}


def check_closures():
    functions, _ = make_closures()
    for function in functions:
        cells = function.__closure__ or ()
        for name, cell in zip(function.__code__.co_freevars, cells):
            try:
                want = id(cell.cell_contents)
            except ValueError:
                want = 0
            live.same(f"closure {function.__name__}: {name}", live.named("closure", function, name), want)
        for name in ("argument", "nothing", "cell", "own" if "own" not in function.__code__.co_freevars else "rest"):
            live.same(f"closure {function.__name__}: {name}", live.named("closure", function, name), 0)
        live.same("a function's code", word(function, "function_code"), id(function.__code__))
        live.same("a function's closure", word(function, "function_closure"), id(function.__closure__) if function.__closure__ else 0)
    live.same("the same cells", word(functions[1].__closure__[0], "cell_value"), id(functions[1]()))
    for wrong in (1, None, print, check_closures.__code__, Plain, functools.partial(print)):
        live.same(f"no closure: {wrong!r}", live.named("closure", wrong, "first"), 0)


@types.coroutine
def pause():
    yield


async def with_locals(argument, *rest, keyword=None, **more):
    plain, celled, constant = object(), object(), 7
    unbound = 1
    del unbound

    def use():
        return celled, argument
    comprehended = [celled for plain_inside in range(2)]
    await pause()
    if keyword is None:
        late = use
        await pause()
    return plain, constant, comprehended, late


def free_variables():
    outside = object()

    async def inside(also=3):
        both = outside, also
        await pause()
        return both
    return inside


def generator(argument):
    for item in [object()]:
        yield item, argument


def local_variables(label, suspended, frame):
    found = dict(frame.f_locals)
    names = set(frame.f_code.co_varnames + frame.f_code.co_cellvars + frame.f_code.co_freevars) | {"no_such_name"}
    for name in sorted(names):
        live.same(f"{label}: {name}", live.named("local", suspended, name), id(found[name]) if name in found else 0)
    live.same(label + ": none of them", len(found) > 0, True)


def check_locals():
    for argument in (object(), 5, 1 << 70, None, True, "text", ()):
        coroutine = with_locals(argument, 1, 2, other=3)
        local_variables("created", coroutine, coroutine.cr_frame)
        for step in range(2):
            coroutine.send(None)
            local_variables(f"coroutine {step}", coroutine, coroutine.cr_frame)
        coroutine.close()
    coroutine = free_variables()()
    local_variables("free, created", coroutine, coroutine.cr_frame)
    coroutine.send(None)
    local_variables("free", coroutine, coroutine.cr_frame)
    coroutine.close()
    made = generator("x")
    next(made)
    local_variables("generator", made, made.gi_frame)


# The layout itself.

def check_types():
    class Derived(Plain):
        pass
    for kind in (int, dict, list, object, type, Plain, Derived, LikeDict, LikeFuture, Slots, _asyncio.Task, collections.deque, Exception):
        live.same(f"{kind.__name__}: size", word(kind, "type_basicsize"), kind.__basicsize__)
        live.same(f"{kind.__name__}: base", word(kind, "type_base"), id(kind.__base__) if kind.__base__ else 0)
        live.same(f"{kind.__name__}: flags", word(kind, "type_flags"), kind.__flags__ & (1 << 64) - 1)
        live.same(f"{kind.__name__}: where the dict is", ctypes.c_int64(word(kind, "type_dictoffset")).value, kind.__dictoffset__)
        live.same(f"{kind.__name__}: name", live.named("type_is_named", kind, kind.__name__),
                  kind not in (_asyncio.Task, collections.deque))
        live.same(f"{kind.__name__}: heap", bool(kind.__flags__ & live.offset("flag_heap_type")), bool(kind.__flags__ & 1 << 9))
    live.same("a longer name", live.named("type_is_named", _asyncio.Task, "_asyncio.Task"), 1)
    live.same("half a name", live.named("type_is_named", _asyncio.Task, "_asyncio"), 0)
    live.same("more than a name", live.named("type_is_named", _asyncio.Task, "_asyncio.Tasks"), 0)
    proxy = Plain.__dict__
    proxied = ctypes.c_uint64.from_address(id(proxy) + object.__basicsize__).value
    live.same("a class's dict", word(Plain, "type_dict"), proxied)
    live.same("its subclasses", live.walk("dict", word(Plain, "type_subclasses"), 2) != [], True)
    references = live.walk("dict", word(Plain, "type_subclasses"), 2)[1::2]
    found = [ctypes.c_uint64.from_address(address + live.offset("weakref_object")).value for address in references]
    live.same("its subclasses", sorted(found), sorted(ids(Plain.__subclasses__())))
    wrapped = ctypes.c_uint64.from_address(id(_asyncio.Task.__dict__["__init__"]) + 48).value
    live.same("tp_init", word(_asyncio.Task, "type_init"), wrapped)
    live.same("tp_dealloc of classes", word(Plain, "type_dealloc"), word(Derived, "type_dealloc"))
    live.same("tp_dealloc of others", len({word(kind, "type_dealloc") for kind in (Plain, int, dict, list, _asyncio.Task)}), 5)
    managed = live.offset("flag_managed_dict")
    live.same("a managed dict", [bool(kind.__flags__ & managed) for kind in (Plain, BelowSlots, Slots, int)], [True, True, False, False])
    inline = live.offset("flag_inline_values")
    live.same("inline values", bool(Plain.__flags__ & inline), sys.version_info >= (3, 13))


def check_objects():
    method = Live(sys.argv[1]).same
    live.same("a method's function", word(method, "method_function"), id(method.__func__))
    live.same("a method's self", word(method, "method_self"), id(method.__self__))
    things = []
    live.same("a builtin's self", word(things.append, "cfunction_self"), id(things))
    partial = functools.partial(print, 1, "two")
    live.same("partial", word(partial, "partial_function"), id(print))
    live.same("its arguments", live.walk("items", word(partial, "partial_args")), ids(partial.args))
    for value in (1, 77, (1 << 30) - 1):
        size = word(value, "long_size")
        live.same("a small int's size", size >> 3 if live.offset("long_is_tagged") else size, 1)
        live.same("its digit", ctypes.c_uint32.from_address(id(value) + live.offset("long_digits")).value, value)
    size = word(1 << 90, "long_size")
    live.same("an int's size", size >> 3 if live.offset("long_is_tagged") else size, 4)


def check_code():
    for function in (make_closures, with_locals, free_variables(), check_types, make_closures()[0][3], check_attributes):
        code = function.__code__
        names = set(code.co_varnames + code.co_cellvars + code.co_freevars)
        live.same(f"{function.__name__}: variables", number(code, "code_nlocalsplus"), len(names))
        live.same(f"{function.__name__}: free ones", number(code, "code_nfreevars"), len(code.co_freevars))
        live.same(f"{function.__name__}: stack", number(code, "code_stacksize"), code.co_stacksize)


def byte(thing, member):
    return ctypes.c_int8.from_address(id(thing) + live.offset(member)).value


def awaited_slot(coroutine):
    """The object that the layout says a coroutine awaits."""
    frame = id(coroutine) + live.offset("gen_frame")
    if live.offset("executable_tag_mask"):
        top = ctypes.c_uint64.from_address(frame + live.offset("frame_stacktop")).value
    else:
        index = ctypes.c_int32.from_address(frame + live.offset("frame_stacktop")).value
        top = frame + live.offset("frame_localsplus") + 8 * index
    return ctypes.c_uint64.from_address(top - 8 * live.offset("await_slot")).value & ~live.offset("executable_tag_mask")


def resume_opcode(coroutine):
    """3.11/3.12: what stands after the last instruction; else 0."""
    if live.lib.live_resume(0) == 0:
        return 0
    frame = id(coroutine) + live.offset("gen_frame")
    instruction = ctypes.c_uint64.from_address(frame + live.offset("frame_instr")).value
    return ctypes.c_uint8.from_address(instruction + 2).value


async def awaiting(inner):
    await inner


def check_generators():
    inner = with_locals(1)
    outer = awaiting(inner)
    awaits = live.offset("gen_awaiting") if live.offset("gen_awaiting") != 127 else live.offset("gen_suspended")
    live.same("created", byte(outer, "gen_state"), live.offset("gen_created"))
    outer.send(None)
    live.same("awaiting", byte(outer, "gen_state"), awaits)
    live.same("inspect agrees", inspect.getcoroutinestate(outer), inspect.CORO_SUSPENDED)
    live.same("what it awaits", awaited_slot(outer), id(outer.cr_await))
    live.same("what it awaits", id(outer.cr_await), id(inner))
    live.same("at a RESUME", resume_opcode(outer) in [live.lib.live_resume(i) for i in range(3)], True)
    frame = id(outer) + live.offset("gen_frame")
    executable = ctypes.c_uint64.from_address(frame + live.offset("frame_executable")).value & ~live.offset("executable_tag_mask")
    live.same("its frame", executable, id(outer.cr_code))
    outer.close()
    live.same("closed", byte(outer, "gen_state") >= live.offset("gen_finished"), True)

    made = generator(1)
    next(made)
    live.same("suspended", byte(made, "gen_state"), live.offset("gen_suspended"))
    live.same("finished", [byte(made, "gen_state") >= live.offset("gen_finished") for _ in [0, list(made)]], [True, True])

    def states():
        yield byte(running, "gen_state")
    running = states()
    live.same("executing", next(running), live.offset("gen_executing"))

    wrapper = with_locals(1)
    through = wrapper.__await__()
    live.same("what a wrapper wraps", word(through, "wrapper_inner"), id(wrapper))
    wrapper.close()
    live.same("RESUME", live.lib.live_resume(0) in (0, opcode.opmap["RESUME"]), True)


# Texts, and what is nothing.

class Text(str):
    pass


def check_texts():
    for text in ("", "a", "name", "x" * 63, "x" * 64, "x" * 65, "x" * 1000, Text("of a class")):
        live.same(f"text of {len(text)}", live.named("is_text", text, text), 1)
        live.same(f"more than text of {len(text)}", live.named("is_text", text, text + "x"), 0)
        live.same(f"other than text of {len(text)}", live.named("is_text", text, text[:-1] + "y"), 0)
    for wrong in ("é", "Ж", b"a", 1, None, object()):
        live.same(f"not a: {wrong!r}", live.named("is_text", wrong, "a"), 0)


def check_nothing():
    for address in (0, 1, 8, 4095, 4096, 0xdddddddddddddddd, 0x0000800000000000, 2**63, 2**64 - 8, id(live) + 1):
        for kind in ("items", "dict", "set", "deque"):
            live.same(f"no {kind} there", live.walk(kind, address), None)
        for function in ("get", "attribute", "closure", "is_text", "type_is_named"):
            live.same(f"no {function} there", getattr(live.lib, "live_" + function)(address, b"a"), 0)


def main():
    global live
    live = Live(sys.argv[1])
    error = live.lib.live_open(hasattr(sys, "gettotalrefcount"))
    if error:
        print(f"live_open: {error}")
        return 1
    loop = asyncio.new_event_loop()
    check_texts()
    check_nothing()
    check_items()
    check_dicts()
    split_dicts()
    check_sets()
    check_deques()
    check_attributes(loop)
    loop.run_until_complete(attributes_of_asyncio())
    loop.close()
    check_weak_sets()
    check_closures()
    check_locals()
    check_types()
    check_objects()
    check_code()
    check_generators()
    print(f"{live.passed} passed, {live.failed} failed")
    return live.failed != 0


if __name__ == "__main__":
    sys.exit(main())
