/* SPDX-License-Identifier: MIT
 *
 * A spool directory that others fill: their files under our names, cut, garbled, sealed
 * and live, links and fifos; a writer whose own files they change under its hands; the
 * bound on the directory; the report of it all, as text and as JSON, how it differs from
 * what was moved away, all of it merged, and as other programs have it; what grows in it.
 *
 * Input: bound, stacks, options of the report, number of files; the files, each {what it
 * is, its name, 16 bits of length, contents}; then what is done with the writer, a byte
 * each. Names and steps are tables below.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <jansson.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "hooks/guard.h"
#include "hooks/log.h"
#include "hooks/mem.h"
#include "output/convert.h"
#include "output/diff.h"
#include "output/evict.h"
#include "output/follow.h"
#include "output/merge.h"
#include "output/report.h"
#include "output/spool.h"
#include "output/tool.h"
#include "output/top.h"
#include "tests/fuzz/fuzz.h"

enum { HEAD = 4, FILES_MOST = 24, STEPS_MOST = 48, STACKS = 8, OWN_PID = 42, DESCRIPTORS = 64 };
#define START 1700000000000000u

static char directory[64], moved[72], merged[72];

struct input {
    const uint8_t *data;
    size_t left;
};

static uint8_t take(struct input *input)
{
    return input->left ? (input->left--, *input->data++) : 0;
}

/* Nobody waits in here: a reader's pause is for a writer that is not there. */
int nanosleep(const struct timespec *requested, struct timespec *remaining)
{
    return 0;
}

/* --- the files of others --- */

/* Bits: 0-1 metric or metadata, 2-3 number, 4-5 process, 6 temporary, 7 live. */
static void name_of(uint8_t bits, char *text)
{
    static const char *const metrics[] = {"", "cpu", "wall", "task"};
    static const uint64_t pids[] = {7, OWN_PID, 1, UINT64_MAX};
    struct spool_name name = {.host = "h", .pid = pids[bits >> 4 & 3], .start_us = START, .seq = bits >> 2 & 3};
    name.state = bits & 0x80 ? SPOOL_LIVE : bits & 0x40 ? SPOOL_TEMPORARY : SPOOL_SEALED;
    strcpy(name.metric, metrics[bits & 3]);
    spool_name_format(&name, text, SPOOL_NAME_MAX + 1);
}

static void put_contents(int at, const char *name, const uint8_t *contents, size_t length)
{
    int fd = openat(at, name, O_WRONLY | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0600);
    if (fd < 0)
        return;
    FUZZ_HOLDS(write(fd, contents, length) == (ssize_t)length);
    close(fd);
}

/* No link leads out of the directory. */
static void put_link(int at, const char *name, const uint8_t *contents, size_t length)
{
    char target[SPOOL_NAME_MAX + 1] = "";
    memcpy(target, contents, length < SPOOL_NAME_MAX ? length : SPOOL_NAME_MAX);
    if (*target && !strchr(target, '/') && strcmp(target, ".."))
        (void)!symlinkat(target, at, name);
}

/* What it is called is in its contents. */
static void put_named(int at, const uint8_t *contents, size_t length)
{
    char name[SPOOL_NAME_MAX + 1] = "";
    size_t size = strnlen((const char *)contents, length < SPOOL_NAME_MAX ? length : SPOOL_NAME_MAX);
    memcpy(name, contents, size);
    if (*name && !strchr(name, '/') && strcmp(name, ".") && strcmp(name, ".."))
        put_contents(at, name, contents + size, length - size);
}

