/* SPDX-License-Identifier: MIT
 *
 * asking: processes that live in a spool directory, and asking them for a dump: the
 * requester's half of output/answer.h.
 *
 * [tool] only.
 */
#ifndef APROF_OUTPUT_ASKING_H
#define APROF_OUTPUT_ASKING_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "output/dumped.h"
#include "output/listing.h"

#define ASKING_MOST 1000u    /* processes at once: no more stacks than that are read by anybody */

struct asked {
    struct spool_name name;  /* of its open window's metadata */
    json_t *metadata;        /* NULL: not readable */
    uid_t uid;
    bool is_dead;
    unsigned missed;         /* looks in a row that did not find it living */
    bool is_ours;            /* we made the request that stands there */
    char request[48];        /* its inode and time */
    uint64_t changed_ns;     /* of its metadata, when we began */
    bool has_answer;
    struct dumped dumped;
};

struct asking {
    const char *path;
    int directory;
    struct asked *processes; /* by start */
    size_t count, room;
    size_t living, left_out; /* when we began; of those that live, beyond ASKING_MOST */
    struct listing now;      /* when we had done */
};

/* Lists the processes that write to a directory; pid 0: all that live. False, having said
 * so: it cannot be read. */
bool asking_begin(struct asking *asking, const char *path, uint64_t pid);
void asking_end(struct asking *asking);

/* Asks all that live, and waits for their answers, at most so long. */
void asking_wait(struct asking *asking, unsigned seconds);

/* Says why a process did not answer: one line. */
void asking_explain(const struct asking *asking, const struct asked *asked, unsigned seconds);

#endif
