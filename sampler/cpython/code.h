/* SPDX-License-Identifier: MIT
 *
 * code: code objects and their location tables.
 * Runs in: [handler] [sampler]. No allocation, bounded.
 *
 * An address is not an identity: a code object is freed and another made at the
 * same address at once. identity is a 64-bit hash (never 0) over the address,
 * co_version (unique for each code object made, 3.12+), the pointers to
 * filename, qualname and linetable, the first line, and on 3.11, which has no
 * version at creation, the cached hash of the qualname (a content hash).
 */
#ifndef APROF_SAMPLER_CPYTHON_CODE_H
#define APROF_SAMPLER_CPYTHON_CODE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "sampler/cpython/target.h"

struct py_code {
    uintptr_t address;
    uint64_t identity;
    uintptr_t filename, name, qualname, linetable; /* objects */
    uintptr_t adaptive; /* address of the first code unit */
    int32_t units;      /* ob_size: code units, caches included */
    int32_t firstlineno;
    uint32_t flags;     /* co_flags */
    uint32_t version;
};

/* False: unreadable or not a code object (ob_type is not PyCode_Type) or absurd values. */
bool code_read(const struct py_target *target, uintptr_t address, struct py_code *code);

/* The byte offset of an instruction, as a frame points to it (some versions: to the one
 * before the next); -1: a frame that was only just made. False: it is not in this code. */
bool code_offset(const struct py_target *target, const struct py_code *code, uintptr_t instr, int32_t *lasti);

/* The shim that 3.13+ puts under a specialised class call: a truncated static
 * code object (file "__init__", CO_NO_MONITORING_EVENTS 0x2000000). Not shown;
 * nothing beyond the fields above may be read of it. */
bool code_is_init_shim(const struct py_target *target, const struct py_code *code);

/* The line of the code unit at byte offset lasti, by a location table copied
 * into memory of ours. Entries as in Objects/locations.md (same for 3.11-3.15).
 * 0: the table gives no line there, or is malformed. lasti < 0: firstlineno. */
int32_t code_line(const uint8_t *table, size_t length, int32_t firstlineno, int32_t lasti);

/* The same, reading the table in place in small guarded pieces (for tables too
 * long to copy). 0 also when unreadable. */
int32_t code_line_in_place(const struct py_target *target, const struct py_code *code, int32_t lasti);

#endif
