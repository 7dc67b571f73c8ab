/* SPDX-License-Identifier: MIT
 *
 * firefox: the processed profile format of the Firefox Profiler, version 70, as the types
 * in its source document it (src/types/profile.ts; changes in
 * docs-developer/CHANGELOG-formats.md). What it has no need of there (markers, resources,
 * native symbols, JavaScript's places) is empty.
 *
 * A thread of it is a metric of one process; weights are milliseconds or bytes. The
 * samples of a window, one a stack, have times within it; in what order they were in it
 * no spool knows, so they come in that of their names, each as long as its share. Of more
 * than PARTS_MOST windows several that follow each other are taken for one.
 *
 * Tables of rows are tables of columns there, so stacks and the samples of one thread
 * are remembered, eight and sixteen bytes each, until they are written.
 */
#include "output/conversion.h"

#include <inttypes.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "output/columns.h"
#include "output/document.h"
#include "output/human.h"
#include "output/kind.h"
#include "output/names.h"
#include "output/stacks.h"
#include "output/symbols.h"
#include "output/tool.h"

#define PROCESSED_VERSION 70
#define GECKO_VERSION 36 /* that the former goes with */
#define PARTS_MOST 64    /* that a thread's time is cut into */
#define FIRST_SLOTS 1024u
#define SHOWN_MOST 100   /* threads shown at first */
#define PID_SIZE 128     /* host, pid and start */

enum { CATEGORY_OTHER, CATEGORY_PYTHON };

/* A row of the table of stacks. Rows are counted from 1; 0 is no caller. */
struct stack {
    uint32_t frame, caller;
};

struct firefox {
    FILE *stream;
    struct conversion *conversion;
    struct names *pids;
    struct stack *stacks;
    size_t stacks_count, stacks_room;
    uint32_t *slots; /* their rows by what is in them, 0: free; a power of two, at most half taken */
    uint32_t slots_count;
    uint64_t start_us; /* that all times count from */
    uint32_t threads;
};

/* ---- pieces --------------------------------------------------------------- */

static void put_field(FILE *stream, const char *key, json_t *value)
{
    fprintf(stream, "\"%s\":", key);
    document_put(stream, value);
    fputs(",", stream);
}

static void put_us(FILE *stream, const char *before, uint64_t us)
{
    fprintf(stream, "%s%" PRIu64 ".%03u", before, us / 1000, (unsigned)(us % 1000));
}

static void put_number(FILE *stream, uint64_t number)
{
    fprintf(stream, "%" PRIu64, number);
}

/* ---- stacks --------------------------------------------------------------- */

static uint32_t *slot_of(const struct firefox *firefox, uint32_t caller, uint32_t frame)
{
    uint64_t hash = ((uint64_t)caller << 32 | frame) * 0x9e3779b97f4a7c15u;
    uint32_t mask = firefox->slots_count - 1;
    for (uint32_t at = (uint32_t)(hash >> 32) & mask;; at = (at + 1) & mask) {
        uint32_t row = firefox->slots[at];
        if (!row || (firefox->stacks[row - 1].caller == caller && firefox->stacks[row - 1].frame == frame))
            return &firefox->slots[at];
    }
}

static void slots_double(struct firefox *firefox)
{
    free(firefox->slots);
    firefox->slots_count = firefox->slots_count ? 2 * firefox->slots_count : FIRST_SLOTS;
    firefox->slots = tool_alloc(firefox->slots_count, sizeof *firefox->slots);
    for (uint32_t row = 1; row <= firefox->stacks_count; row++)
        *slot_of(firefox, firefox->stacks[row - 1].caller, firefox->stacks[row - 1].frame) = row;
}

/* The row of that stack; callers have theirs before it. */
static uint32_t stack_row(struct firefox *firefox, uint32_t caller, uint32_t frame)
{
    if (2 * firefox->stacks_count >= firefox->slots_count)
        slots_double(firefox);
    uint32_t *slot = slot_of(firefox, caller, frame);
    if (*slot)
        return *slot;
    firefox->stacks = tool_grow(firefox->stacks, firefox->stacks_count, &firefox->stacks_room, sizeof *firefox->stacks);
    firefox->stacks[firefox->stacks_count++] = (struct stack){ frame, caller };
    return *slot = (uint32_t)firefox->stacks_count;
}

