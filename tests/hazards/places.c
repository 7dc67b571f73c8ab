/* SPDX-License-Identifier: MIT
 *
 * places: what tests/hazards/places.py does in C: native threads, small stacks,
 * small alternate stacks.
 */
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

enum { THREADS_MOST = 1024 };

static pthread_t threads[THREADS_MOST];
static _Atomic int go;

static void *native(void *arg)
{
    volatile uint64_t sum = 0;
    while (!atomic_load(&go)) {
        for (int i = 0; i < 2000; i++)
            sum += (uint64_t)i;
        usleep(20000); /* so that hundreds of them are no load by themselves; nothing waits for it */
    }
    return NULL;
}

/* Starts so many threads with the smallest stack that there is; how many it got. */
int native_start(int count)
{
    pthread_attr_t attr;
    int started = 0;
    pthread_attr_init(&attr);
    pthread_attr_setstacksize(&attr, (size_t)PTHREAD_STACK_MIN);
    atomic_store(&go, 0);
    while (started < count && started < THREADS_MOST && pthread_create(&threads[started], &attr, native, NULL) == 0)
        started++;
    pthread_attr_destroy(&attr);
    return started;
}

void native_stop(int count)
{
    atomic_store(&go, 1);
    for (int i = 0; i < count; i++)
        pthread_join(threads[i], NULL);
}

/* Gives the calling thread the smallest alternate stack that the kernel takes,
 * with a page below it that must not be touched. */
int small_alternate_stack(void)
{
    size_t page = 4096, size = ((size_t)sysconf(_SC_MINSIGSTKSZ) + page - 1) / page * page;
    char *pages = mmap(NULL, page + size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (pages == MAP_FAILED || mprotect(pages, page, PROT_NONE) != 0)
        return -1;
    stack_t stack = {.ss_sp = pages + page, .ss_size = size};
    return sigaltstack(&stack, NULL);
}
