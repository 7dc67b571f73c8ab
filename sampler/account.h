/* SPDX-License-Identifier: MIT
 *
 * account: whose time it was. The arithmetic behind the laws of `cpu` and `wall`.
 *
 * One account a thread. CPU time is booked up to a value of the thread's own CPU
 * clock; what the thread used beyond it is outstanding, until a stack that was
 * seen while it ran takes it: its next CPU tick, or a look from outside while it
 * runs. What passed without CPU time is waiting, until a stack in which it stood
 * still takes it. Both go to `wall`, the first also to `cpu`. So, at any moment,
 *
 *     cpu booked + outstanding  = the thread's CPU clock since it was opened
 *     wall booked + outstanding + waiting = the time since it was opened
 *
 * At the end of a window or of the thread nothing stays outstanding: the rest is
 * spread over the thread's own CPU stacks of that window, or goes to one of
 * other threads as short (sampler/crowd.h), or to [unseen cpu]
 * below the stack it was last found in; waiting that no stack can take goes to
 * [unseen wall] there. Never to a waiting stack.
 *
 * Pure arithmetic: no clock, no memory of others. Runs in: [sampler]. All
 * times in nanoseconds.
 *
 * A stack in which the thread runs a task has a twin (profile_twin): the stack of
 * that task. Whatever goes to `wall` there goes to `task` on the twin: a running
 * task's time is its thread's. Whatever goes to `wall` where a thread was seen to hold
 * the GIL (sampler/seen.h) goes to `gil` as well, and is added up where it was seen to
 * wait for it; where it was seen to handle an exception it goes to `exc`. What nobody
 * saw goes to neither.
 */
#ifndef APROF_SAMPLER_ACCOUNT_H
#define APROF_SAMPLER_ACCOUNT_H

#include <stdbool.h>
#include <stdint.h>

#include "sampler/profile.h"
#include "sampler/seen.h"

/* CPU stacks that one thread's rest is spread over: the heaviest of the window. */
#define ACCOUNT_TALLIES 48

struct account {
    uint64_t looked_ns;   /* wall clock of the last look */
    uint64_t looked_cpu;  /* CPU clock at the last look */
    uint64_t booked_cpu;  /* CPU clock up to which CPU is booked */
    int64_t waiting_ns;   /* not given to a stack yet; below 0: the clocks' own noise */
    uint32_t tallies;
    struct {
        struct seen seen;
        uint32_t times; /* seen so */
        uint64_t ns;
    } tally[ACCOUNT_TALLIES];
};

/* Where booked time goes. */
struct account_book {
    struct profile *profile;
    uint32_t metrics;          /* bit mask of enum metric: what is recorded */
    profile_frame unseen_cpu, unseen_wall;
    uint64_t spread_ns, unseen_ns; /* sums, for the counters */
    uint64_t gil_wait_ns, gil_unknown_ns, gil_wall_ns; /* where `gil` is recorded: that threads waited for the GIL, may have, of so
                                                          much that they lived */
};

void account_open(struct account *account, uint64_t now, uint64_t cpu);

/* A look at the clocks: what passed since the last one. */
void account_look(struct account *account, uint64_t now, uint64_t cpu);

static inline uint64_t account_outstanding(const struct account *account)
{
    return account->looked_cpu > account->booked_cpu ? account->looked_cpu - account->booked_cpu : 0;
}

/* A stack seen while the thread ran, at this value of its CPU clock: takes all
 * that is outstanding up to there. */
void account_run(struct account *account, struct account_book *book, uint64_t cpu, struct seen seen);

/* A stack in which the thread stands still: takes the waiting. */
void account_wait(struct account *account, struct account_book *book, struct seen seen);

/* A part of the waiting, or what there is of it. */
void account_wait_part(struct account *account, struct account_book *book, uint64_t ns, struct seen seen);

/* It stood still in one stack at the look before and stands in another one now. When
 * it went on is not known, so each takes half. (Looks come apart while nothing runs,
 * and close together again once something does: were all given to the later one, a
 * short wait after a long one would have much of the long one's time.) */
void account_wait_between(struct account *account, struct account_book *book, struct seen before, struct seen seen);

/* The end of a window or of the thread, after a look: books every rest. last:
 * the stack it was last found in. */
void account_settle(struct account *account, struct account_book *book, profile_stack last);

/* The same in mid-life: what it saw the thread run in is still known after it. */
void account_settle_rest(struct account *account, struct account_book *book, profile_stack last);

/* After a look: what is outstanding of a thread that was never seen to run, on the stack that was chosen for it. */
void account_give(struct account *account, struct account_book *book, struct seen chosen);

/* A thread that lived and died between two looks. chosen: what is to have its CPU, on PROFILE_ROOT: nothing is;
 * below: what is known of where it began. */
void account_unseen(struct account_book *book, uint64_t lifetime_ns, uint64_t cpu_ns, struct seen chosen, profile_stack below);

#endif
