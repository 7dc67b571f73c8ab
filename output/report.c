/* SPDX-License-Identifier: MIT
 *
 * Everything is read and added up first, then printed, so that what the reading
 * itself met (lines left out, files gone) stands in the quality lines above the
 * figures that it concerns.
 */
#include "output/report.h"

#include <getopt.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "output/blocking_show.h"
#include "output/document.h"
#include "output/filter.h"
#include "output/human.h"
#include "output/kind.h"
#include "output/leftout.h"
#include "output/nothing.h"
#include "output/path.h"
#include "output/progress.h"
#include "output/quality.h"
#include "output/reader.h"
#include "output/sentence.h"
#include "output/table.h"
#include "output/tally.h"
#include "output/tool.h"

#define TOP_DEFAULT 10
#define TOP_MOST 1000000
#define WIDTH_MOST 10000
#define DEFAULT_PATH TOOL_DEFAULT_PATH
#define NUMBER_COLUMNS 42 /* of a row, before the name */
#define PATTERNS_MAX 256
#define STACK_COLUMNS 21  /* ... before a stack, which has no total */

const char report_help[] =
    "NAME\n"
    "    aprof report - how good the profile is, and where the time went\n"
    "\n"
    "SYNOPSIS\n"
    "    aprof report [OPTION]... [PATH]...\n"
    "\n"
    "DESCRIPTION\n"
    "    Reads spool directories and single spool files, finished or still being\n"
    "    written to, of one process or many, and adds them up. Without PATH:\n"
    "    " DEFAULT_PATH ".\n"
    "\n"
    "    First comes what the profile is worth: the processes and the time covered,\n"
    "    the rate asked for and got, what was lost and why, the limits that bit, and\n"
    "    what profiling itself used. Then the total of each metric, the idle share of\n"
    "    each event loop, and for each metric the top functions, once by self time\n"
    "    (the function was running or waiting itself) and once by total time (it or\n"
    "    something it called; a recursive function counts once). With --by stack a row\n"
    "    is the way to a function, outermost caller or awaiter first: which requests\n"
    "    wait, and for what.\n"
    "\n"
    "    The rate is that of the sampler's own clock, which slows down while the\n"
    "    process rests; beside it each busy thread ticks by its CPU time.\n"
    "\n"
    "    Names in square brackets are no functions: [unseen cpu] is CPU time that\n"
    "    fell between two looks, [overflow] what found no room in memory,\n"
    "    [truncated 140] stands for 140 frames cut off near the root, [ready] for a\n"
    "    task's time of waiting until its event loop gets to it.\n"
    "\n"
    "OPTIONS\n"
    "    -m, --metric METRIC  cpu, wall, task or any other metric that was recorded;\n"
    "                         all (default): every one\n"
    "    -n, --top N          rows of each table (default 10); 0: all\n"
    "    -b, --by WHAT        what a row is: function (default), line, file, thread,\n"
    "                         task, process, stack; threads and tasks by their names,\n"
    "                         where frames [thread NAME] and [task NAME] were recorded\n"
    "    -B, --blocking       in place of the metrics: calls in which the thread of\n"
    "                         an event loop waited (sleep, socket, lock, file, child\n"
    "                         process) within a task's step or a callback, by time\n"
    "    -w, --width COLUMNS  keeps lines so short (default: as the terminal); 0: no\n"
    "                         limit\n"
    FILTER_HELP
    "    -q, --quiet          only the tables; no line on the terminal that says how much\n"
    "                         was read\n"
    "    -j, --json           the same numbers as one JSON object (times in\n"
    "                         microseconds, sizes in bytes)\n"
    "    -h, --help           this text\n"
    "\n"
    FILTER_HELP_PATTERN
    "\n"
    "    Colours and shortened names only on a terminal: yellow is what you should know\n"
    "    of (losses from 0.5% of ticks on, limits, a cost beyond the budget), red losses\n"
    "    from 5% on, bold shares from 10% on. NO_COLOR, TERM=dumb and COLUMNS are\n"
    "    respected. A stack too long for two lines has \"...\" for its outer\n"
    "    frames; --json has all.\n"
    "\n"
    "EXIT STATUS\n"
    "    0  fine\n"
    "    2  wrong usage\n"
    "    3  nothing to report\n"
    "    4  some input could not be read (the rest is still reported)\n"
    "\n"
    "EXAMPLES\n"
    "    aprof report\n"
    "    aprof report --metric task --by stack --top 5\n"
    "    aprof report --blocking\n"
    "    aprof report --only 'orders.*' --hide 'sqlalchemy/*'\n"
    "    aprof report --metric wall --by line --top 30 /var/spool/aprof\n"
    "    aprof report --json | jq '.metrics.cpu.by_self[0]'\n";

/* One metric that is shown. */
struct section {
    const char *metric;
    const struct kind *kind;
    struct tally *tally;
    uint64_t whole; /* before --only */
};

struct report {
    const char *metric; /* NULL: all */
    enum tally_by by;
    size_t top;         /* 0: all */
    bool as_json, quiet, blocking; /* blocking: its rows in place of the metrics' */
    struct filter *filter;
    struct reader *reader;
    struct quality *quality;
    struct section *sections;
    size_t sections_count, sections_room;
    struct blocking *calls; /* NULL: not asked for */
    int columns;
    bool colour;
};

