/* SPDX-License-Identifier: MIT
 * awaiters: each callback that leads to somebody, edges that do not close, and
 * memory that makes no sense. */
#include "sampler/cpython/awaiters.h"

#include "sampler/cpython/coros.h"
#include "tests/unit/fake_asyncio.h"
#include "tests/unit/fake_callables.h"

#define PARTIAL_TYPE_AT 0x25000000u
#define INSTANCE_TYPE_AT 0x25010000u /* keeps its attributes in a dict of its own */
#define GATHERING_TYPE_AT 0x25020000u
#define PY_TASK_TYPE_AT 0x25030000u
#define NONE_TYPE_AT 0x25040000u
#define NONE_AT 0x25050000u
#define OBJECT(i) (0x1000000000ul + 0x1000000ul * (unsigned long)(i))
#define ATTRIBUTES 32 /* tp_dictoffset */
#define TASKS 16
#define MAX_READS 1000000u /* of one walk */

Suite *suite_awaiters(void);

static struct fake_world world;
static const struct py_target *target;
static const struct layout *layout;
static int objects; /* made so far */

static void start(int minor)
{
    static const uintptr_t types[] = {INSTANCE_TYPE_AT, GATHERING_TYPE_AT, PY_TASK_TYPE_AT};
    static const char *const names[] = {"TaskGroup", "_GatheringFuture", "Task"};
    fake_asyncio_start(&world, minor, TASKS, 1 << 20);
    target = &world.target;
    layout = &target->layout;
    objects = 0;
    for (int i = 0; i < 3; i++) {
        uintptr_t base = types[i] == GATHERING_TYPE_AT ? FAKE_FUTURE_TYPE_AT : OBJECT_TYPE_AT;
        struct fake type = fake_type_new(layout, types[i], names[i], layout->flag_heap_type, base);
        fake_put_word(&type, layout->type_dictoffset, types[i] == GATHERING_TYPE_AT ? 256 : ATTRIBUTES);
        fake_place(&type);
    }
    fake_named_type(layout, PARTIAL_TYPE_AT, "functools.partial", layout->flag_heap_type, OBJECT_TYPE_AT);
    fake_named_type(layout, NONE_TYPE_AT, "NoneType", 0, OBJECT_TYPE_AT);
    struct fake none = fake_new(NONE_AT, 16);
    fake_put_word(&none, layout->object_type, NONE_TYPE_AT);
    fake_place(&none);
    world.asyncio.py_task_type = PY_TASK_TYPE_AT;
}

/* --- objects that callbacks are made of --- */

static uintptr_t new_future(void)
{
    uintptr_t future = fake_world_alloc(&world, 512);
    fake_new_future(&world, future, FAKE_FUTURE_TYPE_AT, 0);
    return future;
}

/* A function with one free variable; NULL: without any. */
static uintptr_t new_function(const char *name, const char *variable, uintptr_t value)
{
    return fake_callable_function(target, OBJECT(objects++), name, variable, value);
}

static uintptr_t new_method(const char *function, uintptr_t self)
{
    uintptr_t at = OBJECT(objects++);
    return fake_callable_method(target, at, new_function(function, NULL, 0), self);
}

static uintptr_t new_partial(const char *function, uintptr_t argument)
{
    uintptr_t at = OBJECT(objects++);
    return fake_callable_partial(target, at, PARTIAL_TYPE_AT, new_function(function, NULL, 0), argument);
}

static uintptr_t dict_of(const char *name, uintptr_t value)
{
    uintptr_t at = OBJECT(objects++);
    const uintptr_t pair[] = {fake_str(target, at + 0x100000, name), value};
    return fake_dict(target, at, FAKE_KEYS_UNICODE, pair, 1);
}

static uintptr_t new_instance(const char *attribute, uintptr_t value)
{
    struct fake instance = fake_new(OBJECT(objects++), ATTRIBUTES + 8);
    fake_put_word(&instance, layout->object_type, INSTANCE_TYPE_AT);
    fake_put_word(&instance, ATTRIBUTES, dict_of(attribute, value));
    return fake_place(&instance);
}

/* A queue in whose get() so many wait, all in one block. */
static uintptr_t new_queue(const uintptr_t *getters, size_t count)
{
    uintptr_t at = OBJECT(objects++);
    struct fake block = fake_new(at + 0x100000, 8 * 66), deque = fake_new(at, 64);
    int32_t head = layout->var_size + 8;
    for (size_t i = 0; i < count; i++)
        fake_put_word(&block, (int32_t)(8 * (i + 1)), getters[i]);
    fake_put_word(&deque, layout->object_type, DEQUE_TYPE_AT);
    fake_put_word(&deque, layout->var_size, count);
    fake_put_word(&deque, head, fake_place(&block));
    fake_put_word(&deque, head + 8, block.address);
    return new_instance("_getters", fake_place(&deque));
}

