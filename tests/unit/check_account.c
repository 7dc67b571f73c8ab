/* SPDX-License-Identifier: MIT
 * account: the laws of `cpu` and `wall`, whatever the order of looks and ticks. */
#include "sampler/account.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "hooks/mem.h"

#define OPENED_NS 5000000000u
#define OPENED_CPU 70000000u
#define STACKS 80 /* more than an account's tally has room for */

Suite *suite_account(void);

static struct profile *profile;
static struct account_book book;
static struct account account;
static profile_stack working[STACKS], waiting[STACKS];

static profile_stack stack_of(const char *kind, int number)
{
    char text[2] = {(char)('!' + number), 0};
    profile_stack below = profile_push(profile, PROFILE_ROOT, profile_intern(profile, kind, strlen(kind), 0));
    return profile_push(profile, below, profile_intern(profile, text, 1, 0));
}

static void setup(void)
{
    ck_assert_int_eq(mem_init((size_t)64 << 20), 0);
    profile = profile_new();
    ck_assert_ptr_nonnull(profile);
    book = (struct account_book){.profile = profile,
                                 .metrics = 1u << METRIC_CPU | 1u << METRIC_WALL,
                                 .unseen_cpu = profile_intern(profile, "[unseen cpu]", 12, 0),
                                 .unseen_wall = profile_intern(profile, "[unseen wall]", 13, 0)};
    for (int i = 0; i < STACKS; i++) {
        working[i] = stack_of("work", i);
        waiting[i] = stack_of("wait", i);
    }
    account_open(&account, OPENED_NS, OPENED_CPU);
}

static void teardown(void)
{
    profile_free(profile);
    ck_assert_uint_eq(mem_used(), 0);
}

static uint64_t cpu_of(profile_stack stack)
{
    return profile_get_ns(profile, stack, METRIC_CPU);
}

static uint64_t wall_of(profile_stack stack)
{
    return profile_get_ns(profile, stack, METRIC_WALL);
}

static uint64_t cpu_total(void)
{
    return profile_total_ns(profile, METRIC_CPU);
}

static uint64_t wall_total(void)
{
    return profile_total_ns(profile, METRIC_WALL);
}

static profile_stack below(profile_stack stack, profile_frame frame)
{
    return profile_push(profile, stack, frame);
}

/* --- single steps --- */

START_TEST(a_tick_takes_what_is_outstanding_up_to_it)
{
    account_look(&account, OPENED_NS + 1000, OPENED_CPU + 900);
    ck_assert_uint_eq(account_outstanding(&account), 900);
    account_run(&account, &book, OPENED_CPU + 400, seen_at(working[0]));
    ck_assert_uint_eq(cpu_of(working[0]), 400);
    ck_assert_uint_eq(wall_of(working[0]), 400);
    ck_assert_uint_eq(account_outstanding(&account), 500);
}
END_TEST

START_TEST(an_older_tick_takes_nothing)
{
    account_run(&account, &book, OPENED_CPU + 400, seen_at(working[0]));
    account_run(&account, &book, OPENED_CPU + 400, seen_at(working[1]));
    account_run(&account, &book, OPENED_CPU + 399, seen_at(working[1]));
    ck_assert_uint_eq(cpu_of(working[1]), 0);
    ck_assert_uint_eq(cpu_total(), 400);
}
END_TEST

START_TEST(a_tick_may_be_newer_than_the_look)
{
    account_run(&account, &book, OPENED_CPU + 400, seen_at(working[0]));
    ck_assert_uint_eq(account_outstanding(&account), 0);
    account_look(&account, OPENED_NS + 1000, OPENED_CPU + 300);
    ck_assert_uint_eq(account_outstanding(&account), 0);
    account_settle(&account, &book, working[1]);
    ck_assert_uint_eq(cpu_total(), 400);
    account_look(&account, OPENED_NS + 2000, OPENED_CPU + 500);
    ck_assert_uint_eq(account_outstanding(&account), 100);
}
END_TEST

