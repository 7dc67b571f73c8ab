/* SPDX-License-Identifier: MIT */
#include "sampler/loop.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "hooks/clock.h"
#include "hooks/futex.h"
#include "hooks/guard.h"
#include "hooks/log.h"
#include "hooks/mem.h"
#include "hooks/task.h"
#include "sampler/account.h"
#include "sampler/budget.h"
#include "sampler/codes.h"
#include "sampler/cpython/states.h"
#include "sampler/markers.h"
#include "sampler/stacks.h"
#include "sampler/stall.h"
#include "sampler/tasks.h"
#include "sampler/tick.h"
#include "sampler/watch.h"

#define MS 1000000ull
#define SECOND 1000000000ull

enum {
    JITTER_PERCENT = 20,
    SLOWER = 8,           /* an idle tick comes so much of its interval later than the one before: ticks that came apart
                             faster would fall into step with a program of two waits, and miss the short one */
    STEADY_SLOWER = 64,   /* the same while threads do nothing but run: two seconds of that, until ... */
    STEADY_MOST = 4,      /* ... a tick comes for so many. One that waits once in a while, if only for a short time, is
                             still met; rings have room for what CPU ticks say meanwhile; asyncio is not imported in less */
    RESEAL_SECONDS = 5,   /* until a window that could not be sealed is tried again, or as long as a window lasts */
    EXEC_SECONDS = 5,     /* after a window that was sealed for an exec: another exec seals none */
    HASTE_MS = 2,         /* between two ticks while asyncio is being imported */
    POLL_SOON_MS = 1,     /* looking for the runtime: in the first second ... */
    POLL_LATE_MS = 50,    /* ... and later */
    NAMES_SLACK = 256 << 10, /* bytes of names beyond a quarter more than one window left, until they are dropped */
    BLIND_MOST = 10,      /* ticks that a dump waits for the next CPU tick of threads that were not found anywhere yet, ... */
    BLIND_US = 2000,      /* ... if looking at all threads takes no more */
    DUMP_SHARE = 100,     /* of the time that passes one part in so many may be used for dumps, ... */
    DUMP_CREDIT_MS = 500, /* ... and so much CPU at once */
    IDLE_CPU_US = 200,    /* CPU of the application between two ticks that still counts as standing still */
    REST_CPU_NS = 2000    /* ... that the two clocks may seem to differ by though nobody ran: a thread that wakes uses more */
};

/* What outlives a pause of the thread, but not a fork. */
static struct {
    struct task task;
    struct profile *profile;
    struct watch *watch;
    struct tasks *tasks;
    struct stacks stacks;
    struct account_book book;
    struct window window;
    struct loop_totals totals;     /* of sealed windows */
    struct budget budget;
    uint64_t tasks_cpu_before, handlers_before; /* of sealed windows */
    uint64_t interval_ns;          /* between two ticks, before jitter */
    uint64_t due_ns;               /* of the next tick */
    uint64_t started_ns;           /* of the thread, at its first start */
    uint64_t looking_ns;           /* since when a runtime is looked for often */
    uint64_t sampling_ns;          /* since when the runtime is sampled; 0: not now */
    uint64_t described_ns;
    uint64_t alone_ns;             /* when it was last asked whether other threads are left */
    uint64_t sealed_for_exec_ns;   /* 0: never. The image is still the same, so that exec failed */
    uint64_t window_end_ns;        /* when the open window is to be sealed */
    uint64_t process_cpu, own_cpu; /* at the last tick */
    bool may_rest;                 /* the last whole tick found nobody running */
    uint64_t rest_cpu;             /* CPU of the application at the end of the tick before that */
    uint64_t window_process_cpu, window_own_cpu, own_cpu_before; /* at the window's start; of earlier threads of ours */
    uint64_t random;
    bool had_sample, over, stopped /* the runtime ends: reading has stopped */, precise_known, precise, paused, unjoined, own_table;
    uint64_t codes_overflows, profile_overflows, refused;
    bool dump_asked;
    uint32_t dump_blind;           /* ticks that it was put off by */
    int64_t dump_credit;           /* ns of CPU that dumps may use; below 0: none now */
    uint64_t dump_credit_ns;       /* when that was so */
    size_t names_bytes;            /* of our heap, in use after the first window since names were dropped; 0: none yet */
} loop;

