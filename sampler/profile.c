/* SPDX-License-Identifier: MIT
 *
 * profile: a tree of stacks with their times, in blocks that never move.
 *
 * Frames, nodes and values are numbered; a number is a block and a place in it,
 * so growing copies nothing and a writer's cookies stay where they are. Only
 * nodes to which time was added have values. Both hash tables grow by one
 * bucket an insertion (linear hashing): no tick pays for a rehash, and a table
 * that cannot grow goes on with longer chains.
 */
#include "sampler/profile.h"

#include <string.h>

#include "hooks/mem.h"

#define BLOCK_BITS 9u /* 512 items a block: 10-20 KiB, so that a small service stays small */
#define BLOCK_ITEMS (1u << BLOCK_BITS)
#define TEXT_BLOCK (32u * 1024u - 16u) /* with its head a size class of the heap */
#define BUCKETS_FIRST 1024u
#define NS_PER_US 1000u
#define NONE UINT32_MAX

/* ---- items in blocks ---- */

/* count items lie in the first blocks; blocks hold their addresses. */
struct array {
    void **blocks;
    uint32_t blocks_made, blocks_room;
    uint32_t count;
    uint32_t item_size;
};

static void *heap_take(size_t size)
{
    return mem_has_room(size) ? mem_alloc(size) : NULL;
}

static inline void *array_at(const struct array *array, uint32_t index)
{
    return (char *)array->blocks[index >> BLOCK_BITS] + (size_t)(index & (BLOCK_ITEMS - 1)) * array->item_size;
}

static bool array_directory_grow(struct array *array)
{
    uint32_t room = array->blocks_room ? 2 * array->blocks_room : 16;
    size_t size = room * sizeof *array->blocks;
    void **blocks = mem_has_room(size) ? mem_realloc(array->blocks, size) : NULL;
    if (blocks == NULL)
        return false;
    array->blocks = blocks;
    array->blocks_room = room;
    return true;
}

/* Makes room for one more item; false when there is no memory. */
static bool array_reserve(struct array *array)
{
    if (array->count < array->blocks_made * BLOCK_ITEMS)
        return true;
    if (array->blocks_made == NONE / BLOCK_ITEMS || (array->blocks_made == array->blocks_room && !array_directory_grow(array)))
        return false;
    void *block = heap_take((size_t)BLOCK_ITEMS * array->item_size);
    if (block == NULL)
        return false;
    array->blocks[array->blocks_made++] = block;
    return true;
}

/* After array_reserve: the next item, zeroed. */
static void *array_next(struct array *array, uint32_t *index)
{
    void *item = array_at(array, array->count);
    memset(item, 0, array->item_size);
    *index = array->count++;
    return item;
}

/* Keeps the first block, so that what must always exist needs no memory. */
static void array_clear(struct array *array)
{
    while (array->blocks_made > 1)
        mem_free(array->blocks[--array->blocks_made]);
    array->count = 0;
}

static void array_free(struct array *array)
{
    while (array->blocks_made > 0)
        mem_free(array->blocks[--array->blocks_made]);
    mem_free(array->blocks);
    array->blocks = NULL;
    array->blocks_room = array->count = 0;
}

/* ---- linear hashing: heads of chains that run through the items ---- */

/* Buckets 0 .. base+split-1 exist; those below split, and from base on, are
 * addressed by one more bit of the hash than the others. */
struct table {
    uint32_t *heads;
    uint32_t room, base, split;
};

/* The hash and the chain's next item, for the table of frames and that of nodes. */
typedef uint32_t (*hash_of)(const struct profile *profile, uint32_t item);
typedef uint32_t *(*next_of)(struct profile *profile, uint32_t item);

static uint32_t table_bucket(const struct table *table, uint32_t hash)
{
    uint32_t bucket = hash & (table->base - 1);
    return bucket < table->split ? hash & (2 * table->base - 1) : bucket;
}

static void table_empty(struct table *table)
{
    table->base = BUCKETS_FIRST;
    table->split = 0;
    memset(table->heads, 0xff, BUCKETS_FIRST * sizeof *table->heads);
}

static bool table_start(struct table *table)
{
    table->heads = heap_take(BUCKETS_FIRST * sizeof *table->heads);
    if (table->heads == NULL)
        return false;
    table->room = BUCKETS_FIRST;
    table_empty(table);
    return true;
}

