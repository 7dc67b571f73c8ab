# SPDX-License-Identifier: MIT
"""security: nobody gets through us what he could not get without us: rights, files, secrets, memory."""
import glob
import os
import re
import shutil
import socket
import stat
import subprocess
import threading
import time

import hazard
from hazard import Hazard, h
from places import AS_NOBODY, BUSY, DONE, NOBODY, edges, lives, open_folder, ours, reachable, total

OTHER = NOBODY + 1
SECRET = "hunter2-s3cret"
WINDOWS = {"APROF_WINDOW": "1"}
TWO_WINDOWS = BUSY % 0.1 + "time.sleep(1)\n" + BUSY % 0.05 + "print('done')\n"


def natives(case):
    """The oldest and the newest Python outside of a chroot."""
    found = [p for p in case.pythons if not p.prefix]
    return [found[0], found[-1]] if len(found) > 1 else found


def files_below(folder):
    return sorted(os.path.join(where, name) for where, _, names in os.walk(folder) for name in names)


# ---------------------------------------------------------------- files

def rights(case):
    """Files 0600 in a directory 0700 (root's: 01733), whatever the umask."""
    wanted = 0o1733 if os.geteuid() == 0 else 0o700
    for python in edges(case):
        for umask in (0, 0o77, 0o277):
            code = "import os\nos.umask(%d)\n" % umask + BUSY % 0.1 + "print('done')\n"
            result = lives(case, ["sh", "-c", 'umask %03o\nexec "$@"' % umask, "sh"], python, words=["-c", code], settings=WINDOWS)
            mode = stat.S_IMODE(os.stat(result.spool).st_mode)
            case.check(mode == wanted, "umask %03o: directory is %04o", umask, mode)
            for path in files_below(result.spool):
                mode = stat.S_IMODE(os.lstat(path).st_mode)
                few = os.path.basename(path) in h.FOREIGN_NAMES  # those keep what the umask leaves
                case.check(mode == 0o600 or (few and mode | 0o600 == 0o600), "umask %03o: %s is %04o", umask, os.path.basename(path), mode)


OPENED = re.compile(r'^(?:\[pid +\d+\] |\d+ +)?(openat|open|creat|rename\w*|link\w*|symlink\w*|mkdir\w*)\((.*)\) = (-?\d+)')


def opened_files(case):
    """What is made is made with O_EXCL and O_NOFOLLOW; nothing else is written to, nothing of ours outside the spool."""
    hazard.need_programs("strace")
    for python in natives(case)[-1:]:
        folder = h.fresh_folder("strace")
        trace = os.path.join(folder, "trace")
        lives(case, ["strace", "-f", "-qq", "-o", trace, "-e", "trace=openat,open,creat,rename,renameat,renameat2,link,linkat,symlink,symlinkat"],
              python, words=["-c", BUSY % 1.2 + "print('done')"], folder=folder, settings=WINDOWS, own_pid=False)
        made = 0
        for line in h.read_bytes(trace).decode("utf-8", "replace").splitlines():
            match = OPENED.match(line)
            if not match or match[3].startswith("-"):
                continue
            call, words = match[1], match[2]
            if call == "renameat" and "aprof." in words:
                continue
            writes = call in ("open", "openat") and re.search(r"O_(WRONLY|RDWR|CREAT)", words)
            if call in ("open", "openat") and (not writes or '"/dev/null"' in words):
                continue
            if '"aprof.' in words and "O_CREAT" not in words:
                case.check("O_NOFOLLOW" in words and "O_TRUNC" not in words, "what was made is opened again: %s", words)
                continue
            if '".aprof.lock"' in words:
                case.check("O_NOFOLLOW" in words and ", 0600" in words, "the lock: %s", words)
                continue
            made += 1
            case.check(writes and "O_CREAT|O_EXCL" in words and "O_NOFOLLOW" in words and words.endswith("0600"), "%s(%s)", call, words)
        case.check(made >= 6, "only %d files were made", made)


