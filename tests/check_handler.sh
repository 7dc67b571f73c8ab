#!/bin/sh
# SPDX-License-Identifier: MIT
#
# What our signal handlers may reach: tests/check_handler.sh [build/libaprof.so].
# One line a check; the last line sums them up.
#
# The calls are read from the library's machine code, from its roots on: the
# handler of every signal that we claim, what a CPU tick calls for preload/fork.c,
# and _exit and execve, which an application may call in handlers of its own. All
# that they ask of libc must be async-signal-safe; they never allocate, and their
# stack fits on an alternate stack beside the frame of a guarded fault.
set -u
cd "$(dirname "$0")/.." || exit 2
lib=${1:-build/libaprof.so}
export LC_ALL=C

[ -f "$lib" ] || { echo "failed: there is no $lib"; echo "0 passed, 1 failed"; exit 1; }

objdump -d --no-show-raw-insn "$lib" | awk '
BEGIN {
    # Who may call through a pointer, and what is behind it.
    split("dispatch hand_on call_function", list, " ")   # ours (roots); the action of the application
    for (i in list) indirect[list[i]] = 1
    indirect["sigaction_enter"] = 1                      # the action of the application
    indirect["clock_gettime"] = 1                        # the one of libc itself, which reads the vDSO
    indirect["tick_handle"] = 1                          # tick_on_any: post_start, a root
    indirect["post_start"] = 1                           # Py_AddPendingCall, while its lock is free
    indirect["log_vformat"] = 1                          # a jump of its own: the conversions
    # Calls through a table that the constructor filled; dlsym is behind it only before that.
    resolved = "^(real_.*|leave|resolve|set_handler)$"

    roots = "dispatch tick_handle guard_caught post_start _exit execve"
    # signal-safety(7), and what glibc makes safe without saying so: clock_gettime
    # is the vDSO or a system call, pthread_self and __errno_location read the
    # thread pointer, mem* and str* touch their arguments only.
    safe = " clock_gettime pthread_self __errno_location memcpy memset memmove memcmp strlen strcmp sigismember sigdelset sigaddset sigemptyset "
    stack_most = 4096
    split("0 1 2 3 4 5 6 7 8 9 a b c d e f", list, " ")
    for (i = 1; i <= 16; i++) digit[list[i]] = i - 1
}
function number(hex,    n, i) {
    n = 0
    for (i = 1; i <= length(hex); i++) n = n * 16 + digit[substr(hex, i, 1)]
    return n
}
function address(text) { sub(/^0+/, "", text); return text }

/^[0-9a-f]+ <.*>:$/ {
    at = address($1)
    name[at] = substr($2, 2, length($2) - 3)
    of[name[at]] = of[name[at]] " " at
    next
}
$2 == "push" { frame[at] += 8 }
$2 == "sub" && /\$0x[0-9a-f]+,%rsp$/ { size = $3; sub(/^\$0x/, "", size); sub(/,.*/, "", size); frame[at] += number(size) }
$2 == "add" && /\$0xffffffff[0-9a-f]+,%rsp$/ { size = $3; sub(/,.*/, "", size); frame[at] += 4294967296 - number(substr(size, length(size) - 7)) }
/[ \t](call|jmp) +\*/ && /#.*<.*@/ { # libc, through the table of the loader
    target = $0; sub(/.*</, "", target); sub(/@.*/, "", target)
    imports[at] = imports[at] " " target
    next
}
/[ \t](call|jmp) +\*/ && !/notrack/ { pointer[at] = 1; next }
/[ \t](call|jmp|j[a-z]+) +[0-9a-f]+ </ {
    target = $0; sub(/ <[^<]*$/, "", target); sub(/.*[ \t]/, "", target)
    label = $0; sub(/.*</, "", label); sub(/>.*/, "", label)
    if (label ~ /@plt/) { sub(/@.*/, "", label); imports[at] = imports[at] " " label }
    else if (label !~ /\+0x/) calls[at] = calls[at] " " target
}

function report(what, wrong) {
    if (wrong == "") { print "ok: " what; passed++ }
    else { print "failed: " what ":" wrong; failed++ }
}
# Walks what "here" calls; answers how much stack is needed below it.
function visit(here, way,    list, n, i, deepest, depth, imported, m) {
    if (here in need) return need[here]
    need[here] = 0 # a circle adds nothing; there should be none
    way = way " > " name[here]
    if (here in pointer && !(name[here] in indirect) && name[here] !~ resolved) unknown = unknown "\n   " way
    m = split(imports[here], imported, " ")
    for (i = 1; i <= m; i++) {
        used[imported[i]] = 1
        if ((here, imported[i]) in told) continue
        told[here, imported[i]] = 1
        if (index(safe, " " imported[i] " ")) continue
        if (imported[i] == "dlsym" && name[here] ~ resolved) continue
        unsafe = unsafe "\n   " way " > " imported[i]
    }
    deepest = 0
    n = split(calls[here], list, " ")
    for (i = 1; i <= n; i++)
        if (list[i] in name) {
            if (name[list[i]] ~ /^(mem_|aprof_je_|ffi_)/) {
                heap = heap "\n   " way " > " name[list[i]]
                continue
            }
            depth = visit(list[i], way)
            if (depth > deepest) deepest = depth
        }
    need[here] = deepest + frame[here] + 8
    reached++
    return need[here]
}
END {
    n = split(roots, root, " ")
    for (i = 1; i <= n; i++) {
        m = split(of[root[i]], place, " ")
        if (m != 1) missing = missing " " root[i]
        for (j = 1; j <= m; j++) {
            depth = visit(place[j], "")
            if (root[i] == "dispatch" || root[i] == "tick_handle" || root[i] == "guard_caught") stack += depth
        }
    }
    report("every root is there once", missing)
    for (i in used) count++
    report(reached " functions call nothing of libc that is not async-signal-safe (" count + 0 " names)", unsafe)
    report("they do not allocate", heap)
    report("calls through pointers are known", unknown)
    report("stack of a tick and of a guarded fault in it, without the kernel\047s frames: " stack " bytes of " stack_most, stack > stack_most ? " too much" : "")
    report("the walk saw the frame walk", of["guard_asm_copy"] != "" && reached > 40 ? "" : " only " reached " functions")
    print passed + 0 " passed, " failed + 0 " failed"
    exit failed > 0
}'
