/* SPDX-License-Identifier: MIT
 *
 * fake_python: makes objects of an interpreter in fake memory, laid out by the
 * table of the version under test. Every object lies alone, at an address of its
 * own, so that a reader which goes beyond it fails.
 */
#ifndef APROF_TESTS_UNIT_FAKE_PYTHON_H
#define APROF_TESTS_UNIT_FAKE_PYTHON_H

#include <check.h>
#include <stdint.h>
#include <stdlib.h> /* calloc */
#include <string.h> /* memcpy */

#include "sampler/cpython/target.h"
#include "tests/unit/fake_memory.h"

#define FIRST_MINOR 11
#define AFTER_LAST_MINOR 16

#define RUNTIME_AT 0x10000000u
#define CODE_TYPE_AT 0x20000000u
#define UNICODE_TYPE_AT 0x20001000u
#define BYTES_TYPE_AT 0x20002000u
#define OTHER_TYPE_AT 0x20003000u
#define STR_SUBTYPE_AT 0x20004000u

struct fake { /* bytes that become memory at `address` once fake_place is called */
    uintptr_t address;
    size_t size;
    unsigned char *bytes;
};

static inline struct fake fake_new(uintptr_t address, size_t size)
{
    return (struct fake){address, size, calloc(1, size)};
}

static inline void fake_put(struct fake *fake, int32_t offset, const void *value, size_t size)
{
    ck_assert_int_ge(offset, 0);
    ck_assert_uint_le((size_t)offset + size, fake->size);
    memcpy(fake->bytes + offset, value, size);
}

static inline void fake_put_word(struct fake *fake, int32_t offset, uint64_t value)
{
    fake_put(fake, offset, &value, sizeof value);
}

static inline void fake_put_int(struct fake *fake, int32_t offset, uint32_t value)
{
    fake_put(fake, offset, &value, sizeof value);
}

static inline void fake_put_byte(struct fake *fake, int32_t offset, uint8_t value)
{
    fake_put(fake, offset, &value, 1);
}

/* The bytes stay the caller's to change only before this. */
static inline uintptr_t fake_place(struct fake *fake)
{
    fake_map(fake->address, fake->bytes, fake->size);
    return fake->address;
}

static inline uintptr_t fake_type(const struct layout *layout, uintptr_t address, uint64_t flags)
{
    struct fake type = fake_new(address, 256);
    fake_put_word(&type, layout->type_flags, flags);
    return fake_place(&type);
}

static inline struct py_target fake_target(int minor)
{
    struct py_target target = {.runtime = RUNTIME_AT, .code_type = CODE_TYPE_AT, .unicode_type = UNICODE_TYPE_AT,
                               .bytes_type = BYTES_TYPE_AT, .version = 0x030000f0u | (uint32_t)minor << 16};
    target.layout = *layout_find(minor, false);
    fake_type(&target.layout, CODE_TYPE_AT, 0);
    fake_type(&target.layout, UNICODE_TYPE_AT, 1ul << 28);
    fake_type(&target.layout, BYTES_TYPE_AT, 1ul << 27);
    fake_type(&target.layout, OTHER_TYPE_AT, 0);
    fake_type(&target.layout, STR_SUBTYPE_AT, 1ul << 28);
    return target;
}

/* A compact ASCII str. */
static inline uintptr_t fake_str(const struct py_target *target, uintptr_t address, const char *text)
{
    const struct layout *layout = &target->layout;
    size_t length = strlen(text);
    struct fake str = fake_new(address, (size_t)layout->str_ascii_data + length + 1);
    fake_put_word(&str, layout->object_type, target->unicode_type);
    fake_put_word(&str, layout->str_length, length);
    fake_put_word(&str, layout->str_hash, length * 0x9e3779b97f4a7c15u + 1);
    fake_put_int(&str, layout->str_state, 1u << 2 | 1u << 5 | 1u << 6);
    fake_put(&str, layout->str_ascii_data, text, length);
    return fake_place(&str);
}

