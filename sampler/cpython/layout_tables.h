/* SPDX-License-Identifier: MIT
 *
 * layout_tables: what scripts/gen_offsets prints, for sampler/cpython/layout.c
 * alone. One pair of tables a minor version; from 3.13 on also where
 * _Py_DebugOffsets keeps each value, which differs between minors.
 */
#ifndef APROF_SAMPLER_CPYTHON_LAYOUT_TABLES_H
#define APROF_SAMPLER_CPYTHON_LAYOUT_TABLES_H

#include "sampler/cpython/layout.h"

/* The word at byte `at` of _Py_DebugOffsets goes to the int32_t at `member` of
 * struct layout. at 0 (the cookie) ends a list. */
struct layout_debug_row {
    uint16_t at, member;
};

/* Words of _Py_DebugOffsets that are not a layout's member as they stand. */
struct layout_debug_places {
    uint16_t gil, gil_locked, gil_holder; /* offsets in the interpreter */
    uint16_t gc, gc_collecting, gc_frame; /* in the interpreter, and in that; gc_frame 0: there is none */
    uint16_t gc_lists, gc_lists_if;       /* no offsets of offsets: where the lists are in that, which no table of the interpreter's
                                             says (0: nowhere), if gc_collecting is there as in the headers */
};

extern const struct layout layout_3_11, layout_3_11_debug;
extern const struct layout layout_3_12, layout_3_12_debug;
extern const struct layout layout_3_13, layout_3_13_debug;
extern const struct layout layout_3_14, layout_3_14_debug;
extern const struct layout layout_3_15, layout_3_15_debug;

extern const struct layout_debug_row layout_3_13_debug_rows[], layout_3_14_debug_rows[], layout_3_15_debug_rows[];
extern const struct layout_debug_places layout_3_13_debug_places, layout_3_14_debug_places, layout_3_15_debug_places;

#endif
