/* SPDX-License-Identifier: MIT
 *
 * births: a bucket of makers is a line of eight addresses, with eight serials
 * beside it. Which ways are in use is a byte of bits, in an array of its own that
 * stays in the first-level cache: setting a bit claims the way for whoever set
 * it, and a byte of zero is all that a dying coroutine has to see. */
#include "sampler/births.h"

#include <errno.h>
#include <stdatomic.h>
#include <stddef.h> /* NULL */

#include "hooks/guard.h"
#include "hooks/pages.h"
#include "sampler/cpython/containers.h"

enum { BUCKET_BITS = 14, BUCKETS = 1 << BUCKET_BITS, WAYS = 8 };
enum { RING_WORDS = 1 << 17, RING_HALF = RING_WORDS / 2 }; /* 1 MiB */
enum { FUTURE_BITS = 5, FUTURES = 1 << 16 }; /* neighbours apart, 2 MiB apart together */
enum { RECORD_HEAD = 2 };       /* words of a record before its makers: count + 1, task */
enum { FRAMES_MOST = 512 };     /* of one thread, looked at for coroutines */
enum { SUBCLASSES_DEEP = 8, SUBCLASSES_MOST = 4096, BASES_MOST = 64 };
enum { NEWEST_BITS = 15 };      /* 256 KiB, touched as it is used: of 4,000 addresses one in nine shares its place */
#define ADDRESS_LOWEST 4096u

typedef uintptr_t __attribute__((may_alias)) word; /* of the interpreter's memory */

struct memory { /* mapped once; address space until it is used */
    _Atomic uintptr_t address[BUCKETS][WAYS];
    _Atomic uint32_t serial[BUCKETS][WAYS];
    _Atomic uint64_t ring[RING_WORDS];
    _Atomic uint64_t newest[1 << NEWEST_BITS]; /* where in the ring the last birth at an address is, as far as there is room */
    _Atomic uint32_t deaths[FUTURES];
};

static struct memory *memory;
static _Alignas(64) _Atomic uint8_t used[BUCKETS];
static _Alignas(64) _Atomic uint64_t head; /* words of the ring ever reserved */
static _Alignas(64) _Atomic uint64_t tail; /* words ever taken */
static _Alignas(64) _Atomic uint64_t kept; /* births before this one stay: tasks were read since */
static _Alignas(64) _Atomic uint64_t lost;
static void (*_Atomic on_half)(void);

/* What the hooks need, together. The originals are written before a hook is in place. */
static _Alignas(64) struct {
    void *(*thread_state)(void);
    int (*init)(void *, void *, void *);
    void (*coroutine_dealloc)(void *), (*async_gen_dealloc)(void *), (*future_dealloc)(void *);
    uintptr_t coro_type, async_gen_type;
    int32_t current, cframe, cframe_current, previous, owner, gen_frame, gen_state, object_type;
    uint8_t owner_generator;
    int8_t gen_finished;
} own;
static const struct py_target *target;

int births_start(const struct py_target *python, void *(*thread_state)(void))
{
    const struct layout *layout = &python->layout;

    if (memory)
        return 0;
    if (!thread_state || !python->coro_type || !python->async_gen_type)
        return -ENOENT;
    void *mapped = pages_map(sizeof *memory);
    if (!mapped)
        return -ENOMEM;
    own.thread_state = thread_state;
    own.coro_type = python->coro_type;
    own.async_gen_type = python->async_gen_type;
    own.current = layout->thread_current_frame;
    own.cframe = layout->thread_cframe;
    own.cframe_current = layout->cframe_current;
    own.previous = layout->frame_previous;
    own.owner = layout->frame_owner;
    own.owner_generator = layout->owner_generator;
    own.gen_frame = layout->gen_frame;
    own.gen_state = layout->gen_state;
    own.gen_finished = layout->gen_finished;
    own.object_type = layout->object_type;
    target = python;
    memory = mapped;
    return 0;
}

/* --- makers --- */

