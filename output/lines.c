/* SPDX-License-Identifier: MIT */
#include "output/lines.h"

#include <errno.h>
#include <unistd.h>

#define COUNT_ROOM 18u         /* space, up to 15 digits, newline, one to spare */
#define FULL_LINES_MOST 65535u /* of one stack in one window: 75 days of time */

/* One call of lines_write. */
struct round {
    struct lines *lines;
    struct place *place;
    struct live_window *window;
    struct profile *profile;
    int refusal;
    bool lost;
};

/* ---- counts ---- */

static void digits_put(char *digits, uint32_t count)
{
    for (unsigned i = SPOOL_COUNT_DIGITS; i > 0; i--) {
        digits[i - 1] = (char)('0' + count % 10);
        count /= 10;
    }
}

/* A cookie: an eighth of where the count's last digits are (never 0, a stack comes
 * before them), and above it the number of the stack's line. Lines before that
 * one hold SPOOL_COUNT_MAX each, so the total says what each line holds. */
#define COOKIE_PLACE_BITS 44u

static uint64_t cookie_make(uint64_t offset, uint32_t line)
{
    return ((uint64_t)line << COOKIE_PLACE_BITS) | offset / SPOOL_COUNT_DIGITS;
}

static uint64_t cookie_offset(uint64_t cookie)
{
    return (cookie & ((UINT64_C(1) << COOKIE_PLACE_BITS) - 1)) * SPOOL_COUNT_DIGITS;
}

static uint32_t cookie_line(uint64_t cookie)
{
    return (uint32_t)(cookie >> COOKIE_PLACE_BITS);
}

/* Which line of its stack the last part of a total stands in, and that part. */
static uint32_t line_of_total(uint64_t us, uint32_t *count)
{
    uint64_t line = (us - 1) / SPOOL_COUNT_MAX;
    if (line > FULL_LINES_MOST) {
        *count = SPOOL_COUNT_MAX;
        return FULL_LINES_MOST;
    }
    *count = (uint32_t)(us - line * SPOOL_COUNT_MAX);
    return (uint32_t)line;
}

static int count_store(struct round *round, const struct profile_change *change, uint32_t count)
{
    char digits[SPOOL_COUNT_DIGITS];
    digits_put(digits, count);
    return live_store(round->place, round->window, change->metric, cookie_offset(*change->cookie), digits);
}

/* ---- batches of new lines ---- */

/* The first `whole` bytes of the buffer are in the file. */
static void batch_settle(struct round *round, size_t whole)
{
    struct lines *lines = round->lines;
    for (uint32_t i = 0; i < lines->pending_count; i++) {
        struct lines_pending *line = &lines->pending[i];
        if (line->end <= whole)
            *line->cookie = line->value;
        else
            profile_mark_changed(round->profile, line->stack, lines->metric);
    }
    lines->pending_count = 0;
    lines->buffer->used = 0;
}

static size_t batch_whole(const struct lines *lines, size_t written)
{
    size_t whole = 0;
    for (uint32_t i = 0; i < lines->pending_count && lines->pending[i].end <= written; i++)
        whole = lines->pending[i].end;
    return whole;
}

static int batch_append(struct round *round, struct live_file *file, size_t *whole)
{
    const struct buffer *buffer = round->lines->buffer;
    if (!live_is_whole(file))
        return -ESTALE;
    size_t written = live_write(file->fd, buffer->bytes, buffer->used, file->end);
    int error = written == buffer->used ? 0 : errno ? -errno : -ENOSPC;
    *whole = batch_whole(round->lines, written);
    if (written > *whole && ftruncate(file->fd, (off_t)(file->end + *whole)) != 0)
        return -ESTALE;
    file->end += *whole;
    live_map(round->window, round->lines->metric);
    return error;
}

/* Appends what is in the buffer; lines that did not get in whole are put back. */
static int batch_write(struct round *round)
{
    size_t whole = 0;
    if (round->lines->buffer->used == 0)
        return 0;
    int error = live_acquire(round->place, round->window, round->lines->metric);
    if (error == 0)
        error = batch_append(round, &round->window->files[round->lines->metric], &whole);
    batch_settle(round, whole);
    return error;
}

