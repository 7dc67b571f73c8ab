/* SPDX-License-Identifier: MIT
 *
 * states: interpreters and thread states as linked lists in foreign memory. The
 * lists change while they are walked: every pointer goes through the guard, both
 * counts are bounded, and a state whose interpreter pointer is another's is not
 * believed. */
#include "sampler/cpython/states.h"

#include "hooks/guard.h"
#include "hooks/task.h"

/* glibc's and musl's sem_t both begin with the 32-bit value; glibc keeps the
 * number of waiters in the upper half of the same word. */
#define SEMAPHORE_VALUE(word) ((uint32_t)(word) & 0x7fffffffu)

enum { FORKING_LOOK = 64 }; /* newest thread states looked at for the one that forked */

/* The thread that is left of a fork: what its states show as its id, and what it is. */
static struct {
    uintptr_t pthread;
    pid_t shown, tid;
} forked;

static pid_t tid_shown(uint64_t native_id, uintptr_t pthread)
{
    if (native_id == (uint64_t)forked.shown && pthread == forked.pthread && forked.shown)
        return forked.tid;
    return native_id <= INT32_MAX ? (pid_t)native_id : 0;
}

static bool read_pointer(uintptr_t base, int32_t offset, uintptr_t *pointer)
{
    uint64_t word;
    if (offset == LAYOUT_NONE || !base || !guard_word(base + (uintptr_t)offset, &word))
        return false;
    *pointer = (uintptr_t)word;
    return true;
}

static bool read_int(uintptr_t base, int32_t offset, int32_t *value)
{
    return offset != LAYOUT_NONE && base && guard_copy(value, base + (uintptr_t)offset, sizeof *value);
}

/* 3.11: dies with the thread; nothing marks it before. */
static bool read_status(const struct layout *layout, uintptr_t address, uint32_t *status)
{
    *status = 0;
    return layout->thread_status == LAYOUT_NONE || read_int(address, layout->thread_status, (int32_t *)status);
}

/* Finalised runtimes keep the finalizing pointer until they are started again,
 * but have no interpreter any more. */
enum runtime_phase states_phase(const struct py_target *target)
{
    const struct layout *layout = &target->layout;
    uintptr_t finalizing, head, main_interp, threads;
    int32_t initialized;

    if (!target->runtime || !read_int(target->runtime, layout->runtime_initialized, &initialized) ||
        !read_pointer(target->runtime, layout->runtime_finalizing, &finalizing) ||
        !read_pointer(target->runtime, layout->runtime_interpreters_head, &head) ||
        !read_pointer(target->runtime, layout->runtime_interpreters_main, &main_interp))
        return RUNTIME_ABSENT;
    if (finalizing && head)
        return RUNTIME_FINALIZING;
    if (finalizing || initialized != 1 || !head || !main_interp)
        return RUNTIME_STARTING;
    return read_pointer(main_interp, layout->interp_threads_head, &threads) && threads ? RUNTIME_READY : RUNTIME_STARTING;
}

/* 3.11's GIL is the runtime's, and one word names its holder. */
static bool is_active(const struct py_target *target, uintptr_t address, uint32_t status)
{
    const struct layout *layout = &target->layout;
    uintptr_t holder;

    if (layout->runtime_tstate_current != LAYOUT_NONE)
        return read_pointer(target->runtime, layout->runtime_tstate_current, &holder) && holder == address;
    return status >> layout->status_active_bit & 1;
}

uintptr_t states_interp(const struct py_target *target, uintptr_t address)
{
    uintptr_t interp;
    return address && read_pointer(address, target->layout.thread_interp, &interp) ? interp : 0;
}

bool states_is_main(const struct py_target *target, uintptr_t interp)
{
    uintptr_t main;
    return interp && read_pointer(target->runtime, target->layout.runtime_interpreters_main, &main) && main == interp;
}

bool states_read(const struct py_target *target, uintptr_t address, struct state *state)
{
    const struct layout *layout = &target->layout;
    uint64_t unique_id, native_id, interp_id;
    uint32_t status;

    *state = (struct state){.address = address, .dead = true};
    if (!address || !read_pointer(address, layout->thread_interp, &state->interp) ||
        !read_pointer(address, layout->thread_id, &state->pthread) ||
        !guard_word(address + (uintptr_t)layout->thread_native_id, &native_id) ||
        !guard_word(address + (uintptr_t)layout->thread_unique_id, &unique_id) || !read_status(layout, address, &status))
        return false;
    if (!state->interp || !guard_word(state->interp + (uintptr_t)layout->interp_id, &interp_id))
        return false;
    state->tid = tid_shown(native_id, state->pthread);
    state->unique_id = unique_id;
    state->interp_id = (int64_t)interp_id;
    state->active = is_active(target, address, status);
    state->dead = (status & layout->status_dead_mask) != 0;
    return true;
}

