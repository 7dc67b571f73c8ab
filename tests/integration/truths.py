# SPDX-License-Identifier: MIT
"""truths: stacks, shares and sums against programs that know them."""
import os
import time

import harness as h
from harness import need

PERIOD = 10000  # µs, at the default rate


def kernel_tick():
    """Ticks a second of the kernel: what bounds CPU ticks."""
    return round(1 / time.clock_getres(getattr(time, "CLOCK_MONOTONIC_COARSE", 6)))


def cpu_ticks(truth, rate):
    """CPU ticks to be expected; `samples` counts standing threads too."""
    return int(truth["cpu"] * min(rate, kernel_tick()))


FAST = {"APROF_CLOCK": "monotonic", "APROF_RATE": "10000"}

# ---------------------------------------------------------------- edges


class Legal:
    """What edges.py says can be: pairs, extents, and which functions only `cycle` reaches."""

    def __init__(self, truth):
        self.pairs = {tuple(edge) for edge in truth["edges"]}
        self.extent = {(name, file): (first, last) for name, file, first, last in truth["extent"]}
        below = {}
        for caller, _, _, callee in self.pairs:
            below.setdefault(caller, set()).add(callee)
        self.inner, todo = set(), ["cycle"]
        while todo:
            name = todo.pop()
            if name not in self.inner:
                self.inner.add(name)
                todo.extend(below.get(name, ()))

    def concerns(self, frames):
        return any(h.base(f) == "edges_generated.py" and f.name != "<module>" or
                   h.base(f) == "edges.py" and f.name in self.inner for f in frames)

    def fault(self, frames):
        """Why a stack is impossible, or None."""
        plain = h.without_markers(frames)
        if not plain:
            return None if frames[-1].text.startswith("[unseen") else "no frame at all"
        if frames[0].path is None and not frames[0].text.startswith("[thread "):
            return "begins with " + frames[0].text
        if not self.concerns(plain):
            foreign = [f for f in plain if h.base(f) == "edges.py"]
            return "root %s above edges.py" % plain[0].text if foreign and plain[0].name != "<module>" else None
        if (plain[0].name, h.base(plain[0])) != ("<module>", "edges.py"):
            return "root is %s" % plain[0].text
        for caller, callee in zip(plain, plain[1:]):
            if (caller.name, h.base(caller), caller.line, callee.name) not in self.pairs:
                return "%s -> %s" % (caller.text, callee.text)
        for frame in plain:
            first, last = self.extent.get((frame.name, h.base(frame)), (1, 0))
            if not first <= frame.line <= last:
                return "line outside its function: " + frame.text
        return None


def impossible(truth, lines):
    """[(reason, microseconds)] of the stacks that cannot be."""
    legal = Legal(truth)
    found = []
    for frames, us in lines:
        reason = legal.fault(frames)
        if reason:
            found.append((reason, us))
    return found


def phase_shares(truth, lines):
    """µs of each phase, by the function that `cycle` called."""
    found = dict.fromkeys(truth["phases"], 0)
    for frames, us in lines:
        for frame in frames:
            if h.base(frame) == "edges.py" and frame.name.startswith("phase_"):
                found[frame.name[len("phase_"):]] += us
                break
    return found


def worst_share(truth, lines, samples):
    """(points off, tolerance in points, phase) of the phase that is worst against its tolerance."""
    found, spent = phase_shares(truth, lines), truth["spent"]
    all_found, all_spent = sum(found.values()), sum(spent.values())
    need(all_found > 0, "no time in any phase")
    rows = []
    for phase in truth["phases"]:
        true = spent[phase] / all_spent
        off = abs(found[phase] / all_found - true)
        allowed = h.share_tolerance(true, samples, among=len(truth["phases"]))
        rows.append((off / allowed, 100 * off, 100 * allowed, phase))
    return max(rows)[1:]


def check_edges(truth, process, least_samples, rate=None, dropped_limit=0.005):
    """rate: of CPU ticks; None where each sample is one."""
    samples = process.counter("samples")
    need(samples >= least_samples, "only %d samples, %d expected at least", samples, least_samples)
    for metric in ("cpu", "wall"):
        lines = list(process.stacks(metric))
        wrong = impossible(truth, lines)
        need(not wrong, "%s: %d impossible stacks, like: %s", metric, len(wrong), wrong[0][0] if wrong else "")
    lines = list(process.stacks("cpu"))
    ticks = min(samples, cpu_ticks(truth, rate)) if rate else samples
    off, allowed, phase = worst_share(truth, lines, ticks)
    need(off <= allowed, "share of %s is %.2f points off, %.2f allowed at %d ticks", phase, off, allowed, ticks)
    dropped = sum(n for m in process.metas() for k, n in m["dropped"].items() if k not in h.KEPT)
    need(dropped <= dropped_limit * (samples + dropped), "%d of %d dropped: %s", dropped, samples + dropped,
         [m["dropped"] for m in process.metas()])
    return "%d samples, 0 impossible, shares within %.2f of %.2f points, %d dropped, %d missed" % (
        samples, off, allowed, dropped, process.counter("ticks", "missed"))


