#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""commands: what holds for every command that `aprof --help` lists: help, exit statuses,
one clear line for what is wrong; and that filters mean the same to all.

    tests/tool/commands.py APROF

A new command is tried as `aprof COMMAND PATH`; what it needs besides, CALLS says.
"""
import json
import os
import re
import shutil
import sys
import tempfile

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

from harness import GOLDEN, START_US, Skip, need, run, run_tests, same, spool_write, test  # noqa: E402

APROF = os.path.abspath(sys.argv[1])
WORK = tempfile.mkdtemp(prefix="aprof-commands-")
OUT = os.path.join(WORK, "out")
GOOD = os.path.join(WORK, "good")
COLUMNS = 84
VERBS = {"flame": "draw", "diff": "compare"}  # what a command says that it has nothing to do, where that is not its name

FINE, GATE, USAGE, NOTHING, UNREADABLE, FEW = range(6)
STATUSES = {str(status) for status in range(6)}
OF_THEMSELVES = {"supervise", "help", "version"}  # they read no spool
OF_PROCESSES = {"top": ["--once"], "dump": []}  # ... or look at what runs in a directory; with what they tell it to a pipe


def called(*before, after=(), to=None):
    """How a command is given a path; to: where what it writes goes."""
    return lambda path: list(before) + (["-o", to] if to else []) + [path] + list(after)


CALLS = {
    "diff": called(after=[GOOD]),
    "flame": called(to=OUT),
    "convert": called("-f", "collapsed", to=OUT),
    "merge": called(to=OUT),
}


def listed():
    general = run(APROF, "--help").out
    names = re.findall(r"^    ([a-z]+)  ", general[general.index("COMMANDS"):general.index("EXIT STATUS")], re.M)
    need({"report", "flame", "diff", "help"} <= set(names), "aprof --help lists %s", names)
    return names


def readers():
    """Those that read spools and are in this build."""
    return [name for name in listed() if name not in OF_THEMSELVES]


def clear_out():
    shutil.rmtree(OUT, ignore_errors=True)
    if os.path.exists(OUT):
        os.unlink(OUT)


SEEN = {}  # command: statuses that it ended with


def aprof(name, *words, **kept):
    clear_out()
    result = run(APROF, name, *words, **kept)
    SEEN.setdefault(name, set()).add(result.status)
    need(result.status >= 0, "aprof %s %s: signal %d", name, " ".join(words), -result.status)
    for line in result.err.splitlines():
        need(line.startswith("aprof: ") and len(line) > 20, "aprof %s: not a clear line: %r", name, line)
        need(line.isprintable(), "aprof %s: not fit for a terminal: %r", name, line)
    if result.status in (USAGE, NOTHING, UNREADABLE):
        need(result.err, "aprof %s %s: status %d, and not a word", name, " ".join(words), result.status)
    return result


def on(name, path, **kept):
    return aprof(name, *CALLS.get(name, called())(path), **kept)


def output_of(result):
    """Whatever it wrote, as bytes."""
    if os.path.isdir(OUT):
        found = [os.path.join(OUT, name) for name in sorted(os.listdir(OUT))]
    else:
        found = [OUT] if os.path.exists(OUT) else []
    return result.out.encode(errors="surrogateescape") + b"".join(open(path, "rb").read() for path in found)


def each_reader(check):
    """Those of spools; those that this build leaves out count as not run."""
    left_out = []
    for name in readers():
        if name in OF_PROCESSES:
            continue
        if "built without" in on(name, GOOD).err:
            left_out.append(name)
        else:
            check(name)
    if left_out:
        raise Skip("left out of this build: %s (the others passed)" % ", ".join(left_out))


def metadata(**changes):
    whole = {"schema": 1, "run": "r", "pid": 100, "host": "h", "program": "app.py", "python": "3.12.1", "window": 0, "ended": "exit",
             "start_us": START_US, "end_us": START_US + 60000000, "samples": 6000, "ticks": {"due": 6000, "taken": 6000, "missed": 0},
             "rate": {"asked": 100, "got": 100.0}, "process_cpu_us": 60000000, "settings": {}, "tags": {}}
    whole.update(changes)
    return whole


def folder_of(name, stacks, **changes):
    """A spool of one window: {metric: lines}."""
    folder = os.path.join(WORK, name)
    os.makedirs(folder, exist_ok=True)
    for metric, lines in stacks.items():
        spool_write(folder, metric, lines)
    with open(os.path.join(folder, "aprof.h.100.%d.000000.json" % START_US), "w", encoding="utf-8") as file:
        json.dump(metadata(**changes), file)
    return folder


STACKS = [("main (app.py:1);handle (app.py:2);dumps (json/__init__.py:3)", 30000), ("main (app.py:1);handle (app.py:2);[ready]", 20000),
          ("main (app.py:1);idle (app.py:9)", 10000)]


# ---- help -----------------------------------------------------------------------


def statuses_of(text):
    part = text[text.index("\nEXIT STATUS\n"):].split("\n\n")[0]
    return set(re.findall(r"^    ([0-9])  ", part, re.M))


@test
def every_command_has_its_help():
    for name in readers():
        result = aprof(name, "--help")
        same((result.status, result.err), (FINE, ""), "aprof %s --help" % name)
        need(re.match(r"NAME\n    aprof %s - \S.*\n" % name, result.out), "%s: begins with %r", name, result.out[:60])
        for heading in ("SYNOPSIS", "DESCRIPTION", "OPTIONS", "EXIT STATUS", "EXAMPLES"):
            need("\n%s\n" % heading in result.out, "%s: no %s", name, heading)
        need("    -h, --help " in result.out, "%s: no --help among its options", name)
        long = [line for line in result.out.splitlines() if len(line) > COLUMNS]
        need(not long, "%s: %d columns are not enough for %s", name, COLUMNS, long[:1])
        need({"0", "2"} <= statuses_of(result.out) <= STATUSES, "%s: exit statuses: %s", name, statuses_of(result.out))
        same(run(APROF, "help", name).out, result.out, "aprof help %s" % name)
        same(aprof(name, "-h").out, result.out, "aprof %s -h" % name)


@test
def the_general_help_has_all_exit_statuses():
    found = set()
    for name in readers():
        found |= statuses_of(run(APROF, name, "--help").out)
    need(found <= statuses_of(run(APROF, "--help").out), "statuses of commands: %s", found)


@test
def general_usage():
    for words, status, said in ((["--help"], FINE, ""), (["-h"], FINE, ""), (["--version"], FINE, ""), (["-V"], FINE, ""), ([], USAGE, "no command given"),
                                (["frobnicate"], USAGE, "frobnicate: no such command"), (["help", "frobnicate"], USAGE, "no such command"),
                                (["help", "a", "b"], USAGE, "one COMMAND"), (["--nope"], USAGE, "--nope: no such command")):
        result = run(APROF, *words)
        same(result.status, status, "aprof %s" % " ".join(words))
        need(said in result.err and bool(said) == bool(result.err), "aprof %s: %s", words, result.err)


# ---- usage ----------------------------------------------------------------------


@test
def unknown_options_are_refused():
    for name in readers():
        for option in ("--frobnicate", "-Z"):
            result = aprof(name, option, GOOD)
            same((result.status, result.out), (USAGE, ""), "aprof %s %s" % (name, option))
            same(result.err, "aprof: %s: no such option (see `aprof %s --help`)\n" % (option, name), "what it says")


@test
def options_without_their_values_are_refused():
    for name in readers():
        text = run(APROF, name, "--help").out
        options = re.findall(r"^ +(?:-[A-Za-z], )?(--[a-z-]+) [A-Z]+\b", text[text.index("\nOPTIONS\n"):text.index("\nEXIT STATUS\n")], re.M)
        for option in options:
            result = aprof(name, option)
            same((result.status, result.out), (USAGE, ""), "aprof %s %s" % (name, option))
            need("needs a value" in result.err and "aprof %s --help" % name in result.err, "%s %s: %s", name, option, result.err)


@test
def numbers_out_of_range_are_refused_with_the_range():
    for name, option, value, said in (("report", "--top", "-1", "from 0 (no limit) to 1000000"), ("top", "--top", "1000001", "from 0 (no limit) to 1000000"),
                                      ("top", "--interval", "0", "from 1 to 3600"), ("dump", "--timeout", "0", "from 1 to 3600")):
        result = aprof(name, option, value, GOOD)
        same((result.status, result.out), (USAGE, ""), "aprof %s %s %s" % (name, option, value))
        same(result.err, 'aprof: %s: "%s" is not a number %s\n' % (option, value, said), "what it says")


# ---- what is read ---------------------------------------------------------------


@test
def a_good_spool_is_fine():
    def check(name):
        result = on(name, GOOD)
        same((result.status, result.err), (FINE, ""), "aprof %s" % name)
        need(b"dumps" in output_of(result), "aprof %s: what it shows has no function", name)
    each_reader(check)


@test
def what_is_not_there_is_named():
    def check(name):
        missing = os.path.join(WORK, "nowhere")
        result = on(name, missing)
        same(result.status, UNREADABLE, "aprof %s: exit status" % name)
        need("%s: No such file or directory" % missing in result.err, "aprof %s: %s", name, result.err)
    each_reader(check)


@test
def a_path_without_a_letter_is_shown_in_quotes():
    def check(name):
        result = on(name, "")
        same(result.status, UNREADABLE, "aprof %s: exit status" % name)
        need('aprof: "": No such file' in result.err, "aprof %s: %s", name, result.err)
    each_reader(check)


@test
def top_names_what_it_cannot_read():
    folder = os.path.join(WORK, "unread")
    os.makedirs(folder)
    stem = os.path.join(folder, "aprof.h.100.%d.000000" % START_US)
    with open(stem + ".json.live", "w", encoding="utf-8") as file:
        json.dump(metadata(), file)
    os.mkdir(stem + ".cpu.collapsed.live")  # root may read what has no rights
    result = aprof("top", "--once", folder)
    same((result.status, result.out), (UNREADABLE, ""), "exit status")
    need("%s: stacks that cannot be read: " % folder in result.err, "%s", result.err)


@test
def top_leaves_a_newer_schema_out():
    folder = os.path.join(WORK, "newer-live")
    sealed = spool_write(folder, "cpu", STACKS)
    os.rename(sealed, sealed + ".live")
    for schema, status in ((1, FINE), (999, UNREADABLE)):
        with open(sealed.replace(".cpu.collapsed", ".json.live"), "w", encoding="utf-8") as file:
            json.dump(metadata(schema=schema), file)
        result = aprof("top", "--once", folder)
        same((result.status, "dumps" in result.out), (status, status == FINE), "schema %d" % schema)
    need("has stacks of schema 999, and this aprof reads schemas up to 1" in result.err, "%s", result.err)


@test
def dump_says_where_it_looked():
    result = aprof("dump", "1", cwd=WORK, env={"APROF_DIR": ""})
    same(result.status, UNREADABLE, "exit status")
    need("aprof-spool: No such file or directory (--dir or APROF_DIR" in result.err, "%s", result.err)


@test
def an_empty_spool_is_nothing_to_report():
    def check(name):
        folder = os.path.join(WORK, "empty")
        os.makedirs(folder, exist_ok=True)
        result = on(name, folder)
        same(result.status, NOTHING, "aprof %s: exit status (%s)" % (name, result.err))
        need("nothing to %s: " % VERBS.get(name, name) in result.err and folder in result.err and len(result.err.splitlines()) == 1,
             "aprof %s: %s", name, result.err)
    each_reader(check)


@test
def a_spool_without_time_is_nothing_to_report():
    def check(name):
        result = on(name, folder_of("no-time", {"cpu": []}))
        same(result.status, NOTHING, "aprof %s: exit status (%s)" % (name, result.err))
        need("nothing to %s: " % VERBS.get(name, name) in result.err, "aprof %s: %s", name, result.err)
    each_reader(check)


@test
def what_is_no_spool_is_refused():
    def check(name):
        for path, said in ((__file__, "is neither a directory nor named"), ("/dev/null", "is neither a file nor a directory")):
            result = on(name, path)
            same(result.status, UNREADABLE, "aprof %s %s" % (name, path))
            need("%s: %s" % (path, said) in result.err, "aprof %s: %s", name, result.err)
    each_reader(check)


@test
def a_file_without_a_stack_is_refused():
    path = spool_write(os.path.join(WORK, "garbage"), "cpu", [])
    with open(path, "wb") as file:
        file.write(b"\x7fELF\x00\x01\n;;;\nnot a count x\n")

    def check(name):
        result = on(name, os.path.dirname(path))
        same(result.status, UNREADABLE, "aprof %s: exit status" % name)
        need("%s: has no line that is a stack and a count" % path in result.err, "aprof %s: %s", name, result.err)
    each_reader(check)


@test
def requests_and_answers_are_passed_over():
    """What `aprof dump` and eviction put beside the windows is nobody else's."""
    spool = folder_of("asked", {"cpu": STACKS})
    stem = os.path.join(spool, "aprof.h.100.%d" % START_US)

    def check(name):
        shown = []
        for others in ((), (stem + ".ask", stem + ".dump", stem + ".dump.tmp", os.path.join(spool, ".aprof.lock"), os.path.join(spool, ".gitignore"))):
            for path in others:
                with open(path, "w", encoding="utf-8") as file:
                    file.write("main (app.py:1);answered (app.py:2) 5000000\n")
            result = on(name, spool)
            shown.append((result.status, result.err, sorted(os.listdir(OUT)) if os.path.isdir(OUT) else "", output_of(result)))
            for path in others:
                need(os.path.exists(path), "aprof %s: took %s away", name, path)
                os.unlink(path)
        same(shown[1], shown[0], "aprof %s: with and without them" % name)
        need(b"answered" not in shown[1][3], "aprof %s: an answer is shown", name)
    each_reader(check)
    result = aprof("report", "--json", spool)
    quality = json.loads(result.out)["quality"]
    same((quality["files"], quality["lines_bad"], quality["repeated"], quality["unfinished"]), (1, 0, 0, 0), "counts")


