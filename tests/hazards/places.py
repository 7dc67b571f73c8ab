# SPDX-License-Identifier: MIT
"""places: in whatever environment a process finds itself, it works as without us; what
cannot be profiled there costs one line.

Most rows run through build/hazards/place, which takes something away and becomes the
program; what it does once and for all Pythons alike is tried on the oldest and newest.
"""
import glob
import os
import re
import shutil
import subprocess
import time

import hazard
from hazard import Hazard, h

PLACE = os.path.join(h.BUILD, "hazards", "place")
BUSY = "import time\nend = time.process_time() + %g\nwhile time.process_time() < end: sum(range(1000))\n"
DONE = BUSY % 0.1 + "print('done')\n"
NOBODY = 54321  # a user without an entry anywhere
AS_NOBODY = ["setpriv", "--reuid=%d" % NOBODY, "--regid=%d" % NOBODY, "--clear-groups"]

OWN_MOUNTS = ["unshare", "-m", "--propagation", "unchanged"]  # the runner's are private already; "/" may be no mount


def place(*items):
    return [PLACE, *items, "--"]


def shell(text):
    """A shell that does this and then becomes the program."""
    return ["sh", "-c", text + '\nexec "$@"', "sh"]


def edges(case):
    """The oldest and the newest Python: for what does not depend on the version."""
    return [case.pythons[0], case.pythons[-1]] if len(case.pythons) > 1 else case.pythons


def ours(result):
    return [line.decode("utf-8", "replace") for line in result.err.splitlines() if line.startswith(b"aprof")]


def total(spool, metric="cpu"):
    return spool.total(metric) if spool.processes else 0


def lives(case, launcher, python, words=("-c", DONE), says=(), out=b"done\n", sampled=True, own_pid=True, most=1, **options):
    """The program works as without us. says: a word each of the lines of ours; sampled: its time is in the spool,
    where it and its children are most processes at most."""
    words = [os.fsdecode(w) for w in (*launcher, python.words[-1], *words)]
    result = case.program(python.prefix + words, python=None, spooled=sampled and own_pid, **options)
    if result is None:
        return None
    said, others = ours(result), [x for x in result.err.splitlines() if not x.startswith(b"aprof")]
    case.check(result.out == out, "%s: stdout %r", launcher, result.out[-200:])
    case.check(not others, "%s: stderr %s", launcher, others[:3])
    case.check(len(said) == len(says) and all(word in line for word, line in zip(says, said)),
               "%s: not one line each with %s: %s", launcher, says, said)
    if sampled:
        spool = h.Spool(result.spool)
        case.check(1 <= len(spool.processes) <= most and total(spool) > 50000, "%s: %d processes, cpu %d us of 100,000", launcher,
                   len(spool.processes), total(spool))
    return result


def open_folder(name):
    """A folder in which everybody may make a spool."""
    folder = h.fresh_folder(name)
    os.chmod(folder, 0o1777)
    return folder


def reachable(folder):
    """Skips where another user cannot get at our files."""
    done = subprocess.run(AS_NOBODY + ["test", "-r", h.LIBRARY, "-a", "-w", folder], stderr=subprocess.DEVNULL)
    if done.returncode:
        raise h.Skip("user %d cannot read %s" % (NOBODY, h.LIBRARY))


# ---------------------------------------------------------------- the environment

def empty_environment(case):
    """env -i: no HOME, no PATH, no LANG; the spool in the working directory."""
    lives(case, [], case.python, whole_env={})


def interpreter_options(case):
    for words in (["-I", "-S", "-B"], ["-E", "-s", "-O"]):
        lives(case, [], case.python, words=words + ["-c", DONE])


def locales(case):
    """Locale C and POSIX; a folder and arguments that are not UTF-8, names of 255 bytes."""
    raw, long = b"\xff\xfe;\\ (x)", b"n" * 252
    for python in edges(case):
        for lang in ("C", "POSIX"):
            folder = os.fsencode(h.fresh_folder("locale"))
            inside = os.path.join(folder, raw)
            os.mkdir(inside)
            with open(os.path.join(inside, long + b".py"), "w", encoding="ascii") as f:
                f.write(DONE)
            result = lives(case, [], python, words=[os.path.join(inside, long + b".py"), b"\xff\xfe"], folder=os.fsdecode(folder),
                           cwd=inside, settings={"LC_ALL": lang, "LANG": lang, "APROF_DIR": os.fsdecode(os.path.join(inside, b"s\xff"))},
                           sampled=False)
            spool = h.Spool(os.fsdecode(os.path.join(inside, b"s\xff")))
            case.check(result and total(spool) > 50000, "%s: cpu %d us", lang, total(spool))


