/* SPDX-License-Identifier: MIT
 * rests: a tick in which most tasks rest gives what one gives that reads them all.
 *
 * The oracle is the same program with the deaths of futures not counted: then no task
 * may rest, and each is read in full at each tick. */
#include "sampler/rests.h"

#include "tests/unit/fake_tasks.h"

#define NEVER 0u
#define COUNTED FAKE_FUTURE_TYPE_AT

Suite *suite_rests(void);

/* Deaths of this type's objects are counted. Those that are there stand on their loop. */
static void start_resting(int minor, uint32_t count, uintptr_t counted)
{
    start_hooked(minor, count);
    for (uint32_t i = 0; i < FAKE_DEATHS; i++)
        fake_deaths[i] = 7;
    fake_births.counted = counted;
}

/* ... whose functions are those of so many kinds: all of a kind have one shape. */
static void start_kinds(int minor, uint32_t count, uint32_t of, uintptr_t counted)
{
    kinds = of;
    start_resting(minor, count, counted);
    kinds = 0;
}

/* Two ticks: the second sees that nothing has changed. */
static void settle(void)
{
    tick(10 * MS);
    tick(10 * MS);
}

/* So many reads of memory in a tick. */
static unsigned long reads_of_tick(uint64_t ns)
{
    unsigned long before = fake_reads();
    tick(ns);
    return fake_reads() - before;
}

/* --- groups by what they have in common --- */

START_TEST(groups_are_found_again)
{
    enum { MANY = 1000 };
    struct rests rests = {0};
    uint32_t group[MANY];
    ck_assert_int_eq(mem_init(256 * MIB), 0);
    ck_assert_uint_eq(rests_from(&rests, 1), 0);
    for (uint32_t i = 0; i < MANY; i++) {
        struct rest_key key = {.makers_hash = i % 3, .loop = i / 3 % 2, .lead.key = i / 6 % 5, .lead.route = i / 30 % 7, .alone = i / 210};
        group[i] = rests_of(&rests, &key, 5);
        ck_assert_uint_eq(group[i], i + 1);
        ck_assert_uint_eq(rests_of(&rests, &key, 5), group[i]);
        ck_assert_uint_eq(rests_at(&rests, group[i])->key.alone, i / 210);
    }
    struct rest_key first = {0};
    ck_assert_uint_eq(rests_of(&rests, &first, 6), MANY + 1); /* another shape */
    rests_release(&rests, MANY + 1);
    for (uint32_t i = 0; i < MANY; i += 2)
        rests_release(&rests, group[i]);
    for (uint32_t i = 0, at = 0; i < MANY / 2; i++) {
        at = rests_from(&rests, at + 1);
        ck_assert_uint_eq(at, group[2 * i + 1]);
    }
    ck_assert_uint_eq(rests_of(&rests, &first, 5), group[MANY - 2]); /* numbers are used again */
    rests_at(&rests, group[1])->kept_stack = 7;
    rests_forget_stacks(&rests);
    ck_assert_uint_eq(rests_at(&rests, group[1])->kept_stack, PROFILE_ROOT);
    rests_free(&rests);
    fake_reset();
}
END_TEST

static uint32_t count_of(const struct rests *rests)
{
    uint32_t count = 0;
    for (uint32_t group = 0; (group = rests_from(rests, group + 1));)
        count++;
    return count;
}

/* After a burst a round goes through what is left; in whatever order they go, no number is given twice. */
START_TEST(empty_groups_are_not_gone_through)
{
    enum { MANY = 100 };
    struct rests rests = {0};
    uint32_t group[MANY], group_of_gap[2 * MANY];
    static bool taken[3 * MANY + 1];
    ck_assert_int_eq(mem_init(256 * MIB), 0);
    for (uint32_t turn = 0; turn < 4; turn++) {
        memset(taken, 0, sizeof taken);
        for (uint32_t i = 0; i < MANY; i++) {
            group[i] = rests_of(&rests, &(struct rest_key){.alone = i + 1}, turn);
            ck_assert_uint_ge(group[i], 1);
            ck_assert_uint_le(group[i], 3 * MANY);
            ck_assert(!taken[group[i]]);
            taken[group[i]] = true;
        }
        for (uint32_t i = 0; i < MANY; i++)
            if (turn % 2 == 0 || i % 7 != 3) /* some stay, and go later */
                rests_release(&rests, group[turn < 2 ? i : MANY - 1 - i]);
        ck_assert(turn % 2 || rests.top == 1);
        for (uint32_t i = 0; i < 2 * MANY; i++) { /* into the gaps, and beyond */
            group_of_gap[i] = rests_of(&rests, &(struct rest_key){.alone = i + 1}, MANY);
            ck_assert_uint_eq(count_of(&rests), rests.count);
        }
        for (uint32_t i = 0; i < 2 * MANY; i++)
            rests_release(&rests, group_of_gap[i]);
        for (uint32_t i = 0; turn % 2 && i < MANY; i++)
            if (i % 7 == 3)
                rests_release(&rests, group[turn < 2 ? i : MANY - 1 - i]);
        ck_assert_uint_eq(rests.top, 1);
        ck_assert_uint_eq(rests.count, 0);
    }
    rests_free(&rests);
    fake_reset();
}
END_TEST

