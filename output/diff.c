/* SPDX-License-Identifier: MIT
 *
 * Both sides are read whole, metric by metric, before anything is printed: how
 * many shares are looked at decides how wide each bound is.
 */
#include "output/diff.h"

#include <errno.h>
#include <getopt.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "output/blocks.h"
#include "output/diff_flame.h"
#include "output/diff_show.h"
#include "output/human.h"
#include "output/leftout.h"
#include "output/names.h"
#include "output/nothing.h"
#include "output/page.h"
#include "output/progress.h"
#include "output/tool.h"

#define TOP_DEFAULT 10
#define TOP_MOST 1000000
#define WIDTH_MOST 10000
#define SAMPLES_MOST 1000000000000ul
#define FAILURES_SAID 5 /* lines on stderr */
#define POINTS 100      /* in a share of 1 */

const char diff_help[] =
    "NAME\n"
    "    aprof diff - which functions' shares have changed, and whether that is noise\n"
    "\n"
    "SYNOPSIS\n"
    "    aprof diff [OPTION]... BASE NEW\n"
    "    aprof diff [OPTION]... BASE... --to NEW...\n"
    "\n"
    "DESCRIPTION\n"
    "    Reads two profiles, each a spool directory or a spool file or, with --to\n"
    "    between the two, several of either, and compares the share that each function\n"
    "    has of all: by self time (the function was running or waiting itself) and by\n"
    "    total time (it or something it called). \"+4.1 points, 12.0% -> 16.1%\" says\n"
    "    that NEW spends 16.1% there where BASE spends 12.0%. Shares do not say which\n"
    "    of the two is faster: what others need less of, one has a larger share of.\n"
    "\n"
    "    Beside each change stands the noise: what the two may differ by for no reason.\n"
    "    A change beyond it is real with 95% confidence, and that holds for all shares\n"
    "    of all metrics shown at once. Noise is measured from run to run where a side\n"
    "    has several runs (give 5 or more of each: run the command so often with the\n"
    "    same --output), else from window to window (8 or more), else among processes\n"
    "    (4 or more). Where there is but one of everything, looks of the sampler are\n"
    "    counted, and how much runs differ is assumed from measurements: bounds are\n"
    "    wider then. Shares below 0.5% on average are not looked at.\n"
    "\n"
    "    Functions are the same when name and file are, wherever in it they stand.\n"
    "    Those that only one side has are listed at the end. Profiles without a metric\n"
    "    in common are refused; other rates, Pythons and tags are pointed out.\n"
    "\n"
    "OPTIONS\n"
    "    -f, --fail-over P    exit status 1, and a line on stderr, if a function's share\n"
    "                         has grown by more than P points beyond noise; 0: by\n"
    "                         anything beyond noise\n"
    "    -r, --require-samples N\n"
    "                         exit status 5 if either side has fewer samples\n"
    "    -m, --metric METRIC  cpu (default, where both have it), wall, task or any other\n"
    "                         metric that was recorded; all: every one\n"
    "    -n, --top N          rows of each table (default 10); 0: all\n"
    "    -b, --by WHAT        what a row is: function (default), line, file\n"
    "    -w, --width COLUMNS  keeps names so short (default: as the terminal); 0: no\n"
    "                         limit\n"
    FILTER_HELP
    "    -j, --json           the same as one JSON object\n"
    "    -M, --markdown       the same for a comment in a code review\n"
    "    -F, --flame FILE     writes a flame graph besides: widths are NEW's or BASE's,\n"
    "                         colours what has changed\n"
    "    -t, --to             what follows is NEW\n"
    "    -q, --quiet          no line on the terminal that says how much was read\n"
    "    -h, --help           this text\n"
    "\n"
    FILTER_HELP_PATTERN
    "\n"
    "EXIT STATUS\n"
    "    0  fine\n"
    "    1  a function has grown (--fail-over)\n"
    "    2  wrong usage, or no metric in common\n"
    "    3  nothing to compare\n"
    "    4  some input could not be read (the rest is still compared), or the flame\n"
    "       graph not be written\n"
    "    5  too few samples to decide (--require-samples, --fail-over)\n"
    "\n"
    "EXAMPLES\n"
    "    aprof diff yesterday today\n"
    "    aprof diff --fail-over 1 --require-samples 2000 base new\n"
    "    aprof diff --metric wall --by line base/* --to new/*\n"
    "    aprof diff --markdown base new > comment.md\n";

