/* SPDX-License-Identifier: MIT
 *
 * The writer against real files: a directory in /tmp a test, a small tmpfs where
 * a disk must fill up, child processes where one must die or drop privileges.
 */
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

#define START 1700000000000000u
#define NOBODY 65534
#define MIB (1u << 20)

static char top[64], directory[80];
static struct profile *profile;

/* ---- fixture ---- */

static int remove_one(const char *path, const struct stat *status, int type, struct FTW *ftw)
{
    return remove(path);
}

static void remove_tree(const char *path)
{
    nftw(path, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

static void setup(void)
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

static void teardown(void)
{
    profile_free(profile);
    ck_assert_uint_eq(mem_used(), 0);
    remove_tree(top);
}

static struct spool *spool_with(pid_t pid, uint64_t limit, bool keep)
{
    struct spool *spool = spool_new(&(struct spool_options){directory, "test.host", pid, START, limit, keep});
    ck_assert_ptr_nonnull(spool);
    return spool;
}

static struct metadata metadata_of(uint64_t window)
{
    struct metadata metadata = {
        .run = "r", .host = "test.host", .program = "p", .python = "3", .build = "release", .pid = 42, .window = window,
        .ended = "open", .reader = "copy", .start_us = START,
    };
    metadata.metrics[METRIC_CPU].recorded = metadata.metrics[METRIC_WALL].recorded = true;
    return metadata;
}

static profile_stack stack_of(const char *text)
{
    profile_stack stack = PROFILE_ROOT;
    while (*text != '\0') {
        size_t length = strcspn(text, ";");
        stack = profile_push(profile, stack, profile_intern(profile, text, length, 0));
        text += length + (text[length] == ';');
    }
    return stack;
}

static void add(const char *text, enum metric metric, uint64_t us)
{
    profile_add(profile, stack_of(text), metric, us * 1000);
}

static int flush(struct spool *spool)
{
    struct metadata metadata = metadata_of(0);
    return spool_flush(spool, profile, &metadata);
}

static int describe(struct spool *spool)
{
    struct metadata metadata = metadata_of(0);
    return spool_describe(spool, &metadata);
}

static int seal(struct spool *spool, uint64_t window, bool last)
{
    struct metadata metadata = metadata_of(window), next = metadata_of(window + 1);
    metadata.ended = last ? "exit" : "window";
    int error = spool_seal(spool, profile, &metadata, last ? NULL : &next);
    if (error == 0)
        profile_clear(profile, false);
    return error;
}

/* ---- reading ---- */

static const char *path_of(const char *name)
{
    static char path[512];
    snprintf(path, sizeof path, "%s/%s", directory, name);
    return path;
}

static const char *file_name(pid_t pid, unsigned seq, const char *rest)
{
    static char name[256];
    snprintf(name, sizeof name, "aprof.test_host.%d.%lu.%06u.%s", (int)pid, (unsigned long)START, seq, rest);
    return path_of(name);
}

static char *content(const char *path, size_t *size)
{
    FILE *file = fopen(path, "r");
    ck_assert_msg(file != NULL, "%s", path);
    char *text = malloc(64 * MIB);
    *size = fread(text, 1, 64 * MIB - 1, file);
    text[*size] = '\0';
    fclose(file);
    return text;
}

static bool exists(const char *path)
{
    return access(path, F_OK) == 0;
}

/* The sum of a file's lines, of one stack or of all; every line must be whole. */
static uint64_t sum_of(const char *path, const char *wanted)
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
static uint64_t sum_of_all(enum metric metric, unsigned *files)
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

static unsigned count_names(const char *part)
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

static json_t *object_of(const char *path)
{
    json_error_t error;
    json_t *object = json_load_file(path, 0, &error);
    ck_assert_msg(object != NULL, "%s: %s", path, error.text);
    return object;
}

static mode_t mode_of(const char *path)
{
    struct stat status;
    ck_assert_int_eq(lstat(path, &status), 0);
    return status.st_mode & 07777;
}

/* ---- the open window ---- */

START_TEST(nothing_is_made_before_there_is_something_to_write)
{
    struct spool *spool = spool_with(42, 0, true);
    ck_assert_int_eq(flush(spool), 0);
    ck_assert_int_eq(describe(spool), 0);
    ck_assert_int_eq(seal(spool, 0, true), 0);
    ck_assert(!exists(directory));
    ck_assert(!spool_is_open(spool));
    spool_free(spool);
}
END_TEST

START_TEST(live_files_are_as_the_format_says)
{
    struct spool *spool = spool_with(42, 0, true);
    char name[32];
    size_t size, stack;
    uint64_t count;
    umask(0077);
    for (int i = 0; i < 500; i++) {
        snprintf(name, sizeof name, "main;%.*s%d", i % 17, "xxxxxxxxxxxxxxxxx", i);
        add(name, METRIC_CPU, (uint64_t)i + 1);
    }
    ck_assert_int_eq(flush(spool), 0);
    ck_assert_uint_eq(mode_of(directory), geteuid() == 0 ? 01733 : 0700);
    ck_assert_uint_eq(mode_of(path_of(".gitignore")), 0600);
    char *text = content(path_of(".gitignore"), &size);
    ck_assert_str_eq(text, "*\n");
    free(text);
    ck_assert_uint_eq(mode_of(file_name(42, 0, "cpu.collapsed.live")), 0600);
    ck_assert_uint_eq(mode_of(file_name(42, 0, "json.live")), 0600);
    ck_assert(!exists(file_name(42, 0, "wall.collapsed.live")));
    text = content(file_name(42, 0, "cpu.collapsed.live"), &size);
    unsigned lines = 0;
    for (char *line = text, *end; line < text + size; line = end + 1, lines++) {
        end = memchr(line, '\n', (size_t)(text + size - line));
        ck_assert(spool_line_parse(line, (size_t)(end - line), &stack, &count));
        ck_assert_uint_eq((size_t)(end - text) % 8, 0); /* the last eight digits lie on a boundary */
        size_t digits = (size_t)(end - line) - stack - 1;
        ck_assert(digits >= 8 && digits <= 15);
    }
    ck_assert_uint_eq(lines, 500);
    free(text);
    spool_free(spool);
}
END_TEST

START_TEST(counts_change_in_place)
{
    struct spool *spool = spool_with(42, 0, true);
    struct stat before, after;
    add("a;b", METRIC_CPU, 5);
    add("a;c", METRIC_WALL, 7);
    ck_assert_int_eq(flush(spool), 0);
    ck_assert_int_eq(stat(file_name(42, 0, "cpu.collapsed.live"), &before), 0);
    for (int i = 0; i < 1000; i++) {
        add("a;b", METRIC_CPU, 10);
        ck_assert_int_eq(flush(spool), 0);
    }
    ck_assert_int_eq(stat(file_name(42, 0, "cpu.collapsed.live"), &after), 0);
    ck_assert_int_eq(after.st_size, before.st_size);
    ck_assert_uint_eq(sum_of(file_name(42, 0, "cpu.collapsed.live"), "a;b"), 10005);
    ck_assert_uint_eq(sum_of(file_name(42, 0, "wall.collapsed.live"), "a;c"), 7);
    spool_free(spool);
}
END_TEST

START_TEST(a_count_too_high_for_its_line_goes_on_in_a_new_one)
{
    static const uint64_t steps[] = {99999998, 1, 1, 99999998, 1, 350000000, 5};
    struct spool *spool = spool_with(42, 0, true);
    uint64_t sum = 0;
    for (size_t i = 0; i < sizeof steps / sizeof *steps; i++) {
        add("a;b", METRIC_CPU, steps[i]);
        add("x", METRIC_CPU, 1);
        sum += steps[i];
        ck_assert_int_eq(flush(spool), 0);
        ck_assert_uint_eq(sum_of(file_name(42, 0, "cpu.collapsed.live"), "a;b"), sum);
    }
    ck_assert_int_eq(seal(spool, 0, true), 0);
    size_t size;
    char *text = content(file_name(42, 0, "cpu.collapsed"), &size);
    ck_assert_str_eq(text, "a;b 550000004\nx 7\n");
    free(text);
    spool_free(spool);
}
END_TEST

START_TEST(stacks_longer_than_any_buffer_are_written)
{
    struct spool *spool = spool_with(42, 0, true);
    char frame[1000];
    profile_stack stack = PROFILE_ROOT;
    memset(frame, 'x', sizeof frame);
    for (int i = 0; i < 300; i++) {
        snprintf(frame, 8, "%07d", i);
        frame[7] = 'x';
        stack = profile_push(profile, stack, profile_intern(profile, frame, sizeof frame, 0));
    }
    profile_add(profile, stack, METRIC_CPU, 5000);
    add("short", METRIC_CPU, 6);
    ck_assert_int_eq(flush(spool), 0);
    profile_add(profile, stack, METRIC_CPU, 5000);
    ck_assert_int_eq(flush(spool), 0);
    ck_assert_uint_eq(sum_of(file_name(42, 0, "cpu.collapsed.live"), NULL), 16);
    ck_assert_int_eq(seal(spool, 0, true), 0);
    ck_assert_uint_eq(sum_of(file_name(42, 0, "cpu.collapsed"), NULL), 16);
    spool_free(spool);
}
END_TEST

START_TEST(live_metadata_is_padded_locked_and_renewed_in_place)
{
    struct spool *spool = spool_with(42, 0, true);
    struct metadata metadata = metadata_of(0);
    struct stat status;
    char large[6000];
    add("a", METRIC_CPU, 5);
    ck_assert_int_eq(spool_flush(spool, profile, &metadata), 0);
    const char *path = file_name(42, 0, "json.live");
    ck_assert_int_eq(stat(path, &status), 0);
    ck_assert_int_eq(status.st_size, 4096);
    ino_t inode = status.st_ino;
    memset(large, 'p', sizeof large);
    large[sizeof large - 1] = '\0';
    metadata.program = large;
    ck_assert_int_eq(spool_describe(spool, &metadata), 0);
    ck_assert_int_eq(stat(path, &status), 0);
    ck_assert_int_eq(status.st_size, 8192);
    metadata.program = "small";
    ck_assert_int_eq(spool_describe(spool, &metadata), 0);
    ck_assert_int_eq(stat(path, &status), 0);
    ck_assert_int_eq(status.st_size, 8192);
    ck_assert_uint_eq(status.st_ino, inode);
    json_t *object = object_of(path);
    ck_assert_str_eq(json_string_value(json_object_get(object, "program")), "small");
    json_decref(object);
    int fd = open(path, O_RDONLY);
    ck_assert_int_eq(flock(fd, LOCK_SH | LOCK_NB), -1);
    ck_assert_int_eq(errno, EWOULDBLOCK);
    spool_free(spool);
    ck_assert_int_eq(flock(fd, LOCK_SH | LOCK_NB), 0);
    close(fd);
}
END_TEST

/* Lines of /proc/self/smaps from that of the file to its flags. */
static bool mapped_with(const char *part, const char *flag)
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

START_TEST(mappings_stay_out_of_children_and_off_the_metadata)
{
    struct spool *spool = spool_with(42, 0, true);
    char name[32];
    for (int round = 0; round < 2; round++) {
        for (int i = 0; i < 5000; i++) { /* beyond the first step of the mapping */
            snprintf(name, sizeof name, "main (app.py:1);f%d", i);
            add(name, METRIC_CPU, 5);
        }
        ck_assert_int_eq(flush(spool), 0);
    }
    ck_assert(mapped_with("cpu.collapsed.live", " dc"));
    ck_assert(!mapped_with("json", " "));
    spool_free(spool);
}
END_TEST

START_TEST(without_the_guard_counts_are_written)
{
    ck_assert_int_eq(guard_start(GUARD_SYSCALL), 0);
    struct spool *spool = spool_with(42, 0, true);
    for (int i = 0; i < 3; i++) {
        add("a;b", METRIC_CPU, 5);
        ck_assert_int_eq(flush(spool), 0);
    }
    ck_assert(!mapped_with("collapsed.live", " "));
    ck_assert_uint_eq(sum_of(file_name(42, 0, "cpu.collapsed.live"), "a;b"), 15);
    spool_free(spool);
}
END_TEST

static unsigned descriptors(void)
{
    unsigned count = 0;
    for (int fd = 3; fd < 256; fd++)
        count += fcntl(fd, F_GETFD) >= 0;
    return count;
}

START_TEST(descriptors_are_not_kept_where_they_may_not_be)
{
    unsigned before = descriptors();
    struct spool *spool = spool_with(42, MIB, false);
    for (unsigned window = 0; window < 3; window++) {
        for (int i = 1; i <= 5; i++) {
            add("a;b", METRIC_CPU, 5);
            add(i % 2 ? "c" : "d", METRIC_WALL, 5);
            struct metadata metadata = metadata_of(window);
            ck_assert_int_eq(spool_flush(spool, profile, &metadata), 0);
            ck_assert_int_eq(spool_describe(spool, &metadata), 0);
            ck_assert_uint_eq(descriptors(), before);
        }
        ck_assert_int_eq(seal(spool, window, window == 2), 0);
        ck_assert_uint_eq(descriptors(), before);
        ck_assert_uint_eq(sum_of(file_name(42, window, "cpu.collapsed"), NULL), 25);
    }
    ck_assert_uint_eq(count_names(".live"), 0);
    spool_free(spool);
}
END_TEST

/* ---- sealing ---- */

START_TEST(a_sealed_window_is_sorted_and_plain)
{
    struct spool *spool = spool_with(42, 0, true);
    size_t size;
    static const char *const texts[] = {"b", "a;b;c", "a b", "a;b", "a", "a;c", "B"};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        add(texts[i], METRIC_WALL, i + 1);
    ck_assert_int_eq(flush(spool), 0);
    ck_assert_int_eq(seal(spool, 0, false), 0);
    char *text = content(file_name(42, 0, "wall.collapsed"), &size);
    ck_assert_str_eq(text, "B 7\na 5\na b 3\na;b 4\na;b;c 2\na;c 6\nb 1\n");
    free(text);
    ck_assert_uint_eq(mode_of(file_name(42, 0, "wall.collapsed")), 0600);
    ck_assert(!exists(file_name(42, 0, "cpu.collapsed")));
    ck_assert(!exists(file_name(42, 0, "json.live")));
    ck_assert(!exists(file_name(42, 0, "wall.collapsed.live")));
    ck_assert(exists(file_name(42, 1, "json.live")));
    ck_assert_uint_eq(count_names(".tmp"), 0);
    json_t *object = object_of(file_name(42, 0, "json"));
    ck_assert_str_eq(json_string_value(json_object_get(object, "ended")), "window");
    json_decref(object);
    object = object_of(file_name(42, 1, "json.live"));
    ck_assert_int_eq(json_integer_value(json_object_get(object, "window")), 1);
    json_decref(object);
    add("z", METRIC_CPU, 3);
    ck_assert_int_eq(seal(spool, 1, true), 0);
    ck_assert_uint_eq(sum_of(file_name(42, 1, "cpu.collapsed"), "z"), 3);
    ck_assert_uint_eq(count_names(".live"), 0);
    ck_assert(!spool_is_open(spool));
    spool_free(spool);
}
END_TEST

START_TEST(a_hundred_thousand_stacks_are_sealed)
{
    struct spool *spool = spool_with(42, 0, true);
    char name[96];
    for (unsigned i = 0; i < 100000; i++) {
        snprintf(name, sizeof name, "main (app.py:1);serve (app.py:20);handler_%u (views.py:7);inner_%u (models.py:%u)", i % 300, i / 300, i % 7);
        add(name, METRIC_CPU, 10);
    }
    uint64_t begin = clock_self();
    ck_assert_int_eq(flush(spool), 0);
    uint64_t appended = clock_self();
    for (unsigned i = 0; i < 100000; i++) {
        snprintf(name, sizeof name, "main (app.py:1);serve (app.py:20);handler_%u (views.py:7);inner_%u (models.py:%u)", i % 300, i / 300, i % 7);
        add(name, METRIC_CPU, 10);
    }
    uint64_t again = clock_self();
    ck_assert_int_eq(flush(spool), 0);
    uint64_t stored = clock_self();
    ck_assert_int_eq(seal(spool, 0, true), 0);
    uint64_t sealed = clock_self();
    printf("spool: 100000 stacks: %lu ns a new line, %lu ns a count, sealed in %lu ms\n", (unsigned long)((appended - begin) / 100000),
           (unsigned long)((stored - again) / 100000), (unsigned long)((sealed - stored) / 1000000));
    fflush(stdout);
    ck_assert_uint_eq(sum_of(file_name(42, 0, "cpu.collapsed"), NULL), 2000000);
    char command[1024];
    snprintf(command, sizeof command, "sed 's/ [0-9]*$//' %s | LC_ALL=C sort -c", file_name(42, 0, "cpu.collapsed"));
    ck_assert_int_eq(system(command), 0);
    spool_free(spool);
}
END_TEST

/* ---- death ---- */

/* Writes without pause and tells, after each flush, what must be in the files. */
static void write_until_killed(volatile uint64_t *told, unsigned seed)
{
    struct spool *spool = spool_with(42, 0, true);
    uint64_t sum = 0;
    char name[64];
    for (unsigned round = 0;; round++) {
        for (unsigned i = 0; i < 20; i++) {
            seed = seed * 1103515245u + 12345u;
            snprintf(name, sizeof name, "main (app.py:1);f%u (app.py:%u)", (seed >> 8) % (round < 500 ? 50 + round * 5 : 2550), seed % 7);
            add(name, METRIC_CPU, 100000);
            sum += 100000;
        }
        struct metadata metadata = metadata_of(0);
        if (spool_flush(spool, profile, &metadata) != 0)
            _exit(1);
        *told = sum;
        if (round % 50 == 0)
            spool_describe(spool, &metadata);
    }
}

START_TEST(killed_at_any_moment_all_that_was_flushed_is_there)
{
    volatile uint64_t *told = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    srand((unsigned)getpid());
    for (unsigned i = 0; i < 60; i++) {
        int status;
        *told = 0;
        pid_t child = fork();
        if (child == 0)
            write_until_killed(told, i + 1);
        while (*told == 0)
            usleep(100);
        usleep((useconds_t)(rand() % 20000));
        kill(child, SIGKILL);
        waitpid(child, &status, 0);
        ck_assert(WIFSIGNALED(status));
        const char *path = file_name(42, 0, "cpu.collapsed.live");
        size_t size;
        char *text = content(path, &size);
        while (size > 0 && text[size - 1] != '\n') /* a reader's rule: up to the last newline */
            size--;
        ck_assert_ptr_null(memchr(text, '\0', size));
        ck_assert_int_eq(truncate(path, (off_t)size), 0);
        free(text);
        ck_assert_uint_ge(sum_of(path, NULL), *told);
        remove_tree(directory);
    }
    munmap((void *)told, 4096);
}
END_TEST

START_TEST(awk_reads_while_it_is_written)
{
    volatile uint64_t *told = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    char command[1536];
    int status;
    pid_t child = fork();
    if (child == 0)
        write_until_killed(told, 7);
    while (*told == 0)
        usleep(100);
    uint64_t last = 0; /* only the last line may be cut: an append in progress */
    for (int i = 0; i < 40; i++) {
        uint64_t before = *told;
        unsigned long sum = 0;
        snprintf(command, sizeof command, "head -c \"$(stat -c %%s %1$s)\" %1$s | awk 'cut {bad = 1} $NF !~ /^[0-9]+$/ || NF != 4 {cut = 1; next} {sum += $NF} END {printf \"%%.0f\\n\", bad ? 0 : sum}'",
                 file_name(42, 0, "cpu.collapsed.live"));
        FILE *pipe = popen(command, "r");
        ck_assert_int_eq(fscanf(pipe, "%lu", &sum), 1);
        pclose(pipe);
        ck_assert_uint_ge(sum, before);
        ck_assert_uint_ge(sum, last);
        last = sum;
    }
    kill(child, SIGKILL);
    waitpid(child, &status, 0);
    munmap((void *)told, 4096);
}
END_TEST

/* ---- what others do to the files ---- */

START_TEST(a_file_cut_by_somebody_is_begun_anew)
{
    static const off_t lengths[] = {0, 5, 4096, 70000};
    for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++) {
        struct spool *spool = spool_with(42, 0, true);
        char name[64];
        uint64_t sum = 0;
        for (int round = 0; round < 3; round++) {
            for (int k = 0; k < 3000; k++, sum += 10) {
                snprintf(name, sizeof name, "main (app.py:1);f%d (app.py:2)", k);
                add(name, METRIC_CPU, 10);
            }
            ck_assert_int_eq(flush(spool), 0);
            if (round == 0)
                ck_assert_int_eq(truncate(file_name(42, 0, "cpu.collapsed.live"), lengths[i]), 0);
            int described = describe(spool); /* a cut within a page is seen now, one beyond by SIGBUS */
            ck_assert(described == 0 || described == -ESTALE);
            ck_assert_int_eq(flush(spool), 0);
        }
        unsigned files;
        ck_assert_uint_eq(sum_of_all(METRIC_CPU, &files), sum);
        ck_assert_uint_eq(files, 1);
        ck_assert_int_eq(seal(spool, 0, true), 0);
        ck_assert_uint_eq(sum_of_all(METRIC_CPU, NULL), sum);
        spool_free(spool);
        remove_tree(directory);
        profile_clear(profile, false);
    }
}
END_TEST

START_TEST(a_fault_in_a_store_moves_the_window_to_writes)
{
    struct spool *spool = spool_with(42, 0, true);
    char name[64];
    for (int round = 0; round < 2; round++) {
        for (int k = 0; k < 3000; k++) {
            snprintf(name, sizeof name, "main (app.py:1);f%d (app.py:2)", k);
            add(name, METRIC_CPU, 10);
        }
        ck_assert_int_eq(flush(spool), 0);
        if (round == 0)
            ck_assert_int_eq(truncate(file_name(42, 0, "cpu.collapsed.live"), 0), 0);
    }
    add("main (app.py:1);f0 (app.py:2)", METRIC_CPU, 1);
    ck_assert_int_eq(flush(spool), 0);
    ck_assert(!mapped_with("cpu.collapsed.live", " "));
    ck_assert_uint_eq(sum_of_all(METRIC_CPU, NULL), 60001);
    spool_free(spool);
}
END_TEST

START_TEST(a_directory_taken_away_is_made_again_with_everything)
{
    struct spool *spool = spool_with(42, 0, true);
    add("a;b", METRIC_CPU, 5);
    add("a;c", METRIC_WALL, 6);
    ck_assert_int_eq(flush(spool), 0);
    remove_tree(directory);
    ck_assert_int_eq(describe(spool), -ESTALE);
    ck_assert_int_eq(flush(spool), 0);
    ck_assert_uint_eq(sum_of_all(METRIC_CPU, NULL), 5);
    ck_assert_uint_eq(sum_of_all(METRIC_WALL, NULL), 6);
    ck_assert(exists(path_of(".gitignore")));
    char moved[96];
    snprintf(moved, sizeof moved, "%s/moved", top);
    ck_assert_int_eq(rename(directory, moved), 0);
    add("a;b", METRIC_CPU, 5);
    ck_assert_int_eq(seal(spool, 0, true), 0);
    ck_assert_uint_eq(sum_of_all(METRIC_CPU, NULL), 10);
    ck_assert_uint_eq(count_names(".live"), 0);
    spool_free(spool);
}
END_TEST

START_TEST(one_file_removed_begins_a_new_window)
{
    struct spool *spool = spool_with(42, 0, true);
    add("a;b", METRIC_CPU, 5);
    add("a;c", METRIC_WALL, 6);
    ck_assert_int_eq(flush(spool), 0);
    unlink(file_name(42, 0, "wall.collapsed.live"));
    ck_assert_int_eq(describe(spool), -ESTALE);
    ck_assert_int_eq(flush(spool), 0);
    ck_assert_uint_eq(count_names(".live"), 3);
    ck_assert_uint_eq(sum_of(file_name(42, 1, "cpu.collapsed.live"), NULL), 5);
    ck_assert_uint_eq(sum_of(file_name(42, 1, "wall.collapsed.live"), NULL), 6);
    ck_assert_int_eq(seal(spool, 0, false), 0);
    json_t *object = object_of(file_name(42, 1, "json"));
    ck_assert_int_eq(json_integer_value(json_object_get(object, "window")), 1);
    json_decref(object);
    ck_assert(exists(file_name(42, 2, "json.live")));
    spool_free(spool);
}
END_TEST

START_TEST(planted_names_are_not_followed)
{
    char target[96];
    size_t size;
    snprintf(target, sizeof target, "%s/target", top);
    FILE *file = fopen(target, "w");
    fputs("precious\n", file);
    fclose(file);
    ck_assert_int_eq(mkdir(directory, 0700), 0);
    ck_assert_int_eq(symlink(target, file_name(42, 0, "json.live")), 0);
    ck_assert_int_eq(symlink(target, file_name(42, 1, "cpu.collapsed.live")), 0);
    ck_assert_int_eq(symlink(target, file_name(42, 2, "cpu.collapsed.tmp")), 0);
    ck_assert_int_eq(symlink(target, path_of(".aprof.lock")), 0);
    struct spool *spool = spool_with(42, MIB, true);
    add("a;b", METRIC_CPU, 5);
    ck_assert_int_eq(flush(spool), 0);
    ck_assert_uint_eq(sum_of(file_name(42, 2, "cpu.collapsed.live"), NULL), 5);
    ck_assert_int_eq(seal(spool, 0, true), 0);
    ck_assert_uint_eq(sum_of(file_name(42, 2, "cpu.collapsed"), NULL), 5);
    char *text = content(target, &size);
    ck_assert_str_eq(text, "precious\n");
    free(text);
    spool_free(spool);
}
END_TEST

START_TEST(two_writers_share_a_directory)
{
    enum { WINDOWS = 20 };
    pid_t children[2];
    for (int i = 0; i < 2; i++) {
        children[i] = fork();
        if (children[i] != 0)
            continue;
        struct spool *spool = spool_with(100 + i, 1, true);
        int bad = 0;
        for (unsigned window = 0; window < WINDOWS; window++) {
            add("a;b", METRIC_CPU, 5);
            struct metadata metadata = metadata_of(window);
            bad |= spool_flush(spool, profile, &metadata) != 0;
            bad |= seal(spool, window, false) != 0;
        }
        add("a;b", METRIC_CPU, 5);
        struct metadata metadata = metadata_of(WINDOWS);
        bad |= spool_flush(spool, profile, &metadata) != 0;
        raise(SIGSTOP); /* alive and silent */
        _exit(bad);
    }
    for (int i = 0; i < 2; i++) {
        int status;
        waitpid(children[i], &status, WUNTRACED);
        ck_assert(WIFSTOPPED(status));
    }
    for (int i = 0; i < 2; i++) {
        ck_assert(exists(file_name(100 + i, WINDOWS, "cpu.collapsed.live"))); /* living ones never go */
        int status;
        kill(children[i], SIGCONT);
        waitpid(children[i], &status, 0);
        ck_assert(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    }
}
END_TEST

/* ---- full disks and forbidden directories ---- */

static bool mount_small(const char *options)
{
    if (mkdir(directory, 0700) == 0 && mount("tmpfs", directory, "tmpfs", 0, options) == 0)
        return true;
    printf("spool: tests on a full disk not run: no right to mount\n");
    fflush(stdout);
    return false;
}

static void fill_up(void)
{
    char block[4096];
    int fd = open(path_of("ballast"), O_WRONLY | O_CREAT | O_APPEND, 0600);
    memset(block, 'x', sizeof block);
    while (write(fd, block, sizeof block) > 0)
        ;
    close(fd);
}

START_TEST(a_full_disk_stops_new_lines_but_no_counts)
{
    if (!mount_small("size=256k"))
        return;
    struct spool *spool = spool_with(42, 0, true);
    char name[128];
    uint64_t sum = 0;
    add("known", METRIC_CPU, 1);
    ck_assert_int_eq(flush(spool), 0);
    fill_up();
    for (int i = 0; i < 3000; i++, sum += 10) {
        snprintf(name, sizeof name, "main (app.py:1);a_function_with_a_rather_long_name_%d (app.py:2)", i);
        add(name, METRIC_CPU, 10);
    }
    ck_assert_int_eq(flush(spool), -ENOSPC);
    ck_assert_uint_ge(spool_errors(spool), 1);
    uint64_t got = sum_of(file_name(42, 0, "cpu.collapsed.live"), NULL); /* every line whole */
    ck_assert_uint_lt(got, sum);
    add("known", METRIC_CPU, 41);
    flush(spool);
    ck_assert_uint_eq(sum_of(file_name(42, 0, "cpu.collapsed.live"), "known"), 42);
    ck_assert_int_eq(seal(spool, 0, false), -ENOSPC); /* the window goes on */
    ck_assert_uint_eq(count_names(".tmp"), 0);
    ck_assert(exists(file_name(42, 0, "json.live")));
    ck_assert_uint_eq(sum_of(file_name(42, 0, "cpu.collapsed.live"), "known"), 42);
    ck_assert_int_eq(umount2(directory, MNT_DETACH), 0); /* as if somebody had moved the disk away */
    ck_assert_int_eq(seal(spool, 0, true), 0);
    ck_assert_uint_eq(sum_of_all(METRIC_CPU, NULL), sum + 42);
    spool_free(spool);
}
END_TEST

START_TEST(room_made_on_a_full_disk_is_used)
{
    if (!mount_small("size=1m"))
        return;
    struct spool *spool = spool_with(42, 0, true);
    char name[128];
    uint64_t sum = 0;
    add("known", METRIC_CPU, 1);
    ck_assert_int_eq(flush(spool), 0);
    fill_up();
    for (int i = 0; i < 1000; i++, sum += 10) {
        snprintf(name, sizeof name, "main (app.py:1);a_function_with_a_rather_long_name_%d (app.py:2)", i);
        add(name, METRIC_CPU, 10);
    }
    ck_assert_int_eq(flush(spool), -ENOSPC);
    unlink(path_of("ballast"));
    ck_assert_int_lt(flush(spool), 0); /* not every tick: the disk is asked once a second */
    usleep(1050000);
    ck_assert_int_eq(flush(spool), 0);
    ck_assert_uint_eq(sum_of(file_name(42, 0, "cpu.collapsed.live"), NULL), sum + 1);
    fill_up();
    ck_assert_int_eq(seal(spool, 0, false), -ENOSPC);
    unlink(path_of("ballast"));
    ck_assert_int_eq(seal(spool, 0, false), 0);
    ck_assert_uint_eq(sum_of_all(METRIC_CPU, NULL), sum + 1);
    ck_assert_uint_eq(count_names("json.live"), 1);
    spool_free(spool);
    umount2(directory, MNT_DETACH);
}
END_TEST

START_TEST(a_directory_that_opens_up_gets_what_waited)
{
    if (geteuid() != 0) {
        printf("spool: forbidden directories not run: not root\n");
        return;
    }
    ck_assert_int_eq(mkdir(directory, 0755), 0);
    ck_assert_int_eq(chmod(top, 0755), 0);
    pid_t child = fork();
    if (child == 0) {
        ck_assert_int_eq(setresuid(NOBODY, NOBODY, NOBODY), 0);
        struct spool *spool = spool_with(42, 0, true);
        add("a;b", METRIC_CPU, 5);
        if (flush(spool) != -EACCES || flush(spool) != -EACCES)
            _exit(1);
        raise(SIGSTOP);
        usleep(1050000);
        add("a;b", METRIC_CPU, 5);
        _exit(flush(spool) != 0);
    }
    int status;
    waitpid(child, &status, WUNTRACED);
    ck_assert(WIFSTOPPED(status));
    ck_assert_int_eq(chmod(directory, 01777), 0);
    kill(child, SIGCONT);
    waitpid(child, &status, 0);
    ck_assert(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    ck_assert_uint_eq(sum_of(file_name(42, 0, "cpu.collapsed.live"), NULL), 10);
}
END_TEST

START_TEST(a_relative_or_impossible_directory_is_an_error)
{
    static const struct { const char *path; int error; } rows[] = {
        {"relative/spool", -EINVAL}, {"", -EINVAL}, {"/dev/null/spool", -ENOTDIR}, {"/proc/none/spool", -ENOENT}};
    add("a", METRIC_CPU, 5);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct spool *spool = spool_new(&(struct spool_options){rows[i].path, "h", 1, START, MIB, true});
        ck_assert_int_eq(flush(spool), rows[i].error);
        ck_assert_int_eq(seal(spool, 0, true), rows[i].error);
        ck_assert_uint_eq(profile_total_ns(profile, METRIC_CPU), 5000);
        spool_free(spool);
    }
}
END_TEST

START_TEST(missing_directories_above_are_made)
{
    strcat(directory, "/deep/er");
    struct spool *spool = spool_with(42, 0, true);
    add("a", METRIC_CPU, 5);
    ck_assert_int_eq(flush(spool), 0);
    ck_assert_uint_eq(sum_of(file_name(42, 0, "cpu.collapsed.live"), NULL), 5);
    spool_free(spool);
}
END_TEST

/* ---- the bound on the directory ---- */

static void plant(pid_t pid, unsigned seq, const char *rest, size_t size, int age_s)
{
    const char *path = file_name(pid, seq, rest);
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    ck_assert_int_ge(fd, 0);
    ck_assert_int_eq(ftruncate(fd, (off_t)size), 0);
    struct timespec times[2] = {{.tv_sec = time(NULL) - age_s}, {.tv_sec = time(NULL) - age_s}};
    ck_assert_int_eq(futimens(fd, times), 0);
    close(fd);
}

START_TEST(the_oldest_windows_go_first_and_the_living_stay)
{
    ck_assert_int_eq(mkdir(directory, 0700), 0);
    for (unsigned i = 0; i < 8; i++) { /* sealed: 200 KiB each, ages 1000, 990, ... */
        plant(7, i, "cpu.collapsed", 150 << 10, 1000 - 10 * (int)i);
        plant(7, i, "json", 50 << 10, 1000 - 10 * (int)i);
    }
    plant(8, 0, "json.live", 4096, 2000); /* dead */
    plant(8, 0, "cpu.collapsed.live", 300 << 10, 2000);
    plant(9, 0, "cpu.collapsed.live", 10 << 10, 3000); /* dead: no metadata */
    plant(10, 0, "json.live", 4096, 3000); /* locked: alive */
    plant(10, 0, "cpu.collapsed.live", 100 << 10, 3000);
    plant(11, 0, "json.live", 4096, 2); /* renewed lately: alive */
    plant(11, 0, "wall.collapsed.live", 100 << 10, 3000);
    plant(12, 0, "cpu.collapsed.tmp", 10 << 10, 3000); /* left by a sealing that was killed */
    close(open(path_of("aprof.notes.txt"), O_WRONLY | O_CREAT, 0600)); /* not one of our names */
    int lock = open(file_name(10, 0, "json.live"), O_RDWR);
    ck_assert_int_eq(flock(lock, LOCK_EX), 0);

    struct spool *spool = spool_with(42, MIB, true);
    add("a", METRIC_CPU, 5);
    ck_assert_int_eq(seal(spool, 0, false), 0);
    ck_assert(!exists(file_name(8, 0, "json.live")));
    ck_assert(!exists(file_name(8, 0, "cpu.collapsed.live")));
    ck_assert(!exists(file_name(9, 0, "cpu.collapsed.live")));
    ck_assert(!exists(file_name(12, 0, "cpu.collapsed.tmp")));
    ck_assert(exists(file_name(10, 0, "cpu.collapsed.live")));
    ck_assert(exists(file_name(11, 0, "wall.collapsed.live")));
    ck_assert(exists(path_of("aprof.notes.txt")));
    ck_assert(exists(file_name(42, 0, "cpu.collapsed")));
    /* 1 MiB less 208 KiB alive and our own leaves room for four of 200 KiB */
    for (unsigned i = 0; i < 8; i++) {
        ck_assert_int_eq(exists(file_name(7, i, "cpu.collapsed")), i >= 4);
        ck_assert_int_eq(exists(file_name(7, i, "json")), i >= 4);
    }
    ck_assert(!spool_is_full(spool));
    close(lock);
    spool_free(spool);
}
END_TEST

START_TEST(living_windows_alone_beyond_the_bound_stop_new_stacks)
{
    ck_assert_int_eq(mkdir(directory, 0700), 0);
    plant(10, 0, "json.live", 4096, 0);
    plant(10, 0, "cpu.collapsed.live", 2 * MIB, 0);
    struct spool *spool = spool_with(42, MIB, true);
    add("a", METRIC_CPU, 5);
    ck_assert_int_eq(seal(spool, 0, false), 0);
    ck_assert(spool_is_full(spool));
    ck_assert_uint_eq(spool_limit_hits(spool), 1);
    ck_assert(!exists(file_name(42, 0, "cpu.collapsed"))); /* sealed windows are the first to go */
    unlink(file_name(10, 0, "cpu.collapsed.live"));
    unlink(file_name(10, 0, "json.live"));
    add("a", METRIC_CPU, 5);
    ck_assert_int_eq(seal(spool, 1, false), 0);
    ck_assert(!spool_is_full(spool));
    spool_free(spool);
}
END_TEST

START_TEST(who_cannot_get_the_lock_leaves_it)
{
    ck_assert_int_eq(mkdir(directory, 0700), 0);
    plant(7, 0, "cpu.collapsed", 2 * MIB, 100);
    int lock = open(path_of(".aprof.lock"), O_RDWR | O_CREAT, 0600);
    ck_assert_int_eq(flock(lock, LOCK_EX), 0);
    struct spool *spool = spool_with(42, MIB, true);
    add("a", METRIC_CPU, 5);
    ck_assert_int_eq(seal(spool, 0, false), 0);
    ck_assert(exists(file_name(7, 0, "cpu.collapsed")));
    close(lock);
    add("a", METRIC_CPU, 5);
    ck_assert_int_eq(seal(spool, 1, true), 0);
    ck_assert(!exists(file_name(7, 0, "cpu.collapsed")));
    spool_free(spool);
}
END_TEST

START_TEST(a_long_listing_is_good_for_a_while)
{
    char name[64];
    ck_assert_int_eq(mkdir(directory, 0700), 0);
    for (unsigned i = 0; i < 6000; i++) {
        snprintf(name, sizeof name, "aprof.h.7.1.%06u.json", i);
        close(open(path_of(name), O_WRONLY | O_CREAT, 0600));
    }
    struct spool *spool = spool_with(42, MIB, true);
    add("a", METRIC_CPU, 5);
    ck_assert_int_eq(seal(spool, 0, false), 0);
    plant(7, 0, "cpu.collapsed", 2 * MIB, 100); /* not by one of us: seen by the next listing */
    add("a", METRIC_CPU, 5);
    ck_assert_int_eq(seal(spool, 1, false), 0);
    ck_assert(exists(file_name(7, 0, "cpu.collapsed")));
    for (unsigned window = 2; window < 300 && exists(file_name(7, 0, "cpu.collapsed")); window++) {
        for (unsigned i = 0; i < 1000; i++) {
            snprintf(name, sizeof name, "main (app.py:1);f%u (app.py:2)", i);
            add(name, METRIC_CPU, 5);
        }
        ck_assert_int_eq(seal(spool, window, false), 0);
    }
    ck_assert(!exists(file_name(7, 0, "cpu.collapsed"))); /* what we added passed the bound */
    spool_free(spool);
}
END_TEST

START_TEST(a_full_heap_is_sealed_all_the_same)
{
    ck_assert_int_eq(mem_init((size_t)3 << 20), 0);
    profile_free(profile);
    profile = profile_new();
    struct spool *spool = spool_with(42, 0, true);
    char name[96];
    for (unsigned i = 0; i < 60000; i++) {
        snprintf(name, sizeof name, "main (app.py:1);a_function_%u (app.py:%u)", i, i);
        add(name, METRIC_CPU, 10);
    }
    ck_assert_uint_gt(profile_overflows(profile), 0);
    ck_assert_int_eq(flush(spool), 0);
    ck_assert_int_eq(seal(spool, 0, true), 0);
    ck_assert_uint_eq(sum_of(file_name(42, 0, "cpu.collapsed"), NULL), 600000);
    spool_free(spool);
}
END_TEST

START_TEST(where_it_cannot_list_each_bounds_its_own)
{
    if (geteuid() != 0)
        return;
    ck_assert_int_eq(mkdir(directory, 01733), 0);
    ck_assert_int_eq(chmod(directory, 01733), 0);
    ck_assert_int_eq(chmod(top, 0755), 0);
    plant(7, 0, "cpu.collapsed", 5 * MIB, 100);
    pid_t child = fork();
    if (child == 0) {
        ck_assert_int_eq(setresuid(NOBODY, NOBODY, NOBODY), 0);
        struct spool *spool = spool_with(42, 40000, true);
        int bad = 0;
        for (unsigned window = 0; window < 20; window++) {
            char name[4096];
            memset(name, 'x', sizeof name - 1);
            name[sizeof name - 1] = '\0';
            add(name, METRIC_CPU, 5);
            bad |= seal(spool, window, false) != 0;
        }
        spool_free(spool);
        _exit(bad);
    }
    int status;
    waitpid(child, &status, 0);
    ck_assert(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    ck_assert(exists(file_name(7, 0, "cpu.collapsed")));
    ck_assert(exists(file_name(42, 19, "cpu.collapsed")));
    ck_assert(!exists(file_name(42, 10, "cpu.collapsed")));
    ck_assert(!exists(file_name(42, 10, "json")));
}
END_TEST

/* ---- pausing for a fork ---- */

START_TEST(paused_it_says_so_and_goes_on_after)
{
    struct spool *spool = spool_with(42, 0, true);
    struct metadata metadata = metadata_of(0);
    unsigned before = descriptors();
    add("a", METRIC_CPU, 5);
    add("b", METRIC_WALL, 5);
    ck_assert_int_eq(flush(spool), 0);
    ck_assert_int_eq(spool_pause(spool, &metadata), 0);
    ck_assert_uint_eq(descriptors(), before);
    json_t *object = object_of(file_name(42, 0, "json.live"));
    ck_assert(json_is_true(json_object_get(object, "paused")));
    json_decref(object);
    add("a", METRIC_CPU, 5);
    ck_assert_int_eq(flush(spool), 0); /* through the mapping */
    ck_assert_uint_eq(sum_of(file_name(42, 0, "cpu.collapsed.live"), "a"), 10);
    add("new", METRIC_CPU, 5);
    ck_assert_int_eq(flush(spool), -EAGAIN);
    ck_assert_int_eq(spool_resume(spool, profile, &metadata), 0);
    ck_assert_int_eq(flush(spool), 0);
    ck_assert_uint_eq(sum_of(file_name(42, 0, "cpu.collapsed.live"), NULL), 15);
    object = object_of(file_name(42, 0, "json.live"));
    ck_assert_ptr_null(json_object_get(object, "paused"));
    json_decref(object);
    int fd = open(file_name(42, 0, "json.live"), O_RDONLY);
    ck_assert_int_eq(flock(fd, LOCK_SH | LOCK_NB), -1);
    close(fd);
    spool_free(spool);
}
END_TEST

START_TEST(coming_back_to_files_that_are_not_its_own_it_begins_anew)
{
    struct spool *spool = spool_with(42, 0, true);
    struct metadata metadata = metadata_of(0);
    add("a", METRIC_CPU, 5);
    ck_assert_int_eq(flush(spool), 0);
    ck_assert_int_eq(spool_pause(spool, &metadata), 0);
    unlink(file_name(42, 0, "cpu.collapsed.live"));
    plant(42, 0, "cpu.collapsed.live", 100, 0);
    ck_assert_int_eq(spool_resume(spool, profile, &metadata), 0);
    ck_assert_uint_eq(sum_of(file_name(42, 1, "cpu.collapsed.live"), "a"), 5);
    ck_assert(!exists(file_name(42, 0, "json.live")));
    ck_assert(exists(file_name(42, 0, "cpu.collapsed.live"))); /* somebody else's */
    spool_free(spool);
}
END_TEST

Suite *suite_spool(void)
{
    Suite *suite = suite_create("spool");
    TCase *tcase = tcase_create("spool");
    tcase_add_checked_fixture(tcase, setup, teardown);
    tcase_set_timeout(tcase, 60);
    tcase_add_test(tcase, nothing_is_made_before_there_is_something_to_write);
    tcase_add_test(tcase, live_files_are_as_the_format_says);
    tcase_add_test(tcase, counts_change_in_place);
    tcase_add_test(tcase, a_count_too_high_for_its_line_goes_on_in_a_new_one);
    tcase_add_test(tcase, stacks_longer_than_any_buffer_are_written);
    tcase_add_test(tcase, live_metadata_is_padded_locked_and_renewed_in_place);
    tcase_add_test(tcase, mappings_stay_out_of_children_and_off_the_metadata);
    tcase_add_test(tcase, without_the_guard_counts_are_written);
    tcase_add_test(tcase, descriptors_are_not_kept_where_they_may_not_be);
    tcase_add_test(tcase, a_sealed_window_is_sorted_and_plain);
    tcase_add_test(tcase, a_hundred_thousand_stacks_are_sealed);
    tcase_add_test(tcase, killed_at_any_moment_all_that_was_flushed_is_there);
    tcase_add_test(tcase, awk_reads_while_it_is_written);
    tcase_add_test(tcase, a_file_cut_by_somebody_is_begun_anew);
    tcase_add_test(tcase, a_fault_in_a_store_moves_the_window_to_writes);
    tcase_add_test(tcase, a_directory_taken_away_is_made_again_with_everything);
    tcase_add_test(tcase, one_file_removed_begins_a_new_window);
    tcase_add_test(tcase, planted_names_are_not_followed);
    tcase_add_test(tcase, two_writers_share_a_directory);
    tcase_add_test(tcase, a_full_disk_stops_new_lines_but_no_counts);
    tcase_add_test(tcase, room_made_on_a_full_disk_is_used);
    tcase_add_test(tcase, a_directory_that_opens_up_gets_what_waited);
    tcase_add_test(tcase, a_relative_or_impossible_directory_is_an_error);
    tcase_add_test(tcase, missing_directories_above_are_made);
    tcase_add_test(tcase, the_oldest_windows_go_first_and_the_living_stay);
    tcase_add_test(tcase, living_windows_alone_beyond_the_bound_stop_new_stacks);
    tcase_add_test(tcase, who_cannot_get_the_lock_leaves_it);
    tcase_add_test(tcase, a_long_listing_is_good_for_a_while);
    tcase_add_test(tcase, a_full_heap_is_sealed_all_the_same);
    tcase_add_test(tcase, where_it_cannot_list_each_bounds_its_own);
    tcase_add_test(tcase, paused_it_says_so_and_goes_on_after);
    tcase_add_test(tcase, coming_back_to_files_that_are_not_its_own_it_begins_anew);
    suite_add_tcase(suite, tcase);
    return suite;
}
