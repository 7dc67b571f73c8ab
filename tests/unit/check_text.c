/* SPDX-License-Identifier: MIT
 * text: escapes, cuts and paths, as they stand in the spool. */
#include "sampler/text.h"

#include <check.h>
#include <string.h> /* strlen */

Suite *suite_text(void);

static char out[TEXT_FRAME_MAX + 1];

static const char *name1(const char *latin)
{
    out[text_name(out, TEXT_NAME_MAX, latin, strlen(latin), 1)] = '\0';
    return out;
}

static const char *name4(const uint32_t *characters, size_t length)
{
    out[text_name(out, TEXT_NAME_MAX, characters, length, 4)] = '\0';
    return out;
}

static const char *path1(const char *latin)
{
    out[text_path(out, TEXT_NAME_MAX, latin, strlen(latin), 1)] = '\0';
    return out;
}

START_TEST(plain_names_stay)
{
    ck_assert_str_eq(name1("Class.method.<locals>.<lambda>"), "Class.method.<locals>.<lambda>");
    ck_assert_str_eq(name1(""), "");
    ck_assert_str_eq(name1("a (b) c"), "a (b) c");
}
END_TEST

START_TEST(what_would_break_a_line_is_escaped)
{
    ck_assert_str_eq(name1("a;b\\c\nd\x7f"), "a\\x3bb\\x5cc\\x0ad\\x7f");
    ck_assert_str_eq(name1("\x85"), "\\xc2\\x85");
}
END_TEST

START_TEST(every_kind_becomes_utf8)
{
    const uint16_t two[] = {'x', 0x95a2, 0xe9};
    ck_assert_str_eq(name1("gr\xf6\xdf"), "gr\xc3\xb6\xc3\x9f");
    out[text_name(out, TEXT_NAME_MAX, two, 3, 2)] = '\0';
    ck_assert_str_eq(out, "x\xe9\x96\xa2\xc3\xa9");
    ck_assert_str_eq(name4((const uint32_t[]){0x1f40d, 'y'}, 2), "\xf0\x9f\x90\x8dy");
}
END_TEST

START_TEST(lone_surrogates_are_their_three_bytes)
{
    const uint16_t two[] = {0xdc80, 'a'};
    out[text_name(out, TEXT_NAME_MAX, two, 2, 2)] = '\0';
    ck_assert_str_eq(out, "\\xed\\xb2\\x80a");
    ck_assert_str_eq(name4((const uint32_t[]){0xd800}, 1), "\\xed\\xa0\\x80");
}
END_TEST

START_TEST(what_is_no_character_is_escaped)
{
    ck_assert_str_eq(name4((const uint32_t[]){0x110000}, 1), "\\xf4\\x90\\x80\\x80");
    ck_assert_str_eq(name4((const uint32_t[]){0x7fffffff}, 1), "\\xfd\\xbf\\xbf\\xbf\\xbf\\xbf");
    ck_assert_uint_gt(strlen(name4((const uint32_t[]){0xffffffff}, 1)), 0);
}
END_TEST

START_TEST(a_path_keeps_the_last_split_free)
{
    ck_assert_str_eq(path1("/a (b)/c (d).py"), "/a\\x20(b)/c\\x20(d).py");
    ck_assert_str_eq(path1("/a b/( c.py"), "/a b/( c.py");
    ck_assert_str_eq(path1(" ("), "\\x20(");
    ck_assert_str_eq(path1("a "), "a ");
}
END_TEST

static char long_name[3000];

static size_t fill(size_t length, const char *with)
{
    for (size_t i = 0; i < length; i++)
        long_name[i] = with[i % strlen(with)];
    return text_name(out, TEXT_NAME_MAX, long_name, length, 1);
}

START_TEST(a_thousand_bytes_stay_whole)
{
    ck_assert_uint_eq(fill(1000, "x"), 1000);
    ck_assert_mem_eq(out, long_name, 1000);
}
END_TEST

START_TEST(longer_names_are_cut_and_stay_distinct)
{
    char first[TEXT_NAME_MAX];
    ck_assert_uint_eq(fill(2000, "x"), 1009);
    ck_assert_int_eq(out[1000], '~');
    memcpy(first, out, 1009);
    ck_assert_uint_eq(fill(2001, "x"), 1009);
    ck_assert_mem_eq(first, out, 1001);
    ck_assert_mem_ne(first, out, 1009);
    ck_assert_uint_eq(fill(2000, "x"), 1009);
    ck_assert_mem_eq(first, out, 1009);
}
END_TEST

