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
#define BIG_SHARE 0.1
#define LEAST_COLUMNS 24 /* for name and place on however small a terminal */

void table_heading(bool colour, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    fputs(human_on(colour, HUMAN_STRONG), stdout);
    vprintf(format, arguments);
    puts(human_off(colour, HUMAN_STRONG));
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

void table_share(bool colour, double part, double whole)
{
    char share[HUMAN_SIZE];
    enum human_style style = part >= BIG_SHARE * whole && part > 0 ? HUMAN_STRONG : HUMAN_PLAIN;
    printf("%s%8s%s", human_on(colour, style), human_share(share, part, whole), human_off(colour, style));
}

void table_name(const struct table_names *names, const char *name, const char *place)
{
    table_name_on(stdout, names, name, place);
}

void table_name_on(FILE *stream, const struct table_names *names, const char *name, const char *place)
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
    fputs(*name ? name_shown : "\"\"", stream);
    if (*place_shown)
        fprintf(stream, " %s(%s)%s", human_on(names->colour, HUMAN_FAINT), place_shown, human_off(names->colour, HUMAN_FAINT));
    putc('\n', stream);
    free(name_shown);
    free(place_shown);
}
