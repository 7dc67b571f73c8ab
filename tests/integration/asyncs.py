# SPDX-License-Identifier: MIT
"""asyncs: what tasks did and waited for, against programs that know it.

The programs are tests/oracles/async_*.py; how stacks are compared is in stacked.py.
"""
import json
import os
import random
import signal
import threading
import time
import urllib.request

import harness as h
import stacked as s
from harness import need
from selftest_asyncs import selftest
from truths import kernel_tick

ONE_POINT = 0.01


def spool_of(python, program, *args, settings=None, **options):
    """Runs an oracle; (its truth, the one process of its spool, how it ended). Every stack is looked at for its shape."""
    truth, spool, result = h.run_oracle(python, program, *args, settings=s.dense(settings), **options)
    process = spool.one()
    s.check_shape(process)
    s.note_longest(longest_period(process, result.wall))
    return truth, process, result


# ---------------------------------------------------------------- the same work in three forms

def own_stacks(process, metric):
    """µs by the program's own frames: asyncio's, our markers and the driving script's left out, the leaf without its line."""
    sums = {}
    for frames, us in process.stacks(metric):
        mine = [f for f in frames if f.path is not None and h.base(f) in ("work.py", "truth.py")]
        if not mine or mine[0].name != "main":
            continue
        key = tuple((f.name, f.line) for f in mine[:-1]) + ((mine[-1].name, None),)
        sums[key] = sums.get(key, 0) + us
    return sums


def as_text(key):
    return ";".join(name if line is None else "%s:%d" % (name, line) for name, line in key)


def by_function(sums, kinds):
    """µs by what the program noted: `compute load` is load() in compute()."""
    found = {}
    for key, us in sums.items():
        names = [name for name, _ in key]
        for kind in kinds:
            if kind in names[1:]:
                name = "%s %s" % (kind, names[names.index(kind) - 1])
                found[name] = found.get(name, 0) + us
    return found


def check_shares(form, found, truth, ticks):
    """Each function's share against the program's own clock."""
    all_found, all_true, worst = sum(found.values()), sum(truth.values()), (0, 0, "")
    need(all_found > 0, "%s: none of %s is in a stack", form, sorted(truth))
    for name, true in truth.items():
        share, true = found.get(name, 0) / all_found, true / all_true
        off, allowed = abs(share - true), h.share_tolerance(true, ticks, points=1, among=len(truth))
        need(off <= allowed, "%s: %s has %.2f %%, by its own clock %.2f (± %.2f)", form, name, 100 * share, 100 * true, 100 * allowed)
        worst = max(worst, (off, allowed, "%s in %s" % (name, form)))
    return worst


def check_equal_stacks(forms):
    """What has a point of the time in one form is a stack of all forms."""
    for form, sums in forms.items():
        whole = sum(sums.values())
        for key, us in sums.items():
            lacks = [other for other, found in forms.items() if key not in found]
            need(us <= ONE_POINT * whole or not lacks, "%s has %s (%.2f %%), %s has not; it has: %s", form, as_text(key), 100 * us / whole,
                 lacks and lacks[0], [as_text(k) for k in forms[lacks[0]]][:12] if lacks else "")


FORMS = ("tasks", "coroutines", "plain")


def run_form(python, form, seconds, kind, settings):
    truth, process, _ = spool_of(python, "async_same.py", form, seconds, kind, settings=settings, timeout=seconds + 60)
    return truth, process


def same_cpu(python, long):
    """What computes, at ten thousand samples a second."""
    forms, worst = {}, []
    for form in FORMS:
        truth, process = run_form(python, form, 20 if long else 3, "busy", {"APROF_CLOCK": "monotonic", "APROF_RATE": "10000"})
        forms[form] = own_stacks(process, "cpu")
        used = {"compute " + name: seconds for name, seconds in truth["cpu"].items()}
        worst.append(check_shares(form, by_function(forms[form], ["compute"]), used, process.counter("samples")))
    check_equal_stacks(forms)
    return "worst %.2f of %.2f points: %s" % (100 * max(worst)[0], 100 * max(worst)[1], max(worst)[2])


def same_waits(python, long):
    """Waits and all: `task` of tasks and `wall` of the thread that does the same."""
    forms, worst = {}, []
    for form in FORMS:
        truth, process = run_form(python, form, 30 if long else 4, "waits", {"APROF_RATE": "1000", "APROF_MIN_RATE": "1000"})
        forms[form] = own_stacks(process, "wall" if form == "plain" else "task")
        ticks = process.counter("ticks", "taken") if form == "plain" else 1e6 * truth["whole"] / period_of_tasks(process, truth["whole"])
        worst.append(check_shares(form, by_function(forms[form], ["compute", "pause"]), truth["spent"], ticks))
    check_equal_stacks(forms)
    return "worst %.2f of %.2f points: %s" % (100 * max(worst)[0], 100 * max(worst)[1], max(worst)[2])


