/* SPDX-License-Identifier: MIT
 * states: interpreters and thread states, whole and broken; locks; phases. */
#include "sampler/cpython/states.h"

#include "hooks/task.h"
#include "tests/unit/fake_python.h"

#define INTERP(i) (0x60000000u + 0x100000u * (unsigned)(i))
#define THREAD(i) (0x61000000u + 0x1000u * (unsigned)(i))
#define GIL 0x62000000u
#define SEMAPHORE 0x63000000u
#define RUNTIME_BYTES 32768
#define INTERP_BYTES 16384
#define TID(i) (1000 + (i))
#define PTHREAD(i) (0x7f0000000000u + 0x1000u * (unsigned)(i))

Suite *suite_states(void);

static struct fake runtime_new(const struct py_target *target)
{
    const struct layout *layout = &target->layout;
    struct fake runtime = fake_new(RUNTIME_AT, RUNTIME_BYTES);
    fake_put_int(&runtime, layout->runtime_initialized, 1);
    fake_put_word(&runtime, layout->runtime_interpreters_head, INTERP(0));
    fake_put_word(&runtime, layout->runtime_interpreters_main, INTERP(0));
    return runtime;
}

static struct fake interp_new(const struct py_target *target, int i, uintptr_t threads, uintptr_t next)
{
    const struct layout *layout = &target->layout;
    struct fake interp = fake_new(INTERP(i), INTERP_BYTES);
    fake_put_word(&interp, layout->interp_id, (uint64_t)i);
    fake_put_word(&interp, layout->interp_threads_head, threads);
    fake_put_word(&interp, layout->interp_next, next);
    if (layout->interp_gil != LAYOUT_NONE)
        fake_put_word(&interp, layout->interp_gil, GIL);
    return interp;
}

static struct fake thread_new(const struct py_target *target, int i, uintptr_t interp, uintptr_t next, uint32_t status)
{
    const struct layout *layout = &target->layout;
    struct fake thread = fake_new(THREAD(i), 512);
    fake_put_word(&thread, layout->thread_interp, interp);
    fake_put_word(&thread, layout->thread_next, next);
    fake_put_word(&thread, layout->thread_native_id, (uint64_t)TID(i));
    fake_put_word(&thread, layout->thread_id, PTHREAD(i));
    fake_put_word(&thread, layout->thread_unique_id, (uint64_t)i + 1);
    if (layout->thread_status != LAYOUT_NONE)
        fake_put_int(&thread, layout->thread_status, status);
    return thread;
}

static void gil_of(const struct py_target *target, struct fake *runtime, uintptr_t holder)
{
    const struct layout *layout = &target->layout;
    if (layout->interp_gil == LAYOUT_NONE) {
        fake_put_word(runtime, layout->runtime_tstate_current, holder);
        fake_put_word(runtime, layout->gil_last_holder, holder);
        return;
    }
    struct fake gil = fake_new(GIL, 64);
    fake_put_int(&gil, layout->gil_locked, 1);
    fake_put_word(&gil, layout->gil_last_holder, holder);
    fake_place(&gil);
}

/* Two interpreters; the first has threads 0 and 1, the second thread 2. Thread 1
 * holds the GIL. */
static void world(const struct py_target *target)
{
    uint32_t active = 1u << target->layout.status_active_bit;
    struct fake runtime = runtime_new(target);
    struct fake interps[] = {interp_new(target, 0, THREAD(0), INTERP(1)), interp_new(target, 1, THREAD(2), 0)};
    struct fake threads[] = {thread_new(target, 0, INTERP(0), THREAD(1), 0), thread_new(target, 1, INTERP(0), 0, active),
                             thread_new(target, 2, INTERP(1), 0, target->layout.status_dead_mask)};
    gil_of(target, &runtime, THREAD(1));
    fake_place(&runtime);
    for (int i = 0; i < 2; i++)
        fake_place(&interps[i]);
    for (int i = 0; i < 3; i++)
        fake_place(&threads[i]);
}

