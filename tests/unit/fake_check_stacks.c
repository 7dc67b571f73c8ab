/* SPDX-License-Identifier: MIT
 * stacks: passes over a thread's frames, whole, cut and torn, and what they
 * become in the profile. */
#include "sampler/stacks.h"

#include "hooks/mem.h"
#include "tests/unit/fake_python.h"

#define TSTATE 0x50000000u
#define CFRAME 0x51000000u
#define CODE 0x52000000u
#define FRAME(i) (0x53000000u + 0x1000u * (unsigned)(i))
#define ENTRY 0x54000000u /* the marker under the Python frames, 3.12+ */
#define BASE 0x54001000u  /* 3.15's sentinel */
#define FUNCTION(i) (0x60000000u + 0x1000000u * (unsigned)(i))
#define DEPTH 8

Suite *suite_stacks(void);

static struct py_target target;
static struct stacks stacks;
static struct stack_copy *copy;

static void start(int minor)
{
    target = fake_target(minor);
    ck_assert_int_eq(mem_init((size_t)64 << 20), 0);
    ck_assert_int_eq(codes_start(), 0);
    stacks = (struct stacks){.profile = profile_new(), .paths = {.full = true}, .target = &target};
    ck_assert_ptr_nonnull(stacks.profile);
    stacks.unknown = profile_intern(stacks.profile, "[unknown]", 9, 0);
    copy = stacks_new_copy(DEPTH);
    ck_assert_ptr_nonnull(copy);
}

static void marker(uintptr_t address, uintptr_t previous)
{
    struct fake frame = fake_frame_new(&target, address, 0x3, 0, previous);
    fake_put_byte(&frame, target.layout.frame_owner, target.layout.owner_entry);
    fake_place(&frame);
}

static uintptr_t bottom(void)
{
    if (target.layout.frame_is_entry != LAYOUT_NONE)
        return 0;
    bool sentinel = target.layout.thread_base_frame != LAYOUT_NONE;
    if (sentinel)
        marker(BASE, 0);
    marker(ENTRY, sentinel ? BASE : 0);
    return ENTRY;
}

