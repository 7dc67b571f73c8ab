/* SPDX-License-Identifier: MIT
 *
 * fake_asyncio: tasks, futures and coroutines in fake memory, in the layout of the
 * version under test. All of them lie in one mapping, so that thousands cost
 * nothing, and may be changed at any time.
 *
 * Task i has a coroutine t<i>.0, which awaits t<i>.1 and so on; the innermost awaits
 * what the task waits for: its own future, another task, or any other.
 */
#ifndef APROF_TESTS_UNIT_FAKE_ASYNCIO_H
#define APROF_TESTS_UNIT_FAKE_ASYNCIO_H

#include <stdio.h> /* snprintf */

#include "sampler/cpython/asyncios.h"
#include "sampler/profile.h"
#include "tests/unit/fake_python.h"

#define FAKE_TASKS_AT 0x200000000ul
#define FAKE_LOOP_AT 0x22000000u /* an object; the next loop is 0x1000 further */
#define FAKE_INTERP_AT 0x23000000u
#define FAKE_NAMES_AT 0x70000000u
#define FAKE_TASK_TYPE_AT 0x24000000u
#define FAKE_FUTURE_TYPE_AT 0x24010000u
#define FAKE_FUTURE_ITER_TYPE_AT 0x24020000u
#define FAKE_CORO_TYPE_AT 0x24030000u
#define FAKE_GEN_TYPE_AT 0x24040000u
#define FAKE_ASYNC_GEN_TYPE_AT 0x24050000u
#define FAKE_BUILTIN_TYPE_AT 0x24060000u
#define FAKE_METHOD_TYPE_AT 0x24070000u
#define FAKE_LOOP_TYPE_AT 0x24080000u
#define FAKE_TYPE_TYPE_AT 0x24090000u
#define FAKE_WAKEUP_DEF_AT 0x240a0000u
#define FAKE_FILE_AT 0x240b0000u
#define FAKE_LINES_AT 0x240c0000u

enum { /* one task's objects */
    FAKE_LEVELS = 3,
    FAKE_IN_CORO = 256, /* one a level */
    FAKE_IN_ITER = 1024,
    FAKE_IN_WAKEUP = 1088,
    FAKE_IN_FUTURE = 1152,
    FAKE_IN_TUPLE = 1408,
    FAKE_IN_NAME = 1472,
    FAKE_IN_CODE = 2048, /* one a level */
    FAKE_CODE_BYTES = 512,
    FAKE_TASK_BYTES = 4096
};

enum { FAKE_LOCALS = 1, FAKE_STACK = 3, FAKE_AT_AWAIT = 4 }; /* FAKE_AT_AWAIT: on the second line of the code */

struct fake_world {
    struct py_target target;
    struct asyncio asyncio;
    unsigned char *bytes;
    size_t size, used;
    uint32_t tasks;
    uint32_t kinds; /* so many have code of their own, the others in turn that of these; 0: all */
};

/* --- words --- */

static inline void fake_world_put(struct fake_world *world, uintptr_t address, int32_t offset, const void *value, size_t size)
{
    size_t at = address - FAKE_TASKS_AT + (size_t)offset;
    ck_assert_int_ge(offset, 0);
    ck_assert_uint_le(at + size, world->size);
    memcpy(world->bytes + at, value, size);
}

static inline void fake_world_word(struct fake_world *world, uintptr_t address, int32_t offset, uint64_t value)
{
    fake_world_put(world, address, offset, &value, sizeof value);
}

static inline void fake_world_int(struct fake_world *world, uintptr_t address, int32_t offset, uint32_t value)
{
    fake_world_put(world, address, offset, &value, sizeof value);
}

static inline void fake_world_byte(struct fake_world *world, uintptr_t address, int32_t offset, uint8_t value)
{
    fake_world_put(world, address, offset, &value, 1);
}

