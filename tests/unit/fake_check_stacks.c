/* SPDX-License-Identifier: MIT
 * stacks: passes over a thread's frames, whole, cut and torn, and what they
 * become in the profile; and records of CPU ticks, which must say the same. */
#include "sampler/stacks.h"

#include <pthread.h>
#include <unistd.h>

#include "hooks/mem.h"
#include "hooks/real.h"
#include "hooks/sigaction.h"
#include "hooks/threads.h"
#include "sampler/labels.h"
#include "sampler/stacked.h"
#include "sampler/tick.h"
#include "tests/unit/fake_births.h"
#include "tests/unit/fake_contexts.h"
#include "tests/unit/fake_thread.h"
#include "tests/unit/fake_work.h"

#define TSTATE 0x50000000u
#define CFRAME 0x51000000u
#define CODE 0x52000000u
#define FRAME(i) (0x53000000u + 0x1000u * (unsigned)(i))
#define ENTRY 0x54000000u /* the marker under the Python frames, 3.12+ */
#define BASE 0x54001000u  /* 3.15's sentinel */
#define FUNCTION(i) (0x60000000u + 0x1000000u * (unsigned)(i))
#define DEPTH 8

Suite *suite_stacks(void);

static struct py_target target;
static struct stacks stacks;
static struct stack_copy *copy;

static void start(int minor)
{
    target = fake_target(minor);
    ck_assert_int_eq(mem_init((size_t)64 << 20), 0);
    ck_assert_int_eq(codes_start(), 0);
    stacks = (struct stacks){.profile = profile_new(), .paths = {.full = true}, .target = &target};
    ck_assert_ptr_nonnull(stacks.profile);
    stacks.unknown = profile_intern(stacks.profile, "[unknown]", 9, 0);
    copy = stacks_new_copy(DEPTH);
    ck_assert_ptr_nonnull(copy);
}

static void marker(uintptr_t address, uintptr_t previous)
{
    struct fake frame = fake_frame_new(&target, address, 0x3, 0, previous);
    fake_put_byte(&frame, target.layout.frame_owner, target.layout.owner_entry);
    fake_place(&frame);
}

static uintptr_t bottom(void)
{
    if (target.layout.frame_is_entry != LAYOUT_NONE)
        return 0;
    bool sentinel = target.layout.thread_base_frame != LAYOUT_NONE;
    if (sentinel)
        marker(BASE, 0);
    marker(ENTRY, sentinel ? BASE : 0);
    return ENTRY;
}

static void thread_at(uintptr_t current)
{
    const struct layout *layout = &target.layout;
    struct fake tstate = fake_new(TSTATE, 1024);
    if (layout->thread_cframe != LAYOUT_NONE) {
        struct fake cframe = fake_new(CFRAME, 32);
        fake_put_word(&cframe, layout->cframe_current, current);
        fake_put_word(&tstate, layout->thread_cframe, fake_place(&cframe));
    } else {
        fake_put_word(&tstate, layout->thread_current_frame, current);
    }
    if (layout->thread_base_frame != LAYOUT_NONE)
        fake_put_word(&tstate, layout->thread_base_frame, BASE);
    fake_place(&tstate);
}

/* So many frames, leaf at 0; frame i runs code[i] (0: the same code as all) at unit i % 10. */
static void chain(int frames, const uintptr_t *code)
{
    uintptr_t below = bottom();
    fake_code(&target, CODE);
    for (int i = frames; i-- > 0;) {
        struct fake fake = fake_frame_new(&target, FRAME(i), code && code[i] ? code[i] : CODE, 2 * (i % CODE_UNITS), below);
        if (target.layout.frame_is_entry != LAYOUT_NONE)
            fake_put_byte(&fake, target.layout.frame_is_entry, i == frames - 1);
        below = fake_place(&fake);
    }
    thread_at(below);
}

static int capture(struct stack_copy *into)
{
    return (int)stacks_capture(into, &target, TSTATE, 1);
}

static const char *text(profile_stack stack)
{
    static char text[4096];
    text[profile_text(stacks.profile, stack, text, sizeof text - 1)] = '\0';
    return text;
}

/* --- capture --- */

START_TEST(a_whole_stack)
{
    start(_i);
    chain(3, NULL);
    ck_assert_int_eq(capture(copy), FRAMES_COMPLETE);
    ck_assert(stacks_is_whole(copy->end));
    ck_assert_uint_eq(copy->frames, 3);
    ck_assert_uint_eq(copy->cut, 0);
    ck_assert_int_eq(copy->entry[2].lasti, 4);
    ck_assert(stacks_resolve(&stacks, copy));
    ck_assert_str_eq(text(stacks_intern(&stacks, copy)),
                     "Job.run (/app/main.py:41);Job.run (/app/main.py:40);Job.run (/app/main.py:40)");
    ck_assert_uint_eq(stacks.unreadable, 0);
}
END_TEST

START_TEST(a_deep_stack_is_cut_at_the_root)
{
    start(_i);
    chain(DEPTH + 3, NULL);
    ck_assert_int_eq(capture(copy), FRAMES_COMPLETE);
    ck_assert_uint_eq(copy->frames, DEPTH);
    ck_assert_uint_eq(copy->cut, 3);
    ck_assert_int_eq(copy->entry[0].lasti, 0); /* the leaf stays */
    const char *whole = text(stacks_intern(&stacks, copy));
    ck_assert_ptr_eq(strstr(whole, "[truncated 3];Job.run"), whole);
}
END_TEST

START_TEST(a_stack_beyond_the_limit_is_cut_where_the_walk_ends)
{
    start(_i);
    chain(DEPTH * 5, NULL);
    ck_assert_int_eq(capture(copy), FRAMES_LIMIT);
    ck_assert(stacks_is_whole(copy->end));
    ck_assert_uint_eq(copy->frames, DEPTH);
    ck_assert_uint_eq(copy->frames + copy->cut, DEPTH * 4);
}
END_TEST

START_TEST(exactly_as_deep_as_there_is_room)
{
    start(_i);
    chain(DEPTH, NULL);
    ck_assert_int_eq(capture(copy), FRAMES_COMPLETE);
    ck_assert_uint_eq(copy->frames, DEPTH);
    ck_assert_uint_eq(copy->cut, 0);
    ck_assert_str_ne(text(stacks_intern(&stacks, copy)), "");
    ck_assert_ptr_null(strstr(text(stacks_intern(&stacks, copy)), "truncated"));
}
END_TEST

START_TEST(a_torn_chain_is_no_stack)
{
    start(_i);
    chain(3, NULL);
    struct fake leaf = fake_frame_new(&target, FRAME(0), CODE, 0, FRAME(1) + 4);
    fake_place(&leaf);
    thread_at(FRAME(0));
    ck_assert_int_eq(capture(copy), FRAMES_TORN);
    ck_assert(!stacks_is_whole(copy->end));
    leaf = fake_frame_new(&target, FRAME(0), CODE, 0, 0x7fff0000);
    fake_place(&leaf);
    ck_assert(!stacks_is_whole(stacks_capture(copy, &target, TSTATE, 1)));
}
END_TEST

