/* SPDX-License-Identifier: MIT
 * lineage: what tasks stand on: awaiters, creators, circles of both, and what is
 * proven of it. */
#include "sampler/lineage.h"

#include "hooks/mem.h"
#include "tests/unit/fake_asyncio.h"
#include "tests/unit/fake_births.h"

#define MIB ((size_t)1 << 20)
enum { DEEPEST = 5000, CHILDREN = 1000 };

Suite *suite_lineage(void);

static struct fake_world world;
static struct stacks stacks;
static struct registry *registry;
static struct lineage *lineage;
static uint8_t asyncio;
static bool driven;     /* the first loop runs */
static uint32_t asked;  /* how often the driver was */

static bool driver(void *context, uintptr_t loop, profile_stack *stack)
{
    ck_assert_ptr_eq(context, &world);
    asked++;
    if (loop != fake_loop_at(0) || !driven)
        return false;
    *stack = stacks_push_marker(&stacks, PROFILE_ROOT, "loop");
    return true;
}

static void start_with(int minor, uint32_t tasks, bool creators)
{
    fake_asyncio_start(&world, minor, tasks, (tasks < 500 ? 2 : 32) * MIB);
    fake_births_reset();
    ck_assert_int_eq(mem_init(256 * MIB), 0);
    ck_assert_int_eq(codes_start(), 0);
    int index = asyncios_publish(&world.asyncio);
    ck_assert_int_ge(index, 0);
    asyncio = (uint8_t)index;
    stacks = (struct stacks){.profile = profile_new(), .paths = {.full = true}, .target = &world.target};
    stacks.unknown = profile_intern(stacks.profile, "[unknown]", 9, 0);
    registry = registry_new(&world.target);
    lineage = lineage_new(registry, creators, driver, &world);
    driven = true;
    ck_assert_ptr_nonnull(lineage);
    for (uint32_t i = 0; i < tasks; i++)
        fake_task(&world, i, 1);
}

static void start(int minor, uint32_t tasks)
{
    start_with(minor, tasks, true);
}

static void stop(void)
{
    lineage_free(lineage);
    registry_free(registry);
    asyncios_withdraw_all();
    fake_reset();
    free(world.bytes);
}

/* Becomes known in the order of their numbers. */
static void know_all(void)
{
    for (uint32_t i = 0; i < world.tasks; i++)
        registry_add(registry, fake_task_at(i), asyncio);
}

static void new_round(void)
{
    registry_end_round(registry);
    registry_begin_round(registry);
    lineage_begin_round(lineage, &stacks);
    for (uint32_t i = 0; i < registry_count(registry); i++)
        registry_read(registry, i);
}

static uint32_t index_of(uint32_t task)
{
    uint32_t index = registry_find(registry, fake_task_at(task));
    ck_assert_uint_ne(index, NO_TASK);
    return index;
}

/* Made by coroutines; 0: none. */
static void born(uint32_t task, maker_id inner, maker_id outer)
{
    struct birth birth = fake_birth_of(fake_task_at(task), inner, outer);
    registry_born(registry, &birth, asyncio);
}

static uint32_t sum_of(const struct base *bases, uint32_t count)
{
    uint32_t sum = 0;
    for (uint32_t i = 0; i < count; i++)
        sum += bases[i].share;
    return sum;
}

static uint32_t bases_of(uint32_t task, const struct base **bases)
{
    uint32_t count = lineage_of(lineage, index_of(task), bases);
    if (count)
        ck_assert_uint_eq(sum_of(*bases, count), LINEAGE_ALL);
    return count;
}

/* It stands on this stack, and on no other. */
static void must_stand_on(uint32_t task, const char *functions)
{
    const struct base *bases;
    ck_assert_uint_eq(bases_of(task, &bases), 1);
    ck_assert_str_eq(fake_functions(stacks.profile, bases[0].stack), functions);
}

static void must_have_part(uint32_t task, const char *functions, double part)
{
    const struct base *bases;
    uint32_t count = bases_of(task, &bases);
    for (uint32_t i = 0; i < count; i++) {
        if (strcmp(fake_functions(stacks.profile, bases[i].stack), functions) != 0)
            continue;
        ck_assert_double_eq_tol((double)bases[i].share / LINEAGE_ALL, part, 1e-6);
        return;
    }
    ck_abort_msg("t%u does not stand on %s", task, functions);
}

/* --- awaiters --- */

