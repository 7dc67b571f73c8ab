/* SPDX-License-Identifier: MIT
 * The module itself, and its memory of types forgotten. */
#include "sampler/cpython/coros.c"

#include "tests/fuzz/fuzz.h"

void reset_coros(void)
{
    for (unsigned i = 0; i < STATIC_WRAPPERS; i++)
        static_types[i] = 0;
}