static void put_file(int at, struct input *input)
{
    static const struct timespec old[2] = {{1000000000, 0}, {1000000000, 0}};
    uint8_t what = take(input), bits = take(input);
    size_t length = take(input);
    length |= (size_t)take(input) << 8;
    length = length < input->left ? length : input->left;
    const uint8_t *contents = input->data;
    char name[SPOOL_NAME_MAX + 1];
    input->data += length;
    input->left -= length;
    name_of(bits, name);
    switch (what % 8) {
    case 1: (void)!mkdirat(at, name, 0700); break;
    case 2: put_link(at, name, contents, length); break;
    case 3: put_named(at, contents, length); break;
    case 4: (void)!mkfifoat(at, name, 0600); break;
    case 5: put_contents(at, SPOOL_LOCK_NAME, contents, length); break;
    case 6:
        put_contents(at, name, contents, length);
        (void)!utimensat(at, name, old, AT_SYMLINK_NOFOLLOW);
        break;
    default: put_contents(at, name, contents, length); break;
    }
}

static void clear(const char *path)
{
    DIR *listing = opendir(path);
    for (struct dirent *entry; listing && (entry = readdir(listing));)
        if (strcmp(entry->d_name, ".") && strcmp(entry->d_name, "..") && unlinkat(dirfd(listing), entry->d_name, 0))
            unlinkat(dirfd(listing), entry->d_name, AT_REMOVEDIR);
    if (listing)
        closedir(listing);
}

/* --- the writer --- */

struct writing {
    struct spool *spool;
    struct profile *profile;
    struct metadata metadata;
    uint64_t limit;
    bool paused;
};

static void add_time(struct writing *writing, uint8_t step)
{
    char frame[32];
    profile_stack stack = PROFILE_ROOT;
    for (uint8_t i = 0; i <= step % STACKS; i++)
        stack = profile_push(writing->profile, stack, profile_intern(writing->profile, frame, (size_t)snprintf(frame, sizeof frame, "f%d (a.py:%d)", i, i), 0));
    profile_add(writing->profile, stack, step & 8 ? METRIC_WALL : METRIC_CPU, step & 16 ? 300000000000ull : 1000u * (step + 1u));
}