START_TEST(nobody_awaits_it)
{
    start(_i, 1);
    know_all();
    new_round();
    must_stand_on(0, "loop");
    ck_assert(lineage_is_placed(lineage, index_of(0)));
    ck_assert(!lineage_is_made(lineage, index_of(0)));
    ck_assert(!lineage_lacks_creator(lineage, index_of(0)));
    ck_assert_uint_eq(lineage_cut(lineage, index_of(0)), NO_TASK);
    stop();
}
END_TEST

START_TEST(the_loop_does_not_run)
{
    const struct base *bases;
    start(_i, 2);
    fake_task_awaits(&world, 1, 1, 0);
    know_all();
    driven = false;
    new_round();
    ck_assert_uint_eq(bases_of(1, &bases), 0);
    ck_assert_uint_eq(bases_of(0, &bases), 0);
    stop();
}
END_TEST

START_TEST(one_awaiter_with_its_whole_chain)
{
    const struct base *bases;
    start(_i, 3);
    fake_task_awaits(&world, 0, 3, 1);
    fake_task_awaits(&world, 1, 2, 2);
    know_all();
    new_round();
    must_stand_on(2, "loop;t0.0;t0.1;t0.2;t1.0;t1.1");
    must_stand_on(1, "loop;t0.0;t0.1;t0.2");
    must_stand_on(0, "loop");
    ck_assert_uint_eq(lineage_whole(lineage, index_of(1), &bases), 1);
    ck_assert_str_eq(fake_functions(stacks.profile, bases[0].stack), "loop;t0.0;t0.1;t0.2;t1.0;t1.1");
    stop();
}
END_TEST

START_TEST(several_awaiters_share)
{
    start(_i, 8);
    for (uint32_t i = 1; i < 8; i++)
        fake_task_awaits(&world, i, 1, 0);
    know_all();
    new_round();
    for (uint32_t i = 1; i < 8; i++) {
        char text[32];
        snprintf(text, sizeof text, "loop;t%u.0", i);
        must_have_part(0, text, 1.0 / 7);
    }
    stop();
}
END_TEST

/* Levels of three tasks each, each of which awaits all three of the next: shares of
 * shares. */
START_TEST(shares_of_shares_are_all)
{
    const struct base *bases;
    start(_i, 13);
    for (uint32_t level = 0; level < 4; level++)
        for (uint32_t i = 0; i < 3; i++) {
            fake_task_waits(&world, level * 3 + i, 1, fake_future_at(level));
            for (uint32_t below = 0; below < (level == 3 ? 1u : 3u); below++)
                fake_wakes(&world, fake_task_at(level * 3 + 3 + below), level * 3 + i, FAKE_AWAITERS_ROOM);
        }
    /* A future is no task: each edge closes only if they wait for the task itself. */
    for (uint32_t i = 0; i < 12; i++)
        fake_task_waits(&world, i, 1, fake_task_at(i / 3 * 3 + 3 + (i < 9 ? i % 3 : 0)));
    know_all();
    new_round();
    ck_assert_uint_eq(bases_of(12, &bases), 3);
    must_have_part(12, "loop;t0.0;t3.0;t6.0;t9.0", 1.0 / 3);
    stop();
}
END_TEST

/* An inner node of three awaiters, each of which has three of its own. */
START_TEST(a_tree_of_awaiters)
{
    const struct base *bases;
    start(_i, 40);
    for (uint32_t i = 1; i < 40; i++)
        fake_task_awaits(&world, i, 1, (i - 1) / 3);
    know_all();
    new_round();
    ck_assert_uint_eq(bases_of(0, &bases), 27);
    must_have_part(0, "loop;t13.0;t4.0;t1.0", 1.0 / 27);
    must_have_part(0, "loop;t39.0;t12.0;t3.0", 1.0 / 27);
    must_have_part(1, "loop;t13.0;t4.0", 1.0 / 9);
    stop();
}
END_TEST

START_TEST(more_awaiters_than_bases)
{
    const struct base *bases;
    start(_i, 201);
    for (uint32_t i = 1; i < 201; i++)
        fake_task_awaits(&world, i, 1, 0);
    know_all();
    new_round();
    ck_assert_uint_eq(bases_of(0, &bases), LINEAGE_BASES);
    must_have_part(0, "loop;t60.0", 1.0 / 200);
    stop();
}
END_TEST

/* Two awaiters whose stacks are one. */
START_TEST(equal_stacks_are_one_base)
{
    start(_i, 3);
    fake_task_awaits(&world, 1, 1, 0);
    fake_task_awaits(&world, 2, 1, 0);
    fake_world_word(&world, fake_coro_at(2, 0), world.target.layout.gen_frame + world.target.layout.frame_executable,
                    fake_task_at(1) + FAKE_IN_CODE);
    fake_world_word(&world, fake_coro_at(2, 0), world.target.layout.gen_frame + world.target.layout.frame_instr,
                    fake_task_at(1) + FAKE_IN_CODE + (uintptr_t)world.target.layout.code_adaptive + FAKE_AT_AWAIT);
    know_all();
    new_round();
    must_stand_on(0, "loop;t1.0");
    stop();
}
END_TEST

