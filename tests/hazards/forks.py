# SPDX-License-Identifier: MIT
"""forks: however a process comes to be, it is well, and in the spool once or counted by the one above it."""
import os
import stat
import time

import hazard
from hazard import Hazard, h
from processes import counted, gone

PROGRAM = os.path.join(hazard.HERE, "programs", "forks.py")
QUIET = ["-W", "ignore::DeprecationWarning"]  # Python's own, of forks beside threads; then stderr must stay empty


def run(case, what, *args, tries=1, timeout=60, quiet=True, **options):
    """Runs a program of programs/forks.py; its truth and spool, or None when it failed and was counted."""
    env = {"HAZARD_LIBRARY": hazard.need_library("forks")}
    words = QUIET + [PROGRAM, what] + [str(a) for a in args]
    result = case.program(words, env=env, tries=tries, timeout=timeout, **options)
    if result is None or result.status != 0:
        return None
    if quiet:
        case.check(not result.err, "stderr: %s", h.tail(result.err))
    path = os.path.join(result.folder, "truth.json")
    return (h.read_truth(path) if os.path.exists(path) else None), h.Spool(result.spool), result


def account(case, truth, spool):
    """Each forked process is in the spool once, or counted by the one above it."""
    children = [p for p in spool if p.pid != truth["pid"]]
    for pid in {p.pid for p in children}:
        case.account(spool, [pid])
    found = len(children) + sum(counted(p) for p in spool)
    if found < truth["forks"]:
        case.add("lost", "%d forks, %d in the spool, %d counted", truth["forks"], len(children), found - len(children))
    # one that ends between its first file and being taken off the count is both
    most = truth["forks"] + truth["may_be"] + 1 + truth["forks"] // 50
    case.check(found <= most, "%d forks, %d in the spool, %d counted", truth["forks"], len(children), found - len(children))
    # where the machine is so busy that we do not run before a child's end, it is counted instead
    seen = [pid for pid in truth["long"] if spool.by_pid(pid)]
    case.check(2 * len(seen) >= len(truth["long"]), "%d of %d long-lived children are in the spool", len(seen), len(truth["long"]))


def plain(what, *args, tries=1, long_args=None, long_tries=None):
    """A row: the program's own verdict, and every process accounted for."""
    def test(case):
        chosen = long_args if case.long and long_args else args
        ran = run(case, what, *chosen, tries=long_tries if case.long and long_tries else tries, timeout=300 if case.long else 60)
        if ran:
            account(case, *ran[:2])
    return test


def storm(case):
    """Forks while eight threads burn through ever new stacks, ticking as fast as can be."""
    count = 10000 if case.long else 20
    settings = {"APROF_CLOCK": "monotonic", "APROF_RATE": "1000"}
    result = case.program(QUIET + [h.oracle("forks.py"), str(count), "8"], settings=settings, tries=count, timeout=1800 if case.long else 60)
    if result is None or result.status != 0:
        return
    truth = h.read_truth(os.path.join(result.folder, "truth.json"))
    case.check(not truth["bad"], "%d children ended with %s", len(truth["bad"]), truth["bad"][:3])
    account(case, {"pid": truth["pid"], "forks": count, "may_be": 0, "long": []}, h.Spool(result.spool))


def loader(case):
    """Forks while other threads allocate, load and unload a library, make threads, and import."""
    count = 200 if case.long else 10
    ran = run(case, "storms", count, hazard.need_library("forks_loaded"), tries=count, timeout=300 if case.long else 60)
    if ran:
        account(case, *ran[:2])


def coroutine(case):
    """A child forked inside a coroutine runs a loop of its own; its parent's tasks are not its."""
    ran = run(case, "coroutine", tries=2)
    if not ran:
        return
    truth, spool, _ = ran
    account(case, truth, spool)
    for pid in truth["long"]:
        for process in spool.by_pid(pid):
            # until Python's own hooks have run, the loop is its parent's
            stale = h.total_where(list(process.stacks("task")), lambda f: any(x.name == "sleeper_of_parent" for x in f))
            case.check(stale <= process.total("wall"), "three tasks of its parent have %d µs in a child of %d", stale, process.total("wall"))
    own = [f for pid in truth["long"][:1] for p in spool.by_pid(pid) for f, _ in p.stacks("task") if any(x.name == "sleeper_of_child" for x in f)]
    case.check(own or not spool.by_pid(truth["long"][0]), "the child's own tasks are not seen")


def spool_gone(case):
    """Children of a process whose spool was taken away make it anew."""
    ran = run(case, "no-spool", tries=4, spooled=False)
    if ran:
        truth, spool, _ = ran
        seen = [pid for pid in truth["long"] if len(spool.by_pid(pid)) == 1]
        case.check(2 * len(seen) >= len(truth["long"]), "%d of %d children are in the new spool", len(seen), len(truth["long"]))


def daemon(case):
    """Two forks, a session, every descriptor closed, an umask, the root directory: its samples are kept, its own state untouched."""
    env = {"HAZARD_LIBRARY": hazard.need_library("forks")}
    started = h.Run(QUIET + [PROGRAM, "daemon"], case.name, python=case.python, env=env)
    case.tried()
    result = started.finish()
    case.judge(result.status, 0, "daemon", result.err)
    end = time.monotonic() + 30
    while not os.path.exists(started.truth_path) and time.monotonic() < end:
        time.sleep(0.02)
    truth = started.truth()
    gone(truth["pid"])
    spool = h.Spool(result.spool)
    case.account(spool, [result.pid, truth["pid"]])
    case.check(truth["descriptors"] == ["0", "1", "2", "3"], "descriptors of the daemon: %s", truth["descriptors"])
    case.check((truth["folder"], truth["umask"]) == ("/", 0o777), "folder and umask: %s, %o", truth["folder"], truth["umask"])
    for process in spool.by_pid(truth["pid"]):
        case.check(process.total("cpu") >= 0.08e6, "the daemon's cpu: %d of 100,000 µs", process.total("cpu"))
    files = [name for name in os.listdir(result.spool) if name.startswith("aprof.") and not name.endswith(".tmp")]
    modes = {stat.S_IMODE(os.stat(os.path.join(result.spool, name)).st_mode) for name in files}
    case.check(modes == {0o600}, "rights of the files: %s", [oct(m) for m in modes])


