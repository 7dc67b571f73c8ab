/* SPDX-License-Identifier: MIT
 *
 * asyncio: where it is found, tasks and futures, chains of coroutines, who awaits whom,
 * all tasks and glances at them, what they stand on, and a thread that runs one.
 *
 * Input: version, births, ticks, seed and depth, memory; then edits (tests/fuzz/image.h).
 */
#include "hooks/log.h"
#include "hooks/mem.h"
#include "sampler/cpython/awaiters.h"
#include "sampler/cpython/coros.h"
#include "sampler/cpython/exceptions.h"
#include "sampler/stacked.h"
#include "sampler/tasks.h"
#include "tests/fuzz/fuzz.h"
#include "tests/fuzz/image.h"
#include "tests/unit/fake_births.h"
#include "tests/unit/fake_callables.h"
#include "tests/unit/fake_thread.h"

enum { HEAD = 5, VERSIONS = AFTER_LAST_MINOR - FIRST_MINOR, TASKS = 18, DEPTH_MOST = 32, SLOTS = 32, ATTRIBUTES = 32, FUTURE_BYTES = 512 };
#define MS 1000000ull

enum { /* what may be read, at most */
    HANDLER_READS = 1 << 19,  /* by a thread that looks at itself, and at the awaiters of its task */
    TICK_READS = 1 << 24,     /* by the tick over all tasks */
    NAME_READS = (1 << 16) * 8
};

enum { /* who is who */
    LEAF, AWAITS_LEAF, GATHERS, WAITS, SHIELDS, IN_GROUP, AS_COMPLETED, CIRCLE, CIRCLE_TOO, RUNS, NEW, GATHERED, DONE, WRAPPED, OF_PYTHON, IN_WAIT_FOR, ABOVE, ABOVE_THAT
};

#define INSTANCE_TYPE_AT 0x25000000u
#define GATHERING_TYPE_AT 0x25010000u
#define PY_TASK_TYPE_AT 0x25020000u
#define PY_FUTURE_TYPE_AT 0x25030000u
#define NONE_TYPE_AT 0x25040000u
#define NONE_AT 0x25050000u
#define PARTIAL_TYPE_AT 0x25060000u
#define MODULE_TYPE_AT 0x25070000u
#define WEAKREF_TYPE_AT 0x25080000u
#define WRAPPER_TYPE_AT(i) (0x25100000u + 0x1000u * (unsigned)(i))
#define OBJECT(i) (0x1000000000ul + 0x1000000ul * (unsigned long)(i))

static struct scene {
    struct image *image;
    struct fake_world world;
} scenes[VERSIONS];

static struct fake_world *world; /* the one that is being made */
static const struct py_target *target;
static const struct layout *layout;
static int objects; /* made so far of it */

/* --- objects --- */

static void put_types(void)
{
    static const struct {
        uintptr_t at;
        const char *name;
        uintptr_t base;
        uint64_t dictoffset;
    } types[] = {
        {INSTANCE_TYPE_AT, "TaskGroup", OBJECT_TYPE_AT, ATTRIBUTES}, {GATHERING_TYPE_AT, "_GatheringFuture", FAKE_FUTURE_TYPE_AT, 256},
        {PY_TASK_TYPE_AT, "Task", OBJECT_TYPE_AT, ATTRIBUTES}, {PY_FUTURE_TYPE_AT, "Future", OBJECT_TYPE_AT, ATTRIBUTES},
        {PARTIAL_TYPE_AT, "functools.partial", OBJECT_TYPE_AT, 0}, {MODULE_TYPE_AT, "module", OBJECT_TYPE_AT, 0},
        {WEAKREF_TYPE_AT, "weakref", OBJECT_TYPE_AT, 0},
    };
    static const char *const wrappers[] = {"coroutine_wrapper", "async_generator_asend", "async_generator_athrow", "anext_awaitable"};
    for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
        struct fake type = fake_type_new(layout, types[i].at, types[i].name, layout->flag_heap_type, types[i].base);
        fake_put_word(&type, layout->object_type, FAKE_TYPE_TYPE_AT);
        fake_put_word(&type, layout->type_dictoffset, types[i].dictoffset);
        fake_place(&type);
    }
    for (int i = 0; i < 4; i++)
        fake_named_type(layout, WRAPPER_TYPE_AT(i), wrappers[i], 0, OBJECT_TYPE_AT);
    fake_named_type(layout, NONE_TYPE_AT, "NoneType", 0, OBJECT_TYPE_AT);
    struct fake none = fake_new(NONE_AT, 16);
    fake_put_word(&none, layout->object_type, NONE_TYPE_AT);
    fake_place(&none);
    world->asyncio.py_task_type = PY_TASK_TYPE_AT;
    world->asyncio.py_future_type = PY_FUTURE_TYPE_AT;
}

