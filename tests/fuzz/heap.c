/* SPDX-License-Identifier: MIT
 *
 * hooks/mem.h over the sanitizer's malloc, which knows where each block ends. The
 * limit is kept to, so that what has no memory is tried too.
 */
#include <stdlib.h>
#include <string.h>

#include "hooks/mem.h"

enum { HEAD = 16 }; /* before each block: its size */

static size_t used, limit;
static uint64_t refused;

int mem_init(size_t limit_bytes)
{
    limit = limit_bytes;
    return 0;
}

static void *allocate(size_t size, void *(*get)(size_t size))
{
    uint8_t *block = size <= limit && used <= limit - size ? get(size + HEAD) : NULL;
    if (!block) {
        refused++;
        return NULL;
    }
    memcpy(block, &size, sizeof size);
    used += size;
    return block + HEAD;
}

static void *get_zeroed(size_t size)
{
    return calloc(1, size);
}

static size_t size_of(const void *block)
{
    size_t size;
    memcpy(&size, (const uint8_t *)block - HEAD, sizeof size);
    return size;
}

void *mem_alloc(size_t size)
{
    return allocate(size, malloc);
}

void *mem_zalloc(size_t size)
{
    return allocate(size, get_zeroed);
}

void *mem_realloc(void *block, size_t size)
{
    void *moved = mem_alloc(size);
    if (!moved || !block)
        return moved;
    memcpy(moved, block, size_of(block) < size ? size_of(block) : size);
    mem_free(block);
    return moved;
}

void mem_free(void *block)
{
    if (!block)
        return;
    used -= size_of(block);
    free((uint8_t *)block - HEAD);
}

size_t mem_used(void)
{
    return used;
}

size_t mem_limit(void)
{
    return limit;
}

bool mem_has_room(size_t size)
{
    return limit == 0 || used + size <= limit - limit / 8;
}

uint64_t mem_refused(void)
{
    return refused;
}

void mem_postfork_child(void)
{
}
