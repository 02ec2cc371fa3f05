/* SPDX-License-Identifier: MIT */
/* fleet.c - see fleet.h. */
#include "tests/support/fleet.h"
#include "tests/support/takers.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char service[] = "mymaster";

static long field(const redisReply *pairs, const char *name)
{
    for (size_t i = 0; i + 1 < pairs->elements; i += 2)
        if (strcmp(pairs->element[i]->str, name) == 0)
            return strtol(pairs->element[i + 1]->str, NULL, 10);
    return -1;
}

static bool knows_all(const struct hft_fleet *fleet, struct hft_server *sentinel)
{
    redisReply *reply = hft_server_ask(sentinel, "SENTINEL MASTER %s", service);
    bool all = reply->type == REDIS_REPLY_ARRAY && field(reply, "num-slaves") == fleet->servers - 1 &&
               field(reply, "num-other-sentinels") == fleet->sentinels - 1;
    freeReplyObject(reply);
    return all;
}

void hft_fleet_start(struct hft_fleet *fleet, int servers, int sentinels, int down_after_ms, const char *config)
{
    char lines[1024];
    int at;
    *fleet = (struct hft_fleet){.servers = servers, .sentinels = sentinels};
    fleet->server[0] = hft_server_start_tcp("repl-diskless-sync-delay 0");
    (void)snprintf(lines, sizeof lines, "repl-diskless-sync-delay 0\nreplicaof 127.0.0.1 %d", hft_server_port(fleet->server[0]));
    for (int i = 1; i < servers; i++)
        fleet->server[i] = hft_server_start_tcp(lines);
    (void)snprintf(lines, sizeof lines,
                   "sentinel monitor %s 127.0.0.1 %d %d\nsentinel down-after-milliseconds %s %d\n"
                   "sentinel failover-timeout %s 6000\nsentinel parallel-syncs %s 5\n%s",
                   service, hft_server_port(fleet->server[0]), sentinels / 2 + 1, service, down_after_ms, service, service,
                   config != NULL ? config : "");
    at = snprintf(fleet->url, sizeof fleet->url, "sentinel://");
    for (int i = 0; i < sentinels; i++) {
        fleet->sentinel[i] = hft_server_start_sentinel(lines);
        at += snprintf(fleet->url + at, sizeof fleet->url - (size_t)at, "%s127.0.0.1:%d", i > 0 ? "," : "",
                       hft_server_port(fleet->sentinel[i]));
    }
    (void)snprintf(fleet->url + at, sizeof fleet->url - (size_t)at, "/%s", service);
    for (int i = 0; i < sentinels; i++)
        HFT_UNTIL_TRUE(knows_all(fleet, fleet->sentinel[i]));
}

void hft_fleet_stop(struct hft_fleet *fleet)
{
    for (int i = 0; i < fleet->sentinels; i++)
        hft_server_stop(fleet->sentinel[i]);
    for (int i = 0; i < fleet->servers; i++)
        hft_server_stop(fleet->server[i]);
}

int hft_fleet_primary(struct hft_fleet *fleet)
{
    int found = -1;
    for (int i = 0; i < fleet->sentinels; i++) {
        if (hft_server_pid(fleet->sentinel[i]) == 0)
            continue;
        redisReply *reply = hft_server_ask(fleet->sentinel[i], "SENTINEL GET-MASTER-ADDR-BY-NAME %s", service);
        long port = reply->type == REDIS_REPLY_ARRAY ? strtol(reply->element[1]->str, NULL, 10) : 0;
        freeReplyObject(reply);
        for (int j = 0; j < fleet->servers; j++)
            if (hft_server_port(fleet->server[j]) == port)
                found = j;
        break;
    }
    return found;
}

int hft_fleet_wait_for_another(struct hft_fleet *fleet, int before)
{
    int now = before;
    HFT_UNTIL_TRUE((now = hft_fleet_primary(fleet)) != before && now >= 0);
    return now;
}

/* Refused while a failover is under way, or no replica is fit (INPROG, NOGOODSLAVE). */
static bool begins_failover(struct hft_server *sentinel)
{
    redisReply *reply = hft_server_ask(sentinel, "SENTINEL FAILOVER %s", service);
    bool begins = reply->type == REDIS_REPLY_STATUS;
    freeReplyObject(reply);
    return begins;
}

int hft_fleet_fail_over(struct hft_fleet *fleet)
{
    int before = hft_fleet_primary(fleet);
    HFT_UNTIL_TRUE(begins_failover(fleet->sentinel[0]));
    return hft_fleet_wait_for_another(fleet, before);
}
