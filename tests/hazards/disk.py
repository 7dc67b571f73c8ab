# SPDX-License-Identifier: MIT
"""disk: whatever is the matter with the spool directory, the application does not notice.

What no version of Python changes is tried once, each variant on another Python.
Every program does as told (programs/steps.py) and ends with 7. A spool that
cannot be written costs one line on stderr, with its path and the errno.
"""
import contextlib
import errno
import itertools
import json
import os
import re
import shutil
import signal
import stat
import subprocess
import time

import hazard
from hazard import Hazard, h

STEPS = os.path.join(hazard.HERE, "programs", "steps.py")
OURS = re.compile(rb"^aprof: .*\n", re.M)
NOBODY = 65534
WAIT = 15  # seconds, for what must come


# ---------------------------------------------------------------- a program that does as told

class Steps:
    """A running steps.py and the folder of its spool."""

    def __init__(self, case, python, what, spool=None, folder=None, words=(), **settings):
        self.case, self.what = case, what
        self.label = "%s on %s" % (what, python.label)
        folder = folder or h.fresh_folder(case.name + "-" + what)
        self.spool = os.path.join(folder, "spool") if spool is None else spool
        options = {"APROF_DIR": self.spool}
        options.update(("APROF_" + name.upper().rstrip("_"), str(value)) for name, value in settings.items())
        self.run = h.Run(list(words) + python.words + [STEPS], what, folder=folder, settings=options, stdin=subprocess.PIPE)
        self.pid, self.out, self.worked = self.run.popen.pid, b"", 0
        case.tried()

    def tell(self, order, timeout=WAIT):
        """Gives an order and waits for the answer; None when the program has gone."""
        try:
            self.run.popen.stdin.write(order.encode() + b"\n")
            self.run.popen.stdin.flush()
        except BrokenPipeError:
            return None
        if order.startswith("work"):
            self.worked += int(order.split()[1]) / 1000
        line = self._line(timeout)
        self.out += line
        return line.decode().split()[1:] if line else None

    def _line(self, timeout):
        line = b""
        end = time.monotonic() + timeout
        while not line.endswith(b"\n"):
            if not hazard.readable(self.run.popen.stdout, end - time.monotonic()):
                self.case.add("hangs", "%s: no answer after %d s", self.label, timeout)
                return b""
            got = os.read(self.run.popen.stdout.fileno(), 1)
            if not got:
                return line
            line += got
        return line

    def work_until(self, truth, what, step=20):
        """Works until that holds, which must come."""
        end = time.monotonic() + WAIT
        while not truth():
            if time.monotonic() > end or self.tell("work %d" % step) is None:
                self.case.broken("%s: never: %s", self.label, what)
                return False
        return True

    def work_until_spooled(self):
        """Until its work is there, in the line that it is in all the time."""
        return self.work_until(lambda: has_work(self.spool), "its work in the spool")

    def end(self, expect=7, said=0, errno_said=None, timeout=20):
        """Lets it end. said: how many lines of ours on stderr at most; errno_said: one of these must be in it."""
        with contextlib.suppress(BrokenPipeError):
            self.run.popen.stdin.close()
        try:
            result = self.run.finish(timeout)
        except h.Failure as reason:
            self.case.add("hangs", "%s: %s", self.label, reason)
            return None
        self.case.judge(result.status, expect, self.label, result.err)
        self.check_output(result, said, errno_said)
        return result

    def check_output(self, result, said, errno_said):
        lines = OURS.findall(result.err)
        self.case.check(OURS.sub(b"", result.err) == b"", "%s: stderr: %s", self.label, h.tail(result.err))
        self.case.check(all(line.startswith(b"done") for line in (self.out + result.out).splitlines()), "%s: stdout: %r", self.label, result.out)
        self.case.check(len(lines) <= said, "%s: says: %s", self.label, h.tail(result.err))
        if errno_said is not None:
            found = re.search(rb"\((\d+)\); ", result.err)
            self.case.check(lines and found and int(found[1]) in errno_said, "%s: errno %s is not said: %s", self.label, errno_said, h.tail(result.err))
            self.case.check(self.spool.rstrip("/").encode()[:200] in result.err, "%s: the path is not said: %s", self.label, h.tail(result.err))

    def spooled(self, share=0.6, folder=None):
        """The process is in the spool once, with the CPU that it used."""
        spool = h.Spool(folder or self.spool, strict=False)
        found = spool.by_pid(self.pid)
        if len(found) != 1:
            self.case.add("lost", "%s: %d times in the spool %s", self.label, len(found), sorted(os.listdir(folder or self.spool)))
            return None
        total = found[0].total("cpu") / 1e6
        self.case.check(total >= share * self.worked, "%s: %.3f s of CPU in the spool of %.3f", self.label, total, self.worked)
        return found[0]


