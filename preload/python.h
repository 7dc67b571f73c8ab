/* SPDX-License-Identifier: MIT
 *
 * python: does this process hold CPython, which one, and where are its parts?
 *
 * The C API is not interposed (static builds bind it inside themselves);
 * everything comes from symbols and from memory.
 *
 * Runs in: [loader], and [interposer] when an interpreter is loaded late.
 */
#ifndef APROF_PRELOAD_PYTHON_H
#define APROF_PRELOAD_PYTHON_H

#include <stdbool.h>
#include <stddef.h>

#include "sampler/cpython/target.h"

enum python_verdict {
    PYTHON_NONE,       /* no interpreter here (yet) */
    PYTHON_SUPPORTED,  /* target is complete */
    PYTHON_REFUSED     /* there is one, or something like it; reason says why not */
};

/* Some microseconds when there is none. late: also looks into objects that were
 * loaded privately (dlopen with RTLD_LOCAL), which takes the loader's lock. */
enum python_verdict python_find(struct py_target *target, bool late, char *reason, size_t size);

/* A symbol of the interpreter found last, also of a privately loaded one; NULL: none. */
void *python_symbol(const char *name);

/* "3.14.8": of the interpreter found last. */
const char *python_version_text(void);

#endif