START_TEST(no_frames_are_an_empty_stack)
{
    start(_i);
    bottom();
    thread_at(0);
    ck_assert_int_eq(capture(copy), FRAMES_EMPTY);
    ck_assert(!stacks_is_whole(copy->end));
    ck_assert_uint_eq(copy->frames, 0);
    fake_reset();
    ck_assert_int_eq(capture(copy), FRAMES_FAULT);
}
END_TEST

/* --- equal or not --- */

START_TEST(equal_passes)
{
    start(_i);
    struct stack_copy *other = stacks_new_copy(DEPTH);
    chain(4, NULL);
    capture(copy);
    capture(other);
    ck_assert(stacks_equal(copy, other));
    ck_assert(stacks_equal(copy, copy));
}
END_TEST

START_TEST(passes_differ_by_anything)
{
    start(_i);
    struct stack_copy *other = stacks_new_copy(DEPTH);
    chain(4, NULL);
    capture(copy);
    capture(other);
    other->entry[3].lasti += 2;
    ck_assert(!stacks_equal(copy, other));
    capture(other);
    other->entry[0].identity ^= 2;
    ck_assert(!stacks_equal(copy, other));
    capture(other);
    other->frames--;
    ck_assert(!stacks_equal(copy, other));
    capture(other);
    other->cut++;
    ck_assert(!stacks_equal(copy, other));
    capture(other);
    other->end = FRAMES_LIMIT;
    ck_assert(!stacks_equal(copy, other));
}
END_TEST

/* --- into the profile --- */

START_TEST(what_is_not_known_and_cannot_be_read_is_unknown)
{
    start(_i);
    chain(2, NULL);
    capture(copy);
    copy->entry[0].identity ^= 2; /* freed since, and another at its address */
    ck_assert(!stacks_resolve(&stacks, copy));
    ck_assert_str_eq(text(stacks_intern(&stacks, copy)), "Job.run (/app/main.py:40);[unknown]");
    ck_assert_uint_eq(stacks.unreadable, 1);
}
END_TEST

/* A tick whose names another handler is still writing: no address, wait. */
START_TEST(what_is_settled_is_not_sought_in_memory)
{
    struct py_code code;
    start(_i);
    chain(1, NULL);
    capture(copy);
    copy->entry[0].code = 0;
    ck_assert(!stacks_resolve(&stacks, copy));
    ck_assert(code_read(&target, CODE, &code) && codes_settle(&target, &code));
    ck_assert(!stacks_resolve(&stacks, copy));
    codes_drain();
    ck_assert(stacks_resolve(&stacks, copy));
    ck_assert_str_eq(text(stacks_intern(&stacks, copy)), "Job.run (/app/main.py:40)");
}
END_TEST

START_TEST(equal_copies_are_one_stack)
{
    start(_i);
    chain(4, NULL);
    capture(copy);
    profile_stack stack = stacks_intern(&stacks, copy);
    ck_assert_uint_eq(stacks_intern(&stacks, copy), stack);
    copy->entry[0].lasti = 8;
    ck_assert_uint_ne(stacks_intern(&stacks, copy), stack);
    ck_assert_uint_eq(profile_parent(stacks.profile, stacks_intern(&stacks, copy)), profile_parent(stacks.profile, stack));
}
END_TEST

START_TEST(an_empty_copy_is_the_root)
{
    start(_i);
    ck_assert_uint_eq(stacks_intern(&stacks, copy), PROFILE_ROOT);
}
END_TEST

/* --- asyncio's loop --- */

static uintptr_t function(uintptr_t address, const char *name, const char *path)
{
    struct fake code = fake_code_new(&target, address);
    fake_put_word(&code, target.layout.code_qualname, fake_str(&target, address + 0x50000, name));
    fake_put_word(&code, target.layout.code_filename, fake_str(&target, address + 0x60000, path));
    return fake_place(&code);
}

#define LIBRARY "/usr/lib/python3.13/"
static profile_stack stack_of(const char *const *leaf_first, int frames)
{
    uintptr_t code[DEPTH] = {0};
    for (int i = 0; i < frames; i++) {
        const char *path = strstr(leaf_first[i], "Selector") ? LIBRARY "selectors.py" :
                           strstr(leaf_first[i], "EventLoop") ? LIBRARY "asyncio/base_events.py" :
                           strstr(leaf_first[i], "Thread.") ? LIBRARY "threading.py" : "/app/main.py";
        code[i] = function(FUNCTION(i), leaf_first[i], path);
    }
    chain(frames, code);
    ck_assert_int_eq(capture(copy), FRAMES_COMPLETE);
    return stacks_intern(&stacks, copy);
}

static uint32_t flags_of(const char *const *leaf_first, int frames)
{
    return profile_stack_flags(stacks.profile, stack_of(leaf_first, frames));
}

START_TEST(an_idle_loop)
{
    static const char *const idle[] = {"EpollSelector.select", "BaseEventLoop._run_once", "BaseEventLoop.run_forever", "main"};
    start(_i);
    ck_assert_uint_eq(flags_of(idle, 4), STACK_IN_LOOP | STACK_IDLE);
}
END_TEST

START_TEST(a_busy_loop)
{
    static const char *const busy[] = {"Job.run", "Handle._run", "BaseEventLoop._run_once", "BaseEventLoop.run_forever"};
    start(_i);
    ck_assert_uint_eq(flags_of(busy, 4), STACK_IN_LOOP);
}
END_TEST

START_TEST(a_selector_of_the_program)
{
    static const char *const below[] = {"EpollSelector.select", "Job.run", "BaseEventLoop._run_once"};
    start(_i);
    ck_assert_uint_eq(flags_of(below, 3), STACK_IN_LOOP); /* a callback that selects: the loop is busy */
}
END_TEST

START_TEST(a_selector_without_a_loop)
{
    static const char *const alone[] = {"EpollSelector.select", "BaseEventLoop.run_forever", "main"};
    start(_i);
    ck_assert_uint_eq(flags_of(alone, 3), 0);
}
END_TEST

/* --- what a thread began with --- */

START_TEST(threads_are_known_by_their_first_function)
{
    static const char *const serves[] = {"Job.run", "serve", "Thread.run", "Thread._bootstrap"};
    static const char *const works[] = {"Job.run", "serve", "Thread.run", "Thread._bootstrap", "work", "Thread.run", "Thread._bootstrap"};
    start(_i);
    profile_stack stack = stack_of(serves, 4);
    uint64_t serve = stacks_began_with(&stacks, stack), thread = stacks_began_with(&stacks, profile_parent(stacks.profile, profile_parent(stacks.profile, stack)));
    ck_assert_uint_ne(serve, 0);
    ck_assert_uint_ne(thread, 0);
    ck_assert_uint_ne(thread, serve); /* all there is to it */
    ck_assert_uint_eq(stacks_began_with(&stacks, profile_parent(stacks.profile, stack)), serve);
    copy->entry[1].lasti = 8; /* elsewhere in it */
    copy->entry[1].frame = 0;
    ck_assert_uint_ne(stacks_intern(&stacks, copy), stack);
    ck_assert_uint_eq(stacks_began_with(&stacks, stacks_intern(&stacks, copy)), serve);
    uint64_t work = stacks_began_with(&stacks, stack_of(works, 7));
    ck_assert_uint_ne(work, serve);
    ck_assert_uint_ne(work, thread);
    ck_assert_uint_eq(stacks_began_with(&stacks, PROFILE_ROOT), 0);
}
END_TEST