def live_files(folder):
    with contextlib.suppress(OSError):
        return [name for name in os.listdir(folder) if name.endswith(".collapsed.live")]
    return []


def has_work(folder):
    """In the line of work() that it is in all the time."""
    with open(STEPS) as f:
        line = next(number for number, text in enumerate(f, 1) if "sum(range(" in text)
    stack = re.compile(rb"work \([^;]*:%d\)" % line)
    with contextlib.suppress(FileNotFoundError):
        for name in live_files(folder):
            with open(os.path.join(folder, name), "rb") as f:
                if stack.search(f.read()):
                    return True
    return False


def windows(folder):
    """Sequence numbers of the sealed windows."""
    with contextlib.suppress(OSError):
        return sorted(int(name.split(".")[-2]) for name in os.listdir(folder) if name.endswith(".json"))
    return []


def limit_of(steps, limit, folder=None):
    """How often a limit bit, by all metadata of the process."""
    times = 0
    folder = folder or steps.spool
    for name in sorted(os.listdir(folder)):
        if ".%d." % steps.pid in name and name.endswith((".json", ".json.live")):
            with contextlib.suppress(ValueError, OSError):
                times += json.loads(h.read_bytes(os.path.join(folder, name)))["limits"].get(limit, 0)
    return times


def over(case, variants):
    """Each variant on the next of the Pythons."""
    return zip(variants, itertools.cycle(case.pythons))


