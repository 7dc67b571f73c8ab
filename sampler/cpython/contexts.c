/* SPDX-License-Identifier: MIT */
#include "sampler/cpython/contexts.h"

#include "hooks/guard.h"
#include "sampler/cpython/containers.h"

/* Behind an object's head. */
enum {
    CONTEXT_VARS = 8,
    TRIE_ROOT = 0,
    VARIABLE_NAME = 0,
    VARIABLE_DEFAULT = 8,
    VARIABLE_HASH = 40,
    BITMAP_SIZE = 0, BITMAP_BITS = 8, BITMAP_ITEMS = 16, /* also of a collision node: its hash is where the bits are */
    ARRAY_ITEMS = 0,
    LEVEL_BITS = 5, LEVEL_ITEMS = 1 << LEVEL_BITS
};

enum node { NODE_NONE, NODE_BITMAP, NODE_ARRAY, NODE_COLLISION };

static uintptr_t behind_head(const struct py_target *target, uintptr_t object)
{
    return object + (uintptr_t)target->layout.object_type + sizeof(uintptr_t);
}

static bool may_be_object(uintptr_t address)
{
    return address >= 4096 && address % 8 == 0;
}

static uintptr_t word_at(uintptr_t address)
{
    uint64_t word;
    return guard_word(address, &word) ? (uintptr_t)word : 0;
}

static bool is_named(const struct py_target *target, uintptr_t object, const char *type_name)
{
    uintptr_t type = may_be_object(object) ? word_at(object + (uintptr_t)target->layout.object_type) : 0;
    return may_be_object(type) && containers_type_is_named(target, type, type_name);
}

static enum node node_of(const struct py_target *target, uintptr_t object)
{
    uintptr_t type = may_be_object(object) ? word_at(object + (uintptr_t)target->layout.object_type) : 0;
    if (!may_be_object(type))
        return NODE_NONE;
    if (containers_type_is_named(target, type, "hamt_bitmap_node"))
        return NODE_BITMAP;
    if (containers_type_is_named(target, type, "hamt_array_node"))
        return NODE_ARRAY;
    return containers_type_is_named(target, type, "hamt_collision_node") ? NODE_COLLISION : NODE_NONE;
}

uintptr_t contexts_of_thread(const struct py_target *target, uintptr_t tstate)
{
    uint64_t context;
    if (!guard_word(tstate + (uintptr_t)target->layout.thread_context, &context))
        return 0;
    return context ? (uintptr_t)context : CONTEXTS_NONE;
}

uintptr_t contexts_trie(const struct py_target *target, uintptr_t context)
{
    return may_be_object(context) ? word_at(behind_head(target, context) + CONTEXT_VARS) : 0;
}

/* Of a node of pairs, how many words they are; 0: that cannot be. */
static uint32_t words_of(uintptr_t node)
{
    uintptr_t words = word_at(node + BITMAP_SIZE);
    return words <= 2 * LEVEL_ITEMS && words % 2 == 0 ? (uint32_t)words : 0;
}

/* The pair for this hash; 0: there is none. */
static uintptr_t pair_of(uintptr_t node, uint32_t hash, uint32_t shift)
{
    uint32_t bits = (uint32_t)word_at(node + BITMAP_BITS), bit = 1u << (hash >> shift & (LEVEL_ITEMS - 1));
    uint32_t pair = (uint32_t)__builtin_popcount(bits & (bit - 1));
    return bits & bit && 2 * pair < words_of(node) ? node + BITMAP_ITEMS + pair * 2 * sizeof(uintptr_t) : 0;
}

/* Its memory may be another variable's by now. */
static bool is_that(const struct py_target *target, uintptr_t key, const struct context_variable *variable)
{
    return key == variable->address && word_at(behind_head(target, key) + VARIABLE_NAME) == variable->name;
}

static uintptr_t get_of_collision(const struct py_target *target, uintptr_t node, const struct context_variable *variable)
{
    uint32_t words = words_of(node);
    for (uint32_t i = 0; i < words; i += 2)
        if (is_that(target, word_at(node + BITMAP_ITEMS + i * sizeof(uintptr_t)), variable))
            return word_at(node + BITMAP_ITEMS + (i + 1) * sizeof(uintptr_t));
    return 0;
}

