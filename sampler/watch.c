/* SPDX-License-Identifier: MIT */
#include "sampler/watch.h"

#include <string.h>

#include "hooks/clock.h"
#include "hooks/mem.h"
#include "hooks/sigaction.h"
#include "hooks/task.h"
#include "hooks/threads.h"
#include "sampler/codes.h"
#include "sampler/cpython/states.h"
#include "sampler/ring.h"
#include "sampler/tick.h"

enum {
    RECORDS_MAX = THREADS_MAX,
    POSTPONED_MAX = 3,         /* ticks that a record waits for names that another thread is still writing */
    OUTSIDE_TRIES = 12,        /* of reading a running thread from outside: few would favour quiet code */
    UNTICKED_PERIODS = 2,      /* CPU that a thread may use without a tick before it is looked at from outside ... */
    RUNNING_PERIODS = 4,       /* ... and before that is tried while it runs, which is less exact than a look at a
                                  thread that was preempted */
    WAITS_PERIODS = 8,         /* CPU that is not given to a stack known as a wait; more than that is no wait's */
    WAITS_KNOWN = 4,           /* stacks remembered as waits, a thread */
    PROGRESS_SPAN_NS = 60000,  /* a thread without the GIL works, rather than enters or leaves a wait, ... */
    PROGRESS_LEAST_NS = 30000, /* ... when its clock moves so much in that span */
    FIRST_LISTED = 16,         /* threads that there is room for in the list at first */
    LEAVING_TICKS = 3          /* ticks that a thread without its state is waited for */
};

struct watched {
    struct thread *record;
    struct account account;
    uintptr_t tstate;
    uint64_t seen;          /* number of the tick that last found its state */
    profile_stack last;     /* the stack it was last found in */
    profile_stack driver;   /* of its loop, in that stack, should it run one */
    bool driver_sure;
    uintptr_t interp;
    uint64_t last_cpu;      /* CPU clock at which `last` was read ... */
    bool last_stands;       /* ... and known to stand while the clock shows it */
    profile_stack stood_in; /* where it stood still at the last look, if it did: ... */
    bool stood;             /* ... what it has waited since then began there */
    profile_stack waits[WAITS_KNOWN]; /* stacks in which it was seen to wait */
    uint8_t waits_next;
    uint8_t unticked;       /* periods of CPU that it used without a tick, once they were too many; until its next tick */
    bool empty;             /* no Python frame at the last look */
    uint8_t leaving, postponed;
};

struct watch {
    struct watch_options options;
    uint64_t since_ns, tick;
    bool reading;
    bool ticks_arrive;      /* the handler of CPU ticks is the kernel's */
    struct watched *by_record[RECORDS_MAX];
    uint32_t count;
    uint64_t births;        /* threads_births() at the last build of by_tid */
    bool by_tid_stale;
    uint16_t by_tid[2 * RECORDS_MAX]; /* open-addressed: record index + 1 */
    bool closed[RECORDS_MAX]; /* the account of this thread was closed before its end: its birth is behind us */
    struct stack_copy *one, *two;
    uint64_t seed;          /* for what is taken by lot */
    struct tasks_thread *listed;
    uint32_t listed_room;
};

/* What one tick works with. */
struct look {
    struct watch *watch;
    struct stacks *stacks;
    struct account_book *book;
    struct window *window;
};

struct watch *watch_new(const struct watch_options *options, uint64_t since_ns)
{
    struct watch *watch = mem_zalloc(sizeof *watch);
    if (!watch)
        return NULL;
    watch->options = *options;
    watch->since_ns = since_ns;
    watch->reading = true;
    watch->by_tid_stale = true;
    watch->seed = since_ns;
    watch->one = stacks_new_copy(options->depth);
    watch->two = stacks_new_copy(options->depth);
    if (watch->one && watch->two)
        return watch;
    watch_free(watch);
    return NULL;
}

void watch_free(struct watch *watch)
{
    for (uint32_t i = 0; i < RECORDS_MAX; i++)
        mem_free(watch->by_record[i]);
    mem_free(watch->one);
    mem_free(watch->two);
    mem_free(watch->listed);
    mem_free(watch);
}

uint32_t watch_count(const struct watch *watch)
{
    return watch->count;
}

