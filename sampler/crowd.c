/* SPDX-License-Identifier: MIT */
#include "sampler/crowd.h"

#include <stdbool.h>

void crowd_clear(struct crowd *crowd)
{
    crowd->count = 0;
}

/* Its place, or one for it. */
static uint32_t place_of(struct crowd *crowd, struct seen seen)
{
    uint32_t fewest = 0;
    for (uint32_t i = 0; i < crowd->count; i++) {
        if (seen_is_same(crowd->places[i].seen, seen))
            return i;
        if (crowd->places[i].ticks < crowd->places[fewest].ticks)
            fewest = i;
    }
    if (crowd->count < CROWD_STACKS) {
        fewest = crowd->count++;
        crowd->places[fewest].ticks = crowd->places[fewest].ns = 0;
    }
    crowd->places[fewest].seen = seen;
    return fewest;
}

void crowd_add(struct crowd *crowd, struct seen seen, uint64_t kind, uint64_t ticks, uint64_t ns)
{
    uint32_t place = place_of(crowd, seen);
    crowd->places[place].kind = kind;
    crowd->places[place].ticks += ticks;
    crowd->places[place].ns += ns;
}

static bool is_of(const struct crowd *crowd, uint32_t place, uint64_t kind)
{
    return kind == 0 || crowd->places[place].kind == kind;
}

/* CPU for each tick, once this is theirs as well; 0: nobody of the kind was ticked. */
static double ns_a_tick(const struct crowd *crowd, uint64_t kind, uint64_t ns)
{
    uint64_t ticks = 0;
    for (uint32_t i = 0; i < crowd->count; i++) {
        if (is_of(crowd, i, kind)) {
            ticks += crowd->places[i].ticks;
            ns += crowd->places[i].ns;
        }
    }
    return ticks ? (double)ns / (double)ticks : 0;
}

struct seen crowd_place(struct crowd *crowd, uint64_t kind, uint64_t ns)
{
    double a_tick = ns_a_tick(crowd, kind, ns), most = 0;
    uint32_t poorest = CROWD_STACKS;
    for (uint32_t i = 0; i < crowd->count; i++) {
        double missing = (double)crowd->places[i].ticks * a_tick - (double)crowd->places[i].ns;
        if (is_of(crowd, i, kind) && (poorest == CROWD_STACKS || missing > most)) {
            most = missing;
            poorest = i;
        }
    }
    if (poorest == CROWD_STACKS || a_tick <= 0)
        return seen_at(PROFILE_ROOT);
    crowd->places[poorest].ns += ns;
    return crowd->places[poorest].seen;
}
