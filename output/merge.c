/* SPDX-License-Identifier: MIT
 *
 * Files are written under names that readers pass over, and get their own when all of
 * them are whole, the metadata last. What went wrong leaves nothing behind.
 *
 * The window is called aprof.merged-HASH.0.START.000000: HASH is of what was merged, so
 * that the same merge given twice is read once, and two merges are two.
 */
#include "output/merge.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <inttypes.h>
#include <libgen.h> /* dirname */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "output/collapsed.h"
#include "output/document.h"
#include "output/kind.h"
#include "output/leftout.h"
#include "output/merged.h"
#include "output/nothing.h"
#include "output/progress.h"
#include "output/quality.h"
#include "output/reader.h"
#include "output/spool_format.h"
#include "output/tool.h"

const char merge_help[] =
    "NAME\n"
    "    aprof merge - many spools as one\n"
    "\n"
    "SYNOPSIS\n"
    "    aprof merge -o DIR [PATH]...\n"
    "\n"
    "DESCRIPTION\n"
    "    Reads spool directories and single spool files as `aprof report` does (without\n"
    "    PATH: " TOOL_DEFAULT_PATH "), of any number of runs, processes and hosts, and writes a\n"
    "    spool of one window: one file of stacks a metric, equal stacks added up, and one\n"
    "    of metadata. `aprof report`, flame, diff and convert read it as they read the\n"
    "    others, and say the same of it: its sums, processes, covered time, counters and\n"
    "    what was lost are those of all.\n"
    "\n"
    "    What it does not keep is which process or window a stack was in: report --by\n"
    "    process has one row of it, and diff takes it for one run of one window, with\n"
    "    less known about noise. A metric that is a level (heap) is that of each\n"
    "    process's last window. Where settings, tags and versions differ, all are named.\n"
    "\n"
    "    The files of a running process are read as they are; the result does not change\n"
    "    any more.\n"
    "\n"
    "OPTIONS\n"
    "    -o, --output DIR     made (mode 0700; its files 0600), or an empty directory\n"
    "                         that is there. Nothing is ever overwritten\n"
    "    -q, --quiet          no line on the terminal that says how much was read\n"
    "    -h, --help           this text\n"
    "\n"
    "EXIT STATUS\n"
    "    0  fine\n"
    "    2  wrong usage\n"
    "    3  nothing to merge; nothing is written\n"
    "    4  some input could not be read (the rest is merged), or the output could not be\n"
    "       written (nothing is left of it)\n"
    "\n"
    "EXAMPLES\n"
    "    aprof merge -o monday /var/spool/aprof\n"
    "    aprof merge -o all web-1/aprof-spool web-2/aprof-spool && aprof report all\n";

/* One file: under a name of its own until all are whole. */
struct output {
    char metric[SPOOL_METRIC_MAX + 1]; /* "": the metadata */
    bool is_named;
};

struct merge {
    const char *path;
    int directory;
    bool is_ours; /* we made it */
    struct reader *reader;
    struct quality *quality;
    json_t *metrics; /* metrics{} of the metadata */
    struct output *outputs;
    size_t count, room;
    struct spool_name name;
    uint64_t hash;
    bool has_time; /* any of it */
};

static bool merge_failed(const char *path, int error)
{
    tool_complain("%s: %s", path, strerror(error));
    return false;
}

/* ---- options -------------------------------------------------------------- */

/* Returns an exit status, or -1 to go on. */
static int options_parse(struct merge *merge, int argc, char **argv)
{
    static const struct option options[] = {
        { "output", required_argument, NULL, 'o' }, { "quiet", no_argument, NULL, 'q' },
        { "help", no_argument, NULL, 'h' },         { 0 },
    };
    opterr = 0;
    for (int option; (option = getopt_long(argc, argv, ":o:qh", options, NULL)) != -1;) {
        switch (option) {
        case 'o': merge->path = optarg; break;
        case 'q': progress_quiet(); break;
        case 'h': fputs(merge_help, stdout); return TOOL_FINE;
        default: return tool_option_wrong("merge", option, argv);
        }
    }
    if (merge->path && *merge->path)
        return -1;
    tool_complain("merge: --output is missing: the directory to write to");
    return TOOL_USAGE;
}

/* ---- the directory -------------------------------------------------------- */

static bool is_directory_of(const char *path, const struct stat *wanted)
{
    struct stat status;
    char *copy = tool_copy(path, strlen(path));
    bool same = !stat(path, &status) && S_ISDIR(status.st_mode) && status.st_dev == wanted->st_dev && status.st_ino == wanted->st_ino;
    same = same || (!stat(path, &status) && !S_ISDIR(status.st_mode) && !stat(dirname(copy), &status) &&
                    status.st_dev == wanted->st_dev && status.st_ino == wanted->st_ino);
    free(copy);
    return same;
}

/* What is read is not written to: neither a directory given, nor that of a file given. */
static bool is_input(const char *path, int count, char **paths)
{
    struct stat status;
    if (stat(path, &status))
        return false;
    for (int at = 0; at < count; at++)
        if (is_directory_of(paths[at], &status))
            return true;
    return !count && is_directory_of(TOOL_DEFAULT_PATH, &status);
}

