/* SPDX-License-Identifier: MIT
 *
 * Each distinct frame is looked at once.
 */
#include "output/blocking.h"

#include <stdlib.h>
#include <string.h>

#include "output/names.h"
#include "output/spool_format.h"
#include "output/tool.h"

enum role { ROLE_NONE, ROLE_MARKER, ROLE_RUNNER, ROLE_LOOP, ROLE_HANDLE, ROLE_SELECTOR, ROLE_ASYNCIO };

struct known {
    enum role role;
    uint32_t caller, leaf; /* its numbers in callers and leaves */
};

struct sums {
    uint64_t wall, cpu, block;
};

struct blocking {
    struct filter *filter;
    bool is_known;
    uint64_t busy, idle, sum;
    struct names *texts; /* of frames, as they stand in stacks */
    struct known *known;
    size_t known_room;
    struct frames *callers, *leaves; /* without their lines; with them */
    struct names *paths; /* numbers in callers, root first, and the last in leaves, as bytes */
    struct sums *sums;   /* one a path */
    size_t sums_room;
    uint32_t *path;      /* numbers in texts, of the line that is being read */
    size_t path_room;
    struct blocking_row *rows;
};

/* ---- frames ---- */

static bool is_at(const struct spool_frame *parts, const char *end)
{
    size_t wanted = strlen(end);
    return parts->path_length >= wanted && !memcmp(parts->path + parts->path_length - wanted, end, wanted) &&
           (parts->path_length == wanted || parts->path[parts->path_length - wanted - 1] == '/');
}

static bool is_named(const char *text, const struct spool_frame *parts, const char *name)
{
    return parts->name_length == strlen(name) && !memcmp(text, name, parts->name_length);
}

static bool ends_in(const char *text, const struct spool_frame *parts, const char *end)
{
    size_t wanted = strlen(end);
    return parts->name_length >= wanted && !memcmp(text + parts->name_length - wanted, end, wanted);
}

/* What asyncio calls on the way to its loop, CPython 3.11 to 3.15, and uvloop. */
static enum role role_of(const char *text, size_t length)
{
    struct spool_frame parts;
    if (!spool_frame_split(text, length, &parts))
        return ROLE_MARKER;
    if (is_at(&parts, "asyncio/base_events.py"))
        return is_named(text, &parts, "BaseEventLoop._run_once") ? ROLE_LOOP : ROLE_ASYNCIO;
    if (is_at(&parts, "asyncio/events.py"))
        return ends_in(text, &parts, "Handle._run") ? ROLE_HANDLE : ROLE_ASYNCIO;
    if (is_at(&parts, "asyncio/runners.py"))
        return is_named(text, &parts, "run") || is_named(text, &parts, "Runner.run") ? ROLE_RUNNER : ROLE_ASYNCIO;
    if (is_at(&parts, "uvloop/__init__.py"))
        return is_named(text, &parts, "run") || is_named(text, &parts, "run.<locals>.wrapper") ? ROLE_RUNNER : ROLE_NONE;
    return is_at(&parts, "selectors.py") && ends_in(text, &parts, "Selector.select") ? ROLE_SELECTOR : ROLE_NONE;
}

static uint32_t frame_of(struct blocking *blocking, const char *text, size_t length)
{
    uint32_t count = names_count(blocking->texts), frame = names_add(blocking->texts, text, length);
    if (frame < count)
        return frame;
    blocking->known = tool_grow(blocking->known, frame, &blocking->known_room, sizeof *blocking->known);
    blocking->known[frame] = (struct known){ role_of(text, length), frames_add(blocking->callers, text, length), frames_add(blocking->leaves, text, length) };
    return frame;
}

static size_t path_read(struct blocking *blocking, const char *stack, size_t length)
{
    const char *end = stack + length;
    size_t depth = 0;
    for (const char *frame = stack; frame <= end;) {
        const char *next = memchr(frame, ';', (size_t)(end - frame));
        size_t size = (size_t)((next ? next : end) - frame);
        blocking->path = tool_grow(blocking->path, depth, &blocking->path_room, sizeof *blocking->path);
        blocking->path[depth++] = frame_of(blocking, frame, size);
        frame += size + 1;
    }
    return depth;
}

