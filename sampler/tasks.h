/* SPDX-License-Identifier: MIT
 *
 * tasks: the tick over all asyncio tasks, for the metrics `task` and `exc`.
 *
 * Every pending task that neither runs nor waits for another task is a leaf. Of the
 * time between two ticks each leaf of the first gets half, on the stacked stack that
 * it had (sampler/lineage.h), and each leaf of the second the other half, on the one
 * that it has: when it went on, was born or ended between them is not known, so the
 * sums are right on average, whatever the lifetimes and however far apart the ticks.
 * (Since its birth only, each task would lose half a tick.) What could not be read in
 * one piece is counted, and its time comes with the next reading; should it have ended
 * by then, on its own chain without those that it stood on (torn_awaiter).
 *
 * A running task is not ticked here: its time is its thread's (profile_twin), in
 * the stack that its thread was seen in.
 *
 * Where it is asked for (exceptions_ask_for_tasks), each task that is suspended while it
 * handles an exception has its time in `exc` as well, on the same stack with that on it;
 * also one that waits for other tasks, which is no leaf: it is the one that handles it.
 *
 * Only tasks whose loop runs in a thread are shown: nothing wakes the others.
 *
 * Runs in: [sampler].
 */
#ifndef APROF_SAMPLER_TASKS_H
#define APROF_SAMPLER_TASKS_H

#include <stdbool.h>
#include <stdint.h>

#include "sampler/dump.h"
#include "sampler/stacks.h"
#include "sampler/window.h"

struct tasks_options {
    const struct py_target *target;
    uint32_t depth;    /* frames kept of one stack */
    bool creators;     /* the making of tasks is hooked */
    bool metric;       /* `task` is recorded; `exc` where exceptions_ask_for_tasks says so. Neither: no tasks are read */
    bool clock_precise; /* thread CPU clocks prove that a thread stood still */
    /* Has the making of tasks of this type hooked, by a thread that holds the GIL of its interpreter; soon, if at all. */
    void (*hook)(uintptr_t task_type, uintptr_t interp);
};

/* One thread, as the tick over threads left it. */
struct tasks_thread {
    uintptr_t tstate, interp;
    uint32_t tid;
    uint64_t cpu;          /* its CPU clock when it was looked at */
    profile_stack driver;  /* the frames that drive its loop, if it runs one; PROFILE_ROOT: not known now */
    bool driver_sure;      /* else it is the whole stack, ... */
    bool stands;           /* ... in which the thread stands now */
};

struct tasks;

/* NULL: no memory. */
struct tasks *tasks_new(const struct tasks_options *options, uint64_t now);
void tasks_free(struct tasks *tasks);

/* Whether the last tick found that nothing ran since the one before (or there are no tasks): as long as it is
 * so, no tick is needed. In its place: adds what passed until now. */
bool tasks_are_at_rest(const struct tasks *tasks);
void tasks_rest(struct tasks *tasks, struct window *window, uint64_t now);

/* Before the threads are looked at: finds asyncio where it has come since, has the
 * making of tasks hooked, learns of births. */
void tasks_prepare(struct tasks *tasks, const struct tasks_thread *threads, uint32_t count, struct stacks *stacks, uint64_t now);

/* Whether asyncio is being imported: the next look should come soon, before tasks are made. */
bool tasks_in_haste(const struct tasks *tasks, uint64_t now);

/* The share of a core, in millionths, that ticks may use: what one takes decides when the next may come, a second
 * later at most. */
void tasks_keep_to(struct tasks *tasks, uint32_t share_ppm);

/* The tick, after the threads were looked at. One that comes too early for its share of a core does nothing, unless it
 * must (the end of a window). */
void tasks_tick(struct tasks *tasks, const struct tasks_thread *threads, uint32_t count, struct stacks *stacks, struct window *window,
                uint64_t now, bool must);

/* Adds all pending tasks to a dump that has all threads already, right after a tick, with their stacks and whatever
 * was read as one piece; each for itself, so those that rest are woken. Adds no time. */
void tasks_dump(struct tasks *tasks, const struct tasks_thread *threads, uint32_t count, struct stacks *stacks, struct dump *dump,
                uint64_t now);

/* What a running task that nobody awaits stands on: the chain of its creator, while
 * that lives; PROFILE_ROOT: nothing, so on its thread's own frames. births: births_number()
 * when it was seen to run, since another task may be at its address by now. */
profile_stack tasks_base(struct tasks *tasks, uintptr_t task, uint64_t births);

/* The profile was cleared: stacks are void. Keeps the names of tasks (markers_keep). */
void tasks_forget_stacks(struct tasks *tasks);

#endif