static uint32_t bucket_of(uintptr_t object)
{
    return (uint32_t)object * 0x85ebca6bu >> (32 - BUCKET_BITS); /* even for 60,000 objects at any usual distance */
}

static maker_id identity(uint32_t bucket, uint32_t way, uint32_t serial)
{
    return (uint64_t)(bucket * WAYS + way) << 32 | serial;
}

static maker_id find(uint32_t bucket, uintptr_t object)
{
#pragma GCC unroll 8
    for (uint32_t way = 0; way < WAYS; way++)
        if (atomic_load_explicit(&memory->address[bucket][way], memory_order_relaxed) == object)
            return identity(bucket, way, atomic_load_explicit(&memory->serial[bucket][way], memory_order_relaxed));
    return 0;
}

/* Takes a free way; 0: there is none. Other threads may claim in the same bucket,
 * but none of them this coroutine: it executes here. */
static maker_id claim(uint32_t bucket, uintptr_t object)
{
    for (uint32_t way = 0; way < WAYS; way++) {
        uint8_t bit = (uint8_t)(1u << way);
        if (atomic_load_explicit(&used[bucket], memory_order_relaxed) & bit ||
            atomic_fetch_or_explicit(&used[bucket], bit, memory_order_acquire) & bit)
            continue;
        uint32_t serial = atomic_load_explicit(&memory->serial[bucket][way], memory_order_relaxed) + 1;
        serial += serial == 0;
        atomic_store_explicit(&memory->serial[bucket][way], serial, memory_order_relaxed);
        atomic_store_explicit(&memory->address[bucket][way], object, memory_order_release);
        return identity(bucket, way, serial);
    }
    return 0;
}

static maker_id maker_of(uintptr_t object)
{
    uint32_t bucket = bucket_of(object);
    maker_id found = 0;

    if (atomic_load_explicit(&used[bucket], memory_order_relaxed))
        found = find(bucket, object);
    return found ? found : claim(bucket, object);
}

/* The entry is gone for every reader before anything of the coroutine is. */
static __attribute__((noinline)) void drop(uint32_t bucket, uint32_t way)
{
    atomic_store_explicit(&memory->address[bucket][way], 0, memory_order_relaxed);
    atomic_fetch_and(&used[bucket], (uint8_t)~(1u << way)); /* a barrier */
}

static __attribute__((noinline)) void forget(uintptr_t object)
{
    uint32_t bucket = bucket_of(object);

#pragma GCC unroll 8
    for (uint32_t way = 0; way < WAYS; way++)
        if (__builtin_expect(atomic_load_explicit(&memory->address[bucket][way], memory_order_relaxed) == object, 0)) {
            drop(bucket, way);
            return;
        }
}

uintptr_t births_coroutine(maker_id maker)
{
    uint64_t way = maker >> 32;

    if (!memory || way >= BUCKETS * WAYS)
        return 0;
    __asm__ volatile("" ::: "memory"); /* what was read of it was read before (x86 keeps loads in order) */
    uintptr_t address = atomic_load_explicit(&memory->address[way / WAYS][way % WAYS], memory_order_acquire);
    uint32_t serial = atomic_load_explicit(&memory->serial[way / WAYS][way % WAYS], memory_order_relaxed);
    return serial == (uint32_t)maker ? address : 0;
}

bool births_is_alive(maker_id maker)
{
    return births_coroutine(maker) != 0;
}

uint32_t births_makers(void)
{
    uint32_t count = 0;
    for (uint32_t bucket = 0; bucket < BUCKETS; bucket++)
        count += (uint32_t)__builtin_popcount(atomic_load_explicit(&used[bucket], memory_order_relaxed));
    return count;
}

/* --- futures --- */

static uint32_t place_of_future(uintptr_t future)
{
    return (uint32_t)(future >> FUTURE_BITS) & (FUTURES - 1);
}

uint32_t births_future_deaths(uintptr_t future)
{
    if (!memory)
        return 0;
    __asm__ volatile("" ::: "memory"); /* what was read was read before, what will be is read after */
    uint32_t deaths = atomic_load_explicit(&memory->deaths[place_of_future(future)], memory_order_acquire);
    __asm__ volatile("" ::: "memory");
    return deaths;
}

