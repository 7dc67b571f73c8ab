# SPDX-License-Identifier: MIT
"""edges: a program whose every call edge and call line is known.

    edges.py SECONDS [SEED]      runs, then leaves its truth
    edges.py --verify            runs once under sys.setprofile: every pair that the
                                 interpreter reports must be among the legal ones

Legal pairs (caller, line of the call) -> callee are read from the source by its
syntax tree, that of this file and that of the generated part. So each call of
a known function stands on one line, under its own name; nothing here is called
by a name that the tree cannot follow.
"""
import ast
import functools
import json
import os
import sys
import time

sys.setrecursionlimit(5000)

# ---------------------------------------------------------------- generated: tree, f18..f0, 230 deep

DEPTH = 230
TREE_LEVELS = 5


def tree_source(name, level, out):
    """A 3-ary tree in which each function has one parent."""
    out.append("def %s():" % name)
    if level == 0:
        out.append("    x = 1")
        out.append("    return x")
        return
    children = [name + digit for digit in "abc"]
    out.append("    x = 0")
    for child in children:
        out.append("    x += %s()" % child)
    out.append("    return x")
    for child in children:
        tree_source(child, level - 1, out)


def generated_source():
    out = []
    tree_source("t", TREE_LEVELS, out)
    out += ["def f0():", "    return 1", "def f1():", "    return 1"]
    for n in range(2, 19):
        out += ["def f%d():" % n, "    x = f%d()" % (n - 1), "    return x + f%d()" % (n - 2)]
    out += ["def d0():", "    x = 0", "    for i in range(300):", "        x += i", "    return x"]
    for n in range(1, DEPTH + 1):
        out += ["def d%d():" % n, "    return d%d()" % (n - 1)]
    return "\n".join(out) + "\n"


GENERATED = "edges_generated.py"
SOURCE = generated_source()
exec(compile(SOURCE, GENERATED, "exec"), globals())

# ---------------------------------------------------------------- the phases


def phase_tree():
    return t()


def phase_fib():
    return f15()


def phase_deep():
    return d230()


def phase_quiet():
    x = 0
    for i in range(20000):
        x = (x + i) & 1023
    return x


def count_inner(n):
    for i in range(n):
        yield i


def count_middle(n):
    yield from count_inner(n)


def count_outer(n):
    yield from count_middle(n)


def phase_generators():
    x = 0
    for i in count_outer(2500):
        x += i
    return x


def recurse(n):
    if n == 0:
        return 0
    return recurse(n - 1) + 1


def phase_recursion():
    x = 0
    for _ in range(20):
        x += recurse(60)
    return x


class Node:
    def __init__(self, value):
        self.value = scaled(value)

    def weight(self):
        return scaled(self.value)


def scaled(value):
    return value * 3 & 255


def phase_classes():
    x = 0
    for i in range(1500):
        node = Node(i)
        x += node.weight()
    return x


def phase_comprehensions():
    a = [scaled(i) for i in range(1500)]
    b = {i: scaled(i) for i in range(500)}
    c = {scaled(i) for i in range(500)}
    d = sum(scaled(i) for i in range(1500))
    return len(a) + len(b) + len(c) + d


def key_of(value):
    return -value & 63


def larger(a, b):
    return a if a > b else b


def phase_callbacks():
    a = sorted(range(2000), key=key_of)
    b = list(map(scaled, a))
    return functools.reduce(larger, b)


class Pause:
    def __await__(self):
        yield None


async def await_leaf(n):
    pause = Pause()
    for _ in range(n):
        await pause
    return n


async def await_middle(n):
    x = scaled(n)
    return x + await await_leaf(n)


async def await_outer(n):
    return await await_middle(n)


def phase_coroutines():
    steps = 0
    coroutine = await_outer(2500)
    try:
        while True:
            coroutine.send(None)
            steps += 1
    except StopIteration:
        return steps


PHASES = ("tree", "fib", "deep", "quiet", "generators", "recursion", "classes", "comprehensions", "callbacks", "coroutines")


_chance = [1]


def choose(low, high):
    """Our own dice: no frame of another file during a phase."""
    _chance[0] = _chance[0] * 1103515245 + 12345 & 0x7fffffff
    return low + (_chance[0] >> 16) % (high - low + 1)


