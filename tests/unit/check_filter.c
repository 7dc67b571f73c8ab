/* SPDX-License-Identifier: MIT
 *
 * What a pattern fits, and the laws: sums of what is kept and left out together are
 * the whole; hiding changes no sum, and no total of what is not hidden.
 */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "output/filter.h"
#include "output/tally.h"

/* ---- patterns ------------------------------------------------------------- */

#define GET "Session.get (requests/sessions.py:602)"
#define ABSOLUTE "index (/srv/shop/views.py:9)"

static const struct {
    const char *pattern, *frame;
    bool fits;
} patterns[] = {
    { "Session.get", GET, true },
    { "Session.*", GET, true },
    { "*.get", GET, true },
    { "session.get", GET, false }, /* capitals count */
    { "get", GET, false },
    { "Session", GET, false },
    { "Session.[fg]et", GET, true },
    { "Session.?et", GET, true },
    { "requests/sessions.py", GET, true },
    { "requests/*", GET, true },
    { "sessions.py", GET, true },
    { "session?.py", GET, true },
    { "sessions.py:602", GET, false },
    { "ests/sessions.py", GET, false },
    { "requests.sessions.Session.get", GET, true },
    { "requests.*", GET, true },
    { "sessions.Session.get", GET, false },
    { "requests", GET, false },
    { "*", GET, true },
    { "json.dumps", "dumps (json/__init__.py:231)", true },
    { "__init__.dumps", "dumps (__init__.py:231)", true },
    { "asyncio.*", "Redis.execute (redis/asyncio/client.py:7)", false },
    { "inner", "outer.<locals>.inner (app.py:3)", true },
    { "outer.<locals>.inner", "outer.<locals>.inner (app.py:3)", true },
    { "app.outer.*", "outer.<locals>.inner (app.py:3)", true },
    { "outer", "outer.<locals>.inner (app.py:3)", false },
    { "<lambda>", "<lambda> (app.py:3)", true },
    { "/srv/shop/*", ABSOLUTE, true },
    { "views.py", ABSOLUTE, true },
    { "views.index", ABSOLUTE, true },
    { "shop.views.index", ABSOLUTE, true },
    { "srv.*", ABSOLUTE, true },
    { "hop.views.index", ABSOLUTE, false },
    { "json.encoder.JSONEncoder.encode", "JSONEncoder.encode (/usr/lib/python3.11/json/encoder.py:200)", true },
    { "json/encoder.py", "JSONEncoder.encode (/usr/lib/python3.11/json/encoder.py:200)", true },
    { "aiohttp.web.f", "f (/v/lib/python3.12/site-packages/aiohttp/web.py:1)", true },
    { "web.f", "f (/v/lib/python3.12/site-packages/aiohttp/web.py:1)", false },
    { "importlib._bootstrap.f", "f (<frozen importlib._bootstrap>:1)", true },
    { "<string>.f", "f (<string>:1)", true },
    { "<string>", "f (<string>:1)", true },
    { "a.b/c.py", "f (a.b/c.py:1)", true },
    { "a.b.c.f", "f (a.b/c.py:1)", true },
    { ".hidden.f", "f (.hidden:1)", true },
    { "/.f", "f (/:1)", false },
    { "[ready]", "[ready]", true },
    { "[unseen cpu]", "[unseen cpu]", true },
    { "[exception *]", "[exception ValueError]", true },
    { "[exception ?alueError]", "[exception ValueError]", true },
    { "[ready]", "r (a.py:1)", false }, /* no set of characters */
    { "[ready]", "r", false },
    { "[ready]", "ready", false },
    { "[*]", "[ready]", true },
    { "[*]", "f (a.py:1)", false },
    { "[thread pool [[]*]]", "[thread pool [2]]", true },
    { "[thread ?ool*]", "[thread pool [2]]", true },
    { "[thread pool [2]]", "[thread pool [2]]", true },
    { "[a][a]", "aa", true }, /* two sets */
    { "[]", "[]", true },
    { "[]", "[", false },
    { "[", "[", true },
    { "[rx]eady", "ready (a.py:1)", true },
    { "[task [a]]", "[task [a]]", true }, /* stands for itself */
    { "f\\x3b", "f\\x3b (a.py:1)", true },
    { "f*", "f\\x3b\xff (a.py:1)", true },
    { "\xc3\xa9t\xc3\xa9", "\xc3\xa9t\xc3\xa9 (a.py:1)", true },
    { "*/wo\\x20(rk.py", "f (x/wo\\x20(rk.py:1)", true },
    { "frame of another program", "frame of another program", true },
};

