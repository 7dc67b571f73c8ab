/* SPDX-License-Identifier: MIT
 *
 * nothing: why there is nothing to show.
 *
 * [tool] only.
 */
#ifndef APROF_OUTPUT_NOTHING_H
#define APROF_OUTPUT_NOTHING_H

#include <stdint.h>

#include "output/reader.h"

/* One line on stderr, "nothing to VERB": no files at all, not this metric (NULL: any),
 * or no time in them. paths: what the reader was given; none: the default. */
void nothing_explain(const struct reader *reader, const char *verb, const char *wanted, int count, char **paths);

/* Folders in that directory, each of which may be a run's. */
uint64_t nothing_folders(const char *path);

#endif
