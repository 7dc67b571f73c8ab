/* SPDX-License-Identifier: MIT
 * watch: real threads of this process, whose thread states and frames are made
 * up. What must hold are the laws: a thread's time is booked, once. */
#include "sampler/watch.h"

#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "hooks/clock.h"
#include "hooks/mem.h"
#include "hooks/real.h"
#include "hooks/task.h"
#include "hooks/threads.h"
#include "tests/unit/fake_births.h"
#include "tests/unit/fake_thread.h"

#define INTERP 0x60000000u
#define GIL 0x62000000u
#define STATE(i) (0x61000000u + 0x1000u * (unsigned)(i))
#define FRAME(i) (0x53000000u + 0x1000u * (unsigned)(i))
#define CODE(i) (0x70000000u + 0x100000u * (unsigned)(i))
#define ENTRY 0x54000000u
#define MINOR 13
#define MS 1000000u
#define SPACE 16384u
#define ROUNDING 50000u /* readers see whole microseconds */

Suite *suite_watch(void);

static struct py_target target;
static struct stacks stacks;
static struct account_book book;
static struct window window;
static struct watch *watch;
static uint32_t max_threads;

/* --- threads that exist --- */

#define MANY 300
#define ANOTHER 1 /* a thread that is none of ours */
static _Atomic int stop, ready;
static _Atomic pid_t tid_of[MANY];

static void *stand_still(void *number)
{
    tid_of[(intptr_t)number] = gettid();
    ready++;
    while (!stop)
        usleep(1000000); /* a signal would wake it: there is none */
    return NULL;
}

static void *stand_for_good(void *number)
{
    tid_of[(intptr_t)number] = gettid();
    ready++;
    for (;;)
        pause();
    return NULL;
}

static uint64_t stood_ns; /* as its thread knows it */

static void *stand_briefly(void *number)
{
    uint64_t began = clock_now();
    tid_of[(intptr_t)number] = gettid();
    ready++;
    while (!stop)
        usleep(1000);
    stood_ns = clock_now() - began;
    return NULL;
}

static int door[2];

static void *stand_at_a_door(void *number)
{
    char knock;
    tid_of[(intptr_t)number] = gettid();
    ready++;
    while (!stop && read(door[0], &knock, 1) == 1)
        ready++;
    return NULL;
}

static void *use_cpu(void *number)
{
    uint64_t until = clock_self() + 20 * MS;
    tid_of[(intptr_t)number] = gettid();
    while (clock_self() < until)
        ;
    ready++;
    while (!stop)
        usleep(1000);
    return NULL;
}

/* --- an interpreter that does not --- */

static bool active; /* the states made from now on are swapped in */

static void state(int i, pid_t tid, uintptr_t next, uintptr_t frame)
{
    const struct layout *layout = &target.layout;
    struct fake state = fake_new(STATE(i), 1024);
    fake_put_word(&state, layout->thread_interp, INTERP);
    fake_put_word(&state, layout->thread_next, next);
    fake_put_word(&state, layout->thread_native_id, (uint64_t)tid);
    fake_put_word(&state, layout->thread_id, 0x1000);
    fake_put_word(&state, layout->thread_unique_id, (uint64_t)i + 1);
    fake_put_int(&state, layout->thread_status, (unsigned)active << layout->status_active_bit);
    fake_put_word(&state, layout->thread_current_frame, frame);
    fake_place(&state);
}

static void interpreter(uintptr_t states)
{
    const struct layout *layout = &target.layout;
    struct fake runtime = fake_new(RUNTIME_AT, 32768), interp = fake_new(INTERP, 16384), gil = fake_new(GIL, 64);
    fake_put_int(&runtime, layout->runtime_initialized, 1);
    fake_put_word(&runtime, layout->runtime_interpreters_head, INTERP);
    fake_put_word(&runtime, layout->runtime_interpreters_main, INTERP);
    fake_put_word(&interp, layout->interp_threads_head, states);
    fake_put_word(&interp, layout->interp_gil, GIL);
    fake_place(&runtime);
    fake_place(&interp);
    fake_place(&gil);
}

/* One frame of a function of its own, on the marker that ends the chain. */
static uintptr_t function(int i, const char *name)
{
    struct fake code = fake_code_new(&target, CODE(i));
    fake_put_word(&code, target.layout.code_qualname, fake_str(&target, CODE(i) + 0x50000, name));
    fake_place(&code);
    struct fake entry = fake_frame_new(&target, ENTRY, 0x3, 0, 0);
    fake_put_byte(&entry, target.layout.frame_owner, target.layout.owner_entry);
    fake_place(&entry);
    struct fake frame = fake_frame_new(&target, FRAME(i), CODE(i), 0, ENTRY);
    return fake_place(&frame);
}

