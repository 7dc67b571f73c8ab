# SPDX-License-Identifier: MIT
"""endings: however a program ends, its status, its output and its stacks are there."""
import os
import random
import signal
import struct
import subprocess
import time

import harness as h
from harness import need

LAST = 0.1  # s: what a kill may lose


def account(path):
    """(CPU since the oracle's first line, CPU before it), seconds, true to the last moment."""
    need(os.path.exists(path + ".live"), "the oracle left no account")
    with open(path + ".live", "rb") as f:
        return struct.unpack("dd", f.read(16))


def ways_to_start():
    yield "bare", None
    if h.has_wrapper():
        yield "aprof-run", [h.WRAPPER, "-q", "--"]


def ended(python, words, status, how, wrapper, settings=None):
    run = h.Run(words, "end-" + words[-2], python=python, wrapper=wrapper, settings=settings)
    result = run.finish()
    need(result.status == status, "%s: status %d, not %d; stderr: %s", how, result.status, status, h.tail(result.err))
    need(b"aprof" not in result.out, "%s: something of ours on stdout: %r", how, result.out[:200])
    need(not [line for line in result.err.splitlines() if line.startswith(b"aprof:")], "%s: %s", how, h.tail(result.err))
    return run, result


def check_kept(run, result, lost, how):
    """cpu of the program's own functions against its account, less what may be lost."""
    used, _ = account(run.truth_path)
    process = [p for p in h.Spool(result.spool) if p.pid == result.pid]
    need(process, "%s: no file of process %d", how, result.pid)
    kept = sum(h.total_where(list(p.stacks("cpu")), lambda f: any(h.base(x) == "endings.py" for x in f)) for p in process)
    slack = max(0.01 * used, 0.010)
    need(kept >= 1e6 * (used - lost - slack), "%s: %.0f of %.0f ms of cpu are there", how, kept / 1e3, 1e3 * used)
    need(kept <= 1e6 * (used + slack + 0.05), "%s: %.0f ms of cpu, only %.0f were used", how, kept / 1e3, 1e3 * used)
    return kept / 1e6 / used


WRAPPED = ("status", "zero", "uncaught", "segfault", "term")


def ending(way, status, before=(), lost=0.0, says=None):
    def test(python, long):
        shares = []
        for how, wrapper in ways_to_start() if way in WRAPPED else [("bare", None)]:
            run, result = ended(python, list(before) + [h.oracle("endings.py"), way, "0.4"], status, how, wrapper)
            if says:
                need(says in result.out + result.err, "%s: %r is not in the output: %s", how, says, h.tail(result.err))
            shares.append(check_kept(run, result, lost, how))
        return "kept " + ", ".join("%.3f" % s for s in shares)
    return test


def said_lost(process, period=10000):
    """µs of the samples that it says it dropped."""
    return period * sum(n for m in process.metas() for key, n in m["dropped"].items() if key not in h.KEPT)


def exec_of_itself(python, long):
    """Three images of one process: nothing lost, nothing counted twice."""
    for how, wrapper in ways_to_start():
        run, result = ended(python, [h.oracle("endings.py"), "exec", "0.4"], 0, how, wrapper)
        used = [account(run.truth_path + "+" * n) for n in range(3)]
        processes = sorted(h.Spool(result.spool), key=lambda p: p.start)
        need(len(processes) == 3, "%d spools of 3 images", len(processes))
        need({p.pid for p in processes} == {result.pid}, "an image has another pid")
        last = 0
        for process, (cpu, before) in zip(processes, used):
            kept = h.total_where(list(process.stacks("cpu")), lambda f: any(h.base(x) == "endings.py" for x in f))
            slack, start, last = max(0.01e6 * cpu, 10000), 1e6 * (before - last), before + cpu
            # what an image used before its program's first line is on the first stack that is seen of it, which may be after
            # that line; what it says that it lost, as on a machine with too much to do at its end, may be lacking
            lost = said_lost(process)
            need(-slack - 15000 - lost <= kept - 1e6 * cpu <= slack + max(15000, start), "%d ms kept of %d, %.0f used at its start, %.0f said to be lost",
                 kept / 1e3, 1e3 * cpu, start / 1e3, lost / 1e3)
        ends = [[m["ended"] for m in p.metas()] for p in processes]
        need(all("exec" in e for e in ends[:2]) and ends[2] == ["exit"], "ended: %s", ends)
    return "3 images"


