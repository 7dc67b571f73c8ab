/* SPDX-License-Identifier: MIT
 *
 * The quantiles against tables; the variance of a ratio against its formula; then
 * simulated profiles, whose truth is known: how often two of the same program are
 * said to differ, and how often a planted change is found. The numbers of cases are
 * such that the stated rates, and three standard errors, decide.
 */
#include <check.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "output/compare.h"
#include "output/noise.h"

Suite *suite_noise(void);

START_TEST(quantiles_are_those_of_tables)
{
    static const struct { double tail, freedom, t; } cases[] = {
        { 0.025, 1, 12.7062 },  { 0.025, 2, 4.3027 },  { 0.025, 4, 2.7764 },   { 0.005, 4, 4.6041 },  { 0.0005, 4, 8.6103 },
        { 0.025, 8, 2.3060 },   { 0.0005, 8, 5.0413 }, { 0.025, 30, 2.0423 },  { 0.005, 30, 2.7500 }, { 0.0005, 30, 3.6460 },
        { 0.025, 1e9, 1.9600 }, { 0.005, 1e9, 2.5758 }, { 0.0005, 1e9, 3.2905 }, { 0.5, 7, 0 },
    };
    for (size_t at = 0; at < sizeof cases / sizeof *cases; at++)
        ck_assert_double_eq_tol(noise_t(cases[at].tail, cases[at].freedom), cases[at].t, 1e-4 * fmax(1, cases[at].t));
    for (double freedom = 0.5; freedom < 100; freedom *= 1.3)
        ck_assert_double_gt(noise_t(1e-4, freedom), noise_t(1e-4, freedom * 1.3));
}
END_TEST

/* Blocks of parts x and wholes T, added up. */
static void add(struct noise_side *side, struct noise_part *part, double x, double whole)
{
    side->count++;
    side->whole += whole;
    side->squares += whole * whole;
    part->sum += x;
    part->squares += x * x;
    part->cross += x * whole;
}

START_TEST(what_blocks_show_is_the_variance_of_a_ratio)
{
    struct noise_side side = { .blocks = NOISE_RUNS, .runs = 3 };
    struct noise_part part = { 0 };
    add(&side, &part, 10, 100);
    add(&side, &part, 30, 200);
    add(&side, &part, 20, 100);
    double share = 60.0 / 400, deviations = pow(10 - 15, 2) + pow(30 - 30, 2) + pow(20 - 15, 2);
    ck_assert_double_eq_tol(noise_share(&side, &part), share, 1e-12);
    ck_assert_double_eq_tol(noise_seen(&side, &part), 3.0 / 2 * deviations / (400.0 * 400), 1e-12);
}
END_TEST

START_TEST(a_share_that_never_varies_has_no_noise_where_it_is_all_or_nothing)
{
    struct noise_side sides[2] = { { .blocks = NOISE_LOOKS, .count = 1, .whole = 1e6, .squares = 1e12, .runs = 1, .looks = 100 } };
    struct noise_part parts[2] = { { 1e6, 1e12, 1e12 }, { 1e6, 1e12, 1e12 } };
    sides[1] = sides[0];
    ck_assert_double_eq_tol(noise_bound(sides, parts, 1, 1, 10), 0, 1e-12);
    ck_assert_double_gt(noise_bound(sides, parts, 0.5, 1, 10), 0.1);
}
END_TEST

START_TEST(without_looks_one_block_decides_nothing)
{
    struct noise_side sides[2] = { { .blocks = NOISE_LOOKS, .count = 1, .whole = 1e6, .squares = 1e12, .runs = 1 } };
    struct noise_part parts[2] = { { 1e5, 1e10, 1e11 }, { 2e5, 4e10, 2e11 } };
    sides[1] = sides[0];
    ck_assert(isinf(noise_bound(sides, parts, 0.15, 1, 1)));
}
END_TEST

