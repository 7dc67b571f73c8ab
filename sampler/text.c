/* SPDX-License-Identifier: MIT
 *
 * text: escaping is done one character at a time into a small buffer, so that a
 * cut never falls inside a character or an escape. Escapes stand for bytes: what
 * is not shown as it is becomes the \xNN of each byte of its UTF-8 form. */
#include "sampler/text.h"

#include <string.h> /* memcpy, memcmp, strlen */

#define UNIT_MAX 24 /* longest escaped character: six bytes, four characters each */
#define HASH_TAIL 9 /* '~' and eight digits */

/* FNV-1a, 32 bits: the same name gives the same tail in every process. */
#define HASH_START 2166136261u
#define HASH_STEP 16777619u

static const char hex_digits[16] = {'0', '1', '2', '3', '4', '5', '6', '7', '8', '9', 'a', 'b', 'c', 'd', 'e', 'f'};

/* UTF-8's scheme carried on to 31 bits, so that whatever a torn str holds has a form. */
static size_t utf8_encode(unsigned char out[6], uint32_t c)
{
    if (c < 0x80) {
        out[0] = (unsigned char)c;
        return 1;
    }
    size_t more = c < 0x800 ? 1 : c < 0x10000 ? 2 : c < 0x200000 ? 3 : c < 0x4000000 ? 4 : 5;
    for (size_t i = more; i > 0; i--, c >>= 6)
        out[i] = (unsigned char)(0x80 | (c & 0x3f));
    out[0] = (unsigned char)(0xff << (7 - more) | c);
    return more + 1;
}

static bool is_plain(uint32_t c)
{
    if (c == ';' || c == '\\' || c < 0x20 || (c >= 0x7f && c < 0xa0))
        return false;
    return c < 0xd800 || (c > 0xdfff && c <= 0x10ffff);
}

static size_t escape_bytes(char *out, const unsigned char *bytes, size_t length)
{
    for (size_t i = 0; i < length; i++) {
        *out++ = '\\';
        *out++ = 'x';
        *out++ = hex_digits[bytes[i] >> 4];
        *out++ = hex_digits[bytes[i] & 15];
    }
    return 4 * length;
}

/* One character as it will stand; next decides about a path's " (". */
static size_t escape_character(char out[UNIT_MAX], uint32_t c, uint32_t next, bool path)
{
    unsigned char bytes[6];
    size_t length = utf8_encode(bytes, c & 0x7fffffff);

    if (!is_plain(c) || (path && c == ' ' && next == '('))
        return escape_bytes(out, bytes, length);
    memcpy(out, bytes, length);
    return length;
}

static uint32_t character_at(const void *data, size_t length, int kind, size_t i)
{
    uint16_t two;
    uint32_t four;

    if (i >= length)
        return 0;
    if (kind == 1)
        return ((const uint8_t *)data)[i];
    if (kind == 2) {
        memcpy(&two, (const char *)data + 2 * i, sizeof two);
        return two;
    }
    memcpy(&four, (const char *)data + 4 * i, sizeof four);
    return four;
}

static size_t put_hash(char *out, uint32_t hash)
{
    *out++ = '~';
    for (int shift = 28; shift >= 0; shift -= 4)
        *out++ = hex_digits[hash >> shift & 15];
    return HASH_TAIL;
}

/* A name that passes the longest length ends at the last character that fitted;
 * the rest is only hashed, so that distinct names stay distinct. */
static size_t escape(char *out, size_t size, const void *data, size_t length, int kind, bool path)
{
    char unit[UNIT_MAX];
    uint32_t hash = HASH_START;
    size_t used = 0;
    bool whole = true;

    for (size_t i = 0; i < length; i++) {
        size_t n = escape_character(unit, character_at(data, length, kind, i), character_at(data, length, kind, i + 1), path);
        for (size_t j = 0; j < n; j++)
            hash = (hash ^ (unsigned char)unit[j]) * HASH_STEP;
        whole = whole && used + n <= TEXT_NAME_LONGEST;
        if (!whole)
            continue;
        if (used + n > size)
            return 0;
        memcpy(out + used, unit, n);
        used += n;
    }
    if (whole)
        return used;
    return used + HASH_TAIL > size ? 0 : used + put_hash(out + used, hash);
}

size_t text_name(char *out, size_t size, const void *data, size_t length, int kind)
{
    return escape(out, size, data, length, kind, false);
}

size_t text_path(char *out, size_t size, const void *data, size_t length, int kind)
{
    return escape(out, size, data, length, kind, true);
}

void text_fold_begin(struct text_folding *folding, char *out, bool fold)
{
    *folding = (struct text_folding){.out = out, .hash = HASH_START, .fold = fold};
}

static void fold_character(struct text_folding *folding, uint32_t c)
{
    char unit[UNIT_MAX];
    size_t n = escape_character(unit, c, 0, false);
    for (size_t j = 0; j < n; j++)
        folding->hash = (folding->hash ^ (unsigned char)unit[j]) * HASH_STEP;
    folding->cut = folding->cut || folding->used + n > TEXT_FOLDED_LONGEST;
    if (folding->cut)
        return;
    memcpy(folding->out + folding->used, unit, n);
    folding->used += (uint32_t)n;
}

