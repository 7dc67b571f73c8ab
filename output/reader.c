/* SPDX-License-Identifier: MIT
 *
 * A directory is not a snapshot: while it is listed, a window can be sealed so
 * that neither its old nor its new name is met. So listings are repeated until
 * one brings nothing new, and names only ever add to what is known; where the
 * metadata of a live window is gone when it is looked at, all are listed again,
 * for its process goes on in a window that was not there before, or has ended.
 */
#include "output/reader.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "output/kind.h"
#include "output/life.h"
#include "output/names.h"
#include "output/progress.h"
#include "output/spool_format.h"
#include "output/tool.h"

#define LISTINGS 32             /* of one directory; windows last seconds, listings milliseconds: two or three are usual */
#define READ_BYTES (1u << 20)   /* a read; also the first size of the line buffer */
#define LINE_BYTES (64u << 20)  /* longest line that is taken for one: 2048 frames of 1,000 bytes, each byte escaped */
#define METADATA_TRIES 5        /* live metadata is renewed in place: a read can meet half of it */
#define METADATA_PAUSE_NS 2000000
#define NOT_REGULAR EINVAL      /* open itself does not return it for reading */
#define COMPLAINTS 10           /* lines about unreadable files before only their number is told */

/* A file of a window. Either path may be missing; sealed wins. */
struct source {
    uint32_t metric; /* number in reader.metrics, METADATA for the .json */
    char *sealed, *live;
    uint64_t taken;  /* the most that a walk has read of it */
};
#define METADATA NAMES_NONE

struct window {
    struct reader_window shown;
    struct source *sources;
    size_t count, room;
    json_t *metadata;
    bool refused; /* written by something newer than us */
};

struct reader {
    struct window **windows;
    size_t count, room;
    struct names *stems; /* number of a stem = index of its window before reader_open sorts them */
    struct names *metrics;
    const char **metric_order; /* NULL at its end */
    uint64_t *sums;            /* of a metric's number: all that is taken */
    uint32_t processes;
    struct filter *filter; /* NULL: none */
    char **directories;    /* that were given */
    size_t directories_count, directories_room;
    uint32_t relistings;
    uint32_t failures;
    struct reader_counts counts;
};

/* ---- names ---------------------------------------------------------------- */

/* What a file's name says. */
struct parts {
    size_t stem; /* length of what the window's files share: aprof.HOST.PID.START.SEQ */
    const char *metric;
    size_t metric_length; /* 0: metadata */
    bool is_live;
};

static bool ends_with(const char *name, size_t *length, const char *end)
{
    size_t size = strlen(end);
    if (*length < size || memcmp(name + *length - size, end, size))
        return false;
    *length -= size;
    return true;
}

