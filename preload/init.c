/* SPDX-License-Identifier: MIT
 *
 * The door. The constructor decides within microseconds whether this process
 * holds CPython; where it does not, nothing else happens, until a call of libc
 * that a late interpreter makes says to look again.
 */
#include "preload/init.h"

#include <errno.h>
#include <link.h> /* dl_iterate_phdr: has anything been loaded since? */
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "hooks/clock.h"
#include "hooks/direct.h"
#include "hooks/guard.h"
#include "hooks/log.h"
#include "hooks/mem.h"
#include "hooks/pages.h"
#include "hooks/real.h"
#include "hooks/sigaction.h"
#include "hooks/task.h"
#include "hooks/threads.h"
#include "hooks/timer.h"
#include "output/farewell.h"
#include "preload/config.h"
#include "preload/environment.h"
#include "preload/fork.h"
#include "preload/order.h"
#include "preload/python.h"
#include "preload/selftest.h"
#include "preload/spooling.h"
#include "sampler/births.h"
#include "sampler/codes.h"
#include "sampler/cpython/exceptions.h"
#include "sampler/cpython/states.h"
#include "sampler/labels.h"
#include "sampler/loop.h"
#include "sampler/markers.h"
#include "sampler/stall.h"
#include "sampler/stacked.h"
#include "sampler/tick.h"

#define SECOND 1000000000ull

enum { DORMANT, DECIDING, INERT, ACTIVE };
enum {
    END_WAIT_NS = 20000000, /* for all that is asked at the end of the process, or before an exec */
    RING_BYTES = 131072, /* for one thread's CPU ticks at rates that the kernel's tick allows: a ring of
                            64 KiB (a power of two of words) and its head. Address space: no more pages
                            are touched than the longest backlog fills, one or two as a rule */
    RING_RATE = 250,
    RING_FRAME_BYTES = 24, /* of one frame, at most */
    RING_LARGEST = 1 << 22,
    HANDLERS_SHARE_PPM = 5000, /* for each per cent of APROF_OVERHEAD: CPU ticks may use half of it, of their thread's CPU */
    ROOM = 64 << 20 /* of address space: we map 20 MiB, and the rest is the application's; short of it, it would be
                       the application that finds no memory */
};

extern char **environ;
extern const char *gnu_get_libc_version(void) __attribute__((weak));

static _Atomic int state;
static unsigned long long loaded_before; /* objects ever loaded, at the last look */
static struct config config;
static struct py_target target;
static char start_directory[4096];
static _Atomic uint64_t waited_ns; /* at the end, so far */

bool init_is_active(void)
{
    return atomic_load_explicit(&state, memory_order_acquire) == ACTIVE;
}

static void say_fault(void *context, const char *line, const char *remedy)
{
    if (*(bool *)context)
        log_line(LOG_WARN, LOG_SETTING, "%s; %s", line, remedy);
}

static bool is_quiet(void)
{
    const char *log = getenv("APROF_LOG");
    return log && strcmp(log, "quiet") == 0;
}

static void read_settings(void)
{
    static char tags[sizeof config.tags];
    static struct metadata_pair pairs[64];
    static char label[sizeof config.label];
    static const char *names[CONFIG_LABELS_MOST];
    _Static_assert((int)CONFIG_LABELS_MOST <= (int)LABELS_MOST, "what is accepted is shown");
    bool speak = environment_is_first() && !is_quiet();
    config_parse(&config, environ, say_fault, &speak);
    memcpy(tags, config.tags, sizeof tags);
    config_tags(tags, pairs, 64, say_fault, &speak);
    memcpy(label, config.label, sizeof label);
    labels_ask(names, config_labels(label, names, CONFIG_LABELS_MOST, say_fault, &speak));
    log_set_level((enum log_level)config.log);
}

/* Rings grow with the rate: at 10,000 ticks a second a stack of 200 frames would
 * fill a small one before the sampler comes. And with the depth: two of the deepest
 * stacks fit. */
static uint32_t ring_bytes(void)
{
    uint64_t bytes = RING_BYTES;
    while (bytes < RING_LARGEST && (bytes / RING_BYTES * RING_RATE < config.rate || bytes < config.depth * RING_FRAME_BYTES * 4))
        bytes *= 2;
    return (uint32_t)bytes;
}

/* The making of tasks, hooked by a pending call: at start-up it comes before the next
 * CPU tick. One is enough: what it misses, a CPU tick does. */
static int (*add_pending)(int (*)(void *), void *);

static _Atomic uintptr_t hook_asked; /* for this type */

static int hook_births(void *task_type)
{
    if (births_hook((uintptr_t)task_type))
        hook_asked = 0; /* the next interpreter's may be at its address */
    return 0;
}

static void hook_later(uintptr_t task_type, uintptr_t interp)
{
    if (hook_asked == task_type || !add_pending || !states_is_main(&target, interp) || !states_pending_lock_is_free(&target))
        return;
    hook_asked = task_type;
    if (add_pending(hook_births, (void *)task_type) != 0)
        hook_asked = 0; /* no room among the pending calls: at the next look */
}

