/* SPDX-License-Identifier: MIT */
#include "output/top.h"

#include <getopt.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "output/follow.h"
#include "output/human.h"
#include "output/listing.h"
#include "output/nothing.h"
#include "output/screen.h"
#include "output/tool.h"
#include "output/top_view.h"

#define INTERVAL_DEFAULT 1
#define INTERVAL_MOST 3600
#define TOP_MOST 1000000
#define PAGE 10 /* rows */

const char top_help[] =
    "NAME\n"
    "    aprof top - the functions of running processes, as their time grows\n"
    "\n"
    "SYNOPSIS\n"
    "    aprof top [OPTION]... [PATH]\n"
    "\n"
    "DESCRIPTION\n"
    "    Shows, once a second, where the processes that write to the spool directory\n"
    "    PATH (default: " TOOL_DEFAULT_PATH ") spend their time: the share of each function in\n"
    "    the time since the look before, by itself and with all that it called, and\n"
    "    beside it all that the open windows had and what came since. Processes may\n"
    "    come and go; more than 100,000 at a time are left out, and counted. Nothing\n"
    "    is asked of them: it reads what they write.\n"
    "\n"
    "    Keys: s and t order by self and total time, a by all time or that since the\n"
    "    look before; m the next metric, p the next process, space stops, ? lists\n"
    "    them, q ends.\n"
    "\n"
    "OPTIONS\n"
    "    -m, --metric METRIC     begins with this one (default: the first, cpu)\n"
    "    -s, --sort self|total   begins in this order (default: self)\n"
    "    -i, --interval SECONDS  between two looks (default 1)\n"
    "    -1, --once              one look, as text: the open windows as they are\n"
    "    -n, --top N             rows of --once (default: all)\n"
    "    -h, --help              this text\n"
    "\n"
    "EXIT STATUS\n"
    "    0  fine\n"
    "    2  wrong usage, or no terminal to draw on\n"
    "    3  --once: nothing to show\n"
    "    4  the directory, or a file in it, could not be read\n"
    "\n"
    "EXAMPLES\n"
    "    aprof top\n"
    "    aprof top --metric wall --sort total /var/spool/aprof\n"
    "    aprof top --once --top 20\n";

struct top {
    struct top_view view;
    struct spool_name process;
    char trouble[256];
    unsigned interval, rows;
    bool once;
};

/* ---- options -------------------------------------------------------------- */

static bool number_parse(const char *option, const char *text, unsigned long least, unsigned long most, unsigned *number)
{
    unsigned long value;
    bool good = tool_number(option, text, least, most, &value);
    if (good)
        *number = (unsigned)value;
    return good;
}

static bool sort_parse(struct top *top, const char *text)
{
    bool good = !strcmp(text, "self") || !strcmp(text, "total");
    top->view.by_total = !strcmp(text, "total");
    if (!good)
        tool_complain("--sort: \"%s\" is neither self nor total", text);
    return good;
}

static bool metric_parse(struct top *top, const char *text)
{
    bool good = *text && strlen(text) <= SPOOL_METRIC_MAX;
    top->view.metric = text;
    if (!good)
        tool_complain("--metric: \"%s\" is not the name of a metric (cpu, wall, task, ...)", text);
    return good;
}

/* Returns an exit status, or -1 to go on. */
static int options_parse(struct top *top, int argc, char **argv)
{
    static const struct option options[] = {
        { "metric", required_argument, NULL, 'm' }, { "sort", required_argument, NULL, 's' }, { "interval", required_argument, NULL, 'i' },
        { "once", no_argument, NULL, '1' },         { "top", required_argument, NULL, 'n' },  { "help", no_argument, NULL, 'h' },
        { 0 },
    };
    opterr = 0;
    for (int option; (option = getopt_long(argc, argv, ":m:s:i:1n:h", options, NULL)) != -1;) {
        bool good = true;
        switch (option) {
        case 'm': good = metric_parse(top, optarg); break;
        case 's': good = sort_parse(top, optarg); break;
        case 'i': good = number_parse("--interval", optarg, 1, INTERVAL_MOST, &top->interval); break;
        case '1': top->once = true; break;
        case 'n': good = number_parse("--top", optarg, 0, TOP_MOST, &top->rows); break;
        case 'h': fputs(top_help, stdout); return TOOL_FINE;
        default: return tool_option_wrong("top", option, argv);
        }
        if (!good)
            return TOOL_USAGE;
    }
    if (argc - optind > 1) {
        tool_complain("top: takes one PATH (see `aprof top --help`)");
        return TOOL_USAGE;
    }
    return -1;
}

/* ---- looks and keys ------------------------------------------------------- */

static void trouble_note(struct top *top, const char *what, const char *why)
{
    snprintf(top->trouble, sizeof top->trouble, "%s: %s%s", top->view.path, what, why);
    top->view.trouble = top->trouble;
}

/* `aprof-run --report` makes a folder a run. */
static void folders_note(struct top *top)
{
    char hint[96];
    const struct follow_process *processes;
    uint64_t folders = follow_processes(top->view.follow, &processes) ? 0 : nothing_folders(top->view.path);
    snprintf(hint, sizeof hint, "%" PRIu64 " folder%s there may hold a run: name one", folders, tool_plural(folders));
    if (folders)
        trouble_note(top, "no process writes there, but ", hint);
}

