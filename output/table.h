/* SPDX-License-Identifier: MIT
 *
 * table: headings, and a row's function in the columns that its numbers leave.
 *
 * [tool] only.
 */
#ifndef APROF_OUTPUT_TABLE_H
#define APROF_OUTPUT_TABLE_H

#include <stdbool.h>
#include <stdio.h>

struct table_names {
    int room;       /* columns; 0: no limit */
    bool are_paths; /* lose their start, not their end */
    bool colour;
};

/* A line of its own, bold where there is colour. */
void table_heading(bool colour, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* What numbers of that width leave of so many columns (0: no limit), but enough
 * to know a name by on however small a terminal. */
int table_room(int columns, int numbers);

/* In 8 columns; bold from 10 % on where there is colour. */
void table_share(bool colour, double part, double whole);

/* "name (place)", or name alone where the place is empty, and a newline. The place
 * loses its start first, then the name the functions around it, then its end. */
void table_name(const struct table_names *names, const char *name, const char *place);
/* The same on a stream. */
void table_name_on(FILE *stream, const struct table_names *names, const char *name, const char *place);

/* Of an inner function without the functions around it. */
const char *table_name_inner(const char *name);

#endif