def planted_names(case):
    """Where everybody may write, somebody else has been there before: pipes, links to what is not his to read
    or write, a lock that is held for ever."""
    hazard.need_root()
    python = case.pythons[0]
    for kind in ("pipe", "symlink", "hardlink", "held"):
        folder = open_folder("planted")
        reachable(folder)
        spool, victim = os.path.join(folder, "spool"), os.path.join(folder, "victim")
        os.mkdir(spool)
        os.chmod(spool, 0o1777)
        with open(victim, "w", encoding="ascii") as f:
            f.write(SECRET)
        os.chown(victim, NOBODY, NOBODY)  # the one who is profiled
        os.chmod(victim, 0o600)
        locked = plant(kind, spool, victim)
        began = time.monotonic()
        lives(case, AS_NOBODY, python, folder=folder, words=["-c", BUSY % 1.2 + "print('done')"], sampled=False, settings=dict(WINDOWS, APROF_SPOOL="1"))
        case.check(time.monotonic() - began < 20, "%s: %.1f s", kind, time.monotonic() - began)
        case.check(h.read_bytes(victim) == SECRET.encode(), "%s: the file was changed: %r", kind, h.read_bytes(victim))
        mine = [p for p in glob.glob(os.path.join(spool, "aprof.*.json")) if stat.S_ISREG(os.lstat(p).st_mode) and os.lstat(p).st_uid == NOBODY]
        case.check(len(mine) >= 2, "%s: %d windows were sealed", kind, len(mine))
        report = subprocess.run([h.TOOL, "report", spool], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=20)
        case.check(report.returncode in (0, 3, 4) and SECRET.encode() not in report.stdout, "%s: aprof report: %d", kind, report.returncode)
        if locked:
            locked.close()


def plant(kind, spool, victim):
    names = [".gitignore", ".aprof.lock", "aprof.h.1.1.000000.json.live", "aprof.h.1.1.000000.cpu.collapsed.live",
             "aprof.h.2.1.000000.json", "aprof.h.2.1.000000.cpu.collapsed"]
    for name in names:
        path = os.path.join(spool, name)
        if kind == "pipe":
            os.mkfifo(path, 0o666)
        elif kind == "symlink":
            os.symlink(victim, path)
        elif kind == "hardlink":
            os.link(victim, path)
            continue
        else:
            with open(path, "w", encoding="ascii"):
                os.chmod(path, 0o666)
        os.lchown(path, OTHER, OTHER)
    if kind != "held":
        return None
    import fcntl
    lock = open(os.path.join(spool, ".aprof.lock"), "r+b")
    fcntl.flock(lock, fcntl.LOCK_EX)
    return lock


def bounded_all_the_same(case):
    """A lock of somebody else's does not let the spool grow: each process bounds its own files."""
    hazard.need_root()
    python = case.pythons[0]
    folder = open_folder("bounded")
    reachable(folder)
    spool = os.path.join(folder, "spool")
    os.mkdir(spool)
    os.chmod(spool, 0o1777)
    locked = plant("held", spool, None)
    many = "def f%d(n):\n    while n: n -= 1\n"
    names = "".join(many % i for i in range(300))
    code = names + "import time\nend = time.time() + 3.3\nwhile time.time() < end:\n" + "".join("    f%d(30000)\n" % i for i in range(300)) + "print('done')\n"
    settings = {"APROF_WINDOW": "1", "APROF_SPOOL": "1", "APROF_CLOCK": "monotonic", "APROF_RATE": "2000", "APROF_PATHS": "full"}
    path = os.path.join(folder, "n" * 240 + ".py")
    with open(path, "w", encoding="ascii") as f:
        f.write(code)
    os.makedirs(os.path.join(folder, *["d" * 250] * 8), exist_ok=True)
    deep = os.path.join(folder, *["d" * 250] * 8, "program.py")
    shutil.copy(path, deep)
    subprocess.run(["chmod", "-R", "a+rX", folder], check=True)
    lives(case, AS_NOBODY, python, folder=folder, words=[deep], settings=settings, sampled=False, timeout=60)
    size = sum(os.lstat(p).st_size for p in files_below(spool) if os.lstat(p).st_uid == NOBODY)
    sealed = len(glob.glob(os.path.join(spool, "aprof.*.json")))
    case.check(size < 2 << 20, "%d bytes in %d windows, 1 MiB was asked for", size, sealed)
    locked.close()


