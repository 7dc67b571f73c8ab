/* SPDX-License-Identifier: MIT */
#include "hooks/timer.h"
#include "hooks/clock.h"
#include "tests/unit/sanitizers.h"

#include <check.h>
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { LONELY_USER = 54321 };

static _Atomic int ticks, strangers, on_other_thread;
static void *_Atomic cookie_seen;
static _Atomic pid_t target;

static void on_signal(int signo, siginfo_t *info, void *ucontext)
{
    void *cookie = timer_cookie(info);
    if (cookie == NULL) {
        strangers++;
        return;
    }
    cookie_seen = cookie;
    ticks++;
    on_other_thread += gettid() != target;
}

static void catch(void)
{
    struct sigaction act = {.sa_sigaction = on_signal, .sa_flags = SA_SIGINFO | SA_RESTART};
    sigaction(TIMER_SIGNAL, &act, NULL);
    timer_init();
    target = gettid();
}

static void burn(uint64_t ns)
{
    uint64_t until = clock_self() + ns;
    while (clock_self() < until)
        ;
}

START_TEST(a_cpu_timer_ticks_with_the_threads_own_cpu)
{
    int id = -1, mark;
    catch();
    ck_assert_int_eq(timer_make(gettid(), TIMER_CPU, &mark, 10000000, 10000000, &id), 0);
    ck_assert_uint_eq(timer_armed(), 1);
    usleep(50000);
    ck_assert_int_eq(ticks, 0);
    burn(200000000);
    ck_assert_int_ge(ticks, 10);
    ck_assert_int_le(ticks, 21);
    ck_assert_ptr_eq(cookie_seen, &mark);
    ck_assert_int_eq(on_other_thread, 0);
    ck_assert_int_eq(timer_set_period(id, 1000000000, 1000000000), 0);
    int before = ticks;
    burn(50000000);
    ck_assert_int_le(ticks - before, 1);
    timer_drop(id);
    ck_assert_uint_eq(timer_armed(), 0);
    ck_assert_int_eq(timer_set_period(id, 1, 1), -EINVAL);
    timer_drop(id);
    timer_drop(-1);
    ck_assert_uint_eq(timer_armed(), 0);
}
END_TEST

START_TEST(a_monotonic_timer_ticks_while_the_thread_waits)
{
    int id, mark;
    catch();
    ck_assert_int_eq(timer_make(gettid(), TIMER_MONOTONIC, &mark, 1000000, 1000000, &id), 0);
    uint64_t until = clock_now() + 50000000;
    while (clock_now() < until)
        usleep(10000);
    ck_assert_int_ge(ticks, 5);
    timer_drop(id);
}
END_TEST

static _Atomic int thread_stop;

static void *burner(void *arg)
{
    *(_Atomic pid_t *)arg = gettid();
    while (!thread_stop)
        ;
    return NULL;
}

START_TEST(a_timer_signals_its_thread_alone)
{
    pthread_t thread;
    _Atomic pid_t tid = 0;
    int id;
    catch();
    pthread_create(&thread, NULL, burner, &tid);
    while (tid == 0)
        usleep(100);
    target = tid;
    ck_assert_int_eq(timer_make(tid, TIMER_CPU, &tid, 5000000, 5000000, &id), 0);
    uint64_t until = clock_now() + UINT64_C(5000000000);
    while (ticks < 10 && clock_now() < until)
        burn(10000000);
    thread_stop = 1;
    pthread_join(thread, NULL);
    ck_assert_int_ge(ticks, 10);
    ck_assert_int_eq(on_other_thread, 0);
    timer_drop(id); /* of a thread that is gone */
    ck_assert_uint_eq(timer_armed(), 0);
}
END_TEST

START_TEST(signals_of_others_are_not_ours)
{
    catch();
    raise(TIMER_SIGNAL);
    sigqueue(getpid(), TIMER_SIGNAL, (union sigval){.sival_ptr = (void *)(UINT64_C(0xa9f0) << 48 | 64)});
    struct sigevent event = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = TIMER_SIGNAL, .sigev_value.sival_ptr = &ticks};
    struct itimerspec when = {.it_value.tv_nsec = 1000000};
    timer_t timer;
    ck_assert_int_eq(timer_create(CLOCK_MONOTONIC, &event, &timer), 0);
    timer_settime(timer, 0, &when, NULL);
    uint64_t until = clock_now() + 200000000;
    while (strangers < 3 && clock_now() < until)
        usleep(1000);
    ck_assert_int_eq(strangers, 3);
    ck_assert_int_eq(ticks, 0);
}
END_TEST

/* The limit is on what a user has in all processes: one that nobody else is. */
static void become_nobody(void)
{
    if (geteuid() == 0)
        ck_assert_int_eq(setresuid(LONELY_USER, LONELY_USER, LONELY_USER), 0);
}

START_TEST(an_eighth_of_the_limit_is_used_and_no_more)
{
    struct rlimit limit;
    int ids[16], mark;
    become_nobody();
    getrlimit(RLIMIT_SIGPENDING, &limit);
    limit.rlim_cur = 80;
    ck_assert_int_eq(setrlimit(RLIMIT_SIGPENDING, &limit), 0);
    catch();
    for (int i = 0; i < 10; i++)
        ck_assert_int_eq(timer_make(gettid(), TIMER_CPU, &mark, 1000000000, 1000000000, &ids[i]), 0);
    ck_assert_int_eq(timer_make(gettid(), TIMER_CPU, &mark, 1000000000, 1000000000, &ids[10]), -EAGAIN);
    ck_assert_uint_eq(timer_refused(), 1);
    timer_drop(ids[3]);
    ck_assert_int_eq(timer_make(gettid(), TIMER_CPU, &mark, 1000000000, 1000000000, &ids[3]), 0);
}
END_TEST

