/* SPDX-License-Identifier: MIT */
#include "sampler/crowd.h"

#include <stdbool.h>

void crowd_clear(struct crowd *crowd)
{
    crowd->count = 0;
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

void crowd_add(struct crowd *crowd, profile_stack stack, uint64_t kind, uint64_t ticks, uint64_t ns)
{
    uint32_t place = place_of(crowd, stack);
    crowd->seen[place].kind = kind;
    crowd->seen[place].ticks += ticks;
    crowd->seen[place].ns += ns;
}

static bool is_of(const struct crowd *crowd, uint32_t place, uint64_t kind)
{
    return kind == 0 || crowd->seen[place].kind == kind;
}

/* CPU for each tick, once this is theirs as well; 0: nobody of the kind was ticked. */
static double ns_a_tick(const struct crowd *crowd, uint64_t kind, uint64_t ns)
{
    uint64_t ticks = 0;
    for (uint32_t i = 0; i < crowd->count; i++) {
        if (is_of(crowd, i, kind)) {
            ticks += crowd->seen[i].ticks;
            ns += crowd->seen[i].ns;
        }
    }
    return ticks ? (double)ns / (double)ticks : 0;
}

profile_stack crowd_place(struct crowd *crowd, uint64_t kind, uint64_t ns)
{
    double a_tick = ns_a_tick(crowd, kind, ns), most = 0;
    uint32_t poorest = CROWD_STACKS;
    for (uint32_t i = 0; i < crowd->count; i++) {
        double missing = (double)crowd->seen[i].ticks * a_tick - (double)crowd->seen[i].ns;
        if (is_of(crowd, i, kind) && (poorest == CROWD_STACKS || missing > most)) {
            most = missing;
            poorest = i;
        }
    }
    if (poorest == CROWD_STACKS || a_tick <= 0)
        return PROFILE_ROOT;
    crowd->seen[poorest].ns += ns;
    return crowd->seen[poorest].stack;
}
