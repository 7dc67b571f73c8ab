/* SPDX-License-Identifier: MIT
 *
 * The value that comes back with a signal is the cookie with a magic number in
 * the upper 16 bits, which are zero in every user address: so a timer of the
 * application that also sends SIGURG is not mistaken for ours.
 */
#include "hooks/timer.h"
#include "hooks/raw.h"
#include "hooks/real.h"

#include <errno.h>
#include <stdatomic.h>
#include <string.h>       /* memset */
#include <sys/resource.h> /* struct rlimit64 */
#include <time.h>         /* struct itimerspec */

#define MAGIC 0xa9f0u
#define MAGIC_SHIFT 48
#define CENTURIES_NS (8500000000u * 1000000000ull) /* some three; what the kernel can hold is a little more */
#define LIMIT_SHARE 8 /* of RLIMIT_SIGPENDING, which is the user's, not the process's */
/* A thread's CPU clock: include/linux/posix-timers_types.h, CPUCLOCK_PERTHREAD_MASK | CPUCLOCK_SCHED. */
#define PER_THREAD_SCHED 6
#define TID_MAX (1 << 28) /* as many bits has a clock id for it */

static _Atomic uint32_t armed, most;
static _Atomic uint64_t refused;

void timer_init(void)
{
    struct rlimit64 limit = {0, 0};
    raw4(SYS_prlimit64, 0, RLIMIT_SIGPENDING, 0, (long)&limit);
    uint64_t share = limit.rlim_cur / LIMIT_SHARE;
    atomic_store(&most, share > INT32_MAX ? INT32_MAX : (uint32_t)share);
}

static bool slot_take(void)
{
    uint32_t now = atomic_load(&armed);
    do {
        if (now >= atomic_load(&most)) {
            atomic_fetch_add(&refused, 1);
            return false;
        }
    } while (!atomic_compare_exchange_weak(&armed, &now, now + 1));
    return true;
}

static void slot_give(void)
{
    atomic_fetch_sub(&armed, 1);
}

/* Fills the kernel's sigevent, which is libc's with the thread's id spelt out. */
static void describe(struct sigevent *event, pid_t tid, void *cookie)
{
    memset(event, 0, sizeof *event);
    event->sigev_notify = SIGEV_THREAD_ID;
    event->sigev_signo = TIMER_SIGNAL;
    event->sigev_value.sival_ptr = (void *)((uintptr_t)cookie | (uintptr_t)MAGIC << MAGIC_SHIFT);
#ifdef sigev_notify_thread_id /* newer C libraries name the member */
    event->sigev_notify_thread_id = tid;
#else
    event->_sigev_un._tid = tid;
#endif
}

static int create(pid_t tid, clockid_t clock, void *cookie, int *id)
{
    struct sigevent event;
    describe(&event, tid, cookie);
    int error = (int)raw3(SYS_timer_create, clock, (long)&event, (long)id);
    if (error == -EAGAIN)
        atomic_fetch_add(&refused, 1);
    return error;
}

/* Armed, in a slot of its own. */
static int make(pid_t tid, clockid_t clock, void *cookie, uint64_t first_ns, uint64_t period_ns, int *id)
{
    if (!slot_take())
        return -EAGAIN;
    int made, error = create(tid, clock, cookie, &made);
    if (error == 0) {
        error = timer_set_period(made, first_ns, period_ns);
        if (error != 0)
            raw1(SYS_timer_delete, made);
    }
    if (error != 0)
        slot_give();
    else
        *id = made;
    return error;
}

int timer_make(pid_t tid, enum timer_clock clock, void *cookie, uint64_t first_ns, uint64_t period_ns, int *id)
{
    if (tid <= 0 || tid > TID_MAX || (uintptr_t)cookie >> MAGIC_SHIFT != 0)
        return -EINVAL;
    clockid_t kernel_clock = clock == TIMER_CPU ? (clockid_t)(~(unsigned)tid << 3 | PER_THREAD_SCHED) : CLOCK_MONOTONIC;
    return make(tid, kernel_clock, cookie, first_ns, period_ns, id);
}

/* With the signal of all of them, as one that is for nobody would never be armed. */
int timer_keep_sum(int *id)
{
    return make((pid_t)raw0(SYS_gettid), CLOCK_PROCESS_CPUTIME_ID, NULL, CENTURIES_NS, 0, id);
}

void timer_drop(int id)
{
    if (id >= 0 && raw1(SYS_timer_delete, id) == 0)
        slot_give();
}

static struct timespec time_of(uint64_t ns)
{
    return (struct timespec){.tv_sec = (time_t)(ns / 1000000000u), .tv_nsec = (long)(ns % 1000000000u)};
}

int timer_set_period(int id, uint64_t first_ns, uint64_t period_ns)
{
    struct itimerspec when = {.it_value = time_of(first_ns ? first_ns : 1), .it_interval = time_of(period_ns)};
    return (int)raw4(SYS_timer_settime, id, 0, (long)&when, 0);
}

void *timer_cookie(const siginfo_t *info)
{
    uintptr_t value = (uintptr_t)info->si_value.sival_ptr;
    if (info->si_code != SI_TIMER || value >> MAGIC_SHIFT != MAGIC)
        return NULL;
    return (void *)(value & (((uintptr_t)1 << MAGIC_SHIFT) - 1));
}

void timer_postfork_child(void)
{
    atomic_store(&armed, 0);
    atomic_store(&refused, 0);
}

/* --- the application's --- */

static const int signals_of[] = {[ITIMER_REAL] = SIGALRM, [ITIMER_VIRTUAL] = SIGVTALRM, [ITIMER_PROF] = SIGPROF};

static bool is_set(const struct itimerval *timer)
{
    return timer->it_value.tv_sec || timer->it_value.tv_usec;
}

void timer_hold(struct timer_held *held)
{
    const struct itimerval none = {{0, 0}, {0, 0}};
    for (int which = ITIMER_REAL; which <= ITIMER_PROF; which++) {
        struct itimerval *left = &held->left[which];
        struct sigaction action;
        *left = none;
        if (raw2(SYS_getitimer, which, (long)left) != 0 || !is_set(left))
            continue;
        if (real_sigaction(signals_of[which], NULL, &action) != 0 || action.sa_handler != SIG_DFL ||
            raw3(SYS_setitimer, which, (long)&none, (long)left) != 0)
            *left = none;
    }
}

/* Unless somebody set it anew meanwhile. */
void timer_let_go(const struct timer_held *held)
{
    struct itimerval now;
    for (int which = ITIMER_REAL; which <= ITIMER_PROF; which++)
        if (is_set(&held->left[which]) && raw2(SYS_getitimer, which, (long)&now) == 0 && !is_set(&now))
            raw3(SYS_setitimer, which, (long)&held->left[which], 0);
}

uint32_t timer_armed(void)
{
    return atomic_load(&armed);
}

uint64_t timer_refused(void)
{
    return atomic_load(&refused);
}
