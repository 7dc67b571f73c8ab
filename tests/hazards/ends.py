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
SPEAKS = ("sys_exit_words", "uncaught", "raising_at_exit", "loop_interrupted", "interrupted", "no_memory")
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
    case.check(last_words(spool, pid) == ended, "%s: it ended by %r, not %r", way, last_words(spool, pid), ended)
    kept = sum(h.total_where(list(p.stacks("cpu")), lambda f: any(x.name == "burn" for x in f)) for p in processes)
    case.check(kept > 0.6 * BURNT_US, "%s: %d of %d µs are kept", way, kept, BURNT_US)


def end(case, way, right, before=(), **options):
    status, out, ended = right
    words = list(before) + [PROGRAM, way, hazard.need_library("ends")]
    result = case.program(words, expect=status, twin=way in SPEAKS, spooled=False, timeout=30, **options)
    if result is None:
        return
    case.check(result.out == out, "%s: stdout %r, not %r", way, result.out[-200:], out)
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
    Hazard("ends.main_thread", all_ways(OF_THREADS)),
]
