/* SPDX-License-Identifier: MIT
 *
 * What a frame is to the patterns is kept with the number of its text, so that a
 * stack costs one look into a table for each of its frames.
 */
#include "output/filter.h"

#include <fnmatch.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "output/names.h"
#include "output/package.h"
#include "output/spool_format.h"
#include "output/table.h" /* table_name_inner */
#include "output/tool.h"

struct patterns {
    const char **texts;
    size_t count, room;
};

struct filter {
    struct patterns patterns[FILTER_KINDS];
    struct names *frames;
    unsigned char *kinds; /* of a frame: a bit each that it matches */
    size_t kinds_room;
    char *left; /* what is left of the last stack */
    size_t left_room;
    uint64_t whole;
};

struct filter *filter_new(void)
{
    struct filter *filter = tool_alloc(1, sizeof *filter);
    filter->frames = names_new();
    return filter;
}

void filter_free(struct filter *filter)
{
    if (!filter)
        return;
    for (int what = 0; what < FILTER_KINDS; what++)
        free(filter->patterns[what].texts);
    names_free(filter->frames);
    free(filter->kinds);
    free(filter->left);
    free(filter);
}

bool filter_add(struct filter *filter, enum filter_what what, const char *pattern)
{
    struct patterns *patterns = &filter->patterns[what];
    if (!*pattern) {
        tool_complain("--%s: \"\" is no pattern (of a function, a file or module.function)", what == FILTER_ONLY ? "only" : "hide");
        return false;
    }
    patterns->texts = tool_grow(patterns->texts, patterns->count, &patterns->room, sizeof *patterns->texts);
    patterns->texts[patterns->count++] = pattern;
    return true;
}

bool filter_option(struct filter *filter, int option, const char *pattern)
{
    return filter_add(filter, (enum filter_what)(option - FILTER_OPTION), pattern);
}

bool filter_is_used(const struct filter *filter)
{
    return filter->patterns[FILTER_ONLY].count || filter->patterns[FILTER_HIDE].count;
}

const char *filter_pattern(const struct filter *filter, enum filter_what what, size_t at)
{
    return at < filter->patterns[what].count ? filter->patterns[what].texts[at] : NULL;
}

char *filter_describe(const struct filter *filter, enum filter_what what, char *buffer, size_t size)
{
    const struct patterns *patterns = &filter->patterns[what];
    size_t length = 0;
    *buffer = '\0';
    for (size_t at = 0; at < patterns->count && length < size; at++)
        length += (size_t)snprintf(buffer + length, size - length, "%s%s", at ? " or " : "", patterns->texts[at]);
    return buffer;
}

/* ---- what a pattern fits -------------------------------------------------- */

static bool fits(const char *pattern, const char *text)
{
    return !strcmp(pattern, text) || !fnmatch(pattern, text, FNM_NOESCAPE);
}

static bool is_in_brackets(const char *text)
{
    size_t length = strlen(text);
    return length >= 2 && text[0] == '[' && text[length - 1] == ']';
}

/* "[ready]": brackets that are the marker's, and no set of characters. */
static bool is_of_marker(const char *pattern)
{
    return is_in_brackets(pattern) && strcspn(pattern + 1, "[]") + 2 == strlen(pattern);
}

static bool marker_fits(const char *pattern, const char *text)
{
    if (!is_in_brackets(pattern) || !is_in_brackets(text))
        return false;
    char *within = tool_copy(pattern + 1, strlen(pattern) - 2), *shown = tool_copy(text + 1, strlen(text) - 2);
    bool good = fits(within, shown);
    free(within);
    free(shown);
    return good;
}

static bool file_fits(const char *pattern, const char *path)
{
    const char *last = strrchr(path, '/');
    return fits(pattern, path) || fits(pattern, package_root(path)) || (last && !strchr(pattern, '/') && fits(pattern, last + 1));
}

/* How much of the path names the module: not the suffix, not "__init__". */
static size_t module_length(const char *path)
{
    static const char package[] = "/__init__";
    size_t end = sizeof package - 1;
    const char *slash = strrchr(path, '/'), *file = slash ? slash + 1 : path, *dot = strrchr(file, '.');
    size_t length = dot && dot > file && *file != '<' ? (size_t)(dot - path) : strlen(path);
    return length > end && !memcmp(path + length - end, package, end) ? length - end : length;
}

