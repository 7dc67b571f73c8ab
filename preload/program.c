/* SPDX-License-Identifier: MIT */
#include "preload/program.h"

#include <string.h>

#include "hooks/log.h" /* log_format */

struct words {
    const char *next, *end;
};

struct out {
    char *text;
    size_t size, used;
};

static const char *take(struct words *words)
{
    const char *word = words->next;
    if (word >= words->end)
        return NULL;
    words->next += strlen(word) + 1;
    return word;
}

static void put(struct out *out, const char *word)
{
    if (word)
        out->used += log_format(out->text + out->used, out->size - out->used, "%s%s", out->used ? " " : "", word);
}

static const char *base_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash && slash[1] ? slash + 1 : path;
}

/* A word of short options, as CPython takes it (Python/getopt.c): -c and -m end the
 * options, and what they, -W and -X want is the rest of the word or the next one.
 * True when the program was named. */
static bool put_short(struct out *out, struct words *words, const char *letter)
{
    for (; *letter; letter++) {
        const char *value = letter[1] ? letter + 1 : NULL;
        if (*letter == 'c') {
            put(out, "-c");
            return true;
        }
        if (*letter == 'm') {
            put(out, "-m");
            put(out, value ? value : take(words));
            return true;
        }
        if (*letter == 'W' || *letter == 'X') {
            if (!value)
                take(words);
            return false;
        }
    }
    return false;
}

static void put_python(struct out *out, struct words *words)
{
    const char *word;
    while ((word = take(words)) != NULL) {
        if (word[0] != '-' || word[1] == '\0') {
            put(out, word); /* a script, or "-" */
            return;
        }
        if (strcmp(word, "--") == 0) {
            put(out, take(words));
            return;
        }
        if (strcmp(word, "--check-hash-based-pycs") == 0)
            take(words);
        else if (word[1] != '-' && put_short(out, words, word + 1))
            return;
    }
}

void program_describe(const char *line, size_t length, bool full, char *text, size_t size)
{
    struct words words = {line, line + length};
    struct out out = {text, size, 0};
    const char *word = take(&words);
    text[0] = '\0';
    if (!word)
        return;
    put(&out, base_name(word));
    while (full && (word = take(&words)) != NULL)
        put(&out, word);
    if (strstr(base_name(line), "python"))
        put_python(&out, &words);
}
