/* SPDX-License-Identifier: MIT
 *
 * All records are mapped at once, their byte spaces in blocks when the first record
 * of one is taken: together they would be 260 MiB that an application may lock in
 * memory. Records are made ready one by one, by whoever first takes them ("high"
 * counts how many), and come back through a lock-free list whose head carries a tag
 * against a record that left and came back in between (ABA).
 */
#include "hooks/threads.h"
#include "hooks/clock.h"
#include "hooks/pages.h"
#include "hooks/raw.h"
#include "hooks/real.h"
#include "hooks/task.h"

#include <errno.h>
#include <limits.h>   /* PTHREAD_DESTRUCTOR_ITERATIONS */
#include <stddef.h>
#include <string.h>   /* memset */
#include <sys/mman.h>
#include <sys/syscall.h>

#define POOL_LARGE 64     /* the first so many get the whole space, the others a quarter */
#define BLOCK_LARGE 8     /* records whose spaces are one block; as many bytes as of the others, 32 */
#define BLOCK_SMALL (4 * BLOCK_LARGE)
#define BLOCKS (POOL_LARGE / BLOCK_LARGE + (THREADS_MAX - POOL_LARGE) / BLOCK_SMALL)
#define PAGE 4096u

static struct thread *records; /* written once, by threads_start, before started */
static _Atomic(uint8_t *) blocks[BLOCKS]; /* of spaces; never unmapped */
static uint32_t space_large, space_small;
static pthread_key_t end_key;
static _Atomic bool started;

static _Atomic uint64_t free_head; /* tag in the upper half, index + 1 in the lower, 0: empty */
static _Atomic uint32_t high;
static _Atomic uint64_t births;
static _Atomic uint32_t alive;
static _Atomic uint64_t without_record;
static _Atomic uint64_t marks[THREADS_MAX / 64];
static _Atomic(void (*)(struct thread *)) on_birth;
static _Atomic(void (*)(void)) on_last;

/* The main thread and those born since, less those at their end. Threads whose
 * end we do not see keep it above 0 for ever. */
#define SOME_UNSEEN (1u << 30)
static _Atomic uint32_t left;
static char main_thread; /* its value of end_key: it has no record of this kind */

/* The calling thread's record, and how many rounds of key destructors went by. */
static __thread struct thread *self;
static __thread int end_rounds;

/* ---- the pool ---- */

static size_t block_bytes(void)
{
    return (size_t)BLOCK_LARGE * space_large;
}

/* NULL: the kernel has no room for it. Two may want one at once. */
static uint8_t *block_at(uint32_t number)
{
    uint8_t *block = atomic_load_explicit(&blocks[number], memory_order_acquire);
    if (block)
        return block;
    uint8_t *mine = pages_map(block_bytes());
    if (mine && !atomic_compare_exchange_strong(&blocks[number], &block, mine)) {
        pages_unmap(mine, block_bytes());
        return block;
    }
    return mine;
}

static uint8_t *space_of(uint32_t index, uint32_t *size)
{
    bool large = index < POOL_LARGE;
    uint32_t each = large ? BLOCK_LARGE : BLOCK_SMALL, at = large ? index : index - POOL_LARGE;
    uint8_t *block = block_at((large ? 0 : POOL_LARGE / BLOCK_LARGE) + at / each);
    *size = large ? space_large : space_small;
    return block ? block + (size_t)(at % each) * *size : NULL;
}

static struct thread *take_listed(void)
{
    uint64_t head = atomic_load_explicit(&free_head, memory_order_acquire), next;
    do {
        if ((uint32_t)head == 0)
            return NULL;
        struct thread *record = &records[(uint32_t)head - 1];
        next = ((head >> 32) + 1) << 32 | atomic_load_explicit(&record->next_free, memory_order_relaxed);
    } while (!atomic_compare_exchange_weak_explicit(&free_head, &head, next, memory_order_acq_rel, memory_order_acquire));
    return &records[(uint32_t)head - 1];
}

