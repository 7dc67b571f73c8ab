/* SPDX-License-Identifier: MIT */
#include "sampler/cpython/glance.h"

#include <stdbool.h>
#include <string.h> /* memcpy */

#include "hooks/guard.h"

#define ADDRESS_LOWEST 4096u
#define TAG_BITS 7u  /* of a pointer on the value stack (3.14+) */
#define LINE 64u     /* bytes of a cache line */
#define SPAN_MAX 256 /* bytes from an object's type to the last of its words that are read */
enum { LINKS_MOST = 16384 };

static bool word(uintptr_t base, int32_t offset, uint64_t *value)
{
    return base >= ADDRESS_LOWEST && guard_word(base + (uintptr_t)(intptr_t)offset, value);
}

/* The aligned word that holds what is at this offset; its neighbours come along. */
static bool word_around(uintptr_t base, int32_t offset, uint64_t *value)
{
    return word(base, offset & ~7, value);
}

/* The part of a word that is at this offset in the object, `bytes` wide. */
static uint64_t part(uint64_t around, int32_t offset, unsigned bytes)
{
    return around >> (8 * (offset & 7)) & (~0ull >> (64 - 8 * bytes));
}

/* An object's bytes from its type on, in one read: that costs less than its words one by one. */
struct span {
    int32_t from;
    unsigned char bytes[SPAN_MAX];
};

static bool read_span(const struct layout *layout, uintptr_t object, int32_t end, struct span *span)
{
    span->from = layout->object_type;
    return object >= ADDRESS_LOWEST && object % 8 == 0 && end - span->from <= SPAN_MAX &&
           guard_copy(span->bytes, object + (uintptr_t)span->from, (size_t)(end - span->from));
}

static uint64_t word_in(const struct span *span, int32_t offset)
{
    uint64_t value;
    memcpy(&value, span->bytes + (offset - span->from), sizeof value);
    return value;
}

static uint32_t int_in(const struct span *span, int32_t offset)
{
    uint32_t value;
    memcpy(&value, span->bytes + (offset - span->from), sizeof value);
    return value;
}

static uint64_t mix(uint64_t hash, uint64_t value)
{
    hash = (hash ^ value) * 0xff51afd7ed558ccdu;
    return hash ^ hash >> 32;
}

static void fetch(uintptr_t object, uint32_t bytes)
{
    for (uint32_t at = 0; at < bytes; at += LINE)
        __builtin_prefetch((const void *)(object + at));
}

static void give_up(struct glance *glance)
{
    glance->at = 0;
    glance->hash = 0;
}

/* Whether a future being pending is all there is to know of it: not so with gather's. */
static bool is_simple(const struct py_target *target, const struct asyncio *asyncio, uintptr_t waiter)
{
    uint64_t type;
    return word(waiter, target->layout.object_type, &type) && (type == asyncio->future_type || type == asyncio->task_type);
}

/* State, callbacks, what it waits for, its coroutine. */
static void begin(const struct py_target *target, struct glance *glance)
{
    const struct layout *layout = &target->layout;
    struct span task;
    uint64_t size = 0;

    give_up(glance);
    glance->links = 0;
    if (!read_span(layout, glance->task, layout->task_coro + 8, &task) || word_in(&task, layout->object_type) != glance->asyncio->task_type ||
        int_in(&task, layout->future_state) != FUTURE_PENDING)
        return;
    uint64_t callback0 = word_in(&task, layout->future_callback0), callbacks = word_in(&task, layout->future_callbacks);
    if (callbacks && !word(callbacks, layout->var_size, &size))
        return;
    glance->waiter = word_in(&task, layout->task_waiter);
    glance->at = word_in(&task, layout->task_coro);
    glance->hash = mix(mix(mix(mix(mix(1, callback0), callbacks), size), glance->waiter), glance->at);
    fetch(glance->at, 192);
    if (glance->waiter)
        fetch(glance->waiter, 128);
}

