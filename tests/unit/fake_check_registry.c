/* SPDX-License-Identifier: MIT
 * registry: who is pending, what a round saw of each, and the two indexes against a
 * naive model. */
#include "sampler/registry.h"

#include "hooks/mem.h"
#include "tests/unit/fake_asyncio.h"
#include "tests/unit/fake_births.h"

#define MIB ((size_t)1 << 20)
#define UNBORN_AT_MOST 200 /* rounds */

Suite *suite_registry(void);

static struct fake_world world;
static struct registry *registry;
static uint8_t asyncio;

static void start(int minor, uint32_t tasks, size_t heap)
{
    fake_asyncio_start(&world, minor, tasks, MIB);
    fake_births_reset();
    ck_assert_int_eq(mem_init(heap), 0);
    int index = asyncios_publish(&world.asyncio);
    ck_assert_int_ge(index, 0);
    asyncio = (uint8_t)index;
    registry = registry_new(&world.target);
    ck_assert_ptr_nonnull(registry);
    registry_begin_round(registry);
}

static void stop(void)
{
    registry_free(registry);
    ck_assert_uint_eq(mem_used(), 0);
    asyncios_withdraw_all();
    fake_reset();
    free(world.bytes);
}

static uint32_t find(uint32_t task)
{
    return registry_find(registry, fake_task_at(task));
}

static uint32_t add(uint32_t task)
{
    uint32_t index = registry_add(registry, fake_task_at(task), asyncio);
    ck_assert_uint_ne(index, NO_TASK);
    return index;
}

static struct registered *read_task(uint32_t task)
{
    uint32_t index = add(task);
    registry_read(registry, index);
    return registry_at(registry, index);
}

static const struct link *links_of(uint32_t task)
{
    uint32_t index = find(task);
    ck_assert(registry_need_links(registry, index));
    return registry_links(registry, registry_at(registry, index));
}

static void next_round(void)
{
    registry_end_round(registry);
    registry_begin_round(registry);
}

/* --- what is read --- */

static bool is_as_read(uint32_t index)
{
    bool same;
    registry_fetch(registry, index);
    registry_are_as_read(registry, &index, 1, &same);
    return same;
}

START_TEST(a_leaf_with_its_chain)
{
    start(_i, 1, 8 * MIB);
    fake_task(&world, 0, 3);
    struct registered *task = read_task(0);
    ck_assert_int_eq(task->status, TASK_WAITING);
    ck_assert_uint_eq(task->coro, fake_coro_at(0, 0));
    ck_assert_uint_eq(task->waiter, fake_future_at(0));
    ck_assert_uint_eq(task->loop, fake_loop_at(0));
    ck_assert_uint_eq(task->edges, 0);
    links_of(0);
    ck_assert_uint_eq(task->links, 3);
    for (int level = 0; level < 3; level++) {
        const struct link *link = links_of(0) + level;
        ck_assert_uint_eq(link->coro, fake_coro_at(0, level));
        ck_assert_int_eq(link->lasti, FAKE_AT_AWAIT);
        ck_assert_ptr_eq(link, registry_link(registry, task->first_link + (uint32_t)level));
    }
    ck_assert(!registry_awaits_task(registry, task));
    stop();
}
END_TEST

START_TEST(each_status)
{
    start(_i, 8, 8 * MIB);
    for (uint32_t i = 0; i < 8; i++)
        fake_task(&world, i, 2);
    fake_task(&world, 0, 1);
    fake_task_is_new(&world, 0);
    fake_task_runs(&world, 1, 2);
    fake_task_waiter(&world, 2, 0);
    fake_future_state(&world, fake_future_at(3), FUTURE_FINISHED);
    fake_task_waiter(&world, 4, fake_future_at(5)); /* which its chain does not say */
    fake_task_is_done(&world, 6);
    fake_coro_stands(&world, 7, 0, world.target.layout.gen_finished, FAKE_AT_AWAIT);
    static const int status[] = {TASK_READY, TASK_RUNNING, TASK_READY, TASK_READY, TASK_TORN, TASK_WAITING, TASK_GONE, TASK_RUNNING};
    for (uint32_t i = 0; i < 8; i++)
        ck_assert_int_eq(read_task(i)->status, status[i]);
    ck_assert_int_le(links_of(0)->lasti, 0);
    stop();
}
END_TEST