/* [overflow] is everybody's: it is no loop's. */
START_TEST(overflow_has_no_flags)
{
    static const char *const idle[] = {"EpollSelector.select", "BaseEventLoop._run_once"};
    start(_i);
    profile_freeze(stacks.profile, true);
    flags_of(idle, 2);
    ck_assert_uint_eq(profile_stack_flags(stacks.profile, profile_overflow(stacks.profile)), 0);
    ck_assert_uint_eq(profile_stack_flags(stacks.profile, PROFILE_ROOT), 0);
}
END_TEST

/* --- tasks --- */

#define TASKS 16
#define LIBRARY_EVENTS LIBRARY "asyncio/events.py"
#define LIBRARY_EVENT_LOOP LIBRARY "asyncio/base_events.py"

static struct fake_world world;
static struct fake_thread thread;

/* A loop's thread: task 0, of two coroutines, runs a function. */
static void start_task(int minor)
{
    fake_asyncio_start(&world, minor, TASKS, 1 << 20);
    fake_births_reset();
    ck_assert_int_eq(mem_init((size_t)64 << 20), 0);
    ck_assert_int_eq(codes_start(), 0);
    stacks = (struct stacks){.profile = profile_new(), .paths = {.full = true}, .target = &world.target};
    stacks.unknown = profile_intern(stacks.profile, "[unknown]", 9, 0);
    thread = fake_thread_of(&world);
    fake_call(&thread, fake_function(&world.target, 0, "main", "/app/m.py"));
    fake_call(&thread, fake_function(&world.target, 1, "BaseEventLoop._run_once", LIBRARY_EVENT_LOOP));
    fake_call(&thread, fake_function(&world.target, 2, "Handle._run", LIBRARY_EVENTS));
    fake_task(&world, 0, 2);
    fake_step(&thread, 0, 2);
    fake_call(&thread, fake_function(&world.target, 3, "work", "/app/m.py"));
}

static void awaited_by(uint32_t task, int levels, uint32_t other)
{
    fake_task(&world, task, levels);
    fake_task_awaits(&world, task, levels, other);
}

static void publish(void)
{
    ck_assert_int_ge(asyncios_publish(&world.asyncio), 0);
}

/* The thread is ours, so that it can tick. */
static void place_thread(uintptr_t task)
{
    struct fake tstate = fake_tstate_new(&thread, task);
    fake_put_word(&tstate, world.target.layout.thread_native_id, (uint64_t)gettid());
    fake_put_word(&tstate, world.target.layout.thread_id, (uint64_t)pthread_self());
    fake_place(&tstate);
    publish();
}

static struct stack_copy *captured(uint32_t depth, uint64_t seed)
{
    struct stack_copy *taken = stacks_new_copy(depth);
    ck_assert(stacks_is_whole(stacks_capture(taken, &world.target, FAKE_TSTATE_AT, seed)));
    return taken;
}

static const char *functions(profile_stack stack)
{
    return fake_functions(stacks.profile, stack);
}

START_TEST(awaiters_stand_between_a_task_and_its_loop)
{
    start_task(_i);
    awaited_by(1, 2, 0);
    awaited_by(2, 1, 1);
    place_thread(fake_task_at(0));
    copy = captured(32, 1);
    ck_assert_str_eq(functions(stacks_intern(&stacks, copy)), "main;BaseEventLoop._run_once;Handle._run;t2.0;t1.0;t1.1;t0.0;t0.1;work");
    ck_assert_uint_eq(copy->task, fake_task_at(0));
    ck_assert_uint_eq(copy->task_frames, 6);
    ck_assert(copy->awaited && !copy->cycle && !copy->chosen && !copy->torn_awaiter);
}
END_TEST

START_TEST(the_stack_of_a_task)
{
    bool sure;
    start_task(_i);
    place_thread(fake_task_at(0));
    copy = captured(32, 1);
    ck_assert(copy->task && !copy->awaited);
    ck_assert_str_eq(functions(stacks_intern_task(&stacks, copy, PROFILE_ROOT)), "main;t0.0;t0.1;work");
    profile_stack base = stacks_push_marker(&stacks, PROFILE_ROOT, "[base]");
    ck_assert_str_eq(functions(stacks_intern_task(&stacks, copy, base)), "[base];t0.0;t0.1;work");
    ck_assert_str_eq(functions(stacks_intern_driver(&stacks, copy, &sure)), "main");
    ck_assert(sure);
    ck_assert_str_eq(functions(stacks_intern(&stacks, copy)), "main;BaseEventLoop._run_once;Handle._run;t0.0;t0.1;work");
}
END_TEST

START_TEST(on_the_marker_of_a_thread)
{
    bool sure;
    start_task(_i);
    place_thread(fake_task_at(0));
    copy = captured(32, 1);
    copy->root = stacks_thread_marker(&stacks, "[thread a]", 10);
    profile_stack other = stacks_thread_marker(&stacks, "[thread b]", 10), stack = stacks_intern(&stacks, copy);
    profile_stack driver = stacks_intern_driver(&stacks, copy, &sure), twin = stacks_intern_task(&stacks, copy, PROFILE_ROOT);
    ck_assert_str_eq(functions(stack), "[thread a];main;BaseEventLoop._run_once;Handle._run;t0.0;t0.1;work");
    ck_assert_str_eq(functions(driver), "[thread a];main");
    ck_assert(sure);
    ck_assert_str_eq(functions(twin), "[thread a];main;t0.0;t0.1;work");
    ck_assert_uint_eq(stacks_marker_of(&stacks, stack), copy->root);
    profile_set_twin(stacks.profile, stack, twin);
    uint64_t kind = stacks_began_with(&stacks, stack);

    profile_stack bare = stacks_move(&stacks, stack, PROFILE_ROOT);
    ck_assert_str_eq(functions(bare), "main;BaseEventLoop._run_once;Handle._run;t0.0;t0.1;work");
    ck_assert_str_eq(functions(profile_twin(stacks.profile, bare)), "main;t0.0;t0.1;work");
    ck_assert_uint_eq(stacks_marker_of(&stacks, bare), PROFILE_ROOT);
    ck_assert_uint_eq(stacks_began_with(&stacks, bare), kind);
    profile_stack moved = stacks_move(&stacks, bare, other);
    ck_assert_str_eq(functions(moved), "[thread b];main;BaseEventLoop._run_once;Handle._run;t0.0;t0.1;work");
    ck_assert_str_eq(functions(profile_twin(stacks.profile, moved)), "[thread b];main;t0.0;t0.1;work");
    ck_assert_uint_eq(stacks_move(&stacks, moved, other), moved);
    ck_assert_uint_eq(stacks_move(&stacks, profile_overflow(stacks.profile), other), profile_overflow(stacks.profile));
    copy->cut = 7;
    ck_assert_str_eq(functions(stacks_intern(&stacks, copy)), "[thread a];[truncated 7];main;BaseEventLoop._run_once;Handle._run;t0.0;t0.1;work");
}
END_TEST

