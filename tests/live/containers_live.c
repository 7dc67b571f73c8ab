/* SPDX-License-Identifier: MIT
 *
 * containers_live: sampler/cpython/containers.h for containers_live.py, and the
 * layout's members by name, so that it can look at them in the objects of its own
 * interpreter.
 */
#include "sampler/cpython/containers.h"

#include <stddef.h>
#include <string.h>

#include "tests/live/live.h"

long live_items(uintptr_t object, uintptr_t *out, long max);
long live_dict(uintptr_t object, uintptr_t *out, long max);
long live_set(uintptr_t object, uintptr_t *out, long max);
long live_deque(uintptr_t object, uintptr_t *out, long max);
long live_get(uintptr_t dict, const char *key);
long live_attribute(uintptr_t object, const char *name);
long live_closure(uintptr_t function, const char *name);
long live_local(uintptr_t generator, const char *name);
long live_is_text(uintptr_t object, const char *text);
long live_type_is_named(uintptr_t type, const char *name);
long live_offset(const char *member);
long live_resume(long index);

LIVE long live_items(uintptr_t object, uintptr_t *out, long max)
{
    struct items items;
    if (!containers_items(&target, object, &items) || items.count > max)
        return -1;
    for (uint32_t i = 0; i < items.count; i++)
        out[i] = containers_item(&items, i);
    return containers_item(&items, items.count) ? -2 : (long)items.count;
}

/* Keys and values by turns; the number of entries. */
LIVE long live_dict(uintptr_t object, uintptr_t *out, long max)
{
    struct dict_walk walk;
    long count = 0;
    if (!containers_dict_begin(&walk, &target, object))
        return -1;
    while (count < max && containers_dict_next(&walk, &out[2 * count], &out[2 * count + 1]))
        count++;
    return count;
}

LIVE long live_set(uintptr_t object, uintptr_t *out, long max)
{
    struct set_walk walk;
    long count = 0;
    if (!containers_set_begin(&walk, &target, object))
        return -1;
    while (count < max && containers_set_next(&walk, &out[count]))
        count++;
    return count;
}

LIVE long live_deque(uintptr_t object, uintptr_t *out, long max)
{
    struct deque_walk walk;
    long count = 0;
    if (!containers_deque_begin(&walk, &target, object))
        return -1;
    while (count < max && containers_deque_next(&walk, &out[count]))
        count++;
    return count;
}

LIVE long live_get(uintptr_t dict, const char *key)
{
    return (long)containers_dict_get(&target, dict, key);
}

LIVE long live_attribute(uintptr_t object, const char *name)
{
    return (long)containers_attribute(&target, object, name);
}

LIVE long live_closure(uintptr_t function, const char *name)
{
    return (long)containers_closure(&target, function, name);
}

/* Of the frame that is embedded in a generator or coroutine. -1: it has no code. */
LIVE long live_local(uintptr_t generator, const char *name)
{
    uintptr_t frame = generator + (uintptr_t)target.layout.gen_frame;
    struct py_code code;
    uint64_t executable;
    if (!guard_word(frame + (uintptr_t)target.layout.frame_executable, &executable) ||
        !code_read(&target, executable & ~(uint64_t)target.layout.executable_tag_mask, &code))
        return -1;
    return (long)containers_local(&target, frame, &code, name);
}

LIVE long live_is_text(uintptr_t object, const char *text)
{
    return containers_is_text(&target, object, text);
}

LIVE long live_type_is_named(uintptr_t type, const char *name)
{
    return containers_type_is_named(&target, type, name);
}

#define MEMBERS(X) \
    X(method_function) X(method_self) X(function_code) X(function_closure) X(cell_value) X(weakref_object) X(cfunction_def) \
    X(cfunction_self) X(partial_function) X(partial_args) X(long_size) X(long_digits) X(type_basicsize) X(type_base) X(type_dict) \
    X(type_dictoffset) X(type_dealloc) X(type_init) X(type_subclasses) X(type_flags) X(flag_inline_values) X(flag_managed_dict) \
    X(flag_heap_type) X(code_nlocalsplus) X(code_nfreevars) X(code_stacksize) X(gen_frame) X(gen_state) X(gen_created) \
    X(gen_suspended) X(gen_awaiting) X(gen_executing) X(gen_finished) X(await_slot) X(wrapper_inner) X(frame_executable) \
    X(frame_stacktop) X(frame_localsplus) X(frame_instr) X(executable_tag_mask) X(long_is_tagged) X(future_size) X(task_size) \
    X(future_loop) X(future_callback0) X(future_callbacks) X(future_state) X(future_awaited_by) X(future_awaited_by_is_set) \
    X(task_waiter) X(task_coro) X(task_name) X(task_node) X(thread_dict) X(thread_interp) X(thread_running_loop) \
    X(thread_running_task) X(thread_tasks) X(interp_tasks)

/* A member's value; -1 (LAYOUT_NONE) also for a name that is not above. */
LIVE long live_offset(const char *member)
{
#define X(name) \
    if (strcmp(member, #name) == 0) \
        return (long)target.layout.name;
    MEMBERS(X)
#undef X
    return LAYOUT_NONE;
}

LIVE long live_resume(long index)
{
    return target.layout.resume_opcodes[index];
}
