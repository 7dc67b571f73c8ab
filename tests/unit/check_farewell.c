/* SPDX-License-Identifier: MIT
 *
 * farewell: what the metadata says of a process whose sampler did not answer.
 */
#include "output/farewell.h"
#include "tests/unit/spool_fixture.h"

static char said[16];

/* How the window says that it ended, and the ticks that met their deadline. */
static json_int_t deadlines(unsigned seq)
{
    json_t *object = object_of(file_name(42, seq, "json.live"));
    ck_assert_ptr_nonnull(object);
    strncpy(said, json_string_value(json_object_get(object, "ended")), sizeof said - 1);
    json_int_t count = json_integer_value(json_object_get(json_object_get(object, "dropped"), "deadline"));
    json_decref(object);
    return count;
}

#define ck_says(seq, word, count)                  \
    do {                                           \
        ck_assert_int_eq(deadlines(seq), count);   \
        ck_assert_str_eq(said, word);              \
    } while (0)

static struct spool *opened(void)
{
    struct spool *spool = spool_with(42, 0, true);
    farewell_postfork_child();
    add("a", METRIC_CPU, 5);
    ck_assert_int_eq(flush(spool), 0);
    return spool;
}

static void close_all(struct spool *spool)
{
    spool_free(spool);
    farewell_say(); /* to nobody */
}

START_TEST(it_stands_in_the_open_window)
{
    struct spool *spool = opened();
    farewell_say(); /* nothing is intended */
    ck_says(0, "open", 0);
    farewell_intend(FAREWELL_EXIT);
    ck_says(0, "open", 0);
    farewell_say();
    ck_says(0, "exit", 1);
    farewell_say();
    ck_says(0, "exit", 1);
    close_all(spool);
}
END_TEST

START_TEST(what_is_renewed_meanwhile_says_it_and_counts_once)
{
    struct spool *spool = opened();
    farewell_intend(FAREWELL_EXIT);
    ck_assert_int_eq(describe(spool), 0);
    ck_says(0, "exit", 1);
    farewell_say();
    ck_says(0, "exit", 1);
    struct metadata metadata = metadata_of(0);
    metadata.ended = "exit"; /* the sampler came to it */
    metadata.counters.dropped[DROP_deadline] = 98;
    ck_assert_int_eq(spool_describe(spool, &metadata), 0);
    farewell_say();
    ck_says(0, "exit", 98);
    close_all(spool);
}
END_TEST

START_TEST(an_exec_that_fails_takes_it_back)
{
    struct spool *spool = opened();
    farewell_intend(FAREWELL_EXEC);
    farewell_say();
    ck_says(0, "exec", 1);
    farewell_take_back();
    farewell_take_back();
    ck_assert_int_eq(deadlines(0), 1);
    ck_assert_str_eq(said, "open");
    ck_assert_int_eq(describe(spool), 0);
    ck_says(0, "open", 0);
    farewell_intend(FAREWELL_EXIT);
    farewell_intend(FAREWELL_EXEC); /* by a handler of atexit */
    farewell_say();
    ck_says(0, "exec", 1);
    farewell_take_back();
    ck_says(0, "exit", 1);
    close_all(spool);
}
END_TEST

START_TEST(it_follows_the_window)
{
    struct spool *spool = opened();
    struct metadata metadata = metadata_of(1);
    for (unsigned window = 0; window < 3; window++) {
        ck_assert_int_eq(seal(spool, window, false), 0);
        add("b", METRIC_CPU, 5);
        metadata.window = window + 1;
        metadata.counters.dropped[DROP_deadline] = 99 * window; /* the place and the width of others change */
        metadata.program = window == 1 ? "another length" : "p";
        ck_assert_int_eq(spool_flush(spool, profile, &metadata), 0);
        ck_assert_int_eq(spool_describe(spool, &metadata), 0);
    }
    farewell_intend(FAREWELL_EXIT);
    farewell_say();
    ck_says(3, "exit", 99 * 2 + 1);
    close_all(spool);
}
END_TEST

START_TEST(after_the_last_window_there_is_no_place)
{
    struct spool *spool = opened();
    ck_assert_int_eq(seal(spool, 0, true), 0);
    ck_assert(!mapped_with("json", " "));
    farewell_intend(FAREWELL_EXIT);
    farewell_say();
    json_t *object = object_of(file_name(42, 0, "json"));
    ck_assert_str_eq(json_string_value(json_object_get(object, "ended")), "exit");
    json_decref(object);
    close_all(spool);
}
END_TEST