static void begin_with_target(bool of_the_interpreter)
{
    real_resolve();
    if (of_the_interpreter) /* whatever a thread starts with, is */
        target.text_start = 1, target.text_end = UINTPTR_MAX;
    ck_assert_int_eq(mem_init((size_t)64 << 20), 0);
    ck_assert_int_eq(codes_start(), 0);
    ck_assert_int_eq(threads_start(SPACE), 0);
    stacks = (struct stacks){.profile = profile_new(), .paths = {.full = true}, .target = &target};
    stacks.unknown = profile_intern(stacks.profile, "[unknown]", 9, 0);
    book = (struct account_book){.profile = stacks.profile, .metrics = 1u << METRIC_CPU | 1u << METRIC_WALL,
                                 .unseen_cpu = profile_intern(stacks.profile, "[unseen cpu]", 12, 0),
                                 .unseen_wall = profile_intern(stacks.profile, "[unseen wall]", 13, 0)};
    struct watch_options options = {.target = &target, .depth = 16, .max_threads = max_threads, .period_ns = 10 * MS, .clock_precise = true};
    watch = watch_new(&options, clock_now());
    ck_assert_ptr_nonnull(watch);
}

static void begin(bool of_the_interpreter)
{
    target = fake_target(MINOR);
    begin_with_target(of_the_interpreter);
}

/* A moment that is only known to lie between two readings of ours. */
struct moment {
    uint64_t before, after;
};
static struct moment born, ended, ticked;

static void tick(void)
{
    ticked.before = clock_now();
    watch_tick(watch, &stacks, &book, &window);
    ticked.after = clock_now();
}

static void settle(void)
{
    ticked.before = clock_now();
    watch_settle(watch, &stacks, &book, &window);
    ticked.after = clock_now();
}

static uint64_t total(enum metric metric)
{
    return profile_total_ns(stacks.profile, metric);
}

static pthread_t start_thread(void *(*run)(void *), intptr_t number)
{
    pthread_t thread;
    int before = ready;
    born.before = clock_now();
    ck_assert_int_eq(threads_create(&thread, NULL, run, (void *)number), 0);
    while (ready == before)
        usleep(100);
    born.after = clock_now();
    return thread;
}

static void end_thread(pthread_t thread)
{
    ended.before = clock_now();
    stop = 1;
    pthread_join(thread, NULL);
    ended.after = clock_now();
}

static uint64_t wall_of(const char *name)
{
    char text[512], wanted[64];
    uint64_t us, sum = 0;
    uint32_t at = 0;
    profile_stack stack;
    snprintf(wanted, sizeof wanted, "%s (", name);
    while (profile_each(stacks.profile, METRIC_WALL, &at, &stack, &us)) {
        text[profile_text(stacks.profile, stack, text, sizeof text - 1)] = '\0';
        if (strncmp(text, wanted, strlen(wanted)) == 0 && !strchr(text, ';'))
            sum += us * 1000;
    }
    return sum;
}

static void ck_span(uint64_t found, struct moment from, struct moment to)
{
    uint64_t least = to.before - from.after, most = to.after - from.before;
    ck_assert_msg(found + ROUNDING >= least && found <= most, "%lu ns, wanted %lu to %lu", (unsigned long)found, (unsigned long)least,
                  (unsigned long)most);
}

START_TEST(a_thread_that_waits_is_booked_where_it_stands)
{
    begin(true);
    pthread_t thread = start_thread(stand_still, 0);
    interpreter(STATE(0));
    state(0, tid_of[0], 0, function(0, "wait"));
    usleep(3000);
    for (int i = 0; i < 10; i++) {
        tick();
        usleep(3000);
    }
    tick();
    ck_assert_uint_eq(watch_count(watch), 1);
    settle();
    ck_span(total(METRIC_WALL), born, ticked);
    ck_assert_uint_ge(wall_of("wait") + total(METRIC_CPU) + ROUNDING, total(METRIC_WALL));
    ck_assert_uint_eq(window.counters.threads_peak, 1);
    (void)thread;
}
END_TEST

/* Where it stood before and where it stands now have half each of what passed between. */
START_TEST(a_wait_is_shared_with_the_one_before)
{
    begin(true);
    ck_assert_int_eq(pipe(door), 0);
    pthread_t thread = start_thread(stand_at_a_door, 0);
    interpreter(STATE(0));
    state(0, tid_of[0], 0, function(0, "first"));
    usleep(1000); /* until it stands */
    tick();
    struct moment first = ticked;
    usleep(20000);
    ck_assert_int_eq(write(door[1], "", 1), 1);
    while (ready < 2)
        usleep(100);
    usleep(1000);
    state(0, tid_of[0], 0, function(1, "second"));
    tick();
    uint64_t least = ticked.before - first.after, most = ticked.after - first.before;
    ck_assert_uint_ge(2 * wall_of("second"), least - MS); /* less its CPU time */
    ck_assert_uint_le(2 * wall_of("second"), most);
    ck_assert_uint_ge(wall_of("first"), wall_of("second"));
    stop = 1;
    ck_assert_int_eq(write(door[1], "", 1), 1);
    pthread_join(thread, NULL);
}
END_TEST