/* --- that it pays, and what it rests on --- */

START_TEST(one_at_rest_is_hardly_read)
{
    enum { MANY = 100 };
    start_kinds(_i, MANY, 2, NEVER);
    for (uint32_t i = 0; i < MANY; i++)
        fake_task_waits(&world, i, 3, fake_future_at(i));
    settle();
    unsigned long full = reads_of_tick(10 * MS);
    stop();
    codes_forget();
    codes_forget_frames();
    start_kinds(_i, MANY, 2, COUNTED);
    for (uint32_t i = 0; i < MANY; i++)
        fake_task_waits(&world, i, 3, fake_future_at(i));
    settle();
    unsigned long reads = reads_of_tick(10 * MS), next = reads_of_tick(10 * MS); /* four words of each, and some more of one in a hundred */
    ck_assert_uint_lt(reads * 5, full);
    ck_assert_uint_lt(reads, MANY * 4 + 200);
    ck_assert_uint_le(next, reads + 50);
    ck_assert_uint_eq(total(), MANY * 40 * MS);
    ck_assert_uint_eq(window.counters.samples, MANY * 4);
    stop();
}
END_TEST

/* Each is glanced at in ten ticks, whatever its future says. */
START_TEST(all_are_verified_now_and_then)
{
    enum { MANY = 20 };
    start_resting(_i, MANY, COUNTED);
    settle();
    for (uint32_t i = 0; i < MANY; i++)
        fake_coro_stands(&world, i, 0, world.target.layout.resume_opcodes[0] ? world.target.layout.gen_suspended : world.target.layout.gen_awaiting,
                         FAKE_AT_AWAIT - 2);
    uint64_t before = total();
    unsigned long reads = 0;
    for (int i = 0; i < 11; i++)
        reads += reads_of_tick(100 * MS);
    ck_assert_uint_eq(total() - before, MANY * 1100 * MS);
    uint32_t at = 0, stacks_of_first = 0;
    profile_stack stack;
    for (uint64_t us; profile_each(stacks.profile, METRIC_TASK, &at, &stack, &us);)
        stacks_of_first += strcmp(fake_functions(stacks.profile, stack), "loop;t0.0") == 0;
    ck_assert_uint_eq(stacks_of_first, 2); /* on two lines */
    at = 0;
    for (uint64_t us; profile_each(stacks.profile, METRIC_TASK, &at, &stack, &us);)
        ck_assert_uint_ge(us, 49000); /* the first half of a tick at least */
    stop();
}
END_TEST

START_TEST(one_whose_future_died_is_read)
{
    start_resting(_i, 2, COUNTED);
    settle();
    fake_task_waits(&world, 0, 2, fake_future_at(0)); /* another future at the same address */
    tick(10 * MS);
    ck_assert_uint_eq(time_of("loop;t0.0"), 25 * MS);
    ck_assert_uint_eq(time_of("loop;t0.0;t0.1"), 5 * MS);
    ++*fake_deaths_of(fake_future_at(1)); /* one that was near */
    tick(10 * MS);
    ck_assert_uint_eq(time_of("loop;t1.0"), 40 * MS);
    stop();
}
END_TEST

START_TEST(one_whose_future_is_done_is_ready)
{
    start_resting(_i, 2, COUNTED);
    settle();
    fake_future_state(&world, fake_future_at(0), FUTURE_FINISHED);
    tick(10 * MS);
    ck_assert_uint_eq(time_of("loop;t0.0"), 25 * MS);
    ck_assert_uint_eq(time_of("loop;t0.0;[ready]"), 5 * MS);
    ck_assert_uint_eq(time_of("loop;t1.0"), 30 * MS);
    stop();
}
END_TEST

START_TEST(no_longer_counted)
{
    start_resting(_i, 3, COUNTED);
    settle();
    fake_births.counted = NEVER;
    tick(1500 * MS); /* looked at once a second */
    fake_coro_awaits(&world, 0, 0, fake_coro_at(0, 1)); /* seen, though no future died */
    fake_coro(&world, 0, 1);
    fake_coro_awaits(&world, 0, 1, fake_task_at(0) + FAKE_IN_ITER);
    tick(10 * MS);
    ck_assert_uint_eq(time_of("loop;t0.0;t0.1"), 5 * MS);
    stop();
}
END_TEST

