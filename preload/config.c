/* SPDX-License-Identifier: MIT
 *
 * The parser of settings. Knows types, not settings: those are rows.
 */
#include "preload/config.h"

#include <string.h>
#include <sys/utsname.h> /* kernels before 5.9: CPU timers fire in mid-syscall */

#include "hooks/log.h"

/* The words of APROF_METRICS are the rows of the metrics' table. */
static const char metric_words[] =
#define METRIC(id, name, unit) name "|"
#include "sampler/metrics.inc"
#undef METRIC
    ;
#define METRIC_WORDS metric_words
#define METRIC_DEFAULT "cpu,wall,task"

const struct option_row config_options[] = {
#define OPTION(TYPE, field, NAME, DEFAULT, MIN, MAX, WORDS, META, HELP) \
    {OPTION_##TYPE, offsetof(struct config, field), NAME, DEFAULT, MIN, MAX, WORDS, META, HELP},
#include "preload/options.inc"
#undef OPTION
};
const size_t config_options_count = sizeof config_options / sizeof config_options[0];

static uint64_t *number_of(const struct config *config, const struct option_row *option)
{
    return (uint64_t *)((char *)config + option->offset);
}

static char *text_of(const struct config *config, const struct option_row *option)
{
    return (char *)config + option->offset;
}

static bool parse_number(const char *value, uint64_t min, uint64_t max, uint64_t *number)
{
    uint64_t n = 0;
    if (*value == '\0')
        return false;
    for (; *value; value++) {
        if (*value < '0' || *value > '9')
            return false;
        n = n * 10 + (uint64_t)(*value - '0');
        if (n > UINT32_MAX) /* beyond every range here, and far from wrapping */
            return false;
    }
    *number = n;
    return n >= min && n <= max;
}

/* Index of the word value[0..length) in "a|b|c"; -1 when it is none. */
static int word_index(const char *words, const char *value, size_t length)
{
    for (int index = 0;; index++) {
        size_t word = strcspn(words, "|");
        if (word == length && word > 0 && memcmp(words, value, length) == 0)
            return index;
        if (words[word] == '\0')
            return -1;
        words += word + 1;
    }
}

static bool parse_set(const char *words, const char *value, uint64_t *set)
{
    uint64_t bits = 0;
    for (;;) {
        size_t length = strcspn(value, ",");
        int index = word_index(words, value, length);
        if (index < 0)
            return false;
        bits |= (uint64_t)1 << index;
        if (value[length] == '\0')
            break;
        value += length + 1;
    }
    *set = bits;
    return true;
}

bool config_set(struct config *config, const struct option_row *option, const char *value)
{
    uint64_t number = 0;
    int index;
    size_t length = strlen(value);

    switch (option->type) {
    case OPTION_NUMBER:
    case OPTION_FLAG:
        if (!parse_number(value, option->min, option->max, &number))
            return false;
        break;
    case OPTION_CHOICE:
        index = word_index(option->words, value, length);
        if (index < 0)
            return false;
        number = (uint64_t)index;
        break;
    case OPTION_SET:
        if (!parse_set(option->words, value, &number))
            return false;
        break;
    case OPTION_TEXT:
        if (length < option->min || length > option->max)
            return false;
        memcpy(text_of(config, option), value, length + 1);
        return true;
    }
    *number_of(config, option) = number;
    return true;
}

/* "a|b|c" as prose: "a, b or c". */
static void say_words(char *buffer, size_t size, const char *words, const char *last)
{
    size_t used = 0;
    buffer[0] = '\0';
    while (*words && used + 1 < size) {
        size_t word = strcspn(words, "|");
        const char *next = words + word + (words[word] != '\0');
        const char *glue = used == 0 ? "" : *next ? ", " : last;
        char copy[64];
        size_t length = word < sizeof copy - 1 ? word : sizeof copy - 1;
        memcpy(copy, words, length);
        copy[length] = '\0';
        used += log_format(buffer + used, size - used, "%s%s", glue, copy);
        words = next;
    }
}

static void say_range(char *buffer, size_t size, const struct option_row *option)
{
    char words[160];
    switch (option->type) {
    case OPTION_NUMBER:
        log_format(buffer, size, "not a number from %lu to %lu", (unsigned long)option->min, (unsigned long)option->max);
        break;
    case OPTION_FLAG:
        log_format(buffer, size, "neither 0 nor 1");
        break;
    case OPTION_CHOICE:
        say_words(words, sizeof words, option->words, " or ");
        log_format(buffer, size, "not one of %s", words);
        break;
    case OPTION_SET:
        say_words(words, sizeof words, option->words, " and ");
        log_format(buffer, size, "not a list of words from %s, joined by commas", words);
        break;
    case OPTION_TEXT:
        log_format(buffer, size, "not a text of %lu to %lu bytes", (unsigned long)option->min, (unsigned long)option->max);
        break;
    }
}

/* A value as it may stand in a line: cut, and without control characters. */
static void say_value(char *buffer, size_t size, const char *value)
{
    size_t n = 0;
    for (; value[n] && n < size - 4; n++)
        buffer[n] = (unsigned char)value[n] < 0x20 || value[n] == 0x7f ? '?' : value[n];
    memcpy(buffer + n, value[n] ? "..." : "", value[n] ? 4 : 1);
}

static void say_bad_value(const struct option_row *option, const char *value, config_fault *fault, void *context)
{
    char line[400], range[200], shown[64], remedy[64];
    say_range(range, sizeof range, option);
    say_value(shown, sizeof shown, value);
    log_format(line, sizeof line, "%s: \"%s\" is %s", option->name, shown, range);
    log_format(remedy, sizeof remedy, "using %s", *option->fallback ? option->fallback : "none");
    fault(context, line, remedy);
}

static void say_unknown(const char *entry, size_t length, config_fault *fault, void *context)
{
    char name[64], shown[64], line[160];
    size_t n = length < sizeof name - 1 ? length : sizeof name - 1;
    memcpy(name, entry, n);
    name[n] = '\0';
    say_value(shown, sizeof shown, name);
    log_format(line, sizeof line, "%s: there is no such setting (aprof-run --help lists them)", shown);
    fault(context, line, "ignored");
}

static const struct option_row *find_option(const char *name, size_t length)
{
    for (size_t i = 0; i < config_options_count; i++)
        if (strlen(config_options[i].name) == length && memcmp(config_options[i].name, name, length) == 0)
            return &config_options[i];
    return NULL;
}

/* Before 5.9 the kernel fired CPU timers in the middle of system calls, which
 * would interrupt waiting ones: no signals by default there. */
static bool kernel_ticks_between_calls(void)
{
    struct utsname name;
    unsigned major = 0, minor = 0;
    const char *c = name.release;
    if (uname(&name) != 0)
        return true;
    for (; *c >= '0' && *c <= '9'; c++)
        major = major * 10 + (unsigned)(*c - '0');
    if (*c == '.')
        for (c++; *c >= '0' && *c <= '9'; c++)
            minor = minor * 10 + (unsigned)(*c - '0');
    return major > 5 || (major == 5 && minor >= 9);
}

/* As for getenv, the first of several entries of a name counts. */
static bool is_repeated(const struct option_row *option, uint64_t *met)
{
    uint64_t bit = (uint64_t)1 << (option - config_options);
    bool repeated = *met & bit;
    *met |= bit;
    return repeated;
}

int config_parse(struct config *config, char *const *environment, config_fault *fault, void *context)
{
    _Static_assert(sizeof config_options / sizeof config_options[0] <= 64, "a bit for each option");
    int faults = 0;
    uint64_t met = 0;

    memset(config, 0, sizeof *config);
    for (size_t i = 0; i < config_options_count; i++)
        if (config_options[i].type != OPTION_TEXT || *config_options[i].fallback)
            config_set(config, &config_options[i], config_options[i].fallback);
    if (!kernel_ticks_between_calls())
        config->signals = 0;

    for (; environment && *environment; environment++) {
        const char *entry = *environment, *equals = strchr(entry, '=');
        if (strncmp(entry, "APROF_", 6) != 0 || !equals)
            continue;
        const struct option_row *option = find_option(entry, (size_t)(equals - entry));
        if (!option) {
            say_unknown(entry, (size_t)(equals - entry), fault, context);
            faults++;
        } else if (!is_repeated(option, &met) && !config_set(config, option, equals + 1)) {
            say_bad_value(option, equals + 1, fault, context);
            faults++;
        }
    }
    return faults;
}

static void show_words(const struct option_row *option, uint64_t value, char *buffer, size_t size)
{
    const char *words = option->words;
    size_t used = 0;
    buffer[0] = '\0';
    for (unsigned index = 0; *words; index++) {
        size_t word = strcspn(words, "|");
        bool chosen = option->type == OPTION_SET ? (value >> index) & 1 : value == index;
        if (chosen && used + word + 2 < size) {
            if (used)
                buffer[used++] = ',';
            memcpy(buffer + used, words, word);
            used += word;
            buffer[used] = '\0';
        }
        words += word + (words[word] != '\0');
    }
}

void config_show(const struct config *config, const struct option_row *option, char *buffer, size_t size)
{
    switch (option->type) {
    case OPTION_NUMBER:
    case OPTION_FLAG:
        log_format(buffer, size, "%lu", (unsigned long)*number_of(config, option));
        break;
    case OPTION_CHOICE:
    case OPTION_SET:
        show_words(option, *number_of(config, option), buffer, size);
        break;
    case OPTION_TEXT:
        log_format(buffer, size, "%s", text_of(config, option));
        break;
    }
}

uint32_t config_tags(char *text, struct metadata_pair *pairs, uint32_t most, config_fault *fault, void *context)
{
    uint32_t count = 0;
    while (*text) {
        size_t length = strcspn(text, ",");
        char *next = text + length + (text[length] != '\0');
        text[length] = '\0';
        char *equals = strchr(text, '=');
        if (equals && equals != text && count < most) {
            *equals = '\0';
            pairs[count++] = (struct metadata_pair){text, equals + 1};
        } else if (length) {
            char line[160], shown[64];
            say_value(shown, sizeof shown, text);
            log_format(line, sizeof line, "APROF_TAGS: \"%s\" is not NAME=VALUE%s", shown,
                       count < most ? "" : ", or there are too many");
            fault(context, line, "left out");
        }
        text = next;
    }
    return count;
}

enum { LABEL_LONGEST = 64 };

static bool is_label(const char *name)
{
    static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.-";
    size_t length = strlen(name);
    return length <= LABEL_LONGEST && length > 0 && strspn(name, letters) == length;
}

uint32_t config_labels(char *text, const char **names, uint32_t most, config_fault *fault, void *context)
{
    uint32_t count = 0;
    while (*text) {
        size_t length = strcspn(text, ",");
        char *next = text + length + (text[length] != '\0');
        text[length] = '\0';
        if (length && count < most && is_label(text)) {
            names[count++] = text;
        } else if (length) {
            char line[160], shown[64];
            say_value(shown, sizeof shown, text);
            log_format(line, sizeof line, count < most ? "APROF_LABEL: \"%s\" is not made of letters, digits, _, . and -" :
                                                         "APROF_LABEL: \"%s\" is one too many", shown);
            fault(context, line, "left out");
        }
        text = next;
    }
    return count;
}
