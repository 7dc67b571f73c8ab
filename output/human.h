/* SPDX-License-Identifier: MIT
 *
 * human: numbers and names as people read them: units, shares, columns, colour.
 *
 * [tool] only. Each function writes into the caller's buffer and returns it.
 */
#ifndef APROF_OUTPUT_HUMAN_H
#define APROF_OUTPUT_HUMAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define HUMAN_SIZE 32 /* enough for any number below */

/* 950 us, 12.3 ms, 4.56 s, 12.3 min, 4.5 h */
char *human_time(char buffer[HUMAN_SIZE], uint64_t us);
/* 950 B, 1.5 KiB, 2.25 MiB ... */
char *human_bytes(char buffer[HUMAN_SIZE], uint64_t bytes);
/* 12.3%; of nothing: "-". Never 0.0% for something: <0.1%. */
char *human_share(char buffer[HUMAN_SIZE], double part, double whole);
/* 2023-11-14 22:13:20 UTC */
char *human_moment(char buffer[HUMAN_SIZE], uint64_t us);

/* Columns to keep to: those that were asked for, else of the terminal on stdout
 * (COLUMNS wins); 0: no limit, it is none. */
int human_columns(void);
void human_columns_ask(int columns);
/* stdout is a terminal that shows colours, and NO_COLOR is not set. */
bool human_wants_colour(void);

/* What is in that style goes between the two; "" without colour, and for HUMAN_PLAIN. */
enum human_style { HUMAN_PLAIN, HUMAN_STRONG, HUMAN_FAINT, HUMAN_WARNING, HUMAN_BAD, HUMAN_GOOD };
const char *human_on(bool colour, enum human_style style);
const char *human_off(bool colour, enum human_style style);

/* Copies text of any bytes as valid UTF-8 without control characters: what
 * breaks that is written \xNN. At most columns wide (0: no limit); what is
 * longer loses its start (tail true) or end, with "..." instead. Returns
 * memory that the caller frees. */
char *human_text(const char *text, size_t length, int columns, bool keep_tail);
/* Columns that the (valid) text takes. */
int human_width(const char *text);

#endif
