/* SPDX-License-Identifier: MIT
 *
 * The spool is UTF-8 whatever the locale, so widths are counted by code point
 * from the bytes; only the width of one character is asked of libc.
 */
#include "output/human.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h> /* TIOCGWINSZ */
#include <time.h>
#include <unistd.h> /* isatty */
#include <wchar.h>  /* wcwidth */

#include "output/tool.h"

struct unit {
    double size, upto; /* used while the value is below upto */
    const char *name;
};

/* Upper bounds leave room for rounding: 999.96 ms must not print as 1000. */
static const struct unit times[] = {
    { 1, 999.5, "us" }, { 1e3, 999.5e3, "ms" }, { 1e6, 120e6, "s" }, { 60e6, 7200e6, "min" }, { 3600e6, 1e300, "h" },
};
static const struct unit sizes[] = {
    { 1, 1023.5, "B" },
    { 1024., 1023.5 * 1024, "KiB" },
    { 1048576., 1023.5 * 1048576, "MiB" },
    { 1073741824., 1023.5 * 1073741824, "GiB" },
    { 1099511627776., 1e300, "TiB" },
};

static char *scaled(char *buffer, uint64_t value, const struct unit *unit)
{
    while ((double)value >= unit->upto)
        unit++;
    double shown = (double)value / unit->size;
    int decimals = unit->size == 1 || shown >= 99.95 ? 0 : shown >= 9.995 ? 1 : 2;
    snprintf(buffer, HUMAN_SIZE, "%.*f %s", decimals, shown, unit->name);
    return buffer;
}

char *human_time(char buffer[HUMAN_SIZE], uint64_t us)
{
    return scaled(buffer, us, times);
}

char *human_bytes(char buffer[HUMAN_SIZE], uint64_t bytes)
{
    return scaled(buffer, bytes, sizes);
}

char *human_share(char buffer[HUMAN_SIZE], double part, double whole)
{
    double percent = whole > 0 ? 100 * part / whole : 0;
    if (!(whole > 0))
        snprintf(buffer, HUMAN_SIZE, "-");
    else if (part > 0 && percent < 0.05)
        snprintf(buffer, HUMAN_SIZE, "<0.1%%");
    else
        snprintf(buffer, HUMAN_SIZE, "%.1f%%", percent);
    return buffer;
}

char *human_moment(char buffer[HUMAN_SIZE], uint64_t us)
{
    time_t seconds = (time_t)(us / 1000000);
    struct tm parts;
    if (!gmtime_r(&seconds, &parts) || !strftime(buffer, HUMAN_SIZE, "%Y-%m-%d %H:%M:%S UTC", &parts))
        snprintf(buffer, HUMAN_SIZE, "%" PRIu64 " us", us);
    return buffer;
}

static int columns_asked = -1;

void human_columns_ask(int columns)
{
    columns_asked = columns;
}

int human_columns(void)
{
    if (columns_asked >= 0)
        return columns_asked;
    if (!isatty(STDOUT_FILENO))
        return 0;
    const char *set = getenv("COLUMNS");
    int columns = set ? atoi(set) : 0;
    struct winsize size;
    if (columns <= 0 && !ioctl(STDOUT_FILENO, TIOCGWINSZ, &size))
        columns = size.ws_col;
    return columns > 0 ? columns : 80;
}

bool human_wants_colour(void)
{
    const char *no = getenv("NO_COLOR"), *terminal = getenv("TERM");
    return isatty(STDOUT_FILENO) && !(no && *no) && terminal && strcmp(terminal, "dumb");
}

const char *human_on(bool colour, enum human_style style)
{
    static const char *const codes[] = {
        [HUMAN_STRONG] = "\033[1m", [HUMAN_FAINT] = "\033[2m", [HUMAN_WARNING] = "\033[33m", [HUMAN_BAD] = "\033[31m", [HUMAN_GOOD] = "\033[32m" };
    return colour && style != HUMAN_PLAIN ? codes[style] : "";
}