START_TEST(what_a_pattern_fits)
{
    bool got = filter_fits(patterns[_i].pattern, patterns[_i].frame, strlen(patterns[_i].frame));
    ck_assert_msg(got == patterns[_i].fits, "%s %s %s", patterns[_i].pattern, got ? "fits" : "does not fit", patterns[_i].frame);
}
END_TEST

/* ---- stacks --------------------------------------------------------------- */

/* What is left; "" where the stack is not kept. */
static const char *left(struct filter *filter, const char *stack)
{
    static char text[256];
    size_t length = strlen(stack);
    if (!filter_stack(filter, &stack, &length, 1))
        return "";
    snprintf(text, sizeof text, "%.*s", (int)length, stack);
    return text;
}

START_TEST(stacks_are_chosen_before_frames_are_hidden)
{
    struct filter *filter = filter_new();
    ck_assert(!filter_is_used(filter));
    ck_assert_str_eq(left(filter, "a;b;c"), "a;b;c");
    ck_assert(filter_add(filter, FILTER_HIDE, "b"));
    ck_assert(filter_is_used(filter));
    filter_free(filter);

    filter = filter_new();
    filter_add(filter, FILTER_ONLY, "b");
    filter_add(filter, FILTER_ONLY, "x");
    filter_add(filter, FILTER_HIDE, "b");
    filter_add(filter, FILTER_HIDE, "[ready]");
    ck_assert_str_eq(left(filter, "a;b;c"), "a;c");
    ck_assert_str_eq(left(filter, "b;b;c;b"), "c");
    ck_assert_str_eq(left(filter, "a;b;[ready]"), "a");
    ck_assert_str_eq(left(filter, "b"), FILTER_HIDDEN);
    ck_assert_str_eq(left(filter, "b;b"), FILTER_HIDDEN);
    ck_assert_str_eq(left(filter, "x;;b;y"), "x;;y"); /* of another program: a frame without a name is one */
    ck_assert_str_eq(left(filter, ";x"), ";x");
    ck_assert_str_eq(left(filter, "a;c"), "");
    ck_assert_uint_eq(filter_take_whole(filter), 8);
    ck_assert_uint_eq(filter_take_whole(filter), 0);
    filter_free(filter);
}
END_TEST

START_TEST(patterns_are_told)
{
    char text[32];
    struct filter *filter = filter_new();
    ck_assert_str_eq(filter_describe(filter, FILTER_ONLY, text, sizeof text), "");
    ck_assert_ptr_null(filter_pattern(filter, FILTER_ONLY, 0));
    ck_assert(filter_option(filter, FILTER_OPTION + FILTER_ONLY, "a*"));
    filter_add(filter, FILTER_ONLY, "b");
    filter_add(filter, FILTER_HIDE, "c");
    ck_assert_str_eq(filter_describe(filter, FILTER_ONLY, text, sizeof text), "a* or b");
    ck_assert_str_eq(filter_describe(filter, FILTER_HIDE, text, sizeof text), "c");
    ck_assert_str_eq(filter_pattern(filter, FILTER_ONLY, 1), "b");
    filter_add(filter, FILTER_ONLY, "a pattern that is longer than the text");
    ck_assert_uint_eq(strlen(filter_describe(filter, FILTER_ONLY, text, sizeof text)), sizeof text - 1);
    filter_free(filter);
}
END_TEST