const void *births_future_place(uintptr_t future)
{
    return memory ? (const void *)&memory->deaths[place_of_future(future)] : NULL;
}

/* --- ring --- */

static _Atomic uint64_t *ring_at(uint64_t position)
{
    return &memory->ring[position % RING_WORDS];
}

static uint32_t newest_of(uintptr_t task)
{
    uint64_t hash = task * 0x9e3779b97f4a7c15u; /* alone it brings objects at some usual distances together */
    return (uint32_t)((hash ^ hash >> 32) * 0xff51afd7ed558ccdu >> (64 - NEWEST_BITS));
}

/* Where a record of so many words may be written; false: full. */
static bool reserve(uint32_t words, uint64_t *position)
{
    uint64_t at = atomic_load_explicit(&head, memory_order_relaxed);
    int64_t before;

    do {
        /* Negative when others have moved both ends since; then the exchange fails. */
        before = (int64_t)(at - atomic_load_explicit(&tail, memory_order_acquire));
        if (before + (int64_t)words > RING_WORDS)
            return false;
    } while (!atomic_compare_exchange_weak_explicit(&head, &at, at + words, memory_order_relaxed, memory_order_relaxed));
    *position = at;
    if (before <= RING_HALF && before + (int64_t)words > RING_HALF) {
        void (*call)(void) = atomic_load_explicit(&on_half, memory_order_relaxed);
        if (call)
            call();
    }
    return true;
}

/* A task is gone when another one is born in its place: then the record of its birth, which
 * still waits, is to be passed over, unless it may have been read in between. Found by whoever
 * makes the other one, who has both in its cache; for the sampler they lie in another's. */
static void supersede(uint64_t at, uintptr_t task)
{
    _Atomic uint64_t *last = &memory->newest[newest_of(task)];
    uint64_t before = atomic_load_explicit(last, memory_order_relaxed);
    uint64_t expected = task;

    atomic_store_explicit(last, at, memory_order_relaxed);
    if (before < at && before >= atomic_load_explicit(&kept, memory_order_acquire) &&
        before >= atomic_load_explicit(&tail, memory_order_relaxed)) /* exchanged: it may be taken at this moment */
        atomic_compare_exchange_strong_explicit(ring_at(before + 1), &expected, 0, memory_order_relaxed, memory_order_relaxed);
}

/* The header comes last: until then the record, and what is behind it, is not there. */
static bool append(uintptr_t task, const maker_id *chain, uint32_t count)
{
    uint64_t at;

    if (!reserve(RECORD_HEAD + count, &at))
        return false;
    atomic_store_explicit(ring_at(at + 1), task, memory_order_relaxed);
    for (uint32_t i = 0; i < count; i++)
        atomic_store_explicit(ring_at(at + RECORD_HEAD + i), chain[i], memory_order_relaxed);
    atomic_store_explicit(ring_at(at), count + 1, memory_order_release);
    supersede(at, task);
    return true;
}

/* All that was taken is zeroed: a header may come to stand on any word. */
static bool take(struct birth *birth)
{
    uint64_t at = atomic_load_explicit(&tail, memory_order_relaxed), header;

    if (!memory || !(header = atomic_load_explicit(ring_at(at), memory_order_acquire)))
        return false;
    birth->number = at;
    birth->count = (uint32_t)header - 1;
    birth->task = atomic_load_explicit(ring_at(at + 1), memory_order_relaxed);
    for (uint32_t i = 0; birth->task && i < birth->count; i++)
        birth->maker[i] = atomic_load_explicit(ring_at(at + RECORD_HEAD + i), memory_order_relaxed);
    for (uint32_t i = 0; i < RECORD_HEAD + birth->count; i++)
        atomic_store_explicit(ring_at(at + i), 0, memory_order_relaxed);
    atomic_store_explicit(&tail, at + RECORD_HEAD + birth->count, memory_order_release);
    return true;
}

