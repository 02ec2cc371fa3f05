/* SPDX-License-Identifier: MIT */
/* cgroup.c - see cgroup.h. */
#include "tests/fault/cgroup.h"

#include "tests/fault/fault.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static bool put(const struct hft_cgroup *group, const char *file, const char *text)
{
    char path[320];
    (void)snprintf(path, sizeof path, "%s/%s", group->path, file);
    int fd = open(path, O_WRONLY | O_CLOEXEC);
    bool done = fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text);
    if (fd >= 0)
        (void)close(fd);
    return done;
}

static bool says(const struct hft_cgroup *group, const char *file, const char *words)
{
    char path[320], line[128];
    bool found = false;
    (void)snprintf(path, sizeof path, "%s/%s", group->path, file);
    FILE *in = fopen(path, "re");
    while (in != NULL && !found && fgets(line, sizeof line, in) != NULL)
        found = strncmp(line, words, strlen(words)) == 0;
    if (in != NULL)
        (void)fclose(in);
    return found;
}

/* The mount point of the hierarchy: version 1's with this controller, or version 2's. */
static bool find_mount(const char *controller, bool unified, char *path, size_t room)
{
    char line[512], at[256], type[32], options[256];
    bool found = false;
    FILE *in = fopen("/proc/self/mounts", "re");
    while (in != NULL && !found && fgets(line, sizeof line, in) != NULL) {
        if (sscanf(line, "%*s %255s %31s %255s", at, type, options) != 3)
            continue;
        bool here = unified && strcmp(type, "cgroup2") == 0;
        char *rest = options;
        for (char *word; !unified && strcmp(type, "cgroup") == 0 && (word = strsep(&rest, ",")) != NULL;)
            here = here || strcmp(word, controller) == 0;
        if (here && strlen(at) < room) {
            (void)strcpy(path, at);
            found = true;
        }
    }
    if (in != NULL)
        (void)fclose(in);
    return found;
}

static bool has_file(const struct hft_cgroup *group, const char *file)
{
    char path[320];
    (void)snprintf(path, sizeof path, "%s/%s", group->path, file);
    return access(path, W_OK) == 0;
}

/* The keeper thaws the group when this process dies: a frozen process cannot even be killed. */
static bool start_keeper(struct hft_cgroup *group)
{
    static const char work[] =
        "read -r line; echo THAWED >\"$1/freezer.state\"; echo 0 >\"$1/cgroup.freeze\"; "
        "for i in $(seq 200); do rmdir \"$1\" && exit; sleep 0.02; done";
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0)
        return false;
    group->keeper = fork();
    if (group->keeper == 0) {
        int nowhere = open("/dev/null", O_WRONLY | O_CLOEXEC);
        (void)setsid();
        (void)dup2(ends[0], 0);
        (void)dup2(nowhere, 1);
        (void)dup2(nowhere, 2);
        (void)close_range(3, ~0U, CLOSE_RANGE_CLOEXEC);
        (void)execl("/bin/sh", "sh", "-c", work, "keeper", group->path, (char *)0);
        _exit(127);
    }
    (void)close(ends[0]);
    group->keeper_pipe = ends[1];
    return group->keeper > 0;
}

bool hft_cgroup_make(struct hft_cgroup *group, enum hft_controller controller, char *why, size_t room)
{
    const char *name = controller == HFT_FREEZER ? "freezer" : "cpu", *old = "freezer.state",
               *new = "cgroup.freeze";
    if (controller == HFT_CPU) {
        old = "cpu.cfs_quota_us";
        new = "cpu.max";
    }
    (void)snprintf(why, room, "no control group with '%s' is mounted", name);
    for (int version = 1; version <= 2; version++) {
        char mount[200];
        group->unified = version == 2;
        if (!find_mount(name, group->unified, mount, sizeof mount))
            continue;
        (void)snprintf(group->path, sizeof group->path, "%s/holdfast-fault-%d", mount, (int)getpid());
        if (mkdir(group->path, 0700) != 0) {
            (void)snprintf(why, room, "no control group may be made in %s (%s): root is needed", mount,
                           strerror(errno));
            continue;
        }
        if (has_file(group, version == 1 ? old : new) && start_keeper(group))
            return true;
        (void)snprintf(why, room, "a control group in %s has no '%s'", mount, version == 1 ? old : new);
        (void)rmdir(group->path);
    }
    return false;
}

bool hft_cgroup_add(const struct hft_cgroup *group, pid_t pid)
{
    char text[24];
    (void)snprintf(text, sizeof text, "%d", (int)pid);
    return put(group, "cgroup.procs", text);
}

bool hft_cgroup_freeze(const struct hft_cgroup *group, bool frozen)
{
    bool told = group->unified ? put(group, "cgroup.freeze", frozen ? "1" : "0")
                               : put(group, "freezer.state", frozen ? "FROZEN" : "THAWED");
    int64_t until = hft_true_ns() + 5000 * HFT_NS_PER_MS;
    while (told && hft_true_ns() < until) {
        if (group->unified ? says(group, "cgroup.events", frozen ? "frozen 1" : "frozen 0")
                           : says(group, "freezer.state", frozen ? "FROZEN" : "THAWED"))
            return true;
        hft_sleep_ms(1);
    }
    return false;
}

bool hft_cgroup_limit(const struct hft_cgroup *group, int percent)
{
    char text[48];
    if (percent == 0)
        return group->unified ? put(group, "cpu.max", "max 100000") : put(group, "cpu.cfs_quota_us", "-1");
    (void)snprintf(text, sizeof text, group->unified ? "%d 100000" : "%d", percent * 1000);
    return group->unified ? put(group, "cpu.max", text)
                          : put(group, "cpu.cfs_period_us", "100000") && put(group, "cpu.cfs_quota_us", text);
}

void hft_cgroup_remove(struct hft_cgroup *group)
{
    (void)close(group->keeper_pipe);
    while (waitpid(group->keeper, NULL, 0) < 0 && errno == EINTR)
        ;
}