uintptr_t contexts_get(const struct py_target *target, uintptr_t trie, const struct context_variable *variable)
{
    uintptr_t object = is_named(target, trie, "hamt") ? word_at(behind_head(target, trie) + TRIE_ROOT) : 0;
    for (uint32_t shift = 0, level = 0; level < CONTEXTS_LEVELS; level++, shift += LEVEL_BITS) {
        enum node kind = node_of(target, object);
        uintptr_t node = behind_head(target, object), pair, key;
        if (kind == NODE_COLLISION)
            return get_of_collision(target, node, variable);
        if (kind == NODE_NONE || shift >= 32)
            return 0;
        if (kind == NODE_ARRAY) {
            object = word_at(node + ARRAY_ITEMS + (variable->hash >> shift & (LEVEL_ITEMS - 1)) * sizeof(uintptr_t));
            continue;
        }
        if (!(pair = pair_of(node, variable->hash, shift)))
            return 0;
        key = word_at(pair);
        object = word_at(pair + sizeof(uintptr_t));
        if (key)
            return is_that(target, key, variable) ? object : 0;
    }
    return 0;
}

uintptr_t contexts_default(const struct py_target *target, const struct context_variable *variable)
{
    bool is_still = is_named(target, variable->address, "_contextvars.ContextVar") && is_that(target, variable->address, variable);
    return is_still ? word_at(behind_head(target, variable->address) + VARIABLE_DEFAULT) : 0;
}

/* --- finding variables --- */

static void enter(struct contexts_walk *walk, uintptr_t object)
{
    enum node kind = node_of(walk->target, object);
    uintptr_t node = behind_head(walk->target, object);
    if (kind == NODE_NONE || walk->levels == CONTEXTS_LEVELS)
        return;
    bool pairs = kind != NODE_ARRAY;
    walk->level[walk->levels].items = node + (pairs ? BITMAP_ITEMS : ARRAY_ITEMS);
    walk->level[walk->levels].count = pairs ? words_of(node) / 2 : LEVEL_ITEMS;
    walk->level[walk->levels].next = 0;
    walk->level[walk->levels++].pairs = pairs;
}

void contexts_begin(struct contexts_walk *walk, const struct py_target *target, uintptr_t trie, uint32_t most)
{
    *walk = (struct contexts_walk){.target = target, .left = most};
    if (is_named(target, trie, "hamt"))
        enter(walk, word_at(behind_head(target, trie) + TRIE_ROOT));
}

bool contexts_next(struct contexts_walk *walk, uintptr_t *key)
{
    while (walk->levels && walk->left) {
        uint32_t top = walk->levels - 1, at = walk->level[top].next++;
        if (at >= walk->level[top].count) {
            walk->levels--;
            continue;
        }
        walk->left--;
        uintptr_t item = walk->level[top].items + at * (walk->level[top].pairs ? 2 : 1) * sizeof(uintptr_t);
        *key = walk->level[top].pairs ? word_at(item) : 0;
        if (*key)
            return true;
        uintptr_t below = word_at(walk->level[top].pairs ? item + sizeof(uintptr_t) : item);
        if (below)
            enter(walk, below);
    }
    return false;
}

/* As Python/hamt.c folds it: never -1. */
static uint32_t folded(uint64_t hash)
{
    uint32_t half = (uint32_t)hash ^ (uint32_t)(hash >> 32);
    return half == UINT32_MAX ? UINT32_MAX - 1 : half;
}

bool contexts_is_variable(const struct py_target *target, uintptr_t object, const char *name, struct context_variable *variable)
{
    if (!may_be_object(object))
        return false;
    variable->address = object;
    variable->name = word_at(behind_head(target, object) + VARIABLE_NAME);
    variable->hash = folded(word_at(behind_head(target, object) + VARIABLE_HASH));
    return containers_is_text(target, variable->name, name) && is_named(target, object, "_contextvars.ContextVar");
}