static inline uintptr_t fake_bytes(const struct py_target *target, uintptr_t address, const void *data, size_t length)
{
    const struct layout *layout = &target->layout;
    struct fake bytes = fake_new(address, (size_t)layout->bytes_data + length + 1);
    fake_put_word(&bytes, layout->object_type, target->bytes_type);
    fake_put_word(&bytes, layout->var_size, length);
    fake_put(&bytes, layout->bytes_data, data, length);
    return fake_place(&bytes);
}

#define CODE_UNITS 10
/* Two units on the first line, two on the next, the rest seven lines below it. */
static const uint8_t fake_line_table[] = {0x80 | 0 << 3 | 1, 0x00, 0x80 | 11 << 3 | 1, 0x00, 0x00, 0x80 | 13 << 3 | 5, 0x0e};

static inline struct fake fake_code_new(const struct py_target *target, uintptr_t address)
{
    const struct layout *layout = &target->layout;
    struct fake code = fake_new(address, (size_t)layout->code_adaptive + 2 * CODE_UNITS);
    fake_put_word(&code, layout->object_type, target->code_type);
    fake_put_word(&code, layout->var_size, CODE_UNITS);
    fake_put_int(&code, layout->code_flags, 3);
    fake_put_int(&code, layout->code_firstlineno, 40);
    if (layout->code_version != LAYOUT_NONE)
        fake_put_int(&code, layout->code_version, 77);
    fake_put_word(&code, layout->code_filename, fake_str(target, address + 0x10000, "/app/main.py"));
    fake_put_word(&code, layout->code_name, fake_str(target, address + 0x20000, "run"));
    fake_put_word(&code, layout->code_qualname, fake_str(target, address + 0x30000, "Job.run"));
    fake_put_word(&code, layout->code_linetable, fake_bytes(target, address + 0x40000, fake_line_table, sizeof fake_line_table));
    return code;
}

static inline uintptr_t fake_code(const struct py_target *target, uintptr_t address)
{
    struct fake code = fake_code_new(target, address);
    return fake_place(&code);
}

/* A frame of that code at byte offset lasti. */
static inline struct fake fake_frame_new(const struct py_target *target, uintptr_t address, uintptr_t code, int lasti, uintptr_t previous)
{
    const struct layout *layout = &target->layout;
    struct fake frame = fake_new(address, (size_t)layout->frame_size);
    fake_put_word(&frame, layout->frame_executable, code);
    fake_put_word(&frame, layout->frame_previous, previous);
    fake_put_word(&frame, layout->frame_instr, code + (uintptr_t)(layout->code_adaptive + lasti));
    fake_put_byte(&frame, layout->frame_owner, 0);
    return frame;
}

/* --- containers --- */

#define TUPLE_TYPE_AT 0x21000000u
#define LIST_TYPE_AT 0x21001000u
#define DICT_TYPE_AT 0x21002000u
#define SET_TYPE_AT 0x21003000u
#define DEQUE_TYPE_AT 0x21004000u
#define CELL_TYPE_AT 0x21005000u
#define FUNCTION_TYPE_AT 0x21006000u
#define OBJECT_TYPE_AT 0x21007000u

#define FAKE_TYPE_BYTES 1024 /* up to what only classes written in Python have */
#define FAKE_FURTHER 0x10000 /* from an object to memory of its own */

/* A type; the caller places it. */
static inline struct fake fake_type_new(const struct layout *layout, uintptr_t address, const char *name, uint64_t flags, uintptr_t base)
{
    struct fake type = fake_new(address, FAKE_TYPE_BYTES);
    fake_map(address + 0x800, name, strlen(name) + 1);
    fake_put_word(&type, layout->type_name, address + 0x800);
    fake_put_word(&type, layout->type_flags, flags);
    fake_put_word(&type, layout->type_base, base);
    return type;
}

