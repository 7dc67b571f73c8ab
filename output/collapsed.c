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

static void put_text(FILE *stream, const char *text, enum collapsed_bytes bytes)
{
    char *clean = bytes == COLLAPSED_VALID ? human_text(text, strlen(text), 0, false) : NULL;
    fputs(clean ? clean : text, stream);
    free(clean);
}

static void put_frame(FILE *stream, struct frame_text text, enum collapsed_bytes bytes)
{
    put_text(stream, text.name, bytes);
    if (!*text.place)
        return;
    fputs(" (", stream);
    put_text(stream, text.place, bytes);
    putc(')', stream);
}

uint64_t collapsed_put(FILE *stream, const struct trie *trie, const struct frames *frames, enum collapsed_bytes bytes)
{
    struct stacks stacks;
    uint64_t lines = 0;
    stacks_open(&stacks, trie, frames);
    for (; stacks_next(&stacks); lines++) {
        for (size_t at = 0; at < stacks.depth; at++) {
            fputs(at ? ";" : "", stream);
            put_frame(stream, frames_text(frames, stacks.frames[at]), bytes);
        }
        fprintf(stream, " %" PRIu64 "\n", stacks.count);
    }
    stacks_close(&stacks);
    return lines;
}

/* One metric: lines do not say which they are of. */
void collapsed_write(FILE *stream, struct conversion *conversion)
{
    for (size_t at = 0; at < conversion->metrics_count && !conversion->sum; at++) {
        struct trie *trie = conversion_read(conversion, conversion->metrics[at], CONVERSION_ALL);
        collapsed_put(stream, trie, conversion->frames, COLLAPSED_VALID);
        trie_free(trie);
    }
}
