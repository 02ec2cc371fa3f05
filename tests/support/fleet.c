/* SPDX-License-Identifier: MIT */
/* fleet.c - see fleet.h. */
#include "tests/support/fleet.h"
#include "tests/support/takers.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char service[] = "mymaster";

/* "": it is not there. */
static const char *text(const redisReply *pairs, const char *name)
{
    for (size_t i = 0; i + 1 < pairs->elements; i += 2)
        if (strcmp(pairs->element[i]->str, name) == 0)
            return pairs->element[i + 1]->str;
    return "";
}

static long number(const redisReply *pairs, const char *name)
{
    return strtol(text(pairs, name), NULL, 10);
}

static bool has_flag(const redisReply *pairs, const char *flag)
{
    return strstr(text(pairs, "flags"), flag) != NULL;
}

static bool knows_all(const struct hft_fleet *fleet, struct hft_server *sentinel)
{
    redisReply *reply = hft_server_ask(sentinel, "SENTINEL MASTER %s", service);
    bool all = reply->type == REDIS_REPLY_ARRAY && number(reply, "num-slaves") == fleet->servers - 1 &&
               number(reply, "num-other-sentinels") == fleet->sentinels - 1;
    freeReplyObject(reply);
    return all;
}

static bool is_up(const redisReply *server)
{
    return !has_flag(server, "down") && !has_flag(server, "disconnected");
}

static bool is_whole_to(const struct hft_fleet *fleet, struct hft_server *sentinel)
{
    redisReply *primary = hft_server_ask(sentinel, "SENTINEL MASTER %s", service);
    redisReply *replicas = hft_server_ask(sentinel, "SENTINEL REPLICAS %s", service);
    bool whole = primary->type == REDIS_REPLY_ARRAY && is_up(primary) && !has_flag(primary, "failover") &&
                 number(primary, "num-slaves") == fleet->servers - 1;
    for (size_t i = 0; whole && i < replicas->elements; i++)
        whole = is_up(replicas->element[i]) && strcmp(text(replicas->element[i], "master-link-status"), "ok") == 0;
    freeReplyObject(primary);
    freeReplyObject(replicas);
    return whole;
}

bool hft_fleet_is_whole(struct hft_fleet *fleet)
{
    bool whole = true;
    for (int i = 0; i < fleet->sentinels; i++)
        whole = whole && (hft_server_pid(fleet->sentinel[i]) == 0 || is_whole_to(fleet, fleet->sentinel[i]));
    return whole;
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
