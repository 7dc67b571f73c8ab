/* SPDX-License-Identifier: MIT */
#include "output/top_view.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "output/human.h"
#include "output/kind.h"
#include "output/table.h"
#include "output/tool.h"

#define NUMBER_COLUMNS 40 /* of a row, before the name */
#define LINE_MOST 4096

/* A line, cut at the screen's edge. */
static void put_line(FILE *stream, int columns, const char *format, ...) __attribute__((format(printf, 3, 4)));
static void put_line(FILE *stream, int columns, const char *format, ...)
{
    char line[LINE_MOST];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(line, sizeof line, format, arguments);
    va_end(arguments);
    char *clean = human_text(line, strlen(line), columns, false);
    fprintf(stream, "%s\n", clean);
    free(clean);
}

/* ---- head ---- */

static void put_first(const struct top_view *view, FILE *stream, int columns)
{
    const struct follow_process *processes;
    size_t count = follow_processes(view->follow, &processes), living = 0;
    char clock[16] = "";
    time_t now = time(NULL);
    struct tm parts;
    for (size_t at = 0; at < count; at++)
        living += processes[at].lives;
    if (localtime_r(&now, &parts))
        strftime(clock, sizeof clock, "%H:%M:%S", &parts);
    put_line(stream, columns, "aprof top %s: %s, %zu process%s%s%s", clock, view->path, living, living == 1 ? "" : "es",
             view->paused ? ", paused" : "", view->help || view->as_text ? "" : "   (? for help)");
}

static void put_metrics(const struct top_view *view, FILE *stream, int columns)
{
    char line[LINE_MOST] = "", amount[HUMAN_SIZE], span[HUMAN_SIZE];
    const char *chosen = follow_chosen(view->follow), *metric;
    size_t used = 0;
    for (size_t at = 0; (metric = follow_metric(view->follow, at)) && used < sizeof line - 64; at++)
        used += (size_t)snprintf(line + used, sizeof line - used, chosen && !strcmp(metric, chosen) ? "[%s] " : "%s ", metric);
    if (!chosen) {
        put_line(stream, columns, "no metric yet");
        return;
    }
    uint64_t sum = follow_sum_now(view->follow), us = follow_span_us(view->follow);
    put_line(stream, columns, "%s  %s in %s", used ? line : chosen, kind_amount(amount, kind_of(chosen), sum), human_time(span, us));
}

static void put_process(const struct top_view *view, FILE *stream, int columns)
{
    const struct follow_process *processes;
    size_t count = follow_processes(view->follow, &processes), used = 0;
    char line[LINE_MOST] = "";
    for (size_t at = 0; at < count && used < sizeof line - 512; at++)
        if (processes[at].lives)
            used += (size_t)snprintf(line + used, sizeof line - used, "%s%" PRIu64 " %.200s", used ? ", " : "", processes[at].name.pid,
                                     processes[at].program);
    if (view->trouble)
        put_line(stream, columns, "%s", view->trouble);
    else if (view->process)
        put_line(stream, columns, "process %" PRIu64 " alone: %s", view->process->pid, used ? line : "it has ended");
    else
        put_line(stream, columns, "all of: %s", used ? line : "no process writes here now");
}

/* ---- table ---- */

struct ordered {
    const struct follow_row *row;
    uint64_t first, second; /* what they are ordered by */
};

static int by_amounts(const void *left, const void *right)
{
    const struct ordered *one = left, *other = right;
    if (one->first != other->first)
        return one->first > other->first ? -1 : 1;
    if (one->second != other->second)
        return one->second > other->second ? -1 : 1;
    int order = strcmp(one->row->name, other->row->name);
    return order ? order : strcmp(one->row->place, other->row->place);
}

