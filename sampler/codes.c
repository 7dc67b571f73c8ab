/* SPDX-License-Identifier: MIT
 *
 * Three tables, see codes.h. The ring's records:
 *   word 0  size in words | RECORD_DONE, written last; RECORD_VOID: nothing in it
 *   word 1  identity
 *   word 2  first line | kind of the name << 32 | kind of the path << 40
 *   word 3  length of the name in characters | length of the path << 32
 *   word 4  length of the location table; then the three texts, each from a new word
 */
#include "sampler/codes.h"

#include <errno.h>
#include <stdatomic.h>
#include <string.h>

#include "hooks/guard.h"
#include "hooks/mem.h"
#include "hooks/pages.h"
#include "sampler/cpython/objects.h"

enum {
    KNOWN_SLOTS = 1 << 16,   /* 512 KiB of address space; a page is touched for each few names */
    KNOWN_PROBES = 64,
    RING_WORDS = 1 << 16,    /* 512 KiB; a large application's import fills some 2 MiB over a second */
    NAME_LONGEST = 16384,    /* characters of a name that are looked at */
    TABLE_LONGEST = 1 << 17, /* bytes of a location table that go through the ring */
    TABLE_KEPT = 1 << 22,    /* ... that are kept at all: code of a million instructions. A longer one is garbage, or would take the heap */
    HEADER_WORDS = 5,
    INFOS_MANY = KNOWN_SLOTS / 2,
    WORKS = 4                /* codes of _WorkItem.run, and of anyio's WorkerThread.run, that are known */
};
#define RECORD_DONE (1ull << 62)
#define RECORD_VOID (1ull << 63)

static struct {
    _Atomic uint64_t *known;
    _Atomic uint32_t known_count;
    _Atomic uint64_t *ring;
    _Atomic uint64_t reserved; /* words ever reserved by producers */
    _Atomic uint64_t consumed; /* words ever given back by the sampler */
    _Atomic uint64_t overflows;
    _Atomic uint32_t generation; /* changes when something claimed is given up */
} shared;

int codes_start(void)
{
    size_t bytes = (KNOWN_SLOTS + RING_WORDS) * sizeof(uint64_t);
    void *memory = pages_map(bytes);
    if (!memory)
        return -ENOMEM;
    shared.ring = (_Atomic uint64_t *)memory + KNOWN_SLOTS;
    shared.known = memory;
    return 0;
}

/* --- known identities --- */

/* The slot that holds identity, or the empty one where it would go; NULL: neither near. */
static _Atomic uint64_t *known_slot(uint64_t identity, bool *there)
{
    uint32_t at = (uint32_t)(identity >> 40);
    for (uint32_t probe = 0; probe < KNOWN_PROBES; probe++, at++) {
        _Atomic uint64_t *slot = &shared.known[at & (KNOWN_SLOTS - 1)];
        uint64_t value = atomic_load_explicit(slot, memory_order_acquire);
        if (value == identity || value == 0) {
            *there = value == identity;
            return slot;
        }
    }
    return NULL;
}

/* Finds the slot of identity, or makes the empty one there its own. */
static _Atomic uint64_t *known_take(uint64_t identity)
{
    bool there;
    for (;;) {
        _Atomic uint64_t *slot = known_slot(identity, &there);
        uint64_t empty = 0;
        if (!slot || there)
            return slot;
        if (atomic_compare_exchange_strong(slot, &empty, identity)) {
            atomic_fetch_add_explicit(&shared.known_count, 1, memory_order_relaxed);
            return slot;
        }
    }
}

/* What was copied in an earlier generation may be forgotten by now, and must not
 * stay claimed: it would be [unknown] from then on. */
static void known_claim(uint64_t identity, uint32_t generation)
{
    _Atomic uint64_t *slot = known_take(identity);
    if (slot && atomic_load(&shared.generation) != generation && atomic_compare_exchange_strong(slot, &identity, 0))
        atomic_fetch_sub_explicit(&shared.known_count, 1, memory_order_relaxed);
}

/* Its names could not be kept: whoever sees it next settles it again, or it would be
 * [unknown] from then on. Who is just about to claim it finds a new generation. */
static void known_drop(uint64_t identity)
{
    bool there;
    _Atomic uint64_t *slot = known_slot(identity, &there);
    atomic_fetch_add(&shared.generation, 1);
    if (slot && there && atomic_compare_exchange_strong(slot, &identity, 0))
        atomic_fetch_sub_explicit(&shared.known_count, 1, memory_order_relaxed);
}

