# SPDX-License-Identifier: MIT
"""company: other tools in the same process, or on it.

Allocators, preloads and auditors, sanitizers, debuggers, tracers and profilers,
each together with us, in both orders where there is one: the application does
what it does with the other tool alone, and so does the tool.
"""
import os
import shutil
import subprocess
import threading

import hazard
from hazard import Hazard, h

PROGRAMS = os.path.join(hazard.HERE, "programs")
LIBRARIES = "/usr/lib/x86_64-linux-gnu"
_copying = threading.Lock()

BURN = ("import threading, time\n"
        "def burn(seconds):\n"
        "    end = time.thread_time() + seconds\n"
        "    while time.thread_time() < end: sum(range(500))\n"
        "threads = [threading.Thread(target=burn, args=(0.1,)) for _ in range(2)]\n"
        "for t in threads: t.start()\n"
        "burn(0.15)\n"
        "for t in threads: t.join()\n")


def program(name):
    return os.path.join(PROGRAMS, name)


def shown(path):
    """A library of this system where every Python sees it: below the repository."""
    if not os.path.exists(path):
        raise h.Skip("not installed: " + os.path.basename(path))
    folder = os.path.join(h.BUILD, "hazards", "company")
    copy = os.path.join(folder, os.path.basename(path))
    with _copying:
        os.makedirs(folder, exist_ok=True)
        if not os.path.exists(copy):
            shutil.copy(path, copy)
    return copy


