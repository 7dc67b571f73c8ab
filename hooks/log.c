/* SPDX-License-Identifier: MIT
 *
 * A line is made on the caller's stack and goes out in one write, so that lines
 * of several threads never mix. The queue is a handful of fixed slots; each is
 * claimed by compare-and-swap, so producers and the one who flushes never wait.
 */
#include "hooks/log.h"
#include "hooks/clock.h"
#include "hooks/raw.h"
#include "hooks/real.h"

#include <errno.h>
#include <poll.h>      /* struct pollfd */
#include <signal.h>    /* SIGPIPE */
#include <stdatomic.h>
#include <stdint.h>
#include <string.h>    /* memcpy */
#include <time.h>      /* struct timespec */

#define LINE_BYTES 512
#define QUEUE_LINES 16
#define KIND_LINES 20             /* of one kind in the life of the process */
#define KIND_INTERVAL_NS 60000000000u
#define KERNEL_MASK_BYTES 8

enum slot_state { EMPTY, FILLING, FULL, TAKEN };

struct line {
    _Atomic int state;
    pid_t pid;      /* who queued it: a forked child must not say it again */
    uint32_t order;
    uint16_t length;
    char text[LINE_BYTES];
};

static struct line queue[QUEUE_LINES];
static _Atomic uint32_t queued, next_order;
static _Atomic int level_shown = LOG_WARN;
static __thread bool is_ours;

static struct {
    _Atomic uint32_t lines, silenced;
    _Atomic uint64_t last_ns; /* 0: never spoke */
} kinds[LOG_KINDS];

/* ---- formatting ---- */

struct text {
    char *bytes;
    size_t size, length;
};

static void put(struct text *text, char c)
{
    if (text->length + 1 < text->size)
        text->bytes[text->length++] = c;
}

static void put_string(struct text *text, const char *string)
{
    for (string = string ? string : "(null)"; *string; string++)
        put(text, *string);
}

static void put_number(struct text *text, uint64_t value, unsigned base)
{
    char digits[20]; /* 2^64 has twenty */
    int n = 0;
    do
        digits[n++] = "0123456789abcdef"[value % base];
    while ((value /= base) != 0);
    while (n > 0)
        put(text, digits[--n]);
}

static void put_signed(struct text *text, int64_t value)
{
    if (value < 0)
        put(text, '-');
    put_number(text, value < 0 ? -(uint64_t)value : (uint64_t)value, 10);
}

static void put_long(struct text *text, char conversion, va_list *args)
{
    if (conversion == 'd')
        put_signed(text, va_arg(*args, long));
    else
        put_number(text, va_arg(*args, unsigned long), conversion == 'x' ? 16 : 10);
}

/* One conversion; format points behind the '%'. Answers where it ends. */
static const char *put_conversion(struct text *text, const char *format, va_list *args)
{
    switch (*format) {
    case 's': put_string(text, va_arg(*args, const char *)); break;
    case 'c': put(text, (char)va_arg(*args, int)); break;
    case 'd': put_signed(text, va_arg(*args, int)); break;
    case 'u': put_number(text, va_arg(*args, unsigned), 10); break;
    case 'x': put_number(text, va_arg(*args, unsigned), 16); break;
    case 'l': put_long(text, *++format, args); break;
    case 'z': put_long(text, *++format, args); break; /* size_t is unsigned long here */
    default: put(text, *format); break;               /* %% */
    }
    return *format ? format + 1 : format;
}

size_t log_vformat(char *buffer, size_t size, const char *format, va_list args)
{
    struct text text = {buffer, size, 0};
    va_list copy;
    va_copy(copy, args);
    while (*format) {
        if (*format == '%')
            format = put_conversion(&text, format + 1, &copy);
        else
            put(&text, *format++);
    }
    va_end(copy);
    if (size > 0)
        buffer[text.length] = '\0';
    return text.length;
}

size_t log_format(char *buffer, size_t size, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    size_t length = log_vformat(buffer, size, format, args);
    va_end(args);
    return length;
}

/* ---- writing ---- */

/* To a pipe that nobody reads any more, write(2) raises SIGPIPE in the
 * application's thread. It is blocked meanwhile, and ours is taken back unless
 * one of the application's own was pending already. */