/* A task that is written in Python and waits for this future. */
static uintptr_t new_py_task(uintptr_t waiter)
{
    struct fake task = fake_new(OBJECT(objects++), ATTRIBUTES + 8);
    uintptr_t at = OBJECT(objects++);
    const uintptr_t pairs[] = {fake_str(target, at + 0x100000, "_fut_waiter"), waiter, fake_str(target, at + 0x200000, "_coro"), NONE_AT};
    fake_put_word(&task, layout->object_type, PY_TASK_TYPE_AT);
    fake_put_word(&task, ATTRIBUTES, fake_dict(target, at, FAKE_KEYS_UNICODE, pairs, 2));
    return fake_place(&task);
}

/* One more callback of a future. */
static void call_back(uintptr_t future, uintptr_t callback)
{
    if (!fake_world_get(&world, future, layout->future_callback0)) {
        fake_world_word(&world, future, layout->future_callback0, callback);
        return;
    }
    uintptr_t pair[2] = {callback, NONE_AT}, tuples[8], at = OBJECT(objects++), list = fake_world_get(&world, future, layout->future_callbacks);
    struct items items = {0};
    ck_assert(!list || containers_items(target, list, &items));
    for (uint32_t i = 0; i < items.count; i++)
        tuples[i] = containers_item(&items, i);
    tuples[items.count] = fake_tuple(target, at + 0x800000, pair, 2);
    fake_world_word(&world, future, layout->future_callbacks, fake_list(target, at, tuples, items.count + 1));
}

/* Task 0 is what is waited for; task i, a task of one coroutine, waits for the future. */
static void waits_for(uint32_t task, uintptr_t future)
{
    fake_task(&world, task, 1);
    fake_task_waits(&world, task, 1, future);
    call_back(future, fake_task_at(task) + FAKE_IN_WAKEUP);
}

/* --- what is found --- */

static struct {
    struct awaiter awaiter[AWAITERS_CALLBACKS + 1];
    uint32_t count;
    bool cut;
} found;

static void look(void)
{
    struct awaiters_walk walk;
    struct future future;
    unsigned long before = fake_reads() + fake_refusals();
    found.count = 0;
    ck_assert(asyncio_read(target, &world.asyncio, fake_task_at(0), &future));
    awaiters_begin(&walk, target, &world.asyncio, &future);
    while (found.count <= AWAITERS_CALLBACKS && awaiters_next(&walk, &found.awaiter[found.count]))
        found.count++;
    found.cut = walk.cut;
    ck_assert_uint_lt(fake_reads() + fake_refusals() - before, MAX_READS);
}

static void must_find(uint32_t task, uintptr_t through)
{
    look();
    ck_assert_uint_eq(found.count, 1);
    ck_assert_uint_eq(found.awaiter[0].task, fake_task_at(task));
    ck_assert_uint_eq(found.awaiter[0].through, through);
    ck_assert(!found.cut);
}

static void must_find_nobody(void)
{
    look();
    ck_assert_uint_eq(found.count, 0);
    ck_assert(!found.cut);
}

/* --- direct --- */

START_TEST(nobody_waits)
{
    start(_i);
    fake_task(&world, 0, 1);
    must_find_nobody();
}
END_TEST

START_TEST(a_task_awaits_it)
{
    start(_i);
    fake_task(&world, 0, 1);
    waits_for(1, fake_task_at(0));
    must_find(1, fake_task_at(0));
}
END_TEST

START_TEST(several_tasks_await_it)
{
    start(_i);
    fake_task(&world, 0, 1);
    for (uint32_t i = 1; i < 5; i++)
        waits_for(i, fake_task_at(0));
    look();
    ck_assert_uint_eq(found.count, 4);
    for (uint32_t i = 0; i < 4; i++)
        ck_assert_uint_eq(found.awaiter[i].task, fake_task_at(i + 1));
}
END_TEST

/* --- the rows of the table --- */

typedef uintptr_t make_callback(uintptr_t future);

static uintptr_t of_gather(uintptr_t future)
{
    return new_function("gather.<locals>._done_callback", "outer", future);
}

