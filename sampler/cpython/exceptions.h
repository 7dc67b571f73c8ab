/* SPDX-License-Identifier: MIT
 *
 * exceptions: what a thread handles: an exception was raised, and an `except` or
 * `finally` block, or an __exit__, that it led to has not ended yet. What such a
 * block calls handles it as well, as sys.exception() says; of several, one within
 * the other, it is the innermost.
 *
 * A thread's list of items has one for its plain code and one for each generator
 * or coroutine that runs; the first that holds an exception is the one. One that
 * is suspended keeps its own: of a task that waits, the innermost coroutine of its
 * chain that holds one is that which sys.exception() would name if it ran, but for
 * what the code handles that runs its loop.
 *
 * Runs in: [handler] on the thread itself, [sampler] on threads that stand still.
 * No allocation, bounded. Sources of the facts: Include/cpython/pystate.h
 * (_PyErr_StackItem), Python/errors.c (_PyErr_GetTopmostException), Lib/traceback.py
 * (how a type is called).
 */
#ifndef APROF_SAMPLER_CPYTHON_EXCEPTIONS_H
#define APROF_SAMPLER_CPYTHON_EXCEPTIONS_H

#include <stdbool.h>
#include <stdint.h>

#include "sampler/cpython/target.h"
#include "sampler/text.h"

/* A type as tracebacks call it, escaped: its qualified name behind its module's, but for
 * `builtins` and `__main__`. A very long part ends in a hash of the whole. */
enum { EXCEPTION_NAME_MAX = 2 * TEXT_FOLDED_MAX + 1 };

enum exceptions_found {
    EXCEPTIONS_NONE,  /* it handles nothing */
    EXCEPTIONS_ONE,
    EXCEPTIONS_TORN   /* the list could not be read as it must be, or is longer than 1,024 */
};

/* EXCEPTIONS_ONE: *length bytes of name. */
enum exceptions_found exceptions_of_thread(const struct py_target *target, uintptr_t tstate, char name[EXCEPTION_NAME_MAX], uint32_t *length);

/* [loader] Whether it is asked what tasks handle that wait; anybody may read it from then on. */
void exceptions_ask_for_tasks(bool asked);
extern bool exceptions_tasks_asked;

/* The type of what a generator or coroutine that does not run handles; 0: nothing. False: torn. One word where
 * it never handled anything. */
bool exceptions_type_of_generator(const struct py_target *target, uintptr_t generator, uintptr_t *type);
/* ... with its name. */
enum exceptions_found exceptions_of_generator(const struct py_target *target, uintptr_t generator, char name[EXCEPTION_NAME_MAX], uint32_t *length);

#endif
