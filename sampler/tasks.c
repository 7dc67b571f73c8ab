/* SPDX-License-Identifier: MIT */
#include "sampler/tasks.h"

#include <string.h>

#include "hooks/clock.h"
#include "hooks/log.h"
#include "hooks/mem.h"
#include "sampler/births.h"
#include "sampler/cpython/asyncios.h"
#include "sampler/cpython/awaiters.h"
#include "sampler/cpython/contexts.h"
#include "sampler/cpython/exceptions.h"
#include "sampler/labels.h"
#include "sampler/lineage.h"
#include "sampler/registry.h"
#include "sampler/rests.h"

#define SECOND 1000000000ull

enum {
    LOOPS_MAX = 64,          /* running at once */
    SHARE_PPM = 10000,       /* of a core, until another is given */
    LONGEST_PAUSE_MS = 1000, /* between two ticks, whatever they take */
    AHEAD = 8,               /* of the task that is looked at, another one is fetched */
    VERIFIED_IN = 10,        /* ticks, or a second, if that is longer: then all that rest were glanced at */
    LISTED_EVERY = 4,        /* seconds, where births are seen */
    LOOKS_A_SECOND = 10,     /* for parts of asyncio that are new, once it has been as it is for a second */
    SHAPES = 1024,           /* stacks of chains that tasks have in common; a power of two */
    FIRST_STILLS = 64,
    SECONDS_MOST = 128,      /* leaves looked at once more in a tick */
    LABELS_LOOKED_AT = 64,   /* tasks in whose contexts labels are looked for, in a tick */
    DUMP_STEP = 64,          /* tasks of a dump between two looks at the clock, and whether somebody waits for us */
    STILL_MOST = 1 << 16     /* entries of what is repeated while nothing runs */
};

struct running_loop {
    uintptr_t loop;
    profile_stack driver; /* PROFILE_ROOT: not known in this window yet */
    uintptr_t tstate;     /* of the thread that runs it */
    uint32_t tid;
    bool runs;            /* now */
    uint32_t pending, ready; /* of its tasks at the last tick that read them: that did not run; that waited for nothing but it */
    bool counted;         /* there was such a tick */
};

struct interpreter { /* one that threads were seen in */
    uintptr_t interp;
    struct asyncio_search search;
    struct asyncio asyncio;
    int index;            /* for asyncios_at; -1: not found yet */
    bool hooked;
    bool off;             /* its asyncio is not what it should be */
    bool seen;
    uint64_t coming_ns;   /* since when it is being imported; 0: it is not */
    uint64_t changed_ns, looked_ns; /* when a part of it was new; when parts were last looked for */
};

/* Where time is added: in `task`, and in `exc`; PROFILE_ROOT: not there. */
struct where {
    profile_stack stack, handles;
};

/* The stack of all tasks whose chains are alike, on the same base. */
struct shape {
    uint64_t shape;
    profile_stack base, stack; /* PROFILE_ROOT: none */
    bool ready;
};

struct second { /* a leaf that could not be placed, to be looked at once more */
    uintptr_t task, waiter;
    uint64_t order, hash;
};

struct tasks {
    struct tasks_options options;
    struct registry *registry;
    struct rests rests;
    struct lineage *lineage;
    struct stacks *stacks;
    struct interpreter interpreter[ASYNCIOS_MAX];
    struct running_loop loop[LOOPS_MAX];
    struct running_loop *counting; /* of the task that was counted last */
    uint64_t last_ns;        /* the last tick: until then everything is accounted for, but for tasks with a read_ns */
    uint64_t read_all_ns;    /* when all were read last */
    uint64_t due_ns;
    uint64_t took_ns;        /* CPU of the last tick that read them */
    uint32_t share_ppm;      /* of a core that they may use */
    uint64_t listed_ns;      /* when all tasks were looked up last; 0: to be done at the next tick */
    uint64_t checked_ns;     /* when the hooks were */
    uint64_t loops_refused, interpreters_refused; /* found no place, since the last count */
    struct second second[SECONDS_MOST];
    uint32_t seconds;
    uint64_t orphans;        /* tasks that ended while they carried time: placed without ancestry */
    uint64_t lost, skipped;  /* as counted so far */
    uint64_t random;
    uint32_t look_for_labels; /* from this task on, in turn */
    profile_frame *tail;     /* scratch: frames of a stack that is cut */
    /* What the last tick added, to be added again while no thread has run since before it. */
    struct {
        struct where where;
        uint64_t shares;     /* of LINEAGE_ALL */
    } *still;
    uint32_t stills, still_room;
    uint32_t leaves;
    struct where run_where;  /* neighbours are often alike: what was added there last, */
    uint64_t run_ns;         /* and is still to be passed on */
    struct shape shape[SHAPES];
    uint64_t clocks, threads; /* sum of the threads' CPU clocks at the last full tick, and how many there were */
    bool repeatable;
    bool at_rest;            /* the last tick was a repeat */
    bool before_known;       /* `still` has all leaves of the last tick, but for those that carry their time */
};

static bool find_driver(void *context, uintptr_t loop, profile_stack *stack);

struct tasks *tasks_new(const struct tasks_options *options, uint64_t now)
{
    struct tasks *tasks = mem_zalloc(sizeof *tasks);
    if (!tasks)
        return NULL;
    tasks->options = *options;
    tasks->last_ns = now;
    tasks->share_ppm = SHARE_PPM;
    tasks->random = now | 1;
    tasks->registry = registry_new(options->target);
    tasks->tail = mem_alloc(options->depth * sizeof *tasks->tail);
    if (tasks->registry)
        tasks->lineage = lineage_new(tasks->registry, options->creators, find_driver, tasks);
    if (tasks->lineage && tasks->tail)
        return tasks;
    tasks_free(tasks);
    return NULL;
}

void tasks_free(struct tasks *tasks)
{
    if (!tasks)
        return;
    asyncios_withdraw_all();
    lineage_free(tasks->lineage);
    registry_free(tasks->registry);
    rests_free(&tasks->rests);
    mem_free(tasks->tail);
    mem_free(tasks->still);
    mem_free(tasks);
}

/* --- interpreters --- */

static struct interpreter *interpreter_of(struct tasks *tasks, uintptr_t interp)
{
    struct interpreter *empty = NULL;
    for (int i = 0; i < ASYNCIOS_MAX; i++) {
        if (tasks->interpreter[i].interp == interp)
            return &tasks->interpreter[i];
        if (!tasks->interpreter[i].interp && !empty)
            empty = &tasks->interpreter[i];
    }
    if (empty)
        *empty = (struct interpreter){.interp = interp, .index = -1};
    return empty;
}

static void give_up(struct interpreter *interpreter)
{
    interpreter->off = true;
    log_line(LOG_WARN, LOG_SELFTEST, "asyncio is not what it should be (%s): no stacks of tasks", interpreter->search.found);
}

