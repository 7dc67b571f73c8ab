/* SPDX-License-Identifier: MIT
 *
 * registry: the pending tasks of this process, and what a round saw of each.
 *
 * A dense array: the tick over all tasks reads it in order. A task is known by
 * its address and, since addresses are used again, by the coroutine that it was
 * made of; a birth at the same address makes it another one. Tasks that are done,
 * or no tasks any more, leave when they are read.
 *
 * Reading: within a round each task is read once, when it is first needed: its
 * state, what it waits for, its chain of coroutines and the edges to those who
 * wait for it. Twice, and the two must be equal; what is not is TASK_TORN. One that
 * a glance shows to be as it was (sampler/cpython/glance.h) is not read again; its
 * links are, if somebody asks for them.
 *
 * Most tasks wait, for long. Such a leaf may be laid to rest, in a group of those
 * that stand alike: the round then only sees, from four words in an order that is
 * known beforehand, that it waits for the same future still, and its record is not
 * touched. Whatever else is found (it went on, is awaited by others, was born anew)
 * wakes it: it is read as all others are. Now and then it is glanced at all the same
 * (registry_verify). The others are the active ones.
 *
 * Runs in: [sampler]. Everything lives in the profiler's own heap and is bounded
 * by it; what finds no room is counted as skipped.
 */
#ifndef APROF_SAMPLER_REGISTRY_H
#define APROF_SAMPLER_REGISTRY_H

#include <stdbool.h>
#include <stdint.h>

#include "sampler/births.h"
#include "sampler/cpython/asyncio.h"
#include "sampler/cpython/awaiters.h"
#include "sampler/cpython/glance.h"
#include "sampler/markers.h"
#include "sampler/profile.h"

#define NO_TASK UINT32_MAX

enum task_status {
    TASK_UNREAD,
    TASK_UNBORN,  /* its __init__ has not run yet */
    TASK_RUNNING, /* one of its coroutines executes */
    TASK_READY,   /* waits for the loop */
    TASK_WAITING, /* for a future */
    TASK_TORN,
    TASK_GONE     /* done, or no task any more: leaves at the end of the round */
};

/* One coroutine of a chain. */
struct link {
    uintptr_t coro;     /* the object */
    uintptr_t code;
    uint64_t identity;  /* of the code */
    int32_t lasti;
};

struct edge {
    uint32_t awaiter;   /* index of the task that waits ... */
    uintptr_t through;  /* ... for this future */
};

/* What those that rest together have in common: who waits for them, who made them, on
 * what loop. So they stand on the same. 0 as a group: none. */
struct rest_key {
    uint64_t makers_hash;
    uintptr_t loop;
    struct awaiters_lead lead; /* of their only callback */
    uintptr_t alone;           /* awaited by one that waits for nothing else: this task, and nobody rests with it */
};

/* Three cache lines: of an active task that has not changed a round reads the first,
 * placing it and adding its time the first two; of one at rest none. */
struct registered {
    uintptr_t task;
    uint64_t glance;       /* that of its last reading; 0: none */
    uintptr_t kept_next;   /* how its edges are found again: through what, and (kept, registry.c) in which way */
    uint32_t first_edge, edges, edges_round; /* valid in that round */
    uint32_t awaits_round; /* the round in which a pending task was found that it waits for */
    uint32_t awaits_first; /* ... and the first edge of the walk that found it */
    uint32_t at;           /* its place among the active ones; at rest: the next one of its group */
    union {
        uint32_t woken_from; /* active: the group that it rested in, until somebody takes note; 0: none */
        uint32_t before;     /* at rest: the one before it in its group */
    };
    uint8_t kept;
    uint8_t asyncio;       /* index for asyncios_at */
    uint8_t status;        /* enum task_status, as last read */
    uint8_t place, flags;  /* lineage's, valid in `placed` (see sampler/lineage.c) */
    bool unchanged : 1;    /* its last reading was a glance, equal to the one before */
    bool reshaped : 1;     /* its stack is another one since it was woken */
    bool outlives : 1;     /* lineage's: a coroutine that made it was found dead after it was read */
    bool edges_proven : 1; /* right after its edges were read, all of its awaiters still were as they had been read */
    uint16_t makers_count;
    uint8_t aggregate;     /* awaiters_aggregate() of its innermost function */
    uint8_t unborn;        /* rounds in which its __init__ had not run yet */
    uint16_t links;

    uint32_t placed;
    uint32_t first_above, above, first_whole, whole; /* stacks it stands on; those with its own chain */
    uint32_t creator;      /* the task of the coroutine that made it, NO_TASK: unknown or gone */
    uint32_t edges_done;   /* so many awaiters are placed, or left out */
    uint32_t cuts;         /* a bit for each awaiter that is left out, to open a circle */
    uint64_t makers_hash;  /* equal: the same makers */
    uintptr_t loop;
    uint64_t read_ns;      /* until when its time is accounted for; 0: until the last tick */
    profile_stack kept_base, kept_stack; /* the stack it had last, kept while neither chain nor base changed; PROFILE_ROOT: none */

    uintptr_t coro;        /* 0 until it was read */
    uintptr_t waiter;
    uint64_t hash;         /* over the chain: coroutines and places, and types of what they handle if that is asked for */
    uint64_t shape;        /* the same without the coroutines, with its name, labels and exception if these are asked for: equal for equal stacks */
    uint64_t order;        /* of becoming known */
    uint64_t born;         /* birth.number + 1; 0: its birth was not seen */
    maker_id *makers;      /* of its creator, innermost first */
    uint32_t first_link, links_round; /* see registry_need_links; valid in that round */
};
_Static_assert(sizeof(struct registered) == 192, "three cache lines");

