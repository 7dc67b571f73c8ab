/* SPDX-License-Identifier: MIT */
#include "sampler/tick.h"

#include <errno.h>
#include <stdatomic.h>
#include <string.h> /* memcpy */

#include "hooks/clock.h"
#include "hooks/guard.h"
#include "hooks/interrupted.h"
#include "hooks/log.h"
#include "hooks/sigaction.h"
#include "hooks/sigmask.h"
#include "sampler/births.h"
#include "sampler/codes.h"
#include "sampler/cpython/asyncios.h"
#include "sampler/cpython/collector.h"
#include "sampler/cpython/contexts.h"
#include "sampler/cpython/exceptions.h"
#include "sampler/cpython/start.h"
#include "sampler/cpython/states.h"
#include "sampler/cpython/threadnames.h"
#include "sampler/labels.h"
#include "sampler/markers.h"
#include "sampler/ring.h"
#include "sampler/stacked.h"
#include "sampler/text.h"

enum {
    WALK_FACTOR = 4,     /* frames walked at most, in depths: to find the bottom and count what is cut */
    OWN_STATES = 64,     /* newest thread states looked at for our own */
    USUAL_OF = 4,        /* ticks over which what one takes is averaged */
    JITTERED_TICKS = 2,  /* periods of so many kernel ticks or more are jittered; shorter ones follow the kernel's */
    STACK_NEEDED = 24576 /* on an alternate stack: our frames, and the signal frame of a guarded fault (AVX-512: 3 KiB, AMX: 11 KiB) */
};

static struct {
    struct tick_options options;
    uint64_t kernel_tick; /* 0: timers do not depend on it */
    _Atomic bool enabled;
    void (*_Atomic on_any)(void);
    _Atomic uintptr_t hook_type, hook_interp; /* a Task type whose making is to be hooked */
} tick;

/* By record. Apart from those: pages that are not asked for are not there. */
static struct {
    _Atomic uint64_t birth; /* whose name it is */
    uint32_t length;
    char name[TICK_NAME_MAX];
} named[THREADS_MAX];

/* --- a record --- */

/* One record on its way into the ring. */
struct recording {
    struct ring *ring;
    uint32_t opened;
    uint32_t frames, entries, cut;
    uint32_t chain_at, chain_frames; /* the chain that is being written: its header's place, its frames so far */
    uint32_t chain_skip;             /* frames at its outer end that are left out still */
    bool awaited;                    /* the task that ended last has a chain */
};

/* Where nothing more fits, it is still told where a task ends, that it is awaited, and of a circle. */
enum { FRAME_WORDS = 3, TASK_WORDS = 3, MARKER_WORDS = TASK_WORDS + 2, NAME_WORDS = (TEXT_FOLDED_MAX + 7) / 8, EXCEPTION_WORDS = (EXCEPTION_NAME_MAX + 7) / 8 };

static bool put_frame(struct recording *record, const struct py_code *code, int32_t lasti)
{
    bool settled = codes_settle(tick.options.target, code);
    if (ring_room(record->ring, record->opened) < FRAME_WORDS + MARKER_WORDS)
        return false;
    ring_put(record->ring, (settled ? RING_SETTLED : RING_UNSETTLED) | (uint64_t)(uint32_t)lasti << 32);
    ring_put(record->ring, code->identity);
    if (!settled)
        ring_put(record->ring, code->address);
    record->frames++;
    return true;
}

static bool put_text(struct recording *record, uint64_t tag, const uint64_t *word, uint32_t length)
{
    uint32_t words = (length + 7) / 8;
    if (ring_room(record->ring, record->opened) < 1 + words + FRAME_WORDS + MARKER_WORDS)
        return false;
    ring_put(record->ring, tag | (uint64_t)length << 32);
    for (uint32_t i = 0; i < words; i++)
        ring_put(record->ring, word[i]);
    return true;
}

/* Apart, and put_labels too: their texts are not on the stack while the walk goes deeper. */
static __attribute__((noinline)) bool put_name(struct recording *record, const struct asyncio *asyncio, uintptr_t task)
{
    uint64_t word[NAME_WORDS];
    if (!put_text(record, RING_NAME, word, asyncio_folded_name(tick.options.target, asyncio, task, (char *)word)))
        return false;
    record->frames++;
    return true;
}

