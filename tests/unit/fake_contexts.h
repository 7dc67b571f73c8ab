/* SPDX-License-Identifier: MIT
 *
 * fake_contexts: contexts whose tries are built as Python/hamt.c builds them: a node of
 * up to 16 pairs, an array of 32 nodes beyond that, one of equal hashes below the last level. */
#ifndef APROF_TESTS_UNIT_FAKE_CONTEXTS_H
#define APROF_TESTS_UNIT_FAKE_CONTEXTS_H

#include "sampler/cpython/contexts.h"
#include "tests/unit/fake_python.h"

#define FAKE_CONTEXTS_AT 0x80000000ul
#define FAKE_NODE_TYPE_AT(i) (0x7f000000u + 0x1000u * (unsigned)(i))
#define FAKE_VARIABLE_TYPE_AT FAKE_NODE_TYPE_AT(4)

struct fake_variable {
    uintptr_t address, value;
    uint64_t hash;
};

static uintptr_t fake_contexts_next;

static inline void fake_contexts_begin(const struct py_target *target)
{
    static const char *const names[] = {"hamt_bitmap_node", "hamt_array_node", "hamt_collision_node", "hamt", "_contextvars.ContextVar"};
    for (int i = 0; i < 5; i++)
        fake_named_type(&target->layout, FAKE_NODE_TYPE_AT(i), names[i], 0, OBJECT_TYPE_AT);
    fake_contexts_next = FAKE_CONTEXTS_AT;
}

static inline struct fake fake_object(const struct py_target *target, uintptr_t type, size_t size)
{
    struct fake made = fake_new(fake_contexts_next, size);
    fake_contexts_next += (size + 0x2fff) / 0x1000 * 0x1000;
    fake_put_word(&made, target->layout.object_type, type);
    return made;
}

static inline uint32_t fake_folded(uint64_t hash)
{
    uint32_t half = (uint32_t)hash ^ (uint32_t)(hash >> 32);
    return half == UINT32_MAX ? UINT32_MAX - 1 : half;
}

static inline struct fake_variable fake_variable(const struct py_target *target, const char *name, uint64_t hash, uintptr_t value)
{
    struct fake made = fake_object(target, FAKE_VARIABLE_TYPE_AT, 64);
    uintptr_t text = fake_contexts_next;
    fake_contexts_next += 0x2000;
    fake_put_word(&made, 16, fake_str(target, text, name));
    fake_put_word(&made, 56, hash);
    return (struct fake_variable){fake_place(&made), value, hash};
}

static inline uintptr_t fake_trie_node(const struct py_target *target, const struct fake_variable *variable, uint32_t count, uint32_t shift)
{
    struct fake_variable group[64];
    uint32_t bits = 0, items = 0;
    if (shift >= 35) {
        struct fake node = fake_object(target, FAKE_NODE_TYPE_AT(2), 32 + 16 * count);
        fake_put_word(&node, 16, 2 * count);
        fake_put_int(&node, 24, fake_folded(variable->hash));
        for (uint32_t i = 0; i < count; i++) {
            fake_put_word(&node, (int32_t)(32 + 16 * i), variable[i].address);
            fake_put_word(&node, (int32_t)(40 + 16 * i), variable[i].value);
        }
        return fake_place(&node);
    }
    for (uint32_t i = 0; i < count; i++)
        bits |= 1u << (fake_folded(variable[i].hash) >> shift & 31);
    bool array = __builtin_popcount(bits) > 16;
    struct fake node = fake_object(target, FAKE_NODE_TYPE_AT(array), 32 + 16 * 32);
    if (!array) {
        fake_put_word(&node, 16, (uint64_t)__builtin_popcount(bits) * 2);
        fake_put_int(&node, 24, bits);
    }
    for (uint32_t bit = 0; bit < 32; bit++) {
        uint32_t same = 0;
        for (uint32_t i = 0; i < count; i++)
            if ((fake_folded(variable[i].hash) >> shift & 31) == bit)
                group[same++] = variable[i];
        if (!same)
            continue;
        bool pair = same == 1 && !array;
        uint64_t value = pair ? group[0].value : fake_trie_node(target, group, same, shift + 5);
        if (array)
            fake_put_word(&node, (int32_t)(16 + 8 * bit), value);
        else {
            fake_put_word(&node, (int32_t)(32 + 16 * items), pair ? group[0].address : 0);
            fake_put_word(&node, (int32_t)(40 + 16 * items++), value);
        }
    }
    return fake_place(&node);
}

static inline uintptr_t fake_trie(const struct py_target *target, const struct fake_variable *variable, uint32_t count)
{
    struct fake trie = fake_object(target, FAKE_NODE_TYPE_AT(3), 40);
    fake_put_word(&trie, 16, fake_trie_node(target, variable, count, 0));
    return fake_place(&trie);
}

static inline uintptr_t fake_context(const struct py_target *target, uintptr_t trie)
{
    struct fake context = fake_object(target, OTHER_TYPE_AT, 48);
    fake_put_word(&context, 24, trie);
    return fake_place(&context);
}

#endif
