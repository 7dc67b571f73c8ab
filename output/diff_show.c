/* SPDX-License-Identifier: MIT
 *
 * Changes and bounds are points, differences of per cents; shares are per cents.
 */
#include "output/diff_show.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "output/document.h"
#include "output/human.h"
#include "output/sentence.h"
#include "output/table.h"
#include "output/tool.h"

#define POINTS 100
#define NUMBER_COLUMNS 67 /* of a row of changes, before the name */
#define ONLY_COLUMNS 28   /* ... of a row that one side has */
#define ONLY_LEAST 0.001  /* of a share that only one side has, to be a row: single looks at start-up come and go */

static const char *const amount_names[COMPARE_AMOUNTS] = { "self", "total" };
static const char *const only_names[COMPARE_SIDES] = { "gone", "appeared" }; /* by the side that has them */

/* Rows to show of so many. */
static size_t shown_of(const struct diff *diff, size_t count)
{
    return diff->top && diff->top < count ? diff->top : count;
}

/* Of rows that only one side has. */
static size_t only_shown_of(const struct diff *diff, int side, const struct compare_row *const *rows, size_t count)
{
    size_t shown = 0, most = shown_of(diff, count);
    while (shown < most && rows[shown]->amounts[COMPARE_TOTAL].shares[side] >= ONLY_LEAST)
        shown++;
    return shown;
}

/* ---- words ---------------------------------------------------------------- */

static bool side_is_unknown(const struct noise_side *side)
{
    return !(side->looks > 0) && (side->blocks == NOISE_LOOKS || side->count < 2);
}

/* What a side's noise was found from. */
static char *blocks_text(const struct noise_side *side, char *buffer, size_t size)
{
    static const char *const names[] = {
        [NOISE_RUNS] = "runs", [NOISE_WINDOWS] = "spans of one run", [NOISE_PROCESSES] = "processes of one run" };
    if (side->blocks != NOISE_LOOKS && side->count >= 2)
        snprintf(buffer, size, "%.0f %s", side->count, names[side->blocks]);
    else if (side_is_unknown(side))
        snprintf(buffer, size, "nothing");
    else
        snprintf(buffer, size, "%.0f looks of one run (each counts %.2g)", side->looks, 1 / NOISE_INFLATION);
    return buffer;
}

static bool is_of_one_run(const struct compare *compare)
{
    return compare->sides[COMPARE_BASE].blocks != NOISE_RUNS || compare->sides[COMPARE_NEW].blocks != NOISE_RUNS;
}

static bool is_known(const struct compare_share *share)
{
    return !isinf(share->bound);
}

/* "beyond noise +-0.9" */
static char *bound_text(char buffer[HUMAN_SIZE], const struct compare_share *share)
{
    if (is_known(share))
        snprintf(buffer, HUMAN_SIZE, "%s noise +-%.1f", compare_is_beyond(share) ? "beyond" : "within", share->bound * POINTS);
    else
        snprintf(buffer, HUMAN_SIZE, "noise not known");
    return buffer;
}

static const char *direction(const struct compare_row *row, const struct compare_share *share)
{
    const struct noise_part *parts = row->amounts[COMPARE_TOTAL].parts;
    if (!compare_is_beyond(share))
        return "";
    if (share->change > 0)
        return parts[COMPARE_BASE].sum > 0 ? "grew" : "appeared";
    return parts[COMPARE_NEW].sum > 0 ? "shrank" : "gone";
}

static size_t beyond_count(const struct diff *diff, bool grown)
{
    size_t count = 0;
    for (size_t at = 0; at < diff->sections_count; at++) {
        const struct compare *compare = diff->sections[at].compare;
        for (size_t row = 0; row < compare->count; row++)
            for (int amount = 0; amount < COMPARE_AMOUNTS; amount++) {
                const struct compare_share *share = &compare->rows[row].amounts[amount];
                count += compare_is_beyond(share) && (share->change > 0) == grown;
            }
    }
    return count;
}

/* ---- text ----------------------------------------------------------------- */

