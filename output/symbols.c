/* SPDX-License-Identifier: MIT
 *
 * A function is known by name, NUL, file: neither holds a NUL.
 */
#include "output/symbols.h"

#include <stdlib.h>
#include <string.h>

#include "output/human.h"
#include "output/names.h"
#include "output/spool_format.h"
#include "output/tool.h"

struct symbols {
    struct symbol *frames;
    struct names *functions;
};

char *symbols_text(const char *text, size_t length)
{
    char *plain = tool_alloc(length + 1, 1);
    size_t plain_length = spool_unescape(text, length, plain);
    char *clean = human_text(plain, plain_length, 0, false);
    free(plain);
    return clean;
}

/* The line at the end of path:line, and where the path ends. */
static uint32_t line_of(const char *place, size_t *length)
{
    const char *colon = strrchr(place, ':');
    *length = colon ? (size_t)(colon - place) : strlen(place);
    return colon ? (uint32_t)strtoul(colon + 1, NULL, 10) : 0;
}

static uint32_t function_add(struct symbols *symbols, const char *name, const char *file)
{
    size_t name_size = strlen(name) + 1, size = name_size + strlen(file);
    char *key = tool_alloc(size, 1);
    memcpy(key, name, name_size);
    memcpy(key + name_size, file, size - name_size);
    uint32_t number = names_add(symbols->functions, key, size);
    free(key);
    return number;
}

static struct symbol symbol_make(struct symbols *symbols, struct frame_text text, bool by_line)
{
    struct symbol symbol = { 0 };
    size_t file_length = strlen(text.place);
    if (by_line)
        symbol.line = line_of(text.place, &file_length);
    char *name = symbols_text(text.name, strlen(text.name)), *file = symbols_text(text.place, file_length);
    symbol.function = function_add(symbols, *name ? name : "\"\"", file);
    free(name);
    free(file);
    return symbol;
}

struct symbols *symbols_new(const struct frames *frames, bool by_line)
{
    struct symbols *symbols = tool_alloc(1, sizeof *symbols);
    symbols->functions = names_new();
    symbols->frames = tool_alloc(frames_count(frames), sizeof *symbols->frames);
    for (uint32_t frame = 0; frame < frames_count(frames); frame++)
        symbols->frames[frame] = symbol_make(symbols, frames_text(frames, frame), by_line);
    return symbols;
}

void symbols_free(struct symbols *symbols)
{
    if (!symbols)
        return;
    names_free(symbols->functions);
    free(symbols->frames);
    free(symbols);
}

struct symbol symbols_of(const struct symbols *symbols, uint32_t frame)
{
    return symbols->frames[frame];
}

uint32_t symbols_functions(const struct symbols *symbols)
{
    return names_count(symbols->functions);
}

struct symbol_function symbols_function(const struct symbols *symbols, uint32_t function)
{
    const char *name = names_text(symbols->functions, function, NULL);
    return (struct symbol_function){ name, name + strlen(name) + 1 };
}
