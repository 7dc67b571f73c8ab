/* SPDX-License-Identifier: MIT
 *
 * threads: every thread of the process, by birth number.
 *
 * The interposed pthread_create gives each thread a record and a birth number;
 * a key destructor of ours notes its end (CPU clock, time). So a thread shorter
 * than a tick is accounted for, and a tid that the kernel uses again is never
 * mistaken for the thread that had it before. Threads that were there before
 * us, or came by a raw clone, are adopted by the sampler.
 *
 * Records live in one mapping made at start and are never unmapped: signals
 * come late. Each has a byte space (the ring of its CPU ticks) that costs
 * memory only once touched, and address space once one of its neighbours is taken. Life of a record, with who moves it on:
 *
 *   FREE --(parent, in pthread_create)--> BORN --(the thread)--> LIVE
 *   FREE --(sampler, adopting)----------------------------------> LIVE
 *   LIVE --(the thread's key destructor, or the sampler when the tid is gone)--> ENDED
 *   ENDED --(sampler, drained)--> FREE
 *   BORN --(parent, pthread_create failed)--> FREE
 *
 * Lock-free; no allocation. An empty pool is counted; such a thread is found
 * and adopted when the pool has room again.
 *
 * A record is marked when there is something about it for the sampler: its thread
 * was born, has ended, left something in its space. So nobody need look at thousands
 * of records to find the few that matter.
 */
#ifndef APROF_HOOKS_THREADS_H
#define APROF_HOOKS_THREADS_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#define THREADS_MAX 8192 /* records; threads beyond it run without one, counted */

enum thread_state { THREAD_FREE, THREAD_BORN, THREAD_LIVE, THREAD_ENDED };

enum thread_hears { HEARS_UNKNOWN, HEARS_YES, HEARS_NO };

struct thread {
    _Atomic uint32_t state;
    uint32_t index;              /* place in the pool; never changes */
    _Atomic uint64_t birth;      /* birth number, from 1; new at every BORN/adoption */
    _Atomic uint32_t next_free;
    bool adopted;                /* not born through our pthread_create */
    bool beside;                 /* one of threads_alive() */

    pid_t tid;                   /* valid from LIVE on */
    void *(*start)(void *);      /* what pthread_create was given, else NULL */
    void *arg;
    uint64_t born_ns, born_cpu;  /* clock_now/clock_self at LIVE */
    uint64_t ended_ns, ended_cpu;/* valid from ENDED on */

    uint8_t *space;              /* this record's own bytes */
    uint32_t space_size;         /* a power of two */

    _Atomic uint8_t hears;       /* enum thread_hears: whether it blocks the timers' signal */
    _Atomic int timer;           /* hooks/timer.h id, -1: none */
    _Atomic uintptr_t tstate;    /* the PyThreadState last known to be this thread's, 0: unknown */
    uint64_t origin;             /* for the user of the record: what is known of where it began, 0: nothing */
    _Atomic uint64_t handler_ns; /* time spent in our handler on this thread (its CPU clock) */
    uint64_t handler_usual_ns;   /* the same of one call, an average; the thread's own business */
    _Atomic uint8_t slower;      /* how often the period of its timer was doubled */
    _Atomic uint32_t dropped_full, dropped_torn, dropped_fault, dropped_masked; /* by the handler */
};

/* [loader] Makes the pool. space_first is what each of the first 64 records
 * gets, the others get a quarter. Before this call, and in processes that hold
 * no Python, threads are started without a record. 0 or a negative errno. */
int threads_start(uint32_t space_first);
bool threads_started(void);

/* [application thread] Called by the thread itself when it becomes LIVE, before
 * its start routine (to arm its timer without waiting for the sampler). One
 * callback; set it before threads are born, NULL to stop. Async-signal-safe code only. */
void threads_on_birth(void (*born)(struct thread *self));

/* [application thread] Called by the last thread of the process, the main one
 * being at its end too, as late as libc lets us: when it is gone libc ends the
 * process, unless a thread of ours is still there, which it counts like any
 * other. Not called where threads are or were about whose end we do not see
 * (older than threads_start, or without a record). */
void threads_on_last(void (*last)(void));

/* The interposed pthread_create's work: starts the thread with a record. */
int threads_create(pthread_t *thread, const pthread_attr_t *attr, void *(*start)(void *), void *arg);

/* [handler] The calling thread's own record, NULL when it has none or is at its
 * end. An adopted thread gets to know its record by threads_claim(record) in
 * its first CPU tick; false when the record is not this thread's. */
struct thread *threads_self(void);
bool threads_claim(struct thread *record);

/* The LIVE record of the calling thread, looked for by tid where it does not know
 * it yet (an adopted one before its first CPU tick). Async-signal-safe. */
struct thread *threads_find_self(void);

/* Whether a cookie that came with a signal points at a record of the pool. */
struct thread *threads_from_cookie(void *cookie);

/* Marks it, after what there is to see has been stored. Async-signal-safe. */
void threads_mark(struct thread *record);

/* [sampler] */
/* The marks of 64 records, from index 64 * word on, a bit each; they are gone then. */
uint64_t threads_take_marks(uint32_t word);

/* NULL: the pool is empty (counted), or the thread may be one that is being born
 * or at its end, or is gone: ask again at the next tick. The tid of a LIVE record
 * gives that record. */
struct thread *threads_adopt(pid_t tid);
bool threads_are_full(void);                     /* nobody can be adopted */
struct thread *threads_at(uint32_t index);       /* any state; NULL beyond threads_high() */
uint32_t threads_high(void);                     /* one more than the highest index ever used */
uint64_t threads_births(void);                   /* changes when a thread is born or adopted */
void threads_end(struct thread *record, uint64_t ns, uint64_t cpu); /* an adopted thread's tid is gone */
void threads_release(struct thread *record);     /* ENDED -> FREE */

uint32_t threads_alive(void);                    /* beside the process's first, or the one left of a fork: of those born
                                                    through us and not at their end */
uint64_t threads_without_record(void);

/* [fork, child] Only the calling thread is left: its record (if any) stays LIVE
 * with its new tid and empty space, all others become FREE. */
void threads_postfork_child(void);

#endif
