/* SPDX-License-Identifier: MIT
 *
 * spool: the writer. Files, names, order and rights are those of
 * output/spool_format.h.
 *
 * Runs in: [sampler] only; every wait on a disk is this thread's alone.
 * Owns its descriptors and mappings. Mappings are MADV_DONTFORK.
 * Failure: a negative errno, one log line a kind (path, uid, what mends it), a
 * count in the limits{} of the metadata that is written next, and the writer goes on trying, once a second: what it could not write stays in the
 * profile as changed, so nothing that fits is lost later. Counts of lines that
 * exist go on in place meanwhile.
 *
 * On a remote file system (place_is_remote) nothing is held open or mapped between
 * calls, and stacks are written ten times a second, not at each tick.
 *
 * When files or the directory are taken away, replaced or cut by somebody,
 * spool_describe notices and the next spool_flush begins files of a new window
 * with everything that the profile holds. So SEQ in the names can run ahead of
 * metadata->window; the metadata then shows SEQ.
 */
#ifndef APROF_OUTPUT_SPOOL_H
#define APROF_OUTPUT_SPOOL_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "output/metadata.h"
#include "sampler/dump.h"
#include "sampler/profile.h"

struct spool_options {
    const char *directory;   /* absolute; copied */
    const char *host;        /* raw; copied and made fit for names */
    pid_t pid;
    uint64_t start_us;       /* START in the names */
    uint64_t limit_bytes;    /* APROF_SPOOL over all processes; 0: no bound */
    bool keep_descriptors;   /* this thread has a descriptor table of its own; else open, compare device and inode, write, close */
};

struct spool;

/* Allocates from hooks/mem.h. Touches no file yet: a process that took no
 * sample leaves none. */
struct spool *spool_new(const struct spool_options *options);

/* Each tick: brings the open window's files up to the profile's changes. Opens
 * the window (directory, .gitignore, live metadata with its lock, then metric
 * files) when there is something to write and it is not open. */
int spool_flush(struct spool *spool, struct profile *profile, const struct metadata *metadata);

/* Once a second and at the end: looks after the files, renews the live metadata
 * in place. */
int spool_describe(struct spool *spool, const struct metadata *metadata);

/* The window's end: opens the next window first (next != NULL), then writes the
 * sealed copies, renames them, removes the live files, metadata with its lock
 * last, and enforces the bound on the directory. Nothing happens when the
 * window was never opened and there is nothing to write. The profile is not
 * cleared. A negative errno (a full disk, for one): the same window goes on, its
 * live files are whole, next is not open. Then keep the profile and try again. */
int spool_seal(struct spool *spool, struct profile *profile, const struct metadata *metadata, const struct metadata *next);

/* Once a second: whether somebody asks for a dump (output/answer.h). One look at one name, none while
 * no window is open or writing fails. */
bool spool_is_asked(struct spool *spool);

/* The answer to that. */
int spool_answer(struct spool *spool, const struct dump *dump, const struct profile *profile);

/* Gives up everything without writing: closes, unmaps. */
void spool_free(struct spool *spool);

/* Coming back after the sampler was joined for a fork: opens the live files
 * again under their names and compares device and inode; a file that is not
 * ours any more starts a new window. -EACCES: the process has become another user
 * meanwhile, and the window should be sealed soon; what is there stays as it is. Any
 * other error: tried again, counts go on. before: called when pausing (writes
 * "paused": true, gives up descriptors, keeps names, identities and mappings).
 * While paused spool_flush only changes counts of lines that exist, through the
 * mapping, allocates nothing and may run on any one thread; -EAGAIN: more is left. */
int spool_pause(struct spool *spool, const struct metadata *metadata);
int spool_resume(struct spool *spool, struct profile *profile, const struct metadata *metadata);

/* True while new stacks must go to [overflow] for want of room: call
 * profile_freeze with it after each flush. */
bool spool_is_full(const struct spool *spool);

#endif