static inline uint64_t fake_world_get(const struct fake_world *world, uintptr_t address, int32_t offset)
{
    uint64_t word;
    memcpy(&word, world->bytes + (address - FAKE_TASKS_AT) + offset, sizeof word);
    return word;
}

/* Behind the tasks, of what was asked for; all 0. */
static inline uintptr_t fake_world_alloc(struct fake_world *world, size_t bytes)
{
    uintptr_t address = FAKE_TASKS_AT + world->used;
    world->used += (bytes + 7) / 8 * 8;
    ck_assert_uint_le(world->used, world->size);
    return address;
}

/* --- where they are --- */

static inline uintptr_t fake_task_at(uint32_t task)
{
    return FAKE_TASKS_AT + (uintptr_t)task * FAKE_TASK_BYTES;
}

static inline uintptr_t fake_coro_at(uint32_t task, int level)
{
    return fake_task_at(task) + FAKE_IN_CORO * (uintptr_t)(level + 1);
}

/* The task's own, which it waits for as a leaf. */
static inline uintptr_t fake_future_at(uint32_t task)
{
    return fake_task_at(task) + FAKE_IN_FUTURE;
}

static inline uintptr_t fake_loop_at(int loop)
{
    return FAKE_LOOP_AT + 0x1000u * (unsigned)loop;
}

/* --- the world --- */

static inline void fake_asyncio_types(struct fake_world *world)
{
    struct py_target *target = &world->target;
    const struct layout *layout = &target->layout;
    fake_named_type(layout, FAKE_TYPE_TYPE_AT, "type", 1ul << 31, OBJECT_TYPE_AT);
    struct fake task = fake_type_new(layout, FAKE_TASK_TYPE_AT, "_asyncio.Task", 0, OBJECT_TYPE_AT);
    struct fake future = fake_type_new(layout, FAKE_FUTURE_TYPE_AT, "_asyncio.Future", 0, OBJECT_TYPE_AT);
    fake_put_word(&task, layout->object_type, FAKE_TYPE_TYPE_AT);
    fake_put_word(&future, layout->object_type, FAKE_TYPE_TYPE_AT);
    fake_put_word(&task, layout->type_basicsize, (uint64_t)layout->task_size);
    fake_put_word(&future, layout->type_basicsize, (uint64_t)layout->future_size);
    world->asyncio = (struct asyncio){.interp = FAKE_INTERP_AT, .task_type = fake_place(&task), .future_type = fake_place(&future)};
    fake_named_type(layout, FAKE_FUTURE_ITER_TYPE_AT, "_asyncio.FutureIter", layout->minor > 11 ? layout->flag_heap_type : 0, OBJECT_TYPE_AT);
    fake_named_type(layout, FAKE_LOOP_TYPE_AT, "some_event_loop_of_somebody", layout->flag_heap_type, OBJECT_TYPE_AT);
    target->coro_type = fake_named_type(layout, FAKE_CORO_TYPE_AT, "coroutine", 0, OBJECT_TYPE_AT);
    target->gen_type = fake_named_type(layout, FAKE_GEN_TYPE_AT, "generator", 0, OBJECT_TYPE_AT);
    target->async_gen_type = fake_named_type(layout, FAKE_ASYNC_GEN_TYPE_AT, "async_generator", 0, OBJECT_TYPE_AT);
    target->cfunction_type = fake_named_type(layout, FAKE_BUILTIN_TYPE_AT, "builtin_function_or_method", 0, OBJECT_TYPE_AT);
    target->method_type = fake_named_type(layout, FAKE_METHOD_TYPE_AT, "method", 0, OBJECT_TYPE_AT);
    target->function_type = FUNCTION_TYPE_AT;
}

static inline void fake_loop(struct fake_world *world, int loop)
{
    struct fake object = fake_new(fake_loop_at(loop), 64);
    fake_put_word(&object, world->target.layout.object_type, FAKE_LOOP_TYPE_AT);
    fake_place(&object);
}

