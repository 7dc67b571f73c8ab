# SPDX-License-Identifier: MIT
"""collections_of_garbage: a program that knows how much CPU its garbage collections took.

    collections_of_garbage.py SECONDS     so long in each phase
"""
import gc
import sys
import threading
import time

from truth import burn, leave

OBJECTS = 100000
heap = [[] for _ in range(OBJECTS)]
took = {}
done = threading.Event()


def asked_for(seconds):
    """By gc.collect()."""
    cpu, end = 0, time.monotonic() + seconds
    while time.monotonic() < end:
        before = time.thread_time()
        gc.collect()
        cpu += time.thread_time() - before
    took["asked_for"] = cpu


def by_itself(seconds):
    """Whenever the interpreter finds that it is time."""
    began, cpu = [0], [0]

    def note(phase, info):
        if phase == "start":
            began[0] = time.thread_time()
        else:
            cpu[0] += time.thread_time() - began[0]

    gc.callbacks.append(note)
    gc.enable()
    kept, end = [], time.monotonic() + seconds
    while time.monotonic() < end:
        kept.append([kept])
        if len(kept) > OBJECTS:
            kept = []
    gc.disable()
    gc.callbacks.remove(note)
    took["by_itself"] = cpu[0]


def works(seconds):
    burn(seconds)


def works_meanwhile():
    while not done.is_set():
        burn(0.01)


class GivesTheGilAway:
    def __init__(self):
        self.itself = self

    def __del__(self):
        time.sleep(0.005)


def collects(seconds, finalizers):
    """So many at a time give the GIL away."""
    cpu, end = 0, time.monotonic() + seconds
    while time.monotonic() < end:
        for _ in range(finalizers):
            GivesTheGilAway()
        before = time.thread_time()
        gc.collect()
        cpu += time.thread_time() - before
    return cpu


def beside_another(seconds, finalizers):
    """Another thread wants to run all the time."""
    done.clear()
    other = threading.Thread(target=works_meanwhile)
    other.start()
    cpu = collects(seconds, finalizers)
    done.set()
    other.join()
    return cpu


def contended(seconds):
    return beside_another(seconds, 0)


def finalized(seconds):
    return beside_another(seconds, 20)


def main(seconds):
    gc.disable()
    works(seconds)
    asked_for(seconds)
    by_itself(seconds)
    leave({"took": took, "works": seconds, "contended": contended(seconds), "finalized": finalized(seconds)})


if __name__ == "__main__":
    main(float(sys.argv[1]))
