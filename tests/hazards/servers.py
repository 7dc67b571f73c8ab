# SPDX-License-Identifier: MIT
"""servers: programs that fork their workers, reload, recycle and end them, as without us.

Each server runs twice at once, with the profiler and without, through the same
plan: requests, a reload with one in flight, an end with one in flight and others
that come at that moment. Exit status, lines of the log, answers and the number of
descriptors must be the same, each process that the log names is in the spool once
or counted by its parent, and who burned CPU for requests has them in its stacks.
"""
import collections
import concurrent.futures
import functools
import http.client
import os
import re
import shutil
import signal
import socket
import tempfile
import threading
import time

import hazard
from hazard import Hazard, h

PROGRAMS = os.path.join(hazard.HERE, "programs")
PATIENCE = 30  # seconds for whatever must come

# ---------------------------------------------------------------- what is not installed for this Python

PURE = """gunicorn packaging uvicorn click h11 celery kombu billiard amqp vine click_didyoumean click_repl click_plugins prompt_toolkit
 wcwidth tzlocal dateutil pytest _pytest py.py xdist execnet iniconfig pluggy pygments typing_extensions.py pytz six.py exceptiongroup asgiref""".split()
DEBIANS = [root + "/usr/lib/python3/dist-packages" for root in (h.FORKY, "")]


@functools.lru_cache(maxsize=None)
def borrowed(packages):
    """A folder that shows the pure Python packages of one of Debian's, and nothing else of it."""
    folder = h.fresh_folder("borrowed")
    for name in PURE:
        if os.path.exists(os.path.join(packages, name)):
            os.symlink(os.path.join(packages, name), os.path.join(folder, name))
    return folder


Package = collections.namedtuple("Package", "env version")  # what must be in the environment; words of numbers


def package(python, module):
    """How this Python can import it; Skip when nothing helps."""
    found = _package(python, module)
    if found is None:
        raise h.Skip("no %s for this Python" % module)
    return found


@functools.lru_cache(maxsize=None)
def _package(python, module):
    code = "import %s; print(getattr(%s, '__version__', 0))" % (module, module)
    for env in [{}] + [{"PYTHONPATH": borrowed(packages)} for packages in DEBIANS if not python.prefix]:
        tried = h.run(["-c", code], "import", python=python, preload=False, env=env)
        if tried.status == 0:
            return Package(env, tuple(map(int, re.findall(r"\d+", tried.out.decode()))))
    return None


# ---------------------------------------------------------------- a server under a plan

class UnixConnection(http.client.HTTPConnection):
    def __init__(self, path):
        super().__init__("localhost", timeout=PATIENCE)
        self.path = path

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(PATIENCE)
        self.sock.connect(self.path)


