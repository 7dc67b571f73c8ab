/* SPDX-License-Identifier: MIT
 *
 * destination: where a program's output goes: stdout, or a file that is there whole
 * or not at all.
 *
 * [tool] only.
 */
#ifndef APROF_OUTPUT_DESTINATION_H
#define APROF_OUTPUT_DESTINATION_H

#include <stdbool.h>
#include <stdio.h>

/* Has write put it into that file, "-" or NULL being stdout: beside it first, then
 * renamed, so that what was there is whole until the new one is. What is no plain file
 * is written to as it is. What fails to be written the stream says (ferror); of stdout
 * aprof's main asks it. False: one line on stderr was written. */
bool destination_write(const char *path, void (*write)(FILE *stream, void *context), void *context);

#endif
