/* SPDX-License-Identifier: MIT */
#include "hooks/task.h"
#include "hooks/clock.h"
#include "hooks/futex.h"
#include "tests/unit/sanitizers.h"

#include <check.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <linux/capability.h>
#include <unistd.h>

static _Atomic uint32_t go;
static uint64_t mask_seen;
static char name_seen[32];
static size_t stack_seen;
static struct task task;

static void look_around(void *arg)
{
    char path[64];
    pthread_attr_t attr;
    syscall(SYS_rt_sigprocmask, SIG_BLOCK, NULL, &mask_seen, 8);
    snprintf(path, sizeof path, "/proc/self/task/%d/comm", task_tid());
    int fd = open(path, O_RDONLY);
    ssize_t n = read(fd, name_seen, sizeof name_seen - 1);
    name_seen[n > 0 ? n : 0] = '\0';
    close(fd);
    pthread_getattr_np(pthread_self(), &attr);
    pthread_attr_getstacksize(&attr, &stack_seen);
    pthread_attr_destroy(&attr);
    ck_assert_int_eq(task.tid, task_tid());
    while (atomic_load(&go) == 0)
        futex_wait(&go, 0, UINT64_MAX);
}

static int in_proc(pid_t tid)
{
    char path[64];
    snprintf(path, sizeof path, "/proc/self/task/%d", tid);
    return access(path, F_OK) == 0;
}

START_TEST(a_task_is_masked_named_and_bounded)
{
    uint64_t before, after;
    struct rlimit limit;
    getrlimit(RLIMIT_STACK, &limit);
    syscall(SYS_rt_sigprocmask, SIG_BLOCK, NULL, &before, 8);
    ck_assert_int_eq(task_start(&task, look_around, NULL), 0);
    syscall(SYS_rt_sigprocmask, SIG_BLOCK, NULL, &after, 8);
    ck_assert_uint_eq(before, after);
    ck_assert(!task_join(&task, clock_now() + 20000000));
    pid_t tid = task.tid;
    ck_assert(in_proc(tid));
    atomic_store(&go, 1);
    futex_wake(&go);
    ck_assert(task_join(&task, UINT64_MAX));
    ck_assert(!in_proc(tid));
    for (int signo = 1; signo < 32; signo++) {
        bool open = signo == SIGSEGV || signo == SIGBUS || signo == SIGKILL || signo == SIGSTOP;
        ck_assert_int_eq((int)(mask_seen >> (signo - 1) & 1), !open);
    }
    ck_assert_str_eq(name_seen, "aprof\n");
    if (!UNDER_TSAN) /* which wants larger stacks */
        ck_assert(stack_seen >= 256 * 1024 && stack_seen <= 320 * 1024);
}
END_TEST

static void nothing(void *arg)
{
}

START_TEST(after_the_join_the_kernel_thread_is_gone)
{
    for (int i = 0; i < 200; i++) {
        struct task one;
        memset(&one, 0, sizeof one);
        ck_assert_int_eq(task_start(&one, nothing, NULL), 0);
        ck_assert(task_join(&one, UINT64_MAX));
        ck_assert(!in_proc(one.tid));
    }
}
END_TEST

static int leaked_fd;
static bool unshared, leaked_seen, null_seen;

static void leave_the_table(void *arg)
{
    struct stat stat, null;
    unshared = task_unshare_descriptors();
    leaked_seen = fcntl(leaked_fd, F_GETFD) != -1;
    null_seen = fstat(2, &stat) == 0 && lstat("/dev/null", &null) == 0 && stat.st_rdev == null.st_rdev;
    close(0), close(1), close(2); /* of its own table only */
}

START_TEST(descriptors_are_left_behind)
{
    leaked_fd = dup(1);
    memset(&task, 0, sizeof task);
    ck_assert_int_eq(task_start(&task, leave_the_table, NULL), 0);
    ck_assert(task_join(&task, UINT64_MAX));
    ck_assert(unshared && null_seen && !leaked_seen);
    ck_assert_int_ge(fcntl(leaked_fd, F_GETFD), 0);
    ck_assert_int_ge(fcntl(2, F_GETFD), 0);
}
END_TEST

