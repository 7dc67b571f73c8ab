/* SPDX-License-Identifier: MIT
 * environment: what is handed down, and that it costs the application no memory. */
#include "preload/environment.h"

#include <check.h>
#include <dlfcn.h>
#include <limits.h>
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "hooks/real.h"

extern char **environ;

Suite *suite_environment(void);

static struct config config;

static void no_fault(void *context, const char *line, const char *remedy)
{
    ck_abort_msg("%s; %s", line, remedy);
}

/* The environment is exactly these; the strings stay the test's. */
static void enter(const char **given)
{
    real_resolve();
    environ = (char **)given;
    config_parse(&config, environ, no_fault, NULL);
}

static int entries(void)
{
    int n = 0;
    while (environ[n])
        n++;
    return n;
}

static void setup(void)
{
    ck_assert_int_eq(chdir("/usr"), 0);
}

START_TEST(the_first_process_makes_the_run)
{
    const char *given[] = {"PATH=/bin", NULL};
    enter(given);
    ck_assert(environment_is_first());
    ck_assert_int_eq(environment_hand_down(&config), 0);
    ck_assert_int_eq(entries(), 3);
    ck_assert_str_eq(getenv("PATH"), "/bin");
    ck_assert_str_eq(getenv("APROF_DIR"), "/usr/aprof-spool");
    ck_assert_str_eq(config.dir, "/usr/aprof-spool");
    ck_assert_str_eq(getenv("APROF_RUN"), config.run);
    ck_assert_uint_eq(strlen(config.run), 16);
    ck_assert_uint_eq(strspn(config.run, "0123456789abcdef"), 16);
    ck_assert(!environment_is_first());
}
END_TEST

START_TEST(a_later_process_takes_what_it_was_given)
{
    const char *given[] = {"APROF_RUN=0123456789abcdef", "APROF_DIR=/spool", NULL};
    enter(given);
    ck_assert(!environment_is_first());
    ck_assert_int_eq(environment_hand_down(&config), 0);
    ck_assert_ptr_eq(environ, given); /* nothing to say anew */
    ck_assert_str_eq(config.run, "0123456789abcdef");
    ck_assert_str_eq(config.dir, "/spool");
}
END_TEST

/* aprof-run made the id; who meets the mark first speaks for the run. */
START_TEST(the_mark_is_not_handed_further)
{
    const char *given[] = {"A=1", "APROF_RUN=+abc", "APROF_DIR=/spool", "B=2", NULL};
    enter(given);
    ck_assert(environment_is_first());
    ck_assert_int_eq(environment_hand_down(&config), 0);
    ck_assert_str_eq(config.run, "abc");
    ck_assert_str_eq(getenv("APROF_RUN"), "abc");
    ck_assert(!environment_is_first());
    ck_assert_int_eq(entries(), 4);
    ck_assert_str_eq(environ[0], "A=1"); /* every entry in its place */
    ck_assert_str_eq(environ[3], "B=2");
}
END_TEST

START_TEST(a_mark_without_an_id)
{
    const char *given[] = {"APROF_RUN=+", NULL};
    enter(given);
    ck_assert_int_eq(environment_hand_down(&config), 0);
    ck_assert_uint_eq(strlen(config.run), 16);
    ck_assert_str_eq(getenv("APROF_RUN"), config.run);
}
END_TEST

START_TEST(two_runs_have_two_ids)
{
    const char *given[] = {NULL};
    char first[65];
    enter(given);
    environment_hand_down(&config);
    strcpy(first, config.run);
    usleep(1000);
    enter(given);
    environment_hand_down(&config);
    ck_assert_str_ne(first, config.run);
}
END_TEST

START_TEST(a_relative_directory_becomes_absolute)
{
    const char *given[] = {"APROF_RUN=x", "APROF_DIR=a b/../c", NULL};
    enter(given);
    ck_assert_int_eq(environment_hand_down(&config), 0);
    ck_assert_str_eq(getenv("APROF_DIR"), "/usr/a b/../c");
    ck_assert_int_eq(entries(), 2);
}
END_TEST

START_TEST(below_the_root_directory)
{
    const char *given[] = {"APROF_DIR=spool", NULL};
    ck_assert_int_eq(chdir("/"), 0);
    enter(given);
    environment_hand_down(&config);
    ck_assert_str_eq(config.dir, "/spool");
}
END_TEST

/* A directory that would not fit stays relative: it is never cut. */
START_TEST(a_directory_too_long_to_be_made_absolute)
{
    static char entry[3100] = "APROF_DIR=";
    const char *given[] = {entry, NULL};
    memset(entry + 10, 'd', 3000);
    enter(given);
    ck_assert_uint_eq(strlen(config.dir), 3000);
    ck_assert_int_eq(environment_hand_down(&config), 0);
    ck_assert_uint_eq(strlen(config.dir), 3000);
    ck_assert_str_eq(getenv("APROF_DIR"), config.dir);
}
END_TEST

