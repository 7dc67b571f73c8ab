/* SPDX-License-Identifier: MIT
 *
 * trouble: what is said of a disk that refuses, by whom, and how often.
 */
#include "output/trouble.h"

#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "hooks/log.h"

static int heard; /* what is said goes there */

static void listen_to(void)
{
    int ends[2];
    ck_assert_int_eq(pipe2(ends, O_NONBLOCK), 0);
    heard = ends[0];
    ck_assert_int_eq(dup2(ends[1], STDERR_FILENO), STDERR_FILENO);
    log_set_level(LOG_WARN);
    trouble_start();
}

/* Lines since the last question, and whether each has this word. */
static int lines_with(const char *word)
{
    char text[4096];
    int count = 0;
    log_flush();
    ssize_t got = read(heard, text, sizeof text - 1);
    text[got > 0 ? got : 0] = '\0';
    for (char *line = strtok(text, "\n"); line; line = strtok(NULL, "\n"), count++)
        ck_assert_msg(strstr(line, word) != NULL, "no \"%s\": %s", word, line);
    return count;
}

static void fails(struct trouble *trouble, int error)
{
    ck_assert_int_eq(trouble_failed(trouble, "/tmp", -error), -error);
}

static void in_child(void (*does)(void))
{
    int status;
    pid_t child = fork();
    if (!child) {
        does();
        log_flush();
        _exit(0);
    }
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    ck_assert_int_eq(status, 0);
}

static void is_refused(void)
{
    struct trouble own = {0};
    fails(&own, EACCES);
}

static void has_no_descriptors(void)
{
    struct trouble own = {0};
    fails(&own, EMFILE);
}

static void is_full_and_recovers(void)
{
    struct trouble own = {0};
    fails(&own, ENOSPC);
    trouble_is_over(&own);
}

START_TEST(each_failure_is_counted_and_each_kind_said_once)
{
    struct trouble trouble = {0};
    fails(&trouble, EACCES);
    fails(&trouble, EACCES);
    ck_assert_int_eq(lines_with("permission denied (13); mend it"), 1);
    fails(&trouble, ENOSPC);
    ck_assert_int_eq(lines_with("no space left (28); stacks wait in memory"), 1);
    fails(&trouble, EIO);
    ck_assert_int_eq(lines_with("input/output error (5)"), 1);
    fails(&trouble, ENOSPC);
    fails(&trouble, ESTALE);
    ck_assert_int_eq(lines_with(""), 0);
    ck_assert_uint_eq(trouble.limits[LIMIT_spool_refused], 2);
    ck_assert_uint_eq(trouble.limits[LIMIT_spool_full], 2);
    ck_assert_uint_eq(trouble.limits[LIMIT_spool_error], 1);
}
END_TEST

START_TEST(forked_children_say_each_kind_once)
{
    in_child(is_refused);
    ck_assert_int_eq(lines_with("permission denied"), 1);
    in_child(is_refused);
    ck_assert_int_eq(lines_with(""), 0);
    in_child(has_no_descriptors);
    ck_assert_int_eq(lines_with("too many open files (24); stacks wait in memory; raise the limit: ulimit -n"), 1);
    in_child(has_no_descriptors);
    is_refused();
    ck_assert_int_eq(lines_with(""), 0);
}
END_TEST

/* A disk that is full every other second is not said twice a second. */
START_TEST(what_comes_and_goes_is_said_once_a_minute)
{
    struct trouble trouble = {0};
    for (int i = 0; i < 50; i++) {
        fails(&trouble, ENOSPC);
        trouble_is_over(&trouble);
        in_child(is_full_and_recovers);
    }
    ck_assert_int_eq(lines_with("no space left (28)"), 1);
}
END_TEST

Suite *suite_trouble(void);
Suite *suite_trouble(void)
{
    Suite *suite = suite_create("trouble");
    TCase *tests = tcase_create("trouble");
    tcase_add_checked_fixture(tests, listen_to, NULL);
    tcase_add_test(tests, each_failure_is_counted_and_each_kind_said_once);
    tcase_add_test(tests, forked_children_say_each_kind_once);
    tcase_add_test(tests, what_comes_and_goes_is_said_once_a_minute);
    suite_add_tcase(suite, tests);
    return suite;
}