def large_environment(case):
    """1 MB of it, also through a Python that hands it down."""
    code = "import os, subprocess, sys\nif len(sys.argv) == 1: subprocess.run(['env'], stdout=subprocess.DEVNULL, check=True)\n" + DONE
    for python in edges(case):
        lives(case, [], python, words=["-c", code], env={"LARGE%d" % i: "x" * 100000 for i in range(10)})


# ---------------------------------------------------------------- users, rights, roots

def other_users(case):
    """A user without an entry; one without any capability; an application that became non-dumpable."""
    hazard.need_root()
    hazard.need_programs("setpriv", "capsh")
    undumpable = "import ctypes\nassert ctypes.CDLL(None).prctl(4, 0, 0, 0, 0) == 0\n"
    for python in edges(case):
        folder = open_folder("users")
        reachable(folder)
        lives(case, AS_NOBODY, python, folder=folder)
        folder = open_folder("users")
        lives(case, AS_NOBODY + ["--bounding-set=-all", "--inh-caps=-all", "--no-new-privs"], python, folder=folder)
        folder = open_folder("users")
        lives(case, AS_NOBODY, python, words=["-c", undumpable + DONE], folder=folder)
        if not python.prefix:
            lives(case, ["capsh", "--drop=all", "--secbits=15", "--", "-c", 'exec "$0" "$@"'], python)
        folder = h.fresh_folder("users")
        os.chmod(folder, 0o755)
        lives(case, AS_NOBODY, python, folder=folder, says=["spool directory"], sampled=False)


def su_and_sudo(case):
    """Another user by su: a process of the run; by sudo, which clears the environment: none, and no word."""
    hazard.need_root()
    hazard.need_programs("su")
    python = case.pythons[0]
    folder = open_folder("su")
    reachable(folder)
    lives(case, ["su", "nobody", "-s", "/bin/sh", "-c", 'exec "$0" "$@"', "--"], python, folder=folder, own_pid=False)


def without_folders(case):
    """No /proc; /proc that hides processes; no /tmp; everything read-only."""
    hazard.need_root()
    for python in edges(case):
        lives(case, OWN_MOUNTS + shell("umount -l /proc"), python)
        lives(case, OWN_MOUNTS + shell("mount -t tmpfs -o mode=0 tmpfs /proc"), python)
        folder = open_folder("hidepid")
        reachable(folder)
        lives(case, OWN_MOUNTS + shell("mount -t proc -o hidepid=2 proc /proc") + AS_NOBODY, python, folder=folder)
    python = case.pythons[0]
    if not h.WORK.startswith("/tmp/"):
        lives(case, OWN_MOUNTS + shell("mount -t tmpfs -o mode=0,ro tmpfs /tmp"), python)
    read_only = 'mount -o remount,ro,bind / 2>/dev/null || { mount --bind / /mnt && mount -o remount,ro,bind /mnt && cd /mnt && exec chroot . "$@"; }'
    lives(case, OWN_MOUNTS + shell(read_only), python, says=["read-only file system"], sampled=False)


# ---------------------------------------------------------------- limits

RLIMIT = {"fsize": 1, "stack": 3, "nproc": 6, "nofile": 7, "memlock": 8, "as": 9, "sigpending": 11}
UNLIMITED = 2 ** 64 - 1


def limit(name, value):
    return place("limit:%d:%d" % (RLIMIT[name], value))


def limits(case):
    """Signals queued, locked memory, stack: none at all, or without end."""
    for python in edges(case):
        lives(case, limit("sigpending", 0), python)
        lives(case, limit("memlock", 0), python)
        lives(case, limit("stack", UNLIMITED), python)
        lives(case, limit("stack", 128 << 10), python)


def no_thread(case):
    """Where no thread can be started: one line, and as without us."""
    hazard.need_root()
    for python in edges(case):
        folder = open_folder("nproc")
        reachable(folder)
        lives(case, limit("nproc", 1) + ["setpriv", "--reuid=%d" % (NOBODY + 1), "--clear-groups"], python, folder=folder, says=["a thread of our own"], sampled=False)
        lives(case, place("deadline"), python, says=["a thread of our own"], sampled=False)


def small_address_space(case):
    """Where it is short we take nothing of it: an application that lives there does so with us."""
    for python in edges(case):
        for megabytes in (24, 28, 50):
            lives(case, limit("as", megabytes << 20), python, says=["address space"], sampled=False)
        lives(case, limit("as", 100 << 20), python)


# ---------------------------------------------------------------- filters of system calls