static void print_side(const struct diff_side *side)
{
    char time[HUMAN_SIZE];
    const struct quality *quality = side->quality;
    const char *path = side->paths[0];
    struct sentence line = { .label = side->title, .between = ", " };
    sentence_add(&line, "%s%s", path, side->paths_count > 1 ? " and others" : "");
    sentence_add(&line, "%u run%s", quality->runs, tool_plural(quality->runs));
    sentence_add(&line, "%u process%s", quality->processes_count, quality->processes_count == 1 ? "" : "es");
    sentence_add(&line, "%" PRIu64 " samples", quality->samples);
    sentence_add(&line, "%s of CPU time", human_time(time, quality->process_cpu_us));
    sentence_end(&line);
}

static void print_noise(const struct diff *diff, const struct diff_section *section)
{
    char base[64], new_blocks[64], before[HUMAN_SIZE], after[HUMAN_SIZE];
    const struct compare *compare = section->compare;
    printf("%-11s%s -> %s, %s\n", section->metric, kind_amount(before, section->kind, tally_sum(section->tallies[COMPARE_BASE])),
           kind_amount(after, section->kind, tally_sum(section->tallies[COMPARE_NEW])), section->kind->what);
    if (side_is_unknown(&compare->sides[COMPARE_BASE]) || side_is_unknown(&compare->sides[COMPARE_NEW])) {
        printf("%-11snot known: there is no metadata and but one run, window and process\n", "noise");
        return;
    }
    struct sentence line = { .label = "noise", .between = "; " };
    sentence_add(&line, "from %s -> %s", blocks_text(&compare->sides[COMPARE_BASE], base, sizeof base),
                 blocks_text(&compare->sides[COMPARE_NEW], new_blocks, sizeof new_blocks));
    sentence_add(&line, "where nothing changed, all %zu shares are within it with %.0f%% confidence", diff->tests, NOISE_CONFIDENCE * POINTS);
    sentence_end(&line);
    if (is_of_one_run(compare))
        printf("%-11sone run says nothing of how runs differ: %.0f%% in the speed of a function is assumed\n", "", NOISE_DRIFT * POINTS);
}

static void print_change(const struct compare_row *row, const struct compare_share *share, const struct table_names *names)
{
    char bound[HUMAN_SIZE];
    enum human_style style = !compare_is_beyond(share) ? HUMAN_PLAIN : share->change > 0 ? HUMAN_BAD : HUMAN_GOOD;
    printf("%s%8s  %+6.1f points%s, %5.1f%% -> %5.1f%%, %-19s  ", human_on(names->colour, style), direction(row, share),
           share->change * POINTS, human_off(names->colour, style), share->shares[COMPARE_BASE] * POINTS,
           share->shares[COMPARE_NEW] * POINTS, bound_text(bound, share));
    table_name(names, row->name, row->place);
}

static void print_changes(const struct diff *diff, const struct diff_section *section, int amount, bool colour)
{
    const struct compare_row **rows;
    size_t count = compare_changes(section->compare, amount, &rows), shown = shown_of(diff, count);
    const struct table_names names = {
        .room = table_room(human_columns(), NUMBER_COLUMNS), .are_paths = diff->by == TALLY_FILE, .colour = colour };
    putchar('\n');
    table_heading(colour, "%s by %s", section->metric, amount_names[amount]);
    for (size_t at = 0; at < shown; at++)
        print_change(rows[at], &rows[at]->amounts[amount], &names);
    if (shown < count)
        printf("%*s... %zu more\n", NUMBER_COLUMNS, "", count - shown);
    free(rows);
}

static void print_only(const struct diff *diff, const struct diff_section *section, int side, bool colour)
{
    const struct compare_row **rows;
    size_t count = compare_only(section->compare, side, &rows), shown = only_shown_of(diff, side, rows, count);
    const struct table_names names = {
        .room = table_room(human_columns(), ONLY_COLUMNS), .are_paths = diff->by == TALLY_FILE, .colour = colour };
    if (shown) {
        putchar('\n');
        table_heading(colour, "%s: %s, only in %s", section->metric, only_names[side], diff->sides[side].title);
    }
    for (size_t at = 0; at < shown; at++) {
        printf("%5.1f%% self  %5.1f%% total  ", rows[at]->amounts[COMPARE_SELF].shares[side] * POINTS,
               rows[at]->amounts[COMPARE_TOTAL].shares[side] * POINTS);
        table_name(&names, rows[at]->name, rows[at]->place);
    }
    if (shown && shown < count)
        printf("%*s... %zu more\n", ONLY_COLUMNS, "", count - shown);
    free(rows);
}

