/* SPDX-License-Identifier: MIT
 *
 * Everything sums, but for levels: children without a sample are a count kept
 * by the process, so its last window has it all.
 */
#include "output/quality.h"

#include <stdlib.h>
#include <string.h>

#include "output/document.h"
#include "output/spool_format.h"
#include "output/tool.h"

/* Whether a reason lost time, or kept the sample with less ancestry. */
static const struct {
    const char *name;
    bool lost;
} reasons[] = {
#define KEY(name, lost) { #name, lost },
    SPOOL_DROPPED_KEYS(KEY)
#undef KEY
};

bool quality_reason_is_loss(const char *reason)
{
    for (size_t at = 0; at < sizeof reasons / sizeof *reasons; at++)
        if (!strcmp(reasons[at].name, reason))
            return reasons[at].lost;
    return true; /* a newer library's: better counted than hidden */
}

static uint64_t number(const json_t *object, const char *key)
{
    const json_t *value = json_object_get(object, key);
    double real = json_number_value(value);
    if (json_is_integer(value))
        return json_integer_value(value) > 0 ? (uint64_t)json_integer_value(value) : 0;
    return real > 0 && real < 1e18 ? (uint64_t)real : 0;
}

static double real(const json_t *object, const char *key)
{
    double value = json_number_value(json_object_get(object, key));
    return value > 0 ? value : 0;
}

static void sum_object(json_t *into, const json_t *from)
{
    const char *key;
    json_t *value;
    json_object_foreach((json_t *)from, key, value) {
        uint64_t sum = number(into, key) + number(from, key); /* of two that have 63 bits */
        json_object_set_new(into, key, json_integer(sum > INT64_MAX ? INT64_MAX : (json_int_t)sum));
    }
}

static struct quality_loop *loop_of(struct quality *quality, uint32_t process, uint64_t thread)
{
    const uint64_t name[] = { process, thread };
    uint32_t at = names_add(quality->loops_known, (const char *)name, sizeof name);
    if (at == quality->loops_count) {
        quality->loops = tool_grow(quality->loops, at, &quality->loops_room, sizeof *quality->loops);
        quality->loops[quality->loops_count++] = (struct quality_loop){ .process = process, .thread = thread };
    }
    return &quality->loops[at];
}

static void most(uint64_t *known, uint64_t other)
{
    *known = other > *known ? other : *known;
}

static void loop_add(struct quality_loop *loop, const json_t *from)
{
    loop->idle_us += number(from, "idle_us");
    loop->busy_us += number(from, "busy_us");
    loop->counted_us += number(from, "counted_us");
    loop->pending_us += number(from, "pending_us");
    loop->ready_us += number(from, "ready_us");
    most(&loop->pending_peak, number(from, "pending_peak"));
    most(&loop->ready_peak, number(from, "ready_peak"));
    loop->steps_unknown += number(from, "steps_unknown");
    if (number(from, "step_least_us") > loop->step_least_us) {
        loop->step_least_us = number(from, "step_least_us");
        loop->step_most_us = number(from, "step_most_us");
        loop->step_in = json_string_value(json_object_get(from, "step_in"));
    }
    if (number(from, "stood_us") <= loop->stood_us)
        return;
    loop->stood_us = number(from, "stood_us");
    loop->stood_in = json_string_value(json_object_get(from, "stood_in"));
}

static void loops_add(struct quality *quality, uint32_t process, const json_t *loops)
{
    for (size_t at = 0; at < json_array_size(loops); at++) {
        const json_t *from = json_array_get(loops, at);
        loop_add(loop_of(quality, process, number(from, "thread")), from);
    }
}

static void asked_add(struct quality *quality, double asked)
{
    if (asked > 0 && (asked < quality->asked_least || !(quality->asked_least > 0)))
        quality->asked_least = asked;
    if (asked > quality->asked_most)
        quality->asked_most = asked;
}

/* Sums that are averages once all are in. */
static void rate_add(struct quality *quality, const json_t *metadata, uint64_t covered_us)
{
    const json_t *rate = json_object_get(metadata, "rate");
    asked_add(quality, real(rate, "asked"));
    quality->got += real(rate, "got") * (double)covered_us;
    quality->kept += real(json_object_get(metadata, "budget"), "rate") * (double)covered_us;
}

