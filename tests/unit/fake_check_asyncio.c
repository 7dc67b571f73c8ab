/* SPDX-License-Identifier: MIT
 * asyncio: found while it comes into being; futures, names, threads and lists in
 * each version's layout, and the same absurd, torn and gone. */
#include "sampler/cpython/asyncio.h"

#include <stdio.h>  /* snprintf */
#include <unistd.h> /* getpid */

#include "sampler/text.h"
#include "tests/unit/fake_python.h"

#define TYPE_AT(i) (0x22000000u + 0x1000u * (unsigned)(i))
#define SUBTYPE_AT(i) (0x23000000u + 0x1000u * (unsigned)(i))
#define MODULE_AT(i) (0x24000000u + 0x1000u * (unsigned)(i))
#define MODULE_DICT_AT(i) (0x25000000u + 0x100000u * (unsigned)(i))
#define OBJECT_AT(i) (0x26000000u + 0x1000u * (unsigned)(i))
#define SET_AT(i) (0x27000000u + 0x100000u * (unsigned)(i))
#define KEY_AT(i) (0x28000000u + 0x100u * (unsigned)(i))
#define ATTRIBUTE_KEY_AT(i) (0x29000000u + 0x100u * (unsigned)(i))
#define MODULES_AT 0x2a000000u
#define INTERP 0x2b000000u
#define THREAD 0x2c000000u
#define NONE_AT 0x2d000000u
#define UNREADABLE 0x7fff0000u
#define INTERP_BYTES 16384
#define THREAD_BYTES 2048
#define MODULES_MAX 600

enum { TYPE, MODULE, NONE, LONG, WEAKREF, HOLDER, LOOP, TASK, FUTURE, PY_TASK, PY_FUTURE, WEAK_SET };
enum { C, TASKS, FUTURES };
#define LOOP_AT OBJECT_AT(900)
#define CORO_AT OBJECT_AT(901)
#define WAITER_AT OBJECT_AT(902)

Suite *suite_asyncio(void);

static uintptr_t type(const struct py_target *target, int i, const char *name, uint64_t flags, int32_t size, uintptr_t base)
{
    struct fake made = fake_type_new(&target->layout, TYPE_AT(i), name, flags, base);
    fake_put_word(&made, target->layout.object_type, TYPE_AT(TYPE));
    fake_put_word(&made, target->layout.type_basicsize, (uint64_t)size);
    return fake_place(&made);
}

static uintptr_t object(const struct py_target *target, uintptr_t address, uintptr_t of_type)
{
    struct fake made = fake_new(address, 24);
    fake_put_word(&made, target->layout.object_type, of_type);
    return fake_place(&made);
}

static struct py_target target_with_types(int minor)
{
    struct py_target target = fake_target_with_containers(minor);
    const struct layout *layout = &target.layout;
    uint64_t class_flags = layout->flag_managed_dict | layout->flag_heap_type;

    type(&target, TYPE, "type", 1ul << 31, 0, OBJECT_TYPE_AT);
    type(&target, MODULE, "module", 0, 0, OBJECT_TYPE_AT);
    type(&target, NONE, "NoneType", 0, 0, OBJECT_TYPE_AT);
    type(&target, LONG, "int", 1ul << 24, 0, OBJECT_TYPE_AT);
    type(&target, WEAKREF, "weakref.ReferenceType", 0, 0, OBJECT_TYPE_AT);
    type(&target, HOLDER, "_RunningLoopHolder", 0, 0, OBJECT_TYPE_AT);
    type(&target, LOOP, "Loop", 0, 0, OBJECT_TYPE_AT);
    type(&target, FUTURE, "_asyncio.Future", 0, layout->future_size, OBJECT_TYPE_AT);
    type(&target, TASK, "_asyncio.Task", 0, layout->task_size, TYPE_AT(FUTURE));
    type(&target, PY_FUTURE, "Future", class_flags, 16, OBJECT_TYPE_AT);
    type(&target, PY_TASK, "Task", class_flags, 16, TYPE_AT(PY_FUTURE));
    type(&target, WEAK_SET, "WeakSet", class_flags, 16, OBJECT_TYPE_AT);
    object(&target, NONE_AT, TYPE_AT(NONE));
    object(&target, LOOP_AT, TYPE_AT(LOOP));
    return target;
}

/* --- modules --- */

/* Names and what they hold, at an address of their own each. */
struct names {
    const char *name[10];
    uintptr_t value[10];
};

static uintptr_t dict_of(const struct py_target *target, uintptr_t address, uintptr_t keys_at, const struct names *names)
{
    uintptr_t pairs[20];
    size_t count = 0;
    for (; count < 10 && names->name[count]; count++) {
        pairs[2 * count] = fake_str(target, keys_at + 0x100 * count, names->name[count]);
        pairs[2 * count + 1] = names->value[count];
    }
    return fake_dict(target, address, FAKE_KEYS_UNICODE, pairs, count);
}

static uintptr_t module(const struct py_target *target, int i, const struct names *names)
{
    struct fake made = fake_new(MODULE_AT(i), 32);
    fake_put_word(&made, target->layout.object_type, TYPE_AT(MODULE));
    fake_put_word(&made, target->layout.object_type + 8, dict_of(target, MODULE_DICT_AT(i), KEY_AT(0x1000 + 0x20 * i), names));
    return fake_place(&made);
}

static uintptr_t c_module(const struct py_target *target)
{
    return module(target, C, &(struct names){{"__name__", "Future", "Task", "_current_tasks", "_scheduled_tasks", "_eager_tasks"},
                                             {NONE_AT, TYPE_AT(FUTURE), TYPE_AT(TASK), SET_AT(9), SET_AT(0), SET_AT(1)}});
}

static uintptr_t tasks_module(const struct py_target *target, uintptr_t scheduled)
{
    return module(target, TASKS, &(struct names){{"_PyTask", "_CTask", "_current_tasks", "_eager_tasks", "_scheduled_tasks"},
                                                 {TYPE_AT(PY_TASK), TYPE_AT(TASK), SET_AT(8), SET_AT(1), scheduled}});
}

static uintptr_t futures_module(const struct py_target *target)
{
    return module(target, FUTURES, &(struct names){{"_PyFuture", "_CFuture"}, {TYPE_AT(PY_FUTURE), TYPE_AT(FUTURE)}});
}

