/* SPDX-License-Identifier: MIT */
#include "sampler/registry.h"

#include <string.h>

#include "hooks/mem.h"
#include "sampler/cpython/asyncios.h"
#include "sampler/cpython/awaiters.h"
#include "sampler/cpython/coros.h"
#include "sampler/cpython/exceptions.h"
#include "sampler/cpython/glance.h"
#include "sampler/cpython/states.h"
#include "sampler/labels.h"
#include "sampler/text.h"

enum {
    READINGS = 2,          /* of a task that changed while it was read */
    UNBORN_ROUNDS = 100,   /* until an object whose __init__ does not end is no task */
    CHAIN_LONGEST = 16384, /* coroutines of one task */
    SHARED = 256,          /* futures between tasks that are remembered within a round; a power of two */
    FOLLOWED = 64,         /* callbacks likewise */
    AHEAD = 16,            /* of the task that is looked at, another one is fetched */
    FIRST_ROOM = 256,
    REREADINGS = 4,        /* one within the other */
    PROVEN_MOST = 4,       /* awaiters looked at again as soon as a task's edges were read */
    REREAD_EVERY = 64,     /* rounds after which a task is read in full though it looks unchanged */
    SHRINK_FROM = 16384,   /* room for so many tasks, of which an eighth is used: a quarter is kept */
};

/* How the edges of a task that has not changed are found again. */
enum kept {
    KEPT_NOT,   /* by the whole walk */
    KEPT_NONE,  /* it has no callbacks: nobody waits */
    KEPT_DIRECT /* one task waits for it: kept_next */
};

/* Edges that all who lead to one future share. */
struct shared {
    uintptr_t between;
    uint32_t round, first_edge, edges;
};

/* A birth at the address of a task that was read before it. */
struct late {
    struct late *next;
    struct birth birth;
    uint8_t asyncio;
};

/* Of a task what every round looks at, in an array of its own beside the records. */
struct seen {
    struct glance_wait wait;  /* what it waited for when it was read last */
    uint64_t read_from;       /* births_number() before its last reading, ... */
    uint32_t read_births;     /* ... and how many there were meanwhile */
    uint32_t deaths;          /* births_future_deaths() of that before */
    uint32_t round;           /* of its last reading */
    uint32_t group;           /* in which it rests; 0: it does not */
    marker_id name, exception;   /* at its last reading; kept for who asks for them */
    uint8_t asyncio;
};

/* Since when a task is known to wait for this future, and for no other that died there
 * and was made anew meanwhile. Apart from what ticks read: written when it is laid to rest. */
struct since {
    uintptr_t future; /* 0: not known */
    uint64_t ns;
    uint32_t deaths;  /* births_future_deaths() from then on */
};

/* What its context said when it was read; kept for who asks for labels. */
struct labelled {
    marker_id label[LABELS_MOST];
};

struct group {
    uint32_t first, count;
};

/* Callbacks that many tasks have in common are followed once a round. */
struct followed {
    uintptr_t callback;
    uint32_t round;
    bool known;
    struct awaiters_lead lead;
};

struct registry {
    const struct py_target *target;
    struct registered *tasks;
    struct seen *seen;
    struct since *since;
    struct labelled *labelled;   /* NULL: nobody asks */
    uint32_t *active;            /* indices */
    uint32_t actives;
    uint32_t count, room;        /* of tasks, seen, since, active and labelled */
    uint64_t now;
    struct group *group;
    struct awaiters_lead *lead_of; /* a group */
    uint32_t groups_room, leads_room;
    uint32_t verify_from, verify; /* so many from there on are glanced at, though they rest */
    uint32_t may_rest;           /* a bit for each asyncio */
    uint32_t *by_task, *by_coro; /* open-addressed: index + 1 */
    uint32_t slots;              /* of each: a power of two, at least twice the room */
    uint32_t tasks_used, coros_used; /* slots in use, also by what is no longer there */
    struct link *link;
    uint32_t links, links_room;
    struct edge *edge;
    uint32_t edges, edges_room;
    uint32_t round;
    uint32_t next;               /* likely to be looked for next: lists are in the order of birth */
    uint64_t order, skipped;
    bool gone;                   /* some are TASK_GONE */
    bool has_unhooked;
    uint32_t rereadings;
    bool awaits;                 /* some wait for another task, in this round */
    struct late *late;           /* births to be taken at the end of the round */
    struct shared shared[SHARED];
    struct followed followed[FOLLOWED];
};

/* --- memory --- */

/* Room for one more; false: there is none. */
static bool grow(void **array, uint32_t *room, uint32_t needed, size_t size)
{
    return mem_grow(array, room, needed, FIRST_ROOM, size);
}

struct registry *registry_new(const struct py_target *target)
{
    struct registry *registry = mem_zalloc(sizeof *registry);
    if (registry) {
        registry->target = target;
        registry->round = 1;
    }
    return registry;
}

void registry_free(struct registry *registry)
{
    if (!registry)
        return;
    for (uint32_t i = 0; i < registry->count; i++)
        mem_free(registry->tasks[i].makers);
    for (struct late *late = registry->late, *next; late; late = next) {
        next = late->next;
        mem_free(late);
    }
    mem_free(registry->tasks);
    mem_free(registry->seen);
    mem_free(registry->since);
    mem_free(registry->labelled);
    mem_free(registry->active);
    mem_free(registry->group);
    mem_free(registry->lead_of);
    mem_free(registry->by_task);
    mem_free(registry->by_coro);
    mem_free(registry->link);
    mem_free(registry->edge);
    mem_free(registry);
}

/* --- the indexes --- */

static uint32_t slot_of(const struct registry *registry, uintptr_t address)
{
    return (uint32_t)(address * 0x9e3779b97f4a7c15u >> 32) & (registry->slots - 1);
}

static bool is_read(const struct registry *registry, uint32_t index)
{
    return registry->seen[index].round == registry->round;
}

static bool has_left(const struct registry *registry, uint32_t index)
{
    return registry->tasks[index].status == TASK_GONE && is_read(registry, index);
}

static uint32_t find_in(const struct registry *registry, const uint32_t *index, uintptr_t address, bool by_coro)
{
    if (!registry->slots || !address)
        return NO_TASK;
    for (uint32_t at = slot_of(registry, address); index[at]; at = (at + 1) & (registry->slots - 1)) {
        uint32_t found = index[at] - 1; /* it may be another's by now, or nobody's */
        if (found >= registry->count)
            continue;
        const struct registered *task = &registry->tasks[found];
        if (by_coro ? task->coro == address && !has_left(registry, found) : task->task == address)
            return found;
    }
    return NO_TASK;
}

uint32_t registry_find(const struct registry *registry, uintptr_t task)
{
    return find_in(registry, registry->by_task, task, false);
}

/* One that ended meanwhile may still be listed, and its coroutine's address be that
 * of another's: who is found must have been read. */