START_TEST(more_tests_fewer_runs_and_fewer_looks_widen_a_bound)
{
    struct noise_side few[2], many[2];
    struct noise_part few_parts[2] = { { 0 } }, many_parts[2] = { { 0 } };
    for (int at = 0; at < 2; at++) {
        few[at] = many[at] = (struct noise_side){ .blocks = NOISE_RUNS, .looks = 1000 };
        for (int run = 0; run < 12; run++) {
            add(&many[at], &many_parts[at], 10 + run % 2, 100);
            if (run < 2)
                add(&few[at], &few_parts[at], 10 + run % 2, 100);
        }
        few[at].runs = 2;
        many[at].runs = 12;
    }
    ck_assert_double_gt(noise_bound(few, few_parts, 0.1, 1, 20), noise_bound(many, many_parts, 0.1, 1, 20));
    ck_assert_double_gt(noise_bound(many, many_parts, 0.1, 1, 40), noise_bound(many, many_parts, 0.1, 1, 20));
    double before = noise_bound(many, many_parts, 0.1, 1, 20);
    many[0].looks = 50;
    ck_assert_double_gt(noise_bound(many, many_parts, 0.1, 1, 20), before);
}
END_TEST

/* ---- simulated profiles --------------------------------------------------- */

#define FUNCTIONS 20

struct world {
    int runs;          /* a side */
    double looks;      /* of a run */
    double inflation;  /* of their variance */
    double drift;      /* of a function's speed, from run to run */
    double planted;    /* points that function 3 has more on the new side */
};

static uint64_t random_state;

static double uniform(void)
{
    random_state ^= random_state << 13;
    random_state ^= random_state >> 7;
    random_state ^= random_state << 17;
    return ((double)(random_state >> 11) + 0.5) / 9007199254740992.0;
}

static double normal(void)
{
    return sqrt(-2 * log(uniform())) * cos(2 * 3.14159265358979323846 * uniform());
}

/* From 21 % down to 0.5 %: a few that matter and many that do not, as profiles are. */
static void true_shares(double shares[FUNCTIONS], double planted)
{
    double all = 0;
    for (int f = 0; f < FUNCTIONS; f++)
        all += shares[f] = pow(0.82, f);
    for (int f = 0; f < FUNCTIONS; f++)
        shares[f] *= (1 - planted) / all;
    shares[3] += planted;
}

static void stack_add(struct tally *tally, int f, double count)
{
    char stack[64];
    struct reader_line line = { .metric = "cpu", .stack = stack, .count = count > 0 ? (uint64_t)count : 0 };
    line.length = (size_t)snprintf(stack, sizeof stack, "main (a.py:1);f%d (a.py:%d)", f, f + 2);
    tally_line(tally, &line);
}

static void run_add(struct tally *tally, const struct world *world, double planted)
{
    double shares[FUNCTIONS], all = 0, whole = 1e6 * (0.8 + 0.4 * uniform());
    true_shares(shares, planted);
    for (int f = 0; f < FUNCTIONS; f++)
        all += shares[f] *= exp(world->drift * normal());
    for (int f = 0; f < FUNCTIONS; f++) {
        double share = shares[f] / all, error = sqrt(world->inflation * share / world->looks) * normal();
        stack_add(tally, f, whole * (share + error));
    }
    tally_block_end(tally);
}

static struct noise_side side_of(struct tally *tally, const struct world *world, double planted)
{
    for (int run = 0; run < world->runs; run++)
        run_add(tally, world, planted);
    return (struct noise_side){ .blocks = world->runs > 1 ? NOISE_RUNS : NOISE_LOOKS, .count = world->runs,
                                .whole = (double)tally_sum(tally), .squares = tally_blocks_squares(tally), .runs = world->runs,
                                .looks = world->looks * world->runs };
}

/* Whether anything is said to have grown, or that function. */
static bool has_grown(const struct compare *compare, const char *name)
{
    for (size_t at = 0; at < compare->count; at++)
        for (int amount = 0; amount < COMPARE_AMOUNTS; amount++) {
            const struct compare_row *row = &compare->rows[at];
            const struct compare_share *share = &row->amounts[amount];
            if (compare_is_beyond(share) && share->change > 0 && (!name || !strcmp(row->name, name)))
                return true;
        }
    return false;
}

