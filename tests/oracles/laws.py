# SPDX-License-Identifier: MIT
"""laws: threads that know their own CPU time and lifetime.

    laws.py THREADS SECONDS

1 thread: the main thread burns, waits and bursts in turn. More: some burn, some
burst (2 ms every 10 ms), some wait (sleep, lock, queue, select), and one starts
threads that live 3, 30 and 300 ms, half of them burning. Every wait stands in a
function of its own whose name begins with wait_, and measures what CPU it used.

Lifetimes are known between two bounds: from the first to the last line of the
thread's own function, and from before start() to after join().
"""
import os
import queue
import select
import sys
import threading
import time

from truth import burn, leave, profiler_cpu

now, cpu = time.monotonic, time.thread_time


class Life:
    """What one thread notes about itself."""

    def __init__(self, kind):
        self.kind, self.cpu, self.waits_cpu = kind, 0.0, 0.0
        self.inner, self.outer = 0.0, None

    def as_truth(self):
        return {"kind": self.kind, "cpu": self.cpu, "waits_cpu": self.waits_cpu, "inner": self.inner, "outer": self.outer}


def wait_sleep(seconds):
    time.sleep(seconds)


def wait_lock(lock, seconds):
    lock.acquire(True, seconds)


def wait_queue(empty, seconds):
    try:
        empty.get(True, seconds)
    except queue.Empty:
        pass


def wait_select(fd, seconds):
    select.select([fd], [], [], seconds)


def waiting(life, wait, *args):
    before = cpu()
    wait(*args)
    life.waits_cpu += cpu() - before


def burner(life, end):
    while now() < end:
        burn(0.005)


def burster(life, end):
    while now() < end:
        start = now()
        burn(0.002)
        waiting(life, wait_sleep, max(0, 0.010 - (now() - start)))


def sleeper(life, end):
    while now() < end:
        waiting(life, wait_sleep, min(0.25, max(0, end - now())))


def locker(life, end):
    lock = threading.Lock()
    lock.acquire()
    while now() < end:
        waiting(life, wait_lock, lock, max(0, min(0.5, end - now())))


def queuer(life, end):
    empty = queue.Queue()
    while now() < end:
        waiting(life, wait_queue, empty, max(0, min(0.5, end - now())))


def selecter(life, end):
    read, write = os.pipe()
    while now() < end:
        waiting(life, wait_select, read, max(0, min(0.5, end - now())))
    os.close(read)
    os.close(write)


def short(life, end, seconds, burns):
    if burns:
        burn(seconds)
    else:
        waiting(life, wait_sleep, seconds)


def alive(life, function, args):
    """The whole life of a thread: notes the clock at its last line."""
    start = now()
    function(life, *args)
    life.inner, life.cpu = now() - start, cpu()


def start(lives, kind, function, *args):
    life = Life(kind)
    lives.append(life)
    thread = threading.Thread(target=alive, args=(life, function, args))
    before = now()
    thread.start()
    return thread, life, before


def join(thread, life, before):
    thread.join()
    life.outer = now() - before


def spawner(life, end, lives):
    """Threads that live 3, 30 and 300 ms, one after the other."""
    plan = [(0.003, True), (0.003, False), (0.030, True), (0.030, False), (0.003, True), (0.300, False), (0.300, True)]
    for i in range(1000):
        if now() >= end:
            break
        seconds, burns = plan[i % len(plan)]
        if now() + 2 * seconds + 0.1 > end:  # the last to end are those that end together
            continue
        join(*start(lives, "short %g %s" % (seconds, "burns" if burns else "waits"), short, end, seconds, burns))


def alone(life, end):
    i = 0
    while now() < end:
        i += 1
        burn(0.050)
        waiting(life, wait_sleep, 0.030)
        burster(life, now() + 0.100)


def kinds(count):
    """Which threads to start besides the main one; two that burn compete for the GIL already."""
    few = [("spawns", spawner), ("burns", burner), ("bursts", burster), ("sleeps", sleeper), ("locks", locker), ("queues", queuer),
           ("selects", selecter)]
    more = [("sleeps", sleeper), ("locks", locker), ("queues", queuer), ("selects", selecter), ("bursts", burster)]
    extra = [more[i % 4] if i % 9 else more[4] for i in range(1, count)]
    return (few + extra)[:count - 1]


def main():
    count, seconds = int(sys.argv[1]), float(sys.argv[2])
    lives = []
    wait_sleep(0.05)  # whoever watches has come by now
    life = Life("main")
    first, began = cpu(), now()
    end = began + seconds
    if count == 1:
        alone(life, end)
    else:
        started = [start(lives, kind, function, end, *([lives] if kind == "spawns" else [])) for kind, function in kinds(count)]
        for entry in started:
            join(*entry)
    life.cpu, life.inner = cpu() - first, now() - began
    leave({"threads": [x.as_truth() for x in [life] + lives], "foreign_cpu": profiler_cpu(), "process_cpu": time.process_time(),
           "main_cpu_before": first, "began": began, "ended": now()})


main()
