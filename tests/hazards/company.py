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
import hosts

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


def on_two(row, native=False, newest=True, since=(3, 11)):
    """For what does not depend on Python: the oldest and the newest; the long form takes all.
    native: not those in a folder of their own, where the other tool is not. newest: not for
    what is slow by itself."""
    def on_them(case):
        usable = [p for p in case.pythons if not (native and p.prefix) and p.version >= since]
        for case.python in usable if case.long else usable[:1] + usable[1:][-1:] * newest:
            row(case)
        if not usable:
            raise h.Skip("no Python for it among those found")
    return on_them


def on_newest(row):
    def on_it(case):
        case.python = case.pythons[-1]
        row(case)
    return on_it


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
            account_one(case, result, 1)
            used = 1e6 * (result.rusage.ru_utime + result.rusage.ru_stime)
            case.check(h.Spool(result.spool).total("cpu") < 1.2 * used, "cpu %d µs, %d were used", h.Spool(result.spool).total("cpu"), used)
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


# ---------------------------------------------------------------- sanitizers

# Sound without an argument; with one, what the sanitizer is there to find.
FAULTY = {
    "address": "#include <stdlib.h>\nint main(int n, char **v) { char *p = malloc(9); free(p); return n > 1 ? p[n] : 7; }\n",
    "undefined": "int main(int n, char **v) { int x = 2147483647; return n > 1 ? (x += n) != 0 : 7; }\n",
    "thread": "#include <pthread.h>\nint x;\nvoid *f(void *a) { x++; return a; }\nint main(int n, char **v) {\n"
              "pthread_t t; pthread_create(&t, 0, f, 0); if (n > 1) x++; pthread_join(t, 0); return 7; }\n",
}


def compiled(name, source, *flags, compiler="gcc"):
    hazard.need_programs(compiler)
    path = os.path.join(h.fresh_folder("compiled"), name)
    done = subprocess.run([compiler, "-g", "-x", "c", "-o", path, source if os.path.exists(source) else "-", "-x", "none", *flags],
                          input=source.encode(), stderr=subprocess.PIPE, timeout=120)
    if done.returncode:
        raise h.Skip("%s %s does not compile here: %s" % (compiler, " ".join(flags), h.tail(done.stderr, 100)))
    return path


def libpython_of(case):
    """A Python of this system itself that programs can link with."""
    for python in [p for p in case.pythons if not p.prefix]:
        try:
            return python, hosts.libpython(python)
        except h.Skip:
            continue
    raise h.Skip("no shared libpython (python3-dev)")


def sanitizer(kind):
    """Programs with a sanitizer in them: sound ones run, faults are found, a Python within is profiled."""
    def row(case):
        python, library = libpython_of(case)
        flags = ["-fsanitize=" + kind]
        for compiler in ("gcc", "clang") if case.long else ("gcc",):
            faulty = compiled("faulty", FAULTY[kind], *flags, compiler=compiler)
            embeds = compiled("embed", h.oracle("embed.c"), *flags, library, "-lpthread", compiler=compiler)
            for words, spooled in (([faulty], False), ([faulty, "x"], False), ([embeds, "late"], True)):
                env = {"PYTHONHOME": python.ask("import sys; print(sys.prefix)"), "ASAN_OPTIONS": "detect_leaks=%d" % (not spooled)}
                case.tried()
                other = h.run(words, case.name + "-without", preload=False, env=env)
                result = h.run(words, case.name, env=env, wrapper=[h.WRAPPER, "-q"])
                case.judge(result.status, other.status, "%s %s" % (compiler, " ".join(words)), result.err)
                found = [b"ERROR: " in r.err or b"WARNING: " in r.err or b"runtime error" in r.err for r in (result, other)]
                case.check(found[0] == found[1], "%s %s: %r, without us %r", compiler, words, h.tail(result.err), h.tail(other.err))
                if spooled:
                    account_one(case, result)
    return row


def asan_order(case):
    """gcc's AddressSanitizer wants to be first: by the documented list, and --check says so."""
    program = compiled("faulty", FAULTY["address"], "-fsanitize=address")
    checked = subprocess.run([h.WRAPPER, "--check", program], stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=h.clean_environment())
    case.tried()
    said = checked.stdout.decode()
    if not case.check("LD_PRELOAD=libasan.so" in said, "--check says %r", said):
        return
    preload = said.split("LD_PRELOAD=")[1].split(",")[0]
    result = h.run([program], case.name, settings={"LD_PRELOAD": preload})
    case.judge(result.status, 7, "LD_PRELOAD=" + preload, result.err)
    python, _ = libpython_of(case)
    runtime = preload.split(":")[0]
    case.python = python
    both(case, ["-c", BURN + "print('done')"], preload, runtime, env={"ASAN_OPTIONS": "detect_leaks=0"})