static uint32_t effective(void)
{
    struct __user_cap_header_struct header = {_LINUX_CAPABILITY_VERSION_3, 0};
    struct __user_cap_data_struct data[2] = {{0, 0, 0}, {0, 0, 0}};
    syscall(SYS_capget, &header, data);
    return data[0].effective | data[0].permitted | data[1].effective | data[1].permitted;
}

static uint32_t capabilities_left;
static int bounding_left;

static void drop(void *arg)
{
    bool may_drop = effective() != 0;
    task_drop_capabilities();
    capabilities_left = effective();
    for (int one = 0; may_drop && one < 64; one++)
        bounding_left += prctl(PR_CAPBSET_READ, one) == 1;
}

START_TEST(capabilities_are_dropped_by_this_thread_alone)
{
    uint32_t before = effective();
    capabilities_left = 1;
    memset(&task, 0, sizeof task);
    ck_assert_int_eq(task_start(&task, drop, NULL), 0);
    ck_assert(task_join(&task, UINT64_MAX));
    ck_assert_uint_eq(capabilities_left & ~(1u << CAP_SETUID | 1u << CAP_SETGID), 0);
    ck_assert_int_eq(bounding_left, 0);
    ck_assert_uint_eq(effective(), before);
}
END_TEST

static _Atomic bool dropped;

static void drop_and_stay(void *unused)
{
    task_drop_capabilities();
    dropped = true;
    for (;;)
        pause();
}

/* libc has all threads make the call, and aborts where one of them is refused. */
START_TEST(a_change_of_user_is_not_refused_to_it)
{
    if (geteuid() != 0)
        return;
    memset(&task, 0, sizeof task);
    ck_assert_int_eq(task_start(&task, drop_and_stay, NULL), 0);
    while (!dropped)
        usleep(100);
    ck_assert(task_may_change_identity_like(task.tid));
    ck_assert_int_eq(seteuid(65534), 0);
    ck_assert_int_eq(seteuid(0), 0);
    ck_assert_int_eq(setresgid(65534, 65534, 65534), 0);
    ck_assert_int_eq(setresuid(65534, 65534, 65534), 0);
    ck_assert_int_eq(setuid(0), -1);
    ck_assert(task_may_change_identity_like(task.tid));
}
END_TEST

static int policy_seen;

static void note_policy(void *arg)
{
    policy_seen = sched_getscheduler(0);
}

START_TEST(a_real_time_starter_does_not_make_it_urgent)
{
    struct sched_param urgent = {.sched_priority = 5}, usual = {.sched_priority = 0};
    if (sched_setscheduler(0, SCHED_FIFO, &urgent) != 0)
        return; /* not allowed to */
    memset(&task, 0, sizeof task);
    int error = task_start(&task, note_policy, NULL);
    bool joined = error == 0 && task_join(&task, UINT64_MAX);
    int policy = sched_getscheduler(0);
    sched_setscheduler(0, SCHED_OTHER, &usual);
    ck_assert(joined);
    ck_assert_int_eq(policy_seen, SCHED_OTHER);
    ck_assert_int_eq(policy, SCHED_FIFO);
}
END_TEST

Suite *suite_task(void)
{
    Suite *suite = suite_create("task");
    TCase *tests = tcase_create("task");
    tcase_add_test(tests, a_task_is_masked_named_and_bounded);
    tcase_add_test(tests, after_the_join_the_kernel_thread_is_gone);
    tcase_add_test(tests, descriptors_are_left_behind);
    tcase_add_test(tests, capabilities_are_dropped_by_this_thread_alone);
    tcase_add_test(tests, a_change_of_user_is_not_refused_to_it);
    tcase_add_test(tests, a_real_time_starter_does_not_make_it_urgent);
    suite_add_tcase(suite, tests);
    return suite;
}
