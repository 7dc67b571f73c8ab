/* SPDX-License-Identifier: MIT
 *
 * states: the runtime, its interpreters and their thread states, from memory.
 * Runs in: [handler] [sampler]. No lock is taken (HEAD_LOCK is never touched):
 * a list that changes meanwhile is walked with bounds and plausibility checks,
 * and what is read may be stale; callers prove what they use.
 */
#ifndef APROF_SAMPLER_CPYTHON_STATES_H
#define APROF_SAMPLER_CPYTHON_STATES_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "sampler/cpython/target.h"

#define STATES_INTERPRETERS_MAX 256
#define STATES_THREADS_MAX 65536

enum runtime_phase { RUNTIME_ABSENT, RUNTIME_STARTING, RUNTIME_READY, RUNTIME_FINALIZING };

/* STARTING: not initialised yet (or finalised: it may start again). READY:
 * initialised, main interpreter and at least one thread state there. */
enum runtime_phase states_phase(const struct py_target *target);

struct state { /* one PyThreadState, as read */
    uintptr_t address, interp;
    pid_t tid;            /* native_thread_id, or who has it since a fork; 0: not bound yet */
    uintptr_t pthread;    /* thread_id */
    uint64_t unique_id;   /* tstate->id: never used again within an interpreter */
    int64_t interp_id;
    bool active;          /* 3.12+: swapped in (holds the GIL); 3.11: is the GIL's holder */
    bool dead;            /* finalizing or cleared, or nothing can be read */
};

struct states_walk {
    const struct py_target *target;
    uintptr_t interp, next;
    int64_t interp_id;
    uint32_t interps, threads;
    bool broken; /* a bound was hit or a pointer was unreadable: the list is not complete */
};

void states_begin(struct states_walk *walk, const struct py_target *target);
bool states_next(struct states_walk *walk, struct state *state);

/* The rest of the interpreter that the walk is in is passed over. New thread states come
 * to the front of its list (CPython: Python/pystate.c, add_threadstate). */
static inline void states_pass_over(struct states_walk *walk)
{
    walk->next = 0;
}

/* Reads one thread state again. False: unreadable. */
bool states_read(const struct py_target *target, uintptr_t address, struct state *state);

/* The interpreter of a thread state; 0: unreadable. One read. */
uintptr_t states_interp(const struct py_target *target, uintptr_t address);

/* Whether this is the main interpreter. */
bool states_is_main(const struct py_target *target, uintptr_t interp);

/* Whether this thread state is now the one that tid/self runs on (both ids match). */
bool states_is_of(const struct py_target *target, uintptr_t address, pid_t tid, pthread_t self);

/* Whether the thread state holds its interpreter's GIL now. */
bool states_holds_gil(const struct py_target *target, uintptr_t address);

/* The thread state that took the interpreter's GIL last, whether or not it holds it now; 0:
 * none, or unreadable. While it is the same one and its thread uses no CPU, nobody has
 * taken that GIL in between: whoever takes it is the last one then. */
uintptr_t states_gil_taker(const struct py_target *target, uintptr_t interp);

/* How often another thread than the one before has taken the interpreter's GIL: equal at two
 * times at which a thread has it, no other had it in between. False: 3.11, or unreadable. */
bool states_gil_switches(const struct py_target *target, uintptr_t interp, uint64_t *switches);

/* Whether nobody holds the GIL of this thread state's interpreter now: then a
 * thread that stands still does not wait for it. False when unreadable. */
bool states_gil_is_free(const struct py_target *target, uintptr_t address);

/* Whether a futex at this address belongs to the GIL of this thread state's interpreter:
 * who waits there waits for the GIL, or for another to take it. */
bool states_is_gil_wait(const struct py_target *target, uintptr_t address, uintptr_t futex);

/* [handler] Finds the calling thread's own state among at most `look` of the
 * newest ones; an active one wins. 0: none. */
uintptr_t states_find_own(const struct py_target *target, pid_t tid, pthread_t self, uint32_t look);

/* [fork, child] The calling thread was `before` in the parent. A program that forks
 * without telling its interpreter (uWSGI, extensions) leaves it that id, or one
 * from further up, in the thread's states for good: from now on they are this
 * thread's all the same, by that id and its pthread_t together. */
void states_postfork_child(const struct py_target *target, pid_t before, pthread_t self);

/* Whether there is an interpreter with a thread. Before the first start, and after
 * the last end, Py_AddPendingCall follows null pointers (3.12+), and nobody counts threads. */
bool states_has_python(const struct py_target *target);

/* Whether the lock of the pending calls is free now, so that Py_AddPendingCall
 * works and cannot block: needed in handlers and fork handlers. */
bool states_pending_lock_is_free(const struct py_target *target);

#endif
