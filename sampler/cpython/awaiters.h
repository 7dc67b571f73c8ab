/* SPDX-License-Identifier: MIT
 *
 * awaiters: the tasks that wait for a future or task now.
 *
 * The way up is what the interpreter itself will follow when the future is done:
 * its callbacks. A callback is either the wake-up of a task that awaits this very
 * future, or belongs to something that stands between: gather's outer future, the
 * future that wait() or a TaskGroup waits for, shield's, the queue of
 * as_completed. Those are followed upward in their turn, so a gather of shielded
 * gathers is found as well. Which callback leads where is a table (awaiters.c).
 *
 * An edge must close: a task counts only while its own _fut_waiter is pending and
 * is the future through which it was reached. So a gather() that nobody awaits
 * yet, a TaskGroup whose body still runs, and a callback left from before are no
 * edges, whatever `awaited_by` (3.14+) says.
 *
 * Runs in: [handler] [sampler]. No allocation, no recursion, bounded.
 *
 * Sources: Lib/asyncio/{tasks,taskgroups,staggered}.py, Modules/_asynciomodule.c
 * (task_wakeup), anyio/_backends/_asyncio.py.
 */
#ifndef APROF_SAMPLER_CPYTHON_AWAITERS_H
#define APROF_SAMPLER_CPYTHON_AWAITERS_H

#include <stdbool.h>
#include <stdint.h>

#include "sampler/cpython/asyncio.h"
#include "sampler/cpython/containers.h"

enum {
    AWAITERS_LEVELS = 8,      /* futures between a task and its awaiter, at most */
    AWAITERS_CALLBACKS = 4096 /* callbacks, and futures of queues, looked at in one walk */
};

struct awaiter {
    uintptr_t task;    /* it waits ... */
    uintptr_t through; /* ... for this future, which is pending: what was asked for, or what stands between */
};

struct awaiters_walk {
    const struct py_target *target;
    const struct asyncio *asyncio;
    struct awaiters_level {
        uintptr_t future;
        uintptr_t callback0;    /* 0: none */
        struct items callbacks; /* tuples (callback, context) */
        uint32_t next;          /* of all of them */
    } level[AWAITERS_LEVELS];
    uint32_t levels, looked;
    uint32_t turn;
    bool cut; /* a bound was hit: there may be more */
};

/* [sampler] Functions are known by address once they were compared by name: forgets them, so that one that was
 * read while it was being made or freed is not taken for another for ever. Once a second, say. */
void awaiters_forget(void);

/* Starts at a future or task that was read as pending. */
void awaiters_begin(struct awaiters_walk *walk, const struct py_target *target, const struct asyncio *asyncio, const struct future *future);
/* Before the first one: begins with another callback of each future, as this number has
 * it, and comes to those before it at the end; for callers that do not look at all. */
void awaiters_turn(struct awaiters_walk *walk, uint32_t turn);
/* The next task that waits for it; one that is reached in two ways comes twice. */
bool awaiters_next(struct awaiters_walk *walk, struct awaiter *awaiter);

/* The future that a callback leads to, where it is a function that keeps it for
 * life (gather's, wait's, shield's): all whose callback it is lead there. 0: no such. */
uintptr_t awaiters_between(const struct py_target *target, uintptr_t callback);

/* Where a callback leads, as far as it cannot change: equal for two callbacks, they lead
 * to the same tasks, whichever these are; the same for one at two times, it has not become another. */
struct awaiters_lead {
    uint32_t route; /* 0: to nobody, ever */
    bool direct;    /* it wakes a task up that waits for that very future; else equal leads lead through the same futures */
    uintptr_t key;  /* the task that it wakes up, or the object that what stands between is found from */
};
/* False: it cannot be told so (of a task written in Python, unreadable). */
bool awaiters_lead(const struct py_target *target, uintptr_t callback, struct awaiters_lead *lead);

/* The number of the function of this qualified name (a str), if it is one that waits for members of its own with a
 * plain future: wait() and TaskGroup; 0: another. */
int awaiters_aggregate(const struct py_target *target, uintptr_t qualname);
/* Whether none of the members that a frame of such a function waits for is pending:
 * then its task only waits for the loop. */
bool awaiters_members_are_done(const struct py_target *target, const struct asyncio *asyncio, int aggregate, uintptr_t frame,
                               const struct py_code *code);

/* Whether the future that a task waits for is an aggregate (gather's outer future)
 * none of whose members is pending: the task only waits for the loop. */
bool awaiters_aggregate_is_done(const struct py_target *target, const struct asyncio *asyncio, uintptr_t future);

#endif
