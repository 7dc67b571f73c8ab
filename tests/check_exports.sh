#!/bin/sh
# What the library shows to, and asks of, the C library: tests/check_exports.sh
# [build/libaprof.so]. One line a check, "ok", "failed" or "skipped", then their sums.
#
# Why each matters: an export too many changes the application; a needed library
# or a symbol that another libc lacks makes every musl program exit 127 when a
# container's LD_PRELOAD reaches it; general-dynamic TLS and fortified calls are
# such symbols; a function of libc that changes a signal's action and that we do
# not stand in front of takes our handler away.
set -u
cd "$(dirname "$0")/.." || exit 2
lib=${1:-build/libaprof.so}
passed=0 failed=0 skipped=0
work=$(mktemp -d) || exit 2
trap 'rm -rf "$work"' EXIT
export LC_ALL=C

skip() {
    skipped=$((skipped + 1))
    printf 'skipped: %s\n' "$1"
}

report() { # name, file with what is wrong: empty is well
    if [ -s "$2" ]; then
        failed=$((failed + 1))
        printf 'failed: %s: %s\n' "$1" "$(tr '\n' ' ' < "$2")"
    else
        passed=$((passed + 1))
        printf 'ok: %s\n' "$1"
    fi
}

[ -f "$lib" ] || { echo "failed: there is no $lib"; echo "0 passed, 1 failed"; exit 1; }

# What export.map names, what the library defines, and nothing else.
sed -e 's,/\*.*\*/,,' -n -e '/global:/,/local:/p' preload/export.map | tr ';' '\n' |
    sed -e 's,/\*.*\*/,,' -e 's/global://' -e 's/local://' | tr -d ' \t' | grep -v '^$' | sort -u > "$work/map"
nm -D --defined-only "$lib" | awk '{ sub(/@.*/, "", $3); print $3 }' | sort -u > "$work/exported"
comm -3 "$work/map" "$work/exported" > "$work/wrong"
report "exports are those of preload/export.map ($(wc -l < "$work/exported"))" "$work/wrong"

readelf -dW "$lib" | sed -n 's/.*(NEEDED).*\[\(.*\)\]/\1/p' | grep -vx 'libc\.so\.6' > "$work/wrong"
report "only libc.so.6 is needed" "$work/wrong"

nm -D --undefined-only "$lib" | awk '{ sub(/@.*/, "", $2); print $1, $2 }' > "$work/undefined"
awk '$1 == "U" { print $2 }' "$work/undefined" | sort -u > "$work/strong"

grep -x '__tls_get_addr' "$work/strong" > "$work/wrong"
report "thread-local data needs no __tls_get_addr" "$work/wrong"

grep '_chk$' "$work/strong" > "$work/wrong"
report "no fortified call" "$work/wrong"

grep -xE '(malloc|calloc|realloc|reallocarray|strdup|strndup|getline|getdelim|opendir|printf|fprintf|puts)' "$work/strong" > "$work/wrong"
report "the application's heap and stdio are not called" "$work/wrong"

grep -xE '(open|creat|close|read|write|pread|pwrite|(f|l)?stat|rename|unlink|mkdir|access|readlink)(at|64)*' "$work/strong" > "$work/wrong"
grep -xE '(lseek|ftruncate|fchmod|flock|getcwd|m(map|unmap|remap|protect)|madvise|clock_gettime|get(e?uid|pid|ppid)|uname|nanosleep|usleep)' "$work/strong" >> "$work/wrong"
grep -vx 'creat' "$work/wrong" > "$work/wrong.less" # jemalloc's heap profile, which is never written
report "files, memory and clocks are asked of the kernel, past who stands in front of libc" "$work/wrong.less"

# All names of libc with "sig" in them, but those known to change no action: a
# name that is new in a later libc shows up here.
nm -D --defined-only "$(cc -print-file-name=libc.so.6)" | awk '{ print $3 }' | grep -v 'GLIBC_PRIVATE' | sed 's/@.*//' |
    sort -u | grep 'sig' |
    grep -vE '^_*sig(add|and|del|empty|fill|isempty|or)set$|^_*sigismember$|^(pthread_)?sigmask$|^(pthread_)?_*sigqueue$' |
    grep -vE '^_*(xpg_)?sig(procmask|suspend|pending|wait|waitinfo|timedwait|pause|hold|relse|block|setmask|getmask)$' |
    grep -vE '^_*sig(altstack|stack|return|setjmp|longjmp|abbrev_np|descr_np)$|^_?sys_sig(list|abbrev)$|^p(signal|siginfo)$' |
    grep -vE '^strsignal$|^gsignal$|^signalfd$|(cond|cnd|send)_signal$|^posix_spawnattr_|^pthread_attr_[gs]etsigmask_np$' |
    grep -vE '^__libc_(current|allocate)_(sigrt|rtsig)' | grep -vE 'sign(bit|ificand)|^copysign|^pthread_sigmask$' > "$work/actions"
comm -23 "$work/actions" "$work/exported" > "$work/wrong"
report "every function of libc that changes a signal's action is ours ($(wc -l < "$work/actions"))" "$work/wrong"

musl=
for file in /usr/lib/*-linux-musl/libc.so; do [ -f "$file" ] && musl=$file; done
if [ -n "$musl" ]; then
    nm -D --defined-only "$musl" | awk '{ print $3 }' | sort -u > "$work/musl"
    comm -23 "$work/strong" "$work/musl" > "$work/wrong"
    report "musl has every symbol that must be there" "$work/wrong"
else
    skip "musl's libc is not installed (musl-tools)"
fi

if command -v musl-gcc > /dev/null; then
    cat > "$work/hello.c" << 'EOF'
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
static void on(int s) { printf("signal %d\n", s); }
static void *run(void *a) { return a; }
int main(int argc, char **argv)
{
    pthread_t t;
    signal(SIGUSR1, on);
    raise(SIGUSR1);
    pthread_create(&t, 0, run, 0);
    pthread_join(t, 0);
    printf("%d arguments\n", argc);
    return 7;
}
EOF
    musl-gcc -o "$work/hello" "$work/hello.c" 2> "$work/wrong" || report "a musl program is built" "$work/wrong"
    "$work/hello" a b > "$work/plain" 2>&1; plain=$?
    LD_PRELOAD=$(realpath "$lib") "$work/hello" a b > "$work/ours" 2>&1; ours=$?
    : > "$work/wrong"
    if ! cmp -s "$work/plain" "$work/ours" || [ $plain -ne 7 ] || [ $ours -ne 7 ]; then
        { echo "status $plain, with the library $ours;"; head -n 3 "$work/ours"; } > "$work/wrong"
    fi
    report "a musl program runs the same: output and exit status" "$work/wrong"
else
    skip "no musl-gcc (musl-tools)"
fi

printf '%d passed, %d failed%s\n' $passed $failed "$([ $skipped -eq 0 ] || echo ", $skipped skipped")"
[ $failed -eq 0 ]
