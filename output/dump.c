/* SPDX-License-Identifier: MIT
 *
 * The command: what was asked for, and which of it was answered. Printing:
 * output/dump_show.c.
 */
#include "output/dump.h"

#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "output/asking.h"
#include "output/dump_show.h"
#include "output/nothing.h"
#include "output/tool.h"

#define SECONDS_DEFAULT 5
#define SECONDS_MOST 3600
#define COMPLAINTS 10 /* lines about processes without an answer before only their number is told */

const char dump_help[] =
    "NAME\n"
    "    aprof dump - where all threads and tasks of a running process are now\n"
    "\n"
    "SYNOPSIS\n"
    "    aprof dump [OPTION]... [PID|PATH]\n"
    "\n"
    "DESCRIPTION\n"
    "    Asks a process that is being profiled for the current stacks of all its\n"
    "    threads and all its asyncio tasks: by its PID, or all that live in the spool\n"
    "    directory PATH. The profiler in the process answers within about a second;\n"
    "    the program itself is neither stopped nor signalled. Only the user of the\n"
    "    process and root may ask. Of more than 1,000 processes the oldest 1,000 are\n"
    "    asked.\n"
    "\n"
    "    Stacks have their outermost frame first, tasks stand on those that await\n"
    "    them. Equal ones come once, with the names of all.\n"
    "\n"
    "    A thread that stands still is read as it stands, with the time for which it\n"
    "    has at least. One that runs at that moment has the stack of its last CPU tick,\n"
    "    or where it was last seen, with the age of that. A task that changed while it\n"
    "    was read has no stack, and a running one that of its thread.\n"
    "\n"
    "OPTIONS\n"
    "    -d, --dir PATH         where to look for PID: the spool directory (default:\n"
    "                           APROF_DIR, else " TOOL_DEFAULT_PATH ")\n"
    "    -a, --all              the names of all, not of the first few\n"
    "    -j, --json             the same as one JSON object (times in microseconds)\n"
    "    -t, --timeout SECONDS  waits so long for an answer (default 5)\n"
    "    -h, --help             this text\n"
    "\n"
    "EXIT STATUS\n"
    "    0  fine\n"
    "    2  wrong usage\n"
    "    3  no such process, or none that is profiled there\n"
    "    4  a process did not answer, or the directory could not be read\n"
    "\n"
    "EXAMPLES\n"
    "    aprof dump 4242\n"
    "    aprof dump /var/spool/aprof\n"
    "    aprof dump --json 4242 | jq '.processes[0].tasks | length'\n";

struct dump_command {
    const char *path;
    uint64_t pid; /* 0: all */
    unsigned seconds;
    bool as_json, all_names;
};

static bool seconds_parse(struct dump_command *command, const char *text)
{
    unsigned long seconds;
    bool good = tool_number("--timeout", text, 1, SECONDS_MOST, &seconds);
    if (good)
        command->seconds = (unsigned)seconds;
    return good;
}

/* Returns an exit status, or -1 to go on. */
static int options_parse(struct dump_command *command, int argc, char **argv)
{
    static const struct option options[] = {
        { "dir", required_argument, NULL, 'd' },     { "all", no_argument, NULL, 'a' },  { "json", no_argument, NULL, 'j' },
        { "timeout", required_argument, NULL, 't' }, { "help", no_argument, NULL, 'h' }, { 0 },
    };
    opterr = 0;
    for (int option; (option = getopt_long(argc, argv, ":d:ajt:h", options, NULL)) != -1;) {
        switch (option) {
        case 'd': command->path = optarg; break;
        case 'a': command->all_names = true; break;
        case 'j': command->as_json = true; break;
        case 't':
            if (!seconds_parse(command, optarg))
                return TOOL_USAGE;
            break;
        case 'h': fputs(dump_help, stdout); return TOOL_FINE;
        default: return tool_option_wrong("dump", option, argv);
        }
    }
    return -1;
}

static bool is_pid(const char *text)
{
    return *text && strspn(text, "0123456789") == strlen(text);
}