uint32_t registry_find_coro(struct registry *registry, uintptr_t coro)
{
    uint32_t index;
    while ((index = find_in(registry, registry->by_coro, coro, true)) != NO_TASK && !is_read(registry, index))
        registry_read(registry, index);
    return index;
}

/* Where an address is used again and again it may be there already. False: it was. */
static bool put_into(const struct registry *registry, uint32_t *index, uintptr_t address, uint32_t task)
{
    uint32_t at = slot_of(registry, address);
    if (!address)
        return false;
    while (index[at] && index[at] != task + 1)
        at = (at + 1) & (registry->slots - 1);
    bool was = index[at] != 0;
    index[at] = task + 1;
    return !was;
}

static void index_all(struct registry *registry)
{
    memset(registry->by_task, 0, registry->slots * sizeof *registry->by_task);
    memset(registry->by_coro, 0, registry->slots * sizeof *registry->by_coro);
    registry->tasks_used = registry->coros_used = registry->count;
    for (uint32_t i = 0; i < registry->count; i++) {
        put_into(registry, registry->by_task, registry->tasks[i].task, i);
        put_into(registry, registry->by_coro, registry->tasks[i].coro, i);
    }
}

static bool grow_indexes(struct registry *registry)
{
    uint32_t slots = registry->room * 2;
    if (slots <= registry->slots)
        return true;
    uint32_t *by_task = mem_alloc(slots * sizeof *by_task), *by_coro = mem_alloc(slots * sizeof *by_coro);
    if (!by_task || !by_coro) {
        mem_free(by_task);
        mem_free(by_coro);
        return false;
    }
    mem_free(registry->by_task);
    mem_free(registry->by_coro);
    registry->by_task = by_task;
    registry->by_coro = by_coro;
    registry->slots = slots;
    index_all(registry);
    return true;
}

/* Those that moved, or whose coroutine is another, have a further slot. */
static void note_slots(struct registry *registry, uint32_t tasks, uint32_t coros)
{
    registry->tasks_used += tasks;
    registry->coros_used += coros;
    if (registry->tasks_used > registry->slots / 4 * 3 || registry->coros_used > registry->slots / 4 * 3)
        index_all(registry);
}

/* --- active, and at rest --- */

uint32_t registry_actives(const struct registry *registry)
{
    return registry->actives;
}

uint32_t registry_active(const struct registry *registry, uint32_t at)
{
    return registry->active[at];
}

/* There is room for all. */
static void become_active(struct registry *registry, uint32_t index)
{
    registry->tasks[index].at = registry->actives;
    registry->active[registry->actives++] = index;
}

static void become_inactive(struct registry *registry, uint32_t index)
{
    uint32_t at = registry->tasks[index].at, moved = registry->active[--registry->actives];
    registry->active[at] = moved;
    registry->tasks[moved].at = at;
}

static void link_at_rest(struct registry *registry, uint32_t index, uint32_t group)
{
    struct registered *task = &registry->tasks[index];
    task->at = registry->group[group].first;
    task->before = NO_TASK;
    if (task->at != NO_TASK)
        registry->tasks[task->at].before = index;
    registry->group[group].first = index;
}

static void unlink_at_rest(struct registry *registry, uint32_t index, uint32_t group)
{
    const struct registered *task = &registry->tasks[index];
    if (task->at != NO_TASK)
        registry->tasks[task->at].before = task->before;
    if (task->before != NO_TASK)
        registry->tasks[task->before].at = task->at;
    else
        registry->group[group].first = task->at;
}

void registry_wake(struct registry *registry, uint32_t index)
{
    uint32_t group = registry->seen[index].group;
    if (!group)
        return;
    unlink_at_rest(registry, index, group);
    registry->group[group].count--;
    registry->seen[index].group = 0;
    registry->tasks[index].woken_from = group; /* in place of the one before it */
    registry->tasks[index].unchanged = registry->tasks[index].reshaped = false;
    become_active(registry, index);
}

void registry_allow_rest(struct registry *registry, uint8_t asyncio, bool allowed)
{
    uint32_t bit = 1u << asyncio;
    if (!allowed && registry->may_rest & bit)
        for (uint32_t i = 0; i < registry->count; i++)
            if (registry->seen[i].asyncio == asyncio) {
                registry_wake(registry, i);
                registry->since[i].future = 0;
            }
    registry->may_rest = (registry->may_rest & ~bit) | (allowed ? bit : 0);
}

uint32_t registry_resting(const struct registry *registry, uint32_t group)
{
    return group < registry->groups_room ? registry->group[group].count : 0;
}

uint32_t registry_first_at_rest(const struct registry *registry, uint32_t group)
{
    return registry_resting(registry, group) ? registry->group[group].first : NO_TASK;
}

void registry_verify(struct registry *registry, uint64_t part, uint64_t all)
{
    uint64_t tasks = part < all ? registry->count * part / all + 1 : registry->count;
    registry->verify_from = registry->count ? (registry->verify_from + registry->verify) % registry->count : 0;
    registry->verify = tasks < registry->count ? (uint32_t)tasks : registry->count;
}

/* --- tasks come and go --- */

uint32_t registry_count(const struct registry *registry)
{
    return registry->count;
}

struct registered *registry_at(const struct registry *registry, uint32_t index)
{
    return &registry->tasks[index];
}

uint64_t registry_skipped(const struct registry *registry)
{
    return registry->skipped;
}

/* Of all arrays, for one task more. */
static bool grow_tasks(struct registry *registry)
{
    uint32_t seen = registry->room, active = registry->room, room = registry->room, since = registry->room, labelled = registry->room;
    if (registry->count < registry->room)
        return true;
    if (!grow((void **)&registry->seen, &seen, registry->count + 1, sizeof *registry->seen) ||
        !grow((void **)&registry->since, &since, registry->count + 1, sizeof *registry->since) ||
        !grow((void **)&registry->active, &active, registry->count + 1, sizeof *registry->active) ||
        (labels_asked && !grow((void **)&registry->labelled, &labelled, registry->count + 1, sizeof *registry->labelled)) ||
        !grow((void **)&registry->tasks, &room, registry->count + 1, sizeof *registry->tasks))
        return false;
    registry->room = room;
    return true;
}

uint32_t registry_add(struct registry *registry, uintptr_t task, uint8_t asyncio)
{
    uint32_t index = registry->next;
    if (index >= registry->count || registry->seen[index].wait.task != task)
        index = registry_find(registry, task);
    if (index != NO_TASK) {
        registry->next = index + 1;
        return index;
    }
    if (!grow_tasks(registry) || !grow_indexes(registry) || registry->count * 2 >= registry->slots) {
        registry->skipped++;
        return NO_TASK;
    }
    index = registry->count++;
    registry->tasks[index] = (struct registered){.task = task, .asyncio = asyncio, .order = registry->order++};
    registry->seen[index] = (struct seen){.wait.task = task, .asyncio = asyncio};
    registry->since[index].future = 0;
    if (labels_asked)
        registry->labelled[index] = (struct labelled){{0}};
    become_active(registry, index);
    put_into(registry, registry->by_task, task, index);
    note_slots(registry, 1, 0);
    return index;
}

