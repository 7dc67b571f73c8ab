/* SPDX-License-Identifier: MIT */
#include "hooks/pages.h"
#include "hooks/raw.h"

#include <string.h>   /* memset */
#include <sys/mman.h>

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
