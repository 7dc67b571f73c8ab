/* SPDX-License-Identifier: MIT
 *
 * The tasks of a batch go step by step side by side: what a task's next step reads is
 * fetched while the others take theirs. Which words those are is worked out once a batch.
 */
#include "sampler/cpython/glance.h"

#include "hooks/guard.h"
#include "sampler/cpython/exceptions.h"

#define ADDRESS_LOWEST 4096u
#define TAG_BITS 7u /* of a pointer on the value stack (3.14+) */
enum { LINKS_MOST = 16384 };

enum word { OBJECT, TYPE, STATE, CALLBACK0, CALLBACKS, WAITER, CORO, INSTR, TOP, HANDLED, CODE, VERSION, LINE, NEXT, WORDS };

/* Where the words are that prove a stack. */
struct plan {
    const struct layout *layout;
    uint64_t coro_type;
    bool top_is_count;  /* of words behind frame_localsplus; else an address */
    struct guard_place task[6], coro[6], place[3], future[2];
    uint32_t coros, places;
    int32_t fetched[4]; /* of a coroutine */
};

/* The aligned word that holds what is at this offset; its neighbours come along. */
static struct guard_place around(int32_t offset, enum word from, enum word to)
{
    return (struct guard_place){offset & ~7, (uint16_t)from, (uint16_t)to};
}

/* The part of a word that is at this offset in the object, `bytes` wide. */
static uint64_t part(uint64_t word, int32_t offset, unsigned bytes)
{
    return word >> (8 * (offset & 7)) & (~0ull >> (64 - 8 * bytes));
}

/* What a code object is known by: a version that is unique, or (3.11) its name and line.
 * And what is awaited: the object on the value stack. */
static void plan_places(struct plan *plan)
{
    const struct layout *layout = plan->layout;
    plan->places = 0;
    plan->place[plan->places++] = around(-8 * layout->await_slot, TOP, NEXT);
    if (layout->code_version != LAYOUT_NONE) {
        plan->place[plan->places++] = around(layout->code_version, CODE, VERSION);
    } else {
        plan->place[plan->places++] = around(layout->code_qualname, CODE, VERSION);
        plan->place[plan->places++] = around(layout->code_firstlineno, CODE, LINE);
    }
}

static void make_plan(struct plan *plan, const struct py_target *target)
{
    const struct layout *layout = &target->layout;
    int32_t frame = layout->gen_frame;
    plan->layout = layout;
    plan->coro_type = target->coro_type;
    plan->top_is_count = layout->frame_owner < layout->frame_stacktop + 8; /* an int that shares its word */
    plan->task[0] = around(layout->object_type, OBJECT, TYPE);
    plan->task[1] = around(layout->future_state, OBJECT, STATE);
    plan->task[2] = around(layout->future_callback0, OBJECT, CALLBACK0);
    plan->task[3] = around(layout->future_callbacks, OBJECT, CALLBACKS);
    plan->task[4] = around(layout->task_waiter, OBJECT, WAITER);
    plan->task[5] = around(layout->task_coro, OBJECT, CORO);
    plan->coro[0] = around(layout->object_type, OBJECT, TYPE);
    plan->coro[1] = around(layout->gen_state, OBJECT, STATE);
    plan->coro[2] = around(frame + layout->frame_executable, OBJECT, CODE);
    plan->coro[3] = around(frame + layout->frame_instr, OBJECT, INSTR);
    plan->coro[4] = around(frame + layout->frame_stacktop, OBJECT, TOP);
    plan->coro[5] = around(layout->gen_exc_state + layout->exc_value, OBJECT, HANDLED);
    plan->coros = exceptions_tasks_asked ? 6 : 5;
    plan->future[0] = around(layout->object_type, WAITER, TYPE);
    plan->future[1] = around(layout->future_state, WAITER, STATE);
    plan_places(plan);
    plan->fetched[0] = layout->object_type;
    plan->fetched[1] = layout->gen_state;
    plan->fetched[2] = frame + layout->frame_stacktop;
    plan->fetched[3] = frame + layout->frame_localsplus + 16; /* a local and what is awaited, or thereabouts */
}