/* sys.modules: so many others, then the pairs given; its keys at another place each generation. */
static void modules(const struct py_target *target, int generation, size_t others, const struct names *names)
{
    static uintptr_t pairs[2 * MODULES_MAX];
    size_t count = 0;

    for (; count < others; count++) {
        pairs[2 * count] = fake_str(target, KEY_AT(count), "some.module");
        pairs[2 * count + 1] = NONE_AT;
    }
    for (size_t i = 0; i < 10 && names->name[i]; i++, count++) {
        pairs[2 * count] = fake_str(target, KEY_AT(count), names->name[i]);
        pairs[2 * count + 1] = names->value[i];
    }
    struct fake keys = fake_keys_new(target, MODULES_AT + 0x100000u * (unsigned)(generation + 1), FAKE_KEYS_UNICODE, pairs, count);
    struct fake interp = fake_new(INTERP, INTERP_BYTES);
    fake_put_word(&interp, target->layout.interp_modules, fake_dict_of(target, MODULES_AT, fake_place(&keys), 0));
    fake_place(&interp);
}

static unsigned long reads_of_find(struct asyncio_search *search, const struct py_target *target)
{
    struct asyncio found;
    unsigned long before = fake_reads();
    ck_assert(!asyncio_find(search, target, INTERP, &found));
    return fake_reads() - before;
}

START_TEST(a_search_goes_on_where_it_stopped)
{
    struct py_target target = target_with_types(_i);
    struct asyncio_search search = {0};
    struct asyncio found;
    modules(&target, 0, 200, &(struct names){0});
    ck_assert_uint_gt(reads_of_find(&search, &target), 400);
    ck_assert_uint_le(reads_of_find(&search, &target), 10);
    modules(&target, 0, 203, &(struct names){0}); /* in the same keys */
    ck_assert_uint_le(reads_of_find(&search, &target), 40);
    modules(&target, 1, 205, &(struct names){0}); /* in others */
    ck_assert_uint_gt(reads_of_find(&search, &target), 400);
    modules(&target, 1, 205, &(struct names){{"_asyncio"}, {c_module(&target)}});
    ck_assert(asyncio_find(&search, &target, INTERP, &found));
    ck_assert(!search.mismatch);
    ck_assert_uint_eq(found.interp, INTERP);
    ck_assert_uint_eq(found.module, MODULE_AT(C));
    ck_assert_uint_eq(found.task_type, TYPE_AT(TASK));
    ck_assert_uint_eq(found.future_type, TYPE_AT(FUTURE));
    ck_assert_uint_eq(found.py_task_type, 0);
    ck_assert_uint_eq(found.current_tasks[0], SET_AT(9));
    ck_assert_uint_eq(found.current_tasks[1], 0);
    ck_assert_uint_eq(found.set[0], SET_AT(0));
    ck_assert_uint_eq(found.set[1], SET_AT(1));
    ck_assert_uint_eq(found.set[2], 0);
}
END_TEST

START_TEST(keys_that_were_emptied_are_looked_at_anew)
{
    struct py_target target = target_with_types(_i);
    struct asyncio_search search = {0};
    struct asyncio found;
    modules(&target, 0, 200, &(struct names){0});
    ck_assert(!asyncio_find(&search, &target, INTERP, &found));
    modules(&target, 0, 130, &(struct names){{"_asyncio"}, {c_module(&target)}});
    ck_assert(asyncio_find(&search, &target, INTERP, &found));
}
END_TEST

START_TEST(a_module_that_is_being_made)
{
    struct py_target target = target_with_types(_i);
    struct asyncio_search search = {0};
    struct asyncio found;
    ck_assert(!asyncio_find(&search, &target, UNREADABLE, &found));
    modules(&target, 0, 0, &(struct names){{"_asyncio"}, {NONE_AT}});
    ck_assert(!asyncio_find(&search, &target, INTERP, &found));
    modules(&target, 0, 0, &(struct names){{"_asyncio"}, {module(&target, C, &(struct names){{"__name__"}, {NONE_AT}})}});
    ck_assert(!asyncio_find(&search, &target, INTERP, &found));
    module(&target, C, &(struct names){{"Future", "Task"}, {TYPE_AT(FUTURE), 0}});
    ck_assert(!asyncio_find(&search, &target, INTERP, &found));
    ck_assert(!search.mismatch);
    c_module(&target);
    ck_assert(asyncio_find(&search, &target, INTERP, &found));
}
END_TEST

static bool is_found(const struct py_target *target, struct asyncio_search *search, uintptr_t task, uintptr_t future)
{
    struct asyncio found;
    *search = (struct asyncio_search){0};
    modules(target, 0, 0, &(struct names){{"_asyncio"}, {module(target, C, &(struct names){{"Task", "Future"}, {task, future}})}});
    return asyncio_find(search, target, INTERP, &found);
}

START_TEST(types_that_are_not_what_they_must_be)
{
    struct py_target target = target_with_types(_i);
    struct asyncio_search search;
    struct asyncio found;
    char want[64];
    ck_assert(is_found(&target, &search, TYPE_AT(TASK), TYPE_AT(FUTURE)));
    ck_assert(!is_found(&target, &search, TYPE_AT(FUTURE), TYPE_AT(FUTURE)) && search.mismatch);
    ck_assert_str_eq(search.found, "Task is another object");
    ck_assert(!is_found(&target, &search, TYPE_AT(TASK), NONE_AT) && search.mismatch);
    ck_assert_str_eq(search.found, "Future is another object");
    ck_assert(!is_found(&target, &search, UNREADABLE, TYPE_AT(FUTURE)) && search.mismatch);
    struct fake instance_of_loop = fake_type_new(&target.layout, SUBTYPE_AT(0), "_asyncio.Task", 0, 0);
    fake_put_word(&instance_of_loop, target.layout.object_type, TYPE_AT(LOOP));
    fake_put_word(&instance_of_loop, target.layout.type_basicsize, (uint64_t)target.layout.task_size);
    ck_assert(!is_found(&target, &search, fake_place(&instance_of_loop), TYPE_AT(FUTURE)) && search.mismatch);
    type(&target, TASK, "_asyncio.Task", 0, target.layout.task_size + 8, TYPE_AT(FUTURE));
    ck_assert(!is_found(&target, &search, TYPE_AT(TASK), TYPE_AT(FUTURE)) && search.mismatch);
    snprintf(want, sizeof want, "Task has %d bytes, not %d", target.layout.task_size + 8, target.layout.task_size);
    ck_assert_str_eq(search.found, want);
    type(&target, TASK, "_asyncio.Task", 0, target.layout.task_size, TYPE_AT(FUTURE));
    ck_assert(!asyncio_find(&search, &target, INTERP, &found)); /* it stays off */
    search.interp = 0;
    ck_assert(asyncio_find(&search, &target, INTERP, &found)); /* but in another interpreter */
}
END_TEST

