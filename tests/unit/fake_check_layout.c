/* SPDX-License-Identifier: MIT
 * layout: which table, and what is taken from the interpreter's own. */
#include "sampler/cpython/layout.h"

#include <errno.h>

#include "sampler/cpython/layout_tables.h"
#include "tests/unit/fake_python.h"

#define RUNTIME_BYTES 65536
#define FIRST_WITH_OFFSETS 13

Suite *suite_layout(void);

static const struct layout_debug_row *const all_rows[] = {layout_3_13_debug_rows, layout_3_14_debug_rows, layout_3_15_debug_rows};
static const struct layout_debug_places *const all_places[] = {&layout_3_13_debug_places, &layout_3_14_debug_places, &layout_3_15_debug_places};

/* A _PyRuntime that says what the table says, its lock `away` from the table's. */
static struct fake runtime_of(int minor, int32_t away)
{
    const struct layout *layout = layout_find(minor, false);
    const struct layout_debug_places *places = all_places[minor - FIRST_WITH_OFFSETS];
    struct fake runtime = fake_new(RUNTIME_AT, RUNTIME_BYTES);
    memcpy(runtime.bytes, "xdebugpy", 8);
    fake_put_word(&runtime, 8, 0x030003f0u | (uint32_t)minor << 16);
    for (const struct layout_debug_row *row = all_rows[minor - FIRST_WITH_OFFSETS]; row->at; row++) {
        int32_t value;
        memcpy(&value, (const char *)layout + row->member, sizeof value);
        fake_put_word(&runtime, row->at, (uint64_t)value);
    }
    fake_put_word(&runtime, places->gil, 7000);
    fake_put_word(&runtime, places->gil_locked, 7000 + (uint64_t)layout->gil_locked);
    fake_put_word(&runtime, places->gil_holder, 7000 + (uint64_t)layout->gil_last_holder);
    fake_put_word(&runtime, places->gc, (uint64_t)layout->interp_gc_collecting - places->gc_lists_if);
    fake_put_word(&runtime, places->gc_collecting, places->gc_lists_if);
    if (places->gc_frame)
        fake_put_word(&runtime, places->gc_frame, (uint64_t)(layout->interp_gc_frame - layout->interp_gc_collecting) + places->gc_lists_if);
    fake_put_word(&runtime, layout->runtime_pending_lock + away + 8, 32);
    return runtime;
}

START_TEST(each_supported_version_has_two_tables)
{
    for (int minor = 0; minor < 32; minor++)
        for (int debug = 0; debug < 2; debug++) {
            const struct layout *layout = layout_find(minor, debug);
            ck_assert_int_eq(layout != NULL, minor >= 11 && minor <= 15);
            if (layout)
                ck_assert(layout->minor == minor && layout->debug_build == debug);
        }
    ck_assert_ptr_null(layout_find(-1, false));
}
END_TEST

START_TEST(older_versions_have_nothing_to_read)
{
    struct layout layout = *layout_find(_i, false);
    ck_assert_int_eq(layout_read_debug_offsets(&layout, 0), 0);
    ck_assert_mem_eq(&layout, layout_find(_i, false), sizeof layout);
}
END_TEST

START_TEST(what_the_table_says_too_changes_nothing)
{
    struct layout layout = *layout_find(_i, false);
    struct fake runtime = runtime_of(_i, 0);
    fake_place(&runtime);
    ck_assert_int_eq(layout_read_debug_offsets(&layout, RUNTIME_AT), 0);
    ck_assert_mem_eq(&layout, layout_find(_i, false), sizeof layout);
}
END_TEST

START_TEST(the_interpreters_own_offsets_win)
{
    struct layout layout = *layout_find(_i, false);
    struct fake runtime = runtime_of(_i, 0);
    for (const struct layout_debug_row *row = all_rows[_i - FIRST_WITH_OFFSETS]; row->at; row++)
        if (row->member == offsetof(struct layout, thread_native_id))
            fake_put_word(&runtime, row->at, 400);
    fake_place(&runtime);
    ck_assert_int_eq(layout_read_debug_offsets(&layout, RUNTIME_AT), 0);
    ck_assert_int_eq(layout.thread_native_id, 400);
}
END_TEST

