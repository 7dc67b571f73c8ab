/* SPDX-License-Identifier: MIT */
#include "output/bound.h"

#include <errno.h>

#include "hooks/clock.h"
#include "output/evict.h"

void bound_add(struct bound *bound, uint64_t bytes)
{
    bound->own_bytes += bytes;
    bound->added_bytes += bytes;
}

static void own_window_remove(struct bound *bound, const struct place *place, uint64_t seq)
{
    struct stat status;
    for (unsigned i = 0; i < PLACE_FILES; i++) {
        if (place_look(place, seq, i, SPOOL_SEALED, &status) < 0 || place_remove(place, seq, i, SPOOL_SEALED) < 0)
            continue;
        uint64_t size = (uint64_t)status.st_size;
        bound->own_bytes -= size < bound->own_bytes ? size : bound->own_bytes;
    }
}

/* Where the directory cannot be listed, or not be locked by us. */
static void own_windows_bound(struct bound *bound, const struct place *place, uint64_t living, uint64_t next_seq)
{
    while (bound->own_bytes + living > bound->limit_bytes && bound->own_first < next_seq)
        own_window_remove(bound, place, bound->own_first++);
}

void bound_keep(struct bound *bound, const struct place *place, const struct live_window *window, uint64_t next_seq)
{
    struct evict_result result;
    uint64_t mine = live_bytes(window);
    if (bound->limit_bytes == 0)
        return;
    struct spool_name own = place->owner;
    own.seq = window->open ? window->seq : next_seq;
    struct evict_request request = {place->fd, bound->limit_bytes, bound->added_bytes, clock_epoch_us(), &own};
    int error = evict_run(&request, &result);
    if (error == -EACCES)
        own_windows_bound(bound, place, mine, next_seq);
    if (error < 0)
        return;
    bound->added_bytes = 0;
    bound->others_living = result.living_bytes > mine ? result.living_bytes - mine : 0;
}

bool bound_is_full(const struct bound *bound, const struct live_window *window)
{
    return bound->limit_bytes != 0 && bound->others_living + live_bytes(window) > bound->limit_bytes;
}

bool bound_has_filled(struct bound *bound, const struct live_window *window)
{
    bool full = bound_is_full(bound, window), filled = full && !bound->was_full;
    bound->was_full = full;
    return filled;
}