/* What a coroutine that is suspended awaits: the object on its value stack. */
static bool awaited(const struct layout *layout, uintptr_t frame, const struct span *coro, int32_t stacktop, uint64_t *object)
{
    uintptr_t top;
    if (layout->frame_owner < layout->frame_stacktop + 8) /* an int that shares its word: a count of words */
        top = frame + (uintptr_t)layout->frame_localsplus + 8 * (uintptr_t)int_in(coro, stacktop);
    else
        top = (uintptr_t)word_in(coro, stacktop);
    if (!word(top, -8 * layout->await_slot, object))
        return false;
    *object &= ~(uint64_t)TAG_BITS;
    return true;
}

static bool is_suspended(const struct layout *layout, int8_t state)
{
    return state == layout->gen_awaiting || state == layout->gen_awaiting_locked || state == layout->gen_suspended;
}

/* A version that is unique for each code object, or (3.11) its name and line. */
static bool code_version(const struct layout *layout, uintptr_t code, uint64_t *version)
{
    uint64_t line;
    if (layout->code_version != LAYOUT_NONE) {
        if (!word_around(code, layout->code_version, version))
            return false;
        *version = part(*version, layout->code_version, 4);
        return true;
    }
    if (!word(code, layout->code_qualname, version) || !word_around(code, layout->code_firstlineno, &line))
        return false;
    *version = mix(*version, part(line, layout->code_firstlineno, 4));
    return true;
}

static void step_coroutine(const struct py_target *target, struct glance *glance, const struct span *coro)
{
    const struct layout *layout = &target->layout;
    uintptr_t frame = glance->at + (uintptr_t)layout->gen_frame;
    int8_t state = (int8_t)coro->bytes[layout->gen_state - coro->from];
    uintptr_t code = (uintptr_t)word_in(coro, layout->gen_frame + layout->frame_executable) & ~(uintptr_t)layout->executable_tag_mask;
    uint64_t version, next = 0;

    if ((state != layout->gen_created && !is_suspended(layout, state)) || !code_version(layout, code, &version) ||
        (state != layout->gen_created && !awaited(layout, frame, coro, layout->gen_frame + layout->frame_stacktop, &next))) {
        give_up(glance);
        return;
    }
    uint64_t instruction = word_in(coro, layout->gen_frame + layout->frame_instr);
    glance->hash = mix(mix(mix(mix(mix(mix(glance->hash, glance->at), (uint8_t)state), code), version), instruction), next);
    glance->at = next;
    if (next)
        fetch(next, 192);
}

/* The end of a chain: an iterator over the future that the task waits for. */
static void step_end(const struct layout *layout, struct glance *glance, uint64_t type)
{
    uint64_t future, state;
    if (!glance->waiter || !word(glance->at, layout->wrapper_inner, &future) || future != glance->waiter ||
        !word_around(future, layout->future_state, &state)) {
        give_up(glance);
        return;
    }
    glance->hash = mix(mix(mix(glance->hash, type), future), part(state, layout->future_state, 4));
    glance->at = 0;
}

static void step(const struct py_target *target, struct glance *glance)
{
    const struct layout *layout = &target->layout;
    struct span coro;
    uint64_t type;
    if (glance->links++ == LINKS_MOST || !word(glance->at, layout->object_type, &type))
        give_up(glance);
    else if (type != target->coro_type)
        step_end(layout, glance, type);
    else if (read_span(layout, glance->at, layout->gen_frame + layout->frame_stacktop + 8, &coro))
        step_coroutine(target, glance, &coro);
    else
        give_up(glance);
}

void glance_batch(const struct py_target *target, struct glance *glance, uint32_t count)
{
    bool more = true;
    for (uint32_t i = 0; i < count; i++)
        fetch(glance[i].task, 192);
    for (uint32_t i = 0; i < count; i++)
        begin(target, &glance[i]);
    for (uint32_t i = 0; i < count; i++)
        if (glance[i].at && glance[i].waiter && !is_simple(target, glance[i].asyncio, glance[i].waiter))
            give_up(&glance[i]);
    while (more) {
        more = false;
        for (uint32_t i = 0; i < count; i++) {
            if (!glance[i].at)
                continue;
            step(target, &glance[i]);
            more |= glance[i].at != 0;
        }
    }
}
