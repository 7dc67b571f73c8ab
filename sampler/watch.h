/* SPDX-License-Identifier: MIT
 *
 * watch: the threads under observation.
 *
 * Finds the thread states of all interpreters, matches them with threads of the
 * process (hooks/threads.h), arms their timers, drains what their CPU ticks
 * left, reads the ones that stand still, and keeps their accounts.
 *
 * A thread that stands still is known without reading: its stack carries the
 * CPU clock at which it was read, and stands while the clock shows that value
 * to the nanosecond. Otherwise: two equal passes between two equal readings.
 * Running now (the readings differ): its CPU ticks speak for it, unless it used
 * two periods without one (the kernel looks at CPU timers on its own tick only)
 * or has no ticks at all: then it is read from outside while it runs.
 *
 * Of more than max_threads a tick looks at some only (sampler/draw.h), and what it has no
 * time for it leaves to the next one. The choice is made before anything is read: of the
 * others not even the clock is. A look has the time since that thread's last look, half
 * for where it stood then and half for where it stands now (sampler/account.h), so sums
 * stay and shares are unbiased, as chance alone chooses the moments. What a thread has to
 * say itself, it says by a mark (hooks/threads.h), and is attended to in the next tick
 * whether it was drawn or not: its birth, its end, and its CPU ticks, before its ring is
 * full; no stack is read for that. New thread states stand at the front of their lists
 * and are seen in every tick; all are gone through so often that it comes to a fixed
 * number a tick. So a tick costs what it looks at, and a few nanoseconds a thread.
 *
 * Runs in: [sampler].
 */
#ifndef APROF_SAMPLER_WATCH_H
#define APROF_SAMPLER_WATCH_H

#include <stdbool.h>
#include <stdint.h>

#include "sampler/account.h"
#include "sampler/dump.h"
#include "sampler/stacks.h"
#include "sampler/tasks.h"
#include "sampler/window.h"

struct watch_options {
    const struct py_target *target;
    uint32_t depth;
    uint32_t max_threads; /* looked at in one tick; 0: all */
    uint64_t period_ns;   /* of CPU ticks, as the kernel can give them */
    bool signals;         /* CPU ticks at all */
    bool clock_precise;   /* thread CPU clocks prove that a thread stood still */
    bool exceptions;      /* what threads handle is read */
    bool thread_frames;   /* stacks begin with the thread's name (sampler/threadframes.h) */
    struct tasks *tasks;  /* for what running tasks stand on; NULL: no stacks of tasks */
};

struct watch;

/* NULL: no memory. since_ns: first moment at which a sample can be taken. */
struct watch *watch_new(const struct watch_options *options, uint64_t since_ns);
void watch_free(struct watch *watch);

/* One tick over all threads. */
void watch_tick(struct watch *watch, struct stacks *stacks, struct account_book *book, struct window *window);

/* Whether the last tick found that each thread stands where it stood, for certain, and that nobody
 * ran Python. While the process's CPU clock shows that it is so still, no tick is needed. */
bool watch_is_at_rest(const struct watch *watch);
/* Whether the last tick found that each thread stands where it stood, or did nothing but run since
 * the tick before, which its CPU ticks have seen: then a tick has little to say that those do not. */
bool watch_is_steady(const struct watch *watch);
/* Whether one is needed all the same: a thread may have been renamed by whoever ran last. */
bool watch_wants_tick(const struct watch *watch, uint64_t now);
/* In its place: nobody ran until now, which is booked where each stands, and counts as a look at each. */
void watch_rest(struct watch *watch, struct stacks *stacks, struct account_book *book, struct window *window, uint64_t now);

/* Adds all threads that have a thread state to a dump, right after a tick: each is looked at once more. */
void watch_dump(struct watch *watch, struct stacks *stacks, struct dump *dump);

/* No more reading (the runtime ends): only clocks are looked at from now on. */
void watch_stop_reading(struct watch *watch);

/* The end of a window: books every rest; stacks may be cleared afterwards. */
void watch_settle(struct watch *watch, struct stacks *stacks, struct account_book *book, struct window *window);

/* The profile was cleared: cached stacks are void. */
void watch_forget_stacks(struct watch *watch);

/* Disarms all timers (duration over, end of the runtime). */
void watch_disarm(struct watch *watch);

uint32_t watch_count(const struct watch *watch);

/* The threads that have a thread state, as their last look left them; valid until the next tick. Of
 * those that were not looked at in the last tick nothing is said to stand or to be sure, and the sum
 * of all clocks differs from any before, unless nobody can have run Python since the tick before. */
uint32_t watch_list(struct watch *watch, const struct tasks_thread **threads);

#endif