static bool is_metric_character(char c)
{
    return c == '_' || (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z');
}

/* NAME.METRIC.collapsed[.live] or NAME.json[.live]; any NAME. */
static bool parts_of(const char *name, struct parts *parts)
{
    size_t length = strlen(name);
    parts->is_live = ends_with(name, &length, ".live");
    parts->metric_length = 0;
    parts->metric = NULL;
    if (ends_with(name, &length, ".json")) {
        parts->stem = length;
        return true;
    }
    if (!ends_with(name, &length, ".collapsed"))
        return false;
    size_t start = length;
    while (start && is_metric_character(name[start - 1]))
        start--;
    parts->metric = name + start;
    parts->metric_length = length - start;
    parts->stem = start ? start - 1 : 0;
    return parts->metric_length > 0 && (!start || name[start - 1] == '.');
}

/* ---- what is there -------------------------------------------------------- */

struct reader *reader_new(void)
{
    struct reader *reader = tool_alloc(1, sizeof *reader);
    reader->stems = names_new();
    reader->metrics = names_new();
    return reader;
}

static void window_free(struct window *window)
{
    for (size_t at = 0; at < window->count; at++) {
        free(window->sources[at].sealed);
        free(window->sources[at].live);
    }
    free(window->sources);
    free((char *)window->shown.host);
    json_decref(window->metadata);
    free(window);
}

void reader_free(struct reader *reader)
{
    if (!reader)
        return;
    for (size_t at = 0; at < reader->count; at++)
        window_free(reader->windows[at]);
    for (size_t at = 0; at < reader->directories_count; at++)
        free(reader->directories[at]);
    free(reader->windows);
    free(reader->directories);
    free(reader->metric_order);
    free(reader->sums);
    names_free(reader->stems);
    names_free(reader->metrics);
    free(reader);
}

/* Names the file, what is wrong, and with what rights it was tried. */
static void fail(struct reader *reader, const char *path, int error)
{
    path = *path ? path : "\"\"";
    reader->failures++;
    if (reader->failures > COMPLAINTS)
        return;
    if (error == EACCES || error == EPERM)
        tool_complain("%s: %s (as uid %u)", path, strerror(error), (unsigned)geteuid());
    else
        tool_complain("%s: %s", path, error == NOT_REGULAR ? "is no regular file" : strerror(error));
}

static void fail_saying(struct reader *reader, const char *path, const char *what)
{
    if (++reader->failures <= COMPLAINTS)
        tool_complain("%s: %s", path, what);
}

/* name: of any of the window's files; stem: how much of it they share. */
static struct window *window_of(struct reader *reader, const char *name, size_t stem)
{
    uint32_t number = names_add(reader->stems, name, stem);
    if (number < reader->count)
        return reader->windows[number];
    struct window *window = tool_alloc(1, sizeof *window);
    struct spool_name parsed = { 0 };
    bool is_ours = spool_name_parse(name, &parsed);
    window->shown.host = tool_copy(parsed.host, is_ours ? strlen(parsed.host) : 0);
    if (is_ours) {
        window->shown.pid = parsed.pid;
        window->shown.start_us = parsed.start_us;
        window->shown.number = parsed.seq;
    }
    reader->windows = tool_grow(reader->windows, reader->count, &reader->room, sizeof *reader->windows);
    reader->windows[reader->count++] = window;
    return window;
}

static struct source *source_find(const struct window *window, uint32_t metric)
{
    for (size_t at = 0; at < window->count; at++)
        if (window->sources[at].metric == metric)
            return &window->sources[at];
    return NULL;
}

static struct source *source_of(struct window *window, uint32_t metric)
{
    struct source *found = source_find(window, metric);
    if (found)
        return found;
    window->sources = tool_grow(window->sources, window->count, &window->room, sizeof *window->sources);
    window->sources[window->count].metric = metric;
    return &window->sources[window->count++];
}

static char *path_of(const char *directory, const char *name, size_t length, const char *end)
{
    char *path = tool_alloc(strlen(directory) + length + strlen(end) + 2, 1);
    sprintf(path, "%s%s%.*s%s", directory, *directory && directory[strlen(directory) - 1] != '/' ? "/" : "", (int)length, name, end);
    return path;
}

/* One file; directory is "" for one in the current directory. True when it was
 * not known before. */
static bool file_add(struct reader *reader, const char *directory, const char *name, const struct parts *parts)
{
    struct window *window = window_of(reader, name, parts->stem);
    uint32_t metric = parts->metric_length ? names_add(reader->metrics, parts->metric, parts->metric_length) : METADATA;
    struct source *source = source_of(window, metric);
    char **path = parts->is_live ? &source->live : &source->sealed;
    char *given = path_of(directory, name, strlen(name), "");
    if (*path) {
        reader->counts.repeated += strcmp(*path, given) && metric != METADATA;
        free(given);
        return false;
    }
    *path = given;
    return true;
}

static bool name_is_ours(const char *name, struct parts *parts)
{
    struct spool_name parsed;
    return spool_name_parse(name, &parsed) && parsed.state != SPOOL_TEMPORARY && parts_of(name, parts);
}

/* Returns the number of new names, or a negative errno. *folders: how many are in it. */
static int directory_list(struct reader *reader, const char *path, uint64_t *folders)
{
    DIR *directory = opendir(path);
    if (!directory)
        return -errno;
    int new_names = 0;
    *folders = 0;
    errno = 0;
    for (struct dirent *entry; (entry = readdir(directory)); errno = 0) {
        struct parts parts;
        if (name_is_ours(entry->d_name, &parts))
            new_names += file_add(reader, path, entry->d_name, &parts);
        else
            *folders += entry->d_type == DT_DIR && entry->d_name[0] != '.';
    }
    int error = errno;
    closedir(directory);
    return error ? -error : new_names;
}

/* Until nothing new comes. Returns a negative errno, else 0 or more. */
static int directory_list_all(struct reader *reader, const char *path, uint64_t *folders)
{
    int found = 1;
    for (int listing = 0; found > 0 && listing < LISTINGS; listing++)
        found = directory_list(reader, path, folders);
    return found;
}

static void directory_add(struct reader *reader, const char *path)
{
    uint64_t folders = 0;
    int found = directory_list_all(reader, path, &folders);
    reader->counts.folders += folders;
    if (found < 0)
        fail(reader, path, -found);
    reader->directories = tool_grow(reader->directories, reader->directories_count, &reader->directories_room, sizeof *reader->directories);
    reader->directories[reader->directories_count++] = tool_copy(path, strlen(path));
}

static void directories_list_again(struct reader *reader)
{
    uint64_t folders;
    for (size_t at = 0; at < reader->directories_count; at++)
        directory_list_all(reader, reader->directories[at], &folders);
}

/* The metadata that belongs to a single file, where it lies beside it. */
static void metadata_add(struct reader *reader, const char *directory, const char *name, size_t stem)
{
    static const char *const ends[] = { ".json", ".json.live" };
    for (size_t at = 0; at < sizeof ends / sizeof *ends; at++) {
        char *path = path_of(directory, name, stem, ends[at]);
        struct parts parts;
        const char *base = path + (strlen(path) - stem - strlen(ends[at]));
        if (parts_of(base, &parts) && !access(path, F_OK))
            file_add(reader, directory, base, &parts);
        free(path);
    }
}

static void single_add(struct reader *reader, const char *path)
{
    const char *slash = strrchr(path, '/');
    const char *name = slash ? slash + 1 : path;
    char *directory = tool_copy(path, slash ? (size_t)(slash - path) + 1 : 0);
    struct parts parts;
    struct spool_name parsed;
    if (spool_name_parse(name, &parsed) && parsed.state == SPOOL_TEMPORARY) {
        reader->counts.unfinished++; /* a pattern of the shell's picked it up: what it will hold is in the live file */
    } else if (!parts_of(name, &parts)) {
        fail_saying(reader, path, "is neither a directory nor named NAME.METRIC.collapsed or NAME.json, with or without .live");
    } else {
        file_add(reader, directory, name, &parts);
        metadata_add(reader, directory, name, parts.stem);
    }
    free(directory);
}

/* A live file's sealed name, once it is gone. */
static char *sealed_name(const char *live)
{
    return tool_copy(live, strlen(live) - strlen(".live"));
}

void reader_filter(struct reader *reader, struct filter *filter)
{
    reader->filter = filter && filter_is_used(filter) ? filter : NULL;
}

const struct filter *reader_filtered(const struct reader *reader)
{
    return reader->filter;
}

void reader_add(struct reader *reader, const char *path)
{
    struct stat status;
    int error = stat(path, &status) ? errno : 0;
    size_t length = strlen(path);
    if (error == ENOENT && ends_with(path, &length, ".live")) {
        /* sealed between the shell's listing and ours */
        char *sealed = sealed_name(path);
        if (!stat(sealed, &status))
            single_add(reader, sealed);
        else
            fail(reader, path, error);
        free(sealed);
    } else if (error) {
        fail(reader, path, error);
    } else if (S_ISDIR(status.st_mode)) {
        directory_add(reader, path);
    } else if (S_ISREG(status.st_mode)) {
        single_add(reader, path);
    } else {
        fail_saying(reader, path, "is neither a file nor a directory");
    }
}

/* ---- opening -------------------------------------------------------------- */

static int open_regular(const char *path)
{
    int file = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY); /* O_NONBLOCK: a fifo of our name must not hold us */
    struct stat status;
    if (file < 0)
        return -errno;
    if (!fstat(file, &status) && S_ISREG(status.st_mode))
        return file;
    close(file);
    return -NOT_REGULAR;
}

