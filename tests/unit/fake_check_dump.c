/* SPDX-License-Identifier: MIT
 * dump: what tasks are shown with, and that a dump changes nothing of the time that
 * ticks add. */
#include "tests/unit/fake_tasks.h"

Suite *suite_dump(void);

#define TID 77

static struct dump dump;
static int looks_left; /* until somebody waits for the sampler */

static bool must_stop(void)
{
    return looks_left-- <= 0;
}

static void take(void)
{
    dump_begin(&dump, 1, must_stop);
    dump_add_thread(&dump, &(struct dump_thread){.tid = TID, .tstate = TSTATE_AT(0)});
    tasks_dump(tasks, threads, thread_count, &stacks, &dump, now);
}

/* The task that has this function as its own outermost, in the order of the world, as
 * text: state, how, stacks. */
static const char *shown(void)
{
    static char text[1024];
    size_t used = 0;
    text[0] = '\0';
    for (uint32_t i = 0; i < dump.tasks; i++) {
        const struct dump_task *task = &dump.task[i];
        used += (size_t)snprintf(text + used, sizeof text - used, "%s%d/%d", i ? " " : "", task->state, task->how);
        for (uint32_t j = 0; j < task->stacks; j++)
            used += (size_t)snprintf(text + used, sizeof text - used, ":%s", fake_functions(stacks.profile, dump.stack[task->first_stack + j]));
    }
    return text;
}

/* Whether one is shown so, whatever the order. */
static void ck_shows(enum dump_state state, enum dump_how how, const char *rest)
{
    char wanted[256];
    const char *found = shown();
    size_t length = (size_t)snprintf(wanted, sizeof wanted, "%d/%d%s", state, how, rest);
    for (const char *at = found; (at = strstr(at, wanted)); at += length)
        if ((at == found || at[-1] == ' ') && (at[length] == ' ' || at[length] == '\0'))
            return;
    ck_abort_msg("no %s in %s", wanted, found);
}

static void restart(void)
{
    looks_left = 1000;
    memset(&dump, 0, sizeof dump);
}

START_TEST(each_task_as_it_is)
{
    restart();
    start(_i, 7);
    fake_task_awaits(&world, 1, 2, 0); /* 0 is awaited by 1 and by 2 */
    fake_task_awaits(&world, 2, 1, 0);
    fake_task_waiter(&world, 3, 0);
    fake_task_runs(&world, 4, 1);
    fake_task_is_done(&world, 6);
    fake_world_word(&world, fake_task_at(5), world.target.layout.task_name, fake_str(&world.target, 0x57000000u, "five;"));
    tick(10 * MS);
    uint64_t before = total();
    take();
    ck_assert(!dump.stopped);
    ck_assert(dump.tasks_known);
    ck_assert_uint_eq(dump.tasks, 6);
    ck_shows(DUMP_WAITING, DUMP_READ, ":loop;t1.0;t1.1;t0.0:loop;t2.0;t0.0");
    ck_shows(DUMP_AWAITS, DUMP_READ, ":loop;t1.0;t1.1");
    ck_shows(DUMP_AWAITS, DUMP_READ, ":loop;t2.0");
    ck_shows(DUMP_READY, DUMP_READ, ":loop;t3.0;[ready]");
    ck_shows(DUMP_RUNNING, DUMP_UNKNOWN, "");
    ck_shows(DUMP_WAITING, DUMP_READ, ":loop;t5.0");
    bool named = false;
    for (uint32_t i = 0; i < dump.tasks; i++) {
        ck_assert_int_eq(dump.task[i].tid, TID);
        named |= dump.task[i].name.length == 8 && memcmp(dump.text + dump.task[i].name.at, "five\\x3b", 8) == 0;
    }
    ck_assert(named);
    ck_assert_uint_eq(total(), before);
    dump_free(&dump);
    stop();
}
END_TEST

