/* SPDX-License-Identifier: MIT
 *
 * asyncios: the asyncio of every interpreter, as the sampler found it, for whoever
 * reads a thread: also its own CPU tick. One writer (the sampler); readers find a
 * description whole or not at all.
 */
#ifndef APROF_SAMPLER_CPYTHON_ASYNCIOS_H
#define APROF_SAMPLER_CPYTHON_ASYNCIOS_H

#include <stdbool.h>
#include <stdint.h>

#include "sampler/cpython/asyncio.h"

enum { ASYNCIOS_MAX = 16 }; /* interpreters with asyncio that are followed */

/* [sampler] Makes this the description of its interpreter. Its index, -1: no room. */
int asyncios_publish(const struct asyncio *asyncio);
/* [sampler] The interpreter is gone. */
void asyncios_withdraw(uintptr_t interp);
/* [sampler] All of them: the runtime ended, or this is a forked child. */
void asyncios_withdraw_all(void);

/* [handler] [sampler] NULL: this interpreter has none. Stays readable; what it
 * describes may be gone, as with everything that is read. */
const struct asyncio *asyncios_of(uintptr_t interp);
/* Whether any interpreter has. */
bool asyncios_any(void);
/* [sampler] The index-th; NULL: none there. */
const struct asyncio *asyncios_at(uint32_t index);

#endif