/* ---- laws ----------------------------------------------------------------- */

#define FUNCTIONS 8
#define STACKS 2000

static void random_stack(char *text, unsigned *seed)
{
    int depth = 1 + rand_r(seed) % 6;
    *text = '\0';
    for (int at = 0; at < depth; at++)
        sprintf(text + strlen(text), "%sf%d (m.py:%d)", at ? ";" : "", rand_r(seed) % FUNCTIONS, 1 + rand_r(seed) % 3);
}

static void add(struct tally *tally, struct filter *filter, const char *stack, uint64_t count)
{
    struct reader_line line = { .metric = "cpu", .stack = stack, .length = strlen(stack), .count = count };
    if (!filter || filter_stack(filter, &line.stack, &line.length, count))
        tally_line(tally, &line);
}

static const struct tally_row *row_of(const struct tally_row *rows, size_t count, const char *name)
{
    for (size_t at = 0; at < count; at++)
        if (!strcmp(rows[at].name, name))
            return &rows[at];
    return NULL;
}

START_TEST(hiding_changes_no_sum_and_no_total_of_others)
{
    unsigned seed = (unsigned)_i + 1;
    struct tally *all = tally_new(TALLY_FUNCTION), *hidden = tally_new(TALLY_FUNCTION), *kept = tally_new(TALLY_FUNCTION);
    struct filter *hide = filter_new(), *only = filter_new();
    filter_add(hide, FILTER_HIDE, "f[0-2]");
    filter_add(only, FILTER_ONLY, "m.f5");
    for (int at = 0; at < STACKS; at++) {
        char text[256];
        random_stack(text, &seed);
        uint64_t count = 1 + (uint64_t)rand_r(&seed) % 1000;
        add(all, NULL, text, count);
        add(hidden, hide, text, count);
        add(kept, only, text, count);
    }
    ck_assert_uint_eq(tally_sum(hidden), tally_sum(all));
    ck_assert_uint_eq(filter_take_whole(hide), tally_sum(all));
    ck_assert_uint_eq(filter_take_whole(only), tally_sum(all));

    const struct tally_row *before, *after;
    size_t before_count = tally_by_total(all, &before), after_count = tally_by_total(hidden, &after);
    ck_assert_uint_eq(before_count, FUNCTIONS);
    ck_assert_uint_eq(after_count, FUNCTIONS - 3 + 1); /* and [hidden] */
    uint64_t selves = 0;
    for (size_t at = 0; at < after_count; at++) {
        const struct tally_row *was = row_of(before, before_count, after[at].name);
        selves += after[at].self;
        ck_assert_int_eq(!was, !strcmp(after[at].name, FILTER_HIDDEN));
        if (!was)
            continue;
        ck_assert_uint_eq(after[at].total, was->total);
        ck_assert_uint_ge(after[at].self, was->self);
    }
    ck_assert_uint_eq(selves, tally_sum(all));

    /* What is kept is what the function has in all, and the function has all of it. */
    uint64_t its = row_of(before, before_count, "f5")->total;
    ck_assert_uint_eq(tally_sum(kept), its);
    size_t kept_count = tally_by_total(kept, &after);
    ck_assert_uint_eq(row_of(after, kept_count, "f5")->total, its);
    tally_free(all);
    tally_free(hidden);
    tally_free(kept);
    filter_free(hide);
    filter_free(only);
}
END_TEST

Suite *suite_filter(void)
{
    Suite *suite = suite_create("filter");
    TCase *tcase = tcase_create("filter");
    tcase_add_loop_test(tcase, what_a_pattern_fits, 0, (int)(sizeof patterns / sizeof *patterns));
    tcase_add_test(tcase, stacks_are_chosen_before_frames_are_hidden);
    tcase_add_test(tcase, patterns_are_told);
    tcase_add_loop_test(tcase, hiding_changes_no_sum_and_no_total_of_others, 0, 20);
    suite_add_tcase(suite, tcase);
    return suite;
}
