/* SPDX-License-Identifier: MIT */
#include "hooks/guard.h"
#include "hooks/clock.h"
#include "hooks/sigaction.h"
#include "tests/unit/sanitizers.h"

#include <check.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#define PAGE 4096u

/* A readable page with an unreadable one behind it. */
static uint8_t *edge(void)
{
    uint8_t *pages = mmap(NULL, 2 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    ck_assert_ptr_ne(pages, MAP_FAILED);
    for (unsigned i = 0; i < PAGE; i++)
        pages[i] = (uint8_t)(i * 7 + 1);
    ck_assert_int_eq(mprotect(pages + PAGE, PAGE, PROT_NONE), 0);
    return pages;
}

static void every_size_copies_to_the_last_byte_and_no_further(void)
{
    uint8_t *page = edge(), copy[PAGE + 2];
    for (size_t n = 0; n <= 700; n++) {
        memset(copy, 0xee, sizeof copy);
        ck_assert(guard_copy(copy + 1, (uintptr_t)page + PAGE - n, n));
        ck_assert_mem_eq(copy + 1, page + PAGE - n, n);
        ck_assert_uint_eq(copy[0], 0xee);
        ck_assert_uint_eq(copy[n + 1], 0xee);
        if (n > 0)
            ck_assert(!guard_copy(copy, (uintptr_t)page + PAGE - n + 1, n));
    }
    ck_assert(guard_copy(copy, (uintptr_t)page, PAGE));
    ck_assert(!guard_copy(copy, (uintptr_t)page + 1, PAGE));
}

static void bad_addresses_fail(void)
{
    uint64_t word;
    const uintptr_t bad[] = {0, 8, 0x0000800000000000u, 0xddddddddddddddd8u, 0xfffffffffffffff8u, 0xffffffff81000000u};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        ck_assert(!guard_word(bad[i], &word));
        ck_assert(!guard_copy(&word, bad[i], 8));
        ck_assert(!guard_copy(&word, bad[i], 3));
    }
}

static void words_are_read_only_when_aligned(void)
{
    uint64_t words[2] = {0x1122334455667788u, 0}, word = 0;
    ck_assert(guard_word((uintptr_t)words, &word));
    ck_assert_uint_eq(word, words[0]);
    ck_assert(!guard_word((uintptr_t)words + 4, &word));
}

/* Two of one object, then one that the second of them leads to. */
static void gathers_read_word_by_word(void)
{
    static const struct guard_place places[] = {{8, 0, 3}, {-16, 0, 1}, {16, 1, 2}};
    uint64_t far[3] = {1, 2, 33}, near[4] = {(uintptr_t)far, 9, 9, 44}, words[5] = {(uintptr_t)&near[2], 7, 7, 7, 7};
    ck_assert(guard_gather(words, places, 3));
    ck_assert_uint_eq(words[0], (uintptr_t)&near[2]);
    ck_assert_uint_eq(words[1], (uintptr_t)far);
    ck_assert_uint_eq(words[2], 33);
    ck_assert_uint_eq(words[3], 44);
    ck_assert_uint_eq(words[4], 7);
    ck_assert(guard_gather(words, places, 0));
    near[0] = 8;
    ck_assert(!guard_gather(words, places, 3));
    near[0] = (uintptr_t)far + 1;
    ck_assert(!guard_gather(words, places, 3));
    near[0] = (uintptr_t)far;
    ck_assert(guard_gather(words, places, 3));
}

static void gathers_end_where_memory_does(void)
{
    static const struct guard_place places[] = {{0, 0, 1}, {0, 0, 2}, {0, 0, 3}, {0, 0, 4}, {0, 0, 5}, {0, 0, 6}, {0, 0, 7},
                                                {0, 0, 8}, {0, 0, 9}, {0, 0, 10}, {8, 0, 11}};
    uint8_t *page = edge();
    uint64_t words[12] = {(uintptr_t)page + PAGE - 8};
    ck_assert(guard_gather(words, places, 10)); /* more than one call takes */
    ck_assert_mem_eq(&words[10], page + PAGE - 8, 8);
    ck_assert(!guard_gather(words, places, 11));
    words[0] -= 4;
    ck_assert(!guard_gather(words, places, 1));
    words[0] = 0xddddddddddddddd8u;
    ck_assert(!guard_gather(words, places, 1));
}

