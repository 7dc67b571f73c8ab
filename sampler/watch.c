/* SPDX-License-Identifier: MIT */
#include "sampler/watch.h"

#include <string.h>

#include "hooks/clock.h"
#include "hooks/mem.h"
#include "hooks/sigaction.h"
#include "hooks/task.h"
#include "hooks/threads.h"
#include "sampler/codes.h"
#include "sampler/crowd.h"
#include "sampler/cpython/states.h"
#include "sampler/cpython/threadnames.h"
#include "sampler/draw.h"
#include "sampler/ring.h"
#include "sampler/steps.h"
#include "sampler/threadframes.h"
#include "sampler/tick.h"

enum {
    WHOLE_WALK = 128,          /* thread states a tick, on average, of walks through all of them */
    KNOWN_IN_A_ROW = 16,       /* of the newest thread states: what is behind them is known too */
    DEADLINE_MS = 5,           /* of a tick's looks, in CPU time; ... */
    DEADLINE_PART = 10,        /* ... or so much of what has passed since the tick before, if that is more */
    INDEXED_MOST = THREADS_MAX + THREADS_MAX / 2, /* entries of by_tid, those of ended threads included */
    SUM_KEPT_FROM = 64,        /* threads: with fewer it costs little to add up their clocks */
    UNLISTED = UINT32_MAX,     /* has no place in the list */
    POSTPONED_MAX = 3,         /* ticks that a record waits for names that another thread is still writing */
    OUTSIDE_TRIES = 12,        /* of reading a running thread from outside: few would favour quiet code */
    SHORT_PERIODS = 2,         /* CPU of a thread that may well end without a tick */
    FOREIGN_LOOKS = 9,         /* one more than a stack that hangs from others' tasks is taken for known without reading it */
    UNTICKED_PERIODS = 2,      /* CPU that a thread may use without a tick before it is looked at from outside ... */
    RUNNING_PERIODS = 4,       /* ... and before that is tried while it runs, which is less exact than a look at a
                                  thread that was preempted */
    WAITS_PERIODS = 8,         /* CPU that is not given to a stack known as a wait; more than that is no wait's */
    WAITS_KNOWN = 4,           /* stacks remembered as waits, a thread */
    PROGRESS_SPAN_NS = 60000,  /* a thread without the GIL works, rather than enters or leaves a wait, ... */
    PROGRESS_LEAST_NS = 30000, /* ... when its clock moves so much in that span */
    DUMP_STEP = 64,            /* names in a dump between two looks at the clock */
    DUMP_INTERPRETERS = 16,    /* whose threads a dump has by their names */
    FIRST_LISTED = 16,         /* threads that there is room for in the list at first */
    REST_LATE_TICKS = 2,       /* of the kernel's: so much later may the process's CPU clock show that a thread on another CPU has begun to run */
    LEAVING_TICKS = 3,         /* ticks that a thread without its state is waited for */
    WAITED_PART = 16           /* of the time since a look, to what one part in so many may be waiting of one that ran on:
                                  interrupts, and what the machine's host took */
};

struct watched {
    struct thread *record;
    struct account account;
    uintptr_t tstate;
    uint64_t seen;          /* number of the tick that last found its state */
    uint64_t missed;        /* the tick in which its state was found gone first; 0: it is there */
    uint32_t listed;        /* its place in the list */
    struct seen last;       /* the stack it was last found in */
    profile_stack driver;   /* of its loop, in that stack, should it run one */
    bool driver_sure;
    uintptr_t interp;
    uint64_t last_cpu;      /* CPU clock at which `last` was read ... */
    bool last_stands;       /* ... and known to stand while the clock shows it */
    uint8_t foreign_looks;  /* ... for so many looks less one, if others ran meanwhile: those who await what it does may go on; 0: for good */
    uint8_t last_how;       /* enum dump_how: what it was found by, ... */
    uint64_t last_ns;       /* ... and when it was last found there */
    uint64_t stands_cpu, stands_ns; /* the CPU clock that it stands at, and since when it is known to show that; 0: never seen */
    struct seen stood_in;   /* where it stood still at the last look, if it did: ... */
    bool stood;             /* ... what it has waited since then began there */
    profile_stack waits[WAITS_KNOWN]; /* stacks in which it was seen to wait */
    uint8_t waits_next;
    uint8_t unticked;       /* periods of CPU that it used without a tick, once they were too many; until its next tick */
    bool empty;             /* no Python frame at the last look */
    bool ran_on;            /* it ran from the look before to the last one, and its CPU ticks saw it */
    bool delay_known;       /* `gil`: ... */
    uint64_t delay_ns;      /* ... how long it had been ready to run without a CPU when it was asked last, ... */
    uint64_t delayed_ns;    /* ... and how long of what it waited that no stack has yet */
    uint8_t postponed;
    struct steps steps;     /* of its event loop */
    struct threadframe frame;
};

/* Who took the GILs of all interpreters last, and the CPU clocks of their threads: while
 * none of it changes, nobody ran Python (states_gil_taker). */
struct takers {
    uint64_t who, clocks;
    bool known;
};

struct watch {
    struct watch_options options;
    uint64_t since_ns, tick;
    bool reading;
    bool at_rest;              /* as watch_is_at_rest() says, ... */
    bool steady;               /* ... and watch_is_steady() */
    int sum_timer;          /* keeps the sum of all threads' CPU time; -1: none */
    bool sum_refused;
    bool ticks_arrive;      /* the handler of CPU ticks is the kernel's */
    struct watched *by_record[THREADS_MAX];
    struct draw draw;       /* of all in by_record */
    uint32_t indexed;       /* entries of by_tid, ... */
    uint16_t by_tid[2 * THREADS_MAX]; /* open-addressed: record index + 1; where another thread has the record, void */
    bool closed[THREADS_MAX]; /* the account of this thread was closed before its end: its birth is behind us */
    struct stack_copy *one, *two;
    uint64_t seed;          /* for what is taken by lot */
    struct crowd crowd;         /* stacks in it begin with no thread's name */
    struct threadframes *frames; /* NULL: no stack does */
    uint64_t began_ns;      /* of the last tick */
    /* Walks through all thread states: the tick of the last one that was not broken, when that
     * was, how many states it found, and how many a tick could have had since. */
    uint64_t walk, walked_ns;
    uint32_t states, due;
    struct tasks_thread *list; /* of those that have a thread state, ... */
    uint16_t *list_record;     /* ... and whose they are */
    uint32_t list_count, list_room, list_record_room;
    struct takers takers;
    uint64_t unproven;      /* ticks that did not look at all, while those others may have run */
};