static bool is_empty(int directory)
{
    int copy = openat(directory, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *listing = copy < 0 ? NULL : fdopendir(copy);
    bool empty = listing;
    for (struct dirent *entry; empty && (entry = readdir(listing));)
        empty = !strcmp(entry->d_name, ".") || !strcmp(entry->d_name, "..");
    if (listing)
        closedir(listing);
    else if (copy >= 0)
        close(copy);
    return empty;
}

static bool directory_open(struct merge *merge)
{
    merge->is_ours = !mkdir(merge->path, 0700);
    if (!merge->is_ours && errno != EEXIST)
        return merge_failed(merge->path, errno);
    merge->directory = open(merge->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (merge->directory < 0)
        return merge_failed(merge->path, errno); /* one that is there, and no directory, or not ours to read */
    if (merge->is_ours || is_empty(merge->directory))
        return true;
    tool_complain("%s: is not empty: a merge has a directory of its own", merge->path);
    return false;
}

/* ---- files ---------------------------------------------------------------- */

static void name_of(const struct merge *merge, const struct output *output, enum spool_state state, char text[SPOOL_NAME_MAX + 1])
{
    struct spool_name name = merge->name;
    strcpy(name.metric, output->metric);
    name.state = state;
    if (state == SPOOL_SEALED)
        snprintf(name.host, sizeof name.host, "merged-%016" PRIx64, merge->hash);
    spool_name_format(&name, text, SPOOL_NAME_MAX + 1);
}

static FILE *file_make(const struct merge *merge, const char *name)
{
    int file = openat(merge->directory, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    FILE *stream = file < 0 ? NULL : fdopen(file, "w");
    if (!stream && file >= 0)
        close(file);
    return stream;
}

static FILE *output_open(struct merge *merge, const char *metric)
{
    char name[SPOOL_NAME_MAX + 1];
    merge->outputs = tool_grow(merge->outputs, merge->count, &merge->room, sizeof *merge->outputs);
    struct output *output = &merge->outputs[merge->count];
    snprintf(output->metric, sizeof output->metric, "%s", metric);
    name_of(merge, output, SPOOL_TEMPORARY, name);
    FILE *stream = file_make(merge, name);
    if (stream)
        merge->count++;
    else
        merge_failed(merge->path, errno);
    return stream;
}

static bool output_close(const struct merge *merge, FILE *stream)
{
    bool good = !fflush(stream) && !ferror(stream);
    int error = errno;
    if (fclose(stream) && good) {
        good = false;
        error = errno;
    }
    return good || merge_failed(merge->path, error);
}

/* Never onto what is there. */
static bool file_rename(const struct merge *merge, const char *from, const char *to)
{
    if (!renameat2(merge->directory, from, merge->directory, to, RENAME_NOREPLACE))
        return true;
    if (errno != EINVAL && errno != ENOSYS)
        return false;
    if (!faccessat(merge->directory, to, F_OK, AT_SYMLINK_NOFOLLOW)) { /* a file system that cannot be asked for it */
        errno = EEXIST;
        return false;
    }
    return !renameat(merge->directory, from, merge->directory, to);
}

static bool outputs_name(struct merge *merge)
{
    char from[SPOOL_NAME_MAX + 1], to[SPOOL_NAME_MAX + 1];
    for (size_t at = 0; at < merge->count; at++) {
        name_of(merge, &merge->outputs[at], SPOOL_TEMPORARY, from);
        name_of(merge, &merge->outputs[at], SPOOL_SEALED, to);
        if (!file_rename(merge, from, to))
            return merge_failed(merge->path, errno);
        merge->outputs[at].is_named = true;
    }
    return true;
}

static void outputs_remove(const struct merge *merge)
{
    char name[SPOOL_NAME_MAX + 1];
    for (size_t at = 0; at < merge->count; at++) {
        name_of(merge, &merge->outputs[at], merge->outputs[at].is_named ? SPOOL_SEALED : SPOOL_TEMPORARY, name);
        unlinkat(merge->directory, name, 0);
    }
}

/* ---- what is in them ------------------------------------------------------ */

static void hash_add(struct merge *merge, const void *bytes, size_t length)
{
    const unsigned char *at = bytes;
    for (size_t i = 0; i < length; i++)
        merge->hash = (merge->hash ^ at[i]) * 0x100000001b3u; /* FNV-1a */
}

static int line_add(void *context, const struct reader_line *line)
{
    trie_add(context, TRIE_NEW, line->stack, line->length, line->count);
    return 0;
}

static void metric_note(struct merge *merge, const char *metric, const struct trie *trie, uint64_t stacks)
{
    uint64_t sum = trie_sum(trie, TRIE_NEW);
    merge->has_time = merge->has_time || sum;
    const char *key = kind_of(metric)->unit == KIND_BYTES ? "total_bytes" : "total_us";
    json_object_set_new(merge->metrics, metric, json_pack("{so so}", key, document_number(sum), "stacks", document_number(stacks)));
    hash_add(merge, metric, strlen(metric) + 1);
    hash_add(merge, &sum, sizeof sum);
    hash_add(merge, &stacks, sizeof stacks);
}

static bool metric_write(struct merge *merge, const char *metric)
{
    struct frames *frames = frames_new(true);
    struct trie *trie = trie_new(frames);
    reader_each(merge->reader, metric, line_add, trie);
    FILE *stream = output_open(merge, metric);
    bool good = stream;
    if (stream) {
        metric_note(merge, metric, trie, collapsed_put(stream, trie, frames, COLLAPSED_AS_THEY_ARE));
        good = output_close(merge, stream);
    }
    trie_free(trie);
    frames_free(frames);
    return good;
}

static void windows_hash(struct merge *merge)
{
    for (uint32_t at = 0; at < reader_windows(merge->reader); at++) {
        const struct reader_window *window = reader_window(merge->reader, at);
        const uint64_t numbers[] = { window->pid, window->start_us, window->number };
        hash_add(merge, window->host, strlen(window->host) + 1);
        hash_add(merge, numbers, sizeof numbers);
    }
    hash_add(merge, &merge->quality->end_us, sizeof merge->quality->end_us);
    hash_add(merge, &merge->quality->samples, sizeof merge->quality->samples);
}

static bool metadata_write(struct merge *merge)
{
    json_t *metadata = merged_metadata(merge->reader, merge->quality);
    json_object_set(metadata, "metrics", merge->metrics);
    FILE *stream = output_open(merge, "");
    bool good = stream;
    if (stream) {
        document_put(stream, json_incref(metadata));
        putc('\n', stream);
        bool is_larger = ftell(stream) > (long)READER_METADATA_BYTES;
        if (is_larger)
            tool_complain("%s: more processes than metadata has room for (%u MiB): merge fewer of them at a time", merge->path, READER_METADATA_BYTES >> 20);
        good = output_close(merge, stream) && !is_larger;
    }
    json_decref(metadata);
    return good;
}

/* As in every spool: not for a repository. */
static bool ignore_write(const struct merge *merge)
{
    FILE *stream = file_make(merge, SPOOL_IGNORE_NAME);
    if (!stream)
        return merge_failed(merge->path, errno);
    fputs("*\n", stream);
    return output_close(merge, stream);
}

static bool all_write(struct merge *merge)
{
    const char *metric;
    bool good = ignore_write(merge);
    for (uint32_t at = 0; (metric = reader_metric(merge->reader, at)); at++)
        progress_expect(reader_bytes(merge->reader, metric));
    for (uint32_t at = 0; good && (metric = reader_metric(merge->reader, at)); at++)
        good = strlen(metric) > SPOOL_METRIC_MAX || metric_write(merge, metric); /* no library of ours has such a name */
    progress_end();
    return good && metadata_write(merge) && outputs_name(merge);
}

/* ---- the command ---------------------------------------------------------- */

static void merge_open(struct merge *merge, int count, char **paths)
{
    merge->reader = reader_new();
    for (int at = 0; at < count; at++)
        reader_add(merge->reader, paths[at]);
    if (!count)
        reader_add(merge->reader, TOOL_DEFAULT_PATH);
    reader_open(merge->reader);
    merge->quality = quality_new(merge->reader);
    merge->metrics = json_object();
    merge->name = (struct spool_name){ .host = "merged", .start_us = merge->quality->start_us };
    merge->hash = 0xcbf29ce484222325u;
    windows_hash(merge);
}

static void merge_close(struct merge *merge)
{
    if (merge->directory >= 0)
        close(merge->directory);
    free(merge->outputs);
    json_decref(merge->metrics);
    quality_free(merge->quality);
    reader_free(merge->reader);
}

static void merge_undo(struct merge *merge)
{
    outputs_remove(merge);
    unlinkat(merge->directory, SPOOL_IGNORE_NAME, 0);
    if (merge->is_ours)
        rmdir(merge->path);
}

/* Returns an exit status. That there is nothing shows when all is read. */
static int merge_write(struct merge *merge)
{
    if (!reader_metric(merge->reader, 0) || !reader_windows(merge->reader)) /* the latter: none that we may read */
        return TOOL_NOTHING;
    if (!directory_open(merge))
        return TOOL_UNREADABLE;
    bool good = all_write(merge);
    if (good && merge->has_time)
        return TOOL_FINE;
    merge_undo(merge);
    return good ? TOOL_NOTHING : TOOL_UNREADABLE;
}

int merge_main(int argc, char **argv)
{
    struct merge merge = { .directory = -1 };
    int status = options_parse(&merge, argc, argv);
    if (status >= 0)
        return status;
    if (is_input(merge.path, argc - optind, argv + optind)) {
        tool_complain("--output: \"%s\" is one of the inputs: a merge has a directory of its own", merge.path);
        return TOOL_USAGE;
    }
    merge_open(&merge, argc - optind, argv + optind);
    status = merge_write(&merge);
    leftout_complain(merge.reader, "");
    if (reader_failures(merge.reader))
        status = TOOL_UNREADABLE;
    if (status == TOOL_NOTHING)
        nothing_explain(merge.reader, "merge", NULL, argc - optind, argv + optind);
    merge_close(&merge);
    return status;
}
