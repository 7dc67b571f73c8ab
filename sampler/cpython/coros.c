/* SPDX-License-Identifier: MIT
 *
 * coros: an object's type is compared before anything of it is believed; its
 * state and the frame embedded in it are neighbours and come in one guarded copy.
 * What a suspended one awaits is looked up on its value stack within the bounds
 * that its code object gives. */
#include "sampler/cpython/coros.h"

#include <stdatomic.h>
#include <stddef.h> /* NULL */
#include <string.h> /* memcpy, memcmp */

#include "hooks/guard.h"

#define ADDRESS_LOWEST 4096u
#define UNIT 2           /* bytes of a code unit */
#define SPAN_MAX 128     /* bytes from the state to the end of the frame's head */
#define STATE_LARGEST 5  /* FRAME_CLEARED: 4, from 3.15 on 5; what is larger is garbage */
#define AWAIT_ARGUMENT 2 /* of RESUME: 0 at the start, 1 after yield, 2 after yield from, 3 after await */
#define TAG_POINTER 1u   /* 3.14+, Py_TAG_REFCNT: a pointer all the same; 2 and 3 are none */
#define WRAPPERS_MAX 8   /* in a row: two are seen (anext_awaitable, asend), more can be made by hand */
#define MARKERS_MAX 2    /* entry frames of C in a row: the lowest and 3.15's sentinel */

struct head { /* what is read of an object, but for its type */
    int8_t state;
    uint8_t owner;
    uintptr_t executable, previous, instr;
    uint64_t stack; /* a count of words (in the lower half) or a pointer */
};

static bool may_be_object(uintptr_t address)
{
    return address >= ADDRESS_LOWEST && address % 8 == 0;
}

static bool read_word(uintptr_t base, int32_t offset, uintptr_t *value)
{
    uint64_t word;
    if (!guard_word(base + (uintptr_t)offset, &word))
        return false;
    *value = (uintptr_t)word;
    return true;
}

/* --- types --- */

static bool kind_of(const struct py_target *target, uintptr_t type, enum coro_kind *kind)
{
    if (type == target->coro_type)
        *kind = CORO_COROUTINE;
    else if (type == target->gen_type)
        *kind = CORO_GENERATOR;
    else if (type == target->async_gen_type)
        *kind = CORO_ASYNC_GENERATOR;
    else
        return false;
    return true;
}

/* COROS_MORE, or why there is no object. */
static enum coros_end read_type(const struct py_target *target, uintptr_t object, uintptr_t *type)
{
    if (!may_be_object(object))
        return COROS_TORN;
    if (!read_word(object, target->layout.object_type, type))
        return COROS_FAULT;
    return may_be_object(*type) ? COROS_MORE : COROS_TORN;
}

/* The first four are static types in every version: their addresses stay theirs. */
enum wrapper { COROUTINE_WRAPPER, ASEND, ATHROW, ANEXT, STATIC_WRAPPERS, FUTURE_ITERATOR = STATIC_WRAPPERS, WRAPPERS };

static const struct {
    const char *text;
    uint8_t size; /* with the NUL */
} names[WRAPPERS] = {
#define NAME(text) {text, sizeof text}
    [COROUTINE_WRAPPER] = NAME("coroutine_wrapper"),
    [ASEND] = NAME("async_generator_asend"),
    [ATHROW] = NAME("async_generator_athrow"),
    [ANEXT] = NAME("anext_awaitable"),
    [FUTURE_ITERATOR] = NAME("_asyncio.FutureIter"),
#undef NAME
};
#define NAME_SHORTEST 16u /* of their sizes */
#define NAME_LONGEST 32u

/* The addresses of the static types met so far; 0: not yet. */
static _Atomic uintptr_t static_types[STATIC_WRAPPERS];

/* Which of the names a type has; WRAPPERS: none. */
static enum wrapper name_of(const struct layout *layout, uintptr_t type)
{
    char text[NAME_LONGEST];
    uintptr_t name;

