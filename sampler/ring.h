/* SPDX-License-Identifier: MIT
 *
 * ring: the CPU ticks of one thread, on their way to the sampler.
 *
 * One producer (the handler on that thread, which cannot interrupt itself), one
 * consumer (the sampler). Words of eight bytes in the thread's own space
 * (hooks/threads.h). A record is written word by word and becomes visible as a
 * whole by ring_commit; what was begun and not committed never was there. A
 * record that finds the ring empty begins at its first word again, so a large
 * ring touches no more memory than its longest backlog.
 *
 * A record is a header and a sequence of tagged entries, leaf first:
 *   word 0  RING_RECORD | flags << 8 | words << 16 (whole record) | entries << 40
 *   word 1  CPU clock of the thread, ns
 *   word 2  CLOCK_MONOTONIC, ns
 *   word 3  frames cut at the root end
 *   entry   tag in the low byte of its first word, the rest by its tag:
 *           RING_SETTLED    tag | lasti << 32, identity
 *           RING_UNSETTLED  tag | lasti << 32, identity, address of the code object
 *           RING_TASK       tag, address of a task: its frames end here, births_number()
 *           RING_CHAIN      tag | frames << 32: so many frame entries follow, outermost first
 *           RING_CYCLE      tag: the awaiters go round in a circle
 *           RING_EXCEPTION  tag | length << 32, a text of so many bytes: the type of the exception that the
 *                           thread handles
 *           RING_NAME       tag | length << 32, a text of so many bytes (text_fold_end): in place of
 *                           a frame, the name of the task whose frames end here, or whose chain begins
 *           RING_LABEL      tag | label << 8 | length << 32, a text of so many bytes: what the thread's
 *                           context says; before all frames
 *
 * Runs in: [handler] for the producer's half, [sampler] for the other.
 */
#ifndef APROF_SAMPLER_RING_H
#define APROF_SAMPLER_RING_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "sampler/cpython/collector.h"

enum { RING_RECORD = 0x52 };
enum { RING_SETTLED = 1, RING_UNSETTLED = 2, RING_TASK = 3, RING_CHAIN = 4, RING_CYCLE = 5, RING_NAME = 6, RING_LABEL = 7, RING_EXCEPTION = 8 };
enum { RING_HEADER_WORDS = 4 };

/* Flags of a record. */
enum {
    RING_HOLDS_GIL = 1, /* the thread held its interpreter's GIL */
    RING_IN_SYSCALL = 2, /* it was interrupted at the return of a system call */
    RING_TORN_AWAITER = 4, /* awaiters are missing: they could not be read as one piece */
    RING_TORN_EXCEPTION = 8, /* what the thread handles could not be read */
    RING_COLLECTS = 16,      /* it runs a garbage collection */
    RING_MAY_COLLECT = 32    /* that could not be told */
};

/* The first word of a record; words and entries have 24 bits each, more than any ring holds. */
static inline uint64_t ring_header(uint64_t flags, uint32_t words, uint32_t entries)
{
    return RING_RECORD | flags << 8 | (uint64_t)words << 16 | (uint64_t)entries << 40;
}

static inline uint32_t ring_flags(uint64_t header)
{
    return header >> 8 & 0xff;
}

static inline uint32_t ring_words(uint64_t header)
{
    return header >> 16 & 0xffffff;
}

static inline uint32_t ring_entries(uint64_t header)
{
    return (uint32_t)(header >> 40);
}

struct ring {
    _Atomic uint32_t head; /* words ever written; the producer's */
    _Atomic uint32_t tail; /* words ever read; the consumer's */
    _Atomic uint32_t from; /* where the oldest unread record begins, if that is after tail; the producer's */
    uint32_t words;        /* capacity, a power of two */
    uint32_t writing;      /* the producer's place in an open record */
    struct collector_memory collector; /* the producer's; readers may look at that of one that stands still */
    uint64_t word[];
};

