/* SPDX-License-Identifier: MIT */
/* child.c - see child.h. */
#include "tests/support/child.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <unistd.h>

pid_t hft_fork(void)
{
    pid_t parent = getpid();
    (void)fflush(NULL); /* else the child writes it once more */
    pid_t pid = fork();
    if (pid < 0) {
        perror("fork");
        exit(1);
    }
    if (pid == 0) {
        (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (getppid() != parent) /* it ended before that was set */
            _exit(127);
    }
    return pid;
}
