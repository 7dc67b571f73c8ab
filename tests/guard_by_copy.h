/* SPDX-License-Identifier: MIT
 *
 * guard_by_copy: hooks/guard.h for tests that have a guard_copy of their own: all
 * the rest of it. Included once a program, behind that guard_copy.
 */
#ifndef APROF_TESTS_GUARD_BY_COPY_H
#define APROF_TESTS_GUARD_BY_COPY_H

#include "hooks/guard.h"

bool guard_word(uintptr_t src, uint64_t *word)
{
    return src % sizeof *word == 0 && guard_copy(word, src, sizeof *word);
}

bool guard_gather(uint64_t *words, const struct guard_place *places, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++)
        if (!guard_word(words[places[i].from] + (uintptr_t)(intptr_t)places[i].offset, &words[places[i].to]))
            return false;
    return true;
}

uint32_t guard_gather_if(uint64_t *words, const struct guard_place *places, uint32_t n, uint64_t expected)
{
    if (!guard_gather(words, places, 1))
        return 0;
    if (words[places[0].to] != expected)
        return 1;
    return guard_gather(words, places + 1, n - 1) ? n : 0;
}

bool guard_store(uint64_t *dst, uint64_t value)
{
    *dst = value;
    return true;
}

int guard_start(enum guard_reader reader)
{
    return 0;
}

void guard_recheck(void)
{
}

void guard_own_thread(void)
{
}

bool guard_in_force(void)
{
    return true;
}

const char *guard_reader_name(void)
{
    return "copy";
}

#endif
