/* SPDX-License-Identifier: MIT */
#include "sampler/crowd.h"

void crowd_clear(struct crowd *crowd)
{
    crowd->count = 0;
    crowd->ticks = crowd->ns = 0;
}

/* Its place, or one for it. */
static uint32_t place_of(struct crowd *crowd, profile_stack stack)
{
    uint32_t fewest = 0;
    for (uint32_t i = 0; i < crowd->count; i++) {
        if (crowd->seen[i].stack == stack)
            return i;
        if (crowd->seen[i].ticks < crowd->seen[fewest].ticks)
            fewest = i;
    }
    if (crowd->count < CROWD_STACKS) {
        fewest = crowd->count++;
        crowd->seen[fewest].ticks = crowd->seen[fewest].ns = 0;
    }
    crowd->seen[fewest].stack = stack;
    return fewest;
}

void crowd_add(struct crowd *crowd, profile_stack stack, uint64_t ticks, uint64_t ns)
{
    uint32_t place = place_of(crowd, stack);
    crowd->seen[place].ticks += ticks;
    crowd->seen[place].ns += ns;
    crowd->ticks += ticks;
    crowd->ns += ns;
}

profile_stack crowd_place(struct crowd *crowd, uint64_t ns)
{
    uint32_t poorest = 0;
    double most = 0, a_tick = (double)(crowd->ns + ns) / (double)crowd->ticks;
    if (!crowd->ticks)
        return PROFILE_ROOT;
    for (uint32_t i = 0; i < crowd->count; i++) {
        double missing = (double)crowd->seen[i].ticks * a_tick - (double)crowd->seen[i].ns;
        if (missing > most) {
            most = missing;
            poorest = i;
        }
    }
    crowd->seen[poorest].ns += ns;
    crowd->ns += ns;
    return crowd->seen[poorest].stack;
}