START_TEST(bad_threads_and_cookies_are_refused)
{
    int id, mark;
    catch();
    ck_assert_int_eq(timer_make(0, TIMER_CPU, &mark, 1, 1, &id), -EINVAL);
    ck_assert_int_eq(timer_make(0x0fffffff, TIMER_CPU, &mark, 1, 1, &id), -EINVAL);
    ck_assert_int_eq(timer_make(0x3fffffff, TIMER_CPU, &mark, 1, 1, &id), -EINVAL);
    ck_assert_int_eq(timer_make(gettid(), TIMER_CPU, (void *)(UINT64_C(1) << 48), 1, 1, &id), -EINVAL);
    ck_assert_uint_eq(timer_armed(), 0);
}
END_TEST

static _Atomic int waiting;

static void *wait_for_ever(void *unused)
{
    waiting++;
    for (;;)
        pause();
    return unused;
}

/* The least of some readings, in ns of our CPU. */
static uint64_t reading(void)
{
    uint64_t least = UINT64_MAX;
    for (int i = 0; i < 20; i++) {
        uint64_t began = clock_self();
        clock_process();
        uint64_t took = clock_self() - began;
        least = took < least ? took : least;
    }
    return least;
}

START_TEST(the_sum_that_is_kept_is_the_processs)
{
    pthread_t thread;
    int id = -1;
    catch();
    for (int i = 0; i < 1000; i++)
        ck_assert_int_eq(pthread_create(&thread, NULL, wait_for_ever, NULL), 0);
    while (waiting < 1000)
        usleep(1000);
    uint64_t before = reading();
    ck_assert_int_eq(timer_keep_sum(&id), 0);
    ck_assert_uint_eq(timer_armed(), 1);
    ck_assert_uint_lt(2 * reading(), before);
    uint64_t process = clock_process(), self = clock_self();
    burn(30000000);
    process = clock_process() - process;
    self = clock_self() - self;
    ck_assert_uint_ge(process, self - self / 10);
    ck_assert_uint_le(process, self + self / 2); /* the last ones may be on their way to stand still */
    ck_assert_int_eq(ticks + strangers, 0);
    timer_drop(id);
    ck_assert_uint_eq(timer_armed(), 0);
}
END_TEST

START_TEST(a_forked_child_has_no_timer)
{
    int id, mark;
    catch();
    timer_make(gettid(), TIMER_CPU, &mark, 1000000000, 1000000000, &id);
    pid_t child = fork();
    if (child == 0) {
        timer_postfork_child();
        _exit(timer_armed() == 0 && timer_make(gettid(), TIMER_CPU, &mark, 1000000, 1000000, &id) == 0 ? 0 : 1);
    }
    int status;
    waitpid(child, &status, 0);
    ck_assert_int_eq(status, 0);
}
END_TEST

static _Atomic int alarms;
static void on_alarm(int signo) { alarms++; }

START_TEST(timers_that_would_kill_stand_still_while_held)
{
    const struct itimerval soon = {{0, 10000}, {0, 10000}}, none = {{0, 0}, {0, 0}};
    struct itimerval now;
    struct timer_held held;
    signal(SIGALRM, SIG_DFL); /* not Check's */
    ck_assert_int_eq(setitimer(ITIMER_REAL, &soon, NULL), 0);
    timer_hold(&held);
    for (uint64_t until = clock_now() + 50000000; clock_now() < until;)
        usleep(5000);
    timer_let_go(&held);
    ck_assert_int_eq(getitimer(ITIMER_REAL, &now), 0);
    ck_assert(now.it_value.tv_usec > 0 && now.it_value.tv_usec <= 10000);
    ck_assert_int_eq(now.it_interval.tv_usec, 10000);

    signal(SIGALRM, on_alarm);
    alarms = 0;
    timer_hold(&held); /* nothing that would kill */
    for (uint64_t until = clock_now() + 2000000000; clock_now() < until && !alarms;)
        usleep(5000);
    ck_assert_int_gt(alarms, 0);
    setitimer(ITIMER_REAL, &none, NULL);
    timer_let_go(&held);
    ck_assert_int_eq(getitimer(ITIMER_REAL, &now), 0);
    ck_assert_int_eq(now.it_value.tv_usec, 0);
}
END_TEST

Suite *suite_timer(void)
{
    Suite *suite = suite_create("timer");
    TCase *tests = tcase_create("timer");
    tcase_set_timeout(tests, 20);
    tcase_add_test(tests, a_monotonic_timer_ticks_while_the_thread_waits);
    if (!UNDER_TSAN) { /* its runtime delivers signals later, by its own count */
        tcase_add_test(tests, a_cpu_timer_ticks_with_the_threads_own_cpu);
        tcase_add_test(tests, a_timer_signals_its_thread_alone);
        tcase_add_test(tests, the_sum_that_is_kept_is_the_processs);
    }
    tcase_add_test(tests, signals_of_others_are_not_ours);
    tcase_add_test(tests, an_eighth_of_the_limit_is_used_and_no_more);
    tcase_add_test(tests, bad_threads_and_cookies_are_refused);
    tcase_add_test(tests, a_forked_child_has_no_timer);
    tcase_add_test(tests, timers_that_would_kill_stand_still_while_held);
    suite_add_tcase(suite, tests);
    return suite;
}
