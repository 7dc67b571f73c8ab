/* SPDX-License-Identifier: MIT
 *
 * asyncio: sys.modules and three modules' dicts are looked at name by name, each
 * entry once; what was found is then watched where it stands. A future is read word
 * by word, one that is written in Python attribute by attribute. */
#include "sampler/cpython/asyncio.h"

#include <stddef.h> /* offsetof */
#include <string.h> /* memcmp */

#include "hooks/guard.h"
#include "hooks/log.h"
#include "hooks/raw.h"
#include "sampler/cpython/objects.h"
#include "sampler/text.h"

#define ADDRESS_LOWEST 4096u
#define ADDRESS_END (1ul << 47)
#define BASES_MAX 16
#define LOOPS_LOOKED_AT 1024 /* of a dict of current tasks, running or not any more */
#define MODULE_NAMES_MAX (1u << 16) /* of sys.modules and of a module */
#define FLAG_TYPE_SUBCLASS (1ul << 31)
#define WORD ((uintptr_t)sizeof(uint64_t))

/* What is looked for in sys.modules and in the modules. The names of _asyncio and
 * asyncio.tasks stand at the same numbers. */
enum { MODULE_C, MODULE_TASKS, MODULE_FUTURES, MODULE_PACKAGE };
enum { CURRENT_TASKS, FIRST_SET, AFTER_LAST_SET = FIRST_SET + 3, C_TASK = AFTER_LAST_SET, C_FUTURE, PY_TASK = C_FUTURE };
enum { OF_FUTURES_C, OF_FUTURES_PY };

typedef const char *const names_list[ASYNCIO_NAMES_MAX];
static names_list names_of_modules = {"_asyncio", "asyncio.tasks", "asyncio.futures", "asyncio"};
static names_list names_of_c = {"_current_tasks", "_all_tasks", "_scheduled_tasks", "_eager_tasks", "Task", "Future"};
static names_list names_of_tasks = {"_current_tasks", "_all_tasks", "_scheduled_tasks", "_eager_tasks", "_CTask", "_PyTask"};
static names_list names_of_futures = {"_CFuture", "_PyFuture"};

static bool may_be_object(uintptr_t address)
{
    return address >= ADDRESS_LOWEST && address < ADDRESS_END && address % WORD == 0;
}

static bool read_word(uintptr_t base, int32_t offset, uintptr_t *value)
{
    uint64_t word;
    if (!may_be_object(base) || !guard_word(base + (uintptr_t)(intptr_t)offset, &word))
        return false;
    *value = (uintptr_t)word;
    return true;
}

/* An object or nothing. */
static bool read_pointer(uintptr_t base, int32_t offset, uintptr_t *pointer)
{
    return read_word(base, offset, pointer) && (!*pointer || may_be_object(*pointer));
}

static bool is_none(const struct py_target *target, uintptr_t object)
{
    uintptr_t type;
    return read_word(object, target->layout.object_type, &type) && containers_type_is_named(target, type, "NoneType");
}

static bool type_has_flag(const struct py_target *target, uintptr_t object, uint64_t flag)
{
    uintptr_t type, flags;
    return read_word(object, target->layout.object_type, &type) && read_word(type, target->layout.type_flags, &flags) && (flags & flag);
}

/* --- finding it --- */

static void look_at_new_entries(struct asyncio_names *seen, struct dict_walk *walk, const struct py_target *target, names_list names)
{
    uintptr_t key, value;

    walk->next = seen->looked_at;
    while (containers_dict_next(walk, &key, &value))
        for (int i = 0; i < ASYNCIO_NAMES_MAX && names[i]; i++)
            if (containers_is_text(target, key, names[i]))
                seen->entry[i] = walk->next;
    seen->looked_at = walk->count;
}

/* What stands in the entry that a name was found in; 0: it was deleted. (A name
 * that is set again gets an entry of its own, behind.) */
static uintptr_t value_of_entry(struct dict_walk *walk, uint32_t entry)
{
    uintptr_t key, value;

    if (!entry)
        return 0;
    walk->next = entry - 1;
    return containers_dict_next(walk, &key, &value) && walk->next == entry ? value : 0;
}

