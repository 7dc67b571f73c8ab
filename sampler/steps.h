/* SPDX-License-Identifier: MIT
 *
 * steps: how long the steps of a thread's event loop are, from looks at which step it is in
 * (sampler/cpython/turns.h).
 *
 * A step is from the moment at which the loop began a handle (the first one of a turn: at
 * which it left its selector) to the end of that handle. Two looks that find the same one
 * prove that it went on between them, looks that do not bound it: so each has a shortest and
 * a longest time that it can have been. Nothing is guessed: a step whose turn began before
 * the look before (by a clock that is not ours, then) is not followed.
 *
 * Runs in: [sampler]. Plain data. Times are CLOCK_MONOTONIC, in nanoseconds.
 */
#ifndef APROF_SAMPLER_STEPS_H
#define APROF_SAMPLER_STEPS_H

#include <stdbool.h>
#include <stdint.h>

#include "sampler/cpython/turns.h"
#include "sampler/profile.h"

/* Of one thread. Zeroed, but for looked_ns. */
struct steps {
    struct turns turns;
    struct turns_step step;    /* which it was in at the last look that could tell, ... */
    bool in;                   /* ... if any that can be followed */
    uint64_t earliest, latest; /* it began between these, ... */
    uint64_t seen_ns;          /* ... and went on until then at least */
    uint64_t looked_ns;        /* the last look that could tell, at first when the thread was born or found */
    profile_stack stack;       /* seen in it, mostly; PROFILE_ROOT: none */
    uint32_t votes;            /* ... so much more often than others */
    uint64_t voted_ns;         /* when it was seen in a stack last */
};

/* A step that is over, or as far as it has come. */
struct steps_time {
    uint64_t least_ns, most_ns; /* 0: there is none */
    profile_stack stack;
};

struct steps_look {
    enum turns_found found;
    struct turns_step step;
    uint64_t from, to; /* when it was taken */
};

/* Takes note of a look. *over: the step that was found over by it. False: it cannot be told which step this is. */
bool steps_take(struct steps *steps, const struct steps_look *look, struct steps_time *over);
/* Instead of a look: the thread has not run since the last one. */
void steps_stand(struct steps *steps, uint64_t now);
/* A stack that the thread was seen in at that moment. */
void steps_saw(struct steps *steps, profile_stack stack, uint64_t ns);
/* The step that it is in, as far as it has come. */
struct steps_time steps_so_far(const struct steps *steps, uint64_t now);

#endif
