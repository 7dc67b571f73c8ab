/* SPDX-License-Identifier: MIT */
#include "hooks/clock.h"

#include <check.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <unistd.h>

static void burn(uint64_t ns)
{
    uint64_t until = clock_self() + ns;
    while (clock_self() < until)
        ;
}

START_TEST(own_clock_by_tid_is_own_clock)
{
    uint64_t before = clock_self(), ns = 0, after;
    ck_assert(clock_thread(gettid(), &ns));
    after = clock_self();
    ck_assert_uint_ge(ns, before);
    ck_assert_uint_le(ns, after);
}
END_TEST

START_TEST(process_clock_moves_with_work)
{
    uint64_t before = clock_process();
    burn(2000000);
    ck_assert_uint_ge(clock_process() - before, 2000000);
}
END_TEST

START_TEST(no_such_thread_has_no_clock)
{
    uint64_t ns;
    ck_assert(!clock_thread(0, &ns));
    ck_assert(!clock_thread(-1, &ns));
    ck_assert(!clock_thread(0x3fffffff, &ns));
    ck_assert(!clock_thread(getppid(), &ns)); /* there is one, but not of this process */
}
END_TEST

static _Atomic pid_t sleeper_tid;
static sem_t sleeper_stop;

static void *sleeper(void *arg)
{
    sleeper_tid = gettid();
    sem_wait(&sleeper_stop);
    return NULL;
}

START_TEST(another_threads_clock_stands_while_it_waits_and_ends_with_it)
{
    pthread_t thread;
    uint64_t first, second;
    ck_assert_int_eq(sem_init(&sleeper_stop, 0, 0), 0);
    ck_assert_int_eq(pthread_create(&thread, NULL, sleeper, NULL), 0);
    while (sleeper_tid == 0)
        usleep(100);
    ck_assert(clock_thread(sleeper_tid, &first));
    burn(1000000);
    ck_assert(clock_thread(sleeper_tid, &second));
    ck_assert_uint_lt(second - first, 1000000);
    sem_post(&sleeper_stop);
    pthread_join(thread, NULL);
    while (clock_thread(sleeper_tid, &first))
        usleep(100); /* who joined it may be a little faster than it leaves the kernel */
}
END_TEST

START_TEST(epoch_and_monotonic_are_in_their_units)
{
    ck_assert_uint_gt(clock_epoch_us(), UINT64_C(1600000000000000));
    ck_assert_uint_lt(clock_epoch_us(), UINT64_C(16000000000000000));
    uint64_t before = clock_now();
    usleep(2000);
    ck_assert_uint_ge(clock_now() - before, 2000000);
}
END_TEST

START_TEST(precision_test_agrees_with_a_plain_kernel)
{
    int precise = 0; /* a busy machine may deny it now and then */
    for (int i = 0; i < 20 && !precise; i++)
        precise = clock_thread_is_precise();
    ck_assert(precise);
}
END_TEST

Suite *suite_clock(void)
{
    Suite *suite = suite_create("clock");
    TCase *tests = tcase_create("clock");
    tcase_add_test(tests, own_clock_by_tid_is_own_clock);
    tcase_add_test(tests, process_clock_moves_with_work);
    tcase_add_test(tests, no_such_thread_has_no_clock);
    tcase_add_test(tests, another_threads_clock_stands_while_it_waits_and_ends_with_it);
    tcase_add_test(tests, epoch_and_monotonic_are_in_their_units);
    tcase_add_test(tests, precision_test_agrees_with_a_plain_kernel);
    suite_add_tcase(suite, tests);
    return suite;
}
