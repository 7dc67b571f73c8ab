/* SPDX-License-Identifier: MIT
 *
 * A row of a walk says how far up to go, so the way to it is kept as the walk goes on.
 */
#include "output/stacks.h"

#include <stdlib.h>

#include "output/tool.h"

uint32_t *stacks_ranks(const struct frames *frames)
{
    uint32_t count = frames_count(frames), *sorted = frames_sorted(frames), *ranks = tool_alloc(count + 1u, sizeof *ranks);
    for (uint32_t rank = 0; rank < count; rank++)
        ranks[sorted[rank]] = rank;
    free(sorted);
    return ranks;
}

void stacks_open(struct stacks *stacks, const struct trie *trie, const struct frames *frames)
{
    uint32_t *ranks = stacks_ranks(frames);
    *stacks = (struct stacks){ .rows = trie_rows(trie, ranks), .rows_count = trie_count(trie) };
    free(ranks);
}

bool stacks_next(struct stacks *stacks)
{
    while (stacks->next < stacks->rows_count) {
        const struct trie_row *row = &stacks->rows[stacks->next++];
        stacks->depth -= row->up;
        stacks->path = tool_grow(stacks->path, stacks->depth, &stacks->room, sizeof *stacks->path);
        stacks->path[stacks->depth++] = row->frame;
        stacks->frames = stacks->path;
        stacks->count = row->self[TRIE_NEW];
        if (stacks->count)
            return true;
    }
    return false;
}

void stacks_rewind(struct stacks *stacks)
{
    stacks->next = 0;
    stacks->depth = 0;
}

void stacks_close(struct stacks *stacks)
{
    free(stacks->rows);
    free(stacks->path);
}
