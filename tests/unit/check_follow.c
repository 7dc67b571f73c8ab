/* SPDX-License-Identifier: MIT
 *
 * follow: a look after each step of a writer that opens, writes to and seals windows:
 * whatever it meets, it has what was written so far, once.
 */
#include "output/follow.h"

#include <check.h>
#include <fcntl.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "output/tool.h"

Suite *suite_follow(void);

static char directory[64];
static struct follow *follow;

static int remove_one(const char *path, const struct stat *status, int type, struct FTW *ftw)
{
    return remove(path);
}

static void setup(void)
{
    strcpy(directory, "/tmp/check_follow.XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(directory));
}

static void teardown(void)
{
    follow_free(follow);
    nftw(directory, remove_one, 8, FTW_DEPTH | FTW_PHYS);
}

/* ---- a writer ---- */

struct writer {
    unsigned pid;
    unsigned long start, seq;
    unsigned long long count; /* in the open window's only line */
};

static const char *path(const struct writer *writer, unsigned long seq, const char *end)
{
    static char paths[4][160];
    static int next;
    char *text = paths[next++ % 4];
    snprintf(text, sizeof paths[0], "%s/aprof.h.%u.%lu.%06lu.%s", directory, writer->pid, writer->start, seq, end);
    return text;
}

static void put(const char *name, const char *text)
{
    FILE *file = fopen(name, "w");
    ck_assert_ptr_nonnull(file);
    fputs(text, file);
    fclose(file);
}

static void open_window(const struct writer *writer, unsigned long seq)
{
    char text[128];
    snprintf(text, sizeof text, "{\"schema\": 1, \"pid\": %u, \"program\": \"app%u.py\", \"start_us\": 1000}   \n", writer->pid, writer->pid);
    put(path(writer, seq, "json.live"), text);
}

static void put_stacks(const struct writer *writer, const char *end, unsigned long long count, const char *tail)
{
    char text[256];
    snprintf(text, sizeof text, "main (a.py:1);work (a.py:2);work (a.py:2) %08llu\nmain (a.py:1) %08llu\n%s", count, 2 * count, tail);
    put(path(writer, writer->seq, end), text);
}

static void write_more(struct writer *writer, unsigned count)
{
    writer->count += count;
    put_stacks(writer, "cpu.collapsed.live", writer->count, "cut (a.py:3) 000");
}

/* ---- what is seen ---- */

static uint64_t self_of(const char *name, bool now)
{
    const struct follow_row *rows;
    size_t count = follow_rows(follow, &rows);
    uint64_t sum = 0;
    for (size_t at = 0; at < count; at++)
        if (!strcmp(rows[at].name, name))
            sum += now ? rows[at].self_now : rows[at].self;
    return sum;
}

static uint64_t total_of(const char *name)
{
    const struct follow_row *rows;
    size_t count = follow_rows(follow, &rows);
    uint64_t sum = 0;
    for (size_t at = 0; at < count; at++)
        if (!strcmp(rows[at].name, name))
            sum += rows[at].total;
    return sum;
}

static unsigned long long truth; /* counts written for `work` so far */

static uint64_t before;          /* ... at the last look; 0: all begins anew */

static void look(void)
{
    ck_assert_int_eq(follow_look(follow), 0);
    ck_assert_uint_eq(self_of("work", false), truth);
    ck_assert_uint_eq(total_of("work"), truth); /* a function that recurs counts once */
    ck_assert_uint_eq(total_of("main"), 3 * truth);
    ck_assert_uint_eq(follow_sum(follow), 3 * truth);
    ck_assert_uint_eq(self_of("work", true), truth > before ? truth - before : 0);
    before = truth;
}

static void write_and_look(struct writer *writer, unsigned count)
{
    write_more(writer, count);
    truth += count;
    look();
}

/* In the writer's own order (output/sealing.h). */
static void seal_and_look(struct writer *writer, bool last)
{
    if (!last) {
        open_window(writer, writer->seq + 1);
        look();
    }
    put_stacks(writer, "cpu.collapsed.tmp", writer->count, "");
    look();
    ck_assert_int_eq(rename(path(writer, writer->seq, "cpu.collapsed.tmp"), path(writer, writer->seq, "cpu.collapsed")), 0);
    look();
    put(path(writer, writer->seq, "json"), "{}\n");
    look();
    unlink(path(writer, writer->seq, "cpu.collapsed.live"));
    look();
    unlink(path(writer, writer->seq, "json.live"));
    look();
    writer->seq++;
    writer->count = 0;
}

static void seal(const struct writer *writer)
{
    put_stacks(writer, "cpu.collapsed", writer->count, "");
    put(path(writer, writer->seq, "json"), "{}\n");
    unlink(path(writer, writer->seq, "cpu.collapsed.live"));
    unlink(path(writer, writer->seq, "json.live"));
}

static unsigned long now_us(void)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    return (unsigned long)now.tv_sec * 1000000 + (unsigned long)now.tv_nsec / 1000;
}

