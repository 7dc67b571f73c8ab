# SPDX-License-Identifier: MIT
"""forks: programs that fork, spawn and exec in ways that hurt. forks.py WHAT [ARGUMENT...]

Each ends with 0 only when its own children ended as they should, and leaves in
its truth how many processes were forked ("forks": they are in the spool once, or
counted), how many more may be there ("may_be"), and those that used enough CPU
to be ("long").
"""
import asyncio
import ctypes
import errno
import hashlib
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
import warnings

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "oracles"))
from truth import append, burn, leave  # noqa: E402

forked, long_lived, wrong = [], [], []
may_be = [0]  # processes that may be in the spool, and are counted otherwise: they exec


def library(gil=True):
    """With the GIL held in its functions, or given up."""
    return (ctypes.PyDLL if gil else ctypes.CDLL)(os.environ["HAZARD_LIBRARY"])


def need(truth, *what):
    if not truth:
        wrong.append(repr(what))


def child_of(fork, work, status=0, long=False):
    """Forks; the child does its work and ends at once."""
    pid = fork()
    if pid == 0:
        try:
            work()
        except BaseException as error:
            os.write(2, ("child: %r\n" % error).encode())
            os._exit(99)
        os._exit(status)
    forked.append(pid)
    if long:
        long_lived.append(pid)
    return pid


def ended(pid):
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def child(fork, work, status=0, long=False):
    got = ended(child_of(fork, work, status, long))
    need(got == status, work, got, status)


def grandchildren():
    """What children forked in turn, from the lines that they left."""
    import json
    path = os.environ["ORACLE_TRUTH"] + ".lines"
    if os.path.exists(path):
        with open(path, encoding="utf-8") as f:
            for line in f:
                entry = json.loads(line)
                forked.append(entry["pid"])
                if entry.get("long"):
                    long_lived.append(entry["pid"])


# ---------------------------------------------------------------- where the fork comes from

def fork_again():
    """A child of a worker thread has one thread: it may fork without a warning. On a
    machine so busy that we are not gone in time there may be one."""
    warned = 0
    for _ in range(4):
        burn(0.01)
        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always")
            pid = os.fork()
            if pid == 0:
                append({"pid": os.getpid()})
                os._exit(4)
            assert ended(pid) == 4
        warned += bool(said)
    assert warned < 4, str(said[0].message)


def worker(count):
    for n in range(count):
        child(os.fork, lambda: burn(0.05 * (n & 1)), n, long=bool(n & 1))
    child(os.fork, fork_again, long=True)


