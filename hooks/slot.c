/* SPDX-License-Identifier: MIT
 *
 * A closure's code is written into a page of its own, which then loses its
 * write permission: libffi's own allocator would read /proc and call the
 * application's malloc. Where a page may not become executable (a strict
 * security module), there is no hook, and the slot stays as it was.
 */
#include "hooks/slot.h"

#include <errno.h>
#include <ffi.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <string.h>    /* strlen */
#include <sys/mman.h>

#define PAGE 4096u

/* In the first page of its mapping; the second holds the closure. */
struct slot {
    _Atomic(void *) *place;
    void *original;
    struct slot_row row;
    ffi_cif cif;
    ffi_type *types[SLOT_ARGS];
    ffi_closure *closure;
};

static ffi_type *type_of(char c)
{
    switch (c) {
    case 'p': return &ffi_type_pointer;
    case 'i': return &ffi_type_sint32;
    case 'l': return &ffi_type_sint64;
    case 'v': return &ffi_type_void;
    default: return NULL;
    }
}

/* Reads a signature; types has room for SLOT_ARGS. 0 or a negative errno. */
static int describe(ffi_cif *cif, ffi_type *types[SLOT_ARGS], const char *signature)
{
    size_t length = strlen(signature);
    if (length == 0 || length > SLOT_ARGS + 1 || type_of(signature[0]) == NULL)
        return -EINVAL;
    for (size_t i = 1; i < length; i++) {
        types[i - 1] = type_of(signature[i]);
        if (types[i - 1] == NULL || signature[i] == 'v')
            return -EINVAL;
    }
    ffi_status status = ffi_prep_cif(cif, FFI_DEFAULT_ABI, (unsigned)(length - 1), type_of(signature[0]), types);
    return status == FFI_OK ? 0 : -EINVAL;
}

static uintptr_t widen(char c, const void *value)
{
    return c == 'i' ? (uintptr_t)(intptr_t)*(const int *)value : *(const uintptr_t *)value;
}

/* libffi's entry. The arguments go on as they came, so the original sees
 * exactly what its caller passed; its result is stored by libffi's rules. */
static void enter(ffi_cif *cif, void *result, void *values[], void *arg)
{
    struct slot *slot = arg;
    uintptr_t widened[SLOT_ARGS] = {0};
    for (unsigned i = 0; i < cif->nargs; i++)
        widened[i] = widen(slot->row.signature[i + 1], values[i]);
    slot->row.record(slot->row.context, widened);
    ffi_call(cif, FFI_FN(slot->original), result, values);
}

static struct slot *map_slot(void)
{
    void *pages = mmap(NULL, 2 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return pages == MAP_FAILED ? NULL : pages;
}

static int make_closure(struct slot *slot)
{
    slot->closure = (ffi_closure *)((char *)slot + PAGE);
    if (ffi_prep_closure_loc(slot->closure, &slot->cif, enter, slot, slot->closure) != FFI_OK)
        return -EINVAL;
    return mprotect(slot->closure, PAGE, PROT_READ | PROT_EXEC) == 0 ? 0 : -errno;
}

struct slot *slot_prepare(void **place, const struct slot_row *row, int *error)
{
    struct slot *slot = map_slot();
    *error = slot ? 0 : -ENOMEM;
    if (slot == NULL)
        return NULL;
    slot->place = (_Atomic(void *) *)place;
    slot->original = atomic_load(slot->place);
    slot->row = *row;
    *error = describe(&slot->cif, slot->types, row->signature);
    if (*error == 0)
        *error = make_closure(slot);
    if (*error == 0)
        return slot;
    munmap(slot, 2 * PAGE);
    return NULL;
}

int slot_install(struct slot *slot)
{
    void *expected = slot->original;
    return atomic_compare_exchange_strong(slot->place, &expected, (void *)slot->closure);
}

int slot_call(void *function, const char *signature, const uintptr_t args[], uintptr_t *result)
{
    ffi_cif cif;
    ffi_type *types[SLOT_ARGS];
    void *values[SLOT_ARGS];
    ffi_arg raw = 0;
    int error = describe(&cif, types, signature);
    if (error != 0)
        return error;
    for (unsigned i = 0; i < cif.nargs; i++)
        values[i] = (void *)&args[i]; /* little-endian: an int is the low half */
    ffi_call(&cif, FFI_FN(function), &raw, values);
    if (result != NULL)
        *result = signature[0] == 'i' ? (uintptr_t)(intptr_t)(int)raw : (uintptr_t)raw;
    return 0;
}
