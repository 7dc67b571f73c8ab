/* SPDX-License-Identifier: MIT
 *
 * timer: one POSIX timer a thread, on that thread's own CPU clock (or on
 * CLOCK_MONOTONIC when the user chose so), delivered to that thread alone as
 * SIGURG (SIGEV_THREAD_ID). SIGURG is ignored by default, so a lost handler is
 * harmless. Raw system calls: nothing of libc's timer bookkeeping.
 *
 * Armed relative, never absolute: an absolute expiry in the past would fire at
 * once and interrupt a waiting call. Each timer takes one slot of
 * RLIMIT_SIGPENDING, which is per user and shared with the application: at most
 * an eighth of it is used.
 *
 * Runs in: [sampler] [interposer]; timer_cookie and timer_set_period also in [handler].
 */
#ifndef APROF_HOOKS_TIMER_H
#define APROF_HOOKS_TIMER_H

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/time.h> /* struct itimerval */
#include <sys/types.h>

#define TIMER_SIGNAL SIGURG

enum timer_clock { TIMER_CPU, TIMER_MONOTONIC };

/* Reads RLIMIT_SIGPENDING. Call at start, before any timer is made. */
void timer_init(void);

/* Makes and arms a timer for thread tid; cookie comes back with every signal.
 * 0 and *id, or a negative errno (-EAGAIN: our share of the limit is used up). */
int timer_make(pid_t tid, enum timer_clock clock, void *cookie, uint64_t first_ns, uint64_t period_ns, int *id);
void timer_drop(int id);

/* Has the kernel keep the sum of the process's CPU time, as it does while a timer waits
 * for it (Linux: kernel/time/posix-cpu-timers.c, cpu_clock_sample_group): otherwise each
 * reading of that clock adds up all threads, 0.2 us each. The timer is for centuries to
 * come. As timer_make; timer_drop(*id) ends it. */
int timer_keep_sum(int *id);
int timer_set_period(int id, uint64_t first_ns, uint64_t period_ns);

/* The cookie when this signal came from one of our timers, else NULL. The
 * caller checks that the cookie points into its own pool. */
void *timer_cookie(const siginfo_t *info);

/* After fork the child has none of its parent's timers. */
void timer_postfork_child(void);

/* [interposer] At the end of the process, while it waits for us: the application's
 * own timers of setitimer(2) whose signal would kill stand still. Python takes its
 * handlers away before it ends, and what is left of the process must not get longer
 * by our wait and the CPU time that we use in it. Async-signal-safe. */
struct timer_held {
    struct itimerval left[3]; /* ITIMER_REAL, ITIMER_VIRTUAL, ITIMER_PROF; zero: goes on */
};
void timer_hold(struct timer_held *held);
void timer_let_go(const struct timer_held *held);

/* How many are armed now, and how often the limit refused one. */
uint32_t timer_armed(void);
uint64_t timer_refused(void);

#endif
