/* SPDX-License-Identifier: MIT
 *
 * pprof: profile.proto, gzip'd (output/profile.proto has what of it is written).
 *
 * A message of protobuf that follows another of its kind goes on with its lists, so a
 * profile is written as many small ones: first what there is one of, a Profile with one
 * sample for each stack, then the tables that the samples' numbers mean. None of it
 * lies in memory.
 *
 * A stack that several processes or metrics have is a sample in each: with other labels,
 * or its value in another place.
 */
#include "output/conversion.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include <profile.pb-c.h> /* made of output/profile.proto */

#include "output/human.h"
#include "output/kind.h"
#include "output/names.h"
#include "output/stacks.h"
#include "output/symbols.h"
#include "output/tool.h"

#define LABELS_MOST 16 /* of one sample */
#define THE_MAPPING 1
#define GZIP_BITS (15 + 16) /* zlib's largest window, and gzip's header around it */

/* ---- out ------------------------------------------------------------------ */

struct packer {
    FILE *stream;
    z_stream zip;
    struct names *strings;
    uint8_t *message;
    size_t room;
};

static void zip_put(struct packer *packer, const uint8_t *bytes, size_t length, int flush)
{
    uint8_t out[1 << 14];
    packer->zip.next_in = (uint8_t *)bytes;
    packer->zip.avail_in = (uInt)length; /* of one message: a stack, or one text */
    do {
        packer->zip.next_out = out;
        packer->zip.avail_out = sizeof out;
        deflate(&packer->zip, flush);
        fwrite(out, 1, sizeof out - packer->zip.avail_out, packer->stream);
    } while (!packer->zip.avail_out);
}

static void packer_open(struct packer *packer, FILE *stream)
{
    *packer = (struct packer){ .stream = stream, .strings = names_new() };
    if (deflateInit2(&packer->zip, Z_DEFAULT_COMPRESSION, Z_DEFLATED, GZIP_BITS, 8, Z_DEFAULT_STRATEGY) != Z_OK) {
        tool_complain("no memory for zlib");
        exit(TOOL_UNREADABLE);
    }
    names_add(packer->strings, "", 0); /* row 0 */
}

static void packer_close(struct packer *packer)
{
    zip_put(packer, NULL, 0, Z_FINISH);
    deflateEnd(&packer->zip);
    names_free(packer->strings);
    free(packer->message);
}

static void profile_put(struct packer *packer, const Pprof__Profile *profile)
{
    size_t size = pprof__profile__get_packed_size(profile);
    if (size > packer->room) {
        free(packer->message);
        packer->room = 2 * size;
        packer->message = tool_alloc(packer->room, 1);
    }
    pprof__profile__pack(profile, packer->message);
    zip_put(packer, packer->message, size, Z_NO_FLUSH);
}

/* The row of a text that is valid UTF-8 already. */
static int64_t row_of(struct packer *packer, const char *text)
{
    return names_add(packer->strings, text, strlen(text));
}

static int64_t row_of_any(struct packer *packer, const char *text)
{
    char *clean = human_text(text, strlen(text), 0, false);
    int64_t row = row_of(packer, clean);
    free(clean);
    return row;
}

/* ---- what there is one of ------------------------------------------------- */

static Pprof__ValueType type_of(struct packer *packer, const char *metric)
{
    Pprof__ValueType type = PPROF__VALUE_TYPE__INIT;
    type.type = row_of(packer, metric);
    type.unit = row_of(packer, kind_of(metric)->unit == KIND_BYTES ? "bytes" : "microseconds");
    return type;
}

static void put_types(struct packer *packer, const struct conversion *conversion)
{
    for (size_t at = 0; at < conversion->metrics_count; at++) {
        Pprof__Profile profile = PPROF__PROFILE__INIT;
        Pprof__ValueType type = type_of(packer, conversion->metrics[at]);
        profile.sample_type = &(Pprof__ValueType *){ &type };
        profile.n_sample_type = 1;
        profile_put(packer, &profile);
    }
}

