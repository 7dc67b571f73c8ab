/* SPDX-License-Identifier: MIT
 *
 * draw: which threads a tick looks at, when there are more than it may.
 *
 * Rounds without replacement: in every round each number is drawn once, in an order
 * that chance makes anew; a tick takes a slice of the round, and slices are of equal
 * size. So a thread is looked at once a round, whoever else comes and goes, and the
 * time between two of its looks is at most two rounds.
 *
 * Kept for its variance, beside a reservoir filled anew at each tick (Algorithm R), where
 * that time has no bound, and a fixed order gone round and round. One thread of 300, 64
 * of them a tick, 20 s (tests/bench/draw.py; standard deviation of the share that its
 * first wait is given, in points): waits of 150 and 50 ms 2.1 with a reservoir, 1.4 with
 * rounds, 1.0 in a fixed order; of 2 and 0.5 s 0.6, 0.3, 0.3; of 15 and 5 ms 2.4, 2.2,
 * 2.1; but where both waits together take as long as a round, 2.4, 2.3, 10. No bias in any.
 *
 * Pure arithmetic, no allocation; all in constant time. Runs in: [sampler].
 */
#ifndef APROF_SAMPLER_DRAW_H
#define APROF_SAMPLER_DRAW_H

#include <stdbool.h>
#include <stdint.h>

#define DRAW_MAX 8192 /* numbers are below this */

struct draw {
    uint32_t count;           /* numbers that take part */
    uint32_t drawn;           /* of them in this round: those before this place in `order` */
    bool all;                 /* this slice is all that is left: chance has nothing to choose */
    uint64_t random;          /* not 0; whoever begins with the same draws the same */
    uint16_t order[DRAW_MAX];
    uint16_t place[DRAW_MAX]; /* of each number, in `order` */
};

/* Takes part from this round on; it must not do so yet. */
void draw_add(struct draw *draw, uint32_t number);
/* Takes part no more; it must have. */
void draw_remove(struct draw *draw, uint32_t number);

/* Begins a tick's slice, in a new round if the last one is over: how many are to be
 * drawn, so that it is at most `most` (0: all that are left of the round). */
uint32_t draw_slice(struct draw *draw, uint32_t most);

/* A tick had room for all: the next one begins a round, also where others have come since. */
void draw_begin_round(struct draw *draw);

/* The next one of this round. False: the round is over. */
bool draw_next(struct draw *draw, uint32_t *number);

#endif
