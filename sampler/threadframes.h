/* SPDX-License-Identifier: MIT
 *
 * threadframes: the frame that a thread's stacks begin with, [thread NAME], where
 * APROF_THREAD_FRAMES asks for it.
 *
 * NAME is Python's (Thread.name, sampler/cpython/threadnames.h) where it can be read, the
 * kernel's elsewhere: a thread that C made, a program that never imported threading.
 * Names may change, so all are read anew: as often as each fourth part of the time since
 * the beginning, at last once a second, and only if somebody ran since; more seldom where
 * that would take more than a hundredth of a core. A new thread is looked for among the
 * newest entries at once.
 *
 * So that names with numbers in them do not make a profile without end, a window has
 * NAMES_MOST different ones; the threads of all others are [thread ~] (counted: limits
 * thread_names). Names are otherwise left as they are.
 *
 * Runs in: [sampler]. Everything lives in the profiler's own heap: a name that finds no
 * room there is none, and the thread's stacks begin with no marker.
 */
#ifndef APROF_SAMPLER_THREADFRAMES_H
#define APROF_SAMPLER_THREADFRAMES_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "sampler/cpython/target.h"
#include "sampler/stacks.h"
#include "sampler/window.h"

enum { THREADFRAMES_NAMES_MOST = 1000 };

/* One thread's, kept by whoever watches it. All 0 at first. */
struct threadframe {
    pid_t tid;
    uintptr_t interp;     /* and of its thread state there: ... */
    uint64_t pthread;     /* ... its pthread_t */
    char *name;           /* escaped; NULL: none is known */
    uint32_t length;
    uint32_t place;       /* among all */
    uint8_t looks;        /* for it among the newest, until it is found */
    bool of_python;       /* so the kernel's is not asked for */
    bool renamed;         /* since it was last taken note of: by whoever keeps stacks of the thread */
    profile_stack marker; /* the stack of that frame alone, in this window; PROFILE_ROOT: not yet made */
};

struct threadframes;

/* NULL: no memory. now: as clock_now() has it. */
struct threadframes *threadframes_new(const struct py_target *target, uint64_t now);
void threadframes_free(struct threadframes *all);

/* False: no memory; then it has no name. The thread stays where it is until it leaves. */
bool threadframes_join(struct threadframes *all, struct threadframe *thread);
void threadframes_leave(struct threadframes *all, struct threadframe *thread);

/* What Python called it at its birth; that may have changed since. */
void threadframes_name(struct threadframes *all, struct threadframe *thread, const char *name, uint32_t length);

/* Once a tick, when the new threads have joined. ran: somebody may have run Python since the last one. True: some
 * are renamed. */
bool threadframes_tick(struct threadframes *all, uint64_t now, bool ran, struct counters *counters);
/* Whether it is time to read names that may have changed since they were read: then no tick is to be left out. */
bool threadframes_are_due(const struct threadframes *all, uint64_t now);

/* What the thread's stacks begin with; PROFILE_ROOT: with their first frame. */
profile_stack threadframes_marker(struct threadframes *all, struct threadframe *thread, struct stacks *stacks);

/* The profile was cleared: stacks are void, and names may be new ones again. */
void threadframes_forget_stacks(struct threadframes *all);

#endif
