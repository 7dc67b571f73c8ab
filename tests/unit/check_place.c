/* SPDX-License-Identifier: MIT
 *
 * place: directories that are missing, forbidden, moved; names that are taken.
 */
#include "tests/unit/spool_fixture.h"

START_TEST(planted_names_are_not_followed)
{
    char target[96];
    size_t size;
    snprintf(target, sizeof target, "%s/target", top);
    FILE *file = fopen(target, "w");
    fputs("precious\n", file);
    fclose(file);
    ck_assert_int_eq(mkdir(directory, 0700), 0);
    ck_assert_int_eq(symlink(target, file_name(42, 0, "json.live")), 0);
    ck_assert_int_eq(symlink(target, file_name(42, 1, "cpu.collapsed.live")), 0);
    ck_assert_int_eq(symlink(target, file_name(42, 2, "cpu.collapsed.tmp")), 0);
    ck_assert_int_eq(symlink(target, path_of(".aprof.lock")), 0);
    struct spool *spool = spool_with(42, MIB, true);
    add("a;b", METRIC_CPU, 5);
    ck_assert_int_eq(flush(spool), 0);
    ck_assert_uint_eq(sum_of(file_name(42, 2, "cpu.collapsed.live"), NULL), 5);
    ck_assert_int_eq(seal(spool, 0, true), 0);
    ck_assert_uint_eq(sum_of(file_name(42, 2, "cpu.collapsed"), NULL), 5);
    char *text = content(target, &size);
    ck_assert_str_eq(text, "precious\n");
    free(text);
    spool_free(spool);
}
END_TEST

START_TEST(a_directory_taken_away_is_made_again_with_everything)
{
    struct spool *spool = spool_with(42, 0, true);
    add("a;b", METRIC_CPU, 5);
    add("a;c", METRIC_WALL, 6);
    ck_assert_int_eq(flush(spool), 0);
    remove_tree(directory);
    ck_assert_int_eq(describe(spool), -ESTALE);
    ck_assert_int_eq(flush(spool), 0);
    ck_assert_uint_eq(sum_of_all(METRIC_CPU, NULL), 5);
    ck_assert_uint_eq(sum_of_all(METRIC_WALL, NULL), 6);
    ck_assert(exists(path_of(".gitignore")));
    char moved[96];
    snprintf(moved, sizeof moved, "%s/moved", top);
    ck_assert_int_eq(rename(directory, moved), 0);
    add("a;b", METRIC_CPU, 5);
    ck_assert_int_eq(seal(spool, 0, true), 0);
    ck_assert_uint_eq(sum_of_all(METRIC_CPU, NULL), 10);
    ck_assert_uint_eq(count_names(".live"), 0);
    spool_free(spool);
}
END_TEST

START_TEST(a_directory_that_opens_up_gets_what_waited)
{
    if (geteuid() != 0) {
        printf("spool: forbidden directories not run: not root\n");
        return;
    }
    ck_assert_int_eq(mkdir(directory, 0755), 0);
    ck_assert_int_eq(chmod(top, 0755), 0);
    pid_t child = fork();
    if (child == 0) {
        ck_assert_int_eq(setresuid(NOBODY, NOBODY, NOBODY), 0);
        struct spool *spool = spool_with(42, 0, true);
        add("a;b", METRIC_CPU, 5);
        if (flush(spool) != -EACCES || flush(spool) != -EACCES)
            _exit(1);
        raise(SIGSTOP);
        usleep(1050000);
        add("a;b", METRIC_CPU, 5);
        _exit(flush(spool) != 0);
    }
    int status;
    waitpid(child, &status, WUNTRACED);
    ck_assert(WIFSTOPPED(status));
    ck_assert_int_eq(chmod(directory, 01777), 0);
    kill(child, SIGCONT);
    waitpid(child, &status, 0);
    ck_assert(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    ck_assert_uint_eq(sum_of(file_name(42, 0, "cpu.collapsed.live"), NULL), 10);
}
END_TEST

START_TEST(a_relative_or_impossible_directory_is_an_error)
{
    static const struct { const char *path; int error; } rows[] = {
        {"relative/spool", -EINVAL}, {"", -EINVAL}, {"/dev/null/spool", -ENOTDIR}, {"/proc/none/spool", -ENOENT}};
    add("a", METRIC_CPU, 5);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct spool *spool = spool_new(&(struct spool_options){rows[i].path, "h", 1, START, MIB, true});
        ck_assert_int_eq(flush(spool), rows[i].error);
        ck_assert_int_eq(seal(spool, 0, true), rows[i].error);
        ck_assert_uint_eq(profile_total_ns(profile, METRIC_CPU), 5000);
        spool_free(spool);
    }
}
END_TEST

START_TEST(missing_directories_above_are_made)
{
    strcat(directory, "/deep/er");
    struct spool *spool = spool_with(42, 0, true);
    add("a", METRIC_CPU, 5);
    ck_assert_int_eq(flush(spool), 0);
    ck_assert_uint_eq(sum_of(file_name(42, 0, "cpu.collapsed.live"), NULL), 5);
    spool_free(spool);
}
END_TEST

START_TEST(an_umask_that_takes_everything_takes_nothing_from_us)
{
    remove_tree(top);
    if (geteuid() == 0) /* whom modes do not stop */
        ck_assert_int_eq(setresuid(NOBODY, NOBODY, NOBODY), 0);
    snprintf(top, sizeof top, "/tmp/check_spool.umask.%d", (int)getpid());
    snprintf(directory, sizeof directory, "%s/deep/er", top);
    umask(0777);
    struct spool *spool = spool_with(42, MIB, true);
    add("a", METRIC_CPU, 5);
    ck_assert_int_eq(flush(spool), 0);
    ck_assert_uint_eq(mode_of(directory), 0700);
    ck_assert_uint_eq(mode_of(file_name(42, 0, "cpu.collapsed.live")), 0600);
    ck_assert_int_eq(seal(spool, 0, true), 0);
    ck_assert_uint_eq(mode_of(path_of(".aprof.lock")), 0600);
    ck_assert_uint_eq(mode_of(path_of(".gitignore")), 0600);
    ck_assert_uint_eq(sum_of(file_name(42, 0, "cpu.collapsed"), NULL), 5);
    spool_free(spool);
}
END_TEST

Suite *suite_place(void)
{
    Suite *suite = suite_create("place");
    TCase *tcase = tcase_create("place");
    tcase_add_checked_fixture(tcase, setup, teardown);
    tcase_set_timeout(tcase, 60);
    tcase_add_test(tcase, planted_names_are_not_followed);
    tcase_add_test(tcase, a_directory_taken_away_is_made_again_with_everything);
    tcase_add_test(tcase, a_directory_that_opens_up_gets_what_waited);
    tcase_add_test(tcase, a_relative_or_impossible_directory_is_an_error);
    tcase_add_test(tcase, missing_directories_above_are_made);
    tcase_add_test(tcase, an_umask_that_takes_everything_takes_nothing_from_us);
    suite_add_tcase(suite, tcase);
    return suite;
}