    if (!read_word(type, layout->type_name, &name) || name < ADDRESS_LOWEST || !guard_copy(text, name, NAME_SHORTEST))
        return WRAPPERS;
    for (unsigned i = 0; i < WRAPPERS; i++) {
        size_t rest = names[i].size - NAME_SHORTEST;
        if (memcmp(text, names[i].text, NAME_SHORTEST) == 0 &&
            (!rest || guard_copy(text + NAME_SHORTEST, name + NAME_SHORTEST, rest)) && memcmp(text, names[i].text, names[i].size) == 0)
            return (enum wrapper)i;
    }
    return WRAPPERS;
}

/* A class written in Python may have any name: the static types are told from it
 * by the heap flag. FutureIter's is a heap type from 3.12 on, which dies with its
 * interpreter: its name is compared each time. */
static enum wrapper wrapper_of(const struct layout *layout, uintptr_t type)
{
    uintptr_t flags;

    for (unsigned i = 0; i < STATIC_WRAPPERS; i++)
        if (atomic_load_explicit(&static_types[i], memory_order_relaxed) == type)
            return (enum wrapper)i;
    enum wrapper wrapper = name_of(layout, type);
    if (wrapper >= STATIC_WRAPPERS)
        return wrapper;
    if (!read_word(type, layout->type_flags, &flags) || flags & layout->flag_heap_type)
        return WRAPPERS;
    atomic_store_explicit(&static_types[wrapper], type, memory_order_relaxed);
    return wrapper;
}

/* --- state --- */

static bool decode_state(const struct layout *layout, int8_t value, enum coro_state *state)
{
    if (value > STATE_LARGEST)
        return false;
    if (value == layout->gen_created)
        *state = CORO_CREATED;
    else if (value == layout->gen_suspended)
        *state = CORO_SUSPENDED;
    else if (value == layout->gen_awaiting || value == layout->gen_awaiting_locked)
        *state = CORO_AWAITING;
    else if (value == layout->gen_executing)
        *state = CORO_EXECUTING;
    else if (value >= layout->gen_finished)
        *state = CORO_FINISHED;
    else
        return false;
    return true;
}

static bool is_resume(const struct layout *layout, uint8_t opcode)
{
    for (size_t i = 0; i < sizeof layout->resume_opcodes; i++)
        if (opcode && opcode == layout->resume_opcodes[i])
            return true;
    return false;
}

/* 3.11/3.12 have one state for yield and for await: it is told by the RESUME
 * behind the instruction that it stands at. False: unreadable. */
static bool settle_suspended(const struct layout *layout, uintptr_t instr, enum coro_state *state)
{
    uint8_t unit[UNIT];

    if (!layout->resume_opcodes[0])
        return true;
    if (instr < ADDRESS_LOWEST || instr % UNIT != 0 || !guard_copy(unit, instr + UNIT, sizeof unit))
        return false;
    if (is_resume(layout, unit[0]) && unit[1] >= AWAIT_ARGUMENT)
        *state = CORO_AWAITING;
    return true;
}

bool coros_state(const struct py_target *target, uintptr_t object, enum coro_state *state)
{
    const struct layout *layout = &target->layout;
    enum coro_kind kind;
    uintptr_t type, word, instr;

    if (read_type(target, object, &type) != COROS_MORE || !kind_of(target, type, &kind))
        return false;
    if (!read_word(object, layout->gen_state & ~7, &word))
        return false;
    if (!decode_state(layout, (int8_t)(word >> 8 * (layout->gen_state & 7)), state))
        return false;
    if (*state != CORO_SUSPENDED || !layout->resume_opcodes[0])
        return true;
    return read_word(object, layout->gen_frame + layout->frame_instr, &instr) && settle_suspended(layout, instr, state);
}

/* --- the whole object --- */