static void put_head(struct packer *packer, const struct conversion *conversion)
{
    const struct quality *quality = conversion->quality;
    Pprof__Profile profile = PPROF__PROFILE__INIT;
    Pprof__Mapping mapping = PPROF__MAPPING__INIT;
    Pprof__ValueType period = type_of(packer, conversion->metrics[0]);
    int64_t comment = row_of(packer, "aprof " APROF_VERSION);
    mapping.id = THE_MAPPING;
    mapping.filename = row_of_any(packer, conversion_title(conversion));
    mapping.has_functions = mapping.has_filenames = mapping.has_line_numbers = 1; /* nothing to look up in a binary */
    profile.mapping = &(Pprof__Mapping *){ &mapping };
    profile.n_mapping = 1;
    profile.time_nanos = conversion_number(quality->start_us) * 1000;
    profile.duration_nanos = conversion_number(quality->covered_us) * 1000;
    if (quality->asked_most > 0 && kind_of(conversion->metrics[0])->unit == KIND_MICROSECONDS) {
        profile.period_type = &period;
        profile.period = (int64_t)(1e6 / quality->asked_most + 0.5);
    }
    profile.comment = &comment;
    profile.n_comment = 1;
    profile.default_sample_type = row_of(packer, conversion->metrics[0]);
    profile_put(packer, &profile);
}

/* ---- samples -------------------------------------------------------------- */

struct labels {
    Pprof__Label rows[LABELS_MOST], *each[LABELS_MOST];
    size_t count;
};

/* The first of a key stays: no tool knows what to do with two. */
static void label_add(struct labels *labels, int64_t key, int64_t text)
{
    for (size_t at = 0; at < labels->count; at++)
        if (labels->rows[at].key == key)
            return;
    if (labels->count == LABELS_MOST)
        return;
    Pprof__Label *label = &labels->rows[labels->count];
    pprof__label__init(label);
    label->key = key;
    label->str = text;
    labels->each[labels->count++] = label;
}

static void labels_of_process(struct packer *packer, const struct conversion_process *process, struct labels *labels)
{
    char pid[24];
    snprintf(pid, sizeof pid, "%" PRIu64, process->pid);
    if (*process->host) {
        label_add(labels, row_of(packer, "host"), row_of_any(packer, process->host));
        label_add(labels, row_of(packer, "pid"), row_of(packer, pid));
    }
    if (process->program)
        label_add(labels, row_of(packer, "program"), row_of_any(packer, process->program));
}