/* ---- stacks ---- */

enum state { STATE_OTHER, STATE_IDLE, STATE_STEP };

static enum role role_at(const struct blocking *blocking, size_t at)
{
    return blocking->known[blocking->path[at]].role;
}

/* Of the innermost loop in it. */
static enum state state_of(const struct blocking *blocking, size_t depth)
{
    for (size_t at = depth; at-- > 0;) {
        bool is_last = at + 1 == depth;
        if (role_at(blocking, at) == ROLE_LOOP)
            return is_last || (at + 2 == depth && role_at(blocking, at + 1) == ROLE_SELECTOR) ? STATE_IDLE : STATE_STEP;
        if (role_at(blocking, at) == ROLE_RUNNER)
            return is_last ? STATE_IDLE : role_at(blocking, at + 1) == ROLE_ASYNCIO ? STATE_OTHER : STATE_STEP;
    }
    return STATE_OTHER;
}

static struct sums *sums_of(struct blocking *blocking, size_t depth)
{
    for (size_t at = 0; at < depth; at++) {
        const struct known *known = &blocking->known[blocking->path[at]];
        blocking->path[at] = at + 1 < depth ? known->caller : known->leaf;
    }
    uint32_t row = names_add(blocking->paths, (const char *)blocking->path, depth * sizeof *blocking->path);
    blocking->sums = tool_grow(blocking->sums, row, &blocking->sums_room, sizeof *blocking->sums);
    return &blocking->sums[row];
}

/* The row's sums of a step that is kept; NULL: it is left out. */
static struct sums *step_of(struct blocking *blocking, const struct reader_line *line, size_t depth)
{
    const char *stack = line->stack;
    size_t length = line->length;
    if (blocking->filter && filter_is_used(blocking->filter)) {
        if (!filter_stack(blocking->filter, &stack, &length, line->count))
            return NULL;
        depth = path_read(blocking, stack, length);
    }
    return sums_of(blocking, depth);
}

/* A marker at the end ([unseen wall]) says where nobody looked. */
static int wall_line(void *context, const struct reader_line *line)
{
    struct blocking *blocking = context;
    size_t depth = path_read(blocking, line->stack, line->length);
    enum state state = state_of(blocking, depth);
    if (state == STATE_IDLE)
        blocking->idle += line->count;
    if (state != STATE_STEP)
        return 0;
    blocking->busy += line->count;
    struct sums *sums = role_at(blocking, depth - 1) == ROLE_MARKER ? NULL : step_of(blocking, line, depth);
    if (sums)
        sums->wall += line->count;
    return 0;
}

static int cpu_line(void *context, const struct reader_line *line)
{
    struct blocking *blocking = context;
    size_t depth = path_read(blocking, line->stack, line->length);
    struct sums *sums = state_of(blocking, depth) != STATE_STEP || role_at(blocking, depth - 1) == ROLE_MARKER ? NULL : step_of(blocking, line, depth);
    if (sums)
        sums->cpu += line->count;
    return 0;
}

/* Each one is a step. */
static int block_line(void *context, const struct reader_line *line)
{
    struct blocking *blocking = context;
    struct sums *sums = step_of(blocking, line, path_read(blocking, line->stack, line->length));
    if (sums)
        sums->block += line->count;
    return 0;
}

/* ---- reading ---- */

static bool is_known(const struct reader *reader)
{
    uint32_t windows = 0;
    for (uint32_t at = 0; at < reader_windows(reader); at++) {
        if (!reader_window_has(reader, at, "wall") && !reader_window_has(reader, at, "block"))
            continue;
        windows++;
        if (!reader_window_has(reader, at, "block") && !json_object_get(json_object_get(reader_window(reader, at)->metadata, "metrics"), "block"))
            return false;
    }
    return windows;
}

