/* SPDX-License-Identifier: MIT
 *
 * window: the facts about one window besides its stacks, as the sampler hands
 * them to whoever writes them down. Plain data.
 */
#ifndef APROF_SAMPLER_WINDOW_H
#define APROF_SAMPLER_WINDOW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "sampler/counters.h"

struct window {
    uint64_t number;
    uint64_t start_us, end_us; /* since the epoch; end_us is now while it is open */
    uint64_t start_ns;         /* monotonic */
    const char *ended;         /* open window exit exec fork killed duration error */
    uint64_t own_ticks;        /* ticks of the sampler's own clock, without CPU ticks */
    bool clock_coarse;
    struct counters counters;
    struct loop_time loops[LOOPS_SHOWN];
    uint32_t loops_count;
};

/* Of the loop that this thread runs; NULL: no room. */
static inline struct loop_time *window_loop(struct window *window, uint32_t thread)
{
    for (uint32_t i = 0; i < window->loops_count; i++)
        if (window->loops[i].thread == thread)
            return &window->loops[i];
    if (window->loops_count == LOOPS_SHOWN)
        return NULL;
    window->loops[window->loops_count] = (struct loop_time){.thread = thread};
    return &window->loops[window->loops_count++];
}

#endif