/* A record without a task is passed over. */
bool births_next(struct birth *birth)
{
    while (take(birth))
        if (birth->task)
            return true;
    return false;
}

void births_hold(void)
{
    atomic_store(&kept, UINT64_MAX);
}

void births_release(void)
{
    atomic_store(&kept, atomic_load(&head));
}

uint64_t births_number(void)
{
    return atomic_load_explicit(&head, memory_order_acquire);
}

uint64_t births_lost(void)
{
    return atomic_load_explicit(&lost, memory_order_relaxed);
}

void births_on_half(void (*call)(void))
{
    atomic_store_explicit(&on_half, call, memory_order_relaxed);
}

void births_postfork_child(void)
{
    uint64_t end = atomic_load_explicit(&head, memory_order_relaxed);

    for (uint64_t at = atomic_load_explicit(&tail, memory_order_relaxed); at != end; at++)
        atomic_store_explicit(ring_at(at), 0, memory_order_relaxed);
    atomic_store_explicit(&tail, end, memory_order_relaxed);
}

/* --- the hooks --- */

static inline uintptr_t word_at(uintptr_t base, int32_t offset)
{
    return *(const word *)(base + (uintptr_t)(intptr_t)offset);
}

static inline uintptr_t current_frame(uintptr_t tstate)
{
    return own.cframe == LAYOUT_NONE ? word_at(tstate, own.current) : word_at(word_at(tstate, own.cframe), own.cframe_current);
}

/* The coroutines on this thread, innermost first. False: one found no room. */
static bool chain_of(uintptr_t tstate, maker_id *chain, uint32_t *count)
{
    uintptr_t frame = tstate ? current_frame(tstate) : 0;

    *count = 0;
    for (uint32_t i = 0; frame && i < FRAMES_MOST && *count < BIRTH_MAKERS; i++, frame = word_at(frame, own.previous)) {
        if (*(const uint8_t *)(frame + (uintptr_t)own.owner) != own.owner_generator)
            continue;
        uintptr_t object = frame - (uintptr_t)own.gen_frame, type = word_at(object, own.object_type);
        if (type != own.coro_type && type != own.async_gen_type)
            continue;
        if (!(chain[*count] = maker_of(object)))
            return false;
        ++*count;
    }
    return true;
}

/* --- which task a coroutine is of --- */

enum { REMEMBERED = 4096 }; /* 64 KiB, touched as it is used; a power of two */

/* Two words that may not belong together: whoever finds them asks the task. */
static struct {
    _Atomic uintptr_t coroutine, task;
} remembered[REMEMBERED];

static uint32_t place_of(uintptr_t coroutine)
{
    return (uint32_t)(coroutine * 0x9e3779b97f4a7c15u >> 40) & (REMEMBERED - 1);
}

/* What the task is made of is the first argument of its __init__. */
static void remember(uintptr_t task, uintptr_t args)
{
    const struct layout *layout = &target->layout;
    if (!args || word_at(args, layout->var_size) == 0)
        return;
    uintptr_t coroutine = word_at(args, layout->tuple_items);
    uint32_t place = place_of(coroutine);
    atomic_store_explicit(&remembered[place].coroutine, coroutine, memory_order_relaxed);
    atomic_store_explicit(&remembered[place].task, task, memory_order_relaxed);
}

uintptr_t births_task_of(uintptr_t coroutine)
{
    uint32_t place = place_of(coroutine);
    return atomic_load_explicit(&remembered[place].coroutine, memory_order_relaxed) == coroutine
               ? atomic_load_explicit(&remembered[place].task, memory_order_relaxed)
               : 0;
}

/* In place of tp_init. Before the original, in which an eager task runs. */
static int task_init(void *self, void *args, void *kwds)
{
    maker_id chain[BIRTH_MAKERS];
    uint32_t count;

    if (!chain_of((uintptr_t)own.thread_state(), chain, &count) || !append((uintptr_t)self, chain, count))
        atomic_fetch_add_explicit(&lost, 1, memory_order_relaxed);
    remember((uintptr_t)self, (uintptr_t)args);
    return own.init(self, args, kwds);
}