static int look_now(struct top *top)
{
    char schema[96], left_out[96];
    const struct follow *follow = top->view.follow;
    int error = follow_look(top->view.follow);
    top->view.trouble = NULL;
    snprintf(schema, sizeof schema, "schema %" PRId64 ", and this aprof reads schemas up to %d", follow_newer(follow), SPOOL_SCHEMA);
    snprintf(left_out, sizeof left_out, "%zu process%s more than the %u that can be followed", follow_left_out(follow),
             follow_left_out(follow) == 1 ? "" : "es", FOLLOW_PROCESSES_MOST);
    if (error)
        trouble_note(top, "", strerror(-error));
    else if (follow_newer(follow))
        trouble_note(top, "has stacks of ", schema);
    else if (follow_unread(follow))
        trouble_note(top, "stacks that cannot be read: ", strerror(follow_unread(follow)));
    else if (follow_left_out(follow))
        trouble_note(top, "left out: ", left_out);
    else
        folders_note(top);
    return error;
}

static void look(void *context)
{
    struct top *top = context;
    if (!top->view.paused)
        look_now(top);
}

static int print(void *context, FILE *stream, int rows, int columns)
{
    struct top *top = context;
    return top_view_print(&top->view, stream, rows, columns);
}

/* by: 1, or -1 for the one before; round and round. */
static void next_metric(struct top *top, int by)
{
    const char *chosen = follow_chosen(top->view.follow), *metric;
    size_t count = 0, at = 0;
    for (; (metric = follow_metric(top->view.follow, count)); count++)
        if (chosen && !strcmp(metric, chosen))
            at = count;
    if (count < 2)
        return;
    follow_choose_metric(top->view.follow, follow_metric(top->view.follow, (at + count + (size_t)by) % count));
    look_now(top);
}

static bool is_chosen(const struct top *top, const struct spool_name *name)
{
    return top->view.process && !listing_compare(&top->process, name);
}

/* Place 0 is all of them. Those that live, seen with all others. */
static void next_process(struct top *top, int by)
{
    const struct follow_process *processes;
    size_t living = 0, at = 0;
    follow_choose_process(top->view.follow, NULL);
    look_now(top);
    size_t count = follow_processes(top->view.follow, &processes);
    for (size_t i = 0; i < count; i++) {
        living += processes[i].lives;
        if (processes[i].lives && is_chosen(top, &processes[i].name))
            at = living;
    }
    size_t wanted = (at + living + 1 + (size_t)by) % (living + 1);
    top->view.process = NULL;
    for (size_t i = 0; i < count && wanted; i++)
        if (processes[i].lives && !--wanted) {
            top->process = processes[i].name;
            top->view.process = &top->process;
        }
    if (!top->view.process)
        return;
    follow_choose_process(top->view.follow, top->view.process);
    look_now(top);
}

static void scroll_by(struct top_view *view, long rows)
{
    if (rows < 0 && view->offset < (size_t)-rows)
        view->offset = 0;
    else
        view->offset += (size_t)rows; /* what is too far down is brought back when it is shown */
}

static bool key(void *context, int pressed)
{
    struct top *top = context;
    struct top_view *view = &top->view;
    bool was_help = view->help;
    view->help = false;
    switch (pressed) {
    case 'q': return false;
    case '?': case 'h': view->help = !was_help; break;
    case 's': view->by_total = false; break;
    case 't': view->by_total = true; break;
    case 'a': view->since = !view->since; break;
    case 'm': next_metric(top, 1); break;
    case 'M': next_metric(top, -1); break;
    case 'p': next_process(top, 1); break;
    case 'P': next_process(top, -1); break;
    case ' ': view->paused = !view->paused; break;
    case SCREEN_UP: case 'k': scroll_by(view, -1); break;
    case SCREEN_DOWN: case 'j': scroll_by(view, 1); break;
    case SCREEN_PAGE_UP: scroll_by(view, -PAGE); break;
    case SCREEN_PAGE_DOWN: scroll_by(view, PAGE); break;
    case SCREEN_HOME: view->offset = 0; break;
    case SCREEN_END: view->offset = SIZE_MAX / 2; break;
    default: break;
    }
    return true;
}

/* ---- the command ---------------------------------------------------------- */

static int show_once(struct top *top)
{
    const struct follow_row *rows;
    int error = look_now(top);
    bool is_whole = !error && !follow_newer(top->view.follow) && !follow_unread(top->view.follow);
    int status = is_whole ? TOOL_FINE : TOOL_UNREADABLE;
    bool has_any = error >= 0 && follow_rows(top->view.follow, &rows);
    if (top->view.trouble)
        tool_complain("%s", top->trouble);
    else if (!has_any)
        tool_complain("%s: nothing that is open has any %s", top->view.path, top->view.metric ? top->view.metric : "time");
    top->view.trouble = NULL; /* it has been said */
    if (!has_any)
        return status ? status : TOOL_NOTHING;
    top->view.as_text = true;
    top_view_print(&top->view, stdout, top->rows ? (int)top->rows + 4 : 0, human_columns());
    return status;
}

static int show_screen(struct top *top)
{
    const struct screen screen = { .context = top, .interval_ms = top->interval * 1000, .look = look, .print = print, .key = key };
    if (!isatty(STDIN_FILENO) || !isatty(STDOUT_FILENO)) {
        tool_complain("top: needs a terminal (or --once)");
        return TOOL_USAGE;
    }
    if (!screen_run) {
        tool_complain("top: built without ncurses: --once works");
        return TOOL_USAGE;
    }
    if (look_now(top) < 0) {
        tool_complain("%s", top->trouble);
        return TOOL_UNREADABLE;
    }
    return screen_run(&screen);
}

int top_main(int argc, char **argv)
{
    struct top top = { .interval = INTERVAL_DEFAULT };
    int status = options_parse(&top, argc, argv);
    if (status >= 0)
        return status;
    top.view.path = optind < argc ? argv[optind] : TOOL_DEFAULT_PATH;
    top.view.follow = follow_new(top.view.path, top.view.metric);
    status = top.once ? show_once(&top) : show_screen(&top);
    follow_free(top.view.follow);
    return status;
}
