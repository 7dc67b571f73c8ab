/* SPDX-License-Identifier: MIT */
#include "sampler/profile.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "hooks/clock.h"
#include "hooks/mem.h"
#include "tests/unit/stack_of_text.h"

static struct profile *profile;

static void setup_large(void)
{
    ck_assert_int_eq(mem_init((size_t)256 << 20), 0);
    profile = profile_new();
    ck_assert_ptr_nonnull(profile);
}

static void setup_small(void)
{
    ck_assert_int_eq(mem_init((size_t)2 << 20), 0);
    profile = profile_new();
    ck_assert_ptr_nonnull(profile);
}

static void teardown(void)
{
    profile_free(profile);
    ck_assert_uint_eq(mem_used(), 0);
}

static profile_frame intern(const char *text)
{
    return profile_intern(profile, text, strlen(text), 0);
}

/* A stack from its text. */
static profile_stack stack_of(const char *text)
{
    return stack_of_text(profile, text);
}

START_TEST(the_same_frames_are_the_same_stack)
{
    profile_stack a = stack_of("main;f;g"), b = stack_of("main;f;h");
    ck_assert_uint_eq(a, stack_of("main;f;g"));
    ck_assert_uint_ne(a, b);
    ck_assert_uint_eq(profile_parent(profile, a), profile_parent(profile, b));
    ck_assert_uint_eq(profile_leaf(profile, a), intern("g"));
    ck_assert_uint_ne(stack_of("f;main"), stack_of("main;f"));
}
END_TEST

START_TEST(texts_are_joined_and_cut_like_snprintf)
{
    char text[16];
    profile_stack stack = stack_of("main;f;g");
    for (size_t size = 0; size <= 10; size++) {
        memset(text, '#', sizeof text);
        ck_assert_uint_eq(profile_text(profile, stack, text, size), 8);
        ck_assert_int_eq(memcmp(text, "main;f;g", size < 8 ? size : 8), 0);
        ck_assert_int_eq(text[size < 8 ? size : 8], '#');
    }
    ck_assert_uint_eq(profile_text(profile, PROFILE_ROOT, text, sizeof text), 0);
}
END_TEST

START_TEST(flags_are_kept)
{
    profile_frame frame = profile_intern(profile, "f", 1, 7);
    ck_assert_uint_eq(profile_intern(profile, "f", 1, 9), frame);
    ck_assert_uint_eq(profile_frame_flags(profile, frame), 7);
    profile_stack stack = stack_of("f");
    ck_assert_uint_eq(profile_stack_flags(profile, stack), 0);
    profile_set_stack_flags(profile, stack, 3);
    ck_assert_uint_eq(profile_stack_flags(profile, stack), 3);
}
END_TEST

START_TEST(a_twin_is_kept_until_the_end_of_the_window)
{
    profile_stack stack = stack_of("main;loop;task"), twin = stack_of("task");
    ck_assert_uint_eq(profile_twin(profile, stack), PROFILE_ROOT);
    profile_set_twin(profile, stack, twin);
    ck_assert_uint_eq(profile_twin(profile, stack), twin);
    ck_assert_uint_eq(profile_twin(profile, twin), PROFILE_ROOT); /* not the other way round */
    ck_assert_uint_eq(profile_twin(profile, profile_parent(profile, stack)), PROFILE_ROOT);
    profile_set_twin(profile, stack, PROFILE_ROOT);
    ck_assert_uint_eq(profile_twin(profile, stack), PROFILE_ROOT);
    profile_set_twin(profile, stack, twin);
    profile_clear(profile, false);
    for (profile_stack any = 0; any < profile_nodes(profile); any++)
        ck_assert_uint_eq(profile_twin(profile, any), PROFILE_ROOT);
    ck_assert_uint_eq(profile_twin(profile, stack_of("main;loop;task")), PROFILE_ROOT);
}
END_TEST