# ---------------------------------------------------------------- secrets

def secrets(case):
    """No variable of the environment and no argument gets into the spool, nor into a line."""
    python = case.python
    folder = h.fresh_folder("secrets")
    module = os.path.join(folder, "served.py")
    with open(module, "w", encoding="ascii") as f:
        f.write(DONE)
    ways = [["-c", "SECRET = %r\n" % SECRET + DONE], ["-Ic", DONE, SECRET], ["-Bm", "served", "--password", SECRET], ["-mserved", SECRET],
            ["-X", "dev=" + SECRET, "-W", "ignore:" + SECRET, module, SECRET], [module, "--token=" + SECRET]]
    for words in ways if case.long else ways[::2] if python.version[1] % 2 else ways[1::2]:
        result = lives(case, [], python, words=words, cwd=folder, env={"PASSWORD": SECRET, "PYTHONSAFEPATH": ""},
                       settings={"APROF_RATE": "abc", "APROF_LOG": "debug"}, says=["APROF_RATE"])
        found = [p for p in files_below(result.spool) if SECRET.encode() in h.read_bytes(p)]
        case.check(not found, "%s: the secret is in %s", words[0], [os.path.basename(p) for p in found])
        case.check(SECRET.encode() not in result.err, "%s: the secret is on stderr", words[0])


# ---------------------------------------------------------------- the process

CAPABILITIES = """
import os, time
def look():
    time.sleep(0.05)
    seen = {}
    for tid in os.listdir("/proc/self/task"):
        lines = dict(x.split(":\\t", 1) for x in open("/proc/self/task/%s/status" % tid).read().splitlines() if ":\\t" in x)
        seen[lines["Name"]] = [int(lines[c], 16) for c in ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb")]
    inherited, permitted, effective, bounding, ambient = seen["aprof"]
    assert (inherited, bounding, ambient) == (0, 0, 0) and permitted & ~0xc0 == effective & ~0xc0 == 0, seen  # bits 6, 7: CAP_SETGID, CAP_SETUID
    others = [v for k, v in seen.items() if k != "aprof"]
    assert others and all(v[1] and v[2] and v[3] for v in others), seen
look()
child = os.fork()
if not child:
    end = time.process_time() + 0.05
    while time.process_time() < end: pass
    look()
    os._exit(0)
assert os.waitpid(child, 0)[1] == 0
""" + DONE


def capabilities(case):
    """Our thread holds none but to change user and group with the application, and can get none; the application keeps
    its own. In children too."""
    hazard.need_root()
    lives(case, [], case.python, words=["-c", CAPABILITIES], own_pid=False, sampled=False)


def sockets(case):
    """Nothing listens, nothing is connected, in a network namespace where nothing else could be."""
    hazard.need_root()
    code = BUSY % 0.1 + "import glob, os\n" \
        "for name in ('tcp', 'tcp6', 'udp', 'udp6', 'raw', 'raw6', 'unix', 'packet'):\n" \
        "    path = '/proc/net/' + name\n" \
        "    assert not os.path.exists(path) or len(open(path).readlines()) <= 1, open(path).read()\n" \
        "links = [os.readlink(p) for p in glob.glob('/proc/self/task/*/fd/*') if os.path.lexists(p)]\n" \
        "assert links and not [x for x in links if x.startswith(('socket', 'anon_inode'))], links\nprint('done')\n"
    for python in edges(case):
        lives(case, ["unshare", "-n"], python, words=["-c", code])


def descriptors(case):
    """At no moment is a descriptor of ours in the application's table: looked at again and again from outside
    while windows are sealed and children forked."""
    code = "import os, time\nend = time.monotonic() + 1.2\nwhile time.monotonic() < end:\n    sum(range(10000))\n    time.sleep(0.005)\n" \
           "    child = os.fork()\n    if not child: os._exit(0)\n    os.waitpid(child, 0)\nprint('done')\n"
    for python in natives(case):
        run = h.Run(["-c", code], "descriptors", python=python, settings=WINDOWS)
        seen, looks, over = set(), 0, threading.Event()
        waiter = threading.Thread(target=lambda: (results.append(run.finish()), over.set()))
        results = []
        waiter.start()
        folder = "/proc/%d/fd" % run.popen.pid
        while not over.is_set():
            try:
                seen.update(os.readlink(os.path.join(folder, fd)) for fd in os.listdir(folder))
                looks += 1
                time.sleep(0.0005)
            except OSError:
                pass
        waiter.join()
        case.tried(looks)
        case.judge(results[0].status, 0, "python", results[0].err)
        ours_seen = [path for path in seen if run.spool_folder in path or "aprof" in os.path.basename(path)]
        case.check(not ours_seen and looks > 50, "of %d looks: %s", looks, ours_seen)


