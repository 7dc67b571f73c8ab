/* SPDX-License-Identifier: MIT
 *
 * FUTEX_WAIT_BITSET and not FUTEX_WAIT: its deadline is absolute, so that a
 * wait which is resumed does not start over.
 */
#include "hooks/futex.h"
#include "hooks/clock.h"
#include "hooks/raw.h"

#include <errno.h>
#include <limits.h>      /* INT_MAX */
#include <linux/futex.h> /* FUTEX_* */
#include <time.h>        /* struct timespec */

#define NAP_NS 1000000u

/* A filter that refuses the wait must not make of it a loop that never sleeps. */
static bool nap(uint64_t deadline_ns)
{
    uint64_t now = clock_now();
    if (now >= deadline_ns)
        return false;
    struct timespec time = {.tv_nsec = deadline_ns - now < NAP_NS ? (long)(deadline_ns - now) : NAP_NS};
    raw2(SYS_nanosleep, (long)&time, 0);
    return true;
}

bool futex_wait(_Atomic uint32_t *word, uint32_t expected, uint64_t deadline_ns)
{
    struct timespec deadline = {.tv_sec = (time_t)(deadline_ns / 1000000000u), .tv_nsec = (long)(deadline_ns % 1000000000u)};
    struct timespec *limit = deadline_ns == UINT64_MAX ? NULL : &deadline;
    long result = raw6(SYS_futex, (long)word, FUTEX_WAIT_BITSET | FUTEX_PRIVATE_FLAG, expected, (long)limit, 0,
                       (long)FUTEX_BITSET_MATCH_ANY);
    if (result == 0 || result == -EAGAIN || result == -EINTR)
        return true;
    return result != -ETIMEDOUT && nap(deadline_ns);
}

void futex_wake(_Atomic uint32_t *word)
{
    raw3(SYS_futex, (long)word, FUTEX_WAKE | FUTEX_PRIVATE_FLAG, INT_MAX);
}