static struct thread *take_new(void)
{
    uint32_t index = atomic_load(&high), size;
    uint8_t *space;
    do {
        space = index < THREADS_MAX ? space_of(index, &size) : NULL;
        if (space == NULL)
            return NULL;
    } while (!atomic_compare_exchange_weak(&high, &index, index + 1));
    struct thread *record = &records[index];
    record->index = index;
    record->space = space;
    record->space_size = size;
    return record;
}

static void reset(struct thread *record)
{
    record->adopted = record->beside = false;
    record->tid = 0;
    record->start = NULL;
    record->arg = NULL;
    record->origin = 0;
    atomic_store_explicit(&record->hears, HEARS_UNKNOWN, memory_order_relaxed);
    record->born_ns = record->born_cpu = record->ended_ns = record->ended_cpu = 0;
    atomic_store_explicit(&record->timer, -1, memory_order_relaxed);
    atomic_store_explicit(&record->tstate, 0, memory_order_relaxed);
    atomic_store_explicit(&record->handler_ns, 0, memory_order_relaxed);
    record->handler_usual_ns = 0;
    atomic_store_explicit(&record->slower, 0, memory_order_relaxed);
    atomic_store_explicit(&record->dropped_full, 0, memory_order_relaxed);
    atomic_store_explicit(&record->dropped_torn, 0, memory_order_relaxed);
    atomic_store_explicit(&record->dropped_fault, 0, memory_order_relaxed);
    atomic_store_explicit(&record->dropped_masked, 0, memory_order_relaxed);
    atomic_store_explicit(&record->birth, atomic_fetch_add(&births, 1) + 1, memory_order_relaxed);
}

static struct thread *take(void)
{
    struct thread *record = take_listed();
    if (record == NULL)
        record = take_new();
    if (record == NULL)
        atomic_fetch_add(&without_record, 1);
    else
        reset(record);
    return record;
}

static void give(struct thread *record)
{
    uint64_t head = atomic_load_explicit(&free_head, memory_order_relaxed), mine;
    atomic_store_explicit(&record->state, THREAD_FREE, memory_order_release);
    do {
        atomic_store_explicit(&record->next_free, (uint32_t)head, memory_order_relaxed);
        mine = ((head >> 32) + 1) << 32 | (record->index + 1);
    } while (!atomic_compare_exchange_weak_explicit(&free_head, &head, mine, memory_order_acq_rel, memory_order_relaxed));
}

static enum thread_state state_of(const struct thread *record)
{
    return (enum thread_state)atomic_load_explicit(&record->state, memory_order_acquire);
}

/* ---- life of a thread ---- */

static void finish(struct thread *record, uint64_t ns, uint64_t cpu)
{
    record->ended_ns = ns;
    record->ended_cpu = cpu;
    if (record->beside)
        atomic_fetch_sub(&alive, 1);
    atomic_store_explicit(&record->state, THREAD_ENDED, memory_order_release);
    threads_mark(record);
}

/* Other libraries' destructors still work for the thread, and some run Python
 * code. So ours asks to be called again, until the last round but one: the last
 * is for runtimes without which our code cannot run (ThreadSanitizer's). */
#define END_ROUNDS (PTHREAD_DESTRUCTOR_ITERATIONS - 1)
static void thread_end(void *record)
{
    if (++end_rounds < END_ROUNDS && pthread_setspecific(end_key, record) == 0)
        return;
    if (record != &main_thread) {
        self = NULL;
        atomic_signal_fence(memory_order_seq_cst); /* a CPU tick from here on finds no record */
        finish(record, clock_now(), clock_self());
    }
    void (*last)(void) = atomic_load_explicit(&on_last, memory_order_acquire);
    if (atomic_fetch_sub(&left, 1) == 1 && last)
        last();
}

