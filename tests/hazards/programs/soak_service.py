# SPDX-License-Identifier: MIT
"""A service that does a little of everything, for as long as it is let.

    soak_service.py TASKS THREADS

1,000 tasks that come and go by unique names, threads that burn in small bursts,
code made by exec, a fork every two seconds, SIGHUP to begin anew. SIGTERM ends it;
then truth.json tells what it did. A beat a second goes to stdout: a reader knows that
it lives.
"""
import asyncio
import json
import os
import random
import signal
import sys
import threading
import time

done = {"tasks": 0, "made": 0, "forks": [], "hups": 0, "errors": []}
over = threading.Event()


def burn(seconds):
    end = time.thread_time() + seconds
    while time.thread_time() < end:
        sum(range(200))


def burner():
    while not over.is_set():
        burn(0.001)
        time.sleep(0.15)


def maker():
    """Functions of names that never come again."""
    while not over.is_set():
        name = "made_%d" % done["made"]
        space = {"burn": burn}
        exec(compile("def %s():\n    burn(0.002)\n%s()\n" % (name, name), "<%s>" % name, "exec"), space)
        done["made"] += 1
        time.sleep(0.1)


def forker():
    """A child a while: half of them live long enough to be sampled."""
    number = 0
    while not over.wait(2):
        number += 1
        pid = os.fork()
        if pid == 0:
            burn(0.05 if number % 2 else 0)
            os._exit(number % 8)
        _, status = os.waitpid(pid, 0)
        done["forks"].append(pid)
        if os.waitstatus_to_exitcode(status) != number % 8:
            done["errors"].append("child %d ended with %d" % (pid, status))


async def leaf(delay):
    await asyncio.sleep(delay)
    return sum(range(100))


async def request(number):
    """Lives for a second or so, and has others work for it."""
    await asyncio.gather(leaf(random.random()), leaf(random.random()))
    done["tasks"] += 3


async def keep(number):
    """One request after the other, each in a task of its own name."""
    while True:
        await asyncio.create_task(request(number), name="request-%d-%d" % (number, done["tasks"]))


async def serve(tasks):
    loop = asyncio.get_running_loop()
    end, kept = asyncio.Event(), []

    def begin_anew():
        done["hups"] += 1
        for task in kept[:len(kept) // 10]:
            task.cancel()
        del kept[:len(kept) // 10]
        kept.extend(asyncio.ensure_future(keep(n)) for n in range(tasks // 4 - len(kept)))
    kept.extend(asyncio.ensure_future(keep(n)) for n in range(tasks // 4))  # each is four tasks: itself, a request, two leaves
    loop.add_signal_handler(signal.SIGHUP, begin_anew)
    loop.add_signal_handler(signal.SIGTERM, end.set)
    while not end.is_set():
        print("beat", len(asyncio.all_tasks()), flush=True)
        try:
            await asyncio.wait_for(end.wait(), 1)
        except asyncio.TimeoutError:
            pass
    for task in kept:
        task.cancel()
    await asyncio.gather(*kept, return_exceptions=True)


def main():
    tasks, count = int(sys.argv[1]), int(sys.argv[2])
    threads = [threading.Thread(target=burner, daemon=True) for _ in range(count - 2)]
    threads += [threading.Thread(target=maker, daemon=True), threading.Thread(target=forker)]
    for thread in threads:
        thread.start()
    asyncio.run(serve(tasks))
    over.set()
    threads[-1].join()
    with open(os.environ["ORACLE_TRUTH"], "w", encoding="utf-8") as f:
        json.dump(done, f)


if __name__ == "__main__":
    import warnings
    warnings.simplefilter("ignore", DeprecationWarning)  # of forks in programs with threads: it is what is tried here
    main()