struct options {
    const char *metric; /* NULL: the default */
    bool has_every_metric;
    unsigned long require_samples;
    const char *flame; /* a file; NULL: none */
    enum { AS_TEXT, AS_JSON, AS_MARKDOWN } as;
    char **words; /* paths of both sides */
    int count, to; /* to: where NEW begins; -1: not said */
};

/* ---- options -------------------------------------------------------------- */

static bool points_parse(struct diff *diff, const char *text)
{
    char *end;
    errno = 0;
    diff->fail_over = strtod(text, &end);
    diff->gates = !errno && !*end && text[0] >= '0' && text[0] <= '9' && diff->fail_over >= 0 && diff->fail_over <= POINTS;
    if (!diff->gates)
        tool_complain("--fail-over: \"%s\" is not a number of points from 0 to 100", text);
    return diff->gates;
}

static bool by_parse(struct diff *diff, const char *text)
{
    int by = tally_by_of(text);
    bool good = by == TALLY_FUNCTION || by == TALLY_LINE || by == TALLY_FILE;
    if (good)
        diff->by = (enum tally_by)by;
    else
        tool_complain("--by: \"%s\" is not one of function, line, file", text);
    return good;
}

static bool metric_parse(struct options *options, const char *text)
{
    options->metric = text;
    options->has_every_metric = !strcmp(text, "all");
    if (!*text)
        tool_complain("--metric: \"\" is not the name of a metric (cpu, wall, task, ..., or all)");
    return *text;
}

static bool to_parse(struct options *options)
{
    bool good = options->to < 0 && options->count;
    options->to = options->count;
    if (!good)
        tool_complain("--to: stands once, between the paths of BASE and those of NEW");
    return good;
}


static bool option_take(struct diff *diff, struct options *options, int option, char *value)
{
    unsigned long number = 0;
    bool good = true;
    switch (option) {
    case 1: options->words[options->count++] = value; break;
    case 'f': good = points_parse(diff, value); break;
    case 'r': good = tool_number("--require-samples", value, 0, SAMPLES_MOST, &options->require_samples); break;
    case 'm': good = metric_parse(options, value); break;
    case 'b': good = by_parse(diff, value); break;
    case 't': good = to_parse(options); break;
    case FILTER_OPTION + FILTER_ONLY:
    case FILTER_OPTION + FILTER_HIDE: good = filter_option(diff->filter, option, value); break;
    case 'F': options->flame = value; break;
    case 'q': progress_quiet(); break;
    case 'j': options->as = AS_JSON; break;
    case 'M': options->as = AS_MARKDOWN; break;
    case 'n':
        good = tool_number("--top", value, 0, TOP_MOST, &number);
        diff->top = number;
        break;
    case 'w':
        if ((good = tool_number("--width", value, 0, WIDTH_MOST, &number)))
            human_columns_ask((int)number);
        break;
    }
    return good;
}

static bool sides_parse(struct diff *diff, struct options *options)
{
    if (options->to < 0 && options->count == 2)
        options->to = 1;
    if (options->to < 0 || options->to == options->count) {
        tool_complain("diff: needs BASE and NEW; several paths of a side with --to between: BASE... --to NEW... (see `aprof diff --help`)");
        return false;
    }
    diff->sides[COMPARE_BASE] = (struct diff_side){ .title = "BASE", .paths = options->words, .paths_count = options->to };
    diff->sides[COMPARE_NEW] = (struct diff_side){
        .title = "NEW", .paths = options->words + options->to, .paths_count = options->count - options->to };
    return true;
}

