/* SPDX-License-Identifier: MIT
 *
 * The table, and its default row last.
 */
#include "output/kind.h"

#include <string.h>

static const struct kind kinds[] = {
    { "cpu", KIND_MICROSECONDS, false, "CPU time of threads" },
    { "wall", KIND_MICROSECONDS, false, "time of threads, running or waiting" },
    { "task", KIND_MICROSECONDS, false, "time of asyncio tasks" },
    { "gil", KIND_MICROSECONDS, false, "time the GIL was held" },
    { "block", KIND_MICROSECONDS, false, "time event loops stood in waiting calls" },
    { "exc", KIND_MICROSECONDS, false, "time spent handling exceptions" },
    { "alloc", KIND_BYTES, false, "bytes allocated" },
    { "heap", KIND_BYTES, true, "bytes alive" },
    { "", KIND_MICROSECONDS, false, "time" },
};
#define KNOWN (sizeof kinds / sizeof *kinds - 1)

const struct kind *kind_of(const char *metric)
{
    const struct kind *kind = kinds;
    while (kind < kinds + KNOWN && strcmp(kind->metric, metric))
        kind++;
    return kind;
}

const char *kind_unit_name(const struct kind *kind)
{
    return kind->unit == KIND_BYTES ? "bytes" : "us";
}

char *kind_amount(char buffer[HUMAN_SIZE], const struct kind *kind, uint64_t amount)
{
    return kind->unit == KIND_BYTES ? human_bytes(buffer, amount) : human_time(buffer, amount);
}

int kind_compare(const char *metric, const char *other)
{
    const struct kind *one = kind_of(metric), *two = kind_of(other);
    if (one != two)
        return one < two ? -1 : 1;
    return strcmp(metric, other);
}
