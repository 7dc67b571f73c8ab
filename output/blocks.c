/* SPDX-License-Identifier: MIT
 *
 * The windows are put in the order of their blocks and read in it: the tally then
 * needs to remember one block only.
 */
#include "output/blocks.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "output/kind.h"
#include "output/names.h"
#include "output/tool.h"

#define SLOTS_LEAST 8
#define SLOTS_MOST 32
#define PROCESSES_LEAST 4
#define NUMBER_MOST 1e12 /* of anything that metadata says */
#define KERNEL_TICKS 250 /* a second; what a rate of CPU ticks is worth at most, where the kernel's tick is the usual one */

struct part {
    uint32_t window; /* in the reader */
    uint32_t process, run;
    uint64_t start_us, end_us;
    uint64_t block;
};

struct cut {
    struct part *parts;
    uint32_t count, runs, processes;
};

/* ---- windows -------------------------------------------------------------- */

static uint32_t run_of(struct names *runs, const struct quality_process *process)
{
    char alone[96];
    if (process->run)
        return names_add(runs, process->run, strlen(process->run));
    int length = snprintf(alone, sizeof alone, "process %s %llu %llu", process->host, (unsigned long long)process->pid,
                          (unsigned long long)process->start_us);
    return names_add(runs, alone, length < (int)sizeof alone ? (size_t)length : sizeof alone - 1);
}

static struct part part_of(const struct reader *reader, const struct quality *quality, uint32_t at, struct names *runs)
{
    const struct reader_window *window = reader_window(reader, at);
    json_int_t start = json_integer_value(json_object_get(window->metadata, "start_us"));
    json_int_t end = json_integer_value(json_object_get(window->metadata, "end_us"));
    struct part part = { .window = at, .process = window->process, .run = run_of(runs, &quality->processes[window->process]) };
    if (start > 0 && end >= start) {
        part.start_us = (uint64_t)start;
        part.end_us = (uint64_t)end;
    }
    return part;
}

static struct cut cut_new(const struct reader *reader, const struct quality *quality, const char *metric)
{
    struct cut cut = { .parts = tool_alloc(reader_windows(reader), sizeof *cut.parts) };
    struct names *runs = names_new();
    for (uint32_t at = 0; at < reader_windows(reader); at++) {
        if (!reader_window_has(reader, at, metric))
            continue;
        struct part part = part_of(reader, quality, at, runs);
        cut.processes += !cut.count || part.process != cut.parts[cut.count - 1].process;
        cut.parts[cut.count++] = part;
    }
    cut.runs = names_count(runs);
    names_free(runs);
    return cut;
}

/* ---- blocks --------------------------------------------------------------- */

/* By the middle of a window's time, in steps of the longest window. Returns the
 * number of steps; 0 where some window does not know its time. */
static uint64_t slots_number(struct cut *cut)
{
    uint64_t first = UINT64_MAX, longest = 0, slots = 0;
    for (uint32_t at = 0; at < cut->count; at++) {
        const struct part *part = &cut->parts[at];
        if (!part->start_us)
            return 0;
        first = part->start_us < first ? part->start_us : first;
        longest = part->end_us - part->start_us > longest ? part->end_us - part->start_us : longest;
    }
    for (uint32_t at = 0; at < cut->count && longest; at++) {
        struct part *part = &cut->parts[at];
        part->block = (part->start_us + (part->end_us - part->start_us) / 2 - first) / longest;
        slots = part->block >= slots ? part->block + 1 : slots;
    }
    return slots;
}

/* Steps in which something was, and not all the hours between two. */
static uint64_t slots_close_up(struct cut *cut)
{
    uint64_t used = 0, last = 0;
    for (uint32_t at = 0; at < cut->count; at++) {
        used += !at || cut->parts[at].block != last;
        last = cut->parts[at].block;
        cut->parts[at].block = used - 1;
    }
    return used;
}

static int part_compare(const void *left, const void *right)
{
    const struct part *one = left, *other = right;
    if (one->block != other->block)
        return one->block < other->block ? -1 : 1;
    return (one->window > other->window) - (one->window < other->window);
}