static void gathers_stop_at_what_is_not_expected(void)
{
    static const struct guard_place places[] = {{0, 0, 1}, {8, 0, 2}, {16, 0, 3}};
    uint64_t object[3] = {11, 22, 33}, words[4] = {(uintptr_t)object, 7, 7, 7};
    ck_assert_uint_eq(guard_gather_if(words, places, 3, 12), 1);
    ck_assert_uint_eq(words[1], 11);
    ck_assert_uint_eq(words[2], 7);
    ck_assert_uint_eq(guard_gather_if(words, places, 1, 11), 1);
    ck_assert_uint_eq(words[2], 7);
    ck_assert_uint_eq(guard_gather_if(words, places, 3, 11), 3);
    ck_assert_uint_eq(words[2], 22);
    ck_assert_uint_eq(words[3], 33);
    words[0] = (uintptr_t)edge() + PAGE - 16;
    uint64_t first = *(uint64_t *)words[0];
    ck_assert_uint_eq(guard_gather_if(words, places, 2, first), 2);
    ck_assert_uint_eq(guard_gather_if(words, places, 3, first), 0);
    ck_assert_uint_eq(guard_gather_if(words, places, 3, first + 1), 1);
    words[0] += 4;
    ck_assert_uint_eq(guard_gather_if(words, places, 3, first), 0);
    words[0] = 8;
    ck_assert_uint_eq(guard_gather_if(words, places, 3, first), 0);
}

static void words_are_gathered(void)
{
    gathers_read_word_by_word();
    gathers_end_where_memory_does();
    gathers_stop_at_what_is_not_expected();
}

START_TEST(copy_reader_reads)
{
    ck_assert_int_eq(guard_start(GUARD_AUTO), 0);
    ck_assert(guard_in_force());
    ck_assert_str_eq(guard_reader_name(), "copy");
    every_size_copies_to_the_last_byte_and_no_further();
    bad_addresses_fail();
    words_are_read_only_when_aligned();
    words_are_gathered();
}
END_TEST

START_TEST(syscall_reader_reads)
{
    ck_assert_int_eq(guard_start(GUARD_SYSCALL), 0);
    ck_assert(!guard_in_force());
    ck_assert_str_eq(guard_reader_name(), "syscall");
    every_size_copies_to_the_last_byte_and_no_further();
    bad_addresses_fail();
    words_are_read_only_when_aligned();
    words_are_gathered();
    ck_assert(!sigaction_in_force(SIGSEGV));
}
END_TEST

START_TEST(before_the_start_every_copy_fails)
{
    uint64_t word = 1;
    ck_assert(!guard_copy(&word, (uintptr_t)&word, 8));
    ck_assert(!guard_store(&word, 2));
    ck_assert(!guard_gather((uint64_t[]){(uintptr_t)&word, 0}, &(struct guard_place){0, 0, 1}, 1));
    ck_assert_uint_eq(guard_gather_if((uint64_t[]){(uintptr_t)&word, 0}, &(struct guard_place){0, 0, 1}, 1, 1), 0);
    guard_recheck();
    ck_assert(!guard_copy(&word, (uintptr_t)&word, 8));
}
END_TEST

START_TEST(store_to_a_truncated_file_fails_and_does_not_kill)
{
    char name[] = "/tmp/check_guard.XXXXXX";
    int fd = mkstemp(name);
    ck_assert_int_ge(fd, 0);
    unlink(name);
    ck_assert_int_eq(ftruncate(fd, PAGE), 0);
    uint64_t *words = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    ck_assert_int_eq(guard_start(GUARD_AUTO), 0);
    ck_assert(guard_store(words, 42));
    ck_assert_uint_eq(words[0], 42);
    ck_assert_int_eq(ftruncate(fd, 0), 0);
    ck_assert(!guard_store(words, 43));
    uint64_t word;
    ck_assert(!guard_word((uintptr_t)words, &word));
}
END_TEST

