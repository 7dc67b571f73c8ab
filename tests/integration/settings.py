# SPDX-License-Identifier: MIT
"""settings: bad values, bad places and bad Pythons cost one line and never the application."""
import os
import re
import subprocess

import harness as h
from harness import need

BURN = "import time\ne = time.thread_time() + %g\nwhile time.thread_time() < e: pass\nprint('done')"


def ours(result):
    return [line.decode("utf-8", "replace") for line in result.err.splitlines() if line.startswith(b"aprof")]


def works_all_the_same(result):
    need(result.status == 0 and result.out == b"done\n", "status %d, stdout %r, stderr %s", result.status, result.out, h.tail(result.err))
    others = [line for line in result.err.splitlines() if not line.startswith(b"aprof")]
    need(not others, "stderr: %s", others[:3])


def one_line(result, *words):
    works_all_the_same(result)
    said = ours(result)
    need(len(said) == 1, "%d lines on stderr, not 1: %s", len(said), said)
    for word in words:
        need(word in said[0], "%r is not in the line: %s", word, said[0])
    return said[0]


BAD = [  # name, value, what the line must name beside both
    ("APROF_RATE", "abc", ("1 to 20000", "100")), ("APROF_RATE", "0", ("1 to 20000",)), ("APROF_RATE", "20001", ("1 to 20000",)),
    ("APROF_RATE", "-5", ()), ("APROF_RATE", "1e3", ()), ("APROF_RATE", "99999999999999999999", ()), ("APROF_RATE", "", ()),
    ("APROF_CLOCK", "tsc", ("cpu", "monotonic")), ("APROF_METRICS", "cpu,speed", ("speed",)), ("APROF_WINDOW", "0", ()),
    ("APROF_DEPTH", "many", ()), ("APROF_ENABLE", "maybe", ("0",)), ("APROF_READER", "dma", ("copy", "syscall")),
    ("APROF_PATHS", "long", ("short", "full")),
]


def bad_values(python, long):
    for name, value, words in BAD:
        result = h.run(["-c", BURN % 0.1], "bad", python=python, settings={name: value})
        if name == "APROF_RATE" and value == "" and not ours(result):
            works_all_the_same(result)  # an empty value may count as unset
            continue
        one_line(result, name, value, *words)
        need(h.Spool(result.spool).total("cpu") > 20000, "%s=%s: not profiled", name, value)
    return "%d bad values" % len(BAD)


def unknown_name(python, long):
    return one_line(h.run(["-c", BURN % 0.05], "unknown", python=python, settings={"APROF_RAET": "50"}), "APROF_RAET")


def said_once(python, long):
    """The first process of a run says it, its children do not."""
    code = "import subprocess, sys\nfor _ in range(3): subprocess.run([sys.executable, '-c', 'pass'])\n" + BURN % 0.05
    one_line(h.run(["-c", code], "once", python=python, settings={"APROF_RATE": "abc"}), "APROF_RATE")


def quiet(python, long):
    result = h.run(["-c", BURN % 0.05], "quiet", python=python, settings={"APROF_RATE": "abc", "APROF_LOG": "quiet"})
    works_all_the_same(result)
    need(not ours(result), "APROF_LOG=quiet says %s", ours(result))


def wrapper_refuses(pythons, long):
    if not h.has_wrapper():
        raise h.Skip("scripts/aprof-run is absent")
    for options in (["--rate", "abc"], ["--rate", "0"], ["--no-such-option"], ["-m", "speed"]):
        result = h.run(["sh", "-c", "echo ran"], "refuse", wrapper=[h.WRAPPER] + options + ["--"])
        need(result.status == 2 and result.out == b"", "%s: status %d, stdout %r", options, result.status, result.out)
        need(result.err.count(b"\n") == 1, "%s: stderr %s", options, h.tail(result.err))
    for words, status in ((["/nonexistent/x"], 127), (["/etc/passwd"], 126)):
        result = h.run(words, "refuse", wrapper=[h.WRAPPER, "-q", "--"])
        need(result.status == status, "%s: status %d, not %d", words, result.status, status)


# ---------------------------------------------------------------- bad places


def unwritable(python, long):
    if os.geteuid() == 0:
        place = "/proc/aprof-spool"
    else:
        place = "/aprof-spool"
    result = h.run(["-c", BURN % 0.3], "unwritable", python=python, settings={"APROF_DIR": place})
    return one_line(result, place)


def a_file_for_a_directory(python, long):
    folder = h.fresh_folder("file")
    place = os.path.join(folder, "spool")
    with open(place, "w", encoding="utf-8") as f:
        f.write("mine\n")
    result = h.run(["-c", BURN % 0.3], "file", python=python, folder=folder)
    line = one_line(result, place)
    need(h.read_bytes(place) == b"mine\n", "the file was changed")
    return line


