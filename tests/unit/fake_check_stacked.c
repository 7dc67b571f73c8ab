/* SPDX-License-Identifier: MIT
 * stacked: the tasks of a thread, the chains of those who await them, and what
 * becomes of them where they cannot be read. */
#include "sampler/stacked.h"

#include "tests/unit/fake_births.h"
#include "tests/unit/fake_thread.h"

#define TASKS 64
#define MANY 800
#define LIMIT 4096
#define ENTRIES_MAX 200000
#define SHOWN 4096

Suite *suite_stacked(void);

static struct fake_world world;
static struct fake_thread thread;

/* A thread that stands in its loop. */
static void stand_in_loop(void)
{
    thread = fake_thread_of(&world);
    fake_call(&thread, fake_function(&world.target, 0, "main", "/app/main.py"));
    fake_call(&thread, fake_function(&world.target, 1, "Handle._run", "/lib/asyncio/events.py"));
}

static void start_with(int minor, uint32_t tasks)
{
    fake_asyncio_start(&world, minor, tasks, 1 << 20);
    fake_births_reset();
    stand_in_loop();
}

static void start(int minor)
{
    start_with(minor, TASKS);
}

/* Task 0, of two coroutines, runs; the innermost calls a function. */
static void run_task_0(void)
{
    fake_task(&world, 0, 2);
    fake_step(&thread, 0, 2);
    fake_call(&thread, fake_function(&world.target, 2, "work", "/app/main.py"));
    fake_thread_place(&thread, fake_task_at(0));
}

/* --- what a walk gives, as text --- */

static struct {
    char text[SHOWN];
    uint32_t entries;
    bool torn, chosen;
    enum frames_end end;
} got;

static int show_code(char *text, size_t size, uintptr_t code)
{
    if (code >= FAKE_TASKS_AT) {
        unsigned task = (unsigned)((code - FAKE_TASKS_AT) / FAKE_TASK_BYTES);
        return snprintf(text, size, "t%u.%u ", task, (unsigned)((code - fake_task_at(task) - FAKE_IN_CODE) / FAKE_CODE_BYTES));
    }
    return snprintf(text, size, "f%u ", (unsigned)((code - FAKE_FUNCTION_AT(0)) / 0x1000000u));
}

static int show(char *text, size_t size, const struct stacked *entry)
{
    unsigned task = (unsigned)((entry->task - FAKE_TASKS_AT) / FAKE_TASK_BYTES);
    switch (entry->kind) {
    case STACKED_TASK:
        return snprintf(text, size, "|%u ", task);
    case STACKED_CHAIN:
        return snprintf(text, size, "%u:%u ", task, entry->frames);
    case STACKED_CYCLE:
        return snprintf(text, size, "@ ");
    default:
        return show_code(text, size, entry->code.address);
    }
}

static const char *walk_to(uint32_t limit, const struct asyncio *asyncio, uint64_t seed)
{
    struct stacked_walk walk;
    struct stacked entry;
    size_t length = 0;
    got.entries = 0;
    got.text[0] = '\0';
    stacked_begin(&walk, &world.target, asyncio, FAKE_TSTATE_AT, limit, seed);
    while (stacked_next(&walk, &entry)) {
        ck_assert_uint_lt(got.entries++, ENTRIES_MAX);
        if (length < SHOWN - 32)
            length += (size_t)show(got.text + length, SHOWN - length, &entry);
    }
    ck_assert(!stacked_next(&walk, &entry));
    got.torn = walk.torn;
    got.chosen = walk.chosen;
    got.end = walk.frames.end;
    return got.text;
}

static const char *walk_with(const struct asyncio *asyncio, uint64_t seed)
{
    return walk_to(LIMIT, asyncio, seed);
}

static const char *walk(void)
{
    return walk_with(&world.asyncio, 1);
}

/* --- a thread and its task --- */

START_TEST(a_thread_without_tasks)
{
    start(_i);
    fake_thread_place(&thread, 0);
    ck_assert_str_eq(walk(), "f1 f0 ");
    ck_assert(got.end == FRAMES_COMPLETE && !got.torn && !got.chosen);
}
END_TEST