struct registry;

/* As last read: it waits, or could go on. */
static inline bool registry_is_suspended(const struct registered *task)
{
    return task->status == TASK_WAITING || task->status == TASK_READY;
}

struct registry *registry_new(const struct py_target *target);
void registry_free(struct registry *registry);

uint32_t registry_count(const struct registry *registry);
struct registered *registry_at(const struct registry *registry, uint32_t index);
/* NO_TASK: not known. */
uint32_t registry_find(const struct registry *registry, uintptr_t task);
/* The task that was made of this coroutine and lives; it was read in this round. */
uint32_t registry_find_coro(struct registry *registry, uintptr_t coro);
/* Finds or adds. NO_TASK: no room (counted). */
uint32_t registry_add(struct registry *registry, uintptr_t task, uint8_t asyncio);
/* A birth: another task, whatever was known at this address. Where that was read in
 * this round already: if the birth came after the reading, it waits for the end of the
 * round; before, what was read is the new one; while it was read: TASK_TORN. */
void registry_born(struct registry *registry, const struct birth *birth, uint8_t asyncio);

/* A new round: everything is unread, links and edges are void. */
void registry_begin_round(struct registry *registry);
/* Reads the task, and finds its edges, if this round has not done so. May add tasks
 * (awaiters) at the end of the array, which may move it. */
void registry_read(struct registry *registry, uint32_t index);
/* Reads those from first on, side by side, until `until` or (NO_TASK) the last one,
 * with those that join at the end meanwhile. */
void registry_read_some(struct registry *registry, uint32_t first, uint32_t until);
/* The name that it had when it was read; 0: none, or names are not asked for. */
marker_id registry_name(const struct registry *registry, const struct registered *task);
/* What its context said when it was read: LABELS_MOST numbers; NULL: labels are not asked for. */
const marker_id *registry_labels(const struct registry *registry, const struct registered *task);
/* The exception that it handled when it was read, while it waited or was ready; 0: none, or it is not asked for. */
marker_id registry_exception(const struct registry *registry, const struct registered *task);
/* The names, labels and exceptions of all (markers_keep). */
void registry_keep_names(const struct registry *registry);
/* Has the links of a task that was read in memory. False: it has changed since. */
bool registry_need_links(struct registry *registry, uint32_t index);
/* A leaf that waits in wait() or in a TaskGroup none of whose members is pending is
 * TASK_READY, whatever future it waits for. */
void registry_check_aggregate(struct registry *registry, uint32_t index);
/* Whether a task was met whose making cannot be hooked: one written in Python. */
bool registry_has_unhooked(const struct registry *registry);
/* Whether a pending task that was read in this round is what it waits for: then it is no leaf. */
bool registry_awaits_task(const struct registry *registry, const struct registered *task);
/* Whether there is one of those. */
bool registry_has_awaiting(const struct registry *registry);
/* Whether these tasks, which were read, are still as they were: chain, state, what they
 * wait for. At most GLANCE_BATCH of them, side by side. */
void registry_are_as_read(struct registry *registry, const uint32_t *indices, uint32_t count, bool *same);
/* Fetches what that needs, some time before. */
void registry_fetch(const struct registry *registry, uint32_t index);
const struct link *registry_links(const struct registry *registry, const struct registered *task);
const struct edge *registry_edges(const struct registry *registry, const struct registered *task);
/* The coroutines from the task's outermost to this one, as they are now: a chain of
 * its own. Its number of links, at *first; 0: this one is not in the task's chain. */
uint32_t registry_chain_down_to(struct registry *registry, const struct registered *task, uintptr_t coroutine, uint32_t *first);
const struct link *registry_link(const struct registry *registry, uint32_t first);
/* Lets those go that are TASK_GONE. Indices change. */
void registry_end_round(struct registry *registry);

/* --- active, and at rest --- */

/* All tasks that do not rest, in no order; those that are woken or join come at the end. */
uint32_t registry_actives(const struct registry *registry);
uint32_t registry_active(const struct registry *registry, uint32_t at);
/* Tasks of this interpreter may rest: deaths of its futures are counted; false: they may no
 * more, and wake. */
void registry_allow_rest(struct registry *registry, uint8_t asyncio, bool allowed);
/* Whether this task, which was read in this round and is a leaf, may rest, and with whom. */
bool registry_may_rest(struct registry *registry, uint32_t index, struct rest_key *key);
/* Lays it to rest in a group, whose number is the caller's to choose (small ones). False: no
 * memory. */
bool registry_rest(struct registry *registry, uint32_t index, const struct rest_key *key, uint32_t group);
void registry_wake(struct registry *registry, uint32_t index);
/* The time of what is laid to rest from now on. */
void registry_set_time(struct registry *registry, uint64_t now);
/* Whether a task that was read in this round waits for the same future since that moment at
 * least: known of those that rested, also when they were woken since. */
bool registry_waits_since(const struct registry *registry, uint32_t index, uint64_t *ns);
uint32_t registry_resting(const struct registry *registry, uint32_t group);    /* how many */
uint32_t registry_first_at_rest(const struct registry *registry, uint32_t group); /* NO_TASK: nobody */
/* Of those that rest this part of all, in turn, is glanced at in the coming round. */
void registry_verify(struct registry *registry, uint64_t part, uint64_t all);

/* Tasks that found no room; only ever grows. */
uint64_t registry_skipped(const struct registry *registry);

#endif
