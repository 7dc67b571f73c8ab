/* SPDX-License-Identifier: MIT */
#include "tests/fuzz/image.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <sanitizer/lsan_interface.h>

#include "hooks/guard.h"
#include "tests/unit/fake_memory.h"

enum { REGIONS_MOST = 4096, READ_WORDS_MOST = 1 << 14, ENDLESS_PERIOD = 256 };

struct region {
    uintptr_t address;
    size_t length, shown; /* shown: what can be read of it now */
    uint8_t *bytes, *pristine;
    bool changed;
};

struct place { /* a word that is read when nothing is edited */
    uint32_t region, offset;
};

struct image {
    struct region *regions; /* by address; the arena among them */
    size_t count, arena;
    struct place *places;
    size_t place_count;
};

static struct region mapped[REGIONS_MOST];
static size_t mapped_count;
static bool building;

static struct image *now;
static struct place *recorded;
static size_t recorded_count;
static unsigned long reads, allowed = ~0ul, all_reads;
static const uint8_t *edits_left;
static size_t edits_count;

/* --- making one --- */

void fake_map(uintptr_t address, const void *bytes, size_t length)
{
    if (mapped_count == REGIONS_MOST || address + length < address)
        abort();
    mapped[mapped_count++] = (struct region){.address = address, .length = length, .pristine = (uint8_t *)(uintptr_t)bytes};
}

/* What an image is made of is never freed. */
void fake_reset(void)
{
    if (!building)
        __lsan_disable();
    building = true;
    mapped_count = 0;
}

void fake_on_read(void (*call)(uintptr_t address, size_t length))
{
}

unsigned long fake_reads(void)
{
    return all_reads;
}

unsigned long fake_refusals(void)
{
    return 0;
}

static int by_address(const void *a, const void *b)
{
    const struct region *one = a, *other = b;
    return one->address < other->address ? -1 : one->address > other->address;
}

/* A region mapped later hides what it begins at; those that overlap otherwise are a fault of the target. */
static void drop_hidden(void)
{
    size_t kept = 0;
    for (size_t i = 0; i < mapped_count; i++) {
        bool hidden = !mapped[i].length;
        for (size_t j = i + 1; j < mapped_count; j++)
            hidden |= mapped[j].address == mapped[i].address;
        if (!hidden)
            mapped[kept++] = mapped[i];
    }
    mapped_count = kept;
}

struct image *image_seal(void)
{
    static const uint8_t arena[IMAGE_ARENA_BYTES];
    struct image *image = calloc(1, sizeof *image);
    fake_map(IMAGE_ARENA_AT, arena, sizeof arena);
    drop_hidden();
    qsort(mapped, mapped_count, sizeof *mapped, by_address);
    image->regions = calloc(mapped_count, sizeof *image->regions);
    image->count = mapped_count;
    for (size_t i = 0; i < mapped_count; i++) {
        struct region *region = &image->regions[i];
        *region = mapped[i];
        if (i && mapped[i - 1].address + mapped[i - 1].length > region->address) {
            fprintf(stderr, "regions overlap at %#lx\n", region->address);
            abort();
        }
        region->bytes = malloc(region->length);
        region->pristine = malloc(region->length);
        memcpy(region->pristine, mapped[i].pristine, region->length);
        region->changed = true;
        if (region->address == IMAGE_ARENA_AT)
            image->arena = i;
    }
    mapped_count = 0;
    image->places = calloc(READ_WORDS_MOST, sizeof *image->places);
    __lsan_enable();
    building = false;
    return image;
}

void image_record_begin(struct image *image)
{
    image_begin(image, NULL, 0);
    recorded = image->places;
    recorded_count = 0;
}

void image_record_end(void)
{
    now->place_count = recorded_count;
    recorded = NULL;
}

static void record(const struct region *region, size_t offset, size_t length)
{
    for (size_t end = offset + length; offset < end; offset = (offset & ~(size_t)7) + 8) {
        struct place place = {(uint32_t)(region - now->regions), (uint32_t)offset};
        size_t i = 0;
        while (i < recorded_count && (recorded[i].region != place.region || recorded[i].offset != place.offset))
            i++;
        if (i == recorded_count && recorded_count < READ_WORDS_MOST)
            recorded[recorded_count++] = place;
    }
}

/* --- edits --- */

enum { WHERE_READ, WHERE_READ_TOO, WHERE_REGION, WHERE_ARENA, WHERES };
enum {
    SET_WORD, SET_BYTE, SET_HALF, SET_POINTER, SET_POINTER_INTO, SET_POINTER_ENDLESS, SET_POINTER_ARENA, SET_SMALL, SET_COPY, SET_EXTREME,
    SET_FILL, SET_BIT, SET_UNREADABLE, SET_SHORTER, SET_ADD, SET_POINTER_ODD, SET_SELF, SET_NEIGHBOUR, SETS
};

