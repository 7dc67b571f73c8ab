/* SPDX-License-Identifier: MIT
 *
 * layout: chooses the table and corrects it by what the interpreter itself says.
 * The one thing that neither tells is where the lock of the pending calls is: it
 * moved between patch releases of 3.13, and is found by what stands beside it. */
#include "sampler/cpython/layout.h"

#include <errno.h>
#include <stddef.h>
#include <string.h> /* memcpy, memcmp */

#include "hooks/guard.h"
#include "sampler/cpython/layout_tables.h"

#define MINOR_FIRST 11
#define MINOR_LAST 15
#define MINOR_DEBUG_OFFSETS 13 /* the first with _Py_DebugOffsets */

/* The head of _Py_DebugOffsets, the same in every version. */
#define DEBUG_COOKIE "xdebugpy"
#define DEBUG_VERSION 8
#define DEBUG_FREE_THREADED 16

/* The interpreter state is the largest struct that an offset leads into (226 KB
 * in 3.15, 383 KB in 3.12): a larger value is not an offset. */
#define OFFSET_MAX (1 << 20)
#define FRAME_SIZE_MAX 128 /* frames.c reads a frame into a buffer of this size */
#define CODE_SPAN_MAX 192  /* code.c likewise */
#define GEN_SPAN_MAX 128   /* coros.c likewise, from a generator's state to the end of its frame's head */
#define HEAD_SPAN_MAX 256  /* no member of a container or generator is beyond */
#define TYPE_SPAN_MAX 2048 /* of a type */
#define THREAD_SPAN_MAX 4096

#define RELEASE_LEVEL(version) (((version) >> 4) & 0xf)
#define RELEASE_FINAL 0xf

/* struct _pending_calls, 3.13+: {PyThreadState *handling_thread; PyMutex mutex;
 * int32_t npending, max, maxloop; calls[300]; int first, next}. The main
 * thread's has max 32 and maxloop 0 from static initialisation on. */
#define PENDING_MAX 32
#define PENDING_MAX_WORD 8    /* from the mutex to max and maxloop */
#define PENDING_QUEUE_WORD (16 + 300 * 24) /* to first and next */
#define PENDING_SEARCH 20480  /* bytes to either side; a debug build is 16 KB off a release build */

struct tables {
    const struct layout *release, *debug;
    const struct layout_debug_row *rows;
    const struct layout_debug_places *places;
};

static const struct tables tables[] = {
    {&layout_3_11, &layout_3_11_debug, NULL, NULL},
    {&layout_3_12, &layout_3_12_debug, NULL, NULL},
    {&layout_3_13, &layout_3_13_debug, layout_3_13_debug_rows, &layout_3_13_debug_places},
    {&layout_3_14, &layout_3_14_debug, layout_3_14_debug_rows, &layout_3_14_debug_places},
    {&layout_3_15, &layout_3_15_debug, layout_3_15_debug_rows, &layout_3_15_debug_places},
};

const struct layout *layout_find(int minor, bool debug_build)
{
    if (minor < MINOR_FIRST || minor > MINOR_LAST)
        return NULL;
    const struct tables *found = &tables[minor - MINOR_FIRST];
    return debug_build ? found->debug : found->release;
}

/* 0 when this is the debug offsets table of a build that we know. */
static int check_head(uintptr_t runtime, int minor)
{
    char cookie[8];
    uint64_t version, free_threaded;

    if (!guard_copy(cookie, runtime, sizeof cookie) || memcmp(cookie, DEBUG_COOKIE, sizeof cookie) != 0)
        return -EINVAL;
    if (!guard_word(runtime + DEBUG_VERSION, &version) || !guard_word(runtime + DEBUG_FREE_THREADED, &free_threaded))
        return -EINVAL;
    if (version >> 16 != (uint64_t)(0x300 + minor) || RELEASE_LEVEL(version) != RELEASE_FINAL)
        return -EINVAL;
    return free_threaded ? -ENOTSUP : 0;
}

static bool read_offset(uintptr_t runtime, uint16_t at, int32_t *value)
{
    uint64_t word;
    if (!guard_word(runtime + at, &word) || word > OFFSET_MAX)
        return false;
    *value = (int32_t)word;
    return true;
}

static bool take_rows(struct layout *layout, uintptr_t runtime, const struct layout_debug_row *rows)
{
    for (const struct layout_debug_row *row = rows; row->at; row++) {
        int32_t value;
        if (!read_offset(runtime, row->at, &value))
            return false;
        memcpy((char *)layout + row->member, &value, sizeof value);
    }
    return true;
}

static bool take_places(struct layout *layout, uintptr_t runtime, const struct layout_debug_places *places)
{
    int32_t gil, locked, holder, gc, collecting, frame;

    if (!read_offset(runtime, places->gil, &gil) || !read_offset(runtime, places->gil_locked, &locked) ||
        !read_offset(runtime, places->gil_holder, &holder) || !read_offset(runtime, places->gc, &gc) ||
        !read_offset(runtime, places->gc_collecting, &collecting))
        return false;
    layout->gil_locked = locked - gil;
    layout->gil_last_holder = holder - gil;
    layout->gil_switches = layout->gil_locked + 8; /* its neighbour */
    layout->interp_gc_collecting = gc + collecting;
    if (places->gc_frame && !read_offset(runtime, places->gc_frame, &frame))
        return false;
    layout->interp_gc_frame = places->gc_frame ? gc + frame : LAYOUT_NONE;
    layout->interp_gc_lists = places->gc_lists && collecting == places->gc_lists_if ? gc + places->gc_lists : LAYOUT_NONE;
    /* Neighbours of what the table names, in every version that has it. */
    layout->runtime_initialized = layout->runtime_finalizing - 8;
    layout->runtime_interpreters_main = layout->runtime_interpreters_head + 8;
    return true;
}