struct kernel_action {
    void *handler;
    unsigned long flags;
    void *restorer;
    uint64_t mask;
};

START_TEST(a_raw_system_call_around_us_switches_the_reader_and_back)
{
    struct kernel_action ours, none = {0};
    uint64_t word, value = 7;
    ck_assert_int_eq(guard_start(GUARD_AUTO), 0);
    syscall(SYS_rt_sigaction, SIGSEGV, &none, &ours, 8);
    guard_recheck();
    ck_assert(!guard_in_force());
    ck_assert(!guard_word(8, &word));
    ck_assert(guard_word((uintptr_t)&value, &word));
    ck_assert_uint_eq(word, 7);
    syscall(SYS_rt_sigaction, SIGSEGV, &ours, NULL, 8);
    guard_recheck();
    ck_assert(guard_in_force());
}
END_TEST

START_TEST(nothing_is_copied_while_faults_are_ignored)
{
    uint64_t word, value = 7;
    ck_assert_int_eq(guard_start(GUARD_AUTO), 0);
    signal(SIGBUS, SIG_IGN); /* at once: the kernel would kill for a fault */
    ck_assert(!guard_in_force());
    guard_recheck();
    ck_assert(!guard_in_force());
    ck_assert(guard_word((uintptr_t)&value, &word));
    ck_assert(!guard_word(8, &word));
    signal(SIGBUS, SIG_DFL);
    guard_recheck();
    ck_assert(guard_in_force());
    ck_assert(!guard_word(8, &word));
}
END_TEST

START_TEST(a_program_that_ignores_faults_is_read_by_system_call)
{
    uint64_t word;
    signal(SIGSEGV, SIG_IGN); /* as from the program before an exec */
    ck_assert_int_eq(guard_start(GUARD_AUTO), 0);
    ck_assert_str_eq(guard_reader_name(), "syscall");
    ck_assert(!guard_word(8, &word));
}
END_TEST

static _Atomic int own_step;

/* A thread of ours: rechecks at each tick, until told to leave. */
static void *own(void *unused)
{
    sigset_t all;
    sigfillset(&all);
    sigdelset(&all, SIGSEGV);
    sigdelset(&all, SIGBUS);
    pthread_sigmask(SIG_SETMASK, &all, NULL);
    guard_own_thread();
    for (own_step = 1; own_step == 1; usleep(1000))
        guard_recheck();
    return NULL;
}

START_TEST(what_is_sent_to_the_process_is_not_taken_by_our_thread)
{
    sigset_t faults, pending;
    siginfo_t info;
    pthread_t thread;
    uint64_t word, value = 7;
    union sigval sent = {.sival_int = 77};
    sigemptyset(&faults);
    sigaddset(&faults, SIGSEGV);
    sigaddset(&faults, SIGBUS);
    ck_assert_int_eq(guard_start(GUARD_AUTO), 0);
    pthread_create(&thread, NULL, own, NULL);
    while (own_step != 1)
        usleep(1000);
    ck_assert(guard_in_force());
    pthread_sigmask(SIG_BLOCK, &faults, NULL);
    for (int i = 0; i < 20; i++) {
        int signo = i % 2 ? SIGBUS : SIGSEGV;
        i % 3 ? sigqueue(getpid(), signo, sent) : kill(getpid(), signo); /* our thread alone does not block it */
        while (guard_in_force())
            usleep(100);
        usleep(3000); /* some of its ticks */
        ck_assert(!guard_in_force());
        ck_assert(guard_word((uintptr_t)&value, &word));
        sigpending(&pending);
        ck_assert(sigismember(&pending, signo));
        ck_assert_int_eq(sigwaitinfo(&faults, &info), signo);
        ck_assert(i % 3 == 0 || info.si_value.sival_int == 77);
        ck_assert_int_eq(info.si_pid, getpid());
        ck_assert_int_eq(info.si_code, SI_QUEUE);
        while (!guard_in_force()) /* and back */
            usleep(100);
    }
    own_step = 2;
    pthread_join(thread, NULL);
}
END_TEST

