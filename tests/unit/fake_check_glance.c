/* SPDX-License-Identifier: MIT
 * glance: equal for equal stacks, another one for every word that a stack is made of,
 * and 0 for what it cannot tell. */
#include "sampler/cpython/glance.h"

#include "sampler/cpython/exceptions.h"
#include "tests/unit/fake_asyncio.h"

#define LEVELS 3
enum { READS_MOST = 16384 * 16 }; /* of one task, however absurd */

Suite *suite_glance(void);

static struct fake_world world;

static void start(int minor, uint32_t tasks)
{
    fake_asyncio_start(&world, minor, tasks, 1 << 16);
    for (uint32_t i = 0; i < tasks; i++)
        fake_task(&world, i, LEVELS);
}

static void stop(void)
{
    fake_reset();
    free(world.bytes);
}

static uint64_t glance_at(uintptr_t task)
{
    struct glance glance = {.task = task, .asyncio = &world.asyncio};
    glance_batch(&world.target, &glance, 1);
    return glance.hash;
}

static uint64_t glance_of(uint32_t task)
{
    return glance_at(fake_task_at(task));
}

static uintptr_t frame_at(uint32_t task, int level)
{
    return fake_coro_at(task, level) + (uintptr_t)world.target.layout.gen_frame;
}

static uintptr_t code_at(uint32_t task, int level)
{
    return fake_task_at(task) + FAKE_IN_CODE + (uintptr_t)level * FAKE_CODE_BYTES;
}

/* The place of what the coroutine awaits. */
static int32_t awaited_offset(void)
{
    return world.target.layout.frame_localsplus + 8 * (FAKE_LOCALS + FAKE_STACK - world.target.layout.await_slot);
}

/* --- equal --- */

START_TEST(what_has_not_changed_is_equal)
{
    start(_i, 2);
    uint64_t first = glance_of(0);
    ck_assert_uint_ne(first, 0);
    ck_assert_uint_eq(glance_of(0), first);
    ck_assert_uint_ne(glance_of(1), 0);
    ck_assert_uint_ne(glance_of(1), first);
    stop();
}
END_TEST

START_TEST(a_batch_is_as_its_members_alone)
{
    struct glance glances[GLANCE_BATCH];
    start(_i, GLANCE_BATCH);
    fake_task_runs(&world, 1, LEVELS);
    fake_task_is_new(&world, 2);
    fake_task_waits(&world, 3, 1, fake_future_at(3));
    fake_task_is_done(&world, GLANCE_BATCH - 1);
    for (uint32_t count = 0; count <= GLANCE_BATCH; count++) {
        for (uint32_t i = 0; i < count; i++)
            glances[i] = (struct glance){.task = fake_task_at(i), .asyncio = &world.asyncio};
        glance_batch(&world.target, glances, count);
        for (uint32_t i = 0; i < count; i++)
            ck_assert_uint_eq(glances[i].hash, glance_of(i));
    }
    stop();
}
END_TEST

/* Bytes that share words with what counts, and those of objects behind it, are none of ours. */
START_TEST(what_is_no_part_of_a_stack_does_not_count)
{
    start(_i, 1);
    const struct layout *layout = &world.target.layout;
    uint64_t first = glance_of(0);
    fake_world_byte(&world, fake_coro_at(0, 1), layout->gen_state - 1, 0x77);
    fake_world_word(&world, fake_task_at(0), 0, 99); /* references */
    fake_world_word(&world, fake_coro_at(0, 0), 0, 98);
    fake_world_int(&world, code_at(0, 0), layout->code_version == LAYOUT_NONE ? layout->code_firstlineno + 4 : layout->code_version - 4, 1234);
    fake_world_word(&world, frame_at(0, 2), layout->frame_localsplus, 4321);
    ck_assert_uint_eq(glance_of(0), first);
    stop();
}
END_TEST

