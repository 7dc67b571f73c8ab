/* SPDX-License-Identifier: MIT
 *
 * speedscope: its own file format, documented in the schema that its package brings
 * (file-format-schema.json): a profile a metric, of the type "sampled", over frames
 * that all share. Written with version 1.25 in mind; the format has not changed since 1.0.
 *
 * Stacks come in the order of names, so "time order" in the viewer is none: its views
 * "left heavy" and "sandwich" are the ones to look at.
 */
#include "output/conversion.h"

#include <inttypes.h>
#include <jansson.h>

#include "output/document.h"
#include "output/kind.h"
#include "output/stacks.h"
#include "output/symbols.h"

#define SCHEMA "https://www.speedscope.app/file-format-schema.json" /* how a file says what it is */

static void put_samples(FILE *stream, struct stacks *stacks)
{
    for (const char *between = ""; stacks_next(stacks); between = ",\n") {
        fputs(between, stream);
        for (size_t at = 0; at < stacks->depth; at++)
            fprintf(stream, "%c%" PRIu32, at ? ',' : '[', stacks->frames[at]);
        putc(']', stream);
    }
}

static void put_weights(FILE *stream, struct stacks *stacks)
{
    stacks_rewind(stacks);
    for (const char *between = ""; stacks_next(stacks); between = ",")
        fprintf(stream, "%s%" PRId64, between, conversion_number(stacks->count));
}

static void put_profile(FILE *stream, const struct conversion *conversion, const char *metric, const struct trie *trie)
{
    struct stacks stacks;
    fputs("{\"type\":\"sampled\",\"name\":", stream);
    document_put(stream, document_text(metric));
    fprintf(stream, ",\"unit\":\"%s\",\"startValue\":0,\"endValue\":%" PRId64 ",\n\"samples\":[",
            kind_of(metric)->unit == KIND_BYTES ? "bytes" : "microseconds", conversion_number(trie_sum(trie, TRIE_NEW)));
    stacks_open(&stacks, trie, conversion->frames);
    put_samples(stream, &stacks);
    fputs("],\n\"weights\":[", stream);
    put_weights(stream, &stacks);
    fputs("]}", stream);
    stacks_close(&stacks);
}

static void put_profiles(FILE *stream, struct conversion *conversion)
{
    const char *between = "";
    for (size_t at = 0; at < conversion->metrics_count; at++) {
        struct trie *trie = conversion_read_all(conversion, conversion->metrics[at]);
        if (conversion_is_shown(conversion, trie_sum(trie, TRIE_NEW), at + 1 == conversion->metrics_count)) {
            fputs(between, stream);
            put_profile(stream, conversion, conversion->metrics[at], trie);
            between = ",\n";
        }
        trie_free(trie);
    }
}

static json_t *frame_of(const struct symbols *symbols, uint32_t frame)
{
    struct symbol symbol = symbols_of(symbols, frame);
    struct symbol_function function = symbols_function(symbols, symbol.function);
    json_t *object = json_pack("{ss}", "name", function.name);
    if (*function.file)
        json_object_set_new(object, "file", json_string(function.file));
    if (symbol.line)
        json_object_set_new(object, "line", document_number(symbol.line));
    return object;
}

static void put_frames(FILE *stream, const struct conversion *conversion)
{
    struct symbols *symbols = symbols_new(conversion->frames, conversion->by_line);
    for (uint32_t frame = 0; frame < frames_count(conversion->frames); frame++) {
        fputs(frame ? ",\n" : "", stream);
        document_put(stream, frame_of(symbols, frame));
    }
    symbols_free(symbols);
}

void speedscope_write(FILE *stream, struct conversion *conversion)
{
    fputs("{\"$schema\":\"" SCHEMA "\",\"exporter\":\"aprof " APROF_VERSION "\",\n\"name\":", stream);
    document_put(stream, document_text(conversion_title(conversion)));
    fputs(",\"activeProfileIndex\":0,\"profiles\":[\n", stream);
    put_profiles(stream, conversion);
    fputs("],\n\"shared\":{\"frames\":[\n", stream);
    put_frames(stream, conversion);
    fputs("]}}\n", stream);
}
