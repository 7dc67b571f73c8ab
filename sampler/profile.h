/* SPDX-License-Identifier: MIT
 *
 * profile: the stacks of one window and what was added to each.
 *
 * A tree: a stack is a node, its parent the stack without the last frame; node 0
 * is the empty stack. Frames are interned texts as they will stand in the spool
 * (escaped, see sampler/text.h). Everything lives in the profiler's own heap and
 * is bounded by it: when that is full, time goes to the stack [overflow], which
 * always exists, and the limit is counted.
 *
 * Times come in nanoseconds and are kept so; readers see whole microseconds
 * (the sum of a node, rounded down), so nothing drifts.
 *
 * An eighth of the heap's limit is left to others (sealing sorts in it). Changes
 * come grouped by metric, so that a writer can append many lines in one call.
 *
 * Runs in: [sampler]. Not thread-safe. output/ reads it as data.
 */
#ifndef APROF_SAMPLER_PROFILE_H
#define APROF_SAMPLER_PROFILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum metric {
#define METRIC(id, name, unit) METRIC_##id,
#include "sampler/metrics.inc"
#undef METRIC
    METRIC_COUNT
};
const char *metric_name(enum metric metric);

typedef uint32_t profile_stack; /* a node; 0 is the root */
typedef uint32_t profile_frame; /* an interned frame text; 0 is none */
#define PROFILE_ROOT 0u

struct profile;

struct profile *profile_new(void); /* NULL: no memory */
void profile_free(struct profile *profile);

/* Interns a frame's text (no NUL needed; copied). 0 when there is no memory:
 * pushing 0 leads to [overflow]. flags are the caller's own (see profile_flags),
 * kept from the first call for this text. */
profile_frame profile_intern(struct profile *profile, const char *text, size_t length, uint32_t flags);

/* The stack that is parent plus one frame. [overflow] when there is no memory
 * or the parent is [overflow]. */
profile_stack profile_push(struct profile *profile, profile_stack parent, profile_frame frame);
profile_stack profile_overflow(const struct profile *profile);

profile_stack profile_parent(const struct profile *profile, profile_stack stack);
profile_frame profile_leaf(const struct profile *profile, profile_stack stack);
uint32_t profile_depth(const struct profile *profile, profile_stack stack); /* frames in it */
uint32_t profile_frame_flags(const struct profile *profile, profile_frame frame);
/* Free for the caller's use on a stack, 0 at first (loop state, for one). */
uint32_t profile_stack_flags(const struct profile *profile, profile_stack stack);
void profile_set_stack_flags(struct profile *profile, profile_stack stack, uint32_t flags);
/* Another stack that the caller connects with this one; 0 (the root) at first. */
profile_stack profile_twin(const struct profile *profile, profile_stack stack);
void profile_set_twin(struct profile *profile, profile_stack stack, profile_stack twin);

void profile_add(struct profile *profile, profile_stack stack, enum metric metric, uint64_t ns);
uint64_t profile_get_ns(const struct profile *profile, profile_stack stack, enum metric metric);
uint64_t profile_total_ns(const struct profile *profile, enum metric metric);
uint32_t profile_stacks(const struct profile *profile, enum metric metric); /* with a microsecond or more in this metric */
uint32_t profile_nodes(const struct profile *profile);
uint64_t profile_overflows(const struct profile *profile); /* pushes that found no memory */

/* The text of a stack: frames joined by ';', root first. Writes at most size
 * bytes, returns the full length (like snprintf, without a NUL). */
size_t profile_text(const struct profile *profile, profile_stack stack, char *buffer, size_t size);

/* What changed since it was last taken, each (stack, metric) once. The writer
 * keeps a cookie of its own with each (0 at first, kept until profile_clear). */
enum { PROFILE_COOKIE_WORDS = 2 };
struct profile_change {
    profile_stack stack;
    enum metric metric;
    uint64_t us;       /* total of this stack in this window, whole microseconds */
    uint64_t *cookie;  /* PROFILE_COOKIE_WORDS of them */
};
bool profile_take_change(struct profile *profile, struct profile_change *change);
/* Puts a change back: the writer could not store it. It comes again only after
 * profile_take_change has returned false once, so a round always ends. */
void profile_mark_changed(struct profile *profile, profile_stack stack, enum metric metric);
/* Marks every stack as changed and its cookie as 0: the writer lost its files. */
void profile_mark_all(struct profile *profile);
bool profile_has_changes(const struct profile *profile);

/* While frozen, no stack is added and none gets its first time in a metric: such
 * time goes to [overflow] (the spool has no room for new lines). Kept over
 * profile_clear. */
void profile_freeze(struct profile *profile, bool frozen);

/* The order of two stacks' texts byte by byte (as `LC_ALL=C sort` has them):
 * less than, equal to, or greater than 0. */
int profile_compare(const struct profile *profile, profile_stack a, profile_stack b);

/* Every stack with time in a metric (a whole microsecond at least), in no order: *at starts at 0. */
bool profile_each(const struct profile *profile, enum metric metric, uint32_t *at, profile_stack *stack, uint64_t *us);

/* The window's end: all stacks and their times go, ids of stacks are void.
 * Frames stay, unless they took more than half of the heap's limit or
 * drop_frames is set: then ids of frames are void too and the generation changes. */
void profile_clear(struct profile *profile, bool drop_frames);
uint32_t profile_generation(const struct profile *profile);

#endif