static void look_for_asyncio(struct tasks *tasks, struct interpreter *interpreter, uint64_t now)
{
    bool changed = false;
    if (interpreter->off)
        return;
    if (interpreter->index < 0)
        changed = asyncio_find(&interpreter->search, tasks->options.target, interpreter->interp, &interpreter->asyncio);
    else if (now - interpreter->changed_ns < SECOND || now - interpreter->looked_ns >= SECOND / LOOKS_A_SECOND) {
        changed = asyncio_complete(tasks->options.target, &interpreter->asyncio);
        interpreter->looked_ns = now;
    }
    if (interpreter->index >= 0 || !asyncio_is_coming(&interpreter->search))
        interpreter->coming_ns = 0;
    else if (!interpreter->coming_ns)
        interpreter->coming_ns = now;
    if (interpreter->search.mismatch)
        give_up(interpreter);
    else if (changed) {
        interpreter->index = asyncios_publish(&interpreter->asyncio);
        interpreter->changed_ns = now;
        interpreter->hooked = false;
        tasks->listed_ns = 0;
    }
}

static void look_at_hook(struct tasks *tasks, struct interpreter *interpreter)
{
    uintptr_t type = interpreter->asyncio.task_type;
    if (!tasks->options.creators || interpreter->index < 0)
        return;
    bool hooked = births_is_hooked(type);
    if (!hooked)
        tasks->options.hook(type, interpreter->interp);
    else if (!interpreter->hooked)
        tasks->listed_ns = 0; /* those made before it are in the lists only */
    interpreter->hooked = hooked;
    registry_allow_rest(tasks->registry, (uint8_t)interpreter->index, births_counts_futures(interpreter->asyncio.future_type));
}

static void forget_interpreters(struct tasks *tasks)
{
    for (int i = 0; i < ASYNCIOS_MAX; i++) {
        struct interpreter *interpreter = &tasks->interpreter[i];
        if (interpreter->interp && !interpreter->seen) {
            if (interpreter->index >= 0)
                registry_allow_rest(tasks->registry, (uint8_t)interpreter->index, false);
            asyncios_withdraw(interpreter->interp);
            *interpreter = (struct interpreter){.index = -1};
        }
    }
}

static void look_at_interpreters(struct tasks *tasks, const struct tasks_thread *threads, uint32_t count, uint64_t now)
{
    bool check = now - tasks->checked_ns >= SECOND;
    for (int i = 0; i < ASYNCIOS_MAX; i++)
        tasks->interpreter[i].seen = false;
    for (uint32_t i = 0; i < count; i++) {
        struct interpreter *interpreter = interpreter_of(tasks, threads[i].interp);
        tasks->interpreters_refused += !interpreter;
        if (!interpreter || interpreter->seen)
            continue;
        interpreter->seen = true;
        look_for_asyncio(tasks, interpreter, now);
        if (check || !interpreter->hooked)
            look_at_hook(tasks, interpreter);
    }
    if (count)
        forget_interpreters(tasks);
    if (check) {
        awaiters_forget();
        tasks->checked_ns = now;
    }
}

bool tasks_in_haste(const struct tasks *tasks, uint64_t now)
{
    for (int i = 0; i < ASYNCIOS_MAX; i++) {
        const struct interpreter *interpreter = &tasks->interpreter[i];
        if (interpreter->interp && interpreter->coming_ns && now - interpreter->coming_ns < SECOND)
            return true;
    }
    return false;
}

/* The interpreter that a task which was just born belongs to. */
static int asyncio_of(const struct tasks *tasks, uintptr_t task)
{
    int only = -1, found = 0;
    for (int i = 0; i < ASYNCIOS_MAX; i++) {
        if (tasks->interpreter[i].index < 0 || !tasks->interpreter[i].interp)
            continue;
        only = tasks->interpreter[i].index;
        found++;
    }
    for (int i = 0; i < ASYNCIOS_MAX && found > 1; i++) {
        const struct interpreter *interpreter = &tasks->interpreter[i];
        if (interpreter->interp && interpreter->index >= 0 &&
            asyncio_kind(tasks->options.target, &interpreter->asyncio, task, &(bool){false}) == FUTURE_TASK)
            return interpreter->index;
    }
    return only;
}

/* Until now its time is accounted for; not: it comes with the next reading. */
static uint64_t take_ns(const struct tasks *tasks, struct registered *task, uint64_t now)
{
    uint64_t since = task->read_ns ? task->read_ns : tasks->last_ns;
    task->read_ns = 0;
    return now > since ? now - since : 0;
}

/* Where the time of a leaf is added that stands so. */
static struct where where_of(const struct tasks *tasks, const struct registered *task, profile_stack stack)
{
    marker_id exception = registry_exception(tasks->registry, task);
    return (struct where){stack, exception ? stacks_push_name(tasks->stacks, stack, exception) : PROFILE_ROOT};
}

static void add_to_profile(const struct tasks *tasks, struct where where, uint64_t ns)
{
    if (where.stack != PROFILE_ROOT && tasks->options.metric)
        profile_add(tasks->stacks->profile, where.stack, METRIC_TASK, ns);
    if (where.handles != PROFILE_ROOT)
        profile_add(tasks->stacks->profile, where.handles, METRIC_EXC, ns);
}

/* It has ended, or went on, and carries time that no reading took. */
static void add_carried(struct tasks *tasks, struct registered *task)
{
    if (!task->read_ns || task->kept_stack == PROFILE_ROOT)
        return;
    uint64_t ns = take_ns(tasks, task, tasks->last_ns);
    add_to_profile(tasks, where_of(tasks, task, task->kept_stack), ns);
    tasks->orphans++;
}

/* Its memory was pending when its birth was noted: if it is not, that task is done, or gone. */
static bool is_done(const struct tasks *tasks, uintptr_t task, int asyncio)
{
    enum future_state state;
    const struct asyncio *of = asyncios_at(asyncio);
    return of && asyncio_state(tasks->options.target, of, task, &state) && state != FUTURE_PENDING;
}

static bool reads_tasks(const struct tasks *tasks)
{
    return tasks->options.metric || exceptions_tasks_asked;
}

/* Most tasks of a busy service have come and gone between two ticks: they are not made known
 * first, to be read and forgotten at a time many times that. */
static void take_births(struct tasks *tasks)
{
    struct birth birth;
    while (births_next(&birth)) {
        int asyncio = reads_tasks(tasks) ? asyncio_of(tasks, birth.task) : -1; /* else nobody would read them, and see them end */
        uint32_t before = registry_find(tasks->registry, birth.task);
        if (before != NO_TASK)
            add_carried(tasks, registry_at(tasks->registry, before));
        if (asyncio >= 0 && (before != NO_TASK || !is_done(tasks, birth.task, asyncio)))
            registry_born(tasks->registry, &birth, (uint8_t)asyncio);
        tasks->repeatable = false;
    }
}

/* In contexts that threads run in, and of some tasks. */
static void look_for_labels(struct tasks *tasks, const struct tasks_thread *threads, uint32_t count, uint64_t now)
{
    const struct py_target *target = tasks->options.target;
    uint32_t known = registry_count(tasks->registry);
    labels_begin_looking(target, now);
    for (uint32_t i = 0; i < count; i++)
        labels_look(target, contexts_of_thread(target, threads[i].tstate));
    for (uint32_t i = 0; i < known && i < LABELS_LOOKED_AT; i++) {
        const struct registered *task = registry_at(tasks->registry, tasks->look_for_labels++ % known);
        const struct asyncio *asyncio = asyncios_at(task->asyncio);
        labels_look(target, asyncio ? asyncio_context(target, asyncio, task->task) : 0);
    }
}