/* Returns an exit status, or -1 to go on. */
static int options_parse(struct diff *diff, struct options *options, int argc, char **argv)
{
    static const struct option long_options[] = {
        { "fail-over", required_argument, NULL, 'f' }, { "require-samples", required_argument, NULL, 'r' },
        { "metric", required_argument, NULL, 'm' },    { "top", required_argument, NULL, 'n' },
        { "by", required_argument, NULL, 'b' },        { "width", required_argument, NULL, 'w' },
        { "json", no_argument, NULL, 'j' },            { "markdown", no_argument, NULL, 'M' },
        { "flame", required_argument, NULL, 'F' },     { "to", no_argument, NULL, 't' },
        { "quiet", no_argument, NULL, 'q' },
        { "help", no_argument, NULL, 'h' },            FILTER_OPTIONS,
        { 0 },
    };
    opterr = 0;
    /* '-': paths come in their order among the options, for --to */
    for (int option; (option = getopt_long(argc, argv, "-:f:r:m:n:b:w:F:jMtqh", long_options, NULL)) != -1;) {
        if (option == 'h') {
            fputs(diff_help, stdout);
            return TOOL_FINE;
        }
        if (option == ':' || option == '?')
            return tool_option_wrong("diff", option, argv);
        if (!option_take(diff, options, option, optarg))
            return TOOL_USAGE;
    }
    while (optind < argc)
        options->words[options->count++] = argv[optind++];
    return sides_parse(diff, options) ? -1 : TOOL_USAGE;
}

/* ---- what the sides have in common ---------------------------------------- */

static int text_compare(const void *left, const void *right)
{
    return strcmp(*(const char *const *)left, *(const char *const *)right);
}

/* Different values of all windows, in order, joined; NULL where there is none. of
 * writes a window's value; an empty one is none. */
static char *values_of(const struct reader *reader, void (*of)(const json_t *metadata, char *value, size_t size))
{
    struct names *names = names_new();
    char value[1024];
    for (uint32_t at = 0; at < reader_windows(reader); at++) {
        *value = '\0';
        of(reader_window(reader, at)->metadata, value, sizeof value);
        if (*value)
            names_add(names, value, strlen(value));
    }
    uint32_t count = names_count(names);
    const char **texts = tool_alloc(count, sizeof *texts);
    size_t length = 1;
    for (uint32_t at = 0; at < count; at++)
        length += strlen(texts[at] = names_text(names, at, NULL)) + 2;
    if (count)
        qsort(texts, count, sizeof *texts, text_compare);
    char *joined = count ? tool_alloc(length, 1) : NULL;
    for (uint32_t at = 0; at < count; at++)
        strcat(strcat(joined, at ? ", " : ""), texts[at]);
    free(texts);
    names_free(names);
    return joined;
}

static void rate_write(const json_t *metadata, char *value, size_t size)
{
    double rate = json_number_value(json_object_get(json_object_get(metadata, "rate"), "asked"));
    if (rate > 0)
        snprintf(value, size, "%.4g", rate);
}

static void text_write(const json_t *text, char *value, size_t size)
{
    snprintf(value, size, "%s", json_is_string(text) ? json_string_value(text) : "");
}

static void python_write(const json_t *metadata, char *value, size_t size)
{
    text_write(json_object_get(metadata, "python"), value, size);
}

static void paths_write(const json_t *metadata, char *value, size_t size)
{
    text_write(json_object_get(json_object_get(metadata, "settings"), "APROF_PATHS"), value, size);
}

static void clock_write(const json_t *metadata, char *value, size_t size)
{
    text_write(json_object_get(json_object_get(metadata, "settings"), "APROF_CLOCK"), value, size);
}

static void tags_write(const json_t *metadata, char *value, size_t size)
{
    const char *name;
    json_t *text;
    size_t length = 0;
    json_object_foreach(json_object_get(metadata, "tags"), name, text)
        if (json_is_string(text) && length < size)
            length += (size_t)snprintf(value + length, size - length, "%s%s=%s", length ? " " : "", name, json_string_value(text));
}