START_TEST(all_states_of_all_interpreters)
{
    struct py_target target = fake_target(_i);
    struct states_walk walk;
    struct state state;
    int count = 0;
    world(&target);
    states_begin(&walk, &target);
    for (; states_next(&walk, &state); count++) {
        ck_assert_uint_eq(state.address, THREAD(count));
        ck_assert_int_eq(state.tid, TID(count));
        ck_assert_int_eq(state.interp_id, count == 2);
        ck_assert_int_eq(state.active, count == 1);
        ck_assert_int_eq(state.dead, count == 2 && target.layout.status_dead_mask);
    }
    ck_assert_int_eq(count, 3);
    ck_assert(!walk.broken);
    ck_assert_uint_eq(walk.interps, 2);
}
END_TEST

START_TEST(the_gil_is_held_by_one)
{
    struct py_target target = fake_target(_i);
    world(&target);
    ck_assert(!states_holds_gil(&target, THREAD(0)));
    ck_assert(states_holds_gil(&target, THREAD(1)));
    ck_assert(!states_holds_gil(&target, 0));
    ck_assert(!states_holds_gil(&target, 0x7fff0000));
}
END_TEST

/* Whether or not it still holds it. */
START_TEST(who_took_the_gil_last)
{
    struct py_target target = fake_target(_i);
    struct fake gil = fake_new(GIL, 64);
    world(&target);
    ck_assert_uint_eq(states_gil_taker(&target, INTERP(0)), THREAD(1));
    ck_assert_uint_eq(states_gil_taker(&target, INTERP(1)), THREAD(1)); /* the same GIL */
    if (target.layout.interp_gil == LAYOUT_NONE)
        return;
    ck_assert_uint_eq(states_gil_taker(&target, 0x7fff0000), 0);
    fake_put_word(&gil, target.layout.gil_last_holder, THREAD(0));
    fake_place(&gil);
    ck_assert_uint_eq(states_gil_taker(&target, INTERP(0)), THREAD(0));
}
END_TEST

START_TEST(what_is_left_of_an_interpreter_is_passed_over)
{
    struct py_target target = fake_target(_i);
    struct states_walk walk;
    struct state state;
    world(&target);
    states_begin(&walk, &target);
    ck_assert(states_next(&walk, &state));
    ck_assert_uint_eq(state.address, THREAD(0));
    states_pass_over(&walk);
    ck_assert(states_next(&walk, &state));
    ck_assert_uint_eq(state.address, THREAD(2));
    states_pass_over(&walk);
    ck_assert(!states_next(&walk, &state));
    ck_assert(!walk.broken);
}
END_TEST

START_TEST(a_thread_finds_itself)
{
    struct py_target target = fake_target(_i);
    world(&target);
    ck_assert_uint_eq(states_find_own(&target, TID(1), PTHREAD(1), 100), THREAD(1));
    ck_assert_uint_eq(states_find_own(&target, TID(0), PTHREAD(0), 100), THREAD(0));
    ck_assert_uint_eq(states_find_own(&target, TID(0), PTHREAD(1), 100), 0);
    ck_assert_uint_eq(states_find_own(&target, TID(1), PTHREAD(1), 1), 0);
    ck_assert(states_is_of(&target, THREAD(1), TID(1), PTHREAD(1)));
    ck_assert(!states_is_of(&target, THREAD(1), TID(1), PTHREAD(0)));
    ck_assert(!states_is_of(&target, THREAD(1), TID(0), PTHREAD(1)));
    ck_assert(!states_is_of(&target, 0x7fff0000, TID(1), PTHREAD(1)));
}
END_TEST

/* A fork that the interpreter is not told of, twice: the state goes on showing
 * the id of the first parent's thread. */
START_TEST(a_forked_thread_finds_its_state_by_its_old_id)
{
    struct py_target target = fake_target(_i);
    pid_t now = task_tid();
    struct state state;
    world(&target);
    for (int i = 0; i < 2; i++) {
        states_postfork_child(&target, i ? now : TID(1), PTHREAD(1));
        ck_assert_uint_eq(states_find_own(&target, now, PTHREAD(1), 100), THREAD(1));
        ck_assert(states_is_of(&target, THREAD(1), now, PTHREAD(1)));
        ck_assert(states_read(&target, THREAD(1), &state));
        ck_assert_int_eq(state.tid, now);
    }
    ck_assert(!states_is_of(&target, THREAD(1), TID(1), PTHREAD(1)));
    ck_assert(states_is_of(&target, THREAD(0), TID(0), PTHREAD(0)));
    states_postfork_child(&target, 0, 0);
}
END_TEST

