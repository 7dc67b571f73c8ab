/* SPDX-License-Identifier: MIT
 *
 * budget: what sampling uses of a simulated machine, and how its rates move.
 */
#include "sampler/budget.h"

#include <check.h>

#define SECOND 1000000000ull
#define MS 1000000ull
#define US 1000ull

/* A process: what it uses a second of wall time, what a tick and a round over its tasks take. */
struct plant {
    struct budget budget;
    struct budget_counters counters;
    struct budget_spent spent;
    uint64_t now, next_round;
    double application;      /* cores */
    uint64_t tick, round;    /* CPU of one; 0: there are no tasks */
    double handlers;         /* of the application's CPU */
    uint64_t ticks, rounds;
    double steepest;         /* of all changes of the rate: the larger by the smaller */
};

static struct plant plant_of(uint32_t overhead, double application, uint64_t tick)
{
    struct plant plant = {.application = application, .tick = tick, .steepest = 1};
    struct budget_options options = {overhead, 100, 10};
    plant.now = 7 * SECOND;
    budget_begin(&plant.budget, &options, plant.now, &plant.spent);
    return plant;
}

static void note_change(struct plant *plant, double before, double after)
{
    double ratio = before > after ? before / after : after / before;
    if (ratio > plant->steepest)
        plant->steepest = ratio;
}

static void sample(struct plant *plant)
{
    plant->spent.sampler += plant->tick;
    plant->ticks++;
    if (!plant->round || plant->now < plant->next_round)
        return;
    plant->spent.sampler += plant->round;
    plant->spent.tasks += plant->round;
    plant->rounds++;
    plant->next_round = plant->now + plant->round * 1000000 / budget_tasks_share(&plant->budget);
}

static void run(struct plant *plant, double seconds)
{
    uint64_t end = plant->now + (uint64_t)(seconds * 1e9), own_before = plant->spent.sampler;
    while (plant->now < end) {
        uint64_t interval = budget_interval(&plant->budget), used = (uint64_t)((double)interval * plant->application);
        double before = plant->budget.rate_mhz;
        plant->now += interval;
        sample(plant);
        plant->spent.handlers += (uint64_t)((double)used * plant->handlers);
        plant->spent.process += used + (uint64_t)((double)used * plant->handlers) + plant->spent.sampler - own_before;
        own_before = plant->spent.sampler;
        budget_review(&plant->budget, plant->now, &plant->spent, &plant->counters);
        note_change(plant, before, plant->budget.rate_mhz);
    }
}

/* Sampler and handlers, of the application's CPU, while this runs. */
static double share_of(struct plant *plant, double seconds)
{
    struct budget_spent before = plant->spent;
    run(plant, seconds);
    double own = (double)(plant->spent.sampler - before.sampler + plant->spent.handlers - before.handlers);
    return own / ((double)(plant->spent.process - before.process) - own);
}

static double rate_of(const struct plant *plant)
{
    return plant->budget.rate_mhz / 1000.0;
}

START_TEST(what_is_cheap_keeps_the_rate_asked_for)
{
    struct plant plant = plant_of(1, 1, 50 * US);
    run(&plant, 60);
    ck_assert_double_eq(rate_of(&plant), 100);
    ck_assert_uint_eq(plant.counters.slowed + plant.counters.quickened, 0);
    ck_assert_uint_eq(plant.counters.allowed_ns / MS, 600);
}
END_TEST

START_TEST(what_is_dear_keeps_to_the_share)
{
    static const uint64_t ticks[] = {150, 300, 600};
    for (int i = 0; i < 3; i++) {
        struct plant plant = plant_of(1, 1, ticks[i] * US);
        run(&plant, 5);
        ck_assert_double_eq_tol(share_of(&plant, 60), 0.01, 0.0005);
        ck_assert_double_eq_tol(rate_of(&plant), 0.01e6 / (double)ticks[i], 2);
        ck_assert_double_le(plant.steepest, 2);
    }
}
END_TEST

START_TEST(the_rate_stays_between_the_least_and_the_asked)
{
    struct plant plant = plant_of(1, 0.5, 20 * MS);
    run(&plant, 30);
    ck_assert_double_eq(rate_of(&plant), 10);
    plant.tick = 1 * US;
    run(&plant, 10);
    ck_assert_double_eq(rate_of(&plant), 100);
    ck_assert_double_le(plant.steepest, 2);
}
END_TEST

START_TEST(with_nothing_allowed_for_it_nothing_is_adapted)
{
    struct plant plant = plant_of(0, 0.01, 5 * MS);
    plant.round = 10 * MS;
    run(&plant, 30);
    ck_assert_double_eq(rate_of(&plant), 100);
    ck_assert_double_eq_tol((double)plant.rounds * 10 * MS / (30.0 * SECOND), 0.05, 0.003);
}
END_TEST

START_TEST(a_twentieth_of_a_core_is_the_most_on_a_large_machine)
{
    struct plant plant = plant_of(5, 64, 2 * MS);
    run(&plant, 5);
    uint64_t before = plant.spent.sampler, since = plant.now;
    run(&plant, 30);
    ck_assert_double_eq_tol((double)(plant.spent.sampler - before) / (double)(plant.now - since), 0.05, 0.0025);
    ck_assert_uint_gt(plant.counters.ceilings, 60);
}
END_TEST

START_TEST(who_does_nothing_is_looked_at_at_the_least_rate_and_no_debt_is_left)
{
    struct plant plant = plant_of(1, 0, 60 * US);
    run(&plant, 10);
    ck_assert_double_eq(rate_of(&plant), 10);
    run(&plant, 3600);
    plant.application = 1;
    run(&plant, 3);
    ck_assert_double_eq(rate_of(&plant), 100);
    ck_assert_double_le(plant.steepest, 2);
}
END_TEST

