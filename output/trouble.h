/* SPDX-License-Identifier: MIT
 *
 * trouble: what became of writing when it failed: counted by reason, said once a
 * kind of error (path, errno, uid, what mends it) by a process and those that it
 * forks, again once it was over and a minute has passed; tried again a second later.
 *
 * Runs in: [sampler].
 */
#ifndef APROF_OUTPUT_TROUBLE_H
#define APROF_OUTPUT_TROUBLE_H

#include <stdbool.h>
#include <stdint.h>

#include "sampler/counters.h"

struct trouble {
    int failure, logged; /* the last one; 0: none */
    uint64_t retry_ns;
    uint64_t limits[LIMIT_COUNT]; /* since the window began: those of the spool */
};

/* Before the first: a page for the process and what it forks. */
void trouble_start(void);

/* Returns the error, a negative errno. directory: of the spool, for the line. */
int trouble_failed(struct trouble *trouble, const char *directory, int error);
void trouble_is_over(struct trouble *trouble);

/* Whether it is too soon to try again. */
bool trouble_must_wait(const struct trouble *trouble);
void trouble_try_now(struct trouble *trouble);

#endif
