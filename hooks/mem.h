/* SPDX-License-Identifier: MIT
 *
 * mem: the profiler's own heap: one jemalloc arena with a hard limit.
 *
 * jemalloc is linked statically, its names are renamed and hidden: the
 * application's allocator is never called, never locked and never shows our
 * blocks; libc's malloc stays libc's, also for libc's own calls from here.
 *
 * Runs in: [loader] for mem_init, [sampler] for the rest. Never called on
 * application threads. Failure: NULL, counted; callers degrade ([overflow]).
 */
#ifndef APROF_HOOKS_MEM_H
#define APROF_HOOKS_MEM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Initialises the heap. Must run before our pthread_atfork registration:
 * prepare handlers run last-registered first, and the other order deadlocks in
 * the first fork under allocation (measured). 0 or a negative errno. */
int mem_init(size_t limit_bytes);

void *mem_alloc(size_t size); /* uninitialised, 16-byte aligned */
void *mem_zalloc(size_t size);
void *mem_realloc(void *block, size_t size); /* NULL leaves block as it was. Needs room for both at once */
void mem_free(void *block);
size_t mem_used(void);     /* bytes handed out now, by size class */
size_t mem_limit(void);
uint64_t mem_refused(void); /* how often the limit or the kernel said no */

/* Whether so much can be had and an eighth of the limit is left; a no counts as
 * refused. Names, stacks and tasks, which grow with what the application does and are
 * left out when there is no room, ask first: so that threads can still be watched and
 * windows sealed. A limit of 0 is a heap without one. */
bool mem_has_room(size_t size);

enum { MEM_SMALL = 64 << 10 };

/* Makes room for `needed` elements in an array that is kept with its room (NULL and 0 at first): `first` of them,
 * then twice as many until it is enough. An array of more than MEM_SMALL leaves what mem_has_room says.
 * False: no memory; the array is as it was. */
static inline bool mem_grow(void **array, uint32_t *room, uint32_t needed, uint32_t first, size_t size)
{
    if (needed <= *room)
        return true;
    uint64_t more = *room ? 2 * (uint64_t)*room : first;
    while (more < needed)
        more *= 2;
    if (more > UINT32_MAX)
        more = UINT32_MAX;
    size_t bytes = more * size;
    void *moved = bytes <= MEM_SMALL || mem_has_room(bytes) ? mem_realloc(*array, bytes) : NULL;
    if (!moved)
        return false;
    *array = moved;
    *room = (uint32_t)more;
    return true;
}

/* [fork, child] Leaves the parent's arena as it is (its owner died in the middle
 * of anything) and takes a new one. Every block from before is void. */
void mem_postfork_child(void);

#endif
