/* SPDX-License-Identifier: MIT
 *
 * threadnames: what the module threading calls its threads: the dict `_active`, from
 * the number of a thread (pthread_self) to its Thread object. The kernel's names are
 * shorter, and Python sets them from 3.14 on only.
 *
 * Runs in: [sampler], threadnames_of also in the thread itself. No allocation, bounded. An entry is believed if it is still
 * there once its name was read.
 *
 * Source of the facts: Lib/threading.py (_active, Thread._name), the same from 3.11 to
 * 3.15.
 */
#ifndef APROF_SAMPLER_CPYTHON_THREADNAMES_H
#define APROF_SAMPLER_CPYTHON_THREADNAMES_H

#include <stdbool.h>
#include <stdint.h>

#include "sampler/cpython/containers.h"
#include "sampler/cpython/target.h"

struct threadnames_walk {
    const struct py_target *target;
    struct dict_walk threads;
};

/* False: this interpreter has not imported threading. */
bool threadnames_begin(struct threadnames_walk *walk, const struct py_target *target, uintptr_t interp);

/* From here on those only that are among so many of the newest entries. */
void threadnames_newest(struct threadnames_walk *walk, uint32_t entries);

/* The next one: its pthread_t and its name, escaped as sampler/text.h does (TEXT_NAME_MAX
 * bytes are always enough). Those that cannot be read are left out. False at the end. */
bool threadnames_next(struct threadnames_walk *walk, uint64_t *thread, char *name, uint32_t size, uint32_t *length);

/* The name of one such object, escaped likewise; its length, 0: it has none, or is something else. */
uint32_t threadnames_of(const struct py_target *target, uintptr_t thread, char *name, uint32_t size);

#endif
