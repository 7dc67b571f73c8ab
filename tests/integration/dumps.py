# SPDX-License-Identifier: MIT
"""dumps: `aprof dump` of programs that know where their threads and tasks stand."""
import contextlib
import json
import os
import signal
import subprocess
import time

import harness as h
from harness import need

ORACLE = "stands.py"
LONGEST = 20  # seconds until a program stands, or answers


@contextlib.contextmanager
def standing(python, what, settings=None, env=None):
    """(its truth, its spool) of the oracle while it stands."""
    run = h.Run([h.oracle(ORACLE), what], "dump-" + what, python=python, stdin=subprocess.PIPE, settings=settings, env=env)
    try:
        end = time.monotonic() + LONGEST
        while not (os.path.exists(run.truth_path) and os.path.exists(run.spool_folder)):  # by its first tick
            need(run.popen.poll() is None and time.monotonic() < end, "%s does not stand", what)
            time.sleep(0.01)
        yield run.truth(), run.spool_folder
        run.popen.stdin.close()
        result = run.finish(LONGEST)
        need(result.status == 0 and not result.err, "it ended with %d: %s", result.status, h.tail(result.err))
    finally:
        if run.popen.poll() is None:
            run.kill_all()


def ask(*words, seconds=LONGEST):
    done = subprocess.run([h.TOOL, "dump", "--timeout", str(seconds)] + [str(w) for w in words], stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=LONGEST + 10)
    return done.returncode, done.stdout.decode(), done.stderr.decode()


def dump(truth, spool):
    """The process as the JSON has it. It may not have opened its spool yet."""
    end = time.monotonic() + LONGEST
    status = 3
    while status == 3 and time.monotonic() < end:
        status, out, err = ask("--json", "--dir", spool, truth["pid"])
    need(status == 0 and not err, "aprof dump: %d: %s", status, err)
    processes = json.loads(out)["processes"]
    need(len(processes) == 1 and processes[0]["pid"] == truth["pid"], "not this process alone: %s", [p["pid"] for p in processes])
    need(not processes[0]["threads_left"] and not processes[0]["tasks_left"], "something was left out")
    left = [name for name in os.listdir(spool) if name.endswith((".ask", ".dump", ".dump.tmp"))]
    need(not left, "left in the spool: %s", left)
    return processes[0]


def names_of(process, number):
    return [] if number is None else [frame["name"] for frame in process["stacks"][number]]


def own_names(process, number):
    """The functions of the oracle."""
    return [f["name"] for f in process["stacks"][number] if ORACLE in f["place"] and f["name"] != "<module>"]


# ---------------------------------------------------------------- threads

def check_stander(process, thread, true):
    need(thread["state"] == "waiting" and thread["known_by"] == "stood", "%s is %s, known by %s", true["name"], thread["state"], thread["known_by"])
    need(thread["name"] == true["name"], "%s is called %s", true["name"], thread["name"])
    found = [[f["name"].split(".")[-1], int(f["place"].rpartition(":")[2])] for f in process["stacks"][thread["stack"]]]
    need(found == true["stack"], "%s stands in %s, found in %s", true["name"], true["stack"], found)


def threads(python, long):
    """Each thread in exactly the frames that the interpreter itself gives for it, and for how long."""
    with standing(python, "threads") as (truth, spool):
        first = dump(truth, spool)
        by_tid = {t["tid"]: t for t in first["threads"]}
        need(set(by_tid) == {t["tid"] for t in truth["threads"]} | {truth["main"]}, "threads %s", sorted(by_tid))
        for true in truth["threads"]:
            check_stander(first, by_tid[true["tid"]], true)
        need(by_tid[truth["main"]]["name"] == "MainThread", "the main one is called %s", by_tid[truth["main"]]["name"])
        need(names_of(first, by_tid[truth["main"]]["stack"])[-1] == "end_with_stdin", "main is in %s", by_tid[truth["main"]])
        second = dump(truth, spool)
        passed = second["at_us"] - first["at_us"]
        for thread in second["threads"]:
            grown = thread["age_us"] - by_tid[thread["tid"]]["age_us"]
            need(abs(grown - passed) <= 0.2 * passed + 100000, "%d: for %d us more, %d passed", thread["tid"], grown, passed)
        need(not first["tasks"] and first["tasks_recorded"], "tasks of a program without")
        return "%d threads" % len(by_tid)


