#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""selftest_harness: the checker against spools made by hand, right ones and wrong ones.

Every check must accept the right spool and refuse each wrong one: a test that
cannot fail is a defect.
"""
import copy
import json
import os
import subprocess
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import harness as h  # noqa: E402
import names  # noqa: E402
import truths  # noqa: E402

META = {
    "schema": 1, "run": "r", "pid": 42, "ppid": 1, "host": "box", "program": "x.py", "python": "3.13.0", "build": "release",
    "start_us": 1, "end_us": 2, "window": 0, "ended": "exit", "settings": {"APROF_RATE": "100"}, "tags": {}, "pid_namespace": 1,
    "boot": "b", "ticks": {"due": 1, "taken": 1, "missed": 0}, "rate": {"asked": 100, "got": 100}, "samples": 20000,
    "dropped": dict.fromkeys(h.DROPPED_KEYS, 0), "cpu_unseen_us": 0, "cpu_spread_us": 0, "threads_peak": 1, "tasks_peak": 0,
    "tasks_skipped": 0, "children_without_sample": 0, "loops": [], "sampler_cpu_us": 1, "handler_us": 1, "process_cpu_us": 1,
    "reader": "copy", "limits": {"depth": 3}, "metrics": {},
}
STEM = "aprof.box.42.1000000.000000"


def spool_of(stacks, meta=None, raw=None):
    """A directory with one sealed window: {metric: {stack text: µs}}."""
    folder = h.fresh_folder("selftest")
    meta = copy.deepcopy(meta or META)
    for metric, rows in stacks.items():
        body = b"".join(b"%s %d\n" % (s, n) for s, n in sorted((s.encode(), n) for s, n in rows.items()))
        write(folder, "%s.%s.collapsed" % (STEM, metric), raw(body) if raw else body)
        meta["metrics"][metric] = {"total_us": sum(rows.values()), "stacks": len(rows)}
    write(folder, STEM + ".json", json.dumps(meta).encode())
    return folder


def write(folder, name, data):
    with open(os.path.join(folder, name), "wb") as f:
        f.write(data)


def process_of(stacks, meta=None):
    return h.Spool(spool_of(stacks, meta)).one()


class Selftest:
    def __init__(self):
        self.accepted, self.refused, self.wrong = 0, 0, []

    def accepts(self, what, function, *args):
        try:
            function(*args)
            self.accepted += 1
        except h.Failure as reason:
            self.wrong.append("refuses what is right: %s: %s" % (what, reason))

    def refuses(self, what, function, *args):
        try:
            function(*args)
        except h.Failure:
            self.refused += 1
        else:
            self.wrong.append("accepts what is wrong: " + what)


def grammar(t):
    good = {"cpu": {"<module> (a.py:1);f (b c.py:12)": 5, "[truncated 3];g (x:1)": 7}}
    t.accepts("a plain spool", process_of, good)
    for what, raw in (("a NUL", lambda b: b + b"\0"), ("a cut last line", lambda b: b[:-1]), ("a comment", lambda b: b"# x\n" + b),
                      ("an empty line", lambda b: b + b"\n"), ("padded counts", lambda b: b.replace(b" 5\n", b" 00000005\n")),
                      ("two spaces", lambda b: b.replace(b" 5\n", b"  5\n")), ("bytes that are not UTF-8", lambda b: b.replace(b"f (", b"\xff (")),
                      ("an empty frame", lambda b: b.replace(b";f", b";;f")), ("a control character", lambda b: b.replace(b"f (", b"\x07 (")),
                      ("no order", lambda b: b"".join(reversed(b.splitlines(True)))), ("equal lines", lambda b: b + b.splitlines(True)[-1]),
                      ("another sum", lambda b: b.replace(b" 5\n", b" 500\n")), ("a frame without place", lambda b: b.replace(b" (b c.py:12)", b""))):
        t.refuses(what, lambda r=raw: h.Spool(spool_of(good, raw=r)))
    for key in ("schema", "dropped", "ended", "reader"):
        broken = copy.deepcopy(META)
        del broken[key]
        t.refuses("metadata without " + key, process_of, good, broken)
    t.refuses("another pid in the metadata", process_of, good, dict(META, pid=43))
    t.refuses("an unknown end", process_of, good, dict(META, ended="somehow"))


def live_line(offset, stack, count):
    """A live line whose last eight digits end on an 8-byte boundary."""
    digits = next(n for n in range(8, 16) if (offset + len(stack) + 1 + n) % 8 == 0)
    return stack + b" " + b"%0*d" % (digits, count) + b"\n"


def live(t):
    body = b""
    for stack in (b"<module> (a.py:1)", b"<module> (a.py:1);f (a.py:2)", b"x (y:3)"):
        body += live_line(len(body), stack, 123)
    t.accepts("live lines", h.parse_stacks, body, True)
    t.accepts("a cut last line of a live file", h.parse_stacks, body + b"half a li", True)
    assert len(h.parse_stacks(body + b"half a li", True)) == 3
    t.refuses("a live count that is not aligned", h.parse_stacks, b"x" + body, True)
    folder = spool_of({"cpu": {"f (a:1)": 5}})
    write(folder, STEM + ".cpu.collapsed.live", live_line(0, b"f (a:1)", 99))
    write(folder, STEM + ".wall.collapsed.live", live_line(0, b"f (a:1)", 99))
    write(folder, STEM + ".cpu.collapsed.tmp", b"rubbish")
    process = h.Spool(folder).one()
    assert (process.total("cpu"), process.total("wall")) == (5, 99), "sealed before live, file by file"


def edges_truth():
    """What edges.py knows, from a run of its own without a profiler."""
    path = os.path.join(h.fresh_folder("selftest"), "truth.json")
    subprocess.run([sys.executable, h.oracle("edges.py"), "0.3"], env=dict(os.environ, ORACLE_TRUTH=path), check=True, timeout=60)
    return h.read_truth(path)


def line_of(truth, caller, callee):
    return next(line for a, _, line, b in truth["edges"] if (a, b) == (caller, callee))


def stack_text(truth, *functions):
    """A legal stack through these functions, its leaf at its first line."""
    extent = {name: (file, first) for name, file, first, _ in truth["extent"] if name != "<module>"}
    extent["<module>"] = ("edges.py", 1)
    parts = []
    for name, following in zip(functions, functions[1:] + (None,)):
        line = line_of(truth, name, following) if following else extent[name][1]
        parts.append("%s (%s:%d)" % (name, extent[name][0], line))
    return ";".join(parts)


TOP = ("<module>", "main", "run_for", "cycle")
LEAVES = {"tree": ("phase_tree", "t", "ta", "tab"), "fib": ("phase_fib", "f15", "f14", "f12"), "deep": ("phase_deep", "d230", "d229"),
          "quiet": ("phase_quiet",), "generators": ("phase_generators", "count_outer", "count_middle", "count_inner"),
          "recursion": ("phase_recursion", "recurse", "recurse"), "classes": ("phase_classes", "Node.__init__", "scaled"),
          "comprehensions": ("phase_comprehensions", "phase_comprehensions.<locals>.<genexpr>", "scaled"),
          "callbacks": ("phase_callbacks", "key_of"), "coroutines": ("phase_coroutines", "await_outer", "await_middle")}


def edges(t):
    truth = edges_truth()
    right = {stack_text(truth, *TOP, *LEAVES[p]): round(1e6 * truth["spent"][p]) for p in truth["phases"]}

    def check(rows, meta=None, factor=1):
        truths.check_edges(truth, process_of({"cpu": rows, "wall": rows}, meta), 10000)
    t.accepts("known stacks and shares", check, right)
    deep = stack_text(truth, *TOP, *LEAVES["tree"])

    def also(text):
        return dict(right, **{text: 1})
    t.accepts("start-up frames of others", check, also("_find_and_load (<frozen importlib._bootstrap>:7);x (re.py:1)"))
    t.refuses("no root", check, also(deep.split(";", 1)[1]))
    t.refuses("a thread's bootstrap for a root", check, also("Thread._bootstrap (threading.py:9);" + deep.split(";", 1)[1]))
    t.refuses("a skipped frame", check, also(deep.replace("t (edges_generated.py", "ta (edges_generated.py", 1)))
    t.refuses("another call line", check, also(deep.replace("phase_tree (edges.py:%d)" % line_of(truth, "phase_tree", "t"), "phase_tree (edges.py:1)")))
    t.refuses("a call line off by one", check, also(deep.replace("t (edges_generated.py:%d)" % line_of(truth, "t", "ta"),
                                                                  "t (edges_generated.py:%d)" % line_of(truth, "t", "tb"))))
    t.refuses("an unknown function", check, also(deep + ";ghost (edges.py:1)"))
    t.refuses("a leaf outside its lines", check, also(deep.rsplit(":", 1)[0] + ":99999)"))
    t.refuses("a foreign code in the middle", check, also(deep + ";poll (select.py:4)"))
    t.refuses("a stack upside down", check, also(";".join(reversed(deep.split(";")))))
    t.refuses("a lone [unknown]", check, also("[unknown]"))
    moved = dict(right)
    quiet, tree = stack_text(truth, *TOP, *LEAVES["quiet"]), deep
    moved[quiet] += moved.pop(tree)
    t.refuses("a phase's time on another", check, moved)
    tenth = dict(right)
    tenth[quiet] += round(0.05e6 * sum(truth["spent"].values()))
    t.refuses("a share 3 points off", check, tenth)
    t.refuses("too few samples", check, right, dict(META, samples=9999))
    t.refuses("too many dropped", check, right, dict(META, dropped=dict(META["dropped"], torn=200)))
    t.accepts("ancestry lost, samples kept", check, right, dict(META, dropped=dict(META["dropped"], torn_awaiter=200)))


def laws(t):
    truth = {"threads": [{"kind": "main", "cpu": 0.01, "waits_cpu": 0.001, "inner": 4.0, "outer": None},
                         {"kind": "burns", "cpu": 3.0, "waits_cpu": 0.0, "inner": 3.99, "outer": 4.0}],
             "foreign_cpu": 0.0, "process_cpu": 3.05, "main_cpu_before": 0.03, "began": 0, "ended": 4}

    def check(cpu, wall, on_waits=2000):
        rows = {"cpu": {"<module> (laws.py:1);burner (laws.py:2)": cpu - on_waits, "<module> (laws.py:1);wait_sleep (laws.py:3)": on_waits},
                "wall": {"<module> (laws.py:1);wait_sleep (laws.py:3)": wall}}
        truths.check_laws(truth, process_of(rows), outside=0.05)
    t.accepts("the laws", check, 3020000, 8000000)
    t.refuses("2 % of cpu missing", check, 2945000, 8000000)
    t.refuses("cpu doubled", check, 6000000, 8000000)
    t.refuses("3 % of cpu too much", check, 3150000, 8000000)
    t.refuses("1 % of wall missing", check, 3020000, 7900000)
    t.refuses("2 % of wall too much", check, 3020000, 8200000)
    t.refuses("cpu on waiting calls", check, 3020000, 8000000, 60000)


def others(t):
    life = {"threads": [{"work": 0.2, "cpu": 0.206} for _ in range(8)]}

    def phases(rest, lost):
        rows = {"<module> (p:1);turn_%d (phases_%d.py:9);work_%d (phases_%d.py:3)" % (n, n, n, n): 0 if n == lost else 199000 for n in range(8)}
        rows["<module> (p:1);rest_0 (phases_0.py:8)"] = rest
        truths.check_phases(life, process_of({"cpu": rows}))
    t.accepts("phases", phases, 1000, None)
    t.refuses("a phase unseen", phases, 1000, 3)
    t.refuses("work on sleep", phases, 200000, None)

    spent = {"spent": {"burner_0000": 0.5, "idlers_0001": 0.0001}, "reused": 100}

    def short(burner, idler):
        truths.check_shortlived(spent, process_of({"cpu": {"<module> (s:1);burner_0000 (short.py:3)": burner,
                                                             "<module> (s:1);idlers_0001 (short.py:3)": idler}}))
    t.accepts("short-lived code", short, 500000, 100)
    t.refuses("time on code that used none", short, 300000, 200000)

    def deep(first, kept):
        rows = {";".join([first] * bool(first) + ["down (deep.py:3)"] * (kept - 1) + ["burn (truth.py:1)"]): 500000}
        truths.check_deep({"frames": 600, "cpu": 0.5}, process_of({"cpu": rows}), 512, 2048)
    t.accepts("a marked cut", deep, "[truncated 88]", 512)
    t.refuses("a cut that is not marked", deep, "", 512)
    t.refuses("a wrong number cut", deep, "[truncated 90]", 512)
    t.refuses("too many kept", deep, "[truncated 88]", 513)

    rows = {"rows": [["a;b", "/x/o (1).py", 7, 0.02], ["n" * 3000, "/x/f.py", 8, 0.02], ["s\udc80", "/x/f.py", 9, 0.02]]}

    def named(one, two="n" * 991 + "~0123abcd", three="s\\xed\\xb2\\x80"):
        stacks = {"%s;burn_here (n:1)" % f: 20000 for f in (one, two + " (/x/f.py:8)", three + " (/x/f.py:9)")}
        names.check_names(rows, list(process_of({"cpu": stacks}).stacks("cpu")))
    t.accepts("escaped names", named, "a\\x3bb (/x/o\\x20(1).py:7)")
    t.refuses("a line off by one", named, "a\\x3bb (/x/o\\x20(1).py:8)")
    t.refuses("an escape in capitals", named, "a\\x3Bb (/x/o\\x20(1).py:7)")
    t.refuses("a name that is cut without a mark", named, "a\\x3bb (/x/o\\x20(1).py:7)", "n" * 1000)
    t.refuses("a surrogate replaced", named, "a\\x3bb (/x/o\\x20(1).py:7)", "n" * 991 + "~0123abcd", "s?")


def main():
    t = Selftest()
    for part in (grammar, live, edges, laws, others):
        part(t)
    for line in t.wrong:
        print("selftest: " + line)
    print("selftest of the checker: %d right ones accepted, %d wrong ones refused, %d mistakes" % (t.accepted, t.refused, len(t.wrong)))
    if t.wrong:
        sys.exit(1)


if __name__ == "__main__":
    main()
    h.remove_work()
