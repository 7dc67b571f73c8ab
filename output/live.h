/* SPDX-License-Identifier: MIT
 *
 * live: the files of one open window: made, locked, looked after, stored into,
 * removed. What stands in them is the business of output/lines.h (stacks) and
 * output/spool.c (metadata).
 *
 * Files are made with O_EXCL|O_NOFOLLOW, 0600, and known by device and inode from
 * then on: a name that leads to anything else is somebody else's, and is neither
 * written nor removed. The metadata file is made first and removed last, for it
 * carries the lock that says who is alive; what has that lock is never mapped (a
 * mapping carries it into forked children).
 *
 * Runs in: [sampler], live_store_mapped on any one thread. Failure: a negative
 * errno; -ESTALE: the file is not what it was.
 */
#ifndef APROF_OUTPUT_LIVE_H
#define APROF_OUTPUT_LIVE_H

#include "output/place.h"

/* end: bytes that stand in it, all of them whole lines. map reaches beyond. */
struct live_file {
    int fd;
    bool made;
    dev_t device;
    ino_t inode;
    uint64_t end;
    char *map;
    size_t map_length;
};

struct live_window {
    bool open;
    bool locked;
    bool apart;     /* out of our user's reach since a pause: its counts go on through the mappings until it is sealed */
    bool by_pwrite; /* no mapping in this window: a store failed, or the guard is not in force */
    uint64_t seq;
    size_t padded;  /* length of the metadata file */
    struct live_file files[PLACE_FILES];
};

/* No files, none open. */
void live_clear(struct live_window *window, uint64_t seq);

/* -EEXIST: the name is taken. */
int live_make(const struct place *place, struct live_window *window, unsigned file);

/* Opens a file of the window under its name, once more, for its caller to close. */
int live_open(struct place *place, const struct live_window *window, unsigned file);

/* Opens a file of the window under its name, if its descriptor was not kept. */
int live_acquire(struct place *place, struct live_window *window, unsigned file);

/* Takes the lock of the metadata file, which is open. A reader may hold it shared
 * for a moment: then try again a second later. A file system that refuses locks is
 * the readers' business (spool_life_is_dead). */
void live_lock(struct live_window *window);

/* Whether the open file is still ours and as long as we left it: somebody who cut
 * it would have us append behind a hole. */
bool live_is_whole(const struct live_file *file);

/* The same by name for all files of the window, and for the directory, which is open. */
bool live_are_there(const struct place *place, const struct live_window *window);

/* All descriptors go; mappings stay. */
void live_close(struct live_window *window);

/* Descriptors and mappings go, files stay. */
void live_drop(struct live_window *window);

/* Removes the files whose names still lead to them, the metadata with its lock last. */
void live_remove(const struct place *place, struct live_window *window);

/* Bytes in all of them. */
uint64_t live_bytes(const struct live_window *window);

/* Maps the file, which is open, beyond its end, unless the window goes by pwrite:
 * at once, since the first store may come when there is no sampler any more. A
 * mapping also keeps the inode's number from being used again. */
void live_map(struct live_window *window, unsigned file);

/* Eight digits at an offset on a boundary of eight, through the mapping. False: there is none, or it faulted. */
bool live_store_mapped(struct live_window *window, unsigned file, uint64_t offset, const char *digits);

/* The same through the mapping, or by pwrite once that failed. */
int live_store(struct place *place, struct live_window *window, unsigned file, uint64_t offset, const char *digits);

/* pwrite until all is written or nothing more can be; how much was. errno is 0
 * when the file just takes no more. */
size_t live_write(int fd, const char *bytes, size_t length, uint64_t offset);

#endif
