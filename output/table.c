/* SPDX-License-Identifier: MIT
 *
 * Name and place share what room there is: a path's end and a function's own name
 * say most.
 */
#include "output/table.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "output/human.h"

#define PLACE_COLUMNS 20 /* a path is not cut below this while the name can give way */
#define LEAST_COLUMNS 24 /* for name and place on however small a terminal */

void table_heading(bool colour, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    fputs(colour ? "\033[1m" : "", stdout);
    vprintf(format, arguments);
    fputs(colour ? "\033[0m\n" : "\n", stdout);
    va_end(arguments);
}

int table_room(int columns, int numbers)
{
    int room = columns ? columns - numbers : 0;
    return columns && room < LEAST_COLUMNS ? LEAST_COLUMNS : room;
}

const char *table_name_inner(const char *name)
{
    static const char around[] = ".<locals>.";
    for (const char *next; (next = strstr(name, around));)
        name = next + sizeof around - 1;
    return name;
}

void table_name(const struct table_names *names, const char *name, const char *place)
{
    int room = names->room;
    char *place_shown = human_text(place, strlen(place), 0, true);
    int place_width = human_width(place_shown), around = *place ? 3 : 0;
    int place_least = place_width < PLACE_COLUMNS ? place_width : PLACE_COLUMNS;
    if (place_least > room / 2)
        place_least = room / 2;
    int name_room = room ? room - place_least - around : 0;
    const char *part = room && human_width(name) > name_room ? table_name_inner(name) : name;
    char *name_shown = human_text(part, strlen(part), name_room, names->are_paths);
    if (room) {
        char *whole = place_shown;
        place_shown = human_text(whole, strlen(whole), room - human_width(name_shown) - around, true);
        free(whole);
    }
    fputs(*name ? name_shown : "\"\"", stdout);
    if (*place_shown)
        printf(names->colour ? " \033[2m(%s)\033[0m" : " (%s)", place_shown);
    putchar('\n');
    free(name_shown);
    free(place_shown);
}