static struct loop_options options;
static _Atomic uint32_t requests; /* bits of enum loop_request and LOOK_SOON; futex of both sides */
#define LOOK_SOON 16u
static _Atomic uint32_t running; /* STARTING: requests of before are being cleared, nothing can be asked yet */
enum { STOPPED, STARTING, RUNNING };
static _Atomic bool refused;
static _Atomic bool waiting; /* for a runtime, at the slow pace */

void loop_prepare(const struct loop_options *given)
{
    options = *given;
}

bool loop_is_running(void)
{
    return atomic_load(&running) == RUNNING;
}

bool loop_may_change_identity(void)
{
    return task_may_change_identity_like(loop.task.tid);
}

void loop_refuse(void)
{
    atomic_store(&refused, true);
}

static struct loop_totals totals_now(void)
{
    struct loop_totals totals = loop.totals;
    totals.samples += loop.window.counters.samples;
    if (loop.profile) {
        totals.cpu_ns += profile_total_ns(loop.profile, METRIC_CPU);
        totals.wall_ns += profile_total_ns(loop.profile, METRIC_WALL);
    }
    return totals;
}

/* For whoever ends the process, perhaps in the middle of a tick or of a sealing. */
static struct {
    _Atomic uint64_t samples, cpu_ns, wall_ns;
} shown;

static void show_totals(const struct loop_totals *totals)
{
    atomic_store(&shown.samples, totals->samples);
    atomic_store(&shown.cpu_ns, totals->cpu_ns);
    atomic_store(&shown.wall_ns, totals->wall_ns);
}

struct loop_totals loop_totals(void)
{
    return (struct loop_totals){atomic_load(&shown.samples), atomic_load(&shown.cpu_ns), atomic_load(&shown.wall_ns)};
}

/* --- windows --- */

static uint64_t own_cpu(void)
{
    return loop.own_cpu_before + clock_self();
}

static void open_window(uint64_t number)
{
    uint64_t now = clock_now();
    loop.tasks_cpu_before += loop.window.counters.task_cpu_ns;
    loop.handlers_before += loop.window.counters.handler_ns;
    memset(&loop.window, 0, sizeof loop.window);
    loop.window.number = number;
    loop.window.start_us = loop.window.end_us = clock_epoch_us();
    loop.window.start_ns = now;
    loop.window_end_ns = now + options.window_ns;
    loop.window.ended = "open";
    loop.window.clock_coarse = !loop.precise;
    loop.window_process_cpu = clock_process();
    loop.window_own_cpu = own_cpu();
    loop.book.spread_ns = loop.book.unseen_ns = loop.book.gil_wait_ns = loop.book.gil_unknown_ns = loop.book.gil_wall_ns = 0;
}

/* Brings the window's facts up to now. */
static void update_window(void)
{
    struct counters *counters = &loop.window.counters;
    uint64_t overflows = codes_overflows();
    loop.window.end_us = clock_epoch_us();
    counters->cpu_unseen_ns = loop.book.unseen_ns;
    counters->cpu_spread_ns = loop.book.spread_ns;
    counters->gil_wait_ns = loop.book.gil_wait_ns;
    counters->gil_unknown_ns = loop.book.gil_unknown_ns;
    counters->gil_wall_ns = loop.book.gil_wall_ns;
    counters->process_cpu_ns = clock_process() - loop.window_process_cpu;
    counters->sampler_cpu_ns = own_cpu() - loop.window_own_cpu;
    counters->dropped[DROP_unreadable] += loop.stacks.unreadable;
    counters->limits[LIMIT_names] += overflows - loop.codes_overflows;
    loop.stacks.unreadable = 0;
    loop.codes_overflows = overflows;
    overflows = profile_overflows(loop.profile);
    counters->dropped[DROP_table_full] += overflows - loop.profile_overflows;
    loop.profile_overflows = overflows;
    counters->budget.rate_mhz = loop.budget.rate_mhz;
    counters->heap_bytes = mem_used();
    markers_count(counters);
    counters->limits[LIMIT_memory] += mem_refused() - loop.refused;
    loop.refused = mem_refused();
}