static int subject_parse(struct dump_command *command, int argc, char **argv)
{
    const char *directory = getenv("APROF_DIR");
    bool was_given = command->path;
    if (!was_given)
        command->path = directory && *directory ? directory : TOOL_DEFAULT_PATH;
    if (argc > 1) {
        tool_complain("dump: takes one PID or PATH (see `aprof dump --help`)");
        return TOOL_USAGE;
    }
    if (argc == 1 && is_pid(argv[0])) {
        command->pid = strtoull(argv[0], NULL, 10);
        if (command->pid == 0 || strlen(argv[0]) > 10) {
            tool_complain("dump: %s is no process's number", argv[0]);
            return TOOL_USAGE;
        }
    } else if (argc == 1 && was_given) {
        tool_complain("dump: --dir goes with a PID, and %s is none", argv[0]);
        return TOOL_USAGE;
    } else if (argc == 1) {
        command->path = argv[0];
    }
    return -1;
}

/* `aprof-run --report` makes a folder a run. */
static const char *folders_hint(const struct dump_command *command, char *hint, size_t size)
{
    uint64_t folders = nothing_folders(command->path);
    *hint = '\0';
    if (folders)
        snprintf(hint, size, ", but %" PRIu64 " folder%s there may hold a run: name one%s", folders, tool_plural(folders), command->pid ? " with --dir" : "");
    return hint;
}

static int complain_of_none(const struct dump_command *command)
{
    char hint[96];
    folders_hint(command, hint, sizeof hint);
    if (!command->pid)
        tool_complain("%s: no process writes there now%s", command->path, hint);
    else if (kill((pid_t)command->pid, 0) && errno == ESRCH)
        tool_complain("no such process: %" PRIu64 " (looked in %s)", command->pid, command->path);
    else
        tool_complain("process %" PRIu64 " does not write to %s: it is not profiled, or its spool is another directory%s",
                      command->pid, command->path, *hint ? hint : " (see --dir)");
    return TOOL_NOTHING;
}

static void complain_of_left_out(const struct dump_command *command, const struct asking *asking)
{
    if (asking->left_out)
        tool_complain("%s: %zu more process%s that live%s %s not asked, only the %u oldest: name one by its PID (with --dir)", command->path,
                      asking->left_out, asking->left_out == 1 ? "" : "es", asking->left_out == 1 ? "s" : "",
                      asking->left_out == 1 ? "was" : "were", ASKING_MOST);
}

/* A process that has ended is worth a word only to whoever asked for it by its number. */
static int explain_all(const struct dump_command *command, const struct asking *asking, size_t answers)
{
    int status = answers ? TOOL_FINE : TOOL_NOTHING;
    size_t silent = 0;
    for (size_t at = 0; at < asking->count; at++) {
        const struct asked *asked = &asking->processes[at];
        if (asked->has_answer)
            continue;
        if (!asked->is_dead)
            status = TOOL_UNREADABLE;
        if ((command->pid || !asked->is_dead) && ++silent <= COMPLAINTS)
            asking_explain(asking, asked, command->seconds);
    }
    if (silent > COMPLAINTS)
        tool_complain("%zu more processes did not answer", silent - COMPLAINTS);
    complain_of_left_out(command, asking);
    return status;
}

static int dump_all(const struct dump_command *command, struct asking *asking)
{
    size_t answers = 0, living = 0;
    asking_wait(asking, command->seconds);
    for (size_t at = 0; at < asking->count; at++) {
        answers += asking->processes[at].has_answer;
        living += !asking->processes[at].is_dead;
    }
    if (!living && !command->pid)
        return complain_of_none(command);
    if (answers && command->as_json)
        dump_show_json(asking);
    else if (answers)
        dump_show_text(asking, command->all_names);
    return explain_all(command, asking, answers);
}

int dump_main(int argc, char **argv)
{
    struct dump_command command = { .seconds = SECONDS_DEFAULT };
    struct asking asking;
    int status = options_parse(&command, argc, argv);
    if (status < 0)
        status = subject_parse(&command, argc - optind, argv + optind);
    if (status >= 0)
        return status;
    if (!asking_begin(&asking, command.path, command.pid))
        return TOOL_UNREADABLE;
    status = asking.count ? dump_all(&command, &asking) : complain_of_none(&command);
    asking_end(&asking);
    return status;
}