START_TEST(a_cut_is_between_characters_and_escapes)
{
    ck_assert_uint_eq(fill(600, "\xe9"), 1009); /* two bytes each: 500 fit */
    ck_assert_mem_eq(out + 998, "\xc3\xa9~", 3);
    ck_assert_uint_eq(fill(600, ";x"), 1009); /* five bytes a pair: 200 pairs */
    ck_assert_mem_eq(out + 995, "\\x3bx~", 6);
    ck_assert_uint_eq(fill(999, "x;"), 1009);
    ck_assert_uint_eq(fill(900, "xyz;"), 142 * 7 + 3 + 9); /* seven bytes a group; three plain ones more fit */
}
END_TEST

START_TEST(a_buffer_that_is_too_small_gives_nothing)
{
    ck_assert_uint_eq(text_name(out, 2, "abc", 3, 1), 0);
    ck_assert_uint_eq(text_name(out, 3, "abc", 3, 1), 3);
    ck_assert_uint_eq(text_name(out, 3, ";", 1, 1), 0);
    ck_assert_uint_eq(text_frame(out, 9, "ab", 2, "p.py", 4, 7), 0);
    ck_assert_uint_eq(text_frame(out, 11, "ab", 2, "p.py", 4, 7), 11);
}
END_TEST

START_TEST(a_frame_is_name_path_line)
{
    size_t n = text_frame(out, sizeof out, "Job.run", 7, "app/main.py", 11, 2147483647);
    out[n] = '\0';
    ck_assert_str_eq(out, "Job.run (app/main.py:2147483647)");
    out[text_frame(out, sizeof out, "f", 1, "m", 1, -3)] = '\0';
    ck_assert_str_eq(out, "f (m:0)");
}
END_TEST

static const char *shown(const char *start, const char *path)
{
    struct text_paths paths = {.full = false, .start_directory = start};
    return path + text_shorten(&paths, path, strlen(path));
}

START_TEST(paths_are_shown_short)
{
    ck_assert_str_eq(shown(NULL, "/v/lib/python3.12/site-packages/flask/app.py"), "flask/app.py");
    ck_assert_str_eq(shown(NULL, "/usr/lib/python3/dist-packages/yaml/__init__.py"), "yaml/__init__.py");
    ck_assert_str_eq(shown(NULL, "/usr/lib/python3.11/asyncio/tasks.py"), "asyncio/tasks.py");
    ck_assert_str_eq(shown(NULL, "/usr/lib64/python3.13t/json/decoder.py"), "json/decoder.py");
    ck_assert_str_eq(shown("/home/me/app", "/home/me/app/lib/x.py"), "lib/x.py");
    ck_assert_str_eq(shown("/home/me/app/", "/home/me/app/x.py"), "x.py");
    ck_assert_str_eq(shown("/", "/srv/x.py"), "srv/x.py");
}
END_TEST

START_TEST(other_paths_stay)
{
    ck_assert_str_eq(shown("/home/me/app", "/home/me/application/x.py"), "/home/me/application/x.py");
    ck_assert_str_eq(shown("/home/me/app", "/home/me/app"), "/home/me/app");
    ck_assert_str_eq(shown(NULL, "/opt/python3.12/x.py"), "/opt/python3.12/x.py");
    ck_assert_str_eq(shown("/a", "<frozen importlib._bootstrap>"), "<frozen importlib._bootstrap>");
    ck_assert_str_eq(shown("/a", ""), "");
    ck_assert_str_eq(shown("", "x.py"), "x.py");
    ck_assert_str_eq(shown(NULL, "/x/site-packages/"), "/x/site-packages/");
}
END_TEST

START_TEST(a_start_directory_is_compared_in_its_escaped_form)
{
    ck_assert_str_eq(shown("/a (b)/\xc3\xa9;", "/a\\x20(b)/\xc3\xa9\\x3b/x.py"), "x.py");
    ck_assert_str_eq(shown("/\x80\xff", "/\\xed\\xb2\\x80\\xed\\xb3\\xbf/x.py"), "x.py"); /* bytes that are no UTF-8 */
    ck_assert_str_eq(shown("/\xe9\x96", "/\\xed\\xb3\\xa9\\xed\\xb2\\x96/x.py"), "x.py");   /* cut character */
}
END_TEST

START_TEST(full_paths_stay)
{
    struct text_paths paths = {.full = true, .start_directory = "/usr"};
    ck_assert_uint_eq(text_shorten(&paths, "/usr/lib/python3.11/os.py", 25), 0);
}
END_TEST