START_TEST(edges_close)
{
    start(_i, 5, 8 * MIB);
    fake_task(&world, 0, 1);
    for (uint32_t i = 1; i < 5; i++) {
        fake_task(&world, i, 1);
        fake_task_awaits(&world, i, 1, 0);
    }
    fake_wakes(&world, fake_task_at(0), 1, FAKE_AWAITERS_ROOM);
    fake_task_waits(&world, 2, 1, fake_future_at(2));
    struct registered *task = read_task(0);
    ck_assert_uint_eq(task->edges, 3);
    static const uint32_t awaiters[] = {1, 3, 4};
    for (uint32_t i = 0; i < 3; i++) {
        const struct edge *edge = registry_edges(registry, task) + i;
        ck_assert_uint_eq(registry_at(registry, edge->awaiter)->task, fake_task_at(awaiters[i]));
        ck_assert_uint_eq(edge->through, fake_task_at(0));
        ck_assert(registry_awaits_task(registry, registry_at(registry, edge->awaiter)));
    }
    ck_assert_uint_eq(registry_count(registry), 4);
    ck_assert_uint_eq(find(2), NO_TASK);
    registry_begin_round(registry);
    ck_assert(!registry_awaits_task(registry, registry_at(registry, find(1))));
    stop();
}
END_TEST

/* A gather() that nobody awaited yet when its member was read: nothing of the member
 * changes when somebody does. */
START_TEST(a_gather_that_is_awaited_later)
{
    start(_i, 3, 8 * MIB);
    for (uint32_t i = 0; i < 3; i++)
        fake_task(&world, i, 1);
    uintptr_t outer = fake_world_alloc(&world, 256), pair[] = {fake_gather_callback(&world, 0, outer), 0};
    fake_new_future(&world, outer, FAKE_FUTURE_TYPE_AT, 0);
    fake_task_awaits(&world, 1, 1, 0);
    fake_add_callback(&world, fake_task_at(0), pair[0], fake_tuple(&world.target, 0x400000000ul, pair, 2), FAKE_AWAITERS_ROOM);
    ck_assert_uint_eq(read_task(0)->edges, 1);
    fake_task_waits(&world, 2, 1, outer);
    fake_wakes(&world, outer, 2, 1);
    next_round();
    ck_assert_uint_eq(read_task(0)->edges, 2);
    stop();
}
END_TEST

/* Unchanged, it keeps its edges; those of another who took its awaiter's place do not close. */
START_TEST(edges_of_one_that_stays_as_it_was)
{
    start(_i, 3, 8 * MIB);
    for (uint32_t i = 0; i < 3; i++)
        fake_task(&world, i, 1);
    fake_task_awaits(&world, 1, 1, 0);
    for (int round = 0; round < 3; round++) {
        ck_assert_uint_eq(read_task(0)->edges, 1);
        ck_assert_uint_eq(registry_at(registry, registry_edges(registry, read_task(0))->awaiter)->task, fake_task_at(1));
        ck_assert(registry_awaits_task(registry, registry_at(registry, find(1))));
        next_round();
        for (uint32_t i = 0; i < registry_count(registry); i++)
            registry_read(registry, i);
    }
    fake_task_waits(&world, 1, 1, fake_future_at(1));
    next_round();
    ck_assert_uint_eq(read_task(0)->edges, 0);
    stop();
}
END_TEST

START_TEST(once_a_round)
{
    start(_i, 1, 8 * MIB);
    fake_task(&world, 0, 2);
    read_task(0);
    unsigned long reads = fake_reads();
    read_task(0);
    ck_assert_uint_eq(fake_reads(), reads);
    next_round();
    read_task(0);
    ck_assert_uint_gt(fake_reads(), reads);
    stop();
}
END_TEST

START_TEST(as_read_or_not)
{
    start(_i, 2, 8 * MIB);
    fake_task(&world, 0, 2);
    fake_task(&world, 1, 1);
    uint32_t index = add(0);
    registry_read(registry, index);
    ck_assert(is_as_read(index));
    fake_task_waits(&world, 0, 2, fake_future_at(1));
    ck_assert(!is_as_read(index));
    fake_task(&world, 0, 3);
    ck_assert(!is_as_read(index));
    fake_task(&world, 0, 2);
    ck_assert(is_as_read(index));
    fake_future_state(&world, fake_task_at(0), FUTURE_CANCELLED);
    ck_assert(!is_as_read(index));
    stop();
}
END_TEST

