/* SPDX-License-Identifier: MIT
 * exceptions: a thread's list of items in each version's layout, how types are called, and
 * what is no list, or no type. */
#include "sampler/cpython/exceptions.h"

#include <string.h>

#include "tests/unit/fake_python.h"

Suite *suite_exceptions(void);

#define THREAD_AT 0x30000000u
#define ITEM_AT(i) (0x31000000u + 0x10000u * (unsigned)(i))
#define VALUE_AT(i) (0x32000000u + 0x10000u * (unsigned)(i))
#define TYPE_AT(i) (0x33000000u + 0x10000u * (unsigned)(i))
#define NAME_AT(i) (0x34000000u + 0x10000u * (unsigned)(i))
#define DICT_AT(i) (0x35000000u + 0x100000u * (unsigned)(i))
#define NONE_TYPE_AT 0x36000000u
#define FLAG_EXCEPTION (1ul << 30)

static struct py_target target;
static char name[EXCEPTION_NAME_MAX];
static uint32_t length;

static uintptr_t object(int i, uintptr_t type)
{
    struct fake made = fake_new(VALUE_AT(i), 32);
    fake_put_word(&made, target.layout.object_type, type);
    return fake_place(&made);
}

static uintptr_t of_static_type(int i, const char *called)
{
    return object(i, fake_named_type(&target.layout, TYPE_AT(i), called, FLAG_EXCEPTION, OBJECT_TYPE_AT));
}

/* module NULL: its dict has none. */
static uintptr_t of_class(int i, const char *qualname, const char *module)
{
    const uintptr_t pairs[] = {fake_str(&target, DICT_AT(i) + 0x30000, "first"), 0, fake_str(&target, DICT_AT(i) + 0x40000, "__module__"),
                               module ? fake_str(&target, DICT_AT(i) + 0x50000, module) : 0};
    struct fake type = fake_type_new(&target.layout, TYPE_AT(i), "C", FLAG_EXCEPTION | target.layout.flag_heap_type, OBJECT_TYPE_AT);
    fake_put_word(&type, target.layout.type_qualname, fake_str(&target, NAME_AT(i), qualname));
    fake_put_word(&type, target.layout.type_dict, fake_dict(&target, DICT_AT(i), FAKE_KEYS_UNICODE, pairs, 2));
    return object(i, fake_place(&type));
}

/* What an item holds that holds nothing. */
static uintptr_t nothing(void)
{
    return target.layout.minor < 13 ? object(9, NONE_TYPE_AT) : 0;
}

static void item(int i, uintptr_t value, uintptr_t previous)
{
    struct fake made = fake_new(ITEM_AT(i), 16);
    fake_put_word(&made, target.layout.exc_value, value);
    fake_put_word(&made, target.layout.exc_previous, previous);
    fake_place(&made);
}

static enum exceptions_found look(void)
{
    length = 0;
    return exceptions_of_thread(&target, THREAD_AT, name, &length);
}

static void begin(int minor)
{
    target = fake_target_with_containers(minor);
    fake_named_type(&target.layout, NONE_TYPE_AT, "NoneType", 0, OBJECT_TYPE_AT);
    struct fake thread = fake_new(THREAD_AT, 512);
    fake_put_word(&thread, target.layout.thread_exc_info, ITEM_AT(0));
    fake_place(&thread);
}

static void need_name(const char *expected)
{
    ck_assert_int_eq(look(), EXCEPTIONS_ONE);
    ck_assert_uint_eq(length, strlen(expected));
    ck_assert_mem_eq(name, expected, length);
}

START_TEST(nothing_is_handled)
{
    begin(_i);
    item(0, nothing(), 0);
    ck_assert_int_eq(look(), EXCEPTIONS_NONE);
    item(0, nothing(), ITEM_AT(1));
    item(1, nothing(), 0);
    ck_assert_int_eq(look(), EXCEPTIONS_NONE);
}
END_TEST

START_TEST(types_are_called_as_in_tracebacks)
{
    begin(_i);
    item(0, of_static_type(0, "ValueError"), 0);
    need_name("ValueError");
    item(0, of_class(1, "Outer.Own", "app.errors"), 0);
    need_name("app.errors.Outer.Own");
    item(0, of_class(2, "HTTP404;Error", "__main__"), 0);
    need_name("HTTP404\\x3bError");
    item(0, of_class(3, "Exotic", "builtins"), 0);
    need_name("Exotic");
    item(0, of_class(4, "Alone", NULL), 0);
    need_name("Alone");
}
END_TEST

/* The innermost that handles one; a generator that handles nothing has what its caller has. */
START_TEST(the_innermost_of_several)
{
    begin(_i);
    item(0, nothing(), ITEM_AT(1));
    item(1, of_static_type(0, "KeyError"), ITEM_AT(2));
    item(2, of_static_type(1, "OSError"), 0);
    need_name("KeyError");
}
END_TEST

