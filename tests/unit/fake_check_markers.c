/* SPDX-License-Identifier: MIT
 * markers: numbers for texts, and the tick over all tasks where their names are asked for. */
#include "sampler/markers.h"

#include "tests/unit/fake_tasks.h"

Suite *suite_markers(void);

static void start_named(int minor, uint32_t count)
{
    markers_ask_for_tasks(true);
    markers_begin_window();
    markers_end_keeping();
    start_hooked(minor, count);
    for (uint32_t i = 0; i < FAKE_DEATHS; i++)
        fake_deaths[i] = 7;
    fake_births.counted = FAKE_FUTURE_TYPE_AT; /* they may rest */
}

static void window_ends(void)
{
    markers_begin_window();
    next_window();
    markers_end_keeping();
}

/* --- numbers --- */

static marker_id number_of(const char *name)
{
    return markers_of_task(name, (uint32_t)strlen(name));
}

static const char *frame_of(marker_id number)
{
    static char text[256];
    profile_stack stack = profile_push(stacks.profile, PROFILE_ROOT, markers_frame(stacks.profile, number));
    text[profile_text(stacks.profile, stack, text, sizeof text - 1)] = '\0';
    return text;
}

START_TEST(equal_names_have_one_number)
{
    start_named(13, 0);
    marker_id a = number_of("a"), b = number_of("b");
    ck_assert_uint_ne(a, 0);
    ck_assert_uint_ne(a, b);
    ck_assert_uint_eq(number_of("a"), a);
    ck_assert_str_eq(frame_of(a), "[task a]");
    ck_assert_str_eq(frame_of(b), "[task b]");
    ck_assert_uint_eq(number_of(""), 0);
    ck_assert_uint_eq(markers_frame(stacks.profile, 0), 0);
    ck_assert_uint_ne(markers_hash(a), markers_hash(b));
    stop();
}
END_TEST

START_TEST(of_too_many_the_rest_are_one)
{
    char name[16];
    start_named(13, 0);
    for (int i = 0; i < 3 * MARKERS_MOST; i++) {
        snprintf(name, sizeof name, "n%d", i);
        marker_id number = number_of(name);
        ck_assert_uint_ne(number, 0);
        ck_assert_str_eq(frame_of(number) + 6, i < MARKERS_MOST ? strcat(name, "]") : "~]");
    }
    struct counters counters = {0};
    markers_count(&counters);
    ck_assert_uint_eq(counters.limits[LIMIT_task_names], 2 * MARKERS_MOST);
    markers_count(&counters);
    ck_assert_uint_eq(counters.limits[LIMIT_task_names], 2 * MARKERS_MOST);
    stop();
}
END_TEST

START_TEST(what_is_kept_has_its_number_in_the_next_window)
{
    char name[16];
    marker_id kept[MARKERS_MOST / 7 + 1];
    start_named(13, 0);
    for (int i = 0; i < MARKERS_MOST; i++) {
        snprintf(name, sizeof name, "n%d", i);
        marker_id number = number_of(name);
        if (i % 7 == 0)
            kept[i / 7] = number;
    }
    markers_begin_window();
    for (int i = 0; i <= (MARKERS_MOST - 1) / 7; i++)
        markers_keep(kept[i]);
    markers_keep(0);
    markers_keep(MARKERS_MOST + 1);
    markers_end_keeping();
    for (int i = 0; i < MARKERS_MOST - 1 - (MARKERS_MOST - 1) / 7; i++) {
        snprintf(name, sizeof name, "m%d", i);
        marker_id number = number_of(name);
        ck_assert_str_eq(frame_of(number) + 6, strcat(name, "]"));
    }
    ck_assert_str_eq(frame_of(number_of("one more")), "[task ~]");
    for (int i = 0; i <= (MARKERS_MOST - 1) / 7; i++) {
        snprintf(name, sizeof name, "n%d", 7 * i);
        ck_assert_uint_eq(number_of(name), kept[i]);
        ck_assert_str_eq(frame_of(kept[i]) + 6, strcat(name, "]"));
    }
    stop();
}
END_TEST

/* --- the tick over all tasks --- */

START_TEST(tasks_stand_on_their_names)
{
    start_named(_i, 4);
    fake_task_is_called(&world, 0, "leaf 1");
    fake_task_is_called(&world, 1, "leaf 2");
    fake_task_is_called(&world, 2, "awaits");
    fake_task_waiter(&world, 3, 0);
    fake_task_awaits(&world, 2, 1, 1);
    tick(10 * MS);
    ck_assert_uint_eq(time_of("loop;[task leaf *];t0.0"), 10 * MS);
    ck_assert_uint_eq(time_of("loop;[task awaits];t2.0;[task leaf *];t1.0"), 10 * MS);
    ck_assert_uint_eq(time_of("loop;t3.0;[ready]"), 10 * MS); /* its name cannot be read */
    ck_assert_uint_eq(total(), 30 * MS);
    stop();
}
END_TEST

