/* SPDX-License-Identifier: MIT
 *
 * tool: what every reading program needs: memory that does not fail, and one
 * way to say what is wrong.
 *
 * [tool] only; the preloaded library never links this.
 */
#ifndef APROF_OUTPUT_TOOL_H
#define APROF_OUTPUT_TOOL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define TOOL_DEFAULT_PATH "aprof-spool" /* what is read when no PATH is given */

/* Exit statuses of every subcommand. */
enum tool_status {
    TOOL_FINE = 0,
    TOOL_GATE = 1,       /* diff: a function has grown by more than is allowed */
    TOOL_USAGE = 2,
    TOOL_NOTHING = 3,    /* input was read, and there is nothing in it to report */
    TOOL_UNREADABLE = 4, /* some input could not be read */
    TOOL_FEW = 5,        /* diff: too few samples to decide */
};

/* One line on stderr, "aprof: " before it. Control characters in what is
 * formatted come out as \xNN, so a file's name cannot drive a terminal. */
void tool_complain(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* What getopt_long (opterr 0, an option string that begins with ':') did not take.
 * Returns TOOL_USAGE, having said so. */
int tool_option_wrong(const char *command, int option, char **argv);
/* A whole number from least to most; false, having said so, when text is none. A least
 * of 0 is for those of which 0 means no limit. */
bool tool_number(const char *option, const char *text, unsigned long least, unsigned long most, unsigned long *number);
/* "s" but for one. */
const char *tool_plural(uint64_t count);

/* Zeroed. When there is no memory: one line and exit(TOOL_UNREADABLE). */
void *tool_alloc(size_t count, size_t size);
char *tool_copy(const char *text, size_t length);

/* Makes room for one more than used elements, doubling; new room is zeroed.
 * Returns the array, perhaps elsewhere. */
void *tool_grow(void *array, size_t used, size_t *room, size_t size);

#endif