/* All three modules are there. */
static void package(const struct py_target *target, int generation)
{
    modules(target, generation, 50, &(struct names){{"_asyncio", "asyncio.futures", "asyncio.tasks"},
                                        {c_module(target), futures_module(target), tasks_module(target, SET_AT(2))}});
}

static struct asyncio all_of_it(const struct py_target *target)
{
    struct asyncio_search search = {0};
    struct asyncio found;
    package(target, 0);
    ck_assert(asyncio_find(&search, target, INTERP, &found));
    return found;
}

START_TEST(the_rest_comes_later)
{
    struct py_target target = target_with_types(_i);
    struct asyncio_search search = {0};
    struct asyncio found;
    modules(&target, 0, 50, &(struct names){{"_asyncio"}, {c_module(&target)}});
    ck_assert(asyncio_find(&search, &target, INTERP, &found));
    ck_assert(!asyncio_complete(&target, &found));
    package(&target, 0);
    ck_assert(asyncio_complete(&target, &found));
    ck_assert_uint_eq(found.py_task_type, TYPE_AT(PY_TASK));
    ck_assert_uint_eq(found.py_future_type, TYPE_AT(PY_FUTURE));
    ck_assert_uint_eq(found.current_tasks[1], SET_AT(8));
    ck_assert_uint_eq(found.set[0], SET_AT(0));
    ck_assert_uint_eq(found.set[1], SET_AT(2));
    ck_assert_uint_eq(found.set[2], SET_AT(1)); /* both modules have that one */
    ck_assert_uint_eq(found.set[3], 0);
    module(&target, TASKS, &(struct names){{"_current_tasks"}, {SET_AT(9)}}); /* _asyncio's own, as before 3.14 */
    ck_assert(asyncio_complete(&target, &found));
    ck_assert_uint_eq(found.current_tasks[0], SET_AT(9));
    ck_assert_uint_eq(found.current_tasks[1], 0);
    unsigned long before = fake_reads();
    ck_assert(!asyncio_complete(&target, &found));
    ck_assert_uint_le(fake_reads() - before, 80);
}
END_TEST

START_TEST(modules_that_are_reloaded_and_taken_away)
{
    struct py_target target = target_with_types(_i);
    struct asyncio found = all_of_it(&target);
    ck_assert(!asyncio_complete(&target, &found));
    tasks_module(&target, SET_AT(3)); /* the same keys, another value */
    ck_assert(asyncio_complete(&target, &found));
    ck_assert_uint_eq(found.set[1], SET_AT(3));
    modules(&target, 0, 50, &(struct names){{"_asyncio", "asyncio.futures", "asyncio.tasks"}, {MODULE_AT(C), MODULE_AT(FUTURES), 0}});
    tasks_module(&target, SET_AT(4));
    ck_assert(!asyncio_complete(&target, &found)); /* it is not in sys.modules: not looked at */
    ck_assert_uint_eq(found.set[1], SET_AT(3));
    package(&target, 1);
    ck_assert(asyncio_complete(&target, &found));
    ck_assert_uint_eq(found.set[1], SET_AT(2));
    module(&target, TASKS, &(struct names){{"_PyTask", "_scheduled_tasks"}, {NONE_AT, 0}});
    ck_assert(!asyncio_complete(&target, &found)); /* torn: as it was */
    ck_assert_uint_eq(found.py_task_type, TYPE_AT(PY_TASK));
    modules(&target, 1, 50, &(struct names){{"_asyncio", "asyncio.futures", "asyncio.tasks"}, {0, MODULE_AT(FUTURES), MODULE_AT(TASKS)}});
    ck_assert(!asyncio_complete(&target, &found)); /* not the one behind it instead */
    ck_assert_uint_eq(found.module, MODULE_AT(C));
    found.interp = UNREADABLE;
    ck_assert(!asyncio_complete(&target, &found));
}
END_TEST

/* --- futures --- */

static uintptr_t subtype(const struct py_target *target, int i, uintptr_t base)
{
    return fake_named_type(&target->layout, SUBTYPE_AT(i), "Sub", 0, base);
}

static void expect_kind(const struct py_target *target, uintptr_t of_type, enum future_kind want, bool want_python)
{
    struct asyncio asyncio = {.task_type = TYPE_AT(TASK), .future_type = TYPE_AT(FUTURE), .py_task_type = TYPE_AT(PY_TASK),
                              .py_future_type = TYPE_AT(PY_FUTURE)};
    bool python;
    ck_assert_int_eq(asyncio_kind(target, &asyncio, object(target, OBJECT_AT(0), of_type), &python), want);
    ck_assert_int_eq(python, want_python);
}

START_TEST(a_type_or_a_base_of_it)
{
    struct py_target target = target_with_types(_i);
    const struct asyncio nothing = {0};
    bool python;
    expect_kind(&target, TYPE_AT(TASK), FUTURE_TASK, false);
    expect_kind(&target, TYPE_AT(FUTURE), FUTURE_PLAIN, false);
    expect_kind(&target, TYPE_AT(PY_TASK), FUTURE_TASK, true);
    expect_kind(&target, TYPE_AT(PY_FUTURE), FUTURE_PLAIN, true);
    expect_kind(&target, TYPE_AT(LOOP), FUTURE_NONE, false);
    expect_kind(&target, subtype(&target, 0, TYPE_AT(TASK)), FUTURE_TASK, false);
    expect_kind(&target, subtype(&target, 0, TYPE_AT(PY_TASK)), FUTURE_TASK, true);
    expect_kind(&target, subtype(&target, 0, SUBTYPE_AT(0)), FUTURE_NONE, false); /* a circle */
    expect_kind(&target, subtype(&target, 0, UNREADABLE), FUTURE_NONE, false);
    expect_kind(&target, 0, FUTURE_NONE, false);
    subtype(&target, 0, TYPE_AT(TASK));
    for (int i = 1; i < 16; i++)
        subtype(&target, i, SUBTYPE_AT(i - 1));
    expect_kind(&target, SUBTYPE_AT(14), FUTURE_TASK, false);
    expect_kind(&target, SUBTYPE_AT(15), FUTURE_NONE, false);
    ck_assert_int_eq(asyncio_kind(&target, &nothing, object(&target, OBJECT_AT(0), TYPE_AT(TASK)), &python), FUTURE_NONE);
    ck_assert_int_eq(asyncio_kind(&target, &nothing, object(&target, OBJECT_AT(0), 0), &python), FUTURE_NONE);
    ck_assert_int_eq(asyncio_kind(&target, &nothing, OBJECT_AT(0) + 4, &python), FUTURE_NONE);
    ck_assert_int_eq(asyncio_kind(&target, &nothing, 0x800000000000, &python), FUTURE_NONE);
}
END_TEST

