/* SPDX-License-Identifier: MIT
 * collector: whose collection it is, in each version's layout. */
#include "sampler/cpython/collector.h"

#include "tests/unit/fake_python.h"

Suite *suite_collector(void);

#define INTERP_AT 0x30000000u
#define GIL_AT 0x30100000u
#define THREAD_AT 0x31000000u
#define CFRAME_AT 0x31100000u
#define FRAME_AT(i) (0x32000000u + 0x10000u * (unsigned)(i))
#define CODE_AT 0x33000000u
#define ELSEWHERE 0x34000000u
#define LIMIT 64

#define OBJECT_AT(i) (0x35000000u + 0x100u * (unsigned)(i))
#define LISTS 3
#define LIST_BYTES 24
#define COLLECTING 2u /* in an object's link back */

static struct py_target target;
static struct collector_memory memory;
static uint64_t switches;
static uintptr_t list_of[LISTS]; /* the one object of each generation, 0: none */
static uint64_t marks;
static int32_t earlier; /* the lists are */

/* The heads of the generations, and an object on each that has one. */
static void put_lists(struct fake *interp)
{
    for (int i = 0; target.layout.interp_gc_lists != LAYOUT_NONE && i < LISTS; i++) {
        int32_t at = target.layout.interp_gc_lists + i * LIST_BYTES - earlier;
        uintptr_t head = INTERP_AT + (uintptr_t)at;
        fake_put_word(interp, at, list_of[i] ? list_of[i] : head);
        fake_put_word(interp, at + 8, list_of[i] ? list_of[i] : head);
        struct fake object = fake_new(OBJECT_AT(i), 64);
        fake_put_word(&object, 0, head);
        fake_put_word(&object, 8, head | marks);
        fake_place(&object);
    }
}

static void interpreter(int collecting, uintptr_t began_in, bool locked)
{
    const struct layout *layout = &target.layout;
    struct fake interp = fake_new(INTERP_AT, 16384), gil = fake_new(GIL_AT, 64);
    fake_put_int(&interp, layout->interp_gc_collecting, (uint32_t)collecting);
    if (layout->interp_gc_frame != LAYOUT_NONE)
        fake_put_word(&interp, layout->interp_gc_frame, began_in);
    if (layout->interp_gil != LAYOUT_NONE) {
        fake_put_word(&interp, layout->interp_gil, GIL_AT);
        fake_put_int(&gil, layout->gil_locked, locked);
        fake_put_word(&gil, layout->gil_last_holder, THREAD_AT);
        fake_put_word(&gil, layout->gil_switches, switches);
    }
    put_lists(&interp);
    fake_place(&gil);
    fake_place(&interp);
}

/* Two frames, of which the inner one is FRAME_AT(0), on a marker of C. */
static void begin(int minor)
{
    target = fake_target(minor);
    memory = (struct collector_memory){0, 0};
    memset(list_of, 0, sizeof list_of);
    switches = 5;
    marks = 0;
    earlier = 0;
    const struct layout *layout = &target.layout;
    struct fake runtime = fake_new(RUNTIME_AT, 1024), thread = fake_new(THREAD_AT, 1024), cframe = fake_new(CFRAME_AT, 32);
    fake_code(&target, CODE_AT);
    struct fake inner = fake_frame_new(&target, FRAME_AT(0), CODE_AT, 2, FRAME_AT(1)), outer = fake_frame_new(&target, FRAME_AT(1), CODE_AT, 2, FRAME_AT(2));
    struct fake marker = fake_frame_new(&target, FRAME_AT(2), CODE_AT, 2, 0);
    fake_put_byte(&marker, layout->frame_owner, layout->owner_entry);
    fake_place(&marker);
    fake_place(&inner);
    fake_place(&outer);
    fake_put_word(&thread, layout->thread_interp, INTERP_AT);
    if (layout->thread_status != LAYOUT_NONE)
        fake_put_int(&thread, layout->thread_status, 1u << layout->status_active_bit);
    if (layout->runtime_tstate_current != LAYOUT_NONE)
        fake_put_word(&runtime, layout->runtime_tstate_current, THREAD_AT);
    if (layout->thread_cframe == LAYOUT_NONE)
        fake_put_word(&thread, layout->thread_current_frame, FRAME_AT(0));
    fake_place(&runtime);
    fake_place(&thread);
    fake_place(&cframe);
}

/* As the thread itself asks. */
static enum collector_found found(void)
{
    return collector_of(&target, THREAD_AT, LIMIT, &memory, true);
}

/* As the sampler asks. */
static enum collector_found found_outside(void)
{
    return collector_of(&target, THREAD_AT, LIMIT, &memory, false);
}

static bool is_told_by_frame(void)
{
    return target.layout.gc_is_told && target.layout.interp_gc_frame != LAYOUT_NONE;
}

static bool is_told_by_holder(void)
{
    return target.layout.gc_is_told && target.layout.interp_gc_frame == LAYOUT_NONE;
}

START_TEST(a_collection_began_in_a_frame)
{
    begin(_i);
    for (int inner = 0; inner < 2; inner++) {
        interpreter(1, FRAME_AT(inner), true);
        ck_assert_int_eq(found() == COLLECTOR_RUNS, is_told_by_frame());
    }
    interpreter(1, ELSEWHERE, true); /* a finalizer of it gave the GIL away */
    ck_assert_int_eq(found() == COLLECTOR_NOT, !is_told_by_holder());
}
END_TEST

