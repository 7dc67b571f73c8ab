/* SPDX-License-Identifier: MIT
 *
 * CLOCK_MONOTONIC and CLOCK_REALTIME go through the vDSO; CPU clocks have none
 * and are asked by raw system calls.
 */
#include "hooks/clock.h"
#include "hooks/raw.h"

#include <time.h> /* clock_gettime */

/* A thread's CPU clock: include/linux/posix-timers_types.h, CPUCLOCK_PERTHREAD_MASK | CPUCLOCK_SCHED. */
#define PER_THREAD_SCHED 6
#define TID_MAX (1 << 28) /* as many bits has a clock id for it; the kernel's own limit is 2^22 */

#define PRECISION_WORK_NS 50000 /* how long we work to see a CPU clock move */
#define PRECISION_MIN_NS 25000
#define PRECISION_MAX_NS 100000
#define PRECISION_TRIES 4 /* a busy machine may take the CPU away in the middle */

static uint64_t nanoseconds(const struct timespec *time)
{
    return (uint64_t)time->tv_sec * 1000000000u + (uint64_t)time->tv_nsec;
}

uint64_t clock_now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return nanoseconds(&time);
}

uint64_t clock_epoch_us(void)
{
    struct timespec time;
    clock_gettime(CLOCK_REALTIME, &time);
    return nanoseconds(&time) / 1000u;
}

static bool clock_read(clockid_t clock, uint64_t *ns)
{
    struct timespec time;
    if (raw2(SYS_clock_gettime, clock, (long)&time) != 0)
        return false;
    *ns = nanoseconds(&time);
    return true;
}

/* The coarse clock moves once a tick (kernel/time/posix-timers.c: its resolution
 * is KTIME_LOW_RES). */
uint64_t clock_kernel_tick(void)
{
    struct timespec time;
    return raw2(SYS_clock_getres, CLOCK_MONOTONIC_COARSE, (long)&time) == 0 ? nanoseconds(&time) : 0;
}

/* Where the kernel keeps the sum (hooks/timer.h, timer_keep_sum) it has of each running
 * thread what it used until it was looked at last, which is what asking for our own does
 * (kernel/sched/core.c, task_sched_runtime). */
uint64_t clock_process(void)
{
    uint64_t ns = 0;
    clock_self();
    clock_read(CLOCK_PROCESS_CPUTIME_ID, &ns);
    return ns;
}

uint64_t clock_self(void)
{
    uint64_t ns = 0;
    clock_read(CLOCK_THREAD_CPUTIME_ID, &ns);
    return ns;
}

bool clock_thread(pid_t tid, uint64_t *ns)
{
    if (tid <= 0 || tid > TID_MAX) /* 0 would be the caller's own clock */
        return false;
    return clock_read((clockid_t)(~(unsigned)tid << 3 | PER_THREAD_SCHED), ns);
}

static bool work_moves_the_clock(void)
{
    uint64_t cpu = clock_self(), until = clock_now() + PRECISION_WORK_NS;
    while (clock_now() < until)
        ;
    cpu = clock_self() - cpu;
    return cpu >= PRECISION_MIN_NS && cpu <= PRECISION_MAX_NS;
}

bool clock_thread_is_precise(void)
{
    for (int i = 0; i < PRECISION_TRIES; i++)
        if (work_moves_the_clock())
            return true;
    return false;
}
