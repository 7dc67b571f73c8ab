/* SPDX-License-Identifier: MIT
 *
 * metadata: what a window says about itself, one JSON object.
 *
 * Keys, in this order (times in microseconds): schema run pid ppid host program
 * python build start_us end_us window ended settings{} tags{} pid_namespace boot
 * ticks{due,taken,missed} rate{asked,got} samples dropped{...} cpu_unseen_us
 * cpu_spread_us threads_peak tasks_peak tasks_skipped children_without_sample
 * loops[{thread,idle_us,busy_us,...}] sampler_cpu_us handler_us process_cpu_us
 * budget{allowed_us,rate,least,slowed,quickened,ceilings} heap_bytes reader limits{}
 * metrics{cpu:{total_us,stacks},...}, and "paused" only while it is true. `limits` maps the name of each limit that bit to how often; heap_bytes is what
 * the profiler's own heap has handed out at that moment (APROF_MEMORY bounds it).
 *
 * A loop's entry says more where there is something to say: "stood_us" and "stood_in", the longest that its thread
 * is known to have stood still in one step of the loop, and the last frames of that stack, 255 bytes at most;
 * "step_least_us", "step_most_us" and "step_in", of the step that took the most at least: that, what it took at most
 * (sampler/steps.h), and likewise a stack that was seen in it; "steps_unknown", looks that could not tell which step
 * it was in; and where the metric task is
 * recorded, of its tasks that do not run, "pending_us" and "pending_peak", "ready_us" and "ready_peak": summed over the
 * "counted_us" in which they were counted, and the most at one tick. "ready": waiting for the loop alone. pending_us /
 * counted_us is their number on average; a loop in C has no idle_us and busy_us.
 *
 * A string that is not UTF-8 has U+FFFD for what is wrong with it. settings maps
 * names to strings; reader: "copy" or "syscall"; ended: one word of
 * SPOOL_ENDED_WORDS. Where ticks did not read all threads (APROF_MAX_THREADS), "thread_reads"
 * {taken,left} comes after tasks_skipped: threads that they read, and that they left for
 * later ones, whose readings have the time of both. Once there were ticks over asyncio tasks, "task_ticks"
 * {read,repeated,tasks,postponed,cpu_us} comes behind it: ticks that read
 * them, ticks that repeated the one before since nothing had run, tasks read in all,
 * those of them whose time comes with the next reading since they changed meanwhile,
 * and CPU of sampler_cpu_us that this took. budget: what sampling might have used
 * (sampler/budget.h), the rate of its ticks in force and the lowest in the window, how
 * often it went down and up again, and reviews in which a twentieth of a core was the bound. Where
 * the metric gil is recorded, "gil" {held_us,wait_us,unknown_us,wall_us} comes after loops: threads' time with
 * the GIL, waiting for it, ready to run without a CPU while another had it (in C code or on the way to the
 * GIL: not to be told), and in all. Where thread CPU
 * clocks prove nothing, "clock": "coarse" comes before limits. The values of ended and
 * dropped.deadline stand in aligned words of their own, spaces before them. Example
 * (in the file one line; compared by tests/unit/check_metadata.c):
 *
 * {"schema": 1, "run": "5f1c0a9e", "pid": 4242, "ppid": 4200, "host": "web-1",
 *  "program": "python3 app.py", "python": "3.11.2", "build": "release",
 *  "start_us": 1700000000000000, "end_us": 1700000060000000, "window": 3,
 *  "ended": "window", "settings": {"APROF_RATE": "100", "APROF_WINDOW": "60"},
 *  "tags": {"version": "1.4", "region": "eu"}, "pid_namespace": 4026531836,
 *  "boot": "0b1c2d3e-4f50-6172-8394-a5b6c7d8e9f0",
 *  "ticks": {"due": 6000, "taken": 5988, "missed": 12},
 *  "rate": {"asked": 100, "got": 99.80}, "samples": 17000,
 *  "dropped": {"torn": 1, "torn_awaiter": 2, "fault": 3, "deadline": 4,
 *  "table_full": 5, "ring_full": 6, "late": 7, "unreadable": 8,
 *  "creator_unknown": 9}, "cpu_unseen_us": 1500, "cpu_spread_us": 2500,
 *  "threads_peak": 8, "tasks_peak": 5000, "tasks_skipped": 10,
 *  "children_without_sample": 2,
 *  "loops": [{"thread": 4242, "idle_us": 48000000, "busy_us": 12000000,
 *  "stood_us": 310000, "stood_in": "handle (app.py:12);ask (app.py:30)",
 *  "step_least_us": 330000, "step_most_us": 341001, "step_in": "handle (app.py:12);parse (app.py:50)",
 *  "steps_unknown": 2, "counted_us": 59990000,
 *  "pending_us": 299950000, "pending_peak": 7, "ready_us": 1200000, "ready_peak": 5}],
 *  "gil": {"held_us": 31000000, "wait_us": 2500000, "unknown_us": 40000,
 *  "wall_us": 480000000},
 *  "sampler_cpu_us": 90000, "handler_us": 30000, "process_cpu_us": 31000000,
 *  "budget": {"allowed_us": 308000, "rate": 62.50, "least": 40.00, "slowed": 3, "quickened": 1,
 *  "ceilings": 0}, "heap_bytes": 1400000, "reader": "copy", "limits": {"depth": 4},
 *  "metrics": {"cpu": {"total_us": 30870000, "stacks": 412},
 *  "wall": {"total_us": 480000000, "stacks": 530},
 *  "gil": {"total_us": 31000000, "stacks": 400}}}
 *
 * Runs in: [sampler]. No allocation but the buffer's; the encoder is ours because the preloaded
 * library may need nothing but libc.
 */
