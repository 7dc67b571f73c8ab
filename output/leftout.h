/* SPDX-License-Identifier: MIT
 *
 * leftout: what reading a spool left out, in words: lines that are none, files that
 * were cut, taken away, given twice. The same words wherever they are shown.
 *
 * [tool] only.
 */
#ifndef APROF_OUTPUT_LEFTOUT_H
#define APROF_OUTPUT_LEFTOUT_H

#include <stdbool.h>
#include <stddef.h>

#include "output/reader.h"

#define LEFTOUT_SIZE 96

/* The next of them; false: there is no other. at: 0 at first. is_missed: the figures may
 * lack what was in it. */
bool leftout_next(const struct reader_counts *counts, size_t *at, char words[LEFTOUT_SIZE], bool *is_missed);

/* Those that are missed, as one line on stderr; none: nothing. title goes before them and
 * may be "". For when all is read. */
void leftout_complain(const struct reader *reader, const char *title);

#endif
