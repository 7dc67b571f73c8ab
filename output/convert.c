/* SPDX-License-Identifier: MIT
 *
 * A format is a row of a table.
 */
#include "output/convert.h"

#include <getopt.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "output/conversion.h"
#include "output/destination.h"
#include "output/filter.h"
#include "output/leftout.h"
#include "output/nothing.h"
#include "output/progress.h"
#include "output/tool.h"

const char convert_help[] =
    "NAME\n"
    "    aprof convert - a profile in the file format of another program\n"
    "\n"
    "SYNOPSIS\n"
    "    aprof convert -f FORMAT [OPTION]... [PATH]...\n"
    "\n"
    "DESCRIPTION\n"
    "    Reads spool directories and single spool files as `aprof report` does (without\n"
    "    PATH: " TOOL_DEFAULT_PATH "), adds equal stacks up, and writes\n"
    "\n"
    "    pprof       for `go tool pprof`, pprof and what reads its files: profile.proto,\n"
    "                gzip'd. A sample type a metric (cpu and wall in microseconds);\n"
    "                labels host, pid, program, and those that root frames are\n"
    "                ([thread NAME], [route=/x])\n"
    "    speedscope  for speedscope: its JSON, a profile a metric. Its view \"time order\"\n"
    "                shows the order of names\n"
    "    firefox     for the Firefox Profiler: its processed profile format, version 70.\n"
    "                A track a process and metric; samples have the time of their window,\n"
    "                and within it the order of names, each as wide as its share\n"
    "    collapsed   for flamegraph.pl and what reads its input: one line a stack, of one\n"
    "                metric. The spool's own files are of this format too\n"
    "\n"
    "    Sums are the spool's, to the microsecond. A metric that is a level (heap) is\n"
    "    that of each process's last window.\n"
    "\n"
    "OPTIONS\n"
    "    -f, --format FORMAT  one of these\n"
    "    -o, --output FILE    where to (default, and -: standard output; pprof's is not\n"
    "                         written to a terminal unasked); a FILE that is there is\n"
    "                         replaced when the new one is whole\n"
    "    -m, --metric METRIC  only cpu, wall, task or any other metric that was recorded\n"
    "                         (default: all; collapsed: the first that has any, cpu\n"
    "                         before wall)\n"
    "    -b, --by WHAT        what a frame is: line (default), or function, whatever its\n"
    "                         line\n"
    FILTER_HELP
    "    -q, --quiet          no line on the terminal that says how much was read\n"
    "    -h, --help           this text\n"
    "\n"
    FILTER_HELP_PATTERN
    "\n"
    "EXIT STATUS\n"
    "    0  fine\n"
    "    2  wrong usage\n"
    "    3  nothing to convert (what is written is valid, and empty; nothing is written\n"
    "       when there is no such METRIC)\n"
    "    4  some input could not be read (the rest is converted), the output could not be\n"
    "       written, or this program was built without protobuf-c, which pprof takes\n"
    "\n"
    "EXAMPLES\n"
    "    aprof convert -f pprof -o app.pb.gz && go tool pprof -http : app.pb.gz\n"
    "    aprof convert -f speedscope -o app.speedscope.json /var/spool/aprof\n"
    "    aprof convert -f collapsed -m wall | flamegraph.pl > wall.svg\n"
    "    aprof convert -f collapsed --only 'orders.*' --hide '[ready]' > orders.collapsed\n";

struct format {
    const char *name;
    void (*write)(FILE *stream, struct conversion *conversion);
    bool is_binary;
    bool is_text_of_browsers; /* one JSON text, which they hold whole */
};

static const struct format formats[] = {
    { "pprof", pprof_write, true, false },
    { "speedscope", speedscope_write, false, true },
    { "firefox", firefox_write, false, true },
    { "collapsed", collapsed_write, false, false },
};
#define FORMATS (sizeof formats / sizeof *formats)

struct convert {
    const struct format *format;
    const char *output, *metric; /* NULL: stdout, all */
    struct filter *filter;
    struct conversion conversion;
};

/* ---- options -------------------------------------------------------------- */

static bool format_parse(struct convert *convert, const char *text)
{
    for (size_t at = 0; at < FORMATS; at++)
        if (!strcmp(formats[at].name, text))
            convert->format = &formats[at];
    bool good = convert->format && !strcmp(convert->format->name, text);
    if (!good)
        tool_complain("--format: \"%s\" is not one of pprof, speedscope, firefox, collapsed", text);
    return good;
}

static bool by_parse(struct convert *convert, const char *text)
{
    convert->conversion.by_line = !strcmp(text, "line");
    bool good = convert->conversion.by_line || !strcmp(text, "function");
    if (!good)
        tool_complain("--by: \"%s\" is not one of line, function", text);
    return good;
}

static bool metric_parse(struct convert *convert, const char *text)
{
    convert->metric = strcmp(text, "all") ? text : NULL;
    if (!*text)
        tool_complain("--metric: \"\" is not the name of a metric (cpu, wall, task, ..., or all)");
    return *text;
}

/* Returns an exit status, or -1 to go on. */
static int options_check(const struct convert *convert)
{
    if (!convert->format) {
        tool_complain("convert: --format is missing: one of pprof, speedscope, firefox, collapsed");
        return TOOL_USAGE;
    }
    if (!convert->format->write) {
        tool_complain("built without protobuf-c, which %s takes: run `make` again where protoc-c and the headers of protobuf-c and zlib are (make setup)",
                      convert->format->name);
        return TOOL_UNREADABLE;
    }
    if (convert->format->is_binary && !convert->output && isatty(STDOUT_FILENO)) {
        tool_complain("%s is not for a terminal: -o FILE, or standard output into a file", convert->format->name);
        return TOOL_USAGE;
    }
    return -1;
}