static const struct asyncio known = {.interp = INTERP, .task_type = TYPE_AT(TASK), .future_type = TYPE_AT(FUTURE), .py_task_type = TYPE_AT(PY_TASK),
                                     .py_future_type = TYPE_AT(PY_FUTURE), .current_tasks = {SET_AT(8), SET_AT(9)},
                                     .set = {SET_AT(0), SET_AT(1)}};

static struct fake task_new(const struct py_target *target, uintptr_t address)
{
    const struct layout *layout = &target->layout;
    struct fake task = fake_new(address, (size_t)layout->task_size);
    fake_put_word(&task, layout->object_type, TYPE_AT(TASK));
    fake_put_word(&task, layout->future_loop, LOOP_AT);
    fake_put_word(&task, layout->future_callback0, OBJECT_AT(800));
    fake_put_word(&task, layout->future_callbacks, OBJECT_AT(801));
    fake_put_int(&task, layout->future_state, FUTURE_PENDING);
    fake_put_word(&task, layout->task_waiter, WAITER_AT);
    fake_put_word(&task, layout->task_coro, CORO_AT);
    if (layout->future_awaited_by != LAYOUT_NONE) {
        fake_put_word(&task, layout->future_awaited_by, OBJECT_AT(802));
        fake_put_byte(&task, layout->future_awaited_by_is_set, 1);
    }
    return task;
}

START_TEST(a_task_is_read)
{
    struct py_target target = target_with_types(_i);
    struct fake task = task_new(&target, OBJECT_AT(0));
    bool has_awaiters = target.layout.future_awaited_by != LAYOUT_NONE;
    enum future_state state;
    uintptr_t waiter, coro;
    struct future future;
    fake_put_int(&task, target.layout.future_state, FUTURE_CANCELLED);
    fake_place(&task);
    ck_assert(asyncio_read(&target, &known, OBJECT_AT(0), &future));
    ck_assert_int_eq(future.kind, FUTURE_TASK);
    ck_assert(!future.python);
    ck_assert_int_eq(future.state, FUTURE_CANCELLED);
    ck_assert_uint_eq(future.address, OBJECT_AT(0));
    ck_assert_uint_eq(future.type, TYPE_AT(TASK));
    ck_assert_uint_eq(future.loop, LOOP_AT);
    ck_assert_uint_eq(future.callback0, OBJECT_AT(800));
    ck_assert_uint_eq(future.callbacks, OBJECT_AT(801));
    ck_assert_uint_eq(future.awaited_by, has_awaiters ? OBJECT_AT(802) : 0);
    ck_assert_int_eq(future.awaited_by_is_set, has_awaiters);
    ck_assert_uint_eq(future.waiter, WAITER_AT);
    ck_assert_uint_eq(future.coro, CORO_AT);
    ck_assert(asyncio_state(&target, &known, OBJECT_AT(0), &state) && state == FUTURE_CANCELLED);
    ck_assert(asyncio_waiter(&target, &known, OBJECT_AT(0), &waiter, &coro));
    ck_assert_uint_eq(waiter, WAITER_AT);
    ck_assert_uint_eq(coro, CORO_AT);
}
END_TEST

START_TEST(a_plain_future_ends_where_a_task_goes_on)
{
    struct py_target target = target_with_types(_i);
    struct fake made = task_new(&target, OBJECT_AT(0));
    uintptr_t waiter, coro;
    struct future future;
    made.size = (size_t)target.layout.future_size;
    fake_put_word(&made, target.layout.object_type, TYPE_AT(FUTURE));
    fake_place(&made);
    ck_assert(asyncio_read(&target, &known, OBJECT_AT(0), &future));
    ck_assert_int_eq(future.kind, FUTURE_PLAIN);
    ck_assert_uint_eq(future.waiter, 0);
    ck_assert_uint_eq(fake_refusals(), 0);
    ck_assert(!asyncio_waiter(&target, &known, OBJECT_AT(0), &waiter, &coro));
}
END_TEST

static bool is_read_with(const struct py_target *target, int32_t offset, uint64_t value)
{
    struct future future;
    if (offset == LAYOUT_NONE)
        return false;
    struct fake task = task_new(target, OBJECT_AT(0));
    fake_put_word(&task, offset, value);
    fake_place(&task);
    return asyncio_read(target, &known, OBJECT_AT(0), &future);
}

START_TEST(a_task_that_cannot_be)
{
    struct py_target target = target_with_types(_i);
    const struct layout *layout = &target.layout;
    const int32_t pointers[] = {layout->future_loop, layout->future_callback0, layout->future_callbacks, layout->future_awaited_by,
                                layout->task_waiter, layout->task_coro};
    enum future_state state;
    struct future future;
    for (size_t i = 0; i < sizeof pointers / sizeof *pointers; i++) {
        ck_assert(!is_read_with(&target, pointers[i], 0xdddddddddddddddd));
        ck_assert(!is_read_with(&target, pointers[i], OBJECT_AT(800) + 1));
        ck_assert(!is_read_with(&target, pointers[i], 8));
    }
    ck_assert(!is_read_with(&target, layout->future_loop, 0));
    ck_assert(is_read_with(&target, layout->task_waiter, 0));
    ck_assert(is_read_with(&target, layout->task_coro, 0));
    ck_assert(!is_read_with(&target, layout->future_state, 3));
    ck_assert(!is_read_with(&target, layout->future_state, UINT32_MAX));
    ck_assert(!asyncio_state(&target, &known, OBJECT_AT(0), &state));
    if (layout->future_awaited_by != LAYOUT_NONE) {
        ck_assert(is_read_with(&target, layout->future_awaited_by, 0));
        ck_assert(!is_read_with(&target, layout->future_state, 0x02ull << (8 * (layout->future_awaited_by_is_set - layout->future_state))));
    }
    ck_assert(!asyncio_read(&target, &known, UNREADABLE, &future));
    object(&target, OBJECT_AT(1), TYPE_AT(TASK)); /* its memory ends behind the head */
    ck_assert(!asyncio_read(&target, &known, OBJECT_AT(1), &future));
}
END_TEST

