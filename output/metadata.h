/* SPDX-License-Identifier: MIT
 *
 * metadata: what a window says about itself, one JSON object.
 *
 * Keys, in this order (times in microseconds): schema run pid ppid host program
 * python build start_us end_us window ended settings{} tags{} pid_namespace boot
 * ticks{due,taken,missed} rate{asked,got} samples dropped{...} cpu_unseen_us
 * cpu_spread_us threads_peak tasks_peak tasks_skipped children_without_sample
 * loops[{thread,idle_us,busy_us}] sampler_cpu_us handler_us process_cpu_us reader
 * limits{} metrics{cpu:{total_us,stacks},...}, and "paused" only while it is true.
 * `limits` maps the name of each limit that bit to how often.
 *
 * (A full example stands here; tests/unit/check_metadata.c compares.)
 *
 * Runs in: [sampler]. No allocation; the encoder is ours because the preloaded
 * library may need nothing but libc.
 */
#ifndef APROF_OUTPUT_METADATA_H
#define APROF_OUTPUT_METADATA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

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
    double rate_got;        /* ticks taken a second of the window */
    const char *reader;
    bool clock_coarse;      /* thread CPU clocks prove nothing here: shown as "clock":"coarse" */
    uint64_t children_without_sample;
    struct counters counters;
    struct loop_time loops[LOOPS_SHOWN];
    uint32_t loops_count;
    struct { uint64_t total_us; uint32_t stacks; bool recorded; } metrics[METRIC_COUNT];
};

/* Fills host, pid_namespace, boot. host_buffer must outlive the metadata. */
void metadata_of_machine(struct metadata *metadata, char *host_buffer, size_t size);

/* The object and a newline. Returns the length, or 0 when size is too small. */
size_t metadata_format(const struct metadata *metadata, char *buffer, size_t size);

#endif
