/* SPDX-License-Identifier: MIT
 *
 * The runtime, its interpreters and thread states, their locks; the interpreter's own
 * table of offsets; and all readers by a layout that such a table made.
 *
 * Input: version, what is done, thread; then edits (tests/fuzz/image.h).
 */
#include "sampler/cpython/awaiters.h"
#include "sampler/cpython/coros.h"
#include "sampler/cpython/frames.h"
#include "sampler/cpython/glance.h"
#include "sampler/cpython/layout_tables.h"
#include "sampler/cpython/objects.h"
#include "sampler/cpython/states.h"
#include "sampler/text.h"
#include "tests/fuzz/fuzz.h"
#include "tests/fuzz/image.h"
#include "tests/unit/fake_births.h"
#include "tests/unit/fake_thread.h"

enum { HEAD = 3, VERSIONS = AFTER_LAST_MINOR - FIRST_MINOR, FIRST_WITH_OFFSETS = 13, TASKS = 2, LOOK = 64 };
enum { OWN_OFFSETS = 1, WALK = 2 }; /* bits of what is done */
enum { RUNTIME_BYTES = 65536, INTERP_BYTES = 16384, GIL_AT = 0x62000000, SEMAPHORE_AT = 0x63000000 };
#define INTERP(i) ((i) ? 0x64000000u : FAKE_INTERP_AT)
#define THREAD(i) ((i) ? 0x61000000u + 0x2000u * (unsigned)(i) : FAKE_TSTATE_AT)
#define TID(i) (1000 + (i))
#define PTHREAD(i) (0x7f0000000000u + 0x1000u * (unsigned)(i))

enum { /* what may be read, at most */
    STATE_READS = 16,
    OFFSET_READS = 128 + 20480 / 8 * 2 * 4, /* the table, and the search for the pending calls' lock */
    OWN_READS = (LOOK + 2 * STATES_INTERPRETERS_MAX) * STATE_READS, /* to find the own state, in a handler */
    ALL_READS = (STATES_THREADS_MAX + 2 * STATES_INTERPRETERS_MAX) * STATE_READS,
    LOCK_READS = STATES_INTERPRETERS_MAX * 8,
    REST_READS = 1 << 20 /* the other readers have targets of their own */
};

static struct scene {
    struct image *image;
    struct fake_world world;
} scenes[VERSIONS];

static const struct layout_debug_row *const all_rows[] = {layout_3_13_debug_rows, layout_3_14_debug_rows, layout_3_15_debug_rows};
static const struct layout_debug_places *const all_places[] = {&layout_3_13_debug_places, &layout_3_14_debug_places, &layout_3_15_debug_places};

/* --- the runtime --- */

static void put_offsets(struct fake *runtime, const struct layout *layout)
{
    const struct layout_debug_places *places = all_places[layout->minor - FIRST_WITH_OFFSETS];
    memcpy(runtime->bytes, "xdebugpy", 8);
    fake_put_word(runtime, 8, 0x030003f0u | (uint32_t)layout->minor << 16);
    for (const struct layout_debug_row *row = all_rows[layout->minor - FIRST_WITH_OFFSETS]; row->at; row++) {
        int32_t value;
        memcpy(&value, (const char *)layout + row->member, sizeof value);
        fake_put_word(runtime, row->at, (uint64_t)value);
    }
    fake_put_word(runtime, places->gil, 7000);
    fake_put_word(runtime, places->gil_locked, 7000 + (uint64_t)layout->gil_locked);
    fake_put_word(runtime, places->gil_holder, 7000 + (uint64_t)layout->gil_last_holder);
    fake_put_word(runtime, places->gc, (uint64_t)layout->interp_gc_collecting - places->gc_lists_if);
    fake_put_word(runtime, places->gc_collecting, places->gc_lists_if);
    if (places->gc_frame)
        fake_put_word(runtime, places->gc_frame, (uint64_t)(layout->interp_gc_frame - layout->interp_gc_collecting) + places->gc_lists_if);
    fake_put_word(runtime, layout->runtime_pending_lock + 8, 32);
}

