/* SPDX-License-Identifier: MIT */
/* resources.c - see resources.h. */
#include "bench/resources.h"

#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>

/* The number after `word` at a line's begin, or the first one of the file; `otherwise` where there is none. */
static long number_in(const char *path, const char *word, long otherwise)
{
    char line[256];
    long number = otherwise;
    FILE *file = fopen(path, "re");
    while (file != NULL && fgets(line, sizeof line, file) != NULL)
        if (strncmp(line, word, strlen(word)) == 0 && sscanf(line + strlen(word), "%ld", &number) == 1)
            break;
    if (file != NULL)
        (void)fclose(file);
    return number;
}

/* Threads that the cgroup still allows. */
static long left_in_cgroup(void)
{
    char line[256], path[256], file[320];
    long left = INT32_MAX;
    FILE *groups = fopen("/proc/self/cgroup", "re");
    while (groups != NULL && fgets(line, sizeof line, groups) != NULL) {
        const char *root = NULL;
        if (sscanf(line, "0::%255s", path) == 1)
            root = "/sys/fs/cgroup";
        else if (sscanf(line, "%*d:pids:%255s", path) == 1)
            root = "/sys/fs/cgroup/pids";
        if (root == NULL)
            continue;
        (void)snprintf(file, sizeof file, "%s%s/pids.max", root, path);
        long most = number_in(file, "", INT32_MAX); /* "max" is no number */
        (void)snprintf(file, sizeof file, "%s%s/pids.current", root, path);
        left = most - number_in(file, "", 0) < left ? most - number_in(file, "", 0) : left;
    }
    if (groups != NULL)
        (void)fclose(groups);
    return left;
}

static bool enough(const char *what, long wanted, long there, const char *where, char *why, size_t room)
{
    if (there >= wanted)
        return true;
    (void)snprintf(why, room, "wants %ld %s, and %s allows %ld", wanted, what, where, there);
    return false;
}

static long limit(int resource)
{
    struct rlimit limit;
    if (getrlimit((__rlimit_resource_t)resource, &limit) != 0 || limit.rlim_cur > INT32_MAX)
        return INT32_MAX;
    return (long)limit.rlim_cur;
}

bool bench_can_have(long threads, long files, long megabytes, char *why, size_t room)
{
    long kernel = number_in("/proc/sys/kernel/threads-max", "", INT32_MAX);
    long maps = number_in("/proc/sys/vm/max_map_count", "", INT32_MAX) / 2; /* a stack and its guard */
    long free_kb = number_in("/proc/meminfo", "MemAvailable:", INT32_MAX);
    return enough("threads", threads, kernel, "kernel.threads-max", why, room) &&
           enough("threads", threads, limit(RLIMIT_NPROC), "ulimit -u", why, room) &&
           enough("threads", threads, left_in_cgroup(), "the cgroup (pids.max)", why, room) &&
           enough("threads", threads, maps, "half of vm.max_map_count", why, room) &&
           enough("open files", files, limit(RLIMIT_NOFILE), "ulimit -n", why, room) &&
           enough("MB of memory", megabytes, free_kb / 1024, "what is free (MemAvailable)", why, room);
}
