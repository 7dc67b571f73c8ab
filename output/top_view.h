/* SPDX-License-Identifier: MIT
 *
 * top_view: what `aprof top` shows at one moment, as lines of text.
 *
 * [tool] only.
 */
#ifndef APROF_OUTPUT_TOP_VIEW_H
#define APROF_OUTPUT_TOP_VIEW_H

#include <stdbool.h>
#include <stdio.h>

#include "output/follow.h"

struct top_view {
    struct follow *follow;
    const char *path;
    const char *trouble;  /* what kept the last look from being one; NULL */
    const char *metric;   /* asked for, should there be none yet */
    bool by_total, since; /* in what order: by total, else self; of all since the beginning, else of now */
    bool paused, help, as_text; /* as_text: nobody can press a key */
    size_t offset;        /* rows above the first one shown */
    const struct spool_name *process; /* NULL: all */
};

/* As many rows and columns as that at most (0: no limit). Returns the line, from 0, that
 * is the table's heading; -1: it has none. Brings offset back to what there is. */
int top_view_print(struct top_view *view, FILE *stream, int rows, int columns);

#endif
