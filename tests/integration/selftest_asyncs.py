# SPDX-License-Identifier: MIT
"""selftest_asyncs: what the checks of asyncs.py accept and refuse, on stacks made by hand."""
import stacked as s
from harness import need
from selftest_harness import Selftest, process_of

LOOP = "<module> (p.py:1);run (asyncio/runners.py:9);BaseEventLoop.run_forever (asyncio/base_events.py:8)"
STEP = LOOP + ";BaseEventLoop._run_once (asyncio/base_events.py:7);Handle._run (asyncio/events.py:6)"


def frames(names, lines=None):
    return "".join(";" + (n if n.startswith("[") else "%s (p.py:%d)" % (n, (lines or {}).get(n, 5))) for n in names.split())


def process(task=None, cpu=None):
    """{names above the driver: ms} as a spool."""
    return process_of({metric: {root + frames(n): 1000 * ms for n, ms in rows.items()}
                       for metric, rows, root in (("task", task, LOOP), ("cpu", cpu, STEP)) if rows})


def shapes(t):
    def raw(text, metric="task"):
        s.check_shape(process_of({metric: {text: 10}}))
    t.accepts("a task's stack", raw, LOOP + frames("main f [ready]"))
    t.accepts("a thread's stack", raw, STEP + frames("main f"), "cpu")
    t.accepts("a cut stack", raw, "[truncated 3]" + frames("main f"))
    t.accepts("a cycle", raw, LOOP + frames("[cycle] a b"))
    t.refuses("no root", raw, frames("main f")[1:])
    t.refuses("the loop's step in task", raw, STEP + frames("main f"))
    t.refuses("the selector in task", raw, LOOP + ";EpollSelector.select (selectors.py:4)")
    t.refuses("[ready] in the middle", raw, LOOP + frames("main [ready] f"))
    t.refuses("[cycle] in the middle", raw, LOOP + frames("a [cycle] b"))
    t.refuses("a cycle without a driver", raw, "<module> (p.py:1)" + frames("[cycle] b"))
    t.refuses("[ready] in a thread's stack", raw, STEP + frames("main [ready]"), "wall")
    t.refuses("the loop twice", raw, STEP + frames("main") + ";BaseEventLoop._run_once (asyncio/base_events.py:7)", "cpu")


def times(t):
    def check(rows, *expected):
        s.check_times(s.chains(process(rows), "task"), list(expected))
    rows = {"main a sleep": 1000, "main b sleep": 500}
    t.accepts("expected times", check, rows, (["main", "a", "sleep"], 1), (["main", "b", "sleep"], 0.5))
    t.accepts("one stack in two parts", check, rows, (["main", "a", "sleep"], 0.6), (["main", "a", "sleep"], 0.4))
    t.accepts("a line", check, rows, (["main", ["a", 5], "sleep"], 1))
    t.accepts("any frames", check, rows, (["main", "...", "sleep"], 1.5))
    t.refuses("another line", check, rows, (["main", ["a", 6], "sleep"], 1))
    t.refuses("a frame too few", check, rows, (["main", "a"], 1))
    t.refuses("a frame too many", check, rows, (["main", "x", "a", "sleep"], 1))
    t.refuses("20 % missing", check, rows, (["main", "a", "sleep"], 1.25))
    t.refuses("any frames but these", check, rows, (["...", "b", "...", "a", "sleep"], 1))

    def apart(names):
        s.check_apart(s.chains(process({names: 1}), "task"), ("left", "right"))
    t.accepts("one family", apart, "main left left_task")
    t.refuses("two families", apart, "main left right_task")


def outlives(t):
    from asyncs import check_outlives
    truth = {"outlives": {"create_task": 1.2, "main": 1.8}}

    def check(made, main, other=0, creators=True):
        rows = {"outlives create_task outliving sleep" if creators else "outliving sleep": made, "outlives outliving sleep": main,
                "outlives create_task sleep": 1200, "outlives other outliving sleep": other}
        check_outlives(truth, s.chains(process(rows), "task"), creators)
    t.accepts("40 and 60", check, 1200, 1800)
    t.accepts("a tick more", check, 1210, 1790)
    t.accepts("without creators", check, 1200, 1800, 0, False)
    t.refuses("half and half", check, 1500, 1500)
    t.refuses("all below main", check, 0, 3000)
    t.refuses("twice the time", check, 2400, 3600)
    t.refuses("some below another", check, 1200, 1500, 300)