/* An instance of a class written in Python, its dict made. */
static uintptr_t instance(const struct py_target *target, uintptr_t address, uintptr_t of_type, const struct names *attributes)
{
    const int32_t before = 64;
    struct fake made = fake_new(address - (uintptr_t)before, (size_t)before + 16);
    fake_put_word(&made, before + target->layout.object_type, of_type);
    fake_put_word(&made, before + target->layout.instance_dict,
                  dict_of(target, address + 0x40000000u, ATTRIBUTE_KEY_AT(address >> 4 & 0xfff0), attributes));
    fake_place(&made);
    return address;
}

static uintptr_t state_text(const struct py_target *target, const char *text)
{
    return fake_str(target, OBJECT_AT(820), text);
}

START_TEST(a_task_written_in_python)
{
    struct py_target target = target_with_types(_i);
    struct names names = {{"_loop", "_callbacks", "_fut_waiter", "_coro", "_state", "_Future__asyncio_awaited_by"},
                          {LOOP_AT, OBJECT_AT(801), NONE_AT, CORO_AT, state_text(&target, "FINISHED"), OBJECT_AT(803)}};
    enum future_state state;
    uintptr_t waiter, coro;
    struct future future;
    object(&target, CORO_AT, TYPE_AT(LOOP));
    object(&target, OBJECT_AT(801), LIST_TYPE_AT);
    object(&target, OBJECT_AT(803), SET_TYPE_AT);
    instance(&target, OBJECT_AT(1), TYPE_AT(PY_TASK), &names);
    ck_assert(asyncio_read(&target, &known, OBJECT_AT(1), &future));
    ck_assert(future.python && future.kind == FUTURE_TASK && future.state == FUTURE_FINISHED);
    ck_assert_uint_eq(future.loop, LOOP_AT);
    ck_assert_uint_eq(future.callbacks, OBJECT_AT(801));
    ck_assert_uint_eq(future.waiter, 0);
    ck_assert_uint_eq(future.coro, CORO_AT);
    ck_assert_uint_eq(future.awaited_by, OBJECT_AT(803));
    ck_assert(future.awaited_by_is_set);
    names.value[2] = object(&target, WAITER_AT, TYPE_AT(FUTURE));
    names.name[4] = "_log"; /* the class's _state, PENDING */
    names.value[5] = NONE_AT;
    instance(&target, OBJECT_AT(1), TYPE_AT(PY_TASK), &names);
    ck_assert(asyncio_read(&target, &known, OBJECT_AT(1), &future));
    ck_assert(future.state == FUTURE_PENDING && !future.awaited_by && !future.awaited_by_is_set);
    ck_assert(asyncio_waiter(&target, &known, OBJECT_AT(1), &waiter, &coro));
    ck_assert_uint_eq(waiter, WAITER_AT);
    ck_assert(asyncio_state(&target, &known, OBJECT_AT(1), &state) && state == FUTURE_PENDING);
}
END_TEST

START_TEST(a_task_written_in_python_that_cannot_be)
{
    struct py_target target = target_with_types(_i);
    struct names whole = {{"_loop", "_callbacks", "_fut_waiter", "_coro", "_state"},
                          {LOOP_AT, NONE_AT, NONE_AT, NONE_AT, state_text(&target, "PENDING")}};
    struct future future;
    instance(&target, OBJECT_AT(1), TYPE_AT(PY_TASK), &whole);
    ck_assert(asyncio_read(&target, &known, OBJECT_AT(1), &future));
    for (int i = 0; i < 4; i++) {
        struct names names = whole;
        names.name[i] = "another";
        instance(&target, OBJECT_AT(1), TYPE_AT(PY_TASK), &names);
        ck_assert(!asyncio_read(&target, &known, OBJECT_AT(1), &future));
    }
    whole.value[4] = state_text(&target, "READY");
    instance(&target, OBJECT_AT(1), TYPE_AT(PY_TASK), &whole);
    ck_assert(!asyncio_read(&target, &known, OBJECT_AT(1), &future));
}
END_TEST

/* --- names --- */

static const char *name_with(const struct py_target *target, uintptr_t name)
{
    static char text[TEXT_NAME_MAX + 1];
    struct fake task = task_new(target, OBJECT_AT(0));
    fake_put_word(&task, target->layout.task_name, name);
    fake_place(&task);
    text[asyncio_name(target, &known, OBJECT_AT(0), text, TEXT_NAME_MAX)] = '\0';
    return text;
}

/* Of the task that has a name already. */
static const char *folded(const struct py_target *target)
{
    static char text[TEXT_FOLDED_MAX + 1];
    text[asyncio_folded_name(target, &known, OBJECT_AT(0), text)] = '\0';
    return text;
}

static uintptr_t number(const struct py_target *target, uint64_t tag, uint32_t low, uint32_t high)
{
    struct fake made = fake_new(OBJECT_AT(830), 40);
    fake_put_word(&made, target->layout.object_type, TYPE_AT(LONG));
    fake_put_word(&made, target->layout.long_size, tag);
    fake_put_int(&made, target->layout.long_digits, low);
    fake_put_int(&made, target->layout.long_digits + 4, high);
    return fake_place(&made);
}

