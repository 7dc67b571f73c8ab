/* SPDX-License-Identifier: MIT */
#include "output/metadata.h"

#include <check.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "output/spool_format.h"

static const struct metadata_pair settings[] = {{"APROF_RATE", "100"}, {"APROF_WINDOW", "60"}};
static const struct metadata_pair tags[] = {{"version", "1.4"}, {"region", "eu"}};

/* The one whose object the header shows. */
static struct metadata example(void)
{
    struct metadata metadata = {
        .run = "5f1c0a9e", .host = "web-1", .program = "python3 app.py", .python = "3.11.2", .build = "release",
        .pid = 4242, .ppid = 4200, .settings = settings, .settings_count = 2, .tags = tags, .tags_count = 2,
        .pid_namespace = 4026531836u, .boot = "0b1c2d3e-4f50-6172-8394-a5b6c7d8e9f0", .window = 3,
        .start_us = 1700000000000000u, .end_us = 1700000060000000u, .ended = "window", .rate_asked = 100, .rate_got = 99.8,
        .reader = "copy", .children_without_sample = 2, .loops_count = 1,
    };
    metadata.loops[0] = (struct loop_time){
        .thread = 4242, .idle_ns = 48000000000u, .busy_ns = 12000000999u, .stood_ns = 310000999, .stood_in = 1,
        .step_least_ns = 330000999, .step_most_ns = 341000999, .step_in = 2, .steps_unknown = 2, .counted_ns = 59990000000u,
        .pending_ns = 299950000000u, .pending_peak = 7, .ready_ns = 1200000000, .ready_peak = 5};
    metadata.stood_in[0] = "handle (app.py:12);ask (app.py:30)";
    metadata.step_in[0] = "handle (app.py:12);parse (app.py:50)";
    metadata.counters = (struct counters){
        .ticks_due = 6000, .ticks_taken = 5988, .ticks_missed = 12, .samples = 17000, .dropped = {1, 2, 3, 4, 5, 6, 7, 8, 9},
        .cpu_unseen_ns = 1500000, .cpu_spread_ns = 2500000, .gil_wait_ns = 2500000999, .gil_unknown_ns = 40000000, .gil_wall_ns = 480000000000u, .threads_peak = 8, .tasks_peak = 5000, .tasks_skipped = 10,
        .sampler_cpu_ns = 90000000, .handler_ns = 30000000, .process_cpu_ns = 31000000000u,
        .budget = {.allowed_ns = 308000000, .slowed = 3, .quickened = 1, .rate_mhz = 62500, .least_mhz = 40000}, .heap_bytes = 1400000,
    };
    metadata.counters.limits[LIMIT_depth] = 4;
    metadata.metrics[METRIC_CPU].recorded = metadata.metrics[METRIC_WALL].recorded = metadata.metrics[METRIC_GIL].recorded = true;
    metadata.metrics[METRIC_CPU].total_us = 30870000;
    metadata.metrics[METRIC_CPU].stacks = 412;
    metadata.metrics[METRIC_WALL].total_us = 480000000;
    metadata.metrics[METRIC_WALL].stacks = 530;
    metadata.metrics[METRIC_GIL].total_us = 31000000;
    metadata.metrics[METRIC_GIL].stacks = 400;
    return metadata;
}

/* The example in the header's comment, its lines joined. */
static void header_example(char *text, size_t size)
{
    char line[512];
    size_t length = 0;
    FILE *header = fopen("output/metadata.h", "r");
    ck_assert_msg(header != NULL, "run from the top of the repository");
    while (fgets(line, sizeof line, header)) {
        bool first = strncmp(line, " * {\"schema\"", 12) == 0;
        if (length == 0 && !first)
            continue;
        char *part = line + (first ? 3 : 4);
        part[strcspn(part, "\n")] = '\0';
        length += (size_t)snprintf(text + length, size - length, "%s%s", first ? "" : " ", part);
        if (strstr(part, "}}}"))
            break;
    }
    fclose(header);
    snprintf(text + length, size - length, "\n");
}

static void one_space_each(char *text)
{
    char *to = text;
    for (const char *from = text; *from; from++)
        if (from == text || *from != ' ' || from[-1] != ' ')
            *to++ = *from;
    *to = '\0';
}

START_TEST(the_example_in_the_header_is_what_is_written)
{
    char expected[4096], written[4096];
    struct metadata metadata = example();
    header_example(expected, sizeof expected);
    size_t length = metadata_format(&metadata, written, sizeof written - 1);
    ck_assert_uint_gt(length, 0);
    written[length] = '\0';
    one_space_each(written);
    ck_assert_str_eq(written, expected);
}
END_TEST

START_TEST(what_is_changed_in_place_is_alone_in_an_aligned_word)
{
    char text[4096], host[] = "web-1234567";
    struct metadata metadata = example();
    metadata.ended = "open";
    for (size_t cut = 0; cut < 8; cut++) {
        metadata.host = host + cut;
        metadata.counters.dropped[DROP_deadline] = cut * 1000;
        text[metadata_format(&metadata, text, sizeof text - 1)] = '\0';
        const char *ended = strstr(text, "\"open\", "), *number = strstr(text, "\"deadline\": ");
        ck_assert_uint_eq((size_t)(ended - text) % 8, 0);
        number += strlen("\"deadline\": ");
        number += -(number - text) & 7; /* its word begins here, and a comma comes behind it */
        ck_assert_uint_eq(strtoul(number, NULL, 10), cut * 1000);
        ck_assert_int_eq(number[8], ',');
    }
}
END_TEST

