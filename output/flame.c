/* SPDX-License-Identifier: MIT
 *
 * All metrics share one table of frames, so that a name is in the page once.
 */
#include "output/flame.h"

#include <getopt.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "output/filter.h"
#include "output/human.h"
#include "output/kind.h"
#include "output/leftout.h"
#include "output/nothing.h"
#include "output/page.h"
#include "output/progress.h"
#include "output/quality.h"
#include "output/reader.h"
#include "output/tool.h"
#include "output/trie.h"

#define FACT_SIZE 256
#define FACTS_MOST 7

const char flame_help[] =
    "NAME\n"
    "    aprof flame - a flame graph as one HTML file\n"
    "\n"
    "SYNOPSIS\n"
    "    aprof flame [OPTION]... [PATH]...\n"
    "\n"
    "DESCRIPTION\n"
    "    Reads spool directories and single spool files as `aprof report` does (without\n"
    "    PATH: " TOOL_DEFAULT_PATH "), adds them up, and writes a page that any browser shows.\n"
    "    Everything is in the file; it fetches nothing.\n"
    "\n"
    "    A box is a function, its width the time that it has with all that it called,\n"
    "    what it called below it. Sideways the order is that of the names, not of time.\n"
    "    The page has one graph for each metric, zooms, searches, folds the frames of\n"
    "    event loops, and tells times to the microsecond; press ? in it for its keys.\n"
    "\n"
    "OPTIONS\n"
    "    -o, --output FILE    where to (default: standard output, unless that is a\n"
    "                         terminal); a FILE that is there is replaced when the new\n"
    "                         one is whole\n"
    "    -m, --metric METRIC  only cpu, wall, task or any other metric that was recorded\n"
    "    -b, --by WHAT        what a box is: function (default) or line\n"
    FILTER_HELP
    "    -t, --title TEXT     above the graph (default: the program's name)\n"
    "    -q, --quiet          no line on the terminal that says how much was read\n"
    "    -h, --help           this text\n"
    "\n"
    FILTER_HELP_PATTERN
    "\n"
    "EXIT STATUS\n"
    "    0  fine\n"
    "    2  wrong usage\n"
    "    3  nothing to draw (the page says so)\n"
    "    4  some input could not be read (the rest is still shown), the page could not be\n"
    "       written, or this program was built without the page's template\n"
    "\n"
    "EXAMPLES\n"
    "    aprof flame -o flame.html\n"
    "    aprof flame --metric wall -o wall.html /var/spool/aprof\n";

struct flame {
    const char *output, *metric, *title; /* NULL: stdout, all, to be found */
    bool by_line;
    struct filter *filter;
    struct reader *reader;
    struct frames *frames;
    struct page_metric *metrics;
    uint64_t sum, whole; /* of the first metric: after and before --only */
    size_t metrics_count, metrics_room;
    char facts[FACTS_MOST][FACT_SIZE];
    size_t facts_count;
};

/* ---- options -------------------------------------------------------------- */

static bool by_parse(struct flame *flame, const char *text)
{
    flame->by_line = !strcmp(text, "line");
    bool good = flame->by_line || !strcmp(text, "function");
    if (!good)
        tool_complain("--by: \"%s\" is not one of function, line", text);
    return good;
}

/* Returns an exit status, or -1 to go on. */
static int options_parse(struct flame *flame, int argc, char **argv)
{
    static const struct option options[] = {
        { "output", required_argument, NULL, 'o' }, { "metric", required_argument, NULL, 'm' },
        { "by", required_argument, NULL, 'b' },     { "title", required_argument, NULL, 't' },
        { "quiet", no_argument, NULL, 'q' },
        { "help", no_argument, NULL, 'h' },         FILTER_OPTIONS,
        { 0 },
    };
    opterr = 0;
    for (int option; (option = getopt_long(argc, argv, ":o:m:b:t:qh", options, NULL)) != -1;) {
        switch (option) {
        case 'o': flame->output = optarg; break;
        case 'm': flame->metric = strcmp(optarg, "all") ? optarg : NULL; break;
        case 't': flame->title = optarg; break;
        case 'q': progress_quiet(); break;
        case 'h': fputs(flame_help, stdout); return TOOL_FINE;
        case FILTER_OPTION + FILTER_ONLY:
        case FILTER_OPTION + FILTER_HIDE:
            if (!filter_option(flame->filter, option, optarg))
                return TOOL_USAGE;
            break;
        case 'b':
            if (!by_parse(flame, optarg))
                return TOOL_USAGE;
            break;
        default: return tool_option_wrong("flame", option, argv);
        }
    }
    if (flame->output || !isatty(STDOUT_FILENO))
        return -1;
    tool_complain("a page is not for a terminal: -o FILE, or standard output into a file");
    return TOOL_USAGE;
}

/* ---- reading -------------------------------------------------------------- */

static int line_add(void *trie, const struct reader_line *line)
{
    trie_add(trie, TRIE_NEW, line->stack, line->length, line->count);
    return 0;
}

