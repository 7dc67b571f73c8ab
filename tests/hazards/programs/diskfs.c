/* SPDX-License-Identifier: MIT
 *
 * diskfs: a file system that fails on command. A folder shown a second time, by
 * way of FUSE; before each call it reads a file of orders, and does as they say.
 *
 *   diskfs BACKING MOUNTPOINT ORDERS [deaf] [direct] [locks] [-o FUSE-OPTION]...
 *
 * Orders, one a line, "CALL ACTION [AFTER]": CALL is open create read write flush fsync
 * unlink rename truncate getattr flock or all; ACTION is the name of an errno, "N" ms
 * of delay, or hang: until the orders change. Answers to a killed caller ("heed"
 * is the default; deaf: it does not). direct: no shared mappings.
 * locks: flock is ours too (without, the kernel keeps it).
 */
#define FUSE_USE_VERSION 31
#include <fuse.h>

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <time.h>
#include <unistd.h>

static int backing;
static const char *orders;
static bool deaf, direct, locks;

/* ---- orders ---- */

static const struct { const char *name; int error; } errors[] = {
    {"ENOSPC", ENOSPC}, {"EDQUOT", EDQUOT}, {"EIO", EIO}, {"EROFS", EROFS}, {"EACCES", EACCES}, {"ENOLCK", ENOLCK}, {"ENOSYS", ENOSYS}, {"ESTALE", ESTALE},
};

static int error_of(const char *action)
{
    for (size_t i = 0; i < sizeof errors / sizeof *errors; i++) {
        if (strcmp(errors[i].name, action) == 0)
            return errors[i].error;
    }
    return 0;
}

static void pause_ms(long ms)
{
    struct timespec span = {ms / 1000, ms % 1000 * 1000000};
    nanosleep(&span, NULL);
}

static bool order_for(const char *call, char *action)
{
    char text[4096], name[32];
    bool found = false;
    int fd = open(orders, O_RDONLY | O_CLOEXEC);
    ssize_t got = fd < 0 ? 0 : read(fd, text, sizeof text - 1);
    if (fd >= 0)
        close(fd);
    text[got > 0 ? got : 0] = '\0';
    for (char *line = strtok(text, "\n"); line != NULL && !found; line = strtok(NULL, "\n"))
        found = sscanf(line, "%31s %31s", name, action) == 2 && (strcmp(name, call) == 0 || strcmp(name, "all") == 0);
    return found;
}

/* 0, or the negative errno that is to be answered. */
static int obey(const char *call)
{
    char action[32];
    while (order_for(call, action)) {
        int error = error_of(action);
        if (error != 0)
            return -error;
        if (strcmp(action, "hang") != 0) {
            pause_ms(atol(action));
            return 0;
        }
        pause_ms(5);
        if (!deaf && fuse_interrupted())
            return -EINTR;
    }
    return 0;
}

#define OBEY(call)                    \
    do {                              \
        int told = obey(call);        \
        if (told < 0)                 \
            return told;              \
    } while (0)

/* ---- the folder ---- */

static const char *inside(const char *path)
{
    return path[1] != '\0' ? path + 1 : ".";
}

static int answer(long result)
{
    return result < 0 ? -errno : (int)result;
}

/* Files belong to who made them. */
static void give(const char *path)
{
    struct fuse_context *caller = fuse_get_context();
    (void)!fchownat(backing, inside(path), caller->uid, caller->gid, AT_SYMLINK_NOFOLLOW);
}

static int do_getattr(const char *path, struct stat *status, struct fuse_file_info *file)
{
    OBEY("getattr");
    return answer(fstatat(backing, inside(path), status, AT_SYMLINK_NOFOLLOW));
}

static int do_readdir(const char *path, void *buffer, fuse_fill_dir_t fill, off_t offset, struct fuse_file_info *file, enum fuse_readdir_flags flags)
{
    OBEY("readdir");
    int fd = openat(backing, inside(path), O_RDONLY | O_DIRECTORY);
    DIR *dir = fd < 0 ? NULL : fdopendir(fd);
    struct dirent *entry;
    if (dir == NULL)
        return -errno;
    while ((entry = readdir(dir)) != NULL)
        fill(buffer, entry->d_name, NULL, 0, 0);
    closedir(dir);
    return 0;
}

static int opened(int fd, struct fuse_file_info *file)
{
    if (fd < 0)
        return -errno;
    file->fh = (uint64_t)fd;
    file->direct_io = direct;
    return 0;
}

static int do_open(const char *path, struct fuse_file_info *file)
{
    OBEY("open");
    return opened(openat(backing, inside(path), file->flags & ~O_NOFOLLOW), file);
}