static void *thread_main(void *arg)
{
    struct thread *record = arg;
    void *(*start)(void *) = record->start;
    void *start_arg = record->arg;
    record->tid = task_tid();
    record->born_ns = clock_now();
    record->born_cpu = clock_self();
    atomic_store_explicit(&record->state, THREAD_LIVE, memory_order_release);
    threads_mark(record);
    /* Should this fail for want of memory, the sampler notices the end. */
    if (pthread_setspecific(end_key, record) != 0)
        atomic_fetch_add(&left, SOME_UNSEEN);
    self = record;
    void (*born)(struct thread *) = atomic_load_explicit(&on_birth, memory_order_acquire);
    if (born)
        born(record);
    return start(start_arg);
}

int threads_create(pthread_t *thread, const pthread_attr_t *attr, void *(*start)(void *), void *arg)
{
    bool ours = threads_started() && real_owns_memory();
    struct thread *record = ours ? take() : NULL;
    if (record == NULL) {
        if (ours)
            atomic_fetch_add(&left, 1); /* never counted down */
        return real_pthread_create(thread, attr, start, arg);
    }
    record->start = start;
    record->arg = arg;
    record->beside = true;
    atomic_fetch_add(&alive, 1);
    atomic_fetch_add(&left, 1);
    atomic_store_explicit(&record->state, THREAD_BORN, memory_order_release);
    int error = real_pthread_create(thread, attr, thread_main, record);
    if (error != 0) {
        atomic_fetch_sub(&alive, 1);
        atomic_fetch_sub(&left, 1);
        give(record);
    }
    return error;
}

static int map_pool(uint32_t space_first)
{
    space_large = space_first;
    space_small = space_first / 4;
    records = block_at(0) ? pages_map(THREADS_MAX * sizeof(struct thread)) : NULL;
    return records ? 0 : -ENOMEM;
}

/* Whether the calling thread is the main one, and there is no other. */
static bool is_alone(void)
{
    return task_tid() == real_pid() && task_count() == 1;
}

static void count_from_here(void)
{
    bool all = is_alone() && pthread_setspecific(end_key, &main_thread) == 0;
    atomic_store(&left, all ? 1 : SOME_UNSEEN);
}

int threads_start(uint32_t space_first)
{
    if (atomic_load(&started))
        return -EALREADY;
    /* A quarter of it must be whole pages: a forked child drops them one by one. */
    if ((space_first & (space_first - 1)) != 0 || space_first < 4 * PAGE)
        return -EINVAL;
    int error = records ? 0 : map_pool(space_first);
    if (error == 0)
        error = -pthread_key_create(&end_key, thread_end);
    if (error == 0) {
        count_from_here();
        atomic_store_explicit(&started, true, memory_order_release);
    }
    return error;
}

bool threads_started(void)
{
    return atomic_load_explicit(&started, memory_order_acquire);
}

void threads_on_birth(void (*born)(struct thread *))
{
    atomic_store_explicit(&on_birth, born, memory_order_release);
}

void threads_on_last(void (*last)(void))
{
    atomic_store_explicit(&on_last, last, memory_order_release);
}

/* ---- on the thread itself ---- */

struct thread *threads_self(void)
{
    return self;
}

bool threads_claim(struct thread *record)
{
    if (self != NULL)
        return self == record;
    if (!record->adopted || state_of(record) != THREAD_LIVE || record->tid != task_tid())
        return false;
    self = record;
    return true;
}

struct thread *threads_find_self(void)
{
    if (self != NULL || !threads_started())
        return self;
    pid_t tid = task_tid();
    for (uint32_t i = 0; i < threads_high(); i++)
        if (state_of(&records[i]) == THREAD_LIVE && records[i].tid == tid)
            return threads_claim(&records[i]) ? self : NULL;
    return NULL;
}

struct thread *threads_from_cookie(void *cookie)
{
    uintptr_t offset = (uintptr_t)cookie - (uintptr_t)records;
    if (!threads_started() || (uintptr_t)cookie < (uintptr_t)records || offset % sizeof(struct thread) != 0 ||
        offset / sizeof(struct thread) >= threads_high())
        return NULL;
    return cookie;
}

/* Always written: should the bit be set already, whoever takes it just now must see
 * what was stored before. */
