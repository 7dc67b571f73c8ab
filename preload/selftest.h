/* SPDX-License-Identifier: MIT
 *
 * selftest: are our readings of the interpreter's memory what the interpreter's
 * own functions say? Once a life of the runtime, in a pending call on its main
 * thread (with the GIL, between two instructions): the thread state, the current
 * frame's code object, its name and its line. A mismatch ends sampling with one
 * line; nothing is guessed.
 */
#ifndef APROF_PRELOAD_SELFTEST_H
#define APROF_PRELOAD_SELFTEST_H

#include <stdbool.h>

#include "sampler/cpython/target.h"

/* [loader] Finds the interpreter's functions. */
void selftest_prepare(void);

/* [sampler] The runtime is ready: posts the test. False when the symbols it
 * needs are missing or the thread list cannot be read. */
bool selftest_post(const struct py_target *target);

#endif