START_TEST(each_step_of_a_writer)
{
    struct writer writer = {.pid = 7, .start = 5000};
    open_window(&writer, 0);
    follow = follow_new(directory, "cpu");
    look();
    for (int window = 0; window < 5; window++) {
        for (int i = 0; i < 3; i++)
            write_and_look(&writer, (unsigned)(10 * i + window + 1));
        seal_and_look(&writer, window == 4);
    }
    const struct follow_process *processes;
    ck_assert_uint_eq(follow_processes(follow, &processes), 1);
    ck_assert(!processes[0].lives);
    ck_assert_str_eq(processes[0].program, "app7.py");
    look();
}
END_TEST

/* Only every few steps: windows come and go in between, one without a file of this metric. */
START_TEST(several_windows_between_two_looks)
{
    struct writer writer = {.pid = 7, .start = 5000};
    open_window(&writer, 0);
    write_more(&writer, 1);
    truth = 1;
    follow = follow_new(directory, NULL);
    look();
    ck_assert_str_eq(follow_chosen(follow), "cpu");
    for (int window = 0; window < 40; window++) {
        open_window(&writer, writer.seq + 1);
        if (window % 5 != 3) {
            write_more(&writer, 100);
            truth += 100;
            put_stacks(&writer, "cpu.collapsed", writer.count, "");
        } else if (writer.count) {
            put_stacks(&writer, "cpu.collapsed", writer.count, "");
        }
        put(path(&writer, writer.seq, "json"), "{}\n");
        unlink(path(&writer, writer.seq, "cpu.collapsed.live"));
        unlink(path(&writer, writer.seq, "json.live"));
        writer.seq++;
        writer.count = 0;
        if (window % 7 == 6)
            look();
    }
    look();
}
END_TEST

/* Windows of before are not read; a process that comes later is, from its first one on. */
START_TEST(processes_come_and_go)
{
    struct writer old = {.pid = 7, .start = 5000, .seq = 3}, young = {.pid = 8};
    put(path(&old, 2, "json"), "{}\n");
    put(path(&old, 2, "cpu.collapsed"), "main (a.py:1);work (a.py:2) 1000000\n");
    open_window(&old, 3);
    follow = follow_new(directory, "cpu");
    write_and_look(&old, 5);
    young.start = now_us();
    open_window(&young, 0);
    write_more(&young, 7);
    put_stacks(&young, "cpu.collapsed", young.count, ""); /* it lived between two looks */
    put(path(&young, 0, "json"), "{}\n");
    unlink(path(&young, 0, "cpu.collapsed.live"));
    unlink(path(&young, 0, "json.live"));
    truth += 7;
    look();
    const struct follow_process *processes;
    ck_assert_uint_eq(follow_processes(follow, &processes), 2);
    ck_assert_uint_eq(processes[0].name.pid, 7);
    ck_assert_uint_eq(processes[1].name.pid, 8);
    struct spool_name chosen = processes[0].name;
    follow_choose_process(follow, &chosen);
    truth = 5;
    before = 0;
    look();
    ck_assert_uint_eq(follow_processes(follow, &processes), 1);
    follow_choose_process(follow, NULL);
    before = 0;
    look(); /* the young one is over: nothing of it is open */
}
END_TEST

/* What else may lie there. */
START_TEST(what_is_no_window)
{
    struct writer writer = {.pid = 7, .start = 5000};
    open_window(&writer, 0);
    put(path(&writer, 0, "heap.collapsed.live"), "main (a.py:1) 00000001\n"); /* a level */
    put(path(&writer, 0, "wall.collapsed.live"), "main (a.py:1) 00000001\n");
    ck_assert_int_eq(mkfifo(path(&writer, 1, "cpu.collapsed.live"), 0600), 0);
    ck_assert_int_eq(mkdir(path(&writer, 2, "json.live"), 0700), 0);
    put(path(&writer, 0, "ask"), "");
    follow = follow_new(directory, "cpu");
    write_and_look(&writer, 5);
    ck_assert_str_eq(follow_metric(follow, 0), "cpu");
    ck_assert_str_eq(follow_metric(follow, 1), "wall");
    ck_assert_ptr_null(follow_metric(follow, 2));
    rmdir(path(&writer, 2, "json.live"));
    nftw(directory, remove_one, 8, FTW_DEPTH | FTW_PHYS);
    ck_assert_int_lt(follow_look(follow), 0);
}
END_TEST

