/* SPDX-License-Identifier: MIT
 *
 * page: a flame graph as one HTML file that fetches nothing: the template that
 * `make` puts together from output/flame/ and d3-flame-graph, with one JSON object in it.
 *
 *   aprof     version of this program
 *   format    1; changes when a key changes its meaning, not when keys come
 *   title     of the page
 *   facts     [text]: what was covered, and how well
 *   nothing   only when there is nothing to show: why
 *   sides     only when two profiles are compared: [name of NEW, name of BASE]
 *   packages  [text]
 *   places    [text]: paths, or path:line
 *   package   [number of a package] by place
 *   names     [text] by frame, a frame being a function, a line of it, or a marker
 *   place     [number of a place, -1: none] by frame
 *   loops     [frame]: an event loop's own
 *   metrics   [{name, unit, what, up, frame, self, base}]
 *
 * unit is "us" or "bytes". up, frame, self and base (only with sides) are arrays
 * with a row a node, in the order of a walk from the root that comes to each node
 * before those below it:
 *
 *   up        how many levels its parent is above the node that came before (before the
 *             first came a root that has no row); 0: that one is its parent
 *   frame     number of its frame; siblings come in its order
 *   self      what the stacks that end here have in NEW
 *   base      ... in BASE. The page compares shares of the two sums, so the sums need
 *             not be alike; a node that is in one of them only has 0 in the other.
 *
 * Strings are valid UTF-8 without control characters (anything else is written
 * \xNN), and "<" is never in the text of the JSON, so nothing in them can end
 * the script element that holds it.
 *
 * [tool] only.
 */
#ifndef APROF_OUTPUT_PAGE_H
#define APROF_OUTPUT_PAGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include "output/frames.h"
#include "output/kind.h"
#include "output/trie.h"

struct page_metric {
    const char *name;
    const struct kind *kind;
    const struct trie *trie;
};

struct page {
    const char *title;
    const char *const *facts; /* may be NULL, like the next three */
    size_t facts_count;
    const char *nothing;
    const char *new_name, *base_name; /* both: the tries have two sides */
    const struct frames *frames;      /* of all tries */
    const struct page_metric *metrics;
    size_t metrics_count;
};

/* False, after one line on stderr, in a program that was built without the template. */
bool page_possible(void);

/* The object alone. */
void page_write_profile(FILE *stream, const struct page *page);

/* The page; nothing without the template. What fails to be written the stream says (ferror). */
void page_write(FILE *stream, const struct page *page);

/* ... into that file, as output/destination.h writes it. */
bool page_write_file(const char *path, const struct page *page);

#endif
