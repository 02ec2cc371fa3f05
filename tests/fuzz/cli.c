/* SPDX-License-Identifier: MIT */
/* cli.c - the arguments of `holdfast run`, a word a line: parsed within bounds, or refused. */
#include "tests/fuzz/fuzz.h"

#include "tools/cli.h"
#include "tools/run.h"

#define WORDS 32

static void take_numbers(const char *text)
{
    char plain[64];
    int64_t ms = -1;
    int number = -1;
    if (cli_duration(text, &ms))
        HFT_MUST(ms >= 0 && ms <= INT64_C(86400000) * 1000000001);
    if (cli_number(text, 255, &number))
        HFT_MUST(number >= 0 && number <= 255);
    for (const char *at = cli_plain(text, plain, sizeof plain); *at != 0; at++)
        HFT_MUST(*at >= 0x20 && *at < 0x7f);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *words[WORDS + 1], *given[WORDS + 1];
    int count = 1;
    struct run run;
    words[0] = strdup("run");
    while (size > 0 && count < WORDS)
        words[count++] = hft_line(&data, &size);
    words[count] = NULL;
    for (int i = 1; i < count; i++)
        take_numbers(words[i]);
    memcpy(given, words, sizeof given);
    optind = 0;
    int code = run_parse(&run, count, words);
    if (code == -1 && run.lease_ms == 0)
        code = run_set_lease(&run, 10000); /* the client's */
    if (code == -1) {
        HFT_MUST(run.name != NULL && run.words != NULL && run.words[0] != NULL);
        HFT_MUST(run.lease_ms >= 100 && run.grace_ms >= 0 && run.grace_ms <= run.lease_ms / 2);
        HFT_MUST(run.conflict_code >= 0 && run.conflict_code <= 255);
    }
    for (int i = 0; i < count; i++)
        free(given[i]);
    return 0;
}
