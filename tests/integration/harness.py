# SPDX-License-Identifier: MIT
"""harness: starts programs under the profiler and reads what they left.

Knows the spool's grammar on its own: nothing is shared with the C readers, so
that one mistake cannot hide in both. Every wait has an end.
"""
import collections
import json
import math
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import threading
import time

REPO = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
ORACLES = os.path.join(REPO, "tests", "oracles")
BUILD = os.path.join(REPO, os.environ.get("APROF_BUILD", "build"))
LIBRARY = os.path.join(BUILD, "libaprof.so")
TOOL = os.path.join(BUILD, "aprof")
WRAPPER = os.path.join(REPO, "scripts", "aprof-run")
WORK = os.path.join(REPO, "build", "integration")
FORKY = os.environ.get("APROF_FORKY", "/var/tmp/aprof-forky")
SUPPORTED = ((3, 11), (3, 12), (3, 13), (3, 14), (3, 15))

# How much of a core a row needs while it runs, its start and end and the sampler included, so that it
# hardly ever waits for one; True: all of it. So many run side by side as have room on CORES. A row
# whose figure is what something costs, or how much of it is done, says False: it runs alone.
HALF, WAITS = 0.6, 0.3
CORES = 2
STANDARD_ERRORS = 3  # of the number of ticks: the statistical part of every tolerance


class Failure(Exception):
    """What a test says when it does not hold."""


class Skip(Exception):
    """What a test says when it cannot be run here, with the reason."""


def need(truth, text, *args):
    if not truth:
        raise Failure(text % args if args else text)


# ---------------------------------------------------------------- Pythons

class Python:
    """An interpreter to test with: a command, and what leads into the folder it lives in."""

    def __init__(self, label, words):
        self.label, self.words = label, list(words)
        self.prefix = self.words[:-1]  # in-forky, say
        self.root = FORKY if self.prefix else ""
        self._version = None

    def ask(self, code):
        """The output of a few lines, without the profiler; None when it does not start."""
        try:
            done = subprocess.run(self.words + ["-I", "-c", code], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                  stderr=subprocess.DEVNULL, timeout=30, env=clean_environment())
        except (OSError, subprocess.SubprocessError):
            return None
        return done.stdout.decode().strip() if done.returncode == 0 else None

    @property
    def version(self):
        if self._version is None:
            said = self.ask("import sys; print(*sys.version_info[:2])")
            self._version = tuple(map(int, said.split())) if said else ()
        return self._version


def pythons(only=None):
    """Those that scripts/pythons names; where it is absent, those found in the usual places."""
    found = []
    script = os.path.join(REPO, "scripts", "pythons")
    if os.access(script, os.X_OK):
        listed = subprocess.run([script], stdout=subprocess.PIPE, timeout=60).stdout.decode()
        for line in listed.splitlines():
            label, _, words = line.partition("\t")
            if words:
                found.append(Python(label, shlex.split(words)))
    if not found:
        found = usual_pythons()
    return [p for p in found if only is None or p.label.startswith(only) or p.label.endswith(only)]


def usual_pythons():
    found = []
    if os.path.exists("/usr/bin/python3"):
        found.append(Python("usr-bin", ["/usr/bin/python3"]))
    versions = os.path.expanduser("~/.pyenv/versions")
    for name in sorted(os.listdir(versions) if os.path.isdir(versions) else []):
        path = os.path.join(versions, name, "bin", "python3")
        if re.match(r"3\.1[1-5](\.|$)", name) and os.path.exists(path):
            found.append(Python("pyenv-" + name, [path]))
    enter = os.path.join(REPO, "scripts", "in-forky")
    for minor in (13, 14, 15):
        if os.access(enter, os.X_OK) and os.path.exists("%s/usr/bin/python3.%d" % (FORKY, minor)):
            found.append(Python("3.%d-forky" % minor, [enter, "python3.%d" % minor]))
    return found


def usable(all_pythons):
    """Those that start and are of a version that is profiled; and why the others are not run."""
    good, refused = [], []
    for python in all_pythons:
        if python.version in SUPPORTED:
            good.append(python)
        else:
            refused.append((python.label, "version %d.%d" % python.version if python.version else "does not start"))
    return good, refused


# ---------------------------------------------------------------- running

Result = collections.namedtuple("Result", "status out err rusage wall folder spool pid")

_serial = [0]
_serial_lock = threading.Lock()


