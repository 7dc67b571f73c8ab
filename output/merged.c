/* SPDX-License-Identifier: MIT
 *
 * Whatever quality has added up is taken from there, so that both agree.
 */
#include "output/merged.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "output/document.h"
#include "output/names.h"
#include "output/spool_format.h"
#include "output/tool.h"

/* ---- texts that windows share --------------------------------------------- */

/* Adds one more value to those that a key has. */
static void value_add(json_t *lists, const char *key, const json_t *value)
{
    json_t *list = json_object_get(lists, key);
    if (!json_is_string(value))
        return;
    if (!list)
        json_object_set_new(lists, key, list = json_object());
    json_object_set_new(list, json_string_value(value), json_null()); /* once each, in the order of their coming */
}

static void values_add(json_t *lists, const json_t *pairs)
{
    const char *key;
    json_t *value;
    json_object_foreach((json_t *)pairs, key, value)
        value_add(lists, key, value);
}

static json_t *joined(const json_t *list)
{
    const char *value, *between = "";
    json_t *nothing;
    char *text = NULL;
    size_t size;
    FILE *stream = open_memstream(&text, &size);
    json_object_foreach((json_t *)list, value, nothing) {
        fprintf(stream, "%s%s", between, value);
        between = ", ";
    }
    fclose(stream);
    json_t *string = json_string(text);
    free(text);
    return string;
}

static json_t *joined_each(const json_t *lists)
{
    const char *key;
    json_t *list, *texts = json_object();
    json_object_foreach((json_t *)lists, key, list)
        json_object_set_new(texts, key, joined(list));
    return texts;
}

static json_t *text_of_windows(const struct reader *reader, const char *key)
{
    json_t *lists = json_object();
    for (uint32_t at = 0; at < reader_windows(reader); at++)
        value_add(lists, key, json_object_get(reader_window(reader, at)->metadata, key));
    json_t *text = joined(json_object_get(lists, key));
    json_decref(lists);
    return text;
}

static json_t *texts_of_windows(const struct reader *reader, const char *key)
{
    json_t *lists = json_object();
    for (uint32_t at = 0; at < reader_windows(reader); at++)
        values_add(lists, json_object_get(reader_window(reader, at)->metadata, key));
    json_t *texts = joined_each(lists);
    json_decref(lists);
    return texts;
}

/* How all processes ended, or else how a window does. */
static json_t *ended_of(const struct quality *quality)
{
    static const char *const words[] = {
#define WORD(word) #word,
        SPOOL_ENDED_WORDS(WORD)
#undef WORD
    };
    const char *ended = quality->processes[0].ended;
    for (uint32_t at = 1; at < quality->processes_count; at++)
        if (strcmp(quality->processes[at].ended, ended))
            return json_string("window");
    for (size_t at = 0; at < sizeof words / sizeof *words; at++)
        if (!strcmp(words[at], ended))
            return json_string(ended);
    return json_string("window");
}

/* ---- numbers -------------------------------------------------------------- */

static json_t *counts_object(const struct document_count *counts, size_t count)
{
    json_t *object = json_object();
    document_counts(object, counts, count);
    return object;
}
#define COUNTS(...) \
    counts_object((const struct document_count[]){ __VA_ARGS__ }, sizeof((const struct document_count[]){ __VA_ARGS__ }) / sizeof(struct document_count))

static json_t *heap_of_windows(const struct reader *reader)
{
    json_int_t most = 0;
    for (uint32_t at = 0; at < reader_windows(reader); at++) {
        json_int_t bytes = json_integer_value(json_object_get(reader_window(reader, at)->metadata, "heap_bytes"));
        most = bytes > most ? bytes : most;
    }
    return json_integer(most);
}

