/* SPDX-License-Identifier: MIT
 *
 * fake_tasks: an interpreter with a thread, a loop and tasks, and ticks over them.
 *
 * Of 10 ms between two ticks 5 are on the stacks of the first, 5 on those of the second;
 * of those before the first tick all are on what it sees. */
#ifndef APROF_TESTS_UNIT_FAKE_TASKS_H
#define APROF_TESTS_UNIT_FAKE_TASKS_H

#include "hooks/mem.h"
#include "sampler/tasks.h"
#include "tests/unit/fake_asyncio.h"
#include "tests/unit/fake_births.h"

#define MIB ((size_t)1 << 20)
#define MS 1000000ull
#define TSTATE_AT(i) (0x26000000u + 0x100000u * (unsigned)(i))
#define MODULE_AT 0x27000000u
#define MODULES_AT 0x27100000u
#define NAMES_AT(i) (0x27200000u + 0x1000u * (unsigned)(i))
#define MODULE_TYPE_AT 0x27300000u
#define MODULE_DICT_AT 0x27400000u
#define SET_AT 0x27600000u
#define SET_SLOTS 256
#define DEPTH 64

static struct fake_world world;
static struct stacks stacks;
static struct tasks *tasks;
static struct window window;
static struct tasks_thread threads[2];
static uint32_t thread_count;
static uint64_t now;
static int hooks;

static inline void hook(uintptr_t type, uintptr_t interp)
{
    ck_assert_uint_eq(type, FAKE_TASK_TYPE_AT);
    ck_assert_uint_eq(interp, FAKE_INTERP_AT);
    hooks++;
}

/* --- an interpreter --- */

/* {"_asyncio": its module} with its types and a set of all tasks of the world. */
static inline void make_interpreter(void)
{
    const struct py_target *target = &world.target;
    const struct layout *layout = &target->layout;
    static const char *const names[] = {"_asyncio", "Task", "Future", "_eager_tasks"};
    uintptr_t key[4], slots[2 * SET_SLOTS] = {0};
    for (int i = 0; i < 4; i++)
        key[i] = fake_str(target, NAMES_AT(i), names[i]);
    for (uint32_t i = 0; i < world.tasks && i < SET_SLOTS / 2; i++) {
        slots[2 * i] = fake_task_at(i);
        slots[2 * i + 1] = i + 1;
    }
    fake_set(target, SET_AT, SET_TYPE_AT, slots, SET_SLOTS);
    uintptr_t of_module[] = {key[1], FAKE_TASK_TYPE_AT, key[2], FAKE_FUTURE_TYPE_AT, key[3], SET_AT};
    fake_named_type(layout, MODULE_TYPE_AT, "module", 0, OBJECT_TYPE_AT);
    struct fake module = fake_new(MODULE_AT, 64), interp = fake_new(FAKE_INTERP_AT, (size_t)layout->interp_modules + 8);
    fake_put_word(&module, layout->object_type, MODULE_TYPE_AT);
    fake_put_word(&module, layout->object_type + 8, fake_dict(target, MODULE_DICT_AT, FAKE_KEYS_GENERAL, of_module, 3));
    uintptr_t modules[] = {key[0], fake_place(&module)};
    fake_put_word(&interp, layout->interp_modules, fake_dict(target, MODULES_AT, FAKE_KEYS_GENERAL, modules, 1));
    fake_place(&interp);
}

/* loop: 0 is none. */
static inline void thread_runs(uint32_t thread, uintptr_t loop)
{
    const struct layout *layout = &world.target.layout;
    struct fake tstate = fake_new(TSTATE_AT(thread), 2048);
    if (layout->thread_running_loop != LAYOUT_NONE) {
        fake_put_word(&tstate, layout->thread_running_loop, loop);
    } else if (loop) {
        uintptr_t pair[] = {fake_str(&world.target, TSTATE_AT(thread) + 0x10000, "__asyncio_running_event_loop__"), loop};
        fake_put_word(&tstate, layout->thread_dict, fake_dict(&world.target, TSTATE_AT(thread) + 0x20000, FAKE_KEYS_GENERAL, pair, 1));
    }
    if (layout->thread_tasks != LAYOUT_NONE)
        for (int i = 0; i < 2; i++)
            fake_put_word(&tstate, layout->thread_tasks + 8 * i, TSTATE_AT(thread) + (uintptr_t)layout->thread_tasks);
    fake_place(&tstate);
}

