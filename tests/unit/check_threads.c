/* SPDX-License-Identifier: MIT */
#include "hooks/threads.h"
#include "hooks/clock.h"
#include "hooks/real.h"
#include "tests/unit/sanitizers.h"

#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define SPACE 16384u

/* Bytes mapped by the process. */
static uint64_t address_space(void)
{
    char text[64] = "";
    int fd = open("/proc/self/statm", O_RDONLY);
    ssize_t length = read(fd, text, sizeof text - 1);
    close(fd);
    return length > 0 ? strtoull(text, NULL, 10) * 4096 : 0;
}

static void start(void)
{
    real_resolve();
    ck_assert_int_eq(threads_start(SPACE), 0);
}

static struct thread *only(enum thread_state state)
{
    struct thread *found = NULL;
    for (uint32_t i = 0; i < threads_high(); i++)
        if (threads_at(i)->state == state) {
            ck_assert_ptr_eq(found, NULL);
            found = threads_at(i);
        }
    return found;
}

static uint32_t count(enum thread_state state)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < threads_high(); i++)
        n += threads_at(i)->state == state;
    return n;
}

static _Atomic int stop;

static void *wait_for_stop(void *arg)
{
    struct thread *self = threads_self();
    if (self) {
        ck_assert_int_eq(self->tid, gettid());
        ck_assert_int_eq(self->state, THREAD_LIVE);
        memset(self->space, 0xaa, self->space_size);
    }
    while (!stop)
        usleep(500);
    return arg;
}

START_TEST(a_thread_before_the_start_runs_without_a_record)
{
    pthread_t thread;
    void *result;
    stop = 1;
    ck_assert_int_eq(threads_create(&thread, NULL, wait_for_stop, &stop), 0);
    ck_assert_int_eq(pthread_join(thread, &result), 0);
    ck_assert_ptr_eq(result, &stop);
    ck_assert_uint_eq(threads_high(), 0);
    ck_assert_ptr_eq(threads_at(0), NULL);
    ck_assert_ptr_eq(threads_from_cookie(&stop), NULL);
    ck_assert_ptr_eq(threads_from_cookie(NULL), NULL);
    ck_assert_ptr_eq(threads_adopt(gettid()), NULL);
    threads_postfork_child();
}
END_TEST

START_TEST(a_threads_life)
{
    pthread_t thread;
    void *result;
    start();
    ck_assert_int_eq(threads_start(SPACE), -EALREADY);
    ck_assert_int_eq(threads_create(&thread, NULL, wait_for_stop, &thread), 0);
    ck_assert_uint_eq(threads_alive(), 1);
    struct thread *record;
    while ((record = only(THREAD_LIVE)) == NULL)
        usleep(100);
    ck_assert_uint_eq(record->birth, 1);
    ck_assert_uint_eq(threads_births(), 1);
    ck_assert(record->start == wait_for_stop && record->arg == &thread && !record->adopted);
    ck_assert_int_eq(record->timer, -1);
    ck_assert_ptr_eq(threads_from_cookie(record), record);
    ck_assert_ptr_eq(threads_from_cookie((char *)record + 1), NULL);
    ck_assert_ptr_eq(threads_from_cookie(record + 1), NULL);
    ck_assert_ptr_eq(threads_from_cookie(record - 1), NULL);
    ck_assert_ptr_eq(threads_adopt(record->tid), record);
    stop = 1;
    pthread_join(thread, &result);
    ck_assert_ptr_eq(result, &thread);
    ck_assert_ptr_eq(only(THREAD_ENDED), record);
    ck_assert_uint_ge(record->ended_ns, record->born_ns);
    ck_assert_uint_ge(record->ended_cpu, record->born_cpu);
    ck_assert_uint_eq(threads_alive(), 0);
    threads_release(record);
    ck_assert_uint_eq(count(THREAD_FREE), 1);
    ck_assert_int_eq(threads_create(&thread, NULL, wait_for_stop, NULL), 0);
    pthread_join(thread, NULL);
    ck_assert_ptr_eq(only(THREAD_ENDED), record); /* the same record, another birth */
    ck_assert_uint_eq(record->birth, 2);
}
END_TEST

