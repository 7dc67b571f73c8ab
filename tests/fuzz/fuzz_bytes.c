/* SPDX-License-Identifier: MIT
 *
 * Bytes from outside that are taken apart in one piece: the environment, the records of
 * a thread's ring, strings on their way into the metadata, names and lines of a spool,
 * the program's own ELF file, an answer to a request for a dump.
 *
 * Input: which of them; then its bytes.
 */
#include <jansson.h>
#include <string.h>
#include <sys/mman.h>

#include "hooks/log.h"
#include "hooks/mem.h"
#include "output/dump_show.h"
#include "output/metadata.h"
#include "output/spool_format.h"
#include "preload/config.h"
#include "preload/environment.h"
#include "sampler/stacks.h"
#include "sampler/text.h"
#include "tests/fuzz/elf.h"
#include "tests/fuzz/fuzz.h"

extern char **environ;

enum { ENTRIES_MOST = 64, TEXT_MOST = 1 << 16, LINE_MOST = 512, RING_WORDS = 256, DEPTH = 32, STRINGS = 8 };

/* A copy whose strings end where they must, and beyond which nothing can be read. */
static char *strings_of(const uint8_t *data, size_t size)
{
    char *text = malloc(size + 1);
    memcpy(text, data, size);
    text[size] = '\0';
    return text;
}

static size_t split(char *text, size_t size, char **entries, size_t most)
{
    size_t count = 0;
    for (char *at = text; count < most && at <= text + size; at += strlen(at) + 1)
        entries[count++] = at;
    return count;
}

/* --- settings --- */

static void fault(void *context, const char *line, const char *remedy)
{
    FUZZ_HOLDS(strlen(line) < LINE_MOST && strlen(remedy) < LINE_MOST);
    for (const char *c = line; *c; c++)
        FUZZ_HOLDS((unsigned char)*c >= ' '); /* a line of ours drives no terminal */
    ++*(int *)context;
}

/* What is in force can be given again, and means the same. */
static void check_shown(const struct config *config)
{
    static struct config again;
    char value[4096];
    memset(&again, 0, sizeof again);
    for (size_t i = 0; i < config_options_count; i++) {
        const struct option_row *option = &config_options[i];
        config_show(config, option, value, sizeof value);
        if (option->type == OPTION_TEXT && !*value)
            continue;
        FUZZ_HOLDS(config_set(&again, option, value));
        char shown[4096];
        config_show(&again, option, shown, sizeof shown);
        FUZZ_HOLDS(!strcmp(value, shown));
    }
}

static void settings(const uint8_t *data, size_t size)
{
    static struct config config;
    char *text = strings_of(data, size), *entries[ENTRIES_MOST + 1], **before = environ;
    struct metadata_pair tags[STRINGS];
    int faults = 0, counted;
    entries[split(text, size, entries, ENTRIES_MOST)] = NULL;
    counted = config_parse(&config, entries, fault, &faults);
    FUZZ_HOLDS(counted == faults);
    check_shown(&config);
    environ = entries;
    environment_leave_children();
    size_t dir = strlen(config.dir), run = strlen(config.run), count = 0;
    while (entries[count])
        count++;
    FUZZ_HOLDS(environment_hand_down(&config) == 0 && config.dir[0] && config.run[0]);
    FUZZ_HOLDS(strlen(config.dir) >= dir && strlen(config.run) + 1 >= run);
    if (environ != entries) {
        for (char **entry = environ; *entry; entry++)
            FUZZ_HOLDS(strlen(*entry) <= TEXT_MOST);
        munmap(environ, (count + 4) * sizeof *environ + strlen(config.dir) + strlen(config.run) + 32);
    }
    environ = before;
    uint32_t tag_count = config_tags(config.tags, tags, STRINGS, fault, &faults);
    FUZZ_HOLDS(tag_count <= STRINGS);
    for (uint32_t i = 0; i < tag_count; i++)
        FUZZ_HOLDS(tags[i].key[0] && strlen(tags[i].value) < sizeof config.tags);
    free(text);
}

/* --- records --- */

/* As drain() in sampler/watch.c takes them, but for what only a thread can tell. */
static void records(const uint8_t *data, size_t size)
{
    enum { BYTES = sizeof(struct ring) + RING_WORDS * sizeof(uint64_t) };
    struct ring *ring = ring_init(memset(aligned_alloc(64, (BYTES + 63) & ~63), 0, BYTES), BYTES);
    struct profile *profile = profile_new();
    struct py_target target = {.layout = *layout_find(13, false)};
    struct stacks stacks = {.profile = profile, .target = &target, .unknown = profile_intern(profile, "[unknown]", 9, 0)};
    struct stack_copy *copy = stacks_new_copy(DEPTH);
    uint32_t ready, words, rounds = 0;
    size_t count = size / 8 < RING_WORDS ? size / 8 : RING_WORDS;
    memcpy(ring->word, data, count * 8);
    ring->head = (uint32_t)count;
    if (size % 8)
        ring->from = data[size - 1];
    while ((ready = ring_ready(ring)) != 0) {
        FUZZ_HOLDS(ready <= RING_WORDS && rounds++ <= RING_WORDS);
        words = ring_record(ring, ready);
        FUZZ_HOLDS(words <= ready);
        if (words) {
            stacks_from_ring(copy, ring);
            FUZZ_HOLDS(copy->frames <= DEPTH && copy->task_frames <= copy->frames);
        }
        if (words && stacks_is_whole(copy->end)) {
            stacks_intern(&stacks, copy);
            stacks_intern_task(&stacks, copy, PROFILE_ROOT);
        }
        ring_drop(ring, words ? words : ready);
    }
    mem_free(copy);
    profile_free(profile);
    free(ring);
    FUZZ_HOLDS(mem_used() == 0);
}

