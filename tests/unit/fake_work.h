/* SPDX-License-Identifier: MIT
 *
 * fake_work: a worker's frame of _WorkItem.run or of anyio's WorkerThread.run, and what leads from there to a future of asyncio. */
#ifndef APROF_TESTS_UNIT_FAKE_WORK_H
#define APROF_TESTS_UNIT_FAKE_WORK_H

#include "tests/unit/fake_callables.h"
#include "tests/unit/fake_thread.h"

#define FAKE_WORK_AT(i) (0x3000000000ul + 0x10000000ul * (unsigned)(i))
#define FAKE_WORK_CLASS_AT 0x240d0000u
#define FAKE_WORK_DICTOFFSET 40

/* An instance with one attribute. */
static inline uintptr_t fake_work_object(const struct py_target *target, uintptr_t at, const char *name, uintptr_t value)
{
    const uintptr_t pair[] = {fake_str(target, at + 0x100000, name), value};
    struct fake object = fake_new(at, 64), type = fake_type_new(&target->layout, FAKE_WORK_CLASS_AT, "Item", target->layout.flag_heap_type, OBJECT_TYPE_AT);
    fake_put_word(&type, target->layout.type_dictoffset, FAKE_WORK_DICTOFFSET);
    fake_place(&type);
    fake_put_word(&object, target->layout.object_type, FAKE_WORK_CLASS_AT);
    fake_put_word(&object, FAKE_WORK_DICTOFFSET, fake_dict(target, at + 0x200000, FAKE_KEYS_UNICODE, pair, 1));
    return fake_place(&object);
}

/* An item whose future has this list of callbacks. */
static inline uintptr_t fake_work_item(const struct py_target *target, uintptr_t callbacks)
{
    return fake_work_object(target, FAKE_WORK_AT(0), "future", fake_work_object(target, FAKE_WORK_AT(1), "_done_callbacks", callbacks));
}

static inline uintptr_t fake_work_callback(const struct py_target *target, uintptr_t destination)
{
    return fake_callable_function(target, FAKE_WORK_AT(2), "_chain_future.<locals>._call_set_state", "destination", destination);
}

/* Behind a callback of somebody else's. */
static inline uintptr_t fake_work_callbacks(const struct py_target *target, uintptr_t callback)
{
    const uintptr_t items[] = {fake_callable_function(target, FAKE_WORK_AT(3), "another", NULL, 0), callback};
    return fake_list(target, FAKE_WORK_AT(4), items, 2);
}

/* Both are at the same place: one at a time. */
static inline uintptr_t fake_work_code(const struct py_target *target, const char *variable, const char *name, const char *path)
{
    struct fake code = fake_code_with_variables(target, FAKE_WORK_AT(5), &variable, "\x20", 0);
    fake_put_word(&code, target->layout.code_qualname, fake_str(target, FAKE_WORK_AT(6), name));
    fake_put_word(&code, target->layout.code_filename, fake_str(target, FAKE_WORK_AT(7), path));
    return fake_place(&code);
}

/* The thread calls a function that has this in its one variable. */
static inline void fake_call_with(struct fake_thread *thread, uintptr_t code, uintptr_t value)
{
    fake_call(thread, code);
    fake_words(thread->top + (uintptr_t)thread->world->target.layout.frame_localsplus, &value, 1);
}

static inline void fake_call_work(struct fake_thread *thread, uintptr_t item)
{
    fake_call_with(thread, fake_work_code(&thread->world->target, "self", "_WorkItem.run", "/lib/python3/concurrent/futures/thread.py"), item);
}

static inline void fake_call_anyio(struct fake_thread *thread, uintptr_t future)
{
    fake_call_with(thread, fake_work_code(&thread->world->target, "future", "WorkerThread.run", "/lib/anyio/_backends/_asyncio.py"), future);
}

#endif