def numbers():
    """System calls by name."""
    with open("/usr/include/x86_64-linux-gnu/asm/unistd_64.h", encoding="ascii") as f:
        return dict((n, int(v)) for n, v in re.findall(r"^#define __NR_(\w+)\s+(\d+)", f.read(), re.M))


NR = numbers() if os.path.exists("/usr/include/x86_64-linux-gnu/asm/unistd_64.h") else {}


def deny(call, how, argument=""):
    if call not in NR:
        raise h.Skip("no list of system calls (linux-libc-dev)")
    return "deny:%d%s:%s" % (NR[call], argument, how)


# What is asked for, with what it then costs: a word of the one line, and whether there is a profile.
WAITS, THREAD_CLOCKS, CREATES = "/1/127/9", "/0/2147483648/2147483648", "/2/64/64"
QUIETLY = ("timer_create timer_settime timer_delete close_range process_vm_readv sched_setattr sched_getattr sched_setscheduler"
           " capset unshare flock renameat2 rt_sigpending tgkill prctl mremap ftruncate unlinkat uname madvise prlimit64"
           " sched_yield clock_getres poll rt_sigtimedwait readlink").split()
REFUSED = [(call, "", (), True) for call in QUIETLY] + [
    ("futex", WAITS, (), True),
    ("renameat", "", ("spool directory",), True),  # the open window's files stay
    ("fchmod", "", ("spool directory",), True),
    ("mkdirat", "", ("spool directory",), False),
    ("pwrite64", "", ("spool directory",), False),
    ("openat", CREATES, ("spool directory",), False),
    ("clock_gettime", THREAD_CLOCKS, ("CPU clocks",), False),
    ("gettid", "", ("CPU clocks",), False),
]


def refused_calls(case):
    """Each system call that we make, refused: with EPERM, and (long) ENOSYS, which differ to nobody here.
    Those that are refused without a word are tried one by one in the long form."""
    for python in case.pythons if case.long else case.pythons[:1]:
        for how in ("1", "38") if case.long else ("1",):
            for call, argument, says, sampled in REFUSED if case.long else REFUSED[:4] + REFUSED[len(QUIETLY):]:
                lives(case, place(deny(call, how, argument)), python, says=says, sampled=sampled)


def all_refused(case):
    """All of those without which there is still a profile, at once."""
    items = [deny(call, "38") for call in QUIETLY]
    for python in edges(case):
        lives(case, place(*items), python)
        lives(case, place(*items), python, settings={"APROF_WINDOW": "1"}, words=["-c", BUSY % 1.1 + "print('done')"])


def killing_filters(case):
    """process_vm_readv is never made before it is needed. A filter that ends our thread alone ends the
    profile, and later forks and the exit do not wait for it."""
    forks = "import os\nfor _ in range(20):\n    child = os.fork()\n    if not child: os._exit(0)\n    os.waitpid(child, 0)\n"
    for python in edges(case):
        lives(case, place(deny("process_vm_readv", "kill")), python)
        result = lives(case, place(deny("pwrite64", "killthread")), python, says=["ended our thread"], sampled=False,
                       words=["-c", DONE + "import time\nbegin = time.time()\n" + forks + "assert time.time() - begin < 20 * 0.02\n"])
        case.check(not h.Spool(result.spool, strict=False).processes or total(h.Spool(result.spool, strict=False)) == 0, "a profile without a thread")


def documented_calls():
    """What README says that a filter which kills must allow."""
    text = h.read_bytes(os.path.join(h.REPO, "README.md")).decode()
    match = re.search(r"what Python makes without us:\s+`([a-z0-9_\s]+)`", text)
    return match[1].split()


def documented(case):
    """A filter that kills for every system call but Python's own and those that README lists."""
    hazard.need_programs("strace")
    python = next(p for p in case.pythons if not p.prefix)
    code = "import os\nchild = os.fork()\nif not child: os._exit(0)\nos.waitpid(child, 0)\n" + BUSY % 0.1 + "time.sleep(1)\n" + BUSY % 0.05 + "print('done')\n"
    trace = os.path.join(h.fresh_folder("strace"), "trace")
    subprocess.run(["strace", "-f", "-qq", "-o", trace, *python.words, "-c", code], stdout=subprocess.DEVNULL, env=h.clean_environment(), check=True)
    needed = set(re.findall(r"^\d+\s+(\w+)\(", h.read_bytes(trace).decode("utf-8", "replace"), re.M)) | {"execve", "exit_group"}
    items = ["allow:%d" % NR[call] for call in sorted(needed.union(documented_calls()) - {"process_vm_readv"})]
    lives(case, place(*items), python, words=["-c", code], settings={"APROF_WINDOW": "1", "APROF_SPOOL": "1"}, own_pid=False, sampled=False)