static void parts_sort(struct cut *cut)
{
    if (cut->count)
        qsort(cut->parts, cut->count, sizeof *cut->parts, part_compare);
}

static bool cut_by_slots(struct cut *cut)
{
    if (!slots_number(cut))
        return false;
    parts_sort(cut);
    uint64_t slots = slots_close_up(cut);
    for (uint32_t at = 0; at < cut->count && slots > SLOTS_MOST; at++)
        cut->parts[at].block = cut->parts[at].block * SLOTS_MOST / slots;
    return slots >= SLOTS_LEAST;
}

static enum noise_blocks cut_up(struct cut *cut)
{
    enum noise_blocks kind = NOISE_RUNS;
    if (cut->runs < 2)
        kind = cut_by_slots(cut) ? NOISE_WINDOWS : cut->processes >= PROCESSES_LEAST ? NOISE_PROCESSES : NOISE_LOOKS;
    for (uint32_t at = 0; at < cut->count && kind != NOISE_WINDOWS; at++) {
        struct part *part = &cut->parts[at];
        part->block = kind == NOISE_RUNS ? part->run : kind == NOISE_PROCESSES ? part->process : 0;
    }
    parts_sort(cut);
    return kind;
}

/* ---- looks ---------------------------------------------------------------- */

/* No more than can be summed up and counted. */
static double number(const json_t *object, const char *key)
{
    double value = json_number_value(json_object_get(object, key));
    return value > 0 ? (value < NUMBER_MOST ? value : NUMBER_MOST) : 0;
}

/* CPU time is looked at by its own clock, whatever the rate of the sampler's. */
static double cpu_rate(const json_t *metadata)
{
    double asked = number(json_object_get(metadata, "rate"), "asked"), kept = number(json_object_get(metadata, "budget"), "rate");
    double rate = kept > 0 && kept < asked ? kept : asked;
    const char *clock = json_string_value(json_object_get(json_object_get(metadata, "settings"), "APROF_CLOCK"));
    bool is_free = clock && !strcmp(clock, "monotonic");
    return is_free || rate < KERNEL_TICKS ? rate : KERNEL_TICKS;
}

/* Who waits is met at every look of a wait: looks closer together than waits last
 * say the same. Threads and tasks whose waits are of 50 to 200 ms on average had 1.3
 * to 13 times p (1 - p) / n where all looks were counted, 0.1 to 1.6 times with these. */
#define WAIT_LOOKS 4 /* a second */

static double wait_rate(const json_t *metadata)
{
    double got = number(json_object_get(metadata, "rate"), "got");
    return got < WAIT_LOOKS ? got : WAIT_LOOKS;
}

/* How often the sampler looked at so much of a metric; 0: not known. Its samples
 * are those of all metrics. */
static double looks_of(const json_t *metadata, const char *metric, double amount)
{
    double samples = number(metadata, "samples");
    if (kind_of(metric)->unit != KIND_MICROSECONDS)
        return samples;
    double rate = strcmp(metric, "cpu") ? wait_rate(metadata) : cpu_rate(metadata);
    double looks = amount / 1e6 * rate;
    return looks < samples ? looks : samples;
}

struct noise_side blocks_read(struct reader *reader, const struct quality *quality, const char *metric, struct tally *tally)
{
    struct cut cut = cut_new(reader, quality, metric);
    struct noise_side side = { .blocks = cut_up(&cut) };
    for (uint32_t at = 0; at < cut.count; at++) {
        uint64_t before = tally_sum(tally);
        reader_window_each(reader, cut.parts[at].window, metric, tally_line, tally);
        side.looks += looks_of(reader_window(reader, cut.parts[at].window)->metadata, metric, (double)(tally_sum(tally) - before));
        if (at + 1 == cut.count || cut.parts[at + 1].block != cut.parts[at].block)
            tally_block_end(tally);
    }
    side.count = tally_blocks_count(tally);
    side.whole = (double)tally_sum(tally);
    side.squares = tally_blocks_squares(tally);
    side.runs = side.blocks == NOISE_RUNS ? side.count : 1;
    free(cut.parts);
    return side;
}