/* Sealed first; then live; then sealed again, for the window may have been
 * sealed between the two. *path: what was opened or tried last. */
static int source_open(struct source *source, const char **path)
{
    int file = -ENOENT;
    if (source->sealed && (file = open_regular(*path = source->sealed)) != -ENOENT)
        return file;
    if (!source->live || (file = open_regular(*path = source->live)) != -ENOENT)
        return file;
    if (!source->sealed)
        source->sealed = sealed_name(source->live);
    return open_regular(*path = source->sealed);
}

/* Reads on until the buffer is full or the file ends. */
static ssize_t read_full(int file, char *buffer, size_t size)
{
    size_t have = 0;
    while (have < size) {
        ssize_t got = read(file, buffer + have, size - have);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return -errno;
        if (!got)
            break;
        have += (size_t)got;
    }
    return (ssize_t)have;
}

/* ---- metadata ------------------------------------------------------------- */

static json_t *metadata_parse(int file)
{
    struct stat status;
    if (fstat(file, &status) || status.st_size <= 0 || status.st_size > READER_METADATA_BYTES)
        return NULL;
    char *text = tool_alloc((size_t)status.st_size, 1);
    ssize_t length = read_full(file, text, (size_t)status.st_size);
    json_t *object = length > 0 ? json_loadb(text, (size_t)length, JSON_REJECT_DUPLICATES, NULL) : NULL;
    free(text);
    if (!json_is_object(object)) {
        json_decref(object);
        return NULL;
    }
    return object;
}

