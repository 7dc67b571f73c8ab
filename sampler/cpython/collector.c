/* SPDX-License-Identifier: MIT */
#include "sampler/cpython/collector.h"

#include "hooks/guard.h"
#include "sampler/cpython/frames.h"
#include "sampler/cpython/states.h"

enum {
    LEAST_ADDRESS = 4096,
    LISTS = 3,
    LIST_BYTES = 24,     /* of struct gc_generation */
    LISTS_EARLIER = 4,   /* they begin so much earlier where links are aligned to 4 bytes: 3.13.15 */
    LINK_NEXT = 0, LINK_PREVIOUS = 8, /* in a PyGC_Head */
    LINK_FLAGS = 3,      /* bits of both links that are none of an address */
    MARK_COLLECTING = 2  /* in the link back */
};

static bool is_under_way(const struct layout *layout, uintptr_t interp)
{
    int32_t collecting;
    return interp && guard_copy(&collecting, interp + (uintptr_t)layout->interp_gc_collecting, sizeof collecting) && collecting == 1;
}

static bool is_among_its_frames(const struct py_target *target, uintptr_t tstate, uint64_t began_in, uint32_t limit)
{
    struct frames_walk walk;
    struct py_frame frame;
    frames_begin(&walk, target, tstate, limit);
    while (frames_next(&walk, &frame))
        if (frame.address == began_in)
            return true;
    return false;
}

static enum collector_found by_frame(const struct py_target *target, uintptr_t tstate, uintptr_t interp, uint32_t limit)
{
    uint64_t began_in;
    if (!is_under_way(&target->layout, interp) || !states_holds_gil(target, tstate))
        return COLLECTOR_NOT;
    bool its_own = guard_word(interp + (uintptr_t)target->layout.interp_gc_frame, &began_in) && is_among_its_frames(target, tstate, began_in, limit);
    return its_own ? COLLECTOR_RUNS : COLLECTOR_NOT;
}

/* --- before 3.15 --- */

/* A head may stand at half a word. */
static uintptr_t word_at(uintptr_t address)
{
    uintptr_t word;
    return address >= LEAST_ADDRESS && guard_copy(&word, address, sizeof word) ? word : 0;
}

static uintptr_t link_at(uintptr_t object, uintptr_t which)
{
    return word_at(object + which) & ~(uintptr_t)LINK_FLAGS;
}

static bool is_marked(uintptr_t object)
{
    return word_at(object + LINK_PREVIOUS) & MARK_COLLECTING;
}

/* Marks are set from the first object to the last, and taken away in that order. What the last one does not lead
 * back to is no list: it is elsewhere in this patch release. */
static bool list_is_marked(uintptr_t head)
{
    uintptr_t first = link_at(head, LINK_NEXT), last = link_at(head, LINK_PREVIOUS);
    return last != head && link_at(last, LINK_NEXT) == head && (is_marked(last) || is_marked(first));
}

static bool objects_are_marked(const struct layout *layout, uintptr_t interp)
{
    if (layout->interp_gc_lists == LAYOUT_NONE)
        return false;
    uintptr_t lists = interp + (uintptr_t)layout->interp_gc_lists;
    for (uintptr_t i = 0; i < LISTS; i++)
        if (list_is_marked(lists + i * LIST_BYTES) || list_is_marked(lists + i * LIST_BYTES - LISTS_EARLIER))
            return true;
    return false;
}

static void remember(struct collector_memory *memory, uintptr_t tstate, uint64_t switches)
{
    atomic_store_explicit(&memory->tstate, tstate, memory_order_relaxed);
    atomic_store_explicit(&memory->switches, switches, memory_order_relaxed);
}

static bool has_been_alone(struct collector_memory *memory, uintptr_t tstate, uint64_t switches)
{
    return memory && atomic_load_explicit(&memory->tstate, memory_order_relaxed) == tstate &&
           atomic_load_explicit(&memory->switches, memory_order_relaxed) == switches;
}

/* The flag is read before the count: what changed hands in between is counted. */
static enum collector_found by_holder(const struct py_target *target, uintptr_t tstate, uintptr_t interp, struct collector_memory *memory, bool own)
{
    uint64_t switches;
    bool under_way = is_under_way(&target->layout, interp);
    if ((!under_way && !own) || !states_holds_gil(target, tstate))
        return COLLECTOR_NOT;
    if (!states_gil_switches(target, interp, &switches))
        return under_way ? COLLECTOR_UNKNOWN : COLLECTOR_NOT;
    bool runs = under_way && (has_been_alone(memory, tstate, switches) || objects_are_marked(&target->layout, interp));
    if (own && memory && (runs || !under_way))
        remember(memory, tstate, switches);
    return runs ? COLLECTOR_RUNS : under_way ? COLLECTOR_UNKNOWN : COLLECTOR_NOT;
}

enum collector_found collector_of(const struct py_target *target, uintptr_t tstate, uint32_t limit, struct collector_memory *memory, bool own)
{
    uintptr_t interp;
    if (!target->layout.gc_is_told || !(interp = states_interp(target, tstate)))
        return COLLECTOR_NOT;
    if (target->layout.interp_gc_frame != LAYOUT_NONE)
        return by_frame(target, tstate, interp, limit);
    return by_holder(target, tstate, interp, memory, own);
}