static uintptr_t new_object(uintptr_t type, uintptr_t word)
{
    struct fake object = fake_new(OBJECT(objects++), 64);
    fake_put_word(&object, layout->object_type, type);
    fake_put_word(&object, layout->object_type + 8, word);
    return fake_place(&object);
}

static uintptr_t new_future(uintptr_t type)
{
    uintptr_t future = fake_world_alloc(world, FUTURE_BYTES);
    fake_new_future(world, future, type, 0);
    return future;
}

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

static uintptr_t dict_of(const char *const *names, const uintptr_t *values, size_t count)
{
    uintptr_t at = OBJECT(objects++), pairs[16];
    for (size_t i = 0; i < count; i++) {
        pairs[2 * i] = fake_str(target, at + 0x100000 + 0x1000 * i, names[i]);
        pairs[2 * i + 1] = values[i];
    }
    return fake_dict(target, at, FAKE_KEYS_UNICODE, pairs, count);
}

static uintptr_t new_instance(uintptr_t type, const char *const *names, const uintptr_t *values, size_t count)
{
    struct fake instance = fake_new(OBJECT(objects++), ATTRIBUTES + 8);
    fake_put_word(&instance, layout->object_type, type);
    fake_put_word(&instance, ATTRIBUTES, dict_of(names, values, count));
    return fake_place(&instance);
}

static uintptr_t instance_with(const char *attribute, uintptr_t value)
{
    return new_instance(INSTANCE_TYPE_AT, &attribute, &value, 1);
}

static uintptr_t new_queue(uintptr_t getter)
{
    uintptr_t at = OBJECT(objects++);
    int32_t head = layout->var_size + 8;
    struct fake block = fake_new(at + 0x100000, 8 * 66), deque = fake_new(at, 64);
    fake_put_word(&block, 8, getter);
    fake_put_word(&deque, layout->object_type, DEQUE_TYPE_AT);
    fake_put_word(&deque, layout->var_size, 1);
    fake_put_word(&deque, head, fake_place(&block));
    return instance_with("_getters", fake_place(&deque));
}

static uintptr_t set_of(const uintptr_t *members, size_t count)
{
    uintptr_t slots[2 * SLOTS] = {0};
    for (size_t i = 0; i < count; i++) {
        slots[2 * i] = members[i];
        slots[2 * i + 1] = i + 1;
    }
    return fake_set(target, OBJECT(objects++), SET_TYPE_AT, slots, SLOTS);
}

static void calls_back(uintptr_t future, uintptr_t callback)
{
    uintptr_t pair[] = {callback, NONE_AT};
    fake_add_callback(world, future, callback, fake_tuple(target, OBJECT(objects++), pair, 2), 16);
}

/* A future stands between the leaf and this task. */
static void waits_through(uint32_t task, uintptr_t future, uintptr_t callback)
{
    fake_task(world, task, 2);
    fake_task_waits(world, task, 2, future);
    fake_wakes(world, future, task, 4);
    calls_back(fake_task_at(LEAF), callback);
}

/* --- the tasks --- */

static void put_waiting(void)
{
    uintptr_t members[] = {fake_task_at(LEAF), fake_task_at(DONE)}, future[8], queue, group, set = set_of(members, 2);
    for (int i = 0; i < 8; i++)
        future[i] = new_future(FAKE_FUTURE_TYPE_AT);
    queue = new_queue(future[4]);
    group = instance_with("_on_completed_fut", future[3]);
    fake_task(world, LEAF, 3);
    fake_task(world, AWAITS_LEAF, 1);
    fake_task_waits(world, AWAITS_LEAF, 1, fake_task_at(LEAF));
    fake_wakes(world, fake_task_at(LEAF), AWAITS_LEAF, 16);
    waits_through(GATHERS, future[0], new_function("gather.<locals>._done_callback", "outer", future[0]));
    waits_through(WAITS, future[1], new_function("_wait.<locals>._on_completion", "waiter", future[1]));
    waits_through(SHIELDS, future[2], new_function("shield.<locals>._inner_done_callback", "outer", future[2]));
    waits_through(IN_GROUP, future[3], new_method("TaskGroup._on_task_done", group));
    waits_through(AS_COMPLETED, future[4], new_function("as_completed.<locals>._on_completion", "done", queue));
    waits_through(IN_WAIT_FOR, future[5], new_partial("_release_waiter", future[5]));
    fake_coro_has_local(world, WAITS, 1, "_wait", "fs", set);
    fake_coro_has_local(world, IN_GROUP, 1, "TaskGroup._aexit", "self", instance_with("_tasks", set));
}