/* ---- options -------------------------------------------------------------- */

static bool top_parse(struct report *report, const char *text)
{
    unsigned long top;
    bool good = tool_number("--top", text, 0, TOP_MOST, &top);
    report->top = top;
    return good;
}

static bool width_parse(const char *text)
{
    unsigned long width;
    bool good = tool_number("--width", text, 0, WIDTH_MOST, &width);
    if (good)
        human_columns_ask((int)width);
    return good;
}

static bool by_parse(struct report *report, const char *text)
{
    int by = tally_by_of(text);
    if (by < 0)
        tool_complain("--by: \"%s\" is not one of function, line, file, thread, task, process, stack", text);
    else
        report->by = (enum tally_by)by;
    return by >= 0;
}

static bool metric_parse(struct report *report, const char *text)
{
    report->metric = strcmp(text, "all") ? text : NULL;
    if (!*text)
        tool_complain("--metric: \"\" is not the name of a metric (cpu, wall, task, ..., or all)");
    return *text;
}

/* Returns an exit status, or -1 to go on. */
static int options_parse(struct report *report, int argc, char **argv)
{
    static const struct option options[] = {
        { "metric", required_argument, NULL, 'm' }, { "top", required_argument, NULL, 'n' },
        { "by", required_argument, NULL, 'b' },     { "json", no_argument, NULL, 'j' },
        { "width", required_argument, NULL, 'w' },  { "quiet", no_argument, NULL, 'q' },
        { "blocking", no_argument, NULL, 'B' },     { "help", no_argument, NULL, 'h' },
        FILTER_OPTIONS,
        { 0 },
    };
    opterr = 0;
    for (int option; (option = getopt_long(argc, argv, ":m:n:b:w:Bjqh", options, NULL)) != -1;) {
        bool good = true;
        switch (option) {
        case 'm': good = metric_parse(report, optarg); break;
        case 'n': good = top_parse(report, optarg); break;
        case 'b': good = by_parse(report, optarg); break;
        case 'w': good = width_parse(optarg); break;
        case FILTER_OPTION + FILTER_ONLY:
        case FILTER_OPTION + FILTER_HIDE: good = filter_option(report->filter, option, optarg); break;
        case 'B': report->blocking = true; break;
        case 'j': report->as_json = true; break;
        case 'q': report->quiet = true; break;
        case 'h': fputs(report_help, stdout); return TOOL_FINE;
        default: return tool_option_wrong("report", option, argv);
        }
        if (!good)
            return TOOL_USAGE;
    }
    return -1;
}

/* ---- reading -------------------------------------------------------------- */

static void section_read(struct report *report, const char *metric)
{
    struct tally *tally = tally_new(report->by);
    reader_each(report->reader, metric, tally_line, tally);
    uint64_t whole = reader_filtered(report->reader) ? filter_take_whole(report->filter) : tally_sum(tally);
    if (!tally_sum(tally)) {
        tally_free(tally);
        return;
    }
    size_t at = report->sections_count++;
    report->sections = tool_grow(report->sections, at, &report->sections_room, sizeof *report->sections);
    report->sections[at] = (struct section){ metric, kind_of(metric), tally, whole };
}

static bool is_wanted(const struct report *report, const char *metric)
{
    return !report->metric || !strcmp(report->metric, metric);
}

static void blocking_read(struct report *report)
{
    static const char *const metrics[] = { "wall", "cpu", "block" };
    for (size_t at = 0; at < sizeof metrics / sizeof *metrics; at++)
        progress_expect(reader_bytes(report->reader, metrics[at]));
    report->calls = blocking_new(report->reader, report->filter);
    progress_end();
}

static void report_read(struct report *report, int count, char **paths)
{
    report->reader = reader_new();
    if (!report->blocking) /* which finds loops first */
        reader_filter(report->reader, report->filter);
    for (int at = 0; at < count; at++)
        reader_add(report->reader, paths[at]);
    if (!count)
        reader_add(report->reader, DEFAULT_PATH);
    reader_open(report->reader);
    report->quality = quality_new(report->reader);
    const char *metric;
    if (report->blocking) {
        blocking_read(report);
        return;
    }
    for (uint32_t at = 0; (metric = reader_metric(report->reader, at)); at++)
        if (is_wanted(report, metric))
            progress_expect(reader_bytes(report->reader, metric));
    for (uint32_t at = 0; (metric = reader_metric(report->reader, at)); at++)
        if (is_wanted(report, metric))
            section_read(report, metric);
    progress_end();
}

/* Whether any stack says of which thread or task it is, where rows are those. */
static bool has_names(const struct report *report)
{
    for (size_t at = 0; at < report->sections_count; at++)
        if (tally_has_names(report->sections[at].tally))
            return true;
    return false;
}

static void sections_drop(struct report *report)
{
    for (size_t at = 0; at < report->sections_count; at++)
        tally_free(report->sections[at].tally);
    report->sections_count = 0;
}