static void schema_write(const json_t *metadata, char *value, size_t size)
{
    json_int_t schema = json_integer_value(json_object_get(metadata, "schema"));
    if (schema > 0)
        snprintf(value, size, "%lld", (long long)schema);
}

/* What must not, or should not, differ. */
static const struct {
    const char *what;
    void (*write)(const json_t *metadata, char *value, size_t size);
    bool empty_counts; /* having none differs from having one */
} common[] = {
    { "rates", rate_write, false },
    { "clocks", clock_write, false },
    { "Pythons", python_write, false },
    { "kinds of paths", paths_write, false },
    { "tags", tags_write, true },
};

static void note_text(struct diff *diff, const char *text)
{
    diff->notes = tool_grow(diff->notes, diff->notes_count, &diff->notes_room, sizeof *diff->notes);
    diff->notes[diff->notes_count++] = human_text(text, strlen(text), 0, false);
}

static void note(struct diff *diff, const char *what, const char *base, const char *new_value)
{
    char text[2304];
    snprintf(text, sizeof text, "%s differ: %s -> %s", what, base ? base : "none", new_value ? new_value : "none");
    note_text(diff, text);
}

static void notes_find(struct diff *diff)
{
    for (size_t at = 0; at < sizeof common / sizeof *common; at++) {
        char *base = values_of(diff->sides[COMPARE_BASE].reader, common[at].write);
        char *new_value = values_of(diff->sides[COMPARE_NEW].reader, common[at].write);
        bool differ = base && new_value ? strcmp(base, new_value) : common[at].empty_counts && (base || new_value);
        if (differ)
            note(diff, common[at].what, base, new_value);
        free(base);
        free(new_value);
    }
}

/* Of what the shares are. */
static void notes_filter(struct diff *diff)
{
    char patterns[256], text[1024], base[HUMAN_SIZE], new_share[HUMAN_SIZE];
    filter_describe(diff->filter, FILTER_ONLY, patterns, sizeof patterns);
    for (size_t at = 0; at < diff->sections_count && *patterns; at++) {
        const struct diff_section *section = &diff->sections[at];
        snprintf(text, sizeof text, "only stacks with %s: %s of BASE's %s, %s of NEW's", patterns,
                 human_share(base, (double)tally_sum(section->tallies[COMPARE_BASE]), (double)section->whole[COMPARE_BASE]), section->metric,
                 human_share(new_share, (double)tally_sum(section->tallies[COMPARE_NEW]), (double)section->whole[COMPARE_NEW]));
        note_text(diff, text);
    }
    if (*filter_describe(diff->filter, FILTER_HIDE, patterns, sizeof patterns)) {
        snprintf(text, sizeof text, "without %s", patterns);
        note_text(diff, text);
    }
}

static bool schemas_agree(const struct diff *diff)
{
    char *base = values_of(diff->sides[COMPARE_BASE].reader, schema_write);
    char *new_value = values_of(diff->sides[COMPARE_NEW].reader, schema_write);
    bool agree = !base || !new_value || !strcmp(base, new_value);
    if (!agree)
        tool_complain("diff: BASE has schema %s and NEW schema %s, which cannot be compared", base, new_value);
    free(base);
    free(new_value);
    return agree;
}

/* ---- reading -------------------------------------------------------------- */

static void side_open(struct diff_side *side, struct filter *filter)
{
    side->reader = reader_new();
    reader_filter(side->reader, filter);
    for (int at = 0; at < side->paths_count; at++)
        reader_add(side->reader, side->paths[at]);
    reader_open(side->reader);
    side->quality = quality_new(side->reader);
}

static bool side_has(const struct diff_side *side, const char *metric)
{
    const char *name;
    for (uint32_t at = 0; (name = reader_metric(side->reader, at)); at++)
        if (!strcmp(name, metric))
            return true;
    return false;
}