static void put_runtime(const struct layout *layout)
{
    struct fake runtime = fake_new(RUNTIME_AT, RUNTIME_BYTES);
    if (layout->minor >= FIRST_WITH_OFFSETS)
        put_offsets(&runtime, layout);
    else if (layout->runtime_pending_lock != LAYOUT_NONE)
        fake_put_word(&runtime, layout->runtime_pending_lock, SEMAPHORE_AT);
    fake_put_int(&runtime, layout->runtime_initialized, 1);
    fake_put_word(&runtime, layout->runtime_interpreters_head, INTERP(0));
    fake_put_word(&runtime, layout->runtime_interpreters_main, INTERP(0));
    if (layout->interp_gil == LAYOUT_NONE)
        fake_put_word(&runtime, layout->runtime_tstate_current, THREAD(1));
    fake_place(&runtime);
}

static void put_interp(const struct layout *layout, int i, uintptr_t threads, uintptr_t next)
{
    struct fake interp = fake_new(INTERP(i), INTERP_BYTES);
    fake_put_word(&interp, layout->interp_id, (uint64_t)i);
    fake_put_word(&interp, layout->interp_threads_head, threads);
    fake_put_word(&interp, layout->interp_next, next);
    if (layout->interp_gil != LAYOUT_NONE)
        fake_put_word(&interp, layout->interp_gil, GIL_AT);
    if (layout->interp_pending_lock != LAYOUT_NONE)
        fake_put_word(&interp, layout->interp_pending_lock, SEMAPHORE_AT);
    fake_place(&interp);
}

static void put_state(const struct layout *layout, struct fake *thread, int i, uintptr_t interp, uintptr_t next)
{
    fake_put_word(thread, layout->thread_interp, interp);
    fake_put_word(thread, layout->thread_next, next);
    fake_put_word(thread, layout->thread_native_id, (uint64_t)TID(i));
    fake_put_word(thread, layout->thread_id, PTHREAD(i));
    fake_put_word(thread, layout->thread_unique_id, (uint64_t)i + 1);
    if (layout->thread_status != LAYOUT_NONE)
        fake_put_int(thread, layout->thread_status, i == 1 ? 1u << layout->status_active_bit : i == 2 ? layout->status_dead_mask : 0);
}

static void put_locks(const struct layout *layout)
{
    const uintptr_t semaphore = 1;
    struct fake gil = fake_new(GIL_AT, 64);
    fake_words(SEMAPHORE_AT, &semaphore, 1);
    if (layout->interp_gil == LAYOUT_NONE)
        return;
    fake_put_int(&gil, layout->gil_locked, 1);
    fake_put_word(&gil, layout->gil_last_holder, THREAD(1));
    fake_place(&gil);
}

/* The first thread runs functions and a task; the others are there. */
static void put_threads(struct fake_world *world)
{
    const struct layout *layout = &world->target.layout;
    struct fake_thread thread = fake_thread_of(world);
    for (int i = 0; i < 3; i++)
        fake_call(&thread, fake_function(&world->target, i, "run", "/app/main.py"));
    fake_step(&thread, 0, 2);
    struct fake state = fake_tstate_new(&thread, fake_task_at(0));
    put_state(layout, &state, 0, INTERP(0), THREAD(1));
    fake_place(&state);
    for (int i = 1; i < 3; i++) {
        struct fake other = fake_new(THREAD(i), 2048);
        put_state(layout, &other, i, INTERP(i == 2), 0);
        fake_place(&other);
    }
}

/* --- what is asked --- */