void tasks_prepare(struct tasks *tasks, const struct tasks_thread *threads, uint32_t count, struct stacks *stacks, uint64_t now)
{
    tasks->stacks = stacks;
    registry_set_time(tasks->registry, now);
    look_at_interpreters(tasks, threads, count, now);
    births_hold(); /* until the tick is over: tasks are read in it */
    take_births(tasks);
    if (labels_asked)
        look_for_labels(tasks, threads, count, now);
    registry_begin_round(tasks->registry);
    lineage_begin_round(tasks->lineage, stacks);
}

/* --- loops --- */

static struct running_loop *loop_of(struct tasks *tasks, uintptr_t loop)
{
    for (int i = 0; i < LOOPS_MAX; i++)
        if (tasks->loop[i].loop == loop && loop)
            return &tasks->loop[i];
    return NULL;
}

static struct running_loop *add_loop(struct tasks *tasks, uintptr_t loop)
{
    for (int i = 0; i < LOOPS_MAX; i++) {
        if (tasks->loop[i].loop)
            continue;
        tasks->loop[i] = (struct running_loop){.loop = loop};
        return &tasks->loop[i];
    }
    return NULL;
}

/* Where the thread's stack does not show where the loop begins (uvloop has no frames
 * of Python), what is known stays; at first it is the whole of it. */
static void note_driver(struct running_loop *loop, const struct tasks_thread *thread)
{
    if (thread->driver != PROFILE_ROOT && (thread->driver_sure || (loop->driver == PROFILE_ROOT && thread->stands)))
        loop->driver = thread->driver;
}

static void look_at_loops(struct tasks *tasks, const struct tasks_thread *threads, uint32_t count)
{
    for (int i = 0; i < LOOPS_MAX; i++)
        tasks->loop[i].runs = false;
    for (uint32_t i = 0; i < count; i++) {
        if (!asyncios_of(threads[i].interp))
            continue;
        uintptr_t address = asyncio_running_loop(tasks->options.target, threads[i].tstate);
        struct running_loop *loop = loop_of(tasks, address);
        if (!loop && address && !(loop = add_loop(tasks, address)))
            tasks->loops_refused++;
        if (!loop)
            continue;
        loop->runs = true;
        loop->tstate = threads[i].tstate;
        loop->tid = threads[i].tid;
        note_driver(loop, &threads[i]);
    }
    for (int i = 0; i < LOOPS_MAX; i++)
        if (!tasks->loop[i].runs)
            tasks->loop[i] = (struct running_loop){0};
}

/* Of each loop's tasks so many for so long. */
static void loops_go_on(const struct tasks *tasks, struct window *window, uint64_t ns)
{
    for (int i = 0; i < LOOPS_MAX; i++) {
        const struct running_loop *loop = &tasks->loop[i];
        struct loop_time *shown = loop->counted && loop->runs ? window_loop(window, loop->tid) : NULL;
        if (!shown)
            continue;
        shown->counted_ns += ns;
        shown->pending_ns += ns * loop->pending;
        shown->ready_ns += ns * loop->ready;
    }
}

static void count_in(struct tasks *tasks, uintptr_t address, uint32_t pending, uint32_t ready)
{
    struct running_loop *loop = tasks->counting && tasks->counting->loop == address ? tasks->counting : loop_of(tasks, address);
    if (!loop)
        return;
    tasks->counting = loop; /* neighbours have the same, mostly */
    loop->pending += pending;
    loop->ready += ready;
}

/* Before the others: of those that rest nobody is ready. */
static void count_rests(struct tasks *tasks)
{
    tasks->counting = NULL;
    for (int i = 0; i < LOOPS_MAX; i++)
        tasks->loop[i].pending = tasks->loop[i].ready = 0;
    for (uint32_t group = 0; (group = rests_from(&tasks->rests, group + 1));)
        count_in(tasks, rests_at(&tasks->rests, group)->key.loop, registry_resting(tasks->registry, group), 0);
}

/* They have been counted. */
static void note_peaks(struct tasks *tasks, struct window *window)
{
    for (int i = 0; i < LOOPS_MAX; i++) {
        struct running_loop *loop = &tasks->loop[i];
        struct loop_time *shown = loop->runs ? window_loop(window, loop->tid) : NULL;
        loop->counted = loop->runs;
        if (shown && loop->pending > shown->pending_peak)
            shown->pending_peak = loop->pending;
        if (shown && loop->ready > shown->ready_peak)
            shown->ready_peak = loop->ready;
    }
}

static bool find_driver(void *context, uintptr_t address, profile_stack *stack)
{
    const struct running_loop *loop = loop_of(context, address);
    if (!loop || loop->driver == PROFILE_ROOT)
        return false;
    *stack = loop->driver;
    return true;
}

/* --- all tasks --- */

static void add_all(struct tasks *tasks, struct tasks_walk *walk, int asyncio)
{
    uintptr_t task;
    while (asyncio_tasks_next(walk, &task))
        registry_add(tasks->registry, task, (uint8_t)asyncio);
    if (walk->broken)
        tasks->listed_ns = 0;
}

static void list_tasks(struct tasks *tasks, const struct tasks_thread *threads, uint32_t count, uint64_t now)
{
    const struct py_target *target = tasks->options.target;
    struct tasks_walk walk;
    tasks->listed_ns = now;
    for (int i = 0; i < ASYNCIOS_MAX; i++) {
        const struct interpreter *interpreter = &tasks->interpreter[i];
        if (!interpreter->interp || interpreter->index < 0)
            continue;
        for (uint32_t set = 0; set < ASYNCIO_SETS; set++)
            if (asyncio_tasks_of_set(&walk, target, &interpreter->asyncio, set))
                add_all(tasks, &walk, interpreter->index);
        for (uint32_t j = 0; j < count; j++)
            if (threads[j].interp == interpreter->interp &&
                asyncio_tasks_of_thread(&walk, target, &interpreter->asyncio, threads[j].tstate))
                add_all(tasks, &walk, interpreter->index);
        if (asyncio_tasks_of_interp(&walk, target, &interpreter->asyncio))
            add_all(tasks, &walk, interpreter->index);
    }
}

/* Every tick where births are not seen, now and then where they are. */
static bool must_list(const struct tasks *tasks, uint64_t now)
{
    for (int i = 0; i < ASYNCIOS_MAX; i++)
        if (tasks->interpreter[i].interp && tasks->interpreter[i].index >= 0 && !tasks->interpreter[i].hooked)
            return true;
    return registry_has_unhooked(tasks->registry) || !tasks->listed_ns || now - tasks->listed_ns >= LISTED_EVERY * SECOND || births_lost() != tasks->lost;
}

/* --- one leaf --- */

/* Frames of a stack, the marker of its thread left out. */
static uint32_t depth_of(struct tasks *tasks, profile_stack stack)
{
    return profile_depth(tasks->stacks->profile, stack) - (stacks_marker_of(tasks->stacks, stack) != PROFILE_ROOT);
}

