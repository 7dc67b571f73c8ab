/* SPDX-License-Identifier: MIT
 *
 * spool: windows opened, renewed, lost, put aside and taken up; full disks.
 */
#include <sys/resource.h>

#include "tests/unit/spool_fixture.h"

START_TEST(nothing_is_made_before_there_is_something_to_write)
{
    struct spool *spool = spool_with(42, 0, true);
    ck_assert_int_eq(flush(spool), 0);
    ck_assert_int_eq(describe(spool), 0);
    ck_assert_int_eq(seal(spool, 0, true), 0);
    ck_assert(!exists(directory));
    spool_free(spool);
}
END_TEST

START_TEST(live_metadata_is_padded_locked_and_renewed_in_place)
{
    struct spool *spool = spool_with(42, 0, true);
    struct metadata metadata = metadata_of(0);
    struct stat status;
    char large[6000];
    add("a", METRIC_CPU, 5);
    ck_assert_int_eq(spool_flush(spool, profile, &metadata), 0);
    const char *path = file_name(42, 0, "json.live");
    ck_assert_int_eq(stat(path, &status), 0);
    ck_assert_int_eq(status.st_size, 4096);
    ino_t inode = status.st_ino;
    memset(large, 'p', sizeof large);
    large[sizeof large - 1] = '\0';
    metadata.program = large;
    ck_assert_int_eq(spool_describe(spool, &metadata), 0);
    ck_assert_int_eq(stat(path, &status), 0);
    ck_assert_int_eq(status.st_size, 8192);
    metadata.program = "small";
    ck_assert_int_eq(spool_describe(spool, &metadata), 0);
    ck_assert_int_eq(stat(path, &status), 0);
    ck_assert_int_eq(status.st_size, 8192);
    ck_assert_uint_eq(status.st_ino, inode);
    json_t *object = object_of(path);
    ck_assert_str_eq(json_string_value(json_object_get(object, "program")), "small");
    json_decref(object);
    int fd = open(path, O_RDONLY);
    ck_assert_int_eq(flock(fd, LOCK_SH | LOCK_NB), -1);
    ck_assert_int_eq(errno, EWOULDBLOCK);
    spool_free(spool);
    ck_assert_int_eq(flock(fd, LOCK_SH | LOCK_NB), 0);
    close(fd);
}
END_TEST

static const char *described_program(const char *path)
{
    static char name[4];
    json_t *object = object_of(path);
    ck_assert_ptr_nonnull(object);
    strncpy(name, json_string_value(json_object_get(object, "program")), sizeof name - 1);
    json_decref(object);
    return name;
}

static void limit_file_size(rlim_t soft)
{
    struct rlimit limit;
    ck_assert_int_eq(getrlimit(RLIMIT_FSIZE, &limit), 0);
    limit.rlim_cur = soft;
    ck_assert_int_eq(setrlimit(RLIMIT_FSIZE, &limit), 0);
}

START_TEST(metadata_is_replaced_whole_or_not_at_all)
{
    static const rlim_t limits[] = {0, 200, 1000, 4095, 5000, 8191}; /* of 4096 bytes, to be replaced by 4096 and 8192 */
    struct spool *spool = spool_with(42, 0, true);
    struct metadata metadata = metadata_of(0);
    char large[6000];
    memset(large, 'q', sizeof large);
    large[sizeof large - 1] = '\0';
    signal(SIGXFSZ, SIG_IGN);
    add("a", METRIC_CPU, 5);
    ck_assert_int_eq(flush(spool), 0);
    const char *path = file_name(42, 0, "json.live");
    for (size_t i = 0; i < sizeof limits / sizeof *limits; i++) {
        metadata.program = limits[i] < 4096 ? "another one" : large; /* what follows stands elsewhere then */
        limit_file_size(limits[i]);
        ck_assert_int_eq(spool_describe(spool, &metadata), -EFBIG);
        limit_file_size(RLIM_INFINITY);
        ck_assert_str_eq(described_program(path), "p");
    }
    ck_assert_int_eq(spool_describe(spool, &metadata), 0);
    ck_assert_str_eq(described_program(path), "qqq");
    spool_free(spool);
}
END_TEST