static json_t *object_of(const struct metadata *metadata)
{
    static char text[65536];
    json_error_t error;
    size_t length = metadata_format(metadata, text, sizeof text);
    ck_assert_uint_gt(length, 0);
    json_t *object = json_loadb(text, length, 0, &error);
    ck_assert_msg(object != NULL, "%s", error.text);
    return object;
}

START_TEST(keys_are_those_of_the_format)
{
    static const char *const keys[] = {
#define KEY(name, kind) #name,
        SPOOL_METADATA_KEYS(KEY)
#undef KEY
    };
    struct metadata metadata = example();
    json_t *object = object_of(&metadata), *value;
    const char *key;
    size_t at = 0;
    json_object_foreach(object, key, value)
        if (strcmp(key, "gil") != 0) /* where that is recorded */
            ck_assert_str_eq(key, keys[at++]);
    ck_assert_uint_eq(at, sizeof keys / sizeof *keys);
    json_decref(object);
}
END_TEST

START_TEST(what_is_only_sometimes_so_is_shown_then)
{
    struct metadata metadata = example();
    metadata.paused = metadata.clock_coarse = true;
    json_t *object = object_of(&metadata);
    ck_assert(json_is_true(json_object_get(object, "paused")));
    ck_assert_str_eq(json_string_value(json_object_get(object, "clock")), "coarse");
    ck_assert_ptr_null(json_object_get(object, "thread_reads"));
    json_decref(object);
    metadata.counters.thread_reads = 600; /* all of them, then not all */
    object = object_of(&metadata);
    ck_assert_ptr_null(json_object_get(object, "thread_reads"));
    json_decref(object);
    metadata.counters.threads_left = 2400;
    object = object_of(&metadata);
    json_t *reads = json_object_get(object, "thread_reads");
    ck_assert_int_eq(json_integer_value(json_object_get(reads, "taken")), 600);
    ck_assert_int_eq(json_integer_value(json_object_get(reads, "left")), 2400);
    json_decref(object);
}
END_TEST

START_TEST(strings_of_any_bytes_are_valid_json)
{
    struct metadata metadata = example();
    char bytes[256];
    for (size_t i = 0; i < 255; i++)
        bytes[i] = (char)(i + 1);
    bytes[255] = '\0';
    metadata.program = bytes;
    metadata.run = NULL;
    json_decref(object_of(&metadata));
    metadata.program = "\xed\xa0\x80|\xc0\x80|\xf4\x90\x80\x80|\xe2\x82|\xf0\x9f\x90\x8d \"\\\n";
    json_t *object = object_of(&metadata);
    const char *program = json_string_value(json_object_get(object, "program"));
    ck_assert_ptr_nonnull(strstr(program, "\xf0\x9f\x90\x8d \"\\\n"));
    json_decref(object);
}
END_TEST

START_TEST(a_buffer_that_is_too_small_gives_nothing)
{
    struct metadata metadata = example();
    char text[4096];
    size_t length = metadata_format(&metadata, text, sizeof text);
    for (size_t size = 0; size < length; size++)
        ck_assert_uint_eq(metadata_format(&metadata, text, size), 0);
    ck_assert_uint_eq(metadata_format(&metadata, text, length), length);
}
END_TEST

START_TEST(a_number_of_64_bits_is_still_json)
{
    struct metadata metadata = example();
    metadata.counters.samples = UINT64_MAX;
    json_t *object = object_of(&metadata);
    ck_assert_int_eq(json_integer_value(json_object_get(object, "samples")), INT64_MAX);
    json_decref(object);
}
END_TEST

START_TEST(rates_that_are_no_rates_are_zero)
{
    static const double odd[] = {0.0, -1.0, 1e300, __builtin_nan("")};
    for (size_t i = 0; i < sizeof odd / sizeof *odd; i++) {
        struct metadata metadata = example();
        metadata.rate_got = odd[i];
        json_t *object = object_of(&metadata);
        ck_assert(json_real_value(json_object_get(json_object_get(object, "rate"), "got")) == 0.0);
        json_decref(object);
    }
}
END_TEST

START_TEST(the_machine_is_this_one)
{
    struct metadata metadata = {.run = ""};
    struct utsname names;
    char host[65];
    metadata_of_machine(&metadata, host, sizeof host);
    ck_assert_int_eq(uname(&names), 0);
    ck_assert_str_eq(metadata.host, names.nodename);
    ck_assert_uint_ne(metadata.pid_namespace, 0);
    ck_assert_uint_eq(strlen(metadata.boot), 36);
}
END_TEST

Suite *suite_metadata(void)
{
    Suite *suite = suite_create("metadata");
    TCase *tcase = tcase_create("metadata");
    tcase_add_test(tcase, the_example_in_the_header_is_what_is_written);
    tcase_add_test(tcase, what_is_changed_in_place_is_alone_in_an_aligned_word);
    tcase_add_test(tcase, keys_are_those_of_the_format);
    tcase_add_test(tcase, what_is_only_sometimes_so_is_shown_then);
    tcase_add_test(tcase, strings_of_any_bytes_are_valid_json);
    tcase_add_test(tcase, a_buffer_that_is_too_small_gives_nothing);
    tcase_add_test(tcase, a_number_of_64_bits_is_still_json);
    tcase_add_test(tcase, rates_that_are_no_rates_are_zero);
    tcase_add_test(tcase, the_machine_is_this_one);
    suite_add_tcase(suite, tcase);
    return suite;
}