/* Without it tasks are shown all the same, but who made them is not known. */
static void start_births(void)
{
    void *(*thread_state)(void) = (void *(*)(void))python_symbol("PyThreadState_GetUnchecked");
    if (!thread_state)
        thread_state = (void *(*)(void))python_symbol("_PyThreadState_UncheckedGet");
    add_pending = (int (*)(int (*)(void *), void *))python_symbol("Py_AddPendingCall");
    births_on_half(loop_tick_soon);
    int error = config.creators ? births_start(&target, thread_state) : 0;
    if (error) {
        log_line(LOG_WARN, LOG_HOOK, "who makes which task will not be known: error %d", -error);
        config.creators = 0;
    }
}

/* Besides a thread of ours; the main one stays countable when it has ended. */
static bool is_last_thread(void)
{
    return task_count() == (task_tid() == real_pid() ? 2 : 3);
}

/* libc ends a process with its last thread, by exit(0) on it: ours must not be that
 * one. Should it not leave in time, what its presence would put off is done here. */
static void end_with_last_thread(void)
{
    if (!init_is_active() || !fork_owns_process())
        return;
    farewell_intend(FAREWELL_EXIT);
    if (!loop_leave(clock_now() + END_WAIT_NS) && is_last_thread())
        real_exit(0);
}

static bool runtime_is_ready(void)
{
    return selftest_post(&target);
}

/* [fork] One line about a run, not one for each of its workers. */
static void become_child(void)
{
    config.summary = 0;
    atomic_store(&waited_ns, 0);
    spooling_postfork_child();
}

static void prepare_sampler(void)
{
    const char *directory = getcwd(start_directory, sizeof start_directory);
    struct loop_options options = {
        .target = &target,
        .rate = (uint32_t)config.rate,
        .min_rate = (uint32_t)(config.min_rate < config.rate ? config.min_rate : config.rate),
        .overhead = (uint32_t)config.overhead,
        .depth = (uint32_t)config.depth,
        .max_threads = (uint32_t)config.max_threads,
        .clock = config.clock == CONFIG_CLOCK_MONOTONIC ? TIMER_MONOTONIC : TIMER_CPU,
        .signals = config.signals,
        .metrics = (uint32_t)config.metrics,
        .creators = config.creators,
        .thread_frames = config.thread_frames,
        .hook = hook_later,
        .window_ns = config.window * SECOND,
        .delay_ns = config.delay * SECOND,
        .duration_ns = config.duration * SECOND,
        .paths = {.full = config.paths == CONFIG_PATHS_FULL, .start_directory = directory},
        .output = &spooling_output,
        .ready = runtime_is_ready,
        .first_sample = fork_first_sample,
        .descriptors = spooling_descriptors,
    };
    markers_ask_for_tasks(config.task_names);
    exceptions_ask_for_tasks(config.metrics >> METRIC_EXC & 1);
    stacked_stack_work(config.executor);
    loop_prepare(&options);
    spooling_prepare(&config);
    fork_on_child(become_child);
}

static int start_ticks(void)
{
    struct tick_options options = {.target = &target,
                                   .depth = (uint32_t)config.depth,
                                   .period_ns = SECOND / config.rate,
                                   .longest_ns = SECOND / (config.min_rate < config.rate ? config.min_rate : config.rate),
                                   .share_ppm = (uint32_t)config.overhead * HANDLERS_SHARE_PPM,
                                   .clock = config.clock == CONFIG_CLOCK_MONOTONIC ? TIMER_MONOTONIC : TIMER_CPU,
                                   .thread_names = config.thread_frames,
                                   .exceptions = config.metrics >> METRIC_EXC & 1};
    timer_init();
    return config.signals ? tick_start(&options) : 0;
}

/* Order matters: the heap before the fork handlers (see mem_init); the guard
 * before anything reads the interpreter; the sampler last. */
static int start_all(const char **what)
{
    int error;
#define STEP(text, call)             \
    do {                             \
        *what = text;                \
        if ((error = (call)) < 0)    \
            return error;            \
    } while (0)
    real_resolve();
    direct_start();
    STEP("address space", pages_room(ROOM) ? 0 : -ENOMEM);
    STEP("a heap of our own", mem_init(config.memory << 20));
    STEP("handlers around fork", fork_start(&target));
    STEP("handlers for faults", guard_start((enum guard_reader)config.reader));
    STEP("the interpreter's own table of its layout", target.layout.minor >= 13 ? layout_read_debug_offsets(&target.layout, target.runtime) : 0);
    STEP("tables of names", codes_start());
    STEP("records of threads", threads_start(ring_bytes()));
    STEP("CPU clocks of threads", clock_thread(task_tid(), &(uint64_t){0}) ? 0 : -EPERM);
    STEP("CPU ticks", start_ticks());
    selftest_prepare();
    start_births();
    prepare_sampler();
    sigaction_on_call(loop_look_soon);
    threads_on_last(end_with_last_thread);
    STEP("a thread of our own", loop_start());
#undef STEP
    return 0;
}

