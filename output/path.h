/* SPDX-License-Identifier: MIT
 *
 * path: the way to a function, on so many lines as it may take: outermost caller
 * first; where it is too long the outer frames give way to "...".
 *
 * [tool] only.
 */
#ifndef APROF_OUTPUT_PATH_H
#define APROF_OUTPUT_PATH_H

#include <stdint.h>

/* Prints the names (any bytes), root first, at least one, and a newline. room: columns
 * of a line, 0: no limit; then names lose the functions around them. indent: columns
 * before each line but the first. */
void path_print(const char *const *names, uint32_t depth, int room, int indent);

#endif
