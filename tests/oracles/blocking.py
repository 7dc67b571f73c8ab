# SPDX-License-Identifier: MIT
"""blocking: an event loop whose tasks block it. The truth: for how long each call stood, by its own clock.

    blocking.py LOOP SECONDS [contended]

LOOP: main, thread (a loop in a second thread, beside one at rest) or uvloop; so long in each of
three calls. contended: another thread wants the GIL all the time.
"""
import _thread
import asyncio
import concurrent.futures
import ctypes
import socket
import sys
import threading
import time

from truth import burn, leave

KIND, SECONDS = sys.argv[1], float(sys.argv[2])
TIMES = 4  # calls of a kind
truth = {}


def noted(call, *args):
    began = time.monotonic()
    call(*args)
    truth[call.__name__] = truth.get(call.__name__, 0) + time.monotonic() - began


def sleeps(seconds):
    time.sleep(seconds)


def receives(connection):
    connection.recv(1)


def keeps_the_gil(seconds):
    ctypes.PyDLL(None).usleep(int(1e6 * seconds))


def sends_later(connection):
    time.sleep(SECONDS / TIMES)
    connection.send(b"x")


async def blocks():
    """Each call in a coroutine of its own step, others' turn in between."""
    here, there = socket.socketpair()
    for _ in range(TIMES):
        noted(sleeps, SECONDS / TIMES)
        await asyncio.sleep(0)
        _thread.start_new_thread(sends_later, (there,))  # threading's start waits for its thread
        noted(receives, here)
        await asyncio.sleep(0)
        noted(keeps_the_gil, SECONDS / TIMES)
        await asyncio.sleep(0)


async def rests():
    await asyncio.sleep(SECONDS)


def sleeps_elsewhere():
    time.sleep(SECONDS)


async def has_it_done():
    await asyncio.get_running_loop().run_in_executor(pool, sleeps_elsewhere)


async def computes():
    for _ in range(TIMES):
        burn(SECONDS / TIMES, time.monotonic)
        await asyncio.sleep(0)


async def main():
    await asyncio.gather(blocks(), rests(), has_it_done(), computes())
    await rests()


def run_main():
    asyncio.run(main())


def run_uvloop():
    import uvloop
    if hasattr(uvloop, "run"):
        uvloop.run(main())
    else:
        uvloop.install()
        asyncio.run(main())


def run_thread():
    busy = threading.Thread(target=run_main)
    busy.start()
    asyncio.run(rests())
    busy.join()


def contends(over):
    while not over.is_set():
        burn(0.001)


over = threading.Event()
pool = concurrent.futures.ThreadPoolExecutor(1)
pool.submit(int).result()  # its thread is there before the loop is
other = threading.Thread(target=contends, args=(over,))
if "contended" in sys.argv[3:]:
    other.start()
globals()["run_" + KIND]()
over.set()
leave(truth)