START_TEST(a_window_books_everything_and_the_next_begins_there)
{
    begin(true);
    start_thread(stand_still, 0);
    interpreter(STATE(0));
    state(0, tid_of[0], 0, function(0, "wait"));
    tick();
    usleep(5000);
    tick();
    settle();
    struct moment middle = ticked;
    ck_span(total(METRIC_WALL), born, middle);
    profile_clear(stacks.profile, false);
    watch_forget_stacks(watch);
    usleep(5000);
    tick();
    ck_span(total(METRIC_WALL), middle, ticked);
    ck_span(wall_of("wait"), middle, ticked);
}
END_TEST

START_TEST(the_end_of_a_thread_is_booked)
{
    begin(true);
    pthread_t thread = start_thread(stand_briefly, 0);
    interpreter(STATE(0));
    state(0, tid_of[0], 0, function(0, "wait"));
    for (int i = 0; i < 5; i++, usleep(2000))
        tick();
    interpreter(0);
    end_thread(thread);
    tick();
    ck_assert_uint_eq(watch_count(watch), 0);
    ck_span(total(METRIC_WALL), born, ended);
    usleep(5000);
    tick();
    settle();
    ck_span(total(METRIC_WALL), born, ended);
}
END_TEST

/* Its state is gone long before it ends: nothing may be booked twice. */
START_TEST(a_slow_end_is_booked_once)
{
    begin(true);
    pthread_t thread = start_thread(stand_briefly, 0);
    interpreter(STATE(0));
    state(0, tid_of[0], 0, function(0, "wait"));
    for (int i = 0; i < 5; i++, usleep(2000))
        tick();
    interpreter(0);
    for (int i = 0; i < 8; i++, usleep(2000))
        tick();
    ck_assert_uint_eq(watch_count(watch), 0);
    end_thread(thread);
    tick();
    settle();
    ck_assert_uint_le(total(METRIC_WALL), ended.after - born.before);
    ck_assert_uint_ge(total(METRIC_WALL), 8 * MS);
}
END_TEST

START_TEST(a_thread_whose_state_comes_back_is_booked_once)
{
    begin(true);
    start_thread(stand_briefly, 0);
    for (int round = 0; round < 3; round++) {
        interpreter(STATE(0));
        state(0, tid_of[0], 0, function(0, "wait"));
        for (int i = 0; i < 5; i++, usleep(1000))
            tick();
        interpreter(0);
        for (int i = 0; i < 6; i++, usleep(1000))
            tick();
    }
    settle();
    ck_assert_uint_le(total(METRIC_WALL), clock_now() - born.before);
    ck_assert_uint_ge(total(METRIC_WALL), 10 * MS);
}
END_TEST

/* New states come to the front of the list: while one is being linked in, the
 * oldest, at the back, are not found. */
START_TEST(a_broken_list_loses_nobody)
{
    begin(false);
    state(0, getpid(), 0, function(0, "wait"));
    interpreter(STATE(0));
    tick();
    struct moment first = ticked;
    for (int i = 0; i < 20; i++) {
        interpreter(i % 2 ? STATE(0) : 0x7fff0000u);
        usleep(2000);
        tick();
    }
    ck_assert_uint_eq(watch_count(watch), 1);
    settle(); /* it is ourselves: never found standing still */
    ck_span(total(METRIC_WALL), first, ticked);
}
END_TEST

START_TEST(a_state_that_is_another_threads_by_now_is_not_read)
{
    begin(false);
    start_thread(stand_still, 0);
    state(0, tid_of[0], 0, function(0, "wait"));
    interpreter(STATE(0));
    tick();
    ck_assert_uint_eq(watch_count(watch), 1);
    state(0, getpid(), 0, function(1, "other"));
    interpreter(0x7fff0000u);
    usleep(3000);
    tick();
    settle();
    ck_assert_uint_eq(wall_of("other"), 0);
}
END_TEST

START_TEST(a_life_between_two_ticks)
{
    begin(true);
    interpreter(0);
    tick();
    end_thread(start_thread(use_cpu, 0));
    tick();
    settle();
    ck_span(total(METRIC_WALL), born, ended);
    ck_assert_uint_ge(total(METRIC_CPU), 20 * MS);
    ck_assert_uint_eq(book.unseen_ns, total(METRIC_CPU));
}
END_TEST

START_TEST(a_thread_of_c_counts_from_the_first_sight_of_its_state)
{
    begin(false);
    start_thread(use_cpu, 0);
    interpreter(0);
    tick();
    state(0, tid_of[0], 0, function(0, "wait"));
    interpreter(STATE(0));
    tick();
    struct moment seen = ticked;
    for (int i = 0; i < 4; i++, usleep(2000))
        tick();
    settle();
    ck_assert_uint_lt(total(METRIC_CPU), 15 * MS);
    ck_assert_uint_le(total(METRIC_WALL), clock_now() - seen.before);
    ck_assert_uint_ge(total(METRIC_WALL) + ROUNDING, ticked.before - seen.after);
}
END_TEST

