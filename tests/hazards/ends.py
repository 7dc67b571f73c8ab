# SPDX-License-Identifier: MIT
"""ends: however a process ends, its status is its own and its samples are kept."""
import concurrent.futures
import os
import shutil
import statistics
import subprocess
import sys
import zipfile

import hazard
from hazard import Hazard, h

PROGRAM = os.path.join(hazard.HERE, "programs", "ends.py")
BURNT_US = 60000  # by the program, before it ends
AT_ONCE = 3       # ways of one row: most of them wait
STARVED_ROUNDS = 4
SLACK = 0.010     # s: a turn of the scheduler on a machine with too much to do

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


STARVED = {"starved__exit": (14, "exit"), "starved_exit": (15, "exit"), "starved_exec": (0, "exec")}


def starved_end(case, python, way, status, ended):
    """(how long it waited for us at its end, what a wait of 20 ms was to it, ticks that met their deadline)."""
    behind = hazard.need_library("last_call")
    result = case.program([PROGRAM, way], python=python, expect=status, settings={"LD_PRELOAD": h.LIBRARY + ":" + behind})
    if result is None or result.status != status:
        return 0, 0, 0
    case.check(result.err == b"", "%s: stderr %r", way, result.err[-200:])
    spool, pid = h.Spool(result.spool), result.pid
    case.check(last_words(spool, pid) == ended, "%s: it ended by %r", way, last_words(spool, pid))
    usual, began, let_go = [float(word) for word in result.out.split()][:3]
    return let_go - began, usual, sum(p.counter("dropped", "deadline") for p in spool.by_pid(pid))


def starved_ends(case, pythons):
    """Each way to end; how many ticks met their deadline in all."""
    unanswered = 0
    for way, (status, ended) in STARVED.items():
        rounds = [starved_end(case, python, way, status, ended) for python in pythons for _ in range(3 if case.long else 1)]
        waited, usual = (statistics.median(row[column] for row in rounds) for column in (0, 1))
        case.check(waited <= 1.5 * usual + SLACK, "%s: it waited %.1f ms, where a wait of 20 takes %.1f", way, 1e3 * waited, 1e3 * usual)
        unanswered += sum(row[2] for row in rounds)
    return unanswered


def starved(case):
    """A sampler that gets no CPU: the end waits 20 ms at most, and is told truly."""
    pythons = [python for python in case.pythons if not python.prefix][:None if case.long else 1]
    if not pythons:
        raise h.Skip("needs a Python that is started without another program")
    tried = any(starved_ends(case, pythons) for _ in range(STARVED_ROUNDS))  # the scheduler may have been kind to it
    case.check(tried, "the sampler had CPU each time: nothing was tried")


def compare_ways(case, ways):
    """(words, options): as without us, by whatever way Python is started."""
    with concurrent.futures.ThreadPoolExecutor(AT_ONCE) as pool:
        for done in [pool.submit(case.program, words, expect=None, twin=True, spooled=False, timeout=30, **options) for words, options in ways]:
            done.result()


def starts(case):
    """Programs from stdin, -c, -m, a zip file, interactive; over at once, and in the middle of an import."""
    folder = h.fresh_folder("ends-starts")
    with zipfile.ZipFile(os.path.join(folder, "app.pyz"), "w") as app:
        app.writestr("__main__.py", "import helper\nhelper.end()")
        app.writestr("helper.py", "import sys\ndef end(): sys.exit('from a zip file')")
    with open(os.path.join(folder, "leaves.py"), "w", encoding="utf-8") as module:
        module.write("import os\nos._exit(21)\n")
    asks = b"import sys\nprint(6 * 7)\nundefined\nsys.exit(3)\n"
    compare_ways(case, [
        (["-"], {"stdin": b"print('stdin'); import sys; sys.exit(5)"}),
        (["-i", "-q"], {"stdin": asks}),
        (["-i", "-q", "-c", "print(1)"], {"stdin": b"import os; os._exit(9)\n"}),
        (["-m", "this"], {}),
        (["-m", "no_such_module"], {}),
        ([os.path.join(folder, "app.pyz")], {}),
        (["-c", "import leaves"], {"env": {"PYTHONPATH": folder}}),
        (["-c", "syntax error"], {}),
        (["--version"], {}),
        (["-S", "-E", "-c", "pass"], {}),
        (["-X", "no_such_option", "-W", "error", "-c", "pass"], {}),
        (["/no/such/file.py"], {}),
    ])
    compare_ways(case, [(["-c", "import os; os._exit(%d)" % status], {}) for status in range(30 if case.long else 3)])


