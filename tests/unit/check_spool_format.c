/* SPDX-License-Identifier: MIT */
#include "output/spool_format.h"

#include <check.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "sampler/counters.h"

#define LIVE "aprof.web-1.42.1700000000000000.000007.json.live"

START_TEST(names_are_read_from_the_right)
{
    struct spool_name name;
    ck_assert(spool_name_parse("aprof.web_1.42.1700000000000000.000007.cpu.collapsed.live", &name));
    ck_assert_str_eq(name.host, "web_1");
    ck_assert_str_eq(name.metric, "cpu");
    ck_assert_uint_eq(name.pid, 42);
    ck_assert_uint_eq(name.start_us, 1700000000000000u);
    ck_assert_uint_eq(name.seq, 7);
    ck_assert_int_eq(name.state, SPOOL_LIVE);
    ck_assert(spool_name_parse("aprof.h.1.2.1000000.json", &name));
    ck_assert_str_eq(name.metric, "");
    ck_assert_uint_eq(name.seq, 1000000);
    ck_assert_int_eq(name.state, SPOOL_SEALED);
    ck_assert(spool_name_parse("aprof.h.1.2.000000.json.tmp", &name));
    ck_assert_int_eq(name.state, SPOOL_TEMPORARY);
}
END_TEST

START_TEST(names_made_are_names_read)
{
    static const char *const texts[] = {
        "aprof.h.1.2.000000.json", "aprof.h.1.2.000000.json.live", "aprof.h.1.2.000000.json.tmp",
        "aprof.a-b_c.4194304.1700000000000000.123456.wall.collapsed", "aprof.h.1.2.12345678.cpu.collapsed.live",
    };
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        struct spool_name name;
        char text[SPOOL_NAME_MAX + 1];
        ck_assert(spool_name_parse(texts[i], &name));
        ck_assert_uint_eq(spool_name_format(&name, text, sizeof text), strlen(texts[i]));
        ck_assert_str_eq(text, texts[i]);
        ck_assert_uint_eq(spool_name_format(&name, text, strlen(texts[i])), 0);
    }
}
END_TEST

START_TEST(other_names_are_not_ours)
{
    static const char *const texts[] = {
        "", ".", "..", ".aprof.lock", ".gitignore", "aprof", "aprof.json", "aprof.h.1.2.00001.json", "aprof.h.1.x.000001.json",
        "aprof.h.1.2.000001.collapsed", "aprof.h.1.2.000001.CPU.collapsed", "aprof.h.1.2.000001.cpu.collapsed.gz",
        "aprof..1.2.000001.json", "bprof.h.1.2.000001.json", "aprof.h.1.2.000001.json.live.tmp", "aprof.h/x.1.2.000001.json",
        "aprof.h.1.99999999999999999999999.000001.json", "xaprof.h.1.2.000001.json", "aprof.h.1.2.000001.cpu.collapsed.",
    };
    struct spool_name name;
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        ck_assert_msg(!spool_name_parse(texts[i], &name), "%s", texts[i]);
}
END_TEST

START_TEST(host_names_become_fit_for_names)
{
    char host[SPOOL_HOST_MAX + 1], large[200];
    spool_host_clean("web-1.example.org", host, sizeof host);
    ck_assert_str_eq(host, "web-1_example_org");
    spool_host_clean("", host, sizeof host);
    ck_assert_str_eq(host, "_");
    spool_host_clean("../\xc3\xa4 ;", host, sizeof host);
    ck_assert_str_eq(host, "_______");
    memset(large, 'x', sizeof large - 1);
    large[sizeof large - 1] = '\0';
    ck_assert_uint_eq(spool_host_clean(large, host, sizeof host), SPOOL_HOST_MAX);
}
END_TEST

