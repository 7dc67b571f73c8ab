/* SPDX-License-Identifier: MIT
 * tasks: the tick over all tasks: the law of its sums, and each reason for which time
 * is added later, elsewhere or not at all. */
#include "tests/unit/fake_tasks.h"

#include "sampler/lineage.h"

Suite *suite_tasks(void);

/* --- the law --- */

START_TEST(a_leaf_has_all_its_time)
{
    start(_i, 1);
    tick(10 * MS);
    tick(7 * MS);
    ck_assert_uint_eq(time_of("loop;t0.0"), 17 * MS);
    ck_assert_uint_eq(total(), 17 * MS);
    ck_assert_uint_eq(window.counters.samples, 2);
    ck_assert_uint_eq(window.counters.tasks_peak, 1);
    stop();
}
END_TEST

enum { LAW_TASKS = 40, LAW_TICKS = 60 };
enum state { LEAF, READY, NEW, RUNS, AWAITS, STATES };

/* Task 0 is awaited by those that await. */
static bool change(uint32_t task)
{
    fake_task(&world, task, 1);
    switch (chance(STATES)) {
    case READY:
        fake_task_waiter(&world, task, 0);
        return true;
    case NEW:
        fake_task_is_new(&world, task);
        return true;
    case RUNS:
        fake_task_runs(&world, task, 1);
        return false;
    case AWAITS:
        fake_task_awaits(&world, task, 1, 0);
        return false;
    default:
        return true;
    }
}

/* Tasks in changing states: each has half the time before a tick at which it was a leaf, and half that after it. */
START_TEST(sums_are_the_time_as_a_leaf)
{
    uint64_t expected[LAW_TASKS] = {0}, sum = 0;
    bool was[LAW_TASKS], leaf[LAW_TASKS];
    start(_i, LAW_TASKS);
    seed = 7;
    for (uint32_t i = 0; i < LAW_TASKS; i++)
        leaf[i] = true;
    for (int turn = 0; turn < LAW_TICKS; turn++) {
        uint64_t ns = 1 + chance(20 * MS), first = turn ? ns / 2 : 0;
        memcpy(was, leaf, sizeof was);
        fake_no_callbacks(&world, fake_task_at(0));
        world.used = world.tasks * FAKE_TASK_BYTES; /* lists of before */
        memset(world.bytes + world.used, 0, world.size - world.used);
        for (uint32_t i = 1; i < LAW_TASKS; i++)
            leaf[i] = change(i);
        tick(ns);
        for (uint32_t i = 0; i < LAW_TASKS; i++) {
            uint64_t of_both = (was[i] ? first : 0) + (leaf[i] ? ns - first : 0);
            expected[i] += of_both;
            sum += of_both;
        }
    }
    enum { ROUNDING = 2 * LAW_TICKS * LAW_TASKS }; /* shares are whole nanoseconds, in both halves; only task 0 is shared */
    for (uint32_t i = 1; i < LAW_TASKS; i++)
        ck_assert_uint_eq(time_of_task(i), expected[i]);
    ck_assert_uint_le(time_of_task(0), expected[0]);
    ck_assert_uint_ge(time_of_task(0) + ROUNDING, expected[0]);
    ck_assert_uint_le(total(), sum);
    ck_assert_uint_ge(total() + ROUNDING, sum);
    ck_assert_uint_eq(window.counters.task_postponed, 0);
    stop();
}
END_TEST

/* Of one that changes its stack, one that is born, ends, runs, goes on as it was, and begins to await another. */
/* 0 to 4 wait; then 0 is ready, 3 awaited by 2, 1 runs, and 4 is done. */
START_TEST(a_loop_has_its_tasks_counted)
{
    const uint64_t ns = 10 * MS, first = ns / 2, second = ns - first;
    start(_i, 5);
    threads[0].tid = 77;
    tick(ns); /* of half of it nothing is known */
    const struct loop_time *loop = &window.loops[0];
    ck_assert_uint_eq(window.loops_count, 1);
    ck_assert_uint_eq(loop->thread, 77);
    ck_assert_uint_eq(loop->counted_ns, second);
    ck_assert_uint_eq(loop->pending_ns, 5 * second);
    ck_assert_uint_eq(loop->ready_ns, 0);
    fake_task_waiter(&world, 0, 0);
    fake_task_runs(&world, 1, 1);
    fake_task_awaits(&world, 2, 1, 3);
    fake_task_is_done(&world, 4);
    tick(ns);
    ck_assert_uint_eq(loop->counted_ns, second + ns);
    ck_assert_uint_eq(loop->pending_ns, 5 * second + 5 * first + 3 * second);
    ck_assert_uint_eq(loop->ready_ns, second);
    ck_assert_uint_eq(loop->pending_peak, 5);
    ck_assert_uint_eq(loop->ready_peak, 1);
    still_tick(ns, false); /* nothing ran: as they were */
    still_tick(ns, false);
    ck_assert_uint_eq(loop->counted_ns, second + 3 * ns);
    ck_assert_uint_eq(loop->pending_ns, 5 * second + 5 * first + 3 * second + 6 * ns);
    ck_assert_uint_eq(loop->ready_ns, second + 2 * ns);
    stop();
}
END_TEST

START_TEST(half_as_it_was_half_as_it_is)
{
    const uint64_t ns = 10 * MS + 1, first = ns / 2, second = ns - first;
    start(_i, 7);
    fake_task_is_done(&world, 1);
    tick(20 * MS);
    ck_assert_uint_eq(total(), 6 * 20 * MS);
    fake_task_waits(&world, 0, 2, fake_future_at(0));
    fake_task(&world, 1, 1);
    fake_task_is_done(&world, 2);
    fake_task_runs(&world, 3, 1);
    fake_task_awaits(&world, 5, 1, 6);
    tick(ns);
    ck_assert_uint_eq(time_of("loop;t0.0"), 20 * MS + first);
    ck_assert_uint_eq(time_of("loop;t0.0;t0.1"), second);
    ck_assert_uint_eq(time_of("loop;t1.0"), second);
    ck_assert_uint_eq(time_of("loop;t2.0"), 20 * MS + first);
    ck_assert_uint_eq(time_of("loop;t3.0"), 20 * MS + first);
    ck_assert_uint_eq(time_of("loop;t4.0"), 20 * MS + ns);
    ck_assert_uint_eq(time_of("loop;t5.0"), 20 * MS + first);
    ck_assert_uint_eq(time_of("loop;t6.0"), 20 * MS + first);
    ck_assert_uint_eq(time_of("loop;t5.0;t6.0"), second);
    ck_assert_uint_eq(total(), 6 * 20 * MS + 6 * first + 4 * second);
    fake_task(&world, 3, 1);
    tick(ns);
    ck_assert_uint_eq(time_of("loop;t1.0"), second + ns);
    ck_assert_uint_eq(time_of("loop;t2.0"), 20 * MS + first);
    ck_assert_uint_eq(time_of("loop;t3.0"), 20 * MS + first + second);
    ck_assert_uint_eq(total(), 6 * 20 * MS + 6 * first + 4 * second + 4 * first + 5 * second);
    stop();
}
END_TEST

