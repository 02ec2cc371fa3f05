/* SPDX-License-Identifier: MIT */
/* run.h - holdfast run: what its files share. */
#ifndef HOLDFAST_TOOL_RUN_H
#define HOLDFAST_TOOL_RUN_H

#include "command.h"
#include <holdfast/holdfast.h>

enum { RUN_LABEL_MOST = 128 };

struct run {
    const char *url, *label, *name;
    char      **words;    /* the command's */
    char       *shell[4]; /* -c: what `words` points to */
    int64_t     wait_ms, lease_ms, grace_ms;
    int         conflict_code;
    bool        keep_url, verbose;
    hf_client  *client;
    hf_lease   *lease;
    struct command command;
    struct signals_before before;
    int  signals, timer, notice; /* signalfd, timerfd, eventfd */
    bool told_to_stop;           /* we got SIGTSTP: stop when the command has stopped */
    bool ending, lost;           /* the command got TERM, KILL because of its lease */
    bool deaf;                   /* `ending`, but TERM reached no process */
    bool refuses;                /* some of its processes could not be killed by us */
    bool escapes;                /* the last kill gave up (family_kill): some may live */
    bool said;                   /* `refuses` has been reported */
    bool unguarded;              /* the guard was killed, so the command was too */
    hf_reason reason;            /* of `ending` or `lost`, as it was then */
};

/* Reads the command line into *run. -1: go on; else the exit code, and the help or the error has been printed. */
int run_parse(struct run *run, int argc, char **argv);

/* Starts the command and minds it and its lease until there is nothing more to wait for. What became of them is in
 * *run then. The caller has made its descriptors, prepared the command and acquired the lease. */
void run_supervise(struct run *run);

#endif
