/* SPDX-License-Identifier: MIT
 *
 * diff_flame: both sides of a comparison as one flame graph, coloured by what has
 * changed (see page.h).
 *
 * [tool] only.
 */
#ifndef APROF_OUTPUT_DIFF_FLAME_H
#define APROF_OUTPUT_DIFF_FLAME_H

#include "output/diff_show.h"

/* The metrics of its sections, which are read once more. False: one line on stderr
 * was written. */
bool diff_flame_write(const struct diff *diff, const char *path);

#endif
