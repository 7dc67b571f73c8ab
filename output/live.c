/* SPDX-License-Identifier: MIT */
#include "output/live.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/file.h> /* flock */
#include <sys/mman.h>
#include <unistd.h>

#include "hooks/guard.h"

#define MAP_FIRST (64u * 1024u)

void live_clear(struct live_window *window, uint64_t seq)
{
    *window = (struct live_window){.seq = seq, .by_pwrite = !guard_in_force()};
    for (unsigned i = 0; i < PLACE_FILES; i++)
        window->files[i].fd = -1;
}

/* ---- one file ---- */

int live_make(const struct place *place, struct live_window *window, unsigned index)
{
    char name[SPOOL_NAME_MAX + 1];
    struct stat status;
    place_name(place, window->seq, index, SPOOL_LIVE, name);
    window->files[index] = (struct live_file){.fd = -1};
    int fd = openat(place->fd, name, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (fd < 0)
        return -errno;
    if (fstat(fd, &status) != 0) {
        int error = -errno;
        close(fd);
        return error;
    }
    if ((status.st_mode & 0777) != 0600) /* an umask that takes from the owner */
        fchmod(fd, 0600);
    window->files[index] = (struct live_file){.fd = fd, .made = true, .device = status.st_dev, .inode = status.st_ino};
    return 0;
}

static bool file_is(const struct live_file *file, const struct stat *status)
{
    return S_ISREG(status->st_mode) && status->st_dev == file->device && status->st_ino == file->inode;
}

int live_open(struct place *place, const struct live_window *window, unsigned index)
{
    struct stat status;
    char name[SPOOL_NAME_MAX + 1];
    int error = place_open(place);
    if (error < 0)
        return error;
    place_name(place, window->seq, index, SPOOL_LIVE, name);
    int fd = openat(place->fd, name, O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (fd < 0)
        return place_says_gone(errno) ? -ESTALE : -errno;
    if (fstat(fd, &status) != 0 || !file_is(&window->files[index], &status)) {
        close(fd);
        return -ESTALE;
    }
    return fd;
}

int live_acquire(struct place *place, struct live_window *window, unsigned index)
{
    struct live_file *file = &window->files[index];
    if (file->fd >= 0)
        return 0;
    int fd = live_open(place, window, index);
    if (fd < 0)
        return fd;
    file->fd = fd;
    return 0;
}

bool live_is_whole(const struct live_file *file)
{
    struct stat status;
    return fstat(file->fd, &status) == 0 && file_is(file, &status) && (uint64_t)status.st_size == file->end;
}

/* By name, for files that were taken away while we held them. */
static bool file_is_there(const struct place *place, const struct live_window *window, unsigned index)
{
    const struct live_file *file = &window->files[index];
    struct stat status;
    int error = place_look(place, window->seq, index, SPOOL_LIVE, &status);
    if (error < 0)
        return !place_says_gone(-error);
    return file_is(file, &status) && (index == PLACE_METADATA || (uint64_t)status.st_size == file->end);
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

/* ---- all of a window ---- */

void live_lock(struct live_window *window)
{
    if (!window->locked)
        window->locked = flock(window->files[PLACE_METADATA].fd, LOCK_EX | LOCK_NB) == 0;
}

bool live_are_there(const struct place *place, const struct live_window *window)
{
    if (!place_is_there(place))
        return false;
    for (unsigned i = 0; i < PLACE_FILES; i++) {
        if (window->files[i].made && !file_is_there(place, window, i))
            return false;
    }
    return true;
}

void live_close(struct live_window *window)
{
    for (unsigned i = 0; i < PLACE_FILES; i++)
        file_close(&window->files[i]);
}

void live_drop(struct live_window *window)
{
    for (unsigned i = 0; i < PLACE_FILES; i++) {
        file_unmap(&window->files[i]);
        file_close(&window->files[i]);
    }
}

void live_remove(const struct place *place, struct live_window *window)
{
    for (unsigned i = 0; i < PLACE_FILES; i++) {
        struct live_file *file = &window->files[i];
        struct stat status;
        if (file->made && place_look(place, window->seq, i, SPOOL_LIVE, &status) == 0 && file_is(file, &status))
            place_remove(place, window->seq, i, SPOOL_LIVE);
        file_unmap(file);
        file_close(file);
        file->made = false;
    }
    window->open = window->locked = false;
}

uint64_t live_bytes(const struct live_window *window)
{
    uint64_t bytes = window->padded;
    for (unsigned i = 0; i < METRIC_COUNT; i++)
        bytes += window->files[i].end;
    return bytes;
}

/* ---- stores ---- */

static void to_pwrite(struct live_window *window)
{
    window->by_pwrite = true;
    for (unsigned i = 0; i < METRIC_COUNT; i++)
        file_unmap(&window->files[i]);
}

/* The mapping grows in steps that double and reaches beyond the file's end, so
 * that an append needs no system call for it. */
static bool file_map(struct live_file *file)
{
    size_t length = file->map_length ? file->map_length : MAP_FIRST;
    while (length < file->end)
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

void live_map(struct live_window *window, unsigned index)
{
    if (!window->by_pwrite && !file_map(&window->files[index]))
        to_pwrite(window);
}

bool live_store_mapped(struct live_window *window, unsigned index, uint64_t offset, const char *digits)
{
    struct live_file *file = &window->files[index];
    uint64_t word;
    if (file->map == NULL || offset + sizeof word > file->map_length)
        return false;
    memcpy(&word, digits, sizeof word);
    return guard_store((uint64_t *)(void *)(file->map + offset), word);
}

static int store_written(struct place *place, struct live_window *window, unsigned index, uint64_t offset, const char *digits)
{
    int error = live_acquire(place, window, index);
    if (error < 0)
        return error;
    if (!live_is_whole(&window->files[index]))
        return -ESTALE;
    size_t written = live_write(window->files[index].fd, digits, SPOOL_COUNT_DIGITS, offset);
    return written == SPOOL_COUNT_DIGITS ? 0 : errno ? -errno : -EIO;
}

int live_store(struct place *place, struct live_window *window, unsigned index, uint64_t offset, const char *digits)
{
    if (!window->by_pwrite) {
        if (live_store_mapped(window, index, offset, digits))
            return 0;
        to_pwrite(window);
    }
    return store_written(place, window, index, offset, digits);
}

size_t live_write(int fd, const char *bytes, size_t length, uint64_t offset)
{
    size_t written = 0;
    errno = 0;
    while (written < length) {
        ssize_t got = pwrite(fd, bytes + written, length - written, (off_t)(offset + written));
        if (got < 0 && errno == EINTR) {
            errno = 0;
            continue;
        }
        if (got <= 0)
            break;
        written += (size_t)got;
    }
    return written;
}
