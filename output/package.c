/* SPDX-License-Identifier: MIT */
#include "output/package.h"

#include <string.h>

/* Functions on the way from a thread to a task's first frame, CPython 3.11 to 3.15
 * and uvloop. Where uvloop or another C loop runs there are fewer of them. */
static const struct {
    const char *path, *name;
} loop_frames[] = {
    { "asyncio/runners.py", "run" },
    { "asyncio/runners.py", "Runner.run" },
    { "asyncio/base_events.py", "BaseEventLoop.run_until_complete" },
    { "asyncio/base_events.py", "BaseEventLoop.run_forever" },
    { "asyncio/base_events.py", "BaseEventLoop._run_once" },
    { "asyncio/events.py", "Handle._run" },
    { "asyncio/events.py", "TimerHandle._run" },
    { "asyncio/windows_events.py", "ProactorEventLoop.run_forever" },
    { "uvloop/__init__.py", "run" },
    { "uvloop/__init__.py", "run.<locals>.wrapper" },
};

static size_t path_length(const char *path)
{
    const char *line = strrchr(path, ':');
    return line && line[1] && !line[1 + strspn(line + 1, "0123456789")] ? (size_t)(line - path) : strlen(path);
}

static bool ends_at_component(const char *path, size_t length, const char *end)
{
    size_t wanted = strlen(end);
    return length >= wanted && !memcmp(path + length - wanted, end, wanted) && (length == wanted || path[length - wanted - 1] == '/');
}

bool package_is_loop(const char *name, const char *path)
{
    size_t length = path_length(path);
    for (size_t at = 0; at < sizeof loop_frames / sizeof *loop_frames; at++)
        if (!strcmp(name, loop_frames[at].name) && ends_at_component(path, length, loop_frames[at].path))
            return true;
    return false;
}

/* What follows the last "NAME/" in the path, NAME being one of those; NULL: none. */
static const char *after_library(const char *path)
{
    static const char *const libraries[] = { "/site-packages/", "/dist-packages/" };
    const char *found = NULL;
    for (size_t at = 0; at < sizeof libraries / sizeof *libraries; at++)
        for (const char *next = path; (next = strstr(next, libraries[at])); next++)
            if (!found || next + strlen(libraries[at]) > found)
                found = next + strlen(libraries[at]);
    return found;
}

/* What follows "/lib/python3.11/"; NULL: it is not there. */
static const char *after_standard(const char *path)
{
    static const char lead[] = "/lib/python3.";
    const char *at = strstr(path, lead);
    if (!at)
        return NULL;
    at += sizeof lead - 1;
    at += strspn(at, "0123456789t");
    return *at == '/' ? at + 1 : NULL;
}

static const char *parent_folder(const char *path)
{
    const char *file = strrchr(path, '/'), *start = file;
    while (start > path && start[-1] != '/')
        start--;
    return start == file ? file + 1 : start; /* directly in the root: the file itself */
}

const char *package_root(const char *path)
{
    const char *start = after_library(path);
    if (!start)
        start = after_standard(path);
    return start ? start : path;
}

static const char *package_start(const char *path)
{
    static const char frozen[] = "<frozen ";
    if (!strncmp(path, frozen, sizeof frozen - 1))
        return path + sizeof frozen - 1;
    const char *start = package_root(path);
    return *start == '/' ? parent_folder(start) : start;
}

const char *package_of(const char *path, size_t *length)
{
    const char *start = package_start(path);
    bool is_module = *start != '<'; /* "<string>" has no suffix */
    *length = strcspn(start, is_module ? "/.>:" : "/");
    if (!*length) /* a name that begins with a dot */
        *length = strcspn(start, "/");
    return start;
}