/* False: not a dict. */
static bool look(struct asyncio_names *seen, const struct py_target *target, uintptr_t dict, names_list names)
{
    struct dict_walk walk;

    if (!containers_dict_begin(&walk, target, dict))
        return false;
    containers_dict_bound(&walk, MODULE_NAMES_MAX);
    if (seen->entries != walk.entries || walk.count < seen->looked_at) {
        memset(seen->entry, 0, sizeof seen->entry);
        seen->looked_at = 0;
        seen->entries = walk.entries;
    }
    if (seen->looked_at < walk.count)
        look_at_new_entries(seen, &walk, target, names);
    for (int i = 0; i < ASYNCIO_NAMES_MAX && names[i]; i++) {
        uintptr_t value = value_of_entry(&walk, seen->entry[i]);
        if (value)
            seen->value[i] = value;
        else
            seen->entry[i] = 0;
    }
    return true;
}

static bool look_at_modules(struct asyncio_names *seen, const struct py_target *target, uintptr_t interp)
{
    uintptr_t modules;
    return read_word(interp, target->layout.interp_modules, &modules) && look(seen, target, modules, names_of_modules);
}

/* sys.modules may hold anything: None forbids an import. */
static bool is_module(const struct py_target *target, uintptr_t object)
{
    uintptr_t type;

    if (!read_word(object, target->layout.object_type, &type))
        return false;
    for (int i = 0; i < BASES_MAX && may_be_object(type); i++) {
        if (containers_type_is_named(target, type, "module"))
            return true;
        if (!read_word(type, target->layout.type_base, &type))
            return false;
    }
    return false;
}

/* PyModuleObject's md_dict is the word behind the head (Include/internal/pycore_moduleobject.h). */
static void look_into_module(struct asyncio_names *seen, const struct py_target *target, const struct asyncio_names *modules, int module,
                             names_list names)
{
    uintptr_t dict;
    if (modules->entry[module] && is_module(target, modules->value[module]) &&
        read_word(modules->value[module], target->layout.object_type + (int32_t)WORD, &dict))
        look(seen, target, dict, names);
}

static bool is_type_named(const struct py_target *target, uintptr_t type, const char *name)
{
    return type && type_has_flag(target, type, FLAG_TYPE_SUBCLASS) && containers_type_is_named(target, type, name);
}

/* complaint may be NULL. A type that is not there yet is no mismatch. */
static bool is_c_type(const struct py_target *target, uintptr_t type, const char *name, int32_t must_have, struct asyncio_search *complaint)
{
    const char *short_name = name + sizeof "_asyncio"; /* behind the dot */
    uintptr_t size = 0;

    if (!type)
        return false;
    bool named = is_type_named(target, type, name) && read_word(type, target->layout.type_basicsize, &size);
    if (named && size == (uintptr_t)must_have)
        return true;
    if (complaint && named)
        log_format(complaint->found, sizeof complaint->found, "%s has %lu bytes, not %d", short_name, size, must_have);
    else if (complaint)
        log_format(complaint->found, sizeof complaint->found, "%s is another object", short_name);
    if (complaint)
        complaint->mismatch = true;
    return false;
}

static bool is_task_type(const struct py_target *target, uintptr_t type, struct asyncio_search *complaint)
{
    return is_c_type(target, type, "_asyncio.Task", target->layout.task_size, complaint);
}

static bool is_future_type(const struct py_target *target, uintptr_t type, struct asyncio_search *complaint)
{
    return is_c_type(target, type, "_asyncio.Future", target->layout.future_size, complaint);
}

/* Both or none: those of a second _asyncio are not those that asyncio.tasks makes
 * its tasks of. */
static void take_c_types(struct asyncio *asyncio, const struct py_target *target, uintptr_t task, uintptr_t future)
{
    if (task == asyncio->task_type && future == asyncio->future_type)
        return;
    if (!is_task_type(target, task, NULL) || !is_future_type(target, future, NULL))
        return;
    asyncio->task_type = task;
    asyncio->future_type = future;
}

static void take_py_type(uintptr_t *type, const struct py_target *target, uintptr_t candidate, const char *name)
{
    if (candidate != *type && is_type_named(target, candidate, name))
        *type = candidate;
}

