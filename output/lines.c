/* SPDX-License-Identifier: MIT */
#include "output/lines.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#define COUNT_ROOM 18u /* space, up to 15 digits, newline, one to spare */

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

/* A cookie: where the last digits of the stack's line are (never 0, a stack comes
 * before them), and what the stack has beside them: in its lines before that one, and
 * in the digits of this one that stay. */
enum { PLACE, BASE };

static int count_store(struct round *round, const struct profile_change *change, uint32_t count)
{
    char digits[SPOOL_COUNT_DIGITS];
    digits_put(digits, count);
    return live_store(round->place, round->window, change->metric, change->cookie[PLACE], digits);
}

/* ---- batches of new lines ---- */

/* The first `whole` bytes of the buffer are in the file. */
static void batch_settle(struct round *round, size_t whole)
{
    struct lines *lines = round->lines;
    for (uint32_t i = 0; i < lines->pending_count; i++) {
        struct lines_pending *line = &lines->pending[i];
        if (line->end <= whole)
            memcpy(line->cookie, line->value, sizeof line->value);
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

/* Digits before the last eight bring these to an 8-byte boundary: as many as that
 * takes, or none. They stay as they are written, so that a stack which takes more than
 * eight digits hold in a tick (a thousand tasks, say) has one line more, not ten. */
static uint64_t line_most(uint64_t offset, size_t length)
{
    uint64_t most = SPOOL_COUNT_MAX;
    for (size_t end = offset + length + 1; end % SPOOL_COUNT_DIGITS != 0; end++)
        most = most * 10 + 9;
    return most;
}

static size_t line_put(char *line, const struct profile *profile, profile_stack stack, size_t length, uint64_t offset, uint64_t count)
{
    size_t end = length + 1;
    while ((offset + end) % SPOOL_COUNT_DIGITS != 0)
        end++;
    profile_text(profile, stack, line, length);
    line[length] = ' ';
    uint64_t stays = count / (SPOOL_COUNT_MAX + 1u);
    for (size_t at = end; at > length + 1; stays /= 10)
        line[--at] = (char)('0' + stays % 10);
    digits_put(line + end, (uint32_t)(count % (SPOOL_COUNT_MAX + 1u)));
    line[end + SPOOL_COUNT_DIGITS] = '\n';
    return end + SPOOL_COUNT_DIGITS + 1;
}

/* A line for what the stack has beyond *shown, or as much as one line holds. */
static int line_add(struct round *round, const struct profile_change *change, uint64_t *shown)
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
    uint64_t most = line_most(offset, length), rest = change->us - *shown, count = rest < most ? rest : most;
    size_t size = line_put(buffer->bytes + buffer->used, round->profile, change->stack, length, offset, count);
    buffer->used += size;
    lines->pending[lines->pending_count++] = (struct lines_pending){
        change->stack, (uint32_t)buffer->used, change->cookie,
        {[PLACE] = offset + size - 1 - SPOOL_COUNT_DIGITS, [BASE] = *shown + count - count % (SPOOL_COUNT_MAX + 1u)}};
    *shown += count;
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
    uint64_t shown = 0;
    if (change->cookie[PLACE] != 0) {
        uint64_t count = change->us - change->cookie[BASE];
        bool fits = count <= SPOOL_COUNT_MAX;
        int error = count_store(round, change, fits ? (uint32_t)count : SPOOL_COUNT_MAX);
        if (error < 0 || fits)
            return error;
        shown = change->cookie[BASE] + SPOOL_COUNT_MAX;
    }
    int error = append_prepare(round, change->metric);
    while (error == 0 && shown < change->us)
        error = line_add(round, change, &shown);
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
        uint64_t count = change.us - change.cookie[BASE];
        char digits[SPOOL_COUNT_DIGITS];
        digits_put(digits, (uint32_t)count);
        if (change.cookie[PLACE] != 0 && count <= SPOOL_COUNT_MAX && live_store_mapped(window, change.metric, change.cookie[PLACE], digits))
            continue;
        profile_mark_changed(profile, change.stack, change.metric);
        result = -EAGAIN;
    }
    return result;
}
