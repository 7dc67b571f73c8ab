# SPDX-License-Identifier: MIT
"""ends: however a process ends, its status is its own and its samples are kept."""
import concurrent.futures
import os

import hazard
from hazard import Hazard, h

PROGRAM = os.path.join(hazard.HERE, "programs", "ends.py")
BURNT_US = 60000  # by the program, before it ends
AT_ONCE = 3       # ways of one row: most of them wait

# What is right, way by way: status, stdout, how the spool says that it ended (None:
# killed, so there may be none). stderr is empty, or that of a run without us where
# something must be said there (SPEAKS).
EXITS = {
    "sys_exit_in_thread": (4, b"", "exit"),
    "sys_exit_words": (1, b"", "exit"),
    "os_exit": (3, b"", "exit"),
    "os_exit_in_thread": (4, b"", "exit"),
    "c_exit_in_thread": (5, b"", "exit"),
    "c_exit_again": (6, b"exit again\n", "exit"),
    "c_quick_exit": (7, b"at_quick_exit\n", "exit"),
    "c_abort_at_exit": (134, b"", None),
    "c_all_at_once": (8, b"", "exit"),
    "c_exit_in_handler": (9, b"", "exit"),
    "c_under_exit_in_handler": (10, b"", "exit"),
    "c_exec_at_exit": (0, b"another program, at exit\n", "exit exec"),
    "c_fork_at_exit": (0, b"a child, at exit\n", "exit"),
}
SHUTDOWN = {
    "uncaught": (1, b"", "exit"),
    "uncaught_in_thread": (0, b"excepthook KeyError\n", "exit"),
    "raising_at_exit": (0, b"last\n__del__\n", "exit"),
    "py_fork_at_exit": (0, None, "exit"),
    "py_exec_at_exit": (0, b"from atexit\n", "exit exec"),
    "child_falls_off_the_end": (0, b"child ended 0\n", "exit"),
    "daemon_threads": (0, b"", "exit"),
    "threads_outlive_main": (0, b"", "exit"),
    "executor_at_exit": (0, b"the last of them\n", "exit"),
    "loop_interrupted": (130, b"interrupted\n", None),
}
SIGNALS = {
    "SIGTERM": (143, b"", None),
    "SIGHUP": (129, b"", None),
    "SIGABRT": (134, b"", None),
    "SIGSEGV": (139, b"", None),
    "SIGKILL": (137, b"", None),
    "segfault": (139, b"", None),
    "interrupted": (130, b"", None),
    "broken_pipe": (141, b"", None),
    "alarm": (142, b"", None),
    "profiling_timer": (155, b"", None),
    "profiling_timer_handled": (13, b"", "exit"),
    "handled": (0, b"handler SIGHUP\nhandler SIGUSR1\nhandler SIGTERM\natexit\n", "exit"),
    "group": (143, b"", None),
}
MORE_SIGNALS = {name: (128 + number, b"", None) for name, number in (
    ("SIGQUIT", 3), ("SIGILL", 4), ("SIGTRAP", 5), ("SIGBUS", 7), ("SIGFPE", 8), ("SIGUSR1", 10), ("SIGSTKFLT", 16),
    ("SIGVTALRM", 26), ("SIGIO", 29), ("SIGPWR", 30), ("SIGSYS", 31))}
MORE_SIGNALS.update(out_of_cpu=(152, b"", None), no_memory=(1, b"freed\n", "exit"))
SPEAKS = ("sys_exit_words", "uncaught", "raising_at_exit", "py_fork_at_exit", "loop_interrupted", "interrupted", "no_memory")
OF_THREADS = {
    "main_thread_ends": (0, b"and now without it\n", "exit"),
    "main_thread_ends_alone": (0, b"and now nobody\n", "exit"),
    "unseen_thread_is_last": (0, b"and now somebody unseen\n", "exit"),
}


def last_words(spool, pid):
    """How the spool says that this process ended; "" without metadata."""
    metas = [meta for process in spool.by_pid(pid) for meta in process.metas()]
    return metas[-1]["ended"] if metas else ""


def check_kept(case, way, spool, pid, ended):
    """Nothing is lost where it was said that it ends: a tick or two of the sixty ms."""
    processes = spool.by_pid(pid)
    case.account(spool, [pid])
    case.check(last_words(spool, pid) in ended.split(), "%s: it ended by %r, not %r", way, last_words(spool, pid), ended)
    kept = sum(h.total_where(list(p.stacks("cpu")), lambda f: any(x.name == "burn" for x in f)) for p in processes)
    case.check(kept > 0.6 * BURNT_US, "%s: %d of %d µs are kept", way, kept, BURNT_US)


def end(case, way, right, before=(), **options):
    status, out, ended = right
    words = list(before) + [PROGRAM, way, hazard.need_library("ends")]
    result = case.program(words, expect=status, twin=way in SPEAKS, spooled=False, timeout=30, **options)
    if result is None:
        return
    case.check(out is None or result.out == out, "%s: stdout %r, not %r", way, result.out[-200:], out)
    if way not in SPEAKS:
        case.check(result.err == b"", "%s: stderr %r", way, result.err[-300:])
    if ended:
        check_kept(case, way, h.Spool(result.spool), result.pid, ended)


def all_ways(rights):
    def function(case):
        with concurrent.futures.ThreadPoolExecutor(AT_ONCE) as pool:
            for done in [pool.submit(end, case, way, right) for way, right in rights.items()]:
                done.result()
    return function


HAZARDS = [
    Hazard("ends.exits", all_ways(EXITS)),
    Hazard("ends.shutdown", all_ways(SHUTDOWN)),
    Hazard("ends.signals", all_ways(SIGNALS)),
    Hazard("ends.more_signals", all_ways(MORE_SIGNALS), longer=True),
    Hazard("ends.main_thread", all_ways(OF_THREADS)),
]