void threads_mark(struct thread *record)
{
    atomic_fetch_or(&marks[record->index / 64], (uint64_t)1 << record->index % 64);
}

/* ---- the sampler's side ---- */

uint64_t threads_take_marks(uint32_t word)
{
    return atomic_load_explicit(&marks[word], memory_order_relaxed) ? atomic_exchange(&marks[word], 0) : 0;
}

bool threads_are_full(void)
{
    return (uint32_t)atomic_load(&free_head) == 0 && threads_high() == THREADS_MAX;
}

/* A tid without a record may belong to a thread that is on its way: its record
 * is BORN and does not know the tid yet, or is LIVE since the sampler looked, or
 * is at its end. Adopting it then would count it twice. */
static bool is_known(pid_t tid, struct thread **live)
{
    uint32_t count = threads_high();
    *live = NULL;
    for (uint32_t i = 0; i < count; i++) {
        enum thread_state state = state_of(&records[i]);
        if (state == THREAD_BORN)
            return true;
        if (state == THREAD_FREE || records[i].tid != tid)
            continue;
        *live = state == THREAD_LIVE ? &records[i] : NULL;
        return true;
    }
    return false;
}

struct thread *threads_adopt(pid_t tid)
{
    struct thread *record = NULL;
    uint64_t cpu;
    if (!threads_started() || is_known(tid, &record))
        return record;
    if (!clock_thread(tid, &cpu))
        return NULL;
    record = take();
    if (record == NULL)
        return NULL;
    record->adopted = true;
    record->tid = tid;
    record->born_ns = clock_now();
    record->born_cpu = cpu;
    atomic_store_explicit(&record->state, THREAD_LIVE, memory_order_release);
    return record;
}

struct thread *threads_at(uint32_t index)
{
    return index < threads_high() ? &records[index] : NULL;
}

uint32_t threads_high(void)
{
    return atomic_load_explicit(&high, memory_order_acquire);
}

uint64_t threads_births(void)
{
    return atomic_load_explicit(&births, memory_order_relaxed);
}

void threads_end(struct thread *record, uint64_t ns, uint64_t cpu)
{
    if (state_of(record) == THREAD_LIVE)
        finish(record, ns, cpu);
}

void threads_release(struct thread *record)
{
    if (state_of(record) == THREAD_ENDED)
        give(record);
}

uint32_t threads_alive(void)
{
    return atomic_load_explicit(&alive, memory_order_relaxed);
}

uint64_t threads_without_record(void)
{
    return atomic_load_explicit(&without_record, memory_order_relaxed);
}

/* ---- fork ---- */

static void keep_self(struct thread *record)
{
    void *(*start)(void *) = record->start;
    bool adopted = record->adopted;
    reset(record);
    record->start = start;
    record->adopted = adopted;
    record->tid = task_tid();
    record->born_ns = clock_now();
    record->born_cpu = clock_self();
    atomic_store(&record->state, THREAD_LIVE);
}

/* All that were ever taken read as zeros from now on. */
static void drop_spaces(void)
{
    for (uint32_t i = 0; i < BLOCKS; i++)
        if (atomic_load(&blocks[i]))
            pages_clear(atomic_load(&blocks[i]), block_bytes());
}

void threads_postfork_child(void)
{
    real_postfork_child();
    if (!threads_started())
        return;
    uint32_t count = threads_high();
    atomic_store(&free_head, 0);
    atomic_store(&alive, 0);
    atomic_store(&left, pthread_getspecific(end_key) ? 1 : SOME_UNSEEN);
    atomic_store(&without_record, 0);
    memset((void *)marks, 0, sizeof marks); /* nobody else is here */
    drop_spaces();
    for (uint32_t i = count; i-- > 0;) {
        struct thread *record = &records[i];
        record->index = i; /* the taker may have been cut off by the fork */
        record->space = space_of(i, &record->space_size);
        if (record == self)
            keep_self(record);
        else
            give(record);
    }
}
