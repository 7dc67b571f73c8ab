/* SPDX-License-Identifier: MIT
 * threadnames: the dict of a module threading in each version's layout, and what is
 * none, or changes while it is read. */
#include "sampler/cpython/threadnames.h"

#include "sampler/cpython/objects.h"
#include "sampler/text.h"
#include "tests/unit/fake_threadnames.h"

Suite *suite_threadnames(void);

START_TEST(numbers)
{
    uint64_t value;
    begin(_i);
    ck_assert(objects_number(&target, number(IDENT_AT(0), size_of(0), 0, 0), &value));
    ck_assert_uint_eq(value, 0);
    ck_assert(objects_number(&target, number(IDENT_AT(0), size_of(1), 12, 0), &value));
    ck_assert_uint_eq(value, 12);
    ck_assert(objects_number(&target, number(IDENT_AT(0), size_of(2), 5, HIGH), &value));
    ck_assert_uint_eq(value, (uint64_t)HIGH << 30 | 5);
    ck_assert(!objects_number(&target, number(IDENT_AT(0), size_of(3), 5, HIGH), &value));
    ck_assert(!objects_number(&target, number(IDENT_AT(0), size_of(-1), 5, 0), &value));
    ck_assert(!objects_number(&target, number(IDENT_AT(0), -1, 5, 0), &value));
    ck_assert(!objects_number(&target, fake_str(&target, NAME_AT(0), "5"), &value));
    ck_assert(!objects_number(&target, 0, &value));
    ck_assert(!objects_number(&target, IDENT_AT(0) + 4, &value));
    struct fake nothing = fake_new(IDENT_AT(1), 48); /* a freed one */
    ck_assert(!objects_number(&target, fake_place(&nothing), &value));
}
END_TEST

START_TEST(threads_by_their_names)
{
    struct threadnames_walk walk;
    char name[TEXT_NAME_MAX];
    uint64_t ident;
    uint32_t length;
    begin(_i);
    const uintptr_t pairs[] = {
        number(IDENT_AT(0), size_of(2), 1, HIGH), thread(0, fake_str(&target, NAME_AT(0), "MainThread")),
        number(IDENT_AT(1), size_of(2), 2, HIGH), thread(1, number(IDENT_AT(5), size_of(1), 3, 0)), /* its name is none */
        fake_str(&target, NAME_AT(6), "key"), thread(2, fake_str(&target, NAME_AT(2), "no number")),
        number(IDENT_AT(3), size_of(2), 4, HIGH), thread(3, fake_str(&target, NAME_AT(3), "work;er")),
    };
    interpreter(MODULE_TYPE_AT, fake_dict(&target, ACTIVE_AT, FAKE_KEYS_GENERAL, pairs, 4));
    ck_assert(threadnames_begin(&walk, &target, INTERP_AT));
    ck_assert(threadnames_next(&walk, &ident, name, sizeof name, &length));
    ck_assert_uint_eq(ident, (uint64_t)HIGH << 30 | 1);
    ck_assert_mem_eq(name, "MainThread", length);
    ck_assert_uint_eq(length, 10);
    ck_assert(threadnames_next(&walk, &ident, name, sizeof name, &length));
    ck_assert_uint_eq(ident, (uint64_t)HIGH << 30 | 4);
    ck_assert_uint_eq(length, 10);
    ck_assert_mem_eq(name, "work\\x3ber", length);
    ck_assert(!threadnames_next(&walk, &ident, name, sizeof name, &length));
}
END_TEST

START_TEST(where_there_is_no_threading)
{
    struct threadnames_walk walk;
    begin(_i);
    interpreter(CLASS_AT, fake_dict(&target, ACTIVE_AT, FAKE_KEYS_GENERAL, NULL, 0)); /* something else under that name */
    ck_assert(!threadnames_begin(&walk, &target, INTERP_AT));
    interpreter(MODULE_TYPE_AT, fake_str(&target, ACTIVE_AT, "none"));
    ck_assert(!threadnames_begin(&walk, &target, INTERP_AT));
    interpreter(MODULE_TYPE_AT, 0);
    ck_assert(!threadnames_begin(&walk, &target, INTERP_AT));
    ck_assert(!threadnames_begin(&walk, &target, 0));
    ck_assert(!threadnames_begin(&walk, &target, 0x7fff0000));
}
END_TEST