SANDBOX = """
import ctypes, struct
def install(call, verdict):
    code = b"".join(struct.pack("HBBI", *row) for row in ((0x20, 0, 0, 0), (0x15, 0, 1, call), (6, 0, 0, verdict), (6, 0, 0, 0x7fff0000)))
    rows = ctypes.create_string_buffer(code)
    program = ctypes.create_string_buffer(struct.pack("HxxxxxxP", 4, ctypes.addressof(rows)))
    libc = ctypes.CDLL(None, use_errno=True)
    assert libc.prctl(38, 1, 0, 0, 0) == 0
    assert libc.syscall(317, 1, 1, program) == 0, ctypes.get_errno()
"""


def sandbox_from_within(case):
    """An application that puts all its threads, ours too, under a filter in mid-run."""
    for call, verdict, says in (("pwrite64", 0x50001, ["spool directory"]), ("process_vm_readv", 0x80000000, [])):
        code = SANDBOX + BUSY % 0.05 + "install(%d, %#x)\n" % (NR[call], verdict) + DONE
        lives(case, [], case.python, words=["-c", code], says=says, sampled=not says)


# ---------------------------------------------------------------- descriptors

NUMBERS = DONE + """
import os
there = sorted(int(fd) for fd in os.listdir("/proc/self/fd"))
print(there, [os.open("/dev/null", os.O_RDONLY) for _ in range(5)], file=open(os.environ["SEEN"], "w"))
"""
TAKES_ZERO = DONE + """
import os
end = time.monotonic() + 0.5
while time.monotonic() < end:
    for _ in range(100):
        fd = os.open("/dev/null", os.O_RDONLY)
        assert fd == 0, fd
        os.close(fd)
"""


def closed_descriptors(case):
    """0 to 2 are closed: whoever opens a file gets the number that he would get without us."""
    python = case.python
    for closed in ((0,), (1, 2), (0, 1, 2)):
        seen = []
        for preload in (True, False):
            folder = h.fresh_folder("closed")
            launcher, env = place(*["close:%d" % fd for fd in closed]), {"SEEN": os.path.join(folder, "seen")}
            words = python.prefix + launcher + [python.words[-1], "-c", NUMBERS]
            case.program(words, folder=folder, env=env, python=None) if preload else case.without(words, 60, {"folder": folder, "env": env})
            seen.append(h.read_bytes(env["SEEN"]))
        case.check(seen[0] == seen[1], "%s closed: descriptors are %r, without us %r", closed, *seen)


def shared_descriptors(case):
    """Where our thread cannot have a table of its own: never one of 0 to 2, not for a moment."""
    for python in edges(case):
        lives(case, place(deny("close_range", "38"), "close:0"), python, words=["-c", TAKES_ZERO], says=["standard descriptor"], sampled=False)
        lives(case, place(deny("close_range", "38")), python)


# ---------------------------------------------------------------- threads and stacks

def helper():
    return "import ctypes\nhelper = ctypes.CDLL(%r)\n" % hazard.need_library("places")


def native_threads(case):
    """200 threads of C on the smallest stacks: none is sampled, and a tick costs what it did."""
    native = helper() + "count = helper.native_start(200)\nimport time\ntime.sleep(0.1)\n%shelper.native_stop(count)\nassert count == 200\n"
    spin = BUSY.replace("process_time", "thread_time") % 0.2 + "print('done')\n"
    a_tick = []
    for code in (spin, native % spin):
        result = lives(case, [], case.python, words=["-c", code])
        process = h.Spool(result.spool).one()
        case.check(process.metas()[-1]["threads_peak"] == 1, "threads_peak is %d", process.metas()[-1]["threads_peak"])
        case.check(total(h.Spool(result.spool)) < 700000, "cpu %d us of 200,000 and the start", total(h.Spool(result.spool)))
        a_tick.append(process.counter("sampler_cpu_us") / max(process.counter("ticks", "taken"), 1))
    case.check(a_tick[1] < 4 * a_tick[0] + 50, "a tick costs %.0f us, without the 200 threads %.0f", a_tick[1], a_tick[0])


def small_stacks(case):
    """Python on stacks of 32 KiB; the smallest alternate stack, with a wall below it."""
    threads = "import threading\ntry: threading.stack_size(32768)\nexcept ValueError: threading.stack_size(65536)\ndef work():\n    %s\n" \
              "all = [threading.Thread(target=work) for _ in range(3)]\nfor t in all: t.start()\nfor t in all: t.join()\nprint('done')\n"
    lives(case, [], case.python, words=["-c", threads % (BUSY.replace("process_time", "thread_time") % 0.05).replace("\n", "\n    ")])
    lives(case, [], case.python, words=["-c", helper() + "assert helper.small_alternate_stack() == 0\n" + DONE])


