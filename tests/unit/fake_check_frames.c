/* SPDX-License-Identifier: MIT
 * frames: whole chains, and each way in which one can be broken. */
#include "sampler/cpython/frames.h"

#include "tests/unit/fake_python.h"

#define TSTATE 0x50000000u
#define CFRAME 0x51000000u
#define INNER_CFRAME 0x51001000u
#define CODE 0x52000000u
#define FRAME(i) (0x53000000u + 0x1000u * (unsigned)(i))
#define ENTRY 0x54000000u /* the marker under the Python frames, 3.12+ */
#define BASE 0x54001000u  /* 3.15's sentinel */
#define LIMIT 100

Suite *suite_frames(void);

static void thread_at(const struct py_target *target, uintptr_t current)
{
    const struct layout *layout = &target->layout;
    struct fake tstate = fake_new(TSTATE, 1024);
    if (layout->thread_cframe != LAYOUT_NONE) {
        struct fake cframe = fake_new(CFRAME, 32);
        fake_put_word(&cframe, layout->cframe_current, current);
        fake_put_word(&tstate, layout->thread_cframe, fake_place(&cframe));
    } else {
        fake_put_word(&tstate, layout->thread_current_frame, current);
    }
    if (layout->thread_base_frame != LAYOUT_NONE)
        fake_put_word(&tstate, layout->thread_base_frame, BASE);
    fake_place(&tstate);
}

static void marker(const struct py_target *target, uintptr_t address, uintptr_t previous)
{
    struct fake frame = fake_frame_new(target, address, 0x3, 0, previous);
    fake_put_byte(&frame, target->layout.frame_owner, target->layout.owner_entry);
    fake_place(&frame);
}

/* What is below the last Python frame: its `previous`. */
static uintptr_t bottom(const struct py_target *target)
{
    if (target->layout.frame_is_entry != LAYOUT_NONE)
        return 0;
    bool sentinel = target->layout.thread_base_frame != LAYOUT_NONE;
    if (sentinel)
        marker(target, BASE, 0);
    marker(target, ENTRY, sentinel ? BASE : 0);
    return ENTRY;
}

static struct fake frame(const struct py_target *target, int i, uintptr_t previous, bool entry)
{
    struct fake fake = fake_frame_new(target, FRAME(i), CODE, 2 * i, previous);
    if (target->layout.frame_is_entry != LAYOUT_NONE)
        fake_put_byte(&fake, target->layout.frame_is_entry, entry);
    return fake;
}

/* Frames 0 (leaf) to 2, whole. */
static void three_frames(const struct py_target *target)
{
    fake_code(target, CODE);
    struct fake leaf = frame(target, 0, FRAME(1), false), middle = frame(target, 1, FRAME(2), false);
    struct fake last = frame(target, 2, bottom(target), true);
    fake_place(&leaf);
    fake_place(&middle);
    fake_place(&last);
    thread_at(target, FRAME(0));
}

static int walk_all(const struct py_target *target, uint32_t limit, int *python, int *groups)
{
    struct frames_walk walk;
    struct py_frame found;
    *python = *groups = 0;
    frames_begin(&walk, target, TSTATE, limit);
    while (frames_next(&walk, &found))
        ++*(found.kind == FRAME_PYTHON ? python : groups);
    ck_assert(!frames_next(&walk, &found));
    return (int)walk.end;
}

static int end_of(const struct py_target *target)
{
    int python, groups;
    return walk_all(target, LIMIT, &python, &groups);
}

START_TEST(a_whole_chain_is_complete)
{
    struct py_target target = fake_target(_i);
    int python, groups;
    three_frames(&target);
    ck_assert_int_eq(walk_all(&target, LIMIT, &python, &groups), FRAMES_COMPLETE);
    ck_assert_int_eq(python, 3);
    ck_assert_int_eq(groups, _i == 15 ? 2 : 1);
}
END_TEST

START_TEST(a_frame_says_where_it_stands)
{
    struct py_target target = fake_target(_i);
    struct frames_walk walk;
    struct py_frame found;
    three_frames(&target);
    frames_begin(&walk, &target, TSTATE, LIMIT);
    ck_assert(frames_next(&walk, &found));
    ck_assert(frames_next(&walk, &found));
    ck_assert_uint_eq(found.address, FRAME(1));
    ck_assert_int_eq(found.lasti, 2);
    ck_assert_uint_eq(found.code.address, CODE);
}
END_TEST

START_TEST(a_thread_without_frames_is_empty)
{
    struct py_target target = fake_target(_i);
    thread_at(&target, 0);
    ck_assert_int_eq(end_of(&target), FRAMES_EMPTY);
}
END_TEST

START_TEST(markers_alone_are_empty)
{
    struct py_target target = fake_target(_i);
    if (target.layout.frame_is_entry != LAYOUT_NONE)
        return; /* no markers there */
    thread_at(&target, bottom(&target));
    ck_assert_int_eq(end_of(&target), FRAMES_EMPTY);
}
END_TEST

