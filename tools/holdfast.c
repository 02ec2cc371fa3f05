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
     "Takes the lock NAME, runs the command, gives the lock back. At most one command runs under a\n"
     "name at any time, on whatever machine. The command finds its fence in $HOLDFAST_FENCE and the\n"
     "name in $HOLDFAST_NAME, but not $HOLDFAST_URL.\n"
     "\n"
     "  -n, --nonblock          try once instead of waiting\n"
     "  -w, --wait, --timeout DURATION\n"
     "                          wait at most so long (default: for ever)\n"
     "  -E, --conflict-exit-code CODE\n"
     "                          exit with CODE, not 1, when the lock was not obtained\n"
     "  -c, --command LINE      run this line with /bin/sh\n"
     "      --lease DURATION    how long others wait if this machine dies (default: 10)\n"
     "      --grace DURATION    the command gets TERM when the lease is lost in less than that, and\n"
     "                          KILL when it is (default: 2; at most half the lease)\n"
     "      --label TEXT        what `holdfast show` tells of us (default: the command)\n"
     "      --keep-url          leave $HOLDFAST_URL, with its password, to the command\n"
     "  -v, --verbose           say on standard error who holds it, when it was obtained and given back\n" URL_HELP
     "\n"
     "A DURATION is in seconds (1.5), or says its unit: 500ms, 5m, 2h, 1d.\n"
     "\n"
     "exit: the command's code; 128 + signal if one ended it, or us before; 1 not obtained; 64 usage;\n"
     "69 no server; 76 the lease was lost and the command stopped; 77 it was lost, and the command,\n"
     "another user's, cannot be stopped; 126, 127 no such command\n"},
    {"ls", command_ls, "list the locks that are held",
     "usage: holdfast ls [--json] [--url URL] [GLOB]\n"
     "\n"
     "Lists the locks that are held, or those whose name matches GLOB (as in Redis's KEYS).\n"
     "\n"
     "      --json              an array of objects; null where nobody knows\n" URL_HELP},
    {"show", command_show, "show who holds a lock",
     "usage: holdfast show [--json] [--url URL] NAME\n"
     "\n"
     "Shows who holds the lock NAME, since when, for how long still, and who waits for it.\n"
     "\n"
     "      --json              an object; null if the lock is free\n" URL_HELP "\n"
     "exit: 0 held, 1 free\n"},
    {"break", command_break, "take a lock from its holder",
     "usage: holdfast break [--force] [--url URL] NAME\n"
     "\n"
     "Takes the lock NAME from its holder, who is told at once and whose fence is too low from then on.\n"
     "A holder that does not answer, a dead one perhaps, keeps it until its lease ends; that is said.\n"
     "\n"
     "      --force             let the next one in at once: for a holder that you know to be dead. One\n"
     "                          that is not works on until it hears of it, beside the next one\n" URL_HELP "\n"
     "exit: 0 it had a holder, 1 it was free\n"},
    {"doctor", command_doctor, "look the server over",
     "usage: holdfast doctor [--json] [--url URL]\n"
     "\n"
     "Says what is wrong with the server for locks, and the command that mends it. Takes a lock of a\n"
     "name that nobody else has and gives it back; nothing else is changed.\n"
     "\n"
     "      --json              an array of findings: level, what, remedy\n" URL_HELP "\n"
     "exit: 0 nothing that must be mended, 1 something\n"},
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
    (void)fputs("holdfast --version tells the version.\n", out);
}

bool cli_help(const char *name)
{
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
    if (fflush(stdout) == 0 && ferror(stdout) == 0)
        return code;
    cli_say("cannot write the output: %s", strerror(errno));
    return CLI_OUTPUT;
}
