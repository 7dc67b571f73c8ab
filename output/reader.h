/* SPDX-License-Identifier: MIT
 *
 * reader: spools as callbacks, one a stack. Takes directories and single files,
 * sealed and live, of any number of processes, also while they are written to.
 *
 * Use: reader_new, reader_add for each path, reader_open once, then walk windows
 * and stacks as often as wanted.
 *
 * - A file that is there sealed and live is read once, sealed. A live file that
 *   is gone when opened is looked for again under its sealed name. Where a live
 *   window has gone by the time of reader_open, its directory is listed again.
 * - A window that is met twice (the same directory given twice, a copy of it) is
 *   read once: host, pid, start and number name it.
 * - Live files are read up to their last newline. A line that is no stack and
 *   count is left out and counted. Equal lines come as they stand: they add up.
 * - The sum of a metric's counts over all windows has 63 bits: whoever adds counts
 *   up need not look.
 * - A metric that is a level (see kind.h) is read from each process's last
 *   window only.
 *
 * Failure: what cannot be read costs one line on stderr and is counted in
 * reader_failures; everything else is still read.
 *
 * [tool] only. What is handed out belongs to the reader, unless stated.
 */
#ifndef APROF_OUTPUT_READER_H
#define APROF_OUTPUT_READER_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "output/filter.h"

#define READER_METADATA_BYTES (64u << 20) /* of one window; beyond it is none. 150,000 processes that were merged into one */

enum reader_state {
    READER_SEALED, /* the window is over and final */
    READER_OPEN,   /* its process writes to it */
    READER_DEAD,   /* its process ended without sealing it */
};

struct reader_window {
    const char *host; /* as in the file's name; "" for a file not named by a spool */
    uint64_t pid;
    uint64_t start_us; /* of the process */
    uint64_t number;   /* of the window within it */
    uint32_t process;  /* windows of one process share it; counted from 0 in the order of their starts */
    enum reader_state state;
    const json_t *metadata; /* NULL: there is none, or it cannot be parsed */
};

struct reader_line {
    const struct reader_window *window;
    const char *metric;
    const char *stack; /* frames joined by ';', root first; not terminated */
    size_t length;
    uint64_t count;
};

struct reader_counts {
    uint64_t files, lines;
    uint64_t lines_bad;  /* no count, a NUL, no stack, a count that takes the metric's sum beyond 63 bits */
    uint64_t tails;      /* files that end in an unfinished line */
    uint64_t repeated;   /* files left out because their window was met before */
    uint64_t unfinished; /* single files left out: a window being sealed */
    uint64_t folders;    /* in the directories given; they are not looked into (runs of their own, as a rule) */
    uint64_t gone;       /* taken away between listing and reading */
};

struct reader;

struct reader *reader_new(void);
void reader_free(struct reader *reader);

void reader_add(struct reader *reader, const char *path);
/* What stacks go through on their way to whoever reads them; stays the caller's, NULL:
 * nothing. One that holds no pattern is nothing. */
void reader_filter(struct reader *reader, struct filter *filter);
const struct filter *reader_filtered(const struct reader *reader);
/* Reads the metadata and puts the windows in order: by process, then by number. */
void reader_open(struct reader *reader);

uint32_t reader_windows(const struct reader *reader);
const struct reader_window *reader_window(const struct reader *reader, uint32_t index);
uint32_t reader_processes(const struct reader *reader);

/* Names of the metrics that have files: cpu, wall, then by name. NULL past the last. */
const char *reader_metric(const struct reader *reader, uint32_t index);

/* Each line of one metric, window by window. Stops when line returns nonzero
 * and returns that. */
int reader_each(struct reader *reader, const char *metric, int (*line)(void *context, const struct reader_line *line),
                void *context);

/* The same of one window; whether it has that metric at all. */
int reader_window_each(struct reader *reader, uint32_t index, const char *metric,
                       int (*line)(void *context, const struct reader_line *line), void *context);
bool reader_window_has(const struct reader *reader, uint32_t index, const char *metric);

/* What a reader_each of it reads (progress.h is told of each byte), as it is now. */
uint64_t reader_bytes(const struct reader *reader, const char *metric);

/* Paths or files that could not be read. */
uint32_t reader_failures(const struct reader *reader);
/* Grows with each reader_each. */
const struct reader_counts *reader_counts(const struct reader *reader);

#endif