static const uint32_t depths[] = {1, 2, 63, 64, 65, 1000, DEEPEST};

/* A queue of tasks, each of which awaits the next; asked from the end and from the
 * beginning. No recursion: the thread's stack would not hold it in a sanitizer. */
START_TEST(any_depth)
{
    const struct base *bases;
    uint32_t depth = depths[_i];
    start(14, depth + 1);
    for (uint32_t task = 0; task < depth; task++)
        fake_task_awaits(&world, task, 1, task + 1);
    know_all();
    new_round();
    ck_assert_uint_eq(bases_of(depth, &bases), 1);
    ck_assert_uint_eq(profile_depth(stacks.profile, bases[0].stack), depth + 1);
    ck_assert_uint_eq(bases_of(depth / 2, &bases), 1);
    ck_assert_uint_eq(profile_depth(stacks.profile, bases[0].stack), depth / 2 + 1);
    ck_assert_uint_eq(asked, 1);
    stop();
}
END_TEST

/* --- each once --- */

/* All children of one parent. */
START_TEST(a_parent_is_computed_once)
{
    start(_i, CHILDREN + 2);
    maker_id maker = fake_maker(fake_coro_at(1, 0));
    fake_task_awaits(&world, 0, 1, 1);
    know_all();
    for (uint32_t i = 2; i < CHILDREN + 2; i++)
        born(i, maker, 0);
    new_round();
    unsigned long reads = fake_reads();
    for (uint32_t i = 2; i < CHILDREN + 2; i++)
        must_stand_on(i, "loop;t0.0;t1.0");
    ck_assert_uint_eq(asked, 1);
    ck_assert_uint_lt(fake_reads() - reads, 100 * CHILDREN);
    asked = 0;
    new_round();
    must_stand_on(2, "loop;t0.0;t1.0");
    ck_assert_uint_eq(asked, 1);
    stop();
}
END_TEST

/* --- creators --- */

START_TEST(it_stands_on_the_coroutine_that_made_it)
{
    start(_i, 3);
    fake_task(&world, 1, 3);
    fake_task_awaits(&world, 0, 1, 1);
    know_all();
    new_round();
    born(2, fake_maker(fake_coro_at(1, 1)), fake_maker(fake_coro_at(1, 0)));
    new_round();
    must_stand_on(2, "loop;t0.0;t1.0;t1.1"); /* not below what that one awaits */
    ck_assert(lineage_is_made(lineage, index_of(2)));
    ck_assert(!lineage_lacks_creator(lineage, index_of(2)));
    stop();
}
END_TEST

START_TEST(its_maker_returned)
{
    start(_i, 2);
    fake_task(&world, 0, 3);
    maker_id inner = fake_maker(fake_coro_at(0, 2)), outer = fake_maker(fake_coro_at(0, 0));
    know_all();
    new_round();
    born(1, inner, outer);
    new_round();
    must_stand_on(1, "loop;t0.0;t0.1;t0.2");
    fake_maker_dies(inner);
    new_round();
    must_stand_on(1, "loop;t0.0");
    ck_assert(lineage_is_made(lineage, index_of(1)));
    fake_maker_dies(outer);
    new_round();
    must_stand_on(1, "loop");
    ck_assert(!lineage_is_made(lineage, index_of(1)));
    ck_assert(lineage_lacks_creator(lineage, index_of(1)));
    stop();
}
END_TEST

/* That its maker is gone is found after it was read: it must be as it was even so. */
START_TEST(its_maker_returned_and_it_went_on)
{
    const struct base *bases;
    start(_i, 2);
    fake_task(&world, 0, 3);
    maker_id inner = fake_maker(fake_coro_at(0, 2)), outer = fake_maker(fake_coro_at(0, 0));
    know_all();
    new_round();
    born(1, inner, outer);
    new_round();
    registry_read(registry, index_of(1));
    fake_maker_dies(inner);
    bases_of(1, &bases);
    lineage_prove(lineage);
    ck_assert(lineage_is_proven(lineage, index_of(1)));
    for (int dead = 0; dead < 2; dead++) { /* one of them, all */
        fake_task_waits(&world, 1, 1, fake_future_at(1));
        new_round();
        registry_read(registry, index_of(1));
        bases_of(1, &bases);
        fake_task_waits(&world, 1, 1, fake_future_at(0));
        lineage_prove(lineage);
        ck_assert(!lineage_is_proven(lineage, index_of(1)));
        fake_maker_dies(outer);
    }
    stop();
}
END_TEST

