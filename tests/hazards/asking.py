# SPDX-License-Identifier: MIT
"""asking: requests for a dump that are hostile, that come all the time, while the program forks and ends."""
import glob
import json
import os
import re
import subprocess
import threading
import time

import hazard
from hazard import Hazard, h

LONGEST = 30
SECRET = b"hunter2-s3cret"
OTHER = 65533  # nobody's neighbour

# Ends once there is a file `stop` in its folder. Prints what would show a wrong result.
STAYS = """
import asyncio, os
async def stays(): await asyncio.sleep(1e6)
async def main():
    tasks = [asyncio.create_task(stays()) for _ in range(%d)]
    sums = set()
    while not os.path.exists("stop"):
        sums.add(sum(range(10000)))
        await asyncio.sleep(0.01)
    print(len(tasks), sums)
asyncio.run(main())
"""
FORKS = """
import os, time, warnings
warnings.simplefilter("ignore")  # that a machine as busy as this row makes it cannot join our thread in 20 ms: forks.pause
count = 0
while not os.path.exists("stop"):
    pid = os.fork()
    if pid == 0: os._exit(7)
    count += os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 7
    time.sleep(0.002)
print("all", count > 0)
"""
ENDS = """
import time
end = time.monotonic() + 0.3
while time.monotonic() < end: sum(range(1000))
print("done")
"""


class Driver(threading.Thread):
    """Does something to a program while it runs, then has it end. done: what the work returned, or how it failed."""

    def __init__(self, folder, work):
        super().__init__(daemon=True)
        self.folder, self.work, self.done, self.failure = folder, work, None, None
        self.spool = os.path.join(folder, "spool")
        self.start()

    def run(self):
        try:
            self.done = self.work(self)
        except Exception as error:  # shown by the row
            self.failure = "%s: %s" % (type(error).__name__, error)
        with open(os.path.join(self.folder, "stop"), "w", encoding="ascii"):
            pass

    def wait(self, truth, what):
        end = time.monotonic() + LONGEST
        while not truth():
            h.need(time.monotonic() < end, "%s: not within %d s", what, LONGEST)
            time.sleep(0.02)

    def metadata(self):
        """The path of the live metadata of the only process."""
        self.wait(lambda: glob.glob(os.path.join(self.spool, "aprof.*.json.live")), "no process")
        return sorted(glob.glob(os.path.join(self.spool, "aprof.*.json.live")))[-1]

    def name(self, end):
        return re.sub(r"\.\d{6,}\.json\.live$", end, self.metadata())

    def refused(self):
        try:
            with open(self.metadata(), encoding="utf-8") as f:
                return json.load(f)["limits"].get("dump_refused", 0)
        except (OSError, ValueError):  # sealed, or renewed just then
            return -1

    def dump(self, seconds=LONGEST):
        return subprocess.run([h.TOOL, "dump", "--json", "--timeout", str(seconds), self.spool], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, timeout=LONGEST + 10)


def driven(case, code, work, python=None, out=None, settings=None):
    """The program's result, while work(driver) is done to it."""
    folder = h.fresh_folder(case.name)
    driver = Driver(folder, work)
    result = case.program(["-c", code], python=python or case.python, folder=folder, cwd=folder, settings=settings, timeout=3 * LONGEST)
    driver.join(LONGEST)
    case.check(driver.failure is None and not driver.is_alive(), "%s", driver.failure or "the driver hangs")
    if result and out is not None:
        case.check(result.out == out and not result.err, "it says %r, %r", result.out[-200:], result.err[-200:])
    return result, driver


# ---------------------------------------------------------------- requests

def plant_link(path, victim):
    os.symlink(victim, path)


def plant_large(path, victim):
    with open(path, "wb") as f:
        f.truncate(1 << 40)


def plant_full(path, victim):
    with open(path, "wb") as f:
        f.write(b"aprof-dump\t1\n" * 10000)


def plant_foreign(path, victim):
    with open(path, "wb"):
        os.chown(path, OTHER, OTHER)


PLANTS = (("link", plant_link), ("pipe", lambda path, victim: os.mkfifo(path)), ("folder", lambda path, victim: os.mkdir(path)),
          ("hard link", lambda path, victim: os.link(victim, path)), ("large", plant_large), ("full", plant_full)) + \
    ((("foreign", plant_foreign),) if os.geteuid() == 0 else ())