void log_write(const char *line, size_t length)
{
    uint64_t pipe_bit = (uint64_t)1 << (SIGPIPE - 1), before, pending = 0;
    struct timespec now = {0, 0};
    raw2(SYS_rt_sigpending, (long)&pending, KERNEL_MASK_BYTES);
    raw4(SYS_rt_sigprocmask, SIG_BLOCK, (long)&pipe_bit, (long)&before, KERNEL_MASK_BYTES);
    long result;
    do
        result = raw3(SYS_write, 2, (long)line, (long)length);
    while (result == -EINTR);
    if (result == -EPIPE && !(pending & pipe_bit))
        raw4(SYS_rt_sigtimedwait, (long)&pipe_bit, 0, (long)&now, KERNEL_MASK_BYTES);
    raw4(SYS_rt_sigprocmask, SIG_SETMASK, (long)&before, 0, KERNEL_MASK_BYTES);
}

/* A full queue loses the line; its kind counts it as silenced. */
static bool enqueue(const char *line, size_t length)
{
    for (int i = 0; i < QUEUE_LINES; i++) {
        int empty = EMPTY;
        if (!atomic_compare_exchange_strong(&queue[i].state, &empty, FILLING))
            continue;
        memcpy(queue[i].text, line, length);
        queue[i].length = (uint16_t)length;
        queue[i].pid = real_pid();
        queue[i].order = atomic_fetch_add(&next_order, 1);
        atomic_store(&queue[i].state, FULL);
        atomic_fetch_add(&queued, 1);
        return true;
    }
    return false;
}

/* Whether a write would not block: to a pipe, a line fits whenever poll says so. */
static bool is_writable(void)
{
    struct pollfd fd = {.fd = 2, .events = POLLOUT};
    return raw3(SYS_poll, (long)&fd, 1, 0) != 0; /* 0: not now; a closed pipe or descriptor answers at once */
}

/* The oldest full slot, claimed; NULL when there is none. */
static struct line *take_oldest(void)
{
    struct line *oldest = NULL;
    for (int i = 0; i < QUEUE_LINES; i++)
        if (atomic_load(&queue[i].state) == FULL && (oldest == NULL || (int32_t)(queue[i].order - oldest->order) < 0))
            oldest = &queue[i];
    int full = FULL;
    if (oldest != NULL && !atomic_compare_exchange_strong(&oldest->state, &full, TAKEN))
        return NULL; /* somebody else flushes */
    return oldest;
}

void log_flush(void)
{
    if (atomic_load_explicit(&queued, memory_order_relaxed) == 0 || is_ours || !real_owns_memory())
        return;
    pid_t pid = real_pid();
    struct line *line;
    while (is_writable() && (line = take_oldest()) != NULL) {
        if (line->pid == pid)
            log_write(line->text, line->length);
        atomic_store(&line->state, EMPTY);
        atomic_fetch_sub(&queued, 1);
    }
}

/* ---- lines ---- */

void log_set_level(enum log_level level)
{
    atomic_store(&level_shown, level);
}

void log_queue_on_this_thread(void)
{
    is_ours = true;
}

/* Bad settings are several at once, all at start, and each deserves its line; so does
 * each trouble of a disk, which output/trouble.h paces. Only their number in all is
 * bounded. */
static bool may_speak(enum log_kind kind)
{
    uint64_t now = clock_now(), last = atomic_load(&kinds[kind].last_ns);
    bool soon = kind != LOG_SETTING && kind != LOG_SPOOL && last != 0 && now - last < KIND_INTERVAL_NS;
    if (soon || atomic_load(&kinds[kind].lines) >= KIND_LINES ||
        !atomic_compare_exchange_strong(&kinds[kind].last_ns, &last, now)) {
        atomic_fetch_add(&kinds[kind].silenced, 1);
        return false;
    }
    atomic_fetch_add(&kinds[kind].lines, 1);
    return true;
}

/* Closes the line, in the place of its terminator, with how many of its kind were silenced before it. */
static size_t finish_line(char *line, size_t length, uint32_t silenced)
{
    if (silenced != 0 && length < LINE_BYTES - 40)
        length += log_format(line + length, LINE_BYTES - length, " (%u more of this kind)", silenced);
    line[length] = '\n';
    return length + 1;
}

void log_line(enum log_level level, enum log_kind kind, const char *format, ...)
{
    if (level == LOG_QUIET || (int)level > atomic_load_explicit(&level_shown, memory_order_relaxed) || !may_speak(kind))
        return;
    char line[LINE_BYTES];
    va_list args;
    size_t length = log_format(line, sizeof line, "aprof: ");
    va_start(args, format);
    length += log_vformat(line + length, sizeof line - length, format, args);
    va_end(args);
    length = finish_line(line, length, atomic_exchange(&kinds[kind].silenced, 0));
    if (!is_ours && is_writable()) /* else the application would wait for who reads */
        log_write(line, length);
    else if (!enqueue(line, length))
        atomic_fetch_add(&kinds[kind].silenced, 1);
}