/* The same ticks with a dump between any two, and without. */
START_TEST(no_time_is_added_or_lost)
{
    uint64_t sum[2], of_first[2];
    for (int dumping = 0; dumping < 2; dumping++) {
        restart();
        start_hooked(_i, 12);
        for (uint32_t i = 0; i < FAKE_DEATHS; i++)
            fake_deaths[i] = 7;
        fake_births.counted = FAKE_FUTURE_TYPE_AT; /* so that most of them rest */
        fake_task_awaits(&world, 1, 1, 0);
        for (int i = 0; i < 12; i++) {
            if (i == 6)
                fake_task_is_done(&world, 3);
            if (i == 8)
                fake_task_waits(&world, 4, 2, fake_future_at(4));
            if (i % 3 == 2)
                still_tick(10 * MS, true);
            else
                tick(10 * MS);
            if (!dumping)
                continue;
            take();
            ck_assert_uint_eq(dump.tasks, i < 6 ? 12 : 11);
            dump_free(&dump);
        }
        sum[dumping] = total();
        of_first[dumping] = time_of("loop;t1.0;t0.0");
        stop();
        codes_forget(); /* frames are another profile's */
        codes_forget_frames();
    }
    ck_assert_uint_gt(sum[0], 0);
    ck_assert_uint_eq(sum[1], sum[0]);
    ck_assert_uint_eq(of_first[1], of_first[0]);
}
END_TEST

static void change_waiter(uintptr_t address, size_t length)
{
    static uint32_t turn;
    uintptr_t waiter = fake_task_at(0) + (uintptr_t)world.target.layout.task_waiter;
    if (address <= waiter && address + length > waiter)
        fake_task_waiter(&world, 0, turn++ % 3 ? fake_future_at(turn % 3) : 0);
}

START_TEST(one_that_changes_has_no_stack)
{
    restart();
    start(_i, 2);
    tick(10 * MS);
    fake_on_read(change_waiter);
    take();
    ck_assert_uint_eq(dump.tasks, 2);
    ck_shows(DUMP_CHANGED, DUMP_UNKNOWN, "");
    ck_shows(DUMP_WAITING, DUMP_READ, ":loop;t1.0");
    dump_free(&dump);
    stop();
}
END_TEST

/* Task 1 awaits it, and says otherwise when it is read. */
START_TEST(one_that_is_not_proven_stands_alone)
{
    restart();
    start(_i, 3);
    fake_task_awaits(&world, 1, 1, 0);
    fake_world_word(&world, fake_task_at(1) + FAKE_IN_ITER, world.target.layout.wrapper_inner, fake_future_at(1));
    tick(10 * MS);
    take();
    ck_assert_uint_eq(dump.tasks, 3);
    ck_shows(DUMP_WAITING, DUMP_READ, ":loop;t2.0");
    for (uint32_t i = 0; i < dump.tasks; i++)
        if (dump.task[i].how == DUMP_READ)
            ck_assert_ptr_null(strstr(fake_functions(stacks.profile, dump.stack[dump.task[i].first_stack]), "t0.0"));
    dump_free(&dump);
    stop();
}
END_TEST

START_TEST(a_loop_that_does_not_run)
{
    restart();
    start(_i, 2);
    fake_loop(&world, 1);
    fake_world_word(&world, fake_task_at(1), world.target.layout.future_loop, fake_loop_at(1));
    tick(10 * MS);
    take();
    ck_shows(DUMP_WAITING, DUMP_READ, ":loop;t0.0");
    ck_shows(DUMP_WAITING, DUMP_ALONE, ":t1.0");
    ck_assert_int_eq(dump.task[0].tid + dump.task[1].tid, TID);
    dump_free(&dump);
    stop();
}
END_TEST

START_TEST(it_is_given_up_for_whoever_waits)
{
    start(_i, 200);
    tick(10 * MS);
    for (looks_left = 0; looks_left < 4; looks_left++) {
        int looks = looks_left;
        take();
        ck_assert(dump.stopped);
        ck_assert_uint_lt(dump.tasks, 200);
        dump_free(&dump);
        looks_left = looks;
    }
    restart();
    take();
    ck_assert(!dump.stopped);
    dump_free(&dump);
    tick(10 * MS);
    ck_assert_uint_gt(total(), 0);
    stop();
}
END_TEST