static const uint64_t extremes[] = {
    0, 1, UINT64_MAX, INT64_MAX, (uint64_t)INT64_MIN, UINT32_MAX, INT32_MAX, (uint64_t)INT32_MIN, 0x80000000u, 0xffff, 0x10000,
    1u << 24, (1u << 24) + 1, 1u << 28, (1u << 28) + 1, 4095, 4096, 0x7ffffffff000, 0x800000000000, UINT64_MAX - 7, 1u << 20, 0x7f, 0x80, 0xff,
    IMAGE_ENDLESS_AT - 8, IMAGE_ENDLESS_AT + IMAGE_ENDLESS_BYTES - 8,
};

static uintptr_t region_at(uint64_t number)
{
    return now->regions[number % now->count].address;
}

/* Where an edit goes to; false: nowhere. */
static bool place_of(const struct image_edit *edit, struct region **region, size_t *offset)
{
    switch (edit->where % WHERES) {
    case WHERE_ARENA:
        *region = &now->regions[now->arena];
        *offset = edit->more * 8u % IMAGE_ARENA_BYTES;
        return true;
    case WHERE_REGION:
        *region = &now->regions[edit->place % now->count];
        *offset = (*region)->length > 8 ? edit->more * 8u % ((*region)->length & ~(size_t)7) : 0;
        return true;
    default:
        if (!now->place_count)
            return false;
        *region = &now->regions[now->places[edit->place % now->place_count].region];
        *offset = now->places[edit->place % now->place_count].offset + (edit->more & 7);
        return *offset < (*region)->length;
    }
}

static uint64_t value_of(const struct image_edit *edit, const struct region *edited, uint64_t before)
{
    uint64_t v = edit->value;
    struct image_edit other = {.where = WHERE_READ, .place = (uint16_t)v};
    struct region *region;
    size_t offset;
    uint64_t word = 0;
    switch (edit->what % SETS) {
    case SET_POINTER:
        return region_at(v);
    case SET_POINTER_INTO:
        return region_at(v) + (v >> 16 & 0xfff) * 8;
    case SET_SELF: /* a circle */
        return edited->address;
    case SET_NEIGHBOUR: /* often an object of the same kind */
        return region_at((uint64_t)(edited - now->regions) + now->count + v % 9 - 4);
    case SET_POINTER_ODD:
        return region_at(v) + (v >> 16 & 0xff);
    case SET_POINTER_ENDLESS:
        return IMAGE_ENDLESS_AT + (v & 0x1ff8);
    case SET_POINTER_ARENA:
        return IMAGE_ARENA_AT + (v & (IMAGE_ARENA_BYTES - 8));
    case SET_SMALL:
        return v & 0xfff;
    case SET_EXTREME:
        return extremes[v % (sizeof extremes / sizeof *extremes)];
    case SET_BIT:
        return before ^ 1ull << (v & 63);
    case SET_ADD:
        return before + (uint64_t)(int8_t)v * (v & 0x100 ? 8 : 1);
    case SET_COPY:
        if (place_of(&other, &region, &offset) && offset + 8 <= region->length)
            memcpy(&word, region->bytes + offset, 8);
        return word;
    default:
        return v;
    }
}

static void put(struct region *region, size_t offset, const void *value, size_t size)
{
    if (size > region->length - offset)
        size = region->length - offset;
    memcpy(region->bytes + offset, value, size);
}

static void apply(const struct image_edit *edit)
{
    struct region *region;
    size_t offset;
    uint64_t before = 0, value;
    if (!place_of(edit, &region, &offset))
        return;
    region->changed = true;
    memcpy(&before, region->bytes + offset, region->length - offset < 8 ? region->length - offset : 8);
    value = value_of(edit, region, before);
    switch (edit->what % SETS) {
    case SET_FILL:
        memset(region->bytes + offset, (int)(value & 0xff), region->length - offset);
        break;
    case SET_UNREADABLE:
        region->shown = 0;
        break;
    case SET_SHORTER:
        region->shown = offset;
        break;
    case SET_BYTE:
        put(region, offset, &value, 1);
        break;
    case SET_HALF:
        put(region, offset, &value, 4);
        break;
    default:
        put(region, offset, &value, 8);
    }
}

/* All that are due, in their order: one that waits holds back those behind it. */
static void apply_due(void)
{
    struct image_edit edit;
    while (edits_count) {
        memcpy(&edit, edits_left, sizeof edit);
        if (edit.when > all_reads)
            return;
        edits_left += sizeof edit;
        edits_count--;
        apply(&edit);
    }
}

