/* SPDX-License-Identifier: MIT
 *
 * bound: APROF_SPOOL as this process keeps it: asks for old windows to be taken
 * away (output/evict.h) when it has sealed one, and knows whether there is room
 * for new stacks. Where the directory cannot be listed it takes away its own.
 *
 * Runs in: [sampler].
 */
#ifndef APROF_OUTPUT_BOUND_H
#define APROF_OUTPUT_BOUND_H

#include <stdbool.h>
#include <stdint.h>

#include "output/live.h"
#include "output/place.h"

struct bound {
    uint64_t limit_bytes;          /* over all processes; 0: no bound */
    uint64_t others_living;        /* bytes of other processes' open windows when last asked */
    uint64_t own_first, own_bytes; /* our sealed windows */
    uint64_t added_bytes;          /* sealed since it was last asked for */
    bool was_full;
};

/* So many bytes were sealed. */
void bound_add(struct bound *bound, uint64_t bytes);

/* After a window was sealed. next_seq: our windows below it are sealed. The place is open. */
void bound_keep(struct bound *bound, const struct place *place, const struct live_window *window, uint64_t next_seq);

/* Whether living windows alone exceed it, so that new stacks have no room. */
bool bound_is_full(const struct bound *bound, const struct live_window *window);

/* True when it has become full since it was last asked. */
bool bound_has_filled(struct bound *bound, const struct live_window *window);

#endif