def what_was_left_out_is_said(name, result, words):
    """Where its figures are read, else as one line on stderr."""
    if name == "report":
        same(result.err, "", "aprof report: stderr")
        need(re.search(r"^note .*%s$" % words, result.out, re.M), "aprof report: %s", result.out)
    else:
        same(result.err, "aprof: %s%s\n" % ("BASE: " if name == "diff" else "", words), "aprof %s: stderr" % name)


@test
def lines_that_are_none_are_left_out_and_counted():
    folder = folder_of("holes", {"cpu": STACKS})
    with open(spool_write(folder, "cpu", STACKS), "ab") as file:
        file.write(b"no count\n 100\nmain (app.py:1);cut (app.py:9) 10")

    def check(name):
        result = on(name, folder)
        same(result.status, FINE, "aprof %s: exit status" % name)
        what_was_left_out_is_said(name, result, "2 lines left out, no stack and count; 1 file with an unfinished last line")
        need(b"dumps" in output_of(result), "aprof %s: the others are not shown", name)
    each_reader(check)


@test
def a_live_file_is_read_up_to_its_last_newline():
    folder = os.path.join(WORK, "live")
    sealed = spool_write(folder, "cpu", STACKS)
    with open(sealed, "rb") as file:
        whole = file.read()
    os.rename(sealed, sealed + ".live")

    def check(name):
        for cut in (len(whole) - 1, len(whole) - 4, whole.rindex(b"\n", 0, len(whole) - 1) + 8):
            with open(sealed + ".live", "wb") as file:
                file.write(whole[:cut])
            result = on(name, folder)
            same(result.status, FINE, "aprof %s, cut at %d" % (name, cut))
            what_was_left_out_is_said(name, result, "1 file with an unfinished last line")
            need(b"dumps" in output_of(result), "aprof %s: the whole lines are not shown", name)
            need(name == "diff" or b"idle" not in output_of(result), "aprof %s: the cut line is shown", name)
    each_reader(check)