def cycle(spent, clock):
    """Each phase so often as chance says: no beat that a tick could fall in with."""
    a = clock()
    for _ in range(choose(20, 80)):
        phase_tree()
    b = clock()
    spent["tree"] += b - a
    for _ in range(choose(1, 5)):
        phase_fib()
    a = clock()
    spent["fib"] += a - b
    for _ in range(choose(20, 80)):
        phase_deep()
    b = clock()
    spent["deep"] += b - a
    for _ in range(choose(1, 5)):
        phase_quiet()
    a = clock()
    spent["quiet"] += a - b
    for _ in range(choose(1, 5)):
        phase_generators()
    b = clock()
    spent["generators"] += b - a
    for _ in range(choose(2, 12)):
        phase_recursion()
    a = clock()
    spent["recursion"] += a - b
    for _ in range(choose(1, 5)):
        phase_classes()
    b = clock()
    spent["classes"] += b - a
    for _ in range(choose(1, 5)):
        phase_comprehensions()
    a = clock()
    spent["comprehensions"] += a - b
    for _ in range(choose(1, 5)):
        phase_callbacks()
    b = clock()
    spent["callbacks"] += b - a
    for _ in range(choose(1, 5)):
        phase_coroutines()
    a = clock()
    spent["coroutines"] += a - b


# ---------------------------------------------------------------- what is legal, from the syntax tree

class Edges(ast.NodeVisitor):
    """Collects (caller, line) -> callee. Names of callables are unique in the program;
    a method is known by its name alone, a generator or coroutine held in a
    variable by the call that made it."""

    def __init__(self, known, methods, file):
        self.known, self.methods, self.file = known, methods, file
        self.where = ["<module>"]
        self.made = {}
        self.edges = set()
        self.extent = {("<module>", file): [1, 10 ** 9]}

    def caller(self):
        return self.where[-1]

    def add(self, line, callee):
        self.edges.add((self.caller(), self.file, line, callee))

    def inside(self, name, node, first=None):
        self.where.append(name)
        extent = self.extent.setdefault((name, self.file), [node.lineno, node.end_lineno])
        extent[0] = min(extent[0], first or node.lineno)
        extent[1] = max(extent[1], node.end_lineno)

    def qualified(self, name):
        return name if self.caller() == "<module>" else self.caller() + ("." if self.caller() in self.methods.values() or
                                                                         self.caller() in CLASSES else ".<locals>.") + name

    def visit_FunctionDef(self, node):
        self.inside(self.qualified(node.name), node)
        for statement in node.body:
            self.visit(statement)
        self.where.pop()

    visit_AsyncFunctionDef = visit_FunctionDef

    def visit_ClassDef(self, node):
        self.add(node.lineno, node.name)  # the body of a class runs once, as a frame
        self.inside(node.name, node)
        for statement in node.body:
            self.visit(statement)
        self.where.pop()

    def visit_Assign(self, node):
        made = self.callee(node.value)
        for target in node.targets:
            if made and isinstance(target, ast.Name):
                self.made[(self.caller(), target.id)] = made
        self.generic_visit(node)

    def callee(self, node):
        if not isinstance(node, ast.Call):
            return None
        if isinstance(node.func, ast.Name):
            return self.known.get(node.func.id)
        if isinstance(node.func, ast.Attribute):
            return self.methods.get(node.func.attr)
        return None

    def visit_Call(self, node):
        target = self.callee(node)
        if target:
            self.add(node.lineno, target)
        if isinstance(node.func, ast.Attribute) and node.func.attr in ("send", "close", "throw"):
            self.resumes(node.func.value, node.lineno)
        for argument in node.args + [k.value for k in node.keywords]:
            if isinstance(argument, ast.Name) and argument.id in self.known:  # called back from C
                self.add(node.lineno, self.known[argument.id])
        self.generic_visit(node)

    def resumes(self, node, line):
        if isinstance(node, ast.Name) and (self.caller(), node.id) in self.made:
            self.add(line, self.made[(self.caller(), node.id)])

    def visit_Await(self, node):
        if isinstance(node.value, ast.Name):  # await pause: its __await__, then that generator
            made = self.made.get((self.caller(), node.value.id))
            if made and made.endswith(".__init__"):
                made = made[:-len("__init__")] + "__await__"
            elif made in CLASSES:
                made += ".__await__"
            if made:
                self.add(node.lineno, made)
        self.generic_visit(node)

    def comprehension(self, node, name, parts):
        """A frame of its own (before 3.12, and always for a generator expression), or inlined."""
        first = node.generators[0]
        self.visit(first.iter)
        separate = name == "<genexpr>" or sys.version_info < (3, 12)
        if separate:
            inner = self.caller() + ".<locals>." + name
            self.add(node.lineno, inner)
            self.inside(inner, node)
        for part in parts:
            self.visit(part)
        for condition in first.ifs:
            self.visit(condition)
        for more in node.generators[1:]:
            self.visit(more)
        if separate:
            self.where.pop()

    def visit_ListComp(self, node):
        self.comprehension(node, "<listcomp>", [node.elt])

    def visit_SetComp(self, node):
        self.comprehension(node, "<setcomp>", [node.elt])

    def visit_DictComp(self, node):
        self.comprehension(node, "<dictcomp>", [node.key, node.value])

    def visit_GeneratorExp(self, node):
        self.comprehension(node, "<genexpr>", [node.elt])