START_TEST(many_threads_come_and_go)
{
    begin(true);
    uint64_t lived = 0, stood = 0;
    interpreter(0);
    for (int round = 0; round < 40; round++) {
        stop = 0;
        pthread_t thread = start_thread(stand_briefly, 0);
        state(0, tid_of[0], 0, function(0, "wait"));
        interpreter(STATE(0));
        for (int i = 0; i < round % 4; i++)
            tick();
        interpreter(0);
        end_thread(thread);
        lived += ended.after - born.before;
        stood += stood_ns;
    }
    tick();
    settle();
    ck_assert_uint_eq(watch_count(watch), 0);
    ck_assert_uint_le(total(METRIC_WALL), lived);
    ck_assert_uint_ge(total(METRIC_WALL) + ROUNDING, stood);
    size_t used = mem_used();
    watch_free(watch);
    ck_assert_uint_lt(mem_used(), used);
}
END_TEST

START_TEST(nothing_is_read_after_the_end_of_reading)
{
    begin(false);
    state(0, getpid(), 0, function(0, "wait"));
    interpreter(STATE(0));
    tick();
    watch_stop_reading(watch);
    fake_reset();
    unsigned long refusals = fake_refusals();
    usleep(3000);
    tick();
    ck_assert_uint_eq(fake_refusals(), refusals);
    ck_assert_uint_eq(watch_count(watch), 1);
    settle();
    ck_assert_uint_ge(total(METRIC_WALL), 3 * MS);
}
END_TEST

/* --- more threads than a tick looks at --- */

/* They all stand still, each in a function of its own, the newest state first. */
static void begin_many(int count, uint32_t most)
{
    static char names[MANY][16];
    max_threads = most;
    begin(true);
    interpreter(STATE(count - 1));
    for (int i = 0; i < count; i++) {
        start_thread(stand_for_good, i);
        snprintf(names[i], sizeof names[i], "wait_%d", i);
        state(i, tid_of[i], i ? STATE(i - 1) : 0, function(i, names[i]));
    }
    for (int i = 0; i < count; i++)
        while (task_is_runnable(tid_of[i]))
            usleep(100);
}

static uint64_t wall_of_number(int i)
{
    char name[16];
    snprintf(name, sizeof name, "wait_%d", i);
    return wall_of(name);
}

/* 40 threads, 8 a tick: in five ticks each was looked at once, and all time is booked. */
START_TEST(more_threads_than_a_tick_looks_at_come_in_turn)
{
    begin_many(40, 8);
    for (int i = 0; i < 20; i++) {
        tick();
        usleep(1000);
        ck_assert_uint_eq(window.counters.thread_reads, 8 * (uint64_t)(i + 1));
        ck_assert_uint_eq(window.counters.threads_left, 32 * (uint64_t)(i + 1));
        int seen = 0;
        for (int n = 0; n < 40; n++)
            seen += wall_of_number(n) > 0;
        ck_assert_int_eq(seen, i < 4 ? 8 * (i + 1) : 40); /* they stand still, for certain */
    }
    ck_assert_uint_eq(window.counters.limits[LIMIT_threads], 20);
    ck_assert_uint_eq(window.counters.limits[LIMIT_tick_deadline], 0);
    ck_assert_uint_eq(window.counters.threads_peak, 40);
    ck_assert_uint_eq(watch_count(watch), 40);
    settle();
    uint64_t least = wall_of_number(39), most = wall_of_number(0);
    ck_assert_uint_ge(least + MS, ticked.before - born.after); /* less its CPU time */
    ck_assert_uint_ge(most, least);
    ck_assert_uint_le(total(METRIC_WALL), 40 * most + 40 * MS);
    ck_assert_uint_ge(total(METRIC_WALL), 40 * least);
}
END_TEST

/* Only those that are looked at are read: of 40 threads with a frame of their own each. */
static unsigned long reads[40];

static void count_reads(uintptr_t address, size_t length)
{
    for (unsigned i = 0; i < 40; i++)
        reads[i] += address >= FRAME(i) && address < FRAME(i + 1);
}

START_TEST(the_others_are_not_read)
{
    begin_many(40, 8);
    fake_on_read(count_reads);
    for (int i = 0; i < 5; i++) {
        tick();
        int found = 0;
        for (int n = 0; n < 40; n++)
            found += reads[n] > 0;
        ck_assert_int_eq(found, 8 * (i + 1));
    }
    fake_on_read(NULL);
}
END_TEST

START_TEST(what_ends_unlooked_at_is_taken)
{
    pthread_t thread;
    begin_many(40, 1);
    for (int i = 0; i < 3; i++)
        tick();
    thread = start_thread(stand_briefly, 40);
    state(40, tid_of[40], STATE(39), function(40, "brief"));
    interpreter(STATE(40));
    tick();
    ck_assert_uint_eq(watch_count(watch), 41);
    usleep(5000);
    interpreter(STATE(39));
    end_thread(thread);
    uint64_t before = total(METRIC_WALL);
    tick();
    ck_assert_uint_eq(watch_count(watch), 40);
    ck_assert_uint_ge(total(METRIC_WALL) - before + ROUNDING, 5 * MS);
    ck_assert_uint_eq(window.counters.threads_peak, 41);
}
END_TEST

/* What was added for a thread whose time is not known to be its own anywhere: none. */
static uint64_t sum_of_clocks(void)
{
    const struct tasks_thread *threads;
    uint64_t sum = 0;
    uint32_t count = watch_list(watch, &threads);
    for (uint32_t i = 0; i < count; i++)
        sum += threads[i].cpu;
    return sum;
}

