/* SPDX-License-Identifier: MIT
 *
 * The object is written as it is walked: a profile's text never lies in memory.
 * Strings go through jansson, which knows what JSON wants escaped.
 */
#include "output/page.h"

#include <inttypes.h>
#include <jansson.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "output/destination.h"
#include "output/human.h"
#include "output/names.h"
#include "output/package.h"
#include "output/tool.h"

/* build/flame/template.html as the linker put it in; empty where d3-flame-graph was
 * not to be had when it was built, and missing from programs that link no template. */
extern const char _binary_template_html_start[] __attribute__((weak)), _binary_template_html_end[] __attribute__((weak));

static size_t template_length(void)
{
    return (size_t)((uintptr_t)_binary_template_html_end - (uintptr_t)_binary_template_html_start);
}

#define MARK "@PROFILE@" /* in the template, where the object goes */

bool page_possible(void)
{
    if (template_length())
        return true;
    tool_complain("built without d3-flame-graph, which draws the flame graph: run `make` again where npm reaches its registry");
    return false;
}

/* ---- pieces --------------------------------------------------------------- */

static void put_text(FILE *stream, const char *text)
{
    char *clean = human_text(text, strlen(text), 0, false);
    json_t *string = json_string(clean);
    char *dump = string ? json_dumps(string, JSON_ENCODE_ANY) : NULL;
    for (const char *at = dump ? dump : "\"\""; *at; at++)
        if (*at == '<')
            fputs("\\u003c", stream);
        else
            putc(*at, stream);
    free(dump);
    json_decref(string);
    free(clean);
}

static void put_key(FILE *stream, const char *key)
{
    fprintf(stream, "\"%s\":", key);
}

static void put_text_of(FILE *stream, const char *key, const char *text)
{
    put_key(stream, key);
    put_text(stream, text);
    fputs(",\n", stream);
}

static void put_texts(FILE *stream, const char *key, const char *const *texts, size_t count)
{
    put_key(stream, key);
    for (size_t at = 0; at < count; at++) {
        putc(at ? ',' : '[', stream);
        put_text(stream, texts[at]);
    }
    fputs(count ? "],\n" : "[],\n", stream);
}

static void put_names(FILE *stream, const char *key, const struct names *names)
{
    put_key(stream, key);
    putc('[', stream);
    for (uint32_t at = 0; at < names_count(names); at++) {
        fputs(at ? ",\n" : "", stream);
        put_text(stream, names_text(names, at, NULL));
    }
    fputs("],\n", stream);
}

/* Numbers one after the other; called with a running index, so that the walks below
 * need not know which one is the first. */
static void put_number(FILE *stream, size_t index, int64_t number)
{
    fprintf(stream, index ? ",%" PRId64 : "%" PRId64, number);
}

/* ---- frames --------------------------------------------------------------- */

/* Frames in the order in which the page shows siblings, and what they share. */
struct tables {
    uint32_t *sorted, *ranks;
    struct names *places, *packages;
};

static void tables_make(struct tables *tables, const struct frames *frames)
{
    uint32_t count = frames_count(frames);
    *tables = (struct tables){ frames_sorted(frames), tool_alloc(count + 1u, sizeof(uint32_t)), names_new(), names_new() };
    for (uint32_t rank = 0; rank < count; rank++) {
        tables->ranks[tables->sorted[rank]] = rank;
        const char *place = frames_text(frames, tables->sorted[rank]).place;
        if (*place)
            names_add(tables->places, place, strlen(place));
    }
}

static void tables_free(struct tables *tables)
{
    free(tables->sorted);
    free(tables->ranks);
    names_free(tables->places);
    names_free(tables->packages);
}

static void put_packages(FILE *stream, struct tables *tables)
{
    put_key(stream, "package");
    putc('[', stream);
    for (uint32_t at = 0; at < names_count(tables->places); at++) {
        size_t length;
        const char *package = package_of(names_text(tables->places, at, NULL), &length);
        put_number(stream, at, names_add(tables->packages, package, length));
    }
    fputs("],\n", stream);
    put_names(stream, "packages", tables->packages);
}

