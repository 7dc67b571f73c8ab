/* SPDX-License-Identifier: MIT
 *
 * code: a code object is read in one guarded copy of its middle, from ob_type to
 * the last pointer of interest; a location table is read byte by byte through a
 * small window, so that its length does not matter. */
#include "sampler/cpython/code.h"

#include <string.h> /* memcpy */

#include "hooks/guard.h"
#include "sampler/cpython/objects.h"

#define SPAN_MAX 192        /* bytes of a code object copied at once; layout.c checks the offsets */
#define UNIT 2              /* bytes of a code unit */
#define UNITS_MAX (1 << 28) /* a larger ob_size is garbage */
#define ADDRESS_LOWEST 4096u
#define NOT_HASHED UINT64_MAX /* in a str: nobody has asked for its hash yet */
#define NAME_WORDS 8          /* of a name's characters that stand in for its hash */

/* Objects/locations.md: first byte of an entry is 1cccclll. */
#define ENTRY_MARK 0x80
#define ENTRY_CODE(byte) (((byte) >> 3) & 15)
#define ENTRY_UNITS(byte) (((byte) & 7) + 1)
#define CODE_ONE_LINE_0 10 /* 10, 11, 12: line + 0, 1, 2 */
#define CODE_ONE_LINE_2 12
#define CODE_NO_COLUMNS 13
#define CODE_LONG 14
#define CODE_NONE 15

#define WINDOW 128
#define VARINT_SHIFT_MAX 30 /* six groups of six bits; a longer one is malformed */

static uint64_t word_at(const unsigned char *span, int32_t from, int32_t offset)
{
    uint64_t word;
    memcpy(&word, span + (offset - from), sizeof word);
    return word;
}

static uint32_t half_at(const unsigned char *span, int32_t from, int32_t offset)
{
    uint32_t half;
    memcpy(&half, span + (offset - from), sizeof half);
    return half;
}

/* splitmix64's finaliser: every bit of the input moves half of the output. */
static uint64_t finish(uint64_t hash)
{
    hash = (hash ^ hash >> 30) * 0xbf58476d1ce4e5b9u;
    hash = (hash ^ hash >> 27) * 0x94d049bb133111ebu;
    return hash ^ hash >> 31;
}

/* The characters of a name that was never hashed (code.replace with a fresh one), as
 * far as they are looked at. */
static bool name_word(const struct py_target *target, uintptr_t name, uint64_t *word)
{
    uint64_t characters[NAME_WORDS] = {0};
    struct py_str str;
    if (!objects_str(target, name, &str))
        return false;
    size_t bytes = (size_t)str.length * str.kind;
    if (!guard_copy(characters, str.data, bytes < sizeof characters ? bytes : sizeof characters))
        return false;
    *word = bytes;
    for (size_t i = 0; i < NAME_WORDS; i++)
        *word = finish(*word ^ characters[i]);
    return true;
}

/* Where code objects carry no version of their own, the qualname's hash stands
 * in: a hash of its characters, kept in the str once somebody asked for it. */
static bool content_word(const struct py_target *target, const struct py_code *code, uint64_t *word)
{
    if (target->layout.code_version != LAYOUT_NONE) {
        *word = code->version;
        return true;
    }
    return guard_word(code->qualname + (uintptr_t)target->layout.str_hash, word) && (*word != NOT_HASHED || name_word(target, code->qualname, word));
}

static bool identify(const struct py_target *target, struct py_code *code)
{
    uint64_t content, hash;
    if (!content_word(target, code, &content))
        return false;
    /* A sum of products with odd constants: they do not wait for each other. */
    hash = code->address * 0x9e3779b97f4a7c15u + content * 0xd1342543de82ef95u + code->filename * 0xaf251af3b0f025b5u +
           code->qualname * 0xc2b2ae3d27d4eb4fu + code->linetable * 0x165667b19e3779f9u +
           (uint32_t)code->firstlineno * 0x2545f4914f6cdd1du;
    hash = finish(hash);
    code->identity = hash ? hash : 1;
    return true;
}

static bool may_be_object(uintptr_t address)
{
    return address >= ADDRESS_LOWEST && address % 8 == 0;
}

static void take_fields(const struct layout *layout, const unsigned char *span, uintptr_t address, struct py_code *code)
{
    int32_t from = layout->object_type;

    code->address = address;
    code->filename = word_at(span, from, layout->code_filename);
    code->name = word_at(span, from, layout->code_name);
    code->qualname = word_at(span, from, layout->code_qualname);
    code->linetable = word_at(span, from, layout->code_linetable);
    code->flags = half_at(span, from, layout->code_flags);
    code->firstlineno = (int32_t)half_at(span, from, layout->code_firstlineno);
    code->version = layout->code_version == LAYOUT_NONE ? 0 : half_at(span, from, layout->code_version);
    code->adaptive = address + (uintptr_t)layout->code_adaptive;
}

