/* SPDX-License-Identifier: MIT
 *
 * start: the function that a thread of the interpreter was started with.
 * Runs in: the new thread itself, before its start routine (what it was given
 * still lives then). Async-signal-safe, no allocation.
 *
 * Sources: Python/thread_pthread.h, pythread_callback {func, arg};
 * Modules/_threadmodule.c, struct bootstate, whose second word is the callable
 * (3.11-3.15).
 */
#ifndef APROF_SAMPLER_CPYTHON_START_H
#define APROF_SAMPLER_CPYTHON_START_H

#include <stdbool.h>
#include <stdint.h>

#include "sampler/cpython/code.h"

/* arg: what pthread_create was given. False where the callable is no Python
 * function or method, or anything is not what it should be. */
bool start_code(const struct py_target *target, uintptr_t arg, struct py_code *code);

/* The object whose method that is: threading's Thread, as a rule. 0: no method. */
uintptr_t start_self(const struct py_target *target, uintptr_t arg);

#endif