static inline profile_stack driver_stack(void)
{
    return stacks_push_marker(&stacks, PROFILE_ROOT, "loop");
}

static uint32_t kinds; /* of the tasks that the next start makes: fake_world.kinds */

static inline void start_with(int minor, uint32_t count, struct tasks_options options)
{
    fake_asyncio_start(&world, minor, count, MIB / 4);
    world.kinds = kinds;
    fake_births_reset();
    make_interpreter();
    ck_assert_int_eq(mem_init(256 * MIB), 0);
    ck_assert_int_eq(codes_start(), 0);
    stacks = (struct stacks){.profile = profile_new(), .paths = {.full = true}, .target = &world.target};
    stacks.unknown = profile_intern(stacks.profile, "[unknown]", 9, 0);
    for (uint32_t i = 0; i < count; i++)
        fake_task(&world, i, 1);
    thread_runs(0, fake_loop_at(0));
    threads[0] = (struct tasks_thread){.tstate = TSTATE_AT(0), .interp = FAKE_INTERP_AT, .cpu = 1, .driver = driver_stack(), .driver_sure = true};
    thread_count = 1;
    now = 1000 * MS;
    hooks = 0;
    window = (struct window){0};
    options.target = &world.target;
    options.hook = hook;
    tasks = tasks_new(&options, now);
    ck_assert_ptr_nonnull(tasks);
}

static inline void start(int minor, uint32_t count)
{
    start_with(minor, count, (struct tasks_options){.depth = DEPTH, .metric = true, .clock_precise = true});
}

/* Births are seen, so tasks are known by them. */
static inline void start_hooked(int minor, uint32_t count)
{
    start_with(minor, count, (struct tasks_options){.depth = DEPTH, .metric = true, .clock_precise = true, .creators = true});
    fake_births.hooked = FAKE_TASK_TYPE_AT;
}

static inline void stop(void)
{
    tasks_free(tasks);
    ck_assert(!asyncios_any());
    fake_reset();
    free(world.bytes);
}

/* So much later; nothing ran meanwhile. */
static inline void still_tick(uint64_t ns, bool must)
{
    now += ns;
    tasks_prepare(tasks, threads, thread_count, &stacks, now);
    tasks_tick(tasks, threads, thread_count, &stacks, &window, now, must);
}

static inline void tick(uint64_t ns)
{
    threads[0].cpu++;
    still_tick(ns, true);
}

/* --- what was added --- */

static inline uint64_t total(void)
{
    return profile_total_ns(stacks.profile, METRIC_TASK);
}

static inline uint64_t time_in(enum metric metric, const char *functions)
{
    uint32_t at = 0;
    profile_stack stack;
    uint64_t us, sum = 0;
    while (profile_each(stacks.profile, metric, &at, &stack, &us))
        if (strcmp(fake_functions(stacks.profile, stack), functions) == 0)
            sum += profile_get_ns(stacks.profile, stack, metric);
    return sum;
}

static inline uint64_t time_of(const char *functions)
{
    return time_in(METRIC_TASK, functions);
}

/* All that is on stacks of this task's, ready or not. */
static inline uint64_t time_of_task(uint32_t task)
{
    uint32_t at = 0;
    profile_stack stack;
    uint64_t us, sum = 0;
    char name[16];
    size_t length = (size_t)snprintf(name, sizeof name, "t%u.0", task);
    while (profile_each(stacks.profile, METRIC_TASK, &at, &stack, &us)) {
        const char *functions = fake_functions(stacks.profile, stack), *ready = strstr(functions, ";[ready]");
        size_t end = ready ? (size_t)(ready - functions) : strlen(functions);
        if (end > length && functions[end - length - 1] == ';' && strncmp(functions + end - length, name, length) == 0)
            sum += profile_get_ns(stacks.profile, stack, METRIC_TASK);
    }
    return sum;
}

/* What it stands on, seen to run just now. */
static inline profile_stack base_of(uintptr_t task)
{
    return tasks_base(tasks, task, births_number());
}

/* --- windows --- */

static inline void next_window(void)
{
    profile_clear(stacks.profile, false);
    tasks_forget_stacks(tasks);
    window = (struct window){0};
    threads[0].driver = driver_stack();
}

/* --- chance --- */

static uint64_t seed;

static inline uint32_t chance(uint32_t below)
{
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(seed >> 33) % below;
}

#endif
