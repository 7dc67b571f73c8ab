# SPDX-License-Identifier: MIT
"""judge: which samples of load.py are of use.

Of use is a sample of the time of the work that begins where its thread began and in
which each function of the program stands on one that calls it: for the phases of
tests/oracles/edges.py every call edge and line is known, for the rest of the program
the callers. Names are compared by their last part, since not every profiler has
qualified ones.
"""
import harness as h
import truths

MARKS = ("work", "serve", "load_package", "start_programs")
ROOTS = {("<module>", "load.py"), ("_bootstrap", "threading.py")}
TURNS = ("one_round", "short_round")
CALLERS = {
    "load.py": {
        "main": {"<module>"}, "busy": {"main"}, "threads": {"main"}, "service": {"main"}, "imports": {"main"}, "storm": {"main"},
        "worker": {"run"}, "work": {"busy", "worker"}, "one_round": {"work"}, "short_round": {"work"}, "serve": {"service"},
        "load_package": {"imports"}, "start_programs": {"storm"}},
    "service.py": {
        "serialise_catalogue": {"catalogue"}, "load_order": {"orders"}, "catalogue": {"catalogue"}, "orders": {"orders"},
        "query": {"_run", "load_order", "<genexpr>", "run_forever", "_run_once"}},
    "waiting.py": {"task": {"_run", "_run_once", "run_forever", "run_until_complete", "select", "ready", "end"}, "top": {"task"}, "middle": {"top"}, "leaf": {"middle"}},
}
NO_FUNCTIONS = ("<task>", "__init__")  # a task's name; CPython's own shim under a class that is called
WAITING = ("leaf", "waiting.py")


def last(name):
    return name.rsplit(".", 1)[-1]


class Tally:
    """Weights of samples: threads' and waiting tasks' of use, wrong ones and why."""

    def __init__(self):
        self.threads, self.tasks, self.wrong, self.reasons = 0.0, 0.0, 0.0, {}

    def all(self):
        return self.threads + self.tasks + self.wrong


class Judge:
    def __init__(self, truth, coroutine_roots=False):
        """coroutine_roots: stacks may begin with a task's coroutine, for want of threads."""
        self.coroutine_roots = coroutine_roots
        self.pairs, self.extent, self.inner = {}, {}, set()
        if truth:
            legal = truths.Legal(truth)
            self.inner = {last(name) for name in legal.inner}
            for caller, base, line, callee in legal.pairs:
                self.pairs.setdefault(last(callee), set()).add((last(caller), base, line))
            for (name, base), (first, end) in legal.extent.items():
                before = self.extent.get((last(name), base), (first, end))
                self.extent[(last(name), base)] = (min(first, before[0]), max(end, before[1]))

    def is_phase(self, frame):
        base = h.base(frame)
        return base == "edges_generated.py" and frame.name != "<module>" or base == "edges.py" and last(frame.name) in self.inner

    def fault(self, frames):
        """Why it is impossible, or None. frames: without markers."""
        root = frames[0]
        if (last(root.name), h.base(root)) not in ROOTS and not (self.coroutine_roots and h.base(root) not in ("edges.py", "edges_generated.py")):
            return "root " + root.text
        for caller, frame in zip([None] + frames[:-1], frames):
            reason = self.frame_fault(caller, frame)
            if reason:
                return reason
        return None

    def frame_fault(self, caller, frame):
        name, base = last(frame.name), h.base(frame)
        if self.is_phase(frame):
            first, end = self.extent.get((name, base), (1, 0))
            if not first <= frame.line <= end:
                return "line outside its function: " + frame.text
            if caller is None:
                return "root " + frame.text
            if (last(caller.name), h.base(caller), caller.line) not in self.pairs.get(name, ()) and not (
                    name.startswith("phase_") and last(caller.name) in TURNS and h.base(caller) == "load.py"):
                return "%s -> %s" % (caller.text, frame.text)
        elif caller is not None and name in CALLERS.get(base, ()) and last(caller.name) not in CALLERS[base][name]:
            return "%s -> %s" % (caller.text, frame.text)
        return None

    def add(self, tally, frames, weight):
        plain = [f for f in h.without_markers(frames) if f.path not in NO_FUNCTIONS]
        marked = any(last(f.name) in MARKS and h.base(f) == "load.py" for f in plain)
        if not plain or not (marked or self.coroutine_roots or any(self.is_phase(f) for f in plain)):
            return  # set-up, or a profiler's own thread
        reason = self.fault(plain)
        if reason:
            tally.wrong += weight
            tally.reasons[reason] = tally.reasons.get(reason, 0) + weight
        elif any((last(f.name), h.base(f)) == WAITING for f in plain):
            tally.tasks += weight
        else:
            tally.threads += weight