/* ---- samples -------------------------------------------------------------- */

struct sample {
    uint32_t stack;
    uint64_t weight;
};

/* Of one thread, part after part. Times count from the profile's start. */
struct samples {
    struct sample *samples;
    size_t count, room;
    struct part {
        size_t end; /* behind its last sample */
        uint64_t from_us, to_us, sum;
    } parts[PARTS_MOST];
    size_t parts_count;
    uint64_t sum;
};

static void samples_add(struct firefox *firefox, const struct trie *trie, struct samples *samples)
{
    size_t count = trie_count(trie), depth = 0;
    uint32_t *ranks = stacks_ranks(firefox->conversion->frames), *path = tool_alloc(count + 1, sizeof *path);
    struct trie_row *rows = trie_rows(trie, ranks);
    for (size_t at = 0; at < count; at++) {
        depth += 1 - (size_t)rows[at].up;
        path[depth] = stack_row(firefox, path[depth - 1], rows[at].frame);
        if (!rows[at].self[TRIE_NEW])
            continue;
        samples->samples = tool_grow(samples->samples, samples->count, &samples->room, sizeof *samples->samples);
        samples->samples[samples->count++] = (struct sample){ path[depth] - 1, rows[at].self[TRIE_NEW] };
    }
    free(ranks);
    free(rows);
    free(path);
}

/* Never before the part before. Windows that do not say their time are as long as what is in them. */
static void part_add(struct firefox *firefox, const struct conversion_process *process, struct quality_span span, uint64_t sum, struct samples *samples)
{
    struct part *part = &samples->parts[samples->parts_count++];
    uint64_t start_us = firefox->start_us, least_us = process->start_us > start_us ? process->start_us - start_us : 0;
    if (samples->parts_count > 1)
        least_us = part[-1].to_us;
    part->end = samples->count;
    part->sum = sum;
    part->from_us = span.start > start_us + least_us ? span.start - start_us : least_us;
    part->to_us = span.end > start_us + part->from_us ? span.end - start_us : part->from_us + (span.end ? 0 : sum);
    if (part->to_us < part->from_us)
        part->to_us = part->from_us; /* beyond 64 bits */
    samples->sum += sum;
}

static void samples_read(struct firefox *firefox, const struct conversion_process *process, const char *metric, struct samples *samples)
{
    uint32_t windows = process->windows_end - process->window, step = (windows + PARTS_MOST - 1) / PARTS_MOST;
    for (uint32_t at = process->window; at < process->windows_end; at += step) {
        uint32_t end = process->windows_end - at > step ? at + step : process->windows_end;
        struct trie *trie = conversion_read(firefox->conversion, metric, at, end);
        samples_add(firefox, trie, samples);
        part_add(firefox, process, conversion_span(firefox->conversion, at, end), trie_sum(trie, TRIE_NEW), samples);
        trie_free(trie);
    }
}

/* When as much of a part is over. (Counts that somebody made up add up to any sum.) */
static uint64_t time_in_part(const struct part *part, uint64_t before)
{
    uint64_t span_us = part->to_us - part->from_us;
    return before < part->sum ? part->from_us + (uint64_t)((unsigned __int128)before * span_us / part->sum) : part->to_us;
}

/* On the way through all samples. */
struct cells {
    const struct samples *samples;
    const struct part *part; /* that the last row was in */
    uint64_t before;         /* that row, of what is in its part */
};

static void put_sample_stack(FILE *stream, void *of, size_t row)
{
    put_number(stream, ((struct cells *)of)->samples->samples[row].stack);
}

static void put_sample_time(FILE *stream, void *of, size_t row)
{
    struct cells *cells = of;
    while (row >= cells->part->end) {
        cells->part++;
        cells->before = 0;
    }
    put_us(stream, "", time_in_part(cells->part, cells->before));
    cells->before += cells->samples->samples[row].weight;
}

static void put_sample_bytes(FILE *stream, void *of, size_t row)
{
    put_number(stream, ((struct cells *)of)->samples->samples[row].weight);
}

static void put_sample_ms(FILE *stream, void *of, size_t row)
{
    put_us(stream, "", ((struct cells *)of)->samples->samples[row].weight);
}

