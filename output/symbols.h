/* SPDX-License-Identifier: MIT
 *
 * symbols: frames as other programs know them: a function's name, its file, a line.
 *
 * What the spool writes as \xNN is the character again ("a;b", a file that really has
 * that name), as far as that is valid UTF-8 without control characters; what is not
 * stays \xNN. A function without a name is "\"\"", as `aprof report` has it.
 *
 * [tool] only.
 */
#ifndef APROF_OUTPUT_SYMBOLS_H
#define APROF_OUTPUT_SYMBOLS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "output/frames.h"

struct symbol {
    uint32_t function; /* its number, from 0 in the order of the frames */
    uint32_t line;     /* 0: not known */
};

struct symbol_function {
    const char *name;
    const char *file; /* "": a marker ("[ready]"), or not known */
};

struct symbols;

/* Of all frames that there are now. by_line: as for frames_new. */
struct symbols *symbols_new(const struct frames *frames, bool by_line);
void symbols_free(struct symbols *symbols);

struct symbol symbols_of(const struct symbols *symbols, uint32_t frame);
uint32_t symbols_functions(const struct symbols *symbols);
/* Valid until symbols_free. */
struct symbol_function symbols_function(const struct symbols *symbols, uint32_t function);

/* Any text of the spool, as above. The caller frees it. */
char *symbols_text(const char *text, size_t length);

#endif
