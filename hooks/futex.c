/* SPDX-License-Identifier: MIT
 *
 * FUTEX_WAIT_BITSET and not FUTEX_WAIT: its deadline is absolute, so that a
 * wait which is resumed does not start over.
 */
#include "hooks/futex.h"
#include "hooks/raw.h"

#include <errno.h>       /* ETIMEDOUT */
#include <limits.h>      /* INT_MAX */
#include <linux/futex.h> /* FUTEX_* */
#include <time.h>        /* struct timespec */

bool futex_wait(_Atomic uint32_t *word, uint32_t expected, uint64_t deadline_ns)
{
    struct timespec deadline = {.tv_sec = (time_t)(deadline_ns / 1000000000u), .tv_nsec = (long)(deadline_ns % 1000000000u)};
    struct timespec *limit = deadline_ns == UINT64_MAX ? NULL : &deadline;
    long result = raw6(SYS_futex, (long)word, FUTEX_WAIT_BITSET | FUTEX_PRIVATE_FLAG, expected, (long)limit, 0,
                       (long)FUTEX_BITSET_MATCH_ANY);
    return result != -ETIMEDOUT;
}

void futex_wake(_Atomic uint32_t *word)
{
    raw3(SYS_futex, (long)word, FUTEX_WAKE | FUTEX_PRIVATE_FLAG, INT_MAX);
}
