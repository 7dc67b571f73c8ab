/* SPDX-License-Identifier: MIT
 *
 * filter: which stacks are read, and which of their frames: --only and --hide.
 *
 *   --only PATTERN  keeps stacks in which a frame matches; given more than once, one
 *                   that matches any of them is enough
 *   --hide PATTERN  takes matching frames out of stacks: what they have goes to their
 *                   caller, so sums stay what they were. A stack of which nothing is
 *                   left is [hidden]
 *
 * Stacks are chosen before frames are taken out of them.
 *
 * A pattern is a shell's (glob(7): * ? [a-z]; a backslash is nothing special, as in
 * the spool), fits as a whole, and is compared with
 *
 *   Session.get                  the function, as reports show it, and without those
 *                                around it (inner of outer.<locals>.inner)
 *   requests/sessions.py         its file; sessions.py where the pattern has no "/"
 *   requests.sessions.Session.get  module and function
 *
 * where a file below site-packages or the standard library is named from there on.
 * The module of another absolute path is any end of it: views.index, shop.views.index
 * and so on for /srv/shop/views.py. Of a marker and a pattern that are both in square
 * brackets what is between these is compared: [ready], [exception *].
 *
 * Each distinct frame is compared once. [tool] only.
 */
#ifndef APROF_OUTPUT_FILTER_H
#define APROF_OUTPUT_FILTER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define FILTER_HIDDEN "[hidden]"

enum filter_what { FILTER_ONLY, FILTER_HIDE, FILTER_KINDS };

/* For each command that takes them: rows for getopt_long, whose value filter_option
 * takes, and the text for --help. */
#define FILTER_OPTION 256 /* beyond any letter */
#define FILTER_OPTIONS \
    { "only", required_argument, NULL, FILTER_OPTION + FILTER_ONLY }, { "hide", required_argument, NULL, FILTER_OPTION + FILTER_HIDE }
#define FILTER_HELP \
    "        --only PATTERN   only stacks in which a frame matches; shares are of these\n" \
    "        --hide PATTERN   leaves out frames that match; what they have goes to their\n" \
    "                         callers\n"
#define FILTER_HELP_PATTERN \
    "    PATTERN is as in a shell (* ? [a-z]), must fit as a whole, and is tried on each\n" \
    "    frame's function (Session.get), its file (requests/sessions.py, sessions.py) and\n" \
    "    both as module.function (requests.sessions.Session.get); one in square brackets\n" \
    "    is a marker ([ready]). --only and --hide can be given several times.\n"

struct filter;

struct filter *filter_new(void);
void filter_free(struct filter *filter);

/* option: FILTER_OPTION and what. The pattern stays the caller's. False, having said
 * so, when it is empty. */
bool filter_option(struct filter *filter, int option, const char *pattern);
bool filter_add(struct filter *filter, enum filter_what what, const char *pattern);
bool filter_is_used(const struct filter *filter);
/* The patterns of that kind in their order, NULL past the last. */
const char *filter_pattern(const struct filter *filter, enum filter_what what, size_t at);
/* "a or b" of them; empty where there are none. Returns buffer. */
char *filter_describe(const struct filter *filter, enum filter_what what, char *buffer, size_t size);

/* Whether the pattern fits a frame as it stands in a stack. */
bool filter_fits(const char *pattern, const char *frame, size_t length);

/* One stack with its count. False: it is not kept. Else what is left of it, valid until
 * the next call. */
bool filter_stack(struct filter *filter, const char **stack, size_t *length, uint64_t count);

/* What all stacks had, kept or not, since the last call. */
uint64_t filter_take_whole(struct filter *filter);

#endif