/* What was kept of the task that was there before is void. */
static void become_another(struct registry *registry, struct registered *task)
{
    mem_free(task->makers);
    task->makers = NULL;
    task->makers_count = 0;
    task->makers_hash = 0;
    task->unborn = 0;
    task->born = 0;
    task->read_ns = 0;
    task->order = registry->order++;
    task->kept_stack = PROFILE_ROOT;
    task->reshaped = true;
}

/* Its coroutine tells a task from another one at the same address. */
static void note_coro(struct registry *registry, uint32_t index, uintptr_t coro)
{
    struct registered *task = &registry->tasks[index];
    if (task->coro == coro)
        return;
    if (task->coro)
        become_another(registry, task);
    task->coro = coro;
    note_slots(registry, 0, put_into(registry, registry->by_coro, coro, index));
}

/* A task that nobody has read yet may have made others: its coroutine is noted at
 * once, if its __init__ has run. */
static void note_coro_of_birth(struct registry *registry, uint32_t index)
{
    const struct registered *task = &registry->tasks[index];
    const struct asyncio *asyncio = asyncios_at(task->asyncio);
    uintptr_t waiter, coro;
    if (asyncio && asyncio_waiter(registry->target, asyncio, task->task, &waiter, &coro) && coro)
        note_coro(registry, index, coro);
}

static uint64_t mix(uint64_t hash, uint64_t word)
{
    hash = (hash ^ word) * 0xff51afd7ed558ccdu;
    return hash ^ hash >> 32;
}

static void note_birth(struct registry *registry, struct registered *task, const struct birth *birth)
{
    size_t bytes = birth->count * sizeof *task->makers;
    become_another(registry, task);
    task->born = birth->number + 1;
    if (birth->count && (task->makers = mem_alloc(bytes))) {
        memcpy(task->makers, birth->maker, bytes);
        task->makers_count = (uint16_t)birth->count;
        for (uint32_t i = 0; i < birth->count; i++)
            task->makers_hash = mix(task->makers_hash, birth->maker[i]);
    }
}

static void take_birth(struct registry *registry, const struct birth *birth, uint8_t asyncio, enum task_status status)
{
    uint32_t index = registry_add(registry, birth->task, asyncio);
    if (index == NO_TASK)
        return;
    struct registered *task = &registry->tasks[index];
    registry_wake(registry, index);
    note_birth(registry, task, birth);
    task->asyncio = registry->seen[index].asyncio = asyncio;
    task->coro = 0;   /* its old slot in by_coro finds another address, or nobody */
    task->glance = 0; /* the same to the last bit, it is another task all the same */
    task->unchanged = false;
    task->status = (uint8_t)status;
    task->edges = 0;
    registry->seen[index].wait.future = 0;
    registry->since[index].future = 0;
    note_coro_of_birth(registry, index);
}

static bool put_off(struct registry *registry, const struct birth *birth, uint8_t asyncio)
{
    struct late *late = mem_alloc(sizeof *late);
    if (!late)
        return false;
    *late = (struct late){registry->late, *birth, asyncio};
    registry->late = late;
    return true;
}

void registry_born(struct registry *registry, const struct birth *birth, uint8_t asyncio)
{
    uint32_t index = registry_find(registry, birth->task);
    if (index == NO_TASK || !is_read(registry, index)) {
        take_birth(registry, birth, asyncio, TASK_UNREAD);
        return;
    }
    uint64_t from = registry->seen[index].read_from;
    bool rests = registry->seen[index].group != 0; /* it was one still, and no other, when it was looked at after that */
    if (birth->number < from && !rests)
        note_birth(registry, &registry->tasks[index], birth);
    else if (birth->number < from || birth->number - from < registry->seen[index].read_births ||
             !put_off(registry, birth, asyncio))
        take_birth(registry, birth, asyncio, TASK_TORN);
}

/* Put off, they were stacked: the last one of an address is met first, and stays. */
static void take_late(struct registry *registry)
{
    struct late *next;
    for (struct late *late = registry->late; late; late = next) {
        uint32_t index = registry_find(registry, late->birth.task);
        next = late->next;
        if (index == NO_TASK || registry->tasks[index].born <= late->birth.number)
            take_birth(registry, &late->birth, late->asyncio, TASK_UNREAD);
        mem_free(late);
    }
    registry->late = NULL;
}

void registry_begin_round(struct registry *registry)
{
    registry->round++;
    registry->links = registry->edges = 0;
    registry->gone = registry->awaits = false;
    take_late(registry);
}

static void shrink_array(void **array, uint32_t *room, uint32_t most, size_t size)
{
    void *moved = *room > most ? mem_realloc(*array, most * size) : NULL;
    if (!moved)
        return;
    *array = moved;
    *room = most;
}

/* After a burst of tasks their memory is given back. */
static void shrink(struct registry *registry)
{
    uint32_t room = registry->room / 4, seen = registry->room, active = registry->room, since = registry->room, labelled = registry->room;
    if (registry->room <= SHRINK_FROM || registry->count * 8 > registry->room)
        return;
    shrink_array((void **)&registry->tasks, &registry->room, room, sizeof *registry->tasks);
    shrink_array((void **)&registry->seen, &seen, registry->room, sizeof *registry->seen);
    shrink_array((void **)&registry->since, &since, registry->room, sizeof *registry->since);
    if (labels_asked)
        shrink_array((void **)&registry->labelled, &labelled, registry->room, sizeof *registry->labelled);
    shrink_array((void **)&registry->active, &active, registry->room, sizeof *registry->active);
    shrink_array((void **)&registry->link, &registry->links_room, room, sizeof *registry->link);
    shrink_array((void **)&registry->edge, &registry->edges_room, room, sizeof *registry->edge);
    uint32_t slots = registry->slots;
    registry->slots = 0; /* any number is more */
    if (!grow_indexes(registry))
        registry->slots = slots;
}

/* Its index is another's now, if another one had the last. */
static void move_last_to(struct registry *registry, uint32_t index)
{
    uint32_t last = registry->count;
    struct registered *task = &registry->tasks[index];
    if (index == last)
        return;
    *task = registry->tasks[last];
    registry->seen[index] = registry->seen[last];
    registry->since[index] = registry->since[last];
    if (labels_asked)
        registry->labelled[index] = registry->labelled[last];
    uint32_t group = registry->seen[index].group;
    if (!group) {
        registry->active[task->at] = index;
    } else {
        if (task->at != NO_TASK)
            registry->tasks[task->at].before = index;
        if (task->before != NO_TASK)
            registry->tasks[task->before].at = index;
        else
            registry->group[group].first = index;
    }
    put_into(registry, registry->by_task, task->task, index);
    put_into(registry, registry->by_coro, task->coro, index);
    note_slots(registry, 1, task->coro != 0);
}

