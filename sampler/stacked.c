/* SPDX-License-Identifier: MIT
 *
 * stacked: a chain is walked twice, once to see that it is whole and where it
 * ends, once to give it out. */
#include "sampler/stacked.h"

#include "sampler/births.h"
#include "sampler/codes.h"
#include "sampler/cpython/awaiters.h"
#include "sampler/cpython/coros.h"
#include "sampler/cpython/executors.h"
#include "sampler/markers.h"

enum {
    CHAIN_LONGEST = 16384, /* coroutines of one task */
    AWAITERS_TOLD = 8,     /* awaiters of one task that are known again when reached in another way */
    LOOKED_ENOUGH = 64,    /* callbacks of one task, if there was an awaiter among them */
    LOOKED_MOST = 8192     /* on the whole way up: a millisecond, some more where memory is cold */
};

/* --- the running tasks --- */

/* The coroutine, generator or async generator that a task drives. */
static uintptr_t root_of(const struct py_target *target, uintptr_t object)
{
    struct coros_walk walk;
    struct coro coro;
    coros_begin(&walk, target, object, 1);
    return coros_next(&walk, &coro) ? coro.address : 0;
}

static void find_running(struct stacked_walk *walk, const struct py_target *target, uintptr_t tstate)
{
    uintptr_t tasks[STACKED_RUNNING], waiter, coro;
    uint32_t count = asyncio_current(target, walk->asyncio, tstate, tasks, STACKED_RUNNING);
    for (uint32_t i = 0; i < count; i++) {
        if (!asyncio_waiter(target, walk->asyncio, tasks[i], &waiter, &coro))
            continue;
        walk->running[walk->runs].task = tasks[i];
        walk->running[walk->runs].root = root_of(target, coro);
        walk->runs += walk->running[walk->runs].root != 0;
    }
}

/* The task that was made of this coroutine, which executes; 0: none. One that runs
 * beneath an eager task is nobody's current task any more. */
static uintptr_t task_of(const struct stacked_walk *walk, uintptr_t coroutine)
{
    const struct py_target *target = walk->frames.target;
    uintptr_t waiter, coro, task;
    for (uint32_t i = 0; i < walk->runs; i++)
        if (walk->running[i].root == coroutine)
            return walk->running[i].task;
    task = births_task_of(coroutine);
    return task && asyncio_kind(target, walk->asyncio, task, &(bool){false}) == FUTURE_TASK &&
                   asyncio_waiter(target, walk->asyncio, task, &waiter, &coro) && coro == coroutine
               ? task
               : 0;
}

/* --- upward --- */

static uint64_t mixed(uint64_t x)
{
    x ^= x >> 33;
    x *= 0xff51afd7ed558ccdu;
    return x ^ x >> 33;
}

/* The next number of the walk's own. */
static uint64_t draw(struct stacked_walk *walk)
{
    return walk->seed = mixed(walk->seed + 0x9e3779b97f4a7c15u);
}

/* Whether the task is among these; from now on it is. */
static bool is_known(uintptr_t *tasks, uint32_t room, uint32_t count, uintptr_t task)
{
    for (uint32_t i = 0; i < room && i < count; i++)
        if (tasks[i] == task)
            return true;
    tasks[count % room] = task;
    return false;
}

/* One of the tasks that wait for this one, each as likely; 0: nobody does. Of very
 * many only some are looked at, from a place that is drawn. */
static bool choose_awaiter(struct stacked_walk *walk, uintptr_t task, struct awaiter *chosen)
{
    struct awaiters_walk awaiters;
    struct awaiter awaiter;
    struct future future;
    uintptr_t told[AWAITERS_TOLD];
    uint32_t found = 0;

    *chosen = (struct awaiter){0};
    if (!asyncio_read(walk->frames.target, walk->asyncio, task, &future) || future.state != FUTURE_PENDING)
        return false;
    awaiters_begin(&awaiters, walk->frames.target, walk->asyncio, &future);
    awaiters_turn(&awaiters, (uint32_t)draw(walk));
    while (!(found && awaiters.looked >= LOOKED_ENOUGH) && awaiters_next(&awaiters, &awaiter)) {
        if (is_known(told, AWAITERS_TOLD, found, awaiter.task))
            continue;
        if (draw(walk) % ++found == 0)
            *chosen = awaiter;
    }
    walk->looked += awaiters.looked;
    if (found > 1 || (found && awaiters.looked >= LOOKED_ENOUGH))
        walk->chosen = true;
    return found || !awaiters.cut;
}