/* Those whose awaiters come and go; a circle that is opened. */
START_TEST(shares_are_halved_too)
{
    start(_i, 5);
    fake_task_awaits(&world, 1, 1, 0);
    fake_task_awaits(&world, 3, 1, 4);
    fake_task_awaits(&world, 4, 1, 3);
    tick(10 * MS);
    ck_assert_uint_eq(total(), 30 * MS);
    fake_task_awaits(&world, 2, 1, 0);
    fake_task_waits(&world, 4, 1, fake_future_at(4));
    tick(20 * MS);
    ck_assert_uint_eq(time_of("loop;t1.0;t0.0"), 10 * MS + 10 * MS + 5 * MS);
    ck_assert_uint_eq(time_of("loop;t2.0;t0.0"), 5 * MS);
    ck_assert_uint_eq(time_of("loop;t2.0"), 20 * MS);
    ck_assert_uint_eq(time_of("loop;[cycle];t3.0;t4.0"), 20 * MS);
    ck_assert_uint_eq(time_of("loop;t3.0;t4.0"), 10 * MS);
    ck_assert_uint_eq(total(), 30 * MS + 30 * MS + 20 * MS);
    stop();
}
END_TEST

/* Those that are not remembered from one tick to the next: the second has all. */
START_TEST(too_many_stacks_to_be_remembered)
{
    enum { AWAITERS = LINEAGE_BASES, LEAVES = 1030, LISTED = SET_SLOTS / 2 }; /* each leaf stands on each awaiter */
    start(_i, AWAITERS + LEAVES);
    for (uint32_t i = 1; i < AWAITERS; i++)
        fake_task_waits(&world, i, 1, fake_future_at(0));
    for (uint32_t i = 1; i < AWAITERS; i++)
        fake_wakes(&world, fake_future_at(0), i, AWAITERS);
    uintptr_t callback = fake_gather_callback(&world, 0, fake_future_at(0));
    for (uint32_t i = AWAITERS; i < AWAITERS + LEAVES; i++)
        fake_world_word(&world, fake_task_at(i), world.target.layout.future_callback0, callback);
    for (uint32_t i = LISTED; i < AWAITERS + LEAVES; i++)
        fake_birth(fake_birth_of(fake_task_at(i), 0, 0));
    tick(64 * MS);
    ck_assert_uint_eq(total(), (uint64_t)LEAVES * 64 * MS);
    fake_task_is_done(&world, AWAITERS);
    fake_task_is_done(&world, AWAITERS + 1);
    tick(64 * MS);
    ck_assert_uint_eq(total(), (uint64_t)LEAVES * 64 * MS + (LEAVES - 2) * 64 * MS);
    stop();
}
END_TEST

START_TEST(awaiters_share_the_time)
{
    start(_i, 3);
    fake_task_awaits(&world, 1, 2, 0);
    fake_task_awaits(&world, 2, 1, 0);
    tick(10 * MS);
    ck_assert_uint_eq(time_of("loop;t1.0;t1.1;t0.0"), 5 * MS);
    ck_assert_uint_eq(time_of("loop;t2.0;t0.0"), 5 * MS);
    ck_assert_uint_eq(total(), 10 * MS);
    stop();
}
END_TEST

START_TEST(ready_is_said)
{
    start(_i, 3);
    fake_task_is_new(&world, 0);
    fake_task_waiter(&world, 1, 0);
    fake_future_state(&world, fake_future_at(2), FUTURE_FINISHED);
    tick(10 * MS);
    ck_assert_uint_eq(time_of("loop;t0.0;[ready]"), 10 * MS);
    ck_assert_uint_eq(time_of("loop;t1.0;[ready]"), 10 * MS);
    ck_assert_uint_eq(time_of("loop;t2.0;[ready]"), 10 * MS);
    fake_future_state(&world, fake_future_at(2), FUTURE_PENDING);
    tick(10 * MS);
    ck_assert_uint_eq(time_of("loop;t2.0;[ready]"), 15 * MS);
    ck_assert_uint_eq(time_of("loop;t2.0"), 5 * MS);
    ck_assert_uint_eq(time_of("loop;t1.0;[ready]"), 20 * MS);
    stop();
}
END_TEST

START_TEST(ends_and_begins_at_the_same_address)
{
    start(_i, 2);
    tick(10 * MS);
    fake_task_is_done(&world, 0);
    tick(10 * MS);
    ck_assert_uint_eq(time_of("loop;t0.0"), 15 * MS);
    fake_task(&world, 0, 2);
    tick(10 * MS);
    ck_assert_uint_eq(time_of("loop;t0.0"), 15 * MS);
    ck_assert_uint_eq(time_of("loop;t0.0;t0.1"), 5 * MS);
    ck_assert_uint_eq(time_of("loop;t1.0"), 30 * MS);
    stop();
}
END_TEST

START_TEST(a_stack_that_is_too_deep_loses_its_root)
{
    start_with(_i, 4, (struct tasks_options){.depth = 4, .metric = true});
    for (uint32_t i = 0; i < 3; i++)
        fake_task_awaits(&world, i, 1, i + 1);
    tick(10 * MS);
    ck_assert_uint_eq(time_of("[truncated 1];t0.0;t1.0;t2.0;t3.0"), 10 * MS);
    fake_task_awaits(&world, 0, 3, 1);
    fake_task_waits(&world, 3, 3, fake_future_at(3));
    tick(10 * MS);
    ck_assert_uint_eq(time_of("[truncated 1];t0.0;t1.0;t2.0;t3.0"), 15 * MS);
    ck_assert_uint_eq(time_of("[truncated 5];t2.0;t3.0;t3.1;t3.2"), 5 * MS);
    stop();
}
END_TEST

