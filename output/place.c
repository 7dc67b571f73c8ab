/* SPDX-License-Identifier: MIT */
#include "output/place.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h> /* PATH_MAX */
#include <string.h>
#include <sys/vfs.h> /* fstatfs */
#include <unistd.h>

#include "hooks/log.h" /* log_format */
#include "hooks/mem.h"

bool place_init(struct place *place, const char *path, const char *host, pid_t pid, uint64_t start_us)
{
    size_t length = strlen(path) + 1;
    *place = (struct place){.path = mem_alloc(length), .fd = -1, .owner = {.pid = (uint64_t)pid, .start_us = start_us}};
    if (place->path == NULL)
        return false;
    memcpy(place->path, path, length);
    spool_host_clean(host, place->owner.host, sizeof place->owner.host);
    return true;
}

void place_free(struct place *place)
{
    place_close(place);
    mem_free(place->path);
}

/* ---- the directory ---- */

/* The umask is the whole process's, so it is not touched, and may have left us no
 * right to what we made: then by way of /proc (of this thread, whose descriptors
 * are its own). A link that took the directory's place is not followed. */
static int mode_set(int above, const char *name, mode_t mode)
{
    char link[48];
    int fd = openat(above, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    bool readable = fd >= 0;
    if (!readable)
        fd = openat(above, name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0)
        return -errno;
    log_format(link, sizeof link, "/proc/thread-self/fd/%d", fd);
    int result = (readable ? fchmod(fd, mode) : chmod(link, mode)) == 0 ? 0 : -errno;
    close(fd);
    return result;
}

/* One of those above it; as mkdir -p does, we may go on in it whatever the umask. */
static void parent_make(const char *path)
{
    struct stat status;
    if (mkdir(path, 0755) == 0 && stat(path, &status) == 0 && (status.st_mode & 0700) != 0700)
        mode_set(AT_FDCWD, path, (status.st_mode & 0777) | 0700);
}

/* Makes what is missing above it. */
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
        parent_make(part);
    }
}

/* The directory above path, and the name in it. */
static int parent_open(const char *path, const char **name)
{
    char above[PATH_MAX];
    const char *slash = strrchr(path, '/');
    size_t length = (size_t)(slash - path);
    if (length >= sizeof above)
        return -ENAMETOOLONG;
    memcpy(above, path, length);
    strcpy(above + length, length ? "" : "/");
    *name = slash + 1;
    int fd = open(above, O_PATH | O_DIRECTORY | O_CLOEXEC);
    return fd < 0 ? -errno : fd;
}

/* Below one parent that is held, or whoever owns one of the folders above could have
 * us change the mode of another. */
static int directory_make_in(int parent, const char *name)
{
    mode_t mode = geteuid() == 0 ? 01733 : 0700;
    if (mkdirat(parent, name, mode) != 0)
        return errno == EEXIST ? 0 : -errno;
    return mode_set(parent, name, mode);
}

static int directory_make(const char *given)
{
    char path[PATH_MAX];
    const char *name;
    size_t length = strlen(given);
    if (length >= sizeof path)
        return -ENAMETOOLONG;
    memcpy(path, given, length + 1);
    while (length > 1 && path[length - 1] == '/')
        path[--length] = '\0';
    int parent = parent_open(path, &name);
    if (parent == -ENOENT) {
        parents_make(path);
        parent = parent_open(path, &name);
    }
    if (parent < 0)
        return parent;
    int made = directory_make_in(parent, name);
    close(parent);
    return made;
}

int place_open(struct place *place)
{
    if (place->fd >= 0)
        return 0;
    if (place->path[0] != '/')
        return -EINVAL;
    place->fd = open(place->path, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (place->fd < 0 && errno == ENOENT) {
        int made = directory_make(place->path);
        if (made < 0)
            return made;
        place->fd = open(place->path, O_PATH | O_DIRECTORY | O_CLOEXEC);
    }
    return place->fd < 0 ? -errno : 0;
}

void place_close(struct place *place)
{
    if (place->fd >= 0)
        close(place->fd);
    place->fd = -1;
}

bool place_is_remote(const struct place *place)
{
    static const uint32_t kinds[] = {
        0x65735546, /* FUSE, virtiofs */
        0x6969,     /* NFS */
        0xff534d42, 0xfe534d42, 0x517b, /* SMB */
        0x01021997, /* 9P */
        0x00c36400, /* Ceph */
        0x5346414f, /* AFS */
        0x0bd00bd0, 0x47504653, 0x19830326, /* Lustre, GPFS, BeeGFS */
    };
    struct statfs status;
    if (fstatfs(place->fd, &status) != 0)
        return false;
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        if ((uint32_t)status.f_type == kinds[i])
            return true;
    }
    return false;
}

bool place_says_gone(int error)
{
    return error == ENOENT || error == ENOTDIR || error == ELOOP;
}

bool place_is_there(const struct place *place)
{
    struct stat held, named;
    if (fstat(place->fd, &held) != 0)
        return false;
    if (stat(place->path, &named) != 0)
        return !place_says_gone(errno);
    return held.st_dev == named.st_dev && held.st_ino == named.st_ino;
}

void place_ignore(const struct place *place)
{
    int fd = openat(place->fd, SPOOL_IGNORE_NAME, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (fd < 0)
        return;
    fchmod(fd, 0600);
    if (write(fd, "*\n", 2) != 2)
        unlinkat(place->fd, SPOOL_IGNORE_NAME, 0);
    close(fd);
}

/* ---- names in it ---- */

void place_name(const struct place *place, uint64_t seq, unsigned file, enum spool_state state, char *text)
{
    struct spool_name name = place->owner;
    name.seq = seq;
    name.state = state;
    if (file != PLACE_METADATA)
        strncpy(name.metric, metric_name((enum metric)file), SPOOL_METRIC_MAX);
    spool_name_format(&name, text, SPOOL_NAME_MAX + 1);
}

int place_look(const struct place *place, uint64_t seq, unsigned file, enum spool_state state, struct stat *status)
{
    char name[SPOOL_NAME_MAX + 1];
    place_name(place, seq, file, state, name);
    return fstatat(place->fd, name, status, AT_SYMLINK_NOFOLLOW) == 0 ? 0 : -errno;
}

int place_remove(const struct place *place, uint64_t seq, unsigned file, enum spool_state state)
{
    char name[SPOOL_NAME_MAX + 1];
    place_name(place, seq, file, state, name);
    return unlinkat(place->fd, name, 0) == 0 ? 0 : -errno;
}
