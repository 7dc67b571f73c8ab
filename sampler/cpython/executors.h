/* SPDX-License-Identifier: MIT
 *
 * executors: what an event loop waits for while a worker thread of an executor runs a
 * function for it (run_in_executor, to_thread).
 *
 * The worker's frame of _WorkItem.run holds the item, whose future (of
 * concurrent.futures) has a callback that hands the result on to the future of asyncio
 * that somebody awaits: the same way that the interpreter itself will go.
 *
 * Runs in: [handler] on the worker itself, [sampler] on one that stands still. No
 * allocation, bounded. Sources: Lib/concurrent/futures/{thread,_base}.py,
 * Lib/asyncio/futures.py (_chain_future), the same from 3.11 to 3.15 in what is read here.
 */
#ifndef APROF_SAMPLER_CPYTHON_EXECUTORS_H
#define APROF_SAMPLER_CPYTHON_EXECUTORS_H

#include <stdint.h>

#include "sampler/cpython/asyncio.h"

enum executors_found {
    EXECUTORS_NONE,   /* nobody's loop waits for it */
    EXECUTORS_FUTURE, /* this future, which is pending */
    EXECUTORS_TORN    /* it cannot be told */
};

/* frame and code: of _WorkItem.run, with what it called above it. */
enum executors_found executors_future(const struct py_target *target, const struct asyncio *asyncio, uintptr_t frame, const struct py_code *code,
                                      uintptr_t *future);

#endif