static void take_set(struct asyncio *asyncio, uintptr_t set)
{
    int i = 0;

    if (!set)
        return;
    while (i < ASYNCIO_SETS && asyncio->set[i] && asyncio->set[i] != set)
        i++;
    if (i < ASYNCIO_SETS)
        asyncio->set[i] = set;
}

static void take_sets(struct asyncio *asyncio)
{
    memset(asyncio->set, 0, sizeof asyncio->set);
    for (int i = FIRST_SET; i < AFTER_LAST_SET; i++) {
        take_set(asyncio, asyncio->of_c.value[i]);
        take_set(asyncio, asyncio->of_tasks.value[i]);
    }
}

/* From asyncio->modules, which was just looked at. */
static void take_parts(struct asyncio *asyncio, const struct py_target *target)
{
    struct asyncio_names *c = &asyncio->of_c, *tasks = &asyncio->of_tasks, *futures = &asyncio->of_futures;

    look_into_module(c, target, &asyncio->modules, MODULE_C, names_of_c);
    look_into_module(tasks, target, &asyncio->modules, MODULE_TASKS, names_of_tasks);
    look_into_module(futures, target, &asyncio->modules, MODULE_FUTURES, names_of_futures);
    asyncio->module = asyncio->modules.value[MODULE_C];
    if (tasks->value[C_TASK] && futures->value[OF_FUTURES_C])
        take_c_types(asyncio, target, tasks->value[C_TASK], futures->value[OF_FUTURES_C]);
    else
        take_c_types(asyncio, target, c->value[C_TASK], c->value[C_FUTURE]);
    take_py_type(&asyncio->py_task_type, target, tasks->value[PY_TASK], "Task");
    take_py_type(&asyncio->py_future_type, target, futures->value[OF_FUTURES_PY], "Future");
    asyncio->current_tasks[0] = c->value[CURRENT_TASKS];
    asyncio->current_tasks[1] = tasks->value[CURRENT_TASKS] != c->value[CURRENT_TASKS] ? tasks->value[CURRENT_TASKS] : 0;
    take_sets(asyncio);
}

bool asyncio_find(struct asyncio_search *search, const struct py_target *target, uintptr_t interp, struct asyncio *found)
{
    if (search->interp != interp)
        *search = (struct asyncio_search){.interp = interp};
    if (search->mismatch || !look_at_modules(&search->modules, target, interp) || !search->modules.entry[MODULE_C])
        return false;
    *found = (struct asyncio){.interp = interp, .modules = search->modules};
    look_into_module(&found->of_c, target, &found->modules, MODULE_C, names_of_c);
    if (!is_task_type(target, found->of_c.value[C_TASK], search) || !is_future_type(target, found->of_c.value[C_FUTURE], search))
        return false;
    take_parts(found, target);
    return found->task_type != 0;
}

bool asyncio_is_coming(const struct asyncio_search *search)
{
    return search->modules.entry[MODULE_PACKAGE] && !search->mismatch;
}

bool asyncio_complete(const struct py_target *target, struct asyncio *asyncio)
{
    struct asyncio before = *asyncio;

    if (!look_at_modules(&asyncio->modules, target, asyncio->interp))
        return false;
    take_parts(asyncio, target);
    return memcmp(asyncio, &before, offsetof(struct asyncio, modules)) != 0;
}

/* --- a future or task --- */

enum future_kind asyncio_kind(const struct py_target *target, const struct asyncio *asyncio, uintptr_t object, bool *python)
{
    uintptr_t type;

    *python = false;
    if (!read_word(object, target->layout.object_type, &type))
        return FUTURE_NONE;
    for (int i = 0; i < BASES_MAX && may_be_object(type); i++) {
        if (type == asyncio->task_type)
            return FUTURE_TASK;
        if (type == asyncio->future_type)
            return FUTURE_PLAIN;
        *python = type == asyncio->py_task_type || type == asyncio->py_future_type;
        if (*python)
            return type == asyncio->py_task_type ? FUTURE_TASK : FUTURE_PLAIN;
        if (!read_word(type, target->layout.type_base, &type))
            return FUTURE_NONE;
    }
    return FUTURE_NONE;
}

static bool read_c_state(const struct py_target *target, uintptr_t object, enum future_state *state)
{
    uint32_t value;
    if (!guard_copy(&value, object + (uintptr_t)target->layout.future_state, sizeof value) || value > FUTURE_FINISHED)
        return false;
    *state = (enum future_state)value;
    return true;
}

