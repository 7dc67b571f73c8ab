/* SPDX-License-Identifier: MIT
 *
 * columns: a table of rows as JSON has it that keeps its columns apart: an object of
 * arrays, all as long as the table, and its length.
 *
 * [tool] only.
 */
#ifndef APROF_OUTPUT_COLUMNS_H
#define APROF_OUTPUT_COLUMNS_H

#include <stddef.h>
#include <stdio.h>

/* Writes one cell. Rows come from the first to the last, column after column. */
typedef void columns_cell(FILE *stream, void *of, size_t row);

struct columns_one {
    const char *name;  /* NULL: behind the last */
    columns_cell *put;
    const char *same;  /* what all cells have, where there is no put */
};

/* The columns, the length and the end of an object that has begun. */
void columns_put(FILE *stream, const struct columns_one *columns, void *of, size_t rows);
/* The whole: "name":{...}, and a newline. */
void columns_table(FILE *stream, const char *name, const struct columns_one *columns, void *of, size_t rows);

#endif