def much_thread_local_data(case):
    """Which libc takes from every stack, ours of 256 KiB too."""
    for python in edges(case):
        if not python.prefix:  # a library of the test's own is built for this root's libc
            lives(case, [], python, env={"LD_PRELOAD": hazard.need_library("tls") + ":" + h.LIBRARY})


def locked_memory(case):
    """mlockall: what we have mapped is locked too, and is little."""
    lock = "import ctypes\nassert ctypes.CDLL(None).mlockall(3) == 0\n" + DONE
    show = "print([int(x.split()[1]) for x in open('/proc/self/status') if x.startswith('VmLck')][0], file=open(__import__('os').environ['SEEN'], 'w'))\n"
    hazard.need_root()
    for python in edges(case):
        locked = []
        for preload in (True, False):
            folder = h.fresh_folder("locked")
            env = {"SEEN": os.path.join(folder, "seen")}
            words = python.words + ["-c", lock + show]
            case.program(words, folder=folder, env=env, python=None) if preload else case.without(words, 60, {"folder": folder, "env": env})
            locked.append(int(h.read_bytes(env["SEEN"])))
        case.check(locked[0] - locked[1] < 32 << 10, "%d KiB are locked, without us %d", *locked)


POLICIES = BUSY % 0.5 + "print('done')\n" + """
import os
for tid in os.listdir("/proc/self/task"):
    name = open("/proc/self/task/%s/comm" % tid).read().strip()
    assert os.sched_getscheduler(int(tid)) == (os.SCHED_OTHER if name == "aprof" else WANTED), name
"""


def scheduling(case):
    """A real-time program: our thread is not, and may come late. Programs that give way to all: it is as they are. One CPU."""
    hazard.need_root()
    hazard.need_programs("chrt", "taskset")
    for python in edges(case):
        for option, name in (("-f", "SCHED_FIFO"), ("-r", "SCHED_RR")):
            lives(case, ["chrt", option, "10"], python, words=["-c", POLICIES.replace("WANTED", "os." + name)])
        lives(case, ["chrt", "-i", "0"], python)
        lives(case, ["chrt", "-b", "0"], python)
        lives(case, ["taskset", "1"], python)


# ---------------------------------------------------------------- namespaces

INIT = """
import os, signal
assert os.getpid() == 1
os.kill(1, signal.SIGTERM)  # the first process of a namespace has no default actions
for _ in range(5):
    child = os.fork()
    if not child: os._exit(3)
    assert os.waitpid(child, 0)[1] == 3 << 8
""" + DONE


def first_process(case):
    """Pid 1: its own signals do nothing, and it has children to wait for."""
    hazard.need_root()
    for python in edges(case):
        result = lives(case, OWN_MOUNTS + ["-p", "-f"] + shell("mount -t proc proc /proc"), python, words=["-c", INIT], own_pid=False, sampled=False)
        case.check([p for p in h.Spool(result.spool) if p.pid == 1 and p.total("cpu") > 50000], "no profile of pid 1")


def namespaces(case):
    """User, time, network and host name; no random addresses."""
    hazard.need_root()
    for python in edges(case):
        lives(case, ["unshare", "-n", "-i", "-C"], python)
        lives(case, ["unshare", "-T", "-f", "--boottime", "100000", "--monotonic", "100000"], python, own_pid=False)
        lives(case, ["setarch", "-R"], python)
        if not python.prefix:  # what the chroot is for is not for other users
            lives(case, ["unshare", "-Ur"], python)
        for name in ("", "a.b_c-d", "x" * 64, "\xe9; (x) 5"):
            lives(case, ["unshare", "-u"] + shell("printf %%s '%s' >/proc/sys/kernel/hostname" % name), python)


ENTERS = """
import ctypes, os, time
time.sleep(0.02)
libc = ctypes.CDLL(None, use_errno=True)
if HOW == "unshare": result = libc.unshare(0x10000000)
else: result = libc.setns(os.open("/proc/%d/ns/time" % os.getppid(), os.O_RDONLY), 0)
print(HOW, result, ctypes.get_errno())
""" + BUSY % 0.1


def enters_namespaces(case):
    """unshare and setns, which the kernel refuses to a process of two threads: ours goes for the call."""
    hazard.need_root()
    for how in ("unshare", "setns"):
        words = ["-c", "HOW = %r\n" % how + ENTERS]
        other = case.without(words, 60, {"python": case.python})  # refused in a chroot, for one
        if other:
            lives(case, [], case.python, words=words, out=other.out)