/* What the context that the thread runs in says. */
static __attribute__((noinline)) void put_labels(struct recording *record, uintptr_t tstate)
{
    const struct py_target *target = tick.options.target;
    uintptr_t context = contexts_of_thread(target, tstate), trie = contexts_trie(target, context);
    uint64_t word[NAME_WORDS];
    for (uint32_t i = 0; i < labels_asked; i++) {
        uint32_t length = labels_read(target, context, trie, i, (char *)word);
        if (length && put_text(record, RING_LABEL | i << 8, word, length))
            record->entries++;
    }
}

/* What is cut is cut at the root end: once something did not fit, nothing more does. */
static void take_frame(struct recording *record, const struct stacked *entry)
{
    if (record->cut || record->frames == tick.options.depth || !put_frame(record, &entry->code, entry->lasti))
        record->cut++;
    else
        record->entries++;
}

/* A chain comes outermost first, so what is to be kept of it is decided before. */
static void open_chain(struct recording *record, uint32_t frames)
{
    uint32_t left = record->cut ? 0 : tick.options.depth - record->frames;
    uint32_t words = ring_room(record->ring, record->opened), spare = MARKER_WORDS + (markers_tasks_asked ? NAME_WORDS + FRAME_WORDS : 0);
    uint32_t room = words > spare ? (words - 1 - spare) / FRAME_WORDS : 0;
    uint32_t keep = left < room ? left : room;
    record->chain_frames = 0;
    record->chain_skip = frames > keep ? frames - keep : 0;
    if ((keep == 0 && record->awaited) || words == 0)
        return;
    record->awaited = true;
    record->chain_at = record->ring->writing - record->opened;
    ring_put(record->ring, RING_CHAIN);
    record->entries++;
}

static void take_inner(struct recording *record, const struct stacked *entry)
{
    if (record->chain_skip) {
        record->chain_skip--;
        record->cut++;
    } else if (put_frame(record, &entry->code, entry->lasti)) {
        ring_patch(record->ring, record->opened, record->chain_at, RING_CHAIN | (uint64_t)++record->chain_frames << 32);
    }
}

static void take_name(struct recording *record, const struct asyncio *asyncio, const struct stacked *entry)
{
    if (entry->inner && record->chain_skip) {
        record->chain_skip--;
        record->cut++;
    } else if (record->cut || record->frames == tick.options.depth || !put_name(record, asyncio, entry->task)) {
        record->cut++;
    } else if (entry->inner) {
        ring_patch(record->ring, record->opened, record->chain_at, RING_CHAIN | (uint64_t)++record->chain_frames << 32);
    } else {
        record->entries++;
    }
}

static void take_marker(struct recording *record, uint64_t tag, uintptr_t task)
{
    if (ring_room(record->ring, record->opened) < (task ? TASK_WORDS : 1u))
        return;
    ring_put(record->ring, tag);
    if (task) {
        ring_put(record->ring, task);
        ring_put(record->ring, births_number());
    }
    record->entries++;
}

/* Without a table of jumps, whose targets tests/check_handler.sh could not follow. */
static void take_entry(struct recording *record, const struct asyncio *asyncio, const struct stacked *entry)
{
    if (entry->kind == STACKED_FRAME) {
        take_frame(record, entry);
    } else if (entry->kind == STACKED_CHAIN) {
        open_chain(record, entry->frames);
    } else if (entry->kind == STACKED_INNER) {
        take_inner(record, entry);
    } else if (entry->kind == STACKED_TASK) {
        record->awaited = false;
        take_marker(record, RING_TASK, entry->task);
    } else if (entry->kind == STACKED_CYCLE) {
        take_marker(record, RING_CYCLE, 0);
    } else {
        take_name(record, asyncio, entry);
    }
}

/* Walks from the leaf; keeps what fits, counts what does not. */
static enum frames_end walk_into(struct recording *record, uintptr_t tstate, uint64_t seed, uint64_t *flags)
{
    const struct py_target *target = tick.options.target;
    const struct asyncio *asyncio = asyncios_of(states_interp(target, tstate));
    struct stacked_walk walk;
    struct stacked entry;
    if (labels_asked)
        put_labels(record, tstate);
    stacked_begin(&walk, target, asyncio, tstate, tick.options.depth * WALK_FACTOR, seed);
    while (stacked_next(&walk, &entry))
        take_entry(record, asyncio, &entry);
    if (walk.torn)
        *flags |= RING_TORN_AWAITER;
    return walk.frames.end;
}