/* It lives, but another task awaits it now, or nobody: not in the chain. */
START_TEST(its_maker_went_elsewhere)
{
    start(_i, 2);
    fake_task(&world, 0, 3);
    maker_id inner = fake_maker(fake_coro_at(0, 2)), outer = fake_maker(fake_coro_at(0, 0));
    fake_task_waits(&world, 0, 2, fake_future_at(0));
    know_all();
    new_round();
    born(1, inner, outer);
    new_round();
    must_stand_on(1, "loop;t0.0");
    stop();
}
END_TEST

START_TEST(made_by_no_task)
{
    start(_i, 2);
    know_all();
    born(0, 0, 0);
    born(1, fake_maker(0x77770000), 0);
    new_round();
    must_stand_on(0, "loop");
    ck_assert(!lineage_lacks_creator(lineage, index_of(0)));
    must_stand_on(1, "loop");
    ck_assert(lineage_lacks_creator(lineage, index_of(1)));
    stop();
}
END_TEST

START_TEST(its_creator_runs)
{
    start(_i, 2);
    fake_task(&world, 0, 3);
    fake_task_runs(&world, 0, 3);
    know_all();
    new_round();
    born(1, fake_maker(fake_coro_at(0, 1)), fake_maker(fake_coro_at(0, 0)));
    new_round();
    must_stand_on(1, "loop;t0.0;t0.1");
    stop();
}
END_TEST

START_TEST(its_creator_is_awaited)
{
    start(_i, 4);
    fake_task_awaits(&world, 0, 1, 2);
    fake_task_awaits(&world, 1, 2, 2);
    know_all();
    new_round();
    born(3, fake_maker(fake_coro_at(2, 0)), 0);
    new_round();
    must_have_part(3, "loop;t0.0;t2.0", 0.5);
    must_have_part(3, "loop;t1.0;t1.1;t2.0", 0.5);
    stop();
}
END_TEST

/* Who is awaited stands on awaiters, whoever made it. */
START_TEST(awaiters_come_before_creators)
{
    start(_i, 3);
    fake_task_awaits(&world, 0, 1, 2);
    know_all();
    new_round();
    born(2, fake_maker(fake_coro_at(1, 0)), 0);
    new_round();
    must_stand_on(2, "loop;t0.0");
    ck_assert(!lineage_is_made(lineage, index_of(2)));
    stop();
}
END_TEST

START_TEST(without_creators)
{
    start_with(_i, 2, false);
    know_all();
    new_round();
    born(1, fake_maker(fake_coro_at(0, 0)), 0);
    new_round();
    must_stand_on(1, "loop");
    ck_assert(!lineage_lacks_creator(lineage, index_of(1)));
    stop();
}
END_TEST

/* It dies between being read and being asked. */
START_TEST(a_maker_that_dies_meanwhile)
{
    start(_i, 2);
    know_all();
    new_round();
    born(1, fake_maker(fake_coro_at(0, 0)), 0);
    new_round();
    fake_births.dies_after = 1;
    must_stand_on(1, "loop");
    ck_assert(lineage_lacks_creator(lineage, index_of(1)));
    stop();
}
END_TEST

START_TEST(its_own_maker)
{
    start(_i, 1);
    know_all();
    new_round();
    born(0, fake_maker(fake_coro_at(0, 0)), 0); /* the coroutine of before, at this address */
    new_round();
    must_stand_on(0, "loop");
    ck_assert(lineage_lacks_creator(lineage, index_of(0)));
    stop();
}
END_TEST

/* Makers that were seen in turn: what stands on one must not stand on the other. */
START_TEST(children_of_several_in_turn)
{
    start(_i, 12);
    maker_id makers[2] = {fake_maker(fake_coro_at(0, 0)), fake_maker(fake_coro_at(1, 0))};
    know_all();
    new_round();
    for (uint32_t i = 2; i < 12; i++)
        born(i, makers[i % 3 == 0], 0);
    new_round();
    for (uint32_t i = 2; i < 12; i++)
        must_stand_on(i, i % 3 == 0 ? "loop;t1.0" : "loop;t0.0");
    fake_maker_dies(makers[0]);
    new_round();
    for (uint32_t i = 2; i < 12; i++)
        must_stand_on(i, i % 3 == 0 ? "loop;t1.0" : "loop");
    stop();
}
END_TEST

