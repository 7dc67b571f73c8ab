/* SPDX-License-Identifier: MIT */
#include "output/trouble.h"

#include <errno.h>
#include <stdatomic.h>
#include <stddef.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h> /* geteuid */

#include "hooks/clock.h"
#include "hooks/log.h"

#define RETRY_NS 1000000000u

enum { ERRORS = 192 }; /* more than there are errno values */
#define AGAIN_NS 60000000000u

/* When each errno was said last, by a process or one that it forked; an even time: it
 * has been over since. A server whose workers live for one request would say it with
 * each, a disk that is full every other second twice a second. */
static struct said {
    _Atomic uint64_t ns[ERRORS];
} unshared, *said;

void trouble_start(void)
{
    if (said)
        return;
    void *page = mmap(NULL, sizeof *said, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    said = page == MAP_FAILED ? &unshared : page;
}

static bool is_news(int error)
{
    _Atomic uint64_t *when = &said->ns[error % ERRORS];
    uint64_t before = atomic_load(when), now = clock_now() | 1;
    if (before & 1 || (before && now - before < AGAIN_NS))
        return false;
    return atomic_compare_exchange_strong(when, &before, now);
}

static void is_over(int error)
{
    atomic_fetch_and(&said->ns[error % ERRORS], ~1ull);
}

static const char *error_word(int error)
{
    static const struct { int error; const char *word; } words[] = {
        {EACCES, "permission denied"}, {EPERM, "not permitted"},   {EROFS, "read-only file system"},
        {ENOSPC, "no space left"},     {EDQUOT, "quota exceeded"}, {ENOTDIR, "not a directory"},
        {ENOENT, "no such directory"}, {ELOOP, "symbolic link"},   {EMFILE, "too many open files"},
        {ENFILE, "too many open files"}, {ENOMEM, "out of memory"}, {EIO, "input/output error"}, {EFBIG, "file too large"},
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

static void say(const char *directory, int error)
{
    const char *word = error_word(error);
    unsigned uid = (unsigned)geteuid();
    if (error == ENOSPC || error == EDQUOT || error == EFBIG || error == ENOMEM)
        log_line(LOG_WARN, LOG_SPOOL, "spool directory %s, uid %u: %s (%d); stacks wait in memory; look at: df -h %s", directory, uid, word, error, directory);
    else if (error == EMFILE || error == ENFILE)
        log_line(LOG_WARN, LOG_SPOOL, "spool directory %s, uid %u: %s (%d); stacks wait in memory; raise the limit: ulimit -n", directory, uid, word, error);
    else if (error == EINVAL)
        log_line(LOG_WARN, LOG_SPOOL, "spool directory %s, uid %u: %s (%d); give one: export APROF_DIR=\"$PWD/aprof-spool\"", directory, uid, word, error);
    else if (error == EBADF)
        log_line(LOG_WARN, LOG_SPOOL, "spool directory %s is not written to while a standard descriptor (0 to 2) is closed: a file of ours would take its place", directory);
    else if (!is_directory(directory))
        log_line(LOG_WARN, LOG_SPOOL, "spool directory %s cannot be made, uid %u: %s (%d); name another: export APROF_DIR=/tmp/aprof-spool", directory, uid, word, error);
    else if (error == EACCES || error == EPERM)
        log_line(LOG_WARN, LOG_SPOOL, "spool directory %s cannot be written by uid %u: %s (%d); mend it: chown %u %s", directory, uid, word, error, uid, directory);
    else
        log_line(LOG_WARN, LOG_SPOOL, "spool directory %s cannot be written, uid %u: %s (%d); name another: export APROF_DIR=/tmp/aprof-spool", directory, uid, word, error);
}

static enum limit limit_of(int error)
{
    switch (error) {
    case ENOSPC: case EDQUOT: case EFBIG:
        return LIMIT_spool_full;
    case EACCES: case EPERM: case EROFS:
        return LIMIT_spool_refused;
    default:
        return LIMIT_spool_error;
    }
}

int trouble_failed(struct trouble *trouble, const char *directory, int error)
{
    if (error != -ESTALE) /* counted when new files are begun */
        trouble->limits[limit_of(-error)]++;
    trouble->failure = error;
    trouble->retry_ns = clock_now() + RETRY_NS;
    if (trouble->logged != error && error != -ESTALE) {
        trouble->logged = error;
        if (is_news(-error))
            say(directory, -error);
    }
    return error;
}

void trouble_is_over(struct trouble *trouble)
{
    if (trouble->logged)
        is_over(-trouble->logged);
    trouble->failure = trouble->logged = 0;
}

bool trouble_must_wait(const struct trouble *trouble)
{
    return trouble->failure != 0 && clock_now() < trouble->retry_ns;
}

void trouble_try_now(struct trouble *trouble)
{
    trouble->retry_ns = 0;
}
