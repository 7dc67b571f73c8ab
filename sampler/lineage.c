/* SPDX-License-Identifier: MIT
 *
 * lineage: a depth-first walk upward over the edges that close. A task is OPEN
 * while those above it are placed, then PLACED; meeting an OPEN one is a circle:
 * where it is opened is noted, and its part of the walk begins again. */
#include "sampler/lineage.h"

#include <string.h>

#include "hooks/mem.h"

enum place { FRESH, OPEN, PLACED };

enum { /* registered.flags */
    MADE = 1,        /* stands on its creator */
    NO_CREATOR = 2,  /* its creator closes a circle: left out */
    LACKS = 4,       /* it was made by a coroutine, which one of the living cannot be told */
    BEARS = 8,       /* others stand on it */
    STALE = 16,      /* what it stands on is not what it was when it was read, or cannot be told */
    WHOLE = 32,      /* the stacks with its own chain were made */
    LEAFY = 64,      /* a leaf or a running task stands on it, or it is one */
    MOVED = 128      /* it is not as it was when it was read */
};

enum {
    FIRST_ROOM = 1024,
    WHOLES = 1024,        /* stacks of awaiters that are remembered; a power of two */
    AHEAD = 24,           /* of the task that is looked at again, another one is fetched */
    SHRINK_FROM = 16384,  /* room of an array of which, ... */
    SHRINK_AFTER = 64,    /* ... so many rounds long, less than an eighth was used */
    CIRCLES_MOST = 4096,
    CUTS_APART = 31 /* awaiters of one task that can be left out one by one; those behind only together */
};

/* The stack of all awaiters whose chains are alike, on the same base. */
struct whole {
    uint64_t shape;
    profile_stack base, stack; /* PROFILE_ROOT: none */
};

struct lineage {
    struct registry *registry;
    struct stacks *stacks;
    bool creators;
    bool (*driver)(void *context, uintptr_t loop, profile_stack *stack);
    void *context;
    uint32_t round;    /* ours: what is placed in another is void */
    struct base *base;
    uint32_t bases, bases_room;
    uint32_t *open;    /* the walk: tasks that are OPEN, the first asked for at the bottom */
    uint32_t opened, open_room;
    uint32_t *order;   /* tasks as they were PLACED: whoever stands on another comes after it */
    uint32_t placed, order_room;
    uint32_t circles;
    uint32_t unused;   /* rounds in which little of the arrays was used */
    uint32_t last_made; /* NO_TASK: none yet */
    bool leaves_ended;
    bool bearing, stale; /* some are to be looked at again; are STALE */
    struct whole remembered[WHOLES];
};

struct lineage *lineage_new(struct registry *registry, bool creators, bool (*driver)(void *context, uintptr_t loop, profile_stack *stack),
                            void *context)
{
    struct lineage *lineage = mem_zalloc(sizeof *lineage);
    if (lineage)
        *lineage = (struct lineage){.registry = registry, .creators = creators, .driver = driver, .context = context, .round = 1};
    return lineage;
}

void lineage_free(struct lineage *lineage)
{
    if (!lineage)
        return;
    mem_free(lineage->base);
    mem_free(lineage->open);
    mem_free(lineage->order);
    mem_free(lineage);
}

/* Some time after a burst of tasks the arrays are given back. */
static void shrink(struct lineage *lineage)
{
    bool large = lineage->bases_room > SHRINK_FROM || lineage->order_room > SHRINK_FROM;
    bool used = lineage->bases * 8 > lineage->bases_room || lineage->placed * 8 > lineage->order_room;
    lineage->unused = large && !used ? lineage->unused + 1 : 0;
    if (lineage->unused < SHRINK_AFTER)
        return;
    mem_free(lineage->base);
    mem_free(lineage->order);
    lineage->base = NULL;
    lineage->order = NULL;
    lineage->bases_room = lineage->order_room = lineage->unused = 0;
}

void lineage_begin_round(struct lineage *lineage, struct stacks *stacks)
{
    shrink(lineage);
    lineage->stacks = stacks;
    lineage->round++;
    lineage->bases = lineage->opened = lineage->placed = lineage->circles = 0;
    lineage->last_made = NO_TASK;
    lineage->leaves_ended = lineage->bearing = lineage->stale = false;
}