/* Room for so many tasks, none of which is one yet, and for further bytes. One loop. */
static inline void fake_asyncio_start(struct fake_world *world, int minor, uint32_t tasks, size_t further)
{
    static const char wakeup[16] = "task_wakeup";
    fake_reset();
    *world = (struct fake_world){.target = fake_target_with_containers(minor), .tasks = tasks};
    fake_asyncio_types(world);
    fake_loop(world, 0);
    const uintptr_t def = FAKE_WAKEUP_DEF_AT + 64;
    fake_words(FAKE_WAKEUP_DEF_AT, &def, 1);
    fake_map(def, wakeup, sizeof wakeup);
    fake_str(&world->target, FAKE_FILE_AT, "/app/m.py");
    fake_bytes(&world->target, FAKE_LINES_AT, fake_line_table, sizeof fake_line_table);
    world->used = (size_t)tasks * FAKE_TASK_BYTES;
    world->size = world->used + further;
    world->bytes = calloc(1, world->size);
    fake_map(FAKE_TASKS_AT, world->bytes, world->size);
}

/* --- coroutines --- */

static inline uint32_t fake_kind_of(const struct fake_world *world, uint32_t task)
{
    return world->kinds ? task % world->kinds : task;
}

static inline uintptr_t fake_code_at(const struct fake_world *world, uint32_t task, int level)
{
    return fake_task_at(fake_kind_of(world, task)) + FAKE_IN_CODE + (uintptr_t)level * FAKE_CODE_BYTES;
}

static inline void fake_world_code(struct fake_world *world, uint32_t task, int level)
{
    const struct layout *layout = &world->target.layout;
    uintptr_t code = fake_code_at(world, task, level);
    uintptr_t name = fake_task_at(task) + FAKE_IN_NAME + (uintptr_t)level * 80;
    uint8_t resume[] = {layout->resume_opcodes[0], 3};
    char text[24];
    int length = snprintf(text, sizeof text, "t%u.%d", task, level);
    fake_world_word(world, name, layout->object_type, world->target.unicode_type);
    fake_world_word(world, name, layout->str_length, (uint64_t)length);
    fake_world_word(world, name, layout->str_hash, task * 8 + (unsigned)level + 1);
    fake_world_int(world, name, layout->str_state, 1u << 2 | 1u << 5 | 1u << 6);
    fake_world_put(world, name, layout->str_ascii_data, text, (size_t)length);
    fake_world_word(world, code, layout->object_type, world->target.code_type);
    fake_world_word(world, code, layout->var_size, CODE_UNITS);
    fake_world_int(world, code, layout->code_flags, 3);
    fake_world_int(world, code, layout->code_firstlineno, 40);
    if (layout->code_version != LAYOUT_NONE)
        fake_world_int(world, code, layout->code_version, task * 8 + (unsigned)level + 100);
    fake_world_word(world, code, layout->code_filename, FAKE_FILE_AT);
    fake_world_word(world, code, layout->code_name, name);
    fake_world_word(world, code, layout->code_qualname, name);
    fake_world_word(world, code, layout->code_linetable, FAKE_LINES_AT);
    fake_world_int(world, code, layout->code_nlocalsplus, FAKE_LOCALS);
    fake_world_int(world, code, layout->code_stacksize, FAKE_STACK);
    fake_world_put(world, code, layout->code_adaptive + FAKE_AT_AWAIT + 2, resume, sizeof resume);
}

static inline void fake_coro_stands(struct fake_world *world, uint32_t task, int level, int8_t state, int lasti)
{
    const struct layout *layout = &world->target.layout;
    uintptr_t coro = fake_coro_at(task, level), code = fake_code_at(world, task, level);
    fake_world_byte(world, coro, layout->gen_state, (uint8_t)state);
    fake_world_word(world, coro, layout->gen_frame + layout->frame_instr, code + (uintptr_t)(layout->code_adaptive + lasti));
}

