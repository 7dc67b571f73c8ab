/* SPDX-License-Identifier: MIT
 * handlers: tasks that are suspended while they handle an exception, and the tick over all tasks for `exc`. */
#include "sampler/cpython/exceptions.h"
#include "tests/unit/fake_tasks.h"

Suite *suite_handlers(void);

#define VALUE_AT(i) (0x32000000u + 0x10000u * (unsigned)(i))
#define TYPE_AT(i) (0x33000000u + 0x10000u * (unsigned)(i))
#define FLAG_EXCEPTION (1ul << 30)
enum { VALUE_ERROR, KEY_ERROR, NONE, NAMELESS };

static uintptr_t value(int i, uintptr_t type)
{
    struct fake made = fake_new(VALUE_AT(i), 32);
    fake_put_word(&made, world.target.layout.object_type, type);
    return fake_place(&made);
}

static void make_exceptions(void)
{
    const struct layout *layout = &world.target.layout;
    value(VALUE_ERROR, fake_named_type(layout, TYPE_AT(VALUE_ERROR), "ValueError", FLAG_EXCEPTION, OBJECT_TYPE_AT));
    value(KEY_ERROR, fake_named_type(layout, TYPE_AT(KEY_ERROR), "KeyError", FLAG_EXCEPTION, OBJECT_TYPE_AT));
    value(NONE, fake_named_type(layout, TYPE_AT(NONE), "NoneType", 0, OBJECT_TYPE_AT));
    value(NAMELESS, fake_named_type(layout, TYPE_AT(NAMELESS), "", FLAG_EXCEPTION, OBJECT_TYPE_AT));
}

/* What it holds that handles nothing: NULL, and (3.11, 3.12) None once it has handled something. */
static uintptr_t nothing(void)
{
    return world.target.layout.minor < 13 ? VALUE_AT(NONE) : 0;
}

static void handles(uint32_t task, int level, uintptr_t exception)
{
    const struct layout *layout = &world.target.layout;
    fake_world_word(&world, fake_coro_at(task, level), layout->gen_exc_state + layout->exc_value, exception);
}

static void begin_with(int minor, uint32_t count, struct tasks_options options)
{
    exceptions_ask_for_tasks(true);
    markers_begin_window();
    markers_end_keeping();
    options.clock_precise = true;
    start_with(minor, count, options);
    make_exceptions();
}

static void begin(int minor, uint32_t count)
{
    begin_with(minor, count, (struct tasks_options){.depth = DEPTH, .metric = true});
}

/* In `exc`. */
static uint64_t handled(const char *functions)
{
    return time_in(METRIC_EXC, functions);
}

static uint64_t handled_in_all(void)
{
    return profile_total_ns(stacks.profile, METRIC_EXC);
}

START_TEST(one_that_waits_while_it_handles_one)
{
    begin(_i, 3);
    handles(0, 0, VALUE_AT(VALUE_ERROR));
    handles(1, 0, nothing());
    tick(10 * MS);
    ck_assert_uint_eq(handled("loop;t0.0;[exception ValueError]"), 10 * MS);
    ck_assert_uint_eq(handled_in_all(), 10 * MS);
    ck_assert_uint_eq(time_of("loop;t0.0"), 10 * MS); /* in `task` all is as it was */
    ck_assert_uint_eq(total(), 30 * MS);
    handles(0, 0, nothing());
    tick(10 * MS);
    tick(10 * MS);
    ck_assert_uint_eq(handled_in_all(), 15 * MS); /* half of the tick in which it ended */
    ck_assert_uint_eq(total(), 90 * MS);
    stop();
}
END_TEST

START_TEST(the_innermost_coroutine_wins)
{
    begin(_i, 2);
    for (uint32_t i = 0; i < 2; i++)
        fake_task(&world, i, 3);
    handles(0, 0, VALUE_AT(VALUE_ERROR));
    handles(0, 1, VALUE_AT(KEY_ERROR));
    handles(0, 2, nothing());
    handles(1, 0, VALUE_AT(VALUE_ERROR));
    tick(10 * MS);
    ck_assert_uint_eq(handled("loop;t0.0;t0.1;t0.2;[exception KeyError]"), 10 * MS);
    ck_assert_uint_eq(handled("loop;t1.0;t1.1;t1.2;[exception ValueError]"), 10 * MS);
    ck_assert_uint_eq(handled_in_all(), 20 * MS);
    stop();
}
END_TEST

/* The same objects at the same addresses: all but the type is as it was. */
START_TEST(another_type_at_the_same_place)
{
    begin(_i, 1);
    handles(0, 0, VALUE_AT(VALUE_ERROR));
    tick(10 * MS);
    tick(10 * MS);
    value(VALUE_ERROR, TYPE_AT(KEY_ERROR));
    tick(10 * MS);
    ck_assert_uint_eq(handled("loop;t0.0;[exception ValueError]"), 25 * MS);
    ck_assert_uint_eq(handled("loop;t0.0;[exception KeyError]"), 5 * MS);
    ck_assert_uint_eq(time_of("loop;t0.0"), 30 * MS);
    stop();
}
END_TEST