START_TEST(a_task_ends_where_its_coroutine_does)
{
    start(_i);
    run_task_0();
    ck_assert_str_eq(walk(), "f2 t0.1 t0.0 |0 f1 f0 ");
    ck_assert(got.end == FRAMES_COMPLETE && !got.torn && !got.chosen);
}
END_TEST

START_TEST(without_asyncio_there_are_frames_only)
{
    start(_i);
    run_task_0();
    fake_task(&world, 1, 2);
    fake_task_awaits(&world, 1, 2, 0);
    ck_assert_str_eq(walk_with(NULL, 1), "f2 t0.1 t0.0 f1 f0 ");
    ck_assert(got.end == FRAMES_COMPLETE && !got.torn);
}
END_TEST

/* Coroutines that are driven by hand, or by another library, are frames. */
START_TEST(a_coroutine_that_is_no_task)
{
    start(_i);
    fake_task(&world, 0, 2);
    fake_task(&world, 1, 1);
    fake_step(&thread, 0, 2);
    fake_thread_place(&thread, fake_task_at(1)); /* the current one is another */
    ck_assert_str_eq(walk(), "t0.1 t0.0 f1 f0 ");
    fake_thread_place(&thread, 0);
    ck_assert_str_eq(walk(), "t0.1 t0.0 f1 f0 ");
}
END_TEST

/* The innermost task runs a generator's and a function's frames above its own. */
START_TEST(a_call_from_c_within_a_task)
{
    start(_i);
    fake_task(&world, 0, 1);
    fake_step(&thread, 0, 1);
    fake_call(&thread, fake_function(&world.target, 2, "work", "/app/main.py"));
    fake_enter_c(&thread);
    fake_call(&thread, fake_function(&world.target, 3, "key", "/app/main.py"));
    fake_thread_place(&thread, fake_task_at(0));
    ck_assert_str_eq(walk(), "f3 f2 t0.0 |0 f1 f0 ");
}
END_TEST

/* --- awaiters --- */

START_TEST(an_awaiter)
{
    start(_i);
    run_task_0();
    fake_task(&world, 1, 2);
    fake_task_awaits(&world, 1, 2, 0);
    ck_assert_str_eq(walk(), "f2 t0.1 t0.0 |0 1:2 t1.0 t1.1 f1 f0 ");
    ck_assert(got.end == FRAMES_COMPLETE && !got.torn && !got.chosen);
}
END_TEST

START_TEST(awaiters_of_awaiters)
{
    start(_i);
    run_task_0();
    for (uint32_t i = 1; i < 5; i++) {
        fake_task(&world, i, 1 + (int)i % 3);
        fake_task_awaits(&world, i, 1 + (int)i % 3, i - 1);
    }
    ck_assert_str_eq(walk(), "f2 t0.1 t0.0 |0 1:2 t1.0 t1.1 2:3 t2.0 t2.1 t2.2 3:1 t3.0 4:2 t4.0 t4.1 f1 f0 ");
    ck_assert(!got.torn && !got.chosen);
}
END_TEST

START_TEST(an_edge_that_does_not_close_is_none)
{
    start(_i);
    run_task_0();
    fake_task(&world, 1, 2);
    fake_task_awaits(&world, 1, 2, 0);
    fake_task_waiter(&world, 1, fake_future_at(1));
    ck_assert_str_eq(walk(), "f2 t0.1 t0.0 |0 f1 f0 ");
    ck_assert(!got.torn);
}
END_TEST

/* --- by lot --- */

static uint32_t shown_task(void)
{
    const char *chain = strchr(got.text, ':');
    ck_assert_ptr_nonnull(chain);
    return (uint32_t)(chain[-1] - '0');
}

