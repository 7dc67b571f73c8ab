/* SPDX-License-Identifier: MIT
 *
 * The file beside has the pid in its name, so that two programs that write the same
 * one do not meet in it.
 */
#include "output/destination.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "output/tool.h"

static bool is_replaceable(const char *path)
{
    struct stat status;
    return lstat(path, &status) ? errno == ENOENT : S_ISREG(status.st_mode);
}

static bool stream_finish(FILE *stream)
{
    bool good = !ferror(stream);
    return !fclose(stream) && good;
}

static bool complain_about(const char *path)
{
    tool_complain("%s: %s", path, strerror(errno));
    return false;
}

static bool written_to(const char *path, const char *mode, void (*write)(FILE *stream, void *context), void *context)
{
    FILE *stream = fopen(path, mode);
    if (!stream)
        return false;
    write(stream, context);
    return stream_finish(stream);
}

bool destination_write(const char *path, void (*write)(FILE *stream, void *context), void *context)
{
    if (!path || !strcmp(path, "-")) {
        write(stdout, context);
        return true;
    }
    if (!is_replaceable(path))
        return written_to(path, "we", write, context) || complain_about(path);
    char *beside = tool_alloc(strlen(path) + 32, 1);
    sprintf(beside, "%s.%ld.tmp", path, (long)getpid());
    unlink(beside); /* of a program that was killed, or a link that somebody put there */
    bool good = (written_to(beside, "wxe", write, context) && !rename(beside, path)) || complain_about(path);
    if (!good)
        unlink(beside);
    free(beside);
    return good;
}
