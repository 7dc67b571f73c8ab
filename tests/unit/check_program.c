/* SPDX-License-Identifier: MIT */
#include "preload/program.h"

#include <check.h>
#include <string.h>

/* A command line with '|' between its words. */
static const char *described(const char *words, bool full)
{
    static char text[256];
    char line[256];
    size_t length = strlen(words);
    memcpy(line, words, length + 1);
    for (size_t i = 0; i < length; i++)
        if (line[i] == '|')
            line[i] = '\0';
    line[length + 1] = '\0';
    program_describe(line, length ? length + 1 : 0, full, text, sizeof text);
    return text;
}

START_TEST(the_program_is_named_and_nothing_that_is_given_to_it)
{
    static const struct { const char *words, *shown; } rows[] = {
        {"/usr/bin/python3|app.py|SECRET", "python3 app.py"},
        {"python3", "python3"},
        {"", ""},
        {"python3|-c|SECRET|SECRET", "python3 -c"},
        {"python3|-cSECRET|SECRET", "python3 -c"},
        {"python3|-Ic|SECRET|SECRET", "python3 -c"},
        {"python3|-IScSECRET|SECRET", "python3 -c"},
        {"python3|-m|http.server|SECRET", "python3 -m http.server"},
        {"python3|-mhttp.server|SECRET", "python3 -m http.server"},
        {"python3|-Im|http.server|SECRET", "python3 -m http.server"},
        {"python3|-m", "python3 -m"},
        {"python3|-u|-X|dev|-W|ignore|/srv/app.py|SECRET", "python3 /srv/app.py"},
        {"python3|-Xdev|-Wignore|-uX|dev|app.py|SECRET", "python3 app.py"},
        {"python3|--check-hash-based-pycs|always|app.py|SECRET", "python3 app.py"},
        {"python3|--|-odd.py|SECRET", "python3 -odd.py"},
        {"python3|-|SECRET", "python3 -"},
        {"python3|-EX", "python3"},
        {"python3|-W", "python3"},
        {"/usr/bin/uwsgi|--set|password=SECRET|SECRET", "uwsgi"},
        {"service: SECRETIVE|x", "service: SECRETIVE"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        ck_assert_str_eq(described(rows[i].words, false), rows[i].shown);
}
END_TEST

START_TEST(full_is_all_of_it)
{
    ck_assert_str_eq(described("/usr/bin/python3|-c|pass|x", true), "python3 -c pass x");
    ck_assert_str_eq(described("uwsgi|--http|:80", true), "uwsgi --http :80");
}
END_TEST

START_TEST(a_long_one_is_cut)
{
    char text[12];
    program_describe("python3\0a-long-name.py\0", 23, false, text, sizeof text);
    ck_assert_str_eq(text, "python3 a-l");
}
END_TEST

Suite *suite_program(void)
{
    Suite *suite = suite_create("program");
    TCase *tests = tcase_create("program");
    tcase_add_test(tests, the_program_is_named_and_nothing_that_is_given_to_it);
    tcase_add_test(tests, full_is_all_of_it);
    tcase_add_test(tests, a_long_one_is_cut);
    suite_add_tcase(suite, tests);
    return suite;
}
