/* SPDX-License-Identifier: MIT
 *
 * lineage: what a task's stack stands on.
 *
 *   awaited by others   on the whole chain of each awaiter, which share its time
 *   by nobody           on the chain of its creator down to the coroutine that made
 *                       it, or to the innermost of that chain that still lives
 *   neither             on the frames that drive its loop
 *
 * Computed upward with every task once a round, without recursion. A circle of
 * awaiters is opened once, at its oldest task, and marked [cycle]; one that is
 * closed by a creator is no circle of awaiters: that task stands on the loop then.
 *
 * Runs in: [sampler].
 */
#ifndef APROF_SAMPLER_LINEAGE_H
#define APROF_SAMPLER_LINEAGE_H

#include <stdbool.h>
#include <stdint.h>

#include "sampler/registry.h"
#include "sampler/stacks.h"

/* A stack that a task stands on, and which part of its time is counted there. */
struct base {
    profile_stack stack;
    uint32_t share; /* of LINEAGE_ALL */
};
#define LINEAGE_ALL (1u << 31)
enum { LINEAGE_BASES = 64 }; /* of one task; what is more goes to the first ones */

struct lineage;

/* driver(context, loop, &stack): the frames that drive a loop; false: it runs in no thread. */
struct lineage *lineage_new(struct registry *registry, bool creators, bool (*driver)(void *context, uintptr_t loop, profile_stack *stack),
                            void *context);
void lineage_free(struct lineage *lineage);

/* Everything is void: with every new round of the registry. */
void lineage_begin_round(struct lineage *lineage, struct stacks *stacks);

/* The profile was cleared: stacks are void. */
void lineage_forget_stacks(struct lineage *lineage);

/* What this task stands on, without its own chain. 0: on nothing that is known (its
 * loop runs in no thread). The bases stay where they are until the next call. */
uint32_t lineage_of(struct lineage *lineage, uint32_t task, const struct base **bases);

/* All leaves and running tasks were asked for: what is placed from now on bears none. */
void lineage_end_leaves(struct lineage *lineage);
bool lineage_bears_leaf(const struct lineage *lineage, uint32_t task);

/* Whether circles were met: only then was an awaiter left out. */
bool lineage_has_circles(const struct lineage *lineage);
/* Where an awaiter was left out to open a circle: its index (the first, of several circles), NO_TASK elsewhere. */
uint32_t lineage_cut(const struct lineage *lineage, uint32_t task);
/* The stacks of a task with its own whole chain. Ask lineage_of first. */
uint32_t lineage_whole(struct lineage *lineage, uint32_t task, const struct base **bases);

/* Whether lineage_of was asked for this task, or for one that stands on it. */
bool lineage_is_placed(const struct lineage *lineage, uint32_t task);
/* Whether it stands on its creator, and whether it was to and could not. */
bool lineage_is_made(const struct lineage *lineage, uint32_t task);
bool lineage_lacks_creator(const struct lineage *lineage, uint32_t task);

/* After all were placed: reads those again that others stand on, and says of the
 * others whether what they stand on is still so. An awaiter that was as it had been
 * read right after the edge to it was (edges_proven) may have moved on since. */
void lineage_prove(struct lineage *lineage);
bool lineage_is_proven(const struct lineage *lineage, uint32_t task);
/* Whether others stand on it and it is not as it was when it was read. */
bool lineage_has_moved(const struct lineage *lineage, uint32_t task);
/* lineage_is_proven for one that is placed after that, and stands on what was placed before. */
void lineage_prove_late(struct lineage *lineage, uint32_t task);

#endif
