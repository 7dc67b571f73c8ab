/* SPDX-License-Identifier: MIT
 *
 * Units of the reader programs: names, human, tally, and the reader against
 * directories as a running, a killed and a hostile writer leave them. The last
 * test reads while a writer opens and seals windows as fast as it can.
 */
#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h> /* flock */
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "output/human.h"
#include "output/names.h"
#include "output/quality.h"
#include "output/reader.h"
#include "output/tally.h"

#define STEM "aprof.h.7.1000."

static char directory[64];

static void directory_make(void)
{
    strcpy(directory, "/tmp/check_reader.XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(directory));
}

static void directory_remove(void)
{
    char command[128];
    snprintf(command, sizeof command, "rm -rf %s", directory);
    ck_assert_int_eq(system(command), 0);
}

static const char *in(const char *name)
{
    static char paths[4][160];
    static int next;
    char *path = paths[next++ % 4];
    snprintf(path, sizeof paths[0], "%s/%s", directory, name);
    return path;
}

static void put_bytes(const char *name, const char *bytes, size_t length)
{
    FILE *file = fopen(in(name), "w");
    ck_assert_ptr_nonnull(file);
    ck_assert_uint_eq(fwrite(bytes, 1, length, file), length);
    fclose(file);
}

static void put(const char *name, const char *text)
{
    put_bytes(name, text, strlen(text));
}

/* Nobody has renewed it for a minute: the process behind it is dead. */
static void make_old(const char *name)
{
    struct timespec times[2];
    clock_gettime(CLOCK_REALTIME, &times[0]);
    times[0].tv_sec -= 60;
    times[1] = times[0];
    ck_assert_int_eq(utimensat(AT_FDCWD, in(name), times, 0), 0);
}

struct seen {
    uint64_t lines, sum;
    char last[256];
};

static int see(void *context, const struct reader_line *line)
{
    struct seen *seen = context;
    seen->lines++;
    seen->sum += line->count;
    snprintf(seen->last, sizeof seen->last, "%.*s", (int)line->length, line->stack);
    return 0;
}

static struct reader *reader_at(const char *path)
{
    struct reader *reader = reader_new();
    reader_add(reader, path);
    reader_open(reader);
    return reader;
}

static struct seen read_all(struct reader *reader, const char *metric)
{
    struct seen seen = { 0 };
    ck_assert_int_eq(reader_each(reader, metric, see, &seen), 0);
    return seen;
}

static struct seen read_directory(const char *metric)
{
    struct reader *reader = reader_at(directory);
    struct seen seen = read_all(reader, metric);
    ck_assert_uint_eq(reader_failures(reader), 0);
    reader_free(reader);
    return seen;
}

/* ---- names, human --------------------------------------------------------- */

START_TEST(names_keep_numbers_while_growing)
{
    struct names *names = names_new();
    char text[32];
    const char *first = names_text(names, names_add(names, "first", 5), NULL);
    for (int at = 1; at < 100000; at++)
        ck_assert_uint_eq(names_add(names, text, (size_t)sprintf(text, "frame %d", at)), (uint32_t)at);
    ck_assert_uint_eq(names_add(names, "frame 77", 8), 77);
    ck_assert_uint_eq(names_find(names, "frame 99999", 11), 99999);
    ck_assert_uint_eq(names_find(names, "frame 100000", 12), NAMES_NONE);
    ck_assert_str_eq(first, "first");
    ck_assert_ptr_eq(first, names_text(names, 0, NULL));
    ck_assert_uint_ne(names_add(names, "a\0b", 3), names_add(names, "a\0c", 3));
    names_free(names);
}
END_TEST

START_TEST(human_rounds_into_the_next_unit)
{
    static const struct { uint64_t us; const char *text; } cases[] = {
        { 0, "0 us" }, { 999, "999 us" }, { 1000, "1.00 ms" }, { 9994, "9.99 ms" }, { 9996, "10.0 ms" },
        { 999499, "999 ms" }, { 999600, "1.00 s" }, { 119999999, "120 s" }, { 120000000, "2.00 min" }, { 7200000000, "2.00 h" },
    };
    char buffer[HUMAN_SIZE];
    for (size_t at = 0; at < sizeof cases / sizeof *cases; at++)
        ck_assert_str_eq(human_time(buffer, cases[at].us), cases[at].text);
    ck_assert_str_eq(human_bytes(buffer, 1023), "1023 B");
    ck_assert_str_eq(human_bytes(buffer, 1536), "1.50 KiB");
    ck_assert_str_eq(human_share(buffer, 1, 1000000), "<0.1%");
    ck_assert_str_eq(human_share(buffer, 0, 0), "-");
    ck_assert_str_eq(human_time(buffer, UINT64_MAX), "5124095576 h");
}
END_TEST

static void text_is(const char *from, size_t length, int columns, bool tail, const char *expected)
{
    char *text = human_text(from, length, columns, tail);
    ck_assert_str_eq(text, expected);
    free(text);
}

START_TEST(human_text_cuts_between_characters)
{
    text_is("abcdef", 6, 6, false, "abcdef");
    text_is("abcdefg", 7, 6, false, "abc...");
    text_is("abcdefg", 7, 6, true, "...efg");
    text_is("caf\xc3\xa9t\xc3\xa9ria", 11, 7, false, "caf\xc3\xa9...");
    text_is("a\x1b[1m\xff\xc3", 7, 0, false, "a\\x1b[1m\\xff\\xc3");
    text_is("\xc2\x9b", 2, 0, false, "\\xc2\\x9b"); /* an escape sequence's start in one character */
    text_is("\xed\xa0\x80\xc0\xaf", 5, 0, false, "\\xed\\xa0\\x80\\xc0\\xaf");
    text_is("x\0y", 3, 0, false, "x\\x00y");
    text_is("a\xe2\x80\xae" "b", 5, 0, false, "a\\xe2\\x80\\xae" "b"); /* the rest from right to left */
}
END_TEST

/* ---- reader --------------------------------------------------------------- */

START_TEST(sealed_wins_file_by_file)
{
    put(STEM "000000.cpu.collapsed", "sealed (a.py:1) 10\n");
    put(STEM "000000.cpu.collapsed.live", "live (a.py:1) 00000009\n");
    put(STEM "000000.wall.collapsed.live", "live (a.py:1) 00000020\n");
    put(STEM "000000.json.live", "{}");
    ck_assert_uint_eq(read_directory("cpu").sum, 10);
    ck_assert_uint_eq(read_directory("wall").sum, 20);
}
END_TEST

START_TEST(live_is_read_up_to_its_last_newline)
{
    put(STEM "000000.cpu.collapsed.live", "a (a.py:1) 00000001\na (a.py:1) 99999999\nb (a.py:2) 000000");
    struct reader *reader = reader_at(directory);
    struct seen seen = read_all(reader, "cpu");
    ck_assert_uint_eq(seen.lines, 2);
    ck_assert_uint_eq(seen.sum, 100000000);
    ck_assert_uint_eq(reader_counts(reader)->tails, 1);
    ck_assert_uint_eq(reader_counts(reader)->lines_bad, 0);
    reader_free(reader);
}
END_TEST

START_TEST(bad_lines_are_left_out_and_counted)
{
    static const char bytes[] = "good 1\n\n5\n 5\nno count\nnul\0in 5\nbig 18446744073709551616\nbig 18446744073709551615\nend 2 \n";
    put_bytes(STEM "000000.cpu.collapsed", bytes, sizeof bytes - 1);
    struct reader *reader = reader_at(directory);
    ck_assert_uint_eq(read_all(reader, "cpu").lines, 1);
    ck_assert_uint_eq(reader_counts(reader)->lines_bad, 8);
    ck_assert_uint_eq(reader_failures(reader), 0);
    reader_free(reader);
}
END_TEST

/* Walked as a whole, window by window, and again. */
START_TEST(sums_have_63_bits)
{
    put(STEM "000000.cpu.collapsed", "a 9223372036854775000\nb 18446744073709551615\nc 7\n");
    put(STEM "000001.cpu.collapsed", "a 9223372036854775807\n");
    put(STEM "000002.cpu.collapsed", "a 800\nb 1\n");
    put(STEM "000002.wall.collapsed", "a 5\n");
    struct reader *reader = reader_at(directory);
    for (int again = 0; again < 2; again++) {
        struct seen seen = read_all(reader, "cpu");
        ck_assert_uint_eq(seen.sum, INT64_MAX);
        ck_assert_uint_eq(seen.lines, 3);
        seen = (struct seen){ 0 };
        for (uint32_t at = reader_windows(reader); at-- > 0;)
            reader_window_each(reader, at, "cpu", see, &seen);
        ck_assert_uint_eq(seen.sum, INT64_MAX);
        ck_assert_uint_eq(seen.lines, 3);
    }
    ck_assert_uint_eq(read_all(reader, "wall").sum, 5);
    ck_assert_uint_eq(reader_counts(reader)->lines_bad, 4 * 3);
    ck_assert_uint_eq(reader_failures(reader), 0);
    reader_free(reader);
}
END_TEST

START_TEST(line_longer_than_the_buffer)
{
    size_t length = 5 << 20;
    char *text = malloc(length + 64);
    memset(text, 'x', length);
    size_t whole = length + (size_t)sprintf(text + length, " 7\nafter 1\n");
    put_bytes(STEM "000000.cpu.collapsed", text, whole);
    free(text);
    struct seen seen = read_directory("cpu");
    ck_assert_uint_eq(seen.sum, 8);
    ck_assert_str_eq(seen.last, "after");
}
END_TEST

START_TEST(live_sealed_after_the_listing_is_found_again)
{
    put(STEM "000000.json.live", "{}");
    put(STEM "000000.cpu.collapsed.live", "a (a.py:1) 00000005\n");
    struct reader *reader = reader_at(directory);
    put(STEM "000000.cpu.collapsed", "a (a.py:1) 6\n");
    ck_assert_int_eq(unlink(in(STEM "000000.cpu.collapsed.live")), 0);
    ck_assert_uint_eq(read_all(reader, "cpu").sum, 6);
    ck_assert_uint_eq(reader_failures(reader), 0);
    reader_free(reader);

    reader = reader_new();
    reader_add(reader, in(STEM "000000.cpu.collapsed.live")); /* as a shell's pattern named it before */
    reader_open(reader);
    ck_assert_uint_eq(read_all(reader, "cpu").sum, 6);
    ck_assert_uint_eq(reader_failures(reader), 0);
    reader_free(reader);
}
END_TEST

/* Between the listing and the look at the metadata: its process lives on in another window. */
START_TEST(sealed_after_the_listing_is_not_killed)
{
    put(STEM "000000.json.live", "{\"ended\": \"open\"}");
    put(STEM "000000.cpu.collapsed.live", "a (a.py:1) 00000005\n");
    struct reader *reader = reader_new();
    reader_add(reader, directory);
    put(STEM "000001.json.live", "{\"ended\": \"open\"}");
    put(STEM "000001.cpu.collapsed.live", "a (a.py:1) 00000007\n");
    put(STEM "000000.cpu.collapsed", "a (a.py:1) 6\n");
    put(STEM "000000.json", "{\"ended\": \"window\"}");
    ck_assert_int_eq(unlink(in(STEM "000000.cpu.collapsed.live")) | unlink(in(STEM "000000.json.live")), 0);
    reader_open(reader);
    ck_assert_uint_eq(reader_windows(reader), 2);
    ck_assert_int_eq(reader_window(reader, 0)->state, READER_SEALED);
    ck_assert_int_eq(reader_window(reader, 1)->state, READER_OPEN);
    ck_assert_uint_eq(read_all(reader, "cpu").sum, 13);
    struct quality *quality = quality_new(reader);
    ck_assert_uint_eq(quality->running, 1);
    ck_assert_uint_eq(quality->killed, 0);
    quality_free(quality);
    reader_free(reader);
}
END_TEST

START_TEST(evicted_is_counted_and_no_failure)
{
    put(STEM "000000.cpu.collapsed", "a (a.py:1) 5\n");
    struct reader *reader = reader_at(directory);
    ck_assert_int_eq(unlink(in(STEM "000000.cpu.collapsed")), 0);
    ck_assert_uint_eq(read_all(reader, "cpu").lines, 0);
    ck_assert_uint_eq(reader_counts(reader)->gone, 1);
    ck_assert_uint_eq(reader_failures(reader), 0);
    reader_free(reader);
}
END_TEST

static enum reader_state state_now(void)
{
    struct reader *reader = reader_at(directory);
    enum reader_state state = reader_window(reader, 0)->state;
    reader_free(reader);
    return state;
}

START_TEST(the_lock_tells_who_is_alive)
{
    put(STEM "000000.cpu.collapsed.live", "a (a.py:1) 00000005\n");
    ck_assert_int_eq(state_now(), READER_DEAD);
    put(STEM "000000.json.live", "{\"ended\": \"open\"}");
    ck_assert_int_eq(state_now(), READER_OPEN); /* fresh */
    make_old(STEM "000000.json.live");
    ck_assert_int_eq(state_now(), READER_DEAD);
    int owner = open(in(STEM "000000.json.live"), O_RDONLY);
    ck_assert_int_eq(flock(owner, LOCK_EX), 0);
    ck_assert_int_eq(state_now(), READER_OPEN);
    close(owner);
    put(STEM "000000.json.live", "{\"paused\": true}");
    make_old(STEM "000000.json.live");
    ck_assert_int_eq(state_now(), READER_OPEN);
    put(STEM "000000.cpu.collapsed", "a (a.py:1) 5\n");
    put(STEM "000000.json", "{\"ended\": \"exit\"}");
    ck_assert_int_eq(state_now(), READER_SEALED);
}
END_TEST

static void put_life(long pid, unsigned long namespace, const char *boot)
{
    char text[256];
    snprintf(text, sizeof text, "{\"ended\": \"open\", \"pid\": %ld, \"pid_namespace\": %lu, \"boot\": \"%s\"}", pid, namespace, boot);
    put(STEM "000000.json.live", text);
}

START_TEST(a_pid_that_is_gone_needs_no_wait)
{
    struct stat own;
    char boot[40] = "";
    FILE *file = fopen("/proc/sys/kernel/random/boot_id", "r");
    ck_assert(file && fscanf(file, "%39s", boot) == 1);
    fclose(file);
    ck_assert_int_eq(stat("/proc/self/ns/pid", &own), 0);
    pid_t child = fork();
    if (child == 0)
        _exit(0);
    ck_assert_int_eq(waitpid(child, NULL, 0), child);

    put(STEM "000000.cpu.collapsed.live", "a (a.py:1) 00000005\n");
    put_life(child, own.st_ino, boot);
    ck_assert_int_eq(state_now(), READER_DEAD);
    put_life(getpid(), own.st_ino, boot);
    ck_assert_int_eq(state_now(), READER_OPEN);
    put_life(child, own.st_ino + 1, boot); /* another container's */
    ck_assert_int_eq(state_now(), READER_OPEN);
    put_life(child, own.st_ino, "another");
    ck_assert_int_eq(state_now(), READER_OPEN);
}
END_TEST

START_TEST(metadata_that_cannot_be_parsed_costs_no_stack)
{
    put(STEM "000000.json.live", "{\"schema\": 1, \"pid\"");
    put(STEM "000000.cpu.collapsed.live", "a (a.py:1) 00000005\n");
    struct reader *reader = reader_at(directory);
    ck_assert_ptr_null(reader_window(reader, 0)->metadata);
    ck_assert_uint_eq(read_all(reader, "cpu").sum, 5);
    ck_assert_uint_eq(reader_failures(reader), 0);
    reader_free(reader);
}
END_TEST

START_TEST(windows_come_by_process_and_number)
{
    put("aprof.b.9.500.000010.cpu.collapsed", "a 1\n");
    put("aprof.b.9.500.000002.cpu.collapsed", "a 1\n");
    put("aprof.a_b.3.2000.000000.cpu.collapsed", "a 1\n");
    put("aprof.b.9.2000.000000.cpu.collapsed", "a 1\n"); /* the pid came round again */
    struct reader *reader = reader_at(directory);
    ck_assert_uint_eq(reader_processes(reader), 3);
    static const uint64_t numbers[] = { 2, 10, 0, 0 };
    static const uint32_t processes[] = { 0, 0, 1, 2 };
    for (uint32_t at = 0; at < 4; at++) {
        ck_assert_uint_eq(reader_window(reader, at)->number, numbers[at]);
        ck_assert_uint_eq(reader_window(reader, at)->process, processes[at]);
    }
    reader_free(reader);
}
END_TEST

START_TEST(what_is_not_ours_is_left_alone)
{
    put("aprof.h.7.1000.000000.cpu.collapsed.tmp", "a 1\n");
    put("aprof.h.7.1000.00000.cpu.collapsed", "a 1\n");
    put("aprof.h.x.1000.000000.cpu.collapsed", "a 1\n");
    put("other.collapsed", "a 1\n");
    put(".gitignore", "*\n");
    struct reader *reader = reader_at(directory);
    ck_assert_uint_eq(reader_windows(reader), 0);
    ck_assert_uint_eq(reader_failures(reader), 0);
    ck_assert_ptr_null(reader_metric(reader, 0));
    reader_free(reader);
}
END_TEST

START_TEST(fifo_and_folder_of_our_name_do_not_hold_us)
{
    ck_assert_int_eq(mkfifo(in(STEM "000000.cpu.collapsed"), 0600), 0);
    ck_assert_int_eq(mkdir(in(STEM "000001.cpu.collapsed"), 0700), 0);
    put(STEM "000002.cpu.collapsed", "a 1\n");
    struct reader *reader = reader_at(directory);
    ck_assert_uint_eq(read_all(reader, "cpu").sum, 1);
    ck_assert_uint_eq(reader_failures(reader), 2);
    reader_free(reader);
}
END_TEST

START_TEST(a_level_is_read_from_the_last_window_only)
{
    put("aprof.h.7.1000.000000.heap.collapsed", "a 100\n");
    put("aprof.h.7.1000.000001.heap.collapsed", "a 30\n");
    put("aprof.h.8.1000.000000.heap.collapsed", "a 4\n");
    put("aprof.h.7.1000.000000.alloc.collapsed", "a 100\n");
    put("aprof.h.7.1000.000001.alloc.collapsed", "a 30\n");
    ck_assert_uint_eq(read_directory("heap").sum, 34);
    ck_assert_uint_eq(read_directory("alloc").sum, 130);
}
END_TEST

START_TEST(copies_of_a_window_are_read_once)
{
    put(STEM "000000.cpu.collapsed", "a 5\n");
    ck_assert_int_eq(mkdir(in("copy"), 0700), 0);
    put("copy/" STEM "000000.cpu.collapsed", "a 5\n");
    struct reader *reader = reader_new();
    reader_add(reader, directory);
    reader_add(reader, directory);
    reader_add(reader, in("copy"));
    reader_open(reader);
    ck_assert_uint_eq(read_all(reader, "cpu").sum, 5);
    ck_assert_uint_eq(reader_counts(reader)->repeated, 1);
    reader_free(reader);
}
END_TEST

START_TEST(recursion_counts_once_a_stack)
{
    put(STEM "000000.cpu.collapsed", "m (a.py:1);f (a.py:2);f (a.py:3);f (a.py:2) 10\nm (a.py:1);f (a.py:2) 1\nm (a.py:9);[ready] 2\n");
    struct reader *reader = reader_at(directory);
    struct tally *tally = tally_new(TALLY_FUNCTION);
    ck_assert_int_eq(reader_each(reader, "cpu", tally_line, tally), 0);
    const struct tally_row *rows;
    ck_assert_uint_eq(tally_by_total(tally, &rows), 3);
    ck_assert_str_eq(rows[0].name, "m");
    ck_assert_str_eq(rows[0].place, "a.py");
    ck_assert_uint_eq(rows[0].total, 13);
    ck_assert_uint_eq(rows[0].self, 0);
    ck_assert_uint_eq(rows[1].total, 11);
    ck_assert_uint_eq(rows[1].self, 11);
    ck_assert_str_eq(rows[2].name, "[ready]");
    ck_assert_uint_eq(tally_by_self(tally, &rows), 2);
    tally_free(tally);

    tally = tally_new(TALLY_LINE);
    ck_assert_int_eq(reader_each(reader, "cpu", tally_line, tally), 0);
    ck_assert_uint_eq(tally_by_self(tally, &rows), 2);
    ck_assert_str_eq(rows[0].place, "a.py:2");
    ck_assert_uint_eq(rows[0].self, 11);
    tally_free(tally);
    reader_free(reader);
}
END_TEST

START_TEST(stacks_differ_by_functions_not_by_lines)
{
    put(STEM "000000.task.collapsed", "m (a.py:1);f (a.py:2);g (a.py:3) 10\nm (a.py:1);f (a.py:9);g (a.py:4) 5\nm (a.py:1);g (a.py:3) 7\n"
                                      "m (a.py:1);f (b.py:2);g (a.py:3) 2\nm (a.py:1) 2\n");
    struct reader *reader = reader_at(directory);
    struct tally *tally = tally_new(TALLY_STACK);
    ck_assert_int_eq(reader_each(reader, "task", tally_line, tally), 0);
    ck_assert_uint_eq(tally_sum(tally), 26);
    const struct tally_row *rows;
    ck_assert_uint_eq(tally_by_self(tally, &rows), 4);
    ck_assert_uint_eq(rows[0].self, 15);
    ck_assert_uint_eq(rows[0].total, 15);
    ck_assert_uint_eq(rows[0].depth, 3);
    ck_assert_str_eq(tally_frame(tally, &rows[0], 0).name, "m");
    ck_assert_str_eq(tally_frame(tally, &rows[0], 1).name, "f");
    ck_assert_str_eq(tally_frame(tally, &rows[0], 1).place, "a.py");
    ck_assert_str_eq(tally_frame(tally, &rows[0], 2).name, "g");
    ck_assert_str_eq(rows[0].name, "g");
    ck_assert_uint_eq(rows[1].self, 7);
    ck_assert_uint_eq(rows[1].depth, 2);
    ck_assert_uint_eq(rows[2].depth, 1); /* of equal ones what is a part of the other comes first */
    ck_assert_str_eq(tally_frame(tally, &rows[3], 1).place, "b.py");
    tally_free(tally);
    reader_free(reader);
}
END_TEST

START_TEST(quality_sums_ticks_over_tasks)
{
    put(STEM "000000.json", "{\"tasks_peak\": 9, \"task_ticks\": {\"read\": 5, \"repeated\": 1, \"tasks\": 40, \"postponed\": 2, \"cpu_us\": 7}}");
    put(STEM "000001.json", "{\"tasks_peak\": 4, \"task_ticks\": {\"read\": 6, \"repeated\": 0, \"tasks\": 10, \"postponed\": 1, \"cpu_us\": 3}}");
    put(STEM "000002.json", "{\"tasks_peak\": []}"); /* of a library that does not say */
    put(STEM "000003.json", "{\"task_ticks\": [3], \"tasks_peak\": null}");
    struct reader *reader = reader_at(directory);
    struct quality *quality = quality_new(reader);
    ck_assert_uint_eq(quality->tasks_peak, 9);
    ck_assert_uint_eq(quality->task_ticks.read, 11);
    ck_assert_uint_eq(quality->task_ticks.repeated, 1);
    ck_assert_uint_eq(quality->task_ticks.tasks, 50);
    ck_assert_uint_eq(quality->task_ticks.postponed, 3);
    ck_assert_uint_eq(quality->task_ticks.cpu_us, 10);
    ck_assert_double_eq(quality->processes[0].tasks_peak, 9);
    quality_free(quality);
    reader_free(reader);
}
END_TEST

START_TEST(quality_sums_readings_of_threads)
{
    put(STEM "000000.json", "{\"threads_peak\": 300, \"thread_reads\": {\"taken\": 600, \"left\": 2400}}");
    put(STEM "000001.json", "{\"threads_peak\": 70, \"thread_reads\": {\"taken\": 35, \"left\": 35}}");
    put(STEM "000002.json", "{\"threads_peak\": 8}"); /* all were read */
    put(STEM "000003.json", "{\"thread_reads\": 7}");
    struct reader *reader = reader_at(directory);
    struct quality *quality = quality_new(reader);
    ck_assert_uint_eq(quality->threads_peak, 300);
    ck_assert_uint_eq(quality->thread_reads.taken, 635);
    ck_assert_uint_eq(quality->thread_reads.left, 2435);
    quality_free(quality);
    reader_free(reader);
}
END_TEST

START_TEST(quality_sums_the_tasks_of_loops_and_keeps_the_longest_stand_and_step)
{
    put(STEM "000000.json", "{\"loops\": [{\"thread\": 3, \"idle_us\": 5, \"busy_us\": 6, \"stood_us\": 70, \"stood_in\": \"a\", \"step_least_us\": 80, \"step_most_us\": 90, \"step_in\": \"c\", \"steps_unknown\": 2, \"counted_us\": 10,"
                            "\"pending_us\": 40, \"pending_peak\": 9, \"ready_us\": 3, \"ready_peak\": 1}]}");
    put(STEM "000001.json", "{\"loops\": [{\"thread\": 3, \"stood_us\": 60, \"stood_in\": \"b\", \"step_least_us\": 79, \"step_most_us\": 99, \"steps_unknown\": 1, \"counted_us\": 20, \"pending_us\": 2, \"pending_peak\": 8,"
                            "\"ready_us\": 1, \"ready_peak\": 2}, {\"thread\": 4, \"stood_us\": \"x\", \"stood_in\": 5}]}");
    struct reader *reader = reader_at(directory);
    struct quality *quality = quality_new(reader);
    ck_assert_uint_eq(quality->loops_count, 2);
    ck_assert_uint_eq(quality->loops[0].stood_us, 70);
    ck_assert_str_eq(quality->loops[0].stood_in, "a");
    ck_assert_uint_eq(quality->loops[0].step_least_us, 80);
    ck_assert_uint_eq(quality->loops[0].step_most_us, 90);
    ck_assert_str_eq(quality->loops[0].step_in, "c");
    ck_assert_uint_eq(quality->loops[0].steps_unknown, 3);
    ck_assert_uint_eq(quality->loops[0].counted_us, 30);
    ck_assert_uint_eq(quality->loops[0].pending_us, 42);
    ck_assert_uint_eq(quality->loops[0].pending_peak, 9);
    ck_assert_uint_eq(quality->loops[0].ready_us, 4);
    ck_assert_uint_eq(quality->loops[0].ready_peak, 2);
    ck_assert_uint_eq(quality->loops[1].stood_us, 0);
    ck_assert_ptr_null(quality->loops[1].stood_in);
    quality_free(quality);
    reader_free(reader);
}
END_TEST

START_TEST(quality_survives_metadata_of_wrong_types)
{
    put(STEM "000000.json", "{\"schema\": 1, \"ticks\": [], \"dropped\": {\"torn\": \"x\", \"new\": 2, \"creator_unknown\": 5}, \"loops\": {},"
                            "\"samples\": -4, \"rate\": null, \"start_us\": 1e300, \"end_us\": true, \"limits\": 3, \"ended\": 9}");
    put(STEM "000001.json", "[]");
    put(STEM "000002.json", "{\"loops\": [1, {\"thread\": 3, \"idle_us\": 5, \"busy_us\": 5}], \"ticks\": {\"missed\": 3}}");
    struct reader *reader = reader_at(directory);
    struct quality *quality = quality_new(reader);
    ck_assert_uint_eq(quality->windows, 3);
    ck_assert_uint_eq(quality->windows_without_metadata, 1);
    ck_assert_uint_eq(quality->lost, 5);
    ck_assert_uint_eq(quality->samples, 0);
    quality_free(quality);
    reader_free(reader);
}
END_TEST

/* One that was merged of two processes beside one that was not. */
START_TEST(quality_counts_what_was_merged)
{
    put("aprof.h.7.3000.000000.json", "{\"start_us\": 5000, \"end_us\": 9000, \"samples\": 2, \"run\": \"one\", \"rate\": {\"asked\": 100, \"got\": 10},"
                                      "\"budget\": {\"least\": 30}}");
    put("aprof.merged-1.0.1000.000000.json",
        "{\"start_us\": 1000, \"end_us\": 6000, \"samples\": 40, \"rate\": {\"asked\": 300, \"got\": 70}, \"dropped\": {\"torn\": 3}, \"merged\": {\"windows\": 9,"
        "\"windows_without_metadata\": 1, \"windows_by_syscall\": 2, \"windows_coarse_clock\": 3, \"process_us\": 12000, \"asked\": {\"least\": 50},"
        "\"spans\": [{\"start_us\": 1000, \"end_us\": 3000}, {\"start_us\": 4000, \"end_us\": 6000}], \"processes\": ["
        "{\"host\": \"a\", \"pid\": 3, \"run\": \"one\", \"ended\": \"killed\", \"windows\": 8, \"covered_us\": 10000, \"children_without_sample\": 4},"
        "{\"host\": \"b\", \"pid\": 3, \"run\": \"two\", \"ended\": \"open\", \"windows\": 1, \"loops\": [{\"thread\": 5, \"idle_us\": 6, \"busy_us\": 7}]}]}}");
    struct reader *reader = reader_at(directory);
    struct quality *quality = quality_new(reader);
    ck_assert_uint_eq(quality->processes_count, 3); /* those of the reader first */
    ck_assert_str_eq(quality->processes[0].host, "a");
    ck_assert_str_eq(quality->processes[1].host, "h");
    ck_assert_str_eq(quality->processes[2].host, "b");
    ck_assert(quality->processes[0].is_merged && !quality->processes[1].is_merged && quality->processes[2].is_merged);
    ck_assert_uint_eq(quality->runs, 2);
    ck_assert_uint_eq(quality->running, 1);
    ck_assert_uint_eq(quality->killed, 1);
    ck_assert_uint_eq(quality->children_without_sample, 4);
    ck_assert_uint_eq(quality->windows, 10);
    ck_assert_uint_eq(quality->windows_without_metadata, 1);
    ck_assert_uint_eq(quality->windows_by_syscall, 2);
    ck_assert_uint_eq(quality->windows_coarse_clock, 3);
    ck_assert_uint_eq(quality->covered_us, 7000); /* 1000 to 3000, 4000 to 9000 */
    ck_assert_uint_eq(quality->spans_count, 2);
    ck_assert_uint_eq(quality->process_us, 16000);
    ck_assert_uint_eq(quality->samples, 42);
    ck_assert_uint_eq(quality->lost, 3);
    ck_assert_double_eq(quality->asked_least, 50);
    ck_assert_double_eq(quality->asked_most, 300);
    ck_assert_double_eq(quality->got, 55);
    ck_assert_uint_eq(quality->loops_count, 1);
    ck_assert_uint_eq(quality->loops[0].process, 2);
    quality_free(quality);
    reader_free(reader);
}
END_TEST

START_TEST(quality_survives_merges_of_wrong_types)
{
    put(STEM "000000.json", "{\"merged\": 7}");
    put(STEM "000001.json", "{\"merged\": {\"processes\": []}}");
    put(STEM "000002.json", "{\"merged\": {\"processes\": [3, {\"host\": 1, \"loops\": 2}, null], \"spans\": [1, {\"start_us\": 9, \"end_us\": 1}],"
                            "\"windows\": -1, \"asked\": [], \"process_us\": \"x\"}}");
    struct reader *reader = reader_at(directory);
    struct quality *quality = quality_new(reader);
    ck_assert_uint_eq(quality->windows, 2);
    ck_assert_uint_eq(quality->processes_count, 3);
    ck_assert_str_eq(quality->processes[2].host, "");
    ck_assert_str_eq(quality->processes[2].ended, "unknown");
    ck_assert_uint_eq(quality->covered_us, 0);
    quality_free(quality);
    reader_free(reader);
}
END_TEST

/* ---- reading while it is written ------------------------------------------ */

#define WINDOWS 200

static void window_name(char *name, int number, const char *end)
{
    sprintf(name, STEM "%06d.%s", number, end);
}

static int window_open(int number)
{
    char name[80];
    window_name(name, number, "json.live");
    int metadata = open(in(name), O_CREAT | O_EXCL | O_RDWR, 0600);
    if (metadata < 0 || flock(metadata, LOCK_EX) || write(metadata, "{}\n", 3) != 3)
        _exit(1);
    window_name(name, number, "cpu.collapsed.live");
    put(name, "a (a.py:1) 00000060\na (a.py:1) 00000040\n");
    return metadata;
}

static void file_seal(int number, const char *end, const char *text)
{
    char name[80], temporary[84];
    window_name(name, number, end);
    sprintf(temporary, "%s.tmp", name);
    put(temporary, text);
    if (rename(in(temporary), in(name)))
        _exit(1);
}

static void live_remove(int number, const char *end)
{
    char name[80];
    window_name(name, number, end);
    if (unlink(in(name)))
        _exit(1);
}

static void windows_write(void)
{
    int metadata = window_open(0);
    for (int number = 0; number < WINDOWS; number++) {
        int next = window_open(number + 1);
        file_seal(number, "cpu.collapsed", "a (a.py:1) 100\n");
        file_seal(number, "json", "{\"ended\": \"window\"}\n");
        live_remove(number, "cpu.collapsed.live");
        live_remove(number, "json.live");
        close(metadata);
        metadata = next;
        usleep(3000); /* a listing must be able to find a moment of rest; windows really last seconds */
    }
    _exit(0);
}

struct per_window {
    uint64_t sums[WINDOWS + 1];
};

static int see_window(void *context, const struct reader_line *line)
{
    struct per_window *windows = context;
    windows->sums[line->window->number] += line->count;
    return 0;
}

/* Every window up to the newest is there, once. The newest may still be empty. */
static void reading_is_whole(void)
{
    struct per_window windows = { { 0 } };
    struct reader *reader = reader_at(directory);
    ck_assert_int_eq(reader_each(reader, "cpu", see_window, &windows), 0);
    ck_assert_uint_eq(reader_failures(reader), 0);
    ck_assert_uint_eq(reader_counts(reader)->gone, 0);
    uint32_t count = reader_windows(reader);
    for (uint32_t at = 0; at < count; at++) {
        const struct reader_window *window = reader_window(reader, at);
        ck_assert_uint_eq(window->number, at);
        ck_assert_msg(windows.sums[at] == 100 || (at + 1 == count && windows.sums[at] <= 100), "window %u of %u has %llu", at, count,
                      (unsigned long long)windows.sums[at]);
        ck_assert_int_ne(window->state, READER_DEAD); /* its process lives */
    }
    reader_free(reader);
}

START_TEST(reading_while_windows_are_sealed)
{
    pid_t writer = fork();
    if (!writer)
        windows_write();
    int status = 0, readings = 0;
    while (!waitpid(writer, &status, WNOHANG)) {
        reading_is_whole();
        readings++;
    }
    ck_assert_int_eq(status, 0);
    ck_assert_int_gt(readings, 0);
    reading_is_whole();
}
END_TEST

static Suite *reader_suite(void)
{
    Suite *suite = suite_create("reader");
    TCase *plain = tcase_create("text"), *files = tcase_create("files");
    tcase_add_test(plain, names_keep_numbers_while_growing);
    tcase_add_test(plain, human_rounds_into_the_next_unit);
    tcase_add_test(plain, human_text_cuts_between_characters);
    tcase_add_checked_fixture(files, directory_make, directory_remove);
    tcase_set_timeout(files, 60);
    tcase_add_test(files, sealed_wins_file_by_file);
    tcase_add_test(files, live_is_read_up_to_its_last_newline);
    tcase_add_test(files, bad_lines_are_left_out_and_counted);
    tcase_add_test(files, sums_have_63_bits);
    tcase_add_test(files, line_longer_than_the_buffer);
    tcase_add_test(files, live_sealed_after_the_listing_is_found_again);
    tcase_add_test(files, sealed_after_the_listing_is_not_killed);
    tcase_add_test(files, evicted_is_counted_and_no_failure);
    tcase_add_test(files, the_lock_tells_who_is_alive);
    tcase_add_test(files, a_pid_that_is_gone_needs_no_wait);
    tcase_add_test(files, metadata_that_cannot_be_parsed_costs_no_stack);
    tcase_add_test(files, windows_come_by_process_and_number);
    tcase_add_test(files, what_is_not_ours_is_left_alone);
    tcase_add_test(files, fifo_and_folder_of_our_name_do_not_hold_us);
    tcase_add_test(files, a_level_is_read_from_the_last_window_only);
    tcase_add_test(files, copies_of_a_window_are_read_once);
    tcase_add_test(files, recursion_counts_once_a_stack);
    tcase_add_test(files, stacks_differ_by_functions_not_by_lines);
    tcase_add_test(files, quality_sums_ticks_over_tasks);
    tcase_add_test(files, quality_sums_readings_of_threads);
    tcase_add_test(files, quality_sums_the_tasks_of_loops_and_keeps_the_longest_stand_and_step);
    tcase_add_test(files, quality_survives_metadata_of_wrong_types);
    tcase_add_test(files, quality_counts_what_was_merged);
    tcase_add_test(files, quality_survives_merges_of_wrong_types);
    tcase_add_test(files, reading_while_windows_are_sealed);
    suite_add_tcase(suite, plain);
    suite_add_tcase(suite, files);
    return suite;
}

int main(void)
{
    SRunner *runner = srunner_create(reader_suite());
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    printf("check-reader: %d passed, %d failed\n", srunner_ntests_run(runner) - failed, failed);
    srunner_free(runner);
    return failed != 0;
}
