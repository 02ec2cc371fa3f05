/* SPDX-License-Identifier: MIT */
/* stalls.c - see stalls.h. */
#include "tests/support/stalls.h"
#include "tests/support/takers.h"

#include <dirent.h>
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LOOK_MS 10

/* A line of a file of that thread; "" once it has ended. */
static void line_of(const struct hft_stalls *stalls, int tid, const char *file, char *line, int room)
{
    char path[80];
    (void)snprintf(path, sizeof path, "/proc/%d/task/%d/%s", (int)stalls->pid, tid, file);
    FILE *in = fopen(path, "re");
    if (in == NULL || fgets(line, room, in) == NULL)
        line[0] = '\0';
    if (in != NULL)
        (void)fclose(in);
}

static struct hft_stalled *entry_of(struct hft_stalls *stalls, int tid)
{
    for (int i = 0; i < HFT_STALLS_THREADS; i++) {
        struct hft_stalled *entry = &stalls->threads[i];
        if (entry->tid == 0 || entry->tid == tid) {
            entry->tid = tid;
            return entry;
        }
    }
    return NULL;
}

static void look_at(struct hft_stalls *stalls, int tid)
{
    char name[64], says[512], counts[128], state = '?';
    unsigned long long turns = 0;
    line_of(stalls, tid, "comm", name, sizeof name);
    struct hft_stalled *entry = strncmp(name, stalls->prefix, strlen(stalls->prefix)) == 0 ? entry_of(stalls, tid) : NULL;
    if (entry == NULL)
        return;
    int64_t now = hft_boottime_ms();
    line_of(stalls, tid, "stat", says, sizeof says);
    line_of(stalls, tid, "schedstat", counts, sizeof counts);
    if (sscanf(says, "%*d (%*[^)]) %c", &state) != 1 || sscanf(counts, "%*u %*u %llu", &turns) != 1 || state != 'R' ||
        turns != entry->turns) {
        entry->turns = turns;
        entry->since_ms = state == 'R' ? now : 0;
    } else if (entry->since_ms == 0) {
        entry->since_ms = now;
    } else if (now - entry->since_ms > stalls->longest_ms) {
        stalls->longest_ms = now - entry->since_ms;
    }
}

static void *watch(void *arg)
{
    struct hft_stalls *stalls = arg;
    char path[64];
    (void)snprintf(path, sizeof path, "/proc/%d/task", (int)stalls->pid);
    while (!atomic_load(&stalls->over)) {
        DIR *folder = opendir(path);
        for (struct dirent *entry = folder != NULL ? readdir(folder) : NULL; entry != NULL; entry = readdir(folder)) {
            int tid = (int)strtol(entry->d_name, NULL, 10);
            if (tid != 0)
                look_at(stalls, tid);
        }
        if (folder != NULL)
            (void)closedir(folder);
        (void)poll(NULL, 0, LOOK_MS);
    }
    return NULL;
}

void hft_stalls_begin(struct hft_stalls *stalls, pid_t pid, const char *prefix)
{
    memset(stalls, 0, sizeof *stalls);
    stalls->pid = pid;
    stalls->prefix = prefix;
    if (pthread_create(&stalls->thread, NULL, watch, stalls) != 0) {
        perror("no thread to watch for stalls");
        exit(1);
    }
}

int64_t hft_stalls_end(struct hft_stalls *stalls)
{
    atomic_store(&stalls->over, true);
    (void)pthread_join(stalls->thread, NULL);
    return stalls->longest_ms;
}
