/* SPDX-License-Identifier: MIT
 *
 * document: what the JSON of all reading programs shares.
 *
 * [tool] only.
 */
#ifndef APROF_OUTPUT_DOCUMENT_H
#define APROF_OUTPUT_DOCUMENT_H

#include <jansson.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

struct document_count {
    const char *key;
    uint64_t count;
};

/* What JSON has no room for (beyond 63 bits) is the largest that it has. */
json_t *document_number(uint64_t count);
/* Text of any bytes, what is not UTF-8 as \xNN; null for NULL. */
json_t *document_text(const char *text);
void document_counts(json_t *object, const struct document_count *counts, size_t count);
/* Any value, in as few characters as there are; takes it. */
void document_put(FILE *stream, json_t *value);
/* On stdout, indented; takes the document. */
void document_print(json_t *document);

#endif