/* How long the only task that waits is known to, in ms; 0: not known. */
static uint64_t waits_ms(void)
{
    uint64_t waits = 0;
    take();
    for (uint32_t i = 0; i < dump.tasks; i++)
        if (dump.task[i].state == DUMP_WAITING && dump.task[i].waits_ns != DUMP_NO_AGE)
            waits = dump.task[i].waits_ns / MS;
    dump_free(&dump);
    return waits;
}

START_TEST(how_long_one_waits)
{
    restart();
    start_hooked(_i, 1);
    for (uint32_t i = 0; i < FAKE_DEATHS; i++)
        fake_deaths[i] = 7;
    fake_births.counted = FAKE_FUTURE_TYPE_AT;
    tick(10 * MS);
    ck_assert_uint_eq(waits_ms(), 0); /* not laid to rest yet */
    for (int i = 0; i < 5; i++)
        tick(10 * MS);
    now += 5 * MS;
    uint64_t first = waits_ms();
    ck_assert_uint_ge(first, 30);
    ck_assert_uint_le(first, 55);
    for (int i = 0; i < 5; i++)
        tick(10 * MS);
    ck_assert_uint_eq(waits_ms(), first + 50); /* the dump between, which woke it, did not begin it anew */
    next_window();
    tick(10 * MS);
    ck_assert_uint_eq(waits_ms(), first + 60);
    fake_deaths_of(fake_future_at(0))[0]++; /* it may be another one by now */
    ck_assert_uint_eq(waits_ms(), 0);
    for (int i = 0; i < 5; i++)
        tick(10 * MS);
    uint64_t second = waits_ms();
    ck_assert_uint_gt(second, 0);
    ck_assert_uint_le(second, 40);
    fake_task_waits(&world, 0, 1, fake_future_at(1)); /* another one it is */
    ck_assert_uint_eq(waits_ms(), 0);
    stop();
}
END_TEST

START_TEST(how_long_one_waits_is_not_known_everywhere)
{
    restart();
    start_hooked(_i, 1); /* deaths are not counted */
    for (int i = 0; i < 6; i++)
        tick(10 * MS);
    ck_assert_uint_eq(waits_ms(), 0);
    stop();
}
END_TEST

START_TEST(without_the_metric)
{
    restart();
    start_with(_i, 2, (struct tasks_options){.depth = DEPTH, .metric = false, .clock_precise = true});
    tick(10 * MS);
    take();
    ck_assert(!dump.tasks_known);
    ck_assert_uint_eq(dump.tasks, 0);
    dump_free(&dump);
    stop();
}
END_TEST

Suite *suite_dump(void)
{
    Suite *suite = suite_create("dump");
    TCase *tasks_case = tcase_create("tasks");
    tcase_add_loop_test(tasks_case, each_task_as_it_is, FIRST_MINOR, AFTER_LAST_MINOR);
    tcase_add_loop_test(tasks_case, no_time_is_added_or_lost, FIRST_MINOR, AFTER_LAST_MINOR);
    tcase_add_loop_test(tasks_case, one_that_changes_has_no_stack, FIRST_MINOR, AFTER_LAST_MINOR);
    tcase_add_loop_test(tasks_case, one_that_is_not_proven_stands_alone, FIRST_MINOR, AFTER_LAST_MINOR);
    tcase_add_loop_test(tasks_case, a_loop_that_does_not_run, FIRST_MINOR, AFTER_LAST_MINOR);
    tcase_add_loop_test(tasks_case, it_is_given_up_for_whoever_waits, FIRST_MINOR, AFTER_LAST_MINOR);
    tcase_add_loop_test(tasks_case, how_long_one_waits, FIRST_MINOR, AFTER_LAST_MINOR);
    tcase_add_loop_test(tasks_case, how_long_one_waits_is_not_known_everywhere, FIRST_MINOR, AFTER_LAST_MINOR);
    tcase_add_loop_test(tasks_case, without_the_metric, FIRST_MINOR, AFTER_LAST_MINOR);
    suite_add_tcase(suite, tasks_case);
    return suite;
}
