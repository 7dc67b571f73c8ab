/* SPDX-License-Identifier: MIT
 *
 * diff_show: what `aprof diff` has found, as text, as JSON, and as Markdown for a
 * comment in a code review.
 *
 * [tool] only. On stdout.
 */
#ifndef APROF_OUTPUT_DIFF_SHOW_H
#define APROF_OUTPUT_DIFF_SHOW_H

#include <stdbool.h>
#include <stddef.h>

#include "output/compare.h"
#include "output/filter.h"
#include "output/kind.h"
#include "output/quality.h"
#include "output/reader.h"
#include "output/tally.h"

struct diff_side {
    const char *title; /* BASE, NEW */
    char **paths;
    int paths_count;
    struct reader *reader;
    struct quality *quality;
};

/* One metric. */
struct diff_section {
    const char *metric;
    const struct kind *kind;
    struct tally *tallies[COMPARE_SIDES];
    struct compare *compare;
    uint64_t whole[COMPARE_SIDES]; /* before --only; where nothing is left out, 0 */
};

/* A share that has grown too much. */
struct diff_failure {
    const struct diff_section *section;
    const struct compare_row *row;
    int amount;
};

struct diff {
    enum tally_by by;
    size_t top;       /* 0: all */
    bool gates;       /* --fail-over was given */
    double fail_over; /* points */
    struct filter *filter;
    struct diff_side sides[COMPARE_SIDES];
    struct diff_section *sections;
    size_t sections_count, sections_room;
    size_t tests;
    char **notes; /* what the sides do not have in common, and what was chosen of them */
    size_t notes_count, notes_room;
    struct diff_failure *failures; /* the worst first */
    size_t failures_count, failures_room;
    bool is_undecided; /* too few samples, or a bound that the gate needs is not known */
};

void diff_show_text(const struct diff *diff);
void diff_show_json(const struct diff *diff);
void diff_show_markdown(const struct diff *diff);

#endif