START_TEST(a_marker_is_not_cut)
{
    start_with(_i, 4, (struct tasks_options){.depth = 4, .metric = true});
    for (uint32_t i = 0; i < 3; i++)
        fake_task_awaits(&world, i, 1, i + 1);
    threads[0].driver = stacks_push_marker(&stacks, stacks_thread_marker(&stacks, "[thread a]", 10), "loop");
    tick(10 * MS);
    ck_assert_uint_eq(time_of("[thread a];[truncated 1];t0.0;t1.0;t2.0;t3.0"), 10 * MS);
    fake_task_is_done(&world, 3);
    fake_task_waits(&world, 2, 1, fake_future_at(2));
    tick(10 * MS);
    ck_assert_uint_eq(time_of("[thread a];loop;t0.0;t1.0;t2.0"), 5 * MS); /* no deeper than without */
    stop();
}
END_TEST

/* --- loops --- */

START_TEST(a_loop_that_does_not_run)
{
    start(_i, 2);
    fake_loop(&world, 1);
    fake_world_word(&world, fake_task_at(1), world.target.layout.future_loop, fake_loop_at(1));
    tick(10 * MS);
    ck_assert_uint_eq(total(), 10 * MS);
    ck_assert_uint_eq(window.counters.task_postponed, 0);
    thread_runs(0, fake_loop_at(1));
    tick(10 * MS);
    ck_assert_uint_eq(time_of("loop;t0.0"), 15 * MS);
    ck_assert_uint_eq(time_of("loop;t1.0"), 5 * MS); /* not what was before it ran */
    thread_runs(0, 0);
    tick(10 * MS);
    ck_assert_uint_eq(time_of("loop;t0.0"), 15 * MS);
    ck_assert_uint_eq(time_of("loop;t1.0"), 10 * MS);
    tick(10 * MS);
    ck_assert_uint_eq(total(), 25 * MS);
    stop();
}
END_TEST

START_TEST(an_unknown_driver_is_waited_for)
{
    start(_i, 2);
    threads[0].driver = PROFILE_ROOT;
    tick(10 * MS);
    still_tick(10 * MS, true);
    ck_assert_uint_eq(total(), 0);
    threads[0].driver = driver_stack();
    still_tick(10 * MS, true); /* not taken for a repetition */
    ck_assert_uint_eq(time_of("loop;t0.0"), 30 * MS);
    ck_assert_uint_eq(time_of("loop;t1.0"), 30 * MS);
    threads[0].driver = PROFILE_ROOT; /* what is known stays */
    tick(10 * MS);
    ck_assert_uint_eq(time_of("loop;t0.0"), 40 * MS);
    stop();
}
END_TEST

START_TEST(a_driver_that_is_not_sure)
{
    start(_i, 1);
    profile_stack whole = stacks_push_marker(&stacks, driver_stack(), "work");
    threads[0].driver = whole;
    threads[0].driver_sure = false;
    tick(10 * MS);
    ck_assert_uint_eq(total(), 0); /* it does not stand in it */
    threads[0].stands = true;
    tick(10 * MS);
    ck_assert_uint_eq(time_of("loop;work;t0.0"), 20 * MS);
    threads[0].driver = driver_stack();
    threads[0].driver_sure = true;
    tick(10 * MS);
    ck_assert_uint_eq(time_of("loop;work;t0.0"), 25 * MS);
    ck_assert_uint_eq(time_of("loop;t0.0"), 5 * MS);
    threads[0].driver = whole;
    threads[0].driver_sure = false;
    tick(10 * MS);
    ck_assert_uint_eq(time_of("loop;work;t0.0"), 25 * MS);
    ck_assert_uint_eq(time_of("loop;t0.0"), 15 * MS);
    stop();
}
END_TEST

START_TEST(two_loops_in_two_threads)
{
    start(_i, 2);
    fake_loop(&world, 1);
    fake_world_word(&world, fake_task_at(1), world.target.layout.future_loop, fake_loop_at(1));
    thread_runs(1, fake_loop_at(1));
    threads[1] = threads[0];
    threads[1].tstate = TSTATE_AT(1);
    threads[1].driver = stacks_push_marker(&stacks, PROFILE_ROOT, "other");
    thread_count = 2;
    tick(10 * MS);
    ck_assert_uint_eq(time_of("loop;t0.0"), 10 * MS);
    ck_assert_uint_eq(time_of("other;t1.0"), 10 * MS);
    stop();
}
END_TEST

/* --- while nothing runs --- */

static void make_a_few(void)
{
    fake_task_awaits(&world, 1, 2, 0);
    fake_task_awaits(&world, 2, 1, 0);
    fake_task_is_new(&world, 3);
    fake_task_awaits(&world, 4, 1, 5);
    fake_task_awaits(&world, 5, 1, 4);
}

START_TEST(repeated_is_as_read)
{
    static const char *const functions[] = {"loop;t1.0;t1.1;t0.0", "loop;t2.0;t0.0", "loop;t3.0;[ready]", "loop;t6.0", "loop;[cycle];t4.0;t5.0"};
    enum { STACKS = 5 };
    uint64_t times[STACKS];
    start(_i, 7);
    make_a_few();
    for (int i = 0; i < 10; i++)
        tick(10 * MS);
    uint64_t sum = total(), samples = window.counters.samples, reads = window.counters.task_reads;
    ck_assert_uint_eq(sum, 10 * 4 * 10 * MS);
    for (int i = 0; i < STACKS; i++) {
        times[i] = time_of(functions[i]);
        ck_assert_uint_gt(times[i], 0);
    }
    for (int i = 0; i < 10; i++)
        still_tick(10 * MS, i % 2);
    ck_assert_uint_eq(window.counters.task_reads, reads);
    ck_assert_uint_eq(window.counters.task_repeats, 10);
    ck_assert_uint_eq(window.counters.samples, 2 * samples);
    for (int i = 0; i < STACKS; i++)
        ck_assert_uint_eq(time_of(functions[i]), 2 * times[i]);
    ck_assert_uint_eq(total(), 2 * sum);
    stop();
}
END_TEST

/* Ticks at rest are as ticks that repeat. */
START_TEST(rest_is_as_repeated)
{
    start(_i, 7);
    make_a_few();
    tick(10 * MS);
    ck_assert(!tasks_are_at_rest(tasks)); /* it was read */
    still_tick(10 * MS, false);
    ck_assert(tasks_are_at_rest(tasks));
    uint64_t sum = total(), samples = window.counters.samples, reads = window.counters.task_reads;
    for (int i = 0; i < 3; i++) {
        now += 10 * MS;
        tasks_rest(tasks, &window, now);
    }
    ck_assert_uint_eq(total(), sum / 2 * 5);
    ck_assert_uint_eq(window.counters.samples, samples / 2 * 5);
    ck_assert_uint_eq(window.counters.task_repeats, 4);
    ck_assert_uint_eq(window.counters.task_reads, reads);
    still_tick(10 * MS, false);
    ck_assert_uint_eq(total(), sum / 2 * 6);
    tasks_forget_stacks(tasks);
    ck_assert(!tasks_are_at_rest(tasks));
    stop();
}
END_TEST

