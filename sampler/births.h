/* SPDX-License-Identifier: MIT
 *
 * births: who made which task.
 *
 * CPython does not record it, so the making of tasks is hooked: tp_init of
 * _asyncio.Task (the slot, the pointer in its __init__ descriptor, and the slots
 * of subclasses that exist already). The hook notes, before it calls the
 * original, the coroutines that were executing on the thread, innermost first.
 *
 * An address is no identity: a coroutine is freed and another made in its place
 * at once. So each coroutine that has made a task gets an entry in a table of
 * makers, with a serial number, until it dies: tp_dealloc of the coroutine types
 * is hooked too, and takes the entry away. It looks at one byte to see that a
 * dying coroutine made nothing, as nearly all have.
 *
 *   makers   set-associative by address, a cache line of ways a bucket; written
 *            by application threads that hold their GIL, read by the sampler
 *   ring     births on their way to the sampler: many producers (interpreters
 *            with a GIL of their own), one consumer
 *   deaths   of futures, counted by where they were: a task goes on only when the
 *            future that it waits for is done, and such a future is never pending
 *            again. So one that waits for the address of before, where a future is
 *            pending and none has died, has not moved (sampler/registry.h)
 *
 * Both hooks allocate nothing, take no lock and cannot fail: what has no room is
 * counted, and such a task has no creator. Plain loads are enough in them: they
 * run at a call, on the thread whose frames they read. Once installed they stay.
 *
 * A generator-based coroutine (types.coroutine) is not followed to its death, so
 * it is left out of the chain: its awaiters stand for it.
 */
#ifndef APROF_SAMPLER_BIRTHS_H
#define APROF_SAMPLER_BIRTHS_H

#include <stdbool.h>
#include <stdint.h>

#include "sampler/cpython/target.h"

/* A coroutine that made a task: its entry's number and its serial. Never 0. */
typedef uint64_t maker_id;

enum { BIRTH_MAKERS = 30 }; /* coroutines kept of one chain, innermost first */

struct birth {
    uintptr_t task;
    uint64_t number;                 /* births_number() was at most this before it */
    uint32_t count;                  /* of maker[]; 0: made outside of any coroutine */
    maker_id maker[BIRTH_MAKERS];
};

/* [loader] Maps table and ring: address space only, touched as it is used. 0 or a
 * negative errno. thread_state: the interpreter's function that answers the calling
 * thread's state without a check (3.13+: PyThreadState_GetUnchecked, before:
 * _PyThreadState_UncheckedGet); target must stay where it is. */
int births_start(const struct py_target *target, void *(*thread_state)(void));

/* Hooks a Task type and its subclasses, and the coroutine types once. Only plain
 * reads of memory and aligned stores, so it may run [handler], on a thread that
 * holds the GIL of the type's interpreter. Idempotent; also hooks subclasses that
 * came since. False: something is not what it should be (another tp_init than the
 * one hooked before, no __init__ in the type's dict): nothing was changed. */
bool births_hook(uintptr_t task_type);
/* [sampler] Whether this type and all its subclasses are hooked. */
bool births_is_hooked(uintptr_t task_type);

/* [handler] The task that was made last of a coroutine at this address, as far as it
 * is remembered; 0: not. A hint: the caller asks the task whether it is so. */
uintptr_t births_task_of(uintptr_t coroutine);

/* [handler] Grows with every birth: one that comes after has a `number` of at least this. */
uint64_t births_number(void);

/* --- [sampler] --- */

/* The oldest birth not yet taken; false: none. Births of tasks that are gone, as another one
 * was born at the same address before they were taken, are left out, but none of those that
 * came between births_hold and births_release. A table of a fixed size finds them, so a few
 * may stay. */
bool births_next(struct birth *birth);
/* Around the reading of tasks: which of two at one address a reading was of is told by both
 * births. Take what waits after the first of the two and before the first reading. */
void births_hold(void);
void births_release(void);
/* Whether the coroutine lives. Ask after reading it: an answer of true says that
 * what was read before was this coroutine's. */
bool births_is_alive(maker_id maker);
/* Its address; 0: dead. */
uintptr_t births_coroutine(maker_id maker);
/* Whether deaths of this Future type's objects are counted, those of its subclasses
 * written in Python among them. Hooked with the Task type whose base it is. */
bool births_counts_futures(uintptr_t future_type);
/* Another number than before: a future at this address may have died since. Ask before
 * what is to be kept is read, and again after what is compared with it. */
uint32_t births_future_deaths(uintptr_t future);
/* The memory of the number: to be fetched some time before it is asked for. */
const void *births_future_place(uintptr_t future);
/* Births that found no room, in the ring or among the makers; only ever grows. */
uint64_t births_lost(void);
/* Makers in the table now: coroutines that live and made a task. */
uint32_t births_makers(void);
/* Called by a hook when the ring is half full: to wake the sampler. May change no errno. */
void births_on_half(void (*call)(void));

/* [fork, child] What is in the ring is void; the makers stay (they live in the child too). */
void births_postfork_child(void);

#endif