/* Copies whole words, so that each is loaded from one store of the copy. */
static bool read_head(const struct layout *layout, uintptr_t object, struct head *head)
{
    unsigned char span[SPAN_MAX];
    int32_t from = layout->gen_state & ~7;                               /* the first of the parts, in every version */
    int32_t to = (layout->gen_frame + layout->frame_owner + 8) & ~7;     /* the last of them is the owner */
    const unsigned char *frame = span + (layout->gen_frame - from);

    if ((size_t)(to - from) > sizeof span || !guard_copy(span, object + (uintptr_t)from, (size_t)(to - from)))
        return false;
    head->state = (int8_t)span[layout->gen_state - from];
    head->owner = frame[layout->frame_owner];
    memcpy(&head->executable, frame + layout->frame_executable, sizeof head->executable);
    memcpy(&head->previous, frame + layout->frame_previous, sizeof head->previous);
    memcpy(&head->instr, frame + layout->frame_instr, sizeof head->instr);
    memcpy(&head->stack, frame + layout->frame_stacktop, sizeof head->stack);
    head->executable &= ~(uintptr_t)layout->executable_tag_mask;
    return true;
}

/* How many words lie in its locals and on its stack. */
static int64_t words_used(const struct layout *layout, uintptr_t frame, uint64_t stack)
{
    if (layout->frame_owner < layout->frame_stacktop + 8) /* an int that shares its word */
        return (int32_t)stack;
    int64_t bytes = (int64_t)(stack - (frame + (uintptr_t)layout->frame_localsplus));
    return bytes % 8 == 0 ? bytes / 8 : -1;
}

static bool read_bounds(const struct layout *layout, uintptr_t code, int32_t *locals, int32_t *stack)
{
    unsigned char span[32];
    size_t size = (size_t)(layout->code_nlocalsplus - layout->code_stacksize) + sizeof *locals; /* in this order, in every version */

    if (size > sizeof span || !guard_copy(span, code + (uintptr_t)layout->code_stacksize, size))
        return false;
    memcpy(stack, span, sizeof *stack);
    memcpy(locals, span + size - sizeof *locals, sizeof *locals);
    return *locals >= 0;
}

static enum coros_end read_awaited(const struct layout *layout, const struct head *head, struct coro *coro)
{
    int64_t used = words_used(layout, coro->frame, head->stack);
    int32_t locals, stack;

    if (!read_bounds(layout, coro->code.address, &locals, &stack))
        return COROS_FAULT;
    if (used < (int64_t)locals + layout->await_slot || used > (int64_t)locals + stack)
        return COROS_TORN;
    uintptr_t slot = coro->frame + (uintptr_t)layout->frame_localsplus + (uintptr_t)(used - layout->await_slot) * 8;
    if (!read_word(slot, 0, &coro->awaited))
        return COROS_FAULT;
    if ((coro->awaited & layout->executable_tag_mask) <= TAG_POINTER)
        coro->awaited &= ~(uintptr_t)layout->executable_tag_mask;
    return may_be_object(coro->awaited) ? COROS_MORE : COROS_TORN;
}

/* The frame of Python below: on 3.12+ a marker of C may stand between. 0: none. */
static uintptr_t below_markers(const struct layout *layout, uintptr_t frame)
{
    uint8_t owner;

    for (int markers = 0; markers <= MARKERS_MAX && may_be_object(frame); markers++) {
        if (!guard_copy(&owner, frame + (uintptr_t)layout->frame_owner, sizeof owner))
            return 0;
        if (owner < layout->owner_entry)
            return frame;
        if (!read_word(frame, layout->frame_previous, &frame))
            return 0;
    }
    return 0;
}

static enum coros_end read_rest(const struct py_target *target, struct coro *coro)
{
    const struct layout *layout = &target->layout;
    struct head head;

    if (!read_head(layout, coro->address, &head))
        return COROS_FAULT;
    if (!decode_state(layout, head.state, &coro->state))
        return COROS_TORN;
    if (coro->state == CORO_FINISHED)
        return COROS_MORE;
    if (head.owner != layout->owner_generator)
        return COROS_TORN;
    if (!code_read(target, head.executable, &coro->code))
        return COROS_FAULT;
    if (!code_offset(target, &coro->code, head.instr, &coro->lasti))
        return COROS_TORN;
    if (coro->state == CORO_EXECUTING)
        coro->previous = below_markers(layout, head.previous);
    if (coro->state == CORO_SUSPENDED && !settle_suspended(layout, head.instr, &coro->state))
        return COROS_FAULT;
    return coro->state == CORO_AWAITING ? read_awaited(layout, &head, coro) : COROS_MORE;
}