static void remove_task(struct registry *registry, uint32_t index)
{
    become_inactive(registry, index);
    mem_free(registry->tasks[index].makers);
    registry->count--;
    move_last_to(registry, index);
}

void registry_end_round(struct registry *registry)
{
    take_late(registry);
    if (!registry->gone)
        return;
    for (uint32_t i = registry->actives; i-- > 0;)
        if (has_left(registry, registry->active[i]))
            remove_task(registry, registry->active[i]);
    shrink(registry);
    registry->round++; /* edges are indices: they are void */
}

/* --- reading --- */

const struct link *registry_link(const struct registry *registry, uint32_t first)
{
    return &registry->link[first];
}

/* Before there is any link or edge there is no array that a task without them could point into. */
const struct link *registry_links(const struct registry *registry, const struct registered *task)
{
    return registry->link ? &registry->link[task->first_link] : NULL;
}

const struct edge *registry_edges(const struct registry *registry, const struct registered *task)
{
    return registry->edge ? &registry->edge[task->first_edge] : NULL;
}

static uint64_t mix_coro(uint64_t hash, const struct coro *coro)
{
    return mix(mix(mix(hash, coro->address), coro->code.identity), (uint32_t)coro->lasti);
}

static uint64_t mix_place(uint64_t shape, const struct coro *coro)
{
    return mix(mix(shape, coro->code.identity), (uint32_t)coro->lasti);
}

static bool add_link(struct registry *registry, const struct coro *coro)
{
    if (!grow((void **)&registry->link, &registry->links_room, registry->links + 1, sizeof *registry->link))
        return false;
    registry->link[registry->links++] = (struct link){coro->address, coro->code.address, coro->code.identity, coro->lasti};
    return true;
}

/* What one reading of a task found. */
struct reading {
    struct future future;
    enum coros_end end;
    uintptr_t awaited;
    uint64_t hash, shape;
    uint32_t links;
    uintptr_t innermost; /* qualified name of the innermost function */
    uintptr_t handler;   /* the innermost coroutine that handles an exception; 0: none, or it is not asked for */
    marker_id exception; /* ... which */
};

/* False: torn. Of one that runs its thread says it. */
static bool note_handled(const struct registry *registry, struct reading *reading, const struct coro *coro)
{
    uintptr_t type;
    if (!exceptions_tasks_asked || coro->state == CORO_EXECUTING)
        return true;
    if (!exceptions_type_of_generator(registry->target, coro->address, &type))
        return false;
    if (type) {
        reading->hash = mix(reading->hash, type);
        reading->handler = coro->address;
    }
    return true;
}

static bool read_once(struct registry *registry, const struct registered *task, struct reading *reading, bool keep)
{
    const struct asyncio *asyncio = asyncios_at(task->asyncio);
    struct coros_walk walk;
    struct coro coro;
    *reading = (struct reading){.end = COROS_MORE};
    if (!asyncio || !asyncio_read(registry->target, asyncio, task->task, &reading->future) || reading->future.kind != FUTURE_TASK)
        return false;
    if (reading->future.state != FUTURE_PENDING || !reading->future.coro)
        return true;
    coros_begin(&walk, registry->target, reading->future.coro, CHAIN_LONGEST);
    while (coros_next(&walk, &coro)) {
        reading->hash = mix_coro(reading->hash, &coro);
        reading->shape = mix_place(reading->shape, &coro);
        reading->links++;
        reading->innermost = coro.code.qualname;
        if (!note_handled(registry, reading, &coro))
            walk.end = COROS_TORN;
        if (keep && !add_link(registry, &coro))
            walk.end = COROS_LIMIT;
    }
    reading->end = walk.end;
    reading->awaited = walk.awaited;
    return true;
}

static bool are_equal(const struct reading *a, const struct reading *b)
{
    return a->future.state == b->future.state && a->future.waiter == b->future.waiter && a->future.coro == b->future.coro &&
           a->end == b->end && a->hash == b->hash && a->links == b->links;
}

/* Whether what it waits for will wake it: a future that is pending, and if it is an
 * aggregate, one with a pending member. */
static bool waits(const struct registry *registry, const struct asyncio *asyncio, uintptr_t waiter)
{
    enum future_state state;
    if (!waiter)
        return false;
    if (!asyncio_state(registry->target, asyncio, waiter, &state))
        return true; /* a future of somebody else's making */
    return state == FUTURE_PENDING && !awaiters_aggregate_is_done(registry->target, asyncio, waiter);
}

static enum task_status status_of(const struct registry *registry, const struct asyncio *asyncio, const struct reading *reading)
{
    switch (reading->end) {
    case COROS_EXECUTING:
        return TASK_RUNNING;
    case COROS_CREATED:
        return TASK_READY;
    case COROS_FUTURE:
        if (reading->future.waiter && reading->awaited != reading->future.waiter)
            return TASK_TORN;
        return waits(registry, asyncio, reading->future.waiter) ? TASK_WAITING : TASK_READY;
    case COROS_OTHER:
        return waits(registry, asyncio, reading->future.waiter) ? TASK_WAITING : TASK_READY;
    case COROS_FINISHED: /* its last step is under way */
        return reading->links ? TASK_TORN : TASK_RUNNING;
    default:
        return TASK_TORN;
    }
}

/* first: where the edges of the same walk began, which has each awaiter once. */
static bool add_edge(struct registry *registry, uint32_t first, uint32_t other, uintptr_t through)
{
    struct registered *awaiter = &registry->tasks[other];
    bool known = awaiter->awaits_round == registry->round && awaiter->awaits_first == first;
    if (known || !grow((void **)&registry->edge, &registry->edges_room, registry->edges + 1, sizeof *registry->edge))
        return false;
    awaiter->awaits_round = registry->round;
    awaiter->awaits_first = first;
    registry->awaits = true;
    registry->edge[registry->edges++] = (struct edge){other, through};
    registry_wake(registry, other); /* no leaf */
    return true;
}

/* Adds the tasks that wait for a future, and through what: to the end of the edges. */
static void walk_edges(struct registry *registry, uint32_t first, struct awaiters_walk *walk, uint8_t asyncio)
{
    struct awaiter awaiter;
    while (awaiters_next(walk, &awaiter)) {
        uint32_t other = registry_add(registry, awaiter.task, asyncio);
        if (other != NO_TASK)
            add_edge(registry, first, other, awaiter.through);
    }
}

