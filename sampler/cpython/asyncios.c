/* SPDX-License-Identifier: MIT
 *
 * asyncios: two copies an interpreter, written in turn, so that a handler which
 * still reads the older one while it is replaced finds it unchanged: replacing
 * it again takes the sampler a tick at least. */
#include "sampler/cpython/asyncios.h"

#include <stdatomic.h>
#include <stddef.h>

static struct {
    struct asyncio copy[2];
    uint32_t turn;
    _Atomic(const struct asyncio *) current;
} slots[ASYNCIOS_MAX];

const struct asyncio *asyncios_at(uint32_t index)
{
    return index < ASYNCIOS_MAX ? atomic_load_explicit(&slots[index].current, memory_order_acquire) : NULL;
}

static int slot_of(uintptr_t interp)
{
    for (int i = 0; i < ASYNCIOS_MAX; i++) {
        const struct asyncio *asyncio = asyncios_at((uint32_t)i);
        if (asyncio && asyncio->interp == interp)
            return i;
    }
    return -1;
}

const struct asyncio *asyncios_of(uintptr_t interp)
{
    for (uint32_t i = 0; i < ASYNCIOS_MAX; i++) {
        const struct asyncio *asyncio = asyncios_at(i); /* loaded once: a slot may become another's */
        if (asyncio && asyncio->interp == interp)
            return asyncio;
    }
    return NULL;
}

bool asyncios_any(void)
{
    for (uint32_t i = 0; i < ASYNCIOS_MAX; i++)
        if (asyncios_at(i))
            return true;
    return false;
}

static int free_slot(void)
{
    for (int i = 0; i < ASYNCIOS_MAX; i++)
        if (!asyncios_at((uint32_t)i))
            return i;
    return -1;
}

int asyncios_publish(const struct asyncio *asyncio)
{
    int slot = slot_of(asyncio->interp);
    if (slot < 0)
        slot = free_slot();
    if (slot < 0)
        return -1;
    struct asyncio *copy = &slots[slot].copy[slots[slot].turn++ % 2];
    *copy = *asyncio;
    atomic_store_explicit(&slots[slot].current, copy, memory_order_release);
    return slot;
}

void asyncios_withdraw(uintptr_t interp)
{
    int slot = slot_of(interp);
    if (slot >= 0)
        atomic_store_explicit(&slots[slot].current, NULL, memory_order_release);
}

void asyncios_withdraw_all(void)
{
    for (int i = 0; i < ASYNCIOS_MAX; i++)
        atomic_store_explicit(&slots[i].current, NULL, memory_order_release);
}