/* Whether it fits "requests.sessions.Session.get" of "requests/sessions.py" and "Session.get". */
static bool dotted_fits(const char *pattern, const char *path, size_t length, const char *name)
{
    char *text = tool_alloc(length + strlen(name) + 2, 1);
    sprintf(text, "%.*s.%s", (int)length, path, name);
    for (char *at = text; (at = memchr(at, '/', (size_t)(text + length - at)));)
        *at = '.';
    bool good = fits(pattern, text);
    free(text);
    return good;
}

static bool module_fits(const char *pattern, const char *path, const char *name)
{
    static const char frozen[] = "<frozen ";
    size_t lead = sizeof frozen - 1, whole = strlen(path);
    path = package_root(path);
    if (!strncmp(path, frozen, lead) && path[whole - 1] == '>')
        return dotted_fits(pattern, path + lead, whole - lead - 1, name);
    const char *end = path + module_length(path);
    if (*path != '/')
        return dotted_fits(pattern, path, (size_t)(end - path), name);
    for (const char *at = path; at && at < end; at = memchr(at + 1, '/', (size_t)(end - at - 1)))
        if (dotted_fits(pattern, at + 1, (size_t)(end - at - 1), name))
            return true;
    return false;
}

/* path: NULL for a frame without a place. */
static bool frame_fits(const char *pattern, const char *name, const char *path)
{
    bool good = marker_fits(pattern, name);
    if (!good && !is_of_marker(pattern))
        good = fits(pattern, name) || fits(pattern, table_name_inner(name));
    return good || (path && (file_fits(pattern, path) || module_fits(pattern, path, name)));
}

/* The frame taken apart, as texts that the caller frees; *path NULL where it has none. */
static char *frame_texts(const char *frame, size_t length, char **path)
{
    struct spool_frame parts = { .name_length = length };
    *path = spool_frame_split(frame, length, &parts) ? tool_copy(parts.path, parts.path_length) : NULL;
    return tool_copy(frame, parts.name_length);
}

bool filter_fits(const char *pattern, const char *frame, size_t length)
{
    char *path, *name = frame_texts(frame, length, &path);
    bool good = frame_fits(pattern, name, path);
    free(name);
    free(path);
    return good;
}

/* ---- stacks --------------------------------------------------------------- */

static unsigned char kind_make(const struct filter *filter, const char *frame, size_t length)
{
    unsigned char kind = 0;
    char *path, *name = frame_texts(frame, length, &path);
    for (int what = 0; what < FILTER_KINDS; what++)
        for (size_t at = 0; at < filter->patterns[what].count; at++)
            if (frame_fits(filter->patterns[what].texts[at], name, path))
                kind |= (unsigned char)(1u << what);
    free(name);
    free(path);
    return kind;
}

static unsigned char kind_of_frame(struct filter *filter, const char *frame, size_t length)
{
    uint32_t known = names_count(filter->frames), number = names_add(filter->frames, frame, length);
    if (number == known) {
        filter->kinds = tool_grow(filter->kinds, number, &filter->kinds_room, sizeof *filter->kinds);
        filter->kinds[number] = kind_make(filter, frame, length);
    }
    return filter->kinds[number];
}

static void left_make_room(struct filter *filter, size_t length)
{
    if (length <= filter->left_room)
        return;
    free(filter->left);
    filter->left_room = 2 * length;
    filter->left = tool_alloc(filter->left_room, 1);
}

static bool stack_keep(struct filter *filter, const char *frame, size_t size, size_t *left, bool *any)
{
    unsigned char kind = kind_of_frame(filter, frame, size);
    if (!(kind & 1u << FILTER_HIDE)) {
        if (*any)
            filter->left[(*left)++] = ';';
        memcpy(filter->left + *left, frame, size);
        *left += size;
        *any = true;
    }
    return kind & 1u << FILTER_ONLY;
}

bool filter_stack(struct filter *filter, const char **stack, size_t *length, uint64_t count)
{
    const char *frame = *stack, *end = frame + *length;
    bool keep = !filter->patterns[FILTER_ONLY].count, any = false;
    size_t left = 0;
    filter->whole += count;
    left_make_room(filter, *length);
    while (frame <= end) {
        const char *next = memchr(frame, ';', (size_t)(end - frame));
        size_t size = (size_t)((next ? next : end) - frame);
        keep |= stack_keep(filter, frame, size, &left, &any);
        frame += size + 1;
    }
    *stack = any ? filter->left : FILTER_HIDDEN;
    *length = any ? left : sizeof FILTER_HIDDEN - 1;
    return keep;
}

uint64_t filter_take_whole(struct filter *filter)
{
    uint64_t whole = filter->whole;
    filter->whole = 0;
    return whole;
}