/* A stack that would be deeper than what is kept: cut at the root end. */
static profile_stack push_cut(struct tasks *tasks, const struct registered *task, profile_stack base, uint32_t links, uint32_t depth)
{
    struct profile *profile = tasks->stacks->profile;
    marker_id name = links < depth ? registry_name(tasks->registry, task) : 0;
    uint32_t kept_links = links < depth ? links : depth, own = kept_links + (name != 0), tail = depth - own;
    profile_stack stack = stacks_push_truncated(tasks->stacks, stacks_marker_of(tasks->stacks, base), depth_of(tasks, base) + links + (name != 0) - depth);
    for (uint32_t i = tail; i-- > 0; base = profile_parent(profile, base))
        tasks->tail[i] = profile_leaf(profile, base);
    for (uint32_t i = 0; i < tail; i++)
        stack = profile_push(profile, stack, tasks->tail[i]);
    stack = stacks_push_name(tasks->stacks, stack, name);
    const struct link *link = registry_links(tasks->registry, task) + links - kept_links;
    for (uint32_t i = 0; i < kept_links; i++)
        stack = stacks_push(tasks->stacks, stack, &(struct stack_entry){link[i].identity, link[i].code, link[i].lasti, 0});
    return stack;
}

static profile_stack make_stack(struct tasks *tasks, const struct registered *task, profile_stack base)
{
    marker_id name = registry_name(tasks->registry, task);
    uint32_t depth = tasks->options.depth, below = profile_depth(tasks->stacks->profile, base), own = task->links + (name != 0);
    profile_stack stack = base;
    if (below + own > depth && depth_of(tasks, base) + own > depth) {
        stack = push_cut(tasks, task, base, task->links, depth);
    } else {
        stack = stacks_push_name(tasks->stacks, stack, name);
        for (uint32_t i = 0; i < task->links; i++) {
            const struct link *link = registry_links(tasks->registry, task) + i;
            stack = stacks_push(tasks->stacks, stack, &(struct stack_entry){link->identity, link->code, link->lasti, 0});
        }
    }
    if (task->status == TASK_READY)
        stack = stacks_push_marker(tasks->stacks, stack, "[ready]");
    return stacks_label(tasks->stacks, stack, registry_labels(tasks->registry, task));
}

static struct shape *shape_of(struct tasks *tasks, const struct registered *task, profile_stack base)
{
    uint64_t hash = (task->shape ^ base) * 0x9e3779b97f4a7c15u;
    return &tasks->shape[(hash >> 32 ^ task->status) & (SHAPES - 1)];
}

static bool is_of_shape(const struct shape *shape, const struct registered *task, profile_stack base)
{
    return shape->stack != PROFILE_ROOT && shape->shape == task->shape && shape->base == base && shape->ready == (task->status == TASK_READY);
}

/* The stack of one like it on this base, else its own: then its links are needed. */
static profile_stack stack_of(struct tasks *tasks, const struct registered *task, profile_stack base)
{
    struct shape *shape = shape_of(tasks, task, base);
    if (!is_of_shape(shape, task, base))
        *shape = (struct shape){task->shape, base, make_stack(tasks, task, base), task->status == TASK_READY};
    return shape->stack;
}

/* Whether stack_of needs no links. */
static bool are_known(struct tasks *tasks, const struct registered *task, const struct base *bases, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        if (!is_of_shape(shape_of(tasks, task, bases[i].stack), task, bases[i].stack))
            return false;
    return true;
}

/* To be repeated while nothing runs; neighbours are often alike. */
static bool grow_still(struct tasks *tasks)
{
    return tasks->stills < STILL_MOST &&
           mem_grow((void **)&tasks->still, &tasks->still_room, tasks->stills + 1, FIRST_STILLS, sizeof *tasks->still);
}

static bool is_same_place(struct where a, struct where b)
{
    return a.stack == b.stack && a.handles == b.handles;
}

static void note_still(struct tasks *tasks, struct where where, uint64_t shares)
{
    if (tasks->stills && is_same_place(tasks->still[tasks->stills - 1].where, where))
        tasks->still[tasks->stills - 1].shares += shares;
    else if (tasks->stills < tasks->still_room || grow_still(tasks)) {
        tasks->still[tasks->stills].where = where;
        tasks->still[tasks->stills++].shares = shares;
    } else
        tasks->repeatable = tasks->before_known = false;
}

static void end_run(struct tasks *tasks)
{
    if (tasks->run_ns)
        add_to_profile(tasks, tasks->run_where, tasks->run_ns);
    tasks->run_ns = 0;
}

static void add_time(struct tasks *tasks, struct where where, uint64_t ns, uint64_t shares)
{
    if (!is_same_place(where, tasks->run_where))
        end_run(tasks);
    tasks->run_where = where;
    tasks->run_ns += (uint64_t)((__uint128_t)ns * shares / LINEAGE_ALL);
    note_still(tasks, where, shares);
}

static void carry(struct tasks *tasks, struct registered *task)
{
    if (!task->read_ns)
        task->read_ns = tasks->last_ns;
    tasks->repeatable = false;
}

/* Should it end before it can be placed, its time stands on its own chain. */
static void carry_leaf(struct tasks *tasks, uint32_t index, profile_stack driver)
{
    struct registered *task = registry_at(tasks->registry, index);
    if (driver != PROFILE_ROOT && task->kept_stack == PROFILE_ROOT && registry_need_links(tasks->registry, index)) {
        task->kept_base = driver;
        task->kept_stack = make_stack(tasks, task, driver);
    }
    carry(tasks, task);
}

/* On its only base: the stack that it had last, if neither changed. */
static bool keep_stack(struct tasks *tasks, struct registered *task, const struct base *base)
{
    if (task->kept_stack != PROFILE_ROOT && task->kept_base == base->stack)
        return true;
    if (!are_known(tasks, task, base, 1))
        return false;
    task->kept_base = base->stack;
    task->kept_stack = stack_of(tasks, task, base->stack);
    return true;
}

static void add_stacks(struct tasks *tasks, struct registered *task, const struct base *bases, uint32_t count, uint64_t ns)
{
    for (uint32_t i = 0; i < count; i++) {
        task->kept_base = bases[i].stack;
        task->kept_stack = stack_of(tasks, task, bases[i].stack);
        add_time(tasks, where_of(tasks, task, task->kept_stack), ns, bases[i].share);
    }
}

/* False: it has changed since it was read. */
static bool add_leaf(struct tasks *tasks, uint32_t index, struct window *window, uint64_t now)
{
    const struct base *bases;
    uint32_t count = lineage_of(tasks->lineage, index, &bases);
    struct registered *task = registry_at(tasks->registry, index);
    if (count == 1 && keep_stack(tasks, task, bases))
        add_time(tasks, where_of(tasks, task, task->kept_stack), take_ns(tasks, task, now), bases[0].share);
    else if (are_known(tasks, task, bases, count) || registry_need_links(tasks->registry, index))
        add_stacks(tasks, task, bases, count, take_ns(tasks, task, now));
    else
        return false;
    window->counters.samples++;
    tasks->leaves++;
    if (lineage_lacks_creator(tasks->lineage, index))
        window->counters.dropped[DROP_creator_unknown]++;
    return true;
}

/* From the next tick on it is seen to with those that stand alike. */
static void lay_to_rest(struct tasks *tasks, uint32_t index)
{
    struct rest_key key;
    const struct registered *task = registry_at(tasks->registry, index);
    uint32_t group;
    if (!registry_may_rest(tasks->registry, index, &key) || !(group = rests_of(&tasks->rests, &key, task->shape)) ||
        !registry_rest(tasks->registry, index, &key, group))
        return;
    rests_at(&tasks->rests, group)->kept_base = task->kept_base;
    rests_at(&tasks->rests, group)->kept_stack = task->kept_stack;
}