static uintptr_t of_wait(uintptr_t future)
{
    return new_function("_wait.<locals>._on_completion", "waiter", future);
}

static uintptr_t of_shield(uintptr_t future)
{
    return new_function("shield.<locals>._inner_done_callback", "outer", future);
}

static uintptr_t of_group(uintptr_t future)
{
    return new_method("TaskGroup._on_task_done", new_instance("_on_completed_fut", future));
}

static uintptr_t of_as_completed(uintptr_t future)
{
    return new_function("as_completed.<locals>._on_completion", "done", new_queue(&future, 1));
}

static uintptr_t of_as_completed_since_3_13(uintptr_t future)
{
    return new_method("_AsCompletedIterator._handle_completion", new_instance("_done", new_queue(&future, 1)));
}

static uintptr_t of_wait_for(uintptr_t future)
{
    return new_partial("_release_waiter", future);
}

static uintptr_t of_staggered(uintptr_t future)
{
    return new_function("staggered_race.<locals>.task_done", "on_completed_fut", future);
}

static uintptr_t of_anyio(uintptr_t future)
{
    return new_function("TaskGroup._spawn.<locals>.task_done", "self", new_instance("_on_completed_fut", future));
}

static make_callback *const between[] = {of_gather, of_wait, of_shield, of_group, of_as_completed, of_as_completed_since_3_13, of_wait_for,
                                         of_staggered, of_anyio};
#define BETWEEN ((int)(sizeof between / sizeof *between))

START_TEST(each_callback_leads_to_who_waits)
{
    start(_i);
    for (int row = 0; row < BETWEEN; row++) {
        fake_task(&world, 0, 1);
        uintptr_t future = new_future();
        call_back(fake_task_at(0), between[row](future));
        must_find_nobody(); /* so far */
        waits_for(1, future);
        must_find(1, future);
        must_find(1, future); /* the function is known by now */
        fake_future_state(&world, future, FUTURE_FINISHED);
        must_find_nobody();
    }
}
END_TEST

static struct awaiters_lead lead_of(uintptr_t callback)
{
    struct awaiters_lead lead;
    ck_assert(awaiters_lead(&world.target, callback, &lead));
    return lead;
}

static bool are_alike(struct awaiters_lead a, struct awaiters_lead b)
{
    return a.route == b.route && a.direct == b.direct && a.key == b.key;
}

/* Through the same object and in the same way. */
START_TEST(callbacks_that_lead_alike)
{
    start(_i);
    for (int row = 0; row < BETWEEN; row++) {
        uintptr_t first = between[row](new_future()), second = between[row](new_future());
        struct awaiters_lead lead = lead_of(first);
        ck_assert_uint_ne(lead.route, 0);
        ck_assert_uint_ne(lead.key, 0);
        ck_assert(!lead.direct);
        ck_assert(are_alike(lead_of(first), lead));
        ck_assert(!are_alike(lead_of(second), lead));
        ck_assert(!are_alike(lead_of(between[(row + 1) % BETWEEN](new_future())), lead));
    }
    uintptr_t future = new_future();
    ck_assert(are_alike(lead_of(of_gather(future)), lead_of(of_gather(future))));
    ck_assert(!are_alike(lead_of(of_gather(future)), lead_of(of_wait(future))));
}
END_TEST

START_TEST(callbacks_that_wake_or_lead_nowhere)
{
    struct awaiters_lead lead;
    start(_i);
    fake_task(&world, 0, 1);
    fake_task(&world, 1, 1);
    lead = lead_of(fake_task_at(1) + FAKE_IN_WAKEUP);
    ck_assert(lead.direct);
    ck_assert_uint_eq(lead.key, fake_task_at(1));
    ck_assert(!are_alike(lead, lead_of(fake_task_at(0) + FAKE_IN_WAKEUP)));
    ck_assert_uint_eq(lead_of(new_function("some.<locals>.callback", "outer", new_future())).route, 0);
    fake_world_word(&world, fake_task_at(1) + FAKE_IN_WAKEUP, layout->cfunction_def, 0);
    ck_assert_uint_eq(lead_of(fake_task_at(1) + FAKE_IN_WAKEUP).route, 0); /* another builtin */
    ck_assert_uint_eq(lead_of(new_future()).route, 0); /* nothing that is known */
    ck_assert(!awaiters_lead(&world.target, 0, &lead));
    ck_assert(!awaiters_lead(&world.target, 0xdddddddddddddddd, &lead));
    ck_assert(!awaiters_lead(&world.target, of_gather(0), &lead));
}
END_TEST