static void report_close(struct report *report)
{
    sections_drop(report);
    free(report->sections);
    blocking_free(report->calls);
    quality_free(report->quality);
    reader_free(report->reader);
    filter_free(report->filter);
}

/* ---- text ----------------------------------------------------------------- */

static void print_processes(const struct quality *quality)
{
    struct sentence line = { .label = "processes", .between = ", " };
    sentence_add(&line, "%u", quality->processes_count);
    if (quality->running)
        sentence_add(&line, "%u running", quality->running);
    if (quality->killed)
        sentence_add(&line, "%u ended without notice", quality->killed);
    if (quality->runs > 1)
        sentence_add(&line, "of %u runs", quality->runs);
    if (quality->children_without_sample)
        sentence_add(&line, "%" PRIu64 " forked without a sample", quality->children_without_sample);
    sentence_end(&line);
}

static void print_covered(const struct quality *quality)
{
    char time[HUMAN_SIZE], moment[HUMAN_SIZE];
    struct sentence line = { .label = "covered", .between = ", " };
    if (quality->covered_us)
        sentence_add(&line, "%s from %s", human_time(time, quality->covered_us), human_moment(moment, quality->start_us));
    if (quality->process_us > quality->covered_us)
        sentence_add(&line, "%s over all processes", human_time(time, quality->process_us));
    sentence_add(&line, "%u window%s", quality->windows, tool_plural(quality->windows));
    line.style = HUMAN_WARNING;
    if (quality->windows_without_metadata)
        sentence_add(&line, "%u without metadata (not in the lines below)", quality->windows_without_metadata);
    sentence_end(&line);
}

#define RESTED 0.8 /* a rate got so far below the one asked for is explained */

static const char *why_slow(const struct quality *quality)
{
    if (quality->got >= RESTED * quality->asked_least)
        return "";
    return quality->budget.slowed ? " (it slows down to keep to APROF_OVERHEAD, while nothing runs, and while threads do nothing but run)"
                                  : " (it slows down while nothing runs, and while threads do nothing but run)";
}

static void print_rate(const struct quality *quality)
{
    struct sentence line = { .label = "rate", .between = ", " };
    if (quality->asked_most > quality->asked_least)
        sentence_add(&line, "%.4g to %.4g/s asked", quality->asked_least, quality->asked_most);
    else
        sentence_add(&line, "%.4g/s asked", quality->asked_most);
    sentence_add(&line, "%.4g/s got%s", quality->got, why_slow(quality));
    if (quality->budget.slowed)
        sentence_add(&line, "slowed %" PRIu64 " time%s, to %.4g/s", quality->budget.slowed, tool_plural(quality->budget.slowed), quality->budget.rate_least);
    sentence_add(&line, "%" PRIu64 " ticks due", quality->ticks_due);
    sentence_add(&line, "%" PRIu64 " missed", quality->ticks_missed);
    sentence_add(&line, "%" PRIu64 " samples", quality->samples);
    sentence_end(&line);
}

#define LOST_LITTLE 0.005 /* of ticks due; what libaprof itself promises to stay below */
#define LOST_MUCH 0.05    /* more than shares may be wrong by */

static enum human_style style_of_loss(const struct quality *quality)
{
    double share = quality->ticks_due ? (double)quality->lost / (double)quality->ticks_due : 0;
    return share >= LOST_MUCH ? HUMAN_BAD : share >= LOST_LITTLE ? HUMAN_WARNING : HUMAN_PLAIN;
}

static void print_reasons(struct sentence *line, const json_t *dropped, bool losses)
{
    const char *reason;
    json_t *count;
    json_object_foreach((json_t *)dropped, reason, count) {
        if (json_integer_value(count) && quality_reason_is_loss(reason) == losses)
            sentence_add(line, "%s %" JSON_INTEGER_FORMAT, reason, json_integer_value(count));
    }
}

static void print_lost(const struct quality *quality)
{
    char share[HUMAN_SIZE];
    struct sentence line = { .label = "lost", .between = ", ", .style = style_of_loss(quality) }, kept = { .label = "partial", .between = ", " };
    sentence_add(&line, "%" PRIu64 " (%s of ticks due)", quality->lost,
                 human_share(share, (double)quality->lost, (double)quality->ticks_due));
    line.style = HUMAN_PLAIN;
    if (quality->ticks_missed)
        sentence_add(&line, "ticks missed %" PRIu64, quality->ticks_missed);
    if (quality->tasks_skipped)
        sentence_add(&line, "tasks skipped %" PRIu64, quality->tasks_skipped);
    print_reasons(&line, quality->dropped, true);
    sentence_end(&line);
    print_reasons(&kept, quality->dropped, false);
    if (!kept.label)
        sentence_add(&kept, "kept with less ancestry");
    sentence_end(&kept);
}

/* Only where some were left for later. */
static void print_threads(const struct quality *quality)
{
    char share[HUMAN_SIZE];
    struct sentence line = { .label = "threads", .between = ", " };
    uint64_t all = quality->thread_reads.taken + quality->thread_reads.left;
    if (!quality->thread_reads.left)
        return;
    sentence_add(&line, "%" PRIu64 " at peak%s", quality->threads_peak, quality->processes_count > 1 ? " in one process" : "");
    sentence_add(&line, "%s of them read at a tick, the others at a later one", human_share(share, (double)quality->thread_reads.taken, (double)all));
    sentence_end(&line);
}

