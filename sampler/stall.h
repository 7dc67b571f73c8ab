/* SPDX-License-Identifier: MIT
 *
 * stall: whether the disk answers, as far as our thread in this process and that
 * in the process which forked it know.
 *
 * A network that is gone or a file system of a program that hangs holds whoever
 * calls it, and a process cannot end while one of its threads is in such a call
 * that the server has taken (Linux: fs/fuse/dev.c, request_wait_answer). Nobody
 * waits for our thread then, and a forked child does not touch the files that hold
 * its parent: it looks at a page that they share.
 *
 * Owns: one page. Should there be none, the child tries for itself.
 */
#ifndef APROF_SAMPLER_STALL_H
#define APROF_SAMPLER_STALL_H

#include <stdbool.h>

/* [application thread] Before the thread starts: the page. Does nothing the second time. */
void stall_start(void);

/* [sampler] Around all that may wait for a disk. */
void stall_writing(bool begins);

/* [application thread] At its files for 20 ms and more. Async-signal-safe. */
bool stall_is(void);

/* [sampler] So is the thread of the process that forked us, which lives (in a pid
 * namespace of our own: which may not be found, and counts as gone). */
bool stall_is_above(void);

/* [interposer] The process that others see at its files is about to become another
 * program, and did not. Not in a vfork child. */
void stall_before_exec(void);
void stall_after_exec(void);

/* [fork, child] The page is now the one of the process above. */
void stall_postfork_child(void);

#endif