START_TEST(several_awaiters_are_shown_alike)
{
    enum { ROUNDS = 4000 };
    start(_i);
    run_task_0();
    for (uint32_t i = 1; i <= 4; i++)
        fake_task(&world, i, 1);
    for (uint32_t awaiters = 2; awaiters <= 4; awaiters++) {
        int count[8] = {0};
        fake_no_callbacks(&world, fake_task_at(0));
        for (uint32_t i = 1; i <= awaiters; i++)
            fake_task_awaits(&world, i, 1, 0);
        for (uint64_t seed = 0; seed < ROUNDS; seed++) {
            walk_with(&world.asyncio, seed);
            count[shown_task()]++;
            ck_assert(got.chosen && !got.torn);
        }
        for (uint32_t i = 1; i <= awaiters; i++) /* the deviation of so many is some 30 */
            ck_assert_int_le(abs(count[i] - ROUNDS / (int)awaiters), 150);
    }
}
END_TEST

START_TEST(the_same_seed_shows_the_same)
{
    char first[SHOWN];
    start(_i);
    run_task_0();
    for (uint32_t i = 1; i <= 6; i++) {
        fake_task(&world, i, 1);
        fake_task_awaits(&world, i, 1, i <= 3 ? 0 : i - 3);
    }
    for (uint64_t seed = 0; seed < 50; seed++) {
        strcpy(first, walk_with(&world.asyncio, seed * 0x9e3779b97f4a7c15u));
        ck_assert_str_eq(walk_with(&world.asyncio, seed * 0x9e3779b97f4a7c15u), first);
    }
}
END_TEST

/* Awaiters on two levels are drawn independently of each other. */
START_TEST(each_level_has_a_lot_of_its_own)
{
    int count[2][2] = {{0}};
    start(_i);
    run_task_0();
    for (uint32_t i = 1; i <= 6; i++) {
        fake_task(&world, i, 1);
        fake_task_awaits(&world, i, 1, i <= 2 ? 0 : i <= 4 ? 1 : 2);
    }
    for (uint64_t seed = 0; seed < 4000; seed++) {
        unsigned lower, upper;
        const char *chain = strstr(walk_with(&world.asyncio, seed), "|0 ");
        ck_assert_int_eq(sscanf(chain, "|0 %u:1 %*s %u:1", &lower, &upper), 2);
        count[lower - 1][(upper - 1) % 2]++;
    }
    for (int i = 0; i < 4; i++)
        ck_assert_int_le(abs(count[i / 2][i % 2] - 1000), 150);
}
END_TEST

/* One that is reached in two ways is one. */
START_TEST(two_ways_are_no_choice)
{
    start(_i);
    run_task_0();
    fake_task(&world, 1, 1);
    fake_task_awaits(&world, 1, 1, 0);
    fake_wakes(&world, fake_task_at(0), 1, 8);
    ck_assert_str_eq(walk(), "f2 t0.1 t0.0 |0 1:1 t1.0 f1 f0 ");
    ck_assert(!got.chosen);
}
END_TEST

START_TEST(one_that_is_reached_again_has_no_more_chances)
{
    int count[3] = {0};
    start(_i);
    run_task_0();
    for (uint32_t i = 1; i <= 2; i++) {
        fake_task(&world, i, 1);
        fake_task_awaits(&world, i, 1, 0);
    }
    for (int i = 0; i < 4; i++)
        fake_wakes(&world, fake_task_at(0), 1, FAKE_AWAITERS_ROOM);
    for (uint64_t seed = 0; seed < 4000; seed++) {
        walk_with(&world.asyncio, seed);
        count[shown_task()]++;
    }
    ck_assert_int_le(abs(count[1] - count[2]), 300);
}
END_TEST

/* The awaiter of task 0 that a walk shows. */
static uint32_t shown_of_many(uint64_t seed)
{
    uint32_t shown = 0;
    ck_assert_int_eq(sscanf(strstr(walk_with(&world.asyncio, seed), "|0 "), "|0 %u:1", &shown), 1);
    ck_assert(got.chosen && !got.torn);
    return shown;
}

