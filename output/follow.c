/* SPDX-License-Identifier: MIT
 *
 * A window is sealed in this order: its successor is opened, its sealed files are
 * renamed, the metadata last, then its live files go. So where its sealed metadata
 * stands, its sealed stacks are whole; where it does not, its live ones still are.
 * What a dead process left open is as good as sealed.
 */
#include "output/follow.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "output/frames.h"
#include "output/kind.h"
#include "output/life.h"
#include "output/listing.h"
#include "output/names.h"
#include "output/tool.h"

#define FUNCTIONS_MOST 200000u
#define FILE_MOST (256u << 20) /* bytes of one that is read */
#define METADATA_MOST (8u << 20)
#define WINDOWS_MOST 1000u     /* of one process between two looks */
#define METRICS_MOST 32u

struct counts {
    uint64_t self, total;
};

/* Of one function. */
struct sums {
    struct counts closed, open, before; /* of sealed windows, of open ones, of both at the look before */
    struct counts now;
    uint64_t seen;                      /* number of the last stack that counted its total */
};

struct followed {
    struct follow_process shown;
    uint64_t next;    /* windows before this one are over, and in the sums or left out */
    bool is_fresh;    /* was not known before this look */
    bool is_listed;   /* in this look */
    bool is_dead;     /* it left live files, all in the sums */
    uint64_t newest;  /* window that has live metadata, in this look ... */
    bool has_live;    /* ... if there is one */
    json_int_t schema;
};

struct follow {
    char *path;
    char metric[SPOOL_METRIC_MAX + 1];
    bool is_chosen;
    struct spool_name process; /* the only one, if is_chosen */
    struct followed *processes;    /* by their numbers in known */
    struct names *known;
    struct names *left_out;        /* in this look; NULL: none */
    struct follow_process *shown;
    size_t count, room, most;
    uint64_t forgotten_us;         /* the last of those that were forgotten began then */
    struct frames *frames;
    struct sums *sums;
    size_t sums_room;
    struct follow_row *rows;
    char metrics[METRICS_MOST][SPOOL_METRIC_MAX + 1];
    size_t metrics_count;
    uint64_t stacks, sum, sum_now, began_us, looked_us, span_us;
    bool is_anew;
    int unread;  /* errno of a file that could not be read in this look */
    int64_t newer; /* schema of what is not read: this program does not know it */
};

static uint64_t now_us(void)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    return (uint64_t)now.tv_sec * 1000000 + (uint64_t)now.tv_nsec / 1000;
}

/* ---- life ---- */

static void sums_clear(struct follow *follow)
{
    frames_free(follow->frames);
    free(follow->sums);
    follow->frames = frames_new(false);
    follow->sums = NULL;
    follow->sums_room = 0;
    follow->stacks = follow->sum = follow->sum_now = 0;
}

static void begin_anew(struct follow *follow)
{
    for (size_t at = 0; at < follow->count; at++)
        free(follow->processes[at].shown.program);
    names_free(follow->known);
    follow->known = names_new();
    follow->count = 0;
    follow->forgotten_us = 0;
    follow->is_anew = true;
    follow->began_us = now_us();
    sums_clear(follow);
}

struct follow *follow_new(const char *path, const char *metric)
{
    struct follow *follow = tool_alloc(1, sizeof *follow);
    follow->path = tool_copy(path, strlen(path));
    follow->most = FOLLOW_PROCESSES_MOST;
    if (metric)
        snprintf(follow->metric, sizeof follow->metric, "%s", metric);
    begin_anew(follow);
    return follow;
}

void follow_free(struct follow *follow)
{
    begin_anew(follow);
    frames_free(follow->frames);
    names_free(follow->known);
    names_free(follow->left_out);
    free(follow->processes);
    free(follow->shown);
    free(follow->rows);
    free(follow->path);
    free(follow);
}

void follow_bound(struct follow *follow, size_t processes)
{
    follow->most = processes;
}