/* What one tick works with. */
struct look {
    struct watch *watch;
    struct stacks *stacks;
    struct account_book *book;
    struct window *window;
    uint64_t now, cpu; /* when the looks began: wall clock, and our thread's CPU clock */
    uint64_t deadline; /* for each of the two, from there */
    uint64_t late_ns;  /* that a thread stands may be noticed to be over so much later: where no thread's own clock was read */
};

static void mark_all(void);

struct watch *watch_new(const struct watch_options *options, uint64_t since_ns)
{
    struct watch *watch = mem_zalloc(sizeof *watch);
    if (!watch)
        return NULL;
    watch->options = *options;
    watch->since_ns = since_ns;
    watch->reading = true;
    watch->ticks_arrive = true;
    watch->sum_timer = -1;
    watch->seed = since_ns;
    watch->draw.random = since_ns | 1;
    watch->began_ns = since_ns;
    mark_all();
    watch->one = stacks_new_copy(options->depth);
    watch->two = stacks_new_copy(options->depth);
    watch->frames = options->thread_frames ? threadframes_new(options->target, since_ns) : NULL;
    if (watch->one && watch->two)
        watch->one->reads_exceptions = watch->two->reads_exceptions = options->exceptions;
    if (watch->one && watch->two && !watch->frames == !options->thread_frames)
        return watch;
    watch_free(watch);
    return NULL;
}

void watch_free(struct watch *watch)
{
    timer_drop(watch->sum_timer);
    threadframes_free(watch->frames);
    for (uint32_t i = 0; i < watch->draw.count; i++)
        mem_free(watch->by_record[watch->draw.order[i]]);
    mem_free(watch->one);
    mem_free(watch->two);
    mem_free(watch->list);
    mem_free(watch->list_record);
    mem_free(watch);
}

uint32_t watch_count(const struct watch *watch)
{
    return watch->draw.count;
}

/* --- tid -> record --- */

static void put_tid(struct watch *watch, pid_t tid, uint32_t record)
{
    uint32_t at = (uint32_t)tid * 2654435761u >> 8;
    while (watch->by_tid[at % (2 * THREADS_MAX)])
        at++;
    watch->by_tid[at % (2 * THREADS_MAX)] = (uint16_t)(record + 1);
    watch->indexed++;
}

static void index_all(struct watch *watch)
{
    memset(watch->by_tid, 0, sizeof watch->by_tid);
    watch->indexed = 0;
    for (uint32_t i = 0; i < threads_high(); i++)
        if (atomic_load(&threads_at(i)->state) == THREAD_LIVE)
            put_tid(watch, threads_at(i)->tid, i);
}

static struct thread *record_of(struct watch *watch, pid_t tid)
{
    for (uint32_t at = (uint32_t)tid * 2654435761u >> 8;; at++) {
        uint16_t entry = watch->by_tid[at % (2 * THREADS_MAX)];
        if (!entry)
            return NULL;
        struct thread *record = threads_at(entry - 1u);
        if (record && record->tid == tid && atomic_load(&record->state) == THREAD_LIVE)
            return record;
    }
}

static void index_record(struct watch *watch, const struct thread *record)
{
    if (record_of(watch, record->tid) == record)
        return;
    if (watch->indexed < INDEXED_MOST)
        put_tid(watch, record->tid, record->index);
    else
        index_all(watch);
}

/* A life of the runtime before may have taken the marks that tell of these. */
static void mark_all(void)
{
    for (uint32_t i = 0; i < threads_high(); i++)
        threads_mark(threads_at(i));
}

/* --- the list for tasks --- */

static bool make_room(struct watch *watch)
{
    uint32_t needed = watch->list_count + 1;
    return mem_grow((void **)&watch->list, &watch->list_room, needed, FIRST_LISTED, sizeof *watch->list) &&
           mem_grow((void **)&watch->list_record, &watch->list_record_room, needed, FIRST_LISTED, sizeof *watch->list_record);
}

/* As it was just looked at, or ticked. */
static void list_anew(struct watch *watch, const struct watched *watched, bool looked_at)
{
    if (watched->listed == UNLISTED)
        return;
    watch->list[watched->listed] = (struct tasks_thread){
        watched->tstate, watched->interp, (uint32_t)watched->record->tid, watched->account.looked_cpu, watched->driver, watched->driver_sure,
        looked_at && watched->last_stands && watched->last_cpu == watched->account.looked_cpu};
}

/* Its state was found, or another one. */
static void list(struct watch *watch, struct watched *watched, bool is_new)
{
    if (watched->listed != UNLISTED && !is_new)
        return;
    if (watched->listed == UNLISTED && make_room(watch)) {
        watched->listed = watch->list_count++;
        watch->list_record[watched->listed] = (uint16_t)watched->record->index;
    }
    list_anew(watch, watched, false);
}

static void unlist(struct watch *watch, struct watched *watched)
{
    uint32_t at = watched->listed;
    if (at == UNLISTED)
        return;
    uint32_t last = --watch->list_count;
    watch->list[at] = watch->list[last];
    watch->list_record[at] = watch->list_record[last];
    watch->by_record[watch->list_record[at]]->listed = at;
    watched->listed = UNLISTED;
}

/* What is not looked at may stand elsewhere by now. */
static void doubt_list(struct watch *watch)
{
    for (uint32_t i = 0; i < watch->list_count; i++)
        watch->list[i].driver_sure = watch->list[i].stands = false;
}

/* --- beginning and end of watching --- */

/* The marker of its name, where stacks begin with one. */
static profile_stack marker_of(const struct look *look, struct watched *watched)
{
    struct threadframes *frames = look->watch->frames;
    return frames ? threadframes_marker(frames, &watched->frame, look->stacks) : PROFILE_ROOT;
}

/* The stack of the function that the thread began with, as far as it is known. */
static profile_stack origin_of(const struct look *look, struct watched *watched)
{
    uint64_t origin = watched->record->origin;
    profile_frame frame = origin ? codes_frame(look->stacks->profile, &look->stacks->paths, origin, -1) : 0;
    profile_stack marker = marker_of(look, watched);
    return frame ? profile_push(look->stacks->profile, marker, frame) : marker;
}