static void metric_read(struct flame *flame, const char *metric)
{
    struct trie *trie = trie_new(flame->frames);
    reader_each(flame->reader, metric, line_add, trie);
    uint64_t whole = filter_take_whole(flame->filter);
    if (!trie_sum(trie, TRIE_NEW)) {
        trie_free(trie);
        return;
    }
    size_t at = flame->metrics_count++;
    if (!at) {
        flame->sum = trie_sum(trie, TRIE_NEW);
        flame->whole = whole;
    }
    flame->metrics = tool_grow(flame->metrics, at, &flame->metrics_room, sizeof *flame->metrics);
    flame->metrics[at] = (struct page_metric){ metric, kind_of(metric), trie };
}

static bool is_wanted(const struct flame *flame, const char *metric)
{
    return !flame->metric || !strcmp(flame->metric, metric);
}

static void flame_read(struct flame *flame, int count, char **paths)
{
    flame->reader = reader_new();
    reader_filter(flame->reader, flame->filter);
    flame->frames = frames_new(flame->by_line);
    for (int at = 0; at < count; at++)
        reader_add(flame->reader, paths[at]);
    if (!count)
        reader_add(flame->reader, TOOL_DEFAULT_PATH);
    reader_open(flame->reader);
    const char *metric;
    for (uint32_t at = 0; (metric = reader_metric(flame->reader, at)); at++)
        if (is_wanted(flame, metric))
            progress_expect(reader_bytes(flame->reader, metric));
    for (uint32_t at = 0; (metric = reader_metric(flame->reader, at)); at++)
        if (is_wanted(flame, metric))
            metric_read(flame, metric);
    progress_end();
}

static void flame_close(struct flame *flame)
{
    for (size_t at = 0; at < flame->metrics_count; at++)
        trie_free((struct trie *)flame->metrics[at].trie);
    free(flame->metrics);
    frames_free(flame->frames);
    reader_free(flame->reader);
    filter_free(flame->filter);
}

/* ---- what stands above the graph ------------------------------------------ */

static void fact_add(struct flame *flame, const char *format, ...) __attribute__((format(printf, 2, 3)));
static void fact_add(struct flame *flame, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(flame->facts[flame->facts_count++], FACT_SIZE, format, arguments);
    va_end(arguments);
}

static void filter_facts(struct flame *flame)
{
    char patterns[FACT_SIZE / 2], share[HUMAN_SIZE];
    if (*filter_describe(flame->filter, FILTER_ONLY, patterns, sizeof patterns) && flame->metrics_count)
        fact_add(flame, "only stacks with %s, %s of all %s", patterns, human_share(share, (double)flame->sum, (double)flame->whole), flame->metrics[0].name);
    if (*filter_describe(flame->filter, FILTER_HIDE, patterns, sizeof patterns))
        fact_add(flame, "without %s", patterns);
}

static void facts_make(struct flame *flame, const struct quality *quality)
{
    char time[HUMAN_SIZE], moment[HUMAN_SIZE], share[HUMAN_SIZE];
    fact_add(flame, "%" PRIu32 " process%s", quality->processes_count, quality->processes_count == 1 ? "" : "es");
    if (quality->covered_us)
        fact_add(flame, "%s from %s", human_time(time, quality->covered_us), human_moment(moment, quality->start_us));
    if (quality->asked_most > 0)
        fact_add(flame, "%.4g/s asked, %.4g/s got", quality->asked_most, quality->got);
    if (quality->ticks_due)
        fact_add(flame, "%s of ticks lost", human_share(share, (double)quality->lost, (double)quality->ticks_due));
    filter_facts(flame);
    if (quality->process_cpu_us)
        fact_add(flame, "profiling took %.3g%% of the CPU time", quality_own_cost(quality));
}

/* ---- the command ---------------------------------------------------------- */

static bool flame_write(struct flame *flame)
{
    struct quality *quality = quality_new(flame->reader);
    const char *facts[FACTS_MOST], *program = quality_program(quality);
    facts_make(flame, quality);
    for (size_t at = 0; at < flame->facts_count; at++)
        facts[at] = flame->facts[at];
    struct page page = {
        .title = flame->title ? flame->title : program ? program : "aprof",
        .facts = facts,
        .facts_count = flame->facts_count,
        .nothing = flame->metrics_count ? NULL : "Nothing was recorded here.",
        .frames = flame->frames,
        .metrics = flame->metrics,
        .metrics_count = flame->metrics_count,
    };
    bool good = page_write_file(flame->output, &page);
    quality_free(quality);
    return good;
}

int flame_main(int argc, char **argv)
{
    struct flame flame = { .filter = filter_new() };
    int status = options_parse(&flame, argc, argv);
    if (status < 0 && !page_possible())
        status = TOOL_UNREADABLE;
    if (status >= 0) {
        filter_free(flame.filter);
        return status;
    }
    flame_read(&flame, argc - optind, argv + optind);
    leftout_complain(flame.reader, "");
    status = reader_failures(flame.reader) ? TOOL_UNREADABLE : flame.metrics_count ? TOOL_FINE : TOOL_NOTHING;
    if (status == TOOL_NOTHING)
        nothing_explain(flame.reader, "draw", flame.metric, argc - optind, argv + optind);
    /* What could not be read at all does not take the place of what was there. */
    bool is_shown = flame.metrics_count || status == TOOL_NOTHING;
    if (is_shown && !flame_write(&flame))
        status = TOOL_UNREADABLE;
    flame_close(&flame);
    return status;
}