/* A group of many, some of which go on and come back. */
START_TEST(those_of_a_kind_are_counted_together)
{
    enum { MANY = 60, GO = 7 };
    start_kinds(_i, MANY, 1, COUNTED);
    settle();
    ck_assert_uint_eq(time_of("loop;t0.0"), MANY * 20 * MS);
    for (uint32_t i = 0; i < GO; i++)
        fake_task_waits(&world, 9 * i, 2, fake_future_at(9 * i));
    tick(10 * MS);
    ck_assert_uint_eq(time_of("loop;t0.0"), MANY * 25 * MS + (MANY - GO) * 5 * MS);
    ck_assert_uint_eq(time_of("loop;t0.0;t0.1"), GO * 5 * MS);
    settle();
    ck_assert_uint_eq(time_of("loop;t0.0;t0.1"), GO * 25 * MS);
    for (uint32_t i = 0; i < GO; i++)
        fake_task_waits(&world, 9 * i, 1, fake_future_at(9 * i));
    settle();
    settle();
    ck_assert_uint_eq(time_of("loop;t0.0;t0.1"), GO * 30 * MS);
    ck_assert_uint_eq(total(), MANY * 90 * MS);
    ck_assert_uint_eq(window.counters.samples, MANY * 9);
    stop();
}
END_TEST

/* Those of a kind that were made by two coroutines. */
START_TEST(of_two_makers)
{
    start_kinds(_i, 8, 2, COUNTED);
    fake_task_waits(&world, 2, 2, fake_future_at(2));
    maker_id makers[] = {fake_maker(fake_coro_at(0, 0)), fake_maker(fake_coro_at(2, 1))}, outer = fake_maker(fake_coro_at(2, 0));
    for (uint32_t i = 0; i < 8; i++)
        fake_birth(fake_birth_of(fake_task_at(i), i % 2 ? makers[i % 4 / 2] : 0, i % 4 == 3 ? outer : 0));
    settle();
    settle();
    ck_assert_uint_eq(time_of("loop;t0.0;t1.0"), 2 * 40 * MS);
    ck_assert_uint_eq(time_of("loop;t0.0;t0.1;t1.0"), 2 * 40 * MS);
    stop();
}
END_TEST

/* wait() with members of its own: it may be ready, whatever its future says. */
START_TEST(one_that_waits_for_members_does_not_rest)
{
    start_resting(_i, 3, COUNTED);
    const uintptr_t members[] = {fake_task_at(1), 1, fake_future_at(2), 2};
    fake_coro_has_local(&world, 0, 0, "_wait", "fs", fake_set(&world.target, 0x28000000, SET_TYPE_AT, members, 2));
    fake_task_is_done(&world, 1);
    fake_task_runs(&world, 2, 1);
    settle();
    settle();
    ck_assert_uint_eq(time_of("loop;_wait"), 40 * MS);
    fake_future_state(&world, fake_future_at(2), FUTURE_FINISHED);
    tick(10 * MS);
    ck_assert_uint_eq(time_of("loop;_wait;[ready]"), 5 * MS);
    stop();
}
END_TEST

/* --- what they stand on --- */

/* An awaiter that changes, while those that it awaits do not: to gather's future both ways. */
START_TEST(an_awaiter_comes_and_goes)
{
    start_resting(_i, 4, COUNTED);
    uintptr_t callback = fake_gather_callback(&world, 0, fake_future_at(0));
    fake_task_waiter(&world, 0, 0);
    fake_future_state(&world, fake_future_at(0), FUTURE_PENDING);
    for (uint32_t i = 1; i < 3; i++)
        fake_world_word(&world, fake_task_at(i), world.target.layout.future_callback0, callback);
    settle();
    ck_assert_uint_eq(time_of("loop;t1.0"), 20 * MS);
    fake_task_waits(&world, 0, 2, fake_future_at(0));
    tick(10 * MS);
    ck_assert_uint_eq(time_of("loop;t1.0"), 25 * MS);
    ck_assert_uint_eq(time_of("loop;t0.0;t0.1;t1.0"), 5 * MS);
    ck_assert_uint_eq(time_of("loop;t0.0;t0.1;t2.0"), 5 * MS);
    settle();
    fake_task_waits(&world, 0, 1, fake_future_at(0)); /* at another place */
    tick(10 * MS);
    ck_assert_uint_eq(time_of("loop;t0.0;t0.1;t1.0"), 30 * MS);
    ck_assert_uint_eq(time_of("loop;t0.0;t1.0"), 5 * MS);
    fake_task_is_done(&world, 0); /* what they stand on ends */
    tick(10 * MS);
    ck_assert_uint_eq(time_of("loop;t0.0;t1.0"), 10 * MS);
    ck_assert_uint_eq(time_of("loop;t1.0"), 30 * MS);
    ck_assert_uint_eq(time_of("loop;t3.0"), 70 * MS);
    ck_assert_uint_eq(window.counters.task_postponed, 0);
    stop();
}
END_TEST