/* --- what is copied of a code object --- */

struct parts {
    struct py_str name, path;
    struct py_bytes table;
};

static bool read_parts(const struct py_target *target, const struct py_code *code, struct parts *parts)
{
    if (!objects_str(target, code->qualname, &parts->name) && !objects_str(target, code->name, &parts->name))
        return false;
    if (!objects_str(target, code->filename, &parts->path))
        return false;
    if (!objects_bytes(target, code->linetable, &parts->table) || parts->table.length > TABLE_KEPT)
        parts->table = (struct py_bytes){0, 0};
    if (parts->name.length > NAME_LONGEST)
        parts->name.length = NAME_LONGEST;
    if (parts->path.length > NAME_LONGEST)
        parts->path.length = NAME_LONGEST;
    return true;
}

static uint64_t words_of(uint64_t bytes)
{
    return (bytes + 7) / 8;
}

static uint64_t str_bytes(const struct py_str *str)
{
    return (uint64_t)str->length * str->kind;
}

/* --- producers --- */

static bool ring_reserve(uint64_t words, uint64_t *at)
{
    uint64_t place = atomic_load_explicit(&shared.reserved, memory_order_relaxed);
    do {
        if (place + words - atomic_load_explicit(&shared.consumed, memory_order_acquire) > RING_WORDS)
            return false;
    } while (!atomic_compare_exchange_weak(&shared.reserved, &place, place + words));
    *at = place;
    return true;
}

static void ring_word(uint64_t at, uint64_t word)
{
    atomic_store_explicit(&shared.ring[at & (RING_WORDS - 1)], word, memory_order_relaxed);
}

static void ring_finish(uint64_t at, uint64_t header)
{
    atomic_store_explicit(&shared.ring[at & (RING_WORDS - 1)], header, memory_order_release);
}

/* Copies bytes of the interpreter into the ring, in two pieces at its end. */
static bool ring_copy(uint64_t at, uintptr_t from, uint64_t bytes)
{
    uint64_t start = at & (RING_WORDS - 1);
    uint64_t room = (RING_WORDS - start) * 8;
    uint64_t first = bytes < room ? bytes : room;
    return (first == 0 || guard_copy((void *)(uintptr_t)&shared.ring[start], from, first)) &&
           (first == bytes || guard_copy((void *)(uintptr_t)shared.ring, from + first, bytes - first));
}

static bool fill_record(uint64_t at, const struct py_code *code, const struct parts *parts)
{
    uint64_t name = str_bytes(&parts->name), path = str_bytes(&parts->path);
    ring_word(at + 1, code->identity);
    ring_word(at + 2, (uint32_t)code->firstlineno | (uint64_t)parts->name.kind << 32 | (uint64_t)parts->path.kind << 40);
    ring_word(at + 3, parts->name.length | (uint64_t)parts->path.length << 32);
    ring_word(at + 4, parts->table.length);
    at += HEADER_WORDS;
    return ring_copy(at, parts->name.data, name) && ring_copy(at + words_of(name), parts->path.data, path) &&
           ring_copy(at + words_of(name) + words_of(path), parts->table.data, parts->table.length);
}

bool codes_settle(const struct py_target *target, const struct py_code *code)
{
    struct parts parts;
    uint64_t at, words;
    uint32_t generation = atomic_load(&shared.generation);
    bool there;

    _Atomic uint64_t *slot = known_slot(code->identity, &there);
    if (slot && there)
        return true;
    if (!slot || !read_parts(target, code, &parts) || parts.table.length > TABLE_LONGEST)
        goto no_room;
    words = HEADER_WORDS + words_of(str_bytes(&parts.name)) + words_of(str_bytes(&parts.path)) + words_of(parts.table.length);
    if (words > RING_WORDS / 2 || !ring_reserve(words, &at))
        goto no_room;
    /* Finished before it is claimed: whoever finds it claimed may rely on it. Two
     * threads may settle the same one at once; the sampler keeps the first. */
    bool copied = fill_record(at, code, &parts);
    ring_finish(at, words | RECORD_DONE | (copied ? 0 : RECORD_VOID));
    if (copied)
        known_claim(code->identity, generation);
    return copied;

no_room:
    atomic_fetch_add_explicit(&shared.overflows, 1, memory_order_relaxed);
    return false;
}

/* --- the sampler's own --- */