/* Two whose stacks are one, and stand beside each other. */
START_TEST(equal_neighbours_are_repeated_both)
{
    const struct layout *layout;
    start(_i, 2);
    layout = &world.target.layout;
    uintptr_t frame = fake_coro_at(1, 0) + (uintptr_t)layout->gen_frame, code = fake_task_at(0) + FAKE_IN_CODE;
    fake_world_word(&world, frame, layout->frame_executable, code);
    fake_world_word(&world, frame, layout->frame_instr, code + (uintptr_t)layout->code_adaptive + FAKE_AT_AWAIT);
    tick(10 * MS);
    ck_assert_uint_eq(time_of("loop;t0.0"), 20 * MS);
    still_tick(10 * MS, true);
    ck_assert_uint_eq(time_of("loop;t0.0"), 40 * MS);
    stop();
}
END_TEST

START_TEST(what_runs_is_not_repeated)
{
    start(_i, 1);
    tick(10 * MS);
    fake_task_waits(&world, 0, 2, fake_future_at(0));
    tick(10 * MS);
    ck_assert_uint_eq(time_of("loop;t0.0"), 15 * MS);
    ck_assert_uint_eq(time_of("loop;t0.0;t0.1"), 5 * MS);
    fake_task_waits(&world, 0, 3, fake_future_at(0));
    threads[1] = threads[0]; /* another thread, which runs no loop */
    threads[1].tstate = TSTATE_AT(1);
    threads[1].cpu = 0;
    thread_runs(1, 0);
    thread_count = 2;
    still_tick(10 * MS, true);
    ck_assert_uint_eq(time_of("loop;t0.0;t0.1"), 10 * MS);
    ck_assert_uint_eq(time_of("loop;t0.0;t0.1;t0.2"), 5 * MS);
    stop();
}
END_TEST

START_TEST(coarse_clocks_prove_nothing)
{
    start_with(_i, 1, (struct tasks_options){.depth = DEPTH, .metric = true});
    tick(10 * MS);
    fake_task_waits(&world, 0, 2, fake_future_at(0));
    still_tick(10 * MS, true);
    ck_assert_uint_eq(time_of("loop;t0.0"), 15 * MS);
    ck_assert_uint_eq(time_of("loop;t0.0;t0.1"), 5 * MS);
    ck_assert_uint_eq(window.counters.task_repeats, 0);
    stop();
}
END_TEST

START_TEST(a_birth_ends_repetition)
{
    start_hooked(_i, 2);
    fake_world_word(&world, fake_task_at(1), world.target.layout.object_type, 0);
    tick(10 * MS);
    fake_task(&world, 1, 1);
    fake_birth(fake_birth_of(fake_task_at(1), 0, 0));
    still_tick(10 * MS, true);
    ck_assert_uint_eq(time_of("loop;t0.0"), 20 * MS);
    ck_assert_uint_eq(time_of("loop;t1.0"), 5 * MS);
    stop();
}
END_TEST

/* The halves are of the time since the last repetition. */
START_TEST(what_goes_on_after_repetitions)
{
    start(_i, 1);
    tick(10 * MS);
    still_tick(10 * MS, true);
    still_tick(10 * MS, true);
    ck_assert_uint_eq(window.counters.task_repeats, 2);
    fake_task_waits(&world, 0, 2, fake_future_at(0));
    tick(10 * MS);
    ck_assert_uint_eq(time_of("loop;t0.0"), 35 * MS);
    ck_assert_uint_eq(time_of("loop;t0.0;t0.1"), 5 * MS);
    stop();
}
END_TEST

/* --- windows --- */

START_TEST(a_window_ends)
{
    start(_i, 7);
    make_a_few();
    tick(10 * MS);
    still_tick(10 * MS, true);
    ck_assert_uint_eq(total(), 80 * MS);
    next_window();
    stacks_push_marker(&stacks, PROFILE_ROOT, "something else"); /* nodes are numbered otherwise */
    still_tick(5 * MS, true);
    ck_assert_uint_eq(total(), 20 * MS);
    ck_assert_uint_eq(time_of("loop;t6.0"), 5 * MS);
    ck_assert_uint_eq(time_of("loop;t1.0;t1.1;t0.0"), 5 * MS / 2);
    ck_assert_uint_eq(time_of("loop;[cycle];t4.0;t5.0"), 5 * MS);
    stop();
}
END_TEST

/* What the window before it ended with is no stack of this one. */
START_TEST(a_window_begins_with_what_is_seen)
{
    start(_i, 2);
    tick(10 * MS);
    next_window();
    fake_task_waits(&world, 0, 2, fake_future_at(0));
    fake_task_is_done(&world, 1);
    tick(10 * MS);
    ck_assert_uint_eq(time_of("loop;t0.0;t0.1"), 10 * MS);
    ck_assert_uint_eq(total(), 10 * MS);
    fake_task_waits(&world, 0, 3, fake_future_at(0));
    tick(10 * MS);
    ck_assert_uint_eq(time_of("loop;t0.0;t0.1"), 15 * MS);
    ck_assert_uint_eq(total(), 20 * MS);
    stop();
}
END_TEST

START_TEST(a_window_begins_without_its_driver)
{
    start(_i, 1);
    tick(10 * MS);
    next_window();
    threads[0].driver = PROFILE_ROOT;
    tick(10 * MS);
    tick(10 * MS);
    ck_assert_uint_eq(total(), 0);
    threads[0].driver = driver_stack();
    tick(10 * MS);
    ck_assert_uint_eq(time_of("loop;t0.0"), 30 * MS);
    stop();
}
END_TEST

/* --- the share of a core --- */

