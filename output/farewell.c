/* SPDX-License-Identifier: MIT
 *
 * Two rooms take turns, so that a store which comes just as the window changes
 * meets the file that it was meant for.
 */
#include "output/farewell.h"

#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>

#include "hooks/guard.h"

#define ROOM (64u * 1024u) /* longer metadata has no place for a farewell */
#define DEADLINES_MOST 99999999u

static const struct {
    const char *text;
    char word[8 + 1]; /* as it stands in the file, with what parts it from the next key */
} words[] = {
    {"open", "\"open\", "},
    [FAREWELL_EXIT] = {"exit", "\"exit\", "},
    [FAREWELL_EXEC] = {"exec", "\"exec\", "},
    [FAREWELL_EXIT | FAREWELL_EXEC] = {"exec", "\"exec\", "},
};

static _Atomic unsigned intended; /* bits of enum farewell */
static _Atomic(uint64_t *) ended_place, deadline_place;
static _Atomic uint64_t deadline_more; /* the word with the tick that was not taken */

/* What is mapped now. */
static struct {
    char *rooms; /* two; NULL: none yet */
    bool refused;
    unsigned turn;
    uint64_t inode; /* 0: no file */
    size_t length, ended, deadline;
} stand;

void farewell_intend(enum farewell word)
{
    atomic_fetch_or(&intended, (unsigned)word);
}

bool farewell_is_due(void)
{
    return atomic_load(&intended) != 0;
}

const char *farewell_word(void)
{
    return words[atomic_load(&intended)].text;
}

static void store(uint64_t *place, const char *text)
{
    uint64_t word;
    memcpy(&word, text, sizeof word);
    if (place)
        guard_store(place, word);
}

void farewell_say(void)
{
    unsigned word = atomic_load(&intended);
    uint64_t more = atomic_load(&deadline_more);
    store(atomic_load(&ended_place), words[word].word);
    if (word)
        store(atomic_load(&deadline_place), (const char *)&more);
}

void farewell_take_back(void)
{
    if (atomic_fetch_and(&intended, ~(unsigned)FAREWELL_EXEC) & FAREWELL_EXEC)
        farewell_say();
}

/* ---- where ---- */

/* The word behind a key, looked for from an offset on; 0: there is none. A quote
 * inside a JSON string is escaped, so bare ones are a key's. */
static size_t find_word(const char *text, size_t length, size_t from, const char *key)
{
    size_t size = strlen(key);
    const char *at = memmem(text + from, length - from, key, size);
    size_t offset = at ? ((size_t)(at - text) + size + 7) / 8 * 8 : 0;
    return offset + 8 <= length ? offset : 0;
}

/* Right-aligned digits, and one more where that has not been counted; what does not
 * fit is left as it is. */
static uint64_t count_of(const char *text, bool one_more)
{
    uint64_t number = 0, word;
    char digits[8];
    for (unsigned i = 0; i < sizeof digits; i++)
        number = text[i] == ' ' ? number : number * 10 + (uint64_t)(text[i] - '0');
    number += one_more && number < DEADLINES_MOST;
    for (unsigned i = sizeof digits; i > 0; i--, number /= 10)
        digits[i - 1] = number || i == sizeof digits ? (char)('0' + number % 10) : ' ';
    memcpy(&word, digits, sizeof word);
    return word;
}

static bool have_rooms(void)
{
    if (stand.rooms || stand.refused)
        return stand.rooms;
    char *rooms = mmap(NULL, 2 * ROOM, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    stand.refused = rooms == MAP_FAILED;
    if (stand.refused)
        return false;
    madvise(rooms, 2 * ROOM, MADV_DONTFORK);
    stand.rooms = rooms;
    return true;
}

/* A refusal leaves a hole that is anybody's: never again. */
static bool put_into(char *room, size_t length, int fd)
{
    void *got = fd >= 0 ? mmap(room, length, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd, 0)
                        : mmap(room, length, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
    if (got == MAP_FAILED) {
        stand.rooms = NULL;
        stand.refused = true;
        return false;
    }
    madvise(room, length, MADV_DONTFORK);
    return true;
}

static void publish(uint64_t *ended, uint64_t *deadline)
{
    atomic_store(&ended_place, ended);
    atomic_store(&deadline_place, deadline);
}

bool farewell_stands(uint64_t inode, const char *text, size_t length)
{
    size_t ended = find_word(text, length, 0, "\"ended\": ");
    size_t dropped = find_word(text, length, ended, "\"dropped\": {"); /* a tag may have any name, but no braces */
    size_t deadline = find_word(text, length, dropped, "\"deadline\": ");
    if (!ended || !dropped || !deadline || length > ROOM) {
        farewell_nowhere();
        return false;
    }
    atomic_store(&deadline_more, count_of(text + deadline, memcmp(text + ended, words[0].word, 8) == 0));
    if (stand.inode == inode && stand.length == length && stand.ended == ended && stand.deadline == deadline)
        return false; /* mapped, or refused */
    publish(NULL, NULL);
    stand.inode = inode;
    stand.length = length;
    stand.ended = ended;
    stand.deadline = deadline;
    return have_rooms();
}

void farewell_map(int fd)
{
    char *room = stand.rooms + (stand.turn ^= 1) * ROOM;
    if (put_into(room, stand.length, fd))
        publish((uint64_t *)(void *)(room + stand.ended), (uint64_t *)(void *)(room + stand.deadline));
}

/* The files are let go. */
void farewell_nowhere(void)
{
    publish(NULL, NULL);
    if (stand.inode && stand.rooms)
        put_into(stand.rooms, 2 * ROOM, -1);
    stand.inode = 0;
}

void farewell_postfork_child(void)
{
    publish(NULL, NULL);
    memset(&stand, 0, sizeof stand);
    atomic_store(&intended, 0);
}