static uint32_t standing(void)
{
    const struct tasks_thread *threads;
    uint32_t count = watch_list(watch, &threads), sum = 0;
    for (uint32_t i = 0; i < count; i++)
        sum += threads[i].stands;
    return sum;
}

static void gil_taken_by(uintptr_t state)
{
    struct fake gil = fake_new(GIL, 64);
    fake_put_word(&gil, target.layout.gil_last_holder, state);
    fake_place(&gil);
}

static void wake_up(int signal)
{
    (void)signal;
}

/* Nobody says that nothing ran while it does not know. */
START_TEST(clocks_add_up_to_what_they_did_only_if_nobody_ran)
{
    begin_many(40, 8);
    gil_taken_by(0); /* nobody knows who */
    uint64_t before = sum_of_clocks();
    for (int i = 0; i < 12; i++) {
        tick();
        ck_assert_uint_gt(sum_of_clocks(), before);
        before = sum_of_clocks();
        ck_assert_uint_le(standing(), 8);
    }
    gil_taken_by(STATE(7)); /* who stands still */
    tick();
    before = sum_of_clocks();
    for (int i = 0; i < 12; i++) {
        tick();
        ck_assert_uint_eq(sum_of_clocks(), before);
    }
    ck_assert_uint_eq(standing(), 40);
    gil_taken_by(STATE(8));
    tick();
    ck_assert_uint_gt(sum_of_clocks(), before);
    ck_assert_uint_le(standing(), 8);
    state(8, getpid(), STATE(7), function(8, "runs")); /* whose clock goes on */
    tick();
    before = sum_of_clocks();
    tick();
    ck_assert_uint_gt(sum_of_clocks(), before);
}
END_TEST

/* Has the thread run for a moment, and waits until it waits again. */
static void stir(int number)
{
    uint64_t before, woken = 0, after;
    ck_assert(clock_thread(tid_of[number], &before));
    ck_assert_int_eq(tgkill(getpid(), tid_of[number], SIGUSR1), 0);
    do {
        after = woken;
        usleep(1000);
        ck_assert(clock_thread(tid_of[number], &woken));
    } while (woken == before || woken != after);
}

/* Until one of them runs, ticks may be left out; all of the time is booked where they stand. */
START_TEST(while_all_stand_no_tick_is_needed)
{
    signal(SIGUSR1, wake_up);
    uint64_t first = clock_now();
    begin_many(5, 0);
    ck_assert(!watch_is_at_rest(watch));
    gil_taken_by(STATE(2));
    for (int i = 0; i < 3; i++)
        tick();
    ck_assert(watch_is_at_rest(watch));
    uint64_t looks = window.counters.thread_reads, samples = window.counters.samples, wall = wall_of_number(3);
    uint64_t began = ticked.after;
    watch_rest(watch, &stacks, &book, &window, clock_now());
    usleep(20000);
    uint64_t until = clock_now();
    watch_rest(watch, &stacks, &book, &window, until);
    ck_assert_uint_eq(window.counters.thread_reads, looks + 10);
    ck_assert_uint_eq(window.counters.samples, samples + 10);
    ck_assert_uint_ge(wall_of_number(3) - wall + ROUNDING, until - began);
    tick();
    ck_assert(watch_is_at_rest(watch));
    settle();
    ck_assert_uint_le(wall_of_number(3), ticked.after - first);
    stir(2);
    tick();
    ck_assert(!watch_is_at_rest(watch));
    for (int i = 0; i < 3; i++)
        tick();
    ck_assert(watch_is_at_rest(watch));
    watch_forget_stacks(watch);
    ck_assert(!watch_is_at_rest(watch));
}
END_TEST

/* Nor where not all are looked at, or one is not known to stand. */
START_TEST(no_tick_is_left_out_while_one_is_not_known_to_stand)
{
    begin_many(5, 4);
    gil_taken_by(STATE(2));
    for (int i = 0; i < 8; i++) {
        tick();
        ck_assert(!watch_is_at_rest(watch));
    }
}
END_TEST

/* Nor where one stands without a frame: what it waits there is not its last stack's. */
START_TEST(no_tick_is_left_out_while_one_has_no_frame)
{
    signal(SIGUSR1, wake_up);
    begin_many(3, 0);
    gil_taken_by(STATE(2));
    for (int i = 0; i < 3; i++)
        tick();
    ck_assert(watch_is_at_rest(watch));
    state(0, tid_of[0], 0, 0);
    stir(0);
    for (int i = 0; i < 4; i++) {
        tick();
        ck_assert(!watch_is_at_rest(watch));
    }
}
END_TEST

