/* SPDX-License-Identifier: MIT
 *
 * One line a system call. x86-64: its struct stat is libc's.
 */
#include "hooks/direct.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>     /* renameat */
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <sys/vfs.h>     /* fstatfs */
#include <time.h>
#include <unistd.h>

#include "hooks/raw.h"

#if !defined(__x86_64__)
#error "direct.c knows x86-64 only"
#endif

#define ERRORS 4095ul /* a result as high as that is a negative errno */

static long answer(long result)
{
    if ((unsigned long)result < -ERRORS)
        return result;
    errno = (int)-result;
    return -1;
}

static long call3(long number, long a, long b, long c)
{
    return answer(raw3(number, a, b, c));
}

/* ---- files ---- */

static _Atomic bool shares_table;

void direct_shares_descriptors(bool yes)
{
    atomic_store(&shares_table, yes);
}

/* An application that closed one, and opens what is to take its place, counts on
 * the number. */
static bool would_take_a_standard_one(void)
{
    for (int fd = 0; atomic_load(&shares_table) && fd <= 2; fd++)
        if (raw2(SYS_fcntl, fd, F_GETFD) < 0)
            return true;
    return false;
}

int openat(int directory, const char *path, int flags, ...)
{
    va_list args;
    va_start(args, flags);
    int mode = flags & (O_CREAT | __O_TMPFILE) ? va_arg(args, int) : 0;
    va_end(args);
    return (int)answer(would_take_a_standard_one() ? -EBADF : raw4(SYS_openat, directory, (long)path, flags, mode));
}

int open(const char *path, int flags, ...)
{
    va_list args;
    va_start(args, flags);
    int mode = flags & (O_CREAT | __O_TMPFILE) ? va_arg(args, int) : 0;
    va_end(args);
    return openat(AT_FDCWD, path, flags, mode);
}

int fstatat(int directory, const char *path, struct stat *status, int flags)
{
    return (int)answer(raw4(SYS_newfstatat, directory, (long)path, (long)status, flags));
}

ssize_t pread(int fd, void *bytes, size_t size, off_t at)
{
    return answer(raw4(SYS_pread64, fd, (long)bytes, (long)size, at));
}

ssize_t pwrite(int fd, const void *bytes, size_t size, off_t at)
{
    return answer(raw4(SYS_pwrite64, fd, (long)bytes, (long)size, at));
}

int renameat(int from_directory, const char *from, int to_directory, const char *to)
{
    return (int)answer(raw4(SYS_renameat, from_directory, (long)from, to_directory, (long)to));
}

int close(int fd) { return (int)call3(SYS_close, fd, 0, 0); }
ssize_t read(int fd, void *bytes, size_t size) { return call3(SYS_read, fd, (long)bytes, (long)size); }
ssize_t write(int fd, const void *bytes, size_t size) { return call3(SYS_write, fd, (long)bytes, (long)size); }
off_t lseek(int fd, off_t at, int whence) { return call3(SYS_lseek, fd, at, whence); }
int ftruncate(int fd, off_t size) { return (int)call3(SYS_ftruncate, fd, size, 0); }
int fstat(int fd, struct stat *status) { return (int)call3(SYS_fstat, fd, (long)status, 0); }
int stat(const char *path, struct stat *status) { return fstatat(AT_FDCWD, path, status, 0); }
int fstatfs(int fd, struct statfs *status) { return (int)call3(SYS_fstatfs, fd, (long)status, 0); }
int chmod(const char *path, mode_t mode) { return (int)call3(SYS_chmod, (long)path, mode, 0); }
int fchmod(int fd, mode_t mode) { return (int)call3(SYS_fchmod, fd, mode, 0); }
int flock(int fd, int operation) { return (int)call3(SYS_flock, fd, operation, 0); }
int mkdir(const char *path, mode_t mode) { return (int)call3(SYS_mkdir, (long)path, mode, 0); }
int mkdirat(int directory, const char *path, mode_t mode) { return (int)call3(SYS_mkdirat, directory, (long)path, mode); }
int unlinkat(int directory, const char *path, int flags) { return (int)call3(SYS_unlinkat, directory, (long)path, flags); }
ssize_t readlink(const char *path, char *text, size_t size) { return call3(SYS_readlink, (long)path, (long)text, (long)size); }

char *getcwd(char *path, size_t size)
{
    return call3(SYS_getcwd, (long)path, (long)size, 0) < 0 ? NULL : path;
}

/* ---- memory ---- */

void *mmap(void *where, size_t size, int protection, int flags, int fd, off_t at)
{
    return (void *)answer(raw6(SYS_mmap, (long)where, (long)size, protection, flags, fd, at));
}

void *mremap(void *block, size_t before, size_t after, int flags, ...)
{
    va_list args;
    va_start(args, flags);
    void *where = flags & MREMAP_FIXED ? va_arg(args, void *) : NULL;
    va_end(args);
    return (void *)answer(raw6(SYS_mremap, (long)block, (long)before, (long)after, flags, (long)where, 0));
}

int munmap(void *block, size_t size) { return (int)call3(SYS_munmap, (long)block, (long)size, 0); }
int mprotect(void *block, size_t size, int protection) { return (int)call3(SYS_mprotect, (long)block, (long)size, protection); }
int madvise(void *block, size_t size, int advice) { return (int)call3(SYS_madvise, (long)block, (long)size, advice); }

/* ---- who and when ---- */

pid_t getpid(void) { return (pid_t)raw0(SYS_getpid); }
pid_t getppid(void) { return (pid_t)raw0(SYS_getppid); }
uid_t geteuid(void) { return (uid_t)raw0(SYS_geteuid); }
int uname(struct utsname *names) { return (int)call3(SYS_uname, (long)names, 0, 0); }
int sched_yield(void) { return (int)raw0(SYS_sched_yield); }

typedef int (*clock_function)(clockid_t, struct timespec *);
static _Atomic(clock_function) libc_clock;

/* By a handle of libc itself: every search by scope would find who stands in front. */
void direct_start(void)
{
    void *libc = dlopen("libc.so.6", RTLD_LAZY | RTLD_NOLOAD);
    if (libc)
        atomic_store_explicit(&libc_clock, (clock_function)dlsym(libc, "clock_gettime"), memory_order_relaxed);
}

int clock_gettime(clockid_t clock, struct timespec *time)
{
    clock_function function = atomic_load_explicit(&libc_clock, memory_order_relaxed);
    return function ? function(clock, time) : (int)call3(SYS_clock_gettime, clock, (long)time, 0);
}
