/* SPDX-License-Identifier: MIT
 *
 * progress: one line on stderr while a long reading goes on, where stderr is a
 * terminal:
 *
 *   aprof: 412 MiB of 1.02 GiB read
 *
 * It comes when the reading has lasted half a second, changes at most four times a
 * second, and is erased before anything else is written there or on stdout. Whoever
 * reads says first how much there is; what is read without that is not told.
 *
 * State of the program, not of a thread. [tool] only.
 */
#ifndef APROF_OUTPUT_PROGRESS_H
#define APROF_OUTPUT_PROGRESS_H

#include <stdint.h>

/* So many bytes more will be read. The first call starts the clock. */
void progress_expect(uint64_t bytes);
/* So many were. */
void progress_add(uint64_t bytes);
/* Takes the line away; it comes back with the next progress_add that is due. */
void progress_hide(void);
/* ... for good: nothing more is expected. */
void progress_end(void);
/* --quiet: no line at all. */
void progress_quiet(void);

#endif
