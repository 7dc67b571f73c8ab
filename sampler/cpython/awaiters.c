/* SPDX-License-Identifier: MIT
 *
 * awaiters: a callback is recognised by the code object of its function, which is
 * compared by name once and then known by address. */
#include "sampler/cpython/awaiters.h"

#include <stdatomic.h>

#include "hooks/guard.h"
#include "sampler/cpython/objects.h"

#define ADDRESS_LOWEST 4096u
#define MEMBERS_LOOKED_AT 4096u /* of an aggregate */
#define KNOWN 64u               /* slots of the table of known functions; a power of two */
#define TUPLE_CALLBACK 0u
#define GETTERS "_getters"      /* asyncio.Queue: the deque of futures of those who wait in get() */

/* What the callback's function keeps, and how it leads on. */
enum route {
    ROUTE_NONE,      /* leads to nobody */
    ROUTE_WAKEUP,    /* a method of the awaiting task itself (tasks written in Python) */
    ROUTE_CLOSURE,   /* free variable `name`: a future ... */
    ROUTE_SELF,      /* attribute `name` of the method's object: a future ... */
    ROUTE_ARGUMENT   /* the first argument of a partial */
};

struct row {
    const char *function; /* qualified name */
    enum route route;
    const char *name;      /* variable or attribute */
    const char *attribute; /* ... or an object with this attribute; NULL: the future itself */
    bool is_queue;         /* what was found is an asyncio.Queue */
};

static const struct row rows[] = {
    {"", ROUTE_NONE, NULL, NULL, false}, /* any other function */
    {"gather.<locals>._done_callback", ROUTE_CLOSURE, "outer", NULL, false},
    {"_wait.<locals>._on_completion", ROUTE_CLOSURE, "waiter", NULL, false},
    {"shield.<locals>._inner_done_callback", ROUTE_CLOSURE, "outer", NULL, false},
    {"TaskGroup._on_task_done", ROUTE_SELF, "_on_completed_fut", NULL, false},
    {"as_completed.<locals>._on_completion", ROUTE_CLOSURE, "done", NULL, true},             /* up to 3.12 */
    {"_AsCompletedIterator._handle_completion", ROUTE_SELF, "_done", NULL, true},            /* 3.13+ */
    {"_release_waiter", ROUTE_ARGUMENT, NULL, NULL, false},                                  /* wait_for of 3.11 */
    {"staggered_race.<locals>.task_done", ROUTE_CLOSURE, "on_completed_fut", NULL, false},   /* 3.13+ */
    {"TaskGroup._spawn.<locals>.task_done", ROUTE_CLOSURE, "self", "_on_completed_fut", false}, /* anyio 4 */
    {"Task.__wakeup", ROUTE_WAKEUP, NULL, NULL, false},
};
#define ROWS (sizeof rows / sizeof rows[0])

/* --- functions that are known --- */

/* A slot holds the upper bits of a mix of the code's address and that of its name,
 * which of its free variables is the row's, and the row: one word, so that a handler
 * and the sampler may share it. A wrong hit would need both addresses again, and its
 * edge would not close; and what was read wrongly is not known so for long
 * (awaiters_forget). */
static _Atomic uint64_t known[KNOWN];

static uint64_t mix(uintptr_t code, uintptr_t name)
{
    uint64_t x = code * 0x9e3779b97f4a7c15u ^ name * 0xc4ceb9fe1a85ec53u;
    x ^= x >> 29;
    return (x * 0xbf58476d1ce4e5b9u) & ~(uint64_t)0xffff;
}

static const struct row *find_row(const struct py_target *target, uintptr_t name)
{
    for (size_t i = 1; i < ROWS; i++)
        if (containers_is_text(target, name, rows[i].function))
            return &rows[i];
    return &rows[0];
}

