/* SPDX-License-Identifier: MIT */
#include "sampler/stacks.h"

#include "hooks/log.h"
#include "hooks/mem.h"

enum { WALK_FACTOR = 4 }; /* as in the CPU tick */

struct stack_copy *stacks_new_copy(uint32_t depth)
{
    struct stack_copy *copy = mem_zalloc(sizeof *copy + depth * sizeof copy->entry[0]);
    if (copy)
        copy->depth = depth;
    return copy;
}

enum frames_end stacks_capture(struct stack_copy *copy, const struct py_target *target, uintptr_t tstate)
{
    struct frames_walk walk;
    struct py_frame frame;
    copy->frames = copy->cut = 0;
    frames_begin(&walk, target, tstate, copy->depth * WALK_FACTOR);
    while (frames_next(&walk, &frame)) {
        if (frame.kind != FRAME_PYTHON)
            continue;
        if (copy->frames < copy->depth)
            copy->entry[copy->frames++] = (struct stack_entry){frame.code.identity, frame.code.address, frame.lasti, 0};
        else
            copy->cut++;
    }
    copy->end = walk.end;
    if (stacks_is_whole(copy->end) && copy->frames == 0)
        copy->end = FRAMES_EMPTY;
    return copy->end;
}

bool stacks_is_whole(enum frames_end end)
{
    return end == FRAMES_COMPLETE || end == FRAMES_LIMIT;
}

bool stacks_equal(const struct stack_copy *a, const struct stack_copy *b)
{
    if (a->end != b->end || a->frames != b->frames || a->cut != b->cut)
        return false;
    for (uint32_t i = 0; i < a->frames; i++)
        if (a->entry[i].identity != b->entry[i].identity || a->entry[i].lasti != b->entry[i].lasti)
            return false;
    return true;
}

static profile_frame frame_of(struct stacks *stacks, const struct stack_entry *entry)
{
    profile_frame frame = codes_frame(stacks->profile, &stacks->paths, entry->identity, entry->lasti);
    if (!frame && entry->code && codes_learn(stacks->target, entry->code, entry->identity))
        frame = codes_frame(stacks->profile, &stacks->paths, entry->identity, entry->lasti);
    return frame;
}

bool stacks_resolve(struct stacks *stacks, struct stack_copy *copy)
{
    for (uint32_t i = 0; i < copy->frames; i++) {
        if (!copy->entry[i].frame)
            copy->entry[i].frame = frame_of(stacks, &copy->entry[i]);
        if (!copy->entry[i].frame)
            return false;
    }
    return true;
}

static uint32_t loop_flags(const struct profile *profile, profile_stack parent, profile_frame frame)
{
    uint32_t code = profile_frame_flags(profile, frame);
    uint32_t flags = profile_stack_flags(profile, parent) & STACK_IN_LOOP;
    if (code & CODE_LOOP)
        flags |= STACK_IN_LOOP;
    if (code & CODE_SELECTOR && profile_frame_flags(profile, profile_leaf(profile, parent)) & CODE_LOOP)
        flags |= STACK_IDLE;
    return flags;
}

static profile_stack push(struct stacks *stacks, profile_stack parent, profile_frame frame)
{
    profile_stack stack = profile_push(stacks->profile, parent, frame);
    uint32_t flags = frame ? loop_flags(stacks->profile, parent, frame) : 0;
    if (flags && stack != profile_overflow(stacks->profile))
        profile_set_stack_flags(stacks->profile, stack, flags);
    return stack;
}

profile_stack stacks_intern(struct stacks *stacks, const struct stack_copy *copy)
{
    profile_stack stack = PROFILE_ROOT;
    if (copy->cut) {
        char marker[32];
        size_t length = log_format(marker, sizeof marker, "[truncated %u]", copy->cut);
        stack = push(stacks, stack, profile_intern(stacks->profile, marker, length, 0));
    }
    for (uint32_t i = copy->frames; i-- > 0;) {
        profile_frame frame = copy->entry[i].frame ? copy->entry[i].frame : frame_of(stacks, &copy->entry[i]);
        if (!frame) {
            frame = stacks->unknown;
            stacks->unreadable++;
        }
        stack = push(stacks, stack, frame);
    }
    return stack;
}
