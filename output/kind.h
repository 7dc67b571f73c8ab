/* SPDX-License-Identifier: MIT
 *
 * kind: what a metric's numbers are. One row a known metric; a metric that this
 * program does not know by name is time that adds up.
 *
 * [tool] only.
 */
#ifndef APROF_OUTPUT_KIND_H
#define APROF_OUTPUT_KIND_H

#include <stdbool.h>

#include "output/human.h"

enum kind_unit { KIND_MICROSECONDS, KIND_BYTES };

struct kind {
    const char *metric;
    enum kind_unit unit;
    bool is_level; /* a state at the end of a window: windows of one process do not add up */
    const char *what;
};

/* Never NULL. */
const struct kind *kind_of(const char *metric);
/* "us" or "bytes", as in JSON. */
const char *kind_unit_name(const struct kind *kind);
/* An amount of it, as human_time or human_bytes writes it. */
char *kind_amount(char buffer[HUMAN_SIZE], const struct kind *kind, uint64_t amount);
/* Known metrics in the order of their rows, then the others by name. */
int kind_compare(const char *metric, const char *other);

#endif
