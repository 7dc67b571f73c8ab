/* SPDX-License-Identifier: MIT
 *
 * init: start and end, on one screen.
 */
#ifndef APROF_PRELOAD_INIT_H
#define APROF_PRELOAD_INIT_H

#include <stdbool.h>

#include "sampler/loop.h"

/* [interposer] Start-up of an interpreter calls this function of libc: in a
 * process that held none when it began, look again. One load when there is
 * nothing to do. Never from a function that a signal handler may call. */
void init_look_again(void);

/* [interposer] The process is about to end: one more tick (LOOP_LAST_TICK: more
 * of the application may follow; LOOP_EXIT: nothing does) and what is queued for
 * stderr. All calls and the destructor together wait 20 ms at most.
 * Async-signal-safe; nothing in a vfork child. */
void init_last_words(enum loop_request request);

/* [interposer] The image is about to be replaced: one more tick, the window sealed
 * (20 ms at most); and it was not. Async-signal-safe; nothing in a vfork child. */
void init_before_exec(void);
void init_after_exec(void);

/* Whether this process is profiled: interposers pass straight through otherwise. */
bool init_is_active(void);

#endif