START_TEST(one_that_comes_too_early_does_nothing)
{
    start(_i, LAW_TASKS);
    tick(10 * MS);
    threads[0].cpu++;
    still_tick(10 * MS, true); /* the first alone says nothing of what a tick takes */
    uint64_t sum = total(), ticks = window.counters.task_ticks;
    threads[0].cpu++;
    still_tick(1, false);
    ck_assert_uint_eq(total(), sum);
    ck_assert_uint_eq(window.counters.task_ticks, ticks);
    still_tick(1, false); /* nor is the one before that repeated: something ran since */
    ck_assert_uint_eq(total(), sum);
    threads[0].cpu++;
    still_tick(1, true);
    ck_assert_uint_eq(total(), sum + 3 * LAW_TASKS);
    threads[0].cpu++;
    still_tick(1001 * MS, false); /* the longest pause is over */
    ck_assert_uint_eq(total(), sum + (3 + 1001 * MS) * LAW_TASKS);
    fake_task_waits(&world, 0, 2, fake_future_at(0));
    uint64_t before = time_of("loop;t0.0");
    threads[0].cpu++;
    still_tick(2000, false);
    threads[0].cpu++;
    still_tick(2000, true);
    ck_assert_uint_eq(time_of("loop;t0.0"), before + 2000); /* half of the time since the last that did something */
    ck_assert_uint_eq(time_of("loop;t0.0;t0.1"), 2000);
    stop();
}
END_TEST

/* --- what changes while it is read --- */

static bool changing;

static void change_waiter(uintptr_t address, size_t length)
{
    static uint32_t turn;
    uintptr_t waiter = fake_task_at(0) + (uintptr_t)world.target.layout.task_waiter;
    if (changing && address <= waiter && address + length > waiter)
        fake_task_waiter(&world, 0, turn++ % 3 ? fake_future_at(turn % 3) : 0);
}

START_TEST(what_is_torn_comes_later)
{
    start(_i, 2);
    tick(10 * MS);
    changing = true;
    fake_on_read(change_waiter);
    tick(10 * MS);
    tick(10 * MS);
    ck_assert_uint_eq(time_of_task(0), 15 * MS); /* as it was at the first tick; from there on it is not known */
    ck_assert_uint_eq(time_of_task(1), 30 * MS);
    ck_assert_uint_eq(window.counters.task_postponed, 2);
    changing = false;
    fake_task(&world, 0, 1);
    still_tick(10 * MS, true); /* no repetition */
    ck_assert_uint_eq(time_of_task(0), 40 * MS);
    ck_assert_uint_eq(window.counters.task_postponed, 2);
    stop();
}
END_TEST

/* It has ended by the next reading: its time is on the stack that it had. */
START_TEST(what_is_torn_and_ends)
{
    start(_i, 2);
    tick(10 * MS);
    changing = true;
    fake_on_read(change_waiter);
    tick(10 * MS);
    changing = false;
    fake_task_is_done(&world, 0);
    tick(10 * MS);
    ck_assert_uint_eq(time_of("loop;t0.0"), 10 * MS + 5 * MS + 10 * MS); /* a tick's, half, and half a one on either side */
    ck_assert_uint_eq(time_of("loop;t1.0"), 30 * MS);
    ck_assert_uint_eq(window.counters.dropped[DROP_torn_awaiter], 1);
    tick(10 * MS);
    ck_assert_uint_eq(total(), 25 * MS + 40 * MS);
    ck_assert_uint_eq(window.counters.dropped[DROP_torn_awaiter], 1);
    stop();
}
END_TEST

/* ... and nobody ever saw one. */
START_TEST(what_is_torn_at_first_and_ends)
{
    start(_i, 2);
    changing = true;
    fake_on_read(change_waiter);
    tick(10 * MS);
    changing = false;
    fake_task_is_done(&world, 0);
    tick(10 * MS);
    ck_assert_uint_eq(total(), 20 * MS);
    ck_assert_uint_eq(time_of("loop;t1.0"), 20 * MS);
    ck_assert_uint_eq(window.counters.dropped[DROP_torn_awaiter], 0);
    stop();
}
END_TEST

/* Task 0 is awaited by task 1, which is read when it says that it awaits another; task 2 is another leaf. */
static void start_unproven(int minor)
{
    start(minor, 3);
    fake_task_awaits(&world, 1, 1, 0);
    fake_world_word(&world, fake_task_at(1) + FAKE_IN_ITER, world.target.layout.wrapper_inner, fake_future_at(1));
    tick(10 * MS);
    ck_assert_uint_eq(total(), 10 * MS);
    ck_assert_uint_eq(time_of("loop;t2.0"), 10 * MS);
    ck_assert_uint_eq(window.counters.task_postponed, 2);
    fake_task_waits(&world, 1, 1, fake_task_at(0));
}

START_TEST(what_is_not_proven_comes_later)
{
    start_unproven(_i);
    tick(10 * MS);
    ck_assert_uint_eq(time_of("loop;t1.0;t0.0"), 20 * MS);
    ck_assert_uint_eq(total(), 40 * MS);
    ck_assert_uint_eq(window.counters.task_postponed, 2);
    ck_assert_uint_eq(window.counters.dropped[DROP_torn_awaiter], 0);
    fake_task_waits(&world, 0, 2, fake_future_at(0));
    tick(10 * MS);
    ck_assert_uint_eq(time_of("loop;t1.0;t0.0"), 25 * MS); /* it is one as all others again */
    ck_assert_uint_eq(time_of("loop;t1.0;t0.0;t0.1"), 5 * MS);
    ck_assert_uint_eq(total(), 60 * MS);
    stop();
}
END_TEST

START_TEST(what_is_not_proven_and_ends)
{
    start_unproven(_i);
    fake_task_is_done(&world, 0);
    fake_task_is_done(&world, 1);
    tick(10 * MS);
    ck_assert_uint_eq(time_of("loop;t0.0"), 10 * MS + 5 * MS); /* without the awaiter */
    ck_assert_uint_eq(time_of("loop;t2.0"), 20 * MS);
    ck_assert_uint_eq(total(), 35 * MS);
    ck_assert_uint_eq(window.counters.dropped[DROP_torn_awaiter], 1);
    tick(10 * MS);
    ck_assert_uint_eq(total(), 45 * MS);
    ck_assert_uint_eq(window.counters.dropped[DROP_torn_awaiter], 1);
    stop();
}
END_TEST

/* Another one is at its address: what was carried is not that one's. */
START_TEST(what_is_carried_is_not_inherited)
{
    start_unproven(_i);
    fake_task(&world, 0, 2);
    fake_birth(fake_birth_of(fake_task_at(0), 0, 0));
    fake_task_is_done(&world, 1);
    tick(10 * MS);
    ck_assert_uint_ge(time_of("loop;t0.0"), 10 * MS);
    ck_assert_uint_eq(time_of("loop;t0.0;t0.1"), 5 * MS);
    ck_assert_uint_eq(window.counters.dropped[DROP_torn_awaiter], 1);
    stop();
}
END_TEST