static bool fits(int32_t offset, int32_t size, int32_t whole)
{
    return offset >= 0 && offset % size == 0 && offset + size <= whole;
}

/* Readers copy frames, code objects and the heads of strs and generators whole into
 * buffers of their own, and index those by these offsets. Of a frame in a generator
 * only what is before its owner's word comes along. */
static bool frames_are_plausible(const struct layout *layout)
{
    int32_t whole = (layout->frame_owner + 8) & ~7;
    return layout->frame_size > 0 && layout->frame_size <= FRAME_SIZE_MAX && fits(layout->frame_owner, 1, layout->frame_size) &&
           whole <= layout->frame_size && fits(layout->frame_executable, 8, whole) && fits(layout->frame_previous, 8, whole) &&
           fits(layout->frame_instr, 8, whole) && fits(layout->frame_stacktop, 8, whole) &&
           fits(layout->gen_frame, 8, HEAD_SPAN_MAX) && fits(layout->gen_state, 1, layout->gen_frame) &&
           layout->gen_frame + whole - (layout->gen_state & ~7) <= GEN_SPAN_MAX;
}

/* What is wanted of a code object lies between its type and its co_linetable. */
static bool is_of_code(const struct layout *layout, int32_t offset, int32_t size)
{
    return offset > layout->object_type && fits(offset, size, layout->code_linetable + 8);
}

static bool codes_are_plausible(const struct layout *layout)
{
    return fits(layout->object_type, 8, HEAD_SPAN_MAX) && fits(layout->code_linetable, 8, CODE_SPAN_MAX) && is_of_code(layout, layout->var_size, 8) &&
           is_of_code(layout, layout->code_filename, 8) && is_of_code(layout, layout->code_name, 8) &&
           is_of_code(layout, layout->code_qualname, 8) && is_of_code(layout, layout->code_linetable, 8) &&
           is_of_code(layout, layout->code_firstlineno, 4) && is_of_code(layout, layout->code_flags, 4) &&
           is_of_code(layout, layout->code_version, 4);
}

static bool strs_are_plausible(const struct layout *layout)
{
    return fits(layout->str_state, 4, HEAD_SPAN_MAX) && fits(layout->object_type, 8, layout->str_state) &&
           fits(layout->str_length, 8, layout->str_state);
}

/* Words that are read one by one, of objects. */
static bool objects_are_plausible(const struct layout *layout)
{
    return fits(layout->code_localsplusnames, 8, CODE_SPAN_MAX) && fits(layout->code_localspluskinds, 8, CODE_SPAN_MAX) &&
           fits(layout->tuple_items, 8, HEAD_SPAN_MAX) && fits(layout->list_items, 8, HEAD_SPAN_MAX) &&
           fits(layout->dict_keys, 8, HEAD_SPAN_MAX) && fits(layout->dict_values, 8, HEAD_SPAN_MAX) &&
           fits(layout->set_mask, 8, HEAD_SPAN_MAX) && fits(layout->set_table, 8, HEAD_SPAN_MAX) &&
           fits(layout->long_size, 8, HEAD_SPAN_MAX) && fits(layout->long_digits, 4, HEAD_SPAN_MAX) &&
           layout->gil_locked >= 0 && layout->gil_last_holder >= 0 && fits(layout->type_basicsize, 8, TYPE_SPAN_MAX) &&
           fits(layout->type_dictoffset, 8, TYPE_SPAN_MAX) && fits(layout->type_cached_keys, 8, TYPE_SPAN_MAX) &&
           fits(layout->thread_running_loop, 8, THREAD_SPAN_MAX);
}

static bool is_pending_lock(uintptr_t mutex)
{
    uint64_t state, bounds, queue;

    if (!guard_word(mutex + PENDING_MAX_WORD, &bounds) || bounds != PENDING_MAX)
        return false;
    if (!guard_word(mutex, &state) || (uint32_t)state > 3 || state >> 32 > PENDING_MAX)
        return false;
    return guard_word(mutex + PENDING_QUEUE_WORD, &queue) && (uint32_t)queue < PENDING_MAX && queue >> 32 < PENDING_MAX;
}

/* The place nearest to the table's that looks like the lock, but not within
 * _Py_DebugOffsets, which is full of such small numbers. */
static int32_t find_pending_lock(uintptr_t runtime, int32_t expected, int32_t lowest)
{
    for (int32_t away = 0; away <= PENDING_SEARCH; away += 8) {
        if (is_pending_lock(runtime + (uintptr_t)(expected + away)))
            return expected + away;
        if (expected - away > lowest && is_pending_lock(runtime + (uintptr_t)(expected - away)))
            return expected - away;
    }
    return LAYOUT_NONE;
}

int layout_read_debug_offsets(struct layout *layout, uintptr_t runtime)
{
    if (layout->minor < MINOR_DEBUG_OFFSETS)
        return 0;
    if (layout->minor > MINOR_LAST)
        return -EINVAL;
    int error = check_head(runtime, layout->minor);
    if (error)
        return error;

    const struct tables *own = &tables[layout->minor - MINOR_FIRST];
    struct layout read = *layout;
    if (!take_rows(&read, runtime, own->rows) || !take_places(&read, runtime, own->places) || !frames_are_plausible(&read) ||
        !codes_are_plausible(&read) || !strs_are_plausible(&read) || !objects_are_plausible(&read))
        return -EINVAL;
    read.runtime_pending_lock = find_pending_lock(runtime, read.runtime_pending_lock, read.runtime_interpreters_main);
    *layout = read;
    return 0;
}
