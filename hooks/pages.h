/* SPDX-License-Identifier: MIT
 *
 * pages: memory straight from the kernel, for tables that are large and seldom
 * full: it costs nothing until it is touched, and then page by page, also where
 * the system gives out huge pages unasked.
 *
 * What an application locks in memory (mlockall) is all that is mapped, touched or
 * not; RLIMIT_AS counts it too. So map what may be needed soon, not all that may be
 * needed ever.
 *
 * Runs in: any context; async-signal-safe.
 */
#ifndef APROF_HOOKS_PAGES_H
#define APROF_HOOKS_PAGES_H

#include <stdbool.h>
#include <stddef.h>

/* [loader] Whether the process's limits leave it this much address space, and this
 * much of what RLIMIT_DATA counts (private pages that can be written). */
bool pages_room(size_t bytes);

void *pages_map(size_t bytes); /* zeros; NULL: the kernel says no */
void pages_clear(void *pages, size_t bytes); /* zeros again, and given back where the kernel takes them */
void pages_unmap(void *pages, size_t bytes);

#endif
