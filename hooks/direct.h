/* SPDX-License-Identifier: MIT
 *
 * direct: libc's file, memory and clock functions, hidden, for this library and
 * its jemalloc.
 *
 * Another preloaded library may stand in front of open(2) or clock_gettime(2) as
 * we stand in front of sigaction: one that fakes the time, the owner of a file or
 * the network. It has not reckoned with a caller like ours: a handler, a thread
 * with descriptors of its own, a fork in the middle. So what this library asks of
 * the kernel goes there, by definitions under libc's own names that nobody else
 * sees; the modules include libc's headers and call them as usual.
 *
 * As in libc, they set errno; they are no cancellation points. Runs in: any
 * context. Left out of unit tests, whose own calls they would take.
 */
#ifndef APROF_HOOKS_DIRECT_H
#define APROF_HOOKS_DIRECT_H

#include <stdbool.h>

/* [loader] Finds libc's own clock_gettime, which needs no system call. Before it,
 * or without, the clock is read by one. */
void direct_start(void);

/* [sampler] The thread that opens files could not get a table of its own: from now
 * on open fails with EBADF while one of the descriptors 0 to 2 is closed. */
void direct_shares_descriptors(bool yes);

#endif