/* Zeros before the count bring its last eight digits to an 8-byte boundary. */
static size_t line_put(char *line, const struct profile *profile, profile_stack stack, size_t length, uint64_t offset, uint32_t count)
{
    profile_text(profile, stack, line, length);
    line[length++] = ' ';
    while ((offset + length) % SPOOL_COUNT_DIGITS != 0)
        line[length++] = '0';
    digits_put(line + length, count);
    line[length + SPOOL_COUNT_DIGITS] = '\n';
    return length + SPOOL_COUNT_DIGITS + 1;
}

static int line_add(struct round *round, const struct profile_change *change, uint32_t number, uint32_t count)
{
    struct lines *lines = round->lines;
    struct buffer *buffer = lines->buffer;
    size_t length = profile_text(round->profile, change->stack, NULL, 0);
    if (lines->pending_count == LINES_AT_ONCE || buffer->used + length + COUNT_ROOM > buffer->size) {
        int error = batch_write(round);
        if (error < 0)
            return error;
        if (!buffer_reserve(buffer, length + COUNT_ROOM))
            return -ENOMEM;
    }
    uint64_t offset = round->window->files[change->metric].end + buffer->used;
    size_t size = line_put(buffer->bytes + buffer->used, round->profile, change->stack, length, offset, count);
    buffer->used += size;
    lines->pending[lines->pending_count++] = (struct lines_pending){
        change->stack, (uint32_t)buffer->used, change->cookie, cookie_make(offset + size - 1 - SPOOL_COUNT_DIGITS, number)};
    return 0;
}

/* ---- changes ---- */

static int file_make(struct round *round, enum metric metric)
{
    int error = place_open(round->place);
    if (error == 0)
        error = live_make(round->place, round->window, metric);
    /* somebody took the name, or the directory away */
    return error == -EEXIST || error == -ENOENT ? -ESTALE : error;
}

/* Makes ready to append to that metric's file. */
static int append_prepare(struct round *round, enum metric metric)
{
    struct lines *lines = round->lines;
    int error = round->refusal;
    if (error == 0 && lines->buffer->used > 0 && lines->metric != metric)
        error = batch_write(round);
    if (round->refusal == 0)
        lines->metric = metric;
    if (error == 0 && !round->window->files[metric].made)
        error = file_make(round, metric);
    return error;
}

/* Brings the stack's lines to its total: its last line, if it has one, then new ones. */
static int change_write(struct round *round, const struct profile_change *change)
{
    uint32_t count, first = 0, last = line_of_total(change->us, &count);
    if (*change->cookie != 0) {
        uint32_t line = cookie_line(*change->cookie);
        int error = count_store(round, change, line < last ? SPOOL_COUNT_MAX : count);
        if (error < 0 || line >= last)
            return error;
        first = line + 1;
    }
    int error = append_prepare(round, change->metric);
    for (uint32_t i = first; error == 0 && i <= last; i++)
        error = line_add(round, change, i, i < last ? SPOOL_COUNT_MAX : count);
    if (error < 0 && round->refusal == 0)
        round->refusal = error;
    return error;
}

int lines_write(struct lines *lines, struct place *place, struct live_window *window, struct profile *profile, int refusal, bool *lost)
{
    struct round round = {lines, place, window, profile, refusal, false};
    struct profile_change change;
    int first = 0;
    while (profile_take_change(profile, &change)) {
        int error = round.lost ? -ESTALE : change_write(&round, &change);
        round.lost |= error == -ESTALE;
        if (error < 0) {
            profile_mark_changed(profile, change.stack, change.metric);
            first = first ? first : error;
        }
    }
    int error = batch_write(&round);
    *lost |= round.lost || error == -ESTALE;
    return first ? first : error;
}

int lines_store_mapped(struct live_window *window, struct profile *profile)
{
    struct profile_change change;
    int result = 0;
    while (profile_take_change(profile, &change)) {
        uint32_t count, line = line_of_total(change.us, &count);
        uint64_t cookie = *change.cookie;
        char digits[SPOOL_COUNT_DIGITS];
        digits_put(digits, count);
        if (cookie != 0 && cookie_line(cookie) == line && live_store_mapped(window, change.metric, cookie_offset(cookie), digits))
            continue;
        profile_mark_changed(profile, change.stack, change.metric);
        result = -EAGAIN;
    }
    return result;
}
