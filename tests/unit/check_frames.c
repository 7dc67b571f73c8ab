/* SPDX-License-Identifier: MIT */
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "output/frames.h"

static struct frames *frames;

static uint32_t add(const char *text)
{
    return frames_add(frames, text, strlen(text));
}

static void ck_text(uint32_t number, const char *name, const char *place)
{
    struct frame_text text = frames_text(frames, number);
    ck_assert_str_eq(text.name, name);
    ck_assert_str_eq(text.place, place);
}

START_TEST(lines_of_a_function_are_one_frame)
{
    frames = frames_new(false);
    uint32_t one = add("f (a.py:1)"), other = add("f (a.py:22)");
    ck_assert_uint_eq(one, other);
    ck_text(one, "f", "a.py");
    ck_assert_uint_ne(add("f (b.py:1)"), one);
    ck_assert_uint_eq(frames_count(frames), 2);
    frames_free(frames);
}
END_TEST

START_TEST(by_line_they_are_two)
{
    frames = frames_new(true);
    uint32_t one = add("f (a.py:1)"), other = add("f (a.py:22)");
    ck_assert_uint_ne(one, other);
    ck_text(one, "f", "a.py:1");
    ck_text(other, "f", "a.py:22");
    frames_free(frames);
}
END_TEST

START_TEST(what_names_no_place_is_kept_as_it_is)
{
    frames = frames_new(false);
    ck_text(add("[ready]"), "[ready]", "");
    ck_text(add(""), "", "");
    ck_text(add("f (x)"), "f (x)", "");
    ck_text(add("g (h) (a (b).py:3)"), "g (h) (a", "b).py"); /* the writer escapes the " (" of a path, and only that */
    frames_free(frames);
}
END_TEST

START_TEST(a_name_and_a_place_are_not_mixed_up)
{
    frames = frames_new(false);
    ck_assert_uint_ne(add("f (a.py:1)"), add("f"));
    ck_assert_uint_ne(add("fa (.py:1)"), add("f (a.py:1)"));
    frames_free(frames);
}
END_TEST

START_TEST(sorted_by_name_then_place)
{
    frames = frames_new(false);
    uint32_t wanted[] = { 0, 0, 0, 0 };
    wanted[3] = add("g (a.py:1)");
    wanted[2] = add("f (b.py:1)");
    wanted[0] = add("[ready]");
    wanted[1] = add("f (a.py:1)");
    uint32_t *sorted = frames_sorted(frames);
    for (int at = 0; at < 4; at++)
        ck_assert_uint_eq(sorted[at], wanted[at]);
    free(sorted);
    frames_free(frames);
}
END_TEST

Suite *suite_frames(void)
{
    Suite *suite = suite_create("frames");
    TCase *tests = tcase_create("frames");
    tcase_add_test(tests, lines_of_a_function_are_one_frame);
    tcase_add_test(tests, by_line_they_are_two);
    tcase_add_test(tests, what_names_no_place_is_kept_as_it_is);
    tcase_add_test(tests, a_name_and_a_place_are_not_mixed_up);
    tcase_add_test(tests, sorted_by_name_then_place);
    suite_add_tcase(suite, tests);
    return suite;
}