START_TEST(copy_only_reader_fails_when_bypassed)
{
    struct kernel_action ours, none = {0};
    uint64_t word, value = 7;
    ck_assert_int_eq(guard_start(GUARD_COPY), 0);
    syscall(SYS_rt_sigaction, SIGBUS, &none, &ours, 8);
    guard_recheck();
    ck_assert(!guard_word((uintptr_t)&value, &word));
    syscall(SYS_rt_sigaction, SIGBUS, &ours, NULL, 8);
    guard_recheck();
    ck_assert(guard_word((uintptr_t)&value, &word));
}
END_TEST

static void read_in_handler(int signo)
{
    uint64_t word;
    if (guard_word(8, &word))
        abort();
}

START_TEST(faults_recover_inside_a_signal_handler)
{
    ck_assert_int_eq(guard_start(GUARD_AUTO), 0);
    signal(SIGUSR1, read_in_handler);
    for (int i = 0; i < 100; i++)
        raise(SIGUSR1);
}
END_TEST

START_TEST(a_real_fault_still_kills)
{
    int *volatile nowhere = (int *)8;
    guard_start(GUARD_AUTO);
    *nowhere = 1;
}
END_TEST

START_TEST(a_copy_costs_nanoseconds)
{
    static const struct guard_place places[] = {{0, 0, 1}, {8, 0, 2}, {16, 0, 3}, {24, 0, 4}, {56, 0, 5}};
    uint64_t word, source[8] = {0}, copy[8], words[6] = {(uintptr_t)source};
    ck_assert_int_eq(guard_start(GUARD_AUTO), 0);
    uint64_t t0 = clock_self();
    for (int i = 0; i < 1000000; i++)
        guard_word((uintptr_t)source, &word);
    uint64_t t1 = clock_self();
    for (int i = 0; i < 1000000; i++)
        guard_copy(copy, (uintptr_t)source, 64);
    uint64_t t2 = clock_self();
    for (int i = 0; i < 10000; i++)
        guard_word(8, &word);
    uint64_t t3 = clock_self();
    for (int i = 0; i < 1000000; i++)
        guard_gather(words, places, 5);
    uint64_t t4 = clock_self();
    if (getenv("APROF_TEST_FIGURES"))
        printf("guard: word %.2f ns, 64 bytes %.2f ns, fault %.0f ns, 5 words gathered %.2f ns\n", (double)(t1 - t0) / 1e6, (double)(t2 - t1) / 1e6,
               (double)(t3 - t2) / 1e4, (double)(t4 - t3) / 1e6);
    ck_assert_uint_lt(t1 - t0, 400000000); /* instrumented builds included */
}
END_TEST

Suite *suite_guard(void)
{
    Suite *suite = suite_create("guard");
    TCase *tests = tcase_create("guard");
    tcase_add_test(tests, copy_reader_reads);
    tcase_add_test(tests, syscall_reader_reads);
    tcase_add_test(tests, before_the_start_every_copy_fails);
    tcase_add_test(tests, store_to_a_truncated_file_fails_and_does_not_kill);
    if (!UNDER_TSAN) { /* the kernel's handler is its own then, and signals are delivered later */
        tcase_add_test(tests, a_raw_system_call_around_us_switches_the_reader_and_back);
        tcase_add_test(tests, nothing_is_copied_while_faults_are_ignored);
        tcase_add_test(tests, what_is_sent_to_the_process_is_not_taken_by_our_thread);
        tcase_add_test(tests, a_program_that_ignores_faults_is_read_by_system_call);
        tcase_add_test(tests, copy_only_reader_fails_when_bypassed);
        tcase_add_test(tests, faults_recover_inside_a_signal_handler);
    }
    tcase_add_test(tests, a_copy_costs_nanoseconds);
    if (!UNDER_ASAN && !UNDER_TSAN) {
        tcase_add_test_raise_signal(tests, a_real_fault_still_kills, SIGSEGV);
    }
    suite_add_tcase(suite, tests);
    return suite;
}