CLASSES = set()


def names_of(tree):
    """Callable name -> qualified name of the function that a call of it enters."""
    known, methods = {}, {}
    for node in tree.body:
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            known[node.name] = node.name
        elif isinstance(node, ast.ClassDef):
            CLASSES.add(node.name)
            for inner in node.body:
                if isinstance(inner, ast.FunctionDef):
                    methods[inner.name] = node.name + "." + inner.name
                    if inner.name == "__init__":
                        known[node.name] = node.name + ".__init__"
            known.setdefault(node.name, node.name)
    return known, methods


def legal():
    """All legal edges, and where each function begins and ends."""
    with open(os.path.abspath(__file__), encoding="utf-8") as f:
        mine = ast.parse(f.read())
    generated = ast.parse(SOURCE)
    known, methods = names_of(mine)
    known.update(names_of(generated)[0])
    edges, extent = set(), {}
    for tree, file in ((mine, "edges.py"), (generated, GENERATED)):
        visitor = Edges(known, methods, file)
        visitor.visit(tree)
        edges |= visitor.edges
        extent.update(visitor.extent)
    return edges, extent


# ---------------------------------------------------------------- run


def verify():
    """The interpreter as witness against the syntax tree."""
    edges, extent = legal()
    seen = set()

    def watch(frame, event, argument):
        if event == "call" and frame.f_back is not None:
            seen.add((frame.f_back.f_code.co_qualname, os.path.basename(frame.f_back.f_code.co_filename), frame.f_back.f_lineno,
                      frame.f_code.co_qualname))
    sys.setprofile(watch)
    cycle(dict.fromkeys(PHASES, 0.0), time.thread_time)
    sys.setprofile(None)
    wrong = sorted(s for s in seen if s not in edges and s[0] != "verify")
    for pair in wrong:
        print("not in the syntax tree:", pair)
    outside = sorted(s for s in seen if (s[0], s[1]) in extent and not extent[(s[0], s[1])][0] <= s[2] <= extent[(s[0], s[1])][1])
    for pair in outside:
        print("outside its function:", pair)
    print("%d pairs seen, %d legal" % (len(seen), len(edges)))
    return 1 if wrong or outside or len(seen) < 600 else 0


def run_for(seconds, seed):
    spent = dict.fromkeys(PHASES, 0.0)
    _chance[0] = seed
    end = time.monotonic() + seconds
    first, began = time.thread_time(), time.monotonic()
    while time.monotonic() < end:
        cycle(spent, time.thread_time)
    return {"spent": spent, "cpu": time.thread_time() - first, "wall": time.monotonic() - began}


def main():
    truth = run_for(float(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 1)
    edges, extent = legal()
    truth["edges"] = sorted(edges)
    truth["extent"] = [list(k) + v for k, v in sorted(extent.items())]
    truth["phases"] = PHASES
    with open(os.environ["ORACLE_TRUTH"], "w", encoding="utf-8") as f:
        json.dump(truth, f)


if __name__ == "__main__":
    sys.exit(verify() if sys.argv[1] == "--verify" else main())
