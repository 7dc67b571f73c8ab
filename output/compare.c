/* SPDX-License-Identifier: MIT
 *
 * Both sides are matched by their rows' text; then each share is a test of its own.
 */
#include "output/compare.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "output/names.h"
#include "output/tool.h"

/* ---- matching ------------------------------------------------------------- */

struct match {
    struct compare *compare;
    struct names *keys; /* name, NUL, place: the number is that of the row */
    size_t room;
};

static struct compare_row *row_of(struct match *match, const char *name, const char *place)
{
    char small[2048], *key = small;
    size_t name_size = strlen(name) + 1, place_size = strlen(place);
    if (name_size + place_size > sizeof small)
        key = tool_alloc(name_size + place_size, 1);
    memcpy(key, name, name_size);
    memcpy(key + name_size, place, place_size);
    uint32_t number = names_add(match->keys, key, name_size + place_size);
    if (key != small)
        free(key);
    struct compare *compare = match->compare;
    if (number == compare->count) {
        compare->rows = tool_grow(compare->rows, compare->count, &match->room, sizeof *compare->rows);
        compare->rows[compare->count++] = (struct compare_row){ .name = name, .place = place };
    }
    return &compare->rows[number];
}

static struct noise_part part_of(uint64_t sum, const struct tally_blocks *blocks)
{
    return (struct noise_part){ (double)sum, blocks->squares, blocks->cross };
}

static void side_add(struct match *match, struct tally *tally, int side)
{
    const struct tally_row *rows;
    size_t count = tally_by_total(tally, &rows);
    for (size_t at = 0; at < count; at++) {
        struct compare_row *row = row_of(match, rows[at].name, rows[at].place);
        row->amounts[COMPARE_SELF].parts[side] = part_of(rows[at].self, &rows[at].self_blocks);
        row->amounts[COMPARE_TOTAL].parts[side] = part_of(rows[at].total, &rows[at].total_blocks);
    }
}

/* ---- tests ---------------------------------------------------------------- */

/* The share of both sides together, each counting the same: what it is when there
 * is no difference. */
static double together(const struct compare_share *share)
{
    return (share->shares[COMPARE_BASE] + share->shares[COMPARE_NEW]) / 2;
}

static void share_set(const struct compare *compare, struct compare_share *share)
{
    for (int side = 0; side < COMPARE_SIDES; side++)
        share->shares[side] = noise_share(&compare->sides[side], &share->parts[side]);
    share->change = share->shares[COMPARE_NEW] - share->shares[COMPARE_BASE];
    share->is_tested = together(share) >= COMPARE_FLOOR;
}

static int test_compare(const void *left, const void *right)
{
    const struct compare_share *one = *(struct compare_share *const *)left, *other = *(struct compare_share *const *)right;
    return memcmp(one->parts, other->parts, sizeof one->parts);
}

/* Those that are tested, once each where they are equal. */
static size_t tests_collect(struct compare *compare, struct compare_share **tests)
{
    size_t count = 0, different = 0;
    for (size_t at = 0; at < compare->count; at++)
        for (int amount = 0; amount < COMPARE_AMOUNTS; amount++)
            if (compare->rows[at].amounts[amount].is_tested)
                tests[count++] = &compare->rows[at].amounts[amount];
    if (count)
        qsort(tests, count, sizeof *tests, test_compare);
    for (size_t at = 0; at < count; at++)
        if (!different || test_compare(&tests[different - 1], &tests[at]))
            tests[different++] = tests[at];
    return different;
}

static void tests_find(struct compare *compare)
{
    struct compare_share **tests = tool_alloc(compare->count * COMPARE_AMOUNTS, sizeof *tests);
    double seen = 0, expected = 0;
    compare->tests = tests_collect(compare, tests);
    for (size_t at = 0; at < compare->tests; at++)
        for (int side = 0; side < COMPARE_SIDES; side++) {
            seen += noise_seen(&compare->sides[side], &tests[at]->parts[side]);
            expected += noise_expected(&compare->sides[side], together(tests[at]));
        }
    compare->factor = noise_factor(compare->sides, seen, expected);
    free(tests);
}