static void intern_markers(void)
{
    static const char cpu[] = "[unseen cpu]", wall[] = "[unseen wall]", unknown[] = "[unknown]";
    loop.book.unseen_cpu = profile_intern(loop.profile, cpu, sizeof cpu - 1, 0);
    loop.book.unseen_wall = profile_intern(loop.profile, wall, sizeof wall - 1, 0);
    loop.stacks.unknown = profile_intern(loop.profile, unknown, sizeof unknown - 1, 0);
}

/* Whether names that are kept from window to window have become many more than one
 * window left: code that is made and never comes again adds up. */
static bool names_pile_up(void)
{
    size_t used = mem_used();
    if (loop.names_bytes == 0)
        loop.names_bytes = used;
    return used > loop.names_bytes + loop.names_bytes / 4 + NAMES_SLACK;
}

/* Empties the profile; names too when they have become many. */
static void clear_profile(void)
{
    uint32_t generation = profile_generation(loop.profile);
    profile_clear(loop.profile, false);
    if (codes_are_many() || mem_used() > mem_limit() / 2 || names_pile_up()) {
        profile_clear(loop.profile, true);
        codes_forget();
        loop.names_bytes = 0;
    }
    if (profile_generation(loop.profile) != generation) {
        codes_forget_frames();
        intern_markers();
    }
    watch_forget_stacks(loop.watch);
    markers_begin_window();
    tasks_forget_stacks(loop.tasks);
    markers_end_keeping();
    loop.profile_overflows = profile_overflows(loop.profile);
}

static void tick_once(bool must);

/* A process counts as sampled once that can be read. */
static void flush(const struct window *window)
{
    bool stored = options.output->flush(loop.profile, window) >= 0;
    if (stored && !loop.had_sample && window->counters.samples) {
        loop.had_sample = true;
        options.first_sample();
    }
}

/* What comes after a window. */
enum after { NOTHING, NEXT_WINDOW, MAYBE_NEXT /* if the exec fails: opened when there is something for it */ };

/* Ends the window for this reason. Where it cannot be sealed (a full disk), its
 * live files are whole, and it goes on. */
static void end_window(const char *reason, enum after after)
{
    struct window ended;
    tick_once(true);
    watch_settle(loop.watch, &loop.stacks, &loop.book, &loop.window);
    update_window();
    ended = loop.window;
    ended.ended = reason;
    struct loop_totals totals = totals_now();
    show_totals(&totals);
    uint64_t process_cpu = loop.window_process_cpu, own = loop.window_own_cpu;
    struct account_book book = loop.book;
    open_window(ended.number + 1);
    stall_writing(true);
    flush(&ended);
    if (after != NEXT_WINDOW)
        options.output->describe(loop.profile, &ended); /* whoever cannot wait for the sealing leaves live files that say all */
    int error = options.output->seal(loop.profile, &ended, after == NEXT_WINDOW ? &loop.window : NULL);
    stall_writing(false);
    if (error < 0 && after != NOTHING) {
        loop.window = ended;
        loop.tasks_cpu_before -= ended.counters.task_cpu_ns;
        loop.handlers_before -= ended.counters.handler_ns;
        loop.window.ended = "open";
        loop.window_process_cpu = process_cpu;
        loop.window_own_cpu = own;
        loop.book = book;
        loop.window_end_ns = clock_now() + (options.window_ns < RESEAL_SECONDS * SECOND ? options.window_ns : RESEAL_SECONDS * SECOND);
        return;
    }
    loop.totals = totals;
    clear_profile();
}

