/* SPDX-License-Identifier: MIT */
#include "output/blocking_show.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "output/document.h"
#include "output/human.h"
#include "output/path.h"
#include "output/sentence.h"
#include "output/table.h"
#include "output/tool.h"

#define NUMBER_COLUMNS 21 /* of a row, before the call */

/* ---- text ---- */

static void print_summary(const struct blocking *blocking)
{
    char sum[HUMAN_SIZE], busy[HUMAN_SIZE], share[HUMAN_SIZE], idle[HUMAN_SIZE];
    double busy_us = (double)blocking_busy(blocking), idle_us = (double)blocking_idle(blocking);
    struct sentence line = { .label = "blocking", .between = ", " };
    sentence_add(&line, "%s in calls that wait", human_time(sum, blocking_sum(blocking)));
    sentence_add(&line, "%s of %s in which event loops were busy", human_share(share, (double)blocking_sum(blocking), busy_us), human_time(busy, blocking_busy(blocking)));
    sentence_add(&line, "%s idle", human_share(idle, idle_us, idle_us + busy_us));
    if (!blocking_is_known(blocking))
        sentence_add(&line, "by wall less cpu, where waiting for a CPU or the GIL looks the same (the metric block tells)");
    sentence_end(&line);
}

static void print_call(const struct blocking *blocking, const struct blocking_row *row, int columns)
{
    const char **names = tool_alloc(row->depth, sizeof *names);
    for (uint32_t at = 0; at < row->depth; at++)
        names[at] = blocking_frame(blocking, row, at).name;
    struct frame_text leaf = blocking_frame(blocking, row, row->depth - 1);
    size_t size = strlen(leaf.name) + strlen(leaf.place) + sizeof " ()";
    char *call = tool_alloc(size, 1);
    snprintf(call, size, *leaf.place ? "%s (%s)" : "%s", leaf.name, leaf.place);
    names[row->depth - 1] = call;
    path_print(names, row->depth, table_room(columns, NUMBER_COLUMNS), NUMBER_COLUMNS);
    free(call);
    free(names);
}

void blocking_print(struct blocking *blocking, const struct blocking_view *view)
{
    const struct blocking_row *rows;
    char waiting[HUMAN_SIZE];
    size_t count = blocking_rows(blocking, view->period_us, &rows);
    if (!view->quiet) {
        print_summary(blocking);
        putchar('\n');
    }
    table_heading(view->colour, "blocking calls on event loops");
    printf("%10s %8s  %s\n", "waiting", "of busy", "call");
    for (size_t at = 0; at < count && (at < view->top || !view->top); at++) {
        printf("%10s ", human_time(waiting, rows[at].waiting_us));
        table_share(view->colour, (double)rows[at].waiting_us, (double)blocking_busy(blocking));
        fputs("  ", stdout);
        print_call(blocking, &rows[at], view->columns);
    }
    if (view->top && count > view->top)
        printf("%*s... %zu more\n", NUMBER_COLUMNS, "", count - view->top);
}

/* ---- JSON ---- */

static json_t *json_call(const struct blocking *blocking, const struct blocking_row *row)
{
    json_t *object = json_object(), *frames = json_array();
    double busy_us = (double)blocking_busy(blocking);
    for (uint32_t at = 0; at < row->depth; at++) {
        struct frame_text text = blocking_frame(blocking, row, at);
        json_t *frame = json_object();
        json_object_set_new(frame, "name", document_text(text.name));
        json_object_set_new(frame, "place", document_text(text.place));
        json_array_append_new(frames, frame);
    }
    json_object_set_new(object, "stack", frames);
    json_object_set_new(object, "waiting", document_number(row->waiting_us));
    json_object_set_new(object, "busy_percent", json_real(busy_us > 0 ? 100 * (double)row->waiting_us / busy_us : 0));
    return object;
}

json_t *blocking_json(struct blocking *blocking, const struct blocking_view *view)
{
    const struct blocking_row *rows;
    size_t count = blocking_rows(blocking, view->period_us, &rows);
    json_t *object = json_object(), *array = json_array();
    for (size_t at = 0; at < count && (at < view->top || !view->top); at++)
        json_array_append_new(array, json_call(blocking, &rows[at]));
    json_object_set_new(object, "source", json_string(blocking_is_known(blocking) ? "block" : "wall-cpu"));
    json_object_set_new(object, "total", document_number(blocking_sum(blocking)));
    json_object_set_new(object, "busy", document_number(blocking_busy(blocking)));
    json_object_set_new(object, "idle", document_number(blocking_idle(blocking)));
    json_object_set_new(object, "rows", array);
    return object;
}