void states_begin(struct states_walk *walk, const struct py_target *target)
{
    *walk = (struct states_walk){.target = target};
    if (!read_pointer(target->runtime, target->layout.runtime_interpreters_head, &walk->next))
        walk->broken = true;
}

/* walk->interp 0: walk->next is an interpreter to go into, else a thread state. */
static bool enter_interpreter(struct states_walk *walk)
{
    const struct layout *layout = &walk->target->layout;
    uint64_t id;

    if (!walk->next)
        return false;
    if (walk->interps == STATES_INTERPRETERS_MAX || !guard_word(walk->next + (uintptr_t)layout->interp_id, &id)) {
        walk->broken = true;
        return false;
    }
    walk->interps++;
    walk->interp = walk->next;
    walk->interp_id = (int64_t)id;
    if (!read_pointer(walk->interp, layout->interp_threads_head, &walk->next)) {
        walk->broken = true;
        walk->next = 0;
    }
    return true;
}

static bool leave_interpreter(struct states_walk *walk)
{
    if (!read_pointer(walk->interp, walk->target->layout.interp_next, &walk->next)) {
        walk->broken = true;
        return false;
    }
    walk->interp = 0;
    return true;
}

/* The state that walk->next names; false ends this interpreter's list. */
static bool take_state(struct states_walk *walk, struct state *state)
{
    if (!walk->next)
        return false;
    if (walk->threads == STATES_THREADS_MAX || !states_read(walk->target, walk->next, state) ||
        state->interp != walk->interp || !read_pointer(walk->next, walk->target->layout.thread_next, &walk->next)) {
        walk->broken = true; /* freed, or already another's: the rest cannot be reached from here */
        return false;
    }
    walk->threads++;
    return true;
}

bool states_next(struct states_walk *walk, struct state *state)
{
    while (walk->interp || enter_interpreter(walk)) {
        if (take_state(walk, state))
            return true;
        if (!leave_interpreter(walk))
            return false;
    }
    return false;
}

bool states_is_of(const struct py_target *target, uintptr_t address, pid_t tid, pthread_t self)
{
    const struct layout *layout = &target->layout;
    uint64_t native_id;
    uintptr_t pthread;

    return read_pointer(address, layout->thread_id, &pthread) && pthread == (uintptr_t)self &&
           guard_word(address + (uintptr_t)layout->thread_native_id, &native_id) && tid_shown(native_id, pthread) == tid;
}

/* What the members gil_* are offsets from: 3.11 keeps the one GIL in the runtime. */
static bool gil_of(const struct py_target *target, uintptr_t interp, uintptr_t *gil)
{
    *gil = target->runtime;
    return target->layout.interp_gil == LAYOUT_NONE || read_pointer(interp, target->layout.interp_gil, gil);
}

static bool find_gil(const struct py_target *target, uintptr_t address, uintptr_t *gil)
{
    uintptr_t interp = 0;
    return (target->layout.interp_gil == LAYOUT_NONE || read_pointer(address, target->layout.thread_interp, &interp)) &&
           gil_of(target, interp, gil);
}

/* Whether the GIL's own words say so. A thread that is just taking the GIL has
 * set locked but not yet last_holder, hence the active bit as well. */
static bool gil_is_of(const struct py_target *target, uintptr_t address)
{
    const struct layout *layout = &target->layout;
    uintptr_t gil, holder;
    int32_t locked;

    return find_gil(target, address, &gil) && read_int(gil, layout->gil_locked, &locked) && locked == 1 &&
           read_pointer(gil, layout->gil_last_holder, &holder) && holder == address;
}

bool states_gil_is_free(const struct py_target *target, uintptr_t address)
{
    uintptr_t gil;
    int32_t locked;
    return find_gil(target, address, &gil) && read_int(gil, target->layout.gil_locked, &locked) && locked == 0;
}