static const struct columns_one samples_in_bytes[] = {
    { "stack", put_sample_stack, NULL }, { "time", put_sample_time, NULL }, { "weight", put_sample_bytes, NULL }, { 0 },
};
static const struct columns_one samples_in_time[] = {
    { "stack", put_sample_stack, NULL }, { "time", put_sample_time, NULL }, { "weight", put_sample_ms, NULL }, { 0 },
};

/* ---- threads -------------------------------------------------------------- */

static const struct columns_one markers[] = { /* of which there are none */
    { "data", NULL, "" }, { "name", NULL, "" }, { "startTime", NULL, "" }, { "endTime", NULL, "" }, { "phase", NULL, "" }, { "category", NULL, "" }, { 0 },
};

/* Its pid where no other process has had it, for the viewer takes those for one. */
static json_t *pid_of(struct firefox *firefox, const struct conversion_process *process)
{
    char pid[PID_SIZE];
    snprintf(pid, sizeof pid, "%" PRIu64, process->pid);
    if (names_find(firefox->pids, pid, strlen(pid)) != NAMES_NONE)
        snprintf(pid, sizeof pid, "%" PRIu64 "@%s.%" PRIu64, process->pid, process->host, process->start_us);
    return document_text(pid);
}

/* Its samples' end is the process's where that is not known. */
static void put_process(struct firefox *firefox, const struct conversion_process *process, const struct samples *samples)
{
    FILE *stream = firefox->stream;
    uint64_t from_us = process->start_us > firefox->start_us ? process->start_us - firefox->start_us : 0;
    uint64_t to_us = samples->parts_count ? samples->parts[samples->parts_count - 1].to_us : from_us;
    if (process->end_us > firefox->start_us + from_us)
        to_us = process->end_us - firefox->start_us;
    const char *ends[] = { "processShutdownTime", "unregisterTime" };
    put_field(stream, "processType", json_string("default"));
    put_field(stream, "processName", document_text(process->program ? process->program : "aprof"));
    put_field(stream, "pid", pid_of(firefox, process));
    put_us(stream, "\"processStartupTime\":", from_us);
    put_us(stream, ",\"registerTime\":", from_us);
    for (size_t at = 0; at < sizeof ends / sizeof *ends; at++) {
        fprintf(stream, ",\"%s\":", ends[at]);
        if (process->is_open)
            fputs("null", stream);
        else
            put_us(stream, "", to_us);
    }
    fputs(",\"pausedRanges\":[],", stream);
}

static void put_thread(struct firefox *firefox, const struct conversion_process *process, const char *metric, const struct samples *samples, bool is_first)
{
    FILE *stream = firefox->stream;
    struct cells cells = { .samples = samples, .part = samples->parts };
    bool in_bytes = kind_of(metric)->unit == KIND_BYTES;
    fputs(firefox->threads ? ",\n{" : "{", stream);
    put_field(stream, "name", document_text(metric));
    put_field(stream, "isMainThread", json_boolean(is_first));
    put_field(stream, "tid", json_integer(firefox->threads));
    put_process(firefox, process, samples);
    columns_table(stream, "markers", markers, NULL, 0);
    fprintf(stream, "\"samples\":{\"weightType\":\"%s\",\n", in_bytes ? "bytes" : "tracing-ms");
    columns_put(stream, in_bytes ? samples_in_bytes : samples_in_time, &cells, samples->count);
    putc('}', stream);
    firefox->threads++;
}

static void put_threads_of(struct firefox *firefox, uint32_t number, bool is_last)
{
    struct conversion *conversion = firefox->conversion;
    struct conversion_process process = conversion_process(conversion, number);
    struct samples *samples = tool_alloc(1, sizeof *samples);
    bool is_first = true;
    for (size_t at = 0; at < conversion->metrics_count; at++) {
        samples->count = samples->parts_count = samples->sum = 0;
        samples_read(firefox, &process, conversion->metrics[at], samples);
        if (conversion_is_shown(conversion, samples->sum, is_last && at + 1 == conversion->metrics_count)) {
            put_thread(firefox, &process, conversion->metrics[at], samples, is_first);
            is_first = false;
        }
    }
    free(samples->samples);
    free(samples);
    char pid[PID_SIZE];
    snprintf(pid, sizeof pid, "%" PRIu64, process.pid);
    names_add(firefox->pids, pid, strlen(pid));
}

