/* SPDX-License-Identifier: MIT
 *
 * spool: when what is written: windows opened, renewed, sealed, put aside and
 * taken up again. Where and under which names: output/place.h; into which files:
 * output/live.h; stacks as lines: output/lines.h; sealed copies: output/sealing.h;
 * old windows: output/bound.h.
 */
#include "output/spool.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "hooks/clock.h"
#include "hooks/mem.h"
#include "output/answer.h"
#include "output/bound.h"
#include "output/buffer.h"
#include "output/farewell.h"
#include "output/lines.h"
#include "output/live.h"
#include "output/place.h"
#include "output/sealing.h"
#include "output/trouble.h"

#define NAME_TRIES 16u

#define REMOTE_NS 100000000u /* between two writings to a remote file system: what a kill loses there at most */

struct spool {
    bool may_keep;      /* descriptors, from call to call ... */
    bool remote;        /* ... but here nothing is kept: nor mapped, nor written each tick */
    uint64_t next_ns;   /* when it is written again */
    bool paused;
    bool lost;          /* files are not what they were: begin new ones */
    uint64_t shift;     /* SEQ less the window's number */
    uint64_t sequences; /* SEQs below this one were used */
    struct place place;
    struct live_window window;
    struct buffer buffer;
    struct lines lines;
    struct bound bound;
    struct trouble trouble;
    struct answer answer;
};

static int failed(struct spool *spool, int error)
{
    return trouble_failed(&spool->trouble, spool->place.path, error);
}

static bool keeps(const struct spool *spool)
{
    return spool->may_keep && !spool->remote;
}

/* Where descriptors are not kept none is left open between calls. */
static void release(struct spool *spool)
{
    if (keeps(spool) && !spool->paused)
        return;
    live_close(&spool->window);
    place_close(&spool->place);
}

/* ---- the open window's metadata ---- */

/* As it stands in that window's files. Who ends the process says so before he asks
 * for the last tick, and that one may never be taken. */
static struct metadata shown(const struct spool *spool, const struct metadata *metadata, uint64_t seq, const char *farewell)
{
    struct metadata copy = *metadata;
    if (strcmp(copy.ended, "open") == 0 && strcmp(farewell, "open") != 0) {
        copy.ended = farewell;
        copy.counters.dropped[DROP_deadline]++;
    }
    copy.window = seq;
    copy.paused = spool->paused || !keeps(spool); /* nor is a lock: who is silent is not dead yet */
    for (unsigned i = 0; i < LIMIT_COUNT; i++)
        copy.counters.limits[i] += spool->trouble.limits[i];
    return copy;
}

static void farewell_prepare(struct spool *spool, struct live_window *window, size_t length)
{
    if (window->by_pwrite) {
        farewell_nowhere();
        return;
    }
    if (!farewell_stands(window->files[PLACE_METADATA].inode, spool->buffer.bytes, length))
        return;
    int fd = live_open(&spool->place, window, PLACE_METADATA);
    if (fd < 0)
        return;
    farewell_map(fd);
    close(fd);
}

#define SPACES "                                                                "

/* Spaces and a newline behind what is there: it says the same. */
static bool metadata_extend(int fd, size_t from, size_t to)
{
    const size_t step = sizeof SPACES - 1;
    for (size_t at = from; at < to - 1; at += step) {
        size_t length = to - 1 - at < step ? to - 1 - at : step;
        if (live_write(fd, SPACES, length, at) != length)
            return false;
    }
    return live_write(fd, "\n", 1, to - 1) == 1;
}

/* Over what stands there. A limit of file size below the length (RLIMIT_FSIZE, lowered
 * meanwhile) or a full disk would let the first part through and not the rest: what
 * may be refused is written before, the part beyond the end and the last byte. In
 * between as well, what stands there can be read. */
static int metadata_replace(int fd, const char *text, size_t length, size_t before)
{
    size_t known = length > before ? before : length - 1;
    if ((before == 0 || metadata_extend(fd, known, length)) && live_write(fd, text, length, 0) == length)
        return 0;
    int error = errno ? -errno : -ENOSPC;
    if (length > before && ftruncate(fd, (off_t)before) != 0)
        return -errno;
    return error;
}

/* Padded with spaces before its newline, never shorter than before: no tail of a
 * longer one is left. */
