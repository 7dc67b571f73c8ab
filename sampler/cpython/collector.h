/* SPDX-License-Identifier: MIT
 *
 * collector: whether a thread runs a garbage collection now, as the interpreter's own
 * flag says (3.13 and later; earlier versions have such a word, too, but collect at any
 * allocation, where what it says of a thread is not proven).
 *
 * The flag is the interpreter's, not a thread's, and whoever has the GIL while it is up need
 * not be who collects: a finalizer may have given the GIL away. 3.15 says in which frame the
 * collection began: it is this thread's, if that is among its frames. Before, the holder of
 * the GIL collects
 *
 *   - where the GIL has had no other holder since it was last seen to have it with the flag
 *     down, or to be the one who collects: the GIL counts its changes of hands, and the flag
 *     goes up with the GIL held;
 *   - where objects of a generation are marked as being collected: while they are, the
 *     interpreter's own code runs and nothing else, so the GIL stays where it is. Once they
 *     no longer are, finalizers may run. (A part of the old generation, as 3.14 collects it,
 *     hangs from nowhere that can be found, and is not seen to be marked.)
 *
 * Else it cannot be told. Who has given the GIL away does not collect meanwhile.
 *
 * Runs in: [handler] on the thread itself, [sampler] on threads that stand still.
 * Sources of the facts: Include/internal/pycore_interp_structs.h (collecting, frame),
 * Include/internal/pycore_gc.h (_PyGC_PREV_MASK_COLLECTING), Python/gc.c (gc_collect_main,
 * deduce_unreachable, delete_garbage), Python/ceval_gil.c (take_gil: switch_number).
 */
#ifndef APROF_SAMPLER_CPYTHON_COLLECTOR_H
#define APROF_SAMPLER_CPYTHON_COLLECTOR_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "sampler/cpython/target.h"

enum collector_found {
    COLLECTOR_NOT,
    COLLECTOR_RUNS,
    COLLECTOR_UNKNOWN /* one is under way, and the thread has the GIL: it cannot be told whether it is its own */
};

/* Of one thread of the system; all zero: nothing is known. Only the thread itself writes it. */
struct collector_memory {
    _Atomic uintptr_t tstate;  /* it was seen to have this one's GIL while no other thread collected, ... */
    _Atomic uint64_t switches; /* ... which had changed hands so often */
};

/* limit: of its frames that are looked at. memory: of the thread, NULL: none; own: it is the thread itself that asks. */
enum collector_found collector_of(const struct py_target *target, uintptr_t tstate, uint32_t limit, struct collector_memory *memory, bool own);

#endif
