/* SPDX-License-Identifier: MIT */
/* cgroup.h - a control group, of version 1 or 2, in which a fault freezes one process or limits its CPU time. */
#ifndef HFT_CGROUP_H
#define HFT_CGROUP_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

struct hft_cgroup {
    char path[256];
    bool unified; /* version 2 */
    pid_t keeper; /* a shell that thaws and removes the group, when told or when this process has died */
    int keeper_pipe;
};

enum hft_controller { HFT_FREEZER, HFT_CPU };

/* False: this machine does not allow a control group; `why` is a sentence about it. */
bool hft_cgroup_make(struct hft_cgroup *group, enum hft_controller controller, char *why, size_t room);
bool hft_cgroup_add(const struct hft_cgroup *group, pid_t pid);
bool hft_cgroup_freeze(const struct hft_cgroup *group,
                       bool frozen); /* returns when it stands still, or goes on */
bool hft_cgroup_limit(const struct hft_cgroup *group, int percent); /* of one CPU; 0: no limit */
void hft_cgroup_remove(struct hft_cgroup *group);             /* when its processes are gone */

#endif
