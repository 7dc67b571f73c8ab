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

static struct py_target target;

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
    }
    fake_place(&gil);
    fake_place(&interp);
}

/* Two frames, of which the inner one is FRAME_AT(0), on a marker of C. */
static void begin(int minor)
{
    target = fake_target(minor);
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

static bool runs(void)
{
    return collector_is_run_by(&target, THREAD_AT, LIMIT);
}

START_TEST(a_collection_is_its_holders)
{
    begin(_i);
    for (int inner = 0; inner < 2; inner++) {
        interpreter(1, FRAME_AT(inner), true);
        ck_assert_int_eq(runs(), _i >= 13);
    }
}
END_TEST

START_TEST(none_is_under_way)
{
    begin(_i);
    interpreter(0, 0, true);
    ck_assert(!runs());
    interpreter(7, FRAME_AT(0), true); /* no flag */
    ck_assert(!runs());
    ck_assert(!collector_is_run_by(&target, 0, LIMIT));
    ck_assert(!collector_is_run_by(&target, ELSEWHERE, LIMIT));
}
END_TEST

START_TEST(who_has_no_gil_runs_none)
{
    begin(_i);
    interpreter(1, FRAME_AT(0), false);
    ck_assert(!runs());
}
END_TEST

/* 3.15: a finalizer of it gave the GIL away. */
START_TEST(another_threads_collection)
{
    begin(_i);
    interpreter(1, ELSEWHERE, true);
    ck_assert_int_eq(runs(), target.layout.gc_is_told && target.layout.interp_gc_frame == LAYOUT_NONE);
}
END_TEST

Suite *suite_collector(void)
{
    Suite *suite = suite_create("collector");
    TCase *each = tcase_create("each version");
    tcase_add_loop_test(each, a_collection_is_its_holders, FIRST_MINOR, AFTER_LAST_MINOR);
    tcase_add_loop_test(each, none_is_under_way, FIRST_MINOR, AFTER_LAST_MINOR);
    tcase_add_loop_test(each, who_has_no_gil_runs_none, FIRST_MINOR, AFTER_LAST_MINOR);
    tcase_add_loop_test(each, another_threads_collection, FIRST_MINOR, AFTER_LAST_MINOR);
    suite_add_tcase(suite, each);
    return suite;
}