@contextlib.contextmanager
def mounted(kind, folder, options="", source="none"):
    hazard.need_root()
    os.makedirs(folder, exist_ok=True)
    words = ["mount", "-t", kind] + (["-o", options] if options else []) + [source, folder]
    done = subprocess.run(words, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    if done.returncode != 0:
        raise h.Skip("cannot mount %s: %s" % (kind, h.tail(done.stderr)))
    try:
        yield folder
    finally:
        subprocess.run(["umount", "-l", folder], stderr=subprocess.DEVNULL)


def fill(folder):
    """Takes all room of a file system; the file that took it."""
    path = os.path.join(folder, "ballast")
    block = b"x" * 65536
    fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    while block:
        try:
            os.write(fd, block)
        except OSError as error:
            if error.errno != errno.ENOSPC:
                raise
            block = block[:len(block) // 2]
    os.close(fd)
    return path


# ---------------------------------------------------------------- directories that cannot be written

def a_file(folder):
    path = os.path.join(folder, "spool")
    open(path, "w").close()
    return path, {errno.ENOTDIR}


def below_a_file(folder):
    path, _ = a_file(folder)
    return path + "/deeper", {errno.ENOTDIR}


def a_loop(folder):
    path = os.path.join(folder, "spool")
    os.symlink("spool", path)
    return path, {errno.ELOOP}


def a_link_to_nothing(folder):
    path = os.path.join(folder, "spool")
    os.symlink("nothing", path)
    return path, {errno.ENOENT}


def in_proc(folder):
    return "/proc/none/spool", {errno.ENOENT, errno.EACCES}


def too_long_a_name(folder):
    return os.path.join(folder, "x" * 300), {errno.ENAMETOOLONG}


def too_long_a_path(folder):
    return os.path.join(folder, "/".join(["x" * 50] * 55)), {errno.ENAMETOOLONG, errno.EACCES}


def of_another_user(folder):
    hazard.need_root()
    path = os.path.join(folder, "spool")
    os.mkdir(path, 0o755)
    os.chown(path, NOBODY, NOBODY)
    return path, {errno.EACCES}


def below_another_users(folder):
    path, errors = of_another_user(folder)
    return path + "/deeper", errors


REFUSED = [a_file, below_a_file, a_loop, a_link_to_nothing, in_proc, too_long_a_name, of_another_user, below_another_users]


def refused(case):
    """A directory that cannot be written or made: one line, and the application's own end."""
    for make, python in over(case, REFUSED):
        folder = h.fresh_folder(case.name + "-" + make.__name__)
        path, errors = make(folder)
        steps = Steps(case, python, make.__name__, spool=path, folder=folder)
        steps.tell("work 100")
        steps.end(said=1, errno_said=errors)


def read_only(case):
    """On a read-only file system, from the start."""
    with mounted("tmpfs", h.fresh_folder(case.name), "ro") as folder:
        steps = Steps(case, case.python, "read-only", spool=os.path.join(folder, "spool"))
        steps.tell("work 60")
        steps.end(said=1, errno_said={errno.EROFS})


def full(case):
    """On a file system that is full, of bytes or of inodes, from the start."""
    for options, python in over(case, ["size=64k", "size=1m,nr_inodes=2"]):
        with mounted("tmpfs", h.fresh_folder(case.name), options) as folder:
            if "inodes" not in options:
                fill(folder)
            steps = Steps(case, python, options, spool=os.path.join(folder, "spool"))
            steps.tell("work 100")
            steps.end(said=1, errno_said={errno.ENOSPC})


# ---------------------------------------------------------------- directories that are odd, but can be

def a_link(folder):
    os.mkdir(os.path.join(folder, "target"))
    os.symlink("target", os.path.join(folder, "spool"))
    return os.path.join(folder, "spool")


def sticky(folder):
    path = os.path.join(folder, "spool")
    os.mkdir(path)
    os.chmod(path, 0o1777)
    if os.geteuid() == 0:
        os.chown(path, NOBODY, NOBODY)
    return path


def planted(kind):
    """What the writer makes besides its windows is there already, and something else."""
    def make(folder):
        path = os.path.join(folder, "spool")
        os.mkdir(path)
        with open(os.path.join(folder, "precious"), "w") as f:
            f.write("precious")
        for name in (".gitignore", ".aprof.lock"):
            at = os.path.join(path, name)
            if kind == "links":
                os.symlink("../precious", at)
            elif kind == "fifos":
                os.mkfifo(at)
            else:
                os.mkdir(at)
        return path
    make.__name__ = "planted_" + kind
    return make


def named(name):
    def make(folder):
        return os.path.join(folder, name)
    make.__name__ = "named_%r" % name
    return make


ODD = [a_link, sticky, planted("links"), planted("fifos"), planted("directories"), named("with space"), named("new\nline"), named("gr\u00fc\u00df dich"),
       named("%s%n;\"'\\"), named("deep/er/still/"), named("x" * 255)]


def odd(case):
    """Odd directories and names are taken as they are; links that were planted are not followed."""
    for make, python in over(case, ODD):
        folder = h.fresh_folder(case.name)
        steps = Steps(case, python, make.__name__, spool=make(folder), folder=folder)
        steps.tell("work 100")
        steps.end()
        steps.spooled()
        precious = os.path.join(folder, "precious")
        if os.path.exists(precious):
            case.check(h.read_bytes(precious) == b"precious", "%s: a link was followed", steps.label)


def modes(case):
    """Whatever the umask: what we make is 0600 and 0700 (made by root: 01733)."""
    for umask, python in over(case, ["0777", "0000", "0022"]):
        folder = h.fresh_folder(case.name)
        steps = Steps(case, python, "umask " + umask, folder=folder, words=["sh", "-c", "umask %s; exec \"$@\"" % umask, "sh"], window=1)
        steps.work_until(lambda: windows(steps.spool), "a sealed window")
        steps.end()
        steps.spooled()
        mode = stat.S_IMODE(os.stat(steps.spool).st_mode)
        case.check(mode == (0o1733 if os.geteuid() == 0 else 0o700), "%s: the directory is %o", steps.label, mode)
        for name in os.listdir(steps.spool):
            mode = stat.S_IMODE(os.lstat(os.path.join(steps.spool, name)).st_mode)
            case.check(mode == 0o600, "%s: %s is %o", steps.label, name, mode)


def relative(case):
    """A relative directory is that of the start, wherever the application goes."""
    folder = h.fresh_folder(case.name)
    steps = Steps(case, case.pythons[0], "relative", spool="./some/spool", folder=folder, window=1)
    steps.tell("do os.chdir('/')")
    steps.work_until(lambda: windows(os.path.join(folder, "some/spool")), "a sealed window")
    steps.end()
    steps.spooled(folder=os.path.join(folder, "some/spool"))


def empty(case):
    """An empty or unusable name is a bad setting: said once, and the default instead."""
    for name, python in over(case, ["", "x" * 3500]):
        folder = h.fresh_folder(case.name)
        steps = Steps(case, python, "name of %d bytes" % len(name), spool=name, folder=folder)
        steps.tell("work 100")
        steps.end(said=1)
        steps.spooled(folder=os.path.join(folder, "aprof-spool"))


# ---------------------------------------------------------------- what others do to it in mid-run

def removed(steps):
    """Taken away altogether; made again, with everything."""
    shutil.rmtree(steps.spool)


def moved(steps):
    os.rename(steps.spool, steps.spool + "-old")


def moved_and_replaced(steps):
    os.rename(steps.spool, steps.spool + "-old")
    os.mkdir(steps.spool, 0o700)


def one_file_removed(steps):
    os.unlink(os.path.join(steps.spool, next(n for n in live_files(steps.spool) if ".cpu." in n)))


def all_files_removed(steps):
    for name in os.listdir(steps.spool):
        os.unlink(os.path.join(steps.spool, name))


def metadata_removed(steps):
    for name in os.listdir(steps.spool):
        if name.endswith("json.live"):
            os.unlink(os.path.join(steps.spool, name))


def cut_to_nothing(steps):
    for name in live_files(steps.spool):
        os.truncate(os.path.join(steps.spool, name), 0)


def cut_in_a_line(steps):
    for name in live_files(steps.spool):
        os.truncate(os.path.join(steps.spool, name), 37)


def lengthened(steps):
    for name in live_files(steps.spool):
        with open(os.path.join(steps.spool, name), "a") as f:
            f.write("somebody's own (line.py:1) 5\n")


def replaced_by_links(steps):
    """Under the names of live files: links to a file of the user's."""
    precious = os.path.join(os.path.dirname(steps.spool), "precious")
    with open(precious, "w") as f:
        f.write("precious")
    for name in live_files(steps.spool):
        os.unlink(os.path.join(steps.spool, name))
        os.symlink(precious, os.path.join(steps.spool, name))


def replaced_by_fifos(steps):
    for name in live_files(steps.spool):
        os.unlink(os.path.join(steps.spool, name))
        os.mkfifo(os.path.join(steps.spool, name))


EVENTS = [removed, moved, moved_and_replaced, one_file_removed, all_files_removed, metadata_removed, cut_to_nothing, cut_in_a_line, lengthened,
          replaced_by_links, replaced_by_fifos]


def signature(folder):
    """Which live files there are: names and identities."""
    found = set()
    with contextlib.suppress(OSError):
        for name in os.listdir(folder):
            status = os.lstat(os.path.join(folder, name))
            if name.endswith(".live") and stat.S_ISREG(status.st_mode) and status.st_size:
                found.add((name, status.st_ino))
    return found


def taken_away(case):
    """Files or directory are removed, moved, cut, replaced in mid-run: new ones hold everything."""
    for event, python in over(case, EVENTS):
        steps = Steps(case, python, event.__name__)
        if not steps.work_until_spooled():
            continue
        steps.tell("work 100")
        before = signature(steps.spool)
        event(steps)
        steps.work_until(lambda: signature(steps.spool) - before, "new files")
        steps.end()
        put_in_the_way = [n for n in os.listdir(steps.spool) if not stat.S_ISREG(os.lstat(os.path.join(steps.spool, n)).st_mode)]
        case.check(len(put_in_the_way) == (2 if "replaced_by" in event.__name__ else 0), "%s: what somebody put there: %s", steps.label, put_in_the_way)
        for name in put_in_the_way:
            os.unlink(os.path.join(steps.spool, name))
        steps.spooled(share=0.9)
        case.check(limit_of(steps, "spool_lost"), "%s: is not counted", steps.label)
        precious = os.path.join(os.path.dirname(steps.spool), "precious")
        if os.path.exists(precious):
            case.check(h.read_bytes(precious) == b"precious", "%s: a link was followed", steps.label)


def planted_names(case):
    """Links, FIFOs and directories where the files of the next windows go."""
    for kind, python in over(case, ["links", "fifos", "directories"]):
        steps = Steps(case, python, kind, window=1)
        if not steps.work_until_spooled():
            continue
        precious = os.path.join(os.path.dirname(steps.spool), "precious")
        with open(precious, "w") as f:
            f.write("precious")
        name = live_files(steps.spool)[0]
        stem = name[:name.index(".000000.")]
        ends = ("json.live", "json.tmp", "cpu.collapsed.live", "wall.collapsed.live", "wall.collapsed.tmp")
        spots = [os.path.join(steps.spool, "%s.%06d.%s" % (stem, seq, end)) for seq, end in ((1, ends[0]), (2, ends[2]), (3, ends[3]), (4, ends[4]), (5, ends[1]))]
        for spot in spots:
            if kind == "links":
                os.symlink(precious, spot)
            elif kind == "fifos":
                os.mkfifo(spot)
            else:
                os.mkdir(spot)
        steps.work_until(lambda: len(windows(steps.spool)) >= 3, "three sealed windows")
        steps.end()
        case.check(h.read_bytes(precious) == b"precious", "%s: a link was followed", steps.label)
        for spot in spots:
            if os.path.isdir(spot):
                os.rmdir(spot)
            elif os.path.lexists(spot):
                os.unlink(spot)
        steps.spooled(share=0.9)


# ---------------------------------------------------------------- disks that fill up

def filled(case):
    """The file system fills up in mid-run, and has room again later."""
    for options, python in over(case, ["size=256k"] + ["size=1m"] * case.long):
        with mounted("tmpfs", h.fresh_folder(case.name), options) as folder:
            steps = Steps(case, python, options, spool=os.path.join(folder, "spool"), window=1)
            if not steps.work_until(lambda: windows(steps.spool), "a sealed window"):
                continue
            ballast = fill(folder)
            steps.tell("new 20")
            steps.work_until(lambda: limit_of(steps, "spool_full"), "ENOSPC in the metadata")
            os.unlink(ballast)
            sealed = len(windows(steps.spool))
            steps.work_until(lambda: len(windows(steps.spool)) > sealed, "another sealed window")
            steps.end(said=1)
            steps.spooled(share=0.9)
            case.check(not live_files(steps.spool), "%s: live files are left", steps.label)
            case.check(limit_of(steps, "spool_full"), "%s: is not counted", steps.label)


def filled_for_good(case):
    """It fills up and stays full: what was there stays whole, counts go on."""
    with mounted("tmpfs", h.fresh_folder(case.name), "size=256k") as folder:
        steps = Steps(case, case.pythons[-2:][0], "full", spool=os.path.join(folder, "spool"))
        if steps.work_until_spooled():
            fill(folder)
            steps.tell("new 10")
            steps.tell("work 60")
        steps.end(said=1, errno_said={errno.ENOSPC})
        steps.spooled(share=0.3)


# ---------------------------------------------------------------- a file system that fails on command

class DiskFs:
    """programs/diskfs.c, mounted: a folder whose calls fail, wait or hang as ordered."""

    def __init__(self, name, *options):
        hazard.need_root()
        program = os.path.join(h.BUILD, "hazards", "diskfs")
        if not os.path.exists(program) or not os.path.exists("/dev/fuse"):
            raise h.Skip("no FUSE here: libfuse3-dev, fuse3, /dev/fuse")
        self.folder = h.fresh_folder(name)
        self.back, self.mount, self.orders = (os.path.join(self.folder, part) for part in ("back", "mount", "orders"))
        os.mkdir(self.back)
        os.mkdir(self.mount)
        self.order("")
        self.spool = os.path.join(self.mount, "spool")
        self.behind = os.path.join(self.back, "spool")  # the same, not by way of FUSE
        self.server = subprocess.Popen([program, self.back, self.mount, self.orders] + list(options),
                                       stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        end = time.monotonic() + WAIT
        while not os.path.ismount(self.mount):
            if self.server.poll() is not None or time.monotonic() > end:
                self.close()
                raise h.Skip("FUSE cannot be mounted")
            time.sleep(0.01)

    def order(self, text):
        with open(self.orders + ".new", "w") as f:
            f.write(text)
        os.rename(self.orders + ".new", self.orders)

    def close(self):
        self.order("")
        subprocess.run(["umount", "-l", self.mount], stderr=subprocess.DEVNULL)
        self.server.terminate()
        self.server.wait(WAIT)

    def __enter__(self):
        return self

    def __exit__(self, *unused):
        self.close()


def healthy(case):
    """File systems that lack something: shared mappings, locks; layered ones. Everything is kept."""
    for options, python in over(case, [[], ["direct"], ["locks"], ["direct", "locks"]]):
        with DiskFs(case.name, *options) as fs:
            if "locks" in options:
                fs.order("flock ENOLCK" if len(options) == 1 else "flock ENOSYS")
            steps = Steps(case, python, "-".join(["fuse"] + options), spool=fs.spool, window=1)
            steps.tell("new 5")
            steps.work_until(lambda: windows(fs.behind), "a sealed window")
            steps.end()
            steps.spooled(folder=fs.behind)
    folder = h.fresh_folder(case.name)
    for part in ("lower", "upper", "work"):
        os.mkdir(os.path.join(folder, part))
    layers = "lowerdir=%s/lower,upperdir=%s/upper,workdir=%s/work" % (folder, folder, folder)
    with mounted("tmpfs", h.fresh_folder(case.name)) as space:
        for part in ("lower", "upper", "work"):
            os.mkdir(os.path.join(space, part))
        with mounted("overlay", os.path.join(folder, "merged"), layers.replace(folder, space)) as merged:
            steps = Steps(case, case.pythons[-1], "overlay", spool=os.path.join(merged, "spool"), window=1)
            steps.work_until(lambda: windows(steps.spool), "a sealed window")
            steps.end()
            steps.spooled()


def failing_from_start(case):
    """Each kind of call fails from the start: one line at most, and the application's own end."""
    variants = ["create EROFS", "create EDQUOT", "write EIO", "write ENOSPC", "getattr EIO"]
    for orders, python in over(case, variants):
        with DiskFs(case.name) as fs:
            fs.order(orders)
            steps = Steps(case, python, orders, spool=fs.spool)
            steps.tell("work 100")
            steps.end(said=1, errno_said={getattr(errno, orders.split()[1])})
            fs.order("")


def failing_for_a_while(case):
    """Each kind of call fails in mid-run and works again: the next window has it all."""
    variants = ["write EIO", "all EROFS"]
    if case.long:
        variants += ["create EDQUOT", "rename EIO", "write ENOSPC", "truncate EIO\nwrite ENOSPC", "unlink EIO", "open EIO", "flush EIO", "fsync EIO", "getattr EIO"]
    for orders, python in over(case, variants):
        with DiskFs(case.name) as fs:
            steps = Steps(case, python, orders.replace("\n", "+"), spool=fs.spool, window=1)
            if not steps.work_until(lambda: windows(fs.behind), "a sealed window"):
                continue
            fs.order(orders)
            for _ in range(3):
                steps.tell("new 20")
            fs.order("")
            sealed = len(windows(fs.behind))
            steps.work_until(lambda: len(windows(fs.behind)) > sealed, "another sealed window")
            steps.end(said=1)
            steps.spooled(share=0.9, folder=fs.behind)


# ---------------------------------------------------------------- a file system that does not answer

WAIT_MS = 20  # of ours, at most, for one stall


def stalled(case):
    """Calls that wait or hang for as long as the program forks, works and ends.

    Python 3.12 and later warn of our thread at a fork then: it cannot leave."""
    for orders in ("all hang", "write 300") if case.long else ("all hang",):
        with DiskFs(case.name, "deaf") as fs:  # whoever is at it cannot even be killed
            steps = Steps(case, case.python, orders, spool=fs.spool, words=["env", "PYTHONWARNINGS=ignore::DeprecationWarning"])
            if not steps.work_until(lambda: live_files(fs.behind), "files in the spool"):
                return
            plain = fork_times(steps)
            fs.order(orders)
            steps.tell("new 10")
            # One of them may meet the beginning of the stall; the others wait for nothing.
            waited = sorted(fork_times(steps))
            usual = sorted(plain)[len(plain) // 2]
            median = waited[len(waited) // 2]
            case.check(median < usual + WAIT_MS / 2000, "%s: fork takes %.1f ms, %.1f before", steps.label, 1e3 * median, 1e3 * usual)
            steps.tell("fork 3 100")  # time enough for a sampler of their own, which must not meet the same disk
            fs.order("")
            steps.work_until(lambda: sum_behind(fs, steps) > 0.8 * steps.worked, "what waited, in the spool", step=50)
            steps.end()


def fork_times(steps, count=15):
    answer = steps.tell("fork %d" % count)
    return [float(word) for word in answer or ["0"]]


def sum_behind(fs, steps):
    with contextlib.suppress(h.Failure, OSError):
        return sum(p.total("cpu") for p in h.Spool(fs.behind, strict=False).by_pid(steps.pid)) / 1e6
    return 0


ENDS = {"end": 7, "exit 9": 9, "exec 5": 5}


def stalled_server_gone(case):
    """A server that is stopped before it hears of a call: the process ends with its own status, and does not wait for it."""
    for (way, status), python in over(case, ENDS.items()):
        with DiskFs(case.name) as fs:
            steps = Steps(case, python, way, spool=fs.spool)
            if not steps.work_until(lambda: live_files(fs.behind), "files in the spool"):
                continue
            fs.server.send_signal(signal.SIGSTOP)
            try:
                steps.tell("work 300")
                if way != "end":
                    steps.tell(way)
                steps.end(expect=status)
            finally:
                fs.server.send_signal(signal.SIGCONT)


# ---------------------------------------------------------------- limits

def limits(case):
    """Limits that are lowered in mid-run: no SIGXFSZ in the application, no descriptor of ours in its table."""
    limits = ["RLIMIT_FSIZE 0", "RLIMIT_FSIZE 2000", "RLIMIT_NOFILE 0", "RLIMIT_NOFILE 3"]
    # A file that is there goes on to be written; a window that is begun later has none: its seconds cannot be in the spool.
    for (limit, window), python in over(case, itertools.product(limits, (60, 1))):
        steps = Steps(case, python, "%s, window of %d s" % (limit, window), window=window)
        if not steps.work_until_spooled():
            continue
        steps.tell("do import signal; signal.signal(signal.SIGXFSZ, signal.SIG_DFL)")
        steps.tell("limit " + limit)
        steps.tell("fork 3 100")  # which meet the same, and do not say it again
        steps.tell("work 400")
        steps.tell("new 10")
        steps.end(said=1, errno_said={errno.EFBIG} if "FSIZE 0" in limit else None)
        steps.spooled(share=0.6 if window == 60 else 0)  # stacks that are new wait in memory for ever


# ---------------------------------------------------------------- a bound, other users, recycled workers

FOREIGN = ["aprof.notes.txt", "aprof.host.1.1.000000.cpu.collapsed.bak", "aprof.host.1.1.00.cpu.collapsed", "aprof.host.x.1.000000.json", "aprof.json", "other"]


def bounded(case):
    """APROF_SPOOL is full: the oldest windows and the dead's live files go, and nothing of anybody else's."""
    folder = h.fresh_folder(case.name)
    spool = os.path.join(folder, "spool")
    os.mkdir(spool)
    block = b"f (a.py:1) 1\n" * 100000  # more than the bound of a MiB, each of them

    def put(name, age, uid=None):
        path = os.path.join(spool, name)
        with open(path, "wb") as f:
            f.write(block)
        os.utime(path, (time.time() - age,) * 2)
        if uid:
            os.chown(path, uid, uid)
        return path

    others = [put(name, 9000) for name in FOREIGN]
    gone = [put("aprof.host.7.1.%06d.cpu.collapsed" % seq, 8000 - seq) for seq in range(4)]
    gone.append(put("aprof.host.8.1.000000.wall.collapsed.live", 7000))  # of a dead process: no metadata
    gone.append(put("aprof.host.9.1.000000.cpu.collapsed.tmp", 8500))
    if os.geteuid() == 0:
        others.append(put("aprof.host.10.1.000000.cpu.collapsed", 9000, NOBODY))
    for name in ("aprof.host.11.1.000000.cpu.collapsed", "aprof.host.12.1.000000.json"):
        os.symlink(others[0], os.path.join(spool, name))
        others.append(os.path.join(spool, name))
    os.mkdir(os.path.join(spool, "aprof.host.13.1.000000.cpu.collapsed"))
    others.append(os.path.join(spool, "aprof.host.13.1.000000.cpu.collapsed"))
    first = Steps(case, case.pythons[0], "first", spool=spool, folder=folder, window=1, spool_=1)
    second = Steps(case, case.pythons[-1], "second", spool=spool, folder=h.fresh_folder(case.name), window=1, spool_=1)
    for steps in (first, second):
        steps.work_until(lambda: len([n for n in os.listdir(spool) if ".%d." % steps.pid in n and n.endswith(".json")]) >= 2, "two sealed windows")
    for path in gone:
        case.check(not os.path.exists(path), "%s is still there", os.path.basename(path))
    for path in others:
        case.check(os.path.lexists(path), "%s is gone", os.path.basename(path))
    for path in others:
        (os.rmdir if os.path.isdir(path) and not os.path.islink(path) else os.unlink)(path)
    for steps in (first, second):
        steps.end()
        steps.spooled(share=0.5)


def recycled(case):
    """Workers that live for a moment, a hundred of them: the number of files stays bounded, none is lost while there is room."""
    count = 500 if case.long else 30
    folder = h.fresh_folder(case.name)
    spool = os.path.join(folder, "spool")
    pids = []
    for batch in range(0, count, 5):
        workers = [Steps(case, python, "worker", spool=spool, folder=h.fresh_folder(case.name), spool_=1)
                   for _, python in zip(range(5), itertools.cycle(case.pythons[:4]))]
        for worker in workers:
            worker.tell("work 30")
        for worker in workers:
            worker.end()
            pids.append(worker.pid)
    case.account(h.Spool(spool), pids)
    case.check(not [n for n in os.listdir(spool) if n.endswith((".live", ".tmp"))], "live files are left")


def other_user(case):
    """The directory is made by root; the process then becomes another user, seals its own files, and cannot list."""
    hazard.need_root()
    folder = h.fresh_folder(case.name)
    top = os.path.join("/tmp", "aprof-disk-%d" % os.getpid() + case.name + (case.python.label if case.python else ""))
    os.mkdir(top, 0o755)
    try:
        steps = Steps(case, case.python, "other user", spool=os.path.join(top, "spool"), folder=folder, window=1)
        if steps.work_until_spooled():
            mode = stat.S_IMODE(os.stat(steps.spool).st_mode)
            case.check(mode == 0o1733, "%s: the directory is %o", steps.label, mode)
            steps.tell("work 500")
            steps.tell("do os.setgroups([]); os.setresgid(%d, %d, %d); os.setresuid(%d, %d, %d)" % ((NOBODY,) * 6))
            steps.tell("fork 2")  # the sampler comes back to files that it cannot open
            before = len(windows(steps.spool))
            steps.work_until(lambda: len(windows(steps.spool)) >= before + 2, "two more sealed windows")
        steps.end()
        found = steps.spooled(share=0.8)
        # What is left as root must not be counted a second time; half a second was there before.
        case.check(found is None or found.total("cpu") / 1e6 <= steps.worked + 0.35, "%s: %.3f s of CPU in the spool, more than %.3f",
                   steps.label, found.total("cpu") / 1e6 if found else 0, steps.worked)
        # In a sticky directory it cannot take away what it made as root: sealed copies stand for that.
        left = [name for name in live_files(steps.spool) if not os.path.exists(os.path.join(steps.spool, name[:-len(".live")]))]
        case.check(not left, "%s: left: %s", steps.label, left)
        owners = {os.stat(os.path.join(steps.spool, n)).st_uid for n in os.listdir(steps.spool) if n.endswith(".collapsed")}
        case.check(NOBODY in owners, "%s: its sealed files belong to %s", steps.label, owners)
    finally:
        shutil.rmtree(top, ignore_errors=True)


HAZARDS = [
    Hazard("disk.refused", refused, each=False),
    Hazard("disk.read-only", read_only),
    Hazard("disk.full-at-start", full, each=False),
    Hazard("disk.odd", odd, each=False),
    Hazard("disk.modes", modes, each=False),
    Hazard("disk.relative", relative, each=False),
    Hazard("disk.empty-name", empty, each=False),
    Hazard("disk.taken-away", taken_away, each=False),
    Hazard("disk.planted", planted_names, each=False),
    Hazard("disk.filled", filled, each=False),
    Hazard("disk.filled-for-good", filled_for_good, each=False),
    Hazard("disk.limits", limits, each=False),
    Hazard("disk.bound", bounded, each=False),
    Hazard("disk.recycled", recycled, each=False),
    Hazard("disk.other-user", other_user),
    Hazard("disk.kinds", healthy, each=False),
    Hazard("disk.failing-from-start", failing_from_start, each=False),
    Hazard("disk.failing-for-a-while", failing_for_a_while, each=False),
    Hazard("disk.stalled", stalled),
    Hazard("disk.stalled-at-end", stalled_server_gone, each=False),
]
