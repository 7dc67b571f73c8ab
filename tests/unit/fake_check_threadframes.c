/* SPDX-License-Identifier: MIT
 * threadframes: which name a thread has when, and how many different ones there are. */
#include "sampler/threadframes.h"

#include <stdio.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "hooks/mem.h"
#include "tests/unit/fake_threadnames.h"

#define SECOND 1000000000u
#define THREADS 1200
#define PTHREAD(i) ((uint64_t)HIGH << 30 | (unsigned)(i))

Suite *suite_threadframes(void);

static struct stacks stacks;
static struct counters counters;
static struct threadframes *all;
static struct threadframe threads[THREADS];
static uint64_t now;

static void start(int minor)
{
    begin(minor);
    ck_assert_int_eq(mem_init((size_t)64 << 20), 0);
    stacks = (struct stacks){.profile = profile_new(), .target = &target};
    now = SECOND;
    all = threadframes_new(&target, now);
    ck_assert_ptr_nonnull(all);
    ck_assert_int_eq(prctl(PR_SET_NAME, "the;kernel's"), 0);
}

static struct threadframe *join(int i)
{
    threads[i] = (struct threadframe){.tid = gettid(), .interp = INTERP_AT, .pthread = PTHREAD(i)};
    ck_assert(threadframes_join(all, &threads[i]));
    return &threads[i];
}

static bool tick(uint64_t later, bool ran)
{
    now += later;
    return threadframes_tick(all, now, ran, &counters);
}

static const char *marker(int i)
{
    static char text[2048];
    profile_stack stack = threadframes_marker(all, &threads[i], &stacks);
    text[profile_text(stacks.profile, stack, text, sizeof text - 1)] = '\0';
    return text;
}

static char names[4][16] = {"zero", "one", "two", "three"};

/* As many threads as Python knows. */
static void python_knows(int count)
{
    uintptr_t pairs[8];
    for (int i = 0; i < count; i++) {
        pairs[2 * i] = number(IDENT_AT(i), size_of(2), (uint32_t)i, HIGH);
        pairs[2 * i + 1] = thread(i, fake_str(&target, NAME_AT(i), names[i]));
    }
    interpreter(MODULE_TYPE_AT, fake_dict(&target, ACTIVE_AT, FAKE_KEYS_GENERAL, pairs, (uint32_t)count));
}

START_TEST(names_of_python)
{
    start(_i);
    strcpy(names[1], "a;b");
    python_knows(2);
    join(0);
    join(1);
    ck_assert_str_eq(marker(0), "");
    ck_assert(tick(0, true));
    ck_assert_str_eq(marker(0), "[thread zero]");
    ck_assert_str_eq(marker(1), "[thread a\\x3bb]");
    ck_assert(threads[0].of_python);
    join(2);
    python_knows(3);
    ck_assert(tick(1, true)); /* long before names are read anew */
    ck_assert_str_eq(marker(2), "[thread two]");
    ck_assert(!tick(1, true));
}
END_TEST

START_TEST(the_kernels_name_where_there_is_none)
{
    start(_i);
    interpreter(MODULE_TYPE_AT, fake_str(&target, ACTIVE_AT, "no dict"));
    join(0);
    ck_assert(tick(0, true));
    ck_assert_str_eq(marker(0), "[thread the\\x3bkernel's]");
    python_knows(1); /* threading is imported */
    ck_assert(tick(SECOND, true));
    ck_assert_str_eq(marker(0), "[thread zero]");
    interpreter(CLASS_AT, 0); /* the thread is about to end: threading has forgotten it */
    ck_assert(!tick(SECOND, true));
    ck_assert_str_eq(marker(0), "[thread zero]");
    threads[1] = (struct threadframe){.interp = 0x7fff0000u, .pthread = PTHREAD(1)}; /* nothing can be read */
    ck_assert(threadframes_join(all, &threads[1]));
    for (int i = 0; i < 100; i++)
        ck_assert(!tick(SECOND, true));
    ck_assert_str_eq(marker(1), "");
}
END_TEST

