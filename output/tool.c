/* SPDX-License-Identifier: MIT
 *
 * A reader that runs out of memory has nothing better to do than to say so and
 * go: unlike the library, it is nobody's guest.
 */
#include "output/tool.h"

#include <errno.h>
#include <getopt.h> /* optopt, optind */
#include <stdarg.h>
#include <stdio.h>  /* fprintf */
#include <stdlib.h> /* calloc, exit */
#include <string.h>

#include "output/progress.h"

void tool_complain(const char *format, ...)
{
    char line[8192];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(line, sizeof line, format, arguments);
    va_end(arguments);

    progress_hide();
    fflush(stdout); /* so that both streams read in order on one terminal */
    fputs("aprof: ", stderr);
    for (const char *at = line; *at; at++) {
        unsigned char byte = (unsigned char)*at;
        if (byte < 0x20 || byte == 0x7f)
            fprintf(stderr, "\\x%02x", byte);
        else
            putc(byte, stderr);
    }
    putc('\n', stderr);
}

int tool_option_wrong(const char *command, int option, char **argv)
{
    char letter[] = { '-', (char)optopt, '\0' };
    bool has_letter = optopt > 0 && optopt < 256; /* none: a long option that is unknown, or has no letter */
    const char *name = has_letter ? letter : argv[optind - 1];
    tool_complain("%s: %s (see `aprof %s --help`)", name, option == ':' ? "needs a value" : "no such option", command);
    return TOOL_USAGE;
}

bool tool_number(const char *option, const char *text, unsigned long least, unsigned long most, unsigned long *number)
{
    char *end;
    errno = 0;
    *number = strtoul(text, &end, 10);
    bool good = !errno && !*end && text[0] >= '0' && text[0] <= '9' && *number >= least && *number <= most;
    if (!good)
        tool_complain("%s: \"%s\" is not a number from %lu%s to %lu", option, text, least, least ? "" : " (no limit)", most);
    return good;
}

const char *tool_plural(uint64_t count)
{
    return count == 1 ? "" : "s";
}

static void out_of_memory(size_t bytes)
{
    tool_complain("no memory for %zu bytes", bytes);
    exit(TOOL_UNREADABLE);
}

void *tool_alloc(size_t count, size_t size)
{
    void *memory = calloc(count ? count : 1, size ? size : 1);
    if (!memory)
        out_of_memory(count * size);
    return memory;
}

char *tool_copy(const char *text, size_t length)
{
    char *copy = tool_alloc(length + 1, 1);
    memcpy(copy, text, length);
    return copy;
}

void *tool_grow(void *array, size_t used, size_t *room, size_t size)
{
    if (used < *room)
        return array;
    size_t wanted = *room ? *room * 2 : 16;
    void *larger = wanted > *room && wanted < SIZE_MAX / size ? realloc(array, wanted * size) : NULL;
    if (!larger)
        out_of_memory(wanted * size);
    memset((char *)larger + *room * size, 0, (wanted - *room) * size);
    *room = wanted;
    return larger;
}