/* --- ticks --- */

static struct budget_spent spent_so_far(void)
{
    const struct counters *counters = &loop.window.counters;
    return (struct budget_spent){.process = clock_process(), .sampler = own_cpu(),
                                 .tasks = loop.tasks_cpu_before + counters->task_cpu_ns,
                                 .handlers = loop.handlers_before + counters->handler_ns};
}

/* A process that is killed within its first second leaves figures that are true. */
static uint64_t describing_interval(uint64_t now)
{
    return now - loop.sampling_ns < SECOND ? SECOND / 10 : SECOND;
}

/* --- ticks at rest ---
 *
 * Where a tick found that each thread stands, the next one reads two clocks: if the
 * application has used no CPU since, nothing can be otherwise, and what passed is
 * booked where all stood. That costs half. Once a second all are looked at all the
 * same. */

static uint64_t application_cpu(const struct budget_spent *spent)
{
    return spent->process - spent->sampler;
}

static bool is_whole_due(uint64_t now)
{
    return loop.stopped || loop.dump_asked || now >= loop.window_end_ns || now - loop.described_ns >= describing_interval(now) ||
           watch_wants_tick(loop.watch, now);
}

/* True: *spent is as of now. */
static bool is_at_rest(uint64_t now, struct budget_spent *spent)
{
    if (!loop.may_rest || is_whole_due(now))
        return false;
    *spent = spent_so_far();
    return (int64_t)(application_cpu(spent) - loop.rest_cpu) < REST_CPU_NS;
}

static void rest(uint64_t now)
{
    watch_rest(loop.watch, &loop.stacks, &loop.book, &loop.window, now);
    tasks_rest(loop.tasks, &loop.window, now);
    stall_writing(true);
    flush(&loop.window);
    stall_writing(false);
}

/* must: also all tasks, however short ago they were read. */
static void tick_once(bool must)
{
    const struct tasks_thread *threads;
    loop.may_rest = false;
    guard_recheck();
    uint32_t count = watch_list(loop.watch, &threads);
    if (!loop.stopped)
        tasks_prepare(loop.tasks, threads, count, &loop.stacks, clock_now());
    watch_tick(loop.watch, &loop.stacks, &loop.book, &loop.window);
    count = watch_list(loop.watch, &threads);
    if (!loop.stopped)
        tasks_tick(loop.tasks, threads, count, &loop.stacks, &loop.window, clock_now(), must);
}

static uint32_t next_random(void)
{
    loop.random = loop.random * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(loop.random >> 33);
}

static uint64_t jittered(uint64_t interval)
{
    uint64_t span = interval * JITTER_PERCENT / 50; /* from -20 % to +20 % */
    return interval - span / 2 + (span ? next_random() % span : 0);
}

static void keep_to_budget(const struct budget_spent *spent)
{
    if (budget_review(&loop.budget, clock_now(), spent, &loop.window.counters.budget))
        tasks_keep_to(loop.tasks, budget_tasks_share(&loop.budget));
}

/* While the application uses no CPU, an eighth longer after each tick, up to the
 * minimum rate; more slowly, and not as far, while its threads do nothing but run,
 * which their CPU ticks see; at what the budget allows again as soon as it is otherwise. */
static void back_off(const struct budget_spent *spent)
{
    uint64_t used = (spent->process - loop.process_cpu) - (spent->sampler - loop.own_cpu);
    bool idle = (int64_t)used < IDLE_CPU_US * 1000, steady = !idle && watch_is_steady(loop.watch);
    loop.process_cpu = spent->process;
    loop.own_cpu = spent->sampler;
    keep_to_budget(spent);
    uint64_t shortest = budget_interval(&loop.budget), least = SECOND / options.min_rate;
    uint64_t longest = steady && STEADY_MOST * shortest < least ? STEADY_MOST * shortest : least;
    uint64_t later = loop.interval_ns + loop.interval_ns / (steady ? STEADY_SLOWER : SLOWER);
    loop.interval_ns = (idle || steady) && later > shortest ? later : shortest;
    if (loop.interval_ns > longest)
        loop.interval_ns = longest;
}

