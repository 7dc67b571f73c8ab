# SPDX-License-Identifier: MIT
"""profilers: libaprof and its peers, each as a contestant of peers.py.

A contestant says whether it can be had (Absent), what it puts into the application's
environment, which program it runs beside it, and what its output says. All sample a
hundred times a second and record waiting threads too, since libaprof does; the rest
is their default, but for ddtrace, of which its stacks alone run, adapting as they do.
"""
import glob
import json
import os
import re
import subprocess

import harness as h
import packages
import truth
from packages import Absent

HERE = os.path.dirname(os.path.abspath(__file__))
RATE = 100


class Output:
    """What a run of a contestant left.

    lines: (frames, weight), scale: samples that a weight of 1 stands for; task_lines: of tasks, where they are kept
    apart, tasks: readings of tasks that these come from; rate: looks a second, looks: in its whole life, neither: as
    many as samples of a thread; cpu: of its thread, of its handlers and of the whole process, seconds; said: in words."""

    def __init__(self, lines, said="", scale=1, task_lines=(), tasks=0, rate=None, looks=None, cpu=None):
        self.lines, self.said, self.scale, self.task_lines, self.tasks = lines, said, scale, task_lines, tasks
        self.rate, self.looks, self.cpu = rate, looks, cpu


class Contestant:
    name = ""
    coroutine_roots = False
    rows = None  # all

    def check(self, python, row):
        """Raises Absent."""
        if self.rows and row.name not in self.rows:
            raise Absent("not for this row")

    def settings(self, python, folder):
        return {}

    def beside(self, python, folder, pid, row):
        """Words of the program that attaches, or None."""
        return None

    def output(self, folder, said, row):
        return Output([])


class Nothing(Contestant):
    name = "nothing"


class NothingAgain(Contestant):
    """The noise."""
    name = "nothing again"


class Aprof(Contestant):
    name = "libaprof"

    def settings(self, python, folder):
        return {"LD_PRELOAD": h.LIBRARY, "APROF_DIR": os.path.join(folder, "spool")}

    def output(self, folder, said, row):
        spool = h.Spool(os.path.join(folder, "spool"))
        if row.children:
            return Output([line for p in spool for line in p.stacks("wall")], "%d processes" % len(list(spool)))
        process = spool.one()
        metas = process.metas()
        rate = sum(m["rate"]["got"] * (m["end_us"] - m["start_us"]) for m in metas) / max(1, sum(m["end_us"] - m["start_us"] for m in metas))
        ticks = [m["task_ticks"] for m in metas if "task_ticks" in m]
        due, missed = process.counter("ticks", "due"), process.counter("ticks", "missed")
        spent, whole = process.counter("sampler_cpu_us") + process.counter("handler_us"), process.counter("process_cpu_us")
        span = sum(m["end_us"] - m["start_us"] for m in metas) / 1e6
        words = ["%d of %d ticks missed" % (missed, due), "%.2f %% of the process's CPU" % (100 * spent / max(1, whole))]
        if row.tasks:
            words.append("%.1f task ticks/s" % (sum(t["read"] + t["repeated"] for t in ticks) / span))
        words.append("%.0f ticks/s in force at the end" % metas[-1]["budget"]["rate"])
        lost = process.lost() - missed
        if lost:
            words.append("%d lost" % lost)
        return Output(list(process.stacks("wall")), ", ".join(words), rate=rate, scale=1e-6 * rate,
                      task_lines=list(process.stacks("task")), tasks=sum(t["tasks"] for t in ticks),
                      cpu=(process.counter("sampler_cpu_us") / 1e6, process.counter("handler_us") / 1e6, whole / 1e6))


class PySpy(Contestant):
    name = "py-spy"

    def check(self, python, row):
        super().check(python, row)
        packages.program("py-spy", "py-spy")

    def beside(self, python, folder, pid, row):
        return [packages.program("py-spy", "py-spy"), "record", "--idle", "-r", str(RATE), "-f", "raw", "-o", os.path.join(folder, "stacks"),
                "-p", str(pid)] + (["--subprocesses"] if row.children else [])

    def output(self, folder, said, row):
        path = os.path.join(folder, "stacks")
        h.need(os.path.exists(path), "no output; it said: %s", h.tail(said))
        lines = []
        with open(path, encoding="utf-8") as f:
            for text in f:
                stack, _, count = text.rstrip("\n").rpartition(" ")
                frames = [(part, h.FRAME.match(part) or re.match(r"^(?P<name>.+) \((?P<path>[^)]*)\)$", part)) for part in stack.split(";")]
                lines.append(([h.Frame(p, m["name"], m["path"], int(m.groupdict().get("line") or 0)) for p, m in frames if m], int(count)))
        errors = re.search(r"Errors: (\d+)", said.decode("utf-8", "replace"))
        return Output(lines, "%s errors" % errors[1] if errors else "")