START_TEST(a_state_that_was_told_of_the_fork_shows_its_own_id)
{
    struct py_target target = fake_target(_i);
    pid_t now = task_tid();
    uint64_t told = (uint64_t)now;
    world(&target);
    states_postfork_child(&target, TID(1), PTHREAD(1));
    fake_map(THREAD(1) + (uintptr_t)target.layout.thread_native_id, &told, sizeof told);
    ck_assert(states_is_of(&target, THREAD(1), now, PTHREAD(1)));
    states_postfork_child(&target, now, PTHREAD(1));
    ck_assert_uint_eq(states_find_own(&target, now, PTHREAD(1), 100), THREAD(1));
    states_postfork_child(&target, 0, 0);
}
END_TEST

START_TEST(a_freed_state_breaks_the_walk_of_its_interpreter_only)
{
    struct py_target target = fake_target(_i);
    struct states_walk walk;
    struct state state;
    struct fake runtime = runtime_new(&target);
    struct fake one = interp_new(&target, 0, THREAD(9), INTERP(1)), two = interp_new(&target, 1, THREAD(2), 0);
    struct fake thread = thread_new(&target, 2, INTERP(1), 0, 0);
    fake_place(&runtime);
    fake_place(&one);
    fake_place(&two);
    fake_place(&thread);
    states_begin(&walk, &target);
    ck_assert(states_next(&walk, &state));
    ck_assert_uint_eq(state.address, THREAD(2));
    ck_assert(!states_next(&walk, &state));
    ck_assert(walk.broken);
}
END_TEST

START_TEST(a_state_of_another_interpreter_is_not_believed)
{
    struct py_target target = fake_target(_i);
    struct states_walk walk;
    struct state state;
    struct fake runtime = runtime_new(&target);
    struct fake one = interp_new(&target, 0, THREAD(0), 0), other = interp_new(&target, 1, 0, 0);
    struct fake thread = thread_new(&target, 0, INTERP(1), 0, 0);
    fake_place(&runtime);
    fake_place(&one);
    fake_place(&other);
    fake_place(&thread);
    states_begin(&walk, &target);
    ck_assert(!states_next(&walk, &state));
    ck_assert(walk.broken);
}
END_TEST

START_TEST(circles_end)
{
    struct py_target target = fake_target(_i);
    struct states_walk walk;
    struct state state;
    uint32_t count = 0;
    struct fake runtime = runtime_new(&target);
    struct fake interp = interp_new(&target, 0, THREAD(0), INTERP(0));
    struct fake thread = thread_new(&target, 0, INTERP(0), THREAD(0), 0);
    fake_place(&runtime);
    fake_place(&interp);
    fake_place(&thread);
    states_begin(&walk, &target);
    while (states_next(&walk, &state))
        count++;
    ck_assert_uint_eq(count, STATES_THREADS_MAX);
    ck_assert(walk.broken);
}
END_TEST

static enum runtime_phase phase_with(int minor, uint32_t initialized, uintptr_t finalizing, uintptr_t head, uintptr_t threads)
{
    struct py_target target = fake_target(minor);
    struct fake runtime = runtime_new(&target), interp = interp_new(&target, 0, threads, 0);
    fake_put_int(&runtime, target.layout.runtime_initialized, initialized);
    fake_put_word(&runtime, target.layout.runtime_finalizing, finalizing);
    fake_put_word(&runtime, target.layout.runtime_interpreters_head, head);
    fake_place(&runtime);
    fake_place(&interp);
    return states_phase(&target);
}

START_TEST(phase_of_a_runtime_that_runs)
{
    ck_assert_int_eq(phase_with(_i, 1, 0, INTERP(0), THREAD(0)), RUNTIME_READY);
}
END_TEST

START_TEST(phase_of_a_runtime_that_starts)
{
    ck_assert_int_eq(phase_with(_i, 0, 0, 0, 0), RUNTIME_STARTING);
}
END_TEST

START_TEST(phase_of_a_runtime_without_threads)
{
    ck_assert_int_eq(phase_with(_i, 1, 0, INTERP(0), 0), RUNTIME_STARTING);
}
END_TEST

START_TEST(phase_of_a_runtime_that_finalizes)
{
    ck_assert_int_eq(phase_with(_i, 0, THREAD(0), INTERP(0), THREAD(0)), RUNTIME_FINALIZING);
}
END_TEST

