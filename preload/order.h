/* SPDX-License-Identifier: MIT
 *
 * order: where this library stands among the objects of the process.
 *
 * The loader asks them in the order in which it lists them, so only what stands
 * before libc is in front of its functions. Two copies of this library (by two
 * paths; the loader itself knows links to one file) would both take the signals
 * and count everything twice: the first one works.
 *
 * Runs in: [loader] [interposer]. Takes the loader's lock for a moment.
 */
#ifndef APROF_PRELOAD_ORDER_H
#define APROF_PRELOAD_ORDER_H

enum order {
    ORDER_FRONT, /* of libc, and first of its kind */
    ORDER_SECOND,   /* another libaprof stands before it */
    ORDER_BEHIND    /* libc stands before it: loaded while the program ran, and in front of nothing */
};

enum order order_find(void);

#endif