/* A leaf that changes, while its awaiter does not. */
START_TEST(one_of_several_moves_on)
{
    start_resting(_i, 4, COUNTED);
    uintptr_t callback = fake_gather_callback(&world, 0, fake_future_at(0));
    for (uint32_t i = 1; i < 4; i++)
        fake_world_word(&world, fake_task_at(i), world.target.layout.future_callback0, callback);
    settle();
    ck_assert_uint_eq(time_of("loop;t0.0;t3.0"), 20 * MS);
    fake_task_waits(&world, 2, 3, fake_future_at(2));
    fake_task_is_done(&world, 3);
    tick(10 * MS);
    ck_assert_uint_eq(time_of("loop;t0.0;t1.0"), 30 * MS);
    ck_assert_uint_eq(time_of("loop;t0.0;t2.0"), 25 * MS);
    ck_assert_uint_eq(time_of("loop;t0.0;t2.0;t2.1;t2.2"), 5 * MS);
    ck_assert_uint_eq(time_of("loop;t0.0;t3.0"), 25 * MS);
    ck_assert_uint_eq(total(), 3 * 20 * MS + 3 * 5 * MS + 2 * 5 * MS);
    stop();
}
END_TEST

/* One at rest that begins to be an awaiter is no leaf any more, though nothing of its own has changed. */
START_TEST(one_at_rest_gets_a_member)
{
    start_resting(_i, 3, COUNTED);
    settle();
    uintptr_t callback = fake_gather_callback(&world, 0, fake_future_at(0));
    fake_world_word(&world, fake_task_at(1), world.target.layout.future_callback0, callback);
    tick(10 * MS);
    ck_assert_uint_eq(time_of("loop;t0.0"), 25 * MS);
    ck_assert_uint_eq(time_of("loop;t1.0"), 25 * MS);
    ck_assert_uint_eq(time_of("loop;t0.0;t1.0"), 5 * MS);
    fake_no_callbacks(&world, fake_task_at(1));
    tick(10 * MS);
    ck_assert_uint_eq(time_of("loop;t0.0"), 30 * MS);
    ck_assert_uint_eq(time_of("loop;t1.0"), 30 * MS);
    ck_assert_uint_eq(time_of("loop;t0.0;t1.0"), 10 * MS);
    stop();
}
END_TEST

/* The same callback's address, of one of several that led to the same, leads elsewhere now. */
START_TEST(one_of_several_callbacks_is_another_ones)
{
    enum { MEMBERS = 3 };
    start_kinds(_i, 2 + 2 * MEMBERS, 2, COUNTED);
    fake_task_waits(&world, 2, 2, fake_future_at(2));
    for (uint32_t i = 0; i < MEMBERS; i++)
        fake_world_word(&world, fake_task_at(3 + 2 * i), world.target.layout.future_callback0, fake_gather_callback(&world, i, fake_future_at(0)));
    settle();
    ck_assert_uint_eq(time_of("loop;t0.0;t1.0"), MEMBERS * 20 * MS);
    for (uint32_t i = 0; i < MEMBERS; i++) {
        fake_gather_callback(&world, i, fake_future_at(2));
        tick(10 * MS);
        ck_assert_uint_eq(time_of("loop;t0.0;t0.1;t1.0"), (uint64_t)(i + 1) * (i + 1) * 5 * MS);
        ck_assert_uint_eq(time_of("loop;t0.0;t1.0") + time_of("loop;t0.0;t0.1;t1.0"), MEMBERS * (20 + 10 * (i + 1)) * MS);
    }
    stop();
}
END_TEST

/* What many rest on cannot be read in one piece: their time comes later, or on their own chain. */
START_TEST(what_they_stand_on_is_torn)
{
    start_kinds(_i, 10, 2, COUNTED);
    uintptr_t callback = fake_gather_callback(&world, 0, fake_future_at(0));
    for (uint32_t i = 1; i < 10; i += 2)
        fake_world_word(&world, fake_task_at(i), world.target.layout.future_callback0, callback);
    settle();
    ck_assert_uint_eq(time_of("loop;t0.0;t1.0"), 5 * 20 * MS);
    fake_world_word(&world, fake_task_at(0) + FAKE_IN_ITER, world.target.layout.wrapper_inner, fake_future_at(2));
    tick(10 * MS);
    ck_assert_uint_eq(time_of("loop;t0.0;t1.0"), 5 * 25 * MS);
    ck_assert_uint_eq(time_of("loop;t1.0"), 0);
    ck_assert_uint_eq(window.counters.task_postponed, 6);
    fake_task_waits(&world, 0, 1, fake_future_at(0));
    fake_task_is_done(&world, 3);
    tick(10 * MS);
    ck_assert_uint_eq(time_of("loop;t0.0;t1.0"), 5 * 25 * MS + 4 * 15 * MS + 10 * MS);
    ck_assert_uint_eq(window.counters.dropped[DROP_torn_awaiter], 1);
    settle();
    ck_assert_uint_eq(time_of("loop;t0.0;t1.0"), 5 * 25 * MS + 4 * 35 * MS + 10 * MS);
    ck_assert_uint_eq(window.counters.task_postponed, 6);
    stop();
}
END_TEST

