/* SPDX-License-Identifier: MIT
 *
 * layout_live: the readers of sampler/cpython/ in a library that a Python loads
 * with ctypes, so that layout_live.py can compare what they read of that very
 * Python with what it says of itself. Called with the GIL held (ctypes.PyDLL):
 * nothing changes meanwhile, and every answer must be exact.
 */
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "sampler/cpython/code.h"
#include "sampler/cpython/frames.h"
#include "sampler/cpython/objects.h"
#include "sampler/cpython/states.h"
#include "sampler/text.h"
#include "tests/live/live.h"

#define TEXT_LONGEST (1 << 20)

long live_walk(char *out, long size);
long live_walk_of(uintptr_t tstate, char *out, long size);
long live_states(char *out, long size);
long live_text(uintptr_t object, int path, char *out, long size);
long live_bytes(uintptr_t object, char *out, long size);
long live_lines(uintptr_t object, int32_t *lines, long units, int in_place);
long live_is_code(uintptr_t object);
long live_identity(uintptr_t object, uint64_t *identity);
long live_own(void);
long live_phase(void);
long live_pending_lock(void);
long live_holds(uintptr_t tstate);

static unsigned char characters[TEXT_LONGEST];

static pid_t own_tid(void)
{
    return (pid_t)syscall(SYS_gettid);
}

LIVE long live_own(void)
{
    return (long)states_find_own(&target, own_tid(), pthread_self(), STATES_THREADS_MAX);
}

LIVE long live_holds(uintptr_t tstate)
{
    return states_holds_gil(&target, tstate) | states_is_of(&target, tstate, own_tid(), pthread_self()) << 1;
}

LIVE long live_phase(void)
{
    return states_phase(&target);
}

static long text_of(uintptr_t object, int path, char *out, long size)
{
    struct py_str str;
    if (!objects_str(&target, object, &str) || (size_t)str.length * str.kind > sizeof characters ||
        !guard_copy(characters, str.data, (size_t)str.length * str.kind))
        return -1;
    return (long)(path ? text_path : text_name)(out, (size_t)size, characters, str.length, str.kind);
}

LIVE long live_text(uintptr_t object, int path, char *out, long size)
{
    return text_of(object, path, out, size);
}

LIVE long live_bytes(uintptr_t object, char *out, long size)
{
    struct py_bytes bytes;
    if (!objects_bytes(&target, object, &bytes) || bytes.length > size || !guard_copy(out, bytes.data, bytes.length))
        return -1;
    return bytes.length;
}

static int write_frame(char *out, size_t size, const struct py_frame *frame)
{
    char name[TEXT_NAME_MAX], path[TEXT_NAME_MAX];
    long name_length = text_of(frame->code.qualname, 0, name, sizeof name);
    long path_length = text_of(frame->code.filename, 1, path, sizeof path);

    if (name_length < 0 || path_length < 0)
        return snprintf(out, size, "unreadable\n");
    return snprintf(out, size, "%.*s\t%.*s\t%d\n", (int)name_length, name, (int)path_length, path,
                    code_line_in_place(&target, &frame->code, frame->lasti));
}

/* Name, path and line of each frame, tabs between, leaf first; then how the walk
 * ended and how many groups it saw. */
LIVE long live_walk_of(uintptr_t tstate, char *out, long size)
{
    struct frames_walk walk;
    struct py_frame frame;
    long at = 0, groups = 0;

    frames_begin(&walk, &target, tstate, 100000);
    while (frames_next(&walk, &frame) && at < size - 4096) {
        if (frame.kind == FRAME_PYTHON)
            at += write_frame(out + at, (size_t)(size - at), &frame);
        else
            groups++;
    }
    return at + snprintf(out + at, (size_t)(size - at), "end\t%d\t%ld\n", walk.end, groups);
}

LIVE long live_walk(char *out, long size)
{
    return live_walk_of((uintptr_t)live_own(), out, size);
}