#define ENTRIES 70000
#define LARGE_AT 0x50000000u

/* As far as there may be threads, and no further: what is read of a table that is freed may be empty for long. */
START_TEST(a_table_without_end)
{
    static uintptr_t pairs[2 * ENTRIES];
    struct threadnames_walk walk;
    char name[TEXT_NAME_MAX];
    uint64_t ident;
    uint32_t length;
    begin(_i);
    pairs[2 * ENTRIES - 2] = number(IDENT_AT(0), size_of(2), 1, HIGH);
    pairs[2 * ENTRIES - 1] = thread(0, fake_str(&target, NAME_AT(0), "last"));
    interpreter(MODULE_TYPE_AT, fake_dict(&target, LARGE_AT, FAKE_KEYS_GENERAL, pairs, ENTRIES));
    ck_assert(threadnames_begin(&walk, &target, INTERP_AT));
    ck_assert(!threadnames_next(&walk, &ident, name, sizeof name, &length));
    pairs[2] = pairs[2 * ENTRIES - 2];
    pairs[3] = pairs[2 * ENTRIES - 1];
    fake_dict(&target, LARGE_AT, FAKE_KEYS_GENERAL, pairs, ENTRIES);
    ck_assert(threadnames_begin(&walk, &target, INTERP_AT));
    ck_assert(threadnames_next(&walk, &ident, name, sizeof name, &length));
    ck_assert(!threadnames_next(&walk, &ident, name, sizeof name, &length));
}
END_TEST

static uintptr_t others_at;

/* The entry is another's by the time that its name is read. */
static void replace(uintptr_t address, size_t length)
{
    uintptr_t name = NAME_AT(0) + (uintptr_t)target.layout.str_ascii_data;
    if (!others_at || address > name || address + length <= name)
        return;
    const uintptr_t pairs[] = {number(IDENT_AT(1), size_of(2), 2, HIGH), others_at};
    others_at = 0;
    fake_dict(&target, ACTIVE_AT, FAKE_KEYS_GENERAL, pairs, 1);
}

START_TEST(an_entry_that_is_replaced_is_not_believed)
{
    struct threadnames_walk walk;
    char name[TEXT_NAME_MAX];
    uint64_t ident;
    uint32_t length;
    begin(_i);
    others_at = thread(1, fake_str(&target, NAME_AT(1), "other"));
    const uintptr_t pairs[] = {number(IDENT_AT(0), size_of(2), 1, HIGH), thread(0, fake_str(&target, NAME_AT(0), "first"))};
    interpreter(MODULE_TYPE_AT, fake_dict(&target, ACTIVE_AT, FAKE_KEYS_GENERAL, pairs, 1));
    ck_assert(threadnames_begin(&walk, &target, INTERP_AT));
    fake_on_read(replace);
    ck_assert(!threadnames_next(&walk, &ident, name, sizeof name, &length));
    ck_assert_uint_eq(others_at, 0);
}
END_TEST

Suite *suite_threadnames(void)
{
    Suite *suite = suite_create("threadnames");
    TCase *each = tcase_create("each version");
    tcase_add_loop_test(each, numbers, FIRST_MINOR, AFTER_LAST_MINOR);
    tcase_add_loop_test(each, threads_by_their_names, FIRST_MINOR, AFTER_LAST_MINOR);
    tcase_add_loop_test(each, where_there_is_no_threading, FIRST_MINOR, AFTER_LAST_MINOR);
    tcase_add_loop_test(each, a_table_without_end, FIRST_MINOR, AFTER_LAST_MINOR);
    tcase_add_loop_test(each, an_entry_that_is_replaced_is_not_believed, FIRST_MINOR, AFTER_LAST_MINOR);
    suite_add_tcase(suite, each);
    return suite;
}