/* Behind `locked` come the number of switches, a condition and its mutex, and both once
 * more for forced switches (Include/internal/pycore_gil.h, the same from 3.11 to 3.15
 * in builds with a GIL; sizes of the C library's own types). */
bool states_is_gil_wait(const struct py_target *target, uintptr_t address, uintptr_t futex)
{
    const uintptr_t before = 2 * sizeof(uint64_t), bytes = 2 * (sizeof(pthread_cond_t) + sizeof(pthread_mutex_t));
    uintptr_t gil;
    if (!find_gil(target, address, &gil))
        return false;
    uintptr_t first = gil + (uintptr_t)target->layout.gil_locked + before;
    return futex >= first && futex < first + bytes;
}

uintptr_t states_gil_taker(const struct py_target *target, uintptr_t interp)
{
    uintptr_t gil, taker;
    return gil_of(target, interp, &gil) && read_pointer(gil, target->layout.gil_last_holder, &taker) ? taker : 0;
}

bool states_gil_switches(const struct py_target *target, uintptr_t interp, uint64_t *switches)
{
    uintptr_t gil;
    return target->layout.gil_switches != LAYOUT_NONE && gil_of(target, interp, &gil) && guard_word(gil + (uintptr_t)target->layout.gil_switches, switches);
}

bool states_holds_gil(const struct py_target *target, uintptr_t address)
{
    uint32_t status;
    if (!address || !read_status(&target->layout, address, &status) || !is_active(target, address, status))
        return false;
    return target->layout.interp_gil == LAYOUT_NONE || gil_is_of(target, address);
}

uintptr_t states_find_own(const struct py_target *target, pid_t tid, pthread_t self, uint32_t look)
{
    struct states_walk walk;
    struct state state;
    uintptr_t found = 0;

    states_begin(&walk, target);
    while (walk.threads < look && states_next(&walk, &state)) {
        if (state.tid != tid || state.pthread != (uintptr_t)self || state.dead)
            continue;
        if (state.active)
            return state.address;
        if (!found)
            found = state.address;
    }
    return found;
}

/* What it shows is the id of the last fork that Python was told of. */
void states_postfork_child(const struct py_target *target, pid_t before, pthread_t self)
{
    uint64_t shown;
    uintptr_t own = states_find_own(target, before, self, FORKING_LOOK);
    if (!own || !guard_word(own + (uintptr_t)target->layout.thread_native_id, &shown))
        shown = (uint64_t)before;
    forked.shown = (pid_t)shown;
    forked.pthread = (uintptr_t)self;
    forked.tid = task_tid();
}

static bool lock_at_is_free(const struct layout *layout, uintptr_t base, int32_t offset)
{
    uintptr_t semaphore;
    uint64_t word;
    uint8_t mutex;

    if (offset == LAYOUT_NONE)
        return false;
    if (layout->pending_lock_is_byte)
        return guard_copy(&mutex, base + (uintptr_t)offset, 1) && mutex == 0;
    return read_pointer(base, offset, &semaphore) && semaphore && guard_word(semaphore, &word) && SEMAPHORE_VALUE(word) == 1;
}

/* 3.11 has one lock an interpreter, and the call goes to the interpreter of
 * whoever holds the GIL just then: all must be free. */
static bool every_interpreter_is_free(const struct py_target *target)
{
    const struct layout *layout = &target->layout;
    uintptr_t interp;

    if (!read_pointer(target->runtime, layout->runtime_interpreters_head, &interp) || !interp)
        return false;
    for (uint32_t count = 0; interp; count++) {
        if (count == STATES_INTERPRETERS_MAX || !lock_at_is_free(layout, interp, layout->interp_pending_lock) ||
            !read_pointer(interp, layout->interp_next, &interp))
            return false;
    }
    return true;
}

bool states_has_python(const struct py_target *target)
{
    uintptr_t main, threads;
    return target->runtime && read_pointer(target->runtime, target->layout.runtime_interpreters_main, &main) && main &&
           read_pointer(main, target->layout.interp_threads_head, &threads) && threads;
}

bool states_pending_lock_is_free(const struct py_target *target)
{
    if (!states_has_python(target))
        return false;
    if (target->layout.interp_pending_lock != LAYOUT_NONE)
        return every_interpreter_is_free(target);
    return lock_at_is_free(&target->layout, target->runtime, target->layout.runtime_pending_lock);
}
