/* SPDX-License-Identifier: MIT */
/* run.h - holdfast run and lead: what their files share. */
#ifndef HOLDFAST_TOOL_RUN_H
#define HOLDFAST_TOOL_RUN_H

#include "command.h"
#include <holdfast/holdfast.h>

enum { RUN_LABEL_MOST = 128 };

struct run {
    const char *verb;     /* "run", or "lead": stands again when the lease was lost */
    const char *url, *label, *name;
    char      **words;    /* the command's */
    char       *shell[4]; /* -c: what `words` points to */
    int64_t     wait_ms, lease_ms, grace_ms;
    int         conflict_code;
    bool        shared, keep_url, verbose;
    int permits, limit;  /* of a semaphore; permits 0: it takes the lock of that name */
    bool        stands_again; /* lead: it has led before, so the server is the right one, wherever it is now */
    hf_client  *client;
    hf_lease   *lease;
    struct command command;
    struct signals_before before;
    int  signals, timer, notice; /* signalfd, timerfd, eventfd */
    bool told_to_stop;           /* we got SIGTSTP: stop when the command has stopped */
    bool told_to_end;            /* a signal that ends us was passed on: do not stand again */
    int  heard;                  /* the last signal that was passed on; the terminal that is lent sends us none */
    bool ending, lost;           /* the command got TERM, KILL because of its lease */
    bool deaf;                   /* `ending`, but TERM reached no process */
    bool refuses;                /* some of its processes could not be killed by us */
    bool escapes;                /* the last kill gave up (family_kill): some may live */
    bool said;                   /* `refuses` has been reported */
    bool unguarded;              /* the guard was killed, so the command was too */
    hf_reason reason;            /* of `ending` or `lost`, as it was then */
    int  ends_by;                /* the signal that ended the command, if nothing else is to be told; 0: none did */
    bool ends_job;               /* all of our job, for the command had the terminal */
};

/* Reads the command line, whose first word is the verb, into *run. -1: go on; else the exit code, and the help or the
 * error has been printed. */
int run_parse(struct run *run, int argc, char **argv);
/* The length of the lease, once it is known, and with it that of the grace. -1, or an exit code: the grace is too long for it. */
int run_set_lease(struct run *run, int64_t lease_ms);

bool run_leads(const struct run *run);

/* What the holder is called where it gave itself no name: as its command. Any client can ask for it, so of a shell line
 * it is the first word only, or the shell if that word assigns: there may be passwords in it. */
void run_label(const struct run *run, char label[RUN_LABEL_MOST + 1]);

/* Starts the command and minds it and its lease until there is nothing more to wait for. What became of them is in
 * *run then. The caller has made its descriptors, prepared the command and acquired the lease. */
void run_supervise(struct run *run);

#endif