static pthread_key_t late_key;
static _Atomic int seen_late;

static void late(void *arg)
{
    seen_late = threads_self() != NULL;
}

static void *with_key(void *arg)
{
    pthread_setspecific(late_key, arg);
    pthread_exit(arg);
}

START_TEST(the_end_comes_after_other_destructors)
{
    pthread_t thread;
    start();
    pthread_key_create(&late_key, late); /* after ours: its destructor runs after ours in each round */
    threads_create(&thread, NULL, with_key, &thread);
    pthread_join(thread, NULL);
    ck_assert_int_eq(seen_late, 1);
    ck_assert_uint_eq(count(THREAD_ENDED), 1);
}
END_TEST

START_TEST(a_refused_thread_gives_its_record_back)
{
    pthread_t thread;
    pthread_attr_t attr;
    start();
    pthread_attr_init(&attr);
    ck_assert_int_eq(pthread_attr_setstacksize(&attr, (size_t)1 << 46), 0);
    errno = 33;
    ck_assert_int_ne(threads_create(&thread, &attr, wait_for_stop, NULL), 0);
    ck_assert_uint_eq(count(THREAD_FREE), 1);
    ck_assert_uint_eq(threads_alive(), 0);
}
END_TEST

static struct thread *_Atomic born_record;

static void born(struct thread *self)
{
    ck_assert_ptr_eq(self, threads_self());
    born_record = self;
}

START_TEST(birth_is_told_on_the_thread)
{
    pthread_t thread;
    start();
    threads_on_birth(born);
    stop = 1;
    threads_create(&thread, NULL, wait_for_stop, NULL);
    pthread_join(thread, NULL);
    ck_assert_ptr_ne(born_record, NULL);
}
END_TEST

START_TEST(adopted_threads_learn_of_their_record_and_end_by_the_sampler)
{
    start();
    struct thread *record = threads_adopt(gettid());
    ck_assert_ptr_ne(record, NULL);
    ck_assert(record->adopted);
    ck_assert_ptr_eq(threads_self(), NULL);
    ck_assert(threads_claim(record));
    ck_assert(threads_claim(record));
    ck_assert_ptr_eq(threads_self(), record);
    ck_assert_ptr_eq(threads_adopt(gettid()), record);
    ck_assert_ptr_eq(threads_adopt(0x0fffffff), NULL); /* no such thread */
    ck_assert_uint_eq(threads_alive(), 0);
    threads_end(record, 5, 6);
    ck_assert_int_eq(record->state, THREAD_ENDED);
    ck_assert_ptr_eq(threads_adopt(gettid()), NULL); /* at its end, as far as we know */
    threads_release(record);
    ck_assert_int_eq(record->state, THREAD_FREE);
}
END_TEST

static void *claim_other(void *record)
{
    return threads_claim(record) ? record : NULL;
}

START_TEST(nobody_claims_anothers_record)
{
    pthread_t thread;
    void *result;
    start();
    struct thread *record = threads_adopt(gettid());
    pthread_create(&thread, NULL, claim_other, record);
    pthread_join(thread, &result);
    ck_assert_ptr_eq(result, NULL);
}
END_TEST

static void *nothing(void *arg)
{
    return arg;
}

static void *churn(void *arg)
{
    for (int i = 0; i < 200; i++) {
        pthread_t thread;
        if (threads_create(&thread, NULL, nothing, NULL) == 0)
            pthread_join(thread, NULL);
    }
    return NULL;
}

START_TEST(records_are_never_lost_nor_doubled_under_churn)
{
    pthread_t threads[4];
    start();
    uint64_t until = clock_now() + UINT64_C(20000000000);
    for (int i = 0; i < 4; i++)
        pthread_create(&threads[i], NULL, churn, NULL);
    for (uint32_t ended = 0; ended < 800 && clock_now() < until;)
        for (uint32_t i = 0; i < threads_high(); i++)
            if (threads_at(i)->state == THREAD_ENDED) {
                threads_release(threads_at(i));
                ended++;
            }
    for (int i = 0; i < 4; i++)
        pthread_join(threads[i], NULL);
    ck_assert_uint_eq(count(THREAD_FREE), threads_high());
    ck_assert_uint_eq(threads_births(), 800);
    ck_assert_uint_eq(threads_alive(), 0);
    ck_assert_uint_eq(threads_without_record(), 0);
    ck_assert_uint_lt(threads_high(), 800);
}
END_TEST

