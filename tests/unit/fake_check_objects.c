/* SPDX-License-Identifier: MIT
 * objects: str in every layout, bytes, and what is neither. */
#include "sampler/cpython/objects.h"

#include "tests/unit/fake_python.h"

#define AT 0x30000000u

Suite *suite_objects(void);

static uint32_t state_of(uint32_t kind, bool compact, bool ascii)
{
    return 1 | kind << 2 | (uint32_t)compact << 5 | (uint32_t)ascii << 6;
}

/* Just the head: the characters are not read here. */
static uintptr_t head(const struct py_target *target, uintptr_t type, uint64_t length, uint32_t state)
{
    struct fake str = fake_new(AT, (size_t)target->layout.str_state + 4);
    fake_put_word(&str, target->layout.object_type, type);
    fake_put_word(&str, target->layout.str_length, length);
    fake_put_int(&str, target->layout.str_state, state);
    return fake_place(&str);
}

START_TEST(ascii_characters_follow_the_small_head)
{
    struct py_target target = fake_target(_i);
    struct py_str str;
    ck_assert(objects_str(&target, fake_str(&target, AT, "abc"), &str));
    ck_assert_uint_eq(str.data, AT + (uintptr_t)target.layout.str_ascii_data);
    ck_assert_uint_eq(str.length, 3);
    ck_assert_uint_eq(str.kind, 1);
    ck_assert(str.ascii);
}
END_TEST

START_TEST(wide_characters_follow_the_large_head)
{
    struct py_target target = fake_target(_i);
    struct py_str str;
    ck_assert(objects_str(&target, head(&target, UNICODE_TYPE_AT, 9, state_of(4, true, false)), &str));
    ck_assert_uint_eq(str.data, AT + (uintptr_t)target.layout.str_compact_data);
    ck_assert_uint_eq(str.kind, 4);
    ck_assert(!str.ascii);
}
END_TEST

START_TEST(a_subclass_points_at_its_characters)
{
    struct py_target target = fake_target(_i);
    struct fake object = fake_new(AT, (size_t)target.layout.str_legacy_data + 8);
    struct py_str str;
    fake_put_word(&object, target.layout.object_type, STR_SUBTYPE_AT);
    fake_put_word(&object, target.layout.str_length, 5);
    fake_put_int(&object, target.layout.str_state, state_of(2, false, false));
    fake_put_word(&object, target.layout.str_legacy_data, 0x31000000);
    ck_assert(objects_str(&target, fake_place(&object), &str));
    ck_assert_uint_eq(str.data, 0x31000000);
    ck_assert_uint_eq(str.kind, 2);
}
END_TEST

START_TEST(what_is_no_str_is_refused)
{
    struct py_target target = fake_target(_i);
    struct py_str str;
    ck_assert(!objects_str(&target, 0, &str));
    ck_assert(!objects_str(&target, 8, &str));
    ck_assert(!objects_str(&target, AT + 1, &str));
    ck_assert(!objects_str(&target, 0xdddddddddddddddd, &str));
    ck_assert(!objects_str(&target, head(&target, OTHER_TYPE_AT, 3, state_of(1, true, true)), &str));
}
END_TEST

START_TEST(a_kind_that_does_not_exist_is_refused)
{
    struct py_target target = fake_target(_i);
    struct py_str str;
    ck_assert(!objects_str(&target, head(&target, UNICODE_TYPE_AT, 3, state_of(0, true, false)), &str));
    ck_assert(!objects_str(&target, head(&target, UNICODE_TYPE_AT, 3, state_of(3, true, false)), &str));
}
END_TEST

START_TEST(an_absurd_length_is_refused)
{
    struct py_target target = fake_target(_i);
    struct py_str str;
    ck_assert(!objects_str(&target, head(&target, UNICODE_TYPE_AT, (1u << 28) + 1, state_of(1, true, true)), &str));
}
END_TEST

START_TEST(a_type_that_is_unreadable_is_no_match)
{
    struct py_target target = fake_target(_i);
    struct py_str str;
    ck_assert(!objects_str(&target, head(&target, 0x7fff0000, 3, state_of(1, true, true)), &str));
}
END_TEST

START_TEST(bytes_are_found)
{
    struct py_target target = fake_target(_i);
    struct py_bytes bytes;
    ck_assert(objects_bytes(&target, fake_bytes(&target, AT, "a\0c", 3), &bytes));
    ck_assert_uint_eq(bytes.length, 3);
    ck_assert_uint_eq(bytes.data, AT + (uintptr_t)target.layout.bytes_data);
    ck_assert(!objects_bytes(&target, fake_str(&target, AT + 0x1000, "abc"), &bytes));
    ck_assert(objects_is(&target, AT, BYTES_TYPE_AT));
    ck_assert(!objects_is(&target, AT, UNICODE_TYPE_AT));
    ck_assert(!objects_is(&target, 0, UNICODE_TYPE_AT));
}
END_TEST

Suite *suite_objects(void)
{
    Suite *suite = suite_create("objects");
    TCase *tcase = tcase_create("each version");
    tcase_add_loop_test(tcase, ascii_characters_follow_the_small_head, FIRST_MINOR, AFTER_LAST_MINOR);
    tcase_add_loop_test(tcase, wide_characters_follow_the_large_head, FIRST_MINOR, AFTER_LAST_MINOR);
    tcase_add_loop_test(tcase, a_subclass_points_at_its_characters, FIRST_MINOR, AFTER_LAST_MINOR);
    tcase_add_loop_test(tcase, what_is_no_str_is_refused, FIRST_MINOR, AFTER_LAST_MINOR);
    tcase_add_loop_test(tcase, a_kind_that_does_not_exist_is_refused, FIRST_MINOR, AFTER_LAST_MINOR);
    tcase_add_loop_test(tcase, an_absurd_length_is_refused, FIRST_MINOR, AFTER_LAST_MINOR);
    tcase_add_loop_test(tcase, a_type_that_is_unreadable_is_no_match, FIRST_MINOR, AFTER_LAST_MINOR);
    tcase_add_loop_test(tcase, bytes_are_found, FIRST_MINOR, AFTER_LAST_MINOR);
    suite_add_tcase(suite, tcase);
    return suite;
}