def spawn(t):
    from asyncs import check_spawn

    def check(wrong=None, line=11):
        text = {}
        for n in (1, 2, 3):
            root = LOOP + frames("spawns request spawn spawned_%d sleep" % n, {"request": 10 + n})
            text[root] = 300000
            text[LOOP + frames("spawns request spawned_%d sleep" % n, {"request": 20})] = 2400000 - n * 300000
        if wrong:
            text[LOOP + frames(wrong, {"request": line})] = 1000
        check_spawn({"spawn": {"spawned_1": 11, "spawned_2": 12, "spawned_3": 13}}, s.chains(process_of({"task": text}), "task"), 3)
    t.accepts("each below its own", check)
    t.refuses("one below a later spawn()", check, "spawns request spawn spawned_1 sleep", 12)
    t.refuses("one below a spawn() of nobody", check, "spawn spawned_1 sleep")


def matrix(t):
    from asyncs import check_matrix, check_matrix_cpu
    truth = {"cells": {"gather_t": [[["main", "gather_t", "gather_t_a", "sleep"], 1], [["main", "gather_t", "gather_t_b", "sleep"], 1]],
                       "future": [[["main", "future"], 1]]}, "awaits": {"gather_t": [5], "future": [4, 5]}, "cannot": []}
    right = {"main gather_t gather_t_a sleep": 1000, "main gather_t gather_t_b sleep": 1000, "main future": 1000, "main": 5}

    def check(name="main", ms=5, of=truth):
        check_matrix(of, s.chains(process(dict(right, **{name: ms})), "task"))

    def cpu(rows):
        check_matrix_cpu(truth, s.chains(process(cpu=rows), "cpu"), 250)
    t.accepts("what is expected", check)
    t.accepts("a moment in another state", check, "main gather_t gather_t_a [ready]", 10)
    t.refuses("a child that is missing", check, "main gather_t gather_t_b sleep", 0)
    t.refuses("a child below another construct", check, "main future gather_t_b sleep", 1)
    t.refuses("a child above its parent", check, "main gather_t_b gather_t sleep", 1)
    t.refuses("a child as a root", check, "gather_t_a sleep", 300)
    t.refuses("a parent counted beside its children", check, "main gather_t", 900)
    t.refuses("a line without an await", check, "main", 5, dict(truth, awaits={"gather_t": [6]}))
    t.accepts("its cpu", cpu, right)
    t.refuses("cpu without its awaiter", cpu, {"main gather_t gather_t_a sleep": 1000, "gather_t_b sleep": 900, "main future": 1000})
    t.refuses("a construct without cpu", cpu, {"main gather_t gather_t_a sleep": 1000})


def laws(t):
    from asyncs import by_function, check_deep, check_equal_stacks, check_law, check_shares, own_stacks
    truth = {"lives": {"x": 30.0}, "seconds": 3}

    def law(ms, apart=False):
        check_law(truth, s.chains(process({"main life_x sleep": ms}), "task"), apart)
    t.accepts("the law", law, 30100)
    t.refuses("2 % too much", law, 30600)
    t.refuses("2 % missing", law, 29400)
    t.accepts("three standard errors", law, 31500, True)
    t.refuses("more than three", law, 32000, True)

    def deep(names, depth=512):
        rows = {names: 1500}
        check_deep({"count": 3, "lived": 1.5, "cpu": 0.5}, s.chains(process(rows), "task"), depth, "task")
    t.accepts("all links", deep, "main link_3 link_2 link_1 link_0 sleep")
    t.refuses("a link missing", deep, "main link_3 link_1 link_0 sleep")
    t.refuses("upside down", deep, "main link_0 link_1 link_2 link_3")
    t.refuses("a cut without a mark", deep, "link_1 link_0 sleep")

    def same(one, two, truth):
        forms = {}
        for form, rows in (("plain", one), ("tasks", two)):
            text = {"<module> (x.py:1)" + "".join(";%s (work.py:%d)" % (n, len(n)) for n in names.split()): 1000 * ms for names, ms in rows.items()}
            forms[form] = own_stacks(process_of({"cpu": text}), "cpu")
            check_shares(form, by_function(forms[form], ["compute", "pause"]), truth, 100000)
        check_equal_stacks(forms)
    whole, clock = {"main serve compute": 600, "main load pause": 400}, {"compute serve": 0.6, "pause load": 0.4}
    t.accepts("the same", same, whole, {"main serve compute": 1205, "main load pause": 795}, clock)
    t.refuses("a share 3 points off", same, whole, {"main serve compute": 630, "main load pause": 370}, clock)
    t.refuses("another stack", same, whole, {"main serve compute": 600, "main order load pause": 400}, clock)
    t.refuses("a frame missing", same, whole, {"main compute": 600, "main load pause": 400}, clock)


def selftest(pythons, long):
    t = Selftest()
    for part in (shapes, times, outlives, spawn, matrix, laws):
        part(t)
    need(not t.wrong, "%s", "; ".join(t.wrong))
    return "%d right ones accepted, %d wrong ones refused" % (t.accepted, t.refused)
