/* SPDX-License-Identifier: MIT */
#include "sampler/stacks.h"

#include <string.h>

#include "hooks/log.h"
#include "hooks/mem.h"
#include "sampler/births.h"
#include "sampler/cpython/contexts.h"
#include "sampler/cpython/asyncios.h"
#include "sampler/cpython/collector.h"
#include "sampler/cpython/states.h"
#include "sampler/labels.h"
#include "sampler/stacked.h"
#include "sampler/text.h"

enum { WALK_FACTOR = 4 }; /* as in the CPU tick */
#define CYCLE "[cycle]"

struct stack_copy *stacks_new_copy(uint32_t depth)
{
    struct stack_copy *copy = mem_zalloc(sizeof *copy + depth * sizeof copy->entry[0]);
    if (copy)
        copy->depth = depth;
    return copy;
}

static void start_copy(struct stack_copy *copy)
{
    copy->end = FRAMES_MORE;
    copy->frames = copy->cut = copy->task_frames = 0;
    copy->task = 0;
    memset(copy->label, 0, sizeof copy->label);
    copy->awaited = copy->cycle = copy->chosen = copy->foreign = copy->torn_awaiter = copy->torn_exception = false;
    copy->exception_length = 0;
}

/* Entries come leaf first, those of a chain outermost first: they are put where
 * they belong from its inner end. */
struct filling {
    struct stack_copy *copy;
    uint32_t chain_frames; /* of the chain that is being filled in, what there is room for, ... */
    uint32_t chain_left;   /* ... what is left of that, ... */
    uint32_t chain_skip;   /* ... and how many of its outermost there is no room for */
    bool torn;             /* a chain ended before it was filled in */
};

static void add_frame(struct filling *filling, struct stack_entry entry)
{
    struct stack_copy *copy = filling->copy;
    if (copy->cut || copy->frames == copy->depth)
        copy->cut++;
    else
        copy->entry[copy->frames++] = entry;
}

static void open_chain(struct filling *filling, uint32_t frames)
{
    struct stack_copy *copy = filling->copy;
    uint32_t room = copy->cut ? 0 : copy->depth - copy->frames;
    filling->torn = filling->torn || filling->chain_left;
    filling->chain_skip = frames > room ? frames - room : 0;
    filling->chain_frames = filling->chain_left = frames - filling->chain_skip;
    copy->cut += filling->chain_skip;
    copy->frames += filling->chain_left;
    copy->task_frames = copy->frames;
    copy->awaited = true;
}

static void add_inner(struct filling *filling, struct stack_entry entry)
{
    struct stack_copy *copy = filling->copy;
    if (filling->chain_skip)
        filling->chain_skip--;
    else if (filling->chain_left)
        copy->entry[copy->frames - filling->chain_frames + --filling->chain_left] = entry;
}

static void end_task(struct filling *filling, uintptr_t task, uint64_t births)
{
    filling->copy->task = task;
    filling->copy->births = births;
    filling->copy->task_frames = filling->copy->frames;
    filling->copy->awaited = false;
}

static bool is_nameless(const struct stack_entry *entry)
{
    return entry->lasti == STACK_NAME && !entry->identity;
}

static struct stack_entry entry_of_name(const char *name, uint32_t length)
{
    return (struct stack_entry){.identity = markers_of_task(name, length), .lasti = STACK_NAME};
}

static void take_name(struct filling *filling, const struct stacked_walk *walk, const struct stacked *entry)
{
    char name[TEXT_FOLDED_MAX];
    struct stack_entry named = entry_of_name(name, asyncio_folded_name(walk->frames.target, walk->asyncio, entry->task, name));
    if (entry->inner)
        add_inner(filling, named);
    else
        add_frame(filling, named);
}

static void take(struct filling *filling, const struct stacked_walk *walk, const struct stacked *entry)
{
    struct stack_entry frame = {entry->code.identity, entry->code.address, entry->lasti, 0};
    switch (entry->kind) {
    case STACKED_FRAME:
        add_frame(filling, frame);
        break;
    case STACKED_TASK:
        end_task(filling, entry->task, births_number());
        break;
    case STACKED_CHAIN:
        open_chain(filling, entry->frames);
        break;
    case STACKED_INNER:
        add_inner(filling, frame);
        break;
    case STACKED_CYCLE:
        filling->copy->cycle = true;
        break;
    case STACKED_NAME:
        take_name(filling, walk, entry);
        break;
    }
}