static int metadata_write(struct spool *spool, struct live_window *window, const struct metadata *metadata)
{
    const char *farewell = farewell_word();
    struct metadata copy = shown(spool, metadata, window->seq, farewell);
    size_t length = metadata_put(&copy, &spool->buffer);
    size_t padded = (length + SPOOL_METADATA_BLOCK - 1) / SPOOL_METADATA_BLOCK * SPOOL_METADATA_BLOCK;
    if (padded < window->padded)
        padded = window->padded;
    if (length == 0 || !buffer_reserve(&spool->buffer, padded))
        return -ENOMEM;
    memset(spool->buffer.bytes + length - 1, ' ', padded - length);
    spool->buffer.bytes[padded - 1] = '\n';
    int error = metadata_replace(window->files[PLACE_METADATA].fd, spool->buffer.bytes, padded, window->padded);
    if (error < 0)
        return error;
    window->padded = padded;
    farewell_prepare(spool, window, padded);
    if (strcmp(metadata->ended, "open") == 0 && farewell_word() != farewell)
        farewell_say(); /* said to what we have just written over */
    return 0;
}

static void lock(const struct spool *spool, struct live_window *window)
{
    if (keeps(spool)) /* else it would not last */
        live_lock(window);
}

/* ---- opening ---- */

static int window_make(struct spool *spool, struct live_window *window, const struct metadata *metadata, uint64_t seq)
{
    live_clear(window, seq);
    window->by_pwrite |= spool->remote;
    int error = live_make(&spool->place, window, PLACE_METADATA);
    if (error < 0)
        return error;
    lock(spool, window);
    error = metadata_write(spool, window, metadata);
    if (error < 0) {
        live_remove(&spool->place, window);
        return error;
    }
    window->open = true;
    return 0;
}

/* Names that somebody took, also by a planted link, are passed over. */
static int window_begin(struct spool *spool, struct live_window *window, const struct metadata *metadata)
{
    int error = place_open(&spool->place);
    if (error < 0)
        return error;
    if (metadata->window + spool->shift < spool->sequences)
        spool->shift = spool->sequences - metadata->window;
    for (unsigned i = 0; i < NAME_TRIES; i++) {
        uint64_t seq = metadata->window + spool->shift;
        error = window_make(spool, window, metadata, seq);
        if (error == 0)
            spool->sequences = seq + 1;
        if (error != -EEXIST)
            return error;
        spool->shift++;
    }
    return error;
}

static int window_open(struct spool *spool, const struct metadata *metadata)
{
    int error = place_open(&spool->place);
    if (error == 0) {
        spool->remote = place_is_remote(&spool->place);
        place_ignore(&spool->place);
        error = window_begin(spool, &spool->window, metadata);
    }
    if (error < 0)
        place_close(&spool->place); /* what is there now may be another one next time */
    return error;
}

/* ---- each tick ---- */

/* What is left of the window's files goes, so that nothing is counted twice. */
static void files_give_up(struct spool *spool, struct profile *profile)
{
    if (spool->window.open && place_open(&spool->place) == 0)
        live_remove(&spool->place, &spool->window);
    live_drop(&spool->window);
    live_clear(&spool->window, 0);
    farewell_nowhere();
    place_close(&spool->place);
    profile_mark_all(profile);
    spool->trouble.limits[LIMIT_spool_lost]++;
    spool->lost = false;
}

static int window_ready(struct spool *spool, struct profile *profile, const struct metadata *metadata)
{
    bool by_pwrite = spool->lost && spool->window.by_pwrite;
    if (spool->lost)
        files_give_up(spool, profile);
    if (spool->window.open)
        return 0;
    int error = window_open(spool, metadata);
    spool->window.by_pwrite |= by_pwrite; /* whoever cuts files does it again */
    return error;
}

static int round_write(struct spool *spool, struct profile *profile, const struct metadata *metadata, int refusal)
{
    int error = window_ready(spool, profile, metadata);
    if (error < 0)
        return error;
    return lines_write(&spool->lines, &spool->place, &spool->window, profile, refusal, &spool->lost);
}

static void full_notice(struct spool *spool)
{
    if (bound_has_filled(&spool->bound, &spool->window))
        spool->trouble.limits[LIMIT_spool]++;
}

