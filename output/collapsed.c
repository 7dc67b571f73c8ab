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

/* Of a spool that someone else wrote, what is not UTF-8 is put as the library puts it. */
static void put_clean(FILE *stream, const char *text)
{
    char *clean = human_text(text, strlen(text), 0, false);
    fputs(clean, stream);
    free(clean);
}

static void put_frame(FILE *stream, struct frame_text text)
{
    put_clean(stream, text.name);
    if (!*text.place)
        return;
    fputs(" (", stream);
    put_clean(stream, text.place);
    putc(')', stream);
}

void collapsed_put(FILE *stream, const struct trie *trie, const struct frames *frames)
{
    struct stacks stacks;
    stacks_open(&stacks, trie, frames);
    while (stacks_next(&stacks)) {
        for (size_t at = 0; at < stacks.depth; at++) {
            fputs(at ? ";" : "", stream);
            put_frame(stream, frames_text(frames, stacks.frames[at]));
        }
        fprintf(stream, " %" PRIu64 "\n", stacks.count);
    }
    stacks_close(&stacks);
}

/* One metric: lines do not say which they are of. */
void collapsed_write(FILE *stream, struct conversion *conversion)
{
    for (size_t at = 0; at < conversion->metrics_count && !conversion->sum; at++) {
        struct trie *trie = conversion_read(conversion, conversion->metrics[at], CONVERSION_ALL);
        collapsed_put(stream, trie, conversion->frames);
        trie_free(trie);
    }
}
