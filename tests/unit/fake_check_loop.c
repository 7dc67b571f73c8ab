/* SPDX-License-Identifier: MIT
 * loop: the sampler's own thread, on a runtime that is made up and an output
 * that only notes what it is told. */
#include "sampler/loop.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "hooks/clock.h"
#include "hooks/mem.h"
#include "hooks/real.h"
#include "hooks/threads.h"
#include "sampler/codes.h"
#include "tests/unit/fake_python.h"
#include "tests/unit/sanitizers.h"

#define INTERP 0x60000000u
#define GIL 0x62000000u
#define STATE 0x61000000u
#define FRAME 0x53000000u
#define CODE 0x52000000u
#define ENTRY 0x54000000u
#define MINOR 13
#define MS 1000000ull

Suite *suite_loop(void);

static struct py_target target;

/* --- what the output was told; written by the sampler, read when it has answered --- */

static struct {
    _Atomic int begun, flushed, described, sealed, paused, resumed, first;
    _Atomic int pause_ms, stall_ms, fail_seals; /* asked of it */
    char ended[64][16];
    uint64_t number[64], following[64];
    _Atomic uint64_t last_number;
    _Atomic int looked, answered, dumped_threads;
    _Atomic bool asks;
} told;

static void begin(void)
{
    told.begun++;
}

static int flush(struct profile *profile, const struct window *window)
{
    struct profile_change change;
    while (profile_take_change(profile, &change))
        ;
    told.last_number = window->number;
    told.flushed++;
    if (told.stall_ms)
        usleep((useconds_t)told.stall_ms * 1000);
    return 0;
}

static int describe(struct profile *profile, const struct window *window)
{
    told.described++;
    return 0;
}

static int seal(struct profile *profile, const struct window *window, const struct window *next)
{
    if (told.fail_seals) {
        told.fail_seals--;
        return -ENOSPC;
    }
    int n = told.sealed;
    if (n < 64) {
        snprintf(told.ended[n], sizeof told.ended[n], "%s", window->ended);
        told.number[n] = window->number;
        told.following[n] = next ? next->number : 0;
    }
    told.sealed++;
    return 0;
}

static int put_aside(struct profile *profile, const struct window *window)
{
    usleep((useconds_t)told.pause_ms * 1000);
    told.paused++;
    return 0;
}

static int take_up(struct profile *profile, const struct window *window)
{
    told.resumed++;
    return 0;
}

static bool is_full(void)
{
    return false;
}

static bool is_asked(void)
{
    told.looked++;
    return told.asks;
}

static int answer(const struct profile *profile, const struct dump *dump)
{
    told.answered++;
    told.asks = false;
    told.dumped_threads = (int)dump->threads;
    return 0;
}

static const struct loop_output output = {begin, flush, describe, seal, put_aside, take_up, is_full, is_asked, answer};

static bool is_ready(void)
{
    return true;
}

static void first_sample(void)
{
    told.first++;
}

static void descriptors(bool own_table)
{
}

/* --- a runtime with one thread, the test's own --- */

static void make_runtime(void)
{
    const struct layout *layout = &target.layout;
    struct fake runtime = fake_new(RUNTIME_AT, 32768), interp = fake_new(INTERP, 16384), gil = fake_new(GIL, 64), state = fake_new(STATE, 1024);
    struct fake entry = fake_frame_new(&target, ENTRY, 0x3, 0, 0), frame = fake_frame_new(&target, FRAME, fake_code(&target, CODE), 0, ENTRY);
    fake_put_byte(&entry, layout->frame_owner, layout->owner_entry);
    fake_put_int(&runtime, layout->runtime_initialized, 1);
    fake_put_word(&runtime, layout->runtime_interpreters_head, INTERP);
    fake_put_word(&runtime, layout->runtime_interpreters_main, INTERP);
    fake_put_word(&interp, layout->interp_threads_head, STATE);
    fake_put_word(&interp, layout->interp_gil, GIL);
    fake_put_word(&state, layout->thread_interp, INTERP);
    fake_put_word(&state, layout->thread_native_id, (uint64_t)gettid());
    fake_put_word(&state, layout->thread_id, (uint64_t)pthread_self());
    fake_put_word(&state, layout->thread_current_frame, FRAME);
    fake_place(&runtime);
    fake_place(&interp);
    fake_place(&gil);
    fake_place(&state);
    fake_place(&entry);
    fake_place(&frame);
}