static void print_tasks(const struct quality *quality)
{
    char share[HUMAN_SIZE], time[HUMAN_SIZE];
    struct sentence line = { .label = "tasks", .between = ", " };
    if (!quality->task_ticks.read && !quality->task_ticks.repeated)
        return;
    sentence_add(&line, "%" PRIu64 " at peak%s", quality->tasks_peak, quality->processes_count > 1 ? " in one process" : "");
    sentence_add(&line, "%" PRIu64 " tick%s over all", quality->task_ticks.read, tool_plural(quality->task_ticks.read));
    if (quality->task_ticks.repeated)
        sentence_add(&line, "%" PRIu64 " repeated while nothing ran", quality->task_ticks.repeated);
    sentence_add(&line, "%s of readings postponed",
                 human_share(share, (double)quality->task_ticks.postponed, (double)quality->task_ticks.tasks));
    sentence_add(&line, "sampler %s", human_time(time, quality->task_ticks.cpu_us));
    sentence_end(&line);
}

/* Of all the time that threads lived; locks and I/O are no waiting for the GIL. */
static void print_gil(const struct quality *quality)
{
    char share[HUMAN_SIZE], time[HUMAN_SIZE];
    double wall_us = (double)quality->gil.wall_us;
    struct sentence line = { .label = "gil", .between = ", " };
    if (!quality->gil.wall_us)
        return;
    sentence_add(&line, "threads waited for it %s", human_time(time, quality->gil.wait_us));
    sentence_add(&line, "%s of their time", human_share(share, (double)quality->gil.wait_us, wall_us));
    if (quality->gil.unknown_us)
        sentence_add(&line, "perhaps %s more", human_time(time, quality->gil.unknown_us));
    sentence_add(&line, "held it %s", human_time(time, quality->gil.held_us));
    sentence_add(&line, "%s", human_share(share, (double)quality->gil.held_us, wall_us));
    sentence_end(&line);
}

static void print_unseen(const struct quality *quality)
{
    char time[HUMAN_SIZE];
    struct sentence line = { .label = "unseen", .between = ", " };
    if (quality->cpu_unseen_us)
        sentence_add(&line, "%s of CPU time on [unseen cpu]", human_time(time, quality->cpu_unseen_us));
    if (quality->cpu_spread_us)
        sentence_add(&line, "%s spread over the stacks that were seen", human_time(time, quality->cpu_spread_us));
    sentence_end(&line);
}

static void print_limits(const struct quality *quality)
{
    struct sentence line = { .label = "limits", .between = ", ", .style = HUMAN_WARNING };
    const char *limit;
    json_t *count;
    json_object_foreach(quality->limits, limit, count)
        if (json_integer_value(count))
            sentence_add(&line, "%s %" JSON_INTEGER_FORMAT, limit, json_integer_value(count));
    sentence_end(&line);
}

static void print_cost(const struct quality *quality)
{
    char time[HUMAN_SIZE];
    uint64_t used_us = quality->sampler_cpu_us + quality->handler_us, allowed_us = quality->budget.allowed_us;
    struct sentence line = { .label = "own cost", .between = ", ", .style = allowed_us && used_us > allowed_us ? HUMAN_WARNING : HUMAN_PLAIN };
    sentence_add(&line, "%.2f%% of the processes' CPU time of %s", quality_own_cost(quality), human_time(time, quality->process_cpu_us));
    line.style = HUMAN_PLAIN;
    sentence_add(&line, "sampler %s", human_time(time, quality->sampler_cpu_us));
    sentence_add(&line, "handlers %s", human_time(time, quality->handler_us));
    if (quality->budget.allowed_us)
        sentence_add(&line, "%s allowed", human_time(time, quality->budget.allowed_us));
    sentence_end(&line);
}

static void print_notes(const struct report *report)
{
    const struct quality *quality = report->quality;
    const struct reader_counts *counts = reader_counts(report->reader);
    struct sentence line = { .label = "note", .between = "; " };
    char words[LEFTOUT_SIZE];
    bool is_missed;
    if (quality->windows_by_syscall)
        sentence_add(&line, "%u window%s read by system calls", quality->windows_by_syscall, tool_plural(quality->windows_by_syscall));
    if (quality->windows_coarse_clock)
        sentence_add(&line, "thread clocks are coarse in %u window%s", quality->windows_coarse_clock,
                     tool_plural(quality->windows_coarse_clock));
    for (size_t at = 0; leftout_next(counts, &at, words, &is_missed);) {
        line.style = is_missed ? HUMAN_WARNING : HUMAN_PLAIN;
        sentence_add(&line, "%s", words);
    }
    sentence_end(&line);
}

static void print_quality(const struct report *report)
{
    const struct quality *quality = report->quality;
    print_processes(quality);
    print_covered(quality);
    if (quality->windows > quality->windows_without_metadata) {
        print_rate(quality);
        print_lost(quality);
        print_threads(quality);
        print_tasks(quality);
        print_gil(quality);
        print_unseen(quality);
        print_limits(quality);
        print_cost(quality);
    }
    print_notes(report);
}

