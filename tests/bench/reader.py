#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""reader: how long a spool takes to be reported, drawn and compared.

    tests/bench/reader.py [--sizes MIB,MIB...] [--stacks N] [--runs N] [--aprof FILE] [--other FILE]

A spool of that size is made as a service leaves it: windows of 16 MiB, sorted, each
with some of the service's N stacks (60,000), which are ways through a tree of 3,000
functions, 40 frames deep on average. Then each program reads it, in turns: seconds
(median, and range over all runs), MiB a second, the most memory that it held, and how
often it takes the time of awk, which adds up the last frames of the same files (what
people do with collapsed stacks today). --other: another build of aprof.

Goals: 1,024 MiB in 10 s and 500 MiB of memory, 100 MiB in 1 s.
"""
import argparse
import json
import os
import random
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

REPO = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
WINDOW_MIB = 16
START_US = 1700000000000000
FUNCTIONS, DEPTH = 3000, 40
GOALS = {"report": ((1024, 10.0, 500), (100, 1.0, 500))}  # MiB of spool: seconds, MiB of memory
AWK = """{ count = $NF; sub(/ [0-9]+$/, ""); sub(/^.*;/, ""); sub(/ \\(.*$/, ""); own[$0] += count }
END { for (name in own) print own[name], name | "sort -rn | head" }"""


def functions_make(draw):
    """Their frames, without a line."""
    words = [draw.choice("handle load parse encode read write query render find send step run".split()) + "_%d" % n for n in range(FUNCTIONS)]
    packages = ["app/%s.py", "aiohttp/%s.py", "sqlalchemy/orm/%s.py", "django/core/handlers/%s.py", "asyncio/%s.py", "json/%s.py"]
    return ["%s%s (%s" % (draw.choice(("", "Service.", "Session.Query.", "outer.<locals>.")), word,
                          draw.choice(packages) % draw.choice("base events web client session core".split())) for word in words]


def stacks_make(draw, count):
    """Ways through a tree: a function calls few others, from few lines."""
    functions = functions_make(draw)
    calls = [[draw.randrange(FUNCTIONS) for _ in range(draw.choice((1, 1, 2, 3)))] for _ in range(FUNCTIONS)]
    stacks = set()
    while len(stacks) < count:
        at, frames = draw.randrange(8), []
        for _ in range(max(3, int(draw.gauss(DEPTH, DEPTH / 3)))):
            frames.append("%s:%d)" % (functions[at], 10 + at % 700 + draw.choice((0, 0, 0, 7))))
            at = draw.choice(calls[at])
        stacks.add(";".join(frames))
    return sorted(stacks)


def metadata_of(number):
    start = START_US + number * 60000000
    return {"schema": 1, "run": "bench", "pid": 100, "ppid": 1, "host": "h", "program": "service.py", "python": "3.12.1",
            "start_us": start, "end_us": start + 60000000, "window": number, "ended": "window", "settings": {}, "tags": {},
            "ticks": {"due": 6000, "taken": 6000, "missed": 0}, "rate": {"asked": 100, "got": 100.0}, "samples": 6000,
            "dropped": {}, "process_cpu_us": 30000000, "sampler_cpu_us": 100000, "handler_us": 20000, "limits": {}}


def spool_make(folder, stacks, mib, draw):
    os.makedirs(folder)
    left, number = mib << 20, 0
    while left > 0:
        room, keep = min(left, WINDOW_MIB << 20), []
        average = sum(map(len, stacks)) / len(stacks) + 8
        for stack in stacks:
            if draw.random() * len(stacks) * average < room:
                keep.append("%s %d\n" % (stack, int(draw.expovariate(1 / 30000)) + 1))
        stem = os.path.join(folder, "aprof.h.100.%d.%06d" % (START_US, number))
        text = "".join(keep).encode()
        with open(stem + ".cpu.collapsed", "wb") as file:
            file.write(text)
        with open(stem + ".json", "w") as file:
            json.dump(metadata_of(number), file)
        left, number = left - max(len(text), room), number + 1


def spool_make_apart(folder, mib, count):
    """In a child: what this process holds would count as its children's."""
    child = os.fork()
    if not child:
        draw = random.Random(7)
        spool_make(folder, stacks_make(draw, count), mib, draw)
        os._exit(0)
    if os.waitpid(child, 0)[1]:
        sys.exit("the spool could not be made")


def size_of(folder):
    return sum(entry.stat().st_size for entry in os.scandir(folder)) / 2**20


def measure(command, output):
    """Seconds, and MiB held at most by any one of its processes."""
    with open(output, "wb") as out:
        before = time.monotonic()
        started = subprocess.Popen(command, stdout=out)
        _, status, used = os.wait4(started.pid, 0)
        seconds = time.monotonic() - before
    started.returncode = os.waitstatus_to_exitcode(status)
    if started.returncode:
        sys.exit("%s: exit status %d" % (" ".join(command), started.returncode))
    return seconds, used.ru_maxrss / 1024


def commands_of(options, folder, scratch):
    files = sorted(entry.path for entry in os.scandir(folder) if entry.path.endswith(".collapsed"))
    half = len(files) // 2
    of = {"awk": ["env", "LC_ALL=C", "awk", AWK] + files, "report": [options.aprof, "report", folder],
          "report --by stack": [options.aprof, "report", "--by", "stack", folder],
          "report --only": [options.aprof, "report", "--only", "load_*", "--hide", "asyncio.*", folder],
          "flame": [options.aprof, "flame", "-o", os.path.join(scratch, "flame.html"), folder],
          "diff": [options.aprof, "diff"] + files[:half] + ["--to"] + files[half:]}
    if options.other:
        of["report, other"] = [options.other, "report", folder]
    return of


def judge(name, mib, seconds, memory):
    for goal_mib, goal_seconds, goal_memory in GOALS.get(name, ()):
        if abs(mib - goal_mib) < 0.02 * goal_mib:
            return "goal %g s, %d MiB: %s" % (goal_seconds, goal_memory, "met" if seconds <= goal_seconds and memory <= goal_memory else "MISSED")
    return ""


def show(found, mib):
    awk = statistics.median(seconds for seconds, _ in found["awk"])
    for name, runs in found.items():
        seconds, memory = [one for one, _ in runs], max(held for _, held in runs)
        middle = statistics.median(seconds)
        print("%6.0f  %-18s %7.2f  (%.2f to %.2f) %8.0f %8.0f  %8.2f  %s" % (
            mib, name, middle, min(seconds), max(seconds), mib / middle, memory, middle / awk, judge(name, mib, middle, memory)), flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--sizes", default="100,1024")
    parser.add_argument("--stacks", type=int, default=60000)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--aprof", default=os.path.join(REPO, "build", "aprof"))
    parser.add_argument("--other", metavar="FILE")
    options = parser.parse_args()
    print("%6s  %-18s %7s  %14s %8s %8s  %8s" % ("MiB", "", "s", "(range)", "MiB/s", "MiB held", "x awk"))
    for mib in map(int, options.sizes.split(",")):
        scratch = tempfile.mkdtemp(prefix="aprof-reader-")
        try:
            folder = os.path.join(scratch, "spool")
            spool_make_apart(folder, mib, options.stacks)
            commands = commands_of(options, folder, scratch)
            found = {name: [] for name in commands}
            for _ in range(options.runs):
                for name, command in commands.items():
                    found[name].append(measure(command, os.path.join(scratch, "out")))
            show(found, size_of(folder))
        finally:
            shutil.rmtree(scratch)


if __name__ == "__main__":
    main()