/* What the only edge of a task shows of how to find it again. */
static void keep_edges(struct registered *task, const struct edge *edge, uintptr_t awaiter, const struct future *future)
{
    task->kept = KEPT_NOT;
    if (!future->callback0 && !future->callbacks) {
        task->kept = KEPT_NONE;
    } else if (!future->callbacks && task->edges == 1 && edge->through == task->task) { /* others might lead somewhere later */
        task->kept = KEPT_DIRECT;
        task->kept_next = awaiter;
    }
}

/* Whether the task waits for the future now. */
static bool waits_for(const struct registry *registry, const struct registered *task, uintptr_t future)
{
    uintptr_t waiter, coro;
    return asyncio_waiter(registry->target, asyncios_at(task->asyncio), task->task, &waiter, &coro) && waiter == future;
}

/* The place of the edges of all whose only callback leads to this future; NULL: there
 * are other callbacks, or it leads elsewhere. */
static struct shared *shared_by(struct registry *registry, const struct future *future)
{
    uintptr_t between = future->callback0 && !future->callbacks ? awaiters_between(registry->target, future->callback0) : 0;
    if (!between)
        return NULL;
    struct shared *shared = &registry->shared[between * 0x9e3779b97f4a7c15u >> 40 & (SHARED - 1)];
    if (shared->between != between || shared->round != registry->round)
        *shared = (struct shared){.between = between};
    return shared;
}

/* Gather and wait have one future between all of their members and the awaiter, so
 * its edges are found once a round. But a future's address may be another's by now:
 * each time the awaiters are asked whether they wait for it still. */
static bool is_shared_still(const struct registry *registry, const struct shared *shared)
{
    if (shared->round != registry->round)
        return false;
    for (uint32_t i = 0; i < shared->edges; i++) {
        const struct edge *edge = &registry->edge[shared->first_edge + i];
        if (edge->through != shared->between || !waits_for(registry, &registry->tasks[edge->awaiter], edge->through))
            return false;
    }
    return true;
}

static void read_edges(struct registry *registry, uint32_t index, const struct asyncio *asyncio, const struct future *future)
{
    struct shared *shared = shared_by(registry, future);
    uint32_t first = registry->edges;
    struct awaiters_walk walk;

    if (!shared || !is_shared_still(registry, shared)) {
        awaiters_begin(&walk, registry->target, asyncio, future);
        walk_edges(registry, first, &walk, registry->tasks[index].asyncio);
        if (shared)
            *shared = (struct shared){shared->between, registry->round, first, registry->edges - first};
    }
    struct registered *task = &registry->tasks[index];
    task->edges_round = registry->round;
    task->first_edge = shared ? shared->first_edge : first;
    task->edges = shared ? shared->edges : registry->edges - first;
    const struct edge *edge = registry_edges(registry, task);
    keep_edges(task, edge, task->edges ? registry->tasks[edge->awaiter].task : 0, future);
}

/* The edge to the one task that waited for this one, if it still does. */
static bool find_direct(struct registry *registry, uint32_t index)
{
    uintptr_t task = registry->tasks[index].task;
    uint32_t awaiter = registry_find(registry, registry->tasks[index].kept_next);
    if (awaiter == NO_TASK || !waits_for(registry, &registry->tasks[awaiter], task) ||
        !add_edge(registry, registry->edges, awaiter, task))
        return false;
    registry->tasks[index].first_edge = registry->edges - 1;
    registry->tasks[index].edges = 1;
    return true;
}

/* The edges of a task that has not changed since they were read. */
static void find_edges(struct registry *registry, uint32_t index)
{
    struct registered *task = &registry->tasks[index];
    struct future future;
    task->edges_round = registry->round;
    task->edges_proven = false;
    task->edges = 0;
    if (task->kept == KEPT_NONE || (task->kept == KEPT_DIRECT && find_direct(registry, index)))
        return;
    const struct asyncio *asyncio = asyncios_at(task->asyncio);
    if (asyncio_read(registry->target, asyncio, task->task, &future))
        read_edges(registry, index, asyncio, &future);
}

/* It is done, or no task; unless its birth was seen and its __init__ not yet: the
 * hook is before that. */
static void leave(struct registry *registry, struct registered *task, bool was)
{
    bool may_come = !was && !task->coro && task->unborn++ < UNBORN_ROUNDS;
    task->status = may_come ? TASK_UNBORN : TASK_GONE;
    registry->gone |= !may_come;
}

static uint64_t glance_at(const struct registry *registry, const struct registered *task)
{
    struct glance glance = {.task = task->task, .asyncio = asyncios_at(task->asyncio)};
    if (glance.asyncio)
        glance_batch(registry->target, &glance, 1);
    return glance.hash;
}

/* While it is sure that the type lives: before it is proven that the task has not gone on. */
static void name_exception(const struct registry *registry, struct reading *reading)
{
    char name[EXCEPTION_NAME_MAX];
    uint32_t length = 0;
    if (reading->handler && exceptions_of_generator(registry->target, reading->handler, name, &length) != EXCEPTIONS_NONE)
        reading->exception = markers_of_exception(name, length);
}

/* Reads it so that the parts belong together: between two equal glances, or twice
 * where it cannot be glanced at. False: it changed meanwhile, or has left. */
static bool read_whole(struct registry *registry, struct registered *task, struct reading *reading, uint64_t glance)
{
    struct reading again;
    for (int i = 0; i < READINGS; i++) {
        registry->links = task->first_link;
        if (!read_once(registry, task, reading, true) || reading->future.state != FUTURE_PENDING || !reading->future.coro) {
            leave(registry, task, reading->future.coro != 0);
            return false;
        }
        name_exception(registry, reading);
        uint64_t after = glance ? glance_at(registry, task) : 0;
        if (glance ? after == glance : read_once(registry, task, &again, false) && are_equal(reading, &again)) {
            task->glance = glance;
            return true;
        }
        glance = after;
    }
    task->status = TASK_TORN;
    return false;
}

static bool is_as_read(struct registry *registry, uint32_t index)
{
    struct registered *task = &registry->tasks[index];
    struct reading again;
    if (task->glance)
        return glance_at(registry, task) == task->glance;
    return read_once(registry, task, &again, false) && again.future.state == FUTURE_PENDING && again.future.waiter == task->waiter &&
           again.future.coro == task->coro && again.hash == task->hash;
}

static bool is_waiting_as_read(struct registry *registry, const struct edge *edge)
{
    const struct registered *awaiter = &registry->tasks[edge->awaiter];
    return is_read(registry, edge->awaiter) && awaiter->waiter == edge->through && registry_need_links(registry, edge->awaiter) &&
           is_as_read(registry, edge->awaiter);
}

/* What is new is often short-lived, and so is what its awaiters do: they are looked
 * at again at once, not only at the end of the round; one that has moved on since it
 * was read in this round is read anew. */
