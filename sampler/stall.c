/* SPDX-License-Identifier: MIT */
#include "sampler/stall.h"

#include <stdatomic.h>
#include <stdint.h>
#include <sys/mman.h>
#include <unistd.h>

#include "hooks/clock.h"

enum { STALL_NS = 20000000 };

/* Since when the thread has been at its files; 0: it is not. */
typedef _Atomic uint64_t since;

static since unshared; /* where no page could be had */
static since *mine = &unshared;
static since *above; /* of the process that forked us; NULL: never mind it */
static pid_t parent; /* which is that */

void stall_start(void)
{
    if (mine != &unshared)
        return;
    void *page = mmap(NULL, sizeof(since), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (page != MAP_FAILED)
        mine = page;
}

void stall_writing(bool begins)
{
    atomic_store(mine, begins ? clock_now() : 0);
}

static bool is_stalled(since *of)
{
    uint64_t began = atomic_load(of), now = clock_now();
    return began != 0 && now > began && now - began > STALL_NS;
}

bool stall_is(void)
{
    return is_stalled(mine);
}

bool stall_is_above(void)
{
    return above && is_stalled(above) && getppid() == parent;
}

static void forget(since *page)
{
    if (page)
        munmap(page, sizeof(since));
}

/* A process without a thread of its own leaves its children the page above it. */
void stall_postfork_child(void)
{
    if (mine != &unshared) {
        forget(above);
        above = mine;
        mine = &unshared;
    }
    atomic_store(&unshared, 0);
    parent = getppid();
}