static void ask_states(const struct py_target *target, uint8_t thread, bool all)
{
    struct states_walk walk;
    struct state state;
    image_allow(STATE_READS);
    states_phase(target);
    for (int i = 0; i < 3; i++) {
        image_allow(8 * STATE_READS);
        if (states_read(target, THREAD(i), &state))
            FUZZ_HOLDS(state.interp && state.tid >= 0);
        states_is_main(target, states_interp(target, THREAD(i)));
        states_is_of(target, THREAD(i), TID(i), PTHREAD(i));
        FUZZ_HOLDS(!states_holds_gil(target, THREAD(i)) || !states_gil_is_free(target, THREAD(i)) || target->layout.interp_gil == LAYOUT_NONE);
    }
    image_allow(OWN_READS);
    states_find_own(target, TID(thread), PTHREAD(thread), LOOK);
    image_allow(LOCK_READS);
    states_pending_lock_is_free(target);
    if (!all)
        return;
    image_allow(ALL_READS);
    for (states_begin(&walk, target); states_next(&walk, &state);)
        FUZZ_HOLDS(walk.threads <= STATES_THREADS_MAX && walk.interps <= STATES_INTERPRETERS_MAX && state.address);
}

/* Whatever an interpreter's own offsets made of the layout, nobody may go beyond his buffers. */
static void ask_the_others(const struct fake_world *world, const struct py_target *target)
{
    struct frames_walk frames;
    struct py_frame frame;
    struct coros_walk chain;
    struct coro coro;
    struct awaiters_walk awaiters;
    struct awaiter awaiter;
    struct future future;
    struct py_str str;
    struct glance glance[TASKS];
    uintptr_t tasks[4];
    char name[TEXT_NAME_MAX];

    image_allow(REST_READS);
    frames_begin(&frames, target, THREAD(0), LOOK);
    while (frames_next(&frames, &frame))
        if (frame.kind == FRAME_PYTHON) {
            objects_str(target, frame.code.qualname, &str);
            code_line_in_place(target, &frame.code, frame.lasti);
            containers_local(target, frame.address, &frame.code, "self");
        }
    asyncio_running_loop(target, THREAD(0));
    asyncio_current(target, &world->asyncio, THREAD(0), tasks, 4);
    for (uint32_t i = 0; i < TASKS; i++) {
        glance[i] = (struct glance){.task = fake_task_at(i), .asyncio = &world->asyncio};
        coros_begin(&chain, target, fake_coro_at(i, 0), LOOK);
        while (coros_next(&chain, &coro))
            coros_of_frame(target, coro.frame);
        asyncio_name(target, &world->asyncio, fake_task_at(i), name, sizeof name);
        if (!asyncio_read(target, &world->asyncio, fake_task_at(i), &future))
            continue;
        awaiters_begin(&awaiters, target, &world->asyncio, &future);
        while (awaiters_next(&awaiters, &awaiter))
            ;
    }
    glance_batch(target, glance, TASKS);
}

static void ask(struct scene *scene, uint8_t what, uint8_t thread)
{
    struct py_target target = scene->world.target;
    fake_births_reset();
    reset_coros();
    reset_awaiters();
    if (what & OWN_OFFSETS) {
        image_allow(OFFSET_READS);
        layout_read_debug_offsets(&target.layout, RUNTIME_AT);
    }
    ask_states(&target, thread % 3, what & WALK);
    ask_the_others(&scene->world, &target);
}

/* --- the target --- */

static struct scene *scene_of(uint8_t version)
{
    struct scene *scene = &scenes[version % VERSIONS];
    struct fake_world *world = &scene->world;
    const struct layout *layout = &world->target.layout;
    if (scene->image)
        return scene;
    fake_asyncio_start(world, FIRST_MINOR + version % VERSIONS, TASKS, 4096);
    fake_task(world, 0, 2);
    fake_task(world, 1, 2);
    fake_task_awaits(world, 1, 2, 0);
    put_runtime(layout);
    put_interp(layout, 0, THREAD(0), INTERP(1));
    put_interp(layout, 1, THREAD(2), 0);
    put_locks(layout);
    put_threads(world);
    scene->image = image_seal();
    image_record_begin(scene->image);
    ask(scene, OWN_OFFSETS | WALK, 1);
    image_record_end();
    return scene;
}

void fuzz_input(const uint8_t *data, size_t size)
{
    if (size < HEAD)
        return;
    struct scene *scene = scene_of(data[0]);
    image_begin(scene->image, data + HEAD, size - HEAD);
    ask(scene, data[1], data[2]);
}

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t most, unsigned seed)
{
    return image_mutate(data, size, most, seed, HEAD);
}
