# SPDX-License-Identifier: MIT
"""gates: `aprof diff` on real runs: what has not changed passes, what has is found, and the
recipe of README's "Gate a CI job" works.

Runs are shared out into comparisons so that each is in one of a kind: alarms are counted
among independent pairs.
"""
import concurrent.futures
import json
import math
import os
import shutil
import subprocess
import time

import harness as h
from harness import need

SETTINGS = {"APROF_RATE": "2000", "APROF_CLOCK": "monotonic", "APROF_OVERHEAD": "0", "APROF_METRICS": "cpu"}
ROUNDS = 1000
EXTRA = 600     # what mix.py's extra() loops, unless told otherwise
ALARMS = 0.05   # the rate that is stated
PLANTED = 0.03  # of the CPU
SIDE = 8        # runs a side where a change is looked for


def runs_of(python, folder, name, count, extra=None):
    """That many runs, two at a time; their spools."""
    def one(number):
        spool = os.path.join(folder, name, "%d" % number)
        words = [h.oracle("mix.py"), str(ROUNDS)] + ([str(extra)] if extra else [])
        done = h.run(words, name, python=python, settings={**SETTINGS, "APROF_DIR": spool}, folder=folder, timeout=120)
        need(done.status == 0, "mix.py ended with %d: %s", done.status, h.tail(done.err))
        return spool
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        return list(pool.map(one, range(count)))


def diff(base, new, *options):
    done = subprocess.run([h.TOOL, "diff", "--json", "--top", "0", "--fail-over", "0", *options, *base, "--to", *new],
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=60, env=h.clean_environment())
    need(done.returncode in (0, 1), "aprof diff ended with %d: %s", done.returncode, h.tail(done.stderr))
    found = json.loads(done.stdout)
    need(found["gate"]["has_failed"] == (done.returncode == 1), "status %d and gate %r", done.returncode, found["gate"])
    return found


def pairs_of(spools, size):
    """Disjoint, one side beside the other in time."""
    groups = [spools[at:at + 2 * size] for at in range(0, len(spools) - 2 * size + 1, 2 * size)]
    return [(group[0::2], group[1::2]) for group in groups]


def at_most(tries, rate):
    return tries * rate + 3 * math.sqrt(tries * rate * (1 - rate))


def false_alarms(python, spools, size):
    pairs = pairs_of(spools, size)
    alarms = [found["gate"]["shares"][0] for found in (diff(*pair) for pair in pairs) if found["gate"]["has_failed"]]
    names = ", ".join("%s %+.1f beyond %.1f" % (alarm["name"], alarm["change"], alarm["noise"]) for alarm in alarms[:4])
    need(len(alarms) <= at_most(len(pairs), ALARMS), "%d of %d pairs of %d runs a side fail, and nothing has changed: %s",
         len(alarms), len(pairs), size, names)
    return "%d of %d pairs of %d%s" % (len(alarms), len(pairs), size, " (%s)" % names if names else "")


def change_of(found, name):
    return next(s for s in found["metrics"]["cpu"]["shares"] if s["name"] == name and s["of"] == "self")


def odds(share):
    return share / (1 - share)


def extra_for(python, folder, base, points):
    """What extra() must loop to have so much larger a share: its time against that of all
    others is linear in its loops, so two points of the line are measured."""
    probes = runs_of(python, folder, "probes", SIDE, 3 * EXTRA)
    found = change_of(diff(base, probes), "extra")
    least, most = found["base"] / 100, found["new"] / 100
    slope = (odds(most) - odds(least)) / (2 * EXTRA)
    return round(EXTRA + (odds(least + points) - odds(least)) / slope)


def finds(base, new):
    """(how often it was found, comparisons); the change is there, by all runs together."""
    points = change_of(diff(base, new), "extra")["change"]
    need(abs(points - 100 * PLANTED) <= 0.9, "%.2f points were planted, in place of %.0f", points, 100 * PLANTED)
    sides = [(base[at:at + SIDE], new[at:at + SIDE]) for at in range(0, len(new) - SIDE + 1, SIDE)]
    found = [any(s["name"] == "extra" for s in diff(*pair)["gate"]["shares"]) for pair in sides]
    return sum(found), len(found), points


def alarms(pythons, long):
    """A/A: pairs of the same program; then 3 points more of one function."""
    python = pythons[0]
    folder = h.fresh_folder("gate")
    same, changed = (400, 20 * SIDE) if long else (40, 2 * SIDE)
    base = runs_of(python, folder, "base", same)
    new = runs_of(python, folder, "new", changed, extra_for(python, folder, base, PLANTED))
    said = [false_alarms(python, base, size) for size in (1, 5)]
    found, tries, points = finds(base, new)
    need(found >= math.floor(tries * 19 / 20), "%.1f points found %d of %d times", points, found, tries)
    shutil.rmtree(folder)
    return "false alarms: %s; %.1f points found %d of %d times" % (", ".join(said), points, found, tries)