static void section_read(struct diff *diff, const char *metric)
{
    struct diff_section section = { .metric = metric, .kind = kind_of(metric) };
    struct noise_side sides[COMPARE_SIDES];
    bool is_empty = false;
    for (int side = 0; side < COMPARE_SIDES; side++) {
        section.tallies[side] = tally_new(diff->by);
        sides[side] = blocks_read(diff->sides[side].reader, diff->sides[side].quality, metric, section.tallies[side]);
        section.whole[side] = filter_take_whole(diff->filter);
        is_empty = is_empty || !tally_sum(section.tallies[side]);
    }
    if (is_empty) {
        tally_free(section.tallies[COMPARE_BASE]);
        tally_free(section.tallies[COMPARE_NEW]);
        return;
    }
    section.compare = compare_new(section.tallies, sides);
    diff->tests += section.compare->tests;
    diff->sections = tool_grow(diff->sections, diff->sections_count, &diff->sections_room, sizeof *diff->sections);
    diff->sections[diff->sections_count++] = section;
}

static bool is_wanted(const struct diff *diff, const struct options *options, const char *metric)
{
    bool wanted = !options->metric || options->has_every_metric || !strcmp(options->metric, metric);
    return wanted && side_has(&diff->sides[COMPARE_NEW], metric);
}

/* The flame graph reads everything again. */
static void sections_expect(const struct diff *diff, const struct options *options)
{
    const char *metric;
    bool is_enough = false;
    for (uint32_t at = 0; !is_enough && (metric = reader_metric(diff->sides[COMPARE_BASE].reader, at)); at++) {
        if (!is_wanted(diff, options, metric))
            continue;
        uint64_t bytes = reader_bytes(diff->sides[COMPARE_BASE].reader, metric) + reader_bytes(diff->sides[COMPARE_NEW].reader, metric);
        progress_expect(options->flame ? 2 * bytes : bytes);
        is_enough = !options->metric;
    }
}

/* All that were asked for; of none in particular the first that both have, which is cpu as a rule. */
static void sections_read(struct diff *diff, const struct options *options)
{
    const char *metric;
    sections_expect(diff, options);
    for (uint32_t at = 0; (metric = reader_metric(diff->sides[COMPARE_BASE].reader, at)); at++) {
        if (is_wanted(diff, options, metric))
            section_read(diff, metric);
        if (!options->metric && diff->sections_count)
            break;
    }
    progress_hide();
    for (size_t at = 0; at < diff->sections_count; at++)
        compare_bound(diff->sections[at].compare, diff->tests);
}

static void diff_close(struct diff *diff)
{
    for (size_t at = 0; at < diff->sections_count; at++) {
        compare_free(diff->sections[at].compare);
        tally_free(diff->sections[at].tallies[COMPARE_BASE]);
        tally_free(diff->sections[at].tallies[COMPARE_NEW]);
    }
    for (size_t at = 0; at < diff->notes_count; at++)
        free(diff->notes[at]);
    for (int side = 0; side < COMPARE_SIDES; side++) {
        quality_free(diff->sides[side].quality);
        reader_free(diff->sides[side].reader);
    }
    free(diff->sections);
    free(diff->notes);
    free(diff->failures);
}

/* ---- the gate ------------------------------------------------------------- */

/* By which a share is above what is allowed; negative: it is not. */
static double excess(const struct diff_failure *failure)
{
    const struct compare_share *share = &failure->row->amounts[failure->amount];
    return share->change - share->bound;
}

static int failure_compare(const void *left, const void *right)
{
    const struct diff_failure *one = left, *other = right;
    if (one->amount != other->amount)
        return one->amount - other->amount; /* self first: where it is, before all who call that */
    double mine = excess(one), its = excess(other);
    if (mine < its || mine > its)
        return mine < its ? 1 : -1;
    return strcmp(one->row->name, other->row->name);
}