def kill_at_random(python, long):
    """kill -9 at random moments: whole lines, and all but the last 100 ms."""
    dice, worst, started = random.Random(20), 0.0, 100 if long else 5
    for i in range(started):
        run = h.Run([h.oracle("endings.py"), "for-ever", "0.1"], "kill", python=python)
        wait_for_account(run.truth_path)
        time.sleep(dice.uniform(0.05, 0.7))
        os.kill(run.popen.pid, signal.SIGKILL)
        result = run.finish()
        need(result.status == 137, "status %d", result.status)
        used, _ = account(run.truth_path)
        if used < LAST:
            continue
        process = h.Spool(result.spool, strict=False).one()
        kept = h.total_where(list(process.stacks("cpu")), lambda f: any(h.base(x) == "endings.py" for x in f)) / 1e6
        worst = max(worst, used - kept)
        need(used - kept <= LAST + 0.01, "kill %d: %.0f of %.0f ms are there", i, 1e3 * kept, 1e3 * used)
        need(kept <= used + 0.02, "kill %d: %.0f ms, only %.0f were used", i, 1e3 * kept, 1e3 * used)
        need(all(w.meta for w in process.windows.values()), "no metadata that can be read")
        covered = sum(m["end_us"] - m["start_us"] for m in process.metas()) / 1e6
        need(covered >= used - 0.4, "kill %d: metadata for %.0f of %.0f ms", i, 1e3 * covered, 1e3 * used)
        report = subprocess.run([h.TOOL, "report", result.spool], stdout=subprocess.PIPE, check=True).stdout
        need(b"1 ended without notice" in report, "the report does not say that it is over: %r", report[:100])
    return "%d kills, at most %.0f ms lost" % (started, 1e3 * worst)


def kill_at_rest(python, long):
    """kill -9 of a program in which nothing runs, whose ticks look at nobody: its time is booked all the same."""
    code = "import time\ndef stand():\n    print(time.monotonic(), flush=True)\n    time.sleep(600)\nstand()\n"
    run = h.Run(["-c", code], "kill-at-rest", python=python)
    began = float(run.popen.stdout.readline())
    time.sleep(3.5)
    ended = time.monotonic()
    os.kill(run.popen.pid, signal.SIGKILL)
    killed = time.monotonic()
    result = run.finish()
    process = h.Spool(result.spool, strict=False).one()
    stood = h.total_where(list(process.stacks("wall")), lambda f: any(x.name == "stand" for x in f)) / 1e6
    need(stood <= killed - began + 0.1, "%.2f s of %.2f", stood, killed - began)
    need(stood >= ended - began - 2 * LAST, "%.2f s of %.2f", stood, ended - began)
    return "%.2f of %.2f s" % (stood, ended - began)


def wait_for_account(path):
    end = time.monotonic() + 30
    while time.monotonic() < end:
        if os.path.exists(path + ".live") and os.path.getsize(path + ".live") and account(path)[0] > 0:
            return
        time.sleep(0.005)
    raise h.Failure("the oracle does not start")


def read_while_it_runs(python, long):
    """Readers at any moment: every line up to the last newline whole, sums never fall."""
    run = h.Run([h.oracle("endings.py"), "zero", "2"], "live", python=python, settings={"APROF_WINDOW": "1"})
    wait_for_account(run.truth_path)
    reads, before = 0, 0
    while run.popen.poll() is None and reads < 1000:
        try:
            total = h.Spool(run.spool_folder, strict=False).total("cpu")
        except FileNotFoundError:  # sealed meanwhile: list again
            continue
        need(total >= before or reads == 0 or run.popen.poll() is not None or total >= 0.5 * before, "the sum fell from %d to %d", before, total)
        before, reads = max(total, before), reads + 1
        time.sleep(0.002)
    run.popen.returncode is None and run.popen.wait(30)
    need(reads > 20, "only %d reads", reads)
    h.Spool(run.spool_folder)
    return "%d reads" % reads


def fifty_megabytes(python, long):
    code = ("import sys\nblock = bytes(range(256)) * 4096\n"
            "for i in range(50): sys.stdout.buffer.write(block)\nsys.stdout.buffer.flush()")
    for how, wrapper in ways_to_start():
        result = h.run(["-c", code], "bytes", python=python, wrapper=wrapper)
        need(result.status == 0, "status %d", result.status)
        need(result.out == bytes(range(256)) * 4096 * 50, "%s: %d bytes, not the same", how, len(result.out))
        need(result.err == b"", "%s: stderr: %s", how, h.tail(result.err))
    return "50 MB"


def stdin_to_stdout(python, long):
    data = os.urandom(1 << 20)
    for how, wrapper in ways_to_start():
        result = h.run(["-c", "import sys, shutil; shutil.copyfileobj(sys.stdin.buffer, sys.stdout.buffer)"], "cat", python=python,
                       stdin=data, wrapper=wrapper)
        need(result.status == 0 and result.out == data and result.err == b"", "%s: not passed on as it was", how)