def enters_pid_namespace(case):
    """After it no thread can be started: a program of one thread that then forks is profiled up to there."""
    hazard.need_root()
    code = "import ctypes, os, time\n" + BUSY % 0.1 + "assert ctypes.CDLL(None).unshare(0x20000000) == 0\n" \
           "child = os.fork()\nif not child: os._exit(os.getpid())\nassert os.waitpid(child, 0)[1] == 1 << 8\n" + DONE
    for python in edges(case):
        lives(case, [], python, words=["-c", code], says=["cannot be started"] if python.version >= (3, 12) else (), most=2)


def changes_user(case):
    """libc has every thread change user and group, ours too: at once, after a fork on either side of it, before an exec."""
    hazard.need_root()
    changes = ("os.setgroups([%d])", "os.setgid(%d)", "os.setresgid(%d, %d, %d)", "os.initgroups('nobody', %d)", "os.setuid(%d)", "os.setresuid(%d, %d, %d)")
    change = "; ".join(c.replace("%d", str(NOBODY)) for c in changes[:5]) + "; assert (os.getuid(), os.getgid()) == (%d, %d)\n" % (NOBODY, NOBODY)
    forked = "child = os.fork()\nif not child:\n    %s\n    os._exit(3)\nassert os.waitpid(child, 0)[1] == 3 << 8\n"
    ways = {"at once": change,
            "in a child": forked % change.strip(),
            "after a child": forked % "pass" + change,
            "in each of two": forked % ("os.seteuid(%d); os.setegid(0) if os.geteuid() == 0 else None; os.seteuid(0)" % NOBODY) + forked % change.strip(),
            "before an exec": "assert subprocess.run(['true'], preexec_fn=lambda: os.setresuid(%d, %d, %d)).returncode == 0\n" % ((NOBODY,) * 3)}
    for way, code in ways.items():
        result = case.program(["-W", "ignore", "-c", "import os, subprocess, time\n" + BUSY % 0.05 + code + DONE], timeout=30, spooled=False)
        if result:
            case.check(result.out == b"done\n" and not result.err, "%s: %r, %s", way, result.out, h.tail(result.err))


# ---------------------------------------------------------------- control groups

class Group:
    """A control group of one kind, version 1 or 2, with these files written; Skip where none can be made."""

    def __init__(self, kind, **files):
        hazard.need_root()
        self.path = None
        for base in ("/sys/fs/cgroup/" + kind, "/sys/fs/cgroup"):
            path = os.path.join(base, "aprof-hazard-%d" % os.getpid())
            try:
                os.mkdir(path)
            except OSError:
                continue
            self.path = path
            if all(self._write(name.replace("__", "."), value) for name, value in files.items()
                   if os.path.exists(os.path.join(path, name.replace("__", ".")))) and os.path.exists(os.path.join(path, "cgroup.procs")):
                if any(os.path.exists(os.path.join(path, name.replace("__", "."))) for name in files):
                    return
            self.remove()
        raise h.Skip("no control group of %s can be made" % kind)

    def _write(self, name, value):
        try:
            with open(os.path.join(self.path, name), "w", encoding="ascii") as f:
                f.write(value)
            return True
        except OSError:
            return False

    def launcher(self):
        return shell("echo $$ >%s/cgroup.procs" % self.path)

    def remove(self):
        if self.path:
            for _ in range(50):
                try:
                    os.rmdir(self.path)
                    break
                except OSError:
                    time.sleep(0.1)
        self.path = None


def few_processes(case):
    """A control group that lets one process start no thread: one line."""
    group = Group("pids", pids__max="1")
    try:
        lives(case, group.launcher(), case.pythons[0], says=["a thread of our own"], sampled=False)
    finally:
        group.remove()


def cpu_quota(case):
    """A fifth of a CPU: the application takes as long as without us; the sum is right, ticks come late and are counted."""
    group = Group("cpu", cpu__cfs_period_us="100000", cpu__cfs_quota_us="20000", cpu__max="20000 100000")
    python, took = case.pythons[0], []
    words = python.prefix + group.launcher() + [python.words[-1], "-c", BUSY % 0.3]
    try:
        for _ in range(3 if case.long else 1):
            result = case.program(words, python=None)
            took.append((result.wall, case.without(words, 60, {}).wall))
            process = h.Spool(result.spool).one()
            case.check(250000 < process.total("cpu") < 400000, "cpu %d us of 300,000", process.total("cpu"))
            due, taken, missed = (process.counter("ticks", what) for what in ("due", "taken", "missed"))
            case.check(0 <= due - taken - missed <= 1, "%d ticks due, %d taken, %d missed", due, taken, missed)
    finally:
        group.remove()
    ours_, theirs = (min(column) for column in zip(*took))
    case.check(ours_ < 1.25 * theirs + 0.2, "%.2f s, without us %.2f s", ours_, theirs)  # 0.2: two periods of the quota


