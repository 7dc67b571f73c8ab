/* SPDX-License-Identifier: MIT
 *
 * objects: str and bytes from memory. The heads are small, so each is one
 * guarded copy; the type is compared before anything is believed. */
#include "sampler/cpython/objects.h"

#include <string.h> /* memcpy */

#include "hooks/guard.h"
#include "sampler/text.h"

#define ADDRESS_LOWEST 4096u /* the zero page is never an object */
#define LENGTH_MAX (1u << 28)
#define HEAD_MAX 64          /* bytes of an object's head that are read at once */

/* Include/cpython/unicodeobject.h: struct { interned:2, kind:3, compact:1, ascii:1 }. */
#define STATE_KIND(state) (((state) >> 2) & 7)
#define STATE_COMPACT(state) ((state) >> 5 & 1)
#define STATE_ASCII(state) ((state) >> 6 & 1)

#define NAME_CHARACTERS_MAX 1024u
#define FOLDED_AT_ONCE 32u
#define FLAG_LONG_SUBCLASS (1ul << 24)
#define FLAG_BYTES_SUBCLASS (1ul << 27)
#define FLAG_UNICODE_SUBCLASS (1ul << 28)

static bool may_be_object(uintptr_t address)
{
    return address >= ADDRESS_LOWEST && address % 8 == 0;
}

static uint64_t word_at(const unsigned char *head, int32_t offset)
{
    uint64_t word;
    memcpy(&word, head + offset, sizeof word);
    return word;
}

/* Exactly the type, or one whose flags say that it derives from it. */
static bool type_is(const struct py_target *target, uintptr_t found, uintptr_t type, uint64_t subclass_flag)
{
    uint64_t flags;
    if (found == type)
        return true;
    return may_be_object(found) && guard_word(found + (uintptr_t)target->layout.type_flags, &flags) && (flags & subclass_flag);
}

bool objects_is(const struct py_target *target, uintptr_t object, uintptr_t type)
{
    uint64_t found;
    return may_be_object(object) && guard_word(object + (uintptr_t)target->layout.object_type, &found) && found == type;
}

/* Where the characters are: behind the head, or (instances of subclasses) where
 * a pointer says. 0: not readable. */
static uintptr_t str_data(const struct layout *layout, uintptr_t object, uint32_t state)
{
    uint64_t data;
    if (STATE_COMPACT(state))
        return object + (uintptr_t)(STATE_ASCII(state) ? layout->str_ascii_data : layout->str_compact_data);
    return guard_word(object + (uintptr_t)layout->str_legacy_data, &data) ? (uintptr_t)data : 0;
}

bool objects_str(const struct py_target *target, uintptr_t object, struct py_str *str)
{
    const struct layout *layout = &target->layout;
    unsigned char head[HEAD_MAX];
    size_t size = (size_t)layout->str_state + sizeof(uint32_t);
    uint32_t state;

    if (!may_be_object(object) || size > sizeof head || !guard_copy(head, object, size))
        return false;
    if (!type_is(target, word_at(head, layout->object_type), target->unicode_type, FLAG_UNICODE_SUBCLASS))
        return false;
    uint64_t length = word_at(head, layout->str_length);
    memcpy(&state, head + layout->str_state, sizeof state);
    uint32_t kind = STATE_KIND(state); /* 0: 3.11's legacy strings that are not ready */
    if (length > LENGTH_MAX || (kind != 1 && kind != 2 && kind != 4) || (STATE_ASCII(state) && kind != 1))
        return false;

    str->length = (uint32_t)length;
    str->kind = (uint8_t)kind;
    str->ascii = STATE_ASCII(state);
    str->data = str_data(layout, object, state);
    return str->data >= ADDRESS_LOWEST;
}

bool objects_bytes(const struct py_target *target, uintptr_t object, struct py_bytes *bytes)
{
    const struct layout *layout = &target->layout;
    unsigned char head[HEAD_MAX];
    size_t size = (size_t)layout->var_size + sizeof(uint64_t);

    if (!may_be_object(object) || size > sizeof head || !guard_copy(head, object, size))
        return false;
    if (!type_is(target, word_at(head, layout->object_type), target->bytes_type, FLAG_BYTES_SUBCLASS))
        return false;
    uint64_t length = word_at(head, layout->var_size);
    if (length > LENGTH_MAX)
        return false;
    bytes->length = (uint32_t)length;
    bytes->data = object + (uintptr_t)layout->bytes_data;
    return true;
}

uint32_t objects_text(const struct py_str *str, char *name, uint32_t size)
{
    unsigned char characters[NAME_CHARACTERS_MAX * 4];
    uint32_t length = str->length < NAME_CHARACTERS_MAX ? str->length : NAME_CHARACTERS_MAX;
    if (!guard_copy(characters, str->data, (size_t)length * str->kind))
        return 0;
    return (uint32_t)text_name(name, size, characters, length, str->kind);
}

uint32_t objects_short(const struct py_str *str, char *name, bool fold)
{
    unsigned char characters[FOLDED_AT_ONCE * 4]; /* a handler's stack is small */
    uint32_t length = str->length < NAME_CHARACTERS_MAX ? str->length : NAME_CHARACTERS_MAX;
    struct text_folding folding;
    text_fold_begin(&folding, name, fold);
    for (uint32_t from = 0; from < length; from += FOLDED_AT_ONCE) {
        uint32_t some = length - from < FOLDED_AT_ONCE ? length - from : FOLDED_AT_ONCE;
        if (!guard_copy(characters, str->data + (uintptr_t)from * str->kind, (size_t)some * str->kind))
            return 0;
        text_fold_more(&folding, characters, some, str->kind);
    }
    return (uint32_t)text_fold_end(&folding);
}

/* How many digits it has: 3.12+ in a tag with its sign, before in ob_size, which is
 * negative for a negative int. */
static bool read_integer(const struct py_target *target, uintptr_t object, uint32_t most, uint64_t *magnitude, bool *negative)
{
    const struct layout *layout = &target->layout;
    uint32_t digit[3] = {0, 0, 0};
    uint64_t type, size;
    if (!may_be_object(object) || !guard_word(object + (uintptr_t)layout->object_type, &type) || !type_is(target, type, UINTPTR_MAX /* none */, FLAG_LONG_SUBCLASS) ||
        !guard_word(object + (uintptr_t)layout->long_size, &size))
        return false;
    *negative = layout->long_is_tagged ? (size & 3) == 2 : (int64_t)size < 0;
    uint64_t digits = layout->long_is_tagged ? size >> 3 : *negative ? -size : size;
    if (digits > most || !guard_copy(digit, object + (uintptr_t)layout->long_digits, digits * sizeof *digit) || digit[2] > 15)
        return false;
    *magnitude = (uint64_t)digit[2] << 60 | (uint64_t)digit[1] << 30 | digit[0];
    return true;
}

bool objects_integer(const struct py_target *target, uintptr_t object, uint64_t *magnitude, bool *negative)
{
    return read_integer(target, object, 3, magnitude, negative);
}

bool objects_number(const struct py_target *target, uintptr_t object, uint64_t *number)
{
    bool negative;
    return read_integer(target, object, 2, number, &negative) && !negative;
}