START_TEST(of_very_many_some_are_looked_at)
{
    enum { PARTS = 4 };
    int count[PARTS] = {0};
    start_with(_i, MANY);
    run_task_0();
    for (uint32_t i = 1; i < MANY; i++) {
        fake_task(&world, i, 1);
        fake_task_awaits(&world, i, 1, 0);
    }
    for (uint64_t seed = 0; seed < 4000; seed++) {
        unsigned long before = fake_reads();
        count[(shown_of_many(seed) - 1) * PARTS / (MANY - 1)]++;
        ck_assert_uint_lt(fake_reads() - before, MANY * 3); /* all of them: 13 reads each at the least */
    }
    for (int i = 0; i < PARTS; i++)
        ck_assert_int_le(abs(count[i] - 1000), 150);
}
END_TEST

/* Callbacks that lead to nobody are passed, however many. */
START_TEST(an_awaiter_among_very_many_callbacks)
{
    start_with(_i, TASKS);
    run_task_0();
    fake_task(&world, 1, 1); /* waits for something else */
    for (uint32_t i = 0; i < MANY; i++)
        fake_wakes(&world, fake_task_at(0), 1, FAKE_AWAITERS_ROOM);
    fake_task(&world, 2, 1);
    fake_task_awaits(&world, 2, 1, 0);
    for (uint64_t seed = 0; seed < 50; seed++)
        ck_assert_uint_eq(shown_of_many(seed), 2);
}
END_TEST

/* --- eager tasks --- */

/* Task 1 is made by task 0 and runs at once, on its frames. */
static void run_eager(void)
{
    fake_task(&world, 0, 1);
    fake_step(&thread, 0, 1);
    fake_call(&thread, fake_function(&world.target, 2, "create_task", "/lib/asyncio/tasks.py"));
    fake_task(&world, 1, 1);
    fake_step(&thread, 1, 1);
    fake_thread_place(&thread, fake_task_at(1));
}

START_TEST(an_eager_task_within_its_creator)
{
    start(_i);
    run_eager();
    fake_births.coroutine_of_task = fake_coro_at(0, 0);
    fake_births.task = fake_task_at(0);
    fake_task(&world, 2, 2);
    fake_task_awaits(&world, 2, 2, 0);
    ck_assert_str_eq(walk(), "t1.0 |1 f2 t0.0 |0 2:2 t2.0 t2.1 f1 f0 ");
    ck_assert(!got.torn);
}
END_TEST

START_TEST(a_birth_that_is_anothers_is_not_believed)
{
    start(_i);
    run_eager();
    fake_births.coroutine_of_task = fake_coro_at(0, 0);
    const uintptr_t wrong[] = {fake_task_at(1), fake_future_at(0), fake_task_at(9), 0x7fff0000};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        fake_births.task = wrong[i];
        ck_assert_str_eq(walk(), "t1.0 |1 f2 t0.0 f1 f0 ");
    }
}
END_TEST

/* --- what cannot be read as one piece --- */

START_TEST(a_torn_chain_leaves_the_frames)
{
    start(_i);
    run_task_0();
    fake_task(&world, 1, 2);
    fake_task_awaits(&world, 1, 2, 0);
    fake_coro_awaits(&world, 1, 1, 0x7fff0000); /* awaits nothing that can be */
    ck_assert_str_eq(walk(), "f2 t0.1 t0.0 |0 f1 f0 ");
    ck_assert(got.torn && got.end == FRAMES_COMPLETE);
}
END_TEST

START_TEST(a_chain_that_ends_elsewhere_is_torn)
{
    start(_i);
    run_task_0();
    fake_task(&world, 1, 2);
    fake_task_awaits(&world, 1, 2, 0);
    fake_world_word(&world, fake_task_at(1) + FAKE_IN_ITER, world.target.layout.wrapper_inner, fake_future_at(1));
    ck_assert_str_eq(walk(), "f2 t0.1 t0.0 |0 f1 f0 ");
    ck_assert(got.torn);
    fake_task_runs(&world, 1, 2); /* executes, so it waits for nobody */
    fake_task_waiter(&world, 1, fake_task_at(0));
    ck_assert_str_eq(walk(), "f2 t0.1 t0.0 |0 f1 f0 ");
    ck_assert(got.torn);
    fake_task_is_new(&world, 1);
    fake_task_waiter(&world, 1, fake_task_at(0));
    ck_assert_str_eq(walk(), "f2 t0.1 t0.0 |0 f1 f0 ");
    ck_assert(got.torn);
}
END_TEST

