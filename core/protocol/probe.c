/* SPDX-License-Identifier: MIT */
/* probe.c - see probe.h. */
#include "core/protocol/probe.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

bool hfi_wait_is_younger(const struct hfi_wait_id *one, const struct hfi_wait_id *other)
{
    if (one->start_us != other->start_us)
        return one->start_us > other->start_us;
    int order = strcmp(one->client, other->client);
    return order != 0 ? order > 0 : one->number > other->number;
}

static bool is_plain(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || strchr(":.-_{}#@", c) != NULL;
}

void hfi_hop_set_name(struct hfi_hop *hop, const char *name, size_t size)
{
    size = size < HFI_HOP_NAME ? size : HFI_HOP_NAME;
    for (size_t i = 0; i < size; i++)
        hop->name[i] = name[i] != 0 && is_plain(name[i]) ? name[i] : '_';
    hop->name[size] = 0;
}

static char *print_wait(const struct hfi_probe *probe, char *at)
{
    return at + sprintf(at, "%" PRId64 ".%s.%" PRIu64 ".%" PRIu64, probe->wait.start_us, probe->wait.client, probe->wait.number,
                        probe->nonce);
}

static void print_hops(const struct hfi_probe *probe, char *at)
{
    for (int i = 0; i < probe->count; i++) {
        const struct hfi_hop *hop = &probe->hops[i];
        at += sprintf(at, "%s%s,%" PRId64 ",%" PRIu64 ",%s", i == 0 ? " " : "/", hop->token, hop->fence, hop->wait, hop->name);
    }
}

void hfi_probe_print(const struct hfi_probe *probe, const char *token, char out[HFI_PROBE_CAPACITY])
{
    print_hops(probe, print_wait(probe, out + sprintf(out, "D %s ", token)));
}

void hfi_probe_print_check(const struct hfi_probe *probe, int index, char out[HFI_PROBE_CAPACITY])
{
    char *at = print_wait(probe, out + sprintf(out, "E %s ", probe->hops[index].token));
    print_hops(probe, at + sprintf(at, " %d", index));
}

struct scan {
    const char *at, *end;
    bool good;
};

/* Up to the next `stop`, which is skipped; true: there was one, and not the end. */
static bool part(struct scan *scan, char stop, char *out, size_t room)
{
    size_t size = 0;
    while (scan->at < scan->end && *scan->at != stop) {
        if (size + 1 < room && *scan->at > ' ')
            out[size] = *scan->at;
        else
            scan->good = false;
        size++;
        scan->at++;
    }
    bool stopped = scan->at < scan->end;
    scan->at += stopped;
    out[size < room ? size : room - 1] = 0;
    return stopped;
}

static uint64_t number(struct scan *scan, char stop, uint64_t most)
{
    char text[24];
    uint64_t value = 0;
    bool stopped = part(scan, stop, text, sizeof text);
    size_t size = strlen(text);
    scan->good = scan->good && (stopped || stop == ' ') && size > 0 && size < 20 && strspn(text, "0123456789") == size;
    for (size_t i = 0; scan->good && i < size; i++)
        value = value * 10 + (uint64_t)(text[i] - '0');
    scan->good = scan->good && value <= most;
    return value;
}

static void scan_hop(struct scan *scan, struct hfi_hop *hop)
{
    scan->good = part(scan, ',', hop->token, sizeof hop->token) && scan->good;
    hop->fence = (int64_t)number(scan, ',', INT64_MAX);
    hop->wait = number(scan, ',', INT64_MAX);
    if (part(scan, '/', hop->name, sizeof hop->name) && scan->at == scan->end)
        scan->good = false; /* another hop is to follow */
}

bool hfi_probe_parse(const char *text, size_t size, bool is_check, struct hfi_probe *probe, int *index)
{
    struct scan scan = {text, text + size, true};
    memset(probe, 0, offsetof(struct hfi_probe, hops));
    probe->wait.start_us = (int64_t)number(&scan, '.', INT64_MAX);
    (void)part(&scan, '.', probe->wait.client, sizeof probe->wait.client);
    probe->wait.number = number(&scan, '.', INT64_MAX);
    probe->nonce = number(&scan, ' ', INT64_MAX);
    *index = is_check ? (int)number(&scan, ' ', HFI_HOPS_MOST - 1) : -1;
    while (scan.good && scan.at < scan.end && probe->count < HFI_HOPS_MOST)
        scan_hop(&scan, &probe->hops[probe->count++]);
    return scan.good && scan.at == scan.end && *index < probe->count;
}
