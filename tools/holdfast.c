/* SPDX-License-Identifier: MIT */
/* holdfast.c - the tool: selects the command, and has the help texts. */
#include "cli.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

char *cli_words;
size_t cli_words_size;

#define URL_HELP                                                                          \
    "      --url URL           the server: redis://..., unix:///..., embedded:\n"          \
    "                          (default: $HOLDFAST_URL, else redis://127.0.0.1:6379)\n"

static const struct command_named {
    const char *name;
    int (*run)(int argc, char **argv);
    const char *what;
    const char *help;
} commands[] = {
    {"run", command_run, "run a command while holding a lock",
     "usage: holdfast run [options] NAME [--] command [argument ...]\n"
     "       holdfast run [options] NAME -c 'shell line'\n"
     "\n"
     "Acquires the lock NAME, runs the command, releases the lock. Across all machines, at most one\n"
     "command runs under a name at a time. The command gets its fence in $HOLDFAST_FENCE and the name\n"
     "in $HOLDFAST_NAME; $HOLDFAST_URL is removed from its environment.\n"
     "\n"
     "  -n, --nonblock          try once instead of waiting\n"
     "  -w, --wait, --timeout DURATION\n"
     "                          wait at most this long (default: no limit)\n"
     "  -E, --conflict-exit-code CODE\n"
     "                          exit with CODE, not 1, when the lock was not obtained\n"
     "  -c, --command LINE      run this line with /bin/sh\n"
     "  -s, --shared            beside other commands that share the lock, and never beside one that\n"
     "                          has it alone\n"
     "  -p, --permits N/LIMIT   take N of the LIMIT permits of the semaphore NAME instead of the lock:\n"
     "                          --permits 1/5 lets five commands run at a time\n"
     "      --lease DURATION    how long others wait if this machine dies (default: the URL's lease_ms, or 10)\n"
     "      --grace DURATION    the command gets TERM this long before the lease would be lost, and\n"
     "                          KILL when it is lost (default: 2; at most half the lease)\n"
     "      --label TEXT        shown by `holdfast show` (default: the command's first word)\n"
     "      --keep-url          pass $HOLDFAST_URL, with its password, to the command\n"
     "  -v, --verbose           report on standard error who holds the lock, and when it is\n"
     "                          obtained and released\n" URL_HELP
     "\n"
     "A DURATION is in seconds (1.5) or has a unit: 500ms, 5m, 2h, 1d.\n"
     "\n"
     "exit: the command's code; 128 + signal number if a signal ended the command, or ended holdfast\n"
     "before the command started; 1 not obtained; 64 usage; 69 no server; 76 the lease was lost and the\n"
     "command stopped; 77 the lease was lost, but not all of the command could be stopped (another\n"
     "user's process, say); 126 the command cannot be run; 127 command not found\n"},
    {"lead", command_lead, "run a command while leading, again and again",
     "usage: holdfast lead [options] NAME [--] command [argument ...]\n"
     "       holdfast lead [options] NAME -c 'shell line'\n"
     "\n"
     "Stands for the lock NAME for as long as it takes, runs the command while holding it, and resigns\n"
     "when the command ends. When the lock is lost (holdfast break, a server that was away) the command\n"
     "is stopped, and lead stands again. The command gets what that of `holdfast run` gets.\n"
     "\n"
     "  -c, --command LINE      run this line with /bin/sh\n"
     "      --lease DURATION    how long others wait if this machine dies (default: the URL's lease_ms, or 10)\n"
     "      --grace DURATION    the command gets TERM this long before the lease would be lost, and\n"
     "                          KILL when it is lost (default: 2; at most half the lease)\n"
     "      --label TEXT        shown by `holdfast watch` and `show` (default: the command's first word)\n"
     "      --keep-url          pass $HOLDFAST_URL, with its password, to the command\n"
     "  -v, --verbose           report on standard error who leads, and when it begins, ends and stands\n"
     "                          again\n" URL_HELP
     "\n"
     "While it stands there is no command: each signal that is passed on to one ends it, HUP as well.\n"
     "exit: as `holdfast run`; 76 only when the command's guard was killed, when the lock was lost after\n"
     "INT, QUIT or TERM, or when the command had ended before it was known to be lost\n"},
    {"watch", command_watch, "watch who holds a lock",
     "usage: holdfast watch [--json] [--url URL] NAME\n"
     "\n"
     "Prints a line now and at each change: who holds the lock NAME, or that nobody does. Ends by a\n"
     "signal. While the server is away nothing is printed. Readers, who share the lock, are nobody to\n"
     "it: `holdfast show` lists them.\n"
     "\n"
     "      --json              an object a line; null for values that are not known\n" URL_HELP},
    {"ls", command_ls, "list the locks that are held",
     "usage: holdfast ls [--semaphore] [--json] [--url URL] [GLOB]\n"
     "\n"
     "Lists the locks that are held, or those whose name matches GLOB (as in Redis's KEYS).\n"
     "\n"
     "      --semaphore         the semaphores instead: a line for each grant of permits\n"
     "      --json              an array of objects; null for values that are not known\n" URL_HELP},
    {"show", command_show, "show who holds a lock",
     "usage: holdfast show [--semaphore] [--json] [--url URL] NAME\n"
     "\n"
     "Shows who holds the lock NAME, since when, how long until it expires, and who waits for it.\n"
     "\n"
     "      --semaphore         who has permits of the semaphore NAME, and how many\n"
     "      --json              an object; null if the lock is free\n" URL_HELP "\n"
     "exit: 0 held, 1 free\n"},
    {"break", command_break, "take a lock from its holder",
     "usage: holdfast break [--force] [--semaphore] [--url URL] NAME\n"
     "\n"
     "Takes the lock NAME from its holder, which is notified at once and whose fence is too low from\n"
     "then on. A holder that does not answer (it may be dead) keeps the lock until its lease ends;\n"
     "break says so. What another library holds is left alone.\n"
     "\n"
     "      --force             give the lock to the next waiter at once. Use it only if the holder is\n"
     "                          known to be dead: a live one works on, beside the next holder, until\n"
     "                          it is notified. Takes what another library holds, too\n"
     "      --semaphore         take all permits of the semaphore NAME from all their holders\n" URL_HELP "\n"
     "exit: 0 it had a holder, 1 it was free, or is another library's\n"},
    {"doctor", command_doctor, "check the server",
     "usage: holdfast doctor [--json] [--url URL]\n"
     "       holdfast doctor --acl\n"
     "\n"
     "Reports what makes the server unsuitable for locks, and how to fix it. Takes a lock under a name\n"
     "that no other client uses and releases it; only that and the fence counter are changed.\n"
     "\n"
     "      --json              an array of findings: level, what, remedy; if the server cannot be examined,\n"
     "                          the last one says why\n"
     "      --acl               print the smallest set of rights with which all of holdfast works: a\n"
     "                          command for the server, and lines that say what is for what; asks no server\n" URL_HELP "\n"
     "exit: 0 no errors, 1 errors found\n"},
};
#define COMMANDS (sizeof commands / sizeof *commands)