static void prove_edges(struct registry *registry, uint32_t index)
{
    uint32_t edges = registry->tasks[index].edges;
    bool proven = edges > 0 && edges <= PROVEN_MOST;
    for (uint32_t i = 0; i < edges && proven; i++) {
        const struct edge edge = registry_edges(registry, &registry->tasks[index])[i];
        proven = is_waiting_as_read(registry, &edge);
        if (!proven && is_read(registry, edge.awaiter) && registry->rereadings < REREADINGS) {
            registry->rereadings++;
            registry->seen[edge.awaiter].round--;
            registry_read(registry, edge.awaiter);
            registry->rereadings--;
            proven = is_waiting_as_read(registry, &edge);
        }
    }
    registry->tasks[index].edges_proven = proven;
}

/* A task whose making is not hooked is first met as what another one waits for. */
static void add_awaited(struct registry *registry, uint32_t index, const struct asyncio *asyncio)
{
    uintptr_t waiter = registry->tasks[index].waiter;
    if (waiter && registry_find(registry, waiter) == NO_TASK &&
        asyncio_kind(registry->target, asyncio, waiter, &(bool){false}) == FUTURE_TASK)
        registry_add(registry, waiter, registry->tasks[index].asyncio);
}

marker_id registry_name(const struct registry *registry, const struct registered *task)
{
    return markers_tasks_asked ? registry->seen[task - registry->tasks].name : 0;
}

marker_id registry_exception(const struct registry *registry, const struct registered *task)
{
    return exceptions_tasks_asked ? registry->seen[task - registry->tasks].exception : 0;
}

const marker_id *registry_labels(const struct registry *registry, const struct registered *task)
{
    return labels_asked ? registry->labelled[task - registry->tasks].label : NULL;
}

void registry_keep_names(const struct registry *registry)
{
    for (uint32_t i = 0; markers_tasks_asked && i < registry->count; i++)
        markers_keep(registry->seen[i].name);
    for (uint32_t i = 0; exceptions_tasks_asked && i < registry->count; i++)
        markers_keep(registry->seen[i].exception);
    for (uint32_t i = 0; i < registry->count; i++)
        for (uint32_t j = 0; j < labels_asked; j++)
            markers_keep(registry->labelled[i].label[j]);
}

static bool is_made_of(const struct registry *registry, uint32_t index, uintptr_t made_of)
{
    uintptr_t waiter, coro;
    return asyncio_waiter(registry->target, asyncios_at(registry->seen[index].asyncio), registry->tasks[index].task, &waiter, &coro) &&
           coro == made_of;
}

/* What a task is shown with beside its chain. */
struct shown {
    marker_id name;
    struct labelled labelled;
};

/* False: its context was changed meanwhile, or another task is at its address by now: it was made of another coroutine. */
static bool read_shown(const struct registry *registry, uint32_t index, uintptr_t made_of, struct shown *shown)
{
    const struct asyncio *asyncio = asyncios_at(registry->seen[index].asyncio);
    uintptr_t task = registry->tasks[index].task;
    char name[TEXT_FOLDED_MAX];
    *shown = (struct shown){0};
    if (!asyncio)
        return false;
    if (markers_tasks_asked)
        shown->name = markers_of_task(name, asyncio_folded_name(registry->target, asyncio, task, name));
    return (!labels_asked || labels_of_context(registry->target, asyncio_context(registry->target, asyncio, task), shown->labelled.label)) &&
           is_made_of(registry, index, made_of);
}

static bool is_shown(void)
{
    return markers_tasks_asked || labels_asked;
}

static uint64_t mix_shown(uint64_t shape, const struct shown *shown)
{
    shape = mix(shape, markers_hash(shown->name));
    for (uint32_t i = 0; i < labels_asked; i++)
        shape = mix(shape, markers_hash(shown->labelled.label[i]));
    return shape;
}

/* Tasks that are shown with another name stand on other frames. False: it cannot be told with what. */
static bool take_shown(struct registry *registry, uint32_t index, struct reading *reading)
{
    struct shown shown;
    if (!is_shown())
        return true;
    bool whole = read_shown(registry, index, reading->future.coro, &shown) || read_shown(registry, index, reading->future.coro, &shown);
    registry->seen[index].name = shown.name;
    if (labels_asked)
        registry->labelled[index] = shown.labelled;
    reading->shape = mix_shown(reading->shape, &shown);
    return whole;
}

static bool is_shown_otherwise(const struct registry *registry, uint32_t index)
{
    struct shown shown;
    return is_shown() && (!read_shown(registry, index, registry->tasks[index].coro, &shown) || shown.name != registry->seen[index].name ||
                          (labels_asked && memcmp(&shown.labelled, &registry->labelled[index], sizeof shown.labelled) != 0));
}

/* Tasks that handle another one stand on other frames, in `exc`. */
static void take_exception(struct registry *registry, uint32_t index, struct reading *reading)
{
    if (!exceptions_tasks_asked)
        return;
    registry->seen[index].exception = reading->exception;
    reading->shape = mix(reading->shape, markers_hash(reading->exception));
}

static void read_anew(struct registry *registry, uint32_t index, uint64_t glance)
{
    struct registered *task = &registry->tasks[index];
    struct reading reading;
    uint8_t status = task->status;

    registry_wake(registry, index);
    registry->seen[index].round = task->links_round = task->edges_round = registry->round;
    registry->seen[index].wait.future = 0;
    task->edges = task->links = 0;
    task->edges_proven = task->unchanged = false;
    task->glance = 0;
    task->first_link = registry->links;
    if (!read_whole(registry, task, &reading, glance)) {
        registry->links = task->first_link;
        return;
    }
    bool whole = take_shown(registry, index, &reading);
    take_exception(registry, index, &reading);
    const struct asyncio *asyncio = asyncios_at(task->asyncio);
    task->links = (uint16_t)(registry->links - task->first_link);
    note_coro(registry, index, reading.future.coro);
    task->waiter = reading.future.waiter;
    task->loop = reading.future.loop;
    task->hash = reading.hash;
    task->status = (uint8_t)status_of(registry, asyncio, &reading);
    if (!whole && task->status != TASK_RUNNING) /* whose thread says it */
        task->status = TASK_TORN;
    task->reshaped |= task->shape != reading.shape || task->status != status;
    if (task->shape != reading.shape || task->status != status)
        task->kept_stack = PROFILE_ROOT;
    task->shape = reading.shape;
    task->aggregate = task->status == TASK_WAITING ? (uint8_t)awaiters_aggregate(registry->target, reading.innermost) : 0;
    registry->has_unhooked |= reading.future.python;
    if (task->status == TASK_TORN) {
        task->glance = 0;
        return;
    }
    registry->seen[index].wait.future = task->status == TASK_WAITING && !reading.future.callbacks ? task->waiter : 0;
    registry->seen[index].wait.callback0 = reading.future.callback0;
    read_edges(registry, index, asyncio, &reading.future);
    prove_edges(registry, index);
    add_awaited(registry, index, asyncio);
}