/* --- those that wait for members of their own --- */

#define SET_AT 0x28000000u

/* Task 0 waits in this function; its set, in this variable, has two members: task 1, and the future of task 2. */
static void waits_in(const char *function, const char *variable)
{
    const uintptr_t members[] = {fake_task_at(1), 1, 0, 0, fake_future_at(2), 3, 0, 0};
    fake_coro_has_local(&world, 0, 1, function, variable, fake_set(&world.target, SET_AT, SET_TYPE_AT, members, 4));
}

static int status_of_aggregate(void)
{
    next_round();
    read_task(0);
    registry_check_aggregate(registry, find(0));
    return registry_at(registry, find(0))->status;
}

START_TEST(one_whose_members_are_done_is_ready)
{
    start(_i, 3, 8 * MIB);
    for (uint32_t i = 0; i < 3; i++)
        fake_task(&world, i, 2);
    waits_in("_wait", "fs");
    ck_assert_int_eq(status_of_aggregate(), TASK_WAITING);
    ck_assert_int_ne(registry_at(registry, find(0))->aggregate, 0);
    registry_at(registry, find(0))->kept_stack = 77;
    ck_assert_int_eq(status_of_aggregate(), TASK_WAITING); /* by a glance */
    fake_task_is_done(&world, 1);
    ck_assert_int_eq(status_of_aggregate(), TASK_WAITING);
    ck_assert_uint_eq(registry_at(registry, find(0))->kept_stack, 77);
    fake_future_state(&world, fake_future_at(2), FUTURE_CANCELLED);
    ck_assert_int_eq(status_of_aggregate(), TASK_READY);
    ck_assert_uint_eq(registry_at(registry, find(0))->kept_stack, PROFILE_ROOT); /* it has no [ready] */
    ck_assert(is_as_read(find(0)));
    ck_assert_int_eq(status_of_aggregate(), TASK_READY);
    fake_future_state(&world, fake_future_at(2), FUTURE_PENDING);
    registry_at(registry, find(0))->kept_stack = 77;
    ck_assert_int_eq(status_of_aggregate(), TASK_WAITING);
    ck_assert_uint_eq(registry_at(registry, find(0))->kept_stack, PROFILE_ROOT);
    stop();
}
END_TEST

START_TEST(one_that_has_no_members_is_not)
{
    start(_i, 3, 8 * MIB);
    for (uint32_t i = 0; i < 3; i++)
        fake_task(&world, i, 2);
    fake_task_is_done(&world, 1);
    fake_future_state(&world, fake_future_at(2), FUTURE_FINISHED);
    waits_in("wait_for_all", "fs");
    ck_assert_int_eq(status_of_aggregate(), TASK_WAITING);
    ck_assert_int_eq(registry_at(registry, find(0))->aggregate, 0);
    waits_in("_wait", "futures");
    fake_task_waits(&world, 0, 2, fake_future_at(0));
    waits_in("_wait", "futures");
    ck_assert_int_eq(status_of_aggregate(), TASK_WAITING);
    fake_coro_has_local(&world, 0, 0, "_wait", "fs", SET_AT); /* not the innermost */
    fake_world_code(&world, 0, 1);
    ck_assert_int_eq(status_of_aggregate(), TASK_WAITING);
    stop();
}
END_TEST

/* Whoever runs, or was woken, is what it was read as. */
START_TEST(an_aggregate_that_does_not_wait)
{
    start(_i, 3, 8 * MIB);
    for (uint32_t i = 0; i < 3; i++)
        fake_task(&world, i, 2);
    fake_task_is_done(&world, 1);
    fake_future_state(&world, fake_future_at(2), FUTURE_FINISHED);
    waits_in("_wait", "fs");
    fake_task_runs(&world, 0, 2);
    ck_assert_int_eq(status_of_aggregate(), TASK_RUNNING);
    fake_task_waits(&world, 0, 2, fake_future_at(0));
    fake_coro_has_local(&world, 0, 1, "_wait", "fs", SET_AT);
    fake_task_waiter(&world, 0, fake_future_at(1));
    ck_assert_int_eq(status_of_aggregate(), TASK_TORN);
    fake_task_is_done(&world, 0);
    ck_assert_int_eq(status_of_aggregate(), TASK_GONE);
    stop();
}
END_TEST