static inline void fake_coro(struct fake_world *world, uint32_t task, int level)
{
    const struct layout *layout = &world->target.layout;
    uintptr_t coro = fake_coro_at(task, level), frame = coro + (uintptr_t)layout->gen_frame;
    uintptr_t used = frame + (uintptr_t)layout->frame_localsplus + 8 * (FAKE_LOCALS + FAKE_STACK);
    ck_assert_int_le(layout->gen_frame + layout->frame_localsplus + 8 * (FAKE_LOCALS + FAKE_STACK), FAKE_IN_CORO);
    fake_world_code(world, fake_kind_of(world, task), level);
    fake_world_word(world, coro, layout->object_type, FAKE_CORO_TYPE_AT);
    fake_world_word(world, frame, layout->frame_executable, fake_code_at(world, task, level));
    fake_world_byte(world, frame, layout->frame_owner, layout->owner_generator);
    if (layout->minor >= 14)
        fake_world_word(world, frame, layout->frame_stacktop, used);
    else
        fake_world_int(world, frame, layout->frame_stacktop, FAKE_LOCALS + FAKE_STACK);
}

/* Suspended in an await of this object. */
static inline void fake_coro_awaits(struct fake_world *world, uint32_t task, int level, uintptr_t object)
{
    const struct layout *layout = &world->target.layout;
    fake_coro_stands(world, task, level, layout->resume_opcodes[0] ? layout->gen_suspended : layout->gen_awaiting, FAKE_AT_AWAIT);
    fake_world_word(world, fake_coro_at(task, level) + (uintptr_t)layout->gen_frame,
                    layout->frame_localsplus + 8 * (FAKE_LOCALS + FAKE_STACK - layout->await_slot), object);
}

/* Its function has this qualified name, and this value in its only variable. */
static inline void fake_coro_has_local(struct fake_world *world, uint32_t task, int level, const char *function, const char *variable,
                                       uintptr_t value)
{
    const struct layout *layout = &world->target.layout;
    uintptr_t code = fake_code_at(world, task, level);
    uintptr_t at = 0x400000000ul + 0x100000ul * (task * FAKE_LEVELS + (unsigned)level), name = fake_str(&world->target, at, variable);
    fake_world_word(world, code, layout->code_qualname, fake_str(&world->target, at + 0x10000, function));
    fake_world_word(world, code, layout->code_localsplusnames, fake_tuple(&world->target, at + 0x20000, &name, FAKE_LOCALS));
    fake_world_word(world, code, layout->code_localspluskinds, fake_bytes(&world->target, at + 0x30000, "\x20", FAKE_LOCALS));
    fake_world_word(world, fake_coro_at(task, level) + (uintptr_t)layout->gen_frame, layout->frame_localsplus, value);
}

/* --- tasks --- */

static inline void fake_future_state(struct fake_world *world, uintptr_t future, uint32_t state)
{
    fake_world_int(world, future, world->target.layout.future_state, state);
}

enum { FAKE_DEATHS = 1024 };
#define FAKE_WEAK __attribute__((weak))
FAKE_WEAK uint32_t fake_deaths[FAKE_DEATHS]; /* of futures, by where they are */

static inline uint32_t *fake_deaths_of(uintptr_t future)
{
    return &fake_deaths[future / FAKE_TASK_BYTES % FAKE_DEATHS];
}

/* What it waited for before is gone; something else may be there now. */
static inline void fake_task_waiter(struct fake_world *world, uint32_t task, uintptr_t future)
{
    uintptr_t before = fake_world_get(world, fake_task_at(task), world->target.layout.task_waiter);
    if (before)
        ++*fake_deaths_of(before);
    fake_world_word(world, fake_task_at(task), world->target.layout.task_waiter, future);
}

