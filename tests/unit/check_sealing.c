/* SPDX-License-Identifier: MIT
 *
 * sealing: the compact copies of a window that is over.
 */
#include "tests/unit/spool_fixture.h"

START_TEST(a_sealed_window_is_sorted_and_plain)
{
    struct spool *spool = spool_with(42, 0, true);
    size_t size;
    static const char *const texts[] = {"b", "a;b;c", "a b", "a;b", "a", "a;c", "B"};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        add(texts[i], METRIC_WALL, i + 1);
    ck_assert_int_eq(flush(spool), 0);
    ck_assert_int_eq(seal(spool, 0, false), 0);
    char *text = content(file_name(42, 0, "wall.collapsed"), &size);
    ck_assert_str_eq(text, "B 7\na 5\na b 3\na;b 4\na;b;c 2\na;c 6\nb 1\n");
    free(text);
    ck_assert_uint_eq(mode_of(file_name(42, 0, "wall.collapsed")), 0600);
    ck_assert(!exists(file_name(42, 0, "cpu.collapsed")));
    ck_assert(!exists(file_name(42, 0, "json.live")));
    ck_assert(!exists(file_name(42, 0, "wall.collapsed.live")));
    ck_assert(exists(file_name(42, 1, "json.live")));
    ck_assert_uint_eq(count_names(".tmp"), 0);
    json_t *object = object_of(file_name(42, 0, "json"));
    ck_assert_str_eq(json_string_value(json_object_get(object, "ended")), "window");
    json_decref(object);
    object = object_of(file_name(42, 1, "json.live"));
    ck_assert_int_eq(json_integer_value(json_object_get(object, "window")), 1);
    json_decref(object);
    add("z", METRIC_CPU, 3);
    ck_assert_int_eq(seal(spool, 1, true), 0);
    ck_assert_uint_eq(sum_of(file_name(42, 1, "cpu.collapsed"), "z"), 3);
    ck_assert_uint_eq(count_names(".live"), 0);
    spool_free(spool);
}
END_TEST

START_TEST(a_hundred_thousand_stacks_are_sealed)
{
    struct spool *spool = spool_with(42, 0, true);
    char name[96];
    for (unsigned i = 0; i < 100000; i++) {
        snprintf(name, sizeof name, "main (app.py:1);serve (app.py:20);handler_%u (views.py:7);inner_%u (models.py:%u)", i % 300, i / 300, i % 7);
        add(name, METRIC_CPU, 10);
    }
    uint64_t begin = clock_self();
    ck_assert_int_eq(flush(spool), 0);
    uint64_t appended = clock_self();
    for (unsigned i = 0; i < 100000; i++) {
        snprintf(name, sizeof name, "main (app.py:1);serve (app.py:20);handler_%u (views.py:7);inner_%u (models.py:%u)", i % 300, i / 300, i % 7);
        add(name, METRIC_CPU, 10);
    }
    uint64_t again = clock_self();
    ck_assert_int_eq(flush(spool), 0);
    uint64_t stored = clock_self();
    ck_assert_int_eq(seal(spool, 0, true), 0);
    uint64_t sealed = clock_self();
    printf("spool: 100000 stacks: %lu ns a new line, %lu ns a count, sealed in %lu ms\n", (unsigned long)((appended - begin) / 100000),
           (unsigned long)((stored - again) / 100000), (unsigned long)((sealed - stored) / 1000000));
    fflush(stdout);
    ck_assert_uint_eq(sum_of(file_name(42, 0, "cpu.collapsed"), NULL), 2000000);
    char command[1024];
    snprintf(command, sizeof command, "sed 's/ [0-9]*$//' %s | LC_ALL=C sort -c", file_name(42, 0, "cpu.collapsed"));
    ck_assert_int_eq(system(command), 0);
    spool_free(spool);
}
END_TEST

START_TEST(a_full_heap_is_sealed_all_the_same)
{
    ck_assert_int_eq(mem_init((size_t)3 << 20), 0);
    profile_free(profile);
    profile = profile_new();
    struct spool *spool = spool_with(42, 0, true);
    char name[96];
    for (unsigned i = 0; i < 60000; i++) {
        snprintf(name, sizeof name, "main (app.py:1);a_function_%u (app.py:%u)", i, i);
        add(name, METRIC_CPU, 10);
    }
    ck_assert_uint_gt(profile_overflows(profile), 0);
    ck_assert_int_eq(flush(spool), 0);
    ck_assert_int_eq(seal(spool, 0, true), 0);
    ck_assert_uint_eq(sum_of(file_name(42, 0, "cpu.collapsed"), NULL), 600000);
    spool_free(spool);
}
END_TEST

START_TEST(names_taken_by_what_is_no_file_are_passed_over)
{
    static const char *const taken[] = {"cpu.collapsed.tmp", "wall.collapsed.tmp", "json.tmp", "cpu.collapsed", "wall.collapsed", "json"};
    for (size_t i = 0; i < sizeof taken / sizeof *taken; i++) {
        struct spool *spool = spool_with(42, 0, true);
        add("a;b", METRIC_CPU, 5);
        add("a;c", METRIC_WALL, 6);
        ck_assert_int_eq(flush(spool), 0);
        ck_assert_int_eq(mkdir(file_name(42, 0, taken[i]), 0700), 0);
        ck_assert_int_eq(seal(spool, 0, false), 0);
        ck_assert_int_eq(rmdir(file_name(42, 0, taken[i])), 0);
        ck_assert_uint_eq(sum_of_all(METRIC_CPU, NULL), 5);
        ck_assert_uint_eq(sum_of_all(METRIC_WALL, NULL), 6);
        ck_assert_uint_eq(sum_of(file_name(42, 1, "cpu.collapsed"), NULL), 5);
        ck_assert_uint_eq(count_names(".live"), 1);
        spool_free(spool);
        remove_tree(directory);
    }
}
END_TEST

Suite *suite_sealing(void)
{
    Suite *suite = suite_create("sealing");
    TCase *tcase = tcase_create("sealing");
    tcase_add_checked_fixture(tcase, setup, teardown);
    tcase_set_timeout(tcase, 60);
    tcase_add_test(tcase, a_sealed_window_is_sorted_and_plain);
    tcase_add_test(tcase, a_hundred_thousand_stacks_are_sealed);
    tcase_add_test(tcase, a_full_heap_is_sealed_all_the_same);
    tcase_add_test(tcase, names_taken_by_what_is_no_file_are_passed_over);
    suite_add_tcase(suite, tcase);
    return suite;
}
