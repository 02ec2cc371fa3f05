/* SPDX-License-Identifier: MIT */
/* cli.c - see cli.h. */
#include "cli.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The text may contain words of the command line: their control characters must not reach the terminal. */
__attribute__((format(printf, 1, 0))) static void say(const char *format, va_list words)
{
    char text[2048];
    (void)vsnprintf(text, sizeof text, format, words);
    (void)fputs("holdfast: ", stderr);
    for (const char *at = text; *at != 0; at++) {
        if ((unsigned char)*at < ' ' || *at == 0x7f)
            (void)fprintf(stderr, "\\x%02x", (unsigned char)*at);
        else
            (void)fputc(*at, stderr);
    }
    (void)fputc('\n', stderr);
}

void cli_say(const char *format, ...)
{
    va_list words;
    va_start(words, format);
    say(format, words);
    va_end(words);
}

int cli_misused(const char *command, const char *format, ...)
{
    va_list words;
    va_start(words, format);
    say(format, words);
    va_end(words);
    (void)fprintf(stderr, "  see: holdfast help%s%s\n", command != NULL ? " " : "", command != NULL ? command : "");
    return CLI_USAGE;
}

static int code_of(hf_status status)
{
    switch (status) {
    case HF_OK:
        return CLI_DONE;
    case HF_BUSY:
    case HF_TIMEOUT:
    case HF_CANCELED:
    case HF_FOREIGN:
    case HF_DEADLOCK:
        return CLI_NO;
    case HF_LOST:
        return CLI_LOST;
    case HF_INVALID:
        return CLI_USAGE;
    case HF_NOMEM:
    case HF_LIMIT:
        return CLI_OS;
    case HF_UNKNOWN:
    case HF_UNAVAILABLE:
    case HF_DENIED:
    case HF_PROTOCOL:
        return CLI_NO_SERVER;
    default:
        return CLI_BUG;
    }
}

const char *cli_message(const hf_error *error)
{
    return error->message[0] != 0 ? error->message : hf_status_text(error->status);
}

int cli_failed(const hf_error *error)
{
    cli_say("%s", cli_message(error));
    if (error->hint[0] != 0)
        (void)fprintf(stderr, "  %s\n", error->hint);
    return code_of(error->status);
}

int cli_os_failed(const char *what)
{
    cli_say("%s: %s", what, strerror(errno));
    return CLI_OS;
}

int cli_bad_option(const char *command, int said, char **argv)
{
    const char *word = argv[optind - 1];
    bool is_long = strncmp(word, "--", 2) == 0;
    char letter[3] = {'-', (char)optopt, 0};
    if (said == ':') /* the option is the last word of the command line */
        return cli_misused(command, "%s requires a value", is_long ? word : letter);
    if (is_long && optopt != 0)
        return cli_misused(command, "%s takes no value", word);
    return cli_misused(command, "there is no option %s", is_long ? word : letter);
}

static const struct {
    const char *name;
    int64_t ms;
} units[] = {{"d", 86400000}, {"h", 3600000}, {"m", 60000}, {"s", 1000}, {"ms", 1}, {"", 1000}};

/* Milliseconds per unit; 0: no unit has this name. */
static int64_t unit_ms(const char *name)
{
    for (size_t i = 0; i < sizeof units / sizeof *units; i++)
        if (strcmp(units[i].name, name) == 0)
            return units[i].ms;
    return 0;
}

bool cli_duration(const char *text, int64_t *ms)
{
    int64_t whole = 0, part = 0, scale = 1;
    int digits = 0;
    bool more = false; /* digits other than 0 follow that are too fine for `part` */
    for (; isdigit((unsigned char)*text); text++, digits++)
        if ((whole = whole * 10 + (*text - '0')) > 1000000000)
            return false;
    if (*text == '.')
        for (text++; isdigit((unsigned char)*text); text++, digits++) {
            if (scale < 1000000000) {
                part = part * 10 + (*text - '0');
                scale *= 10;
            } else {
                more = more || *text != '0';
            }
        }
    int64_t unit = unit_ms(text);
    *ms = whole * unit + (part * unit + scale - 1) / scale + (more && part * unit % scale == 0 ? 1 : 0);
    return digits > 0 && unit > 0;
}

