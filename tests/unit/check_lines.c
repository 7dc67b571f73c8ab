/* SPDX-License-Identifier: MIT
 *
 * lines: stacks and counts in the files of the open window, at every moment and
 * after a death at any moment.
 */
#include "tests/unit/spool_fixture.h"

/* Writes without pause and tells, after each flush, what must be in the files. */
static void write_until_killed(volatile uint64_t *told, unsigned seed)
{
    struct spool *spool = spool_with(42, 0, true);
    uint64_t sum = 0;
    char name[64];
    for (unsigned round = 0;; round++) {
        for (unsigned i = 0; i < 20; i++) {
            seed = seed * 1103515245u + 12345u;
            snprintf(name, sizeof name, "main (app.py:1);f%u (app.py:%u)", (seed >> 8) % (round < 500 ? 50 + round * 5 : 2550), seed % 7);
            add(name, METRIC_CPU, 100000);
            sum += 100000;
        }
        struct metadata metadata = metadata_of(0);
        if (spool_flush(spool, profile, &metadata) != 0)
            _exit(1);
        *told = sum;
        if (round % 50 == 0)
            spool_describe(spool, &metadata);
    }
}

START_TEST(live_files_are_as_the_format_says)
{
    struct spool *spool = spool_with(42, 0, true);
    char name[32];
    size_t size, stack;
    uint64_t count;
    umask(0077);
    for (int i = 0; i < 500; i++) {
        snprintf(name, sizeof name, "main;%.*s%d", i % 17, "xxxxxxxxxxxxxxxxx", i);
        add(name, METRIC_CPU, (uint64_t)i + 1);
    }
    ck_assert_int_eq(flush(spool), 0);
    ck_assert_uint_eq(mode_of(directory), geteuid() == 0 ? 01733 : 0700);
    ck_assert_uint_eq(mode_of(path_of(".gitignore")), 0600);
    char *text = content(path_of(".gitignore"), &size);
    ck_assert_str_eq(text, "*\n");
    free(text);
    ck_assert_uint_eq(mode_of(file_name(42, 0, "cpu.collapsed.live")), 0600);
    ck_assert_uint_eq(mode_of(file_name(42, 0, "json.live")), 0600);
    ck_assert(!exists(file_name(42, 0, "wall.collapsed.live")));
    text = content(file_name(42, 0, "cpu.collapsed.live"), &size);
    unsigned lines = 0;
    for (char *line = text, *end; line < text + size; line = end + 1, lines++) {
        end = memchr(line, '\n', (size_t)(text + size - line));
        ck_assert(spool_line_parse(line, (size_t)(end - line), &stack, &count));
        ck_assert_uint_eq((size_t)(end - text) % 8, 0); /* the last eight digits lie on a boundary */
        size_t digits = (size_t)(end - line) - stack - 1;
        ck_assert(digits >= 8 && digits <= 15);
    }
    ck_assert_uint_eq(lines, 500);
    free(text);
    spool_free(spool);
}
END_TEST

START_TEST(counts_change_in_place)
{
    struct spool *spool = spool_with(42, 0, true);
    struct stat before, after;
    add("a;b", METRIC_CPU, 5);
    add("a;c", METRIC_WALL, 7);
    ck_assert_int_eq(flush(spool), 0);
    ck_assert_int_eq(stat(file_name(42, 0, "cpu.collapsed.live"), &before), 0);
    for (int i = 0; i < 1000; i++) {
        add("a;b", METRIC_CPU, 10);
        ck_assert_int_eq(flush(spool), 0);
    }
    ck_assert_int_eq(stat(file_name(42, 0, "cpu.collapsed.live"), &after), 0);
    ck_assert_int_eq(after.st_size, before.st_size);
    ck_assert_uint_eq(sum_of(file_name(42, 0, "cpu.collapsed.live"), "a;b"), 10005);
    ck_assert_uint_eq(sum_of(file_name(42, 0, "wall.collapsed.live"), "a;c"), 7);
    spool_free(spool);
}
END_TEST

START_TEST(a_count_too_high_for_its_line_goes_on_in_a_new_one)
{
    static const uint64_t steps[] = {99999998, 1, 1, 99999998, 1, 350000000, 5};
    struct spool *spool = spool_with(42, 0, true);
    uint64_t sum = 0;
    for (size_t i = 0; i < sizeof steps / sizeof *steps; i++) {
        add("a;b", METRIC_CPU, steps[i]);
        add("x", METRIC_CPU, 1);
        sum += steps[i];
        ck_assert_int_eq(flush(spool), 0);
        ck_assert_uint_eq(sum_of(file_name(42, 0, "cpu.collapsed.live"), "a;b"), sum);
    }
    ck_assert_int_eq(seal(spool, 0, true), 0);
    size_t size;
    char *text = content(file_name(42, 0, "cpu.collapsed"), &size);
    ck_assert_str_eq(text, "a;b 550000004\nx 7\n");
    free(text);
    spool_free(spool);
}
END_TEST

