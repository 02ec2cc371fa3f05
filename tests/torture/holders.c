/* SPDX-License-Identifier: MIT */
/* holders.c - runs one campaign against the holders of leases: torture kills|pauses|stale [--count N] [--seed N]
 * [--slack-ms N]. 1: a promise was broken. */
#include "tests/torture/campaigns.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static const struct {
    const char *name;
    bool (*run)(struct hft_stage *stage);
} campaigns[] = {{"kills", hft_campaign_kills}, {"pauses", hft_campaign_pauses}, {"stale", hft_campaign_stale}};

static int usage(void)
{
    (void)fputs("usage: torture kills|pauses|stale [--count N] [--seed N] [--slack-ms N]\n", stderr);
    return 64;
}

int hft_holders(int argc, char **argv)
{
    struct hft_stage stage = {.count = 100, .slack_ms = HFT_SLACK_MS, .seed = (unsigned)time(NULL) % 100000};
    for (int i = 2; i < argc; i += 2) {
        long value = i + 1 < argc ? strtol(argv[i + 1], NULL, 10) : 0;
        if (value < 1 || value > 1000000)
            return usage();
        if (strcmp(argv[i], "--count") == 0)
            stage.count = (int)value;
        else if (strcmp(argv[i], "--seed") == 0)
            stage.seed = (unsigned)value;
        else if (strcmp(argv[i], "--slack-ms") == 0)
            stage.slack_ms = (int)value;
        else
            return usage();
    }
    for (size_t i = 0; argc > 1 && i < sizeof campaigns / sizeof campaigns[0]; i++)
        if (strcmp(campaigns[i].name, argv[1]) == 0) {
            stage.name = campaigns[i].name;
            return campaigns[i].run(&stage) ? 0 : 1;
        }
    return usage();
}
