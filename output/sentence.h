/* SPDX-License-Identifier: MIT
 *
 * sentence: "label     first, second; ..." on stdout as it grows; on a terminal broken
 * between its parts, and indented below the first.
 *
 * Begins with label and between set, the rest 0. A sentence without a part prints
 * nothing. [tool] only.
 */
#ifndef APROF_OUTPUT_SENTENCE_H
#define APROF_OUTPUT_SENTENCE_H

#include "output/human.h"

#define SENTENCE_LABEL_COLUMNS 11
#define SENTENCE_PART_MAX 2304 /* bytes; what is beyond is cut off */

struct sentence {
    const char *label, *between; /* label: NULL once it is printed */
    int column;
    enum human_style style; /* of what is added next, where there is colour */
};

/* Bytes of any kind come out as human_text writes them. */
void sentence_add(struct sentence *sentence, const char *format, ...) __attribute__((format(printf, 2, 3)));
void sentence_end(const struct sentence *sentence);

#endif