/* All thread states are gone through now and then only, but new ones are seen at once. */
START_TEST(of_hundreds_the_newest_are_found_at_once)
{
    begin_many(MANY - 1, 64);
    tick();
    ck_assert_uint_eq(watch_count(watch), MANY - 1);
    unsigned long reads_whole = 0, reads_short = ~0ul;
    for (int i = 0; i < 12; i++)
        tick(); /* until their stacks are known, and need not be read */
    for (int i = 0; i < 12; i++) {
        unsigned long before = fake_reads();
        tick();
        unsigned long took = fake_reads() - before;
        reads_whole = took > reads_whole ? took : reads_whole;
        reads_short = took < reads_short ? took : reads_short;
    }
    ck_assert_uint_gt(reads_whole, 3 * reads_short);
    for (int i = 0; i < 3; i++) { /* in each of them a walk through all meets another tick */
        state(MANY - 1, getpid(), STATE(MANY - 2), function(MANY - 1, "new"));
        interpreter(STATE(MANY - 1));
        tick();
        ck_assert_uint_eq(watch_count(watch), MANY);
        interpreter(STATE(MANY - 2));
        for (int more = 0; more < 3; more++)
            tick();
        ck_assert_uint_eq(watch_count(watch), MANY - 1);
    }
}
END_TEST

/* A tick that looks at all of them: its deadline is a part of the time since the last. */
static void tick_for_all(void)
{
    uint64_t deadlines = window.counters.limits[LIMIT_tick_deadline];
    usleep(300 * 1000);
    tick();
    ck_assert_uint_eq(window.counters.limits[LIMIT_tick_deadline], deadlines);
}

/* One whose state is another thread's by now is found out when it is to be read. */
START_TEST(of_hundreds_none_is_read_in_anothers_place)
{
    signal(SIGUSR1, wake_up);
    begin_many(MANY - 1, 0);
    tick_for_all();
    tick_for_all(); /* the next one does not walk through all states */
    state(5, ANOTHER, STATE(4), function(MANY - 1, "other"));
    interpreter(STATE(MANY - 2));
    uint64_t known = wall_of_number(5);
    stir(5); /* its clock moves, so it is read */
    tick_for_all();
    settle();
    ck_assert_uint_eq(wall_of("other"), 0);
    ck_assert_uint_ge(wall_of_number(5), known);
    ck_assert_uint_gt(wall_of_number(6), known);
}
END_TEST

/* --- a thread that runs a task --- */

static struct fake_world world;

/* A thread stands in a function that task 0 called. */
static void begin_in_task(void)
{
    fake_asyncio_start(&world, MINOR, 2, 1 << 16);
    fake_births_reset();
    target = world.target;
    begin_with_target(false);
    struct tasks_options tasks = {.target = &target, .depth = 16, .metric = true, .clock_precise = true};
    struct watch_options options = {.target = &target, .depth = 16, .period_ns = 10 * MS, .clock_precise = true,
                                    .tasks = tasks_new(&tasks, clock_now())};
    ck_assert_ptr_nonnull(options.tasks);
    watch_free(watch);
    watch = watch_new(&options, clock_now());
    book.metrics |= 1u << METRIC_TASK;
    start_thread(stand_still, 0);
}

static void place_task(uintptr_t current)
{
    struct fake_thread thread = fake_thread_of(&world);
    struct fake runtime = fake_new(RUNTIME_AT, 32768), interp = fake_new(FAKE_INTERP_AT, 16384), gil = fake_new(FAKE_INTERP_AT + 0x10000, 64);
    fake_call(&thread, fake_function(&target, 0, "main", "/app/m.py"));
    fake_call(&thread, fake_function(&target, 1, "BaseEventLoop._run_once", "/lib/asyncio/base_events.py"));
    fake_call(&thread, fake_function(&target, 2, "Handle._run", "/lib/asyncio/events.py"));
    fake_task(&world, 0, 1);
    fake_step(&thread, 0, 1);
    fake_call(&thread, fake_function(&target, 3, "wait", "/app/m.py"));
    struct fake tstate = fake_tstate_new(&thread, current);
    ck_assert_int_ge(asyncios_publish(&world.asyncio), 0);
    fake_put_word(&tstate, target.layout.thread_native_id, (uint64_t)tid_of[0]);
    fake_put_word(&tstate, target.layout.thread_id, 0x1000);
    fake_put_word(&tstate, target.layout.thread_unique_id, 1);
    fake_put_int(&runtime, target.layout.runtime_initialized, 1);
    fake_put_word(&runtime, target.layout.runtime_interpreters_head, FAKE_INTERP_AT);
    fake_put_word(&runtime, target.layout.runtime_interpreters_main, FAKE_INTERP_AT);
    fake_put_word(&interp, target.layout.interp_threads_head, fake_place(&tstate));
    fake_put_word(&interp, target.layout.interp_gil, fake_place(&gil));
    fake_place(&runtime);
    fake_place(&interp);
}

static void tick_some(void)
{
    for (int i = 0; i < 5; i++, usleep(2000))
        tick();
}

START_TEST(a_task_gets_the_time_of_its_thread)
{
    profile_stack stack;
    uint64_t us;
    uint32_t at = 0;
    begin_in_task();
    place_task(fake_task_at(0));
    tick_some();
    ck_assert_uint_gt(total(METRIC_TASK), 4 * MS);
    ck_assert(profile_each(stacks.profile, METRIC_TASK, &at, &stack, &us));
    ck_assert_str_eq(fake_functions(stacks.profile, stack), "main;t0.0;wait"); /* without the loop */
    ck_assert(!profile_each(stacks.profile, METRIC_TASK, &at, &stack, &us));
    ck_assert_uint_eq(total(METRIC_TASK), total(METRIC_WALL));
}
END_TEST