static void put_others(void)
{
    uintptr_t children[] = {fake_task_at(DONE)}, gathered = new_future(GATHERING_TYPE_AT), at = OBJECT(objects++);
    uintptr_t inner = fake_coro_at(WRAPPED, 1), wrapper = new_object(WRAPPER_TYPE_AT(0), inner);
    static const char *const children_name[] = {"_children"};
    const uintptr_t list[] = {fake_list(target, at, children, 1)};
    fake_world_word(world, gathered, 256, dict_of(children_name, list, 1));
    fake_task(world, CIRCLE, 1);
    fake_task(world, CIRCLE_TOO, 1);
    fake_task_awaits(world, CIRCLE, 1, CIRCLE_TOO);
    fake_task_awaits(world, CIRCLE_TOO, 1, CIRCLE);
    fake_task(world, NEW, 1);
    fake_task_is_new(world, NEW);
    fake_task(world, DONE, 1);
    fake_task_is_done(world, DONE);
    fake_task(world, GATHERED, 1);
    fake_task_waits(world, GATHERED, 1, gathered);
    fake_task(world, WRAPPED, 3);
    fake_coro_awaits(world, WRAPPED, 0, wrapper);
    fake_world_word(world, fake_coro_at(WRAPPED, 2), layout->object_type, FAKE_ASYNC_GEN_TYPE_AT);
    fake_coro_awaits(world, WRAPPED, 1, new_object(WRAPPER_TYPE_AT(1), fake_coro_at(WRAPPED, 2)));
}

/* One that is written in Python, and whose waiter wakes it up by a method. */
static uintptr_t put_py_task(void)
{
    static const char *const names[] = {"_state", "_loop", "_callbacks", "_fut_waiter", "_coro", "_name"};
    uintptr_t at = OBJECT(objects++);
    fake_task(world, OF_PYTHON, 2); /* its coroutines and its future */
    const uintptr_t values[] = {fake_str(target, at, "PENDING"), fake_loop_at(0), fake_list(target, at + 0x10000, NULL, 0), fake_future_at(OF_PYTHON),
                                fake_coro_at(OF_PYTHON, 0), fake_str(target, at + 0x30000, "py-task")};
    uintptr_t task = new_instance(PY_TASK_TYPE_AT, names, values, 6);
    fake_no_callbacks(world, fake_future_at(OF_PYTHON));
    calls_back(fake_future_at(OF_PYTHON), new_method("Task.__wakeup", task));
    return task;
}

/* --- the interpreter --- */

static uintptr_t module_of(const char *const *names, const uintptr_t *values, size_t count)
{
    return new_object(MODULE_TYPE_AT, dict_of(names, values, count));
}

static void put_node(struct fake *owner, int32_t head, uint32_t first, uint32_t count)
{
    uintptr_t at = owner->address + (uintptr_t)head, last = at;
    for (uint32_t i = 0; i < count; i++) {
        uintptr_t node = fake_task_at(first + i) + (uintptr_t)layout->task_node;
        uintptr_t next = i + 1 < count ? fake_task_at(first + i + 1) + (uintptr_t)layout->task_node : at;
        fake_world_word(world, node, 0, next);
        fake_world_word(world, node, 8, last);
        last = node;
    }
    fake_put_word(owner, head, count ? fake_task_at(first) + (uintptr_t)layout->task_node : at);
    fake_put_word(owner, head + 8, last);
}

