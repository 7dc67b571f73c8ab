/* SPDX-License-Identifier: MIT
 *
 * rests: the groups in which tasks rest (sampler/registry.h), by what their tasks have
 * in common: what they stand on and the shape of their own chain. So all of a group
 * have the same stacks, and a tick places one of them and adds the time of all.
 *
 * Numbers of groups are small, begin at 1, and are used again once a group is empty.
 *
 * Runs in: [sampler].
 */
#ifndef APROF_SAMPLER_RESTS_H
#define APROF_SAMPLER_RESTS_H

#include <stdbool.h>
#include <stdint.h>

#include "sampler/profile.h"
#include "sampler/registry.h"

struct rest {
    struct rest_key key;
    uint64_t shape;         /* registered.shape of all of them */
    uint32_t placed;        /* the task that was placed for all of them in this tick; NO_TASK: none */
    profile_stack kept_base, kept_stack; /* as those of a task (registered) */
    uint32_t next;          /* in its bucket, or free */
    bool used;
};

struct rests {              /* zeroed: no groups */
    struct rest *rest;
    uint32_t *bucket;
    uint32_t top, room;     /* numbers given out so far end before top */
    uint32_t buckets, count, free;
};

void rests_free(struct rests *rests);

/* The group of these; a new one, if there is none. 0: no memory. */
uint32_t rests_of(struct rests *rests, const struct rest_key *key, uint64_t shape);
/* The first group with this number or a higher one; 0: none. */
uint32_t rests_from(const struct rests *rests, uint32_t group);
struct rest *rests_at(const struct rests *rests, uint32_t group);
/* It is empty: its number is free. */
void rests_release(struct rests *rests, uint32_t group);
/* The profile was cleared: stacks are void. */
void rests_forget_stacks(struct rests *rests);

#endif
