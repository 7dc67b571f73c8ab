/* SPDX-License-Identifier: MIT
 *
 * labels: what context variables are set to, [route=/signup], where APROF_LABEL names
 * them: as frames at the root of the stacks of whatever runs in that context.
 *
 * A variable is known by its name alone, so the sampler looks for one of that name
 * among those that are set, in contexts of threads and tasks, until it has found it and
 * now and then after that (there may be several of one name: what the first of them
 * that is set says, counts). From then on a look at it costs the way down to it.
 *
 * Where it is not set its default is its value (ContextVar(default=...)), once it was found. A
 * value is a str or an int; others are no label.
 *
 * Runs in: [loader] for what is asked for, [handler] [sampler] for reading, [sampler]
 * for looking. No allocation.
 */
#ifndef APROF_SAMPLER_LABELS_H
#define APROF_SAMPLER_LABELS_H

#include <stdbool.h>
#include <stdint.h>

#include "sampler/cpython/target.h"
#include "sampler/markers.h"

/* [loader] The names, which stay where they are; LABELS_MOST of them at most. */
void labels_ask(const char *const *names, uint32_t count);
extern uint32_t labels_asked; /* how many */

/* What the variable is in this context, as text of at most TEXT_FOLDED_MAX bytes; the length,
 * 0: no label. Context: CONTEXTS_NONE too. Trie: of the context (contexts_trie). */
uint32_t labels_read(const struct py_target *target, uintptr_t context, uintptr_t trie, uint32_t label, char *text);

/* [sampler] All labels of a context, by number: 0, none. False: it was changed meanwhile. */
bool labels_of_context(const struct py_target *target, uintptr_t context, marker_id numbers[LABELS_MOST]);

/* [sampler] Once a tick, before labels_look: the variables that are known are such still? */
void labels_begin_looking(const struct py_target *target, uint64_t now);
/* [sampler] Looks for variables among those that are set in this context, unless enough was looked at in this tick. */
void labels_look(const struct py_target *target, uintptr_t context);

#endif
