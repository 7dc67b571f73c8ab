# SPDX-License-Identifier: MIT
"""stands: threads and tasks that stand where they are known to, until stdin ends.

    stands.py threads|gil|tasks|busy

threads: some that wait, each in functions of its own; the truth has their frames as
the interpreter itself gives them. gil: two that compute in functions of their own.
tasks: tasks that await each other in all usual ways; the truth has the functions of
this file on which each stands, outermost first, and what each does. busy: a task that
computes. The truth is left once all are there.
"""
import asyncio
import os
import queue
import sys
import threading

from truth import burn, leave

lock = threading.Lock()
lock.acquire()
nothing = queue.Queue()
parked = []
tids = {}


def end_with_stdin():
    while os.read(0, 1):
        pass


# ---------------------------------------------------------------- threads

def waits_for_lock():
    tids[threading.get_ident()] = threading.get_native_id()
    lock.acquire()


def waits_in_queue():
    tids[threading.get_ident()] = threading.get_native_id()
    nothing.get()


def outer(depth):
    if depth:
        return outer(depth - 1)
    return waits_for_lock()


def frames_of(frame):
    """Outermost first: function and line."""
    found = []
    while frame:
        found.append([frame.f_code.co_name, frame.f_lineno])
        frame = frame.f_back
    return found[::-1]


def stand(known):
    """The frames of all others, once they are the same at two looks and end in a wait."""
    before = None
    while True:
        now = {ident: frames_of(frame) for ident, frame in sys._current_frames().items() if ident in known}
        if now == before and all(frames[-1][0] in ("waits_for_lock", "wait", "get") for frames in now.values()) and len(now) == len(known):
            return now
        before = now
        threading.Event().wait(0.01)


def threads():
    for number, target in enumerate((waits_for_lock, waits_for_lock, waits_for_lock, waits_in_queue, lambda: outer(20))):
        threading.Thread(target=target, daemon=True, name="stander-%d" % number).start()
    while len(tids) < 5:
        threading.Event().wait(0.01)
    frames = stand(set(tids))
    names = {thread.ident: thread.name for thread in threading.enumerate()}
    leave({"pid": os.getpid(), "main": threading.get_native_id(),
           "threads": [{"tid": tids[ident], "name": names[ident], "stack": frames[ident]} for ident in tids]})
    end_with_stdin()


def computes_one():
    tids["computes_one"] = threading.get_native_id()
    while True:
        burn(1)


def computes_two():
    tids["computes_two"] = threading.get_native_id()
    while True:
        burn(1)


def gil():
    for target in (computes_one, computes_two):
        threading.Thread(target=target, daemon=True).start()
    while len(tids) < 2:
        threading.Event().wait(0.01)
    leave({"pid": os.getpid(), "main": threading.get_native_id(), "tids": tids})
    end_with_stdin()


# ---------------------------------------------------------------- tasks

async def leaf():
    await asyncio.sleep(1e6)


async def branch():
    await leaf()


async def grouped():
    async with asyncio.TaskGroup() as group:
        for number in range(3):
            group.create_task(branch(), name="in-group-%d" % number)


async def inner():
    await asyncio.Event().wait()


async def on_a_task():
    await asyncio.create_task(inner(), name="awaited")


async def shared_one(task):
    await task


async def shared_two(task):
    await task


def start_in_background():
    return asyncio.create_task(leaf(), name="alone")


async def tasks():
    def make(coroutine, name):
        return asyncio.create_task(coroutine, name=name)
    asyncio.current_task().set_name("main")
    background = start_in_background()
    shared = make(inner(), "shared")
    all_of_them = [make(grouped(), "grouped"), make(on_a_task(), "on-a-task"), make(shared_one(shared), "one"), make(shared_two(shared), "two")]
    all_of_them += [make(leaf(), "gathered;%d" % number) for number in range(200)]
    asyncio.get_running_loop().add_reader(0, os._exit, 0)
    asyncio.get_running_loop().call_later(0.05, leave, truth_of_tasks())
    await asyncio.gather(*all_of_them)
    return background


def truth_of_tasks():
    known = {
        "main": ("awaits", [["tasks"]]),
        "alone": ("waiting", [["tasks", "leaf"]]),
        "grouped": ("awaits", [["tasks", "grouped"]]),
        "on-a-task": ("awaits", [["tasks", "on_a_task"]]),
        "awaited": ("waiting", [["tasks", "on_a_task", "inner"]]),
        "one": ("awaits", [["tasks", "shared_one"]]),
        "two": ("awaits", [["tasks", "shared_two"]]),
        "shared": ("waiting", [["tasks", "shared_one", "inner"], ["tasks", "shared_two", "inner"]]),
    }
    known.update({"in-group-%d" % number: ("waiting", [["tasks", "grouped", "branch", "leaf"]]) for number in range(3)})
    known.update({"gathered;%d" % number: ("waiting", [["tasks", "leaf"]]) for number in range(200)})
    return {"pid": os.getpid(), "main": threading.get_native_id(), "tasks": known}


# ---------------------------------------------------------------- a task that computes

async def computes():
    leave({"pid": os.getpid(), "main": threading.get_native_id()})
    while True:
        burn(1)


async def busy():
    threading.Thread(target=lambda: (end_with_stdin(), os._exit(0)), daemon=True).start()
    await asyncio.gather(asyncio.create_task(computes(), name="computer"), asyncio.create_task(leaf(), name="waiter"))


if __name__ == "__main__":
    if sys.argv[1] in ("threads", "gil"):
        globals()[sys.argv[1]]()
        os._exit(0)
    asyncio.run(globals()[sys.argv[1]]())
