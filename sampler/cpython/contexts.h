/* SPDX-License-Identifier: MIT
 *
 * contexts: the context that a thread runs in, and what its variables are set to.
 *
 * A context keeps them in a trie of nodes that are never changed, five bits of a
 * variable's hash a level: another value is another trie. So whoever still finds the
 * same trie in the context after a reading has read what was there.
 *
 * Runs in: [handler] on the thread itself, [sampler]. No allocation, no recursion,
 * bounded. Sources: Include/internal/pycore_context.h, pycore_hamt.h and
 * Python/hamt.c, the same from 3.11 to 3.15 (without free threading).
 */
#ifndef APROF_SAMPLER_CPYTHON_CONTEXTS_H
#define APROF_SAMPLER_CPYTHON_CONTEXTS_H

#include <stdbool.h>
#include <stdint.h>

#include "sampler/cpython/target.h"

struct context_variable {
    uintptr_t address; /* of the ContextVar */
    uintptr_t name;    /* of its name, a str: another one at that address has another name */
    uint32_t hash;     /* where it is in the trie */
};

/* In place of a context: the thread has none yet, so no variable is set. */
#define CONTEXTS_NONE ((uintptr_t)1)

/* 0: unreadable. */
uintptr_t contexts_of_thread(const struct py_target *target, uintptr_t tstate);

/* Of a context the trie; 0: it is no context, or unreadable. */
uintptr_t contexts_trie(const struct py_target *target, uintptr_t context);
/* What the variable is set to; 0: it is not set there, or unreadable. */
uintptr_t contexts_get(const struct py_target *target, uintptr_t trie, const struct context_variable *variable);

/* What the variable is where it is not set: ContextVar(default=...), the same as long as it lives; 0: nothing, or it
 * is not that variable any more. */
uintptr_t contexts_default(const struct py_target *target, const struct context_variable *variable);

/* --- finding variables: [sampler] --- */

enum { CONTEXTS_LEVELS = 8 }; /* of a trie: seven of five bits, and one for equal hashes */

struct contexts_walk {
    const struct py_target *target;
    struct {
        uintptr_t items;     /* address of the first one */
        uint32_t next, count;
        bool pairs;          /* of key and value; a key that is 0: the value is a node */
    } level[CONTEXTS_LEVELS];
    uint32_t levels, left;
};
/* At most so many items of nodes are looked at. */
void contexts_begin(struct contexts_walk *walk, const struct py_target *target, uintptr_t trie, uint32_t most);
bool contexts_next(struct contexts_walk *walk, uintptr_t *key);
/* Whether it is a ContextVar of this (ASCII) name. */
bool contexts_is_variable(const struct py_target *target, uintptr_t object, const char *name, struct context_variable *variable);

#endif
