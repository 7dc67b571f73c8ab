/* SPDX-License-Identifier: MIT
 *
 * The functions of libc that we stand in front of, besides the signal ones
 * (hooks/sigaction.c): the birth of threads and the end of the process image.
 * Each does its own work in a process that is profiled and is libc's in every
 * other one, also before our constructor ran and in vfork children.
 *
 * Runs in: [interposer]. _exit and execve may be called in signal handlers and
 * between vfork and exec: what they call here is async-signal-safe and writes
 * nothing in a vfork child.
 */
#include <errno.h>
#include <grp.h> /* setgroups, initgroups */
#include <pthread.h>
#include <sched.h> /* CLONE_NEW* */
#include <spawn.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <unistd.h>

#include "hooks/clock.h"
#include "hooks/log.h"
#include "hooks/raw.h"
#include "hooks/real.h"
#include "hooks/sigaction.h"
#include "hooks/threads.h"
#include "preload/fork.h"
#include "preload/init.h"
#include "sampler/loop.h"

#define EXPORT __attribute__((visibility("default")))

extern char **environ;

/* The image is about to be replaced: one more tick, the window sealed. */
static void before_exec(void)
{
    int saved = errno;
    init_before_exec();
    sigaction_before_exec();
    errno = saved;
}

/* It was not. */
static int after_exec(int result)
{
    int saved = errno;
    init_after_exec();
    sigaction_after_exec();
    errno = saved;
    return result;
}

EXPORT int pthread_create(pthread_t *thread, const pthread_attr_t *attr, void *(*start)(void *), void *arg)
{
    init_look_again();
    return threads_create(thread, attr, start, arg);
}

/* Every start of an interpreter calls this, once (Python/thread_pthread.h,
 * init_condattr), and hardly anything else does. */
EXPORT int pthread_condattr_setclock(pthread_condattr_t *attr, clockid_t clock)
{
    init_look_again();
    return real_pthread_condattr_setclock(attr, clock);
}

static bool step_aside(bool needed)
{
    int saved = errno;
    bool aside = needed && init_is_active() && fork_step_aside();
    errno = saved;
    return aside;
}

static int step_back(bool aside, int result)
{
    int saved = errno;
    if (aside)
        fork_step_back();
    errno = saved;
    return result;
}

/* libc has every thread of its own make the call, and aborts where one is refused
 * what another got. Ours has the rights that the process had at start; where the
 * caller's have changed since (capset is a thread's own) it goes for the call. */
static bool step_aside_for_rights(void)
{
    int saved = errno;
    bool needed = init_is_active() && loop_is_running() && !loop_may_change_identity();
    errno = saved;
    return step_aside(needed);
}

#define X(name, parameters, arguments)                     \
    EXPORT int name parameters                             \
    {                                                      \
        bool aside = step_aside_for_rights();              \
        return step_back(aside, real_##name arguments);    \
    }
REAL_RIGHTS(X)
#undef X

/* A process that enters another user or time namespace must have one thread. Beside
 * one of its own it is refused anyway: then ours stays. */
static bool step_aside_for_namespace(bool needed)
{
    return step_aside(needed && threads_alive() == 0);
}

EXPORT int unshare(int flags)
{
    bool aside = step_aside_for_namespace(flags & CLONE_NEWUSER);
    return step_back(aside, real_unshare(flags));
}

/* What fd leads to need not be said in the type. */
EXPORT int setns(int fd, int type)
{
    bool aside = step_aside_for_namespace(type == 0 || type & (CLONE_NEWUSER | CLONE_NEWTIME));
    return step_back(aside, real_setns(fd, type));
}

/* Handlers of atexit may still use CPU after this; our destructor ends it all. */
EXPORT void exit(int status)
{
    init_last_words(LOOP_LAST_TICK);
    real_exit(status);
}

EXPORT void _exit(int status)
{
    init_last_words(LOOP_EXIT);
    real__exit(status);
}

EXPORT void _Exit(int status)
{
    init_last_words(LOOP_EXIT);
    real__Exit(status);
}

EXPORT void quick_exit(int status)
{
    init_last_words(LOOP_EXIT);
    real_quick_exit(status);
}

/* A search along PATH (os.execvp makes one, and so does subprocess in a forked
 * child) tries every folder: what is not there ends nothing. Any other answer
 * proves nothing: it is asked for the real user, by a filter perhaps. */
static void before_exec_of(const char *path)
{
    long there = raw2(SYS_access, (long)path, F_OK);
    if (there != -ENOENT && there != -ENOTDIR)
        before_exec();
}

EXPORT int execve(const char *path, char *const argv[], char *const envp[])
{
    before_exec_of(path);
    return after_exec(real_execve(path, argv, envp));
}

EXPORT int execv(const char *path, char *const argv[])
{
    before_exec_of(path);
    return after_exec(real_execv(path, argv));
}

EXPORT int execvp(const char *file, char *const argv[])
{
    before_exec();
    return after_exec(real_execvp(file, argv));
}

EXPORT int execvpe(const char *file, char *const argv[], char *const envp[])
{
    before_exec();
    return after_exec(real_execvpe(file, argv, envp));
}

EXPORT int fexecve(int fd, char *const argv[], char *const envp[])
{
    before_exec();
    return after_exec(real_fexecve(fd, argv, envp));
}

EXPORT int execveat(int directory, const char *path, char *const argv[], char *const envp[], int flags)
{
    before_exec();
    return after_exec(real_execveat(directory, path, argv, envp, flags));
}

/* The child is made within libc, from our actions; this process goes on. */
static int after_spawn(int result)
{
    int saved = errno;
    sigaction_after_exec();
    errno = saved;
    return result;
}

EXPORT int posix_spawn(pid_t *pid, const char *path, const posix_spawn_file_actions_t *actions, const posix_spawnattr_t *attributes,
                       char *const argv[], char *const envp[])
{
    sigaction_before_exec();
    return after_spawn(real_posix_spawn(pid, path, actions, attributes, argv, envp));
}

EXPORT int posix_spawnp(pid_t *pid, const char *file, const posix_spawn_file_actions_t *actions, const posix_spawnattr_t *attributes,
                        char *const argv[], char *const envp[])
{
    sigaction_before_exec();
    return after_spawn(real_posix_spawnp(pid, file, actions, attributes, argv, envp));
}

/* The l-forms: arguments up to NULL, counted first, then on the stack as libc does.
 * They go on to the v-forms behind us: ours are also another preloaded library's,
 * which has seen the call already where it stands before us. */
#define COLLECT(first, args, argv)                          \
    size_t count = 1;                                       \
    va_start(args, first);                                  \
    while (va_arg(args, char *))                            \
        count++;                                            \
    va_end(args);                                           \
    char **argv = __builtin_alloca((count + 1) * sizeof *argv); \
    va_start(args, first);                                  \
    argv[0] = (char *)first;                                \
    for (size_t i = 1; i <= count; i++)                     \
        argv[i] = va_arg(args, char *)

EXPORT int execl(const char *path, const char *first, ...)
{
    va_list args;
    COLLECT(first, args, argv);
    va_end(args);
    before_exec_of(path);
    return after_exec(real_execv(path, argv));
}

EXPORT int execlp(const char *file, const char *first, ...)
{
    va_list args;
    COLLECT(first, args, argv);
    va_end(args);
    before_exec();
    return after_exec(real_execvp(file, argv));
}

EXPORT int execle(const char *path, const char *first, ...)
{
    va_list args;
    COLLECT(first, args, argv);
    char **envp = va_arg(args, char **);
    va_end(args);
    before_exec_of(path);
    return after_exec(real_execve(path, argv, envp));
}