/* What a killed process left is read once, and then known, whatever becomes of its files. */
START_TEST(killed_processes)
{
    static const struct timespec old[2] = {{.tv_sec = 1000}, {.tv_sec = 1000}};
    struct writer killed = {.pid = 7, .start = 5000}, other = {.pid = 8, .start = 6000};
    open_window(&killed, 0);
    open_window(&other, 0);
    follow = follow_new(directory, "cpu");
    write_and_look(&killed, 3);
    write_and_look(&other, 4);
    ck_assert_int_eq(utimensat(AT_FDCWD, path(&killed, 0, "json.live"), old, 0), 0);
    look();
    const struct follow_process *processes;
    ck_assert_uint_eq(follow_processes(follow, &processes), 2);
    ck_assert(!processes[0].lives && processes[1].lives);
    unlink(path(&killed, 0, "cpu.collapsed.live")); /* not read any more: it would have had no more */
    write_and_look(&other, 1);
    unlink(path(&killed, 0, "json.live"));
    write_and_look(&other, 1);
    killed.seq = 1; /* it was not dead after all */
    killed.count = 0;
    open_window(&killed, 1);
    write_and_look(&killed, 5);
    ck_assert_uint_eq(follow_processes(follow, &processes), 2);
    ck_assert(processes[0].lives);
}
END_TEST

/* Beyond the bound those that have ended make room, and what they had stays, once. */
START_TEST(more_processes_than_can_be_known)
{
    struct writer writers[8], living = {.pid = 7, .start = 5000};
    open_window(&living, 0);
    follow = follow_new(directory, "cpu");
    follow_bound(follow, 4);
    write_and_look(&living, 2);
    for (unsigned at = 0; at < 8; at++) {
        writers[at] = (struct writer){.pid = 10 + at, .start = now_us()};
        open_window(&writers[at], 0);
        write_and_look(&writers[at], at + 1);
        ck_assert_uint_eq(follow_left_out(follow), 0);
        seal(&writers[at]);
        look();
    }
    const struct follow_process *processes;
    ck_assert_uint_le(follow_processes(follow, &processes), 4);
    ck_assert_uint_eq(processes[0].name.pid, 7);
    write_and_look(&living, 1);
}
END_TEST

/* Those that live give no room: who comes then is left out, and said to be. */
START_TEST(more_living_processes_than_can_be_known)
{
    struct writer writers[6];
    follow = follow_new(directory, "cpu");
    follow_bound(follow, 4);
    for (unsigned at = 0; at < 4; at++) {
        writers[at] = (struct writer){.pid = 10 + at, .start = 5000 + at};
        open_window(&writers[at], 0);
        write_and_look(&writers[at], 3);
    }
    for (unsigned at = 4; at < 6; at++) {
        writers[at] = (struct writer){.pid = 10 + at, .start = 5000 + at};
        open_window(&writers[at], 0);
        open_window(&writers[at], 1);
        write_more(&writers[at], 100);
        look();
        ck_assert_uint_eq(follow_left_out(follow), at - 3);
    }
    write_and_look(&writers[0], 1);
    seal(&writers[0]);
    look();
    truth += 100; /* one of them has its room */
    look();
    ck_assert_uint_eq(follow_left_out(follow), 1);
}
END_TEST

Suite *suite_follow(void)
{
    Suite *suite = suite_create("follow");
    TCase *tcase = tcase_create("follow");
    tcase_add_checked_fixture(tcase, setup, teardown);
    tcase_add_test(tcase, each_step_of_a_writer);
    tcase_add_test(tcase, several_windows_between_two_looks);
    tcase_add_test(tcase, processes_come_and_go);
    tcase_add_test(tcase, what_is_no_window);
    tcase_add_test(tcase, killed_processes);
    tcase_add_test(tcase, more_processes_than_can_be_known);
    tcase_add_test(tcase, more_living_processes_than_can_be_known);
    suite_add_tcase(suite, tcase);
    return suite;
}
