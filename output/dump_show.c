/* SPDX-License-Identifier: MIT
 *
 * Threads and tasks that are alike come once: those with the same stacks, in the
 * same state, known in the same way. The largest number first, then in the order
 * of the dump.
 */
#include "output/dump_show.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "output/document.h"
#include "output/human.h"
#include "output/tool.h"

#define NAMES_SHOWN 6 /* of those that are alike */

/* A thread or a task, as far as being alike goes. */
struct item {
    const char *state, *how, *name;
    const uint32_t *stacks;
    uint32_t count;
    uint64_t tid, age_us;
    size_t order;
    bool is_task;
};

struct items {
    const struct dumped *dumped;
    struct item *item;
    size_t count;
};

/* ---- being alike ---- */

static int stacks_compare(const struct item *one, const struct item *other)
{
    for (uint32_t at = 0; at < one->count && at < other->count; at++)
        if (one->stacks[at] != other->stacks[at])
            return one->stacks[at] < other->stacks[at] ? -1 : 1;
    return one->count < other->count ? -1 : one->count > other->count;
}

static int kind_order(const struct item *one, const struct item *other)
{
    int order = stacks_compare(one, other);
    if (!order)
        order = strcmp(one->state, other->state);
    return order ? order : strcmp(one->how, other->how);
}

static int by_kind(const void *left, const void *right)
{
    const struct item *one = left, *other = right;
    int order = kind_order(one, other);
    return order ? order : one->order < other->order ? -1 : one->order > other->order;
}

struct group {
    const struct item *first;
    size_t count;
};

static int by_size(const void *left, const void *right)
{
    const struct group *one = left, *other = right;
    if (one->count != other->count)
        return one->count > other->count ? -1 : 1;
    return one->first->order < other->first->order ? -1 : one->first->order > other->first->order;
}

static struct group *groups_of(struct items *items, size_t *count)
{
    struct group *groups = tool_alloc(items->count, sizeof *groups);
    *count = 0;
    if (items->count)
        qsort(items->item, items->count, sizeof *items->item, by_kind);
    for (size_t at = 0; at < items->count; at++) {
        if (at && !kind_order(&items->item[at - 1], &items->item[at]))
            groups[*count - 1].count++;
        else
            groups[(*count)++] = (struct group){ &items->item[at], 1 };
    }
    if (*count)
        qsort(groups, *count, sizeof *groups, by_size);
    return groups;
}

static struct items items_of_threads(const struct dumped *dumped)
{
    struct items items = { dumped, tool_alloc(dumped->threads_count, sizeof(struct item)), dumped->threads_count };
    for (size_t at = 0; at < items.count; at++) {
        const struct dumped_thread *thread = &dumped->threads[at];
        items.item[at] = (struct item){ .state = thread->state, .how = thread->how, .name = thread->name, .stacks = &thread->stack,
                                        .count = thread->stack != DUMPED_NO_STACK, .tid = thread->tid, .age_us = thread->age_us,
                                        .order = at };
    }
    return items;
}

static struct items items_of_tasks(const struct dumped *dumped)
{
    struct items items = { dumped, tool_alloc(dumped->tasks_count, sizeof(struct item)), dumped->tasks_count };
    for (size_t at = 0; at < items.count; at++) {
        const struct dumped_task *task = &dumped->tasks[at];
        items.item[at] = (struct item){ .state = task->state, .how = task->how, .name = task->name, .count = task->stacks,
                                        .stacks = dumped->stack_of_task ? dumped->stack_of_task + task->first_stack : NULL,
                                        .tid = task->tid, .age_us = task->age_us, .order = at, .is_task = true };
    }
    return items;
}

/* ---- text ---- */

struct word {
    const char *word, *says;
};

static const struct word state_words[] = {
    { "running", "running" },
    { "runnable", "ready to run, without a CPU" },
    { "gil", "waiting for the GIL" },
    { "holds", "waiting, with the GIL held" },
    { "waiting", "waiting" },
    { "ready", "ready, waiting for the event loop" },
    { "awaits", "waiting for other tasks" },
    { "changed", "changed while it was read: no stack" },
    { NULL, NULL },
};

/* A word that this program does not know stands for itself. */
static const char *says(const struct word *words, const char *word)
{
    while (words->word && strcmp(words->word, word))
        words++;
    return words->word ? words->says : word;
}

static void print_text(const char *text)
{
    char *clean = human_text(text, strlen(text), 0, false);
    fputs(clean, stdout);
    free(clean);
}