/* At the address of the one that was placed last, meanwhile. */
START_TEST(another_child_is_born_meanwhile)
{
    start(_i, 4);
    maker_id makers[2] = {fake_maker(fake_coro_at(0, 0)), fake_maker(fake_coro_at(1, 0))};
    know_all();
    new_round();
    born(2, makers[0], 0);
    born(3, makers[1], 0);
    new_round();
    must_stand_on(2, "loop;t0.0");
    born(2, makers[1], 0);
    must_stand_on(3, "loop;t1.0");
    stop();
}
END_TEST

/* One of another loop, which runs no more: nothing wakes it, but it lives. */
START_TEST(a_creator_whose_loop_stopped)
{
    start(_i, 2);
    fake_world_word(&world, fake_task_at(0), world.target.layout.future_loop, fake_loop_at(1));
    know_all();
    new_round();
    born(1, fake_maker(fake_coro_at(0, 0)), 0);
    new_round();
    must_stand_on(1, "loop");
    stop();
}
END_TEST

/* --- circles --- */

/* gather(): the task waits for its own future, which is done when each of these is. */
static void gathers(uint32_t task, uint32_t first, uint32_t members)
{
    fake_task_waits(&world, task, 1, fake_future_at(task));
    for (uint32_t i = first; i < first + members; i++)
        fake_world_word(&world, fake_task_at(i), world.target.layout.future_callback0, fake_gather_callback(&world, i, fake_future_at(task)));
}

/* Each awaits the next, the last the first. */
static void make_circle(uint32_t first, uint32_t tasks)
{
    for (uint32_t i = 0; i < tasks; i++)
        fake_task_awaits(&world, first + i, 1, first + (i + 1) % tasks);
}

/* Tasks become known from the last to the first, so the oldest is no other. */
START_TEST(a_circle_without_a_leaf)
{
    uint32_t tasks = 2 + (uint32_t)_i;
    const struct base *bases;
    char text[64] = "loop;[cycle]";
    start(14, tasks);
    make_circle(0, tasks);
    for (uint32_t i = tasks; i-- > 0;)
        registry_add(registry, fake_task_at(i), asyncio);
    new_round();
    lineage_end_leaves(lineage);
    for (uint32_t i = 0; i < tasks; i++)
        bases_of(i, &bases);
    uint32_t oldest = index_of(tasks - 1), last = lineage_cut(lineage, oldest);
    ck_assert_uint_eq(last, index_of(tasks - 2));
    ck_assert(!lineage_bears_leaf(lineage, oldest));
    for (uint32_t i = 0; i < tasks - 1; i++)
        ck_assert_uint_eq(lineage_cut(lineage, index_of(i)), NO_TASK);
    must_stand_on(tasks - 1, "loop;[cycle]");
    snprintf(text + strlen(text), sizeof text - strlen(text), ";t%u.0", tasks - 1);
    for (uint32_t i = 0; i < tasks - 1; i++)
        snprintf(text + strlen(text), sizeof text - strlen(text), ";t%u.0", i);
    ck_assert_uint_eq(lineage_whole(lineage, last, &bases), 1);
    ck_assert_str_eq(fake_functions(stacks.profile, bases[0].stack), text);
    stop();
}
END_TEST

START_TEST(a_circle_with_a_leaf)
{
    start(_i, 3);
    fake_task_awaits(&world, 1, 1, 0);
    gathers(0, 1, 2);
    know_all();
    new_round();
    must_stand_on(2, "loop;[cycle];t0.0");
    lineage_end_leaves(lineage);
    ck_assert(lineage_bears_leaf(lineage, index_of(0)));
    ck_assert_uint_eq(lineage_cut(lineage, index_of(0)), index_of(1));
    stop();
}
END_TEST

START_TEST(who_awaits_itself)
{
    start(_i, 1);
    fake_task_awaits(&world, 0, 1, 0);
    know_all();
    new_round();
    must_stand_on(0, "loop;[cycle]");
    ck_assert_uint_eq(lineage_cut(lineage, index_of(0)), index_of(0));
    stop();
}
END_TEST

/* A member of a circle that somebody outside awaits too. */
START_TEST(a_circle_that_is_awaited)
{
    start(_i, 3);
    make_circle(0, 2);
    fake_task_awaits(&world, 2, 1, 0);
    know_all();
    new_round();
    must_have_part(0, "loop;[cycle]", 0.5);
    must_have_part(0, "loop;t2.0", 0.5);
    must_have_part(1, "loop;[cycle];t0.0", 0.5);
    must_have_part(1, "loop;t2.0;t0.0", 0.5);
    stop();
}
END_TEST