static bool grow(void **array, uint32_t *room, uint32_t needed, size_t size)
{
    return mem_grow(array, room, needed, FIRST_ROOM, size);
}

/* --- a task in this round --- */

static struct registered *at(const struct lineage *lineage, uint32_t task)
{
    return registry_at(lineage->registry, task);
}

static struct registered *touch(const struct lineage *lineage, uint32_t index)
{
    struct registered *task = at(lineage, index);
    if (task->placed != lineage->round) {
        task->placed = lineage->round;
        task->place = FRESH;
        task->flags = 0;
        task->outlives = false;
        task->above = task->whole = 0;
        task->cuts = 0;
        task->creator = NO_TASK;
    }
    return task;
}

static bool has(const struct lineage *lineage, uint32_t index, uint8_t flag)
{
    const struct registered *task = at(lineage, index);
    return task->placed == lineage->round && task->flags & flag;
}

static void mark_stale(struct lineage *lineage, struct registered *task)
{
    task->flags |= STALE;
    lineage->stale = true;
}

static void mark_bears(struct lineage *lineage, struct registered *task)
{
    task->flags |= BEARS;
    lineage->bearing = true;
}

/* Whether its i-th awaiter is left out, to open a circle. */
static bool is_cut(const struct registered *task, uint32_t i)
{
    return task->cuts >> (i < CUTS_APART ? i : CUTS_APART) & 1;
}

static void cut(const struct lineage *lineage, struct registered *task, uint32_t awaiter)
{
    uint32_t i = 0;
    while (i < CUTS_APART && i + 1 < task->edges && registry_edges(lineage->registry, task)[i].awaiter != awaiter)
        i++;
    task->cuts |= 1u << i;
}

static bool is_live(const struct registered *task)
{
    return task->status == TASK_RUNNING || task->status == TASK_READY || task->status == TASK_WAITING;
}

/* --- creators --- */

/* The task whose chain these makers are of: the innermost of them that one was made of. */
static uint32_t task_of_makers(const struct lineage *lineage, const maker_id *makers, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        uintptr_t coroutine = births_coroutine(makers[i]);
        uint32_t task = coroutine ? registry_find_coro(lineage->registry, coroutine) : NO_TASK;
        if (task != NO_TASK)
            return task;
    }
    return NO_TASK;
}

/* One of its makers is dead, but was it when the task was read? A task that was not
 * awaited yet, has gone on since, and whose maker has ended would stand on whoever its
 * maker stood on. So it must be seen that it is as it was. */
static void mark_outlives(struct lineage *lineage, struct registered *task)
{
    if (task->status == TASK_RUNNING)
        return; /* it is not as it was, ever: what it stands on is asked while it runs */
    task->outlives = true;
    lineage->bearing = true;
}

/* The creator's task, and what of its chain the task stands on. The makers are asked
 * again whether they live after their memory was read. */
static uint32_t find_creator(struct lineage *lineage, uint32_t index, uint32_t *first, uint32_t *links)
{
    uint32_t count = at(lineage, index)->makers_count;
    const maker_id *makers = at(lineage, index)->makers;
    for (uint32_t i = 0; i < count; i++) {
        uintptr_t coroutine = births_coroutine(makers[i]);
        if (!coroutine) {
            mark_outlives(lineage, at(lineage, index));
            continue;
        }
        uint32_t creator = task_of_makers(lineage, makers + i, count - i);
        if (creator == NO_TASK || creator == index)
            return NO_TASK;
        registry_read(lineage->registry, creator);
        if (!is_live(at(lineage, creator))) {
            if (at(lineage, creator)->status == TASK_TORN)
                mark_stale(lineage, at(lineage, index));
            return NO_TASK;
        }
        *links = registry_chain_down_to(lineage->registry, at(lineage, creator), coroutine, first);
        if (*links && births_is_alive(makers[i]))
            return creator;
        mark_outlives(lineage, at(lineage, index));
    }
    return NO_TASK;
}

/* Tasks made one after the other by the same coroutine stand on the same: as the one
 * that was placed on its creator last, unless another was born at its address since. */