#ifndef APROF_OUTPUT_METADATA_H
#define APROF_OUTPUT_METADATA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "output/buffer.h"
#include "sampler/counters.h"
#include "sampler/profile.h"

#define METADATA_SCHEMA 1

struct metadata_pair {
    const char *key, *value;
};

struct metadata {
    /* of the process; pointers live as long as the process */
    const char *run, *host, *program, *python, *build;
    pid_t pid, ppid;
    const struct metadata_pair *settings, *tags;
    uint32_t settings_count, tags_count;
    uint64_t pid_namespace; /* inode of /proc/self/ns/pid, 0: unknown */
    char boot[40];          /* /proc/sys/kernel/random/boot_id */
    /* of the window */
    uint64_t window;        /* SEQ */
    uint64_t start_us, end_us;
    const char *ended;      /* open window exit exec fork killed duration error */
    bool paused;
    uint32_t rate_asked;
    double rate_got;        /* ticks of the sampler's own clock, a second of the window: fewer than asked while nothing runs, or threads do nothing but run */
    const char *reader;
    bool clock_coarse;      /* thread CPU clocks prove nothing here: shown as "clock":"coarse" */
    uint64_t children_without_sample;
    struct counters counters;
    struct loop_time loops[LOOPS_SHOWN];
    const char *stood_in[LOOPS_SHOWN], *step_in[LOOPS_SHOWN]; /* the stacks of loops[], their last frames; NULL: not known */
    uint32_t loops_count;
    struct { uint64_t total_us; uint32_t stacks; bool recorded; } metrics[METRIC_COUNT];
};

/* Fills total_us and stacks of the metrics that are recorded, and where loops stood: texts
 * that the next call overwrites. */
void metadata_of_profile(struct metadata *metadata, const struct profile *profile);

/* Fills host, pid_namespace, boot. host_buffer must outlive the metadata. */
void metadata_of_machine(struct metadata *metadata, char *host_buffer, size_t size);

/* The object and a newline. Returns the length, or 0 when size is too small. */
size_t metadata_format(const struct metadata *metadata, char *buffer, size_t size);

/* The same at the buffer's beginning, which grows for it; 0: no memory. (All keys
 * are bounded in length but for strings, settings and tags.) */
size_t metadata_put(const struct metadata *metadata, struct buffer *buffer);

#endif
