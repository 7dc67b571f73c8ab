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

#endif