START_TEST(names_of_tasks)
{
    struct py_target target = target_with_types(_i);
    bool numbers = target.layout.long_is_tagged;
    char text[8];
    ck_assert_str_eq(name_with(&target, fake_str(&target, OBJECT_AT(831), "a;b")), "a\\x3bb");
    ck_assert_str_eq(name_with(&target, number(&target, 1 << 3, 12, 0)), numbers ? "Task-12" : "");
    ck_assert_str_eq(name_with(&target, number(&target, 1, 0, 0)), numbers ? "Task-0" : "");
    ck_assert_str_eq(name_with(&target, number(&target, 2 << 3, 5, 1)), numbers ? "Task-1073741829" : "");
    ck_assert_str_eq(name_with(&target, number(&target, 3 << 3, 5, 1)), "");
    ck_assert_str_eq(name_with(&target, number(&target, 1 << 3 | 2, 5, 0)), "");
    ck_assert_str_eq(name_with(&target, number(&target, UINT64_MAX, 5, 0)), "");
    ck_assert_str_eq(name_with(&target, NONE_AT), "");
    ck_assert_str_eq(name_with(&target, 0), "");
    ck_assert_str_eq(name_with(&target, UNREADABLE), "");
    name_with(&target, fake_str(&target, OBJECT_AT(831), "12345678"));
    ck_assert_uint_eq(asyncio_name(&target, &known, OBJECT_AT(0), text, sizeof text), 8);
    ck_assert_uint_eq(asyncio_name(&target, &known, OBJECT_AT(0), text, 7), 0);
    ck_assert_uint_eq(asyncio_name(&target, &known, LOOP_AT, text, sizeof text), 0);
}
END_TEST

START_TEST(folded_names_of_tasks)
{
    struct py_target target = target_with_types(_i);
    bool numbers = target.layout.long_is_tagged;
    name_with(&target, fake_str(&target, OBJECT_AT(831), "req;17"));
    ck_assert_str_eq(folded(&target), "req\\x3b*");
    name_with(&target, fake_str(&target, OBJECT_AT(831), ""));
    ck_assert_str_eq(folded(&target), "");
    name_with(&target, number(&target, 1 << 3, 12, 0));
    ck_assert_str_eq(folded(&target), numbers ? "Task-*" : "");
    name_with(&target, NONE_AT);
    ck_assert_str_eq(folded(&target), "");
    name_with(&target, UNREADABLE);
    ck_assert_str_eq(folded(&target), "");
    ck_assert_uint_eq(asyncio_folded_name(&target, &known, LOOP_AT, (char[TEXT_FOLDED_MAX]){0}), 0);
}
END_TEST

/* --- threads --- */

static uintptr_t holder(const struct py_target *target, uintptr_t loop, int pid)
{
    struct fake made = fake_new(OBJECT_AT(840), 32);
    fake_put_word(&made, target->layout.object_type, TYPE_AT(HOLDER));
    fake_put_word(&made, 16, loop);
    fake_put_int(&made, 24, (uint32_t)pid);
    return fake_place(&made);
}

static uintptr_t loop_with(const struct py_target *target, uintptr_t value)
{
    const struct layout *layout = &target->layout;
    struct fake thread = fake_new(THREAD, THREAD_BYTES);
    struct names names = {{"other", "__asyncio_running_event_loop__"}, {NONE_AT, value}};
    if (layout->thread_running_loop != LAYOUT_NONE)
        fake_put_word(&thread, layout->thread_running_loop, value);
    else
        fake_put_word(&thread, layout->thread_dict, dict_of(target, OBJECT_AT(841), KEY_AT(0x2000), &names));
    return asyncio_running_loop(target, fake_place(&thread));
}

START_TEST(the_loop_that_a_thread_runs)
{
    struct py_target target = target_with_types(_i);
    bool in_dict = target.layout.thread_running_loop == LAYOUT_NONE;
    struct fake thread = fake_new(THREAD, THREAD_BYTES);
    ck_assert_uint_eq(loop_with(&target, LOOP_AT), LOOP_AT);
    ck_assert_uint_eq(loop_with(&target, NONE_AT), 0);
    ck_assert_uint_eq(loop_with(&target, 0), 0);
    if (in_dict) {
        ck_assert_uint_eq(loop_with(&target, holder(&target, LOOP_AT, getpid())), LOOP_AT);
        ck_assert_uint_eq(loop_with(&target, holder(&target, LOOP_AT, getpid() + 1)), 0); /* of the parent */
        ck_assert_uint_eq(loop_with(&target, holder(&target, NONE_AT, getpid())), 0);
        ck_assert_uint_eq(loop_with(&target, holder(&target, 3, getpid())), 0);
    } else {
        ck_assert_uint_eq(loop_with(&target, LOOP_AT + 1), 0);
    }
    ck_assert_uint_eq(asyncio_running_loop(&target, fake_place(&thread)), 0);
    ck_assert_uint_eq(asyncio_running_loop(&target, UNREADABLE), 0);
    ck_assert_uint_eq(asyncio_running_loop(&target, 0), 0);
}
END_TEST

START_TEST(the_tasks_that_run)
{
    struct py_target target = target_with_types(_i);
    const uintptr_t one[] = {LOOP_AT, OBJECT_AT(1)}, two[] = {LOOP_AT, OBJECT_AT(2), CORO_AT, OBJECT_AT(3)};
    struct fake thread = fake_new(THREAD, THREAD_BYTES);
    uintptr_t tasks[8] = {0};
    uint32_t own = target.layout.thread_running_task != LAYOUT_NONE;
    ck_assert_uint_eq(asyncio_current(&target, &known, UNREADABLE, tasks, 8), 0);
    if (own)
        fake_put_word(&thread, target.layout.thread_running_task, OBJECT_AT(4));
    fake_place(&thread);
    ck_assert_uint_eq(asyncio_current(&target, &known, THREAD, tasks, 8), own);
    fake_dict(&target, SET_AT(8), FAKE_KEYS_GENERAL, one, 1);
    fake_dict(&target, SET_AT(9), FAKE_KEYS_GENERAL, two, 2);
    ck_assert_uint_eq(asyncio_current(&target, &known, THREAD, tasks, 8), own + 3);
    if (own)
        ck_assert_uint_eq(tasks[0], OBJECT_AT(4));
    for (uint32_t i = 0; i < 3; i++)
        ck_assert_uint_eq(tasks[own + i], OBJECT_AT(1 + i));
    memset(tasks, 0, sizeof tasks);
    ck_assert_uint_eq(asyncio_current(&target, &known, THREAD, tasks, 2), 2);
    ck_assert_uint_eq(tasks[2], 0);
    ck_assert_uint_eq(asyncio_current(&target, &known, THREAD, tasks, 0), 0);
}
END_TEST