static struct loop_options options = {.target = &target, .rate = 200, .min_rate = 100, .depth = 16, .metrics = 1u << METRIC_CPU | 1u << METRIC_WALL,
                                      .window_ns = 3600 * 1000 * MS, .paths = {.full = true}, .output = &output, .ready = is_ready,
                                      .first_sample = first_sample, .descriptors = descriptors};

static void start(void)
{
    real_resolve();
    target = fake_target(MINOR);
    make_runtime();
    ck_assert_int_eq(mem_init((size_t)64 << 20), 0);
    ck_assert_int_eq(codes_start(), 0);
    ck_assert_int_eq(threads_start(16384), 0);
    loop_prepare(&options);
    ck_assert_int_eq(loop_start(), 0);
    ck_assert_int_eq(loop_start(), 0);
    ck_assert(loop_is_running());
}

static void wait_for(_Atomic int *count, int least)
{
    for (int i = 0; *count < least; i++, usleep(1000))
        ck_assert_int_lt(i, 10000);
}

static uint64_t in(uint64_t ms)
{
    return clock_now() + ms * MS;
}

START_TEST(a_ready_runtime_is_sampled)
{
    start();
    wait_for(&told.flushed, 5);
    ck_assert_int_eq(told.begun, 1);
    ck_assert_int_eq(told.first, 1);
    ck_assert(loop_ask(LOOP_LAST_TICK, in(5000)));
    ck_assert(loop_ask(LOOP_EXIT, in(5000)));
    ck_assert_uint_gt(loop_totals().samples, 0);
    ck_assert_uint_gt(loop_totals().wall_ns, 0);
}
END_TEST

START_TEST(a_tick_is_not_waited_for_where_it_is_asked_for)
{
    options.rate = options.min_rate = 1;
    uint64_t before = clock_now();
    start();
    for (int i = 1; i <= 20; i++) { /* a second each */
        wait_for(&told.flushed, i);
        loop_tick_soon();
    }
    ck_assert_uint_lt(clock_now() - before, 10000 * MS);
    ck_assert(loop_ask(LOOP_EXIT, in(5000)));
}
END_TEST

START_TEST(an_exit_seals_and_ends)
{
    start();
    wait_for(&told.flushed, 3);
    ck_assert(loop_ask(LOOP_EXIT, in(5000)));
    ck_assert_int_eq(told.sealed, 1);
    ck_assert_str_eq(told.ended[0], "exit");
    ck_assert_uint_eq(told.number[0], 0);
    ck_assert(!loop_is_running());
    uint64_t before = clock_now();
    ck_assert(loop_ask(LOOP_EXIT, in(5000))); /* nobody to wait for */
    ck_assert_uint_lt(clock_now() - before, 1000 * MS);
    ck_assert_int_eq(told.sealed, 1);
}
END_TEST

START_TEST(windows_follow_each_other)
{
    options.window_ns = 30 * MS;
    start();
    wait_for(&told.sealed, 4);
    ck_assert(loop_ask(LOOP_EXIT, in(5000)));
    int sealed = told.sealed;
    for (int i = 0; i < sealed; i++) {
        ck_assert_uint_eq(told.number[i], (uint64_t)i);
        ck_assert_str_eq(told.ended[i], i == sealed - 1 ? "exit" : "window");
        ck_assert_uint_eq(told.following[i], i == sealed - 1 ? 0 : (uint64_t)i + 1);
    }
    ck_assert_uint_gt(loop_totals().wall_ns, 100 * MS);
}
END_TEST

START_TEST(an_exec_that_fails_goes_on)
{
    start();
    wait_for(&told.flushed, 3);
    ck_assert(loop_ask(LOOP_EXEC, in(5000)));
    ck_assert_str_eq(told.ended[0], "exec");
    int flushed = told.flushed;
    wait_for(&told.flushed, flushed + 3);
    ck_assert_uint_eq(told.last_number, 1);
    ck_assert(loop_ask(LOOP_EXIT, in(5000)));
    ck_assert_uint_eq(told.number[1], 1);
}
END_TEST

