/* SPDX-License-Identifier: MIT
 *
 * interrupted: what a signal handler can tell of the code that it interrupted.
 * Runs in: [handler]. Async-signal-safe. The only place besides guard.c that
 * knows the machine's registers.
 */
#ifndef APROF_HOOKS_INTERRUPTED_H
#define APROF_HOOKS_INTERRUPTED_H

#include <signal.h>
#include <stdbool.h>
#include <stddef.h>

/* Whether it was interrupted at the return of a system call. */
bool interrupted_in_syscall(const void *ucontext);

/* Whether that code blocks this signal. */
bool interrupted_blocks(const void *ucontext, int signo);

/* Bytes left on the alternate stack that the handler runs on; SIZE_MAX when it
 * runs on the thread's own stack. */
size_t interrupted_stack_left(const void *ucontext);

#endif