/* A cleared table gives back what a large window needed. */
static void table_clear(struct table *table)
{
    uint32_t *heads = table->room > BUCKETS_FIRST ? mem_realloc(table->heads, BUCKETS_FIRST * sizeof *heads) : NULL;
    if (heads != NULL) {
        table->heads = heads;
        table->room = BUCKETS_FIRST;
    }
    table_empty(table);
}

static bool table_has_room(struct table *table)
{
    if (table->base + table->split < table->room)
        return true;
    size_t size = 2 * (size_t)table->room * sizeof *table->heads;
    uint32_t *heads = table->room < (1u << 30) && mem_has_room(size) ? mem_realloc(table->heads, size) : NULL;
    if (heads == NULL)
        return false;
    table->heads = heads;
    table->room *= 2;
    return true;
}

/* Deals the items of bucket `split` out to it and to the new bucket at the end. */
static void table_split(struct table *table, struct profile *profile, hash_of hash, next_of next)
{
    uint32_t low = NONE, high = NONE;
    for (uint32_t item = table->heads[table->split], after; item != NONE; item = after) {
        uint32_t *link = next(profile, item);
        uint32_t *chain = hash(profile, item) & table->base ? &high : &low;
        after = *link;
        *link = *chain;
        *chain = item;
    }
    table->heads[table->split] = low;
    table->heads[table->base + table->split] = high;
    if (++table->split == table->base) {
        table->base *= 2;
        table->split = 0;
    }
}

static void table_insert(struct table *table, struct profile *profile, uint32_t item, uint32_t items, hash_of hash, next_of next)
{
    if (items > table->base + table->split && table_has_room(table))
        table_split(table, profile, hash, next);
    uint32_t bucket = table_bucket(table, hash(profile, item));
    *next(profile, item) = table->heads[bucket];
    table->heads[bucket] = item;
}

/* ---- the profile ---- */

struct frame {
    const char *text;
    uint32_t length, hash, flags, next;
};

struct node {
    uint32_t parent, frame, next;
    uint32_t value; /* first of its values, NONE without */
    uint32_t flags;
    uint32_t twin;
    uint32_t depth, length; /* frames and bytes of text */
};

/* A node's time in one metric. While changed it is in one list: its metric's, or
 * the returned ones. */
struct value {
    uint64_t ns, cookie[PROFILE_COOKIE_WORDS];
    uint32_t stack, next; /* next value of the same node */
    uint32_t next_changed;
    uint16_t metric;
    bool changed;
};

struct list {
    uint32_t first, last;
};

/* Texts of frames, one after the other. */
struct text_block {
    struct text_block *next;
    uint32_t used, size;
    char bytes[];
};

struct profile {
    struct array frames, nodes, values;
    struct table frame_table, node_table;
    struct text_block *texts;
    size_t texts_size;
    struct list changed[METRIC_COUNT], returned;
    bool in_round; /* between the first change taken and the end of changes */
    uint64_t total_ns[METRIC_COUNT];
    uint32_t stacks[METRIC_COUNT];
    uint64_t overflows;
    uint32_t generation;
    bool frozen;
};

/* Items that always exist. Value m is that of [overflow] in metric m. */
enum { FRAME_NONE, FRAME_OVERFLOW };
enum { NODE_ROOT, NODE_OVERFLOW };
static const char overflow_text[] = "[overflow]";

static const char *const metric_names[] = {
#define METRIC(id, name, unit) [METRIC_##id] = name,
#include "sampler/metrics.inc"
#undef METRIC
};

const char *metric_name(enum metric metric)
{
    return metric_names[metric];
}

static inline struct frame *frame_at(const struct profile *profile, uint32_t frame)
{
    return array_at(&profile->frames, frame);
}

static inline struct node *node_at(const struct profile *profile, uint32_t node)
{
    return array_at(&profile->nodes, node);
}

static inline struct value *value_at(const struct profile *profile, uint32_t value)
{
    return array_at(&profile->values, value);
}