static bool changing;

static void change_waiter(uintptr_t address, size_t length)
{
    static uint32_t turn;
    uintptr_t waiter = fake_task_at(1) + (uintptr_t)world.target.layout.task_waiter;
    if (changing && address <= waiter && address + length > waiter)
        fake_task_waiter(&world, 1, turn++ % 3 ? fake_future_at(turn % 3) : 0);
}

/* One that stood on what others of its kind stand on by now, when it was read last. */
START_TEST(one_that_ends_after_it_was_torn)
{
    start_kinds(_i, 5, 0, COUNTED);
    maker_id maker = fake_maker(fake_coro_at(0, 0));
    fake_birth(fake_birth_of(fake_task_at(1), maker, 0));
    settle();
    ck_assert_uint_eq(time_of("loop;t0.0;t1.0"), 20 * MS);
    fake_maker_dies(maker);
    settle();
    ck_assert_uint_eq(time_of("loop;t1.0"), 15 * MS);
    changing = true;
    fake_on_read(change_waiter);
    tick(10 * MS);
    changing = false;
    fake_task_is_done(&world, 1);
    tick(10 * MS);
    ck_assert_uint_eq(time_of("loop;t0.0;t1.0"), 25 * MS);
    ck_assert_uint_eq(time_of("loop;t1.0"), 15 * MS + 5 * MS + 10 * MS); /* where it stood last */
    ck_assert_uint_eq(window.counters.dropped[DROP_torn_awaiter], 1);
    stop();
}
END_TEST

/* The same callback's address, leading elsewhere. */
START_TEST(a_callback_is_another_ones)
{
    start_resting(_i, 4, COUNTED);
    uintptr_t first = fake_gather_callback(&world, 0, fake_future_at(0));
    fake_world_word(&world, fake_task_at(2), world.target.layout.future_callback0, first);
    fake_world_word(&world, fake_task_at(3), world.target.layout.future_callback0, first);
    settle();
    ck_assert_uint_eq(time_of("loop;t0.0;t2.0"), 20 * MS);
    fake_gather_callback(&world, 0, fake_future_at(1)); /* mapped over it */
    tick(10 * MS);
    ck_assert_uint_eq(time_of("loop;t0.0;t2.0"), 25 * MS);
    ck_assert_uint_eq(time_of("loop;t1.0;t2.0"), 5 * MS);
    ck_assert_uint_eq(time_of("loop;t1.0;t3.0"), 5 * MS);
    ck_assert_uint_eq(time_of("loop;t0.0"), 5 * MS);
    ck_assert_uint_eq(time_of("loop;t1.0"), 25 * MS);
    stop();
}
END_TEST

START_TEST(an_awaiter_of_one_alone)
{
    start_resting(_i, 5, COUNTED);
    fake_task_awaits(&world, 0, 1, 2);
    fake_task_awaits(&world, 1, 1, 3);
    fake_wakes(&world, fake_task_at(4), 1, FAKE_AWAITERS_ROOM); /* left from before: no edge */
    settle();
    settle();
    ck_assert_uint_eq(time_of("loop;t0.0;t2.0"), 40 * MS);
    ck_assert_uint_eq(time_of("loop;t1.0;t3.0"), 40 * MS);
    ck_assert_uint_eq(time_of("loop;t4.0"), 40 * MS);
    fake_task_waits(&world, 1, 1, fake_future_at(1));
    tick(10 * MS);
    ck_assert_uint_eq(time_of("loop;t1.0;t3.0"), 45 * MS);
    ck_assert_uint_eq(time_of("loop;t1.0"), 5 * MS);
    ck_assert_uint_eq(time_of("loop;t3.0"), 5 * MS);
    stop();
}
END_TEST

/* Awaited, and left with the callback of one that waits for another now: of a kind, on the same loop. */
START_TEST(a_callback_that_is_left_over)
{
    start_kinds(_i, 6, 2, COUNTED);
    fake_task_awaits(&world, 0, 1, 1);
    fake_wakes(&world, fake_task_at(3), 0, FAKE_AWAITERS_ROOM);
    fake_wakes(&world, fake_task_at(5), 0, FAKE_AWAITERS_ROOM);
    settle();
    settle();
    ck_assert_uint_eq(time_of("loop;t0.0;t1.0"), 40 * MS);
    ck_assert_uint_eq(time_of("loop;t1.0"), 80 * MS);
    stop();
}
END_TEST

