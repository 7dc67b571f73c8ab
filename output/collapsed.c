/* SPDX-License-Identifier: MIT
 *
 * collapsed: one line a stack, as the spool's own files have them, and as
 * flamegraph.pl and its kin read them.
 */
#include "output/conversion.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "output/collapsed.h"
#include "output/human.h"
#include "output/stacks.h"
#include "output/tool.h"

/* One frame as it stands in a line. */
static char *frame_make(struct frame_text text, enum collapsed_bytes bytes)
{
    size_t name_length = strlen(text.name), place_length = strlen(text.place);
    char *frame = tool_alloc(name_length + place_length + sizeof " ()", 1);
    memcpy(frame, text.name, name_length);
    if (place_length)
        sprintf(frame + name_length, " (%s)", text.place);
    if (bytes == COLLAPSED_AS_THEY_ARE)
        return frame;
    char *clean = human_text(frame, strlen(frame), 0, false);
    free(frame);
    return clean;
}

static void put_stack(FILE *stream, const struct stacks *stacks, char *const *texts)
{
    for (size_t at = 0; at < stacks->depth; at++) {
        if (at)
            putc_unlocked(';', stream);
        fputs_unlocked(texts[stacks->frames[at]], stream);
    }
    fprintf(stream, " %" PRIu64 "\n", stacks->count);
}

uint64_t collapsed_put(FILE *stream, const struct trie *trie, const struct frames *frames, enum collapsed_bytes bytes)
{
    uint32_t count = frames_count(frames);
    char **texts = tool_alloc(count, sizeof *texts); /* a frame is in many stacks */
    struct stacks stacks;
    uint64_t lines = 0;
    for (uint32_t frame = 0; frame < count; frame++)
        texts[frame] = frame_make(frames_text(frames, frame), bytes);
    stacks_open(&stacks, trie, frames);
    for (; stacks_next(&stacks); lines++)
        put_stack(stream, &stacks, texts);
    stacks_close(&stacks);
    for (uint32_t frame = 0; frame < count; frame++)
        free(texts[frame]);
    free(texts);
    return lines;
}

/* One metric: lines do not say which they are of. */
void collapsed_write(FILE *stream, struct conversion *conversion)
{
    for (size_t at = 0; at < conversion->metrics_count && !conversion->sum; at++) {
        struct trie *trie = conversion_read_all(conversion, conversion->metrics[at]);
        collapsed_put(stream, trie, conversion->frames, COLLAPSED_VALID);
        trie_free(trie);
    }
}