const char *human_off(bool colour, enum human_style style)
{
    return colour && style != HUMAN_PLAIN ? "\033[0m" : "";
}

/* The code point that starts here, and its length in bytes; 0 when it is not
 * well-formed UTF-8 (overlong, surrogate, cut). */
static int decode(const unsigned char *at, size_t left, uint32_t *point)
{
    static const uint32_t least[] = { 0, 0, 0x80, 0x800, 0x10000 };
    int length = at[0] < 0x80 ? 1 : at[0] >= 0xc2 && at[0] < 0xe0 ? 2 : (at[0] & 0xf0) == 0xe0 ? 3 : (at[0] & 0xf8) == 0xf0 ? 4 : 0;
    if (!length || (size_t)length > left)
        return 0;
    *point = length == 1 ? at[0] : at[0] & (0x7fu >> length);
    for (int next = 1; next < length; next++) {
        if ((at[next] & 0xc0) != 0x80)
            return 0;
        *point = *point << 6 | (at[next] & 0x3f);
    }
    bool surrogate = *point >= 0xd800 && *point < 0xe000;
    return *point < least[length] || surrogate || *point > 0x10ffff ? 0 : length;
}

static int point_width(uint32_t point)
{
    int width = wcwidth((wchar_t)point);
    return width < 0 ? 1 : width; /* unknown to the locale: most are one column */
}

/* Those that order text otherwise than it stands count too. */
static bool is_control(uint32_t point)
{
    return point < 0x20 || (point >= 0x7f && point < 0xa0) || (point >= 0x202a && point <= 0x202e) || (point >= 0x2066 && point <= 0x2069);
}

static char *cleaned(const char *text, size_t length)
{
    char *clean = tool_alloc(4 * length + 1, 1), *to = clean;
    const unsigned char *at = (const unsigned char *)text, *end = at + length;
    while (at < end) {
        uint32_t point = 0;
        int taken = decode(at, (size_t)(end - at), &point);
        if (!taken || is_control(point)) {
            do /* of a control character all bytes: the others are no start of anything */
                to += sprintf(to, "\\x%02x", *at++);
            while (--taken > 0);
            continue;
        }
        memcpy(to, at, (size_t)taken);
        to += taken;
        at += taken;
    }
    *to = '\0';
    return clean;
}

int human_width(const char *text)
{
    int width = 0;
    for (size_t left = strlen(text); left;) {
        uint32_t point = 0;
        int taken = decode((const unsigned char *)text, left, &point);
        width += taken ? point_width(point) : 1;
        text += taken ? taken : 1;
        left -= (size_t)(taken ? taken : 1);
    }
    return width;
}

/* Skips characters from the start until what is dropped is at least this wide. */
static const char *skip_width(const char *text, int columns)
{
    while (*text && columns > 0) {
        uint32_t point = 0;
        int taken = decode((const unsigned char *)text, 4, &point); /* valid: its NUL is the end */
        columns -= point_width(point);
        text += taken;
    }
    return text;
}

/* Where the first characters that fit into columns end. */
static char *fit_width(char *text, int columns)
{
    while (*text) {
        uint32_t point = 0;
        int taken = decode((const unsigned char *)text, 4, &point); /* valid: its NUL is the end */
        columns -= point_width(point);
        if (columns < 0)
            break;
        text += taken;
    }
    return text;
}

char *human_text(const char *text, size_t length, int columns, bool keep_tail)
{
    char *clean = cleaned(text, length);
    int width = human_width(clean);
    if (columns <= 0 || width <= columns)
        return clean;
    int room = columns > 3 ? columns - 3 : 0;
    char *cut = tool_alloc(strlen(clean) + 4, 1);
    if (keep_tail) {
        sprintf(cut, "...%s", skip_width(clean, width - room));
    } else {
        *fit_width(clean, room) = '\0';
        sprintf(cut, "%s...", clean);
    }
    free(clean);
    return cut;
}
