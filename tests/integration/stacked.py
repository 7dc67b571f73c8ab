# SPDX-License-Identifier: MIT
"""stacked: stacked stacks, and what is expected of them.

A chain is what stands above the loop's driver: the names of the coroutines, root
first, without the loop's own _run_once and Handle._run. Times are in µs.
"""
import collections
import threading

from harness import need

DRIVERS = {"BaseEventLoop.run_forever"}
STEPS = ("BaseEventLoop._run_once", "Handle._run")
SELECTS = ("EpollSelector.select", "PollSelector.select", "SelectSelector.select")
PERIOD = 10000

Chain = collections.namedtuple("Chain", "names frames us driven")


def above_driver(frames):
    """(frames above the last driver, whether there is one)."""
    for n in range(len(frames) - 1, -1, -1):
        if frames[n].name in DRIVERS:
            return frames[n + 1:], True
    return frames, False


def chain_of(frames, us):
    rest, driven = above_driver(frames)
    rest = tuple(f for n, f in enumerate(rest) if not (n < len(STEPS) and f.name == STEPS[n] and f.path is not None))
    return Chain(tuple(f.name for f in rest), rest, us, driven)


def chains(process, metric):
    return [chain_of(frames, us) for frames, us in process.stacks(metric)]


def total(found, wanted):
    return sum(c.us for c in found if wanted(c))


def holding(found, *names):
    """Chains in which all of these functions stand."""
    return [c for c in found if all(n in c.names for n in names)]


def show(found, limit=6):
    """The largest, as text for a message."""
    sums = collections.Counter()
    for chain in found:
        sums[";".join(chain.names)] += chain.us
    rows = ["%s %.0f ms" % (text, us / 1e3) for text, us in sums.most_common(limit)]
    return " | ".join(rows) + (" | and %d more" % (len(sums) - limit) if len(sums) > limit else "") or "nothing"


# ---------------------------------------------------------------- matching

def split_lines(stack):
    """A stack of names or [name, line] as (names, {position: line})."""
    names = tuple(s if isinstance(s, str) else s[0] for s in stack)
    return names, {n: s[1] for n, s in enumerate(stack) if not isinstance(s, str)}


def fits(chain, stack):
    """Exactly this stack. `...` stands for any frames."""
    names, lines = split_lines(stack)
    if "..." in names:
        return fits_loosely(list(chain.names), list(names))
    return chain.names == names and all(chain.frames[n].line == line for n, line in lines.items())


def fits_loosely(found, names):
    if not names:
        return not found
    if names[0] == "...":
        return any(fits_loosely(found[n:], names[1:]) for n in range(len(found) + 1))
    return bool(found) and found[0] == names[0] and fits_loosely(found[1:], names[1:])


def text_of(stack):
    return ";".join(s if isinstance(s, str) else "%s:%d" % tuple(s) for s in stack)


_run = threading.local()


def note_longest(us):
    """The longest time between two ticks over the tasks in the run that this thread looks at now."""
    _run.longest = us


def tolerance(us, part=0.1, ticks=5, period=PERIOD):
    """A wait that is seen by ticks: one may be missing or too much at each end, and ticks may be late."""
    return max(part * us, ticks * period, 1.5 * getattr(_run, "longest", 0))


def check_times(found, expected, near=None, **how):
    """expected: [(stack, seconds)]. near: what to show of the rest when one fails."""
    sums = collections.OrderedDict()
    for stack, seconds in expected:
        key = text_of(stack)
        sums[key] = (stack, sums.get(key, (None, 0))[1] + 1e6 * seconds)
    for stack, us in sums.values():
        got = total(found, lambda c, s=stack: fits(c, s))
        names = [n for n in split_lines(stack)[0] if n not in ("...", "main")]
        shown = near(names) if near else [c for c in found if names[0] in c.names]
        need(abs(got - us) <= tolerance(us, **how), "expected %s %.0f ms (± %.0f), found %.0f; found: %s",
             text_of(stack), us / 1e3, tolerance(us, **how) / 1e3, got / 1e3, show(shown))


# ---------------------------------------------------------------- shape

ROOTS = ("<module>", "Thread._bootstrap")


def task_fault(frames):
    """Why a stack cannot be one of `task`, or None."""
    names = [f.name for f in frames]
    if frames[0].path is None and not names[0].startswith(("[truncated ", "[thread ", "[overflow")):
        return "begins with %s" % names[0]
    if frames[0].path is not None and names[0] not in ROOTS:
        return "begins with %s" % names[0]
    looping = [f.text for f in frames if f.path is not None and (f.name in STEPS or f.name in SELECTS)]
    if looping:
        return "holds the loop's own %s" % looping[0]
    if "[ready]" in names[:-1]:
        return "[ready] is not the last frame"
    cycle = [n for n, name in enumerate(names) if name == "[cycle]"]
    if cycle and not (len(cycle) == 1 and names[cycle[0] - 1] in DRIVERS):
        return "[cycle] is not the first frame above the driver"
    return None


def check_shape(process):
    """What holds of every stack, whatever the program."""
    for frames, us in process.stacks("task"):
        fault = task_fault(frames)
        need(not fault, "task: %s: %s", fault, ";".join(f.name for f in frames)[:500])
    for metric in ("cpu", "wall"):
        for frames, us in process.stacks(metric):
            names = [f.name for f in frames if f.path is not None]
            for once in STEPS[:1]:
                need(names.count(once) <= names.count("BaseEventLoop.run_forever"), "%s: %s twice: %s", metric, once, ";".join(names)[:500])
            need("[ready]" not in [f.name for f in frames], "%s: [ready] in a stack of a thread: %s", metric, ";".join(names)[:500])


def check_apart(found, families, metric=""):
    """No stack holds functions of two families: a family is how its functions' names begin."""
    for chain in found:
        of = {f for f in families for name in chain.names if name.startswith(f)}
        need(len(of) < 2, "%s: a stack of %s: %s %.1f ms", metric, " and ".join(sorted(of)), ";".join(chain.names)[:500], chain.us / 1e3)


def subsequence(short, long):
    rest = iter(long)
    return all(any(s == x for x in rest) for s in short)


# ---------------------------------------------------------------- several settings

def dense(more=None):
    """No backing off, no budget: what is measured is whether it is right."""
    settings = {"APROF_MIN_RATE": "100"}
    settings.update(more or {})
    return settings
