/* SPDX-License-Identifier: MIT
 *
 * Open addressing over an array of entries; texts live in blocks that never
 * move, so pointers handed out stay good while the table grows.
 */
#include "output/names.h"

#include <stdlib.h> /* free */
#include <string.h>

#include "output/tool.h"

#define FIRST_SLOTS 1024u
#define BLOCK_BYTES 65536u /* a few hundred frames a block; longer texts get one of their own */

struct entry {
    const char *text;
    uint32_t length;
    uint32_t hash;
};

struct block {
    struct block *next;
    size_t used, room;
    char bytes[];
};

/* Slots hold number + 1, 0 is free; their count is a power of two, and never
 * more than half of them are taken. */
struct names {
    struct entry *entries;
    size_t count, room;
    uint32_t *slots;
    uint32_t slots_count;
    struct block *blocks;
};

/* FNV-1a would do but goes byte by byte; this takes eight at a time. */
static uint32_t hash_of(const char *text, size_t length)
{
    uint64_t hash = 0x9e3779b97f4a7c15u ^ length;
    while (length) {
        uint64_t word = 0;
        size_t taken = length < 8 ? length : 8;
        memcpy(&word, text, taken);
        hash = (hash ^ word) * 0xff51afd7ed558ccdu;
        hash ^= hash >> 32;
        text += taken;
        length -= taken;
    }
    return (uint32_t)(hash ^ (hash >> 29));
}

struct names *names_new(void)
{
    struct names *names = tool_alloc(1, sizeof *names);
    names->slots_count = FIRST_SLOTS;
    names->slots = tool_alloc(FIRST_SLOTS, sizeof *names->slots);
    return names;
}

void names_free(struct names *names)
{
    if (!names)
        return;
    while (names->blocks) {
        struct block *next = names->blocks->next;
        free(names->blocks);
        names->blocks = next;
    }
    free(names->entries);
    free(names->slots);
    free(names);
}

/* The slot that holds this string, or the free one where it would go. */
static uint32_t *slot_of(const struct names *names, const char *text, size_t length, uint32_t hash)
{
    uint32_t mask = names->slots_count - 1;
    for (uint32_t at = hash & mask;; at = (at + 1) & mask) {
        uint32_t *slot = &names->slots[at];
        if (!*slot)
            return slot;
        const struct entry *entry = &names->entries[*slot - 1];
        if (entry->hash == hash && entry->length == length && !memcmp(entry->text, text, length))
            return slot;
    }
}

static void slots_double(struct names *names)
{
    free(names->slots);
    names->slots_count *= 2;
    names->slots = tool_alloc(names->slots_count, sizeof *names->slots);
    for (size_t number = 0; number < names->count; number++) {
        const struct entry *entry = &names->entries[number];
        *slot_of(names, entry->text, entry->length, entry->hash) = (uint32_t)number + 1;
    }
}

static const char *text_keep(struct names *names, const char *text, size_t length)
{
    struct block *block = names->blocks;
    if (!block || block->room - block->used <= length) {
        size_t room = length < BLOCK_BYTES ? BLOCK_BYTES : length + 1;
        block = tool_alloc(1, sizeof *block + room);
        block->room = room;
        block->next = names->blocks;
        names->blocks = block;
    }
    char *kept = block->bytes + block->used;
    memcpy(kept, text, length);
    kept[length] = '\0';
    block->used += length + 1;
    return kept;
}

uint32_t names_add(struct names *names, const char *text, size_t length)
{
    uint32_t hash = hash_of(text, length);
    uint32_t *slot = slot_of(names, text, length, hash);
    if (*slot)
        return *slot - 1;
    names->entries = tool_grow(names->entries, names->count, &names->room, sizeof *names->entries);
    names->entries[names->count] = (struct entry){ text_keep(names, text, length), (uint32_t)length, hash };
    *slot = (uint32_t)++names->count;
    if (names->count * 2 > names->slots_count)
        slots_double(names);
    return (uint32_t)names->count - 1;
}

uint32_t names_find(const struct names *names, const char *text, size_t length)
{
    uint32_t found = *slot_of(names, text, length, hash_of(text, length));
    return found ? found - 1 : NAMES_NONE;
}

const char *names_text(const struct names *names, uint32_t number, size_t *length)
{
    const struct entry *entry = &names->entries[number];
    if (length)
        *length = entry->length;
    return entry->text;
}

uint32_t names_count(const struct names *names)
{
    return (uint32_t)names->count;
}
