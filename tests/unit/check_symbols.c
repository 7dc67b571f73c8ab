/* SPDX-License-Identifier: MIT
 *
 * Frames as other programs know them, and stacks as they are written for those.
 */
#include <check.h>
#include <stdio.h>
#include <string.h>

#include "output/stacks.h"
#include "output/symbols.h"

static struct frames *frames;

static void setup(void)
{
    frames = frames_new(true);
}

static void teardown(void)
{
    frames_free(frames);
}

static uint32_t add(const char *text)
{
    return frames_add(frames, text, strlen(text));
}

static void is(const struct symbols *symbols, uint32_t frame, const char *name, const char *file, uint32_t line)
{
    struct symbol symbol = symbols_of(symbols, frame);
    struct symbol_function function = symbols_function(symbols, symbol.function);
    ck_assert_str_eq(function.name, name);
    ck_assert_str_eq(function.file, file);
    ck_assert_uint_eq(symbol.line, line);
}

START_TEST(symbols_are_what_was_there_before_it_was_written)
{
    static const struct { const char *frame, *name, *file; uint32_t line; } cases[] = {
        { "f (a.py:7)", "f", "a.py", 7 },
        { "operator (x) (lib\\x20(odd)/a:b.py:8)", "operator (x)", "lib (odd)/a:b.py", 8 },
        { "semi\\x3bcolon\\x5c (c\\x3b.py:4294967295)", "semi;colon\\", "c;.py", 4294967295u },
        { "line\\x0abreak (a.py:1)", "line\\x0abreak", "a.py", 1 }, /* no control characters */
        { "bad \\xff\\xc3 (a.py:1)", "bad \\xff\\xc3", "a.py", 1 },
        { "\xff (\xfe.py:2)", "\\xff", "\\xfe.py", 2 },
        { "gr\\xc3\\xb6\xc3\x9f\x65 (a.py:1)", "gr\xc3\xb6\xc3\x9f\x65", "a.py", 1 },
        { "[ready]", "[ready]", "", 0 },
        { "f (a.py:x)", "f (a.py:x)", "", 0 },
        { "f (a.py:4294967296)", "f (a.py:4294967296)", "", 0 },
        { "", "\"\"", "", 0 },
    };
    uint32_t numbers[sizeof cases / sizeof *cases];
    for (size_t at = 0; at < sizeof cases / sizeof *cases; at++)
        numbers[at] = add(cases[at].frame);
    struct symbols *symbols = symbols_new(frames, true);
    for (size_t at = 0; at < sizeof cases / sizeof *cases; at++)
        is(symbols, numbers[at], cases[at].name, cases[at].file, cases[at].line);
    symbols_free(symbols);
}
END_TEST

START_TEST(lines_of_a_function_are_one_function)
{
    uint32_t one = add("f (a.py:1)"), two = add("f (a.py:2)"), other = add("f (b.py:1)"), marker = add("f");
    struct symbols *symbols = symbols_new(frames, true);
    ck_assert_uint_eq(symbols_functions(symbols), 3);
    ck_assert_uint_eq(symbols_of(symbols, one).function, symbols_of(symbols, two).function);
    ck_assert_uint_ne(symbols_of(symbols, one).function, symbols_of(symbols, other).function);
    ck_assert_uint_ne(symbols_of(symbols, one).function, symbols_of(symbols, marker).function);
    symbols_free(symbols);
}
END_TEST

START_TEST(functions_have_no_line)
{
    struct frames *functions = frames_new(false);
    uint32_t one = frames_add(functions, "f (C:12/a.py:7)", 15);
    ck_assert_uint_eq(frames_add(functions, "f (C:12/a.py:8)", 15), one);
    struct symbols *symbols = symbols_new(functions, false);
    is(symbols, one, "f", "C:12/a.py", 0);
    symbols_free(symbols);
    frames_free(functions);
}
END_TEST

/* ---- stacks --------------------------------------------------------------- */

static void push(struct trie *trie, const char *stack, uint64_t count)
{
    trie_add(trie, TRIE_NEW, stack, strlen(stack), count);
}

/* "a;b 3" of all stacks, a line each. */
static char *told(struct stacks *stacks)
{
    static char text[512];
    size_t length = 0;
    *text = '\0';
    while (stacks_next(stacks)) {
        for (size_t at = 0; at < stacks->depth; at++)
            length += (size_t)sprintf(text + length, "%s%s", at ? ";" : "", frames_text(frames, stacks->frames[at]).name);
        length += (size_t)sprintf(text + length, " %d\n", (int)stacks->count);
    }
    return text;
}

START_TEST(stacks_come_once_in_the_order_of_names_and_again)
{
    static const char wanted[] = "a 5\na;a 1\na;a;a;b 2\na;b;c 3\nc;a 4\n";
    struct trie *trie = trie_new(frames);
    struct stacks stacks;
    push(trie, "c;a", 4);
    push(trie, "a;b;c", 1);
    push(trie, "a;a;a;b", 2);
    push(trie, "a", 5);
    push(trie, "a;b;c", 2);
    push(trie, "a;a", 1);
    push(trie, "b;b", 0); /* nothing of itself */
    stacks_open(&stacks, trie, frames);
    trie_free(trie);
    ck_assert_str_eq(told(&stacks), wanted);
    ck_assert(!stacks_next(&stacks));
    stacks_rewind(&stacks);
    ck_assert_str_eq(told(&stacks), wanted);
    stacks_close(&stacks);
}
END_TEST

START_TEST(no_stacks_are_none)
{
    struct trie *trie = trie_new(frames);
    struct stacks stacks;
    stacks_open(&stacks, trie, frames);
    trie_free(trie);
    ck_assert(!stacks_next(&stacks));
    stacks_rewind(&stacks);
    ck_assert(!stacks_next(&stacks));
    stacks_close(&stacks);
}
END_TEST

Suite *suite_symbols(void)
{
    Suite *suite = suite_create("symbols");
    TCase *tcase = tcase_create("symbols");
    tcase_add_checked_fixture(tcase, setup, teardown);
    tcase_add_test(tcase, symbols_are_what_was_there_before_it_was_written);
    tcase_add_test(tcase, lines_of_a_function_are_one_function);
    tcase_add_test(tcase, functions_have_no_line);
    tcase_add_test(tcase, stacks_come_once_in_the_order_of_names_and_again);
    tcase_add_test(tcase, no_stacks_are_none);
    suite_add_tcase(suite, tcase);
    return suite;
}
