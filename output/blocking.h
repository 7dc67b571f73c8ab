/* SPDX-License-Identifier: MIT
 *
 * blocking: calls in which a thread that runs an event loop waited, with a step of
 * the loop (a task's or a callback's) under way, so that the loop did nothing else
 * meanwhile: time.sleep, a socket, a lock, a file, a child process.
 *
 * A loop's stack is one with asyncio's _run_once in it: idle when the selector is
 * its last frame or _run_once itself, else a step. A loop in C (uvloop) has no frame
 * of its own: there what stands on asyncio's or uvloop's runner is a step, and one
 * that ends at the runner idle. A loop in C that was started without a runner is not
 * told from a plain thread, but by the metric `block`.
 *
 * - Where `block` was recorded, in all windows, its stacks are what is asked for: the
 *   sampler saw the thread wait, and not for a CPU or the GIL.
 * - Else a step's waiting is what `wall` has of its stack more than `cpu`. Waiting for
 *   a CPU or the GIL looks the same, so rows are left out that are less than
 *   BLOCKING_SHARE of the loops' busy time, less than BLOCKING_ERRORS standard errors,
 *   each look taken for one find, or less than BLOCKING_WAITS of what `wall` has on
 *   their line: a line that computes.
 *
 * A row is a way of functions to a line. [tool] only.
 */
#ifndef APROF_OUTPUT_BLOCKING_H
#define APROF_OUTPUT_BLOCKING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "output/filter.h"
#include "output/frames.h"
#include "output/reader.h"

#define BLOCKING_SHARE 0.01
#define BLOCKING_ERRORS 3
#define BLOCKING_WAITS 0.75

struct blocking_row {
    uint64_t waiting_us;
    const void *path; /* for blocking_frame */
    uint32_t depth;
};

struct blocking;

/* Reads all stacks that it needs; filter chooses rows and frames after loops were found
 * (the reader has none); NULL: all. Both stay the caller's. */
struct blocking *blocking_new(struct reader *reader, struct filter *filter);
void blocking_free(struct blocking *blocking);

/* Whether `block` says so; false: estimated. */
bool blocking_is_known(const struct blocking *blocking);
/* Of all loops' threads, microseconds; both 0: no stack is a loop's. */
uint64_t blocking_busy(const struct blocking *blocking);
uint64_t blocking_idle(const struct blocking *blocking);
/* What rows have in all. */
uint64_t blocking_sum(const struct blocking *blocking);

/* The largest first; equal ones by their names. period_us: between two looks, on average.
 * Valid until the next call or blocking_free. */
size_t blocking_rows(struct blocking *blocking, double period_us, const struct blocking_row **rows);
/* Root first; the last one's place is path:line, the others' path. */
struct frame_text blocking_frame(const struct blocking *blocking, const struct blocking_row *row, uint32_t at);

#endif
