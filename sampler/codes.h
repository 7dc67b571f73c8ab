/* SPDX-License-Identifier: MIT
 *
 * codes: the code objects that were seen, and their names and lines.
 *
 * A code object may be freed and its address used again before a record is
 * drained, so its name, file and location table are settled when it is first
 * seen, in the CPU tick itself: the handler copies them into one bounded ring of
 * the process. Each identity (sampler/cpython/code.h) is settled once: it is
 * claimed in the table of known ones by compare-and-swap.
 *
 *   known    open-addressed table of identities, shared, lock-free
 *   ring     copies on their way: many producers (handlers), one consumer
 *   infos    the sampler's own: identity -> names, table, flags, frames
 *
 * A location table of more than 4 MiB is left out: lines are then the first one.
 *
 * When the ring or the table is full the handler records the code's address
 * too; the sampler then reads it from memory if its identity still matches.
 *
 * Bounded: the known table and the infos are emptied together (codes_forget)
 * at a window's end when they are more than half full. Names that the heap has no
 * room for are not known: they are [unknown] now, and settled again when they are
 * seen next.
 */
#ifndef APROF_SAMPLER_CODES_H
#define APROF_SAMPLER_CODES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "sampler/cpython/code.h"
#include "sampler/profile.h"
#include "sampler/text.h"

/* What is known of a function, kept with every frame of it (profile_frame_flags). */
enum {
    CODE_LOOP = 1,     /* BaseEventLoop._run_once of asyncio/base_events.py */
    CODE_SELECTOR = 2, /* ...Selector.select of selectors.py */
    CODE_HANDLE = 4,   /* Handle._run of asyncio/events.py */
    CODE_THREAD = 8,   /* what threading.py calls a thread's function through */
    CODE_MARKER = 16,  /* no code: the marker [thread NAME]; ... */
    CODE_LABEL = 32,   /* ... a label, [NAME=VALUE] */
    CODE_WORK = 64,    /* _WorkItem.run of concurrent/futures/thread.py */
    CODE_ANYIO = 128   /* WorkerThread.run of anyio/_backends/_asyncio.py */
};

/* [loader] Maps the shared parts. 0 or a negative errno. */
int codes_start(void);

/* [handler] True when the names of this code object are settled (now or before). */
bool codes_settle(const struct py_target *target, const struct py_code *code);

/* [handler] Of an identity seen before, CODE_WORK or CODE_ANYIO; of another 0. */
uint32_t codes_work(uint64_t identity);

/* [sampler] Takes over what handlers copied. False: one of them is still writing. */
bool codes_drain(void);

/* [sampler] Reads the names of a code object that the caller knows to be alive
 * or whose identity must still match. False when they cannot be had. */
bool codes_learn(const struct py_target *target, uintptr_t address, uint64_t identity);

/* [sampler] The frame's text interned in the profile; 0: identity unknown. */
profile_frame codes_frame(struct profile *profile, const struct text_paths *paths, uint64_t identity, int32_t lasti);

/* [sampler] Whether more than half of a bound is used. */
bool codes_are_many(void);
/* [sampler] Forgets everything. Frames of the profile must be dropped with it. */
void codes_forget(void);
/* [sampler] The profile's frames were dropped: forget their ids only. */
void codes_forget_frames(void);

/* How often the ring or the table had no room. */
uint64_t codes_overflows(void);

/* [fork, child] The infos are void (their heap is the parent's). */
void codes_postfork_child(void);

#endif
