/* SPDX-License-Identifier: MIT
 *
 * blocking_show: the blocking calls on event loops (output/blocking.h) as text and as
 * JSON.
 *
 * [tool] only.
 */
#ifndef APROF_OUTPUT_BLOCKING_SHOW_H
#define APROF_OUTPUT_BLOCKING_SHOW_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

#include "output/blocking.h"

struct blocking_view {
    double period_us; /* between two looks, on average */
    size_t top;       /* rows; 0: all */
    int columns;      /* 0: no limit */
    bool colour, quiet; /* quiet: the table alone */
};

void blocking_print(struct blocking *blocking, const struct blocking_view *view);

/* {source,total,busy,idle,rows:[{stack:[{name,place}],waiting,busy_percent}]}: source "block" or
 * "wall-cpu", times in microseconds, root first; the last frame's place has its line. */
json_t *blocking_json(struct blocking *blocking, const struct blocking_view *view);

#endif
