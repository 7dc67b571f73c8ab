# SPDX-License-Identifier: MIT
"""ends: works a little, then ends in one of many ways.

    ends.py WAY [LIBRARY]

LIBRARY is tests/hazards/ends.c, for what Python has no words for. What it prints
is the same each time.
"""
import atexit
import os
import signal
import sys
import threading
import time


def burn(seconds=0.06):
    end = time.thread_time() + seconds
    while time.thread_time() < end:
        for _ in range(200):
            pass


def library():
    import ctypes
    return ctypes.CDLL(sys.argv[2])


def libc():
    import ctypes
    return ctypes.CDLL(None)


def busy_threads(count=3):
    """Daemon threads that never stop; each has begun."""
    begun = threading.Barrier(count + 1)

    def work():
        begun.wait()
        while True:
            burn()
    for _ in range(count):
        threading.Thread(target=work, daemon=True).start()
    begun.wait()


def in_a_thread(function, *args):
    """And waits for more than it: the process ends meanwhile."""
    threading.Thread(target=function, args=args).start()
    while True:
        burn()


def say(*words):
    print(*words, flush=True)


# ---------------------------------------------------------------- exits

def sys_exit_in_thread():
    thread = threading.Thread(target=sys.exit, args=(3,))
    thread.start()
    thread.join()
    sys.exit(4)


def sys_exit_words():
    sys.exit("in so many words")


def os_exit():
    os._exit(3)


def os_exit_in_thread():
    busy_threads()
    in_a_thread(os._exit, 4)


def c_exit_in_thread():
    """Handlers of C run, Python's own end does not."""
    busy_threads()
    in_a_thread(libc().exit, 5)


def c_exit_again():
    library().ends_exit_again(1, 6)


def c_quick_exit():
    library().ends_quick_exit(7)


def c_abort_at_exit():
    library().ends_abort_at_exit()


def c_all_at_once():
    library().ends_all_at_once(8)


def c_exit_in_handler():
    library().ends_on_signal(signal.SIGUSR1, 0, 9)
    os.kill(os.getpid(), signal.SIGUSR1)
    burn(5)


def c_under_exit_in_handler():
    """In the middle of whatever the main thread does, under CPU ticks."""
    library().ends_on_signal(signal.SIGALRM, 1, 10)
    signal.setitimer(signal.ITIMER_REAL, 0.05)
    burn(5)


def c_fork_at_exit():
    library().ends_fork_at_exit()


def c_exec_at_exit():
    library().ends_exec_at_exit()


def uncaught():
    raise ValueError("on purpose")


def uncaught_in_thread():
    def fail():
        raise KeyError("in a thread")
    threading.excepthook = lambda args: say("excepthook", args.exc_type.__name__)
    thread = threading.Thread(target=fail)
    thread.start()
    thread.join()


class Leaver:
    def __del__(self, write=os.write):
        write(1, b"__del__\n")
        raise RuntimeError("in __del__")