static bool is_too_soon(const struct spool *spool, const struct metadata *metadata)
{
    bool last = strcmp(metadata->ended, "open") != 0;
    return spool->remote && spool->window.open && !last && clock_now() < spool->next_ns;
}

int spool_flush(struct spool *spool, struct profile *profile, const struct metadata *metadata)
{
    if (spool->paused)
        return lines_store_mapped(&spool->window, profile);
    if (spool->window.apart && !spool->lost) {
        lines_store_mapped(&spool->window, profile);
        return 0; /* the rest comes with the sealed window */
    }
    if (!spool->lost && !profile_has_changes(profile))
        return 0;
    if (is_too_soon(spool, metadata))
        return 0;
    int refusal = trouble_must_wait(&spool->trouble) ? spool->trouble.failure : 0;
    if (refusal && (spool->lost || !spool->window.open))
        return refusal;
    int error = round_write(spool, profile, metadata, refusal);
    if (spool->lost && !refusal) /* found just now: new files at once */
        error = round_write(spool, profile, metadata, 0);
    release(spool);
    full_notice(spool);
    spool->next_ns = clock_now() + REMOTE_NS;
    if (error == 0)
        trouble_is_over(&spool->trouble);
    else if (error != refusal)
        failed(spool, error);
    return error;
}

/* ---- once a second ---- */

static int window_describe(struct spool *spool, const struct metadata *metadata)
{
    int error = place_open(&spool->place);
    if (error == 0)
        error = live_are_there(&spool->place, &spool->window) ? live_acquire(&spool->place, &spool->window, PLACE_METADATA) : -ESTALE;
    if (error < 0)
        return error == -ENOENT ? -ESTALE : error;
    lock(spool, &spool->window);
    return metadata_write(spool, &spool->window, metadata);
}

int spool_describe(struct spool *spool, const struct metadata *metadata)
{
    if (!spool->window.open || spool->paused || spool->window.apart)
        return 0;
    int error = window_describe(spool, metadata);
    release(spool);
    if (error == -ESTALE)
        spool->lost = true; /* the next flush has the profile at hand */
    else if (error < 0)
        failed(spool, error);
    return error;
}

/* ---- sealing ---- */

static int sealed_write(struct spool *spool, struct profile *profile, const struct metadata *metadata)
{
    struct metadata copy = shown(spool, metadata, spool->window.seq, farewell_word());
    struct sealing sealing = {&spool->place, spool->window.seq, &spool->buffer, profile, &copy, 0};
    int error = sealing_write(&sealing);
    bound_add(&spool->bound, sealing.sealed_bytes);
    return error;
}

static int window_seal(struct spool *spool, struct profile *profile, const struct metadata *metadata, const struct metadata *next)
{
    struct live_window following;
    live_clear(&following, 0);
    int error = place_open(&spool->place);
    if (error == 0 && next != NULL)
        error = window_begin(spool, &following, next);
    if (error < 0)
        return error;
    error = sealed_write(spool, profile, metadata);
    if (error < 0) {
        live_remove(&spool->place, &following);
        spool->sequences = spool->window.seq + 1;
        return error;
    }
    memset(spool->trouble.limits, 0, sizeof spool->trouble.limits);
    live_remove(&spool->place, &spool->window);
    spool->window = following;
    if (!following.open)
        farewell_nowhere();
    return 0;
}

static int window_seal_anew(struct spool *spool, struct profile *profile, const struct metadata *metadata, const struct metadata *next)
{
    spool->lost = true;
    spool->next_ns = 0;
    int error = spool_flush(spool, profile, metadata);
    return error < 0 || spool->lost ? error : window_seal(spool, profile, metadata, next);
}

/* Not: out of reach just now, for want of descriptors or rights. */
static bool is_gone(struct spool *spool)
{
    int error = place_open(&spool->place);
    return error < 0 ? place_says_gone(-error) : !live_are_there(&spool->place, &spool->window);
}