/* --- tid -> record --- */

static void index_tid(struct watch *watch, pid_t tid, uint32_t record)
{
    uint32_t at = (uint32_t)tid * 2654435761u >> 8;
    while (watch->by_tid[at % (2 * RECORDS_MAX)])
        at++;
    watch->by_tid[at % (2 * RECORDS_MAX)] = (uint16_t)(record + 1);
}

static void index_records(struct watch *watch)
{
    uint64_t births = threads_births();
    if (!watch->by_tid_stale && births == watch->births)
        return;
    memset(watch->by_tid, 0, sizeof watch->by_tid);
    for (uint32_t i = 0; i < threads_high() && i < RECORDS_MAX; i++) {
        struct thread *record = threads_at(i);
        if (record && atomic_load(&record->state) == THREAD_LIVE)
            index_tid(watch, record->tid, i);
    }
    watch->births = births;
    watch->by_tid_stale = false;
}

static struct thread *record_of(struct watch *watch, pid_t tid)
{
    for (uint32_t at = (uint32_t)tid * 2654435761u >> 8;; at++) {
        uint16_t entry = watch->by_tid[at % (2 * RECORDS_MAX)];
        if (!entry)
            return NULL;
        struct thread *record = threads_at(entry - 1u);
        if (record && record->tid == tid && atomic_load(&record->state) == THREAD_LIVE)
            return record;
    }
}

/* --- beginning and end of watching --- */

/* The stack of the function that the thread began with, as far as it is known. */
static profile_stack origin_of(const struct look *look, const struct thread *record)
{
    profile_frame frame = record->origin ? codes_frame(look->stacks->profile, &look->stacks->paths, record->origin, -1) : 0;
    return frame ? profile_push(look->stacks->profile, PROFILE_ROOT, frame) : PROFILE_ROOT;
}

/* Where unseen time goes: below the stack it was last found in. */
static profile_stack last_of(const struct look *look, const struct watched *watched)
{
    return watched->last != PROFILE_ROOT ? watched->last : origin_of(look, watched->record);
}

static bool is_of_interpreter(const struct look *look, const struct thread *record)
{
    uintptr_t start = (uintptr_t)record->start;
    return start >= look->watch->options.target->text_start && start < look->watch->options.target->text_end;
}

/* Threads of the interpreter count from their birth, once; all others, and those
 * that come back, from the first sight of their thread state. */
static bool counts_from_birth(const struct look *look, const struct thread *record)
{
    return !record->adopted && is_of_interpreter(look, record) && record->born_ns >= look->watch->since_ns &&
           !look->watch->closed[record->index];
}

static void open_account(const struct look *look, struct watched *watched)
{
    const struct thread *record = watched->record;
    uint64_t cpu = 0;
    if (counts_from_birth(look, record)) {
        account_open(&watched->account, record->born_ns, 0);
        return;
    }
    clock_thread(record->tid, &cpu);
    account_open(&watched->account, clock_now(), cpu);
}

/* A ring that nobody has ticked into yet, or with leftovers from before. */
static void prepare_ring(struct thread *record)
{
    struct ring *ring = (struct ring *)record->space;
    if (ring->words == 0)
        ring_init(record->space, record->space_size);
}

static struct watched *begin(const struct look *look, struct thread *record)
{
    struct watched *watched = mem_zalloc(sizeof *watched);
    if (!watched) {
        look->window->counters.limits[LIMIT_memory]++;
        return NULL;
    }
    watched->record = record;
    prepare_ring(record);
    open_account(look, watched);
    look->watch->by_record[record->index] = watched;
    look->watch->count++;
    return watched;
}

static struct watched *watched_of(const struct look *look, pid_t tid)
{
    struct watch *watch = look->watch;
    struct thread *record = record_of(watch, tid);
    uint64_t cpu;
    if (!record) {
        if (!clock_thread(tid, &cpu))
            return NULL; /* a state whose thread is gone, or is not ours */
        record = threads_adopt(tid);
        if (!record) {
            look->window->counters.limits[LIMIT_records]++;
            return NULL;
        }
        index_tid(watch, tid, record->index);
    }
    return watch->by_record[record->index] ? watch->by_record[record->index] : begin(look, record);
}