START_TEST(a_creator_moves_and_ends)
{
    start_resting(_i, 4, COUNTED);
    fake_task_waits(&world, 0, 2, fake_future_at(0));
    maker_id maker = fake_maker(fake_coro_at(0, 0));
    fake_birth(fake_birth_of(fake_task_at(0), 0, 0));
    for (uint32_t i = 1; i < 4; i++)
        fake_birth(fake_birth_of(fake_task_at(i), maker, 0));
    settle();
    ck_assert_uint_eq(time_of("loop;t0.0;t1.0"), 20 * MS);
    unsigned long reads = reads_of_tick(10 * MS);
    fake_task_waits(&world, 0, 3, fake_future_at(0)); /* below the maker: they stand as they stood */
    ck_assert_uint_lt(reads_of_tick(10 * MS), reads + 200);
    ck_assert_uint_eq(time_of("loop;t0.0;t1.0"), 40 * MS);
    fake_maker_dies(maker);
    tick(10 * MS);
    for (uint32_t i = 1; i < 4; i++) {
        char name[32];
        snprintf(name, sizeof name, "loop;t0.0;t%u.0", i);
        ck_assert_uint_eq(time_of(name), 45 * MS);
        snprintf(name, sizeof name, "loop;t%u.0", i);
        ck_assert_uint_eq(time_of(name), 5 * MS);
    }
    ck_assert_uint_eq(window.counters.dropped[DROP_creator_unknown], 3);
    stop();
}
END_TEST

/* --- births and ends --- */

START_TEST(another_one_at_the_address)
{
    start_resting(_i, 3, COUNTED);
    settle();
    fake_task(&world, 1, 2);
    fake_birth(fake_birth_of(fake_task_at(1), 0, 0));
    tick(10 * MS);
    ck_assert_uint_eq(time_of("loop;t1.0"), 25 * MS);
    ck_assert_uint_eq(time_of("loop;t1.0;t1.1"), 5 * MS);
    settle();
    fake_birth(fake_birth_of(fake_task_at(1), fake_maker(fake_coro_at(0, 0)), 0)); /* the same to the last bit */
    tick(10 * MS);
    ck_assert_uint_eq(time_of("loop;t1.0;t1.1"), 30 * MS);
    ck_assert_uint_eq(time_of("loop;t0.0;t1.0;t1.1"), 5 * MS);
    stop();
}
END_TEST

/* Records move when others leave; those that rest are found where they are. */
START_TEST(many_leave_and_come)
{
    enum { MANY = 120, KINDS = 3 };
    uint64_t expected[MANY] = {0};
    bool lives[MANY], was[MANY] = {false};
    start_resting(_i, MANY, COUNTED);
    memset(lives, 1, sizeof lives);
    seed = 3;
    for (int turn = 0; turn < 40; turn++) {
        for (int i = 0; i < 12; i++) {
            uint32_t task = chance(MANY);
            if (lives[task]) {
                fake_task_is_done(&world, task);
            } else {
                fake_task(&world, task, 1);
                fake_birth(fake_birth_of(fake_task_at(task), 0, 0));
            }
            lives[task] = !lives[task];
        }
        tick(10 * MS);
        for (uint32_t i = 0; i < MANY; i++) {
            expected[i] += turn ? 5 * MS * was[i] + 5 * MS * lives[i] : 10 * MS * lives[i];
            was[i] = lives[i];
        }
    }
    for (uint32_t i = 0; i < MANY; i++)
        ck_assert_uint_eq(time_of_task(i), expected[i]);
    stop();
}
END_TEST

/* --- windows and loops --- */

START_TEST(a_window_ends_while_they_rest)
{
    start_resting(_i, 3, COUNTED);
    settle();
    next_window();
    stacks_push_marker(&stacks, PROFILE_ROOT, "something else"); /* nodes are numbered otherwise */
    tick(10 * MS);
    ck_assert_uint_eq(time_of("loop;t1.0"), 10 * MS);
    ck_assert_uint_eq(total(), 30 * MS);
    tick(10 * MS);
    ck_assert_uint_eq(time_of("loop;t1.0"), 20 * MS);
    next_window();
    threads[0].driver = PROFILE_ROOT;
    tick(10 * MS);
    tick(10 * MS);
    ck_assert_uint_eq(total(), 0);
    threads[0].driver = stacks_push_marker(&stacks, PROFILE_ROOT, "other");
    tick(10 * MS);
    ck_assert_uint_eq(time_of("other;t1.0"), 30 * MS);
    stop();
}
END_TEST