START_TEST(the_line_at_exit_is_not_the_childrens)
{
    const char *given[] = {"APROF_RUN=x", "APROF_DIR=/s", "APROF_SUMMARY=1", NULL};
    enter(given);
    ck_assert_int_eq(environment_hand_down(&config), 0);
    ck_assert_uint_eq(config.summary, 1);
    ck_assert_str_eq(getenv("APROF_SUMMARY"), "0");
    ck_assert_int_eq(entries(), 3);
}
END_TEST

START_TEST(the_applications_heap_is_not_used)
{
    const char *given[] = {"A=1", NULL};
    enter(given);
    struct mallinfo2 before = mallinfo2();
    ck_assert_int_eq(environment_hand_down(&config), 0);
    environment_leave_children();
    struct mallinfo2 after = mallinfo2();
    ck_assert_uint_eq(before.uordblks, after.uordblks);
    ck_assert_uint_eq(before.hblks, after.hblks);
    /* And libc can go on with an array that it did not make. */
    ck_assert_int_eq(setenv("LATER", "yes", 1), 0);
    ck_assert_int_eq(unsetenv("A"), 0);
    ck_assert_str_eq(getenv("LATER"), "yes");
    ck_assert_str_eq(getenv("APROF_RUN"), config.run);
}
END_TEST

START_TEST(no_environment_at_all)
{
    real_resolve();
    environ = NULL;
    config_parse(&config, environ, no_fault, NULL);
    environment_leave_children();
    ck_assert_int_eq(environment_hand_down(&config), 0);
    ck_assert_int_eq(entries(), 2);
}
END_TEST

/* --- LD_PRELOAD --- */

static char ours[PATH_MAX];

/* The list with %s as our file's name, stripped. */
static const char *strip(const char *list)
{
    static char entry[2 * PATH_MAX];
    static const char *given[] = {"X=1", entry, NULL};
    const char *slash;
    Dl_info info;
    ck_assert(dladdr((void *)environment_leave_children, &info));
    slash = strrchr(info.dli_fname, '/');
    snprintf(ours, sizeof ours, "%s", slash ? slash + 1 : info.dli_fname);
    int at = snprintf(entry, sizeof entry, "LD_PRELOAD=");
    for (; *list; list++)
        at += *list == '@' ? sprintf(entry + at, "%s", ours) : sprintf(entry + at, "%c", *list);
    environ = (char **)given;
    environment_leave_children();
    ck_assert_str_eq(environ[0], "X=1");
    return getenv("LD_PRELOAD");
}

START_TEST(our_library_is_taken_out)
{
    ck_assert_str_eq(strip("/opt/@"), "");
    ck_assert_str_eq(strip("@"), "");
    ck_assert_str_eq(strip("/opt/@:/a/b.so"), "/a/b.so");
    ck_assert_str_eq(strip("/a/b.so:/opt/@"), "/a/b.so");
    ck_assert_str_eq(strip("/a/b.so /opt/@ /c.so"), "/a/b.so:/c.so");
    ck_assert_str_eq(strip("  /opt/@:: /a/b.so : /opt/@ :"), "/a/b.so");
    ck_assert_str_eq(strip("/opt/@:/opt/@"), "");
}
END_TEST

START_TEST(other_libraries_stay)
{
    static const char lists[][32] = {"/opt/@.old:/opt/x@", "/@/y.so:/z.so", "@x"};
    for (size_t i = 0; i < sizeof lists / sizeof *lists; i++) {
        char before[2 * PATH_MAX];
        snprintf(before, sizeof before, "%s", strip(lists[i]));
        environment_leave_children();
        ck_assert_str_eq(getenv("LD_PRELOAD"), before);
        ck_assert_ptr_nonnull(strstr(before, ours));
    }
}
END_TEST

Suite *suite_environment(void)
{
    const TTest *const tests[] = {
        the_first_process_makes_the_run, a_later_process_takes_what_it_was_given, the_mark_is_not_handed_further, a_mark_without_an_id,
        two_runs_have_two_ids, a_relative_directory_becomes_absolute, below_the_root_directory,
        a_directory_too_long_to_be_made_absolute, the_line_at_exit_is_not_the_childrens, the_applications_heap_is_not_used,
        no_environment_at_all, our_library_is_taken_out, other_libraries_stay,
    };
    Suite *suite = suite_create("environment");
    TCase *core = tcase_create("core");
    tcase_add_checked_fixture(core, setup, NULL);
    for (size_t i = 0; i < sizeof tests / sizeof *tests; i++)
        tcase_add_test(core, tests[i]);
    suite_add_tcase(suite, core);
    return suite;
}
