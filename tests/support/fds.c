/* SPDX-License-Identifier: MIT */
/* fds.c - see fds.h. Reads /proc/self. */
#include "tests/support/fds.h"

#include <dirent.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

static int entries(const char *path)
{
    DIR *folder = opendir(path);
    int count = 0;
    if (folder == NULL) {
        perror(path);
        exit(1);
    }
    for (struct dirent *entry = readdir(folder); entry != NULL; entry = readdir(folder))
        count += entry->d_name[0] != '.';
    (void)closedir(folder);
    return count;
}

int hft_open_descriptors(void)
{
    return entries("/proc/self/fd") - 1; /* but the one that counts */
}

int hft_running_threads(void)
{
    return entries("/proc/self/task");
}

long hft_resident_kib(void)
{
    long pages = 0;
    FILE *file = fopen("/proc/self/statm", "re");
    if (file == NULL || fscanf(file, "%*s %ld", &pages) != 1) {
        perror("/proc/self/statm");
        exit(1);
    }
    (void)fclose(file);
    return pages * (sysconf(_SC_PAGESIZE) / 1024);
}

bool hft_comes_down_to(int (*count)(void), int most)
{
    for (int i = 0; i < 20000 && count() > most; i++)
        (void)poll(NULL, 0, 1);
    return count() <= most;
}

int hft_thread_named(const char *name)
{
    int newest = 0;
    DIR *folder = opendir("/proc/self/task");
    for (struct dirent *entry = folder != NULL ? readdir(folder) : NULL; entry != NULL; entry = readdir(folder)) {
        char path[64], says[32] = "";
        int tid = (int)strtol(entry->d_name, NULL, 10);
        (void)snprintf(path, sizeof path, "/proc/self/task/%d/comm", tid);
        FILE *file = tid != 0 ? fopen(path, "re") : NULL;
        if (file != NULL && fscanf(file, "%31[^\n]", says) == 1 && strcmp(says, name) == 0 && tid > newest)
            newest = tid;
        if (file != NULL)
            (void)fclose(file);
    }
    if (folder != NULL)
        (void)closedir(folder);
    return newest;
}

long hft_thread_ticks(int tid)
{
    char path[64];
    long user = 0, system = 0;
    (void)snprintf(path, sizeof path, "/proc/self/task/%d/stat", tid);
    FILE *file = fopen(path, "re");
    if (file == NULL || fscanf(file, "%*d (%*[^)]) %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %ld %ld", &user, &system) != 2) {
        perror(path);
        exit(1);
    }
    (void)fclose(file);
    return user + system;
}

/* A perturbed thread sleeps where it otherwise runs on. False where the kernel does not tell. */
static bool is_perturbed(int tid)
{
    char path[64], says[256] = "";
    (void)snprintf(path, sizeof path, "/proc/self/task/%d/syscall", tid);
    FILE *file = fopen(path, "re");
    if (file != NULL) {
        if (fgets(says, sizeof says, file) == NULL)
            says[0] = 0;
        (void)fclose(file);
    }
    return strncmp(says, "running", 7) == 0 || strtol(says, NULL, 10) == SYS_clock_nanosleep;
}

bool hft_is_asleep(int tid)
{
    char path[64], state = '?';
    (void)snprintf(path, sizeof path, "/proc/self/task/%d/stat", tid);
    FILE *file = fopen(path, "re");
    if (file != NULL) {
        if (fscanf(file, "%*d (%*[^)]) %c", &state) != 1)
            state = '?';
        (void)fclose(file);
    }
    return state == 'S' && !is_perturbed(tid);
}
