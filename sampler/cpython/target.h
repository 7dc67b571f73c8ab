/* SPDX-License-Identifier: MIT
 *
 * target: the interpreter that this process holds: its layout and the addresses
 * that dlsym found. Filled once by preload/python.c, read-only afterwards
 * (handlers read it without synchronisation).
 */
#ifndef APROF_SAMPLER_CPYTHON_TARGET_H
#define APROF_SAMPLER_CPYTHON_TARGET_H

#include <stdint.h>

#include "sampler/cpython/layout.h"

struct py_target {
    struct layout layout;
    uintptr_t runtime;      /* &_PyRuntime */
    uintptr_t code_type;    /* &PyCode_Type */
    uintptr_t unicode_type; /* &PyUnicode_Type */
    uintptr_t bytes_type;   /* &PyBytes_Type */
    uintptr_t method_type;  /* &PyMethod_Type, 0: not exported */
    uintptr_t function_type; /* &PyFunction_Type, 0: not exported */
    uintptr_t cfunction_type; /* &PyCFunction_Type, 0: not exported */
    uintptr_t coro_type, gen_type, async_gen_type; /* &PyCoro_Type, &PyGen_Type, &PyAsyncGen_Type, 0: not exported */
    uint32_t version;       /* PY_VERSION_HEX */
    uintptr_t text_start, text_end; /* of the file that holds the interpreter: threads started there are its own */
};

#endif
