/* SPDX-License-Identifier: MIT
 *
 * evict: the bound on the spool directory. The common case is one listing that
 * adds up sizes and finds nothing to do. Otherwise two more: one that gathers
 * windows, to choose the oldest, and one that removes their files.
 */
#include "output/evict.h"

#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <string.h>
#include <sys/file.h>    /* flock */
#include <sys/stat.h>
#include <unistd.h>

#include "hooks/mem.h"
#include "hooks/raw.h" /* getdents64: opendir would take from libc's heap */

#define MANY_FILES 5000u         /* beyond it, 7 ms, listings are spared near the bound too */
#define LISTING_GOOD_US 60000000u

/* ---- listing ---- */

struct entry { /* struct linux_dirent64 */
    uint64_t inode;
    int64_t offset;
    uint16_t length;
    uint8_t type;
    char name[];
};

typedef void (*visit_file)(void *context, const char *text, const struct spool_name *name, const struct stat *status);

static void entry_visit(int directory, const char *text, visit_file visit, void *context)
{
    struct spool_name name;
    struct stat status;
    enum spool_dump dump; /* such a file is a window of its own, and its process's latest */
    if ((!spool_name_parse(text, &name) && !spool_dump_parse(text, &name, &dump)) || fstatat(directory, text, &status, AT_SYMLINK_NOFOLLOW) != 0)
        return;
    if (S_ISREG(status.st_mode) && status.st_uid == geteuid())
        visit(context, text, &name, &status);
}

static void directory_each(int directory, visit_file visit, void *context)
{
    char block[8192] __attribute__((aligned(8)));
    long got;
    if (lseek(directory, 0, SEEK_SET) != 0)
        return;
    while ((got = raw3(SYS_getdents64, directory, (long)block, sizeof block)) > 0) {
        for (long at = 0; at < got;) {
            const struct entry *entry = (const struct entry *)(block + at);
            entry_visit(directory, entry->name, visit, context);
            at += entry->length;
        }
    }
}

/* ---- windows ---- */

/* One file at first, after joining all files of one window. */
struct window {
    uint64_t id; /* hash of what the names of one window share */
    uint64_t newest_ns, bytes;
    bool living, chosen;
};

struct eviction {
    const struct evict_request *request;
    int directory;
    uint64_t total, living, files;
    struct window *windows;
    size_t count, room;
};

static uint64_t mix(uint64_t hash, uint64_t word)
{
    hash = (hash ^ word) * 0xff51afd7ed558ccdu;
    return hash ^ (hash >> 32);
}

static uint64_t window_id(const struct spool_name *name)
{
    uint64_t hash = 0x9e3779b97f4a7c15u;
    for (const char *c = name->host; *c != '\0'; c++)
        hash = mix(hash, (unsigned char)*c);
    return mix(mix(mix(hash, name->pid), name->start_us), name->seq);
}

static bool is_ours(const struct eviction *eviction, const struct spool_name *name)
{
    const struct spool_name *own = eviction->request->own;
    return name->pid == own->pid && name->start_us == own->start_us && name->seq >= own->seq && strcmp(name->host, own->host) == 0;
}

static bool window_lives(const struct eviction *eviction, const struct spool_name *name)
{
    struct spool_name metadata = *name;
    char text[SPOOL_NAME_MAX + 1];
    if (is_ours(eviction, name))
        return true;
    metadata.metric[0] = '\0';
    metadata.state = SPOOL_LIVE;
    return spool_name_format(&metadata, text, sizeof text) == 0 ||
           !spool_window_is_dead(eviction->directory, text, eviction->request->now_us);
}

static bool windows_reserve(struct eviction *eviction)
{
    if (eviction->count < eviction->room)
        return true;
    size_t room = eviction->room ? 2 * eviction->room : 256;
    struct window *windows = mem_realloc(eviction->windows, room * sizeof *windows);
    if (windows == NULL)
        return false;
    eviction->windows = windows;
    eviction->room = room;
    return true;
}

static void visit_add_up(void *context, const char *text, const struct spool_name *name, const struct stat *status)
{
    struct eviction *eviction = context;
    eviction->total += (uint64_t)status->st_size;
    eviction->files++;
}

/* Without memory for all of them the rest is left to the next one who seals. */
static void visit_gather(void *context, const char *text, const struct spool_name *name, const struct stat *status)
{
    struct eviction *eviction = context;
    if (!windows_reserve(eviction))
        return;
    bool asks = name->state == SPOOL_LIVE && name->metric[0] == '\0';
    eviction->windows[eviction->count++] = (struct window){
        .id = window_id(name),
        .newest_ns = (uint64_t)status->st_mtim.tv_sec * 1000000000u + (uint64_t)status->st_mtim.tv_nsec,
        .bytes = (uint64_t)status->st_size,
        .living = asks ? window_lives(eviction, name) : is_ours(eviction, name),
    };
}

typedef bool (*window_before)(const struct window *a, const struct window *b);

static bool before_by_id(const struct window *a, const struct window *b)
{
    return a->id < b->id;
}

static bool before_by_age(const struct window *a, const struct window *b)
{
    return a->newest_ns != b->newest_ns ? a->newest_ns < b->newest_ns : a->id < b->id;
}

static void heap_sink(struct window *windows, size_t from, size_t count, window_before before)
{
    struct window sinking = windows[from];
    size_t child;
    while ((child = 2 * from + 1) < count) {
        if (child + 1 < count && before(&windows[child], &windows[child + 1]))
            child++;
        if (!before(&sinking, &windows[child]))
            break;
        windows[from] = windows[child];
        from = child;
    }
    windows[from] = sinking;
}