bool code_read(const struct py_target *target, uintptr_t address, struct py_code *code)
{
    const struct layout *layout = &target->layout;
    unsigned char span[SPAN_MAX];
    int32_t from = layout->object_type;
    size_t size = (size_t)(layout->code_linetable + 8 - from); /* the last of the pointers, in every version */

    if (!may_be_object(address) || size > sizeof span || !guard_copy(span, address + (uintptr_t)from, size))
        return false;
    if (word_at(span, from, layout->object_type) != target->code_type)
        return false;
    uint64_t units = word_at(span, from, layout->var_size);
    if (units == 0 || units > UNITS_MAX)
        return false;
    take_fields(layout, span, address, code);
    code->units = (int32_t)units;
    if (!may_be_object(code->filename) || !may_be_object(code->name) || !may_be_object(code->qualname) ||
        !may_be_object(code->linetable))
        return false;
    return identify(target, code);
}

/* A frame that was only just pushed stands at (3.13+) or before the first unit. */
bool code_offset(const struct py_target *target, const struct py_code *code, uintptr_t instr, int32_t *lasti)
{
    intptr_t offset = (intptr_t)(instr - code->adaptive);
    intptr_t lowest = target->layout.instr_is_previous ? -UNIT : 0;

    if (offset < lowest || offset > (intptr_t)code->units * UNIT || offset % UNIT != 0)
        return false;
    *lasti = offset < 0 ? -1 : (int32_t)offset;
    return true;
}

bool code_is_init_shim(const struct py_target *target, const struct py_code *code)
{
    return (code->flags & target->layout.code_shim_flag) != 0;
}

/* Bytes of a location table: [at, have) of window are unread, `left` more bytes
 * follow at address. For a table in memory of ours, left is 0 from the start. */
struct table {
    const uint8_t *window;
    uint8_t *buffer;
    size_t at, have, left;
    uintptr_t address;
};

static bool refill(struct table *table)
{
    size_t size = table->left < WINDOW ? table->left : WINDOW;
    if (!size || !guard_copy(table->buffer, table->address, size))
        return false;
    table->address += size;
    table->left -= size;
    table->at = 0;
    table->have = size;
    return true;
}

static bool peek(struct table *table, uint8_t *byte)
{
    if (table->at == table->have && !refill(table))
        return false;
    *byte = table->window[table->at];
    return true;
}

/* Six bits a byte, least significant first, bit 6: more follow. */
static bool read_varint(struct table *table, uint32_t *value)
{
    uint8_t byte;
    *value = 0;
    for (unsigned shift = 0; shift <= VARINT_SHIFT_MAX; shift += 6) {
        if (!peek(table, &byte) || byte & ENTRY_MARK)
            return false;
        table->at++;
        *value |= (uint32_t)(byte & 63) << shift;
        if (!(byte & 64))
            return true;
    }
    return false;
}

/* By how much an entry moves the line. Unsigned, so that a malformed table
 * wraps instead of overflowing. */
static bool line_step(struct table *table, int code, uint32_t *step)
{
    *step = 0;
    if (code >= CODE_ONE_LINE_0 && code <= CODE_ONE_LINE_2)
        *step = (uint32_t)(code - CODE_ONE_LINE_0);
    if (code != CODE_NO_COLUMNS && code != CODE_LONG)
        return true;
    uint32_t zigzag;
    if (!read_varint(table, &zigzag))
        return false;
    *step = zigzag & 1 ? 0u - (zigzag >> 1) : zigzag >> 1;
    return true;
}

/* The rest of an entry has no byte with bit 7. */
static void skip_columns(struct table *table)
{
    uint8_t byte;
    while (peek(table, &byte) && !(byte & ENTRY_MARK))
        table->at++;
}

static int32_t find_line(struct table *table, int32_t firstlineno, int32_t lasti)
{
    uint32_t line = (uint32_t)firstlineno, step;
    int64_t covered = 0;
    uint8_t head;

    while (peek(table, &head) && head & ENTRY_MARK) {
        table->at++;
        if (!line_step(table, ENTRY_CODE(head), &step))
            return 0;
        line += step;
        covered += 2 * ENTRY_UNITS(head);
        if (lasti < covered)
            return ENTRY_CODE(head) == CODE_NONE || (int32_t)line < 0 ? 0 : (int32_t)line;
        skip_columns(table);
    }
    return 0;
}

int32_t code_line(const uint8_t *bytes, size_t length, int32_t firstlineno, int32_t lasti)
{
    struct table table = {.window = bytes, .have = length};
    return lasti < 0 ? firstlineno : find_line(&table, firstlineno, lasti);
}

int32_t code_line_in_place(const struct py_target *target, const struct py_code *code, int32_t lasti)
{
    uint8_t buffer[WINDOW];
    struct py_bytes bytes;

    if (lasti < 0)
        return code->firstlineno;
    if (!objects_bytes(target, code->linetable, &bytes))
        return 0;
    struct table table = {.window = buffer, .buffer = buffer, .left = bytes.length, .address = bytes.data};
    return find_line(&table, code->firstlineno, lasti);
}
