/* SPDX-License-Identifier: MIT */
/* fleet.h - several servers that belong together: a primary, its replicas, and the sentinels that watch them. */
#ifndef HFT_FLEET_H
#define HFT_FLEET_H

#include "tests/support/server.h"

#define HFT_FLEET_MOST 5
#define HFT_FLEET_DOWN_MS 1500 /* sentinels take most of a second to connect to a new primary: with less they call it down, too */

struct hft_fleet {
    int servers, sentinels;
    struct hft_server *server[HFT_FLEET_MOST]; /* the first one is the primary at first */
    struct hft_server *sentinel[HFT_FLEET_MOST];
    char url[256]; /* sentinel://127.0.0.1:...,.../mymaster */
};

/* Waits until every sentinel knows all replicas and all other sentinels. `config`: further lines for each sentinel. */
void hft_fleet_start(struct hft_fleet *fleet, int servers, int sentinels, int down_after_ms, const char *config);
void hft_fleet_stop(struct hft_fleet *fleet);

/* To every living sentinel the primary is up, and all others follow it. */
bool hft_fleet_is_whole(struct hft_fleet *fleet);
/* Which server the first living sentinel names. */
int hft_fleet_primary(struct hft_fleet *fleet);
/* A planned failover: SENTINEL FAILOVER. Returns the new primary, when a sentinel names it. */
int hft_fleet_fail_over(struct hft_fleet *fleet);
/* Waits until the sentinels name another one than `before`; returns it. */
int hft_fleet_wait_for_another(struct hft_fleet *fleet, int before);

#endif