/* A heap sort: in place, and libc's qsort may take from libc's heap. */
static void windows_sort(struct window *windows, size_t count, window_before before)
{
    for (size_t i = count / 2; i > 0; i--)
        heap_sink(windows, i - 1, count, before);
    for (size_t left = count; left > 1; left--) {
        struct window last = windows[left - 1];
        windows[left - 1] = windows[0];
        windows[0] = last;
        heap_sink(windows, 0, left - 1, before);
    }
}

static void windows_join(struct eviction *eviction)
{
    size_t kept = 0;
    windows_sort(eviction->windows, eviction->count, before_by_id);
    for (size_t i = 0; i < eviction->count; i++) {
        struct window *window = &eviction->windows[i], *last = kept ? &eviction->windows[kept - 1] : NULL;
        if (last == NULL || last->id != window->id) {
            eviction->windows[kept++] = *window;
            continue;
        }
        last->bytes += window->bytes;
        last->living |= window->living;
        if (window->newest_ns > last->newest_ns)
            last->newest_ns = window->newest_ns;
    }
    eviction->count = kept;
}

static void windows_choose(struct eviction *eviction)
{
    uint64_t left = eviction->total;
    windows_sort(eviction->windows, eviction->count, before_by_age);
    for (size_t i = 0; i < eviction->count; i++) {
        struct window *window = &eviction->windows[i];
        if (window->living) {
            eviction->living += window->bytes;
        } else if (left > eviction->request->limit_bytes) {
            window->chosen = true;
            left = left > window->bytes ? left - window->bytes : 0;
        }
    }
    windows_sort(eviction->windows, eviction->count, before_by_id);
}

static const struct window *window_find(const struct eviction *eviction, uint64_t id)
{
    size_t low = 0, high = eviction->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (eviction->windows[middle].id < id)
            low = middle + 1;
        else
            high = middle;
    }
    return low < eviction->count && eviction->windows[low].id == id ? &eviction->windows[low] : NULL;
}

/* Death is asked again just before the unlink: a paused owner may have come back. */
static void visit_remove(void *context, const char *text, const struct spool_name *name, const struct stat *status)
{
    struct eviction *eviction = context;
    const struct window *window = window_find(eviction, window_id(name));
    if (window == NULL || !window->chosen || window_lives(eviction, name))
        return;
    if (unlinkat(eviction->directory, text, 0) == 0)
        eviction->total -= (uint64_t)status->st_size < eviction->total ? (uint64_t)status->st_size : eviction->total;
}

static void eviction_do(struct eviction *eviction)
{
    directory_each(eviction->directory, visit_add_up, eviction);
    if (eviction->total <= eviction->request->limit_bytes)
        return;
    directory_each(eviction->directory, visit_gather, eviction);
    windows_join(eviction);
    windows_choose(eviction);
    directory_each(eviction->directory, visit_remove, eviction);
    mem_free(eviction->windows);
}

/* What the lock file holds. Only its holder reads or writes it; anything else in
 * it, or a part of it, is as good as nothing. */
struct ledger {
    uint64_t total, files, listed_us;
};

static bool ledger_spares(int lock, const struct evict_request *request, struct ledger *ledger)
{
    if (pread(lock, ledger, sizeof *ledger, 0) != sizeof *ledger)
        return false;
    uint64_t enough = ledger->files < MANY_FILES ? request->limit_bytes / 2 : request->limit_bytes;
    return request->now_us >= ledger->listed_us && request->now_us - ledger->listed_us < LISTING_GOOD_US &&
           ledger->total + request->added_bytes <= enough;
}

static void eviction_run(int lock, struct eviction *eviction)
{
    struct ledger ledger;
    if (ledger_spares(lock, eviction->request, &ledger)) {
        ledger.total += eviction->request->added_bytes;
        eviction->total = ledger.total;
    } else {
        eviction_do(eviction);
        ledger = (struct ledger){eviction->total, eviction->files, eviction->request->now_us};
    }
    if (pwrite(lock, &ledger, sizeof ledger, 0) != sizeof ledger)
        (void)!ftruncate(lock, 0); /* a full disk: the next one lists */
}

/* An umask may have left its owner no right to come again. */
static void lock_mend(int lock)
{
    struct stat status;
    if (fstat(lock, &status) == 0 && (status.st_mode & 0600) != 0600)
        fchmod(lock, 0600);
}

/* Another user's, who would hold it for ever, or a second name of another file of
 * ours, which we would write to: where everybody may write, anybody may have put it
 * there. */
static bool is_our_lock(int lock)
{
    struct stat status;
    return fstat(lock, &status) == 0 && S_ISREG(status.st_mode) && status.st_uid == geteuid() && status.st_nlink == 1;
}

static int lock_open(int directory)
{
    int lock = openat(directory, SPOOL_LOCK_NAME, O_RDWR | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0600), error = -EACCES;
    if (lock < 0)
        return error;
    if (is_our_lock(lock)) {
        lock_mend(lock);
        if (flock(lock, LOCK_EX | LOCK_NB) == 0)
            return lock;
        if (errno == EWOULDBLOCK)
            error = -EAGAIN;
    }
    close(lock);
    return error;
}

int evict_run(const struct evict_request *request, struct evict_result *result)
{
    struct eviction eviction = {.request = request};
    eviction.directory = openat(request->directory, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (eviction.directory < 0)
        return -EACCES;
    int lock = lock_open(eviction.directory);
    if (lock >= 0) {
        eviction_run(lock, &eviction);
        *result = (struct evict_result){eviction.total, eviction.living};
        close(lock);
    }
    close(eviction.directory);
    return lock < 0 ? lock : 0;
}