@test
def a_newer_schema_is_refused():
    def check(name):
        result = on(name, folder_of("newer", {"cpu": STACKS}, schema=999))
        same(result.status, UNREADABLE, "aprof %s: exit status" % name)
        need("has schema 999, and this aprof reads schemas up to" in result.err, "aprof %s: %s", name, result.err)
        need(name == "diff" or b"dumps" not in output_of(result), "aprof %s: what it does not understand is shown", name)
    each_reader(check)


@test
def metrics_are_not_mixed():
    one = folder_of("one", {"cpu": [("only_in_cpu (a.py:1)", 1000)], "wall": [("only_in_wall (a.py:1)", 5000)]})

    def check(name):
        text = run(APROF, name, "--help").out
        if "--metric METRIC" not in text:
            return
        same(aprof(name, *CALLS.get(name, called())(one), "--metric", "cpu").status, FINE, "aprof %s --metric cpu" % name)
        if name != "diff":  # whose other side has neither
            result = aprof(name, "--metric", "wall", *CALLS.get(name, called())(one))
            shown = output_of(result)
            need(b"only_in_wall" in shown and b"only_in_cpu" not in shown, "aprof %s --metric wall", name)
        result = aprof(name, "--metric", "gil", *CALLS.get(name, called())(one))
        same(result.status, NOTHING, "aprof %s --metric gil (%s)" % (name, result.err))
        need('"gil"' in result.err and "cpu" in result.err, "aprof %s: %s", name, result.err)
    each_reader(check)


