/* SPDX-License-Identifier: MIT
 * config: every row of the table, good and bad values, and what is said about them. */
#include "preload/config.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sampler/profile.h"

Suite *suite_config(void);

static char said[16][512];
static int count;

static void hear(void *context, const char *line, const char *remedy)
{
    ck_assert_ptr_eq(context, &count);
    ck_assert_int_lt(count, 16);
    snprintf(said[count++], sizeof said[0], "%s; %s", line, remedy);
}

static struct config config;

/* Parses up to three entries. */
static int parse(const char *one, const char *two, const char *three)
{
    char *environment[] = {(char *)one, (char *)(one ? two : NULL), (char *)(one && two ? three : NULL), NULL};
    count = 0;
    int faults = config_parse(&config, environment, hear, &count);
    ck_assert_int_eq(faults, count);
    return faults;
}

static const struct option_row *row(const char *name)
{
    for (size_t i = 0; i < config_options_count; i++)
        if (strcmp(config_options[i].name, name) == 0)
            return &config_options[i];
    ck_abort_msg("no row %s", name);
    return NULL;
}

static const char *shown(const char *name)
{
    static char text[4096];
    config_show(&config, row(name), text, sizeof text);
    return text;
}

START_TEST(defaults)
{
    ck_assert_int_eq(config_parse(&config, NULL, hear, &count), 0);
    ck_assert_uint_eq(config.enable, 1);
    ck_assert_uint_eq(config.rate, 100);
    ck_assert_str_eq(config.dir, "aprof-spool");
    ck_assert_uint_eq(config.metrics, 1u << METRIC_CPU | 1u << METRIC_WALL | 1u << METRIC_TASK);
    ck_assert_uint_eq(config.clock, CONFIG_CLOCK_CPU);
    ck_assert_uint_eq(config.window, 60);
    ck_assert_uint_eq(config.depth, 512);
    ck_assert_uint_eq(config.memory, 64);
    ck_assert_uint_eq(config.spool, 1024);
    ck_assert_uint_eq(config.children, 1);
    ck_assert_str_eq(config.tags, "");
    ck_assert_str_eq(config.run, "");
    ck_assert_str_eq(shown("APROF_LOG"), "warn");
}
END_TEST

START_TEST(the_table_is_sane)
{
    const struct option_row *option = &config_options[_i];
    ck_assert_int_eq(strncmp(option->name, "APROF_", 6), 0);
    for (size_t i = 0; i < config_options_count; i++)
        ck_assert(i == (size_t)_i || strcmp(config_options[i].name, option->name) != 0);
    ck_assert(*option->help && *option->meta);
    ck_assert_uint_le(option->min, option->max);
    if (option->type == OPTION_NUMBER)
        ck_assert_uint_le(option->max, UINT32_MAX); /* the parser's own bound */
    if (*option->fallback)
        ck_assert(config_set(&config, option, option->fallback));
}
END_TEST

/* What is shown can be given again and is then shown the same. */
static void round_trip(const struct option_row *option, const char *value)
{
    struct config again;
    char first[4096], second[4096];
    memset(&again, 0, sizeof again);
    ck_assert_msg(config_set(&config, option, value), "%s=%s", option->name, value);
    config_show(&config, option, first, sizeof first);
    ck_assert_msg(config_set(&again, option, first), "%s=%s", option->name, first);
    config_show(&again, option, second, sizeof second);
    ck_assert_str_eq(first, second);
    ck_assert_str_eq(first, value);
}

static void round_trip_words(const struct option_row *option)
{
    char words[256], *save = NULL;
    snprintf(words, sizeof words, "%s", option->words);
    for (char *word = strtok_r(words, "|", &save); word; word = strtok_r(NULL, "|", &save))
        round_trip(option, word);
}

