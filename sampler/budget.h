/* SPDX-License-Identifier: MIT
 *
 * budget: how much CPU sampling may use, and the rates that follow from it.
 *
 * Allowed is APROF_OVERHEAD per cent of the CPU that the application itself used
 * (the process's, less our thread's and our handlers'), and never more than a
 * twentieth of one core, however many the machine has. Three things spend it:
 *   ticks     our thread's wake-ups, at a rate that is decided here;
 *   tasks     its rounds over all asyncio tasks, at a share of a core that is
 *             decided here (sampler/tasks.h makes a pause of it);
 *   handlers  CPU ticks, which keep to a share of their own thread (sampler/tick.h).
 * Ticks and tasks may each use half of what is allowed, and what the other leaves.
 *
 * Every half second (sooner when much was spent) what was used is compared with what
 * was allowed, signed: what was saved or overdrawn, up to a bound, is made up for over
 * the next seconds. A rate moves half of the way to where it should be, never by more
 * than a factor of two, and not for less than a tenth. It stays between the least and
 * the one asked for. What the least rate costs an application that does next to nothing
 * is nobody's debt. A process begins with a credit, since reading what is new is dear.
 *
 * Pure: no clocks, no memory; the caller tells times. Runs in: [sampler].
 */
#ifndef APROF_SAMPLER_BUDGET_H
#define APROF_SAMPLER_BUDGET_H

#include <stdbool.h>
#include <stdint.h>

#include "sampler/counters.h"

struct budget_options {
    uint32_t overhead;    /* per cent; 0: nothing is adapted */
    uint32_t asked, least; /* ticks a second; least <= asked */
};

/* CPU so far, in nanoseconds. tasks is a part of sampler. */
struct budget_spent {
    uint64_t process, sampler, tasks, handlers;
};

struct budget {
    struct budget_options options;
    uint64_t reviewed_ns;       /* the last review */
    struct budget_spent spent;  /* at that moment */
    int64_t balance_ns;         /* saved; negative: overdrawn */
    uint32_t rate_mhz;          /* ticks in 1,000 seconds */
    uint32_t tasks_ppm;         /* of a core, for rounds over tasks */
};

/* A new life (also after a fork): the rate asked for, a credit. */
void budget_begin(struct budget *budget, const struct budget_options *options, uint64_t now_ns, const struct budget_spent *spent);

/* At each tick; does nothing until a review is due. What changed and why is counted. True: a review. */
bool budget_review(struct budget *budget, uint64_t now_ns, const struct budget_spent *spent, struct budget_counters *counters);

/* The shortest time between two ticks. */
uint64_t budget_interval(const struct budget *budget);

/* Share of a core for rounds over tasks, in millionths. */
uint32_t budget_tasks_share(const struct budget *budget);

#endif
