/* SPDX-License-Identifier: MIT
 *
 * What Debian's jemalloc asks of other libraries, or of the environment, under
 * the names that scripts/jemalloc.mk gives to these requests. libm and libgcc_s
 * as dependencies would cost every exec more than all the rest of this library,
 * and some of the names do not exist in other C libraries.
 */
#include <errno.h>
#include <pthread.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define HIDDEN __attribute__((visibility("hidden")))

/* Settings are ours alone: one arena beside the one that mem.c makes, no thread
 * caches, no thread of its own, no brk(2), no statistics, and freed pages go
 * back to the kernel within a second. */
HIDDEN extern const char *aprof_je_malloc_conf;
const char *aprof_je_malloc_conf =
    "narenas:1,tcache:false,background_thread:false,dss:disabled,abort:false,abort_conf:false,"
    "stats_print:false,dirty_decay_ms:1000,muzzy_decay_ms:0,percpu_arena:disabled";

/* MALLOC_CONF and /etc/malloc.conf belong to the application's jemalloc, if it has one. */
HIDDEN char *aprof_je_secure_getenv(const char *name);
char *aprof_je_secure_getenv(const char *name)
{
    (void)name;
    return NULL;
}

HIDDEN ssize_t aprof_je_readlink(const char *path, char *buffer, size_t size);
ssize_t aprof_je_readlink(const char *path, char *buffer, size_t size)
{
    (void)path, (void)buffer, (void)size;
    errno = ENOENT;
    return -1;
}

/* Mathematics of its heap profiler, by the processor's own instructions. */
HIDDEN double aprof_je_log(double x);
double aprof_je_log(double x)
{
    long double result;
    __asm__("fldln2\n\tfxch\n\tfyl2x" : "=t"(result) : "0"((long double)x) : "st(1)");
    return (double)result;
}

HIDDEN double aprof_je_exp(double x);
double aprof_je_exp(double x) /* of a finite number */
{
    long double power, whole, result;
    __asm__("fldl2e\n\tfmulp" : "=t"(power) : "0"((long double)x));
    __asm__("frndint" : "=t"(whole) : "0"(power));
    __asm__("f2xm1" : "=t"(result) : "0"(power - whole));
    __asm__("fscale" : "=t"(result) : "0"(result + 1.0L), "u"(whole));
    return (double)result;
}

HIDDEN double aprof_je_round(double x);
double aprof_je_round(double x)
{
    if (!(x > -4503599627370496.0 && x < 4503599627370496.0))
        return x; /* from 2^52 on every double is whole; also not a number */
    return (double)(int64_t)(x < 0 ? x - 0.5 : x + 0.5);
}

/* Its heap profiler would unwind by libgcc_s: without it, a stack has no frames. */
struct _Unwind_Context;
#define UNWIND_END_OF_STACK 5
HIDDEN int aprof_je__Unwind_Backtrace(int (*trace)(struct _Unwind_Context *, void *), void *arg);
int aprof_je__Unwind_Backtrace(int (*trace)(struct _Unwind_Context *, void *), void *arg)
{
    (void)trace, (void)arg;
    return UNWIND_END_OF_STACK;
}

HIDDEN uintptr_t aprof_je__Unwind_GetIP(struct _Unwind_Context *context);
uintptr_t aprof_je__Unwind_GetIP(struct _Unwind_Context *context)
{
    (void)context;
    return 0;
}

/* Missing in older musl; names of threads are for its heap profiler only. */
HIDDEN int aprof_je_pthread_getname_np(pthread_t thread, char *name, size_t size);
int aprof_je_pthread_getname_np(pthread_t thread, char *name, size_t size)
{
    (void)thread, (void)name, (void)size;
    return ENOSYS;
}