START_TEST(a_thread_without_a_task_has_no_stack_of_one)
{
    bool sure;
    start_task(_i);
    place_thread(0);
    copy = captured(32, 1);
    ck_assert_uint_eq(copy->task, 0);
    ck_assert_uint_eq(stacks_intern_task(&stacks, copy, PROFILE_ROOT), PROFILE_ROOT);
    ck_assert_str_eq(functions(stacks_intern_driver(&stacks, copy, &sure)), "main");
    ck_assert(sure); /* by _run_once */
}
END_TEST

/* uvloop has no _run_once: its driver is what is below the task. */
START_TEST(a_driver_that_nothing_names)
{
    bool sure;
    start_task(_i);
    fake_function(&world.target, 1, "run", "/app/m.py");
    fake_function(&world.target, 2, "call", "/app/m.py");
    place_thread(fake_task_at(0));
    ck_assert_str_eq(functions(stacks_intern_driver(&stacks, captured(32, 1), &sure)), "main;run;call");
    ck_assert(sure);
    place_thread(0);
    ck_assert_str_eq(functions(stacks_intern_driver(&stacks, captured(32, 1), &sure)), "main;run;call;t0.0;t0.1;work");
    ck_assert(!sure);
}
END_TEST

/* Two wait: the same of them with the same seed. */
START_TEST(passes_with_one_seed_are_equal)
{
    int differ = 0;
    start_task(_i);
    awaited_by(1, 1, 0);
    awaited_by(2, 1, 0);
    place_thread(fake_task_at(0));
    const struct stack_copy *first = captured(32, 0);
    for (uint64_t seed = 0; seed < 64; seed++) {
        copy = captured(32, seed);
        ck_assert(copy->chosen && copy->awaited);
        ck_assert(stacks_equal(copy, captured(32, seed)));
        differ += !stacks_equal(first, copy);
    }
    ck_assert_int_gt(differ, 16);
    ck_assert_int_lt(differ, 48);
}
END_TEST

START_TEST(passes_differ_by_their_task)
{
    start_task(_i);
    awaited_by(1, 1, 0);
    place_thread(fake_task_at(0));
    copy = captured(32, 1);
    struct stack_copy *other = captured(32, 1);
    ck_assert(stacks_equal(copy, other));
    other->task = fake_task_at(1);
    ck_assert(!stacks_equal(copy, other));
    other = captured(32, 1);
    other->task_frames--;
    ck_assert(!stacks_equal(copy, other));
}
END_TEST

/* A chain that changes while it is given out leaves nothing unset. */
static uint32_t until_torn;

static void tear(uintptr_t address, size_t size)
{
    if (until_torn && --until_torn == 0)
        fake_world_byte(&world, fake_coro_at(1, 1), world.target.layout.gen_state, (uint8_t)world.target.layout.gen_finished);
}

START_TEST(a_chain_torn_on_the_way_is_no_stack)
{
    bool torn = false;
    start_task(_i);
    awaited_by(1, 3, 0);
    place_thread(fake_task_at(0));
    uint32_t depth = captured(32, 1)->frames;
    fake_on_read(tear);
    for (uint32_t at = 1; at < 400; at++) {
        copy = stacks_new_copy(32);
        until_torn = at;
        fake_task_waits(&world, 1, 3, fake_task_at(0));
        enum frames_end end = stacks_capture(copy, &world.target, FAKE_TSTATE_AT, 1);
        torn |= end == FRAMES_TORN;
        for (uint32_t i = 0; stacks_is_whole(end) && i < copy->frames; i++)
            ck_assert_uint_ne(copy->entry[i].identity, 0);
        ck_assert(!stacks_is_whole(end) || copy->frames == depth || copy->torn_awaiter);
    }
    ck_assert(torn);
}
END_TEST

/* An eager task within its creator: both have chains, the inner one's is torn. */
START_TEST(a_torn_chain_is_not_forgotten_over_the_next)
{
    start_task(_i);
    fake_call(&thread, fake_function(&world.target, 4, "create_task", "/app/m.py"));
    fake_task(&world, 3, 1);
    fake_step(&thread, 3, 1);
    fake_births.coroutine_of_task = fake_coro_at(0, 0);
    fake_births.task = fake_task_at(0);
    awaited_by(1, 3, 3);
    awaited_by(2, 3, 0);
    place_thread(fake_task_at(3));
    uint32_t whole = captured(32, 1)->frames;
    ck_assert_uint_eq(whole, 14);
    fake_on_read(tear);
    for (uint32_t at = 1; at < 400; at++) {
        copy = stacks_new_copy(32);
        until_torn = at;
        fake_task_waits(&world, 1, 3, fake_task_at(3));
        if (stacks_is_whole(stacks_capture(copy, &world.target, FAKE_TSTATE_AT, 1)))
            for (uint32_t i = 0; i < copy->frames; i++)
                ck_assert_uint_ne(copy->entry[i].identity, 0);
    }
}
END_TEST

/* --- records of CPU ticks --- */

static bool asks_for_exceptions;

/* What the thread's own tick leaves, at the tail of its ring. */
static struct ring *ticked(uint32_t depth, uint32_t ring_bytes)
{
    struct tick_options options = {.target = &world.target, .depth = depth, .period_ns = 1000000, .clock = TIMER_CPU, .exceptions = asks_for_exceptions};
    if (!threads_started()) {
        real_resolve();
        timer_init();
        ck_assert_int_eq(threads_start(16384), 0);
    }
    struct thread *self = threads_adopt(gettid());
    ck_assert_ptr_nonnull(self);
    struct ring *ring = ring_init(self->space, ring_bytes);
    atomic_store(&self->tstate, FAKE_TSTATE_AT);
    ck_assert_int_eq(tick_start(&options), 0);
    tick_enable(true);
    ck_assert(tick_arm(self));
    while (!ring_ready(ring) && !self->dropped_full && !self->dropped_torn && !self->dropped_fault && !self->dropped_masked)
        ;
    tick_enable(false);
    tick_disarm(self);
    sigaction_release(TIMER_SIGNAL);
    ck_assert_uint_gt(ring_ready(ring), 0);
    codes_drain();
    return ring;
}

static void must_be_alike(const struct stack_copy *record, const struct stack_copy *capture)
{
    ck_assert(stacks_equal(record, capture));
    ck_assert_int_eq(record->awaited, capture->awaited);
    ck_assert_int_eq(record->cycle, capture->cycle);
    ck_assert_int_eq(record->torn_awaiter, capture->torn_awaiter);
}

/* What did not fit was cut at the root. */
static void must_be_inner_part(const struct stack_copy *record, const struct stack_copy *whole)
{
    for (uint32_t i = 0; i < record->frames; i++) {
        ck_assert_uint_eq(record->entry[i].identity, whole->entry[i].identity);
        ck_assert_int_eq(record->entry[i].lasti, whole->entry[i].lasti);
    }
}