static void print_verdict(const struct diff *diff)
{
    if (diff->is_undecided && !diff->failures_count)
        puts("\ngate: cannot decide: too few samples");
    else if (diff->failures_count)
        printf("\ngate: failed: %zu share%s grew by more than %.4g points beyond noise\n", diff->failures_count,
               tool_plural(diff->failures_count), diff->fail_over);
    else
        printf("\ngate: passed: no share of %zu grew by more than %.4g points beyond noise\n", diff->tests, diff->fail_over);
}

void diff_show_text(const struct diff *diff)
{
    bool colour = human_wants_colour();
    for (int side = 0; side < COMPARE_SIDES; side++)
        print_side(&diff->sides[side]);
    for (size_t at = 0; at < diff->notes_count; at++)
        printf("%-11s%s\n", at ? "" : "note", diff->notes[at]);
    for (size_t at = 0; at < diff->sections_count; at++) {
        const struct diff_section *section = &diff->sections[at];
        print_noise(diff, section);
        for (int amount = 0; amount < COMPARE_AMOUNTS; amount++)
            print_changes(diff, section, amount, colour);
        for (int side = COMPARE_SIDES; side-- > 0;)
            print_only(diff, section, side, colour);
        fputs(at + 1 < diff->sections_count ? "\n" : "", stdout);
    }
    if (diff->gates)
        print_verdict(diff);
}

/* ---- JSON ----------------------------------------------------------------- */

static json_t *json_side(const struct diff_side *side)
{
    const struct quality *quality = side->quality;
    const struct document_count counts[] = {
        { "processes", quality->processes_count }, { "runs", quality->runs },
        { "windows", quality->windows },           { "samples", quality->samples },
        { "covered_us", quality->covered_us },     { "process_cpu_us", quality->process_cpu_us },
    };
    json_t *object = json_object();
    document_counts(object, counts, sizeof counts / sizeof *counts);
    json_object_set_new(object, "rate_asked", json_pack("{sf sf}", "least", quality->asked_least, "most", quality->asked_most));
    return object;
}

static json_t *json_blocks(const struct diff_section *section, int side)
{
    static const char *const names[] = {
        [NOISE_RUNS] = "runs", [NOISE_WINDOWS] = "windows", [NOISE_PROCESSES] = "processes", [NOISE_LOOKS] = "none" };
    const struct noise_side *noise = &section->compare->sides[side];
    json_t *object = json_object();
    json_object_set_new(object, "total", document_number(tally_sum(section->tallies[side])));
    json_object_set_new(object, "blocks", document_number((uint64_t)noise->count));
    json_object_set_new(object, "blocks_are", json_string(names[noise->blocks]));
    json_object_set_new(object, "looks", document_number((uint64_t)noise->looks));
    return object;
}

static json_t *json_share(const struct compare_row *row, int amount)
{
    const struct compare_share *share = &row->amounts[amount];
    json_t *object = json_object();
    json_object_set_new(object, "name", document_text(row->name));
    json_object_set_new(object, "place", document_text(row->place));
    json_object_set_new(object, "of", json_string(amount_names[amount]));
    json_object_set_new(object, "base", json_real(share->shares[COMPARE_BASE] * POINTS));
    json_object_set_new(object, "new", json_real(share->shares[COMPARE_NEW] * POINTS));
    json_object_set_new(object, "change", json_real(share->change * POINTS));
    json_object_set_new(object, "noise", is_known(share) ? json_real(share->bound * POINTS) : json_null());
    json_object_set_new(object, "is_beyond", json_boolean(compare_is_beyond(share)));
    return object;
}

static json_t *json_shares(const struct diff *diff, const struct diff_section *section)
{
    json_t *array = json_array();
    for (int amount = 0; amount < COMPARE_AMOUNTS; amount++) {
        const struct compare_row **rows;
        size_t shown = shown_of(diff, compare_changes(section->compare, amount, &rows));
        for (size_t at = 0; at < shown; at++)
            json_array_append_new(array, json_share(rows[at], amount));
        free(rows);
    }
    return array;
}