static void put_interp(uintptr_t py_task)
{
    static const char *const of_c[] = {"_current_tasks", "_eager_tasks", "Task", "Future"};
    static const char *const of_tasks[] = {"_scheduled_tasks", "_CTask", "_PyTask"};
    static const char *const of_futures[] = {"_CFuture", "_PyFuture"};
    static const char *const names[] = {"asyncio", "_asyncio", "asyncio.tasks", "asyncio.futures"};
    uintptr_t all[TASKS], weak[TASKS];
    for (uint32_t i = 0; i < TASKS; i++) {
        all[i] = i == OF_PYTHON ? py_task : fake_task_at(i);
        struct fake reference = fake_new(OBJECT(objects++), 64);
        fake_put_word(&reference, layout->object_type, WEAKREF_TYPE_AT);
        fake_put_word(&reference, layout->weakref_object, all[i]);
        weak[i] = fake_place(&reference);
    }
    const uintptr_t c[] = {dict_of(NULL, NULL, 0), set_of(all, TASKS), FAKE_TASK_TYPE_AT, FAKE_FUTURE_TYPE_AT};
    const uintptr_t tasks[] = {instance_with("data", set_of(weak, TASKS)), FAKE_TASK_TYPE_AT, PY_TASK_TYPE_AT};
    const uintptr_t futures[] = {FAKE_FUTURE_TYPE_AT, PY_FUTURE_TYPE_AT};
    const uintptr_t modules[] = {NONE_AT, module_of(of_c, c, 4), module_of(of_tasks, tasks, 3), module_of(of_futures, futures, 2)};
    struct fake interp = fake_new(FAKE_INTERP_AT, (size_t)(layout->interp_tasks > layout->interp_modules ? layout->interp_tasks : layout->interp_modules) + 16);
    fake_put_word(&interp, layout->interp_modules, dict_of(names, modules, 4));
    if (layout->interp_tasks != LAYOUT_NONE)
        put_node(&interp, layout->interp_tasks, RUNS, 4);
    fake_place(&interp);
}

static void put_thread(void)
{
    struct fake_thread thread = fake_thread_of(world);
    fake_task(world, RUNS, 3);
    fake_call(&thread, fake_function(target, 0, "<module>", "/app/main.py"));
    fake_call(&thread, fake_function(target, 1, "BaseEventLoop._run_once", "/usr/lib/python3.11/asyncio/base_events.py"));
    fake_call(&thread, fake_function(target, 2, "Handle._run", "/usr/lib/python3.11/asyncio/events.py"));
    fake_step(&thread, RUNS, 3);
    fake_call(&thread, fake_function(target, 3, "compute", "/app/main.py"));
    struct fake tstate = fake_tstate_new(&thread, fake_task_at(RUNS));
    if (layout->thread_tasks != LAYOUT_NONE)
        put_node(&tstate, layout->thread_tasks, 0, 8);
    fake_place(&tstate);
    fake_task(world, ABOVE, 2);
    fake_task_awaits(world, ABOVE, 2, RUNS);
    fake_task(world, ABOVE_THAT, 1);
    fake_task_awaits(world, ABOVE_THAT, 1, ABOVE);
}

/* --- what is done --- */

static void put_births(uint8_t births)
{
    fake_births_reset();
    if (!(births & 1))
        return;
    fake_births.hooked = FAKE_TASK_TYPE_AT;
    fake_births.counted = FAKE_FUTURE_TYPE_AT;
    maker_id outer = fake_maker(fake_coro_at(RUNS, 0)), inner = fake_maker(fake_coro_at(RUNS, 1)), other = fake_maker(fake_coro_at(LEAF, 1));
    fake_birth(fake_birth_of(fake_task_at(NEW), inner, outer));
    if (births & 2)
        fake_birth(fake_birth_of(fake_task_at(LEAF), other, outer));
    if (births & 4)
        fake_birth(fake_birth_of(fake_task_at(CIRCLE), fake_maker(fake_coro_at(CIRCLE_TOO, 0)), 0));
    if (births & 8)
        fake_birth(fake_birth_of(fake_task_at(RUNS), fake_maker(fake_coro_at(NEW, 0)), other));
    fake_births.dies_after = births >> 5;
    fake_births.task = fake_task_at(RUNS);
    fake_births.coroutine_of_task = births & 16 ? fake_coro_at(RUNS, 0) : 0;
}

static void hook(uintptr_t type, uintptr_t interp)
{
}

/* A thread that looks at itself. */
static void ask_thread(struct stacks *stacks, struct tasks *tasks, uint32_t depth, uint64_t seed)
{
    struct stack_copy *copy = stacks_new_copy(depth);
    if (!copy)
        return;
    image_allow(HANDLER_READS);
    stacks_capture(copy, stacks->target, FAKE_TSTATE_AT, seed);
    FUZZ_HOLDS(copy->frames <= depth && copy->task_frames <= copy->frames && copy->end != FRAMES_MORE);
    image_allow(TICK_READS);
    if (stacks_is_whole(copy->end)) {
        stacks_resolve(stacks, copy);
        stacks_intern(stacks, copy);
        stacks_intern_task(stacks, copy, copy->task ? tasks_base(tasks, copy->task, copy->births) : PROFILE_ROOT);
    }
    mem_free(copy);
}

