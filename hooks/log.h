/* SPDX-License-Identifier: MIT
 *
 * log: lines on stderr, one a kind, rate-limited.
 *
 * Our own thread has no stderr (its descriptors 0-2 are /dev/null), so what it
 * has to say is queued and written by our next code on an application thread.
 * Lines look like "aprof: text\n", one write(2) each, at most 512 bytes. A kind
 * speaks once a minute at most and 20 times in all; silenced lines are counted,
 * and the kind's next line says how many. (LOG_SETTING and LOG_SPOOL: 20 in all, at any pace,
 * for bad settings come together and each deserves its line.)
 *
 * Formatting is a subset of printf: %s %d %u %ld %lu %zu %x %lx %c %% only (no
 * width or precision), so that nothing of libc's stdio or locale is needed.
 *
 * Runs in: any context. log_line from [sampler] queues, elsewhere it writes.
 */
#ifndef APROF_HOOKS_LOG_H
#define APROF_HOOKS_LOG_H

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>

enum log_level { LOG_QUIET, LOG_WARN, LOG_INFO, LOG_DEBUG };

/* Kinds are what rate-limiting and counting go by: one bit of the process each. */
enum log_kind {
    LOG_SETTING, LOG_PYTHON, LOG_SPOOL, LOG_SELFTEST, LOG_SIGNAL, LOG_THREAD,
    LOG_MEMORY, LOG_HOOK, LOG_STATE, LOG_KINDS
};

void log_set_level(enum log_level level);

/* Marks the calling thread as ours: its lines are queued from now on. */
void log_queue_on_this_thread(void);

void log_line(enum log_level level, enum log_kind kind, const char *format, ...) __attribute__((format(printf, 3, 4)));

/* Writes what is queued. [interposer] [handler] [fork]; cheap when empty (one
 * load). Where stderr takes nothing just now (a full pipe), it stays queued. */
void log_flush(void);

/* [application thread] One write to stderr, as it is; nobody there to read it
 * raises no SIGPIPE. */
void log_write(const char *text, size_t length);

/* The formatter itself, for others that need text without stdio. Always
 * terminates; returns the length that was written. */
size_t log_format(char *buffer, size_t size, const char *format, ...) __attribute__((format(printf, 3, 4)));
size_t log_vformat(char *buffer, size_t size, const char *format, va_list args);

#endif
