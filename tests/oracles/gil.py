# SPDX-License-Identifier: MIT
"""gil: a program that knows for how long each of its functions held the GIL, and how long its threads waited for it.

    gil.py SECONDS     so long in each phase

Alone, a thread that does not give the GIL away holds it from the beginning of a phase to
its end, whether it has a CPU or not. Of two that both want it all the time, one holds it
and one waits for it.
"""
import ctypes
import hashlib
import sys
import threading
import time

from truth import leave

held, released, contended = {}, {}, {}
delayed, used = {}, {}  # without a CPU though ready to run; CPU
library = ctypes.PyDLL(None)  # its calls keep the GIL
block = b"x" * (4 << 20)


def until(end):
    while time.monotonic() < end:
        for _ in range(200):
            pass


def delay():
    with open("/proc/thread-self/schedstat") as f:
        return int(f.read().split()[1]) / 1e9


def noted(notes, phase, *args):
    name, delay_before, cpu, began = phase.__name__, delay(), time.thread_time(), time.monotonic()
    phase(*args)
    notes[name] = began, time.monotonic()
    used[name], delayed[name] = time.thread_time() - cpu, delay() - delay_before


def holds_and_works(seconds):
    until(time.monotonic() + seconds)


def holds_and_sleeps(seconds):
    library.usleep(int(1e6 * seconds))


def sleeps(seconds):
    time.sleep(seconds)


def hashes(seconds):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        hashlib.sha256(block)


def waits_for_a_lock(lock):
    with lock:
        pass


def keeps_the_lock(lock, locked, seconds):
    with lock:
        locked.set()
        noted(held, holds_and_works_for_another, seconds)


def holds_and_works_for_another(seconds):
    until(time.monotonic() + seconds)


def lock_phase(seconds):
    lock, locked = threading.Lock(), threading.Event()
    other = threading.Thread(target=keeps_the_lock, args=(lock, locked, seconds))
    other.start()
    locked.wait()
    noted(released, waits_for_a_lock, lock)
    other.join()


def contends_one(end):
    until(end)


def contends_two(end):
    until(end)


def contention(seconds):
    """Both want it from the moment at which the second has begun."""
    end = time.monotonic() + seconds
    other = threading.Thread(target=noted, args=(contended, contends_two, end))
    other.start()
    noted(contended, contends_one, end)
    other.join()


def main(seconds):
    noted(held, holds_and_works, seconds)
    noted(held, holds_and_sleeps, seconds)
    noted(released, hashes, seconds)
    noted(released, sleeps, seconds)
    lock_phase(seconds)
    contention(2 * seconds)
    length = {name: end - began for notes in (held, released, contended) for name, (began, end) in notes.items()}
    both = min(end for _, end in contended.values()) - max(began for began, _ in contended.values())
    span = max(end for _, end in contended.values()) - min(began for began, _ in contended.values())
    leave({"held": {name: length[name] for name in held}, "released": {name: length[name] for name in released},
           "contended": span, "contended_cpu": sum(used[name] for name in contended), "waited": both, "delayed": delayed})


if __name__ == "__main__":
    main(float(sys.argv[1]))