START_TEST(the_pending_lock_is_found_where_it_moved)
{
    struct layout layout = *layout_find(_i, false);
    struct fake runtime = runtime_of(_i, 24);
    fake_place(&runtime);
    ck_assert_int_eq(layout_read_debug_offsets(&layout, RUNTIME_AT), 0);
    ck_assert_int_eq(layout.runtime_pending_lock, layout_find(_i, false)->runtime_pending_lock + 24);
}
END_TEST

START_TEST(a_pending_lock_that_is_not_found_is_unknown)
{
    struct layout layout = *layout_find(_i, false);
    struct fake runtime = runtime_of(_i, 0);
    fake_put_word(&runtime, layout.runtime_pending_lock + 8, 0);
    fake_place(&runtime);
    ck_assert_int_eq(layout_read_debug_offsets(&layout, RUNTIME_AT), 0);
    ck_assert_int_eq(layout.runtime_pending_lock, LAYOUT_NONE);
}
END_TEST

static int refused(int minor, int32_t at, uint64_t word)
{
    struct layout layout = *layout_find(minor, false);
    struct fake runtime = runtime_of(minor, 0);
    fake_put_word(&runtime, at, word);
    fake_place(&runtime);
    int error = layout_read_debug_offsets(&layout, RUNTIME_AT);
    ck_assert_mem_eq(&layout, layout_find(minor, false), sizeof layout);
    return error;
}

START_TEST(no_cookie)
{
    ck_assert_int_eq(refused(_i, 0, 0), -EINVAL);
}
END_TEST

START_TEST(another_version)
{
    ck_assert_int_eq(refused(_i, 8, 0x031003f0), -EINVAL);
}
END_TEST

START_TEST(a_pre_release)
{
    ck_assert_int_eq(refused(_i, 8, 0x030000a1u | (uint32_t)_i << 16), -EINVAL);
}
END_TEST

START_TEST(a_free_threaded_build)
{
    ck_assert_int_eq(refused(_i, 16, 1), -ENOTSUP);
}
END_TEST

static int32_t place_of(int minor, size_t member)
{
    const struct layout_debug_row *row = all_rows[minor - FIRST_WITH_OFFSETS];
    while (row->member != member)
        row++;
    return row->at;
}

static bool has_place(int minor, size_t member)
{
    const struct layout_debug_row *row = all_rows[minor - FIRST_WITH_OFFSETS];
    while (row->at && row->member != member)
        row++;
    return row->at != 0;
}

START_TEST(an_offset_that_cannot_be)
{
    ck_assert_int_eq(refused(_i, place_of(_i, offsetof(struct layout, interp_id)), 1ul << 40), -EINVAL);
}
END_TEST

START_TEST(a_frame_larger_than_the_readers_buffer)
{
    ck_assert_int_eq(refused(_i, place_of(_i, offsetof(struct layout, frame_size)), 4096), -EINVAL);
}
END_TEST

START_TEST(a_member_outside_its_frame)
{
    ck_assert_int_eq(refused(_i, place_of(_i, offsetof(struct layout, frame_owner)), 100), -EINVAL);
}
END_TEST

/* What is read word by word: too far out for its object, then misaligned. */
START_TEST(members_of_objects_that_cannot_be)
{
    static const size_t members[] = {
        offsetof(struct layout, code_localsplusnames), offsetof(struct layout, code_localspluskinds), offsetof(struct layout, tuple_items),
        offsetof(struct layout, list_items), offsetof(struct layout, dict_keys), offsetof(struct layout, dict_values),
        offsetof(struct layout, set_mask), offsetof(struct layout, set_table), offsetof(struct layout, long_size),
        offsetof(struct layout, gen_frame), offsetof(struct layout, type_basicsize), offsetof(struct layout, type_dictoffset),
        offsetof(struct layout, type_cached_keys), offsetof(struct layout, thread_running_loop),
    };
    size_t looked_at = 0;
    for (size_t i = 0; i < sizeof members / sizeof *members; i++) {
        if (!has_place(_i, members[i]))
            continue;
        looked_at++;
        ck_assert_int_eq(refused(_i, place_of(_i, members[i]), 65536), -EINVAL);
        ck_assert_int_eq(refused(_i, place_of(_i, members[i]), 36), -EINVAL);
    }
    ck_assert_uint_ge(looked_at, 8);
}
END_TEST