START_TEST(while_nothing_runs_it_goes_on)
{
    begin(_i, 2);
    handles(0, 0, VALUE_AT(VALUE_ERROR));
    tick(10 * MS);
    still_tick(10 * MS, true);
    still_tick(10 * MS, true);
    ck_assert_uint_eq(window.counters.task_repeats, 2);
    ck_assert_uint_eq(handled("loop;t0.0;[exception ValueError]"), 30 * MS);
    ck_assert_uint_eq(total(), 60 * MS);
    stop();
}
END_TEST

/* Alike but for what they handle they rest in groups of their own. */
START_TEST(those_at_rest_are_told_apart)
{
    kinds = 1;
    exceptions_ask_for_tasks(true);
    markers_begin_window();
    markers_end_keeping();
    start_hooked(_i, 30);
    kinds = 0;
    for (uint32_t i = 0; i < FAKE_DEATHS; i++)
        fake_deaths[i] = 7;
    fake_births.counted = FAKE_FUTURE_TYPE_AT;
    make_exceptions();
    for (uint32_t i = 0; i < 20; i++)
        handles(i, 0, VALUE_AT(i % 2 ? VALUE_ERROR : KEY_ERROR));
    for (int i = 0; i < 4; i++)
        tick(10 * MS);
    ck_assert_uint_eq(handled("loop;t0.0;[exception ValueError]"), 10 * 40 * MS);
    ck_assert_uint_eq(handled("loop;t0.0;[exception KeyError]"), 10 * 40 * MS);
    ck_assert_uint_eq(total(), 30 * 40 * MS);
    markers_begin_window();
    next_window();
    markers_end_keeping();
    tick(10 * MS);
    ck_assert_uint_eq(handled("loop;t0.0;[exception ValueError]"), 10 * 10 * MS);
    ck_assert_uint_eq(handled("loop;t0.0;[exception KeyError]"), 10 * 10 * MS);
    ck_assert_uint_eq(total(), 30 * 10 * MS);
    stop();
}
END_TEST

/* It handles it, whom it waits for does not: its time is in `exc` on its own stack, in `task` on theirs. */
START_TEST(one_that_awaits_other_tasks)
{
    begin(_i, 3);
    fake_task_awaits(&world, 0, 1, 1);
    fake_task_awaits(&world, 1, 1, 2);
    handles(1, 0, VALUE_AT(VALUE_ERROR));
    tick(10 * MS);
    ck_assert_uint_eq(handled("loop;t0.0;t1.0;[exception ValueError]"), 10 * MS);
    ck_assert_uint_eq(handled_in_all(), 10 * MS);
    ck_assert_uint_eq(time_of("loop;t0.0;t1.0;t2.0"), 10 * MS);
    ck_assert_uint_eq(total(), 10 * MS);
    still_tick(10 * MS, true);
    ck_assert_uint_eq(handled_in_all(), 20 * MS);
    fake_task_is_done(&world, 2);
    fake_task_waits(&world, 1, 1, fake_future_at(1));
    tick(10 * MS); /* a leaf now, and handles it still */
    ck_assert_uint_eq(handled_in_all(), 30 * MS);
    ck_assert_uint_eq(time_of("loop;t0.0;t1.0"), 5 * MS);
    stop();
}
END_TEST

/* Its reading came late while it was a leaf: that time is added once, with the stack that it had. */
START_TEST(one_that_came_late_and_awaits_another_now)
{
    begin(_i, 3);
    handles(0, 0, VALUE_AT(VALUE_ERROR));
    fake_task_awaits(&world, 1, 1, 0);
    fake_world_word(&world, fake_task_at(1) + FAKE_IN_ITER, world.target.layout.wrapper_inner, fake_future_at(1));
    tick(10 * MS);
    ck_assert_uint_eq(window.counters.task_postponed, 2);
    fake_task_waits(&world, 1, 1, fake_task_at(0));
    fake_task_awaits(&world, 0, 1, 2);
    tick(10 * MS);
    ck_assert_uint_eq(handled_in_all(), 20 * MS);
    stop();
}
END_TEST

static uint32_t until_change; /* reads; 0: never */

static void handle_another(uintptr_t address, size_t length)
{
    uintptr_t at = fake_coro_at(0, 0) + (uintptr_t)(world.target.layout.gen_exc_state + world.target.layout.exc_value);
    if (until_change && address <= at && address + length > at && !--until_change)
        handles(0, 0, VALUE_AT(KEY_ERROR));
}

/* It goes on to another exception while it is read, at whichever read: its time is there, or its loss is counted as one of
 * what tasks handle, not as a tick of threads that was lost. */
