/* SPDX-License-Identifier: MIT
 *
 * Names in a spool are any bytes; JSON is UTF-8.
 */
#include "output/document.h"

#include <stdlib.h>
#include <string.h>

#include "output/human.h"

json_t *document_number(uint64_t count)
{
    return json_integer((json_int_t)(count > INT64_MAX ? INT64_MAX : count));
}

json_t *document_text(const char *text)
{
    if (!text)
        return json_null();
    char *clean = human_text(text, strlen(text), 0, false);
    json_t *value = json_string(clean);
    free(clean);
    return value;
}

void document_counts(json_t *object, const struct document_count *counts, size_t count)
{
    for (size_t at = 0; at < count; at++)
        json_object_set_new(object, counts[at].key, document_number(counts[at].count));
}

void document_put(FILE *stream, json_t *value)
{
    json_dumpf(value, stream, JSON_COMPACT | JSON_ENCODE_ANY);
    json_decref(value);
}

void document_print(json_t *document)
{
    json_dumpf(document, stdout, JSON_INDENT(2) | JSON_REAL_PRECISION(6));
    putchar('\n');
    json_decref(document);
}
