/* SPDX-License-Identifier: MIT
 *
 * program: what of a command line names the program, and nothing of what is given
 * to it: arguments may be secrets.
 *
 * Of a Python's: the executable and the script, `-m MODULE`, `-c` without the code,
 * or `-`, read by the interpreter's own rules. Of any other executable, an embedder
 * whose options nobody here knows, its name alone.
 *
 * Pure; runs in any context.
 */
#ifndef APROF_PRELOAD_PROGRAM_H
#define APROF_PRELOAD_PROGRAM_H

#include <stdbool.h>
#include <stddef.h>

/* line: as in /proc/self/cmdline, words that each end in a NUL, and one NUL more
 * behind length. full: all words. text is always terminated. */
void program_describe(const char *line, size_t length, bool full, char *text, size_t size);

#endif