# ---------------------------------------------------------------- where the library is

def installed(folder):
    """A tree of scripts/aprof-run and its library in this folder; the script."""
    for name in ("scripts", "build"):
        os.makedirs(os.path.join(folder, name))
    for name in ("scripts/aprof-run", "build/libaprof.so", "build/aprof-settings", "Makefile"):
        shutil.copy(os.path.join(h.REPO, name), os.path.join(folder, name))
    return os.path.join(folder, "scripts", "aprof-run")


def library_paths(case):
    """A path that LD_PRELOAD cannot hold, a library that may not be mapped: a line of the wrapper, and no word of the loader."""
    python = case.pythons[0]
    for name in ("a b", "a:b", "a$LIB", "a${ORIGIN}b"):
        wrapper = installed(os.path.join(h.fresh_folder("paths"), name))
        lives(case, [wrapper], python, preload=False, says=["cannot be preloaded"], sampled=False)
    folder = h.fresh_folder("noexec")
    place_ = os.path.join(folder, "noexec")
    os.mkdir(place_)
    if os.geteuid() == 0 and subprocess.run(["mount", "-t", "tmpfs", "-o", "noexec,size=32m", "tmpfs", place_], stderr=subprocess.DEVNULL).returncode == 0:
        try:
            wrapper = installed(place_)
            lives(case, ["sh", wrapper], python, preload=False, says=["settings are not checked", "the loader says"], sampled=False)
        finally:
            subprocess.run(["umount", "-l", place_])
    # a relative way to it, and children in other folders
    code = "import os, subprocess, sys\nif len(sys.argv) == 1: subprocess.run([sys.executable, '-c', %r], cwd='/')\n" % BUSY.__mod__(0.1) + DONE
    folder = h.fresh_folder("relative")
    result = case.program([os.path.relpath(h.WRAPPER, folder), "-q", "-o", "spool", "--", *python.words, "-c", code], python=None, preload=False, folder=folder,
                          spooled=False)
    case.check(len(h.Spool(result.spool).processes) == 2, "%d processes, not 2", len(h.Spool(result.spool).processes))


def library_goes(case):
    """Its file is replaced, as an installation does it, or removed, in mid-run: what runs goes on."""
    for python in edges(case):
        folder = h.fresh_folder("goes")
        library = os.path.join(folder, "libaprof.so")
        shutil.copy(h.LIBRARY, library)
        code = BUSY % 0.05 + "import os\nopen(%r, 'w').write('not a library')\nos.rename(%r, %r)\n" % (library + "2", library + "2", library) + \
            BUSY % 0.05 + "os.unlink(%r)\n" % library + "child = os.fork()\nif not child: os._exit(0)\nassert os.waitpid(child, 0)[1] == 0\n" + DONE
        lives(case, [], python, words=["-c", code], env={"LD_PRELOAD": library}, folder=folder, own_pid=False, sampled=False)
        case.check(total(h.Spool(os.path.join(folder, "spool"))) > 150000, "cpu %d us of 200,000", total(h.Spool(os.path.join(folder, "spool"))))


# ---------------------------------------------------------------- programs

NOT_PYTHON = (["ls", "/"], ["env"], ["bash", "-c", "for i in 1 2 3; do echo $i | cat; done; exit 3"], ["perl", "-e", "print qq(x\\n); exit 4"],
              ["git", "--version"], ["sh", "-c", "echo no >&2; kill -TERM $$"], ["sh", "-c", "ls /proc/self/task | wc -l"],
              ["sh", "-c", "exec 0<&- 1<&- 2<&-; true"], ["busybox", "ls", "/"], ["awk", "BEGIN { print 1 }"])


def not_python(case):
    """Other programs: nothing of ours is there: no file, no word, no thread."""
    for words in NOT_PYTHON:
        if not shutil.which(words[0]):
            continue
        settings = {"APROF_RATE": "abc", "APROF_LOG": "debug"}
        result = case.program(words, expect=None, twin=words[0] != "env", python=None, spooled=False, settings=settings)
        case.check(not os.path.exists(result.spool) and not glob.glob(os.path.join(result.folder, "*")), "%s left %s", words, os.listdir(result.folder))
        case.check(b"aprof: " not in result.err, "%s: %r", words, result.err)


