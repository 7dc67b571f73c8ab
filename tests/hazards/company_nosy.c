/* SPDX-License-Identifier: MIT
 *
 * A preloaded library like those that fake the time or the owner of files: stands
 * in front of libc as we do, and counts. What is called from within libaprof
 * itself is counted apart; so the same program shows the same counts with and
 * without libaprof, on whichever side of it this one stands.
 *
 *   long nosy_calls(const char *name)  calls of the application, also those that
 *                                      libaprof passes on
 *   long nosy_ours(const char *name)   calls that libaprof itself makes
 *
 * NOSY_LOG names a file that gets a line for each call that ends the image.
 * NOSY_EARLY makes its constructor start a thread, change signal actions and
 * fork, before or after the constructors of others.
 */
#include <dlfcn.h>
#include <fcntl.h>
#include <link.h>
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* Asked of the kernel or a heap: libaprof never calls libc for these. */
#define ASKED(X) \
    X(malloc) X(calloc) X(realloc) X(free) X(openat) X(open) X(close) X(read) X(write) X(pread) X(pwrite) \
    X(mmap) X(munmap) X(mremap) X(madvise) X(mprotect) X(fstat) X(getpid) X(clock_gettime) X(ftruncate)
/* Passed on: each call of the application goes through both libraries, once. */
#define PASSED(X) \
    X(pthread_create) X(sigaction) X(signal) X(pthread_sigmask) X(sigprocmask) X(fork) X(exit) X(_exit) X(quick_exit) \
    X(execve) X(execv) X(execvp) X(execl) X(execlp) X(execle) X(posix_spawn)

enum name {
#define X(name) N_##name,
    ASKED(X) PASSED(X)
#undef X
    NAMES
};
static const char *const names[NAMES] = {
#define X(name) #name,
    ASKED(X) PASSED(X)
#undef X
};
static _Atomic long calls[NAMES], ours[NAMES];
static void *nexts[NAMES];
static uintptr_t ours_begin, ours_end;

static int find_ours(struct dl_phdr_info *info, size_t size, void *unused)
{
    if (!info->dlpi_name || !strstr(info->dlpi_name, "libaprof"))
        return 0;
    for (int i = 0; i < info->dlpi_phnum; i++)
        if (info->dlpi_phdr[i].p_type == PT_LOAD)
            ours_end = info->dlpi_addr + info->dlpi_phdr[i].p_vaddr + info->dlpi_phdr[i].p_memsz;
    ours_begin = info->dlpi_addr;
    return 1;
}

static void count(enum name name, void *caller)
{
    bool by_us = (uintptr_t)caller - ours_begin < ours_end - ours_begin;
    atomic_fetch_add(by_us ? &ours[name] : &calls[name], 1);
}

static void *next(enum name name)
{
    if (!nexts[name])
        nexts[name] = dlsym(RTLD_NEXT, names[name]);
    return nexts[name];
}

/* A call that is passed on comes from libaprof where that stands before us. */
static void count_passed(enum name name)
{
    atomic_fetch_add(&calls[name], 1);
}

static void note_end(enum name name)
{
    const char *path = getenv("NOSY_LOG");
    count_passed(name);
    if (!path)
        return;
    long fd = syscall(SYS_openat, AT_FDCWD, path, O_WRONLY | O_CREAT | O_APPEND, 0600);
    syscall(SYS_write, fd, names[name], strlen(names[name]));
    syscall(SYS_write, fd, "\n", 1);
    syscall(SYS_close, fd);
}

static long look_up(_Atomic long *counts, const char *wanted)
{
    for (int i = 0; i < NAMES; i++)
        if (strcmp(names[i], wanted) == 0)
            return counts[i];
    return -1;
}
long nosy_calls(const char *name) { return look_up(calls, name); }
long nosy_ours(const char *name) { return look_up(ours, name); }

/* ---- asked ---- */

extern void *__libc_malloc(size_t), *__libc_calloc(size_t, size_t), *__libc_realloc(void *, size_t);
extern void __libc_free(void *);
#define CALLER __builtin_return_address(0)
void *malloc(size_t size) { count(N_malloc, CALLER); return __libc_malloc(size); }
void *calloc(size_t n, size_t size) { count(N_calloc, CALLER); return __libc_calloc(n, size); }
void *realloc(void *block, size_t size) { count(N_realloc, CALLER); return __libc_realloc(block, size); }
void free(void *block) { count(N_free, CALLER); __libc_free(block); }