/* False: there is no such attribute, or it cannot be read. None is 0. */
static bool read_attribute(const struct py_target *target, uintptr_t object, const char *name, uintptr_t *value)
{
    *value = containers_attribute(target, object, name);
    if (!*value)
        return false;
    if (is_none(target, *value))
        *value = 0;
    return true;
}

/* PENDING is the class's until another state is set. */
static bool read_py_state(const struct py_target *target, uintptr_t object, enum future_state *state)
{
    static const char *const names[] = {[FUTURE_PENDING] = "PENDING", [FUTURE_CANCELLED] = "CANCELLED", [FUTURE_FINISHED] = "FINISHED"};
    uintptr_t text = containers_attribute(target, object, "_state");

    *state = FUTURE_PENDING;
    for (int i = FUTURE_PENDING; text && i <= FUTURE_FINISHED; i++)
        if (containers_is_text(target, text, names[i])) {
            *state = (enum future_state)i;
            return true;
        }
    return !text;
}

static bool read_awaited_by(const struct layout *layout, struct future *future)
{
    uint8_t is_set;

    if (layout->future_awaited_by == LAYOUT_NONE)
        return true;
    if (!read_pointer(future->address, layout->future_awaited_by, &future->awaited_by) ||
        !guard_copy(&is_set, future->address + (uintptr_t)layout->future_awaited_by_is_set, 1) || is_set > 1)
        return false;
    future->awaited_by_is_set = is_set && future->awaited_by;
    return true;
}

static inline __attribute__((always_inline)) bool read_c_waiter(const struct py_target *target, uintptr_t task, uintptr_t *waiter, uintptr_t *coro)
{
    return read_pointer(task, target->layout.task_waiter, waiter) && read_pointer(task, target->layout.task_coro, coro);
}

/* Inlined: gcc would call one of the two through a pointer, which no handler may. */
static inline __attribute__((always_inline)) bool read_c(const struct py_target *target, struct future *future)
{
    const struct layout *layout = &target->layout;
    uintptr_t object = future->address;

    if (!read_c_state(target, object, &future->state) || !read_pointer(object, layout->future_loop, &future->loop) ||
        !read_pointer(object, layout->future_callback0, &future->callback0) ||
        !read_pointer(object, layout->future_callbacks, &future->callbacks) || !read_awaited_by(layout, future))
        return false;
    return future->kind != FUTURE_TASK || read_c_waiter(target, object, &future->waiter, &future->coro);
}

static bool read_py_waiter(const struct py_target *target, uintptr_t task, uintptr_t *waiter, uintptr_t *coro)
{
    return read_attribute(target, task, "_fut_waiter", waiter) && read_attribute(target, task, "_coro", coro);
}

static bool read_py(const struct py_target *target, struct future *future)
{
    uintptr_t object = future->address;

    if (!read_py_state(target, object, &future->state) || !read_attribute(target, object, "_loop", &future->loop) ||
        !read_attribute(target, object, "_callbacks", &future->callbacks))
        return false;
    if (read_attribute(target, object, "_Future__asyncio_awaited_by", &future->awaited_by)) /* the class's None until then */
        future->awaited_by_is_set = future->awaited_by != 0;
    return future->kind != FUTURE_TASK || read_py_waiter(target, object, &future->waiter, &future->coro);
}

bool asyncio_read(const struct py_target *target, const struct asyncio *asyncio, uintptr_t object, struct future *future)
{
    *future = (struct future){.address = object};
    future->kind = asyncio_kind(target, asyncio, object, &future->python);
    if (future->kind == FUTURE_NONE || !read_word(object, target->layout.object_type, &future->type))
        return false;
    bool read = future->python ? read_py(target, future) : read_c(target, future);
    return read && future->loop;
}

bool asyncio_state(const struct py_target *target, const struct asyncio *asyncio, uintptr_t object, enum future_state *state)
{
    bool python;
    if (asyncio_kind(target, asyncio, object, &python) == FUTURE_NONE)
        return false;
    return python ? read_py_state(target, object, state) : read_c_state(target, object, state);
}

