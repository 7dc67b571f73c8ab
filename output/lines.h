/* SPDX-License-Identifier: MIT
 *
 * lines: what a profile changed, brought into the files of the open window.
 *
 * Two ways into a file: new stacks are appended by pwrite at the end that we know
 * (exact size, clean error on a full disk, what got in cut is cut off again),
 * counts of known ones are changed in place. A count whose last eight digits would
 * pass SPOOL_COUNT_MAX stays, and the stack gets a new line.
 *
 * The surprising thing is what a cookie in the profile holds: the place of a line's
 * count and what the stack has beside it, so that nothing needs to be remembered a
 * line here.
 *
 * Runs in: [sampler], lines_store_mapped on any one thread. Failure: a negative
 * errno; what could not be written stays in the profile as changed.
 */
#ifndef APROF_OUTPUT_LINES_H
#define APROF_OUTPUT_LINES_H

#include "output/buffer.h"
#include "output/live.h"
#include "sampler/profile.h"

#define LINES_AT_ONCE 256u

/* A line in the buffer: what becomes of its cookie once it is in the file. */
struct lines_pending {
    profile_stack stack;
    uint32_t end;
    uint64_t *cookie, value[PROFILE_COOKIE_WORDS];
};

struct lines {
    struct buffer *buffer;
    enum metric metric; /* of what is in the buffer */
    struct lines_pending pending[LINES_AT_ONCE];
    uint32_t pending_count;
};

/* All changes of the profile. refusal: 0, or the error with which new lines are
 * refused just now; counts go on. lost: set when a file is not what it was. */
int lines_write(struct lines *lines, struct place *place, struct live_window *window, struct profile *profile, int refusal, bool *lost);

/* Counts of lines that exist, through the mapping and nothing else: no descriptor,
 * no memory. -EAGAIN: more is left. */
int lines_store_mapped(struct live_window *window, struct profile *profile);

#endif
