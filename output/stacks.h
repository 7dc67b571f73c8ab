/* SPDX-License-Identifier: MIT
 *
 * stacks: the distinct stacks of a trie, one after the other, in the order of their
 * frames' names.
 *
 * Use: stacks_open, stacks_next until it is false, perhaps stacks_rewind and again,
 * stacks_close.
 *
 * [tool] only.
 */
#ifndef APROF_OUTPUT_STACKS_H
#define APROF_OUTPUT_STACKS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "output/frames.h"
#include "output/trie.h"

struct stacks {
    const uint32_t *frames; /* numbers, root first; until the next call */
    size_t depth;
    uint64_t count;         /* what the stack has itself; never 0 */
    /* its own */
    struct trie_row *rows;
    size_t rows_count, next;
    uint32_t *path;
    size_t room;
};

/* frames: those of the trie. Both may go once it is open. */
void stacks_open(struct stacks *stacks, const struct trie *trie, const struct frames *frames);
bool stacks_next(struct stacks *stacks);
void stacks_rewind(struct stacks *stacks);
void stacks_close(struct stacks *stacks);

/* Of each frame its place in the order of names, for trie_rows. The caller frees it. */
uint32_t *stacks_ranks(const struct frames *frames);

#endif