/* --- those that wait for members of their own --- */

START_TEST(one_whose_members_are_done_is_ready)
{
    start(_i, 3);
    const uintptr_t members[] = {fake_task_at(1), 1, fake_future_at(2), 2};
    fake_coro_has_local(&world, 0, 0, "_wait", "fs", fake_set(&world.target, 0x28000000, SET_TYPE_AT, members, 2));
    fake_task_is_done(&world, 1);
    fake_task_runs(&world, 2, 1);
    tick(10 * MS);
    ck_assert_uint_eq(time_of("loop;_wait"), 10 * MS);
    fake_future_state(&world, fake_future_at(2), FUTURE_FINISHED);
    tick(10 * MS);
    ck_assert_uint_eq(time_of("loop;_wait"), 15 * MS);
    ck_assert_uint_eq(time_of("loop;_wait;[ready]"), 5 * MS);
    tick(10 * MS);
    ck_assert_uint_eq(time_of("loop;_wait;[ready]"), 15 * MS);
    fake_future_state(&world, fake_future_at(2), FUTURE_PENDING); /* other members */
    tick(10 * MS);
    ck_assert_uint_eq(time_of("loop;_wait"), 20 * MS);
    ck_assert_uint_eq(time_of("loop;_wait;[ready]"), 20 * MS);
    ck_assert_uint_eq(total(), 40 * MS);
    stop();
}
END_TEST

/* --- circles --- */

START_TEST(a_circle_once)
{
    start(_i, 4);
    for (uint32_t i = 0; i < 3; i++)
        fake_task_awaits(&world, i, 1, (i + 1) % 3);
    tick(10 * MS);
    ck_assert_uint_eq(time_of("loop;[cycle];t0.0;t1.0;t2.0") + time_of("loop;[cycle];t0.0;t2.0;t1.0"), 10 * MS);
    ck_assert_uint_eq(total(), 20 * MS);
    stop();
}
END_TEST

/* It is opened by a cancellation when all were read, and a stack is made that is new. */
static void break_circle(uintptr_t address, size_t length)
{
    if (address >= FAKE_LINES_AT && address < FAKE_LINES_AT + 0x1000)
        fake_task_waiter(&world, 2, 0);
}

START_TEST(a_circle_that_changes)
{
    start(_i, 5);
    for (uint32_t i = 0; i < 3; i++)
        fake_task_awaits(&world, i, 1, (i + 1) % 3);
    fake_task_awaits(&world, 4, 1, 3);
    tick(10 * MS);
    ck_assert_uint_eq(total(), 20 * MS);
    fake_task_waits(&world, 4, 2, fake_task_at(3));
    fake_on_read(break_circle);
    tick(10 * MS);
    ck_assert_uint_eq(time_of("loop;t4.0;t3.0"), 15 * MS);
    ck_assert_uint_eq(time_of("loop;t4.0;t4.1;t3.0"), 5 * MS);
    ck_assert_uint_eq(total(), 20 * MS + 15 * MS); /* of the circle that half in which it was one */
    stop();
}
END_TEST

START_TEST(a_circle_that_a_leaf_hangs_from)
{
    start(_i, 3);
    fake_task_awaits(&world, 1, 1, 0);
    fake_task_waits(&world, 0, 1, fake_future_at(0));
    for (uint32_t i = 1; i < 3; i++)
        fake_world_word(&world, fake_task_at(i), world.target.layout.future_callback0, fake_gather_callback(&world, i, fake_future_at(0)));
    tick(10 * MS);
    ck_assert_uint_eq(total(), 10 * MS);
    ck_assert_uint_eq(time_of("loop;[cycle];t0.0;t2.0"), 10 * MS);
    stop();
}
END_TEST

/* --- births and creators --- */

START_TEST(one_just_born_stands_on_its_creator)
{
    start_hooked(_i, 4);
    maker_id maker = fake_maker(fake_coro_at(0, 0));
    fake_birth(fake_birth_of(fake_task_at(0), 0, 0));
    fake_birth(fake_birth_of(fake_task_at(1), maker, 0));
    tick(10 * MS);
    ck_assert_uint_eq(time_of("loop;t0.0;t1.0"), 10 * MS);
    fake_birth(fake_birth_of(fake_task_at(1), fake_maker(0x77770000), 0));
    tick(10 * MS);
    ck_assert_uint_eq(time_of("loop;t0.0;t1.0"), 15 * MS);
    ck_assert_uint_eq(time_of("loop;t1.0"), 5 * MS);
    ck_assert_uint_eq(window.counters.dropped[DROP_creator_unknown], 1);
    fake_births.lost = 5;
    tick(10 * MS);
    ck_assert_uint_eq(window.counters.dropped[DROP_creator_unknown], 7);
    stop();
}
END_TEST

/* It came and went between two ticks: nobody reads it. */
START_TEST(one_that_is_done_is_not_made_known)
{
    start_hooked(_i, 3);
    fake_task_is_done(&world, 2);
    tick(10 * MS);
    tick(10 * MS);
    for (int i = 0; i < 2; i++) {
        uint64_t before = window.counters.task_reads;
        fake_birth(fake_birth_of(fake_task_at(2), 0, 0));
        tick(10 * MS);
        ck_assert_uint_eq(window.counters.task_reads - before, 2);
    }
    ck_assert_uint_eq(time_of("loop;t2.0"), 0);
    fake_task(&world, 2, 1); /* another one, at its address */
    fake_birth(fake_birth_of(fake_task_at(2), 0, 0));
    tick(10 * MS);
    ck_assert_uint_eq(time_of("loop;t2.0"), 5 * MS);
    fake_task_is_done(&world, 2);
    tick(10 * MS);
    ck_assert_uint_eq(time_of("loop;t2.0"), 10 * MS);
    ck_assert_uint_eq(total(), 2 * 60 * MS + 10 * MS);
    stop();
}
END_TEST

/* The making of tasks is hooked where it is not; those made before are looked up. */
START_TEST(hooks_are_asked_for)
{
    start_with(_i, 2, (struct tasks_options){.depth = DEPTH, .metric = true, .creators = true});
    tick(10 * MS);
    tick(10 * MS);
    ck_assert_int_ge(hooks, 1);
    ck_assert_uint_eq(total(), 40 * MS);
    fake_births.hooked = FAKE_TASK_TYPE_AT;
    tick(10 * MS);
    int asked = hooks;
    tick(1500 * MS);
    ck_assert_int_eq(hooks, asked);
    fake_births.hooked = 0; /* a subclass came */
    tick(1500 * MS);
    ck_assert_int_gt(hooks, asked);
    stop();
}
END_TEST