/* One thread state a line: address, interpreter's id, tid, pthread, active, dead. */
LIVE long live_states(char *out, long size)
{
    struct states_walk walk;
    struct state state;
    long at = 0;

    states_begin(&walk, &target);
    while (states_next(&walk, &state))
        at += snprintf(out + at, (size_t)(size - at), "%lu\t%ld\t%d\t%lu\t%d\t%d\n", (unsigned long)state.address, (long)state.interp_id,
                       state.tid, (unsigned long)state.pthread, state.active, state.dead);
    return walk.broken ? -1 : at;
}

/* The line of each code unit, from a copy of the table or in place. */
LIVE long live_lines(uintptr_t object, int32_t *lines, long units, int in_place)
{
    struct py_code code;
    struct py_bytes table;

    if (!code_read(&target, object, &code) || !objects_bytes(&target, code.linetable, &table) || code.units != units ||
        table.length > sizeof characters || !guard_copy(characters, table.data, table.length))
        return -1;
    for (int32_t i = 0; i < units; i++)
        lines[i] = in_place ? code_line_in_place(&target, &code, 2 * i)
                            : code_line(characters, table.length, code.firstlineno, 2 * i);
    return units;
}

LIVE long live_is_code(uintptr_t object)
{
    struct py_code code;
    return code_read(&target, object, &code) && !code_is_init_shim(&target, &code);
}

LIVE long live_identity(uintptr_t object, uint64_t *identity)
{
    struct py_code code;
    if (!code_read(&target, object, &code))
        return -1;
    *identity = code.identity;
    return code.units;
}

static int do_nothing(void *arg)
{
    return 0;
}

static volatile int posted;

static void *post(void *arg)
{
    int (*add)(int (*)(void *), void *) = (int (*)(int (*)(void *), void *))symbol("Py_AddPendingCall");
    add(do_nothing, NULL);
    posted = 1;
    return NULL;
}

static void pause_ms(long ms)
{
    struct timespec time = {0, ms * 1000000};
    nanosleep(&time, NULL);
}

static void *lock_object(void)
{
    if (target.layout.pending_lock_is_byte)
        return (void *)(target.runtime + (uintptr_t)target.layout.runtime_pending_lock);
    uintptr_t base = target.runtime + (uintptr_t)target.layout.runtime_pending_lock;
    if (target.layout.interp_pending_lock != LAYOUT_NONE) {
        uint64_t interp;
        guard_word(target.runtime + (uintptr_t)target.layout.runtime_interpreters_main, &interp);
        base = (uintptr_t)interp + (uintptr_t)target.layout.interp_pending_lock;
    }
    return *(void **)base;
}

static void hold(void *lock)
{
    if (target.layout.pending_lock_is_byte)
        ((void (*)(void *))symbol("PyMutex_Lock"))(lock);
    else
        ((int (*)(void *, int))symbol("PyThread_acquire_lock"))(lock, 1);
}

static void let_go(void *lock)
{
    ((void (*)(void *))symbol(target.layout.pending_lock_is_byte ? "PyMutex_Unlock" : "PyThread_release_lock"))(lock);
}

/* Proves that it is this lock which Py_AddPendingCall takes: while we hold it,
 * another thread's call waits. Bits: 1 free before, 2 taken while held, 4 the
 * call waited, 8 it returned afterwards, 16 free again. */
LIVE long live_pending_lock(void)
{
    pthread_t thread;
    long result = states_pending_lock_is_free(&target);
    if (!result)
        return 0;

    void *lock = lock_object();
    posted = 0;
    hold(lock);
    result |= !states_pending_lock_is_free(&target) << 1;
    pthread_create(&thread, NULL, post, NULL);
    pause_ms(50);
    result |= !posted << 2;
    let_go(lock);
    pthread_join(thread, NULL);
    result |= posted << 3;
    return result | states_pending_lock_is_free(&target) << 4;
}