# ---------------------------------------------------------------- tasks that outlive their maker

def check_outlives(truth, found, creators=True):
    times = truth["outlives"]
    made, main = times["create_task"], times["main"]
    below = s.holding(found, "outliving")
    whole = sum(c.us for c in below)
    need(whole > 0, "outliving() is in no stack; found: %s", s.show(found))
    maker = ["outlives", "create_task", "outliving", "sleep"] if creators else ["outliving", "sleep"]
    wanted = ((maker, made / (made + main)), (["outlives", "outliving", "sleep"], main / (made + main)))
    for stack, share in wanted:
        got = s.total(below, lambda c, w=stack: s.fits(c, w)) / whole
        changes = 2 * (made + main)  # two a round of a second, each anywhere between two ticks
        allowed = max(1.5 * ONE_POINT, h.STANDARD_ERRORS * s.PERIOD * (changes / 6) ** 0.5 / whole)
        need(abs(got - share) <= allowed, "%s has %.1f %%, not %.1f (± %.1f); found: %s", s.text_of(stack), 100 * got, 100 * share,
             100 * allowed, s.show(below))
    need(abs(whole - 1e6 * (made + main)) <= s.tolerance(1e6 * (made + main)), "outliving() has %.0f of %.0f ms", whole / 1e3, 1e3 * (made + main))
    if creators:
        s.check_times(found, [(["outlives", "create_task", "sleep"], made)])
    return "%.1f %% below create_task" % (100 * s.total(below, lambda c: "create_task" in c.names) / whole)


def outlives(python, long):
    truth, process, _ = spool_of(python, "async_outlives.py", "outlives", 30 if long else 3, timeout=120)
    return check_outlives(truth, s.chains(process, "task"))


def check_creators(truth, found, seconds, creators=True):
    rows = [((under if creators and under else []) + [task, "sleep"], seconds) for task, under in truth["creators"].items()]
    s.check_times(found, rows, near=lambda names: s.holding(found, next(n for n in names if n.startswith("of_"))))
    return "%d tasks that nobody awaits" % len(rows)


def creators(python, long):
    truth, process, _ = spool_of(python, "async_outlives.py", "creators", 1.5)
    return check_creators(truth, s.chains(process, "task"), 1.5)


def check_spawn(truth, found, seconds):
    """The three stand below the spawn() that made them while it runs, then below request(): never below another one."""
    at = truth["spawn"]
    for chain in found:
        mine = [n for n in chain.names if n.startswith("spawned_")]
        if mine and "spawn" in chain.names:
            line = chain.frames[chain.names.index("request")].line if "request" in chain.names else None
            need(line == at[mine[0]], "%s stands below another spawn(): of line %s, not %d: %s", mine[0], line, at[mine[0]], s.show([chain]))
    rows = []
    for n in (1, 2, 3):
        name = "spawned_%d" % n
        rows.append((["spawns", ["request", at[name]], "spawn", name, "sleep"], 0.1 * seconds))
        rows.append((["spawns", "request", name, "sleep"], (0.8 - 0.1 * n) * seconds))
    s.check_times(found, rows, near=lambda names: s.holding(found, next(n for n in names if n.startswith("spawned_"))))


def spawn(python, long):
    truth, process, _ = spool_of(python, "async_outlives.py", "spawn", 3)
    check_spawn(truth, s.chains(process, "task"), 3)


def creators_off(python, long):
    """Not hooked: tasks that nobody awaits are roots, all else is as before."""
    off = {"APROF_CREATORS": "0"}
    truth, process, _ = spool_of(python, "async_outlives.py", "creators", 1, settings=off)
    check_creators(truth, s.chains(process, "task"), 1, creators=False)
    truth, process, _ = spool_of(python, "async_outlives.py", "outlives", 2, settings=off)
    return check_outlives(truth, s.chains(process, "task"), creators=False)


# ---------------------------------------------------------------- every way to wait