def contended(python, long):
    """Of two threads that compute one waits for the GIL; where it is is its own function. What waits otherwise does not."""
    seen = []
    with standing(python, "gil") as (truth, spool):
        for _ in range(40):
            process = dump(truth, spool)
            by_tid = {t["tid"]: t for t in process["threads"]}
            for name, tid in truth["tids"].items():
                thread = by_tid[tid]
                need(thread["state"] in ("running", "runnable", "gil", "holds"), "%s: %s", name, thread)
                need(name in names_of(process, thread["stack"]), "%s is in %s", name, names_of(process, thread["stack"]))
                need(thread["known_by"] in ("stood", "tick", "last"), "%s known by %s", name, thread["known_by"])
                seen.append(thread["state"])
            need(by_tid[truth["main"]]["state"] == "waiting", "main: %s", by_tid[truth["main"]]["state"])
            if "gil" in seen and len(seen) >= 6:
                return ", ".join("%s %d" % (state, seen.count(state)) for state in sorted(set(seen)))
    raise h.Failure("nobody waits for the GIL: %s" % seen)


# ---------------------------------------------------------------- tasks

def tasks(python, long):
    """Each task by its name, on those that await it, whatever they await it by."""
    with standing(python, "tasks") as (truth, spool):
        process = dump(truth, spool)
        found = {}
        for task in process["tasks"]:
            need(task["name"] not in found, "twice: %s", task["name"])
            found[task["name"]] = task
        escaped = {name.replace(";", "\\x3b"): true for name, true in truth["tasks"].items()}
        need(set(found) == set(escaped), "tasks %s", sorted(set(found) ^ set(escaped))[:10])
        for name, (state, stacks) in escaped.items():
            task = found[name]
            shown = sorted(own_names(process, number) for number in task["stacks"])
            need(task["state"] == state and task["known_by"] == "read", "%s is %s, known by %s", name, task["state"], task["known_by"])
            need(shown == sorted(stacks), "%s stands on %s, found on %s", name, stacks, shown)
            need(task["thread"] == truth["main"], "%s is of thread %s", name, task["thread"])
            need(task["waits_us"] is None or task["state"] == "waiting", "%s waits: %s", name, task)
        check_waits(truth, spool)
        status, text, err = ask("--dir", spool, truth["pid"])
        need(status == 0 and "201 tasks, waiting" in text and "gathered\\x3b" in text, "as text: %d %s", status, text[:500])
        return "%d tasks" % len(found)


def check_waits(truth, spool):
    """Those that wait for nothing but a future do so for longer and longer, a dump between or not, and no longer than they live."""
    ages = []
    for _ in range(3):
        process = dump(truth, spool)
        ages.append((process["at_us"], {task["name"]: task["waits_us"] for task in process["tasks"] if task["name"].startswith("gathered")}))
    known = [name for name in ages[0][1] if ages[1][1][name] is not None and ages[2][1][name] is not None]
    need(len(known) > 150, "of %d it is known of %d", len(ages[0][1]), len(known))
    for name in known:
        grown, passed = ages[2][1][name] - ages[1][1][name], ages[2][0] - ages[1][0]
        need(abs(grown - passed) <= 0.2 * passed + 100000, "%s waits %d us more, %d passed", name, grown, passed)


def running_task(python, long):
    """A task that computes is running, in the thread whose stack has it on those that await it."""
    with standing(python, "busy") as (truth, spool):
        process = dump(truth, spool)
        by_name = {task["name"]: task for task in process["tasks"]}
        need(by_name["computer"]["state"] in ("running", "changed"), "it is %s", by_name["computer"]["state"])
        need(not by_name["computer"]["stacks"] and by_name["computer"]["thread"] == truth["main"], "%s", by_name["computer"])
        thread = [t for t in process["threads"] if t["tid"] == truth["main"]][0]
        names = own_names(process, thread["stack"])
        need(names[:3] == ["busy", "computes"] or names[:2] == ["busy", "computes"], "its thread is in %s", names)
        need(own_names(process, by_name["waiter"]["stacks"][0]) == ["busy", "leaf"], "the other: %s", by_name["waiter"])
        return "%s, %s" % (thread["state"], thread["known_by"])