/* Whether a suspended task's chain is whole and ends where the task waits. */
static bool measure_chain(const struct stacked_walk *walk, uintptr_t coro, uintptr_t waits_for, uint32_t *frames)
{
    struct coros_walk chain;
    struct coro one;
    *frames = 0;
    coros_begin(&chain, walk->frames.target, coro, CHAIN_LONGEST);
    while (coros_next(&chain, &one))
        ++*frames;
    return chain.end == COROS_OTHER || (chain.end == COROS_FUTURE && chain.awaited == waits_for);
}

/* Whether the climb was at this task before: a small circle at once, a larger one
 * after some rounds (Brent's way: a task is kept at each power of two). */
static bool is_circle(struct stacked_walk *walk, uintptr_t task)
{
    if (is_known(walk->passed, STACKED_PASSED, walk->climbed, task) || task == walk->slow)
        return true;
    if ((walk->climbed & (walk->climbed - 1)) == 0)
        walk->slow = task;
    return false;
}

/* Gives out what the climb comes to next; false: it ends here. */
static bool climb(struct stacked_walk *walk, struct stacked *entry)
{
    struct awaiter awaiter;
    uintptr_t waiter, coro;
    uint32_t frames;

    if (walk->inner >= walk->frames.limit)
        return false;
    if (walk->looked > LOOKED_MOST || !choose_awaiter(walk, walk->climbing, &awaiter)) {
        walk->torn = true;
        return false;
    }
    if (!awaiter.task)
        return false;
    if (is_circle(walk, awaiter.task)) {
        walk->climbing = 0;
        *entry = (struct stacked){.kind = STACKED_CYCLE};
        return true;
    }
    if (!asyncio_waiter(walk->frames.target, walk->asyncio, awaiter.task, &waiter, &coro) || waiter != awaiter.through ||
        !measure_chain(walk, coro, waiter, &frames)) {
        walk->torn = true;
        return false;
    }
    walk->climbed++;
    walk->chain_left = frames;
    walk->chain_named = markers_tasks_asked;
    walk->inner += frames + walk->chain_named;
    walk->climbing = awaiter.task;
    walk->chain = coro;
    *entry = (struct stacked){.kind = STACKED_CHAIN, .task = awaiter.task, .frames = frames + walk->chain_named};
    return true;
}

static bool give_name(struct stacked_walk *walk, struct stacked *entry)
{
    walk->chain_named = false;
    *entry = (struct stacked){.kind = STACKED_NAME, .task = walk->climbing, .inner = true};
    return true;
}

/* The next coroutine of the chain; one that is gone since it was measured ends it. */
static bool give_inner(struct stacked_walk *walk, struct stacked *entry)
{
    struct coros_walk chain;
    struct coro one;
    coros_begin(&chain, walk->frames.target, walk->chain, 2);
    if (!coros_next(&chain, &one)) {
        walk->chain_left = 0;
        walk->climbing = 0;
        walk->torn = true;
        return false;
    }
    *entry = (struct stacked){.kind = STACKED_INNER, .code = one.code, .lasti = one.lasti};
    walk->chain_left--;
    walk->chain = chain.next;
    return true;
}

/* --- work of executors --- */

static bool stacks_work = true;

void stacked_stack_work(bool asked)
{
    stacks_work = asked;
}

static enum executors_found find_future(const struct stacked_walk *walk, const struct py_frame *frame, uint32_t work, uintptr_t *future)
{
    if (work == CODE_ANYIO)
        return executors_anyio_future(walk->frames.target, walk->asyncio, frame->address, &frame->code, future);
    return executors_future(walk->frames.target, walk->asyncio, frame->address, &frame->code, future);
}