/* Through gather() one task waits for two, each of which waits for it. */
START_TEST(two_circles_through_one_task)
{
    start(_i, 3);
    fake_task_awaits(&world, 1, 1, 0);
    fake_task_awaits(&world, 2, 1, 0);
    gathers(0, 1, 2);
    know_all();
    new_round();
    must_stand_on(1, "loop;[cycle];t0.0");
    must_stand_on(2, "loop;[cycle];t0.0");
    must_stand_on(0, "loop;[cycle]");
    for (uint32_t i = 0; i < 3; i++)
        ck_assert(lineage_is_proven(lineage, index_of(i)));
    stop();
}
END_TEST

START_TEST(two_circles_apart)
{
    start(_i, 5);
    make_circle(0, 2);
    make_circle(2, 3);
    know_all();
    new_round();
    must_stand_on(1, "loop;[cycle];t0.0");
    must_stand_on(4, "loop;[cycle];t2.0;t3.0");
    must_stand_on(2, "loop;[cycle]");
    stop();
}
END_TEST

/* The awaiter of one was made by it: no circle of awaiters. */
static void circle_through_a_creator(int minor)
{
    start(minor, 2);
    fake_task_awaits(&world, 1, 1, 0);
    know_all();
    new_round();
    born(1, fake_maker(fake_coro_at(0, 0)), 0);
    new_round();
}

static void must_be_open(void)
{
    ck_assert(!lineage_is_made(lineage, index_of(1)));
    for (uint32_t i = 0; i < 2; i++) {
        ck_assert_uint_eq(lineage_cut(lineage, index_of(i)), NO_TASK);
        ck_assert(lineage_is_proven(lineage, index_of(i)));
    }
    stop();
}

START_TEST(a_circle_through_a_creator)
{
    circle_through_a_creator(_i);
    must_stand_on(0, "loop;t1.0");
    must_stand_on(1, "loop");
    must_be_open();
}
END_TEST

START_TEST(the_same_circle_from_its_other_end)
{
    circle_through_a_creator(_i);
    must_stand_on(1, "loop");
    must_stand_on(0, "loop;t1.0");
    must_be_open();
}
END_TEST

/* Two that made each other, one of them at an address that was used before. */
START_TEST(a_circle_of_creators)
{
    start(_i, 3);
    know_all();
    new_round();
    born(0, fake_maker(fake_coro_at(1, 0)), 0);
    born(1, fake_maker(fake_coro_at(0, 0)), 0);
    born(2, fake_maker(fake_coro_at(0, 0)), 0);
    new_round();
    must_stand_on(2, "loop;t0.0");
    must_stand_on(0, "loop");
    must_stand_on(1, "loop;t0.0");
    stop();
}
END_TEST

START_TEST(a_diamond)
{
    start(_i, 4);
    fake_task_awaits(&world, 1, 1, 0);
    fake_task_awaits(&world, 2, 1, 0);
    know_all();
    new_round();
    born(1, fake_maker(fake_coro_at(3, 0)), 0);
    born(2, fake_maker(fake_coro_at(3, 0)), 0);
    new_round();
    must_have_part(0, "loop;t3.0;t1.0", 0.5);
    must_have_part(0, "loop;t3.0;t2.0", 0.5);
    stop();
}
END_TEST

/* --- proof --- */

START_TEST(what_stays_is_proven)
{
    const struct base *bases;
    start(_i, 3);
    fake_task_awaits(&world, 0, 2, 1);
    fake_task_awaits(&world, 1, 2, 2);
    know_all();
    new_round();
    bases_of(2, &bases);
    lineage_prove(lineage);
    for (uint32_t i = 0; i < 3; i++)
        ck_assert(lineage_is_proven(lineage, index_of(i)));
    stop();
}
END_TEST

START_TEST(what_stands_on_one_that_changed_is_not)
{
    const struct base *bases;
    start(_i, 4);
    fake_task_awaits(&world, 0, 2, 1);
    fake_task_awaits(&world, 1, 2, 2);
    know_all();
    new_round();
    bases_of(2, &bases);
    new_round(); /* what is known from before is proven at the end */
    bases_of(2, &bases);
    bases_of(3, &bases);
    fake_task_waits(&world, 0, 2, fake_future_at(0));
    lineage_prove(lineage);
    ck_assert(!lineage_is_proven(lineage, index_of(1)));
    ck_assert(!lineage_is_proven(lineage, index_of(2)));
    ck_assert(lineage_is_proven(lineage, index_of(3)));
    new_round();
    bases_of(2, &bases);
    lineage_prove(lineage);
    ck_assert(lineage_is_proven(lineage, index_of(2)));
    must_stand_on(2, "loop;t1.0;t1.1");
    stop();
}
END_TEST

