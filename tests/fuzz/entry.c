/* SPDX-License-Identifier: MIT
 *
 * What libFuzzer calls. Each input may take two seconds of CPU: its own -timeout counts
 * those in which others had the machine.
 */
#include <signal.h>
#include <sys/time.h>

#include "tests/fuzz/fuzz.h"

enum { SECONDS = 2 };

static void too_long(int signal)
{
    fprintf(stderr, "an input took more than %d seconds of CPU\n", SECONDS);
    abort();
}

static void set_alarm(time_t seconds)
{
    const struct itimerval timer = {.it_value.tv_sec = seconds};
    setitimer(ITIMER_PROF, &timer, NULL);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    signal(SIGPROF, too_long);
    set_alarm(SECONDS);
    fuzz_input(data, size);
    set_alarm(0);
    return 0;
}
