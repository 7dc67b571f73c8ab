/* SPDX-License-Identifier: MIT
 *
 * mutated_live: everything that the sampler reads of a Python, read from an image
 * of that Python's memory while a second thread rewrites the image: the words that
 * the readers look at, as other words that they look at, as numbers that are just
 * beside the right one, and as junk. mutated_live.py makes the Python worth reading.
 *
 * What must hold: no crash, no memory but the image is touched, and whatever the
 * image says, a round reads no more than so many words.
 */
#define LIVE_OWN_GUARD
#include "tests/live/live.h"

#include <malloc.h> /* malloc_usable_size */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "hooks/mem.h"
#include "sampler/codes.h"
#include "sampler/cpython/exceptions.h"
#include "sampler/cpython/states.h"
#include "sampler/stacks.h"
#include "sampler/tasks.h"

long live_take(void);
long live_round(unsigned long seed);
long live_mutate(unsigned long seed);
long live_rest(void);
void live_forget(void);
long live_texts(char *out, long size);
unsigned long live_changes(void);
unsigned long live_most_reads(void);

enum {
    RANGES = 4096,
    TRACE = 1 << 16,   /* words that were read lately: those are rewritten */
    CHANGED = 64,      /* words that differ from the original at any one time */
    THREADS = 64,
    DEPTH = 512,
    ROUND_NS = 20000000 /* time goes on by so much a round, however long it takes */
};
#define IMAGE_MAX (1ul << 30)

static struct range {
    uintptr_t start, end;
    unsigned char *copy, *original;
} range[RANGES];
static uint32_t ranges;

static _Atomic uintptr_t trace[TRACE];
static _Atomic uint32_t traced;
static unsigned long reads, most_reads;
static _Atomic unsigned long changes;
static _Atomic bool mutating;
static pthread_t mutator;

/* ---- the heap: libc's, since the profiler's own cannot be loaded late ---- */

#define HEAP_MAX (64ul << 20)
static size_t used;

static void *counted(void *block)
{
    used += block ? malloc_usable_size(block) : 0;
    return block;
}

void *mem_alloc(size_t size)
{
    return used + size > HEAP_MAX ? NULL : counted(malloc(size));
}

void *mem_zalloc(size_t size)
{
    return used + size > HEAP_MAX ? NULL : counted(calloc(1, size));
}

void *mem_realloc(void *block, size_t size)
{
    size_t before = malloc_usable_size(block);
    void *larger = used - before + size > HEAP_MAX ? NULL : realloc(block, size);
    if (larger)
        used -= before;
    return counted(larger);
}

void mem_free(void *block)
{
    used -= malloc_usable_size(block);
    free(block);
}

size_t mem_used(void)
{
    return used;
}

size_t mem_limit(void)
{
    return HEAP_MAX;
}

bool mem_has_room(size_t size)
{
    return used + size <= HEAP_MAX;
}

/* ---- the image ---- */

static struct range *range_of(uintptr_t address, size_t n)
{
    uint32_t low = 0, high = ranges;
    while (low < high) {
        uint32_t middle = (low + high) / 2;
        if (range[middle].end <= address)
            low = middle + 1;
        else
            high = middle;
    }
    return low < ranges && address >= range[low].start && n <= range[low].end - address ? &range[low] : NULL;
}

/* The guard: only the image is there. A word that is being rewritten may come in halves, as it may from anybody's memory. */
bool guard_copy(void *dst, uintptr_t src, size_t n)
{
    struct range *found = range_of(src, n);

    reads += 1 + n / 64;
    if (!ranges) { /* not taken yet */
        struct iovec to = {dst, n}, from = {(void *)src, n};
        return process_vm_readv(getpid(), &to, 1, &from, 1, 0) == (ssize_t)n;
    }
    if (!found)
        return false;
    atomic_store_explicit(&trace[atomic_fetch_add(&traced, 1) % TRACE], src, memory_order_relaxed);
    memcpy(dst, found->copy + (src - found->start), n);
    return true;
}

static bool is_read_by_us(const char *rights, const char *path)
{
    return rights[0] == 'r' && !strstr(path, "_live.so") && !strstr(path, "[vvar") && !strstr(path, "[vsyscall") && !strstr(path, "/dev/");
}