class Austin(Contestant):
    name = "austin"

    def check(self, python, row):
        super().check(python, row)
        packages.austin()
        packages.program("austin-python", "mojo2austin")
        if python.version >= (3, 15):
            raise Absent("austin 4.0.0 does not know this version")

    def beside(self, python, folder, pid, row):
        return inside(python, pid) + packages.austin() + ["-i", str(1000000 // RATE), "-o", os.path.join(folder, "mojo"), "-p", str(pid)] + (
            ["-C"] if row.children else [])

    def output(self, folder, said, row):
        mojo, text = os.path.join(folder, "mojo"), os.path.join(folder, "stacks")
        h.need(os.path.exists(mojo), "no output; it said: %s", h.tail(said))
        done = subprocess.run([packages.program("austin-python", "mojo2austin"), mojo, text], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=120)
        h.need(done.returncode == 0, "mojo2austin: %s", h.tail(done.stdout))
        lines = []
        with open(text, encoding="utf-8", errors="replace") as f:
            for line in f:
                if line.startswith("P"):
                    frames = [(p, re.match(r"^(.*):(.*):(-?\d+)$", p)) for p in line.rsplit(" ", 1)[0].split(";")[2:]]
                    lines.append(([h.Frame(p, m[2], m[1], int(m[3])) for p, m in frames if m], 1))
        errors = re.search(r"Error rate.*?(\d+)/(\d+)", re.sub(r"\x1b\[[0-9;]*m", "", said.decode("utf-8", "replace")))
        return Output(lines, "%s of %s errors" % errors.groups() if errors else "")


class Tachyon(Contestant):
    name = "Tachyon"
    more = []
    way = ["-a"]

    def check(self, python, row):
        super().check(python, row)
        if python.version < (3, 15) or python.ask("import profiling.sampling; print(1)") != "1":
            raise Absent("comes with CPython 3.15")
        if row.tasks and not self.coroutine_roots:
            raise Absent("not for this row")

    def beside(self, python, folder, pid, row):
        return inside(python, pid) + python.words[-1:] + ["-m", "profiling.sampling", "attach", "-r", str(RATE)] + self.way + self.more + [
            "--collapsed", "-o", os.path.join(folder, "stacks"), str(pid)] + (["--subprocesses"] if row.children else [])

    def output(self, folder, said, row):
        path = os.path.join(folder, "stacks")
        h.need(os.path.exists(path), "no output; it said: %s", h.tail(said))
        text = said.decode("utf-8", "replace")
        errors, missed = re.search(r"Error rate: ([0-9.]+)", text), re.search(r"[Mm]issed[^0-9]*([0-9.,]+ ?\S*)", text)
        words = ["error rate %s %%" % errors[1] if errors else "", "missed " + missed[1] if missed else ""]
        return Output(truth.tachyon_stacks(path), ", ".join(w for w in words if w))


class TachyonBlocking(Tachyon):
    """It stops the program, and is exact."""
    name = "Tachyon, blocking"
    more = ["--blocking"]
    rows = ("busy", "threads")


class TachyonTasks(Tachyon):
    """Its stacks begin with a task's coroutine."""
    name = "Tachyon, tasks"
    coroutine_roots = True
    way = ["--async-aware", "--async-mode", "all"]

    def check(self, python, row):
        super().check(python, row)
        if not row.tasks:
            raise Absent("not for this row")


class Ddtrace(Contestant):
    name = "ddtrace"
    QUIET = {"DD_TRACE_ENABLED": "false", "DD_INSTRUMENTATION_TELEMETRY_ENABLED": "false", "DD_REMOTE_CONFIGURATION_ENABLED": "false",
             "DD_CRASHTRACKING_ENABLED": "false", "DD_PROFILING_MEMORY_ENABLED": "false", "DD_PROFILING_LOCK_ENABLED": "false",
             "DD_PROFILING_EXCEPTION_ENABLED": "false", "DD_PROFILING_MAX_FRAMES": "512"}  # its 64 would cut what is deeper at its root

    def check(self, python, row):
        super().check(python, row)
        packages.for_python("ddtrace", python.version)
        packages.program("zstandard", None)

    def settings(self, python, folder):
        library = packages.for_python("ddtrace", python.version)
        packages.compiled(python, library)
        return dict(self.QUIET, PYTHONPATH=os.pathsep.join((os.path.join(HERE, "ddtrace"), library)),
                    DD_PROFILING_OUTPUT_PPROF=os.path.join(folder, "pprof"))

    def output(self, folder, said, row):
        files = glob.glob(os.path.join(folder, "pprof.*.pprof"))
        h.need(files, "no output; it said: %s", h.tail(said))
        done = subprocess.run([packages.program("zstandard", None), os.path.join(HERE, "read_pprof.py")] + files, stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, timeout=120)
        h.need(done.returncode == 0, "read_pprof: %s", h.tail(done.stderr))
        lines = []
        for text in done.stdout.splitlines():
            sample = json.loads(text)
            frames = [h.Frame("%s (%s:%d)" % tuple(f), f[0], f[1] or None, f[2]) for f in sample["frames"]]
            if sample["values"].get("wall-samples"):
                lines.append((frames, sample["values"]["wall-samples"]))
        looks = 0
        for path in glob.glob(os.path.join(folder, "pprof.*.internal_metadata.json")):
            with open(path, encoding="utf-8") as f:
                looks += json.load(f).get("sampling_event_count", 0)
        return Output(lines, looks=looks)


def inside(python, pid):
    """What leads into the root of a process that lives in another: what attaches must see its files."""
    return ["nsenter", "-t", str(pid), "-m", "-r", "--"] if python.prefix else []


ALL = [Nothing(), NothingAgain(), Aprof(), PySpy(), Austin(), Ddtrace(), Tachyon(), TachyonBlocking(), TachyonTasks()]