def raising_at_exit():
    """atexit, threading's own end, and __del__ at the very end."""
    global kept
    kept = Leaver()
    atexit.register(say, "last")
    atexit.register(lambda: 1 // 0)
    atexit.register(burn)
    threading._register_atexit(lambda: [][1])


def py_fork_at_exit():
    def fork():
        sys.stdout.flush()
        child = os.fork()
        if child == 0:
            os._exit(11)
        say("child ended", os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
    atexit.register(fork)


def py_exec_at_exit():
    atexit.register(os.execv, "/bin/echo", ["echo", "from atexit"])


def child_falls_off_the_end():
    """Parent and child both return from the main program."""
    child = os.fork()
    burn()
    if child:
        say("child ended", os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))


def main_thread_ends():
    """Others go on; the process ends with the last of them."""
    threads = [threading.Thread(target=burn, args=(0.1,)) for _ in range(3)]
    for thread in threads:
        thread.start()
    say("and now without it")
    library().ends_main_thread()


def main_thread_ends_alone():
    say("and now nobody")
    library().ends_main_thread()


def unseen_thread_is_last():
    """A thread made past every preload outlives the main one."""
    import ctypes
    own = ctypes.CDLL("libc.so.6")
    thread = ctypes.c_ulong()
    own.pthread_create(ctypes.byref(thread), None, ctypes.cast(own.usleep, ctypes.c_void_p), ctypes.c_void_p(100000))
    say("and now somebody unseen")
    library().ends_main_thread()


# ---------------------------------------------------------------- threads and loops

def daemon_threads():
    busy_threads(6)
    threading.Thread(target=time.sleep, args=(100,), daemon=True).start()


def threads_outlive_main():
    def late(number):
        time.sleep(0.02 * number)
        burn(0.02)
    for number in range(5):
        threading.Thread(target=late, args=(number,)).start()


def executor_at_exit():
    from concurrent.futures import ThreadPoolExecutor
    pool = ThreadPoolExecutor(4)
    for _ in range(12):
        pool.submit(burn, 0.01)
    pool.submit(lambda: say("the last of them"))


def loop_interrupted():
    import asyncio

    async def main():
        asyncio.get_running_loop().call_later(0.02, os.kill, os.getpid(), signal.SIGINT)
        try:
            await asyncio.gather(*[asyncio.sleep(10 + i) for i in range(50)])
        finally:
            say("interrupted")
    asyncio.run(main())


def loop_closing():
    """The process ends while a loop with pending tasks, generators and executor work is closed."""
    import asyncio

    async def numbers():
        try:
            while True:
                yield 1
                await asyncio.sleep(0)
        finally:
            await asyncio.sleep(0)

    async def worker():
        async for _ in numbers():
            await asyncio.sleep(0)

    async def main():
        tasks = [asyncio.ensure_future(worker()) for _ in range(20)]
        await asyncio.get_running_loop().run_in_executor(None, burn, 0.005)
        return len(tasks)
    loop = asyncio.new_event_loop()
    say(loop.run_until_complete(main()))
    tasks = asyncio.all_tasks(loop)
    for task in tasks:
        task.cancel()
    say(len(loop.run_until_complete(asyncio.gather(*tasks, return_exceptions=True))))
    loop.run_until_complete(loop.shutdown_asyncgens())
    atexit.register(loop.close)


def fork_under_way():
    """One thread forks without end, the main one ends the process."""
    begun = threading.Event()

    def fork():
        import warnings
        warnings.simplefilter("ignore")
        while True:
            child = os.fork()
            if child == 0:
                os._exit(0)
            os.waitpid(child, 0)
            begun.set()
    threading.Thread(target=fork, daemon=True).start()
    begun.wait()
    burn()
    os._exit(12)


# ---------------------------------------------------------------- a sampler without CPU

def starve_sampler():
    """Our thread gets what two busy processes on one processor leave over: nothing.
    Without the profiler there is no such thread, but the same load."""
    import subprocess
    place = max(os.sched_getaffinity(0))
    # They are there before this goes on, and stay until it has ended, however slow the machine is.
    load = [sys.executable, "-S", "-c", "import os, time\nos.sched_setaffinity(0, {%d})\nparent = os.getppid()\nos.write(1, b'.')\n"
            "while os.getppid() == parent and time.process_time() < 5: pass" % place]
    for loads in [subprocess.Popen(load, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, env={}) for _ in range(2)]:
        loads.stdout.read(1)
    for name in os.listdir("/proc/self/task"):
        with open("/proc/self/task/%s/comm" % name) as comm:
            if comm.read() == "aprof\n":
                os.sched_setaffinity(int(name), {place})
                os.sched_setscheduler(int(name), os.SCHED_IDLE, os.sched_param(0))
    burn()


def when():
    """The last thing that it says: how long waits of 20 ms are here, and when it began to end."""
    waits = []
    for _ in range(5):
        begin = time.monotonic()
        time.sleep(0.02)
        waits.append(time.monotonic() - begin)
    print("%.6f" % sorted(waits)[2])
    say("%.6f" % time.monotonic())


def starved__exit():
    starve_sampler()
    when()
    os._exit(14)


def starved_exit():
    end = libc().exit
    starve_sampler()
    when()
    end(15)


def starved_exec():
    starve_sampler()
    when()
    os.execv("/bin/true", ["true"])


# ---------------------------------------------------------------- signals

def default(name):
    number = getattr(signal, name)
    if number != signal.SIGKILL:
        signal.signal(number, signal.SIG_DFL)
    os.kill(os.getpid(), number)
    burn(5)


def interrupted():
    os.kill(os.getpid(), signal.SIGINT)
    burn(5)


def broken_pipe():
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    reader, writer = os.pipe()
    os.close(reader)
    os.write(writer, b"x")


def out_of_cpu():
    """The kernel sends SIGXCPU after one second of CPU."""
    import resource
    resource.setrlimit(resource.RLIMIT_CPU, (1, 3))
    burn(10)


def alarm():
    signal.setitimer(signal.ITIMER_REAL, 0.05)
    burn(5)


def profiling_timer():
    """Another profiler's clock: unhandled, it kills."""
    signal.setitimer(signal.ITIMER_PROF, 0.05, 0.01)
    burn(5)


def profiling_timer_handled():
    signal.signal(signal.SIGPROF, lambda number, frame: None)
    signal.setitimer(signal.ITIMER_PROF, 0.001, 0.001)
    burn()
    os._exit(13)


def handled():
    """Python's handlers, in their order, and the clean end that they begin."""
    def handler(number, frame):
        say("handler", signal.Signals(number).name)
        if number == signal.SIGTERM:
            sys.exit(0)
    atexit.register(say, "atexit")
    for name in ("SIGHUP", "SIGUSR1", "SIGTERM"):
        signal.signal(getattr(signal, name), handler)
    for name in ("SIGHUP", "SIGUSR1", "SIGTERM"):
        os.kill(os.getpid(), getattr(signal, name))
    burn(5)


def group():
    """The whole process group, a child in it."""
    child = os.fork()
    if child == 0:
        time.sleep(30)  # the group's signal ends it
    burn()
    os.kill(0, signal.SIGTERM)
    burn(5)


def segfault():
    import ctypes
    ctypes.string_at(8)


def no_memory():
    import resource
    resource.setrlimit(resource.RLIMIT_AS, (1 << 30, 1 << 30))
    kept = []
    try:
        while True:
            kept.append(bytearray(32 << 20))
    finally:
        kept.clear()
        say("freed")


def main():
    way = sys.argv[1]
    burn()
    if way.startswith("SIG"):
        default(way)
    else:
        globals()[way]()


if __name__ == "__main__":
    main()
