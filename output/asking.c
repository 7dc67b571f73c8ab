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

/* False: there is no such file. One that is not ours to read says whose it is. */
static bool metadata_read(const struct asking *asking, struct asked *asked)
{
    char name[SPOOL_NAME_MAX + 1];
    struct stat status;
    size_t length;
    spool_name_format(&asked->name, name, sizeof name);
    char *text = file_read(asking->directory, name, METADATA_MOST, &status, &length);
    bool is_there = text || !fstatat(asking->directory, name, &status, AT_SYMLINK_NOFOLLOW);
    if (!is_there)
        return false;
    asked->uid = status.st_uid;
    asked->changed_ns = changed_of(&status);
    json_t *metadata = !text ? NULL : json_loadb(text, length, JSON_REJECT_DUPLICATES, NULL); /* it may be half renewed */
    free(text);
    if (json_is_object(metadata))
        asked->metadata = metadata;
    else
        json_decref(metadata);
    return true;
}

static bool window_is_dead(const struct asking *asking, const struct asked *asked)
{
    char name[SPOOL_NAME_MAX + 1];
    spool_name_format(&asked->name, name, sizeof name);
    return spool_window_is_dead(asking->directory, name, now_ns(CLOCK_REALTIME) / 1000);
}

static void process_look(struct asking *asking, struct asked *asked)
{
    asked->is_dead = window_is_dead(asking, asked) || !metadata_read(asking, asked) || life_is_gone(asked->metadata);
    asking->living += !asked->is_dead;
    if (!asked->is_dead && asking->living <= ASKING_MOST)
        return;
    json_decref(asked->metadata);
    asked->metadata = NULL;
}

/* A window that is sealed while we look takes its file away: another listing has the next. */
static void processes_look(struct asking *asking, DIR *directory, uint64_t pid)
{
    for (size_t at = 0; at < asking->count; at++)
        process_look(asking, &asking->processes[at]);
    if (asking->living == asking->count)
        return;
    struct listing listing = listing_make(directory, pid);
    for (size_t at = 0; at < asking->count; at++) {
        struct asked *asked = &asking->processes[at];
        const struct spool_name *found = asked->is_dead ? listing_find(&listing, &asked->name) : NULL;
        if (!found || found->seq == asked->name.seq)
            continue;
        asked->name = *found;
        process_look(asking, asked);
    }
    listing_free(&listing);
}

/* The dead are of interest to whoever named one. */
static void processes_keep(struct asking *asking, bool with_dead)
{
    size_t kept = 0, living = 0;
    for (size_t at = 0; at < asking->count; at++) {
        struct asked *asked = &asking->processes[at];
        living += !asked->is_dead;
        if (asked->is_dead ? with_dead : living <= ASKING_MOST)
            asking->processes[kept++] = *asked;
        else
            json_decref(asked->metadata);
    }
    asking->count = kept;
    asking->left_out = living > ASKING_MOST ? living - ASKING_MOST : 0;
}

/* One that opens its next window meanwhile can be missed once. */
static void processes_list(struct asking *asking, DIR *directory, uint64_t pid)
{
    struct listing listing = listing_make(directory, pid);
    if (!listing.count) {
        listing_free(&listing);
        listing = listing_make(directory, pid);
    }
    for (size_t at = 0; at < listing.count; at++) {
        asking->processes = tool_grow(asking->processes, at, &asking->room, sizeof *asking->processes);
        asking->processes[at].name = listing.names[at];
    }
    asking->count = listing.count;
    listing_free(&listing);
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
    processes_look(asking, directory, pid);
    processes_keep(asking, pid != 0);
    closedir(directory);
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

static bool directory_is_gone(const struct asking *asking)
{
    struct stat status;
    return !fstat(asking->directory, &status) && !status.st_nlink;
}

static struct listing list_now(const struct asking *asking)
{
    int copy = openat(asking->directory, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *directory = copy < 0 ? NULL : fdopendir(copy);
    struct listing listing = { 0 };
    if (directory)
        listing = listing_make(directory, 0);
    if (directory)
        closedir(directory);
    else if (copy >= 0)
        close(copy);
    return listing;
}

static bool lives_in(const struct asking *asking, struct asked *asked, const struct listing *listing)
{
    const struct spool_name *found = listing_find(listing, &asked->name);
    if (!found)
        return false;
    asked->name.seq = found->seq;
    return !window_is_dead(asking, asked) && !life_is_gone(asked->metadata);
}

/* One that has ended will not answer. One that just opens its next window may be missed
 * once, not twice in a row. */
static void lives_look(struct asking *asking)
{
    if (directory_is_gone(asking))
        return;
    struct listing listing = list_now(asking);
    for (size_t at = 0; at < asking->count; at++) {
        struct asked *asked = &asking->processes[at];
        if (asked->has_answer || asked->is_dead)
            continue;
        asked->missed = lives_in(asking, asked, &listing) ? 0 : asked->missed + 1;
        asked->is_dead = asked->missed > 1;
    }
    listing_free(&listing);
}

void asking_wait(struct asking *asking, unsigned seconds)
{
    const struct timespec pause = { 0, PAUSE_NS };
    uint64_t end = now_ns(CLOCK_MONOTONIC) + (uint64_t)seconds * SECOND;
    for (unsigned looks = 1; !attend_all(asking) && now_ns(CLOCK_MONOTONIC) < end; looks++) {
        nanosleep(&pause, NULL);
        if (looks % LIVES_EVERY == 0)
            lives_look(asking);
    }
    for (size_t at = 0; at < asking->count; at++)
        request_end(asking, &asking->processes[at]);
    asking->now = list_now(asking);
}

void asking_end(struct asking *asking)
{
    for (size_t at = 0; at < asking->count; at++) {
        json_decref(asking->processes[at].metadata);
        dumped_free(&asking->processes[at].dumped);
    }
    free(asking->processes);
    listing_free(&asking->now);
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

/* What its metadata says now; false: it has ended. */
static bool sampler_look(const struct asking *asking, const struct asked *asked, bool *renewed, bool *paused)
{
    const struct spool_name *found = listing_find(&asking->now, &asked->name);
    struct asked now = { .name = found ? *found : asked->name };
    bool lives = found && !window_is_dead(asking, &now) && metadata_read(asking, &now) && !life_is_gone(now.metadata);
    *renewed = now.changed_ns != asked->changed_ns;
    *paused = json_is_true(json_object_get(now.metadata, "paused"));
    json_decref(now.metadata);
    return lives;
}

static const char *why_not(const struct asking *asking, const struct asked *asked)
{
    bool renewed, paused, lives = sampler_look(asking, asked, &renewed, &paused);
    char state = state_of(asked);
    if (directory_is_gone(asking))
        return "the directory is gone";
    if (!asked->request[0])
        return "no request could be made in the spool directory: is something of another user in its place, or no right to write there?";
    if (!lives)
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
