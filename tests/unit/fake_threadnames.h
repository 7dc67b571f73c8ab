/* SPDX-License-Identifier: MIT
 *
 * fake_threadnames: a module threading in the layout of the version under test, with
 * what it calls its threads.
 */
#ifndef APROF_TESTS_UNIT_FAKE_THREADNAMES_H
#define APROF_TESTS_UNIT_FAKE_THREADNAMES_H

#include "tests/unit/fake_python.h"

#define INTERP_AT 0x30000000u
#define MODULES_AT 0x30100000u
#define MODULE_TYPE_AT 0x30200000u
#define MODULE_AT 0x30300000u
#define DICT_AT 0x30400000u
#define ACTIVE_AT 0x30500000u
#define LONG_TYPE_AT 0x30600000u
#define CLASS_AT 0x30700000u
#define NAME_AT(i) (0x31000000u + 0x10000u * (unsigned)(i))
#define IDENT_AT(i) (0x32000000u + 0x10000u * (unsigned)(i))
#define THREAD_AT(i) (0x33000000u + 0x10000u * (unsigned)(i))
#define ATTRIBUTES_AT(i) (0x34000000u + 0x100000u * (unsigned)(i))
#define HIGH 0x7f0u /* second digit of a pthread_t */

static struct py_target target;

/* digits: as the tag or ob_size has them. */
static inline uintptr_t number(uintptr_t at, int64_t size, uint32_t low, uint32_t high)
{
    struct fake made = fake_new(at, 48);
    fake_put_word(&made, target.layout.object_type, LONG_TYPE_AT);
    fake_put_word(&made, target.layout.long_size, (uint64_t)size);
    fake_put_int(&made, target.layout.long_digits, low);
    fake_put_int(&made, target.layout.long_digits + 4, high);
    return fake_place(&made);
}

static inline int64_t size_of(int64_t digits)
{
    return target.layout.long_is_tagged ? (digits < 0 ? -digits << 3 | 2 : digits << 3) : digits;
}

/* A Thread whose attributes are in a dict. */
static inline uintptr_t thread(int i, uintptr_t name)
{
    const uintptr_t pairs[] = {fake_str(&target, ATTRIBUTES_AT(i) + 0x80000, "_name"), name};
    struct fake object = fake_new(THREAD_AT(i), 48);
    fake_put_word(&object, target.layout.object_type, CLASS_AT);
    fake_put_word(&object, 40, fake_dict(&target, ATTRIBUTES_AT(i), FAKE_KEYS_UNICODE, pairs, 1));
    return fake_place(&object);
}

static inline void types(void)
{
    target = fake_target_with_containers(target.layout.minor);
    fake_named_type(&target.layout, MODULE_TYPE_AT, "module", 0, OBJECT_TYPE_AT);
    fake_named_type(&target.layout, LONG_TYPE_AT, "int", 1ul << 24, OBJECT_TYPE_AT);
    struct fake type = fake_type_new(&target.layout, CLASS_AT, "Thread", target.layout.flag_heap_type, OBJECT_TYPE_AT);
    fake_put_word(&type, target.layout.type_dictoffset, 40);
    fake_place(&type);
}

/* {"threading": a module with {"_active": of_active}}, or what stands in its place. */
static inline void interpreter(uintptr_t of_module_type, uintptr_t of_active)
{
    const uintptr_t inner[] = {fake_str(&target, DICT_AT + 0x80000, "_active"), of_active};
    struct fake module = fake_new(MODULE_AT, 64), interp = fake_new(INTERP_AT, (size_t)target.layout.interp_modules + 8);
    fake_put_word(&module, target.layout.object_type, of_module_type);
    fake_put_word(&module, target.layout.object_type + 8, fake_dict(&target, DICT_AT, FAKE_KEYS_UNICODE, inner, 1));
    const uintptr_t outer[] = {fake_str(&target, MODULES_AT + 0x80000, "threading"), fake_place(&module)};
    fake_put_word(&interp, target.layout.interp_modules, fake_dict(&target, MODULES_AT, FAKE_KEYS_UNICODE, outer, 1));
    fake_place(&interp);
}

static inline void begin(int minor)
{
    target = fake_target_with_containers(minor);
    types();
}

#endif