static void share_judge(struct diff *diff, const struct diff_section *section, const struct compare_row *row, int amount)
{
    struct diff_failure failure = { section, row, amount };
    const struct compare_share *share = &row->amounts[amount], *self = &row->amounts[COMPARE_SELF];
    bool is_self = amount == COMPARE_TOTAL && !memcmp(share->parts, self->parts, sizeof self->parts);
    if (!share->is_tested || is_self) /* what calls nothing is said once */
        return;
    if (isinf(share->bound)) {
        diff->is_undecided = true;
    } else if (excess(&failure) * POINTS > diff->fail_over) {
        diff->failures = tool_grow(diff->failures, diff->failures_count, &diff->failures_room, sizeof *diff->failures);
        diff->failures[diff->failures_count++] = failure;
    }
}

static void judge(struct diff *diff)
{
    for (size_t at = 0; at < diff->sections_count; at++) {
        const struct diff_section *section = &diff->sections[at];
        for (size_t row = 0; row < section->compare->count; row++)
            for (int amount = 0; amount < COMPARE_AMOUNTS; amount++)
                share_judge(diff, section, &section->compare->rows[row], amount);
    }
    if (diff->failures_count)
        qsort(diff->failures, diff->failures_count, sizeof *diff->failures, failure_compare);
}

static void failure_say(const struct diff *diff, const struct diff_failure *failure)
{
    const struct compare_share *share = &failure->row->amounts[failure->amount];
    const char *place = failure->row->place;
    tool_complain("gate: %s%s%s%s has grown by %.1f points of %s by %s, %.1f%% -> %.1f%%, beyond noise +-%.1f and the %.4g allowed",
                  failure->row->name, *place ? " (" : "", place, *place ? ")" : "", share->change * POINTS, failure->section->metric,
                  failure->amount == COMPARE_SELF ? "self" : "total", share->shares[COMPARE_BASE] * POINTS,
                  share->shares[COMPARE_NEW] * POINTS, share->bound * POINTS, diff->fail_over);
}

static int gate_status(const struct diff *diff)
{
    for (size_t at = 0; at < diff->failures_count && at < FAILURES_SAID; at++)
        failure_say(diff, &diff->failures[at]);
    if (diff->failures_count > FAILURES_SAID)
        tool_complain("gate: %zu more", diff->failures_count - FAILURES_SAID);
    if (diff->failures_count)
        return TOOL_GATE;
    if (!diff->is_undecided)
        return TOOL_FINE;
    tool_complain("gate: cannot decide: no metadata says how often the sampler looked, and there are too few runs, windows and processes");
    return TOOL_FEW;
}

/* ---- the command ---------------------------------------------------------- */

static bool samples_are_few(const struct diff *diff, unsigned long required)
{
    bool few = false;
    for (int at = 0; at < COMPARE_SIDES; at++) {
        const struct diff_side *side = &diff->sides[at];
        if (side->quality->samples >= required)
            continue;
        tool_complain("%s (%s%s) has %llu samples, and %lu are required", side->title, side->paths[0],
                      side->paths_count > 1 ? " and others" : "", (unsigned long long)side->quality->samples, required);
        few = true;
    }
    return few;
}

static char *metrics_of(const struct diff_side *side, char *buffer, size_t size)
{
    const char *metric;
    size_t length = 0;
    for (uint32_t at = 0; (metric = reader_metric(side->reader, at)) && length < size; at++)
        length += (size_t)snprintf(buffer + length, size - length, "%s%s", at ? ", " : "", metric);
    return buffer;
}

/* Whether there is a metric that both have, of what was wanted (NULL: any). */
static bool is_shared(const struct diff *diff, const char *wanted)
{
    const char *metric;
    for (uint32_t at = 0; (metric = reader_metric(diff->sides[COMPARE_BASE].reader, at)); at++)
        if ((!wanted || !strcmp(wanted, metric)) && side_has(&diff->sides[COMPARE_NEW], metric))
            return true;
    return false;
}