START_TEST(times_add_up_and_nothing_drifts)
{
    profile_stack stack = stack_of("f");
    for (unsigned i = 0; i < 3000; i++)
        profile_add(profile, stack, METRIC_CPU, 333);
    ck_assert_uint_eq(profile_get_ns(profile, stack, METRIC_CPU), 999000);
    ck_assert_uint_eq(profile_get_ns(profile, stack, METRIC_WALL), 0);
    ck_assert_uint_eq(profile_total_ns(profile, METRIC_CPU), 999000);
    ck_assert_uint_eq(profile_stacks(profile, METRIC_CPU), 1);
    ck_assert_uint_eq(profile_stacks(profile, METRIC_WALL), 0);
    struct profile_change change;
    ck_assert(profile_take_change(profile, &change));
    ck_assert_uint_eq(change.us, 999);
    ck_assert(!profile_take_change(profile, &change));
}
END_TEST

START_TEST(less_than_a_microsecond_waits)
{
    struct profile_change change;
    profile_add(profile, stack_of("f"), METRIC_CPU, 600);
    ck_assert(!profile_take_change(profile, &change));
    ck_assert_uint_eq(profile_stacks(profile, METRIC_CPU), 0);
    profile_add(profile, stack_of("f"), METRIC_CPU, 600);
    ck_assert(profile_take_change(profile, &change));
    ck_assert_uint_eq(change.us, 1);
}
END_TEST

START_TEST(each_change_is_taken_once_and_grouped_by_metric)
{
    struct profile_change change;
    enum metric last = METRIC_CPU;
    unsigned taken = 0;
    for (unsigned i = 0; i < 10; i++) {
        char text[8];
        snprintf(text, sizeof text, "f%u", i % 5);
        profile_add(profile, stack_of(text), METRIC_WALL, 1000);
        profile_add(profile, stack_of(text), METRIC_CPU, 1000);
    }
    for (; profile_take_change(profile, &change); taken++) {
        ck_assert_int_ge(change.metric, last);
        ck_assert_uint_eq(change.us, 2);
        ck_assert_uint_eq(*change.cookie, 0);
        *change.cookie = taken + 1;
        last = change.metric;
    }
    ck_assert_uint_eq(taken, 10);
    ck_assert(!profile_has_changes(profile));
    profile_add(profile, stack_of("f0"), METRIC_CPU, 1000);
    ck_assert(profile_take_change(profile, &change));
    ck_assert_uint_eq(*change.cookie, 1);
}
END_TEST

START_TEST(what_is_put_back_comes_in_the_next_round)
{
    struct profile_change change;
    profile_add(profile, stack_of("f"), METRIC_CPU, 1000);
    profile_add(profile, stack_of("g"), METRIC_CPU, 1000);
    for (unsigned round = 0; round < 3; round++) {
        unsigned taken = 0;
        for (; profile_take_change(profile, &change); taken++)
            profile_mark_changed(profile, change.stack, change.metric);
        ck_assert_uint_eq(taken, 2);
        ck_assert(profile_has_changes(profile));
    }
    while (profile_take_change(profile, &change))
        *change.cookie = 5;
    profile_mark_changed(profile, stack_of("g"), METRIC_CPU); /* between rounds: at once */
    ck_assert(profile_take_change(profile, &change));
    ck_assert_uint_eq(change.stack, stack_of("g"));
    profile_mark_all(profile);
    ck_assert(profile_take_change(profile, &change));
    ck_assert_uint_eq(*change.cookie, 0);
    ck_assert(profile_take_change(profile, &change));
    ck_assert(!profile_take_change(profile, &change));
}
END_TEST

START_TEST(each_shows_every_stack_of_a_metric)
{
    profile_stack stack;
    uint32_t at = 0, seen = 0;
    uint64_t us, sum = 0;
    for (unsigned i = 0; i < 2000; i++) {
        char text[16];
        snprintf(text, sizeof text, "a;f%u", i);
        profile_add(profile, stack_of(text), i % 2 ? METRIC_CPU : METRIC_WALL, 1000 * i);
    }
    for (; profile_each(profile, METRIC_CPU, &at, &stack, &us); seen++)
        sum += us;
    ck_assert_uint_eq(seen, 1000);
    ck_assert_uint_eq(sum, 1000 * 1000);
    ck_assert_uint_eq(profile_stacks(profile, METRIC_CPU), 1000);
}
END_TEST

