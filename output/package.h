/* SPDX-License-Identifier: MIT
 *
 * package: what a frame's place says: whose code it is, and whether it is an event
 * loop's own, which stands between a thread and every task.
 *
 * [tool] only.
 */
#ifndef APROF_OUTPUT_PACKAGE_H
#define APROF_OUTPUT_PACKAGE_H

#include <stdbool.h>
#include <stddef.h>

/* The part of the path that names the package or module: "aiohttp" of
 * "aiohttp/web.py" or "/usr/lib/python3/dist-packages/aiohttp/web.py", "random" of
 * "random.py" or "/usr/lib/python3.11/random.py", "importlib" of
 * "<frozen importlib._bootstrap>"; of another absolute path the folder that its file is in. Sets length;
 * 0 for an empty path. */
const char *package_of(const char *path, size_t *length);

/* The path from the folder on in which modules are looked for: what follows
 * site-packages or the standard library, all of it where neither is in it. */
const char *package_root(const char *path);

/* A function through which asyncio (or uvloop) drives callbacks and tasks; its
 * frames tell nothing about the program. path may have a ":line" behind it. */
bool package_is_loop(const char *name, const char *path);

#endif