class Server:
    """A server that listens on a socket of its own (SOCKET in its words and environment), and what it was asked."""

    def __init__(self, words, name, preload, env=None, **options):
        self.folder = tempfile.mkdtemp(prefix="aprof-")  # a path short enough for a socket
        self.socket = os.path.join(self.folder, "s")
        words = [word.replace("SOCKET", self.socket) for word in words]
        env = {key: value.replace("SOCKET", self.socket) for key, value in (env or {}).items()}
        self.answers = collections.defaultdict(collections.Counter)  # what for: answers and failures
        self.burnt = collections.Counter()  # pid: milliseconds
        self.descriptors, self.mappings = [], []
        self.place = ""  # before every path
        self.marks = 0
        self.run = h.Run(words, name if preload else name + "-without", preload=preload, env=env, cwd=PROGRAMS, **options)
        self.pid = self.run.popen.pid
        self.waiting = concurrent.futures.ThreadPoolExecutor(1)
        self.ended = self.waiting.submit(self.run.finish, 1800)

    def close(self):
        if not self.ended.done():
            self.run.kill_all()
        self.waiting.shutdown()
        shutil.rmtree(self.folder, ignore_errors=True)

    def request(self, path="/"):
        """"200" and the like, or "cut"."""
        connection = UnixConnection(self.socket)
        try:
            connection.request("GET", self.place + path)
            response = connection.getresponse()
            body = response.read().split()
            if response.status == 200:
                pid, burnt = map(int, body)
                self.burnt[pid] = max(self.burnt[pid], burnt)
            return str(response.status)
        except (OSError, http.client.HTTPException):
            return "cut"
        finally:
            connection.close()

    def wait_for(self, what, truth):
        end = time.monotonic() + PATIENCE
        while not truth():
            h.need(not self.ended.done(), "ended before %s", what)
            h.need(time.monotonic() < end, "%s did not come", what)
            time.sleep(0.01)

    def ready(self):
        self.wait_for("an answer", lambda: os.path.exists(self.socket) and self.request() == "200")

    def ask(self, count):
        """So many, two at a time."""
        with concurrent.futures.ThreadPoolExecutor(2) as pool:
            self.answers["asked"].update(pool.map(lambda _: self.request(), range(count)))

    def send(self, number):
        os.kill(self.pid, number)

    def hold(self, what, number, judged=True):
        """A signal while a request is in flight and others come; the answer."""
        self.marks += 1
        mark = os.path.join(self.folder, "mark%d" % self.marks)
        with concurrent.futures.ThreadPoolExecutor(3) as pool:
            held = pool.submit(self.request, "/slow?" + mark)
            self.wait_for("the request", lambda: os.path.exists(mark))
            # Where not even the one in flight is waited for, a new one can deadlock the worker: gunicorn's
            # handler of SIGINT takes the lock of the thread pool that it interrupted.
            others = [pool.submit(self.request) for _ in range(2 if judged else 0)]
            self.send(number)
            result = held.result()
            for other in others:
                other.result()  # an answer or none: but an end
        if judged:
            self.answers[what][result] += 1

    def reload(self, number=signal.SIGHUP):
        """Until a worker answers that was not there before."""
        before = set(self.burnt)
        self.hold("in flight at reload", number)
        self.wait_for("a worker that is new", lambda: self.request() and set(self.burnt) - before)

    def note_sizes(self):
        """How many descriptors the first process has, once that stands still, and mappings, but for modules that it loads."""
        count = None
        for _ in range(100):
            now = len(os.listdir("/proc/%d/fd" % self.pid))
            if now == count:
                break
            count = now
            time.sleep(0.03)
        self.descriptors.append(count)
        self.mappings.append(sum(b".so" not in line for line in h.read_bytes("/proc/%d/maps" % self.pid).splitlines()))

    def finish(self):
        try:
            return self.ended.result(4 * PATIENCE)
        except concurrent.futures.TimeoutError:
            raise h.Failure("no end %d s after it was told to end" % (4 * PATIENCE))

    def said(self):
        """Its last words, of a server that has ended."""
        try:
            return h.tail(self.ended.result().err, 500)
        except h.Failure:
            return "nothing, it had to be killed"


Outcome = collections.namedtuple("Outcome", "server result")


def carried_out(plan, *args, **options):
    server = Server(*args, **options)
    try:
        plan(server)
        return Outcome(server, server.finish())
    except h.Failure as reason:
        server.run.kill_all()
        raise h.Failure("%s; it said: %s" % (reason, server.said()))
    finally:
        server.close()


def both(case, plan, words, env=None, tries=1, wrapper=None, settings=None, folder=None, **options):
    """The plan with us and without us, side by side; None when one of them broke."""
    case.tried(tries)
    options.setdefault("python", case.python)
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        ours = pool.submit(carried_out, plan, words, case.name, True, env=env, wrapper=wrapper, settings=settings, folder=folder, **options)
        theirs = pool.submit(carried_out, plan, words, case.name, False, env=env, **options)
    for what, future in (("", ours), ("without us: ", theirs)):
        reason = future.exception()
        if reason is not None and not isinstance(reason, h.Failure):
            raise reason
        if reason is not None:
            case.add("others" if what else "hangs", "%s%s", what, reason)
    return None if ours.exception() or theirs.exception() else (ours.result(), theirs.result())


# ---------------------------------------------------------------- judging