static void metadata_check(struct reader *reader, struct window *window, const char *path)
{
    json_int_t schema = json_integer_value(json_object_get(window->metadata, "schema"));
    if (schema <= SPOOL_SCHEMA)
        return;
    char what[128];
    snprintf(what, sizeof what, "has schema %lld, and this aprof reads schemas up to %d", (long long)schema, SPOOL_SCHEMA);
    fail_saying(reader, path, what);
    window->refused = true;
}

static void metadata_load(struct reader *reader, struct window *window)
{
    struct source *source = source_find(window, METADATA);
    const struct timespec pause = { 0, METADATA_PAUSE_NS };
    bool is_final = false; /* one that is sealed stays as it is */
    for (int try = 0; source && !window->metadata && !is_final && try < METADATA_TRIES; try++) {
        if (try)
            nanosleep(&pause, NULL);
        const char *path = "";
        int file = source_open(source, &path);
        if (file < 0) {
            if (file != -ENOENT)
                fail(reader, path, -file);
            return;
        }
        window->metadata = metadata_parse(file);
        close(file);
        is_final = path == source->sealed;
        if (window->metadata)
            metadata_check(reader, window, path);
    }
    window->shown.metadata = window->metadata;
}

static bool is_dead(const char *live_metadata)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    return spool_window_is_dead(AT_FDCWD, live_metadata, (uint64_t)now.tv_sec * 1000000 + (uint64_t)now.tv_nsec / 1000);
}