START_TEST(a_chain_that_ends_in_a_generator_is_torn)
{
    struct py_target target = fake_target(_i);
    fake_code(&target, CODE);
    struct fake leaf = frame(&target, 0, 0, false);
    fake_put_byte(&leaf, target.layout.frame_owner, target.layout.owner_generator);
    fake_place(&leaf);
    thread_at(&target, FRAME(0));
    ck_assert_int_eq(end_of(&target), FRAMES_TORN);
}
END_TEST

START_TEST(a_chain_without_the_sentinel_is_torn)
{
    struct py_target target = fake_target(_i);
    if (target.layout.thread_base_frame == LAYOUT_NONE)
        return;
    fake_code(&target, CODE);
    struct fake leaf = frame(&target, 0, ENTRY, false);
    fake_place(&leaf);
    marker(&target, ENTRY, 0);
    thread_at(&target, FRAME(0));
    ck_assert_int_eq(end_of(&target), FRAMES_TORN);
}
END_TEST

START_TEST(a_cycle_reaches_the_limit)
{
    struct py_target target = fake_target(_i);
    int python, groups;
    fake_code(&target, CODE);
    struct fake one = frame(&target, 0, FRAME(1), false), two = frame(&target, 1, FRAME(0), false);
    fake_place(&one);
    fake_place(&two);
    thread_at(&target, FRAME(0));
    ck_assert_int_eq(walk_all(&target, LIMIT, &python, &groups), FRAMES_LIMIT);
    ck_assert_int_eq(python, LIMIT);
}
END_TEST

START_TEST(a_frame_before_itself_is_torn)
{
    struct py_target target = fake_target(_i);
    fake_code(&target, CODE);
    struct fake one = frame(&target, 0, FRAME(0), false);
    fake_place(&one);
    thread_at(&target, FRAME(0));
    ck_assert_int_eq(end_of(&target), FRAMES_TORN);
}
END_TEST

START_TEST(the_limit_is_kept)
{
    struct py_target target = fake_target(_i);
    int python, groups;
    three_frames(&target);
    ck_assert_int_eq(walk_all(&target, 2, &python, &groups), FRAMES_LIMIT);
    ck_assert_int_eq(python, 2);
}
END_TEST

static void leaf_at(const struct py_target *target, int lasti)
{
    fake_code(target, CODE);
    struct fake leaf = fake_frame_new(target, FRAME(0), CODE, lasti, bottom(target));
    if (target->layout.frame_is_entry != LAYOUT_NONE)
        fake_put_byte(&leaf, target->layout.frame_is_entry, 1);
    fake_place(&leaf);
    thread_at(target, FRAME(0));
}

START_TEST(an_instruction_outside_the_code_is_torn)
{
    struct py_target target = fake_target(_i);
    leaf_at(&target, 2 * CODE_UNITS + 2);
    ck_assert_int_eq(end_of(&target), FRAMES_TORN);
}
END_TEST

START_TEST(an_instruction_far_below_the_code_is_torn)
{
    struct py_target target = fake_target(_i);
    leaf_at(&target, -4);
    ck_assert_int_eq(end_of(&target), FRAMES_TORN);
}
END_TEST

START_TEST(half_an_instruction_is_torn)
{
    struct py_target target = fake_target(_i);
    leaf_at(&target, 3);
    ck_assert_int_eq(end_of(&target), FRAMES_TORN);
}
END_TEST

START_TEST(a_new_frame_stands_at_the_def)
{
    struct py_target target = fake_target(_i);
    struct frames_walk walk;
    struct py_frame found;
    leaf_at(&target, target.layout.instr_is_previous ? -2 : 0);
    frames_begin(&walk, &target, TSTATE, LIMIT);
    ck_assert(frames_next(&walk, &found));
    ck_assert_int_eq(found.lasti, target.layout.instr_is_previous ? -1 : 0);
}
END_TEST

START_TEST(an_owner_that_does_not_exist_is_torn)
{
    struct py_target target = fake_target(_i);
    fake_code(&target, CODE);
    struct fake leaf = frame(&target, 0, bottom(&target), true);
    fake_put_byte(&leaf, target.layout.frame_owner, 9);
    fake_place(&leaf);
    thread_at(&target, FRAME(0));
    ck_assert_int_eq(end_of(&target), FRAMES_TORN);
}
END_TEST

START_TEST(an_unreadable_frame_is_a_fault)
{
    struct py_target target = fake_target(_i);
    fake_code(&target, CODE);
    struct fake leaf = frame(&target, 0, 0x7fff0000, false);
    fake_place(&leaf);
    thread_at(&target, FRAME(0));
    ck_assert_int_eq(end_of(&target), FRAMES_FAULT);
}
END_TEST

START_TEST(a_misaligned_frame_is_torn)
{
    struct py_target target = fake_target(_i);
    thread_at(&target, FRAME(0) + 4);
    ck_assert_int_eq(end_of(&target), FRAMES_TORN);
}
END_TEST