static void put_frames(FILE *stream, const struct frames *frames, const struct tables *tables)
{
    uint32_t count = frames_count(frames);
    size_t loops = 0;
    put_key(stream, "names");
    putc('[', stream);
    for (uint32_t rank = 0; rank < count; rank++) {
        fputs(rank ? ",\n" : "", stream);
        put_text(stream, frames_text(frames, tables->sorted[rank]).name);
    }
    fputs("],\n\"place\":[", stream);
    for (uint32_t rank = 0; rank < count; rank++) {
        const char *place = frames_text(frames, tables->sorted[rank]).place;
        put_number(stream, rank, *place ? (int64_t)names_find(tables->places, place, strlen(place)) : -1);
    }
    fputs("],\n\"loops\":[", stream);
    for (uint32_t rank = 0; rank < count; rank++) {
        struct frame_text text = frames_text(frames, tables->sorted[rank]);
        if (package_is_loop(text.name, text.place))
            put_number(stream, loops++, rank);
    }
    fputs("],\n", stream);
}

/* ---- metrics -------------------------------------------------------------- */

static void put_side(FILE *stream, const char *key, const struct trie_row *rows, size_t count, enum trie_side side)
{
    fprintf(stream, ",\n\"%s\":[", key);
    for (size_t at = 0; at < count; at++)
        put_number(stream, at, (int64_t)rows[at].self[side]);
    putc(']', stream);
}

static void put_metric(FILE *stream, const struct page_metric *metric, const uint32_t *ranks, bool two_sides)
{
    size_t count = trie_count(metric->trie);
    struct trie_row *rows = trie_rows(metric->trie, ranks);
    putc('{', stream);
    put_text_of(stream, "name", metric->name);
    put_text_of(stream, "unit", kind_unit_name(metric->kind));
    put_text_of(stream, "what", metric->kind->what);
    fputs("\"up\":[", stream);
    for (size_t at = 0; at < count; at++)
        put_number(stream, at, rows[at].up);
    fputs("],\n\"frame\":[", stream);
    for (size_t at = 0; at < count; at++)
        put_number(stream, at, ranks[rows[at].frame]);
    putc(']', stream);
    put_side(stream, "self", rows, count, TRIE_NEW);
    if (two_sides)
        put_side(stream, "base", rows, count, TRIE_BASE);
    putc('}', stream);
    free(rows);
}

void page_write_profile(FILE *stream, const struct page *page)
{
    const char *const sides[] = { page->new_name, page->base_name };
    bool two_sides = page->new_name && page->base_name;
    struct tables tables;
    tables_make(&tables, page->frames);
    fputs("{\n", stream);
    put_text_of(stream, "aprof", APROF_VERSION);
    fputs("\"format\":1,\n", stream);
    put_text_of(stream, "title", page->title);
    put_texts(stream, "facts", page->facts, page->facts_count);
    if (page->nothing)
        put_text_of(stream, "nothing", page->nothing);
    if (two_sides)
        put_texts(stream, "sides", sides, 2);
    put_names(stream, "places", tables.places);
    put_packages(stream, &tables);
    put_frames(stream, page->frames, &tables);
    fputs("\"metrics\":[", stream);
    for (size_t at = 0; at < page->metrics_count; at++) {
        fputs(at ? ",\n" : "", stream);
        put_metric(stream, &page->metrics[at], tables.ranks, two_sides);
    }
    fputs("]\n}", stream);
    tables_free(&tables);
}

/* ---- files ---------------------------------------------------------------- */

void page_write(FILE *stream, const struct page *page)
{
    const char *start = _binary_template_html_start, *end = start + template_length();
    const char *mark = memmem(start, template_length(), MARK, sizeof MARK - 1);
    if (!mark)
        return; /* page_possible has said it */
    fwrite(start, 1, (size_t)(mark - start), stream);
    page_write_profile(stream, page);
    mark += sizeof MARK - 1;
    fwrite(mark, 1, (size_t)(end - mark), stream);
}

static void write_to(FILE *stream, void *page)
{
    page_write(stream, page);
}

bool page_write_file(const char *path, const struct page *page)
{
    return destination_write(path, write_to, (void *)page);
}