bool asyncio_waiter(const struct py_target *target, const struct asyncio *asyncio, uintptr_t task, uintptr_t *waiter, uintptr_t *coro)
{
    bool python;

    if (asyncio_kind(target, asyncio, task, &python) != FUTURE_TASK)
        return false;
    return python ? read_py_waiter(target, task, waiter, coro) : read_c_waiter(target, task, waiter, coro);
}

uintptr_t asyncio_context(const struct py_target *target, const struct asyncio *asyncio, uintptr_t task)
{
    uintptr_t context;
    bool python;
    if (asyncio_kind(target, asyncio, task, &python) != FUTURE_TASK)
        return 0;
    if (python)
        return containers_attribute(target, task, "_context");
    return read_pointer(task, target->layout.task_context, &context) ? context : 0;
}

/* A str, or the number of a task that was never asked for its name: of 3.12 on. 0: no task. */
static uintptr_t name_object(const struct py_target *target, const struct asyncio *asyncio, uintptr_t task)
{
    uintptr_t object;
    bool python;
    if (asyncio_kind(target, asyncio, task, &python) != FUTURE_TASK)
        return 0;
    if (python)
        return containers_attribute(target, task, "_name");
    return read_pointer(task, target->layout.task_name, &object) ? object : 0;
}

static bool is_number(const struct py_target *target, uintptr_t object, uint64_t *number)
{
    return target->layout.long_is_tagged && objects_number(target, object, number);
}

uint32_t asyncio_name(const struct py_target *target, const struct asyncio *asyncio, uintptr_t task, char *name, uint32_t size)
{
    uintptr_t object = name_object(target, asyncio, task);
    struct py_str str;
    uint64_t number;
    char text[32];

    if (objects_str(target, object, &str))
        return objects_text(&str, name, size);
    if (!is_number(target, object, &number))
        return 0;
    return (uint32_t)text_name(name, size, text, log_format(text, sizeof text, "Task-%lu", number), 1);
}

uint32_t asyncio_folded_name(const struct py_target *target, const struct asyncio *asyncio, uintptr_t task, char *name)
{
    static const char unnamed[] = "Task-*";
    uintptr_t object = name_object(target, asyncio, task);
    uint32_t length = 0;
    struct py_str str;
    uint64_t number;

    if (objects_str(target, object, &str)) {
        length = objects_short(&str, name, true);
    } else if (is_number(target, object, &number)) {
        length = sizeof unnamed - 1;
        memcpy(name, unnamed, length);
    }
    return name_object(target, asyncio, task) == object ? length : 0;
}

/* --- a thread --- */

/* 3.11 keeps {loop, pid} in an object of its own: after a fork the pid is another. */
static uintptr_t loop_of_holder(const struct py_target *target, uintptr_t holder)
{
    int32_t behind_head = target->layout.object_type + (int32_t)WORD;
    uintptr_t type, loop;
    int32_t pid;

    if (!read_word(holder, target->layout.object_type, &type) || !containers_type_is_named(target, type, "_RunningLoopHolder"))
        return holder;
    if (!read_pointer(holder, behind_head, &loop) || !guard_copy(&pid, holder + (uintptr_t)behind_head + WORD, sizeof pid))
        return 0;
    return pid == raw0(SYS_getpid) ? loop : 0;
}

uintptr_t asyncio_running_loop(const struct py_target *target, uintptr_t tstate)
{
    const struct layout *layout = &target->layout;
    uintptr_t loop = 0, dict;

    if (layout->thread_running_loop != LAYOUT_NONE) {
        if (!read_pointer(tstate, layout->thread_running_loop, &loop))
            return 0;
    } else if (read_pointer(tstate, layout->thread_dict, &dict) && dict) {
        loop = loop_of_holder(target, containers_dict_get(target, dict, "__asyncio_running_event_loop__"));
    }
    return is_none(target, loop) ? 0 : loop;
}

/* The task of this loop in a dict {loop: task}; 0: none. */
static uintptr_t task_of_loop(const struct py_target *target, uintptr_t dict, uintptr_t loop)
{
    struct dict_walk walk;
    uintptr_t key, task;

    if (!loop || !containers_dict_begin(&walk, target, dict))
        return 0;
    containers_dict_bound(&walk, LOOPS_LOOKED_AT);
    while (containers_dict_next(&walk, &key, &task))
        if (key == loop)
            return task;
    return 0;
}