static void take_drops(const struct look *look, struct thread *record)
{
    struct counters *counters = &look->window->counters;
    uint32_t full = atomic_exchange(&record->dropped_full, 0), torn = atomic_exchange(&record->dropped_torn, 0);
    uint32_t fault = atomic_exchange(&record->dropped_fault, 0), masked = atomic_exchange(&record->dropped_masked, 0);
    counters->dropped[DROP_ring_full] += full;
    counters->dropped[DROP_torn] += torn;
    counters->dropped[DROP_fault] += fault;
    counters->limits[LIMIT_signals_blocked] += masked;
    counters->ticks_due += full + torn + fault;
    counters->handler_ns += atomic_exchange(&record->handler_ns, 0);
}

/* A stack was recorded; cut: frames of it that were left out. */
static void sampled(const struct look *look, uint32_t cut)
{
    look->window->counters.samples++;
    if (cut)
        look->window->counters.limits[LIMIT_depth]++;
}

/* --- event loops --- */

static void loop_time(const struct look *look, const struct watched *watched, profile_stack stack, uint64_t ns)
{
    struct window *window = look->window;
    uint32_t flags = profile_stack_flags(look->stacks->profile, stack), i = 0;
    uint32_t tid = (uint32_t)watched->record->tid;
    if (!(flags & STACK_IN_LOOP))
        return;
    while (i < window->loops_count && window->loops[i].thread != tid)
        i++;
    if (i == window->loops_count) {
        if (i == LOOPS_SHOWN)
            return;
        window->loops[window->loops_count++] = (struct loop_time){tid, 0, 0};
    }
    if (flags & STACK_IDLE)
        window->loops[i].idle_ns += ns;
    else
        window->loops[i].busy_ns += ns;
}

/* --- CPU ticks --- */

/* A tick at the return of a system call that was made without the GIL: most
 * likely a wait that has just begun or ended, which used next to nothing. What
 * is outstanding is left to a tick that saw work; a call that does use CPU
 * (copying, compressing in the kernel) is found by a look from outside. */
static bool is_wait(uint64_t flags)
{
    return !(flags & RING_HOLDS_GIL) && flags & RING_IN_SYSCALL;
}

/* What it waited since the last look, it waited where it stood then: it runs now,
 * or is gone. */
static void wait_where_it_stood(const struct look *look, struct watched *watched)
{
    if (watched->stood)
        account_wait(&watched->account, look->book, watched->stood_in);
    watched->stood = false;
}

static bool is_known_wait(const struct watched *watched, profile_stack stack)
{
    for (int i = 0; i < WAITS_KNOWN; i++)
        if (watched->waits[i] == stack && stack != PROFILE_ROOT)
            return true;
    return false;
}

/* It stands still, and not for want of a CPU or of the GIL. */
static void know_wait(struct watched *watched, profile_stack stack)
{
    if (!is_known_wait(watched, stack) && !task_is_runnable(watched->record->tid))
        watched->waits[watched->waits_next++ % WAITS_KNOWN] = stack;
}

/* Of its CPU ticks, which may have become slower than usual. */
static uint64_t period_of(const struct look *look, const struct watched *watched)
{
    return look->watch->options.period_ns << atomic_load_explicit(&watched->record->slower, memory_order_relaxed);
}

/* Seen while it ran: the stack takes what is outstanding. But a thread that has
 * just woken from a wait, or enters one, still stands in it with the GIL held,
 * and used next to nothing there: what it did before is another stack's. */
static void run_in(const struct look *look, struct watched *watched, uint64_t cpu, profile_stack stack)
{
    uint64_t outstanding = cpu > watched->account.booked_cpu ? cpu - watched->account.booked_cpu : 0;
    if (is_known_wait(watched, stack) && outstanding < WAITS_PERIODS * period_of(look, watched))
        return;
    loop_time(look, watched, stack, outstanding);
    account_run(&watched->account, look->book, cpu, stack);
}

/* The copy as a stack. In it the thread's loop is found, and the stack of the task
 * that it runs is its twin; the same frames without a task have none. */