@test
def sides_without_a_metric_in_common_are_refused():
    task = folder_of("task-only", {"task": STACKS})
    result = aprof("diff", task, GOOD)
    same(result.status, USAGE, "exit status")
    need("the metrics differ: BASE has task, NEW has cpu" in result.err, "%s", result.err)


@test
def a_link_beside_the_output_is_not_followed():
    clear_out()
    other = os.path.join(WORK, "other")
    with open(other, "w", encoding="utf-8") as file:
        file.write("somebody's\n")
    result = run("sh", "-c", 'ln -s "$2" "$1.$$.tmp" && exec "$0" convert -f collapsed -o "$1" "$3"', APROF, OUT, other, GOOD)
    same((result.status, result.err), (FINE, ""), "exit status")
    need(b"dumps" in output_of(result) and not os.path.islink(OUT), "nothing was written")
    with open(other, encoding="utf-8") as file:
        same(file.read(), "somebody's\n", "the other file")


@test
def bytes_that_are_no_utf8_stay_off_terminals():
    odd = folder_of("bytes", {"cpu": [("main (app.py:1);bad\udcff\udcfe (\udcc3(.py:2)", 30000), ("main (app.py:1);red\x1b[31m (x.py:3)", 20000)]})

    def check(name):
        result = on(name, odd)
        same((result.status, result.err), (FINE, ""), "aprof %s" % name)
        shown = output_of(result)
        if name in ("report", "diff", "flame"):
            shown.decode("utf-8")  # raises
            need(b"\x1b" not in shown, "aprof %s: an escape sequence of a function's name", name)
    each_reader(check)