# ---------------------------------------------------------------- Python's own tools

WORK = """
import threading
def leaf(n): return sum(range(n))
def branch(n): return [leaf(i) for i in range(n)]
def work():
    for _ in range(40): branch(60)
"""
TOOLS = {
    "coverage": ("import coverage, io\nc = coverage.Coverage(data_file=None, concurrency=['thread'])\nc.start()\nexec(compile(WORK, 'w.py', 'exec'))\n"
                 "t = threading.Thread(target=work); t.start(); work(); t.join()\nc.stop()\nprint(len(c.get_data().measured_files()) > 0)\n"),
    "settrace": ("n = [0]\ndef trace(f, e, a):\n    n[0] += f.f_code.co_name in ('leaf', 'branch', 'work')\n    return trace\nthreading.settrace(trace); sys.settrace(trace)\n"
                 "t = threading.Thread(target=work); t.start(); t.join(); work()\nsys.settrace(None)\nprint('events', n[0] // 7, n[0] % 7)\n"),
    "setprofile": ("n = [0]\ndef count(f, e, a): n[0] += e == 'call' and f.f_code.co_name in ('leaf', 'branch')\nthreading.setprofile(count); sys.setprofile(count)\n"
                   "t = threading.Thread(target=work); t.start(); t.join(); work()\nsys.setprofile(None)\nprint('calls', n[0] // 7, n[0] % 7)\n"),
    "cProfile": ("import cProfile, pstats\np = cProfile.Profile()\np.runcall(work)\ns = pstats.Stats(p)\n"
                 "print(sorted(v[0] // 7 for k, v in s.stats.items() if k[2] in ('leaf', 'branch', 'work')))\n"),
    "monitoring": ("m = sys.monitoring\nn = [0]\ndef start(code, at): n[0] += code.co_name in ('leaf', 'branch')\nm.use_tool_id(m.PROFILER_ID, 'x')\n"
                   "m.register_callback(m.PROFILER_ID, m.events.PY_START, start)\nm.set_events(m.PROFILER_ID, m.events.PY_START)\n"
                   "t = threading.Thread(target=work); t.start(); t.join(); work()\nm.set_events(m.PROFILER_ID, 0)\nprint('starts', n[0] // 7, n[0] % 7)\n"),
    "tracemalloc": ("import tracemalloc\ntracemalloc.start(20)\nkept = [bytes(1000) for _ in range(500)]\nwork()\n"
                    "print(sum(s.count for s in tracemalloc.take_snapshot().statistics('lineno') if s.size > 500000))\n"),
    "gc": ("import gc\ngc.set_debug(gc.DEBUG_SAVEALL)\ngc.set_threshold(10)\nwork()\na = []; a.append(a); del a\ngc.collect()\nprint(len(gc.garbage) > 0)\n"),
    "faulthandler": ("import faulthandler, os\nf = open('dumps', 'w')\nfaulthandler.enable(f)\nfaulthandler.dump_traceback_later(0.05, repeat=True, file=f)\nwork()\n"
                     "faulthandler.cancel_dump_traceback_later()\nprint('ok')\n"),
    "itimer": ("import signal\nn = [0]\ndef tick(s, f): n[0] += 1\nsignal.signal(signal.SIGPROF, tick)\nsignal.setitimer(signal.ITIMER_PROF, 0.001, 0.001)\n"
               "t = threading.Thread(target=work); t.start(); work(); t.join()\nend = time.process_time() + 0.2\nwhile time.process_time() < end: leaf(100)\n"
               "signal.setitimer(signal.ITIMER_PROF, 0)\nprint(n[0] > 20)\n"),
}


def tools(case):
    """What a program asks of the interpreter's own hooks is what it gets without us: one after the
    other in one process, and in the long form each in its own."""
    codes = [code for name, code in TOOLS.items()
             if not (name == "coverage" and case.python.ask("import coverage") is None)
             and not (name == "monitoring" and case.python.version < (3, 12))]
    for group in [[code] for code in codes] * case.long + [codes]:
        case.program(["-c", "import sys, threading, time\nWORK = %r\nexec(WORK)\n" % WORK + "".join(group) + "work()\n"], twin=True)


