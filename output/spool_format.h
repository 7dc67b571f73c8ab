/* SPDX-License-Identifier: MIT
 *
 * spool_format: what stands in a spool directory. The whole contract between
 * the writer (output/spool.c) and every reader.
 *
 * Files, read from the right:
 *
 *   aprof.HOST.PID.START.SEQ.METRIC.collapsed         stacks of a sealed window
 *   aprof.HOST.PID.START.SEQ.METRIC.collapsed.live    ... of the open window
 *   aprof.HOST.PID.START.SEQ.METRIC.collapsed.tmp     being sealed: readers ignore it
 *   aprof.HOST.PID.START.SEQ.json[.live|.tmp]         metadata of the same window
 *   .gitignore  .aprof.lock                           "*"; lock for whoever takes old windows away
 *   aprof.HOST.PID.START.ask                          empty: somebody asks that process for a dump
 *   aprof.HOST.PID.START.dump[.tmp]                   its answer (output/answer.h)
 *
 *   HOST    host name, characters outside [A-Za-z0-9-] written as _
 *   PID     decimal; proves nothing alone, containers repeat pids
 *   START   microseconds since the epoch at which the process began
 *   SEQ     window number, at least six digits, from 000000
 *   METRIC  a name of sampler/metrics.inc: lower-case letters, digits, _
 *
 * A collapsed file holds lines and nothing else:
 *
 *   line    = frame *( ";" frame ) " " count LF       root first, UTF-8
 *   count   = 1*20DIGIT                               us or bytes, decimal, may have leading zeros
 *   frame   = name " (" path ":" line-number ")"      split at the last " ("
 *           | "[" text "]"                            a marker or a label
 *
 *   written as   instead of
 *   \x3b         ;   in names and paths
 *   \x5c         \   in names and paths
 *   \xNN         a control character, a byte that is not UTF-8, a lone surrogate's bytes
 *   \x20(        " (" inside a path
 *   ~XXXXXXXX    the rest of a name longer than 1,000 bytes: hash of the whole
 *
 * A live file is valid up to its last newline at every moment. Its counts have
 * 8 to 15 digits of which the last eight lie on an 8-byte boundary and are
 * changed in place by one store. Equal lines add up: a count whose last eight digits
 * would pass 99,999,999 goes on in a new line. When a file is there sealed and live, the
 * sealed one counts, file by file. A live file that is gone when opened means:
 * list again.
 *
 * Who is alive: the owner keeps an exclusive flock on its window's live metadata
 * and renews it once a second in place. A live file belongs to a dead process
 * when that metadata file is missing, or gives a shared lock and has not changed
 * for 5 s; with "paused": true, or where locks are refused, only when it has
 * not changed for two windows and a minute. To a writer nothing else proves
 * anything; a reader does not wait where the pid, of its own namespace and boot,
 * is not there any more.
 *
 * Runs in: [sampler] [tool]. No allocation.
 */
#ifndef APROF_OUTPUT_SPOOL_FORMAT_H
#define APROF_OUTPUT_SPOOL_FORMAT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SPOOL_SCHEMA 1
#define SPOOL_HOST_MAX 64   /* Linux host names have at most 64 bytes */
#define SPOOL_METRIC_MAX 31
#define SPOOL_NAME_MAX 255  /* NAME_MAX */
#define SPOOL_LOCK_NAME ".aprof.lock"
#define SPOOL_IGNORE_NAME ".gitignore"
#define SPOOL_COUNT_MAX 99999999u /* what a live line holds that can be changed */
#define SPOOL_COUNT_DIGITS 8
#define SPOOL_METADATA_BLOCK 4096 /* live metadata is padded to a multiple of this */
#define SPOOL_SILENT_US 5000000u  /* without a change for so long and unlocked: dead */

/* Keys of the metadata in their order. KEY(name, kind): I integer, N number,
 * S string, O object, A array. */
#define SPOOL_METADATA_KEYS(KEY) \
    KEY(schema, I) KEY(run, S) KEY(pid, I) KEY(ppid, I) KEY(host, S) KEY(program, S) KEY(python, S) KEY(build, S) \
    KEY(start_us, I) KEY(end_us, I) KEY(window, I) KEY(ended, S) KEY(settings, O) KEY(tags, O) \
    KEY(pid_namespace, I) KEY(boot, S) KEY(ticks, O) KEY(rate, O) KEY(samples, I) KEY(dropped, O) \
    KEY(cpu_unseen_us, I) KEY(cpu_spread_us, I) KEY(threads_peak, I) KEY(tasks_peak, I) KEY(tasks_skipped, I) \
    KEY(children_without_sample, I) KEY(loops, A) KEY(sampler_cpu_us, I) KEY(handler_us, I) \
    KEY(process_cpu_us, I) KEY(budget, O) KEY(heap_bytes, I) KEY(reader, S) KEY(limits, O) KEY(metrics, O)
