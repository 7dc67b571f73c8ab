/* SPDX-License-Identifier: MIT
 *
 * bound: what goes when the directory is full, and what stays.
 */
#include "tests/unit/spool_fixture.h"

START_TEST(the_oldest_windows_go_first_and_the_living_stay)
{
    ck_assert_int_eq(mkdir(directory, 0700), 0);
    for (unsigned i = 0; i < 8; i++) { /* sealed: 200 KiB each, ages 1000, 990, ... */
        plant(7, i, "cpu.collapsed", 150 << 10, 1000 - 10 * (int)i);
        plant(7, i, "json", 50 << 10, 1000 - 10 * (int)i);
    }
    plant(8, 0, "json.live", 4096, 2000); /* dead */
    plant(8, 0, "cpu.collapsed.live", 300 << 10, 2000);
    plant(9, 0, "cpu.collapsed.live", 10 << 10, 3000); /* dead: no metadata */
    plant(10, 0, "json.live", 4096, 3000); /* locked: alive */
    plant(10, 0, "cpu.collapsed.live", 100 << 10, 3000);
    plant(11, 0, "json.live", 4096, 2); /* renewed lately: alive */
    plant(11, 0, "wall.collapsed.live", 100 << 10, 3000);
    plant(12, 0, "cpu.collapsed.tmp", 10 << 10, 3000); /* left by a sealing that was killed */
    close(open(path_of("aprof.notes.txt"), O_WRONLY | O_CREAT, 0600)); /* not one of our names */
    int lock = open(file_name(10, 0, "json.live"), O_RDWR);
    ck_assert_int_eq(flock(lock, LOCK_EX), 0);

    struct spool *spool = spool_with(42, MIB, true);
    add("a", METRIC_CPU, 5);
    ck_assert_int_eq(seal(spool, 0, false), 0);
    ck_assert(!exists(file_name(8, 0, "json.live")));
    ck_assert(!exists(file_name(8, 0, "cpu.collapsed.live")));
    ck_assert(!exists(file_name(9, 0, "cpu.collapsed.live")));
    ck_assert(!exists(file_name(12, 0, "cpu.collapsed.tmp")));
    ck_assert(exists(file_name(10, 0, "cpu.collapsed.live")));
    ck_assert(exists(file_name(11, 0, "wall.collapsed.live")));
    ck_assert(exists(path_of("aprof.notes.txt")));
    ck_assert(exists(file_name(42, 0, "cpu.collapsed")));
    /* 1 MiB less 208 KiB alive and our own leaves room for four of 200 KiB */
    for (unsigned i = 0; i < 8; i++) {
        ck_assert_int_eq(exists(file_name(7, i, "cpu.collapsed")), i >= 4);
        ck_assert_int_eq(exists(file_name(7, i, "json")), i >= 4);
    }
    ck_assert(!spool_is_full(spool));
    close(lock);
    spool_free(spool);
}
END_TEST

START_TEST(living_windows_alone_beyond_the_bound_stop_new_stacks)
{
    ck_assert_int_eq(mkdir(directory, 0700), 0);
    plant(10, 0, "json.live", 4096, 0);
    plant(10, 0, "cpu.collapsed.live", 2 * MIB, 0);
    struct spool *spool = spool_with(42, MIB, true);
    add("a", METRIC_CPU, 5);
    ck_assert_int_eq(seal(spool, 0, false), 0);
    ck_assert(spool_is_full(spool));
    ck_assert_int_eq(describe(spool), 0);
    ck_assert_int_eq(limit_of(file_name(42, 1, "json.live"), "spool"), 1);
    ck_assert(!exists(file_name(42, 0, "cpu.collapsed"))); /* sealed windows are the first to go */
    unlink(file_name(10, 0, "cpu.collapsed.live"));
    unlink(file_name(10, 0, "json.live"));
    add("a", METRIC_CPU, 5);
    ck_assert_int_eq(seal(spool, 1, false), 0);
    ck_assert(!spool_is_full(spool));
    spool_free(spool);
}
END_TEST

START_TEST(who_cannot_get_the_lock_leaves_it)
{
    ck_assert_int_eq(mkdir(directory, 0700), 0);
    plant(7, 0, "cpu.collapsed", 2 * MIB, 100);
    int lock = open(path_of(".aprof.lock"), O_RDWR | O_CREAT, 0600);
    ck_assert_int_eq(flock(lock, LOCK_EX), 0);
    struct spool *spool = spool_with(42, MIB, true);
    add("a", METRIC_CPU, 5);
    ck_assert_int_eq(seal(spool, 0, false), 0);
    ck_assert(exists(file_name(7, 0, "cpu.collapsed")));
    close(lock);
    add("a", METRIC_CPU, 5);
    ck_assert_int_eq(seal(spool, 1, true), 0);
    ck_assert(!exists(file_name(7, 0, "cpu.collapsed")));
    spool_free(spool);
}
END_TEST

START_TEST(a_long_listing_is_good_for_a_while)
{
    char name[64];
    ck_assert_int_eq(mkdir(directory, 0700), 0);
    for (unsigned i = 0; i < 6000; i++) {
        snprintf(name, sizeof name, "aprof.h.7.1.%06u.json", i);
        close(open(path_of(name), O_WRONLY | O_CREAT, 0600));
    }
    struct spool *spool = spool_with(42, MIB, true);
    add("a", METRIC_CPU, 5);
    ck_assert_int_eq(seal(spool, 0, false), 0);
    plant(7, 0, "cpu.collapsed", 2 * MIB, 100); /* not by one of us: seen by the next listing */
    add("a", METRIC_CPU, 5);
    ck_assert_int_eq(seal(spool, 1, false), 0);
    ck_assert(exists(file_name(7, 0, "cpu.collapsed")));
    for (unsigned window = 2; window < 300 && exists(file_name(7, 0, "cpu.collapsed")); window++) {
        for (unsigned i = 0; i < 1000; i++) {
            snprintf(name, sizeof name, "main (app.py:1);f%u (app.py:2)", i);
            add(name, METRIC_CPU, 5);
        }
        ck_assert_int_eq(seal(spool, window, false), 0);
    }
    ck_assert(!exists(file_name(7, 0, "cpu.collapsed"))); /* what we added passed the bound */
    spool_free(spool);
}
END_TEST

