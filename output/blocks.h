/* SPDX-License-Identifier: MIT
 *
 * blocks: a spool cut into parts that are as good as independent, and read part
 * by part: what `noise` asks for. Ticks are none: a sampler meets the same wait, or
 * the same pass of a loop, many times over.
 *
 *   several runs   each is a block, however many processes and windows it has. What
 *                  differs from run to run (hash seeds, addresses, the machine) is
 *                  in them
 *   one run        its windows, those of all its processes at a time together, since
 *                  processes have parts of their own in it, which are no noise; from
 *                  8 of them on, joined to 32 at most, so that what changes slowly
 *                  stays within one
 *   else           its processes, from 4 on
 *   else           nothing but the number of looks that the sampler took
 *
 * A process whose metadata names no run is a run of its own.
 *
 * [tool] only.
 */
#ifndef APROF_OUTPUT_BLOCKS_H
#define APROF_OUTPUT_BLOCKS_H

#include "output/noise.h"
#include "output/quality.h"
#include "output/reader.h"
#include "output/tally.h"

/* Reads that metric into the tally, a block after the other. */
struct noise_side blocks_read(struct reader *reader, const struct quality *quality, const char *metric, struct tally *tally);

#endif