class Matrix:
    """What async_matrix.py says its constructs are."""

    def __init__(self, truth):
        self.truth, self.cells = truth, truth["cells"]

    def owner(self, name):
        if name in self.cells:
            return name
        return name[:-2] if name[-2:-1] == "_" and name[:-2] in self.cells else None

    def fault(self, chain):
        """Why this stack cannot be, or None."""
        owners = {self.owner(n) for n in chain.names} - {None}
        if len(owners) > 1:
            return "of two constructs"
        if not owners:
            return None
        cell = owners.pop()
        mine = [n for n in chain.names if self.owner(n)]
        if not any(s.subsequence(mine, stack) for stack, _ in self.cells[cell]) and cell + "_n" not in mine:
            return "in another order than any that is expected"
        return None

    def wrong_line(self, chain):
        """A coroutine of an expected stack stands where one of its awaits is."""
        for frame in chain.frames:
            lines = self.truth["awaits"].get(frame.name)
            if lines and frame.line not in lines:
                return "%s at line %d; its awaits are at %s" % (frame.name, frame.line, lines)
        return None

    def check(self, found):
        for chain in found:
            reason = self.fault(chain)
            need(not reason, "a stack %s: %s", reason, s.show([chain]))

    def exact(self, found, cell):
        """(µs on the expected stacks, µs on others, the others) of a construct."""
        mine = [c for c in found if any(self.owner(n) == cell for n in c.names)]
        right = [c for c in mine if any(s.fits(c, stack) for stack, _ in self.cells[cell])]
        for chain in right:
            wrong = self.wrong_line(chain)
            need(not wrong, "%s: %s", s.show([chain]), wrong)
        others = [c for c in mine if c not in right]
        return sum(c.us for c in right), sum(c.us for c in others), others


def each_failing(cells, check):
    """The first ten that fail in one message, not only the first."""
    failed = []
    for cell in cells:
        try:
            check(cell)
        except h.Failure as reason:
            failed.append(str(reason))
    need(not failed, "%d of %d: %s", len(failed), len(cells), "\n    ".join([""] + failed[:10]))


def check_matrix(truth, found, times=True):
    """times: those of each state; else only that each is seen, in a stack that is right."""
    matrix = Matrix(truth)

    def check(cell):
        mine = [c for c in found if any(matrix.owner(n) == cell for n in c.names)]
        for chain in mine:
            reason = matrix.fault(chain)
            need(not reason, "%s: a stack %s: %s", cell, reason, s.show([chain]))
        if times:
            s.check_times(mine, matrix.cells[cell], near=lambda names: mine)
        right, stray, others = matrix.exact(mine, cell)
        wanted = " or ".join(s.text_of(stack) for stack, _ in matrix.cells[cell])
        need(right > 0, "%s: not on %s; found: %s", cell, wanted, s.show(mine))
        need(stray <= s.tolerance(right, 0.05, 4), "%s: %.0f ms on other stacks: %s", cell, stray / 1e3, s.show(others))
    each_failing(matrix.cells, check)
    return "%d constructs; not in Python: %d" % (len(matrix.cells), len(truth["cannot"]))


def matrix_waits(python, long):
    truth, process, _ = spool_of(python, "async_matrix.py", "waits", 6 if long else 1.5, timeout=120)
    return check_matrix(truth, s.chains(process, "task"))


def matrix_syscall(python, long):
    """A call of the system for every word: tasks are read so seldom that a state may be over before it is seen."""
    truth, process, _ = spool_of(python, "async_matrix.py", "waits", 6 if long else 3, settings={"APROF_READER": "syscall"}, timeout=120)
    return check_matrix(truth, s.chains(process, "task"), times=False)


def check_matrix_cpu(truth, found, rate):
    """Each construct is seen, under its awaiters, and next to nothing of its CPU is anywhere else."""
    matrix, sums = Matrix(truth), [0, 0]

    def check(cell):
        mine = [c for c in found if any(matrix.owner(n) == cell for n in c.names)]
        for chain in mine:
            reason = matrix.fault(chain)
            need(not reason, "%s: a stack %s: %s", cell, reason, s.show([chain]))
        right, stray, others = matrix.exact(mine, cell)
        sums[0], sums[1] = sums[0] + right, sums[1] + stray
        used = sum(1e6 * seconds for _, seconds in matrix.cells[cell])
        need(right > 0, "%s: none of %.0f ms of cpu on %s; found: %s", cell, used / 1e3,
             " or ".join(s.text_of(stack) for stack, _ in matrix.cells[cell]), s.show(mine))
        need(stray <= s.tolerance(right, 0.2, 4, 1e6 / rate), "%s: %.0f ms of cpu on other stacks: %s", cell, stray / 1e3, s.show(others))
    each_failing(matrix.cells, check)
    need(sums[1] <= 0.05 * sums[0], "%.0f of %.0f ms of cpu on other stacks", sums[1] / 1e3, sum(sums) / 1e3)
    return "%d constructs, %.2f %% on other stacks" % (len(matrix.cells), 100 * sums[1] / sum(sums))


def matrix_burns(**settings):
    def test(python, long):
        rate = kernel_tick()
        truth, process, _ = spool_of(python, "async_matrix.py", "burns", 0.4 if long else 0.048, timeout=240,
                                     settings={"APROF_RATE": str(rate), **settings})
        return check_matrix_cpu(truth, s.chains(process, "cpu"), rate)
    return test


