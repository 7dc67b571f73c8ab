/* SPDX-License-Identifier: MIT
 *
 * coros: coroutines, generators and async generators as objects, and the chain
 * of what each one awaits, outermost first.
 *
 * Runs in: [handler] [sampler]. No allocation, no recursion, bounded. What a
 * suspended coroutine awaits lies on its own value stack (which slot, and how it
 * is told from a bare yield, depends on the version: struct layout). Between a
 * coroutine and the next one stand wrapper objects, which are followed:
 *
 *   coroutine_wrapper       (coro.__await__())         -> the coroutine
 *   async_generator_asend   (async for, anext)         -> the async generator
 *   async_generator_athrow  (athrow, aclose)           -> the async generator
 *   anext_awaitable         (anext with a default)     -> what it wraps
 *   _asyncio.FutureIter     (await future)             -> the future: the end
 *
 * They are known by the names of their types; a class statement that has such a
 * name is not taken for one. Any other object (a Cython coroutine, an iterator
 * written in Python) ends the chain cleanly. Sources: Objects/genobject.c
 * (_PyGen_yf and the structs of the wrappers), Objects/iterobject.c (anext),
 * Modules/_asynciomodule.c (futureiterobject).
 *
 * A coroutine that executes awaits nothing that can be read from it: its callee
 * is on its thread's stack. Its awaiter is found upward: the frame it was sent
 * from (coros_of_frame of the frame's previous).
 */
#ifndef APROF_SAMPLER_CPYTHON_COROS_H
#define APROF_SAMPLER_CPYTHON_COROS_H

#include <stdbool.h>
#include <stdint.h>

#include "sampler/cpython/code.h"
#include "sampler/cpython/target.h"

enum coro_state {
    CORO_CREATED,   /* has not run its first step: stands at its def line */
    CORO_SUSPENDED, /* at a bare yield: awaits nothing */
    CORO_AWAITING,  /* suspended in await, yield from, async for ... */
    CORO_EXECUTING,
    CORO_FINISHED
};

enum coro_kind { CORO_COROUTINE, CORO_GENERATOR, CORO_ASYNC_GENERATOR };

struct coro {
    uintptr_t address;   /* of the object */
    uintptr_t frame;     /* of the frame embedded in it */
    enum coro_kind kind;
    enum coro_state state;
    struct py_code code; /* CORO_FINISHED: address and identity 0, the rest unspecified */
    int32_t lasti;       /* as struct py_frame's; -1: at the def line */
    uintptr_t awaited;   /* CORO_AWAITING: the object on its stack; else 0 */
    uintptr_t previous;  /* CORO_EXECUTING: the frame of Python it was sent from (markers of C are
                            skipped), 0: none; else 0 */
};

/* False: not one of the three types, or unreadable, or absurd (torn). */
bool coros_read(const struct py_target *target, uintptr_t object, struct coro *coro);

/* Only its state, without its code: two reads, on 3.11/3.12 four of a suspended one. False as above. */
bool coros_state(const struct py_target *target, uintptr_t object, enum coro_state *state);

/* The object that a generator-owned frame is embedded in; 0: owned by another, or its type is none of
 * the three. */
uintptr_t coros_of_frame(const struct py_target *target, uintptr_t frame);

enum coros_end {
    COROS_MORE,
    COROS_FUTURE,    /* the innermost awaits walk->awaited, a future (through FutureIter) */
    COROS_OTHER,     /* ... awaits something else: walk->awaited, or 0 (bare yield) */
    COROS_CREATED,   /* the outermost has not begun: it is given out */
    COROS_EXECUTING, /* one of the chain executes: it is given out; its callees are on a thread's stack */
    COROS_FINISHED,  /* the next one has: it is not given out. Not torn: somebody may have closed it */
    COROS_TORN,      /* the pieces do not belong together */
    COROS_FAULT,     /* memory was not readable, or was not what it must be */
    COROS_LIMIT      /* one more than limit, or absurdly many wrappers in a row */
};

struct coros_walk {
    const struct py_target *target;
    uintptr_t next;
    uintptr_t awaited;
    uint32_t taken, limit;
    enum coros_end end;
};

/* Starts at a coroutine or at any awaitable wrapper of the table above. */
void coros_begin(struct coros_walk *walk, const struct py_target *target, uintptr_t object, uint32_t limit);
/* The next one inward; false at the end: walk->end says which. A chain that ends
 * well with exactly limit coroutines ends well. */
bool coros_next(struct coros_walk *walk, struct coro *coro);

#endif
