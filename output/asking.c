/* SPDX-License-Identifier: MIT
 *
 * Whoever finds a request of another one waits for the answer to that. What is
 * found in the directory may have been put there by anybody: nothing is followed,
 * opened that is no file, or believed of another user.
 */
#include "output/asking.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "output/life.h"
#include "output/tool.h"

#define PAUSE_NS 20000000     /* between two looks */
#define LIVES_EVERY 25        /* looks between two at whether those that have not answered live still */
#define STALE_NS 10000000000u /* a request of ours so old is nobody's any more */
#define METADATA_MOST (8u << 20)
#define ANSWER_MOST (64u << 20)
#define SECOND 1000000000u

static uint64_t now_ns(clockid_t clock)
{
    struct timespec now;
    clock_gettime(clock, &now);
    return (uint64_t)now.tv_sec * SECOND + (uint64_t)now.tv_nsec;
}

static uint64_t changed_of(const struct stat *status)
{
    return (uint64_t)status->st_mtim.tv_sec * SECOND + (uint64_t)status->st_mtim.tv_nsec;
}

/* ---- files ---- */

/* A regular file's bytes and a NUL; NULL: none, or too large. The caller frees it. */
static char *file_read(int directory, const char *name, size_t most, struct stat *status, size_t *length)
{
    int file = openat(directory, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    char *text = NULL;
    *length = 0;
    if (file < 0)
        return NULL;
    if (!fstat(file, status) && S_ISREG(status->st_mode) && (uint64_t)status->st_size <= most) {
        text = tool_alloc((size_t)status->st_size + 1, 1);
        for (ssize_t got; *length < (size_t)status->st_size; *length += (size_t)got)
            if ((got = read(file, text + *length, (size_t)status->st_size - *length)) <= 0)
                break;
    }
    close(file);
    return text;
}

/* ---- processes ---- */

static void metadata_read(const struct asking *asking, struct asked *asked)
{
    char name[SPOOL_NAME_MAX + 1];
    struct stat status;
    size_t length;
    spool_name_format(&asked->name, name, sizeof name);
    char *text = file_read(asking->directory, name, METADATA_MOST, &status, &length);
    if (!text)
        return;
    json_t *metadata = json_loadb(text, length, JSON_REJECT_DUPLICATES, NULL); /* it may be half renewed */
    free(text);
    asked->uid = status.st_uid;
    asked->changed_ns = changed_of(&status);
    if (!json_is_object(metadata)) {
        json_decref(metadata);
        return;
    }
    json_decref(asked->metadata);
    asked->metadata = metadata;
}

static bool is_dead(const struct asking *asking, const struct asked *asked)
{
    char name[SPOOL_NAME_MAX + 1];
    spool_name_format(&asked->name, name, sizeof name);
    return spool_window_is_dead(asking->directory, name, now_ns(CLOCK_REALTIME) / 1000) || life_is_gone(asked->metadata);
}

static bool is_same_process(const struct spool_name *one, const struct spool_name *other)
{
    return one->pid == other->pid && one->start_us == other->start_us && !strcmp(one->host, other->host);
}

static struct asked *process_find(const struct asking *asking, const struct spool_name *name)
{
    for (size_t at = 0; at < asking->count; at++)
        if (is_same_process(&asking->processes[at].name, name))
            return &asking->processes[at];
    return NULL;
}

/* Of several windows the last one is open. */
static void process_add(struct asking *asking, const struct spool_name *name)
{
    struct asked *asked = process_find(asking, name);
    if (asked) {
        if (name->seq > asked->name.seq)
            asked->name = *name;
        return;
    }
    asking->processes = tool_grow(asking->processes, asking->count, &asking->room, sizeof *asking->processes);
    asking->processes[asking->count++].name = *name;
}

static int by_start(const void *left, const void *right)
{
    const struct spool_name *one = &((const struct asked *)left)->name, *other = &((const struct asked *)right)->name;
    if (one->start_us != other->start_us)
        return one->start_us < other->start_us ? -1 : 1;
    return one->pid < other->pid ? -1 : one->pid > other->pid;
}

static void processes_list(struct asking *asking, DIR *directory, uint64_t pid)
{
    rewinddir(directory);
    for (struct dirent *entry; (entry = readdir(directory));) {
        struct spool_name name;
        if (spool_name_parse(entry->d_name, &name) && name.state == SPOOL_LIVE && !name.metric[0] && (!pid || name.pid == pid))
            process_add(asking, &name);
    }
}

/* A window that is sealed while we look takes its file away: another look finds the next. */
static bool processes_read(struct asking *asking)
{
    bool all_live = true;
    for (size_t at = 0; at < asking->count; at++) {
        struct asked *asked = &asking->processes[at];
        metadata_read(asking, asked);
        asked->is_dead = is_dead(asking, asked);
        all_live = all_live && !asked->is_dead;
    }
    return all_live;
}

static void complain_of_directory(const char *path, uint64_t pid, int error)
{
    if (error == EACCES || error == EPERM)
        tool_complain("%s: %s (as uid %u)", path, strerror(error), (unsigned)geteuid());
    else
        tool_complain("%s: %s%s", path, strerror(error), pid ? " (--dir or APROF_DIR names the spool of the process)" : "");
}

bool asking_begin(struct asking *asking, const char *path, uint64_t pid)
{
    DIR *directory = opendir(path);
    *asking = (struct asking){ .path = path, .directory = -1 };
    if (!directory) {
        complain_of_directory(path, pid, errno);
        return false;
    }
    asking->directory = fcntl(dirfd(directory), F_DUPFD_CLOEXEC, 0);
    processes_list(asking, directory, pid);
    if (!processes_read(asking)) {
        processes_list(asking, directory, pid);
        processes_read(asking);
    }
    closedir(directory);
    if (asking->count)
        qsort(asking->processes, asking->count, sizeof *asking->processes, by_start);
    return true;
}

/* ---- the request ---- */

static void name_of(const struct asked *asked, enum spool_dump which, char *name)
{
    spool_dump_format(&asked->name, which, name, SPOOL_NAME_MAX + 1);
}

static void request_note(struct asked *asked, const struct stat *status)
{
    snprintf(asked->request, sizeof asked->request, "%" PRIu64 ".%" PRIu64, (uint64_t)status->st_ino, changed_of(status));
}

static bool is_stale(const struct stat *status)
{
    uint64_t now = now_ns(CLOCK_REALTIME), changed = changed_of(status);
    return status->st_uid == geteuid() && now > changed && now - changed > STALE_NS;
}

static bool request_is_there(const struct asking *asking, const struct asked *asked)
{
    char name[SPOOL_NAME_MAX + 1];
    struct stat status;
    struct asked found = { 0 };
    name_of(asked, SPOOL_DUMP_ASK, name);
    if (fstatat(asking->directory, name, &status, AT_SYMLINK_NOFOLLOW))
        return false;
    request_note(&found, &status);
    return !strcmp(found.request, asked->request);
}

static bool may_stand(const struct asked *asked, const struct stat *status)
{
    return S_ISREG(status->st_mode) && status->st_size == 0 && (status->st_uid == 0 || status->st_uid == asked->uid);
}

/* One of another one is as good; one that was left is made anew. */
static void request_make(const struct asking *asking, struct asked *asked)
{
    char name[SPOOL_NAME_MAX + 1];
    struct stat status;
    name_of(asked, SPOOL_DUMP_ASK, name);
    asked->request[0] = '\0';
    asked->is_ours = false;
    if (!fstatat(asking->directory, name, &status, AT_SYMLINK_NOFOLLOW)) {
        if (may_stand(asked, &status) && !is_stale(&status)) {
            request_note(asked, &status);
            return;
        }
        unlinkat(asking->directory, name, 0);
    }
    int file = openat(asking->directory, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (file < 0)
        return;
    asked->is_ours = !fstat(file, &status);
    if (asked->is_ours)
        request_note(asked, &status);
    close(file);
    name_of(asked, SPOOL_DUMP_ANSWER, name);
    unlinkat(asking->directory, name, 0); /* to a request of before */
}

/* ---- the answer ---- */

static bool answer_read(const struct asking *asking, struct asked *asked)
{
    char name[SPOOL_NAME_MAX + 1];
    struct stat status;
    size_t length;
    name_of(asked, SPOOL_DUMP_ANSWER, name);
    char *text = file_read(asking->directory, name, ANSWER_MOST, &status, &length);
    if (!text)
        return false;
    if (status.st_uid != asked->uid || !dumped_parse(&asked->dumped, text, length) || strcmp(asked->dumped.request, asked->request)) {
        if (asked->dumped.text != text)
            free(text);
        dumped_free(&asked->dumped);
        return false;
    }
    if (asked->is_ours)
        unlinkat(asking->directory, name, 0);
    return true;
}

static void request_end(const struct asking *asking, const struct asked *asked)
{
    char name[SPOOL_NAME_MAX + 1];
    name_of(asked, SPOOL_DUMP_ASK, name);
    if (asked->is_ours && request_is_there(asking, asked))
        unlinkat(asking->directory, name, 0);
}

static bool may_ask(const struct asked *asked)
{
    return !asked->is_dead && (geteuid() == 0 || geteuid() == asked->uid);
}

/* One look; true: nothing more is to come. */
static bool attend(const struct asking *asking, struct asked *asked)
{
    if (asked->has_answer || !may_ask(asked))
        return true;
    bool was_there = request_is_there(asking, asked);
    asked->has_answer = asked->request[0] && answer_read(asking, asked);
    if (!asked->has_answer && !was_there)
        request_make(asking, asked);
    return asked->has_answer;
}

static bool attend_all(const struct asking *asking)
{
    bool done = true;
    for (size_t at = 0; at < asking->count; at++)
        done = attend(asking, &asking->processes[at]) && done;
    return done;
}

/* One that has ended will not answer; one that opened its next window lives. */
static void ask_whether_it_lives(struct asking *asking, struct asked *asked)
{
    struct asking again;
    if (asked->has_answer || asked->is_dead || !asking_begin(&again, asking->path, asked->name.pid))
        return;
    const struct asked *now = process_find(&again, &asked->name);
    asked->is_dead = !now || now->is_dead;
    if (now)
        asked->name.seq = now->name.seq;
    asking_end(&again);
}

void asking_wait(struct asking *asking, unsigned seconds)
{
    const struct timespec pause = { 0, PAUSE_NS };
    uint64_t end = now_ns(CLOCK_MONOTONIC) + (uint64_t)seconds * SECOND;
    for (unsigned looks = 1; !attend_all(asking) && now_ns(CLOCK_MONOTONIC) < end; looks++) {
        nanosleep(&pause, NULL);
        for (size_t at = 0; looks % LIVES_EVERY == 0 && at < asking->count; at++)
            ask_whether_it_lives(asking, &asking->processes[at]);
    }
    for (size_t at = 0; at < asking->count; at++)
        request_end(asking, &asking->processes[at]);
}

void asking_end(struct asking *asking)
{
    for (size_t at = 0; at < asking->count; at++) {
        json_decref(asking->processes[at].metadata);
        dumped_free(&asking->processes[at].dumped);
    }
    free(asking->processes);
    close(asking->directory);
}

/* ---- why not ---- */

/* Where its pid is one of ours: the kernel's letter for it, else 0. */
static char state_of(const struct asked *asked)
{
    char path[64], text[512] = "";
    snprintf(path, sizeof path, "/proc/%" PRIu64 "/stat", asked->name.pid);
    FILE *file = life_is_near(asked->metadata) ? fopen(path, "r") : NULL;
    if (!file)
        return 0;
    size_t length = fread(text, 1, sizeof text - 1, file);
    fclose(file);
    const char *end = memrchr(text, ')', length);
    return end && end[1] == ' ' ? end[2] : 0;
}

static const char *why_not(const struct asking *asking, const struct asked *asked)
{
    struct asking again;
    if (!asking_begin(&again, asking->path, asked->name.pid))
        return "the directory is gone";
    const struct asked *now = process_find(&again, &asked->name);
    bool ended = !now || now->is_dead;
    bool renewed = !ended && now->changed_ns != asked->changed_ns, paused = !ended && json_is_true(json_object_get(now->metadata, "paused"));
    char state = state_of(asked);
    asking_end(&again);
    if (!asked->request[0])
        return "no request could be made in the spool directory: is something of another user in its place, or no right to write there?";
    if (ended)
        return "it ended meanwhile";
    if (state == 'T' || state == 't')
        return "it is stopped";
    if (paused)
        return "its sampler is put aside, as for a fork";
    if (renewed)
        return "its sampler works; it has been asked too often just now, refuses the request, or is an older one that knows no dumps";
    return "its sampler writes nothing either: no CPU for it, or a spool that does not answer";
}

void asking_explain(const struct asking *asking, const struct asked *asked, unsigned seconds)
{
    if (asked->is_dead)
        tool_complain("process %" PRIu64 " has ended; its last window is in %s", asked->name.pid, asking->path);
    else if (!may_ask(asked))
        tool_complain("process %" PRIu64 " is of uid %u: only that user and root may ask it (this is uid %u)", asked->name.pid,
                      (unsigned)asked->uid, (unsigned)geteuid());
    else
        tool_complain("process %" PRIu64 " did not answer within %u s: %s", asked->name.pid, seconds, why_not(asking, asked));
}