START_TEST(descriptors_are_not_kept_where_they_may_not_be)
{
    unsigned before = descriptors();
    struct spool *spool = spool_with(42, MIB, false);
    for (unsigned window = 0; window < 3; window++) {
        for (int i = 1; i <= 5; i++) {
            add("a;b", METRIC_CPU, 5);
            add(i % 2 ? "c" : "d", METRIC_WALL, 5);
            struct metadata metadata = metadata_of(window);
            ck_assert_int_eq(spool_flush(spool, profile, &metadata), 0);
            ck_assert_int_eq(spool_describe(spool, &metadata), 0);
            ck_assert_uint_eq(descriptors(), before);
        }
        ck_assert_int_eq(seal(spool, window, window == 2), 0);
        ck_assert_uint_eq(descriptors(), before);
        ck_assert_uint_eq(sum_of(file_name(42, window, "cpu.collapsed"), NULL), 25);
    }
    ck_assert_uint_eq(count_names(".live"), 0);
    spool_free(spool);
}
END_TEST

START_TEST(a_file_cut_by_somebody_is_begun_anew)
{
    static const off_t lengths[] = {0, 5, 4096, 70000};
    for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++) {
        struct spool *spool = spool_with(42, 0, true);
        char name[64];
        uint64_t sum = 0;
        for (int round = 0; round < 3; round++) {
            for (int k = 0; k < 3000; k++, sum += 10) {
                snprintf(name, sizeof name, "main (app.py:1);f%d (app.py:2)", k);
                add(name, METRIC_CPU, 10);
            }
            ck_assert_int_eq(flush(spool), 0);
            if (round == 0)
                ck_assert_int_eq(truncate(file_name(42, 0, "cpu.collapsed.live"), lengths[i]), 0);
            int described = describe(spool); /* a cut within a page is seen now, one beyond by SIGBUS */
            ck_assert(described == 0 || described == -ESTALE);
            ck_assert_int_eq(flush(spool), 0);
        }
        unsigned files;
        ck_assert_uint_eq(sum_of_all(METRIC_CPU, &files), sum);
        ck_assert_uint_eq(files, 1);
        ck_assert_int_eq(seal(spool, 0, true), 0);
        ck_assert_uint_eq(sum_of_all(METRIC_CPU, NULL), sum);
        spool_free(spool);
        remove_tree(directory);
        profile_clear(profile, false);
    }
}
END_TEST

START_TEST(one_file_removed_begins_a_new_window)
{
    struct spool *spool = spool_with(42, 0, true);
    add("a;b", METRIC_CPU, 5);
    add("a;c", METRIC_WALL, 6);
    ck_assert_int_eq(flush(spool), 0);
    unlink(file_name(42, 0, "wall.collapsed.live"));
    ck_assert_int_eq(describe(spool), -ESTALE);
    ck_assert_int_eq(flush(spool), 0);
    ck_assert_uint_eq(count_names(".live"), 3);
    ck_assert_uint_eq(sum_of(file_name(42, 1, "cpu.collapsed.live"), NULL), 5);
    ck_assert_uint_eq(sum_of(file_name(42, 1, "wall.collapsed.live"), NULL), 6);
    ck_assert_int_eq(seal(spool, 0, false), 0);
    json_t *object = object_of(file_name(42, 1, "json"));
    ck_assert_int_eq(json_integer_value(json_object_get(object, "window")), 1);
    json_decref(object);
    ck_assert(exists(file_name(42, 2, "json.live")));
    spool_free(spool);
}
END_TEST