START_TEST(a_record_says_what_a_capture_does)
{
    start_task(_i);
    awaited_by(1, 3, 0);
    awaited_by(2, 2, 1);
    place_thread(fake_task_at(0));
    for (uint32_t depth = 3; depth < 14; depth++) { /* with less the walk has a limit */
        copy = stacks_new_copy(depth);
        stacks_from_ring(copy, ticked(depth, 16384));
        must_be_alike(copy, captured(depth, 1));
        ck_assert_uint_eq(copy->frames + copy->cut, 11);
        ck_assert_uint_eq(copy->task, fake_task_at(0));
        ck_assert_uint_eq(copy->task_frames, depth < 8 ? depth : 8);
        ck_assert(copy->awaited);
    }
    copy = stacks_new_copy(16);
    stacks_from_ring(copy, ticked(16, 16384));
    ck_assert_str_eq(functions(stacks_intern(&stacks, copy)),
                     "main;BaseEventLoop._run_once;Handle._run;t2.0;t2.1;t1.0;t1.1;t1.2;t0.0;t0.1;work");
}
END_TEST

/* What the depth cuts is at the outer end of the chain that it falls into. */
START_TEST(a_depth_within_a_chain)
{
    bool sure;
    start_task(_i);
    awaited_by(1, 3, 0);
    place_thread(fake_task_at(0));
    copy = captured(5, 1);
    ck_assert_str_eq(functions(stacks_intern(&stacks, copy)), "[truncated 4];t1.1;t1.2;t0.0;t0.1;work");
    ck_assert_str_eq(functions(stacks_intern_task(&stacks, copy, PROFILE_ROOT)), "[truncated 4];t1.1;t1.2;t0.0;t0.1;work");
    stacks_intern_driver(&stacks, copy, &sure);
    ck_assert(!sure);
}
END_TEST

/* A small ring: what has no room is cut at the root end, and counted. */
START_TEST(a_ring_that_is_too_small_for_a_chain)
{
    start_task(_i);
    awaited_by(1, 3, 0);
    awaited_by(2, 3, 1);
    place_thread(fake_task_at(0));
    copy = stacks_new_copy(32);
    stacks_from_ring(copy, ticked(32, sizeof(struct ring) + 16 * 8));
    ck_assert_uint_gt(copy->frames, 2);
    ck_assert_uint_gt(copy->cut, 0);
    ck_assert_uint_eq(copy->frames + copy->cut, 12);
    must_be_inner_part(copy, captured(32, 1));
}
END_TEST

/* Rings lie in the application's memory, which may write anywhere. */
START_TEST(a_record_that_somebody_wrote_over_ends)
{
    start_task(_i);
    awaited_by(1, 3, 0);
    place_thread(fake_task_at(0));
    copy = stacks_new_copy(32);
    struct ring *ring = ticked(32, 16384);
    uint32_t words = ring_words(ring_peek(ring, 0));
    for (uint32_t at = 0; at < words; at++) {
        uint64_t word = ring->word[at];
        static const uint64_t garbage[] = {0, ~0ull, RING_CHAIN | 0xffffffffull << 32, RING_RECORD | 0xffffull << 16 | 0xffffffull << 40};
        for (size_t i = 0; i < sizeof garbage / sizeof *garbage; i++) {
            ring->word[at] = garbage[i];
            stacks_from_ring(copy, ring);
            ck_assert_uint_le(copy->frames, 32);
        }
        ring->word[at] = word;
    }
    ring->word[RING_HEADER_WORDS] = RING_CHAIN | 30ull << 32; /* more frames than there are */
    stacks_from_ring(copy, ring);
    ck_assert_int_eq(copy->end, FRAMES_TORN);
}
END_TEST

START_TEST(a_record_of_a_torn_awaiter)
{
    start_task(_i);
    awaited_by(1, 2, 0);
    fake_coro_awaits(&world, 1, 1, 0);
    place_thread(fake_task_at(0));
    copy = stacks_new_copy(32);
    stacks_from_ring(copy, ticked(32, 16384));
    must_be_alike(copy, captured(32, 1));
    ck_assert(copy->torn_awaiter && !copy->awaited);
    ck_assert_str_eq(functions(stacks_intern(&stacks, copy)), "main;BaseEventLoop._run_once;Handle._run;t0.0;t0.1;work");
}
END_TEST

/* Both wait for the other and for the running task: each is woken by two. */
static void circle_of_two(void)
{
    awaited_by(1, 1, 0);
    awaited_by(2, 1, 1);
    const uintptr_t gather = fake_world_alloc(&world, 512), at = 0x1000000000ul;
    static const char *const names[] = {"outer"};
    uintptr_t cell = fake_cell(&world.target, at, gather);
    struct fake code = fake_code_with_variables(&world.target, at + 0x100000, names, "\x80", 1), function = fake_new(at + 0x200000, 256);
    fake_put_word(&code, world.target.layout.code_qualname, fake_str(&world.target, at + 0x300000, "gather.<locals>._done_callback"));
    fake_put_word(&function, world.target.layout.object_type, FUNCTION_TYPE_AT);
    fake_put_word(&function, world.target.layout.function_code, fake_place(&code));
    fake_put_word(&function, world.target.layout.function_closure, fake_tuple(&world.target, at + 0x400000, &cell, 1));
    fake_place(&function);
    fake_new_future(&world, gather, FAKE_FUTURE_TYPE_AT, 0);
    fake_task_waits(&world, 1, 1, gather);
    fake_wakes(&world, gather, 1, 8);
    fake_world_word(&world, fake_task_at(0), world.target.layout.future_callback0, function.address);
    fake_world_word(&world, fake_task_at(2), world.target.layout.future_callback0, function.address);
}

START_TEST(a_circle_has_a_marker_above_the_loop)
{
    start_task(_i);
    circle_of_two();
    place_thread(fake_task_at(0));
    copy = stacks_new_copy(32);
    stacks_from_ring(copy, ticked(32, 16384));
    must_be_alike(copy, captured(32, 1));
    ck_assert(copy->cycle);
    ck_assert_str_eq(functions(stacks_intern(&stacks, copy)), "main;BaseEventLoop._run_once;Handle._run;[cycle];t2.0;t1.0;t0.0;t0.1;work");
    ck_assert_str_eq(functions(stacks_intern_task(&stacks, copy, PROFILE_ROOT)), "main;[cycle];t2.0;t1.0;t0.0;t0.1;work");
}
END_TEST

/* --- names of tasks --- */

static void has_no_name(uintptr_t task)
{
    fake_world_word(&world, task, world.target.layout.task_name, 0);
}

/* Each before its own frames; one whose name cannot be read has none. */
START_TEST(names_stand_before_their_tasks)
{
    start_task(_i);
    markers_ask_for_tasks(true);
    awaited_by(1, 3, 0);
    awaited_by(2, 2, 1);
    fake_task_is_called(&world, 0, "worker 12");
    fake_task_is_called(&world, 1, "a;b");
    has_no_name(fake_task_at(2));
    place_thread(fake_task_at(0));
    copy = captured(32, 1);
    ck_assert_str_eq(functions(stacks_intern(&stacks, copy)),
                     "main;BaseEventLoop._run_once;Handle._run;t2.0;t2.1;[task a\\x3bb];t1.0;t1.1;t1.2;[task worker *];t0.0;t0.1;work");
    ck_assert_str_eq(functions(stacks_intern_task(&stacks, copy, PROFILE_ROOT)),
                     "main;t2.0;t2.1;[task a\\x3bb];t1.0;t1.1;t1.2;[task worker *];t0.0;t0.1;work");
    ck_assert(stacks_resolve(&stacks, copy));
    ck_assert_uint_eq(stacks.unreadable, 0);
    fake_task_is_called(&world, 1, "other");
    struct stack_copy *renamed = stacks_new_copy(32);
    stacks_capture(renamed, &world.target, FAKE_TSTATE_AT, 1);
    ck_assert(!stacks_equal(renamed, copy));
}
END_TEST

