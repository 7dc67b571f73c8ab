/* SPDX-License-Identifier: MIT
 * code: code objects, their identity, and location tables (well formed or not). */
#include "sampler/cpython/code.h"

#include "tests/unit/fake_python.h"

#define AT 0x40000000u

Suite *suite_code(void);

START_TEST(a_code_object_is_read)
{
    struct py_target target = fake_target(_i);
    struct py_code code;
    ck_assert(code_read(&target, fake_code(&target, AT), &code));
    ck_assert_uint_eq(code.address, AT);
    ck_assert_int_eq(code.units, CODE_UNITS);
    ck_assert_int_eq(code.firstlineno, 40);
    ck_assert_uint_eq(code.qualname, AT + 0x30000);
    ck_assert_uint_eq(code.adaptive, AT + (uintptr_t)target.layout.code_adaptive);
    ck_assert_uint_ne(code.identity, 0);
    ck_assert(!code_is_init_shim(&target, &code));
}
END_TEST

START_TEST(what_is_no_code_is_refused)
{
    struct py_target target = fake_target(_i);
    struct py_code code;
    struct fake other = fake_code_new(&target, AT);
    fake_put_word(&other, target.layout.object_type, OTHER_TYPE_AT);
    ck_assert(!code_read(&target, fake_place(&other), &code));
    ck_assert(!code_read(&target, 0, &code));
    ck_assert(!code_read(&target, AT + 4, &code));
    ck_assert(!code_read(&target, 0x7fff0000, &code));
}
END_TEST

START_TEST(absurd_values_are_refused)
{
    struct py_target target = fake_target(_i);
    struct py_code code;
    struct fake none = fake_code_new(&target, AT), huge = fake_code_new(&target, AT + 0x100000), nameless = fake_code_new(&target, AT + 0x200000);
    fake_put_word(&none, target.layout.var_size, 0);
    fake_put_word(&huge, target.layout.var_size, 1ul << 40);
    fake_put_word(&nameless, target.layout.code_qualname, 0);
    ck_assert(!code_read(&target, fake_place(&none), &code));
    ck_assert(!code_read(&target, fake_place(&huge), &code));
    ck_assert(!code_read(&target, fake_place(&nameless), &code));
}
END_TEST

static uint64_t identity_with(int minor, int32_t (*field)(const struct layout *), uint32_t value)
{
    struct py_target target = fake_target(minor);
    struct fake fake = fake_code_new(&target, AT);
    struct py_code code;
    int32_t at = field(&target.layout);
    if (at != LAYOUT_NONE)
        fake_put_int(&fake, at, value);
    ck_assert(code_read(&target, fake_place(&fake), &code));
    return code.identity;
}

static int32_t first_line(const struct layout *layout)
{
    return layout->code_firstlineno;
}

static int32_t version(const struct layout *layout)
{
    return layout->code_version;
}

/* Fresh processes (Check forks), so equal inputs have equal addresses: the hash
 * is compared within one process by reading the object twice. */
START_TEST(identity_is_stable)
{
    struct py_target target = fake_target(_i);
    struct py_code one, two;
    fake_code(&target, AT);
    ck_assert(code_read(&target, AT, &one) && code_read(&target, AT, &two));
    ck_assert_uint_eq(one.identity, two.identity);
}
END_TEST

START_TEST(another_object_at_the_same_address_is_another)
{
    ck_assert_uint_ne(identity_with(_i, first_line, 40), identity_with(_i, first_line, 41));
    if (layout_find(_i, false)->code_version != LAYOUT_NONE)
        ck_assert_uint_ne(identity_with(_i, version, 1), identity_with(_i, version, 2));
}
END_TEST

START_TEST(the_init_shim_is_known)
{
    struct py_target target = fake_target(_i);
    struct fake fake = fake_code_new(&target, AT);
    struct py_code code;
    fake_put_int(&fake, target.layout.code_flags, 0x2000001);
    ck_assert(code_read(&target, fake_place(&fake), &code));
    ck_assert_int_eq(code_is_init_shim(&target, &code), _i >= 13);
}
END_TEST

START_TEST(lines_by_every_form_of_entry)
{
    const uint8_t table[] = {
        0x80 | 0 << 3 | 0, 0x12,              /* short: same line, one unit */
        0x80 | 10 << 3 | 0, 1, 2,             /* same line */
        0x80 | 11 << 3 | 0, 1, 2,             /* +1 */
        0x80 | 12 << 3 | 1, 1, 2,             /* +2, two units */
        0x80 | 13 << 3 | 0, 0x07,             /* -3: (3 << 1) | 1 */
        0x80 | 14 << 3 | 0, 0x40 | 8, 2, 1, 2, 3, /* +68: 136 = 8 | 2 << 6 */
        0x80 | 15 << 3 | 0,                   /* none */
        0x80 | 0 << 3 | 7, 0x00,              /* eight units on the line of before */
    };
    const int32_t want[] = {10, 10, 11, 13, 13, 10, 78, 0, 78, 78, 78, 78, 78, 78, 78, 78};
    for (int32_t i = 0; i < (int32_t)(sizeof want / sizeof *want); i++)
        ck_assert_int_eq(code_line(table, sizeof table, 10, 2 * i), want[i]);
    ck_assert_int_eq(code_line(table, sizeof table, 10, -1), 10);
    ck_assert_int_eq(code_line(table, sizeof table, 10, -2), 10);
    ck_assert_int_eq(code_line(table, sizeof table, 10, 32), 0);
}
END_TEST