START_TEST(one_that_awaits_another_and_changes)
{
    uint32_t lost = 0;
    for (uint32_t reads = 1; reads < 12; reads++) {
        begin(_i, 2);
        fake_task_awaits(&world, 0, 1, 1);
        handles(0, 0, VALUE_AT(VALUE_ERROR));
        until_change = reads;
        fake_on_read(handle_another);
        tick(10 * MS);
        until_change = 0;
        bool counted = window.counters.limits[LIMIT_exceptions] == 1;
        ck_assert_uint_eq(handled_in_all(), counted ? 0 : 10 * MS);
        ck_assert_uint_eq(window.counters.dropped[DROP_torn], 0);
        lost += counted;
        stop();
    }
    ck_assert_uint_ge(lost, 1);
}
END_TEST

START_TEST(each_of_two_that_await_each_other)
{
    begin(_i, 3);
    fake_task_awaits(&world, 0, 1, 1);
    fake_task_awaits(&world, 1, 1, 0);
    handles(0, 0, VALUE_AT(VALUE_ERROR));
    handles(1, 0, VALUE_AT(KEY_ERROR));
    tick(10 * MS);
    ck_assert_uint_eq(handled_in_all(), 20 * MS);
    ck_assert_uint_eq(total(), 20 * MS);
    stop();
}
END_TEST

START_TEST(one_that_is_ready)
{
    begin(_i, 1);
    handles(0, 0, VALUE_AT(VALUE_ERROR));
    fake_task_waiter(&world, 0, 0);
    tick(10 * MS);
    ck_assert_uint_eq(handled("loop;t0.0;[ready];[exception ValueError]"), 10 * MS);
    stop();
}
END_TEST

/* Its thread says what it handles. */
START_TEST(one_that_runs_is_its_threads)
{
    begin(_i, 1);
    handles(0, 0, VALUE_AT(VALUE_ERROR));
    fake_task_runs(&world, 0, 1);
    tick(10 * MS);
    ck_assert_uint_eq(handled_in_all(), 0);
    stop();
}
END_TEST

/* The coroutine's word was another's for a moment: nothing is said of the task until it can be read. */
START_TEST(what_is_no_exception)
{
    begin(_i, 1);
    handles(0, 0, fake_future_at(0));
    tick(10 * MS);
    ck_assert_uint_eq(handled_in_all() + total(), 0);
    ck_assert_uint_eq(window.counters.task_postponed, 1);
    handles(0, 0, VALUE_AT(VALUE_ERROR));
    tick(10 * MS);
    ck_assert_uint_eq(handled("loop;t0.0;[exception ValueError]"), 20 * MS);
    ck_assert_uint_eq(total(), 20 * MS);
    stop();
}
END_TEST

START_TEST(a_type_whose_name_cannot_be_read)
{
    struct counters counters = {0};
    begin(_i, 1);
    handles(0, 0, VALUE_AT(NAMELESS));
    tick(10 * MS);
    ck_assert_uint_eq(handled("loop;t0.0;[exception ~]"), 10 * MS);
    markers_count(&counters);
    ck_assert_uint_ge(counters.limits[LIMIT_exception_types], 1);
    ck_assert_uint_eq(counters.limits[LIMIT_task_names] + counters.limits[LIMIT_labels], 0);
    stop();
}
END_TEST

START_TEST(without_the_metric_task)
{
    begin_with(_i, 2, (struct tasks_options){.depth = DEPTH});
    handles(0, 0, VALUE_AT(VALUE_ERROR));
    tick(10 * MS);
    still_tick(10 * MS, true);
    ck_assert_uint_eq(handled("loop;t0.0;[exception ValueError]"), 20 * MS);
    ck_assert_uint_eq(total(), 0);
    stop();
}
END_TEST

START_TEST(nobody_asked)
{
    begin(_i, 1);
    exceptions_ask_for_tasks(false);
    handles(0, 0, VALUE_AT(VALUE_ERROR));
    tick(10 * MS);
    ck_assert_uint_eq(handled_in_all(), 0);
    ck_assert_uint_eq(time_of("loop;t0.0"), 10 * MS);
    stop();
}
END_TEST

Suite *suite_handlers(void)
{
    const TTest *const each[] = {
        one_that_waits_while_it_handles_one, the_innermost_coroutine_wins, another_type_at_the_same_place, while_nothing_runs_it_goes_on,
        those_at_rest_are_told_apart, one_that_awaits_other_tasks,
        one_that_came_late_and_awaits_another_now, one_that_awaits_another_and_changes, each_of_two_that_await_each_other, one_that_is_ready,
        one_that_runs_is_its_threads, what_is_no_exception, a_type_whose_name_cannot_be_read, without_the_metric_task, nobody_asked,
    };
    Suite *suite = suite_create("handlers");
    TCase *tcase = tcase_create("each version");
    for (size_t i = 0; i < sizeof each / sizeof *each; i++)
        tcase_add_loop_test(tcase, each[i], FIRST_MINOR, AFTER_LAST_MINOR);
    suite_add_tcase(suite, tcase);
    return suite;
}