START_TEST(tasks_and_ticks_share_when_both_are_dear)
{
    struct plant plant = plant_of(2, 1, 1 * MS);
    plant.round = 4 * MS;
    run(&plant, 10);
    uint64_t tasks = plant.spent.tasks, all = plant.spent.sampler;
    double share = share_of(&plant, 60);
    ck_assert_double_eq_tol(share, 0.02, 0.001);
    ck_assert_double_eq_tol((double)(plant.spent.tasks - tasks) / (double)(plant.spent.sampler - all), 0.5, 0.06);
}
END_TEST

START_TEST(tasks_take_what_cheap_ticks_leave)
{
    struct plant plant = plant_of(1, 1, 10 * US); /* a tenth */
    plant.round = 2 * MS;
    run(&plant, 10);
    uint64_t rounds = plant.rounds, since = plant.now;
    run(&plant, 60);
    ck_assert_double_eq(rate_of(&plant), 100);
    ck_assert_double_eq_tol((double)(plant.rounds - rounds) * 2 * MS / (double)(plant.now - since), 0.009, 0.0006);
}
END_TEST

START_TEST(handlers_count)
{
    struct plant plant = plant_of(1, 1, 100 * US);
    plant.handlers = 0.005;
    run(&plant, 10);
    ck_assert_double_eq_tol(share_of(&plant, 60), 0.01, 0.0006);
    ck_assert_double_eq_tol(rate_of(&plant), 50, 4);
}
END_TEST

START_TEST(load_that_changes_tenfold_is_followed)
{
    struct plant plant = plant_of(1, 1, 100 * US);
    struct budget_spent before = plant.spent;
    for (int i = 0; i < 24; i++) {
        plant.application = i & 1 ? 0.2 : 2;
        run(&plant, 5);
    }
    double own = (double)(plant.spent.sampler - before.sampler);
    double least = 120 * 10 * 100e-6, allowed = 0.01 * 120 * 1.1;
    ck_assert_double_le(own / 1e9, 1.1 * allowed + 0.02); /* and the credit */
    ck_assert_double_ge(own / 1e9, 3 * least);
    ck_assert_double_le(plant.steepest, 2);
}
END_TEST

START_TEST(clocks_that_disagree_do_no_harm)
{
    struct plant plant = plant_of(1, 1, 50 * US);
    for (int i = 0; i < 50; i++) {
        plant.spent.sampler += 30 * MS; /* more than the whole process */
        plant.spent.tasks += 40 * MS;   /* more than the thread that does them */
        plant.now += SECOND;
        ck_assert(budget_review(&plant.budget, plant.now, &plant.spent, &plant.counters));
        ck_assert(!budget_review(&plant.budget, plant.now + MS, &plant.spent, &plant.counters));
        ck_assert_double_ge(rate_of(&plant), 10);
        ck_assert_uint_ge(budget_tasks_share(&plant.budget), 500);
    }
    ck_assert_uint_eq(plant.counters.allowed_ns, 0);
}
END_TEST

START_TEST(days_without_a_review_are_no_credit)
{
    struct plant plant = plant_of(1, 1, 50 * US);
    run(&plant, 10);
    plant.now += 60ull * 86400 * SECOND;
    plant.spent.process += 64ull * 60 * 86400 * SECOND; /* or all of its 64 cores ran */
    ck_assert(budget_review(&plant.budget, plant.now, &plant.spent, &plant.counters));
    ck_assert_double_eq(rate_of(&plant), 100);
    ck_assert_uint_le(plant.counters.allowed_ns, 200 * SECOND);
    plant.tick = 1 * MS;
    run(&plant, 10);
    ck_assert_double_eq(rate_of(&plant), 10);
}
END_TEST

START_TEST(a_rate_below_the_least_is_the_rate)
{
    struct plant plant = plant_of(1, 0, 50 * US);
    struct budget_options options = {1, 3, 3};
    budget_begin(&plant.budget, &options, plant.now, &plant.spent);
    run(&plant, 20);
    ck_assert_double_eq(rate_of(&plant), 3);
}
END_TEST

Suite *suite_budget(void);
Suite *suite_budget(void)
{
    Suite *suite = suite_create("budget");
    TCase *tests = tcase_create("budget");
    tcase_add_test(tests, what_is_cheap_keeps_the_rate_asked_for);
    tcase_add_test(tests, what_is_dear_keeps_to_the_share);
    tcase_add_test(tests, the_rate_stays_between_the_least_and_the_asked);
    tcase_add_test(tests, with_nothing_allowed_for_it_nothing_is_adapted);
    tcase_add_test(tests, a_twentieth_of_a_core_is_the_most_on_a_large_machine);
    tcase_add_test(tests, who_does_nothing_is_looked_at_at_the_least_rate_and_no_debt_is_left);
    tcase_add_test(tests, tasks_and_ticks_share_when_both_are_dear);
    tcase_add_test(tests, tasks_take_what_cheap_ticks_leave);
    tcase_add_test(tests, handlers_count);
    tcase_add_test(tests, load_that_changes_tenfold_is_followed);
    tcase_add_test(tests, clocks_that_disagree_do_no_harm);
    tcase_add_test(tests, days_without_a_review_are_no_credit);
    tcase_add_test(tests, a_rate_below_the_least_is_the_rate);
    suite_add_tcase(suite, tests);
    return suite;
}
