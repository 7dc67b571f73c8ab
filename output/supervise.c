/* SPDX-License-Identifier: MIT
 *
 * supervise: see the header. Signals are blocked and waited for, never handled:
 * there is no moment at which one can be lost, and the dispositions that the
 * command inherits are the caller's own. Command and parent share a process
 * group, so that the terminal treats them as one job.
 */
#include "output/supervise.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "output/flame.h"
#include "output/progress.h"
#include "output/report.h"
#include "output/tool.h"

#define EXIT_CANNOT_RUN 126 /* as a shell says it */
#define EXIT_NOT_FOUND  127
#define EXIT_SIGNAL     128 /* and the signal's number */

static const int passed_on[] = { SIGHUP, SIGINT, SIGTERM, SIGQUIT, SIGUSR1, SIGUSR2 };

struct arguments {
    const char *preload, *directory;
    const char *report, *flame; /* files; NULL: not asked for; report "": stderr */
    char **command;
};

/* How we found the signals, for the children to get them back. */
struct signals {
    sigset_t waited, mask;
    struct sigaction child_action;
};

/* SIGCHLD must not be ignored, or there is no status to wait for. */
static void signals_take(struct signals *signals)
{
    struct sigaction standard = { .sa_handler = SIG_DFL };
    sigemptyset(&signals->waited);
    sigaddset(&signals->waited, SIGCHLD);
    for (size_t at = 0; at < sizeof passed_on / sizeof *passed_on; at++)
        sigaddset(&signals->waited, passed_on[at]);
    sigprocmask(SIG_BLOCK, &signals->waited, &signals->mask);
    sigaction(SIGCHLD, &standard, &signals->child_action);
}

static void signals_give_back(const struct signals *signals)
{
    sigaction(SIGCHLD, &signals->child_action, NULL);
    sigprocmask(SIG_SETMASK, &signals->mask, NULL);
}

/* The terminal (the kernel, that is) has sent it to the child as well, and what
 * the child sends to its parent is not meant to come back. */
static bool is_for_child(const siginfo_t *info, pid_t child)
{
    return info->si_signo != SIGCHLD && info->si_code != SI_KERNEL && info->si_pid != child;
}

static int status_of(int status)
{
    return WIFSIGNALED(status) ? EXIT_SIGNAL + WTERMSIG(status) : WEXITSTATUS(status);
}

/* Until the child has ended. Other children may be ours too: whoever execed us
 * can have left some. */
static int child_wait(pid_t child, const struct signals *signals)
{
    for (;;) {
        int status;
        pid_t ended = waitpid(child, &status, WNOHANG);
        if (ended == child)
            return status_of(status);
        if (ended < 0 && errno != EINTR)
            return EXIT_CANNOT_RUN;
        siginfo_t info;
        if (sigwaitinfo(&signals->waited, &info) > 0 && is_for_child(&info, child))
            kill(child, info.si_signo);
    }
}

static int command_exec(const struct arguments *arguments)
{
    if (*arguments->preload)
        setenv("LD_PRELOAD", arguments->preload, 1);
    execvp(arguments->command[0], arguments->command);
    int error = errno;
    tool_complain("%s: %s", arguments->command[0], strerror(error));
    return error == ENOENT ? EXIT_NOT_FOUND : EXIT_CANNOT_RUN;
}

static int command_run(const struct arguments *arguments, const struct signals *signals)
{
    pid_t child = fork();
    if (child < 0) {
        tool_complain("%s: cannot fork: %s", arguments->command[0], strerror(errno));
        return EXIT_CANNOT_RUN;
    }
    if (child == 0) {
        signals_give_back(signals);
        _exit(command_exec(arguments));
    }
    return child_wait(child, signals);
}

/* A file that cannot be made leaves it on stderr. */
static void output_redirect(const char *file)
{
    int to = *file ? open(file, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666) : -1;
    if (*file && to < 0)
        tool_complain("%s: %s", file, strerror(errno));
    dup2(to < 0 ? STDERR_FILENO : to, STDOUT_FILENO);
}

/* A reader of the run's directory, with these arguments before it, NULL at their end. */
struct afterwards {
    int (*run)(int argc, char **argv);
    const char *arguments[4];
};

static int afterwards_exec(const struct afterwards *afterwards, const char *directory)
{
    char *argv[sizeof afterwards->arguments / sizeof *afterwards->arguments + 1] = { 0 };
    int argc = 0;
    for (; afterwards->arguments[argc]; argc++)
        argv[argc] = tool_copy(afterwards->arguments[argc], strlen(afterwards->arguments[argc]));
    argv[argc++] = tool_copy(directory, strlen(directory));
    return afterwards->run(argc, argv);
}

/* In a child, so that nothing it does, its end included, touches the status. to: the
 * file that its standard output goes to; "": stderr. */
static void afterwards_run(const struct afterwards *afterwards, const char *directory, const char *to, const struct signals *signals)
{
    pid_t child = fork();
    if (child == 0) {
        signals_give_back(signals);
        output_redirect(to);
        exit(afterwards_exec(afterwards, directory));
    }
    if (child < 0)
        tool_complain("no %s: %s", afterwards->arguments[0], strerror(errno));
    else
        child_wait(child, signals);
}

static void results_make(const struct arguments *arguments, const struct signals *signals)
{
    struct afterwards report = { report_main, { "report" } }, flame = { flame_main, { "flame", "--output", arguments->flame } };
    const char *log = getenv("APROF_LOG");
    if (log && !strcmp(log, "quiet")) /* aprof-run -q */
        progress_quiet();
    if (arguments->report)
        afterwards_run(&report, arguments->directory, arguments->report, signals);
    if (arguments->flame)
        afterwards_run(&flame, arguments->directory, "", signals);
}

static const char *value_of(const char *argument, const char *option)
{
    size_t length = strlen(option);
    return strncmp(argument, option, length) ? NULL : argument + length;
}

static bool arguments_read(struct arguments *arguments, int argc, char **argv)
{
    int at = 1;
    *arguments = (struct arguments){ .preload = "" };
    for (; at < argc; at++) {
        const char *value;
        if ((value = value_of(argv[at], "--preload=")))
            arguments->preload = value;
        else if ((value = value_of(argv[at], "--report=")))
            arguments->report = value;
        else if ((value = value_of(argv[at], "--flame=")))
            arguments->flame = value;
        else
            break;
    }
    if (argc - at < 2)
        return false;
    arguments->directory = argv[at];
    arguments->command = argv + at + 1;
    return true;
}

int supervise_main(int argc, char **argv)
{
    struct arguments arguments;
    struct signals signals;
    if (!arguments_read(&arguments, argc, argv)) {
        tool_complain("supervise: takes a directory and a command (it is there for aprof-run --report and --flame)");
        return TOOL_USAGE;
    }
    signals_take(&signals);
    int status = command_run(&arguments, &signals);
    results_make(&arguments, &signals);
    return status;
}