/* A function's row, and the number of its free variable, -1: it needs none. */
static const struct row *row_of(const struct py_target *target, uintptr_t function, int *variable)
{
    uintptr_t code = objects_pointer(function, target->layout.function_code);
    uintptr_t name = objects_pointer(code, target->layout.code_qualname);
    *variable = -1;
    if (!name)
        return &rows[0];
    uint64_t key = mix(code, name);
    _Atomic uint64_t *slot = &known[key >> 32 & (KNOWN - 1)];
    uint64_t found = atomic_load_explicit(slot, memory_order_relaxed);
    if (found && (found & ~(uint64_t)0xffff) == key) {
        *variable = (int)(found >> 8 & 0xff) - 1;
        return &rows[(found & 0xff) - 1];
    }
    const struct row *row = find_row(target, name);
    if (row->route == ROUTE_CLOSURE)
        *variable = containers_free_variable(target, code, row->name);
    if (*variable < 0xff - 1)
        atomic_store_explicit(slot, key | (uint64_t)(*variable + 1) << 8 | (uint64_t)(row - rows + 1), memory_order_relaxed);
    return row;
}

/* The name of the C function that wakes a task up is compared once. */
static _Atomic uintptr_t wakeup_def;

static bool is_wakeup(const struct py_target *target, uintptr_t builtin)
{
    uintptr_t def = objects_pointer(builtin, target->layout.cfunction_def);
    uintptr_t known_def = atomic_load_explicit(&wakeup_def, memory_order_relaxed);
    char name[sizeof "task_wakeup"];
    if (!def || def == known_def)
        return def != 0;
    uintptr_t at = objects_pointer(def, 0);
    if (at < ADDRESS_LOWEST || !guard_copy(name, at, sizeof name))
        return false;
    for (size_t i = 0; i < sizeof name; i++)
        if (name[i] != "task_wakeup"[i])
            return false;
    atomic_store_explicit(&wakeup_def, def, memory_order_relaxed);
    return true;
}

void awaiters_forget(void)
{
    for (uint32_t i = 0; i < KNOWN; i++)
        atomic_store_explicit(&known[i], 0, memory_order_relaxed);
    atomic_store_explicit(&wakeup_def, 0, memory_order_relaxed);
}

/* --- one callback --- */

/* Whether one thing more may be looked at. */
static bool may_look(struct awaiters_walk *walk)
{
    if (walk->looked == AWAITERS_CALLBACKS) {
        walk->cut = true;
        return false;
    }
    walk->looked++;
    return true;
}

static void push(struct awaiters_walk *walk, uintptr_t object)
{
    struct future future;
    if (!object || !asyncio_read(walk->target, walk->asyncio, object, &future) || future.state != FUTURE_PENDING)
        return;
    if (walk->levels == AWAITERS_LEVELS) {
        walk->cut = true;
        return;
    }
    struct awaiters_level *level = &walk->level[walk->levels++];
    *level = (struct awaiters_level){.future = object, .callback0 = future.callback0};
    if (future.callbacks)
        containers_items(walk->target, future.callbacks, &level->callbacks);
}

/* Everybody who waits in get() of this queue. */
static void push_getters(struct awaiters_walk *walk, uintptr_t queue)
{
    struct deque_walk getters;
    uintptr_t future, deque = containers_attribute(walk->target, queue, GETTERS);
    if (!deque || !containers_deque_begin(&getters, walk->target, deque))
        return;
    while (may_look(walk) && containers_deque_next(&getters, &future))
        push(walk, future);
}

static void follow(struct awaiters_walk *walk, const struct row *row, uintptr_t found)
{
    if (found && row->attribute)
        found = containers_attribute(walk->target, found, row->attribute);
    if (found && row->is_queue)
        push_getters(walk, found);
    else
        push(walk, found);
}

/* Whether this task waits for this future now. */
static bool closes(const struct awaiters_walk *walk, uintptr_t task, uintptr_t future)
{
    uintptr_t waiter, coro;
    return task && asyncio_kind(walk->target, walk->asyncio, task, &(bool){false}) == FUTURE_TASK &&
           asyncio_waiter(walk->target, walk->asyncio, task, &waiter, &coro) && waiter == future;
}

/* What the callback leads to: the task that it wakes up, or 0 after what stands
 * between was put on the walk. */