def need_preloadable(python, library):
    """Skips when this Python does not start with the library alone."""
    done = subprocess.run(python.words + ["-c", "print(open('/proc/self/maps').read().count(%r))" % os.path.basename(library)],
                          env=dict(h.clean_environment(), LD_PRELOAD=library), stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    if done.returncode or done.stdout.strip() in (b"", b"0"):
        raise h.Skip("%s does not run with %s, without us" % (python.label, os.path.basename(library)))


def both(case, words, preloads, theirs, env=None, wait=60, kept=True, same_errors=True):
    """The program with `preloads` (ours among them) and with `theirs`: it must be the same. Both Results."""
    options = dict(python=case.python, timeout=wait)
    other = h.run(words, case.name + "-without", preload=False, env=dict(env or {}, LD_PRELOAD=theirs), **options)
    case.tried()
    try:
        result = h.run(words, case.name, settings={"LD_PRELOAD": preloads}, env=env, **options)
    except h.Failure as reason:
        case.add("hangs", str(reason))
        return None, other
    case.judge(result.status, other.status, " ".join(map(str, words))[-60:], result.err)
    case.check(hazard.without_numbers(result.out) == hazard.without_numbers(other.out),
               "with %s: %r, without us %r", preloads, result.out[-300:], other.out[-300:])
    if same_errors:
        case.check(hazard.without_numbers(result.err) == hazard.without_numbers(other.err),
                   "with %s: stderr %r, without us %r", preloads, result.err[-300:], other.err[-300:])
    if kept:
        account_one(case, result)
    return result, other


def account_one(case, result, least_us=100000):
    """The process is in the spool, once, with most of its CPU time."""
    spool = h.Spool(result.spool)
    case.account(spool, [result.pid])
    for process in spool.by_pid(result.pid)[:1]:
        case.check(process.total("cpu") >= least_us, "cpu %d µs, at least %d were used", process.total("cpu"), least_us)


def on_two(row, native=False):
    """For what does not depend on Python: the oldest and the newest; the long form takes all.
    native: not those in a folder of their own, where the other tool is not."""
    def on_them(case):
        usable = [p for p in case.pythons if not (native and p.prefix)]
        for case.python in usable if case.long else usable[:1] + usable[1:][-1:]:
            row(case)
        if not usable:
            raise h.Skip("no Python of this system itself")
    return on_them


# ---------------------------------------------------------------- allocators

ALLOCATORS = ("libjemalloc.so.2", "libtcmalloc_minimal.so.4", "libmimalloc.so.2")


def allocators(case):
    """An allocator before and behind us. The short form has one of them on each Python, by turns."""
    at = [p.label for p in case.pythons].index(case.python.label)
    for name in ALLOCATORS if case.long else [ALLOCATORS[at % len(ALLOCATORS)]]:
        library = shown(os.path.join(LIBRARIES, name))
        need_preloadable(case.python, library)
        orders = [library + ":" + h.LIBRARY, h.LIBRARY + ":" + library]
        for order in orders if case.long else [orders[at % 2]]:
            both(case, [program("heaps.py")], order, library, env={"PYTHONMALLOC": "malloc"})


HEAP = {
    "libc": ("class I(ctypes.Structure): _fields_ = [(n, ctypes.c_size_t) for n in 'a b c d e f g used h i'.split()]\n"
             "libc.mallinfo2.restype = I\n"
             "def used(): return libc.mallinfo2().used\n"),
    "libjemalloc.so.2": ("epoch, size, n = ctypes.c_uint64(1), ctypes.c_size_t(8), ctypes.c_size_t()\n"
                         "def used():\n"
                         "    libc.mallctl(b'epoch', None, None, ctypes.byref(epoch), ctypes.c_size_t(8))\n"
                         "    libc.mallctl(b'stats.allocated', ctypes.byref(n), ctypes.byref(size), None, ctypes.c_size_t(0))\n"
                         "    return n.value\n"),
    "libtcmalloc_minimal.so.4": ("n = ctypes.c_size_t()\n"
                                 "def used():\n"
                                 "    libc.MallocExtension_GetNumericProperty(b'generic.current_allocated_bytes', ctypes.byref(n))\n"
                                 "    return n.value\n"),
}
# Python allocates nothing for good in `step` after its first rounds; a tick of ours in between must not either.
HEAP_PROGRAM = """
import ctypes, gc, time
libc = ctypes.CDLL(None)
%s
def step():
    end = time.process_time() + 0.05
    while time.process_time() < end: pass
gc.disable()
step(); used(); step(); used()
before = used()
for _ in range(4): step()
print(0 if used() - before < 256 else used() - before)
"""


def heap_unseen(case):
    """What its statistics say grows by nothing while we sample."""
    for name, code in HEAP.items():
        library = "" if name == "libc" else shown(os.path.join(LIBRARIES, name))
        both(case, ["-c", HEAP_PROGRAM % code], h.LIBRARY + (":" + library if library else ""), library)


# ---------------------------------------------------------------- preloads

def preloads(case):
    """Calls go once through us and through another, whoever stands first; and none of ours reach it."""
    nosy = hazard.need_library("company_nosy")
    for order in (nosy + ":" + h.LIBRARY, h.LIBRARY + " " + nosy):
        result, _ = both(case, [program("passed.py"), "calls"], order, nosy)
        case.check(result and b"libaprof itself asks for {}" in result.out, "asked of libc: %r", result and result.out[-300:])


WAYS = "exit _exit quick_exit execv execvp execve execl execlp execle".split()


def preloads_end(case):
    """The same at the end of a process image."""
    nosy = hazard.need_library("company_nosy")
    for way in WAYS:
        logs = []
        for label, preload in (("without", nosy), ("behind", nosy + ":" + h.LIBRARY), ("before", h.LIBRARY + ":" + nosy)):
            log = os.path.join(h.fresh_folder("nosy"), "log")
            result = h.run([program("passed.py"), "end", way], case.name, python=case.python, preload=label != "without",
                           env={"LD_PRELOAD": preload, "NOSY_LOG": log})
            case.judge(result.status, 3 if "exit" in way else 0, "%s, we stand %s" % (way, label), result.err)
            logs.append(h.read_bytes(log).split())
        case.tried(2)
        case.check(logs[0] == logs[1], "%s: the other library sees %s behind us, %s without", way, logs[1], logs[0])
        # The l-forms come as v-forms: their arguments have no end that a library could pass on.
        case.check(len(logs[2]) == len(logs[0]), "%s: the other library sees %s before us, %s without", way, logs[2], logs[0])


def early(case):
    """Another's constructor starts a thread, changes signals and forks, before or after ours."""
    nosy = hazard.need_library("company_nosy")
    code = BURN + ("import faulthandler, signal\nfaulthandler.enable()\nfaulthandler.disable()\n"
                   "print(signal.getsignal(signal.SIGURG), signal.getsignal(signal.SIGSEGV))\n")
    for order in (nosy + ":" + h.LIBRARY, h.LIBRARY + ":" + nosy):
        both(case, ["-c", code], order, nosy, env={"NOSY_EARLY": "1"})


def faketime(case):
    """Another's clock runs ten times as fast and ten days ahead; ours does not."""
    library = shown(os.path.join(LIBRARIES, "faketime", "libfaketime.so.1"))
    need_preloadable(case.python, library)
    code = ("import time\nend = time.clock_gettime(time.CLOCK_MONOTONIC) + 20\n"
            "while time.clock_gettime(time.CLOCK_MONOTONIC) < end: sum(range(500))\n")
    for order in (library + ":" + h.LIBRARY, h.LIBRARY + ":" + library):
        result, _ = both(case, ["-c", code], order, library, env={"FAKETIME": "+10d x50"}, kept=False)
        if result:
            account_one(case, result, 30000)
            for meta in [m for p in h.Spool(result.spool) for m in p.metas()]:
                life = meta["end_us"] - meta["start_us"]
                case.check(life < 1.2e6 * result.wall, "lived %d µs by our clock, %.0f µs by a true one", life, 1e6 * result.wall)


def fakeroot(case):
    """fakeroot's server answers for the owners of files; our thread has none of its descriptors."""
    hazard.need_programs("fakeroot")
    code = BURN + "import os\nopen('x', 'w').close()\nos.chown('x', 7, 8)\nprint(os.stat('x').st_uid, os.stat('x').st_gid)\n"
    for kind in ("sysv", "tcp"):
        if not shutil.which("fakeroot-" + kind):
            raise h.Skip("no fakeroot-" + kind)
        words = ["fakeroot-" + kind] + case.python.words + ["-c", code]
        case.tried()
        result = h.run(words, case.name)
        case.judge(result.status, 0, words[0], result.err)
        case.check(result.out == b"7 8\n" and not result.err, "%s: %r %r", words[0], result.out, result.err)
        case.check(h.Spool(result.spool).total("cpu") > 1e5, "%s: cpu %d µs", words[0], h.Spool(result.spool).total("cpu"))


# ---------------------------------------------------------------- more than one of us

def twice(case):
    """Two copies, links, a relative path: one of them works."""
    folder = h.fresh_folder("copies")
    copy, other = os.path.join(folder, "copy.so"), os.path.join(folder, "d", "libaprof.so")
    os.makedirs(os.path.dirname(other))
    shutil.copy(h.LIBRARY, copy)
    shutil.copy(h.LIBRARY, other)
    os.symlink(h.LIBRARY, os.path.join(folder, "link.so"))
    code = BURN + "import os\nprint(sum(open('/proc/self/task/%s/comm' % t).read() == 'aprof\\n' for t in os.listdir('/proc/self/task')))\n"
    for preload in (h.LIBRARY + ":" + copy, other + " " + h.LIBRARY, h.LIBRARY + ":" + os.path.join(folder, "link.so"),
                    h.LIBRARY + ":" + h.LIBRARY, "d/libaprof.so"):
        case.tried()
        result = h.run(["-c", code], case.name, python=case.python, folder=folder, settings={"LD_PRELOAD": preload})
        case.judge(result.status, 0, preload, result.err)
        case.check(result.out == b"1\n" and not result.err, "%s: threads of ours %r, stderr %r", preload, result.out, result.err)
        account_one(case, result)
        for process in h.Spool(result.spool).by_pid(result.pid):
            case.check(process.total("cpu") < 1.2e6 * result.rusage.ru_utime + 1.2e6 * result.rusage.ru_stime, "cpu %d µs of %.0f",
                       process.total("cpu"), 1e6 * (result.rusage.ru_utime + result.rusage.ru_stime))
        shutil.rmtree(result.spool)


def late(case):
    """Loaded by a running program: refused by the loader, or there and inert."""
    code = BURN + """
import ctypes, faulthandler, os, signal, subprocess, sys
def tasks(): return [open("/proc/self/task/%s/comm" % t).read().strip() for t in os.listdir("/proc/self/task")]
try:
    ctypes.CDLL(sys.argv[1], int(sys.argv[2]))
except OSError as error:
    print("static TLS" in str(error) or error)
burn(0.05)
faulthandler.enable()
signal.signal(signal.SIGURG, lambda *a: None)
os.kill(os.getpid(), signal.SIGURG)
print(subprocess.call(["true"]), "aprof" in tasks())
"""
    for room in ("512", "20000"):
        for mode in (0, os.RTLD_GLOBAL):
            case.tried()
            result = h.run(["-c", code, h.LIBRARY, str(mode)], case.name, python=case.python, preload=False,
                           env={"GLIBC_TUNABLES": "glibc.rtld.optional_static_tls=" + room})
            case.judge(result.status, 0, "loaded late", result.err)
            said = b"True\n0 False\n" if room == "512" else b"0 False\n"
            case.check(result.out == said, "with room for %s: %r", room, result.out)
            case.check(result.err.count(b"\n") <= 1 and b"Error" not in result.err, "stderr %r", result.err)
    copy = os.path.join(h.fresh_folder("copy"), "libaprof.so")
    shutil.copy(h.LIBRARY, copy)
    tunables = {"GLIBC_TUNABLES": "glibc.rtld.optional_static_tls=20000"}
    result = case.program(["-c", code, copy, "256"], env=tunables)
    case.check(result and result.out == b"0 True\n", "beside the preloaded one: %r", result and result.out)


# ---------------------------------------------------------------- the loader

def loader(case):
    """Bound at once; audited; a list with spaces. Auditing leaves thread-local data little room, for
    every library with a jemalloc in it; aprof-run asks for more."""
    audit, nosy = hazard.need_library("company_audit"), hazard.need_library("company_nosy")
    room = {"GLIBC_TUNABLES": "glibc.rtld.optional_static_tls=4096"}
    for env in ({"LD_BIND_NOW": "1"}, dict(room, LD_AUDIT=audit), dict(room, LD_AUDIT=audit, LD_BIND_NOW="1")):
        both(case, ["-c", BURN + "print('done')"], " %s  %s: " % (nosy, h.LIBRARY), nosy, env=env)


STORM = """
import _ctypes, ctypes, os, sys, threading, time
until = time.monotonic() + float(sys.argv[2])
counts = []
def storm(path):
    n = 0
    while time.monotonic() < until:
        handle = _ctypes.dlopen(path, 0)
        library = ctypes.CDLL(path, handle=handle)
        library.plugin_work(1000)
        _ctypes.dlclose(handle)
        n += 1
        if n %% 50 == 0:
            pid = os.fork()
            if pid == 0: os._exit(0)
            os.waitpid(pid, 0)
    counts.append(n)
threads = [threading.Thread(target=storm, args=(path,)) for path in sys.argv[3:]]
for t in threads: t.start()
%s
for t in threads: t.join()
print(len(counts), all(n > 10 for n in counts))
""" % BURN.replace("threads", "others")


def storm(case):
    """Libraries come and go in three threads, forks in between, beside ticks at the kernel's rate."""
    plugin, folder = hazard.need_library("company_plugin"), h.fresh_folder("plugins")
    copies = [os.path.join(folder, "plugin%d.so" % n) for n in range(3)]
    for copy in copies:
        shutil.copy(plugin, copy)
    result = case.program(["-W", "ignore", "-c", STORM, "x", "30" if case.long else "0.6"] + copies, timeout=120,
                          settings={"APROF_RATE": "250"})
    case.check(result and result.out == b"3 True\n", "%r", result and result.out)


HAZARDS = [
    Hazard("company.allocators", allocators),
    Hazard("company.heap-unseen", on_two(heap_unseen), each=False),
    Hazard("company.preloads", on_two(preloads), each=False),
    Hazard("company.preloads-end", on_two(preloads_end), each=False),
    Hazard("company.early", early),
    Hazard("company.faketime", on_two(faketime), each=False),
    Hazard("company.fakeroot", on_two(fakeroot, native=True), each=False),
    Hazard("company.twice", on_two(twice), each=False),
    Hazard("company.late", on_two(late), each=False),
    Hazard("company.loader", on_two(loader), each=False),
    Hazard("company.storm", storm),
]