/* A full disk at the end of a window: it goes on, nothing of it is lost, and it is
 * sealed when there is room. */
START_TEST(a_window_that_cannot_be_sealed_goes_on)
{
    options.window_ns = 30 * MS;
    told.fail_seals = 1;
    start();
    wait_for(&told.sealed, 2);
    ck_assert_int_eq(told.fail_seals, 0);
    ck_assert(loop_ask(LOOP_EXIT, in(5000)));
    ck_assert_uint_eq(told.number[0], 0);
    ck_assert_uint_eq(told.number[1], 1);
    ck_assert_uint_gt(loop_totals().wall_ns, 80 * MS); /* two windows were one, and the third */
}
END_TEST

/* --- around a fork --- */

START_TEST(a_pause_and_back)
{
    start();
    wait_for(&told.flushed, 3);
    for (int i = 1; i <= 20; i++) {
        ck_assert(loop_pause(in(5000)));
        ck_assert(!loop_is_running());
        ck_assert_int_eq(told.paused, i);
        int flushed = told.flushed;
        usleep(2000);
        ck_assert_int_eq(told.flushed, flushed); /* it really is gone */
        ck_assert_int_eq(loop_start(), 0);
        wait_for(&told.flushed, flushed + 1);
        ck_assert_int_eq(told.resumed, i);
    }
    ck_assert(loop_ask(LOOP_EXIT, in(5000)));
    ck_assert_int_eq(told.sealed, 1);
    ck_assert_int_eq(told.begun, 1);
}
END_TEST

/* Nobody waits longer than the deadline; the sampler then must not leave. */
START_TEST(a_pause_that_comes_too_late_is_none)
{
    start();
    wait_for(&told.flushed, 3);
    told.pause_ms = 150;
    uint64_t before = clock_now();
    ck_assert(!loop_pause(in(20)));
    ck_assert_uint_lt(clock_now() - before, 140 * MS);
    told.pause_ms = 0;
    ck_assert(loop_is_running());
    wait_for(&told.paused, 1);
    wait_for(&told.resumed, 1);
    int flushed = told.flushed;
    wait_for(&told.flushed, flushed + 3);
    ck_assert(loop_pause(in(5000)));
    ck_assert_int_eq(loop_start(), 0);
    ck_assert(loop_ask(LOOP_EXIT, in(5000)));
    ck_assert_int_eq(told.sealed, 1);
}
END_TEST

/* A disk that does not answer is waited for once, not by everyone who forks. */
START_TEST(a_stalled_disk_is_waited_for_once)
{
    start();
    wait_for(&told.flushed, 3);
    told.stall_ms = 1500;
    wait_for(&told.flushed, told.flushed + 1);
    uint64_t before = clock_now();
    for (int i = 0; i < 50; i++)
        ck_assert(!loop_pause(in(20)));
    ck_assert(!loop_ask(LOOP_EXEC, in(20)));
    ck_assert_uint_lt(clock_now() - before, 500 * MS); /* 20, and not 50 times 20 */
    ck_assert(loop_is_running());
    told.stall_ms = 0;
    ck_assert_int_eq(told.paused, 0);
    int flushed = told.flushed;
    wait_for(&told.flushed, flushed + 3);
    ck_assert(loop_ask(LOOP_EXIT, in(5000)));
}
END_TEST

START_TEST(a_forked_child_starts_from_nothing)
{
    int status;
    if (UNDER_TSAN)
        return; /* it starts no threads in the child of a process that had several */
    start();
    wait_for(&told.flushed, 3);
    pid_t child = fork();
    if (child == 0) {
        loop_postfork_child();
        codes_postfork_child();
        threads_postfork_child();
        mem_postfork_child();
        if (loop_is_running() || !loop_ask(LOOP_EXIT, in(5000)) || loop_totals().samples)
            _exit(1);
        make_runtime(); /* its thread has another id */
        memset(&told, 0, sizeof told);
        if (loop_start() != 0)
            _exit(2);
        for (int i = 0; told.flushed < 3; i++, usleep(1000))
            if (i > 10000)
                _exit(3);
        if (!loop_ask(LOOP_EXIT, in(5000)) || told.sealed != 1 || told.number[0] != 0 || told.begun != 1)
            _exit(4);
        _exit(0);
    }
    waitpid(child, &status, 0);
    ck_assert_int_eq(status, 0);
    int flushed = told.flushed;
    wait_for(&told.flushed, flushed + 3); /* the parent goes on */
}
END_TEST