/* Before the frames, which may take all the room. */
static void put_exception(struct recording *record, uintptr_t tstate, uint64_t *flags)
{
    uint64_t word[EXCEPTION_WORDS];
    uint32_t length;
    enum exceptions_found found = exceptions_of_thread(tick.options.target, tstate, (char *)word, &length);
    if (found == EXCEPTIONS_ONE && put_text(record, RING_EXCEPTION, word, length))
        record->entries++;
    else if (found != EXCEPTIONS_NONE)
        *flags |= RING_TORN_EXCEPTION;
}

static void drop(_Atomic uint32_t *counter)
{
    atomic_fetch_add_explicit(counter, 1, memory_order_relaxed);
}

static uint64_t collection_flags(struct collector_memory *memory, uintptr_t tstate)
{
    enum collector_found found = collector_of(tick.options.target, tstate, tick.options.depth * WALK_FACTOR, memory, true);
    return found == COLLECTOR_RUNS ? RING_COLLECTS : found == COLLECTOR_UNKNOWN ? RING_MAY_COLLECT : 0;
}

static void write_record(struct thread *self, uintptr_t tstate, const void *ucontext, uint64_t cpu)
{
    struct ring *ring = (struct ring *)self->space;
    struct recording record = {.ring = ring};
    uint64_t now = clock_now();
    uint64_t flags = (states_holds_gil(tick.options.target, tstate) ? RING_HOLDS_GIL : 0) |
                     (interrupted_in_syscall(ucontext) ? RING_IN_SYSCALL : 0) |
                     collection_flags(&ring->collector, tstate);

    record.opened = ring_open(ring);
    if (ring_room(ring, record.opened) < RING_HEADER_WORDS + FRAME_WORDS + MARKER_WORDS) {
        drop(&self->dropped_full);
        return;
    }
    ring->writing += RING_HEADER_WORDS;
    if (tick.options.exceptions)
        put_exception(&record, tstate, &flags);
    switch (walk_into(&record, tstate, cpu ^ now, &flags)) {
    case FRAMES_COMPLETE:
    case FRAMES_LIMIT:
        break;
    case FRAMES_EMPTY:
        return;
    case FRAMES_FAULT:
        drop(&self->dropped_fault);
        return;
    default:
        drop(&self->dropped_torn);
        return;
    }
    if (record.frames == 0) {
        if (record.cut)
            drop(&self->dropped_full);
        return;
    }
    ring_patch(ring, record.opened, 0, ring_header(flags, ring->writing - record.opened, record.entries));
    ring_patch(ring, record.opened, 1, cpu);
    ring_patch(ring, record.opened, 2, now);
    ring_patch(ring, record.opened, 3, record.cut);
    ring_commit(ring, record.opened);
}

/* The thread state that this thread runs on, proven by both of its ids. */
static uintptr_t own_state(struct thread *self)
{
    const struct py_target *target = tick.options.target;
    uintptr_t known = atomic_load_explicit(&self->tstate, memory_order_relaxed);
    if (known && states_is_of(target, known, self->tid, pthread_self()))
        return known;
    known = states_find_own(target, self->tid, pthread_self(), OWN_STATES);
    atomic_store_explicit(&self->tstate, known, memory_order_relaxed);
    return known;
}

/* A guarded copy may fault; where faults are not caught, memory is read by
 * system call and cannot. Asked each time, not once a tick of the sampler: a
 * handler that somebody set by system call may end the process for our fault. */
static bool may_walk(const void *ucontext)
{
    guard_recheck();
    bool may_fault = guard_in_force();
    return !(may_fault && (interrupted_blocks(ucontext, SIGSEGV) || interrupted_blocks(ucontext, SIGBUS))) &&
           interrupted_stack_left(ucontext) >= STACK_NEEDED;
}

/* Nobody else runs Python of that interpreter now. */
static void hook_births(uintptr_t tstate)
{
    uintptr_t type = atomic_load_explicit(&tick.hook_type, memory_order_acquire);
    if (!type || atomic_load_explicit(&tick.hook_interp, memory_order_relaxed) != states_interp(tick.options.target, tstate) ||
        !states_holds_gil(tick.options.target, tstate))
        return;
    atomic_store_explicit(&tick.hook_type, 0, memory_order_relaxed);
    births_hook(type);
}

void tick_hook_births(uintptr_t task_type, uintptr_t interp)
{
    atomic_store_explicit(&tick.hook_type, 0, memory_order_relaxed);
    atomic_store_explicit(&tick.hook_interp, interp, memory_order_release);
    atomic_store_explicit(&tick.hook_type, task_type, memory_order_release);
}

