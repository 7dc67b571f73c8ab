/* SPDX-License-Identifier: MIT
 *
 * stall: who waits for a disk that does not answer, and who is told by whom.
 */
#include "sampler/stall.h"

#include <check.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "hooks/clock.h"

enum { LIMIT_NS = 20000000 };

static void stay_at_the_files(void)
{
    uint64_t began = clock_now();
    stall_writing(true);
    while (clock_now() - began <= LIMIT_NS + 1000000)
        usleep(1000);
}

/* What a forked child finds, as its exit status. */
static int in_child(int (*asks)(void))
{
    int status;
    pid_t child = fork();
    ck_assert_int_ge(child, 0);
    if (!child) {
        stall_postfork_child();
        _exit(asks());
    }
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    ck_assert(WIFEXITED(status));
    return WEXITSTATUS(status);
}

enum { SELF = 1, ABOVE = 2 };

static int found(void)
{
    return (stall_is() ? SELF : 0) | (stall_is_above() ? ABOVE : 0);
}

static int found_with_a_page_of_its_own(void)
{
    stall_start();
    return found();
}

static int found_in_a_child_of_its_own(void)
{
    return in_child(found);
}

static int found_in_a_child_of_one_that_answers(void)
{
    stall_start();
    return in_child(found);
}

START_TEST(a_short_stay_is_none)
{
    stall_start();
    ck_assert_int_eq(found(), 0);
    uint64_t began = clock_now();
    stall_writing(true);
    bool is = stall_is();
    ck_assert(!is || clock_now() - began > LIMIT_NS); /* the machine is slow, else it is short */
    stay_at_the_files();
    ck_assert_int_eq(found(), SELF);
    stall_writing(false);
    ck_assert_int_eq(found(), 0);
}
END_TEST

START_TEST(a_child_hears_of_its_parent)
{
    stall_start();
    ck_assert_int_eq(in_child(found), 0);
    stay_at_the_files();
    ck_assert_int_eq(in_child(found), ABOVE);
    ck_assert_int_eq(in_child(found_with_a_page_of_its_own), ABOVE);
    ck_assert_int_eq(in_child(found_in_a_child_of_its_own), ABOVE);
    ck_assert_int_eq(in_child(found_in_a_child_of_one_that_answers), 0);
    stall_writing(false);
    ck_assert_int_eq(in_child(found), 0);
}
END_TEST

static int hears_that_it_is_over(int to_parent, int from_parent)
{
    char said = stall_is_above() ? 'y' : 'n';
    if (write(to_parent, &said, 1) != 1 || read(from_parent, &said, 1) != 1)
        return 9;
    return found();
}

START_TEST(and_that_it_is_over)
{
    int up[2], down[2], status;
    char said = 0;
    ck_assert_int_eq(pipe(up) | pipe(down), 0);
    stall_start();
    stay_at_the_files();
    pid_t child = fork();
    if (!child) {
        stall_postfork_child();
        _exit(hears_that_it_is_over(up[1], down[0]));
    }
    ck_assert_int_eq(read(up[0], &said, 1), 1);
    ck_assert_int_eq(said, 'y');
    stall_writing(false);
    ck_assert_int_eq(write(down[1], "g", 1), 1);
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    ck_assert_int_eq(status, 0);
}
END_TEST

/* Two below it, since the one between has no thread of its own. */
static int says_when_it_is_gone(pid_t stalled, int to_test)
{
    char said;
    stall_postfork_child();
    if (fork())
        return 0;
    stall_postfork_child();
    while (kill(stalled, 0) == 0)
        usleep(1000);
    said = stall_is_above() ? 'y' : 'n';
    return write(to_test, &said, 1) != 1;
}

static int go_while_at_the_files(int to_test)
{
    pid_t self = getpid();
    stall_postfork_child();
    stall_start();
    stay_at_the_files();
    if (!fork())
        _exit(says_when_it_is_gone(self, to_test));
    return 0;
}

START_TEST(a_process_that_is_gone_says_nothing)
{
    int up[2], status;
    char said = 0;
    ck_assert_int_eq(pipe(up), 0);
    pid_t child = fork();
    if (!child)
        _exit(go_while_at_the_files(up[1]));
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    ck_assert_int_eq(status, 0);
    ck_assert_int_eq(read(up[0], &said, 1), 1);
    ck_assert_int_eq(said, 'n');
}
END_TEST

START_TEST(nor_does_one_that_becomes_another_program)
{
    stall_start();
    stay_at_the_files();
    stall_before_exec();
    ck_assert_int_eq(in_child(found), 0);
    stall_after_exec();
    ck_assert_int_eq(in_child(found), ABOVE);
}
END_TEST

Suite *suite_stall(void);
Suite *suite_stall(void)
{
    Suite *suite = suite_create("stall");
    TCase *tests = tcase_create("stall");
    tcase_add_test(tests, a_short_stay_is_none);
    tcase_add_test(tests, a_child_hears_of_its_parent);
    tcase_add_test(tests, and_that_it_is_over);
    tcase_add_test(tests, a_process_that_is_gone_says_nothing);
    tcase_add_test(tests, nor_does_one_that_becomes_another_program);
    suite_add_tcase(suite, tests);
    return suite;
}