struct info {
    uint64_t identity;
    int32_t firstlineno;
    uint32_t name_length, path_length, table_length, flags;
    /* then name, path (both escaped, the path not yet shortened) and table */
    char bytes[];
};

struct line { /* (identity, lasti) -> frame */
    uint64_t identity;
    int32_t lasti;
    profile_frame frame;
};

static struct {
    struct info **infos; /* open-addressed by identity */
    uint32_t infos_size, infos_count;
    struct line *lines;
    uint32_t lines_size, lines_count;
} own;

static struct info *find_info(uint64_t identity)
{
    if (!own.infos_size)
        return NULL;
    for (uint32_t at = (uint32_t)identity;; at++) {
        struct info *info = own.infos[at & (own.infos_size - 1)];
        if (!info || info->identity == identity)
            return info;
    }
}

static void place_info(struct info **infos, uint32_t size, struct info *info)
{
    uint32_t at = (uint32_t)info->identity;
    while (infos[at & (size - 1)])
        at++;
    infos[at & (size - 1)] = info;
}

static void *heap_take(size_t size)
{
    return mem_has_room(size) ? mem_zalloc(size) : NULL;
}

/* Keeps the table at most half full; false when it cannot grow and is full. */
static bool grow_infos(void)
{
    if (own.infos_count < own.infos_size / 2)
        return true;
    uint32_t size = own.infos_size ? own.infos_size * 2 : 1024;
    struct info **infos = heap_take(size * sizeof *infos);
    if (!infos)
        return own.infos_count + 1 < own.infos_size;
    for (uint32_t i = 0; i < own.infos_size; i++)
        if (own.infos[i])
            place_info(infos, size, own.infos[i]);
    mem_free(own.infos);
    own.infos = infos;
    own.infos_size = size;
    return true;
}

static bool ends_with(const char *text, size_t length, const char *end)
{
    size_t n = strlen(end);
    return length >= n && memcmp(text + length - n, end, n) == 0;
}

static bool equals(const char *text, size_t length, const char *other)
{
    return length == strlen(other) && memcmp(text, other, length) == 0;
}

static uint32_t flags_of(const char *name, size_t name_length, const char *path, size_t path_length)
{
    if (ends_with(path, path_length, "asyncio/base_events.py") && equals(name, name_length, "BaseEventLoop._run_once"))
        return CODE_LOOP;
    if (ends_with(path, path_length, "asyncio/events.py") && equals(name, name_length, "Handle._run"))
        return CODE_HANDLE;
    if (ends_with(path, path_length, "selectors.py") && ends_with(name, name_length, "Selector.select"))
        return CODE_SELECTOR;
    if (ends_with(path, path_length, "concurrent/futures/thread.py") && equals(name, name_length, "_WorkItem.run"))
        return CODE_WORK;
    if (ends_with(path, path_length, "anyio/_backends/_asyncio.py") && equals(name, name_length, "WorkerThread.run"))
        return CODE_ANYIO;
    if (ends_with(path, path_length, "/threading.py"))
        return CODE_THREAD;
    return 0;
}

/* One an interpreter, as a rule; of more the last ones. */
static struct works {
    _Atomic uint64_t identity[WORKS];
    uint32_t next;
} items, anyios;

static bool is_among(const struct works *works, uint64_t identity)
{
    for (uint32_t i = 0; i < WORKS; i++) {
        uint64_t known = atomic_load_explicit(&works->identity[i], memory_order_relaxed);
        if (known == identity)
            return true;
        if (!known)
            return false;
    }
    return false;
}

uint32_t codes_work(uint64_t identity)
{
    return is_among(&items, identity) ? CODE_WORK : is_among(&anyios, identity) ? CODE_ANYIO : 0;
}

static void note_work(struct works *works, uint64_t identity)
{
    if (!is_among(works, identity))
        atomic_store_explicit(&works->identity[works->next++ % WORKS], identity, memory_order_relaxed);
}

/* Raw texts, as copied out of the interpreter. */
struct raw {
    uint64_t identity;
    int32_t firstlineno;
    const void *name, *path, *table;
    uint32_t name_length, path_length, table_length;
    int name_kind, path_kind;
};