/* Somebody changes a live file of the writer's. */
static void hurt(int at, uint8_t step)
{
    char name[SPOOL_NAME_MAX + 1], other[SPOOL_NAME_MAX + 1];
    name_of(0x90 | (step & 15), name);
    name_of(0x90 | ((step + 1) & 15), other);
    int fd = openat(at, name, O_WRONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    switch (step >> 4 & 7) {
    case 0: (void)!ftruncate(fd, 0); break;
    case 1: (void)!ftruncate(fd, 20); break;
    case 2: (void)!pwrite(fd, "\n;; x\n 7", 8, 4); break;
    case 3: (void)!ftruncate(fd, 20000); break;
    case 4: unlinkat(at, name, 0); break;
    case 5: (void)!renameat(at, other, at, name); break;
    case 6: put_contents(at, name, (const uint8_t *)"main 1\n", 7); break;
    case 7: unlinkat(at, name, 0), (void)!mkfifoat(at, name, 0600); break;
    }
    if (fd >= 0)
        close(fd);
}

static void evict(const struct writing *writing, int at)
{
    struct spool_name own = {.host = "h", .pid = OWN_PID, .start_us = START, .seq = writing->metadata.window};
    struct evict_request request = {.directory = at, .limit_bytes = writing->limit, .now_us = START + (1ull << 40), .own = &own};
    struct evict_result result = {0};
    if (evict_run(&request, &result) == 0)
        FUZZ_HOLDS(result.living_bytes == 0 || result.total_bytes > writing->limit || result.total_bytes >= result.living_bytes);
}

static void seal(struct writing *writing)
{
    struct metadata next = writing->metadata;
    next.window++;
    if (writing->paused || spool_seal(writing->spool, writing->profile, &writing->metadata, &next) != 0)
        return;
    profile_clear(writing->profile, false);
    writing->metadata = next;
}

static void step_on(struct writing *writing, int at, uint8_t what, uint8_t step)
{
    switch (what % 12) {
    case 0: case 1: add_time(writing, step); break;
    case 2: case 3: spool_flush(writing->spool, writing->profile, &writing->metadata); break;
    case 4: spool_describe(writing->spool, &writing->metadata); break;
    case 5: seal(writing); break;
    case 6:
        if (!writing->paused)
            spool_pause(writing->spool, &writing->metadata);
        writing->paused = true;
        break;
    case 7:
        if (writing->paused)
            spool_resume(writing->spool, writing->profile, &writing->metadata);
        writing->paused = false;
        break;
    case 8: case 9: hurt(at, step); break;
    case 10: evict(writing, at); break;
    case 11:
        if (step & 1)
            (void)!rename(directory, moved);
        else
            profile_freeze(writing->profile, spool_is_full(writing->spool));
        break;
    }
}

static void write_spool(struct input *input, uint64_t limit, bool keep, int at)
{
    struct writing writing = {.limit = limit};
    writing.metadata = (struct metadata){.run = "r", .host = "h", .program = "p", .python = "3", .build = "release", .pid = OWN_PID, .ended = "open",
                                         .reader = "copy", .start_us = START};
    writing.metadata.metrics[METRIC_CPU].recorded = true;
    writing.spool = spool_new(&(struct spool_options){directory, "h", OWN_PID, START, limit, keep});
    writing.profile = profile_new();
    for (int i = 0; writing.spool && writing.profile && i < STEPS_MOST && input->left; i++) {
        uint8_t what = take(input);
        step_on(&writing, at, what, take(input));
    }
    if (writing.spool)
        spool_free(writing.spool);
    profile_free(writing.profile);
    FUZZ_HOLDS(mem_used() == 0);
}

/* --- the report --- */

static bool is_clean(const char *text, size_t length)
{
    for (size_t i = 0; i < length; i++)
        if (((unsigned char)text[i] < ' ' && text[i] != '\n') || text[i] == 0x7f)
            return false;
    json_t *string = json_stringn(text, length); /* NULL: not UTF-8 */
    json_decref(string);
    return string;
}

enum shape { TEXT, JSON, BINARY };

static int check_report(int (*run)(int argc, char **argv), char **words, int count, enum shape shape)
{
    FILE *out = stdout, *err = stderr;
    char *text = NULL, *said = NULL;
    size_t length = 0, said_length = 0;
    stdout = open_memstream(&text, &length);
    stderr = open_memstream(&said, &said_length);
    optind = 0;
    int status = run(count, words);
    fclose(stdout);
    fclose(stderr);
    stdout = out;
    stderr = err;
    FUZZ_HOLDS(status == TOOL_FINE || status == TOOL_NOTHING || status == TOOL_UNREADABLE ||
               (run == diff_main && (status == TOOL_GATE || status == TOOL_FEW || status == TOOL_USAGE)));
    FUZZ_HOLDS((shape == BINARY || is_clean(text, length)) && is_clean(said, said_length));
    if (shape == JSON && (length || run == report_main)) {
        json_t *object = json_loadb(text, length, 0, NULL);
        FUZZ_HOLDS(json_is_object(object));
        json_decref(object);
    }
    free(text);
    free(said);
    return status;
}

static void report(uint8_t options)
{
    static char *const by[] = {"function", "line", "file", "process", "stack"};
    static char *const widths[] = {"40", "200"};
    char *words[8] = {"report", "--by", by[options % 5], "--width", widths[options >> 5 & 1], options & 0x80 ? "--json" : "--top=0", directory, NULL};
    check_report(report_main, words, 7, options & 0x80 ? JSON : TEXT);
    char *json[] = {"report", "--json", directory, moved, NULL};
    char *chosen[] = {"report", "--json", "--by", options & 1 ? "task" : "thread", "--only=*.py", "--only=[*]", "--hide=*a*", "--hide=[t[]*", directory, NULL};
    if (options & 0x40) {
        check_report(report_main, json, 4, JSON);
        check_report(report_main, chosen, 9, JSON);
    }
}

/* Against itself and what was moved away, which as a rule is nothing. */
static void compare(uint8_t options)
{
    static char *const as[] = {"--json", "--markdown", "--top=0", "--width=40"};
    static char *const by[] = {"function", "line", "file"};
    char *words[] = {"diff", "--metric", "all", "--by", by[options % 3], as[options >> 5 & 3], "--fail-over", "0.5", directory, "--to", directory, moved, NULL};
    check_report(diff_main, words, options & 0x10 ? 12 : 11, TEXT);
    char *json[] = {"diff", "--json", "--fail-over=0", directory, directory, NULL};
    check_report(diff_main, json, 5, JSON);
}

/* What is open, and after it what a second look finds. */
static void watch(uint8_t options)
{
    char *words[] = {"top", "--once", "--sort", options & 1 ? "total" : "self", directory, NULL};
    check_report(top_main, words, 5, TEXT);
    struct follow *follow = follow_new(directory, options & 2 ? "wall" : NULL);
    for (int looks = 0; looks < 2; looks++) {
        const struct follow_row *rows;
        FUZZ_HOLDS(follow_look(follow) <= 0);
        for (size_t at = follow_rows(follow, &rows); at-- > 0;)
            FUZZ_HOLDS(rows[at].self_now <= rows[at].self && rows[at].total_now <= rows[at].total);
    }
    follow_free(follow);
}

static void convert(uint8_t options, char *path)
{
    static const struct { char *name; enum shape shape; } formats[] = {{"pprof", BINARY}, {"speedscope", JSON}, {"firefox", JSON}, {"collapsed", TEXT}};
    static char *const by[] = {"function", "line"};
    uint8_t at = options >> 3 & 3;
    char *words[] = {"convert", "-f", formats[at].name, "--by", by[options & 1], "-o", "-", path, NULL};
    check_report(convert_main, words, 8, formats[at].shape);
}

/* What was merged is read like what is sealed. */
static void merge(uint8_t options)
{
    char *words[] = {"merge", "-o", merged, directory, moved, NULL}, *json[] = {"report", "--json", merged, NULL};
    int status = check_report(merge_main, words, 5, TEXT);
    FUZZ_HOLDS(status != TOOL_FINE || check_report(report_main, json, 3, JSON) == TOOL_FINE);
    FUZZ_HOLDS(status != TOOL_NOTHING || access(merged, F_OK) != 0);
    if (!access(merged, F_OK))
        convert(options, merged);
    clear(merged);
    rmdir(merged);
}

/* --- the target --- */

static void start(void)
{
    const char *top = getenv("TMPDIR");
    if (*directory)
        return;
    snprintf(directory, sizeof directory - 8, "%.40s/fuzz.XXXXXX", top ? top : "/tmp");
    FUZZ_HOLDS(mkdtemp(directory));
    snprintf(moved, sizeof moved, "%s.moved", directory);
    snprintf(merged, sizeof merged, "%s.merged", directory);
    mem_init((size_t)64 << 20);
    log_set_level(LOG_QUIET);
    guard_start(GUARD_AUTO);
}

static int open_descriptors(void)
{
    int count = 0;
    for (int fd = 0; fd < DESCRIPTORS; fd++)
        count += fcntl(fd, F_GETFD) != -1;
    return count;
}

void fuzz_input(const uint8_t *data, size_t size)
{
    if (size < HEAD)
        return;
    struct input input = {data + HEAD, size - HEAD};
    start();
    (void)!mkdir(directory, 0700);
    int at = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC), before = open_descriptors();
    for (uint8_t i = 0; i < data[3] % (FILES_MOST + 1) && input.left; i++)
        put_file(at, &input);
    write_spool(&input, (uint64_t)data[0] << 8, data[1] & 1, at);
    report(data[2]);
    compare(data[2]);
    watch(data[2]);
    convert(data[2], directory);
    merge(data[2]);
    clear(directory);
    clear(moved);
    rmdir(moved);
    FUZZ_HOLDS(open_descriptors() == before); /* none is left open */
    close(at);
}