static inline uintptr_t fake_named_type(const struct layout *layout, uintptr_t address, const char *name, uint64_t flags, uintptr_t base)
{
    struct fake type = fake_type_new(layout, address, name, flags, base);
    return fake_place(&type);
}

/* A target whose containers have types. */
static inline struct py_target fake_target_with_containers(int minor)
{
    struct py_target target = fake_target(minor);
    const struct layout *layout = &target.layout;

    fake_named_type(layout, OBJECT_TYPE_AT, "object", 0, 0);
    fake_named_type(layout, TUPLE_TYPE_AT, "tuple", 1ul << 26, OBJECT_TYPE_AT);
    fake_named_type(layout, LIST_TYPE_AT, "list", 1ul << 25, OBJECT_TYPE_AT);
    fake_named_type(layout, DICT_TYPE_AT, "dict", 1ul << 29, OBJECT_TYPE_AT);
    fake_named_type(layout, SET_TYPE_AT, "set", 0, OBJECT_TYPE_AT);
    fake_named_type(layout, DEQUE_TYPE_AT, "collections.deque", 0, OBJECT_TYPE_AT);
    fake_named_type(layout, CELL_TYPE_AT, "cell", 0, OBJECT_TYPE_AT);
    fake_named_type(layout, FUNCTION_TYPE_AT, "function", 0, OBJECT_TYPE_AT);
    return target;
}

/* Words that become memory. */
static inline uintptr_t fake_words(uintptr_t address, const uintptr_t *words, size_t count)
{
    struct fake memory = fake_new(address, count * 8 + 1);
    for (size_t i = 0; i < count; i++)
        fake_put_word(&memory, (int32_t)(8 * i), words[i]);
    memory.size = count * 8;
    return fake_place(&memory);
}

static inline uintptr_t fake_tuple(const struct py_target *target, uintptr_t address, const uintptr_t *items, size_t count)
{
    const struct layout *layout = &target->layout;
    struct fake tuple = fake_new(address, (size_t)layout->tuple_items + 8 * count);
    fake_put_word(&tuple, layout->object_type, TUPLE_TYPE_AT);
    fake_put_word(&tuple, layout->var_size, count);
    for (size_t i = 0; i < count; i++)
        fake_put_word(&tuple, layout->tuple_items + (int32_t)(8 * i), items[i]);
    return fake_place(&tuple);
}

static inline uintptr_t fake_list(const struct py_target *target, uintptr_t address, const uintptr_t *items, size_t count)
{
    const struct layout *layout = &target->layout;
    struct fake list = fake_new(address, (size_t)layout->list_items + 8);
    fake_put_word(&list, layout->object_type, LIST_TYPE_AT);
    fake_put_word(&list, layout->var_size, count);
    fake_put_word(&list, layout->list_items, count ? fake_words(address + FAKE_FURTHER, items, count) : 0);
    return fake_place(&list);
}

enum { FAKE_KEYS_GENERAL, FAKE_KEYS_UNICODE, FAKE_KEYS_SPLIT };

/* A dict's keys: pairs of key and value, 2^log2 bytes of indices before them. */
static inline struct fake fake_keys_new(const struct py_target *target, uintptr_t address, uint8_t kind, const uintptr_t *pairs, size_t count)
{
    const struct layout *layout = &target->layout;
    uint8_t log2 = 3;
    while (count >= (size_t)1 << log2)
        log2++;
    size_t words = kind == FAKE_KEYS_GENERAL ? 3 : 2, entries = (size_t)layout->keys_indices + ((size_t)1 << log2);
    struct fake keys = fake_new(address, entries + count * words * 8);
    fake_put_byte(&keys, layout->keys_kind, kind);
    fake_put_byte(&keys, layout->keys_log2_index_bytes, log2);
    fake_put_word(&keys, layout->keys_nentries, count);
    for (size_t i = 0; i < count; i++) {
        int32_t entry = (int32_t)(entries + i * words * 8);
        if (kind == FAKE_KEYS_GENERAL)
            fake_put_word(&keys, entry, i + 1); /* a hash */
        fake_put_word(&keys, entry + (int32_t)(words - 2) * 8, pairs[2 * i]);
        fake_put_word(&keys, entry + (int32_t)(words - 1) * 8, pairs[2 * i + 1]);
    }
    return keys;
}

