/* SPDX-License-Identifier: MIT
 *
 * The tallies have functions, a flame graph needs their stacks.
 */
#include "output/diff_flame.h"

#include <stdio.h>
#include <stdlib.h>

#include "output/frames.h"
#include "output/page.h"
#include "output/tool.h"
#include "output/trie.h"

struct reading {
    struct trie *trie;
    enum trie_side side;
};

static int line_add(void *context, const struct reader_line *line)
{
    struct reading *reading = context;
    trie_add(reading->trie, reading->side, line->stack, line->length, line->count);
    return 0;
}

static struct page_metric metric_read(const struct diff *diff, const struct diff_section *section, struct frames *frames)
{
    static const enum trie_side sides[COMPARE_SIDES] = { [COMPARE_BASE] = TRIE_BASE, [COMPARE_NEW] = TRIE_NEW };
    struct trie *trie = trie_new(frames);
    for (int side = 0; side < COMPARE_SIDES; side++) {
        struct reading reading = { trie, sides[side] };
        reader_each(diff->sides[side].reader, section->metric, line_add, &reading);
    }
    return (struct page_metric){ section->metric, section->kind, trie };
}

static size_t facts_make(const struct diff *diff, const char **facts, char texts[COMPARE_SIDES][256])
{
    size_t count = 0;
    for (int side = 0; side < COMPARE_SIDES; side++) {
        const struct diff_side *from = &diff->sides[side];
        snprintf(texts[side], sizeof texts[side], "%s is %s%s, %u run%s", from->title, from->paths[0],
                 from->paths_count > 1 ? " and others" : "", from->quality->runs, tool_plural(from->quality->runs));
        facts[count++] = texts[side];
    }
    for (size_t at = 0; at < diff->notes_count; at++)
        facts[count++] = diff->notes[at];
    return count;
}

bool diff_flame_write(const struct diff *diff, const char *path)
{
    char texts[COMPARE_SIDES][256];
    const char **facts = tool_alloc(COMPARE_SIDES + diff->notes_count, sizeof *facts);
    struct frames *frames = frames_new(diff->by == TALLY_LINE);
    struct page_metric *metrics = tool_alloc(diff->sections_count, sizeof *metrics);
    for (size_t at = 0; at < diff->sections_count; at++)
        metrics[at] = metric_read(diff, &diff->sections[at], frames);
    const struct page page = {
        .title = "aprof diff",
        .facts = facts,
        .facts_count = facts_make(diff, facts, texts),
        .new_name = diff->sides[COMPARE_NEW].title,
        .base_name = diff->sides[COMPARE_BASE].title,
        .frames = frames,
        .metrics = metrics,
        .metrics_count = diff->sections_count,
    };
    bool good = page_write_file(path, &page);
    for (size_t at = 0; at < diff->sections_count; at++)
        trie_free((struct trie *)metrics[at].trie);
    frames_free(frames);
    free(metrics);
    free(facts);
    return good;
}