START_TEST(malformed_tables_give_no_line)
{
    const uint8_t no_mark[] = {0x00, 0x01}, cut[] = {0x80 | 13 << 3}, endless[] = {0x80 | 13 << 3, 0x7f, 0x7f, 0x7f, 0x7f, 0x7f, 0x7f, 0x7f, 0x7f};
    const uint8_t entry_in_varint[] = {0x80 | 13 << 3, 0xff}, below_zero[] = {0x80 | 13 << 3, 0x7f, 0x01};
    ck_assert_int_eq(code_line(no_mark, 0, 5, 0), 0);
    ck_assert_int_eq(code_line(no_mark, sizeof no_mark, 5, 0), 0);
    ck_assert_int_eq(code_line(cut, sizeof cut, 5, 0), 0);
    ck_assert_int_eq(code_line(endless, sizeof endless, 5, 0), 0);
    ck_assert_int_eq(code_line(entry_in_varint, sizeof entry_in_varint, 5, 0), 0);
    ck_assert_int_eq(code_line(below_zero, sizeof below_zero, 5, 0), 0);
}
END_TEST

START_TEST(random_tables_end)
{
    uint8_t table[64];
    uint32_t random = 12345;
    for (int round = 0; round < 20000; round++) {
        for (size_t i = 0; i < sizeof table; i++)
            table[i] = (uint8_t)((random = random * 1664525 + 1013904223) >> 24);
        code_line(table, random % sizeof table, (int32_t)random, (int32_t)(random >> 20));
    }
}
END_TEST

START_TEST(a_table_is_read_in_place)
{
    struct py_target target = fake_target(_i);
    struct py_code code;
    ck_assert(code_read(&target, fake_code(&target, AT), &code));
    for (int32_t lasti = -2; lasti < 2 * CODE_UNITS; lasti += 2)
        ck_assert_int_eq(code_line_in_place(&target, &code, lasti), code_line(fake_line_table, sizeof fake_line_table, 40, lasti));
    ck_assert_int_eq(code_line_in_place(&target, &code, 8), 48);
}
END_TEST

/* 9,000 lines: more windows than one, and entries that lie across their edges. */
START_TEST(a_long_table_is_read_in_place)
{
    static uint8_t table[5 * 9000];
    struct py_target target = fake_target(_i);
    struct fake fake = fake_code_new(&target, AT);
    struct py_code code;
    for (size_t i = 0; i < sizeof table; i += 5)
        memcpy(table + i, (uint8_t[]){0x80 | 14 << 3, 2, 0, 1, 1}, 5);
    fake_put_word(&fake, target.layout.code_linetable, fake_bytes(&target, AT + 0x80000, table, sizeof table));
    ck_assert(code_read(&target, fake_place(&fake), &code));
    ck_assert_int_eq(code_line_in_place(&target, &code, 2 * 8999), 40 + 9000);
    ck_assert_int_eq(code_line_in_place(&target, &code, 2 * 100), 40 + 101);
    ck_assert_int_eq(code_line_in_place(&target, &code, 2 * 9000), 0);
}
END_TEST

START_TEST(an_unreadable_table_gives_no_line)
{
    struct py_target target = fake_target(_i);
    struct fake fake = fake_code_new(&target, AT), head = fake_new(AT + 0x90000, (size_t)target.layout.var_size + 8);
    struct py_code code;
    fake_put_word(&head, target.layout.object_type, BYTES_TYPE_AT);
    fake_put_word(&head, target.layout.var_size, 100); /* says more than there is */
    fake_put_word(&fake, target.layout.code_linetable, fake_place(&head));
    ck_assert(code_read(&target, fake_place(&fake), &code));
    ck_assert_int_eq(code_line_in_place(&target, &code, 0), 0);
}
END_TEST

Suite *suite_code(void)
{
    Suite *suite = suite_create("code");
    TCase *each = tcase_create("each version");
    tcase_add_loop_test(each, a_code_object_is_read, FIRST_MINOR, AFTER_LAST_MINOR);
    tcase_add_loop_test(each, what_is_no_code_is_refused, FIRST_MINOR, AFTER_LAST_MINOR);
    tcase_add_loop_test(each, absurd_values_are_refused, FIRST_MINOR, AFTER_LAST_MINOR);
    tcase_add_loop_test(each, identity_is_stable, FIRST_MINOR, AFTER_LAST_MINOR);
    tcase_add_loop_test(each, another_object_at_the_same_address_is_another, FIRST_MINOR, AFTER_LAST_MINOR);
    tcase_add_loop_test(each, the_init_shim_is_known, FIRST_MINOR, AFTER_LAST_MINOR);
    tcase_add_loop_test(each, a_table_is_read_in_place, FIRST_MINOR, AFTER_LAST_MINOR);
    tcase_add_loop_test(each, a_long_table_is_read_in_place, FIRST_MINOR, AFTER_LAST_MINOR);
    tcase_add_loop_test(each, an_unreadable_table_gives_no_line, FIRST_MINOR, AFTER_LAST_MINOR);
    suite_add_tcase(suite, each);
    TCase *tables = tcase_create("location tables");
    tcase_add_test(tables, lines_by_every_form_of_entry);
    tcase_add_test(tables, malformed_tables_give_no_line);
    tcase_add_test(tables, random_tables_end);
    suite_add_tcase(suite, tables);
    return suite;
}