START_TEST(a_task_that_has_not_begun_has_one)
{
    start(_i, 1);
    uint64_t waiting = glance_of(0);
    fake_task_is_new(&world, 0);
    uint64_t created = glance_of(0);
    ck_assert_uint_ne(created, 0);
    ck_assert_uint_ne(created, waiting);
    fake_coro_awaits(&world, 0, 0, fake_coro_at(0, 2)); /* what lies on its stack is not awaited */
    fake_coro_stands(&world, 0, 0, world.target.layout.gen_created, world.target.layout.instr_is_previous ? -2 : 0);
    ck_assert_uint_eq(glance_of(0), created);
    stop();
}
END_TEST

/* --- four words --- */

static bool still_waits(uint32_t task, uintptr_t callback)
{
    struct glance_wait wait = {fake_task_at(task), fake_future_at(task), callback};
    glance_fetch_wait(&world.target, &wait);
    return glance_still_waits(&world.target, &wait);
}

START_TEST(one_that_waits_still)
{
    start(_i, 2);
    const struct layout *layout = &world.target.layout;
    ck_assert(still_waits(0, 0));
    unsigned long before = fake_reads();
    ck_assert(still_waits(0, 0));
    ck_assert_uint_le(fake_reads() - before, 4);
    fake_task_waits(&world, 0, 1, fake_future_at(0)); /* no matter where */
    ck_assert(still_waits(0, 0));
    fake_future_state(&world, fake_future_at(0), FUTURE_FINISHED);
    ck_assert(!still_waits(0, 0));
    fake_future_state(&world, fake_future_at(0), FUTURE_PENDING);
    fake_world_word(&world, fake_task_at(0), layout->future_callback0, 0x1230);
    ck_assert(!still_waits(0, 0));
    ck_assert(!still_waits(0, 0x1238));
    ck_assert(still_waits(0, 0x1230));
    fake_world_word(&world, fake_task_at(0), layout->future_callbacks, 0x1230); /* a list of further ones */
    ck_assert(!still_waits(0, 0x1230));
    fake_no_callbacks(&world, fake_task_at(0));
    ck_assert(still_waits(0, 0));
    fake_task_waiter(&world, 0, fake_future_at(1));
    ck_assert(!still_waits(0, 0));
    fake_task_waiter(&world, 0, 0);
    ck_assert(!still_waits(0, 0));
    stop();
}
END_TEST

START_TEST(what_is_gone_waits_no_more)
{
    start(_i, 1);
    struct glance_wait waits[] = {{0, fake_future_at(0), 0}, {fake_task_at(0), 0, 0}, {7, 7, 0}, {0xdddddddddddddddd, fake_future_at(0), 0},
                                  {fake_task_at(0), 0xdddddddddddddddd, 0}};
    for (size_t i = 0; i < sizeof waits / sizeof *waits; i++)
        ck_assert(!glance_still_waits(&world.target, &waits[i]));
    stop();
}
END_TEST

/* --- different --- */

/* With this word there, it is another glance, but one; with the old one, the old. */
static void must_differ(uintptr_t object, int32_t offset, uint64_t value)
{
    uint64_t before = glance_of(0), was = fake_world_get(&world, object, offset);
    ck_assert_uint_ne(before, 0);
    ck_assert_uint_ne(was, value);
    fake_world_word(&world, object, offset, value);
    ck_assert_uint_ne(glance_of(0), 0);
    ck_assert_uint_ne(glance_of(0), before);
    fake_world_word(&world, object, offset, was);
    ck_assert_uint_eq(glance_of(0), before);
}

START_TEST(every_word_of_a_coroutine_counts)
{
    start(_i, 2);
    const struct layout *layout = &world.target.layout;
    for (int level = 0; level < LEVELS; level++) {
        uintptr_t frame = frame_at(0, level);
        must_differ(frame, layout->frame_instr, fake_world_get(&world, frame, layout->frame_instr) + 2);
        must_differ(frame, layout->frame_executable, code_at(1, level));
        if (layout->code_version != LAYOUT_NONE) {
            must_differ(code_at(0, level), layout->code_version & ~7,
                        fake_world_get(&world, code_at(0, level), layout->code_version & ~7) ^ 1ull << 8 * (layout->code_version & 7));
        } else {
            must_differ(code_at(0, level), layout->code_qualname, 0x7770);
            must_differ(code_at(0, level), layout->code_firstlineno & ~7,
                        fake_world_get(&world, code_at(0, level), layout->code_firstlineno & ~7) ^ 1ull << 8 * (layout->code_firstlineno & 7));
        }
    }
    stop();
}
END_TEST