START_TEST(waiting_goes_to_wall_only)
{
    account_look(&account, OPENED_NS + 1000, OPENED_CPU + 100);
    account_wait(&account, &book, seen_at(waiting[0]));
    account_wait(&account, &book, seen_at(waiting[1]));
    ck_assert_uint_eq(wall_of(waiting[0]), 900);
    ck_assert_uint_eq(cpu_of(waiting[0]), 0);
    ck_assert_uint_eq(wall_of(waiting[1]), 0);
}
END_TEST

START_TEST(what_blocks_a_loop_has_its_waiting_and_no_cpu)
{
    struct seen blocks = {.stack = waiting[0], .blocks = true};
    book.metrics |= 1u << METRIC_BLOCK;
    account_look(&account, OPENED_NS + 1000, OPENED_CPU + 100);
    account_wait_between(&account, &book, seen_at(waiting[0]), blocks);
    account_run(&account, &book, OPENED_CPU + 100, blocks);
    ck_assert_uint_eq(profile_get_ns(profile, waiting[0], METRIC_BLOCK), 450);
    ck_assert_uint_eq(wall_of(waiting[0]), 1000);
}
END_TEST

START_TEST(a_wait_that_was_left_for_another_is_shared)
{
    account_look(&account, OPENED_NS + 1000, OPENED_CPU + 99);
    account_wait_between(&account, &book, seen_at(waiting[0]), seen_at(waiting[1]));
    ck_assert_uint_eq(wall_of(waiting[0]), 450);
    ck_assert_uint_eq(wall_of(waiting[1]), 451);
    ck_assert_int_eq(account.waiting_ns, 0);
    account_look(&account, OPENED_NS + 1010, OPENED_CPU + 129);
    account_wait_between(&account, &book, seen_at(waiting[0]), seen_at(waiting[1]));
    ck_assert_int_eq(account.waiting_ns, -20);
    ck_assert_uint_eq(wall_total(), 901);
}
END_TEST

START_TEST(an_older_look_says_nothing)
{
    account_look(&account, OPENED_NS + 1000, OPENED_CPU + 100);
    account_look(&account, OPENED_NS + 900, OPENED_CPU + 200);
    account_look(&account, OPENED_NS + 1100, OPENED_CPU + 50);
    ck_assert_uint_eq(account_outstanding(&account), 100);
    ck_assert_int_eq(account.waiting_ns, 900);
}
END_TEST

/* The two clocks are read one after the other, so one may be ahead. */
START_TEST(noise_of_the_clocks_is_carried_over)
{
    account_look(&account, OPENED_NS + 100, OPENED_CPU + 130);
    ck_assert_int_eq(account.waiting_ns, -30);
    account_wait(&account, &book, seen_at(waiting[0]));
    account_settle(&account, &book, working[0]);
    ck_assert_int_eq(account.waiting_ns, -30);
    account_look(&account, OPENED_NS + 200, OPENED_CPU + 130);
    account_wait(&account, &book, seen_at(waiting[0]));
    ck_assert_uint_eq(wall_of(waiting[0]), 70);
}
END_TEST

/* What was spread over the stacks that it was seen in counts with them from then on. */
START_TEST(a_rest_in_mid_life_is_known_after_it)
{
    account_look(&account, OPENED_NS + 1000, OPENED_CPU + 400);
    account_run(&account, &book, OPENED_CPU + 100, seen_at(working[0]));
    account_settle_rest(&account, &book, waiting[0]);
    ck_assert_uint_eq(account.tallies, 1);
    ck_assert_uint_eq(account.tally[0].ns, 400);
    ck_assert_uint_eq(account.tally[0].times, 1);
    ck_assert_uint_eq(cpu_of(working[0]), 400);
    account_settle(&account, &book, waiting[0]);
    ck_assert_uint_eq(account.tallies, 0);
    ck_assert_uint_eq(cpu_total(), 400);
}
END_TEST

