# SPDX-License-Identifier: MIT
"""signals: the application's handlers, masks, timers and waiting calls are its own."""
import os

import hazard
from hazard import Hazard, h

FAST = {"APROF_RATE": "1000"}  # as many CPU ticks as the kernel gives
PROGRAMS = os.path.join(hazard.HERE, "programs")


def words_of(program, *arguments):
    return [os.path.join(PROGRAMS, program)] + [str(a) for a in arguments]


def in_c(case, what, *arguments, tries=1, **options):
    """A part of signals_c.py under the profiler, as fast as it gets."""
    options.setdefault("settings", FAST)
    return case.program(words_of("signals_c.py", hazard.need_library("signals"), what, *arguments), tries=tries, **options)


def counted(result, *keys):
    return h.Spool(result.spool).one().counter(*keys)


def reader_at_end(result):
    return h.Spool(result.spool).one().metas()[-1]["reader"]


def same_lines(case, ours, theirs):
    """Two files, line for line; how many lines."""
    ours, theirs = ([line.rstrip() for line in open(path, encoding="utf-8")] for path in (ours, theirs))
    for one, other in zip(ours, theirs):
        case.check(one == other, "not as without us: %s | without us: %s", one, other)
    case.check(len(ours) == len(theirs), "%d lines, without us %d", len(ours), len(theirs))
    return len(ours)


def matrix_of(case, what):
    folder = h.fresh_folder(case.name)
    ours, theirs = os.path.join(folder, "ours"), os.path.join(folder, "theirs")
    words = words_of("signals_c.py", hazard.need_library("signals"), what)
    other = case.without(words + [theirs], 60, {"python": case.python})
    result = in_c(case, what, ours, tries=0)
    if other and result:
        case.judge(other.status, 0, "without us", other.err)
        case.tried(same_lines(case, ours, theirs))
    return result


def matrix(case):
    """Each action by each way, met by a real fault or signal: all that can be seen of it is as without us,
    while reads of the profiler fault as well."""
    result = matrix_of(case, "matrix")
    if result:
        case.check(counted(result, "dropped", "fault") > 0, "no read of ours faulted")


def matrix_raw(case):
    """The same by the system call, which passes us by."""
    matrix_of(case, "matrix_raw")


def change(case):
    """Another action every millisecond and a real fault in it, while reads of ours fault."""
    for what in ("change", "change_raw"):  # by system call: then ours must not fault on purpose
        result = in_c(case, what, 60 if case.long else 0.4)
        if result:
            case.check(result.out == b"wrong 0\n", "faults went wrong: %r", result.out)
            case.check(what == "change_raw" or counted(result, "dropped", "fault") > 0, "no read of ours faulted")


def chain(case):
    """A handler by system call that passes on what it does not know gets our faults, and passes them on to us."""
    result = in_c(case, "chain", 60 if case.long else 0.4)
    if result:
        case.check(b"faults True" in result.err, "no fault of the program met it: %r", result.err)


def take(case):
    """A handler that ends the process never ends it for a read of ours."""
    for way, reader in (("libc", "copy"), ("raw", "syscall")):
        result = in_c(case, "take", way)
        if result:
            case.check(result.out == b"done\n", "%s: %r", way, result.out)
            case.check(reader_at_end(result) == reader, "%s: the reader is %s", way, reader_at_end(result))
            case.check(counted(result, "dropped", "fault") > 0, "%s: no read of ours failed", way)


def crash(case):
    """A real crash dies of its signal, with faulthandler's report where that is asked for."""
    for signo in (11, 7):
        for report in ((), ("faulthandler",)):
            result = case.program(words_of("signals_c.py", hazard.need_library("signals"), "crash", signo, *report), expect=128 + signo, twin=True)
            if result and report:
                case.check(b"Fatal Python error: " in result.err and b"signals_c.py" in result.err, "no report: %r", result.err[-200:])


def in_python(case, what, *arguments, tries=1):
    """A part of signals_py.py says what it says without us, to the letter."""
    words = words_of("signals_py.py", hazard.need_library("signals"), what, *arguments)
    result = case.program(words, settings=FAST, tries=tries)
    other = case.without(words, 60, {"python": case.python}) if result else None
    if other:
        case.judge(other.status, 0, "without us", other.err)
        for name in ("out", "err"):
            ours, theirs = getattr(result, name), getattr(other, name)
            case.check(ours == theirs, "std%s says %r, without us %r", name, ours[-300:], theirs[-300:])


def handlers(case):
    in_python(case, "handlers", tries=180)


def faulthandlers(case):
    in_python(case, "faults", tries=24)