/* Nearer than half of it what others write meanwhile might pass the bound. */
START_TEST(far_from_the_bound_a_listing_is_good_for_a_while)
{
    char name[64];
    ck_assert_int_eq(mkdir(directory, 0700), 0);
    plant(7, 0, "cpu.collapsed", 100 << 10, 100);
    struct spool *spool = spool_with(42, MIB, true);
    add("a", METRIC_CPU, 5);
    ck_assert_int_eq(seal(spool, 0, false), 0);
    plant(7, 1, "cpu.collapsed", 2 * MIB, 100); /* not by one of us: seen by the next listing */
    add("a", METRIC_CPU, 5);
    ck_assert_int_eq(seal(spool, 1, false), 0);
    ck_assert(exists(file_name(7, 1, "cpu.collapsed")));
    off_t added = 0;
    for (unsigned window = 2; window < 100 && exists(file_name(7, 1, "cpu.collapsed")); window++) {
        for (unsigned i = 0; i < 1000; i++) {
            snprintf(name, sizeof name, "main (app.py:1);f%u (app.py:2)", i);
            add(name, METRIC_CPU, 5);
        }
        ck_assert_int_eq(seal(spool, window, false), 0);
        struct stat status;
        if (stat(file_name(42, window, "cpu.collapsed"), &status) == 0)
            added += status.st_size;
    }
    ck_assert(!exists(file_name(7, 1, "cpu.collapsed")));
    ck_assert_int_gt(added, 256 << 10);
    ck_assert_int_lt(added, 640 << 10);
    spool_free(spool);
}
END_TEST

START_TEST(where_it_cannot_list_each_bounds_its_own)
{
    if (geteuid() != 0)
        return;
    ck_assert_int_eq(mkdir(directory, 01733), 0);
    ck_assert_int_eq(chmod(directory, 01733), 0);
    ck_assert_int_eq(chmod(top, 0755), 0);
    plant(7, 0, "cpu.collapsed", 5 * MIB, 100);
    pid_t child = fork();
    if (child == 0) {
        ck_assert_int_eq(setresuid(NOBODY, NOBODY, NOBODY), 0);
        struct spool *spool = spool_with(42, 40000, true);
        int bad = 0;
        for (unsigned window = 0; window < 20; window++) {
            char name[4096];
            memset(name, 'x', sizeof name - 1);
            name[sizeof name - 1] = '\0';
            add(name, METRIC_CPU, 5);
            bad |= seal(spool, window, false) != 0;
        }
        spool_free(spool);
        _exit(bad);
    }
    int status;
    waitpid(child, &status, 0);
    ck_assert(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    ck_assert(exists(file_name(7, 0, "cpu.collapsed")));
    ck_assert(exists(file_name(42, 19, "cpu.collapsed")));
    ck_assert(!exists(file_name(42, 10, "cpu.collapsed")));
    ck_assert(!exists(file_name(42, 10, "json")));
}
END_TEST

START_TEST(two_writers_share_a_directory)
{
    enum { WINDOWS = 20 };
    pid_t children[2];
    for (int i = 0; i < 2; i++) {
        children[i] = fork();
        if (children[i] != 0)
            continue;
        struct spool *spool = spool_with(100 + i, 1, true);
        int bad = 0;
        for (unsigned window = 0; window < WINDOWS; window++) {
            add("a;b", METRIC_CPU, 5);
            struct metadata metadata = metadata_of(window);
            bad |= spool_flush(spool, profile, &metadata) != 0;
            bad |= seal(spool, window, false) != 0;
        }
        add("a;b", METRIC_CPU, 5);
        struct metadata metadata = metadata_of(WINDOWS);
        bad |= spool_flush(spool, profile, &metadata) != 0;
        raise(SIGSTOP); /* alive and silent */
        _exit(bad);
    }
    for (int i = 0; i < 2; i++) {
        int status;
        waitpid(children[i], &status, WUNTRACED);
        ck_assert(WIFSTOPPED(status));
    }
    for (int i = 0; i < 2; i++) {
        ck_assert(exists(file_name(100 + i, WINDOWS, "cpu.collapsed.live"))); /* living ones never go */
        int status;
        kill(children[i], SIGCONT);
        waitpid(children[i], &status, 0);
        ck_assert(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    }
}
END_TEST

Suite *suite_bound(void)
{
    Suite *suite = suite_create("bound");
    TCase *tcase = tcase_create("bound");
    tcase_add_checked_fixture(tcase, setup, teardown);
    tcase_set_timeout(tcase, 60);
    tcase_add_test(tcase, the_oldest_windows_go_first_and_the_living_stay);
    tcase_add_test(tcase, living_windows_alone_beyond_the_bound_stop_new_stacks);
    tcase_add_test(tcase, who_cannot_get_the_lock_leaves_it);
    tcase_add_test(tcase, a_long_listing_is_good_for_a_while);
    tcase_add_test(tcase, far_from_the_bound_a_listing_is_good_for_a_while);
    tcase_add_test(tcase, where_it_cannot_list_each_bounds_its_own);
    tcase_add_test(tcase, two_writers_share_a_directory);
    suite_add_tcase(suite, tcase);
    return suite;
}
