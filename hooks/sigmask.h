/* SPDX-License-Identifier: MIT
 *
 * sigmask: hears when a thread blocks or unblocks our signal.
 *
 * A thread that blocks the signal of its CPU ticks would find it in sigwait,
 * sigpending and signalfd, and hand it to the next program image: no signal may
 * come while it is blocked. So pthread_sigmask, sigprocmask and their elders sighold,
 * sigrelse, sigblock and sigsetmask are exported from here; a call that cannot
 * concern the signal passes through with one test.
 *
 * Runs in: [interposer], also in handlers and vfork children: async-signal-safe,
 * and nothing is told in a vfork child, whose mask is not ours to act on.
 */
#ifndef APROF_HOOKS_SIGMASK_H
#define APROF_HOOKS_SIGMASK_H

#include <signal.h>
#include <stdbool.h>

/* [loader] about_to_block: before a call that may block signo; changed: after any
 * call that may have changed whether it is blocked. On the calling thread. */
void sigmask_watch(int signo, void (*about_to_block)(void), void (*changed)(void));

/* Whether the calling thread blocks signo. One system call. */
bool sigmask_blocks(int signo);

#endif
