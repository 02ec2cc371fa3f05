/* SPDX-License-Identifier: MIT */
/* dear.c - see dear.h. */
#include "bench/dear.h"

#include "bench/harness.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define LIBRARY "libdear_wakeups.so" /* beside the program */

static const char *const names[DEAR_CALLS] = {"futex", "cond", "poll", "ppoll", "epoll", "recv", "read"};

static dear_counts *loaded(void)
{
    dear_counts *counts = NULL;
    *(void **)&counts = dlsym(RTLD_DEFAULT, DEAR_COUNTS);
    return counts;
}

void bench_dear(char **argv)
{
    char self[512], list[1200];
    const char *others = getenv("LD_PRELOAD");
    if (loaded() != NULL)
        return;
    ssize_t length = readlink("/proc/self/exe", self, sizeof self - sizeof LIBRARY);
    if (length <= 0 || strstr(others != NULL ? others : "", LIBRARY) != NULL)
        bench_die("%s cannot be loaded", LIBRARY);
    self[length] = '\0';
    (void)strcpy(strrchr(self, '/') + 1, LIBRARY);
    (void)snprintf(list, sizeof list, "%s%s%s", self, others != NULL ? ":" : "",
                   others != NULL ? others : "");
    (void)setenv("LD_PRELOAD", list, 1);
    (void)execv("/proc/self/exe", argv);
    bench_die("cannot start again with %s", self);
}

void bench_dear_counts(long counts[DEAR_CALLS])
{
    loaded()(counts);
}

void bench_dear_print(void)
{
    long counts[DEAR_CALLS];
    bench_dear_counts(counts);
    (void)printf("  (wake-ups made dear here and in forked children:");
    for (int i = 0; i < DEAR_CALLS; i++)
        (void)printf(" %s %ld%s", names[i], counts[i], i + 1 < DEAR_CALLS ? "," : ")\n");
}