START_TEST(a_task_that_is_done_cannot_run)
{
    start(_i);
    run_task_0();
    fake_future_state(&world, fake_task_at(0), FUTURE_FINISHED);
    ck_assert_str_eq(walk(), "f2 t0.1 t0.0 |0 f1 f0 ");
    ck_assert(got.torn);
}
END_TEST

/* Of what is above a torn one, what was given out before stays. */
START_TEST(the_second_awaiter_is_torn)
{
    start(_i);
    run_task_0();
    fake_task(&world, 1, 1);
    fake_task_awaits(&world, 1, 1, 0);
    fake_task(&world, 2, 2);
    fake_task_awaits(&world, 2, 2, 1);
    fake_coro_awaits(&world, 2, 0, 0);
    ck_assert_str_eq(walk(), "f2 t0.1 t0.0 |0 1:1 t1.0 f1 f0 ");
    ck_assert(got.torn);
}
END_TEST

/* --- circles --- */

/* A task of the circle that waits for a gather of the running task and of the last. */
static void circle(uint32_t length)
{
    uintptr_t gather = fake_world_alloc(&world, 512);
    fake_new_future(&world, gather, FAKE_FUTURE_TYPE_AT, 0);
    for (uint32_t i = 1; i <= length; i++)
        fake_task(&world, i, 1);
    for (uint32_t i = 2; i <= length; i++)
        fake_task_awaits(&world, i, 1, i - 1);
    fake_task_waits(&world, 1, 1, gather);
    fake_wakes(&world, gather, 1, 8);
    uintptr_t at = 0x1000000000ul, cell = fake_cell(&world.target, at, gather);
    static const char *const names[] = {"outer"};
    struct fake code = fake_code_with_variables(&world.target, at + 0x100000, names, "\x80", 1), function = fake_new(at + 0x200000, 256);
    fake_put_word(&code, world.target.layout.code_qualname, fake_str(&world.target, at + 0x300000, "gather.<locals>._done_callback"));
    fake_put_word(&function, world.target.layout.object_type, FUNCTION_TYPE_AT);
    fake_put_word(&function, world.target.layout.function_code, fake_place(&code));
    fake_put_word(&function, world.target.layout.function_closure, fake_tuple(&world.target, at + 0x400000, &cell, 1));
    fake_place(&function);
    fake_world_word(&world, fake_task_at(0), world.target.layout.future_callback0, function.address);
    fake_world_word(&world, fake_task_at(length), world.target.layout.future_callback0, function.address);
}

START_TEST(awaiters_in_a_circle)
{
    start(_i);
    for (uint32_t length = 1; length < 40; length++) {
        stand_in_loop();
        run_task_0();
        circle(length);
        const char *text = walk(), *cut = strchr(text, '@');
        ck_assert_ptr_nonnull(cut);
        ck_assert_str_eq(cut, "@ f1 f0 ");
        ck_assert_int_eq(strncmp(text, "f2 t0.1 t0.0 |0 1:1 t1.0 ", 25), 0);
        ck_assert_uint_le(got.entries, 4 + 2 * (length <= STACKED_PASSED ? length : 3 * length) + 3);
        ck_assert(!got.torn && got.end == FRAMES_COMPLETE);
        for (uint32_t i = 1; i <= length; i++) {
            char chain[32];
            snprintf(chain, sizeof chain, " %u:1 t%u.0 ", i, i);
            ck_assert_ptr_nonnull(strstr(text, chain));
        }
    }
}
END_TEST

/* --- bounds --- */

START_TEST(no_more_chains_than_frames_may_be_read)
{
    start(_i);
    run_task_0();
    for (uint32_t i = 1; i < TASKS; i++) {
        fake_task(&world, i, 3);
        fake_task_awaits(&world, i, 3, i - 1);
    }
    struct stacked_walk walk_of_few;
    struct stacked entry;
    uint32_t inner = 0;
    stacked_begin(&walk_of_few, &world.target, &world.asyncio, FAKE_TSTATE_AT, 30, 1);
    while (stacked_next(&walk_of_few, &entry))
        inner += entry.kind == STACKED_INNER;
    ck_assert_uint_eq(inner, 30);
    ck_assert(!walk_of_few.torn && walk_of_few.frames.end == FRAMES_COMPLETE);
    walk();
    ck_assert(!strchr(got.text, '@') && !got.torn);
    ck_assert_uint_eq(got.entries, 3 + 1 + (TASKS - 1) * 4 + 2);
}
END_TEST

