# SPDX-License-Identifier: MIT
"""children: a program that starts all kinds of children. children.py KIND [COUNT]

What is printed must be the same with and without a profiler.
"""
import os
import subprocess
import sys
import time

from truth import burn, leave

BURN = ("import os, sys, time\ne = time.thread_time() + 0.05\nwhile time.thread_time() < e: pass\n"
        "print(os.getpid(), time.process_time())")


def pythons(count):
    """Short Pythons in another directory, two at a time."""
    said = []
    for _ in range(0, count, 2):
        pair = [subprocess.Popen([sys.executable, "-c", BURN], cwd="/", stdout=subprocess.PIPE) for _ in range(2)]
        said += [p.communicate()[0].decode().split() for p in pair]
    return {int(pid): float(cpu) for pid, cpu in said}


def foreign():
    """Programs that are not Python, through every way to start one."""
    print(subprocess.run(["sh", "-c", "echo out; echo err >&2; exit 3"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT))
    print(subprocess.run(["ls", "-d", "/", "/nonexistent"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT).stdout)
    print(subprocess.run(["sh", "-c", "kill -9 $$"]).returncode)
    print(subprocess.run("exit 5", shell=True).returncode, os.system("exit 6") >> 8)
    print(subprocess.run(["true"], preexec_fn=lambda: None).returncode, os.popen("echo popen").read())
    for attempt in range(20):
        try:
            subprocess.run(["/nonexistent/program"])
        except FileNotFoundError as error:
            said = str(error)
    print(said)
    pid = os.posix_spawn("/bin/sh", ["sh", "-c", "exit 4"], os.environ)
    print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
    pid = os.fork()
    if pid == 0:
        try:
            os.execv("/nonexistent/program", ["x"])
        except OSError:
            os.execv("/bin/sh", ["sh", "-c", "exit 9"])
    print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
    sys.stdout.flush()


def single_forks(count):
    """Forks of a program that has no thread of its own: no warning that was not there before."""
    for n in range(count):
        pid = os.fork()
        if pid == 0:
            burn(0.005)
            os._exit(n & 7)
        print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
        burn(0.005)


def daemon():
    """Twice forked, all descriptors closed; the grandchild leaves the truth."""
    if os.fork():
        os.wait()
        return
    os.setsid()
    if os.fork():
        os._exit(0)
    os.closerange(0, 4096)
    os.open("/dev/null", os.O_RDWR)
    burn(0.4)
    leave({"pid": os.getpid(), "cpu": time.process_time(), "descriptors": sorted(os.listdir("/proc/self/fd"))})
    os._exit(0)


def descriptors():
    burn(0.1)
    print(sorted(os.listdir("/proc/self/fd")))
    os.closerange(3, 4096)
    burn(0.2)
    print(sorted(os.listdir("/proc/self/fd")), os.open("/dev/null", os.O_RDONLY))
    print(subprocess.run(["ls", "/proc/self/fd"], stdout=subprocess.PIPE).stdout)


def main():
    kind, count = sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 0
    burn(0.1)
    if kind == "daemon":
        return daemon()
    used = {"pythons": lambda: pythons(count), "foreign": foreign, "single": lambda: single_forks(count),
            "descriptors": descriptors}[kind]()
    burn(0.1)
    leave({"children": used, "pid": os.getpid(), "cpu": time.process_time(), "times": list(os.times())[:4]})


main()
