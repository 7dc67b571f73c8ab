/* SPDX-License-Identifier: MIT
 *
 * Each distinct frame text is cut up once; after that a frame costs one look
 * into the table of names.
 */
#include "output/tally.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "output/names.h"
#include "output/spool_format.h"
#include "output/tool.h"

/* A row's key is name, NUL, place: the reader lets no NUL through, so both can be
 * handed out as they lie. seen is the number of the last stack that counted this
 * row's total. */
struct sums {
    uint64_t self, total, seen;
    uint32_t block; /* the last one that touched it; counted from 1 */
};

/* What a row had when its last block ended, and its blocks' squares. Apart from
 * sums, which each frame of each stack goes to. */
struct spread {
    uint64_t self, total;
    struct tally_blocks self_blocks, total_blocks;
};

struct tally {
    enum tally_by by;
    struct names *frames;
    uint32_t *row_of_frame;
    size_t frames_room;
    struct names *keys;
    struct names *paths; /* TALLY_STACK: keys of its frames, root first, as their numbers' bytes */
    uint32_t *path;      /* ... of the line that is being read */
    size_t path_room;
    struct sums *sums;   /* one a row: a key, or a path */
    size_t sums_room;
    uint64_t stacks, sum;
    struct spread *spreads; /* ... as many as rows when the last block ended */
    size_t spreads_count, spreads_room;
    uint32_t *touched;      /* rows of the block that is being read */
    size_t touched_count, touched_room;
    uint32_t block, blocks_count;
    uint64_t block_sum;     /* what the blocks before it have */
    double blocks_squares;
    uint32_t process, process_row; /* TALLY_PROCESS: of the last stack */
    bool has_names;                /* TALLY_THREAD, TALLY_TASK: a stack named one */
    struct tally_row *rows;
};

/* What a row can be, and for those that a marker names how it begins, the row of stacks
 * without one, and the setting that has it recorded. */
static const struct {
    const char *word, *marker, *none, *setting;
} kinds[] = {
    [TALLY_FUNCTION] = { "function", NULL, NULL, NULL },
    [TALLY_LINE] = { "line", NULL, NULL, NULL },
    [TALLY_FILE] = { "file", NULL, NULL, NULL },
    [TALLY_PROCESS] = { "process", NULL, NULL, NULL },
    [TALLY_STACK] = { "stack", NULL, NULL, NULL },
    [TALLY_THREAD] = { "thread", "[thread ", "[no thread]", "APROF_THREAD_FRAMES" },
    [TALLY_TASK] = { "task", "[task ", "[no task]", "APROF_TASK_NAMES" },
};

int tally_by_of(const char *word)
{
    for (int at = 0; at < (int)(sizeof kinds / sizeof *kinds); at++)
        if (!strcmp(kinds[at].word, word))
            return at;
    return -1;
}

const char *tally_by_name(enum tally_by by)
{
    return kinds[by].word;
}

const char *tally_by_setting(enum tally_by by)
{
    return kinds[by].setting;
}

struct tally *tally_new(enum tally_by by)
{
    struct tally *tally = tool_alloc(1, sizeof *tally);
    tally->by = by;
    tally->block = 1;
    tally->frames = names_new();
    tally->keys = names_new();
    tally->paths = names_new();
    return tally;
}

void tally_free(struct tally *tally)
{
    if (!tally)
        return;
    names_free(tally->frames);
    names_free(tally->keys);
    names_free(tally->paths);
    free(tally->path);
    free(tally->row_of_frame);
    free(tally->sums);
    free(tally->spreads);
    free(tally->touched);
    free(tally->rows);
    free(tally);
}

static uint32_t key_add(struct tally *tally, const char *name, size_t name_length, const char *place, size_t place_length)
{
    char small[2048], *key = small;
    size_t length = name_length + 1 + place_length;
    if (length > sizeof small)
        key = tool_alloc(length, 1);
    memcpy(key, name, name_length);
    key[name_length] = '\0';
    memcpy(key + name_length + 1, place, place_length);
    uint32_t row = names_add(tally->keys, key, length);
    if (key != small)
        free(key);
    tally->sums = tool_grow(tally->sums, row, &tally->sums_room, sizeof *tally->sums);
    return row;
}

#define NO_ROW NAMES_NONE /* of a frame that is not what rows are of */

static uint32_t row_of_marker(struct tally *tally, const char *text, size_t length)
{
    const char *marker = kinds[tally->by].marker;
    size_t lead = strlen(marker);
    if (length <= lead || memcmp(text, marker, lead) || text[length - 1] != ']')
        return NO_ROW;
    return key_add(tally, text + lead, length - lead - 1, "", 0);
}

