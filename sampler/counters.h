/* SPDX-License-Identifier: MIT
 *
 * counters: what the sampler did and what it lost, by reason. Plain data of one
 * window, written by the sampler, read by output/metadata.c. Times in
 * nanoseconds (the metadata shows microseconds).
 */
#ifndef APROF_SAMPLER_COUNTERS_H
#define APROF_SAMPLER_COUNTERS_H

#include <stdint.h>

/* Reasons for which a sample is lost or lacks something; shown in the metadata as dropped{}. */
#define DROP_REASONS(X) \
    X(torn) X(torn_awaiter) X(fault) X(deadline) X(table_full) X(ring_full) X(late) X(unreadable) X(creator_unknown)

enum drop_reason {
#define X(name) DROP_##name,
    DROP_REASONS(X)
#undef X
    DROP_COUNT
};

/* Limits that can bite; the metadata's limits{} shows those that did. Those of the
 * spool: living windows alone beyond the bound; writing failed for want of room, of
 * rights, for another reason; files that somebody took away, replaced or cut. threads:
 * ticks that did not look at all of them; tick_deadline: those of them that ran out of time.
 * dump_refused: requests for a dump that nobody may make, or that could not be answered.
 * exceptions: samples of which it could not be read whether they handle one, and times that a task that handles one and awaits
 * others had changed since it was read: what it had in `exc` since the tick before is lost.
 * collections: samples while a garbage collection was under way of which it could not be told whether it was theirs.
 * thread_names: threads that are [thread ~] because a window has too many different names;
 * task_names, labels: how often a task was found to be [task ~], a value [LABEL=~] for it;
 * exception_types: to wait in [exception ~], for it or because the type's name could not be read. */
#define LIMITS(X) \
    X(depth) X(memory) X(spool) X(spool_full) X(spool_refused) X(spool_error) X(spool_lost) X(threads) X(interpreters) X(loops) \
    X(timers) X(names) X(records) X(signals_blocked) X(alternate_stack) X(tick_deadline) X(dump_refused) X(thread_names) X(task_names) \
    X(labels) X(exceptions) X(exception_types) X(collections)

enum limit {
#define X(name) LIMIT_##name,
    LIMITS(X)
#undef X
    LIMIT_COUNT
};

/* What the budget of CPU decided (sampler/budget.h). */
struct budget_counters {
    uint64_t allowed_ns;          /* might have been used, as far as it was reviewed */
    uint32_t slowed, quickened;   /* changes of the rate */
    uint32_t ceilings;            /* reviews in which a twentieth of a core was less than the share of the application's CPU */
    uint32_t rate_mhz;            /* in force since the last review: ticks in 1,000 seconds */
    uint32_t least_mhz;           /* the lowest that was in force; 0: no review yet */
};

struct counters {
    uint64_t ticks_due, ticks_taken, ticks_missed; /* of the sampler's own clock and the CPU ticks together */
    uint64_t samples;                              /* stacks that were recorded */
    uint64_t dropped[DROP_COUNT];
    uint64_t limits[LIMIT_COUNT];
    uint64_t cpu_unseen_ns;  /* booked to [unseen cpu] */
    uint64_t cpu_spread_ns;  /* spread over stacks that were seen */
    uint64_t gil_wait_ns, gil_unknown_ns, gil_wall_ns; /* where `gil` is recorded: that threads waited for the GIL, may have, of so
                                                          much that they lived */
    uint32_t threads_peak, tasks_peak;
    uint64_t thread_reads, threads_left; /* threads that the sampler's ticks looked at; and that they left for later ones */
    uint64_t tasks_skipped;
    uint64_t task_ticks, task_repeats; /* over all tasks: that read them, and while nothing had run since the one before */
    uint64_t task_reads;     /* tasks read in them */
    uint64_t task_postponed; /* of these, what was not in one piece: the time comes with the next reading */
    uint64_t task_cpu_ns;    /* CPU that they took, of sampler_cpu_ns */
    uint64_t sampler_cpu_ns; /* CPU of our thread */
    uint64_t handler_ns;     /* CPU in our handlers on application threads */
    uint64_t process_cpu_ns; /* CPU of the whole process, ours included */
    struct budget_counters budget;
    uint64_t heap_bytes;     /* of the profiler's own heap, in use now: a level, not a sum */
};

struct loop_time { /* one event loop's thread, as seen in the window */
    uint32_t thread;     /* tid */
    uint64_t idle_ns, busy_ns; /* a loop in C has neither: its thread's stacks do not show it */
    uint64_t stood_ns;   /* the longest that the thread is known to have stood still within one step of the loop, at least */
    uint32_t stood_in;   /* the stack (profile_stack) that it stood in; 0: it never did */
    uint64_t step_least_ns, step_most_ns; /* of the step that is the longest by what it was at least: that, and at most; 0: none was followed */
    uint32_t step_in;    /* a stack that was seen in it; 0: none */
    uint32_t steps_unknown; /* looks that could not tell which step it was in */
    /* Where `task` is recorded, of tasks that are pending and do not run: the time over which they were counted, their number
     * times that time, and the most at one tick; ready: those that wait for nothing but the loop. */
    uint64_t counted_ns, pending_ns, ready_ns;
    uint32_t pending_peak, ready_peak;
};
#define LOOPS_SHOWN 64

#endif