static void print_filter(const struct report *report)
{
    static const char *const labels[] = { [FILTER_ONLY] = "only", [FILTER_HIDE] = "hidden" };
    for (int what = 0; what < FILTER_KINDS; what++) {
        char patterns[PATTERNS_MAX];
        struct sentence line = { .label = labels[what], .between = ", " };
        if (*filter_describe(report->filter, (enum filter_what)what, patterns, sizeof patterns))
            sentence_add(&line, "%s%s", what == FILTER_ONLY ? "stacks with " : "", patterns);
        sentence_end(&line);
    }
}

static bool is_part(const struct section *section)
{
    return section->whole != tally_sum(section->tally);
}

static void print_totals(const struct report *report)
{
    char amount[HUMAN_SIZE], whole[HUMAN_SIZE], share[HUMAN_SIZE];
    putchar('\n');
    print_filter(report);
    for (size_t at = 0; at < report->sections_count; at++) {
        const struct section *section = &report->sections[at];
        uint64_t sum = tally_sum(section->tally);
        struct sentence line = { .label = section->metric, .between = ", " };
        sentence_add(&line, "%s", kind_amount(amount, section->kind, sum));
        if (is_part(section))
            sentence_add(&line, "%s of %s", human_share(share, (double)sum, (double)section->whole), kind_amount(whole, section->kind, section->whole));
        sentence_add(&line, "%s", section->kind->what);
        sentence_end(&line);
    }
}

/* Shares are of what --only has kept, so this says how much that is. */
static void print_heading(const struct report *report, const struct section *section, const char *by)
{
    char share[HUMAN_SIZE], part[HUMAN_SIZE], whole[HUMAN_SIZE];
    uint64_t sum = tally_sum(section->tally);
    if (!is_part(section)) {
        table_heading(report->colour, "%s by %s", section->metric, by);
        return;
    }
    char patterns[PATTERNS_MAX];
    filter_describe(report->filter, FILTER_ONLY, patterns, sizeof patterns);
    char *clean = human_text(patterns, strlen(patterns), 0, false);
    table_heading(report->colour, "%s by %s, of %s (%s of %s) with %s", section->metric, by, kind_amount(part, section->kind, sum),
                  human_share(share, (double)sum, (double)section->whole), kind_amount(whole, section->kind, section->whole), clean);
    free(clean);
}

static double on_average(uint64_t sum_us, const struct quality_loop *loop)
{
    return loop->counted_us ? (double)sum_us / (double)loop->counted_us : 0;
}

static const char *last_frame(const char *frames)
{
    const char *last = strrchr(frames, ';');
    return last ? last + 1 : frames;
}

static void print_loop_health(const struct quality_loop *loop)
{
    char time[HUMAN_SIZE];
    struct sentence tasks = { .label = " tasks", .between = ", " }, stood = { .label = " stood", .between = " in " };
    struct sentence step = { .label = " step", .between = ", " };
    if (loop->counted_us) {
        sentence_add(&tasks, "%.4g pending on average", on_average(loop->pending_us, loop));
        sentence_add(&tasks, "%" PRIu64 " at peak", loop->pending_peak);
        sentence_add(&tasks, "%.3g ready for the loop on average", on_average(loop->ready_us, loop));
        sentence_add(&tasks, "%" PRIu64 " at peak", loop->ready_peak);
        sentence_add(&tasks, "for %s in all", human_time(time, loop->ready_us));
        sentence_end(&tasks);
    }
    if (loop->stood_us) {
        sentence_add(&stood, "%s at a time within a step", human_time(time, loop->stood_us));
        if (loop->stood_in)
            sentence_add(&stood, "%s", last_frame(loop->stood_in));
        sentence_end(&stood);
    }
    if (loop->step_least_us) {
        sentence_add(&step, "one took at least %s", human_time(time, loop->step_least_us));
        sentence_add(&step, "at most %s", human_time(time, loop->step_most_us));
        if (loop->step_in)
            sentence_add(&step, "seen in %s", last_frame(loop->step_in));
        sentence_end(&step);
    }
}

static void print_loop(const struct quality *quality, const struct quality_loop *loop)
{
    char share[HUMAN_SIZE], time[HUMAN_SIZE];
    const struct quality_process *process = &quality->processes[loop->process];
    double idle = (double)loop->idle_us, whole = idle + (double)loop->busy_us;
    struct sentence line = { .label = "event loop", .between = ", " };
    if (loop->idle_us + loop->busy_us)
        sentence_add(&line, "%s idle of %s", human_share(share, idle, whole), human_time(time, loop->idle_us + loop->busy_us));
    sentence_add(&line, "thread %" PRIu64 " of pid %" PRIu64, loop->thread, process->pid);
    if (process->program)
        sentence_add(&line, "%s", process->program);
    sentence_end(&line);
    print_loop_health(loop);
}

static void print_loops(const struct report *report)
{
    const struct quality *quality = report->quality;
    size_t shown = report->top && report->top < quality->loops_count ? report->top : quality->loops_count;
    for (size_t at = 0; at < shown; at++)
        print_loop(quality, &quality->loops[at]);
    if (shown < quality->loops_count)
        printf("%-10s ... %zu more\n", "", quality->loops_count - shown);
}

