/* SPDX-License-Identifier: MIT
 *
 * asyncio: where an interpreter keeps its tasks, and what a future or task is,
 * from memory. _asyncio is never imported by us: it is found in sys.modules once
 * the application has it.
 *
 * Runs in: [handler] for what reads one object or one thread, [sampler] for the
 * search, the names and the enumeration. No allocation, bounded.
 *
 * Sources: Modules/_asynciomodule.c (FutureObj, TaskObj, module state; private
 * structs: their offsets are part of struct layout, and tp_basicsize is compared
 * before anything is believed), Lib/asyncio/{futures,tasks,events}.py,
 * Lib/_weakrefset.py, Include/internal/pycore_tstate.h and pycore_interp.h.
 */
#ifndef APROF_SAMPLER_CPYTHON_ASYNCIO_H
#define APROF_SAMPLER_CPYTHON_ASYNCIO_H

#include <stdbool.h>
#include <stdint.h>

#include "sampler/cpython/containers.h"
#include "sampler/cpython/target.h"

#define ASYNCIO_SETS 4
#define ASYNCIO_NAMES_MAX 6

/* A dict in which a few names are looked for. Every entry is looked at once; then
 * a look costs the dict's head and the entries that names were found in. */
struct asyncio_names {
    uintptr_t entries;                   /* of the keys object: another one is looked at anew */
    uint32_t looked_at;
    uint32_t entry[ASYNCIO_NAMES_MAX];   /* its number + 1; 0: the name is not there */
    uintptr_t value[ASYNCIO_NAMES_MAX];  /* the last that was there, also when it is gone now */
};

/* What one interpreter's asyncio consists of. 0: it has none of that. */
struct asyncio {
    uintptr_t interp;
    uintptr_t module;         /* _asyncio */
    uintptr_t task_type, future_type; /* of _asyncio; those that the package asyncio uses, should there be others */
    uintptr_t py_task_type, py_future_type; /* asyncio.tasks._PyTask, asyncio.futures._PyFuture */
    uintptr_t current_tasks[2]; /* dicts {loop: task}: of _asyncio and, if another, of asyncio.tasks; 3.14+: only the
                                   pure-Python one matters, the C one stays empty */
    uintptr_t set[ASYNCIO_SETS]; /* WeakSets and sets that tasks are registered in; the first that is 0 ends them */
    struct asyncio_names modules, of_c, of_tasks, of_futures; /* sys.modules and three modules' dicts, as last looked at */
};

/* --- finding it: [sampler] --- */

/* A search over sys.modules that costs next to nothing while nothing was added:
 * it goes on where it stopped. Zeroed at the start of an interpreter's life. */
struct asyncio_search {
    uintptr_t interp;
    struct asyncio_names modules;
    bool mismatch;        /* found, and its types are not of the size they must be: tasks stay off */
    char found[64];       /* what was found instead, for the one line: "Task has 180 bytes, not 168" */
};

/* True once _asyncio is there and its types are what they must be; found is then
 * complete but for what asyncio itself has not defined yet (call again later:
 * asyncio_complete). Called once a tick until then. */
bool asyncio_find(struct asyncio_search *search, const struct py_target *target, uintptr_t interp, struct asyncio *found);
/* Whether the package asyncio is being imported: _asyncio will be there in a few milliseconds. */
bool asyncio_is_coming(const struct asyncio_search *search);
/* Looks again for the parts that only the package asyncio defines (tasks._PyTask,
 * the WeakSets of the Python module), and follows modules that were reloaded or
 * replaced in sys.modules; a part that is gone stays as it was, for what was made
 * with it may live on. True when anything changed. Some 60 reads: once a tick at most. */
bool asyncio_complete(const struct py_target *target, struct asyncio *asyncio);

/* --- a future or task --- */

enum future_kind { FUTURE_NONE, FUTURE_PLAIN, FUTURE_TASK };
enum future_state { FUTURE_PENDING, FUTURE_CANCELLED, FUTURE_FINISHED };

struct future {
    enum future_kind kind;
    bool python;         /* written in Python: its parts were attributes */
    enum future_state state;
    uintptr_t address, type, loop;
    uintptr_t callback0; /* C objects: the first callback; 0 for Python ones */
    uintptr_t callbacks; /* list of (callback, context), or 0 */
    uintptr_t awaited_by; /* 3.14+: an object or a set, 0: none; before: 0 */
    bool awaited_by_is_set;
    /* tasks */
    uintptr_t waiter;    /* _fut_waiter */
    uintptr_t coro;      /* what the task was made of: a coroutine as a rule */
};

