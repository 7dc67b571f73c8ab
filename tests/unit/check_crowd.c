/* SPDX-License-Identifier: MIT
 *
 * crowd: whoever was not seen is where those were that were seen.
 */
#include "sampler/crowd.h"

#include <check.h>
#include <string.h>

enum { A = 11, B = 12, C = 13, KIND = 21, OTHER = 22, MS = 1000000 };

static struct crowd crowd;

static uint64_t ns_of(profile_stack stack)
{
    for (uint32_t i = 0; i < crowd.count; i++)
        if (crowd.places[i].seen.stack == stack)
            return crowd.places[i].ns;
    return 0;
}

START_TEST(nobody_was_seen)
{
    memset(&crowd, 0, sizeof crowd);
    ck_assert_uint_eq(crowd_place(&crowd, KIND, MS).stack, PROFILE_ROOT);
    crowd_add(&crowd, seen_at(A), KIND, 1, MS);
    ck_assert_uint_eq(crowd_place(&crowd, KIND, MS).stack, A);
    crowd_clear(&crowd);
    ck_assert_uint_eq(crowd_place(&crowd, KIND, MS).stack, PROFILE_ROOT);
}
END_TEST

/* Ticks say how the whole is shared, whatever the seen threads used themselves. */
START_TEST(what_is_missing_is_made_up_for)
{
    memset(&crowd, 0, sizeof crowd);
    crowd_add(&crowd, seen_at(A), KIND, 6, 60 * MS); /* long ones, met often */
    crowd_add(&crowd, seen_at(B), KIND, 3, 3 * MS);
    crowd_add(&crowd, seen_at(C), KIND, 1, 1 * MS);
    for (int i = 0; i < 936; i++)
        ck_assert_uint_ne(crowd_place(&crowd, KIND, MS).stack, PROFILE_ROOT);
    ck_assert_uint_eq(ns_of(A) + ns_of(B) + ns_of(C), 1000ull * MS);
    ck_assert_double_eq_tol((double)ns_of(A) / MS, 600, 1.5);
    ck_assert_double_eq_tol((double)ns_of(B) / MS, 300, 1.5);
    ck_assert_double_eq_tol((double)ns_of(C) / MS, 100, 1.5);
}
END_TEST

START_TEST(more_stacks_than_there_is_room_for)
{
    memset(&crowd, 0, sizeof crowd);
    for (int i = 0; i < 100000; i++) {
        crowd_add(&crowd, seen_at(A), KIND, 1, MS);
        crowd_add(&crowd, seen_at(1000 + (uint32_t)i), KIND, 1, MS);
        crowd_place(&crowd, KIND, 8 * MS);
    }
    ck_assert_uint_eq(crowd.count, CROWD_STACKS);
    uint64_t ticks = 0, ns = 0;
    for (uint32_t i = 0; i < crowd.count; i++) {
        ticks += crowd.places[i].ticks;
        ns += crowd.places[i].ns;
    }
    ck_assert_uint_eq(ticks, 200000);
    ck_assert_double_eq_tol((double)ns_of(A) / (double)ns, 0.5, 0.01);
}
END_TEST

/* Of another kind none takes a thread's time; where its kind is not known, any may. */
START_TEST(each_kind_speaks_for_its_own)
{
    memset(&crowd, 0, sizeof crowd);
    crowd_add(&crowd, seen_at(A), KIND, 6, 60 * MS);
    ck_assert_uint_eq(crowd_place(&crowd, OTHER, MS).stack, PROFILE_ROOT);
    ck_assert_uint_eq(ns_of(A), 60ull * MS);
    crowd_add(&crowd, seen_at(B), OTHER, 1, 2 * MS);
    crowd_add(&crowd, seen_at(C), OTHER, 1, 1 * MS);
    for (int i = 0; i < 97; i++)
        ck_assert_uint_ne(crowd_place(&crowd, OTHER, MS).stack, A);
    ck_assert_uint_eq(ns_of(B), 50ull * MS);
    ck_assert_uint_eq(ns_of(C), 50ull * MS);
    ck_assert_uint_eq(crowd_place(&crowd, 0, MS).stack, A); /* 6 of 8 ticks */
}
END_TEST

Suite *suite_crowd(void);
Suite *suite_crowd(void)
{
    Suite *suite = suite_create("crowd");
    TCase *tests = tcase_create("crowd");
    tcase_add_test(tests, nobody_was_seen);
    tcase_add_test(tests, what_is_missing_is_made_up_for);
    tcase_add_test(tests, each_kind_speaks_for_its_own);
    tcase_add_test(tests, more_stacks_than_there_is_room_for);
    suite_add_tcase(suite, tests);
    return suite;
}
