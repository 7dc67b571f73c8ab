/* SPDX-License-Identifier: MIT
 *
 * real: the next-in-line libc functions behind the names that we export.
 *
 * Resolved by dlsym(RTLD_NEXT) at first use, so that an interposed function
 * works before our constructor ran. A missing one answers ENOSYS.
 * Runs in: [interposer]; the first use of each takes the loader's lock, so
 * real_resolve() does them all in the constructor of a process that is profiled.
 * In every other one (25 us of each exec otherwise) they wait for their first
 * use, but for those that may be called in handlers and vfork children (_exit,
 * _Exit, execve, execv and those of masks): real_resolve_safe() finds these in every
 * process, and before it they are bare system calls, which would pass by another
 * library that stands in front of them.
 */
#ifndef APROF_HOOKS_REAL_H
#define APROF_HOOKS_REAL_H

#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <stdbool.h>
#include <sys/types.h>

/* libc's own two signals, cancellation and the change of user of all threads (nptl's
 * SIGCANCEL and SIGSETXID), as bits of a kernel mask: libc lets nobody block them, and
 * waits for ever for a thread that does. */
#define REAL_LIBC_SIGNALS (3ull << 31)

void real_resolve(void);
void real_resolve_safe(void);

int real_pthread_create(pthread_t *thread, const pthread_attr_t *attr, void *(*start)(void *), void *arg);
int real_sigaction(int signo, const struct sigaction *act, struct sigaction *old);
typedef void (*real_handler)(int);
real_handler real_signal(int signo, real_handler handler); /* also bsd_signal, ssignal */
real_handler real_sysv_signal(int signo, real_handler handler);
real_handler real_sigset(int signo, real_handler handler);
int real_sigignore(int signo);
int real_siginterrupt(int signo, int flag);
void real_exit(int status) __attribute__((noreturn));
void real__exit(int status) __attribute__((noreturn));
void real__Exit(int status) __attribute__((noreturn));
void real_quick_exit(int status) __attribute__((noreturn));
int real_execve(const char *path, char *const argv[], char *const envp[]);
int real_execv(const char *path, char *const argv[]);
int real_execvp(const char *file, char *const argv[]);
int real_execvpe(const char *file, char *const argv[], char *const envp[]);
int real_fexecve(int fd, char *const argv[], char *const envp[]);
/* 0 or an error number, both. */
int real_pthread_sigmask(int how, const sigset_t *set, sigset_t *old);
int real_sigprocmask(int how, const sigset_t *set, sigset_t *old);
int real_pthread_condattr_setclock(pthread_condattr_t *attr, clockid_t clock);
/* What changes the rights of all threads. NAME(name, parameters, arguments). */
#define REAL_RIGHTS(NAME) \
    NAME(setuid, (uid_t user), (user)) NAME(seteuid, (uid_t user), (user)) \
    NAME(setreuid, (uid_t user, uid_t effective), (user, effective)) \
    NAME(setresuid, (uid_t user, uid_t effective, uid_t saved), (user, effective, saved)) \
    NAME(setgid, (gid_t group), (group)) NAME(setegid, (gid_t group), (group)) \
    NAME(setregid, (gid_t group, gid_t effective), (group, effective)) \
    NAME(setresgid, (gid_t group, gid_t effective, gid_t saved), (group, effective, saved)) \
    NAME(setgroups, (size_t count, const gid_t *groups), (count, groups)) \
    NAME(initgroups, (const char *user, gid_t group), (user, group))
#define X(name, parameters, arguments) int real_##name parameters;
REAL_RIGHTS(X)
#undef X
int real_unshare(int flags);
int real_setns(int fd, int type);
int real_execveat(int dirfd, const char *path, char *const argv[], char *const envp[], int flags);
int real_posix_spawn(pid_t *pid, const char *path, const posix_spawn_file_actions_t *actions, const posix_spawnattr_t *attributes,
                     char *const argv[], char *const envp[]);
int real_posix_spawnp(pid_t *pid, const char *file, const posix_spawn_file_actions_t *actions, const posix_spawnattr_t *attributes,
                      char *const argv[], char *const envp[]);

/* The kernel's pid: differs from the pid at start in a forked child whose
 * handlers have not run, and in a vfork child, which shares our memory. */
pid_t real_pid(void);

/* False in a vfork child, which shares the memory of a process that goes on
 * after it: then write nothing. True in a forked child, also before any fork
 * handler ran (a page that the kernel wipes on fork tells them apart). Costs one
 * system call. Ask only after real_resolve(), or while nothing is started. */
bool real_owns_memory(void);

/* [fork, child] Settles the ownership at once, before a vfork child of this
 * child can be the first to ask; threads_postfork_child() calls it. */
void real_postfork_child(void);

#endif