START_TEST(a_task_stands_on_the_name_of_its_creator)
{
    start_named(_i, 2);
    fake_task_is_called(&world, 0, "creator");
    fake_task_is_called(&world, 1, "made");
    fake_birth(fake_birth_of(fake_task_at(0), 0, 0));
    fake_birth(fake_birth_of(fake_task_at(1), fake_maker(fake_coro_at(0, 0)), 0));
    tick(10 * MS);
    ck_assert_uint_eq(time_of("loop;[task creator];t0.0;[task made];t1.0"), 10 * MS);
    ck_assert_uint_eq(time_of("loop;[task creator];t0.0"), 10 * MS);
    stop();
}
END_TEST

/* Alike but for their names they rest in groups of their own; also of a name that changes while they rest. */
START_TEST(those_at_rest_are_told_apart)
{
    kinds = 1;
    start_named(_i, 40);
    kinds = 0;
    for (uint32_t i = 0; i < 40; i++)
        fake_task_is_called(&world, i, i % 2 ? "odd 1" : "even 2");
    for (int i = 0; i < 4; i++)
        tick(10 * MS);
    ck_assert_uint_eq(time_of("loop;[task odd *];t0.0"), 20 * 40 * MS);
    ck_assert_uint_eq(time_of("loop;[task even *];t0.0"), 20 * 40 * MS);
    fake_task_is_called(&world, 7, "renamed");
    tick(1000 * MS); /* by now all were verified */
    window_ends();
    tick(10 * MS);
    ck_assert_uint_eq(time_of("loop;[task renamed];t0.0"), 10 * MS);
    ck_assert_uint_eq(time_of("loop;[task odd *];t0.0"), 19 * 10 * MS);
    ck_assert_uint_eq(time_of("loop;[task even *];t0.0"), 20 * 10 * MS);
    stop();
}
END_TEST

START_TEST(names_of_those_that_stay_are_kept)
{
    start_named(_i, 2);
    fake_task_is_called(&world, 0, "stays");
    fake_task_is_called(&world, 1, "ends");
    tick(10 * MS);
    tick(10 * MS);
    fake_task_is_done(&world, 1);
    tick(10 * MS);
    window_ends();
    tick(10 * MS);
    ck_assert_uint_eq(time_of("loop;[task stays];t0.0"), 10 * MS);
    struct counters counters = {0};
    char name[16];
    for (int i = 0; i < MARKERS_MOST - 1; i++) {
        snprintf(name, sizeof name, "n%d", i);
        number_of(name);
    }
    markers_count(&counters);
    ck_assert_uint_eq(counters.limits[LIMIT_task_names], 0);
    stop();
}
END_TEST

START_TEST(a_name_is_cut_with_the_root)
{
    start_named(_i, 0);
    tasks_free(tasks);
    start_with(_i, 4, (struct tasks_options){.depth = 4, .metric = true});
    for (uint32_t i = 0; i < 4; i++)
        fake_task_is_called(&world, i, "n");
    for (uint32_t i = 0; i < 3; i++)
        fake_task_awaits(&world, i, 1, i + 1);
    tick(10 * MS);
    ck_assert_uint_eq(time_of("[truncated 5];[task n];t2.0;[task n];t3.0"), 10 * MS);
    stop();
}
END_TEST

START_TEST(nobody_asked)
{
    start_named(_i, 1);
    markers_ask_for_tasks(false);
    fake_task_is_called(&world, 0, "a");
    tick(10 * MS);
    ck_assert_uint_eq(time_of("loop;t0.0"), 10 * MS);
    stop();
}
END_TEST

Suite *suite_markers(void)
{
    const TTest *const once[] = {equal_names_have_one_number, of_too_many_the_rest_are_one, what_is_kept_has_its_number_in_the_next_window};
    const TTest *const each[] = {
        tasks_stand_on_their_names, a_task_stands_on_the_name_of_its_creator, those_at_rest_are_told_apart, names_of_those_that_stay_are_kept,
        a_name_is_cut_with_the_root, nobody_asked,
    };
    Suite *suite = suite_create("markers");
    TCase *numbers = tcase_create("numbers"), *tcase = tcase_create("each version");
    for (size_t i = 0; i < sizeof once / sizeof *once; i++)
        tcase_add_test(numbers, once[i]);
    for (size_t i = 0; i < sizeof each / sizeof *each; i++)
        tcase_add_loop_test(tcase, each[i], FIRST_MINOR, AFTER_LAST_MINOR);
    suite_add_tcase(suite, numbers);
    suite_add_tcase(suite, tcase);
    return suite;
}
