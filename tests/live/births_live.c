/* SPDX-License-Identifier: MIT
 *
 * births_live: the hooks of sampler/births.c in a library that a Python loads
 * with ctypes, so that births_live.py can compare what they note with what that
 * Python did. Called with the GIL held (ctypes.PyDLL), as the hooks are.
 */
#include "sampler/births.h"
#include "tests/live/live.h"

long live_start(void);
long live_hook(uintptr_t type);
long live_is_hooked(uintptr_t type);
long live_next(uint64_t *out);
long live_makers(void);
unsigned long live_coroutine(uint64_t maker);
unsigned long live_lost(void);
unsigned long live_halves(void);
long live_counts_futures(uintptr_t type);
unsigned long live_future_deaths(uintptr_t future);

static unsigned long halves;

static void count_half(void)
{
    halves++;
}

/* After live_open. */
LIVE long live_start(void)
{
    uintptr_t thread_state = symbol("PyThreadState_GetUnchecked");
    if (!thread_state)
        thread_state = symbol("_PyThreadState_UncheckedGet");
    births_on_half(count_half);
    return births_start(&target, (void *(*)(void))thread_state);
}

LIVE long live_hook(uintptr_t type)
{
    return births_hook(type);
}

LIVE long live_is_hooked(uintptr_t type)
{
    return births_is_hooked(type);
}

/* Task, then its makers; how many these are, -1: no birth. */
LIVE long live_next(uint64_t *out)
{
    struct birth birth;
    if (!births_next(&birth))
        return -1;
    *out++ = birth.task;
    for (uint32_t i = 0; i < birth.count; i++)
        *out++ = birth.maker[i];
    return birth.count;
}

LIVE unsigned long live_coroutine(uint64_t maker)
{
    return births_is_alive(maker) ? births_coroutine(maker) : 0;
}

LIVE long live_makers(void)
{
    return births_makers();
}

LIVE unsigned long live_lost(void)
{
    return births_lost();
}

LIVE unsigned long live_halves(void)
{
    return halves;
}

LIVE long live_counts_futures(uintptr_t type)
{
    return births_counts_futures(type);
}

LIVE unsigned long live_future_deaths(uintptr_t future)
{
    return births_future_deaths(future);
}