def fresh_folder(name):
    with _serial_lock:
        _serial[0] += 1
        number = _serial[0]
    folder = os.path.join(WORK, "%d" % os.getpid(), "%03d-%s" % (number, re.sub(r"[^A-Za-z0-9.-]", "_", name)))
    os.makedirs(folder)
    return folder


def clean_environment():
    """Ours without any setting of the profiler and without what changes Python."""
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("APROF_", "PYTHON", "ORACLE_")) and k != "LD_PRELOAD"}
    kept["PYTHONDONTWRITEBYTECODE"] = "1"  # all Pythons share the oracles' folder
    return kept


def kept_rate(settings):
    """A rate that a test asks for is meant: it does not adapt, unless the test says otherwise."""
    if settings and settings.keys() & {"APROF_RATE", "APROF_MIN_RATE"}:
        return {"APROF_OVERHEAD": "0", **settings}
    return settings or {}


def status_of(code):
    return code if code >= 0 else 128 - code


class Run:
    """One program, under the profiler unless preload is false. As a context or by finish()."""

    def __init__(self, words, name, python=None, env=None, preload=True, wrapper=None, settings=None, spool=True,
                 stdin=subprocess.DEVNULL, folder=None, whole_env=None, cwd=None, stdout=subprocess.PIPE):
        self.folder = folder or fresh_folder(name)
        self.spool_folder = os.path.join(self.folder, "spool")
        self.truth_path = os.path.join(self.folder, "truth.json")
        full = dict(clean_environment() if whole_env is None else whole_env)
        if whole_env is None:
            full["ORACLE_TRUTH"] = self.truth_path
        if preload and not wrapper:
            full["LD_PRELOAD"] = LIBRARY
        if preload and spool:
            full["APROF_DIR"] = self.spool_folder
        full.update(kept_rate(settings))
        full.update(env or {})
        self.words = (list(wrapper) if wrapper and preload else []) + (python.words if python else []) + list(words)
        self.stdin = stdin
        self.began = time.monotonic()
        self.popen = subprocess.Popen(self.words, env=full, cwd=cwd or self.folder,
                                      stdin=subprocess.PIPE if isinstance(stdin, bytes) else stdin,
                                      stdout=stdout, stderr=subprocess.PIPE, start_new_session=True)

    def kill_all(self):
        try:
            os.killpg(self.popen.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass

    def finish(self, timeout=60):
        """Waits, with an end; reaps with the resources used."""
        out, err = bytearray(), bytearray()
        readers = [threading.Thread(target=self._drain, args=(pipe, into), daemon=True)
                   for pipe, into in ((self.popen.stdout, out), (self.popen.stderr, err)) if pipe]
        if isinstance(self.stdin, bytes):
            readers.append(threading.Thread(target=self._feed, daemon=True))
        for reader in readers:
            reader.start()
        hung = threading.Event()

        def stop():
            hung.set()
            self.kill_all()
        watch = threading.Timer(timeout, stop)
        watch.daemon = True
        watch.start()
        _, code, usage = os.wait4(self.popen.pid, 0)
        wall = time.monotonic() - self.began
        self.popen.returncode = os.waitstatus_to_exitcode(code)
        for reader in readers:
            reader.join(10)
        if any(reader.is_alive() for reader in readers):  # a grandchild holds the pipe
            self.kill_all()
        watch.cancel()
        need(not hung.is_set(), "no end after %d s: %s", timeout, " ".join(self.words)[:200])
        return Result(status_of(self.popen.returncode), bytes(out), bytes(err), usage, wall, self.folder,
                      self.spool_folder, self.popen.pid)

    @staticmethod
    def _drain(pipe, into):
        for chunk in iter(lambda: os.read(pipe.fileno(), 1 << 16), b""):
            into += chunk

    def _feed(self):
        try:
            self.popen.stdin.write(self.stdin)
            self.popen.stdin.close()
        except BrokenPipeError:
            pass

    def truth(self):
        return read_truth(self.truth_path)


def run(words, name, timeout=60, **options):
    return Run(words, name, **options).finish(timeout)


def oracle(name):
    return os.path.join(ORACLES, name)


def run_oracle(python, name, *args, settings=None, timeout=60, expect=0, **options):
    """Runs an oracle; returns its truth, what it left, and the result."""
    started = Run([oracle(name)] + [str(a) for a in args], name, python=python, settings=settings, **options)
    result = started.finish(timeout)
    need(result.status == expect, "%s ended with %d, not %d; stderr: %s", name, result.status, expect, tail(result.err))
    return started.truth(), Spool(result.spool), result


def read_truth(path):
    need(os.path.exists(path), "the oracle left no truth (%s)", path)
    with open(path, encoding="utf-8") as f:
        return json.load(f)


def tail(text, length=300):
    return text.decode("utf-8", "backslashreplace")[-length:].strip() or "(empty)"


def has_wrapper():
    return os.access(WRAPPER, os.X_OK)


# ---------------------------------------------------------------- the spool's grammar

STACKS_NAME = re.compile(r"^aprof\.([A-Za-z0-9_-]+)\.(\d+)\.(\d+)\.(\d{6,})\.([a-z]+)\.collapsed(\.live)?$")
METADATA_NAME = re.compile(r"^aprof\.([A-Za-z0-9_-]+)\.(\d+)\.(\d+)\.(\d{6,})\.json(\.live)?$")
FOREIGN_NAMES = {".gitignore", ".aprof.lock"}
FRAME = re.compile(r"^(?P<name>.+) \((?P<path>.*):(?P<line>-?\d+)\)$", re.S)
MARKER = re.compile(r"^\[[^\[\] ]+( .*)?\]$")  # a thread's name may have brackets of its own
LINE = re.compile(rb"^([^\n]*[^ \n;]) ([0-9]+)$")
METADATA_KEYS = ("schema run pid ppid host program python build start_us end_us window ended settings tags pid_namespace"
                 " boot ticks rate samples dropped cpu_unseen_us cpu_spread_us threads_peak tasks_peak tasks_skipped"
                 " children_without_sample loops sampler_cpu_us handler_us process_cpu_us reader limits metrics").split()
DROPPED_KEYS = "torn torn_awaiter fault deadline table_full ring_full late unreadable creator_unknown".split()
KEPT = ("torn_awaiter", "creator_unknown")  # samples kept with less ancestry: not lost
ENDED = "open window exit exec fork killed duration error".split()

Frame = collections.namedtuple("Frame", "text name path line")


def parse_frame(text):
    """A frame, or a marker (path None). Raises Failure on anything else."""
    if text.startswith("[") and MARKER.match(text):
        return Frame(text, text, None, None)
    match = FRAME.match(text)
    need(match, "not a frame: %r", text[:200])
    return Frame(text, match["name"], match["path"], int(match["line"]))


def parse_stacks(data, live, where="stacks"):
    """(frames, microseconds) of every whole line; checks the grammar."""
    need(b"\0" not in data, "%s: NUL in the file", where)
    if live:
        data = data[:data.rfind(b"\n") + 1]
    need(not data or data.endswith(b"\n"), "%s: the last line of a sealed file is cut", where)
    offset, lines, seen = 0, [], []
    for raw in data.split(b"\n")[:-1]:
        match = LINE.match(raw)
        need(match, "%s: not `stack count`: %r", where, raw[:200])
        stack, digits = match.groups()
        end = offset + len(raw)
        if live:
            need(8 <= len(digits) <= 15 and end % 8 == 0, "%s: count %r at %d is not aligned", where, digits, offset)
        else:
            need(digits == b"%d" % int(digits), "%s: sealed count %r is padded", where, digits)
            seen.append(stack)
        try:
            text = stack.decode("utf-8")
        except UnicodeDecodeError:
            raise Failure("%s: not UTF-8: %r" % (where, raw[:200]))
        need(not any(ord(c) < 32 or 127 <= ord(c) < 160 for c in text), "%s: control character: %r", where, text[:200])
        lines.append((tuple(parse_frame(f) for f in text.split(";")), int(digits)))
        offset = end + 1
    if not live:
        need(seen == sorted(seen), "%s: a sealed file is not sorted", where)
        need(len(seen) == len(set(seen)), "%s: a sealed file has equal lines", where)
    return lines


def check_metadata(meta, where):
    missing = [k for k in METADATA_KEYS if k not in meta]
    need(not missing, "%s: keys missing: %s", where, missing)
    need(meta["schema"] == 1, "%s: schema %r", where, meta["schema"])
    need(meta["ended"] in ENDED, "%s: ended %r", where, meta["ended"])
    need(meta["reader"] in ("copy", "syscall"), "%s: reader %r", where, meta["reader"])
    need(set(DROPPED_KEYS) <= set(meta["dropped"]), "%s: dropped %r", where, meta["dropped"])
    need(all(isinstance(v, str) for v in meta["settings"].values()), "%s: settings are not strings", where)
    need(set(meta["ticks"]) >= {"due", "taken", "missed"}, "%s: ticks %r", where, meta["ticks"])
    need(meta["start_us"] <= meta["end_us"] or meta["ended"] == "open", "%s: ends before it starts", where)


class Window:
    def __init__(self):
        self.meta, self.meta_sealed, self.stacks, self.sealed = None, None, {}, {}


class Process:
    """All windows of one process of a spool."""

    def __init__(self, host, pid, start):
        self.host, self.pid, self.start = host, pid, start
        self.windows = collections.defaultdict(Window)

    def stacks(self, metric):
        for _, window in sorted(self.windows.items()):
            yield from window.stacks.get(metric, ())

    def total(self, metric):
        return sum(us for _, us in self.stacks(metric))

    def metas(self):
        return [w.meta for _, w in sorted(self.windows.items()) if w.meta]

    def counter(self, *keys):
        """The sum over windows of a number in the metadata."""
        total = 0
        for meta in self.metas():
            value = meta
            for key in keys:
                value = value[key]
            total += value
        return total

    def lost(self):
        """Samples lost, each counted once, as the contract adds them up."""
        dropped = sum(n for m in self.metas() for k, n in m["dropped"].items() if k not in KEPT)
        return dropped + self.counter("ticks", "missed") + self.counter("tasks_skipped")


class Spool:
    """A spool directory as a reader sees it: sealed before live, file by file."""

    def __init__(self, folder, strict=True):
        self.folder, self.strict = folder, strict
        self.processes = {}
        self.foreign = []
        if os.path.isdir(folder):
            for name in sorted(os.listdir(folder)):
                self._take(name)
        if strict:
            self._check()

    def _window(self, match):
        key = (match[1], int(match[2]), int(match[3]))
        process = self.processes.setdefault(key, Process(*key))
        return process.windows[int(match[4])]

    def _take(self, name):
        path = os.path.join(self.folder, name)
        stacks, metadata = STACKS_NAME.match(name), METADATA_NAME.match(name)
        if stacks:
            window, metric, live = self._window(stacks), stacks[5], bool(stacks[6])
            if live and window.sealed.get(metric):
                return
            window.stacks[metric] = parse_stacks(read_bytes(path), live, name)
            window.sealed[metric] = not live
        elif metadata and metadata[5] and not read_bytes(path):
            return  # its process ended while it made the window's first file: no window yet
        elif metadata:
            window, live = self._window(metadata), bool(metadata[5])
            if live and window.meta_sealed:
                return
            window.meta, window.meta_sealed = self._json(path, name), not live
        elif name not in FOREIGN_NAMES:
            self.foreign.append(name)

    def _json(self, path, name):
        try:
            meta = json.loads(read_bytes(path).decode("utf-8"))
        except ValueError as error:
            raise Failure("%s: not JSON: %s" % (name, error))
        check_metadata(meta, name)
        return meta

    def _check(self):
        need(not [n for n in self.foreign if not n.endswith(".tmp")], "files of no known name: %s", self.foreign)
        for process in self.processes.values():
            for seq, window in process.windows.items():
                need(window.meta, "window %d of %d has no metadata", seq, process.pid)
                need(window.meta["pid"] == process.pid, "metadata of %d says pid %r", process.pid, window.meta["pid"])
                if not window.meta_sealed:
                    self._check_live(seq, window)
                for metric, lines in window.stacks.items():
                    if window.sealed[metric] and window.meta_sealed and metric in window.meta["metrics"]:
                        said, found = window.meta["metrics"][metric], sum(us for _, us in lines)
                        need(said["stacks"] == len(lines), "%s: %d stacks, metadata says %d", metric, len(lines), said["stacks"])
                        need(abs(said["total_us"] - found) <= len(lines) + 1, "%s: sum %d, metadata says %d", metric, found, said["total_us"])

    @staticmethod
    def _check_live(seq, window):
        """Live metadata may lag behind its stacks, never run ahead by more than a tick in progress."""
        for metric, said in window.meta["metrics"].items():
            found = sum(us for _, us in window.stacks.get(metric, ()))
            need(said["total_us"] <= 1.01 * found + 110000, "live window %d: %s sum %d, metadata says %d", seq, metric, found, said["total_us"])

    def __iter__(self):
        return iter(self.processes.values())

    def by_pid(self, pid):
        return [p for p in self if p.pid == pid]

    def one(self):
        need(len(self.processes) == 1, "%d processes in the spool, not 1: %s", len(self.processes), [p.pid for p in self])
        return next(iter(self))

    def total(self, metric):
        return sum(p.total(metric) for p in self)


def read_bytes(path):
    with open(path, "rb") as f:
        return f.read()


# ---------------------------------------------------------------- matching

def base(frame):
    return os.path.basename(frame.path) if frame.path is not None else None


def own(frames, program):
    """The frames of one program among others."""
    return [f for f in frames if f.path is not None and os.path.basename(f.path) == program]


def total_where(lines, wanted):
    return sum(us for frames, us in lines if wanted(frames))


def without_markers(frames):
    return [f for f in frames if f.path is not None]


def leaf(frames):
    """The last frame that is a function."""
    plain = without_markers(frames)
    return plain[-1] if plain else None


def share_tolerance(share, samples, points=1.5, among=1):
    """The contract's points, or what the number of ticks allows, whichever is larger.
    The worst of many shares is further off than one: four errors among ten are
    as rare as three for one."""
    return max(points / 100, (STANDARD_ERRORS + (among > 1)) * math.sqrt(max(share * (1 - share), 1e-9) / max(samples, 1)))


def sum_tolerance(total, figure, ticks=0, period_us=0, threads_at_end=0):
    """For a law: the figure of the contract, or three standard errors of the ticks
    (each stands for a period, its rest spread evenly), or one tick a thread."""
    statistical = STANDARD_ERRORS * period_us * math.sqrt(max(threads_at_end, 1) / 6) if period_us else 0
    return max(figure * total, statistical, threads_at_end * period_us)


def escape(text, path=False):
    """How a name stands in the spool; written from the format's rules alone."""
    out = []
    raw = text.encode("utf-8", "surrogatepass")
    for char in text:
        code = ord(char)
        if 0xD800 <= code < 0xE000 or code < 32 or 127 <= code < 160 or char in ";\\":
            out.append("".join("\\x%02x" % b for b in char.encode("utf-8", "surrogatepass")))
        else:
            out.append(char)
    escaped = "".join(out)
    if path:
        escaped = escaped.replace(" (", "\\x20(")
    return escaped, len(raw)


# ---------------------------------------------------------------- counting

class Tally:
    def __init__(self):
        self.rows = []
        self.second_tries = 0
        self.lock = threading.Lock()

    def add(self, test, label, verdict, note, seconds):
        with self.lock:
            self.rows.append((test, label, verdict, note, seconds))
            print("%-5s %-22s %-16s %5.1fs  %s" % (verdict, test, label, seconds, note), flush=True)

    def count(self, verdict):
        return sum(1 for row in self.rows if row[2] == verdict)

    def attempt(self, test, label, function, *args):
        began = time.monotonic()
        try:
            verdict, note = "pass", function(*args) or ""
        except Skip as reason:
            verdict, note = "skip", str(reason)
        except Failure as reason:
            verdict, note = "FAIL", str(reason)
        except Exception as error:  # a checker that breaks is a failure, never a pass
            verdict, note = "FAIL", "%s: %s at line %d" % (type(error).__name__, error, sys.exc_info()[2].tb_next.tb_lineno if sys.exc_info()[2].tb_next else 0)
        self.add(test, label, verdict, note, time.monotonic() - began)
        return verdict

    def attempt_again(self, test, label, function, *args):
        """A second try: its row replaces the first one's, and says what that was."""
        first = next(row for row in self.rows if row[:2] == (test, label) and row[2] == "FAIL")
        print("again %s on %s, which failed: %s" % (test, label, first[3]), flush=True)
        self.rows.remove(first)
        if self.attempt(test, label, function, *args) != "FAIL":
            self.second_tries += 1

    def closing_line(self):
        if self.second_tries:
            print("%d passed at the second try only" % self.second_tries)
        return "%d passed, %d failed, %d skipped" % (self.count("pass"), self.count("FAIL"), self.count("skip"))


def side_by_side(jobs):
    """Runs each (share, function, arguments), as many at a time as their shares have room for on CORES."""
    waiting, room, changed = list(jobs), [CORES], threading.Condition()

    def run_one(share, function, arguments):
        try:
            function(*arguments)
        finally:
            with changed:
                room[0] += share
                changed.notify()

    threads = []
    with changed:
        while waiting:
            fits = next((job for job in waiting if job[0] <= room[0] + 1e-9), None)
            if not fits:
                changed.wait()
                continue
            waiting.remove(fits)
            room[0] -= fits[0]
            threads.append(threading.Thread(target=run_one, args=fits))
            threads[-1].start()
    for thread in threads:
        thread.join()


def remove_work():
    shutil.rmtree(os.path.join(WORK, "%d" % os.getpid()), ignore_errors=True)
