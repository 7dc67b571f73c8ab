/* SPDX-License-Identifier: MIT
 *
 * collapsed: stacks as lines, "frame;frame;...;frame COUNT", root first, in the order
 * of their frames' names, each stack once.
 *
 * [tool] only.
 */
#ifndef APROF_OUTPUT_COLLAPSED_H
#define APROF_OUTPUT_COLLAPSED_H

#include <stdio.h>

#include "output/frames.h"
#include "output/trie.h"

/* What is not UTF-8, and control characters, come out as \xNN. */
void collapsed_put(FILE *stream, const struct trie *trie, const struct frames *frames);

#endif