START_TEST(what_is_not_recorded_is_not_booked)
{
    book.metrics = 1u << METRIC_CPU;
    account_look(&account, OPENED_NS + 1000, OPENED_CPU + 100);
    account_run(&account, &book, OPENED_CPU + 50, seen_at(working[0]));
    account_settle(&account, &book, working[0]);
    ck_assert_uint_eq(cpu_total(), 100);
    ck_assert_uint_eq(wall_total(), 0);
}
END_TEST

/* --- the end of a window or a thread --- */

START_TEST(a_rest_is_spread_by_weight)
{
    account_run(&account, &book, OPENED_CPU + 300, seen_at(working[0]));
    account_run(&account, &book, OPENED_CPU + 400, seen_at(working[1]));
    account_look(&account, OPENED_NS + 1000, OPENED_CPU + 440);
    account_settle(&account, &book, waiting[0]);
    ck_assert_uint_eq(cpu_of(working[0]), 330);
    ck_assert_uint_eq(cpu_of(working[1]), 110);
    ck_assert_uint_eq(cpu_of(waiting[0]), 0);
    ck_assert_uint_eq(wall_of(waiting[0]), 0);
    ck_assert_uint_eq(wall_total(), 1000);
    ck_assert_uint_eq(book.spread_ns, 40);
    ck_assert_uint_eq(book.unseen_ns, 0);
}
END_TEST

START_TEST(a_rest_without_ticks_is_unseen_below_the_last_stack)
{
    account_look(&account, OPENED_NS + 1000, OPENED_CPU + 40);
    account_settle(&account, &book, waiting[3]);
    ck_assert_uint_eq(cpu_of(below(waiting[3], book.unseen_cpu)), 40);
    ck_assert_uint_eq(wall_of(below(waiting[3], book.unseen_cpu)), 40);
    ck_assert_uint_eq(wall_of(below(waiting[3], book.unseen_wall)), 960);
    ck_assert_uint_eq(cpu_of(waiting[3]) + wall_of(waiting[3]), 0);
    ck_assert_uint_eq(book.unseen_ns, 40);
    ck_assert_uint_eq(book.spread_ns, 0);
}
END_TEST

START_TEST(unseen_is_not_stacked_on_itself)
{
    profile_stack unseen = below(PROFILE_ROOT, book.unseen_cpu);
    account_look(&account, OPENED_NS + 1000, OPENED_CPU + 1000);
    account_settle(&account, &book, unseen);
    ck_assert_uint_eq(cpu_of(unseen), 1000);
}
END_TEST

START_TEST(the_ticks_of_a_window_take_no_rest_of_the_next)
{
    account_run(&account, &book, OPENED_CPU + 300, seen_at(working[0]));
    account_settle(&account, &book, working[0]);
    profile_clear(profile, false);
    account_look(&account, OPENED_NS + 1000, OPENED_CPU + 310);
    account_settle(&account, &book, PROFILE_ROOT);
    ck_assert_uint_eq(cpu_of(below(PROFILE_ROOT, book.unseen_cpu)), 10);
    ck_assert_uint_eq(cpu_total(), 10);
}
END_TEST

START_TEST(settling_twice_books_once)
{
    account_look(&account, OPENED_NS + 1000, OPENED_CPU + 40);
    account_settle(&account, &book, waiting[0]);
    account_settle(&account, &book, waiting[0]);
    ck_assert_uint_eq(cpu_total(), 40);
    ck_assert_uint_eq(wall_total(), 1000);
}
END_TEST