/* A dict that says that it has a million entries, none of which is in use. */
START_TEST(a_dict_of_nothing_does_not_hold_a_thread_up)
{
    enum { LOG2 = 21, ENTRIES = 1 << 20 };
    struct py_target target = target_with_types(_i);
    static const uint8_t nothing[ENTRIES * 24];
    uintptr_t tasks[4], keys = SET_AT(8) + FAKE_FURTHER;
    ck_assert_uint_eq(loop_with(&target, LOOP_AT), LOOP_AT);
    const uintptr_t one[] = {LOOP_AT, OBJECT_AT(1)};
    fake_dict(&target, SET_AT(8), FAKE_KEYS_GENERAL, one, 1);
    struct fake head = fake_new(keys, (size_t)target.layout.keys_indices + 8);
    fake_put_byte(&head, target.layout.keys_log2_index_bytes, LOG2);
    fake_put_word(&head, target.layout.keys_nentries, ENTRIES);
    fake_place(&head);
    fake_map(keys + (uintptr_t)target.layout.keys_indices + (1ul << LOG2), nothing, sizeof nothing);
    unsigned long before = fake_reads();
    asyncio_current(&target, &known, THREAD, tasks, 4);
    ck_assert_uint_lt(fake_reads() - before, 10000);
    ck_assert_uint_gt(fake_reads() - before, 1000); /* it was believed */
}
END_TEST

/* Where many threads run loops, this one's tasks are among those that there is room for. */
START_TEST(the_tasks_of_this_thread_come_first)
{
    struct py_target target = target_with_types(_i);
    const uintptr_t one[] = {OBJECT_AT(5), OBJECT_AT(1), LOOP_AT, OBJECT_AT(2)}, two[] = {CORO_AT, OBJECT_AT(3), LOOP_AT, OBJECT_AT(4)};
    static const int order[] = {2, 4, 1, 3};
    uintptr_t tasks[4] = {0};
    ck_assert_uint_eq(loop_with(&target, LOOP_AT), LOOP_AT);
    fake_dict(&target, SET_AT(8), FAKE_KEYS_GENERAL, one, 2);
    fake_dict(&target, SET_AT(9), FAKE_KEYS_GENERAL, two, 2);
    ck_assert_uint_eq(asyncio_current(&target, &known, THREAD, tasks, 4), 4);
    for (int i = 0; i < 4; i++)
        ck_assert_uint_eq(tasks[i], OBJECT_AT(order[i]));
    memset(tasks, 0, sizeof tasks);
    ck_assert_uint_eq(asyncio_current(&target, &known, THREAD, tasks, 1), 1);
    ck_assert_uint_eq(tasks[0], OBJECT_AT(2));
    ck_assert_uint_eq(tasks[1], 0);
}
END_TEST

/* --- all tasks --- */

#define LISTED 3

/* A list of three tasks below a head; what is at `torn` is put at offset `at` of that task's node. */
static uintptr_t list(const struct py_target *target, uintptr_t base, int32_t head_at, int torn, int32_t at, uintptr_t value)
{
    int32_t node_at = target->layout.task_node;
    struct fake head = fake_new(base, (size_t)head_at + 16);
    uintptr_t nodes[LISTED + 2];
    nodes[0] = nodes[LISTED + 1] = base + (uintptr_t)head_at;
    for (int i = 1; i <= LISTED; i++)
        nodes[i] = OBJECT_AT(i) + (uintptr_t)node_at;
    for (int i = 1; i <= LISTED; i++) {
        struct fake task = task_new(target, OBJECT_AT(i));
        fake_put_word(&task, node_at, nodes[i + 1]);
        fake_put_word(&task, node_at + 8, nodes[i - 1]);
        if (i == torn)
            fake_put_word(&task, at, value);
        fake_place(&task);
    }
    fake_put_word(&head, head_at, nodes[1]);
    fake_put_word(&head, head_at + 8, nodes[LISTED]);
    return fake_place(&head);
}

/* How many come, in order, before the walk ends. */
static int walked(struct tasks_walk *walk)
{
    uintptr_t task;
    int count = 0;
    for (; asyncio_tasks_next(walk, &task); count++)
        ck_assert_uint_eq(task, OBJECT_AT(count + 1));
    ck_assert(!asyncio_tasks_next(walk, &task));
    return count;
}

START_TEST(lists_of_tasks)
{
    struct py_target target = target_with_types(_i);
    const struct layout *layout = &target.layout;
    struct tasks_walk walk;
    if (layout->thread_tasks == LAYOUT_NONE) {
        ck_assert(!asyncio_tasks_of_thread(&walk, &target, &known, THREAD));
        ck_assert(!asyncio_tasks_of_interp(&walk, &target, &known));
        return;
    }
    list(&target, THREAD, layout->thread_tasks, 0, 0, 0);
    ck_assert(asyncio_tasks_of_thread(&walk, &target, &known, THREAD));
    ck_assert_int_eq(walked(&walk), LISTED);
    ck_assert(!walk.broken);
    list(&target, INTERP, layout->interp_tasks, 0, 0, 0);
    ck_assert(asyncio_tasks_of_interp(&walk, &target, &known));
    ck_assert_int_eq(walked(&walk), LISTED);
    ck_assert(!walk.broken);
}
END_TEST

START_TEST(empty_lists_and_none)
{
    struct py_target target = target_with_types(_i);
    const struct layout *layout = &target.layout;
    struct tasks_walk walk;
    if (layout->thread_tasks == LAYOUT_NONE)
        return;
    struct fake thread = fake_new(THREAD, THREAD_BYTES), interp = fake_new(INTERP, INTERP_BYTES);
    ck_assert(asyncio_tasks_of_thread(&walk, &target, &known, THREAD) && walk.broken); /* unreadable */
    ck_assert(!asyncio_tasks_of_interp(&walk, &target, &known));
    fake_place(&thread);
    fake_place(&interp);
    ck_assert(asyncio_tasks_of_thread(&walk, &target, &known, THREAD) && walk.broken);
    ck_assert_int_eq(walked(&walk), 0);
    ck_assert(!asyncio_tasks_of_interp(&walk, &target, &known));
    for (int32_t at = 0; at < 16; at += 8) {
        fake_put_word(&thread, layout->thread_tasks + at, THREAD + (uintptr_t)layout->thread_tasks);
        fake_put_word(&interp, layout->interp_tasks + at, INTERP + (uintptr_t)layout->interp_tasks);
    }
    ck_assert(asyncio_tasks_of_thread(&walk, &target, &known, THREAD) && !walk.broken);
    ck_assert_int_eq(walked(&walk), 0);
    ck_assert(asyncio_tasks_of_interp(&walk, &target, &known));
    ck_assert_int_eq(walked(&walk), 0);
    ck_assert(!asyncio_tasks_of_thread(&walk, &target, &known, 0));
}
END_TEST