static uint32_t row_make(struct tally *tally, const char *text, size_t length)
{
    struct spool_frame frame;
    if (kinds[tally->by].marker)
        return row_of_marker(tally, text, length);
    if (!spool_frame_split(text, length, &frame))
        return key_add(tally, text, length, "", 0); /* a marker, or made by another program */
    if (tally->by == TALLY_FILE)
        return key_add(tally, frame.path, frame.path_length, "", 0);
    const char *end = tally->by == TALLY_LINE ? text + length - 1 : frame.path + frame.path_length;
    return key_add(tally, text, frame.name_length, frame.path, (size_t)(end - frame.path));
}

static uint32_t row_of_frame(struct tally *tally, const char *text, size_t length)
{
    uint32_t known = names_count(tally->frames);
    uint32_t frame = names_add(tally->frames, text, length);
    if (frame == known) {
        tally->row_of_frame = tool_grow(tally->row_of_frame, frame, &tally->frames_room, sizeof *tally->row_of_frame);
        tally->row_of_frame[frame] = row_make(tally, text, length);
    }
    return tally->row_of_frame[frame];
}

/* A process's windows come together; the first one names the row, so that one
 * without metadata does not make a second. */
static uint32_t row_of_process(struct tally *tally, const struct reader_window *window)
{
    if (tally->stacks > 1 && window->process == tally->process)
        return tally->process_row;
    const char *program = json_string_value(json_object_get(window->metadata, "program"));
    char name[1024];
    int length = snprintf(name, sizeof name, "%s%spid %llu on %s", program ? program : "", program ? ", " : "",
                          (unsigned long long)window->pid, *window->host ? window->host : "an unknown host");
    tally->process = window->process;
    tally->process_row = key_add(tally, name, length < (int)sizeof name ? (size_t)length : sizeof name - 1, "", 0);
    return tally->process_row;
}

static uint32_t row_of_path(struct tally *tally, size_t depth)
{
    uint32_t row = names_add(tally->paths, (const char *)tally->path, depth * sizeof *tally->path);
    tally->sums = tool_grow(tally->sums, row, &tally->sums_room, sizeof *tally->sums);
    return row;
}

static void row_touch(struct tally *tally, uint32_t row)
{
    tally->sums[row].block = tally->block;
    tally->touched = tool_grow(tally->touched, tally->touched_count, &tally->touched_room, sizeof *tally->touched);
    tally->touched[tally->touched_count++] = row;
}

static void row_see(struct tally *tally, uint32_t row, uint64_t count)
{
    struct sums *sums = &tally->sums[row];
    if (sums->seen == tally->stacks)
        return;
    sums->seen = tally->stacks;
    sums->total += count;
    if (sums->block != tally->block)
        row_touch(tally, row);
}

#define NO_FRAME SIZE_MAX

/* Of the frame that begins there; NO_FRAME beyond the last one. */
static size_t frame_length(const struct reader_line *line, const char *frame)
{
    const char *end = line->stack + line->length;
    if (frame > end)
        return NO_FRAME;
    const char *next = memchr(frame, ';', (size_t)(end - frame));
    return (size_t)((next ? next : end) - frame);
}

static uint32_t stack_add(struct tally *tally, const struct reader_line *line)
{
    size_t depth = 0, length;
    for (const char *frame = line->stack; (length = frame_length(line, frame)) != NO_FRAME; frame += length + 1) {
        uint32_t key = row_of_frame(tally, frame, length);
        tally->path = tool_grow(tally->path, depth, &tally->path_room, sizeof *tally->path);
        tally->path[depth++] = key;
    }
    return row_of_path(tally, depth);
}

/* Of the last frame that has one, NO_ROW when none has. All of them were seen. */
static uint32_t frames_see(struct tally *tally, const struct reader_line *line)
{
    uint32_t last = NO_ROW;
    const char *frame = line->stack;
    for (size_t length; (length = frame_length(line, frame)) != NO_FRAME; frame += length + 1) {
        uint32_t row = row_of_frame(tally, frame, length);
        if (row == NO_ROW)
            continue;
        row_see(tally, row, line->count);
        last = row;
    }
    return last;
}

static uint32_t row_of_none(struct tally *tally)
{
    const char *none = kinds[tally->by].none;
    return key_add(tally, none, strlen(none), "", 0);
}

int tally_line(void *context, const struct reader_line *line)
{
    struct tally *tally = context;
    uint32_t row;
    tally->stacks++;
    tally->sum += line->count;
    if (tally->by == TALLY_PROCESS)
        row = row_of_process(tally, line->window);
    else if (tally->by == TALLY_STACK)
        row = stack_add(tally, line);
    else
        row = frames_see(tally, line);
    if (row == NO_ROW)
        row = row_of_none(tally);
    else
        tally->has_names = true;
    row_see(tally, row, line->count); /* those of frames were, and count once */
    tally->sums[row].self += line->count;
    return 0;
}

static void blocks_add(struct tally_blocks *blocks, uint64_t *before, uint64_t now, double whole)
{
    double part = (double)(now - *before);
    blocks->squares += part * part;
    blocks->cross += part * whole;
    *before = now;
}

