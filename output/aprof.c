/* SPDX-License-Identifier: MIT
 *
 * aprof: reads what libaprof wrote. This file holds the table of subcommands
 * and nothing that they do: a new one is a row here and a module beside.
 */
#include <locale.h>
#include <stdio.h>
#include <string.h>

#include "output/convert.h"
#include "output/diff.h"
#include "output/dump.h"
#include "output/flame.h"
#include "output/merge.h"
#include "output/report.h"
#include "output/supervise.h"
#include "output/tool.h"
#include "output/top.h"

static int help_main(int argc, char **argv);
static int version_main(int argc, char **argv);

struct command {
    const char *name, *summary;
    const char *help; /* NULL: the program's own */
    int (*run)(int argc, char **argv);
};

static const struct command commands[] = {
    { "report", "how good the profile is, and the top functions or stacks", report_help, report_main },
    { "flame", "a flame graph as one HTML file", flame_help, flame_main },
    { "diff", "which functions' shares have changed; fails if they grew (for CI)", diff_help, diff_main },
    { "convert", "a profile for pprof, speedscope, the Firefox Profiler or flamegraph.pl", convert_help, convert_main },
    { "top", "the functions of running processes, as their time grows", top_help, top_main },
    { "dump", "where all threads and tasks of a running process are now", dump_help, dump_main },
    { "merge", "many spools, processes and windows as one", merge_help, merge_main },
    { "supervise", "runs a command, reports when it has ended (for aprof-run)", NULL, supervise_main },
    { "help", "this text, or that of a COMMAND", NULL, help_main },
    { "version", "the version of this program", NULL, version_main },
};
#define COMMANDS (sizeof commands / sizeof *commands)

static const struct command *command_find(const char *name)
{
    for (size_t at = 0; at < COMMANDS; at++)
        if (!strcmp(commands[at].name, name))
            return &commands[at];
    return NULL;
}

static void help_print(void)
{
    puts("NAME\n"
         "    aprof - reads the profiles that libaprof writes\n"
         "\n"
         "SYNOPSIS\n"
         "    aprof COMMAND [OPTION]... [PATH]...\n"
         "    aprof --help | --version\n"
         "\n"
         "COMMANDS");
    for (size_t at = 0; at < COMMANDS; at++)
        printf("    %-10s %s\n", commands[at].name, commands[at].summary);
    puts("\n"
         "    `aprof help COMMAND` or `aprof COMMAND --help` tells more.\n"
         "\n"
         "EXIT STATUS\n"
         "    0  fine\n"
         "    1  diff --fail-over: a function has grown\n"
         "    2  wrong usage\n"
         "    3  nothing to report\n"
         "    4  some input could not be read\n"
         "    5  diff: too few samples to decide");
}

static int unknown(const char *name)
{
    tool_complain("%s: no such command (see `aprof help`)", name);
    return TOOL_USAGE;
}

static int help_main(int argc, char **argv)
{
    const struct command *command = argc > 1 ? command_find(argv[1]) : NULL;
    if (argc > 2) {
        tool_complain("help: takes one COMMAND at most");
        return TOOL_USAGE;
    }
    if (argc > 1 && !command)
        return unknown(argv[1]);
    if (command && command->help)
        fputs(command->help, stdout);
    else
        help_print();
    return TOOL_FINE;
}

static int version_main(int argc, char **argv)
{
    puts("aprof " APROF_VERSION);
    return TOOL_FINE;
}

/* A full disk or a closed pipe must not pass for a complete answer. */
static int output_checked(int status)
{
    if (!fflush(stdout) && !ferror(stdout))
        return status;
    tool_complain("standard output: cannot be written");
    return TOOL_UNREADABLE;
}

int main(int argc, char **argv)
{
    setlocale(LC_CTYPE, "C.UTF-8"); /* for the widths of characters; the spool is UTF-8 whatever the user's locale */
    if (argc < 2) {
        tool_complain("no command given (see `aprof help`)");
        return TOOL_USAGE;
    }
    const char *name = argv[1];
    if (!strcmp(name, "--help") || !strcmp(name, "-h"))
        name = "help";
    else if (!strcmp(name, "--version") || !strcmp(name, "-V"))
        name = "version";
    const struct command *command = command_find(name);
    return command ? output_checked(command->run(argc - 1, argv + 1)) : unknown(name);
}
