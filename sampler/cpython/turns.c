/* SPDX-License-Identifier: MIT */
#include "sampler/cpython/turns.h"

#include <string.h>

#include "sampler/cpython/asyncio.h"
#include "sampler/cpython/containers.h"
#include "sampler/cpython/frames.h"
#include "sampler/cpython/objects.h"

enum { FRAMES_MOST = 4096, BASES_MOST = 64 };
static const char function[] = "BaseEventLoop._run_once";

/* The first class of the line that has a method `time` is the one that has _run_once. */
static bool has_asyncios_time(const struct py_target *target, uintptr_t type)
{
    uintptr_t dict;
    for (int i = 0; i < BASES_MOST && objects_word(type, target->layout.type_dict, &dict); i++) {
        if (dict && containers_dict_get(target, dict, "time"))
            return containers_dict_get(target, dict, "_run_once") != 0;
        if (!objects_word(type, target->layout.type_base, &type))
            return false;
    }
    return false;
}

static bool has_asyncios_clock(const struct py_target *target, struct turns *turns, uintptr_t loop)
{
    uintptr_t type;
    if (!objects_word(loop, target->layout.object_type, &type) || containers_attribute(target, loop, "time"))
        return false;
    if (type != turns->loop_type) {
        turns->loop_type = type;
        turns->asyncios_clock = has_asyncios_time(target, type);
    }
    return turns->asyncios_clock;
}

/* What lies at an address that may be another frame's by now. */
static bool is_run_once(const struct py_target *target, const struct turns *turns)
{
    uintptr_t executable;
    struct py_code code;
    return turns->frame && objects_word(turns->frame, target->layout.frame_executable, &executable) &&
           code_read(target, executable & ~(uintptr_t)target->layout.executable_tag_mask, &code) && code.identity == turns->code.identity;
}

/* The innermost. Of a thread that runs the walk may go astray, and finds none then. */
static bool find(const struct py_target *target, struct turns *turns, uintptr_t tstate)
{
    struct frames_walk walk;
    struct py_frame frame;
    frames_begin(&walk, target, tstate, FRAMES_MOST);
    while (frames_next(&walk, &frame)) {
        if (frame.kind != FRAME_PYTHON || !containers_is_text(target, frame.code.qualname, function))
            continue;
        turns->frame = frame.address;
        turns->code = frame.code;
        return true;
    }
    turns->frame = 0;
    return false;
}

/* Seconds as a float has them. */
static bool read_time(const struct py_target *target, uintptr_t object, struct turns_step *step)
{
    uintptr_t type, bits;
    double seconds;
    if (!objects_word(object, target->layout.object_type, &type) || !containers_type_is_named(target, type, "float") ||
        !objects_word(object, target->layout.object_type + 8, &bits))
        return false;
    memcpy(&seconds, &bits, sizeof seconds);
    step->turn = bits;
    step->left_ns = seconds > 0 && seconds < 1e9 ? (uint64_t)(seconds * 1e9) : 0;
    return true;
}

static enum turns_found read_step(const struct py_target *target, const struct turns *turns, struct turns_step *step)
{
    uintptr_t end_time, index;
    if (!containers_local_is(target, turns->frame, &turns->code, "end_time", &end_time) ||
        !containers_local_is(target, turns->frame, &turns->code, "i", &index))
        return TURNS_UNKNOWN;
    if (!end_time || !index)
        return TURNS_NONE;
    return read_time(target, end_time, step) && objects_number(target, index, &step->handle) ? TURNS_STEP : TURNS_UNKNOWN;
}

enum turns_found turns_look(const struct py_target *target, struct turns *turns, uintptr_t tstate, struct turns_step *step)
{
    struct turns_step again;
    uintptr_t loop = asyncio_running_loop(target, tstate);
    if (!loop) /* what its last turn left may be in memory still */
        return TURNS_NONE;
    if (!is_run_once(target, turns) && !find(target, turns, tstate))
        return TURNS_UNKNOWN;
    enum turns_found found = read_step(target, turns, step);
    if (found != TURNS_STEP)
        return found;
    if (!has_asyncios_clock(target, turns, loop))
        return TURNS_UNKNOWN;
    found = read_step(target, turns, &again);
    return found == TURNS_STEP && again.turn == step->turn && again.handle == step->handle ? TURNS_STEP : TURNS_UNKNOWN;
}