START_TEST(what_runs_must_be_code)
{
    struct py_target target = fake_target(_i);
    struct fake leaf = fake_frame_new(&target, FRAME(0), fake_str(&target, CODE, "not code"), 0, bottom(&target));
    fake_place(&leaf);
    thread_at(&target, FRAME(0));
    ck_assert_int_eq(end_of(&target), FRAMES_FAULT);
}
END_TEST

START_TEST(an_unreadable_thread_is_a_fault)
{
    struct py_target target = fake_target(_i);
    ck_assert_int_eq(end_of(&target), FRAMES_FAULT);
}
END_TEST

START_TEST(tags_are_not_of_the_address)
{
    struct py_target target = fake_target(_i);
    fake_code(&target, CODE);
    struct fake leaf = frame(&target, 0, bottom(&target), true);
    fake_put_word(&leaf, target.layout.frame_executable, CODE | 1);
    fake_place(&leaf);
    thread_at(&target, FRAME(0));
    ck_assert_int_eq(end_of(&target), _i >= 14 ? FRAMES_COMPLETE : FRAMES_FAULT);
}
END_TEST

START_TEST(the_init_shim_is_not_shown)
{
    struct py_target target = fake_target(_i);
    int python, groups;
    if (!target.layout.code_shim_flag)
        return;
    fake_code(&target, CODE);
    struct fake code = fake_code_new(&target, CODE + 0x100000);
    fake_put_int(&code, target.layout.code_flags, target.layout.code_shim_flag | 1);
    struct fake leaf = frame(&target, 0, FRAME(1), false);
    struct fake shim = fake_frame_new(&target, FRAME(1), fake_place(&code), 2, FRAME(2));
    struct fake last = frame(&target, 2, bottom(&target), false);
    fake_place(&leaf);
    fake_place(&shim);
    fake_place(&last);
    thread_at(&target, FRAME(0));
    ck_assert_int_eq(walk_all(&target, LIMIT, &python, &groups), FRAMES_COMPLETE);
    ck_assert_int_eq(python, 2);
}
END_TEST

/* The thread of three_frames enters the C interpreter once more: its new struct
 * on the C stack says `current`. Later mappings hide earlier ones. */
static void entering(const struct py_target *target, uintptr_t current)
{
    const struct layout *layout = &target->layout;
    struct fake tstate = fake_new(TSTATE, 1024), cframe = fake_new(INNER_CFRAME, 32);
    three_frames(target);
    fake_put_word(&cframe, layout->cframe_current, current);
    fake_put_word(&cframe, layout->cframe_previous, CFRAME);
    fake_put_word(&tstate, layout->thread_cframe, fake_place(&cframe));
    fake_place(&tstate);
}

START_TEST(a_current_frame_that_is_not_set_yet)
{
    struct py_target target = fake_target(_i);
    int python, groups;
    if (target.layout.thread_cframe == LAYOUT_NONE)
        return;
    entering(&target, 0x7fff0000);
    ck_assert_int_eq(walk_all(&target, LIMIT, &python, &groups), FRAMES_COMPLETE);
    ck_assert_int_eq(python, 3);
}
END_TEST

START_TEST(a_marker_that_is_not_linked_yet)
{
    struct py_target target = fake_target(_i);
    int python, groups;
    if (target.layout.thread_cframe == LAYOUT_NONE || target.layout.owner_entry == 0xff)
        return;
    entering(&target, 0x55000000);
    marker(&target, 0x55000000, 2);
    ck_assert_int_eq(walk_all(&target, LIMIT, &python, &groups), FRAMES_COMPLETE);
    ck_assert_int_eq(python, 3);
}
END_TEST

Suite *suite_frames(void)
{
    const TTest *const tests[] = {
        a_whole_chain_is_complete, a_frame_says_where_it_stands, a_thread_without_frames_is_empty, markers_alone_are_empty,
        a_chain_that_ends_in_a_generator_is_torn, a_chain_without_the_sentinel_is_torn, a_cycle_reaches_the_limit,
        a_frame_before_itself_is_torn, the_limit_is_kept, an_instruction_outside_the_code_is_torn,
        an_instruction_far_below_the_code_is_torn, half_an_instruction_is_torn, a_new_frame_stands_at_the_def,
        an_owner_that_does_not_exist_is_torn, an_unreadable_frame_is_a_fault, a_misaligned_frame_is_torn, what_runs_must_be_code,
        an_unreadable_thread_is_a_fault, tags_are_not_of_the_address, the_init_shim_is_not_shown,
        a_current_frame_that_is_not_set_yet, a_marker_that_is_not_linked_yet,
    };
    Suite *suite = suite_create("frames");
    TCase *each = tcase_create("each version");
    for (size_t i = 0; i < sizeof tests / sizeof *tests; i++)
        tcase_add_loop_test(each, tests[i], FIRST_MINOR, AFTER_LAST_MINOR);
    suite_add_tcase(suite, each);
    return suite;
}