/* The original closes a coroutine that has not finished: what it does in `finally`
 * may make tasks. */
static __attribute__((noinline)) void bury(void *self, void (*original)(void *))
{
    forget((uintptr_t)self);
    original(self);
    forget((uintptr_t)self);
}

/* In place of tp_dealloc. Nearly all have finished and made nothing. */
static inline void dealloc(void *self, void (*original)(void *))
{
    int8_t state = *(const int8_t *)((uintptr_t)self + (uintptr_t)own.gen_state);

    if (__builtin_expect(state < own.gen_finished, 0))
        bury(self, original);
    else {
        if (__builtin_expect(atomic_load_explicit(&used[bucket_of((uintptr_t)self)], memory_order_relaxed) != 0, 0))
            forget((uintptr_t)self);
        original(self);
    }
}

static void coroutine_dealloc(void *self)
{
    dealloc(self, own.coroutine_dealloc);
}

static void async_gen_dealloc(void *self)
{
    dealloc(self, own.async_gen_dealloc);
}

/* In place of a future's tp_dealloc. Counted before its memory is another's. Interpreters
 * with a GIL of their own may count at once: one is lost then, and the number is new all the same. */
static void future_dealloc(void *self)
{
    _Atomic uint32_t *deaths = &memory->deaths[place_of_future((uintptr_t)self)];
    atomic_store_explicit(deaths, atomic_load_explicit(deaths, memory_order_relaxed) + 1, memory_order_release);
    own.future_dealloc(self);
}

/* --- their installation --- */

static bool read_word(uintptr_t base, int32_t offset, uintptr_t *value)
{
    uint64_t read;
    if (base < ADDRESS_LOWEST || !guard_word(base + (uintptr_t)(intptr_t)offset, &read))
        return false;
    *value = (uintptr_t)read;
    return true;
}

/* Where the memory at place still says `from`; it was readable a moment ago. */
static bool swap(uintptr_t place, uintptr_t from, uintptr_t to)
{
    uintptr_t now;
    return read_word(place, 0, &now) && now == from && __atomic_compare_exchange_n((word *)place, &from, to, false, __ATOMIC_RELEASE, __ATOMIC_RELAXED);
}

/* What a coroutine type is destroyed by, to *original, unless it is ours already. */
static bool dealloc_of(uintptr_t type, void (*hook)(void *), void (**original)(void *))
{
    uintptr_t now;
    if (!read_word(type, target->layout.type_dealloc, &now) || !now)
        return false;
    if (now != (uintptr_t)hook)
        *original = (void (*)(void *))now;
    return true;
}

static bool hook_coroutines(void)
{
    uintptr_t coroutine = own.coro_type, generator = own.async_gen_type;
    int32_t dealloc = target->layout.type_dealloc;

    if (!dealloc_of(coroutine, coroutine_dealloc, &own.coroutine_dealloc) || !dealloc_of(generator, async_gen_dealloc, &own.async_gen_dealloc))
        return false;
    swap(coroutine + (uintptr_t)dealloc, (uintptr_t)own.coroutine_dealloc, (uintptr_t)coroutine_dealloc);
    swap(generator + (uintptr_t)dealloc, (uintptr_t)own.async_gen_dealloc, (uintptr_t)async_gen_dealloc);
    return true;
}

static bool is_original_or_hook(uintptr_t function)
{
    return function && (function == (uintptr_t)own.init || function == (uintptr_t)task_init);
}

/* Where the descriptor type.__dict__['__init__'] keeps the function that it calls
 * (PyWrapperDescrObject, Include/cpython/descrobject.h); 0: it is not one. */
static uintptr_t wrapped_place(uintptr_t type)
{
    int32_t head_size = target->layout.object_type + 8;
    uintptr_t dict, of, descriptor = 0;

    if (read_word(type, target->layout.type_dict, &dict))
        descriptor = containers_dict_get(target, dict, "__init__");
    if (!descriptor || !read_word(descriptor, head_size, &of) || of != type) /* d_type; then name, qualname, base, wrapped */
        return 0;
    return descriptor + (uintptr_t)head_size + 32;
}