static void add_or_carry(struct tasks *tasks, uint32_t index, struct window *window, uint64_t now)
{
    struct registered *task = registry_at(tasks->registry, index);
    const struct running_loop *loop = loop_of(tasks, task->loop);
    bool known = loop && loop->driver != PROFILE_ROOT;
    if (!loop) {
        add_carried(tasks, task);
        take_ns(tasks, task, now); /* nothing wakes it */
        return;
    }
    if (known && lineage_is_proven(tasks->lineage, index) && add_leaf(tasks, index, window, now)) {
        lay_to_rest(tasks, index);
        return;
    }
    window->counters.task_postponed += known;
    carry_leaf(tasks, index, loop->driver);
    if (known && tasks->seconds < SECONDS_MOST)
        tasks->second[tasks->seconds++] = (struct second){task->task, task->waiter, task->order, task->hash};
}

static bool is_leaf(const struct tasks *tasks, const struct registered *task)
{
    return registry_is_suspended(task) && !registry_awaits_task(tasks->registry, task);
}

/* --- one that is no leaf, and handles an exception --- */

static void add_handled(struct tasks *tasks, const struct registered *task, profile_stack stack, uint64_t ns, uint64_t share)
{
    add_time(tasks, (struct where){PROFILE_ROOT, where_of(tasks, task, stack).handles}, ns, share);
}

/* False: it has changed since it was read. */
static bool add_handler(struct tasks *tasks, uint32_t index, profile_stack driver, uint64_t ns)
{
    const struct base *bases;
    uint32_t count = lineage_of(tasks->lineage, index, &bases);
    const struct registered *task = registry_at(tasks->registry, index);
    bool proven = count && lineage_is_proven(tasks->lineage, index);
    if (lineage_has_moved(tasks->lineage, index) ||
        !((proven && are_known(tasks, task, bases, count)) || registry_need_links(tasks->registry, index)))
        return false;
    for (uint32_t i = 0; i < count && proven; i++)
        add_handled(tasks, task, stack_of(tasks, task, bases[i].stack), ns, bases[i].share);
    if (!proven) {
        add_handled(tasks, task, make_stack(tasks, task, driver), ns, LINEAGE_ALL);
        tasks->orphans++;
    }
    return true;
}

/* The tasks that it waits for have its time, but not in `exc`: they handle nothing, or something else. It is not taken here;
 * what was carried of a leaf whose stack is known comes with that stack (add_carried). */
static void add_awaiting_handler(struct tasks *tasks, uint32_t index, struct window *window, uint64_t now)
{
    const struct registered *task = registry_at(tasks->registry, index);
    const struct running_loop *loop = loop_of(tasks, task->loop);
    if (!loop || loop->driver == PROFILE_ROOT)
        return;
    uint64_t since = task->read_ns && task->kept_stack == PROFILE_ROOT ? task->read_ns : tasks->last_ns;
    if (!add_handler(tasks, index, loop->driver, now > since ? now - since : 0))
        window->counters.limits[LIMIT_exceptions]++;
}

static bool is_awaiting_handler(const struct tasks *tasks, const struct registered *task)
{
    return registry_exception(tasks->registry, task) && registry_awaits_task(tasks->registry, task) && registry_is_suspended(task);
}

/* --- groups at rest --- */

/* One that was woken has the stack of its group, unless it has moved on since. */
static void take_leave(struct tasks *tasks, struct registered *task)
{
    if (!task->woken_from)
        return;
    const struct rest *rest = rests_at(&tasks->rests, task->woken_from);
    if (!task->reshaped) {
        task->kept_base = rest->kept_base;
        task->kept_stack = rest->kept_stack;
    }
    task->woken_from = 0;
}

/* Chooses one of each group and finds its edges; which may wake others, who are awaited. */
static void choose_of_rests(struct tasks *tasks)
{
    for (uint32_t group = 0; (group = rests_from(&tasks->rests, group + 1));) {
        uint32_t chosen;
        while ((chosen = registry_first_at_rest(tasks->registry, group)) != NO_TASK) {
            registry_read(tasks->registry, chosen);
            if (chosen == registry_first_at_rest(tasks->registry, group))
                break;
        }
        rests_at(&tasks->rests, group)->placed = chosen;
    }
}

static void place_rests(struct tasks *tasks)
{
    const struct base *bases;
    for (uint32_t group = 0; (group = rests_from(&tasks->rests, group + 1));)
        if (rests_at(&tasks->rests, group)->placed != NO_TASK)
            lineage_of(tasks->lineage, rests_at(&tasks->rests, group)->placed, &bases);
}

/* Each for itself: what the whole group stands on has changed while it was looked at, or
 * is not known. */
static void wake_group(struct tasks *tasks, uint32_t group)
{
    uint32_t index;
    while ((index = registry_first_at_rest(tasks->registry, group)) != NO_TASK) {
        registry_wake(tasks->registry, index);
        take_leave(tasks, registry_at(tasks->registry, index));
        lineage_prove_late(tasks->lineage, index);
    }
}

/* A task of the group whose links are in memory; NO_TASK: all have moved on. */
static uint32_t linked_of(struct tasks *tasks, uint32_t group)
{
    uint32_t index;
    while ((index = registry_first_at_rest(tasks->registry, group)) != NO_TASK) {
        if (registry_need_links(tasks->registry, index))
            return index;
        registry_wake(tasks->registry, index);
        take_leave(tasks, registry_at(tasks->registry, index));
        lineage_prove_late(tasks->lineage, index);
    }
    return NO_TASK;
}

static bool stand_on(struct tasks *tasks, uint32_t group, profile_stack base)
{
    struct rest *rest = rests_at(&tasks->rests, group);
    uint32_t index = registry_first_at_rest(tasks->registry, group);
    if (index == NO_TASK)
        return false;
    if (rest->kept_stack != PROFILE_ROOT && rest->kept_base == base)
        return true;
    if (!are_known(tasks, registry_at(tasks->registry, index), &(struct base){base, 0}, 1) &&
        (index = linked_of(tasks, group)) == NO_TASK)
        return false;
    rest->kept_base = base;
    rest->kept_stack = stack_of(tasks, registry_at(tasks->registry, index), base);
    return true;
}

/* The time of all that rest there. */
static void add_rest(struct tasks *tasks, uint32_t group, struct window *window, uint64_t now)
{
    const struct base *bases;
    struct rest *rest = rests_at(&tasks->rests, group);
    const struct running_loop *loop = loop_of(tasks, rest->key.loop);
    if (!loop)
        return; /* nothing wakes them */
    if (loop->driver == PROFILE_ROOT || rest->placed == NO_TASK || !lineage_is_proven(tasks->lineage, rest->placed)) {
        wake_group(tasks, group);
        return;
    }
    uint64_t ns = now > tasks->last_ns ? now - tasks->last_ns : 0;
    uint32_t count = lineage_of(tasks->lineage, rest->placed, &bases);
    for (uint32_t i = 0; i < count; i++)
        if (!stand_on(tasks, group, bases[i].stack))
            return;
    uint32_t resting = registry_resting(tasks->registry, group);
    for (uint32_t i = 0; i < count && stand_on(tasks, group, bases[i].stack); i++)
        add_time(tasks, where_of(tasks, registry_at(tasks->registry, registry_first_at_rest(tasks->registry, group)), rest->kept_stack), ns,
                 (uint64_t)bases[i].share * resting);
    window->counters.samples += resting;
    tasks->leaves += resting;
    if (lineage_lacks_creator(tasks->lineage, rest->placed))
        window->counters.dropped[DROP_creator_unknown] += resting;
}

