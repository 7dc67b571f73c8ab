/* SPDX-License-Identifier: MIT */
#include "sampler/dump.h"

#include <string.h>

#include "hooks/clock.h"
#include "hooks/mem.h"

enum {
    FIRST_ENTRIES = 64,
    FIRST_BYTES = 4096,
    TASKS_MOST = 200000,
    TEXT_MOST = 4 << 20, /* bytes of names */
    LONGEST_MS = 200     /* CPU of our thread */
};

void dump_begin(struct dump *dump, uint64_t at_us, bool (*must_stop)(void))
{
    memset(dump, 0, sizeof *dump);
    dump->at_us = at_us;
    dump->must_stop = must_stop;
    dump->cpu_ns = clock_self();
    dump->deadline_cpu = dump->cpu_ns + LONGEST_MS * 1000000u;
}

void dump_free(struct dump *dump)
{
    mem_free(dump->thread);
    mem_free(dump->task);
    mem_free(dump->stack);
    mem_free(dump->text);
    memset(dump, 0, sizeof *dump);
}

bool dump_is_stopped(struct dump *dump)
{
    dump->stopped = dump->stopped || dump->must_stop();
    return dump->stopped;
}

bool dump_is_over_time(const struct dump *dump)
{
    return clock_self() > dump->deadline_cpu;
}

void dump_add_thread(struct dump *dump, const struct dump_thread *thread)
{
    if (mem_grow((void **)&dump->thread, &dump->thread_room, dump->threads + 1, FIRST_ENTRIES, sizeof *dump->thread))
        dump->thread[dump->threads++] = *thread;
    else
        dump->threads_left++;
}

void dump_add_task(struct dump *dump, const struct dump_task *task, const profile_stack *stacks, uint32_t count)
{
    if (dump->tasks == TASKS_MOST ||
        !mem_grow((void **)&dump->task, &dump->task_room, dump->tasks + 1, FIRST_ENTRIES, sizeof *dump->task) ||
        !mem_grow((void **)&dump->stack, &dump->stack_room, dump->stacks + count, FIRST_ENTRIES, sizeof *dump->stack)) {
        dump->tasks_left++;
        return;
    }
    dump->task[dump->tasks] = *task;
    dump->task[dump->tasks].first_stack = dump->stacks;
    dump->task[dump->tasks++].stacks = count;
    for (uint32_t i = 0; i < count; i++)
        dump->stack[dump->stacks++] = stacks[i];
}

struct dump_text dump_keep(struct dump *dump, const char *text, uint32_t length)
{
    struct dump_text kept = {dump->text_used, length};
    if (dump->text_used + length > TEXT_MOST ||
        !mem_grow((void **)&dump->text, &dump->text_room, dump->text_used + length, FIRST_BYTES, 1))
        return (struct dump_text){0, 0};
    memcpy(dump->text + dump->text_used, text, length);
    dump->text_used += length;
    return kept;
}

void dump_name_thread(struct dump *dump, uintptr_t interp, uint64_t pthread, const char *name, uint32_t length, uint32_t *hint)
{
    for (uint32_t i = 0; i < dump->threads; i++) {
        uint32_t at = (*hint + i) % dump->threads;
        struct dump_thread *thread = &dump->thread[at];
        if (thread->pthread != pthread || thread->interp != interp)
            continue;
        struct dump_text kept = dump_keep(dump, name, length);
        if (kept.length)
            thread->name = kept;
        *hint = at + 1;
        return;
    }
}

pid_t dump_tid_of(const struct dump *dump, uintptr_t tstate)
{
    for (uint32_t i = 0; i < dump->threads; i++)
        if (dump->thread[i].tstate == tstate)
            return dump->thread[i].tid;
    return 0;
}