static void budget_add(struct quality *quality, const json_t *budget)
{
    double rate = real(budget, "least");
    quality->budget.allowed_us += number(budget, "allowed_us");
    quality->budget.slowed += number(budget, "slowed");
    quality->budget.quickened += number(budget, "quickened");
    quality->budget.ceilings += number(budget, "ceilings");
    if (rate > 0 && (rate < quality->budget.rate_least || !(quality->budget.rate_least > 0)))
        quality->budget.rate_least = rate;
}

static void thread_reads_add(struct quality *quality, const json_t *reads)
{
    quality->thread_reads.taken += number(reads, "taken");
    quality->thread_reads.left += number(reads, "left");
}

static void task_ticks_add(struct quality *quality, const json_t *ticks)
{
    quality->task_ticks.read += number(ticks, "read");
    quality->task_ticks.repeated += number(ticks, "repeated");
    quality->task_ticks.tasks += number(ticks, "tasks");
    quality->task_ticks.postponed += number(ticks, "postponed");
    quality->task_ticks.cpu_us += number(ticks, "cpu_us");
}

static void gil_add(struct quality *quality, const json_t *gil)
{
    quality->gil.held_us += number(gil, "held_us");
    quality->gil.wait_us += number(gil, "wait_us");
    quality->gil.unknown_us += number(gil, "unknown_us");
    quality->gil.wall_us += number(gil, "wall_us");
}

static uint64_t metadata_covered(const json_t *metadata)
{
    uint64_t start = number(metadata, "start_us"), end = number(metadata, "end_us");
    return end > start ? end - start : 0;
}

static void process_add(struct quality_process *process, const struct reader_window *window)
{
    const json_t *metadata = window->metadata;
    const char *ended = json_string_value(json_object_get(metadata, "ended"));
    process->host = window->host;
    process->pid = window->pid;
    process->start_us = window->start_us;
    process->windows++;
    if (window->state == READER_OPEN)
        process->ended = "open";
    else if (window->state == READER_DEAD && (!ended || !strcmp(ended, "open")))
        process->ended = "killed";
    else
        process->ended = ended ? ended : "unknown";
    if (!metadata)
        return;
    process->program = json_string_value(json_object_get(metadata, "program"));
    process->python = json_string_value(json_object_get(metadata, "python"));
    process->run = json_string_value(json_object_get(metadata, "run"));
    process->covered_us += metadata_covered(metadata);
    process->process_cpu_us += number(metadata, "process_cpu_us");
    process->children_without_sample = number(metadata, "children_without_sample");
    if (real(metadata, "threads_peak") > process->threads_peak)
        process->threads_peak = real(metadata, "threads_peak");
    if (real(metadata, "tasks_peak") > process->tasks_peak)
        process->tasks_peak = real(metadata, "tasks_peak");
}

static void span_add(struct quality *quality, uint64_t start, uint64_t end)
{
    if (start && (start < quality->start_us || !quality->start_us))
        quality->start_us = start;
    if (end > quality->end_us)
        quality->end_us = end;
    if (end <= start)
        return;
    quality->spans = tool_grow(quality->spans, quality->spans_count, &quality->spans_room, sizeof *quality->spans);
    quality->spans[quality->spans_count++] = (struct quality_span){ start, end };
}

static const char *text(const json_t *object, const char *key)
{
    return json_string_value(json_object_get(object, key));
}

/* ---- windows that were merged --------------------------------------------- */

/* The first takes the place of the process that the reader has; the others come after all. */
static uint32_t merged_place(struct quality *quality, uint32_t process, size_t at)
{
    if (!at)
        return process;
    quality->processes = tool_grow(quality->processes, quality->processes_count, &quality->processes_room, sizeof *quality->processes);
    return quality->processes_count++;
}

static void merged_process_add(struct quality *quality, uint32_t place, const json_t *from)
{
    const char *host = text(from, "host"), *ended = text(from, "ended");
    quality->processes[place] = (struct quality_process){
        .host = host ? host : "",
        .program = text(from, "program"),
        .python = text(from, "python"),
        .run = text(from, "run"),
        .pid = number(from, "pid"),
        .start_us = number(from, "start_us"),
        .ended = ended ? ended : "unknown",
        .windows = (uint32_t)number(from, "windows"),
        .covered_us = number(from, "covered_us"),
        .process_cpu_us = number(from, "process_cpu_us"),
        .children_without_sample = number(from, "children_without_sample"),
        .threads_peak = real(from, "threads_peak"),
        .tasks_peak = real(from, "tasks_peak"),
        .is_merged = true,
    };
    loops_add(quality, place, json_object_get(from, "loops"));
}

