/* SPDX-License-Identifier: MIT
 *
 * spool_fixture: the writer against real files: a directory in /tmp a test, a
 * small tmpfs where a disk must fill up, and what stands in the files afterwards.
 */
#ifndef APROF_TESTS_UNIT_SPOOL_FIXTURE_H
#define APROF_TESTS_UNIT_SPOOL_FIXTURE_H

#include "output/spool.h"

#include <check.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <jansson.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "hooks/clock.h"
#include "hooks/guard.h"
#include "hooks/log.h"
#include "hooks/mem.h"
#include "output/spool_format.h"
#include "tests/unit/stack_of_text.h"

#define START 1700000000000000u
#define NOBODY 65534
#define MIB (1u << 20)

static char top[64], directory[80];
static struct profile *profile;

/* ---- fixture ---- */

static inline int remove_one(const char *path, const struct stat *status, int type, struct FTW *ftw)
{
    return remove(path);
}

static inline void remove_tree(const char *path)
{
    nftw(path, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

static inline void setup(void)
{
    log_set_level(LOG_QUIET);
    ck_assert_int_eq(mem_init((size_t)64 << 20), 0);
    ck_assert_int_eq(guard_start(GUARD_AUTO), 0);
    strcpy(top, "/tmp/check_spool.XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(top));
    snprintf(directory, sizeof directory, "%s/spool", top);
    profile = profile_new();
    ck_assert_ptr_nonnull(profile);
}

static inline void teardown(void)
{
    profile_free(profile);
    ck_assert_uint_eq(mem_used(), 0);
    remove_tree(top);
}

static inline struct spool *spool_with(pid_t pid, uint64_t limit, bool keep)
{
    struct spool *spool = spool_new(&(struct spool_options){directory, "test.host", pid, START, limit, keep});
    ck_assert_ptr_nonnull(spool);
    return spool;
}

static inline struct metadata metadata_of(uint64_t window)
{
    struct metadata metadata = {
        .run = "r", .host = "test.host", .program = "p", .python = "3", .build = "release", .pid = 42, .window = window,
        .ended = "open", .reader = "copy", .start_us = START,
    };
    metadata.metrics[METRIC_CPU].recorded = metadata.metrics[METRIC_WALL].recorded = true;
    return metadata;
}

static inline profile_stack stack_of(const char *text)
{
    return stack_of_text(profile, text);
}

static inline void add(const char *text, enum metric metric, uint64_t us)
{
    profile_add(profile, stack_of(text), metric, us * 1000);
}

static inline int flush(struct spool *spool)
{
    struct metadata metadata = metadata_of(0);
    return spool_flush(spool, profile, &metadata);
}

static inline int describe(struct spool *spool)
{
    struct metadata metadata = metadata_of(0);
    return spool_describe(spool, &metadata);
}

static inline int seal(struct spool *spool, uint64_t window, bool last)
{
    struct metadata metadata = metadata_of(window), next = metadata_of(window + 1);
    metadata.ended = last ? "exit" : "window";
    int error = spool_seal(spool, profile, &metadata, last ? NULL : &next);
    if (error == 0)
        profile_clear(profile, false);
    return error;
}

/* ---- reading ---- */

static inline const char *path_of(const char *name)
{
    static char path[512];
    snprintf(path, sizeof path, "%s/%s", directory, name);
    return path;
}

static inline const char *file_name(pid_t pid, unsigned seq, const char *rest)
{
    static char name[256];
    snprintf(name, sizeof name, "aprof.test_host.%d.%lu.%06u.%s", (int)pid, (unsigned long)START, seq, rest);
    return path_of(name);
}

static inline char *content(const char *path, size_t *size)
{
    FILE *file = fopen(path, "r");
    ck_assert_msg(file != NULL, "%s", path);
    char *text = malloc(64 * MIB);
    *size = fread(text, 1, 64 * MIB - 1, file);
    text[*size] = '\0';
    fclose(file);
    return text;
}

static inline bool exists(const char *path)
{
    return access(path, F_OK) == 0;
}

/* The sum of a file's lines, of one stack or of all; every line must be whole. */
static inline uint64_t sum_of(const char *path, const char *wanted)
{
    size_t size, stack;
    uint64_t sum = 0, count;
    char *text = content(path, &size);
    ck_assert_msg(size == 0 || text[size - 1] == '\n', "%s: cut", path);
    for (char *line = text, *end; line < text + size; line = end + 1) {
        end = memchr(line, '\n', (size_t)(text + size - line));
        ck_assert_msg(spool_line_parse(line, (size_t)(end - line), &stack, &count), "%s: %.*s", path, (int)(end - line), line);
        if (wanted == NULL || (strlen(wanted) == stack && memcmp(line, wanted, stack) == 0))
            sum += count;
    }
    free(text);
    return sum;
}

/* The same over all files of a metric in the directory; live ones only where
 * there is no sealed one. */
static inline uint64_t sum_of_all(enum metric metric, unsigned *files)
{
    DIR *dir = opendir(directory);
    uint64_t sum = 0;
    struct dirent *entry;
    unsigned found = 0;
    ck_assert_ptr_nonnull(dir);
    while ((entry = readdir(dir)) != NULL) {
        struct spool_name name;
        if (!spool_name_parse(entry->d_name, &name) || strcmp(name.metric, metric_name(metric)) != 0 || name.state == SPOOL_TEMPORARY)
            continue;
        char sealed[256];
        enum spool_state state = name.state;
        name.state = SPOOL_SEALED;
        spool_name_format(&name, sealed, sizeof sealed);
        if (state == SPOOL_LIVE && exists(path_of(sealed)))
            continue;
        sum += sum_of(path_of(entry->d_name), NULL);
        found++;
    }
    closedir(dir);
    if (files)
        *files = found;
    return sum;
}

static inline unsigned count_names(const char *part)
{
    DIR *dir = opendir(directory);
    struct dirent *entry;
    unsigned count = 0;
    if (dir == NULL)
        return 0;
    while ((entry = readdir(dir)) != NULL)
        count += strstr(entry->d_name, part) != NULL;
    closedir(dir);
    return count;
}

static inline json_t *object_of(const char *path)
{
    json_error_t error;
    json_t *object = json_load_file(path, 0, &error);
    ck_assert_msg(object != NULL, "%s: %s", path, error.text);
    return object;
}

/* How often a limit bit, as that metadata says. */
static inline int limit_of(const char *path, const char *limit)
{
    json_t *object = object_of(path);
    int times = (int)json_integer_value(json_object_get(json_object_get(object, "limits"), limit));
    json_decref(object);
    return times;
}

static inline mode_t mode_of(const char *path)
{
    struct stat status;
    ck_assert_int_eq(lstat(path, &status), 0);
    return status.st_mode & 07777;
}

/* ---- what a test does to them ---- */

/* Lines of /proc/self/smaps from that of the file to its flags. */
static inline bool mapped_with(const char *part, const char *flag)
{
    char line[1024];
    bool inside = false, found = false;
    FILE *maps = fopen("/proc/self/smaps", "r");
    while (!found && fgets(line, sizeof line, maps)) {
        if (strchr(line, '/'))
            inside = strstr(line, part) != NULL;
        found = inside && strncmp(line, "VmFlags:", 8) == 0 && strstr(line, flag) != NULL;
    }
    fclose(maps);
    return found;
}

static inline unsigned descriptors(void)
{
    unsigned count = 0;
    for (int fd = 3; fd < 256; fd++)
        count += fcntl(fd, F_GETFD) >= 0;
    return count;
}

static inline bool mount_small(const char *options)
{
    if (mkdir(directory, 0700) == 0 && mount("tmpfs", directory, "tmpfs", 0, options) == 0)
        return true;
    printf("spool: tests on a full disk not run: no right to mount\n");
    fflush(stdout);
    return false;
}

static inline void fill_up(void)
{
    char block[4096];
    int fd = open(path_of("ballast"), O_WRONLY | O_CREAT | O_APPEND, 0600);
    memset(block, 'x', sizeof block);
    while (write(fd, block, sizeof block) > 0)
        ;
    close(fd);
}

static inline void plant(pid_t pid, unsigned seq, const char *rest, size_t size, int age_s)
{
    const char *path = file_name(pid, seq, rest);
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    ck_assert_int_ge(fd, 0);
    ck_assert_int_eq(ftruncate(fd, (off_t)size), 0);
    struct timespec times[2] = {{.tv_sec = time(NULL) - age_s}, {.tv_sec = time(NULL) - age_s}};
    ck_assert_int_eq(futimens(fd, times), 0);
    close(fd);
}

#endif