START_TEST(a_function_is_told_once)
{
    start(_i);
    fake_task(&world, 0, 1);
    uintptr_t future = new_future();
    call_back(fake_task_at(0), new_function("some.other.<locals>.callback", "outer", future));
    waits_for(1, future);
    unsigned long before = fake_reads();
    must_find_nobody();
    unsigned long first = fake_reads() - before;
    must_find_nobody();
    ck_assert_uint_lt(fake_reads() - before - first, first - 5); /* not its name's characters for each row */
}
END_TEST

START_TEST(a_task_written_in_python_is_woken_by_a_method)
{
    start(_i);
    fake_task(&world, 0, 1);
    uintptr_t task = new_py_task(fake_task_at(0));
    call_back(fake_task_at(0), new_method("Task.__wakeup", task));
    look();
    ck_assert_uint_eq(found.count, 1);
    ck_assert_uint_eq(found.awaiter[0].task, task);
    fake_no_callbacks(&world, fake_task_at(0));
    call_back(fake_task_at(0), new_method("Task.__wakeup", new_py_task(fake_future_at(0)))); /* waits for another */
    call_back(fake_task_at(0), new_method("Task.__wakeup", new_py_task(NONE_AT)));
    must_find_nobody();
}
END_TEST

START_TEST(callbacks_that_lead_to_nobody)
{
    start(_i);
    fake_task(&world, 0, 1);
    uintptr_t future = new_future();
    waits_for(1, future);
    const uintptr_t callbacks[] = {
        new_function("gather.<locals>._done_callback2", "outer", future), /* other names */
        new_function("gather.<locals>._done_callbac", "outer", future),
        new_function("", "outer", future),
        new_function("gather.<locals>._done_callback", "inner", future), /* other parts */
        new_function("gather.<locals>._done_callback", NULL, 0),
        new_function("gather.<locals>._done_callback", "outer", 0),
        new_function("gather.<locals>._done_callback", "outer", NONE_AT), /* before outer is set */
        new_function("as_completed.<locals>._on_completion", "done", future),
        new_function("as_completed.<locals>._on_completion", "done", new_queue(NULL, 0)),
        new_function("TaskGroup._spawn.<locals>.task_done", "self", future),
        new_method("TaskGroup._on_task_done", new_instance("_on_completed_fut", NONE_AT)), /* its body still runs */
        new_method("TaskGroup._on_task_done", new_instance("_tasks", future)),
        new_method("TaskGroup._on_task_done", 0),
        new_method("_release_waiter", fake_tuple(target, OBJECT(9999), &future, 1)), /* other kinds of callables */
        new_function("TaskGroup._on_task_done", "self", new_instance("_on_completed_fut", future)),
        new_function("_release_waiter", "waiter", future),
        new_function("Task.__wakeup", "self", fake_task_at(1)),
        new_partial("_release_waiter", 0),
        new_partial("another", future),
        new_instance("outer", future), /* a callable of a class */
        future,
        0x7fff0000,
    };
    for (size_t i = 0; i < sizeof callbacks / sizeof *callbacks; i++) {
        fake_no_callbacks(&world, fake_task_at(0));
        call_back(fake_task_at(0), callbacks[i]);
        look();
        ck_assert_msg(found.count == 0, "%zu", i);
    }
}
END_TEST

/* --- edges --- */

START_TEST(an_edge_must_close)
{
    start(_i);
    fake_task(&world, 0, 1);
    waits_for(1, fake_task_at(0));
    fake_task_waiter(&world, 1, fake_future_at(1)); /* it waits for another by now */
    must_find_nobody();
    fake_task_waiter(&world, 1, 0); /* it is ready, or runs */
    must_find_nobody();
    fake_task_waiter(&world, 1, fake_task_at(0));
    must_find(1, fake_task_at(0));
    fake_world_word(&world, fake_task_at(1), layout->object_type, FAKE_FUTURE_TYPE_AT);
    must_find_nobody();
    fake_world_word(&world, fake_task_at(1), layout->object_type, FAKE_LOOP_TYPE_AT);
    must_find_nobody();
}
END_TEST

/* A gather that is not awaited yet: its task waits for something else. */
START_TEST(an_edge_between_must_close)
{
    start(_i);
    fake_task(&world, 0, 1);
    uintptr_t future = new_future();
    call_back(fake_task_at(0), of_gather(future));
    waits_for(1, future);
    fake_task_waiter(&world, 1, fake_task_at(0)); /* not through that one */
    must_find_nobody();
}
END_TEST

