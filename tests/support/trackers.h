/* SPDX-License-Identifier: MIT */
/* trackers.h - what a server says of its client tracking. */
#ifndef HFT_TRACKERS_H
#define HFT_TRACKERS_H

#include "tests/support/server.h"

#include <stdbool.h>

int64_t hft_tracked(struct hft_server *server);       /* keys */
int64_t hft_trackers(struct hft_server *server);      /* who is subscribed to be told */
void    hft_kill_tracker(struct hft_server *server);  /* it alone: the one to whom a lane redirects */
void    hft_kill_first_redirecting(struct hft_server *server); /* the oldest connection that redirects */
bool    hft_is_redirected(struct hft_server *server); /* to one that is there */

#endif