static struct spread *spread_of(struct tally *tally, uint32_t row)
{
    while (tally->spreads_count <= row) {
        tally->spreads = tool_grow(tally->spreads, tally->spreads_count, &tally->spreads_room, sizeof *tally->spreads);
        tally->spreads[tally->spreads_count++] = (struct spread){ 0 };
    }
    return &tally->spreads[row];
}

bool tally_block_end(struct tally *tally)
{
    double whole = (double)(tally->sum - tally->block_sum);
    if (tally->sum == tally->block_sum)
        return false;
    for (size_t at = 0; at < tally->touched_count; at++) {
        uint32_t row = tally->touched[at];
        struct spread *spread = spread_of(tally, row);
        blocks_add(&spread->self_blocks, &spread->self, tally->sums[row].self, whole);
        blocks_add(&spread->total_blocks, &spread->total, tally->sums[row].total, whole);
    }
    tally->touched_count = 0;
    tally->block++;
    tally->blocks_count++;
    tally->block_sum = tally->sum;
    tally->blocks_squares += whole * whole;
    return true;
}

uint32_t tally_blocks_count(const struct tally *tally)
{
    return tally->blocks_count;
}

double tally_blocks_squares(const struct tally *tally)
{
    return tally->blocks_squares;
}

bool tally_has_names(const struct tally *tally)
{
    return tally->has_names;
}

uint64_t tally_sum(const struct tally *tally)
{
    return tally->sum;
}

static struct tally_frame key_show(const struct tally *tally, uint32_t key)
{
    const char *name = names_text(tally->keys, key, NULL);
    return (struct tally_frame){ name, name + strlen(name) + 1 };
}

struct tally_frame tally_frame(const struct tally *tally, const struct tally_row *row, uint32_t at)
{
    uint32_t key;
    memcpy(&key, (const char *)row->stack + at * sizeof key, sizeof key);
    return key_show(tally, key);
}

static int frame_compare(struct tally_frame one, struct tally_frame other)
{
    int order = strcmp(one.name, other.name);
    return order ? order : strcmp(one.place, other.place);
}

static int names_compare(const struct tally *tally, const struct tally_row *one, const struct tally_row *other)
{
    int order = 0;
    if (!one->stack)
        return frame_compare((struct tally_frame){ one->name, one->place }, (struct tally_frame){ other->name, other->place });
    for (uint32_t at = 0; !order && at < one->depth && at < other->depth; at++)
        order = frame_compare(tally_frame(tally, one, at), tally_frame(tally, other, at));
    return order ? order : (one->depth > other->depth) - (one->depth < other->depth);
}

static int descending(uint64_t one, uint64_t other)
{
    return (one < other) - (one > other);
}

static int self_compare(const void *left, const void *right, void *tally)
{
    const struct tally_row *one = left, *other = right;
    int order = descending(one->self, other->self);
    if (!order)
        order = descending(one->total, other->total);
    return order ? order : names_compare(tally, one, other);
}

static int total_compare(const void *left, const void *right, void *tally)
{
    const struct tally_row *one = left, *other = right;
    int order = descending(one->total, other->total);
    if (!order)
        order = descending(one->self, other->self);
    return order ? order : names_compare(tally, one, other);
}

static struct tally_row row_show(const struct tally *tally, uint32_t row)
{
    const struct sums *sums = &tally->sums[row];
    struct tally_row shown = { .self = sums->self, .total = sums->total };
    size_t size;
    if (row < tally->spreads_count) {
        shown.self_blocks = tally->spreads[row].self_blocks;
        shown.total_blocks = tally->spreads[row].total_blocks;
    }
    if (tally->by == TALLY_STACK) {
        shown.stack = names_text(tally->paths, row, &size);
        shown.depth = (uint32_t)(size / sizeof(uint32_t));
    }
    struct tally_frame last = shown.stack ? tally_frame(tally, &shown, shown.depth - 1) : key_show(tally, row);
    shown.name = last.name;
    shown.place = last.place;
    return shown;
}

static size_t rows_sorted(struct tally *tally, const struct tally_row **rows, bool by_self)
{
    uint32_t all = names_count(tally->by == TALLY_STACK ? tally->paths : tally->keys);
    size_t count = 0;
    free(tally->rows);
    tally->rows = tool_alloc(all, sizeof *tally->rows);
    for (uint32_t row = 0; row < all; row++)
        if (by_self ? tally->sums[row].self : tally->sums[row].total)
            tally->rows[count++] = row_show(tally, row);
    qsort_r(tally->rows, count, sizeof *tally->rows, by_self ? self_compare : total_compare, tally);
    *rows = tally->rows;
    return count;
}

size_t tally_by_self(struct tally *tally, const struct tally_row **rows)
{
    return rows_sorted(tally, rows, true);
}

size_t tally_by_total(struct tally *tally, const struct tally_row **rows)
{
    return rows_sorted(tally, rows, false);
}