def from_threads():
    """Forks of worker threads, of two at the same time, and of threads that hold no GIL."""
    threads = [threading.Thread(target=worker, args=(4,)) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    together, each = 3, 10
    need(library(gil=False).fork_together(together, each) == 0, "fork_together")
    forked.extend([0] * together * each)
    grandchildren()


def from_handler():
    """Forks in a Python handler of signals that keep coming."""
    def handler(signo, frame):
        child(os.fork, lambda: burn(0.02 * (len(forked) & 1)), len(forked) & 63)
        signal.setitimer(signal.ITIMER_REAL, 0.005)
    signal.signal(signal.SIGALRM, handler)
    handler(0, None)
    while len(forked) < 20:
        burn(0.001)
    signal.setitimer(signal.ITIMER_REAL, 0)


def python_goes_on():
    """What a forked child does that makes itself at home."""
    burn(0.05)
    thread = threading.Thread(target=burn, args=(0.01,))
    thread.start()
    thread.join()
    assert subprocess.run(["/bin/sh", "-c", "exit 6"]).returncode == 6


def from_c():
    """fork by a C library that knows nothing of Python's hooks, and past libc."""
    lib = library()
    for n in range(6):
        child(lib.c_fork, lambda: burn(0.05 * (n & 1)), n, long=bool(n & 1))
    child(lib.c_fork, lambda: subprocess.run(["/bin/sh", "-c", "exit 6"]))
    end_normally(lib.c_fork)
    known = len(forked)
    for n in range(4):
        child(lib.raw_fork, lambda: burn(0.03 * (n & 1)), n)
    child(lib.raw_fork, lambda: child(os.fork, lambda: burn(0.02), 5))
    child(lib.raw_fork, lambda: os.execv("/bin/sh", ["sh", "-c", "exit 0"]))
    del forked[known:]  # nobody can know of these
    lib.fork_on(signal.SIGUSR1)
    for n in range(5):
        burn(0.01)
        os.kill(os.getpid(), signal.SIGUSR1)
    bad = ctypes.c_int()
    need(lib.handler_result(ctypes.byref(bad)) == 5 and bad.value == 0, "forks in a C handler", bad.value)
    forked.extend([0] * 5)


def end_normally(fork):
    """A child that ends by the way of the interpreter, all its clean-up included."""
    sys.stdout.flush()
    pid = fork()
    if pid == 0:
        burn(0.03)
        sys.exit(11)
    forked.append(pid)
    got = ended(pid)
    need(got == 11, "sys.exit", got)


async def sleeper_of_parent():
    await asyncio.sleep(600)  # pending when the process ends: nobody waits for it


async def sleeper_of_child():
    await asyncio.sleep(0.15)
    burn(0.05)


async def main_of_child():
    await asyncio.gather(sleeper_of_child(), sleeper_of_child())


async def forking():
    tasks = [asyncio.create_task(sleeper_of_parent()) for _ in range(3)]
    await asyncio.sleep(0.05)
    child(os.fork, lambda: asyncio.run(main_of_child()), 3, long=True)
    child(os.fork, lambda: (burn(0.05), time.sleep(0.1)), 4, long=True)
    burn(0.02)
    await asyncio.sleep(0.05)
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


def from_coroutine():
    """A fork inside a running coroutine: the child runs a loop of its own, or none."""
    asyncio.run(forking())


# ---------------------------------------------------------------- beside what

def import_often(over):
    while not over.is_set():
        for name in ("colorsys", "this_is_not_there", "stringprep", "quopri"):
            sys.modules.pop(name, None)
            try:
                __import__(name)
            except ImportError:
                pass


def home_in_a_storm():
    """Needs the locks that others held when it was forked."""
    import wave  # noqa: F401
    [bytes(n * 1000) for n in range(100)]
    burn(0.01)


def in_storms(count):
    """Forks while others allocate, load libraries, make threads and import."""
    lib = library(gil=False)
    over = threading.Event()
    importer = threading.Thread(target=import_often, args=(over,))
    lib.storm_begin(sys.argv[3].encode())
    importer.start()
    while lib.storm_busy() < 3:
        time.sleep(0.001)
    for n in range(int(count)):
        child(os.fork, home_in_a_storm, n & 63)
    over.set()
    importer.join()
    lib.storm_end()


def without_spool():
    """Forks after the spool has gone."""
    import shutil
    burn(0.05)
    shutil.rmtree(os.environ["APROF_DIR"], ignore_errors=True)
    for n in range(4):
        child(os.fork, lambda: burn(0.05), n, long=True)


# ---------------------------------------------------------------- daemons

def daemon_work():
    burn(0.1)
    truth = {"pid": os.getpid(), "cpu": time.process_time(), "descriptors": sorted(os.listdir("/proc/self/fd")),
             "folder": os.getcwd(), "umask": os.umask(0o022)}
    leave(truth)


def daemon():
    """As daemons do it: two forks, a session, every descriptor closed, an umask, the root directory."""
    import resource
    if os.fork():
        os.wait()
        return
    os.setsid()
    os.umask(0o777)
    if os.fork():
        os._exit(0)
    os.chdir("/")
    limit = min(resource.getrlimit(resource.RLIMIT_NOFILE)[0], 1 << 20)
    os.closerange(0, limit)
    for _ in range(3):
        os.open("/dev/null", os.O_RDWR)
    daemon_work()
    os._exit(0)


# ---------------------------------------------------------------- exec

def ignored():
    with open("/proc/thread-self/status", encoding="utf-8") as f:
        return [line for line in f if line.startswith("SigIgn")]


def exec_fails():
    """Every form, for every reason; the process lives on as before."""
    lib = library()
    signal.signal(signal.SIGURG, signal.SIG_IGN)  # what the next image would inherit
    kernels = ignored()
    errors = (ctypes.c_int * 16)()
    folder = tempfile.mkdtemp()
    garbage = os.path.join(folder, "garbage")
    with open(garbage, "wb") as f:
        f.write(bytes(range(256)))
    os.chmod(garbage, 0o755)

    def expect(path, argument, searching, *right):
        argv = (ctypes.c_char_p * 3)(b"program", argument, None)
        count = lib.exec_all(path.encode(), argv, searching, errors)
        got = set(errors[:count]) - {errno.EINVAL}  # fexecve, where there is no file
        need(got == set(right), path, len(argument), got)
        need(ignored() == kernels, path, len(argument), ignored(), kernels)

    def all_of_them():
        expect("/nonexistent/program", b"x", 1, errno.ENOENT)
        expect(garbage, b"x", 0, errno.ENOEXEC)
        expect("/", b"x", 1, errno.EACCES)
        expect("/bin/true", b"x" * 200000, 1, errno.E2BIG)
        for call in (os.execv, os.execvp, lambda path, argv: os.execve(path, argv, {"A": "b"}), lambda path, argv: os.execvpe(path, argv, {})):
            try:
                call("/nonexistent/program", ["x"])
            except OSError as error:
                need(error.errno == errno.ENOENT, error)
        burn(0.05)

    all_of_them()
    child(os.fork, all_of_them, long=True)
    child(os.fork, lambda: expect("/", b"x", 1, errno.EACCES))  # without a sample, as a rule: still one that is counted
    thread = threading.Thread(target=all_of_them)
    thread.start()
    thread.join()
    os.unlink(garbage)
    os.rmdir(folder)
    burn(0.05)


def exec_self(left):
    """The same process, again and again: from the main thread, from another, by descriptor."""
    burn(0.03)
    left = int(left)
    if not left:
        return
    os.environ["ORACLE_WAY"] = str(left)
    argv = [sys.executable, os.path.abspath(__file__), "exec-self", str(left - 1)]
    if left % 4 == 0:
        os.execv(sys.executable, argv)
    if left % 4 == 1:
        os.execvpe(sys.executable, argv, dict(os.environ))
    lib = library()
    words = (ctypes.c_char_p * (len(argv) + 1))(*[a.encode() for a in argv], None)
    if left % 4 == 2:
        lib.exec_by_fd(sys.executable.encode(), words, left & 4)
    thread = threading.Thread(target=lambda: os.execv(sys.executable, argv))
    thread.start()
    burn(30)


def exec_bare(kind):
    """Into an environment without us, or with a preload of its own."""
    burn(0.05)
    code = "import os, sys; print(sorted(k for k in os.environ if 'APROF' in k or 'PRELOAD' in k))"
    environment = {"PATH": os.environ["PATH"]} if kind == "empty" else {"LD_PRELOAD": sys.argv[3]}
    os.execve(sys.executable, [sys.executable, "-S", "-c", code], environment)


# ---------------------------------------------------------------- spawn

def spawns():
    """vfork, posix_spawn, subprocess in its ways, system, popen, pty."""
    import pty
    lib = library()
    words = (ctypes.c_char_p * 4)(b"sh", b"-c", b"exit 21", None)
    none = (ctypes.c_char_p * 2)(b"x", None)
    for _ in range(5):
        need(lib.vfork_exec(b"/bin/sh", words) == 21 << 8, "vfork, exec")
        need(lib.vfork_exec(b"/nonexistent/program", none) == 102 << 8, "vfork, failed exec")
        need(lib.vfork_exit(22) == 22 << 8, "vfork, _exit")
    need(ended(os.posix_spawn("/bin/sh", ["sh", "-c", "exit 23"], os.environ)) == 23, "posix_spawn")
    need(ended(os.posix_spawnp("sh", ["sh", "-c", "exit 24"], {"PATH": os.environ["PATH"]})) == 24, "posix_spawnp")
    need(os.waitstatus_to_exitcode(os.system("exit 25")) == 25, "system")
    need(os.popen("echo out; exit 3").read() == "out\n", "popen")
    sh = ["sh", "-c", "exit 26"]
    for options in ({}, {"close_fds": False}, {"start_new_session": True}, {"preexec_fn": lambda: burn(0.001)}, {"cwd": "/"},
                    {"umask": 0}, {"env": {"PATH": os.environ["PATH"]}}, {"pass_fds": (0,)}):
        need(subprocess.run(sh, **options).returncode == 26, options)
        may_be[0] += "preexec_fn" in options
    for missing in ({}, {"close_fds": False}, {"preexec_fn": lambda: None}):
        try:
            subprocess.run(["/nonexistent/program"], **missing)
        except FileNotFoundError:
            pass
        else:
            need(False, "no error", missing)
        if "preexec_fn" in missing:
            forked.append(0)
    pid, terminal = pty.fork()
    if pid == 0:
        burn(0.05)
        print("in the terminal", flush=True)
        os._exit(27)
    forked.append(pid)
    long_lived.append(pid)
    need(os.read(terminal, 100).startswith(b"in the terminal"), "pty")
    need(ended(pid) == 27, "pty.fork")
    os.close(terminal)
    need(lib.vfork_exit(22) == 22 << 8, "vfork, _exit")
    burn(0.05)


async def processes_at_once(count):
    async def one(n):
        process = await asyncio.create_subprocess_exec("/bin/sh", "-c", "echo %d; exit %d" % (n, n % 50), stdout=asyncio.subprocess.PIPE)
        out, _ = await process.communicate()
        need((out, process.returncode) == (b"%d\n" % n, n % 50), n, out, process.returncode)
    for _ in range(2):
        await asyncio.gather(*[one(n) for n in range(count // 2)])


def asyncio_spawns(loop, count):
    """Many subprocesses of an event loop at the same time: no zombie, no descriptor left."""
    def used():
        return sorted(os.listdir("/proc/self/fd"))
    before = used()
    if loop == "uvloop":
        import uvloop
        runner = uvloop.new_event_loop()
        runner.run_until_complete(processes_at_once(int(count)))
        runner.close()
    else:
        asyncio.run(processes_at_once(int(count)))
    try:
        os.waitpid(-1, os.WNOHANG)
        need(False, "a zombie is left")
    except ChildProcessError:
        pass
    after = used()
    if loop != "uvloop":  # it keeps some itself
        need(len(after) == len(before), before, after)


# ---------------------------------------------------------------- interpreters

def interpreters():
    """The module that makes them: it has changed its name."""
    try:
        import _interpreters as module
    except ImportError:
        import _xxsubinterpreters as module
    return module


def sub_interpreters(count):
    """Subprocesses while sub-interpreters live, come and go; forks when they are gone:
    with one alive Python itself hangs or crashes in the child."""
    module, over = interpreters(), threading.Event()

    def come_and_go():
        one = module.create()
        module.run_string(one, "x = [n for n in range(1000)]")
        module.destroy(one)

    def until_over():
        while not over.is_set():
            come_and_go()
    alive = [module.create() for _ in range(2)]
    for one in alive:
        module.run_string(one, "sum(range(100000))")
    thread = threading.Thread(target=until_over)
    thread.start()
    for n in range(int(count)):
        need(subprocess.run(["/bin/sh", "-c", "exit 5"], close_fds=bool(n & 1)).returncode == 5, "subprocess")
    over.set()
    thread.join()
    for one in alive:
        module.destroy(one)
    for n in range(int(count)):
        come_and_go()
        child(os.fork, lambda: burn(0.02 * (n & 1)), n & 63)


# ---------------------------------------------------------------- pools

def work_of_pool(n):
    burn(0.02)
    return n, os.getpid()


def pools(method):
    """A pool whose workers do one thing each; an executor."""
    import concurrent.futures
    import multiprocessing
    context = multiprocessing.get_context(method)
    with context.Pool(2, maxtasksperchild=1) as pool:
        done = pool.map(work_of_pool, range(6), 1)
        pool.close()
        pool.join()
    need([n for n, _ in done] == list(range(6)), done)
    long_lived.extend(pid for _, pid in done)
    with concurrent.futures.ProcessPoolExecutor(2, mp_context=context) as executor:
        done = list(executor.map(work_of_pool, range(4)))
    need([n for n, _ in done] == list(range(4)), done)
    long_lived.extend(pid for _, pid in done)


# ---------------------------------------------------------------- what a fork costs

def hash_until(over):
    while not over.is_set():
        hashlib.pbkdf2_hmac("sha256", b"word", b"salt", 20000)


def pause(count, others):
    """What others than Python and libc spend in the caller of os.fork, in microseconds,
    each time; beside threads that compute without the GIL."""
    lib, over = library(), threading.Event()
    lib.watch_forks()
    threads = [threading.Thread(target=hash_until, args=(over,)) for _ in range(int(others))]
    for thread in threads:
        thread.start()
    for _ in range(int(count)):
        burn(0.002)
        pid = os.fork()
        if pid == 0:
            os._exit(0)
        os.waitpid(pid, 0)
    over.set()
    for thread in threads:
        thread.join()
    spent = (ctypes.c_long * int(count))()
    need(lib.watched_forks(spent, int(count)) == int(count), "not all were watched")
    leave({"pid": os.getpid(), "spent": [ns // 1000 for ns in spent]})


WHAT = {"threads": from_threads, "handler": from_handler, "c": from_c, "coroutine": from_coroutine, "storms": in_storms,
        "no-spool": without_spool, "daemon": daemon, "exec-fails": exec_fails, "exec-self": exec_self, "exec-bare": exec_bare,
        "spawns": spawns, "asyncio": asyncio_spawns, "interpreters": sub_interpreters, "pools": pools, "pause": pause}


def main():
    burn(0.05)
    WHAT[sys.argv[1]](*sys.argv[2:3 if sys.argv[1] in ("storms", "exec-bare") else None])
    if sys.argv[1] not in ("daemon", "pause"):
        leave({"pid": os.getpid(), "forks": len(forked), "may_be": may_be[0], "long": long_lived, "cpu": time.process_time()})
    for text in wrong:
        print("wrong:", text, file=sys.stderr)
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