START_TEST(rounding_keeps_the_sum)
{
    for (int i = 0; i < 7; i++)
        account_run(&account, &book, account.booked_cpu + 1 + (uint64_t)i, seen_at(working[i]));
    uint64_t before = cpu_total();
    account_look(&account, OPENED_NS + 100000, account.booked_cpu + 10007);
    account_settle(&account, &book, PROFILE_ROOT);
    ck_assert_uint_eq(cpu_total() - before, 10007);
    ck_assert_uint_eq(wall_total(), 100000);
}
END_TEST

/* A hundred years of one thread, in nanoseconds, need 62 bits. */
START_TEST(large_times_do_not_overflow)
{
    const uint64_t century = 3155760000000000000u;
    account_run(&account, &book, OPENED_CPU + century / 2, seen_at(working[0]));
    account_run(&account, &book, OPENED_CPU + century / 2 + 1, seen_at(working[1]));
    account_look(&account, OPENED_NS + century, OPENED_CPU + century);
    account_settle(&account, &book, PROFILE_ROOT);
    ck_assert_uint_eq(cpu_total(), century);
    ck_assert_uint_eq(wall_total(), century);
    ck_assert_uint_ge(cpu_of(working[0]), century - 8);
}
END_TEST

START_TEST(the_heaviest_stacks_stay_in_the_tally)
{
    account_run(&account, &book, account.booked_cpu + 100000, seen_at(working[0]));
    for (int round = 0; round < 3; round++)
        for (int i = 1; i < STACKS; i++)
            account_run(&account, &book, account.booked_cpu + 1, seen_at(working[i]));
    ck_assert_uint_eq(account.tallies, ACCOUNT_TALLIES);
    uint64_t before = cpu_of(working[0]);
    account_look(&account, OPENED_NS + 1000000, account.booked_cpu + 1000);
    account_settle(&account, &book, PROFILE_ROOT);
    ck_assert_uint_ge(cpu_of(working[0]) - before, 990);
}
END_TEST

START_TEST(a_life_between_two_looks)
{
    account_unseen(&book, 1000, 300, seen_at(PROFILE_ROOT), working[0]);
    ck_assert_uint_eq(cpu_of(below(working[0], book.unseen_cpu)), 300);
    ck_assert_uint_eq(wall_of(below(working[0], book.unseen_wall)), 700);
    account_unseen(&book, 10, 30, seen_at(PROFILE_ROOT), PROFILE_ROOT); /* its CPU clock was ahead */
    ck_assert_uint_eq(wall_total(), 1030);
    ck_assert_uint_eq(book.unseen_ns, 330);
}
END_TEST

/* --- twins --- */

static uint64_t task_of(profile_stack stack)
{
    return profile_get_ns(profile, stack, METRIC_TASK);
}

static profile_stack give_twin(profile_stack stack, int number)
{
    profile_stack twin = stack_of("task", number);
    book.metrics |= 1u << METRIC_TASK;
    profile_set_twin(profile, stack, twin);
    return twin;
}

START_TEST(a_twin_gets_what_wall_gets)
{
    profile_stack runs = give_twin(working[0], 0), stands = give_twin(waiting[0], 1);
    account_look(&account, OPENED_NS + 1000, OPENED_CPU + 400);
    account_run(&account, &book, OPENED_CPU + 300, seen_at(working[0]));
    account_run(&account, &book, OPENED_CPU + 400, seen_at(working[1])); /* which has none */
    account_wait(&account, &book, seen_at(waiting[0]));
    ck_assert_uint_eq(task_of(runs), 300);
    ck_assert_uint_eq(task_of(stands), 600);
    ck_assert_uint_eq(profile_total_ns(profile, METRIC_TASK), 900);
    ck_assert_uint_eq(wall_of(working[0]) + wall_of(waiting[0]), 900);
    ck_assert_uint_eq(wall_total(), 1000);
    ck_assert_uint_eq(cpu_total(), 400);
    ck_assert_uint_eq(cpu_of(runs) + wall_of(runs) + task_of(working[0]), 0);
}
END_TEST

