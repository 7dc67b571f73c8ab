/* SPDX-License-Identifier: MIT */
#include "hooks/slot.h"
#include "hooks/clock.h"

#include <check.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static uintptr_t seen[SLOT_ARGS];
static int records;
static void *context_seen;

static void record(void *context, const uintptr_t args[SLOT_ARGS])
{
    memcpy(seen, args, sizeof seen);
    context_seen = context;
    records++;
}

typedef int (*three)(void *, void *, int);
typedef long (*six)(void *, long, int, void *, long, int);
typedef void (*none)(void);

static int original_calls;

static int original_three(void *a, void *b, int c)
{
    original_calls++;
    return a && !b ? -c : 1;
}

static long original_six(void *a, long b, int c, void *d, long e, int f)
{
    return (long)a + b + c + (long)d + e + f;
}

static void original_none(void)
{
    original_calls++;
}

START_TEST(a_hooked_slot_records_and_calls_on)
{
    void *place = (void *)original_three;
    struct slot_row row = {"three", "ippi", record, &place};
    int error = 1, mark;
    struct slot *slot = slot_prepare(&place, &row, &error);
    ck_assert(slot && error == 0);
    ck_assert_ptr_eq(place, (void *)original_three);
    ck_assert(slot_install(slot));
    ck_assert_ptr_ne(place, (void *)original_three);
    ck_assert_int_eq(((three)place)(&mark, NULL, 5), -5);
    ck_assert(records == 1 && original_calls == 1 && context_seen == &place);
    ck_assert_uint_eq(seen[0], (uintptr_t)&mark);
    ck_assert_uint_eq(seen[1], 0);
    ck_assert_int_eq((int)seen[2], 5);
    ((three)place)(NULL, NULL, -7);
    ck_assert_int_eq((intptr_t)seen[2], -7); /* widened with its sign */
}
END_TEST

START_TEST(six_arguments_and_none)
{
    void *place = (void *)original_six, *empty = (void *)original_none;
    struct slot_row row = {"six", "lplipli", record, NULL}, nothing = {"none", "v", record, NULL};
    int error;
    struct slot *slot = slot_prepare(&place, &row, &error), *void_slot = slot_prepare(&empty, &nothing, &error);
    ck_assert(slot_install(slot) && slot_install(void_slot));
    ck_assert_int_eq(((six)place)((void *)1, -2, -3, (void *)4, 1L << 40, 6), (1L << 40) + 6);
    ck_assert_int_eq((intptr_t)seen[1], -2);
    ck_assert_int_eq((intptr_t)seen[2], -3);
    ck_assert_int_eq((intptr_t)seen[4], 1L << 40);
    ((none)empty)();
    ck_assert(records == 2 && original_calls == 1);
}
END_TEST

START_TEST(a_slot_that_changed_meanwhile_is_left_alone)
{
    void *place = (void *)original_three;
    struct slot_row row = {"three", "ippi", record, NULL};
    int error;
    struct slot *slot = slot_prepare(&place, &row, &error);
    place = (void *)original_six;
    ck_assert(!slot_install(slot));
    ck_assert_ptr_eq(place, (void *)original_six);
}
END_TEST

START_TEST(bad_signatures_are_refused)
{
    void *place = (void *)original_three;
    const char *const bad[] = {"", "x", "ipq", "ipv", "ippppppp"};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        struct slot_row row = {"bad", bad[i], record, NULL};
        int error = 0;
        ck_assert_ptr_eq(slot_prepare(&place, &row, &error), NULL);
        ck_assert_int_eq(error, -EINVAL);
        ck_assert_int_eq(slot_call(place, bad[i], NULL, NULL), -EINVAL);
    }
}
END_TEST

START_TEST(functions_are_called_by_signature)
{
    uintptr_t args[6] = {1, (uintptr_t)-2, (uintptr_t)-3, 4, 5, 6}, result = 0;
    ck_assert_int_eq(slot_call((void *)original_six, "lplipli", args, &result), 0);
    ck_assert_int_eq((intptr_t)result, 11);
    uintptr_t few[3] = {(uintptr_t)&result, 0, 9};
    ck_assert_int_eq(slot_call((void *)original_three, "ippi", few, &result), 0);
    ck_assert_int_eq((intptr_t)result, -9);
    ck_assert_int_eq(slot_call((void *)original_none, "v", NULL, NULL), 0);
    ck_assert_int_eq(original_calls, 2);
}
END_TEST

START_TEST(a_closure_costs_tens_of_nanoseconds)
{
    void *place = (void *)original_three;
    struct slot_row row = {"three", "ippi", record, NULL};
    int error;
    ck_assert(slot_install(slot_prepare(&place, &row, &error)));
    uint64_t before = clock_self();
    for (int i = 0; i < 100000; i++)
        ((three)place)(&error, NULL, i);
    uint64_t each = (clock_self() - before) / 100000;
    if (getenv("APROF_TEST_FIGURES"))
        printf("slot: %lu ns a call\n", (unsigned long)each);
    ck_assert_uint_lt(each, 5000);
}
END_TEST

Suite *suite_slot(void)
{
    Suite *suite = suite_create("slot");
    TCase *tests = tcase_create("slot");
    tcase_add_test(tests, a_hooked_slot_records_and_calls_on);
    tcase_add_test(tests, six_arguments_and_none);
    tcase_add_test(tests, a_slot_that_changed_meanwhile_is_left_alone);
    tcase_add_test(tests, bad_signatures_are_refused);
    tcase_add_test(tests, functions_are_called_by_signature);
    tcase_add_test(tests, a_closure_costs_tens_of_nanoseconds);
    suite_add_tcase(suite, tests);
    return suite;
}
