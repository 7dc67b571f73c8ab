# SPDX-License-Identifier: MIT
"""anyio_work: anyio's worker threads that know who sent them what.

    anyio_work.py

Each function notes what it used and how long it ran under the way that leads to it.
"""
import asyncio
import inspect
import threading

import anyio
import anyio.to_thread

from sent_work import leave_work, warm_up, work


def of_endpoint(way):
    work(way, 0.1, 0.2)


def of_group(way):
    work(way, 0.15, 0.1)


class Given:
    """A call that is given up while it waits, and works on, for nobody."""

    def __init__(self):
        self.waits, self.gone, self.done, self.scope = threading.Event(), threading.Event(), threading.Event(), anyio.CancelScope()

    def of_nobody(self):
        work("main;gives_up;of_nobody", 0.1, 0.1)
        self.waits.set()
        self.gone.wait()
        work("of_nobody", 0.1, 0.1)
        self.done.set()

    def up(self):
        if self.waits.is_set():
            self.scope.cancel()
        else:
            asyncio.get_running_loop().call_later(0.01, self.up)


async def endpoint():
    await anyio.to_thread.run_sync(of_endpoint, "main;parent;endpoint;of_endpoint")


async def parent():
    await asyncio.create_task(endpoint())


async def sends():
    await anyio.to_thread.run_sync(of_group, "main;grouped;sends;of_group")


async def grouped():
    async with anyio.create_task_group() as group:
        group.start_soon(sends)
        group.start_soon(sends)


async def gives_up():
    given = Given()
    asyncio.get_running_loop().call_soon(given.up)
    with given.scope:
        await anyio.to_thread.run_sync(given.of_nobody, **ABANDON)
    given.gone.set()
    while not given.done.is_set():
        await asyncio.sleep(0.01)


async def main():
    await anyio.to_thread.run_sync(warm_up)
    await asyncio.gather(parent(), parent(), grouped())
    await asyncio.gather(gives_up(), gives_up(), parent())


if __name__ == "__main__":
    known = inspect.signature(anyio.to_thread.run_sync).parameters
    ABANDON = {"abandon_on_cancel" if "abandon_on_cancel" in known else "cancellable": True}
    asyncio.run(main())
    leave_work()
