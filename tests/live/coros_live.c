/* SPDX-License-Identifier: MIT
 *
 * coros_live: sampler/cpython/coros.c in a library that a Python loads with
 * ctypes, so that coros_live.py can compare what it reads of that very Python
 * with what it says of itself. Called with the GIL held, as layout_live is.
 */
#include "tests/live/live.h"

#include <stdio.h>

#include "sampler/cpython/code.h"
#include "sampler/cpython/coros.h"

long live_chain(uintptr_t object, uint32_t limit, char *out, long size);
long live_coro(uintptr_t object, char *out, long size);
long live_state(uintptr_t object);
uintptr_t live_of_frame(uintptr_t frame);
uintptr_t live_frame_below(uintptr_t frame);

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