def loop_closing(case):
    """The end while a loop is closed over tasks, generators and threads: no effect in Python."""
    for _ in range(500 if case.long else 3):
        compare_ways(case, [([PROGRAM, "loop_closing"], {})])


def fork_under_way(case):
    """One thread forks without end while another ends the process."""
    for _ in range(50 if case.long else 3):
        case.program([PROGRAM, "fork_under_way"], expect=12, spooled=False, timeout=30)


def sealed_meanwhile(case):
    """The end comes at the moment at which a window is sealed."""
    code = ("import sys, time\nfor i in range(300): exec('def f%d(n): return f%d(n - 1) if n else sum(range(3000))' % (i, i))\n"
            "end = time.monotonic() + float(sys.argv[1])\nwhile time.monotonic() < end:\n"
            "    for i in range(300): globals()['f%d' % i](i % 40)\nimport os; os._exit(22)")
    for step in range(40 if case.long else 2):
        result = case.program(["-c", code, "%.3f" % (0.95 + 0.005 * (step * 7 % 40))], expect=22, settings={"APROF_WINDOW": "1", "APROF_RATE": "1000"})
        if result:
            case.check(last_words(h.Spool(result.spool), result.pid) == "exit", "it did not end by exit")


def told_to_stop(case):
    """APROF_DELAY and APROF_DURATION end the profile, not the application."""
    for settings, ended in (({"APROF_DURATION": "1"}, "duration"), ({"APROF_DELAY": "1"}, "exit")):
        result = case.program(["-c", "import sys, time\nend = time.monotonic() + 1.4\nwhile time.monotonic() < end: pass\nprint('over'); sys.exit(23)"],
                              expect=23, settings=settings)
        if result:
            said = last_words(h.Spool(result.spool), result.pid)
            case.check(result.out == b"over\n" and not result.err, "it said %r %r", result.out, result.err)
            case.check(said == ended, "%s: it ended by %r", settings, said)


def under_load(case):
    """Starts and ends beside two processes that leave no CPU: no hang, and each says how it ended."""
    load = [subprocess.Popen([sys.executable, "-S", "-c", "while True: pass"]) for _ in range(2)]
    try:
        for number in range(300 if case.long else 4):
            result = case.program([PROGRAM, "os_exit"], expect=3, timeout=60)
            if result:
                case.check(not result.out and not result.err, "it said %r %r", result.out, result.err)
                said = last_words(h.Spool(result.spool), result.pid)
                case.check(said == "exit", "end %d: it ended by %r", number, said)
                shutil.rmtree(result.folder, ignore_errors=True)
    finally:
        for process in load:
            process.kill()
            process.wait()


def daemon(case):
    """The parent of a daemon ends in the middle of its fork: a reader does not say that it was killed."""
    code = ("import os, time\nend = time.thread_time() + 0.1\nwhile time.thread_time() < end: pass\n"
            "if os.fork(): os._exit(0)\nos.setsid()\nif os.fork(): os._exit(0)\nprint('daemon', flush=True)")
    result = case.program(["-c", code], twin=True)
    if result:
        case.check(last_words(h.Spool(result.spool), result.pid) == "exit", "it did not end by exit")
        report = subprocess.run([h.TOOL, "report", result.spool], stdout=subprocess.PIPE, check=True).stdout
        case.check(b"without notice" not in report, "the report: %r", report[:200])


HAZARDS = [
    Hazard("ends.exits", all_ways(EXITS)),
    Hazard("ends.shutdown", all_ways(SHUTDOWN)),
    Hazard("ends.signals", all_ways(SIGNALS)),
    Hazard("ends.more_signals", all_ways(MORE_SIGNALS), longer=True),
    Hazard("ends.starved", starved, each=False, beside=False),
    Hazard("ends.starts", starts),
    Hazard("ends.loop_closing", loop_closing),
    Hazard("ends.fork_under_way", fork_under_way),
    Hazard("ends.sealed_meanwhile", sealed_meanwhile),
    Hazard("ends.told_to_stop", told_to_stop),
    Hazard("ends.under_load", under_load, beside=False),
    Hazard("ends.daemon", daemon),
    Hazard("ends.main_thread", all_ways(OF_THREADS)),
]
