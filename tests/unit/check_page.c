/* SPDX-License-Identifier: MIT
 *
 * The object of a page, read back by a JSON parser, for names that mean harm.
 */
#include <check.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "output/page.h"

static struct frames *frames;
static struct trie *trie;
static char *text;

static void setup(void)
{
    frames = frames_new(false);
    trie = trie_new(frames);
}

static void teardown(void)
{
    trie_free(trie);
    frames_free(frames);
    free(text);
    text = NULL;
}

static void add(const char *stack, uint64_t count)
{
    trie_add(trie, TRIE_NEW, stack, strlen(stack), count);
}

static json_t *profile_of(const struct page *page)
{
    size_t size;
    FILE *stream = open_memstream(&text, &size);
    page_write_profile(stream, page);
    fclose(stream);
    json_error_t error;
    json_t *profile = json_loads(text, 0, &error);
    ck_assert_msg(profile != NULL, "line %d: %s", error.line, error.text);
    return profile;
}

static json_t *profile(void)
{
    struct page_metric metric = { "cpu", kind_of("cpu"), trie };
    struct page page = { .title = "<!--<script>", .frames = frames, .metrics = &metric, .metrics_count = 1 };
    return profile_of(&page);
}

static const char *string_in(const json_t *object, const char *key, size_t at)
{
    return json_string_value(json_array_get(json_object_get(object, key), at));
}

static json_int_t number_in(const json_t *object, const char *key, size_t at)
{
    return json_integer_value(json_array_get(json_object_get(object, key), at));
}

START_TEST(no_name_can_end_the_script)
{
    add("</script><script>alert(1)</script> (<!--.py:1);<!--<script> (a\"b\\.py:2)", 1);
    json_t *object = profile();
    ck_assert_ptr_null(strchr(text, '<'));
    ck_assert_str_eq(string_in(object, "names", 0), "<!--<script>");
    ck_assert_str_eq(string_in(object, "names", 1), "</script><script>alert(1)</script>");
    ck_assert_str_eq(string_in(object, "places", number_in(object, "place", 0)), "a\"b\\.py");
    ck_assert_str_eq(json_string_value(json_object_get(object, "title")), "<!--<script>");
    json_decref(object);
}
END_TEST

START_TEST(bytes_that_are_no_text_are_written_out)
{
    add("a\xff\xed\xa0\x80 (\x01.py:1);\xc3\xa9\xe2\x80\xa8\xf0\x9f\x90\x8d", 1);
    json_t *object = profile();
    ck_assert_str_eq(string_in(object, "names", 0), "a\\xff\\xed\\xa0\\x80");
    ck_assert_str_eq(string_in(object, "places", 0), "\\x01.py");
    ck_assert_str_eq(string_in(object, "names", 1), "\xc3\xa9\xe2\x80\xa8\xf0\x9f\x90\x8d");
    json_decref(object);
}
END_TEST

START_TEST(nodes_come_as_three_arrays)
{
    add("run (asyncio/runners.py:9);b (p/y.py:2)", 9007199254740991);
    add("run (asyncio/runners.py:9);a (p/x.py:1)", 2);
    add("[ready]", 3);
    json_t *object = profile(), *metric = json_array_get(json_object_get(object, "metrics"), 0);
    static const struct {
        const char *name;
        json_int_t up, self;
    } wanted[] = { { "[ready]", 0, 3 }, { "run", 1, 0 }, { "a", 0, 2 }, { "b", 1, 9007199254740991 } };
    ck_assert_uint_eq(json_array_size(json_object_get(metric, "up")), 4);
    for (size_t at = 0; at < 4; at++) {
        ck_assert_str_eq(string_in(object, "names", number_in(metric, "frame", at)), wanted[at].name);
        ck_assert_int_eq(number_in(metric, "up", at), wanted[at].up);
        ck_assert_int_eq(number_in(metric, "self", at), wanted[at].self);
    }
    ck_assert_ptr_null(json_object_get(metric, "base"));
    ck_assert_uint_eq(json_array_size(json_object_get(object, "loops")), 1);
    ck_assert_str_eq(string_in(object, "names", number_in(object, "loops", 0)), "run");
    ck_assert_int_eq(number_in(object, "place", 0), -1); /* a marker has none */
    ck_assert_str_eq(string_in(object, "packages", number_in(object, "package", number_in(object, "place", 1))), "p");
    json_decref(object);
}
END_TEST

START_TEST(two_profiles_have_two_sides)
{
    add("a", 1);
    trie_add(trie, TRIE_BASE, "b", 1, 2);
    struct page_metric metric = { "heap", kind_of("heap"), trie };
    struct page page = { .title = "", .new_name = "new", .base_name = "base", .frames = frames, .metrics = &metric, .metrics_count = 1 };
    json_t *object = profile_of(&page), *first = json_array_get(json_object_get(object, "metrics"), 0);
    ck_assert_str_eq(string_in(object, "sides", 0), "new");
    ck_assert_str_eq(string_in(object, "sides", 1), "base");
    ck_assert_int_eq(number_in(first, "self", 0), 1);
    ck_assert_int_eq(number_in(first, "base", 0), 0);
    ck_assert_int_eq(number_in(first, "self", 1), 0);
    ck_assert_int_eq(number_in(first, "base", 1), 2);
    json_decref(object);
}
END_TEST

START_TEST(nothing_is_a_page_too)
{
    struct page page = { .title = "", .nothing = "why", .frames = frames };
    json_t *object = profile_of(&page);
    ck_assert_str_eq(json_string_value(json_object_get(object, "nothing")), "why");
    ck_assert_uint_eq(json_array_size(json_object_get(object, "metrics")), 0);
    json_decref(object);
}
END_TEST

/* A page that cannot be finished leaves what was there. */
START_TEST(a_file_is_replaced_whole_or_not_at_all)
{
    char folder[] = "/tmp/check_page.XXXXXX", path[64];
    ck_assert_ptr_nonnull(mkdtemp(folder));
    snprintf(path, sizeof path, "%s/page", folder);
    struct page page = { .title = "", .frames = frames };
    ck_assert(page_write_file(path, &page));
    struct stat status;
    ck_assert_int_eq(stat(path, &status), 0);
    ck_assert(S_ISREG(status.st_mode));
    unlink(path);
    ck_assert_int_eq(symlink("/dev/full", path), 0); /* not a plain file: not replaced */
    ck_assert_int_eq(page_write_file(path, &page), !page_possible());
    ck_assert_int_eq(lstat(path, &status), 0);
    ck_assert(S_ISLNK(status.st_mode));
    unlink(path);
    ck_assert_int_eq(rmdir(folder), 0); /* nothing left beside it */
    ck_assert(!page_write_file("/nowhere/page", &page));
}
END_TEST

Suite *suite_page(void)
{
    Suite *suite = suite_create("page");
    TCase *tests = tcase_create("page");
    tcase_add_checked_fixture(tests, setup, teardown);
    tcase_add_test(tests, no_name_can_end_the_script);
    tcase_add_test(tests, bytes_that_are_no_text_are_written_out);
    tcase_add_test(tests, nodes_come_as_three_arrays);
    tcase_add_test(tests, two_profiles_have_two_sides);
    tcase_add_test(tests, nothing_is_a_page_too);
    tcase_add_test(tests, a_file_is_replaced_whole_or_not_at_all);
    suite_add_tcase(suite, tests);
    return suite;
}
