# SPDX-License-Identifier: MIT
"""trial: one run of load.py with one contestant, and what it cost.

CPU of a profiler is that of its own process, and in the application that of all
threads that are not the application's, by the kernel's clocks and between the
beginning and the end of the work; for libaprof also that of its handlers, by its own
count (nobody else's handlers are counted: there are none that are known).
"""
import glob
import json
import os
import re
import signal
import subprocess
import threading
import time

import harness as h
import judge
import packages

HERE = os.path.dirname(os.path.abspath(__file__))
SETTLE = {True: 0.7, False: 0.1}  # s that a profiler has for its start: one that attaches, and others


def thread_ns(pid):
    """CPU of each thread, ns, and its name."""
    found = {}
    for folder in glob.glob("/proc/%d/task/*" % pid):
        try:
            with open(folder + "/schedstat", encoding="ascii") as f, open(folder + "/comm", encoding="utf-8", errors="replace") as g:
                found[int(os.path.basename(folder))] = (int(f.read().split()[0]), g.read().strip())
        except (OSError, IndexError, ValueError):
            pass  # it has ended
    return found


def process_ns(pid):
    """CPU of a process, threads that ended and children that were waited for included."""
    try:
        with open("/proc/%d/stat" % pid, encoding="utf-8", errors="replace") as f:
            numbers = f.read().rsplit(")", 1)[1].split()
        waited_for = (int(numbers[13]) + int(numbers[14])) * 1e9 / os.sysconf("SC_CLK_TCK")
        return time.clock_gettime_ns(~pid << 3 | 2) + waited_for
    except (OSError, IndexError):
        return 0


def resident(pid):
    """Bytes."""
    try:
        with open("/proc/%d/status" % pid, encoding="utf-8") as f:
            return 1024 * int(re.search(r"VmRSS:\s+(\d+)", f.read())[1])
    except (OSError, TypeError):
        return 0


class Tool:
    """The program beside the application, if there is one."""

    def __init__(self, words, folder):
        self.out_path = os.path.join(folder, "said")
        self.popen = None
        if words:
            with open(self.out_path, "wb") as out:
                self.popen = subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=out, stderr=out, cwd=folder, env=h.clean_environment(),
                                              start_new_session=True)

    def pid(self):
        return self.popen.pid if self.popen else None

    def alive(self):
        return not self.popen or self.popen.poll() is None

    def said(self):
        return h.read_bytes(self.out_path) if self.popen else b""

    def end(self):
        """It ends with the application, or is told to."""
        for word, seconds in ((None, 8), (signal.SIGINT, 8), (signal.SIGKILL, 8)):
            if not self.popen:
                return
            if word:
                os.killpg(self.popen.pid, word)
            try:
                self.popen.wait(seconds)
                return
            except subprocess.TimeoutExpired:
                pass


class Application:
    """load.py, spoken to in lines; ended by force after a while."""

    def __init__(self, python, row, folder, settings):
        words = [os.path.join(HERE, "load.py"), row.kind, str(row.count)]
        if row.large:
            library = packages.large_package()
            packages.compiled(python, library)
            settings = dict(settings, PYTHONPATH=os.pathsep.join([p for p in (settings.get("PYTHONPATH"), library) if p]))
        self.run = h.Run(words, row.name, python=python, preload=False, env=settings, stdin=subprocess.PIPE, folder=folder)
        self.popen = self.run.popen
        self.watch = threading.Timer(90, self.run.kill_all)
        self.watch.daemon = True
        self.watch.start()

    def hear(self):
        line = self.popen.stdout.readline()
        if not line:
            self.popen.wait()
            raise h.Failure("the application ended with %d: %s" % (self.popen.returncode, h.tail(self.popen.stderr.read())))
        return json.loads(line)

    def tell(self, word):
        self.popen.stdin.write(word.encode() + b"\n")
        self.popen.stdin.flush()

    def end(self):
        self.watch.cancel()
        self.run.kill_all()
        self.popen.communicate()


def wrk(port, seconds):
    """(requests a second, p99 in s)."""
    done = subprocess.run(["wrk", "-t", "1", "-c", "32", "-d", "%ds" % seconds, "--latency", "-s", os.path.join(HERE, "load.lua"),
                           "http://127.0.0.1:%d/" % port], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=seconds + 60)
    text = done.stdout.decode("utf-8", "replace")
    rate, p99 = re.search(r"Requests/sec:\s+([0-9.]+)", text), re.search(r"99%\s+([0-9.]+)(us|ms|s)", text)
    h.need(done.returncode == 0 and rate and p99 and "Non-2xx" not in text, "wrk: %s", text[-200:])
    return float(rate[1]), float(p99[1]) * {"us": 1e-6, "ms": 1e-3, "s": 1}[p99[2]]


