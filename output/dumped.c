/* SPDX-License-Identifier: MIT
 *
 * Stacks are put in order once all lines are taken; then those who refer to them find
 * them by halving.
 */
#include "output/dumped.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "output/tool.h"

enum { FIELDS = 8 };

struct line {
    char *field[FIELDS];
    int count;
};

/* Cuts the next line into its fields; false at the end. */
static bool next_line(char **at, const char *end, struct line *line)
{
    char *newline = *at < end ? memchr(*at, '\n', (size_t)(end - *at)) : NULL;
    if (!newline)
        return false;
    *newline = '\0';
    line->count = 0;
    for (char *field = *at; field && line->count < FIELDS;) {
        line->field[line->count++] = field;
        field = strchr(field, '\t');
        if (field)
            *field++ = '\0';
    }
    *at = newline + 1;
    return true;
}

static bool number_parse(const char *text, uint64_t *number)
{
    char *end;
    errno = 0;
    *number = strtoull(text, &end, 10);
    return !errno && !*end && *text >= '0' && *text <= '9';
}

static uint64_t number_of(const char *text)
{
    uint64_t number;
    return number_parse(text, &number) ? number : 0;
}

static uint64_t age_of(const char *text)
{
    return strcmp(text, "-") ? number_of(text) : DUMPED_NO_AGE;
}

static const char *name_of(const char *text)
{
    return strcmp(text, "-") ? text : "";
}

static int by_id(const void *left, const void *right)
{
    const struct dumped_stack *one = left, *other = right;
    return one->id < other->id ? -1 : one->id > other->id;
}

static uint32_t stack_of(const struct dumped *dumped, const char *text)
{
    struct dumped_stack wanted;
    const struct dumped_stack *found =
        number_parse(text, &wanted.id) && dumped->stacks_count ? bsearch(&wanted, dumped->stacks, dumped->stacks_count, sizeof wanted, by_id) : NULL;
    return found ? (uint32_t)(found - dumped->stacks) : DUMPED_NO_STACK;
}

static void take_stack(struct dumped *dumped, const struct line *line)
{
    uint64_t id;
    if (!number_parse(line->field[1], &id))
        return;
    dumped->stacks = tool_grow(dumped->stacks, dumped->stacks_count, &dumped->stacks_room, sizeof *dumped->stacks);
    dumped->stacks[dumped->stacks_count++] = (struct dumped_stack){ id, line->field[2] };
}

static void take_thread(struct dumped *dumped, const struct line *line)
{
    dumped->threads = tool_grow(dumped->threads, dumped->threads_count, &dumped->threads_room, sizeof *dumped->threads);
    dumped->threads[dumped->threads_count++] = (struct dumped_thread){
        .tid = number_of(line->field[1]), .state = line->field[2], .how = line->field[3],
        .age_us = age_of(line->field[4]),
        .ids = line->field[5], .name = name_of(line->field[6]),
    };
}

static void take_task(struct dumped *dumped, const struct line *line)
{
    dumped->tasks = tool_grow(dumped->tasks, dumped->tasks_count, &dumped->tasks_room, sizeof *dumped->tasks);
    dumped->tasks[dumped->tasks_count++] = (struct dumped_task){
        .state = line->field[1], .how = line->field[2], .tid = number_of(line->field[3]), .age_us = age_of(line->field[4]),
        .ids = line->field[5], .name = name_of(line->field[6]),
    };
}

static void find_stacks(struct dumped *dumped, struct dumped_task *task)
{
    char *rest = task->ids;
    task->first_stack = (uint32_t)dumped->of_task_count;
    for (char *id; (id = strsep(&rest, ","));) {
        uint32_t stack = stack_of(dumped, id);
        if (stack == DUMPED_NO_STACK)
            continue;
        dumped->stack_of_task = tool_grow(dumped->stack_of_task, dumped->of_task_count, &dumped->of_task_room, sizeof *dumped->stack_of_task);
        dumped->stack_of_task[dumped->of_task_count++] = stack;
        task->stacks++;
    }
}

static bool is(const struct line *line, const char *word, int fields)
{
    return line->count >= fields && !strcmp(line->field[0], word);
}

/* True: it was the last one. */
static bool take_line(struct dumped *dumped, const struct line *line)
{
    if (is(line, "stack", 3))
        take_stack(dumped, line);
    else if (is(line, "thread", 7))
        take_thread(dumped, line);
    else if (is(line, "task", 7))
        take_task(dumped, line);
    else if (is(line, "request", 2))
        dumped->request = line->field[1];
    else if (is(line, "at_us", 2))
        dumped->at_us = number_of(line->field[1]);
    else if (is(line, "tasks", 2))
        dumped->tasks_off = !strcmp(line->field[1], "off");
    else if (is(line, "left", 3)) {
        dumped->threads_left = number_of(line->field[1]);
        dumped->tasks_left = number_of(line->field[2]);
    }
    return is(line, "end", 1);
}

static int by_tid(const void *left, const void *right)
{
    const struct dumped_thread *one = left, *other = right;
    return one->tid < other->tid ? -1 : one->tid > other->tid;
}

static void put_in_order(struct dumped *dumped)
{
    if (dumped->stacks_count)
        qsort(dumped->stacks, dumped->stacks_count, sizeof *dumped->stacks, by_id);
    if (dumped->threads_count)
        qsort(dumped->threads, dumped->threads_count, sizeof *dumped->threads, by_tid);
    for (size_t at = 0; at < dumped->threads_count; at++)
        dumped->threads[at].stack = stack_of(dumped, dumped->threads[at].ids);
    for (size_t at = 0; at < dumped->tasks_count; at++)
        find_stacks(dumped, &dumped->tasks[at]);
}

bool dumped_parse(struct dumped *dumped, char *text, size_t length)
{
    struct line line;
    char *at = text, *end = text + length;
    bool whole = false;
    *dumped = (struct dumped){ .text = text, .request = "" };
    if (memchr(text, '\0', length) || !next_line(&at, end, &line) || !is(&line, "aprof-dump", 2) || strcmp(line.field[1], "1"))
        return false;
    while (!whole && next_line(&at, end, &line))
        whole = take_line(dumped, &line);
    put_in_order(dumped);
    return whole;
}

void dumped_free(struct dumped *dumped)
{
    free(dumped->threads);
    free(dumped->tasks);
    free(dumped->stacks);
    free(dumped->stack_of_task);
    free(dumped->text);
    *dumped = (struct dumped){ 0 };
}