static void add_rests(struct tasks *tasks, struct window *window, uint64_t now)
{
    for (uint32_t group = 0; (group = rests_from(&tasks->rests, group + 1));) {
        if (registry_resting(tasks->registry, group))
            add_rest(tasks, group, window, now);
        if (!registry_resting(tasks->registry, group))
            rests_release(&tasks->rests, group);
    }
}

/* --- a second look --- */

/* Alone with those that it stands on a leaf is read within some microseconds, where
 * the round over all tasks took so long that one of them had moved on. It is a leaf
 * still if nothing of its own has changed, or if it waits for nothing but the loop. */
static void look_again(struct tasks *tasks, const struct second *second, struct window *window, uint64_t now)
{
    const struct base *bases;
    take_births(tasks);
    registry_begin_round(tasks->registry);
    lineage_begin_round(tasks->lineage, tasks->stacks);
    uint32_t index = registry_find(tasks->registry, second->task);
    if (index == NO_TASK)
        return;
    lineage_of(tasks->lineage, index, &bases);
    lineage_prove(tasks->lineage);
    registry_check_aggregate(tasks->registry, index);
    take_births(tasks);
    const struct registered *task = registry_at(tasks->registry, index);
    bool same = task->hash == second->hash && task->waiter == second->waiter;
    if (is_leaf(tasks, task) && task->order == second->order && (same || !task->waiter) &&
        lineage_is_proven(tasks->lineage, index) && add_leaf(tasks, index, window, now))
        window->counters.task_postponed--;
}

/* After the round over all, in rounds of their own. */
static void look_again_at_some(struct tasks *tasks, struct window *window, uint64_t now)
{
    for (uint32_t i = 0; i < tasks->seconds; i++)
        look_again(tasks, &tasks->second[i], window, now);
    tasks->seconds = 0;
    end_run(tasks);
}

/* --- circles --- */

/* Those that no leaf hangs from. */
static void place_circles(struct tasks *tasks)
{
    const struct base *bases;
    for (uint32_t i = 0; registry_has_awaiting(tasks->registry) && i < registry_actives(tasks->registry); i++) {
        uint32_t index = registry_active(tasks->registry, i);
        const struct registered *task = registry_at(tasks->registry, index);
        if (task->status == TASK_WAITING && registry_awaits_task(tasks->registry, task) && !lineage_is_placed(tasks->lineage, index))
            lineage_of(tasks->lineage, index, &bases);
    }
}

/* A circle of awaiters that no leaf hangs from: once, from its oldest task round to
 * the one that awaits it. */
static void add_circles(struct tasks *tasks, uint64_t now)
{
    const struct base *bases;
    for (uint32_t i = 0; i < registry_actives(tasks->registry); i++) {
        uint32_t index = registry_active(tasks->registry, i), last = lineage_cut(tasks->lineage, index);
        struct registered *oldest = registry_at(tasks->registry, index);
        if (last == NO_TASK || lineage_bears_leaf(tasks->lineage, index) || !lineage_is_proven(tasks->lineage, last) ||
            lineage_has_moved(tasks->lineage, last) || !loop_of(tasks, oldest->loop))
            continue;
        uint64_t ns = take_ns(tasks, oldest, now);
        uint32_t count = lineage_whole(tasks->lineage, last, &bases);
        for (uint32_t j = 0; j < count; j++)
            add_time(tasks, (struct where){bases[j].stack, PROFILE_ROOT}, ns, bases[j].share);
    }
}

/* --- the tick --- */

/* Tasks that end meanwhile are missed from where the reading has come to, on average
 * from half of it on; so it is in the middle that those are counted in which came
 * meanwhile. (Else short tasks would lose, or gain, half the time that it takes.) */
static void read_tasks(struct tasks *tasks, const struct tasks_thread *threads, uint32_t count, uint64_t now)
{
    uint32_t half = registry_count(tasks->registry) / 2;
    registry_read_some(tasks->registry, 0, half);
    take_births(tasks);
    if (must_list(tasks, now))
        list_tasks(tasks, threads, count, now);
    registry_read_some(tasks->registry, half, NO_TASK);
    choose_of_rests(tasks);
    take_births(tasks); /* whoever was born at the address of one that was read: which of the two was it? */
}

static void fetch(const struct tasks *tasks, uint32_t at)
{
    if (at >= registry_actives(tasks->registry))
        return;
    const struct registered *task = registry_at(tasks->registry, registry_active(tasks->registry, at));
    __builtin_prefetch(task);
    __builtin_prefetch(&task->placed);
}

static void place_all(struct tasks *tasks)
{
    const struct base *bases;
    place_rests(tasks);
    for (uint32_t i = 0; i < registry_actives(tasks->registry); i++) {
        uint32_t index = registry_active(tasks->registry, i);
        struct registered *task = registry_at(tasks->registry, index);
        fetch(tasks, i + AHEAD);
        take_leave(tasks, task);
        if (is_leaf(tasks, task))
            registry_check_aggregate(tasks->registry, index);
        if (is_leaf(tasks, task) || task->status == TASK_RUNNING)
            lineage_of(tasks->lineage, index, &bases);
    }
    lineage_end_leaves(tasks->lineage);
    place_circles(tasks);
}

/* A task that awaits another bears that one's time; after the circles, whose oldest tasks have a time to give. */
static void pass_awaiting(struct tasks *tasks, uint64_t now)
{
    for (uint32_t i = 0; i < registry_actives(tasks->registry); i++) {
        struct registered *task = registry_at(tasks->registry, registry_active(tasks->registry, i));
        if (registry_awaits_task(tasks->registry, task) && task->status != TASK_TORN)
            take_ns(tasks, task, now);
    }
}

static void add_all_time(struct tasks *tasks, struct window *window, uint64_t now)
{
    bool circles = lineage_has_circles(tasks->lineage);
    tasks->stills = tasks->leaves = 0;
    tasks->before_known = true;
    add_rests(tasks, window, now);
    count_rests(tasks);
    for (uint32_t i = 0, index; i < registry_actives(tasks->registry);) {
        struct registered *task = registry_at(tasks->registry, index = registry_active(tasks->registry, i));
        fetch(tasks, i + AHEAD);
        take_leave(tasks, task);
        bool leaf = is_leaf(tasks, task);
        if (task->status != TASK_GONE && task->status != TASK_RUNNING)
            count_in(tasks, task->loop, 1, leaf && task->status == TASK_READY);
        if (is_awaiting_handler(tasks, task))
            add_awaiting_handler(tasks, index, window, now);
        if (leaf) {
            add_or_carry(tasks, index, window, now);
        } else if (task->status == TASK_TORN) {
            window->counters.task_postponed++;
            carry(tasks, task);
        } else if (task->status == TASK_GONE) {
            add_carried(tasks, task);
        } else if (task->status == TASK_RUNNING || !circles || !registry_awaits_task(tasks->registry, task)) {
            add_carried(tasks, task);
            take_ns(tasks, task, now);
        }
        i += i < registry_actives(tasks->registry) && registry_active(tasks->registry, i) == index; /* it may rest now, and another be there */
    }
    if (circles) {
        add_circles(tasks, now);
        pass_awaiting(tasks, now);
    }
    end_run(tasks);
}