MODES = [
    ({"PYTHONMALLOC": "debug"}, []), ({"PYTHONMALLOC": "malloc_debug"}, []), ({"PYTHONMALLOC": "pymalloc"}, []), ({"PYTHONDEVMODE": "1"}, []),
    ({"PYTHONFAULTHANDLER": "1"}, []), ({"PYTHONTRACEMALLOC": "10"}, []), ({"PYTHON_JIT": "1"}, []), ({}, ["-X", "importtime"]),
    ({"PYTHONASYNCIODEBUG": "1"}, []), ({"PYTHONDUMPREFS": "1"}, ["-v"]),
]


def modes(case):
    """Started otherwise: debug allocators, development mode, the JIT where there is one."""
    code = WORK + "for _ in range(20): work()\nprint('done')\n"
    for env, words in MODES if case.long else MODES[:1] + MODES[3:4] + MODES[6:8]:
        result = case.program(words + ["-c", code], env=env)
        case.check(result and result.out == b"done\n", "%s %s: %r", env, words, result and result.out)
        if result and not words:
            case.check(not result.err, "%s: %r", env, h.tail(result.err))


def perf_map(case):
    """-X perf: trampolines between Python's frames, a file of names of its own."""
    code = WORK + "import os\nfor _ in range(80): work()\nprint(open('/tmp/perf-%d.map' % os.getpid()).read().count('py::leaf'))\n"
    result = case.program(["-X", "perf", "-c", code], twin=True)
    if result:
        account_one(case, result, 20000)
        if os.path.exists("/tmp/perf-%d.map" % result.pid):
            os.unlink("/tmp/perf-%d.map" % result.pid)


# ---------------------------------------------------------------- debuggers, tracers, other profilers

BUSY = BURN.replace("0.1,", "%s,").replace("0.15", "%s") + "print('done', flush=True)\n"


def traced(case, words, least_us=50000, wait=90, below=None, expect=3):
    """The program below a tracer, with us: the tracer's status and the program's output are those without us."""
    below = case.python.words if below is None else below
    script = os.path.join(h.fresh_folder("traced"), "busy.py")
    with open(script, "w") as f:
        f.write(BUSY % (0.2, 0.2) + "import sys; sys.exit(3)\n")
    case.tried()
    other, result = [h.run(words + below + [script], case.name, preload=preload, timeout=wait) for preload in (False, True)]
    case.judge(result.status, expect, words[0], result.err)
    case.check(other.status == expect and b"done" in other.out, "%s without us: %d %r", words[0], other.status, other.out[-300:])
    case.check(result.out.count(b"done") == 1 and result.out.count(b"\\n") == other.out.count(b"\\n"), "%s: %r, without us %r", words[0],
               result.out[-300:], other.out[-300:])
    # gdb holds a Python itself, and is profiled like any other.
    found = [h.total_where(p.stacks("cpu"), lambda f: any(h.base(x) == "busy.py" for x in f)) for p in h.Spool(result.spool)]
    case.check(len([us for us in found if us >= least_us]) == 1, "%s: in the spool %s µs of the program", words[0], found)
    return result


def strace(case):
    hazard.need_programs("strace")
    log = os.path.join(h.fresh_folder("strace"), "log")
    traced(case, ["strace", "-f", "-o", log])
    text = h.read_bytes(log)
    case.check(b"exited with 0" in text, "strace saw no end")
    case.check(b"--- SIGURG" in text, "no CPU tick reached the program")


def valgrind(case):
    """May be inert; must not crash, nor let valgrind find faults."""
    hazard.need_programs("valgrind")
    result = traced(case, ["valgrind", "-q", "--error-exitcode=9", "--undef-value-errors=no", "--trace-children=no",
                           "--suppressions=" + os.path.join(os.path.dirname(hazard.HERE), "unit", "valgrind.supp")], 1, 170)
    case.check(b"Invalid" not in result.err, "valgrind: %r", h.tail(result.err, 600))


def gdb_runs(case):
    """Started by gdb: it must not stop at what is ours."""
    hazard.need_programs("gdb")
    traced(case, ["gdb", "-q", "-batch", "-nx", "-iex", "set auto-load no", "-iex", "set startup-with-shell off", "-iex",
                  "set debuginfod enabled off", "-ex", "set print thread-events off", "-ex", "set print inferior-events off",
                  "-ex", "handle SIGSEGV SIGBUS nostop noprint pass", "-ex", "run", "-ex", "quit $_exitcode", "--args"])


