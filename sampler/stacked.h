/* SPDX-License-Identifier: MIT
 *
 * stacked: the Python frames of one thread, leaf first, with the chains of the
 * awaiters of the task that it runs between the task's own frames and those of
 * the loop that runs it.
 *
 * A task's frames are told by address: the innermost group of frames whose
 * outermost one is embedded in a coroutine that a running task was made of. An
 * eager task stands on the frames of its creator, so a thread may run several,
 * one within the other; each is reported where its frames end.
 *
 * Upward from it only edges that close are followed (sampler/cpython/awaiters.h).
 * Where several tasks wait for one, `seed` decides which one this walk shows, all
 * with equal chances; the same seed shows the same. O(depth), however many wait.
 *
 * A worker thread that runs a function for somebody's loop (to_thread, run_in_executor,
 * anyio.to_thread) has the chains of who awaits that between the function's frames and
 * its own, in the same way (sampler/cpython/executors.h); unless it is a loop's itself.
 *
 * Runs in: [handler] on the thread itself, [sampler] on threads that stand
 * still. No allocation, no recursion, bounded.
 */
#ifndef APROF_SAMPLER_STACKED_H
#define APROF_SAMPLER_STACKED_H

#include <stdbool.h>
#include <stdint.h>

#include "sampler/cpython/asyncio.h"
#include "sampler/cpython/frames.h"

enum stacked_kind {
    STACKED_FRAME, /* of the thread */
    STACKED_TASK,  /* a task ends here: its outermost frame was the last one given out */
    STACKED_CHAIN, /* here begins the chain of an awaiter: as many STACKED_INNER follow as `frames` says ... */
    STACKED_INNER, /* ... outermost first */
    STACKED_NAME,  /* where names are asked for (sampler/markers.h), as if it were a frame: what a task's own frames
                      stand on, the name of the task that ends next, or of the one whose chain this is the first of */
    STACKED_CYCLE  /* the awaiters go round in a circle: cut here */
};

struct stacked {
    enum stacked_kind kind;
    struct py_code code; /* STACKED_FRAME, STACKED_INNER */
    int32_t lasti;
    uintptr_t task;      /* STACKED_TASK: the one that ends; STACKED_CHAIN: the awaiter; STACKED_NAME */
    uint32_t frames;     /* STACKED_CHAIN */
    bool inner;          /* STACKED_NAME: of a chain */
};

enum {
    STACKED_RUNNING = 8, /* running tasks of an interpreter that are looked at */
    STACKED_PASSED = 8   /* tasks of a circle of awaiters that each show once; of a larger one some show again */
};

struct stacked_walk {
    struct frames_walk frames;
    const struct asyncio *asyncio;  /* NULL: no tasks here */
    uintptr_t tstate;
    uint64_t seed;
    struct {
        uintptr_t task, root;       /* root: the coroutine that its outermost frame is embedded in */
    } running[STACKED_RUNNING];
    uint32_t runs;
    uintptr_t generator;            /* the last frame's, if one owned it; else 0 */
    uintptr_t ending;               /* the task whose name was given out and whose end was not; 0: none */
    uintptr_t climbing;             /* the task whose awaiter is to be found next; 0: none */
    uintptr_t passed[STACKED_PASSED], slow; /* tasks passed on the way up, to notice a circle */
    uint32_t climbed;
    uint32_t inner;                 /* frames of chains in all */
    uint32_t looked;                /* callbacks looked at in all */
    uintptr_t chain;                /* the next coroutine of the chain that is being given out */
    uint32_t chain_left;
    bool chain_named;               /* its name comes next */
    bool chosen;                    /* one of several awaiters was shown */
    bool foreign;                   /* who awaits it runs in another thread, and may go on while this one stands */
    bool seen;                      /* a task was given out */
    bool torn;                      /* ancestry is missing: it could not be read as one piece */
};

/* [loader] Whether work of executors stands on who awaits it. */
void stacked_stack_work(bool asked);

/* seed: any number. limit: frames of the thread read at most; once the chains have
 * as many, no further awaiter is sought. */
void stacked_begin(struct stacked_walk *walk, const struct py_target *target, const struct asyncio *asyncio, uintptr_t tstate,
                   uint32_t limit, uint64_t seed);
/* The next entry; false at the end: walk->frames.end says which. */
bool stacked_next(struct stacked_walk *walk, struct stacked *entry);

#endif