START_TEST(lines_split_at_the_last_space)
{
    static const struct { const char *line; size_t stack; uint64_t count; } good[] = {
        {"a 1", 1, 1}, {"f (a b.py:1);g (x:2) 000000000042", 20, 42}, {"[overflow] 18446744073709551615", 10, UINT64_MAX},
    };
    static const char *const bad[] = {"", "a", "a ", " 1", "a 1 ", "a1", "a x1", "a 18446744073709551616", "a -1", "1"};
    size_t stack;
    uint64_t count;
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        ck_assert(spool_line_parse(good[i].line, strlen(good[i].line), &stack, &count));
        ck_assert_uint_eq(stack, good[i].stack);
        ck_assert_uint_eq(count, good[i].count);
    }
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        ck_assert_msg(!spool_line_parse(bad[i], strlen(bad[i]), &stack, &count), "%s", bad[i]);
}
END_TEST

START_TEST(frames_split_at_the_last_bracket)
{
    struct spool_frame parts;
    const char *frame = "f (g) (dir\\x20(1)/a:b.py:12)";
    ck_assert(spool_frame_split(frame, strlen(frame), &parts));
    ck_assert_uint_eq(parts.name_length, 5);
    ck_assert_uint_eq(parts.path_length, strlen("dir\\x20(1)/a:b.py"));
    ck_assert_int_eq(memcmp(parts.path, "dir\\x20(1)/a:b.py", parts.path_length), 0);
    ck_assert_uint_eq(parts.line, 12);
    ck_assert(!spool_frame_split("[ready]", 7, &parts));
    ck_assert_uint_eq(parts.name_length, 7);
    ck_assert(!spool_frame_split("f (x:)", 6, &parts));
    ck_assert(!spool_frame_split("(x:1)", 5, &parts));
}
END_TEST

START_TEST(escapes_are_undone)
{
    char out[64];
    const char *text = "a\\x3bb\\x5cx\\xff\\xZ1\\x4";
    size_t length = spool_unescape(text, strlen(text), out);
    ck_assert_uint_eq(length, strlen("a;b\\x\xff\\xZ1\\x4"));
    ck_assert_int_eq(memcmp(out, "a;b\\x\xff\\xZ1\\x4", length), 0);
}
END_TEST

START_TEST(reasons_are_those_of_the_counters)
{
    static const char *const counted[] = {
#define X(name) #name,
        DROP_REASONS(X)
#undef X
    };
    static const char *const written[] = {
#define KEY(name, lost) #name,
        SPOOL_DROPPED_KEYS(KEY)
#undef KEY
    };
    ck_assert_uint_eq(sizeof counted, sizeof written);
    for (size_t i = 0; i < DROP_COUNT; i++)
        ck_assert_str_eq(counted[i], written[i]);
}
END_TEST