static profile_stack intern(const struct look *look, struct watched *watched, const struct stack_copy *copy)
{
    profile_stack stack = stacks_intern(look->stacks, copy);
    struct tasks *tasks = look->watch->options.tasks;
    profile_stack base = PROFILE_ROOT;
    if (copy->torn_awaiter)
        look->window->counters.dropped[DROP_torn_awaiter]++;
    if (!tasks)
        return stack;
    watched->driver = stacks_intern_driver(look->stacks, copy, &watched->driver_sure);
    if (copy->task && !copy->awaited)
        base = tasks_base(tasks, copy->task, copy->births);
    if (stack != profile_overflow(look->stacks->profile)) /* which is also that of threads without tasks */
        profile_set_twin(look->stacks->profile, stack, stacks_intern_task(look->stacks, copy, base));
    return stack;
}

static void take_tick(const struct look *look, struct watched *watched, struct ring *ring)
{
    profile_stack stack = intern(look, watched, look->watch->one);
    look->window->counters.ticks_due++;
    look->window->counters.ticks_taken++;
    sampled(look, look->watch->one->cut);
    if (is_wait(ring_flags(ring_peek(ring, 0))))
        return;
    watched->unticked = 0;
    run_in(look, watched, ring_peek(ring, 1), stack);
    watched->last = stack;
    watched->last_stands = false;
}

/* final: nothing is left for later. */
static void drain(const struct look *look, struct watched *watched, bool final)
{
    struct ring *ring = (struct ring *)watched->record->space;
    uint32_t ready, words;
    take_drops(look, watched->record);
    while ((ready = ring_ready(ring)) != 0) {
        words = ring_record(ring, ready);
        if (words)
            stacks_from_ring(look->watch->one, ring);
        if (!words || !stacks_is_whole(look->watch->one->end)) { /* the application wrote over it */
            look->window->counters.ticks_due++;
            look->window->counters.dropped[DROP_torn]++;
            ring_drop(ring, words ? words : ready);
            continue;
        }
        if (!final && watched->postponed < POSTPONED_MAX && !stacks_resolve(look->stacks, look->watch->one) && !codes_drain()) {
            watched->postponed++;
            return;
        }
        watched->postponed = 0;
        take_tick(look, watched, ring);
        ring_drop(ring, words);
    }
}

/* --- reading from outside --- */

static void wait_in(const struct look *look, struct watched *watched, profile_stack stack)
{
    profile_stack before = watched->stood ? watched->stood_in : stack;
    int64_t waiting = watched->account.waiting_ns;
    if (waiting > 0) {
        loop_time(look, watched, before, (uint64_t)waiting / 2);
        loop_time(look, watched, stack, (uint64_t)waiting - (uint64_t)waiting / 2);
    }
    account_wait_between(&watched->account, look->book, before, stack);
    watched->stood = true;
    watched->stood_in = stack;
    sampled(look, 0);
}

static bool has_ticks(const struct look *look, const struct watched *watched)
{
    return look->watch->options.signals && look->watch->ticks_arrive && atomic_load(&watched->record->timer) >= 0;
}

/* Two equal whole passes. */
static bool capture_twice(const struct look *look, const struct watched *watched)
{
    struct watch *watch = look->watch;
    watch->seed += 0x9e3779b97f4a7c15u;
    return stacks_is_whole(stacks_capture(watch->one, watch->options.target, watched->tstate, watch->seed)) &&
           stacks_is_whole(stacks_capture(watch->two, watch->options.target, watched->tstate, watch->seed)) &&
           stacks_equal(watch->one, watch->two);
}

static bool makes_progress(pid_t tid)
{
    uint64_t start = clock_now(), first, last;
    if (!clock_thread(tid, &first))
        return false;
    do {
        if (!clock_thread(tid, &last))
            return false;
        if (last - first >= PROGRESS_LEAST_NS)
            return true;
    } while (clock_now() - start < PROGRESS_SPAN_NS);
    return false;
}

/* A stack that the thread is seen in while it runs. Python code holds the GIL; C
 * code without it counts only when it really computes, so that nothing is booked
 * on a wait that it is about to enter. torn: no two passes were equal. */
static bool see_running(const struct look *look, const struct watched *watched, bool *torn)
{
    const struct py_target *target = look->watch->options.target;
    struct watch *watch = look->watch;
    bool held = states_holds_gil(target, watched->tstate);
    if (!capture_twice(look, watched))
        return false;
    *torn = false;
    if (held)
        return states_holds_gil(target, watched->tstate);
    return makes_progress(watched->record->tid) && stacks_capture(watch->two, target, watched->tstate, watch->seed) == watch->one->end &&
           stacks_equal(watch->one, watch->two);
}

