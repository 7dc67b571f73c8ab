/* SPDX-License-Identifier: MIT
 *
 * The shuffle of Fisher and Yates, done as it is needed: `order` is those drawn in
 * this round, then all others, and the next one is any of the others. */
#include "sampler/draw.h"

static void put(struct draw *draw, uint32_t at, uint16_t number)
{
    draw->order[at] = number;
    draw->place[number] = (uint16_t)at;
}

void draw_add(struct draw *draw, uint32_t number)
{
    put(draw, draw->count++, (uint16_t)number);
}

/* Where it was comes the last of those drawn, if it was one, and where that was the last of all. */
void draw_remove(struct draw *draw, uint32_t number)
{
    uint32_t hole = draw->place[number];
    if (hole < draw->drawn) {
        put(draw, hole, draw->order[--draw->drawn]);
        hole = draw->drawn;
    }
    if (hole != --draw->count)
        put(draw, hole, draw->order[draw->count]);
}

uint32_t draw_slice(struct draw *draw, uint32_t most)
{
    if (draw->drawn == draw->count)
        draw->drawn = 0;
    draw->all = most == 0 || draw->count <= most;
    if (draw->all)
        return draw->count - draw->drawn;
    uint32_t slices = (draw->count + most - 1) / most;
    return (draw->count + slices - 1) / slices;
}

void draw_begin_round(struct draw *draw)
{
    draw->drawn = 0;
}

/* Marsaglia's xorshift64*; the upper half is the better one. */
static uint32_t below(struct draw *draw, uint32_t bound)
{
    draw->random ^= draw->random >> 12;
    draw->random ^= draw->random << 25;
    draw->random ^= draw->random >> 27;
    return (uint32_t)((draw->random * 0x2545f4914f6cdd1du >> 32) * bound >> 32);
}

bool draw_next(struct draw *draw, uint32_t *number)
{
    if (draw->drawn == draw->count)
        return false;
    uint32_t at = draw->drawn + (draw->all ? 0 : below(draw, draw->count - draw->drawn)); /* in order: memory is read faster */
    uint16_t other = draw->order[draw->drawn];
    *number = draw->order[at];
    put(draw, at, other);
    put(draw, draw->drawn++, (uint16_t)*number);
    return true;
}