static bool is_recording(const struct tasks *tasks)
{
    return reads_tasks(tasks) && asyncios_any();
}

/* Whether no thread has run since before the last full tick began. */
static bool nothing_ran(struct tasks *tasks, const struct tasks_thread *threads, uint32_t count)
{
    uint64_t clocks = 0;
    for (uint32_t i = 0; i < count; i++)
        clocks += threads[i].cpu;
    bool same = tasks->repeatable && clocks == tasks->clocks && count == tasks->threads && tasks->options.clock_precise;
    tasks->clocks = clocks;
    tasks->threads = count;
    return same;
}

/* The leaves of the last tick, until then. */
static void go_on(struct tasks *tasks, uint64_t until)
{
    uint64_t ns = until > tasks->last_ns ? until - tasks->last_ns : 0;
    for (uint32_t i = 0; i < tasks->stills; i++)
        add_to_profile(tasks, tasks->still[i].where, (uint64_t)((__uint128_t)ns * tasks->still[i].shares / LINEAGE_ALL));
    tasks->last_ns = until;
}

static void repeat(struct tasks *tasks, struct window *window, uint64_t now)
{
    loops_go_on(tasks, window, now > tasks->last_ns ? now - tasks->last_ns : 0);
    go_on(tasks, now);
    window->counters.samples += tasks->leaves;
    window->counters.task_repeats++;
}

bool tasks_are_at_rest(const struct tasks *tasks)
{
    return !is_recording(tasks) || (tasks->at_rest && tasks->repeatable);
}

void tasks_rest(struct tasks *tasks, struct window *window, uint64_t now)
{
    if (is_recording(tasks))
        repeat(tasks, window, now);
}

static void count_losses(struct tasks *tasks, struct window *window)
{
    uint64_t lost = births_lost(), skipped = registry_skipped(tasks->registry);
    window->counters.dropped[DROP_creator_unknown] += lost - tasks->lost;
    window->counters.tasks_skipped += skipped - tasks->skipped;
    window->counters.dropped[DROP_torn_awaiter] += tasks->orphans;
    window->counters.limits[LIMIT_loops] += tasks->loops_refused;
    window->counters.limits[LIMIT_interpreters] += tasks->interpreters_refused;
    tasks->orphans = tasks->loops_refused = tasks->interpreters_refused = 0;
    tasks->lost = lost;
    tasks->skipped = skipped;
    if (registry_count(tasks->registry) > window->counters.tasks_peak)
        window->counters.tasks_peak = registry_count(tasks->registry);
}