static int times_grown(const struct world *world, int times, const char *name)
{
    int grown = 0;
    random_state = 88172645463325252u;
    for (int at = 0; at < times; at++) {
        struct tally *tallies[2] = { tally_new(TALLY_FUNCTION), tally_new(TALLY_FUNCTION) };
        struct noise_side sides[2] = { side_of(tallies[0], world, 0), side_of(tallies[1], world, world->planted) };
        struct compare *compare = compare_new(tallies, sides);
        compare_bound(compare, compare->tests);
        grown += has_grown(compare, name);
        compare_free(compare);
        tally_free(tallies[0]);
        tally_free(tallies[1]);
    }
    return grown;
}

static int upper(int times, double rate)
{
    return (int)(times * rate + 3 * sqrt(times * rate * (1 - rate)));
}

START_TEST(what_has_not_changed_is_let_through)
{
    static const struct world worlds[] = {
        { .runs = 1, .looks = 100, .inflation = 1.3, .drift = 0.05 }, { .runs = 1, .looks = 5000, .inflation = 2, .drift = 0.1 },
        { .runs = 2, .looks = 500, .inflation = 1.3, .drift = 0.05 }, { .runs = 3, .looks = 2000, .inflation = 1.3, .drift = 0.1 },
        { .runs = 5, .looks = 2000, .inflation = 1, .drift = 0 },     { .runs = 5, .looks = 2000, .inflation = 1.3, .drift = 0.3 },
        { .runs = 5, .looks = 100, .inflation = 5, .drift = 0.05 },   { .runs = 20, .looks = 2000, .inflation = 1.3, .drift = 0.02 },
        { .runs = 100, .looks = 2000, .inflation = 4, .drift = 0.2 },
    };
    const struct world *world = &worlds[_i];
    int times = 400, grown = times_grown(world, times, NULL), most = upper(times, 1 - NOISE_CONFIDENCE);
    ck_assert_msg(grown <= most, "%d of %d false alarms with %d runs, %d allowed", grown, times, world->runs, most);
}
END_TEST

/* The bounds are not so wide that nothing is ever found; nor does a tight gate say yes to all. */
START_TEST(three_points_are_found)
{
    static const struct world world = { .runs = 8, .looks = 2000, .inflation = 1.3, .drift = 0.03, .planted = 0.03 };
    int times = 400, grown = times_grown(&world, times, "f3");
    ck_assert_msg(grown >= times * 19 / 20, "found %d of %d", grown, times);
}
END_TEST

/* As much noise as change: found now and then, as it should. */
START_TEST(what_drowns_in_noise_is_not_claimed)
{
    static const struct world world = { .runs = 1, .looks = 200, .inflation = 1.3, .drift = 0.05, .planted = 0.03 };
    int times = 400;
    ck_assert_int_lt(times_grown(&world, times, "f3"), times / 10);
}
END_TEST

Suite *suite_noise(void)
{
    Suite *suite = suite_create("noise");
    TCase *arithmetic = tcase_create("arithmetic"), *simulated = tcase_create("simulated");
    tcase_add_test(arithmetic, quantiles_are_those_of_tables);
    tcase_add_test(arithmetic, what_blocks_show_is_the_variance_of_a_ratio);
    tcase_add_test(arithmetic, a_share_that_never_varies_has_no_noise_where_it_is_all_or_nothing);
    tcase_add_test(arithmetic, without_looks_one_block_decides_nothing);
    tcase_add_test(arithmetic, more_tests_fewer_runs_and_fewer_looks_widen_a_bound);
    tcase_set_timeout(simulated, 120);
    tcase_add_loop_test(simulated, what_has_not_changed_is_let_through, 0, 9);
    tcase_add_test(simulated, three_points_are_found);
    tcase_add_test(simulated, what_drowns_in_noise_is_not_claimed);
    suite_add_tcase(suite, arithmetic);
    suite_add_tcase(suite, simulated);
    return suite;
}
