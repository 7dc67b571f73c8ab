/* SPDX-License-Identifier: MIT
 *
 * nothing: why there is nothing to show.
 *
 * [tool] only.
 */
#ifndef APROF_OUTPUT_NOTHING_H
#define APROF_OUTPUT_NOTHING_H

#include "output/reader.h"

/* One line on stderr: no files at all, not this metric (NULL: any), or no time in
 * them. paths: what the reader was given; none: the default. */
void nothing_explain(const struct reader *reader, const char *wanted, int count, char **paths);

#endif