START_TEST(a_record_has_the_names_that_a_capture_has)
{
    start_task(_i);
    markers_ask_for_tasks(true);
    awaited_by(1, 3, 0);
    awaited_by(2, 2, 1);
    for (uint32_t i = 0; i < 3; i++)
        fake_task_is_called(&world, i, i == 1 ? "one of a name that is longer than what most of them are called, and so long that it is cut to be short" : "t");
    place_thread(fake_task_at(0));
    for (uint32_t depth = 3; depth < 18; depth++) {
        copy = stacks_new_copy(depth);
        stacks_from_ring(copy, ticked(depth, 16384));
        must_be_alike(copy, captured(depth, 1));
        ck_assert_uint_eq(copy->frames + copy->cut, 14);
    }
}
END_TEST

static const char *letters(uint32_t count)
{
    static char name[128];
    memset(name, 'n', count);
    name[count] = '\0';
    return name;
}

/* Names take the room of frames, never that of frames further in. */
START_TEST(a_ring_that_is_too_small_for_names)
{
    start_task(_i);
    markers_ask_for_tasks(true);
    awaited_by(1, 3, 0);
    awaited_by(2, 3, 1);
    fake_task_is_called(&world, 2, letters(TEXT_FOLDED_LONGEST));
    place_thread(fake_task_at(0));
    for (uint32_t at = 0; at < 7 * 7 * 2; at++) {
        fake_task_is_called(&world, 0, letters(at % 7 * 16));
        fake_task_is_called(&world, 1, letters(at / 7 % 7 * 16));
        struct stack_copy *record = stacks_new_copy(32);
        stacks_from_ring(record, ticked(32, (uint32_t)sizeof(struct ring) + (32u << at / 49) * 8));
        const struct stack_copy *whole = captured(32, 1);
        ck_assert_int_eq(record->end, FRAMES_COMPLETE);
        ck_assert_uint_gt(record->frames, 2);
        ck_assert_uint_eq(record->frames + record->cut, whole->frames);
        must_be_inner_part(record, whole);
    }
}
END_TEST

START_TEST(a_record_with_names_that_somebody_wrote_over_ends)
{
    start_task(_i);
    markers_ask_for_tasks(true);
    awaited_by(1, 3, 0);
    fake_task_is_called(&world, 0, "name");
    fake_task_is_called(&world, 1, "another name");
    place_thread(fake_task_at(0));
    copy = stacks_new_copy(32);
    struct ring *ring = ticked(32, 16384);
    uint32_t words = ring_words(ring_peek(ring, 0));
    for (uint32_t at = 0; at < words; at++) {
        uint64_t word = ring->word[at];
        static const uint64_t garbage[] = {RING_NAME, ~0ull, RING_NAME | 0xffffffffull << 32, RING_NAME | 100ull << 32, RING_NAME | 113ull << 32};
        for (size_t i = 0; i < sizeof garbage / sizeof *garbage; i++) {
            ring->word[at] = garbage[i];
            stacks_from_ring(copy, ring);
            ck_assert_uint_le(copy->frames, 32);
        }
        ring->word[at] = word;
    }
}
END_TEST

/* --- labels --- */

static struct fake_variable variable[2];

/* The thread runs in a context where the first is set to this, and the second to what is set already. */
static void set_to(uintptr_t value)
{
    struct fake tstate = fake_new(FAKE_TSTATE_AT + (uintptr_t)world.target.layout.thread_context, 8);
    variable[0].value = value;
    fake_put_word(&tstate, 0, fake_context(&world.target, fake_trie(&world.target, variable, 2)));
    fake_place(&tstate);
}

static void start_labelled(int minor)
{
    static const char *const names[] = {"route", "not_set", "tenant"};
    start_task(minor);
    labels_ask(names, 3);
    fake_contexts_begin(&world.target);
    variable[0] = fake_variable(&world.target, "route", 0x1111, 0);
    variable[1] = fake_variable(&world.target, "tenant", 0x2222, fake_str(&world.target, 0x7e002000u, "t"));
    place_thread(fake_task_at(0));
    set_to(fake_str(&world.target, 0x7e000000u, "/a;b 12"));
    labels_begin_looking(&world.target, UINT64_MAX / 2);
    labels_look(&world.target, contexts_of_thread(&world.target, FAKE_TSTATE_AT));
}

/* Behind the marker of a thread, also where the task stands on what others say; not in what its loop stands on. */
START_TEST(labels_stand_at_the_root)
{
    bool sure;
    start_labelled(_i);
    copy = captured(32, 1);
    copy->root = stacks_thread_marker(&stacks, "[thread a]", 10);
    ck_assert_str_eq(functions(stacks_intern(&stacks, copy)),
                     "[thread a];[route=/a\\x3bb 12];[tenant=t];main;BaseEventLoop._run_once;Handle._run;t0.0;t0.1;work");
    ck_assert_str_eq(functions(stacks_intern_task(&stacks, copy, PROFILE_ROOT)), "[thread a];[route=/a\\x3bb 12];[tenant=t];main;t0.0;t0.1;work");
    profile_stack below = stacks_push_marker(&stacks, stacks_thread_marker(&stacks, "[thread b]", 10), "creator");
    ck_assert_str_eq(functions(stacks_intern_task(&stacks, copy, below)), "[thread b];[route=/a\\x3bb 12];[tenant=t];creator;t0.0;t0.1;work");
    ck_assert_str_eq(functions(stacks_intern_driver(&stacks, copy, &sure)), "[thread a];main");
    profile_stack one = stacks_intern(&stacks, copy), other = stacks_intern_driver(&stacks, copy, &sure);
    ck_assert_uint_eq(stacks_began_with(&stacks, one), stacks_began_with(&stacks, other));
    ck_assert_str_eq(functions(stacks_move(&stacks, one, PROFILE_ROOT)),
                     "[route=/a\\x3bb 12];[tenant=t];main;BaseEventLoop._run_once;Handle._run;t0.0;t0.1;work");
    copy = captured(3, 1);
    ck_assert_str_eq(functions(stacks_intern(&stacks, copy)), "[route=/a\\x3bb 12];[tenant=t];[truncated 3];t0.0;t0.1;work");
}
END_TEST

START_TEST(passes_differ_by_their_labels)
{
    start_labelled(_i);
    struct stack_copy *first = stacks_new_copy(32), *second = stacks_new_copy(32);
    stacks_capture(first, &world.target, FAKE_TSTATE_AT, 1);
    stacks_capture(second, &world.target, FAKE_TSTATE_AT, 1);
    ck_assert(stacks_equal(first, second));
    set_to(fake_str(&world.target, 0x7e001000u, "/b"));
    stacks_capture(second, &world.target, FAKE_TSTATE_AT, 1);
    ck_assert(!stacks_equal(first, second));
}
END_TEST