def static_parent(case):
    """A static program, which the loader never sees, starts Python."""
    for python in edges(case):
        lives(case, place("parent"), python, own_pid=False)


def packed(case):
    """A zipapp; a virtual environment; PYTHONHOME."""
    for python in edges(case):
        folder = h.fresh_folder("packed")
        os.mkdir(os.path.join(folder, "app"))
        with open(os.path.join(folder, "app", "__main__.py"), "w", encoding="ascii") as f:
            f.write("def work():\n    " + (BUSY % 0.1).replace("\n", "\n    ") + "\nwork()\nprint('done')\n")
        done = subprocess.run(python.words + ["-m", "zipapp", "app"], cwd=folder, stderr=subprocess.PIPE, env=h.clean_environment())
        if case.check(done.returncode == 0, "zipapp: %s", h.tail(done.stderr)):
            result = lives(case, [], python, words=["app.pyz"], folder=folder)
            case.check(any("app.pyz" in (f.path or "") for p in h.Spool(result.spool) for frames, _ in p.stacks("cpu") for f in frames), "no frame of app.pyz")
        lives(case, [], python, env={"PYTHONHOME": python.ask("import sys; print(sys.prefix)")})
        if not python.prefix:
            venv = os.path.join(h.fresh_folder("venv"), "venv")
            subprocess.run(python.words + ["-m", "venv", "--without-pip", venv], check=True, env=h.clean_environment())
            lives(case, [os.path.join(venv, "bin", "python"), "-c", DONE], python, words=())


DIES = """
import ctypes, os, signal, time
out, into = os.pipe()
os.set_blocking(out, False)
def child():
    assert ctypes.CDLL(None).prctl(1, signal.SIGUSR1, 0, 0, 0) == 0
    assert signal.sigtimedwait([signal.SIGUSR1], 20)
    try: os.write(1, os.read(out, 5))
    except BlockingIOError: os.write(1, b"before")
signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGUSR1])
if os.fork() == 0:
    child()
    os._exit(0)
for _ in range(10):
    if os.fork() == 0: os._exit(0)
    os.wait()
end = time.process_time() + 0.1
while time.process_time() < end: pass
os.write(into, b"after")
os._exit(0)
"""


def parents_death(case):
    """PR_SET_PDEATHSIG comes when the parent ends, not when our thread in it goes and comes at forks."""
    for python in edges(case):
        lives(case, [], python, words=["-c", DIES], out=b"after", own_pid=False, sampled=False)


HAZARDS = [
    Hazard("places.empty_environment", empty_environment),
    Hazard("places.interpreter_options", interpreter_options),
    Hazard("places.locales", locales, each=False),
    Hazard("places.large_environment", large_environment, each=False),
    Hazard("places.other_users", other_users, each=False),
    Hazard("places.changes_user", changes_user),
    Hazard("places.su", su_and_sudo, each=False),
    Hazard("places.without_folders", without_folders, each=False),
    Hazard("places.limits", limits, each=False),
    Hazard("places.no_thread", no_thread, each=False),
    Hazard("places.small_address_space", small_address_space, each=False),
    Hazard("places.refused_calls", refused_calls, each=False),
    Hazard("places.all_refused", all_refused, each=False),
    Hazard("places.killing_filters", killing_filters, each=False),
    Hazard("places.documented_calls", documented, each=False),
    Hazard("places.sandbox_from_within", sandbox_from_within),
    Hazard("places.closed_descriptors", closed_descriptors),
    Hazard("places.shared_descriptors", shared_descriptors, each=False),
    Hazard("places.native_threads", native_threads, beside=False),
    Hazard("places.small_stacks", small_stacks),
    Hazard("places.thread_local_data", much_thread_local_data, each=False),
    Hazard("places.locked_memory", locked_memory, each=False),
    Hazard("places.scheduling", scheduling, each=False),
    Hazard("places.first_process", first_process, each=False),
    Hazard("places.namespaces", namespaces, each=False),
    Hazard("places.enters_namespaces", enters_namespaces),
    Hazard("places.enters_pid_namespace", enters_pid_namespace, each=False),
    Hazard("places.few_processes", few_processes, each=False),
    Hazard("places.cpu_quota", cpu_quota, each=False, beside=False),
    Hazard("places.library_paths", library_paths, each=False),
    Hazard("places.library_goes", library_goes, each=False),
    Hazard("places.not_python", not_python, each=False),
    Hazard("places.static_parent", static_parent, each=False),
    Hazard("places.packed", packed, each=False),
    Hazard("places.parents_death", parents_death, each=False),
]
