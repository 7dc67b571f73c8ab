/* SPDX-License-Identifier: MIT
 *
 * crowd: where short-lived threads were seen to work, for those of them that nobody saw.
 *
 * A server that starts a thread for each request has thousands that live for less
 * than a period of CPU ticks. What they do is ticked in proportion to its CPU
 * (sampler/tick.c, random_first), so the ticks of all of them together say how their CPU
 * is shared: stacks with so many ticks should have so much of it. What a ticked thread
 * used is on its own stacks already, and more of it is a long thread's than a short
 * one's, since that is met more often. So what an unseen one used goes where most is
 * missing. The sum is the threads' own; shares are right as those of a sample are.
 *
 * Threads of one kind speak for each other: those that began with the same function.
 * Of what one began with that is known, nobody else's stack may have its time.
 *
 * A table of stacks; where it is full, the one with fewest ticks gives way and leaves
 * its count (Metwally's Space-Saving). Pure; bounded. Runs in: [sampler].
 */
#ifndef APROF_SAMPLER_CROWD_H
#define APROF_SAMPLER_CROWD_H

#include <stdint.h>

#include "sampler/seen.h"

#define CROWD_STACKS 256

struct crowd {
    uint32_t count;
    struct {
        struct seen seen;
        uint64_t kind;
        uint64_t ticks;
        uint64_t ns;    /* CPU that it has */
    } places[CROWD_STACKS];
};

/* The window's end: stacks are void. */
void crowd_clear(struct crowd *crowd);

/* A thread of this kind that lived shortly was ticked so often there, and this CPU of its is on the stack. */
void crowd_add(struct crowd *crowd, struct seen seen, uint64_t kind, uint64_t ticks, uint64_t ns);

/* Where a thread of this kind that was not seen is to have used this CPU; kind 0: it is not
 * known. On PROFILE_ROOT: none of these was seen yet. */
struct seen crowd_place(struct crowd *crowd, uint64_t kind, uint64_t ns);

#endif