START_TEST(long_names_are_cut_and_stay_apart)
{
    char one[301], other[301];
    begin(_i);
    memset(one, 'x', 300);
    memset(other, 'x', 300);
    one[300] = other[300] = '\0';
    other[299] = 'y';
    item(0, of_class(0, one, one), 0);
    ck_assert_int_eq(look(), EXCEPTIONS_ONE);
    ck_assert_uint_eq(length, EXCEPTION_NAME_MAX);
    char before[EXCEPTION_NAME_MAX];
    memcpy(before, name, sizeof before);
    item(0, of_class(1, other, one), 0);
    ck_assert_int_eq(look(), EXCEPTIONS_ONE);
    ck_assert_uint_eq(length, EXCEPTION_NAME_MAX);
    ck_assert_mem_ne(before, name, sizeof before);
}
END_TEST

START_TEST(what_is_no_list)
{
    begin(_i);
    ck_assert_int_eq(look(), EXCEPTIONS_TORN); /* no item there */
    item(0, object(0, OTHER_TYPE_AT), 0);      /* neither an exception nor None */
    ck_assert_int_eq(look(), EXCEPTIONS_TORN);
    item(0, VALUE_AT(5), 0);
    ck_assert_int_eq(look(), EXCEPTIONS_TORN);
    item(0, object(0, VALUE_AT(5)), 0);
    ck_assert_int_eq(look(), EXCEPTIONS_TORN);
    item(0, nothing(), ITEM_AT(0)); /* for ever */
    ck_assert_int_eq(look(), EXCEPTIONS_TORN);
    item(0, nothing(), ITEM_AT(0) + 4);
    ck_assert_int_eq(look(), EXCEPTIONS_TORN);
    struct fake type = fake_type_new(&target.layout, TYPE_AT(6), "C", FLAG_EXCEPTION | target.layout.flag_heap_type, OBJECT_TYPE_AT);
    item(0, object(1, fake_place(&type)), 0); /* without a name */
    ck_assert_int_eq(look(), EXCEPTIONS_TORN);
    ck_assert_int_eq(exceptions_of_thread(&target, 0, name, &length), EXCEPTIONS_TORN);
}
END_TEST

START_TEST(of_one_generator)
{
    begin(_i);
    struct fake generator = fake_new(ITEM_AT(3), 256);
    fake_put_word(&generator, target.layout.gen_exc_state + target.layout.exc_value, of_static_type(0, "OSError"));
    fake_put_word(&generator, target.layout.gen_exc_state + target.layout.exc_previous, ITEM_AT(7));
    fake_place(&generator);
    ck_assert_int_eq(exceptions_of_generator(&target, ITEM_AT(3), name, &length), EXCEPTIONS_ONE);
    ck_assert_uint_eq(length, 7);
    fake_put_word(&generator, target.layout.gen_exc_state + target.layout.exc_value, nothing());
    ck_assert_int_eq(exceptions_of_generator(&target, ITEM_AT(3), name, &length), EXCEPTIONS_NONE);
    ck_assert_int_eq(exceptions_of_generator(&target, 0, name, &length), EXCEPTIONS_TORN);
}
END_TEST

START_TEST(the_type_of_one_generator)
{
    uintptr_t type = 1;
    begin(_i);
    struct fake generator = fake_new(ITEM_AT(3), 256);
    fake_put_word(&generator, target.layout.gen_exc_state + target.layout.exc_value, of_static_type(0, "OSError"));
    fake_place(&generator);
    ck_assert(exceptions_type_of_generator(&target, ITEM_AT(3), &type));
    ck_assert_uint_eq(type, TYPE_AT(0));
    fake_put_word(&generator, target.layout.gen_exc_state + target.layout.exc_value, nothing());
    ck_assert(exceptions_type_of_generator(&target, ITEM_AT(3), &type));
    ck_assert_uint_eq(type, 0);
    fake_put_word(&generator, target.layout.gen_exc_state + target.layout.exc_value, object(1, OTHER_TYPE_AT));
    ck_assert(!exceptions_type_of_generator(&target, ITEM_AT(3), &type));
    ck_assert(!exceptions_type_of_generator(&target, 0, &type));
}
END_TEST

Suite *suite_exceptions(void)
{
    Suite *suite = suite_create("exceptions");
    TCase *each = tcase_create("each version");
    tcase_add_loop_test(each, nothing_is_handled, FIRST_MINOR, AFTER_LAST_MINOR);
    tcase_add_loop_test(each, types_are_called_as_in_tracebacks, FIRST_MINOR, AFTER_LAST_MINOR);
    tcase_add_loop_test(each, the_innermost_of_several, FIRST_MINOR, AFTER_LAST_MINOR);
    tcase_add_loop_test(each, long_names_are_cut_and_stay_apart, FIRST_MINOR, AFTER_LAST_MINOR);
    tcase_add_loop_test(each, what_is_no_list, FIRST_MINOR, AFTER_LAST_MINOR);
    tcase_add_loop_test(each, of_one_generator, FIRST_MINOR, AFTER_LAST_MINOR);
    tcase_add_loop_test(each, the_type_of_one_generator, FIRST_MINOR, AFTER_LAST_MINOR);
    suite_add_tcase(suite, each);
    return suite;
}