START_TEST(a_full_disk_stops_new_lines_but_no_counts)
{
    if (!mount_small("size=256k"))
        return;
    struct spool *spool = spool_with(42, 0, true);
    char name[128];
    uint64_t sum = 0;
    add("known", METRIC_CPU, 1);
    ck_assert_int_eq(flush(spool), 0);
    fill_up();
    for (int i = 0; i < 3000; i++, sum += 10) {
        snprintf(name, sizeof name, "main (app.py:1);a_function_with_a_rather_long_name_%d (app.py:2)", i);
        add(name, METRIC_CPU, 10);
    }
    ck_assert_int_eq(flush(spool), -ENOSPC);
    ck_assert_int_eq(describe(spool), 0); /* in place: no room is needed */
    ck_assert_int_eq(limit_of(file_name(42, 0, "json.live"), "spool_full"), 1);
    uint64_t got = sum_of(file_name(42, 0, "cpu.collapsed.live"), NULL); /* every line whole */
    ck_assert_uint_lt(got, sum);
    add("known", METRIC_CPU, 41);
    flush(spool);
    ck_assert_uint_eq(sum_of(file_name(42, 0, "cpu.collapsed.live"), "known"), 42);
    ck_assert_int_eq(seal(spool, 0, false), -ENOSPC); /* the window goes on */
    ck_assert_uint_eq(count_names(".tmp"), 0);
    ck_assert(exists(file_name(42, 0, "json.live")));
    ck_assert_uint_eq(sum_of(file_name(42, 0, "cpu.collapsed.live"), "known"), 42);
    ck_assert_int_eq(umount2(directory, MNT_DETACH), 0); /* as if somebody had moved the disk away */
    ck_assert_int_eq(seal(spool, 0, true), 0);
    ck_assert_uint_eq(sum_of_all(METRIC_CPU, NULL), sum + 42);
    ck_assert_int_ge(limit_of(file_name(42, 1, "json"), "spool_full"), 2);
    ck_assert_int_eq(limit_of(file_name(42, 1, "json"), "spool_lost"), 1);
    spool_free(spool);
}
END_TEST

START_TEST(room_made_on_a_full_disk_is_used)
{
    if (!mount_small("size=1m"))
        return;
    struct spool *spool = spool_with(42, 0, true);
    char name[128];
    uint64_t sum = 0;
    add("known", METRIC_CPU, 1);
    ck_assert_int_eq(flush(spool), 0);
    fill_up();
    for (int i = 0; i < 1000; i++, sum += 10) {
        snprintf(name, sizeof name, "main (app.py:1);a_function_with_a_rather_long_name_%d (app.py:2)", i);
        add(name, METRIC_CPU, 10);
    }
    ck_assert_int_eq(flush(spool), -ENOSPC);
    unlink(path_of("ballast"));
    ck_assert_int_lt(flush(spool), 0); /* not every tick: the disk is asked once a second */
    usleep(1050000);
    ck_assert_int_eq(flush(spool), 0);
    ck_assert_uint_eq(sum_of(file_name(42, 0, "cpu.collapsed.live"), NULL), sum + 1);
    fill_up();
    ck_assert_int_eq(seal(spool, 0, false), -ENOSPC);
    unlink(path_of("ballast"));
    ck_assert_int_eq(seal(spool, 0, false), 0);
    ck_assert_uint_eq(sum_of_all(METRIC_CPU, NULL), sum + 1);
    ck_assert_uint_eq(count_names("json.live"), 1);
    spool_free(spool);
    umount2(directory, MNT_DETACH);
}
END_TEST

