/* SPDX-License-Identifier: MIT
 * asyncios: what is published is found by its interpreter until it is withdrawn,
 * and stays as it was for who reads it still. */
#include "sampler/cpython/asyncios.h"

#include <check.h>

#define INTERP(i) (0x10000u + 0x1000u * (unsigned)(i))

Suite *suite_asyncios(void);

static struct asyncio description(uintptr_t interp, uintptr_t mark)
{
    return (struct asyncio){.interp = interp, .module = mark, .task_type = mark, .future_type = mark, .set = {mark, mark, mark, mark}};
}

static int publish(uintptr_t interp, uintptr_t mark)
{
    struct asyncio asyncio = description(interp, mark);
    return asyncios_publish(&asyncio);
}

START_TEST(nothing_is_published)
{
    ck_assert(!asyncios_any());
    ck_assert_ptr_null(asyncios_of(INTERP(0)));
    ck_assert_ptr_null(asyncios_of(0));
    for (uint32_t i = 0; i < ASYNCIOS_MAX; i++)
        ck_assert_ptr_null(asyncios_at(i));
    asyncios_withdraw(INTERP(0));
    asyncios_withdraw_all();
    ck_assert(!asyncios_any());
}
END_TEST

START_TEST(each_interpreter_has_its_own)
{
    for (int i = 0; i < ASYNCIOS_MAX; i++)
        ck_assert_int_eq(publish(INTERP(i), (uintptr_t)i + 1), i);
    for (int i = 0; i < ASYNCIOS_MAX; i++) {
        ck_assert_uint_eq(asyncios_of(INTERP(i))->module, (uintptr_t)i + 1);
        ck_assert_ptr_eq(asyncios_at((uint32_t)i), asyncios_of(INTERP(i)));
    }
    ck_assert(asyncios_any());
    ck_assert_ptr_null(asyncios_at(ASYNCIOS_MAX));
    ck_assert_ptr_null(asyncios_at(UINT32_MAX));
    ck_assert_ptr_null(asyncios_of(INTERP(ASYNCIOS_MAX)));
}
END_TEST

START_TEST(there_is_no_room_for_more)
{
    for (int i = 0; i < ASYNCIOS_MAX; i++)
        publish(INTERP(i), 1);
    ck_assert_int_eq(publish(INTERP(99), 1), -1);
    ck_assert_ptr_null(asyncios_of(INTERP(99)));
    ck_assert_int_eq(publish(INTERP(5), 2), 5); /* one that is there already */
    asyncios_withdraw(INTERP(7));
    ck_assert_int_eq(publish(INTERP(99), 3), 7);
    ck_assert_uint_eq(asyncios_of(INTERP(99))->module, 3);
    ck_assert_ptr_null(asyncios_of(INTERP(7)));
}
END_TEST

/* A handler may still read what was there before. */
START_TEST(the_older_description_stays_readable)
{
    publish(INTERP(0), 1);
    const struct asyncio *before = asyncios_of(INTERP(0));
    publish(INTERP(0), 2);
    ck_assert_uint_eq(before->module, 1);
    ck_assert_uint_eq(before->set[3], 1);
    ck_assert_uint_eq(asyncios_of(INTERP(0))->module, 2);
    ck_assert_ptr_ne(asyncios_of(INTERP(0)), before);
    before = asyncios_of(INTERP(0));
    asyncios_withdraw(INTERP(0));
    ck_assert_uint_eq(before->module, 2);
    publish(INTERP(1), 3); /* in the same place */
    ck_assert_uint_eq(before->module, 2);
    ck_assert_uint_eq(before->interp, INTERP(0));
}
END_TEST

START_TEST(what_is_withdrawn_is_gone)
{
    publish(INTERP(0), 1);
    publish(INTERP(1), 1);
    asyncios_withdraw(INTERP(0));
    ck_assert_ptr_null(asyncios_of(INTERP(0)));
    ck_assert_ptr_nonnull(asyncios_of(INTERP(1)));
    ck_assert(asyncios_any());
    publish(INTERP(0), 1);
    asyncios_withdraw_all();
    ck_assert(!asyncios_any());
    ck_assert_ptr_null(asyncios_of(INTERP(1)));
}
END_TEST

Suite *suite_asyncios(void)
{
    const TTest *const tests[] = {
        nothing_is_published, each_interpreter_has_its_own, there_is_no_room_for_more, the_older_description_stays_readable,
        what_is_withdrawn_is_gone,
    };
    Suite *suite = suite_create("asyncios");
    TCase *core = tcase_create("core");
    for (size_t i = 0; i < sizeof tests / sizeof *tests; i++)
        tcase_add_test(core, tests[i]);
    suite_add_tcase(suite, core);
    return suite;
}
