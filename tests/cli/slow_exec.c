/* SPDX-License-Identifier: MIT */
/* slow_exec.c - preloaded: exec takes SLOW_EXEC_MS. It stands for a command on a network file system. */
#include <dlfcn.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef int exec_fn(const char *file, char *const words[], char *const variables[]);

__attribute__((visibility("default"))) int execvpe(const char *file, char *const words[], char *const variables[])
{
    exec_fn *next;
    void *symbol = dlsym(RTLD_NEXT, "execvpe");
    memcpy(&next, &symbol, sizeof next);
    const char *ms = getenv("SLOW_EXEC_MS");
    (void)poll(NULL, 0, ms != NULL ? atoi(ms) : 0);
    return next(file, words, variables);
}