static void read_exception(struct stack_copy *copy, const struct py_target *target, uintptr_t tstate)
{
    enum exceptions_found found = exceptions_of_thread(target, tstate, copy->exception, &copy->exception_length);
    if (found != EXCEPTIONS_ONE)
        copy->exception_length = 0;
    copy->torn_exception = found == EXCEPTIONS_TORN;
}

static void read_collection(struct stack_copy *copy, const struct py_target *target, uintptr_t tstate)
{
    enum collector_found found = collector_of(target, tstate, copy->depth * WALK_FACTOR, copy->collector, false);
    copy->collects = found == COLLECTOR_RUNS;
    copy->may_collect = found == COLLECTOR_UNKNOWN;
}

enum frames_end stacks_capture(struct stack_copy *copy, const struct py_target *target, uintptr_t tstate, uint64_t seed)
{
    struct stacked_walk walk;
    struct stacked entry;
    struct filling filling = {.copy = copy};
    start_copy(copy);
    bool labelled = !labels_asked || labels_of_context(target, contexts_of_thread(target, tstate), copy->label);
    stacked_begin(&walk, target, asyncios_of(states_interp(target, tstate)), tstate, copy->depth * WALK_FACTOR, seed);
    while (stacked_next(&walk, &entry))
        take(&filling, &walk, &entry);
    copy->end = filling.torn || filling.chain_left || !labelled ? FRAMES_TORN : walk.frames.end;
    copy->chosen = walk.chosen;
    copy->foreign = walk.foreign;
    copy->torn_awaiter = walk.torn;
    read_collection(copy, target, tstate);
    if (copy->reads_exceptions)
        read_exception(copy, target, tstate);
    if (stacks_is_whole(copy->end) && copy->frames == 0)
        copy->end = FRAMES_EMPTY;
    return copy->end;
}

enum { TEXT_WORDS = (TEXT_FOLDED_MAX + 7) / 8 };

/* Its length. */
static uint32_t text_in_ring(const struct ring *ring, uint32_t *at, uint64_t *word, uint32_t most)
{
    uint32_t length = (uint32_t)(ring_peek(ring, *at) >> 32), words = (length + 7) / 8;
    if (length > most)
        length = words = 0; /* somebody wrote over it */
    for (uint32_t i = 0; i < words; i++)
        word[i] = ring_peek(ring, *at + 1 + i);
    *at += 1 + words;
    return length;
}

static struct stack_entry name_in_ring(const struct ring *ring, uint32_t *at)
{
    uint64_t word[TEXT_WORDS];
    uint32_t length = text_in_ring(ring, at, word, TEXT_FOLDED_MAX);
    return entry_of_name((const char *)word, length);
}

static void take_label(struct stack_copy *copy, const struct ring *ring, uint32_t *at)
{
    uint64_t word[TEXT_WORDS];
    uint32_t label = ring_peek(ring, *at) >> 8 & 255, length = text_in_ring(ring, at, word, TEXT_FOLDED_MAX);
    if (label < labels_asked)
        copy->label[label] = markers_of_label(label, (const char *)word, length);
}

static void take_exception(struct stack_copy *copy, const struct ring *ring, uint32_t *at)
{
    uint64_t word[(EXCEPTION_NAME_MAX + 7) / 8];
    copy->exception_length = text_in_ring(ring, at, word, EXCEPTION_NAME_MAX);
    memcpy(copy->exception, word, copy->exception_length);
}

static struct stack_entry entry_in_ring(const struct ring *ring, uint32_t *at)
{
    uint64_t tag = ring_peek(ring, *at);
    if ((tag & 255) == RING_NAME)
        return name_in_ring(ring, at);
    bool settled = (tag & 255) == RING_SETTLED;
    struct stack_entry entry = {ring_peek(ring, *at + 1), settled ? 0 : ring_peek(ring, *at + 2), (int32_t)(tag >> 32), 0};
    *at += settled ? 2 : 3;
    return entry;
}