/* What cannot be read (guard pages, the end of a file) is zero in the image. */
static void take_pages(struct range *taken)
{
    for (uintptr_t at = taken->start; at < taken->end; at += 4096) {
        struct iovec to = {taken->original + (at - taken->start), 4096}, from = {(void *)at, 4096};
        if (process_vm_readv(getpid(), &to, 1, &from, 1, 0) != 4096)
            memset(to.iov_base, 0, 4096);
    }
}

/* Copies what is mapped now; two copies, so that a change can be taken back. */
LIVE long live_take(void)
{
    FILE *maps = fopen("/proc/self/maps", "re");
    char line[512], rights[8], path[256];
    unsigned long start, end, total = 0;

    while (maps && fgets(line, sizeof line, maps) && ranges < RANGES) {
        path[0] = 0;
        if (sscanf(line, "%lx-%lx %7s %*s %*s %*s %255s", &start, &end, rights, path) < 3 || !is_read_by_us(rights, path) ||
            total + (end - start) > IMAGE_MAX)
            continue;
        struct range *taken = &range[ranges];
        *taken = (struct range){start, end, malloc(end - start), malloc(end - start)};
        if (!taken->copy || !taken->original)
            break;
        take_pages(taken);
        memcpy(taken->copy, taken->original, end - start);
        total += end - start;
        ranges++;
    }
    if (maps)
        fclose(maps);
    return (long)(total >> 10);
}

/* ---- who rewrites it ---- */

static uint64_t random_of(uint64_t *state)
{
    *state ^= *state << 13;
    *state ^= *state >> 7;
    return *state ^= *state << 17;
}

static uint64_t *word_of(uint64_t *seed, uint64_t **original)
{
    uintptr_t address = atomic_load_explicit(&trace[random_of(seed) % TRACE], memory_order_relaxed) & ~7ul;
    /* mostly the very word, now and then one near it: a size, a type, the next pointer */
    if (random_of(seed) % 4 == 0)
        address += 8 * (random_of(seed) % 16) - 64;
    struct range *found = range_of(address, 8);
    if (!found)
        return NULL;
    *original = (uint64_t *)(found->original + (address - found->start));
    return (uint64_t *)(found->copy + (address - found->start));
}

static uint64_t another(uint64_t *seed, uint64_t word)
{
    uint64_t *original, *other = word_of(seed, &original);

    switch (random_of(seed) % 10) {
    case 0: return 0;
    case 1: return random_of(seed);
    case 2: return word + random_of(seed) % 64 - 32;
    case 3: return word ^ 1ull << random_of(seed) % 64;
    case 4: return (word & 0xffffffff00000000) | (uint32_t)random_of(seed);                 /* one of two halves */
    case 5: return word & ~(0xffull << 8 * (random_of(seed) % 8));                          /* a byte */
    case 6: return random_of(seed) & 0xffffff;                                              /* a large number */
    case 7: return atomic_load_explicit(&trace[random_of(seed) % TRACE], memory_order_relaxed); /* an address in use */
    default: return other ? *(volatile uint64_t *)other : word;                             /* another word in use */
    }
}

/* At full speed words are wrong for microseconds, while one thing is read; slower, for rounds. */
static void *rewrite(void *argument)
{
    const struct timespec pause = {0, 1000 * (long)((uintptr_t)argument % 4 * 25)};
    uint64_t seed = (uint64_t)(uintptr_t)argument * 2654435761u | 1, *changed[CHANGED] = {NULL}, *original[CHANGED];

    for (uint32_t i = 0; atomic_load(&mutating); i = (i + 1) % CHANGED) {
        if (changed[i])
            __atomic_store_n(changed[i], *original[i], __ATOMIC_RELAXED);
        changed[i] = word_of(&seed, &original[i]);
        if (!changed[i])
            continue;
        __atomic_store_n(changed[i], another(&seed, *(volatile uint64_t *)changed[i]), __ATOMIC_RELAXED);
        atomic_fetch_add(&changes, 1);
        if (pause.tv_nsec)
            nanosleep(&pause, NULL);
    }
    for (uint32_t i = 0; i < CHANGED; i++)
        if (changed[i])
            __atomic_store_n(changed[i], *original[i], __ATOMIC_RELAXED);
    return NULL;
}