static void print_rows(const struct report *report, const struct section *section, const struct tally_row *rows, size_t count)
{
    char self[HUMAN_SIZE], total[HUMAN_SIZE];
    double whole = (double)tally_sum(section->tally);
    const struct table_names names = { .room = table_room(report->columns, NUMBER_COLUMNS), .are_paths = report->by == TALLY_FILE, .colour = report->colour };
    printf("%10s %8s  %10s %8s  %s\n", "self", "", "total", "", tally_by_name(report->by));
    for (size_t at = 0; at < count && (at < report->top || !report->top); at++) {
        const struct tally_row *row = &rows[at];
        printf("%10s ", kind_amount(self, section->kind, row->self));
        table_share(report->colour, (double)row->self, whole);
        printf("  %10s ", kind_amount(total, section->kind, row->total));
        table_share(report->colour, (double)row->total, whole);
        fputs("  ", stdout);
        table_name(&names, row->name, row->place);
    }
    if (report->top && count > report->top)
        printf("%*s... %zu more\n", NUMBER_COLUMNS, "", count - report->top);
}

static void print_path(const struct report *report, const struct tally *tally, const struct tally_row *row)
{
    const char **names = tool_alloc(row->depth, sizeof *names);
    for (uint32_t at = 0; at < row->depth; at++)
        names[at] = tally_frame(tally, row, at).name;
    path_print(names, row->depth, table_room(report->columns, STACK_COLUMNS), STACK_COLUMNS);
    free(names);
}

static void print_stacks(const struct report *report, const struct section *section)
{
    char self[HUMAN_SIZE];
    const struct tally_row *rows;
    size_t count = tally_by_self(section->tally, &rows);
    print_heading(report, section, "stack");
    printf("%10s %8s  %s\n", "self", "", tally_by_name(report->by));
    for (size_t at = 0; at < count && (at < report->top || !report->top); at++) {
        printf("%10s ", kind_amount(self, section->kind, rows[at].self));
        table_share(report->colour, (double)rows[at].self, (double)tally_sum(section->tally));
        fputs("  ", stdout);
        print_path(report, section->tally, &rows[at]);
    }
    if (report->top && count > report->top)
        printf("%*s... %zu more\n", STACK_COLUMNS, "", count - report->top);
}

static void print_section(const struct report *report, const struct section *section)
{
    const struct tally_row *rows;
    if (report->by == TALLY_STACK) {
        print_stacks(report, section);
        return;
    }
    size_t count = tally_by_self(section->tally, &rows);
    print_heading(report, section, "self");
    print_rows(report, section, rows, count);
    if (report->by == TALLY_PROCESS || report->by == TALLY_THREAD)
        return; /* they call no other: both orders are the same */
    count = tally_by_total(section->tally, &rows);
    putchar('\n');
    print_heading(report, section, "total");
    print_rows(report, section, rows, count);
}

static struct blocking_view blocking_view(const struct report *report)
{
    double rate = report->quality->got > 0 ? report->quality->got : report->quality->asked_most;
    return (struct blocking_view){ .period_us = rate > 0 ? 1e6 / rate : 0, .top = report->top, .columns = report->columns, .colour = report->colour, .quiet = report->quiet };
}

static bool has_loops(const struct report *report)
{
    return report->calls && blocking_busy(report->calls) + blocking_idle(report->calls);
}

static void print_blocking(const struct report *report)
{
    struct blocking_view view = blocking_view(report);
    if (!report->quiet)
        print_filter(report);
    if (has_loops(report))
        blocking_print(report->calls, &view);
}

static void print_head(const struct report *report)
{
    print_quality(report);
    if (report->sections_count)
        print_totals(report);
    print_loops(report);
}

static void print_text(struct report *report)
{
    report->columns = human_columns();
    report->colour = human_wants_colour();
    if (!report->quiet)
        print_head(report);
    if (report->blocking)
        print_blocking(report);
    for (size_t at = 0; at < report->sections_count; at++) {
        fputs(at || !report->quiet ? "\n" : "", stdout);
        print_section(report, &report->sections[at]);
    }
}

/* ---- JSON ----------------------------------------------------------------- */