static uint32_t text_hash(const char *text, size_t length)
{
    uint64_t hash = 0x9e3779b97f4a7c15u ^ length, word;
    for (; length >= 8; text += 8, length -= 8) {
        memcpy(&word, text, 8);
        hash = (hash ^ word) * 0xff51afd7ed558ccdu;
        hash ^= hash >> 32;
    }
    word = 0;
    memcpy(&word, text, length);
    hash = (hash ^ word) * 0xff51afd7ed558ccdu;
    return (uint32_t)(hash >> 32);
}

static uint32_t node_hash_of(uint32_t parent, uint32_t frame)
{
    uint64_t hash = (((uint64_t)parent << 32) | frame) * 0x9e3779b97f4a7c15u;
    hash ^= hash >> 29;
    return (uint32_t)((hash * 0xbf58476d1ce4e5b9u) >> 32);
}

static uint32_t frame_hash(const struct profile *profile, uint32_t frame)
{
    return frame_at(profile, frame)->hash;
}

static uint32_t *frame_next(struct profile *profile, uint32_t frame)
{
    return &frame_at(profile, frame)->next;
}

static uint32_t node_hash(const struct profile *profile, uint32_t node)
{
    const struct node *at = node_at(profile, node);
    return node_hash_of(at->parent, at->frame);
}

static uint32_t *node_next(struct profile *profile, uint32_t node)
{
    return &node_at(profile, node)->next;
}

/* ---- frames ---- */

static bool text_block_add(struct profile *profile, size_t length)
{
    size_t size = length > TEXT_BLOCK ? length : TEXT_BLOCK;
    struct text_block *block = heap_take(sizeof *block + size);
    if (block == NULL)
        return false;
    *block = (struct text_block){.next = profile->texts, .size = (uint32_t)size};
    profile->texts = block;
    profile->texts_size += size;
    return true;
}

static const char *text_keep(struct profile *profile, const char *text, size_t length)
{
    struct text_block *block = profile->texts;
    if ((block == NULL || block->size - block->used < length) && !text_block_add(profile, length))
        return NULL;
    block = profile->texts;
    char *kept = block->bytes + block->used;
    memcpy(kept, text, length);
    block->used += (uint32_t)length;
    return kept;
}

static uint32_t frame_find(const struct profile *profile, const char *text, size_t length, uint32_t hash)
{
    uint32_t at = profile->frame_table.heads[table_bucket(&profile->frame_table, hash)];
    while (at != NONE) {
        const struct frame *frame = frame_at(profile, at);
        if (frame->hash == hash && frame->length == length && memcmp(frame->text, text, length) == 0)
            return at;
        at = frame->next;
    }
    return FRAME_NONE;
}

profile_frame profile_intern(struct profile *profile, const char *text, size_t length, uint32_t flags)
{
    uint32_t hash = text_hash(text, length);
    uint32_t index = frame_find(profile, text, length, hash);
    if (index != FRAME_NONE)
        return index;
    if (length > UINT32_MAX / 2 || !array_reserve(&profile->frames))
        return FRAME_NONE;
    const char *kept = text_keep(profile, text, length);
    if (kept == NULL)
        return FRAME_NONE;
    struct frame *frame = array_next(&profile->frames, &index);
    *frame = (struct frame){.text = kept, .length = (uint32_t)length, .hash = hash, .flags = flags};
    table_insert(&profile->frame_table, profile, index, profile->frames.count, frame_hash, frame_next);
    return index;
}

uint32_t profile_frame_flags(const struct profile *profile, profile_frame frame)
{
    return frame_at(profile, frame)->flags;
}

static void texts_free(struct profile *profile)
{
    for (struct text_block *block = profile->texts, *next; block != NULL; block = next) {
        next = block->next;
        mem_free(block);
    }
    profile->texts = NULL;
    profile->texts_size = 0;
}

/* Keeps one block, so that [overflow] finds its place again without memory. */
static void texts_clear(struct profile *profile)
{
    struct text_block *kept = profile->texts;
    profile->texts = kept->next;
    texts_free(profile);
    kept->next = NULL;
    kept->used = 0;
    profile->texts = kept;
    profile->texts_size = kept->size;
}

/* ---- stacks ---- */

static uint32_t node_find(const struct profile *profile, profile_stack parent, profile_frame frame)
{
    uint32_t at = profile->node_table.heads[table_bucket(&profile->node_table, node_hash_of(parent, frame))];
    while (at != NONE) {
        const struct node *node = node_at(profile, at);
        if (node->parent == parent && node->frame == frame)
            return at;
        at = node->next;
    }
    return NODE_ROOT;
}

