/* SPDX-License-Identifier: MIT */
#include "output/progress.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h> /* getenv */
#include <string.h>
#include <sys/ioctl.h> /* TIOCGWINSZ */
#include <time.h>
#include <unistd.h> /* isatty */

#include "output/human.h"

#define FIRST_US 500000
#define NEXT_US 250000
#define ERASE "\r\033[K"

static struct {
    bool is_quiet, is_shown;
    uint64_t expected, read;
    uint64_t due_us; /* when the line may change next; 0: nothing is expected */
} progress;

static uint64_t now_us(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000 + (uint64_t)now.tv_nsec / 1000;
}

static bool is_terminal(void)
{
    const char *terminal = getenv("TERM");
    return isatty(STDERR_FILENO) && terminal && strcmp(terminal, "dumb");
}

/* A line that wraps could not be erased. */
static bool fits(size_t length)
{
    struct winsize size;
    return ioctl(STDERR_FILENO, TIOCGWINSZ, &size) || !size.ws_col || length < size.ws_col;
}

static void show(void)
{
    char line[128], read[HUMAN_SIZE], all[HUMAN_SIZE];
    uint64_t most = progress.read > progress.expected ? progress.read : progress.expected; /* files grow */
    int length = snprintf(line, sizeof line, "aprof: %s of %s read", human_bytes(read, progress.read), human_bytes(all, most));
    if (!fits((size_t)length))
        return;
    fprintf(stderr, ERASE "%s", line);
    fflush(stderr);
    progress.is_shown = true;
}

void progress_expect(uint64_t bytes)
{
    if (progress.is_quiet || !is_terminal())
        return;
    if (!progress.due_us)
        progress.due_us = now_us() + FIRST_US;
    progress.expected += bytes;
}

void progress_add(uint64_t bytes)
{
    progress.read += bytes;
    if (!progress.due_us)
        return;
    uint64_t now = now_us();
    if (now < progress.due_us)
        return;
    progress.due_us = now + NEXT_US;
    show();
}

void progress_hide(void)
{
    if (progress.is_shown)
        fputs(ERASE, stderr);
    progress.is_shown = false;
}

void progress_end(void)
{
    progress_hide();
    progress.due_us = progress.expected = progress.read = 0;
}

void progress_quiet(void)
{
    progress.is_quiet = true;
}
