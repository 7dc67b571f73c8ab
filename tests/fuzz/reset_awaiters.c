/* SPDX-License-Identifier: MIT
 * The module itself, and its memory of functions forgotten. */
#include "sampler/cpython/awaiters.c"

#include "tests/fuzz/fuzz.h"

void reset_awaiters(void)
{
    for (unsigned i = 0; i < KNOWN; i++)
        known[i] = 0;
    wakeup_def = 0;
}