def loops(case):
    in_python(case, "loops", tries=60)
    in_python(case, "wakeups", tries=20)


def waits(case):
    in_python(case, "waits", tries=50)
    in_python(case, "deaf", tries=30)


def urgent(case):
    """The application's SIGURG is its own: sent to threads that are ticked, and by timers of its own."""
    times = 20000 if case.long else 100
    in_python(case, "urgent", times, tries=2 * times)


def timers(case):
    in_python(case, "timers", tries=15)


def last_timer(case):
    """Our wait at the end does not make it likelier that a timer of the application kills."""
    killed = 0
    for _ in range(4):
        result = h.run(words_of("signals_py.py", hazard.need_library("signals"), "last"), case.name, python=case.python)
        case.tried()
        if result.status == 128 + 14:
            killed += 1
        else:
            case.judge(result.status, 0, "last", result.err)
            case.account(h.Spool(result.spool), [result.pid])
    case.check(killed <= 1, "%d of 4 were killed; without us next to none", killed)  # the machine may be slow once


def naive(case):
    """Waiting calls in C that take EINTR for a failure: none is interrupted by our ticks."""
    result = in_c(case, "naive", 60 if case.long else 1, tries=0, timeout=120)
    if result:
        case.tried(int(result.err or b"0"))
        case.check(result.out == b"kinds 16 interrupted []\n", "interrupted: %r", result.out)
        case.check(h.Spool(result.spool).one().counter("samples") > 20, "hardly a tick")


# A profiled Python that has SIGURG ignored shows it as caught in /proc, so that is not looked at.
IGNORED = r"""
import re, signal
bits = int(re.search(r"SigIgn:\s*(\w+)", open("/proc/self/status").read())[1], 16)
print([n for n in (7, 11) if bits >> n - 1 & 1], [signal.getsignal(n) == signal.SIG_IGN for n in (7, 11, 23)], flush=True)
"""
# How a program makes another: what is ignored here is ignored there.
ROADS = """
import os, signal, subprocess, sys, time
end = time.process_time() + 0.05
while time.process_time() < end: sum(range(500))
print([signal.getsignal(n) == signal.SIG_IGN for n in (7, 11, 23)])
for n in (7, 11, 23): signal.signal(n, signal.SIG_IGN)
words = [sys.executable, "-S", "-c", sys.argv[1]]
shell = ["/bin/grep", "SigIgn", "/proc/self/status"]
for options in ({}, {"close_fds": False, "restore_signals": False}):
    print(subprocess.run(shell, stdout=subprocess.PIPE, **options).stdout, flush=True)
for options in ({}, {"setsigdef": [7, 11, 23]}):
    os.waitpid(os.posix_spawn(shell[0], shell, os.environ, **options), 0)
os.waitpid(os.posix_spawn(words[0], words, os.environ), 0)
try: os.execv("/nowhere", words)
except OSError as error: print(error, [signal.getsignal(n) == signal.SIG_IGN for n in (7, 11, 23)], flush=True)
os.kill(os.getpid(), 7); os.kill(os.getpid(), 11); os.kill(os.getpid(), 23)
signal.signal(7, signal.SIG_DFL)
os.execv(words[0], words)
"""


def ignored(case):
    """What is ignored is ignored in the next image too, by every road; also what was so from the start."""
    words = ["/bin/sh", "-c", "trap '' SEGV URG; exec \"$@\"", "sh"] + case.python.words + ["-c", ROADS, IGNORED]
    result = case.program(words, python=None, tries=8, spooled=False)
    other = case.without(words, 60, {"python": None})
    if result and other:
        case.check(result.out == other.out and other.out.count(b"True") > 5, "says %r, without us %r", result.out[-900:], other.out[-900:])
        case.check(result.err == other.err, "stderr says %r", result.err[-300:])
        processes = h.Spool(result.spool).by_pid(result.pid)
        case.check(processes and any(p.counter("samples") for p in processes), "not sampled")


HAZARDS = [
    Hazard("signals.actions", matrix),
    Hazard("signals.actions-raw", matrix_raw),
    Hazard("signals.actions-change", change),
    Hazard("signals.actions-chain", chain),
    Hazard("signals.actions-end-99", take),
    Hazard("signals.crash", crash),
    Hazard("signals.handlers", handlers),
    Hazard("signals.faulthandler", faulthandlers),
    Hazard("signals.loops", loops),
    Hazard("signals.waits", waits),
    Hazard("signals.urgent", urgent),
    Hazard("signals.timers", timers),
    Hazard("signals.timers-last", last_timer),
    Hazard("signals.eintr", naive),
    Hazard("signals.exec-ignored", ignored),
]