START_TEST(phase_of_a_finalised_runtime)
{
    ck_assert_int_eq(phase_with(_i, 0, THREAD(0), 0, 0), RUNTIME_STARTING);
}
END_TEST

START_TEST(phase_of_no_runtime)
{
    struct py_target target = fake_target(_i);
    ck_assert_int_eq(states_phase(&target), RUNTIME_ABSENT); /* not mapped */
    target.runtime = 0;
    ck_assert_int_eq(states_phase(&target), RUNTIME_ABSENT);
}
END_TEST

static bool pending_lock_with(int minor, uint32_t free_value, uint32_t byte)
{
    struct py_target target = fake_target(minor);
    struct fake runtime = runtime_new(&target), interp = interp_new(&target, 0, THREAD(0), 0), semaphore = fake_new(SEMAPHORE, 32);
    fake_put_int(&semaphore, 0, free_value);
    fake_place(&semaphore);
    if (target.layout.pending_lock_is_byte)
        fake_put_byte(&runtime, target.layout.runtime_pending_lock, (uint8_t)byte);
    else if (target.layout.interp_pending_lock != LAYOUT_NONE)
        fake_put_word(&interp, target.layout.interp_pending_lock, SEMAPHORE);
    else
        fake_put_word(&runtime, target.layout.runtime_pending_lock, SEMAPHORE);
    fake_place(&runtime);
    fake_place(&interp);
    return states_pending_lock_is_free(&target);
}

START_TEST(a_free_pending_lock)
{
    ck_assert(pending_lock_with(_i, 1, 0));
}
END_TEST

START_TEST(a_taken_pending_lock)
{
    ck_assert(!pending_lock_with(_i, 0, 1));
}
END_TEST

START_TEST(a_pending_lock_that_is_waited_for)
{
    ck_assert(!pending_lock_with(_i, 0, 3));
}
END_TEST

START_TEST(an_unknown_pending_lock_is_not_free)
{
    struct py_target target = fake_target(_i);
    target.layout.runtime_pending_lock = target.layout.interp_pending_lock = LAYOUT_NONE;
    world(&target);
    ck_assert(!states_pending_lock_is_free(&target));
}
END_TEST

/* A program that holds a Python forks before it starts it, or after it ended. */
START_TEST(no_pending_lock_without_a_thread)
{
    struct py_target target = fake_target(_i);
    world(&target);
    ck_assert(states_has_python(&target));
    struct fake interp = interp_new(&target, 0, 0, 0);
    fake_place(&interp);
    ck_assert(!states_has_python(&target));
    ck_assert(!states_pending_lock_is_free(&target));
    struct fake runtime = runtime_new(&target);
    fake_put_word(&runtime, target.layout.runtime_interpreters_main, 0);
    fake_place(&runtime);
    ck_assert(!states_has_python(&target));
    ck_assert(!states_pending_lock_is_free(&target));
}
END_TEST

Suite *suite_states(void)
{
    const TTest *const tests[] = {
        all_states_of_all_interpreters, the_gil_is_held_by_one, who_took_the_gil_last, what_is_left_of_an_interpreter_is_passed_over,
        a_thread_finds_itself,
        a_forked_thread_finds_its_state_by_its_old_id, a_state_that_was_told_of_the_fork_shows_its_own_id,
        a_freed_state_breaks_the_walk_of_its_interpreter_only, a_state_of_another_interpreter_is_not_believed, circles_end,
        phase_of_a_runtime_that_runs, phase_of_a_runtime_that_starts, phase_of_a_runtime_without_threads,
        phase_of_a_runtime_that_finalizes, phase_of_a_finalised_runtime, phase_of_no_runtime, a_free_pending_lock,
        a_taken_pending_lock, a_pending_lock_that_is_waited_for, an_unknown_pending_lock_is_not_free,
        no_pending_lock_without_a_thread,
    };
    Suite *suite = suite_create("states");
    TCase *each = tcase_create("each version");
    for (size_t i = 0; i < sizeof tests / sizeof *tests; i++)
        tcase_add_loop_test(each, tests[i], FIRST_MINOR, AFTER_LAST_MINOR);
    suite_add_tcase(suite, each);
    return suite;
}
