/* SPDX-License-Identifier: MIT
 *
 * metadata: the JSON encoder of the preloaded library: one buffer, no locale. A
 * value that does not fit marks the whole as cut, and metadata_format says 0
 * rather than leave half an object.
 */
#include "output/metadata.h"

#include <fcntl.h>       /* open */
#include <string.h>
#include <sys/stat.h>    /* the inode of the pid namespace */
#include <sys/utsname.h> /* host name */
#include <unistd.h>

#include "hooks/log.h" /* log_format */

#define NS_PER_US 1000u

/* comma: whether the next key or element needs one before it. */
struct json {
    char *text;
    size_t size, length;
    bool comma, cut;
};

static void put_bytes(struct json *json, const char *bytes, size_t length)
{
    if (json->cut || json->size - json->length < length) {
        json->cut = true;
        return;
    }
    memcpy(json->text + json->length, bytes, length);
    json->length += length;
}

static void put_text(struct json *json, const char *text)
{
    put_bytes(json, text, strlen(text));
}

/* Length of the UTF-8 character at text, 0 when there is none: no overlong
 * forms, no surrogates, nothing beyond U+10FFFF. */
static size_t utf8_length(const unsigned char *text)
{
    static const struct { unsigned char first, last, low, high, length; } forms[] = {
        {0x20, 0x7f, 0, 0, 1},       {0xc2, 0xdf, 0x80, 0xbf, 2}, {0xe0, 0xe0, 0xa0, 0xbf, 3}, {0xe1, 0xec, 0x80, 0xbf, 3},
        {0xed, 0xed, 0x80, 0x9f, 3}, {0xee, 0xef, 0x80, 0xbf, 3}, {0xf0, 0xf0, 0x90, 0xbf, 4}, {0xf1, 0xf3, 0x80, 0xbf, 4},
        {0xf4, 0xf4, 0x80, 0x8f, 4},
    };
    for (size_t i = 0; i < sizeof forms / sizeof *forms; i++) {
        if (text[0] < forms[i].first || text[0] > forms[i].last)
            continue;
        if (forms[i].length > 1 && (text[1] < forms[i].low || text[1] > forms[i].high))
            return 0;
        for (size_t k = 2; k < forms[i].length; k++) {
            if ((text[k] & 0xc0) != 0x80)
                return 0;
        }
        return forms[i].length;
    }
    return 0;
}

static void put_control(struct json *json, unsigned char c)
{
    static const char hex[] = "0123456789abcdef";
    char escape[6] = {'\\', 'u', '0', '0', hex[c >> 4], hex[c & 15]};
    put_bytes(json, escape, sizeof escape);
}

static void put_string(struct json *json, const char *text)
{
    const unsigned char *at = (const unsigned char *)(text ? text : "");
    put_text(json, "\"");
    while (*at != '\0') {
        size_t length = utf8_length(at);
        if (*at == '"' || *at == '\\')
            put_text(json, "\\");
        if (length > 0)
            put_bytes(json, (const char *)at, length);
        else if (*at < 0x20)
            put_control(json, *at);
        else
            put_text(json, "\xef\xbf\xbd");
        at += length > 0 ? length : 1;
    }
    put_text(json, "\"");
}

/* What is beyond 63 bits is no count, and readers of JSON would refuse the whole object for it. */
static void put_number(struct json *json, uint64_t number)
{
    char digits[24];
    if (number > INT64_MAX)
        number = INT64_MAX;
    put_bytes(json, digits, log_format(digits, sizeof digits, "%lu", (unsigned long)number));
}

static void put_comma(struct json *json)
{
    if (json->comma)
        put_text(json, ", ");
    json->comma = true;
}

static void put_key(struct json *json, const char *key)
{
    put_comma(json);
    put_string(json, key);
    put_text(json, ": ");
}

static void put_open(struct json *json, const char *bracket)
{
    put_text(json, bracket);
    json->comma = false;
}

static void put_close(struct json *json, const char *bracket)
{
    put_text(json, bracket);
    json->comma = true;
}

static void key_string(struct json *json, const char *key, const char *text)
{
    put_key(json, key);
    put_string(json, text);
}

static void key_number(struct json *json, const char *key, uint64_t number)
{
    put_key(json, key);
    put_number(json, number);
}

/* A value that is changed in place stands alone in an aligned word (output/farewell.h),
 * a number at its right end. */