def exec_fails(case):
    """Every exec that fails, for every reason: the process is sampled on, and leaves no window for each."""
    ran = run(case, "exec-fails", tries=3 * 34 + 7)
    if not ran:
        return
    truth, spool, _ = ran
    account(case, truth, spool)
    for process in spool:
        case.check(len(process.windows) <= 4, "process %d has %d windows", process.pid, len(process.windows))
    for process in spool.by_pid(truth["pid"]):
        case.check(process.total("cpu") / 1e6 >= 0.8 * truth["cpu"] - 0.03, "cpu %.3f of %.3f s", process.total("cpu") / 1e6, truth["cpu"])


def exec_self(case):
    """A process that execs itself again and again, also from other threads and by descriptor."""
    count = 60 if case.long else 4
    ran = run(case, "exec-self", count, tries=count, spooled=False, timeout=120)
    if ran:
        truth, spool, result = ran
        images = len(spool.by_pid(result.pid))
        case.check(truth["pid"] == result.pid, "the pid has changed")
        case.check(count / 2 <= images <= count + 1, "%d images of %d are in the spool", images, count + 1)


def exec_bare(case):
    """Into an environment that lacks us, or that has a preload of its own."""
    for kind, argument in (("empty", ""), ("other", hazard.need_library("forks"))):
        result = case.program([PROGRAM, "exec-bare", kind, argument], twin=True, env={"HAZARD_LIBRARY": argument})
        if result and result.status == 0:
            ended = [m["ended"] for p in h.Spool(result.spool) for m in p.metas()]
            # open: on a machine so busy that we do not come to it in time, or that the exec comes late
            case.check(ended and set(ended) <= {"exec", "open"} and len(ended) <= 2, "windows ended by %s", ended)


def uvloop(case):
    """Many subprocesses of uvloop at a time."""
    hazard.need_modules(case.python, "uvloop")
    run(case, "asyncio", "uvloop", 200 if case.long else 40, tries=200 if case.long else 40)


def interpreters(case):
    """Sub-interpreters that live, come and go beside subprocesses, and before forks."""
    if case.python.ask("import _interpreters") is None and case.python.ask("import _xxsubinterpreters") is None:
        raise h.Skip("no module that makes sub-interpreters")
    plain("interpreters", 6, tries=12, long_args=(100,), long_tries=200)(case)


def pools(case):
    """Pools whose workers do one thing each, and executors."""
    for method in ("fork", "spawn", "forkserver") if case.long else ("fork",):
        ran = run(case, "pools", method, tries=8)
        if ran:
            truth, spool, _ = ran
            workers = set(truth["long"])
            case.account(spool, [pid for pid in workers if spool.by_pid(pid)])
            seen = [pid for pid in workers if spool.by_pid(pid)]
            case.check(2 * len(seen) >= len(workers), "%d of %d workers are in the spool", len(seen), len(workers))


def median(values, quantile=0.5):
    return sorted(values)[int(quantile * (len(values) - 1))]


def pause(case):
    """What we cost the caller of os.fork, by handlers that stand around ours: never 20 ms."""
    count = 1000 if case.long else 20
    library = hazard.need_library("forks")
    for others in (0, 2):
        result = case.program(QUIET + [PROGRAM, "pause", str(count), str(others)], tries=count, timeout=300,
                              env={"HAZARD_LIBRARY": library, "LD_PRELOAD": "%s:%s" % (h.LIBRARY, library)})
        if result is None or result.status != 0:
            continue
        spent = sorted(h.read_truth(os.path.join(result.folder, "truth.json"))["spent"])
        median = spent[len(spent) // 2]
        # the worst is shown, not judged: a caller that is not run for a while was not kept by us
        case.check(0 < median <= 20000, "beside %d threads: %d µs", others, median)
        if case.long:
            print("      %s on %s beside %d threads: median %d µs, 99 in 100 %d, worst %d" % (
                case.name, case.python.label, others, median, spent[len(spent) * 99 // 100], spent[-1]), flush=True)


HAZARDS = [
    Hazard("forks.storm", storm),
    Hazard("forks.threads", plain("threads", tries=48)),
    Hazard("forks.handler", plain("handler", tries=20)),
    Hazard("forks.c", plain("c", tries=19)),
    Hazard("forks.coroutine", coroutine),
    Hazard("forks.loader", loader),
    Hazard("forks.spool-gone", spool_gone),
    Hazard("forks.daemon", daemon),
    Hazard("forks.exec-fails", exec_fails),
    Hazard("forks.exec-self", exec_self),
    Hazard("forks.exec-bare", exec_bare),
    Hazard("forks.spawns", plain("spawns", tries=30)),
    Hazard("forks.asyncio", plain("asyncio", "asyncio", 40, tries=40, long_args=("asyncio", 200), long_tries=200)),
    Hazard("forks.uvloop", uvloop),
    Hazard("forks.interpreters", interpreters),
    Hazard("forks.pools", pools),
    Hazard("forks.pause", pause),
]