START_TEST(paused_it_says_so_and_goes_on_after)
{
    struct spool *spool = spool_with(42, 0, true);
    struct metadata metadata = metadata_of(0);
    unsigned before = descriptors();
    add("a", METRIC_CPU, 5);
    add("b", METRIC_WALL, 5);
    ck_assert_int_eq(flush(spool), 0);
    ck_assert_int_eq(spool_pause(spool, &metadata), 0);
    ck_assert_uint_eq(descriptors(), before);
    json_t *object = object_of(file_name(42, 0, "json.live"));
    ck_assert(json_is_true(json_object_get(object, "paused")));
    json_decref(object);
    int paused = open(file_name(42, 0, "json.live"), O_RDONLY);
    ck_assert_int_eq(flock(paused, LOCK_SH | LOCK_NB), 0); /* what is mapped does not hold it */
    close(paused);
    add("a", METRIC_CPU, 5);
    ck_assert_int_eq(flush(spool), 0); /* through the mapping */
    ck_assert_uint_eq(sum_of(file_name(42, 0, "cpu.collapsed.live"), "a"), 10);
    add("new", METRIC_CPU, 5);
    ck_assert_int_eq(flush(spool), -EAGAIN);
    ck_assert_int_eq(spool_resume(spool, profile, &metadata), 0);
    ck_assert_int_eq(flush(spool), 0);
    ck_assert_uint_eq(sum_of(file_name(42, 0, "cpu.collapsed.live"), NULL), 15);
    object = object_of(file_name(42, 0, "json.live"));
    ck_assert_ptr_null(json_object_get(object, "paused"));
    json_decref(object);
    int fd = open(file_name(42, 0, "json.live"), O_RDONLY);
    ck_assert_int_eq(flock(fd, LOCK_SH | LOCK_NB), -1);
    close(fd);
    spool_free(spool);
}
END_TEST

START_TEST(coming_back_to_files_that_are_not_its_own_it_begins_anew)
{
    struct spool *spool = spool_with(42, 0, true);
    struct metadata metadata = metadata_of(0);
    add("a", METRIC_CPU, 5);
    ck_assert_int_eq(flush(spool), 0);
    ck_assert_int_eq(spool_pause(spool, &metadata), 0);
    unlink(file_name(42, 0, "cpu.collapsed.live"));
    plant(42, 0, "cpu.collapsed.live", 100, 0);
    ck_assert_int_eq(spool_resume(spool, profile, &metadata), 0);
    ck_assert_uint_eq(sum_of(file_name(42, 1, "cpu.collapsed.live"), "a"), 5);
    ck_assert(!exists(file_name(42, 0, "json.live")));
    ck_assert(exists(file_name(42, 0, "cpu.collapsed.live"))); /* somebody else's */
    spool_free(spool);
}
END_TEST

static void limit_descriptors(rlim_t soft)
{
    struct rlimit limit;
    ck_assert_int_eq(getrlimit(RLIMIT_NOFILE, &limit), 0);
    limit.rlim_cur = soft;
    ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &limit), 0);
}

/* What was there stays, counts go on, the rest comes when it can. */
START_TEST(coming_back_without_descriptors_it_waits_for_them)
{
    struct spool *spool = spool_with(42, 0, true);
    struct metadata metadata = metadata_of(0);
    add("a", METRIC_CPU, 5);
    ck_assert_int_eq(flush(spool), 0);
    ck_assert_int_eq(spool_pause(spool, &metadata), 0);
    limit_descriptors(3);
    ck_assert_int_eq(spool_resume(spool, profile, &metadata), -EMFILE);
    add("a", METRIC_CPU, 5);
    add("new", METRIC_CPU, 7);
    ck_assert_int_lt(flush(spool), 0);
    ck_assert_int_eq(seal(spool, 0, false), -EMFILE);
    limit_descriptors(1024);
    ck_assert_uint_eq(sum_of(file_name(42, 0, "cpu.collapsed.live"), NULL), 10);
    ck_assert_int_eq(seal(spool, 0, false), 0);
    ck_assert_uint_eq(sum_of_all(METRIC_CPU, NULL), 17);
    ck_assert_uint_eq(count_names("cpu.collapsed"), 1);
    spool_free(spool);
}
END_TEST

