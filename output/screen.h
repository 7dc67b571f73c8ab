/* SPDX-License-Identifier: MIT
 *
 * screen: lines of text on the whole terminal, drawn anew at each look and each key.
 * It is as it was once this returns, also for a signal that ends the program.
 *
 * [tool] only. Left out where ncurses is missing: ask whether there is a screen_run.
 */
#ifndef APROF_OUTPUT_SCREEN_H
#define APROF_OUTPUT_SCREEN_H

#include <stdbool.h>
#include <stdio.h>

enum { SCREEN_UP = 0x1000, SCREEN_DOWN, SCREEN_PAGE_UP, SCREEN_PAGE_DOWN, SCREEN_HOME, SCREEN_END };

struct screen {
    void *context;
    unsigned interval_ms;
    void (*look)(void *context);                   /* once an interval, and at first */
    /* At most so many lines of so many columns; returns the line that is a heading, -1: none. */
    int (*print)(void *context, FILE *stream, int rows, int columns);
    bool (*key)(void *context, int key);           /* a character or one of SCREEN_; false: the end */
};

/* Returns an exit status. */
int screen_run(const struct screen *screen) __attribute__((weak));

#endif