# ---------------------------------------------------------------- tasks that hardly live

FAST = {"APROF_RATE": "1000"}


def check_callers(found, least):
    """Of each side's time in tasks, how much stands below its caller."""
    notes = []
    for side, task in (("left", "left_task"), ("right", "right_task")):
        mine = s.holding(found, task)
        whole, below = sum(c.us for c in mine), s.total(mine, lambda c: side in c.names)
        need(whole > 0, "%s() is in no stack", task)
        need(below >= least * whole, "%s(): %.1f %% below %s(); others: %s", task, 100 * below / whole, side,
             s.show([c for c in mine if side not in c.names]))
        need(below == s.total(mine, lambda c: c.names[:2] == ("main", side)), "%s(): not below main;%s: %s", task, side,
             s.show([c for c in mine if side in c.names and c.names[:2] != ("main", side)]))
        notes.append("%s %.2f %%" % (side, 100 * below / whole))
    return ", ".join(notes)


def short(python, long):
    truth, process, _ = spool_of(python, "async_short.py", "short", 30 if long else 4, settings=FAST, timeout=120)
    for metric in ("cpu", "wall", "task"):
        s.check_apart(s.chains(process, metric), ("left", "right"), metric)
    note = check_callers(s.chains(process, "task"), 0.9)
    return "%d tasks a second, below their caller: %s" % (sum(truth["made"].values()) / truth["seconds"], note)


def alternate(python, long):
    truth, process, _ = spool_of(python, "async_short.py", "alternate", 30 if long else 3, settings=FAST, timeout=120)
    for metric in ("cpu", "wall", "task"):
        s.check_apart(s.chains(process, metric), ("left", "right"), metric)
    found = s.chains(process, "task")
    s.check_times(found, [(["main", "right_alternates", "right_waits", "..."], truth["seconds"])], part=0.15)
    burning = ["main", "left_alternates", "left_computes", "left_burns", "burn"]
    s.check_times(found, [(burning, truth["computing"])], part=0.35)  # on a machine of others' it also waits for a processor
    in_task, in_wall = (s.total(s.chains(process, metric), lambda c: s.fits(c, burning)) for metric in ("task", "wall"))
    need(abs(in_task - in_wall) <= 0.01 * in_wall, "left_burns() has %.0f ms as a task, %.0f as a thread", in_task / 1e3, in_wall / 1e3)


# ---------------------------------------------------------------- the moments between

def check_edges(truth, found):
    def check(row):
        s.check_times(found, [row], near=lambda names: [c for c in found if names[0].split("_")[0] in " ".join(c.names)])
    joined = {}
    for stack, seconds in truth["expected"]:
        joined.setdefault(s.text_of(stack), [stack, 0])[1] += seconds
    each_failing(list(joined.values()), check)
    return "%d states" % len(joined)


def edges(python, long):
    truth, process, _ = spool_of(python, "async_edges.py", 0.3)
    return check_edges(truth, s.chains(process, "task"))


# ---------------------------------------------------------------- the law

def period_of_tasks(process, seconds):
    """µs between two ticks over the tasks, as they were."""
    ticks = process.counter("task_ticks", "read") + process.counter("task_ticks", "repeated")
    return 1e6 * seconds / max(ticks, 1)


def longest_period(process, seconds):
    """The same where one of them had to wait for its share of a core, a hundredth: so the last one may. 0: there was none."""
    ticks = [meta["task_ticks"] for meta in process.metas() if "task_ticks" in meta]
    read, all_ticks = sum(t["read"] for t in ticks), sum(t["read"] + t["repeated"] for t in ticks)
    return 1e6 * seconds / all_ticks + 100 * sum(t["cpu_us"] for t in ticks) / read if read else 0


def check_law(truth, found, births_apart=True, period=s.PERIOD, figure=0.01):
    """Sums of lives by kind. A tick finds a task alive or not: that is what a standard error is made of here;
    where all are born at once it is one tick for all of them."""
    notes = []
    for kind, seconds in truth["lives"].items():
        us = 1e6 * seconds
        got = s.total(found, lambda c, k=kind: any(n == "life_" + k for n in c.names))
        abreast = max(1, us / (1e6 * truth["seconds"]))
        allowed = max(figure * us, h.STANDARD_ERRORS * (us * period) ** 0.5 if births_apart else period * abreast)
        need(abs(got - us) <= allowed, "%s: %.3f s of %.3f (± %.3f); found: %s", kind, got / 1e6, seconds, allowed / 1e6,
             s.show(s.holding(found, "life_" + kind)))
        notes.append("%s %.4f" % (kind, got / us))
    return ", ".join(notes)