static uint64_t least(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

void tasks_keep_to(struct tasks *tasks, uint32_t share_ppm)
{
    tasks->share_ppm = share_ppm;
}

/* What one tick alone was dear for (names that were new, memory that was cold) says
 * nothing of the next: the cheaper of the last two is what a tick takes. */
static uint64_t pause_after(struct tasks *tasks, uint64_t took)
{
    uint64_t usual = least(took, tasks->took_ns);
    tasks->took_ns = took;
    return least(usual * 1000000 / tasks->share_ppm, LONGEST_PAUSE_MS * (SECOND / 1000));
}

static void read_all(struct tasks *tasks, const struct tasks_thread *threads, uint32_t count, struct window *window, uint64_t now)
{
    uint64_t cpu = clock_self(), passed = now > tasks->last_ns ? now - tasks->last_ns : 0;
    loops_go_on(tasks, window, passed / 2); /* as the last tick found them, and half as this one does */
    if (tasks->before_known && now > tasks->last_ns)
        go_on(tasks, tasks->last_ns + (now - tasks->last_ns) / 2);
    tasks->repeatable = true;
    registry_verify(tasks->registry, least(now - tasks->read_all_ns, SECOND / VERIFIED_IN), SECOND);
    tasks->read_all_ns = now;
    registry_begin_round(tasks->registry);
    lineage_begin_round(tasks->lineage, tasks->stacks);
    read_tasks(tasks, threads, count, now);
    place_all(tasks);
    lineage_prove(tasks->lineage);
    add_all_time(tasks, window, now);
    note_peaks(tasks, window);
    loops_go_on(tasks, window, passed - passed / 2);
    count_losses(tasks, window);
    window->counters.task_ticks++;
    window->counters.task_reads += registry_count(tasks->registry);
    registry_end_round(tasks->registry);
    look_again_at_some(tasks, window, now);
    uint64_t took = clock_self() - cpu;
    window->counters.task_cpu_ns += took;
    tasks->due_ns = now + pause_after(tasks, took);
}

static void tick(struct tasks *tasks, const struct tasks_thread *threads, uint32_t count, struct stacks *stacks, struct window *window,
                 uint64_t now, bool must)
{
    if (!is_recording(tasks)) {
        tasks->last_ns = now;
        tasks->stills = 0;
        tasks->repeatable = tasks->before_known = false;
        return;
    }
    tasks->stacks = stacks;
    look_at_loops(tasks, threads, count);
    tasks->at_rest = nothing_ran(tasks, threads, count);
    if (tasks->at_rest)
        repeat(tasks, window, now);
    else if (must || now >= tasks->due_ns)
        read_all(tasks, threads, count, window, now);
    else {
        tasks->repeatable = false;
        return;
    }
    tasks->last_ns = now;
}

void tasks_tick(struct tasks *tasks, const struct tasks_thread *threads, uint32_t count, struct stacks *stacks, struct window *window,
                uint64_t now, bool must)
{
    tick(tasks, threads, count, stacks, window, now, must);
    births_release();
}

/* --- a dump --- */

/* Each is looked at for itself. */
static void wake_all(struct tasks *tasks)
{
    uint32_t index;
    for (uint32_t group = 0; (group = rests_from(&tasks->rests, group + 1));)
        while ((index = registry_first_at_rest(tasks->registry, group)) != NO_TASK) {
            registry_wake(tasks->registry, index);
            take_leave(tasks, registry_at(tasks->registry, index));
        }
}

static void dump_place_all(struct tasks *tasks, struct dump *dump)
{
    const struct base *bases;
    for (uint32_t i = 0; i < registry_actives(tasks->registry); i++) {
        uint32_t index = registry_active(tasks->registry, i);
        fetch(tasks, i + AHEAD);
        if (is_leaf(tasks, registry_at(tasks->registry, index)))
            registry_check_aggregate(tasks->registry, index);
        lineage_of(tasks->lineage, index, &bases);
        if (i % DUMP_STEP == 0 && dump_is_stopped(dump))
            return;
    }
    lineage_prove(tasks->lineage);
}

static enum dump_state dump_state_of(const struct tasks *tasks, const struct registered *task)
{
    switch (task->status) {
    case TASK_RUNNING:
        return DUMP_RUNNING;
    case TASK_READY:
        return DUMP_READY;
    case TASK_WAITING:
        return registry_awaits_task(tasks->registry, task) ? DUMP_AWAITS : DUMP_WAITING;
    default:
        return DUMP_CHANGED;
    }
}

/* Its name, if it was still that task once that was read. */
static struct dump_text dump_name(const struct tasks *tasks, const struct registered *task, struct dump *dump)
{
    const struct asyncio *asyncio = asyncios_at(task->asyncio);
    char name[TEXT_NAME_MAX];
    uintptr_t waiter, coro;
    uint32_t length = asyncio ? asyncio_name(tasks->options.target, asyncio, task->task, name, sizeof name) : 0;
    if (!length || !asyncio_waiter(tasks->options.target, asyncio, task->task, &waiter, &coro) || coro != task->coro)
        return (struct dump_text){0, 0};
    return dump_keep(dump, name, length);
}

/* The stacks of a task at rest, on all that it stands on; false: they are not known as one piece. */
static bool dump_stacks(struct tasks *tasks, uint32_t index, profile_stack *stacks, uint32_t *count)
{
    const struct base *bases;
    *count = lineage_of(tasks->lineage, index, &bases);
    struct registered *task = registry_at(tasks->registry, index);
    if (!*count || !lineage_is_proven(tasks->lineage, index) || lineage_has_moved(tasks->lineage, index) ||
        !(are_known(tasks, task, bases, *count) || registry_need_links(tasks->registry, index)))
        return false;
    for (uint32_t i = 0; i < *count; i++)
        stacks[i] = stack_of(tasks, task, bases[i].stack);
    return true;
}

/* second: it may be looked at once more, for itself. */
static void dump_one(struct tasks *tasks, uint32_t index, struct dump *dump, uint64_t now, bool second)
{
    profile_stack stacks[LINEAGE_BASES];
    struct registered *task = registry_at(tasks->registry, index);
    struct dump_task entry = {.state = (uint8_t)dump_state_of(tasks, task), .how = DUMP_UNKNOWN, .waits_ns = DUMP_NO_AGE};
    uint32_t count = 0;
    uint64_t since;
    if (task->status == TASK_GONE || task->status == TASK_UNBORN)
        return;
    bool stands = entry.state != DUMP_RUNNING && entry.state != DUMP_CHANGED;
    if (stands && dump_stacks(tasks, index, stacks, &count)) {
        entry.how = DUMP_READ;
    } else if (entry.state != DUMP_RUNNING && second && tasks->seconds < SECONDS_MOST) {
        tasks->second[tasks->seconds++] = (struct second){.task = task->task};
        return;
    } else if (stands && registry_need_links(tasks->registry, index)) {
        entry.how = DUMP_ALONE;
        stacks[0] = make_stack(tasks, task, PROFILE_ROOT);
        count = 1;
    } else if (stands) {
        entry.state = DUMP_CHANGED;
        count = 0;
    }
    if (entry.state == DUMP_WAITING && registry_waits_since(tasks->registry, index, &since) && now > since)
        entry.waits_ns = now - since;
    const struct running_loop *loop = loop_of(tasks, task->loop);
    entry.tid = loop ? dump_tid_of(dump, loop->tstate) : 0;
    entry.name = dump_name(tasks, task, dump);
    dump_add_task(dump, &entry, stacks, entry.how == DUMP_UNKNOWN ? 0 : count);
}

static void dump_second(struct tasks *tasks, uintptr_t address, struct dump *dump, uint64_t now)
{
    const struct base *bases;
    take_births(tasks);
    registry_begin_round(tasks->registry);
    lineage_begin_round(tasks->lineage, tasks->stacks);
    uint32_t index = registry_find(tasks->registry, address);
    if (index == NO_TASK)
        return;
    registry_read(tasks->registry, index);
    if (is_leaf(tasks, registry_at(tasks->registry, index)))
        registry_check_aggregate(tasks->registry, index);
    lineage_of(tasks->lineage, index, &bases);
    lineage_prove(tasks->lineage);
    dump_one(tasks, index, dump, now, false);
}

static void dump_round(struct tasks *tasks, const struct tasks_thread *threads, uint32_t count, struct dump *dump, uint64_t now)
{
    wake_all(tasks);
    registry_begin_round(tasks->registry);
    lineage_begin_round(tasks->lineage, tasks->stacks);
    read_tasks(tasks, threads, count, now);
    dump_place_all(tasks, dump);
    for (uint32_t i = 0; i < registry_actives(tasks->registry) && !dump->stopped; i++) {
        if (i % DUMP_STEP == 0 && dump_is_stopped(dump))
            return;
        if (i % DUMP_STEP == 0 && dump_is_over_time(dump)) {
            dump->tasks_left += registry_actives(tasks->registry) - i;
            return;
        }
        dump_one(tasks, registry_active(tasks->registry, i), dump, now, true);
    }
}

void tasks_dump(struct tasks *tasks, const struct tasks_thread *threads, uint32_t count, struct stacks *stacks, struct dump *dump,
                uint64_t now)
{
    dump->tasks_known = reads_tasks(tasks);
    if (!is_recording(tasks))
        return;
    tasks->stacks = stacks;
    tasks->seconds = 0;
    births_hold();
    take_births(tasks);
    look_at_loops(tasks, threads, count);
    dump_round(tasks, threads, count, dump, now);
    for (uint32_t i = 0; i < tasks->seconds && !dump_is_stopped(dump); i++)
        dump_second(tasks, tasks->second[i].task, dump, now);
    births_release();
    tasks->seconds = 0;
}

/* --- running tasks --- */

static profile_stack choose(struct tasks *tasks, const struct base *bases, uint32_t count)
{
    tasks->random = tasks->random * 6364136223846793005u + 1442695040888963407u;
    uint32_t lot = (uint32_t)(tasks->random >> 33);
    for (uint32_t i = 0; i < count; i++) {
        if (lot < bases[i].share)
            return bases[i].stack;
        lot -= bases[i].share;
    }
    return count ? bases[0].stack : PROFILE_ROOT;
}

profile_stack tasks_base(struct tasks *tasks, uintptr_t address, uint64_t births)
{
    const struct base *bases;
    if (!tasks->options.creators || !reads_tasks(tasks))
        return PROFILE_ROOT;
    take_births(tasks);
    uint32_t index = registry_find(tasks->registry, address);
    if (index == NO_TASK || registry_at(tasks->registry, index)->born > births)
        return PROFILE_ROOT;
    uint32_t count = lineage_of(tasks->lineage, index, &bases);
    return lineage_is_made(tasks->lineage, index) && lineage_is_proven(tasks->lineage, index) ? choose(tasks, bases, count) : PROFILE_ROOT;
}

void tasks_forget_stacks(struct tasks *tasks)
{
    for (int i = 0; i < LOOPS_MAX; i++)
        tasks->loop[i].driver = PROFILE_ROOT;
    for (uint32_t i = 0; i < registry_actives(tasks->registry); i++) /* the others have their group's */
        registry_at(tasks->registry, registry_active(tasks->registry, i))->kept_stack = PROFILE_ROOT;
    tasks->repeatable = tasks->before_known = false;
    tasks->stills = 0;
    memset(tasks->shape, 0, sizeof tasks->shape);
    registry_keep_names(tasks->registry);
    rests_forget_stacks(&tasks->rests);
    lineage_forget_stacks(tasks->lineage);
}
