/* SPDX-License-Identifier: MIT
 *
 * A copy may span mappings that touch each other: it goes byte run by byte run.
 */
#include "tests/unit/fake_memory.h"
#include "hooks/guard.h"

#include <stdlib.h>
#include <string.h>

#define REGIONS 4096

static struct region {
    uintptr_t address;
    const uint8_t *bytes;
    size_t length;
} regions[REGIONS];
static size_t count;
static _Atomic unsigned long reads, refusals; /* handlers of several threads read */
static void (*on_read)(uintptr_t address, size_t length);

void fake_map(uintptr_t address, const void *bytes, size_t length)
{
    if (count == REGIONS || address + length < address)
        abort();
    regions[count++] = (struct region){address, bytes, length};
}

/* What was mapped stays reachable: a test that begins anew leaks nothing. */
static void keep(void)
{
    static struct kept {
        struct kept *next;
        struct region regions[];
    } *kept;
    struct kept *more = count ? malloc(sizeof *more + count * sizeof *regions) : NULL;
    if (!more)
        return;
    more->next = kept;
    memcpy(more->regions, regions, count * sizeof *regions);
    kept = more;
}

void fake_reset(void)
{
    keep();
    count = 0;
    reads = refusals = 0;
    on_read = NULL;
}

void fake_on_read(void (*call)(uintptr_t address, size_t length))
{
    on_read = call;
}

unsigned long fake_reads(void)
{
    return reads;
}

unsigned long fake_refusals(void)
{
    return refusals;
}

static const struct region *region_at(uintptr_t address)
{
    for (size_t i = count; i-- > 0;)
        if (address >= regions[i].address && address - regions[i].address < regions[i].length)
            return &regions[i];
    return NULL;
}

static bool copy(uint8_t *dst, uintptr_t src, size_t n)
{
    while (n > 0) {
        const struct region *region = region_at(src);
        if (region == NULL)
            return false;
        size_t offset = src - region->address, run = region->length - offset;
        run = run < n ? run : n;
        memcpy(dst, region->bytes + offset, run);
        dst += run, src += run, n -= run;
    }
    return true;
}

bool guard_copy(void *dst, uintptr_t src, size_t n)
{
    if (on_read)
        on_read(src, n);
    bool done = copy(dst, src, n);
    ++*(done ? &reads : &refusals);
    return done;
}

#include "tests/guard_by_copy.h"
