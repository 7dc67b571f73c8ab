/* SPDX-License-Identifier: MIT */
#include "preload/spooling.h"

#include <fcntl.h>
#include <stdatomic.h>
#include <string.h>
#include <unistd.h>

#include "hooks/direct.h"
#include "hooks/guard.h"
#include "hooks/log.h"
#include "hooks/real.h"
#include "output/farewell.h"
#include "output/metadata.h"
#include "output/spool.h"
#include "preload/fork.h"
#include "preload/program.h"
#include "preload/python.h"

enum { TAGS_MAX = 64, SHOWN_MAX = 40, SHOWN_BYTES = 6144, PROGRAM_BYTES = 4096, HOST_BYTES = 256 };

static struct {
    const struct config *config;
    struct metadata metadata;  /* what stays the same for the process */
    struct metadata_pair settings[SHOWN_MAX], tags[TAGS_MAX];
    char shown[SHOWN_BYTES], tag_text[1025], program[PROGRAM_BYTES], host[HOST_BYTES];
    struct spool *spool;
    bool own_table;
    _Atomic bool writing;      /* what is called now may wait for a disk */
    _Atomic bool failing;      /* the last flush or seal could not be written */
} spooling;

/* --- what the process is --- */

static void describe_program(void)
{
    char line[PROGRAM_BYTES];
    ssize_t length = 0, got;
    int fd = spooling.config->argv == CONFIG_ARGV_NONE ? -1 : open("/proc/self/cmdline", O_RDONLY | O_CLOEXEC);
    spooling.program[0] = '\0';
    if (fd < 0)
        return;
    while (length < (ssize_t)sizeof line - 1 && (got = read(fd, line + length, sizeof line - 1 - (size_t)length)) > 0)
        length += got;
    close(fd);
    line[length] = '\0';
    program_describe(line, (size_t)length, spooling.config->argv == CONFIG_ARGV_FULL, spooling.program, sizeof spooling.program);
}

static void describe_settings(void)
{
    size_t used = 0;
    uint32_t count = 0;
    for (size_t i = 0; i < config_options_count && count < SHOWN_MAX; i++) {
        const struct option_row *option = &config_options[i];
        char *value = spooling.shown + used;
        if (used + 64 > sizeof spooling.shown)
            break;
        config_show(spooling.config, option, value, sizeof spooling.shown - used);
        used += strlen(value) + 1;
        spooling.settings[count++] = (struct metadata_pair){option->name, value};
    }
    spooling.metadata.settings = spooling.settings;
    spooling.metadata.settings_count = count;
}

static void no_fault(void *context, const char *line, const char *remedy)
{
    /* said once, at start, by preload/init.c */
}

static void describe_process(void)
{
    struct metadata *metadata = &spooling.metadata;
    memset(metadata, 0, sizeof *metadata);
    metadata_of_machine(metadata, spooling.host, sizeof spooling.host);
    describe_program();
    describe_settings();
    memcpy(spooling.tag_text, spooling.config->tags, sizeof spooling.tag_text);
    metadata->tags = spooling.tags;
    metadata->tags_count = config_tags(spooling.tag_text, spooling.tags, TAGS_MAX, no_fault, NULL);
    metadata->run = spooling.config->run;
    metadata->program = spooling.program;
    metadata->python = python_version_text();
    metadata->build = "libaprof " APROF_VERSION;
    metadata->pid = real_pid();
    metadata->ppid = getppid();
    metadata->rate_asked = (uint32_t)spooling.config->rate;
}

static void begin(void)
{
    struct spool_options options = {.directory = spooling.config->dir, .host = spooling.host, .limit_bytes = spooling.config->spool << 20,
                                    .start_us = fork_start_us(), .keep_descriptors = spooling.own_table};
    if (spooling.spool)
        return; /* the interpreter was started anew: its windows follow the ones before */
    describe_process();
    options.host = spooling.metadata.host;
    options.pid = spooling.metadata.pid;
    spooling.spool = spool_new(&options);
}

