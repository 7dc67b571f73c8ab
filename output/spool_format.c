/* SPDX-License-Identifier: MIT
 *
 * spool_format: names, lines and the rule of who is alive, for both halves.
 * Linked into the preloaded library too: nothing but plain system calls.
 */
#include "output/spool_format.h"

#include <errno.h>
#include <fcntl.h>    /* openat */
#include <string.h>
#include <sys/file.h> /* flock */
#include <sys/stat.h>
#include <unistd.h>

static const char prefix[] = "aprof";
static const char stacks_end[] = "collapsed";
static const char metadata_end[] = "json";

/* ---- names: a cursor that moves from the right end to the left ---- */

struct cursor {
    const char *text;
    size_t end;
};

/* Takes the last dot-separated part off; false when there is none. */
static bool take_part(struct cursor *cursor, const char **part, size_t *length)
{
    size_t from = cursor->end;
    while (from > 0 && cursor->text[from - 1] != '.')
        from--;
    if (from == 0)
        return false;
    *part = cursor->text + from;
    *length = cursor->end - from;
    cursor->end = from - 1;
    return true;
}

static bool part_is(const char *part, size_t length, const char *word)
{
    return strlen(word) == length && memcmp(part, word, length) == 0;
}

static bool digits_parse(const char *text, size_t length, uint64_t *number)
{
    uint64_t value = 0;
    if (length == 0)
        return false;
    for (size_t i = 0; i < length; i++) {
        unsigned digit = (unsigned char)text[i] - '0';
        if (digit > 9 || value > (UINT64_MAX - digit) / 10)
            return false;
        value = value * 10 + digit;
    }
    *number = value;
    return true;
}

static bool take_number(struct cursor *cursor, size_t least_digits, uint64_t *number)
{
    const char *part;
    size_t length;
    return take_part(cursor, &part, &length) && length >= least_digits && digits_parse(part, length, number);
}