static void put_aligned(struct json *json, size_t digits)
{
    while (!json->cut && json->length % 8 != 0)
        put_text(json, " ");
    for (size_t i = digits; i > 0 && i < 8; i++)
        put_text(json, " ");
}

static void key_word(struct json *json, const char *key, const char *word)
{
    put_key(json, key);
    put_aligned(json, 0);
    put_string(json, word);
}

static void key_word_number(struct json *json, const char *key, uint64_t number)
{
    char digits[24];
    put_key(json, key);
    put_aligned(json, log_format(digits, sizeof digits, "%lu", (unsigned long)number));
    put_number(json, number);
}

static void key_pairs(struct json *json, const char *key, const struct metadata_pair *pairs, uint32_t count)
{
    put_key(json, key);
    put_open(json, "{");
    for (uint32_t i = 0; i < count; i++)
        key_string(json, pairs[i].key, pairs[i].value);
    put_close(json, "}");
}

/* Two decimals; what is not a sensible rate is 0. */
static void key_rate(struct json *json, const char *key, double rate)
{
    uint64_t hundredths = rate > 0 && rate < 1e12 ? (uint64_t)(rate * 100 + 0.5) : 0;
    char decimals[3] = {'.', (char)('0' + hundredths / 10 % 10), (char)('0' + hundredths % 10)};
    key_number(json, key, hundredths / 100);
    put_bytes(json, decimals, sizeof decimals);
}

/* ---- the object, in the order of its keys ---- */

static void put_process(struct json *json, const struct metadata *metadata)
{
    key_number(json, "schema", METADATA_SCHEMA);
    key_string(json, "run", metadata->run);
    key_number(json, "pid", (uint64_t)metadata->pid);
    key_number(json, "ppid", (uint64_t)metadata->ppid);
    key_string(json, "host", metadata->host);
    key_string(json, "program", metadata->program);
    key_string(json, "python", metadata->python);
    key_string(json, "build", metadata->build);
}

static void put_window(struct json *json, const struct metadata *metadata)
{
    key_number(json, "start_us", metadata->start_us);
    key_number(json, "end_us", metadata->end_us);
    key_number(json, "window", metadata->window);
    key_word(json, "ended", metadata->ended);
    key_pairs(json, "settings", metadata->settings, metadata->settings_count);
    key_pairs(json, "tags", metadata->tags, metadata->tags_count);
    key_number(json, "pid_namespace", metadata->pid_namespace);
    key_string(json, "boot", metadata->boot);
}

static void put_ticks(struct json *json, const struct metadata *metadata)
{
    put_key(json, "ticks");
    put_open(json, "{");
    key_number(json, "due", metadata->counters.ticks_due);
    key_number(json, "taken", metadata->counters.ticks_taken);
    key_number(json, "missed", metadata->counters.ticks_missed);
    put_close(json, "}");
    put_key(json, "rate");
    put_open(json, "{");
    key_number(json, "asked", metadata->rate_asked);
    key_rate(json, "got", metadata->rate_got);
    put_close(json, "}");
    key_number(json, "samples", metadata->counters.samples);
}

static void put_dropped(struct json *json, const struct counters *counters)
{
    static const char *const names[] = {
#define X(name) [DROP_##name] = #name,
        DROP_REASONS(X)
#undef X
    };
    put_key(json, "dropped");
    put_open(json, "{");
    for (unsigned i = 0; i < DROP_COUNT; i++)
        (i == DROP_deadline ? key_word_number : key_number)(json, names[i], counters->dropped[i]);
    put_close(json, "}");
}

static void put_task_ticks(struct json *json, const struct counters *counters)
{
    put_key(json, "task_ticks");
    put_open(json, "{");
    key_number(json, "read", counters->task_ticks);
    key_number(json, "repeated", counters->task_repeats);
    key_number(json, "tasks", counters->task_reads);
    key_number(json, "postponed", counters->task_postponed);
    key_number(json, "cpu_us", counters->task_cpu_ns / NS_PER_US);
    put_close(json, "}");
}

static void put_budget(struct json *json, const struct budget_counters *budget)
{
    put_key(json, "budget");
    put_open(json, "{");
    key_number(json, "allowed_us", budget->allowed_ns / NS_PER_US);
    key_rate(json, "rate", budget->rate_mhz / 1000.0);
    key_rate(json, "least", (budget->least_mhz ? budget->least_mhz : budget->rate_mhz) / 1000.0);
    key_number(json, "slowed", budget->slowed);
    key_number(json, "quickened", budget->quickened);
    key_number(json, "ceilings", budget->ceilings);
    put_close(json, "}");
}

