/* SPDX-License-Identifier: MIT
 *
 * stacks: frames as read from memory, to stacks of the profile.
 *
 * A copy is one pass over a thread's frames, leaf first, at most `depth` of
 * them; two passes that are equal between two equal readings of the thread's
 * CPU clock are a stack that stood still. Root first they are pushed onto the
 * profile's tree; what was cut at the root end shows as [truncated N].
 *
 * Where the thread runs a task, the chains of its awaiters stand between the task's
 * frames and those of the loop (sampler/stacked.h). The same copy also gives the
 * task's own stack: without the loop's _run_once and Handle._run, and, where nobody
 * awaits the task, on what the caller says it stands on.
 *
 * Runs in: [sampler].
 */
#ifndef APROF_SAMPLER_STACKS_H
#define APROF_SAMPLER_STACKS_H

#include <stdbool.h>
#include <stdint.h>

#include "sampler/codes.h"
#include "sampler/cpython/exceptions.h"
#include "sampler/cpython/frames.h"
#include "sampler/markers.h"
#include "sampler/profile.h"
#include "sampler/ring.h"

/* A task's name among frames: its place. */
#define STACK_NAME INT32_MIN

struct stack_entry {
    uint64_t identity; /* of a name its number (markers.h); 0: it has none, so no frame either */
    uintptr_t code;    /* address; 0: the names were settled in the handler */
    int32_t lasti;
    profile_frame frame; /* found by stacks_resolve; 0: not yet */
};

struct stack_copy {
    enum frames_end end;
    uint32_t frames;   /* in entry[] */
    uint32_t cut;      /* more of them, at the root end */
    uint32_t depth;    /* room in entry[] */
    uintptr_t task;       /* the outermost task that the thread runs, 0: none; ... */
    uint64_t births;      /* births_number() when it was seen to run: which task the address stands for */
    uint32_t task_frames; /* ... so many entries, from the leaf on, are its own and its awaiters' */
    bool awaited;         /* ... it has awaiters, and they were found */
    bool cycle;           /* its awaiters go round in a circle */
    bool chosen;          /* of several awaiters one was taken by lot */
    bool foreign;         /* it is work for a loop in another thread, whose tasks may go on while this one stands */
    bool torn_awaiter;    /* awaiters are missing */
    bool collects;        /* the thread runs a garbage collection, ... */
    bool may_collect;     /* ... or that could not be told */
    struct collector_memory *collector; /* what is known of the thread for it, NULL: nothing; set by whoever makes a pass */
    bool reads_exceptions; /* a pass also reads what the thread handles; set by whoever owns the copy */
    bool torn_exception;  /* ... and could not */
    uint32_t exception_length; /* of the type's name; 0: the thread handles none */
    char exception[EXCEPTION_NAME_MAX];
    profile_stack root;   /* what its stacks stand on: the marker of the thread's name. Set by whoever interns; no part of a pass */
    marker_id label[LABELS_MOST]; /* what the thread's context says; 0: nothing */
    struct stack_entry entry[];
};

/* What a stack is to an event loop; kept with it (profile_stack_flags). */
enum {
    STACK_IN_LOOP = 1, /* it stands on asyncio's _run_once */
    STACK_IDLE = 2     /* it is the loop's own select */
};

struct stacks {
    struct profile *profile;
    struct text_paths paths;
    const struct py_target *target;
    profile_frame unknown;
    uint64_t unreadable; /* frames that became [unknown] */
};

/* Room for a copy of depth frames, from hooks/mem.h. */
struct stack_copy *stacks_new_copy(uint32_t depth);

/* One pass. The result is copy->end: FRAMES_COMPLETE or FRAMES_LIMIT is a stack.
 * Two passes with the same seed take the same of several awaiters. */
enum frames_end stacks_capture(struct stack_copy *copy, const struct py_target *target, uintptr_t tstate, uint64_t seed);
/* The record at the ring's tail, as a copy; FRAMES_TORN: somebody wrote over it. */
void stacks_from_ring(struct stack_copy *copy, const struct ring *ring);
bool stacks_equal(const struct stack_copy *a, const struct stack_copy *b);
bool stacks_is_whole(enum frames_end end);

/* Whether every frame's names are known by now (learning them where they can be
 * read). False: try again later, or intern with [unknown]. */
bool stacks_resolve(struct stacks *stacks, struct stack_copy *copy);
profile_stack stacks_intern(struct stacks *stacks, const struct stack_copy *copy);
/* The stack of the task that the copy's thread runs; on below, or on the thread's own frames where that is
 * PROFILE_ROOT. PROFILE_ROOT: it runs none. */
profile_stack stacks_intern_task(struct stacks *stacks, const struct stack_copy *copy, profile_stack below);
/* One frame more, by its entry. */
profile_stack stacks_push(struct stacks *stacks, profile_stack parent, const struct stack_entry *entry);
/* On root, the frame that so many were cut at the root end. */
profile_stack stacks_push_truncated(struct stacks *stacks, profile_stack root, uint32_t frames);
/* The stack that is this marker of a thread's name alone; ... */
profile_stack stacks_thread_marker(struct stacks *stacks, const char *marker, size_t length);
/* ... that which a stack begins with: PROFILE_ROOT, with none; ... */
profile_stack stacks_marker_of(struct stacks *stacks, profile_stack stack);
/* ... and the same frames on another one (PROFILE_ROOT: on none), with the same twin there. */
profile_stack stacks_move(struct stacks *stacks, profile_stack stack, profile_stack marker);
/* The same with these labels (LABELS_MOST; NULL: none are asked for) at its root, behind the marker of its thread;
 * it has none yet. */
profile_stack stacks_label(struct stacks *stacks, profile_stack stack, const marker_id *label);
/* A task's name more, if it has one. */
profile_stack stacks_push_name(struct stacks *stacks, profile_stack parent, marker_id name);
/* On the stack, the marker of the exception that the copy's thread handles; PROFILE_ROOT: it handles none. */
profile_stack stacks_push_exception(struct stacks *stacks, profile_stack stack, const struct stack_copy *copy);
/* A marker more: [ready], [cycle]. */
profile_stack stacks_push_marker(struct stacks *stacks, profile_stack parent, const char *marker);
/* Which function the stack's thread began with, threading's own left out, whatever the line:
 * a number, the same for the same function. 0: it has no frame. */
uint64_t stacks_began_with(struct stacks *stacks, profile_stack stack);
/* The frames that drive the loop of this stack's thread: what is below _run_once, or below the task that runs.
 * sure is false where neither is there: then it is the whole stack; and where frames were cut at the root end. */
profile_stack stacks_intern_driver(struct stacks *stacks, const struct stack_copy *copy, bool *sure);

#endif
