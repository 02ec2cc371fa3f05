/* SPDX-License-Identifier: MIT */
/* doctor.c - holdfast doctor: prints what hf_client_check finds. */
#include "cli.h"

#include <stdio.h>

static const char *word(const hf_finding *finding)
{
    switch (finding->level) {
    case HF_LOG_ERROR:
        return "error";
    case HF_LOG_WARNING:
        return "warning";
    default: /* nothing is wrong, but it could be better */
        return finding->remedy[0] != 0 ? "note" : "ok";
    }
}

static bool print(const hf_finding *finding, void *arg)
{
    bool *is_ill = arg;
    (void)printf("%-8s %s\n", word(finding), finding->what);
    if (finding->remedy[0] != 0)
        (void)printf("%-8s -> %s\n", "", finding->remedy);
    if (finding->level == HF_LOG_ERROR)
        *is_ill = true;
    return true;
}

int command_doctor(int argc, char **argv)
{
    const char *url = NULL;
    int code;
    if (!cli_url_only(argc, argv, 0, 0, &url, &code))
        return code;
    hf_client *client;
    if ((code = cli_open_to_look(url, &client)) != CLI_DONE)
        return code;
    bool is_ill = false;
    hf_error error;
    if (hf_client_check(client, print, &is_ill, &error) != HF_OK)
        code = cli_failed(&error);
    else if (is_ill)
        code = CLI_NO;
    (void)hf_client_close(client, NULL);
    return code;
}
