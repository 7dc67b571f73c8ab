/* SPDX-License-Identifier: MIT */
#include "output/path.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "output/human.h"
#include "output/table.h"
#include "output/tool.h"

#define BETWEEN " > "
#define LEFT_OUT "..."
#define LINES_MOST 2

struct path {
    char **names; /* root first */
    int *widths;
    uint32_t depth;
    int room, indent;
};

/* Lays the frames from first on into lines, and prints them if asked to.
 * Returns the number of lines. */
static int path_lay(const struct path *path, uint32_t first, bool print)
{
    int lines = 1, column = 0;
    if (first) {
        column = (int)strlen(LEFT_OUT);
        fputs(print ? LEFT_OUT : "", stdout);
    }
    for (uint32_t at = first; at < path->depth; at++) {
        const char *between = column ? BETWEEN : "";
        if (column && path->room && column + (int)strlen(BETWEEN) + path->widths[at] > path->room) {
            if (print)
                printf("\n%*s", path->indent, "");
            between = BETWEEN + 1; /* without the space before */
            column = 0;
            lines++;
        }
        if (print)
            printf("%s%s", between, path->names[at]);
        column += (int)strlen(between) + path->widths[at];
    }
    return lines;
}

/* The outermost frame that is shown: the inner ones say where, so the outer ones
 * give way. */
static uint32_t path_first(const struct path *path)
{
    uint32_t first = path->depth - 1;
    if (path_lay(path, 0, false) <= LINES_MOST)
        return 0;
    while (first > 1 && path_lay(path, first - 1, false) <= LINES_MOST)
        first--;
    return first;
}

void path_print(const char *const *names, uint32_t depth, int room, int indent)
{
    struct path path = { .depth = depth, .room = room, .indent = indent };
    path.names = tool_alloc(depth, sizeof *path.names);
    path.widths = tool_alloc(depth, sizeof *path.widths);
    int widest = room ? room - (int)strlen(BETWEEN) : 0;
    for (uint32_t at = 0; at < depth; at++) {
        const char *name = room ? table_name_inner(names[at]) : names[at]; /* those around it are further up in the path, or were */
        path.names[at] = human_text(*name ? name : "\"\"", *name ? strlen(name) : 2, widest, false);
        path.widths[at] = human_width(path.names[at]);
    }
    path_lay(&path, path_first(&path), true);
    putchar('\n');
    for (uint32_t at = 0; at < depth; at++)
        free(path.names[at]);
    free(path.names);
    free(path.widths);
}