#define ASK(result, name, parameters, arguments)                   \
    result name parameters                                         \
    {                                                              \
        count(N_##name, CALLER);                                   \
        return ((result(*) parameters)next(N_##name)) arguments;   \
    }
ASK(int, close, (int fd), (fd))
ASK(ssize_t, read, (int fd, void *bytes, size_t size), (fd, bytes, size))
ASK(ssize_t, write, (int fd, const void *bytes, size_t size), (fd, bytes, size))
ASK(ssize_t, pread, (int fd, void *bytes, size_t size, off_t at), (fd, bytes, size, at))
ASK(ssize_t, pwrite, (int fd, const void *bytes, size_t size, off_t at), (fd, bytes, size, at))
ASK(void *, mmap, (void *where, size_t size, int protection, int flags, int fd, off_t at), (where, size, protection, flags, fd, at))
ASK(int, munmap, (void *block, size_t size), (block, size))
ASK(int, madvise, (void *block, size_t size, int advice), (block, size, advice))
ASK(int, mprotect, (void *block, size_t size, int protection), (block, size, protection))
ASK(int, fstat, (int fd, struct stat *status), (fd, status))
ASK(pid_t, getpid, (void), ())
ASK(int, clock_gettime, (clockid_t clock, struct timespec *time), (clock, time))
ASK(int, ftruncate, (int fd, off_t size), (fd, size))

int openat(int directory, const char *path, int flags, ...)
{
    va_list args;
    va_start(args, flags);
    int mode = va_arg(args, int);
    va_end(args);
    count(N_openat, CALLER);
    return ((int (*)(int, const char *, int, ...))next(N_openat))(directory, path, flags, mode);
}

int open(const char *path, int flags, ...)
{
    va_list args;
    va_start(args, flags);
    int mode = va_arg(args, int);
    va_end(args);
    count(N_open, CALLER);
    return ((int (*)(const char *, int, ...))next(N_open))(path, flags, mode);
}

void *mremap(void *block, size_t before, size_t after, int flags, ...)
{
    va_list args;
    va_start(args, flags);
    void *where = va_arg(args, void *);
    va_end(args);
    count(N_mremap, CALLER);
    return ((void *(*)(void *, size_t, size_t, int, ...))next(N_mremap))(block, before, after, flags, where);
}

/* ---- passed on ---- */

#define PASS(result, name, parameters, arguments)                  \
    result name parameters                                         \
    {                                                              \
        count_passed(N_##name);                                    \
        return ((result(*) parameters)next(N_##name)) arguments;   \
    }
typedef void (*handler)(int);
PASS(int, pthread_create, (pthread_t *thread, const pthread_attr_t *attr, void *(*start)(void *), void *arg), (thread, attr, start, arg))
PASS(int, sigaction, (int signo, const struct sigaction *act, struct sigaction *old), (signo, act, old))
PASS(handler, signal, (int signo, handler function), (signo, function))
PASS(int, pthread_sigmask, (int how, const sigset_t *set, sigset_t *old), (how, set, old))
PASS(int, sigprocmask, (int how, const sigset_t *set, sigset_t *old), (how, set, old))
PASS(pid_t, fork, (void), ())
PASS(int, posix_spawn,
     (pid_t *pid, const char *path, const posix_spawn_file_actions_t *actions, const posix_spawnattr_t *attributes,
      char *const argv[], char *const envp[]),
     (pid, path, actions, attributes, argv, envp))

#define END(result, name, parameters, arguments)                   \
    result name parameters                                         \
    {                                                              \
        note_end(N_##name);                                        \
        ((void (*) parameters)next(N_##name)) arguments;           \
        __builtin_trap();                                          \
    }
END(void, exit, (int status), (status))
END(void, _exit, (int status), (status))
END(void, quick_exit, (int status), (status))

#define EXEC(name, parameters, arguments)                          \
    int name parameters                                            \
    {                                                              \
        note_end(N_##name);                                        \
        return ((int (*) parameters)next(N_##name)) arguments;     \
    }
EXEC(execve, (const char *path, char *const argv[], char *const envp[]), (path, argv, envp))
EXEC(execv, (const char *path, char *const argv[]), (path, argv))
EXEC(execvp, (const char *file, char *const argv[]), (file, argv))
/* The test passes one argument and, to execle, an environment. */
EXEC(execl, (const char *path, const char *first, ...), (path, first, NULL))
EXEC(execlp, (const char *file, const char *first, ...), (file, first, NULL))
int execle(const char *path, const char *first, ...)
{
    va_list args;
    va_start(args, first);
    while (va_arg(args, char *))
        ;
    char **envp = va_arg(args, char **);
    va_end(args);
    note_end(N_execle);
    return ((int (*)(const char *, const char *, ...))next(N_execle))(path, first, NULL, envp);
}

/* ---- early ---- */

static void on_early(int signo)
{
}

static void *early_thread(void *arg)
{
    return arg;
}

static void act_early(void)
{
    struct sigaction action = {.sa_handler = on_early}, old;
    pthread_t thread;
    for (int signo = 1; signo < 32; signo++)
        if (signo != SIGKILL && signo != SIGSTOP && signo != SIGCHLD && signo != SIGPIPE && signo != SIGINT)
            sigaction(signo, &action, &old), sigaction(signo, &old, NULL);
    sigaction(SIGSEGV, &action, NULL); /* these stay: wishes from before the claim */
    sigaction(SIGURG, &action, NULL);
    if (pthread_create(&thread, NULL, early_thread, NULL) == 0)
        pthread_join(thread, NULL);
    pid_t child = fork();
    if (child == 0)
        _exit(0);
    waitpid(child, NULL, 0);
}

__attribute__((constructor)) static void begin(void)
{
    dl_iterate_phdr(find_ours, NULL);
    for (int i = 0; i < NAMES; i++)
        next(i);
    if (getenv("NOSY_EARLY"))
        act_early();
}
