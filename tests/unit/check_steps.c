/* SPDX-License-Identifier: MIT
 * steps: bounds of a loop's steps from looks, against steps that are known. */
#include "sampler/steps.h"

#include <check.h>

Suite *suite_steps(void);

#define MS 1000000ull

static struct steps steps;
static struct steps_time over;

static void begin(uint64_t born)
{
    steps = (struct steps){.looked_ns = born};
    over = (struct steps_time){0};
}

/* Takes 10 ns. */
static bool look(enum turns_found found, uint64_t turn, uint64_t handle, uint64_t at)
{
    struct steps_look taken = {found, {turn, handle, turn}, at, at + 10};
    return steps_take(&steps, &taken, &over);
}

/* Handle of the turn that began at that time, by the loop's clock. */
static bool step(uint64_t turn, uint64_t handle, uint64_t at)
{
    return look(TURNS_STEP, turn, handle, at);
}

static bool none(uint64_t at)
{
    return look(TURNS_NONE, 0, 0, at);
}

static void need_over(uint64_t least, uint64_t most)
{
    ck_assert_uint_eq(over.least_ns, least);
    ck_assert_uint_eq(over.most_ns, most);
}

/* The first of a turn begins as the loop leaves its selector; it was seen last at 50, and no more at 60. */
START_TEST(the_first_of_a_turn)
{
    begin(1 * MS);
    ck_assert(none(5 * MS));
    ck_assert(step(12 * MS, 0, 20 * MS));
    need_over(0, 0);
    ck_assert(step(12 * MS, 0, 50 * MS));
    ck_assert(none(60 * MS));
    need_over(38 * MS, 48 * MS + 10);
    ck_assert(none(70 * MS));
    need_over(0, 0);
}
END_TEST

START_TEST(one_that_is_seen_once)
{
    begin(1 * MS);
    ck_assert(step(12 * MS, 0, 20 * MS));
    ck_assert(none(30 * MS));
    need_over(8 * MS, 18 * MS + 10);
    ck_assert(step(31 * MS, 3, 40 * MS)); /* when it began nobody knows */
    ck_assert(none(50 * MS));
    need_over(0, 0);
}
END_TEST

/* It began behind the look that found another one. */
START_TEST(a_later_one_of_a_turn)
{
    begin(1 * MS);
    ck_assert(step(12 * MS, 0, 20 * MS));
    ck_assert(step(12 * MS, 1, 30 * MS));
    need_over(8 * MS, 18 * MS + 10);
    ck_assert(step(12 * MS, 1, 60 * MS));
    ck_assert(step(12 * MS, 2, 70 * MS));
    need_over(30 * MS - 10, 50 * MS + 10);
}
END_TEST

/* When the loop left its selector again the step was over. */
START_TEST(the_next_turn_is_the_end)
{
    begin(1 * MS);
    ck_assert(step(12 * MS, 0, 20 * MS));
    ck_assert(step(23 * MS, 0, 30 * MS));
    need_over(8 * MS, 11 * MS);
}
END_TEST

/* Short ones back to back, in turns of their own or in one, are none that is long. */
START_TEST(back_to_back)
{
    uint64_t at = 10 * MS;
    begin(1 * MS);
    for (uint64_t i = 0; i < 100; i++, at += 10 * MS) {
        ck_assert(step(at - MS / 2, 0, at));
        ck_assert_uint_le(over.least_ns, MS);
    }
    for (uint64_t i = 1; i < 100; i++, at += 10 * MS) {
        ck_assert(step(1000 * MS - MS / 2, i, at));
        ck_assert_uint_le(over.least_ns, MS);
    }
}
END_TEST

/* A look that cannot tell says nothing; the same step behind it proves that it went on. */
START_TEST(what_cannot_be_told)
{
    begin(1 * MS);
    ck_assert(step(12 * MS, 0, 20 * MS));
    ck_assert(!look(TURNS_UNKNOWN, 0, 0, 30 * MS));
    need_over(0, 0);
    ck_assert(step(12 * MS, 0, 40 * MS));
    ck_assert(!look(TURNS_UNKNOWN, 0, 0, 50 * MS));
    ck_assert(none(60 * MS));
    need_over(28 * MS, 48 * MS + 10);
}
END_TEST

