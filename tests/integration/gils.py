# SPDX-License-Identifier: MIT
"""gils: the metric gil and how long threads wait for the GIL, against what a program knows of itself."""
import harness as h
from harness import need
from truths import PERIOD

SECONDS = 0.5  # a phase
# As many ticks as the kernel has, in waits as in work: phases are short.
ON = {"APROF_METRICS": "cpu,wall,gil", "APROF_RATE": "250", "APROF_MIN_RATE": "250", "APROF_OVERHEAD": "0"}


def seconds_of(process, metric, name):
    return h.total_where(list(process.stacks(metric)), lambda frames: any(f.name == name for f in frames)) / 1e6


def tolerance(seconds, figure=0.03):
    """Of a phase: at each of its two ends it shares a tick with what is beside it."""
    return h.sum_tolerance(1e6 * seconds, figure, period_us=PERIOD, threads_at_end=2) / 1e6


def gil(python, long):
    truth, spool, _ = h.run_oracle(python, "gil.py", 10 * SECONDS if long else SECONDS, settings=ON)
    process, notes = spool.one(), []
    for name, seconds in truth["held"].items():
        found = seconds_of(process, "gil", name)
        allowed = tolerance(seconds) + truth["delayed"][name]
        need(abs(found - seconds) <= allowed, "%s held it for %.3f s, truth %.3f (± %.3f)", name, found, seconds, allowed)
        notes.append("%.3f" % (found / seconds))
    for name, seconds in truth["released"].items():
        found = seconds_of(process, "gil", name)
        need(found <= tolerance(seconds), "%s held it for %.3f s, which had given it away", name, found)
        need(seconds_of(process, "wall", name) >= 0.9 * seconds - tolerance(seconds), "%s is not there", name)
    # On a machine with other work a thread may have the GIL and no CPU, or be given it and not know
    # yet: which of the two a thread without a CPU is, nobody can say.
    found = sum(seconds_of(process, "gil", name) for name in ("contends_one", "contends_two"))
    least, most = truth["contended_cpu"], truth["contended"]
    delayed = sum(truth["delayed"][name] for name in ("contends_one", "contends_two"))
    need(least - tolerance(most) <= found <= most + tolerance(most) + delayed, "two held it for %.3f s, truth %.3f to %.3f", found, least, most)
    waited, unknown = (process.counter("gil", key) / 1e6 for key in ("wait_us", "unknown_us"))
    most = 2 * truth["contended"] - least
    need(waited <= most + tolerance(most, 0.1), "waited for it for %.3f s, truth at most %.3f", waited, most)
    need(waited + unknown >= truth["waited"] - tolerance(truth["waited"], 0.1), "waited for it for %.3f s, or perhaps %.3f more, truth %.3f",
         waited, unknown, truth["waited"])
    held, total = process.counter("gil", "held_us"), process.total("gil")
    need(abs(held - total) <= len(list(process.stacks("gil"))) + 1, "held_us is %d, the stacks have %d", held, total)
    return "held %s; two %.3f of %.3f to %.3f; waited %.3f and perhaps %.3f, of %.3f" % (
        " ".join(notes), found, least, truth["contended"], waited, unknown, truth["waited"])


def off(python, long):
    """Nothing of it while nobody asks: no file, no key."""
    _, spool, _ = h.run_oracle(python, "gil.py", 0.1)
    process = spool.one()
    need(not any("gil" in meta or "gil" in meta["metrics"] for meta in process.metas()), "metadata of a metric that is off")
    need(not list(process.stacks("gil")), "stacks of a metric that is off")


TESTS = [
    ("gil", gil, False),
    ("gil-off", off, True),
]
