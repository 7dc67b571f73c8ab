/* SPDX-License-Identifier: MIT
 *
 * loop: the sampler thread: its clock, its windows, and what others ask of it.
 *
 * One thread of ours, woken by an absolute futex wait (no signal). It waits for
 * the runtime to be ready, ticks while it is, looks at clocks only while it
 * ends, and waits again: an interpreter may be started anew. Ticks come at the
 * rate asked for, or the lower one that the budget of CPU allows
 * (sampler/budget.h), with a jitter of 20 % against aliasing; while the process's
 * CPU clock (less our own) stands still they back off to the minimum rate, and to a
 * quarter while threads do nothing but run: then their CPU ticks tell it all.
 *
 * Once a second it is looked whether somebody asks for a dump (sampler/dump.h), which
 * the next tick makes; they take no more than a hundredth of a core, and half a second of
 * CPU at once.
 *
 * Requests: an application thread that ends or replaces the process, or forks,
 * sets a bit and waits, bounded, until the sampler has cleared it.
 *
 * Life across fork: in the child loop_postfork_child makes everything void; the
 * next loop_start begins from nothing, in the child's own heap.
 */
#ifndef APROF_SAMPLER_LOOP_H
#define APROF_SAMPLER_LOOP_H

#include <stdbool.h>
#include <stdint.h>

#include "hooks/timer.h"
#include "sampler/cpython/target.h"
#include "sampler/dump.h"
#include "sampler/profile.h"
#include "sampler/text.h"
#include "sampler/window.h"

/* Where windows go: output/ behind it, wired by preload/. All in [sampler]. */
struct loop_output {
    void (*begin)(void);  /* a new life: the first window is about to open */
    int (*flush)(struct profile *profile, const struct window *window);
    int (*describe)(struct profile *profile, const struct window *window);
    /* The window's end; next: the one that follows, NULL at the end of all. */
    int (*seal)(struct profile *profile, const struct window *window, const struct window *next);
    int (*pause)(struct profile *profile, const struct window *window);
    int (*resume)(struct profile *profile, const struct window *window); /* -EACCES: this window should end soon */
    bool (*is_full)(void); /* no room for new stacks on disk */
    bool (*is_asked)(void);  /* somebody asks for a dump: one look */
    int (*answer)(const struct profile *profile, const struct dump *dump);
};

struct loop_options {
    const struct py_target *target;
    uint32_t rate, min_rate, depth;
    uint32_t overhead;         /* per cent of the application's CPU that sampling may use; 0: the rate is as asked for */
    uint32_t max_threads;      /* looked at in one tick; 0: all */
    enum timer_clock clock;
    bool signals;
    uint32_t metrics;          /* bit mask of enum metric */
    bool creators;             /* the making of tasks is hooked */
    bool thread_frames;        /* stacks begin with the thread's name */
    /* Has the making of tasks of this type hooked by the main thread, with the GIL, if it can be done. */
    void (*hook)(uintptr_t task_type, uintptr_t interp);
    uint64_t window_ns, delay_ns, duration_ns;
    struct text_paths paths;
    const struct loop_output *output;
    /* The runtime has become ready (once a life of it): time for what needs the
     * GIL. False: this interpreter must not be sampled. */
    bool (*ready)(void);
    /* The first sample was taken and stored. */
    void (*first_sample)(void);
    /* At the end of all: thread-private descriptors or not, told before anything is opened. */
    void (*descriptors)(bool own_table);
};

/* [loader] Keeps the options. */
void loop_prepare(const struct loop_options *options);

/* Starts the thread (again, after a pause). 0 or a negative errno; 0 when it runs
 * already; -EAGAIN: not now, try again later. */
int loop_start(void);

enum loop_request {
    LOOP_LAST_TICK = 1, /* one more tick, everything on disk */
    LOOP_EXIT = 2,      /* that, and the end: window sealed, thread leaves */
    LOOP_EXEC = 4,      /* one more tick, window sealed (once in a while: execs that fail come in rows);
                           goes on if the exec fails */
    LOOP_PAUSE = 8      /* files put aside, thread leaves at once; loop_start comes back */
};

/* [application thread] Asks and waits until deadline_ns at most. True when it was
 * done (or there is no sampler, so nothing to wait for). A sampler that has been
 * waiting for a disk for 20 ms is not waited for. */
bool loop_ask(enum loop_request request, uint64_t deadline_ns);

/* [application thread] Gives up, with a line, should something have ended the thread:
 * nobody waits for it then. A system call. */
void loop_notice_end(void);

/* LOOP_PAUSE and the thread is gone, or about to be. False: it did not answer in
 * time, the pause is withdrawn and the thread goes on. */
bool loop_pause(uint64_t deadline_ns);

/* [application thread] LOOP_EXIT, and the thread is gone. False: not in time. */
bool loop_leave(uint64_t deadline_ns);

bool loop_is_running(void);

/* Whether the kernel lets our thread change user and group as it lets the caller. */
bool loop_may_change_identity(void);

/* An interpreter may be about to start (again): look for it often for a second.
 * One load while one is sampled. Async-signal-safe. */
void loop_look_soon(void);

/* A tick at once: something fills up that only ticks empty. Async-signal-safe, changes no errno. */
void loop_tick_soon(void);

/* Stops sampling for good, from any thread: the self-test failed. */
void loop_refuse(void);

/* Sums over the life of this process, for the line at exit. */
struct loop_totals {
    uint64_t samples, cpu_ns, wall_ns;
};
struct loop_totals loop_totals(void);

void loop_postfork_child(void);

#endif
