/* SPDX-License-Identifier: MIT */
#include "output/answer.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h> /* renameat is declared here */
#include <string.h>
#include <unistd.h>

#include "hooks/log.h" /* log_format */
#include "hooks/mem.h"
#include "output/live.h" /* live_write */

enum {
    LINE_ROOM = 160,        /* of a line but for its texts and lists */
    ID_ROOM = 12,           /* a stack's number and a comma */
    END_ROOM = 2 * LINE_ROOM
};

static const char *const states[] = {
#define X(id, word) [DUMP_##id] = #word,
    DUMP_STATES(X)
#undef X
};
static const char *const hows[] = {
#define X(id, word) [DUMP_##id] = #word,
    DUMP_HOWS(X)
#undef X
};

/* ---- the request ---- */

static uint64_t changed_ns(const struct stat *status)
{
    return (uint64_t)status->st_mtim.tv_sec * 1000000000u + (uint64_t)status->st_mtim.tv_nsec;
}

/* Whoever may read this process's files, and nobody else. */
static bool may_ask(const struct stat *status)
{
    return S_ISREG(status->st_mode) && status->st_size == 0 && status->st_nlink == 1 &&
           (status->st_uid == geteuid() || status->st_uid == 0);
}

bool answer_is_asked(struct answer *answer, const struct place *place, bool *refused)
{
    char name[SPOOL_NAME_MAX + 1];
    struct stat status;
    *refused = false;
    spool_dump_format(&place->owner, SPOOL_DUMP_ASK, name, sizeof name);
    if (fstatat(place->fd, name, &status, AT_SYMLINK_NOFOLLOW) != 0)
        return false;
    if (!answer->done || answer->inode != status.st_ino || answer->changed_ns != changed_ns(&status)) {
        *answer = (struct answer){status.st_ino, changed_ns(&status), !may_ask(&status)};
        *refused = answer->done;
    }
    return !answer->done;
}

/* ---- the answer ---- */

/* written: a bit for each stack that is in the file. */
struct sheet {
    struct buffer *buffer;
    const struct profile *profile;
    uint8_t *written;
    int fd, error;
    uint64_t offset;
    uint32_t threads_left, tasks_left;
};

static void drain(struct sheet *sheet)
{
    struct buffer *buffer = sheet->buffer;
    if (sheet->error == 0 && live_write(sheet->fd, buffer->bytes, buffer->used, sheet->offset) != buffer->used)
        sheet->error = errno ? -errno : -ENOSPC;
    sheet->offset += buffer->used;
    buffer->used = 0;
}

/* Room for so many bytes more in the file, the end left aside, and in the buffer. */
static bool has_room(struct sheet *sheet, size_t length)
{
    struct buffer *buffer = sheet->buffer;
    if (sheet->error || sheet->offset + buffer->used + length + END_ROOM > ANSWER_MOST)
        return false;
    if (buffer->used + length > buffer->size) {
        drain(sheet);
        if (!buffer_reserve(buffer, length))
            sheet->error = -ENOMEM;
    }
    return sheet->error == 0;
}

#define PUT(sheet, ...) \
    ((sheet)->buffer->used += log_format((sheet)->buffer->bytes + (sheet)->buffer->used, (sheet)->buffer->size - (sheet)->buffer->used, __VA_ARGS__))

static void put_bytes(struct sheet *sheet, const char *bytes, size_t length)
{
    memcpy(sheet->buffer->bytes + sheet->buffer->used, bytes, length);
    sheet->buffer->used += length;
}

static bool is_written(const struct sheet *sheet, profile_stack stack)
{
    return sheet->written[stack / 8] >> stack % 8 & 1;
}

/* False: there is no room for it. */
static bool put_stack(struct sheet *sheet, profile_stack stack)
{
    size_t length = profile_text(sheet->profile, stack, NULL, 0);
    if (stack == PROFILE_ROOT || is_written(sheet, stack))
        return true;
    if (!has_room(sheet, length + LINE_ROOM))
        return false;
    PUT(sheet, "stack\t%u\t", stack);
    profile_text(sheet->profile, stack, sheet->buffer->bytes + sheet->buffer->used, length);
    sheet->buffer->used += length;
    put_bytes(sheet, "\n", 1);
    sheet->written[stack / 8] |= (uint8_t)(1u << stack % 8);
    return true;
}

static void put_name(struct sheet *sheet, const struct dump *dump, struct dump_text name)
{
    if (name.length)
        put_bytes(sheet, dump->text + name.at, name.length);
    else
        put_bytes(sheet, "-", 1);
    put_bytes(sheet, "\n", 1);
}

static void put_age(struct sheet *sheet, uint64_t ns)
{
    if (ns == DUMP_NO_AGE)
        PUT(sheet, "-\t");
    else
        PUT(sheet, "%lu\t", (unsigned long)(ns / 1000));
}

