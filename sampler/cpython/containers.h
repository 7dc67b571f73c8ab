/* SPDX-License-Identifier: MIT
 *
 * containers: what other objects keep: items of tuples and lists, entries of
 * dicts, sets and deques, attributes of instances, variables of closures and
 * frames. Read through hooks/guard.h, never written.
 *
 * Runs in: [handler] [sampler]. No allocation, no recursion; every walk is
 * bounded, also when its object changes meanwhile: what is read then may be
 * stale or incomplete, never a loop or a crash. Callers prove what they use.
 *
 * Sources of the facts: Include/internal/pycore_dict.h (keys, values),
 * Include/cpython/setobject.h, Modules/_collectionsmodule.c (deque: not in any
 * header; the same from 3.11 to 3.15), Objects/typeobject.c (instances' dicts).
 */
#ifndef APROF_SAMPLER_CPYTHON_CONTAINERS_H
#define APROF_SAMPLER_CPYTHON_CONTAINERS_H

#include <stdbool.h>
#include <stdint.h>

#include "sampler/cpython/code.h"
#include "sampler/cpython/target.h"

#define CONTAINERS_ITEMS_MAX (1u << 24) /* more items than that are garbage */

/* --- tuples and lists --- */

struct items {
    uintptr_t first; /* address of the first pointer */
    uint32_t count;
};
/* False: neither a tuple nor a list (by the type's flags), or unreadable. */
bool containers_items(const struct py_target *target, uintptr_t object, struct items *items);
/* 0: beyond the end, or unreadable. */
uintptr_t containers_item(const struct items *items, uint32_t index);

/* --- dicts --- */

struct dict_walk {
    const struct py_target *target;
    uintptr_t keys, entries, values; /* values: of a split table, else 0 */
    uint32_t next, count;            /* entries, of dk_nentries */
    bool general;                    /* entries carry a hash before the key */
};
/* False: not a dict, or unreadable. */
bool containers_dict_begin(struct dict_walk *walk, const struct py_target *target, uintptr_t dict);
/* No more than the first entries, in use or not: those that are not cost as much. */
void containers_dict_bound(struct dict_walk *walk, uint32_t most);
/* The next entry that is in use; false at the end. */
bool containers_dict_next(struct dict_walk *walk, uintptr_t *key, uintptr_t *value);
/* The value under an ASCII str key, by looking at the first 65536 entries, not by
 * its hash; 0: none. */
uintptr_t containers_dict_get(const struct py_target *target, uintptr_t dict, const char *key);

/* --- sets (and frozensets): by the tp_name of their type or of a base of it --- */

struct set_walk {
    uintptr_t table;
    uint32_t next, slots;
};
bool containers_set_begin(struct set_walk *walk, const struct py_target *target, uintptr_t set);
/* False at the end, where next is slots, and where the table could not be read: next is beyond it. */
bool containers_set_next(struct set_walk *walk, uintptr_t *key);

/* --- collections.deque --- */

struct deque_walk {
    uintptr_t block;
    int64_t index;
    uint32_t left; /* items still to come */
};
/* By tp_name, as sets. Only the blocks that its links lead to both ways. */
bool containers_deque_begin(struct deque_walk *walk, const struct py_target *target, uintptr_t deque);
bool containers_deque_next(struct deque_walk *walk, uintptr_t *item);

/* --- names --- */

/* The instance attribute of that (ASCII) name, wherever this version keeps it:
 * values beside the object, a materialised dict, a dict at tp_dictoffset; among the
 * first 256 of them. Not slots, not class attributes, not what an object of variable
 * size (a subclass of tuple, int ...) carries at its end. 0: none, or unreadable. */
uintptr_t containers_attribute(const struct py_target *target, uintptr_t object, const char *name);

/* What a free variable of a function holds (through its cell), looked up by name
 * in the code's co_freevars. 0: no such variable, an empty cell, unreadable. */
uintptr_t containers_closure(const struct py_target *target, uintptr_t function, const char *name);

/* The same in two steps: which of the function's free variables it is (-1: none of
 * them), the same for every function of that code; and what that one holds. */
int containers_free_variable(const struct py_target *target, uintptr_t code, const char *name);
uintptr_t containers_closure_at(const struct py_target *target, uintptr_t function, int variable);

/* A local variable of a frame at rest, by name; through its cell where it is
 * one. frame is the _PyInterpreterFrame. 0: none, unbound, unreadable. */
uintptr_t containers_local(const struct py_target *target, uintptr_t frame, const struct py_code *code, const char *name);
/* The same told apart: false where the function has none of that name, or it is unreadable; 0 in value: unbound. */
bool containers_local_is(const struct py_target *target, uintptr_t frame, const struct py_code *code, const char *name, uintptr_t *value);

/* Whether object is a str with this ASCII text. */
bool containers_is_text(const struct py_target *target, uintptr_t object, const char *text);

/* Whether a type's tp_name is this C string. */
bool containers_type_is_named(const struct py_target *target, uintptr_t type, const char *name);

#endif