static void merged_add(struct quality *quality, const struct reader_window *window, const json_t *merged)
{
    const json_t *processes = json_object_get(merged, "processes"), *spans = json_object_get(merged, "spans");
    const json_t *asked = json_object_get(merged, "asked");
    for (size_t at = 0; at < json_array_size(processes); at++)
        merged_process_add(quality, merged_place(quality, window->process, at), json_array_get(processes, at));
    for (size_t at = 0; at < json_array_size(spans); at++)
        span_add(quality, number(json_array_get(spans, at), "start_us"), number(json_array_get(spans, at), "end_us"));
    quality->windows += (uint32_t)number(merged, "windows");
    quality->windows_without_metadata += (uint32_t)number(merged, "windows_without_metadata");
    quality->windows_by_syscall += (uint32_t)number(merged, "windows_by_syscall");
    quality->windows_coarse_clock += (uint32_t)number(merged, "windows_coarse_clock");
    quality->process_us += number(merged, "process_us");
    asked_add(quality, real(asked, "least"));
    rate_add(quality, window->metadata, number(merged, "process_us"));
}

/* ---- windows -------------------------------------------------------------- */

static void single_add(struct quality *quality, const struct reader_window *window)
{
    const json_t *metadata = window->metadata;
    const char *how = text(metadata, "reader"), *clock = text(metadata, "clock");
    quality->windows++;
    process_add(&quality->processes[window->process], window);
    if (!metadata) {
        quality->windows_without_metadata++;
        return;
    }
    span_add(quality, number(metadata, "start_us"), number(metadata, "end_us"));
    quality->process_us += metadata_covered(metadata);
    quality->windows_by_syscall += how && !strcmp(how, "syscall");
    quality->windows_coarse_clock += clock && !strcmp(clock, "coarse");
    rate_add(quality, metadata, metadata_covered(metadata));
    loops_add(quality, window->process, json_object_get(metadata, "loops"));
}

/* What is summed alike, merged or not. */
static void counters_add(struct quality *quality, const json_t *metadata)
{
    const json_t *ticks = json_object_get(metadata, "ticks");
    quality->ticks_due += number(ticks, "due");
    quality->ticks_taken += number(ticks, "taken");
    quality->ticks_missed += number(ticks, "missed");
    quality->samples += number(metadata, "samples");
    sum_object(quality->dropped, json_object_get(metadata, "dropped"));
    sum_object(quality->limits, json_object_get(metadata, "limits"));
    quality->tasks_skipped += number(metadata, "tasks_skipped");
    thread_reads_add(quality, json_object_get(metadata, "thread_reads"));
    task_ticks_add(quality, json_object_get(metadata, "task_ticks"));
    gil_add(quality, json_object_get(metadata, "gil"));
    if (number(metadata, "tasks_peak") > quality->tasks_peak)
        quality->tasks_peak = number(metadata, "tasks_peak");
    if (number(metadata, "threads_peak") > quality->threads_peak)
        quality->threads_peak = number(metadata, "threads_peak");
    quality->cpu_unseen_us += number(metadata, "cpu_unseen_us");
    quality->cpu_spread_us += number(metadata, "cpu_spread_us");
    quality->sampler_cpu_us += number(metadata, "sampler_cpu_us");
    quality->handler_us += number(metadata, "handler_us");
    quality->process_cpu_us += number(metadata, "process_cpu_us");
    budget_add(quality, json_object_get(metadata, "budget"));
}

static void window_add(struct quality *quality, const struct reader_window *window)
{
    const json_t *merged = json_object_get(window->metadata, "merged");
    if (json_array_size(json_object_get(merged, "processes")))
        merged_add(quality, window, merged);
    else
        single_add(quality, window);
    if (window->metadata)
        counters_add(quality, window->metadata);
}

static int span_compare(const void *left, const void *right)
{
    const struct quality_span *one = left, *other = right;
    return (one->start > other->start) - (one->start < other->start);
}