/* An edge was read, then the awaiter, which had gone on by then. */
START_TEST(an_awaiter_that_moves_on_meanwhile)
{
    const struct base *bases;
    start(_i, 2);
    fake_task_awaits(&world, 1, 1, 0);
    registry_add(registry, fake_task_at(0), asyncio);
    registry_begin_round(registry);
    lineage_begin_round(lineage, &stacks);
    registry_read(registry, 0);
    fake_task_waits(&world, 1, 1, fake_future_at(1));
    bases_of(0, &bases);
    ck_assert(!lineage_is_proven(lineage, 0));
    stop();
}
END_TEST

/* It was one when the edge was read that is left out. */
START_TEST(a_circle_that_is_none_any_more)
{
    const struct base *bases;
    start(_i, 2);
    make_circle(0, 2);
    know_all();
    registry_begin_round(registry);
    lineage_begin_round(lineage, &stacks);
    registry_read(registry, 0);
    fake_task_waits(&world, 1, 1, fake_future_at(1));
    bases_of(1, &bases);
    bases_of(0, &bases);
    lineage_prove(lineage);
    for (uint32_t i = 0; i < 2; i++)
        ck_assert(!lineage_is_proven(lineage, i));
    stop();
}
END_TEST

START_TEST(a_creator_that_is_torn)
{
    const struct base *bases;
    start(_i, 2);
    know_all();
    new_round();
    born(1, fake_maker(fake_coro_at(0, 0)), 0);
    fake_task_waiter(&world, 0, fake_future_at(1)); /* which its chain does not say */
    new_round();
    bases_of(1, &bases);
    ck_assert(!lineage_is_proven(lineage, index_of(1)));
    stop();
}
END_TEST

/* The creator's awaiter changed. */
START_TEST(above_a_creator_too)
{
    const struct base *bases;
    start(_i, 3);
    fake_task_awaits(&world, 0, 1, 1);
    know_all();
    new_round();
    born(2, fake_maker(fake_coro_at(1, 0)), 0);
    new_round();
    bases_of(2, &bases);
    fake_task_waits(&world, 0, 1, fake_future_at(0));
    lineage_prove(lineage);
    ck_assert(!lineage_is_proven(lineage, index_of(2)));
    stop();
}
END_TEST

/* What has no room is not proven: whoever asks adds its time later. */
START_TEST(no_memory)
{
    uint32_t unproven = 0, tasks = 3000;
    const struct base *bases;
    start(14, tasks);
    for (uint32_t i = 1; i < tasks; i++)
        fake_task_awaits(&world, i, 1, (i - 1) / 2);
    know_all();
    new_round();
    for (size_t size = MIB; size >= 64; size /= 2)
        while (mem_alloc(size))
            ;
    for (uint32_t i = 0; i < tasks; i++)
        if (i >= tasks / 2 || i < 10)
            lineage_of(lineage, index_of(i), &bases);
    lineage_prove(lineage);
    for (uint32_t i = 0; i < 10; i++) {
        uint32_t count = lineage_of(lineage, index_of(i), &bases);
        unproven += !lineage_is_proven(lineage, index_of(i));
        if (lineage_is_proven(lineage, index_of(i)))
            ck_assert_uint_eq(sum_of(bases, count), LINEAGE_ALL);
    }
    ck_assert_uint_gt(unproven, 0);
    stop();
}
END_TEST

