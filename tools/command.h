/* SPDX-License-Identifier: MIT */
/* command.h - the command that `holdfast run` runs, as holdfast sees it: through its guard (guard.h), and with the
 * terminal, which is ours to lend. All it knows of locks is until when the command may run. */
#ifndef HOLDFAST_TOOL_COMMAND_H
#define HOLDFAST_TOOL_COMMAND_H

#include "family.h"
#include "guard.h"

struct command {
    struct guard_board *board;
    struct guard_job job;
    pid_t guard;
    int   socket;       /* to the guard; -1: the guard is gone */
    int   terminal;     /* the controlling terminal, or -1 */
    bool  wants_terminal;
    bool  has_terminal;
    pid_t pid;          /* also its process group; 0: not started */
    sigset_t early;     /* signals that came before the command was started */
    int   failure;      /* an errno: it could not be started. ENOENT and such are about the command */
    bool  is_ended;     /* code is its exit code */
    int   code;
};

/* Forks the guard. Call it while the process has one thread; the words and the name are copied. Present descendants
 * of ours are not of the command's family (family.h). False: errno. */
bool command_prepare(struct command *command, const struct guard_job *job);
/* Makes us a subreaper: if the guard goes, orphans from below it become our children. */
void command_adopt(void);

void command_start(struct command *command, int64_t fence, int64_t until_ms);
/* Lets the command run until until_ms (a guard_clock_ms). */
void command_allow(struct command *command, int64_t until_ms);
/* Call when the socket is readable: the guard has sent a byte, or is gone. Returns the signal that has just stopped
 * the command, or 0. */
int command_hear(struct command *command);
/* Call at SIGCHLD: continues the guard if it was stopped, and reaps orphans that came to us. */
void command_hear_children(const struct command *command);

/* Signals the command's process group; a command that is not started yet gets the signal when it is. False: no process
 * in the group may be signalled. */
bool command_signal(struct command *command, int number);
/* Which descendants of the command cannot be killed; KILL to the others. False: some got away (family.h). */
void command_ask(const struct command *command, struct refusal *refused);
bool command_kill(const struct command *command, struct refusal *refused);

bool command_is_in_background(const struct command *command); /* of the terminal, if there is one */
/* Gives the terminal to the command, if it is ours to give; and takes it back. */
void command_lend_terminal(struct command *command);
void command_take_terminal(struct command *command);

/* Dismisses the guard. Processes that the command has left behind may stay. */
void command_finish(struct command *command);

#endif