/* Counts the tick that is taken now and those that it comes too late for. */
static void count_tick(uint64_t now)
{
    uint64_t late = now > loop.due_ns ? now - loop.due_ns : 0, missed = late / loop.interval_ns;
    loop.window.own_ticks++;
    loop.window.counters.ticks_due += 1 + missed;
    loop.window.counters.ticks_taken++;
    loop.window.counters.ticks_missed += missed;
}

static void store(void)
{
    uint64_t now = clock_now();
    struct loop_totals totals = totals_now();
    show_totals(&totals);
    bool describing = now - loop.described_ns >= describing_interval(now);
    profile_freeze(loop.profile, options.output->is_full());
    if (describing) {
        loop.described_ns = now;
        update_window();
    }
    stall_writing(true);
    flush(&loop.window);
    if (describing)
        options.output->describe(loop.profile, &loop.window);
    loop.dump_asked = loop.dump_asked || (describing && options.output->is_asked());
    stall_writing(false);
}

/* --- dumps --- */

static bool is_waited_for(void)
{
    return atomic_load(&requests) & ~LOOK_SOON;
}

static void answer_dump(const struct dump *dump)
{
    loop.dump_asked = false;
    stall_writing(true);
    options.output->answer(loop.profile, dump);
    stall_writing(false);
}

/* Whoever asks again and again has a share of a core, and a few dumps at once before that. */
static bool can_afford_dump(uint64_t now)
{
    const int64_t most = (int64_t)(DUMP_CREDIT_MS * MS);
    int64_t earned = loop.dump_credit_ns ? (int64_t)((now - loop.dump_credit_ns) / DUMP_SHARE) : most;
    loop.dump_credit = earned > most - loop.dump_credit ? most : loop.dump_credit + earned;
    loop.dump_credit_ns = now;
    return loop.dump_credit >= 0;
}

/* Right after a tick. Should somebody wait for us meanwhile, the next one does it. */
static void dump_now(void)
{
    const struct tasks_thread *threads;
    struct dump dump;
    uint32_t count = watch_list(loop.watch, &threads);
    dump_begin(&dump, clock_epoch_us(), is_waited_for);
    watch_dump(loop.watch, &loop.stacks, &dump);
    if (dump.blind && clock_self() - dump.cpu_ns < BLIND_US * 1000 && ++loop.dump_blind <= BLIND_MOST)
        dump.stopped = true; /* once more a tick later, which is cheap */
    else
        loop.dump_blind = 0;
    if (!dump.stopped)
        tasks_dump(loop.tasks, threads, count, &loop.stacks, &dump, clock_now());
    if (!dump.stopped)
        answer_dump(&dump);
    loop.dump_credit -= (int64_t)(clock_self() - dump.cpu_ns);
    dump_free(&dump);
}

static void take_whole_tick(uint64_t now)
{
    loop.rest_cpu = loop.process_cpu - loop.own_cpu;
    tick_once(false);
    loop.may_rest = !loop.stopped && watch_is_at_rest(loop.watch) && tasks_are_at_rest(loop.tasks) && !tasks_in_haste(loop.tasks, now);
    if (loop.dump_asked && !loop.stopped && can_afford_dump(now)) {
        loop.may_rest = false;
        dump_now();
    }
    store();
}

static void take_tick(uint64_t now)
{
    struct budget_spent spent;
    count_tick(now);
    if (is_at_rest(now, &spent)) {
        rest(now);
    } else {
        take_whole_tick(now);
        spent = spent_so_far();
    }
    back_off(&spent);
    loop.due_ns = clock_now() + (tasks_in_haste(loop.tasks, now) ? HASTE_MS * MS : jittered(loop.interval_ns));
    if (now >= loop.window_end_ns)
        end_window("window", NEXT_WINDOW);
}

/* --- the life of a runtime --- */

