/* SPDX-License-Identifier: MIT
 * The module itself, and all names forgotten: by fresh pages, which is a hundred
 * times faster than codes_forget(). */
#include "sampler/codes.c"

#include "tests/fuzz/fuzz.h"

void reset_codes(void)
{
    codes_forget_frames();
    for (uint32_t i = 0; i < own.infos_size; i++)
        mem_free(own.infos[i]);
    mem_free(own.infos);
    codes_postfork_child();
}
