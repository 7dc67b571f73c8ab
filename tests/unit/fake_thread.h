/* SPDX-License-Identifier: MIT
 *
 * fake_thread: a thread of the interpreter that runs plain functions and tasks of
 * tests/unit/fake_asyncio.h. Frames are pushed from the root on.
 */
#ifndef APROF_TESTS_UNIT_FAKE_THREAD_H
#define APROF_TESTS_UNIT_FAKE_THREAD_H

#include "tests/unit/fake_asyncio.h"

#define FAKE_TSTATE_AT 0x50000000u
#define FAKE_CFRAME_AT 0x51000000u
#define FAKE_FUNCTION_AT(i) (0x60000000u + 0x1000000u * (unsigned)(i)) /* code objects */
#define FAKE_FRAME_AT(i) (0x53000000u + 0x1000u * (unsigned)(i))
#define FAKE_MARKER_AT(i) (0x54000000u + 0x1000u * (unsigned)(i))
#define FAKE_THREAD_DICT_AT 0x56000000u
#define FAKE_CURRENT_AT(i) (0x55000000u + 0x100000u * (unsigned)(i)) /* dicts of current tasks */

struct fake_thread {
    struct fake_world *world;
    uintptr_t top;
    int frames, markers;
    bool entered; /* 3.11: the next frame is the first of a call from C */
};

static inline void fake_enter_c(struct fake_thread *thread)
{
    const struct py_target *target = &thread->world->target;
    thread->entered = true;
    if (target->layout.frame_is_entry != LAYOUT_NONE)
        return;
    struct fake frame = fake_frame_new(target, FAKE_MARKER_AT(thread->markers++), 0x3, 0, thread->top);
    fake_put_byte(&frame, target->layout.frame_owner, target->layout.owner_entry);
    thread->top = fake_place(&frame);
}

static inline struct fake_thread fake_thread_of(struct fake_world *world)
{
    struct fake_thread thread = {.world = world};
    if (world->target.layout.thread_base_frame != LAYOUT_NONE)
        fake_enter_c(&thread);
    fake_enter_c(&thread);
    return thread;
}

/* The code of function i. */
static inline uintptr_t fake_function(const struct py_target *target, int i, const char *name, const char *path)
{
    struct fake code = fake_code_new(target, FAKE_FUNCTION_AT(i));
    fake_put_word(&code, target->layout.code_qualname, fake_str(target, FAKE_FUNCTION_AT(i) + 0x50000, name));
    fake_put_word(&code, target->layout.code_filename, fake_str(target, FAKE_FUNCTION_AT(i) + 0x60000, path));
    if (target->layout.code_version != LAYOUT_NONE)
        fake_put_int(&code, target->layout.code_version, 9000 + (unsigned)i);
    return fake_place(&code);
}

/* Calls a function from Python. */
static inline void fake_call(struct fake_thread *thread, uintptr_t code)
{
    const struct py_target *target = &thread->world->target;
    struct fake frame = fake_frame_new(target, FAKE_FRAME_AT(thread->frames++), code, 0, thread->top);
    if (target->layout.frame_is_entry != LAYOUT_NONE)
        fake_put_byte(&frame, target->layout.frame_is_entry, thread->entered);
    thread->entered = false;
    thread->top = fake_place(&frame);
}

/* C runs a step of this task: its coroutines execute. */
static inline void fake_step(struct fake_thread *thread, uint32_t task, int levels)
{
    struct fake_world *world = thread->world;
    const struct layout *layout = &world->target.layout;
    fake_enter_c(thread);
    fake_task_runs(world, task, levels);
    for (int level = 0; level < levels; level++) {
        uintptr_t frame = fake_coro_at(task, level) + (uintptr_t)layout->gen_frame;
        fake_world_word(world, frame, layout->frame_previous, thread->top);
        if (layout->frame_is_entry != LAYOUT_NONE) /* 3.11 awaits by a call from C */
            fake_world_byte(world, frame, layout->frame_is_entry, 1);
        thread->top = frame;
    }
    thread->entered = false;
}

/* The innermost running task, where this version keeps it. */
static inline void fake_current_task(struct fake_world *world, struct fake *tstate, uintptr_t task)
{
    const struct layout *layout = &world->target.layout;
    const uintptr_t pair[] = {fake_loop_at(0), task};
    if (layout->thread_running_task != LAYOUT_NONE)
        fake_put_word(tstate, layout->thread_running_task, task);
    else
        world->asyncio.current_tasks[0] = fake_dict(&world->target, FAKE_CURRENT_AT(0), FAKE_KEYS_GENERAL, pair, task != 0);
}

/* The thread runs the first loop. */
static inline void fake_running_loop(const struct py_target *target, struct fake *tstate)
{
    const struct layout *layout = &target->layout;
    if (layout->thread_running_loop != LAYOUT_NONE) {
        fake_put_word(tstate, layout->thread_running_loop, fake_loop_at(0));
        return;
    }
    const uintptr_t pair[] = {fake_str(target, FAKE_THREAD_DICT_AT + 0x100000, "__asyncio_running_event_loop__"), fake_loop_at(0)};
    fake_put_word(tstate, layout->thread_dict, fake_dict(target, FAKE_THREAD_DICT_AT, FAKE_KEYS_UNICODE, pair, 1));
}

/* The thread state, not placed yet. */
static inline struct fake fake_tstate_new(struct fake_thread *thread, uintptr_t current_task)
{
    const struct layout *layout = &thread->world->target.layout;
    struct fake tstate = fake_new(FAKE_TSTATE_AT, 2048);
    if (layout->thread_cframe != LAYOUT_NONE) {
        struct fake cframe = fake_new(FAKE_CFRAME_AT, 32);
        fake_put_word(&cframe, layout->cframe_current, thread->top);
        fake_put_word(&tstate, layout->thread_cframe, fake_place(&cframe));
    } else {
        fake_put_word(&tstate, layout->thread_current_frame, thread->top);
    }
    if (layout->thread_base_frame != LAYOUT_NONE)
        fake_put_word(&tstate, layout->thread_base_frame, FAKE_MARKER_AT(0));
    fake_put_word(&tstate, layout->thread_interp, FAKE_INTERP_AT);
    fake_running_loop(&thread->world->target, &tstate);
    fake_current_task(thread->world, &tstate, current_task);
    return tstate;
}

static inline uintptr_t fake_thread_place(struct fake_thread *thread, uintptr_t current_task)
{
    struct fake tstate = fake_tstate_new(thread, current_task);
    return fake_place(&tstate);
}

#endif
