/* SPDX-License-Identifier: MIT
 *
 * clock: the clocks that a profiler needs. All values are nanoseconds unless
 * the name says otherwise. Runs in: any context; async-signal-safe.
 */
#ifndef APROF_HOOKS_CLOCK_H
#define APROF_HOOKS_CLOCK_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

uint64_t clock_now(void);      /* CLOCK_MONOTONIC */
uint64_t clock_epoch_us(void); /* CLOCK_REALTIME in microseconds */
uint64_t clock_process(void);  /* CPU time of the process, raw system call; with timer_keep_sum as of the last kernel
                                  tick for threads that run now, but for the caller */
uint64_t clock_self(void);     /* CPU time of the calling thread */

/* The kernel's tick, on which CPU timers expire: they cannot come faster. */
uint64_t clock_kernel_tick(void);

/* CPU time of thread tid of this process; false when there is no such thread.
 * By a kernel clock id made from the tid, never by pthread_t (which may be
 * stale); 0.2-0.3 us. Linux: include/linux/posix-timers_types.h, CPUCLOCK_*. */
bool clock_thread(pid_t tid, uint64_t *ns);

/* Whether thread CPU clocks are exact enough to prove that a thread stood
 * still: 50 us of work must move ours by 25-100 us (gVisor's do not). Burns
 * about 50 us; retried up to four times, as a busy machine may interrupt. */
bool clock_thread_is_precise(void);

#endif