static json_t *json_quality(const struct report *report)
{
    const struct quality *quality = report->quality;
    const struct reader_counts *counts = reader_counts(report->reader);
    const struct document_count pairs[] = {
        { "processes", quality->processes_count },
        { "running", quality->running },
        { "killed", quality->killed },
        { "runs", quality->runs },
        { "windows", quality->windows },
        { "windows_without_metadata", quality->windows_without_metadata },
        { "start_us", quality->start_us },
        { "end_us", quality->end_us },
        { "covered_us", quality->covered_us },
        { "process_us", quality->process_us },
        { "samples", quality->samples },
        { "lost", quality->lost },
        { "tasks_skipped", quality->tasks_skipped },
        { "threads_peak", quality->threads_peak },
        { "tasks_peak", quality->tasks_peak },
        { "children_without_sample", quality->children_without_sample },
        { "cpu_unseen_us", quality->cpu_unseen_us },
        { "cpu_spread_us", quality->cpu_spread_us },
        { "sampler_cpu_us", quality->sampler_cpu_us },
        { "handler_us", quality->handler_us },
        { "process_cpu_us", quality->process_cpu_us },
        { "windows_by_syscall", quality->windows_by_syscall },
        { "windows_coarse_clock", quality->windows_coarse_clock },
        { "files", counts->files },
        { "lines", counts->lines },
        { "lines_bad", counts->lines_bad },
        { "tails", counts->tails },
        { "repeated", counts->repeated },
        { "unfinished", counts->unfinished },
        { "folders", counts->folders },
        { "gone", counts->gone },
        { "unreadable", reader_failures(report->reader) },
    };
    const struct document_count task_ticks[] = {
        { "read", quality->task_ticks.read },
        { "repeated", quality->task_ticks.repeated },
        { "tasks", quality->task_ticks.tasks },
        { "postponed", quality->task_ticks.postponed },
        { "cpu_us", quality->task_ticks.cpu_us },
    };
    const struct document_count thread_reads[] = {
        { "taken", quality->thread_reads.taken },
        { "left", quality->thread_reads.left },
    };
    const struct document_count ticks[] = {
        { "due", quality->ticks_due },
        { "taken", quality->ticks_taken },
        { "missed", quality->ticks_missed },
    };
    const struct document_count budget[] = {
        { "allowed_us", quality->budget.allowed_us },
        { "slowed", quality->budget.slowed },
        { "quickened", quality->budget.quickened },
        { "ceilings", quality->budget.ceilings },
    };
    json_t *object = json_object(), *ticks_object = json_object(), *task_ticks_object = json_object(), *thread_reads_object = json_object();
    json_t *budget_object = json_object();
    document_counts(object, pairs, sizeof pairs / sizeof *pairs);
    document_counts(ticks_object, ticks, sizeof ticks / sizeof *ticks);
    json_object_set_new(object, "ticks", ticks_object);
    document_counts(task_ticks_object, task_ticks, sizeof task_ticks / sizeof *task_ticks);
    json_object_set_new(object, "task_ticks", task_ticks_object);
    document_counts(thread_reads_object, thread_reads, sizeof thread_reads / sizeof *thread_reads);
    json_object_set_new(object, "thread_reads", thread_reads_object);
    json_object_set_new(object, "rate", json_pack("{sf sf sf}", "asked_least", quality->asked_least, "asked_most",
                                                  quality->asked_most, "got", quality->got));
    document_counts(budget_object, budget, sizeof budget / sizeof *budget);
    json_object_set_new(budget_object, "rate_least", json_real(quality->budget.rate_least));
    json_object_set_new(object, "budget", budget_object);
    if (quality->gil.wall_us)
        json_object_set_new(object, "gil", quality_gil(quality));
    json_object_set(object, "dropped", quality->dropped);
    json_object_set(object, "limits", quality->limits);
    json_object_set_new(object, "own_cost_percent", json_real(quality_own_cost(quality)));
    return object;
}

static json_t *json_process(const struct quality_process *process)
{
    const struct document_count pairs[] = {
        { "pid", process->pid },
        { "start_us", process->start_us },
        { "windows", process->windows },
        { "covered_us", process->covered_us },
        { "process_cpu_us", process->process_cpu_us },
        { "children_without_sample", process->children_without_sample },
        { "threads_peak", (uint64_t)process->threads_peak },
        { "tasks_peak", (uint64_t)process->tasks_peak },
    };
    json_t *object = json_object();
    json_object_set_new(object, "host", document_text(process->host));
    document_counts(object, pairs, sizeof pairs / sizeof *pairs);
    json_object_set_new(object, "program", document_text(process->program));
    json_object_set_new(object, "python", document_text(process->python));
    json_object_set_new(object, "run", document_text(process->run));
    json_object_set_new(object, "ended", document_text(process->ended));
    return object;
}

static json_t *json_loop(const struct quality_loop *loop)
{
    const struct document_count pairs[] = {
        { "process", loop->process },
        { "thread", loop->thread },
        { "idle_us", loop->idle_us },
        { "busy_us", loop->busy_us },
    };
    double idle = (double)loop->idle_us, whole = idle + (double)loop->busy_us;
    json_t *object = json_object();
    document_counts(object, pairs, sizeof pairs / sizeof *pairs);
    if (loop->stood_us) {
        json_object_set_new(object, "stood_us", document_number(loop->stood_us));
        json_object_set_new(object, "stood_in", document_text(loop->stood_in));
    }
    quality_put_step(object, loop);
    quality_put_tasks(object, loop);
    json_object_set_new(object, "idle_percent", whole > 0 ? json_real(100 * idle / whole) : json_null());
    return object;
}

static json_t *json_function(const char *name, const char *place)
{
    json_t *object = json_object();
    json_object_set_new(object, "name", document_text(name));
    json_object_set_new(object, "place", document_text(place));
    return object;
}

static json_t *json_stack(const struct tally *tally, const struct tally_row *row)
{
    json_t *object = json_object(), *frames = json_array();
    for (uint32_t at = 0; at < row->depth; at++) {
        struct tally_frame frame = tally_frame(tally, row, at);
        json_array_append_new(frames, json_function(frame.name, frame.place));
    }
    json_object_set_new(object, "stack", frames);
    json_object_set_new(object, "self", document_number(row->self));
    return object;
}