struct blocking *blocking_new(struct reader *reader, struct filter *filter)
{
    struct blocking *blocking = tool_alloc(1, sizeof *blocking);
    blocking->filter = filter;
    blocking->texts = names_new();
    blocking->callers = frames_new(false);
    blocking->leaves = frames_new(true);
    blocking->paths = names_new();
    blocking->is_known = is_known(reader);
    reader_each(reader, "wall", wall_line, blocking);
    if (blocking->is_known)
        reader_each(reader, "block", block_line, blocking);
    else
        reader_each(reader, "cpu", cpu_line, blocking);
    return blocking;
}

void blocking_free(struct blocking *blocking)
{
    if (!blocking)
        return;
    names_free(blocking->texts);
    frames_free(blocking->callers);
    frames_free(blocking->leaves);
    names_free(blocking->paths);
    free(blocking->known);
    free(blocking->sums);
    free(blocking->path);
    free(blocking->rows);
    free(blocking);
}

bool blocking_is_known(const struct blocking *blocking)
{
    return blocking->is_known;
}

uint64_t blocking_busy(const struct blocking *blocking)
{
    return blocking->busy;
}

uint64_t blocking_idle(const struct blocking *blocking)
{
    return blocking->idle;
}

uint64_t blocking_sum(const struct blocking *blocking)
{
    return blocking->sum;
}

/* ---- rows ---- */

static uint64_t waiting_of(const struct blocking *blocking, const struct sums *sums, double period_us)
{
    uint64_t waiting = sums->wall > sums->cpu ? sums->wall - sums->cpu : 0;
    if (blocking->is_known)
        return sums->block;
    bool is_seen = (double)waiting >= BLOCKING_ERRORS * BLOCKING_ERRORS * period_us; /* n finds are uncertain by their root */
    bool is_share = (double)waiting >= BLOCKING_SHARE * (double)blocking->busy;
    return is_seen && is_share && (double)waiting >= BLOCKING_WAITS * (double)sums->wall ? waiting : 0;
}

struct frame_text blocking_frame(const struct blocking *blocking, const struct blocking_row *row, uint32_t at)
{
    uint32_t frame;
    memcpy(&frame, (const char *)row->path + at * sizeof frame, sizeof frame);
    return frames_text(at + 1 < row->depth ? blocking->callers : blocking->leaves, frame);
}

static int rows_compare(const void *left, const void *right, void *context)
{
    const struct blocking *blocking = context;
    const struct blocking_row *one = left, *other = right;
    int order = (one->waiting_us < other->waiting_us) - (one->waiting_us > other->waiting_us);
    for (uint32_t at = 0; !order && at < one->depth && at < other->depth; at++) {
        struct frame_text a = blocking_frame(blocking, one, at), b = blocking_frame(blocking, other, at);
        order = strcmp(a.name, b.name);
        if (!order)
            order = strcmp(a.place, b.place);
    }
    return order ? order : (one->depth > other->depth) - (one->depth < other->depth);
}

size_t blocking_rows(struct blocking *blocking, double period_us, const struct blocking_row **rows)
{
    uint32_t all = names_count(blocking->paths);
    size_t count = 0, size;
    free(blocking->rows);
    blocking->rows = tool_alloc(all ? all : 1, sizeof *blocking->rows);
    blocking->sum = 0;
    for (uint32_t at = 0; at < all; at++) {
        struct blocking_row row = { .waiting_us = waiting_of(blocking, &blocking->sums[at], period_us) };
        if (!row.waiting_us)
            continue;
        row.path = names_text(blocking->paths, at, &size);
        row.depth = (uint32_t)(size / sizeof(uint32_t));
        blocking->sum += row.waiting_us;
        blocking->rows[count++] = row;
    }
    qsort_r(blocking->rows, count, sizeof *blocking->rows, rows_compare, blocking);
    *rows = blocking->rows;
    return count;
}