/* Only while they are so: "thread_reads": {taken,left} and "task_ticks": {...} after
 * tasks_skipped, "gil": {held_us,wait_us,unknown_us,wall_us} after loops, "clock": "coarse" before limits, "paused": true at the end. What `aprof merge`
 * wrote has "merged" too (output/merged.h). */

#define SPOOL_TICKS_KEYS(KEY) KEY(due) KEY(taken) KEY(missed)
#define SPOOL_RATE_KEYS(KEY) KEY(asked) KEY(got)
/* Reasons of dropped{}. KEY(name, lost): 0 where the sample was kept with less ancestry. */
#define SPOOL_DROPPED_KEYS(KEY) \
    KEY(torn, 1) KEY(torn_awaiter, 0) KEY(fault, 1) KEY(deadline, 1) KEY(table_full, 1) KEY(ring_full, 1) \
    KEY(late, 1) KEY(unreadable, 1) KEY(creator_unknown, 0)
#define SPOOL_ENDED_WORDS(WORD) \
    WORD(open) WORD(window) WORD(exit) WORD(exec) WORD(fork) WORD(killed) WORD(duration) WORD(error)

enum spool_state { SPOOL_SEALED, SPOOL_LIVE, SPOOL_TEMPORARY };

/* A file's name, taken apart. */
struct spool_name {
    char host[SPOOL_HOST_MAX + 1];     /* fit for names */
    char metric[SPOOL_METRIC_MAX + 1]; /* "": the metadata */
    uint64_t pid, start_us, seq;
    enum spool_state state;
};

/* False when text (NUL-terminated, no directory part) is not one of our names. */
bool spool_name_parse(const char *text, struct spool_name *name);
/* Makes the name; returns its length, or 0 when size is too small. */
size_t spool_name_format(const struct spool_name *name, char *text, size_t size);
/* Whether both belong to the same window of the same process. */
bool spool_name_same_window(const struct spool_name *a, const struct spool_name *b);
/* The names of a dump. Parsing gives host, pid and start_us; seq is UINT64_MAX. */
enum spool_dump { SPOOL_DUMP_ASK, SPOOL_DUMP_ANSWER, SPOOL_DUMP_TEMPORARY };
bool spool_dump_parse(const char *text, struct spool_name *name, enum spool_dump *which);
size_t spool_dump_format(const struct spool_name *name, enum spool_dump which, char *text, size_t size);

/* Makes a host name fit for file names; never empty. Returns the length. */
size_t spool_host_clean(const char *raw, char *host, size_t size);

/* One line without its newline: the stack's length and its count. False when it
 * is not a line (cut, empty stack, no digits, count beyond 64 bits). */
bool spool_line_parse(const char *line, size_t length, size_t *stack_length, uint64_t *count);

/* Splits a frame at its last " (": name_length bytes of name; path and its
 * length; the line number. False for markers and labels: then the whole frame
 * is the name. */
struct spool_frame {
    size_t name_length;
    const char *path;
    size_t path_length;
    uint32_t line;
};
bool spool_frame_split(const char *frame, size_t length, struct spool_frame *parts);

/* Writes text with its \xNN undone; returns the length. out may be text itself. */
size_t spool_unescape(const char *text, size_t length, char *out);

/* What is known about a live metadata file. */
enum spool_lock { SPOOL_LOCK_HELD, SPOOL_LOCK_FREE, SPOOL_LOCK_REFUSED };
struct spool_life {
    bool missing;
    enum spool_lock lock;
    bool paused;
    bool over;           /* it says how its process ended */
    uint64_t silent_us;  /* since its last change */
    uint64_t window_us;  /* how long its owner's windows last */
};
bool spool_life_is_dead(const struct spool_life *life);

/* Looks at the live metadata file of that name in the directory (takes a shared
 * lock for a moment). now_us: microseconds since the epoch. A file that cannot
 * be looked at for another reason than its absence counts as a living one's. */
bool spool_window_is_dead(int directory, const char *metadata_name, uint64_t now_us);

#endif
