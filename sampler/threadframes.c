/* SPDX-License-Identifier: MIT */
#include "sampler/threadframes.h"

#include <string.h>

#include "hooks/clock.h"
#include "hooks/mem.h"
#include "hooks/task.h"
#include "sampler/cpython/threadnames.h"
#include "sampler/text.h"

#define SECOND 1000000000ull

enum {
    FIRST_ROOM = 16,
    FRESH_LOOKS = 8,       /* for a thread among the newest entries: it is there before it runs what it was made for */
    NEWEST_SLACK = 16,     /* entries that are looked at beyond one for each new thread */
    OFTEN_NS = 10000000,   /* between two looks at all names: at first ... */
    AGE_PART = 4,          /* ... and later this part of the time since the beginning, ... */
    COST_SHARE = 100,      /* ... or so many times what the last one took, if that is more */
    KERNEL_MOST = 64,      /* names asked of the kernel in one tick: a file each */
    INTERPRETERS = 16,     /* whose threads have names of Python */
    USED_SLOTS = 2048      /* a power of two, at least twice the names of a window */
};
_Static_assert(USED_SLOTS >= 2 * THREADFRAMES_NAMES_MOST, "half of the slots stay empty");

#define PREFIX "[thread "
#define OTHERS "[thread ~]"

struct threadframes {
    const struct py_target *target;
    struct threadframe **thread;
    uint32_t count, room;
    uint32_t *slot;            /* open-addressed, by pthread_t: place + 1 of those that are looked for */
    uint32_t slots, slots_room;
    uint32_t fresh;            /* threads that may be among the newest entries */
    uint32_t next_kernel;      /* whose kernel's name is read next, in turn */
    uint64_t began_ns, due_ns;
    bool stale;                /* somebody may have changed a name since they were read */
    bool renamed;              /* some are, since the last tick */
    uint64_t refused;          /* names beyond those of a window, not counted yet */
    uint32_t used;             /* different names in this window, ... */
    uint64_t used_hash[USED_SLOTS]; /* ... by their hashes; 0: empty */
};

struct threadframes *threadframes_new(const struct py_target *target, uint64_t now)
{
    struct threadframes *all = mem_zalloc(sizeof *all);
    if (all) {
        all->target = target;
        all->began_ns = all->due_ns = now;
        all->stale = true;
    }
    return all;
}

void threadframes_free(struct threadframes *all)
{
    if (!all)
        return;
    for (uint32_t i = 0; i < all->count; i++)
        mem_free(all->thread[i]->name);
    mem_free(all->thread);
    mem_free(all->slot);
    mem_free(all);
}

/* --- threads come and go --- */

static bool is_fresh(const struct threadframe *thread)
{
    return thread->looks < FRESH_LOOKS && !thread->of_python;
}

bool threadframes_join(struct threadframes *all, struct threadframe *thread)
{
    thread->place = UINT32_MAX;
    if (!mem_grow((void **)&all->thread, &all->room, all->count + 1, FIRST_ROOM, sizeof(struct threadframe *)))
        return false;
    thread->place = all->count;
    all->thread[all->count++] = thread;
    all->fresh++;
    return true;
}

void threadframes_leave(struct threadframes *all, struct threadframe *thread)
{
    uint32_t place = thread->place;
    mem_free(thread->name);
    thread->name = NULL;
    if (place == UINT32_MAX)
        return;
    all->fresh -= is_fresh(thread);
    all->thread[place] = all->thread[--all->count];
    all->thread[place]->place = place;
}

/* --- names --- */

static void take_name(struct threadframes *all, struct threadframe *thread, const char *name, uint32_t length)
{
    if (thread->name && thread->length == length && memcmp(thread->name, name, length) == 0)
        return;
    char *kept = mem_alloc(length);
    if (!kept)
        return;
    memcpy(kept, name, length);
    mem_free(thread->name);
    thread->name = kept;
    thread->length = length;
    thread->marker = PROFILE_ROOT;
    thread->renamed = all->renamed = true;
}

void threadframes_name(struct threadframes *all, struct threadframe *thread, const char *name, uint32_t length)
{
    if (thread->place != UINT32_MAX)
        all->fresh -= is_fresh(thread);
    thread->of_python = true;
    take_name(all, thread, name, length);
}

static uint32_t slot_of(const struct threadframes *all, uint64_t pthread)
{
    return (uint32_t)(pthread * 0x9e3779b97f4a7c15u >> 32) & (all->slots - 1);
}

/* Empty, with twice as many slots as there are to be entries. */
static bool begin_slots(struct threadframes *all, uint32_t entries)
{
    all->slots = 2 * FIRST_ROOM;
    while (all->slots < 2 * entries)
        all->slots *= 2;
    if (!mem_grow((void **)&all->slot, &all->slots_room, all->slots, FIRST_ROOM, sizeof *all->slot))
        return false;
    memset(all->slot, 0, all->slots * sizeof *all->slot);
    return true;
}

static void put_slot(struct threadframes *all, uint32_t place)
{
    uint32_t at = slot_of(all, all->thread[place]->pthread);
    while (all->slot[at])
        at = (at + 1) & (all->slots - 1);
    all->slot[at] = place + 1;
}

static struct threadframe *find(const struct threadframes *all, uintptr_t interp, uint64_t pthread)
{
    for (uint32_t at = slot_of(all, pthread); all->slot[at]; at = (at + 1) & (all->slots - 1)) {
        struct threadframe *thread = all->thread[all->slot[at] - 1];
        if (thread->pthread == pthread && thread->interp == interp)
            return thread;
    }
    return NULL;
}