static bool keep_info(const struct raw *raw)
{
    char name[TEXT_NAME_MAX], path[TEXT_NAME_MAX];
    size_t name_length = text_name(name, sizeof name, raw->name, raw->name_length, raw->name_kind);
    size_t path_length = text_path(path, sizeof path, raw->path, raw->path_length, raw->path_kind);
    if (find_info(raw->identity))
        return true;
    if (!grow_infos())
        return false;
    struct info *info = heap_take(sizeof *info + name_length + path_length + raw->table_length);
    if (!info)
        return false;
    *info = (struct info){raw->identity, raw->firstlineno, (uint32_t)name_length, (uint32_t)path_length, raw->table_length,
                          flags_of(name, name_length, path, path_length)};
    if (info->flags & (CODE_WORK | CODE_ANYIO))
        note_work(info->flags & CODE_WORK ? &items : &anyios, raw->identity);
    memcpy(info->bytes, name, name_length);
    memcpy(info->bytes + name_length, path, path_length);
    if (raw->table_length)
        memcpy(info->bytes + name_length + path_length, raw->table, raw->table_length);
    place_info(own.infos, own.infos_size, info);
    own.infos_count++;
    return true;
}

/* --- consumer --- */

static uint64_t ring_get(uint64_t at)
{
    return atomic_load_explicit(&shared.ring[at & (RING_WORDS - 1)], memory_order_relaxed);
}

static void ring_read(void *to, uint64_t at, uint64_t bytes)
{
    uint64_t start = at & (RING_WORDS - 1), room = (RING_WORDS - start) * 8;
    uint64_t first = bytes < room ? bytes : room;
    memcpy(to, (const void *)(uintptr_t)&shared.ring[start], first);
    if (bytes > first)
        memcpy((char *)to + first, (const void *)(uintptr_t)shared.ring, bytes - first);
}

static bool take_record(uint64_t at, uint64_t words)
{
    uint64_t kinds = ring_get(at + 2), lengths = ring_get(at + 3);
    uint64_t bytes = (words - HEADER_WORDS) * 8;
    char *texts = mem_alloc(bytes + 1);
    struct raw raw = {.identity = ring_get(at + 1), .firstlineno = (int32_t)kinds,
                      .name_length = (uint32_t)lengths, .path_length = (uint32_t)(lengths >> 32),
                      .table_length = (uint32_t)ring_get(at + 4), .name_kind = kinds >> 32 & 255, .path_kind = kinds >> 40 & 255};
    if (!texts)
        return false;
    ring_read(texts, at + HEADER_WORDS, bytes);
    raw.name = texts;
    raw.path = texts + 8 * words_of((uint64_t)raw.name_length * (uint64_t)raw.name_kind);
    raw.table = (const char *)raw.path + 8 * words_of((uint64_t)raw.path_length * (uint64_t)raw.path_kind);
    bool kept = keep_info(&raw);
    mem_free(texts);
    return kept;
}

bool codes_drain(void)
{
    uint64_t at = atomic_load_explicit(&shared.consumed, memory_order_relaxed);
    while (at != atomic_load_explicit(&shared.reserved, memory_order_acquire)) {
        uint64_t header = atomic_load_explicit(&shared.ring[at & (RING_WORDS - 1)], memory_order_acquire);
        uint64_t words = header & 0xffffffff;
        if (!(header & RECORD_DONE))
            return false;
        if (!(header & RECORD_VOID) && !take_record(at, words))
            known_drop(ring_get(at + 1));
        /* Zeroed before it is given back: the next record here is not done until it says so. */
        for (uint64_t i = 0; i < words; i++)
            ring_word(at + i, 0);
        at += words;
        atomic_store_explicit(&shared.consumed, at, memory_order_release);
    }
    return true;
}

bool codes_learn(const struct py_target *target, uintptr_t address, uint64_t identity)
{
    struct py_code code, again;
    struct parts parts;
    if (find_info(identity))
        return true;
    if (!code_read(target, address, &code) || code.identity != identity || !read_parts(target, &code, &parts))
        return false;
    uint64_t name = str_bytes(&parts.name), path = str_bytes(&parts.path);
    char *texts = mem_alloc(name + path + parts.table.length + 1);
    if (!texts)
        return false;
    struct raw raw = {.identity = identity, .firstlineno = code.firstlineno, .name = texts, .path = texts + name, .table = texts + name + path,
                      .name_length = parts.name.length, .path_length = parts.path.length, .table_length = parts.table.length,
                      .name_kind = parts.name.kind, .path_kind = parts.path.kind};
    bool read = guard_copy(texts, parts.name.data, name) && guard_copy(texts + name, parts.path.data, path) &&
                (parts.table.length == 0 || guard_copy(texts + name + path, parts.table.data, parts.table.length)) &&
                /* Still the same object, so what was read was its own. */
                code_read(target, address, &again) && again.identity == identity;
    bool kept = read && keep_info(&raw);
    mem_free(texts);
    if (kept)
        known_claim(identity, atomic_load(&shared.generation));
    return kept;
}

