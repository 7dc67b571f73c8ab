/* SPDX-License-Identifier: MIT */
#include "preload/fork.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/mman.h>

#include "hooks/clock.h"
#include "hooks/guard.h"
#include "hooks/log.h"
#include "hooks/mem.h"
#include "hooks/real.h"
#include "hooks/sigaction.h"
#include "hooks/task.h"
#include "hooks/threads.h"
#include "hooks/timer.h"
#include "output/farewell.h"
#include "preload/python.h"
#include "sampler/births.h"
#include "sampler/codes.h"
#include "sampler/cpython/asyncios.h"
#include "sampler/cpython/frames.h"
#include "sampler/cpython/states.h"
#include "sampler/loop.h"
#include "sampler/ring.h"
#include "sampler/tick.h"

enum {
    WAIT_MS = 20,
    WARNS_FROM_MINOR = 12,
    OWN_STATES = 64,      /* newest thread states looked at for our own */
    CALLBACK_FRAMES = 64  /* frames of what is called around a fork */
};

typedef _Atomic uint32_t counter;

/* Where Python stands in its call of os.fork: the frame, and the instruction in it. */
struct call_site {
    uintptr_t frame, instruction;
};

static struct {
    const struct py_target *target;
    int (*add_pending)(int (*)(void *), void *);
    void (*on_child)(void);
    pid_t pid;
    uint64_t start_us;
    _Atomic(counter *) children; /* page shared with our children: those without a sample */
    counter *above;              /* that of the process that counts us, or did */
    _Atomic bool counted;        /* there, now */
    _Atomic bool sampled;        /* our first sample was taken */
    struct call_site forking;    /* the call of os.fork after which the sampler comes back; 0: any time */
    _Atomic bool start_wanted;   /* a sampler is to be started by the next pending call */
} state;

/* At the fork that this thread is about to make: two may do so at once. */
static __thread struct {
    pid_t tid; /* of this thread, in the parent */
    bool was_running, joined;
} forking;

/* --- the sampler comes back --- */

static void post_start(void);

static bool read_site(uintptr_t frame, struct call_site *site)
{
    uint64_t word;
    *site = (struct call_site){0};
    if (!frame || !guard_word(frame + (uintptr_t)state.target->layout.frame_instr, &word))
        return false;
    *site = (struct call_site){frame, (uintptr_t)word};
    return true;
}

static uintptr_t own_state(void)
{
    return states_find_own(state.target, task_tid(), pthread_self(), OWN_STATES);
}

static void note_call_of_fork(void)
{
    struct frames_walk walk;
    frames_begin(&walk, state.target, own_state(), 1);
    read_site(walk.next, &state.forking);
}

/* Python counts the threads after it has called what modules registered with
 * os.register_at_fork, and pending calls run in those (logging's is written in
 * Python): a sampler that is back by then is one thread too many. */
static bool is_in_call_of_fork(void)
{
    struct frames_walk walk;
    struct py_frame frame;
    struct call_site now;
    bool first = true;
    if (!state.forking.frame)
        return false;
    frames_begin(&walk, state.target, own_state(), CALLBACK_FRAMES);
    while (frames_next(&walk, &frame)) {
        if (frame.kind != FRAME_PYTHON)
            continue;
        if (frame.address == state.forking.frame)
            return !first && read_site(frame.address, &now) && now.instruction == state.forking.instruction;
        first = false;
    }
    return false;
}

static void start_again(void)
{
    int error = loop_start();
    if (error == -EAGAIN) { /* no thread to be had, or the paused one is still there: at the next CPU tick */
        atomic_store(&state.start_wanted, true);
        tick_on_any(post_start);
    } else if (error) { /* children in a pid namespace of their own, and the like */
        log_line(LOG_WARN, LOG_STATE, "not profiling any more: a thread of our own cannot be started, error %d", -error);
    }
}

static int start_sampler(void *unused)
{
    if (atomic_load(&state.start_wanted) && is_in_call_of_fork()) {
        post_start(); /* again, until it has returned */
        return 0;
    }
    state.forking = (struct call_site){0};
    if (atomic_exchange(&state.start_wanted, false)) {
        tick_on_any(NULL);
        start_again();
    }
    return 0;
}

/* [handler] [fork] Posts only where it cannot block: the lock of the pending
 * calls may be held by a thread that the fork left behind. */
static void post_start(void)
{
    if (atomic_load(&state.start_wanted) && state.add_pending && states_pending_lock_is_free(state.target))
        state.add_pending(start_sampler, NULL);
}

static void want_sampler(void)
{
    atomic_store(&state.start_wanted, true);
    tick_on_any(post_start);
    post_start();
}

/* --- counting children --- */