/* It has gone on since it was read. */
START_TEST(an_aggregate_that_goes_on_meanwhile)
{
    start(_i, 3, 8 * MIB);
    for (uint32_t i = 0; i < 3; i++)
        fake_task(&world, i, 2);
    fake_task_is_done(&world, 1);
    fake_future_state(&world, fake_future_at(2), FUTURE_FINISHED);
    waits_in("_wait", "fs");
    read_task(0);
    next_round();
    read_task(0); /* by a glance: its links are still to be read */
    fake_task_waits(&world, 0, 3, fake_future_at(0));
    registry_check_aggregate(registry, find(0));
    ck_assert_int_eq(registry_at(registry, find(0))->status, TASK_WAITING);
    stop();
}
END_TEST

/* --- torn --- */

static uint32_t changes_left;

/* What it waits for is another at each reading. */
static void change(uintptr_t address, size_t length)
{
    static uint32_t turn;
    if (address != fake_task_at(0) + (uintptr_t)world.target.layout.task_waiter || !changes_left)
        return;
    changes_left--;
    fake_task_waiter(&world, 0, turn++ % 2 ? fake_future_at(0) : 0);
}

START_TEST(two_readings_must_be_equal)
{
    start(_i, 1, 8 * MIB);
    fake_task(&world, 0, 2);
    changes_left = 1000;
    fake_on_read(change);
    ck_assert_int_eq(read_task(0)->status, TASK_TORN);
    ck_assert_uint_lt(1000 - changes_left, 10);
    ck_assert_uint_eq(read_task(0)->edges, 0);
    fake_on_read(NULL);
    next_round();
    ck_assert_uint_eq(registry_count(registry), 1);
    stop();
}
END_TEST

START_TEST(a_second_try_may_succeed)
{
    start(_i, 1, 8 * MIB);
    fake_task(&world, 0, 2);
    changes_left = 1;
    fake_on_read(change);
    struct registered *task = read_task(0);
    ck_assert_uint_eq(changes_left, 0);
    ck_assert_int_ne(task->status, TASK_TORN);
    links_of(0);
    ck_assert_uint_eq(task->links, 2);
    stop();
}
END_TEST

/* --- identity --- */

START_TEST(another_coroutine_is_another_task)
{
    start(_i, 2, 8 * MIB);
    fake_task(&world, 0, 1);
    fake_task(&world, 1, 1);
    struct birth birth = fake_birth_of(fake_task_at(0), 7, 8);
    registry_born(registry, &birth, asyncio);
    struct registered *task = read_task(0);
    ck_assert_uint_eq(task->makers_count, 2);
    ck_assert_uint_eq(task->makers[0], 7);
    ck_assert_uint_eq(task->makers[1], 8);
    uint64_t order = task->order;
    task->read_ns = 5;
    task->kept_stack = 9;
    next_round();
    ck_assert_uint_eq(read_task(0)->makers_count, 2);
    fake_world_word(&world, fake_task_at(0), world.target.layout.task_coro, fake_coro_at(1, 0));
    next_round();
    task = read_task(0);
    ck_assert_uint_eq(task->makers_count, 0);
    ck_assert_uint_eq(task->read_ns, 0);
    ck_assert_uint_eq(task->kept_stack, PROFILE_ROOT);
    ck_assert_uint_gt(task->order, order);
    ck_assert_uint_eq(registry_find_coro(registry, fake_coro_at(0, 0)), NO_TASK);
    ck_assert_uint_eq(registry_find_coro(registry, fake_coro_at(1, 0)), find(0));
    stop();
}
END_TEST

START_TEST(a_birth_at_a_known_address)
{
    start(_i, 1, 8 * MIB);
    fake_task(&world, 0, 1);
    struct birth first = fake_birth_of(fake_task_at(0), 7, 8), second = fake_birth_of(fake_task_at(0), 9, 0);
    registry_born(registry, &first, asyncio);
    uint64_t order = read_task(0)->order;
    next_round();
    registry_born(registry, &second, asyncio);
    registry_begin_round(registry);
    struct registered *task = read_task(0);
    ck_assert_uint_eq(registry_count(registry), 1);
    ck_assert_uint_eq(task->makers_count, 1);
    ck_assert_uint_eq(task->makers[0], 9);
    ck_assert_uint_gt(task->order, order);
    ck_assert_uint_eq(registry_find_coro(registry, fake_coro_at(0, 0)), find(0));
    stop();
}
END_TEST

