/* SPDX-License-Identifier: MIT
 *
 * buffer: bytes on their way into a file, from the profiler's own heap. It grows
 * for what does not fit (one long line, metadata with many tags) up to a bound,
 * and never shrinks: a process has one.
 *
 * Runs in: [sampler].
 */
#ifndef APROF_OUTPUT_BUFFER_H
#define APROF_OUTPUT_BUFFER_H

#include <stdbool.h>
#include <stddef.h>

struct buffer {
    char *bytes;
    size_t size, used;
};

bool buffer_init(struct buffer *buffer);
void buffer_free(struct buffer *buffer);

/* Room for size bytes in all; false: no memory, or beyond the bound. What is in it stays. */
bool buffer_reserve(struct buffer *buffer, size_t size);

#endif
