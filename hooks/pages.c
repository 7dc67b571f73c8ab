/* SPDX-License-Identifier: MIT */
#include "hooks/pages.h"
#include "hooks/raw.h"

#include <fcntl.h>        /* O_RDONLY */
#include <stdint.h>
#include <string.h>       /* memset */
#include <sys/mman.h>
#include <sys/resource.h> /* struct rlimit64 */

#define PAGE 4096u

enum used { USED_ALL = 0, USED_DATA = 5 };

/* A number in /proc/self/statm, of pages; 0: not readable. */
static uint64_t bytes_used(enum used which)
{
    char text[7 * 21];
    uint64_t count = 0;
    long fd = raw4(SYS_openat, AT_FDCWD, (long)"/proc/self/statm", O_RDONLY | O_CLOEXEC, 0);
    if (fd < 0)
        return 0;
    long length = raw3(SYS_read, fd, (long)text, sizeof text);
    raw1(SYS_close, fd);
    long at = 0;
    for (int left = which; at < length && left > 0; at++)
        left -= text[at] == ' ';
    for (; at < length && text[at] >= '0' && text[at] <= '9'; at++)
        count = count * 10 + (uint64_t)(text[at] - '0');
    return count * PAGE;
}

static bool leaves_room(int resource, enum used which, size_t bytes)
{
    struct rlimit64 limit;
    if (raw4(SYS_prlimit64, 0, resource, 0, (long)&limit) != 0 || limit.rlim_cur == RLIM64_INFINITY)
        return true;
    uint64_t used = bytes_used(which);
    return limit.rlim_cur >= used && limit.rlim_cur - used >= bytes;
}

bool pages_room(size_t bytes)
{
    return leaves_room(RLIMIT_AS, USED_ALL, bytes) && leaves_room(RLIMIT_DATA, USED_DATA, bytes);
}

void *pages_map(size_t bytes)
{
    long pages = raw6(SYS_mmap, 0, (long)bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (pages < 0)
        return NULL;
    raw3(SYS_madvise, pages, (long)bytes, MADV_NOHUGEPAGE); /* refused where there are no huge pages */
    return (void *)pages;
}

/* MADV_DONTNEED leaves locked pages alone (EINVAL); a filter may refuse it. */
void pages_clear(void *pages, size_t bytes)
{
    if (raw3(SYS_madvise, (long)pages, (long)bytes, MADV_DONTNEED) != 0)
        memset(pages, 0, bytes);
}

void pages_unmap(void *pages, size_t bytes)
{
    raw2(SYS_munmap, (long)pages, (long)bytes);
}
