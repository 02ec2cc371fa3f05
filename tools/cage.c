/* SPDX-License-Identifier: MIT */
/* cage.c - see cage.h. */
#include "cage.h"

#include <fcntl.h>
#include <limits.h>
#include <linux/magic.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#define DEATH_MS 500

/* The directory of our own cgroup. False: there is none of version 2. */
static bool find_own(char *out, size_t room)
{
    static const char *const mounts[] = {"/sys/fs/cgroup", "/sys/fs/cgroup/unified"};
    char line[PATH_MAX], path[PATH_MAX] = "";
    FILE *file = fopen("/proc/self/cgroup", "re");
    while (file != NULL && fgets(line, sizeof line, file) != NULL)
        if (strncmp(line, "0::/", 4) == 0)
            (void)snprintf(path, sizeof path, "%.*s", (int)strcspn(line + 3, "\n"), line + 3);
    if (file != NULL)
        (void)fclose(file);
    for (size_t i = 0; path[0] != 0 && i < sizeof mounts / sizeof *mounts; i++) {
        struct statfs facts;
        if (statfs(mounts[i], &facts) == 0 && facts.f_type == CGROUP2_SUPER_MAGIC)
            return snprintf(out, room, "%s%s", mounts[i], strcmp(path, "/") == 0 ? "" : path) < (int)room;
    }
    return false;
}

int cage_open(void)
{
    char own[PATH_MAX], name[32];
    if (geteuid() == 0 || !find_own(own, sizeof own))
        return -1;
    int folder = open(own, O_PATH | O_DIRECTORY | O_CLOEXEC), cage = -1;
    (void)snprintf(name, sizeof name, "holdfast-%ld", (long)getpid());
    if (folder >= 0 && mkdirat(folder, name, 0755) == 0)
        cage = openat(folder, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    /* No cage if the kernel cannot kill a cgroup (before 5.14), or if the user may not move processes into it. */
    if (cage >= 0 && (faccessat(cage, "cgroup.kill", W_OK, 0) != 0 || faccessat(folder, "cgroup.procs", W_OK, 0) != 0)) {
        (void)close(cage);
        (void)unlinkat(folder, name, AT_REMOVEDIR);
        cage = -1;
    }
    if (folder >= 0)
        (void)close(folder);
    return cage;
}

static bool put(int folder, const char *file, const char *text)
{
    int fd = openat(folder, file, O_WRONLY | O_CLOEXEC);
    bool done = fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text);
    if (fd >= 0)
        (void)close(fd);
    return done;
}

void cage_enter(int cage)
{
    if (cage >= 0)
        (void)put(cage, "cgroup.procs", "0");
}

static bool is_empty(int cage)
{
    char text[256] = "";
    int fd = openat(cage, "cgroup.events", O_RDONLY | O_CLOEXEC);
    ssize_t size = fd >= 0 ? read(fd, text, sizeof text - 1) : 0;
    if (fd >= 0)
        (void)close(fd);
    return size > 0 && strstr(text, "populated 0") != NULL;
}

bool cage_kill(int cage)
{
    bool empty = cage < 0 || (put(cage, "cgroup.kill", "1") && is_empty(cage));
    for (int ms = 0; !empty && ms < DEATH_MS; ms++) {
        (void)poll(NULL, 0, 1);
        empty = is_empty(cage);
    }
    return empty;
}

void cage_close(int cage)
{
    if (cage < 0)
        return;
    char text[32];
    int fd = openat(cage, "cgroup.procs", O_RDONLY | O_CLOEXEC);
    FILE *inside = fd >= 0 ? fdopen(fd, "r") : NULL;
    while (inside != NULL && fgets(text, sizeof text, inside) != NULL)
        (void)put(cage, "../cgroup.procs", text);
    if (inside != NULL)
        (void)fclose(inside);
    /* Its present path, whatever cgroup we are in now. */
    char link[48], path[PATH_MAX];
    (void)snprintf(link, sizeof link, "/proc/self/fd/%d", cage);
    ssize_t size = readlink(link, path, sizeof path - 1);
    if (size > 0) {
        path[size] = 0;
        (void)rmdir(path);
    }
    (void)close(cage);
}
