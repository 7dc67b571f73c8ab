/* SPDX-License-Identifier: MIT
 *
 * sealing: the compact copies of a window that is over: sorted by stack, equal
 * lines joined, plain counts, and its metadata.
 *
 * All of them are written under their temporary names before the first is
 * renamed: a disk that fills up in between leaves the window as it was. The
 * metadata is renamed last.
 *
 * Runs in: [sampler]. Failure: a negative errno, and no file of it is left. -EEXIST:
 * something that we cannot take away stands under one of the names.
 */
#ifndef APROF_OUTPUT_SEALING_H
#define APROF_OUTPUT_SEALING_H

#include "output/buffer.h"
#include "output/metadata.h"
#include "output/place.h"

struct sealing {
    const struct place *place; /* open */
    uint64_t seq;
    struct buffer *buffer;
    const struct profile *profile;
    const struct metadata *metadata; /* as it is to be written */
    uint64_t sealed_bytes;           /* out: of the files that now stand there */
};

int sealing_write(struct sealing *sealing);

#endif