struct compare *compare_new(struct tally *const tallies[COMPARE_SIDES], const struct noise_side sides[COMPARE_SIDES])
{
    struct compare *compare = tool_alloc(1, sizeof *compare);
    struct match match = { .compare = compare, .keys = names_new() };
    memcpy(compare->sides, sides, sizeof compare->sides);
    for (int side = 0; side < COMPARE_SIDES; side++)
        side_add(&match, tallies[side], side);
    names_free(match.keys);
    for (size_t at = 0; at < compare->count; at++)
        for (int amount = 0; amount < COMPARE_AMOUNTS; amount++)
            share_set(compare, &compare->rows[at].amounts[amount]);
    tests_find(compare);
    return compare;
}

void compare_free(struct compare *compare)
{
    if (!compare)
        return;
    free(compare->rows);
    free(compare);
}

void compare_bound(struct compare *compare, size_t tests)
{
    for (size_t at = 0; at < compare->count; at++)
        for (int amount = 0; amount < COMPARE_AMOUNTS; amount++) {
            struct compare_share *share = &compare->rows[at].amounts[amount];
            double bound = share->is_tested ? noise_bound(compare->sides, share->parts, together(share), compare->factor, (double)tests) : 0;
            share->bound = isinf(bound) ? bound : fmin(bound, 1); /* shares differ by no more */
        }
}

/* ---- order ---------------------------------------------------------------- */

static int names_compare(const struct compare_row *one, const struct compare_row *other)
{
    int order = strcmp(one->name, other->name);
    return order ? order : strcmp(one->place, other->place);
}

static int change_compare(const void *left, const void *right, void *context)
{
    const struct compare_row *one = *(struct compare_row *const *)left, *other = *(struct compare_row *const *)right;
    const struct compare_share *mine = &one->amounts[*(int *)context], *its = &other->amounts[*(int *)context];
    bool beyond = compare_is_beyond(mine);
    if (beyond != compare_is_beyond(its))
        return beyond ? -1 : 1;
    double change = fabs(mine->change), its_change = fabs(its->change);
    if (change < its_change || change > its_change)
        return change < its_change ? 1 : -1;
    return names_compare(one, other);
}

size_t compare_changes(const struct compare *compare, int amount, const struct compare_row ***rows)
{
    size_t count = 0;
    *rows = tool_alloc(compare->count, sizeof **rows);
    for (size_t at = 0; at < compare->count; at++)
        if (compare->rows[at].amounts[amount].is_tested)
            (*rows)[count++] = &compare->rows[at];
    qsort_r(*rows, count, sizeof **rows, change_compare, &amount);
    return count;
}

static int total_compare(const void *left, const void *right, void *context)
{
    const struct compare_row *one = *(struct compare_row *const *)left, *other = *(struct compare_row *const *)right;
    double mine = one->amounts[COMPARE_TOTAL].shares[*(int *)context], its = other->amounts[COMPARE_TOTAL].shares[*(int *)context];
    if (mine < its || mine > its)
        return mine < its ? 1 : -1;
    return names_compare(one, other);
}

size_t compare_only(const struct compare *compare, int side, const struct compare_row ***rows)
{
    size_t count = 0;
    *rows = tool_alloc(compare->count, sizeof **rows);
    for (size_t at = 0; at < compare->count; at++) {
        const struct noise_part *parts = compare->rows[at].amounts[COMPARE_TOTAL].parts;
        if (parts[side].sum > 0 && !(parts[1 - side].sum > 0))
            (*rows)[count++] = &compare->rows[at];
    }
    qsort_r(*rows, count, sizeof **rows, total_compare, &side);
    return count;
}