DATES = re.compile(rb"\[?\d{4}-\d\d-\d\d[ T][^\]]*?\]|\b[A-Z][a-z]{2} [A-Z][a-z]{2} +\d+ [\d:]{8} \d{4}|/tmp/aprof-\w+|\b[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}\b")
TRACEBACK = re.compile(rb"(?m)^Traceback \(most recent call last\):\n(?: .*\n)+\S.*\n(?:\n(?:During|The above).*\n\n)?")
# gunicorn logs in a handler of SIGCHLD: where that comes in the middle of another line, logging complains.
REENTRANT = re.compile(rb"--- Logging error ---\n(?:(?!--- Logging).*\n)*?RuntimeError: reentrant call(?:.*\n)*?Arguments: .*\n")


def lines_of(text, tolerated, cut):
    """The lines of a log without dates and numbers, each kind once: workers write in any order."""
    text = REENTRANT.sub(b"", text)
    if cut:
        text = TRACEBACK.sub(b"", text)
    text = re.sub(rb"0x[0-9a-f]+|\d+(\.\d+)?", b"#", DATES.sub(b"", text))
    return {line.strip() for line in text.split(b"\n") if not (tolerated and re.search(tolerated, line))}


def judge(case, pair, tolerated=None, cut=False, summary=False, churning=0):
    """Same status, same lines, same answers, same number of descriptors.

    churning   so many workers came and went between the notes of descriptors, each with some
    tolerated  a pattern of lines that depend on the moment
    cut        requests may have been cut off, wherever they stood
    summary    one line of ours is asked for
    """
    (ours, result), (theirs, other) = pair
    case.judge(result.status, other.status, case.name, result.err)
    err = result.err
    if summary:
        err = re.sub(rb"(?m)^aprof: \d+ samples, .*\n", b"", err, count=1)
    for name, got, due in (("out", result.out, other.out), ("err", err, other.err)):
        got, due = lines_of(got, tolerated, cut), lines_of(due, tolerated, cut)
        case.check(not got - due, "std%s: lines with us only: %r", name, sorted(got - due)[:4])
        case.check(not due - got, "std%s: lines without us only: %r", name, sorted(due - got)[:4])
    for what in sorted(set(ours.answers) | set(theirs.answers)):
        case.check(ours.answers[what] == theirs.answers[what], "%s: %s, without us %s", what, dict(ours.answers[what]), dict(theirs.answers[what]))
    if churning:
        case.check(ours.descriptors[-1] - ours.descriptors[0] < churning, "descriptors: %s after %d workers", ours.descriptors, churning)
    else:
        case.check(ours.descriptors == theirs.descriptors, "descriptors: %s, without us %s", ours.descriptors, theirs.descriptors)
    grown, due = [m[-1] - m[0] if m else 0 for m in (ours.mappings, theirs.mappings)]
    case.check(grown <= due + 6, "%d more mappings, without us %d", grown, due)


def account(case, result, named, burnt, function, images=1, strict=True, killed=False):
    """Who was named is in the spool once, or counted by its parent; who burned has it in its stacks.

    images  programs that the first process may have been, by exec
    strict  nobody else is there
    killed  workers end by the signal itself, their windows open
    """
    spool = h.Spool(result.spool)
    counts = collections.Counter(p.pid for p in spool)
    first = spool.by_pid(result.pid)
    if not 1 <= len(first) <= images:
        case.add("lost", "the first process is in the spool %d times", len(first))
    ticks = sum(p.counter("ticks", "taken") for p in first)  # at least ten a second, but for its first moments
    case.check(ticks >= 4 * (result.wall - 1), "the first process had %d ticks in %.1f s", ticks, result.wall)
    for pid, count in counts.items():  # in a long run the kernel gives a pid again
        starts = sorted(p.start for p in spool.by_pid(pid))
        if pid != result.pid and any(later - start < 60e6 for start, later in zip(starts, starts[1:])):
            case.add("lost", "process %d is in the spool %d times", pid, count)
    missing = [pid for pid in named if pid not in counts]
    counted = sum(p.metas()[-1]["children_without_sample"] for p in first if p.metas())
    for pid in missing[counted:]:
        case.add("lost", "process %d is not in the spool, its parent counts %d without a sample", pid, counted)
    strangers = set(counts) - set(named) - {result.pid}
    case.check(not (strict and strangers), "in the spool, but not named: %s", sorted(strangers)[:5])
    for pid, ms in burnt.items():
        found = sum(h.total_where(list(p.stacks("cpu")), lambda f: any(x.name == function for x in f)) for p in spool.by_pid(pid)) / 1000
        case.check(ms < 60 or found >= 0.4 * ms, "process %d burned %d ms in %s, %d are in the spool", pid, ms, function, found)
    ends = collections.Counter(p.metas()[-1]["ended"] for p in spool if p.metas())
    case.check(killed or ends["open"] <= len(spool.processes) / 2, "most windows were left open: %s", dict(ends))
    return spool