/* As it was, as far as a glance can tell? Then all but its edges is known. Now and then
 * it is read all the same, a few tasks a round: should a reading ever have been wrong
 * without a trace, it does not stay so for as long as the task waits. */
static bool is_as_it_was(const struct registry *registry, uint32_t index, uint64_t glance)
{
    const struct registered *task = &registry->tasks[index];
    return glance && glance == task->glance && registry_is_suspended(task) &&
           (registry->round + index) % REREAD_EVERY != 0;
}

/* A task as it is when it is looked at, for what is kept of it. */
struct look {
    uint64_t births;  /* births_number() before */
    uint32_t deaths;  /* births_future_deaths() of what it waited for, before */
};

static struct look begin_look(const struct registry *registry, uint32_t index)
{
    uintptr_t future = registry->seen[index].wait.future;
    return (struct look){births_number(), future ? births_future_deaths(future) : 0};
}

/* From now on, unless it was known before. */
static void note_wait(struct registry *registry, uint32_t index, uint32_t deaths)
{
    struct since *since = &registry->since[index];
    uintptr_t future = registry->seen[index].wait.future;
    if (since->future != future || since->deaths != deaths)
        *since = (struct since){future, registry->now, deaths};
}

static bool is_to_be_verified(const struct registry *registry, uint32_t index)
{
    uint32_t behind = index >= registry->verify_from ? index - registry->verify_from : index + registry->count - registry->verify_from;
    return behind < registry->verify;
}

/* Without its edges, if it rests and is as it was. */
static void take_glance(struct registry *registry, uint32_t index, uint64_t glance, const struct look *look)
{
    struct registered *task = &registry->tasks[index];
    struct seen *seen = &registry->seen[index];
    if (is_read(registry, index))
        return;
    if ((seen->group ? !glance || glance != task->glance : !is_as_it_was(registry, index, glance)) ||
        (is_to_be_verified(registry, index) && is_shown_otherwise(registry, index))) {
        read_anew(registry, index, glance);
        return;
    }
    seen->round = registry->round;
    if (seen->group && seen->deaths != look->deaths)
        note_wait(registry, index, look->deaths);
    seen->deaths = look->deaths;
    task->unchanged = true;
    if (!seen->group)
        find_edges(registry, index);
}

static void note_births(struct registry *registry, uint32_t index, const struct look *look)
{
    registry->seen[index].read_from = look->births;
    registry->seen[index].read_births = (uint32_t)(births_number() - look->births);
}

/* Where its only callback leads, once a round for all that have this one. */
static bool follow(struct registry *registry, uintptr_t callback, struct awaiters_lead *lead)
{
    struct followed *followed = &registry->followed[callback * 0x9e3779b97f4a7c15u >> 40 & (FOLLOWED - 1)];
    if (followed->round != registry->round || followed->callback != callback) {
        *followed = (struct followed){.callback = callback, .round = registry->round};
        followed->known = awaiters_lead(registry->target, callback, &followed->lead);
    }
    *lead = followed->lead;
    return followed->known;
}

/* Whether its callback, at the same address, is one that leads to the same. */
static bool leads_as_its_group(struct registry *registry, const struct seen *seen)
{
    struct awaiters_lead lead;
    const struct awaiters_lead *of_group = &registry->lead_of[seen->group];
    return !seen->wait.callback0 ||
           (follow(registry, seen->wait.callback0, &lead) && lead.route == of_group->route && lead.key == of_group->key);
}

/* Whether one that rests waits still, as far as this tells; if not, it is woken. True: it
 * need not be looked at further. */
static bool rests_on(struct registry *registry, uint32_t index)
{
    struct seen *seen = &registry->seen[index];
    uint64_t births = births_number();
    if (!glance_still_waits(registry->target, &seen->wait) || !leads_as_its_group(registry, seen)) {
        registry_wake(registry, index);
        return false;
    }
    if (births_future_deaths(seen->wait.future) != seen->deaths)
        return false; /* perhaps another's */
    seen->read_from = births;
    seen->read_births = 0; /* one that had come before would not wait yet */
    return true;
}

static bool has_asyncio(const struct registry *registry, const struct seen *seen)
{
    return registry->may_rest >> seen->asyncio & 1 && asyncios_at(seen->asyncio);
}

static void look_at_one(struct registry *registry, uint32_t index)
{
    struct seen *seen = &registry->seen[index];
    if (seen->group && has_asyncio(registry, seen) && rests_on(registry, index)) {
        seen->round = registry->round;
        return;
    }
    struct look look = begin_look(registry, index);
    take_glance(registry, index, glance_at(registry, &registry->tasks[index]), &look);
    note_births(registry, index, &look);
}

void registry_read(struct registry *registry, uint32_t index)
{
    if (!is_read(registry, index))
        look_at_one(registry, index);
    if (registry->tasks[index].edges_round != registry->round)
        find_edges(registry, index);
}

/* Tasks that are glanced at side by side. */
struct batch {
    uint32_t count;
    uint32_t index[GLANCE_BATCH];
    struct glance glance[GLANCE_BATCH];
    struct look look[GLANCE_BATCH];
};

static void take_batch(struct registry *registry, struct batch *batch)
{
    for (uint32_t i = 0; i < batch->count; i++) {
        const struct asyncio *asyncio = asyncios_at(registry->seen[batch->index[i]].asyncio);
        batch->look[i] = begin_look(registry, batch->index[i]);
        batch->glance[i] = (struct glance){.task = asyncio ? registry->seen[batch->index[i]].wait.task : 0, .asyncio = asyncio};
    }
    glance_batch(registry->target, batch->glance, batch->count);
    for (uint32_t i = 0; i < batch->count; i++) {
        take_glance(registry, batch->index[i], batch->glance[i].hash, &batch->look[i]);
        note_births(registry, batch->index[i], &batch->look[i]);
    }
    batch->count = 0;
}

static void put_into_batch(struct registry *registry, struct batch *batch, uint32_t index)
{
    batch->index[batch->count++] = index;
    if (batch->count == GLANCE_BATCH)
        take_batch(registry, batch);
}

/* What the first look at a task needs. */
static void fetch(const struct registry *registry, uint32_t index)
{
    if (index >= registry->count)
        return;
    const struct seen *seen = &registry->seen[index];
    if (seen->group) {
        glance_fetch_wait(registry->target, &seen->wait);
        __builtin_prefetch(births_future_place(seen->wait.future));
    } else {
        glance_fetch(registry->target, seen->wait.task);
        __builtin_prefetch(&registry->tasks[index]);
    }
}