/* --- metadata --- */

static void metadata(const uint8_t *data, size_t size)
{
    static char buffer[TEXT_MOST];
    char *text = strings_of(data, size), *string[STRINGS];
    size_t count = split(text, size, string, STRINGS);
    struct metadata_pair pairs[STRINGS];
    while (count < STRINGS)
        string[count++] = text + size;
    for (size_t i = 0; i < STRINGS; i++)
        pairs[i] = (struct metadata_pair){string[i], string[STRINGS - 1 - i]};
    struct metadata shown = {.run = string[0], .host = string[1], .program = string[2], .python = string[3], .build = string[4],
                             .settings = pairs, .settings_count = STRINGS / 2, .tags = pairs + STRINGS / 2, .tags_count = STRINGS / 2,
                             .ended = "open", .reader = "copy", .rate_got = size ? (double)data[0] / 3 : 0};
    memset(&shown.counters, size ? data[size - 1] : 0, sizeof shown.counters);
    size_t length = metadata_format(&shown, buffer, sizeof buffer);
    if (length) {
        json_t *parsed = json_loadb(buffer, length, 0, NULL);
        FUZZ_HOLDS(json_is_object(parsed));
        json_decref(parsed);
        char *exact = malloc(length - 1);
        FUZZ_HOLDS(metadata_format(&shown, exact, length - 1) == 0);
        free(exact);
    }
    free(text);
}

/* --- names and lines --- */

static void names(const uint8_t *data, size_t size)
{
    char *text = strings_of(data, size), made[SPOOL_NAME_MAX + 1], host[SPOOL_HOST_MAX + 1], *plain = malloc(size + 1);
    struct spool_name name, again;
    struct spool_frame parts;
    size_t stack_length;
    uint64_t count;
    if (spool_name_parse(text, &name) && spool_name_format(&name, made, sizeof made))
        FUZZ_HOLDS(spool_name_parse(made, &again) && spool_name_same_window(&name, &again) && name.state == again.state && !strcmp(name.metric, again.metric));
    FUZZ_HOLDS(spool_host_clean(text, host, sizeof host) == strlen(host) && *host);
    if (spool_line_parse((const char *)data, size, &stack_length, &count))
        FUZZ_HOLDS(stack_length > 0 && stack_length < size);
    if (spool_frame_split((const char *)data, size, &parts))
        FUZZ_HOLDS(parts.path + parts.path_length <= (const char *)data + size && parts.name_length < size);
    FUZZ_HOLDS(spool_unescape((const char *)data, size, plain) <= size);
    for (int kind = 1; kind <= 4; kind *= 2) {
        char out[TEXT_FRAME_MAX], path[TEXT_NAME_MAX];
        size_t name_length = text_name(out, TEXT_NAME_MAX, data, size / (size_t)kind, kind);
        size_t path_length = text_path(path, sizeof path, data, size / (size_t)kind, kind);
        FUZZ_HOLDS(name_length <= TEXT_NAME_MAX && path_length <= TEXT_NAME_MAX);
        size_t skip = text_shorten(&(struct text_paths){.start_directory = text}, path, path_length);
        char copy[TEXT_NAME_MAX];
        memcpy(copy, out, name_length);
        size_t length = text_frame(out, sizeof out, copy, name_length, path + skip, path_length - skip, (int32_t)size);
        FUZZ_HOLDS(skip <= path_length && length && length <= sizeof out);
        if (path_length > skip)
            FUZZ_HOLDS(spool_frame_split(out, length, &parts));
    }
    free(plain);
    free(text);
}

/* --- the program's file --- */

static void elf(const uint8_t *data, size_t size)
{
    uint8_t *file = aligned_alloc(64, (size + 63) & ~(size_t)63); /* as mmap gives it */
    uint8_t *exact = file + (((size + 63) & ~(size_t)63) - size) / 8 * 8;
    memcpy(exact, data, size);
    elf_runtime(exact, size);
    free(file);
}

/* --- dumps --- */

static char *shown_of(struct asking *asking, bool as_json, size_t *length)
{
    FILE *out = stdout;
    char *text = NULL;
    stdout = open_memstream(&text, length);
    if (as_json)
        dump_show_json(asking);
    else
        dump_show_text(asking, true);
    fclose(stdout);
    stdout = out;
    return text;
}

/* Whatever it says, it drives no terminal, and what is shown for programs is JSON. */
static void dump(const uint8_t *data, size_t size)
{
    struct asked asked = {.name = {.host = "h", .pid = 7, .start_us = 1}, .has_answer = true};
    struct asking asking = {.path = "", .directory = -1, .processes = &asked, .count = 1};
    size_t length;
    if (dumped_parse(&asked.dumped, strings_of(data, size), size)) {
        char *text = shown_of(&asking, false, &length);
        for (size_t i = 0; i < length; i++)
            FUZZ_HOLDS((unsigned char)text[i] >= ' ' || text[i] == '\n');
        free(text);
        text = shown_of(&asking, true, &length);
        json_t *object = json_loadb(text, length, 0, NULL);
        FUZZ_HOLDS(json_is_object(object));
        json_decref(object);
        free(text);
    }
    dumped_free(&asked.dumped);
}

void fuzz_input(const uint8_t *data, size_t size)
{
    static void (*const rows[])(const uint8_t *data, size_t size) = {settings, records, metadata, names, elf};
    if (size == 0)
        return;
    mem_init((size_t)64 << 20);
    log_set_level(LOG_QUIET);
    if (data[0] == 'D') /* beside the others, so that the corpus keeps its meaning */
        dump(data + 1, size - 1);
    else
        rows[data[0] % (sizeof rows / sizeof *rows)](data + 1, size - 1);
}