START_TEST(order_is_that_of_the_texts)
{
    static const char *const texts[] = {"a", "a b", "a;b", "a;b;c", "a;c", "a b;c", "ab", "a\x01;x", "b", "a;b c", "a;b~", "a;b~;c"};
    enum { COUNT = sizeof texts / sizeof *texts };
    for (size_t i = 0; i < COUNT; i++) {
        for (size_t k = 0; k < COUNT; k++) {
            int expected = strcmp(texts[i], texts[k]), order = profile_compare(profile, stack_of(texts[i]), stack_of(texts[k]));
            ck_assert_msg((expected < 0) == (order < 0) && (expected > 0) == (order > 0), "%s, %s", texts[i], texts[k]);
        }
    }
}
END_TEST

START_TEST(clearing_keeps_frames_but_no_stack)
{
    profile_frame frame = intern("f");
    struct profile_change change;
    for (unsigned i = 0; i < 5000; i++) {
        char text[16];
        snprintf(text, sizeof text, "f;g%u", i);
        profile_add(profile, stack_of(text), METRIC_CPU, 5000);
    }
    size_t before = mem_used();
    profile_clear(profile, false);
    ck_assert_uint_lt(mem_used(), before);
    ck_assert_uint_eq(profile_generation(profile), 0);
    ck_assert_uint_eq(profile_total_ns(profile, METRIC_CPU), 0);
    ck_assert_uint_eq(profile_stacks(profile, METRIC_CPU), 0);
    ck_assert_uint_eq(profile_nodes(profile), 2);
    ck_assert(!profile_take_change(profile, &change));
    ck_assert_uint_eq(intern("f"), frame);
    profile_clear(profile, true);
    ck_assert_uint_eq(profile_generation(profile), 1);
    ck_assert_uint_ne(intern("x"), 0);
    ck_assert_uint_eq(stack_of("[overflow]"), profile_overflow(profile));
}
END_TEST

START_TEST(frozen_takes_no_new_stack)
{
    profile_stack known = stack_of("a;b"), inner = profile_parent(profile, known), overflow = profile_overflow(profile);
    profile_add(profile, known, METRIC_CPU, 1000);
    profile_freeze(profile, true);
    ck_assert_uint_eq(stack_of("a;c"), overflow);
    ck_assert_uint_eq(stack_of("a;b"), known);
    profile_add(profile, known, METRIC_CPU, 1000);
    profile_add(profile, inner, METRIC_CPU, 3000); /* would be a new line */
    ck_assert_uint_eq(profile_get_ns(profile, known, METRIC_CPU), 2000);
    ck_assert_uint_eq(profile_get_ns(profile, overflow, METRIC_CPU), 3000);
    profile_freeze(profile, false);
    ck_assert_uint_ne(stack_of("a;c"), overflow);
    ck_assert_uint_eq(profile_overflows(profile), 0);
}
END_TEST

START_TEST(no_memory_sends_time_to_overflow)
{
    uint64_t added = 0;
    for (unsigned i = 0; i < 200000; i++, added += 1000) {
        char text[64];
        snprintf(text, sizeof text, "main (app.py:1);some_function_%u (app.py:%u)", i, i);
        profile_add(profile, stack_of(text), METRIC_CPU, 1000);
    }
    ck_assert_uint_gt(profile_overflows(profile), 0);
    ck_assert_uint_gt(profile_get_ns(profile, profile_overflow(profile), METRIC_CPU), 0);
    ck_assert_uint_eq(profile_total_ns(profile, METRIC_CPU), added);
    ck_assert_uint_le(mem_used(), mem_limit() - mem_limit() / 8);
    void *left = mem_alloc(128 << 10); /* room to sort in */
    ck_assert_ptr_nonnull(left);
    mem_free(left);
    ck_assert_uint_eq(profile_push(profile, profile_overflow(profile), intern("main (app.py:1)")), profile_overflow(profile));
    ck_assert_uint_eq(profile_push(profile, PROFILE_ROOT, 0), profile_overflow(profile));
    profile_clear(profile, true);
    ck_assert_uint_ne(stack_of("a;b"), profile_overflow(profile));
}
END_TEST