/* In pieces of so many characters. */
static const char *folded(const void *characters, size_t length, int kind, size_t piece)
{
    struct text_folding folding;
    text_fold_begin(&folding, out, true);
    for (size_t i = 0; i < length; i += piece)
        text_fold_more(&folding, (const char *)characters + i * (size_t)kind, length - i < piece ? length - i : piece, kind);
    out[text_fold_end(&folding)] = '\0';
    return out;
}

START_TEST(runs_of_digits_are_one)
{
    const uint16_t two[] = {'1', '2', 0x661, 0x662, '3', 0xdc80}; /* only the ten of ASCII are folded */
    for (size_t piece = 1; piece < 12; piece++) {
        ck_assert_str_eq(folded("req-17-of-4", 11, 1, piece), "req-*-of-*");
        ck_assert_str_eq(folded("0123456789", 10, 1, piece), "*");
        ck_assert_str_eq(folded("/:0a9;1", 7, 1, piece), "/:*a*\\x3b*"); /* escapes keep theirs */
        ck_assert_str_eq(folded(two, 6, 2, piece), "*\xd9\xa1\xd9\xa2*\\xed\\xb2\\x80");
        ck_assert_str_eq(folded((const uint32_t[]){'7', 0x1f40d}, 2, 4, piece), "*\xf0\x9f\x90\x8d");
    }
    ck_assert_str_eq(folded("", 0, 1, 1), "");
}
END_TEST

START_TEST(folded_names_are_cut_and_stay_distinct)
{
    char name[1000], first[TEXT_FOLDED_MAX + 1];
    memset(name, 'a', sizeof name);
    ck_assert_uint_eq(strlen(folded(name, TEXT_FOLDED_LONGEST, 1, 32)), TEXT_FOLDED_LONGEST);
    ck_assert_ptr_null(strchr(out, '~'));
    strcpy(first, folded(name, TEXT_FOLDED_LONGEST + 1, 1, 32));
    ck_assert_uint_eq(strlen(first), TEXT_FOLDED_MAX);
    ck_assert_int_eq(first[TEXT_FOLDED_LONGEST], '~');
    ck_assert_str_ne(folded(name, sizeof name, 1, 32), first);
    name[TEXT_FOLDED_LONGEST] = '1';
    strcpy(first, folded(name, sizeof name, 1, 7));
    name[TEXT_FOLDED_LONGEST] = '2'; /* a number, also behind the cut */
    ck_assert_str_eq(folded(name, sizeof name, 1, 32), first);
    memset(name, ';', sizeof name);
    ck_assert_uint_eq(strlen(folded(name, sizeof name, 1, 32)), TEXT_FOLDED_LONGEST / 4 * 4 + 9); /* not within an escape */
}
END_TEST

/* Of two, three and four bytes each, behind as many letters as put the cut within one. */
START_TEST(folded_names_are_cut_between_characters)
{
    const uint32_t wide[] = {0xe9, 0x4e2d, 0x1f40d};
    for (uint32_t i = 0; i < 3; i++)
        for (uint32_t before = 0; before < 4; before++) {
            uint32_t name[200], bytes = i + 2, kept = (TEXT_FOLDED_LONGEST - before) / bytes * bytes + before;
            for (uint32_t j = 0; j < 200; j++)
                name[j] = j < before ? 'a' : wide[i];
            ck_assert_uint_eq(strlen(folded(name, 200, 4, 32)), kept + 9);
            ck_assert_int_eq(out[kept], '~');
            ck_assert_int_ne((unsigned char)out[kept - bytes] & 0xc0, 0x80); /* the last one is whole */
        }
}
END_TEST

Suite *suite_text(void)
{
    const TTest *const tests[] = {
        plain_names_stay, what_would_break_a_line_is_escaped, every_kind_becomes_utf8, lone_surrogates_are_their_three_bytes,
        what_is_no_character_is_escaped, a_path_keeps_the_last_split_free, a_thousand_bytes_stay_whole,
        longer_names_are_cut_and_stay_distinct, a_cut_is_between_characters_and_escapes, a_buffer_that_is_too_small_gives_nothing,
        a_frame_is_name_path_line, paths_are_shown_short, other_paths_stay, a_start_directory_is_compared_in_its_escaped_form,
        full_paths_stay, runs_of_digits_are_one, folded_names_are_cut_and_stay_distinct, folded_names_are_cut_between_characters,
    };
    Suite *suite = suite_create("text");
    TCase *tcase = tcase_create("text");
    for (size_t i = 0; i < sizeof tests / sizeof *tests; i++)
        tcase_add_test(tcase, tests[i]);
    suite_add_tcase(suite, tcase);
    return suite;
}