static void take_sample(struct thread *self, const void *ucontext, uint64_t cpu)
{
    if (!may_walk(ucontext)) {
        drop(&self->dropped_masked);
        return;
    }
    uintptr_t tstate = own_state(self);
    if (!tstate)
        return;
    hook_births(tstate);
    write_record(self, tstate, ucontext, cpu);
}

/* The record that this signal is for, when it is the calling thread's. */
static struct thread *own_record(void *cookie)
{
    struct thread *record = threads_from_cookie(cookie), *self = threads_self();
    if (!record)
        return NULL;
    if (!self && threads_claim(record))
        self = record;
    return self == record ? self : NULL;
}

/* A number that looks random: clocks, mixed. */
static uint64_t mixed(uint64_t x)
{
    x ^= x >> 33;
    x *= 0xff51afd7ed558ccdu;
    x ^= x >> 33;
    x *= 0xc4ceb9fe1a85ec53u;
    return x ^ x >> 33;
}

/* Doubles the period while the usual tick takes more than its share of one. */
static void keep_to_share(struct thread *self, uint64_t took)
{
    uint8_t slower = atomic_load_explicit(&self->slower, memory_order_relaxed);
    uint64_t period = tick.options.period_ns << slower;
    atomic_fetch_add_explicit(&self->handler_ns, took, memory_order_relaxed);
    if (!tick.options.share_ppm)
        return;
    self->handler_usual_ns += ((int64_t)took - (int64_t)self->handler_usual_ns) / USUAL_OF;
    uint64_t wanted = self->handler_usual_ns * 1000000 / tick.options.share_ppm;
    if (wanted > period && 2 * period <= tick.options.longest_ns)
        atomic_store_explicit(&self->slower, slower + 1, memory_order_relaxed);
    else if (slower && wanted < period / 4)
        atomic_store_explicit(&self->slower, slower - 1, memory_order_relaxed);
}

static bool is_jittered(uint64_t period)
{
    return period >= JITTERED_TICKS * tick.kernel_tick;
}

/* The next expiry between half a period and one and a half, so that a program
 * whose own cycle is a multiple of the period is not always met at the same
 * places. The kernel looks at CPU timers on its tick: half of one too late on
 * average, taken off here. The period stays armed behind it, should a signal be
 * lost. */
static void set_next(const struct thread *self, uint8_t slower_before)
{
    uint8_t slower = atomic_load_explicit(&self->slower, memory_order_relaxed);
    uint64_t period = tick.options.period_ns << slower, x = mixed(clock_now() ^ (uintptr_t)self);
    int id = atomic_load_explicit(&self->timer, memory_order_relaxed);
    if (id < 0)
        return;
    if (is_jittered(period))
        timer_set_period(id, period / 2 + x % period - tick.kernel_tick / 2, period);
    else if (slower != slower_before)
        timer_set_period(id, period, period);
}

static void take_tick(struct thread *self, const void *ucontext)
{
    uint8_t slower = atomic_load_explicit(&self->slower, memory_order_relaxed);
    uint64_t cpu = clock_self();
    take_sample(self, ucontext, cpu);
    threads_mark(self);
    keep_to_share(self, clock_self() - cpu);
    set_next(self, slower);
}

static bool tick_handle(int signo, siginfo_t *info, void *ucontext)
{
    int saved = errno;
    void *cookie = timer_cookie(info);
    void (*on_any)(void) = atomic_load_explicit(&tick.on_any, memory_order_acquire);
    if (!cookie)
        return false;
    log_flush(); /* what the sampler has to say, from a thread that has a stderr */
    if (on_any)
        on_any();
    if (atomic_load_explicit(&tick.enabled, memory_order_acquire)) {
        struct thread *self = own_record(cookie);
        if (self)
            take_tick(self, ucontext);
    }
    errno = saved;
    return true;
}

/* --- timers --- */

/* What is left of the period in which a thread is met that is looked at at any moment:
 * a longer one is met more often. */
static uint64_t rest_of_period(uint64_t random)
{
    uint64_t period = tick.options.period_ns, length = period;
    for (bool met = !is_jittered(period); !met; random = mixed(random)) {
        length = period / 2 + random % period;
        met = mixed(random + 1) % (period + period / 2) < length;
    }
    return mixed(random + 2) % length;
}

