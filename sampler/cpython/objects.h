/* SPDX-License-Identifier: MIT
 *
 * objects: str and bytes of the interpreter, read through hooks/guard.h.
 * Runs in: [handler] [sampler]. No allocation, bounded.
 *
 * Source of the facts: Include/cpython/unicodeobject.h (state bits: interned 0-1
 * [3.11: 0-1 of "interned:2"], kind 2-4, compact 5, ascii 6), bytesobject.h.
 */
#ifndef APROF_SAMPLER_CPYTHON_OBJECTS_H
#define APROF_SAMPLER_CPYTHON_OBJECTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "hooks/guard.h"
#include "sampler/cpython/target.h"

/* A word of what is at base; false: nothing can be there, or it is not readable. */
static inline bool objects_word(uintptr_t base, int32_t offset, uintptr_t *value)
{
    uint64_t word;
    if (base == 0 || base % sizeof word != 0 || !guard_word(base + (uintptr_t)(intptr_t)offset, &word))
        return false;
    *value = (uintptr_t)word;
    return true;
}

/* The same of what may stand anywhere, for a pointer: 0 if it cannot be read. */
static inline uintptr_t objects_pointer(uintptr_t base, int32_t offset)
{
    uint64_t word;
    return base >= 4096 && guard_word(base + (uintptr_t)(intptr_t)offset, &word) ? (uintptr_t)word : 0;
}

/* A str as found: where its characters are and how wide they are. */
struct py_str {
    uintptr_t data;
    uint32_t length; /* code points */
    uint8_t kind;    /* bytes a character: 1 (Latin-1), 2 (UCS-2), 4 (UCS-4) */
    bool ascii;
};

struct py_bytes {
    uintptr_t data;
    uint32_t length;
};

/* False when the object is not a str (subclasses count) or not readable, or
 * longer than 2^28 characters (then it is not a str but garbage). */
bool objects_str(const struct py_target *target, uintptr_t object, struct py_str *str);
bool objects_bytes(const struct py_target *target, uintptr_t object, struct py_bytes *bytes);

/* The str's characters as a name, escaped as sampler/text.h does; of a very long one the
 * beginning. The length; 0: not readable, or size is too small (TEXT_NAME_MAX is enough). */
uint32_t objects_text(const struct py_str *str, char *name, uint32_t size);

/* The same, shorter (text_fold_begin): at most TEXT_FOLDED_MAX bytes. 0: not readable, or empty. */
uint32_t objects_short(const struct py_str *str, char *name, bool fold);

/* An int that is not negative and has two digits of 30 bits at most. */
bool objects_number(const struct py_target *target, uintptr_t object, uint64_t *number);
/* One of at most 64 bits beside its sign. */
bool objects_integer(const struct py_target *target, uintptr_t object, uint64_t *magnitude, bool *negative);

/* Whether object's ob_type is exactly type. */
bool objects_is(const struct py_target *target, uintptr_t object, uintptr_t type);

#endif