static void put_threads(struct firefox *firefox)
{
    uint32_t processes = reader_processes(firefox->conversion->reader);
    fputs("\"threads\":[\n", firefox->stream);
    for (uint32_t process = 0; process < processes || !process; process++)
        put_threads_of(firefox, process, process + 1 >= processes);
    fputs("],\n", firefox->stream);
}

/* ---- what threads share --------------------------------------------------- */

/* Texts are numbers of rows of one table, files also of one of their own. */
struct shared {
    const struct firefox *firefox;
    struct symbols *symbols;
    struct names *strings, *files;
};

static uint32_t row_of(struct names *names, const char *text)
{
    return names_add(names, text, strlen(text));
}

static void put_stack_frame(FILE *stream, void *of, size_t row)
{
    put_number(stream, ((struct shared *)of)->firefox->stacks[row].frame);
}

static void put_stack_caller(FILE *stream, void *of, size_t row)
{
    uint32_t caller = ((struct shared *)of)->firefox->stacks[row].caller;
    put_number(stream, caller ? row + 1 - caller : 0);
}

static const struct columns_one stack_columns[] = { { "frame", put_stack_frame, NULL }, { "prefixOffset", put_stack_caller, NULL }, { 0 } };

static void put_frame_function(FILE *stream, void *of, size_t row)
{
    put_number(stream, symbols_of(((struct shared *)of)->symbols, (uint32_t)row).function);
}

static void put_frame_line(FILE *stream, void *of, size_t row)
{
    uint32_t line = symbols_of(((struct shared *)of)->symbols, (uint32_t)row).line;
    if (line)
        put_number(stream, line);
    else
        fputs("null", stream);
}

static void put_frame_category(FILE *stream, void *of, size_t row)
{
    const struct frames *frames = ((struct shared *)of)->firefox->conversion->frames;
    put_number(stream, *frames_text(frames, (uint32_t)row).place ? CATEGORY_PYTHON : CATEGORY_OTHER);
}

static const struct columns_one frame_columns[] = {
    { "func", put_frame_function, NULL }, { "line", put_frame_line, NULL }, { "category", put_frame_category, NULL },
    { "subcategory", NULL, "0" },         { "address", NULL, "-1" },        { "lib", NULL, "-1" },
    { "inlineDepth", NULL, "0" },         { "nativeSymbol", NULL, "null" }, { "innerWindowID", NULL, "null" },
    { "column", NULL, "null" },           { "originalLocation", NULL, "null" }, { 0 },
};

static void put_function_name(FILE *stream, void *of, size_t row)
{
    struct shared *shared = of;
    put_number(stream, row_of(shared->strings, symbols_function(shared->symbols, (uint32_t)row).name));
}

static void put_function_source(FILE *stream, void *of, size_t row)
{
    struct shared *shared = of;
    const char *file = symbols_function(shared->symbols, (uint32_t)row).file;
    if (*file)
        put_number(stream, row_of(shared->files, file));
    else
        fputs("null", stream);
}

static const struct columns_one function_columns[] = {
    { "name", put_function_name, NULL }, { "source", put_function_source, NULL }, { "isJS", NULL, "false" },
    { "relevantForJS", NULL, "false" },  { "resource", NULL, "-1" },              { "lineNumber", NULL, "null" },
    { "columnNumber", NULL, "null" },    { "originalLocation", NULL, "null" },    { 0 },
};

static void put_source_name(FILE *stream, void *of, size_t row)
{
    struct shared *shared = of;
    put_number(stream, row_of(shared->strings, names_text(shared->files, (uint32_t)row, NULL)));
}

static const struct columns_one source_columns[] = {
    { "filename", put_source_name, NULL }, { "id", NULL, "null" },           { "startLine", NULL, "1" },
    { "startColumn", NULL, "1" },          { "sourceMapURL", NULL, "null" }, { "content", NULL, "null" }, { 0 },
};

/* Of which there are none. */
static const struct columns_one resource_columns[] = { { "name", NULL, "" }, { "host", NULL, "" }, { "type", NULL, "" }, { 0 } };
static const struct columns_one native_columns[] = { { "libIndex", NULL, "" }, { "address", NULL, "" }, { "name", NULL, "" }, { "functionSize", NULL, "" }, { 0 } };
static const struct columns_one location_columns[] = { { "source", NULL, "" }, { "line", NULL, "" }, { "column", NULL, "" }, { 0 } };