static int do_create(const char *path, mode_t mode, struct fuse_file_info *file)
{
    OBEY("create");
    int error = opened(openat(backing, inside(path), file->flags | O_CREAT, mode), file);
    if (error == 0)
        give(path);
    return error;
}

static int do_read(const char *path, char *bytes, size_t size, off_t offset, struct fuse_file_info *file)
{
    OBEY("read");
    return answer(pread((int)file->fh, bytes, size, offset));
}

static int do_write(const char *path, const char *bytes, size_t size, off_t offset, struct fuse_file_info *file)
{
    OBEY("write");
    return answer(pwrite((int)file->fh, bytes, size, offset));
}

static int do_flush(const char *path, struct fuse_file_info *file)
{
    OBEY("flush");
    return answer(close(dup((int)file->fh)));
}

static int do_fsync(const char *path, int data, struct fuse_file_info *file)
{
    OBEY("fsync");
    return 0;
}

static int do_release(const char *path, struct fuse_file_info *file)
{
    close((int)file->fh);
    return 0;
}

static int do_unlink(const char *path)
{
    OBEY("unlink");
    return answer(unlinkat(backing, inside(path), 0));
}

static int do_rmdir(const char *path)
{
    OBEY("unlink");
    return answer(unlinkat(backing, inside(path), AT_REMOVEDIR));
}

static int do_rename(const char *from, const char *to, unsigned flags)
{
    OBEY("rename");
    return answer(renameat(backing, inside(from), backing, inside(to)));
}

static int do_truncate(const char *path, off_t size, struct fuse_file_info *file)
{
    OBEY("truncate");
    if (file != NULL)
        return answer(ftruncate((int)file->fh, size));
    int fd = openat(backing, inside(path), O_WRONLY);
    int result = answer(fd < 0 ? fd : ftruncate(fd, size));
    if (fd >= 0)
        close(fd);
    return result;
}

static int do_mkdir(const char *path, mode_t mode)
{
    OBEY("create");
    int error = answer(mkdirat(backing, inside(path), mode));
    if (error == 0)
        give(path);
    return error;
}

static int do_chmod(const char *path, mode_t mode, struct fuse_file_info *file)
{
    return answer(fchmodat(backing, inside(path), mode, 0));
}

static int do_utimens(const char *path, const struct timespec times[2], struct fuse_file_info *file)
{
    return answer(utimensat(backing, inside(path), times, AT_SYMLINK_NOFOLLOW));
}

static int do_statfs(const char *path, struct statvfs *status)
{
    return answer(fstatvfs(backing, status));
}

static int do_flock(const char *path, struct fuse_file_info *file, int operation)
{
    OBEY("flock");
    return answer(flock((int)file->fh, operation));
}

static void wake(int signal)
{
}

static void *do_init(struct fuse_conn_info *connection, struct fuse_config *config)
{
    struct sigaction action = {.sa_handler = wake};
    sigaction(SIGUSR1, &action, NULL);
    config->intr = !deaf;
    config->intr_signal = SIGUSR1;
    return NULL;
}

static struct fuse_operations operations = {
    .init = do_init,
    .getattr = do_getattr, .readdir = do_readdir, .open = do_open, .create = do_create, .read = do_read, .write = do_write, .flush = do_flush,
    .fsync = do_fsync, .release = do_release, .unlink = do_unlink, .rmdir = do_rmdir, .rename = do_rename, .truncate = do_truncate,
    .mkdir = do_mkdir, .chmod = do_chmod, .utimens = do_utimens, .statfs = do_statfs,
};

/* ---- start ---- */

int main(int argc, char **argv)
{
    if (argc < 4)
        return 2;
    backing = open(argv[1], O_RDONLY | O_DIRECTORY);
    orders = argv[3];
    char foreground[] = "-f", option[] = "-o", permissions[] = "default_permissions";
    char *arguments[32] = {argv[0], argv[2], foreground, option, permissions};
    int count = 5;
    for (int i = 4; i < argc && count < 30; i++) {
        deaf |= strcmp(argv[i], "deaf") == 0;
        direct |= strcmp(argv[i], "direct") == 0;
        locks |= strcmp(argv[i], "locks") == 0;
        if (strcmp(argv[i], "-o") == 0 || argv[i - 1][0] == '-')
            arguments[count++] = argv[i];
    }
    if (locks)
        operations.flock = do_flock;
    umask(0);
    return backing < 0 ? 1 : fuse_main(count, arguments, &operations, NULL);
}