def named(result, pattern):
    return [int(pid) for pid in re.findall(pattern, result.out + result.err)]


WRAPPER = [h.WRAPPER, "--"]


# ---------------------------------------------------------------- gunicorn

GUNICORN = rb"Booting worker with pid: (\d+)"
SYNC, GTHREAD, PRELOAD = ["-w", "2"], ["-w", "2", "-k", "gthread", "--threads", "3"], ["-w", "2", "--preload"]


def gunicorn_words(version, options, application="web:application"):
    """Since version 24 it has a socket for control, in the home directory: here one of its own."""
    control = ["--control-socket", "SOCKET.control"] if version >= (24,) else []
    return ["-m", "gunicorn", "-b", "unix:SOCKET", "--graceful-timeout", "20"] + control + options + [application]


def usual(number, reload=Server.reload, place=""):
    """Asked, reloaded, asked, ended by this signal."""
    def plan(server):
        server.place = place
        server.ready()
        server.ask(8)
        if reload:
            reload(server)
            server.ask(8)
        server.note_sizes()
        server.hold("in flight at the end", number, judged=number == signal.SIGTERM)
    return plan


ENDS = (signal.SIGTERM, signal.SIGINT, signal.SIGQUIT)
# What a worker says depends on what it is doing when it is told to end; newer ones say who was sent a signal.
AT_THE_END = rb"Waiting for connections to close|Worker .* was sent SIG|was terminated due to signal"
CUT = AT_THE_END + rb"|Error handling request|Waiting for background tasks|Cancel|Exception in ASGI"


def gunicorn_once(case, options, number, wrapped=False, application="web:application", reload=Server.reload):
    env, version = package(case.python, "gunicorn")
    pair = both(case, usual(number, reload), gunicorn_words(version, options, application), env=env, wrapper=WRAPPER if wrapped else None)
    if pair:
        cut = number != signal.SIGTERM
        judge(case, pair, CUT if cut else AT_THE_END, cut, summary=wrapped)
        account(case, pair[0].result, named(pair[0].result, GUNICORN), pair[0].server.burnt, "burn_request", killed="asgi" in application)


def gunicorn(options, number, needs=(), **how):
    """This end; in the long form all of them, also by aprof-run."""
    def test(case):
        for module in needs:
            package(case.python, module)
        gunicorn_once(case, options, number, **how)
        for other in ENDS if case.long else ():
            for wrapped in (True, False):
                gunicorn_once(case, options, other, wrapped, how.get("application", "web:application"))
    return test


def recycling(count):
    """Workers that end after a request or two, so many of them."""
    def plan(server):
        server.ready()
        server.note_sizes()
        for _ in range(count):
            before = set(server.burnt)
            server.wait_for("the next worker", lambda: server.request() and set(server.burnt) - before)
        server.note_sizes()
        server.hold("in flight at the end", signal.SIGTERM)
    return plan


def gunicorn_recycled(case):
    count = 50 if case.long else 6
    env, version = package(case.python, "gunicorn")
    words = gunicorn_words(version, ["-w", "2", "--max-requests", "2"])
    pair = both(case, recycling(count), words, env=env, tries=count)
    if pair:
        judge(case, pair, AT_THE_END, churning=count)
        account(case, pair[0].result, named(pair[0].result, GUNICORN), pair[0].server.burnt, "burn_request")


