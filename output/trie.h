/* SPDX-License-Identifier: MIT
 *
 * trie: stacks as a tree that shares their beginnings, each node with what the
 * stacks that end there have (self), on up to two sides: a profile, and what it is
 * compared with.
 *
 * [tool] only.
 */
#ifndef APROF_OUTPUT_TRIE_H
#define APROF_OUTPUT_TRIE_H

#include <stddef.h>
#include <stdint.h>

#include "output/frames.h"

enum trie_side { TRIE_NEW, TRIE_BASE, TRIE_SIDES };

struct trie;

/* The frames are the caller's; tries of several metrics can share them. */
struct trie *trie_new(struct frames *frames);
void trie_free(struct trie *trie);

/* A stack, frames joined by ';', root first. Quick when it begins as the one before. */
void trie_add(struct trie *trie, enum trie_side side, const char *stack, size_t length, uint64_t count);

uint64_t trie_sum(const struct trie *trie, enum trie_side side);
size_t trie_count(const struct trie *trie);

/* One node of a walk that comes to each node before those below it. up: how many
 * levels its parent is above the node that came before it (before the first came the
 * root above all stacks, which has no row); 0: that one is its parent. */
struct trie_row {
    uint32_t frame, up;
    uint64_t self[TRIE_SIDES];
};
/* ranks[frame] orders siblings. Returns trie_count rows, which the caller frees. */
struct trie_row *trie_rows(const struct trie *trie, const uint32_t *ranks);

#endif
