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
void *mem_realloc(void *block, size_t size); /* NULL leaves block as it was */
void mem_free(void *block);
/* Makes room for `needed` elements in an array that is kept with its room (NULL and 0 at first): `first` of them,
 * then twice as many until it is enough. False: no memory; the array is as it was. */
bool mem_grow(void **array, uint32_t *room, uint32_t needed, uint32_t first, size_t size);

size_t mem_used(void);     /* bytes handed out now, by size class */
size_t mem_limit(void);
uint64_t mem_refused(void); /* how often the limit or the kernel said no */

/* [fork, child] Leaves the parent's arena as it is (its owner died in the middle
 * of anything) and takes a new one. Every block from before is void. */
void mem_postfork_child(void);

#endif
