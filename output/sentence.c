/* SPDX-License-Identifier: MIT */
#include "output/sentence.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void sentence_add(struct sentence *sentence, const char *format, ...)
{
    char part[SENTENCE_PART_MAX];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(part, sizeof part, format, arguments);
    va_end(arguments);

    char *clean = human_text(part, strlen(part), 0, false); /* reasons and limits are whatever the metadata calls them */
    int columns = human_columns(), width = human_width(clean) + (int)strlen(sentence->between);
    if (sentence->label) {
        sentence->column = printf("%-*s", SENTENCE_LABEL_COLUMNS, sentence->label);
    } else if (columns && sentence->column + width >= columns) {
        printf("%.1s\n", sentence->between);
        sentence->column = printf("%*s", SENTENCE_LABEL_COLUMNS, "");
    } else {
        fputs(sentence->between, stdout);
    }
    sentence->label = NULL;
    sentence->column += width;
    bool colour = human_wants_colour();
    printf("%s%s%s", human_on(colour, sentence->style), clean, human_off(colour, sentence->style));
    free(clean);
}

void sentence_end(const struct sentence *sentence)
{
    if (!sentence->label)
        putchar('\n');
}