START_TEST(an_empty_pool_is_counted_and_threads_run_without)
{
    start();
    for (int i = 0; i < THREADS_MAX + 900; i++) {
        pthread_t thread;
        ck_assert(!threads_are_full() == (i < THREADS_MAX));
        ck_assert_int_eq(threads_create(&thread, NULL, nothing, NULL), 0);
        pthread_join(thread, NULL);
    }
    ck_assert_uint_eq(threads_high(), THREADS_MAX);
    ck_assert_uint_eq(threads_without_record(), 900);
    threads_release(threads_at(7));
    ck_assert(!threads_are_full());
    for (uint32_t i = 0; i < threads_high(); i++) /* nobody else's number in it: no two share a byte */
        memset(threads_at(i)->space, (int)(i % 251), threads_at(i)->space_size);
    for (uint32_t i = 0; i < threads_high(); i++)
        for (uint32_t at = 0; at < threads_at(i)->space_size; at += 315) /* 4095 is a multiple */
            ck_assert_uint_eq(threads_at(i)->space[at], i % 251);
    ck_assert_uint_eq(threads_at(63)->space_size, SPACE);
    ck_assert_uint_eq(threads_at(64)->space_size, SPACE / 4);
}
END_TEST

static uint64_t marked(void)
{
    ck_assert_uint_eq(threads_take_marks(1), 0);
    return threads_take_marks(0);
}

START_TEST(births_ends_and_whatever_else_are_marked)
{
    pthread_t first, second;
    start();
    ck_assert_uint_eq(marked(), 0);
    threads_create(&first, NULL, wait_for_stop, NULL);
    threads_create(&second, NULL, wait_for_stop, NULL);
    for (uint64_t seen = 0; seen != 3; usleep(500))
        seen |= marked();
    ck_assert_uint_eq(marked(), 0);
    threads_mark(threads_at(1));
    threads_mark(threads_at(1));
    ck_assert_uint_eq(marked(), 2);
    ck_assert_uint_eq(marked(), 0);
    stop = 1;
    pthread_join(first, NULL);
    pthread_join(second, NULL);
    ck_assert_uint_eq(marked(), 3);
    threads_end(threads_adopt(gettid()), 1, 1);
    ck_assert_uint_eq(marked(), 4);
}
END_TEST

/* What is mapped can be locked in memory, all of it. */
START_TEST(spaces_are_mapped_when_they_are_needed)
{
    start();
    uint64_t before = address_space();
    ck_assert_ptr_nonnull(threads_adopt(gettid()));
    ck_assert_uint_eq(address_space(), before); /* the first block came with the start */
    for (int i = 0; i < 64; i++) {
        pthread_t thread;
        ck_assert_int_eq(threads_create(&thread, NULL, nothing, NULL), 0);
        pthread_join(thread, NULL);
    }
    ck_assert_uint_ge(address_space(), before + 64 * SPACE);
    ck_assert_uint_le(address_space(), before + 72 * SPACE + (10u << 20)); /* and libc's stack */
}
END_TEST

static int child_is_right(void)
{
    struct thread *self = threads_self();
    threads_mark(self);
    threads_postfork_child();
    if (threads_take_marks(0) != 0)
        return 6;
    if (self == NULL || threads_self() != self || self->state != THREAD_LIVE || self->tid != gettid())
        return 1;
    for (uint32_t i = 0; i < self->space_size; i++)
        if (self->space[i] != 0)
            return 2;
    if (threads_alive() != 0 || count(THREAD_FREE) != threads_high() - 1)
        return 3;
    pthread_t thread;
    if (threads_create(&thread, NULL, nothing, NULL) != 0 || pthread_join(thread, NULL) != 0)
        return 4;
    return count(THREAD_ENDED) == 1 && threads_alive() == 0 ? 0 : 5;
}

static void *fork_in_thread(void *arg)
{
    struct thread *self = threads_self();
    memset(self->space, 0x55, self->space_size);
    pid_t child = fork();
    if (child == 0)
        _exit(child_is_right());
    int status;
    waitpid(child, &status, 0);
    return (void *)(intptr_t)status;
}

