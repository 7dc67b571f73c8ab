/* SPDX-License-Identifier: MIT
 *
 * tick: a thread walks itself when its own CPU timer expires.
 *
 * The handler allocates nothing, takes no lock, keeps a frame under 1 KiB, saves
 * errno, and leaves one record in the thread's own ring (sampler/ring.h). It
 * stands back (counted) on a small alternate stack and where the thread blocks
 * SIGSEGV or SIGBUS, since a guarded read that faults would then kill.
 *
 * Where ticks use more of a thread's CPU than they may (stacks of hundreds of
 * frames), its period doubles, and halves again once a quarter of it would do.
 *
 * Runs in: [handler] for tick_handle, [sampler]/[loader] for the rest.
 */
#ifndef APROF_SAMPLER_TICK_H
#define APROF_SAMPLER_TICK_H

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>

#include "hooks/threads.h"
#include "hooks/timer.h"
#include "sampler/cpython/target.h"

struct tick_options {
    const struct py_target *target;
    uint32_t depth;          /* frames kept of one stack */
    uint64_t period_ns;
    uint64_t longest_ns;     /* what the period may grow to, ... */
    uint32_t share_ppm;      /* ... so that ticks use no more of their thread's CPU, in millionths; 0: it does not grow */
    enum timer_clock clock;
    bool thread_names;       /* what Python calls a thread is noted at its birth */
    bool exceptions;         /* records say which exception their thread handles */
};

/* Sets what every tick reads; call before timers are made. Claims TIMER_SIGNAL
 * and wants to hear of births (hooks/threads.h). 0 or a negative errno. */
int tick_start(const struct tick_options *options);

/* Whether ticks may walk now (not while the runtime starts or ends). Timers keep
 * running; their signals do nothing. Where the guard is not in force a tick reads
 * by system call: dearer, and as exact, since the thread still walks itself. */
void tick_enable(bool enabled);

/* [sampler] What Python called this thread at its birth, escaped; its length. 0: not known (it is none of the
 * interpreter's, or was there before; or the name is longer than TICK_NAME_MAX). Valid until its record is released. */
enum { TICK_NAME_MAX = 112 };
uint32_t tick_name_at_birth(const struct thread *thread, const char **name);

/* Arms a timer for this thread, first expiry random in (0, period]. False when
 * it could not be made (timers limit, thread gone, no tick_start). */
bool tick_arm(struct thread *thread);
void tick_disarm(struct thread *thread);

/* [sampler] Has births_hook(type) called by the next CPU tick that finds its thread
 * holding the GIL of this interpreter. */
void tick_hook_births(uintptr_t task_type, uintptr_t interp);

/* Called in each tick before anything else (a pending call that waits to be
 * posted, a line for stderr); async-signal-safe. */
void tick_on_any(void (*call)(void));

#endif
