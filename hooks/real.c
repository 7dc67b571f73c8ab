/* SPDX-License-Identifier: MIT
 *
 * One table of names, filled by dlsym(RTLD_NEXT). Also: whose memory this is,
 * and a pthread_atfork that does not tie the library to glibc.
 */
#include "hooks/real.h"
#include "hooks/raw.h"

#include <dlfcn.h>     /* dlsym */
#include <errno.h>     /* ENOSYS */
#include <stdatomic.h>
#include <stdint.h>    /* uintptr_t */
#include <string.h>    /* memcpy */
#include <sys/mman.h>  /* mmap, madvise */

#define NAMES(X) \
    X(pthread_create) X(sigaction) X(signal) X(__sysv_signal) X(sigset) X(sigignore) X(siginterrupt) \
    X(exit) X(_exit) X(_Exit) X(quick_exit) \
    X(execve) X(execv) X(execvp) X(execvpe) X(fexecve) X(execveat) X(pthread_condattr_setclock) X(unshare) X(setns) \
    X(pthread_sigmask) X(sigprocmask) X(posix_spawn) X(posix_spawnp) \
    X(setuid) X(seteuid) X(setreuid) X(setresuid) X(setgid) X(setegid) X(setregid) X(setresgid) X(setgroups) X(initgroups)

extern char **environ;

enum real_name {
#define X(name) REAL_##name,
    NAMES(X)
#undef X
    REAL_COUNT
};

static const char *const names[REAL_COUNT] = {
#define X(name) #name,
    NAMES(X)
#undef X
};

static _Atomic uintptr_t found[REAL_COUNT];

static uintptr_t resolve(enum real_name name)
{
    uintptr_t address = atomic_load_explicit(&found[name], memory_order_relaxed);
    if (address == 0) {
        address = (uintptr_t)dlsym(RTLD_NEXT, names[name]);
        atomic_store_explicit(&found[name], address, memory_order_relaxed);
    }
    return address;
}

/* What may be called in a handler or a vfork child is not looked up there: where
 * nothing resolved it before, the system call does what libc's function does. */
static uintptr_t resolved(enum real_name name)
{
    return atomic_load_explicit(&found[name], memory_order_relaxed);
}

static int missing(void)
{
    errno = ENOSYS;
    return -1;
}

int real_pthread_create(pthread_t *thread, const pthread_attr_t *attr, void *(*start)(void *), void *arg)
{
    int (*function)(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *) = (void *)resolve(REAL_pthread_create);
    return function ? function(thread, attr, start, arg) : ENOSYS;
}

int real_sigaction(int signo, const struct sigaction *act, struct sigaction *old)
{
    int (*function)(int, const struct sigaction *, struct sigaction *) = (void *)resolve(REAL_sigaction);
    return function ? function(signo, act, old) : missing();
}

static real_handler set_handler(enum real_name name, int signo, real_handler handler)
{
    real_handler (*function)(int, real_handler) = (void *)resolve(name);
    if (function)
        return function(signo, handler);
    missing();
    return SIG_ERR;
}

real_handler real_signal(int signo, real_handler handler) { return set_handler(REAL_signal, signo, handler); }
real_handler real_sysv_signal(int signo, real_handler handler) { return set_handler(REAL___sysv_signal, signo, handler); }
real_handler real_sigset(int signo, real_handler handler) { return set_handler(REAL_sigset, signo, handler); }

int real_sigignore(int signo)
{
    int (*function)(int) = (void *)resolve(REAL_sigignore);
    return function ? function(signo) : missing();
}

int real_siginterrupt(int signo, int flag)
{
    int (*function)(int, int) = (void *)resolve(REAL_siginterrupt);
    return function ? function(signo, flag) : missing();
}

/* Ends the process by the system call should libc have no such function. */
static void leave(enum real_name name, int status)
{
    bool bare = name == REAL__exit || name == REAL__Exit;
    void (*function)(int) = (void *)(bare ? resolved(name) : resolve(name));
    if (function)
        function(status);
    for (;;)
        raw1(SYS_exit_group, status);
}

/* leave() is not declared noreturn, so that one body serves four signatures. */
void real_exit(int status) { leave(REAL_exit, status); __builtin_unreachable(); }
void real__exit(int status) { leave(REAL__exit, status); __builtin_unreachable(); }
void real__Exit(int status) { leave(REAL__Exit, status); __builtin_unreachable(); }
void real_quick_exit(int status) { leave(REAL_quick_exit, status); __builtin_unreachable(); }

int real_execve(const char *path, char *const argv[], char *const envp[])
{
    int (*function)(const char *, char *const[], char *const[]) = (void *)resolved(REAL_execve);
    if (function)
        return function(path, argv, envp);
    long error = raw3(SYS_execve, (long)path, (long)argv, (long)envp);
    errno = (int)-error;
    return -1;
}

int real_execv(const char *path, char *const argv[])
{
    int (*function)(const char *, char *const[]) = (void *)resolved(REAL_execv);
    return function ? function(path, argv) : real_execve(path, argv, environ);
}

int real_execvp(const char *file, char *const argv[])
{
    int (*function)(const char *, char *const[]) = (void *)resolve(REAL_execvp);
    return function ? function(file, argv) : missing();
}

int real_execvpe(const char *file, char *const argv[], char *const envp[])
{
    int (*function)(const char *, char *const[], char *const[]) = (void *)resolve(REAL_execvpe);
    return function ? function(file, argv, envp) : missing();
}

int real_fexecve(int fd, char *const argv[], char *const envp[])
{
    int (*function)(int, char *const[], char *const[]) = (void *)resolve(REAL_fexecve);
    return function ? function(fd, argv, envp) : missing();
}