/* The same frames, driven by hand: no task's. */
START_TEST(the_same_frames_without_a_task)
{
    begin_in_task();
    place_task(fake_task_at(0));
    tick_some();
    uint64_t before = total(METRIC_TASK), wall = total(METRIC_WALL);
    place_task(0);
    watch_forget_stacks(watch); /* so that it is read anew */
    tick_some();
    ck_assert_uint_eq(total(METRIC_TASK), before);
    ck_assert_uint_gt(total(METRIC_WALL), wall);
}
END_TEST

/* [overflow] is everybody's. */
START_TEST(overflow_has_no_twin)
{
    begin_in_task();
    place_task(fake_task_at(0));
    profile_freeze(stacks.profile, true);
    tick_some();
    ck_assert_uint_gt(total(METRIC_WALL), 4 * MS);
    ck_assert_uint_eq(total(METRIC_TASK), 0);
}
END_TEST

/* --- dumps --- */

static struct dump dump;

static bool nobody_waits(void)
{
    return false;
}

static const struct dump_thread *take_dump(void)
{
    dump_free(&dump);
    dump_begin(&dump, 1, nobody_waits);
    watch_dump(watch, &stacks, &dump);
    ck_assert_uint_eq(dump.threads, 1);
    ck_assert_uint_eq(dump.threads_left, 0);
    return &dump.thread[0];
}

static void ck_stands_in(const struct dump_thread *thread, const char *name)
{
    char text[512], wanted[64];
    snprintf(wanted, sizeof wanted, "%s (", name);
    text[profile_text(stacks.profile, thread->stack, text, sizeof text - 1)] = '\0';
    ck_assert_msg(strncmp(text, wanted, strlen(wanted)) == 0, "%s", text);
}

START_TEST(a_dump_of_a_thread_that_stands)
{
    begin(true);
    start_thread(stand_for_good, 0);
    interpreter(STATE(0));
    state(0, tid_of[0], 0, function(0, "wait"));
    usleep(1000); /* until it stands */
    tick();
    struct moment first = ticked;
    usleep(20000);
    uint64_t before = total(METRIC_WALL);
    const struct dump_thread *thread = take_dump();
    struct moment taken = {clock_now(), clock_now()};
    ck_assert_int_eq(thread->tid, tid_of[0]);
    ck_assert_int_eq(thread->state, DUMP_WAITING);
    ck_assert_int_eq(thread->how, DUMP_STOOD);
    ck_stands_in(thread, "wait");
    ck_assert_uint_ge(thread->age_ns, 20000000);
    ck_assert_uint_le(thread->age_ns, taken.after - first.before);
    ck_assert_uint_gt(thread->name.length, 0);
    ck_assert_uint_eq(total(METRIC_WALL), before); /* nobody's time */
    uint64_t age = thread->age_ns;
    settle();
    profile_clear(stacks.profile, false);
    watch_forget_stacks(watch); /* a window ends; since when it stands is known still */
    thread = take_dump();
    ck_assert_int_eq(thread->how, DUMP_STOOD);
    ck_assert_uint_ge(thread->age_ns, age);
    dump_free(&dump);
}
END_TEST

/* This thread runs on the first or the second CPU that there is for us. False: there is none. */
static bool keep_to(int number)
{
    cpu_set_t allowed, one;
    CPU_ZERO(&one);
    if (sched_getaffinity(getppid(), sizeof allowed, &allowed) != 0)
        return false;
    for (int cpu = 0; cpu < CPU_SETSIZE; cpu++) {
        if (!CPU_ISSET(cpu, &allowed) || number-- > 0)
            continue;
        CPU_SET(cpu, &one);
        return sched_setaffinity(0, sizeof one, &one) == 0;
    }
    return false;
}

static _Atomic int runs;

static void *stand_then_run(void *number)
{
    char knock;
    tid_of[(intptr_t)number] = gettid();
    ready++;
    keep_to(1);
    if (read(door[0], &knock, 1) == 1)
        for (runs = 1; !stop;)
            ;
    return NULL;
}

/* On a CPU of its own, or it would never run while we look; unless somebody else's
 * program has that just then: some looks. */