def edges_monotonic(python, long):
    seconds = 150 if long else 2
    truth, spool, _ = h.run_oracle(python, "edges.py", seconds, settings=dict(FAST), timeout=4 * seconds + 30)
    return check_edges(truth, spool.one(), 1000000 if long else 3000)


def edges_cpu(python, long):
    seconds, rate = 60 if long else 4, kernel_tick()
    truth, spool, _ = h.run_oracle(python, "edges.py", seconds, settings={"APROF_RATE": str(rate)}, timeout=4 * seconds + 30)
    return check_edges(truth, spool.one(), cpu_ticks(truth, rate) // 2, rate)


def edges_above_tick(python, long):
    """More is asked for than the kernel's tick gives: as true as without."""
    seconds = 60 if long else 4
    truth, spool, _ = h.run_oracle(python, "edges.py", seconds, settings={"APROF_RATE": "1000"}, timeout=4 * seconds + 30)
    return check_edges(truth, spool.one(), cpu_ticks(truth, 1000) // 2, 1000)


def edges_default(python, long):
    """Nothing but the preload: no setting that helps."""
    truth, spool, _ = h.run_oracle(python, "edges.py", 3)
    return check_edges(truth, spool.one(), cpu_ticks(truth, 100) // 2, 100)


def edges_outside(python, long):
    """No signal in application threads: less exact, and says so; never silent."""
    truth, spool, _ = h.run_oracle(python, "edges.py", 3, settings={"APROF_SIGNALS": "0"})
    process = spool.one()
    need(process.total("cpu") > 0.9e6 * truth["cpu"], "cpu %d of %d µs", process.total("cpu"), 1e6 * truth["cpu"])
    off, _, phase = worst_share(truth, list(process.stacks("cpu")), process.counter("samples"))
    wrong = impossible(truth, list(process.stacks("cpu")))
    return "worst share %s %.1f points, impossible %.2f %% of the time" % (phase, off, 100 * sum(us for _, us in wrong) / process.total("cpu"))


def edges_syscall_reader(python, long):
    truth, spool, _ = h.run_oracle(python, "edges.py", 2, settings={"APROF_READER": "syscall", "APROF_OVERHEAD": "0"})
    need(all(m["reader"] == "syscall" for m in spool.one().metas()), "the metadata does not say reader syscall")
    return check_edges(truth, spool.one(), cpu_ticks(truth, 100) // 2, 100)


# ---------------------------------------------------------------- laws


def bounds(truth, usage=None):
    """(low, high) of cpu and of wall in µs, from the threads' own notes."""
    threads = truth["threads"]
    cpu_low = sum(t["cpu"] for t in threads)
    whole = usage.ru_utime + usage.ru_stime if usage else truth["process_cpu"]
    cpu_high = max(whole - truth["foreign_cpu"], cpu_low)
    wall_low = sum(t["inner"] for t in threads)
    wall_high = sum(t["outer"] or t["inner"] for t in threads)
    return 1e6 * cpu_low, 1e6 * cpu_high, 1e6 * wall_low, 1e6 * wall_high


def check_laws(truth, process, usage=None, outside=1.0):
    """outside: seconds that the main thread lived before and after its own notes, at most."""
    cpu_low, cpu_high, wall_low, wall_high = bounds(truth, usage)
    cpu, wall = process.total("cpu"), process.total("wall")
    cpu_slack = h.sum_tolerance(cpu_high, 0.01, period_us=PERIOD, threads_at_end=1)
    wall_slack = h.sum_tolerance(wall_high, 0.005, period_us=PERIOD, threads_at_end=1)
    need(cpu_low - cpu_slack <= cpu <= cpu_high + cpu_slack, "cpu %.0f, law %.0f to %.0f ms (± %.0f)",
         cpu / 1e3, cpu_low / 1e3, cpu_high / 1e3, cpu_slack / 1e3)
    need(wall_low - wall_slack <= wall <= wall_high + wall_slack + 1e6 * outside, "wall %.0f, law %.0f to %.0f ms (± %.0f)",
         wall / 1e3, wall_low / 1e3, wall_high / 1e3, wall_slack / 1e3)
    waiting = waiting_cpu(list(process.stacks("cpu")))
    used = 1e6 * sum(t["waits_cpu"] for t in truth["threads"])
    # what the waits really used is seen in ticks of a period each
    allowed = max(0.005 * cpu, used + h.STANDARD_ERRORS * (used * PERIOD) ** 0.5)
    need(waiting <= allowed, "%.1f ms of cpu on waiting calls, %.1f allowed", waiting / 1e3, allowed / 1e3)
    return "cpu %.3f of low, %.3f of high; wall %.4f, %.4f; on waits %.2f %%" % (
        cpu / cpu_low, cpu / cpu_high, wall / wall_low, wall / (wall_high or 1), 100 * waiting / cpu)


def waiting_cpu(lines):
    """CPU on stacks that end in a waiting call of laws.py, or in what it calls."""
    return h.total_where(lines, lambda frames: any(h.base(f) == "laws.py" and f.name.startswith("wait_") for f in frames))


def laws(count):
    def test(python, long):
        seconds = 20 if long else 4
        truth, spool, result = h.run_oracle(python, "laws.py", count, seconds, timeout=seconds + 60)
        outside = result.wall - (truth["ended"] - truth["began"])
        return check_laws(truth, spool.one(), result.rusage, outside)
    return test


def laws_windows(python, long):
    """The laws over windows of one second: nothing is lost or doubled where one is sealed."""
    truth, spool, result = h.run_oracle(python, "laws.py", 8, 4, settings={"APROF_WINDOW": "1"})
    process = spool.one()
    need(len(process.windows) >= 4, "%d windows in 4 s of windows of 1 s", len(process.windows))
    spans = [(m["start_us"], m["end_us"]) for m in process.metas()]
    need(all(a[1] <= b[0] for a, b in zip(spans, spans[1:])), "windows overlap: %s", spans)
    return check_laws(truth, process, result.rusage, result.wall - (truth["ended"] - truth["began"]))


# ---------------------------------------------------------------- threads that nobody sees

def crowd(python, long):
    """Threads that live for less than a period: their CPU is where it was used, as far as ticks of the others tell."""
    truth, spool, _ = h.run_oracle(python, "crowd.py", 40 if long else 6, timeout=120)
    process = spool.one()
    lines, total = list(process.stacks("cpu")), sum(truth["used"].values())
    worst = 0
    for name, seconds in truth["used"].items():
        got = h.total_where(lines, lambda f, n=name: any(x.name == n for x in f)) / 1e6 / total
        allowed = h.share_tolerance(seconds / total, 1e6 * total / PERIOD, among=len(truth["used"]))
        need(abs(got - seconds / total) <= allowed, "%s has %.1f %% of the CPU of requests, %.1f true (%.1f points allowed)",
             name, 100 * got, 100 * seconds / total, 100 * allowed)
        worst = max(worst, abs(got - seconds / total))
    unseen = process.counter("cpu_unseen_us") / 1e6
    need(unseen <= 0.1 * total, "%.2f s of %.2f unseen", unseen, total)
    return "%d threads, shares within %.1f points, %.2f s of %.2f unseen" % (truth["threads"], 100 * worst, unseen, total)


def batches(python, long):
    """Threads that work for a few ticks and end, many at once, looked at often: before and after its frames each is met without any."""
    code = ("import threading, time\n"
            "def work():\n    end = time.thread_time() + 0.03\n    while time.thread_time() < end: sum(range(1000))\n"
            "while time.process_time() < %d:\n"
            "    threads = [threading.Thread(target=work) for _ in range(20)]\n"
            "    for t in threads: t.start()\n"
            "    for t in threads: t.join()\n" % (20 if long else 3))
    process = h.Spool(h.run(["-c", code], "batches", python=python, settings={"APROF_RATE": "1000"}).spool).one()
    used, shown = process.counter("process_cpu_us") - process.counter("sampler_cpu_us"), process.total("cpu")
    need(shown >= 0.98 * used, "%.3f s of CPU shown, %.3f used", shown / 1e6, used / 1e6)
    return "%.4f of the CPU" % (shown / used)


# ---------------------------------------------------------------- phases against the tick


def check_phases(truth, process):
    lines = list(process.stacks("cpu"))
    worst, resting = 9.9, 0
    for n, life in enumerate(truth["threads"]):
        file = "phases_%d.py" % n
        on_work = h.total_where(lines, lambda f: any(x.name == "work_%d" % n and h.base(x) == file for x in f))
        worst = min(worst, on_work / (1e6 * life["work"]))
        resting += h.total_where(lines, lambda f: h.leaf(f) is not None and h.leaf(f).name == "rest_%d" % n)
    used_between = 1e6 * sum(t["cpu"] - t["work"] for t in truth["threads"])
    # a phase is seen as often as its CPU has periods: one look in the turn around its work is one period there
    seen = 1e6 * min(t["work"] for t in truth["threads"]) / PERIOD
    least = 0.95 - h.STANDARD_ERRORS * (0.95 * 0.05 / seen) ** 0.5
    need(worst >= least, "a phase has %.3f of its CPU on its function, %.3f expected", worst, least)
    need(resting <= max(0.005e6 * sum(t["cpu"] for t in truth["threads"]), used_between),
         "%.1f ms on time.sleep; the turns used %.1f ms beside their work", resting / 1e3, used_between / 1e3)
    total = sum(t["work"] for t in truth["threads"])
    return "worst phase %.3f of its CPU, on sleep %.2f %%" % (worst, resting / 1e4 / total)


def phases(python, long):
    truth, spool, _ = h.run_oracle(python, "phases.py", 20 if long else 4)
    return check_phases(truth, spool.one())


# ---------------------------------------------------------------- short-lived code, depth


def check_shortlived(truth, process):
    need(truth["reused"] > 20, "addresses were reused only %d times: this run proves nothing", truth["reused"])
    found = {}
    for frames, us in process.stacks("cpu"):
        for frame in frames:
            if h.base(frame) == "short.py" and frame.name != "<module>":
                found[frame.name] = found.get(frame.name, 0) + us
    spent = truth["spent"]
    burnt = sum(v for k, v in spent.items() if k.startswith("burner"))
    on_burners = sum(us for name, us in found.items() if spent.get(name, 0) > 0.0005)
    on_idlers = sum(us for name, us in found.items() if spent.get(name, 0) <= 0.0005)
    # one tick may fall on the little that they use; two hardly ever
    need(on_idlers <= max(1.5 * PERIOD, 0.005e6 * burnt), "%.1f of %.0f ms on functions that used none", on_idlers / 1e3, burnt * 1e3)
    need(0.9e6 * burnt <= on_burners <= 1.1e6 * burnt, "%.0f ms on the burners, they used %.0f", on_burners / 1e3, burnt * 1e3)
    return "%d functions, %d addresses reused, %.2f %% on idle ones" % (len(spent), truth["reused"], on_idlers / 1e4 / burnt)


def shortlived(settings):
    def test(python, long):
        truth, spool, _ = h.run_oracle(python, "shortlived.py", 2, settings=dict(settings))
        return check_shortlived(truth, spool.one())
    return test


def check_deep(truth, process, depth, handler_limit):
    """The cut is marked first, the leaf kept; below the handler's own limit the number is exact."""
    lines = [(f, us) for f, us in process.stacks("cpu") if any(x.name == "burn" for x in f)]
    burnt = sum(us for _, us in lines)
    need(burnt >= 0.9e6 * truth["cpu"] - PERIOD, "%d µs at the bottom of %d used", burnt, 1e6 * truth["cpu"])
    for frames, _ in lines:
        if truth["frames"] <= depth:
            need(frames[0].name == "<module>" and len(frames) == truth["frames"], "%d frames from %s, %d expected uncut",
                 len(frames), frames[0].text, truth["frames"])
            continue
        need(frames[0].text.startswith("[truncated "), "not marked: begins with %s", frames[0].text)
        need(len(frames) - 1 == depth, "%d frames kept of %d", len(frames) - 1, depth)
        cut = int(frames[0].text.split()[1].rstrip("]"))
        if truth["frames"] <= handler_limit:
            need(cut == truth["frames"] - depth, "[truncated %d] of %d frames, %d kept", cut, truth["frames"], depth)
        need(cut > 0, "[truncated %d]", cut)
    if truth["frames"] > depth:
        need(all(m["limits"].get("depth", 0) > 0 for m in process.metas()), "limits{} does not count the depth: %s",
             [m["limits"] for m in process.metas()])
    return "%d frames, %d kept" % (truth["frames"], min(depth, truth["frames"]))


def deep(frames, depth=None):
    def test(python, long):
        settings = {"APROF_DEPTH": str(depth)} if depth else {}
        truth, spool, _ = h.run_oracle(python, "deep.py", 0.5, frames, settings=settings)
        return check_deep(truth, spool.one(), depth or 512, 4 * (depth or 512))
    return test


TESTS = [
    ("edges-default", edges_default, True),
    ("edges-10kHz", edges_monotonic, False),
    ("edges-cpu-ticks", edges_cpu, True),
    ("edges-above-tick", edges_above_tick, True),
    ("edges-outside", edges_outside, True),
    ("edges-syscall", edges_syscall_reader, True),
    ("laws-1", laws(1), h.HALF),
    ("laws-8", laws(8), True),
    ("laws-60", laws(60), True),
    ("laws-windows", laws_windows, True),
    ("phases", phases, h.HALF),
    ("shortlived", shortlived({}), True),
    ("crowd", crowd, True),
    ("batches", batches, True),
    ("shortlived-1kHz", shortlived({"APROF_CLOCK": "monotonic", "APROF_RATE": "1000"}), True),
    ("deep-400", deep(400), True),
    ("deep-1500", deep(1500), True),
    ("deep-3000-of-64", deep(3000, 64), True),
]
