/* SPDX-License-Identifier: MIT
 *
 * frames: the distinct frames of stacks as small numbers, from 0 in the order of
 * their first sight: functions, whatever the line, or lines.
 *
 * [tool] only.
 */
#ifndef APROF_OUTPUT_FRAMES_H
#define APROF_OUTPUT_FRAMES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Bytes as in the spool. A marker ("[ready]"), or a frame of another program that
 * names no place, has an empty place. */
struct frame_text {
    const char *name;  /* qualname */
    const char *place; /* path, or path:line */
};

struct frames;

struct frames *frames_new(bool by_line);
void frames_free(struct frames *frames);

/* One frame as it stands in a stack, "name (path:line)". */
uint32_t frames_add(struct frames *frames, const char *text, size_t length);
uint32_t frames_count(const struct frames *frames);
/* Valid until frames_free. */
struct frame_text frames_text(const struct frames *frames, uint32_t number);
/* All numbers in the order of names, then places. The caller frees it. */
uint32_t *frames_sorted(const struct frames *frames);

#endif