static json_t *json_only(const struct diff *diff, const struct diff_section *section, int side)
{
    const struct compare_row **rows;
    size_t shown = shown_of(diff, compare_only(section->compare, side, &rows));
    json_t *array = json_array();
    for (size_t at = 0; at < shown; at++) {
        json_t *object = json_object();
        json_object_set_new(object, "name", document_text(rows[at]->name));
        json_object_set_new(object, "place", document_text(rows[at]->place));
        for (int amount = 0; amount < COMPARE_AMOUNTS; amount++)
            json_object_set_new(object, amount_names[amount], json_real(rows[at]->amounts[amount].shares[side] * POINTS));
        json_array_append_new(array, object);
    }
    free(rows);
    return array;
}

static json_t *json_section(const struct diff *diff, const struct diff_section *section)
{
    json_t *object = json_object();
    json_object_set_new(object, "unit", json_string(kind_unit_name(section->kind)));
    json_object_set_new(object, "by", json_string(tally_by_name(diff->by)));
    json_object_set_new(object, "base", json_blocks(section, COMPARE_BASE));
    json_object_set_new(object, "new", json_blocks(section, COMPARE_NEW));
    json_object_set_new(object, "factor", json_real(section->compare->factor));
    json_object_set_new(object, "shares", json_shares(diff, section));
    json_object_set_new(object, only_names[COMPARE_NEW], json_only(diff, section, COMPARE_NEW));
    json_object_set_new(object, only_names[COMPARE_BASE], json_only(diff, section, COMPARE_BASE));
    return object;
}

static json_t *json_gate(const struct diff *diff)
{
    if (!diff->gates)
        return json_null();
    json_t *shares = json_array();
    for (size_t at = 0; at < diff->failures_count; at++) {
        json_t *share = json_share(diff->failures[at].row, diff->failures[at].amount);
        json_object_set_new(share, "metric", document_text(diff->failures[at].section->metric));
        json_array_append_new(shares, share);
    }
    return json_pack("{sf sb sb so}", "fail_over", diff->fail_over, "has_failed", diff->failures_count > 0, "undecided",
                     diff->is_undecided && !diff->failures_count, "shares", shares);
}

void diff_show_json(const struct diff *diff)
{
    json_t *notes = json_array(), *metrics = json_object();
    for (size_t at = 0; at < diff->notes_count; at++)
        json_array_append_new(notes, json_string(diff->notes[at]));
    for (size_t at = 0; at < diff->sections_count; at++)
        json_object_set_new(metrics, diff->sections[at].metric, json_section(diff, &diff->sections[at]));
    document_print(json_pack("{ss si so so so s{sf sI} so so}", "aprof", APROF_VERSION, "format", 1, "base",
                             json_side(&diff->sides[COMPARE_BASE]), "new", json_side(&diff->sides[COMPARE_NEW]), "notes", notes,
                             "noise", "confidence_percent", NOISE_CONFIDENCE * POINTS, "tests", (json_int_t)diff->tests,
                             "metrics", metrics, "gate", json_gate(diff)));
}

/* ---- Markdown ------------------------------------------------------------- */

static size_t longest_run(const char *text, char of)
{
    size_t longest = 0, run = 0;
    for (; *text; text++) {
        run = *text == of ? run + 1 : 0;
        longest = run > longest ? run : longest;
    }
    return longest;
}

/* As code in a cell of a table: literal but for '|', which ends a cell even there,
 * between more backticks than it has in a row. */
static void mark_code(const char *text)
{
    char *clean = human_text(*text ? text : "\"\"", *text ? strlen(text) : 2, 0, false);
    size_t ticks = longest_run(clean, '`') + 1;
    const char *space = ticks > 1 ? " " : "";
    for (size_t at = 0; at < ticks; at++)
        putchar('`');
    fputs(space, stdout);
    for (const char *at = clean; *at; at++)
        printf(*at == '|' ? "\\%c" : "%c", *at);
    fputs(space, stdout);
    for (size_t at = 0; at < ticks; at++)
        putchar('`');
    free(clean);
}

static void mark_name(const struct compare_row *row)
{
    mark_code(row->name);
    if (*row->place) {
        putchar(' ');
        mark_code(row->place);
    }
}

static void mark_change(const struct compare_row *row, int amount)
{
    const struct compare_share *share = &row->amounts[amount];
    const char *bold = compare_is_beyond(share) ? "**" : "";
    printf("| %s | %s%+.1f%s | %.1f %% → %.1f %% | ", direction(row, share), bold, share->change * POINTS, bold,
           share->shares[COMPARE_BASE] * POINTS, share->shares[COMPARE_NEW] * POINTS);
    if (is_known(share))
        printf("±%.1f", share->bound * POINTS);
    else
        fputs("not known", stdout);
    printf(" | %s | ", amount_names[amount]);
    mark_name(row);
    puts(" |");
}