static uintptr_t take(struct awaiters_walk *walk, uintptr_t callback)
{
    const struct py_target *target = walk->target;
    const struct layout *layout = &target->layout;
    uintptr_t type = objects_pointer(callback, layout->object_type), function = callback, self = 0;
    const struct row *row;
    bool partial = false;
    int variable;

    if (type == target->cfunction_type)
        return is_wakeup(target, callback) ? objects_pointer(callback, layout->cfunction_self) : 0;
    if (type == target->method_type) {
        function = objects_pointer(callback, layout->method_function);
        self = objects_pointer(callback, layout->method_self);
    } else if (type != target->function_type) {
        partial = type && containers_type_is_named(target, type, "functools.partial");
        if (!partial)
            return 0;
        function = objects_pointer(callback, layout->partial_function);
    }
    row = row_of(target, function, &variable);
    switch (row->route) {
    case ROUTE_WAKEUP:
        return self;
    case ROUTE_CLOSURE:
        follow(walk, row, containers_closure_at(target, function, variable));
        return 0;
    case ROUTE_SELF:
        follow(walk, row, self ? containers_attribute(target, self, row->name) : 0);
        return 0;
    case ROUTE_ARGUMENT: {
        struct items arguments;
        uintptr_t tuple = objects_pointer(callback, layout->partial_args);
        if (partial && tuple && containers_items(target, tuple, &arguments))
            follow(walk, row, containers_item(&arguments, 0));
        return 0;
    }
    default:
        return 0;
    }
}

uintptr_t awaiters_between(const struct py_target *target, uintptr_t callback)
{
    int variable;
    if (objects_pointer(callback, target->layout.object_type) != target->function_type)
        return 0;
    const struct row *row = row_of(target, callback, &variable);
    return row->route == ROUTE_CLOSURE && !row->attribute && !row->is_queue ? containers_closure_at(target, callback, variable) : 0;
}

/* The object that a row's way begins with; 0: unreadable. */
static uintptr_t begin_of_route(const struct py_target *target, const struct row *row, int variable, uintptr_t callback, uintptr_t function,
                                uintptr_t self)
{
    struct items arguments;
    uintptr_t tuple;
    switch (row->route) {
    case ROUTE_CLOSURE:
        return containers_closure_at(target, function, variable);
    case ROUTE_SELF:
        return self;
    case ROUTE_ARGUMENT:
        tuple = objects_pointer(callback, target->layout.partial_args);
        return function != callback && !self && tuple && containers_items(target, tuple, &arguments) ? containers_item(&arguments, 0) : 0;
    default:
        return 0;
    }
}

bool awaiters_lead(const struct py_target *target, uintptr_t callback, struct awaiters_lead *lead)
{
    const struct layout *layout = &target->layout;
    uintptr_t type = objects_pointer(callback, layout->object_type), function = callback, self = 0;
    int variable;

    *lead = (struct awaiters_lead){0};
    if (type == target->cfunction_type) {
        if (is_wakeup(target, callback))
            *lead = (struct awaiters_lead){ROWS, true, objects_pointer(callback, layout->cfunction_self)};
        return !lead->route || lead->key;
    }
    if (type == target->method_type) {
        function = objects_pointer(callback, layout->method_function);
        self = objects_pointer(callback, layout->method_self);
    } else if (type != target->function_type) {
        if (!type || !containers_type_is_named(target, type, "functools.partial"))
            return type != 0;
        function = objects_pointer(callback, layout->partial_function);
    }
    const struct row *row = row_of(target, function, &variable);
    if (row->route == ROUTE_NONE)
        return function != 0;
    *lead = (struct awaiters_lead){(uint32_t)(row - rows), false, begin_of_route(target, row, variable, callback, function, self)};
    return lead->key != 0;
}

/* --- the walk --- */