START_TEST(a_forked_child_keeps_the_caller_alone)
{
    pthread_t threads[5], forker;
    void *status;
    start();
    for (int i = 0; i < 5; i++)
        threads_create(&threads[i], NULL, wait_for_stop, NULL);
    threads_create(&forker, NULL, fork_in_thread, NULL);
    pthread_join(forker, &status);
    ck_assert_ptr_eq(status, NULL);
    stop = 1;
    for (int i = 0; i < 5; i++)
        pthread_join(threads[i], NULL);
}
END_TEST

START_TEST(a_vfork_child_writes_nothing)
{
    if (getenv("APROF_TEST_VALGRIND")) /* its vfork is a fork */
        return;
    start();
    pid_t child = vfork();
    if (child == 0)
        _exit(real_owns_memory());
    int status;
    waitpid(child, &status, 0);
    ck_assert_int_eq(status, 0);
    ck_assert(real_owns_memory());
}
END_TEST

static void last_one_says_so(void)
{
    _exit(gettid() == getpid() ? 41 : 42);
}

static void *nap(void *us)
{
    usleep((useconds_t)(uintptr_t)us);
    return NULL;
}

/* A process whose threads end, the main one after so many microseconds; its exit
 * status: who was the last (0: libc's own exit, nobody was told). */
static int status_of_threads_that_end(unsigned main_us, unsigned others_us, bool stranger)
{
    pid_t child = fork();
    if (child == 0) {
        pthread_t thread;
        if (stranger)
            pthread_create(&thread, NULL, nap, (void *)(uintptr_t)others_us);
        start();
        threads_on_last(last_one_says_so);
        for (int i = 0; i < 3; i++)
            threads_create(&thread, NULL, nap, (void *)(uintptr_t)others_us);
        usleep(main_us);
        pthread_exit(NULL);
    }
    int status;
    waitpid(child, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

START_TEST(the_last_thread_is_told_whoever_it_is)
{
    ck_assert_int_eq(status_of_threads_that_end(1000, 100000, false), 42);
    ck_assert_int_eq(status_of_threads_that_end(100000, 1000, false), 41);
    ck_assert_int_eq(status_of_threads_that_end(1000, 50000, true), 0); /* one was there before us */
}
END_TEST

START_TEST(bad_spaces_are_refused)
{
    ck_assert_int_eq(threads_start(0), -EINVAL);
    ck_assert_int_eq(threads_start(12288), -EINVAL);
    ck_assert_int_eq(threads_start(8192), -EINVAL);
    ck_assert(!threads_started());
}
END_TEST

Suite *suite_threads(void)
{
    Suite *suite = suite_create("threads");
    TCase *tests = tcase_create("threads");
    tcase_set_timeout(tests, 60);
    tcase_add_test(tests, a_thread_before_the_start_runs_without_a_record);
    tcase_add_test(tests, a_threads_life);
    tcase_add_test(tests, the_end_comes_after_other_destructors);
    tcase_add_test(tests, birth_is_told_on_the_thread);
    tcase_add_test(tests, adopted_threads_learn_of_their_record_and_end_by_the_sampler);
    tcase_add_test(tests, nobody_claims_anothers_record);
    tcase_add_test(tests, records_are_never_lost_nor_doubled_under_churn);
    tcase_add_test(tests, an_empty_pool_is_counted_and_threads_run_without);
    tcase_add_test(tests, births_ends_and_whatever_else_are_marked);
    tcase_add_test(tests, spaces_are_mapped_when_they_are_needed);
    if (!UNDER_TSAN) { /* starts no thread after a fork of a threaded process, knows no vfork */
        tcase_add_test(tests, a_refused_thread_gives_its_record_back);
        tcase_add_test(tests, a_forked_child_keeps_the_caller_alone);
        tcase_add_test(tests, a_vfork_child_writes_nothing);
    }
    tcase_add_test(tests, the_last_thread_is_told_whoever_it_is);
    tcase_add_test(tests, bad_spaces_are_refused);
    suite_add_tcase(suite, tests);
    return suite;
}