START_TEST(another_builtin_wakes_nobody)
{
    static const char other[] = "task_wakeup2", short_one[] = "task";
    start(_i);
    fake_task(&world, 0, 1);
    waits_for(1, fake_task_at(0));
    for (int i = 0; i < 2; i++) {
        uintptr_t def = OBJECT(objects++), name = def + 64;
        fake_words(def, &name, 1);
        fake_map(name, i ? short_one : other, i ? sizeof short_one : sizeof other);
        fake_world_word(&world, fake_task_at(1) + FAKE_IN_WAKEUP, layout->cfunction_def, def);
        must_find_nobody();
    }
    fake_world_word(&world, fake_task_at(1) + FAKE_IN_WAKEUP, layout->cfunction_def, 0);
    must_find_nobody();
    fake_world_word(&world, fake_task_at(1) + FAKE_IN_WAKEUP, layout->cfunction_def, FAKE_WAKEUP_DEF_AT);
    must_find(1, fake_task_at(0));
    must_find(1, fake_task_at(0)); /* by its address */
}
END_TEST

/* --- several levels --- */

/* Futures one above the other, made by all kinds in turn; the uppermost. */
static uintptr_t tower(int levels)
{
    uintptr_t below = fake_task_at(0);
    for (int i = 0; i < levels; i++) {
        uintptr_t future = new_future();
        call_back(below, between[i % BETWEEN](future));
        below = future;
    }
    return below;
}

START_TEST(futures_stand_on_each_other)
{
    start(_i);
    for (int levels = 1; levels < AWAITERS_LEVELS; levels++) {
        fake_task(&world, 0, 1);
        uintptr_t top = tower(levels);
        waits_for(1, top);
        must_find(1, top);
    }
}
END_TEST

START_TEST(too_many_levels_are_cut)
{
    start(_i);
    fake_task(&world, 0, 1);
    waits_for(1, tower(AWAITERS_LEVELS));
    look();
    ck_assert_uint_eq(found.count, 0);
    ck_assert(found.cut);
}
END_TEST

START_TEST(every_branch_is_followed)
{
    start(_i);
    fake_task(&world, 0, 1);
    uintptr_t outer = new_future(), inner = new_future(), shielded = new_future();
    call_back(fake_task_at(0), of_gather(outer));
    call_back(fake_task_at(0), of_wait(inner));
    call_back(inner, of_shield(shielded));
    waits_for(1, outer);
    waits_for(2, inner);
    waits_for(3, shielded);
    waits_for(4, fake_task_at(0));
    waits_for(5, outer);
    look();
    bool seen[TASKS] = {false};
    for (uint32_t i = 0; i < found.count; i++)
        seen[(found.awaiter[i].task - FAKE_TASKS_AT) / FAKE_TASK_BYTES] = true;
    ck_assert_uint_eq(found.count, 5);
    for (int i = 1; i <= 5; i++)
        ck_assert(seen[i]);
}
END_TEST

START_TEST(two_ways_to_one_task)
{
    start(_i);
    fake_task(&world, 0, 1);
    uintptr_t outer = new_future(), shielded = new_future();
    call_back(fake_task_at(0), of_gather(outer)); /* gather(task, shield(task)) */
    call_back(fake_task_at(0), of_shield(shielded));
    call_back(shielded, of_gather(outer));
    waits_for(1, outer);
    look();
    ck_assert_uint_eq(found.count, 2);
    ck_assert_uint_eq(found.awaiter[0].task, fake_task_at(1));
    ck_assert_uint_eq(found.awaiter[1].task, fake_task_at(1));
}
END_TEST

START_TEST(all_who_wait_at_a_queue)
{
    start(_i);
    fake_task(&world, 0, 1);
    uintptr_t getters[4] = {new_future(), new_future(), new_future(), new_future()};
    call_back(fake_task_at(0), new_function("as_completed.<locals>._on_completion", "done", new_queue(getters, 4)));
    for (uint32_t i = 0; i < 4; i++)
        waits_for(i + 1, getters[i]);
    fake_future_state(&world, getters[2], FUTURE_CANCELLED);
    look();
    ck_assert_uint_eq(found.count, 3);
}
END_TEST