START_TEST(another_interpreters_thread_of_the_same_number)
{
    start(_i);
    python_knows(1);
    join(0)->interp = INTERP_AT + 8;
    ck_assert(tick(0, true));
    ck_assert_str_eq(marker(0), "[thread the\\x3bkernel's]");
}
END_TEST

START_TEST(a_name_that_changes)
{
    start(_i);
    python_knows(1);
    join(0);
    ck_assert(tick(0, true));
    threads[0].renamed = false;
    ck_assert_str_eq(marker(0), "[thread zero]");
    strcpy(names[0], "another");
    python_knows(1);
    now += 100ull * SECOND;
    ck_assert(!threadframes_are_due(all, now)); /* nobody ran since */
    ck_assert(!tick(0, false));
    ck_assert_str_eq(marker(0), "[thread zero]");
    ck_assert(tick(0, true));
    ck_assert(threads[0].renamed);
    ck_assert_str_eq(marker(0), "[thread another]");
    strcpy(names[0], "zero");
    python_knows(1);
    ck_assert(!tick(SECOND / 2, true));
    ck_assert(!threadframes_are_due(all, now));
    ck_assert(threadframes_are_due(all, now + SECOND / 2));
    ck_assert(tick(SECOND / 2, false));
    ck_assert_str_eq(marker(0), "[thread zero]");
}
END_TEST

START_TEST(names_beyond_those_of_a_window)
{
    char name[32];
    start(13);
    for (int i = 0; i < THREADS; i++) {
        join(i);
        threadframes_name(all, &threads[i], name, (uint32_t)snprintf(name, sizeof name, "thread %d", i));
        snprintf(name, sizeof name, i < THREADFRAMES_NAMES_MOST ? "[thread thread %d]" : "[thread ~]", i);
        ck_assert_str_eq(marker(i), name);
    }
    ck_assert_str_eq(marker(0), "[thread thread 0]");
    tick(1, true);
    ck_assert_uint_eq(counters.limits[LIMIT_thread_names], THREADS - THREADFRAMES_NAMES_MOST);
    profile_clear(stacks.profile, true);
    threadframes_forget_stacks(all);
    ck_assert_str_eq(marker(THREADS - 1), "[thread thread 1199]");
    for (int i = 0; i < THREADS; i += 2)
        threadframes_leave(all, &threads[i]);
    ck_assert_str_eq(marker(1), "[thread thread 1]");
    ck_assert_str_eq(marker(2), "");
    threadframes_free(all);
}
END_TEST

START_TEST(without_memory)
{
    start(13);
    python_knows(1);
    join(0);
    void *taken[4096];
    uint32_t count = 0;
    for (size_t size = (size_t)1 << 20; size >= 8; size /= 2)
        while (count < 4096 && (taken[count] = mem_alloc(size)))
            count++;
    tick(0, true);
    ck_assert_str_eq(marker(0), "");
    for (uint32_t i = 0; i < count; i++)
        mem_free(taken[i]);
    tick(SECOND, true);
    ck_assert_str_eq(marker(0), "[thread zero]");
}
END_TEST

Suite *suite_threadframes(void)
{
    Suite *suite = suite_create("threadframes");
    TCase *each = tcase_create("each version"), *once = tcase_create("once");
    tcase_add_loop_test(each, names_of_python, FIRST_MINOR, AFTER_LAST_MINOR);
    tcase_add_loop_test(each, the_kernels_name_where_there_is_none, FIRST_MINOR, AFTER_LAST_MINOR);
    tcase_add_loop_test(each, another_interpreters_thread_of_the_same_number, FIRST_MINOR, AFTER_LAST_MINOR);
    tcase_add_loop_test(each, a_name_that_changes, FIRST_MINOR, AFTER_LAST_MINOR);
    tcase_add_test(once, names_beyond_those_of_a_window);
    tcase_add_test(once, without_memory);
    suite_add_tcase(suite, each);
    suite_add_tcase(suite, once);
    return suite;
}
