/* SPDX-License-Identifier: MIT
 *
 * text: names as they stand in the spool.
 *
 * UTF-8 whatever the locale. In names and paths the characters ';', '\',
 * control characters (0x00-0x1f, 0x7f, C1) and bytes that are not UTF-8 are
 * written as \xNN (lower-case digits); a lone surrogate is its three bytes so
 * written. A name longer than 1,000 bytes is cut at a character (and not within
 * an escape) and closed with '~' and eight hexadecimal digits of a hash of the
 * whole. In a path, " (" is written "\x20(", so that function and place split at
 * the last " (". Markers are in square brackets and made by the caller.
 *
 * Runs in: [sampler] [tool], folding also in [handler]. No allocation. Each function writes at most size
 * bytes without a NUL and returns the length (0 when size is too small for it:
 * TEXT_NAME_MAX is always enough).
 */
#ifndef APROF_SAMPLER_TEXT_H
#define APROF_SAMPLER_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define TEXT_NAME_LONGEST 1000
#define TEXT_NAME_MAX (TEXT_NAME_LONGEST + 16)
#define TEXT_FRAME_MAX (2 * TEXT_NAME_MAX + 32)

/* A str's characters (kind 1, 2 or 4 bytes each) to an escaped name. */
size_t text_name(char *out, size_t size, const void *data, size_t length, int kind);
size_t text_path(char *out, size_t size, const void *data, size_t length, int kind);

/* Names that are told apart by numbers alone are one (fold): each run of the digits 0 to 9
 * is '*'. The characters may come in pieces; out has TEXT_FOLDED_MAX bytes. What is longer
 * than TEXT_FOLDED_LONGEST bytes ends as other long names do. Also in handlers. */
#define TEXT_FOLDED_LONGEST 103
#define TEXT_FOLDED_MAX (TEXT_FOLDED_LONGEST + 9)
struct text_folding {
    char *out;
    uint32_t used, hash;
    bool cut, fold, in_digits;
};
void text_fold_begin(struct text_folding *folding, char *out, bool fold);
void text_fold_more(struct text_folding *folding, const void *data, size_t length, int kind);
/* The length of it all. */
size_t text_fold_end(struct text_folding *folding);

/* The number's digits, at most TEXT_DIGITS; how many. */
#define TEXT_DIGITS 20
size_t text_decimal(char *out, uint64_t value);

/* Equal for equal bytes, and hardly ever for others (FNV-1a). Never 0. */
uint64_t text_hash(const char *text, size_t length);

/* How paths are shown (APROF_PATHS). prefixes: directories to take away
 * (standard library, start directory ...); below "site-packages/" or
 * "dist-packages/" the rest is kept, else below "lib/python3.N/", else below the
 * start directory, else the path as it is. `full` paths are as the code object
 * has them. */
struct text_paths {
    bool full;
    const char *start_directory; /* absolute, UTF-8 bytes as given by getcwd; may be NULL */
};
/* The part of an escaped path that is to be shown: returns its offset in path. */
size_t text_shorten(const struct text_paths *paths, const char *path, size_t length);

/* "qualname (path:line)". name and path are escaped already. */
size_t text_frame(char *out, size_t size, const char *name, size_t name_length, const char *path, size_t path_length, int32_t line);

#endif