START_TEST(its_state_counts)
{
    start(_i, 1);
    const struct layout *layout = &world.target.layout;
    const int8_t states[] = {layout->gen_suspended, layout->gen_awaiting, layout->gen_awaiting_locked};
    uint64_t seen[3];
    uint32_t count = 0;
    for (int i = 0; i < 3; i++) {
        if (states[i] == 127)
            continue;
        fake_coro_stands(&world, 0, 1, states[i], FAKE_AT_AWAIT);
        seen[count++] = glance_of(0);
        ck_assert_uint_ne(seen[count - 1], 0);
        for (uint32_t j = 0; j + 1 < count; j++)
            ck_assert_uint_ne(seen[j], seen[count - 1]);
    }
    ck_assert_uint_ge(count, 1);
    stop();
}
END_TEST

/* Where that is asked for: the type, not the object. */
START_TEST(what_is_handled_counts)
{
    start(_i, 1);
    const struct layout *layout = &world.target.layout;
    int32_t value = layout->gen_exc_state + layout->exc_value;
    uint64_t first = glance_of(0);
    for (int i = 0; i < 3; i++) { /* the last one is of the first one's type */
        struct fake exception = fake_new(0x32000000u + 0x10000u * (unsigned)i, 32);
        fake_put_word(&exception, layout->object_type, 0x33000000u + 8 * (unsigned)(i % 2));
        fake_place(&exception);
    }
    fake_world_word(&world, fake_coro_at(0, 1), value, 0x32000000u);
    ck_assert_uint_eq(glance_of(0), first);
    exceptions_ask_for_tasks(true);
    fake_world_word(&world, fake_coro_at(0, 1), value, 0);
    ck_assert_uint_eq(glance_of(0), first);
    for (int level = 0; level < LEVELS; level++) {
        must_differ(fake_coro_at(0, level), value, 0x32000000u);
        must_differ(fake_coro_at(0, level), value, 0x32010000u);
        fake_world_word(&world, fake_coro_at(0, level), value, 0x32000000u);
        first = glance_of(0);
        must_differ(fake_coro_at(0, level), value, 0x32010000u);
        fake_world_word(&world, fake_coro_at(0, level), value, 0x32020000u);
        ck_assert_uint_eq(glance_of(0), first);
        fake_world_word(&world, fake_coro_at(0, level), value, 0x666);
        ck_assert_uint_eq(glance_of(0), 0);
        fake_world_word(&world, fake_coro_at(0, level), value, 0x777000);
        ck_assert_uint_eq(glance_of(0), 0);
        fake_world_word(&world, fake_coro_at(0, level), value, 0);
    }
    stop();
}
END_TEST

START_TEST(what_is_awaited_counts)
{
    start(_i, 2);
    uintptr_t other = fake_task_at(1) + FAKE_IN_ITER;
    fake_world_word(&world, other, world.target.layout.wrapper_inner, fake_future_at(0));
    must_differ(frame_at(0, LEVELS - 1), awaited_offset(), other);      /* another iterator over the same future */
    must_differ(frame_at(0, 0), awaited_offset(), fake_coro_at(0, 2)); /* one coroutine less */
    stop();
}
END_TEST

START_TEST(whom_it_waits_for_and_who_waits_for_it_count)
{
    start(_i, 2);
    const struct layout *layout = &world.target.layout;
    uint64_t first = glance_of(0);
    fake_task_waits(&world, 0, LEVELS, fake_future_at(1));
    ck_assert_uint_ne(glance_of(0), 0);
    ck_assert_uint_ne(glance_of(0), first);
    fake_task_waits(&world, 0, LEVELS, fake_task_at(1));
    ck_assert_uint_ne(glance_of(0), 0);
    ck_assert_uint_ne(glance_of(0), first);
    fake_task_waits(&world, 0, LEVELS, fake_future_at(0));
    ck_assert_uint_eq(glance_of(0), first);
    must_differ(fake_task_at(0), layout->future_callback0, 0x7770);
    uintptr_t list = fake_world_alloc(&world, 64);
    must_differ(fake_task_at(0), layout->future_callbacks, list);
    fake_world_word(&world, fake_task_at(0), layout->future_callbacks, list);
    must_differ(list, layout->var_size, 1);
    stop();
}
END_TEST