static void ask_names(const struct fake_world *known)
{
    char name[TEXT_NAME_MAX];
    for (uint32_t i = 0; i < TASKS; i++) {
        image_allow(NAME_READS);
        FUZZ_HOLDS(asyncio_name(&known->target, &known->asyncio, fake_task_at(i), name, sizeof name) <= sizeof name);
    }
}

static void tick(struct tasks *tasks, struct stacks *stacks, uint32_t depth, uint8_t ticks, uint64_t seed)
{
    struct tasks_thread thread = {.tstate = FAKE_TSTATE_AT, .interp = FAKE_INTERP_AT, .cpu = 1, .driver_sure = ticks & 1};
    struct window window = {0};
    uint64_t now = 1000 * MS;
    thread.driver = stacks_push_marker(stacks, PROFILE_ROOT, "loop");
    for (int i = 0; i < 4 + (ticks >> 1 & 1); i++) { /* from the third on tasks rest */
        now += 10 * MS;
        thread.cpu += (ticks >> (2 + i) & 1) | (i > 2);
        image_allow(TICK_READS);
        tasks_prepare(tasks, &thread, 1, stacks, now);
        tasks_tick(tasks, &thread, 1, stacks, &window, now, true);
        ask_thread(stacks, tasks, depth, seed + (uint64_t)i);
        if (ticks >> (5 + i) & 1) {
            profile_clear(stacks->profile, ticks & 1);
            if (ticks & 1)
                codes_forget_frames();
            tasks_forget_stacks(tasks);
            stacks->unknown = profile_intern(stacks->profile, "[unknown]", 9, 0);
            thread.driver = stacks_push_marker(stacks, PROFILE_ROOT, "loop");
        }
    }
    FUZZ_HOLDS(window.counters.tasks_peak <= 2 * CONTAINERS_ITEMS_MAX);
}

static void ask(struct scene *scene, const uint8_t *head)
{
    static bool started;
    struct stacks stacks = {.profile = profile_new(), .paths = {.full = true}, .target = &scene->world.target};
    uint32_t depth = 1 + head[3] % DEPTH_MOST;
    struct tasks_options options = {.target = &scene->world.target, .depth = depth, .metric = true, .clock_precise = true, .creators = head[1] & 1, .hook = hook};
    started = started || codes_start() == 0;
    log_set_level(LOG_QUIET);
    exceptions_ask_for_tasks(head[0] / VERSIONS & 1);
    put_births(head[1]);
    reset_coros();
    reset_awaiters();
    struct tasks *tasks = stacks.profile ? tasks_new(&options, 1000 * MS) : NULL;
    if (tasks) {
        stacks.unknown = profile_intern(stacks.profile, "[unknown]", 9, 0);
        tick(tasks, &stacks, depth, head[2], head[3]);
        ask_names(&scene->world);
    }
    tasks_free(tasks);
    profile_free(stacks.profile);
    reset_codes();
    FUZZ_HOLDS(mem_used() == 0);
}

/* --- the target --- */

static struct scene *scene_of(uint8_t version)
{
    static const uint8_t ordinary[HEAD] = {0, 0x9f, 0x1e, 0x1f, 0xff};
    struct scene *scene = &scenes[version % VERSIONS];
    if (scene->image)
        return scene;
    world = &scene->world;
    fake_asyncio_start(world, FIRST_MINOR + version % VERSIONS, TASKS, 1 << 16);
    target = &world->target;
    layout = &target->layout;
    objects = 0;
    put_types();
    put_waiting();
    put_others();
    put_thread();
    put_interp(put_py_task());
    scene->image = image_seal();
    mem_init((size_t)64 << 20);
    image_record_begin(scene->image);
    ask(scene, ordinary);
    image_record_end();
    return scene;
}

void fuzz_input(const uint8_t *data, size_t size)
{
    if (size < HEAD)
        return;
    struct scene *scene = scene_of(data[0]);
    mem_init(data[4] & 0xc0 ? (size_t)64 << 20 : (size_t)data[4] << 15);
    image_begin(scene->image, data + HEAD, size - HEAD);
    ask(scene, data);
}

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t most, unsigned seed)
{
    return image_mutate(data, size, most, seed, HEAD);
}