class Meter:
    """CPU of profilers between two moments, seconds."""

    def __init__(self, pid, own, tool):
        self.pid, self.own, self.tool = pid, set(own), tool
        self.threads, self.process, self.began = thread_ns(pid), process_ns(tool) if tool else 0, time.monotonic()

    def stop(self):
        now, took = thread_ns(self.pid), time.monotonic() - self.began
        inside = sum(ns - self.threads.get(tid, (0,))[0] for tid, (ns, _) in now.items() if tid not in self.own)
        beside = process_ns(self.tool) - self.process if self.tool else 0
        self.totals = {name: ns for ns, name in now.values()}
        return (inside + beside) / 1e9, took


def work(app, row, seconds, said):
    """What the application did: its own report, and what its load saw."""
    app.tell("%g" % seconds)
    loaded = None
    if row.kind == "service":
        if row.load:
            loaded = wrk(said["port"], max(1, round(seconds)))
        else:
            time.sleep(seconds)
        app.tell("stop")
    report = app.hear()
    if loaded:
        report.update(rate=loaded[0], p99=loaded[1])
    else:
        report["rate"] = report["rounds"] / report["wall"]
    return report


def run(python, row, contestant, seconds):
    """One trial: a dict of figures."""
    folder = h.fresh_folder("%s-%s" % (row.name, contestant.name))
    app = Application(python, row, folder, contestant.settings(python, folder))
    tool = Tool(None, folder)
    try:
        ready = app.hear()
        words = contestant.beside(python, folder, ready["ready"], row)
        tool = Tool(words, folder)
        time.sleep(SETTLE[bool(words)])
        h.need(tool.alive(), "it ended at once: %s", h.tail(tool.said()))
        meter = Meter(ready["ready"], ready["threads"], tool.pid())
        report = work(app, row, seconds, ready)
        cpu, took = meter.stop()
        figures = {"rate": report["rate"], "p99": report["p99"], "app_rss": resident(ready["ready"]), "tool_rss": resident(tool.pid()) if tool.pid() else 0,
                   "by_cpu": report["rounds"] / max(1e-9, report["cpu"] - (0 if words else cpu)),
                   "spent": (report["cpu"] + report["children"] + cpu * bool(words)) / max(1, report["rounds"])}
        app.tell("")
        app.popen.wait(30)
        lived = time.monotonic() - app.run.began
        h.need(app.popen.returncode == 0, "the application ended with %d: %s", app.popen.returncode, h.tail(app.popen.stderr.read()))
        tool.end()
        figures.update(samples(contestant, folder, tool.said(), row, ready, report, cpu, took, meter, lived))
        return figures
    finally:
        app.end()
        tool.end()


def samples(contestant, folder, said, row, ready, report, cpu, took, meter, lived):
    """Figures of the output: useful samples a second, wrong ones, CPU."""
    output = contestant.output(folder, said, row)
    referee = judge.Judge(ready.get("truth"), contestant.coroutine_roots)
    tally, of_tasks = judge.Tally(), judge.Tally()
    for frames, weight in output.lines:
        referee.add(tally, frames, weight)
    for frames, weight in output.task_lines:
        referee.add(of_tasks, frames, weight)
    threads, tasks = output.scale * tally.threads, output.scale * tally.tasks
    if output.tasks:  # readings of tasks, of which so many are right
        tasks += output.tasks * of_tasks.tasks / max(1e-9, of_tasks.all())
    handler = 0.0
    if output.cpu:
        sampler, handler, whole = output.cpu
        seen = meter.totals.get("aprof", 0) / 1e9
        if sampler < 0.95 * seen - 0.002:
            output.said += "; its own count of its thread's CPU is %.1f ms, the kernel's %.1f ms" % (1e3 * sampler, 1e3 * seen)
        handler *= min(1, report["cpu"] / max(whole, 1e-9))
    count = max(1, len(ready["threads"])) if row.kind != "threads" else len(ready["threads"]) - 1
    looks = tally.tasks / row.tasks if contestant.coroutine_roots else (tally.threads + tally.wrong) / count
    ticks = looks / report["wall"]
    if output.rate is not None:
        ticks = output.rate
    elif output.looks is not None:
        ticks = output.looks / lived
    return {"cpu": 100 * (cpu + handler) / took, "threads": threads / report["wall"], "tasks": tasks / report["wall"], "ticks": ticks,
            "wrong": (tally.wrong + of_tasks.wrong) / max(1e-9, tally.all() + of_tasks.all()), "all": tally.all() + of_tasks.all(), "said": output.said,
            "reasons": {**tally.reasons, **of_tasks.reasons}}