/* Nobody waits for it. */
static inline void fake_no_callbacks(struct fake_world *world, uintptr_t future)
{
    fake_world_word(world, future, world->target.layout.future_callback0, 0);
    fake_world_word(world, future, world->target.layout.future_callbacks, 0);
}

/* A callback more: alone, and in a tuple for the list; the list, if one must be made, has this room. */
static inline void fake_add_callback(struct fake_world *world, uintptr_t future, uintptr_t callback, uintptr_t tuple, uint32_t room)
{
    const struct layout *layout = &world->target.layout;
    if (!fake_world_get(world, future, layout->future_callback0)) {
        fake_world_word(world, future, layout->future_callback0, callback);
        return;
    }
    uintptr_t list = fake_world_get(world, future, layout->future_callbacks);
    if (!list) {
        list = fake_world_alloc(world, (size_t)layout->list_items + 8);
        fake_world_word(world, list, layout->object_type, LIST_TYPE_AT);
        fake_world_word(world, list, layout->list_items, fake_world_alloc(world, 8 * (size_t)room));
        fake_world_word(world, future, layout->future_callbacks, list);
    }
    uint64_t count = fake_world_get(world, list, layout->var_size);
    ck_assert_uint_lt(count, room);
    fake_world_word(world, fake_world_get(world, list, layout->list_items), (int32_t)(8 * count), tuple);
    fake_world_word(world, list, layout->var_size, count + 1);
}

/* ... one which wakes this task up. */
static inline void fake_wakes(struct fake_world *world, uintptr_t future, uint32_t task, uint32_t room)
{
    fake_add_callback(world, future, fake_task_at(task) + FAKE_IN_WAKEUP, fake_task_at(task) + FAKE_IN_TUPLE, room);
}

/* Waits for this future or task; who wakes it is another matter. */
static inline void fake_task_waits(struct fake_world *world, uint32_t task, int levels, uintptr_t future)
{
    uintptr_t iter = fake_task_at(task) + FAKE_IN_ITER;
    for (int level = 0; level < levels; level++) {
        fake_coro(world, task, level);
        fake_coro_awaits(world, task, level, level == levels - 1 ? iter : fake_coro_at(task, level + 1));
    }
    fake_world_word(world, iter, world->target.layout.object_type, FAKE_FUTURE_ITER_TYPE_AT);
    fake_world_word(world, iter, world->target.layout.wrapper_inner, future);
    fake_task_waiter(world, task, future);
}

static inline void fake_new_future(struct fake_world *world, uintptr_t future, uintptr_t type, int loop)
{
    fake_world_word(world, future, world->target.layout.object_type, type);
    fake_world_word(world, future, world->target.layout.future_loop, fake_loop_at(loop));
    fake_future_state(world, future, FUTURE_PENDING);
    fake_no_callbacks(world, future);
}

/* A leaf: a new task of the first loop, which waits for its own future. */
static inline uintptr_t fake_task(struct fake_world *world, uint32_t task, int levels)
{
    const struct layout *layout = &world->target.layout;
    uintptr_t wakeup = fake_task_at(task) + FAKE_IN_WAKEUP, tuple = fake_task_at(task) + FAKE_IN_TUPLE;
    ck_assert_uint_lt(task, world->tasks);
    fake_new_future(world, fake_task_at(task), FAKE_TASK_TYPE_AT, 0);
    fake_new_future(world, fake_future_at(task), FAKE_FUTURE_TYPE_AT, 0);
    fake_world_word(world, fake_task_at(task), layout->task_coro, fake_coro_at(task, 0));
    fake_world_word(world, wakeup, layout->object_type, FAKE_BUILTIN_TYPE_AT);
    fake_world_word(world, wakeup, layout->cfunction_def, FAKE_WAKEUP_DEF_AT);
    fake_world_word(world, wakeup, layout->cfunction_self, fake_task_at(task));
    fake_world_word(world, tuple, layout->object_type, TUPLE_TYPE_AT);
    fake_world_word(world, tuple, layout->var_size, 2);
    fake_world_word(world, tuple, layout->tuple_items, wakeup);
    fake_task_waits(world, task, levels, fake_future_at(task));
    fake_wakes(world, fake_future_at(task), task, 1);
    return fake_task_at(task);
}

