/* SPDX-License-Identifier: MIT
 *
 * Handing down without the application's heap.
 */
#include "preload/environment.h"

#include <dlfcn.h>    /* dladdr: our own file name */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h> /* AT_RANDOM: 16 random bytes that cost no call */
#include <sys/mman.h>
#include <unistd.h>

#include "hooks/clock.h"
#include "hooks/log.h"
#include "hooks/real.h"

extern char **environ;

bool environment_is_first(void)
{
    const char *run = getenv("APROF_RUN");
    return !run || !*run || *run == RUN_MARK;
}

/* Sixteen hexadecimal digits: time, pid and the kernel's random bytes. */
static void make_run_id(char *run)
{
    uint64_t id = clock_epoch_us() * 0x9e3779b97f4a7c15u ^ (uint64_t)real_pid() << 32;
    const unsigned char *random = (const unsigned char *)getauxval(AT_RANDOM);
    for (int i = 0; random && i < 8; i++)
        id ^= (uint64_t)random[i] << (8 * i);
    for (int i = 15; i >= 0; i--, id >>= 4)
        run[i] = "0123456789abcdef"[id & 15];
    run[16] = '\0';
}

static void make_absolute(char *path, size_t size)
{
    char here[4096];
    size_t used = strlen(path), length;
    if (path[0] == '/' || !getcwd(here, sizeof here) || here[0] != '/')
        return;
    length = strlen(here);
    if (length == 1)
        length = 0; /* the root directory */
    if (length + 1 + used + 1 > size)
        return;
    memmove(path + length + 1, path, used + 1);
    memcpy(path, here, length);
    path[length] = '/';
}

static size_t count_entries(void)
{
    size_t count = 0;
    while (environ && environ[count])
        count++;
    return count;
}

static bool is_entry_of(const char *entry, const char *name)
{
    size_t length = strlen(name);
    return strncmp(entry, name, length) == 0 && entry[length] == '=';
}

/* Puts "name=value" into entries, over the entry of that name or at the end. */
static void put_entry(char **entries, size_t *count, char *text, size_t size, const char *name, const char *value)
{
    size_t at = 0;
    log_format(text, size, "%s=%s", name, value);
    while (at < *count && !is_entry_of(entries[at], name))
        at++;
    entries[at] = text;
    if (at == *count)
        *count += 1;
    entries[*count] = NULL;
}

/* True when the run id or anything else must be handed down anew. */
static bool settle(struct config *config)
{
    bool first = environment_is_first(), relative = config->dir[0] != '/';
    if (config->run[0] == RUN_MARK)
        memmove(config->run, config->run + 1, strlen(config->run));
    if (config->run[0] == '\0')
        make_run_id(config->run);
    if (relative)
        make_absolute(config->dir, sizeof config->dir);
    return first || relative || config->summary;
}

int environment_hand_down(struct config *config)
{
    static char summary[32];
    if (!settle(config))
        return 0;

    size_t count = count_entries(), dir_size = strlen(config->dir) + 16, run_size = strlen(config->run) + 16;
    size_t bytes = (count + 4) * sizeof(char *) + dir_size + run_size;
    char **entries = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (entries == MAP_FAILED)
        return -errno;
    if (count)
        memcpy(entries, environ, count * sizeof(char *));
    char *texts = (char *)(entries + count + 4);
    put_entry(entries, &count, texts, dir_size, "APROF_DIR", config->dir);
    put_entry(entries, &count, texts + dir_size, run_size, "APROF_RUN", config->run);
    if (config->summary)
        put_entry(entries, &count, summary, sizeof summary, "APROF_SUMMARY", "0");
    environ = entries;
    return 0;
}

static bool is_our_file(const char *path, size_t length)
{
    Dl_info info;
    const char *name, *end = path + length, *base = path;
    if (!dladdr((void *)environment_leave_children, &info) || !info.dli_fname)
        return false;
    name = strrchr(info.dli_fname, '/');
    name = name ? name + 1 : info.dli_fname;
    for (const char *c = path; c < end; c++)
        if (*c == '/')
            base = c + 1;
    return strlen(name) == (size_t)(end - base) && memcmp(base, name, (size_t)(end - base)) == 0;
}

/* Rewrites a list separated by ':' or ' ' without our entry; never longer than before. */
static void strip_preload(char *list)
{
    char *to = list;
    for (char *from = list; *from;) {
        size_t length = strcspn(from, ": ");
        char *next = from + length + (from[length] != '\0');
        if (length && !is_our_file(from, length)) {
            if (to != list)
                *to++ = ':';
            memmove(to, from, length);
            to += length;
        }
        from = next;
    }
    *to = '\0';
}

void environment_leave_children(void)
{
    for (char **entry = environ; entry && *entry; entry++)
        if (is_entry_of(*entry, "LD_PRELOAD"))
            strip_preload(strchr(*entry, '=') + 1);
}