START_TEST(whether_the_future_is_pending_counts)
{
    start(_i, 1);
    uint64_t pending = glance_of(0);
    fake_future_state(&world, fake_future_at(0), FUTURE_FINISHED);
    uint64_t finished = glance_of(0);
    fake_future_state(&world, fake_future_at(0), FUTURE_CANCELLED);
    uint64_t cancelled = glance_of(0);
    ck_assert(pending && finished && cancelled);
    ck_assert(pending != finished && finished != cancelled && cancelled != pending);
    stop();
}
END_TEST

/* --- none --- */

/* With this word there, there is none. */
static void must_be_none(uintptr_t object, int32_t offset, uint64_t value)
{
    uint64_t was = fake_world_get(&world, object, offset);
    ck_assert_uint_ne(glance_of(0), 0);
    fake_world_word(&world, object, offset, value);
    ck_assert_uint_eq(glance_of(0), 0);
    fake_world_word(&world, object, offset, was);
    ck_assert_uint_ne(glance_of(0), 0);
}

START_TEST(one_that_executes_or_has_ended_has_none)
{
    start(_i, 3);
    fake_task_runs(&world, 0, LEVELS);
    ck_assert_uint_eq(glance_of(0), 0);
    fake_coro_stands(&world, 1, 0, world.target.layout.gen_finished, FAKE_AT_AWAIT);
    ck_assert_uint_eq(glance_of(1), 0);
    fake_task_is_done(&world, 2);
    ck_assert_uint_eq(glance_of(2), 0);
    stop();
}
END_TEST

START_TEST(what_is_more_than_a_future_has_none)
{
    start(_i, 1);
    const struct layout *layout = &world.target.layout;
    must_be_none(fake_task_at(0), layout->object_type, OBJECT_TYPE_AT);                      /* a subclass */
    must_be_none(fake_future_at(0), layout->object_type, OBJECT_TYPE_AT);                    /* gather's */
    must_be_none(fake_coro_at(0, 1), layout->object_type, FAKE_ASYNC_GEN_TYPE_AT);           /* through a generator */
    must_be_none(fake_task_at(0), layout->task_waiter, fake_task_at(0));                     /* not what is awaited */
    must_be_none(fake_task_at(0), layout->task_waiter, 0);
    must_be_none(frame_at(0, 1), awaited_offset(), 0);
    stop();
}
END_TEST

START_TEST(what_cannot_be_read_has_none)
{
    static const uint64_t bad[] = {1, 8, 0x7ffffff0, 0xfffffffffffffff8u, 0xdddddddddddddddcu};
    start(_i, 1);
    const struct layout *layout = &world.target.layout;
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        ck_assert_uint_eq(glance_at((uintptr_t)bad[i]), 0);
        must_be_none(fake_task_at(0), layout->future_callbacks, bad[i]);
        must_be_none(fake_task_at(0), layout->task_waiter, bad[i]);
        must_be_none(fake_task_at(0), layout->task_coro, bad[i]);
        must_be_none(frame_at(0, 1), awaited_offset(), bad[i]);
        must_be_none(frame_at(0, 1), layout->frame_executable, bad[i]);
        must_be_none(fake_task_at(0) + FAKE_IN_ITER, layout->wrapper_inner, bad[i]);
        if (layout->minor >= 14)
            must_be_none(frame_at(0, 1), layout->frame_stacktop, bad[i]);
    }
    must_be_none(fake_task_at(0), layout->task_coro, 0);
    must_be_none(fake_task_at(0), layout->task_coro, fake_coro_at(0, 0) + 4);
    if (layout->minor < 14)
        for (uint32_t top = 1u << 20; top; top <<= 1)
            must_be_none(frame_at(0, 1), layout->frame_stacktop, top);
    stop();
}
END_TEST

