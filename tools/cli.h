/* SPDX-License-Identifier: MIT */
/* cli.h - what all commands of the tool share: exit codes, messages on stderr, numbers, the client. */
#ifndef HOLDFAST_TOOL_CLI_H
#define HOLDFAST_TOOL_CLI_H

#include <getopt.h>
#include <holdfast/holdfast.h>

enum {
    CLI_DONE = 0,
    CLI_NO = 1,           /* not obtained; not held; something is wrong with the server */
    CLI_USAGE = 64,       /* from here on the numbers of sysexits.h */
    CLI_NO_SERVER = 69,
    CLI_BUG = 70,
    CLI_OS = 71,
    CLI_OUTPUT = 74,
    CLI_LOST = 76,
    CLI_CANNOT_STOP = 77,
    CLI_CANNOT_RUN = 126, /* from here on the shell's */
    CLI_NOT_FOUND = 127
};

/* All words of the command line, one after the other, in the memory in which main found them. */
extern char *cli_words;
extern size_t cli_words_size;

/* The commands. argv[0] is the command's name; each returns the exit code. */
int command_run(int argc, char **argv);
int command_lead(int argc, char **argv);
int command_watch(int argc, char **argv);
int command_ls(int argc, char **argv);
int command_show(int argc, char **argv);
int command_break(int argc, char **argv);
int command_doctor(int argc, char **argv);

/* Prints "holdfast: ...", a line of its own, on stderr. */
void cli_say(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* The same, then where to read more about `command` (NULL: about the tool). Returns CLI_USAGE. */
int cli_misused(const char *command, const char *format, ...) __attribute__((format(printf, 2, 3)));
const char *cli_message(const hf_error *error); /* never empty */
/* Prints message and hint; returns the exit code that fits. */
int cli_failed(const hf_error *error);
/* Prints `what` and the text of errno. Returns CLI_OS. */
int cli_os_failed(const char *what);

/* Explains why getopt_long returned `said`, which is '?' or ':'. Returns CLI_USAGE. */
int cli_bad_option(const char *command, int said, char **argv);
/* The command line of an operator's command. */
struct cli_look {
    int least, most;  /* number of operands */
    bool has_json, has_force, has_semaphore, has_acl; /* the command has this option */
    bool only_looks;  /* the command connects when it first sends, and sends nothing that writes */
    const char *url;  /* NULL: as in cli_open */
    bool json, force, semaphore, acl;
};
/* Reads its options. False: *code is the exit code. True: optind is at the operands. */
bool cli_look_read(int argc, char **argv, struct cli_look *look, int *code);
/* Opens a client that never changes the server's configuration. False: *error has been told, *code is the exit code. */
bool cli_look_open(const struct cli_look *look, hf_client **client, hf_error *error, int *code);
/* Both. */
bool cli_look(int argc, char **argv, struct cli_look *look, hf_client **client, int *code);

/* "1.5", "500ms", "5m", "2h", "1d" as milliseconds, rounded up; without a unit: seconds. False: anything else. */
bool cli_duration(const char *text, int64_t *ms);
/* The same the other way, in the largest unit that makes it a whole number. Returns out. */
const char *cli_duration_text(int64_t ms, char out[24]);
bool cli_number(const char *text, int most, int *number);

/* Foreign text, safe to show: control characters and bytes that are not ASCII become \xNN. Returns out. */
const char *cli_plain(const char *text, char *out, size_t room);

/* `url` NULL: $HOLDFAST_URL, or the default. connect_ms 0: the URL's, or the default. is_lazy: the server may be away.
 * CLI_DONE; else the exit code, and the error has been printed. */
int cli_open(const char *url, int64_t connect_ms, bool is_lazy, hf_client **client);

/* Prints the help of one command (NULL: of all) to stdout. False: no command has this name. */
bool cli_help(const char *command);

#endif