/* Before the first fork: what is shared cannot be had later. */
static void make_page(void)
{
    counter *none = NULL;
    if (atomic_load(&state.children))
        return;
    void *page = mmap(NULL, sizeof(counter), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (page != MAP_FAILED && !atomic_compare_exchange_strong(&state.children, &none, (counter *)page))
        munmap(page, sizeof(counter)); /* another thread forks as well */
}

/* [fork, child] A process without a sample shows no count: the one above it, that
 * counts it, counts its children too. One page is inherited on, the other is of no
 * more use here. */
static void join_count(void)
{
    counter *mine = atomic_load(&state.children), *unused = mine;
    if (!atomic_load(&state.counted)) {
        unused = state.above;
        state.above = mine;
    }
    if (unused)
        munmap((void *)unused, sizeof(counter));
    atomic_store(&state.children, NULL);
    atomic_store(&state.sampled, false);
    atomic_store(&state.counted, forking.was_running && state.above);
    if (atomic_load(&state.counted))
        atomic_fetch_add(state.above, 1);
}

/* True when it was counted. */
static bool leave_count(void)
{
    bool counted = atomic_exchange(&state.counted, false); /* an exec and a first sample may meet */
    if (counted)
        atomic_fetch_sub(state.above, 1);
    return counted;
}

void fork_first_sample(void)
{
    atomic_store(&state.sampled, true);
    leave_count();
}

static __thread bool left_for_exec; /* by this thread */

void fork_before_exec(void)
{
    left_for_exec = leave_count();
}

void fork_after_exec(void)
{
    if (!left_for_exec)
        return;
    left_for_exec = false;
    atomic_fetch_add(state.above, 1);
    atomic_store(&state.counted, true);
    if (atomic_load(&state.sampled)) /* meanwhile */
        leave_count();
}

/* --- the handlers --- */

static bool is_single_threaded(void)
{
    return threads_alive() == 0;
}

/* Who forks without Python (uWSGI's master, which runs none from then on) is not
 * warned, and may never come to the pending call that brings the sampler back. */
static bool runs_python(void)
{
    struct frames_walk walk;
    struct py_frame frame;
    frames_begin(&walk, state.target, own_state(), CALLBACK_FRAMES);
    while (frames_next(&walk, &frame))
        if (frame.kind == FRAME_PYTHON)
            return true;
    return false;
}

static void prepare(void)
{
    int saved = errno;
    forking.tid = task_tid();
    forking.joined = false;
    forking.was_running = false;
    if (fork_owns_process()) {
        log_flush();
        loop_notice_end();
        make_page();
        forking.was_running = loop_is_running() || atomic_load(&state.start_wanted);
        if (loop_is_running() && state.target->layout.minor >= WARNS_FROM_MINOR && is_single_threaded() &&
            runs_python())
            forking.joined = loop_pause(clock_now() + WAIT_MS * 1000000ull);
    }
    errno = saved;
}

static void parent(void)
{
    int saved = errno;
    if (forking.joined) {
        note_call_of_fork();
        want_sampler();
    }
    errno = saved;
}

/* CPU ticks of the surviving thread are the second trigger: it needs a record
 * and a timer of its own. */
static void arm_second_trigger(void)
{
    struct thread *self = threads_self();
    if (!self)
        self = threads_adopt(task_tid());
    if (!self)
        return;
    ring_init(self->space, self->space_size);
    tick_arm(self);
}

static void child(void)
{
    int saved = errno;
    state.pid = real_pid();
    state.start_us = clock_epoch_us();
    states_postfork_child(state.target, forking.tid, pthread_self());
    sigaction_after_exec(); /* another thread of the parent may have been about to spawn */
    loop_postfork_child();
    farewell_postfork_child();
    codes_postfork_child();
    births_postfork_child();
    asyncios_withdraw_all();
    timer_postfork_child();
    threads_postfork_child();
    mem_postfork_child();
    state.forking = (struct call_site){0};
    atomic_store(&state.start_wanted, false);
    join_count();
    if (forking.was_running) {
        if (state.on_child)
            state.on_child();
        want_sampler();
        arm_second_trigger();
    }
    errno = saved;
}

/* --- what the kernel refuses while there is a second thread --- */

bool fork_step_aside(void)
{
    return fork_owns_process() && loop_is_running() && loop_pause(clock_now() + WAIT_MS * 1000000ull);
}

void fork_step_back(void)
{
    start_again();
}

/* --- what others ask --- */

uint64_t fork_children_without_sample(void)
{
    counter *children = atomic_load(&state.children);
    return children ? atomic_load(children) : 0;
}

uint64_t fork_start_us(void)
{
    return state.start_us;
}

bool fork_owns_process(void)
{
    return real_pid() == state.pid;
}

void fork_on_child(void (*call)(void))
{
    state.on_child = call;
}

int fork_start(const struct py_target *target)
{
    state.target = target;
    state.pid = real_pid();
    state.start_us = clock_epoch_us();
    state.add_pending = (int (*)(int (*)(void *), void *))python_symbol("Py_AddPendingCall");
    return -pthread_atfork(prepare, parent, child);
}