START_TEST(circles_end)
{
    start(_i, 1);
    fake_coro_awaits(&world, 0, LEVELS - 1, fake_coro_at(0, 0));
    unsigned long before = fake_reads();
    ck_assert_uint_eq(glance_of(0), 0);
    ck_assert_uint_lt(fake_reads() - before, READS_MOST);
    stop();
}
END_TEST

/* Whatever the words are: it ends, and reads what is there only. */
START_TEST(any_memory_is_bounded)
{
    uint64_t random = 88172645463325252u + (unsigned)_i;
    start(_i, 2);
    const size_t words = 2 * FAKE_TASK_BYTES / 8;
    unsigned char *good = malloc(2 * FAKE_TASK_BYTES);
    memcpy(good, world.bytes, 2 * FAKE_TASK_BYTES);
    for (int round = 0; round < 3000; round++) {
        memcpy(world.bytes, good, 2 * FAKE_TASK_BYTES);
        for (int i = 0; i < 1 + round % 8; i++) {
            random = random * 6364136223846793005u + 1442695040888963407u;
            uint64_t value = random & 1 ? random : FAKE_TASKS_AT + (random >> 33) % (2 * FAKE_TASK_BYTES);
            memcpy(world.bytes + 8 * ((random >> 20) % words), &value, 8);
        }
        unsigned long before = fake_reads();
        uint64_t glance = glance_of(0);
        ck_assert_uint_eq(glance_of(0), glance);
        ck_assert_uint_lt(fake_reads() - before, 2 * READS_MOST);
    }
    free(good);
    stop();
}
END_TEST

Suite *suite_glance(void)
{
    Suite *suite = suite_create("glance");
    TCase *tests = tcase_create("glance");
    tcase_add_loop_test(tests, what_has_not_changed_is_equal, FIRST_MINOR, AFTER_LAST_MINOR);
    tcase_add_loop_test(tests, a_batch_is_as_its_members_alone, FIRST_MINOR, AFTER_LAST_MINOR);
    tcase_add_loop_test(tests, what_is_no_part_of_a_stack_does_not_count, FIRST_MINOR, AFTER_LAST_MINOR);
    tcase_add_loop_test(tests, a_task_that_has_not_begun_has_one, FIRST_MINOR, AFTER_LAST_MINOR);
    tcase_add_loop_test(tests, one_that_waits_still, FIRST_MINOR, AFTER_LAST_MINOR);
    tcase_add_loop_test(tests, what_is_gone_waits_no_more, FIRST_MINOR, AFTER_LAST_MINOR);
    tcase_add_loop_test(tests, every_word_of_a_coroutine_counts, FIRST_MINOR, AFTER_LAST_MINOR);
    tcase_add_loop_test(tests, its_state_counts, FIRST_MINOR, AFTER_LAST_MINOR);
    tcase_add_loop_test(tests, what_is_handled_counts, FIRST_MINOR, AFTER_LAST_MINOR);
    tcase_add_loop_test(tests, what_is_awaited_counts, FIRST_MINOR, AFTER_LAST_MINOR);
    tcase_add_loop_test(tests, whom_it_waits_for_and_who_waits_for_it_count, FIRST_MINOR, AFTER_LAST_MINOR);
    tcase_add_loop_test(tests, whether_the_future_is_pending_counts, FIRST_MINOR, AFTER_LAST_MINOR);
    tcase_add_loop_test(tests, one_that_executes_or_has_ended_has_none, FIRST_MINOR, AFTER_LAST_MINOR);
    tcase_add_loop_test(tests, what_is_more_than_a_future_has_none, FIRST_MINOR, AFTER_LAST_MINOR);
    tcase_add_loop_test(tests, what_cannot_be_read_has_none, FIRST_MINOR, AFTER_LAST_MINOR);
    tcase_add_loop_test(tests, circles_end, FIRST_MINOR, AFTER_LAST_MINOR);
    tcase_add_loop_test(tests, any_memory_is_bounded, FIRST_MINOR, AFTER_LAST_MINOR);
    suite_add_tcase(suite, tests);
    return suite;
}
