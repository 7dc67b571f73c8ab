/* SPDX-License-Identifier: MIT
 *
 * markers: a table for each kind. In it numbers are places and one more; what is free
 * is linked to nothing and found by going through. Texts are found by their hashes, in
 * slots that are filled anew for each window. */
#include "sampler/markers.h"

#include <string.h>

#include "hooks/mem.h"
#include "sampler/codes.h"
#include "sampler/cpython/exceptions.h"
#include "sampler/text.h"

enum {
    SLOTS = 2048,             /* a power of two, at least twice the texts */
    OTHERS = MARKERS_MOST + 1, /* in place of a number: [task ~] */
    OF_KIND = 1024,           /* numbers of one kind begin at a multiple of it */
    TASKS = LABELS_MOST,      /* the kinds that are no labels */
    EXCEPTIONS,
    KINDS,
    TEXT_MAX = EXCEPTION_NAME_MAX, /* the longest of all kinds */
    PREFIX_MAX = 130          /* "[", a label's name and "=" */
};
_Static_assert((int)TEXT_MAX >= (int)TEXT_FOLDED_MAX, "all kinds have room");
_Static_assert(SLOTS >= 2 * MARKERS_MOST, "half of the slots stay empty");
_Static_assert(OTHERS < OF_KIND && KINDS * OF_KIND <= UINT16_MAX, "numbers are told apart");

struct text {
    uint64_t hash;       /* 0: free */
    profile_frame frame; /* 0: not yet made in this window */
    uint16_t length;
    bool kept;
    char *text;
};

struct table {
    struct text text[MARKERS_MOST];
    uint16_t slot[SLOTS]; /* place + 1; 0: empty */
    uint32_t used, top;   /* texts; places that were used so far end before top */
    profile_frame others;
    uint64_t refused;
    const char *label;
};

bool markers_tasks_asked;
static struct table tables[KINDS];

void markers_ask_for_tasks(bool asked)
{
    markers_tasks_asked = asked;
}

void markers_name_label(uint32_t label, const char *name)
{
    tables[label].label = name;
}

/* Where a text of this hash is, or would be. */
static uint16_t *slot_of(struct table *table, uint64_t hash)
{
    uint32_t at = (uint32_t)(hash >> 32) & (SLOTS - 1);
    while (table->slot[at] && table->text[table->slot[at] - 1].hash != hash)
        at = (at + 1) & (SLOTS - 1);
    return &table->slot[at];
}

static uint32_t free_place(struct table *table)
{
    uint32_t place = 0;
    if (table->used == table->top)
        return table->top++;
    while (table->text[place].hash)
        place++;
    return place;
}

/* False: there are too many, or there is no memory. */
static bool add(struct table *table, uint16_t *slot, uint64_t hash, const char *name, uint32_t length)
{
    char *copy = table->used < MARKERS_MOST ? mem_alloc(length) : NULL;
    if (!copy)
        return false;
    *slot = (uint16_t)(free_place(table) + 1);
    table->text[*slot - 1] = (struct text){.hash = hash, .length = (uint16_t)length, .text = copy};
    memcpy(copy, name, length);
    table->used++;
    return true;
}

static marker_id number_of(uint32_t kind, const char *name, uint32_t length)
{
    struct table *table = &tables[kind];
    uint64_t hash = text_hash(name, length);
    uint16_t *slot = slot_of(table, hash);
    if (length == 0 || length > TEXT_MAX)
        return 0;
    if (!*slot && !add(table, slot, hash, name, length)) {
        table->refused++;
        return (marker_id)(kind * OF_KIND + OTHERS);
    }
    return (marker_id)(kind * OF_KIND + *slot);
}

marker_id markers_of_task(const char *name, uint32_t length)
{
    return number_of(TASKS, name, length);
}

marker_id markers_of_exception(const char *type, uint32_t length)
{
    if (length)
        return number_of(EXCEPTIONS, type, length);
    tables[EXCEPTIONS].refused++;
    return EXCEPTIONS * OF_KIND + OTHERS;
}

marker_id markers_of_label(uint32_t label, const char *value, uint32_t length)
{
    return number_of(label, value, length);
}

/* NULL: there is none, or it is one of the others. */
static struct text *text_of(marker_id number)
{
    uint32_t place = number % OF_KIND;
    struct text *text = place && place < OTHERS && number / OF_KIND < KINDS ? &tables[number / OF_KIND].text[place - 1] : NULL;
    return text && text->hash ? text : NULL;
}

uint64_t markers_hash(marker_id number)
{
    const struct text *text = text_of(number);
    return text ? text->hash : number; /* the others of a kind are one */
}

static profile_frame make_frame(struct profile *profile, uint32_t kind, const char *value, uint32_t length)
{
    char whole[PREFIX_MAX + TEXT_MAX + 1];
    const char *name = kind == TASKS ? "task" : kind == EXCEPTIONS ? "exception" : tables[kind].label;
    size_t used = strlen(name) + 2;
    if (used > PREFIX_MAX)
        return 0;
    whole[0] = '[';
    memcpy(whole + 1, name, used - 2);
    whole[used - 1] = kind < LABELS_MOST ? '=' : ' ';
    memcpy(whole + used, value, length);
    used += length;
    whole[used++] = ']';
    return profile_intern(profile, whole, used, kind < LABELS_MOST ? CODE_LABEL : 0);
}

profile_frame markers_frame(struct profile *profile, marker_id number)
{
    uint32_t kind = number / OF_KIND;
    struct text *text = text_of(number);
    if (text && !text->frame)
        text->frame = make_frame(profile, kind, text->text, text->length);
    if (text)
        return text->frame;
    if (number % OF_KIND != OTHERS || kind >= KINDS)
        return 0;
    if (!tables[kind].others)
        tables[kind].others = make_frame(profile, kind, "~", 1);
    return tables[kind].others;
}

void markers_begin_window(void)
{
    for (struct table *table = tables; table < tables + KINDS; table++) {
        table->others = 0;
        for (uint32_t i = 0; i < table->top; i++) {
            table->text[i].frame = 0;
            table->text[i].kept = false;
        }
    }
}

void markers_keep(marker_id number)
{
    struct text *text = text_of(number);
    if (text)
        text->kept = true;
}

static void end_keeping(struct table *table)
{
    uint32_t top = table->top;
    memset(table->slot, 0, sizeof table->slot);
    table->used = table->top = 0;
    for (uint32_t i = 0; i < top; i++) {
        struct text *text = &table->text[i];
        if (!text->kept && text->hash) {
            mem_free(text->text);
            text->hash = 0;
        }
        if (!text->hash)
            continue;
        *slot_of(table, text->hash) = (uint16_t)(i + 1);
        table->used++;
        table->top = i + 1;
    }
}

void markers_end_keeping(void)
{
    for (struct table *table = tables; table < tables + KINDS; table++)
        if (table->used)
            end_keeping(table);
}

void markers_count(struct counters *counters)
{
    for (uint32_t kind = 0; kind < KINDS; kind++) {
        enum limit limit = kind == TASKS ? LIMIT_task_names : kind == EXCEPTIONS ? LIMIT_exception_types : LIMIT_labels;
        counters->limits[limit] += tables[kind].refused;
        tables[kind].refused = 0;
    }
}
