/* SPDX-License-Identifier: MIT
 *
 * collector: whether a thread runs a garbage collection now, as the interpreter's own
 * flag says (3.13 and later; earlier versions have such a word, too, but collect at any
 * allocation, where what it says of a thread is not proven).
 *
 * What runs a collection has the GIL. 3.15 says in which frame it began: it is this
 * thread's, if that is among its frames. Before, the GIL's holder is taken for it: should
 * a finalizer give the GIL away, whoever gets it meanwhile seems to collect.
 *
 * Runs in: [handler] on the thread itself, [sampler] on threads that stand still.
 * Sources of the facts: Include/internal/pycore_interp_structs.h (collecting, frame),
 * Python/gc.c (gc_collect_main).
 */
#ifndef APROF_SAMPLER_CPYTHON_COLLECTOR_H
#define APROF_SAMPLER_CPYTHON_COLLECTOR_H

#include <stdbool.h>
#include <stdint.h>

#include "sampler/cpython/target.h"

/* One read more than states_interp() where none is under way. limit: of its frames that are looked at. */
bool collector_is_run_by(const struct py_target *target, uintptr_t tstate, uint32_t limit);

#endif