static bool is_key(char c)
{
    return c == '_' || c == '-' || c == '.' || (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

/* "[thread NAME]" and "[key=value]": key and value's length; false: it is no label. */
static bool label_parse(const char *name, size_t *key_length, size_t *value_length)
{
    static const char thread[] = "[thread ";
    size_t length = strlen(name), key = 1;
    if (length < 4 || name[0] != '[' || name[length - 1] != ']')
        return false;
    while (is_key(name[key]))
        key++;
    *key_length = key - 1;
    *value_length = length - key - 2;
    return key > 1 && (name[key] == '=' || !strncmp(name, thread, sizeof thread - 1));
}

/* Root frames that are labels stay frames too: sums are the same with and without. */
static void labels_of_stack(struct packer *packer, const struct frames *frames, const struct stacks *stacks, struct labels *labels)
{
    size_t key_length, value_length;
    for (size_t at = 0; at < stacks->depth; at++) {
        const char *name = frames_text(frames, stacks->frames[at]).name;
        if (!label_parse(name, &key_length, &value_length))
            return;
        char *key = tool_copy(name + 1, key_length), *value = symbols_text(name + 2 + key_length, value_length);
        label_add(labels, row_of(packer, key), row_of(packer, value));
        free(key);
        free(value);
    }
}

struct samples {
    uint64_t *locations;
    size_t room;
    int64_t *values; /* all 0 but for one */
    struct labels labels;
};

static void put_sample(struct packer *packer, const struct conversion *conversion, size_t metric, const struct stacks *stacks, struct samples *samples)
{
    Pprof__Profile profile = PPROF__PROFILE__INIT;
    Pprof__Sample sample = PPROF__SAMPLE__INIT;
    size_t labels = samples->labels.count;
    for (size_t at = 0; at < stacks->depth; at++) {
        samples->locations = tool_grow(samples->locations, at, &samples->room, sizeof *samples->locations);
        samples->locations[at] = stacks->frames[stacks->depth - 1 - at] + 1u;
    }
    labels_of_stack(packer, conversion->frames, stacks, &samples->labels);
    samples->values[metric] = conversion_number(stacks->count);
    sample.location_id = samples->locations;
    sample.n_location_id = stacks->depth;
    sample.value = samples->values;
    sample.n_value = conversion->metrics_count;
    sample.label = samples->labels.each;
    sample.n_label = samples->labels.count;
    profile.sample = &(Pprof__Sample *){ &sample };
    profile.n_sample = 1;
    profile_put(packer, &profile);
    samples->values[metric] = 0;
    samples->labels.count = labels;
}

static void put_process(struct packer *packer, struct conversion *conversion, uint32_t process, struct samples *samples)
{
    struct stacks stacks;
    struct conversion_process of = conversion_process(conversion, process);
    samples->labels.count = 0;
    labels_of_process(packer, &of, &samples->labels);
    for (size_t metric = 0; metric < conversion->metrics_count; metric++) {
        struct trie *trie = conversion_read(conversion, conversion->metrics[metric], of.window, of.windows_end);
        stacks_open(&stacks, trie, conversion->frames);
        trie_free(trie);
        while (stacks_next(&stacks))
            put_sample(packer, conversion, metric, &stacks, samples);
        stacks_close(&stacks);
    }
}

static void put_samples(struct packer *packer, struct conversion *conversion)
{
    struct samples *samples = tool_alloc(1, sizeof *samples);
    samples->values = tool_alloc(conversion->metrics_count, sizeof *samples->values);
    for (uint32_t process = 0; process < reader_processes(conversion->reader); process++)
        put_process(packer, conversion, process, samples);
    free(samples->locations);
    free(samples->values);
    free(samples);
}

/* ---- tables --------------------------------------------------------------- */

static void put_location(struct packer *packer, uint32_t frame, struct symbol symbol)
{
    Pprof__Profile profile = PPROF__PROFILE__INIT;
    Pprof__Location location = PPROF__LOCATION__INIT;
    Pprof__Line line = PPROF__LINE__INIT;
    line.function_id = symbol.function + 1u;
    line.line = symbol.line;
    location.id = frame + 1u;
    location.mapping_id = THE_MAPPING;
    location.line = &(Pprof__Line *){ &line };
    location.n_line = 1;
    profile.location = &(Pprof__Location *){ &location };
    profile.n_location = 1;
    profile_put(packer, &profile);
}

/* Without a system_name: a name that is the same in both pprof takes for one of C++, and
 * leaves out what is in angle brackets: <module>, <lambda>, <locals>. */
static void put_function(struct packer *packer, uint32_t number, struct symbol_function text)
{
    Pprof__Profile profile = PPROF__PROFILE__INIT;
    Pprof__Function function = PPROF__FUNCTION__INIT;
    function.id = number + 1u;
    function.name = row_of(packer, text.name);
    function.filename = row_of(packer, text.file);
    profile.function = &(Pprof__Function *){ &function };
    profile.n_function = 1;
    profile_put(packer, &profile);
}

static void put_strings(struct packer *packer)
{
    for (uint32_t row = 0; row < names_count(packer->strings); row++) {
        Pprof__Profile profile = PPROF__PROFILE__INIT;
        profile.string_table = &(char *){ (char *)names_text(packer->strings, row, NULL) };
        profile.n_string_table = 1;
        profile_put(packer, &profile);
    }
}

static void put_tables(struct packer *packer, const struct conversion *conversion)
{
    struct symbols *symbols = symbols_new(conversion->frames, conversion->by_line);
    for (uint32_t frame = 0; frame < frames_count(conversion->frames); frame++)
        put_location(packer, frame, symbols_of(symbols, frame));
    for (uint32_t function = 0; function < symbols_functions(symbols); function++)
        put_function(packer, function, symbols_function(symbols, function));
    symbols_free(symbols);
    put_strings(packer);
}

void pprof_write(FILE *stream, struct conversion *conversion)
{
    struct packer packer;
    packer_open(&packer, stream);
    put_types(&packer, conversion);
    put_head(&packer, conversion);
    put_samples(&packer, conversion);
    put_tables(&packer, conversion);
    packer_close(&packer);
}