def fill(folder, count, size):
    """Windows of processes that ended long ago."""
    os.makedirs(folder)
    line = b"old (old.py:1) 1\n"
    for i in range(count):
        path = os.path.join(folder, "aprof.gone.%d.%d.000000.cpu.collapsed" % (100000000 + i, 1000000 + i))
        with open(path, "wb") as f:
            f.write(line * (size // len(line)))
        os.utime(path, (1000000 + i, 1000000 + i))


def bounded(case):
    """APROF_SPOOL of 1 MiB and 2 MiB that were there: the oldest go as workers end."""
    env, version = package(case.python, "gunicorn")
    folder = h.fresh_folder(case.name)
    fill(os.path.join(folder, "spool"), 20, 100000)
    count = 20 if case.long else 5
    words = gunicorn_words(version, ["-w", "2", "--max-requests", "2"])
    pair = both(case, recycling(count), words, env=env, settings={"APROF_SPOOL": "1"}, folder=folder, tries=count)
    if not pair:
        return
    judge(case, pair, AT_THE_END, churning=count)
    spool = os.path.join(folder, "spool")
    sizes = {name: os.path.getsize(os.path.join(spool, name)) for name in os.listdir(spool)}
    old = sorted(int(name.split(".")[2]) - 100000000 for name in sizes if name.startswith("aprof.gone."))
    case.check(sum(sizes.values()) <= (1 << 20) + 100000, "%d bytes in %d files", sum(sizes.values()), len(sizes))
    case.check(len(old) < 11 and old == list(range(20 - len(old), 20)), "of the old windows these are left: %s", old)
    case.check(sum(not name.startswith("aprof.gone.") for name in sizes) > 4, "the new ones went: %s", sorted(sizes))


def lives(case, words_for, pythons, env=None, python=None):
    """Starts and ends of a server, one request each; in the long form 300 over so many Pythons."""
    for i in range(300 // pythons + 1 if case.long else 5):
        number = ENDS[i % len(ENDS)]
        case.tried()
        try:
            server, result = carried_out(lambda server: (server.ready(), server.send(number)), words_for(number), case.name, True, env=env,
                                         python=python)
        except h.Failure as reason:
            case.add("hangs", "life %d: %s", i, reason)
            continue
        case.judge(result.status, 0, "life %d" % i, result.err)
        case.check(server.burnt, "life %d: no answer", i)
        shutil.rmtree(result.folder)


def gunicorn_lives(case):
    env, version = package(case.python, "gunicorn")
    lives(case, lambda number: gunicorn_words(version, SYNC), len(case.pythons), env, case.python)


# ---------------------------------------------------------------- uWSGI

UWSGI = rb"(?:s|Res)pawned uWSGI worker \d+ \((?:and the only\) \()?(?:new )?pid: (\d+)"
MASTER = ["--master", "--processes", "2"]
MOUNTS = ["--mount", "/a=web.py", "--mount", "/b=web.py", "--manage-script-name"]  # each in an interpreter of its own


# Every other worker gets to say it before it is buried, be we there or not.
SUBINTERPRETERS = rb"remaining subinterpreters|Python runtime state: finalizing"


def uwsgi_words(python, number=signal.SIGTERM, application=("--wsgi-file", "web.py")):
    """It embeds the Python of its Debian, and no other. SIGTERM ends it only when it
    is told so, and then SIGQUIT reloads it."""
    plugin = "%s/usr/lib/uwsgi/plugins/python%d%d_plugin.so" % ((python.root,) + python.version)
    if not os.path.exists(plugin) or (not python.prefix and not python.words[-1].startswith("/usr/bin/")):
        raise h.Skip("no uWSGI with this Python")
    return python.prefix + ["uwsgi", "--plugin", "python3", "--http-socket", "SOCKET", "--need-app", *application] + \
        (["--die-on-term"] if number == signal.SIGTERM else [])


def uwsgi_once(case, options, number, wrapped=False, reload=Server.reload, alone=False, place="", **application):
    words = uwsgi_words(case.python, number, **application) + options
    pair = both(case, usual(number, reload, place), words, python=None, wrapper=WRAPPER if wrapped else None)
    if pair:
        judge(case, pair, SUBINTERPRETERS, number != signal.SIGTERM, summary=wrapped, churning=2 if alone else 0)
        workers = [] if alone else named(pair[0].result, UWSGI)
        account(case, pair[0].result, workers, pair[0].server.burnt, "burn_request", images=2 if reload else 1, killed=alone)


def uwsgi(options, number, **how):
    def test(case):
        uwsgi_once(case, options, number, **how)
        for other in ENDS if case.long else ():
            for wrapped in (True, False):
                uwsgi_once(case, options, other, **dict(how, wrapped=wrapped))
    return test


def uwsgi_recycled(case):
    count = 50 if case.long else 2
    options = MASTER + ["--max-requests", "2", "--min-worker-lifetime", "0", "--lazy-apps"]
    pair = both(case, recycling(count), uwsgi_words(case.python) + options, python=None, tries=count)
    if pair:
        judge(case, pair, churning=count + 1)
        account(case, pair[0].result, named(pair[0].result, UWSGI), pair[0].server.burnt, "burn_request")


def uwsgi_lives(case):
    lives(case, lambda number: uwsgi_words(case.python, number) + MASTER, len(UWSGIS))


# ---------------------------------------------------------------- uvicorn, Celery, pytest-xdist

def uvicorn(case):
    """Its workers are spawned, beside a process of multiprocessing's; they die by the signal itself."""
    env, version = package(case.python, "uvicorn")
    reloads = version >= (0, 50)
    words = ["-m", "uvicorn", "--workers", "2", "--uds", "SOCKET", "web:asgi"]
    if reloads:  # a worker that is not ready in five seconds is no reload
        words += ["--timeout-worker-healthcheck", "25"]
    for number in (signal.SIGTERM, signal.SIGINT) if case.long else (signal.SIGTERM,):
        pair = both(case, usual(number, Server.reload if reloads else None), words, env=env)
        if pair:
            judge(case, pair, CUT, True, churning=5)
            account(case, pair[0].result, named(pair[0].result, rb"Started server process \[(\d+)\]"), pair[0].server.burnt, "burn_request",
                    strict=False, killed=True)


def lines_left(path):
    return h.read_bytes(path).split(b"\n")[:-1] if os.path.exists(path) else []


def celery_churn(case):
    """A process for each task; the last ones have had none when it is told to end.
    Little is logged: one thread forks, and a child may hang that it made while another
    one was writing to stderr, be we there or not."""
    count = 200 if case.long else 6
    env = dict(package(case.python, "celery").env, QUEUE_FOLDER="SOCKET.queue", QUEUE_TASKS=str(count))
    words = ["-m", "celery", "-A", "task_queue", "worker", "--concurrency", "2", "--max-tasks-per-child", "1", "--loglevel", "WARNING",
             "--without-gossip", "--without-mingle", "--without-heartbeat"]

    def plan(server):
        def done():
            return lines_left(server.socket + ".queue/done")
        server.wait_for("the first task", done)
        server.note_sizes()
        for some in range(1, count + 1):
            server.wait_for("task %d" % some, lambda some=some: len(done()) >= some)
        server.burnt.update({int(pid): 60 for pid in done()})
        server.note_sizes()
        server.send(signal.SIGTERM)

    pair = both(case, plan, words, env=env, tries=count)
    if pair:
        judge(case, pair, churning=count)
        account(case, pair[0].result, list(pair[0].server.burnt), pair[0].server.burnt, "burn_task", strict=False)


def loops_in_suite(case):
    """Each test has a loop in a thread of its own, in one of two processes."""
    count = 300 if case.long else 12
    env = dict(package(case.python, "xdist").env, SUITE_TESTS=str(count), PYTEST_DISABLE_PLUGIN_AUTOLOAD="1")
    folder = h.fresh_folder(case.name)
    pids = os.path.join(folder, "pids")
    words = ["-m", "pytest", "-p", "xdist.plugin", "-p", "no:cacheprovider", "-q", "-n", "2", "loops_suite.py"]
    result = case.program(words, env=dict(env, SUITE_PIDS=pids), folder=folder, cwd=PROGRAMS, tries=count, timeout=900)
    other = h.run(words, case.name + "-without", python=case.python, preload=False, env=dict(env, SUITE_PIDS="/dev/null"), cwd=PROGRAMS,
                  timeout=900)
    if result:
        case.compare(*[r._replace(out=re.sub(rb" \(\d+:\d\d:\d\d\)", b"", r.out)) for r in (result, other)])
        burnt = collections.Counter()
        for line in lines_left(pids):
            burnt[int(line.split()[0])] += int(line.split()[1])
        case.check(len(burnt) == 2, "%d processes ran tests", len(burnt))
        account(case, result, list(burnt), burnt, "burn_in_loop")


# ---------------------------------------------------------------- parents that are not Python

CHILD = """
import sys, time
def burn_child():
    end = time.process_time() + 0.12
    while time.process_time() < end: sum(range(200))
burn_child()
print("burnt")
sys.exit(7)
"""


def parents(case):
    folder = h.fresh_folder(case.name)
    script, makefile = os.path.join(folder, "child.py"), os.path.join(folder, "makefile")
    for path, text in ((script, CHILD), (makefile, "run:\n\t@%s %s\n" % (" ".join(case.python.words), script))):
        with open(path, "w", encoding="utf-8") as f:
            f.write(text)
    line = " ".join(case.python.words + [script])
    for words in (["make", "-f", makefile, "run"], ["sh", "-c", line + "; exit $?"], ["sh", "-c", line + " & wait $!"], ["nice", "sh", "-c", line],
                  ["timeout", "50"] + line.split(), ["xargs"] + line.split()):
        result = case.program(words, expect=None, twin=True, spooled=False, python=None)
        if result:
            process = h.Spool(result.spool).one()
            found = h.total_where(list(process.stacks("cpu")), lambda f: any(x.name == "burn_child" for x in f))
            case.check(found >= 50000, "%s: %d of 120,000 us", words[0], found)


UWSGIS = ("3.11.2", "3.14")

HAZARDS = [
    Hazard("servers.gunicorn-sync", gunicorn(SYNC, signal.SIGTERM), ("3.11.2", "3.12", "3.13.0", "3.14", "3.15")),
    Hazard("servers.gunicorn-gthread", gunicorn(GTHREAD, signal.SIGINT, wrapped=True, reload=None), ("3.11.2", "3.15")),
    Hazard("servers.gunicorn-preload", gunicorn(PRELOAD, signal.SIGQUIT), ("3.12", "3.14")),
    Hazard("servers.gunicorn-uvicorn", gunicorn(["-w", "2", "-k", "uvicorn.workers.UvicornWorker"], signal.SIGTERM, ("uvicorn.workers",),
                                                application="web:asgi"), ("3.13.0",)),
    Hazard("servers.gunicorn-recycled", gunicorn_recycled, ("3.11.7", "3.14")),
    Hazard("servers.gunicorn-lives", gunicorn_lives, ("3.12", "3.13.15")),
    Hazard("servers.spool-bound", bounded, ("3.13.0",)),
    Hazard("servers.uwsgi-master", uwsgi(MASTER, signal.SIGTERM), UWSGIS),
    Hazard("servers.uwsgi-lazy", uwsgi(MASTER + ["--lazy-apps"], signal.SIGINT, reload=None, wrapped=True), UWSGIS),
    Hazard("servers.uwsgi-threads", uwsgi(MASTER + ["--enable-threads", "--threads", "2"], signal.SIGQUIT, reload=None), UWSGIS),
    Hazard("servers.uwsgi-skip-atexit", uwsgi(MASTER + ["--skip-atexit", "--lazy-apps"], signal.SIGTERM, reload=None), UWSGIS),
    Hazard("servers.uwsgi-alone", uwsgi([], signal.SIGINT, reload=None, alone=True), UWSGIS),
    Hazard("servers.uwsgi-interpreters", uwsgi(MASTER, signal.SIGTERM, reload=None, place="/b", application=MOUNTS), UWSGIS),
    Hazard("servers.uwsgi-recycled", uwsgi_recycled, UWSGIS),
    Hazard("servers.uwsgi-lives", uwsgi_lives, UWSGIS),
    Hazard("servers.uvicorn", uvicorn, ("3.11.2", "3.15")),
    Hazard("servers.celery-churn", celery_churn, ("3.12", "3.14")),
    Hazard("servers.xdist-loops", loops_in_suite, ("3.11.7", "3.15")),
    Hazard("servers.parents", parents, ("3.13.0",)),
]