/* A task that ended has not left yet when another is made, whose coroutine sits
 * where its own was. */
START_TEST(a_coroutine_is_that_of_the_task_that_lives)
{
    start(_i, 3, 8 * MIB);
    for (uint32_t i = 0; i < 3; i++)
        fake_task(&world, i, 1);
    read_task(0);
    next_round();
    fake_task_is_done(&world, 0);
    fake_world_word(&world, fake_task_at(1), world.target.layout.task_coro, fake_coro_at(0, 0));
    uint32_t other = add(1);
    registry_read(registry, other);
    ck_assert_uint_eq(registry_find_coro(registry, fake_coro_at(0, 0)), other);
    ck_assert_uint_eq(registry_find_coro(registry, fake_coro_at(2, 0)), NO_TASK);
    stop();
}
END_TEST

START_TEST(the_coroutine_of_one_just_born_is_known)
{
    start(_i, 1, 8 * MIB);
    fake_task(&world, 0, 1);
    struct birth birth = fake_birth_of(fake_task_at(0), 0, 0);
    registry_born(registry, &birth, asyncio);
    registry_begin_round(registry);
    ck_assert_uint_eq(registry_find_coro(registry, fake_coro_at(0, 0)), find(0));
    stop();
}
END_TEST

/* It ended, was read, and another was born in its place in the same round. */
START_TEST(a_birth_where_one_has_just_ended)
{
    start(_i, 1, 8 * MIB);
    fake_task(&world, 0, 1);
    read_task(0);
    next_round();
    fake_task_is_done(&world, 0);
    ck_assert_int_eq(read_task(0)->status, TASK_GONE);
    fake_task(&world, 0, 1);
    struct birth birth = fake_birth_of(fake_task_at(0), 7, 0);
    registry_born(registry, &birth, asyncio);
    next_round();
    ck_assert_uint_eq(registry_count(registry), 1);
    ck_assert_int_eq(read_task(0)->status, TASK_WAITING);
    ck_assert_uint_eq(read_task(0)->makers_count, 1);
    ck_assert_uint_eq(read_task(0)->makers[0], 7);
    stop();
}
END_TEST

/* Whatever a round saw of the one before, it is not what it sees of the next. */
START_TEST(a_birth_in_the_middle_of_a_round)
{
    start(_i, 2, 8 * MIB);
    for (uint32_t i = 0; i < 2; i++) {
        fake_task(&world, i, 1);
        read_task(i);
    }
    struct birth first = fake_birth_of(fake_task_at(0), 7, 0), second = fake_birth_of(fake_task_at(0), 8, 0);
    second.number = 1;
    registry_born(registry, &first, asyncio);
    registry_born(registry, &second, asyncio);
    next_round();
    ck_assert_uint_eq(read_task(0)->makers_count, 1);
    ck_assert_uint_eq(read_task(0)->makers[0], 8);
    ck_assert_uint_eq(read_task(1)->makers_count, 0);
    ck_assert_uint_eq(registry_count(registry), 2);
    stop();
}
END_TEST

/* --- who leaves --- */

START_TEST(what_is_done_leaves)
{
    start(_i, 3, 8 * MIB);
    for (uint32_t i = 0; i < 3; i++)
        fake_task(&world, i, 1);
    for (uint32_t i = 0; i < 3; i++)
        read_task(i);
    fake_task_is_done(&world, 1);
    next_round();
    ck_assert_uint_eq(registry_count(registry), 3);
    for (uint32_t i = 0; i < 3; i++)
        registry_read(registry, i);
    ck_assert_int_eq(registry_at(registry, 1)->status, TASK_GONE);
    next_round();
    ck_assert_uint_eq(registry_count(registry), 2);
    ck_assert_uint_eq(find(1), NO_TASK);
    ck_assert_uint_eq(registry_find_coro(registry, fake_coro_at(1, 0)), NO_TASK);
    ck_assert_uint_eq(registry_find_coro(registry, fake_coro_at(2, 0)), find(2));
    stop();
}
END_TEST