/* A thread that runs now and has no ticks to speak for it. */
static void run_from_outside(const struct look *look, struct watched *watched)
{
    bool torn = true;
    uint64_t cpu;
    for (int i = 0; i < OUTSIDE_TRIES && torn; i++) {
        if (!see_running(look, watched, &torn) || !stacks_resolve(look->stacks, look->watch->one) ||
            !clock_thread(watched->record->tid, &cpu))
            continue;
        watched->last = intern(look, watched, look->watch->one);
        watched->last_stands = false;
        run_in(look, watched, cpu, watched->last);
        sampled(look, look->watch->one->cut);
        return;
    }
    /* Else it entered a wait or was preempted: its time is still outstanding. */
    if (torn) {
        look->window->counters.ticks_due++;
        look->window->counters.dropped[DROP_torn]++;
    }
}

/* Whether its ticks have failed it, by so many periods: it is read from outside
 * until it is ticked again. */
static bool is_unticked(const struct look *look, struct watched *watched, uint8_t periods)
{
    uint64_t outstanding = account_outstanding(&watched->account);
    if (!has_ticks(look, watched))
        return outstanding > 0;
    if (outstanding > periods * period_of(look, watched) && watched->unticked < periods)
        watched->unticked = periods;
    return watched->unticked >= periods;
}

/* A thread that stands still while it holds the GIL and wants to run was
 * preempted, most likely by us: it stands where it ran. */
static bool is_preempted(const struct look *look, const struct watched *watched)
{
    return states_holds_gil(look->watch->options.target, watched->tstate) && task_is_runnable(watched->record->tid);
}

/* No Python frame at two looks in a row: what passes meanwhile is not Python's. */
static void stand_empty(struct watched *watched)
{
    if (watched->empty) {
        uint64_t now = watched->account.looked_ns, cpu = watched->account.looked_cpu;
        account_open(&watched->account, now, cpu);
    }
    watched->empty = true;
}

static void read_stack(const struct look *look, struct watched *watched, uint64_t cpu)
{
    uint64_t after;
    bool equal = capture_twice(look, watched);
    if (!clock_thread(watched->record->tid, &after))
        return;
    if (after != cpu) {
        wait_where_it_stood(look, watched);
        if (is_unticked(look, watched, RUNNING_PERIODS))
            run_from_outside(look, watched);
        return;
    }
    if (look->watch->one->end == FRAMES_EMPTY) {
        stand_empty(watched);
        return;
    }
    if (!equal) {
        look->window->counters.ticks_due++;
        look->window->counters.dropped[look->watch->one->end == FRAMES_FAULT ? DROP_fault : DROP_torn]++;
        return;
    }
    /* Names are read after the clock: prove that the thread still stands. */
    if (!stacks_resolve(look->stacks, look->watch->one) && (!clock_thread(watched->record->tid, &after) || after != cpu))
        return;
    watched->empty = false;
    watched->last = intern(look, watched, look->watch->one);
    if (states_gil_is_free(look->watch->options.target, watched->tstate))
        know_wait(watched, watched->last);
    else if (is_unticked(look, watched, UNTICKED_PERIODS) && is_preempted(look, watched))
        run_in(look, watched, cpu, watched->last);
    watched->last_cpu = cpu;
    watched->last_stands = look->watch->options.clock_precise && !look->watch->one->chosen; /* by lot: another one next time */
    if (look->watch->one->cut)
        look->window->counters.limits[LIMIT_depth]++;
    wait_in(look, watched, watched->last);
}

static void look_at(const struct look *look, struct watched *watched)
{
    uint64_t cpu;
    if (!clock_thread(watched->record->tid, &cpu))
        return;
    drain(look, watched, false);
    account_look(&watched->account, clock_now(), cpu);
    if (watched->last_stands && cpu == watched->last_cpu) {
        /* A whole tick without a wake-up: one that waits for the GIL looks around
         * every switch interval. */
        if (!states_holds_gil(look->watch->options.target, watched->tstate))
            know_wait(watched, watched->last);
        wait_in(look, watched, watched->last);
    } else if (look->watch->reading)
        read_stack(look, watched, cpu);
}

