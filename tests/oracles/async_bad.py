# SPDX-License-Identifier: MIT
"""async_bad: what may confuse one who looks for tasks. Its output must be the same with and without.

    async_bad.py KIND SECONDS
"""
import gc
import os
import sys
import time
import types

from truth import append, burn

KIND, SECONDS = sys.argv[1], float(sys.argv[2])


def sleeper_and_main():
    """A fresh pair of coroutine functions, of whatever asyncio is now."""
    import asyncio

    async def leaf():
        await asyncio.sleep(SECONDS / 4)
        return 4

    async def main():
        return await asyncio.gather(leaf(), asyncio.create_task(leaf()))
    return asyncio, main


def run_once(label):
    asyncio, main = sleeper_and_main()
    print(label, asyncio.run(main()), flush=True)


def never():
    burn(SECONDS)
    print("never", "asyncio" in sys.modules)


def reloaded():
    import importlib
    run_once("first")
    import asyncio
    importlib.reload(asyncio.tasks)
    run_once("tasks reloaded")
    importlib.reload(asyncio)
    run_once("asyncio reloaded")


def imported_again():
    run_once("first")
    for name in [n for n in sys.modules if n == "_asyncio" or n.split(".")[0] == "asyncio"]:
        del sys.modules[name]
    gc.collect()
    run_once("again")
    gc.collect()
    burn(SECONDS / 4)


def fake():
    """A module of that name which is something else."""
    module = types.ModuleType("_asyncio")

    class Task:
        def __init__(self, *args):
            self.args = args

    class Future:
        pass
    module.Task, module.Future, module._scheduled_tasks, module._all_tasks = Task, Future, {1: 2}, [Task]
    sys.modules["_asyncio"] = module
    burn(SECONDS / 2)
    tasks = [Task(n) for n in range(100)]
    burn(SECONDS / 2)
    print("fake", len(tasks))


def fake_objects():
    """Of that name, and no module at all."""
    for value in (42, "text", None, types.SimpleNamespace(Task=int, Future=float), type("Task", (), {})):
        sys.modules["_asyncio"] = value
        burn(SECONDS / 5)
    print("objects")


def without_c():
    """asyncio of Python's alone."""
    sys.modules["_asyncio"] = None
    run_once("without")


def closed():
    """A loop that is closed while tasks wait in it."""
    import asyncio
    asyncio_, main = sleeper_and_main()
    loop = asyncio.new_event_loop()
    kept = [loop.create_task(asyncio.sleep(60)) for _ in range(10)]
    loop.run_until_complete(main())
    loop.close()
    burn(SECONDS / 2)
    time.sleep(SECONDS / 2)
    print("closed", sum(t.done() for t in kept), flush=True)
    os._exit(0)  # what Python says of such tasks holds addresses


def thread_gone():
    """Tasks of a loop whose thread has ended."""
    import asyncio
    import threading
    kept = []

    async def start():
        kept.extend(asyncio.create_task(asyncio.sleep(60)) for _ in range(10))
        await asyncio.sleep(SECONDS / 4)

    def run():
        asyncio.new_event_loop().run_until_complete(start())
    for _ in range(4):
        thread = threading.Thread(target=run)
        thread.start()
        thread.join()
    time.sleep(SECONDS / 4)
    print("gone", len(kept), sum(t.done() for t in kept), flush=True)
    os._exit(0)


# ---------------------------------------------------------------- forks in a running task

def fork():
    import asyncio

    async def waiting_leaf():
        await asyncio.sleep(2 * SECONDS)

    async def forker():
        pid = os.fork()
        if pid == 0:
            in_child(asyncio)
        append({"parent": os.getpid(), "child": pid})
        await asyncio.to_thread(os.waitpid, pid, 0)

    async def main():
        tasks = [asyncio.create_task(waiting_leaf()) for _ in range(5)]
        await asyncio.sleep(0.05)
        await asyncio.create_task(forker())
        for task in tasks:
            task.cancel()
    asyncio.run(main())
    print("forked")


def in_child(asyncio):
    """First nothing of asyncio, then a loop of its own, then an end without a word."""
    try:
        time.sleep(SECONDS / 2)
        child_runs_loop(asyncio)
    finally:
        os._exit(0)


def child_runs_loop(asyncio):
    import threading

    async def child_leaf():
        await asyncio.sleep(SECONDS / 2)

    async def child_main():
        await asyncio.create_task(child_leaf())
    thread = threading.Thread(target=lambda: asyncio.run(child_main()))
    thread.start()
    thread.join()


# ---------------------------------------------------------------- ends

def ends():
    """Ends while loops close, in one of many ways."""
    import asyncio
    import threading

    async def leaf():
        try:
            await asyncio.sleep(60)
        finally:
            await asyncio.sleep(0)

    async def main():
        tasks = [asyncio.create_task(leaf()) for _ in range(200)]
        await asyncio.sleep(SECONDS)
        if os.environ["ORACLE_WAY"] == "exit":
            sys.exit(5)
        if os.environ["ORACLE_WAY"] == "raise":
            raise ValueError("on purpose")
        return len(tasks)
    if os.environ["ORACLE_WAY"] == "daemon":
        threading.Thread(target=lambda: asyncio.run(main()), daemon=True).start()
        time.sleep(SECONDS)
    else:
        print("ends", asyncio.run(main()), flush=True)


globals()[KIND]()
