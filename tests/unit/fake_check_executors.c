/* SPDX-License-Identifier: MIT
 * executors: from a worker's frame to the future that somebody awaits, or to nothing. */
#include "sampler/cpython/executors.h"

#include "sampler/cpython/frames.h"
#include "tests/unit/fake_work.h"

Suite *suite_executors(void);

static struct fake_world world;
static struct fake_thread thread;
static uintptr_t found;

static void start(int minor)
{
    fake_asyncio_start(&world, minor, 2, 1 << 20);
    thread = fake_thread_of(&world);
}

static struct py_frame only_frame(void)
{
    struct frames_walk walk;
    struct py_frame frame;
    fake_thread_place(&thread, 0);
    frames_begin(&walk, &world.target, FAKE_TSTATE_AT, 8);
    ck_assert(frames_next(&walk, &frame));
    return frame;
}

/* With this as self of the thread's only frame. */
static enum executors_found found_with(uintptr_t item)
{
    thread = fake_thread_of(&world);
    fake_call_work(&thread, item);
    struct py_frame frame = only_frame();
    return executors_future(&world.target, &world.asyncio, frame.address, &frame.code, &found);
}

/* With this as the variable `future` of the thread's only frame. */
static enum executors_found anyio_found_with(uintptr_t future)
{
    thread = fake_thread_of(&world);
    fake_call_anyio(&thread, future);
    struct py_frame frame = only_frame();
    return executors_anyio_future(&world.target, &world.asyncio, frame.address, &frame.code, &found);
}

static uintptr_t chained(uintptr_t future)
{
    return fake_work_item(&world.target, fake_work_callbacks(&world.target, fake_work_callback(&world.target, future)));
}

START_TEST(the_future_that_somebody_may_await)
{
    start(_i);
    fake_task(&world, 0, 1);
    ck_assert_int_eq(found_with(chained(fake_future_at(0))), EXECUTORS_FUTURE);
    ck_assert_uint_eq(found, fake_future_at(0));
    fake_future_state(&world, fake_future_at(0), FUTURE_CANCELLED);
    ck_assert_int_eq(found_with(chained(fake_future_at(0))), EXECUTORS_NONE);
    fake_future_state(&world, fake_future_at(0), FUTURE_FINISHED);
    ck_assert_int_eq(found_with(chained(fake_future_at(0))), EXECUTORS_NONE);
}
END_TEST

START_TEST(work_that_no_loop_sent)
{
    const struct py_target *target = &world.target;
    start(_i);
    uintptr_t another = fake_callable_function(target, FAKE_WORK_AT(2), "_chain_future.<locals>._call_check_cancel", "destination", fake_future_at(0));
    ck_assert_int_eq(found_with(fake_work_item(target, fake_work_callbacks(target, another))), EXECUTORS_NONE);
    ck_assert_int_eq(found_with(fake_work_item(target, fake_list(target, FAKE_WORK_AT(4), NULL, 0))), EXECUTORS_NONE);
}
END_TEST

START_TEST(what_cannot_be_told)
{
    const struct py_target *target = &world.target;
    start(_i);
    ck_assert_int_eq(found_with(0), EXECUTORS_TORN); /* self is unbound */
    ck_assert_int_eq(found_with(0x7777000), EXECUTORS_TORN);
    ck_assert_int_eq(found_with(fake_work_object(target, FAKE_WORK_AT(0), "other", FAKE_WORK_AT(1))), EXECUTORS_TORN);
    ck_assert_int_eq(found_with(fake_work_item(target, 0)), EXECUTORS_TORN);
    ck_assert_int_eq(found_with(chained(0)), EXECUTORS_TORN);        /* an empty cell */
    ck_assert_int_eq(found_with(chained(0x7777000)), EXECUTORS_TORN); /* no future */
}
END_TEST

START_TEST(what_an_anyio_worker_runs)
{
    start(_i);
    fake_task(&world, 0, 1);
    ck_assert_int_eq(anyio_found_with(fake_future_at(0)), EXECUTORS_FUTURE);
    ck_assert_uint_eq(found, fake_future_at(0));
    fake_future_state(&world, fake_future_at(0), FUTURE_CANCELLED);
    ck_assert_int_eq(anyio_found_with(fake_future_at(0)), EXECUTORS_NONE);
    fake_future_state(&world, fake_future_at(0), FUTURE_FINISHED); /* anyio 3 keeps it until it is sent the next */
    ck_assert_int_eq(anyio_found_with(fake_future_at(0)), EXECUTORS_NONE);
    ck_assert_int_eq(anyio_found_with(0), EXECUTORS_NONE); /* unbound */
    ck_assert_int_eq(anyio_found_with(0x7777000), EXECUTORS_TORN);
}
END_TEST

/* A function of that name without that variable. */
START_TEST(an_anyio_worker_of_another_shape_cannot_be_told)
{
    start(_i);
    fake_task(&world, 0, 1);
    thread = fake_thread_of(&world);
    fake_call_work(&thread, fake_future_at(0));
    struct py_frame frame = only_frame();
    ck_assert_int_eq(executors_anyio_future(&world.target, &world.asyncio, frame.address, &frame.code, &found), EXECUTORS_TORN);
    ck_assert_uint_eq(found, 0);
}
END_TEST

Suite *suite_executors(void)
{
    const TTest *const tests[] = {the_future_that_somebody_may_await, work_that_no_loop_sent, what_cannot_be_told, what_an_anyio_worker_runs,
                                  an_anyio_worker_of_another_shape_cannot_be_told};
    Suite *suite = suite_create("executors");
    TCase *tcase = tcase_create("each version");
    for (size_t i = 0; i < sizeof tests / sizeof *tests; i++)
        tcase_add_loop_test(tcase, tests[i], FIRST_MINOR, AFTER_LAST_MINOR);
    suite_add_tcase(suite, tcase);
    return suite;
}
