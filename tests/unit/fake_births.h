/* SPDX-License-Identifier: MIT
 *
 * fake_births: sampler/births.h as a test wishes it to be. The hooks themselves use
 * plain loads, which over fake memory would be the test's own crash.
 *
 * Weak: every suite that includes this shares one, and the archive's is not linked.
 */
#ifndef APROF_TESTS_UNIT_FAKE_BIRTHS_H
#define APROF_TESTS_UNIT_FAKE_BIRTHS_H

#include <check.h>
#include <string.h> /* memset */

#include "sampler/births.h"
#include "tests/unit/fake_asyncio.h"

enum { FAKE_MAKERS = 1024, FAKE_BIRTHS = 1024 };

struct fake_births {
    uintptr_t maker[FAKE_MAKERS + 1]; /* coroutines; 0: dead */
    uint32_t makers;
    struct birth ring[FAKE_BIRTHS];
    uint32_t born, taken;
    uint64_t lost;
    uintptr_t hooked; /* type */
    uintptr_t counted; /* type of futures whose deaths are counted */
    uintptr_t task, coroutine_of_task; /* what births_task_of knows */
    uint32_t dies_after; /* so many questions whether a maker lives, all die; 0: never */
};

FAKE_WEAK struct fake_births fake_births;

static inline void fake_births_reset(void)
{
    memset(&fake_births, 0, sizeof fake_births);
}

static inline maker_id fake_maker(uintptr_t coroutine)
{
    ck_assert_uint_lt(fake_births.makers, FAKE_MAKERS);
    fake_births.maker[++fake_births.makers] = coroutine;
    return fake_births.makers;
}

static inline void fake_maker_dies(maker_id maker)
{
    fake_births.maker[maker] = 0;
}

/* makers: innermost first; may be fewer than two, 0 is none. */
static inline struct birth fake_birth_of(uintptr_t task, maker_id inner, maker_id outer)
{
    struct birth birth = {.task = task, .maker = {inner, outer}};
    birth.count = !inner ? 0 : !outer ? 1 : 2;
    return birth;
}

static inline void fake_birth(struct birth birth)
{
    ck_assert_uint_lt(fake_births.born, FAKE_BIRTHS);
    birth.number = fake_births.born;
    fake_births.ring[fake_births.born++] = birth;
}

FAKE_WEAK int births_start(const struct py_target *target, void *(*thread_state)(void))
{
    return 0;
}

FAKE_WEAK bool births_hook(uintptr_t task_type)
{
    fake_births.hooked = task_type;
    return true;
}

FAKE_WEAK bool births_is_hooked(uintptr_t task_type)
{
    return fake_births.hooked == task_type;
}

FAKE_WEAK uint64_t births_number(void)
{
    return fake_births.born;
}

FAKE_WEAK uintptr_t births_task_of(uintptr_t coroutine)
{
    return coroutine == fake_births.coroutine_of_task ? fake_births.task : 0;
}

FAKE_WEAK bool births_next(struct birth *birth)
{
    while (fake_births.taken < fake_births.born) {
        *birth = fake_births.ring[fake_births.taken++];
        if (birth->task)
            return true;
    }
    return false;
}

FAKE_WEAK void births_hold(void)
{
}

FAKE_WEAK void births_release(void)
{
}

FAKE_WEAK uintptr_t births_coroutine(maker_id maker)
{
    return fake_births.maker[maker];
}

FAKE_WEAK bool births_is_alive(maker_id maker)
{
    if (fake_births.dies_after && !--fake_births.dies_after)
        memset(fake_births.maker, 0, sizeof fake_births.maker);
    return fake_births.maker[maker] != 0;
}

FAKE_WEAK bool births_counts_futures(uintptr_t future_type)
{
    return fake_births.counted == future_type;
}

FAKE_WEAK uint32_t births_future_deaths(uintptr_t future)
{
    return *fake_deaths_of(future);
}

FAKE_WEAK const void *births_future_place(uintptr_t future)
{
    return fake_deaths_of(future);
}

FAKE_WEAK uint64_t births_lost(void)
{
    return fake_births.lost;
}

FAKE_WEAK uint32_t births_makers(void)
{
    return fake_births.makers;
}

FAKE_WEAK void births_on_half(void (*call)(void))
{
}

FAKE_WEAK void births_postfork_child(void)
{
}

#endif