static uint32_t node_add(struct profile *profile, profile_stack parent, profile_frame frame)
{
    const struct node *above = node_at(profile, parent);
    uint32_t index;
    struct node *node = array_next(&profile->nodes, &index);
    node->parent = parent;
    node->frame = frame;
    node->value = NONE;
    node->depth = above->depth + 1;
    node->length = above->length + (above->depth > 0) + frame_at(profile, frame)->length;
    table_insert(&profile->node_table, profile, index, profile->nodes.count, node_hash, node_next);
    return index;
}

profile_stack profile_push(struct profile *profile, profile_stack parent, profile_frame frame)
{
    if (parent == NODE_OVERFLOW)
        return NODE_OVERFLOW;
    if (frame != FRAME_NONE) {
        uint32_t found = node_find(profile, parent, frame);
        if (found != NODE_ROOT)
            return found;
        if (profile->frozen)
            return NODE_OVERFLOW;
        if (array_reserve(&profile->nodes))
            return node_add(profile, parent, frame);
    }
    profile->overflows++;
    return NODE_OVERFLOW;
}

profile_stack profile_overflow(const struct profile *profile)
{
    return NODE_OVERFLOW;
}

profile_stack profile_parent(const struct profile *profile, profile_stack stack)
{
    return node_at(profile, stack)->parent;
}

profile_frame profile_leaf(const struct profile *profile, profile_stack stack)
{
    return node_at(profile, stack)->frame;
}

uint32_t profile_depth(const struct profile *profile, profile_stack stack)
{
    return node_at(profile, stack)->depth;
}

uint32_t profile_stack_flags(const struct profile *profile, profile_stack stack)
{
    return node_at(profile, stack)->flags;
}

void profile_set_stack_flags(struct profile *profile, profile_stack stack, uint32_t flags)
{
    node_at(profile, stack)->flags = flags;
}

profile_stack profile_twin(const struct profile *profile, profile_stack stack)
{
    return node_at(profile, stack)->twin;
}

void profile_set_twin(struct profile *profile, profile_stack stack, profile_stack twin)
{
    node_at(profile, stack)->twin = twin;
}

/* Copies the part of bytes [offset, offset+length) of a text that lies below size. */
static void text_put(char *buffer, size_t size, size_t offset, const char *bytes, size_t length)
{
    if (offset < size)
        memcpy(buffer + offset, bytes, length < size - offset ? length : size - offset);
}

size_t profile_text(const struct profile *profile, profile_stack stack, char *buffer, size_t size)
{
    const struct node *node = node_at(profile, stack);
    size_t length = node->length, at = length;
    while (size > 0 && node->depth > 0) {
        const struct frame *frame = frame_at(profile, node->frame);
        at -= frame->length;
        text_put(buffer, size, at, frame->text, frame->length);
        if (node->depth > 1)
            text_put(buffer, size, --at, ";", 1);
        node = node_at(profile, node->parent);
    }
    return length;
}

/* Two different frames below one parent, each with more frames below it or not.
 * Where one text begins with the other, the separator decides. */
static int frame_compare(const struct frame *a, bool a_ends, const struct frame *b, bool b_ends)
{
    size_t common = a->length < b->length ? a->length : b->length;
    int order = memcmp(a->text, b->text, common);
    if (order != 0)
        return order;
    int next_a = a->length > common ? (unsigned char)a->text[common] : a_ends ? -1 : ';';
    int next_b = b->length > common ? (unsigned char)b->text[common] : b_ends ? -1 : ';';
    if (next_a != next_b)
        return next_a - next_b;
    return a->length < b->length ? -1 : 1; /* a ';' inside a frame: no text of ours, but still an order */
}