START_TEST(the_rule_of_who_is_alive)
{
    enum { S = 1000000 };
    static const struct { struct spool_life life; bool dead; } rows[] = {
        {{.missing = true}, true},
        {{.lock = SPOOL_LOCK_HELD, .silent_us = 3600u * S, .window_us = 60u * S}, false},
        {{.lock = SPOOL_LOCK_FREE, .silent_us = 4u * S, .window_us = 60u * S}, false},
        {{.lock = SPOOL_LOCK_FREE, .silent_us = 6u * S, .window_us = 60u * S}, true},
        {{.lock = SPOOL_LOCK_FREE, .paused = true, .silent_us = 170u * S, .window_us = 60u * S}, false},
        {{.lock = SPOOL_LOCK_FREE, .paused = true, .silent_us = 190u * S, .window_us = 60u * S}, true},
        {{.lock = SPOOL_LOCK_FREE, .paused = true, .over = true, .silent_us = 4u * S, .window_us = 60u * S}, false},
        {{.lock = SPOOL_LOCK_FREE, .paused = true, .over = true, .silent_us = 6u * S, .window_us = 60u * S}, true},
        {{.lock = SPOOL_LOCK_HELD, .over = true, .silent_us = 3600u * S, .window_us = 60u * S}, false},
        {{.lock = SPOOL_LOCK_REFUSED, .silent_us = 61u * S, .window_us = 1u * S}, false},
        {{.lock = SPOOL_LOCK_REFUSED, .silent_us = 63u * S, .window_us = 1u * S}, true},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        ck_assert_msg(spool_life_is_dead(&rows[i].life) == rows[i].dead, "row %zu", i);
}
END_TEST

static uint64_t changed_us(int fd)
{
    struct stat status;
    ck_assert_int_eq(fstat(fd, &status), 0);
    return (uint64_t)status.st_mtim.tv_sec * 1000000u + (uint64_t)status.st_mtim.tv_nsec / 1000u;
}

START_TEST(a_live_file_is_judged_by_lock_and_silence)
{
    char directory[] = "/tmp/check_spool_format.XXXXXX";
    ck_assert_ptr_nonnull(mkdtemp(directory));
    int dir = open(directory, O_RDONLY | O_DIRECTORY);
    ck_assert(spool_window_is_dead(dir, LIVE, 0)); /* missing */
    int fd = openat(dir, LIVE, O_RDWR | O_CREAT | O_EXCL, 0600);
    static const char object[] = "{\"window\": 3, \"settings\": {\"APROF_WINDOW\": \"100\"}}\n";
    ck_assert_int_eq(write(fd, object, sizeof object - 1), sizeof object - 1);
    uint64_t now = changed_us(fd);
    ck_assert(!spool_window_is_dead(dir, LIVE, now));
    ck_assert(!spool_window_is_dead(dir, LIVE, now - 10000000)); /* a clock that was put back */
    ck_assert(spool_window_is_dead(dir, LIVE, now + 5100000));
    ck_assert_int_eq(flock(fd, LOCK_EX | LOCK_NB), 0);
    ck_assert(!spool_window_is_dead(dir, LIVE, now + 3600000000u));
    ck_assert_int_eq(flock(fd, LOCK_UN), 0);
    static const char paused[] = "{\"settings\": {\"APROF_WINDOW\": \"100\"}, \"tags\": {\"a\": \"\\\"paused\\\": true\"}, \"paused\": true}\n";
    char padding[5000];
    memset(padding, ' ', sizeof padding);
    ck_assert_int_eq(pwrite(fd, padding, sizeof padding, 0), sizeof padding);
    ck_assert_int_eq(pwrite(fd, paused, sizeof paused - 1, 4120), sizeof paused - 1); /* across the reader's blocks */
    now = changed_us(fd);
    ck_assert(!spool_window_is_dead(dir, LIVE, now + 259000000));
    ck_assert(spool_window_is_dead(dir, LIVE, now + 261000000));
    static const char *const ended[] = {"{\"ended\":   \"open\", \"tags\": {\"ended\": \"exit\"}, \"paused\": true}\n",
                                        "{\"ended\":   \"exit\", \"tags\": {\"ended\": \"open\"}, \"paused\": true}\n"};
    for (int over = 0; over < 2; over++) {
        ck_assert_int_eq(pwrite(fd, padding, sizeof padding, 0), sizeof padding);
        ck_assert_int_eq(pwrite(fd, ended[over], strlen(ended[over]), 0), (ssize_t)strlen(ended[over]));
        ck_assert(spool_window_is_dead(dir, LIVE, changed_us(fd) + 6000000) == over);
    }
    unlinkat(dir, LIVE, 0);
    rmdir(directory);
}
END_TEST

Suite *suite_spool_format(void)
{
    Suite *suite = suite_create("spool_format");
    TCase *tcase = tcase_create("format");
    tcase_add_test(tcase, names_are_read_from_the_right);
    tcase_add_test(tcase, names_made_are_names_read);
    tcase_add_test(tcase, other_names_are_not_ours);
    tcase_add_test(tcase, host_names_become_fit_for_names);
    tcase_add_test(tcase, lines_split_at_the_last_space);
    tcase_add_test(tcase, frames_split_at_the_last_bracket);
    tcase_add_test(tcase, escapes_are_undone);
    tcase_add_test(tcase, reasons_are_those_of_the_counters);
    tcase_add_test(tcase, the_rule_of_who_is_alive);
    tcase_add_test(tcase, a_live_file_is_judged_by_lock_and_silence);
    suite_add_tcase(suite, tcase);
    return suite;
}