START_TEST(nobody_else_has_had_the_gil_since_none_was_under_way)
{
    begin(_i);
    interpreter(1, FRAME_AT(0), true);
    if (is_told_by_holder())
        ck_assert_int_eq(found(), COLLECTOR_UNKNOWN); /* nothing is known from before */
    interpreter(0, 0, true);
    ck_assert_int_eq(found_outside(), COLLECTOR_NOT); /* remembers nothing */
    interpreter(1, FRAME_AT(0), true);
    if (is_told_by_holder())
        ck_assert_int_eq(found(), COLLECTOR_UNKNOWN);
    interpreter(0, 0, true);
    ck_assert_int_eq(found(), COLLECTOR_NOT);
    interpreter(1, FRAME_AT(0), true);
    ck_assert_int_eq(found(), _i >= 13 ? COLLECTOR_RUNS : COLLECTOR_NOT);
    ck_assert_int_eq(found_outside(), _i >= 13 ? COLLECTOR_RUNS : COLLECTOR_NOT);
    switches++; /* another had it */
    interpreter(1, FRAME_AT(0), true);
    if (is_told_by_holder())
        ck_assert_int_eq(found(), COLLECTOR_UNKNOWN);
    if (is_told_by_holder())
        ck_assert_int_eq(collector_of(&target, THREAD_AT, LIMIT, NULL, false), COLLECTOR_UNKNOWN);
}
END_TEST

START_TEST(what_was_seen_of_another_thread_state_counts_not)
{
    begin(_i);
    interpreter(0, 0, true);
    ck_assert_int_eq(found(), COLLECTOR_NOT);
    interpreter(1, FRAME_AT(0), true);
    atomic_store(&memory.tstate, ELSEWHERE);
    if (is_told_by_holder())
        ck_assert_int_eq(found(), COLLECTOR_UNKNOWN);
}
END_TEST

/* While objects are marked whoever has the GIL marks them; and has it on. */
START_TEST(marked_objects_tell)
{
    for (int list = 0; list < 2 * LISTS; list++) {
        begin(_i);
        list_of[list % LISTS] = OBJECT_AT(list % LISTS);
        earlier = list < LISTS ? 0 : 4;
        interpreter(1, FRAME_AT(0), true);
        if (is_told_by_holder())
            ck_assert_int_eq(found(), COLLECTOR_UNKNOWN); /* not marked */
        marks = COLLECTING;
        interpreter(1, FRAME_AT(0), true);
        ck_assert_int_eq(found_outside(), _i >= 13 ? COLLECTOR_RUNS : COLLECTOR_NOT);
        ck_assert_int_eq(found(), _i >= 13 ? COLLECTOR_RUNS : COLLECTOR_NOT);
        marks = 0;
        interpreter(1, FRAME_AT(0), true);
        ck_assert_int_eq(found(), _i >= 13 ? COLLECTOR_RUNS : COLLECTOR_NOT);
        switches += 2; /* a finalizer of it gave the GIL away */
        interpreter(1, FRAME_AT(0), true);
        if (is_told_by_holder())
            ck_assert_int_eq(found(), COLLECTOR_UNKNOWN);
    }
}
END_TEST

START_TEST(what_is_no_list_tells_nothing)
{
    begin(_i);
    list_of[0] = OBJECT_AT(0);
    marks = COLLECTING;
    interpreter(1, FRAME_AT(0), true);
    struct fake object = fake_new(OBJECT_AT(0), 64);
    fake_put_word(&object, 0, ELSEWHERE); /* leads back to another */
    fake_put_word(&object, 8, ELSEWHERE | COLLECTING);
    fake_place(&object);
    if (is_told_by_holder())
        ck_assert_int_eq(found(), COLLECTOR_UNKNOWN);
}
END_TEST

START_TEST(lists_that_are_nowhere_known_tell_nothing)
{
    begin(_i);
    list_of[0] = OBJECT_AT(0);
    marks = COLLECTING;
    interpreter(1, FRAME_AT(0), true);
    target.layout.interp_gc_lists = LAYOUT_NONE;
    if (is_told_by_holder())
        ck_assert_int_eq(found(), COLLECTOR_UNKNOWN);
    target.layout.gil_switches = LAYOUT_NONE;
    if (is_told_by_holder())
        ck_assert_int_eq(found(), COLLECTOR_UNKNOWN);
}
END_TEST

START_TEST(none_is_under_way)
{
    begin(_i);
    interpreter(0, 0, true);
    ck_assert_int_eq(found(), COLLECTOR_NOT);
    interpreter(7, FRAME_AT(0), true); /* no flag */
    ck_assert_int_eq(found(), COLLECTOR_NOT);
    ck_assert_int_eq(collector_of(&target, 0, LIMIT, &memory, true), COLLECTOR_NOT);
    ck_assert_int_eq(collector_of(&target, ELSEWHERE, LIMIT, &memory, true), COLLECTOR_NOT);
}
END_TEST

START_TEST(who_has_no_gil_runs_none)
{
    begin(_i);
    interpreter(0, 0, true);
    found();
    interpreter(1, FRAME_AT(0), false);
    ck_assert_int_eq(found(), COLLECTOR_NOT);
}
END_TEST

Suite *suite_collector(void)
{
    Suite *suite = suite_create("collector");
    TCase *each = tcase_create("each version");
    const TTest *const tests[] = {a_collection_began_in_a_frame, nobody_else_has_had_the_gil_since_none_was_under_way,
                                  what_was_seen_of_another_thread_state_counts_not, marked_objects_tell, what_is_no_list_tells_nothing, lists_that_are_nowhere_known_tell_nothing,
                                  none_is_under_way, who_has_no_gil_runs_none};
    for (size_t i = 0; i < sizeof tests / sizeof *tests; i++)
        tcase_add_loop_test(each, tests[i], FIRST_MINOR, AFTER_LAST_MINOR);
    suite_add_tcase(suite, each);
    return suite;
}
