/* SPDX-License-Identifier: MIT
 *
 * spool: the writer of live files.
 *
 * Two ways into a file: new stacks are appended by pwrite at the end that we
 * know (exact size, clean error on a full disk), counts of known ones are
 * changed in place through a mapping that reaches beyond the end. The surprising
 * thing is what a cookie in the profile holds: the place of a line's count and
 * how many full lines the stack has before it (see cookie_make), so that nothing
 * needs to be remembered a line here.
 */
#include "output/spool.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>   /* PATH_MAX */
#include <stdio.h>    /* renameat is declared here */
#include <string.h>
#include <sys/file.h> /* flock */
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "hooks/clock.h"
#include "hooks/guard.h"
#include "hooks/log.h"
#include "hooks/mem.h"
#include "output/evict.h"
#include "output/spool_format.h"

#define BUFFER_FIRST (64u * 1024u) /* lines of one append; grows for a longer line or metadata */
#define BUFFER_MOST (16u << 20)
#define LINES_AT_ONCE 256u
#define MAP_FIRST (64u * 1024u)
#define RETRY_NS 1000000000u
#define NAME_TRIES 16u
#define COUNT_ROOM 18u         /* space, up to 15 digits, newline, one to spare */
#define FULL_LINES_MOST 65535u /* of one stack in one window: 75 days of time */

enum { METADATA = METRIC_COUNT }; /* where a metric is meant, the metadata file */

/* end: bytes that stand in it, all of them whole lines. map reaches beyond. */
struct live_file {
    int fd;
    bool made;
    dev_t device;
    ino_t inode;
    uint64_t end;
    char *map;
    size_t map_length;
};

struct window {
    bool open;
    bool locked;
    bool by_pwrite;   /* no mapping in this window: a store failed, or the guard is not in force */
    uint64_t seq;
    size_t padded;    /* length of the live metadata */
    struct live_file files[METRIC_COUNT + 1];
};

/* A line in the buffer: what becomes of its cookie once it is in the file. */
struct pending {
    profile_stack stack;
    uint32_t end;
    uint64_t *cookie, value;
};

struct spool {
    char *directory;
    char host[SPOOL_HOST_MAX + 1];
    pid_t pid;
    uint64_t start_us, limit_bytes;
    bool keep;

    int dir; /* O_PATH */
    struct window window;
    uint64_t shift;     /* SEQ less the window's number */
    uint64_t sequences; /* SEQs below this one were used */
    bool paused;
    bool lost;          /* files are not what they were: begin new ones */
    bool no_appends;    /* in this round */

    int failure, logged;
    uint64_t retry_ns, errors;

    uint64_t others_living, limit_hits; /* bytes of other processes' open windows when last asked */
    uint64_t own_first, own_bytes;      /* our sealed windows, where we cannot list */
    uint64_t added_bytes;               /* sealed since the bound was last asked for */
    bool was_full;

    char *buffer;
    size_t buffer_size, used;
    enum metric buffer_metric;
    struct pending pending[LINES_AT_ONCE];
    uint32_t pending_count;
};

/* ---- failures: counted, said once, tried again after a second ---- */

static const char *error_word(int error)
{
    static const struct { int error; const char *word; } words[] = {
        {EACCES, "permission denied"}, {EPERM, "not permitted"},   {EROFS, "read-only file system"},
        {ENOSPC, "no space left"},     {EDQUOT, "quota exceeded"}, {ENOTDIR, "not a directory"},
        {ENOENT, "no such directory"}, {ELOOP, "symbolic link"},   {EMFILE, "too many open files"},
        {ENOMEM, "out of memory"},     {EIO, "input/output error"}, {EFBIG, "file too large"},
        {EEXIST, "names are taken"},   {ENAMETOOLONG, "name too long"}, {ESTALE, "taken away by somebody"}, {EINVAL, "not an absolute path"},
    };
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        if (words[i].error == error)
            return words[i].word;
    }
    return "error";
}

/* A remedy must be one: what is not there, or not for us to see, cannot be given away. */
static bool is_directory(const char *path)
{
    struct stat status;
    return stat(path, &status) == 0 && S_ISDIR(status.st_mode);
}

static void failure_say(const struct spool *spool, int error)
{
    const char *directory = spool->directory, *word = error_word(error);
    unsigned uid = (unsigned)geteuid();
    if (error == ENOSPC || error == EDQUOT || error == EFBIG || error == ENOMEM)
        log_line(LOG_WARN, LOG_SPOOL, "spool directory %s, uid %u: %s (%d); stacks wait in memory; look at: df -h %s", directory, uid, word, error, directory);
    else if (error == EINVAL)
        log_line(LOG_WARN, LOG_SPOOL, "spool directory %s, uid %u: %s (%d); give one: export APROF_DIR=\"$PWD/aprof-spool\"", directory, uid, word, error);
    else if (!is_directory(directory))
        log_line(LOG_WARN, LOG_SPOOL, "spool directory %s cannot be made, uid %u: %s (%d); name another: export APROF_DIR=/tmp/aprof-spool", directory, uid, word, error);
    else if (error == EACCES || error == EPERM)
        log_line(LOG_WARN, LOG_SPOOL, "spool directory %s cannot be written by uid %u: %s (%d); mend it: chown %u %s", directory, uid, word, error, uid, directory);
    else
        log_line(LOG_WARN, LOG_SPOOL, "spool directory %s cannot be written, uid %u: %s (%d); name another: export APROF_DIR=/tmp/aprof-spool", directory, uid, word, error);
}