START_TEST(too_many_frames_begin_a_new_generation)
{
    for (unsigned i = 0; i < 16000; i++) {
        char text[128];
        int length = snprintf(text, sizeof text, "a_rather_long_name_of_a_function_in_some_module_number_%u (x.py:%u)", i, i);
        profile_intern(profile, text, (size_t)length, 0);
    }
    profile_clear(profile, false);
    ck_assert_uint_eq(profile_generation(profile), 1);
    ck_assert_uint_lt(mem_used(), 256 << 10);
}
END_TEST

START_TEST(a_hundred_thousand_stacks_are_cheap)
{
    enum { STACKS = 100000, DEPTH = 20 };
    char name[48];
    profile_frame frames[512];
    for (unsigned i = 0; i < 512; i++)
        frames[i] = profile_intern(profile, name, (size_t)snprintf(name, sizeof name, "function_%u (module.py:%u)", i, i), 0);
    uint64_t begin = clock_self();
    for (unsigned round = 0; round < 2; round++) {
        for (uint32_t i = 0; i < STACKS; i++) {
            profile_stack stack = PROFILE_ROOT;
            for (uint32_t depth = 0; depth < DEPTH; depth++)
                stack = profile_push(profile, stack, frames[(i >> (depth < 17 ? 17 - depth : 0)) % 512]);
            profile_add(profile, stack, METRIC_CPU, 10000);
        }
    }
    uint64_t ns = clock_self() - begin;
    printf("profile: %u stacks of %u frames, %u nodes: %lu ns a frame, %zu KiB\n", STACKS, DEPTH, profile_nodes(profile),
           (unsigned long)(ns / (2 * STACKS * DEPTH)), mem_used() >> 10);
    fflush(stdout);
    ck_assert_uint_eq(profile_stacks(profile, METRIC_CPU), STACKS);
    ck_assert_uint_eq(profile_total_ns(profile, METRIC_CPU), 2ull * STACKS * 10000);
}
END_TEST

Suite *suite_profile(void)
{
    Suite *suite = suite_create("profile");
    TCase *large = tcase_create("large heap"), *small = tcase_create("small heap");
    tcase_add_checked_fixture(large, setup_large, teardown);
    tcase_set_timeout(large, 60);
    tcase_add_test(large, the_same_frames_are_the_same_stack);
    tcase_add_test(large, texts_are_joined_and_cut_like_snprintf);
    tcase_add_test(large, flags_are_kept);
    tcase_add_test(large, a_twin_is_kept_until_the_end_of_the_window);
    tcase_add_test(large, times_add_up_and_nothing_drifts);
    tcase_add_test(large, less_than_a_microsecond_waits);
    tcase_add_test(large, each_change_is_taken_once_and_grouped_by_metric);
    tcase_add_test(large, what_is_put_back_comes_in_the_next_round);
    tcase_add_test(large, each_shows_every_stack_of_a_metric);
    tcase_add_test(large, order_is_that_of_the_texts);
    tcase_add_test(large, clearing_keeps_frames_but_no_stack);
    tcase_add_test(large, frozen_takes_no_new_stack);
    tcase_add_test(large, a_hundred_thousand_stacks_are_cheap);
    tcase_add_checked_fixture(small, setup_small, teardown);
    tcase_set_timeout(small, 60);
    tcase_add_test(small, no_memory_sends_time_to_overflow);
    tcase_add_test(small, too_many_frames_begin_a_new_generation);
    suite_add_tcase(suite, large);
    suite_add_tcase(suite, small);
    return suite;
}