void follow_choose_metric(struct follow *follow, const char *metric)
{
    snprintf(follow->metric, sizeof follow->metric, "%s", metric);
    begin_anew(follow);
}

void follow_choose_process(struct follow *follow, const struct spool_name *process)
{
    follow->is_chosen = process != NULL;
    if (process)
        follow->process = *process;
    begin_anew(follow);
}

/* ---- what is there ---- */

/* What names a process, whatever the window. Returns its length. */
static size_t key_of(const struct spool_name *name, char key[sizeof name->host + 2 * sizeof(uint64_t)])
{
    size_t length = strlen(name->host);
    memcpy(key, &name->pid, sizeof name->pid);
    memcpy(key + sizeof name->pid, &name->start_us, sizeof name->start_us);
    memcpy(key + 2 * sizeof(uint64_t), name->host, length);
    return 2 * sizeof(uint64_t) + length;
}

static struct followed *process_find(const struct follow *follow, const struct spool_name *name)
{
    char key[sizeof name->host + 2 * sizeof(uint64_t)];
    uint32_t number = names_find(follow->known, key, key_of(name, key));
    return number == NAMES_NONE ? NULL : &follow->processes[number];
}

static void process_leave_out(struct follow *follow, const struct spool_name *name)
{
    char key[sizeof name->host + 2 * sizeof(uint64_t)];
    if (!follow->left_out)
        follow->left_out = names_new();
    names_add(follow->left_out, key, key_of(name, key));
}

/* False: it is left out. */
static bool process_make(struct follow *follow, const struct spool_name *name, uint64_t next)
{
    char key[sizeof name->host + 2 * sizeof(uint64_t)];
    if (follow->count >= follow->most) {
        process_leave_out(follow, name);
        return false;
    }
    follow->processes = tool_grow(follow->processes, follow->count, &follow->room, sizeof *follow->processes);
    follow->processes[follow->count++] = (struct followed){ .shown = { .name = *name, .program = tool_copy("", 0), .lives = true }, .next = next, .is_fresh = true };
    names_add(follow->known, key, key_of(name, key));
    return true;
}

/* Those of which nothing lives and nothing open is left. Their sealed windows may still
 * lie there: whoever began as early as they did is not new any more. */
static void ended_forget(struct follow *follow)
{
    struct followed *processes = follow->processes;
    size_t count = follow->count;
    names_free(follow->known);
    follow->known = names_new();
    follow->count = 0;
    for (size_t at = 0; at < count; at++) {
        char key[sizeof processes->shown.name.host + 2 * sizeof(uint64_t)];
        struct followed *process = &processes[at];
        if (process->has_live || process->shown.lives) {
            processes[follow->count++] = *process;
            names_add(follow->known, key, key_of(&process->shown.name, key));
            continue;
        }
        if (process->shown.name.start_us > follow->forgotten_us)
            follow->forgotten_us = process->shown.name.start_us;
        free(process->shown.program);
    }
}

static void metric_note(struct follow *follow, const char *metric)
{
    size_t at = 0;
    while (at < follow->metrics_count && kind_compare(follow->metrics[at], metric) < 0)
        at++;
    bool is_known = at < follow->metrics_count && !strcmp(follow->metrics[at], metric);
    if (is_known || follow->metrics_count == METRICS_MOST || kind_of(metric)->is_level)
        return;
    memmove(follow->metrics[at + 1], follow->metrics[at], (follow->metrics_count++ - at) * sizeof follow->metrics[0]);
    strcpy(follow->metrics[at], metric);
}

/* One that began after us is followed from its first window on, the others from the one that is open. */
static void process_note(struct follow *follow, const struct spool_name *name)
{
    bool is_new = name->start_us >= follow->began_us && name->start_us > follow->forgotten_us;
    struct followed *process = process_find(follow, name);
    if (!process && name->state != SPOOL_LIVE && !is_new)
        return;
    if (!process && !process_make(follow, name, is_new ? 0 : name->seq))
        return;
    process = process ? process : &follow->processes[follow->count - 1];
    if (!process->is_listed || name->seq > process->newest)
        process->newest = name->seq;
    if (name->state == SPOOL_LIVE && process->is_fresh && process->next > name->seq)
        process->next = name->seq;
    process->has_live |= name->state == SPOOL_LIVE;
    process->is_listed = true;
}