START_TEST(what_is_shown_can_be_given_again)
{
    const struct option_row *option = &config_options[_i];
    char number[32], text[4096];
    switch (option->type) {
    case OPTION_NUMBER:
    case OPTION_FLAG:
        for (uint64_t value = option->min; value <= option->max; value += 1 + (option->max - option->min) / 7) {
            snprintf(number, sizeof number, "%lu", (unsigned long)value);
            round_trip(option, number);
        }
        snprintf(number, sizeof number, "%lu", (unsigned long)option->max);
        round_trip(option, number);
        break;
    case OPTION_SET:
        round_trip(option, option->fallback);
        /* fall through */
    case OPTION_CHOICE:
        round_trip_words(option);
        break;
    case OPTION_TEXT:
        memset(text, 'x', option->max);
        text[option->max] = '\0';
        round_trip(option, text);
        text[option->min] = '\0';
        round_trip(option, text);
        round_trip(option, option->min ? "a" : "");
        break;
    }
}
END_TEST

/* One line for each kind of value: beyond either end, not of its type, empty. */
START_TEST(bad_values_are_refused)
{
    const struct option_row *option = &config_options[_i];
    char value[8192];
    if (option->type == OPTION_TEXT) {
        memset(value, 'x', option->max + 1);
        value[option->max + 1] = '\0';
        ck_assert(!config_set(&config, option, value));
        ck_assert(option->min == 0 || !config_set(&config, option, ""));
        return;
    }
    const char *const bad[] = {"", " ", "abc", "-1", "+1", " 1", "1 ", "0x1", "1.0", "1e3", ",", "|", "cpu|monotonic", "cpu,", ",cpu", "CPU",
                               "18446744073709551616", "18446744073709551617", "4294967296", "99999999999999999999999999999999999"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        ck_assert_msg(!config_set(&config, option, bad[i]), "%s=%s", option->name, bad[i]);
    if (option->type == OPTION_NUMBER || option->type == OPTION_FLAG) {
        snprintf(value, sizeof value, "%lu", (unsigned long)option->max + 1);
        ck_assert(!config_set(&config, option, value));
        if (option->min) {
            snprintf(value, sizeof value, "%lu", (unsigned long)option->min - 1);
            ck_assert(!config_set(&config, option, value));
        }
    }
}
END_TEST

START_TEST(a_bad_value_costs_one_line)
{
    ck_assert_int_eq(parse("APROF_RATE=abc", NULL, NULL), 1);
    ck_assert_str_eq(said[0], "APROF_RATE: \"abc\" is not a number from 1 to 20000; using 100");
    ck_assert_uint_eq(config.rate, 100);
    ck_assert_int_eq(parse("APROF_ENABLE=yes", "APROF_CLOCK=wall", "APROF_METRICS=cpu,heat"), 3);
    ck_assert_str_eq(said[0], "APROF_ENABLE: \"yes\" is neither 0 nor 1; using 1");
    ck_assert_str_eq(said[1], "APROF_CLOCK: \"wall\" is not one of cpu or monotonic; using cpu");
    ck_assert_ptr_eq(strstr(said[2], "APROF_METRICS: \"cpu,heat\" is not a list of words from cpu"), said[2]);
    ck_assert_ptr_nonnull(strstr(said[2], ", joined by commas; using cpu,wall"));
    ck_assert_int_eq(parse("APROF_LOG=", "APROF_READER=x", "APROF_DIR="), 3);
    ck_assert_str_eq(said[0], "APROF_LOG: \"\" is not one of quiet, warn, info or debug; using warn");
    ck_assert_str_eq(said[1], "APROF_READER: \"x\" is not one of auto, copy or syscall; using auto");
    ck_assert_str_eq(said[2], "APROF_DIR: \"\" is not a text of 1 to 3000 bytes; using aprof-spool");
}
END_TEST

START_TEST(an_unknown_name_costs_one_line)
{
    ck_assert_int_eq(parse("APROF_RAT=5", "APROF_=", "APROF_RATE=5"), 2);
    ck_assert_str_eq(said[0], "APROF_RAT: there is no such setting (aprof-run --help lists them); ignored");
    ck_assert_str_eq(said[1], "APROF_: there is no such setting (aprof-run --help lists them); ignored");
    ck_assert_uint_eq(config.rate, 5);
    ck_assert_int_eq(parse("APROF_RATE", "XAPROF_RATE=1", "aprof_rate=2"), 0); /* not ours, or no entry at all */
    ck_assert_uint_eq(config.rate, 100);
}
END_TEST

START_TEST(a_long_or_hostile_value_is_shown_cut_and_clean)
{
    char entry[4096] = "APROF_RATE=\x1b[31m\n\r\x7f";
    memset(entry + strlen(entry), 'y', 2000);
    ck_assert_int_eq(parse(entry, NULL, NULL), 1);
    ck_assert_uint_lt(strlen(said[0]), 200);
    for (const char *c = said[0]; *c; c++)
        ck_assert((unsigned char)*c >= 0x20 && *c != 0x7f);
    ck_assert_ptr_nonnull(strstr(said[0], "yyy...\" is not a number"));
    memset(entry, 'A', sizeof entry - 1);
    memcpy(entry, "APROF_", 6);
    entry[3000] = '=';
    ck_assert_int_eq(parse(entry, NULL, NULL), 1);
    ck_assert_uint_lt(strlen(said[0]), 200);
}
END_TEST

START_TEST(an_unknown_name_is_shown_clean)
{
    ck_assert_int_eq(parse("APROF_\x1b[31m\n=1", NULL, NULL), 1);
    for (const char *c = said[0]; *c; c++)
        ck_assert((unsigned char)*c >= 0x20);
}
END_TEST

/* getenv answers with the first, and so does everything else that asks. */
START_TEST(of_several_entries_the_first_counts)
{
    ck_assert_int_eq(parse("APROF_RATE=50", "APROF_RATE=70", "APROF_RATE=abc"), 0);
    ck_assert_uint_eq(config.rate, 50);
    ck_assert_int_eq(parse("APROF_RATE=abc", "APROF_RATE=70", NULL), 1);
    ck_assert_uint_eq(config.rate, 100);
}
END_TEST

START_TEST(an_equals_sign_may_be_in_a_value)
{
    ck_assert_int_eq(parse("APROF_DIR=/a=b=c", "APROF_TAGS=x=y=z", NULL), 0);
    ck_assert_str_eq(config.dir, "/a=b=c");
    ck_assert_str_eq(config.tags, "x=y=z");
}
END_TEST

START_TEST(sets_are_shown_in_the_tables_order)
{
    ck_assert_int_eq(parse("APROF_METRICS=wall,cpu,wall", NULL, NULL), 0);
    ck_assert_str_eq(shown("APROF_METRICS"), "cpu,wall");
    ck_assert_int_eq(parse("APROF_METRICS=wall", NULL, NULL), 0);
    ck_assert_uint_eq(config.metrics, 1u << METRIC_WALL);
    ck_assert_str_eq(shown("APROF_METRICS"), "wall");
}
END_TEST

START_TEST(a_small_buffer_is_not_overrun)
{
    char text[8];
    parse("APROF_TAGS=a=1234567890123", "APROF_METRICS=cpu,wall", NULL);
    for (size_t i = 0; i < config_options_count; i++) {
        memset(text, 'Z', sizeof text);
        config_show(&config, &config_options[i], text, 4);
        ck_assert_uint_lt(strlen(text), 4);
        ck_assert_int_eq(text[4], 'Z');
    }
}
END_TEST

START_TEST(hostile_environments)
{
    uint32_t random = 4711;
    char entry[64] = "APROF_";
    for (int round = 0; round < 20000; round++) {
        const struct option_row *option = &config_options[(random >> 8) % config_options_count];
        size_t at = (size_t)snprintf(entry, sizeof entry, "%s=", option->name), end = at + (random >> 20) % 24;
        for (; at < end; at++) {
            random = random * 1664525 + 1013904223;
            entry[at] = (char)(1 + (random >> 24) % 255);
        }
        entry[at] = '\0';
        random = random * 1664525 + 1013904223;
        parse(entry, NULL, NULL);
        char text[4096];
        config_show(&config, option, text, sizeof text);
        ck_assert(option->type == OPTION_TEXT || config_set(&config, option, text));
    }
}
END_TEST

/* --- tags --- */

static struct metadata_pair pairs[4];

static uint32_t tags(const char *given, uint32_t most)
{
    static char text[1200];
    snprintf(text, sizeof text, "%s", given);
    count = 0;
    return config_tags(text, pairs, most, hear, &count);
}

START_TEST(tags_are_split)
{
    ck_assert_uint_eq(tags("version=1.4,region=eu,empty=,a=b=c", 4), 4);
    ck_assert_int_eq(count, 0);
    ck_assert_str_eq(pairs[0].key, "version");
    ck_assert_str_eq(pairs[0].value, "1.4");
    ck_assert_str_eq(pairs[2].value, "");
    ck_assert_str_eq(pairs[3].key, "a");
    ck_assert_str_eq(pairs[3].value, "b=c");
}
END_TEST

static uint32_t labels(const char *given, const char *name[4])
{
    static char text[1200];
    snprintf(text, sizeof text, "%s", given);
    count = 0;
    return config_labels(text, name, 4, hear, &count);
}

START_TEST(labels_are_split)
{
    const char *name[4];
    ck_assert_uint_eq(labels("", name), 0);
    ck_assert_uint_eq(labels(",request_route,,tenant.id-2,", name), 2);
    ck_assert_int_eq(count, 0);
    ck_assert_str_eq(name[0], "request_route");
    ck_assert_str_eq(name[1], "tenant.id-2");
    ck_assert_uint_eq(labels("a b,ok,c=d,\xc3\xa9", name), 1);
    ck_assert_int_eq(count, 3);
    ck_assert_str_eq(said[0], "APROF_LABEL: \"a b\" is not made of letters, digits, _, . and -; left out");
    ck_assert_str_eq(name[0], "ok");
    ck_assert_uint_eq(labels("a,b,c,d,e,f", name), 4);
    ck_assert_int_eq(count, 2);
    ck_assert_str_eq(said[0], "APROF_LABEL: \"e\" is one too many; left out");
}
END_TEST

START_TEST(what_is_no_tag_is_left_out)
{
    ck_assert_uint_eq(tags("", 4), 0);
    ck_assert_uint_eq(tags(",,", 4), 0);
    ck_assert_int_eq(count, 0);
    ck_assert_uint_eq(tags("a=1,loose,=x,b=2,", 4), 2);
    ck_assert_int_eq(count, 2);
    ck_assert_str_eq(said[0], "APROF_TAGS: \"loose\" is not NAME=VALUE; left out");
    ck_assert_str_eq(said[1], "APROF_TAGS: \"=x\" is not NAME=VALUE; left out");
    ck_assert_str_eq(pairs[1].key, "b");
}
END_TEST

START_TEST(too_many_tags_are_left_out)
{
    ck_assert_uint_eq(tags("a=1,b=2,c=3", 2), 2);
    ck_assert_int_eq(count, 1);
    ck_assert_ptr_nonnull(strstr(said[0], "there are too many"));
}
END_TEST

Suite *suite_config(void)
{
    const TTest *const once[] = {
        defaults, a_bad_value_costs_one_line, an_unknown_name_costs_one_line, a_long_or_hostile_value_is_shown_cut_and_clean,
        an_unknown_name_is_shown_clean, of_several_entries_the_first_counts, an_equals_sign_may_be_in_a_value,
        sets_are_shown_in_the_tables_order, a_small_buffer_is_not_overrun, hostile_environments, tags_are_split,
        what_is_no_tag_is_left_out, labels_are_split, too_many_tags_are_left_out,
    };
    Suite *suite = suite_create("config");
    TCase *core = tcase_create("core"), *rows = tcase_create("each row");
    for (size_t i = 0; i < sizeof once / sizeof *once; i++)
        tcase_add_test(core, once[i]);
    tcase_set_timeout(core, 60);
    tcase_add_loop_test(rows, the_table_is_sane, 0, (int)config_options_count);
    tcase_add_loop_test(rows, what_is_shown_can_be_given_again, 0, (int)config_options_count);
    tcase_add_loop_test(rows, bad_values_are_refused, 0, (int)config_options_count);
    suite_add_tcase(suite, core);
    suite_add_tcase(suite, rows);
    return suite;
}
