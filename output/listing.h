/* SPDX-License-Identifier: MIT
 *
 * listing: the processes that have an open window in a spool directory, or left one
 * there, each once.
 *
 * [tool] only.
 */
#ifndef APROF_OUTPUT_LISTING_H
#define APROF_OUTPUT_LISTING_H

#include <dirent.h>
#include <stddef.h>
#include <stdint.h>

#include "output/spool_format.h"

struct listing {
    struct spool_name *names; /* of live metadata, each process's last; in the order of listing_compare */
    size_t count, room;
};

/* By start, pid, host: 0 where both are of one process, whatever the window. */
int listing_compare(const struct spool_name *one, const struct spool_name *other);

/* From the directory's beginning. pid 0: all. */
struct listing listing_make(DIR *directory, uint64_t pid);
void listing_free(struct listing *listing);

/* That process's; NULL: it has none. */
const struct spool_name *listing_find(const struct listing *listing, const struct spool_name *process);

#endif
