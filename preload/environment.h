/* SPDX-License-Identifier: MIT
 *
 * environment: what a process hands down to the programs that it starts.
 *
 * The first Python process of a run makes the run id (APROF_RUN) and makes
 * APROF_DIR absolute, so that children in other directories share the spool.
 * setenv would take from the application's heap, so the new strings and a new
 * `environ` array live in memory of ours; libc copies such an array when it
 * grows it later. Both variables are visible in os.environ.
 *
 * Runs in: [loader], before the interpreter reads its environment.
 */
#ifndef APROF_PRELOAD_ENVIRONMENT_H
#define APROF_PRELOAD_ENVIRONMENT_H

#include <stdbool.h>

#include "preload/config.h"

/* Whether this is the first Python process of its run: no APROF_RUN yet, or one
 * that aprof-run made and marked with RUN_MARK, which is not handed further. */
#define RUN_MARK '+'
bool environment_is_first(void);

/* Makes config->run (when first) and config->dir absolute, and hands both down;
 * takes the line at exit (APROF_SUMMARY) from children, whose it is not.
 * 0 or a negative errno (then config is still complete). */
int environment_hand_down(struct config *config);

/* Takes this library out of LD_PRELOAD, in place: children start without it. */
void environment_leave_children(void);

#endif
