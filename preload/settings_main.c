/* SPDX-License-Identifier: MIT
 *
 * aprof-settings: the table of settings, for scripts.
 *
 *   aprof-settings check     checks the APROF_* variables of the environment: a
 *                            line on stderr for each fault, exit status 2 if any
 *   aprof-settings help      the table for --help
 *   aprof-settings markdown  the table for README.md
 *   aprof-settings man       the table for a man page
 */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "preload/config.h"

extern char **environ;

static void print_fault(void *context, const char *line, const char *remedy)
{
    fprintf(stderr, "aprof-run: %s\n", line);
    ++*(int *)context;
}

static int check(void)
{
    static struct config config;
    static struct metadata_pair pairs[64];
    const char *names[CONFIG_LABELS_MOST];
    int faults = 0;
    config_parse(&config, environ, print_fault, &faults);
    config_tags(config.tags, pairs, 64, print_fault, &faults);
    config_labels(config.label, names, CONFIG_LABELS_MOST, print_fault, &faults);
    return faults ? 2 : 0;
}

/* " (1 to 20000)", " (cpu|monotonic)", or nothing. */
static void choice_write(const struct option_row *o, char *text, size_t size)
{
    *text = '\0';
    if (o->type == OPTION_NUMBER)
        snprintf(text, size, " (%llu to %llu)", (unsigned long long)o->min, (unsigned long long)o->max);
    if (o->type == OPTION_CHOICE || o->type == OPTION_SET)
        snprintf(text, size, " (%.*s)", (int)strlen(o->words) - (o->words[strlen(o->words) - 1] == '|'), o->words);
}

static void print_help(const struct option_row *o)
{
    char left[64], choice[256];
    snprintf(left, sizeof left, "%s=%s", o->name, o->meta);
    choice_write(o, choice, sizeof choice);
    printf("  %-26s %s%s", left, o->help, choice);
    if (*o->fallback)
        printf(" [%s]", o->fallback);
    printf("\n");
}

static void print_markdown(const struct option_row *o)
{
    printf("| `%s` | %s%s%s | %s |\n", o->name, *o->fallback ? "`" : "", o->fallback, *o->fallback ? "`" : "", o->help);
}

/* What roff would take for its own is not. */
static void put_man(const char *text)
{
    for (; *text; text++) {
        if (*text == '\\')
            fputs("\\e", stdout);
        else if (*text == '-')
            fputs("\\-", stdout);
        else if (*text == '\'')
            fputs("\\(aq", stdout);
        else
            putchar(*text);
    }
}

#define MAN_COLUMNS 76 /* of a line, or checkers complain */

/* In lines of which none begins with a dot. */
static void wrap_man(char *text)
{
    size_t column = 0;
    char *rest = text;
    for (char *word; (word = strtok_r(rest, " ", &rest));) {
        size_t length = strlen(word);
        bool breaks = column && column + length > MAN_COLUMNS;
        fputs(breaks ? "\n" : column ? " " : "", stdout);
        fputs((breaks || !column) && *word == '.' ? "\\&" : "", stdout);
        put_man(word);
        column = breaks ? length : column + length + 1;
    }
    putchar('\n');
}

static void print_man(const struct option_row *o)
{
    char choice[256], text[1024];
    choice_write(o, choice, sizeof choice);
    snprintf(text, sizeof text, "%s%s%s%s%s", o->help, choice, *o->fallback ? " [" : "", o->fallback, *o->fallback ? "]" : "");
    printf(".TP\n\\fB%s\\fR=\\fI%s\\fR\n", o->name, o->meta);
    wrap_man(text);
}

static const struct {
    const char *name, *head;
    void (*print)(const struct option_row *);
} forms[] = {
    {"help", "Settings (environment variables; [default]):\n", print_help},
    {"markdown", "| variable | default | meaning |\n|---|---|---|\n", print_markdown},
    {"man", "", print_man},
};

int main(int argc, char **argv)
{
    if (argc == 2 && strcmp(argv[1], "check") == 0)
        return check();
    for (size_t i = 0; argc == 2 && i < sizeof forms / sizeof forms[0]; i++) {
        if (strcmp(argv[1], forms[i].name) != 0)
            continue;
        fputs(forms[i].head, stdout);
        for (size_t n = 0; n < config_options_count; n++)
            forms[i].print(&config_options[n]);
        return 0;
    }
    fprintf(stderr, "usage: aprof-settings check|help|markdown|man\n");
    return 2;
}