int profile_compare(const struct profile *profile, profile_stack a, profile_stack b)
{
    if (a == b)
        return 0;
    const struct node *left = node_at(profile, a), *right = node_at(profile, b);
    uint32_t left_depth = left->depth, right_depth = right->depth;
    uint32_t left_at = a, right_at = b;
    while (left->depth > right->depth)
        left = node_at(profile, left_at = left->parent);
    while (right->depth > left->depth)
        right = node_at(profile, right_at = right->parent);
    if (left_at == right_at) /* one begins with the other */
        return left_depth < right_depth ? -1 : 1;
    while (left->parent != right->parent) {
        left = node_at(profile, left->parent);
        right = node_at(profile, right->parent);
    }
    return frame_compare(frame_at(profile, left->frame), left->depth == left_depth,
                         frame_at(profile, right->frame), right->depth == right_depth);
}

/* ---- times and changes ---- */

static void list_append(struct profile *profile, struct list *list, uint32_t index)
{
    value_at(profile, index)->next_changed = NONE;
    if (list->first == NONE)
        list->first = index;
    else
        value_at(profile, list->last)->next_changed = index;
    list->last = index;
}

static uint32_t list_take(struct profile *profile, struct list *list)
{
    uint32_t index = list->first;
    if (index != NONE)
        list->first = value_at(profile, index)->next_changed;
    return index;
}

static void value_changed(struct profile *profile, uint32_t index)
{
    struct value *value = value_at(profile, index);
    if (value->changed)
        return;
    value->changed = true;
    list_append(profile, &profile->changed[value->metric], index);
}

static uint32_t value_find(const struct profile *profile, profile_stack stack, enum metric metric)
{
    uint32_t at = node_at(profile, stack)->value;
    while (at != NONE && value_at(profile, at)->metric != metric)
        at = value_at(profile, at)->next;
    return at;
}

static uint32_t value_add(struct profile *profile, profile_stack stack, enum metric metric)
{
    struct node *node = node_at(profile, stack);
    uint32_t index;
    struct value *value = array_next(&profile->values, &index);
    value->stack = stack;
    value->metric = (uint16_t)metric;
    value->next = node->value;
    node->value = index;
    return index;
}

/* The value that takes time for this stack: its own, or that of [overflow]. */
static uint32_t value_for(struct profile *profile, profile_stack stack, enum metric metric)
{
    uint32_t index = value_find(profile, stack, metric);
    if (index != NONE)
        return index;
    if (!profile->frozen && array_reserve(&profile->values))
        return value_add(profile, stack, metric);
    if (!profile->frozen)
        profile->overflows++;
    return (uint32_t)metric;
}

void profile_add(struct profile *profile, profile_stack stack, enum metric metric, uint64_t ns)
{
    uint32_t index = value_for(profile, stack, metric);
    struct value *value = value_at(profile, index);
    if (value->ns < NS_PER_US && value->ns + ns >= NS_PER_US)
        profile->stacks[metric]++;
    value->ns += ns;
    profile->total_ns[metric] += ns;
    value_changed(profile, index);
}

uint64_t profile_get_ns(const struct profile *profile, profile_stack stack, enum metric metric)
{
    uint32_t index = value_find(profile, stack, metric);
    return index == NONE ? 0 : value_at(profile, index)->ns;
}

uint64_t profile_total_ns(const struct profile *profile, enum metric metric)
{
    return profile->total_ns[metric];
}

uint32_t profile_stacks(const struct profile *profile, enum metric metric)
{
    return profile->stacks[metric];
}

uint32_t profile_nodes(const struct profile *profile)
{
    return profile->nodes.count;
}

uint64_t profile_overflows(const struct profile *profile)
{
    return profile->overflows;
}

/* The round is over: what was put back waits for the next one. */
static void round_end(struct profile *profile)
{
    uint32_t index;
    while ((index = list_take(profile, &profile->returned)) != NONE)
        list_append(profile, &profile->changed[value_at(profile, index)->metric], index);
    profile->in_round = false;
}

bool profile_take_change(struct profile *profile, struct profile_change *change)
{
    for (unsigned metric = 0; metric < METRIC_COUNT; metric++) {
        uint32_t index;
        while ((index = list_take(profile, &profile->changed[metric])) != NONE) {
            struct value *value = value_at(profile, index);
            profile->in_round = true;
            value->changed = false;
            if (value->ns < NS_PER_US)
                continue; /* nothing to show yet; its next time marks it again */
            *change = (struct profile_change){value->stack, (enum metric)metric, value->ns / NS_PER_US, value->cookie};
            return true;
        }
    }
    round_end(profile);
    return false;
}

