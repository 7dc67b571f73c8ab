/* SPDX-License-Identifier: MIT */
#include "hooks/sigmask.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdint.h>
#include <string.h>

#include "hooks/raw.h"
#include "hooks/real.h"

#define EXPORT __attribute__((visibility("default")))

static struct {
    _Atomic int signo; /* 0: nobody listens */
    void (*about_to_block)(void);
    void (*changed)(void);
} watch;

void sigmask_watch(int signo, void (*about_to_block)(void), void (*changed)(void))
{
    watch.about_to_block = about_to_block;
    watch.changed = changed;
    atomic_store_explicit(&watch.signo, signo, memory_order_release);
}

bool sigmask_blocks(int signo)
{
    uint64_t mask = 0; /* the kernel's: a bit a signal */
    raw4(SYS_rt_sigprocmask, SIG_BLOCK, 0, (long)&mask, sizeof mask);
    return mask >> (signo - 1) & 1;
}

typedef int mask_function(int how, const sigset_t *set, sigset_t *old);

/* Returns 0 or an error number, like pthread_sigmask. */
static int change(mask_function *real, int how, const sigset_t *set, sigset_t *old)
{
    int signo = atomic_load_explicit(&watch.signo, memory_order_acquire);
    bool names_it = signo && set && sigismember(set, signo) == 1;
    bool concerned = names_it || (signo && set && how == SIG_SETMASK);
    if (!concerned || !real_owns_memory())
        return real(how, set, old);
    if (names_it && how != SIG_UNBLOCK)
        watch.about_to_block();
    int error = real(how, set, old);
    watch.changed();
    return error;
}

EXPORT int pthread_sigmask(int how, const sigset_t *set, sigset_t *old)
{
    int saved = errno, error = change(real_pthread_sigmask, how, set, old);
    errno = saved;
    return error;
}

static int change_process(int how, const sigset_t *set, sigset_t *old)
{
    int saved = errno, error = change(real_sigprocmask, how, set, old);
    errno = error ? error : saved;
    return error ? -1 : 0;
}

EXPORT int sigprocmask(int how, const sigset_t *set, sigset_t *old)
{
    return change_process(how, set, old);
}

/* --- of System V and 4.3BSD: not by the exported names, which may be another library's too --- */

static int change_one(int how, int signo)
{
    sigset_t one;
    sigemptyset(&one);
    return sigaddset(&one, signo) == 0 ? change_process(how, &one, NULL) : -1;
}

EXPORT int sighold(int signo)
{
    return change_one(SIG_BLOCK, signo);
}

EXPORT int sigrelse(int signo)
{
    return change_one(SIG_UNBLOCK, signo);
}

/* Masks of the first 32 signals; bit 0 is signal 1. */
static int change_first(int how, int mask)
{
    sigset_t set, old;
    unsigned before;
    sigemptyset(&set);
    memcpy(&set, &mask, sizeof mask);
    if (change_process(how, &set, &old) != 0)
        return -1;
    memcpy(&before, &old, sizeof before);
    return (int)before;
}

int sigblock(int mask);
EXPORT int sigblock(int mask)
{
    return change_first(SIG_BLOCK, mask);
}

int sigsetmask(int mask);
EXPORT int sigsetmask(int mask)
{
    return change_first(SIG_SETMASK, mask);
}