START_TEST(a_twin_gets_its_part_of_a_rest)
{
    profile_stack twin = give_twin(working[0], 0);
    account_run(&account, &book, OPENED_CPU + 300, seen_at(working[0]));
    account_run(&account, &book, OPENED_CPU + 400, seen_at(working[1]));
    account_look(&account, OPENED_NS + 10000, OPENED_CPU + 4400);
    account_settle(&account, &book, waiting[0]);
    ck_assert_uint_eq(task_of(twin), wall_of(working[0]));
    ck_assert_uint_eq(task_of(twin), 7500);
    ck_assert_uint_eq(profile_total_ns(profile, METRIC_TASK), 7500);
}
END_TEST

START_TEST(unseen_cpu_goes_where_it_was_drawn)
{
    account_unseen(&book, 1000, 300, seen_at(working[1]), working[0]);
    ck_assert_uint_eq(cpu_of(working[1]), 300);
    ck_assert_uint_eq(wall_of(working[1]), 300);
    ck_assert_uint_eq(wall_of(below(working[0], book.unseen_wall)), 700);
    ck_assert_uint_eq(book.unseen_ns, 0);
    ck_assert_uint_eq(book.spread_ns, 300);
}
END_TEST

START_TEST(what_is_outstanding_is_given_once)
{
    account_look(&account, OPENED_NS + 1000, OPENED_CPU + 40);
    account_give(&account, &book, seen_at(working[1]));
    ck_assert_uint_eq(cpu_of(working[1]), 40);
    ck_assert_uint_eq(account_outstanding(&account), 0);
    account_settle(&account, &book, waiting[3]);
    ck_assert_uint_eq(cpu_of(working[1]), 40);
    ck_assert_uint_eq(wall_of(working[1]), 40);
    ck_assert_uint_eq(wall_of(below(waiting[3], book.unseen_wall)), 960);
    ck_assert_uint_eq(book.spread_ns, 40);
}
END_TEST

START_TEST(unseen_time_is_no_tasks)
{
    give_twin(waiting[0], 0);
    account_look(&account, OPENED_NS + 1000, OPENED_CPU + 40);
    account_settle(&account, &book, waiting[0]);
    account_unseen(&book, 1000, 300, seen_at(PROFILE_ROOT), waiting[0]);
    ck_assert_uint_eq(profile_total_ns(profile, METRIC_TASK), 0);
}
END_TEST

START_TEST(a_twin_gets_nothing_that_is_not_recorded)
{
    give_twin(working[0], 0);
    book.metrics = 1u << METRIC_CPU | 1u << METRIC_WALL;
    account_run(&account, &book, OPENED_CPU + 300, seen_at(working[0]));
    ck_assert_uint_eq(profile_total_ns(profile, METRIC_TASK), 0);
    book.metrics = 1u << METRIC_TASK;
    account_run(&account, &book, OPENED_CPU + 500, seen_at(working[0]));
    ck_assert_uint_eq(profile_total_ns(profile, METRIC_TASK), 200);
    ck_assert_uint_eq(wall_total(), 300);
}
END_TEST

/* --- any order of everything --- */

static uint32_t state;

static uint32_t draw(uint32_t below_this)
{
    state = state * 1664525u + 1013904223u;
    return (state >> 8) % below_this;
}

/* What must hold after every step. carried: CPU and wall booked in windows that were cleared. */
static void check_laws(uint64_t carried_cpu, uint64_t carried_wall)
{
    uint64_t cpu = carried_cpu + cpu_total(), wall = carried_wall + wall_total();
    ck_assert_uint_eq(cpu, account.booked_cpu - OPENED_CPU);
    if (account.booked_cpu <= account.looked_cpu)
        ck_assert_uint_eq(cpu + account_outstanding(&account), account.looked_cpu - OPENED_CPU);
    int64_t passed = (int64_t)(account.looked_ns - OPENED_NS), used = (int64_t)(account.looked_cpu - OPENED_CPU);
    ck_assert_int_eq((int64_t)(wall - cpu) + account.waiting_ns, passed - used);
    for (int i = 0; i < STACKS; i++)
        ck_assert_uint_eq(cpu_of(waiting[i]), 0);
}

