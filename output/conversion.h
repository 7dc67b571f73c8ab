/* SPDX-License-Identifier: MIT
 *
 * conversion: what `aprof convert` hands to the writer of a format, and the writers.
 *
 * Each reads metric by metric (pprof and firefox: process by process within it), adds
 * up what it read, and writes that before it reads on: in memory are the distinct
 * frames of all and the distinct stacks of one part, neither the input nor the output.
 * A part without time is left out where others have some; when none has, the last is
 * there with no stack in it, for viewers that do not take in a profile of nothing.
 *
 * [tool] only.
 */
#ifndef APROF_OUTPUT_CONVERSION_H
#define APROF_OUTPUT_CONVERSION_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "output/frames.h"
#include "output/quality.h"
#include "output/reader.h"
#include "output/trie.h"

struct conversion {
    struct reader *reader;
    const struct quality *quality;
    const char *const *metrics; /* one at least; which of them have time shows in reading */
    size_t metrics_count;
    bool by_line;               /* a frame is a line of a function, else a function */
    struct frames *frames;      /* of all that was read */
    uint64_t sum;               /* of all that was read; no unit, but for being 0 */
};

/* Of a process by its number in the reader. One that stands for several, which `aprof
 * merge` made one of, has no host and pid. */
struct conversion_process {
    const char *host, *program; /* host "": not one of a spool; program NULL: not known */
    uint64_t pid;
    uint64_t start_us, end_us;  /* 0: not known */
    bool is_open;
    uint32_t window, windows_end; /* its windows in the reader: the first, and behind the last */
};
struct conversion_process conversion_process(const struct conversion *conversion, uint32_t process);

/* What windows up to that end have of a metric; of all: all. The caller frees it. */
struct trie *conversion_read(struct conversion *conversion, const char *metric, uint32_t window, uint32_t windows_end);
struct trie *conversion_read_all(struct conversion *conversion, const char *metric);

/* From the start of the first to the end of the last of these windows, as they say
 * themselves; 0 and 0: they do not. */
struct quality_span conversion_span(const struct conversion *conversion, uint32_t window, uint32_t windows_end);

/* Whether a part that has so much is to be in the output; is_last: no other comes after it. */
bool conversion_is_shown(const struct conversion *conversion, uint64_t sum, bool is_last);

/* The program that all processes run; "aprof" when they run several. */
const char *conversion_title(const struct conversion *conversion);
/* A metric's number as it goes into signed 64 bits. */
int64_t conversion_number(uint64_t count);

/* The writers. pprof_write is NULL in a program that was built without protobuf-c. */
void collapsed_write(FILE *stream, struct conversion *conversion);
void speedscope_write(FILE *stream, struct conversion *conversion);
void firefox_write(FILE *stream, struct conversion *conversion);
void pprof_write(FILE *stream, struct conversion *conversion) __attribute__((weak));

#endif
