# SPDX-License-Identifier: MIT
"""steps: does what it is told, a line at a time, and times itself.

  work MS           uses so much CPU, in work()
  fork COUNT [MS]   forks so many children, one by one, that use so much CPU (none) and end; the time of each call of fork
  exec STATUS       becomes a shell that ends so
  new COUNT         works a little in so many functions that were not seen before
  limit NAME SOFT   resource.setrlimit
  exit STATUS       ends by os._exit
  do CODE           runs a line of Python

Answers each with "done" and its numbers. At the end of its input: the longest
times of its own that it saw, and exit status 7.
"""
import os
import resource
import sys
import time


def work(seconds):
    """All of it in one line: whoever waits for its stack in the spool has it all there."""
    end = time.thread_time() + seconds
    while time.thread_time() < end and sum(range(200)):
        pass


def fork(count, ms=0):
    taken = []
    for _ in range(count):
        began = time.monotonic()
        pid = os.fork()
        if not pid:
            work(ms / 1000)
            os._exit(0)
        taken.append(time.monotonic() - began)
        os.waitpid(pid, 0)
    return " ".join("%.6f" % t for t in taken)


def fresh(count):
    for _ in range(count):
        name = "fresh_%d" % time.monotonic_ns()
        space = {"work": work}
        exec("def %s():\n    work(0.012)\n" % name, space)
        space[name]()


def obey(order, rest):
    if order == "work":
        work(int(rest) / 1000)
    elif order == "fork":
        return fork(*map(int, rest.split()))
    elif order == "new":
        fresh(int(rest))
    elif order == "exec":
        os.execv("/bin/sh", ["sh", "-c", "exit " + rest])
    elif order == "exit":
        os._exit(int(rest))
    elif order == "limit":
        name, soft = rest.split()
        resource.setrlimit(getattr(resource, name), (int(soft), resource.getrlimit(getattr(resource, name))[1]))
    elif order == "do":
        exec(rest, {"os": os, "sys": sys, "time": time})
    else:
        raise SystemExit("what is %r?" % order)
    return ""


while True:
    line = sys.stdin.readline()
    if not line:
        break
    order, _, rest = line.rstrip("\n").partition(" ")
    print(("done " + obey(order, rest)).rstrip(), flush=True)
sys.exit(7)