static void again_all_stacks(void)
{
    for (int i = 0; i < STACKS; i++) {
        working[i] = stack_of("work", i);
        waiting[i] = stack_of("wait", i);
    }
}

/* The same stack with the GIL and without it: the rest is shared out as it was seen. */
START_TEST(time_with_the_gil_goes_to_gil)
{
    struct seen held = {.stack = working[0], .gil = SEEN_GIL_HELD}, released = seen_at(working[0]);
    book.metrics |= 1u << METRIC_GIL;
    account_run(&account, &book, OPENED_CPU + 300, held);
    account_run(&account, &book, OPENED_CPU + 400, released);
    ck_assert_uint_eq(account.tallies, 2);
    ck_assert_uint_eq(profile_get_ns(profile, working[0], METRIC_GIL), 300);
    account_look(&account, OPENED_NS + 1000, OPENED_CPU + 440);
    account_settle(&account, &book, waiting[0]); /* 40 of CPU and 560 of waiting, 3 to 1 */
    ck_assert_uint_eq(cpu_of(working[0]), 440);
    ck_assert_uint_eq(wall_of(working[0]), 1000);
    ck_assert_uint_eq(profile_get_ns(profile, working[0], METRIC_GIL), 300 + 30 + 420);
    ck_assert_uint_eq(book.gil_wait_ns, 0);
    ck_assert_uint_eq(book.gil_wall_ns, 1000);
}
END_TEST

START_TEST(waiting_for_the_gil_is_added_up)
{
    struct seen wanted = {.stack = waiting[0], .gil = SEEN_GIL_WANTED}, held = {.stack = waiting[1], .gil = SEEN_GIL_HELD};
    book.metrics |= 1u << METRIC_GIL;
    account_look(&account, OPENED_NS + 1000, OPENED_CPU);
    account_wait_between(&account, &book, wanted, held);
    ck_assert_uint_eq(book.gil_wait_ns, 500);
    ck_assert_uint_eq(profile_get_ns(profile, waiting[1], METRIC_GIL), 500);
    ck_assert_uint_eq(profile_total_ns(profile, METRIC_GIL), 500);
    ck_assert_uint_eq(wall_total(), 1000);
    account_look(&account, OPENED_NS + 1300, OPENED_CPU);
    account_wait_part(&account, &book, 100, (struct seen){.stack = waiting[2], .gil = SEEN_GIL_UNKNOWN});
    ck_assert_uint_eq(book.gil_unknown_ns, 100);
    ck_assert_uint_eq(wall_of(waiting[2]), 100);
    account_wait_part(&account, &book, 1000, held); /* there are 200 left */
    ck_assert_uint_eq(profile_total_ns(profile, METRIC_GIL), 700);
    ck_assert_uint_eq(book.gil_wall_ns, 1300);
}
END_TEST

START_TEST(time_in_which_an_exception_is_handled_goes_to_exc)
{
    struct seen handling = {.stack = working[0], .exception = working[1]}, none = seen_at(working[0]);
    book.metrics |= 1u << METRIC_EXC;
    account_run(&account, &book, OPENED_CPU + 300, handling);
    account_run(&account, &book, OPENED_CPU + 400, none);
    account_look(&account, OPENED_NS + 1000, OPENED_CPU + 400);
    account_wait(&account, &book, handling);
    ck_assert_uint_eq(account.tallies, 2);
    ck_assert_uint_eq(wall_of(working[0]), 1000);
    ck_assert_uint_eq(wall_of(working[1]), 0);
    ck_assert_uint_eq(profile_get_ns(profile, working[1], METRIC_EXC), 900);
    ck_assert_uint_eq(profile_total_ns(profile, METRIC_EXC), 900);
}
END_TEST

