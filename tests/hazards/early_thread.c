/* SPDX-License-Identifier: MIT
 *
 * early_thread: preloaded behind the profiler it is initialised before it, and
 * has a thread by then, which the profiler has not seen start. It outlives all
 * others by a while.
 */
#include <pthread.h>
#include <unistd.h>

static void *linger(void *unused)
{
    usleep(300000);
    return NULL;
}

__attribute__((constructor)) static void begin(void)
{
    pthread_t thread;
    pthread_create(&thread, NULL, linger, NULL);
    pthread_detach(thread);
}