def name_too_long(python, long):
    """No rights can mend it, so none are advised."""
    place = "/tmp/" + 300 * "n"
    line = one_line(h.run(["-c", BURN % 0.3], "long", python=python, settings={"APROF_DIR": place}), place)
    need("cannot be made" in line and "chown" not in line, "%s", line)
    return "no chown"


WANDER = """
import time
def left(n, d):
    if d: (left if n & 1 else right)(n >> 1, d - 1)
def right(n, d):
    if d: (left if n & 1 else right)(n >> 1, d - 1)
n, e = 1, time.thread_time() + %g
while time.thread_time() < e:
    n = n * 1103515245 + 12345 & 0x7fffffff
    left(n >> 7, 24)
print('done')
"""


def full_disk(python, long):
    """A small file system: the application goes on, what is there stays readable."""
    if os.environ.get("APROF_OWN_MOUNTS") != "1":
        raise h.Skip("needs root for a small file system")
    folder = h.fresh_folder("full")
    place = os.path.join(folder, "spool")
    os.mkdir(place)
    done = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64k,mode=700", "tmpfs", place], stderr=subprocess.PIPE)
    if done.returncode:
        raise h.Skip("no tmpfs: " + done.stderr.decode().strip())
    try:
        result = h.run(["-c", WANDER % 1], "full", python=python, folder=folder,
                       settings={"APROF_CLOCK": "monotonic", "APROF_RATE": "2000"})
        works_all_the_same(result)
        said = ours(result)
        need(len(said) == 1 and place in said[0], "not one line with the place: %s", said)
        spool = h.Spool(place, strict=False)
        need(len(spool.processes) == 1 and spool.total("cpu") > 0, "nothing that can be read")
    finally:
        subprocess.run(["umount", "-l", place])
    return said[0]


def bounded_heap(python, long):
    """APROF_MEMORY at its smallest: new stacks go to [overflow], the sums stay."""
    result = h.run(["-c", WANDER % 2], "heap", python=python, timeout=120,
                   settings={"APROF_CLOCK": "monotonic", "APROF_RATE": "5000", "APROF_MEMORY": "4"})
    works_all_the_same(result)
    total = h.Spool(result.spool).one().total("cpu")
    need(1.8e6 < total < 2.3e6, "cpu %d µs of 2 s", total)


# ---------------------------------------------------------------- bad Pythons


def unsupported(pythons, long):
    path = os.path.expanduser("~/.pyenv/versions")
    old = sorted(n for n in os.listdir(path) if re.match(r"3\.(10|[7-9])(\.|$)", n)) if os.path.isdir(path) else []
    if not old:
        raise h.Skip("no Python from 3.7 to 3.10")
    for name in old:
        python = os.path.join(path, name, "bin", "python3")
        if subprocess.run([python, "-c", ""], stderr=subprocess.DEVNULL).returncode:
            continue
        burn = BURN.replace("thread_time", "process_time") % 0.2
        result = h.run([python, "-c", burn], "old")
        line = one_line(result, "3.%s" % name.split(".")[1])
        need(not os.path.exists(result.spool) or not h.Spool(result.spool).processes, "%s left a spool", name)
    return line


FALSE_PYTHON = r"""
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
#include <string.h>
char _PyRuntime[%s] = "%s";
int main(void) {
    volatile double x = 0;
    for (int i = 0; i < 30000000; i++) x += i;
    puts("done");
    return strlen(_PyRuntime) > 100;
}
"""


def false_python(pythons, long):
    """Programs that merely export _PyRuntime: as large as ours or small, full of nothing or of a cookie."""
    for size, content in (("8", ""), ("400000", ""), ("400000", "xdebugpy"), ("16", "xdebugpy"), ("1", "")):
        folder = h.fresh_folder("false")
        source, program = os.path.join(folder, "f.c"), os.path.join(folder, "f")
        with open(source, "w", encoding="utf-8") as f:
            f.write(FALSE_PYTHON % (size, content))
        done = subprocess.run(["cc", "-O1", "-rdynamic", "-w", "-o", program, source], stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        need(done.returncode == 0, "cc: %s", done.stdout.decode()[-300:])
        line = one_line(h.run([program], "false"), "_PyRuntime")
    return line


TESTS = [
    ("settings-bad", bad_values, True),
    ("settings-unknown", unknown_name, True),
    ("settings-once", said_once, True),
    ("settings-quiet", quiet, True),
    ("spool-unwritable", unwritable, True),
    ("spool-is-a-file", a_file_for_a_directory, True),
    ("spool-name-too-long", name_too_long, True),
    ("spool-full", full_disk, True),
    ("heap-bounded", bounded_heap, True),
]
ONCE = [
    ("wrapper-refuses", wrapper_refuses, True),
    ("python-unsupported", unsupported, True),
    ("python-false", false_python, True),
]