/* A recursion deeper than is walked: whatever was seen of it is the task's. */
START_TEST(a_task_whose_first_frame_is_not_reached)
{
    start(_i);
    run_task_0();
    ck_assert_str_eq(walk_to(2, &world.asyncio, 1), "f2 t0.1 |0 ");
    ck_assert(got.torn && got.end == FRAMES_LIMIT);
    ck_assert_str_eq(walk_to(2, NULL, 1), "f2 t0.1 ");
    fake_world_word(&world, fake_task_at(0), world.target.layout.future_loop, fake_loop_at(1)); /* of another thread's loop */
    ck_assert_str_eq(walk_to(2, &world.asyncio, 1), "f2 t0.1 ");
    fake_world_word(&world, fake_task_at(0), world.target.layout.future_loop, fake_loop_at(0));
    fake_thread_place(&thread, 0);
    ck_assert_str_eq(walk_to(2, &world.asyncio, 1), "f2 t0.1 ");
}
END_TEST

/* --- at random --- */

START_TEST(torn_memory_ends)
{
    uint32_t state = 12345;
    start(_i);
    run_task_0();
    for (uint32_t i = 1; i < 8; i++) {
        fake_task(&world, i, 3);
        fake_task_awaits(&world, i, 3, i / 2);
    }
    unsigned char *whole = calloc(1, world.used);
    memcpy(whole, world.bytes, world.used);
    for (int round = 0; round < 3000; round++) {
        for (int i = 0; i < 12; i++) {
            state = state * 1664525u + 1013904223u;
            size_t to = (state >> 8) % (8 * FAKE_TASK_BYTES / 8), from = (state * 2654435761u >> 8) % (8 * FAKE_TASK_BYTES / 8);
            memcpy(world.bytes + to * 8, whole + from * 8, 8);
        }
        unsigned long before = fake_reads() + fake_refusals();
        walk_with(&world.asyncio, (uint64_t)round);
        ck_assert_uint_lt(fake_reads() + fake_refusals() - before, 2000000u);
        if (round % 8 == 0)
            memcpy(world.bytes, whole, world.used);
    }
    free(whole);
}
END_TEST

Suite *suite_stacked(void)
{
    const TTest *const tests[] = {
        a_thread_without_tasks, a_task_ends_where_its_coroutine_does, without_asyncio_there_are_frames_only,
        a_coroutine_that_is_no_task, a_call_from_c_within_a_task, an_awaiter, awaiters_of_awaiters,
        an_edge_that_does_not_close_is_none, several_awaiters_are_shown_alike, the_same_seed_shows_the_same,
        each_level_has_a_lot_of_its_own, two_ways_are_no_choice, of_very_many_some_are_looked_at,
        an_awaiter_among_very_many_callbacks, an_eager_task_within_its_creator, a_birth_that_is_anothers_is_not_believed,
        a_torn_chain_leaves_the_frames, a_chain_that_ends_elsewhere_is_torn, a_task_that_is_done_cannot_run,
        the_second_awaiter_is_torn, awaiters_in_a_circle, one_that_is_reached_again_has_no_more_chances,
        no_more_chains_than_frames_may_be_read, a_task_whose_first_frame_is_not_reached, torn_memory_ends,
    };
    Suite *suite = suite_create("stacked");
    TCase *versions = tcase_create("each version");
    for (size_t i = 0; i < sizeof tests / sizeof *tests; i++)
        tcase_add_loop_test(versions, tests[i], FIRST_MINOR, AFTER_LAST_MINOR);
    tcase_set_timeout(versions, 60);
    suite_add_tcase(suite, versions);
    return suite;
}
