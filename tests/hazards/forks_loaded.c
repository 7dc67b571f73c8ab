/* SPDX-License-Identifier: MIT
 *
 * A library that is loaded and unloaded again and again (tests/hazards/forks.c):
 * with storage of its own a thread, which is what loading takes most locks for.
 */
static __thread int own[64];

int forks_loaded(int at)
{
    return own[at & 63]++;
}