static void fetch(uintptr_t object, int32_t offset)
{
    __builtin_prefetch((const void *)(object + (uintptr_t)(intptr_t)offset));
}

static void fetch_coro(const struct plan *plan, uintptr_t coro)
{
    for (int i = 0; i < 4; i++)
        fetch(coro, plan->fetched[i]);
}

void glance_fetch(const struct py_target *target, uintptr_t task)
{
    fetch(task, target->layout.object_type);
    fetch(task, target->layout.future_callbacks);
    fetch(task, target->layout.future_state);
    fetch(task, target->layout.task_coro);
}

void glance_fetch_wait(const struct py_target *target, const struct glance_wait *wait)
{
    fetch(wait->task, target->layout.future_callbacks);
    fetch(wait->task, target->layout.task_waiter);
    fetch(wait->future, target->layout.future_state);
}

bool glance_still_waits(const struct py_target *target, const struct glance_wait *wait)
{
    const struct layout *layout = &target->layout;
    uint64_t words[WORDS] = {[OBJECT] = wait->task, [WAITER] = wait->future};
    const struct guard_place places[] = {around(layout->future_callback0, OBJECT, CALLBACK0), around(layout->future_callbacks, OBJECT, CALLBACKS),
                                         around(layout->task_waiter, OBJECT, CORO), around(layout->future_state, WAITER, STATE)};
    return wait->task >= ADDRESS_LOWEST && wait->future >= ADDRESS_LOWEST && guard_gather(words, places, 4) &&
           words[CALLBACK0] == wait->callback0 && !words[CALLBACKS] && words[CORO] == wait->future &&
           part(words[STATE], layout->future_state, 4) == FUTURE_PENDING;
}

static void fetch_future(const struct plan *plan, uintptr_t future)
{
    fetch(future, plan->layout->object_type);
    fetch(future, plan->layout->future_state);
}

/* Words at once, each times a number of its own, so that the products wait for nothing. */
static uint64_t mix(uint64_t hash, uint64_t a, uint64_t b, uint64_t c, uint64_t d, uint64_t e)
{
    hash += a * 0x9e3779b97f4a7c15u + b * 0xbf58476d1ce4e5b9u + c * 0x94d049bb133111ebu + d * 0xd6e8feb86659fd93u + e * 0xa0761d6478bd642fu;
    hash = (hash ^ hash >> 32) * 0xff51afd7ed558ccdu;
    return hash ^ hash >> 32;
}

static void give_up(struct glance *glance)
{
    glance->at = 0;
    glance->hash = 0;
}

/* State, callbacks, what it waits for, its coroutine. */
static void begin(const struct plan *plan, struct glance *glance)
{
    uint64_t words[WORDS], size = 0;
    words[OBJECT] = glance->task;
    give_up(glance);
    glance->links = 0;
    if (glance->task < ADDRESS_LOWEST || guard_gather_if(words, plan->task, 6, glance->asyncio->task_type) != 6 ||
        part(words[STATE], plan->layout->future_state, 4) != FUTURE_PENDING || !words[CORO])
        return;
    if (words[CALLBACKS] &&
        (words[CALLBACKS] < ADDRESS_LOWEST || !guard_word((uintptr_t)words[CALLBACKS] + (uintptr_t)plan->layout->var_size, &size)))
        return;
    glance->waiter = words[WAITER];
    glance->at = words[CORO];
    glance->hash = mix(1, words[CALLBACK0], words[CALLBACKS], size, words[WAITER], words[CORO]);
    fetch_coro(plan, glance->at);
    if (glance->waiter)
        fetch_future(plan, glance->waiter);
}

static bool is_suspended(const struct layout *layout, int8_t state)
{
    return state == layout->gen_awaiting || state == layout->gen_awaiting_locked || state == layout->gen_suspended;
}