static void name_note(struct follow *follow, const char *text)
{
    struct spool_name name;
    if (!spool_name_parse(text, &name) || name.state == SPOOL_TEMPORARY || (follow->is_chosen && listing_compare(&name, &follow->process)))
        return;
    if (!name.metric[0])
        process_note(follow, &name);
    else if (name.state == SPOOL_LIVE)
        metric_note(follow, name.metric);
}

static void list(struct follow *follow, DIR *directory)
{
    for (size_t at = 0; at < follow->count; at++)
        follow->processes[at].is_fresh = follow->processes[at].is_listed = follow->processes[at].has_live = false;
    for (struct dirent *entry; (entry = readdir(directory));)
        name_note(follow, entry->d_name);
    if (!follow->metric[0] && follow->metrics_count)
        strcpy(follow->metric, follow->metrics[0]);
}

/* ---- stacks ---- */

static struct sums *sums_of(struct follow *follow, const char *text, size_t length)
{
    uint32_t known = frames_count(follow->frames), number = frames_add(follow->frames, text, length);
    if (number == known)
        follow->sums = tool_grow(follow->sums, number, &follow->sums_room, sizeof *follow->sums);
    return &follow->sums[number];
}

static void take_stack(struct follow *follow, const char *stack, size_t length, uint64_t count, bool is_open)
{
    const char *end = stack + length;
    struct counts *counts = NULL;
    follow->stacks++;
    for (const char *frame = stack, *next; frame <= end; frame = next + 1) {
        next = memchr(frame, ';', (size_t)(end - frame));
        next = next ? next : end;
        struct sums *sums = sums_of(follow, frame, (size_t)(next - frame));
        counts = is_open ? &sums->open : &sums->closed;
        if (sums->seen != follow->stacks)
            counts->total += count;
        sums->seen = follow->stacks;
    }
    if (counts)
        counts->self += count;
}