static int walked_torn(const struct py_target *target, int torn, int32_t at, uintptr_t value)
{
    struct tasks_walk walk;
    list(target, THREAD, target->layout.thread_tasks, torn, at, value);
    ck_assert(asyncio_tasks_of_thread(&walk, target, &known, THREAD));
    int count = walked(&walk);
    ck_assert(walk.broken);
    return count;
}

START_TEST(a_list_that_is_being_changed)
{
    struct py_target target = target_with_types(_i);
    int32_t node_at = target.layout.task_node;
    if (target.layout.thread_tasks == LAYOUT_NONE)
        return;
    ck_assert_int_eq(walked_torn(&target, 2, node_at, 0), 1); /* unlinked */
    ck_assert_int_eq(walked_torn(&target, 2, node_at, UNREADABLE), 1);
    ck_assert_int_eq(walked_torn(&target, 2, node_at, OBJECT_AT(1) + (uintptr_t)node_at), 1); /* back to the first */
    ck_assert_int_eq(walked_torn(&target, 2, node_at + 8, 0), 0); /* its neighbour is not believed either */
    ck_assert_int_eq(walked_torn(&target, 3, node_at, THREAD), 2); /* to no head */
    ck_assert_int_eq(walked_torn(&target, 3, target.layout.object_type, TYPE_AT(FUTURE)), 2);
    ck_assert_int_eq(walked_torn(&target, 1, target.layout.object_type, 0), 0);
    ck_assert_int_eq(walked_torn(&target, 1, node_at + 8, 0), 0);
}
END_TEST

static uintptr_t reference(const struct py_target *target, int i, uintptr_t to)
{
    struct fake made = fake_new(OBJECT_AT(i), 64);
    fake_put_word(&made, target->layout.object_type, TYPE_AT(WEAKREF));
    fake_put_word(&made, target->layout.weakref_object, to);
    return fake_place(&made);
}

static uintptr_t listed_task(const struct py_target *target, int i)
{
    struct fake task = task_new(target, OBJECT_AT(i));
    return fake_place(&task);
}

START_TEST(sets_of_tasks)
{
    struct py_target target = target_with_types(_i);
    struct tasks_walk walk;
    object(&target, OBJECT_AT(21), TYPE_AT(FUTURE));
    const uintptr_t tasks[] = {0, 0, NONE_AT, 5, listed_task(&target, 1), 5, UNREADABLE, 5, OBJECT_AT(21), 5, listed_task(&target, 2), 5,
                               17, 5, OBJECT_AT(1), UINT64_MAX};
    fake_set(&target, SET_AT(1), SET_TYPE_AT, tasks, 8);
    ck_assert(asyncio_tasks_of_set(&walk, &target, &known, 1));
    ck_assert_int_eq(walked(&walk), 2);
    ck_assert(!asyncio_tasks_of_set(&walk, &target, &known, 0)); /* not there */
    ck_assert(!asyncio_tasks_of_set(&walk, &target, &known, 2));
    ck_assert(!asyncio_tasks_of_set(&walk, &target, &known, ASYNCIO_SETS));
}
END_TEST

START_TEST(weak_sets_of_tasks)
{
    struct py_target target = target_with_types(_i);
    struct tasks_walk walk;
    const uintptr_t slots[] = {0, 0, reference(&target, 30, NONE_AT), 5, reference(&target, 31, listed_task(&target, 1)), 5,
                               UNREADABLE, 5, reference(&target, 32, 0), 5, reference(&target, 33, UNREADABLE), 5,
                               listed_task(&target, 40), 5, /* no reference: what stands there is a loop */
                               reference(&target, 34, listed_task(&target, 2)), 5};
    struct names data = {{"_pending_removals", "data"}, {NONE_AT, fake_set(&target, SET_AT(5), SET_TYPE_AT, slots, 8)}};
    instance(&target, SET_AT(0), TYPE_AT(WEAK_SET), &data);
    ck_assert(asyncio_tasks_of_set(&walk, &target, &known, 0));
    ck_assert_int_eq(walked(&walk), 2);
    ck_assert(!walk.broken);
    fake_set(&target, SET_AT(6), SET_TYPE_AT, slots, 2); /* cleared: another set */
    data.value[1] = SET_AT(6);
    instance(&target, SET_AT(0), TYPE_AT(WEAK_SET), &data);
    ck_assert(asyncio_tasks_of_set(&walk, &target, &known, 0));
    ck_assert_int_eq(walked(&walk), 0);
    data.name[1] = "datum";
    instance(&target, SET_AT(0), TYPE_AT(WEAK_SET), &data);
    ck_assert(!asyncio_tasks_of_set(&walk, &target, &known, 0));
}
END_TEST

Suite *suite_asyncio(void)
{
    const TTest *const tests[] = {
        a_search_goes_on_where_it_stopped, keys_that_were_emptied_are_looked_at_anew, a_module_that_is_being_made, types_that_are_not_what_they_must_be, the_rest_comes_later,
        modules_that_are_reloaded_and_taken_away, a_type_or_a_base_of_it, a_task_is_read, a_plain_future_ends_where_a_task_goes_on,
        a_task_that_cannot_be, a_task_written_in_python, a_task_written_in_python_that_cannot_be, names_of_tasks, folded_names_of_tasks,
        the_loop_that_a_thread_runs, the_tasks_that_run, the_tasks_of_this_thread_come_first,
        a_dict_of_nothing_does_not_hold_a_thread_up, lists_of_tasks, empty_lists_and_none,
        a_list_that_is_being_changed, sets_of_tasks, weak_sets_of_tasks,
    };
    Suite *suite = suite_create("asyncio");
    TCase *each = tcase_create("each version");
    for (size_t i = 0; i < sizeof tests / sizeof *tests; i++)
        tcase_add_loop_test(each, tests[i], FIRST_MINOR, AFTER_LAST_MINOR);
    suite_add_tcase(suite, each);
    return suite;
}