void registry_read_some(struct registry *registry, uint32_t first, uint32_t until)
{
    struct batch batch = {0};
    for (uint32_t i = first; (i < registry->count && i < until) || batch.count; i++) {
        if (i >= registry->count || i >= until) { /* others may join */
            take_batch(registry, &batch);
            i--;
            continue;
        }
        fetch(registry, i + AHEAD);
        if (is_read(registry, i))
            continue;
        struct seen *seen = &registry->seen[i];
        if (seen->group && has_asyncio(registry, seen) && rests_on(registry, i) && !is_to_be_verified(registry, i))
            seen->round = registry->round;
        else
            put_into_batch(registry, &batch, i);
    }
}

bool registry_may_rest(struct registry *registry, uint32_t index, struct rest_key *key)
{
    const struct registered *task = &registry->tasks[index];
    const struct seen *seen = &registry->seen[index];
    const struct asyncio *asyncio = asyncios_at(seen->asyncio);
    struct glance_wait wait = seen->wait;
    bool python;

    *key = (struct rest_key){.makers_hash = task->makers_hash, .loop = task->loop};
    if (!task->unchanged || task->status != TASK_WAITING || task->aggregate || !wait.future || !has_asyncio(registry, seen) ||
        asyncio_kind(registry->target, asyncio, wait.future, &python) != FUTURE_PLAIN || python ||
        (wait.callback0 && !follow(registry, wait.callback0, &key->lead)))
        return false;
    key->alone = key->lead.direct ? task->task : 0;
    return true;
}

bool registry_rest(struct registry *registry, uint32_t index, const struct rest_key *key, uint32_t group)
{
    uint32_t room = registry->groups_room;
    if (!grow((void **)&registry->lead_of, &registry->leads_room, group + 1, sizeof *registry->lead_of) ||
        !grow((void **)&registry->group, &registry->groups_room, group + 1, sizeof *registry->group))
        return false;
    for (; room < registry->groups_room; room++)
        registry->group[room] = (struct group){NO_TASK, 0};
    registry->lead_of[group] = key->lead;
    become_inactive(registry, index);
    link_at_rest(registry, index, group);
    registry->group[group].count++;
    registry->seen[index].group = group;
    note_wait(registry, index, registry->seen[index].deaths);
    return true;
}

void registry_set_time(struct registry *registry, uint64_t now)
{
    registry->now = now;
}

bool registry_waits_since(const struct registry *registry, uint32_t index, uint64_t *ns)
{
    const struct registered *task = &registry->tasks[index];
    const struct since *since = &registry->since[index];
    *ns = since->ns;
    return task->status == TASK_WAITING && since->future && since->future == task->waiter && has_asyncio(registry, &registry->seen[index]) &&
           births_future_deaths(since->future) == since->deaths;
}

bool registry_need_links(struct registry *registry, uint32_t index)
{
    struct registered *task = &registry->tasks[index];
    struct reading reading;
    uint32_t first = registry->links;
    if (task->links_round == registry->round)
        return true;
    if (!read_once(registry, task, &reading, true) || reading.hash != task->hash || reading.future.waiter != task->waiter) {
        registry->links = first;
        return false;
    }
    task->links_round = registry->round;
    task->first_link = first;
    task->links = (uint16_t)(registry->links - first);
    return true;
}

void registry_check_aggregate(struct registry *registry, uint32_t index)
{
    struct registered *task = &registry->tasks[index];
    struct coro innermost;
    if (!task->aggregate || task->status != TASK_WAITING || !registry_need_links(registry, index) || !task->links ||
        !coros_read(registry->target, registry->link[task->first_link + task->links - 1].coro, &innermost) ||
        !awaiters_members_are_done(registry->target, asyncios_at(task->asyncio), task->aggregate, innermost.frame, &innermost.code))
        return;
    task->status = TASK_READY;
    task->kept_stack = PROFILE_ROOT;
    task->glance = 0; /* it is read anew until it has gone on */
}

bool registry_has_unhooked(const struct registry *registry)
{
    return registry->has_unhooked;
}

bool registry_awaits_task(const struct registry *registry, const struct registered *task)
{
    return task->awaits_round == registry->round;
}

bool registry_has_awaiting(const struct registry *registry)
{
    return registry->awaits;
}

void registry_fetch(const struct registry *registry, uint32_t index)
{
    glance_fetch(registry->target, registry->seen[index].wait.task);
    __builtin_prefetch(&registry->tasks[index]);
}

void registry_are_as_read(struct registry *registry, const uint32_t *indices, uint32_t count, bool *same)
{
    struct glance glance[GLANCE_BATCH];
    uint32_t glances = 0, of[GLANCE_BATCH];
    for (uint32_t i = 0; i < count; i++) {
        const struct asyncio *asyncio = asyncios_at(registry->seen[indices[i]].asyncio);
        if (!registry->tasks[indices[i]].glance || !asyncio) {
            same[i] = is_as_read(registry, indices[i]);
            continue;
        }
        of[glances] = i;
        glance[glances++] = (struct glance){.task = registry->seen[indices[i]].wait.task, .asyncio = asyncio};
    }
    glance_batch(registry->target, glance, glances);
    for (uint32_t i = 0; i < glances; i++)
        same[of[i]] = glance[i].hash == registry->tasks[indices[of[i]]].glance;
}

/* Upward from one that executes, over the frames that they were sent from. */
static uint32_t executing_chain(struct registry *registry, const struct registered *task, uintptr_t coroutine, uint32_t first)
{
    struct coro coro;
    for (int i = 0; i < CHAIN_LONGEST && coroutine; i++) {
        if (!coros_read(registry->target, coroutine, &coro) || coro.state != CORO_EXECUTING || !add_link(registry, &coro))
            return 0;
        if (coroutine == task->coro) {
            for (uint32_t a = first, b = registry->links - 1; a < b; a++, b--) { /* outermost first */
                struct link swapped = registry->link[a];
                registry->link[a] = registry->link[b];
                registry->link[b] = swapped;
            }
            return registry->links - first;
        }
        coroutine = coro.previous ? coros_of_frame(registry->target, coro.previous) : 0;
    }
    return 0;
}

/* Downward over what they await. */
static uint32_t suspended_chain(struct registry *registry, const struct registered *task, uintptr_t coroutine, uint32_t first)
{
    struct coros_walk walk;
    struct coro coro;
    coros_begin(&walk, registry->target, task->coro, CHAIN_LONGEST);
    while (coros_next(&walk, &coro) && add_link(registry, &coro))
        if (coro.address == coroutine)
            return registry->links - first;
    return 0;
}

uint32_t registry_chain_down_to(struct registry *registry, const struct registered *task, uintptr_t coroutine, uint32_t *first)
{
    uint32_t links = 0;
    *first = registry->links;
    for (int i = 0; i < READINGS && !links; i++) { /* it may begin or end to execute meanwhile */
        links = suspended_chain(registry, task, coroutine, *first);
        if (links)
            return links;
        registry->links = *first;
        links = executing_chain(registry, task, coroutine, *first);
        if (!links)
            registry->links = *first;
    }
    return links;
}