START_TEST(a_record_has_the_labels_that_a_capture_has)
{
    start_labelled(_i);
    for (uint32_t words = 16; words <= 2048; words *= 2) {
        copy = stacks_new_copy(32);
        stacks_from_ring(copy, ticked(32, (uint32_t)sizeof(struct ring) + words * 8));
        if (words >= 32)
            must_be_alike(copy, captured(32, 1));
        ck_assert_uint_gt(copy->frames, 0);
    }
    struct ring *ring = ticked(32, 16384);
    ck_assert_uint_eq(ring_peek(ring, RING_HEADER_WORDS) & 255, RING_LABEL);
    static const uint64_t garbage[] = {RING_LABEL | 200 << 8 | 3ull << 32, RING_LABEL | 0xffffffffull << 32, RING_LABEL, RING_LABEL | 1 << 8 | 112ull << 32};
    for (size_t i = 0; i < sizeof garbage / sizeof *garbage; i++) {
        ring->word[RING_HEADER_WORDS] = garbage[i];
        copy = stacks_new_copy(32);
        stacks_from_ring(copy, ring);
        ck_assert_uint_le(copy->frames, 32);
    }
}
END_TEST

#define ITEM_AT 0x7a000000u
#define ERROR_AT 0x7a100000u
#define ERROR_TYPE_AT 0x7a200000u

static void handle_one(void)
{
    static uintptr_t item = ITEM_AT;
    const struct layout *layout = &world.target.layout;
    struct fake value = fake_new(ERROR_AT, 32), made = fake_new(ITEM_AT, 16);
    fake_put_word(&value, layout->object_type, fake_named_type(layout, ERROR_TYPE_AT, "KeyError", 1ul << 30, OBJECT_TYPE_AT));
    fake_put_word(&made, layout->exc_value, fake_place(&value));
    fake_place(&made);
    fake_map(FAKE_TSTATE_AT + (uintptr_t)layout->thread_exc_info, &item, sizeof item);
}

START_TEST(a_record_has_the_exception_that_a_capture_has)
{
    start_task(_i);
    place_thread(fake_task_at(0));
    handle_one();
    asks_for_exceptions = true;
    struct stack_copy *captured_one = stacks_new_copy(32), *none = stacks_new_copy(32);
    copy = stacks_new_copy(32);
    struct ring *ring = ticked(32, 16384);
    stacks_from_ring(copy, ring);
    captured_one->reads_exceptions = true;
    ck_assert(stacks_is_whole(stacks_capture(captured_one, &world.target, FAKE_TSTATE_AT, 1)));
    must_be_alike(copy, captured_one);
    profile_stack stack = stacks_intern(&stacks, copy);
    ck_assert_str_eq(functions(stack), "main;BaseEventLoop._run_once;Handle._run;t0.0;t0.1;work");
    ck_assert_str_eq(functions(stacks_push_exception(&stacks, stack, copy)), "main;BaseEventLoop._run_once;Handle._run;t0.0;t0.1;work;[exception KeyError]");
    ck_assert(stacks_is_whole(stacks_capture(none, &world.target, FAKE_TSTATE_AT, 1)));
    ck_assert(!stacks_equal(copy, none));
    ck_assert_uint_eq(stacks_push_exception(&stacks, stack, none), PROFILE_ROOT);
    for (uint32_t most = 0; most < 300; most++) { /* somebody wrote over it */
        ring->word[RING_HEADER_WORDS] = RING_EXCEPTION | (uint64_t)most << 32;
        stacks_from_ring(copy, ring);
        ck_assert_uint_le(copy->exception_length, EXCEPTION_NAME_MAX);
    }
}
END_TEST

/* The item is not there. */
START_TEST(a_record_without_the_exception_says_so)
{
    static uintptr_t nowhere = ITEM_AT;
    start_task(_i);
    place_thread(fake_task_at(0));
    fake_map(FAKE_TSTATE_AT + (uintptr_t)world.target.layout.thread_exc_info, &nowhere, sizeof nowhere);
    asks_for_exceptions = true;
    copy = stacks_new_copy(32);
    stacks_from_ring(copy, ticked(32, 16384));
    ck_assert(copy->torn_exception);
    ck_assert_uint_eq(copy->exception_length, 0);
    ck_assert_int_eq(copy->end, FRAMES_COMPLETE);
}
END_TEST

/* --- work of executors --- */

/* A worker runs a function that task 1 awaits, and task 2 that. */
static void start_work_of(int minor, bool anyio)
{
    const struct py_target *of = &world.target;
    struct py_code code;
    fake_asyncio_start(&world, minor, TASKS, 1 << 20);
    fake_births_reset();
    ck_assert_int_eq(mem_init((size_t)64 << 20), 0);
    ck_assert_int_eq(codes_start(), 0);
    stacks = (struct stacks){.profile = profile_new(), .paths = {.full = true}, .target = of};
    stacks.unknown = profile_intern(stacks.profile, "[unknown]", 9, 0);
    fake_task(&world, 1, 2);
    awaited_by(2, 1, 1);
    fake_wakes(&world, fake_future_at(1), 1, 8);
    thread = fake_thread_of(&world);
    fake_call(&thread, fake_function(of, 0, "_worker", "/lib/concurrent/futures/thread.py"));
    if (anyio)
        fake_call_anyio(&thread, fake_future_at(1));
    else
        fake_call_work(&thread, fake_work_item(of, fake_work_callbacks(of, fake_work_callback(of, fake_future_at(1)))));
    fake_call(&thread, fake_function(of, 1, "sent", "/app/m.py"));
    fake_call(&thread, fake_function(of, 2, "deeper", "/app/m.py"));
    ck_assert(code_read(of, FAKE_WORK_AT(5), &code));
    ck_assert(codes_learn(of, code.address, code.identity));
    ck_assert_uint_eq(codes_work(code.identity), anyio ? CODE_ANYIO : CODE_WORK);
    ck_assert_uint_eq(codes_work(code.identity + 1), 0);
    place_thread(0);
}

static void start_work(int minor)
{
    start_work_of(minor, false);
}

START_TEST(work_stands_on_who_awaits_it)
{
    bool sure;
    start_work(_i);
    copy = captured(32, 1);
    ck_assert_str_eq(functions(stacks_intern(&stacks, copy)), "_worker;_WorkItem.run;t2.0;t1.0;t1.1;sent;deeper");
    ck_assert(copy->foreign && !copy->chosen && !copy->torn_awaiter && !copy->task);
    ck_assert_uint_eq(stacks_intern_task(&stacks, copy, PROFILE_ROOT), PROFILE_ROOT); /* in `task` its task waits */
    stacks_intern_driver(&stacks, copy, &sure);
    ck_assert(!sure);
    copy = captured(3, 1);
    ck_assert_str_eq(functions(stacks_intern(&stacks, copy)), "[truncated 4];t1.1;sent;deeper");
    markers_ask_for_tasks(true);
    fake_task_is_called(&world, 1, "handler 7");
    fake_task_is_called(&world, 2, "main");
    copy = captured(32, 1);
    ck_assert_str_eq(functions(stacks_intern(&stacks, copy)), "_worker;_WorkItem.run;[task main];t2.0;[task handler *];t1.0;t1.1;sent;deeper");
}
END_TEST