/* Returns what that is as an exit status. */
static int explain_nothing(const struct diff *diff, const struct options *options)
{
    const struct diff_side *base = &diff->sides[COMPARE_BASE], *new_side = &diff->sides[COMPARE_NEW];
    const char *wanted = options->has_every_metric ? NULL : options->metric;
    for (int at = 0; at < COMPARE_SIDES; at++)
        if (!reader_metric(diff->sides[at].reader, 0)) {
            nothing_explain(diff->sides[at].reader, "compare", NULL, diff->sides[at].paths_count, diff->sides[at].paths);
            return TOOL_NOTHING;
        }
    char base_metrics[512] = "", new_metrics[512] = "";
    metrics_of(base, base_metrics, sizeof base_metrics);
    metrics_of(new_side, new_metrics, sizeof new_metrics);
    bool shared = is_shared(diff, wanted), nobody_has = wanted && !side_has(base, wanted) && !side_has(new_side, wanted);
    char only[256];
    filter_describe(diff->filter, FILTER_ONLY, only, sizeof only);
    if (shared && *only)
        tool_complain("nothing to compare: no stack of one side or both has a frame that matches %s (see PATTERN in --help)", only);
    else if (shared)
        tool_complain("nothing to compare: nothing recorded yet on one side or both (%s)", wanted ? wanted : base_metrics);
    else if (nobody_has)
        tool_complain("nothing to compare: no metric \"%s\" (BASE has %s, NEW has %s)", wanted, base_metrics, new_metrics);
    else
        tool_complain("diff: the metrics differ: BASE has %s, NEW has %s", base_metrics, new_metrics);
    return shared || nobody_has ? TOOL_NOTHING : TOOL_USAGE;
}

static void show(const struct diff *diff, const struct options *options)
{
    if (options->as == AS_JSON)
        diff_show_json(diff);
    else if (options->as == AS_MARKDOWN)
        diff_show_markdown(diff);
    else
        diff_show_text(diff);
}

/* What could not be read may hold what would decide otherwise, so that comes first. */
static int diff_run(struct diff *diff, const struct options *options)
{
    for (int side = 0; side < COMPARE_SIDES; side++)
        side_open(&diff->sides[side], diff->filter);
    if (!schemas_agree(diff))
        return TOOL_UNREADABLE;
    sections_read(diff, options);
    leftout_complain(diff->sides[COMPARE_BASE].reader, "BASE: ");
    leftout_complain(diff->sides[COMPARE_NEW].reader, "NEW: ");
    notes_find(diff);
    notes_filter(diff);
    bool few = samples_are_few(diff, options->require_samples);
    if (diff->gates && !few)
        judge(diff);
    diff->is_undecided = diff->is_undecided || few;
    if (diff->sections_count)
        show(diff, options);
    int status = diff->gates && !few ? gate_status(diff) : TOOL_FINE;
    if (options->flame && diff->sections_count && !diff_flame_write(diff, options->flame))
        return TOOL_UNREADABLE;
    if (reader_failures(diff->sides[COMPARE_BASE].reader) || reader_failures(diff->sides[COMPARE_NEW].reader))
        return TOOL_UNREADABLE;
    if (!diff->sections_count)
        status = explain_nothing(diff, options);
    return few && status != TOOL_USAGE ? TOOL_FEW : status;
}

int diff_main(int argc, char **argv)
{
    struct diff diff = { .top = TOP_DEFAULT, .by = TALLY_FUNCTION, .filter = filter_new() };
    struct options options = { .to = -1, .words = tool_alloc((size_t)argc, sizeof *options.words) };
    int status = options_parse(&diff, &options, argc, argv);
    if (status < 0 && options.flame && !page_possible())
        status = TOOL_UNREADABLE;
    if (status < 0) {
        status = diff_run(&diff, &options);
        progress_end();
        diff_close(&diff);
    }
    filter_free(diff.filter);
    free(options.words);
    return status;
}