static int failed(struct spool *spool, int error)
{
    spool->errors++;
    spool->failure = error;
    spool->retry_ns = clock_now() + RETRY_NS;
    if (spool->logged != error && error != -ESTALE) {
        spool->logged = error;
        failure_say(spool, -error);
    }
    return error;
}

static void succeeded(struct spool *spool)
{
    spool->failure = spool->logged = 0;
}

static bool must_wait(const struct spool *spool)
{
    return spool->failure != 0 && clock_now() < spool->retry_ns;
}

/* ---- names ---- */

static void name_make(const struct spool *spool, uint64_t seq, unsigned file, enum spool_state state, char *text)
{
    struct spool_name name = {.pid = (uint64_t)spool->pid, .start_us = spool->start_us, .seq = seq, .state = state};
    memcpy(name.host, spool->host, sizeof name.host);
    if (file != METADATA)
        strncpy(name.metric, metric_name((enum metric)file), SPOOL_METRIC_MAX);
    spool_name_format(&name, text, SPOOL_NAME_MAX + 1);
}

/* ---- the directory ---- */

/* Makes what is missing above it, as mkdir -p does. */
static void parents_make(const char *path)
{
    char part[PATH_MAX];
    size_t length = strlen(path);
    if (length >= sizeof part)
        return;
    for (size_t i = 1; i < length; i++) {
        if (path[i] != '/')
            continue;
        memcpy(part, path, i);
        part[i] = '\0';
        mkdir(part, 0755);
    }
}

/* Made by root it is like a mail spool, so that workers which drop privileges
 * can write theirs. The umask is the whole process's: chmod, do not touch it. */
static int directory_make(const char *path)
{
    mode_t mode = geteuid() == 0 ? 01733 : 0700;
    if (mkdir(path, mode) != 0) {
        if (errno != ENOENT)
            return errno == EEXIST ? 0 : -errno;
        parents_make(path);
        if (mkdir(path, mode) != 0)
            return errno == EEXIST ? 0 : -errno;
    }
    int fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0)
        return -errno;
    int result = fchmod(fd, mode) == 0 ? 0 : -errno;
    close(fd);
    return result;
}