void image_begin(struct image *image, const uint8_t *edits, size_t size)
{
    now = image;
    for (size_t i = 0; i < image->count; i++) {
        struct region *region = &image->regions[i];
        region->shown = region->length;
        if (region->changed)
            memcpy(region->bytes, region->pristine, region->length);
        region->changed = false;
    }
    all_reads = reads = 0;
    allowed = ~0ul;
    edits_left = edits;
    edits_count = size / sizeof(struct image_edit);
    apply_due();
}

void image_allow(unsigned long most)
{
    reads = 0;
    allowed = most;
}

unsigned long image_reads(void)
{
    return reads;
}

/* --- reading --- */

static const struct region *region_with(uintptr_t address)
{
    size_t low = 0, high = now->count;
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (now->regions[middle].address <= address)
            low = middle + 1;
        else
            high = middle;
    }
    if (low == 0)
        return NULL;
    const struct region *region = &now->regions[low - 1];
    return address - region->address < region->shown ? region : NULL;
}

static bool copy_endless(uint8_t *dst, uintptr_t src, size_t n)
{
    const uint8_t *arena = now->regions[now->arena].bytes;
    if (src - IMAGE_ENDLESS_AT > IMAGE_ENDLESS_BYTES - n || n > IMAGE_ENDLESS_BYTES)
        return false;
    for (size_t i = 0; i < n; i++)
        dst[i] = arena[(src + i) % ENDLESS_PERIOD];
    return true;
}

static bool copy(uint8_t *dst, uintptr_t src, size_t n)
{
    if (!now) /* a target without an image: nothing can be read */
        return false;
    if (src >= IMAGE_ENDLESS_AT && src < IMAGE_ENDLESS_AT + IMAGE_ENDLESS_BYTES)
        return copy_endless(dst, src, n);
    while (n > 0) {
        const struct region *region = region_with(src);
        if (!region)
            return false;
        size_t offset = src - region->address, run = region->shown - offset;
        run = run < n ? run : n;
        memcpy(dst, region->bytes + offset, run);
        if (recorded)
            record(region, offset, run);
        dst += run, src += run, n -= run;
    }
    return true;
}

bool guard_copy(void *dst, uintptr_t src, size_t n)
{
    all_reads++;
    reads += 1 + n / 64;
    if (reads > allowed) {
        fprintf(stderr, "image: more than %lu reads\n", allowed);
        abort();
    }
    if (edits_count)
        apply_due();
    return copy(dst, src, n);
}

#include "tests/guard_by_copy.h"

/* --- mutation: edits stay whole --- */

static unsigned next_random(unsigned *seed)
{
    *seed = *seed * 1664525u + 1013904223u;
    return *seed >> 8;
}

static void random_edit(struct image_edit *edit, unsigned *seed)
{
    *edit = (struct image_edit){
        .where = (uint8_t)next_random(seed), .what = (uint8_t)next_random(seed), .place = (uint16_t)next_random(seed), .more = (uint16_t)next_random(seed),
        .value = next_random(seed) | (uint64_t)next_random(seed) << 24,
    };
    if (next_random(seed) % 8 == 0)
        edit->when = (uint16_t)(next_random(seed) % 512);
    if (next_random(seed) % 4 == 0)
        edit->more = 0;
}

static void change_edit(struct image_edit *edit, unsigned *seed)
{
    struct image_edit other;
    random_edit(&other, seed);
    switch (next_random(seed) % 7) {
    case 0: edit->where = other.where; break;
    case 1: edit->what = other.what; break;
    case 2: edit->when = edit->when ? 0 : (uint16_t)(next_random(seed) % 512); break;
    case 3: edit->place = other.place; break;
    case 4: edit->more = other.more; break;
    case 5: edit->value = other.value; break;
    case 6: edit->value += next_random(seed) % 16 - 8; break;
    }
}

size_t image_mutate(uint8_t *data, size_t size, size_t most, unsigned seed, size_t head)
{
    struct image_edit edit;
    if (size < head) {
        memset(data + size, 0, head - size);
        size = head;
    }
    size_t count = (size - head) / sizeof edit;
    size = head + count * sizeof edit;
    uint8_t *at = data + head + (count ? next_random(&seed) % count : 0) * sizeof edit;
    switch (next_random(&seed) % 8) {
    case 0:
        data[next_random(&seed) % head] = (uint8_t)next_random(&seed);
        return size;
    case 1: /* one less */
        if (!count)
            return size;
        memmove(at, at + sizeof edit, (size_t)(data + size - at) - sizeof edit);
        return size - sizeof edit;
    case 2: /* one more */
    case 3:
    case 4:
        if (size + sizeof edit > most)
            return size;
        random_edit(&edit, &seed);
        memmove(at + sizeof edit, at, (size_t)(data + size - at));
        memcpy(at, &edit, sizeof edit);
        return size + sizeof edit;
    default:
        if (!count)
            return size;
        memcpy(&edit, at, sizeof edit);
        change_edit(&edit, &seed);
        memcpy(at, &edit, sizeof edit);
        return size;
    }
}