static const struct command_named *find(const char *name)
{
    for (size_t i = 0; i < COMMANDS; i++)
        if (strcmp(commands[i].name, name) == 0)
            return &commands[i];
    return NULL;
}

static void overview(FILE *out)
{
    (void)fputs("usage: holdfast COMMAND [options]\n\n", out);
    for (size_t i = 0; i < COMMANDS; i++)
        (void)fprintf(out, "  %-8s%s\n", commands[i].name, commands[i].what);
    (void)fputs("  help    more about a command: holdfast help run\n\n", out);
    (void)fputs("holdfast --version prints the version.\n", out);
}

bool cli_help(const char *name)
{
    if (name != NULL && strcmp(name, "help") == 0)
        name = NULL;
    const struct command_named *command = name != NULL ? find(name) : NULL;
    if (command != NULL)
        (void)fputs(command->help, stdout);
    else if (name == NULL)
        overview(stdout);
    return command != NULL || name == NULL;
}

static int run_tool(int argc, char **argv)
{
    if (argc < 2) {
        overview(stderr);
        return CLI_USAGE;
    }
    const char *word = argv[1];
    if (strcmp(word, "--version") == 0) {
        (void)printf("holdfast %s\n", hf_version());
        return CLI_DONE;
    }
    if (strcmp(word, "help") == 0 || strcmp(word, "--help") == 0 || strcmp(word, "-h") == 0) {
        if (cli_help(argc > 2 ? argv[2] : NULL))
            return CLI_DONE;
        word = argv[2];
    }
    const struct command_named *command = find(word);
    if (command != NULL)
        return command->run(argc - 1, argv + 1);
    return cli_misused(NULL, "there is no %s %s", word[0] == '-' ? "option" : "command", word);
}

/* Fills the standard descriptors that are closed, so that no descriptor of ours gets their numbers. They are opened
 * in the wrong direction, so that using them still fails, and CLOEXEC, so that the command finds them closed. */
static bool fill_standard(void)
{
    for (int fd = 0; fd <= STDERR_FILENO; fd++)
        if (fcntl(fd, F_GETFD) < 0 && open("/dev/null", (fd == STDIN_FILENO ? O_WRONLY : O_RDONLY) | O_CLOEXEC) != fd)
            return false;
    return true;
}

int main(int argc, char **argv)
{
    if (!fill_standard())
        return CLI_OS;
    cli_words = argv[0];
    for (int i = 0; i < argc && argv[i] == cli_words + cli_words_size; i++)
        cli_words_size += strlen(argv[i]) + 1;
    int code = run_tool(argc, argv);
    int failed = fflush(stdout) == 0 ? 0 : errno;
    if (failed == 0 && ferror(stdout) == 0)
        return code;
    if (failed != 0)
        cli_say("cannot write the output: %s", strerror(failed));
    else
        cli_say("cannot write the output"); /* an earlier write failed, whose reason is gone */
    return CLI_OUTPUT;
}
