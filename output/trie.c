/* SPDX-License-Identifier: MIT
 *
 * Nodes lie in an array, 0 being the root above all stacks; an open table finds the
 * child of a node by its frame. Spool files are sorted, so most stacks begin as the
 * one before: what they share is kept and not looked up again.
 */
#include "output/trie.h"

#include <stdlib.h>
#include <string.h>

#include "output/tool.h"

#define FIRST_SLOTS 1024u
#define NO_NODE 0u /* the root is nobody's child */

struct node {
    uint32_t parent, frame;
    uint32_t last; /* the child that was come to last; NO_NODE: none yet */
    uint64_t self[TRIE_SIDES];
};

/* Of the stack before: where each frame ends in its text, and its node. */
struct step {
    size_t end;
    uint32_t node;
};

struct trie {
    struct frames *frames;
    struct node *nodes;
    size_t count, room;
    uint32_t *slots; /* node, or NO_NODE; a power of two, at most half taken */
    uint32_t slots_count;
    uint64_t sum[TRIE_SIDES];
    char *text;
    size_t length, text_room;
    struct step *steps;
    size_t depth, steps_room;
};

struct trie *trie_new(struct frames *frames)
{
    struct trie *trie = tool_alloc(1, sizeof *trie);
    trie->frames = frames;
    trie->slots_count = FIRST_SLOTS;
    trie->slots = tool_alloc(FIRST_SLOTS, sizeof *trie->slots);
    trie->nodes = tool_grow(NULL, 0, &trie->room, sizeof *trie->nodes);
    trie->count = 1;
    return trie;
}

void trie_free(struct trie *trie)
{
    if (!trie)
        return;
    free(trie->nodes);
    free(trie->slots);
    free(trie->text);
    free(trie->steps);
    free(trie);
}

/* ---- nodes ---------------------------------------------------------------- */

static uint32_t *slot_of(const struct trie *trie, uint32_t parent, uint32_t frame)
{
    uint64_t hash = ((uint64_t)parent << 32 | frame) * 0x9e3779b97f4a7c15u;
    uint32_t mask = trie->slots_count - 1;
    for (uint32_t at = (uint32_t)(hash >> 32) & mask;; at = (at + 1) & mask) {
        const struct node *node = &trie->nodes[trie->slots[at]];
        if (trie->slots[at] == NO_NODE || (node->parent == parent && node->frame == frame))
            return &trie->slots[at];
    }
}

static void slots_double(struct trie *trie)
{
    free(trie->slots);
    trie->slots_count *= 2;
    trie->slots = tool_alloc(trie->slots_count, sizeof *trie->slots);
    for (uint32_t node = 1; node < trie->count; node++)
        *slot_of(trie, trie->nodes[node].parent, trie->nodes[node].frame) = node;
}

static uint32_t child_make(struct trie *trie, uint32_t *slot, uint32_t parent, uint32_t frame)
{
    uint32_t node = *slot = (uint32_t)trie->count;
    trie->nodes = tool_grow(trie->nodes, trie->count, &trie->room, sizeof *trie->nodes);
    trie->nodes[trie->count++] = (struct node){ .parent = parent, .frame = frame };
    if (trie->count * 2 > trie->slots_count)
        slots_double(trie);
    return node;
}

/* Most nodes have one child, which was made next to them: the table, which lies all
 * over memory, is asked where stacks part. */
static uint32_t child_of(struct trie *trie, uint32_t parent, uint32_t frame)
{
    uint32_t node = trie->nodes[parent].last;
    if (node != NO_NODE && trie->nodes[node].frame == frame)
        return node;
    uint32_t *slot = slot_of(trie, parent, frame);
    node = *slot != NO_NODE ? *slot : child_make(trie, slot, parent, frame);
    trie->nodes[parent].last = node;
    return node;
}

/* ---- stacks --------------------------------------------------------------- */

/* Keeps the frames that both texts begin with; returns where the next one starts. */
static size_t steps_keep(struct trie *trie, const char *stack, size_t length)
{
    size_t least = length < trie->length ? length : trie->length, same = 0, depth = 0;
    while (same < least && stack[same] == trie->text[same])
        same++;
    /* A frame is shared where it ends at the same place in both. */
    while (depth < trie->depth && trie->steps[depth].end <= same &&
           (trie->steps[depth].end == length || stack[trie->steps[depth].end] == ';'))
        depth++;
    trie->depth = depth;
    return depth ? trie->steps[depth - 1].end + 1 : 0;
}

