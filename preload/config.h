/* SPDX-License-Identifier: MIT
 *
 * config: the environment to a struct, by the table in options.inc.
 *
 * A bad value or an unknown APROF_* name costs one line ("APROF_RATE: \"abc\" is
 * not a number from 1 to 20000; using 100") and never the application.
 *
 * Runs in: [loader] and the program aprof-settings. No allocation: texts are
 * copied, as an application may write over its environment.
 */
#ifndef APROF_PRELOAD_CONFIG_H
#define APROF_PRELOAD_CONFIG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "output/metadata.h"

enum config_clock { CONFIG_CLOCK_CPU, CONFIG_CLOCK_MONOTONIC };
enum config_argv { CONFIG_ARGV_PROGRAM, CONFIG_ARGV_FULL, CONFIG_ARGV_NONE };
enum config_paths { CONFIG_PATHS_SHORT, CONFIG_PATHS_FULL };

#define CONFIG_NUMBER(field, max) uint64_t field;
#define CONFIG_FLAG(field, max) uint64_t field;
#define CONFIG_CHOICE(field, max) uint64_t field;
#define CONFIG_SET(field, max) uint64_t field;
#define CONFIG_TEXT(field, max) char field[(max) + 1];

struct config {
#define OPTION(TYPE, field, NAME, DEFAULT, MIN, MAX, WORDS, META, HELP) CONFIG_##TYPE(field, MAX)
#include "preload/options.inc"
#undef OPTION
};

enum config_type { OPTION_NUMBER, OPTION_FLAG, OPTION_CHOICE, OPTION_SET, OPTION_TEXT };

struct option_row {
    enum config_type type;
    size_t offset;     /* of the field in struct config */
    const char *name, *fallback;
    uint64_t min, max;
    const char *words, *meta, *help;
};
extern const struct option_row config_options[];
extern const size_t config_options_count;

/* Called once for each fault: what is wrong, in a line without "aprof: " and
 * newline, and what the library does about it ("using 100"). */
typedef void config_fault(void *context, const char *line, const char *remedy);

/* Fills config with defaults, then from environment (like environ; NULL: none).
 * Returns the number of faults. */
int config_parse(struct config *config, char *const *environment, config_fault *fault, void *context);

/* Whether the value is one that this option takes; writes it into config. */
bool config_set(struct config *config, const struct option_row *option, const char *value);

/* The value in force as text, as it could be given again. */
void config_show(const struct config *config, const struct option_row *option, char *buffer, size_t size);

/* Splits APROF_TAGS in place into pairs; returns how many (at most `most`).
 * Parts without '=' are faults and left out. */
uint32_t config_tags(char *text, struct metadata_pair *pairs, uint32_t most, config_fault *fault, void *context);

enum { CONFIG_LABELS_MOST = 8 };

/* Splits APROF_LABEL in place into names; returns how many (at most `most`). Names that are no identifiers are faults
 * and left out. */
uint32_t config_labels(char *text, const char **names, uint32_t most, config_fault *fault, void *context);

#endif