/* By whoever comes first: a CPU tick, or a pending call. */
static void hook_births(uintptr_t task_type, uintptr_t interp)
{
    if (options.signals)
        tick_hook_births(task_type, interp);
    options.hook(task_type, interp);
}

static struct tasks *make_tasks(void)
{
    struct tasks_options taking = {.target = options.target,
                                   .depth = options.depth,
                                   .creators = options.creators,
                                   .metric = options.metrics >> METRIC_TASK & 1,
                                   .clock_precise = loop.precise,
                                   .hook = hook_births};
    return tasks_new(&taking, clock_now());
}

static bool make_state(void)
{
    struct watch_options watching = {
        .target = options.target, .depth = options.depth, .max_threads = options.max_threads, .period_ns = SECOND / options.rate, .signals = options.signals,
        .exceptions = options.metrics >> METRIC_EXC & 1,
        .thread_frames = options.thread_frames};
    if (options.clock == TIMER_CPU && watching.period_ns < clock_kernel_tick())
        watching.period_ns = clock_kernel_tick();
    if (!loop.precise_known) {
        loop.precise = clock_thread_is_precise();
        loop.precise_known = true;
    }
    watching.clock_precise = loop.precise;
    if (!loop.profile) {
        loop.profile = profile_new();
        markers_begin_window(); /* a forked child has its parent's */
        markers_end_keeping();
    }
    if (!loop.tasks)
        loop.tasks = make_tasks();
    watching.tasks = loop.tasks;
    if (!loop.watch)
        loop.watch = watch_new(&watching, clock_now());
    if (!loop.profile || !loop.tasks || !loop.watch)
        return false;
    loop.stacks = (struct stacks){.profile = loop.profile, .paths = options.paths, .target = options.target};
    loop.book = (struct account_book){.profile = loop.profile, .metrics = options.metrics};
    intern_markers();
    return true;
}

static void begin_budget(void)
{
    struct budget_options rates = {.overhead = options.overhead, .asked = options.rate, .least = options.min_rate};
    struct budget_spent spent = spent_so_far();
    budget_begin(&loop.budget, &rates, clock_now(), &spent);
    tasks_keep_to(loop.tasks, budget_tasks_share(&loop.budget));
    loop.interval_ns = budget_interval(&loop.budget);
    loop.process_cpu = spent.process;
    loop.own_cpu = spent.sampler;
}

static void begin_life(void)
{
    bool ready = options.ready(), made = ready && make_state();
    if (!made) {
        if (ready)
            log_line(LOG_WARN, LOG_STATE, "not profiling: no memory for it");
        atomic_store(&refused, true);
        return;
    }
    options.output->begin();
    loop.sampling_ns = clock_now();
    open_window(0);
    begin_budget();
    atomic_store(&waiting, false);
    tick_enable(options.signals);
    loop.due_ns = clock_now();
}

static void stop_ticks(void)
{
    loop.stopped = true;
    tick_enable(false);
    watch_disarm(loop.watch);
    watch_stop_reading(loop.watch);
}

/* The runtime ends (or sampling must): what is known so far goes to disk. */
static void end_life(const char *reason)
{
    if (!loop.sampling_ns)
        return;
    tick_enable(false);
    end_window(reason, NOTHING);
    watch_disarm(loop.watch);
    watch_free(loop.watch);
    tasks_free(loop.tasks);
    loop.watch = NULL;
    loop.tasks = NULL;
    loop.sampling_ns = 0;
    loop.stopped = false;
}

static uint64_t poll_interval(uint64_t now)
{
    bool late = now - loop.looking_ns >= SECOND;
    atomic_store(&waiting, late);
    return (late ? POLL_LATE_MS : POLL_SOON_MS) * MS;
}

static bool may_begin(uint64_t now)
{
    return !loop.over && !atomic_load(&refused) && now - loop.started_ns >= options.delay_ns &&
           states_phase(options.target) == RUNTIME_READY && !stall_is_above();
}