def attached(case, tool, judge, settings=None, prefix=()):
    """A program with us in it that another tool looks at from outside, and leaves again."""
    folder = h.fresh_folder("attached")
    for preload in (False, True):
        case.tried()
        running = h.Run(["-c", "print('up', flush=True)\n" + BUSY % (0.6, 0.6)], case.name, python=case.python, preload=preload, settings=settings)
        line = running.popen.stdout.readline()
        done = subprocess.run(list(prefix) + tool(running.popen.pid, folder), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, timeout=60, env=h.clean_environment())
        result = running.finish(60)
        case.judge(result.status, 0, tool(0, "")[0], result.err)
        case.check(line + result.out == b"up\ndone\n", "the program says %r", result.out)
        wrong = judge(done.returncode, done.stdout, folder)
        case.check(not wrong, "%s%s: %s", tool(0, "")[0], "" if preload else ", without us", wrong)
    account_one(case, result, 900000)


def gdb_attaches(case):
    """Attached, a backtrace of all threads, detached: the program goes on and its samples do."""
    hazard.need_programs("gdb")
    attached(case, lambda pid, folder: ["gdb", "-q", "-batch", "-nx", "-iex", "set auto-load no", "-iex", "set debuginfod enabled off",
                                        "-p", str(pid), "-ex", "thread apply all bt 3", "-ex", "detach"],
             lambda status, said, folder: "" if status == 0 and said.count(b"\nThread ") >= 3 else h.tail(said))


def strace_attaches(case):
    hazard.need_programs("strace", "timeout")
    attached(case, lambda pid, folder: ["timeout", "-s", "INT", "0.4", "strace", "-f", "-o", os.path.join(folder, "log"), "-p", str(pid)],
             lambda status, said, folder: "" if b"attached" in said else h.tail(said))


def perf(case):
    hazard.need_programs("perf")
    attached(case, lambda pid, folder: ["perf", "record", "-q", "-e", "cpu-clock", "-g", "-o", os.path.join(folder, "perf.data"), "-p", str(pid),
                                        "--", "sleep", "0.4"],
             lambda status, said, folder: "" if status == 0 and os.path.getsize(os.path.join(folder, "perf.data")) > 10000 else h.tail(said))


def tachyon(case):
    """CPython 3.15's own profiler, reading the same process at the same time; we are in it too."""
    if case.python.ask("import profiling.sampling") is None:
        raise h.Skip("%s has no profiling.sampling" % case.python.label)
    out = os.path.join(h.fresh_folder("tachyon"), "stacks")
    traced(case, case.python.words + ["-m", "profiling.sampling", "run", "-r", "200", "--collapsed", "-o", out], below=[], expect=0)
    case.check(b"burn" in h.read_bytes(out), "it saw %r", h.read_bytes(out)[:300])


def py_spy(case):
    hazard.need_programs("py-spy")
    attached(case, lambda pid, folder: ["py-spy", "record", "-d", "1", "-f", "raw", "-o", os.path.join(folder, "out"), "-p", str(pid)],
             lambda status, said, folder: "" if b"burn" in h.read_bytes(os.path.join(folder, "out")) else h.tail(said))


def memray(case):
    """It stands in front of the allocator, and in the table of each library's calls."""
    hazard.need_modules(case.python, "memray")
    for more in ([], ["--native"]) if case.long else ([],):
        file = os.path.join(h.fresh_folder("memray"), "out.bin")
        script = os.path.join(os.path.dirname(file), "app.py")
        with open(script, "w") as f:
            f.write("kept = [bytes(1000) for _ in range(20000)]\n" + BUSY % (0.2, 0.2))
        result = case.program(["-m", "memray", "run", "-q", *more, "-o", file, script], timeout=120)
        stats = h.run(["-m", "memray", "stats", "--json", "-o", file + ".json", file], case.name, python=case.python, preload=False)
        case.check(result and result.out == b"done\n" and stats.status == 0, "%r %r", result, h.tail(stats.err))


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
    *[Hazard("company.sanitizer-" + kind, sanitizer(kind), each=False) for kind in FAULTY],
    Hazard("company.asan-order", asan_order, each=False),
    Hazard("company.tools", tools),
    Hazard("company.modes", modes),
    Hazard("company.perf-map", on_two(perf_map, since=(3, 12)), each=False),
    Hazard("company.strace", on_two(strace, native=True, newest=False), each=False),
    Hazard("company.valgrind", on_two(valgrind, native=True, newest=False), each=False),
    Hazard("company.gdb", on_two(gdb_runs, native=True, newest=False), each=False),
    Hazard("company.gdb-attached", on_two(gdb_attaches, newest=False), each=False),
    Hazard("company.strace-attached", strace_attaches, longer=True),
    Hazard("company.perf", perf, longer=True),
    Hazard("company.tachyon", on_newest(tachyon), each=False),
    Hazard("company.py-spy", on_two(py_spy, native=True, newest=False), each=False),
    Hazard("company.memray", memray),
]