static json_t *json_row(const struct tally *tally, const struct tally_row *row)
{
    if (row->stack)
        return json_stack(tally, row);
    json_t *object = json_function(row->name, row->place);
    json_object_set_new(object, "self", document_number(row->self));
    json_object_set_new(object, "total", document_number(row->total));
    return object;
}

static json_t *json_rows(const struct report *report, const struct tally *tally, const struct tally_row *rows, size_t count)
{
    json_t *array = json_array();
    for (size_t at = 0; at < count && (at < report->top || !report->top); at++)
        json_array_append_new(array, json_row(tally, &rows[at]));
    return array;
}

static json_t *json_section(const struct report *report, const struct section *section)
{
    json_t *object = json_object();
    const struct tally_row *rows;
    json_object_set_new(object, "unit", json_string(kind_unit_name(section->kind)));
    json_object_set_new(object, "total", document_number(tally_sum(section->tally)));
    if (reader_filtered(report->reader))
        json_object_set_new(object, "whole", document_number(section->whole));
    json_object_set_new(object, "by", json_string(tally_by_name(report->by)));
    size_t count = tally_by_self(section->tally, &rows);
    json_object_set_new(object, "by_self", json_rows(report, section->tally, rows, count));
    if (report->by == TALLY_STACK)
        return object; /* a stack calls nothing: what it has is its own */
    count = tally_by_total(section->tally, &rows);
    json_object_set_new(object, "by_total", json_rows(report, section->tally, rows, count));
    return object;
}

static void json_filter(const struct report *report, json_t *document)
{
    static const char *const keys[] = { [FILTER_ONLY] = "only", [FILTER_HIDE] = "hide" };
    for (int what = 0; what < FILTER_KINDS && filter_is_used(report->filter); what++) {
        json_t *patterns = json_array();
        const char *pattern;
        for (size_t at = 0; (pattern = filter_pattern(report->filter, (enum filter_what)what, at)); at++)
            json_array_append_new(patterns, document_text(pattern));
        json_object_set_new(document, keys[what], patterns);
    }
}

static void print_json(const struct report *report)
{
    const struct quality *quality = report->quality;
    json_t *processes = json_array(), *loops = json_array(), *metrics = json_object();
    for (uint32_t at = 0; at < quality->processes_count; at++)
        json_array_append_new(processes, json_process(&quality->processes[at]));
    for (size_t at = 0; at < quality->loops_count; at++)
        json_array_append_new(loops, json_loop(&quality->loops[at]));
    for (size_t at = 0; at < report->sections_count; at++)
        json_object_set_new(metrics, report->sections[at].metric, json_section(report, &report->sections[at]));
    json_t *document = json_pack("{ss si so so so so}", "aprof", APROF_VERSION, "format", 1, "quality", json_quality(report),
                                 "processes", processes, "loops", loops, "metrics", metrics);
    json_filter(report, document);
    if (report->calls) {
        struct blocking_view view = blocking_view(report);
        json_object_set_new(document, "blocking", blocking_json(report->calls, &view));
    }
    document_print(document);
}

/* Metadata holds every setting that the library which wrote it knows. */
static bool is_setting(const struct reader *reader, const char *setting)
{
    for (uint32_t at = 0; at < reader_windows(reader); at++)
        if (json_object_get(json_object_get(reader_window(reader, at)->metadata, "settings"), setting))
            return true;
    return false;
}

static void nameless_explain(const struct report *report)
{
    const char *what = tally_by_name(report->by), *setting = tally_by_setting(report->by);
    if (is_setting(report->reader, setting))
        tool_complain("nothing to report: no stack has a frame [%s NAME]: run the program with %s=1 to have them recorded", what, setting);
    else
        tool_complain("nothing to report: no stack has a frame [%s NAME]: the library that wrote this does not know %s, which has them recorded", what, setting);
}

/* ---- the command ---------------------------------------------------------- */

int report_main(int argc, char **argv)
{
    struct report report = { .top = TOP_DEFAULT, .filter = filter_new() };
    int status = options_parse(&report, argc, argv);
    if (status >= 0) {
        filter_free(report.filter);
        return status;
    }
    if (report.quiet)
        progress_quiet();
    report_read(&report, argc - optind, argv + optind);
    bool is_nameless = report.sections_count && !has_names(&report);
    if (is_nameless)
        sections_drop(&report);
    if (report.as_json)
        print_json(&report);
    else if (reader_windows(report.reader))
        print_text(&report);
    status = reader_failures(report.reader) ? TOOL_UNREADABLE : report.sections_count || has_loops(&report) ? TOOL_FINE : TOOL_NOTHING;
    if (is_nameless)
        nameless_explain(&report);
    else if (status == TOOL_NOTHING && report.blocking && reader_windows(report.reader))
        tool_complain("nothing to report: no stack of wall is an event loop's");
    else if (status == TOOL_NOTHING)
        nothing_explain(report.reader, "report", report.metric, argc - optind, argv + optind);
    report_close(&report);
    return status;
}
