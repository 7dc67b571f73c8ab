/* SPDX-License-Identifier: MIT
 *
 * tally: stacks to functions (or lines, files, threads, tasks, processes), each with what it
 * has by itself (self: it was the last frame) and with all that it called
 * (total: it was anywhere in the stack, counted once a stack however often it
 * recurs). Or to whole stacks of functions, whatever their lines; total is self
 * there.
 *
 * Threads and tasks are known by the markers [thread NAME] and [task NAME], where
 * they were recorded; stacks without one are [no thread] or [no task]. A task has by
 * itself what no task stacked on it has.
 *
 * What is read can be cut into blocks, for what varies from one to the next.
 *
 * [tool] only.
 */
#ifndef APROF_OUTPUT_TALLY_H
#define APROF_OUTPUT_TALLY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "output/reader.h"

enum tally_by { TALLY_FUNCTION, TALLY_LINE, TALLY_FILE, TALLY_PROCESS, TALLY_STACK, TALLY_THREAD, TALLY_TASK };

/* Of one amount of a row, over the blocks that were ended: the sums of its squares,
 * and of its products with what the block has in all. */
struct tally_blocks {
    double squares, cross;
};

/* One row. Markers ("[ready]") and frames without a place have an empty place. */
struct tally_row {
    const char *name;  /* qualname; file for TALLY_FILE; process for TALLY_PROCESS; for TALLY_STACK its last frame's;
                        * for TALLY_THREAD and TALLY_TASK its name */
    const char *place; /* path, path:line for TALLY_LINE, else empty */
    uint64_t self, total;
    struct tally_blocks self_blocks, total_blocks;
    const void *stack; /* TALLY_STACK: its frames, for tally_frame; else NULL */
    uint32_t depth;
};

struct tally_frame {
    const char *name, *place;
};

struct tally;

struct tally *tally_new(enum tally_by by);
void tally_free(struct tally *tally);
/* "function", "line", "file", "process", "stack", "thread", "task"; -1: none of them. */
int tally_by_of(const char *word);
const char *tally_by_name(enum tally_by by);
/* The setting that has the markers recorded, of TALLY_THREAD and TALLY_TASK; else NULL. */
const char *tally_by_setting(enum tally_by by);

/* As reader_each calls it; context is the tally. */
int tally_line(void *tally, const struct reader_line *line);

/* What was read since the last one, or since the start, is one block; one without
 * any amount is none. Returns whether it was. */
bool tally_block_end(struct tally *tally);
/* Of the blocks that were ended: how many, and the sum of the squares of what each has in all. */
uint32_t tally_blocks_count(const struct tally *tally);
double tally_blocks_squares(const struct tally *tally);

uint64_t tally_sum(const struct tally *tally);
/* Whether a row is of anything: false for TALLY_THREAD and TALLY_TASK when no stack named one. */
bool tally_has_names(const struct tally *tally);
/* Rows that have any, the largest first; equal ones by the other amount, then by
 * name. Valid until the next call or tally_free. Returns their number. */
size_t tally_by_self(struct tally *tally, const struct tally_row **rows);
size_t tally_by_total(struct tally *tally, const struct tally_row **rows);
/* Of a row of TALLY_STACK the frame number at, from 0 (root) to depth - 1. */
struct tally_frame tally_frame(const struct tally *tally, const struct tally_row *row, uint32_t at);

#endif