enum { FAKE_AWAITERS_ROOM = 1024 }; /* awaiters of one task, but for the first */

static inline void fake_task_awaits(struct fake_world *world, uint32_t task, int levels, uint32_t other)
{
    fake_task_waits(world, task, levels, fake_task_at(other));
    fake_wakes(world, fake_task_at(other), task, FAKE_AWAITERS_ROOM);
}

/* The callback that gather() gives to its members: it leads to `outer`. One a number. */
static inline uintptr_t fake_gather_callback(struct fake_world *world, uint32_t number, uintptr_t outer)
{
    static const char *const variables[] = {"outer"};
    const struct py_target *target = &world->target;
    uintptr_t code = 0x300000000ul + 0x1000000ul * number, cell = fake_cell(target, code + 0x800000, outer);
    struct fake fake = fake_code_with_variables(target, code, variables, "\x80", 1), function = fake_new(code + 0x820000, 256);
    fake_put_word(&fake, target->layout.code_qualname, fake_str(target, code + 0x810000, "gather.<locals>._done_callback"));
    fake_put_word(&function, target->layout.object_type, FUNCTION_TYPE_AT);
    fake_put_word(&function, target->layout.function_code, fake_place(&fake));
    fake_put_word(&function, target->layout.function_closure, fake_tuple(target, code + 0x830000, &cell, 1));
    return fake_place(&function);
}

/* Has not run its first step. */
static inline void fake_task_is_new(struct fake_world *world, uint32_t task)
{
    const struct layout *layout = &world->target.layout;
    fake_coro_stands(world, task, 0, layout->gen_created, layout->instr_is_previous ? -2 : 0);
    fake_task_waiter(world, task, 0);
}

/* Its coroutines execute, the innermost of which runs. */
static inline void fake_task_runs(struct fake_world *world, uint32_t task, int levels)
{
    const struct layout *layout = &world->target.layout;
    for (int level = 0; level < levels; level++) {
        uintptr_t frame = fake_coro_at(task, level) + (uintptr_t)layout->gen_frame;
        fake_coro_stands(world, task, level, layout->gen_executing, FAKE_AT_AWAIT);
        fake_world_word(world, frame, layout->frame_previous, level ? fake_coro_at(task, level - 1) + (uintptr_t)layout->gen_frame : 0);
    }
    fake_task_waiter(world, task, 0);
}

static inline void fake_task_is_done(struct fake_world *world, uint32_t task)
{
    fake_future_state(world, fake_task_at(task), FUTURE_FINISHED);
    fake_task_waiter(world, task, 0);
}

/* --- stacks --- */

/* A stack's functions without their places, joined by ';'. */
/* An ASCII text; of the first 4,096 tasks. */
static inline void fake_task_is_called(struct fake_world *world, uint32_t task, const char *name)
{
    uintptr_t at = FAKE_NAMES_AT + 0x1000u * (uintptr_t)task;
    fake_world_word(world, fake_task_at(task), world->target.layout.task_name, fake_str(&world->target, at, name));
}

static inline const char *fake_functions(const struct profile *profile, profile_stack stack)
{
    static char text[1 << 16], functions[1 << 16];
    size_t length = profile_text(profile, stack, text, sizeof text), out = 0;
    ck_assert_uint_le(length, sizeof text);
    for (size_t i = 0; i < length; i++) {
        if (text[i] == ' ' && i + 1 < length && text[i + 1] == '(')
            while (i + 1 < length && text[i] != ';')
                i++;
        if (text[i] != ')')
            functions[out++] = text[i];
    }
    functions[out] = '\0';
    return functions;
}

#endif