LIVE long live_mutate(unsigned long seed)
{
    atomic_store(&mutating, true);
    return pthread_create(&mutator, NULL, rewrite, (void *)seed);
}

LIVE long live_rest(void)
{
    atomic_store(&mutating, false);
    return pthread_join(mutator, NULL);
}

/* ---- who reads it ---- */

static struct profile *profile;
static struct stack_copy *copy;
static struct tasks *tasks;
static struct stacks stacks;
static struct window window;
static uint64_t now = 1000000000;

static void hook_nothing(uintptr_t task_type, uintptr_t interp)
{
    (void)task_type, (void)interp;
}

static bool start(void)
{
    const struct tasks_options options = {.target = &target, .depth = DEPTH, .metric = true, .clock_precise = true, .hook = hook_nothing};
    if (profile)
        return true;
    if (codes_start())
        return false;
    exceptions_ask_for_tasks(true);
    profile = profile_new();
    copy = stacks_new_copy(DEPTH);
    tasks = tasks_new(&options, now);
    stacks = (struct stacks){.profile = profile, .target = &target, .unknown = profile_intern(profile, "[unknown]", 9, 0)};
    return profile && copy && tasks;
}

/* One thread's stack, as a tick reads it. */
static void read_thread(const struct state *state, uint64_t seed, struct tasks_thread *thread)
{
    *thread = (struct tasks_thread){.tstate = state->address, .interp = state->interp, .cpu = seed};
    if (!stacks_is_whole(stacks_capture(copy, &target, state->address, seed)))
        return;
    stacks_resolve(&stacks, copy);
    profile_add(profile, stacks_intern(&stacks, copy), METRIC_CPU, 1000000);
    thread->driver = stacks_intern_driver(&stacks, copy, &thread->driver_sure);
    thread->stands = true;
    stacks_intern_task(&stacks, copy, PROFILE_ROOT);
}

/* A window's end now and then: what was learnt from a broken image does not fill the heap. */
static void forget(unsigned long seed)
{
    if (seed % 64)
        return;
    codes_forget();
    profile_clear(profile, true);
    tasks_forget_stacks(tasks);
    stacks.unknown = profile_intern(profile, "[unknown]", 9, 0);
}

/* All threads and all tasks once. Reads it took; -1: not started. */
LIVE long live_round(unsigned long seed)
{
    struct tasks_thread thread[THREADS];
    struct states_walk walk;
    struct state state;
    uint32_t count = 0;

    if (!start())
        return -1;
    reads = 0;
    forget(seed);
    states_begin(&walk, &target);
    while (states_next(&walk, &state))
        if (count < THREADS && !state.dead)
            read_thread(&state, seed, &thread[count++]);
    codes_drain();
    now += ROUND_NS;
    tasks_prepare(tasks, thread, count, &stacks, now);
    tasks_tick(tasks, thread, count, &stacks, &window, now, true);
    if (reads > most_reads)
        most_reads = reads;
    return (long)reads;
}

/* Forgets as at a window's end, so that live_texts tells of what comes. */
LIVE void live_forget(void)
{
    forget(0);
}

/* The stacks that have time, a line each, "cpu " or "task " first. */
LIVE long live_texts(char *out, long size)
{
    long at = 0;

    for (int metric = METRIC_CPU; metric <= METRIC_TASK; metric++) {
        profile_stack stack;
        uint64_t us;
        for (uint32_t i = 0; profile_each(profile, (enum metric)metric, &i, &stack, &us) && at < size - (1 << 16);) {
            at += sprintf(out + at, "%s ", metric_name((enum metric)metric));
            at += (long)profile_text(profile, stack, out + at, 1 << 15);
            out[at++] = '\n';
        }
    }
    return at;
}

LIVE unsigned long live_changes(void)
{
    return atomic_load(&changes);
}

LIVE unsigned long live_most_reads(void)
{
    unsigned long most = most_reads;
    most_reads = 0;
    return most;
}
