/* SPDX-License-Identifier: MIT */
#include "sampler/stall.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/types.h>

#include "hooks/clock.h"
#include "hooks/raw.h"
#include "hooks/real.h"

enum { STALL_NS = 20000000 };

/* What a process and those that it forks see. since: the thread has been at its files;
 * 0: it is not. pid: whose thread; 0: it is about to become another program. */
struct page {
    _Atomic uint64_t since;
    _Atomic pid_t pid;
};

static struct page unshared; /* where none could be had */
static struct page *mine = &unshared;
static struct page *above; /* of the process that forked us, or the one that forked it; NULL: never mind it */

void stall_start(void)
{
    if (mine != &unshared)
        return;
    void *page = mmap(NULL, sizeof(struct page), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (page != MAP_FAILED)
        mine = page;
    atomic_store(&mine->pid, real_pid());
}

void stall_before_exec(void)
{
    atomic_store(&mine->pid, 0);
}

void stall_after_exec(void)
{
    atomic_store(&mine->pid, real_pid());
}

void stall_writing(bool begins)
{
    atomic_store(&mine->since, begins ? clock_now() : 0);
}

static bool is_stalled(struct page *page)
{
    uint64_t began = atomic_load(&page->since), now = clock_now();
    return began != 0 && now > began && now - began > STALL_NS;
}

bool stall_is(void)
{
    return is_stalled(mine);
}

static bool lives(pid_t pid)
{
    return pid != 0 && raw3(SYS_tgkill, pid, pid, 0) != -ESRCH;
}

bool stall_is_above(void)
{
    return above && is_stalled(above) && lives(atomic_load(&above->pid));
}

static void forget(struct page *page)
{
    if (page)
        munmap(page, sizeof *page);
}

/* A process without a thread of its own leaves its children the page above it. */
void stall_postfork_child(void)
{
    if (mine != &unshared) {
        forget(above);
        above = mine;
        mine = &unshared;
    }
    atomic_store(&unshared.since, 0);
}