static void thread_at(uintptr_t current)
{
    const struct layout *layout = &target.layout;
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

/* So many frames, leaf at 0; frame i runs code[i] (0: the same code as all) at unit i % 10. */
static void chain(int frames, const uintptr_t *code)
{
    uintptr_t below = bottom();
    fake_code(&target, CODE);
    for (int i = frames; i-- > 0;) {
        struct fake fake = fake_frame_new(&target, FRAME(i), code && code[i] ? code[i] : CODE, 2 * (i % CODE_UNITS), below);
        if (target.layout.frame_is_entry != LAYOUT_NONE)
            fake_put_byte(&fake, target.layout.frame_is_entry, i == frames - 1);
        below = fake_place(&fake);
    }
    thread_at(below);
}

static int capture(struct stack_copy *into)
{
    return (int)stacks_capture(into, &target, TSTATE, 1);
}

static const char *text(profile_stack stack)
{
    static char text[4096];
    text[profile_text(stacks.profile, stack, text, sizeof text - 1)] = '\0';
    return text;
}

/* --- capture --- */

START_TEST(a_whole_stack)
{
    start(_i);
    chain(3, NULL);
    ck_assert_int_eq(capture(copy), FRAMES_COMPLETE);
    ck_assert(stacks_is_whole(copy->end));
    ck_assert_uint_eq(copy->frames, 3);
    ck_assert_uint_eq(copy->cut, 0);
    ck_assert_int_eq(copy->entry[2].lasti, 4);
    ck_assert(stacks_resolve(&stacks, copy));
    ck_assert_str_eq(text(stacks_intern(&stacks, copy)),
                     "Job.run (/app/main.py:41);Job.run (/app/main.py:40);Job.run (/app/main.py:40)");
    ck_assert_uint_eq(stacks.unreadable, 0);
}
END_TEST

START_TEST(a_deep_stack_is_cut_at_the_root)
{
    start(_i);
    chain(DEPTH + 3, NULL);
    ck_assert_int_eq(capture(copy), FRAMES_COMPLETE);
    ck_assert_uint_eq(copy->frames, DEPTH);
    ck_assert_uint_eq(copy->cut, 3);
    ck_assert_int_eq(copy->entry[0].lasti, 0); /* the leaf stays */
    const char *whole = text(stacks_intern(&stacks, copy));
    ck_assert_ptr_eq(strstr(whole, "[truncated 3];Job.run"), whole);
}
END_TEST

START_TEST(a_stack_beyond_the_limit_is_cut_where_the_walk_ends)
{
    start(_i);
    chain(DEPTH * 5, NULL);
    ck_assert_int_eq(capture(copy), FRAMES_LIMIT);
    ck_assert(stacks_is_whole(copy->end));
    ck_assert_uint_eq(copy->frames, DEPTH);
    ck_assert_uint_eq(copy->frames + copy->cut, DEPTH * 4);
}
END_TEST

START_TEST(exactly_as_deep_as_there_is_room)
{
    start(_i);
    chain(DEPTH, NULL);
    ck_assert_int_eq(capture(copy), FRAMES_COMPLETE);
    ck_assert_uint_eq(copy->frames, DEPTH);
    ck_assert_uint_eq(copy->cut, 0);
    ck_assert_str_ne(text(stacks_intern(&stacks, copy)), "");
    ck_assert_ptr_null(strstr(text(stacks_intern(&stacks, copy)), "truncated"));
}
END_TEST

START_TEST(a_torn_chain_is_no_stack)
{
    start(_i);
    chain(3, NULL);
    struct fake leaf = fake_frame_new(&target, FRAME(0), CODE, 0, FRAME(1) + 4);
    fake_place(&leaf);
    thread_at(FRAME(0));
    ck_assert_int_eq(capture(copy), FRAMES_TORN);
    ck_assert(!stacks_is_whole(copy->end));
    leaf = fake_frame_new(&target, FRAME(0), CODE, 0, 0x7fff0000);
    fake_place(&leaf);
    ck_assert(!stacks_is_whole(stacks_capture(copy, &target, TSTATE, 1)));
}
END_TEST

START_TEST(no_frames_are_an_empty_stack)
{
    start(_i);
    bottom();
    thread_at(0);
    ck_assert_int_eq(capture(copy), FRAMES_EMPTY);
    ck_assert(!stacks_is_whole(copy->end));
    ck_assert_uint_eq(copy->frames, 0);
    fake_reset();
    ck_assert_int_eq(capture(copy), FRAMES_FAULT);
}
END_TEST

/* --- equal or not --- */

START_TEST(equal_passes)
{
    start(_i);
    struct stack_copy *other = stacks_new_copy(DEPTH);
    chain(4, NULL);
    capture(copy);
    capture(other);
    ck_assert(stacks_equal(copy, other));
    ck_assert(stacks_equal(copy, copy));
}
END_TEST

START_TEST(passes_differ_by_anything)
{
    start(_i);
    struct stack_copy *other = stacks_new_copy(DEPTH);
    chain(4, NULL);
    capture(copy);
    capture(other);
    other->entry[3].lasti += 2;
    ck_assert(!stacks_equal(copy, other));
    capture(other);
    other->entry[0].identity ^= 2;
    ck_assert(!stacks_equal(copy, other));
    capture(other);
    other->frames--;
    ck_assert(!stacks_equal(copy, other));
    capture(other);
    other->cut++;
    ck_assert(!stacks_equal(copy, other));
    capture(other);
    other->end = FRAMES_LIMIT;
    ck_assert(!stacks_equal(copy, other));
}
END_TEST

/* --- into the profile --- */

START_TEST(what_is_not_known_and_cannot_be_read_is_unknown)
{
    start(_i);
    chain(2, NULL);
    capture(copy);
    copy->entry[0].identity ^= 2; /* freed since, and another at its address */
    ck_assert(!stacks_resolve(&stacks, copy));
    ck_assert_str_eq(text(stacks_intern(&stacks, copy)), "Job.run (/app/main.py:40);[unknown]");
    ck_assert_uint_eq(stacks.unreadable, 1);
}
END_TEST

/* A tick whose names another handler is still writing: no address, wait. */
START_TEST(what_is_settled_is_not_sought_in_memory)
{
    struct py_code code;
    start(_i);
    chain(1, NULL);
    capture(copy);
    copy->entry[0].code = 0;
    ck_assert(!stacks_resolve(&stacks, copy));
    ck_assert(code_read(&target, CODE, &code) && codes_settle(&target, &code));
    ck_assert(!stacks_resolve(&stacks, copy));
    codes_drain();
    ck_assert(stacks_resolve(&stacks, copy));
    ck_assert_str_eq(text(stacks_intern(&stacks, copy)), "Job.run (/app/main.py:40)");
}
END_TEST

START_TEST(equal_copies_are_one_stack)
{
    start(_i);
    chain(4, NULL);
    capture(copy);
    profile_stack stack = stacks_intern(&stacks, copy);
    ck_assert_uint_eq(stacks_intern(&stacks, copy), stack);
    copy->entry[0].lasti = 8;
    ck_assert_uint_ne(stacks_intern(&stacks, copy), stack);
    ck_assert_uint_eq(profile_parent(stacks.profile, stacks_intern(&stacks, copy)), profile_parent(stacks.profile, stack));
}
END_TEST

START_TEST(an_empty_copy_is_the_root)
{
    start(_i);
    ck_assert_uint_eq(stacks_intern(&stacks, copy), PROFILE_ROOT);
}
END_TEST

/* --- asyncio's loop --- */

static uintptr_t function(uintptr_t address, const char *name, const char *path)
{
    struct fake code = fake_code_new(&target, address);
    fake_put_word(&code, target.layout.code_qualname, fake_str(&target, address + 0x50000, name));
    fake_put_word(&code, target.layout.code_filename, fake_str(&target, address + 0x60000, path));
    return fake_place(&code);
}

#define LIBRARY "/usr/lib/python3.13/"
static uint32_t flags_of(const char *const *leaf_first, int frames)
{
    uintptr_t code[DEPTH] = {0};
    for (int i = 0; i < frames; i++) {
        const char *path = strstr(leaf_first[i], "Selector") ? LIBRARY "selectors.py" :
                           strstr(leaf_first[i], "EventLoop") ? LIBRARY "asyncio/base_events.py" : "/app/main.py";
        code[i] = function(FUNCTION(i), leaf_first[i], path);
    }
    chain(frames, code);
    ck_assert_int_eq(capture(copy), FRAMES_COMPLETE);
    return profile_stack_flags(stacks.profile, stacks_intern(&stacks, copy));
}

START_TEST(an_idle_loop)
{
    static const char *const idle[] = {"EpollSelector.select", "BaseEventLoop._run_once", "BaseEventLoop.run_forever", "main"};
    start(_i);
    ck_assert_uint_eq(flags_of(idle, 4), STACK_IN_LOOP | STACK_IDLE);
}
END_TEST

START_TEST(a_busy_loop)
{
    static const char *const busy[] = {"Job.run", "Handle._run", "BaseEventLoop._run_once", "BaseEventLoop.run_forever"};
    start(_i);
    ck_assert_uint_eq(flags_of(busy, 4), STACK_IN_LOOP);
}
END_TEST

START_TEST(a_selector_of_the_program)
{
    static const char *const below[] = {"EpollSelector.select", "Job.run", "BaseEventLoop._run_once"};
    start(_i);
    ck_assert_uint_eq(flags_of(below, 3), STACK_IN_LOOP); /* a callback that selects: the loop is busy */
}
END_TEST

START_TEST(a_selector_without_a_loop)
{
    static const char *const alone[] = {"EpollSelector.select", "BaseEventLoop.run_forever", "main"};
    start(_i);
    ck_assert_uint_eq(flags_of(alone, 3), 0);
}
END_TEST

/* [overflow] is everybody's: it is no loop's. */
START_TEST(overflow_has_no_flags)
{
    static const char *const idle[] = {"EpollSelector.select", "BaseEventLoop._run_once"};
    start(_i);
    profile_freeze(stacks.profile, true);
    flags_of(idle, 2);
    ck_assert_uint_eq(profile_stack_flags(stacks.profile, profile_overflow(stacks.profile)), 0);
    ck_assert_uint_eq(profile_stack_flags(stacks.profile, PROFILE_ROOT), 0);
}
END_TEST

START_TEST(without_memory_there_is_no_copy)
{
    ck_assert_int_eq(mem_init(4096), 0);
    ck_assert_ptr_null(stacks_new_copy(8192));
}
END_TEST

Suite *suite_stacks(void)
{
    const TTest *const each[] = {
        a_whole_stack, a_deep_stack_is_cut_at_the_root, a_stack_beyond_the_limit_is_cut_where_the_walk_ends, exactly_as_deep_as_there_is_room,
        a_torn_chain_is_no_stack, no_frames_are_an_empty_stack, equal_passes, what_is_settled_is_not_sought_in_memory,
    };
    const TTest *const once[] = {
        passes_differ_by_anything, what_is_not_known_and_cannot_be_read_is_unknown, equal_copies_are_one_stack, an_empty_copy_is_the_root,
        an_idle_loop, a_busy_loop, a_selector_of_the_program, a_selector_without_a_loop, overflow_has_no_flags,
        without_memory_there_is_no_copy,
    };
    Suite *suite = suite_create("stacks");
    TCase *versions = tcase_create("each version"), *core = tcase_create("core");
    for (size_t i = 0; i < sizeof each / sizeof *each; i++)
        tcase_add_loop_test(versions, each[i], FIRST_MINOR, AFTER_LAST_MINOR);
    for (size_t i = 0; i < sizeof once / sizeof *once; i++)
        tcase_add_loop_test(core, once[i], 13, 14);
    suite_add_tcase(suite, versions);
    suite_add_tcase(suite, core);
    return suite;
}
