/* SPDX-License-Identifier: MIT */
/* family.c - see family.h. */
#include "family.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/pidfd.h>
#include <sys/stat.h>
#include <unistd.h>

/* Number of lists, a millisecond or more apart where the last one gave nothing to signal: time for signalled
 * processes to die, and for torn lists to be read again. It also ends a family that always has more than we kill. */
#define LISTS_MOST 500

#define PF_FORKNOEXEC 0x40 /* the kernel's, as proc(5) says of "flags" */

struct kin {
    pid_t pid, parent, group, session;
    unsigned long long born; /* in ticks since boot: together with the pid it identifies the process */
    bool is_dead;            /* dead, and either not reaped or just being reaped */
    bool is_copy;            /* forked, and has not exec'd since */
    bool is_told;            /* was signalled */
};

struct list {
    struct kin *all;
    size_t count, room;
};

/* False: there is no such process. */
static bool read_kin(pid_t pid, struct kin *kin)
{
    char path[48], text[1024];
    (void)snprintf(path, sizeof path, "/proc/%ld/stat", (long)pid);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t size = fd >= 0 ? read(fd, text, sizeof text - 1) : -1;
    if (fd >= 0)
        (void)close(fd);
    if (size <= 0)
        return false;
    text[size] = 0;
    const char *at = strrchr(text, ')'); /* the end of the process name, which may contain anything */
    char state = 0;
    int parent = 0, group = 0, session = 0;
    unsigned flags = 0;
    *kin = (struct kin){.pid = pid};
    if (at == NULL || sscanf(at + 1,
                             " %c %d %d %d %*d %*d %u %*u %*u %*u %*u %*u %*u %*d %*d %*d %*d %*d %*d %llu", &state,
                             &parent, &group, &session, &flags, &kin->born) != 6)
        return false;
    kin->parent = parent;
    kin->group = group;
    kin->session = session;
    kin->is_dead = state == 'Z' || state == 'X';
    kin->is_copy = (flags & PF_FORKNOEXEC) != 0;
    return true;
}

static int by_pid(const void *a, const void *b)
{
    const struct kin *one = a, *other = b;
    return one->pid < other->pid ? -1 : one->pid > other->pid;
}

static struct kin *find(const struct list *list, pid_t pid)
{
    struct kin key = {.pid = pid};
    return list->count > 0 ? bsearch(&key, list->all, list->count, sizeof key, by_pid) : NULL;
}

static bool add(struct list *list, const struct kin *kin)
{
    if (list->count == list->room) {
        size_t room = list->room > 0 ? 2 * list->room : 256;
        struct kin *all = realloc(list->all, room * sizeof *all);
        if (all == NULL)
            return false;
        list->all = all;
        list->room = room;
    }
    list->all[list->count++] = *kin;
    return true;
}

/* /proc may be of another PID namespace, whose pids are other processes here. */
static bool proc_is_ours(void)
{
    char text[16];
    ssize_t size = readlink("/proc/self", text, sizeof text - 1);
    if (size <= 0)
        return false;
    text[size] = 0;
    return strtol(text, NULL, 10) == (long)getpid();
}

/* False: no descriptor, or no memory, for the list. */
static bool list_all(struct list *list)
{
    bool is_ours = proc_is_ours();
    DIR *processes = is_ours ? opendir("/proc") : NULL;
    const struct dirent *entry;
    struct kin kin;
    bool room = true;
    list->count = 0;
    while (processes != NULL && room && (entry = readdir(processes)) != NULL)
        if (entry->d_name[0] >= '1' && entry->d_name[0] <= '9' &&
            read_kin((pid_t)strtol(entry->d_name, NULL, 10), &kin))
            room = add(list, &kin);
    if (processes != NULL)
        (void)closedir(processes);
    if (list->count > 0)
        qsort(list->all, list->count, sizeof *list->all, by_pid);
    return !is_ours || (room && find(list, getpid()) != NULL);
}

static struct list strangers; /* our descendants that are not of the family */

enum kinship { STRANGER, DESCENDANT, TORN }; /* TORN: a parent exited while the list was made; the next list tells */

static enum kinship kinship(const struct list *list, const struct kin *kin, pid_t ancestor)
{
    for (size_t steps = 0; steps < list->count; steps++) {
        const struct kin *stranger = find(&strangers, kin->pid);
        if (stranger != NULL && stranger->born == kin->born)
            return STRANGER;
        if (kin->parent == ancestor)
            return DESCENDANT;
        if (kin->parent == 0)
            return STRANGER;
        kin = find(list, kin->parent);
        if (kin == NULL)
            return TORN;
    }
    return TORN;
}