# ---------------------------------------------------------------- the recipe

def job(python, folder, change=None, settings=None):
    """A folder with base/ and new/, and what the job is given in PATH."""
    with open(h.oracle("mix.py"), encoding="utf-8") as f:
        text = f.read()
    for name in ("base", "new", "bin"):
        os.makedirs(os.path.join(folder, name))
    for name in ("base", "new"):
        with open(os.path.join(folder, name, "bench.py"), "w", encoding="utf-8") as f:
            f.write(text.replace(*change) if change and name == "new" else text)
    os.symlink(h.WRAPPER, os.path.join(folder, "bin", "aprof-run"))
    os.symlink(h.TOOL, os.path.join(folder, "bin", "aprof"))
    with open(os.path.join(folder, "bin", "python"), "w", encoding="utf-8") as f:
        f.write("#!/bin/sh\nexec %s \"$@\"\n" % " ".join(python.words))
    os.chmod(os.path.join(folder, "bin", "python"), 0o755)
    return {**h.clean_environment(), **SETTINGS, **(settings or {}), "PATH": os.path.join(folder, "bin") + ":" + os.environ["PATH"]}


def gate(folder, env):
    return subprocess.run([os.path.join(h.REPO, "tests", "integration", "gate.sh")], cwd=folder, env=env, timeout=300,
                          stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE)


def comment(folder):
    with open(os.path.join(folder, "comment.md"), encoding="utf-8") as f:
        return f.read()


def recipe_passes(pythons, long):
    folder = h.fresh_folder("gate-passes")
    done = gate(folder, job(pythons[0], folder))
    need(done.returncode == 0 and not done.stderr, "status %d: %s", done.returncode, h.tail(done.stderr))
    need("`extra` `bench.py`" in comment(folder), "the comment is %r", comment(folder)[:300])


def recipe_fails(pythons, long):
    folder = h.fresh_folder("gate-fails")
    done = gate(folder, job(pythons[0], folder, ("EXTRA = 600", "# lines move\n\nEXTRA = 12000")))
    need(done.returncode == 1, "status %d: %s", done.returncode, h.tail(done.stderr))
    need(b"extra (bench.py) has grown by" in done.stderr, "stderr is %s", h.tail(done.stderr))
    need(comment(folder).startswith("### aprof: ") and "| grew | **+" in comment(folder), "the comment is %r", comment(folder)[:300])


def recipe_unprofiled(pythons, long):
    """What was not profiled passes no gate."""
    folder = h.fresh_folder("gate-unprofiled")
    env = job(pythons[0], folder, settings={"APROF_ENABLE": "0"})
    done = gate(folder, env)
    need(done.returncode == 4, "without a spool: status %d: %s", done.returncode, h.tail(done.stderr))
    os.makedirs(os.path.join(folder, "spool", "base"), exist_ok=True)
    os.makedirs(os.path.join(folder, "spool", "new"), exist_ok=True)
    done = gate(folder, env)
    need(done.returncode == 5 and b"0 samples" in done.stderr, "empty spools: status %d: %s", done.returncode, h.tail(done.stderr))


def recipe_killed(pythons, long):
    """The spool of a job that was killed is compared as far as it goes."""
    folder = h.fresh_folder("gate-killed")
    spools = [os.path.join(folder, name) for name in ("base", "new")]
    for spool in spools:
        running = h.Run([h.oracle("mix.py"), "1000000"], "mix", python=pythons[0], settings={**SETTINGS, "APROF_DIR": spool}, folder=folder)
        end = time.monotonic() + 60
        while not any(looks_at(spool)) and time.monotonic() < end:
            time.sleep(0.05)
        running.kill_all()
        running.finish()
    found = diff(*[[spool] for spool in spools])
    need(all(found[side]["samples"] > 0 for side in ("base", "new")), "nothing is left: %r", found["base"])


def looks_at(spool):
    """The sizes of stacks that are there, once the metadata was renewed with samples."""
    for name in os.listdir(spool) if os.path.isdir(spool) else ():
        if name.endswith(".json.live"):
            with open(os.path.join(spool, name), "rb") as f:
                text = f.read()
            yield b'"samples": ' in text and b'"samples": 0,' not in text


ONCE = [
    ("gate-alarms", alarms, False),
    ("gate-recipe-passes", recipe_passes, True),
    ("gate-recipe-fails", recipe_fails, True),
    ("gate-recipe-unprofiled", recipe_unprofiled, True),
    ("gate-recipe-killed", recipe_killed, True),
]
