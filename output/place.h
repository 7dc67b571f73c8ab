/* SPDX-License-Identifier: MIT
 *
 * place: where the files of this process go: the spool directory, held open, and
 * their names in it.
 *
 * A directory that we make is 0700; made by root it is 01733, like a mail spool,
 * so that workers which drop privileges can write theirs but see nobody else's.
 * One that exists is taken as it is.
 *
 * Runs in: [sampler]. Failure: a negative errno.
 */
#ifndef APROF_OUTPUT_PLACE_H
#define APROF_OUTPUT_PLACE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>
#include <sys/types.h>

#include "output/spool_format.h"
#include "sampler/profile.h"

enum { PLACE_METADATA = METRIC_COUNT, PLACE_FILES }; /* of one window: one a metric, and the metadata */

struct place {
    char *path;  /* of the directory; absolute, or nothing can be opened */
    int fd;      /* O_PATH; -1: not open */
    struct spool_name owner; /* host, pid and start: what the names of one process share */
};

/* path and host are copied, host made fit for names. False: no memory. */
bool place_init(struct place *place, const char *path, const char *host, pid_t pid, uint64_t start_us);
void place_free(struct place *place);

/* Opens the directory unless it is open; makes it, and what is missing above it. */
int place_open(struct place *place);
void place_close(struct place *place);

/* Whether its file system is somebody else's to answer for: a program's (FUSE) or a
 * server's. What is mapped or open there when a process ends is written back and
 * closed by the kernel first, and if nobody answers, the process never ends. */
bool place_is_remote(const struct place *place);

/* Whether the path still leads to the directory that is held. */
bool place_is_there(const struct place *place);

/* The .gitignore of a directory that is written for the first time. */
void place_ignore(const struct place *place);

/* The name of the file of that metric (or PLACE_METADATA) in window seq;
 * text has SPOOL_NAME_MAX + 1 bytes. */
void place_name(const struct place *place, uint64_t seq, unsigned file, enum spool_state state, char *text);

/* What stands under that name, if it is not looked through a link; 0 or a negative errno. */
int place_look(const struct place *place, uint64_t seq, unsigned file, enum spool_state state, struct stat *status);

/* Takes that name away; 0 or a negative errno. */
int place_remove(const struct place *place, uint64_t seq, unsigned file, enum spool_state state);

/* Whether an error says that a name leads nowhere. One that we may not look up any
 * more (the process dropped privileges) says nothing about what stands there. */
bool place_says_gone(int error);

#endif