static bool is_made_like_last(const struct lineage *lineage, const struct registered *task)
{
    if (lineage->last_made == NO_TASK)
        return false;
    const struct registered *last = at(lineage, lineage->last_made);
    return is_live(last) && last->makers_count == task->makers_count && last->makers_hash == task->makers_hash;
}

static void stand_like_last(struct lineage *lineage, struct registered *task)
{
    const struct registered *last = at(lineage, lineage->last_made);
    task->creator = last->creator;
    task->flags |= MADE;
    if (last->outlives)
        mark_outlives(lineage, task);
    task->first_above = last->first_above;
    task->above = last->above;
}

static bool wants_creator(const struct lineage *lineage, const struct registered *task)
{
    return lineage->creators && task->makers_count && !(task->flags & NO_CREATOR);
}

static bool is_like_last(const struct lineage *lineage, const struct registered *task)
{
    return task->edges == 0 && wants_creator(lineage, task) && is_made_like_last(lineage, task);
}

/* --- bases --- */

static void add_base(struct lineage *lineage, struct registered *task, profile_stack stack, uint32_t share)
{
    for (uint32_t i = 0; i < task->above; i++) {
        struct base *base = &lineage->base[task->first_above + i];
        if (base->stack == stack || task->above == LINEAGE_BASES) {
            base->share += share;
            return;
        }
    }
    if (!grow((void **)&lineage->base, &lineage->bases_room, lineage->bases + 1, sizeof *lineage->base)) {
        mark_stale(lineage, task); /* no memory: its time comes later */
        return;
    }
    lineage->base[lineage->bases++] = (struct base){stack, share};
    task->above++;
}

static profile_stack push_links(struct lineage *lineage, profile_stack stack, uint32_t first, uint32_t links)
{
    for (uint32_t i = 0; i < links; i++) {
        const struct link *link = registry_link(lineage->registry, first + i);
        struct stack_entry entry = {link->identity, link->code, link->lasti, 0};
        stack = stacks_push(lineage->stacks, stack, &entry);
    }
    return stack;
}

static profile_stack push_name(const struct lineage *lineage, profile_stack stack, uint32_t index)
{
    return stacks_push_name(lineage->stacks, stack, registry_name(lineage->registry, at(lineage, index)));
}

/* A base with the task's own chain on it. That is not read again if the stack of one like it is known:
 * whether it is as it was, is proven at the end (lineage_prove). False: it has changed since. */
static bool push_chain(struct lineage *lineage, uint32_t index, profile_stack *stack)
{
    const struct registered *task = at(lineage, index);
    struct whole *whole = &lineage->remembered[(task->shape ^ *stack) * 0x9e3779b97f4a7c15u >> 40 & (WHOLES - 1)];
    if (whole->stack == PROFILE_ROOT || whole->shape != task->shape || whole->base != *stack) {
        if (!registry_need_links(lineage->registry, index))
            return false;
        *whole = (struct whole){task->shape, *stack, push_links(lineage, push_name(lineage, *stack, index), task->first_link, task->links)};
    }
    *stack = whole->stack;
    return true;
}

static bool push_whole(struct lineage *lineage, uint32_t index, uint32_t first)
{
    struct registered *task = at(lineage, index);
    for (uint32_t i = 0; i < task->above; i++) {
        lineage->base[first + i] = lineage->base[task->first_above + i];
        if (!push_chain(lineage, index, &lineage->base[first + i].stack))
            return false;
    }
    lineage->bases = first + task->above;
    task->first_whole = first;
    task->whole = task->above;
    return true;
}

/* The stacks of a task with its whole chain, once for all that stand on it. */
static void make_whole(struct lineage *lineage, uint32_t index)
{
    struct registered *task = at(lineage, index);
    uint32_t first = lineage->bases;
    if (task->flags & WHOLE)
        return;
    task->flags |= WHOLE;
    if (!is_live(task) || !grow((void **)&lineage->base, &lineage->bases_room, first + task->above, sizeof *lineage->base) ||
        !push_whole(lineage, index, first))
        mark_stale(lineage, task);
}

