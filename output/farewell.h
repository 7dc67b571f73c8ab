/* SPDX-License-Identifier: MIT
 *
 * farewell: the last word about the open window, said without the sampler.
 *
 * A thread that ends the process gives the sampler 20 ms; on a machine with more
 * to do than it has CPUs it may not come to run in them, and between the pause for
 * a fork and its return there is none. Then the live metadata would stay as it was
 * last renewed, and say that the window is open. So the place of two of its words,
 * the value of "ended" and the number of ticks that met their deadline, is mapped
 * (output/metadata.c puts each of them alone in an aligned word of eight bytes, and
 * the words for open, exit and exec have the same length), and the thread that ends
 * stores them itself: two guarded stores, no system call, no lock.
 *
 * The mapping is of a descriptor of its own: that of the metadata file carries the
 * lock which says who is alive, and a mapping would carry it into forked children.
 * Its address stays reserved from first to last; files come and go beneath it, so
 * that a store can never hit memory of the application.
 *
 * Whoever renews the metadata meanwhile asks farewell_word() before and after, so
 * that what was said is not unsaid.
 *
 * Runs in: as named. Never fails loudly: without a place nothing is stored.
 */
#ifndef APROF_OUTPUT_FAREWELL_H
#define APROF_OUTPUT_FAREWELL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum farewell { FAREWELL_EXIT = 1, FAREWELL_EXEC = 2 };

/* [interposer] The process is about to end so. From now on what is written about the
 * open window says it. Async-signal-safe. */
void farewell_intend(enum farewell word);

/* [interposer] The exec failed: as before it. Async-signal-safe. */
void farewell_take_back(void);

/* [interposer] [sampler] What is intended, into the open window's metadata, and one
 * more tick that met its deadline. A store may wait for a disk: not while the sampler
 * does. Async-signal-safe. */
void farewell_say(void);

/* [sampler] Whether anything is. */
bool farewell_is_due(void);

/* [sampler] What is intended, as the metadata has it: "exit", "exec" or "open". */
const char *farewell_word(void);

/* [sampler] This text stands in the open window's metadata, the file of this inode.
 * True: it is to be mapped for that, by farewell_map with a descriptor of its own. */
bool farewell_stands(uint64_t inode, const char *text, size_t length);
void farewell_map(int fd);

/* [sampler] There is no open window. */
void farewell_nowhere(void);

/* [fork] The child has said nothing, and has no place for it. */
void farewell_postfork_child(void);

#endif