static unsigned lines_of(const char *path)
{
    size_t size;
    char *text = content(path, &size);
    unsigned lines = 0;
    for (size_t i = 0; i < size; i++)
        lines += text[i] == '\n';
    free(text);
    return lines;
}

/* The time of thousands of tasks on one stack: one line more a tick, where its
 * length leaves place for a ninth digit. */
START_TEST(what_one_tick_adds_takes_one_line)
{
    enum { TICKS = 40, STEP = 450000000 };
    for (int length = 1; length <= 16; length++) {
        struct spool *spool = spool_with(42 + length, 0, true);
        char stack[32];
        snprintf(stack, sizeof stack, "%.*s", length, "abcdefghijklmnop");
        profile_clear(profile, false);
        for (uint64_t tick = 1; tick <= TICKS; tick++) {
            add(stack, METRIC_TASK, STEP);
            ck_assert_int_eq(flush(spool), 0);
            ck_assert_uint_eq(sum_of(file_name(42 + length, 0, "task.collapsed.live"), stack), tick * STEP);
        }
        unsigned lines = lines_of(file_name(42 + length, 0, "task.collapsed.live"));
        if ((length + 2) % 8 != 0)
            ck_assert_uint_le(lines, TICKS + 1); /* the first line of a file has another alignment */
        else
            ck_assert_uint_gt(lines, TICKS);
        for (int i = 0; i < 100; i++) { /* in place again */
            add(stack, METRIC_TASK, 5);
            ck_assert_int_eq(flush(spool), 0);
        }
        ck_assert_uint_le(lines_of(file_name(42 + length, 0, "task.collapsed.live")), lines + 1);
        ck_assert_uint_eq(sum_of(file_name(42 + length, 0, "task.collapsed.live"), stack), (uint64_t)TICKS * STEP + 500);
        spool_free(spool);
    }
}
END_TEST

START_TEST(stacks_longer_than_any_buffer_are_written)
{
    struct spool *spool = spool_with(42, 0, true);
    char frame[1000];
    profile_stack stack = PROFILE_ROOT;
    memset(frame, 'x', sizeof frame);
    for (int i = 0; i < 300; i++) {
        snprintf(frame, 8, "%07d", i);
        frame[7] = 'x';
        stack = profile_push(profile, stack, profile_intern(profile, frame, sizeof frame, 0));
    }
    profile_add(profile, stack, METRIC_CPU, 5000);
    add("short", METRIC_CPU, 6);
    ck_assert_int_eq(flush(spool), 0);
    profile_add(profile, stack, METRIC_CPU, 5000);
    ck_assert_int_eq(flush(spool), 0);
    ck_assert_uint_eq(sum_of(file_name(42, 0, "cpu.collapsed.live"), NULL), 16);
    ck_assert_int_eq(seal(spool, 0, true), 0);
    ck_assert_uint_eq(sum_of(file_name(42, 0, "cpu.collapsed"), NULL), 16);
    spool_free(spool);
}
END_TEST

START_TEST(mappings_stay_out_of_children)
{
    struct spool *spool = spool_with(42, 0, true);
    char name[32];
    for (int round = 0; round < 2; round++) {
        for (int i = 0; i < 5000; i++) { /* beyond the first step of the mapping */
            snprintf(name, sizeof name, "main (app.py:1);f%d", i);
            add(name, METRIC_CPU, 5);
        }
        ck_assert_int_eq(flush(spool), 0);
    }
    ck_assert(mapped_with("cpu.collapsed.live", " dc"));
    ck_assert(mapped_with("json.live", " dc"));
    spool_free(spool);
}
END_TEST

START_TEST(without_the_guard_counts_are_written)
{
    ck_assert_int_eq(guard_start(GUARD_SYSCALL), 0);
    struct spool *spool = spool_with(42, 0, true);
    for (int i = 0; i < 3; i++) {
        add("a;b", METRIC_CPU, 5);
        ck_assert_int_eq(flush(spool), 0);
    }
    ck_assert(!mapped_with("collapsed.live", " "));
    ck_assert_uint_eq(sum_of(file_name(42, 0, "cpu.collapsed.live"), "a;b"), 15);
    spool_free(spool);
}
END_TEST

