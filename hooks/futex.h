/* SPDX-License-Identifier: MIT
 *
 * futex: waiting and waking without libc's locks. Raw system calls.
 * Runs in: any context; futex_wake is async-signal-safe and safe in fork handlers.
 */
#ifndef APROF_HOOKS_FUTEX_H
#define APROF_HOOKS_FUTEX_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

/* Waits while *word == expected, until deadline_ns on CLOCK_MONOTONIC (absolute;
 * UINT64_MAX: for ever). True when woken or the word differs, false at the
 * deadline. May wake early: look at the word again. Where the kernel refuses to
 * wait (a seccomp filter), it naps a millisecond at a time. */
bool futex_wait(_Atomic uint32_t *word, uint32_t expected, uint64_t deadline_ns);
void futex_wake(_Atomic uint32_t *word);

#endif
