/* SPDX-License-Identifier: MIT
 *
 * window: the facts about one window besides its stacks, as the sampler hands
 * them to whoever writes them down. Plain data.
 */
#ifndef APROF_SAMPLER_WINDOW_H
#define APROF_SAMPLER_WINDOW_H

#include <stdbool.h>
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

#endif