START_TEST(a_fault_in_a_store_moves_the_window_to_writes)
{
    struct spool *spool = spool_with(42, 0, true);
    char name[64];
    for (int round = 0; round < 2; round++) {
        for (int k = 0; k < 3000; k++) {
            snprintf(name, sizeof name, "main (app.py:1);f%d (app.py:2)", k);
            add(name, METRIC_CPU, 10);
        }
        ck_assert_int_eq(flush(spool), 0);
        if (round == 0)
            ck_assert_int_eq(truncate(file_name(42, 0, "cpu.collapsed.live"), 0), 0);
    }
    add("main (app.py:1);f0 (app.py:2)", METRIC_CPU, 1);
    ck_assert_int_eq(flush(spool), 0);
    ck_assert(!mapped_with("cpu.collapsed.live", " "));
    ck_assert_uint_eq(sum_of_all(METRIC_CPU, NULL), 60001);
    spool_free(spool);
}
END_TEST

START_TEST(killed_at_any_moment_all_that_was_flushed_is_there)
{
    volatile uint64_t *told = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    srand((unsigned)getpid());
    for (unsigned i = 0; i < 60; i++) {
        int status;
        *told = 0;
        pid_t child = fork();
        if (child == 0)
            write_until_killed(told, i + 1);
        while (*told == 0)
            usleep(100);
        usleep((useconds_t)(rand() % 20000));
        kill(child, SIGKILL);
        waitpid(child, &status, 0);
        ck_assert(WIFSIGNALED(status));
        const char *path = file_name(42, 0, "cpu.collapsed.live");
        size_t size;
        char *text = content(path, &size);
        while (size > 0 && text[size - 1] != '\n') /* a reader's rule: up to the last newline */
            size--;
        ck_assert_ptr_null(memchr(text, '\0', size));
        ck_assert_int_eq(truncate(path, (off_t)size), 0);
        free(text);
        ck_assert_uint_ge(sum_of(path, NULL), *told);
        remove_tree(directory);
    }
    munmap((void *)told, 4096);
}
END_TEST

START_TEST(awk_reads_while_it_is_written)
{
    volatile uint64_t *told = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    char command[1536];
    int status;
    pid_t child = fork();
    if (child == 0)
        write_until_killed(told, 7);
    while (*told == 0)
        usleep(100);
    uint64_t last = 0; /* only the last line may be cut: an append in progress */
    for (int i = 0; i < 40; i++) {
        uint64_t before = *told;
        unsigned long sum = 0;
        snprintf(command, sizeof command, "head -c \"$(stat -c %%s %1$s)\" %1$s | awk 'cut {bad = 1} $NF !~ /^[0-9]+$/ || NF != 4 {cut = 1; next} {sum += $NF} END {printf \"%%.0f\\n\", bad ? 0 : sum}'",
                 file_name(42, 0, "cpu.collapsed.live"));
        FILE *pipe = popen(command, "r");
        ck_assert_int_eq(fscanf(pipe, "%lu", &sum), 1);
        pclose(pipe);
        ck_assert_uint_ge(sum, before);
        ck_assert_uint_ge(sum, last);
        last = sum;
    }
    kill(child, SIGKILL);
    waitpid(child, &status, 0);
    munmap((void *)told, 4096);
}
END_TEST

Suite *suite_lines(void)
{
    Suite *suite = suite_create("lines");
    TCase *tcase = tcase_create("lines");
    tcase_add_checked_fixture(tcase, setup, teardown);
    tcase_set_timeout(tcase, 60);
    tcase_add_test(tcase, live_files_are_as_the_format_says);
    tcase_add_test(tcase, counts_change_in_place);
    tcase_add_test(tcase, a_count_too_high_for_its_line_goes_on_in_a_new_one);
    tcase_add_test(tcase, what_one_tick_adds_takes_one_line);
    tcase_add_test(tcase, stacks_longer_than_any_buffer_are_written);
    tcase_add_test(tcase, mappings_stay_out_of_children);
    tcase_add_test(tcase, without_the_guard_counts_are_written);
    tcase_add_test(tcase, a_fault_in_a_store_moves_the_window_to_writes);
    tcase_add_test(tcase, killed_at_any_moment_all_that_was_flushed_is_there);
    tcase_add_test(tcase, awk_reads_while_it_is_written);
    suite_add_tcase(suite, tcase);
    return suite;
}
