/* SPDX-License-Identifier: MIT
 *
 * answer: what becomes of a request for a dump: an empty file in the spool directory,
 * named for the process (output/spool_format.h), that was made by the user of the
 * process or by root. It is never opened: anything else under that name (a link, a
 * pipe, a folder, a file with something in it, of somebody else or with a second name)
 * is left as it is and counted once (dump_refused).
 *
 * The answer is written beside it, 0600, under a temporary name, then renamed, and the
 * request is taken away. Where it cannot be (root's, in a sticky directory), it is known
 * by its inode and time and not answered again. A process has one request and one
 * answer at most, and the bound on the spool counts and removes both as it does a
 * window's files.
 *
 * The answer is lines of fields with tabs between them; texts are escaped as in the
 * spool, so that they hold neither:
 *
 *   aprof-dump  1
 *   request     INODE.NS                      the request's, NS its st_mtim in nanoseconds
 *   at_us       N                             since the epoch
 *   tasks       recorded | off
 *   stack       ID  FRAME;FRAME;...           before the first line that refers to it
 *   thread      TID  STATE  HOW  AGE_US  ID  NAME
 *   task        STATE  HOW  TID  WAITS_US  ID,ID,...  NAME
 *   left        THREADS  TASKS                left out, for want of time or room
 *   end
 *
 * "-" where there is none. STATE and HOW are the words of sampler/dump.h. TID of a
 * task is that of its loop's thread.
 *
 * Runs in: [sampler]. Failure: a negative errno, and nothing of it is left.
 */
#ifndef APROF_OUTPUT_ANSWER_H
#define APROF_OUTPUT_ANSWER_H

#include <stdbool.h>
#include <stdint.h>

#include "output/buffer.h"
#include "output/place.h"
#include "sampler/dump.h"

enum { ANSWER_MOST = 8 << 20 }; /* bytes; what is beyond is left out */

/* The request that was seen last; zeroed: none. */
struct answer {
    uint64_t inode, changed_ns;
    bool done; /* answered, or refused */
};

/* One look. place is open. *refused: this one is not answered, and was not seen before. */
bool answer_is_asked(struct answer *answer, const struct place *place, bool *refused);

/* To the request that answer_is_asked saw. */
int answer_write(struct answer *answer, const struct place *place, struct buffer *buffer, const struct dump *dump,
                 const struct profile *profile);

#endif