static void put_gil(struct json *json, const struct metadata *metadata)
{
    put_key(json, "gil");
    put_open(json, "{");
    key_number(json, "held_us", metadata->metrics[METRIC_GIL].total_us);
    key_number(json, "wait_us", metadata->counters.gil_wait_ns / NS_PER_US);
    key_number(json, "unknown_us", metadata->counters.gil_unknown_ns / NS_PER_US);
    key_number(json, "wall_us", metadata->counters.gil_wall_ns / NS_PER_US);
    put_close(json, "}");
}

static void put_thread_reads(struct json *json, const struct counters *counters)
{
    put_key(json, "thread_reads");
    put_open(json, "{");
    key_number(json, "taken", counters->thread_reads);
    key_number(json, "left", counters->threads_left);
    put_close(json, "}");
}

static void put_stood(struct json *json, const struct loop_time *loop, const char *stood_in)
{
    if (!loop->stood_ns)
        return;
    key_number(json, "stood_us", loop->stood_ns / NS_PER_US);
    if (stood_in)
        key_string(json, "stood_in", stood_in);
}

static void put_step(struct json *json, const struct loop_time *loop, const char *step_in)
{
    if (loop->step_least_ns) {
        key_number(json, "step_least_us", loop->step_least_ns / NS_PER_US);
        key_number(json, "step_most_us", loop->step_most_ns / NS_PER_US + 1);
        if (step_in)
            key_string(json, "step_in", step_in);
    }
    if (loop->steps_unknown)
        key_number(json, "steps_unknown", loop->steps_unknown);
}

static void put_loop_tasks(struct json *json, const struct loop_time *loop)
{
    if (!loop->counted_ns)
        return;
    key_number(json, "counted_us", loop->counted_ns / NS_PER_US);
    key_number(json, "pending_us", loop->pending_ns / NS_PER_US);
    key_number(json, "pending_peak", loop->pending_peak);
    key_number(json, "ready_us", loop->ready_ns / NS_PER_US);
    key_number(json, "ready_peak", loop->ready_peak);
}

static void put_loops(struct json *json, const struct metadata *metadata)
{
    put_key(json, "loops");
    put_open(json, "[");
    for (uint32_t i = 0; i < metadata->loops_count && i < LOOPS_SHOWN; i++) {
        const struct loop_time *loop = &metadata->loops[i];
        put_comma(json);
        put_open(json, "{");
        key_number(json, "thread", loop->thread);
        key_number(json, "idle_us", loop->idle_ns / NS_PER_US);
        key_number(json, "busy_us", loop->busy_ns / NS_PER_US);
        put_stood(json, loop, metadata->stood_in[i]);
        put_step(json, loop, metadata->step_in[i]);
        put_loop_tasks(json, loop);
        put_close(json, "}");
    }
    put_close(json, "]");
}

static void put_counts(struct json *json, const struct metadata *metadata)
{
    const struct counters *counters = &metadata->counters;
    put_dropped(json, counters);
    key_number(json, "cpu_unseen_us", counters->cpu_unseen_ns / NS_PER_US);
    key_number(json, "cpu_spread_us", counters->cpu_spread_ns / NS_PER_US);
    key_number(json, "threads_peak", counters->threads_peak);
    key_number(json, "tasks_peak", counters->tasks_peak);
    key_number(json, "tasks_skipped", counters->tasks_skipped);
    if (counters->threads_left)
        put_thread_reads(json, counters);
    if (counters->task_ticks + counters->task_repeats)
        put_task_ticks(json, counters);
    key_number(json, "children_without_sample", metadata->children_without_sample);
    put_loops(json, metadata);
    if (metadata->metrics[METRIC_GIL].recorded)
        put_gil(json, metadata);
    key_number(json, "sampler_cpu_us", counters->sampler_cpu_ns / NS_PER_US);
    key_number(json, "handler_us", counters->handler_ns / NS_PER_US);
    key_number(json, "process_cpu_us", counters->process_cpu_ns / NS_PER_US);
    put_budget(json, &counters->budget);
    key_number(json, "heap_bytes", counters->heap_bytes);
    key_string(json, "reader", metadata->reader);
    if (metadata->clock_coarse)
        key_string(json, "clock", "coarse");
}