/* From ... to: the youngest and the oldest of a group. */
static void print_ages(const struct group *group)
{
    char text[HUMAN_SIZE];
    uint64_t least = DUMPED_NO_AGE, most = 0;
    for (size_t at = 0; at < group->count; at++) {
        uint64_t age = group->first[at].age_us;
        if (age == DUMPED_NO_AGE)
            continue;
        least = age < least ? age : least;
        most = age > most ? age : most;
    }
    if (least == DUMPED_NO_AGE)
        return;
    const char *how = group->first->how;
    bool stood = !strcmp(how, "stood") || group->first->is_task;
    fputs(stood ? ", for " : strcmp(how, "tick") ? "; seen there " : "; its CPU tick of ", stdout);
    fputs(human_time(text, least), stdout);
    if (most != least)
        printf(" to %s", human_time(text, most));
    if (!stood)
        fputs(" ago", stdout);
}

static void print_known(const struct group *group)
{
    const char *how = group->first->how;
    print_ages(group);
    if (!strcmp(how, "empty"))
        fputs(", in no Python function", stdout);
    else if (!strcmp(how, "alone"))
        fputs("; what awaits it changed meanwhile, or its loop does not run", stdout);
    else if (!strcmp(how, "twice"))
        fputs("; read twice, the same", stdout);
    else if (!strcmp(how, "unknown") && group->first->is_task && !strcmp(group->first->state, "running"))
        printf(" in thread %" PRIu64, group->first->tid);
    else if (!strcmp(how, "unknown") && !group->first->is_task)
        fputs(", no stack known yet", stdout);
}

static void print_name(const struct item *item)
{
    if (!item->is_task)
        printf("%" PRIu64 "%s", item->tid, *item->name ? " " : "");
    print_text(item->is_task && !*item->name ? "(no name)" : item->name);
}

static void print_names(const struct group *group, size_t most)
{
    for (size_t at = 0; at < group->count && at < most; at++) {
        if (at)
            fputs(", ", stdout);
        print_name(&group->first[at]);
    }
    if (group->count > most)
        printf(", and %zu more", group->count - most);
}

static void print_frames(const char *stack)
{
    for (const char *frame = stack, *end; *frame; frame = *end ? end + 1 : end) {
        end = frame + strcspn(frame, ";");
        char *clean = human_text(frame, (size_t)(end - frame), 0, false);
        printf("    %s\n", clean);
        free(clean);
    }
}

static void print_group(const struct items *items, const struct group *group, bool all_names)
{
    const struct item *first = group->first;
    putchar('\n');
    if (group->count > 1)
        printf("%zu %s, ", group->count, first->is_task ? "tasks" : "threads");
    else
        printf("%s ", first->is_task ? "task" : "thread");
    if (group->count == 1)
        print_name(first);
    fputs(group->count == 1 ? ": " : "", stdout);
    print_text(says(state_words, first->state));
    print_known(group);
    putchar('\n');
    if (group->count > 1) {
        fputs("  ", stdout);
        print_names(group, all_names ? group->count : NAMES_SHOWN);
        putchar('\n');
    }
    for (uint32_t at = 0; at < first->count; at++) {
        if (first->count > 1)
            printf("  awaited by %" PRIu32 " of %" PRIu32 ":\n", at + 1, first->count);
        print_frames(items->dumped->stacks[first->stacks[at]].text);
    }
}

static void print_items(struct items items, bool all_names)
{
    size_t count;
    struct group *groups = groups_of(&items, &count);
    for (size_t at = 0; at < count; at++)
        print_group(&items, &groups[at], all_names);
    free(groups);
    free(items.item);
}

static const char *text_of(const struct asked *asked, const char *key)
{
    const char *text = json_string_value(json_object_get(asked->metadata, key));
    return text ? text : "";
}

static void print_head(const struct asked *asked)
{
    char moment[HUMAN_SIZE];
    const struct dumped *dumped = &asked->dumped;
    const char *program = text_of(asked, "program"), *python = text_of(asked, "python");
    printf("process %" PRIu64 " on ", asked->name.pid);
    print_text(asked->name.host);
    if (*program) {
        fputs(": ", stdout);
        print_text(program);
    }
    if (*python) {
        fputs(", Python ", stdout);
        print_text(python);
    }
    printf(", %s\n%zu thread%s", human_moment(moment, dumped->at_us), dumped->threads_count, tool_plural(dumped->threads_count));
    if (dumped->tasks_off)
        puts("; tasks are not recorded (APROF_METRICS)");
    else
        printf(", %zu task%s\n", dumped->tasks_count, tool_plural(dumped->tasks_count));
    if (dumped->threads_left || dumped->tasks_left)
        printf("left out for want of time or room: %" PRIu64 " threads, %" PRIu64 " tasks\n", dumped->threads_left, dumped->tasks_left);
}