void text_fold_more(struct text_folding *folding, const void *data, size_t length, int kind)
{
    for (size_t i = 0; i < length; i++) {
        uint32_t c = character_at(data, length, kind, i);
        bool digit = folding->fold && c >= '0' && c <= '9';
        if (!digit)
            fold_character(folding, c);
        else if (!folding->in_digits)
            fold_character(folding, '*');
        folding->in_digits = digit;
    }
}

size_t text_fold_end(struct text_folding *folding)
{
    if (folding->cut)
        folding->used += (uint32_t)put_hash(folding->out + folding->used, folding->hash);
    folding->cut = false;
    return folding->used;
}

/* Behind the last occurrence of word in path; 0: there is none. */
static size_t behind_last(const char *path, size_t length, const char *word)
{
    size_t size = strlen(word);
    for (size_t end = length; end >= size; end--)
        if (memcmp(path + end - size, word, size) == 0)
            return end;
    return 0;
}

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

/* Behind ".../lib/python3.N/" or ".../lib64/python3.N/" (N may carry a letter,
 * as in 3.13t); 0: not there. */
static size_t behind_library(const char *path, size_t length)
{
    static const char word[] = "/python3.";
    const size_t size = sizeof word - 1;

    for (size_t at = 0; at + size < length; at++) {
        if (memcmp(path + at, word, size) != 0 || !is_digit(path[at + size]))
            continue;
        bool below_lib = (at >= 3 && memcmp(path + at - 3, "lib", 3) == 0) || (at >= 5 && memcmp(path + at - 5, "lib64", 5) == 0);
        size_t end = at + size;
        while (end < length && path[end] != '/')
            end++;
        if (below_lib && end < length)
            return end + 1;
    }
    return 0;
}

static bool is_continuation(unsigned char byte)
{
    return (byte & 0xc0) == 0x80;
}

/* The next character of a NUL-terminated byte string. A byte that is no UTF-8
 * becomes the surrogate by which Python decodes it in file names. */
static uint32_t utf8_next(const unsigned char **at)
{
    const unsigned char *s = *at;
    size_t more = s[0] < 0x80 ? 0 : s[0] >= 0xc2 && s[0] < 0xe0 ? 1 : s[0] >= 0xe0 && s[0] < 0xf0 ? 2 : s[0] >= 0xf0 && s[0] < 0xf5 ? 3 : 9;
    static const uint32_t lowest[] = {0, 0x80, 0x800, 0x10000};
    uint32_t c = more == 0 ? s[0] : s[0] & (0x3fu >> (more & 3));

    *at = s + 1;
    for (size_t i = 1; more < 9 && i <= more; i++) {
        if (!is_continuation(s[i]))
            return 0xdc00u + s[0];
        c = c << 6 | (s[i] & 0x3f);
    }
    if (more == 9 || c < lowest[more] || c > 0x10ffff || (c >= 0xd800 && c <= 0xdfff))
        return 0xdc00u + s[0];
    *at = s + 1 + more;
    return c;
}

/* How many bytes of the escaped path the directory takes, with the slash behind
 * it; 0: the path is not below it. */
static size_t below_directory(const char *path, size_t length, const char *directory)
{
    const unsigned char *at = (const unsigned char *)directory;
    char unit[UNIT_MAX];
    size_t used = 0;

    if (*at != '/')
        return 0;
    while (*at) {
        uint32_t c = utf8_next(&at);
        const unsigned char *ahead = at;
        size_t n = escape_character(unit, c, *ahead ? utf8_next(&ahead) : 0, true);
        if (used + n > length || memcmp(path + used, unit, n) != 0)
            return 0;
        used += n;
    }
    if (path[used - 1] == '/')
        return used;
    return used < length && path[used] == '/' ? used + 1 : 0;
}

size_t text_shorten(const struct text_paths *paths, const char *path, size_t length)
{
    size_t offset = 0;

    if (paths->full)
        return 0;
    offset = behind_last(path, length, "/site-packages/");
    if (!offset)
        offset = behind_last(path, length, "/dist-packages/");
    if (!offset)
        offset = behind_library(path, length);
    if (!offset && paths->start_directory)
        offset = below_directory(path, length, paths->start_directory);
    return offset < length ? offset : 0;
}

size_t text_decimal(char *out, uint64_t value)
{
    char digits[TEXT_DIGITS];
    size_t count = 0;

    do
        digits[count++] = (char)('0' + value % 10);
    while ((value /= 10) != 0);
    for (size_t i = 0; i < count; i++)
        out[i] = digits[count - 1 - i];
    return count;
}

static char *put(char *out, const char *bytes, size_t length)
{
    memcpy(out, bytes, length);
    return out + length;
}

size_t text_frame(char *out, size_t size, const char *name, size_t name_length, const char *path, size_t path_length, int32_t line)
{
    char digits[TEXT_DIGITS];
    size_t count = text_decimal(digits, line > 0 ? (uint64_t)line : 0);
    size_t length = name_length + path_length + count + 4; /* " (" ":" ")" */
    char *at = out;

    if (length > size)
        return 0;
    at = put(at, name, name_length);
    at = put(at, " (", 2);
    at = put(at, path, path_length);
    at = put(at, ":", 1);
    at = put(at, digits, count);
    put(at, ")", 1);
    return length;
}

uint64_t text_hash(const char *text, size_t length)
{
    uint64_t hash = 0xcbf29ce484222325u;
    for (size_t i = 0; i < length; i++)
        hash = (hash ^ (unsigned char)text[i]) * 0x100000001b3u;
    return hash ? hash : 1;
}