static bool on_driver(struct lineage *lineage, struct registered *task, uint32_t share, bool cycle)
{
    profile_stack stack;
    if (!lineage->driver(lineage->context, task->loop, &stack))
        return false;
    if (cycle)
        stack = stacks_push_marker(lineage->stacks, stack, "[cycle]");
    add_base(lineage, task, stack, share);
    return true;
}

/* It has moved on since the edge was read: what stands on it must be read again. */
static void check_edge(struct lineage *lineage, struct registered *task, const struct registered *awaiter, const struct edge *edge)
{
    if (!is_live(awaiter) || awaiter->waiter != edge->through)
        mark_stale(lineage, task);
}

/* All that stand on one awaiter share its stacks. */
static void on_only_awaiter(struct lineage *lineage, struct registered *task)
{
    const struct edge *edge = registry_edges(lineage->registry, task);
    struct registered *awaiter = at(lineage, edge->awaiter);
    check_edge(lineage, task, awaiter, edge);
    mark_bears(lineage, awaiter);
    task->first_above = awaiter->first_whole;
    task->above = awaiter->whole;
}

/* A part of the time, on the stacks of one awaiter; the last takes what rounding left. */
static void share_out(struct lineage *lineage, struct registered *task, const struct registered *awaiter, uint32_t share)
{
    uint32_t left = share;
    for (uint32_t i = 0; i < awaiter->whole; i++) {
        struct base base = lineage->base[awaiter->first_whole + i];
        uint32_t part = i == awaiter->whole - 1 ? left : (uint32_t)((uint64_t)base.share * share / LINEAGE_ALL);
        add_base(lineage, task, base.stack, part);
        left -= part;
    }
}

/* Equal parts of the time; the first takes what rounding left. */
static void on_awaiters(struct lineage *lineage, struct registered *task)
{
    const struct edge *edges = registry_edges(lineage->registry, task);
    uint32_t part = LINEAGE_ALL / task->edges;
    for (uint32_t i = 0; i < task->edges; i++) {
        struct registered *awaiter = at(lineage, edges[i].awaiter);
        uint32_t share = i ? part : LINEAGE_ALL - part * (task->edges - 1);
        check_edge(lineage, task, awaiter, &edges[i]);
        mark_bears(lineage, awaiter);
        if (is_cut(task, i))
            on_driver(lineage, task, share, true);
        else
            share_out(lineage, task, awaiter, share);
    }
}

/* Its own chain down to the coroutine stays as it is while that lives, so only those
 * above it are to be proven. */
static void on_creator(struct lineage *lineage, uint32_t index, uint32_t first, uint32_t links)
{
    struct registered *task = at(lineage, index), *creator = at(lineage, task->creator);
    lineage->last_made = index;
    task->flags |= MADE;
    for (uint32_t i = 0; i < creator->above; i++) {
        struct base base = lineage->base[creator->first_above + i];
        add_base(lineage, task, push_links(lineage, push_name(lineage, base.stack, task->creator), first, links), base.share);
    }
}

/* --- the walk --- */

static bool push_open(struct lineage *lineage, uint32_t index)
{
    if (!grow((void **)&lineage->open, &lineage->open_room, lineage->opened + 1, sizeof *lineage->open))
        return false;
    touch(lineage, index)->place = OPEN;
    at(lineage, index)->edges_done = 0;
    lineage->open[lineage->opened++] = index;
    return true;
}

/* Whether this one of the walk stands on the next one of it as its creator. */
static bool is_creator_step(const struct lineage *lineage, uint32_t place)
{
    return at(lineage, lineage->open[place])->creator != NO_TASK;
}

/* The walk met `again`, which is OPEN. Opens the circle and takes its tasks off the
 * walk; they are placed anew. */
static void open_circle(struct lineage *lineage, uint32_t again)
{
    uint32_t bottom = lineage->opened - 1, oldest;
    while (lineage->open[bottom] != again)
        bottom--;
    oldest = bottom;
    for (uint32_t i = bottom; i < lineage->opened; i++) {
        if (is_creator_step(lineage, i)) {
            at(lineage, lineage->open[i])->flags |= NO_CREATOR;
            oldest = NO_TASK;
            break;
        }
        if (at(lineage, lineage->open[i])->order < at(lineage, lineage->open[oldest])->order)
            oldest = i;
    }
    if (oldest != NO_TASK)
        cut(lineage, at(lineage, lineage->open[oldest]), oldest + 1 < lineage->opened ? lineage->open[oldest + 1] : again);
    for (uint32_t i = bottom; i < lineage->opened; i++) {
        at(lineage, lineage->open[i])->place = FRESH;
        at(lineage, lineage->open[i])->creator = NO_TASK;
    }
    lineage->opened = bottom;
    lineage->circles++;
}