static void run_sampling(uint64_t now)
{
    enum runtime_phase phase = states_phase(options.target);
    if (atomic_load(&refused)) {
        end_life("error");
    } else if (options.duration_ns && now - loop.sampling_ns >= options.duration_ns) {
        end_life("duration");
        loop.over = true;
    } else if (phase == RUNTIME_READY && !loop.stopped) {
        take_tick(now);
    } else if (phase == RUNTIME_READY || phase == RUNTIME_STARTING) {
        end_life("exit"); /* finalised; it may start again, or has done so already */
    } else {
        if (!loop.stopped)
            stop_ticks();
        take_tick(now);
    }
}

/* Threads whose end nobody told us of are all gone: so that the process ends, with
 * descriptors that are nobody's for what runs then. */
static bool is_left_behind(uint64_t now)
{
    if (now - loop.alone_ns < SECOND)
        return false;
    loop.alone_ns = now;
    if (!task_is_last())
        return false;
    end_life("exit");
    if (loop.own_table)
        task_close_descriptors();
    return true;
}

/* One round; the time of the next is left in due_ns. */
static void run_round(uint64_t now)
{
    if (loop.sampling_ns) {
        run_sampling(now);
    } else if (may_begin(now)) {
        begin_life();
        return;
    }
    if (!loop.sampling_ns)
        loop.due_ns = clock_now() + (loop.over || atomic_load(&refused) ? SECOND : poll_interval(now));
}

/* --- requests --- */

static void last_tick(void)
{
    loop.window.counters.ticks_due++;
    loop.window.counters.ticks_taken++;
    tick_once(true);
    update_window();
    struct loop_totals totals = totals_now();
    show_totals(&totals);
    stall_writing(true);
    flush(&loop.window);
    options.output->describe(loop.profile, &loop.window);
    stall_writing(false);
}

/* A program that tries one exec after the other would leave a window for each: then
 * the window's live files stay as they are, whole, and say how the process ended
 * should it end. */
static void last_before_exec(void)
{
    uint64_t before = loop.sealed_for_exec_ns;
    if (before && clock_now() - before < EXEC_SECONDS * SECOND) {
        loop.window.ended = "exec";
        last_tick();
        loop.window.ended = "open";
    } else {
        end_window("exec", MAYBE_NEXT);
        loop.sealed_for_exec_ns = clock_now();
    }
}

/* Answers what was asked; false: the thread leaves. */
static bool answer(uint32_t asked)
{
    if (loop.sampling_ns) {
        if (asked & LOOP_EXIT)
            end_life("exit");
        else if (asked & LOOP_EXEC)
            last_before_exec();
        else if (asked & LOOP_LAST_TICK)
            last_tick();
        if (loop.sampling_ns && asked & LOOP_PAUSE) {
            stall_writing(true);
            options.output->pause(loop.profile, &loop.window);
            stall_writing(false);
            loop.paused = true;
        }
    }
    return !(asked & (LOOP_EXIT | LOOP_PAUSE));
}

static void take_up(void)
{
    stall_writing(true);
    if (loop.paused && loop.sampling_ns && options.output->resume(loop.profile, &loop.window) == -EACCES)
        loop.window_end_ns = clock_now();
    stall_writing(false);
    loop.paused = false;
}

/* Whoever asked for a pause may have stopped waiting meanwhile, and goes on
 * without it: then we stay. Either side finds the bit gone, never both. */
static bool is_withdrawn(uint32_t asked)
{
    uint32_t before = atomic_fetch_and(&requests, ~asked);
    futex_wake(&requests);
    return asked & ~before & LOOP_PAUSE && !(asked & LOOP_EXIT);
}