static void put_limits(struct json *json, const struct counters *counters)
{
    static const char *const names[] = {
#define X(name) [LIMIT_##name] = #name,
        LIMITS(X)
#undef X
    };
    put_key(json, "limits");
    put_open(json, "{");
    for (unsigned i = 0; i < LIMIT_COUNT; i++) {
        if (counters->limits[i] > 0)
            key_number(json, names[i], counters->limits[i]);
    }
    put_close(json, "}");
}

static void put_metrics(struct json *json, const struct metadata *metadata)
{
    put_key(json, "metrics");
    put_open(json, "{");
    for (unsigned i = 0; i < METRIC_COUNT; i++) {
        if (!metadata->metrics[i].recorded)
            continue;
        put_key(json, metric_name((enum metric)i));
        put_open(json, "{");
        key_number(json, "total_us", metadata->metrics[i].total_us);
        key_number(json, "stacks", metadata->metrics[i].stacks);
        put_close(json, "}");
    }
    put_close(json, "}");
}

size_t metadata_format(const struct metadata *metadata, char *buffer, size_t size)
{
    struct json json = {.text = buffer, .size = size};
    put_open(&json, "{");
    put_process(&json, metadata);
    put_window(&json, metadata);
    put_ticks(&json, metadata);
    put_counts(&json, metadata);
    put_limits(&json, &metadata->counters);
    put_metrics(&json, metadata);
    if (metadata->paused) {
        put_key(&json, "paused");
        put_text(&json, "true");
    }
    put_text(&json, "}\n");
    return json.cut ? 0 : json.length;
}

size_t metadata_put(const struct metadata *metadata, struct buffer *buffer)
{
    size_t length;
    while ((length = metadata_format(metadata, buffer->bytes, buffer->size)) == 0) {
        if (!buffer_reserve(buffer, 2 * buffer->size))
            return 0;
    }
    return length;
}

enum { STOOD_BYTES = 256, WHOLE_BYTES = 32768 };

/* The last frames of the stack, as many as there is room for; NULL: not one. */
static const char *last_frames(const struct profile *profile, profile_stack stack, char text[STOOD_BYTES])
{
    static char whole[WHOLE_BYTES];
    size_t length = profile_text(profile, stack, whole, sizeof whole), start = 0;
    if (stack == PROFILE_ROOT || length > sizeof whole)
        return NULL;
    while (length - start >= STOOD_BYTES) {
        const char *next = memchr(whole + start, ';', length - start);
        if (!next)
            return NULL;
        start = (size_t)(next + 1 - whole);
    }
    memcpy(text, whole + start, length - start);
    text[length - start] = '\0';
    return text;
}

void metadata_of_profile(struct metadata *metadata, const struct profile *profile)
{
    static char stood[LOOPS_SHOWN][STOOD_BYTES], step[LOOPS_SHOWN][STOOD_BYTES];
    for (uint32_t i = 0; i < metadata->loops_count && i < LOOPS_SHOWN; i++) {
        metadata->stood_in[i] = last_frames(profile, metadata->loops[i].stood_in, stood[i]);
        metadata->step_in[i] = last_frames(profile, metadata->loops[i].step_in, step[i]);
    }
    for (unsigned i = 0; i < METRIC_COUNT; i++) {
        metadata->metrics[i].total_us = profile_total_ns(profile, (enum metric)i) / NS_PER_US;
        metadata->metrics[i].stacks = profile_stacks(profile, (enum metric)i);
    }
}

/* ---- the machine ---- */

static void host_read(char *host, size_t size)
{
    struct utsname names;
    size_t length = 0;
    if (uname(&names) == 0) {
        length = strnlen(names.nodename, size - 1);
        memcpy(host, names.nodename, length);
    }
    host[length] = '\0';
}

static void boot_read(char *boot, size_t size)
{
    ssize_t got = -1;
    int fd = open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC);
    if (fd >= 0) {
        got = read(fd, boot, size - 1);
        close(fd);
    }
    boot[got > 0 ? got : 0] = '\0';
    char *end = strchr(boot, '\n');
    if (end != NULL)
        *end = '\0';
}

void metadata_of_machine(struct metadata *metadata, char *host_buffer, size_t size)
{
    struct stat status;
    if (size > 0)
        host_read(host_buffer, size);
    metadata->host = size > 0 ? host_buffer : "";
    metadata->pid_namespace = stat("/proc/self/ns/pid", &status) == 0 ? status.st_ino : 0;
    boot_read(metadata->boot, sizeof metadata->boot);
}
