/* SPDX-License-Identifier: MIT
 *
 * coros_live: sampler/cpython/coros.c in a library that a Python loads with
 * ctypes, so that coros_live.py can compare what it reads of that very Python
 * with what it says of itself. Called with the GIL held, as layout_live is.
 */
#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <sys/uio.h> /* process_vm_readv */
#include <unistd.h>

#include "hooks/guard.h"
#include "sampler/cpython/code.h"
#include "sampler/cpython/coros.h"
#include "sampler/cpython/target.h"

#define LIVE __attribute__((visibility("default")))

long live_open(int debug_build);
long live_chain(uintptr_t object, uint32_t limit, char *out, long size);
long live_coro(uintptr_t object, char *out, long size);
long live_state(uintptr_t object);
uintptr_t live_of_frame(uintptr_t frame);
uintptr_t live_frame_below(uintptr_t frame);

static struct py_target target;

bool guard_copy(void *dst, uintptr_t src, size_t n)
{
    struct iovec to = {dst, n}, from = {(void *)src, n};
    return process_vm_readv(getpid(), &to, 1, &from, 1, 0) == (ssize_t)n;
}

bool guard_word(uintptr_t src, uint64_t *word)
{
    return src % 8 == 0 && guard_copy(word, src, sizeof *word);
}

static uintptr_t symbol(const char *name)
{
    return (uintptr_t)dlsym(RTLD_DEFAULT, name);
}

/* 0, or a negative errno of layout_read_debug_offsets; -ENOENT: no table. */
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
    target.coro_type = symbol("PyCoro_Type");
    target.gen_type = symbol("PyGen_Type");
    target.async_gen_type = symbol("PyAsyncGen_Type");
    return layout_read_debug_offsets(&target.layout, target.runtime);
}

/* Address, kind, state, code, line, awaited, previous; blanks between. */
static int write_coro(char *out, long size, const struct coro *coro)
{
    int32_t line = coro->state == CORO_FINISHED ? 0 : code_line_in_place(&target, &coro->code, coro->lasti);
    return snprintf(out, (size_t)size, "%lu %d %d %lu %d %lu %lu\n", (unsigned long)coro->address, (int)coro->kind, (int)coro->state,
                    (unsigned long)coro->code.address, line, (unsigned long)coro->awaited, (unsigned long)coro->previous);
}

LIVE long live_coro(uintptr_t object, char *out, long size)
{
    struct coro coro;
    return coros_read(&target, object, &coro) ? write_coro(out, size, &coro) : -1;
}

/* One a line, outermost first; then how the walk ended and what is awaited. */
LIVE long live_chain(uintptr_t object, uint32_t limit, char *out, long size)
{
    struct coros_walk walk;
    struct coro coro;
    long at = 0;

    coros_begin(&walk, &target, object, limit);
    while (coros_next(&walk, &coro) && at < size - 4096)
        at += write_coro(out + at, size - at, &coro);
    return at + snprintf(out + at, (size_t)(size - at), "%d %lu\n", (int)walk.end, (unsigned long)walk.awaited);
}

LIVE long live_state(uintptr_t object)
{
    enum coro_state state;
    return coros_state(&target, object, &state) ? (long)state : -1;
}

LIVE uintptr_t live_of_frame(uintptr_t frame)
{
    return coros_of_frame(&target, frame);
}

/* The frame's own `previous`. */
LIVE uintptr_t live_frame_below(uintptr_t frame)
{
    uint64_t word;
    return guard_word(frame + (uintptr_t)target.layout.frame_previous, &word) ? (uintptr_t)word : 0;
}