static json_t *budget_of(const struct quality *quality)
{
    json_t *budget = COUNTS({ "allowed_us", quality->budget.allowed_us }, { "slowed", quality->budget.slowed },
                            { "quickened", quality->budget.quickened }, { "ceilings", quality->budget.ceilings });
    json_object_set_new(budget, "rate", json_real(quality->kept));
    json_object_set_new(budget, "least", json_real(quality->budget.rate_least));
    return budget;
}

/* Those that are only there while they are not 0 are so here too. */
static void ticks_add(json_t *metadata, const struct quality *quality)
{
    if (quality->gil.wall_us)
        json_object_set_new(metadata, "gil", quality_gil(quality));
    if (quality->thread_reads.taken + quality->thread_reads.left)
        json_object_set_new(metadata, "thread_reads", COUNTS({ "taken", quality->thread_reads.taken }, { "left", quality->thread_reads.left }));
    if (quality->task_ticks.read + quality->task_ticks.repeated)
        json_object_set_new(metadata, "task_ticks", COUNTS({ "read", quality->task_ticks.read }, { "repeated", quality->task_ticks.repeated },
                                                           { "tasks", quality->task_ticks.tasks }, { "postponed", quality->task_ticks.postponed },
                                                           { "cpu_us", quality->task_ticks.cpu_us }));
}

/* ---- what is in no window alone ------------------------------------------- */

static json_t *loop_object(const struct quality_loop *loop)
{
    json_t *object = COUNTS({ "thread", loop->thread }, { "idle_us", loop->idle_us }, { "busy_us", loop->busy_us });
    if (loop->stood_us)
        json_object_set_new(object, "stood_us", document_number(loop->stood_us));
    if (loop->stood_in)
        json_object_set_new(object, "stood_in", document_text(loop->stood_in));
    quality_put_step(object, loop);
    quality_put_tasks(object, loop);
    return object;
}

/* An array a process. */
static json_t **loops_by_process(const struct quality *quality)
{
    json_t **loops = tool_alloc(quality->processes_count, sizeof *loops);
    for (uint32_t at = 0; at < quality->processes_count; at++)
        loops[at] = json_array();
    for (size_t at = 0; at < quality->loops_count; at++) {
        const struct quality_loop *loop = &quality->loops[at];
        json_array_append_new(loops[loop->process], loop_object(loop));
    }
    return loops;
}

/* Takes the loops over. */
static json_t *process_of(const struct quality_process *process, json_t *loops)
{
    json_t *object = json_object();
    json_object_set_new(object, "host", document_text(process->host));
    json_object_set_new(object, "pid", document_number(process->pid));
    json_object_set_new(object, "start_us", document_number(process->start_us));
    json_object_set_new(object, "run", document_text(process->run));
    json_object_set_new(object, "program", document_text(process->program));
    json_object_set_new(object, "python", document_text(process->python));
    json_object_set_new(object, "ended", document_text(process->ended));
    const struct document_count counts[] = {
        { "windows", process->windows },
        { "covered_us", process->covered_us },
        { "process_cpu_us", process->process_cpu_us },
        { "children_without_sample", process->children_without_sample },
        { "threads_peak", (uint64_t)process->threads_peak },
        { "tasks_peak", (uint64_t)process->tasks_peak },
    };
    document_counts(object, counts, sizeof counts / sizeof *counts);
    json_object_set_new(object, "loops", loops);
    return object;
}

static json_t *merged_of(const struct quality *quality)
{
    json_t *merged = COUNTS({ "windows", quality->windows }, { "windows_without_metadata", quality->windows_without_metadata },
                            { "windows_by_syscall", quality->windows_by_syscall }, { "windows_coarse_clock", quality->windows_coarse_clock },
                            { "process_us", quality->process_us });
    json_t *spans = json_array(), *processes = json_array(), **loops = loops_by_process(quality);
    for (size_t at = 0; at < quality->spans_count; at++)
        json_array_append_new(spans, COUNTS({ "start_us", quality->spans[at].start }, { "end_us", quality->spans[at].end }));
    for (uint32_t at = 0; at < quality->processes_count; at++)
        json_array_append_new(processes, process_of(&quality->processes[at], loops[at]));
    free(loops);
    json_object_set_new(merged, "asked", json_pack("{sf}", "least", quality->asked_least));
    json_object_set_new(merged, "spans", spans);
    json_object_set_new(merged, "processes", processes);
    return merged;
}