/* Each begins where the one before it went on: all are found, whatever comes first. */
START_TEST(a_walk_may_begin_anywhere)
{
    struct awaiters_walk walk;
    struct awaiter awaiter;
    struct future future;
    start(_i);
    fake_task(&world, 0, 1);
    for (uint32_t i = 1; i <= 5; i++)
        waits_for(i, fake_task_at(0));
    ck_assert(asyncio_read(target, &world.asyncio, fake_task_at(0), &future));
    for (uint32_t turn = 0; turn < 12; turn++) {
        awaiters_begin(&walk, target, &world.asyncio, &future);
        awaiters_turn(&walk, turn);
        for (uint32_t i = 0; i < 5; i++) {
            ck_assert(awaiters_next(&walk, &awaiter));
            ck_assert_uint_eq(awaiter.task, fake_task_at(1 + (turn + i) % 5));
        }
        ck_assert(!awaiters_next(&walk, &awaiter) && !walk.cut);
    }
}
END_TEST

/* --- bounds --- */

START_TEST(futures_in_a_circle)
{
    start(_i);
    fake_task(&world, 0, 1);
    uintptr_t one = new_future(), two = new_future();
    call_back(fake_task_at(0), of_gather(one));
    for (int i = 0; i < 3; i++) {
        call_back(one, of_shield(two));
        call_back(two, of_shield(one));
    }
    waits_for(1, one);
    look();
    ck_assert(found.cut);
    ck_assert_uint_gt(found.count, 0);
    for (uint32_t i = 0; i < found.count; i++)
        ck_assert_uint_eq(found.awaiter[i].task, fake_task_at(1));
}
END_TEST

/* A list that says it is as long as a list can be, over what must be read one by one. */
static void absurd_list(uintptr_t items)
{
    struct fake list = fake_new(OBJECT(objects++), (size_t)layout->list_items + 8);
    fake_put_word(&list, layout->object_type, LIST_TYPE_AT);
    fake_put_word(&list, layout->var_size, CONTAINERS_ITEMS_MAX);
    fake_put_word(&list, layout->list_items, items);
    fake_world_word(&world, fake_task_at(0), layout->future_callbacks, fake_place(&list));
}

START_TEST(absurd_lists_of_callbacks)
{
    start(_i);
    fake_task(&world, 0, 1);
    absurd_list(0x7fff0000);
    look();
    ck_assert(found.cut);
    uintptr_t *same = calloc(CONTAINERS_ITEMS_MAX, sizeof *same);
    fake_map(0x300000000ul, same, CONTAINERS_ITEMS_MAX * sizeof *same);
    absurd_list(0x300000000ul); /* nothing in it */
    look();
    ck_assert(found.cut);
    fake_task(&world, 1, 1);
    for (uint32_t i = 0; i < CONTAINERS_ITEMS_MAX; i++)
        same[i] = fake_task_at(1) + FAKE_IN_TUPLE;
    fake_task_waits(&world, 1, 1, fake_task_at(0));
    look();
    ck_assert(found.cut);
    ck_assert_uint_le(found.count, AWAITERS_CALLBACKS);
    ck_assert_uint_gt(found.count, AWAITERS_CALLBACKS / 2);
    free(same);
}
END_TEST

/* Blocks in a circle, none of whose getters waits. */
START_TEST(an_absurd_queue)
{
    start(_i);
    fake_task(&world, 0, 1);
    uintptr_t getter = new_future(), queue = new_queue(&getter, 1), deque = containers_attribute(target, queue, "_getters");
    fake_future_state(&world, getter, FUTURE_FINISHED);
    struct fake block = fake_new(OBJECT(objects++), 8 * 66), head = fake_new(deque, 64);
    for (int i = 0; i < 64; i++)
        fake_put_word(&block, 8 * (i + 1), getter);
    fake_put_word(&block, 0, block.address);
    fake_put_word(&block, 8 * 65, block.address);
    fake_put_word(&head, layout->object_type, DEQUE_TYPE_AT);
    fake_put_word(&head, layout->var_size, CONTAINERS_ITEMS_MAX);
    fake_put_word(&head, layout->var_size + 8, fake_place(&block));
    fake_place(&head);
    call_back(fake_task_at(0), new_function("as_completed.<locals>._on_completion", "done", queue));
    look();
    ck_assert_uint_eq(found.count, 0);
    ck_assert(found.cut);
}
END_TEST