/* --- the end of a thread --- */

static void end(const struct look *look, struct watched *watched, uint64_t now, uint64_t cpu)
{
    struct thread *record = watched->record;
    drain(look, watched, true);
    account_look(&watched->account, now, cpu);
    wait_where_it_stood(look, watched);
    account_settle(&watched->account, look->book, last_of(look, watched));
    look->watch->by_record[record->index] = NULL;
    look->watch->count--;
    mem_free(watched);
}

static void release(struct watch *watch, struct thread *record)
{
    tick_disarm(record);
    threads_release(record);
    watch->closed[record->index] = false;
    watch->by_tid_stale = true;
}

/* Its thread state is gone (or its thread). A thread of the interpreter is about
 * to end and will say when; one of C only gave its state back. */
static void leave(const struct look *look, struct watched *watched)
{
    struct thread *record = watched->record;
    uint64_t cpu;
    if (atomic_load(&record->state) == THREAD_ENDED) {
        end(look, watched, record->ended_ns, record->ended_cpu);
        release(look->watch, record);
    } else if (!clock_thread(record->tid, &cpu)) {
        /* Unless it said so just now: then it knows better. */
        threads_end(record, clock_now(), watched->account.looked_cpu);
        end(look, watched, record->ended_ns, record->ended_cpu);
        release(look->watch, record);
    } else if (!is_of_interpreter(look, record) || watched->leaving++ >= LEAVING_TICKS) {
        look->watch->closed[record->index] = true;
        end(look, watched, clock_now(), cpu);
    }
}

/* Threads of the interpreter that were born and ended between two looks. */
static void take_unseen(const struct look *look, struct thread *record)
{
    take_drops(look, record);
    if (counts_from_birth(look, record)) {
        struct watched *watched = begin(look, record);
        if (watched) {
            struct ring *ring = (struct ring *)record->space;
            if (ring_ready(ring))
                end(look, watched, record->ended_ns, record->ended_cpu);
            else {
                account_unseen(look->book, record->ended_ns - record->born_ns, record->ended_cpu, origin_of(look, record));
                look->watch->by_record[record->index] = NULL;
                look->watch->count--;
                mem_free(watched);
            }
        }
    }
    release(look->watch, record);
}

/* --- a tick --- */

/* A thread may have a state in several interpreters: the one that is swapped in,
 * else the first that has frames, is the one it runs on. */
static bool is_better(const struct look *look, const struct watched *watched, const struct state *state)
{
    struct frames_walk walk;
    struct py_frame frame;
    if (watched->seen != look->watch->tick || state->active)
        return true;
    frames_begin(&walk, look->watch->options.target, watched->tstate, 1);
    return !states_holds_gil(look->watch->options.target, watched->tstate) && !frames_next(&walk, &frame);
}

/* False: the list was being changed, and more states than these are there. */
static bool find_states(const struct look *look)
{
    struct states_walk walk;
    struct state state;
    index_records(look->watch);
    states_begin(&walk, look->watch->options.target);
    while (states_next(&walk, &state)) {
        struct watched *watched = state.dead || state.tid == 0 ? NULL : watched_of(look, state.tid);
        if (!watched || !is_better(look, watched, &state))
            continue;
        if (watched->tstate != state.address) {
            watched->tstate = state.address;
            watched->last_stands = false;
            atomic_store(&watched->record->tstate, state.address);
        }
        watched->seen = look->watch->tick;
        watched->interp = state.interp;
        watched->leaving = 0;
    }
    if (walk.broken)
        look->window->counters.limits[LIMIT_interpreters]++;
    return !walk.broken;
}

/* Whether its thread state was found, or nobody looked, or not all were found and
 * it still is where it was. */
static bool stays(const struct look *look, const struct watched *watched, bool all_found)
{
    struct state state;
    if (!look->watch->reading || watched->seen == look->watch->tick)
        return true;
    return !all_found && states_read(look->watch->options.target, watched->tstate, &state) && !state.dead &&
           state.tid == watched->record->tid;
}

/* Its timer, unless somebody took the signal by system call, who would be called
 * for our ticks; or it blocks the signal: one that we never saw change its mask
 * may have had it from its maker, or from the program before an exec. */
