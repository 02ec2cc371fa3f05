/* SPDX-License-Identifier: MIT */
/* command.c - see command.h. */
#include "command.h"
#include "cage.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#define DISMISS_MS 2000 /* for the guard to exit when told to; then it is killed */

/* The guard will wipe the words that came from main. */
static bool copy_words(struct guard_job *job)
{
    size_t count = 0;
    char **words = job->command;
    while (words[count] != NULL)
        count++;
    job->name = strdup(job->name);
    job->command = calloc(count + 1, sizeof *job->command);
    bool ok = job->name != NULL && job->command != NULL;
    for (size_t i = 0; ok && i < count; i++)
        ok = (job->command[i] = strdup(words[i])) != NULL;
    return ok;
}

static void free_words(struct guard_job *job)
{
    for (size_t i = 0; job->command[i] != NULL; i++)
        free(job->command[i]);
    free(job->command);
    free((char *)(uintptr_t)job->name);
}

bool command_prepare(struct command *command, const struct guard_job *job)
{
    int ends[2];
    *command = (struct command){.job = *job, .socket = -1};
    (void)sigemptyset(&command->early);
    command->terminal = open("/dev/tty", O_RDWR | O_CLOEXEC | O_NOCTTY);
    /* With our output in a pipe, another process of our job may be reading the terminal: lend it only on demand. */
    command->wants_terminal = isatty(STDIN_FILENO) && isatty(STDOUT_FILENO);
    command->board = mmap(NULL, sizeof *command->board, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (command->board == MAP_FAILED || !copy_words(&command->job) ||
        socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0)
        return false;
    atomic_store(&command->board->code, -1);
    command->job.cage = cage_open();
    family_begin(); /* before the fork: children of a shell that exec'd us are strangers, the guard is not */
    command->guard = fork();
    if (command->guard == 0) {
        (void)close(ends[0]);
        guard_run(ends[1], command->board, &command->job);
    }
    if (command->guard < 0) {
        int failed = errno;
        cage_close(command->job.cage);
        errno = failed;
    }
    (void)close(ends[1]);
    command->socket = ends[0];
    return command->guard > 0;
}

void command_adopt(void)
{
    (void)prctl(PR_SET_CHILD_SUBREAPER, 1);
}

static void wish(const struct command *command, enum guard_wish wish)
{
    atomic_store(&command->board->wish, (int)wish);
    (void)send(command->socket, "", 1, MSG_NOSIGNAL | MSG_DONTWAIT);
}

void command_start(struct command *command, int64_t fence, int64_t until_ms)
{
    atomic_store(&command->board->fence, fence);
    atomic_store(&command->board->until_ms, until_ms);
    wish(command, GUARD_START);
}

void command_allow(struct command *command, int64_t until_ms)
{
    atomic_store(&command->board->until_ms, until_ms);
}

int command_hear(struct command *command)
{
    char bytes[64];
    struct guard_board *board = command->board;
    ssize_t size = recv(command->socket, bytes, sizeof bytes, MSG_DONTWAIT);
    if (size == 0 || (size < 0 && errno != EAGAIN && errno != EINTR)) {
        (void)close(command->socket);
        command->socket = -1;
    }
    if (command->pid == 0 && (command->pid = atomic_load(&board->pid)) != 0) {
        command_lend_terminal(command);
        for (int number = 1; number < _NSIG; number++)
            if (sigismember(&command->early, number) == 1)
                (void)command_signal(command, number); /* the guard's child unblocks them before it execs the command */
        wish(command, GUARD_GO);
    }
    command->failure = atomic_load(&board->failure);
    if ((command->code = atomic_load(&board->code)) >= 0)
        command->is_ended = true;
    return atomic_exchange(&board->stopped, 0);
}

void command_hear_children(const struct command *command)
{
    siginfo_t info = {0};
    if (waitid(P_PID, (id_t)command->guard, &info, WSTOPPED | WNOHANG) == 0 && info.si_pid != 0)
        (void)kill(command->guard, SIGCONT);
    info.si_pid = 0;
    while (waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) == 0 && info.si_pid != 0 &&
           info.si_pid != command->guard) {
        (void)waitid(P_PID, (id_t)info.si_pid, &info, WEXITED | WNOHANG);
        info.si_pid = 0;
    }
}

bool command_signal(struct command *command, int number)
{
    if (command->pid == 0) {
        if (number == SIGCONT)
            (void)sigdelset(&command->early, SIGTSTP);
        else
            (void)sigaddset(&command->early, number);
        return true;
    }
    /* Without the guard the command may have been reaped and its group id reused; the kernel killed it. */
    return command->socket < 0 || kill(-command->pid, number) == 0 || errno != EPERM;
}

/* The guard is not of the family itself. Once it is gone, the family is below us. */
static pid_t ancestor(const struct command *command)
{
    return command->socket >= 0 ? command->guard : getpid();
}

void command_ask(const struct command *command, struct refusal *refused)
{
    *refused = (struct refusal){0};
    if (command->job.cage < 0) /* with a cage all can be killed, though not all be signalled */
        family_ask(ancestor(command), refused);
}

bool command_kill(const struct command *command, struct refusal *refused)
{
    (void)cage_kill(command->job.cage);
    return family_kill(ancestor(command), command->socket >= 0 ? command->pid : 0, refused);
}

bool command_is_in_background(const struct command *command)
{
    return command->terminal >= 0 && tcgetpgrp(command->terminal) != getpgrp();
}

void command_lend_terminal(struct command *command)
{
    if (command->terminal >= 0 && command->wants_terminal && tcgetpgrp(command->terminal) == getpgrp())
        command->has_terminal = tcsetpgrp(command->terminal, command->pid) == 0;
}

void command_take_terminal(struct command *command)
{
    if (command->has_terminal)
        (void)tcsetpgrp(command->terminal, getpgrp());
    command->has_terminal = false;
}

void command_finish(struct command *command)
{
    char bytes[64];
    struct pollfd gone = {.fd = command->socket, .events = POLLIN};
    command_take_terminal(command);
    wish(command, GUARD_END);
    (void)kill(command->guard, SIGCONT);
    while (gone.fd >= 0 && poll(&gone, 1, DISMISS_MS) == 1 && recv(gone.fd, bytes, sizeof bytes, MSG_DONTWAIT) > 0)
        continue;
    (void)kill(command->guard, SIGKILL); /* if it has exited it is an unreaped zombie, so this is still its pid */
    if (command->socket >= 0)
        (void)close(command->socket);
    while (waitpid(command->guard, NULL, 0) < 0 && errno == EINTR)
        continue;
    cage_close(command->job.cage);
    free_words(&command->job);
    (void)munmap(command->board, sizeof *command->board);
    if (command->terminal >= 0)
        (void)close(command->terminal);
}