START_TEST(what_is_no_task_any_more_leaves)
{
    start(_i, 3, 8 * MIB);
    for (uint32_t i = 0; i < 3; i++) {
        fake_task(&world, i, 1);
        read_task(i);
    }
    next_round();
    fake_world_word(&world, fake_task_at(0), world.target.layout.object_type, FAKE_FUTURE_TYPE_AT);
    fake_world_word(&world, fake_task_at(1), world.target.layout.object_type, FAKE_LOOP_TYPE_AT);
    fake_world_word(&world, fake_task_at(2), world.target.layout.future_loop, 0); /* as when it is deallocated */
    fake_world_word(&world, fake_task_at(2), world.target.layout.task_coro, 0);
    for (uint32_t i = 0; i < 3; i++)
        ck_assert_int_eq(read_task(i)->status, TASK_GONE);
    next_round();
    ck_assert_uint_eq(registry_count(registry), 0);
    stop();
}
END_TEST

START_TEST(one_that_is_not_initialised_yet_stays_a_while)
{
    uint32_t rounds = 0;
    start(_i, 1, 8 * MIB);
    fake_task(&world, 0, 1);
    fake_world_word(&world, fake_task_at(0), world.target.layout.task_coro, 0);
    fake_world_word(&world, fake_task_at(0), world.target.layout.future_loop, 0);
    struct birth birth = fake_birth_of(fake_task_at(0), 7, 0);
    registry_born(registry, &birth, asyncio);
    while (registry_count(registry) && rounds++ < UNBORN_AT_MOST) {
        registry_read(registry, 0);
        if (rounds < 10)
            ck_assert_int_eq(registry_at(registry, 0)->status, TASK_UNBORN);
        next_round();
    }
    ck_assert_uint_gt(rounds, 10);
    ck_assert_uint_lt(rounds, UNBORN_AT_MOST);
    stop();
}
END_TEST

START_TEST(one_that_was_initialised_late_keeps_its_makers)
{
    start(_i, 1, 8 * MIB);
    struct birth birth = fake_birth_of(fake_task_at(0), 7, 0);
    registry_born(registry, &birth, asyncio);
    registry_read(registry, 0);
    next_round();
    fake_task(&world, 0, 1);
    ck_assert_int_eq(read_task(0)->status, TASK_WAITING);
    ck_assert_uint_eq(read_task(0)->makers_count, 1);
    stop();
}
END_TEST

/* --- chains that execute --- */

START_TEST(the_chain_of_one_that_executes)
{
    uint32_t first;
    start(_i, 2, 8 * MIB);
    fake_task(&world, 0, 3);
    fake_task(&world, 1, 2);
    fake_task_runs(&world, 0, 3);
    read_task(1);
    struct registered *task = read_task(0);
    ck_assert_int_eq(task->status, TASK_RUNNING);
    for (int level = 0; level < 3; level++) {
        ck_assert_uint_eq(registry_chain_down_to(registry, task, fake_coro_at(0, level), &first), level + 1);
        for (int i = 0; i <= level; i++)
            ck_assert_uint_eq(registry_link(registry, first + (uint32_t)i)->coro, fake_coro_at(0, i));
    }
    ck_assert_uint_eq(registry_chain_down_to(registry, task, fake_coro_at(1, 1), &first), 0);
    ck_assert_uint_eq(registry_chain_down_to(registry, task, 0, &first), 0);
    stop();
}
END_TEST

START_TEST(the_chain_of_one_that_waits)
{
    uint32_t first;
    start(_i, 2, 8 * MIB);
    fake_task(&world, 0, 3);
    fake_task(&world, 1, 2);
    read_task(1);
    struct registered *task = read_task(0);
    for (int level = 2; level >= 0; level--) {
        ck_assert_uint_eq(registry_chain_down_to(registry, task, fake_coro_at(0, level), &first), level + 1);
        for (int i = 0; i <= level; i++)
            ck_assert_uint_eq(registry_link(registry, first + (uint32_t)i)->coro, fake_coro_at(0, i));
    }
    ck_assert_uint_eq(registry_chain_down_to(registry, task, fake_coro_at(1, 0), &first), 0);
    stop();
}
END_TEST

/* Frames that were sent from each other in a ring. */
START_TEST(a_chain_without_an_end)
{
    uint32_t first;
    start(_i, 2, 8 * MIB);
    fake_task(&world, 0, 3);
    fake_task(&world, 1, 1);
    fake_task_runs(&world, 0, 3);
    uintptr_t frame = fake_coro_at(0, 0) + (uintptr_t)world.target.layout.gen_frame;
    fake_world_word(&world, frame, world.target.layout.frame_previous, fake_coro_at(0, 2) + (uintptr_t)world.target.layout.gen_frame);
    ck_assert_uint_eq(registry_chain_down_to(registry, read_task(1), fake_coro_at(0, 2), &first), 0);
    stop();
}
END_TEST