static bool is_letter_or_digit(char c)
{
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

static bool take_metric(struct cursor *cursor, char *metric)
{
    const char *part;
    size_t length;
    if (!take_part(cursor, &part, &length) || length == 0 || length > SPOOL_METRIC_MAX)
        return false;
    for (size_t i = 0; i < length; i++) {
        if (part[i] != '_' && !(part[i] >= '0' && part[i] <= '9') && !(part[i] >= 'a' && part[i] <= 'z'))
            return false;
    }
    memcpy(metric, part, length);
    metric[length] = '\0';
    return true;
}

/* What is left is "aprof.HOST". */
static bool take_host(const struct cursor *cursor, char *host)
{
    size_t before = sizeof prefix; /* with the dot in the NUL's place */
    if (cursor->end <= before || memcmp(cursor->text, prefix, before - 1) != 0 || cursor->text[before - 1] != '.')
        return false;
    size_t length = cursor->end - before;
    if (length > SPOOL_HOST_MAX)
        return false;
    for (size_t i = 0; i < length; i++) {
        char c = cursor->text[before + i];
        if (!is_letter_or_digit(c) && c != '-' && c != '_')
            return false;
    }
    memcpy(host, cursor->text + before, length);
    host[length] = '\0';
    return true;
}

bool spool_name_parse(const char *text, struct spool_name *name)
{
    struct cursor cursor = {text, strlen(text)};
    const char *part;
    size_t length;
    memset(name, 0, sizeof *name);
    if (cursor.end > SPOOL_NAME_MAX || !take_part(&cursor, &part, &length))
        return false;
    name->state = part_is(part, length, "live") ? SPOOL_LIVE : part_is(part, length, "tmp") ? SPOOL_TEMPORARY : SPOOL_SEALED;
    if (name->state != SPOOL_SEALED && !take_part(&cursor, &part, &length))
        return false;
    if (part_is(part, length, stacks_end)) {
        if (!take_metric(&cursor, name->metric))
            return false;
    } else if (!part_is(part, length, metadata_end)) {
        return false;
    }
    return take_number(&cursor, 6, &name->seq) && take_number(&cursor, 1, &name->start_us) &&
           take_number(&cursor, 1, &name->pid) && take_host(&cursor, name->host);
}

static const char *const dump_ends[] = {[SPOOL_DUMP_ASK] = ".ask", [SPOOL_DUMP_ANSWER] = ".dump", [SPOOL_DUMP_TEMPORARY] = ".dump.tmp"};

bool spool_dump_parse(const char *text, struct spool_name *name, enum spool_dump *which)
{
    struct cursor cursor = {text, strlen(text)};
    memset(name, 0, sizeof *name);
    name->seq = UINT64_MAX;
    if (cursor.end > SPOOL_NAME_MAX)
        return false;
    for (int i = SPOOL_DUMP_TEMPORARY; i >= SPOOL_DUMP_ASK; i--) {
        size_t length = strlen(dump_ends[i]);
        if (cursor.end <= length || strcmp(text + cursor.end - length, dump_ends[i]) != 0)
            continue;
        *which = (enum spool_dump)i;
        cursor.end -= length;
        return take_number(&cursor, 1, &name->start_us) && take_number(&cursor, 1, &name->pid) && take_host(&cursor, name->host);
    }
    return false;
}

struct builder {
    char *text;
    size_t size, length;
    bool cut;
};

static void build_text(struct builder *builder, const char *text)
{
    size_t length = strlen(text);
    if (builder->length + length >= builder->size) {
        builder->cut = true;
        return;
    }
    memcpy(builder->text + builder->length, text, length + 1);
    builder->length += length;
}

static void build_number(struct builder *builder, uint64_t number, unsigned least_digits)
{
    char digits[24];
    size_t at = sizeof digits - 1;
    digits[at] = '\0';
    do {
        digits[--at] = (char)('0' + number % 10);
        number /= 10;
    } while (number != 0 || sizeof digits - 1 - at < least_digits);
    build_text(builder, digits + at);
}

static void build_process(struct builder *builder, const struct spool_name *name)
{
    build_text(builder, prefix);
    build_text(builder, ".");
    build_text(builder, name->host);
    build_text(builder, ".");
    build_number(builder, name->pid, 1);
    build_text(builder, ".");
    build_number(builder, name->start_us, 1);
}

size_t spool_dump_format(const struct spool_name *name, enum spool_dump which, char *text, size_t size)
{
    struct builder builder = {text, size, 0, false};
    build_process(&builder, name);
    build_text(&builder, dump_ends[which]);
    return builder.cut ? 0 : builder.length;
}

size_t spool_name_format(const struct spool_name *name, char *text, size_t size)
{
    static const char *const ends[] = {[SPOOL_SEALED] = "", [SPOOL_LIVE] = ".live", [SPOOL_TEMPORARY] = ".tmp"};
    struct builder builder = {text, size, 0, false};
    build_process(&builder, name);
    build_text(&builder, ".");
    build_number(&builder, name->seq, 6);
    build_text(&builder, ".");
    if (name->metric[0] != '\0') {
        build_text(&builder, name->metric);
        build_text(&builder, ".");
    }
    build_text(&builder, name->metric[0] != '\0' ? stacks_end : metadata_end);
    build_text(&builder, ends[name->state]);
    return builder.cut ? 0 : builder.length;
}

bool spool_name_same_window(const struct spool_name *a, const struct spool_name *b)
{
    return a->seq == b->seq && a->start_us == b->start_us && a->pid == b->pid && strcmp(a->host, b->host) == 0;
}

size_t spool_host_clean(const char *raw, char *host, size_t size)
{
    size_t length = 0;
    for (; raw[length] != '\0' && length < SPOOL_HOST_MAX && length + 1 < size; length++)
        host[length] = is_letter_or_digit(raw[length]) || raw[length] == '-' ? raw[length] : '_';
    if (length == 0 && size > 1)
        host[length++] = '_';
    if (size > 0)
        host[length] = '\0';
    return length;
}

/* ---- lines ---- */

bool spool_line_parse(const char *line, size_t length, size_t *stack_length, uint64_t *count)
{
    size_t digits = length;
    while (digits > 0 && line[digits - 1] >= '0' && line[digits - 1] <= '9')
        digits--;
    if (digits < 2 || line[digits - 1] != ' ' || !digits_parse(line + digits, length - digits, count))
        return false;
    *stack_length = digits - 1;
    return true;
}

bool spool_frame_split(const char *frame, size_t length, struct spool_frame *parts)
{
    uint64_t number;
    *parts = (struct spool_frame){.name_length = length};
    if (length < 5 || frame[length - 1] != ')')
        return false;
    size_t colon = length - 1;
    while (colon > 0 && frame[colon] != ':')
        colon--;
    size_t open = colon;
    while (open > 1 && !(frame[open] == '(' && frame[open - 1] == ' '))
        open--;
    if (open <= 1 || !digits_parse(frame + colon + 1, length - colon - 2, &number) || number > UINT32_MAX)
        return false;
    *parts = (struct spool_frame){open - 1, frame + open + 1, colon - open - 1, (uint32_t)number};
    return true;
}

static int hex_digit(char c)
{
    return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

size_t spool_unescape(const char *text, size_t length, char *out)
{
    size_t written = 0;
    for (size_t i = 0; i < length; i++) {
        char c = text[i];
        if (c == '\\' && i + 3 < length && text[i + 1] == 'x' && hex_digit(text[i + 2]) >= 0 && hex_digit(text[i + 3]) >= 0) {
            c = (char)(hex_digit(text[i + 2]) * 16 + hex_digit(text[i + 3]));
            i += 3;
        }
        out[written++] = c;
    }
    return written;
}

/* ---- who is alive ---- */

#define MINUTE_US 60000000u
#define WINDOW_DEFAULT_US 60000000u

bool spool_life_is_dead(const struct spool_life *life)
{
    if (life->missing)
        return true;
    if (life->lock == SPOOL_LOCK_HELD)
        return false;
    if (!life->over && (life->paused || life->lock == SPOOL_LOCK_REFUSED))
        return life->silent_us > 2 * life->window_us + MINUTE_US;
    return life->silent_us > SPOOL_SILENT_US;
}

static enum spool_lock lock_try(int fd)
{
    if (flock(fd, LOCK_SH | LOCK_NB) == 0) {
        flock(fd, LOCK_UN);
        return SPOOL_LOCK_FREE;
    }
    return errno == EWOULDBLOCK ? SPOOL_LOCK_HELD : SPOOL_LOCK_REFUSED;
}

/* Where the bytes of needle end in text, or NULL. A quote inside a JSON string is
 * escaped, so a needle with bare quotes can only be found as a key. */
static const char *find_after(const char *text, size_t length, const char *needle)
{
    size_t size = strlen(needle);
    for (size_t i = 0; i + size <= length; i++) {
        if (text[i] == needle[0] && memcmp(text + i, needle, size) == 0)
            return text + i + size;
    }
    return NULL;
}

static uint64_t seconds_at(const char *text, const char *end)
{
    uint64_t seconds = 0;
    for (; text < end && *text >= '0' && *text <= '9' && seconds < 100000000; text++)
        seconds = seconds * 10 + (uint64_t)(*text - '0');
    return seconds;
}

/* The first one: a tag may have that name too. */
static bool says_open(const char *ended, const char *end)
{
    while (ended < end && *ended == ' ')
        ended++;
    return end - ended > 6 && memcmp(ended, "\"open\"", 6) == 0;
}

/* Blocks overlap, so that a key that lies across two of them is found whole. */
static void life_read(int fd, struct spool_life *life)
{
    enum { OVERLAP = 64 };
    static const char *const window_keys[] = {"\"APROF_WINDOW\": \"", "\"window\": \""};
    char block[4096 + OVERLAP];
    off_t at = 0;
    ssize_t got;
    bool known = false; /* how it ended */
    while ((got = pread(fd, block, sizeof block, at)) > 0) {
        size_t length = (size_t)got;
        if (find_after(block, length, "\"paused\": true"))
            life->paused = true;
        const char *ended = known ? NULL : find_after(block, length, "\"ended\": ");
        if (ended) {
            life->over = !says_open(ended, block + length);
            known = true;
        }
        for (size_t i = 0; i < sizeof window_keys / sizeof *window_keys; i++) {
            const char *found = find_after(block, length, window_keys[i]);
            if (found && seconds_at(found, block + length) > 0)
                life->window_us = seconds_at(found, block + length) * 1000000;
        }
        if (length < sizeof block)
            return;
        at += (off_t)(length - OVERLAP);
    }
}

bool spool_window_is_dead(int directory, const char *metadata_name, uint64_t now_us)
{
    struct spool_life life = {.window_us = WINDOW_DEFAULT_US};
    struct stat status;
    int fd = openat(directory, metadata_name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (fd < 0)
        return errno == ENOENT;
    life.lock = lock_try(fd);
    if (life.lock != SPOOL_LOCK_HELD)
        life_read(fd, &life);
    /* Asked last: a change while we looked makes it a living one. */
    bool known = fstat(fd, &status) == 0;
    close(fd);
    if (!known)
        return false;
    uint64_t changed = (uint64_t)status.st_mtim.tv_sec * 1000000 + (uint64_t)status.st_mtim.tv_nsec / 1000;
    life.silent_us = now_us > changed ? now_us - changed : 0;
    return spool_life_is_dead(&life);
}
