/* SPDX-License-Identifier: MIT
 *
 * executors: what an event loop waits for while a worker thread of an executor runs a
 * function for it (run_in_executor, to_thread, anyio.to_thread.run_sync).
 *
 * concurrent.futures: the worker's frame of _WorkItem.run holds the item, whose future (of
 * concurrent.futures) has a callback that hands the result on to the future of asyncio
 * that somebody awaits: the same way that the interpreter itself will go.
 *
 * anyio (3 and 4): the worker's frame of WorkerThread.run has, as long as it runs what it was
 * sent, that future itself in a variable.
 *
 * Runs in: [handler] on the worker itself, [sampler] on one that stands still. No
 * allocation, bounded. Sources: Lib/concurrent/futures/{thread,_base}.py,
 * Lib/asyncio/futures.py (_chain_future), the same from 3.11 to 3.15 in what is read here;
 * anyio/_backends/_asyncio.py of 3.6.2, 4.15.1 and 4.16.0.
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
/* The same of anyio's WorkerThread.run. */
enum executors_found executors_anyio_future(const struct py_target *target, const struct asyncio *asyncio, uintptr_t frame, const struct py_code *code,
                                            uintptr_t *future);

#endif