/* newest: so many of the newest entries only; 0: all. */
static void read_names(struct threadframes *all, uintptr_t interp, uint32_t newest)
{
    struct threadnames_walk walk;
    char name[TEXT_NAME_MAX];
    uint64_t pthread;
    uint32_t length;
    if (!threadnames_begin(&walk, all->target, interp))
        return;
    if (newest)
        threadnames_newest(&walk, newest);
    while (threadnames_next(&walk, &pthread, name, sizeof name, &length)) {
        struct threadframe *thread = find(all, interp, pthread);
        if (thread)
            threadframes_name(all, thread, name, length);
    }
}

static bool is_among(const uintptr_t *interps, uint32_t count, uintptr_t interp)
{
    for (uint32_t i = 0; i < count; i++)
        if (interps[i] == interp)
            return true;
    return false;
}

/* Of the new threads, or of all; by Python. */
static void ask_python(struct threadframes *all, bool fresh)
{
    uintptr_t interps[INTERPRETERS];
    uint32_t count = 0, wanted = 0;
    if (!begin_slots(all, fresh ? all->fresh : all->count))
        return;
    for (uint32_t i = 0; i < all->count; i++) {
        const struct threadframe *thread = all->thread[i];
        if (!thread->interp || (fresh && !is_fresh(thread)))
            continue;
        put_slot(all, i);
        wanted++;
        if (count < INTERPRETERS && !is_among(interps, count, thread->interp))
            interps[count++] = thread->interp;
    }
    for (uint32_t i = 0; i < count; i++)
        read_names(all, interps[i], fresh ? wanted + NEWEST_SLACK : 0);
}

static void ask_kernel_for(struct threadframes *all, struct threadframe *thread)
{
    char name[TASK_NAME_BYTES], shown[TEXT_NAME_MAX];
    size_t length = task_name(thread->tid, name);
    length = length ? text_name(shown, sizeof shown, name, length, 1) : 0;
    if (length)
        take_name(all, thread, shown, (uint32_t)length);
}

/* Those that Python has no name for: the ones without any, or (again) in turn. */
static void ask_kernel(struct threadframes *all, bool again)
{
    uint32_t asked = 0;
    for (uint32_t i = 0; i < all->count && asked < KERNEL_MOST; i++) {
        uint32_t place = again ? all->next_kernel++ % all->count : i;
        struct threadframe *thread = all->thread[place];
        if (thread->of_python || (!again && thread->name))
            continue;
        ask_kernel_for(all, thread);
        asked++;
    }
}

/* --- when they are read --- */

static uint64_t pause_after(const struct threadframes *all, uint64_t now, uint64_t took)
{
    uint64_t pause = (now - all->began_ns) / AGE_PART;
    if (pause > SECOND)
        pause = SECOND;
    if (pause < OFTEN_NS)
        pause = OFTEN_NS;
    return pause > took * COST_SHARE ? pause : took * COST_SHARE;
}

static void read_all(struct threadframes *all, uint64_t now)
{
    uint64_t cpu = clock_self();
    ask_python(all, false);
    ask_kernel(all, true);
    all->stale = false;
    all->due_ns = now + pause_after(all, now, clock_self() - cpu);
}

static void count_looks(struct threadframes *all)
{
    for (uint32_t i = 0; i < all->count; i++)
        if (is_fresh(all->thread[i])) {
            all->thread[i]->looks++;
            all->fresh -= !is_fresh(all->thread[i]);
        }
}

bool threadframes_are_due(const struct threadframes *all, uint64_t now)
{
    return all->stale && now >= all->due_ns;
}

static void look_for_fresh(struct threadframes *all)
{
    ask_python(all, true);
    ask_kernel(all, false);
    count_looks(all);
}

bool threadframes_tick(struct threadframes *all, uint64_t now, bool ran, struct counters *counters)
{
    counters->limits[LIMIT_thread_names] += all->refused;
    all->refused = 0;
    all->renamed = false;
    all->stale = all->stale || ran;
    if (threadframes_are_due(all, now))
        read_all(all, now);
    if (all->fresh)
        look_for_fresh(all);
    return all->renamed;
}

/* --- markers --- */

/* Whether the name is one of this window's; from now on it is, if there is room. */
static bool may_use(struct threadframes *all, const struct threadframe *thread)
{
    uint64_t hash = text_hash(thread->name, thread->length);
    uint32_t at = (uint32_t)(hash >> 32) & (USED_SLOTS - 1);
    for (; all->used_hash[at]; at = (at + 1) & (USED_SLOTS - 1))
        if (all->used_hash[at] == hash)
            return true;
    if (all->used == THREADFRAMES_NAMES_MOST)
        return false;
    all->used_hash[at] = hash;
    all->used++;
    return true;
}

profile_stack threadframes_marker(struct threadframes *all, struct threadframe *thread, struct stacks *stacks)
{
    char text[sizeof PREFIX + TEXT_NAME_MAX];
    uint32_t length = sizeof PREFIX - 1;
    if (!thread->name || thread->marker != PROFILE_ROOT)
        return thread->marker;
    if (!may_use(all, thread)) {
        all->refused++;
        thread->marker = stacks_thread_marker(stacks, OTHERS, sizeof OTHERS - 1);
        return thread->marker;
    }
    memcpy(text, PREFIX, length);
    memcpy(text + length, thread->name, thread->length);
    length += thread->length;
    text[length++] = ']';
    thread->marker = stacks_thread_marker(stacks, text, length);
    return thread->marker;
}

void threadframes_forget_stacks(struct threadframes *all)
{
    for (uint32_t i = 0; i < all->count; i++)
        all->thread[i]->marker = PROFILE_ROOT;
    memset(all->used_hash, 0, sizeof all->used_hash);
    all->used = 0;
}