def memory(case):
    """No page is both writable and executable, also with the making of tasks hooked."""
    code = "import asyncio\nasync def work():\n    for _ in range(20): await asyncio.gather(*(asyncio.sleep(0.001) for _ in range(50)))\n" \
           "asyncio.run(work())\n" + BUSY % 0.1 + \
           "bad = [x for x in open('/proc/self/maps') if 'w' in x.split()[1] and 'x' in x.split()[1]]\nassert not bad, bad\nprint('done')\n"
    lives(case, [], case.python, words=["-c", code])


def linked(case):
    """The library: relocations read-only once bound, bound at load, no executable stack, no text relocations, nothing to run from."""
    hazard.need_programs("readelf")
    case.tried()
    text = subprocess.run(["readelf", "-lWd", h.LIBRARY], stdout=subprocess.PIPE, check=True).stdout.decode()
    segments = {line.split()[0]: line for line in text.splitlines() if line.startswith("  ") and line.split()}
    case.check("GNU_RELRO" in segments, "no GNU_RELRO")
    case.check(re.search(r"BIND_NOW|FLAGS_1.*NOW", text), "not bound at load")
    case.check(" RWE " not in text and "GNU_STACK" in segments and "E" not in segments["GNU_STACK"].split()[-2], "an executable stack or segment")
    case.check("TEXTREL" not in text, "text relocations")
    case.check(not re.search(r"\((RPATH|RUNPATH)\)", text), "a path to look for libraries")
    case.check(not stat.S_IMODE(os.stat(h.LIBRARY).st_mode) & 0o6002, "mode %o", os.stat(h.LIBRARY).st_mode)


def other_rights(case):
    """Programs that get other rights at exec (setuid, setgid, capabilities): not there, and not a word of it."""
    hazard.need_root()
    for python in natives(case)[:1]:
        folder = open_folder("rights")
        reachable(folder)
        if os.statvfs(folder).f_flag & os.ST_NOSUID:
            raise h.Skip("%s is mounted nosuid" % folder)
        for kind in ("setuid", "setgid", "setcap"):
            program = os.path.join(folder, kind)
            shutil.copy(os.path.realpath(python.words[-1]), program)
            os.chmod(program, {"setuid": 0o4755, "setgid": 0o2755, "setcap": 0o755}[kind])
            if kind == "setcap":
                if not shutil.which("setcap") or subprocess.run(["setcap", "cap_net_raw+ep", program], stderr=subprocess.DEVNULL).returncode:
                    continue
            code = DONE + "assert 'aprof' not in open('/proc/self/maps').read()\n" if kind == "setcap" else DONE
            result = case.program(AS_NOBODY + [program, "-c", code], python=None, spooled=False, folder=folder, expect=0,
                                  env={"PYTHONHOME": python.ask("import sys; print(sys.prefix)")})
            case.check(result and result.out == b"done\n" and result.err == b"", "%s: %r %r", kind, result and result.out, result and result.err)
            case.check(not os.path.exists(result.spool), "%s: a spool", kind)


HAZARDS = [
    Hazard("security.rights", rights, each=False),
    Hazard("security.opened_files", opened_files, each=False),
    Hazard("security.planted_names", planted_names, each=False),
    Hazard("security.bounded", bounded_all_the_same, each=False),
    Hazard("security.secrets", secrets),
    Hazard("security.capabilities", capabilities),
    Hazard("security.sockets", sockets, each=False),
    Hazard("security.descriptors", descriptors, each=False),
    Hazard("security.memory", memory),
    Hazard("security.linked", linked, each=False),
    Hazard("security.other_rights", other_rights, each=False),
]
