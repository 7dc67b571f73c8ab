/* SPDX-License-Identifier: MIT
 *
 * The only caller of jemalloc. Its names carry the prefix aprof_je_
 * (scripts/jemalloc.mk); everything else of it is local to one object file.
 */
#include "hooks/mem.h"

#include <errno.h>
#include <jemalloc/jemalloc.h> /* MALLOCX_* */
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

#define HIDDEN __attribute__((visibility("hidden")))
HIDDEN void *aprof_je_mallocx(size_t size, int flags);
HIDDEN void *aprof_je_rallocx(void *block, size_t size, int flags);
HIDDEN void aprof_je_dallocx(void *block, int flags);
HIDDEN size_t aprof_je_sallocx(const void *block, int flags);
HIDDEN size_t aprof_je_nallocx(size_t size, int flags);
HIDDEN int aprof_je_mallctl(const char *name, void *old, size_t *old_size, void *new_value, size_t new_size);
HIDDEN extern void (*aprof_je_malloc_message)(void *opaque, const char *text);

#define NO_ARENA (-1)   /* every allocation is refused */
#define WANT_ARENA (-2) /* forked: the next allocation makes one */

static _Atomic int arena = NO_ARENA;
static _Atomic size_t used, limit;
static _Atomic uint64_t refused;

/* Whatever jemalloc has to say about itself is not for the application's stderr. */
static void keep_quiet(void *opaque, const char *text)
{
    (void)opaque;
    (void)text;
}

static int new_arena(void)
{
    unsigned index;
    size_t size = sizeof index;
    int error = aprof_je_mallctl("arenas.create", &index, &size, NULL, 0);
    atomic_store(&arena, error ? NO_ARENA : (int)index);
    return -error;
}

int mem_init(size_t limit_bytes)
{
    aprof_je_malloc_message = keep_quiet;
    atomic_store(&limit, limit_bytes);
    return new_arena();
}

/* No thread cache: it would take memory for every thread that ever calls, and
 * blocks in it are not the arena's. */
static int flags(void)
{
    return (int)MALLOCX_ARENA((unsigned)atomic_load_explicit(&arena, memory_order_relaxed)) | MALLOCX_TCACHE_NONE;
}

/* Takes n bytes of the limit; all or nothing. */
static bool take(size_t n)
{
    size_t now = atomic_load_explicit(&used, memory_order_relaxed), most = atomic_load_explicit(&limit, memory_order_relaxed);
    do {
        if (n > most || now > most - n)
            return false;
    } while (!atomic_compare_exchange_weak(&used, &now, now + n));
    return true;
}

static void *refuse(void)
{
    atomic_fetch_add(&refused, 1);
    return NULL;
}

/* A forked child that only execs never gets here, and pays for no arena. */
static bool has_arena(void)
{
    if (atomic_load_explicit(&arena, memory_order_relaxed) == WANT_ARENA)
        new_arena();
    return atomic_load_explicit(&arena, memory_order_relaxed) >= 0;
}

static void *allocate(size_t size, int extra)
{
    if (!has_arena())
        return refuse();
    size_t n = aprof_je_nallocx(size ? size : 1, flags() | MALLOCX_ALIGN(16)); /* 0: larger than any class */
    if (n == 0 || !take(n))
        return refuse();
    void *block = aprof_je_mallocx(size ? size : 1, flags() | extra);
    if (block != NULL)
        return block;
    atomic_fetch_sub(&used, n);
    return refuse();
}

void *mem_alloc(size_t size)
{
    return allocate(size, MALLOCX_ALIGN(16));
}

void *mem_zalloc(size_t size)
{
    return allocate(size, MALLOCX_ALIGN(16) | MALLOCX_ZERO);
}

void *mem_realloc(void *block, size_t size)
{
    if (block == NULL)
        return mem_alloc(size);
    size_t before = aprof_je_sallocx(block, 0);
    size_t after = aprof_je_nallocx(size ? size : 1, flags() | MALLOCX_ALIGN(16));
    size_t extra = after > before ? after : 0; /* where it moves both are there for a moment */
    if (after == 0 || !take(extra))
        return refuse();
    void *moved = aprof_je_rallocx(block, size ? size : 1, flags() | MALLOCX_ALIGN(16));
    if (moved != NULL)
        atomic_fetch_sub(&used, before + extra - after);
    else
        atomic_fetch_sub(&used, extra);
    return moved ? moved : refuse();
}

void mem_free(void *block)
{
    if (block == NULL)
        return;
    atomic_fetch_sub(&used, aprof_je_sallocx(block, 0));
    aprof_je_dallocx(block, MALLOCX_TCACHE_NONE);
}

size_t mem_used(void)
{
    return atomic_load_explicit(&used, memory_order_relaxed);
}

size_t mem_limit(void)
{
    return atomic_load_explicit(&limit, memory_order_relaxed);
}

uint64_t mem_refused(void)
{
    return atomic_load_explicit(&refused, memory_order_relaxed);
}

bool mem_has_room(size_t size)
{
    size_t most = mem_limit();
    bool room = most == 0 || mem_used() + size <= most - most / 8;
    if (!room)
        atomic_fetch_add_explicit(&refused, 1, memory_order_relaxed);
    return room;
}

void mem_postfork_child(void)
{
    if (atomic_load(&arena) != NO_ARENA)
        atomic_store(&arena, WANT_ARENA);
    atomic_store(&used, 0);
    atomic_store(&refused, 0);
}