/* 0, or an errno: EPERM is a refusal, ESRCH means that it has died. Its group, which no fork can leave, is signalled
 * too if it cannot be a stranger's: it is in a session that is not ours, so a process of the family began it. */
static int tell(const struct kin *kin, int number)
{
    struct kin now;
    int fd = pidfd_open(kin->pid, 0);
    if (fd < 0 && errno != ENOSYS)
        return errno;
    int failed = ESRCH;
    if (read_kin(kin->pid, &now) && now.born == kin->born) { /* so fd refers to the process in the list */
        if (!now.is_dead)
            failed = (fd < 0 ? kill(kin->pid, number) : pidfd_send_signal(fd, number, NULL, 0)) == 0 ? 0 : errno;
        if (now.session != getsid(0) && now.group > 1) /* 0, 1: it came here from outside our PID namespace */
            (void)kill(-now.group, number);
    }
    if (fd >= 0)
        (void)close(fd);
    return failed;
}

static void note_refusal(const struct kin *kin, struct refusal *refused)
{
    char path[32];
    struct stat facts = {0};
    (void)snprintf(path, sizeof path, "/proc/%ld", (long)kin->pid);
    (void)stat(path, &facts);
    if (refused->count++ > 0)
        return;
    refused->pid = kin->pid;
    refused->uid = facts.st_uid;
}

struct outcome {
    bool is_open;     /* some signalled earlier are not dead yet, or the list was torn */
    bool has_missed;  /* some were alive till now and may have started others before: the next list shows those */
};

/* Signals all descendants that were not signalled before. */
static struct outcome tell_all(struct list *now, const struct list *before, pid_t ancestor, int number,
                               struct refusal *refused)
{
    struct outcome outcome = {false, false};
    *refused = (struct refusal){0};
    for (size_t i = 0; i < now->count; i++) {
        struct kin *kin = &now->all[i];
        const struct kin *earlier = find(before, kin->pid);
        bool is_known = earlier != NULL && earlier->born == kin->born;
        kin->is_told = is_known && earlier->is_told;
        outcome.is_open = outcome.is_open || (kin->is_told && !kin->is_dead);
        if (kin->is_told || (is_known && earlier->is_dead))
            continue;
        enum kinship is = kinship(now, kin, ancestor);
        outcome.is_open = outcome.is_open || is == TORN;
        if (is != DESCENDANT)
            continue;
        int failed = tell(kin, number);
        if (failed == EPERM)
            note_refusal(kin, refused);
        else
            outcome.has_missed = true;
        kin->is_told = failed == 0;
    }
    return outcome;
}

void family_begin(void)
{
    struct list now = {0};
    bool room = true;
    (void)list_all(&now);
    strangers.count = 0;
    for (size_t i = 0; i < now.count && room; i++)
        if (kinship(&now, &now.all[i], getpid()) == DESCENDANT)
            room = add(&strangers, &now.all[i]);
    free(now.all);
}

bool family_is_visible(void)
{
    return proc_is_ours() && access("/proc/1", F_OK) == 0;
}

bool family_is_copy(pid_t pid)
{
    struct kin kin;
    return proc_is_ours() && read_kin(pid, &kin) && kin.is_copy;
}

void family_ask(pid_t ancestor, struct refusal *refused)
{
    struct list now = {0}, nobody = {0};
    (void)list_all(&now);
    (void)tell_all(&now, &nobody, ancestor, 0, refused);
    free(now.all);
}

bool family_kill(pid_t ancestor, pid_t group, struct refusal *refused)
{
    struct list lists[2] = {{0}};
    struct outcome outcome = {true, true};
    if (group > 0)
        (void)kill(-group, SIGKILL);
    for (int i = 0; i < LISTS_MOST && (outcome.is_open || outcome.has_missed); i++) {
        if (!outcome.has_missed)
            (void)poll(NULL, 0, 1);
        bool is_whole = list_all(&lists[i % 2]);
        outcome = tell_all(&lists[i % 2], &lists[1 - i % 2], ancestor, SIGKILL, refused);
        outcome.has_missed = outcome.has_missed || !is_whole;
    }
    free(lists[0].all);
    free(lists[1].all);
    return !outcome.has_missed;
}
