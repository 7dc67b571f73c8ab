/* SPDX-License-Identifier: MIT
 *
 * Each distinct text is cut up once; after that a frame costs one look into the
 * table of texts. A key is name, NUL, place: the reader lets no NUL through.
 */
#include "output/frames.h"

#include <stdlib.h>
#include <string.h>

#include "output/names.h"
#include "output/spool_format.h"
#include "output/tool.h"

struct frames {
    bool by_line;
    struct names *texts, *keys;
    uint32_t *key_of_text;
    size_t texts_room;
};

struct frames *frames_new(bool by_line)
{
    struct frames *frames = tool_alloc(1, sizeof *frames);
    frames->by_line = by_line;
    frames->texts = names_new();
    frames->keys = names_new();
    return frames;
}

void frames_free(struct frames *frames)
{
    if (!frames)
        return;
    names_free(frames->texts);
    names_free(frames->keys);
    free(frames->key_of_text);
    free(frames);
}

static uint32_t key_make(struct frames *frames, const char *text, size_t length)
{
    struct spool_frame parts = { .name_length = length };
    size_t place_length = 0;
    if (spool_frame_split(text, length, &parts))
        place_length = frames->by_line ? (size_t)(text + length - 1 - parts.path) : parts.path_length;
    size_t size = parts.name_length + 1 + place_length;
    char *key = tool_alloc(size, 1);
    memcpy(key, text, parts.name_length);
    if (place_length)
        memcpy(key + parts.name_length + 1, parts.path, place_length);
    uint32_t number = names_add(frames->keys, key, size);
    free(key);
    return number;
}

uint32_t frames_add(struct frames *frames, const char *text, size_t length)
{
    uint32_t known = names_count(frames->texts), number = names_add(frames->texts, text, length);
    if (number == known) {
        frames->key_of_text = tool_grow(frames->key_of_text, number, &frames->texts_room, sizeof *frames->key_of_text);
        frames->key_of_text[number] = key_make(frames, text, length);
    }
    return frames->key_of_text[number];
}

uint32_t frames_count(const struct frames *frames)
{
    return names_count(frames->keys);
}

struct frame_text frames_text(const struct frames *frames, uint32_t number)
{
    const char *name = names_text(frames->keys, number, NULL);
    return (struct frame_text){ name, name + strlen(name) + 1 };
}

static int number_compare(const void *left, const void *right, void *context)
{
    struct frame_text one = frames_text(context, *(const uint32_t *)left), other = frames_text(context, *(const uint32_t *)right);
    int order = strcmp(one.name, other.name);
    return order ? order : strcmp(one.place, other.place);
}

uint32_t *frames_sorted(const struct frames *frames)
{
    uint32_t count = frames_count(frames), *sorted = tool_alloc(count + 1u, sizeof *sorted);
    for (uint32_t number = 0; number < count; number++)
        sorted[number] = number;
    qsort_r(sorted, count, sizeof *sorted, number_compare, (void *)frames);
    return sorted;
}