const char *cli_duration_text(int64_t ms, char out[24])
{
    size_t unit = 0;
    while (ms % units[unit].ms != 0)
        unit++;
    (void)snprintf(out, 24, "%" PRId64 "%s", ms / units[unit].ms, ms == 0 ? "" : units[unit].name);
    return out;
}

bool cli_number(const char *text, int most, int *number)
{
    int sum = 0;
    const char *at = text;
    for (; isdigit((unsigned char)*at); at++)
        if ((sum = sum * 10 + (*at - '0')) > most)
            return false;
    *number = sum;
    return at != text && *at == 0;
}

const char *cli_plain(const char *text, char *out, size_t room)
{
    size_t at = 0;
    for (const unsigned char *from = (const unsigned char *)text; *from != 0 && at + 8 < room; from++) {
        if (*from >= 0x20 && *from < 0x7f)
            out[at++] = (char)*from;
        else
            at += (size_t)snprintf(out + at, room - at, "\\x%02x", *from);
    }
    out[at] = 0;
    return out;
}

static int open_client(const char *url, const hf_client_options *options, hf_client **client, hf_error *error)
{
    return hf_client_open(url, options, client, error) == HF_OK ? CLI_DONE : cli_failed(error);
}

int cli_open(const char *url, int64_t connect_ms, bool is_lazy, hf_client **client)
{
    hf_error error;
    return open_client(url, HF_CLIENT(.connect_ms = connect_ms, .lazy = is_lazy), client, &error);
}

bool cli_look_read(int argc, char **argv, struct cli_look *look, int *code)
{
    struct option options[7] = {{"url", required_argument, NULL, 'u'}, {"help", no_argument, NULL, 'h'}};
    int count = 2;
    if (look->has_json)
        options[count++] = (struct option){"json", no_argument, NULL, 'j'};
    if (look->has_force)
        options[count++] = (struct option){"force", no_argument, NULL, 'f'};
    if (look->has_semaphore)
        options[count++] = (struct option){"semaphore", no_argument, NULL, 's'};
    if (look->has_acl)
        options[count] = (struct option){"acl", no_argument, NULL, 'a'};
    for (int said; (said = getopt_long(argc, argv, ":h", options, NULL)) != -1;) {
        if (said == 'u') {
            look->url = optarg;
        } else if (said == 'j') {
            look->json = true;
        } else if (said == 'f') {
            look->force = true;
        } else if (said == 's') {
            look->semaphore = true;
        } else if (said == 'a') {
            look->acl = true;
        } else if (said == 'h') {
            (void)cli_help(argv[0]);
            *code = CLI_DONE;
            return false;
        } else {
            *code = cli_bad_option(argv[0], said, argv);
            return false;
        }
    }
    int given = argc - optind;
    if (given < look->least)
        *code = cli_misused(argv[0], "%s requires the NAME of a %s", argv[0], look->semaphore ? "semaphore" : "lock");
    else if (given > look->most)
        *code = cli_misused(argv[0], "%s: unexpected argument %s", argv[0], argv[optind + look->most]);
    return given >= look->least && given <= look->most;
}

/* command_ms where the URL sets no time: more than connecting may take, with TLS too, so that the error is the cause of a
 * failed connect and not the lack of a reply. */
#define LOOK_MS 6000

static bool says_how_long(const char *url)
{
    return url != NULL && (strstr(url, "command_ms=") != NULL || strstr(url, "connect_ms=") != NULL);
}

bool cli_look_open(const struct cli_look *look, hf_client **client, hf_error *error, int *code)
{
    bool ours = look->only_looks && !says_how_long(look->url != NULL ? look->url : getenv("HOLDFAST_URL"));
    *code = open_client(look->url,
                        HF_CLIENT(.keyspace_events = "as-is", .lazy = look->only_looks, .command_ms = ours ? LOOK_MS : 0), client, error);
    return *code == CLI_DONE;
}

bool cli_look(int argc, char **argv, struct cli_look *look, hf_client **client, int *code)
{
    hf_error error;
    return cli_look_read(argc, argv, look, code) && cli_look_open(look, client, &error, code);
}