/* Readers index buffers of their own by these: each within its span, but not within that of what is copied. */
START_TEST(members_behind_what_is_copied)
{
    static const struct {
        size_t member;
        uint64_t offset;
    } wrong[] = {
        {offsetof(struct layout, object_type), 56}, {offsetof(struct layout, var_size), 184}, {offsetof(struct layout, str_length), 48},
        {offsetof(struct layout, str_state), 8}, {offsetof(struct layout, code_linetable), 64}, {offsetof(struct layout, code_qualname), 184},
        {offsetof(struct layout, code_name), 0}, {offsetof(struct layout, code_firstlineno), 188}, {offsetof(struct layout, frame_stacktop), 80},
        {offsetof(struct layout, frame_executable), 80}, {offsetof(struct layout, gen_frame), 16}, {offsetof(struct layout, gen_frame), 240},
        {offsetof(struct layout, gen_state), 200},
    };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        if (has_place(_i, wrong[i].member))
            ck_assert_int_eq(refused(_i, place_of(_i, wrong[i].member), wrong[i].offset), -EINVAL);
}
END_TEST

/* What asyncio's readers need is there, or belongs together where it is not. */
START_TEST(each_table_is_complete)
{
    for (int debug = 0; debug < 2; debug++) {
        const struct layout *layout = layout_find(_i, debug);
        ck_assert(layout->gen_frame > layout->gen_state && layout->gen_state > 0);
        ck_assert(layout->gen_created != layout->gen_suspended && layout->gen_suspended != layout->gen_executing);
        ck_assert(layout->gen_executing < layout->gen_finished);
        ck_assert_int_eq(layout->gen_awaiting == 127, layout->resume_opcodes[0] != 0);
        ck_assert(layout->await_slot == 1 || layout->await_slot == 2);
        ck_assert(layout->instance_dict < 0 && layout->flag_managed_dict && layout->flag_heap_type);
        ck_assert_int_eq((layout->instance_values != LAYOUT_NONE) + layout->instance_values_tagged + layout->instance_values_inline, 1);
        ck_assert_int_eq(layout->instance_values_inline, layout->flag_inline_values != 0);
        ck_assert(layout->task_size > layout->future_size && layout->task_coro > layout->task_waiter);
        ck_assert(layout->task_waiter >= layout->future_size && layout->task_name < layout->task_size);
        ck_assert_int_eq(layout->task_node == LAYOUT_NONE, layout->thread_tasks == LAYOUT_NONE);
        ck_assert_int_eq(layout->task_node == LAYOUT_NONE, layout->interp_tasks == LAYOUT_NONE);
        ck_assert_int_eq(layout->task_node == LAYOUT_NONE, layout->future_awaited_by == LAYOUT_NONE);
        ck_assert(layout->thread_dict > 0 && layout->type_cached_keys > layout->type_subclasses);
    }
}
END_TEST

START_TEST(nothing_there)
{
    struct layout layout = *layout_find(_i, false);
    ck_assert_int_eq(layout_read_debug_offsets(&layout, RUNTIME_AT), -EINVAL);
}
END_TEST

Suite *suite_layout(void)
{
    const TTest *const tests[] = {
        what_the_table_says_too_changes_nothing, the_interpreters_own_offsets_win, the_pending_lock_is_found_where_it_moved,
        a_pending_lock_that_is_not_found_is_unknown, no_cookie, another_version, a_pre_release, a_free_threaded_build,
        an_offset_that_cannot_be, a_frame_larger_than_the_readers_buffer, a_member_outside_its_frame,
        members_of_objects_that_cannot_be, members_behind_what_is_copied, nothing_there,
    };
    Suite *suite = suite_create("layout");
    TCase *tcase = tcase_create("layout");
    tcase_add_test(tcase, each_supported_version_has_two_tables);
    tcase_add_loop_test(tcase, each_table_is_complete, FIRST_MINOR, AFTER_LAST_MINOR);
    tcase_add_loop_test(tcase, older_versions_have_nothing_to_read, FIRST_MINOR, FIRST_WITH_OFFSETS);
    for (size_t i = 0; i < sizeof tests / sizeof *tests; i++)
        tcase_add_loop_test(tcase, tests[i], FIRST_WITH_OFFSETS, AFTER_LAST_MINOR);
    suite_add_tcase(suite, tcase);
    return suite;
}