static int start(void)
{
    const char *what = "";
    read_settings();
    if (!config.enable)
        return INERT;
    environment_hand_down(&config);
    if (!config.children)
        environment_leave_children();
    int error = start_all(&what);
    if (error == 0)
        return ACTIVE;
    log_line(LOG_WARN, LOG_STATE, "not profiling: %s cannot be had, error %d%s", what, -error,
             error == -ENOMEM ? " (no room: 64 MiB of address space must be left, see ulimit -v and ulimit -d)" : "");
    return INERT;
}

static void refuse(const char *reason)
{
    if (environment_is_first() && !is_quiet())
        log_line(LOG_WARN, LOG_PYTHON, "%s", reason);
}

static bool is_in_front(void)
{
    enum order order = order_find();
    if (order == ORDER_BEHIND)
        refuse("this library must be there from the start, by LD_PRELOAD; loaded by a running program it does nothing");
    return order == ORDER_FRONT;
}

static int decide(bool late)
{
    char reason[256];
    switch (python_find(&target, late, reason, sizeof reason)) {
    case PYTHON_SUPPORTED:
        return is_in_front() ? start() : INERT;
    case PYTHON_REFUSED:
        refuse(reason);
        return INERT;
    default:
        return DORMANT;
    }
}

static int count_loaded(struct dl_phdr_info *info, size_t size, void *count)
{
    *(unsigned long long *)count = info->dlpi_adds;
    return 1;
}

static bool something_was_loaded(void)
{
    unsigned long long now = 0;
    dl_iterate_phdr(count_loaded, &now);
    bool changed = now != loaded_before;
    loaded_before = now;
    return changed;
}

static bool is_switched_off(void)
{
    const char *enable = getenv("APROF_ENABLE");
    return enable && strcmp(enable, "0") == 0;
}

void init_look_again(void)
{
    int dormant = DORMANT;
    if (atomic_load_explicit(&state, memory_order_relaxed) != DORMANT ||
        !atomic_compare_exchange_strong(&state, &dormant, DECIDING))
        return;
    atomic_store_explicit(&state, something_was_loaded() ? decide(true) : DORMANT, memory_order_release);
}

__attribute__((constructor)) static void begin(void)
{
    int dormant = DORMANT;
    if (!gnu_get_libc_version || (real_resolve_safe(), is_switched_off())) {
        atomic_store(&state, INERT); /* another C library: stay out of its way */
        return;
    }
    if (!atomic_compare_exchange_strong(&state, &dormant, DECIDING))
        return;
    something_was_loaded();
    atomic_store_explicit(&state, decide(false), memory_order_release);
}

/* Other processes of the run may go on, and none knows of them all: it says whose it is. */
static void say_summary(void)
{
    char line[4096];
    struct loop_totals totals = loop_totals();
    if (spooling_is_failing())
        return; /* nothing there to be read; why was said */
    size_t length = log_format(line, sizeof line, "aprof: %lu samples, %lu.%lu s of CPU in process %d, its children not counted (read all with: aprof report %s)\n",
                               (unsigned long)totals.samples, (unsigned long)(totals.cpu_ns / SECOND),
                               (unsigned long)(totals.cpu_ns / (SECOND / 10) % 10), getpid(), config.dir);
    log_write(line, length);
}

/* What nobody answers, we say ourselves; a disk that the sampler waits for is none
 * to wait for here. */
static void ask_for_the_last(enum loop_request request, uint64_t deadline_ns)
{
    bool sampled = loop_is_running();
    farewell_intend(request == LOOP_EXEC ? FAREWELL_EXEC : FAREWELL_EXIT);
    bool answered = loop_ask(request, deadline_ns);
    if (!(sampled && answered) && !spooling_is_writing())
        farewell_say();
}

void init_before_exec(void)
{
    if (!init_is_active() || !fork_owns_process())
        return;
    ask_for_the_last(LOOP_EXEC, clock_now() + END_WAIT_NS);
    log_flush();
    stall_before_exec();
    fork_before_exec();
}

void init_after_exec(void)
{
    if (!init_is_active() || !fork_owns_process())
        return;
    farewell_take_back();
    stall_after_exec();
    fork_after_exec();
}

void init_last_words(enum loop_request request)
{
    int saved = errno;
    if (init_is_active() && fork_owns_process()) {
        uint64_t begin = clock_now(), waited = atomic_load(&waited_ns);
        struct timer_held held;
        timer_hold(&held);
        ask_for_the_last(request, begin + (waited < END_WAIT_NS ? END_WAIT_NS - waited : 0));
        timer_let_go(&held);
        atomic_fetch_add(&waited_ns, clock_now() - begin);
        log_flush();
    }
    errno = saved;
}

__attribute__((destructor)) static void end(void)
{
    init_last_words(LOOP_EXIT);
    if (config.summary && init_is_active() && fork_owns_process())
        say_summary();
}
