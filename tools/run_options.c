/* SPDX-License-Identifier: MIT */
/* run_options.c - the options of holdfast run and lead: parsed, and checked against each other. */
#include "cli.h"
#include "run.h"

#include <stdio.h>
#include <string.h>

/* The functions of this file return -1: go on; or the exit code. */

static int duration(const char *verb, const char *option, const char *text, int64_t least_ms, int64_t most_ms, int64_t *ms)
{
    char plain[80], least[24], most[24];
    if (cli_duration(text, ms) && *ms >= least_ms && *ms <= most_ms)
        return -1;
    return cli_misused(verb, "%s must be a duration of %s to %s (seconds, or 500ms, 5m, 2h, 1d), not \"%s\"", option,
                       cli_duration_text(least_ms, least), cli_duration_text(most_ms, most),
                       cli_plain(text, plain, sizeof plain));
}

/* N/LIMIT */
static int permits(struct run *run, const char *text)
{
    char count[8], plain[80];
    size_t size = strcspn(text, "/");
    bool good = size < sizeof count && text[size] == '/';
    (void)snprintf(count, sizeof count, "%.*s", (int)size, text);
    if (good && cli_number(count, HF_PERMITS_MAX, &run->permits) && cli_number(text + size + 1, HF_LIMIT_MAX, &run->limit) &&
        run->permits >= 1 && run->permits <= run->limit)
        return -1;
    return cli_misused(run->verb, "--permits must be N/LIMIT, such as 1/5, with N from 1 to %d and a LIMIT of N to %d, not \"%s\"",
                       HF_PERMITS_MAX, HF_LIMIT_MAX, cli_plain(text, plain, sizeof plain));
}

bool run_leads(const struct run *run)
{
    return strcmp(run->verb, "lead") == 0;
}

void run_label(const struct run *run, char label[RUN_LABEL_MOST + 1])
{
    const char *from = run->label != NULL ? run->label : run->words[0], *line = run->shell[2];
    size_t size = strlen(from);
    if (run->label == NULL && line != NULL) {
        line += strspn(line, " \t\n");
        size_t first = strcspn(line, " \t\n;&|<>()`");
        if (first > 0 && memchr(line, '=', first) == NULL) {
            from = line;
            size = first;
        }
    }
    (void)snprintf(label, RUN_LABEL_MOST + 1, "%.*s", (int)(size < RUN_LABEL_MOST ? size : RUN_LABEL_MOST), from);
}

struct wishes { /* to be checked when all options are known */
    bool nonblock, waits, help;
};

