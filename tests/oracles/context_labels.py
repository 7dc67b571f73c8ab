# SPDX-License-Identifier: MIT
"""context_labels: what ran, and which tasks lived, while two context variables were set to what.

    context_labels.py some          routes, nested contexts, threads, tokens, 1,000 other variables
    context_labels.py many COUNT    so many values, one after the other

What is noted is noted under what the variables themselves say at that moment.
"""
import asyncio
import collections
import contextvars
import sys
import threading
import time

from truth import burn, leave

NOBODY = "nobody; by default"
route, tenant = contextvars.ContextVar("request_route"), contextvars.ContextVar("tenant", default=NOBODY)
others = [contextvars.ContextVar("other_%d" % i) for i in range(1000)]
alike = [contextvars.ContextVar(name) for name in ("request_rout", "request_route_", "Tenant")]
used, lived, slept = collections.Counter(), collections.Counter(), collections.Counter()
lock = threading.Lock()
ROUTES = ("/signup", "/pay;now", "/caf\u00e9 \u4e2d\u6587")
TENANTS = (7, -12345678901, "t" * 300, 0)


def key():
    """As stacks should say it."""
    context = contextvars.copy_context()
    return repr([context.get(route), context.get(tenant, NOBODY)])


def note(table, seconds):
    with lock:
        table[key()] += seconds


def work(seconds):
    cpu = time.thread_time()
    burn(seconds)
    note(used, time.thread_time() - cpu)


def nested():
    route.set("/nested")
    work(0.01)


def in_thread():
    route.set("/thread %d" % (tenant.get() == 0))
    began = time.monotonic()
    work(0.03)
    time.sleep(0.1)
    note(slept, time.monotonic() - began)


async def child(began):
    """Made with what its maker had. When it ended."""
    work(0.01)
    await asyncio.sleep(0.3)
    ended = time.monotonic()
    note(lived, ended - began)
    return ended


async def request(i):
    began = time.monotonic()
    token = route.set(ROUTES[i % 3])
    tenant.set(TENANTS[i % 4])
    for _ in range(4):
        work(0.004 * (1 + i % 3))
        await asyncio.sleep(0.2)
    contextvars.copy_context().run(nested)
    work(0.002)
    await asyncio.sleep(0.01)
    made = time.monotonic()
    note(lived, made - began)
    began = await asyncio.create_task(child(made))
    await asyncio.to_thread(in_thread)
    note(lived, time.monotonic() - began)
    began = time.monotonic()
    route.reset(token)
    work(0.004)
    await asyncio.sleep(0.3)
    note(lived, time.monotonic() - began)


async def of_no_kind():
    """Neither str nor int: no label."""
    route.set(None)
    tenant.set((1, 2))
    work(0.05)
    await asyncio.sleep(0.1)


async def requests():
    await asyncio.gather(*(request(i) for i in range(24)), of_no_kind())


def warm_up():
    """Variables are found when somebody has set them."""
    route.set("/")
    tenant.set(1)
    time.sleep(0.5)


def begin():
    contextvars.copy_context().run(warm_up)
    for i, other in enumerate(others + alike):
        other.set(i)


def own_context():
    work(0.05)
    contextvars.copy_context().run(nested)
    route.set("/own")
    work(0.1)


def some():
    begin()
    threads = [threading.Thread(target=own_context), threading.Thread(target=contextvars.copy_context().run, args=(nested,))]
    for thread in threads:
        thread.start()
    asyncio.run(requests())
    for thread in threads:
        thread.join()
    route.set("/after")
    work(0.1)
    leave({"cpu": used, "task": lived, "wall": slept})


async def one_of_many(i):
    route.set("route %d" % i)
    burn(0.0005)
    await asyncio.sleep(0.05)


async def all_of_many(count):
    for i in range(0, count, 50):
        await asyncio.gather(*(one_of_many(j) for j in range(i, i + 50)))


def many(count):
    begin()
    asyncio.run(all_of_many(count))
    leave({"cpu": time.process_time()})


if __name__ == "__main__":
    {"some": some, "many": lambda: many(int(sys.argv[2]))}[sys.argv[1]]()