/* The code's version, and, of a coroutine that is suspended, what it awaits. */
static bool read_places(const struct plan *plan, uint64_t *words, bool suspended)
{
    const struct layout *layout = plan->layout;
    words[CODE] &= ~(uint64_t)layout->executable_tag_mask;
    words[LINE] = words[NEXT] = 0;
    if (plan->top_is_count)
        words[TOP] = words[OBJECT] + (uint64_t)(layout->gen_frame + layout->frame_localsplus) +
                     8 * part(words[TOP], layout->gen_frame + layout->frame_stacktop, 4);
    if (words[CODE] < ADDRESS_LOWEST || (suspended && words[TOP] < ADDRESS_LOWEST) ||
        !guard_gather(words, plan->place + !suspended, plan->places - !suspended))
        return false;
    if (layout->code_version != LAYOUT_NONE)
        words[VERSION] = part(words[VERSION], layout->code_version, 4);
    else
        words[LINE] = part(words[LINE], layout->code_firstlineno, 4);
    words[NEXT] &= ~(uint64_t)TAG_BITS;
    return !suspended || words[NEXT];
}

/* The type of the exception, not its address, which may be another's by the next look. */
static bool mix_handled(const struct plan *plan, struct glance *glance, uint64_t handled)
{
    uint64_t type = 0;
    if (handled < ADDRESS_LOWEST)
        return !handled;
    if (!guard_word((uintptr_t)handled + (uintptr_t)plan->layout->object_type, &type))
        return false;
    glance->hash = mix(glance->hash, type, 0, 0, 0, 0);
    return true;
}

static void step_coroutine(const struct plan *plan, struct glance *glance, uint64_t *words)
{
    int8_t state = (int8_t)part(words[STATE], plan->layout->gen_state, 1);
    bool suspended = is_suspended(plan->layout, state);
    if ((!suspended && state != plan->layout->gen_created) || !read_places(plan, words, suspended) ||
        !mix_handled(plan, glance, words[HANDLED])) {
        give_up(glance);
        return;
    }
    glance->at = words[NEXT];
    if (glance->at)
        fetch_coro(plan, glance->at);
    glance->hash = mix(glance->hash, words[CODE], words[VERSION], words[INSTR], words[NEXT], words[LINE] << 8 | (uint8_t)state);
}

/* The end of a chain: an iterator over the future that the task waits for. That it is
 * pending must be all there is to know of it: not so with gather's. */
static void step_end(const struct plan *plan, struct glance *glance, uint64_t type)
{
    uint64_t words[WORDS], inner;
    words[WAITER] = glance->waiter;
    if (glance->waiter < ADDRESS_LOWEST || !guard_word(glance->at + (uintptr_t)plan->layout->wrapper_inner, &inner) ||
        inner != glance->waiter || !guard_gather(words, plan->future, 2) ||
        (words[TYPE] != glance->asyncio->future_type && words[TYPE] != glance->asyncio->task_type)) {
        give_up(glance);
        return;
    }
    glance->hash = mix(glance->hash, type, words[TYPE], part(words[STATE], plan->layout->future_state, 4), 0, 0);
    glance->at = 0;
}

static void step(const struct plan *plan, struct glance *glance)
{
    uint64_t words[WORDS];
    words[OBJECT] = glance->at;
    words[HANDLED] = 0;
    uint32_t read = glance->at < ADDRESS_LOWEST ? 0 : guard_gather_if(words, plan->coro, plan->coros, plan->coro_type);
    if (read == 0 || glance->links++ == LINKS_MOST)
        give_up(glance);
    else if (read == 1)
        step_end(plan, glance, words[TYPE]);
    else
        step_coroutine(plan, glance, words);
}

void glance_batch(const struct py_target *target, struct glance *glance, uint32_t count)
{
    struct plan plan;
    bool more = true;
    make_plan(&plan, target);
    for (uint32_t i = 0; i < count; i++)
        begin(&plan, &glance[i]);
    while (more) {
        more = false;
        for (uint32_t i = 0; i < count; i++) {
            if (!glance[i].at)
                continue;
            step(&plan, &glance[i]);
            more |= glance[i].at != 0;
        }
    }
}