/* Parses the options in front of the next word that is not an option. */
static int parse_options(struct run *run, struct wishes *wishes, int argc, char **argv)
{
    static const struct option options[] = {
        {"nonblock", no_argument, NULL, 'n'},    {"wait", required_argument, NULL, 'w'},
        {"timeout", required_argument, NULL, 'w'}, {"lease", required_argument, NULL, 'l'},
        {"conflict-exit-code", required_argument, NULL, 'E'}, {"command", required_argument, NULL, 'c'},
        {"grace", required_argument, NULL, 'g'}, {"url", required_argument, NULL, 'u'},
        {"shared", no_argument, NULL, 's'},      {"permits", required_argument, NULL, 'p'},
        {"keep-url", no_argument, NULL, 'k'},    {"label", required_argument, NULL, 'L'},
        {"verbose", no_argument, NULL, 'v'},     {"help", no_argument, NULL, 'h'},
        {NULL, 0, NULL, 0}};
    int code = -1;
    for (int said; code == -1 && (said = getopt_long(argc, argv, "+:nsp:w:E:c:vh", options, NULL)) != -1;) {
        if (run_leads(run) && (said == 'n' || said == 'w' || said == 'E'))
            return cli_misused(run->verb, "lead waits until it leads: it has no -n, -w and -E");
        if (run_leads(run) && said == 's')
            return cli_misused(run->verb, "only one can lead: lead has no --shared");
        if (run_leads(run) && said == 'p')
            return cli_misused(run->verb, "only one can lead: lead has no --permits");
        switch (said) {
        case 'n':
            wishes->nonblock = true;
            break;
        case 'w':
            wishes->waits = true;
            code = duration(run->verb, "-w", optarg, 0, INT64_C(1000000000000), &run->wait_ms);
            break;
        case 'E':
            if (!cli_number(optarg, 255, &run->conflict_code))
                code = cli_misused(run->verb, "-E must be an exit code from 0 to 255, not \"%s\"", optarg);
            break;
        case 'c':
            run->shell[2] = optarg;
            break;
        case 'l':
            code = duration(run->verb, "--lease", optarg, 100, 86400000, &run->lease_ms);
            break;
        case 'g':
            code = duration(run->verb, "--grace", optarg, 0, 43200000, &run->grace_ms);
            break;
        case 'u':
            run->url = optarg;
            break;
        case 's':
            run->shared = true;
            break;
        case 'p':
            code = permits(run, optarg);
            break;
        case 'k':
            run->keep_url = true;
            break;
        case 'L':
            run->label = optarg;
            if (strlen(optarg) < 1 || strlen(optarg) > RUN_LABEL_MOST)
                code = cli_misused(run->verb, "--label must be 1 to %d bytes long", RUN_LABEL_MOST);
            break;
        case 'v':
            run->verbose = true;
            break;
        case 'h':
            wishes->help = true;
            break;
        default:
            code = cli_bad_option(run->verb, said, argv);
        }
    }
    return code;
}

int run_set_lease(struct run *run, int64_t lease_ms)
{
    char lease[24];
    run->lease_ms = lease_ms;
    if (run->grace_ms > lease_ms / 2)
        return cli_misused(run->verb, "--grace is more than half the lease (%s)", cli_duration_text(lease_ms, lease));
    if (run->grace_ms < 0)
        run->grace_ms = lease_ms < 4000 ? lease_ms / 2 : 2000;
    return -1;
}

static int check_options(struct run *run, const struct wishes *wishes)
{
    if (wishes->nonblock && wishes->waits)
        return cli_misused(run->verb, "-n and -w cannot be combined");
    if (run->shared && run->permits > 0)
        return cli_misused(run->verb, "--shared and --permits cannot be combined");
    if (wishes->nonblock)
        run->wait_ms = 0;
    return run->lease_ms > 0 ? run_set_lease(run, run->lease_ms) : -1;
}

/* Options may stand before and after the NAME; the words after them are the command's, with or without a --. */
int run_parse(struct run *run, int argc, char **argv)
{
    struct wishes wishes = {0};
    *run = (struct run){.verb = argv[0], .wait_ms = HF_FOREVER, .grace_ms = -1, .conflict_code = CLI_NO,
                        .shell = {(char *)(uintptr_t)"/bin/sh", (char *)(uintptr_t)"-c"}};
    int code = parse_options(run, &wishes, argc, argv);
    char **rest = argv + optind; /* the NAME and all words after it */
    if (code == -1 && *rest != NULL) {
        int count = argc - optind;
        optind = 0; /* restarts getopt: the NAME is in the place of argv[0] */
        code = parse_options(run, &wishes, count, rest);
        run->name = *rest;
        rest += optind;
    }
    if (code == -1 && wishes.help) {
        (void)cli_help(run->verb);
        return CLI_DONE;
    }
    if (code == -1)
        code = check_options(run, &wishes);
    if (code != -1)
        return code;
    if (run->name == NULL)
        return cli_misused(run->verb, "%s requires the NAME of a lock", run->verb);
    run->words = run->shell[2] != NULL ? run->shell : rest;
    if (run->shell[2] != NULL && *rest != NULL)
        return cli_misused(run->verb, "-c cannot be combined with a command (\"%s\")", *rest);
    if (run->words[0] == NULL)
        return cli_misused(run->verb, "%s requires a command after the NAME: holdfast %s NAME -- command", run->verb, run->verb);
    return -1;
}
