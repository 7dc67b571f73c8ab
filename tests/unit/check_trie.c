/* SPDX-License-Identifier: MIT
 *
 * Trees are compared as a text, "name:self" a node, one more "." for each level.
 */
#include <check.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "output/trie.h"

static struct frames *frames;
static struct trie *trie;

static void setup(void)
{
    frames = frames_new(false);
    trie = trie_new(frames);
}

static void teardown(void)
{
    trie_free(trie);
    frames_free(frames);
}

static void add(const char *stack, uint64_t count)
{
    trie_add(trie, TRIE_NEW, stack, strlen(stack), count);
}

static uint32_t *ranks_make(void)
{
    uint32_t *sorted = frames_sorted(frames), *ranks = calloc(frames_count(frames) + 1u, sizeof *ranks);
    for (uint32_t rank = 0; rank < frames_count(frames); rank++)
        ranks[sorted[rank]] = rank;
    free(sorted);
    return ranks;
}

static char *show(void)
{
    char *text;
    size_t size, depth = 0;
    FILE *stream = open_memstream(&text, &size);
    uint32_t *ranks = ranks_make();
    struct trie_row *rows = trie_rows(trie, ranks);
    for (size_t at = 0; at < trie_count(trie); at++) {
        depth = depth + 1 - rows[at].up;
        for (size_t level = 1; level < depth; level++)
            putc('.', stream);
        fprintf(stream, "%s:%" PRIu64, frames_text(frames, rows[at].frame).name, rows[at].self[TRIE_NEW]);
        if (rows[at].self[TRIE_BASE])
            fprintf(stream, "/%" PRIu64, rows[at].self[TRIE_BASE]);
        putc(' ', stream);
    }
    fclose(stream);
    free(rows);
    free(ranks);
    return text;
}

static void ck_shows(const char *wanted)
{
    char *got = show();
    ck_assert_str_eq(got, wanted);
    free(got);
}

START_TEST(nothing_is_nothing)
{
    ck_assert_uint_eq(trie_count(trie), 0);
    ck_assert_uint_eq(trie_sum(trie, TRIE_NEW), 0);
    ck_shows("");
}
END_TEST

START_TEST(stacks_share_their_beginnings)
{
    add("a;b;c", 1);
    add("a;b;d", 2);
    add("a;b", 4);
    add("a;b;c", 8);
    add("e", 16);
    ck_assert_uint_eq(trie_sum(trie, TRIE_NEW), 31);
    ck_shows("a:0 .b:4 ..c:9 ..d:2 e:16 ");
}
END_TEST

START_TEST(siblings_are_in_order_whatever_came_first)
{
    add("z;y", 1);
    add("a", 1);
    add("z;b;q", 1);
    add("m", 1);
    ck_shows("a:1 m:1 z:0 .b:0 ..q:1 .y:1 ");
}
END_TEST

/* A name that begins as the one before it is another one. */
START_TEST(what_is_kept_of_the_stack_before_ends_with_a_frame)
{
    add("a;bc;d", 1);
    add("a;b;d", 2);
    add("a;bcd", 4);
    add("a;bc", 8);
    add("a;bc;d", 16);
    add("a;bc;de", 32);
    add("a", 64);
    add("a;bc", 128);
    ck_shows("a:64 .b:0 ..d:2 .bc:136 ..d:17 ..de:32 .bcd:4 ");
}
END_TEST

START_TEST(recursion_is_one_level_each)
{
    add("f;f;f", 1);
    add("f;f", 2);
    ck_shows("f:0 .f:2 ..f:1 ");
}
END_TEST

START_TEST(two_sides_share_nodes)
{
    add("a;b", 1);
    trie_add(trie, TRIE_BASE, "a;b", 3, 5);
    trie_add(trie, TRIE_BASE, "a;c", 3, 7);
    ck_assert_uint_eq(trie_sum(trie, TRIE_NEW), 1);
    ck_assert_uint_eq(trie_sum(trie, TRIE_BASE), 12);
    ck_shows("a:0 .b:1/5 .c:0/7 ");
}
END_TEST

START_TEST(empty_frames_are_frames)
{
    add(";a;", 1);
    add("", 2);
    ck_shows(":2 .a:0 ..:1 ");
}
END_TEST

/* Deep, and with so many nodes that the table grows; sums say whether any is lost. */
START_TEST(large_ones)
{
    uint64_t sum = 0;
    for (int stack = 0; stack < 3000; stack++) {
        char text[4096];
        size_t length = 0;
        for (int depth = 0; depth < 300; depth++)
            length += (size_t)sprintf(text + length, "%s%d", depth ? ";" : "", depth < 280 ? depth : (stack * 7919 + depth) % 5000);
        trie_add(trie, TRIE_NEW, text, length, (uint64_t)stack);
        sum += (uint64_t)stack;
    }
    ck_assert_uint_eq(trie_sum(trie, TRIE_NEW), sum);
    uint32_t *ranks = ranks_make();
    struct trie_row *rows = trie_rows(trie, ranks);
    uint64_t selves = 0;
    size_t depth = 0, deepest = 0;
    for (size_t at = 0; at < trie_count(trie); at++) {
        ck_assert_uint_le(rows[at].up, depth);
        depth = depth + 1 - rows[at].up;
        deepest = depth > deepest ? depth : deepest;
        selves += rows[at].self[TRIE_NEW];
    }
    ck_assert_uint_eq(selves, sum);
    ck_assert_uint_eq(deepest, 300);
    free(rows);
    free(ranks);
}
END_TEST

Suite *suite_trie(void)
{
    Suite *suite = suite_create("trie");
    TCase *tests = tcase_create("trie");
    tcase_add_checked_fixture(tests, setup, teardown);
    tcase_add_test(tests, nothing_is_nothing);
    tcase_add_test(tests, stacks_share_their_beginnings);
    tcase_add_test(tests, siblings_are_in_order_whatever_came_first);
    tcase_add_test(tests, what_is_kept_of_the_stack_before_ends_with_a_frame);
    tcase_add_test(tests, recursion_is_one_level_each);
    tcase_add_test(tests, two_sides_share_nodes);
    tcase_add_test(tests, empty_frames_are_frames);
    tcase_add_test(tests, large_ones);
    suite_add_tcase(suite, tests);
    return suite;
}
