/* SPDX-License-Identifier: MIT */
#include "sampler/cpython/start.h"

#include "hooks/guard.h"
#include "sampler/cpython/objects.h"

enum { CALLBACK_ARG = 8, BOOT_CALLABLE = 8 };

static bool follow(uintptr_t base, int32_t offset, uintptr_t *to)
{
    uint64_t word;
    if (!base || !guard_word(base + (uintptr_t)offset, &word) || !word)
        return false;
    *to = (uintptr_t)word;
    return true;
}

static bool find_callable(const struct py_target *target, uintptr_t arg, uintptr_t *callable)
{
    uintptr_t boot;
    return target->function_type && target->method_type && follow(arg, CALLBACK_ARG, &boot) && follow(boot, BOOT_CALLABLE, callable);
}

uintptr_t start_self(const struct py_target *target, uintptr_t arg)
{
    uintptr_t callable, self;
    return find_callable(target, arg, &callable) && objects_is(target, callable, target->method_type) &&
                   follow(callable, target->layout.method_self, &self)
               ? self
               : 0;
}

bool start_code(const struct py_target *target, uintptr_t arg, struct py_code *code)
{
    uintptr_t callable, address;
    if (!find_callable(target, arg, &callable))
        return false;
    if (objects_is(target, callable, target->method_type) && !follow(callable, target->layout.method_function, &callable))
        return false;
    return objects_is(target, callable, target->function_type) &&
           follow(callable, target->layout.function_code, &address) && code_read(target, address, code);
}
