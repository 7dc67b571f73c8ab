/* SPDX-License-Identifier: MIT
 *
 * follow: the functions of one metric in a spool that is being written to, as they
 * grow from one look to the next.
 *
 * Of each process only what is open is read again at each look; a window that was
 * sealed since is read once more, whole, and then kept as sums. Windows that were over
 * before the first look are not read, but for processes that began after it. So a look
 * costs what lies open, however large the spool is.
 *
 * The first look has everything that the open windows have, as if it had come just
 * then. What is kept grows with the number of functions; beyond a bound all begins
 * anew, as it does with another metric or choice of process. Of processes a bounded
 * number is known: those that have ended make room, and what they had stays in the
 * sums; what is still beyond the bound is left out and counted.
 *
 * [tool] only. Nothing is printed.
 */
#ifndef APROF_OUTPUT_FOLLOW_H
#define APROF_OUTPUT_FOLLOW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "output/spool_format.h"

#define FOLLOW_PROCESSES_MOST 100000u /* that are known at a time: about as many killed ones as a spool of a GiB holds */

struct follow_process {
    struct spool_name name; /* seq: of the window that is open, or was last */
    char *program;          /* "": not known */
    uint64_t window_us;     /* how long that window is open, as it says itself */
    bool lives;
};

struct follow_row {
    const char *name, *place;   /* as in frames.h */
    uint64_t self, total;       /* since the beginning */
    uint64_t self_now, total_now; /* since the look before */
};

struct follow;

/* path is copied. metric NULL: the first that there is. */
struct follow *follow_new(const char *path, const char *metric);
void follow_free(struct follow *follow);
/* Knows no more processes than that at a time. */
void follow_bound(struct follow *follow, size_t processes);

/* A look. 0 or a negative errno: the directory cannot be read; what was known stays. */
int follow_look(struct follow *follow);

/* errno of a file that the last look could not read, though it is there; 0: none. */
int follow_unread(const struct follow *follow);
/* Schema of what the last look left out, since it is newer than this program; 0: nothing. */
int64_t follow_newer(const struct follow *follow);
/* Processes that the last look left out: it knew as many as it can. */
size_t follow_left_out(const struct follow *follow);

/* Since the look before; the first one: since the oldest open window began. */
uint64_t follow_span_us(const struct follow *follow);
/* Of all functions' own time. */
uint64_t follow_sum(const struct follow *follow);
uint64_t follow_sum_now(const struct follow *follow);

/* Those that have anything, in no order. Valid until the next look. Returns their number. */
size_t follow_rows(struct follow *follow, const struct follow_row **rows);

/* In the order of their starts; those that have ended stay for a while. Valid until the next look. */
size_t follow_processes(const struct follow *follow, const struct follow_process **processes);

/* Names of metrics in open windows, in order; NULL past the last. Levels (kind.h) have no growth and are left out. */
const char *follow_metric(const struct follow *follow, size_t index);
/* NULL: none is known yet. */
const char *follow_chosen(const struct follow *follow);

/* All begins anew with the next look. NULL: all processes. */
void follow_choose_metric(struct follow *follow, const char *metric);
void follow_choose_process(struct follow *follow, const struct spool_name *process);

#endif