static void ignore_file_make(int dir)
{
    int fd = openat(dir, SPOOL_IGNORE_NAME, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (fd < 0)
        return;
    if (write(fd, "*\n", 2) != 2)
        unlinkat(dir, SPOOL_IGNORE_NAME, 0);
    close(fd);
}

static int directory_open(struct spool *spool)
{
    if (spool->dir >= 0)
        return 0;
    if (spool->directory[0] != '/')
        return -EINVAL;
    spool->dir = open(spool->directory, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (spool->dir < 0 && errno == ENOENT) {
        int made = directory_make(spool->directory);
        if (made < 0)
            return made;
        spool->dir = open(spool->directory, O_PATH | O_DIRECTORY | O_CLOEXEC);
    }
    return spool->dir < 0 ? -errno : 0;
}

static void directory_close(struct spool *spool)
{
    if (spool->dir >= 0)
        close(spool->dir);
    spool->dir = -1;
}

/* A name that we may not look up any more (the process dropped privileges) says
 * nothing about what stands there; our descriptors go on. */
static bool is_gone(int error)
{
    return error == ENOENT || error == ENOTDIR || error == ELOOP;
}

/* Whether the path still leads to the directory that we hold. */
static bool directory_is_there(const struct spool *spool)
{
    struct stat held, named;
    if (fstat(spool->dir, &held) != 0)
        return false;
    if (stat(spool->directory, &named) != 0)
        return !is_gone(errno);
    return held.st_dev == named.st_dev && held.st_ino == named.st_ino;
}

/* ---- one live file ---- */

static int file_make(struct spool *spool, uint64_t seq, unsigned index, struct live_file *file)
{
    char name[SPOOL_NAME_MAX + 1];
    struct stat status;
    name_make(spool, seq, index, SPOOL_LIVE, name);
    *file = (struct live_file){.fd = -1};
    int fd = openat(spool->dir, name, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (fd < 0)
        return -errno;
    if (fstat(fd, &status) != 0) {
        int error = -errno;
        close(fd);
        return error;
    }
    if ((status.st_mode & 0777) != 0600) /* an umask that takes from the owner */
        fchmod(fd, 0600);
    *file = (struct live_file){.fd = fd, .made = true, .device = status.st_dev, .inode = status.st_ino};
    return 0;
}

static bool file_is(const struct live_file *file, const struct stat *status)
{
    return S_ISREG(status->st_mode) && status->st_dev == file->device && status->st_ino == file->inode;
}

/* Opens it under its name where descriptors are not kept; -ESTALE when the name
 * leads to something else. */
static int file_acquire(struct spool *spool, unsigned index)
{
    struct live_file *file = &spool->window.files[index];
    struct stat status;
    char name[SPOOL_NAME_MAX + 1];
    if (file->fd >= 0)
        return 0;
    int error = directory_open(spool);
    if (error < 0)
        return error;
    name_make(spool, spool->window.seq, index, SPOOL_LIVE, name);
    int fd = openat(spool->dir, name, O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (fd < 0)
        return is_gone(errno) ? -ESTALE : -errno;
    if (fstat(fd, &status) != 0 || !file_is(file, &status)) {
        close(fd);
        return -ESTALE;
    }
    file->fd = fd;
    return 0;
}

static void file_close(struct live_file *file)
{
    if (file->fd >= 0)
        close(file->fd);
    file->fd = -1;
}

static void file_unmap(struct live_file *file)
{
    if (file->map != NULL)
        munmap(file->map, file->map_length);
    file->map = NULL;
    file->map_length = 0;
}

/* Whether it is still ours and as long as we left it. Somebody who cuts it would
 * have us append behind a hole. */
static bool file_is_whole(const struct live_file *file)
{
    struct stat status;
    return fstat(file->fd, &status) == 0 && file_is(file, &status) && (uint64_t)status.st_size == file->end;
}

/* The same by name, for files that were taken away while we held them. */
static bool file_is_there(const struct spool *spool, unsigned index)
{
    const struct live_file *file = &spool->window.files[index];
    struct stat status;
    char name[SPOOL_NAME_MAX + 1];
    name_make(spool, spool->window.seq, index, SPOOL_LIVE, name);
    if (fstatat(spool->dir, name, &status, AT_SYMLINK_NOFOLLOW) != 0)
        return !is_gone(errno);
    return file_is(file, &status) && (index == METADATA || (uint64_t)status.st_size == file->end);
}

/* Removes the live file if its name still leads to it, then gives up the
 * descriptor, and with it the metadata's lock. */
static void file_remove(struct spool *spool, const struct window *window, unsigned index, struct live_file *file)
{
    struct stat status;
    char name[SPOOL_NAME_MAX + 1];
    name_make(spool, window->seq, index, SPOOL_LIVE, name);
    if (file->made && fstatat(spool->dir, name, &status, AT_SYMLINK_NOFOLLOW) == 0 && file_is(file, &status))
        unlinkat(spool->dir, name, 0);
    file_unmap(file);
    file_close(file);
    file->made = false;
}

static ssize_t write_all(int fd, const char *bytes, size_t length, uint64_t offset)
{
    size_t written = 0;
    while (written < length) {
        ssize_t got = pwrite(fd, bytes + written, length - written, (off_t)(offset + written));
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            break;
        written += (size_t)got;
    }
    return (ssize_t)written;
}

/* ---- the open window ---- */

/* Where descriptors are not kept none is left open between calls. */
static void descriptors_release(struct spool *spool)
{
    if (spool->keep && !spool->paused)
        return;
    for (unsigned i = 0; i <= METADATA; i++)
        file_close(&spool->window.files[i]);
    directory_close(spool);
}

static void window_to_pwrite(struct window *window)
{
    window->by_pwrite = true;
    for (unsigned i = 0; i < METRIC_COUNT; i++)
        file_unmap(&window->files[i]);
}

static void window_remove(struct spool *spool, struct window *window)
{
    for (unsigned i = 0; i <= METADATA; i++) /* metadata, with the lock, is the last */
        file_remove(spool, window, i, &window->files[i]);
    window->open = window->locked = false;
}

static void window_clear(struct window *window)
{
    *window = (struct window){.open = false};
    for (unsigned i = 0; i <= METADATA; i++)
        window->files[i].fd = -1;
}

static bool buffer_reserve(struct spool *spool, size_t size)
{
    size_t grown = spool->buffer_size;
    if (size <= grown)
        return true;
    while (grown < size)
        grown *= 2;
    char *buffer = size <= BUFFER_MOST ? mem_realloc(spool->buffer, grown) : NULL;
    if (buffer == NULL)
        return false;
    spool->buffer = buffer;
    spool->buffer_size = grown;
    return true;
}

/* The object as it stands in that window's files; 0: no memory for it. */
static size_t metadata_put(struct spool *spool, const struct metadata *metadata, uint64_t seq)
{
    struct metadata shown = *metadata;
    size_t length;
    shown.window = seq;
    shown.paused = spool->paused;
    while ((length = metadata_format(&shown, spool->buffer, spool->buffer_size)) == 0) {
        if (!buffer_reserve(spool, 2 * spool->buffer_size))
            return 0;
    }
    return length;
}

/* One write, padded with spaces before its newline, never shorter than before:
 * no tail of a longer one is left. */
static int metadata_write(struct spool *spool, struct window *window, const struct metadata *metadata)
{
    size_t length = metadata_put(spool, metadata, window->seq);
    size_t padded = (length + SPOOL_METADATA_BLOCK - 1) / SPOOL_METADATA_BLOCK * SPOOL_METADATA_BLOCK;
    if (padded < window->padded)
        padded = window->padded;
    if (length == 0 || !buffer_reserve(spool, padded))
        return -ENOMEM;
    memset(spool->buffer + length - 1, ' ', padded - length);
    spool->buffer[padded - 1] = '\n';
    errno = 0;
    if (write_all(window->files[METADATA].fd, spool->buffer, padded, 0) != (ssize_t)padded)
        return errno ? -errno : -ENOSPC;
    window->padded = padded;
    return 0;
}

/* A reader may hold it shared for a moment: then again a second later. A file
 * system that refuses locks is the readers' business (spool_life_is_dead). */
static void window_lock(struct spool *spool, struct window *window)
{
    if (spool->keep && !window->locked)
        window->locked = flock(window->files[METADATA].fd, LOCK_EX | LOCK_NB) == 0;
}

static int window_make(struct spool *spool, struct window *window, const struct metadata *metadata, uint64_t seq)
{
    window_clear(window);
    window->seq = seq;
    window->by_pwrite = !guard_in_force();
    int error = file_make(spool, seq, METADATA, &window->files[METADATA]);
    if (error < 0)
        return error;
    window_lock(spool, window);
    error = metadata_write(spool, window, metadata);
    if (error < 0) {
        window_remove(spool, window);
        return error;
    }
    window->open = true;
    return 0;
}

/* Names that somebody took, also by a planted link, are passed over. */
static int window_begin(struct spool *spool, struct window *window, const struct metadata *metadata)
{
    int error = directory_open(spool);
    if (error < 0)
        return error;
    if (metadata->window + spool->shift < spool->sequences)
        spool->shift = spool->sequences - metadata->window;
    for (unsigned i = 0; i < NAME_TRIES; i++) {
        uint64_t seq = metadata->window + spool->shift;
        error = window_make(spool, window, metadata, seq);
        if (error == 0)
            spool->sequences = seq + 1;
        if (error != -EEXIST)
            return error;
        spool->shift++;
    }
    return error;
}

static int window_open(struct spool *spool, const struct metadata *metadata)
{
    int error = directory_open(spool);
    if (error == 0) {
        ignore_file_make(spool->dir);
        error = window_begin(spool, &spool->window, metadata);
    }
    if (error < 0)
        directory_close(spool); /* what is there now may be another one next time */
    return error;
}

/* ---- lines ---- */

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

/* The mapping grows in steps that double and reaches beyond the file's end, so
 * that an append needs no system call for it. */
static bool file_map(struct live_file *file, uint64_t reach)
{
    size_t length = file->map_length ? file->map_length : MAP_FIRST;
    while (length < reach)
        length *= 2;
    if (length == file->map_length)
        return true;
    void *map;
    if (file->map != NULL)
        map = mremap(file->map, file->map_length, length, MREMAP_MAYMOVE);
    else
        map = mmap(NULL, length, PROT_READ | PROT_WRITE, MAP_SHARED, file->fd, 0);
    if (map == MAP_FAILED)
        return false;
    file->map = map;
    file->map_length = length;
    return madvise(map, length, MADV_DONTFORK) == 0;
}

static bool store_mapped(struct live_file *file, uint64_t offset, uint32_t count)
{
    uint64_t word;
    char digits[SPOOL_COUNT_DIGITS];
    if (file->map == NULL || offset + SPOOL_COUNT_DIGITS > file->map_length)
        return false;
    digits_put(digits, count);
    memcpy(&word, digits, sizeof word);
    return guard_store((uint64_t *)(void *)(file->map + offset), word);
}

static int store_written(struct spool *spool, unsigned metric, uint64_t offset, uint32_t count)
{
    struct live_file *file = &spool->window.files[metric];
    char digits[SPOOL_COUNT_DIGITS];
    int error = file_acquire(spool, metric);
    if (error < 0)
        return error;
    if (!file_is_whole(file))
        return -ESTALE;
    digits_put(digits, count);
    errno = 0;
    return write_all(file->fd, digits, sizeof digits, offset) == sizeof digits ? 0 : errno ? -errno : -EIO;
}

static int count_store(struct spool *spool, unsigned metric, uint64_t offset, uint32_t count)
{
    struct window *window = &spool->window;
    struct live_file *file = &window->files[metric];
    if (!window->by_pwrite) {
        if (store_mapped(file, offset, count))
            return 0;
        window_to_pwrite(window);
    }
    return store_written(spool, metric, offset, count);
}

/* The first `whole` bytes of the buffer are in the file. */
static void batch_settle(struct spool *spool, struct profile *profile, size_t whole)
{
    for (uint32_t i = 0; i < spool->pending_count; i++) {
        struct pending *line = &spool->pending[i];
        if (line->end <= whole)
            *line->cookie = line->value;
        else
            profile_mark_changed(profile, line->stack, spool->buffer_metric);
    }
    spool->pending_count = 0;
    spool->used = 0;
}

static size_t batch_whole(const struct spool *spool, size_t written)
{
    size_t whole = 0;
    for (uint32_t i = 0; i < spool->pending_count && spool->pending[i].end <= written; i++)
        whole = spool->pending[i].end;
    return whole;
}

/* Mapped at once and not at the first store: that one may come when there is no
 * sampler any more. A mapping also keeps the inode's number from being used again. */
static void batch_map(struct window *window, struct live_file *file)
{
    if (!window->by_pwrite && !file_map(file, file->end))
        window_to_pwrite(window);
}

static int batch_append(struct spool *spool, struct live_file *file, size_t *whole)
{
    if (!file_is_whole(file))
        return -ESTALE;
    errno = 0;
    size_t written = (size_t)write_all(file->fd, spool->buffer, spool->used, file->end);
    int error = written == spool->used ? 0 : errno ? -errno : -ENOSPC;
    *whole = batch_whole(spool, written);
    if (written > *whole && ftruncate(file->fd, (off_t)(file->end + *whole)) != 0)
        return -ESTALE;
    file->end += *whole;
    batch_map(&spool->window, file);
    return error;
}

/* Appends what is in the buffer; lines that did not get in whole are put back. */
static int batch_write(struct spool *spool, struct profile *profile)
{
    size_t whole = 0;
    if (spool->used == 0)
        return 0;
    int error = file_acquire(spool, spool->buffer_metric);
    if (error == 0)
        error = batch_append(spool, &spool->window.files[spool->buffer_metric], &whole);
    batch_settle(spool, profile, whole);
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

static int line_add(struct spool *spool, struct profile *profile, const struct profile_change *change, uint32_t number, uint32_t count)
{
    size_t length = profile_text(profile, change->stack, NULL, 0);
    if (spool->pending_count == LINES_AT_ONCE || spool->used + length + COUNT_ROOM > spool->buffer_size) {
        int error = batch_write(spool, profile);
        if (error < 0)
            return error;
        if (!buffer_reserve(spool, length + COUNT_ROOM))
            return -ENOMEM;
    }
    uint64_t offset = spool->window.files[change->metric].end + spool->used;
    size_t size = line_put(spool->buffer + spool->used, profile, change->stack, length, offset, count);
    spool->used += size;
    spool->pending[spool->pending_count++] = (struct pending){
        change->stack, (uint32_t)spool->used, change->cookie, cookie_make(offset + size - 1 - SPOOL_COUNT_DIGITS, number)};
    return 0;
}

/* ---- changes ---- */

/* Makes ready to append to that metric's file. */
static int append_prepare(struct spool *spool, struct profile *profile, enum metric metric)
{
    struct live_file *file = &spool->window.files[metric];
    int error = 0;
    if (spool->no_appends)
        return spool->failure ? spool->failure : -EAGAIN;
    if (spool->used > 0 && spool->buffer_metric != metric)
        error = batch_write(spool, profile);
    spool->buffer_metric = metric;
    if (error == 0 && !file->made) {
        error = directory_open(spool);
        if (error == 0)
            error = file_make(spool, spool->window.seq, metric, file);
        if (error == -EEXIST || error == -ENOENT) /* somebody took the name, or the directory away */
            error = -ESTALE;
    }
    return error;
}

/* Brings the stack's lines to its total: its last line, if it has one, then new ones. */
static int change_write(struct spool *spool, struct profile *profile, const struct profile_change *change)
{
    uint32_t count, first = 0, last = line_of_total(change->us, &count);
    if (*change->cookie != 0) {
        uint32_t line = cookie_line(*change->cookie);
        int error = count_store(spool, change->metric, cookie_offset(*change->cookie), line < last ? SPOOL_COUNT_MAX : count);
        if (error < 0 || line >= last)
            return error;
        first = line + 1;
    }
    int error = append_prepare(spool, profile, change->metric);
    for (uint32_t i = first; error == 0 && i <= last; i++)
        error = line_add(spool, profile, change, i, i < last ? SPOOL_COUNT_MAX : count);
    if (error < 0)
        spool->no_appends = true;
    return error;
}

static int changes_write(struct spool *spool, struct profile *profile)
{
    struct profile_change change;
    int first = 0;
    while (profile_take_change(profile, &change)) {
        int error = spool->lost ? -ESTALE : change_write(spool, profile, &change);
        if (error == -ESTALE)
            spool->lost = true;
        if (error < 0) {
            profile_mark_changed(profile, change.stack, change.metric);
            first = first ? first : error;
        }
    }
    int error = batch_write(spool, profile);
    if (error == -ESTALE)
        spool->lost = true;
    return first ? first : error;
}

/* What is left of the window's files goes, so that nothing is counted twice. */
static void files_give_up(struct spool *spool, struct profile *profile)
{
    if (spool->window.open && directory_open(spool) == 0)
        window_remove(spool, &spool->window);
    for (unsigned i = 0; i <= METADATA; i++) {
        file_unmap(&spool->window.files[i]);
        file_close(&spool->window.files[i]);
    }
    window_clear(&spool->window);
    directory_close(spool);
    profile_mark_all(profile);
    spool->lost = false;
}

static int window_ready(struct spool *spool, struct profile *profile, const struct metadata *metadata)
{
    bool by_pwrite = spool->lost && spool->window.by_pwrite;
    if (spool->lost)
        files_give_up(spool, profile);
    if (spool->window.open)
        return 0;
    int error = window_open(spool, metadata);
    spool->window.by_pwrite |= by_pwrite; /* whoever cuts files does it again */
    return error;
}

static void full_notice(struct spool *spool)
{
    bool full = spool_is_full(spool);
    if (full && !spool->was_full)
        spool->limit_hits++;
    spool->was_full = full;
}

/* No sampler thread, no descriptors: counts of known lines, through the mapping. */
static int flush_mapped(struct spool *spool, struct profile *profile)
{
    struct profile_change change;
    int result = 0;
    while (profile_take_change(profile, &change)) {
        uint32_t count, line = line_of_total(change.us, &count);
        uint64_t cookie = *change.cookie;
        if (cookie != 0 && cookie_line(cookie) == line &&
            store_mapped(&spool->window.files[change.metric], cookie_offset(cookie), count))
            continue;
        profile_mark_changed(profile, change.stack, change.metric);
        result = -EAGAIN;
    }
    return result;
}

static int round_write(struct spool *spool, struct profile *profile, const struct metadata *metadata, bool no_appends)
{
    int error = window_ready(spool, profile, metadata);
    spool->no_appends = no_appends;
    return error < 0 ? error : changes_write(spool, profile);
}

int spool_flush(struct spool *spool, struct profile *profile, const struct metadata *metadata)
{
    if (spool->paused)
        return flush_mapped(spool, profile);
    if (!spool->lost && !profile_has_changes(profile))
        return 0;
    bool waiting = must_wait(spool);
    if (waiting && (spool->lost || !spool->window.open))
        return spool->failure;
    int error = round_write(spool, profile, metadata, waiting);
    if (spool->lost && !waiting) /* found just now: new files at once */
        error = round_write(spool, profile, metadata, false);
    descriptors_release(spool);
    full_notice(spool);
    if (error == 0)
        succeeded(spool);
    else if (!waiting || error != spool->failure)
        failed(spool, error);
    return error;
}

/* ---- once a second ---- */

static bool files_are_there(const struct spool *spool)
{
    if (!directory_is_there(spool))
        return false;
    for (unsigned i = 0; i <= METADATA; i++) {
        if (spool->window.files[i].made && !file_is_there(spool, i))
            return false;
    }
    return true;
}

static int window_describe(struct spool *spool, const struct metadata *metadata)
{
    int error = directory_open(spool);
    if (error == 0)
        error = files_are_there(spool) ? file_acquire(spool, METADATA) : -ESTALE;
    if (error < 0)
        return error == -ENOENT ? -ESTALE : error;
    window_lock(spool, &spool->window);
    return metadata_write(spool, &spool->window, metadata);
}

int spool_describe(struct spool *spool, const struct metadata *metadata)
{
    if (!spool->window.open || spool->paused)
        return 0;
    int error = window_describe(spool, metadata);
    descriptors_release(spool);
    if (error == -ESTALE)
        spool->lost = true; /* the next flush has the profile at hand */
    else if (error < 0)
        failed(spool, error);
    return error;
}

/* ---- sealing ---- */

/* Where sealed text goes: the spool's buffer, then the file. */
struct sealing {
    struct spool *spool;
    int fd, error;
    uint64_t offset;
};

static void sealing_drain(struct sealing *sealing)
{
    struct spool *spool = sealing->spool;
    errno = 0;
    if (sealing->error == 0 && write_all(sealing->fd, spool->buffer, spool->used, sealing->offset) != (ssize_t)spool->used)
        sealing->error = errno ? -errno : -ENOSPC;
    sealing->offset += spool->used;
    spool->used = 0;
}

static void sealing_line(struct sealing *sealing, const struct profile *profile, profile_stack stack, uint64_t us)
{
    struct spool *spool = sealing->spool;
    size_t length = profile_text(profile, stack, NULL, 0);
    if (spool->used + length + 24 > spool->buffer_size) {
        sealing_drain(sealing);
        if (!buffer_reserve(spool, length + 24)) {
            sealing->error = -ENOMEM;
            return;
        }
    }
    profile_text(profile, stack, spool->buffer + spool->used, length);
    spool->used += length;
    spool->used += log_format(spool->buffer + spool->used, 24, " %lu\n", (unsigned long)us);
}

static void merge(const struct profile *profile, const profile_stack *from, profile_stack *to, size_t left, size_t middle, size_t right)
{
    size_t a = left, b = middle;
    for (size_t i = left; i < right; i++)
        to[i] = a < middle && (b == right || profile_compare(profile, from[a], from[b]) <= 0) ? from[a++] : from[b++];
}

/* Merges runs of 1, 2, 4 ... stacks to and fro between two arrays; returns the
 * one that holds the result. Neighbours share most of their frames, so that
 * comparing them is short. */
static const profile_stack *stacks_sort(const struct profile *profile, profile_stack *stacks, profile_stack *other, size_t count)
{
    for (size_t run = 1; run < count; run *= 2) {
        for (size_t left = 0; left < count; left += 2 * run) {
            size_t middle = left + run < count ? left + run : count;
            size_t right = middle + run < count ? middle + run : count;
            merge(profile, stacks, other, left, middle, right);
        }
        profile_stack *sorted = other;
        other = stacks;
        stacks = sorted;
    }
    return stacks;
}

static void sealing_sorted(struct sealing *sealing, const struct profile *profile, enum metric metric, profile_stack *room, size_t most)
{
    profile_stack stack;
    uint64_t us;
    uint32_t at = 0;
    size_t count = 0;
    while (count < most && profile_each(profile, metric, &at, &stack, &us))
        room[count++] = stack;
    const profile_stack *sorted = stacks_sort(profile, room, room + most, count);
    for (size_t i = 0; i < count; i++)
        sealing_line(sealing, profile, sorted[i], profile_get_ns(profile, sorted[i], metric) / 1000);
}

/* Each stack stands in a profile once, so equal lines are joined already. Without
 * memory to sort in, unsorted lines are better than none. */
static void sealing_stacks(struct sealing *sealing, const struct profile *profile, enum metric metric)
{
    size_t most = profile_stacks(profile, metric);
    profile_stack *room = mem_alloc(2 * most * sizeof *room);
    if (room != NULL) {
        sealing_sorted(sealing, profile, metric, room, most);
        mem_free(room);
    } else {
        profile_stack stack;
        uint64_t us;
        uint32_t at = 0;
        while (profile_each(profile, metric, &at, &stack, &us))
            sealing_line(sealing, profile, stack, us);
    }
    sealing_drain(sealing);
}

static int temporary_make(struct spool *spool, const char *name)
{
    enum { FLAGS = O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC };
    int fd = openat(spool->dir, name, FLAGS, 0600);
    if (fd < 0 && errno == EEXIST && unlinkat(spool->dir, name, 0) == 0) /* of a sealing that failed */
        fd = openat(spool->dir, name, FLAGS, 0600);
    if (fd >= 0)
        fchmod(fd, 0600);
    return fd < 0 ? -errno : fd;
}

/* Writes one sealed file under its temporary name. */
static int temporary_write(struct spool *spool, const struct profile *profile, const struct metadata *metadata, unsigned index)
{
    char name[SPOOL_NAME_MAX + 1];
    name_make(spool, spool->window.seq, index, SPOOL_TEMPORARY, name);
    struct sealing sealing = {.spool = spool, .fd = temporary_make(spool, name)};
    if (sealing.fd < 0)
        return sealing.fd;
    if (index != METADATA) {
        sealing_stacks(&sealing, profile, (enum metric)index);
    } else {
        spool->used = metadata_put(spool, metadata, spool->window.seq);
        if (spool->used == 0)
            sealing.error = -ENOMEM;
        sealing_drain(&sealing);
    }
    close(sealing.fd);
    return sealing.error;
}

static bool has_file(const struct profile *profile, unsigned index)
{
    return index == METADATA || profile_stacks(profile, (enum metric)index) > 0;
}

static int sealed_rename(struct spool *spool, unsigned index)
{
    char from[SPOOL_NAME_MAX + 1], to[SPOOL_NAME_MAX + 1];
    struct stat status;
    name_make(spool, spool->window.seq, index, SPOOL_TEMPORARY, from);
    name_make(spool, spool->window.seq, index, SPOOL_SEALED, to);
    if (renameat(spool->dir, from, spool->dir, to) != 0)
        return -errno;
    if (fstatat(spool->dir, to, &status, AT_SYMLINK_NOFOLLOW) == 0) {
        spool->own_bytes += (uint64_t)status.st_size;
        spool->added_bytes += (uint64_t)status.st_size;
    }
    return 0;
}

static void temporaries_remove(struct spool *spool)
{
    char name[SPOOL_NAME_MAX + 1];
    for (unsigned i = 0; i <= METADATA; i++) {
        name_make(spool, spool->window.seq, i, SPOOL_TEMPORARY, name);
        unlinkat(spool->dir, name, 0);
    }
}

/* All of them are written before the first is renamed: a disk that fills up in
 * between leaves the window as it was. Metadata is the last. */
static int sealed_write(struct spool *spool, const struct profile *profile, const struct metadata *metadata)
{
    int error = 0;
    for (unsigned i = 0; i <= METADATA && error == 0; i++)
        error = has_file(profile, i) ? temporary_write(spool, profile, metadata, i) : 0;
    for (unsigned i = 0; i <= METADATA && error == 0; i++)
        error = has_file(profile, i) ? sealed_rename(spool, i) : 0;
    if (error < 0)
        temporaries_remove(spool);
    return error;
}

/* ---- the bound on the directory ---- */

static uint64_t own_live_bytes(const struct spool *spool)
{
    uint64_t bytes = spool->window.padded;
    for (unsigned i = 0; i < METRIC_COUNT; i++)
        bytes += spool->window.files[i].end;
    return bytes;
}

static void own_window_remove(struct spool *spool, uint64_t seq)
{
    char name[SPOOL_NAME_MAX + 1];
    struct stat status;
    for (unsigned i = 0; i <= METADATA; i++) {
        name_make(spool, seq, i, SPOOL_SEALED, name);
        if (fstatat(spool->dir, name, &status, AT_SYMLINK_NOFOLLOW) != 0 || unlinkat(spool->dir, name, 0) != 0)
            continue;
        uint64_t size = (uint64_t)status.st_size;
        spool->own_bytes -= size < spool->own_bytes ? size : spool->own_bytes;
    }
}

/* Where the directory cannot be listed, or not be locked by us. */
static void own_windows_bound(struct spool *spool)
{
    uint64_t living = own_live_bytes(spool);
    while (spool->own_bytes + living > spool->limit_bytes && spool->own_first < spool->sequences)
        own_window_remove(spool, spool->own_first++);
}

static void bound_keep(struct spool *spool)
{
    struct evict_result result;
    if (spool->limit_bytes == 0)
        return;
    struct spool_name own = {.pid = (uint64_t)spool->pid, .start_us = spool->start_us};
    memcpy(own.host, spool->host, sizeof own.host);
    own.seq = spool->window.open ? spool->window.seq : spool->sequences;
    struct evict_request request = {spool->dir, spool->limit_bytes, spool->added_bytes, clock_epoch_us(), &own};
    int error = evict_run(&request, &result);
    if (error == -EACCES)
        own_windows_bound(spool);
    if (error < 0)
        return;
    spool->added_bytes = 0;
    uint64_t mine = own_live_bytes(spool);
    spool->others_living = result.living_bytes > mine ? result.living_bytes - mine : 0;
}

static int window_seal(struct spool *spool, struct profile *profile, const struct metadata *metadata, const struct metadata *next)
{
    struct window following;
    window_clear(&following);
    int error = directory_open(spool);
    if (error == 0 && next != NULL)
        error = window_begin(spool, &following, next);
    if (error < 0)
        return error;
    error = sealed_write(spool, profile, metadata);
    if (error < 0) {
        window_remove(spool, &following);
        spool->sequences = spool->window.seq + 1;
        return error;
    }
    window_remove(spool, &spool->window);
    spool->window = following;
    return 0;
}

int spool_seal(struct spool *spool, struct profile *profile, const struct metadata *metadata, const struct metadata *next)
{
    if (spool->paused)
        return -EAGAIN;
    if (spool->window.open && (directory_open(spool) < 0 || !files_are_there(spool)))
        spool->lost = true;
    spool->retry_ns = 0;
    int flushed = spool_flush(spool, profile, metadata);
    if (!spool->window.open || spool->lost)
        return flushed;
    int error = window_seal(spool, profile, metadata, next);
    if (directory_open(spool) == 0)
        bound_keep(spool);
    full_notice(spool);
    descriptors_release(spool);
    if (error < 0)
        return failed(spool, error);
    succeeded(spool);
    return 0;
}

/* ---- pausing for a fork ---- */

int spool_pause(struct spool *spool, const struct metadata *metadata)
{
    int error = 0;
    if (spool->paused)
        return 0;
    spool->paused = true;
    if (spool->window.open && (error = directory_open(spool)) == 0 && (error = file_acquire(spool, METADATA)) == 0)
        error = metadata_write(spool, &spool->window, metadata);
    descriptors_release(spool);
    spool->window.locked = false;
    return error;
}

/* The lock comes before the look at the names: whoever took us for dead did so
 * before it, and what he removed is gone by now. */
static int files_resume(struct spool *spool, const struct metadata *metadata)
{
    int error = directory_open(spool);
    for (unsigned i = 0; error == 0 && i <= METADATA; i++) {
        if (spool->window.files[i].made)
            error = file_acquire(spool, i);
    }
    if (error < 0)
        return error == -ENOENT ? -ESTALE : error;
    window_lock(spool, &spool->window);
    return files_are_there(spool) ? metadata_write(spool, &spool->window, metadata) : -ESTALE;
}

int spool_resume(struct spool *spool, struct profile *profile, const struct metadata *metadata)
{
    if (!spool->paused)
        return 0;
    spool->paused = false;
    if (!spool->window.open)
        return 0;
    int error = files_resume(spool, metadata);
    descriptors_release(spool);
    if (error < 0) {
        spool->lost = true;
        failed(spool, error);
        spool->retry_ns = 0;
        return spool_flush(spool, profile, metadata);
    }
    return 0;
}

/* ---- life ---- */

struct spool *spool_new(const struct spool_options *options)
{
    size_t length = strlen(options->directory) + 1;
    struct spool *spool = mem_zalloc(sizeof *spool);
    char *directory = mem_alloc(length), *buffer = mem_alloc(BUFFER_FIRST);
    if (spool == NULL || directory == NULL || buffer == NULL) {
        mem_free(spool);
        mem_free(directory);
        mem_free(buffer);
        return NULL;
    }
    memcpy(directory, options->directory, length);
    spool->directory = directory;
    spool->buffer = buffer;
    spool->buffer_size = BUFFER_FIRST;
    spool_host_clean(options->host, spool->host, sizeof spool->host);
    spool->pid = options->pid;
    spool->start_us = options->start_us;
    spool->limit_bytes = options->limit_bytes;
    spool->keep = options->keep_descriptors;
    spool->dir = -1;
    window_clear(&spool->window);
    return spool;
}

bool spool_is_open(const struct spool *spool)
{
    return spool->window.open;
}

void spool_free(struct spool *spool)
{
    if (spool == NULL)
        return;
    for (unsigned i = 0; i <= METADATA; i++) {
        file_unmap(&spool->window.files[i]);
        file_close(&spool->window.files[i]);
    }
    directory_close(spool);
    mem_free(spool->buffer);
    mem_free(spool->directory);
    mem_free(spool);
}

uint64_t spool_limit_hits(const struct spool *spool)
{
    return spool->limit_hits;
}

uint64_t spool_errors(const struct spool *spool)
{
    return spool->errors;
}

bool spool_is_full(const struct spool *spool)
{
    return spool->limit_bytes != 0 && spool->others_living + own_live_bytes(spool) > spool->limit_bytes;
}