Suite *suite_lineage(void)
{
    Suite *suite = suite_create("lineage");
    TCase *awaiters = tcase_create("awaiters"), *creators = tcase_create("creators"), *circles = tcase_create("circles"),
          *proof = tcase_create("proof");
    tcase_add_loop_test(awaiters, nobody_awaits_it, FIRST_MINOR, AFTER_LAST_MINOR);
    tcase_add_loop_test(awaiters, the_loop_does_not_run, FIRST_MINOR, AFTER_LAST_MINOR);
    tcase_add_loop_test(awaiters, one_awaiter_with_its_whole_chain, FIRST_MINOR, AFTER_LAST_MINOR);
    tcase_add_loop_test(awaiters, several_awaiters_share, FIRST_MINOR, AFTER_LAST_MINOR);
    tcase_add_loop_test(awaiters, shares_of_shares_are_all, FIRST_MINOR, AFTER_LAST_MINOR);
    tcase_add_loop_test(awaiters, a_tree_of_awaiters, FIRST_MINOR, AFTER_LAST_MINOR);
    tcase_add_loop_test(awaiters, more_awaiters_than_bases, FIRST_MINOR, AFTER_LAST_MINOR);
    tcase_add_loop_test(awaiters, equal_stacks_are_one_base, FIRST_MINOR, AFTER_LAST_MINOR);
    tcase_add_loop_test(awaiters, any_depth, 0, sizeof depths / sizeof depths[0]);
    tcase_add_loop_test(creators, a_parent_is_computed_once, FIRST_MINOR, AFTER_LAST_MINOR);
    tcase_add_loop_test(creators, it_stands_on_the_coroutine_that_made_it, FIRST_MINOR, AFTER_LAST_MINOR);
    tcase_add_loop_test(creators, its_maker_returned, FIRST_MINOR, AFTER_LAST_MINOR);
    tcase_add_loop_test(creators, its_maker_returned_and_it_went_on, FIRST_MINOR, AFTER_LAST_MINOR);
    tcase_add_loop_test(creators, its_maker_went_elsewhere, FIRST_MINOR, AFTER_LAST_MINOR);
    tcase_add_loop_test(creators, made_by_no_task, FIRST_MINOR, AFTER_LAST_MINOR);
    tcase_add_loop_test(creators, its_creator_runs, FIRST_MINOR, AFTER_LAST_MINOR);
    tcase_add_loop_test(creators, its_creator_is_awaited, FIRST_MINOR, AFTER_LAST_MINOR);
    tcase_add_loop_test(creators, awaiters_come_before_creators, FIRST_MINOR, AFTER_LAST_MINOR);
    tcase_add_loop_test(creators, without_creators, FIRST_MINOR, AFTER_LAST_MINOR);
    tcase_add_loop_test(creators, a_maker_that_dies_meanwhile, FIRST_MINOR, AFTER_LAST_MINOR);
    tcase_add_loop_test(creators, children_of_several_in_turn, FIRST_MINOR, AFTER_LAST_MINOR);
    tcase_add_loop_test(creators, another_child_is_born_meanwhile, FIRST_MINOR, AFTER_LAST_MINOR);
    tcase_add_loop_test(creators, its_own_maker, FIRST_MINOR, AFTER_LAST_MINOR);
    tcase_add_loop_test(creators, a_creator_whose_loop_stopped, FIRST_MINOR, AFTER_LAST_MINOR);
    tcase_add_loop_test(circles, a_circle_without_a_leaf, 0, 4);
    tcase_add_loop_test(circles, a_circle_with_a_leaf, FIRST_MINOR, AFTER_LAST_MINOR);
    tcase_add_loop_test(circles, who_awaits_itself, FIRST_MINOR, AFTER_LAST_MINOR);
    tcase_add_loop_test(circles, a_circle_that_is_awaited, FIRST_MINOR, AFTER_LAST_MINOR);
    tcase_add_loop_test(circles, two_circles_through_one_task, FIRST_MINOR, AFTER_LAST_MINOR);
    tcase_add_loop_test(circles, two_circles_apart, FIRST_MINOR, AFTER_LAST_MINOR);
    tcase_add_loop_test(circles, a_circle_through_a_creator, FIRST_MINOR, AFTER_LAST_MINOR);
    tcase_add_loop_test(circles, the_same_circle_from_its_other_end, FIRST_MINOR, AFTER_LAST_MINOR);
    tcase_add_loop_test(circles, a_circle_of_creators, FIRST_MINOR, AFTER_LAST_MINOR);
    tcase_add_loop_test(circles, a_diamond, FIRST_MINOR, AFTER_LAST_MINOR);
    tcase_add_loop_test(proof, what_stays_is_proven, FIRST_MINOR, AFTER_LAST_MINOR);
    tcase_add_loop_test(proof, what_stands_on_one_that_changed_is_not, FIRST_MINOR, AFTER_LAST_MINOR);
    tcase_add_loop_test(proof, an_awaiter_that_moves_on_meanwhile, FIRST_MINOR, AFTER_LAST_MINOR);
    tcase_add_loop_test(proof, a_circle_that_is_none_any_more, FIRST_MINOR, AFTER_LAST_MINOR);
    tcase_add_loop_test(proof, a_creator_that_is_torn, FIRST_MINOR, AFTER_LAST_MINOR);
    tcase_add_loop_test(proof, above_a_creator_too, FIRST_MINOR, AFTER_LAST_MINOR);
    tcase_add_test(proof, no_memory);
    tcase_set_timeout(awaiters, 60);
    tcase_set_timeout(proof, 60);
    suite_add_tcase(suite, awaiters);
    suite_add_tcase(suite, creators);
    suite_add_tcase(suite, circles);
    suite_add_tcase(suite, proof);
    return suite;
}