int real_execveat(int dirfd, const char *path, char *const argv[], char *const envp[], int flags)
{
    int (*function)(int, const char *, char *const[], char *const[], int) = (void *)resolve(REAL_execveat);
    return function ? function(dirfd, path, argv, envp, flags) : missing();
}

typedef int spawn_function(pid_t *, const char *, const posix_spawn_file_actions_t *, const posix_spawnattr_t *, char *const[], char *const[]);

int real_posix_spawn(pid_t *pid, const char *path, const posix_spawn_file_actions_t *actions, const posix_spawnattr_t *attributes,
                     char *const argv[], char *const envp[])
{
    spawn_function *function = (spawn_function *)resolve(REAL_posix_spawn);
    return function ? function(pid, path, actions, attributes, argv, envp) : ENOSYS;
}

int real_posix_spawnp(pid_t *pid, const char *file, const posix_spawn_file_actions_t *actions, const posix_spawnattr_t *attributes,
                      char *const argv[], char *const envp[])
{
    spawn_function *function = (spawn_function *)resolve(REAL_posix_spawnp);
    return function ? function(pid, file, actions, attributes, argv, envp) : ENOSYS;
}

static int mask_by_system_call(int how, const sigset_t *set, sigset_t *old)
{
    uint64_t bits;
    if (set) {
        memcpy(&bits, set, sizeof bits);
        bits &= how == SIG_UNBLOCK ? ~0ull : ~REAL_LIBC_SIGNALS;
    }
    return (int)-raw4(SYS_rt_sigprocmask, how, (long)(set ? &bits : NULL), (long)old, sizeof bits);
}

int real_pthread_sigmask(int how, const sigset_t *set, sigset_t *old)
{
    int (*function)(int, const sigset_t *, sigset_t *) = (void *)resolved(REAL_pthread_sigmask);
    return function ? function(how, set, old) : mask_by_system_call(how, set, old);
}

int real_sigprocmask(int how, const sigset_t *set, sigset_t *old)
{
    int (*function)(int, const sigset_t *, sigset_t *) = (void *)resolved(REAL_sigprocmask);
    if (!function)
        return mask_by_system_call(how, set, old);
    return function(how, set, old) == 0 ? 0 : errno;
}

int real_pthread_condattr_setclock(pthread_condattr_t *attr, clockid_t clock)
{
    int (*function)(pthread_condattr_t *, clockid_t) = (void *)resolve(REAL_pthread_condattr_setclock);
    return function ? function(attr, clock) : ENOSYS;
}

#define X(name, parameters, arguments)                                    \
    int real_##name parameters                                            \
    {                                                                     \
        int(*function) parameters = (void *)resolve(REAL_##name);         \
        return function ? function arguments : missing();                 \
    }
REAL_RIGHTS(X)
#undef X

int real_unshare(int flags)
{
    int (*function)(int) = (void *)resolve(REAL_unshare);
    return function ? function(flags) : missing();
}

int real_setns(int fd, int type)
{
    int (*function)(int, int) = (void *)resolve(REAL_setns);
    return function ? function(fd, type) : missing();
}

/* The pid that this memory belongs to stands in a page that the kernel wipes in
 * a forked child (MADV_WIPEONFORK, Linux 4.14) but that a vfork child shares.
 * So 0 means "forked, and nobody asked yet", another pid means "vfork child". */
static _Atomic pid_t owner_fallback;
static _Atomic(_Atomic pid_t *) owner_page;

static _Atomic pid_t *owner(void)
{
    _Atomic pid_t *page = atomic_load_explicit(&owner_page, memory_order_acquire);
    return page ? page : &owner_fallback;
}

static void owner_init(void)
{
    if (atomic_load(&owner_page))
        return;
    void *page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (page != MAP_FAILED && madvise(page, 4096, MADV_WIPEONFORK) != 0) {
        munmap(page, 4096);
        page = MAP_FAILED;
    }
    if (page != MAP_FAILED)
        atomic_store_explicit(&owner_page, (_Atomic pid_t *)page, memory_order_release);
    real_postfork_child();
}

bool real_owns_memory(void)
{
    pid_t self = real_pid(), unclaimed = 0;
    _Atomic pid_t *word = owner();
    if (atomic_compare_exchange_strong(word, &unclaimed, self))
        return true;
    return unclaimed == self;
}

void real_postfork_child(void)
{
    atomic_store(owner(), real_pid());
}

pid_t real_pid(void)
{
    return (pid_t)raw0(SYS_getpid);
}

void real_resolve(void)
{
    owner_init();
    for (int i = 0; i < REAL_COUNT; i++)
        resolve((enum real_name)i);
}

void real_resolve_safe(void)
{
    static const enum real_name safe[] = {REAL__exit, REAL__Exit, REAL_execve, REAL_execv, REAL_pthread_sigmask,
                                          REAL_sigprocmask};
    for (size_t i = 0; i < sizeof safe / sizeof safe[0]; i++)
        resolve(safe[i]);
}

/* glibc keeps pthread_atfork in a static archive, where it refers to
 * __register_atfork, which no other libc has: a musl program would fail to load
 * because of it. Ours, hidden, serves this library and its jemalloc; on another
 * libc we are inert and never get here. */
extern int __register_atfork(void (*)(void), void (*)(void), void (*)(void), void *) __attribute__((weak));
extern void *__dso_handle __attribute__((visibility("hidden")));
int pthread_atfork(void (*prepare)(void), void (*parent)(void), void (*child)(void))
{
    return __register_atfork ? __register_atfork(prepare, parent, child, &__dso_handle) : ENOSYS;
}