def bare(whole_env):
    """LD_PRELOAD and nothing else: aprof-spool in the current directory."""
    def test(python, long):
        env = {"LD_PRELOAD": h.LIBRARY}
        if not whole_env:
            env = dict(h.clean_environment(), **env)
        result = h.run(["-c", "import time\ne = time.thread_time() + 0.3\nwhile time.thread_time() < e: pass"], "bare", python=python,
                       whole_env=env, preload=False)
        need(result.status == 0 and not result.out and not result.err, "status %d, stderr %s", result.status, h.tail(result.err))
        folder = os.path.join(result.folder, "aprof-spool")
        need(os.path.isdir(folder), "no aprof-spool in the current directory")
        spool = h.Spool(folder)
        need(200000 < spool.one().total("cpu") < 600000, "cpu %d µs of 300,000", spool.one().total("cpu"))
        need(spool.one().metas()[-1]["ended"] == "exit", "ended: %s", spool.one().metas()[-1]["ended"])
        need(h.read_bytes(os.path.join(folder, ".gitignore")).strip() == b"*", ".gitignore")
        wrong = [n for n in os.listdir(folder) if n.startswith("aprof.") and os.stat(os.path.join(folder, n)).st_mode & 0o777 != 0o600]
        need(not wrong, "not 0600: %s", wrong)
        mode = os.stat(folder).st_mode & 0o7777
        need(mode == (0o1733 if os.geteuid() == 0 else 0o700), "the directory is %o", mode)
    return test


def no_file_without_time(python, long):
    """APROF_ENABLE=0: nothing at all."""
    result = h.run(["-c", "print(1)"], "off", python=python, settings={"APROF_ENABLE": "0"})
    need((result.status, result.out, result.err) == (0, b"1\n", b""), "status %d, %r", result.status, result.err[-200:])
    need(not os.path.exists(result.spool), "a spool directory though switched off")


def blocked_signals(python, long):
    """What a program that blocks all signals finds in sigwait, sigpending and after exec is what was sent."""
    run = h.Run([h.oracle("blocked.py")], "blocked", python=python)
    result = run.finish()
    need(result.status == 0, "status %d: %s", result.status, h.tail(result.err))
    need(result.out == b"caught: [15] pending: []\npending after exec: []\n", "it found %s", result.out)
    process = h.Spool(result.spool).by_pid(run.truth()["pid"])
    lines = [line for p in process for line in p.stacks("cpu")]
    for name, seconds in (("burn_blocked", 0.5), ("burn_unblocked", 0.5)):
        found = h.total_where(lines, lambda f: any(x.name == name for x in f)) / 1e6
        # read from outside while blocked: a tick more or less than by CPU ticks
        need(0.85 * seconds <= found <= 1.15 * seconds, "%s has %.3f of %.1f s", name, found, seconds)
    return "nothing of ours was found"


def another_root(python, long):
    """A program that changes its root directory: the spool stays where it was."""
    if os.geteuid() != 0:
        raise h.Skip("changing the root directory needs root")
    jail = h.fresh_folder("jail")
    result = h.run([h.oracle("jail.py"), jail], "jail", python=python)
    need(result.status == 0, "status %d: %s", result.status, h.tail(result.err))
    need(os.listdir(jail) == [], "in the jail stands %s", os.listdir(jail))
    found = h.Spool(result.spool).one().total("cpu") / 1e6
    need(1.3 <= found <= 1.6, "cpu %.3f of 1.5 s", found)


DUMP = b"Fatal Python error: Segmentation fault"

TESTS = [
    ("bare", bare(False), True),
    ("bare-env-i", bare(True), True),
    ("off", no_file_without_time, True),
    ("end-status", ending("status", 7), True),
    ("end-zero", ending("zero", 0), True),
    ("end-uncaught", ending("uncaught", 1, says=b"ValueError: on purpose"), True),
    ("end-_exit", ending("_exit", 3), True),
    ("end-segfault", ending("segfault", 139, lost=LAST), True),
    ("end-segfault-X", ending("segfault", 139, ["-X", "faulthandler"], LAST, DUMP), True),
    ("end-segfault-later", ending("segfault-later", 139, lost=LAST, says=DUMP), True),
    ("end-segfault-toggled", ending("segfault-toggled", 139, lost=LAST, says=DUMP), True),
    ("end-toggled", ending("toggled", 0), True),
    ("end-own-handler", ending("own-handler", 0, says=b"mine\n"), True),
    ("end-urgent", ending("urgent", 0, says=b"urgent\n"), True),
    ("end-term", ending("term", 143, lost=LAST), True),
    ("end-abort", ending("abort", 134, lost=LAST), True),
    ("signals-blocked", blocked_signals, True),
    ("another-root", another_root, True),
    ("end-exec", exec_of_itself, True),
    ("kill-9", kill_at_random, False),
    ("kill-at-rest", kill_at_rest, h.WAITS),
    ("read-live", read_while_it_runs, True),
    ("bytes-50MB", fifty_megabytes, h.HALF),
    ("bytes-stdin", stdin_to_stdout, True),
]
