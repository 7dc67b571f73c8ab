/* SPDX-License-Identifier: MIT */
#include "sampler/rests.h"

#include <string.h>

#include "hooks/mem.h"

enum { FIRST_ROOM = 64 };

void rests_free(struct rests *rests)
{
    mem_free(rests->rest);
    mem_free(rests->bucket);
    *rests = (struct rests){0};
}

static uint64_t mix(uint64_t hash, uint64_t word)
{
    hash = (hash ^ word) * 0xff51afd7ed558ccdu;
    return hash ^ hash >> 32;
}

static uint32_t bucket_of(const struct rests *rests, const struct rest_key *key, uint64_t shape)
{
    uint64_t hash = mix(mix(mix(mix(mix(shape, key->makers_hash), key->loop), key->lead.route), key->lead.key), key->alone);
    return (uint32_t)(hash >> 32) & (rests->buckets - 1);
}

static bool are_equal(const struct rest_key *a, const struct rest_key *b)
{
    return a->makers_hash == b->makers_hash && a->loop == b->loop && a->lead.route == b->lead.route && a->lead.key == b->lead.key &&
           a->alone == b->alone;
}

static void put_into_bucket(struct rests *rests, uint32_t group)
{
    struct rest *rest = &rests->rest[group];
    uint32_t *bucket = &rests->bucket[bucket_of(rests, &rest->key, rest->shape)];
    rest->next = *bucket;
    *bucket = group;
}

/* At least as many buckets as groups. */
static bool grow_buckets(struct rests *rests)
{
    uint32_t buckets = rests->buckets ? rests->buckets * 2 : FIRST_ROOM;
    if (rests->count < rests->buckets)
        return true;
    uint32_t *bucket = mem_zalloc(buckets * sizeof *bucket);
    if (!bucket)
        return rests->buckets != 0; /* longer chains */
    mem_free(rests->bucket);
    rests->bucket = bucket;
    rests->buckets = buckets;
    for (uint32_t group = 1; group < rests->top; group++)
        if (rests->rest[group].used)
            put_into_bucket(rests, group);
    return true;
}

/* Free ones from the top on are void; the top rises when no free one is left only, so none of
 * them comes below it again. */
static uint32_t take_number(struct rests *rests)
{
    uint32_t group;
    while ((group = rests->free) != 0) {
        rests->free = rests->rest[group].next;
        if (group < rests->top)
            return group;
    }
    group = rests->top ? rests->top : 1;
    if (!mem_grow((void **)&rests->rest, &rests->room, group + 1, FIRST_ROOM, sizeof *rests->rest))
        return 0;
    rests->top = group + 1;
    return group;
}

uint32_t rests_of(struct rests *rests, const struct rest_key *key, uint64_t shape)
{
    uint32_t group;
    if (!grow_buckets(rests))
        return 0;
    for (group = rests->bucket[bucket_of(rests, key, shape)]; group; group = rests->rest[group].next)
        if (rests->rest[group].shape == shape && are_equal(&rests->rest[group].key, key))
            return group;
    if (!(group = take_number(rests)))
        return 0;
    rests->rest[group] = (struct rest){.key = *key, .shape = shape, .placed = NO_TASK, .used = true};
    rests->count++;
    put_into_bucket(rests, group);
    return group;
}

uint32_t rests_from(const struct rests *rests, uint32_t group)
{
    for (; group < rests->top; group++)
        if (rests->rest[group].used)
            return group;
    return 0;
}

struct rest *rests_at(const struct rests *rests, uint32_t group)
{
    return &rests->rest[group];
}

void rests_release(struct rests *rests, uint32_t group)
{
    struct rest *rest = &rests->rest[group];
    uint32_t *at = &rests->bucket[bucket_of(rests, &rest->key, rest->shape)];
    while (*at != group)
        at = &rests->rest[*at].next;
    *at = rest->next;
    rest->used = false;
    rest->next = rests->free;
    rests->free = group;
    rests->count--;
    while (rests->top > 1 && !rests->rest[rests->top - 1].used) /* rounds go through all below it */
        rests->top--;
}

void rests_forget_stacks(struct rests *rests)
{
    for (uint32_t group = 1; group < rests->top; group++)
        rests->rest[group].kept_stack = PROFILE_ROOT;
}