START_TEST(a_loop_ends_while_they_rest)
{
    start_resting(_i, 3, COUNTED);
    settle();
    thread_runs(0, 0);
    tick(10 * MS);
    tick(10 * MS);
    ck_assert_uint_eq(total(), 3 * 25 * MS);
    thread_runs(0, fake_loop_at(0));
    threads[0].driver = stacks_push_marker(&stacks, PROFILE_ROOT, "again");
    tick(10 * MS);
    ck_assert_uint_eq(time_of("again;t1.0"), 5 * MS);
    ck_assert_uint_eq(total(), 3 * 30 * MS);
    stop();
}
END_TEST

/* --- random programs --- */

enum { TASKS = 24, TURNS = 50, CHANGES = 5, MAKERS = 8, TEXT = 1 << 19, STACKS = 4096 };

static struct sum {
    char *functions;
    uint64_t ns;
} sums[2][STACKS];
static uint32_t sums_count[2];
static struct counters counted[2];

static void take_sums(int run)
{
    uint32_t at = 0;
    profile_stack stack;
    for (uint64_t us; profile_each(stacks.profile, METRIC_TASK, &at, &stack, &us);) {
        char text[1 << 12];
        size_t length = profile_text(stacks.profile, stack, text, sizeof text - 1);
        ck_assert_uint_lt(length, sizeof text);
        text[length] = '\0';
        uint32_t i = 0;
        while (i < sums_count[run] && strcmp(sums[run][i].functions, text) != 0)
            i++;
        if (i == sums_count[run]) {
            ck_assert_uint_lt(i, STACKS);
            sums[run][sums_count[run]++] = (struct sum){strdup(text), 0};
        }
        sums[run][i].ns += profile_get_ns(stacks.profile, stack, METRIC_TASK);
    }
    counted[run].samples += window.counters.samples;
    counted[run].task_postponed += window.counters.task_postponed;
    for (int i = 0; i < DROP_COUNT; i++)
        counted[run].dropped[i] += window.counters.dropped[i];
}

enum what { GOES_ON, ENDS, BEGINS, IS_READY, RUNS_NOW, FUTURE_DONE, AWAITS_ANOTHER, IS_GATHERED, LETS_GO, MAKER_DIES, WHATS };

static maker_id makers[MAKERS];

/* Its coroutines are gone, those that made others among them. */
static void bury(uint32_t task)
{
    for (uint32_t i = 1; i <= fake_births.makers; i++)
        if (fake_births.maker[i] == fake_coro_at(task, 0))
            fake_maker_dies(i);
}

static void begin(uint32_t task)
{
    uint32_t maker = chance(MAKERS), of = chance(TASKS);
    bury(task);
    fake_task(&world, task, 1 + (int)chance(FAKE_LEVELS));
    if (!makers[maker] || !fake_births.maker[makers[maker]])
        makers[maker] = fake_maker(fake_coro_at(of, 0));
    bool older = fake_births.maker[makers[maker]] < fake_task_at(task); /* a circle of creators there is not */
    fake_birth(fake_birth_of(fake_task_at(task), older ? makers[maker] : 0, 0));
    if (chance(4) == 0)
        fake_task_is_new(&world, task);
}

/* Circles that have tasks in common are opened where they are met first, so there is one. */
static bool may_await(uint32_t task, uint32_t other)
{
    return task < other || (task == 1 && other == 0);
}

static void change_one(uint32_t task, bool *lives)
{
    enum what what = chance(WHATS);
    uint32_t other = chance(TASKS), levels = 1 + chance(FAKE_LEVELS);
    if (!*lives || what == BEGINS) {
        begin(task);
        *lives = true;
        return;
    }
    switch (what) {
    case GOES_ON:
        fake_future_state(&world, fake_future_at(task), FUTURE_PENDING);
        fake_task_waits(&world, task, (int)levels, fake_future_at(task));
        break;
    case ENDS:
        fake_task_is_done(&world, task);
        bury(task);
        *lives = false;
        break;
    case IS_READY:
        fake_task_waiter(&world, task, 0);
        break;
    case RUNS_NOW:
        fake_task_runs(&world, task, (int)levels);
        break;
    case FUTURE_DONE:
        fake_future_state(&world, fake_future_at(task), FUTURE_FINISHED);
        break;
    case AWAITS_ANOTHER:
        if (may_await(task, other)) {
            fake_no_callbacks(&world, fake_task_at(other));
            fake_task_awaits(&world, task, (int)levels, other);
        }
        break;
    case IS_GATHERED:
        if (!may_await(other, task))
            break;
        fake_no_callbacks(&world, fake_task_at(task));
        fake_world_word(&world, fake_task_at(task), world.target.layout.future_callback0, 0x300000000ul + 0x1000000ul * other + 0x820000);
        break;
    case LETS_GO:
        fake_no_callbacks(&world, fake_task_at(task));
        break;
    default:
        if (fake_births.makers)
            fake_maker_dies(1 + chance(fake_births.makers));
    }
}

