/* SPDX-License-Identifier: MIT
 *
 * A library to be loaded and unloaded in a loop: constructors, thread-local data,
 * a handler that it takes away again.
 */
#include <signal.h>

static __thread long kept[64];
static struct sigaction before;

static void on_signal(int signo)
{
    kept[signo % 64]++;
}

long plugin_work(long n)
{
    for (long i = 0; i < n; i++)
        kept[i % 64] += i;
    return kept[n % 64];
}

__attribute__((constructor)) static void come(void)
{
    struct sigaction action = {.sa_handler = on_signal};
    sigaction(SIGUSR2, &action, &before);
}

__attribute__((destructor)) static void go(void)
{
    sigaction(SIGUSR2, &before, NULL);
}