/* Those that meet become one; adds up what is left. */
static void spans_join(struct quality *quality)
{
    struct quality_span *spans = quality->spans;
    size_t joined = 0;
    if (quality->spans_count)
        qsort(spans, quality->spans_count, sizeof *spans, span_compare);
    for (size_t at = 0; at < quality->spans_count; at++) {
        if (joined && spans[at].start <= spans[joined - 1].end)
            spans[joined - 1].end = spans[at].end > spans[joined - 1].end ? spans[at].end : spans[joined - 1].end;
        else
            spans[joined++] = spans[at];
    }
    quality->spans_count = joined;
    for (size_t at = 0; at < joined; at++)
        quality->covered_us += spans[at].end - spans[at].start;
}

static uint64_t lost_of(const struct quality *quality)
{
    uint64_t lost = quality->ticks_missed + quality->tasks_skipped;
    const char *reason;
    json_t *value;
    json_object_foreach(quality->dropped, reason, value)
        lost += quality_reason_is_loss(reason) ? number(quality->dropped, reason) : 0;
    return lost;
}

static void processes_count(struct quality *quality)
{
    struct names *runs = names_new();
    for (uint32_t at = 0; at < quality->processes_count; at++) {
        const struct quality_process *process = &quality->processes[at];
        quality->running += !strcmp(process->ended, "open");
        quality->killed += !strcmp(process->ended, "killed");
        quality->children_without_sample += process->children_without_sample;
        if (process->run)
            names_add(runs, process->run, strlen(process->run));
    }
    quality->runs = names_count(runs);
    names_free(runs);
}

struct quality *quality_new(const struct reader *reader)
{
    struct quality *quality = tool_alloc(1, sizeof *quality);
    quality->dropped = json_object();
    quality->limits = json_object();
    quality->loops_known = names_new();
    quality->processes_count = reader_processes(reader);
    quality->processes_room = quality->processes_count ? quality->processes_count : 1;
    quality->processes = tool_alloc(quality->processes_room, sizeof *quality->processes);
    for (uint32_t at = 0; at < reader_windows(reader); at++)
        window_add(quality, reader_window(reader, at));
    spans_join(quality);
    quality->got = quality->process_us ? quality->got / (double)quality->process_us : 0;
    quality->kept = quality->process_us ? quality->kept / (double)quality->process_us : 0;
    quality->lost = lost_of(quality);
    processes_count(quality);
    return quality;
}

void quality_free(struct quality *quality)
{
    if (!quality)
        return;
    json_decref(quality->dropped);
    json_decref(quality->limits);
    free(quality->processes);
    free(quality->spans);
    free(quality->loops);
    names_free(quality->loops_known);
    free(quality);
}

const char *quality_program(const struct quality *quality)
{
    const char *program = quality->processes_count ? quality->processes[0].program : NULL;
    for (uint32_t at = 1; program && at < quality->processes_count; at++)
        if (!quality->processes[at].program || strcmp(program, quality->processes[at].program))
            program = NULL;
    return program;
}

double quality_own_cost(const struct quality *quality)
{
    double own = (double)(quality->sampler_cpu_us + quality->handler_us);
    return quality->process_cpu_us ? 100 * own / (double)quality->process_cpu_us : 0;
}

json_t *quality_gil(const struct quality *quality)
{
    const struct document_count gil[] = {
        { "held_us", quality->gil.held_us },
        { "wait_us", quality->gil.wait_us },
        { "unknown_us", quality->gil.unknown_us },
        { "wall_us", quality->gil.wall_us },
    };
    json_t *object = json_object();
    document_counts(object, gil, sizeof gil / sizeof *gil);
    return object;
}

void quality_put_step(json_t *object, const struct quality_loop *loop)
{
    const struct document_count times[] = { { "step_least_us", loop->step_least_us }, { "step_most_us", loop->step_most_us } };
    const struct document_count unknown[] = { { "steps_unknown", loop->steps_unknown } };
    if (loop->step_least_us) {
        document_counts(object, times, sizeof times / sizeof *times);
        if (loop->step_in)
            json_object_set_new(object, "step_in", document_text(loop->step_in));
    }
    if (loop->steps_unknown)
        document_counts(object, unknown, sizeof unknown / sizeof *unknown);
}

void quality_put_tasks(json_t *object, const struct quality_loop *loop)
{
    const struct document_count tasks[] = {
        { "counted_us", loop->counted_us },
        { "pending_us", loop->pending_us },
        { "pending_peak", loop->pending_peak },
        { "ready_us", loop->ready_us },
        { "ready_peak", loop->ready_peak },
    };
    if (loop->counted_us)
        document_counts(object, tasks, sizeof tasks / sizeof *tasks);
}
