/* SPDX-License-Identifier: MIT
 *
 * Preloaded: a monotonic clock that goes on by HASTY_STEP_US with every look at it,
 * so that what comes after a while comes after so many looks, however fast the
 * machine is.
 */
#include <stdlib.h>
#include <time.h>
#include <unistd.h>
#include <sys/syscall.h>

int clock_gettime(clockid_t clock, struct timespec *now)
{
    static unsigned long long us = 1000000;
    const char *step = getenv("HASTY_STEP_US");
    if (clock != CLOCK_MONOTONIC || !step)
        return (int)syscall(SYS_clock_gettime, clock, now);
    us += strtoull(step, NULL, 10);
    now->tv_sec = (time_t)(us / 1000000);
    now->tv_nsec = (long)(us % 1000000) * 1000;
    return 0;
}
