/* SPDX-License-Identifier: MIT */
#include "output/leftout.h"

#include <inttypes.h>
#include <stdio.h>

#include "output/tool.h"

/* What was given twice or is not finished has its place elsewhere, and folders are
 * somebody else's. */
static const struct {
    size_t count; /* where in struct reader_counts */
    const char *before, *after;
    bool is_missed;
} kinds[] = {
#define COUNT(name) offsetof(struct reader_counts, name)
    { COUNT(lines_bad), "line", " left out, no stack and count", true },
    { COUNT(tails), "file", " with an unfinished last line", true },
    { COUNT(repeated), "file", " given twice, read once", false },
    { COUNT(unfinished), "unfinished file", " left out (.tmp)", false },
    { COUNT(folders), "folder", " not looked into (name a folder to read it)", false },
    { COUNT(gone), "file", " removed before it was read", true },
#undef COUNT
};
#define KINDS (sizeof kinds / sizeof *kinds)

static uint64_t count_of(const struct reader_counts *counts, size_t kind)
{
    return *(const uint64_t *)(const void *)((const char *)counts + kinds[kind].count);
}

bool leftout_next(const struct reader_counts *counts, size_t *at, char words[LEFTOUT_SIZE], bool *is_missed)
{
    while (*at < KINDS && !count_of(counts, *at))
        ++*at;
    if (*at == KINDS)
        return false;
    uint64_t count = count_of(counts, *at);
    snprintf(words, LEFTOUT_SIZE, "%" PRIu64 " %s%s%s", count, kinds[*at].before, tool_plural(count), kinds[*at].after);
    *is_missed = kinds[(*at)++].is_missed;
    return true;
}

void leftout_complain(const struct reader *reader, const char *title)
{
    char line[KINDS * LEFTOUT_SIZE] = "", words[LEFTOUT_SIZE];
    size_t length = 0;
    bool is_missed;
    for (size_t at = 0; leftout_next(reader_counts(reader), &at, words, &is_missed);)
        if (is_missed)
            length += (size_t)snprintf(line + length, sizeof line - length, "%s%s", length ? "; " : "", words);
    if (length)
        tool_complain("%s%s", title, line);
}