void profile_mark_changed(struct profile *profile, profile_stack stack, enum metric metric)
{
    uint32_t index = value_find(profile, stack, metric);
    if (index == NONE || value_at(profile, index)->changed)
        return;
    value_at(profile, index)->changed = true;
    list_append(profile, profile->in_round ? &profile->returned : &profile->changed[metric], index);
}

void profile_mark_all(struct profile *profile)
{
    for (uint32_t index = 0; index < profile->values.count; index++) {
        memset(value_at(profile, index)->cookie, 0, sizeof value_at(profile, index)->cookie);
        value_changed(profile, index);
    }
}

bool profile_has_changes(const struct profile *profile)
{
    for (unsigned metric = 0; metric < METRIC_COUNT; metric++) {
        if (profile->changed[metric].first != NONE)
            return true;
    }
    return profile->returned.first != NONE;
}

void profile_freeze(struct profile *profile, bool frozen)
{
    profile->frozen = frozen;
}

bool profile_each(const struct profile *profile, enum metric metric, uint32_t *at, profile_stack *stack, uint64_t *us)
{
    while (*at < profile->values.count) {
        const struct value *value = value_at(profile, (*at)++);
        if (value->metric != metric || value->ns < NS_PER_US)
            continue;
        *stack = value->stack;
        *us = value->ns / NS_PER_US;
        return true;
    }
    return false;
}

/* ---- life ---- */

/* The frames that always exist. Their block and text block are there already. */
static void frames_begin(struct profile *profile)
{
    uint32_t index;
    struct frame *none = array_next(&profile->frames, &index);
    none->text = "";
    profile_intern(profile, overflow_text, sizeof overflow_text - 1, 0);
}

/* The nodes and values that always exist. */
static void stacks_begin(struct profile *profile)
{
    uint32_t index;
    struct node *root = array_next(&profile->nodes, &index);
    root->value = NONE;
    node_add(profile, NODE_ROOT, FRAME_OVERFLOW);
    for (unsigned metric = 0; metric < METRIC_COUNT; metric++) {
        value_add(profile, NODE_OVERFLOW, (enum metric)metric);
        profile->changed[metric] = (struct list){NONE, NONE};
        profile->total_ns[metric] = 0;
        profile->stacks[metric] = 0;
    }
    profile->returned = (struct list){NONE, NONE};
    profile->in_round = false;
    profile->overflows = 0;
}

static bool profile_start(struct profile *profile)
{
    profile->frames.item_size = sizeof(struct frame);
    profile->nodes.item_size = sizeof(struct node);
    profile->values.item_size = sizeof(struct value);
    if (!array_reserve(&profile->frames) || !array_reserve(&profile->nodes) || !array_reserve(&profile->values) ||
        !table_start(&profile->frame_table) || !table_start(&profile->node_table) || !text_block_add(profile, 0))
        return false;
    frames_begin(profile);
    stacks_begin(profile);
    return true;
}

struct profile *profile_new(void)
{
    struct profile *profile = mem_zalloc(sizeof *profile);
    if (profile == NULL)
        return NULL;
    if (profile_start(profile))
        return profile;
    profile_free(profile);
    return NULL;
}

void profile_free(struct profile *profile)
{
    if (profile == NULL)
        return;
    array_free(&profile->frames);
    array_free(&profile->nodes);
    array_free(&profile->values);
    mem_free(profile->frame_table.heads);
    mem_free(profile->node_table.heads);
    texts_free(profile);
    mem_free(profile);
}

/* Texts that were seen once would fill the heap of a long-lived process. */
static bool frames_are_too_many(const struct profile *profile)
{
    size_t size = profile->texts_size + (size_t)profile->frames.count * sizeof(struct frame);
    return mem_limit() != 0 && size > mem_limit() / 2;
}

void profile_clear(struct profile *profile, bool drop_frames)
{
    array_clear(&profile->nodes);
    array_clear(&profile->values);
    table_clear(&profile->node_table);
    if (drop_frames || frames_are_too_many(profile)) {
        array_clear(&profile->frames);
        table_clear(&profile->frame_table);
        texts_clear(profile);
        frames_begin(profile);
        profile->generation++;
    }
    stacks_begin(profile);
}

uint32_t profile_generation(const struct profile *profile)
{
    return profile->generation;
}