/* --- the indexes --- */

enum { MODEL_TASKS = 1000, MODEL_OPERATIONS = 12000, MODEL_EACH = 300 };

static uint64_t seed;

static uint32_t chance(uint32_t below)
{
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(seed >> 33) % below;
}

/* Per address: known, done, and whose coroutine it has. */
static struct {
    bool known, done;
    uint32_t coro;
} model[MODEL_TASKS];

static void compare_with_model(void)
{
    uint32_t known = 0;
    for (uint32_t i = 0; i < MODEL_TASKS; i++) {
        uint32_t index = find(i);
        ck_assert_int_eq(index != NO_TASK, model[i].known);
        known += model[i].known;
        if (model[i].known)
            ck_assert_uint_eq(registry_at(registry, index)->task, fake_task_at(i));
    }
    ck_assert_uint_eq(registry_count(registry), known);
}

static void compare_coros(void)
{
    for (uint32_t i = 0; i < MODEL_TASKS; i++)
        if (model[i].known && !model[i].done)
            ck_assert_uint_eq(registry_find_coro(registry, fake_coro_at(model[i].coro, 0)), find(i));
}

static void give_coro(uint32_t task, uint32_t coro)
{
    model[task].coro = coro;
    fake_world_word(&world, fake_task_at(task), world.target.layout.task_coro, fake_coro_at(coro, 0));
}

static void operate(void)
{
    uint32_t i = chance(MODEL_TASKS), j = chance(MODEL_TASKS), was = model[i].coro;
    struct birth birth = fake_birth_of(fake_task_at(i), 1 + chance(3), chance(2));
    switch (chance(4)) {
    case 0:
        add(i);
        model[i].known = true;
        break;
    case 1:
        registry_born(registry, &birth, asyncio);
        model[i].known = true;
        break;
    case 2:
        model[i].done = !model[i].done;
        fake_future_state(&world, fake_task_at(i), model[i].done ? FUTURE_FINISHED : FUTURE_PENDING);
        break;
    case 3: /* other tasks at these addresses: they have changed their coroutines */
        give_coro(i, model[j].coro);
        give_coro(j, was);
        break;
    }
}

START_TEST(indexes_as_in_a_naive_model)
{
    start(_i, MODEL_TASKS, 64 * MIB);
    seed = 20;
    for (uint32_t i = 0; i < MODEL_TASKS; i++) {
        fake_task(&world, i, 1);
        model[i].coro = i;
        model[i].known = model[i].done = false;
    }
    for (int i = 1; i <= MODEL_OPERATIONS; i++) {
        operate();
        if (i % MODEL_EACH)
            continue;
        compare_with_model();
        registry_begin_round(registry);
        registry_read_some(registry, 0, NO_TASK);
        compare_coros();
        registry_end_round(registry);
        for (uint32_t task = 0; task < MODEL_TASKS; task++)
            model[task].known &= !model[task].done;
        compare_with_model();
        compare_coros();
    }
    stop();
}
END_TEST

/* --- bounds --- */

START_TEST(no_memory_is_counted)
{
    uint32_t added = 0;
    start(_i, 20000, MIB);
    for (uint32_t i = 0; i < 20000; i++)
        added += registry_add(registry, fake_task_at(i), asyncio) != NO_TASK;
    ck_assert_uint_gt(added, 100);
    ck_assert_uint_lt(added, 20000);
    ck_assert_uint_eq(registry_count(registry), added);
    ck_assert_uint_eq(registry_skipped(registry), 20000 - added);
    for (uint32_t i = 0; i < 20000; i++)
        ck_assert_int_eq(find(i) != NO_TASK, i < added);
    stop();
}
END_TEST

START_TEST(many_awaiters_each_once)
{
    start(_i, 1001, 64 * MIB);
    for (uint32_t i = 0; i <= 1000; i++)
        fake_task(&world, i, 1);
    for (uint32_t i = 1; i <= 1000; i++)
        fake_task_awaits(&world, i, 1, 0);
    for (uint32_t i = 1; i <= 20; i++)
        fake_wakes(&world, fake_task_at(0), 3 * i, FAKE_AWAITERS_ROOM);
    ck_assert_uint_eq(read_task(0)->edges, 1000);
    stop();
}
END_TEST