static int options_parse(struct convert *convert, int argc, char **argv)
{
    static const struct option options[] = {
        { "format", required_argument, NULL, 'f' }, { "output", required_argument, NULL, 'o' },
        { "metric", required_argument, NULL, 'm' }, { "by", required_argument, NULL, 'b' },
        { "quiet", no_argument, NULL, 'q' },        { "help", no_argument, NULL, 'h' },
        FILTER_OPTIONS,                             { 0 },
    };
    opterr = 0;
    for (int option; (option = getopt_long(argc, argv, ":f:o:m:b:qh", options, NULL)) != -1;) {
        bool good = true;
        switch (option) {
        case 'f': good = format_parse(convert, optarg); break;
        case 'm': good = metric_parse(convert, optarg); break;
        case 'b': good = by_parse(convert, optarg); break;
        case 'o': convert->output = optarg; break;
        case 'q': progress_quiet(); break;
        case FILTER_OPTION + FILTER_ONLY:
        case FILTER_OPTION + FILTER_HIDE: good = filter_option(convert->filter, option, optarg); break;
        case 'h': fputs(convert_help, stdout); return TOOL_FINE;
        default: return tool_option_wrong("convert", option, argv);
        }
        if (!good)
            return TOOL_USAGE;
    }
    return options_check(convert);
}

/* ---- what is converted ---------------------------------------------------- */

static void convert_open(struct convert *convert, int count, char **paths)
{
    struct reader *reader = reader_new();
    reader_filter(reader, convert->filter);
    for (int at = 0; at < count; at++)
        reader_add(reader, paths[at]);
    if (!count)
        reader_add(reader, TOOL_DEFAULT_PATH);
    reader_open(reader);
    convert->conversion.reader = reader;
    convert->conversion.quality = quality_new(reader);
    convert->conversion.frames = frames_new(convert->conversion.by_line);
}

static void convert_close(struct convert *convert)
{
    frames_free(convert->conversion.frames);
    quality_free((struct quality *)convert->conversion.quality);
    reader_free(convert->conversion.reader);
    filter_free(convert->filter);
}

/* Those asked for that are there; one name that stands for them when no file is. The
 * caller frees it. */
static const char **metrics_of(const struct convert *convert, size_t *count)
{
    const char **metrics = NULL, *metric;
    size_t room = 0;
    *count = 0;
    for (uint32_t at = 0; (metric = reader_metric(convert->conversion.reader, at)); at++)
        if (!convert->metric || !strcmp(convert->metric, metric)) {
            metrics = tool_grow(metrics, *count, &room, sizeof *metrics);
            metrics[(*count)++] = metric;
        }
    if (!*count && !reader_metric(convert->conversion.reader, 0)) {
        metrics = tool_grow(metrics, 0, &room, sizeof *metrics);
        metrics[(*count)++] = convert->metric ? convert->metric : "cpu";
    }
    return metrics;
}

/* ---- the command ---------------------------------------------------------- */

#define BROWSER_MOST (512L << 20) /* Chromium's longest string; larger ones fail without a word */

/* A pipe does not say how much went through it. */
static void size_check(const struct convert *convert, FILE *stream)
{
    long size = convert->format->is_text_of_browsers ? ftell(stream) : 0;
    if (size > BROWSER_MOST)
        tool_complain("%ld MiB of JSON are more than browsers hold in one text: convert fewer windows, one metric, or --by function",
                      size >> 20);
}

static void write_to(FILE *stream, void *context)
{
    struct convert *convert = context;
    convert->format->write(stream, &convert->conversion);
    size_check(convert, stream);
}

/* Not while the output itself goes to the terminal. */
static void reading_expect(const struct convert *convert)
{
    bool is_on_terminal = (!convert->output || !strcmp(convert->output, "-")) && isatty(STDOUT_FILENO);
    for (size_t at = 0; at < convert->conversion.metrics_count && !is_on_terminal; at++)
        progress_expect(reader_bytes(convert->conversion.reader, convert->conversion.metrics[at]));
}

static int convert_write(struct convert *convert)
{
    reading_expect(convert);
    bool good = destination_write(convert->output, write_to, convert);
    progress_end();
    if (!good || reader_failures(convert->conversion.reader))
        return TOOL_UNREADABLE;
    return convert->conversion.sum ? TOOL_FINE : TOOL_NOTHING;
}

int convert_main(int argc, char **argv)
{
    struct convert convert = { .conversion.by_line = true, .filter = filter_new() };
    int status = options_parse(&convert, argc, argv);
    if (status >= 0) {
        filter_free(convert.filter);
        return status;
    }
    convert_open(&convert, argc - optind, argv + optind);
    const char **metrics = metrics_of(&convert, &convert.conversion.metrics_count);
    convert.conversion.metrics = metrics;
    /* What could not be read at all does not take the place of what was there. */
    if (!convert.conversion.metrics_count || (reader_failures(convert.conversion.reader) && !reader_windows(convert.conversion.reader)))
        status = reader_failures(convert.conversion.reader) ? TOOL_UNREADABLE : TOOL_NOTHING;
    else
        status = convert_write(&convert);
    leftout_complain(convert.conversion.reader, "");
    if (status == TOOL_NOTHING)
        nothing_explain(convert.conversion.reader, "convert", convert.metric, argc - optind, argv + optind);
    free(metrics);
    convert_close(&convert);
    return status;
}
