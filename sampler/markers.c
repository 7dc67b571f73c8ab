/* SPDX-License-Identifier: MIT
 *
 * markers: numbers are places in the table and one more; what is free is linked. Texts
 * are found by their hashes, in slots that are filled anew for each window. */
#include "sampler/markers.h"

#include <string.h>

#include "sampler/text.h"

enum {
    SLOTS = 2048,            /* a power of two, at least twice the texts */
    OTHERS = MARKERS_MOST + 1 /* the number of [task ~] */
};
_Static_assert(SLOTS >= 2 * MARKERS_MOST, "half of the slots stay empty");

#define PREFIX "[task "
#define PREFIX_LENGTH (sizeof PREFIX - 1)
#define OTHERS_TEXT "[task ~]"

struct text {
    uint64_t hash;       /* 0: free */
    profile_frame frame; /* 0: not yet made in this window */
    uint16_t length;
    bool kept;
    char text[TEXT_FOLDED_MAX];
};

bool markers_tasks_asked;

static struct {
    struct text text[MARKERS_MOST];
    marker_id slot[SLOTS];  /* 0: empty */
    uint32_t used, top;  /* texts; numbers given out so far end before top + 1 */
    profile_frame others;
    uint64_t refused;
} table;

void markers_ask_for_tasks(bool asked)
{
    markers_tasks_asked = asked;
}

/* Where a text of this hash is, or would be. */
static marker_id *slot_of(uint64_t hash)
{
    uint32_t at = (uint32_t)(hash >> 32) & (SLOTS - 1);
    while (table.slot[at] && table.text[table.slot[at] - 1].hash != hash)
        at = (at + 1) & (SLOTS - 1);
    return &table.slot[at];
}

/* The lowest free number is found from the first one on only when some were given back. */
static marker_id free_number(void)
{
    if (table.used == table.top)
        return (marker_id)(++table.top);
    for (uint32_t i = 0; i < table.top; i++)
        if (!table.text[i].hash)
            return (marker_id)(i + 1);
    return 0;
}

marker_id markers_of_task(const char *name, uint32_t length)
{
    uint64_t hash = text_hash(name, length);
    marker_id *slot = slot_of(hash);
    if (length == 0 || length > TEXT_FOLDED_MAX)
        return 0;
    if (*slot)
        return *slot;
    if (table.used == MARKERS_MOST) {
        table.refused++;
        return OTHERS;
    }
    *slot = free_number();
    struct text *text = &table.text[*slot - 1];
    *text = (struct text){.hash = hash, .length = (uint16_t)length};
    memcpy(text->text, name, length);
    table.used++;
    return *slot;
}

uint64_t markers_hash(marker_id number)
{
    return number == 0 ? 0 : number > MARKERS_MOST ? 1 : table.text[number - 1].hash;
}

profile_frame markers_frame(struct profile *profile, marker_id number)
{
    char whole[PREFIX_LENGTH + TEXT_FOLDED_MAX + 1] = PREFIX;
    if (number == OTHERS)
        return table.others ? table.others : (table.others = profile_intern(profile, OTHERS_TEXT, sizeof OTHERS_TEXT - 1, 0));
    struct text *text = number && number < OTHERS ? &table.text[number - 1] : NULL;
    if (!text || !text->hash)
        return 0;
    if (!text->frame) {
        memcpy(whole + PREFIX_LENGTH, text->text, text->length);
        whole[PREFIX_LENGTH + text->length] = ']';
        text->frame = profile_intern(profile, whole, PREFIX_LENGTH + text->length + 1, 0);
    }
    return text->frame;
}

void markers_begin_window(void)
{
    table.others = 0;
    for (uint32_t i = 0; i < table.top; i++) {
        table.text[i].frame = 0;
        table.text[i].kept = false;
    }
}

void markers_keep(marker_id number)
{
    if (number && number <= table.top)
        table.text[number - 1].kept = true;
}

void markers_end_keeping(void)
{
    uint32_t top = table.top;
    if (!table.used)
        return;
    memset(table.slot, 0, sizeof table.slot);
    table.used = table.top = 0;
    for (uint32_t i = 0; i < top; i++) {
        struct text *text = &table.text[i];
        if (!text->kept)
            text->hash = 0;
        if (!text->hash)
            continue;
        *slot_of(text->hash) = (marker_id)(i + 1);
        table.used++;
        table.top = i + 1;
    }
}

void markers_count(struct counters *counters)
{
    counters->limits[LIMIT_task_names] += table.refused;
    table.refused = 0;
}