static void put_strings(FILE *stream, const struct names *strings)
{
    fputs("\"stringArray\":[", stream);
    for (uint32_t row = 0; row < names_count(strings); row++) {
        fputs(row ? ",\n" : "", stream);
        document_put(stream, json_string(names_text(strings, row, NULL)));
    }
    fputs("]", stream);
}

/* Sources are known once functions are written, and texts once those are. */
static void put_shared(const struct firefox *firefox)
{
    FILE *stream = firefox->stream;
    const struct conversion *conversion = firefox->conversion;
    struct shared shared = { firefox, symbols_new(conversion->frames, conversion->by_line), names_new(), names_new() };
    fputs("\"shared\":{", stream);
    columns_table(stream, "stackTable", stack_columns, &shared, firefox->stacks_count);
    columns_table(stream, "frameTable", frame_columns, &shared, frames_count(conversion->frames));
    columns_table(stream, "funcTable", function_columns, &shared, symbols_functions(shared.symbols));
    columns_table(stream, "sources", source_columns, &shared, names_count(shared.files));
    columns_table(stream, "resourceTable", resource_columns, NULL, 0);
    columns_table(stream, "nativeSymbols", native_columns, NULL, 0);
    columns_table(stream, "sourceLocationTable", location_columns, NULL, 0);
    put_strings(stream, shared.strings);
    fputs("},\n", stream);
    symbols_free(shared.symbols);
    names_free(shared.strings);
    names_free(shared.files);
}

static json_t *visible(uint32_t threads)
{
    json_t *array = json_array();
    for (uint32_t thread = 0; thread < threads && thread < SHOWN_MOST; thread++)
        json_array_append_new(array, json_integer(thread));
    return array;
}

static void put_meta(const struct firefox *firefox)
{
    double asked = firefox->conversion->quality->asked_most;
    json_t *meta = json_pack("{sf sf si ss si si si sb sb so sb sb sb s[i] so}",
                             "interval", asked > 0 ? 1000 / asked : 1.0,
                             "startTime", (double)firefox->start_us / 1000,
                             "processType", 0,
                             "product", "aprof",
                             "stackwalk", 0,
                             "version", GECKO_VERSION,
                             "preprocessedProfileVersion", PROCESSED_VERSION,
                             "symbolicated", 1,
                             "symbolicationNotSupported", 1,
                             "markerSchema", json_array(),
                             "usesOnlyOneStackType", 1,
                             "sourceCodeIsNotOnSearchfox", 1,
                             "keepProfileThreadOrder", 1,
                             "initialSelectedThreads", 0,
                             "initialVisibleThreads", visible(firefox->threads));
    json_object_set_new(meta, "importedFrom", json_string("aprof " APROF_VERSION));
    json_object_set_new(meta, "arguments", document_text(conversion_title(firefox->conversion)));
    json_object_set_new(meta, "sampleUnits", json_pack("{ss ss ss}", "time", "ms", "eventDelay", "ms", "threadCPUDelta", "ns"));
    json_object_set_new(meta, "categories", json_pack("[{ss ss s[s]} {ss ss s[s]}]", "name", "Other", "color", "grey", "subcategories", "Other",
                                                      "name", "Python", "color", "blue", "subcategories", "Other"));
    fputs("\"meta\":", firefox->stream);
    document_put(firefox->stream, meta);
}

/* ---- the whole ------------------------------------------------------------ */

static uint64_t earliest(const struct conversion *conversion)
{
    uint64_t start_us = 0;
    for (uint32_t process = 0; process < reader_processes(conversion->reader); process++) {
        uint64_t this_us = conversion_process(conversion, process).start_us;
        if (this_us && (this_us < start_us || !start_us))
            start_us = this_us;
    }
    return start_us;
}

void firefox_write(FILE *stream, struct conversion *conversion)
{
    struct firefox firefox = { .stream = stream, .conversion = conversion, .pids = names_new(), .start_us = earliest(conversion) };
    fputs("{\"libs\":[],\n", stream);
    put_threads(&firefox);
    put_shared(&firefox);
    put_meta(&firefox);
    fputs("}\n", stream);
    names_free(firefox.pids);
    free(firefox.stacks);
    free(firefox.slots);
}