@test
def what_cannot_be_written_is_said():
    def check(name):
        words = [word for word in CALLS.get(name, called())(GOOD)]
        if OUT in words:
            words[words.index(OUT)] = os.path.join(WORK, "no", "such", "folder")
            result = aprof(name, *words)
        else:
            with open("/dev/full", "wb") as full:
                result = aprof(name, *words, out_to=full)
        same(result.status, UNREADABLE, "aprof %s: exit status" % name)
        need("written" in result.err or "No such file" in result.err, "aprof %s: %s", name, result.err)
    each_reader(check)


@test
def where_no_process_is():
    nowhere, empty = os.path.join(WORK, "nowhere"), os.path.join(WORK, "nobody")
    os.makedirs(empty)
    for name, words in OF_PROCESSES.items():
        for path, status, said in ((nowhere, UNREADABLE, "No such file or directory"), (__file__, UNREADABLE, "Not a directory"), (empty, NOTHING, "")):
            result = aprof(name, *words, path)
            same((result.status, result.out), (status, ""), "aprof %s %s" % (name, path))
            need(path in result.err and said in result.err and len(result.err.splitlines()) == 1, "aprof %s: %s", name, result.err)


@test
def a_folder_of_runs_is_not_taken_for_one():
    """`aprof-run --report` leaves one: whoever names it is told of what is in it."""
    folder = os.path.join(WORK, "runs")
    os.makedirs(os.path.join(folder, "run-1"))
    os.makedirs(os.path.join(folder, "run-2"))

    def check(name, *words):
        result = aprof(name, *words) if words else on(name, folder)
        same((result.status, result.out), (NOTHING, ""), "aprof %s" % name)
        need(re.search(r", but 2 folders (that|there) may hold a run: name one", result.err) and len(result.err.splitlines()) == 1,
             "aprof %s: %s", name, result.err)
    for name, words in OF_PROCESSES.items():
        check(name, *words, folder)
    check("dump", "--dir", folder, str(os.getpid()))
    need("folder" not in aprof("dump", os.path.join(folder, "run-1")).err, "dump of a run: of folders")
    each_reader(check)


