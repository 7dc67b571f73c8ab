/* SPDX-License-Identifier: MIT
 *
 * labels: a handler may read a variable while the sampler finds another one in its
 * place: an address that does not belong to its hash is not found in any trie. */
#include "sampler/labels.h"

#include <stdatomic.h>
#include <string.h>

#include "sampler/cpython/contexts.h"
#include "sampler/cpython/objects.h"
#include "sampler/text.h"

#define SECOND 1000000000ull

enum {
    VARIABLES = 4,     /* of one name */
    ITEMS_A_TICK = 2048, /* looked at */
    SEEN = 64          /* tries that were looked at, within a second; a power of two */
};

struct variable {
    _Atomic uintptr_t address; /* 0: none */
    _Atomic uintptr_t name;
    _Atomic uint32_t hash;
};

uint32_t labels_asked;

static struct {
    const char *name[LABELS_MOST];
    struct variable variable[LABELS_MOST][VARIABLES];
    uintptr_t seen[SEEN];
    uint32_t items_left;
    uint64_t checked_ns;
} labels;

void labels_ask(const char *const *names, uint32_t count)
{
    labels_asked = count < LABELS_MOST ? count : LABELS_MOST;
    for (uint32_t i = 0; i < labels_asked; i++)
        markers_name_label(i, labels.name[i] = names[i]);
}

/* --- reading --- */

static uint32_t text_of(const struct py_target *target, uintptr_t value, char *text)
{
    struct py_str str;
    uint64_t magnitude;
    bool negative;
    if (objects_str(target, value, &str))
        return objects_short(&str, text, false);
    if (!objects_integer(target, value, &magnitude, &negative))
        return 0;
    text[0] = '-';
    return negative + (uint32_t)text_decimal(text + negative, magnitude);
}

static struct context_variable load(struct variable *variable)
{
    uintptr_t address = atomic_load_explicit(&variable->address, memory_order_acquire);
    return (struct context_variable){address, atomic_load_explicit(&variable->name, memory_order_relaxed),
                                     atomic_load_explicit(&variable->hash, memory_order_relaxed)};
}

/* Of several variables of that name the first that is set there. 0: none is. */
static uintptr_t set_value(const struct py_target *target, uintptr_t trie, uint32_t label)
{
    uintptr_t value = 0;
    for (uint32_t i = 0; !value && i < VARIABLES; i++) {
        struct context_variable variable = load(&labels.variable[label][i]);
        value = variable.address ? contexts_get(target, trie, &variable) : 0;
    }
    return value;
}

static uintptr_t default_value(const struct py_target *target, uint32_t label)
{
    uintptr_t value = 0;
    for (uint32_t i = 0; !value && i < VARIABLES; i++) {
        struct context_variable variable = load(&labels.variable[label][i]);
        value = variable.address ? contexts_default(target, &variable) : 0;
    }
    return value;
}

uint32_t labels_read(const struct py_target *target, uintptr_t context, uintptr_t trie, uint32_t label, char *text)
{
    uintptr_t value = trie ? set_value(target, trie, label) : 0;
    if (!value && (trie || context == CONTEXTS_NONE))
        value = default_value(target, label);
    return value ? text_of(target, value, text) : 0;
}

bool labels_of_context(const struct py_target *target, uintptr_t context, marker_id numbers[LABELS_MOST])
{
    uintptr_t trie = contexts_trie(target, context);
    char text[TEXT_FOLDED_MAX];
    for (uint32_t i = 0; i < LABELS_MOST; i++) {
        uint32_t length = i < labels_asked ? labels_read(target, context, trie, i, text) : 0;
        numbers[i] = length ? markers_of_label(i, text, length) : 0;
    }
    return contexts_trie(target, context) == trie;
}

/* --- looking --- */

static void check_known(const struct py_target *target)
{
    struct context_variable found;
    for (uint32_t i = 0; i < labels_asked; i++)
        for (uint32_t j = 0; j < VARIABLES; j++) {
            struct context_variable known = load(&labels.variable[i][j]);
            if (known.address && (!contexts_is_variable(target, known.address, labels.name[i], &found) || found.hash != known.hash || found.name != known.name))
                atomic_store_explicit(&labels.variable[i][j].address, 0, memory_order_release);
        }
}

void labels_begin_looking(const struct py_target *target, uint64_t now)
{
    labels.items_left = ITEMS_A_TICK;
    if (now - labels.checked_ns < SECOND)
        return;
    labels.checked_ns = now;
    memset(labels.seen, 0, sizeof labels.seen);
    check_known(target);
}

static void keep(uint32_t label, const struct context_variable *found)
{
    struct variable *empty = NULL;
    for (uint32_t i = 0; i < VARIABLES; i++) {
        struct variable *variable = &labels.variable[label][i];
        uintptr_t address = atomic_load_explicit(&variable->address, memory_order_relaxed);
        if (address == found->address)
            return;
        if (!address && !empty)
            empty = variable;
    }
    if (!empty)
        return;
    atomic_store_explicit(&empty->name, found->name, memory_order_relaxed);
    atomic_store_explicit(&empty->hash, found->hash, memory_order_relaxed);
    atomic_store_explicit(&empty->address, found->address, memory_order_release);
}

void labels_look(const struct py_target *target, uintptr_t context)
{
    uintptr_t trie = contexts_trie(target, context), *seen = &labels.seen[trie * 0x9e3779b97f4a7c15u >> 32 & (SEEN - 1)], key;
    struct contexts_walk walk;
    struct context_variable found;
    if (!trie || *seen == trie || !labels.items_left)
        return;
    *seen = trie;
    contexts_begin(&walk, target, trie, labels.items_left);
    while (contexts_next(&walk, &key))
        for (uint32_t i = 0; i < labels_asked; i++)
            if (contexts_is_variable(target, key, labels.name[i], &found))
                keep(i, &found);
    labels.items_left = walk.left;
}