/* Words of everything changed at random, to others that are there. */
START_TEST(torn_memory_ends)
{
    uint32_t state = 4711;
    start(_i);
    fake_task(&world, 0, 2);
    waits_for(1, tower(3));
    waits_for(2, fake_task_at(0));
    unsigned char *whole = calloc(1, world.used);
    memcpy(whole, world.bytes, world.used);
    for (int round = 0; round < 2000; round++) {
        for (int i = 0; i < 20; i++) {
            state = state * 1664525u + 1013904223u;
            size_t to = (state >> 8) % (world.used / 8), from = (state * 2654435761u >> 8) % (world.used / 8);
            memcpy(world.bytes + to * 8, whole + from * 8, 8);
        }
        struct future future;
        if (asyncio_read(target, &world.asyncio, fake_task_at(0), &future))
            look();
        if (round % 16 == 0)
            memcpy(world.bytes, whole, world.used);
    }
    free(whole);
}
END_TEST

/* --- aggregates --- */

static uintptr_t new_gather(uintptr_t children)
{
    uintptr_t gather = new_future();
    fake_world_word(&world, gather, layout->object_type, GATHERING_TYPE_AT);
    fake_world_word(&world, gather, 256, dict_of("_children", children));
    return gather;
}

static bool is_done(uintptr_t future)
{
    return awaiters_aggregate_is_done(target, &world.asyncio, future);
}

START_TEST(an_aggregate_of_what_is_done)
{
    start(_i);
    fake_task(&world, 0, 1);
    const uintptr_t members[] = {fake_task_at(0), new_future(), fake_task_at(0)};
    uintptr_t gather = new_gather(fake_list(target, OBJECT(objects++), members, 3));
    ck_assert(!is_done(gather));
    fake_future_state(&world, members[0], FUTURE_FINISHED);
    ck_assert(!is_done(gather));
    fake_future_state(&world, members[1], FUTURE_CANCELLED);
    ck_assert(is_done(gather));
    fake_future_state(&world, members[1], FUTURE_PENDING);
    ck_assert(!is_done(gather));
}
END_TEST

START_TEST(what_is_no_aggregate_is_not_done)
{
    start(_i);
    const uintptr_t nobody[] = {NONE_AT, 0x7fff0000};
    uintptr_t future = new_future();
    ck_assert(!is_done(future));
    fake_task(&world, 0, 1);
    ck_assert(!is_done(fake_task_at(0)));
    ck_assert(!is_done(0));
    ck_assert(!is_done(0x7fff0000));
    ck_assert(!is_done(new_gather(NONE_AT)));
    for (int i = 0; i < 2; i++)
        ck_assert(!is_done(new_gather(fake_list(target, OBJECT(objects++), &nobody[i], 1))));
    fake_world_word(&world, future, layout->object_type, INSTANCE_TYPE_AT);
    ck_assert(!is_done(future));
}
END_TEST

/* A function that waits for members, and a frame of it; task 0 is used for its coroutine. */
static struct {
    const char *function, *variable, *attribute;
} const waiting[] = {{"_wait", "fs", NULL}, {"TaskGroup.__aexit__", "self", "_tasks"}, {"TaskGroup._aexit", "self", "_tasks"}};
#define WAITING (sizeof waiting / sizeof *waiting)

/* members: pairs of object and hash, a power of two of them. */
static uintptr_t new_set(const uintptr_t *members, size_t count)
{
    return fake_set(target, OBJECT(objects++), SET_TYPE_AT, members, count);
}

/* The value of its variable, whatever it is named and of. */
static bool are_done_of(size_t which, const char *variable, uintptr_t value)
{
    struct coro coro;
    fake_task(&world, 0, 1);
    fake_coro_has_local(&world, 0, 0, waiting[which].function, variable, value);
    ck_assert(coros_read(target, fake_coro_at(0, 0), &coro));
    int aggregate = awaiters_aggregate(target, coro.code.qualname);
    ck_assert_int_ne(aggregate, 0);
    return awaiters_members_are_done(target, &world.asyncio, aggregate, coro.frame, &coro.code);
}

static bool are_done(size_t which, uintptr_t set)
{
    return are_done_of(which, waiting[which].variable, waiting[which].attribute ? new_instance(waiting[which].attribute, set) : set);
}

START_TEST(members_of_what_waits_for_several)
{
    start(_i);
    for (size_t i = 0; i < WAITING; i++) {
        fake_task(&world, 1, 1);
        const uintptr_t members[] = {fake_task_at(1), 1, 0, 0, OBJECT(9999), UINTPTR_MAX /* was one */, new_future(), 4};
        uintptr_t set = new_set(members, 4);
        ck_assert(!are_done(i, set));
        fake_future_state(&world, members[0], FUTURE_FINISHED);
        ck_assert(!are_done(i, set));
        fake_future_state(&world, members[6], FUTURE_CANCELLED);
        ck_assert(are_done(i, set));
        fake_future_state(&world, members[0], FUTURE_PENDING);
        ck_assert(!are_done(i, set));
    }
}
END_TEST

