/* SPDX-License-Identifier: MIT
 *
 * quality: what the metadata of all windows says together: what was covered, how
 * well, at what cost, and what was lost on the way.
 *
 * Windows without metadata are counted and add nothing else. Numbers that are
 * missing or no numbers count as 0. A window that `aprof merge` wrote counts as those
 * that were merged into it (output/merged.h): what is said of several is the same
 * before and after.
 *
 * [tool] only.
 */
#ifndef APROF_OUTPUT_QUALITY_H
#define APROF_OUTPUT_QUALITY_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "output/names.h"
#include "output/reader.h"

struct quality_process {
    const char *host, *program, *python, *run; /* program, python, run may be NULL: not known */
    uint64_t pid, start_us;
    const char *ended; /* open: it still runs; killed: it ended without notice; else as in the last window's metadata */
    uint32_t windows;
    uint64_t covered_us, process_cpu_us, children_without_sample;
    double threads_peak, tasks_peak;
    bool is_merged; /* one of several that the reader takes for one: no stack is known to be its own */
};

struct quality_loop {
    uint32_t process;
    uint64_t thread, idle_us, busy_us;
    uint64_t stood_us;           /* the longest that it stood still in one step; 0: never, or the library was too old to say */
    const char *stood_in;        /* the last frames of the stack that it stood in; NULL: not known */
    uint64_t step_least_us, step_most_us; /* of the step that took the most at least: that, and at most; 0: none was followed, or the library was too old */
    const char *step_in;         /* ... the last frames of a stack seen in it; NULL: not known */
    uint64_t steps_unknown;      /* looks that could not tell which step it was in */
    uint64_t counted_us, pending_us, ready_us; /* of its tasks: pending_us / counted_us were pending on average */
    uint64_t pending_peak, ready_peak;
};

/* Time that was sampled, in microseconds since the epoch. */
struct quality_span {
    uint64_t start, end;
};

struct quality {
    struct quality_process *processes; /* by reader_window.process; what else was merged comes after those */
    size_t processes_room;
    struct quality_span *spans;     /* apart from each other, in order */
    size_t spans_count, spans_room;
    uint32_t processes_count, running, killed, runs;
    uint32_t windows, windows_without_metadata;
    uint64_t start_us, end_us;  /* of the whole, since the epoch */
    uint64_t covered_us;        /* time in which at least one process was sampled */
    uint64_t process_us;        /* the same summed over processes */
    double asked_least, asked_most; /* ticks a second asked for */
    double got, kept;           /* average over process_us; kept: of the rates that the budget left */
    uint64_t ticks_due, ticks_taken, ticks_missed, samples;
    json_t *dropped;            /* reason: how many; all of them */
    json_t *limits;             /* limit: how often it bit */
    uint64_t lost;              /* of dropped those that lost time, and ticks missed, and tasks skipped */
    uint64_t tasks_skipped, children_without_sample;
    struct {
        uint64_t read, repeated; /* ticks over all asyncio tasks: read, or as the one before since nothing had run */
        uint64_t tasks, postponed; /* tasks read in them, and those of these whose time came with the next reading */
        uint64_t cpu_us;
    } task_ticks;               /* all 0: there were none, or the library was too old to say */
    uint64_t tasks_peak;        /* of the process that had most */
    uint64_t threads_peak;      /* the same */
    struct {
        uint64_t taken, left;   /* threads that ticks read, and left for later ones; 0: all were read */
    } thread_reads;
    struct {
        uint64_t held_us, wait_us, unknown_us, wall_us; /* threads' time with the GIL, waiting for it, perhaps so, and in all */
    } gil;                      /* all 0: it was not recorded */
    uint64_t cpu_unseen_us, cpu_spread_us;
    uint64_t sampler_cpu_us, handler_us, process_cpu_us;
    struct {
        uint64_t allowed_us;      /* CPU that the budget left to sampling */
        uint64_t slowed, quickened; /* changes of the rate to keep to it */
        uint64_t ceilings;        /* reviews in which a twentieth of a core was the bound */
        double rate_least;        /* the lowest in any window; 0: the library was too old to say */
    } budget;
    uint32_t windows_by_syscall;    /* read by process_vm_readv */
    uint32_t windows_coarse_clock;
    struct quality_loop *loops;
    size_t loops_count, loops_room;
    struct names *loops_known;      /* process and thread: index in loops */
};

struct quality *quality_new(const struct reader *reader);
void quality_free(struct quality *quality);

/* False for reasons of dropped that kept their sample with less ancestry. */
bool quality_reason_is_loss(const char *reason);
/* The program that all processes run; NULL: they run several, or it is not known. */
const char *quality_program(const struct quality *quality);
/* CPU of sampler and handlers in per cent of the processes' CPU; 0 where there was none. */
double quality_own_cost(const struct quality *quality);

/* In JSON, with the keys that metadata has for them: the time around the GIL, of a loop that step, where one was
 * followed, and its tasks, where they were counted. */
json_t *quality_gil(const struct quality *quality);
void quality_put_step(json_t *object, const struct quality_loop *loop);
void quality_put_tasks(json_t *object, const struct quality_loop *loop);

#endif