/* Where unseen time goes: below the stack it was last found in. */
static profile_stack last_of(const struct look *look, struct watched *watched)
{
    return watched->last.stack != PROFILE_ROOT ? watched->last.stack : origin_of(look, watched);
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

static void join_frames(const struct look *look, struct watched *watched)
{
    struct threadframes *frames = look->watch->frames;
    const char *name;
    watched->frame.tid = watched->record->tid;
    if (!frames)
        return;
    if (!threadframes_join(frames, &watched->frame))
        look->window->counters.limits[LIMIT_memory]++;
    uint32_t length = tick_name_at_birth(watched->record, &name);
    if (length)
        threadframes_name(frames, &watched->frame, name, length);
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
    watched->steps.looked_ns = watched->account.looked_ns;
    watched->listed = UNLISTED;
    join_frames(look, watched);
    look->watch->by_record[record->index] = watched;
    draw_add(&look->watch->draw, record->index);
    return watched;
}

static void forget(struct watch *watch, struct watched *watched)
{
    unlist(watch, watched);
    if (watch->frames)
        threadframes_leave(watch->frames, &watched->frame);
    watch->by_record[watched->record->index] = NULL;
    draw_remove(&watch->draw, watched->record->index);
    mem_free(watched);
}

/* Adopts it, or finds that it has a record since a moment ago. NULL: there is no
 * such thread, or no room for it. */
static struct thread *adopt(const struct look *look, pid_t tid)
{
    uint64_t cpu;
    if (!clock_thread(tid, &cpu))
        return NULL; /* a state whose thread is gone, or is not ours */
    struct thread *record = threads_are_full() ? NULL : threads_adopt(tid);
    if (record)
        index_record(look->watch, record);
    else
        look->window->counters.limits[LIMIT_records]++;
    return record;
}

/* Begun now, if need be. */
static struct watched *watched_of(const struct look *look, pid_t tid)
{
    struct thread *record = record_of(look->watch, tid);
    if (!record)
        record = adopt(look, tid);
    if (!record)
        return NULL;
    struct watched *watched = look->watch->by_record[record->index];
    if (!watched)
        threads_mark(record); /* it may have been ticked already */
    return watched ? watched : begin(look, record);
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

/* Whether the stack is of a thread in a step of the event loop that it runs. */
static bool is_step(const struct profile *profile, profile_stack stack)
{
    uint32_t flags = profile_stack_flags(profile, stack);
    return flags & STACK_IN_LOOP ? !(flags & STACK_IDLE) : profile_twin(profile, stack) != PROFILE_ROOT;
}

static struct loop_time *loop_of(const struct look *look, const struct watched *watched)
{
    return window_loop(look->window, (uint32_t)watched->record->tid);
}

static void loop_time(const struct look *look, const struct watched *watched, profile_stack stack, uint64_t ns)
{
    uint32_t flags = profile_stack_flags(look->stacks->profile, stack);
    struct loop_time *loop = flags & STACK_IN_LOOP ? loop_of(look, watched) : NULL;
    if (!loop)
        return;
    if (flags & STACK_IDLE)
        loop->idle_ns += ns;
    else
        loop->busy_ns += ns;
}

/* It stands in this stack still: had it been in the selector meanwhile, its CPU clock would have moved. */
static void loop_stands(const struct look *look, const struct watched *watched, profile_stack stack)
{
    uint64_t since = watched->stands_ns, now = watched->account.looked_ns - look->late_ns;
    if (!look->watch->options.clock_precise || !since || now <= since || !is_step(look->stacks->profile, stack))
        return;
    struct loop_time *loop = loop_of(look, watched);
    if (loop && now - since > loop->stood_ns) {
        loop->stood_ns = now - since;
        loop->stood_in = stack;
    }
}

static void note_step(const struct look *look, const struct watched *watched, const struct steps_time *time)
{
    struct loop_time *loop = time->least_ns ? loop_of(look, watched) : NULL;
    if (loop && time->least_ns > loop->step_least_ns) {
        loop->step_least_ns = time->least_ns;
        loop->step_most_ns = time->most_ns;
        loop->step_in = time->stack;
    }
}

/* Whether it runs a loop of asyncio's own, as far as its stacks have shown. */
static bool has_steps(const struct look *look, const struct watched *watched)
{
    return watched->steps.turns.frame || profile_stack_flags(look->stacks->profile, watched->last.stack) & STACK_IN_LOOP;
}

static void look_at_step(const struct look *look, struct watched *watched)
{
    struct steps_look seen = {.from = clock_now()};
    struct steps_time over;
    seen.found = turns_look(look->watch->options.target, &watched->steps.turns, watched->tstate, &seen.step);
    seen.to = clock_now();
    bool told = steps_take(&watched->steps, &seen, &over);
    steps_saw(&watched->steps, watched->last.stack, watched->last_ns);
    note_step(look, watched, &over);
    struct loop_time *loop = told ? NULL : loop_of(look, watched);
    if (loop)
        loop->steps_unknown++;
}

/* As far as it has come: the window ends, or the thread. */
static void settle_step(const struct look *look, const struct watched *watched)
{
    struct steps_time time = steps_so_far(&watched->steps, clock_now());
    note_step(look, watched, &time);
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
    if (watched->stood) {
        account_wait(&watched->account, look->book, watched->stood_in);
        watched->delayed_ns = 0;
    }
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
static void run_in(const struct look *look, struct watched *watched, uint64_t cpu, struct seen seen)
{
    uint64_t outstanding = cpu > watched->account.booked_cpu ? cpu - watched->account.booked_cpu : 0;
    if (is_known_wait(watched, seen.stack) && outstanding < WAITS_PERIODS * period_of(look, watched))
        return;
    loop_time(look, watched, seen.stack, outstanding);
    account_run(&watched->account, look->book, cpu, seen);
}

/* The copy as a stack. In it the thread's loop is found, and the stack of the task
 * that it runs is its twin; the same frames without a task have none. */
static profile_stack intern(const struct look *look, struct watched *watched, struct stack_copy *copy)
{
    struct tasks *tasks = look->watch->options.tasks;
    profile_stack stack, base = PROFILE_ROOT;
    copy->root = marker_of(look, watched);
    stack = stacks_intern(look->stacks, copy);
    if (copy->torn_awaiter)
        look->window->counters.dropped[DROP_torn_awaiter]++;
    if (!tasks)
        return stack;
    watched->driver = stacks_intern_driver(look->stacks, copy, &watched->driver_sure);
    if (copy->task && !copy->awaited && !copy->torn_awaiter) /* else somebody awaits it, who could not be read */
        base = tasks_base(tasks, copy->task, copy->births);
    if (stack != profile_overflow(look->stacks->profile)) /* which is also that of threads without tasks */
        profile_set_twin(look->stacks->profile, stack, stacks_intern_task(look->stacks, copy, base));
    return stack;
}

static bool records(const struct look *look, enum metric metric)
{
    return look->book->metrics >> metric & 1;
}

/* The copy has become this stack. */
static struct seen seen_as(const struct look *look, profile_stack stack)
{
    const struct stack_copy *copy = look->watch->one;
    if (copy->torn_exception)
        look->window->counters.limits[LIMIT_exceptions]++;
    if (copy->may_collect)
        look->window->counters.limits[LIMIT_collections]++;
    return (struct seen){.stack = stack, .exception = stacks_push_exception(look->stacks, stack, copy)};
}

/* The copy, of a thread that ran. */
static struct seen seen_running(const struct look *look, struct watched *watched, bool holds_gil)
{
    struct seen seen = seen_as(look, intern(look, watched, look->watch->one));
    if (holds_gil && records(look, METRIC_GIL))
        seen.gil = SEEN_GIL_HELD;
    return seen;
}

static void take_tick(const struct look *look, struct watched *watched, struct ring *ring)
{
    uint64_t flags = ring_flags(ring_peek(ring, 0));
    struct seen seen = seen_running(look, watched, flags & RING_HOLDS_GIL);
    look->window->counters.ticks_due++;
    look->window->counters.ticks_taken++;
    sampled(look, look->watch->one->cut);
    if (is_wait(flags))
        return;
    watched->unticked = 0;
    watched->empty = false;
    run_in(look, watched, ring_peek(ring, 1), seen);
    watched->last = seen;
    watched->last_how = DUMP_TICK;
    watched->last_ns = ring_peek(ring, 2);
    watched->last_stands = false;
}

/* final: nothing is left for later. */
static void drain_ring(const struct look *look, struct watched *watched, bool final)
{
    struct ring *ring = (struct ring *)watched->record->space;
    uint32_t ready, words;
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
            threads_mark(watched->record);
            return;
        }
        watched->postponed = 0;
        take_tick(look, watched, ring);
        ring_drop(ring, words);
    }
}

static void drain(const struct look *look, struct watched *watched, bool final)
{
    take_drops(look, watched->record);
    drain_ring(look, watched, final);
}

/* --- reading from outside --- */

static void wait_in(const struct look *look, struct watched *watched, struct seen seen)
{
    struct seen before = watched->stood ? watched->stood_in : seen;
    int64_t waiting = watched->account.waiting_ns;
    if (waiting > 0) {
        loop_time(look, watched, before.stack, (uint64_t)waiting / 2);
        loop_time(look, watched, seen.stack, (uint64_t)waiting - (uint64_t)waiting / 2);
    }
    loop_stands(look, watched, seen.stack);
    account_wait_between(&watched->account, look->book, before, seen);
    watched->stood = true;
    watched->stood_in = seen;
    watched->delayed_ns = 0;
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
    watch->one->collector = watch->two->collector = &((struct ring *)watched->record->space)->collector;
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
static bool see_running(const struct look *look, const struct watched *watched, bool *torn, bool *holds_gil)
{
    const struct py_target *target = look->watch->options.target;
    struct watch *watch = look->watch;
    bool held = *holds_gil = states_holds_gil(target, watched->tstate);
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
    bool torn = true, held;
    uint64_t cpu;
    for (int i = 0; i < OUTSIDE_TRIES && torn; i++) {
        if (!see_running(look, watched, &torn, &held) || !stacks_resolve(look->stacks, look->watch->one) ||
            !clock_thread(watched->record->tid, &cpu))
            continue;
        watched->last = seen_running(look, watched, held);
        watched->last_how = DUMP_LAST;
        watched->last_ns = clock_now();
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

/* So short that others like it are never ticked. */
static bool is_short(const struct look *look, const struct watched *watched)
{
    return counts_from_birth(look, watched->record) && watched->account.looked_cpu < SHORT_PERIODS * look->watch->options.period_ns;
}

/* Of a thread that was found in this stack. */
static uint64_t kind_of(const struct look *look, profile_stack stack)
{
    return stacks_began_with(look->stacks, stack);
}

static struct seen moved(const struct look *look, struct seen seen, profile_stack marker)
{
    seen.stack = stacks_move(look->stacks, seen.stack, marker);
    if (seen.exception != PROFILE_ROOT)
        seen.exception = stacks_move(look->stacks, seen.exception, marker);
    return seen;
}

/* As others have it in common, whatever they are called. */
static struct seen without_name(const struct look *look, struct seen seen)
{
    return look->watch->frames ? moved(look, seen, PROFILE_ROOT) : seen;
}

static struct seen with_name(const struct look *look, struct watched *watched, struct seen seen)
{
    profile_stack marker = marker_of(look, watched);
    return marker != PROFILE_ROOT && seen.stack != PROFILE_ROOT ? moved(look, seen, marker) : seen;
}

/* Where it was seen, with all that it used, says where others were; who was not seen, was
 * where they were. */
static void join_crowd(const struct look *look, struct watched *watched)
{
    struct account *account = &watched->account;
    uint64_t rest = account_outstanding(account);
    for (uint32_t i = 0; i < account->tallies; i++)
        crowd_add(&look->watch->crowd, without_name(look, account->tally[i].seen), kind_of(look, account->tally[i].seen.stack), account->tally[i].times, account->tally[i].ns);
    struct seen chosen = account->tallies || !rest ? seen_at(PROFILE_ROOT) : crowd_place(&look->watch->crowd, kind_of(look, watched->last.stack), rest);
    if (chosen.stack != PROFILE_ROOT)
        account_give(account, look->book, with_name(look, watched, chosen));
}

/* No Python frame: before its first, after its last, or between two. What it used in
 * Python until now is booked, for at the second look in a row what passed since the
 * first is dropped: that is not Python's. */
static void stand_empty(const struct look *look, struct watched *watched)
{
    struct account *account = &watched->account;
    if (watched->empty) {
        uint64_t now = account->looked_ns, cpu = account->looked_cpu;
        if (is_short(look, watched))
            join_crowd(look, watched);
        account_open(account, now, cpu);
    } else if (account->tallies || account_outstanding(account) >= period_of(look, watched)) {
        account_settle_rest(account, look->book, last_of(look, watched));
    }
    watched->empty = true;
}

/* Whether the state that it was found with is still its own: the walk of this tick may have
 * ended before it. */
static bool has_its_state(const struct look *look, const struct watched *watched)
{
    struct state state;
    return watched->seen == look->watch->tick || (states_read(look->watch->options.target, watched->tstate, &state) && !state.dead &&
                                                  state.tid == watched->record->tid);
}

/* It stands still; since when is kept however often its stack is forgotten. */
static void note_standing(struct watched *watched, uint64_t cpu)
{
    watched->last_how = DUMP_LAST;
    watched->last_ns = watched->account.looked_ns;
    if (watched->stands_ns && watched->stands_cpu == cpu)
        return;
    watched->stands_cpu = cpu;
    watched->stands_ns = watched->account.looked_ns;
}

/* A thread that stands still: it waits at a lock of its interpreter's GIL, as the kernel says. */
static bool waits_for_gil(const struct look *look, const struct watched *watched)
{
    uintptr_t futex;
    return task_futex(watched->record->tid, &futex) && states_is_gil_wait(look->watch->options.target, watched->tstate, futex);
}

/* Of a thread that stands still. Who holds the GIL keeps it meanwhile; who wants it waits at a
 * lock of it, as the kernel says. */
static enum seen_gil gil_of(const struct look *look, const struct watched *watched)
{
    const struct py_target *target = look->watch->options.target;
    uintptr_t futex;
    if (!records(look, METRIC_GIL))
        return SEEN_GIL_NEITHER;
    if (states_holds_gil(target, watched->tstate))
        return SEEN_GIL_HELD;
    if (states_gil_is_free(target, watched->tstate))
        return SEEN_GIL_NEITHER;
    if (task_futex(watched->record->tid, &futex))
        return states_is_gil_wait(target, watched->tstate, futex) ? SEEN_GIL_WANTED : SEEN_GIL_NEITHER;
    return task_is_runnable(watched->record->tid) ? SEEN_GIL_UNKNOWN : SEEN_GIL_NEITHER;
}

/* Of a thread that stands still in this stack: for a call, not for want of a CPU or of the GIL. */
static bool blocks_loop(const struct look *look, const struct watched *watched, profile_stack stack)
{
    const struct py_target *target = look->watch->options.target;
    if (!records(look, METRIC_BLOCK) || !is_step(look->stacks->profile, stack) || task_is_runnable(watched->record->tid))
        return false;
    return states_holds_gil(target, watched->tstate) || states_gil_is_free(target, watched->tstate) || !waits_for_gil(look, watched);
}

static void note_delay(struct watched *watched)
{
    uint64_t before = watched->delay_ns;
    bool known = watched->delay_known;
    watched->delay_known = task_run_delay(watched->record->tid, &watched->delay_ns);
    if (known && watched->delay_known && watched->delay_ns > before)
        watched->delayed_ns += watched->delay_ns - before;
}

/* A thread that wants to run and has the GIL was most likely preempted by us. What it waited
 * before that may have been for the GIL or for anything: only what it was without a CPU is taken
 * to have been as it is now. */
static void stand_preempted(const struct look *look, struct watched *watched, struct seen seen)
{
    account_wait_part(&watched->account, look->book, watched->delayed_ns, seen);
    watched->delayed_ns = 0;
    wait_where_it_stood(look, watched);
    watched->last_stands = false;
    sampled(look, 0);
}

/* It ran meanwhile: its ticks tell where, or it is read again while it runs. */
static void pass_by(const struct look *look, struct watched *watched)
{
    watched->empty = false;
    wait_where_it_stood(look, watched);
    if (is_unticked(look, watched, RUNNING_PERIODS))
        run_from_outside(look, watched);
}

/* Stands: its clock says nothing else than before. moves: it can be read, and does. */
static bool stands_at(const struct watched *watched, uint64_t cpu, bool *moves)
{
    uint64_t after;
    bool read = clock_thread(watched->record->tid, &after);
    *moves = read && after != cpu;
    return read && after == cpu;
}

static void read_stack(const struct look *look, struct watched *watched, uint64_t cpu)
{
    bool moves, equal = false;
    enum seen_gil gil = SEEN_GIL_NEITHER;
    bool stands = stands_at(watched, cpu, &moves);
    if (stands) { /* or nothing that was read would be of one moment */
        equal = capture_twice(look, watched);
        gil = equal ? gil_of(look, watched) : SEEN_GIL_NEITHER;
    }
    if (records(look, METRIC_GIL))
        note_delay(watched);
    bool preempted = gil == SEEN_GIL_HELD && task_is_runnable(watched->record->tid);
    stands = stands && stands_at(watched, cpu, &moves);
    if (moves)
        pass_by(look, watched);
    if (!stands)
        return;
    if (look->watch->one->end == FRAMES_EMPTY) {
        stand_empty(look, watched);
        return;
    }
    if (!equal) {
        look->window->counters.ticks_due++;
        look->window->counters.dropped[look->watch->one->end == FRAMES_FAULT ? DROP_fault : DROP_torn]++;
        return;
    }
    /* Names are read after the clock: prove that the thread still stands. */
    if (!stacks_resolve(look->stacks, look->watch->one) && !stands_at(watched, cpu, &moves))
        return;
    watched->empty = false;
    watched->last = seen_as(look, intern(look, watched, look->watch->one));
    watched->last.gil = gil;
    watched->last.blocks = blocks_loop(look, watched, watched->last.stack) && stands_at(watched, cpu, &moves);
    if (states_gil_is_free(look->watch->options.target, watched->tstate))
        know_wait(watched, watched->last.stack);
    else if (is_unticked(look, watched, UNTICKED_PERIODS) && is_preempted(look, watched))
        run_in(look, watched, cpu, watched->last);
    note_standing(watched, cpu);
    watched->last_cpu = cpu;
    watched->last_stands = look->watch->options.clock_precise && !look->watch->one->chosen; /* by lot: another one next time */
    watched->foreign_looks = look->watch->one->foreign ? FOREIGN_LOOKS : 0;
    if (look->watch->one->cut)
        look->window->counters.limits[LIMIT_depth]++;
    if (preempted)
        stand_preempted(look, watched, watched->last);
    else
        wait_in(look, watched, watched->last);
}

/* Whether it did nothing but run since the look before, by these readings of its clocks. */
static bool runs_on(const struct watched *watched, uint64_t now, uint64_t cpu)
{
    uint64_t passed = now - watched->account.looked_ns, used = cpu - watched->account.looked_cpu;
    return used + passed / WAITED_PART >= passed;
}

/* Its stack hangs from no task of others, or was read not long ago. */
static bool is_fresh(struct watched *watched)
{
    watched->foreign_looks -= watched->foreign_looks > 1;
    return watched->foreign_looks != 1;
}

/* False: its state is gone. */
static bool look_at(const struct look *look, struct watched *watched)
{
    uint64_t cpu;
    if (!clock_thread(watched->record->tid, &cpu))
        return true;
    drain_ring(look, watched, false); /* ticked since the marks were taken */
    uint64_t now = clock_now();
    bool ran_on = runs_on(watched, now, cpu);
    account_look(&watched->account, now, cpu);
    watched->ran_on = ran_on && !is_unticked(look, watched, UNTICKED_PERIODS);
    if (watched->last_stands && cpu == watched->last_cpu && is_fresh(watched)) {
        /* A whole tick without a wake-up: one that waits for the GIL looks around
         * every switch interval. */
        if (!states_holds_gil(look->watch->options.target, watched->tstate))
            know_wait(watched, watched->last.stack);
        if (!watched->last.blocks) /* its clock would show that it had gone on */
            watched->last.blocks = blocks_loop(look, watched, watched->last.stack);
        note_standing(watched, cpu);
        wait_in(look, watched, watched->last);
    } else if (look->watch->reading) {
        if (!has_its_state(look, watched))
            return false;
        read_stack(look, watched, cpu);
    }
    if (look->watch->reading && has_steps(look, watched))
        look_at_step(look, watched);
    list_anew(look->watch, watched, true);
    return true;
}

/* --- the end of a thread --- */

static void end(const struct look *look, struct watched *watched, uint64_t now, uint64_t cpu)
{
    drain(look, watched, true);
    settle_step(look, watched);
    account_look(&watched->account, now, cpu);
    wait_where_it_stood(look, watched);
    if (watched->account.tallies)
        account_settle_rest(&watched->account, look->book, last_of(look, watched));
    if (is_short(look, watched))
        join_crowd(look, watched);
    account_settle(&watched->account, look->book, last_of(look, watched));
    forget(look->watch, watched);
}

static void release(struct watch *watch, struct thread *record)
{
    tick_disarm(record);
    threads_release(record);
    watch->closed[record->index] = false;
}

/* When a state went that the last walk through all did not find: between the one before
 * and now. Ticks that come one after the other say so well enough. */
static uint64_t when_left(const struct look *look, const struct watched *watched)
{
    uint64_t now = clock_now(), since = look->watch->walked_ns;
    if (watched->seen + 1 >= look->watch->tick)
        return now;
    if (since < watched->account.looked_ns)
        since = watched->account.looked_ns;
    return now - (now - since) / 2;
}

/* What a thread does after it gave its state back (its stack is unmapped) is its own
 * time still, and it will say when it ends. Its state may have been looked for last
 * long before. */
static bool is_gone_for_long(const struct look *look, struct watched *watched)
{
    if (!watched->missed)
        watched->missed = look->watch->tick;
    return watched->missed + LEAVING_TICKS < look->watch->tick;
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
    } else if (!is_of_interpreter(look, record) || is_gone_for_long(look, watched)) {
        look->watch->closed[record->index] = true;
        end(look, watched, when_left(look, watched), cpu);
    } else {
        unlist(look->watch, watched);
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
                account_unseen(look->book, record->ended_ns - record->born_ns, record->ended_cpu,
                               with_name(look, watched, crowd_place(&look->watch->crowd, 0, record->ended_cpu)), origin_of(look, watched));
                forget(look->watch, watched);
            }
        }
    }
    release(look->watch, record);
}

/* --- thread states --- */

/* A thread may have a state in several interpreters: the one that is swapped in,
 * else the first that has frames, is the one it runs on. */
static bool is_better(const struct look *look, const struct watched *watched, const struct state *state)
{
    struct frames_walk walk;
    struct py_frame frame;
    if (state->active || watched->tstate == state->address || !has_its_state(look, watched))
        return true;
    frames_begin(&walk, look->watch->options.target, watched->tstate, 1);
    return !states_holds_gil(look->watch->options.target, watched->tstate) && !frames_next(&walk, &frame);
}

/* True: it was known before. */
static bool take_state(const struct look *look, const struct state *state)
{
    struct watch *watch = look->watch;
    struct watched *watched = state->dead || state->tid == 0 ? NULL : watched_of(look, state->tid);
    if (!watched || !is_better(look, watched, state))
        return false;
    bool known = watched->tstate == state->address;
    if (!known) {
        watched->tstate = state->address;
        watched->interp = state->interp;
        watched->last_stands = false;
        atomic_store(&watched->record->tstate, state->address);
    }
    watched->frame.interp = state->interp;
    watched->frame.pthread = state->pthread;
    watched->seen = watch->tick;
    watched->missed = 0;
    list(watch, watched, !known);
    return known;
}

static void note_taker(const struct look *look, uintptr_t interp, struct takers *takers)
{
    const struct py_target *target = look->watch->options.target;
    uintptr_t taker = states_gil_taker(target, interp);
    struct state state;
    uint64_t cpu;
    if (!states_read(target, taker, &state) || !clock_thread(state.tid, &cpu)) {
        takers->known = false;
        return;
    }
    takers->who = (takers->who ^ taker ^ (uint64_t)state.tid << 48) * 0x9e3779b97f4a7c15u;
    takers->clocks += cpu;
}

/* All that are there (whole), or the newest of each interpreter, as far as they are
 * unknown. Most of thousands have been there for long. */
static void walk_states(const struct look *look, struct states_walk *walk, bool whole, struct takers *takers)
{
    uintptr_t interp = 0;
    uint32_t known = 0;
    struct state state;
    states_begin(walk, look->watch->options.target);
    while (states_next(walk, &state)) {
        if (state.interp != interp) {
            known = 0;
            interp = state.interp;
            note_taker(look, interp, takers);
        }
        known = take_state(look, &state) ? known + 1 : 0;
        if (!whole && known == KNOWN_IN_A_ROW)
            states_pass_over(walk);
    }
    if (walk->broken)
        look->window->counters.limits[LIMIT_interpreters]++;
}

/* Those that a walk through all did not find. */
static void miss(const struct look *look)
{
    struct watch *watch = look->watch;
    for (uint32_t i = watch->draw.count; i-- > 0;) { /* whoever takes the place of one that leaves comes from behind it */
        struct watched *watched = watch->by_record[watch->draw.order[i]];
        if (watched->seen != watch->tick)
            leave(look, watched);
    }
}

/* False: somebody may have run Python since the last tick. */
static bool find_states(const struct look *look)
{
    struct watch *watch = look->watch;
    struct takers before = watch->takers;
    struct states_walk walk;
    bool whole = (watch->due += WHOLE_WALK) >= watch->states;
    watch->takers = (struct takers){.known = true};
    walk_states(look, &walk, whole, &watch->takers);
    if (whole) {
        watch->due = 0;
        watch->states = walk.threads;
    }
    if (whole && !walk.broken) {
        miss(look);
        watch->walked_ns = clock_now();
    }
    return watch->takers.known && before.known && watch->takers.who == before.who && watch->takers.clocks == before.clocks;
}

/* --- a tick --- */

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

/* A thread that was born, has ended, or was ticked. */
static void attend(const struct look *look, struct thread *record)
{
    struct watched *watched = look->watch->by_record[record->index];
    uint32_t state = atomic_load(&record->state);
    if (state == THREAD_ENDED && watched) {
        leave(look, watched);
    } else if (state == THREAD_ENDED) {
        take_unseen(look, record);
    } else if (state == THREAD_LIVE && watched) {
        if (look->watch->reading)
            arm(look, watched);
        drain(look, watched, false);
        list_anew(look->watch, watched, false);
    } else if (state == THREAD_LIVE) {
        index_record(look->watch, record);
    }
}

static void attend_marked(const struct look *look)
{
    for (uint32_t word = 0; 64 * word < threads_high(); word++)
        for (uint64_t marks = threads_take_marks(word); marks; marks &= marks - 1)
            attend(look, threads_at(64 * word + (uint32_t)__builtin_ctzll(marks)));
}

static void attend_drawn(const struct look *look, struct watched *watched)
{
    if (atomic_load(&watched->record->state) == THREAD_ENDED) {
        leave(look, watched);
        return;
    }
    if (look->watch->reading)
        arm(look, watched);
    if (!look_at(look, watched))
        leave(look, watched);
}

/* In CPU time of our own: that we had to wait for a CPU is nobody's fault. The other
 * clock costs less. */
static bool is_over_time(const struct look *look)
{
    return clock_now() - look->now > look->deadline && clock_self() - look->cpu > look->deadline;
}

static bool has_room_for_all(const struct watch *watch)
{
    return watch->options.max_threads == 0 || watch->draw.count <= watch->options.max_threads;
}

/* How many were looked at. */
static uint32_t look_at_drawn(const struct look *look)
{
    struct watch *watch = look->watch;
    uint32_t slice = draw_slice(&watch->draw, watch->options.max_threads), looked = 0, index;
    while (looked < slice && draw_next(&watch->draw, &index)) {
        attend_drawn(look, watch->by_record[index]);
        looked++;
        if (looked < slice && is_over_time(look)) {
            look->window->counters.limits[LIMIT_tick_deadline]++;
            return looked;
        }
    }
    if (has_room_for_all(watch))
        draw_begin_round(&watch->draw);
    return looked;
}

static void count_looks(struct counters *counters, uint32_t count, uint32_t looked)
{
    counters->thread_reads += looked;
    if (count > looked) {
        counters->threads_left += count - looked;
        counters->limits[LIMIT_threads]++;
    }
}

/* Timers are taken back from all at once when somebody else would be called for our ticks. */
static void see_to_signal(struct watch *watch)
{
    bool arrived = watch->ticks_arrive;
    watch->ticks_arrive = sigaction_in_force(TIMER_SIGNAL);
    if (arrived && !watch->ticks_arrive)
        watch_disarm(watch);
}

/* For whoever reads the process's clock in every tick. */
static void keep_sum(struct watch *watch)
{
    if (watch->draw.count > SUM_KEPT_FROM && watch->sum_timer < 0 && watch->reading && !watch->sum_refused)
        watch->sum_refused = timer_keep_sum(&watch->sum_timer) < 0;
}

static struct look look_begin(struct watch *watch, struct stacks *stacks, struct account_book *book, struct window *window)
{
    struct look look = {.watch = watch, .stacks = stacks, .book = book, .window = window, .now = clock_now(), .cpu = clock_self()};
    look.deadline = (look.now - watch->began_ns) / DEADLINE_PART;
    if (look.deadline < DEADLINE_MS * 1000000u)
        look.deadline = DEADLINE_MS * 1000000u;
    return look;
}

/* In the stack that it was last found in, and not in one that could not be read, or without any. */
static bool stands_where_it_was(const struct watched *watched)
{
    return watched->last_stands && watched->last_cpu == watched->account.looked_cpu;
}

/* A whole tick saw each of them stand, or run on; and whether one ran. */
static bool are_steady(const struct watch *watch, bool *one_ran)
{
    *one_ran = false;
    for (uint32_t i = 0; i < watch->draw.count; i++) {
        const struct watched *watched = watch->by_record[watch->draw.order[i]];
        if (stands_where_it_was(watched))
            continue;
        if (!watched->ran_on)
            return false;
        *one_ran = true;
    }
    return true;
}

/* Who was called something else until now stands in another stack. */
static void see_to_names(const struct look *look, bool at_rest)
{
    struct watch *watch = look->watch;
    if (!watch->frames || !watch->reading || !threadframes_tick(watch->frames, look->now, !at_rest, &look->window->counters))
        return;
    watch->unproven++; /* what stands on them is not what it was, though nobody may have run */
    for (uint32_t i = 0; i < watch->draw.count; i++) {
        struct watched *watched = watch->by_record[watch->draw.order[i]];
        if (watched->frame.renamed)
            watched->last_stands = watched->frame.renamed = false;
    }
}

void watch_tick(struct watch *watch, struct stacks *stacks, struct account_book *book, struct window *window)
{
    struct look look = look_begin(watch, stacks, book, window);
    watch->began_ns = look.now;
    watch->tick++;
    see_to_signal(watch);
    codes_drain();
    attend_marked(&look);
    bool at_rest = watch->reading && find_states(&look);
    if (!at_rest)
        doubt_list(watch);
    see_to_names(&look, at_rest);
    keep_sum(watch);
    uint32_t count = watch->draw.count, looked = look_at_drawn(&look);
    if (looked < count && !at_rest)
        watch->unproven++;
    bool one_ran, steady = looked == count && watch->reading && are_steady(watch, &one_ran);
    watch->at_rest = at_rest && steady && !one_ran;
    watch->steady = steady && one_ran;
    count_looks(&window->counters, count, looked);
    if (count > window->counters.threads_peak)
        window->counters.threads_peak = count;
}

/* --- ticks that are not needed --- */

bool watch_is_at_rest(const struct watch *watch)
{
    return watch->at_rest;
}

bool watch_is_steady(const struct watch *watch)
{
    return watch->steady;
}

bool watch_wants_tick(const struct watch *watch, uint64_t now)
{
    return watch->frames && watch->reading && threadframes_are_due(watch->frames, now);
}

void watch_rest(struct watch *watch, struct stacks *stacks, struct account_book *book, struct window *window, uint64_t now)
{
    struct look look = {.watch = watch, .stacks = stacks, .book = book, .window = window, .now = now,
                        .late_ns = REST_LATE_TICKS * clock_kernel_tick()};
    for (uint32_t i = 0; i < watch->draw.count; i++) {
        struct watched *watched = watch->by_record[watch->draw.order[i]];
        account_look(&watched->account, now, watched->account.looked_cpu);
        wait_in(&look, watched, watched->last);
        steps_stand(&watched->steps, now - look.late_ns);
    }
    count_looks(&window->counters, watch->draw.count, watch->draw.count);
}

/* --- a dump --- */

/* What it does, apart from running. */
static uint8_t standing_state(const struct look *look, const struct watched *watched)
{
    if (waits_for_gil(look, watched))
        return DUMP_GIL;
    if (task_is_runnable(watched->record->tid))
        return DUMP_RUNNABLE;
    return states_holds_gil(look->watch->options.target, watched->tstate) ? DUMP_HOLDS : DUMP_WAITING;
}

/* The stack and what it does belong together: all was read while the clock stood. */
static bool dump_standing(const struct look *look, struct watched *watched, struct dump_thread *entry)
{
    struct stack_copy *copy = look->watch->one;
    uint64_t cpu, after;
    if (!clock_thread(watched->record->tid, &cpu))
        return false;
    bool whole = capture_twice(look, watched), empty = copy->end == FRAMES_EMPTY;
    if (whole)
        stacks_resolve(look->stacks, copy);
    entry->state = standing_state(look, watched);
    if (!(whole || empty) || !clock_thread(watched->record->tid, &after) || after != cpu)
        return false;
    bool precise = look->watch->options.clock_precise;
    copy->root = marker_of(look, watched);
    entry->stack = whole ? stacks_intern(look->stacks, copy) : PROFILE_ROOT;
    entry->how = empty ? DUMP_EMPTY : precise ? DUMP_STOOD : DUMP_TWICE;
    if (precise && watched->stands_ns && watched->stands_cpu == cpu)
        entry->age_ns = clock_now() - watched->stands_ns;
    return true;
}

/* Where it was when it was last found. */
static void dump_running(const struct watched *watched, struct dump *dump, struct dump_thread *entry)
{
    entry->state = DUMP_RUNNING;
    entry->stack = watched->last.stack;
    entry->how = watched->last.stack == PROFILE_ROOT ? DUMP_UNKNOWN : watched->last_how;
    dump->blind += watched->last.stack == PROFILE_ROOT && !watched->empty;
    if (watched->last.stack != PROFILE_ROOT)
        entry->age_ns = clock_now() - watched->last_ns;
}

static void dump_one(const struct look *look, struct watched *watched, struct dump *dump)
{
    char name[TASK_NAME_BYTES], shown[TEXT_NAME_MAX];
    struct dump_thread entry = {.tid = watched->record->tid, .tstate = watched->tstate, .interp = watched->interp, .age_ns = DUMP_NO_AGE};
    struct state state;
    bool stood = false;
    if (states_read(look->watch->options.target, watched->tstate, &state))
        entry.pthread = state.pthread;
    for (int i = 0; i < OUTSIDE_TRIES && !stood; i++)
        stood = dump_standing(look, watched, &entry);
    if (!stood)
        dump_running(watched, dump, &entry);
    size_t length = task_name(entry.tid, name);
    if (length)
        entry.name = dump_keep(dump, shown, (uint32_t)text_name(shown, sizeof shown, name, length, 1));
    dump_add_thread(dump, &entry);
}

/* What the program calls them, rather than what the kernel does. */
static void dump_names(const struct py_target *target, uintptr_t interp, struct dump *dump)
{
    struct threadnames_walk walk;
    char name[TEXT_NAME_MAX];
    uint64_t thread;
    uint32_t length, hint = 0, count = 0;
    if (!threadnames_begin(&walk, target, interp))
        return;
    while (threadnames_next(&walk, &thread, name, sizeof name, &length) && !(++count % DUMP_STEP == 0 && dump_is_over_time(dump)))
        dump_name_thread(dump, interp, thread, name, length, &hint);
}

/* Threads of one interpreter come together, as a rule; of many, the others keep the kernel's names. */
static void dump_all_names(const struct py_target *target, struct dump *dump)
{
    uintptr_t seen[DUMP_INTERPRETERS];
    uint32_t count = 0;
    for (uint32_t i = 0; i < dump->threads; i++) {
        uint32_t at = 0;
        while (at < count && seen[at] != dump->thread[i].interp)
            at++;
        if (at < count || count == DUMP_INTERPRETERS || dump_is_stopped(dump))
            continue;
        seen[count++] = dump->thread[i].interp;
        dump_names(target, dump->thread[i].interp, dump);
    }
}

void watch_dump(struct watch *watch, struct stacks *stacks, struct dump *dump)
{
    struct look look = {.watch = watch, .stacks = stacks};
    for (uint32_t i = 0; i < watch->draw.count && !dump_is_stopped(dump); i++) {
        struct watched *watched = watch->by_record[watch->draw.order[i]];
        if (atomic_load(&watched->record->state) != THREAD_LIVE || watched->listed == UNLISTED || !has_its_state(&look, watched))
            continue;
        if (dump_is_over_time(dump))
            dump->threads_left++;
        else
            dump_one(&look, watched, dump);
    }
    dump_all_names(watch->options.target, dump);
}

void watch_stop_reading(struct watch *watch)
{
    watch->at_rest = watch->steady = false;
    watch->reading = false;
}

void watch_settle(struct watch *watch, struct stacks *stacks, struct account_book *book, struct window *window)
{
    struct look look = look_begin(watch, stacks, book, window);
    codes_drain();
    for (uint32_t i = 0; i < watch->draw.count; i++) {
        struct watched *watched = watch->by_record[watch->draw.order[i]];
        uint64_t cpu;
        drain(&look, watched, true);
        if (clock_thread(watched->record->tid, &cpu))
            account_look(&watched->account, clock_now(), cpu);
        wait_where_it_stood(&look, watched);
        settle_step(&look, watched);
        account_settle(&watched->account, book, last_of(&look, watched));
    }
}

void watch_forget_stacks(struct watch *watch)
{
    watch->at_rest = false;
    if (watch->frames)
        threadframes_forget_stacks(watch->frames);
    crowd_clear(&watch->crowd);
    for (uint32_t i = 0; i < watch->draw.count; i++) {
        struct watched *watched = watch->by_record[watch->draw.order[i]];
        watched->last = watched->stood_in = seen_at(PROFILE_ROOT);
        watched->driver = watched->steps.stack = PROFILE_ROOT;
        watched->last_stands = watched->stood = false;
        memset(watched->waits, 0, sizeof watched->waits);
    }
    for (uint32_t i = 0; i < watch->list_count; i++)
        watch->list[i].driver = PROFILE_ROOT;
}

void watch_disarm(struct watch *watch)
{
    timer_drop(watch->sum_timer);
    watch->sum_timer = -1;
    for (uint32_t i = 0; i < watch->draw.count; i++)
        tick_disarm(watch->by_record[watch->draw.order[i]]->record);
}

/* Somebody who was not looked at may have run: then no sum of clocks is what it was before. */
uint32_t watch_list(struct watch *watch, const struct tasks_thread **threads)
{
    if (watch->list_count)
        watch->list[0].cpu = watch->by_record[watch->list_record[0]]->account.looked_cpu + watch->unproven;
    *threads = watch->list;
    return watch->list_count;
}