/* Those beyond noise, or those within it. Returns how many there are. */
static size_t mark_changes(const struct diff *diff, const struct diff_section *section, bool beyond, bool print)
{
    size_t all = 0;
    for (int amount = 0; amount < COMPARE_AMOUNTS; amount++) {
        const struct compare_row **rows;
        size_t count = compare_changes(section->compare, amount, &rows), seen = 0;
        for (size_t at = 0; at < count; at++) {
            if (compare_is_beyond(&rows[at]->amounts[amount]) != beyond)
                continue;
            if (print && (seen < diff->top || !diff->top))
                mark_change(rows[at], amount);
            seen++;
        }
        if (print && diff->top && seen > diff->top)
            printf("| | | | | %s | %zu more |\n", amount_names[amount], seen - diff->top);
        all += seen;
        free(rows);
    }
    return all;
}

static void mark_table(const struct diff *diff, const struct diff_section *section, bool beyond)
{
    printf("\n| | points | %s → %s | noise | of | %s |\n|---|---:|---:|---:|---|---|\n", diff->sides[COMPARE_BASE].title,
           diff->sides[COMPARE_NEW].title, tally_by_name(diff->by));
    mark_changes(diff, section, beyond, true);
}

static void mark_only(const struct diff *diff, const struct diff_section *section, int side)
{
    const struct compare_row **rows;
    size_t count = compare_only(section->compare, side, &rows), shown = only_shown_of(diff, side, rows, count);
    if (shown)
        printf("\n<details><summary>%zu %s</summary>\n\n| self | total | %s |\n|---:|---:|---|\n", count, only_names[side], tally_by_name(diff->by));
    for (size_t at = 0; at < shown; at++) {
        printf("| %.1f %% | %.1f %% | ", rows[at]->amounts[COMPARE_SELF].shares[side] * POINTS,
               rows[at]->amounts[COMPARE_TOTAL].shares[side] * POINTS);
        mark_name(rows[at]);
        puts(" |");
    }
    if (shown && shown < count)
        printf("| | | %zu more |\n", count - shown);
    fputs(shown ? "\n</details>\n" : "", stdout);
    free(rows);
}

static void mark_section(const struct diff *diff, const struct diff_section *section)
{
    char base[64], new_blocks[64];
    printf("\n**%s**, noise from %s → %s\n", section->metric, blocks_text(&section->compare->sides[COMPARE_BASE], base, sizeof base),
           blocks_text(&section->compare->sides[COMPARE_NEW], new_blocks, sizeof new_blocks));
    if (mark_changes(diff, section, true, false))
        mark_table(diff, section, true);
    size_t within = mark_changes(diff, section, false, false);
    if (within) {
        printf("\n<details><summary>%zu within noise</summary>\n", within);
        mark_table(diff, section, false);
        puts("\n</details>");
    }
    for (int side = COMPARE_SIDES; side-- > 0;)
        mark_only(diff, section, side);
}

static void mark_headline(const struct diff *diff)
{
    size_t grew = beyond_count(diff, true), shrank = beyond_count(diff, false);
    fputs("### aprof: ", stdout);
    if (diff->failures_count)
        printf("%zu share%s grew by more than %.4g points beyond noise\n", diff->failures_count, tool_plural(diff->failures_count), diff->fail_over);
    else if (diff->gates && diff->is_undecided)
        puts("cannot decide: too few samples");
    else if (grew || shrank)
        printf("%zu share%s grew, %zu shrank\n", grew, tool_plural(grew), shrank);
    else
        puts("no change beyond noise");
}

void diff_show_markdown(const struct diff *diff)
{
    mark_headline(diff);
    fputs(diff->notes_count ? "\n" : "", stdout);
    for (size_t at = 0; at < diff->notes_count; at++) {
        fputs("- ", stdout);
        mark_code(diff->notes[at]);
        putchar('\n');
    }
    for (size_t at = 0; at < diff->sections_count; at++)
        mark_section(diff, &diff->sections[at]);
    printf("\nWhere nothing has changed, all of the %zu shares looked at are within noise with %.0f %% confidence.\n", diff->tests,
           NOISE_CONFIDENCE * POINTS);
}