void dump_show_text(const struct asking *asking, bool all_names)
{
    bool is_first = true;
    for (size_t at = 0; at < asking->count; at++) {
        const struct asked *asked = &asking->processes[at];
        if (!asked->has_answer)
            continue;
        fputs(is_first ? "" : "\n\n", stdout);
        is_first = false;
        print_head(asked);
        print_items(items_of_threads(&asked->dumped), all_names);
        print_items(items_of_tasks(&asked->dumped), all_names);
    }
}

/* ---- JSON ---- */

static json_t *json_name(const char *name)
{
    return *name ? document_text(name) : json_null();
}

static json_t *json_frame(const char *text, size_t length)
{
    struct spool_frame parts;
    spool_frame_split(text, length, &parts);
    char *name = tool_copy(text, parts.name_length);
    char *place = parts.path ? tool_copy(parts.path, (size_t)(text + length - 1 - parts.path)) : NULL;
    json_t *frame = json_object();
    json_object_set_new(frame, "name", document_text(name));
    json_object_set_new(frame, "place", document_text(place ? place : ""));
    free(name);
    free(place);
    return frame;
}

static json_t *json_stack(const char *stack)
{
    json_t *frames = json_array();
    for (const char *frame = stack, *end; *frame; frame = *end ? end + 1 : end) {
        end = frame + strcspn(frame, ";");
        json_array_append_new(frames, json_frame(frame, (size_t)(end - frame)));
    }
    return frames;
}

static json_t *json_thread(const struct dumped_thread *thread)
{
    json_t *object = json_object();
    json_object_set_new(object, "tid", document_number(thread->tid));
    json_object_set_new(object, "name", json_name(thread->name));
    json_object_set_new(object, "state", document_text(thread->state));
    json_object_set_new(object, "known_by", document_text(thread->how));
    json_object_set_new(object, "age_us", thread->age_us == DUMPED_NO_AGE ? json_null() : document_number(thread->age_us));
    json_object_set_new(object, "stack", thread->stack == DUMPED_NO_STACK ? json_null() : document_number(thread->stack));
    return object;
}

static json_t *json_task(const struct dumped *dumped, const struct dumped_task *task)
{
    json_t *object = json_object(), *stacks = json_array();
    for (uint32_t at = 0; at < task->stacks; at++)
        json_array_append_new(stacks, document_number(dumped->stack_of_task[task->first_stack + at]));
    json_object_set_new(object, "name", json_name(task->name));
    json_object_set_new(object, "state", document_text(task->state));
    json_object_set_new(object, "known_by", document_text(task->how));
    json_object_set_new(object, "waits_us", task->age_us == DUMPED_NO_AGE ? json_null() : document_number(task->age_us));
    json_object_set_new(object, "thread", task->tid ? document_number(task->tid) : json_null());
    json_object_set_new(object, "stacks", stacks);
    return object;
}

static json_t *json_process(const struct asked *asked)
{
    const struct dumped *dumped = &asked->dumped;
    json_t *object = json_object(), *threads = json_array(), *tasks = json_array(), *stacks = json_array();
    const struct document_count pairs[] = {
        { "pid", asked->name.pid },           { "start_us", asked->name.start_us },   { "at_us", dumped->at_us },
        { "threads_left", dumped->threads_left }, { "tasks_left", dumped->tasks_left },
    };
    for (size_t at = 0; at < dumped->threads_count; at++)
        json_array_append_new(threads, json_thread(&dumped->threads[at]));
    for (size_t at = 0; at < dumped->tasks_count; at++)
        json_array_append_new(tasks, json_task(dumped, &dumped->tasks[at]));
    for (size_t at = 0; at < dumped->stacks_count; at++)
        json_array_append_new(stacks, json_stack(dumped->stacks[at].text));
    json_object_set_new(object, "host", document_text(asked->name.host));
    document_counts(object, pairs, sizeof pairs / sizeof *pairs);
    json_object_set_new(object, "program", document_text(text_of(asked, "program")));
    json_object_set_new(object, "python", document_text(text_of(asked, "python")));
    json_object_set_new(object, "tasks_recorded", json_boolean(!dumped->tasks_off));
    json_object_set_new(object, "threads", threads);
    json_object_set_new(object, "tasks", tasks);
    json_object_set_new(object, "stacks", stacks);
    return object;
}

void dump_show_json(const struct asking *asking)
{
    json_t *processes = json_array();
    for (size_t at = 0; at < asking->count; at++)
        if (asking->processes[at].has_answer)
            json_array_append_new(processes, json_process(&asking->processes[at]));
    document_print(json_pack("{ss si so}", "aprof", APROF_VERSION, "format", 1, "processes", processes));
}