def without_tasks(python, long):
    with standing(python, "tasks", settings={"APROF_METRICS": "cpu,wall"}) as (truth, spool):
        process = dump(truth, spool)
        need(not process["tasks_recorded"] and not process["tasks"] and len(process["threads"]) == 1, "%s", process)


# ---------------------------------------------------------------- what goes wrong

def one_line(status, wanted, out, err, part):
    need(status == wanted and part in err and err.count("\n") == 1 and not out, "status %d: %s%s", status, out[:200], err)


def refusals(pythons, long):
    """Each case has its exit status and one clear line."""
    folder = h.fresh_folder("dump-refusals")
    status, out, err = ask("--dir", folder, os.getpid())
    one_line(status, 3, out, err, "does not write to")
    status, out, err = ask("--dir", folder, 4194303)
    one_line(status, 3, out, err, "no such process")
    status, out, err = ask(folder)
    one_line(status, 3, out, err, "no process writes there")
    status, out, err = ask(os.path.join(folder, "none"))
    one_line(status, 4, out, err, "No such file")
    for words in (("1", "2"), ("--bad",), ("--dir", folder, "x"), ("0",), ("--timeout", "x", "1")):
        status, out, err = ask(*words)
        one_line(status, 2, out, err, "")
    with standing(pythons[0], "threads") as (truth, spool):
        dump(truth, spool)
        os.kill(truth["pid"], signal.SIGSTOP)
        status, out, err = ask("--dir", spool, truth["pid"], seconds=2)
        os.kill(truth["pid"], signal.SIGCONT)
        one_line(status, 4, out, err, "it is stopped")
        dump(truth, spool)
        status, out, err = ask(spool)
        need(status == 0 and "process %d on " % truth["pid"] in out and "waiting, for " in out, "by its directory: %d %s%s", status, out[:300], err)
    status, out, err = ask("--dir", spool, truth["pid"])
    need(status == 3 and err.count("\n") == 1, "one that has ended: %d %s", status, err)


def ends_meanwhile(pythons, long):
    """A process that is killed while it is asked is not waited for until the time is over."""
    run = h.Run([h.oracle(ORACLE), "threads"], "dump-ends", python=pythons[0], stdin=subprocess.PIPE)
    try:
        end = time.monotonic() + LONGEST
        while not os.path.exists(run.truth_path):
            need(run.popen.poll() is None and time.monotonic() < end, "it does not stand")
            time.sleep(0.01)
        truth = run.truth()
        dump(truth, run.spool_folder)
        os.kill(truth["pid"], signal.SIGSTOP)
        asking = subprocess.Popen([h.TOOL, "dump", "--timeout", "3600", run.spool_folder], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        while not any(name.endswith(".ask") for name in os.listdir(run.spool_folder)):
            time.sleep(0.01)
        run.kill_all()
        need(run.finish(LONGEST).status == 128 + signal.SIGKILL, "it was not killed")
        out, err = asking.communicate(timeout=60)
        need(asking.returncode == 3 and not out, "status %d: %s", asking.returncode, err)
        left = [name for name in os.listdir(run.spool_folder) if name.endswith((".ask", ".dump", ".dump.tmp"))]
        need(not left, "left in the spool: %s", left)
    finally:
        if run.popen.poll() is None:
            run.kill_all()


TESTS = [
    ("dump-threads", threads, h.HALF),
    ("dump-gil", contended, True),
    ("dump-tasks", tasks, h.HALF),
    ("dump-running-task", running_task, True),
    ("dump-without-tasks", without_tasks, h.HALF),
]
ONCE = [
    ("dump-refusals", refusals, True),
    ("dump-ends-meanwhile", ends_meanwhile, True),
]
