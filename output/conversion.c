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

static void process_read(struct conversion *conversion, const char *metric, uint32_t process, struct trie *trie)
{
    struct reader *reader = conversion->reader;
    for (uint32_t at = first_window(reader, process); at < reader_windows(reader) && reader_window(reader, at)->process == process; at++)
        if (reader_window_has(reader, at, metric))
            reader_window_each(reader, at, metric, line_add, trie);
}

struct trie *conversion_read(struct conversion *conversion, const char *metric, uint32_t process)
{
    struct trie *trie = trie_new(conversion->frames);
    if (process == CONVERSION_ALL)
        reader_each(conversion->reader, metric, line_add, trie);
    else
        process_read(conversion, metric, process, trie);
    conversion->sum += trie_sum(trie, TRIE_NEW);
    return trie;
}

static uint64_t time_in(const json_t *metadata, const char *key)
{
    json_int_t us = json_integer_value(json_object_get(metadata, key));
    return us > 0 ? (uint64_t)us : 0;
}

static struct conversion_process merged_process(const struct conversion *conversion, uint32_t process)
{
    const json_t *metadata = reader_window(conversion->reader, first_window(conversion->reader, process))->metadata;
    uint64_t start_us = time_in(metadata, "start_us"), end_us = time_in(metadata, "end_us");
    return (struct conversion_process){
        .host = "",
        .program = json_string_value(json_object_get(metadata, "program")),
        .start_us = start_us,
        .span_us = end_us > start_us ? end_us - start_us : 0,
    };
}

struct conversion_process conversion_process(const struct conversion *conversion, uint32_t process)
{
    if (process >= reader_processes(conversion->reader))
        return (struct conversion_process){ .host = "" };
    const struct quality_process *of = &conversion->quality->processes[process];
    if (of->is_merged)
        return merged_process(conversion, process);
    return (struct conversion_process){ of->host, of->program, of->pid, of->start_us, of->covered_us, !strcmp(of->ended, "open") };
}

bool conversion_is_shown(const struct conversion *conversion, const struct trie *trie, bool is_last)
{
    return trie_sum(trie, TRIE_NEW) || (is_last && !conversion->sum);
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
