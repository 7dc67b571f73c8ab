/* SPDX-License-Identifier: MIT
 *
 * collapsed: stacks as lines, "frame;frame;...;frame COUNT", root first, in the order
 * of their frames' names, each stack once.
 *
 * [tool] only.
 */
#ifndef APROF_OUTPUT_COLLAPSED_H
#define APROF_OUTPUT_COLLAPSED_H

#include <stdint.h>
#include <stdio.h>

#include "output/frames.h"
#include "output/trie.h"

/* The library's own files are valid UTF-8. Of others, what is not, and control characters,
 * stay as they are, or come out as \xNN, as the library writes them. */
enum collapsed_bytes { COLLAPSED_AS_THEY_ARE, COLLAPSED_VALID };

/* Returns the number of lines. */
uint64_t collapsed_put(FILE *stream, const struct trie *trie, const struct frames *frames, enum collapsed_bytes bytes);

#endif
