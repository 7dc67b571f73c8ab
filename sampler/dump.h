/* SPDX-License-Identifier: MIT
 *
 * dump: where all threads and all tasks are at one moment, for somebody who asks
 * (`aprof dump`). Plain data, gathered by sampler/watch.c and sampler/tasks.c with
 * what they read for every tick, written down by output/answer.c.
 *
 * A stack is given with how it is known, and never guessed: a thread that runs while
 * it is looked at has the stack that it was last found in, with its age; a task that
 * changed while it was read has none.
 *
 * Stacks are those of the profile, so a dump is void once that is cleared. What finds
 * no room is counted as left out.
 *
 * Runs in: [sampler]. Everything lives in the profiler's own heap.
 */
#ifndef APROF_SAMPLER_DUMP_H
#define APROF_SAMPLER_DUMP_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "sampler/profile.h"

/* DUMP_STATE(id, word of the file): what a thread or a task does. */
#define DUMP_STATES(X) \
    X(RUNNING, running)     /* it used CPU while it was looked at; a task: its coroutine executes */ \
    X(RUNNABLE, runnable)   /* it stands still, and the kernel would run it */ \
    X(GIL, gil)             /* it waits for the GIL */ \
    X(HOLDS, holds)         /* it waits for something else, with the GIL */ \
    X(WAITING, waiting) \
    X(READY, ready)         /* a task that waits for its loop to get to it */ \
    X(AWAITS, awaits)       /* a task that waits for other tasks */ \
    X(CHANGED, changed)     /* it changed while it was read */

enum dump_state {
#define X(id, word) DUMP_##id,
    DUMP_STATES(X)
#undef X
    DUMP_STATE_COUNT
};

/* How a stack is known. */
#define DUMP_HOWS(X) \
    X(STOOD, stood)     /* read twice, equal, while the thread's CPU clock stood still; age: so long it has, at least */ \
    X(TWICE, twice)     /* read twice, equal; the clock proves nothing here */ \
    X(TICK, tick)       /* from its last CPU tick; age: of that */ \
    X(LAST, last)       /* where it was last seen, by another look; age: of that */ \
    X(READ, read)       /* a task: read twice, equal, with those that it stands on */ \
    X(ALONE, alone)     /* a task: its own chain only; what it stands on changed meanwhile, or is not known */ \
    X(EMPTY, empty)     /* the thread is in no function of Python */ \
    X(UNKNOWN, unknown) /* there is none */

enum dump_how {
#define X(id, word) DUMP_##id,
    DUMP_HOWS(X)
#undef X
    DUMP_HOW_COUNT
};

#define DUMP_NO_AGE UINT64_MAX

struct dump_text { /* in dump.text */
    uint32_t at, length;
};

struct dump_thread {
    pid_t tid;
    uint8_t state, how;
    uintptr_t tstate, interp;
    uint64_t pthread;    /* its pthread_t */
    uint64_t age_ns;     /* DUMP_NO_AGE: not known */
    profile_stack stack; /* PROFILE_ROOT: none */
    struct dump_text name;
};

struct dump_task {
    uint8_t state, how;
    pid_t tid;           /* of the thread whose loop it belongs to; 0: not known */
    uint64_t waits_ns;   /* for the same future, at least; DUMP_NO_AGE: not known */
    uint32_t first_stack, stacks; /* in dump.stack: one for each of its awaiters */
    struct dump_text name;
};

struct dump {
    uint64_t at_us;             /* since the epoch: when it was begun */
    bool tasks_known;           /* they are recorded at all (the metric `task`) */
    struct dump_thread *thread;
    struct dump_task *task;
    profile_stack *stack;
    char *text;
    uint32_t threads, thread_room, tasks, task_room, stacks, stack_room, text_used, text_room;
    uint32_t threads_left, tasks_left; /* left out, for want of time or room */
    uint32_t blind;             /* threads that run and were not found anywhere yet: their next CPU tick will tell */
    uint64_t cpu_ns, deadline_cpu;     /* of our thread: when it began, and when it ends */
    bool (*must_stop)(void);    /* somebody waits for the sampler: give up */
    bool stopped;
};

void dump_begin(struct dump *dump, uint64_t at_us, bool (*must_stop)(void));
void dump_free(struct dump *dump);

/* Whether to give up or, out_of_time, to leave the rest out. */
bool dump_is_stopped(struct dump *dump);
bool dump_is_over_time(const struct dump *dump);

/* Counted as left out when there is no room. A copy. */
void dump_add_thread(struct dump *dump, const struct dump_thread *thread);
void dump_add_task(struct dump *dump, const struct dump_task *task, const profile_stack *stacks, uint32_t count);
/* Length 0: no room. */
struct dump_text dump_keep(struct dump *dump, const char *text, uint32_t length);

/* The name of a thread of this interpreter, if it is in the dump. hint: where to look
 * first, kept from one call to the next. */
void dump_name_thread(struct dump *dump, uintptr_t interp, uint64_t pthread, const char *name, uint32_t length, uint32_t *hint);

/* The thread with this state; 0: it is not in the dump. */
pid_t dump_tid_of(const struct dump *dump, uintptr_t tstate);

#endif