/* values: the address that a split dict's values are at, else 0. */
static inline uintptr_t fake_dict_of(const struct py_target *target, uintptr_t address, uintptr_t keys, uintptr_t values)
{
    const struct layout *layout = &target->layout;
    struct fake dict = fake_new(address, (size_t)layout->dict_values + 8);
    fake_put_word(&dict, layout->object_type, DICT_TYPE_AT);
    fake_put_word(&dict, layout->dict_keys, keys);
    fake_put_word(&dict, layout->dict_values, values);
    return fake_place(&dict);
}

static inline uintptr_t fake_dict(const struct py_target *target, uintptr_t address, uint8_t kind, const uintptr_t *pairs, size_t count)
{
    struct fake keys = fake_keys_new(target, address + FAKE_FURTHER, kind, pairs, count);
    return fake_dict_of(target, address, fake_place(&keys), 0);
}

/* The values of a split table; from 3.13 on {capacity, size, embedded, valid} before them. */
static inline uintptr_t fake_values(const struct py_target *target, uintptr_t address, const uintptr_t *values, size_t count)
{
    const struct layout *layout = &target->layout;
    struct fake memory = fake_new(address, (size_t)layout->values_first + 8 * count);
    if (layout->values_first) {
        fake_put_byte(&memory, 0, (uint8_t)count);
        fake_put_byte(&memory, 3, 1);
    }
    for (size_t i = 0; i < count; i++)
        fake_put_word(&memory, layout->values_first + (int32_t)(8 * i), values[i]);
    return fake_place(&memory);
}

/* A set of slots: pairs of key and hash, 2^n of them. */
static inline uintptr_t fake_set(const struct py_target *target, uintptr_t address, uintptr_t type, const uintptr_t *slots, size_t count)
{
    const struct layout *layout = &target->layout;
    struct fake set = fake_new(address, (size_t)layout->set_table + 8);
    fake_put_word(&set, layout->object_type, type);
    fake_put_word(&set, layout->set_mask, count - 1);
    fake_put_word(&set, layout->set_table, fake_words(address + FAKE_FURTHER, slots, 2 * count));
    return fake_place(&set);
}

static inline uintptr_t fake_cell(const struct py_target *target, uintptr_t address, uintptr_t value)
{
    const struct layout *layout = &target->layout;
    struct fake cell = fake_new(address, (size_t)layout->cell_value + 8);
    fake_put_word(&cell, layout->object_type, CELL_TYPE_AT);
    fake_put_word(&cell, layout->cell_value, value);
    return fake_place(&cell);
}

/* A code object with variables: their names, and a byte of co_localspluskinds each. */
static inline struct fake fake_code_with_variables(const struct py_target *target, uintptr_t address, const char *const *names,
                                                   const char *kinds, uint32_t free)
{
    const struct layout *layout = &target->layout;
    struct fake code = fake_code_new(target, address);
    size_t count = strlen(kinds);
    uintptr_t strs[64];

    for (size_t i = 0; i < count; i++)
        strs[i] = fake_str(target, address + 0x50000 + 0x1000 * i, names[i]);
    fake_put_int(&code, layout->code_nlocalsplus, (uint32_t)count);
    fake_put_int(&code, layout->code_nfreevars, free);
    fake_put_word(&code, layout->code_localsplusnames, fake_tuple(target, address + 0x48000, strs, count));
    fake_put_word(&code, layout->code_localspluskinds, fake_bytes(target, address + 0x4c000, kinds, count));
    return code;
}

#endif