static void arm(const struct look *look, struct watched *watched)
{
    struct thread *record = watched->record;
    if (!look->watch->ticks_arrive) {
        tick_disarm(record);
        look->window->counters.limits[LIMIT_signals_blocked] += look->watch->options.signals;
        return;
    }
    if (atomic_load(&record->hears) == HEARS_UNKNOWN) {
        uint8_t unknown = HEARS_UNKNOWN; /* unless it says so itself meanwhile */
        uint8_t hears = task_blocks(record->tid, TIMER_SIGNAL) ? HEARS_NO : HEARS_YES;
        atomic_compare_exchange_strong(&record->hears, &unknown, hears);
    }
    if (atomic_load(&record->hears) == HEARS_NO)
        look->window->counters.limits[LIMIT_signals_blocked]++;
    if (look->watch->options.signals && atomic_load(&watched->record->timer) < 0 && !tick_arm(watched->record))
        look->window->counters.limits[LIMIT_timers]++;
}

void watch_tick(struct watch *watch, struct stacks *stacks, struct account_book *book, struct window *window)
{
    struct look look = {watch, stacks, book, window};
    watch->tick++;
    watch->ticks_arrive = sigaction_in_force(TIMER_SIGNAL);
    codes_drain();
    bool all_found = watch->reading && find_states(&look);
    for (uint32_t i = 0; i < threads_high() && i < RECORDS_MAX; i++) {
        struct watched *watched = watch->by_record[i];
        struct thread *record = threads_at(i);
        bool ended = record && atomic_load(&record->state) == THREAD_ENDED;
        if (watched && !ended && stays(&look, watched, all_found)) {
            if (watch->reading)
                arm(&look, watched);
            look_at(&look, watched);
        } else if (watched) {
            leave(&look, watched);
        } else if (ended) {
            take_unseen(&look, record);
        }
    }
    if (watch->count > window->counters.threads_peak)
        window->counters.threads_peak = watch->count;
}

void watch_stop_reading(struct watch *watch)
{
    watch->reading = false;
}

void watch_settle(struct watch *watch, struct stacks *stacks, struct account_book *book, struct window *window)
{
    struct look look = {watch, stacks, book, window};
    codes_drain();
    for (uint32_t i = 0; i < RECORDS_MAX; i++) {
        struct watched *watched = watch->by_record[i];
        uint64_t cpu;
        if (!watched)
            continue;
        drain(&look, watched, true);
        if (clock_thread(watched->record->tid, &cpu))
            account_look(&watched->account, clock_now(), cpu);
        wait_where_it_stood(&look, watched);
        account_settle(&watched->account, book, last_of(&look, watched));
    }
}

void watch_forget_stacks(struct watch *watch)
{
    for (uint32_t i = 0; i < RECORDS_MAX; i++) {
        if (watch->by_record[i]) {
            watch->by_record[i]->last = watch->by_record[i]->stood_in = watch->by_record[i]->driver = PROFILE_ROOT;
            watch->by_record[i]->last_stands = watch->by_record[i]->stood = false;
            memset(watch->by_record[i]->waits, 0, sizeof watch->by_record[i]->waits);
        }
    }
}

void watch_disarm(struct watch *watch)
{
    for (uint32_t i = 0; i < RECORDS_MAX; i++)
        if (watch->by_record[i])
            tick_disarm(watch->by_record[i]->record);
}

uint32_t watch_list(struct watch *watch, const struct tasks_thread **threads)
{
    uint32_t count = 0;
    mem_grow((void **)&watch->listed, &watch->listed_room, watch->count, FIRST_LISTED, sizeof *watch->listed); /* else some are left out */
    for (uint32_t i = 0; i < threads_high() && i < RECORDS_MAX && count < watch->listed_room; i++) {
        const struct watched *watched = watch->by_record[i];
        if (watched && watched->tstate && watched->seen == watch->tick)
            watch->listed[count++] = (struct tasks_thread){watched->tstate, watched->interp, watched->account.looked_cpu, watched->driver, watched->driver_sure,
                                                            watched->last_stands && watched->last_cpu == watched->account.looked_cpu};
    }
    *threads = watch->listed;
    return count;
}
