/* SPDX-License-Identifier: MIT
 *
 * Spools of several shapes, and what they are cut into.
 */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "output/blocks.h"

Suite *suite_blocks(void);

#define START 1700000000000000ull
#define SECOND 1000000ull

static char directory[64];

static void directory_make(void)
{
    strcpy(directory, "/tmp/check_blocks.XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(directory));
}

static void directory_remove(void)
{
    char command[128];
    snprintf(command, sizeof command, "rm -rf %s", directory);
    ck_assert_int_eq(system(command), 0);
}

static FILE *file(int pid, int window, const char *end)
{
    char path[256];
    snprintf(path, sizeof path, "%s/aprof.h.%d.%llu.%06d.%s", directory, pid, START, window, end);
    FILE *stream = fopen(path, "w");
    ck_assert_ptr_nonnull(stream);
    return stream;
}

/* A minute of a process, of which half is f's; rate: of looks a second of CPU. */
static void window_put(const char *run, int pid, int window, double rate, uint64_t cpu)
{
    FILE *stacks = file(pid, window, "cpu.collapsed"), *metadata = file(pid, window, "json");
    fprintf(stacks, "main (a.py:1);f (a.py:2) %llu\nmain (a.py:1);g (a.py:3) %llu\n", (unsigned long long)cpu / 2,
            (unsigned long long)(cpu - cpu / 2));
    fprintf(metadata, "{\"schema\": 1, \"run\": \"%s\", \"start_us\": %llu, \"end_us\": %llu, \"samples\": 1000000, \"rate\": {\"asked\": %f}}\n", run,
            START + (unsigned long long)window * 60 * SECOND, START + (unsigned long long)(window + 1) * 60 * SECOND, rate);
    fclose(stacks);
    fclose(metadata);
}

static struct noise_side side_read(void)
{
    struct reader *reader = reader_new();
    reader_add(reader, directory);
    reader_open(reader);
    struct quality *quality = quality_new(reader);
    struct tally *tally = tally_new(TALLY_FUNCTION);
    struct noise_side side = blocks_read(reader, quality, "cpu", tally);
    const struct tally_row *rows;
    for (size_t at = 0, count = tally_by_self(tally, &rows); at < count; at++) {
        double cross = rows[at].total_blocks.cross, squares = rows[at].total_blocks.squares;
        ck_assert_double_le(squares, cross);
        ck_assert_double_le(cross, side.squares);
    }
    tally_free(tally);
    quality_free(quality);
    reader_free(reader);
    return side;
}

START_TEST(several_runs_are_the_blocks)
{
    for (int pid = 1; pid <= 6; pid++)
        for (int window = 0; window < 2; window++)
            window_put(pid % 2 ? "odd" : "even", pid, window, 100, SECOND);
    struct noise_side side = side_read();
    ck_assert_int_eq(side.blocks, NOISE_RUNS);
    ck_assert_double_eq_tol(side.count, 2, 0.5);
    ck_assert_double_eq_tol(side.runs, 2, 0.5);
    ck_assert_double_eq_tol(side.squares, 2 * 6e6 * 6e6, 1);
}
END_TEST

START_TEST(windows_of_one_run_are_joined_over_its_processes)
{
    for (int window = 0; window < 10; window++)
        for (int pid = 1; pid <= 3; pid++)
            window_put("one", pid, window, 100, SECOND * (uint64_t)pid);
    struct noise_side side = side_read();
    ck_assert_int_eq(side.blocks, NOISE_WINDOWS);
    ck_assert_double_eq_tol(side.count, 10, 0.5);
    ck_assert_double_eq_tol(side.squares, 10 * 6e6 * 6e6, 1);
    ck_assert_double_eq_tol(side.runs, 1, 0.5);
}
END_TEST

START_TEST(many_windows_are_joined_and_hours_of_nothing_are_none)
{
    for (int window = 0; window < 100; window++)
        window_put("one", 1, window < 50 ? window : window + 1000, 100, SECOND);
    struct noise_side side = side_read();
    ck_assert_int_eq(side.blocks, NOISE_WINDOWS);
    ck_assert_double_eq_tol(side.count, 32, 0.5);
    ck_assert_double_eq_tol(side.whole, 100e6, 1);
}
END_TEST

START_TEST(processes_where_windows_are_few)
{
    for (int pid = 1; pid <= 5; pid++)
        window_put("one", pid, 0, 100, SECOND);
    struct noise_side side = side_read();
    ck_assert_int_eq(side.blocks, NOISE_PROCESSES);
    ck_assert_double_eq_tol(side.count, 5, 0.5);
}
END_TEST

START_TEST(looks_where_there_is_one_of_everything)
{
    window_put("one", 1, 0, 100, 30 * SECOND);
    window_put("one", 1, 1, 1000, 10 * SECOND);
    struct noise_side side = side_read();
    ck_assert_int_eq(side.blocks, NOISE_LOOKS);
    ck_assert_double_eq_tol(side.count, 1, 0.5);
    ck_assert_double_eq_tol(side.looks, 30 * 100 + 10 * 250, 1); /* the kernel's tick bounds the rate of CPU ticks */
}
END_TEST

/* A process that did nothing is not a block that shows no variance. */
START_TEST(a_run_without_any_of_it_is_no_block)
{
    window_put("one", 1, 0, 100, SECOND);
    window_put("two", 2, 0, 100, 0);
    window_put("three", 3, 0, 100, SECOND);
    struct noise_side side = side_read();
    ck_assert_int_eq(side.blocks, NOISE_RUNS);
    ck_assert_double_eq_tol(side.count, 2, 0.5);
    ck_assert_double_eq_tol(side.runs, 2, 0.5);
}
END_TEST

Suite *suite_blocks(void)
{
    Suite *suite = suite_create("blocks");
    TCase *shapes = tcase_create("shapes");
    tcase_add_checked_fixture(shapes, directory_make, directory_remove);
    tcase_set_timeout(shapes, 60);
    tcase_add_test(shapes, several_runs_are_the_blocks);
    tcase_add_test(shapes, windows_of_one_run_are_joined_over_its_processes);
    tcase_add_test(shapes, many_windows_are_joined_and_hours_of_nothing_are_none);
    tcase_add_test(shapes, processes_where_windows_are_few);
    tcase_add_test(shapes, looks_where_there_is_one_of_everything);
    tcase_add_test(shapes, a_run_without_any_of_it_is_no_block);
    suite_add_tcase(suite, shapes);
    return suite;
}