static enum reader_state state_of(struct window *window)
{
    struct source *metadata = source_find(window, METADATA);
    bool has_live = false;
    for (size_t at = 0; at < window->count; at++)
        has_live = has_live || (window->sources[at].live && !window->sources[at].sealed);
    if (!has_live)
        return READER_SEALED;
    return metadata && metadata->live && !is_dead(metadata->live) && !life_is_gone(window->metadata) ? READER_OPEN : READER_DEAD;
}

/* ---- order ---------------------------------------------------------------- */

#define COMPARE(one, other) ((one) < (other) ? -1 : (one) > (other))

static int process_compare(const struct reader_window *one, const struct reader_window *other)
{
    int order = COMPARE(one->start_us, other->start_us);
    if (!order)
        order = strcmp(one->host, other->host);
    return order ? order : COMPARE(one->pid, other->pid);
}

static int window_compare(const void *left, const void *right)
{
    const struct reader_window *one = &(*(struct window *const *)left)->shown, *other = &(*(struct window *const *)right)->shown;
    int order = process_compare(one, other);
    return order ? order : COMPARE(one->number, other->number);
}

static int metric_compare(const void *left, const void *right)
{
    return kind_compare(*(const char *const *)left, *(const char *const *)right);
}

static void windows_sort(struct reader *reader)
{
    if (reader->count)
        qsort(reader->windows, reader->count, sizeof *reader->windows, window_compare);
    for (size_t at = 0; at < reader->count; at++) {
        struct reader_window *shown = &reader->windows[at]->shown;
        if (!at || process_compare(shown, &reader->windows[at - 1]->shown))
            reader->processes++;
        shown->process = reader->processes - 1;
    }
}

static void metrics_sort(struct reader *reader)
{
    uint32_t count = names_count(reader->metrics);
    reader->metric_order = tool_alloc(count + 1, sizeof *reader->metric_order);
    reader->sums = tool_alloc(count, sizeof *reader->sums);
    for (uint32_t at = 0; at < count; at++)
        reader->metric_order[at] = names_text(reader->metrics, at, NULL);
    qsort(reader->metric_order, count, sizeof *reader->metric_order, metric_compare);
}

/* Sealed, or taken away, since it was listed. */
static bool is_away(const struct window *window)
{
    const struct source *metadata = source_find(window, METADATA);
    return window->shown.state == READER_DEAD && metadata && metadata->live && access(metadata->live, F_OK) && errno == ENOENT;
}

static void window_look(struct reader *reader, struct window *window)
{
    metadata_load(reader, window);
    window->shown.state = state_of(window);
}

/* May add windows behind it. */
static void window_open(struct reader *reader, struct window *window)
{
    window_look(reader, window);
    if (window->refused || !is_away(window) || reader->relistings++ >= LISTINGS)
        return;
    directories_list_again(reader);
    json_decref(window->metadata); /* it may say that the window is open */
    window->metadata = NULL;
    window_look(reader, window);
}

/* A stem's number tells its window until this is done. */
static void refused_remove(struct reader *reader)
{
    size_t kept = 0;
    for (size_t at = 0; at < reader->count; at++) {
        if (reader->windows[at]->refused)
            window_free(reader->windows[at]);
        else
            reader->windows[kept++] = reader->windows[at];
    }
    reader->count = kept;
}

void reader_open(struct reader *reader)
{
    for (size_t at = 0; at < reader->count; at++)
        window_open(reader, reader->windows[at]);
    refused_remove(reader);
    windows_sort(reader);
    metrics_sort(reader);
    if (reader->failures > COMPLAINTS)
        tool_complain("%u more could not be read", reader->failures - COMPLAINTS);
}

uint32_t reader_windows(const struct reader *reader)
{
    return (uint32_t)reader->count;
}

const struct reader_window *reader_window(const struct reader *reader, uint32_t index)
{
    return &reader->windows[index]->shown;
}

uint32_t reader_processes(const struct reader *reader)
{
    return reader->processes;
}

