# SPDX-License-Identifier: MIT
"""thread_names: threads that know what they are called, and what they use and live under each name.

    thread_names.py some          threads of all kinds
    thread_names.py many COUNT    so many threads, each of another name, one after the other
    thread_names.py loops         two threads with an event loop each
"""
import asyncio
import concurrent.futures
import ctypes
import sys
import threading
import time

from truth import burn, leave

ODD = ("plain", "semi;colon", "line\nbreak", "back\\slash", "a\ud800b", "caf\u00e9 \u4e2d\u6587", "[in] (brackets:1)", "digits 12 34", "n" * 1200)
notes = {}  # name: [cpu, wall], of the thread's own clocks
lock = threading.Lock()


def note(name, cpu, wall):
    with lock:
        was = notes.get(name, (0, 0))
        notes[name] = was[0] + cpu, was[1] + wall


def under(name, work, wait):
    """Burns and waits in turn; noted under this name."""
    cpu, began = time.thread_time(), time.monotonic()
    for _ in range(10):
        burn(work / 10)
        time.sleep(wait / 10)
    note(name, time.thread_time() - cpu, time.monotonic() - began)


def renames_itself():
    for name in ("first name", "second name"):
        threading.current_thread().name = name
        under(name, 0.6, 2.4)


done = threading.Event()


def renamed_by_another():
    """Stands still until then and after."""
    began = time.monotonic()
    done.wait()
    note("all names", 0, time.monotonic() - began)


def kernel_name(name):
    with open("/proc/thread-self/comm", "w") as f:
        f.write(name)


def made_by_c(name):
    """A thread that threading knows nothing of; it has its maker's name with the kernel."""
    libc = ctypes.CDLL(None)
    call = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p)(lambda _: under(name, 0.3, 0.9))
    with open("/proc/thread-self/comm") as f:
        own = f.read().strip()
    kernel_name(name)
    thread = ctypes.c_ulong()
    libc.pthread_create(ctypes.byref(thread), None, call, None)
    kernel_name(own)
    return libc, thread, call


def some():
    threads = [threading.Thread(target=under, name=name, args=(name, 0.1 + 0.05 * i, 1.0 - 0.05 * i)) for i, name in enumerate(ODD)]
    threads += [threading.Thread(target=renames_itself, name="first name"), threading.Thread(target=renamed_by_another, name="old name")]
    libc, made, call = made_by_c("made by c")
    for thread in threads:
        thread.start()
    with concurrent.futures.ThreadPoolExecutor(3, thread_name_prefix="pool") as pool:
        list(pool.map(lambda _: under("pool", 0.1, 0.05), range(12)))
    for thread in threads[:-1]:
        thread.join()
    threads[-1].name = "new name"
    time.sleep(3)  # nobody runs
    done.set()
    threads[-1].join()
    libc.pthread_join(made, None)
    both = notes.pop("all names")[1]
    note("old name", 0, both - 3)
    note("new name", 0, 3)
    leave({"names": list(notes.items())})


def many(count):
    for i in range(count):
        thread = threading.Thread(target=burn, args=(0.001,), name="one of many %d" % i)
        thread.start()
        thread.join()
    leave({"process_cpu": time.process_time()})


async def waits(seconds):
    await asyncio.sleep(seconds)


async def some_tasks(tasks, seconds):
    await asyncio.gather(*(waits(seconds) for _ in range(tasks)))


def loops():
    threads = [threading.Thread(target=lambda: asyncio.run(some_tasks(30, 3)), name="loop a"),
               threading.Thread(target=lambda: asyncio.run(some_tasks(10, 3)), name="loop b")]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    leave({"waited": {"loop a": 90, "loop b": 30}})


if __name__ == "__main__":
    {"some": some, "many": lambda: many(int(sys.argv[2])), "loops": loops}[sys.argv[1]]()
