/* SPDX-License-Identifier: MIT
 *
 * turns: which step an event loop of asyncio's own is in: which handle of which turn.
 *
 * BaseEventLoop._run_once is called once a turn; its variable end_time says when that turn
 * left the selector, by a clock that never shows the same twice, and its variable i which
 * of the turn's handles it has come to. So one that has both as before is in the same step,
 * whatever lies between two looks; addresses (of the frame, the handle, the task) prove
 * nothing, as they are used again at once.
 *
 * They change under no look but between steps, so this may be asked of a thread that runs.
 * A loop whose class or instance has a method `time` of its own proves nothing: its clock
 * may stand.
 *
 * Runs in: [sampler]. No allocation, bounded. Sources: Lib/asyncio/base_events.py, the same
 * from 3.11 to 3.15 in what is read here (3.14 and later: end_time is strictly increasing
 * also where the clock is coarse).
 */
#ifndef APROF_SAMPLER_CPYTHON_TURNS_H
#define APROF_SAMPLER_CPYTHON_TURNS_H

#include <stdbool.h>
#include <stdint.h>

#include "sampler/cpython/code.h"
#include "sampler/cpython/target.h"

/* Where a thread's _run_once is: kept from one look to the next. Zeroed: not known. */
struct turns {
    uintptr_t frame;
    struct py_code code;
    uintptr_t loop_type; /* whose clock was looked for last, ... */
    bool asyncios_clock; /* ... and is that of asyncio */
};

struct turns_step {
    uint64_t turn;    /* the bits of end_time */
    uint64_t handle;  /* the turn's first one is 0 */
    uint64_t left_ns; /* end_time in nanoseconds, by the loop's clock: CLOCK_MONOTONIC, unless somebody gave it another */
};

enum turns_found {
    TURNS_STEP,
    TURNS_NONE,   /* it is in no step: in the selector, or runs no loop */
    TURNS_UNKNOWN /* it has no _run_once that can be read, or a clock of its own */
};

enum turns_found turns_look(const struct py_target *target, struct turns *turns, uintptr_t tstate, struct turns_step *step);

#endif
