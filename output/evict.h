/* SPDX-License-Identifier: MIT
 *
 * evict: keeps the spool directory within its bound: whole windows, oldest
 * first, sealed ones and those of dead processes alike; living windows never.
 * Only regular files of our own name pattern and user are counted and removed.
 *
 * A listing costs 1.4 us a file. Its sum stands in the lock file and is added to
 * for a minute, during which nobody lists who is far from the bound: a short process
 * would list all that others left at its exit. Where the last one met thousands of
 * files, nobody does up to the bound.
 *
 * Runs in: [sampler]. Works under the directory's lock file and does not wait
 * for it: who cannot get it leaves the work to its holder.
 */
#ifndef APROF_OUTPUT_EVICT_H
#define APROF_OUTPUT_EVICT_H

#include <stdint.h>

#include "output/spool_format.h"

struct evict_request {
    int directory;              /* may be O_PATH */
    uint64_t limit_bytes;
    uint64_t added_bytes;       /* what the caller has sealed since it last asked */
    uint64_t now_us;            /* since the epoch */
    const struct spool_name *own; /* our open window: it and later ones live */
};

struct evict_result {
    uint64_t total_bytes;  /* what is left */
    uint64_t living_bytes; /* of windows that live, ours among them; 0 when the bound was kept without asking */
};

/* 0; -EAGAIN: somebody else is at it; -EACCES: the directory cannot be listed or
 * locked by us, and each process must bound its own files. */
int evict_run(const struct evict_request *request, struct evict_result *result);

#endif
