# SPDX-License-Identifier: MIT
"""truth: how an oracle leaves what it knows. Used by the programs of this folder."""
import contextlib
import json
import os
import time


def leave(truth, path=None):
    """Writes the truth whole or not at all."""
    path = path or os.environ["ORACLE_TRUTH"]
    with open(path + ".part", "w", encoding="utf-8") as f:
        json.dump(truth, f)
    os.rename(path + ".part", path)


def append(entry):
    """One line for one process: whole, whoever else writes at the same time."""
    fd = os.open(os.environ["ORACLE_TRUTH"] + ".lines", os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    os.write(fd, (json.dumps(entry) + "\n").encode())
    os.close(fd)


def burn(seconds, clock=time.thread_time):
    """Uses so much CPU time of this thread."""
    end = clock() + seconds
    while clock() < end:
        for _ in range(200):
            pass


def profiler_cpu():
    """CPU of the thread named aprof, as the kernel has it; 0: there is none."""
    total = 0
    for tid in os.listdir("/proc/self/task"):
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):  # joined a moment ago, and gone now
            with open("/proc/self/task/%s/comm" % tid) as comm, open("/proc/self/task/%s/schedstat" % tid) as stat:
                if comm.read().strip() == "aprof":
                    total += int(stat.read().split()[0]) / 1e9
    return total
