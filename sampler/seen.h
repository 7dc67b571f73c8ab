/* SPDX-License-Identifier: MIT
 *
 * seen: where a thread was found, and what else is true of it there.
 *
 * The stack has its `cpu` and `wall`; the rest says what of that goes to other
 * metrics as well. Two findings with the same stack are different ones where the
 * rest differs: time that is spread over what was seen keeps it apart.
 *
 * Plain data. Runs in: [sampler].
 */
#ifndef APROF_SAMPLER_SEEN_H
#define APROF_SAMPLER_SEEN_H

#include <stdbool.h>
#include <stdint.h>

#include "sampler/profile.h"

/* The thread and its interpreter's GIL. NEITHER also where nobody asked. UNKNOWN: it stood still
 * without the GIL, which another had, for want of a CPU: in C code, or on its way to the GIL. */
enum seen_gil { SEEN_GIL_NEITHER, SEEN_GIL_HELD, SEEN_GIL_WANTED, SEEN_GIL_UNKNOWN };

struct seen {
    profile_stack stack;
    profile_stack exception; /* the same with [exception TYPE] on it; PROFILE_ROOT: it handles none, or nobody asked */
    uint8_t gil;             /* enum seen_gil */
    bool blocks;             /* it stands still in a step of the event loop that it runs, and not for want of a CPU or of the GIL;
                                false where nobody asked */
};

/* On this stack, of which nothing else is known. */
static inline struct seen seen_at(profile_stack stack)
{
    return (struct seen){.stack = stack};
}

static inline bool seen_is_same(struct seen a, struct seen b)
{
    return a.stack == b.stack && a.exception == b.exception && a.gil == b.gil && a.blocks == b.blocks;
}

#endif