START_TEST(those_that_were_there_before)
{
    start_hooked(_i, 3);
    tick(10 * MS);
    ck_assert_uint_eq(total(), 30 * MS); /* those that were there before */
    stop();
}
END_TEST

START_TEST(all_are_listed_when_births_were_lost)
{
    start_hooked(_i, 3);
    fake_world_word(&world, fake_task_at(2), world.target.layout.object_type, 0); /* not yet */
    tick(10 * MS);
    fake_task(&world, 2, 1);
    tick(10 * MS);
    ck_assert_uint_eq(time_of("loop;t2.0"), 0);
    fake_births.lost++;
    tick(10 * MS);
    ck_assert_uint_eq(time_of("loop;t2.0"), 5 * MS);
    stop();
}
END_TEST

START_TEST(all_are_listed_now_and_then)
{
    start_hooked(_i, 2);
    fake_world_word(&world, fake_task_at(1), world.target.layout.object_type, 0); /* not yet */
    tick(10 * MS);
    fake_task(&world, 1, 1);
    tick(10 * MS);
    ck_assert_uint_eq(time_of("loop;t1.0"), 0);
    tick(4500 * MS);
    ck_assert_uint_eq(time_of("loop;t1.0"), 2250 * MS);
    stop();
}
END_TEST

START_TEST(a_running_task_stands_on_its_creator)
{
    start_hooked(_i, 3);
    fake_task_awaits(&world, 1, 1, 2);
    fake_birth(fake_birth_of(fake_task_at(0), fake_maker(fake_coro_at(2, 0)), 0));
    for (uint32_t i = 1; i < 3; i++)
        fake_birth(fake_birth_of(fake_task_at(i), 0, 0));
    fake_task_runs(&world, 0, 1);
    tick(10 * MS);
    tasks_prepare(tasks, threads, thread_count, &stacks, now);
    ck_assert_str_eq(fake_functions(stacks.profile, base_of(fake_task_at(0))), "loop;t1.0;t2.0");
    ck_assert_uint_eq(base_of(fake_task_at(1)), PROFILE_ROOT);
    ck_assert_uint_eq(base_of(fake_task_at(2)), PROFILE_ROOT); /* it is awaited: its thread's stack has all */
    ck_assert_uint_eq(base_of(0x77770000), PROFILE_ROOT);
    ck_assert_uint_eq(total(), 10 * MS); /* of the leaf */
    stop();
}
END_TEST

START_TEST(of_two_bases_one_by_lot)
{
    enum { LOTS = 400 };
    int first = 0;
    start_hooked(_i, 4);
    fake_task_awaits(&world, 1, 1, 3);
    fake_task_awaits(&world, 2, 1, 3);
    fake_birth(fake_birth_of(fake_task_at(0), fake_maker(fake_coro_at(3, 0)), 0));
    for (uint32_t i = 1; i < 4; i++)
        fake_birth(fake_birth_of(fake_task_at(i), 0, 0));
    fake_task_runs(&world, 0, 1);
    tick(10 * MS);
    tasks_prepare(tasks, threads, thread_count, &stacks, now);
    for (int i = 0; i < LOTS; i++) {
        const char *functions = fake_functions(stacks.profile, base_of(fake_task_at(0)));
        first += strcmp(functions, "loop;t1.0;t3.0") == 0;
        ck_assert(strcmp(functions, "loop;t1.0;t3.0") == 0 || strcmp(functions, "loop;t2.0;t3.0") == 0);
    }
    ck_assert_int_gt(first, LOTS * 3 / 8);
    ck_assert_int_lt(first, LOTS * 5 / 8);
    stop();
}
END_TEST

/* A creator that nobody has read yet, of a task that runs at once. */
START_TEST(a_creator_as_young_as_its_task)
{
    start_hooked(_i, 2);
    tick(10 * MS);
    fake_birth(fake_birth_of(fake_task_at(1), 0, 0));
    fake_birth(fake_birth_of(fake_task_at(0), fake_maker(fake_coro_at(1, 0)), 0));
    fake_task_runs(&world, 0, 1);
    tasks_prepare(tasks, threads, thread_count, &stacks, now);
    ck_assert_str_eq(fake_functions(stacks.profile, base_of(fake_task_at(0))), "loop;t1.0");
    stop();
}
END_TEST

/* --- interpreters --- */

START_TEST(an_interpreter_that_ends)
{
    start(_i, 2);
    tick(10 * MS);
    ck_assert(asyncios_any());
    threads[0].interp = FAKE_INTERP_AT + 0x1000;
    tick(10 * MS);
    ck_assert(!asyncios_any());
    ck_assert_uint_eq(total(), 20 * MS);
    threads[0].interp = FAKE_INTERP_AT;
    tick(10 * MS);
    ck_assert_uint_eq(total(), 40 * MS); /* another that has tasks at these addresses */
    stop();
}
END_TEST

START_TEST(a_type_of_another_size)
{
    start(_i, 1);
    struct fake type = fake_type_new(&world.target.layout, FAKE_TASK_TYPE_AT, "_asyncio.Task", 0, OBJECT_TYPE_AT);
    fake_put_word(&type, world.target.layout.object_type, FAKE_TYPE_TYPE_AT);
    fake_put_word(&type, world.target.layout.type_basicsize, (uint64_t)world.target.layout.task_size + 8);
    fake_place(&type);
    tick(10 * MS);
    ck_assert(!asyncios_any());
    ck_assert_uint_eq(total(), 0);
    stop();
}
END_TEST

START_TEST(without_the_metric)
{
    start_with(_i, 1, (struct tasks_options){.depth = DEPTH});
    tick(10 * MS);
    ck_assert(asyncios_any()); /* cpu and wall need it too */
    ck_assert_uint_eq(total(), 0);
    ck_assert_uint_eq(base_of(fake_task_at(0)), PROFILE_ROOT);
    size_t before = mem_used();
    for (uint32_t i = 0; i < 1000; i++) { /* nobody would see them end */
        fake_birth(fake_birth_of(fake_task_at(i), 0, 0));
        tick(10 * MS);
    }
    ck_assert_uint_eq(mem_used(), before);
    stop();
}
END_TEST

