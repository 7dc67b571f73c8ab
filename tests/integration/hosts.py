# SPDX-License-Identifier: MIT
"""hosts: programs that hold a Python: linked or loaded, started late, finalized, started again."""
import os
import subprocess

import harness as h
from harness import need

WHERE = ("import sysconfig, os; g = sysconfig.get_config_var; n = g('INSTSONAME') or '';"
         "p = [os.path.join(d, n) for d in (g('LIBDIR') or '', '/usr/lib/x86_64-linux-gnu', '/usr/lib') if d];"
         "print(next((x for x in p if '.so' in n and os.path.exists(x)), ''))")


def libpython(python):
    """Its shared library as the program sees it."""
    path = python.ask(WHERE)
    if not path:
        raise h.Skip("no shared libpython")
    return path


def built(python, loaded):
    library = libpython(python)
    program = os.path.join(h.fresh_folder("embed-build"), "embed")
    words = ["cc", "-O1", "-o", program, h.oracle("embed.c"), "-ldl", "-lpthread"]
    if loaded:
        words.append("-DLOADED")
    else:  # a libpython of another C library release may want symbols that this one lacks
        words += [python.root + library, "-Wl,--unresolved-symbols=ignore-in-shared-libs", "-Wl,-rpath," + os.path.dirname(library)]
    done = subprocess.run(words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=60)
    need(done.returncode == 0, "cc: %s", done.stdout.decode()[-300:])
    return program, library


def check_rounds(result):
    """Each round's function has its 0.3 s; C code outside of Python's life has none."""
    need(result.status == 5, "status %d: %s", result.status, h.tail(result.err))
    need(result.err == b"", "stderr: %s", h.tail(result.err))
    rounds = {line.split()[0].decode(): float(line.split()[1]) for line in result.out.splitlines()}
    lines = [x for p in h.Spool(result.spool) for x in p.stacks("cpu")]
    for name in rounds:
        found = h.total_where(lines, lambda f: any(x.name == "burn_" + name for x in f))
        need(0.27e6 <= found <= 0.33e6, "burn_%s has %d of 300,000 µs", name, found)
    total = sum(us for _, us in lines)
    need(total <= 1.02e6 * sum(rounds.values()) + 20000, "cpu %d µs, Python lived for %d", total, 1e6 * sum(rounds.values()))
    return ", ".join("%s %.2f s" % item for item in sorted(rounds.items()))


def embedded(way, loaded=False):
    def test(python, long):
        program, library = built(python, loaded)
        env = {"PYTHONHOME": python.ask("import sys; print(sys.prefix)")}
        result = h.run(python.prefix + [program, way] + ([library] if loaded else []), "embed-" + way, env=env)
        if way == "never":
            need(result.status == 5 and not result.err, "status %d: %s", result.status, h.tail(result.err))
            need(not os.path.exists(result.spool) or not h.Spool(result.spool).processes, "a spool, though Python never started")
            return "nothing left"
        return check_rounds(result)
    return test


TESTS = [
    ("embed-late", embedded("late"), True),
    ("embed-twice", embedded("twice"), True),
    ("embed-thread", embedded("thread"), True),
    ("embed-never", embedded("never"), True),
    ("embed-loaded", embedded("late", loaded=True), True),
    ("embed-loaded-twice", embedded("twice", loaded=True), True),
]
