# SPDX-License-Identifier: MIT
"""alternate: many threads, each of which alternates between two waits of known length.

    alternate.py THREADS SECONDS [IDLE]

Each thread has a function of its own, life_N, so that it can be told from the others
in a profile, and notes how long it stood in each of its waits. There are two kinds:
those of the first stand three quarters of their time in even_long, those of the second
three twentieths in odd_short; how long a wait lasts varies by half. IDLE threads more
stand in one wait all the time.
"""
import random
import sys
import threading
import time
import types

from truth import leave

now, cpu = time.monotonic, time.thread_time


def even_long(seconds):
    time.sleep(seconds)


def even_short(seconds):
    time.sleep(seconds)


def odd_long(seconds):
    time.sleep(seconds)


def odd_short(seconds):
    time.sleep(seconds)


def idle(over):
    over.wait()


KINDS = ((("even_long", even_long, 0.240), ("even_short", even_short, 0.080)),
         (("odd_long", odd_long, 0.340), ("odd_short", odd_short, 0.060)))


def life(note, end, waits):
    """waits: as in KINDS; note["waits"]: seconds in each, by name."""
    dice = random.Random(note["number"])
    dice.shuffle(waits)  # not all begin alike
    began = now()
    while now() < end:
        for name, wait, mean in waits:
            before = now()
            if before < end:
                wait(min(mean * dice.uniform(0.5, 1.5), end - before))
                note["waits"][name] = note["waits"].get(name, 0.0) + now() - before
    note["inner"], note["cpu"] = now() - began, cpu()


def named(number):
    """life under a name of its own."""
    name = "life_%d" % number
    code = life.__code__.replace(co_name=name)
    if hasattr(code, "co_qualname"):
        code = code.replace(co_qualname=name)
    return types.FunctionType(code, globals(), name)


def main():
    count, seconds, idlers = int(sys.argv[1]), float(sys.argv[2]), int(sys.argv[3]) if len(sys.argv) > 3 else 0
    threading.stack_size(256 << 10)
    over, notes, started = threading.Event(), [], []
    first, began = cpu(), now()
    for _ in range(idlers):
        started.append(threading.Thread(target=idle, args=(over,)))
        started[-1].start()
    all_idle = now()
    for number in range(count):
        note = {"number": number, "kind": number % 2, "waits": {}, "born": now()}
        thread = threading.Thread(target=named(number), args=(note, now() + seconds, list(KINDS[number % 2])))
        thread.start()
        notes.append(note)
        started.append(thread)
    all_there = now()
    for thread, note in zip(started[idlers:], notes):
        thread.join()
        note["outer"] = now() - note["born"]
    over.set()
    for thread in started[:idlers]:
        thread.join()
    leave({"threads": notes, "idlers": idlers, "idle": all_there - all_idle, "process_cpu": time.process_time(), "main_cpu": cpu() - first,
           "began": began, "ended": now()})


main()