/* Makes a ring of the space; whoever does so owns both ends at that moment. */
static inline struct ring *ring_init(void *space, uint32_t bytes)
{
    struct ring *ring = space;
    uint32_t words = (bytes - (uint32_t)sizeof *ring) / 8, power = 1;
    while (power * 2 <= words)
        power *= 2;
    ring->words = power;
    ring->writing = 0;
    ring->collector = (struct collector_memory){0, 0};
    atomic_store_explicit(&ring->head, 0, memory_order_relaxed);
    atomic_store_explicit(&ring->from, 0, memory_order_relaxed);
    atomic_store_explicit(&ring->tail, 0, memory_order_release);
    return ring;
}

/* --- producer --- */

/* Where the oldest unread record begins: words between tail and it are no record. */
static inline uint32_t ring_oldest_(const struct ring *ring, uint32_t head, uint32_t tail)
{
    uint32_t from = atomic_load_explicit(&ring->from, memory_order_relaxed);
    return from - tail < head - tail ? from : tail;
}

/* Begins a record; writing holds where it starts, until words are put. */
static inline uint32_t ring_open(struct ring *ring)
{
    uint32_t head = atomic_load_explicit(&ring->head, memory_order_relaxed);
    bool empty = atomic_load_explicit(&ring->tail, memory_order_acquire) == head;
    ring->writing = empty ? (head + ring->words - 1) & ~(ring->words - 1) : head;
    return ring->writing;
}

static inline uint32_t ring_room(const struct ring *ring, uint32_t opened)
{
    uint32_t tail = atomic_load_explicit(&ring->tail, memory_order_acquire);
    uint32_t head = atomic_load_explicit(&ring->head, memory_order_relaxed);
    return ring->words - (ring->writing - (tail == head ? opened : ring_oldest_(ring, head, tail)));
}

static inline void ring_put(struct ring *ring, uint64_t word)
{
    ring->word[ring->writing++ & (ring->words - 1)] = word;
}

static inline void ring_commit(struct ring *ring, uint32_t opened)
{
    if (opened != atomic_load_explicit(&ring->head, memory_order_relaxed))
        atomic_store_explicit(&ring->from, opened, memory_order_relaxed);
    atomic_store_explicit(&ring->head, ring->writing, memory_order_release);
}

/* A word of the open record, counted from its start. */
static inline void ring_patch(struct ring *ring, uint32_t opened, uint32_t at, uint64_t word)
{
    ring->word[(opened + at) & (ring->words - 1)] = word;
}

/* --- consumer --- */

/* Words ready to be read; a record starts at the first. */
static inline uint32_t ring_ready(struct ring *ring)
{
    uint32_t head = atomic_load_explicit(&ring->head, memory_order_acquire);
    uint32_t tail = atomic_load_explicit(&ring->tail, memory_order_relaxed);
    uint32_t oldest = ring_oldest_(ring, head, tail);
    if (oldest != tail)
        atomic_store_explicit(&ring->tail, oldest, memory_order_release);
    return head - oldest;
}

static inline uint64_t ring_peek(const struct ring *ring, uint32_t at)
{
    return ring->word[(atomic_load_explicit(&ring->tail, memory_order_relaxed) + at) & (ring->words - 1)];
}

/* The words of the record at the tail, of so many that are ready; 0: that is no record,
 * somebody wrote over it, and nothing behind it can be told from it. */
static inline uint32_t ring_record(const struct ring *ring, uint32_t ready)
{
    uint64_t header = ring_peek(ring, 0);
    uint32_t words = ring_words(header);
    return (header & 255) == RING_RECORD && words >= RING_HEADER_WORDS && words <= ready ? words : 0;
}

static inline void ring_drop(struct ring *ring, uint32_t words)
{
    uint32_t tail = atomic_load_explicit(&ring->tail, memory_order_relaxed);
    atomic_store_explicit(&ring->tail, tail + words, memory_order_release);
}

#endif
