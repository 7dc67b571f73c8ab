#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""aprof-run: what the application gets to see of it (nothing), and what the user does.

Runs a copy of the script beside a library that does nothing, so that it is the
wrapper that is tested, in any state of the tree.
"""
import hashlib
import os
import re
import pty
import pwd
import shutil
import signal
import subprocess
import sys
import tempfile
import time

REPO = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
SETTINGS = os.path.join(REPO, "build", "aprof-settings")
AS_ROOT = os.geteuid() == 0
PYTHON = os.path.realpath(sys.executable)


class Skip(Exception):
    pass


def make_tree(root):
    """A tree as aprof-run expects it: scripts/aprof-run, build/libaprof.so."""
    for name in ("scripts", "build"):
        os.makedirs(os.path.join(root, name))
    shutil.copy(os.path.join(REPO, "scripts", "aprof-run"), os.path.join(root, "scripts"))
    shutil.copy(os.path.join(REPO, "Makefile"), root)
    for name in ("aprof-settings", "aprof"):
        if os.path.exists(os.path.join(REPO, "build", name)):
            shutil.copy(os.path.join(REPO, "build", name), os.path.join(root, "build"))
    library = os.path.join(root, "build", "libaprof.so")
    subprocess.run(["cc", "-shared", "-fPIC", "-nostdlib", "-x", "c", "-", "-o", library],
                   input=b"int aprof_dummy;\n", check=True)
    os.chmod(root, 0o755)
    return os.path.join(root, "scripts", "aprof-run"), library


def run(*words, env=None, preexec_fn=None, wrapper=None, cwd=None, **kept):
    whole = dict(os.environ)
    for name in list(whole):
        if name.startswith("APROF_") or name == "LD_PRELOAD":
            del whole[name]
    whole.update(env or {})
    kept.setdefault("stdin", subprocess.DEVNULL)
    return subprocess.run([wrapper or WRAPPER, *words], env=whole, cwd=cwd or WORK, preexec_fn=preexec_fn,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=60, **kept)


def same(got, wanted, what):
    assert got == wanted, "%s: %r, wanted %r" % (what, got, wanted)


def words_of(result):
    return dict(line.split("=", 1) for line in result.stdout.decode().splitlines() if "=" in line)


def ends(result, status, in_stderr=None, out=b""):
    same((result.returncode, result.stdout), (status, out), "status and stdout (stderr %r)" % result.stderr)
    if in_stderr is not None:
        assert in_stderr in result.stderr.decode(), "stderr is %r" % result.stderr


# ---------------------------------------------------------------- the application's own

def test_exit_status_is_the_applications():
    ends(run("--", PYTHON, "-c", "import sys; sys.exit(7)"), 7)


def test_uncaught_exception_is_1():
    ends(run(PYTHON, "-c", "raise ValueError"), 1, "ValueError")


def test_segfault_is_sigsegv():
    same(run(PYTHON, "-c", "import ctypes; ctypes.string_at(0)").returncode, -signal.SIGSEGV, "status")
    same(run("sh", "-c", "kill -SEGV $$").returncode, -signal.SIGSEGV, "status")
    through = subprocess.run(["sh", "-c", '"$0" %s -c "import os; os.kill(os.getpid(), 11)"; exit $?' % PYTHON, WRAPPER],
                             stderr=subprocess.DEVNULL, timeout=60)
    same(through.returncode, 139, "what a shell sees")


def test_sigterm_reaches_the_application_itself():
    child = subprocess.Popen([WRAPPER, "-q", PYTHON, "-c", "print('up', flush=True); import time; time.sleep(60)"],
                             stdout=subprocess.PIPE)
    same(child.stdout.readline(), b"up\n", "first line")
    child.terminate()
    same(child.wait(20), -signal.SIGTERM, "status")
    child.stdout.close()


def test_the_command_keeps_the_pid():
    child = subprocess.Popen([WRAPPER, "-q", "sh", "-c", "echo $$"], stdout=subprocess.PIPE)
    same(int(child.communicate(timeout=30)[0]), child.pid, "pid")


def test_stdin_script():
    ends(run("-q", PYTHON, "-", "x", stdin=None, input=b"import sys; print(sys.argv[1:])\n"), 0, out=b"['x']\n")


def test_50_megabytes_through_it():
    block = os.urandom(1 << 20)
    digest = hashlib.sha256(block * 50).hexdigest()
    copy = "import sys, shutil; shutil.copyfileobj(sys.stdin.buffer, sys.stdout.buffer, 65536)"
    child = subprocess.Popen([WRAPPER, "-q", PYTHON, "-c", copy], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    if os.fork() == 0:
        child.stdout.close()
        for _ in range(50):
            child.stdin.write(block)
        child.stdin.close()
        os._exit(0)
    child.stdin.close()
    got = hashlib.sha256()
    for piece in iter(lambda: child.stdout.read(1 << 16), b""):
        got.update(piece)
    child.stdout.close()
    os.wait()
    same((child.wait(20), got.hexdigest()), (0, digest), "status and bytes")


def test_arguments_arrive_as_given():
    odd = ["", " ", "a b", "*", "-r", "--", "--check", "$HOME", "a\nb", "\\", "'\"", "é"]
    result = run("-q", "-r", "50", PYTHON, "-c", "import sys; print(sys.argv[1:])", *odd)
    same(eval(result.stdout), odd, "arguments")


def test_no_descriptor_is_left_open():
    result = run("-q", "ls", "/proc/self/fd", close_fds=True)
    same(result.stdout.split(), [b"0", b"1", b"2", b"3"], "descriptors")


def test_environment_is_the_callers_plus_ours():
    odd = {"discovery.type": "one\ntwo", "rate": "kept", "x-y": "", "PATH": os.environ["PATH"], "ar": "1"}
    got = subprocess.run([WRAPPER, "-q", "env", "-0"], env=odd, stdout=subprocess.PIPE, timeout=60).stdout
    got = dict(entry.split("=", 1) for entry in got.decode().rstrip("\0").split("\0"))
    ours = {name for name in got if name.startswith("APROF_") or name in ("LD_PRELOAD", "ASAN_OPTIONS")}
    same({name: got[name] for name in got if name not in ours and name not in ("_", "SHLVL")}, odd, "environment")
    same(got["LD_PRELOAD"], LIBRARY, "LD_PRELOAD")


def test_what_other_tools_need_is_added_to_theirs():
    order, room = "verify_asan_link_order=0", "glibc.rtld.optional_static_tls=4096"
    audit = {"LD_AUDIT": "/no/such/auditor.so"}
    for given, name, wanted in (({}, "ASAN_OPTIONS", order), ({"ASAN_OPTIONS": "a=1"}, "ASAN_OPTIONS", "a=1:" + order),
                                ({"ASAN_OPTIONS": "verify_asan_link_order=1"}, "ASAN_OPTIONS", "verify_asan_link_order=1"),
                                ({}, "GLIBC_TUNABLES", None), (audit, "GLIBC_TUNABLES", room),
                                (dict(audit, GLIBC_TUNABLES="glibc.malloc.check=0"), "GLIBC_TUNABLES", "glibc.malloc.check=0:" + room)):
        same(words_of(run("-q", "env", env=given)).get(name), wanted, "%s with %r" % (name, given))


def test_ignored_signals_stay_ignored():
    result = run("-q", "sh", "-c", "kill -HUP $$; echo alive",
                 preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_IGN))
    same(result.stdout, b"alive\n", "output")


# ---------------------------------------------------------------- options

def test_options_become_settings():
    got = words_of(run("-r", "77", "-o", "spool", "-m", "cpu,wall", "-w", "5", "-d", "9", "--delay", "2",
                       "--overhead", "3", "--tag", "a=1", "--tag=b=2", "--paths", "full", "--clock=monotonic", "--reader", "copy",
                       "--no-children", "--thread-frames", "--task-names", "--label", "a", "--label=b,c", "-v", "--", "env"))
    for name, value in (("RATE", "77"), ("DIR", "spool"), ("METRICS", "cpu,wall"), ("WINDOW", "5"), ("DURATION", "9"), ("OVERHEAD", "3"),
                        ("DELAY", "2"), ("TAGS", "a=1,b=2"), ("PATHS", "full"), ("CLOCK", "monotonic"),
                        ("READER", "copy"), ("CHILDREN", "0"), ("THREAD_FRAMES", "1"), ("TASK_NAMES", "1"), ("LABEL", "a,b,c"), ("LOG", "info"), ("SUMMARY", "1")):
        same(got.get("APROF_" + name), value, name)


def test_forms_of_options():
    for words in (["-r50"], ["-r", "50"], ["--rate=50"], ["--rate", "50"]):
        same(words_of(run(*words, "env"))["APROF_RATE"], "50", " ".join(words))


def test_options_end_at_the_command():
    got = words_of(run("-r", "50", "env", "APROF_X=1", "sh", "-c", "env", "-r", "60"))
    same(got["APROF_RATE"], "50", "rate")


def test_tags_add_to_the_environments():
    same(words_of(run("--tag", "b=2", "env", env={"APROF_TAGS": "a=1"}))["APROF_TAGS"], "a=1,b=2", "tags")


def test_bad_options_are_2():
    for words in (["--nope", "true"], ["-x", "true"], ["-r"], [], ["--"], ["--tag", "x", "true"], ["--tag", "a=1,2", "true"],
                  ["--no-children=1", "true"], ["--flame"], ["--flame=", "true"], ["--flame", "", "true"]):
        ends(run(*words), 2, "aprof-run --help")


def test_bad_settings_are_2():
    if not os.path.exists(SETTINGS):
        raise Skip("aprof-settings is not built")
    ends(run("-r", "abc", "true"), 2, "APROF_RATE")
    ends(run("true", env={"APROF_RTAE": "1"}), 2, "APROF_RTAE")
    ends(run("--env", "-w", "0"), 2, "APROF_WINDOW")


def test_settings_are_checked_when_they_are_right():
    if not os.path.exists(SETTINGS):
        raise Skip("aprof-settings is not built")
    result = run("-r", "50", "true")
    same((result.returncode, result.stderr), (0, b""), "status and stderr")


def test_help_and_version():
    result = run("--help")
    same(result.returncode, 0, "status")
    for word in ("--rate", "--overhead", "--output", "--metrics", "--window", "--duration", "--delay", "--tag", "--paths", "--clock",
                 "--reader", "--thread-frames", "--task-names", "--label", "--no-children", "--report", "--flame", "--quiet", "--verbose", "--check", "--env", "--version"):
        assert word in result.stdout.decode(), word
    assert run("--version").stdout.startswith(b"aprof-run 0."), run("--version").stdout


def test_quiet_says_nothing():
    static = make_static()
    result = run("-q", static)
    same((result.returncode, result.stderr), (0, b""), "status and stderr")


def test_env_prints_assignments_that_a_shell_reads_back():
    result = run("--env", "-o", 'a "b" $c `d` \\e', "--tag", "x=1", env={"LD_PRELOAD": ""})
    back = subprocess.run(["sh", "-c", result.stdout.decode() + '\nprintf "%s|%s|%s" "$APROF_DIR" "$APROF_TAGS" "$LD_PRELOAD"'],
                          stdout=subprocess.PIPE, env={"PATH": os.environ["PATH"]})
    same(back.stdout.decode(), 'a "b" $c `d` \\e|x=1|' + LIBRARY, "read back")


# ---------------------------------------------------------------- LD_PRELOAD

def test_ours_goes_behind_what_is_there():
    other = os.path.join(WORK, "other.so")
    shutil.copy(LIBRARY, other)
    same(words_of(run("env", env={"LD_PRELOAD": other}))["LD_PRELOAD"], other + ":" + LIBRARY, "LD_PRELOAD")


def test_ours_is_there_once():
    same(words_of(run("-q", WRAPPER, "env"))["LD_PRELOAD"], LIBRARY, "LD_PRELOAD")


def test_a_nested_run_is_a_run_of_its_own():
    seen = words_of(run("env", env={"APROF_RUN": "0123456789abcdef"}))
    # made anew, and marked: no Python has seen it yet (preload/environment.h)
    assert re.fullmatch(r"\+[0-9a-f]{16}", seen["APROF_RUN"]), seen["APROF_RUN"]
    assert seen["APROF_RUN"] != words_of(run("env"))["APROF_RUN"]


def test_path_with_a_space_or_colon():
    for name in ("with space", "with:colon"):
        wrapper, _ = make_tree(os.path.join(WORK, name))
        result = run("sh", "-c", "echo ${LD_PRELOAD-none}", wrapper=wrapper)
        ends(result, 0, "space or a colon", b"none\n")


def test_through_a_symbolic_link_and_from_path():
    bin_dir = os.path.join(WORK, "linked")
    os.mkdir(bin_dir)
    os.symlink(WRAPPER, os.path.join(bin_dir, "aprof-run"))
    for wrapper, path in ((os.path.join(bin_dir, "aprof-run"), os.environ["PATH"]),
                          ("aprof-run", bin_dir + ":" + os.environ["PATH"])):
        result = subprocess.run(["sh", "-c", '"$0" -q env', wrapper], env={"PATH": path}, stdout=subprocess.PIPE)
        assert ("LD_PRELOAD=%s\n" % LIBRARY).encode() in result.stdout, result


def test_installed_beside_a_prefix():
    prefix = os.path.join(WORK, "prefix")
    for name in ("bin", "lib/aprof"):
        os.makedirs(os.path.join(prefix, name))
    wrapper = shutil.copy(WRAPPER, os.path.join(prefix, "bin"))
    library = shutil.copy(LIBRARY, os.path.join(prefix, "lib", "aprof"))
    same(words_of(run("-q", "env", wrapper=wrapper))["LD_PRELOAD"], library, "LD_PRELOAD")


def test_library_that_is_missing():
    wrapper, library = make_tree(os.path.join(WORK, "without"))
    os.unlink(library)
    ends(run("echo", "ran", wrapper=wrapper), 0, "cannot be read", b"ran\n")


# ---------------------------------------------------------------- commands that cannot be profiled

def write_script(name, *lines, mode=0o755):
    path = os.path.join(WORK, name)
    with open(path, "w") as file:
        file.write("\n".join(lines) + "\n")
    os.chmod(path, mode)
    return path


def compile_program(name, *flags, compiler="cc"):
    path = os.path.join(WORK, name)
    if not os.path.exists(path):
        made = subprocess.run([compiler, "-x", "c", "-", *flags, "-o", path], input=b"int main(void) { return 0; }\n",
                              stderr=subprocess.PIPE)
        if made.returncode:
            raise Skip("%s %s does not compile here" % (compiler, " ".join(flags)))
    return path


def make_static():
    return compile_program("static", "-static")


def test_command_not_found_is_127():
    ends(run("no-such-command"), 127, "no-such-command: not found")
    ends(run("./no-such-command"), 127, "not found")
    ends(run("--check", "no-such-command"), 127, "not found")


def test_command_not_executable_is_126():
    path = write_script("plain", "text", mode=0o644)
    ends(run(path), 126, "cannot be executed")
    ends(run(WORK), 126, "cannot be executed")
    ends(run("plain", env={"PATH": WORK + ":" + os.environ["PATH"]}), 126, "cannot be executed")


def test_static_programs():
    for flags in (["-static"], ["-static-pie"]):
        result = run(compile_program("static" + flags[0], *flags))
        ends(result, 0, "statically linked")
        same(result.stderr.count(b"cannot be profiled"), 1, "lines")


def test_static_program_passes_the_environment_on():
    # what it starts may well be a Python
    script = write_script("by-static", "#!%s" % make_static())
    assert b"statically linked" in run(script).stderr


def test_musl_program_runs_without_the_library():
    if not shutil.which("musl-gcc"):
        raise Skip("musl-gcc is not installed")
    ends(run(compile_program("musl", compiler="musl-gcc")), 0, "musl")


def test_32_bit_program():
    path = os.path.join(WORK, "elf32")
    shutil.copy(make_static(), path)
    with open(path, "r+b") as file:
        file.seek(4)
        file.write(b"\1")
    result = run("--check", path)
    same((result.returncode, b"32-bit" in result.stdout), (1, True), "status and reason")


def test_other_processor():
    path = os.path.join(WORK, "elf-arm")
    shutil.copy(make_static(), path)
    with open(path, "r+b") as file:
        file.seek(18)
        file.write(b"\xb7\0")
    assert b"x86-64" in run("--check", path).stdout


def test_pypy():
    path = os.path.join(WORK, "pypy3.10")
    shutil.copy("/bin/true", path)
    ends(run(path), 0, "PyPy")


def as_nobody():
    user = pwd.getpwnam("nobody")
    os.setgroups([])
    os.setgid(user.pw_gid)
    os.setuid(user.pw_uid)


def test_setuid_setgid_and_capabilities():
    if not AS_ROOT:
        raise Skip("needs root to make such programs")
    for name, mode, word in (("suid", 0o4755, "setuid"), ("sgid", 0o2755, "setgid"), ("caps", 0o755, "capabilities")):
        path = os.path.join(WORK, name)
        shutil.copy("/bin/true", path)
        os.chmod(path, mode)
        if name == "caps":
            if not shutil.which("setcap") or subprocess.run(["setcap", "cap_net_raw+ep", path]).returncode:
                raise Skip("setcap does not work here")
        ends(run(path, preexec_fn=as_nobody), 0, word)
        same(run(path).stderr, run("true").stderr, "as its own user")


def test_scripts_and_env_are_followed():
    static = make_static()
    bin_dir = os.path.join(WORK, "static-bin")
    os.makedirs(bin_dir, exist_ok=True)
    shutil.copy(static, os.path.join(bin_dir, "frob"))
    path = {"PATH": bin_dir + ":" + os.environ["PATH"]}
    direct = write_script("direct", "#! %s -x" % static)
    through = write_script("through-env", "#!/usr/bin/env frob")
    split = write_script("through-env-s", "#!/usr/bin/env -S A=1 frob -u")
    nested = write_script("nested", "#!%s" % direct)
    for words in ([direct], [through], [split], [nested], ["env", "B=2", "frob"], ["env", "-u", "B", direct]):
        ends(run("--check", *words, env=path), 1, out=run("--check", *words, env=path).stdout)
        assert b"statically linked" in run("--check", *words, env=path).stdout, words
    assert b"whole environment" in run("--check", "env", "-i", "python3").stdout


def test_a_script_that_calls_itself_ends():
    path = os.path.join(WORK, "loop")
    write_script("loop", "#!%s" % path)
    result = run(path)
    assert result.returncode in (126, 127) or result.returncode > 0, result


def test_check_does_not_run_the_command():
    result = run("--check", "touch", os.path.join(WORK, "touched"))
    same((result.returncode, os.path.exists(os.path.join(WORK, "touched"))), (0, False), "status, ran")


def test_check_names_the_version():
    result = run("--check", PYTHON, "app.py")
    supported = (3, 11) <= sys.version_info[:2] <= (3, 15)
    same(result.returncode, 0 if supported else 1, "status (%r)" % result.stdout)
    assert ("%d.%d.%d" % sys.version_info[:3]).encode() in result.stdout, result.stdout


# ---------------------------------------------------------------- --report

def need_supervise():
    tool = os.path.join(os.path.dirname(LIBRARY), "aprof")
    if not os.path.exists(tool):
        raise Skip("aprof is not built")
    return tool


def test_report_keeps_status_and_stdout():
    need_supervise()
    for code, status in (("import sys; print(1); sys.exit(7)", 7), ("print(1, flush=True); import os; os.kill(os.getpid(), 11)", 139)):
        result = run("--report", "-q", PYTHON, "-c", code)
        same((result.returncode, result.stdout), (status, b"1\n"), "status and stdout (%r)" % result.stderr)
    same(run("--report", "no-such-command").returncode, 127, "not found")


def test_report_runs_in_a_directory_of_its_own():
    need_supervise()
    place = os.path.join(WORK, "reporting")
    results = [run("--report", "-o", place, "env") for _ in range(2)]
    got = [words_of(result) for result in results]
    same(len({words["APROF_DIR"] for words in got}), 2, "directories (%r)" % results)
    for words in got:
        same((os.path.dirname(words["APROF_DIR"]), os.path.isdir(words["APROF_DIR"])), (place, True), "directory")
        same(words["LD_PRELOAD"], LIBRARY, "LD_PRELOAD")
    with open(os.path.join(place, ".gitignore")) as file:
        same(file.read(), "*\n", ".gitignore")


def test_report_goes_into_a_file():
    need_supervise()
    path = os.path.join(WORK, "report.txt")
    ends(run("-q", "--report=" + path, "true"), 0)
    assert os.path.exists(path)


def test_flame_leaves_a_page_of_this_run():
    tool = need_supervise()
    page, report = os.path.join(WORK, "flame.html"), os.path.join(WORK, "beside.txt")
    if subprocess.run([tool, "flame", "-o", os.devnull, WORK], capture_output=True).returncode == 4:
        raise Skip("built without d3-flame-graph")
    for words in (["--flame", page], ["--flame=" + page, "--report=" + report]):
        result = run("-q", *words, PYTHON, "-c", "print(1); raise SystemExit(7)")
        same((result.returncode, result.stdout), (7, b"1\n"), "status and stdout (%r)" % result.stderr)
        with open(page, encoding="utf-8") as file:
            assert "Nothing was recorded" in file.read()  # by the library of these tests
        os.unlink(page)
    assert os.path.exists(report)


def unwritable():
    """(what is given, what is said of it); WORK is left as it was."""
    folder, page = os.path.join(WORK, "closed"), os.path.join(WORK, "a-file")
    os.makedirs(folder, exist_ok=True)
    with open(page, "w", encoding="utf-8"):
        pass
    yield WORK, "is a directory"
    yield WORK + "/", "is a directory"
    yield os.path.join(WORK, "nowhere", "page.html"), "nowhere is no directory"
    yield os.path.join(page, "page.html"), "a-file is no directory"
    os.chmod(folder, 0o500)
    for closed in (folder, "/sys", "/proc/sys"):  # root writes to the first; the others are often mounted to be read only
        if not os.access(closed, os.W_OK):
            yield os.path.join(closed, "page.html"), "cannot write to the directory"


def test_what_cannot_be_written_is_refused_before_anything_runs():
    need_supervise()
    ran, place = os.path.join(WORK, "ran"), os.path.join(WORK, "unmade")
    for option in ("--flame", "--report"):
        for path, said in unwritable():
            for mode in ([], ["--check"]):
                result = run("-q", "-o", place, *mode, option + "=" + path, "touch", ran)
                same((result.returncode, result.stdout, len(result.stderr.splitlines())), (2, b"", 1), "%s %s (%r)" % (option, path, result.stderr))
                assert said.encode() in result.stderr and path.encode() in result.stderr, result.stderr
    same((os.path.exists(ran), os.path.exists(place)), (False, False), "it ran, it made a spool")
    ends(run("-q", "--flame=", "true"), 2, "--flame needs a value")


def test_what_can_be_written_is_not_refused():
    need_supervise()
    page = os.path.join(WORK, "is-there.html")
    link = os.path.join(WORK, "link.html")
    with open(page, "w", encoding="utf-8"):
        pass
    os.symlink(page, link)
    for path in (page, link, "fresh.html", "./fresh.html", "/dev/null"):
        for option in ("--flame", "--report"):
            same(run("-q", option + "=" + path, PYTHON, "-c", "raise SystemExit(7)").returncode, 7, "%s=%s" % (option, path))


def test_flame_that_can_no_longer_be_written_changes_nothing():
    need_supervise()
    folder = os.path.join(WORK, "leaves")
    os.makedirs(folder)
    code = "import os; print(1); os.rmdir(%r); raise SystemExit(7)" % folder
    result = run("-q", "--flame", os.path.join(folder, "flame.html"), PYTHON, "-c", code)
    same((result.returncode, result.stdout), (7, b"1\n"), "status and stdout (%r)" % result.stderr)
    assert b"No such file or directory" in result.stderr, result.stderr


def test_report_passes_signals_on_once():
    need_supervise()
    code = ("import signal, time\n"
            "got = []\n"
            "for n in (1, 2, 3, 10, 12): signal.signal(n, lambda n, f: got.append(n))\n"
            "def end(n, f): print(got, flush=True); raise SystemExit(5)\n"
            "signal.signal(15, end)\n"
            "print('up', flush=True)\n"
            "while True: time.sleep(0.01)\n")
    child = subprocess.Popen([WRAPPER, "-q", "--report", PYTHON, "-c", code], stdout=subprocess.PIPE,
                             stderr=subprocess.DEVNULL, cwd=WORK)
    same(child.stdout.readline(), b"up\n", "first line")
    for number in (1, 2, 3, 10, 12, 15):
        child.send_signal(number)
        time.sleep(0.05)
    same((child.stdout.read(), child.wait(20)), (b"[1, 2, 3, 10, 12]\n", 5), "signals and status")
    child.stdout.close()


def test_report_at_a_terminal_interrupts_once():
    need_supervise()
    code = ("import signal, time\n"
            "got = []\n"
            "signal.signal(2, lambda n, f: got.append(n))\n"
            "print('up', flush=True)\n"
            "end = time.time() + 0.5\n"
            "while time.time() < end: time.sleep(0.01)\n"
            "print('got', len(got), flush=True)\n")
    pid, terminal = pty.fork()
    if pid == 0:
        os.chdir(WORK)
        os.execv(WRAPPER, [WRAPPER, "-q", "--report", PYTHON, "-c", code])
    seen = b""
    while b"up" not in seen:
        seen += os.read(terminal, 1000)
    os.write(terminal, b"\3")
    try:
        while True:
            seen += os.read(terminal, 1000)
    except OSError:  # the last one at the terminal has gone
        pass
    _, status = os.waitpid(pid, 0)
    os.close(terminal)
    assert b"got 1" in seen, seen
    same(os.waitstatus_to_exitcode(status), 0, "status")


# ---------------------------------------------------------------- start

def test_start_takes_little():
    times = []
    for _ in range(20):
        start = time.monotonic()
        run("-q", "true")
        times.append(time.monotonic() - start)
    assert min(times) < 0.2, "fastest of 20: %.3f s" % min(times)


def main():
    passed = failed = skipped = 0
    for name, test in sorted(globals().items()):
        if not name.startswith("test_") or len(sys.argv) > 1 and name not in sys.argv[1:]:
            continue
        try:
            test()
            passed += 1
        except Skip as why:
            skipped += 1
            print("%s: skipped: %s" % (name, why))
        except Exception as why:
            failed += 1
            print("%s: %s: %s" % (name, type(why).__name__, why))
    print("%d passed, %d failed" % (passed, failed) + (", %d skipped" % skipped if skipped else ""))
    return failed > 0


if __name__ == "__main__":
    with tempfile.TemporaryDirectory(prefix="aprof-run-") as WORK:
        os.chmod(WORK, 0o755)
        WRAPPER, LIBRARY = make_tree(os.path.join(WORK, "tree"))
        sys.exit(main())