/* What kind of future an object is, by its type or a base of it: [handler]. */
enum future_kind asyncio_kind(const struct py_target *target, const struct asyncio *asyncio, uintptr_t object, bool *python);
/* False: not a future, unreadable or absurd; nor is one that was made but never
 * initialised, or is being deallocated (it has no loop). Reads words, not whole objects. */
bool asyncio_read(const struct py_target *target, const struct asyncio *asyncio, uintptr_t object, struct future *future);
/* Only the state; C objects: two or three reads. */
bool asyncio_state(const struct py_target *target, const struct asyncio *asyncio, uintptr_t object, enum future_state *state);
/* Only a task's _fut_waiter and _coro; C objects: a read each. */
bool asyncio_waiter(const struct py_target *target, const struct asyncio *asyncio, uintptr_t task, uintptr_t *waiter, uintptr_t *coro);
/* [sampler] A task's name as text ("Task-12" for one that was never asked for it);
 * writes at most size bytes (TEXT_NAME_MAX is always enough), escaped as
 * sampler/text.h does; of very long ones only the beginning is read. The length;
 * 0: unreadable. */
uint32_t asyncio_name(const struct py_target *target, const struct asyncio *asyncio, uintptr_t task, char *name, uint32_t size);

/* [handler] The same with its digits folded (text_fold_begin): at most TEXT_FOLDED_MAX bytes.
 * Read while the task keeps this name; 0: unreadable, or it has another one now. */
uint32_t asyncio_folded_name(const struct py_target *target, const struct asyncio *asyncio, uintptr_t task, char *name);

/* [handler] The context that the task's steps run in (sampler/cpython/contexts.h); 0: unreadable. */
uintptr_t asyncio_context(const struct py_target *target, const struct asyncio *asyncio, uintptr_t task);

/* --- a thread --- */

/* The loop that this thread state runs now; 0: none. A forked child runs none: with
 * 3.11 the pid beside the loop tells (compared here), later versions forget the
 * loop in a handler of os.fork (asyncio.events.on_fork), a moment after the fork. */
uintptr_t asyncio_running_loop(const struct py_target *target, uintptr_t tstate);
/* The tasks whose steps this interpreter's threads execute now: fills at most max,
 * returns how many. 3.14+: the thread's own and those of the pure-Python dict;
 * before: those of all running loops. This thread's come first, be there as many
 * others as may. Not forgotten by a forked child. */
uint32_t asyncio_current(const struct py_target *target, const struct asyncio *asyncio, uintptr_t tstate, uintptr_t *tasks, uint32_t max);

/* --- all tasks: [sampler] --- */

/* The places that hold tasks: one walk each. */
struct tasks_walk {
    const struct py_target *target;
    const struct asyncio *asyncio;
    uintptr_t head, node;   /* an llist of 3.14+ */
    struct set_walk set;    /* else, of weak references or of tasks */
    bool weak;
    uint32_t taken;
    bool broken;            /* the list was being changed: it is not complete */
};
/* 3.14+: the list of a thread state, and that of the interpreter (tasks of threads
 * that are gone). False: this version has none, or there is no list at that place
 * (where an interpreter has it depends on the patch release). */
bool asyncio_tasks_of_thread(struct tasks_walk *walk, const struct py_target *target, const struct asyncio *asyncio, uintptr_t tstate);
bool asyncio_tasks_of_interp(struct tasks_walk *walk, const struct py_target *target, const struct asyncio *asyncio);
/* asyncio->set[index]: a WeakSet (its `data` is looked up anew) or a plain set.
 * Tasks that are done stay in them until they are collected. False: no such set. */
bool asyncio_tasks_of_set(struct tasks_walk *walk, const struct py_target *target, const struct asyncio *asyncio, uint32_t index);
/* The next object of a task's type: the caller reads it with asyncio_read before
 * it believes the rest. Dead references and what is no task are left out of sets;
 * in a list they are a sign that it is broken. */
bool asyncio_tasks_next(struct tasks_walk *walk, uintptr_t *task);

#endif
