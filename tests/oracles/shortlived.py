# SPDX-License-Identifier: MIT
"""shortlived: functions made by exec and dropped at once, so that the next code
object sits where the last one sat. Every second one burns; its twin, of equal
size, returns at once. Each has a name of its own.
"""
import sys
import time

from truth import leave

SOURCE = """
def {kind}_{n}(end, clock):
    while clock() < end:
        for _ in range(100):
            pass
"""


def make(kind, n):
    names = {}
    exec(compile(SOURCE.format(kind=kind, n="%04d" % n), "short.py", "exec"), names)
    return names["%s_%04d" % (kind, n)]


def main():
    clock = time.thread_time
    end = time.monotonic() + float(sys.argv[1])
    spent, addresses, reused = {}, set(), 0
    for n in range(9999):
        if time.monotonic() > end:
            break
        kind = ("burner", "idlers")[n % 2]
        function = make(kind, n)
        reused += id(function.__code__) in addresses
        addresses.add(id(function.__code__))
        before = clock()
        function(before + (0.001 * (1 + n % 5) if kind == "burner" else 0), clock)
        spent["%s_%04d" % (kind, n)] = clock() - before
        del function
    leave({"spent": spent, "reused": reused, "cpu": time.process_time()})


main()
