/* SPDX-License-Identifier: MIT */
#include "output/screen.h"

#include <ncurses.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "output/tool.h"

static volatile sig_atomic_t ended;

static void end(int signo)
{
    ended = 1;
}

static unsigned long now_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (unsigned long)now.tv_sec * 1000 + (unsigned long)now.tv_nsec / 1000000;
}

static void draw(const struct screen *screen)
{
    char *text = NULL;
    size_t size = 0;
    FILE *stream = open_memstream(&text, &size);
    if (!stream)
        return;
    int heading = screen->print(screen->context, stream, LINES, COLS);
    fclose(stream);
    erase();
    char *line = text;
    for (int row = 0; row < LINES && line; row++) {
        char *next = strchr(line, '\n');
        if (next)
            *next++ = '\0';
        attrset(row == heading ? A_REVERSE : row == 0 ? A_BOLD : A_NORMAL);
        mvaddstr(row, 0, line);
        line = next;
    }
    attrset(A_NORMAL);
    refresh();
    free(text);
}

static int key_of(int code)
{
    switch (code) {
    case KEY_UP: return SCREEN_UP;
    case KEY_DOWN: return SCREEN_DOWN;
    case KEY_PPAGE: return SCREEN_PAGE_UP;
    case KEY_NPAGE: return SCREEN_PAGE_DOWN;
    case KEY_HOME: return SCREEN_HOME;
    case KEY_END: return SCREEN_END;
    default: return code < 256 ? code : 0;
    }
}

/* False: it is over. */
static bool wait_for_key(const struct screen *screen, unsigned long until)
{
    unsigned long now = now_ms();
    timeout(until > now ? (int)(until - now) : 0);
    int code = getch();
    if (code == ERR)
        return !ended;
    if (code == 'L' - '@') /* ^L */
        clearok(curscr, true);
    return !ended && screen->key(screen->context, key_of(code));
}

static void run(const struct screen *screen)
{
    bool goes_on = true;
    while (goes_on) {
        unsigned long next = now_ms() + screen->interval_ms;
        screen->look(screen->context);
        do {
            draw(screen);
            goes_on = wait_for_key(screen, next);
        } while (goes_on && now_ms() < next);
    }
}

int screen_run(const struct screen *screen)
{
    struct sigaction action = { .sa_handler = end };
    const char *name = getenv("TERM");
    bool is_dumb = !name || !strcmp(name, "dumb"); /* ncurses draws on one, but cannot move on it */
    SCREEN *terminal = is_dumb ? NULL : newterm(NULL, stdout, stdin);
    if (!terminal) {
        tool_complain("this terminal (TERM=%s) cannot be drawn on (--once prints one look)", name ? name : "");
        return TOOL_USAGE;
    }
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
    sigaction(SIGHUP, &action, NULL);
    cbreak();
    noecho();
    keypad(stdscr, true);
    curs_set(0);
    run(screen);
    endwin();
    delscreen(terminal);
    return TOOL_FINE;
}
