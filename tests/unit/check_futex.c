/* SPDX-License-Identifier: MIT */
#include "hooks/futex.h"
#include "hooks/clock.h"

#include <check.h>
#include <errno.h>
#include <pthread.h>
#include <unistd.h>

static _Atomic uint32_t word;

START_TEST(differing_word_does_not_wait)
{
    word = 5;
    ck_assert(futex_wait(&word, 4, UINT64_MAX));
}
END_TEST

START_TEST(deadline_ends_the_wait)
{
    uint64_t before = clock_now();
    word = 0;
    ck_assert(!futex_wait(&word, 0, before + 5000000));
    ck_assert_uint_ge(clock_now() - before, 5000000);
    ck_assert(!futex_wait(&word, 0, 1)); /* long past */
}
END_TEST

static void *waker(void *arg)
{
    usleep(3000);
    atomic_store(&word, 1);
    futex_wake(&word);
    return NULL;
}

START_TEST(wake_ends_the_wait)
{
    pthread_t thread;
    word = 0;
    pthread_create(&thread, NULL, waker, NULL);
    while (atomic_load(&word) == 0)
        ck_assert(futex_wait(&word, 0, clock_now() + UINT64_C(5000000000)));
    pthread_join(thread, NULL);
}
END_TEST

START_TEST(errno_is_left_alone)
{
    errno = 123;
    futex_wake(&word);
    futex_wait(&word, 77, 1);
    futex_wait(&word, word, 1);
    ck_assert_int_eq(errno, 123);
}
END_TEST

Suite *suite_futex(void)
{
    Suite *suite = suite_create("futex");
    TCase *tests = tcase_create("futex");
    tcase_add_test(tests, differing_word_does_not_wait);
    tcase_add_test(tests, deadline_ends_the_wait);
    tcase_add_test(tests, wake_ends_the_wait);
    tcase_add_test(tests, errno_is_left_alone);
    suite_add_tcase(suite, tests);
    return suite;
}
