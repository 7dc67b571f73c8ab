/* SPDX-License-Identifier: MIT
 *
 * asyncio_live: sampler/cpython/asyncio.c in a library that a Python loads with
 * ctypes; asyncio_live.py compares. Called with the GIL held: every answer must
 * be exact.
 */
#include "tests/live/live.h"

#include <pthread.h>
#include <stddef.h> /* offsetof */
#include <string.h>

#include "sampler/cpython/asyncio.h"
#include "sampler/cpython/states.h"

long live_reset(void);
long live_find(void);
long live_complete(void);
long live_complaint(char *out, long size);
long live_parts(uint64_t *out);
long live_read(uintptr_t object, uint64_t *out);
long live_state(uintptr_t object);
long live_waiter(uintptr_t task, uint64_t *out);
long live_name(uintptr_t task, char *out, long size);
long live_loop(void);
long live_current(uint64_t *tasks, long max);
long live_tasks(uint64_t *tasks, long max, int of_dead_threads);

static struct asyncio_search search;
static struct asyncio asyncio;

static bool own_state(struct state *state)
{
    return states_read(&target, states_find_own(&target, gettid(), pthread_self(), STATES_THREADS_MAX), state);
}

LIVE long live_reset(void)
{
    search = (struct asyncio_search){0};
    asyncio = (struct asyncio){0};
    return 0;
}

/* 1 found, 0 not yet, -1 it is not what it must be. */
LIVE long live_find(void)
{
    struct state state;
    if (!own_state(&state))
        return -2;
    bool found = asyncio_find(&search, &target, state.interp, &asyncio);
    return search.mismatch ? -1 : found;
}

LIVE long live_complete(void)
{
    return asyncio_complete(&target, &asyncio);
}

LIVE long live_complaint(char *out, long size)
{
    strncpy(out, search.found, (size_t)size);
    return (long)strlen(search.found);
}

/* Everything up to the members that only say what was looked at. */
LIVE long live_parts(uint64_t *out)
{
    memcpy(out, &asyncio, offsetof(struct asyncio, modules));
    return offsetof(struct asyncio, modules) / sizeof *out;
}

LIVE long live_read(uintptr_t object, uint64_t *out)
{
    struct future future;

    if (!asyncio_read(&target, &asyncio, object, &future))
        return 0;
    const uint64_t all[] = {future.kind,      future.python,     future.state,             future.type,   future.loop, future.callback0,
                            future.callbacks, future.awaited_by, future.awaited_by_is_set, future.waiter, future.coro};
    memcpy(out, all, sizeof all);
    return future.address == object;
}

LIVE long live_state(uintptr_t object)
{
    enum future_state state;
    return asyncio_state(&target, &asyncio, object, &state) ? (long)state : -1;
}

LIVE long live_waiter(uintptr_t task, uint64_t *out)
{
    uintptr_t waiter, coro;
    if (!asyncio_waiter(&target, &asyncio, task, &waiter, &coro))
        return 0;
    out[0] = waiter;
    out[1] = coro;
    return 1;
}

LIVE long live_name(uintptr_t task, char *out, long size)
{
    return asyncio_name(&target, &asyncio, task, out, (uint32_t)size);
}

LIVE long live_loop(void)
{
    struct state state;
    return own_state(&state) ? (long)asyncio_running_loop(&target, state.address) : -1;
}

LIVE long live_current(uint64_t *tasks, long max)
{
    struct state state;
    return own_state(&state) ? (long)asyncio_current(&target, &asyncio, state.address, tasks, (uint32_t)max) : -1;
}

/* How many were put at tasks; -1: a walk was broken. */
static long walk_all(struct tasks_walk *walk, uint64_t *tasks, long count, long max)
{
    uintptr_t task;
    while (count >= 0 && count < max && asyncio_tasks_next(walk, &task))
        tasks[count++] = task;
    return walk->broken ? -1 : count;
}

static long of_threads(uint64_t *tasks, long max)
{
    struct states_walk walk;
    struct tasks_walk list;
    struct state state;
    long count = 0;

    states_begin(&walk, &target);
    while (states_next(&walk, &state))
        if (state.interp == asyncio.interp && asyncio_tasks_of_thread(&list, &target, &asyncio, state.address))
            count = walk_all(&list, tasks, count, max);
    return count;
}

/* All tasks of this interpreter, or only those in the interpreter's own list. */
LIVE long live_tasks(uint64_t *tasks, long max, int of_dead_threads)
{
    struct tasks_walk walk;
    long count = of_dead_threads ? 0 : of_threads(tasks, max);

    if (asyncio_tasks_of_interp(&walk, &target, &asyncio))
        count = walk_all(&walk, tasks, count, max);
    for (uint32_t i = 0; !of_dead_threads && i < ASYNCIO_SETS; i++)
        if (asyncio_tasks_of_set(&walk, &target, &asyncio, i))
            count = walk_all(&walk, tasks, count, max);
    return count;
}
