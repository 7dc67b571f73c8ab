/* SPDX-License-Identifier: MIT */
#include "hooks/log.h"
#include "hooks/real.h"

#include <check.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static int pipes[2];

static void catch_stderr(void)
{
    real_resolve();
    ck_assert_int_eq(pipe(pipes), 0);
    fcntl(pipes[0], F_SETFL, O_NONBLOCK);
    dup2(pipes[1], 2);
}

/* What was written to stderr since the last call. */
static const char *said(void)
{
    static char text[65536];
    ssize_t n = read(pipes[0], text, sizeof text - 1);
    text[n > 0 ? n : 0] = '\0';
    return text;
}

START_TEST(formats_are_those_of_printf)
{
    char ours[200], theirs[200];
#define SAME(...) \
    ck_assert_uint_eq(log_format(ours, sizeof ours, __VA_ARGS__), (size_t)snprintf(theirs, sizeof theirs, __VA_ARGS__)); \
    ck_assert_str_eq(ours, theirs)
    SAME("plain");
    SAME("%s|%c|%%|", "text", 'x');
    SAME("%d %d %d %d", 0, -1, INT_MAX, INT_MIN);
    SAME("%u %x %x", UINT_MAX, 0xdeadbeefu, 0u);
    SAME("%ld %ld %lu %lx", LONG_MAX, LONG_MIN, ULONG_MAX, ULONG_MAX);
    SAME("%zu %zu", (size_t)0, SIZE_MAX);
#undef SAME
}
END_TEST

START_TEST(short_buffers_are_closed)
{
    char buffer[8] = "zzzzzzz";
    ck_assert_uint_eq(log_format(buffer, 4, "%s", "abcdef"), 3);
    ck_assert_str_eq(buffer, "abc");
    ck_assert_uint_eq(buffer[4], 'z');
    ck_assert_uint_eq(log_format(buffer, 1, "%d", 12), 0);
    ck_assert_str_eq(buffer, "");
    ck_assert_uint_eq(log_format(NULL, 0, "%d", 12), 0);
}
END_TEST

START_TEST(a_line_is_one_and_a_kind_speaks_once)
{
    catch_stderr();
    log_line(LOG_WARN, LOG_HOOK, "cannot write %s", "/x");
    ck_assert_str_eq(said(), "aprof: cannot write /x\n");
    log_line(LOG_WARN, LOG_HOOK, "again");
    log_line(LOG_INFO, LOG_PYTHON, "not shown");
    ck_assert_str_eq(said(), "");
    log_set_level(LOG_INFO);
    log_line(LOG_INFO, LOG_PYTHON, "shown");
    ck_assert_str_eq(said(), "aprof: shown\n");
    log_set_level(LOG_QUIET);
    log_line(LOG_WARN, LOG_HOOK, "quiet");
    log_line(LOG_QUIET, LOG_HOOK, "quiet");
    ck_assert_str_eq(said(), "");
}
END_TEST

START_TEST(every_bad_setting_speaks_up_to_twenty)
{
    int lines = 0;
    catch_stderr();
    for (int i = 0; i < 30; i++)
        log_line(LOG_WARN, LOG_SETTING, "bad %d", i);
    for (const char *at = said(); (at = strchr(at, '\n')); at++)
        lines++;
    ck_assert_int_eq(lines, 20);
}
END_TEST

START_TEST(long_lines_are_cut)
{
    char huge[2000];
    catch_stderr();
    memset(huge, 'a', sizeof huge - 1);
    huge[sizeof huge - 1] = '\0';
    log_line(LOG_WARN, LOG_STATE, "%s", huge);
    const char *line = said();
    ck_assert_uint_eq(strlen(line), 512);
    ck_assert_int_eq(line[511], '\n');
}
END_TEST

static void *our_thread(void *arg)
{
    log_queue_on_this_thread();
    log_line(LOG_WARN, LOG_HOOK, "first");
    log_line(LOG_WARN, LOG_STATE, "second");
    log_flush(); /* not from ours */
    return NULL;
}

static void run_our_thread(void)
{
    pthread_t thread;
    pthread_create(&thread, NULL, our_thread, NULL);
    pthread_join(thread, NULL);
}

START_TEST(our_threads_lines_wait_for_the_application)
{
    catch_stderr();
    run_our_thread();
    ck_assert_str_eq(said(), "");
    log_flush();
    ck_assert_str_eq(said(), "aprof: first\naprof: second\n");
    log_flush();
    ck_assert_str_eq(said(), "");
}
END_TEST

/* Whoever flushes may be a signal handler on any thread: it must not wait for a reader. */
START_TEST(a_full_pipe_makes_nobody_wait)
{
    static char filling[4096];
    catch_stderr();
    fcntl(pipes[1], F_SETFL, O_NONBLOCK);
    while (write(pipes[1], filling, sizeof filling) > 0)
        ;
    fcntl(pipes[1], F_SETFL, 0);
    run_our_thread();
    log_flush(); /* would block for ever */
    while (read(pipes[0], filling, sizeof filling) > 0)
        ;
    log_flush();
    ck_assert_str_eq(said(), "aprof: first\naprof: second\n");
}
END_TEST

START_TEST(a_forked_child_does_not_say_it_again)
{
    catch_stderr();
    run_our_thread();
    pid_t child = fork();
    if (child == 0) {
        log_flush();
        _exit(0);
    }
    waitpid(child, NULL, 0);
    ck_assert_str_eq(said(), "");
    log_flush();
    ck_assert_str_eq(said(), "aprof: first\naprof: second\n");
}
END_TEST

START_TEST(a_closed_pipe_does_not_kill)
{
    sigset_t pending;
    catch_stderr();
    close(pipes[0]);
    log_line(LOG_WARN, LOG_HOOK, "into the void");
    sigpending(&pending);
    ck_assert(!sigismember(&pending, SIGPIPE));
    sigset_t mask;
    sigprocmask(SIG_BLOCK, NULL, &mask);
    ck_assert(!sigismember(&mask, SIGPIPE));
}
END_TEST

Suite *suite_log(void)
{
    Suite *suite = suite_create("log");
    TCase *tests = tcase_create("log");
    tcase_add_test(tests, formats_are_those_of_printf);
    tcase_add_test(tests, short_buffers_are_closed);
    tcase_add_test(tests, a_line_is_one_and_a_kind_speaks_once);
    tcase_add_test(tests, every_bad_setting_speaks_up_to_twenty);
    tcase_add_test(tests, long_lines_are_cut);
    tcase_add_test(tests, our_threads_lines_wait_for_the_application);
    tcase_add_test(tests, a_full_pipe_makes_nobody_wait);
    tcase_add_test(tests, a_forked_child_does_not_say_it_again);
    tcase_add_test(tests, a_closed_pipe_does_not_kill);
    suite_add_tcase(suite, tests);
    return suite;
}