/* By whole ticks of the kernel: a timer expires on the first of them after its time,
 * wherever that lies between two. So each is as likely as any other, also the first
 * that a thread meets, and threads that live less than one are met in proportion to
 * what they use (else by its square). */
static uint64_t random_first(const struct thread *thread)
{
    uint64_t first = rest_of_period(mixed(clock_now() ^ atomic_load(&thread->birth) * 0x9e3779b97f4a7c15u));
    if (tick.kernel_tick)
        first -= first % tick.kernel_tick;
    return first ? first : 1;
}

/* A thread that blocks the signal has no timer: nothing of ours may wait there. */
static bool is_deaf(const struct thread *thread)
{
    return atomic_load(&thread->hears) == HEARS_NO;
}

bool tick_arm(struct thread *thread)
{
    int id;
    if (is_deaf(thread))
        return true;
    if (!tick.options.period_ns)
        return false; /* not started: no signals in this process */
    if (atomic_load(&thread->timer) >= 0)
        return true;
    if (timer_make(thread->tid, tick.options.clock, thread, random_first(thread), tick.options.period_ns, &id) != 0)
        return false;
    int none = -1;
    if (!atomic_compare_exchange_strong(&thread->timer, &none, id))
        timer_drop(id);
    if (is_deaf(thread)) /* since a moment ago */
        tick_disarm(thread);
    return true;
}

void tick_disarm(struct thread *thread)
{
    int id = atomic_exchange(&thread->timer, -1);
    if (id >= 0)
        timer_drop(id);
}

/* --- the signal's mask --- */

/* [application thread] Whatever expired before is delivered before the call. */
static void about_to_block(void)
{
    struct thread *self = threads_find_self();
    if (!self)
        return;
    atomic_store(&self->hears, HEARS_NO);
    tick_disarm(self);
}

/* [application thread] Heard again: the sampler's next tick arms it. */
static void mask_changed(void)
{
    struct thread *self = threads_find_self();
    if (!self)
        return;
    atomic_store(&self->hears, sigmask_blocks(TIMER_SIGNAL) ? HEARS_NO : HEARS_YES);
    threads_mark(self);
}

/* --- births --- */

/* Settles the name of the function that the thread begins with: should it live
 * and die between two looks, its time stands below that. */
static void note_origin(struct thread *self)
{
    struct py_code code;
    if (start_code(tick.options.target, (uintptr_t)self->arg, &code) && codes_settle(tick.options.target, &code))
        self->origin = code.identity;
}

/* Nobody may see the thread among Python's before it ends. */
static void note_name(const struct thread *self)
{
    char name[TEXT_NAME_MAX];
    uint32_t length = threadnames_of(tick.options.target, start_self(tick.options.target, (uintptr_t)self->arg), name, sizeof name);
    if (length == 0 || length > TICK_NAME_MAX)
        return;
    memcpy(named[self->index].name, name, length);
    named[self->index].length = length;
    atomic_store_explicit(&named[self->index].birth, atomic_load(&self->birth), memory_order_release);
}

uint32_t tick_name_at_birth(const struct thread *thread, const char **name)
{
    *name = named[thread->index].name;
    return atomic_load_explicit(&named[thread->index].birth, memory_order_acquire) == atomic_load(&thread->birth) ? named[thread->index].length : 0;
}

/* [application thread] A thread of the interpreter needs no look of the sampler
 * to get its timer: it may not live that long. */
static void born(struct thread *self)
{
    uintptr_t start = (uintptr_t)self->start;
    ring_init(self->space, self->space_size);
    if (!atomic_load_explicit(&tick.enabled, memory_order_acquire) || start < tick.options.target->text_start ||
        start >= tick.options.target->text_end)
        return;
    note_origin(self);
    if (tick.options.thread_names)
        note_name(self);
    mask_changed(); /* it has its maker's */
    if (sigaction_in_force(TIMER_SIGNAL))
        tick_arm(self);
}

int tick_start(const struct tick_options *options)
{
    tick.options = *options;
    tick.kernel_tick = options->clock == TIMER_CPU ? clock_kernel_tick() : 0;
    threads_on_birth(born);
    sigmask_watch(TIMER_SIGNAL, about_to_block, mask_changed);
    return sigaction_claim(TIMER_SIGNAL, tick_handle);
}

void tick_enable(bool enabled)
{
    atomic_store_explicit(&tick.enabled, enabled, memory_order_release);
}

void tick_on_any(void (*call)(void))
{
    atomic_store_explicit(&tick.on_any, call, memory_order_release);
}
