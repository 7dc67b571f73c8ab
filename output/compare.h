/* SPDX-License-Identifier: MIT
 *
 * compare: the shares that functions (or lines, files) have of two profiles side by
 * side, and which differences are beyond noise (output/noise.h).
 *
 * A row is the same on both sides when name and place are: a function that moved
 * within its file stays itself. Shares are looked at, and counted as tests, when
 * their average over both sides is COMPARE_FLOOR or more; equal ones (a chain of
 * callers that all have the same total) are one test.
 *
 * [tool] only. Rows belong to the comparison, names to the tallies.
 */
#ifndef APROF_OUTPUT_COMPARE_H
#define APROF_OUTPUT_COMPARE_H

#include <stdbool.h>
#include <stddef.h>

#include "output/noise.h"
#include "output/tally.h"

#define COMPARE_FLOOR 0.005

enum { COMPARE_BASE, COMPARE_NEW, COMPARE_SIDES };
enum { COMPARE_SELF, COMPARE_TOTAL, COMPARE_AMOUNTS };

struct compare_share {
    double shares[COMPARE_SIDES]; /* 0 to 1 */
    double change, bound;         /* the same; bound once compare_bound was called, of what is tested */
    bool is_tested;
    struct noise_part parts[COMPARE_SIDES];
};

struct compare_row {
    const char *name, *place;
    struct compare_share amounts[COMPARE_AMOUNTS];
};

struct compare {
    struct compare_row *rows; /* in no order */
    size_t count;
    size_t tests;
    double factor; /* of the noise that is expected: what the blocks show on the whole */
    struct noise_side sides[COMPARE_SIDES];
};

struct compare *compare_new(struct tally *const tallies[COMPARE_SIDES], const struct noise_side sides[COMPARE_SIDES]);
void compare_free(struct compare *compare);

/* The bounds, when so many tests are made in all. */
void compare_bound(struct compare *compare, size_t tests);

static inline bool compare_is_beyond(const struct compare_share *share)
{
    return share->is_tested && (share->change > share->bound || -share->change > share->bound);
}

/* Rows whose amount is tested, those beyond noise first, then the largest change
 * first; equal ones by name. Returns their number; the caller frees the array. */
size_t compare_changes(const struct compare *compare, int amount, const struct compare_row ***rows);
/* Rows that only that side has, the largest total first. */
size_t compare_only(const struct compare *compare, int side, const struct compare_row ***rows);

#endif