START_TEST(while_it_is_put_aside_it_can_be_said)
{
    struct spool *spool = opened();
    struct metadata metadata = metadata_of(0);
    ck_assert_int_eq(spool_pause(spool, &metadata), 0);
    farewell_intend(FAREWELL_EXIT);
    farewell_say();
    ck_says(0, "exit", 1);
    close_all(spool);
}
END_TEST

START_TEST(tags_may_have_any_name)
{
    struct spool *spool = opened();
    struct metadata metadata = metadata_of(0);
    struct metadata_pair tags[] = {{"ended", "never"}, {"deadline", "12345678"}, {"dropped", "{\"deadline\": 7}"}, {"paused", "true"}};
    metadata.tags = tags;
    metadata.tags_count = 4;
    ck_assert_int_eq(spool_describe(spool, &metadata), 0);
    farewell_intend(FAREWELL_EXIT);
    farewell_say();
    ck_says(0, "exit", 1);
    json_t *object = object_of(file_name(42, 0, "json.live")), *kept = json_object_get(object, "tags");
    for (int i = 0; i < 4; i++)
        ck_assert_str_eq(json_string_value(json_object_get(kept, tags[i].key)), tags[i].value);
    json_decref(object);
    close_all(spool);
}
END_TEST

START_TEST(long_metadata_has_no_place)
{
    struct spool *spool = opened();
    struct metadata metadata = metadata_of(0);
    char *program = calloc(1, 100001);
    memset(program, 'p', 100000);
    metadata.program = program;
    ck_assert_int_eq(spool_describe(spool, &metadata), 0);
    farewell_intend(FAREWELL_EXIT);
    farewell_say();
    ck_says(0, "open", 0);
    free(program);
    close_all(spool);
}
END_TEST

START_TEST(a_file_cut_by_somebody_hurts_nobody)
{
    struct spool *spool = opened();
    ck_assert_int_eq(truncate(file_name(42, 0, "json.live"), 0), 0);
    farewell_intend(FAREWELL_EXIT);
    farewell_say();
    close_all(spool);
}
END_TEST

START_TEST(without_the_guard_nothing_is_mapped)
{
    ck_assert_int_eq(guard_start(GUARD_SYSCALL), 0);
    struct spool *spool = opened();
    ck_assert(!mapped_with("json", " "));
    farewell_intend(FAREWELL_EXIT);
    farewell_say();
    ck_says(0, "open", 0);
    ck_assert_int_eq(describe(spool), 0);
    ck_says(0, "exit", 1);
    close_all(spool);
}
END_TEST

START_TEST(a_forked_child_has_nothing_to_say_it_to)
{
    struct spool *spool = opened();
    farewell_intend(FAREWELL_EXIT);
    pid_t child = fork();
    if (child == 0) {
        bool kept = mapped_with("json", " ");
        farewell_postfork_child();
        farewell_intend(FAREWELL_EXEC);
        farewell_say();
        _exit(kept);
    }
    int status;
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    ck_assert_int_eq(status, 0);
    ck_says(0, "open", 0);
    close_all(spool);
}
END_TEST

Suite *suite_farewell(void)
{
    Suite *suite = suite_create("farewell");
    TCase *tcase = tcase_create("farewell");
    tcase_add_checked_fixture(tcase, setup, teardown);
    tcase_add_test(tcase, it_stands_in_the_open_window);
    tcase_add_test(tcase, what_is_renewed_meanwhile_says_it_and_counts_once);
    tcase_add_test(tcase, an_exec_that_fails_takes_it_back);
    tcase_add_test(tcase, it_follows_the_window);
    tcase_add_test(tcase, after_the_last_window_there_is_no_place);
    tcase_add_test(tcase, while_it_is_put_aside_it_can_be_said);
    tcase_add_test(tcase, tags_may_have_any_name);
    tcase_add_test(tcase, long_metadata_has_no_place);
    tcase_add_test(tcase, a_file_cut_by_somebody_hurts_nobody);
    tcase_add_test(tcase, without_the_guard_nothing_is_mapped);
    tcase_add_test(tcase, a_forked_child_has_nothing_to_say_it_to);
    suite_add_tcase(suite, tcase);
    return suite;
}
