/* SPDX-License-Identifier: MIT
 *
 * glance: whether a suspended task is as it was, from as few words as prove it.
 *
 * A glance is a hash over the words that a task's stack is made of: its state,
 * callbacks, what it waits for and whether that is pending; of each coroutine the
 * object, its state, code and version, instruction, and what it awaits; where that
 * is asked for (exceptions_ask_for_tasks), also the type of what it handles. Equal
 * glances are equal stacks: there is nothing else in a stack. It costs about a
 * third of reading the chain, and the tasks of a batch are read side by side, so
 * that their memory is fetched at once.
 *
 * Not every task can be glanced at: one that executes, waits through an async
 * generator or for a future that is more than a future (gather's), or is written in
 * Python gives 0.
 *
 * Runs in: [sampler]. Reads through hooks/guard.h. Sources: as coros.h and asyncio.h.
 */
#ifndef APROF_SAMPLER_CPYTHON_GLANCE_H
#define APROF_SAMPLER_CPYTHON_GLANCE_H

#include <stdbool.h>
#include <stdint.h>

#include "sampler/cpython/asyncio.h"

enum { GLANCE_BATCH = 16 };

struct glance {
    uintptr_t task;
    const struct asyncio *asyncio;
    uint64_t hash;     /* the result; 0: cannot be glanced at */
    /* while it is taken */
    uintptr_t at;      /* the object to be read next; 0: done */
    uintptr_t waiter;  /* what the task waits for */
    uint32_t links;
};

/* A task goes on only when the future that it waits for is done, and a future that is done
 * stays so. So a task that waits for this future, which is pending, stands where it stood
 * when it began to; provided that it is the same future: one that died may have another
 * at its address (births_future_deaths). Four words instead of a glance. */
struct glance_wait {
    uintptr_t task, future; /* of _asyncio, all of them */
    uintptr_t callback0;    /* its only callback; 0: none */
};
/* Whether the task waits for this future now, and has this callback and no other. */
bool glance_still_waits(const struct py_target *target, const struct glance_wait *wait);
/* Fetches what that needs, some time before. */
void glance_fetch_wait(const struct py_target *target, const struct glance_wait *wait);

/* Fetches what the first look at a task needs: some time before it is in a batch. */
void glance_fetch(const struct py_target *target, uintptr_t task);

/* Fills in the hashes of `count` (at most GLANCE_BATCH) glances, whose task and asyncio are set. */
void glance_batch(const struct py_target *target, struct glance *glance, uint32_t count);

#endif