/* --- frames --- */

static struct line *find_line(struct line *lines, uint32_t size, uint64_t identity, int32_t lasti)
{
    uint64_t hash = (identity ^ (uint64_t)(uint32_t)lasti * 0x9e3779b97f4a7c15u) * 0xff51afd7ed558ccdu;
    for (uint32_t at = (uint32_t)(hash >> 32);; at++) {
        struct line *line = &lines[at & (size - 1)];
        if (!line->identity || (line->identity == identity && line->lasti == lasti))
            return line;
    }
}

static bool grow_lines(void)
{
    if (own.lines_count < own.lines_size / 2)
        return true;
    uint32_t size = own.lines_size ? own.lines_size * 2 : 4096;
    struct line *lines = heap_take(size * sizeof *lines);
    if (!lines)
        return own.lines_count + 1 < own.lines_size;
    for (uint32_t i = 0; i < own.lines_size; i++)
        if (own.lines[i].identity)
            *find_line(lines, size, own.lines[i].identity, own.lines[i].lasti) = own.lines[i];
    mem_free(own.lines);
    own.lines = lines;
    own.lines_size = size;
    return true;
}

static profile_frame intern_frame(struct profile *profile, const struct text_paths *paths, const struct info *info, int32_t lasti)
{
    char text[TEXT_FRAME_MAX];
    const char *path = info->bytes + info->name_length;
    size_t skip = text_shorten(paths, path, info->path_length);
    int32_t line = code_line((const uint8_t *)path + info->path_length, info->table_length, info->firstlineno, lasti);
    if (line <= 0)
        line = info->firstlineno; /* instructions of the compiler's own have no line */
    size_t length = text_frame(text, sizeof text, info->bytes, info->name_length, path + skip, info->path_length - skip, line);
    return profile_intern(profile, text, length, info->flags);
}

profile_frame codes_frame(struct profile *profile, const struct text_paths *paths, uint64_t identity, int32_t lasti)
{
    struct line *line = own.lines_size ? find_line(own.lines, own.lines_size, identity, lasti) : NULL;
    if (line && line->identity)
        return line->frame;
    const struct info *info = find_info(identity);
    if (!info)
        return 0;
    profile_frame frame = intern_frame(profile, paths, info, lasti);
    if (frame && grow_lines()) {
        *find_line(own.lines, own.lines_size, identity, lasti) = (struct line){identity, lasti, frame};
        own.lines_count++;
    }
    return frame;
}

bool codes_are_many(void)
{
    return own.infos_count > INFOS_MANY || atomic_load_explicit(&shared.known_count, memory_order_relaxed) > INFOS_MANY;
}

void codes_forget_frames(void)
{
    mem_free(own.lines);
    own.lines = NULL;
    own.lines_size = own.lines_count = 0;
}

void codes_forget(void)
{
    atomic_fetch_add(&shared.generation, 1);
    codes_forget_frames();
    for (uint32_t i = 0; i < own.infos_size; i++)
        mem_free(own.infos[i]);
    mem_free(own.infos);
    own.infos = NULL;
    own.infos_size = own.infos_count = 0;
    /* Handlers may claim meanwhile: before this, and their claim goes with the
     * others; after it, and they see the new generation. */
    atomic_store_explicit(&shared.known_count, 0, memory_order_relaxed);
    pages_clear((void *)(uintptr_t)shared.known, KNOWN_SLOTS * sizeof(uint64_t));
}

uint64_t codes_overflows(void)
{
    return atomic_load_explicit(&shared.overflows, memory_order_relaxed);
}

void codes_postfork_child(void)
{
    if (!shared.known)
        return;
    memset(&own, 0, sizeof own);
    /* Fresh pages in place of the parent's: also undoes what a handler of another
     * thread had half written. */
    pages_clear((void *)(uintptr_t)shared.known, (KNOWN_SLOTS + RING_WORDS) * sizeof(uint64_t));
    atomic_store(&shared.known_count, 0);
    atomic_store(&shared.reserved, 0);
    atomic_store(&shared.consumed, 0);
    atomic_store(&shared.overflows, 0);
}
