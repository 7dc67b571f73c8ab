/* SPDX-License-Identifier: MIT
 *
 * fake_memory: hooks/guard.h over a memory that a test made up. What was not
 * mapped here is unreadable, wherever it points; nothing can fault.
 */
#ifndef APROF_TESTS_FAKE_MEMORY_H
#define APROF_TESTS_FAKE_MEMORY_H

#include <stddef.h>
#include <stdint.h>

/* From now on length bytes at the made-up address are those of bytes, which
 * stays the test's and may change meanwhile. Later mappings hide earlier ones. */
void fake_map(uintptr_t address, const void *bytes, size_t length);

/* Called before every read, also of what cannot be read: memory may change between two. NULL: no more. */
void fake_on_read(void (*call)(uintptr_t address, size_t length));

/* Forgets all of them, and the call. */
void fake_reset(void);

/* The reads served and refused since fake_reset. */
unsigned long fake_reads(void), fake_refusals(void);

#endif
