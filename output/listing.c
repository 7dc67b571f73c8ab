/* SPDX-License-Identifier: MIT
 *
 * A directory may hold tens of thousands: they are sorted, not looked for one among
 * the others.
 */
#include "output/listing.h"

#include <stdlib.h>
#include <string.h>

#include "output/tool.h"

int listing_compare(const struct spool_name *one, const struct spool_name *other)
{
    if (one->start_us != other->start_us)
        return one->start_us < other->start_us ? -1 : 1;
    if (one->pid != other->pid)
        return one->pid < other->pid ? -1 : 1;
    return strcmp(one->host, other->host);
}

static int by_process(const void *left, const void *right)
{
    return listing_compare(left, right);
}

/* A process's last window first. */
static int by_process_and_window(const void *left, const void *right)
{
    const struct spool_name *one = left, *other = right;
    int order = listing_compare(one, other);
    return order ? order : one->seq > other->seq ? -1 : one->seq < other->seq;
}

static void earlier_drop(struct listing *listing)
{
    size_t kept = 0;
    for (size_t at = 0; at < listing->count; at++)
        if (!at || listing_compare(&listing->names[at], &listing->names[kept - 1]))
            listing->names[kept++] = listing->names[at];
    listing->count = kept;
}

struct listing listing_make(DIR *directory, uint64_t pid)
{
    struct listing listing = { 0 };
    rewinddir(directory);
    for (struct dirent *entry; (entry = readdir(directory));) {
        struct spool_name name;
        if (!spool_name_parse(entry->d_name, &name) || name.state != SPOOL_LIVE || name.metric[0] || (pid && name.pid != pid))
            continue;
        listing.names = tool_grow(listing.names, listing.count, &listing.room, sizeof *listing.names);
        listing.names[listing.count++] = name;
    }
    if (listing.count)
        qsort(listing.names, listing.count, sizeof *listing.names, by_process_and_window);
    earlier_drop(&listing);
    return listing;
}

void listing_free(struct listing *listing)
{
    free(listing->names);
    *listing = (struct listing){ 0 };
}

const struct spool_name *listing_find(const struct listing *listing, const struct spool_name *process)
{
    return listing->count ? bsearch(process, listing->names, listing->count, sizeof *listing->names, by_process) : NULL;
}