/* ---- the object, in the order of its keys --------------------------------- */

static void identity_add(json_t *metadata, const struct reader *reader, const struct quality *quality)
{
    json_object_set_new(metadata, "schema", json_integer(SPOOL_SCHEMA));
    json_object_set_new(metadata, "run", text_of_windows(reader, "run"));
    json_object_set_new(metadata, "pid", json_integer(0));
    json_object_set_new(metadata, "ppid", json_integer(0));
    json_object_set_new(metadata, "host", text_of_windows(reader, "host"));
    json_object_set_new(metadata, "program", text_of_windows(reader, "program"));
    json_object_set_new(metadata, "python", text_of_windows(reader, "python"));
    json_object_set_new(metadata, "build", text_of_windows(reader, "build"));
    json_object_set_new(metadata, "start_us", document_number(quality->start_us));
    json_object_set_new(metadata, "end_us", document_number(quality->end_us));
    json_object_set_new(metadata, "window", json_integer(0));
    json_object_set_new(metadata, "ended", ended_of(quality));
    json_object_set_new(metadata, "settings", texts_of_windows(reader, "settings"));
    json_object_set_new(metadata, "tags", texts_of_windows(reader, "tags"));
    json_object_set_new(metadata, "pid_namespace", json_integer(0));
    json_object_set_new(metadata, "boot", text_of_windows(reader, "boot"));
}

static void counts_add(json_t *metadata, const struct quality *quality)
{
    json_object_set_new(metadata, "ticks", COUNTS({ "due", quality->ticks_due }, { "taken", quality->ticks_taken }, { "missed", quality->ticks_missed }));
    json_object_set_new(metadata, "rate", json_pack("{sf sf}", "asked", quality->asked_most, "got", quality->got));
    json_object_set_new(metadata, "samples", document_number(quality->samples));
    json_object_set(metadata, "dropped", quality->dropped);
    json_object_set_new(metadata, "cpu_unseen_us", document_number(quality->cpu_unseen_us));
    json_object_set_new(metadata, "cpu_spread_us", document_number(quality->cpu_spread_us));
    json_object_set_new(metadata, "threads_peak", document_number(quality->threads_peak));
    json_object_set_new(metadata, "tasks_peak", document_number(quality->tasks_peak));
    json_object_set_new(metadata, "tasks_skipped", document_number(quality->tasks_skipped));
    ticks_add(metadata, quality);
    json_object_set_new(metadata, "children_without_sample", document_number(quality->children_without_sample));
    json_object_set_new(metadata, "loops", json_array());
    json_object_set_new(metadata, "sampler_cpu_us", document_number(quality->sampler_cpu_us));
    json_object_set_new(metadata, "handler_us", document_number(quality->handler_us));
    json_object_set_new(metadata, "process_cpu_us", document_number(quality->process_cpu_us));
    json_object_set_new(metadata, "budget", budget_of(quality));
}

json_t *merged_metadata(const struct reader *reader, const struct quality *quality)
{
    json_t *metadata = json_object();
    identity_add(metadata, reader, quality);
    counts_add(metadata, quality);
    json_object_set_new(metadata, "heap_bytes", heap_of_windows(reader));
    json_object_set_new(metadata, "reader", json_string(quality->windows_by_syscall == quality->windows ? "syscall" : "copy"));
    if (quality->windows_coarse_clock == quality->windows)
        json_object_set_new(metadata, "clock", json_string("coarse"));
    json_object_set(metadata, "limits", quality->limits);
    json_object_set_new(metadata, "merged", merged_of(quality));
    return metadata;
}