static int open_regular(int directory, const char *name, uint64_t most)
{
    int file = openat(directory, name, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    struct stat status;
    if (file >= 0 && !fstat(file, &status) && S_ISREG(status.st_mode) && (uint64_t)status.st_size <= most)
        return file;
    if (file >= 0) {
        close(file);
        errno = EINVAL;
    }
    return -1;
}

/* Up to its last newline. False: there is no such file. */
static bool read_stacks(struct follow *follow, int directory, const char *name, bool is_open)
{
    int descriptor = open_regular(directory, name, FILE_MOST);
    FILE *file = descriptor < 0 ? NULL : fdopen(descriptor, "r");
    char *line = NULL;
    size_t room = 0, length;
    uint64_t count;
    if (!file) {
        follow->unread = errno == ENOENT ? follow->unread : errno;
        return false;
    }
    for (ssize_t got; (got = getline(&line, &room, file)) > 0 && line[got - 1] == '\n';)
        if (spool_line_parse(line, (size_t)got - 1, &length, &count) && !memchr(line, '\0', length))
            take_stack(follow, line, length, count, is_open);
    free(line);
    fclose(file);
    return true;
}

static void file_name(const struct spool_name *process, uint64_t seq, const char *metric, enum spool_state state, char *text)
{
    struct spool_name name = *process;
    name.seq = seq;
    name.state = state;
    snprintf(name.metric, sizeof name.metric, "%s", metric);
    spool_name_format(&name, text, SPOOL_NAME_MAX + 1);
}

static bool is_sealed(const struct spool_name *process, uint64_t seq, int directory)
{
    char name[SPOOL_NAME_MAX + 1];
    file_name(process, seq, "", SPOOL_SEALED, name);
    return !faccessat(directory, name, F_OK, 0);
}

enum window { WINDOW_OPEN, WINDOW_OVER, WINDOW_NONE };

/* One that is over goes to the sums, unless one before it is open still (is_first
 * says). One that is sealed while we look comes at the next look. */
static enum window read_window(struct follow *follow, const struct followed *process, uint64_t seq, int directory, bool is_first)
{
    char name[SPOOL_NAME_MAX + 1];
    const struct spool_name *owner = &process->shown.name;
    bool sealed = is_sealed(owner, seq, directory), over = sealed || process->is_dead;
    file_name(owner, seq, follow->metric, sealed ? SPOOL_SEALED : SPOOL_LIVE, name);
    bool read = read_stacks(follow, directory, name, !(over && is_first));
    if (over)
        return WINDOW_OVER;
    return read || is_sealed(owner, seq, directory) ? WINDOW_OPEN : WINDOW_NONE;
}

static void process_renew(struct followed *process)
{
    struct spool_name *name = &process->shown.name;
    if (process->is_listed && process->newest > name->seq)
        name->seq = process->newest;
}

/* From the first that was not over at the look before. */
static void read_windows(struct follow *follow, struct followed *process, int directory)
{
    uint64_t newest = process->shown.name.seq;
    if (newest > process->next + WINDOWS_MOST)
        process->next = newest - WINDOWS_MOST;
    for (uint64_t seq = process->next; seq <= newest; seq++) {
        bool is_first = seq == process->next;
        enum window window = read_window(follow, process, seq, directory, is_first);
        if (is_first && (window == WINDOW_OVER || (window == WINDOW_NONE && seq < newest)))
            process->next = seq + 1;
    }
}

/* ---- metadata ---- */

static json_t *metadata_read(int directory, const struct spool_name *process)
{
    char name[SPOOL_NAME_MAX + 1];
    file_name(process, process->seq, "", SPOOL_LIVE, name);
    int descriptor = open_regular(directory, name, METADATA_MOST);
    FILE *file = descriptor < 0 ? NULL : fdopen(descriptor, "r");
    json_t *metadata = file ? json_loadf(file, JSON_DISABLE_EOF_CHECK, NULL) : NULL;
    if (file)
        fclose(file);
    return metadata;
}

static void process_describe(struct followed *process, int directory)
{
    struct follow_process *shown = &process->shown;
    char name[SPOOL_NAME_MAX + 1];
    shown->lives = shown->lives && process->has_live;
    if (!process->has_live)
        return;
    file_name(&shown->name, shown->name.seq, "", SPOOL_LIVE, name);
    shown->lives = !spool_window_is_dead(directory, name, now_us());
    json_t *metadata = metadata_read(directory, &shown->name);
    const char *program = json_string_value(json_object_get(metadata, "program"));
    process->schema = metadata ? json_integer_value(json_object_get(metadata, "schema")) : process->schema;
    json_int_t began = json_integer_value(json_object_get(metadata, "start_us")), until = json_integer_value(json_object_get(metadata, "end_us"));
    shown->lives = shown->lives && !life_is_gone(metadata);
    process->is_dead = metadata && !shown->lives; /* none: it is sealed just now */
    shown->window_us = began > 0 && until > began ? (uint64_t)(until - began) : 0;
    if (program) {
        free(shown->program);
        shown->program = tool_copy(program, strlen(program));
    }
    json_decref(metadata);
}

/* ---- a look ---- */

static void counts_update(struct counts *now, struct counts *before, uint64_t self, uint64_t total)
{
    *now = (struct counts){ self > before->self ? self - before->self : 0, total > before->total ? total - before->total : 0 };
    *before = (struct counts){ self, total };
}

static void sums_update(struct follow *follow)
{
    follow->sum = follow->sum_now = 0;
    for (uint32_t at = 0; at < frames_count(follow->frames); at++) {
        struct sums *sums = &follow->sums[at];
        counts_update(&sums->now, &sums->before, sums->closed.self + sums->open.self, sums->closed.total + sums->open.total);
        follow->sum += sums->before.self;
        follow->sum_now += sums->now.self;
    }
}

static void span_update(struct follow *follow)
{
    uint64_t now = now_us(), oldest = 0;
    for (size_t at = 0; at < follow->count; at++)
        if (follow->processes[at].shown.window_us > oldest)
            oldest = follow->processes[at].shown.window_us;
    follow->span_us = follow->is_anew ? oldest : now - follow->looked_us;
    follow->looked_us = now;
    follow->is_anew = false;
}

/* A dead one that opened no other window since: there is nothing to read again. */
static bool is_settled(const struct followed *process)
{
    return process->is_dead && process->shown.name.seq < process->next;
}

static void processes_look(struct follow *follow, int directory)
{
    for (size_t at = 0; at < follow->count; at++) {
        struct followed *process = &follow->processes[at];
        process_renew(process);
        if (!is_settled(process))
            process_describe(process, directory);
        if (process->schema > SPOOL_SCHEMA)
            follow->newer = process->schema;
        else if (!is_settled(process))
            read_windows(follow, process, directory);
    }
}

static int by_start(const void *left, const void *right)
{
    return listing_compare(&((const struct follow_process *)left)->name, &((const struct follow_process *)right)->name);
}

static void processes_show(struct follow *follow)
{
    free(follow->shown);
    follow->shown = tool_alloc(follow->count, sizeof *follow->shown);
    for (size_t at = 0; at < follow->count; at++)
        follow->shown[at] = follow->processes[at].shown;
    if (follow->count)
        qsort(follow->shown, follow->count, sizeof *follow->shown, by_start);
}

int follow_look(struct follow *follow)
{
    DIR *directory = opendir(follow->path);
    if (!directory)
        return -errno;
    if (frames_count(follow->frames) > FUNCTIONS_MOST)
        begin_anew(follow);
    if (follow->count >= follow->most)
        ended_forget(follow);
    names_free(follow->left_out);
    follow->left_out = NULL;
    for (uint32_t at = 0; at < frames_count(follow->frames); at++)
        follow->sums[at].open = (struct counts){ 0 };
    follow->unread = 0;
    follow->newer = 0;
    list(follow, directory);
    processes_look(follow, dirfd(directory));
    closedir(directory);
    sums_update(follow);
    span_update(follow);
    processes_show(follow);
    return 0;
}

/* ---- what is known ---- */

int follow_unread(const struct follow *follow)
{
    return follow->unread;
}

int64_t follow_newer(const struct follow *follow)
{
    return follow->newer;
}

size_t follow_left_out(const struct follow *follow)
{
    return follow->left_out ? names_count(follow->left_out) : 0;
}

uint64_t follow_span_us(const struct follow *follow)
{
    return follow->span_us;
}

uint64_t follow_sum(const struct follow *follow)
{
    return follow->sum;
}

uint64_t follow_sum_now(const struct follow *follow)
{
    return follow->sum_now;
}

size_t follow_rows(struct follow *follow, const struct follow_row **rows)
{
    size_t count = 0;
    free(follow->rows);
    follow->rows = tool_alloc(frames_count(follow->frames), sizeof *follow->rows);
    for (uint32_t at = 0; at < frames_count(follow->frames); at++) {
        const struct sums *sums = &follow->sums[at];
        struct frame_text text = frames_text(follow->frames, at);
        if (sums->before.total)
            follow->rows[count++] = (struct follow_row){ text.name, text.place, sums->before.self, sums->before.total, sums->now.self, sums->now.total };
    }
    *rows = follow->rows;
    return count;
}

size_t follow_processes(const struct follow *follow, const struct follow_process **processes)
{
    *processes = follow->shown;
    return follow->count;
}

const char *follow_metric(const struct follow *follow, size_t index)
{
    return index < follow->metrics_count ? follow->metrics[index] : NULL;
}

const char *follow_chosen(const struct follow *follow)
{
    return follow->metric[0] ? follow->metric : NULL;
}
