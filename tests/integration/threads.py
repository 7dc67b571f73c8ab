# SPDX-License-Identifier: MIT
"""threads: more of them than one tick reads (APROF_MAX_THREADS): sums, shares, and who is seen."""
import collections
import resource

import harness as h
from harness import need
from truths import PERIOD, check_laws

MOST = 64
SETTINGS = {"APROF_MAX_THREADS": str(MOST)}
UNBUDGETED = dict(SETTINGS, APROF_OVERHEAD="0")  # for shares: as many readings as were asked for
OF_KIND = (("even_long", "even_short"), ("odd_long", "odd_short"))


def own_ticks(meta):
    """Ticks of the sampler's own clock."""
    return meta["rate"]["got"] * (meta["end_us"] - meta["start_us"]) / 1e6


def by_life(lines):
    """µs of each thread that has a function of its own, and of each wait, by its kind."""
    lives, waits = collections.Counter(), collections.Counter()
    for frames, us in lines:
        names = {f.name for f in frames}
        lives.update({int(n[5:]): us for n in names if n.startswith("life_")})
        waits.update({n: us for n in names if n in OF_KIND[0] + OF_KIND[1]})
    return lives, waits


def check_lives(truth, lives):
    """Every thread has its lifetime, from the first line of its function to its last, or a little less and more."""
    worst = 1.0
    for note in truth["threads"]:
        us = lives[note["number"]]
        need(us > 0, "thread %d was never seen", note["number"])
        need(us <= 1.005e6 * note["outer"] + PERIOD, "thread %d: %.3f s, it lived %.3f", note["number"], us / 1e6, note["outer"])
        worst = min(worst, us / (1e6 * note["inner"]))
    need(worst >= 0.97, "a thread has %.3f of its lifetime on its function", worst)
    return worst


def check_shares(truth, waits, reads):
    """Of each kind's time in both waits. The readings of one kind are about half of all."""
    told = []
    for kind, (one, other) in enumerate(OF_KIND):
        true = collections.Counter()
        for note in truth["threads"]:
            if note["kind"] == kind:
                true.update(note["waits"])
        right = true[one] / (true[one] + true[other])
        found = waits[one] / (waits[one] + waits[other])
        of_kind = reads * len(truth["threads"]) / 2 / (len(truth["threads"]) + truth["idlers"] + 1)
        allowed = h.share_tolerance(right, of_kind, among=2)
        need(abs(found - right) <= allowed, "%s: share %.2f %%, truth %.2f (± %.2f)", one, 100 * found, 100 * right, 100 * allowed)
        told.append("%+.2f" % (100 * (found - right)))
    return " ".join(told)


def check_reads(truth, process):
    metas = process.metas()
    threads = len(truth["threads"]) + truth["idlers"]
    peak = max(m["threads_peak"] for m in metas)
    need(threads <= peak <= threads + 2, "threads_peak %d of %d threads", peak, threads)
    taken, left = process.counter("thread_reads", "taken"), process.counter("thread_reads", "left")
    ticks = sum(own_ticks(m) for m in metas)
    need(taken <= MOST * (ticks + 2 * len(metas)), "%d threads read in %.0f ticks", taken, ticks)
    need(taken and left > taken, "read %d, left %d", taken, left)
    need(all(m["limits"].get("threads") for m in metas), "limits{} does not count the choice: %s", [m["limits"] for m in metas])
    return taken


def check_alternate(truth, process):
    reads = check_reads(truth, process)
    lives, waits = by_life(process.stacks("wall"))
    inner, outer = sum(t["inner"] for t in truth["threads"]), sum(t["outer"] for t in truth["threads"])
    whole = truth["ended"] - truth["began"]
    found = process.total("wall") / 1e6
    low, high = inner, outer + (truth["idlers"] + 1) * whole
    need(low * 0.995 <= found, "wall %.3f s, at least %.3f", found, low)
    need(found <= 1.005 * high + 2, "wall %.3f s, at most %.3f", found, high)
    worst = check_lives(truth, lives)
    used = sum(t["cpu"] for t in truth["threads"]) + truth["main_cpu"]
    cpu = process.total("cpu") / 1e6
    need(cpu >= 0.99 * used - PERIOD / 1e6 and cpu <= 1.01 * truth["process_cpu"] + PERIOD / 1e6,
         "cpu %.3f s, law %.3f to %.3f", cpu, used, truth["process_cpu"])
    return "wall %.4f, worst life %.4f, shares off by %s points, %d readings" % (
        (sum(lives.values()) / 1e6) / inner, worst, check_shares(truth, waits, reads), reads)


def some_hundreds(python, long):
    truth, spool, _ = h.run_oracle(python, "alternate.py", 300, 20 if long else 6, settings=UNBUDGETED)
    return check_alternate(truth, spool.one())


def laws_of_hundreds(python, long):
    """Threads that burn, burst, wait and are short-lived among those that are not read in every tick."""
    truth, spool, result = h.run_oracle(python, "laws.py", 300, 20 if long else 4, timeout=90, settings=dict(SETTINGS))
    need(max(m["threads_peak"] for m in spool.one().metas()) > MOST, "all threads were read in every tick")
    return check_laws(truth, spool.one(), result.rusage, result.wall - (truth["ended"] - truth["began"]))


def cost_a_tick(process):
    """µs of our thread's CPU."""
    metas = process.metas()
    return sum(m["sampler_cpu_us"] for m in metas) / sum(own_ticks(m) for m in metas)


def thousands(python, long):
    """5,000 threads: all that holds for hundreds, and a tick does not cost in proportion."""
    if not long:
        raise h.Skip("--long only")
    soft = resource.getrlimit(resource.RLIMIT_NPROC)[0]
    if 0 <= soft < 6000:
        raise h.Skip("no more than %d threads are allowed here" % soft)
    few, spool, _ = h.run_oracle(python, "alternate.py", 60, 10, settings=dict(UNBUDGETED, APROF_MAX_THREADS="0"))
    alone = cost_a_tick(spool.one())
    truth, spool, _ = h.run_oracle(python, "alternate.py", 300, 20, 4700, timeout=180, settings=UNBUDGETED)
    many = cost_a_tick(spool.one())
    note = check_alternate(truth, spool.one())
    growth = (5000 / len(few["threads"])) / (many / alone)
    need(growth >= 4, "a tick at 5,000 threads costs %.0f µs, at 60 that are all read %.0f", many, alone)
    return "%s; a tick %.0f µs, %.0f at 60 threads" % (note, many, alone)


TESTS = [
    ("threads-300", some_hundreds, h.WAITS),
    ("threads-300-laws", laws_of_hundreds, True),
    ("threads-5000", thousands, False),
]