static void change_surroundings(int run)
{
    static const char *const drivers[] = {"loop", "other"};
    switch (chance(16)) {
    case 0:
        take_sums(run);
        next_window();
        break;
    case 1:
        threads[0].driver = stacks_push_marker(&stacks, PROFILE_ROOT, drivers[chance(2)]);
        break;
    case 2:
        threads[0].driver = PROFILE_ROOT;
        break;
    case 3:
        thread_runs(0, 0);
        break;
    default:
        thread_runs(0, fake_loop_at(0));
        if (threads[0].driver == PROFILE_ROOT)
            threads[0].driver = driver_stack();
    }
}

static void run_program(int minor, uint64_t number, int run, uintptr_t counted_type)
{
    static const uint32_t of[] = {0, 1, 3, 7};
    bool lives[TASKS];
    memset(&counted[run], 0, sizeof counted[run]);
    memset(makers, 0, sizeof makers);
    start_kinds(minor, TASKS, of[number % 4], counted_type);
    for (uint32_t i = 0; i < TASKS; i++)
        fake_gather_callback(&world, i, fake_future_at(i));
    memset(lives, 1, sizeof lives);
    seed = number;
    settle();
    for (int turn = 0; turn < TURNS; turn++) {
        for (uint32_t i = chance(CHANGES); i-- > 0;) {
            uint32_t task = chance(TASKS);
            change_one(task, &lives[task]);
        }
        change_surroundings(run);
        threads[0].cpu++;
        still_tick(1 + chance(20 * MS), true);
    }
    take_sums(run);
    stop();
    codes_forget(); /* frames are another profile's */
    codes_forget_frames();
}

static uint64_t ns_of(int run, const char *functions)
{
    for (uint32_t i = 0; i < sums_count[run]; i++)
        if (strcmp(sums[run][i].functions, functions) == 0)
            return sums[run][i].ns;
    return 0;
}

static void compare_sums(uint64_t number, int a, int b)
{
    enum { ROUNDING = 2 * TURNS * TASKS }; /* of shares, to whole nanoseconds */
    for (uint32_t i = 0; i < sums_count[a]; i++) {
        uint64_t mine = sums[a][i].ns, others = ns_of(b, sums[a][i].functions);
        if (mine > others + ROUNDING || others > mine + ROUNDING)
            ck_abort_msg("program %lu: %s: %lu ns, and %lu in run %d", number, sums[a][i].functions, mine, others, b);
    }
}

START_TEST(random_programs_are_as_read_in_full)
{
    for (uint64_t number = 1; number <= 40; number++) {
        sums_count[0] = sums_count[1] = 0;
        run_program(_i, number, 0, NEVER);
        run_program(_i, number, 1, COUNTED);
        compare_sums(number, 0, 1);
        compare_sums(number, 1, 0);
        ck_assert_uint_eq(counted[0].samples, counted[1].samples);
        ck_assert_uint_eq(counted[0].task_postponed, counted[1].task_postponed);
        ck_assert_mem_eq(counted[0].dropped, counted[1].dropped, sizeof counted[0].dropped);
        for (int run = 0; run < 2; run++)
            for (uint32_t i = 0; i < sums_count[run]; i++)
                free(sums[run][i].functions);
    }
}
END_TEST

Suite *suite_rests(void)
{
    const TTest *const tests[] = {
        one_at_rest_is_hardly_read, all_are_verified_now_and_then, one_whose_future_died_is_read, one_whose_future_is_done_is_ready,
        no_longer_counted, those_of_a_kind_are_counted_together, of_two_makers, one_that_waits_for_members_does_not_rest,
        one_of_several_callbacks_is_another_ones, what_they_stand_on_is_torn, one_that_ends_after_it_was_torn,
        a_callback_that_is_left_over, an_awaiter_comes_and_goes, one_of_several_moves_on, one_at_rest_gets_a_member, a_callback_is_another_ones,
        an_awaiter_of_one_alone, a_creator_moves_and_ends, another_one_at_the_address, many_leave_and_come, a_window_ends_while_they_rest,
        a_loop_ends_while_they_rest, random_programs_are_as_read_in_full,
    };
    Suite *suite = suite_create("rests");
    TCase *groups = tcase_create("groups"), *each = tcase_create("each version");
    tcase_add_test(groups, groups_are_found_again);
    tcase_add_test(groups, empty_groups_are_not_gone_through);
    for (size_t i = 0; i < sizeof tests / sizeof *tests; i++)
        tcase_add_loop_test(each, tests[i], FIRST_MINOR, AFTER_LAST_MINOR);
    tcase_set_timeout(each, 60);
    suite_add_tcase(suite, groups);
    suite_add_tcase(suite, each);
    return suite;
}
