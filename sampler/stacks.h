/* SPDX-License-Identifier: MIT
 *
 * stacks: frames as read from memory, to stacks of the profile.
 *
 * A copy is one pass over a thread's frames, leaf first, at most `depth` of
 * them; two passes that are equal between two equal readings of the thread's
 * CPU clock are a stack that stood still. Root first they are pushed onto the
 * profile's tree; what was cut at the root end shows as [truncated N].
 *
 * Runs in: [sampler].
 */
#ifndef APROF_SAMPLER_STACKS_H
#define APROF_SAMPLER_STACKS_H

#include <stdbool.h>
#include <stdint.h>

#include "sampler/codes.h"
#include "sampler/cpython/frames.h"
#include "sampler/profile.h"

struct stack_entry {
    uint64_t identity;
    uintptr_t code;    /* address; 0: the names were settled in the handler */
    int32_t lasti;
    profile_frame frame; /* found by stacks_resolve; 0: not yet */
};

struct stack_copy {
    enum frames_end end;
    uint32_t frames;   /* in entry[] */
    uint32_t cut;      /* more of them, at the root end */
    uint32_t depth;    /* room in entry[] */
    struct stack_entry entry[];
};

/* What a stack is to an event loop; kept with it (profile_stack_flags). */
enum {
    STACK_IN_LOOP = 1, /* it stands on asyncio's _run_once */
    STACK_IDLE = 2     /* it is the loop's own select */
};

struct stacks {
    struct profile *profile;
    struct text_paths paths;
    const struct py_target *target;
    profile_frame unknown;
    uint64_t unreadable; /* frames that became [unknown] */
};

/* Room for a copy of depth frames, from hooks/mem.h. */
struct stack_copy *stacks_new_copy(uint32_t depth);

/* One pass. The result is copy->end: FRAMES_COMPLETE or FRAMES_LIMIT is a stack. */
enum frames_end stacks_capture(struct stack_copy *copy, const struct py_target *target, uintptr_t tstate);
bool stacks_equal(const struct stack_copy *a, const struct stack_copy *b);
bool stacks_is_whole(enum frames_end end);

/* Whether every frame's names are known by now (learning them where they can be
 * read). False: try again later, or intern with [unknown]. */
bool stacks_resolve(struct stacks *stacks, struct stack_copy *copy);
profile_stack stacks_intern(struct stacks *stacks, const struct stack_copy *copy);

#endif
