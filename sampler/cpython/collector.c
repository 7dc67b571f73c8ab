/* SPDX-License-Identifier: MIT */
#include "sampler/cpython/collector.h"

#include "hooks/guard.h"
#include "sampler/cpython/frames.h"
#include "sampler/cpython/states.h"

static bool is_under_way(const struct layout *layout, uintptr_t interp)
{
    int32_t collecting;
    return interp && guard_copy(&collecting, interp + (uintptr_t)layout->interp_gc_collecting, sizeof collecting) && collecting == 1;
}

static bool is_among_its_frames(const struct py_target *target, uintptr_t tstate, uint64_t began_in, uint32_t limit)
{
    struct frames_walk walk;
    struct py_frame frame;
    frames_begin(&walk, target, tstate, limit);
    while (frames_next(&walk, &frame))
        if (frame.address == began_in)
            return true;
    return false;
}

bool collector_is_run_by(const struct py_target *target, uintptr_t tstate, uint32_t limit)
{
    const struct layout *layout = &target->layout;
    uintptr_t interp;
    uint64_t began_in;
    if (!layout->gc_is_told || !is_under_way(layout, interp = states_interp(target, tstate)) || !states_holds_gil(target, tstate))
        return false;
    if (layout->interp_gc_frame == LAYOUT_NONE)
        return true;
    return guard_word(interp + (uintptr_t)layout->interp_gc_frame, &began_in) && is_among_its_frames(target, tstate, began_in, limit);
}