/* Makes sure that `above` is placed. True: it is; false: the walk goes there first,
 * or it went round in a circle and begins anew below. */
static bool need(struct lineage *lineage, uint32_t below, uint32_t above)
{
    enum place place = touch(lineage, above)->place;
    if (place == PLACED)
        return true;
    if (place == FRESH) {
        registry_read(lineage->registry, above);
        if (push_open(lineage, above))
            return false;
    } else if (lineage->circles < CIRCLES_MOST) {
        open_circle(lineage, above);
        push_open(lineage, above);
        return false;
    }
    mark_stale(lineage, at(lineage, below)); /* a bound was hit */
    return true;
}

static void finish(struct lineage *lineage, uint32_t index)
{
    struct registered *task = at(lineage, index);
    task->place = PLACED;
    if (!lineage->leaves_ended)
        task->flags |= LEAFY;
    if (grow((void **)&lineage->order, &lineage->order_room, lineage->placed + 1, sizeof *lineage->order))
        lineage->order[lineage->placed++] = index;
    else
        mark_stale(lineage, task); /* nobody will prove it */
}

/* One step for the task on top of the walk. */
static void step(struct lineage *lineage, uint32_t index)
{
    uint32_t first = 0, links = 0;
    if (is_like_last(lineage, at(lineage, index))) {
        stand_like_last(lineage, at(lineage, index));
        lineage->opened--;
        finish(lineage, index);
        return;
    }
    while (at(lineage, index)->edges_done < at(lineage, index)->edges) {
        uint32_t i = at(lineage, index)->edges_done;
        uint32_t awaiter = registry_edges(lineage->registry, at(lineage, index))[i].awaiter;
        if (!is_cut(at(lineage, index), i) && !need(lineage, index, awaiter))
            return;
        at(lineage, index)->edges_done++;
    }
    if (at(lineage, index)->edges == 0 && wants_creator(lineage, at(lineage, index))) {
        uint32_t creator = find_creator(lineage, index, &first, &links);
        at(lineage, index)->creator = creator;
        if (creator == NO_TASK)
            at(lineage, index)->flags |= LACKS;
        else if (!need(lineage, index, creator))
            return;
    }
    struct registered *task = at(lineage, index);
    for (uint32_t i = 0; i < task->edges; i++)
        if (!is_cut(task, i))
            make_whole(lineage, registry_edges(lineage->registry, task)[i].awaiter);
    task->first_above = lineage->bases;
    if (task->edges == 1 && !task->cuts)
        on_only_awaiter(lineage, task);
    else if (task->edges)
        on_awaiters(lineage, task);
    else if (task->creator != NO_TASK && at(lineage, task->creator)->above)
        on_creator(lineage, index, first, links);
    else /* also if its creator is another loop's, which runs no more */
        on_driver(lineage, task, LINEAGE_ALL, false);
    lineage->opened--;
    finish(lineage, index);
}

static void place(struct lineage *lineage, uint32_t index)
{
    registry_read(lineage->registry, index);
    struct registered *task = touch(lineage, index);
    if (task->place == FRESH && is_like_last(lineage, task)) {
        stand_like_last(lineage, task);
        finish(lineage, index);
    } else if (task->place == FRESH && push_open(lineage, index)) {
        while (lineage->opened)
            step(lineage, lineage->open[lineage->opened - 1]);
    }
    if (at(lineage, index)->place != PLACED)
        mark_stale(lineage, at(lineage, index)); /* no memory */
}

uint32_t lineage_of(struct lineage *lineage, uint32_t index, const struct base **bases)
{
    if (!lineage_is_placed(lineage, index))
        place(lineage, index);
    const struct registered *task = at(lineage, index);
    *bases = task->above ? &lineage->base[task->first_above] : NULL;
    return task->above;
}