# ---- filters --------------------------------------------------------------------


def page_sums(result):
    """Sums of the metrics in a flame graph's page."""
    text = output_of(result).decode()
    data = json.loads(re.search(r'<script[^>]*type="application/json"[^>]*>(.*?)</script>', text, re.S)[1])
    return {metric["name"]: sum(metric["self"]) for metric in data["metrics"]}


def collapsed_sum(result):
    return {"cpu": sum(int(line.rsplit(b" ", 1)[1]) for line in output_of(result).splitlines())}


@test
def filters_mean_the_same_to_all():
    service = os.path.join(GOLDEN, "service", "spool")
    for filters in ((), ("--only", "json.*"), ("--hide", "handle"), ("--only", "json/*", "--hide", "*.py"), ("--only", "[unseen cpu]")):
        section = json.loads(aprof("report", "--json", "--metric", "cpu", *filters, service).out)["metrics"]["cpu"]
        wanted = {"cpu": section["total"]}
        same(sum(row["self"] for row in section["by_self"]), section["total"], "report %s: rows" % (filters,))
        same(collapsed_sum(aprof("convert", "-f", "collapsed", "-o", OUT, "--metric", "cpu", *filters, service)), wanted, "convert %s" % (filters,))
        both = json.loads(aprof("diff", "--json", *filters, service, service).out)["metrics"]["cpu"]
        same((both["base"]["total"], both["new"]["total"]), (section["total"],) * 2, "diff %s" % (filters,))
        if "built without" not in on("flame", service).err:
            same(page_sums(aprof("flame", "-o", OUT, "--metric", "cpu", *filters, service)), wanted, "flame %s" % (filters,))


@test
def hiding_keeps_every_sum():
    service = os.path.join(GOLDEN, "service", "spool")
    whole = json.loads(aprof("report", "--json", service).out)["metrics"]
    for pattern in ("handle", "*", "[unseen cpu]", "asyncio.*", "nobody"):
        hidden = json.loads(aprof("report", "--json", "--hide", pattern, service).out)["metrics"]
        same({name: section["total"] for name, section in hidden.items()}, {name: section["total"] for name, section in whole.items()}, pattern)


# ---- at the end -----------------------------------------------------------------


@test
def every_status_that_was_seen_is_in_the_help():
    for name in readers():
        seen = {str(status) for status in SEEN.get(name, ())}
        need({"0", "2", "4"} <= seen or name not in CALLS, "aprof %s was tried too little: %s", name, seen)
        need(seen <= statuses_of(run(APROF, name, "--help").out), "aprof %s ended with %s, not all in its help", name, sorted(seen))


folder_of("good", {"cpu": STACKS})
try:
    run_tests()
finally:
    shutil.rmtree(WORK)