/* --- ends --- */

START_TEST(a_failed_self_test_ends_it)
{
    start();
    wait_for(&told.flushed, 3);
    loop_refuse();
    wait_for(&told.sealed, 1);
    ck_assert_str_eq(told.ended[0], "error");
    int flushed = told.flushed;
    usleep(50000);
    ck_assert_int_eq(told.flushed, flushed);
    ck_assert(loop_ask(LOOP_EXIT, in(5000)));
    ck_assert_int_eq(told.sealed, 1);
}
END_TEST

START_TEST(a_duration_ends_it)
{
    options.duration_ns = 50 * MS;
    start();
    wait_for(&told.sealed, 1);
    ck_assert_str_eq(told.ended[0], "duration");
    usleep(50000);
    ck_assert_int_eq(told.begun, 1);
    ck_assert(loop_ask(LOOP_EXIT, in(5000)));
}
END_TEST

START_TEST(a_delay_is_kept)
{
    options.delay_ns = 100 * MS;
    uint64_t before = clock_now();
    start();
    wait_for(&told.flushed, 1);
    ck_assert_uint_ge(clock_now() - before, 100 * MS);
    ck_assert(loop_ask(LOOP_EXIT, in(5000)));
}
END_TEST

START_TEST(a_dump_is_made_when_somebody_asks)
{
    start();
    wait_for(&told.flushed, 5);
    ck_assert_int_eq(told.answered, 0);
    told.asks = true;
    wait_for(&told.answered, 1);
    ck_assert_int_eq(told.dumped_threads, 1);
    wait_for(&told.looked, told.looked + 2);
    ck_assert_int_eq(told.answered, 1);
    ck_assert_int_le(told.looked, told.described); /* one look for each renewing of the metadata */
    told.asks = true;
    ck_assert(loop_pause(in(5000))); /* whoever forks does not wait for it, and it is not forgotten */
    ck_assert_int_eq(loop_start(), 0);
    wait_for(&told.answered, 2);
    ck_assert(loop_ask(LOOP_EXIT, in(5000)));
}
END_TEST

/* One that comes when the sampler is about to leave waits for its deadline. */
static void *ask(void *request)
{
    bool done = loop_ask((enum loop_request)(intptr_t)request, in(1000));
    ck_assert(done || (intptr_t)request != LOOP_EXIT);
    return NULL;
}

START_TEST(several_ask_at_once)
{
    static const enum loop_request requests[] = {LOOP_LAST_TICK, LOOP_EXEC, LOOP_LAST_TICK, LOOP_EXIT};
    pthread_t threads[4];
    start();
    wait_for(&told.flushed, 3);
    for (int i = 0; i < 4; i++)
        ck_assert_int_eq(pthread_create(&threads[i], NULL, ask, (void *)(intptr_t)requests[i]), 0);
    for (int i = 0; i < 4; i++)
        pthread_join(threads[i], NULL);
    ck_assert(!loop_is_running());
    ck_assert_str_eq(told.ended[told.sealed - 1], "exit");
}
END_TEST

Suite *suite_loop(void)
{
    const TTest *const tests[] = {
        a_ready_runtime_is_sampled, a_tick_is_not_waited_for_where_it_is_asked_for, an_exit_seals_and_ends,
        windows_follow_each_other, an_exec_that_fails_goes_on,
        a_window_that_cannot_be_sealed_goes_on, a_pause_and_back, a_pause_that_comes_too_late_is_none,
        a_stalled_disk_is_waited_for_once, a_forked_child_starts_from_nothing,
        a_failed_self_test_ends_it, a_duration_ends_it, a_delay_is_kept, several_ask_at_once,
        a_dump_is_made_when_somebody_asks,
    };
    Suite *suite = suite_create("loop");
    TCase *core = tcase_create("core");
    for (size_t i = 0; i < sizeof tests / sizeof *tests; i++)
        tcase_add_test(core, tests[i]);
    tcase_set_timeout(core, 60);
    suite_add_tcase(suite, core);
    return suite;
}