static void run(void *unused)
{
    bool stay = true;
    log_queue_on_this_thread();
    loop.own_table = task_unshare_descriptors();
    options.descriptors(loop.own_table);
    task_unshare_root();
    task_drop_capabilities();
    guard_own_thread();
    loop.due_ns = clock_now();
    loop.looking_ns = loop.due_ns;
    if (!loop.started_ns)
        loop.started_ns = loop.due_ns;
    loop.alone_ns = loop.due_ns;
    take_up();

    while (stay) {
        uint32_t asked = atomic_load(&requests);
        if (!asked && futex_wait(&requests, 0, loop.due_ns))
            continue; /* woken: somebody asks */
        if (asked == LOOK_SOON) {
            atomic_fetch_and(&requests, ~LOOK_SOON);
            loop.looking_ns = clock_now();
            run_round(loop.looking_ns);
        } else if (asked) {
            stay = answer(asked);
            if (is_withdrawn(asked)) {
                take_up();
                stay = true;
            }
        } else {
            run_round(clock_now());
            stay = !is_left_behind(clock_now());
        }
    }
    loop.own_cpu_before += clock_self();
}

int loop_start(void)
{
    uint32_t stopped = STOPPED;
    if (!atomic_compare_exchange_strong(&running, &stopped, STARTING))
        return 0;
    if (!loop.random)
        loop.random = clock_now() | 1;
    if (loop.unjoined && !task_join(&loop.task, clock_now() + MS)) {
        atomic_store(&running, STOPPED);
        return -EAGAIN; /* the one that was paused has not left yet */
    }
    loop.unjoined = false;
    stall_start();
    atomic_store(&requests, 0);
    memset(&loop.task, 0, sizeof loop.task);
    atomic_store(&running, RUNNING);
    int error = task_start(&loop.task, run, NULL);
    if (error)
        atomic_store(&running, STOPPED);
    return error;
}

/* A filter may end a thread for a system call that it makes. Once is enough to wait for it. */
void loop_notice_end(void)
{
    if (!loop_is_running() || !task_was_killed(&loop.task) || atomic_exchange(&running, STOPPED) == STOPPED)
        return;
    tick_enable(false);
    log_line(LOG_WARN, LOG_STATE, "not profiling any more: something ended our thread, a seccomp filter perhaps");
}

bool loop_ask(enum loop_request request, uint64_t deadline_ns)
{
    if (!loop_is_running())
        return true;
    if (task_tid() == loop.task.tid)
        return true; /* our own thread ends the process: nothing to wait for */
    atomic_fetch_or(&requests, (uint32_t)request);
    futex_wake(&requests);
    for (;;) {
        uint32_t now = atomic_load(&requests);
        if (now & (uint32_t)request && stall_is())
            return false; /* waited for already: once, not at each fork */
        if (!(now & (uint32_t)request))
            break;
        if (!futex_wait(&requests, now, deadline_ns)) {
            loop_notice_end();
            return false;
        }
    }
    if (request == LOOP_EXIT)
        atomic_store(&running, STOPPED);
    return true;
}

bool loop_leave(uint64_t deadline_ns)
{
    bool was_running = loop_is_running();
    return loop_ask(LOOP_EXIT, deadline_ns) && (!was_running || task_join(&loop.task, deadline_ns));
}

void loop_tick_soon(void)
{
    atomic_fetch_or(&requests, LOOK_SOON);
    futex_wake(&requests);
}

void loop_look_soon(void)
{
    if (atomic_load(&waiting) && atomic_exchange(&waiting, false))
        loop_tick_soon();
}

bool loop_pause(uint64_t deadline_ns)
{
    if (!loop_ask(LOOP_PAUSE, deadline_ns) && atomic_fetch_and(&requests, ~(uint32_t)LOOP_PAUSE) & LOOP_PAUSE)
        return false;
    loop.unjoined = !task_join(&loop.task, deadline_ns);
    atomic_store(&running, STOPPED);
    return true;
}

void loop_postfork_child(void)
{
    bool known = loop.precise_known, precise = loop.precise;
    memset(&loop, 0, sizeof loop);
    show_totals(&loop.totals);
    loop.precise_known = known;
    loop.precise = precise;
    atomic_store(&requests, 0);
    atomic_store(&running, STOPPED);
    atomic_store(&waiting, false);
    stall_postfork_child();
    tick_enable(false);
}
