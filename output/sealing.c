/* SPDX-License-Identifier: MIT */
#include "output/sealing.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h> /* renameat is declared here */
#include <unistd.h>

#include "hooks/log.h" /* log_format */
#include "hooks/mem.h"
#include "output/live.h" /* live_write */

#define COUNT_ROOM 24u /* space, up to 20 digits, newline */

/* Where sealed text goes: the buffer, then the file. */
struct sink {
    struct buffer *buffer;
    int fd, error;
    uint64_t offset;
};

static void sink_drain(struct sink *sink)
{
    struct buffer *buffer = sink->buffer;
    if (sink->error == 0 && live_write(sink->fd, buffer->bytes, buffer->used, sink->offset) != buffer->used)
        sink->error = errno ? -errno : -ENOSPC;
    sink->offset += buffer->used;
    buffer->used = 0;
}

static void sink_line(struct sink *sink, const struct profile *profile, profile_stack stack, uint64_t us)
{
    struct buffer *buffer = sink->buffer;
    size_t length = profile_text(profile, stack, NULL, 0);
    if (buffer->used + length + COUNT_ROOM > buffer->size) {
        sink_drain(sink);
        if (!buffer_reserve(buffer, length + COUNT_ROOM)) {
            sink->error = -ENOMEM;
            return;
        }
    }
    profile_text(profile, stack, buffer->bytes + buffer->used, length);
    buffer->used += length;
    buffer->used += log_format(buffer->bytes + buffer->used, COUNT_ROOM, " %lu\n", (unsigned long)us);
}

/* ---- stacks, sorted ---- */

static void merge(const struct profile *profile, const profile_stack *from, profile_stack *to, size_t left, size_t middle, size_t right)
{
    size_t a = left, b = middle;
    for (size_t i = left; i < right; i++)
        to[i] = a < middle && (b == right || profile_compare(profile, from[a], from[b]) <= 0) ? from[a++] : from[b++];
}

/* Merges runs of 1, 2, 4 ... stacks to and fro between two arrays; returns the
 * one that holds the result. Neighbours share most of their frames, so that
 * comparing them is short. */
static const profile_stack *stacks_sort(const struct profile *profile, profile_stack *stacks, profile_stack *other, size_t count)
{
    for (size_t run = 1; run < count; run *= 2) {
        for (size_t left = 0; left < count; left += 2 * run) {
            size_t middle = left + run < count ? left + run : count;
            size_t right = middle + run < count ? middle + run : count;
            merge(profile, stacks, other, left, middle, right);
        }
        profile_stack *sorted = other;
        other = stacks;
        stacks = sorted;
    }
    return stacks;
}

static void put_sorted(struct sink *sink, const struct profile *profile, enum metric metric, profile_stack *room, size_t most)
{
    profile_stack stack;
    uint64_t us;
    uint32_t at = 0;
    size_t count = 0;
    while (count < most && profile_each(profile, metric, &at, &stack, &us))
        room[count++] = stack;
    const profile_stack *sorted = stacks_sort(profile, room, room + most, count);
    for (size_t i = 0; i < count; i++)
        sink_line(sink, profile, sorted[i], profile_get_ns(profile, sorted[i], metric) / 1000);
}

/* Each stack stands in a profile once, so equal lines are joined already. Without
 * memory to sort in, unsorted lines are better than none. */
static void put_stacks(struct sink *sink, const struct profile *profile, enum metric metric)
{
    size_t most = profile_stacks(profile, metric);
    profile_stack *room = mem_alloc(2 * most * sizeof *room);
    if (room != NULL) {
        put_sorted(sink, profile, metric, room, most);
        mem_free(room);
    } else {
        profile_stack stack;
        uint64_t us;
        uint32_t at = 0;
        while (profile_each(profile, metric, &at, &stack, &us))
            sink_line(sink, profile, stack, us);
    }
    sink_drain(sink);
}

static void put_metadata(struct sink *sink, const struct metadata *metadata)
{
    sink->buffer->used = metadata_put(metadata, sink->buffer);
    if (sink->buffer->used == 0)
        sink->error = -ENOMEM;
    sink_drain(sink);
}

/* ---- files ---- */

static int temporary_make(const struct sealing *sealing, unsigned file)
{
    enum { FLAGS = O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC };
    int directory = sealing->place->fd;
    char name[SPOOL_NAME_MAX + 1];
    place_name(sealing->place, sealing->seq, file, SPOOL_TEMPORARY, name);
    int fd = openat(directory, name, FLAGS, 0600);
    if (fd < 0 && errno == EEXIST) { /* of a sealing that failed, or somebody else's */
        if (unlinkat(directory, name, 0) != 0)
            return -EEXIST;
        fd = openat(directory, name, FLAGS, 0600);
    }
    if (fd >= 0)
        fchmod(fd, 0600);
    return fd < 0 ? -errno : fd;
}

static int temporary_write(const struct sealing *sealing, unsigned file)
{
    struct sink sink = {.buffer = sealing->buffer, .fd = temporary_make(sealing, file)};
    if (sink.fd < 0)
        return sink.fd;
    if (file == PLACE_METADATA)
        put_metadata(&sink, sealing->metadata);
    else
        put_stacks(&sink, sealing->profile, (enum metric)file);
    close(sink.fd);
    return sink.error;
}

static int sealed_rename(struct sealing *sealing, unsigned file)
{
    char from[SPOOL_NAME_MAX + 1], to[SPOOL_NAME_MAX + 1];
    struct stat status;
    place_name(sealing->place, sealing->seq, file, SPOOL_TEMPORARY, from);
    place_name(sealing->place, sealing->seq, file, SPOOL_SEALED, to);
    int error = renameat(sealing->place->fd, from, sealing->place->fd, to) == 0 ? 0 : -errno;
    bool there = place_look(sealing->place, sealing->seq, file, SPOOL_SEALED, &status) == 0;
    if (error < 0)
        return there ? -EEXIST : error;
    if (there)
        sealing->sealed_bytes += (uint64_t)status.st_size;
    return 0;
}

static bool has_file(const struct sealing *sealing, unsigned file)
{
    return file == PLACE_METADATA || profile_stacks(sealing->profile, (enum metric)file) > 0;
}

/* What was sealed already would count beside the live file that goes on. */
static void take_back(const struct sealing *sealing, unsigned renamed)
{
    for (unsigned i = 0; i < PLACE_FILES; i++) {
        place_remove(sealing->place, sealing->seq, i, SPOOL_TEMPORARY);
        if (i < renamed && has_file(sealing, i))
            place_remove(sealing->place, sealing->seq, i, SPOOL_SEALED);
    }
}

int sealing_write(struct sealing *sealing)
{
    unsigned renamed = 0;
    int error = 0;
    sealing->sealed_bytes = 0;
    for (unsigned i = 0; i < PLACE_FILES && error == 0; i++)
        error = has_file(sealing, i) ? temporary_write(sealing, i) : 0;
    for (; renamed < PLACE_FILES && error == 0; renamed += error == 0)
        error = has_file(sealing, renamed) ? sealed_rename(sealing, renamed) : 0;
    if (error < 0) {
        sealing->sealed_bytes = 0;
        take_back(sealing, renamed);
    }
    return error;
}
