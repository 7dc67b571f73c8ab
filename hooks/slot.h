/* SPDX-License-Identifier: MIT
 *
 * slot: hooking a function slot (a type's tp_* member, a method table entry)
 * whose signature has no hand-written hook.
 *
 * One libffi closure a slot carries the original pointer and the row that says
 * what to record; it calls record() first and the original after, and returns
 * what the original returned. A hooked call costs about 50 ns more, so hot slots are
 * plain C. Closures are made once, on the sampler thread (libffi allocates and
 * maps memory there); failure leaves the slot as it was.
 *
 * Also here, since it is the other thing that libffi is for: calling a function
 * of the interpreter that was found by dlsym, by a row that names its signature.
 */
#ifndef APROF_HOOKS_SLOT_H
#define APROF_HOOKS_SLOT_H

#include <stddef.h>
#include <stdint.h>

/* Signature: one character for the result, then one an argument:
 * p pointer, i int, l long (also ssize_t), v void (result only). At most
 * SLOT_ARGS arguments. Example: "ippp" is int f(void *, void *, void *). */
#define SLOT_ARGS 6

struct slot_row {
    const char *name;      /* for messages */
    const char *signature;
    /* [application thread] before the original; args[i] holds argument i,
     * widened. May not block, allocate or fail. */
    void (*record)(void *context, const uintptr_t args[SLOT_ARGS]);
    void *context;
};

struct slot; /* one installed hook; lives for ever once installed */

/* Prepares the hook for *place without installing it; NULL with *error (negative errno). */
struct slot *slot_prepare(void **place, const struct slot_row *row, int *error);
/* Swaps *place atomically. Hold the GIL. False when *place changed meanwhile. */
int slot_install(struct slot *slot);

/* Calls function by signature with widened arguments; the result widened. */
int slot_call(void *function, const char *signature, const uintptr_t args[], uintptr_t *result);

#endif