static void take_chain(struct filling *filling, const struct ring *ring, uint32_t *at, uint32_t end)
{
    uint32_t frames = (uint32_t)(ring_peek(ring, *at) >> 32);
    ++*at;
    open_chain(filling, frames);
    while (frames-- > 0 && *at < end)
        add_inner(filling, entry_in_ring(ring, at));
}

void stacks_from_ring(struct stack_copy *copy, const struct ring *ring)
{
    uint64_t header = ring_peek(ring, 0);
    uint32_t entries = ring_entries(header), at = RING_HEADER_WORDS, end = ring_words(header);
    struct filling filling = {.copy = copy};
    start_copy(copy);
    for (uint32_t i = 0; i < entries && at < end; i++) { /* whatever it says, no further than it reaches */
        switch (ring_peek(ring, at) & 255) {
        case RING_TASK:
            end_task(&filling, ring_peek(ring, at + 1), ring_peek(ring, at + 2));
            at += 3;
            break;
        case RING_CHAIN:
            take_chain(&filling, ring, &at, end);
            break;
        case RING_CYCLE:
            copy->cycle = true;
            at++;
            break;
        case RING_LABEL:
            take_label(copy, ring, &at);
            break;
        case RING_EXCEPTION:
            take_exception(copy, ring, &at);
            break;
        default:
            add_frame(&filling, entry_in_ring(ring, &at));
        }
    }
    copy->cut += (uint32_t)ring_peek(ring, 3);
    copy->torn_awaiter = ring_flags(header) & RING_TORN_AWAITER;
    copy->torn_exception = ring_flags(header) & RING_TORN_EXCEPTION;
    copy->collects = ring_flags(header) & RING_COLLECTS;
    copy->may_collect = ring_flags(header) & RING_MAY_COLLECT;
    copy->end = filling.torn || filling.chain_left ? FRAMES_TORN : FRAMES_COMPLETE;
}

bool stacks_is_whole(enum frames_end end)
{
    return end == FRAMES_COMPLETE || end == FRAMES_LIMIT;
}

bool stacks_equal(const struct stack_copy *a, const struct stack_copy *b)
{
    if (a->end != b->end || a->frames != b->frames || a->cut != b->cut || a->task != b->task || a->task_frames != b->task_frames ||
        memcmp(a->label, b->label, sizeof a->label) != 0)
        return false;
    if (a->collects != b->collects || a->exception_length != b->exception_length || memcmp(a->exception, b->exception, a->exception_length) != 0)
        return false;
    for (uint32_t i = 0; i < a->frames; i++)
        if (a->entry[i].identity != b->entry[i].identity || a->entry[i].lasti != b->entry[i].lasti)
            return false;
    return true;
}

static profile_frame frame_of(struct stacks *stacks, const struct stack_entry *entry)
{
    if (entry->lasti == STACK_NAME)
        return markers_frame(stacks->profile, (marker_id)entry->identity);
    profile_frame frame = codes_frame(stacks->profile, &stacks->paths, entry->identity, entry->lasti);
    if (!frame && entry->code && codes_learn(stacks->target, entry->code, entry->identity))
        frame = codes_frame(stacks->profile, &stacks->paths, entry->identity, entry->lasti);
    return frame;
}

bool stacks_resolve(struct stacks *stacks, struct stack_copy *copy)
{
    for (uint32_t i = 0; i < copy->frames; i++) {
        if (!copy->entry[i].frame)
            copy->entry[i].frame = frame_of(stacks, &copy->entry[i]);
        if (!copy->entry[i].frame && !is_nameless(&copy->entry[i]))
            return false;
    }
    return true;
}

static uint32_t loop_flags(const struct profile *profile, profile_stack parent, profile_frame frame)
{
    uint32_t code = profile_frame_flags(profile, frame);
    uint32_t flags = profile_stack_flags(profile, parent) & STACK_IN_LOOP;
    if (code & CODE_LOOP)
        flags |= STACK_IN_LOOP;
    if (code & CODE_SELECTOR && profile_frame_flags(profile, profile_leaf(profile, parent)) & CODE_LOOP)
        flags |= STACK_IDLE;
    return flags;
}

