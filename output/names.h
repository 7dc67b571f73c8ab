/* SPDX-License-Identifier: MIT
 *
 * names: byte strings to small numbers and back. Each distinct string is stored
 * once and numbered from 0 in the order of its first sight.
 *
 * [tool] only.
 */
#ifndef APROF_OUTPUT_NAMES_H
#define APROF_OUTPUT_NAMES_H

#include <stddef.h>
#include <stdint.h>

#define NAMES_NONE UINT32_MAX

struct names;

struct names *names_new(void);
void names_free(struct names *names);

/* The number of this string, a new one at first sight. */
uint32_t names_add(struct names *names, const char *text, size_t length);
/* The number of this string, or NAMES_NONE. */
uint32_t names_find(const struct names *names, const char *text, size_t length);
/* NUL-terminated; stays where it is until names_free. length may be NULL. */
const char *names_text(const struct names *names, uint32_t number, size_t *length);
uint32_t names_count(const struct names *names);

#endif
