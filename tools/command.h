/* SPDX-License-Identifier: MIT */
/* command.h - the command that `holdfast run` runs, as holdfast sees it: through its guard (guard.h), and with the
 * terminal, which is ours to lend. Knows nothing of locks but until when the command may run. */
#ifndef HOLDFAST_TOOL_COMMAND_H
#define HOLDFAST_TOOL_COMMAND_H

#include "family.h"
#include "guard.h"

struct command {
    struct guard_board *board;
    struct guard_job job;
    pid_t guard;
    int   socket;       /* to the guard; -1: it is gone */
    int   terminal;     /* the controlling terminal, or -1 */
    bool  wants_terminal;
    bool  has_terminal;
    pid_t pid;          /* also its process group; 0: not started */
    sigset_t early;     /* signals that came before it was */
    int   failure;      /* an errno: it could not be started. ENOENT and such are about the command */
    bool  is_ended;     /* code is its exit code */
    int   code;
};

/* Forks the guard. Call while the process has one thread; the words and the name are copied. Who descends from us already
 * is none of the command's (family.h). False: errno. */
bool command_prepare(struct command *command, const struct guard_job *job);
/* What loses its parent and was below the guard is below us, if the guard goes. */
void command_adopt(void);

void command_start(struct command *command, int64_t fence, int64_t until_ms);
/* It may run until then (a guard_clock_ms). */
void command_allow(struct command *command, int64_t until_ms);
/* The guard has rung, or is gone. Returns the signal that has just stopped the command, or 0. */
int command_hear(struct command *command);
/* A child of ours has changed: the guard goes on if it was stopped; orphans that came to us are reaped. */
void command_hear_children(const struct command *command);

/* To its group; once it is started, if it is not. False: nobody in it may be signalled. */
bool command_signal(struct command *command, int number);
/* Who of all that descends from it cannot be killed; KILL to all who can, and false: some got away (family.h). */
void command_ask(const struct command *command, struct refusal *refused);
bool command_kill(const struct command *command, struct refusal *refused);

/* The terminal to the command, if we are the ones to give it; and back. */
void command_lend_terminal(struct command *command);
void command_take_terminal(struct command *command);

/* Dismisses the guard. Whom the command has left behind may stay. */
void command_finish(struct command *command);

#endif