static enum coros_end read_coro(const struct py_target *target, uintptr_t object, enum coro_kind kind, struct coro *coro)
{
    coro->address = object; /* part by part: its code is the larger one */
    coro->frame = object + (uintptr_t)target->layout.gen_frame;
    coro->kind = kind;
    coro->lasti = -1;
    coro->awaited = coro->previous = 0;
    coro->code.address = 0;
    coro->code.identity = 0;
    return read_rest(target, coro);
}

bool coros_read(const struct py_target *target, uintptr_t object, struct coro *coro)
{
    enum coro_kind kind;
    uintptr_t type;

    return read_type(target, object, &type) == COROS_MORE && kind_of(target, type, &kind) &&
           read_coro(target, object, kind, coro) == COROS_MORE;
}

uintptr_t coros_of_frame(const struct py_target *target, uintptr_t frame)
{
    const struct layout *layout = &target->layout;
    enum coro_kind kind;
    uintptr_t type, object = frame - (uintptr_t)layout->gen_frame;
    uint8_t owner;

    /* Before a frame of another owner lie a caller's variables: not to be taken for a type. */
    if (!may_be_object(frame) || !guard_copy(&owner, frame + (uintptr_t)layout->frame_owner, sizeof owner) ||
        owner != layout->owner_generator)
        return 0;
    return read_type(target, object, &type) == COROS_MORE && kind_of(target, type, &kind) ? object : 0;
}

/* --- the chain --- */

static bool stop(struct coros_walk *walk, enum coros_end end)
{
    walk->end = end;
    return false;
}

static bool stop_at(struct coros_walk *walk, enum coros_end end)
{
    walk->awaited = walk->next;
    return stop(walk, end);
}

void coros_begin(struct coros_walk *walk, const struct py_target *target, uintptr_t object, uint32_t limit)
{
    *walk = (struct coros_walk){.target = target, .next = object, .limit = limit, .end = COROS_MORE};
}

/* Follows wrappers from walk->next until that is one of the three kinds; false:
 * the end is set. */
static bool unwrap(struct coros_walk *walk, enum coro_kind *kind)
{
    const struct layout *layout = &walk->target->layout;
    uintptr_t type;

    for (unsigned wrappers = 0; wrappers <= WRAPPERS_MAX; wrappers++) {
        enum coros_end end = read_type(walk->target, walk->next, &type);
        if (end != COROS_MORE)
            return stop(walk, end);
        if (kind_of(walk->target, type, kind))
            return true;
        enum wrapper wrapper = wrapper_of(layout, type);
        if (wrapper == WRAPPERS)
            return stop_at(walk, COROS_OTHER);
        if (!read_word(walk->next, layout->wrapper_inner, &walk->next))
            return stop(walk, COROS_FAULT);
        if (wrapper == FUTURE_ITERATOR) /* one that is used up has let go of its future */
            return may_be_object(walk->next) ? stop_at(walk, COROS_FUTURE) : stop(walk, COROS_TORN);
    }
    return stop(walk, COROS_LIMIT);
}

/* Where the walk goes from a coroutine that was read. False: it is not given out. */
static bool step(struct coros_walk *walk, const struct coro *coro)
{
    walk->next = coro->awaited;
    switch (coro->state) {
    case CORO_AWAITING:
        break;
    case CORO_SUSPENDED:
        walk->end = COROS_OTHER;
        break;
    case CORO_EXECUTING:
        walk->end = COROS_EXECUTING;
        break;
    case CORO_CREATED: /* what another awaits has begun */
        if (walk->taken)
            return stop(walk, COROS_TORN);
        walk->end = COROS_CREATED;
        break;
    case CORO_FINISHED:
        return stop(walk, COROS_FINISHED);
    }
    walk->taken++;
    return true;
}

bool coros_next(struct coros_walk *walk, struct coro *coro)
{
    enum coro_kind kind;

    if (walk->end != COROS_MORE || !unwrap(walk, &kind))
        return false;
    if (walk->taken == walk->limit)
        return stop(walk, COROS_LIMIT);
    enum coros_end end = read_coro(walk->target, walk->next, kind, coro);
    return end == COROS_MORE ? step(walk, coro) : stop(walk, end);
}