def law(*arguments, long_arguments=None, births_apart=True, settings=None):
    def test(python, long):
        truth, process, _ = spool_of(python, "async_law.py", *(long_arguments if long and long_arguments else arguments), settings=settings,
                                     timeout=240)
        period = (period_of_tasks if births_apart else longest_period)(process, truth["seconds"])
        return check_law(truth, s.chains(process, "task"), births_apart, period)
    return test


def masses(python, long):
    truth, process, _ = spool_of(python, "async_law.py", "masses", 1000000 if long else 50000, timeout=300)
    sizes = truth["noted"]
    grown = sizes[-1] - sizes[len(sizes) // 5]
    need(grown <= 8 << 20, "the process grew by %.1f MiB while tasks came and went", grown / (1 << 20))
    # these live some ms, in a process that computes all the time: a task that ends while it is read cannot be stacked
    note = check_law(truth, s.chains(process, "task"), period=period_of_tasks(process, truth["seconds"]), figure=0.1)
    kinds = {c.names for c in s.chains(process, "task")}
    need(len(kinds) < 500, "%d different stacks", len(kinds))
    return "%d tasks/s, grown by %.1f MiB, %s" % ((1000000 if long else 50000) / truth["seconds"], grown / (1 << 20), note)


def cycle(python, long):
    truth, process, _ = spool_of(python, "async_law.py", "cycle", 2)
    found = s.chains(process, "task")
    s.check_times(found, [(["[cycle]", "cycle_a", "cycle_b", "cycle_c"], truth["seconds"]),
                          (["[cycle]", "leafy_a", "leafy_b", "leafy_x", "sleep"], truth["seconds"])],
                  near=lambda names: [c for c in found if any(n.startswith(("cycle_", "leafy_")) for n in c.names)])


# ---------------------------------------------------------------- depth

def links_of(chain):
    return [int(n[5:]) for n in chain.names if n.startswith("link_")]


RECORD_LEAST = 4000  # frames that a CPU tick's record has room for, at least


def check_deep(truth, found, depth, metric):
    """All links in order, outermost first; or the cut is marked and the innermost are there."""
    count = truth["count"]
    mine = [c for c in found if "link_0" in c.names]
    whole = sum(c.us for c in mine)
    expected = 1e6 * (truth["cpu"] if metric == "cpu" else truth["lived"])
    need(abs(whole - expected) <= s.tolerance(expected), "%s: link_0 has %.0f of %.0f ms; found: %s", metric, whole / 1e3, expected / 1e3,
         s.show([c for c in found if links_of(c)], 2)[:600])
    for chain in mine:
        links = links_of(chain)
        need(links == list(range(len(links) - 1, -1, -1)), "%s: not in order: %s ...", metric, links[:20])
        cut = [n for n in chain.names if n.startswith("[truncated ")]
        if cut:
            least = min(depth, RECORD_LEAST)
            need(least <= len(chain.names) - 1 <= depth, "%s: %d frames kept, not %d, and %s", metric, len(chain.names) - 1, depth, cut[0])
        else:
            need(len(links) == count + 1, "%s: %d links of %d, and no mark", metric, len(links), count + 1)
    return len(links_of(mine[0]))


def deep(kind, count, depth=None):
    def test(python, long):
        settings = {"APROF_DEPTH": str(depth)} if depth else {}
        truth, process, _ = spool_of(python, "async_deep.py", kind, count, 1, settings=settings)
        kept = [check_deep(truth, s.chains(process, metric), depth or 512, metric) for metric in ("task", "cpu")]
        if count + 20 > (depth or 512):
            limits = [m["limits"] for m in process.metas()]
            need(all("depth" in x for x in limits), "limits{} does not count the depth: %s", limits)
        else:
            need(kept == [count + 1] * 2, "%s of %d links though there is room", kept, count + 1)
        return "links in task, cpu: %s of %d" % (kept, count + 1)
    return test


# ---------------------------------------------------------------- loops of all kinds

MODULES = {"uvloop": "uvloop", "anyio": "anyio", "trio": "trio"}


def runs_without(python, program, *words, why):
    """Whether it runs by itself: what CPython cannot do is nobody's failure."""
    run = h.Run([h.oracle(program)] + [str(w) for w in words], "without", python=python, preload=False)
    result = run.finish()
    if result.status != 0:
        raise h.Skip("%s: status %d: %s" % (why, result.status, h.tail(result.err).splitlines()[-1]))


def loop_of(kind, since=None, settings=None, also=None, seconds=1):
    """since: version from which there is such a thing."""
    def test(python, long):
        if since and python.version < since:
            raise h.Skip("from %d.%d on" % since)
        if kind in MODULES and python.ask("import " + MODULES[kind]) is None:
            raise h.Skip("no module %s" % MODULES[kind])
        if kind == "sub":
            runs_without(python, "async_loops.py", kind, 0.1, why="not by itself either")
        truth, process, _ = spool_of(python, "async_loops.py", kind, seconds, settings=settings)
        found = s.chains(process, "task")
        if kind == "delay":
            truth["expected"] = from_the_first_sample(process, truth["expected"])
        s.check_times(found, truth["expected"], near=lambda names: found, part=0.15)
        return also(truth, process, found) if also else None
    return test


def from_the_first_sample(process, expected):
    first = process.metas()[0]["start_us"] / 1e6
    return [(stack, last - first) for *stack, last in expected]


def two_threads(truth, process, found):
    for metric in ("cpu", "wall", "task"):
        s.check_apart(s.chains(process, metric), ("first_", "second_"), metric)
    for side in ("first", "second"):
        mine = [f for f, _ in process.stacks("task") if any(x.name == side + "_leaf" for x in f)]
        need(all("run_" + side in [x.name for x in f] and f[0].name == "Thread._bootstrap" for f in mine),
             "%s_leaf() stands on another thread's frames: %s", side, [";".join(x.name for x in f) for f in mine][:2])


def eager_once(truth, process, found):
    """While the eager task computes inside its maker, there is one of them, and each frame once."""
    for metric in ("task", "cpu", "wall"):
        chains = s.chains(process, metric)
        twice = [c for c in chains if c.names.count("eager_main") > 1 or c.names.count("eager_child") > 1]
        need(not twice, "%s: a frame twice: %s", metric, s.show(twice))
    alone = s.total(found, lambda c: "eager_main" in c.names and "eager_child" not in c.names)
    need(alone <= 4 * s.PERIOD, "eager_main() has %.0f ms of its own: counted twice; found: %s", alone / 1e3, s.show(found))
    cpu = s.chains(process, "cpu")
    s.check_times(cpu, [(["eager_main", "create_task", "...", "eager_child", "eager_inner", "computes", "burn"], truth["cpu"])],
                  near=lambda names: cpu)


def callback_apart(truth, process, found):
    in_task = s.holding(found, "callback_burns")
    need(not in_task, "a callback's time on a task: %s", s.show(in_task))
    for metric, seconds in (("cpu", truth["cpu"]), ("wall", 1)):
        chains = s.holding(s.chains(process, metric), "callback_burns")
        s.check_times(chains, [(["callback_burns", "computes", "burn"], seconds)], near=lambda names: chains)


def blocked_on_both(truth, process, found):
    wall = s.chains(process, "wall")
    s.check_times(wall, truth["expected"], near=lambda names: s.holding(wall, "blocks"))


def no_tasks(truth, process, found):
    need(process.total("task") == 0, "tasks that are none of asyncio's: %s", s.show(found))


# ---------------------------------------------------------------- what may confuse

def ours_and_theirs(err):
    lines = err.splitlines()
    return [x for x in lines if x.startswith(b"aprof: ")], [x for x in lines if not x.startswith(b"aprof: ")]


def same_as_without(python, words, settings=None, env=None):
    """Status and output are those of a run without us, but for one line at most. Returns our run and its spool."""
    run = h.Run(words, "with", python=python, settings=s.dense(settings), env=env)
    ours = run.finish()
    theirs = h.run(words, "without", python=python, preload=False, env=env)
    need(ours.status == theirs.status, "status %d, without us %d; stderr: %s", ours.status, theirs.status, h.tail(ours.err))
    need(ours.out == theirs.out, "stdout is another: %r, without us %r", ours.out[-300:], theirs.out[-300:])
    said, rest = ours_and_theirs(ours.err)
    need(len(said) <= 1, "%d lines on stderr: %s", len(said), said)
    need(b"\n".join(rest) == b"\n".join(theirs.err.splitlines()), "stderr is another: %r, without us %r", ours.err[-300:], theirs.err[-300:])
    return run, h.Spool(ours.spool), ours


def bad(kind, seconds=1, check=None):
    def test(python, long):
        run, spool, result = same_as_without(python, [h.oracle("async_bad.py"), kind, str(seconds)])
        for process in spool:
            s.check_shape(process)
        return check(run, spool) if check else None
    return test


def no_task_file(run, spool):
    files = [w for p in spool for w in p.windows.values() if "task" in w.stacks]
    need(not files, "a task file, and no task: %s", s.show(s.chains(spool.one(), "task")))


def tasks_seen(rounds):
    """Every round's tasks: two leaves of a quarter of a second each."""
    def check(run, spool):
        found = s.chains(spool.one(), "task")
        name = "sleeper_and_main.<locals>."
        s.check_times(found, [([name + "main", name + "leaf", "sleep"], rounds * 0.5)], near=lambda names: found)
    return check


def tasks_of_a_loop_that_is_over(*stack, seconds):
    """Shown while their loop ran; then nothing wakes them, and they are no longer."""
    def check(run, spool):
        found = s.chains(spool.one(), "task")
        s.check_times(found, [(list(stack), seconds)], near=lambda names: found)
    return check


def no_more_than_cpu(run, spool):
    no_task_file(run, spool)
    need(spool.total("cpu") > 700000, "cpu %d µs: sampling has stopped", spool.total("cpu"))


def forked(run, spool):
    """The child's own loop is seen; the parent's tasks, which nothing runs there, are not."""
    with open(run.truth_path + ".lines", encoding="utf-8") as f:
        noted = json.loads(f.readline())
    parent, child = spool.by_pid(noted["parent"]), spool.by_pid(noted["child"])
    need(len(parent) == len(child) == 1, "%d spools of the parent, %d of the child", len(parent), len(child))
    found = s.chains(child[0], "task")
    s.check_times(found, [(["child_runs_loop.<locals>.child_main", "child_runs_loop.<locals>.child_leaf", "sleep"], 0.5)], near=lambda names: found)
    waiting = s.holding(found, "fork.<locals>.waiting_leaf")
    need(sum(c.us for c in waiting) <= 0, "the parent's waiting tasks in the child: %s", s.show(waiting))
    s.check_times(s.chains(parent[0], "task"), [(["fork.<locals>.main", "fork.<locals>.waiting_leaf", "sleep"], 5 * 1.05)], part=0.15,
                  near=lambda names: s.chains(parent[0], "task"))


def ends_while_loops_close(python, long):
    dice, rounds = random.Random(7), 500 if long else 50
    for n in range(rounds):
        way = ("exit", "raise", "plain", "daemon")[n % 4]
        words = [h.oracle("async_bad.py"), "ends", "%.4f" % dice.uniform(0, 0.02)]
        result = h.run(words, "ends", python=python, settings=s.dense(), env={"ORACLE_WAY": way})
        expected = {"exit": (5, b""), "raise": (1, b""), "plain": (0, b"ends 200\n"), "daemon": (0, b"")}[way]
        if way == "daemon":
            need(result.status == 0, "%s: status %d: %s", way, result.status, h.tail(result.err))
            continue
        need((result.status, result.out) == expected, "%s: status %d, stdout %r: %s", way, result.status, result.out, h.tail(result.err))
        need((b"ValueError: on purpose" in result.err) == (way == "raise") and b"aprof" not in result.err, "%s: stderr: %s", way, h.tail(result.err))
        need(way == "raise" or not result.err, "%s: stderr: %s", way, h.tail(result.err))
    return "%d ends" % rounds


# ---------------------------------------------------------------- a service

def ask_for(port, paths, end):
    while time.monotonic() < end:
        for path in paths:
            with urllib.request.urlopen("http://127.0.0.1:%d%s" % (port, path), timeout=30) as answer:
                answer.read()


def service(python, long):
    if python.ask("import aiohttp") is None:
        raise h.Skip("no module aiohttp")
    run = h.Run([os.path.join(h.REPO, "tests", "demo", "service.py")], "service", python=python, settings=s.dense())
    try:
        port = int(run.popen.stdout.readline())
        end = time.monotonic() + (20 if long else 3)
        threads = [threading.Thread(target=ask_for, args=(port, paths, end)) for paths in (("/orders",), ("/orders",), ("/catalogue", "/risk"))]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        os.kill(run.popen.pid, signal.SIGTERM)
        result = run.finish()
    finally:
        run.kill_all()
    need(result.status == 0, "status %d: %s", result.status, h.tail(result.err))
    process = h.Spool(result.spool).one()
    s.check_shape(process)
    return check_service(process)


def check_service(process):
    """The database's wait stands below the request that waits for it, the serialising below its own."""
    found, ran = s.chains(process, "task"), s.chains(process, "cpu") + s.chains(process, "wall")
    waits = s.holding(found, "Database.query")
    whole, right = sum(c.us for c in waits), s.total(waits, lambda c: s.fits(c, ["...", "orders", "load_order", "Database.query", "..."]))
    need(whole > 1e6, "Database.query has %.0f ms; found: %s", whole / 1e3, s.show(found))
    need(right >= 0.98 * whole, "Database.query: %.1f %% below orders;load_order; others: %s", 100 * right / whole,
         s.show([c for c in waits if "load_order" not in c.names]))
    asleep = s.total(waits, lambda c: c.names[-2:] == ("Database.query", "sleep"))
    kept_waiting = s.total(waits, lambda c: c.names[-1] == "[ready]")  # by /risk, which computes meanwhile
    need(asleep + kept_waiting >= 0.95 * whole and asleep >= 0.3 * whole, "%.0f ms in the query's sleep, %.0f [ready], of %.0f: %s",
         asleep / 1e3, kept_waiting / 1e3, whole / 1e3, s.show(waits))
    serialised = s.holding(ran, "serialise_catalogue")  # on 3.14 it is so quick that a busy machine may see no CPU tick in it
    need(serialised and all(s.fits(c, ["...", "catalogue", "serialise_catalogue", "..."]) for c in serialised), "serialise_catalogue: %s",
         s.show(serialised))
    return "query %.1f s, %.1f %% below load_order, kept waiting %.0f %%" % (whole / 1e6, 100 * right / whole, 100 * kept_waiting / whole)


TESTS = [
    ("async-same-cpu", same_cpu, True),
    ("async-same-waits", same_waits, h.HALF),
    ("async-outlives", outlives, h.WAITS),
    ("async-creators", creators, h.WAITS),
    ("async-spawn", spawn, h.WAITS),
    ("async-creators-off", creators_off, h.WAITS),
    ("async-matrix", matrix_waits, h.WAITS),
    ("async-matrix-syscall", matrix_syscall, h.WAITS),
    ("async-matrix-cpu", matrix_burns(), True),
    ("async-matrix-outside", matrix_burns(APROF_SIGNALS="0"), True),
    ("async-matrix-5kHz", matrix_burns(APROF_CLOCK="monotonic", APROF_RATE="5000"), True),
    ("async-short", short, False),
    ("async-alternate", alternate, h.HALF),
    ("async-edges", edges, h.WAITS),
    ("async-law-long", law("long", 3, long_arguments=("long", 20)), h.WAITS),
    ("async-law-waiting", law("waiting", 2000, 3, long_arguments=("waiting", 10000, 10), births_apart=False), h.WAITS),
    ("async-law-windows", law("long", 3, settings={"APROF_WINDOW": "1"}), h.WAITS),
    ("async-law-short", law("short", 3, long_arguments=("short", 20)), h.WAITS),
    ("async-law-masses", masses, False),
    ("async-cycle", cycle, h.WAITS),
    ("async-deep-300", deep("coroutines", 300), h.HALF),
    ("async-deep-300-tasks", deep("tasks", 300), h.HALF),
    ("async-deep-5000", deep("coroutines", 5000), h.HALF),
    ("async-deep-5000-of-8192", deep("coroutines", 5000, 8192), h.HALF),
    ("async-loops-threads", loop_of("threads", also=two_threads), h.HALF),
    ("async-loops-runner", loop_of("runner"), h.WAITS),
    ("async-loops-bare", loop_of("bare"), h.WAITS),
    ("async-loops-late", loop_of("late"), h.HALF),
    ("async-loops-delay", loop_of("delay", settings={"APROF_DELAY": "1"}, seconds=2), h.WAITS),
    ("async-loops-eager", loop_of("eager", since=(3, 12), also=eager_once), h.HALF),
    ("async-loops-callbacks", loop_of("callbacks", also=callback_apart), True),
    ("async-loops-blocked", loop_of("blocked", also=blocked_on_both), h.WAITS),
    ("async-loops-subclass", loop_of("subclass"), h.WAITS),
    ("async-loops-python", loop_of("python"), h.WAITS),
    ("async-loops-sub", loop_of("sub"), h.HALF),
    ("async-loops-uvloop", loop_of("uvloop"), h.WAITS),
    ("async-loops-anyio", loop_of("anyio"), True),
    ("async-loops-trio", loop_of("trio", also=no_tasks), True),
    ("async-bad-never", bad("never", check=no_task_file), True),
    ("async-bad-reloaded", bad("reloaded", check=tasks_seen(3)), h.WAITS),
    ("async-bad-imported-again", bad("imported_again", check=tasks_seen(2)), h.HALF),
    ("async-bad-fake", bad("fake", check=no_more_than_cpu), True),
    ("async-bad-objects", bad("fake_objects", check=no_more_than_cpu), True),
    ("async-bad-without-c", bad("without_c"), h.HALF),
    ("async-bad-closed", bad("closed", check=tasks_of_a_loop_that_is_over("sleep", seconds=10 * 0.25)), h.HALF),
    ("async-bad-thread-gone",
     bad("thread_gone", check=tasks_of_a_loop_that_is_over("thread_gone.<locals>.start", "sleep", seconds=4 * 11 * 0.25)), h.WAITS),
    ("async-bad-fork", bad("fork", check=forked), h.WAITS),
    ("async-bad-ends", ends_while_loops_close, True),
    ("async-service", service, False),
]
ONCE = [
    ("async-selftest", selftest, True),
]
