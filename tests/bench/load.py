# SPDX-License-Identifier: MIT
"""load: the programs that the profilers of peers.py watch.

    load.py busy|threads|service|import|storm [N]

Sets itself up, prints {"ready": pid, "threads": [its thread numbers]} and waits for
a line with a number of seconds; then works for so long, below the function `work`,
by which samples of the set-up are told from those of the work; prints what it did as
a line of JSON, and ends with its input.

    busy      the phases of tests/oracles/edges.py, round after round
    threads   the same in N threads with pauses between them, more than a core in all
    service   aiohttp beside N waiting tasks; works until its input says "stop"
    import    imports sympy once
    storm     starts programs, one after the other: four of /bin/true, one Python
"""
import asyncio
import json
import os
import resource
import sys
import threading
import time

HERE = os.path.dirname(os.path.abspath(__file__))
TESTS = os.path.dirname(HERE)


def say(**what):
    print(json.dumps(what), flush=True)


def ready(**more):
    """Says so, and returns the seconds that are wanted."""
    say(ready=os.getpid(), **more)
    return float(sys.stdin.readline())


def percentile(values, share):
    values = sorted(values)
    return values[min(len(values) - 1, int(len(values) * share))]


class Stopwatch:
    """From the beginning to the end of the work."""

    def __init__(self):
        self.wall, self.cpu, self.children = time.monotonic(), time.process_time(), children_cpu()

    def report(self, rounds, times, **more):
        say(rounds=rounds, wall=time.monotonic() - self.wall, cpu=time.process_time() - self.cpu,
            children=children_cpu() - self.children, p99=percentile(times, 0.99) if times else 0, **more)


def children_cpu():
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def truth():
    """What is legal among the functions of edges.py, for who judges the samples."""
    edges, extent = EDGES.legal()
    return {"edges": sorted(edges), "extent": [list(k) + v for k, v in sorted(extent.items())]}


# --- busy, threads ---

def one_round():
    """Some milliseconds; each phase its part."""
    for _ in range(4):
        EDGES.phase_tree()
    for _ in range(4):
        EDGES.phase_deep()
    EDGES.phase_fib()
    EDGES.phase_generators()
    EDGES.phase_recursion()
    EDGES.phase_classes()
    EDGES.phase_comprehensions()
    EDGES.phase_callbacks()
    EDGES.phase_coroutines()


def short_round():
    EDGES.phase_recursion()
    EDGES.phase_fib()
    EDGES.phase_classes()


def work(seconds, turn, pause):
    times, end = [], time.monotonic() + seconds
    before = time.monotonic()
    while before < end:
        turn()
        now = time.monotonic()
        times.append(now - before)
        if pause:
            time.sleep(pause)
            now = time.monotonic()
        before = now
    return times


def busy(_):
    seconds = ready(threads=[threading.get_native_id()], truth=truth())
    watch = Stopwatch()
    times = work(seconds, one_round, 0)
    watch.report(len(times), times)


def worker(go, seconds, all_times):
    go.wait()
    all_times.append(work(seconds[0], short_round, 0.02))


def threads(count):
    go, seconds, all_times = threading.Event(), [0], []
    workers = [threading.Thread(target=worker, args=(go, seconds, all_times)) for _ in range(count)]
    for thread in workers:
        thread.start()
    seconds[0] = ready(threads=[threading.get_native_id()] + [t.native_id for t in workers], truth=truth())
    watch = Stopwatch()
    go.set()
    for thread in workers:
        thread.join()
    times = [t for part in all_times for t in part]
    watch.report(len(times), times)


# --- service ---

def stop_at_input(loop):
    stopped = loop.create_future()
    loop.add_reader(0, lambda: stopped.done() or stopped.set_result(sys.stdin.readline()))
    return stopped


class Service:
    """The handlers of tests/demo/service.py that need no pool, and waiting tasks beside them."""

    def __init__(self, tasks):
        import socket
        from aiohttp import web
        sys.path.insert(0, os.path.join(TESTS, "demo"))
        import service
        import waiting
        self.tasks, self.demo, self.waiting, self.served = tasks, service, waiting, 0
        self.listener = socket.create_server(("127.0.0.1", 0), backlog=256)
        self.app = web.Application()
        self.app.router.add_get("/catalogue", self.catalogue)
        self.app.router.add_get("/orders", self.orders)
        self.runner = web.AppRunner(self.app, access_log=None)
        self.site = lambda: web.SockSite(self.runner, self.listener)

    async def catalogue(self, request):
        self.served += 1
        return await self.demo.catalogue(request)

    async def orders(self, request):
        self.served += 1
        return await self.demo.orders(request)

    async def start(self):
        self.app["database"] = self.demo.Database(connections=1000, delay=0.002)
        await self.runner.setup()
        await self.site().start()
        self.event = asyncio.Event()
        self.waiters = self.waiting.make_tasks(self.tasks, self.event)
        await asyncio.sleep(0)

    async def end(self):
        self.event.set()
        await asyncio.gather(*self.waiters)
        await self.runner.cleanup()


def serve(loop):
    """`work` of the service."""
    loop.run_until_complete(stop_at_input(loop))


def service(tasks):
    loop = asyncio.new_event_loop()
    asyncio.set_event_loop(loop)  # where ddtrace looks for it
    made = Service(tasks)
    loop.run_until_complete(made.start())
    ready(threads=[threading.get_native_id()], port=made.listener.getsockname()[1])
    watch = Stopwatch()
    serve(loop)
    watch.report(made.served, [])
    loop.run_until_complete(made.end())


# --- import, storm ---

def load_package():
    import sympy
    return sympy


def imports(_):
    ready(threads=[threading.get_native_id()])
    watch = Stopwatch()
    load_package()
    watch.report(1, [], modules=len(sys.modules))


STORM = [["/bin/true"]] * 4 + [[sys.executable, "-c", "pass"]]


def start_programs(seconds):
    times, end, n = [], time.monotonic() + seconds, 0
    while time.monotonic() < end or n % len(STORM):
        words, before = STORM[n % len(STORM)], time.monotonic()
        os.waitpid(os.posix_spawn(words[0], words, os.environ), 0)
        times.append(time.monotonic() - before)
        n += 1
    return times


def storm(_):
    seconds = ready(threads=[threading.get_native_id()])
    watch = Stopwatch()
    times = start_programs(seconds)
    watch.report(len(times), times[len(STORM) - 1::len(STORM)])


KINDS = {"busy": busy, "threads": threads, "service": service, "import": imports, "storm": storm}


def main():
    KINDS[sys.argv[1]](int(sys.argv[2]) if len(sys.argv) > 2 else 0)
    sys.stdin.readline()  # until whoever measures has looked


if __name__ == "__main__":
    if sys.argv[1] in ("busy", "threads"):
        sys.path.insert(0, os.path.join(TESTS, "oracles"))
        import edges as EDGES  # noqa: N812
    main()