/* Turns that began before the look before, or have yet to come, are by another clock; or were under way when we came. */
START_TEST(another_clock)
{
    begin(50 * MS);
    ck_assert(!step(40 * MS, 0, 60 * MS));
    ck_assert(!step(40 * MS, 0, 70 * MS));
    ck_assert(!step(40 * MS, 1, 80 * MS));
    need_over(0, 0);
    ck_assert(!step(1000 * MS, 0, 90 * MS));
    ck_assert(!step(1000 * MS, 0, 100 * MS));
    ck_assert(none(110 * MS));
    need_over(0, 0);
    ck_assert(step(115 * MS, 0, 120 * MS));
    ck_assert(none(130 * MS));
    ck_assert(!step(115 * MS, 0, 140 * MS)); /* it stands: this is another turn */
    ck_assert(!step(115 * MS, 0, 150 * MS));
    ck_assert(none(160 * MS));
    need_over(0, 0);
}
END_TEST

START_TEST(as_far_as_it_has_come)
{
    begin(1 * MS);
    ck_assert_uint_eq(steps_so_far(&steps, 5 * MS).least_ns, 0);
    ck_assert(step(12 * MS, 0, 20 * MS));
    struct steps_time time = steps_so_far(&steps, 25 * MS);
    ck_assert_uint_eq(time.least_ns, 8 * MS);
    ck_assert_uint_eq(time.most_ns, 13 * MS);
    ck_assert(none(30 * MS));
    ck_assert_uint_eq(steps_so_far(&steps, 35 * MS).least_ns, 0);
}
END_TEST

/* Nobody ran: it is where it was. */
START_TEST(a_thread_that_stands)
{
    begin(1 * MS);
    ck_assert(step(12 * MS, 0, 20 * MS));
    steps_stand(&steps, 15 * MS); /* older than the look */
    steps_stand(&steps, 40 * MS);
    ck_assert(none(50 * MS));
    need_over(28 * MS, 38 * MS + 10);
    steps_stand(&steps, 60 * MS);
    ck_assert(!step(55 * MS, 0, 70 * MS));
    need_over(0, 0);
}
END_TEST

START_TEST(the_stack_that_was_seen_mostly)
{
    begin(1 * MS);
    ck_assert(step(12 * MS, 0, 20 * MS));
    steps_saw(&steps, 7, 11 * MS); /* before it began */
    steps_saw(&steps, 7, 25 * MS); /* it may be over */
    ck_assert_uint_eq(steps.stack, PROFILE_ROOT);
    steps_saw(&steps, 8, 13 * MS);
    steps_saw(&steps, 8, 13 * MS); /* the same sight */
    steps_saw(&steps, 9, 14 * MS);
    steps_saw(&steps, 9, 15 * MS);
    ck_assert_uint_eq(steps.stack, 9);
    steps_saw(&steps, 9, 16 * MS);
    steps_saw(&steps, 8, 17 * MS);
    ck_assert_uint_eq(steps.stack, 9);
    ck_assert(none(30 * MS));
    ck_assert_uint_eq(over.stack, 9);
    ck_assert(step(35 * MS, 0, 40 * MS));
    ck_assert_uint_eq(steps.stack, PROFILE_ROOT);
}
END_TEST

Suite *suite_steps(void)
{
    const TTest *const tests[] = {the_first_of_a_turn, one_that_is_seen_once, a_later_one_of_a_turn, the_next_turn_is_the_end, back_to_back,
                                  what_cannot_be_told, another_clock, as_far_as_it_has_come, a_thread_that_stands, the_stack_that_was_seen_mostly};
    Suite *suite = suite_create("steps");
    TCase *tcase = tcase_create("looks");
    for (size_t i = 0; i < sizeof tests / sizeof *tests; i++)
        tcase_add_test(tcase, tests[i]);
    suite_add_tcase(suite, tcase);
    return suite;
}