/* --- what a window is --- */

/* profile NULL: nothing is in it yet. */
static const struct metadata *describe(struct metadata *metadata, const struct profile *profile, const struct window *window)
{
    uint64_t span = window->end_us - window->start_us;
    *metadata = spooling.metadata;
    metadata->window = window->number;
    metadata->start_us = window->start_us;
    metadata->end_us = window->end_us;
    metadata->ended = window->ended;
    metadata->rate_got = span ? (double)window->own_ticks * 1e6 / (double)span : 0;
    metadata->reader = guard_reader_name();
    metadata->clock_coarse = window->clock_coarse;
    metadata->children_without_sample = fork_children_without_sample();
    metadata->counters = window->counters;
    metadata->loops_count = window->loops_count;
    memcpy(metadata->loops, window->loops, sizeof metadata->loops);
    for (int i = 0; i < METRIC_COUNT; i++)
        metadata->metrics[i].recorded = spooling.config->metrics >> i & 1;
    if (profile)
        metadata_of_profile(metadata, profile);
    return metadata;
}

static int noted(int result)
{
    atomic_store(&spooling.failing, result < 0);
    return result;
}

bool spooling_is_writing(void)
{
    return atomic_load(&spooling.writing);
}

bool spooling_is_failing(void)
{
    return atomic_load(&spooling.failing);
}

/* What may wait for a disk, told from a sampler that only has no CPU. */
static int written(int result)
{
    atomic_store(&spooling.writing, false);
    return result;
}

/* Who ends the process cannot tell them apart once we write, and says nothing then. */
static struct spool *begin_writing(void)
{
    if (farewell_is_due())
        farewell_say();
    atomic_store(&spooling.writing, spooling.spool != NULL);
    return spooling.spool;
}

static int flush(struct profile *profile, const struct window *window)
{
    struct metadata metadata;
    describe(&metadata, profile, window);
    return begin_writing() ? written(noted(spool_flush(spooling.spool, profile, &metadata))) : 0;
}

static int renew(struct profile *profile, const struct window *window)
{
    struct metadata metadata;
    describe(&metadata, profile, window);
    return begin_writing() ? written(spool_describe(spooling.spool, &metadata)) : 0;
}

static int seal(struct profile *profile, const struct window *window, const struct window *next)
{
    struct metadata metadata, following;
    describe(&metadata, profile, window);
    if (next)
        describe(&following, NULL, next);
    return begin_writing() ? written(spool_seal(spooling.spool, profile, &metadata, next ? &following : NULL)) : 0;
}

static int put_aside(struct profile *profile, const struct window *window)
{
    struct metadata metadata;
    describe(&metadata, profile, window);
    return begin_writing() ? written(spool_pause(spooling.spool, &metadata)) : 0;
}

static int take_up(struct profile *profile, const struct window *window)
{
    struct metadata metadata;
    describe(&metadata, profile, window);
    return begin_writing() ? written(spool_resume(spooling.spool, profile, &metadata)) : 0;
}

static bool is_full(void)
{
    return spooling.spool && spool_is_full(spooling.spool);
}

static bool is_asked(void)
{
    if (!begin_writing())
        return false;
    bool asked = spool_is_asked(spooling.spool);
    written(0);
    return asked;
}

static int answer(const struct profile *profile, const struct dump *dump)
{
    return begin_writing() ? written(spool_answer(spooling.spool, dump, profile)) : 0;
}

const struct loop_output spooling_output = {begin, flush, renew, seal, put_aside, take_up, is_full, is_asked, answer};

void spooling_descriptors(bool own_table)
{
    spooling.own_table = own_table;
    direct_shares_descriptors(!own_table);
}

void spooling_prepare(const struct config *config)
{
    spooling.config = config;
}

void spooling_postfork_child(void)
{
    spooling.spool = NULL;
    atomic_store(&spooling.writing, false);
}