int spool_seal(struct spool *spool, struct profile *profile, const struct metadata *metadata, const struct metadata *next)
{
    if (spool->paused)
        return -EAGAIN;
    if (spool->window.open && is_gone(spool))
        spool->lost = true;
    trouble_try_now(&spool->trouble);
    spool->next_ns = 0;
    int flushed = spool_flush(spool, profile, metadata);
    if (!spool->window.open || spool->lost)
        return flushed;
    int error = window_seal(spool, profile, metadata, next);
    for (unsigned i = 0; error == -EEXIST && i < NAME_TRIES; i++) /* somebody took a name of it: all of it under the next ones */
        error = window_seal_anew(spool, profile, metadata, next);
    if (place_open(&spool->place) == 0)
        bound_keep(&spool->bound, &spool->place, &spool->window, spool->sequences);
    full_notice(spool);
    release(spool);
    if (error < 0)
        return failed(spool, error);
    trouble_is_over(&spool->trouble);
    return 0;
}

/* ---- pausing for a fork ---- */

int spool_pause(struct spool *spool, const struct metadata *metadata)
{
    int error = 0;
    if (spool->paused)
        return 0;
    spool->paused = true;
    if (spool->window.open && !spool->window.apart)
        error = live_acquire(&spool->place, &spool->window, PLACE_METADATA);
    if (spool->window.open && !spool->window.apart && error == 0)
        error = metadata_write(spool, &spool->window, metadata);
    release(spool);
    spool->window.locked = false;
    return error;
}

/* The lock comes before the look at the names: whoever took us for dead did so
 * before it, and what he removed is gone by now. */
static int files_resume(struct spool *spool, const struct metadata *metadata)
{
    int error = place_open(&spool->place);
    for (unsigned i = 0; error == 0 && i < PLACE_FILES; i++) {
        if (spool->window.files[i].made)
            error = live_acquire(&spool->place, &spool->window, i);
    }
    if (error < 0)
        return error == -ENOENT ? -ESTALE : error;
    lock(spool, &spool->window);
    return live_are_there(&spool->place, &spool->window) ? metadata_write(spool, &spool->window, metadata) : -ESTALE;
}

int spool_resume(struct spool *spool, struct profile *profile, const struct metadata *metadata)
{
    if (!spool->paused)
        return 0;
    spool->paused = false;
    if (!spool->window.open || spool->window.apart)
        return 0;
    int error = files_resume(spool, metadata);
    release(spool);
    if (error == 0)
        return 0;
    if (error == -EACCES || error == -EPERM) {
        spool->window.apart = true;
        return -EACCES;
    }
    failed(spool, error);
    if (error != -ESTALE)
        return error;
    spool->lost = true;
    trouble_try_now(&spool->trouble);
    return spool_flush(spool, profile, metadata);
}

/* ---- dumps ---- */

static bool is_healthy(const struct spool *spool)
{
    return spool->window.open && !spool->lost && !spool->paused && !spool->window.apart && spool->trouble.failure == 0;
}

bool spool_is_asked(struct spool *spool)
{
    bool refused = false, asked;
    if (!is_healthy(spool) || place_open(&spool->place) < 0)
        return false;
    asked = answer_is_asked(&spool->answer, &spool->place, &refused);
    spool->trouble.limits[LIMIT_dump_refused] += refused;
    release(spool);
    return asked;
}

int spool_answer(struct spool *spool, const struct dump *dump, const struct profile *profile)
{
    if (!is_healthy(spool))
        return -EAGAIN;
    int error = place_open(&spool->place);
    if (error == 0)
        error = answer_write(&spool->answer, &spool->place, &spool->buffer, dump, profile);
    spool->trouble.limits[LIMIT_dump_refused] += error < 0;
    release(spool);
    return error;
}

/* ---- life ---- */

struct spool *spool_new(const struct spool_options *options)
{
    struct spool *spool = mem_zalloc(sizeof *spool);
    if (spool == NULL)
        return NULL;
    trouble_start();
    spool->lines.buffer = &spool->buffer;
    spool->bound.limit_bytes = options->limit_bytes;
    spool->may_keep = options->keep_descriptors;
    live_clear(&spool->window, 0);
    if (place_init(&spool->place, options->directory, options->host, options->pid, options->start_us) && buffer_init(&spool->buffer))
        return spool;
    spool_free(spool);
    return NULL;
}

void spool_free(struct spool *spool)
{
    if (spool == NULL)
        return;
    live_drop(&spool->window);
    farewell_nowhere();
    place_free(&spool->place);
    buffer_free(&spool->buffer);
    mem_free(spool);
}

bool spool_is_full(const struct spool *spool)
{
    return bound_is_full(&spool->bound, &spool->window);
}
