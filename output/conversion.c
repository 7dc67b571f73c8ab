/* SPDX-License-Identifier: MIT
 *
 * Windows come in the order of their processes, so one process's stand together.
 */
#include "output/conversion.h"

#include <string.h>

static int line_add(void *trie, const struct reader_line *line)
{
    trie_add(trie, TRIE_NEW, line->stack, line->length, line->count);
    return 0;
}

/* The first window of that process, or of one after it. */
static uint32_t first_window(const struct reader *reader, uint32_t process)
{
    uint32_t low = 0, high = reader_windows(reader);
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (reader_window(reader, middle)->process < process)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static struct trie *counted(struct conversion *conversion, struct trie *trie)
{
    conversion->sum += trie_sum(trie, TRIE_NEW);
    return trie;
}

struct trie *conversion_read(struct conversion *conversion, const char *metric, uint32_t window, uint32_t windows_end)
{
    struct trie *trie = trie_new(conversion->frames);
    for (uint32_t at = window; at < windows_end; at++)
        if (reader_window_has(conversion->reader, at, metric))
            reader_window_each(conversion->reader, at, metric, line_add, trie);
    return counted(conversion, trie);
}

struct trie *conversion_read_all(struct conversion *conversion, const char *metric)
{
    struct trie *trie = trie_new(conversion->frames);
    reader_each(conversion->reader, metric, line_add, trie);
    return counted(conversion, trie);
}

static uint64_t time_in(const json_t *metadata, const char *key)
{
    json_int_t us = json_integer_value(json_object_get(metadata, key));
    return us > 0 ? (uint64_t)us : 0;
}

struct quality_span conversion_span(const struct conversion *conversion, uint32_t window, uint32_t windows_end)
{
    struct quality_span span = { 0 };
    for (uint32_t at = window; at < windows_end; at++) {
        const json_t *metadata = reader_window(conversion->reader, at)->metadata;
        uint64_t start_us = time_in(metadata, "start_us"), end_us = time_in(metadata, "end_us");
        if (start_us && (start_us < span.start || !span.start))
            span.start = start_us;
        if (end_us > span.end)
            span.end = end_us;
    }
    return span.start && span.start < span.end ? span : (struct quality_span){ 0 };
}

struct conversion_process conversion_process(const struct conversion *conversion, uint32_t process)
{
    struct conversion_process shown = { .host = "" };
    if (process >= reader_processes(conversion->reader))
        return shown;
    const struct quality_process *of = &conversion->quality->processes[process];
    shown.window = first_window(conversion->reader, process);
    shown.windows_end = first_window(conversion->reader, process + 1);
    struct quality_span span = conversion_span(conversion, shown.window, shown.windows_end);
    shown.start_us = of->is_merged ? span.start : of->start_us;
    shown.end_us = span.end;
    if (of->is_merged) {
        shown.program = json_string_value(json_object_get(reader_window(conversion->reader, shown.window)->metadata, "program"));
        return shown;
    }
    shown.host = of->host;
    shown.program = of->program;
    shown.pid = of->pid;
    shown.is_open = !strcmp(of->ended, "open");
    return shown;
}

bool conversion_is_shown(const struct conversion *conversion, uint64_t sum, bool is_last)
{
    return sum || (is_last && !conversion->sum);
}

const char *conversion_title(const struct conversion *conversion)
{
    const char *program = quality_program(conversion->quality);
    return program ? program : "aprof";
}

int64_t conversion_number(uint64_t count)
{
    return count > INT64_MAX ? INT64_MAX : (int64_t)count;
}
