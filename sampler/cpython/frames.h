/* SPDX-License-Identifier: MIT
 *
 * frames: the Python frames of one thread, leaf first.
 * Runs in: [handler] on the thread itself, [sampler] on threads that stand
 * still. No allocation, no recursion, bounded; a walk is a small struct, so
 * that a handler needs no array.
 *
 * What is shown: every frame of Python code. What is not: entry markers of C
 * (3.12+: owner >= owner_entry) and the __init__ shim (3.13+). A marker is
 * reported as FRAME_GROUP_END with its address, so that native frames can be
 * merged by stack address later; on 3.11 a frame with is_entry set is followed
 * by one, with the address of the frame.
 *
 * 3.11/3.12: a thread interrupted while it enters the C interpreter has a current
 * frame that is not set (3.11) or not linked yet (3.12); its stack is then that
 * of the C call before, which is what is shown.
 *
 * A chain must end in the thread's known bottom: an entry frame of C with
 * previous NULL (3.12+), 3.15's base_frame, 3.11: is_entry and previous NULL. A
 * chain that ends anywhere else (a generator's frame with previous NULL, seen on
 * 3.12 while a generator hands back) is torn: never publish it.
 */
#ifndef APROF_SAMPLER_CPYTHON_FRAMES_H
#define APROF_SAMPLER_CPYTHON_FRAMES_H

#include <stdbool.h>
#include <stdint.h>

#include "sampler/cpython/code.h"
#include "sampler/cpython/target.h"

enum frame_kind { FRAME_PYTHON, FRAME_GROUP_END };

struct py_frame {
    enum frame_kind kind;
    uintptr_t address;   /* of the _PyInterpreterFrame */
    struct py_code code; /* FRAME_PYTHON */
    int32_t lasti;       /* byte offset of the current instruction; -1 (or less): at the def line */
    uint8_t owner;
};

enum frames_end {
    FRAMES_MORE,     /* the walk goes on */
    FRAMES_COMPLETE, /* ended in the thread's bottom */
    FRAMES_EMPTY,    /* the thread has no Python frame now (markers alone count as none) */
    FRAMES_TORN,     /* the pieces do not belong together */
    FRAMES_FAULT,    /* memory was not readable, or was not what it must be */
    FRAMES_LIMIT     /* the limit was reached */
};

struct frames_walk {
    const struct py_target *target;
    uintptr_t next;          /* frame to read next */
    uintptr_t base;          /* 3.15: the thread's base frame */
    uintptr_t cframe;        /* 3.11/3.12: the struct on the C stack that named the first frame */
    uintptr_t group_end;     /* 3.11: marker still to be reported */
    uint32_t taken, limit;   /* frames read, markers and shims included */
    bool shown;              /* a frame of Python was given out */
    enum frames_end end;
};

/* Starts at the thread state's current frame. limit: frames read at most. */
void frames_begin(struct frames_walk *walk, const struct py_target *target, uintptr_t tstate, uint32_t limit);

/* The next entry; false at the end: walk->end says which. */
bool frames_next(struct frames_walk *walk, struct py_frame *frame);
/* The frame of Python that was given out last comes once more. */
void frames_give_again(struct frames_walk *walk, const struct py_frame *frame);

#endif