static profile_stack push(struct stacks *stacks, profile_stack parent, profile_frame frame)
{
    profile_stack stack = profile_push(stacks->profile, parent, frame);
    uint32_t flags = frame ? loop_flags(stacks->profile, parent, frame) : 0;
    if (flags && stack != profile_overflow(stacks->profile))
        profile_set_stack_flags(stacks->profile, stack, flags);
    return stack;
}

profile_stack stacks_push_marker(struct stacks *stacks, profile_stack parent, const char *marker)
{
    return push(stacks, parent, profile_intern(stacks->profile, marker, strlen(marker), 0));
}

profile_stack stacks_push_exception(struct stacks *stacks, profile_stack stack, const struct stack_copy *copy)
{
    char marker[EXCEPTION_NAME_MAX + 16];
    static const char before[] = "[exception ";
    uint32_t length = sizeof before - 1;
    if (!copy->exception_length)
        return PROFILE_ROOT;
    memcpy(marker, before, length);
    memcpy(marker + length, copy->exception, copy->exception_length);
    length += copy->exception_length;
    marker[length++] = ']';
    return push(stacks, stack, profile_intern(stacks->profile, marker, length, 0));
}

profile_stack stacks_push_truncated(struct stacks *stacks, profile_stack root, uint32_t frames)
{
    char marker[32];
    log_format(marker, sizeof marker, "[truncated %u]", frames);
    return stacks_push_marker(stacks, root, marker);
}

profile_stack stacks_thread_marker(struct stacks *stacks, const char *marker, size_t length)
{
    return push(stacks, PROFILE_ROOT, profile_intern(stacks->profile, marker, length, CODE_MARKER));
}

profile_stack stacks_marker_of(struct stacks *stacks, profile_stack stack)
{
    const struct profile *profile = stacks->profile;
    profile_stack first = stack;
    for (; stack != PROFILE_ROOT; stack = profile_parent(profile, stack))
        first = stack;
    return first != PROFILE_ROOT && profile_frame_flags(profile, profile_leaf(profile, first)) & CODE_MARKER ? first : PROFILE_ROOT;
}

/* Without its twin. */
static profile_stack move_frames(struct stacks *stacks, profile_stack stack, profile_stack marker)
{
    const struct profile *profile = stacks->profile;
    profile_stack below = stacks_marker_of(stacks, stack), moved = marker;
    uint32_t frames = profile_depth(profile, stack) - profile_depth(profile, below);
    profile_frame *frame = below == marker || stack == profile_overflow(profile) ? NULL : mem_alloc((frames + 1) * sizeof *frame);
    if (!frame)
        return stack;
    for (uint32_t i = frames; i-- > 0; stack = profile_parent(profile, stack))
        frame[i] = profile_leaf(profile, stack);
    for (uint32_t i = 0; i < frames; i++)
        moved = push(stacks, moved, frame[i]);
    mem_free(frame);
    return moved;
}

profile_stack stacks_move(struct stacks *stacks, profile_stack stack, profile_stack marker)
{
    profile_stack twin = profile_twin(stacks->profile, stack), moved = move_frames(stacks, stack, marker);
    if (twin != PROFILE_ROOT && moved != stack && moved != profile_overflow(stacks->profile))
        profile_set_twin(stacks->profile, moved, move_frames(stacks, twin, marker));
    return moved;
}

static profile_stack push_labels(struct stacks *stacks, profile_stack root, const marker_id *label)
{
    for (uint32_t i = 0; i < labels_asked; i++)
        root = stacks_push_name(stacks, root, label[i]);
    return root;
}

profile_stack stacks_label(struct stacks *stacks, profile_stack stack, const marker_id *label)
{
    profile_stack marker = stacks_marker_of(stacks, stack), root = label ? push_labels(stacks, marker, label) : marker;
    return root == marker ? stack : stack == marker ? root : move_frames(stacks, stack, root);
}

static profile_frame known_frame(struct stacks *stacks, const struct stack_entry *entry)
{
    profile_frame frame = entry->frame ? entry->frame : frame_of(stacks, entry);
    if (frame)
        return frame;
    stacks->unreadable++;
    return stacks->unknown;
}