def work_hostile(driver):
    """Each stands until it was refused, once; an honest request is answered after it."""
    victim = os.path.join(driver.folder, "victim")
    with open(victim, "wb") as f:
        f.write(SECRET)
    path = driver.name(".ask")
    for what, plant in PLANTS:
        before = driver.refused()
        plant(path, victim)
        driver.wait(lambda: driver.refused() > before >= 0, what)
        h.need(os.path.lexists(path), "%s: taken away", what)
        h.need(h.read_bytes(victim) == SECRET, "%s: the file was changed", what)
        if os.path.isdir(path) and not os.path.islink(path):
            os.rmdir(path)
        else:
            os.unlink(path)
    others = [os.path.join(driver.spool, "aprof.other.%d.1.ask" % (number + 1)) for number in range(1000)]
    for other in others:
        with open(other, "wb"):
            pass
    done = driver.dump()
    for other in others:
        os.unlink(other)
    h.need(done.returncode == 0, "an honest request after them: %d %s", done.returncode, done.stderr[-200:])
    refused = driver.refused()
    h.need(refused in (-1, len(PLANTS)), "%d refused, of %d", refused, len(PLANTS))
    return len(PLANTS)


def hostile(case):
    """What somebody else put in the request's place is left alone, counted once, and does no harm."""
    result, driver = driven(case, STAYS % 10, work_hostile, out=b"10 {49995000}\n", settings={"APROF_WINDOW": "3600"})
    case.tried(driver.done or 0)
    if result:
        report = subprocess.run([h.TOOL, "report", "--json", result.spool], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        case.check(report.returncode == 0 and not report.stderr, "aprof report: %d %s", report.returncode, report.stderr[-200:])


# ---------------------------------------------------------------- all the time

def work_asking(seconds):
    def work(driver):
        driver.metadata()
        end, answers = time.monotonic() + seconds, 0
        while time.monotonic() < end or not answers:
            done = driver.dump()
            answers += done.returncode == 0
            h.need(time.monotonic() < end + LONGEST, "no answer at all: %d %s", done.returncode, done.stderr[-200:])
        return answers
    return work


def flood(case):
    """As many as will be answered, of thousands of tasks: the program's results are right, the cost is bounded."""
    seconds = 20 if case.long else 3
    result, driver = driven(case, STAYS % 5000, work_asking(seconds), out=b"5000 {49995000}\n")
    case.tried(driver.done or 0)
    if result and driver.done:
        process = h.Spool(result.spool).by_pid(result.pid)[0] if h.Spool(result.spool).by_pid(result.pid) else h.Spool(result.spool).one()
        share = process.counter("sampler_cpu_us") / 1e6 / result.wall
        case.note = "%d answers, %.2f %% of a core" % (driver.done, 100 * share)
        case.check(share < 0.03, "the sampler used %.1f %% of a core", 100 * share)


def forks(case):
    """A program that forks all the time is answered between its forks, and not held up by it."""
    began, seconds = time.monotonic(), 10 if case.long else 2
    result, driver = driven(case, FORKS, work_asking(seconds), out=b"all True\n")
    case.tried(driver.done or 0)
    case.note = "%s answers" % driver.done
    case.check(time.monotonic() - began < seconds + LONGEST / 2, "a child that had ended was waited for")


def ends(case):
    """Programs that end while they are asked: with their own status, and nothing of the request is opened for ever."""
    for _ in range(20 if case.long else 4):
        folder = h.fresh_folder(case.name)
        driver = Driver(folder, lambda driver: [driver.dump(1).returncode for _ in range(3)])
        result = case.program(["-c", ENDS], folder=folder, cwd=folder)
        driver.join(LONGEST)
        case.check(driver.failure is None and set(driver.done) <= {0, 3, 4}, "%s %s", driver.failure, driver.done)
        if result:
            case.check(result.out == b"done\n" and not result.err, "it says %r, %r", result.out, result.err[-200:])
            left = [name for name in os.listdir(result.spool) if name.endswith((".ask", ".dump.tmp"))]
            case.check(not left, "left: %s", left)


HAZARDS = [
    Hazard("asking.hostile", hostile, each=("3.11.2", "3.14")),
    Hazard("asking.flood", flood),
    Hazard("asking.forks", forks),
    Hazard("asking.ends", ends),
]
