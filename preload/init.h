/* SPDX-License-Identifier: MIT
 *
 * init: start and end, on one screen.
 */
#ifndef APROF_PRELOAD_INIT_H
#define APROF_PRELOAD_INIT_H

#include <stdbool.h>

/* [interposer] Start-up of an interpreter calls this function of libc: in a
 * process that held none when it began, look again. One load when there is
 * nothing to do. Never from a function that a signal handler may call. */
void init_look_again(void);

/* Whether this process is profiled: interposers pass straight through otherwise. */
bool init_is_active(void);

#endif