static profile_stack push_cut(struct stacks *stacks, const struct stack_copy *copy, profile_stack root)
{
    return copy->cut ? stacks_push_truncated(stacks, root, copy->cut) : root;
}

static profile_stack begin_stack(struct stacks *stacks, const struct stack_copy *copy)
{
    return push_cut(stacks, copy, push_labels(stacks, copy->root, copy->label));
}

static profile_stack push_entries(struct stacks *stacks, const struct stack_copy *copy, profile_stack stack, uint32_t from, uint32_t to,
                                  uint32_t without)
{
    for (uint32_t i = from; i-- > to;) {
        if (is_nameless(&copy->entry[i]))
            continue;
        profile_frame frame = known_frame(stacks, &copy->entry[i]);
        if (!(profile_frame_flags(stacks->profile, frame) & without))
            stack = push(stacks, stack, frame);
    }
    return stack;
}

profile_stack stacks_push(struct stacks *stacks, profile_stack parent, const struct stack_entry *entry)
{
    return push(stacks, parent, known_frame(stacks, entry));
}

profile_stack stacks_push_name(struct stacks *stacks, profile_stack parent, marker_id name)
{
    return name ? push(stacks, parent, markers_frame(stacks->profile, name)) : parent;
}

static profile_stack push_collector(struct stacks *stacks, const struct stack_copy *copy, profile_stack stack)
{
    return copy->collects ? stacks_push_marker(stacks, stack, "[gc]") : stack;
}

profile_stack stacks_intern(struct stacks *stacks, const struct stack_copy *copy)
{
    profile_stack stack = push_entries(stacks, copy, begin_stack(stacks, copy), copy->frames, copy->task_frames, 0);
    if (copy->cycle)
        stack = stacks_push_marker(stacks, stack, CYCLE);
    return push_collector(stacks, copy, push_entries(stacks, copy, stack, copy->task_frames, 0, 0));
}

profile_stack stacks_intern_task(struct stacks *stacks, const struct stack_copy *copy, profile_stack below)
{
    if (!copy->task)
        return PROFILE_ROOT;
    if (below != PROFILE_ROOT)
        below = stacks_label(stacks, below, copy->label);
    else
        below = push_entries(stacks, copy, begin_stack(stacks, copy), copy->frames, copy->task_frames, CODE_LOOP | CODE_HANDLE);
    if (copy->cycle)
        below = stacks_push_marker(stacks, below, CYCLE);
    return push_collector(stacks, copy, push_entries(stacks, copy, below, copy->task_frames, 0, CODE_LOOP | CODE_HANDLE));
}

/* Of a frame's text up to its line. */
static uint64_t hash_function(const char *text, size_t length)
{
    const char *line = memrchr(text, ':', length);
    return text_hash(text, line ? (size_t)(line - text) : length);
}

uint64_t stacks_began_with(struct stacks *stacks, profile_stack stack)
{
    struct profile *profile = stacks->profile;
    char text[TEXT_FRAME_MAX];
    profile_frame first = profile_leaf(profile, stack);
    for (; stack != PROFILE_ROOT; stack = profile_parent(profile, stack))
        if (!(profile_frame_flags(profile, profile_leaf(profile, stack)) & (CODE_THREAD | CODE_MARKER | CODE_LABEL)))
            first = profile_leaf(profile, stack);
    if (!first)
        return 0;
    return hash_function(text, profile_text(profile, profile_push(profile, PROFILE_ROOT, first), text, sizeof text));
}

profile_stack stacks_intern_driver(struct stacks *stacks, const struct stack_copy *copy, bool *sure)
{
    profile_stack stack = push_cut(stacks, copy, copy->root); /* whoever stands on it has labels of its own */
    *sure = !copy->cut;
    for (uint32_t i = copy->frames; i-- > 0;) {
        profile_frame frame = known_frame(stacks, &copy->entry[i]);
        if ((copy->task && i < copy->task_frames) || profile_frame_flags(stacks->profile, frame) & (CODE_LOOP | CODE_HANDLE))
            return stack;
        stack = push(stacks, stack, frame);
    }
    *sure = false;
    return stack;
}