const char *reader_metric(const struct reader *reader, uint32_t index)
{
    return index < names_count(reader->metrics) ? reader->metric_order[index] : NULL;
}

/* ---- stacks --------------------------------------------------------------- */

/* One file on its way through the buffer: [start, end) is not yet taken. */
struct stream {
    int file;
    char *buffer;
    size_t room, start, end;
    bool skipping; /* skipping: inside a line that is too long for one */
};

static bool line_parse(const char *text, size_t length, struct reader_line *line)
{
    line->stack = text;
    return spool_line_parse(text, length, &line->length, &line->count) && !memchr(text, '\0', line->length);
}

/* Moves what is left to the front and reads more behind it. Returns 0 at the
 * end of the file, a negative errno, or 1. */
static int stream_fill(struct stream *stream)
{
    size_t left = stream->end - stream->start;
    memmove(stream->buffer, stream->buffer + stream->start, left);
    stream->start = 0;
    stream->end = left;
    if (left == stream->room) {
        char *larger = tool_alloc(stream->room * 2, 1);
        memcpy(larger, stream->buffer, left);
        free(stream->buffer);
        stream->buffer = larger;
        stream->room *= 2;
    }
    ssize_t got = read_full(stream->file, stream->buffer + left, stream->room - left);
    if (got < 0)
        return (int)got;
    stream->end += (size_t)got;
    progress_add((uint64_t)got);
    return got > 0;
}

/* The next whole line without its newline; NULL at the end or on *error. What
 * was searched for a newline once is not searched again. */
static const char *stream_line(struct stream *stream, size_t *length, int *error)
{
    size_t searched = stream->start;
    for (;;) {
        char *newline = memchr(stream->buffer + searched, '\n', stream->end - searched);
        if (newline) {
            const char *line = stream->buffer + stream->start;
            *length = stream->skipping ? 0 : (size_t)(newline - line);
            stream->start = (size_t)(newline - stream->buffer) + 1;
            stream->skipping = false;
            return line;
        }
        if (stream->end - stream->start > LINE_BYTES) {
            stream->skipping = true;
            stream->start = stream->end;
        }
        searched = stream->end - stream->start;
        int got = stream_fill(stream);
        if (got <= 0) {
            *error = -got;
            return NULL;
        }
    }
}

struct walk {
    struct reader *reader;
    struct reader_line line;
    int (*call)(void *context, const struct reader_line *line);
    void *context;
    char *buffer; /* shared by all files of a walk */
    size_t room;
    uint64_t left; /* that the metric's sum can grow by */
};

static int stream_walk(struct walk *walk, struct stream *stream, const char *path)
{
    struct reader_counts *counts = &walk->reader->counts;
    struct filter *filter = walk->reader->filter;
    uint64_t good = 0, bad = 0, beyond = 0;
    int result = 0, error = 0;
    size_t length;
    const char *text;
    while (!result && (text = stream_line(stream, &length, &error))) {
        if (!line_parse(text, length, &walk->line)) {
            bad++;
            continue;
        }
        if (walk->line.count > walk->left) {
            beyond++;
            continue;
        }
        walk->left -= walk->line.count;
        good++;
        if (!filter || filter_stack(filter, &walk->line.stack, &walk->line.length, walk->line.count))
            result = walk->call(walk->context, &walk->line);
    }
    counts->lines += good;
    counts->lines_bad += bad + beyond;
    counts->tails += !result && stream->end > stream->start;
    if (error)
        fail(walk->reader, path, error);
    else if (bad && !good && !beyond)
        fail_saying(walk->reader, path, "has no line that is a stack and a count");
    return result;
}

/* No sum of a metric passes 63 bits, however often and in what pieces it is walked: what
 * a file had once it has again. */
static void left_begin(struct walk *walk, const struct source *source)
{
    walk->left = INT64_MAX - (walk->reader->sums[source->metric] - source->taken);
}