static void stands_alone(bool foreign, bool torn)
{
    copy = captured(32, 1);
    ck_assert_str_eq(functions(stacks_intern(&stacks, copy)), "_worker;_WorkItem.run;sent;deeper");
    ck_assert_int_eq(copy->foreign, foreign);
    ck_assert_int_eq(copy->torn_awaiter, torn);
}

START_TEST(work_that_nobody_awaits_stands_on_its_thread)
{
    start_work(_i);
    uintptr_t self = FAKE_FRAME_AT(1) + (uintptr_t)world.target.layout.frame_localsplus;
    fake_no_callbacks(&world, fake_future_at(1)); /* not yet, or no more */
    stands_alone(true, false);
    fake_wakes(&world, fake_future_at(1), 1, 8);
    fake_task_waiter(&world, 1, 0); /* its awaiter goes on: the edge does not close */
    stands_alone(true, false);
    fake_task_waits(&world, 1, 2, fake_future_at(1));
    fake_wakes(&world, fake_future_at(1), 1, 8);
    fake_future_state(&world, fake_future_at(1), FUTURE_CANCELLED);
    stands_alone(false, false);
    fake_future_state(&world, fake_future_at(1), FUTURE_PENDING);
    uintptr_t garbage = 0x7777000, item = FAKE_WORK_AT(0);
    fake_words(self, &garbage, 1);
    stands_alone(false, true); /* it cannot be told */
    fake_words(self, &item, 1);
    copy = captured(32, 1);
    ck_assert_str_eq(functions(stacks_intern(&stacks, copy)), "_worker;_WorkItem.run;t2.0;t1.0;t1.1;sent;deeper");
    stacked_stack_work(false);
    stands_alone(false, false);
}
END_TEST

START_TEST(work_of_anyio_stands_on_who_awaits_it)
{
    start_work_of(_i, true);
    uintptr_t self = FAKE_FRAME_AT(1) + (uintptr_t)world.target.layout.frame_localsplus, none = 0;
    copy = captured(32, 1);
    ck_assert_str_eq(functions(stacks_intern(&stacks, copy)), "_worker;WorkerThread.run;t2.0;t1.0;t1.1;sent;deeper");
    ck_assert(copy->foreign && !copy->torn_awaiter && !copy->task);
    fake_words(self, &none, 1);
    copy = captured(32, 1);
    ck_assert_str_eq(functions(stacks_intern(&stacks, copy)), "_worker;WorkerThread.run;sent;deeper");
    ck_assert(!copy->foreign && !copy->torn_awaiter);
}
END_TEST

START_TEST(a_record_of_work_says_what_a_capture_does)
{
    start_work(_i);
    for (uint32_t depth = 2; depth < 10; depth++) {
        copy = stacks_new_copy(depth);
        stacks_from_ring(copy, ticked(depth, 16384));
        must_be_alike(copy, captured(depth, 1));
        ck_assert_uint_eq(copy->frames + copy->cut, 7);
    }
}
END_TEST

/* Last, also of the task that the thread runs. */
START_TEST(a_collection_is_the_last_frame)
{
    start_task(_i);
    place_thread(fake_task_at(0));
    copy = captured(32, 1);
    ck_assert(!copy->collects);
    struct stack_copy *other = stacks_new_copy(32);
    memcpy(other, copy, sizeof *copy + 32 * sizeof copy->entry[0]);
    other->collects = true;
    ck_assert(!stacks_equal(copy, other));
    ck_assert_str_eq(functions(stacks_intern(&stacks, other)), "main;BaseEventLoop._run_once;Handle._run;t0.0;t0.1;work;[gc]");
    ck_assert_str_eq(functions(stacks_intern_task(&stacks, other, PROFILE_ROOT)), "main;t0.0;t0.1;work;[gc]");
}
END_TEST

START_TEST(without_memory_there_is_no_copy)
{
    ck_assert_int_eq(mem_init(4096), 0);
    ck_assert_ptr_null(stacks_new_copy(8192));
}
END_TEST

Suite *suite_stacks(void)
{
    const TTest *const each[] = {
        a_whole_stack, a_deep_stack_is_cut_at_the_root, a_stack_beyond_the_limit_is_cut_where_the_walk_ends, exactly_as_deep_as_there_is_room,
        a_torn_chain_is_no_stack, no_frames_are_an_empty_stack, equal_passes, what_is_settled_is_not_sought_in_memory,
    };
    const TTest *const once[] = {
        passes_differ_by_anything, what_is_not_known_and_cannot_be_read_is_unknown, equal_copies_are_one_stack, an_empty_copy_is_the_root,
        an_idle_loop, a_busy_loop, a_selector_of_the_program, a_selector_without_a_loop, overflow_has_no_flags, threads_are_known_by_their_first_function,
        without_memory_there_is_no_copy,
    };
    const TTest *const of_tasks[] = {
        awaiters_stand_between_a_task_and_its_loop, the_stack_of_a_task, on_the_marker_of_a_thread, a_thread_without_a_task_has_no_stack_of_one, a_driver_that_nothing_names,
        passes_with_one_seed_are_equal, passes_differ_by_their_task, a_chain_torn_on_the_way_is_no_stack,
        a_torn_chain_is_not_forgotten_over_the_next, a_record_says_what_a_capture_does,
        a_depth_within_a_chain, a_ring_that_is_too_small_for_a_chain, a_record_that_somebody_wrote_over_ends, a_record_of_a_torn_awaiter, a_circle_has_a_marker_above_the_loop,
        names_stand_before_their_tasks, a_record_has_the_names_that_a_capture_has, a_ring_that_is_too_small_for_names,
        a_record_with_names_that_somebody_wrote_over_ends, labels_stand_at_the_root, passes_differ_by_their_labels,
        a_record_has_the_labels_that_a_capture_has, work_stands_on_who_awaits_it, work_that_nobody_awaits_stands_on_its_thread,
        work_of_anyio_stands_on_who_awaits_it, a_record_of_work_says_what_a_capture_does, a_record_has_the_exception_that_a_capture_has, a_record_without_the_exception_says_so,
        a_collection_is_the_last_frame,
    };
    Suite *suite = suite_create("stacks");
    TCase *versions = tcase_create("each version"), *core = tcase_create("core");
    for (size_t i = 0; i < sizeof each / sizeof *each; i++)
        tcase_add_loop_test(versions, each[i], FIRST_MINOR, AFTER_LAST_MINOR);
    for (size_t i = 0; i < sizeof of_tasks / sizeof *of_tasks; i++)
        tcase_add_loop_test(versions, of_tasks[i], FIRST_MINOR, AFTER_LAST_MINOR);
    tcase_set_timeout(versions, 60);
    for (size_t i = 0; i < sizeof once / sizeof *once; i++)
        tcase_add_loop_test(core, once[i], 13, 14);
    suite_add_tcase(suite, versions);
    suite_add_tcase(suite, core);
    return suite;
}