/* Nobody knows. */
START_TEST(unseen_time_is_in_no_gil)
{
    book.metrics |= 1u << METRIC_GIL;
    account_unseen(&book, 1000, 300, seen_at(PROFILE_ROOT), working[0]);
    ck_assert_uint_eq(profile_total_ns(profile, METRIC_GIL), 0);
    ck_assert_uint_eq(book.gil_wait_ns, 0);
    ck_assert_uint_eq(book.gil_wall_ns, 1000);
}
END_TEST

START_TEST(the_laws_hold_in_any_order)
{
    uint64_t now = OPENED_NS, cpu = OPENED_CPU, carried_cpu = 0, carried_wall = 0;
    profile_stack last = PROFILE_ROOT;
    state = (uint32_t)_i * 2654435761u + 1;
    for (int step = 0; step < 3000; step++) {
        uint64_t passed = draw(3) ? draw(20000000) : draw(100);
        now += passed;
        cpu += draw(4) == 0 ? passed + draw(50) : passed ? draw((uint32_t)passed) : 0;
        switch (draw(6)) {
        case 0:
        case 1:
            account_look(&account, now, cpu);
            break;
        case 2:
        case 3:
            last = working[draw(draw(8) ? 6 : STACKS)];
            account_run(&account, &book, cpu - draw(5000), seen_at(last));
            break;
        case 4:
            last = waiting[draw(6)];
            account_wait(&account, &book, seen_at(last));
            break;
        default:
            if (draw(8))
                break;
            account_look(&account, now, cpu);
            account_settle(&account, &book, last);
            ck_assert_uint_eq(account_outstanding(&account), 0);
            ck_assert_int_le(account.waiting_ns, 0);
            carried_cpu += cpu_total();
            carried_wall += wall_total();
            profile_clear(profile, false);
            again_all_stacks();
            last = PROFILE_ROOT;
        }
        check_laws(carried_cpu, carried_wall);
    }
}
END_TEST

Suite *suite_account(void)
{
    const TTest *const tests[] = {
        a_tick_takes_what_is_outstanding_up_to_it, an_older_tick_takes_nothing, a_tick_may_be_newer_than_the_look,
        waiting_goes_to_wall_only, what_blocks_a_loop_has_its_waiting_and_no_cpu, a_wait_that_was_left_for_another_is_shared, an_older_look_says_nothing,
        noise_of_the_clocks_is_carried_over,
        a_rest_in_mid_life_is_known_after_it, what_is_not_recorded_is_not_booked, a_rest_is_spread_by_weight, a_rest_without_ticks_is_unseen_below_the_last_stack,
        unseen_is_not_stacked_on_itself, the_ticks_of_a_window_take_no_rest_of_the_next, settling_twice_books_once,
        rounding_keeps_the_sum, large_times_do_not_overflow, the_heaviest_stacks_stay_in_the_tally, a_life_between_two_looks,
        a_twin_gets_what_wall_gets, a_twin_gets_its_part_of_a_rest, unseen_cpu_goes_where_it_was_drawn, what_is_outstanding_is_given_once, unseen_time_is_no_tasks, a_twin_gets_nothing_that_is_not_recorded,
        time_with_the_gil_goes_to_gil, waiting_for_the_gil_is_added_up, time_in_which_an_exception_is_handled_goes_to_exc, unseen_time_is_in_no_gil,
    };
    Suite *suite = suite_create("account");
    TCase *core = tcase_create("core");
    tcase_add_checked_fixture(core, setup, teardown);
    for (size_t i = 0; i < sizeof tests / sizeof *tests; i++)
        tcase_add_test(core, tests[i]);
    tcase_add_loop_test(core, the_laws_hold_in_any_order, 0, 8);
    tcase_set_timeout(core, 60);
    suite_add_tcase(suite, core);
    return suite;
}