void lineage_end_leaves(struct lineage *lineage)
{
    lineage->leaves_ended = true;
}

bool lineage_bears_leaf(const struct lineage *lineage, uint32_t task)
{
    return has(lineage, task, LEAFY);
}

uint32_t lineage_whole(struct lineage *lineage, uint32_t index, const struct base **bases)
{
    make_whole(lineage, index);
    const struct registered *task = at(lineage, index);
    *bases = task->whole ? &lineage->base[task->first_whole] : NULL;
    return task->whole;
}

void lineage_forget_stacks(struct lineage *lineage)
{
    memset(lineage->remembered, 0, sizeof lineage->remembered);
}

bool lineage_has_circles(const struct lineage *lineage)
{
    return lineage->circles != 0;
}

uint32_t lineage_cut(const struct lineage *lineage, uint32_t task)
{
    const struct registered *placed = at(lineage, task);
    const struct edge *edges = registry_edges(lineage->registry, placed);
    for (uint32_t i = 0; lineage_is_placed(lineage, task) && placed->cuts && i < placed->edges; i++)
        if (is_cut(placed, i))
            return edges[i].awaiter;
    return NO_TASK;
}

bool lineage_is_placed(const struct lineage *lineage, uint32_t index)
{
    const struct registered *task = at(lineage, index);
    return task->placed == lineage->round && task->place == PLACED;
}

bool lineage_is_made(const struct lineage *lineage, uint32_t task)
{
    return has(lineage, task, MADE);
}

bool lineage_lacks_creator(const struct lineage *lineage, uint32_t task)
{
    return has(lineage, task, LACKS);
}

/* --- proof --- */

static bool stands_on_stale(const struct lineage *lineage, const struct registered *task)
{
    const struct edge *edges = registry_edges(lineage->registry, task);
    for (uint32_t i = 0; i < task->edges; i++)
        if (!is_cut(task, i) && has(lineage, edges[i].awaiter, task->edges_proven ? STALE : STALE | MOVED))
            return true;
    if (task->outlives && task->flags & MOVED)
        return true;
    return task->creator != NO_TASK && has(lineage, task->creator, STALE);
}

static void look_again(struct lineage *lineage, const uint32_t *indices, uint32_t count)
{
    bool same[GLANCE_BATCH];
    registry_are_as_read(lineage->registry, indices, count, same);
    for (uint32_t i = 0; i < count; i++) {
        if (same[i])
            continue;
        at(lineage, indices[i])->flags |= MOVED;
        lineage->stale = true;
    }
}

/* Those that others stand on, and those that outlive their makers, many at a time. */
static void look_again_at_all(struct lineage *lineage)
{
    uint32_t batch[GLANCE_BATCH] = {0}, count = 0;
    for (uint32_t i = 0; i < lineage->placed; i++) {
        if (i + AHEAD < lineage->placed)
            registry_fetch(lineage->registry, lineage->order[i + AHEAD]);
        if (!(at(lineage, lineage->order[i])->flags & BEARS) && !at(lineage, lineage->order[i])->outlives)
            continue;
        batch[count++] = lineage->order[i];
        if (count == GLANCE_BATCH) {
            look_again(lineage, batch, count);
            count = 0;
        }
    }
    look_again(lineage, batch, count);
}

void lineage_prove(struct lineage *lineage)
{
    if (lineage->bearing)
        look_again_at_all(lineage);
    for (uint32_t i = 0; lineage->stale && i < lineage->placed; i++)
        if (stands_on_stale(lineage, at(lineage, lineage->order[i])))
            at(lineage, lineage->order[i])->flags |= STALE;
}

bool lineage_has_moved(const struct lineage *lineage, uint32_t task)
{
    return has(lineage, task, MOVED);
}

void lineage_prove_late(struct lineage *lineage, uint32_t task)
{
    const struct base *bases;
    lineage_of(lineage, task, &bases);
    if (lineage->stale && stands_on_stale(lineage, at(lineage, task)))
        at(lineage, task)->flags |= STALE;
}

bool lineage_is_proven(const struct lineage *lineage, uint32_t task)
{
    return !has(lineage, task, STALE);
}