static void left_end(struct walk *walk, struct source *source)
{
    uint64_t *sum = &walk->reader->sums[source->metric], taken = INT64_MAX - (*sum - source->taken) - walk->left;
    if (taken <= source->taken)
        return;
    *sum += taken - source->taken;
    source->taken = taken;
}

static int source_walk(struct walk *walk, struct source *source)
{
    const char *path = "";
    int file = source_open(source, &path);
    if (file == -ENOENT) {
        walk->reader->counts.gone++;
        return 0;
    }
    if (file < 0) {
        fail(walk->reader, path, -file);
        return 0;
    }
    walk->reader->counts.files++;
    struct stream stream = { .file = file, .buffer = walk->buffer, .room = walk->room };
    left_begin(walk, source);
    int result = stream_walk(walk, &stream, path);
    left_end(walk, source);
    walk->buffer = stream.buffer;
    walk->room = stream.room;
    close(file);
    return result;
}

/* Whether a later window of the same process has this metric too. */
static bool is_overtaken(const struct reader *reader, size_t at, uint32_t metric)
{
    uint32_t process = reader->windows[at]->shown.process;
    while (++at < reader->count && reader->windows[at]->shown.process == process)
        if (source_find(reader->windows[at], metric))
            return true;
    return false;
}

/* Its file in that window; NULL when there is none, or it is a level that a later
 * window says again. */
static struct source *source_to_read(const struct reader *reader, size_t at, const char *metric, uint32_t number)
{
    struct source *source = number == NAMES_NONE ? NULL : source_find(reader->windows[at], number);
    return source && kind_of(metric)->is_level && is_overtaken(reader, at, number) ? NULL : source;
}

static int windows_walk(struct reader *reader, size_t from, size_t to, struct walk *walk)
{
    uint32_t number = names_find(reader->metrics, walk->line.metric, strlen(walk->line.metric));
    int result = 0;
    walk->reader = reader;
    walk->room = READ_BYTES;
    walk->buffer = tool_alloc(walk->room, 1);
    for (size_t at = from; !result && at < to; at++) {
        struct source *source = source_to_read(reader, at, walk->line.metric, number);
        walk->line.window = &reader->windows[at]->shown;
        if (source)
            result = source_walk(walk, source);
    }
    free(walk->buffer);
    return result;
}

int reader_each(struct reader *reader, const char *metric, int (*line)(void *context, const struct reader_line *line),
                void *context)
{
    struct walk walk = { .line.metric = metric, .call = line, .context = context };
    return windows_walk(reader, 0, reader->count, &walk);
}

int reader_window_each(struct reader *reader, uint32_t index, const char *metric,
                       int (*line)(void *context, const struct reader_line *line), void *context)
{
    struct walk walk = { .line.metric = metric, .call = line, .context = context };
    return windows_walk(reader, index, index + 1, &walk);
}

bool reader_window_has(const struct reader *reader, uint32_t index, const char *metric)
{
    return source_to_read(reader, index, metric, names_find(reader->metrics, metric, strlen(metric)));
}

static uint64_t source_bytes(const struct source *source)
{
    struct stat status;
    bool found = (source->sealed && !stat(source->sealed, &status)) || (source->live && !stat(source->live, &status));
    return found ? (uint64_t)status.st_size : 0;
}

uint64_t reader_bytes(const struct reader *reader, const char *metric)
{
    uint32_t number = names_find(reader->metrics, metric, strlen(metric));
    uint64_t bytes = 0;
    for (size_t at = 0; at < reader->count; at++) {
        const struct source *source = source_to_read(reader, at, metric, number);
        bytes += source ? source_bytes(source) : 0;
    }
    return bytes;
}

uint32_t reader_failures(const struct reader *reader)
{
    return reader->failures;
}

const struct reader_counts *reader_counts(const struct reader *reader)
{
    return &reader->counts;
}