/* A worker's frame below the function that was sent to it: it comes again after those who may await that. */
static bool begin_work(struct stacked_walk *walk, const struct py_frame *frame, uint32_t work)
{
    uintptr_t future;
    enum executors_found found = find_future(walk, frame, work, &future);
    walk->seen = true;
    walk->torn |= found == EXECUTORS_TORN;
    if (found != EXECUTORS_FUTURE)
        return false;
    walk->foreign = true;
    walk->climbing = walk->slow = future;
    walk->climbed = 0;
    frames_give_again(&walk->frames, frame);
    return true;
}

static uint32_t work_of(const struct stacked_walk *walk, const struct py_frame *frame)
{
    return stacks_work && walk->asyncio && !walk->seen ? codes_work(frame->code.identity) : 0;
}

/* --- the walk --- */

void stacked_begin(struct stacked_walk *walk, const struct py_target *target, const struct asyncio *asyncio, uintptr_t tstate,
                   uint32_t limit, uint64_t seed)
{
    frames_begin(&walk->frames, target, tstate, limit);
    walk->asyncio = asyncio;
    walk->seed = seed;
    walk->runs = walk->climbed = walk->inner = walk->looked = walk->chain_left = 0;
    walk->generator = walk->ending = walk->climbing = walk->slow = walk->chain = 0;
    walk->chosen = walk->foreign = walk->torn = walk->seen = walk->chain_named = false;
    walk->tstate = tstate;
    if (asyncio)
        find_running(walk, target, tstate);
}

static bool end_task(struct stacked_walk *walk, uintptr_t task, struct stacked *entry)
{
    walk->ending = 0;
    walk->climbing = walk->slow = task;
    walk->climbed = 0;
    *entry = (struct stacked){.kind = STACKED_TASK, .task = task};
    return true;
}

/* C code called into Python here: a task's outermost frame is the first of such a group. */
static bool end_group(struct stacked_walk *walk, struct stacked *entry)
{
    uintptr_t coroutine = walk->generator, task = coroutine && walk->asyncio ? task_of(walk, coroutine) : 0;
    walk->generator = 0;
    if (!task)
        return false;
    walk->seen = true;
    if (markers_tasks_asked) {
        walk->ending = task;
        *entry = (struct stacked){.kind = STACKED_NAME, .task = task};
        return true;
    }
    return end_task(walk, task, entry);
}

/* The walk ended before the outermost frame of the task that the thread runs, so all
 * that was given out is above that. */
static bool end_unseen_task(struct stacked_walk *walk, struct stacked *entry)
{
    struct future task;
    uintptr_t loop;
    if (!walk->asyncio || walk->seen || walk->frames.end != FRAMES_LIMIT || !(loop = asyncio_running_loop(walk->frames.target, walk->tstate)))
        return false;
    for (uint32_t i = 0; i < walk->runs; i++) {
        if (!asyncio_read(walk->frames.target, walk->asyncio, walk->running[i].task, &task) || task.loop != loop)
            continue;
        walk->seen = walk->torn = true;
        *entry = (struct stacked){.kind = STACKED_TASK, .task = task.address};
        return true;
    }
    return false;
}

/* The next frame of the thread, or what ends with it; false: there is none, or others come first. */
static bool give_next(struct stacked_walk *walk, struct stacked *entry)
{
    struct py_frame frame;
    while (frames_next(&walk->frames, &frame)) {
        if (frame.kind == FRAME_GROUP_END) {
            if (end_group(walk, entry))
                return true;
            continue;
        }
        bool owned = walk->asyncio && frame.owner == walk->frames.target->layout.owner_generator;
        walk->generator = owned ? coros_of_frame(walk->frames.target, frame.address) : 0;
        uint32_t work = work_of(walk, &frame);
        if (work && begin_work(walk, &frame, work))
            return false;
        *entry = (struct stacked){.kind = STACKED_FRAME, .code = frame.code, .lasti = frame.lasti};
        return true;
    }
    return end_unseen_task(walk, entry);
}

bool stacked_next(struct stacked_walk *walk, struct stacked *entry)
{
    if (walk->ending)
        return end_task(walk, walk->ending, entry);
    if (walk->chain_named)
        return give_name(walk, entry);
    if (walk->chain_left && give_inner(walk, entry))
        return true;
    for (;;) {
        if (walk->climbing && climb(walk, entry))
            return true;
        walk->climbing = 0;
        if (give_next(walk, entry))
            return true;
        if (!walk->climbing)
            return false;
    }
}