static void put_thread(struct sheet *sheet, const struct dump *dump, const struct dump_thread *thread)
{
    if (!put_stack(sheet, thread->stack) || !has_room(sheet, LINE_ROOM + thread->name.length)) {
        sheet->threads_left++;
        return;
    }
    PUT(sheet, "thread\t%d\t%s\t%s\t", (int)thread->tid, states[thread->state], hows[thread->how]);
    put_age(sheet, thread->age_ns);
    if (thread->stack == PROFILE_ROOT)
        PUT(sheet, "-\t");
    else
        PUT(sheet, "%u\t", thread->stack);
    put_name(sheet, dump, thread->name);
}

static void put_task(struct sheet *sheet, const struct dump *dump, const struct dump_task *task)
{
    const profile_stack *stacks = dump->stack + task->first_stack;
    bool fits = true;
    for (uint32_t i = 0; i < task->stacks && fits; i++)
        fits = put_stack(sheet, stacks[i]);
    if (!fits || !has_room(sheet, LINE_ROOM + task->stacks * ID_ROOM + task->name.length)) {
        sheet->tasks_left++;
        return;
    }
    PUT(sheet, "task\t%s\t%s\t%d\t", states[task->state], hows[task->how], (int)task->tid);
    put_age(sheet, task->waits_ns);
    for (uint32_t i = 0; i < task->stacks; i++)
        PUT(sheet, i ? ",%u" : "%u", stacks[i]);
    PUT(sheet, task->stacks ? "\t" : "-\t");
    put_name(sheet, dump, task->name);
}

static void put_all(struct sheet *sheet, const struct answer *answer, const struct dump *dump)
{
    sheet->buffer->used = 0;
    PUT(sheet, "aprof-dump\t1\nrequest\t%lu.%lu\nat_us\t%lu\ntasks\t%s\n", (unsigned long)answer->inode, (unsigned long)answer->changed_ns,
        (unsigned long)dump->at_us, dump->tasks_known ? "recorded" : "off");
    for (uint32_t i = 0; i < dump->threads; i++)
        put_thread(sheet, dump, &dump->thread[i]);
    for (uint32_t i = 0; i < dump->tasks; i++)
        put_task(sheet, dump, &dump->task[i]);
    if (sheet->buffer->used + END_ROOM > sheet->buffer->size)
        drain(sheet);
    PUT(sheet, "left\t%u\t%u\nend\n", sheet->threads_left + dump->threads_left, sheet->tasks_left + dump->tasks_left);
    drain(sheet);
}

/* One that a process before us left, or somebody planted, is taken away. */
static int make(const struct place *place, const char *name)
{
    for (int i = 0; i < 2; i++) {
        int fd = openat(place->fd, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
        if (fd >= 0 || errno != EEXIST)
            return fd < 0 ? -errno : fd;
        unlinkat(place->fd, name, 0);
    }
    return -EEXIST;
}

static int fill(struct sheet *sheet, const struct answer *answer, const struct dump *dump)
{
    sheet->written = mem_zalloc(profile_nodes(sheet->profile) / 8 + 1);
    if (!sheet->written)
        return -ENOMEM;
    fchmod(sheet->fd, 0600); /* an umask that takes from the owner */
    put_all(sheet, answer, dump);
    mem_free(sheet->written);
    return sheet->error;
}

static int write_file(const struct answer *answer, const struct place *place, struct buffer *buffer, const struct dump *dump,
                      const struct profile *profile)
{
    char temporary[SPOOL_NAME_MAX + 1], name[SPOOL_NAME_MAX + 1];
    struct sheet sheet = {.buffer = buffer, .profile = profile};
    spool_dump_format(&place->owner, SPOOL_DUMP_TEMPORARY, temporary, sizeof temporary);
    spool_dump_format(&place->owner, SPOOL_DUMP_ANSWER, name, sizeof name);
    sheet.fd = make(place, temporary);
    if (sheet.fd < 0)
        return sheet.fd;
    int error = fill(&sheet, answer, dump);
    close(sheet.fd);
    if (error == 0 && renameat(place->fd, temporary, place->fd, name) != 0)
        error = -errno;
    if (error < 0)
        unlinkat(place->fd, temporary, 0);
    return error;
}

int answer_write(struct answer *answer, const struct place *place, struct buffer *buffer, const struct dump *dump,
                 const struct profile *profile)
{
    char name[SPOOL_NAME_MAX + 1];
    int error = write_file(answer, place, buffer, dump, profile);
    answer->done = true;
    if (error < 0)
        return error;
    spool_dump_format(&place->owner, SPOOL_DUMP_ASK, name, sizeof name);
    unlinkat(place->fd, name, 0);
    return 0;
}