START_TEST(coming_back_with_a_lower_limit_of_size_it_keeps_what_was_there)
{
    struct spool *spool = spool_with(42, 0, true);
    struct metadata metadata = metadata_of(0);
    signal(SIGXFSZ, SIG_IGN);
    add("a", METRIC_CPU, 5);
    ck_assert_int_eq(flush(spool), 0);
    ck_assert_int_eq(spool_pause(spool, &metadata), 0);
    limit_file_size(2);
    ck_assert_int_eq(spool_resume(spool, profile, &metadata), -EFBIG);
    add("a", METRIC_CPU, 5);
    ck_assert_int_eq(flush(spool), 0);
    ck_assert_int_eq(seal(spool, 0, true), -EFBIG);
    limit_file_size(RLIM_INFINITY);
    ck_assert_uint_eq(sum_of_all(METRIC_CPU, NULL), 10);
    spool_free(spool);
}
END_TEST

/* It cannot open what it made before: that stays, and is sealed under its new name. */
START_TEST(coming_back_as_another_user_it_asks_to_be_sealed)
{
    if (geteuid() != 0)
        return;
    struct spool *spool = spool_with(42, 0, true);
    struct metadata metadata = metadata_of(0);
    chmod(top, 0755);
    add("a", METRIC_CPU, 5);
    ck_assert_int_eq(flush(spool), 0);
    ck_assert_int_eq(spool_pause(spool, &metadata), 0);
    ck_assert_int_eq(seteuid(NOBODY), 0);
    ck_assert_int_eq(spool_resume(spool, profile, &metadata), -EACCES);
    add("a", METRIC_CPU, 5);
    add("new", METRIC_CPU, 7);
    ck_assert_int_eq(flush(spool), 0);
    ck_assert_int_eq(describe(spool), 0);
    ck_assert_int_eq(spool_pause(spool, &metadata), 0);
    ck_assert_int_eq(spool_resume(spool, profile, &metadata), 0);
    ck_assert_int_eq(seal(spool, 0, false), 0);
    add("b", METRIC_CPU, 3);
    metadata = metadata_of(1);
    ck_assert_int_eq(spool_flush(spool, profile, &metadata), 0);
    ck_assert_int_eq(spool_describe(spool, &metadata), 0);
    ck_assert_int_eq(seteuid(0), 0);
    ck_assert_uint_eq(sum_of(file_name(42, 0, "cpu.collapsed.live"), NULL), 10); /* in its place */
    ck_assert_uint_eq(sum_of_all(METRIC_CPU, NULL), 20);
    spool_free(spool);
}
END_TEST

Suite *suite_spool(void)
{
    Suite *suite = suite_create("spool");
    TCase *tcase = tcase_create("spool");
    tcase_add_checked_fixture(tcase, setup, teardown);
    tcase_set_timeout(tcase, 60);
    tcase_add_test(tcase, nothing_is_made_before_there_is_something_to_write);
    tcase_add_test(tcase, live_metadata_is_padded_locked_and_renewed_in_place);
    tcase_add_test(tcase, metadata_is_replaced_whole_or_not_at_all);
    tcase_add_test(tcase, descriptors_are_not_kept_where_they_may_not_be);
    tcase_add_test(tcase, a_file_cut_by_somebody_is_begun_anew);
    tcase_add_test(tcase, one_file_removed_begins_a_new_window);
    tcase_add_test(tcase, a_full_disk_stops_new_lines_but_no_counts);
    tcase_add_test(tcase, room_made_on_a_full_disk_is_used);
    tcase_add_test(tcase, paused_it_says_so_and_goes_on_after);
    tcase_add_test(tcase, coming_back_without_descriptors_it_waits_for_them);
    tcase_add_test(tcase, coming_back_with_a_lower_limit_of_size_it_keeps_what_was_there);
    tcase_add_test(tcase, coming_back_as_another_user_it_asks_to_be_sealed);
    tcase_add_test(tcase, coming_back_to_files_that_are_not_its_own_it_begins_anew);
    suite_add_tcase(suite, tcase);
    return suite;
}