static void text_keep(struct trie *trie, const char *stack, size_t length)
{
    if (length > trie->text_room) {
        free(trie->text);
        trie->text_room = 2 * length;
        trie->text = tool_alloc(trie->text_room, 1);
    }
    memcpy(trie->text, stack, length);
    trie->length = length;
}

void trie_add(struct trie *trie, enum trie_side side, const char *stack, size_t length, uint64_t count)
{
    size_t start = steps_keep(trie, stack, length);
    uint32_t node = trie->depth ? trie->steps[trie->depth - 1].node : 0;
    while (start <= length) {
        const char *next = memchr(stack + start, ';', length - start);
        size_t end = next ? (size_t)(next - stack) : length;
        node = child_of(trie, node, frames_add(trie->frames, stack + start, end - start));
        trie->steps = tool_grow(trie->steps, trie->depth, &trie->steps_room, sizeof *trie->steps);
        trie->steps[trie->depth++] = (struct step){ end, node };
        start = end + 1;
    }
    text_keep(trie, stack, length);
    trie->nodes[node].self[side] += count;
    trie->sum[side] += count;
}

uint64_t trie_sum(const struct trie *trie, enum trie_side side)
{
    return trie->sum[side];
}

size_t trie_count(const struct trie *trie)
{
    return trie->count - 1;
}

/* ---- the walk ------------------------------------------------------------- */

/* For each node its first child and its next sibling, in order. */
struct family {
    uint32_t *child, *sibling;
};

/* Counting sort: nodes by the rank of their frames. */
static uint32_t *nodes_by_rank(const struct trie *trie, const uint32_t *ranks)
{
    uint32_t frames = frames_count(trie->frames);
    uint32_t *starts = tool_alloc(frames + 1u, sizeof *starts), *sorted = tool_alloc(trie->count, sizeof *sorted);
    for (uint32_t node = 1; node < trie->count; node++)
        starts[ranks[trie->nodes[node].frame] + 1]++;
    for (uint32_t rank = 0; rank < frames; rank++)
        starts[rank + 1] += starts[rank];
    for (uint32_t node = 1; node < trie->count; node++)
        sorted[starts[ranks[trie->nodes[node].frame]]++] = node;
    free(starts);
    return sorted;
}

/* From the last to the first, each before its siblings. */
static struct family family_make(const struct trie *trie, const uint32_t *ranks)
{
    struct family family = { tool_alloc(trie->count, sizeof(uint32_t)), tool_alloc(trie->count, sizeof(uint32_t)) };
    uint32_t *sorted = nodes_by_rank(trie, ranks);
    for (size_t at = trie->count - 1; at-- > 0;) {
        uint32_t node = sorted[at], parent = trie->nodes[node].parent;
        family.sibling[node] = family.child[parent];
        family.child[parent] = node;
    }
    free(sorted);
    return family;
}

/* The node after this one, NO_NODE past the last, and how many levels its parent is
 * above this one. */
static uint32_t next_of(const struct trie *trie, const struct family *family, uint32_t node, uint32_t *up)
{
    *up = 0;
    if (family->child[node] != NO_NODE)
        return family->child[node];
    for (; node != NO_NODE; node = trie->nodes[node].parent) {
        ++*up;
        if (family->sibling[node] != NO_NODE)
            return family->sibling[node];
    }
    return NO_NODE;
}

struct trie_row *trie_rows(const struct trie *trie, const uint32_t *ranks)
{
    struct family family = family_make(trie, ranks);
    struct trie_row *rows = tool_alloc(trie->count, sizeof *rows);
    size_t made = 0;
    uint32_t up = 0;
    for (uint32_t node = family.child[0]; node != NO_NODE; node = next_of(trie, &family, node, &up)) {
        struct trie_row *row = &rows[made++];
        *row = (struct trie_row){ .frame = trie->nodes[node].frame, .up = up };
        memcpy(row->self, trie->nodes[node].self, sizeof row->self);
    }
    free(family.child);
    free(family.sibling);
    return rows;
}
