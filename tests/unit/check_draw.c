/* SPDX-License-Identifier: MIT
 * draw: rounds without replacement, in slices, whoever comes and goes. */
#include "sampler/draw.h"

#include <check.h>
#include <string.h>

#define MOST 64

Suite *suite_draw(void);

static struct draw draw;
static uint32_t times[DRAW_MAX]; /* each number was drawn */

static void begin(uint32_t count)
{
    memset(&draw, 0, sizeof draw);
    memset(times, 0, sizeof times);
    draw.random = 20261130;
    for (uint32_t i = 0; i < count; i++)
        draw_add(&draw, i);
}

/* A tick's slice; how many were drawn. */
static uint32_t tick(uint32_t most)
{
    uint32_t slice = draw_slice(&draw, most), number, got = 0;
    while (got < slice && draw_next(&draw, &number)) {
        times[number]++;
        got++;
    }
    return got;
}

START_TEST(all_are_drawn_where_they_are_few)
{
    begin(MOST);
    for (int i = 0; i < 10; i++)
        ck_assert_uint_eq(tick(MOST), MOST);
    for (int i = 0; i < MOST; i++)
        ck_assert_uint_eq(times[i], 10);
    begin(DRAW_MAX);
    ck_assert_uint_eq(tick(0), DRAW_MAX);
    begin(0);
    ck_assert_uint_eq(tick(MOST), 0);
}
END_TEST

/* Where there is room for all, a tick looks at all, not only at those that have come since. */
START_TEST(a_round_that_is_begun_anew_has_all)
{
    begin(8);
    for (int i = 0; i < 50; i++) {
        ck_assert_uint_eq(tick(MOST), 8);
        draw_begin_round(&draw);
        for (uint32_t n = 0; n < 4; n++)
            draw_remove(&draw, n);
        for (uint32_t n = 0; n < 4; n++)
            draw_add(&draw, n);
    }
}
END_TEST

START_TEST(each_once_a_round_in_equal_slices)
{
    static const uint32_t counts[] = {65, 100, 128, 129, 300, 5000, DRAW_MAX};
    for (size_t c = 0; c < sizeof counts / sizeof *counts; c++) {
        uint32_t count = counts[c], slices = (count + MOST - 1) / MOST;
        begin(count);
        for (uint32_t round = 1; round <= 3; round++) {
            for (uint32_t i = 0; i < slices; i++) {
                uint32_t got = tick(MOST);
                ck_assert_uint_le(got, MOST);
                ck_assert_uint_ge(got + slices, count / slices + 1); /* the last one has the rest */
            }
            for (uint32_t i = 0; i < count; i++)
                ck_assert_uint_eq(times[i], round);
        }
    }
}
END_TEST

/* In which slice of its round a number comes is chance: the same for all, whatever came
 * before. 49 × 4 degrees of freedom: 99.99 % of such sums are below 276. */
START_TEST(its_slice_is_chance)
{
    enum { NUMBERS = 50, SLICES = 5, ROUNDS = 5000 };
    static uint32_t found[NUMBERS][SLICES], again[SLICES][SLICES];
    uint32_t slice[NUMBERS] = {0};
    double expected = (double)ROUNDS / SLICES, chi = 0, chi_again = 0;
    begin(NUMBERS);
    for (int i = 0; i < ROUNDS * SLICES; i++) {
        uint32_t before[NUMBERS];
        memcpy(before, times, sizeof before);
        tick(NUMBERS / SLICES);
        for (int n = 0; n < NUMBERS; n++) {
            if (times[n] == before[n])
                continue;
            found[n][i % SLICES]++;
            again[slice[n]][i % SLICES]++;
            slice[n] = (uint32_t)(i % SLICES);
        }
    }
    for (int n = 0; n < NUMBERS; n++)
        for (int s = 0; s < SLICES; s++)
            chi += (found[n][s] - expected) * (found[n][s] - expected) / expected;
    ck_assert_msg(chi < 276 && chi > 120, "chi square %f", chi);
    /* nor in which one it came in the round before: 16 degrees, 99.99 % below 45 */
    expected = (double)ROUNDS * NUMBERS / SLICES / SLICES;
    for (int s = 0; s < SLICES; s++)
        for (int t = 0; t < SLICES; t++)
            chi_again += (again[s][t] - expected) * (again[s][t] - expected) / expected;
    ck_assert_msg(chi_again < 45, "chi square %f", chi_again);
}
END_TEST

/* What a tick had no time for comes first in the next one. */
START_TEST(a_slice_that_was_cut_short_goes_on)
{
    uint32_t number;
    begin(300);
    for (int i = 0; i < 300; i++) {
        ck_assert_uint_eq(draw_slice(&draw, MOST), 60);
        ck_assert(draw_next(&draw, &number));
        times[number]++;
    }
    for (int i = 0; i < 300; i++)
        ck_assert_uint_eq(times[i], 1);
    begin(10);
    ck_assert(draw_next(&draw, &number));
    times[number]++;
    ck_assert_uint_eq(tick(MOST), 9);
    for (int i = 0; i < 10; i++)
        ck_assert_uint_eq(times[i], 1);
}
END_TEST

/* Those that stay are drawn once a round all the same, and those that left never. */
START_TEST(others_come_and_go)
{
    static bool in[400];
    uint32_t rounds = 0;
    begin(100); /* these stay */
    for (int i = 0; i < 3000; i++) {
        uint32_t other = 100 + (uint32_t)(i * 7919 % 300);
        if (in[other])
            draw_remove(&draw, other);
        else
            draw_add(&draw, other);
        in[other] = !in[other];
        memset(times + 100, 0, 300 * sizeof *times);
        if (draw.drawn == draw.count || draw.drawn == 0)
            rounds++;
        tick(16);
        bool right = true;
        for (uint32_t n = 100; n < 400; n++)
            right = right && times[n] <= in[n];
        for (uint32_t n = 0; n < draw.count; n++)
            right = right && draw.place[draw.order[n]] == n;
        ck_assert(right);
    }
    for (int n = 0; n < 100; n++)
        ck_assert(times[n] == rounds || times[n] + 1 == rounds);
    for (uint32_t n = 0; n < 400; n++)
        if (n < 100 || in[n])
            draw_remove(&draw, n);
    ck_assert_uint_eq(draw.count, 0);
    ck_assert_uint_eq(draw.drawn, 0);
}
END_TEST

Suite *suite_draw(void)
{
    Suite *suite = suite_create("draw");
    TCase *core = tcase_create("core");
    tcase_set_timeout(core, 30);
    tcase_add_test(core, all_are_drawn_where_they_are_few);
    tcase_add_test(core, a_round_that_is_begun_anew_has_all);
    tcase_add_test(core, each_once_a_round_in_equal_slices);
    tcase_add_test(core, its_slice_is_chance);
    tcase_add_test(core, a_slice_that_was_cut_short_goes_on);
    tcase_add_test(core, others_come_and_go);
    suite_add_tcase(suite, core);
    return suite;
}
