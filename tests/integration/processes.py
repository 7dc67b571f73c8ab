# SPDX-License-Identifier: MIT
"""processes: forks, pools and children; each has its spool or is counted, nothing twice."""
import json
import os
import re
import subprocess
import time

import harness as h
from endings import said_lost
from harness import need

TICK = 0.010


def lines_of(path):
    if not os.path.exists(path + ".lines"):
        return []
    with open(path + ".lines", encoding="utf-8") as f:
        return [json.loads(line) for line in f]


def counted(process):
    """Children without a sample that this process knows of (a level, in its last window)."""
    return process.metas()[-1]["children_without_sample"]


def without_numbers(text):
    return re.sub(rb"pid=\d+|0x[0-9a-f]+|\b\d{3,}\b", b"#", text)


def forks(python, long):
    count = 10000 if long else 100  # tests/hazards has more threads that burn
    settings = {"APROF_CLOCK": "monotonic", "APROF_RATE": "1000"}
    run = h.Run([h.oracle("forks.py"), str(count)], "forks", python=python, settings=settings)
    result = run.finish(1800 if long else 120)
    need(result.status == 0, "status %d: %s", result.status, h.tail(result.err))
    truth, spool = run.truth(), h.Spool(result.spool)
    need(not truth["bad"], "%d children ended with %s", len(truth["bad"]), truth["bad"][:3])
    parent = spool.by_pid(truth["pid"])
    need(len(parent) == 1, "%d spools of the parent", len(parent))
    children = [p for p in spool if p.pid != truth["pid"]]
    need(len(children) == len({p.pid for p in children}), "a child has two spools")
    # one that is killed between its first file and being taken off the count is both
    both = len(children) + counted(parent[0]) - count
    need(0 <= both <= count // 100, "%d children with a spool + %d counted of %d", len(children), counted(parent[0]), count)
    need(all(m["ppid"] == truth["pid"] for p in children for m in p.metas()), "a child names another parent")
    return check_children_cpu(children, {e["pid"]: e["cpu"] for e in lines_of(run.truth_path)}, count)


def check_children_cpu(children, used, count):
    """Each child's cpu against its thread's clock: a tick at its birth may be missing, nothing may be doubled."""
    found = {p.pid: p.total("cpu") / 1e6 for p in children}
    need(found, "no child has a spool")
    over = [(pid, cpu, used[pid]) for pid, cpu in found.items() if pid in used and cpu > 1.01 * used[pid] + TICK]
    need(not over, "more cpu than was used: %s", over[:3])
    burnt = sum(cpu for cpu in used.values())
    kept = sum(found.get(pid, 0) for pid in used)
    missing = [pid for pid, cpu in used.items() if cpu >= 0.055 and pid not in found]
    need(len(missing) <= 0.01 * count, "%d children that burned 60 ms have no spool", len(missing))
    need(kept >= 0.93 * burnt - TICK * len(used) * 0.1, "%.2f of %.2f s of the children's cpu", kept, burnt)
    return "%d children, %d with a spool, cpu %.3f" % (count, len(found), kept / burnt)


def pool(how):
    def test(python, long):
        truth, spool, result = h.run_oracle(python, "pools.py", how)
        time.sleep(0.1)
        lost = 0.1 if how == "terminate" else 0
        for pid, (cpu, burnt) in truth["workers"].items():
            processes = spool.by_pid(int(pid))
            need(len(processes) == 1, "worker %s has %d spools", pid, len(processes))
            found = processes[0].total("cpu") / 1e6
            # what it says that it lost, as on a machine with too much to do at its end, may be lacking
            said = said_lost(processes[0]) / 1e6
            need(0.98 * burnt - lost - said - TICK <= found <= 1.01 * cpu + 0.05, "worker %s: %.3f of %.3f s, %.3f of them burnt, %.2f said to be lost",
                 pid, found, cpu, burnt, said)
            frames = [f for f, _ in processes[0].stacks("cpu") if any(x.name == "task" for x in f)]
            need(frames, "worker %s: `task` is in no stack", pid)
        need(len(spool.by_pid(truth["pid"])) == 1, "%d spools of the parent", len(spool.by_pid(truth["pid"])))
        if how != "forkserver":  # its workers are not our descendants by wait
            check_sum(spool, result)
        check_quiet(result, python, ["pools.py", how])
        return "%d workers" % len(truth["workers"])
    return test


def check_sum(spool, result):
    """No more CPU in the spool than the kernel says that all of them used."""
    used = result.rusage.ru_utime + result.rusage.ru_stime
    need(spool.total("cpu") / 1e6 <= 1.01 * used + 0.05, "%.3f s in the spool, %.3f used", spool.total("cpu") / 1e6, used)


def check_quiet(result, python, words):
    """stdout, stderr and status are those of a run without us."""
    other = h.run([h.oracle(words[0])] + words[1:], "without", python=python, preload=False)
    need(result.status == other.status, "status %d, without us %d", result.status, other.status)
    for name in ("out", "err"):
        ours, theirs = without_numbers(getattr(result, name)), without_numbers(getattr(other, name))
        need(ours == theirs, "std%s is another: %r, without us %r", name, ours[-300:], theirs[-300:])


def short_pythons(python, long):
    count = 100 if long else 20
    truth, spool, result = h.run_oracle(python, "children.py", "pythons", count, timeout=120)
    need(len(truth["children"]) == count, "%d children", len(truth["children"]))
    runs = {m["run"] for p in spool for m in p.metas()}
    need(len(runs) == 1, "%d run ids: %s", len(runs), sorted(runs)[:3])
    for pid, cpu in truth["children"].items():
        processes = spool.by_pid(int(pid))
        need(len(processes) == 1, "child %s has %d spools", pid, len(processes))
        found = processes[0].total("cpu") / 1e6
        need(0.045 <= found <= 1.01 * cpu + 0.02, "child %s: %.3f of %.3f s", pid, found, cpu)
    check_sum(spool, result)
    return "%d children" % count


def foreign_children(python, long):
    truth, spool, result = h.run_oracle(python, "children.py", "foreign")
    check_quiet(result, python, ["children.py", "foreign"])
    others = [p for p in spool if p.pid != truth["pid"]]
    # a forked child is Python until it execs: it may have had a sample, once
    need(len(others) <= 2 and all(p.total("cpu") < 50000 for p in others), "files of processes that are not Python: %s",
         [(p.pid, p.total("cpu")) for p in others])
    need(abs(spool.total("cpu") / 1e6 - truth["cpu"]) < 0.1, "cpu %.3f of %.3f", spool.total("cpu") / 1e6, truth["cpu"])


def single_forks(python, long):
    """A program without threads: no warning about ours, also where warnings are errors."""
    for extra in ([], ["-W", "error::DeprecationWarning"], ["-W", "always"]):
        words = [h.oracle("children.py"), "single", "20"]
        with_us = h.run(extra + words, "single", python=python)
        without = h.run(extra + words, "single-without", python=python, preload=False)
        need(with_us.status == without.status == 0, "status %d: %s", with_us.status, h.tail(with_us.err))
        need(with_us.out == without.out, "stdout is another")
        need(without_numbers(with_us.err) == without_numbers(without.err), "stderr is another: %s", h.tail(with_us.err))
    return "no warning, 60 forks"


def one_summary(python, long):
    """The line at exit is the first process's, and says so: forked workers end without one."""
    truth, _, run = h.run_oracle(python, "children.py", "single", 20, settings={"APROF_SUMMARY": "1"})
    line = re.fullmatch(rb"aprof: (\d+) samples, (\d+\.\d) s of CPU in process (\d+), its children not counted "
                        rb"\(read all with: aprof report (.*)\)\n", run.err)
    need(line and int(line[3]) == truth["pid"] and line[4].decode() == run.spool, "stderr: %s", h.tail(run.err))
    return "1 line, 20 forks"


def single_forks_go_on(python, long):
    """After a fork the parent is sampled again, each time."""
    truth, spool, _ = h.run_oracle(python, "children.py", "single", 100)
    parent = spool.by_pid(truth["pid"])
    found = sum(p.total("cpu") for p in parent) / 1e6
    need(len(parent) == 1, "%d spools of the parent", len(parent))
    need(0.97 * (truth["cpu"] - 0.06) <= found <= 1.01 * truth["cpu"] + TICK, "cpu %.3f of %.3f s", found, truth["cpu"])
    return "cpu %.3f of %.3f s" % (found, truth["cpu"])


def daemon(python, long):
    run = h.Run([h.oracle("children.py"), "daemon"], "daemon", python=python)
    result = run.finish()
    need(result.status == 0, "status %d", result.status)
    end = time.monotonic() + 20
    while not os.path.exists(run.truth_path) and time.monotonic() < end:
        time.sleep(0.02)
    truth = run.truth()
    gone(truth["pid"])
    process = h.Spool(result.spool).by_pid(truth["pid"])
    need(len(process) == 1, "the daemon has %d spools", len(process))
    need(0.37e6 <= process[0].total("cpu") <= 0.45e6, "cpu %d µs of 400,000", process[0].total("cpu"))
    need(truth["descriptors"] == ["0", "1"], "descriptors of the daemon: %s", truth["descriptors"])


def gone(pid, seconds=10):
    end = time.monotonic() + seconds
    while time.monotonic() < end and os.path.exists("/proc/%d" % pid):
        time.sleep(0.01)


def descriptors(python, long):
    """None of ours is in the application's table; closing all of its own stops nothing."""
    truth, spool, result = h.run_oracle(python, "children.py", "descriptors")
    check_quiet(result, python, ["children.py", "descriptors"])
    found = spool.one().total("cpu") / 1e6
    need(found >= 0.97 * (truth["cpu"] - 0.06), "cpu %.3f of %.3f s", found, truth["cpu"])


def below_a_shell(python, long):
    """sh -c "python ...": the parent is not Python, the child is profiled."""
    command = " ".join(python.words) + " %s status 0.3; exit $?" % h.oracle("endings.py")
    run = h.Run(["/bin/sh", "-c", command], "sh")
    result = run.finish()
    need(result.status == 7, "status %d: %s", result.status, h.tail(result.err))
    need(h.Spool(result.spool).one().total("cpu") > 0.28e6, "cpu %d µs", h.Spool(result.spool).one().total("cpu"))


def no_children(python, long):
    """APROF_CHILDREN=0 leaves children alone."""
    truth, spool, _ = h.run_oracle(python, "children.py", "pythons", 2, settings={"APROF_CHILDREN": "0"})
    need([p.pid for p in spool] == [truth["pid"]], "spools of %s", [p.pid for p in spool])


APP = """
import time
def burn(seconds):
    end = time.thread_time() + seconds
    while time.thread_time() < end:
        pass
def app(environ, start_response):
    burn(0.02)
    start_response("200 OK", [("Content-Type", "text/plain"), ("Content-Length", "2")])
    return [b"ok"]
"""


def gunicorn(python, long):
    if python.ask("import gunicorn; print(1)") != "1":
        raise h.Skip("gunicorn is not importable")
    folder = h.fresh_folder("gunicorn")
    with open(os.path.join(folder, "app.py"), "w", encoding="utf-8") as f:
        f.write(APP)
    socket = os.path.join(folder, "s")
    run = h.Run(["-m", "gunicorn", "-w", "2", "-b", "unix:" + socket, "app:app"], "gunicorn", python=python, folder=folder)
    try:
        ask_often(socket, 60)
    finally:
        run.popen.terminate()
    result = run.finish()
    need(result.status == 0, "status %d: %s", result.status, h.tail(result.err))
    spool = h.Spool(result.spool)
    workers = [p for p in spool if p.pid != result.pid and any(x.name == "burn" for f, _ in p.stacks("cpu") for x in f)]
    need(len(workers) == 2, "%d workers with `burn` in their stacks", len(workers))
    burnt = sum(h.total_where(list(p.stacks("cpu")), lambda f: any(x.name == "burn" for x in f)) for p in workers)
    # what a request costs beside `burn` falls on it or not, a period at a time
    slack = h.STANDARD_ERRORS * (1.2e6 * 10000) ** 0.5
    need(abs(burnt - 1.2e6) <= slack, "burn has %.2f of 1.2 s (± %.2f)", burnt / 1e6, slack / 1e6)
    return "2 workers, burn %.2f of 1.20 s" % (burnt / 1e6)


def ask_often(path, count):
    import socket
    end = time.monotonic() + 20
    while not os.path.exists(path):
        need(time.monotonic() < end, "gunicorn does not listen")
        time.sleep(0.02)
    for _ in range(count):
        with socket.socket(socket.AF_UNIX) as s:
            s.settimeout(20)
            s.connect(path)
            s.sendall(b"GET / HTTP/1.0\r\n\r\n")
            need(s.recv(4096).startswith(b"HTTP/1."), "no answer")


# ---------------------------------------------------------------- programs that are not Python

PROGRAM = r"""
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <signal.h>
int main(int argc, char **argv) {
    char line[256];
    while (fgets(line, sizeof line, stdin)) fputs(line, stdout);
    fprintf(stderr, "arguments: %d\n", argc);
    if (argc > 1 && !strcmp(argv[1], "raise")) raise(SIGSEGV);
    if (argc > 1 && !strcmp(argv[1], "abort")) abort();
    return argc > 1 ? atoi(argv[1]) : 0;
}
"""


def compiled(compiler, *flags):
    folder = h.fresh_folder("build-" + os.path.basename(compiler))
    source, program = os.path.join(folder, "p.c"), os.path.join(folder, "p")
    with open(source, "w", encoding="utf-8") as f:
        f.write(PROGRAM)
    try:
        done = subprocess.run([compiler, "-O1", *flags, "-o", program, source], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=60)
    except FileNotFoundError:
        raise h.Skip(compiler + " is absent")
    need(done.returncode == 0, "%s: %s", compiler, done.stdout.decode()[-200:])
    return program


def same_with_and_without(cases):
    for words, stdin in cases:
        ours, theirs = [h.run(words, "foreign", stdin=stdin, preload=on) for on in (True, False)]
        for part in ("status", "out", "err"):
            need(getattr(ours, part) == getattr(theirs, part), "%s: %s %r, without us %r", words, part,
                 getattr(ours, part), getattr(theirs, part))
        need(not os.path.exists(ours.spool), "%s made a spool directory", words)


def program_cases(program):
    return [([program], b"one\ntwo\n"), ([program, "5"], b""), ([program, "raise"], b"x\n"), ([program, "abort"], b"")]


def non_python(python_list, long):
    same_with_and_without([
        (["sh", "-c", "echo a; cat; exit 7"], b"in"), (["ls", "-l", "/usr"], b""), (["ls", "/nonexistent"], b""),
        (["sh", "-c", "kill -TERM $$"], b""), (["sh", "-c", "trap 'echo trapped' SEGV BUS URG; kill -SEGV $$; kill -URG $$; ls /proc/self/fd"], b""),
        (["sort"], b"b\na\n"), (["env", "-u", "LD_PRELOAD", "-u", "APROF_DIR", "-u", "ORACLE_TRUTH", "PATH=/usr/bin:/bin", "true"], b""),
        (["sh", "-c", "grep -c Threads:.1$ /proc/self/status"], b""),
    ])
    same_with_and_without(program_cases(compiled("cc")))


def static_program(python_list, long):
    same_with_and_without(program_cases(compiled("cc", "-static")))


def musl_program(python_list, long):
    same_with_and_without(program_cases(compiled("musl-gcc")))


TESTS = [
    ("forks", forks, True),
    ("pool-fork", pool("fork"), True),
    ("pool-spawn", pool("spawn"), True),
    ("pool-forkserver", pool("forkserver"), h.WAITS),
    ("pool-terminate", pool("terminate"), True),
    ("children-python", short_pythons, True),
    ("children-foreign", foreign_children, True),
    ("children-off", no_children, True),
    ("forks-no-warning", single_forks, False),
    ("forks-go-on", single_forks_go_on, True),
    ("one-summary", one_summary, True),
    ("daemon", daemon, h.WAITS),
    ("descriptors", descriptors, True),
    ("below-a-shell", below_a_shell, True),
    ("gunicorn", gunicorn, True),
]
ONCE = [
    ("non-python", non_python, True),
    ("non-python-static", static_program, True),
    ("non-python-musl", musl_program, True),
]