void awaiters_begin(struct awaiters_walk *walk, const struct py_target *target, const struct asyncio *asyncio, const struct future *future)
{
    walk->target = target;
    walk->asyncio = asyncio;
    walk->levels = walk->looked = walk->turn = 0;
    walk->cut = false;
    walk->level[0] = (struct awaiters_level){.future = future->address, .callback0 = future->callback0};
    if (future->callbacks)
        containers_items(target, future->callbacks, &walk->level[0].callbacks);
    walk->levels = 1;
}

void awaiters_turn(struct awaiters_walk *walk, uint32_t turn)
{
    walk->turn = turn;
}

static uintptr_t callback_of(const struct awaiters_walk *walk, const struct awaiters_level *level, uint32_t index)
{
    struct items pair;
    uintptr_t tuple = containers_item(&level->callbacks, index);
    return tuple && containers_items(walk->target, tuple, &pair) ? containers_item(&pair, TUPLE_CALLBACK) : 0;
}

/* The next callback of the innermost level; 0 when it has no more, or enough was
 * looked at. A list that is torn may say that it is of any length. */
static uintptr_t next_callback(struct awaiters_walk *walk, struct awaiters_level *level)
{
    uint32_t first = level->callback0 != 0, count = first + level->callbacks.count;
    while (level->next < count && may_look(walk)) {
        uint32_t at = (walk->turn % count + level->next++) % count;
        uintptr_t callback = at < first ? level->callback0 : callback_of(walk, level, at - first);
        if (callback)
            return callback;
    }
    return 0;
}

bool awaiters_next(struct awaiters_walk *walk, struct awaiter *awaiter)
{
    while (walk->levels) {
        struct awaiters_level *level = &walk->level[walk->levels - 1];
        uintptr_t future = level->future, callback = next_callback(walk, level);
        if (!callback) {
            walk->levels--;
            continue;
        }
        uintptr_t task = take(walk, callback);
        if (task && closes(walk, task, future)) {
            *awaiter = (struct awaiter){task, future};
            return true;
        }
    }
    return false;
}

/* --- aggregates --- */

/* A local variable, or an attribute of the object in it, that is the set of members. */
static const struct {
    const char *function, *local, *attribute;
} aggregates[] = {
    {"_wait", "fs", NULL},
    {"TaskGroup.__aexit__", "self", "_tasks"}, /* up to 3.12 */
    {"TaskGroup._aexit", "self", "_tasks"},
};

int awaiters_aggregate(const struct py_target *target, uintptr_t qualname)
{
    for (size_t i = 0; i < sizeof aggregates / sizeof aggregates[0]; i++)
        if (containers_is_text(target, qualname, aggregates[i].function))
            return (int)i + 1;
    return 0;
}

bool awaiters_members_are_done(const struct py_target *target, const struct asyncio *asyncio, int aggregate, uintptr_t frame,
                               const struct py_code *code)
{
    struct set_walk walk;
    enum future_state state;
    uintptr_t member, set = containers_local(target, frame, code, aggregates[aggregate - 1].local);
    if (set && aggregates[aggregate - 1].attribute)
        set = containers_attribute(target, set, aggregates[aggregate - 1].attribute);
    if (!set || !containers_set_begin(&walk, target, set) || walk.slots > MEMBERS_LOOKED_AT)
        return false;
    while (containers_set_next(&walk, &member))
        if (!asyncio_state(target, asyncio, member, &state) || state == FUTURE_PENDING)
            return false;
    return walk.next == walk.slots; /* else its table could not be read */
}

bool awaiters_aggregate_is_done(const struct py_target *target, const struct asyncio *asyncio, uintptr_t future)
{
    struct items members;
    enum future_state state;
    uintptr_t type = objects_pointer(future, target->layout.object_type);
    if (!type || type == asyncio->future_type || type == asyncio->task_type || !containers_type_is_named(target, type, "_GatheringFuture"))
        return false;
    uintptr_t list = containers_attribute(target, future, "_children");
    if (!list || !containers_items(target, list, &members) || members.count > MEMBERS_LOOKED_AT)
        return false;
    for (uint32_t i = 0; i < members.count; i++)
        if (!asyncio_state(target, asyncio, containers_item(&members, i), &state) || state == FUTURE_PENDING)
            return false;
    return true;
}
