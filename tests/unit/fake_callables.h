/* SPDX-License-Identifier: MIT
 *
 * fake_callables: functions, bound methods and partials in a fake interpreter's
 * memory, each at a place of the caller's, with what belongs to it behind: 16 MiB
 * further the next may begin.
 */
#ifndef APROF_TESTS_FAKE_CALLABLES_H
#define APROF_TESTS_FAKE_CALLABLES_H

#include "tests/unit/fake_asyncio.h"

/* A function with one free variable; NULL: without any. */
static inline uintptr_t fake_callable_function(const struct py_target *target, uintptr_t at, const char *name, const char *variable, uintptr_t value)
{
    const struct layout *layout = &target->layout;
    uintptr_t cell = fake_cell(target, at + 0x100000, value);
    struct fake code = variable ? fake_code_with_variables(target, at + 0x200000, &variable, "\x80", 1) : fake_code_new(target, at + 0x200000);
    struct fake function = fake_new(at, 256);
    fake_put_word(&code, layout->code_qualname, fake_str(target, at + 0x300000, name));
    fake_put_word(&function, layout->object_type, FUNCTION_TYPE_AT);
    fake_put_word(&function, layout->function_code, fake_place(&code));
    fake_put_word(&function, layout->function_closure, variable ? fake_tuple(target, at + 0x400000, &cell, 1) : 0);
    return fake_place(&function);
}

static inline uintptr_t fake_callable_method(const struct py_target *target, uintptr_t at, uintptr_t function, uintptr_t self)
{
    const struct layout *layout = &target->layout;
    struct fake method = fake_new(at, 64);
    fake_put_word(&method, layout->object_type, FAKE_METHOD_TYPE_AT);
    fake_put_word(&method, layout->method_function, function);
    fake_put_word(&method, layout->method_self, self);
    return fake_place(&method);
}

/* Of this type, with one argument; 0: with none. */
static inline uintptr_t fake_callable_partial(const struct py_target *target, uintptr_t at, uintptr_t type, uintptr_t function, uintptr_t argument)
{
    const struct layout *layout = &target->layout;
    struct fake partial = fake_new(at, 64);
    fake_put_word(&partial, layout->object_type, type);
    fake_put_word(&partial, layout->partial_function, function);
    fake_put_word(&partial, layout->partial_args, fake_tuple(target, at + 0x100000, &argument, argument != 0));
    return fake_place(&partial);
}

#endif