/* What has nothing in the order's own amount comes last, by what it has in all. */
static struct ordered *rows_ordered(const struct top_view *view, size_t *count)
{
    const struct follow_row *rows;
    *count = follow_rows(view->follow, &rows);
    struct ordered *ordered = tool_alloc(*count, sizeof *ordered);
    for (size_t at = 0; at < *count; at++) {
        const struct follow_row *row = &rows[at];
        uint64_t now = view->by_total ? row->total_now : row->self_now, all = view->by_total ? row->total : row->self;
        ordered[at] = (struct ordered){ row, view->since ? all : now, view->since ? now : all };
    }
    if (*count)
        qsort(ordered, *count, sizeof *ordered, by_amounts);
    return ordered;
}

static void put_heading(const struct top_view *view, FILE *stream, int columns)
{
    char self = view->by_total ? ' ' : '*', total = view->by_total ? '*' : ' ';
    put_line(stream, columns, "%6s%c %6s%c %9s%c %9s%c  FUNCTION", "SELF", view->since ? ' ' : self, "TOTAL", view->since ? ' ' : total,
             "SELF ALL", view->since ? self : ' ', "TOTAL ALL", view->since ? total : ' ');
}

static void put_row(const struct top_view *view, FILE *stream, const struct follow_row *row, int columns)
{
    const struct table_names names = { .room = table_room(columns, NUMBER_COLUMNS) };
    const struct kind *kind = kind_of(follow_chosen(view->follow));
    char self[HUMAN_SIZE], total[HUMAN_SIZE], self_all[HUMAN_SIZE], total_all[HUMAN_SIZE];
    double whole = (double)follow_sum_now(view->follow);
    char *line = NULL;
    size_t size = 0;
    FILE *memory = open_memstream(&line, &size);
    if (!memory)
        return;
    fprintf(memory, "%6s  %6s  %9s  %9s   ", human_share(self, (double)row->self_now, whole), human_share(total, (double)row->total_now, whole),
            kind_amount(self_all, kind, row->self), kind_amount(total_all, kind, row->total));
    table_name_on(memory, &names, row->name, row->place);
    fclose(memory);
    line[strlen(line) - 1] = '\0';
    put_line(stream, columns, "%s", line);
    free(line);
}

static void put_rows(struct top_view *view, FILE *stream, int rows, int columns)
{
    size_t count, room = rows > 0 ? (size_t)rows : SIZE_MAX;
    struct ordered *ordered = rows_ordered(view, &count);
    if (view->offset >= count)
        view->offset = count ? count - 1 : 0;
    for (size_t at = view->offset; at < count && at - view->offset < room; at++)
        put_row(view, stream, ordered[at].row, columns);
    free(ordered);
}

/* ---- help ---- */

static const char *const help[] = {
    "", "  s  by self time: the function itself ran or waited", "  t  by total time: it, or what it called",
    "  a  by all since the beginning, or (again) by the time since the look before", "  m  the next metric (M: the one before)",
    "  p  the next process alone, and then all again (P: the other way)", "  arrows, page up and down, home, end", "  space  stops and goes on",
    "  q  ends", "",
    "  SELF and TOTAL are shares of all time since the look before; SELF ALL and",
    "  TOTAL ALL what the open windows had at first and all since. * is the order.",
};

static void put_help(FILE *stream, int rows, int columns)
{
    for (size_t at = 0; at < sizeof help / sizeof *help && (rows <= 0 || (int)at < rows); at++)
        put_line(stream, columns, "%s", help[at]);
}

int top_view_print(struct top_view *view, FILE *stream, int rows, int columns)
{
    enum { HEAD_LINES = 3 };
    void (*const heads[HEAD_LINES])(const struct top_view *, FILE *, int) = { put_first, put_metrics, put_process };
    for (int at = 0; at < HEAD_LINES && (rows <= 0 || at < rows); at++)
        heads[at](view, stream, columns);
    int left = rows > 0 ? rows - HEAD_LINES : 0;
    if (rows > 0 && left <= 0)
        return -1;
    if (view->help) {
        put_help(stream, left, columns);
        return -1;
    }
    put_heading(view, stream, columns);
    if ((rows <= 0 || left > 1) && follow_chosen(view->follow))
        put_rows(view, stream, rows > 0 ? left - 1 : 0, columns);
    return HEAD_LINES;
}