Suite *suite_registry(void)
{
    Suite *suite = suite_create("registry");
    TCase *reading = tcase_create("reading"), *identity = tcase_create("identity"), *bounds = tcase_create("bounds");
    tcase_add_loop_test(reading, a_leaf_with_its_chain, FIRST_MINOR, AFTER_LAST_MINOR);
    tcase_add_loop_test(reading, each_status, FIRST_MINOR, AFTER_LAST_MINOR);
    tcase_add_loop_test(reading, one_whose_members_are_done_is_ready, FIRST_MINOR, AFTER_LAST_MINOR);
    tcase_add_loop_test(reading, one_that_has_no_members_is_not, FIRST_MINOR, AFTER_LAST_MINOR);
    tcase_add_loop_test(reading, an_aggregate_that_does_not_wait, FIRST_MINOR, AFTER_LAST_MINOR);
    tcase_add_loop_test(reading, an_aggregate_that_goes_on_meanwhile, FIRST_MINOR, AFTER_LAST_MINOR);
    tcase_add_loop_test(reading, edges_close, FIRST_MINOR, AFTER_LAST_MINOR);
    tcase_add_loop_test(reading, a_gather_that_is_awaited_later, FIRST_MINOR, AFTER_LAST_MINOR);
    tcase_add_loop_test(reading, edges_of_one_that_stays_as_it_was, FIRST_MINOR, AFTER_LAST_MINOR);
    tcase_add_loop_test(reading, once_a_round, FIRST_MINOR, AFTER_LAST_MINOR);
    tcase_add_loop_test(reading, as_read_or_not, FIRST_MINOR, AFTER_LAST_MINOR);
    tcase_add_loop_test(reading, two_readings_must_be_equal, FIRST_MINOR, AFTER_LAST_MINOR);
    tcase_add_loop_test(reading, a_second_try_may_succeed, FIRST_MINOR, AFTER_LAST_MINOR);
    tcase_add_loop_test(reading, the_chain_of_one_that_executes, FIRST_MINOR, AFTER_LAST_MINOR);
    tcase_add_loop_test(reading, the_chain_of_one_that_waits, FIRST_MINOR, AFTER_LAST_MINOR);
    tcase_add_loop_test(reading, a_chain_without_an_end, FIRST_MINOR, AFTER_LAST_MINOR);
    tcase_add_loop_test(identity, another_coroutine_is_another_task, FIRST_MINOR, AFTER_LAST_MINOR);
    tcase_add_loop_test(identity, a_birth_at_a_known_address, FIRST_MINOR, AFTER_LAST_MINOR);
    tcase_add_loop_test(identity, a_coroutine_is_that_of_the_task_that_lives, FIRST_MINOR, AFTER_LAST_MINOR);
    tcase_add_loop_test(identity, the_coroutine_of_one_just_born_is_known, FIRST_MINOR, AFTER_LAST_MINOR);
    tcase_add_loop_test(identity, a_birth_where_one_has_just_ended, FIRST_MINOR, AFTER_LAST_MINOR);
    tcase_add_loop_test(identity, a_birth_in_the_middle_of_a_round, FIRST_MINOR, AFTER_LAST_MINOR);
    tcase_add_loop_test(identity, what_is_done_leaves, FIRST_MINOR, AFTER_LAST_MINOR);
    tcase_add_loop_test(identity, what_is_no_task_any_more_leaves, FIRST_MINOR, AFTER_LAST_MINOR);
    tcase_add_loop_test(identity, one_that_is_not_initialised_yet_stays_a_while, FIRST_MINOR, AFTER_LAST_MINOR);
    tcase_add_loop_test(identity, one_that_was_initialised_late_keeps_its_makers, FIRST_MINOR, AFTER_LAST_MINOR);
    tcase_add_loop_test(bounds, indexes_as_in_a_naive_model, FIRST_MINOR, FIRST_MINOR + 1);
    tcase_add_loop_test(bounds, no_memory_is_counted, FIRST_MINOR, FIRST_MINOR + 1);
    tcase_add_loop_test(bounds, many_awaiters_each_once, FIRST_MINOR, FIRST_MINOR + 1);
    tcase_set_timeout(bounds, 60);
    suite_add_tcase(suite, reading);
    suite_add_tcase(suite, identity);
    suite_add_tcase(suite, bounds);
    return suite;
}
