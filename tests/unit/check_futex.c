/* SPDX-License-Identifier: MIT */
#include "hooks/futex.h"
#include "hooks/clock.h"

#include <check.h>
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
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

/* In a process of its own: a filter stays. */
START_TEST(a_refused_wait_sleeps_all_the_same)
{
    pid_t child = fork();
    if (child == 0) {
        struct sock_filter refuse[] = {
            BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
            BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_futex, 0, 1),
            BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
            BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
        };
        struct sock_fprog program = {sizeof refuse / sizeof *refuse, refuse};
        if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) != 0)
            _exit(77);
        uint64_t begin = clock_now(), waits = 0;
        word = 0;
        while (futex_wait(&word, 0, begin + 20000000))
            waits++;
        _exit(clock_now() - begin < 20000000 ? 1 : waits > 20 ? 2 : 0);
    }
    int status;
    waitpid(child, &status, 0);
    ck_assert_msg(WIFEXITED(status) && (WEXITSTATUS(status) == 0 || WEXITSTATUS(status) == 77), "status %x", (unsigned)status);
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
    tcase_add_test(tests, a_refused_wait_sleeps_all_the_same);
    suite_add_tcase(suite, tests);
    return suite;
}