uint32_t asyncio_current(const struct py_target *target, const struct asyncio *asyncio, uintptr_t tstate, uintptr_t *tasks, uint32_t max)
{
    uintptr_t loop, task, own = asyncio_running_loop(target, tstate);
    struct dict_walk walk;
    uint32_t count = 0;

    if (max && target->layout.thread_running_task != LAYOUT_NONE && read_pointer(tstate, target->layout.thread_running_task, &task) && task)
        tasks[count++] = task;
    for (int i = 0; i < 2; i++)
        if (count < max && asyncio->current_tasks[i] && (task = task_of_loop(target, asyncio->current_tasks[i], own)))
            tasks[count++] = task;
    for (int i = 0; i < 2; i++) {
        if (!asyncio->current_tasks[i] || !containers_dict_begin(&walk, target, asyncio->current_tasks[i]))
            continue;
        containers_dict_bound(&walk, LOOPS_LOOKED_AT);
        while (count < max && containers_dict_next(&walk, &loop, &task))
            if (loop != own)
                tasks[count++] = task;
    }
    return count;
}

/* --- all tasks --- */

/* struct llist_node { next, prev } (Include/internal/pycore_llist.h), circular
 * through its head. */
static bool read_next(uintptr_t node, uintptr_t *next)
{
    uintptr_t back;
    return read_word(node, 0, next) && read_word(*next, (int32_t)WORD, &back) && back == node;
}

static bool list_begin(struct tasks_walk *walk, const struct py_target *target, const struct asyncio *asyncio, uintptr_t base, int32_t offset)
{
    if (offset == LAYOUT_NONE || !may_be_object(base))
        return false;
    *walk = (struct tasks_walk){.target = target, .asyncio = asyncio, .head = base + (uintptr_t)offset};
    return true;
}

/* A thread state that ends has a list no more; one that is being changed is broken. */
bool asyncio_tasks_of_thread(struct tasks_walk *walk, const struct py_target *target, const struct asyncio *asyncio, uintptr_t tstate)
{
    if (!list_begin(walk, target, asyncio, tstate, target->layout.thread_tasks))
        return false;
    walk->broken = !read_next(walk->head, &walk->node);
    return true;
}

bool asyncio_tasks_of_interp(struct tasks_walk *walk, const struct py_target *target, const struct asyncio *asyncio)
{
    return list_begin(walk, target, asyncio, asyncio->interp, target->layout.interp_tasks) && read_next(walk->head, &walk->node);
}

bool asyncio_tasks_of_set(struct tasks_walk *walk, const struct py_target *target, const struct asyncio *asyncio, uint32_t index)
{
    *walk = (struct tasks_walk){.target = target, .asyncio = asyncio};
    if (index >= ASYNCIO_SETS || !asyncio->set[index])
        return false;
    if (containers_set_begin(&walk->set, target, asyncio->set[index]))
        return true;
    walk->weak = true;
    return containers_set_begin(&walk->set, target, containers_attribute(target, asyncio->set[index], "data"));
}

static bool is_task(const struct tasks_walk *walk, uintptr_t object)
{
    bool python;
    return asyncio_kind(walk->target, walk->asyncio, object, &python) == FUTURE_TASK;
}

/* The neighbour is read and proven before the task is given away: the caller may
 * come back later. */
static bool next_of_list(struct tasks_walk *walk, uintptr_t *task)
{
    if (walk->broken || walk->node == walk->head)
        return false;
    *task = walk->node - (uintptr_t)walk->target->layout.task_node;
    walk->broken = walk->taken++ == CONTAINERS_ITEMS_MAX || !is_task(walk, *task) || !read_next(walk->node, &walk->node);
    return !walk->broken;
}

static bool next_of_set(struct tasks_walk *walk, uintptr_t *task)
{
    uintptr_t key;

    while (containers_set_next(&walk->set, &key)) {
        *task = key;
        if (walk->weak && !read_word(key, walk->target->layout.weakref_object, task))
            continue;
        if (is_task(walk, *task)) {
            walk->taken++;
            return true;
        }
    }
    return false;
}

bool asyncio_tasks_next(struct tasks_walk *walk, uintptr_t *task)
{
    return walk->head ? next_of_list(walk, task) : next_of_set(walk, task);
}
