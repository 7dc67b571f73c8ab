/* SPDX-License-Identifier: MIT
 *
 * story_live: one tick over all threads of the Python that loads this with ctypes,
 * by the modules of the library, with either reader, and with names interned as the
 * library has them or read and made anew for each frame, as it would be without.
 * For story.py. Called without the GIL (ctypes.CDLL); all other threads must wait.
 */
#include <time.h>

#define LIVE_REAL_GUARD
#include "hooks/mem.h"
#include "sampler/cpython/objects.h"
#include "sampler/cpython/states.h"
#include "sampler/stacks.h"
#include "tests/live/live.h"

enum { DEPTH = 512, TABLE_LONGEST = 1 << 16, NAME_BYTES = 4 * TEXT_NAME_LONGEST, PERIOD_NS = 10000000 };

long story_start(int by_syscall);
long story_tick(int interned, unsigned long *out);

static struct stacks stacks;
static struct stack_copy *copies[2];

/* Before live_open, which reads by the guard. 0 or a negative errno. */
LIVE long story_start(int by_syscall)
{
    long error = mem_init(64 << 20);
    if (!error)
        error = codes_start();
    if (!error)
        error = guard_start(by_syscall ? GUARD_SYSCALL : GUARD_COPY);
    stacks = (struct stacks){.profile = profile_new(), .target = &target};
    copies[0] = stacks_new_copy(DEPTH);
    copies[1] = stacks_new_copy(DEPTH);
    if (!error && (!stacks.profile || !copies[0] || !copies[1]))
        error = -ENOMEM;
    if (!error)
        stacks.unknown = profile_intern(stacks.profile, "[unknown]", 9, 0);
    return error;
}

static uint64_t cpu_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

/* A str's characters; false: unreadable or too long. */
static bool copy_str(uintptr_t object, struct py_str *str, char *to)
{
    return objects_str(&target, object, str) && (size_t)str->length * str->kind <= NAME_BYTES &&
           guard_copy(to, str->data, (size_t)str->length * str->kind);
}

/* What codes_learn and codes_frame do, every time. */
static profile_frame frame_anew(const struct stack_entry *entry)
{
    static char raw_name[NAME_BYTES], raw_path[NAME_BYTES];
    static uint8_t table[TABLE_LONGEST];
    char name[TEXT_NAME_MAX], path[TEXT_NAME_MAX], text[TEXT_FRAME_MAX];
    struct py_code code;
    struct py_str name_str, path_str;
    struct py_bytes lines;
    if (!code_read(&target, entry->code, &code) || !copy_str(code.qualname, &name_str, raw_name) || !copy_str(code.filename, &path_str, raw_path) ||
        !objects_bytes(&target, code.linetable, &lines) || lines.length > sizeof table || !guard_copy(table, lines.data, lines.length))
        return stacks.unknown;
    size_t name_length = text_name(name, sizeof name, raw_name, name_str.length, name_str.kind);
    size_t path_length = text_path(path, sizeof path, raw_path, path_str.length, path_str.kind);
    size_t skip = text_shorten(&stacks.paths, path, path_length);
    int32_t line = code_line(table, lines.length, code.firstlineno, entry->lasti);
    size_t length = text_frame(text, sizeof text, name, name_length, path + skip, path_length - skip, line > 0 ? line : code.firstlineno);
    return profile_intern(stacks.profile, text, length, 0);
}

static profile_stack push_anew(const struct stack_copy *copy)
{
    profile_stack stack = PROFILE_ROOT;
    for (uint32_t i = copy->frames; i-- > 0;)
        stack = profile_push(stacks.profile, stack, frame_anew(&copy->entry[i]));
    return stack;
}

/* Two passes, as of a thread that stands still. */
static bool read_twice(uintptr_t state)
{
    return stacks_is_whole(stacks_capture(copies[0], &target, state, 0)) && stacks_is_whole(stacks_capture(copies[1], &target, state, 0)) &&
           stacks_equal(copies[0], copies[1]);
}

/* CPU of one tick in ns; out: threads, frames, frames without a name. */
LIVE long story_tick(int interned, unsigned long *out)
{
    struct states_walk walk;
    struct state state;
    uint64_t began = cpu_ns();
    out[0] = out[1] = out[2] = 0;
    states_begin(&walk, &target);
    while (states_next(&walk, &state)) {
        if (state.dead || !read_twice(state.address))
            continue;
        if (interned && !stacks_resolve(&stacks, copies[0]))
            out[2]++;
        profile_stack stack = interned ? stacks_intern(&stacks, copies[0]) : push_anew(copies[0]);
        profile_add(stacks.profile, stack, METRIC_WALL, PERIOD_NS);
        out[0]++;
        out[1] += copies[0]->frames;
    }
    return (long)(cpu_ns() - began);
}
