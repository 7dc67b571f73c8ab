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

void fake_reset(void)
{
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

bool guard_word(uintptr_t src, uint64_t *word)
{
    return src % sizeof *word == 0 && guard_copy(word, src, sizeof *word);
}

bool guard_gather(uint64_t *words, const struct guard_place *places, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++)
        if (!guard_word(words[places[i].from] + (uintptr_t)(intptr_t)places[i].offset, &words[places[i].to]))
            return false;
    return true;
}

uint32_t guard_gather_if(uint64_t *words, const struct guard_place *places, uint32_t n, uint64_t expected)
{
    if (!guard_gather(words, places, 1))
        return 0;
    if (words[places[0].to] != expected)
        return 1;
    return guard_gather(words, places + 1, n - 1) ? n : 0;
}

bool guard_store(uint64_t *dst, uint64_t value)
{
    *dst = value;
    return true;
}

int guard_start(enum guard_reader reader)
{
    return 0;
}

void guard_recheck(void)
{
}

void guard_own_thread(void)
{
}

bool guard_in_force(void)
{
    return true;
}

const char *guard_reader_name(void)
{
    return "copy";
}
