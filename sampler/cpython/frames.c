/* SPDX-License-Identifier: MIT
 *
 * frames: follows f->previous from the current frame to the thread's bottom, one
 * guarded copy a frame and one a code object. In a thread's own CPU tick the
 * interpreter may have been interrupted in the middle of pushing or popping a
 * frame, so nothing read here is taken on trust. */
#include "sampler/cpython/frames.h"

#include <string.h> /* memcpy */

#include "hooks/guard.h"

#define FRAME_MAX 128 /* largest frame_size; layout.c checks the table's */
#define ADDRESS_LOWEST 4096u

struct words { /* of one _PyInterpreterFrame */
    uintptr_t executable, previous, instr;
    uint8_t owner, is_entry;
};

static bool stop(struct frames_walk *walk, enum frames_end end)
{
    walk->end = end;
    return false;
}

static bool read_word(uintptr_t base, int32_t offset, uintptr_t *value)
{
    uint64_t word;
    if (base < ADDRESS_LOWEST || !guard_word(base + (uintptr_t)offset, &word))
        return false;
    *value = (uintptr_t)word;
    return true;
}

/* 3.11/3.12 keep the current frame in a struct on that thread's C stack. */
static bool read_current(struct frames_walk *walk, const struct layout *layout, uintptr_t tstate)
{
    if (layout->thread_cframe == LAYOUT_NONE)
        return read_word(tstate, layout->thread_current_frame, &walk->next);
    return read_word(tstate, layout->thread_cframe, &walk->cframe) && read_word(walk->cframe, layout->cframe_current, &walk->next);
}

/* 3.11/3.12: the frame from which the C interpreter was entered last. */
static bool read_outer(const struct frames_walk *walk, uintptr_t *outer)
{
    const struct layout *layout = &walk->target->layout;
    uintptr_t cframe;
    return walk->cframe && read_word(walk->cframe, layout->cframe_previous, &cframe) && read_word(cframe, layout->cframe_current, outer);
}

void frames_begin(struct frames_walk *walk, const struct py_target *target, uintptr_t tstate, uint32_t limit)
{
    const struct layout *layout = &target->layout;

    *walk = (struct frames_walk){.target = target, .limit = limit, .end = FRAMES_MORE};
    if (!read_current(walk, layout, tstate))
        walk->end = FRAMES_FAULT;
    else if (layout->thread_base_frame != LAYOUT_NONE && !read_word(tstate, layout->thread_base_frame, &walk->base))
        walk->end = FRAMES_FAULT;
    else if (!walk->next)
        walk->end = FRAMES_EMPTY;
}

static bool read_frame(const struct layout *layout, uintptr_t address, struct words *words)
{
    unsigned char copy[FRAME_MAX];

    if (layout->frame_size > FRAME_MAX || !guard_copy(copy, address, (size_t)layout->frame_size))
        return false;
    memcpy(&words->executable, copy + layout->frame_executable, sizeof words->executable);
    memcpy(&words->previous, copy + layout->frame_previous, sizeof words->previous);
    memcpy(&words->instr, copy + layout->frame_instr, sizeof words->instr);
    words->owner = copy[layout->frame_owner];
    words->is_entry = layout->frame_is_entry == LAYOUT_NONE ? 0 : copy[layout->frame_is_entry];
    words->executable &= ~(uintptr_t)layout->executable_tag_mask;
    return true;
}

/* Whether a chain may end below the frame just read. Never in a generator's
 * frame: one that is handing over (3.11, 3.12) has lost its previous already, and
 * on 3.11 is_entry tells nothing, as it may be left from an earlier call. */
static bool is_bottom(const struct frames_walk *walk, uintptr_t address, const struct words *words, bool entry)
{
    return entry && words->owner != walk->target->layout.owner_generator && (!walk->base || walk->base == address);
}

/* Steps down from the frame at address; previous NULL must mean the bottom. */
static void step(struct frames_walk *walk, uintptr_t address, const struct words *words, bool entry)
{
    walk->taken++;
    walk->next = words->previous;
    if (words->previous == address)
        walk->end = FRAMES_TORN;
    else if (!words->previous && !is_bottom(walk, address, words, entry))
        walk->end = FRAMES_TORN;
}

static bool give_group_end(struct py_frame *frame, uintptr_t address, uint8_t owner)
{
    *frame = (struct py_frame){.kind = FRAME_GROUP_END, .address = address, .lasti = -1, .owner = owner};
    return true;
}

/* Reads the frame at walk->next and moves on. True: *frame is to be given out;
 * false: the end is set, or (the __init__ shim) there is nothing to show. */
static bool take_frame(struct frames_walk *walk, struct py_frame *frame)
{
    const struct layout *layout = &walk->target->layout;
    uintptr_t address = walk->next;
    struct words words;

    if (address % 8 != 0)
        return stop(walk, FRAMES_TORN);
    if (address < ADDRESS_LOWEST || !read_frame(layout, address, &words))
        return stop(walk, FRAMES_FAULT);
    if (words.owner > layout->owner_last || words.is_entry > 1)
        return stop(walk, FRAMES_TORN);
    if (words.owner >= layout->owner_entry) {
        if (walk->taken == 0)
            read_outer(walk, &words.previous); /* its own may not be set yet; 3.13+: leaves it */
        step(walk, address, &words, true);
        return walk->end == FRAMES_MORE && give_group_end(frame, address, words.owner);
    }
    if (!code_read(walk->target, words.executable, &frame->code))
        return stop(walk, FRAMES_FAULT);
    if (!code_offset(walk->target, &frame->code, words.instr, &frame->lasti))
        return stop(walk, FRAMES_TORN);
    step(walk, address, &words, words.is_entry);
    if (walk->end != FRAMES_MORE || code_is_init_shim(walk->target, &frame->code))
        return false;
    frame->kind = FRAME_PYTHON;
    frame->address = address;
    frame->owner = words.owner;
    walk->group_end = words.is_entry ? address : 0;
    walk->shown = true;
    return true;
}

/* The first frame made no sense: 3.11/3.12 may have been about to set it. Once. */
static bool go_outside(struct frames_walk *walk)
{
    if (walk->taken || !read_outer(walk, &walk->next))
        return false;
    walk->cframe = 0;
    walk->end = FRAMES_MORE;
    return true;
}

bool frames_next(struct frames_walk *walk, struct py_frame *frame)
{
    if (walk->end != FRAMES_MORE)
        return false;
    if (walk->group_end) { /* 3.11: the frame just given out was the first of its C call */
        uintptr_t address = walk->group_end;
        walk->group_end = 0;
        return give_group_end(frame, address, 0);
    }
    while (walk->end == FRAMES_MORE) {
        if (!walk->next)
            return stop(walk, walk->shown ? FRAMES_COMPLETE : FRAMES_EMPTY);
        if (walk->taken == walk->limit)
            return stop(walk, FRAMES_LIMIT);
        if (take_frame(walk, frame))
            return true;
        if (walk->end != FRAMES_MORE && !go_outside(walk))
            return false;
    }
    return false;
}

void frames_give_again(struct frames_walk *walk, const struct py_frame *frame)
{
    walk->next = frame->address;
    walk->taken--;
    walk->group_end = 0;
    walk->end = FRAMES_MORE;
}
