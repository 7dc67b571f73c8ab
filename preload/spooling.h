/* SPDX-License-Identifier: MIT
 *
 * spooling: wires the sampler's windows to output/: facts become metadata, the
 * spool of this process is opened when there is something to write.
 * Runs in: [sampler], but for spooling_prepare ([loader]) and
 * spooling_postfork_child ([fork]).
 */
#ifndef APROF_PRELOAD_SPOOLING_H
#define APROF_PRELOAD_SPOOLING_H

#include <stdbool.h>

#include "preload/config.h"
#include "sampler/loop.h"

/* The settings must live as long as the process. */
void spooling_prepare(const struct config *config);
extern const struct loop_output spooling_output;
void spooling_descriptors(bool own_table);
void spooling_postfork_child(void);

/* Whether the sampler is about to write, and may wait for a disk. Async-signal-safe. */
bool spooling_is_writing(void);

/* Whether what was to be written last could not be. Any thread. */
bool spooling_is_failing(void);

#endif