struct subclasses { /* of a type, depth first */
    struct dict_walk level[SUBCLASSES_DEEP];
    uintptr_t root;
    uint32_t depth, seen;
};

static void descend(struct subclasses *walk, uintptr_t type)
{
    uintptr_t dict;
    if (walk->depth < SUBCLASSES_DEEP && read_word(type, target->layout.type_subclasses, &dict) && dict &&
        containers_dict_begin(&walk->level[walk->depth], target, dict))
        walk->depth++;
}

/* A dict that is being changed may name what was freed meanwhile. */
static bool is_subclass(uintptr_t type, uintptr_t root)
{
    for (uint32_t i = 0; i < BASES_MOST; i++) {
        if (!read_word(type, target->layout.type_base, &type))
            return false;
        if (type == root)
            return true;
    }
    return false;
}

static bool next_subclass(struct subclasses *walk, uintptr_t *type)
{
    uintptr_t key, reference;

    while (walk->depth && walk->seen < SUBCLASSES_MOST) {
        if (!containers_dict_next(&walk->level[walk->depth - 1], &key, &reference)) {
            walk->depth--;
            continue;
        }
        walk->seen++;
        if (!read_word(reference, target->layout.weakref_object, type) || !is_subclass(*type, walk->root))
            continue;
        descend(walk, *type);
        return true;
    }
    return false;
}

static void hook_subclasses(uintptr_t root)
{
    struct subclasses walk = {.root = root};
    uintptr_t type;

    descend(&walk, root);
    while (next_subclass(&walk, &type))
        swap(type + (uintptr_t)target->layout.type_init, (uintptr_t)own.init, (uintptr_t)task_init);
}

/* The base of the Task type. One of another make than the first stays as it is. */
static void hook_futures(uintptr_t task_type)
{
    uintptr_t type;
    void (*original)(void *) = own.future_dealloc;

    if (!read_word(task_type, target->layout.type_base, &type) || !containers_type_is_named(target, type, "_asyncio.Future") ||
        !dealloc_of(type, future_dealloc, &original) || !original)
        return;
    if (!own.future_dealloc)
        own.future_dealloc = original;
    swap(type + (uintptr_t)target->layout.type_dealloc, (uintptr_t)own.future_dealloc, (uintptr_t)future_dealloc);
}

bool births_counts_futures(uintptr_t future_type)
{
    uintptr_t dealloc;
    return memory && read_word(future_type, target->layout.type_dealloc, &dealloc) && dealloc == (uintptr_t)future_dealloc;
}

bool births_hook(uintptr_t task_type)
{
    uintptr_t init, wrapped, place;

    if (!memory || !read_word(task_type, target->layout.type_init, &init) || !(place = wrapped_place(task_type)) ||
        !read_word(place, 0, &wrapped))
        return false;
    if (!own.init && init == wrapped && hook_coroutines())
        own.init = (int (*)(void *, void *, void *))init;
    if (!is_original_or_hook(init) || !is_original_or_hook(wrapped))
        return false;
    swap(place, (uintptr_t)own.init, (uintptr_t)task_init);
    swap(task_type + (uintptr_t)target->layout.type_init, (uintptr_t)own.init, (uintptr_t)task_init);
    hook_subclasses(task_type);
    hook_futures(task_type);
    return true;
}

bool births_is_hooked(uintptr_t task_type)
{
    struct subclasses walk = {.root = task_type};
    uintptr_t type = task_type, init;

    if (!memory || !own.init)
        return false;
    descend(&walk, task_type);
    do {
        if (read_word(type, target->layout.type_init, &init) && init == (uintptr_t)own.init)
            return false;
    } while (next_subclass(&walk, &type));
    return read_word(task_type, target->layout.type_init, &init) && init == (uintptr_t)task_init;
}
