/* SPDX-License-Identifier: MIT
 *
 * embed: a C program that holds a Python. Needs no headers of it: the few
 * functions are declared here, so that one source serves every version.
 *
 *   embed WAY [LIBRARY]
 *
 * late    computes in C first, then starts Python and ends by exit
 * twice   starts it, finalizes it, computes in C, starts it again, finalizes it
 * thread  starts it in a thread that is not the main one
 * never   does not start it at all
 *
 * Built with -DLOADED it finds the functions by dlopen(LIBRARY, RTLD_LOCAL).
 */
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#ifdef LOADED
static void (*Py_InitializeEx)(int);
static int (*Py_FinalizeEx)(void);
static int (*PyRun_SimpleString)(const char *);
#else
extern void Py_InitializeEx(int);
extern int Py_FinalizeEx(void);
extern int PyRun_SimpleStringFlags(const char *, void *);
#define PyRun_SimpleString(text) PyRun_SimpleStringFlags(text, NULL)
#endif

static const char script[] =
    "import time\n"
    "def burn_%s(end):\n"
    "    while time.thread_time() < end:\n"
    "        for _ in range(100): pass\n"
    "burn_%s(time.thread_time() + 0.3)\n";

static double thread_cpu(void)
{
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return t.tv_sec + t.tv_nsec / 1e9;
}

static void compute(double seconds)
{
    volatile double x = 0;
    for (double end = thread_cpu() + seconds; thread_cpu() < end;)
        for (int i = 0; i < 1000; i++)
            x += i;
}

static void python_round(const char *name)
{
    char text[sizeof script + 64];
    double before = thread_cpu();
    Py_InitializeEx(0);
    snprintf(text, sizeof text, script, name, name);
    if (PyRun_SimpleString(text) != 0 || Py_FinalizeEx() != 0)
        exit(3);
    printf("%s %.6f\n", name, thread_cpu() - before);
}

static void *python_thread(void *unused)
{
    (void)unused;
    python_round("first");
    return NULL;
}

#ifdef LOADED
static void find(const char *library)
{
    void *handle = dlopen(library, RTLD_NOW | RTLD_LOCAL);
    if (!handle) {
        fprintf(stderr, "%s\n", dlerror());
        exit(4);
    }
    *(void **)&Py_InitializeEx = dlsym(handle, "Py_InitializeEx");
    *(void **)&Py_FinalizeEx = dlsym(handle, "Py_FinalizeEx");
    *(void **)&PyRun_SimpleString = dlsym(handle, "PyRun_SimpleString");
}
#endif

int main(int argc, char **argv)
{
    const char *way = argc > 1 ? argv[1] : "";
    pthread_t thread;
    compute(0.2);
#ifdef LOADED
    find(argv[2]);
    compute(0.2);
#endif
    if (!strcmp(way, "late")) {
        python_round("first");
    } else if (!strcmp(way, "twice")) {
        python_round("first");
        compute(0.2);
        python_round("second");
    } else if (!strcmp(way, "thread")) {
        if (pthread_create(&thread, NULL, python_thread, NULL) == 0)
            pthread_join(thread, NULL);
        compute(0.1);
    }
    return 5;
}