/* A TaskGroup forgets members that are done. */
START_TEST(no_members_are_none_pending)
{
    const uintptr_t none[4] = {0};
    start(_i);
    for (size_t i = 0; i < WAITING; i++)
        ck_assert(are_done(i, new_set(none, 2)));
}
END_TEST

START_TEST(what_is_no_set_of_members)
{
    start(_i);
    const uintptr_t done[] = {new_future(), 1}, nobody[] = {0x7fff0000, 1}, other[] = {NONE_AT, 1};
    fake_future_state(&world, done[0], FUTURE_FINISHED);
    for (size_t i = 0; i < WAITING; i++) {
        ck_assert(are_done(i, new_set(done, 1)));
        ck_assert(!are_done(i, new_set(nobody, 1)));
        ck_assert(!are_done(i, new_set(other, 1)));
        ck_assert(!are_done(i, 0));
        ck_assert(!are_done(i, NONE_AT));
        ck_assert(!are_done(i, 0x7fff0000));
        ck_assert(!are_done(i, fake_list(target, OBJECT(objects++), done, 1)));
        ck_assert(!are_done_of(i, "other", new_set(done, 1)));
        ck_assert(!are_done_of(i, waiting[i].variable, 0));
    }
    for (size_t i = 1; i < WAITING; i++) {
        ck_assert(!are_done_of(i, "self", new_set(done, 1)));
        ck_assert(!are_done_of(i, "self", new_instance("_children", new_set(done, 1))));
        ck_assert(!are_done_of(i, "self", NONE_AT));
    }
}
END_TEST

START_TEST(too_many_members)
{
    enum { SLOTS = 8192 };
    start(_i);
    uintptr_t *none = calloc(2 * SLOTS, sizeof *none);
    ck_assert(are_done(0, new_set(none, SLOTS / 2)));
    ck_assert(!are_done(0, new_set(none, SLOTS)));
    free(none);
}
END_TEST

START_TEST(functions_that_wait_for_members)
{
    static const char *const others[] = {"", "wait", "_waiter", "TaskGroup", "TaskGroup.__aexit", "TaskGroup._aexit2", "Group._aexit", "_aexit"};
    start(_i);
    for (size_t i = 0; i < WAITING; i++)
        for (size_t j = 0; j <= i; j++) {
            int one = awaiters_aggregate(target, fake_str(target, OBJECT(objects++), waiting[i].function));
            int two = awaiters_aggregate(target, fake_str(target, OBJECT(objects++), waiting[j].function));
            ck_assert_int_gt(one, 0);
            ck_assert_int_eq(one == two, i == j);
        }
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        ck_assert_int_eq(awaiters_aggregate(target, fake_str(target, OBJECT(objects++), others[i])), 0);
    ck_assert_int_eq(awaiters_aggregate(target, 0), 0);
    ck_assert_int_eq(awaiters_aggregate(target, NONE_AT), 0);
    ck_assert_int_eq(awaiters_aggregate(target, 0x7fff0000), 0);
}
END_TEST

Suite *suite_awaiters(void)
{
    const TTest *const tests[] = {
        callbacks_that_lead_alike, callbacks_that_wake_or_lead_nowhere,
        nobody_waits, a_task_awaits_it, several_tasks_await_it, each_callback_leads_to_who_waits, a_function_is_told_once,
        a_task_written_in_python_is_woken_by_a_method, callbacks_that_lead_to_nobody, an_edge_must_close, an_edge_between_must_close,
        another_builtin_wakes_nobody, futures_stand_on_each_other, too_many_levels_are_cut, every_branch_is_followed, two_ways_to_one_task,
        all_who_wait_at_a_queue, futures_in_a_circle, a_walk_may_begin_anywhere, absurd_lists_of_callbacks, an_absurd_queue, torn_memory_ends,
        an_aggregate_of_what_is_done, what_is_no_aggregate_is_not_done, members_of_what_waits_for_several, no_members_are_none_pending,
        what_is_no_set_of_members, too_many_members, functions_that_wait_for_members,
    };
    Suite *suite = suite_create("awaiters");
    TCase *versions = tcase_create("each version");
    for (size_t i = 0; i < sizeof tests / sizeof *tests; i++)
        tcase_add_loop_test(versions, tests[i], FIRST_MINOR, AFTER_LAST_MINOR);
    tcase_set_timeout(versions, 60);
    suite_add_tcase(suite, versions);
    return suite;
}