START_TEST(a_dump_of_a_thread_that_runs)
{
    if (sysconf(_SC_NPROCESSORS_ONLN) < 2) {
        printf("watch: a thread that runs while it is looked at not run: one CPU\n");
        return;
    }
    begin(true);
    ck_assert_int_eq(pipe(door), 0);
    pthread_t thread = start_thread(stand_then_run, 0);
    interpreter(STATE(0));
    state(0, tid_of[0], 0, function(0, "before"));
    usleep(1000);
    tick();
    struct moment stood = ticked;
    state(0, tid_of[0], 0, function(1, "meanwhile")); /* where it may be now: nobody knows */
    ck_assert_int_eq(write(door[1], "", 1), 1);
    while (!runs)
        usleep(100);
    ck_assert(keep_to(0));
    const struct dump_thread *found = take_dump();
    for (int i = 0; i < 10000 && found->state != DUMP_RUNNING; i++) {
        ck_assert_int_eq(found->state, DUMP_RUNNABLE);
        usleep(1000);
        found = take_dump();
    }
    ck_assert_int_eq(found->state, DUMP_RUNNING);
    ck_assert_int_eq(found->how, DUMP_LAST);
    ck_stands_in(found, "before");
    ck_assert_uint_ge(clock_now() - found->age_ns, stood.before);
    ck_assert_uint_eq(dump.blind, 0);
    watch_forget_stacks(watch);
    do
        found = take_dump();
    while (found->state != DUMP_RUNNING);
    ck_assert_int_eq(found->how, DUMP_UNKNOWN);
    ck_assert_uint_eq(found->stack, PROFILE_ROOT);
    ck_assert_uint_eq(found->age_ns, DUMP_NO_AGE);
    ck_assert_uint_eq(dump.blind, 1); /* its next tick would tell */
    dump_free(&dump);
    stop = 1;
    pthread_join(thread, NULL);
}
END_TEST

static _Atomic uintptr_t futex;

static void *stand_at_a_futex(void *number)
{
    tid_of[(intptr_t)number] = gettid();
    ready++;
    for (;;)
        syscall(SYS_futex, futex, FUTEX_WAIT_PRIVATE, 0, NULL, NULL, 0);
    return NULL;
}

/* What it waits for decides, not what it looks like. */
START_TEST(a_dump_of_a_thread_that_waits_for_the_gil)
{
    begin(true);
    const uintptr_t first = GIL + (uintptr_t)target.layout.gil_locked + 2 * sizeof(uint64_t);
    const uintptr_t end = first + 2 * (sizeof(pthread_cond_t) + sizeof(pthread_mutex_t));
    struct { uintptr_t address; int state; } cases[] = {{first, DUMP_GIL}, {end - 4, DUMP_GIL}, {end, DUMP_WAITING}, {first - 4, DUMP_WAITING}};
    int turn = _i;
    ck_assert_ptr_eq(mmap((void *)(uintptr_t)GIL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0),
                     (void *)(uintptr_t)GIL);
    futex = cases[turn].address;
    start_thread(stand_at_a_futex, 0);
    interpreter(STATE(0));
    state(0, tid_of[0], 0, function(0, "wait"));
    usleep(1000);
    tick();
    ck_assert_int_eq(take_dump()->state, cases[turn].state);
    ck_assert_int_eq(dump.thread[0].how, DUMP_STOOD);
    dump_free(&dump);
}
END_TEST

START_TEST(a_dump_of_a_thread_that_waits_with_the_gil)
{
    begin(true);
    start_thread(stand_for_good, 0);
    interpreter(STATE(0));
    struct fake gil = fake_new(GIL, 64);
    fake_put_int(&gil, target.layout.gil_locked, 1);
    fake_put_word(&gil, target.layout.gil_last_holder, STATE(0));
    fake_place(&gil);
    active = true;
    state(0, tid_of[0], 0, function(0, "wait"));
    usleep(1000);
    tick();
    ck_assert_int_eq(take_dump()->state, DUMP_HOLDS);
    dump_free(&dump);
}
END_TEST

Suite *suite_watch(void)
{
    const TTest *const tests[] = {
        a_thread_that_waits_is_booked_where_it_stands, a_wait_is_shared_with_the_one_before,
        a_window_books_everything_and_the_next_begins_there, the_end_of_a_thread_is_booked, a_slow_end_is_booked_once,
        a_thread_whose_state_comes_back_is_booked_once, a_broken_list_loses_nobody,
        a_state_that_is_another_threads_by_now_is_not_read, a_life_between_two_ticks,
        a_thread_of_c_counts_from_the_first_sight_of_its_state, many_threads_come_and_go, nothing_is_read_after_the_end_of_reading,
        more_threads_than_a_tick_looks_at_come_in_turn, the_others_are_not_read, what_ends_unlooked_at_is_taken,
        clocks_add_up_to_what_they_did_only_if_nobody_ran, while_all_stand_no_tick_is_needed,
        no_tick_is_left_out_while_one_is_not_known_to_stand, no_tick_is_left_out_while_one_has_no_frame,
        of_hundreds_the_newest_are_found_at_once, of_hundreds_none_is_read_in_anothers_place,
        a_task_gets_the_time_of_its_thread, the_same_frames_without_a_task, overflow_has_no_twin,
        a_dump_of_a_thread_that_stands, a_dump_of_a_thread_that_runs, a_dump_of_a_thread_that_waits_with_the_gil,
    };
    Suite *suite = suite_create("watch");
    TCase *core = tcase_create("core");
    for (size_t i = 0; i < sizeof tests / sizeof *tests; i++)
        tcase_add_test(core, tests[i]);
    tcase_add_loop_test(core, a_dump_of_a_thread_that_waits_for_the_gil, 0, 4);
    tcase_set_timeout(core, 60);
    suite_add_tcase(suite, core);
    return suite;
}
