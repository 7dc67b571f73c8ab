/* SPDX-License-Identifier: MIT
 *
 * live: what each library of tests/live/ begins with: the memory guard by a
 * system call (unless it has one of its own and says so: LIVE_OWN_GUARD; or takes
 * hooks/guard.c: LIVE_REAL_GUARD), and the target as preload/python.c makes it. Included once a library; the caller of
 * live_open holds the GIL (ctypes.PyDLL).
 */
#ifndef APROF_TESTS_LIVE_H
#define APROF_TESTS_LIVE_H

#include <dlfcn.h>
#include <errno.h>
#include <sys/uio.h> /* process_vm_readv */
#include <unistd.h>

#include "hooks/guard.h"
#include "sampler/cpython/target.h"

#define LIVE __attribute__((visibility("default")))

static struct py_target target;

#if !defined LIVE_OWN_GUARD && !defined LIVE_REAL_GUARD
bool guard_copy(void *dst, uintptr_t src, size_t n)
{
    struct iovec to = {dst, n}, from = {(void *)src, n};
    return process_vm_readv(getpid(), &to, 1, &from, 1, 0) == (ssize_t)n;
}
#endif

#ifndef LIVE_REAL_GUARD
#include "tests/guard_by_copy.h"
#endif

static uintptr_t symbol(const char *name)
{
    return (uintptr_t)dlsym(RTLD_DEFAULT, name);
}

/* 0, or a negative errno of layout_read_debug_offsets; -ENOENT: no table. */
long live_open(int debug_build);
LIVE long live_open(int debug_build)
{
    uintptr_t version = symbol("Py_Version");
    if (!version)
        return -ENXIO;
    target.version = (uint32_t) * (const unsigned long *)version;
    const struct layout *layout = layout_find(target.version >> 16 & 0xff, debug_build);
    if (!layout)
        return -ENOENT;
    target.layout = *layout;
    target.runtime = symbol("_PyRuntime");
    target.code_type = symbol("PyCode_Type");
    target.unicode_type = symbol("PyUnicode_Type");
    target.bytes_type = symbol("PyBytes_Type");
    target.method_type = symbol("PyMethod_Type");
    target.function_type = symbol("PyFunction_Type");
    target.cfunction_type = symbol("PyCFunction_Type");
    target.coro_type = symbol("PyCoro_Type");
    target.gen_type = symbol("PyGen_Type");
    target.async_gen_type = symbol("PyAsyncGen_Type");
    return layout_read_debug_offsets(&target.layout, target.runtime);
}

#endif
