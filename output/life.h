/* SPDX-License-Identifier: MIT
 *
 * life: what the readers may ask about the owner of a live file beyond what the file
 * itself proves (output/spool_format.h).
 *
 * [tool] only.
 */
#ifndef APROF_OUTPUT_LIFE_H
#define APROF_OUTPUT_LIFE_H

#include <jansson.h>
#include <stdbool.h>

/* Whether the process is not there any more, for certain: that a pid is there proves
 * nothing, for pids repeat; that it is not, among those that it was one of, does. */
bool life_is_gone(const json_t *metadata);

/* Whether pids in that metadata are those of our own namespace and boot. */
bool life_is_near(const json_t *metadata);

#endif