Suite *suite_tasks(void)
{
    Suite *suite = suite_create("tasks");
    TCase *law = tcase_create("law"), *loops = tcase_create("loops"), *still = tcase_create("still"), *births = tcase_create("births");
    tcase_add_loop_test(law, a_leaf_has_all_its_time, FIRST_MINOR, AFTER_LAST_MINOR);
    tcase_add_loop_test(law, sums_are_the_time_as_a_leaf, FIRST_MINOR, AFTER_LAST_MINOR);
    tcase_add_loop_test(law, a_loop_has_its_tasks_counted, FIRST_MINOR, AFTER_LAST_MINOR);
    tcase_add_loop_test(law, half_as_it_was_half_as_it_is, FIRST_MINOR, AFTER_LAST_MINOR);
    tcase_add_loop_test(law, shares_are_halved_too, FIRST_MINOR, AFTER_LAST_MINOR);
    tcase_add_loop_test(law, too_many_stacks_to_be_remembered, FIRST_MINOR, FIRST_MINOR + 1);
    tcase_add_loop_test(law, awaiters_share_the_time, FIRST_MINOR, AFTER_LAST_MINOR);
    tcase_add_loop_test(law, ready_is_said, FIRST_MINOR, AFTER_LAST_MINOR);
    tcase_add_loop_test(law, ends_and_begins_at_the_same_address, FIRST_MINOR, AFTER_LAST_MINOR);
    tcase_add_loop_test(law, a_stack_that_is_too_deep_loses_its_root, FIRST_MINOR, AFTER_LAST_MINOR);
    tcase_add_loop_test(law, a_marker_is_not_cut, FIRST_MINOR, AFTER_LAST_MINOR);
    tcase_add_loop_test(law, what_is_torn_comes_later, FIRST_MINOR, AFTER_LAST_MINOR);
    tcase_add_loop_test(law, what_is_torn_and_ends, FIRST_MINOR, AFTER_LAST_MINOR);
    tcase_add_loop_test(law, what_is_torn_at_first_and_ends, FIRST_MINOR, AFTER_LAST_MINOR);
    tcase_add_loop_test(law, what_is_not_proven_comes_later, FIRST_MINOR, AFTER_LAST_MINOR);
    tcase_add_loop_test(law, what_is_not_proven_and_ends, FIRST_MINOR, AFTER_LAST_MINOR);
    tcase_add_loop_test(law, what_is_carried_is_not_inherited, FIRST_MINOR, AFTER_LAST_MINOR);
    tcase_add_loop_test(law, one_whose_members_are_done_is_ready, FIRST_MINOR, AFTER_LAST_MINOR);
    tcase_add_loop_test(law, a_circle_once, FIRST_MINOR, AFTER_LAST_MINOR);
    tcase_add_loop_test(law, a_circle_that_changes, FIRST_MINOR, AFTER_LAST_MINOR);
    tcase_add_loop_test(law, a_circle_that_a_leaf_hangs_from, FIRST_MINOR, AFTER_LAST_MINOR);
    tcase_add_loop_test(loops, a_loop_that_does_not_run, FIRST_MINOR, AFTER_LAST_MINOR);
    tcase_add_loop_test(loops, an_unknown_driver_is_waited_for, FIRST_MINOR, AFTER_LAST_MINOR);
    tcase_add_loop_test(loops, a_driver_that_is_not_sure, FIRST_MINOR, AFTER_LAST_MINOR);
    tcase_add_loop_test(loops, two_loops_in_two_threads, FIRST_MINOR, AFTER_LAST_MINOR);
    tcase_add_loop_test(loops, an_interpreter_that_ends, FIRST_MINOR, AFTER_LAST_MINOR);
    tcase_add_loop_test(loops, a_type_of_another_size, FIRST_MINOR, AFTER_LAST_MINOR);
    tcase_add_loop_test(loops, without_the_metric, FIRST_MINOR, AFTER_LAST_MINOR);
    tcase_add_loop_test(still, repeated_is_as_read, FIRST_MINOR, AFTER_LAST_MINOR);
    tcase_add_loop_test(still, rest_is_as_repeated, FIRST_MINOR, AFTER_LAST_MINOR);
    tcase_add_loop_test(still, equal_neighbours_are_repeated_both, FIRST_MINOR, AFTER_LAST_MINOR);
    tcase_add_loop_test(still, what_runs_is_not_repeated, FIRST_MINOR, AFTER_LAST_MINOR);
    tcase_add_loop_test(still, coarse_clocks_prove_nothing, FIRST_MINOR, AFTER_LAST_MINOR);
    tcase_add_loop_test(still, a_birth_ends_repetition, FIRST_MINOR, AFTER_LAST_MINOR);
    tcase_add_loop_test(still, what_goes_on_after_repetitions, FIRST_MINOR, AFTER_LAST_MINOR);
    tcase_add_loop_test(still, a_window_ends, FIRST_MINOR, AFTER_LAST_MINOR);
    tcase_add_loop_test(still, a_window_begins_with_what_is_seen, FIRST_MINOR, AFTER_LAST_MINOR);
    tcase_add_loop_test(still, a_window_begins_without_its_driver, FIRST_MINOR, AFTER_LAST_MINOR);
    tcase_add_loop_test(still, one_that_comes_too_early_does_nothing, FIRST_MINOR, AFTER_LAST_MINOR);
    tcase_add_loop_test(births, one_just_born_stands_on_its_creator, FIRST_MINOR, AFTER_LAST_MINOR);
    tcase_add_loop_test(births, one_that_is_done_is_not_made_known, FIRST_MINOR, AFTER_LAST_MINOR);
    tcase_add_loop_test(births, hooks_are_asked_for, FIRST_MINOR, AFTER_LAST_MINOR);
    tcase_add_loop_test(births, those_that_were_there_before, FIRST_MINOR, AFTER_LAST_MINOR);
    tcase_add_loop_test(births, all_are_listed_when_births_were_lost, FIRST_MINOR, AFTER_LAST_MINOR);
    tcase_add_loop_test(births, all_are_listed_now_and_then, FIRST_MINOR, AFTER_LAST_MINOR);
    tcase_add_loop_test(births, a_running_task_stands_on_its_creator, FIRST_MINOR, AFTER_LAST_MINOR);
    tcase_add_loop_test(births, of_two_bases_one_by_lot, FIRST_MINOR, AFTER_LAST_MINOR);
    tcase_add_loop_test(births, a_creator_as_young_as_its_task, FIRST_MINOR, AFTER_LAST_MINOR);
    tcase_set_timeout(law, 60);
    suite_add_tcase(suite, law);
    suite_add_tcase(suite, loops);
    suite_add_tcase(suite, still);
    suite_add_tcase(suite, births);
    return suite;
}
