/* SPDX-License-Identifier: MIT
 *
 * dumped: an answer to a request for a dump (output/answer.h), taken apart. It comes
 * from another process, so nothing in it is believed beyond its form.
 *
 * [tool] only.
 */
#ifndef APROF_OUTPUT_DUMPED_H
#define APROF_OUTPUT_DUMPED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define DUMPED_NO_STACK UINT32_MAX
#define DUMPED_NO_AGE UINT64_MAX

struct dumped_thread {
    uint64_t tid, age_us;
    const char *state, *how, *name; /* name "": not known */
    uint32_t stack;                 /* index; DUMPED_NO_STACK */
    const char *ids;                /* of it, in the file */
};

struct dumped_task {
    uint64_t tid, age_us;           /* tid 0: not known; age_us: how long it waits at least */
    const char *state, *how, *name;
    uint32_t first_stack, stacks;   /* in stack_of_task: indices */
    char *ids;                      /* of them, in the file */
};

struct dumped_stack {
    uint64_t id;                    /* in the file */
    const char *text;               /* as in the spool */
};

struct dumped {
    char *text;                     /* what all others point into */
    const char *request;
    uint64_t at_us, threads_left, tasks_left;
    bool tasks_off;                 /* this process does not record tasks */
    struct dumped_thread *threads;  /* by tid */
    struct dumped_task *tasks;
    struct dumped_stack *stacks;    /* by id */
    uint32_t *stack_of_task;
    size_t threads_count, threads_room, tasks_count, tasks_room, stacks_count, stacks_room, of_task_count, of_task_room;
};

/* Takes the text, length bytes and a NUL, which it changes. False: it is not whole, or of
 * another version. Free it either way. */
bool dumped_parse(struct dumped *dumped, char *text, size_t length);
void dumped_free(struct dumped *dumped);

#endif
